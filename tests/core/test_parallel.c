/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop that the CPU's operations share: its workers and their scratch, its
 * items, what they report, and what a caller may leave out of it.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/internal/cpu_sizes.h"
#include "spmla/ops/topk.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"

enum { MAX_ITEMS = 1000, MAX_WORKERS = 8 };

static fixture f;
static lent loop;

static void
open_with(uint32_t workers, lent_way way)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = 3; /* odd sizes of scratch */
	config.index_heads = 5;
	loop = (lent){.way = way, .rng = 3};
	fixture_lend(workers, &loop);
	fixture_open(&f, &config, 0);
	fixture_lend(0, NULL);
}

/* ---- Workers and items -------------------------------------------------- */

/* `one` bytes for each worker, inside the buffer, none twice. */
static void
check_scratch(spmla_buf buf, uint64_t one,
	      void *(*of)(const spmla_ctx *, uint32_t))
{
	const uint32_t workers = f.plan.config.cpu_workers;
	uint64_t bytes, i;
	uint8_t *base = spmla_view(f.ctx, buf, &bytes);
	uint32_t k;

	for (k = 0; k < workers; k++) {
		const uint8_t *p = of(f.ctx, k);

		ck_assert_uint_eq((uintptr_t)p % 64, 0);
		ck_assert(p >= base && p + one <= base + bytes);
		memset(of(f.ctx, k), (int)k, one);
	}
	for (k = 0; k < workers; k++)
		for (i = 0; i < one; i++)
			ck_assert_uint_eq(((uint8_t *)of(f.ctx, k))[i], k);
	/* nothing is left over behind the last */
	ck_assert_ptr_eq((uint8_t *)of(f.ctx, workers - 1) + one, base + bytes);
}

START_TEST(each_worker_has_scratch_of_its_own)
{
	static const uint32_t counts[3] = {1, 2, 7};

	open_with(counts[_i], LENT_THREADS);
	check_scratch(SPMLA_BUF_INDEX_SCRATCH,
		      spmla_i_cpu_index_scratch_bytes(5),
		      spmla_i_cpu_index_scratch);
	check_scratch(SPMLA_BUF_ATTEND_SCRATCH,
		      spmla_i_cpu_attend_scratch_bytes(3),
		      spmla_i_cpu_attend_scratch);
	fixture_close(&f);
}
END_TEST

static spmla_parallel_body nested_body;
static void *nested_arg;
static uint32_t seen[MAX_WORKERS];

static void
nested_for(void *user, uint32_t count, spmla_parallel_body body, void *arg)
{
	(void)user;
	ck_assert_uint_eq(count, 7);
	nested_body = body;
	nested_arg = arg;
	body(arg, 0);
}

/* In the middle of an item, another body starts: as with threads, but always
 * in the same way. */
static void
nest(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	(void)ctx, (void)args, (void)item;
	ck_assert_uint_lt(worker, MAX_WORKERS);
	seen[worker]++;
	nested_body(nested_arg, 0);
}

START_TEST(bodies_at_a_time_are_different_workers_none_past_the_plan)
{
	spmla_i_cpu_state *state;
	uint32_t i;

	open_with(7, LENT_THREADS);
	state = spmla_view(f.ctx, SPMLA_BUF_BACKEND_STATE, NULL);
	state->parallel_for = nested_for;
	memset(seen, 0, sizeof seen);
	spmla_i_cpu_for(f.ctx, NULL, 20, nest);
	for (i = 0; i < MAX_WORKERS; i++)
		ck_assert_uint_eq(seen[i], i < 6 ? 1 : i == 6 ? 14 : 0);
	fixture_close(&f);
}
END_TEST

static uint32_t runs[MAX_ITEMS];

static void
count_item(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	(void)ctx;
	(void)args;
	ck_assert_uint_lt(worker, 7);
	__atomic_fetch_add(&runs[item], 1, __ATOMIC_RELAXED);
}

START_TEST(every_item_runs_once_whatever_the_loop_does)
{
	static const uint32_t counts[6] = {0, 1, 2, 7, 8, MAX_ITEMS};
	uint32_t n, i;

	open_with(7, (lent_way)_i);
	for (n = 0; n < 6; n++) {
		memset(runs, 0, sizeof runs);
		spmla_i_cpu_for(f.ctx, NULL, counts[n], count_item);
		for (i = 0; i < MAX_ITEMS; i++)
			ck_assert_uint_eq(runs[i], i < counts[n]);
	}
	ck_assert_uint_gt(loop.calls, 0);
	ck_assert_uint_eq(loop.most, 7);
	fixture_close(&f);
}
END_TEST

