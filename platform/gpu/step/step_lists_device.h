/* SPDX-License-Identifier: Apache-2.0
 *
 * What step_prologue_windows makes, for a block with several tokens that it
 * knows by row and position: the block's last subgroup makes their compressed
 * keys, a thread each, and the other threads share out their lists. A step has
 * few tokens then, and every block has little to do, so all loads of a thread
 * are on their way together.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_STEP_LISTS_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_STEP_LISTS_DEVICE_H

#include "spmla/platform/gpu/step/step_prologue_windows_kernel.h"

enum {
	LISTS_SLOTS = 10, /* tokens of a block */
	/* Runs of either list that a thread loads at a time. */
	LISTS_NEAR = 8,
	LISTS_FAR = 4
};

#ifdef SPMLA_GPU_KERNELS

/* Shared memory. */
typedef struct lists_shared {
	/* By slot, which has a token. Pairs: its row, and the end of its
	 * context, or 0 if it has none. */
	uint32_t tokens[2 * LISTS_SLOTS];
	uint32_t contexts[LISTS_SLOTS];  /* the same, 0 also without a page */
	uint32_t keys[LISTS_SLOTS];      /* pages that its keys lack, */
	uint32_t lists[LISTS_SLOTS];     /* and its lists */
	uint64_t sums[G_SCAN_SUBGROUPS]; /* of the scans */
	decode_cut cut;
} lists_shared;

typedef struct lists_job {
	SPMLA_KERNEL_FIELDS(step_prologue_windows)
	LOCAL lists_shared *shared;
	LOCAL const uint32_t *tokens; /* as shared->tokens */
	uint32_t items;               /* of the block */
	uint32_t context_pages;       /* of the pool, for a token's own page */
	/* Slot i has token first + i * step. */
	uint32_t first;
	uint32_t step;
	uint32_t is_real; /* 0: nothing is written */
	uint32_t over;    /* the logits of some tokens may not have fit */
	g_reporter to;
} lists_job;

