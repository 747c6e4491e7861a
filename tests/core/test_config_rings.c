/* SPDX-License-Identifier: Apache-2.0
 *
 * The fewest columns of a table that wraps around, worked out by hand for
 * windows and states: one less is refused, one more is taken.
 */
#include "tests/core/v4_config.h"
#include "tests/harness/themes.h"

#include <stdio.h>

#define COUNT(a)  ((uint32_t)(sizeof(a) / sizeof((a)[0])))
#define R         "SPMLA_E_RANGE: config."
#define OF(group) (SPMLA_TABLE_OF_MAIN + SPMLA_GROUP_##group)
#define LEAST     SPMLA_RING_LEAST

#define expect_group(...) v4_config_group(&plan, __VA_ARGS__)

static spmla_plan plan;

static void
expect(const spmla_config *config, const char *want)
{
	v4_config_expect(&plan, config, want);
}

/* Window: the larger of ceil((window - 1 + t) / page), which holds what the
 * step writes, and ceil((window - 1) / page) + 1, which holds a window that
 * starts anywhere. */
START_TEST(the_least_columns_of_a_window_worked_out_by_hand)
{
	static const struct {
		uint32_t window, page, next_n, least;
	} cases[] = {
		{128, 64, 1, 3},    /* 128 / 64 = 2; ceil(127 / 64) + 1 = 3 */
		{128, 64, 64, 3},   /* 191 / 64: 3; 3 */
		{128, 64, 65, 3},   /* 192 / 64 = 3; 3 */
		{128, 64, 66, 4},   /* 193 / 64: 4 */
		{128, 1, 3, 130},   /* 130; 128 */
		{1, 64, 1, 1},      /* 1 / 64: 1; 0 + 1 */
		{1, 64, 65, 2},     /* 65 / 64: 2 */
		{2, 64, 1, 2},      /* 2 / 64: 1; 1 + 1 = 2 */
		{65, 64, 1, 2},     /* 65 / 64: 2; 1 + 1 */
		{66, 64, 1, 3},     /* 66 / 64: 2; 2 + 1 */
		{12, 4, 4, 4},      /* 15 / 4: 4; 3 + 1 */
		{12, 4, 6, 5},      /* 17 / 4: 5 */
		{4096, 4096, 1, 2}, /* 1; 1 + 1 */
	};
	char text[120];
	spmla_config c;
	uint32_t i;

	for (i = 0; i < COUNT(cases); i++) {
		v4_config(&c);
		c.window_tokens = cases[i].window;
		c.groups[0].page_tokens = cases[i].page;
		c.buckets[1] = (spmla_shape){80, 8, cases[i].next_n, 0};
		c.groups[0].ring_columns = LEAST;
		expect(&c, NULL);
		expect_group(0, SPMLA_TABLE_RING, cases[i].page, cases[i].least,
			     0, cases[i].least);
		c.groups[0].ring_columns = cases[i].least + 1;
		expect(&c, NULL);
		ck_assert_uint_eq(plan.columns, cases[i].least + 1);
		c.groups[0].ring_columns = cases[i].least - 1;
		snprintf(text, sizeof text,
			 R "groups.ring_columns[0]: got %u, want at least %u",
			 cases[i].least - 1, cases[i].least);
		if (cases[i].least > 1) /* 0 is a long table */
			expect(&c, text);
	}
}
END_TEST

/* 127 + 1000 positions are 18 pages of 64. A state keeps the last rows only. */
START_TEST(prefill_counts_for_the_window_and_not_for_states)
{
	spmla_config c;

	v4_config(&c);
	c.buckets[1].next_n = 1;
	c.max_prefill_tokens = 1000;
	c.groups[0].ring_columns = LEAST;
	c.groups[SPMLA_GROUP_STATE_C4A].ring_columns = LEAST;
	c.groups[SPMLA_GROUP_STATE_C128A].ring_columns = LEAST;
	expect(&c, NULL);
	expect_group(0, SPMLA_TABLE_RING, 64, 18, 0, 18);
	expect_group(SPMLA_GROUP_STATE_C4A, SPMLA_TABLE_RING, 4, 2,
		     SPMLA_GROUP_STATE_C4A, 2);
	expect_group(SPMLA_GROUP_STATE_C128A, SPMLA_TABLE_RING, 128, 1,
		     SPMLA_GROUP_STATE_C128A, 1);
}
END_TEST

