/* SPDX-License-Identifier: Apache-2.0
 *
 * The table groups of a V4 config: what they default to, who may share whose
 * table, and the words of every refusal.
 */
#include "tests/core/v4_config.h"
#include "tests/harness/bad_args.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include <string.h>

#define COUNT(a)  ((uint32_t)(sizeof(a) / sizeof((a)[0])))
#define R         "SPMLA_E_RANGE: config."
#define OF(group) (SPMLA_TABLE_OF_MAIN + SPMLA_GROUP_##group)
#define LEAST     SPMLA_RING_LEAST

typedef spmla_config spmla_config_args;

/* Where the text has the index behind the name. */
#define BAD_OF(field, value, text) \
	BAD_ARG(config, field, value, SPMLA_E_RANGE, R text)

#define expect_group(...) v4_config_group(&plan, __VA_ARGS__)

static spmla_plan plan;

static void
expect(const spmla_config *config, const char *want)
{
	v4_config_expect(&plan, config, want);
}

static void
run_cases(void (*fill)(spmla_config *), const arg_error *cases, uint32_t count)
{
	spmla_config config;
	uint32_t i;

	for (i = 0; i < count; i++) {
		fill(&config);
		arg_set_all(&config, &cases[i]);
		expect(&config, cases[i].text);
	}
}

/* ---- Defaults and presets ---------------------------------------------- */

/* 1000 tokens: 16 pages of 64, 4 of 256, 250 of 4. A group of 128 and the 2
 * tokens of 3 that may be taken back are 130 rows: pages of 256, 4 of them. */
START_TEST(groups_default_to_long_tables_of_their_own)
{
	spmla_config c;

	v4_config(&c);
	expect(&c, NULL);
	expect_group(SPMLA_GROUP_SWA, SPMLA_TABLE_RING, 64, 0, 0, 16);
	expect_group(SPMLA_GROUP_C4A, SPMLA_TABLE_RING, 256, 0, 1, 4);
	expect_group(SPMLA_GROUP_C128A, SPMLA_TABLE_RING, 256, 0, 2, 4);
	expect_group(SPMLA_GROUP_INDEX, SPMLA_TABLE_RING, 256, 0, 3, 4);
	expect_group(SPMLA_GROUP_STATE_C4A, SPMLA_TABLE_RING, 4, 0, 4, 250);
	expect_group(SPMLA_GROUP_STATE_C128A, SPMLA_TABLE_RING, 256, 0, 5, 4);
	expect_group(SPMLA_GROUP_STATE_INDEX, SPMLA_TABLE_RING, 4, 0, 6, 250);
	ck_assert_uint_eq(plan.columns, 16);
	ck_assert_uint_eq(plan.config.window_tokens, 128);
	ck_assert_uint_eq(plan.config.index_layout, SPMLA_LAYOUT_INDEX_FP8);
	ck_assert_uint_eq(plan.config.kv_layout, SPMLA_LAYOUT_V4_FP8);
	ck_assert_uint_eq(plan.config.kv_scale_mode, SPMLA_SCALE_POW2);
	ck_assert(plan.config.softmax_scale == 0.04419417382415922f);
	/* a row of every table: 16 + 4 + 4 + 4 + 250 + 4 + 250 */
	ck_assert_uint_eq(plan.config.max_update_pages, 532);
	/* two a request and table */
	ck_assert_uint_eq(plan.config.max_table_stores, 2 * 8 * 7);
}
END_TEST

/* A context shorter than what a state must hold does not shorten the state: it
 * has a group of it at least. 3 tokens: a page of 64 or 256 holds them, 8 rows
 * of a state take 2 pages of 4, 128 rows one of 128. */
START_TEST(a_state_is_never_shorter_than_what_a_key_is_made_of)
{
	spmla_config c;

	v4_config(&c);
	c.max_context_tokens = 3;
	c.buckets[1].next_n = 1;
	expect(&c, NULL);
	expect_group(SPMLA_GROUP_SWA, SPMLA_TABLE_RING, 64, 0, 0, 1);
	expect_group(SPMLA_GROUP_STATE_C4A, SPMLA_TABLE_RING, 4, 0, 4, 2);
	expect_group(SPMLA_GROUP_STATE_C128A, SPMLA_TABLE_RING, 128, 0, 5, 1);
	c.groups[SPMLA_GROUP_STATE_C128A].page_tokens = 16;
	expect(&c, NULL);
	expect_group(SPMLA_GROUP_STATE_C128A, SPMLA_TABLE_RING, 16, 0, 5, 8);
}
END_TEST

