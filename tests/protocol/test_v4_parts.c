/* SPDX-License-Identifier: Apache-2.0
 *
 * Decode steps of V4 that a GPU does in parts: their metadata, and that layers
 * of each kind give what they give as a whole. A backend without parts gives
 * the same bits either way.
 */
#include <check.h>

#include "tests/support/themes.h"
#include "tests/support/v4_parts_rig.h"

static const uint32_t ratios[3] = {1, 4, 128};
static parts_rig r;

static void
setup(void)
{
	parts_rig_open(&r, 4, 512, 40);
}

/* Parts of more than one token each. */
static void
setup_few(void)
{
	parts_rig_open(&r, 4, 1024, 16);
}

static void
teardown(void)
{
	parts_rig_close(&r);
}

static void
run_step(const spmla_shape *shape, const uint32_t *lens, uint32_t gone)
{
	parts_rig_step(&r, shape, lens, gone, ratios, 3);
}

START_TEST(layers_in_parts_give_what_they_give_as_a_whole)
{
	static const spmla_shape shapes[3] = {
		{4, 4, 1, 0}, {8, 4, 2, 0}, {16, 8, 2, 0}};
	const uint32_t rounds = fixture_rounds(12, 2);
	uint32_t i, k;

	for (i = 0; i < rounds; i++) {
		uint32_t lens[PARTS_ROWS];

		for (k = 0; k < PARTS_ROWS; k++)
			lens[k] = 2 +
				  rng_below(&r.rng, rng_below(&r.rng, 2)
							    ? PARTS_LONGEST - 2
							    : 600);
		lens[1] = i % 2 ? PARTS_LONGEST : 2;
		run_step(&shapes[i % 3], lens, 0);
		for (k = 0; k < BOTH; k++)
			ck_assert_uint_eq(fixture_status(&r.sides[k].f).count,
					  0);
	}
}
END_TEST

/* The end of a prompt may have as few tokens as a decode step, and its prologue
 * makes no metadata: those that lie there are of the step before. */
START_TEST(a_prefill_is_done_whole)
{
	static const spmla_shape decode = {4, 4, 1, 0}, prompt = {6, 1, 6, 0};
	static const uint32_t lens[4] = {700, 300, 1, 130};

	run_step(&decode, lens, 0);
	run_step(&prompt, lens, 0);
}
END_TEST

/* The metadata count keys of which there are fewer then; nothing is reported
 * but what the whole reports. */
static void
without_a_page(const uint32_t *lens)
{
	static const spmla_shape shape = {4, 4, 1, 0};
	spmla_device_status status[BOTH];
	uint32_t i;

	run_step(&shape, lens, 1);
	for (i = 0; i < BOTH; i++)
		status[i] = fixture_status(&r.sides[i].f);
	ck_assert_uint_gt(status[WHOLE].count, 0);
	ck_assert_uint_eq(status[PARTS].count, status[WHOLE].count);
	ck_assert_uint_eq(status[PARTS].fault, status[WHOLE].fault);
	ck_assert_uint_eq(status[PARTS].row, status[WHOLE].row);
}

START_TEST(a_token_without_a_page_is_empty_in_parts_too)
{
	static const uint32_t lens[4] = {4000, 4000, 1, 130};

	without_a_page(lens);
}
END_TEST

/* A part begins behind the token's one block that is left, and goes on. */
START_TEST(a_part_goes_on_behind_a_token_without_a_page)
{
	static const uint32_t lens[4] = {600, PARTS_LONGEST, PARTS_LONGEST,
					 PARTS_LONGEST};

	without_a_page(lens);
}
END_TEST

int
main(void)
{
	const TTest *const many[] = {
		layers_in_parts_give_what_they_give_as_a_whole,
		a_prefill_is_done_whole,
		a_token_without_a_page_is_empty_in_parts_too,
	};
	const TTest *const few[] = {
		a_part_goes_on_behind_a_token_without_a_page,
	};
	const theme themes[] = {
		LONG_THEME("many parts", setup, teardown, many),
		LONG_THEME("few parts", setup_few, teardown, few),
	};

	return RUN_THEMES("v4_parts", themes);
}