/* ceil((n + next_n - 1) / page) with n = 8 and 128. */
START_TEST(the_least_columns_of_states_worked_out_by_hand)
{
	static const struct {
		uint32_t group, page, next_n, least;
	} cases[] = {
		{SPMLA_GROUP_STATE_C4A, 4, 1, 2},      /* 8 / 4 */
		{SPMLA_GROUP_STATE_C4A, 4, 2, 3},      /* 9 / 4 */
		{SPMLA_GROUP_STATE_C4A, 4, 5, 3},      /* 12 / 4 */
		{SPMLA_GROUP_STATE_INDEX, 4, 6, 4},    /* 13 / 4 */
		{SPMLA_GROUP_STATE_INDEX, 16, 9, 1},   /* 16 / 16 */
		{SPMLA_GROUP_STATE_C128A, 128, 1, 1},  /* 128 / 128 */
		{SPMLA_GROUP_STATE_C128A, 128, 2, 2},  /* 129 / 128 */
		{SPMLA_GROUP_STATE_C128A, 256, 80, 1}, /* 207 / 256 */
		{SPMLA_GROUP_STATE_C128A, 8, 1, 16},   /* 128 / 8 */
	};
	char text[120];
	spmla_config c;
	uint32_t i;

	for (i = 0; i < COUNT(cases); i++) {
		const uint32_t g = cases[i].group, least = cases[i].least;

		v4_config(&c);
		c.groups[g].page_tokens = cases[i].page;
		c.groups[g].ring_columns = LEAST;
		c.buckets[1] = (spmla_shape){80, 8, cases[i].next_n, 0};
		expect(&c, NULL);
		expect_group(g, SPMLA_TABLE_RING, cases[i].page, least, g,
			     least);
		c.groups[g].ring_columns = least - 1;
		snprintf(text, sizeof text,
			 R "groups.ring_columns[%u]: got %u, want at least %u",
			 g, least - 1, least);
		if (least > 1)
			expect(&c, text);
	}
}
END_TEST

/* A draft counts as query tokens do, and rings that hold the step alone are too
 * short for it: 127 + 2 + 64 positions are 4 pages of 64, 8 + 2 - 1 + 64 rows
 * 19 of 4, and 128 + 2 - 1 + 64 rows in pages of 128 two. */
START_TEST(rings_too_short_for_the_drafts_are_refused)
{
	static const struct {
		uint32_t group, page, step, draft;
	} cases[] = {
		{0, 64, 3, 4},
		{SPMLA_GROUP_STATE_C4A, 4, 3, 19},
		{SPMLA_GROUP_STATE_C128A, 128, 2, 2},
		{SPMLA_GROUP_STATE_C128A, 8, 17, 25},
	};
	char text[120];
	spmla_config c;
	uint32_t i;

	for (i = 0; i < COUNT(cases); i++) {
		const uint32_t g = cases[i].group;

		v4_config(&c);
		c.buckets[1] = (spmla_shape){80, 8, 2, 0};
		c.groups[g].page_tokens = cases[i].page;
		c.groups[g].ring_columns = cases[i].step;
		expect(&c, NULL);
		c.draft_tokens = 64;
		if (cases[i].step < cases[i].draft) {
			snprintf(text, sizeof text,
				 R "groups.ring_columns[%u]: got %u, want at "
				   "least %u",
				 g, cases[i].step, cases[i].draft);
			expect(&c, text);
		}
		c.groups[g].ring_columns = LEAST;
		expect(&c, NULL);
		expect_group(g, SPMLA_TABLE_RING, cases[i].page, cases[i].draft,
			     g, cases[i].draft);
	}
	/* And the page of a state of ratio 128 that is left open. */
	v4_config(&c);
	c.buckets[1] = (spmla_shape){80, 8, 2, 0};
	c.draft_tokens = 128; /* 128 + 1 + 128 rows */
	c.groups[SPMLA_GROUP_STATE_C128A].ring_columns = LEAST;
	expect(&c, NULL);
	expect_group(SPMLA_GROUP_STATE_C128A, SPMLA_TABLE_RING, 384, 1,
		     SPMLA_GROUP_STATE_C128A, 1);
}
END_TEST

/* A page of states of ratio 128 by itself: 128 + next_n - 1 rows, in whole
 * groups, at most 4096. The longest step of decode is 65536 tokens: 65663 rows
 * are 17 pages of 4096. */
START_TEST(a_page_of_the_longest_states_holds_a_group_and_what_is_taken_back)
{
	static const struct {
		uint32_t next_n, page, least;
	} cases[] = {
		{1, 128, 1},       {2, 256, 1},     {129, 256, 1},
		{130, 384, 1},     {3969, 4096, 1}, {3970, 4096, 2},
		{65536, 4096, 17},
	};
	spmla_config c;
	uint32_t i;

	for (i = 0; i < COUNT(cases); i++) {
		v4_config(&c);
		c.groups[SPMLA_GROUP_STATE_C128A].ring_columns = LEAST;
		c.buckets[1] = (spmla_shape){65536, 8, cases[i].next_n, 0};
		expect(&c, NULL);
		expect_group(SPMLA_GROUP_STATE_C128A, SPMLA_TABLE_RING,
			     cases[i].page, cases[i].least,
			     SPMLA_GROUP_STATE_C128A, cases[i].least);
	}
}
END_TEST

/* 2^31 - 1 = 524287 * 4096 + 4095 */
START_TEST(the_positions_of_a_ring_stay_below_2_to_the_31)
{
	spmla_config c;

	v4_config(&c);
	c.groups[0].page_tokens = 4096;
	c.groups[0].ring_columns = 524287;
	expect(&c, NULL);
	c.groups[0].ring_columns = 524288;
	expect(&c, R "groups.ring_columns[0]: got 524288, want at most 524287");
	c.groups[0].ring_columns = UINT32_MAX - 1;
	expect(&c,
	       R "groups.ring_columns[0]: got 4294967294, want at most 524287");
}
END_TEST