static void
want_preset(spmla_config *w, uint32_t model, uint32_t heads, uint32_t topk)
{
	memset(w, 0, sizeof *w);
	w->struct_bytes = 520;
	w->model = model;
	w->heads = heads;
	w->index_heads = 64;
	w->topk = topk;
	w->kv_layout = SPMLA_LAYOUT_V4_FP8;
	w->kv_scale_mode = SPMLA_SCALE_POW2;
	w->softmax_scale = 0.04419417382415922f; /* 2^-4.5 */
	w->window_tokens = 128;
	w->output_quant = 1; /* e4m3 */
	w->index_layout = SPMLA_LAYOUT_INDEX_FP8;
	w->groups[0].ring_columns = UINT32_MAX;
	w->groups[3].source = 17;
	w->groups[4].ring_columns = UINT32_MAX;
	w->groups[5].ring_columns = UINT32_MAX;
	w->groups[6].source = 20;
}

START_TEST(the_presets_of_v4_are_these_bytes)
{
	spmla_config got, want;

	memset(&got, 0x77, sizeof got);
	ck_assert_int_eq(spmla_config_preset(&got, SPMLA_MODEL_V4_FLASH),
			 SPMLA_OK);
	want_preset(&want, 2, 64, 512);
	ck_assert_mem_eq(&got, &want, sizeof got);
	memset(&got, 0x77, sizeof got);
	ck_assert_int_eq(spmla_config_preset(&got, SPMLA_MODEL_V4_PRO),
			 SPMLA_OK);
	want_preset(&want, 3, 128, 1024);
	ck_assert_mem_eq(&got, &want, sizeof got);
}
END_TEST

/* One token a request: window 127 + 1 in pages of 64, and a window that starts
 * inside a page ends in the third: 3. 8 rows of a state in pages of 4: 2; 128
 * in pages of 128: 1. 1M: 4096 pages of 256. */
START_TEST(a_preset_plans_the_least_rings_and_the_shared_tables)
{
	spmla_config c;
	uint32_t g;

	ck_assert_int_eq(spmla_config_preset(&c, SPMLA_MODEL_V4_PRO), SPMLA_OK);
	c.max_rows = 64;
	c.max_context_tokens = 1 << 20;
	c.bucket_count = 1;
	c.buckets[0] = (spmla_shape){64, 64, 1, 1 << 22};
	for (g = 0; g < SPMLA_V4_GROUPS; g++)
		c.groups[g].pool_pages = 1000 + g;
	expect(&c, NULL);
	expect_group(0, SPMLA_TABLE_RING, 64, 3, 0, 3);
	expect_group(1, SPMLA_TABLE_RING, 256, 0, 1, 4096);
	expect_group(2, SPMLA_TABLE_RING, 256, 0, 2, 4096);
	expect_group(3, 17, 256, 0, 1, 4096);
	expect_group(4, SPMLA_TABLE_RING, 4, 2, 4, 2);
	expect_group(5, SPMLA_TABLE_RING, 128, 1, 5, 1);
	expect_group(6, 20, 4, 2, 4, 2);
	/* A shared group has all of the other's fields. */
	ck_assert_uint_eq(plan.config.groups[3].pool_pages, 1001);
	ck_assert_uint_eq(plan.config.groups[6].pool_pages, 1004);
	/* 3 + 4096 + 4096 + 2 + 1; stores of five tables */
	ck_assert_uint_eq(plan.config.max_update_pages, 8198);
	ck_assert_uint_eq(plan.config.max_table_stores, 2 * 64 * 5);
	/* 4 a request and table: 5 * 64 * 4, against 3 + 8 + 8 + 2 + 1 */
	c.max_context_tokens = 2048;
	expect(&c, NULL);
	ck_assert_uint_eq(plan.config.max_update_pages, 1280);
	/* A workspace of 131072 tokens: of the two long tables 512 + 64 pages
	 * each; of the others all that 64 rows have, (3 + 2 + 1) * 64. */
	c.max_prefill_tokens = 1;
	c.prefill_workspace_tokens = 131072;
	expect(&c, NULL);
	ck_assert_uint_eq(plan.config.max_update_pages, 2 * 576 + 384);
}
END_TEST

