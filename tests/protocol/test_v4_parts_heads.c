/* SPDX-License-Identifier: Apache-2.0
 *
 * Decode steps of V4 in parts with so many heads that kernels take 64 a block,
 * not 16.
 */

#include "tests/harness/themes.h"
#include "tests/protocol/v4_parts_rig.h"

static parts_rig r;

static void
setup(void)
{
	parts_rig_open(&r, 80, 512, 40, PARTS_LONGEST);
}

/* Rounds of 6 tokens. */
static void
setup_rounds(void)
{
	parts_rig_open(&r, 80, 512, 12, PARTS_LONGEST);
}

static void
teardown(void)
{
	parts_rig_close(&r);
}

/* Two to six blocks, some of them in a part of its own; one token of which
 * parts count keys that are not there. */
START_TEST(many_heads_in_parts_give_what_they_give_as_a_whole)
{
	static const spmla_shape shape = {4, 4, 1, 0};
	static const uint32_t lens[4] = {640, 1100, 2, 400}, ratio = 4;
	uint32_t i;

	parts_rig_step(&r, &shape, lens, (uint32_t)_i, &ratio, 1);
	for (i = 0; i < BOTH; i++)
		ck_assert_uint_eq(fixture_status(&r.sides[i].f).count > 0,
				  (uint32_t)_i);
}
END_TEST

/* Eight tokens, on Hopper six whole ones, and six parts of the other two. */
START_TEST(parts_share_the_tokens_behind_a_round)
{
	static const spmla_shape shape = {8, 4, 2, 0};
	static const uint32_t lens[4] = {400, 1100, 2, 640}, ratio = 4;

	parts_rig_step(&r, &shape, lens, 0, &ratio, 1);
}
END_TEST

SUITE
{
	const theme_test heads[] = {
		{many_heads_in_parts_give_what_they_give_as_a_whole, 2},
	};
	const theme_test rounds[] = {
		{parts_share_the_tokens_behind_a_round, 1},
	};
	const theme themes[] = {
		THEME("heads", setup, teardown, heads),
		THEME("rounds", setup_rounds, teardown, rounds),
	};

	return RUN_THEMES(themes);
}
