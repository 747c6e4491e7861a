/* SPDX-License-Identifier: Apache-2.0
 *
 * The second launch of V4's prologue, unless step_prologue_fused makes it in
 * one. A block a token: a context of a million tokens has 8192 entries of C128A.
 * Two more blocks follow where decode is done in parts: they cut the tokens of
 * layers of ratio 4 and of 128 among the parts, and count keys by context alone,
 * never too few.
 *
 * The hard idea is a token without a page for one of its keys, or without a
 * place for its index logits. Its other keys and its states are written, as it
 * has a context. But its length is 0 for every layer, so all its results are
 * empty.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_WINDOWS_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_WINDOWS_KERNEL_H

#include "spmla/platform/gpu/dialect/divide.h"
#include "spmla/platform/gpu/step/decode_cut_device.h"
#include "spmla/platform/gpu/step/fault_device.h"

/* A group's table; pages are of compressed entries. */
#define SPMLA_P_GROUP(P, group)         \
	P(const int32_t, group##_table) \
	P(const int32_t, group##_cols)
#define SPMLA_S_GROUP(S, group)          \
	S(uint32_t, group##_columns)     \
	S(uint32_t, group##_stride)      \
	S(uint32_t, group##_pool_pages)  \
	S(spmla_g_divisor, group##_page) \
	S(uint32_t, group##_has_cols)

/* What a prologue of one launch has beside these: in, and out. */
#define SPMLA_P_WINDOWS_IN(P)          \
	P(const int32_t, token_row)    \
	P(const int32_t, positions)    \
	P(const int32_t, context_lens) \
	P(int32_t, compressed_lens)
#define SPMLA_P_WINDOWS_OUT(P)     \
	P(int64_t, c4a_slots)      \
	P(int64_t, index_slots)    \
	P(int64_t, c128a_slots)    \
	P(int32_t, swa_indices)    \
	P(int32_t, swa_lens)       \
	P(int32_t, c128a_indices)  \
	P(int32_t, c128a_lens)     \
	P(int32_t, c4a_metadata)   \
	P(int32_t, c4a_splits)     \
	P(int32_t, c128a_metadata) \
	P(int32_t, c128a_splits)
#define SPMLA_K_step_prologue_windows(P, S) \
	SPMLA_K_FAULT(P)                    \
	SPMLA_P_WINDOWS_IN(P)               \
	SPMLA_P_WINDOWS_OUT(P)              \
	SPMLA_P_GROUP(P, swa)               \
	SPMLA_P_GROUP(P, c4a)               \
	SPMLA_P_GROUP(P, c128a)             \
	SPMLA_P_GROUP(P, index)             \
	SPMLA_S_GROUP(S, swa)               \
	SPMLA_S_GROUP(S, c4a)               \
	SPMLA_S_GROUP(S, c128a)             \
	SPMLA_S_GROUP(S, index)             \
	S(spmla_g_divisor, swa_ring)        \
	S(uint32_t, has_index)              \
	S(uint32_t, tokens)                 \
	S(uint32_t, window)                 \
	S(uint32_t, c128a_width)            \
	S(uint32_t, c128a_listed)           \
	S(uint32_t, topk)                   \
	S(uint32_t, parts)                  \
	S(uint32_t, whole_tokens)           \
	S(uint32_t, blocks)
SPMLA_KERNEL_SCALARS(step_prologue_windows)

enum {
	WINDOWS_CUTS = 2,  /* blocks behind the tokens' */
	WINDOWS_NEAR = 64, /* items for the window, */
	WINDOWS_FAR = 128, /* and for the keys of C128A */
	WINDOWS_LOADS = 4  /* of either row, by an item at a time */
};

#ifdef SPMLA_GPU_KERNELS

/* The arguments, for functions that step_prologue_fused calls, too. */
typedef struct windows_args {
	SPMLA_KERNEL_FIELDS(step_prologue_windows)
} windows_args;

/* A word that an earlier launch wrote or, if `fresh`, a block of this one. */
FN int32_t
windows_word(GLOBAL const int32_t *p, uint32_t fresh)
{
	return fresh ? g_load_fresh(p) : *p;
}

/* A group's table at one row. `written` is used late, as it was loaded:
 * g_slot_row waits for it first, but here the pages of lists are loaded
 * together with it. */
typedef struct windows_group {
	GLOBAL const int32_t *pages;
	uint32_t written; /* columns that are; 0 if the table says fewer */
	uint32_t columns, pool_pages;
	spmla_g_divisor page; /* entries of one */
	spmla_g_divisor ring; /* columns; by 0: linear */
} windows_group;

/* `known`: what the table says of its columns that are written. */
FN windows_group
windows_group_of(GLOBAL const int32_t *table, int32_t known, uint32_t row,
		 uint32_t columns, uint32_t stride, uint32_t pool_pages,
		 const spmla_g_divisor page, const spmla_g_divisor ring)
{
	windows_group g;

	g.pages = table + (uint64_t)row * stride;
	g.written = known < 0 ? 0 : (uint32_t)known;
	g.columns = columns;
	g.pool_pages = pool_pages;
	g.page = page;
	g.ring = ring;
	return g;
}

/* The group's table at a row; `a` points to windows_args. */
#define WINDOWS_GROUP(a, group, row, fresh, ring)                          \
	windows_group_of(                                                  \
		(a)->group##_table,                                        \
		(a)->s.group##_has_cols                                    \
			? windows_word((a)->group##_cols + (row), (fresh)) \
			: (int32_t)(a)->s.group##_columns,                 \
		(row), (a)->s.group##_columns, (a)->s.group##_stride,      \
		(a)->s.group##_pool_pages, (a)->s.group##_page, (ring))

/* A run of entries of a list that lie in one page. */
typedef struct windows_run {
	uint32_t col;
	uint32_t at; /* in the page */
	int32_t page;
} windows_run;

/* The run at entry k of the `len` from `start` on. The load of its page does not
 * wait for `written`. */
FN windows_run
windows_load(const PRIVATE windows_group *g, uint32_t start, uint32_t len,
	     uint32_t k, uint32_t fresh)
{
	windows_run r;

	r.page = -1;
	r.col = g_divide(start + k, g->page);
	r.at = start + k - r.col * g->page.by;
	if (g->ring.by)
		r.col = g_modulo(r.col, g->ring);
	if (k < len && r.col < g->columns)
		r.page = windows_word(g->pages + r.col, fresh);
	return r;
}

/* The slot of a run's first entry; -1: it has no page. */
FN int64_t
windows_slot(const PRIVATE windows_group *g, const PRIVATE windows_run *r)
{
	if (r->col >= g->written || (uint32_t)r->page >= g->pool_pages)
		return -1;
	return (int64_t)r->page * g->page.by + r->at;
}

/* Writes the slots of a run's `n` entries, or -1; out NULL: nothing. Slots of a
 * list have 32 bits. Returns 1 for a missing page, at its first entry in the
 * list. */
FN uint32_t
windows_put(const PRIVATE windows_group *g, uint32_t len, uint32_t k,
	    uint32_t n, const PRIVATE windows_run *r, GLOBAL int32_t *out)
{
	const uint32_t is =
		r->col < g->written && (uint32_t)r->page < g->pool_pages;
	const uint32_t slot = (uint32_t)r->page * g->page.by + r->at;

	if (k >= len)
		return 0;
	if (out) {
		out[k] = is ? (int32_t)slot : -1;
		if (n == 2 && k + 1 < len)
			out[k + 1] = is ? (int32_t)slot + 1 : -1;
	}
	return !is && (k == 0 || r->at == 0);
}

/* The slot of the key of `ratio` that ends with position pos; -1 if none does.
 * *lost counts its page if it is missing. If no key ends, *lost counts an
 * unwritten column up to the last key's. */
FN int64_t
windows_key(const PRIVATE windows_group *g, uint32_t ratio, uint32_t pos,
	    const PRIVATE windows_run *r, PRIVATE uint32_t *lost)
{
	int64_t slot = -1;

	if ((pos + 1) % ratio == 0) {
		slot = windows_slot(g, r);
		*lost += slot < 0;
	} else if (pos >= ratio) {
		*lost += g_divide(pos / ratio - 1, g->page) >= g->written;
	}
	return slot;
}

/* The lengths of a token's lists; `none`: it is empty. */
FN void
windows_lens(const PRIVATE windows_args *a, uint32_t t, uint32_t context,
	     uint32_t none)
{
	const uint32_t n = none ? 0 : context;

	a->compressed_lens[t] = (int32_t)(n / SPMLA_COMPRESS_OVERLAP);
	a->swa_lens[t] = (int32_t)(n < a->s.window ? n : a->s.window);
	a->c128a_lens[t] = (int32_t)(n / SPMLA_COMPRESS_MOST);
}

/* Writes the metadata of layers of ratio 4 or 128, once `cut` has the line of
 * tokens. A barrier at the begin. */
FN void
windows_parts(const PRIVATE windows_args *a, uint32_t ratio, uint32_t items,
	      LOCAL decode_cut *cut)
{
	const uint32_t four = ratio == SPMLA_COMPRESS_OVERLAP;

	BARRIER();
	decode_cut_block(a->s.tokens - a->s.whole_tokens, a->s.parts,
			 four ? a->c4a_metadata : a->c128a_metadata,
			 four ? a->c4a_splits : a->c128a_splits, items, cut);
}

/* Writes the slots of `len` entries from `start` on. `items` threads do this;
 * the caller is number `item`. Returns how many missing pages it met. */
FN uint32_t
windows_row(const PRIVATE windows_group *g, uint32_t start, uint32_t len,
	    GLOBAL int32_t *out, uint32_t item, uint32_t items)
{
	uint32_t first, i, lost = 0;

	NO_UNROLL
	for (first = item; first < len; first += WINDOWS_LOADS * items) {
		windows_run r[WINDOWS_LOADS];

		/* Without these tests of k, which windows_load and windows_put
		 * repeat, the kernel takes 58 registers instead of 40. */
		UNROLL
		for (i = 0; i < WINDOWS_LOADS; i++) {
			const uint32_t k = first + i * items;

			r[i].page = -1;
			r[i].col = r[i].at = 0;
			if (k < len)
				r[i] = windows_load(g, start, len, k, 0);
		}
		UNROLL
		for (i = 0; i < WINDOWS_LOADS; i++) {
			const uint32_t k = first + i * items;

			if (k < len)
				lost += windows_put(g, len, k, 1, &r[i], out);
		}
	}
	return lost;
}

/* Shared memory. */
typedef struct windows_shared {
	decode_cut cut;
	uint64_t sums[G_SCAN_SUBGROUPS]; /* of the scans */
	/* By turn of a token: it is empty; pages that its rows lack. The next
	 * turn's are set to zero while nobody reads or sets them. */
	uint32_t empty[3], lost[3];
} windows_shared;

typedef struct windows_job {
	windows_args a;
	LOCAL windows_shared *shared;
} windows_job;

/* How the parts of a decode share the tokens behind the first whole_tokens ones,
 * for layers of ratio 4 or 128. A barrier at the begin. */
FN void
windows_cut(const PRIVATE windows_job *job, uint32_t ratio)
{
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &job->a.s;
	LOCAL windows_shared *shared = job->shared;
	const uint32_t items = SPMLA_ITEMS_step_prologue_windows;
	const uint32_t four = ratio == SPMLA_COMPRESS_OVERLAP;

	BARRIER(); /* the cut before is done */
	decode_cut_ends(job->a.context_lens + s->whole_tokens, s->window,
			four ? s->topk : s->c128a_width, ratio,
			s->tokens - s->whole_tokens, s->parts, items,
			&shared->cut, shared->sums);
	windows_parts(&job->a, ratio, items, &shared->cut);
}

/* One item's part of token t: the slots of its compressed keys. Sets
 * shared->empty[turn]; returns how many pages are missing. */
FN uint32_t
windows_keys(const PRIVATE windows_job *job, uint32_t t, uint32_t row,
	     uint32_t context, uint32_t turn)
{
	const PRIVATE windows_args *a = &job->a;
	const spmla_g_divisor linear = {0, 0, 0};
	const uint32_t pos = (uint32_t)a->positions[t];
	const uint32_t four = pos / SPMLA_COMPRESS_OVERLAP;
	const uint32_t most = pos / SPMLA_COMPRESS_MOST;
	const int32_t logits = a->compressed_lens[t];
	const windows_group c4a = WINDOWS_GROUP(a, c4a, row, 0, linear);
	const windows_group c128a = WINDOWS_GROUP(a, c128a, row, 0, linear);
	const windows_group index = WINDOWS_GROUP(a, index, row, 0, linear);
	windows_run r[3];
	uint32_t lost = 0;
	int64_t slot[3] = {-1, -1, -1};

	r[0] = windows_load(&c4a, four, 1, 0, 0);
	r[1] = windows_load(&index, four, 1, 0, 0);
	r[2] = windows_load(&c128a, most, 1, 0, 0);
	if (context > 0) {
		slot[0] = windows_key(&c4a, SPMLA_COMPRESS_OVERLAP, pos, &r[0],
				      &lost);
		if (a->s.has_index)
			slot[1] = windows_key(&index, SPMLA_COMPRESS_OVERLAP,
					      pos, &r[1], &lost);
		slot[2] = windows_key(&c128a, SPMLA_COMPRESS_MOST, pos, &r[2],
				      &lost);
	}
	/* The last: its logits had no room. */
	job->shared->empty[turn] =
		context == 0 || lost > 0 ||
		(context >= SPMLA_COMPRESS_OVERLAP && logits == 0);
	job->shared->lost[turn == 2 ? 0 : turn + 1] = 0;
	a->c4a_slots[t] = slot[0];
	if (a->s.has_index)
		a->index_slots[t] = slot[1];
	a->c128a_slots[t] = slot[2];
	return lost;
}

/* Token t: its rows of indices and its compressed keys. Each subgroup has one
 * of these tasks, so that none waits for two. A barrier inside. */
FN void
windows_token(const PRIVATE windows_job *job, uint32_t t, uint32_t turn)
{
	const PRIVATE windows_args *a = &job->a;
	const spmla_g_divisor linear = {0, 0, 0};
	const uint32_t item = g_item();
	const uint32_t is_last = item == SPMLA_ITEMS_step_prologue_windows - 1;
	const uint32_t row = (uint32_t)a->token_row[t];
	const uint32_t context = (uint32_t)a->context_lens[t];
	uint32_t lost = 0;

	if (item < WINDOWS_NEAR) {
		const windows_group swa =
			WINDOWS_GROUP(a, swa, row, 0, a->s.swa_ring);
		const uint32_t len =
			context < a->s.window ? context : a->s.window;

		lost = windows_row(&swa, context - len, len,
				   a->swa_indices + (uint64_t)t * a->s.window,
				   item, WINDOWS_NEAR);
	} else if (item < WINDOWS_NEAR + WINDOWS_FAR) {
		const windows_group c128a =
			WINDOWS_GROUP(a, c128a, row, 0, linear);

		lost = windows_row(&c128a, 0, context / SPMLA_COMPRESS_MOST,
				   a->s.c128a_listed
					   ? a->c128a_indices +
						     (uint64_t)t *
							     a->s.c128a_width
					   : 0, /* the layers list them */
				   item - WINDOWS_NEAR, WINDOWS_FAR);
	} else if (is_last) {
		lost = windows_keys(job, t, row, context, turn);
	}
	if (lost && !is_last)
		job->shared->lost[turn] = 1;
	BARRIER();
	if (is_last)
		windows_lens(a, t, context,
			     job->shared->empty[turn] ||
				     job->shared->lost[turn]);
	/* Nobody needs the rows of an empty token. */
	if (job->shared->empty[turn] && !is_last)
		lost = 0;
	if (lost) {
		const g_reporter to =
			g_reporter_of(a->fault_state, a->fault_status);

		NO_UNROLL
		for (; lost; lost--)
			g_report(&to, row, G_FAULT_PAGE);
	}
}

SPMLA_KERNEL_BLOCKS(step_prologue_windows, 2)
void
spmla_k_step_prologue_windows(SPMLA_KERNEL_ARGS(step_prologue_windows))
{
	LOCAL_ARRAY(windows_shared, shared, 1);
	const windows_job job = {{SPMLA_KERNEL_VALUES(step_prologue_windows)},
				 shared};
	uint32_t t, turn = 0;

	if (g_item() == 0)
		shared->lost[0] = 0;
	BARRIER();
	for (t = g_block(); t < s.blocks;
	     t += g_blocks(), turn = turn == 2 ? 0 : turn + 1)
		if (t < s.tokens)
			windows_token(&job, t, turn);
		else
			windows_cut(&job, t == s.tokens ? SPMLA_COMPRESS_OVERLAP
							: SPMLA_COMPRESS_MOST);
}

#endif
#endif