/* ---- What is refused --------------------------------------------------- */

START_TEST(a_group_that_is_wrong_is_named_with_its_index)
{
	static const arg_error cases[] = {
		BAD_OF(groups[SPMLA_GROUP_SWA].source, 3,
		       "groups.source[0]: got 3, want 0, 1 or 2"),
		BAD_OF(groups[SPMLA_GROUP_C128A].source, 15,
		       "groups.source[2]: got 15, want 0, 1, 2, 16 or 17"),
		BAD_OF(groups[SPMLA_GROUP_STATE_INDEX].page_tokens, 4097,
		       "groups.page_tokens[6]: got 4097, want at most 4096"),
		BAD_OF(groups[SPMLA_GROUP_STATE_C4A].pool_pages, 0,
		       "groups.pool_pages[4]: got 0, want at least 1"),
		/* (2^31 - 1) / 256 */
		GOOD_ARG(config, groups[SPMLA_GROUP_C4A].pool_pages, 8388607),
		BAD_OF(groups[SPMLA_GROUP_C4A].pool_pages, 8388608,
		       "groups.pool_pages[1]: got 8388608, want at most "
		       "8388607"),
		/* whole groups in a page */
		GOOD_ARG(config, groups[SPMLA_GROUP_C4A].page_tokens, 4),
		BAD_OF(groups[SPMLA_GROUP_C4A].page_tokens, 6,
		       "groups.page_tokens[1]: got 6, want a multiple of 4"),
		BAD_OF(groups[SPMLA_GROUP_INDEX].page_tokens, 255,
		       "groups.page_tokens[3]: got 255, want a multiple of 4"),
		GOOD_ARG(config, groups[SPMLA_GROUP_C128A].page_tokens, 128),
		BAD_OF(groups[SPMLA_GROUP_C128A].page_tokens, 64,
		       "groups.page_tokens[2]: got 64, want a multiple of 128"),
		BAD_OF(groups[SPMLA_GROUP_C128A].page_tokens, 192,
		       "groups.page_tokens[2]: got 192, want a multiple of "
		       "128"),
		GOOD_ARG(config, groups[SPMLA_GROUP_SWA].page_tokens, 3),
		GOOD_ARG(config, groups[SPMLA_GROUP_STATE_C4A].page_tokens, 3),
		GOOD_ARG(config, groups[SPMLA_GROUP_STATE_C128A].page_tokens,
			 100),
		/* all compressed keys stay in sight */
		BAD_OF(groups[SPMLA_GROUP_C4A].ring_columns, 1000,
		       "groups.ring_columns[1]: got 1000, want 0"),
		BAD_OF(groups[SPMLA_GROUP_C128A].ring_columns, LEAST,
		       "groups.ring_columns[2]: got 4294967295, want 0"),
		BAD_OF(groups[SPMLA_GROUP_INDEX].ring_columns, 1,
		       "groups.ring_columns[3]: got 1, want 0"),
		GOOD_ARG(config, groups[SPMLA_GROUP_STATE_C4A].ring_columns, 3),
		BAD_OF(groups[SPMLA_GROUP_STATE_INDEX].ring_columns, 2,
		       "groups.ring_columns[6]: got 2, want at least 3"),
		/* the eighth is no group of V4's */
		GOOD_ARG(config, groups[7].source, 99),
		GOOD_ARG(config, groups[7].ring_columns, 99),
	};

	run_cases(v4_config, cases, COUNT(cases));
}
END_TEST

