/* SPDX-License-Identifier: Apache-2.0
 *
 * Adapters of the planners: FlashMLA's tile scheduler, and the schedule that
 * DeepGEMM's paged logits come with.
 */
#include "tests/golden/golden.h"

#include <string.h>

/* ---- tile_sched -------------------------------------------------------- */

/* A whole number of the params in [least, 2^31). */
static int
whole_param(golden_case *c, const char *name, double least, uint32_t *value)
{
	double x;

	if (!golden_need_param(c, name, &x) || x < least || x >= 0x1p31) {
		(void)golden_fail(c, "bad param %s", name);
		return 0;
	}
	*value = (uint32_t)x;
	return 1;
}

/* Lengths of [batch], or NULL where the case has none. */
static int
find_lens(golden_case *c, const char *name, int64_t batch, const int32_t **lens)
{
	const golden_tensor *t;

	*lens = NULL;
	if (!golden_find(c, name))
		return 1;
	t = golden_need(c, name, GOLDEN_I32, 1);
	if (!golden_has(c, t, (const int64_t[]){batch}))
		return 0;
	*lens = golden_first(t);
	return 1;
}

/* Where a part has no work the kernel's begin_block is whatever lay behind its
 * list of blocks, and the library's is 0. */
static void
forget_idle_blocks(golden_tensor *rows, uint32_t batch)
{
	int32_t *want = (int32_t *)(void *)rows->want + rows->offset;
	int64_t p;

	for (p = 0; p < rows->shape[0]; p++)
		if (want[p * SPMLA_TILE_ROW_ELEMS] == (int32_t)batch)
			want[p * SPMLA_TILE_ROW_ELEMS + 2] = 0;
}

golden_verdict
golden_run_tile_sched(golden_case *c)
{
	golden_tensor *rows =
		golden_need(c, "tile_scheduler_metadata", GOLDEN_I32, 2);
	const golden_tensor *splits =
		golden_need(c, "num_splits", GOLDEN_I32, 1);
	spmla_tile_sched_args a = {0};

	if (!whole_param(c, "b", 1, &a.batch) ||
	    !whole_param(c, "parts", 1, &a.parts) ||
	    !whole_param(c, "topk", 1, &a.topk) ||
	    !whole_param(c, "fixed_overhead_num_blocks", 0, &a.overhead_blocks))
		return GOLDEN_FAILED;
	if (golden_param(c, "extra_topk", &(double){0}) &&
	    !whole_param(c, "extra_topk", 0, &a.extra_topk))
		return GOLDEN_FAILED;
	if (!golden_has(c, rows,
			(const int64_t[]){a.parts, SPMLA_TILE_ROW_ELEMS}) ||
	    !golden_has(c, splits, (const int64_t[]){(int64_t)a.batch + 1}) ||
	    !find_lens(c, "topk_length", a.batch, &a.topk_lens) ||
	    !find_lens(c, "extra_topk_length", a.batch, &a.extra_topk_lens))
		return GOLDEN_FAILED;
	if (!golden_dense(rows))
		return golden_fail(c, "tile_scheduler_metadata has gaps");
	forget_idle_blocks(rows, a.batch);
	a.struct_bytes = (uint32_t)sizeof a;
	a.row_format = SPMLA_TILE_ROW_NEW;
	a.tile_scheduler_metadata = golden_first(rows);
	a.num_splits = golden_first(splits);
	return golden_called(c, spmla_tile_sched(c->ctx, &a, NULL));
}

/* ---- indexer_schedule -------------------------------------------------- */

golden_verdict
golden_run_indexer_schedule(golden_case *c)
{
	const golden_tensor *lens =
		golden_need(c, "context_lens", GOLDEN_I32, 2);
	const golden_tensor *schedule =
		golden_need(c, "schedule_metadata", GOLDEN_I32, 2);
	spmla_indexer_schedule_args a = {0};

	if (!golden_has(c, lens, (const int64_t[]){-1, -1}) ||
	    !golden_has(c, schedule, (const int64_t[]){-1, 2}))
		return GOLDEN_FAILED;
	if (schedule->shape[0] < 2 || !golden_dense(schedule))
		return golden_fail(c, "schedule_metadata has no row or gaps");
	a.struct_bytes = (uint32_t)sizeof a;
	a.rule = SPMLA_INDEXER_SCHEDULE_SM90;
	a.batch = (uint32_t)lens->shape[0];
	a.next_n = (uint32_t)lens->shape[1];
	a.num_sms = (uint32_t)schedule->shape[0] - 1;
	a.context_lens = golden_first(lens);
	a.context_lens_stride_elems =
		lens->shape[0] == 1 ? lens->shape[1] : lens->strides[0];
	a.schedule = golden_first(schedule);
	return golden_called(c, spmla_indexer_schedule(c->ctx, &a, NULL));
}
