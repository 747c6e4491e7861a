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
	windows_args a;
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

/* Both lists of a slot's token, by `items` threads, of which the caller is
 * number `item`. All loads of a turn are on their way together. */
FN void
lists_lists(const PRIVATE lists_job *job, uint32_t slot, uint32_t item,
	    uint32_t items)
{
	const PRIVATE windows_args *a = &job->a;
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &a->s;
	const spmla_g_divisor linear = {0, 0, 0};
	const uint32_t t = job->first + slot * job->step;
	const uint32_t row = job->tokens[2 * slot];
	const uint32_t end = job->tokens[2 * slot + 1];
	const uint32_t start = end > s->window ? end - s->window : 0;
	const uint32_t near = end - start, far = end / SPMLA_COMPRESS_MOST;
	const uint32_t run = s->c128a_page.by % 2 == 0 ? 2 : 1;
	windows_group swa = WINDOWS_GROUP(a, swa, row, 1, s->swa_ring);
	windows_group c128a = WINDOWS_GROUP(a, c128a, row, 1, linear);
	GLOBAL int32_t *const window =
		job->is_real ? a->swa_indices + (uint64_t)t * s->window : 0;
	GLOBAL int32_t *const list =
		job->is_real && s->c128a_listed /* else the layers list them */
			? a->c128a_indices + (uint64_t)t * s->c128a_width
			: 0;
	uint32_t n = item, k = run * (items - 1 - item), lost = 0, i;
	windows_run own = {0, 0, -1};

	if (end)
		own = windows_load(&swa, end - 1, 1, 0, 1);
	NO_UNROLL
	while (n < near || k < far) {
		windows_run near_run[LISTS_NEAR], far_run[LISTS_FAR];

		UNROLL
		for (i = 0; i < LISTS_NEAR; i++)
			near_run[i] = windows_load(&swa, start, near,
						   n + i * items, 1);
		UNROLL
		for (i = 0; i < LISTS_FAR; i++)
			far_run[i] = windows_load(&c128a, 0, far,
						  k + i * run * items, 1);
		if (!job->is_real)
			return;
		if (own.col >= swa.written ||
		    (uint32_t)own.page >= job->context_pages)
			return; /* the token has no context */
		UNROLL
		for (i = 0; i < LISTS_NEAR; i++)
			lost += windows_put(&swa, near, n + i * items, 1,
					    &near_run[i], window);
		UNROLL
		for (i = 0; i < LISTS_FAR; i++)
			lost += windows_put(&c128a, far, k + i * run * items,
					    run, &far_run[i], list);
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
	const PRIVATE windows_args *a = &job->a;
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &a->s;
	const spmla_g_divisor linear = {0, 0, 0};
	const uint32_t t = job->first + slot * job->step;
	const uint32_t row = job->tokens[2 * slot];
	const uint32_t end = job->tokens[2 * slot + 1];
	const uint32_t pos = end ? end - 1 : 0;
	const windows_group swa = WINDOWS_GROUP(a, swa, row, 1, s->swa_ring);
	const windows_group c4a = WINDOWS_GROUP(a, c4a, row, 1, linear);
	const windows_group c128a = WINDOWS_GROUP(a, c128a, row, 1, linear);
	const windows_group index = WINDOWS_GROUP(a, index, row, 1, linear);
	windows_run r[4];
	uint32_t lost = 0, is;
	int64_t slots[3] = {-1, -1, -1};

	r[0] = windows_load(&c4a, pos / SPMLA_COMPRESS_OVERLAP, 1, 0, 1);
	r[1] = windows_load(&index, pos / SPMLA_COMPRESS_OVERLAP, 1, 0, 1);
	r[2] = windows_load(&c128a, pos / SPMLA_COMPRESS_MOST, 1, 0, 1);
	r[3] = windows_load(&swa, pos, 1, 0, 1);
	is = end > 0 && r[3].col < swa.written &&
	     (uint32_t)r[3].page < job->context_pages;
	if (is) {
		slots[0] = windows_key(&c4a, SPMLA_COMPRESS_OVERLAP, pos, &r[0],
				       &lost);
		if (s->has_index)
			slots[1] = windows_key(&index, SPMLA_COMPRESS_OVERLAP,
					       pos, &r[1], &lost);
		slots[2] = windows_key(&c128a, SPMLA_COMPRESS_MOST, pos, &r[2],
				       &lost);
	}
	if (!job->is_real)
		return;
	job->shared->contexts[slot] = is ? end : 0;
	job->shared->keys[slot] = lost;
	a->c4a_slots[t] = slots[0];
	if (s->has_index)
		a->index_slots[t] = slots[1];
	a->c128a_slots[t] = slots[2];
}

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
	uint32_t lost = job->shared->keys[slot], none;

	/* The last: its logits had no room. */
	none = context == 0 || lost > 0 ||
	       (job->over && context >= SPMLA_COMPRESS_OVERLAP &&
		job->a.compressed_lens[t] == 0);
	/* Nobody needs the lists of an empty token. */
	lost += none ? 0 : lists;
	none = none || lost;
	windows_lens(&job->a, t, context, none);
	NO_UNROLL
	for (; lost; lost--)
		g_report(&job->to, job->tokens[2 * slot], G_FAULT_PAGE);
}

/* How the parts of a decode share the tokens behind the first whole_tokens ones,
 * for layers of ratio 4 or 128. It counts keys by context alone, never too few;
 * `contexts` has a pair for each token, which begins with it. */
FN void
lists_cut(const PRIVATE lists_job *job, uint32_t ratio,
	  LOCAL const uint32_t *contexts)
{
	const PRIVATE windows_args *a = &job->a;
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &a->s;
	LOCAL lists_shared *shared = job->shared;
	const uint32_t four = ratio == SPMLA_COMPRESS_OVERLAP;
	const uint32_t tokens = s->tokens - s->whole_tokens;
	uint32_t done = 0, first;

	for (first = 0; first < tokens; first += job->items) {
		const uint32_t t = first + g_item();

		done = decode_cut_line(
			t < tokens ? contexts[2 * (s->whole_tokens + t)] : 0,
			s->window, four ? s->topk : s->c128a_width, ratio, t,
			done, tokens, s->parts, job->items, &shared->cut,
			shared->sums);
	}
	windows_parts(a, ratio, job->items, &shared->cut);
}

#endif
#endif