START_TEST(a_field_of_v4_past_its_limit_is_named)
{
	static const arg_error cases[] = {
		BAD_RANGE(config, kv_layout, SPMLA_LAYOUT_FP8_DS_MLA,
			  "got 1, want 4"),
		BAD_RANGE(config, kv_layout, SPMLA_LAYOUT_MLA_BF16,
			  "got 2, want 4"),
		BAD_RANGE(config, kv_layout, SPMLA_LAYOUT_V4_FP8 + 1,
			  "got 5, want 4"),
		GOOD_ARG(config, kv_layout, SPMLA_LAYOUT_V4_FP8),
		BAD_RANGE(config, kv_scale_mode, SPMLA_SCALE_RAW,
			  "got 2, want 1"),
		BAD_MOST(config, max_prefill_tokens, 65537, 65536),
		BAD_MOST(config, window_tokens, 4097, 4096),
		GOOD_ARG(config, window_tokens, 4096),
		GOOD_ARG(config, window_tokens, 1),
		GOOD_ARG(config, index_layout, SPMLA_LAYOUT_INDEX_MXFP4),
		BAD_RANGE(config, index_layout, SPMLA_LAYOUT_V4_FP8,
			  "got 4, want 3 or 7"),
		BAD_RANGE(config, index_layout, SPMLA_LAYOUT_STATE_256,
			  "got 8, want 3 or 7"),
		BAD_MOST(config, c4a_layers, 1025, 1024),
		GOOD_ARG(config, c4a_layers, 1024),
		BAD_MOST(config, c128a_layers, 1025, 1024),
		GOOD_ARG(config, c128a_layers, 1024),
		BAD_MOST(config, draft_tokens, 65537, 65536),
		GOOD_ARG(config, draft_tokens, 65536),
		BAD_ENUM(config, output_quant, 3, "0, 1 or 2"),
		GOOD_ARG(config, output_quant, 2),
	};

	run_cases(v4_config, cases, COUNT(cases));
}
END_TEST

START_TEST(keys_in_tiles_need_pages_of_whole_tiles)
{
	spmla_config config;

	fixture_config(&config);
	config.index_layout = SPMLA_LAYOUT_INDEX_FP8_TILED;
	config.groups[SPMLA_GROUP_MAIN].page_tokens = 48;
	expect(&config, NULL);
	config.groups[SPMLA_GROUP_MAIN].page_tokens = 40;
	expect(&config, R "groups.page_tokens[0]: got 40, want a multiple of "
			  "16");
}
END_TEST

START_TEST(v32_has_none_of_the_fields_of_v4)
{
	static const arg_error cases[] = {
		BAD_MOST(config, window_tokens, 128, 0),
		BAD_RANGE(config, index_layout, SPMLA_LAYOUT_V4_FP8,
			  "got 4, want 3, 7 or 11"),
		GOOD_ARG(config, index_layout, SPMLA_LAYOUT_INDEX_MXFP4),
		GOOD_ARG(config, index_layout, SPMLA_LAYOUT_INDEX_FP8_TILED),
		BAD_MOST(config, c4a_layers, 1, 0),
		BAD_MOST(config, c128a_layers, 1, 0),
		BAD_MOST(config, draft_tokens, 1, 0),
		BAD_EQUAL(config, output_quant, 1, 0),
		BAD_RANGE(config, kv_layout, SPMLA_LAYOUT_V4_FP8,
			  "got 4, want 1 or 2"),
		BAD_OF(groups[0].ring_columns, LEAST,
		       "groups.ring_columns[0]: got 4294967295, want 0"),
		BAD_OF(groups[0].source, OF(MAIN),
		       "groups.source[0]: got 16, want 0, 1 or 2"),
	};

	run_cases(fixture_config, cases, COUNT(cases));
}
END_TEST

/* ---- Sharing ----------------------------------------------------------- */

START_TEST(a_group_takes_all_of_the_group_whose_table_it_uses)
{
	spmla_config c;

	v4_config(&c);
	c.groups[SPMLA_GROUP_C4A].page_tokens = 384;
	c.groups[SPMLA_GROUP_C4A].pool_pages = 77;
	c.groups[SPMLA_GROUP_C128A] =
		(spmla_table_config){OF(C4A), 9999, 9999, 9999};
	c.groups[SPMLA_GROUP_INDEX] =
		(spmla_table_config){OF(C4A), 0, 0, LEAST};
	/* 1000 positions: 3 pages of 384 */
	expect(&c, NULL);
	expect_group(SPMLA_GROUP_C128A, OF(C4A), 384, 0, 1, 3);
	expect_group(SPMLA_GROUP_INDEX, OF(C4A), 384, 0, 1, 3);
	ck_assert_uint_eq(plan.config.groups[2].pool_pages, 77);
	ck_assert_uint_eq(plan.config.groups[3].pool_pages, 77);
	/* All of one table, which is then the main one. */
	v4_config(&c);
	c.groups[0].page_tokens = 128;
	c.groups[1].source = c.groups[2].source = c.groups[3].source =
		c.groups[4].source = c.groups[5].source = c.groups[6].source =
			OF(SWA);
	expect(&c, NULL);
	/* 1000 positions: 8 pages of 128 */
	expect_group(SPMLA_GROUP_STATE_INDEX, OF(SWA), 128, 0, 0, 8);
	expect_group(SPMLA_GROUP_C128A, OF(SWA), 128, 0, 0, 8);
	/* An engine's table is shared as well. */
	c.groups[0].source = SPMLA_TABLE_DEVICE;
	expect(&c, NULL);
	expect_group(SPMLA_GROUP_C4A, OF(SWA), 128, 0, 0, 8);
}
END_TEST