START_TEST(pieces_are_no_more_than_workers_can_use)
{
	open_with(6, LENT_THREADS);
	ck_assert_uint_eq(spmla_i_cpu_pieces(f.ctx, 1, 4, 100), 24);
	ck_assert_uint_eq(spmla_i_cpu_pieces(f.ctx, 1, 4, 9), 9);
	ck_assert_uint_eq(spmla_i_cpu_pieces(f.ctx, 1, 4, 0), 1);
	ck_assert_uint_eq(spmla_i_cpu_pieces(f.ctx, 4, 1, 100), 2);
	ck_assert_uint_eq(spmla_i_cpu_pieces(f.ctx, 6, 1, 100), 1);
	ck_assert_uint_eq(spmla_i_cpu_pieces(f.ctx, UINT32_MAX, 4, 100), 1);
	fixture_close(&f);
	open_with(1, LENT_THREADS);
	ck_assert_uint_eq(spmla_i_cpu_pieces(f.ctx, 1, 4, 100), 1);
	fixture_close(&f);
}
END_TEST

/* ---- Reports ------------------------------------------------------------ */

/* Item i reports row (i * 37) % 101 + *args, every third one twice. */
static void
report_item(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	const uint32_t row = item * 37 % 101 + *(const uint32_t *)args;

	(void)worker;
	spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_PAGE);
	if (item % 3 == 0)
		spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_LENGTH);
}

static void
expect_status(uint32_t count, uint32_t fault, uint32_t row)
{
	const spmla_device_status s = fixture_status(&f);

	ck_assert_uint_eq(s.count, count);
	ck_assert_uint_eq(s.fault, fault);
	ck_assert_uint_eq(s.row, row);
}

START_TEST(reports_count_and_the_smallest_one_stays)
{
	uint32_t base = 50;

	open_with(7, (lent_way)_i);
	/* rows 50 .. 150; item 0 has row 50, and the smaller fault is LENGTH;
	 * 101 + 34 reports */
	spmla_i_cpu_for(f.ctx, &base, 101, report_item);
	expect_status(135, SPMLA_FAULT_LENGTH, 50);
	/* larger ones of the same step count, a smaller one is kept */
	base = 51;
	spmla_i_cpu_for(f.ctx, &base, 101, report_item);
	expect_status(270, SPMLA_FAULT_LENGTH, 50);
	base = 7;
	spmla_i_cpu_for(f.ctx, &base, 101, report_item);
	expect_status(405, SPMLA_FAULT_LENGTH, 7);
	/* one outside of any loop */
	spmla_i_cpu_fault(f.ctx, 6, SPMLA_FAULT_SLOT);
	expect_status(406, SPMLA_FAULT_SLOT, 6);
	fixture_close(&f);
}
END_TEST

START_TEST(reports_of_a_later_step_only_count)
{
	spmla_i_step_state *step;
	uint32_t base = 0;

	open_with(3, LENT_THREADS);
	step = spmla_view(f.ctx, SPMLA_BUF_STEP_STATE, NULL);
	spmla_i_cpu_fault(f.ctx, 9, SPMLA_FAULT_SLOT);
	step->serial++;
	step->step++;
	spmla_i_cpu_for(f.ctx, &base, 101, report_item);
	expect_status(136, SPMLA_FAULT_SLOT, 9);
	ck_assert_uint_eq(fixture_status(&f).step, 0);
	fixture_close(&f);
}
END_TEST

START_TEST(the_count_of_reports_does_not_wrap)
{
	spmla_i_device_status *d;
	uint32_t base = 0;

	open_with(3, LENT_THREADS);
	d = spmla_view(f.ctx, SPMLA_BUF_DEVICE_STATUS, NULL);
	spmla_i_cpu_fault(f.ctx, 9, SPMLA_FAULT_SLOT);
	d->count = UINT32_MAX - 136;
	spmla_i_cpu_for(f.ctx, &base, 101, report_item);
	ck_assert_uint_eq(d->count, UINT32_MAX - 1);
	spmla_i_cpu_for(f.ctx, &base, 101, report_item);
	ck_assert_uint_eq(d->count, UINT32_MAX);
	spmla_i_cpu_for(f.ctx, &base, 101, report_item);
	ck_assert_uint_eq(d->count, UINT32_MAX);
	fixture_close(&f);
}
END_TEST

/* ---- What a caller may leave out ---------------------------------------- */

static float scores[64 * 20];
static int32_t found[64 * 8], want_found[64 * 8];

