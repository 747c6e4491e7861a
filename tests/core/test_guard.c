/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the guard of tests/harness/cuda_guard.c sees what it is there for: a
 * kernel that reads one value past its buffer ends the program. Where there is
 * no guard there is nothing to see: SKIPPED.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spmla/ops/ops.h"
#include "tests/harness/cuda_world.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

enum { COUNT = 1024 };

static fixture f;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

static void
convert(float *from, float *to, uint64_t count)
{
	const spmla_lse2_to_lse_args a = {
		.struct_bytes = sizeof a,
		.count = count,
		.lse2 = from,
		.lse = to,
	};

	ck_assert_int_eq(spmla_lse2_to_lse(f.ctx, &a, NULL), SPMLA_OK);
}

/* The emulator's kernels fault as any program does. */
static void
on_fault(int number)
{
	(void)number;
	_exit(0);
}

START_TEST(a_buffer_may_be_used_up_to_its_end)
{
	float *from = test_alloc(COUNT * sizeof *from, 0);
	float *to = test_alloc(COUNT * sizeof *to, 0xAB);

	convert(from, to, COUNT);
	ck_assert(to[0] == 0 && to[COUNT - 1] == 0);
	free(from);
	free(to);
}
END_TEST

START_TEST(every_buffer_of_a_plan_ends_where_its_pages_do)
{
	uint32_t i, j;

	for (i = 0; i < f.plan.row_count; i++) {
		const spmla_extent *e = &f.plan.extents[i];
		const uint64_t end =
			e->offset_bytes + (e->bytes + 255) / 256 * 256;

		if (e->memory == SPMLA_MEMORY_HOST)
			continue;
		ck_assert_uint_eq(end % 4096, 0);
		for (j = 0; j < f.plan.row_count; j++) {
			const spmla_extent *o = &f.plan.extents[j];

			if (o->memory == e->memory && j != i)
				ck_assert(o->offset_bytes >= end + 4096 ||
					  o->offset_bytes + o->bytes + 4096 <=
						  e->offset_bytes);
		}
	}
}
END_TEST

/* The last test: there is no way back. */
START_TEST(one_value_more_faults)
{
	float *from = test_alloc(COUNT * sizeof *from, 0);
	float *to = test_alloc(2 * COUNT * sizeof *to, 0xAB);

	(void)signal(SIGSEGV, on_fault);
	(void)signal(SIGBUS, on_fault);
	printf("the guard has to end the program here\n");
	fflush(stdout);
	cuda_world_expect_fault();
	convert(from, to, COUNT + 1);
	ck_abort_msg("read past the end");
}
END_TEST

SUITE
{
	const theme_test guard[] = {
		{a_buffer_may_be_used_up_to_its_end, 1},
		{every_buffer_of_a_plan_ends_where_its_pages_do, 1},
		{one_value_more_faults, 1},
	};
	const theme themes[] = {
		THEME("guard", setup, teardown, guard),
	};

	if (!fixture_on_gpu() || !getenv("SPMLA_TEST_GUARD"))
		return SKIP_SUITE("no guard");
	return RUN_THEMES(themes);
}