START_TEST(a_table_that_cannot_be_shared_is_refused)
{
	static const arg_error cases[] = {
		/* itself, a later group, no group */
		BAD_OF(groups[SPMLA_GROUP_SWA].source, OF(SWA),
		       "groups.source[0]: got 16, want 0, 1 or 2"),
		BAD_OF(groups[SPMLA_GROUP_C4A].source, OF(C4A),
		       "groups.source[1]: got 17, want 0, 1, 2 or 16"),
		BAD_OF(groups[SPMLA_GROUP_C4A].source, OF(INDEX),
		       "groups.source[1]: got 19, want 0, 1, 2 or 16"),
		BAD_OF(groups[SPMLA_GROUP_STATE_INDEX].source, OF(STATE_INDEX),
		       "groups.source[6]: got 22, want 0, 1, 2, 16, 17, 18, "
		       "19, 20 or 21"),
		BAD_OF(groups[SPMLA_GROUP_STATE_INDEX].source, UINT32_MAX,
		       "groups.source[6]: got 4294967295, want 0, 1, 2, 16, "
		       "17, 18, 19, 20 or 21"),
		/* pages of 64 are no whole groups of 128 */
		BAD_OF(groups[SPMLA_GROUP_C128A].source, OF(SWA),
		       "groups.page_tokens[2]: got 64, want a multiple of 128"),
		GOOD_ARG(config, groups[SPMLA_GROUP_C4A].source, OF(SWA)),
		GOOD_ARG(config, groups[SPMLA_GROUP_STATE_C4A].source, OF(C4A)),
	};

	run_cases(v4_config, cases, COUNT(cases));
}
END_TEST

/* A chain has an owner; its name is what the group may say. */
START_TEST(a_table_is_shared_with_its_owner_only)
{
	spmla_config c;

	v4_config(&c);
	c.groups[SPMLA_GROUP_INDEX].source = OF(C4A);
	c.groups[SPMLA_GROUP_STATE_C4A].source = OF(INDEX);
	expect(&c, R "groups.source[4]: got 19, want 17");
	c.groups[SPMLA_GROUP_STATE_C4A].source = OF(C4A);
	expect(&c, NULL);
}
END_TEST

SUITE
{
	const theme_test defaults[] = {
		{groups_default_to_long_tables_of_their_own, 1},
		{a_state_is_never_shorter_than_what_a_key_is_made_of, 1},
		{the_presets_of_v4_are_these_bytes, 1},
		{a_preset_plans_the_least_rings_and_the_shared_tables, 1},
	};
	const theme_test limits[] = {
		{a_group_that_is_wrong_is_named_with_its_index, 1},
		{a_field_of_v4_past_its_limit_is_named, 1},
		{v32_has_none_of_the_fields_of_v4, 1},
		{keys_in_tiles_need_pages_of_whole_tiles, 1},
	};
	const theme_test sharing[] = {
		{a_group_takes_all_of_the_group_whose_table_it_uses, 1},
		{a_table_that_cannot_be_shared_is_refused, 1},
		{a_table_is_shared_with_its_owner_only, 1},
	};
	const theme themes[] = {
		THEME("defaults", NULL, NULL, defaults),
		THEME("limits", NULL, NULL, limits),
		THEME("sharing", NULL, NULL, sharing),
	};

	return RUN_THEMES(themes);
}