/* Windows of 128 and one token: 3 pages of 64, 192 places; a state of ratio
 * 128 and 3 tokens wants 130, one of ratio 4 in pages of 4 has 3 columns. */
START_TEST(a_ring_is_shared_where_it_is_long_enough)
{
	spmla_config c;

	v4_config(&c);
	c.groups[0].ring_columns = LEAST;
	c.groups[SPMLA_GROUP_STATE_C128A].source = OF(SWA);
	expect(&c, NULL);
	expect_group(SPMLA_GROUP_STATE_C128A, OF(SWA), 64, 3, 0, 3);
	v4_config(&c);
	c.groups[SPMLA_GROUP_STATE_C4A].ring_columns = LEAST;
	c.groups[SPMLA_GROUP_STATE_C128A].source = OF(STATE_C4A);
	/* ceil(130 / 4) = 33 */
	expect(&c, R "groups.ring_columns[5]: got 3, want at least 33");
	c.groups[SPMLA_GROUP_STATE_C4A].ring_columns = 33;
	expect(&c, NULL);
	expect_group(SPMLA_GROUP_STATE_C128A, OF(STATE_C4A), 4, 33, 4, 33);
	/* Compressed keys are in no ring, however long. */
	v4_config(&c);
	c.groups[0].ring_columns = 1000;
	c.groups[SPMLA_GROUP_C4A].source = OF(SWA);
	expect(&c, R "groups.ring_columns[1]: got 1000, want 0");
	c.groups[0].ring_columns = LEAST;
	expect(&c, R "groups.ring_columns[1]: got 3, want 0");
}
END_TEST

/* 64 tokens in pages of 4 are 16; the other's group of 128 rows is 32. */
START_TEST(a_long_table_that_a_state_shares_holds_a_group_of_it)
{
	spmla_config c;

	v4_config(&c);
	c.max_context_tokens = 64;
	expect(&c, NULL);
	expect_group(SPMLA_GROUP_STATE_C4A, SPMLA_TABLE_RING, 4, 0,
		     SPMLA_GROUP_STATE_C4A, 16);
	c.groups[SPMLA_GROUP_STATE_C128A].source = OF(STATE_C4A);
	expect(&c, NULL);
	expect_group(SPMLA_GROUP_STATE_C4A, SPMLA_TABLE_RING, 4, 0,
		     SPMLA_GROUP_STATE_C4A, 32);
	expect_group(SPMLA_GROUP_STATE_C128A, OF(STATE_C4A), 4, 0,
		     SPMLA_GROUP_STATE_C4A, 32);
}
END_TEST

/* A record names groups, columns and pages: one of another plan's is refused by
 * its key. Other fields of the config are no matter of records. */
START_TEST(plans_of_other_tables_have_another_key)
{
	uint64_t keys[2 + 4 * SPMLA_V4_GROUPS];
	uint32_t count = 0, g, i, k;
	spmla_config c;

	v4_config(&c);
	expect(&c, NULL);
	keys[count++] = plan.record_key;
	for (g = 0; g < SPMLA_V4_GROUPS; g++) {
		const uint32_t may_ring = g == 0 || g >= SPMLA_GROUP_STATE_C4A;

		for (k = 0; k < (may_ring ? 4u : 3u); k++) {
			v4_config(&c);
			c.groups[g].source = k == 0 ? SPMLA_TABLE_DEVICE : 0;
			c.groups[g].page_tokens = k == 1 ? 512 : 0;
			c.groups[g].pool_pages = k == 2 ? 65 : 64;
			c.groups[g].ring_columns = k == 3 ? 200 : 0;
			expect(&c, NULL);
			keys[count++] = plan.record_key;
		}
	}
	for (i = 0; i < count; i++)
		for (k = 0; k < i; k++)
			ck_assert_msg(keys[i] != keys[k], "%u and %u", k, i);
	v4_config(&c);
	c.window_tokens = 64;
	c.topk = 9;
	expect(&c, NULL);
	ck_assert(plan.record_key == keys[0]);
}
END_TEST

SUITE
{
	const theme_test rings[] = {
		{the_least_columns_of_a_window_worked_out_by_hand, 1},
		{prefill_counts_for_the_window_and_not_for_states, 1},
		{the_least_columns_of_states_worked_out_by_hand, 1},
		{rings_too_short_for_the_drafts_are_refused, 1},
		{a_page_of_the_longest_states_holds_a_group_and_what_is_taken_back,
		 1},
		{the_positions_of_a_ring_stay_below_2_to_the_31, 1},
		{a_ring_is_shared_where_it_is_long_enough, 1},
		{a_long_table_that_a_state_shares_holds_a_group_of_it, 1},
		{plans_of_other_tables_have_another_key, 1},
	};
	const theme themes[] = {
		THEME("rings", NULL, NULL, rings),
	};

	return RUN_THEMES(themes);
}
