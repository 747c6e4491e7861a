/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether compute-sanitizer's initcheck sees what it is there for: an op reads
 * values of the device's own memory that nobody wrote. The suite itself passes.
 * tests/gpu/run.sh fails unless the tool reports these reads. Without the tool:
 * SKIPPED.
 */
#include <stdlib.h>

#include "spmla/ops/ops.h"
#include "tests/harness/cuda_world.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

enum { COUNT = 32 };

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

START_TEST(values_that_nobody_wrote_are_read)
{
	float *from = cuda_room_alloc(COUNT * sizeof *from, 16);
	float *to = cuda_room_alloc(COUNT * sizeof *to, 16);
	const spmla_lse2_to_lse_args a = {
		.struct_bytes = sizeof a,
		.count = COUNT,
		.lse2 = from,
		.lse = to,
	};

	ck_assert_int_eq(spmla_lse2_to_lse(f.ctx, &a, NULL), SPMLA_OK);
	cuda_room_free(from);
	cuda_room_free(to);
}
END_TEST

SUITE
{
	const theme_test unwritten[] = {
		{values_that_nobody_wrote_are_read, 1},
	};
	const theme themes[] = {
		THEME("unwritten", setup, teardown, unwritten),
	};

	if (!fixture_on_gpu() || !getenv("SPMLA_TEST_INITCHECK") ||
	    !cuda_room_open())
		return SKIP_SUITE("not under initcheck");
	return RUN_THEMES(themes);
}
