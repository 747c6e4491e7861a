/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_map for one of several ranks that have the positions of a sequence in
 * turn, against a count of its keys one by one.
 */
#include "tests/harness/themes.h"
#include "tests/ops/step/slot_map_rig.h"

enum { LAST = 500 };

static slot_map_rig r;

static void
setup(void)
{
	slot_map_open(&r);
}

static void
teardown(void)
{
	slot_map_close(&r);
}

/* Tokens at 24 positions of row 1, whose pages are 93, 103, .. */
static void
check_positions(const spmla_slot_map_args *a, int32_t first)
{
	const int32_t run = (int32_t)a->dcp_interleave;
	const int32_t ranks = (int32_t)a->dcp_ranks;
	int32_t t, p, n;

	for (t = 0; t < SLOT_TOKENS; t++) {
		r.io.row[t] = 1;
		r.io.position[t] = first + t;
		r.io.lens[t] = first + t + 1;
	}
	slot_map_run(&r, a);
	for (t = 0; t < SLOT_TOKENS; t++) {
		const int32_t own =
			(first + t) / run % ranks == (int32_t)a->dcp_rank;

		for (p = n = 0; p <= first + t; p++)
			n += p / run % ranks == (int32_t)a->dcp_rank;
		ck_assert_int_eq(r.io.lens[t], n);
		ck_assert_int_eq(r.io.slot[t],
				 own ? (93 + 10 * ((n - 1) / 64)) * 64 +
						 (n - 1) % 64
				     : -1);
	}
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}

START_TEST(lengths_and_slots_are_those_of_the_ranks_own_keys)
{
	static const uint32_t ranks[] = {2, 3, 8}, runs[] = {1, 4, 64, 100};
	spmla_slot_map_args a = slot_map_args(&r, SLOT_TOKENS);
	int32_t first;

	a.dcp_ranks = ranks[_i % 3];
	a.dcp_interleave = runs[_i / 3];
	for (a.dcp_rank = 0; a.dcp_rank < a.dcp_ranks; a.dcp_rank++)
		for (first = 0; first < LAST; first += SLOT_TOKENS)
			check_positions(&a, first);
}
END_TEST

/* 5 of the sequence on rank 1 of 2 by runs of 2: positions 2 and 3. */
START_TEST(a_last_key_without_a_page_empties_the_token)
{
	spmla_slot_map_args a = slot_map_args(&r, 2);

	a.dcp_ranks = a.dcp_interleave = 2;
	a.dcp_rank = 1;
	r.io.table[0] = -1;
	r.io.row[0] = r.io.row[1] = 0;
	r.io.position[0] = 1; /* no key here: nothing is looked up */
	r.io.position[1] = 4; /* another rank's, but its keys are seen */
	r.io.lens[0] = r.io.lens[1] = 5;
	slot_map_run(&r, &a);
	ck_assert_int_eq(r.io.lens[0], 0);
	ck_assert_int_eq(r.io.lens[1], 0);
	ck_assert_int_eq(r.io.slot[0], -1);
	ck_assert_int_eq(r.io.slot[1], -1);
	expect_status(&r.f, 1, SPMLA_FAULT_PAGE, 0, 0);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	a.dcp_rank = 0; /* positions 0, 1 and 4: key 2 of page 0 */
	r.io.table[0] = 7;
	r.io.lens[1] = 5;
	slot_map_run(&r, &a);
	ck_assert_int_eq(r.io.lens[1], 3);
	ck_assert_int_eq(r.io.slot[1], 7 * 64 + 2);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{lengths_and_slots_are_those_of_the_ranks_own_keys, 12},
	};
	const theme_test edge[] = {
		{a_last_key_without_a_page_empties_the_token, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
	};

	return RUN_THEMES(themes);
}