/* The group's table at the token's row. */
#define GROUP(group, ring)                                                   \
	windows_group_of(job->group##_table,                                 \
			 job->s.group##_has_cols                             \
				 ? g_load_fresh(job->group##_cols + row)     \
				 : (int32_t)job->s.group##_columns,          \
			 row, job->s.group##_columns, job->s.group##_stride, \
			 job->s.group##_pool_pages, job->s.group##_page, ring)

/* A run of entries of a list that lie in one page. */
typedef struct lists_run {
	uint32_t col;
	uint32_t at; /* in the page */
	int32_t page;
} lists_run;

/* The run at entry k of the `len` from `start` on. */
FN lists_run
lists_load_run(const PRIVATE windows_group *g, uint32_t start, uint32_t len,
	       uint32_t k)
{
	lists_run r;

	r.page = -1;
	r.col = g_divide(start + k, g->page);
	r.at = start + k - r.col * g->page.by;
	if (g->ring.by)
		r.col = g_modulo(r.col, g->ring);
	if (k < len && r.col < g->columns)
		r.page = g_load_fresh(g->pages + r.col);
	return r;
}

/* The slot of a run's first entry; -1: it has no page. */
FN int64_t
lists_slot(const PRIVATE windows_group *g, const PRIVATE lists_run *r)
{
	if (r->col >= g->written || (uint32_t)r->page >= g->pool_pages)
		return -1;
	return (int64_t)r->page * g->page.by + r->at;
}

/* The slot of the key of `ratio` that ends with position pos; -1 if none does.
 * *lost counts its page if it is missing. If no key ends, *lost counts an
 * unwritten column up to the last key's. */
FN int64_t
lists_key(const PRIVATE windows_group *g, uint32_t ratio, uint32_t pos,
	  const PRIVATE lists_run *r, PRIVATE uint32_t *lost)
{
	int64_t slot = -1;

	if ((pos + 1) % ratio == 0) {
		slot = lists_slot(g, r);
		*lost += slot < 0;
	} else if (pos >= ratio) {
		*lost += g_divide(pos / ratio - 1, g->page) >= g->written;
	}
	return slot;
}

/* Writes the slots of its `n` entries, or -1; out NULL: nothing. Slots of a list
 * have 32 bits. Returns 1 for a missing page, at its first entry in the list. */
FN uint32_t
lists_put_run(const PRIVATE windows_group *g, uint32_t len, uint32_t k,
	      uint32_t n, const PRIVATE lists_run *r, GLOBAL int32_t *out)
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

/* Both lists of a slot's token, by `items` threads, of which the caller is
 * number `item`. All loads of a turn are on their way together. */
FN void
lists_lists(const PRIVATE lists_job *job, uint32_t slot, uint32_t item,
	    uint32_t items)
{
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &job->s;
	const spmla_g_divisor linear = {0, 0, 0};
	const uint32_t t = job->first + slot * job->step;
	const uint32_t row = job->tokens[2 * slot];
	const uint32_t end = job->tokens[2 * slot + 1];
	const uint32_t start = end > s->window ? end - s->window : 0;
	const uint32_t near = end - start, far = end / SPMLA_COMPRESS_MOST;
	const uint32_t run = s->c128a_page.by % 2 == 0 ? 2 : 1;
	windows_group swa = GROUP(swa, s->swa_ring);
	windows_group c128a = GROUP(c128a, linear);
	GLOBAL int32_t *const window =
		job->is_real ? job->swa_indices + (uint64_t)t * s->window : 0;
	GLOBAL int32_t *const list =
		job->is_real && s->c128a_listed /* else the layers list them */
			? job->c128a_indices + (uint64_t)t * s->c128a_width
			: 0;
	uint32_t n = item, k = run * (items - 1 - item), lost = 0, i;
	lists_run own = {0, 0, -1};

	if (end)
		own = lists_load_run(&swa, end - 1, 1, 0);
	NO_UNROLL
	while (n < near || k < far) {
		lists_run a[LISTS_NEAR], b[LISTS_FAR];

		UNROLL
		for (i = 0; i < LISTS_NEAR; i++)
			a[i] = lists_load_run(&swa, start, near, n + i * items);
		UNROLL
		for (i = 0; i < LISTS_FAR; i++)
			b[i] = lists_load_run(&c128a, 0, far,
					      k + i * run * items);
		if (!job->is_real)
			return;
		if (own.col >= swa.written ||
		    (uint32_t)own.page >= job->context_pages)
			return; /* the token has no context */
		UNROLL
		for (i = 0; i < LISTS_NEAR; i++)
			lost += lists_put_run(&swa, near, n + i * items, 1,
					      &a[i], window);
		UNROLL
		for (i = 0; i < LISTS_FAR; i++)
			lost += lists_put_run(&c128a, far, k + i * run * items,
					      run, &b[i], list);
		n += LISTS_NEAR * items;
		k += LISTS_FAR * run * items;
	}
	if (lost)
		(void)g_local_add(&job->shared->lists[slot], lost);
}

/* The slots of the compressed keys that end with a slot's token. */
FN void
lists_keys(const PRIVATE lists_job *job, uint32_t slot)
{
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &job->s;
	const spmla_g_divisor linear = {0, 0, 0};
	const uint32_t t = job->first + slot * job->step;
	const uint32_t row = job->tokens[2 * slot];
	const uint32_t end = job->tokens[2 * slot + 1];
	const uint32_t pos = end ? end - 1 : 0;
	const windows_group swa = GROUP(swa, s->swa_ring);
	const windows_group c4a = GROUP(c4a, linear);
	const windows_group c128a = GROUP(c128a, linear);
	const windows_group index = GROUP(index, linear);
	lists_run r[4];
	uint32_t lost = 0, is;
	int64_t slots[3] = {-1, -1, -1};

	r[0] = lists_load_run(&c4a, pos / SPMLA_COMPRESS_OVERLAP, 1, 0);
	r[1] = lists_load_run(&index, pos / SPMLA_COMPRESS_OVERLAP, 1, 0);
	r[2] = lists_load_run(&c128a, pos / SPMLA_COMPRESS_MOST, 1, 0);
	r[3] = lists_load_run(&swa, pos, 1, 0);
	is = end > 0 && r[3].col < swa.written &&
	     (uint32_t)r[3].page < job->context_pages;
	if (is) {
		slots[0] = lists_key(&c4a, SPMLA_COMPRESS_OVERLAP, pos, &r[0],
				     &lost);
		if (s->has_index)
			slots[1] = lists_key(&index, SPMLA_COMPRESS_OVERLAP,
					     pos, &r[1], &lost);
		slots[2] = lists_key(&c128a, SPMLA_COMPRESS_MOST, pos, &r[2],
				     &lost);
	}
	if (!job->is_real)
		return;
	job->shared->contexts[slot] = is ? end : 0;
	job->shared->keys[slot] = lost;
	job->c4a_slots[t] = slots[0];
	if (s->has_index)
		job->index_slots[t] = slots[1];
	job->c128a_slots[t] = slots[2];
}

#undef GROUP

/* All of `n` slots but the lengths. */
FN void
lists_make(const PRIVATE lists_job *job, uint32_t n)
{
	const uint32_t width = g_width(), own = g_item() / width;
	const uint32_t groups = job->items / width;
	const uint32_t makers = (groups > 1 ? groups - 1 : 1) * width;
	/* Threads of a token. */
	const uint32_t team = n < makers ? makers / (n ? n : 1) : 1;
	const uint32_t first = g_item() / team;
	uint32_t i;

	if (g_item() < makers) {
		NO_UNROLL
		for (i = first; i < n; i += makers / team)
			lists_lists(job, i, g_item() - first * team, team);
	}
	if (own + 1 == groups) {
		NO_UNROLL
		for (i = g_lane(); i < n; i += width)
			lists_keys(job, i);
	}
}

/* The lengths of a slot's token, once the block has made all the rest; reports
 * what it lacks. */
FN void
lists_end(const PRIVATE lists_job *job, uint32_t slot)
{
	const uint32_t t = job->first + slot * job->step;
	const uint32_t context = job->shared->contexts[slot];
	const uint32_t lists = job->shared->lists[slot];
	uint32_t lost = job->shared->keys[slot], none, window;

	/* The last: its logits had no room. */
	none = context == 0 || lost > 0 ||
	       (job->over && context >= SPMLA_COMPRESS_OVERLAP &&
		job->compressed_lens[t] == 0);
	/* Nobody needs the lists of an empty token. */
	lost += none ? 0 : lists;
	none = none || lost;
	window = context < job->s.window ? context : job->s.window;
	job->compressed_lens[t] =
		(int32_t)(none ? 0 : context / SPMLA_COMPRESS_OVERLAP);
	job->swa_lens[t] = (int32_t)(none ? 0 : window);
	job->c128a_lens[t] =
		(int32_t)(none ? 0 : context / SPMLA_COMPRESS_MOST);
	NO_UNROLL
	for (; lost; lost--)
		g_report(&job->to, job->tokens[2 * slot], G_FAULT_PAGE);
}

/* How the parts of a decode share the tokens, for layers of ratio 4 or 128. It
 * counts keys by context alone, never too few; `contexts` has a pair for each
 * token, which begins with it. */
FN void
lists_cut(const PRIVATE lists_job *job, uint32_t ratio,
	  LOCAL const uint32_t *contexts)
{
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &job->s;
	LOCAL lists_shared *shared = job->shared;
	const uint32_t four = ratio == SPMLA_COMPRESS_OVERLAP;
	uint32_t done = 0, first;

	for (first = 0; first < s->tokens; first += job->items) {
		const uint32_t t = first + g_item();

		done = decode_cut_line(t < s->tokens ? contexts[2 * t] : 0,
				       s->window,
				       four ? s->topk : s->c128a_width, ratio,
				       t, done, s->tokens, s->parts, job->items,
				       &shared->cut, shared->sums);
	}
	BARRIER();
	decode_cut_block(s->tokens, s->parts,
			 four ? job->c4a_metadata : job->c128a_metadata,
			 four ? job->c4a_splits : job->c128a_splits, job->items,
			 &shared->cut);
}

#endif
#endif