/* A selection of 64 rows, on a context of these natives. */
static void
select_rows(const spmla_native *native, int32_t *indices)
{
	int64_t starts[64];
	int32_t lens[64];
	spmla_topk_args a = {(uint32_t)sizeof a,
			     64,
			     8,
			     0,
			     scores,
			     64 * 20,
			     starts,
			     lens,
			     indices,
			     8,
			     NULL,
			     0,
			     0,
			     0,
			     {0}};
	uint32_t i;

	for (i = 0; i < 64; i++) {
		starts[i] = i * 20;
		lens[i] = 20;
	}
	ck_assert_int_eq(spmla_init(&f.ctx, &f.plan, &spmla_cpu, native,
				    f.regions, f.region_count, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_topk(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(f.ctx), SPMLA_OK);
}

/* Workers, the loop, and whether it is called. */
START_TEST(a_loop_is_called_only_where_there_are_workers_for_it)
{
	static const struct {
		uint32_t workers;
		uint32_t lent;
		uint32_t native_bytes;
		uint32_t called;
	} cases[] = {
		{3, 1, 48, 1}, {0, 1, 48, 0}, {1, 1, 48, 0},
		{3, 0, 48, 0}, {3, 1, 32, 0}, /* an older one */
	};
	uint64_t rng = test_seed();
	spmla_native native = SPMLA_NATIVE_INIT;
	uint32_t i;

	for (i = 0; i < 64 * 20; i++)
		scores[i] = rng_float(&rng);
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		open_with(cases[i].workers, LENT_THREADS);
		ck_assert_uint_eq(f.plan.config.cpu_workers,
				  cases[i].workers ? cases[i].workers : 1);
		native.struct_bytes = cases[i].native_bytes;
		native.parallel_for = cases[i].lent ? lent_for : NULL;
		native.parallel_user = &loop;
		ck_assert_int_eq(spmla_fini(f.ctx), SPMLA_OK);
		memset(found, 0xAB, sizeof found);
		select_rows(&native, found);
		ck_assert_uint_eq(loop.calls, cases[i].called);
		if (i == 0)
			memcpy(want_found, found, sizeof found);
		ck_assert_mem_eq(found, want_found, sizeof found);
		ck_assert_int_eq(spmla_init(&f.ctx, &f.plan, &spmla_cpu, NULL,
					    f.regions, f.region_count, NULL),
				 SPMLA_OK);
		fixture_close(&f);
	}
}
END_TEST

/* An older native ends there, and so does its memory. */
START_TEST(an_older_native_is_not_read_past_its_end)
{
	static const spmla_native whole = SPMLA_NATIVE_INIT;
	spmla_device device = SPMLA_DEVICE_INIT;
	uint32_t bytes, taken;

	ck_assert_uint_eq(SPMLA_NATIVE_MIN_BYTES, 32);
	for (bytes = 4; bytes <= 64; bytes += 4) {
		spmla_native *native = malloc(bytes < 32 ? 32 : bytes);

		memset(native, 0, bytes < 32 ? 32 : bytes);
		memcpy(native, &whole, 32);
		native->struct_bytes = bytes;
		taken = spmla_backend_query(&spmla_cpu, native, &device,
					    NULL) == SPMLA_OK;
		ck_assert_uint_eq(taken,
				  bytes == 32 || bytes == 48 || bytes == 56);
		free(native);
	}
}
END_TEST

/* Only the scratch grows with the workers. */
START_TEST(workers_cost_scratch_and_nothing_else)
{
	spmla_plan one, many;
	uint32_t i;

	open_with(1, LENT_THREADS);
	one = f.plan;
	fixture_close(&f);
	open_with(5, LENT_THREADS);
	many = f.plan;
	fixture_close(&f);
	ck_assert_uint_eq(one.record_key, many.record_key);
	ck_assert_uint_eq(one.row_count, many.row_count);
	for (i = 0; i < one.row_count; i++) {
		const spmla_extent *a = &one.extents[i], *b = &many.extents[i];
		const uint64_t stride = (a->bytes + 255) / 256 * 256;

		if (a->buf == SPMLA_BUF_INDEX_SCRATCH ||
		    a->buf == SPMLA_BUF_ATTEND_SCRATCH)
			ck_assert_uint_eq(b->bytes, a->bytes + 4 * stride);
		else
			ck_assert_uint_eq(b->bytes, a->bytes);
	}
}
END_TEST

SUITE
{
	const theme_test loops[] = {
		{each_worker_has_scratch_of_its_own, 3},
		{bodies_at_a_time_are_different_workers_none_past_the_plan, 1},
		{every_item_runs_once_whatever_the_loop_does, LENT_WAYS},
		{pieces_are_no_more_than_workers_can_use, 1},
	};
	const theme_test reports[] = {
		{reports_count_and_the_smallest_one_stays, LENT_WAYS},
		{reports_of_a_later_step_only_count, 1},
		{the_count_of_reports_does_not_wrap, 1},
	};
	const theme_test contract[] = {
		{a_loop_is_called_only_where_there_are_workers_for_it, 1},
		{an_older_native_is_not_read_past_its_end, 1},
		{workers_cost_scratch_and_nothing_else, 1},
	};
	const theme themes[] = {
		THEME("loops", NULL, NULL, loops),
		THEME("reports", NULL, NULL, reports),
		THEME("contract", NULL, NULL, contract),
	};

	return RUN_THEMES(themes);
}
