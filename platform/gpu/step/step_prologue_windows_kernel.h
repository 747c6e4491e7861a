/* SPDX-License-Identifier: Apache-2.0
 *
 * The second launch of V4's prologue, unless step_prologue_cluster makes it in
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
	S(uint32_t, blocks)
SPMLA_KERNEL_SCALARS(step_prologue_windows)

enum {
	WINDOWS_CUTS = 2,  /* blocks behind the tokens' */
	WINDOWS_NEAR = 64, /* items for the window, */
	WINDOWS_FAR = 128, /* and for the keys of C128A */
	WINDOWS_LOADS = 4  /* of either row, by an item at a time */
};

#ifdef SPMLA_GPU_KERNELS

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

/* The table's page of an entry, which may be none, and its column. The load
 * does not wait for `written`. */
FN int32_t
windows_load(const PRIVATE windows_group *g, uint32_t entry,
	     PRIVATE uint32_t *col)
{
	*col = g_divide(entry, g->page);
	if (g->ring.by)
		*col = g_modulo(*col, g->ring);
	return *col < g->columns ? g->pages[*col] : -1;
}

/* The slot of an entry whose page and column windows_load gave; -1: it has
 * none. */
FN int64_t
windows_slot(const PRIVATE windows_group *g, uint32_t entry, int32_t page,
	     uint32_t col)
{
	if (col >= g->written || (uint32_t)page >= g->pool_pages)
		return -1;
	return (int64_t)page * g->page.by + g_modulo(entry, g->page);
}

/* Writes the slot of entry k, or -1, into a row that begins with entry `start`;
 * out NULL: nothing. Returns 1 for a missing page, at its first entry in the
 * row. */
FN uint32_t
windows_put(const PRIVATE windows_group *g, uint32_t start, uint32_t k,
	    int32_t page, uint32_t col, GLOBAL int32_t *out)
{
	const int64_t slot = windows_slot(g, start + k, page, col);

	if (out)
		out[k] = (int32_t)slot;
	return slot < 0 && (k == 0 || g_modulo(start + k, g->page) == 0);
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
		int32_t page[WINDOWS_LOADS];
		uint32_t col[WINDOWS_LOADS];

		UNROLL
		for (i = 0; i < WINDOWS_LOADS; i++) {
			const uint32_t k = first + i * items;

			page[i] = -1;
			col[i] = 0;
			if (k < len)
				page[i] = windows_load(g, start + k, &col[i]);
		}
		UNROLL
		for (i = 0; i < WINDOWS_LOADS; i++) {
			const uint32_t k = first + i * items;

			if (k < len)
				lost += windows_put(g, start, k, page[i],
						    col[i], out);
		}
	}
	return lost;
}

/* The slot of the key of `ratio` that ends with position pos; -1 if none does.
 * *lost counts its page if it is missing. If no key ends, *lost counts an
 * unwritten column up to the last key's. */
FN int64_t
windows_key(const PRIVATE windows_group *g, uint32_t ratio, uint32_t pos,
	    int32_t page, uint32_t col, PRIVATE uint32_t *lost)
{
	int64_t slot = -1;

	if ((pos + 1) % ratio == 0) {
		slot = windows_slot(g, pos / ratio, page, col);
		*lost += slot < 0;
	} else if (pos >= ratio) {
		col = g_divide(pos / ratio - 1, g->page);
		*lost += col >= g->written;
	}
	return slot;
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
	SPMLA_KERNEL_FIELDS(step_prologue_windows)
	LOCAL windows_shared *shared;
} windows_job;

/* How the parts of a decode share the tokens, for layers of ratio 4 or 128. A
 * barrier at the begin. */
FN void
windows_cut(const PRIVATE windows_job *job, uint32_t ratio)
{
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &job->s;
	LOCAL windows_shared *shared = job->shared;
	const uint32_t items = SPMLA_ITEMS_step_prologue_windows;
	const uint32_t four = ratio == SPMLA_COMPRESS_OVERLAP;

	BARRIER(); /* the cut before is done */
	decode_cut_ends(job->context_lens, s->window,
			four ? s->topk : s->c128a_width, ratio, s->tokens,
			s->parts, items, &shared->cut, shared->sums);
	BARRIER();
	decode_cut_block(s->tokens, s->parts,
			 four ? job->c4a_metadata : job->c128a_metadata,
			 four ? job->c4a_splits : job->c128a_splits, items,
			 &shared->cut);
}

