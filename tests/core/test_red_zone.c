/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether tests/harness/red_zone.c sees what it is there for: every byte of a
 * context's memory that belongs to no buffer, and an op that strays there, on
 * the CPU and in the emulator. Where the build sees nothing: SKIPPED.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spmla/ops/ops.h"
#include "tests/harness/fixture.h"
#include "tests/harness/red_zone.h"
#include "tests/harness/themes.h"

static fixture f;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
}

static void
setup_emulator(void)
{
	setenv("SPMLA_TEST_EMULATOR", "32", 1);
	setup();
}

static void
teardown(void)
{
	unsetenv("SPMLA_TEST_EMULATOR");
	fixture_close(&f);
}

static void
expect(const uint8_t *byte, uint32_t is_zone, uint32_t buf)
{
	if (red_zone_at(byte) != is_zone)
		ck_abort_msg("buffer %u: a byte of its %s", buf,
			     is_zone ? "neighbourhood may be touched" : "own");
}

START_TEST(what_no_buffer_has_may_not_be_touched)
{
	uint32_t i, m;

	for (i = 0; i < f.plan.row_count; i++) {
		const spmla_extent *e = &f.plan.extents[i];
		const uint8_t *base = f.memory[e->memory];
		const uint8_t *begin = base + e->offset_bytes;

		expect(begin, 0, e->buf);
		expect(begin + e->bytes - 1, 0, e->buf);
		expect(begin + e->bytes, 1, e->buf);
		expect(begin + e->bytes + 255, 1, e->buf);
		if (e->offset_bytes)
			expect(begin - 1, 1, e->buf);
	}
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++)
		if (f.memory[m])
			expect((const uint8_t *)f.memory[m] +
				       f.plan.region_bytes[m],
			       1, SPMLA_NO_INDEX);
}
END_TEST

/* The exit status of a process in which an op handles `count` values from the
 * start of POSITIONS; what ASan says there is of no interest. */
static int
strays(uint64_t count)
{
	float *to = test_alloc(count * sizeof *to, 0);
	const spmla_lse2_to_lse_args a = {
		.struct_bytes = sizeof a,
		.count = count,
		.lse2 = spmla_view(f.ctx, SPMLA_BUF_POSITIONS, NULL),
		.lse = to,
	};
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		fclose(stderr);
		_exit(spmla_lse2_to_lse(f.ctx, &a, NULL) == SPMLA_OK ? 0 : 2);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	free(to);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

START_TEST(an_op_that_strays_from_its_buffer_ends_the_program)
{
	uint64_t bytes = 0;

	spmla_view(f.ctx, SPMLA_BUF_POSITIONS, &bytes);
	ck_assert_int_eq(strays(bytes / 4), 0);
	ck_assert_int_eq(strays(bytes / 4 + 1), 1);
}
END_TEST

SUITE
{
	const theme_test zones[] = {
		{what_no_buffer_has_may_not_be_touched, 1},
		{an_op_that_strays_from_its_buffer_ends_the_program, 1},
	};
	const theme themes[] = {
		THEME("red zones", setup, teardown, zones),
		THEME("red zones, emulator", setup_emulator, teardown, zones),
	};

	if (!red_zone_is_seen())
		return SKIP_SUITE("not a build with ASan");
	return RUN_THEMES(themes);
}
