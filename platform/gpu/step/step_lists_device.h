/* SPDX-License-Identifier: Apache-2.0
 *
 * What step_prologue_windows makes of a token, for a block that knows it by row
 * and position: the block's last subgroup makes its compressed keys, and the
 * other threads its lists. All loads of a thread are on their way together.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_STEP_LISTS_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_STEP_LISTS_DEVICE_H

#include "spmla/platform/gpu/step/step_prologue_windows_kernel.h"

enum {
	/* Runs of either list that a thread loads at a time. */
	LISTS_NEAR = 1,
	LISTS_FAR = 3
};

#ifdef SPMLA_GPU_KERNELS

/* Shared memory. */
typedef struct lists_shared {
	uint32_t context; /* end of the token's; 0 if it has none, or no page */
	uint32_t keys;    /* pages that its keys lack, */
	uint32_t lists;   /* and its lists; 0 at the begin */
	uint64_t sums[G_SCAN_SUBGROUPS]; /* of the scans */
	decode_cut cut;
} lists_shared;

typedef struct lists_job {
	windows_args a;
	LOCAL lists_shared *shared;
	uint32_t items;         /* of the block */
	uint32_t context_pages; /* of the pool, for the token's own page */
	uint32_t t;             /* the token */
	uint32_t row;
	uint32_t end;     /* of its context; 0 if it has none */
	uint32_t is_real; /* 0: nothing is written */
	g_reporter to;
} lists_job;

/* Both lists, by `items` threads. All loads of a turn are on their way
 * together. */
FN void
lists_lists(const PRIVATE lists_job *job, uint32_t items)
{
	const PRIVATE windows_args *a = &job->a;
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &a->s;
	const spmla_g_divisor linear = {0, 0, 0};
	const uint32_t item = g_item(), row = job->row, end = job->end;
	const uint32_t start = end > s->window ? end - s->window : 0;
	const uint32_t near = end - start, far = end / SPMLA_COMPRESS_MOST;
	const uint32_t run = s->c128a_page.by % 2 == 0 ? 2 : 1;
	windows_group swa = WINDOWS_GROUP(a, swa, row, 1, s->swa_ring);
	windows_group c128a = WINDOWS_GROUP(a, c128a, row, 1, linear);
	GLOBAL int32_t *const window =
		job->is_real ? a->swa_indices + (uint64_t)job->t * s->window
			     : 0;
	GLOBAL int32_t *const list =
		job->is_real && s->c128a_listed /* else the layers list them */
			? a->c128a_indices + (uint64_t)job->t * s->c128a_width
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
		if (!job->is_real)
			return; /* one turn has all of the code */
		n += LISTS_NEAR * items;
		k += LISTS_FAR * run * items;
	}
	if (lost)
		(void)g_local_add(&job->shared->lists, lost);
}

/* The slots of the compressed keys that end with the token; by one thread. */
FN void
lists_keys(const PRIVATE lists_job *job)
{
	const PRIVATE windows_args *a = &job->a;
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &a->s;
	const spmla_g_divisor linear = {0, 0, 0};
	const uint32_t row = job->row, end = job->end;
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
	job->shared->context = is ? end : 0;
	job->shared->keys = lost;
	a->c4a_slots[job->t] = slots[0];
	if (s->has_index)
		a->index_slots[job->t] = slots[1];
	a->c128a_slots[job->t] = slots[2];
}

/* All but the lengths. */
FN void
lists_make(const PRIVATE lists_job *job)
{
	const uint32_t width = g_width(), groups = job->items / width;
	const uint32_t makers = (groups > 1 ? groups - 1 : 1) * width;

	if (g_item() < makers)
		lists_lists(job, makers);
	if (g_item() / width + 1 == groups && g_lane() == 0)
		lists_keys(job);
}

/* The lengths, once the block has made all the rest; reports what is missing. By
 * one thread. `no_room`: there was none for the token's index logits. */
FN void
lists_end(const PRIVATE lists_job *job, uint32_t no_room)
{
	const uint32_t context = job->shared->context;
	const uint32_t lists = job->shared->lists;
	uint32_t lost = job->shared->keys, none;

	none = context == 0 || lost > 0 || no_room;
	/* Nobody needs the lists of an empty token. */
	lost += none ? 0 : lists;
	none = none || lost;
	if (!job->is_real)
		return;
	windows_lens(&job->a, job->t, context, none);
	NO_UNROLL
	for (; lost; lost--)
		g_report(&job->to, job->row, G_FAULT_PAGE);
}

#endif
#endif