/* The group's table at the token's row. */
#define GROUP(group, ring)                                                   \
	windows_group_of(job->group##_table,                                 \
			 job->s.group##_has_cols                             \
				 ? job->group##_cols[row]                    \
				 : (int32_t)job->s.group##_columns,          \
			 row, job->s.group##_columns, job->s.group##_stride, \
			 job->s.group##_pool_pages, job->s.group##_page, ring)

/* One item's part of token t: the slots of its compressed keys. Sets
 * shared->empty[turn]; returns how many pages are missing. */
FN uint32_t
windows_keys(const PRIVATE windows_job *job, uint32_t t, uint32_t row,
	     uint32_t context, uint32_t turn)
{
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &job->s;
	const spmla_g_divisor linear = {0, 0, 0};
	const uint32_t pos = (uint32_t)job->positions[t];
	const uint32_t four = pos / SPMLA_COMPRESS_OVERLAP;
	const uint32_t most = pos / SPMLA_COMPRESS_MOST;
	const int32_t logits = job->compressed_lens[t];
	const windows_group c4a = GROUP(c4a, linear);
	const windows_group c128a = GROUP(c128a, linear);
	const windows_group index = GROUP(index, linear);
	uint32_t col[3], lost = 0;
	int32_t page[3];
	int64_t slot[3] = {-1, -1, -1};

	page[0] = windows_load(&c4a, four, &col[0]);
	page[1] = windows_load(&index, four, &col[1]);
	page[2] = windows_load(&c128a, most, &col[2]);
	if (context > 0) {
		slot[0] = windows_key(&c4a, SPMLA_COMPRESS_OVERLAP, pos,
				      page[0], col[0], &lost);
		if (s->has_index)
			slot[1] = windows_key(&index, SPMLA_COMPRESS_OVERLAP,
					      pos, page[1], col[1], &lost);
		slot[2] = windows_key(&c128a, SPMLA_COMPRESS_MOST, pos, page[2],
				      col[2], &lost);
	}
	/* The last: its logits had no room. */
	job->shared->empty[turn] =
		context == 0 || lost > 0 ||
		(context >= SPMLA_COMPRESS_OVERLAP && logits == 0);
	job->shared->lost[turn == 2 ? 0 : turn + 1] = 0;
	job->c4a_slots[t] = slot[0];
	if (s->has_index)
		job->index_slots[t] = slot[1];
	job->c128a_slots[t] = slot[2];
	return lost;
}

/* The lengths of a token's lists. */
FN void
windows_lens(const PRIVATE windows_job *job, uint32_t t, uint32_t context,
	     uint32_t start, uint32_t none)
{
	job->compressed_lens[t] =
		(int32_t)(none ? 0 : context / SPMLA_COMPRESS_OVERLAP);
	job->swa_lens[t] = (int32_t)(none ? 0 : context - start);
	job->c128a_lens[t] =
		(int32_t)(none ? 0 : context / SPMLA_COMPRESS_MOST);
}

/* Token t: its rows of indices and its compressed keys. Each subgroup has one
 * of these tasks, so that none waits for two. A barrier inside. */
FN void
windows_token(const PRIVATE windows_job *job, uint32_t t, uint32_t turn)
{
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &job->s;
	const spmla_g_divisor linear = {0, 0, 0};
	const uint32_t item = g_item();
	const uint32_t is_last = item == SPMLA_ITEMS_step_prologue_windows - 1;
	const uint32_t row = (uint32_t)job->token_row[t];
	const uint32_t context = (uint32_t)job->context_lens[t];
	const uint32_t start = context > s->window ? context - s->window : 0;
	uint32_t lost = 0;

	if (item < WINDOWS_NEAR) {
		const windows_group swa = GROUP(swa, s->swa_ring);

		lost = windows_row(&swa, start, context - start,
				   job->swa_indices + (uint64_t)t * s->window,
				   item, WINDOWS_NEAR);
	} else if (item < WINDOWS_NEAR + WINDOWS_FAR) {
		const windows_group c128a = GROUP(c128a, linear);

		lost = windows_row(
			&c128a, 0, context / SPMLA_COMPRESS_MOST,
			s->c128a_listed ? job->c128a_indices +
						  (uint64_t)t * s->c128a_width
					: 0, /* the layers list them */
			item - WINDOWS_NEAR, WINDOWS_FAR);
	} else if (is_last) {
		lost = windows_keys(job, t, row, context, turn);
	}
	if (lost && !is_last)
		job->shared->lost[turn] = 1;
	BARRIER();
	if (is_last)
		windows_lens(job, t, context, start,
			     job->shared->empty[turn] ||
				     job->shared->lost[turn]);
	/* Nobody needs the rows of an empty token. */
	if (job->shared->empty[turn] && !is_last)
		lost = 0;
	if (lost) {
		const g_reporter to =
			g_reporter_of(job->fault_state, job->fault_status);

		NO_UNROLL
		for (; lost; lost--)
			g_report(&to, row, G_FAULT_PAGE);
	}
}

#undef GROUP

SPMLA_KERNEL_BLOCKS(step_prologue_windows, 2)
void
spmla_k_step_prologue_windows(SPMLA_KERNEL_ARGS(step_prologue_windows))
{
	LOCAL_ARRAY(windows_shared, shared, 1);
	const windows_job job = {SPMLA_KERNEL_VALUES(step_prologue_windows),
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
