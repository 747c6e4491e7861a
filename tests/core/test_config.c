/* SPDX-License-Identifier: Apache-2.0
 *
 * Every field of a config at and past each of its limits: what is refused,
 * with which words, and that a plan is untouched by a refusal.
 */
#include "tests/harness/bad_args.h"
#include "tests/harness/bytes.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))
#define R        "SPMLA_E_RANGE: config."

typedef spmla_config spmla_config_args;

/* Where the text has the index behind the name. */
#define BAD_OF(field, value, text) \
	BAD_ARG(config, field, value, SPMLA_E_RANGE, R text)

static spmla_device device;
static spmla_plan plan;

static void
setup(void)
{
	device = (spmla_device)SPMLA_DEVICE_INIT;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
	memset(&plan, 0x5a, sizeof plan);
}

static void
expect_untouched(void)
{
	ck_assert_uint_eq(bytes_other(&plan, sizeof plan, 0x5a), sizeof plan);
}

static void
expect(const spmla_config *config, const char *want)
{
	spmla_diag diag = SPMLA_DIAG_INIT;
	char text[200];
	spmla_status s = spmla_plan_make(&plan, config, &device, &diag);

	if (!want) {
		spmla_diag_text(&diag, text, sizeof text);
		ck_assert_msg(s == SPMLA_OK, "refused: %s", text);
		memset(&plan, 0x5a, sizeof plan);
		return;
	}
	ck_assert_int_ne(s, SPMLA_OK);
	ck_assert_uint_eq(diag.status, s);
	ck_assert_str_eq(test_diag_text(&diag), want);
	expect_untouched();
	/* Without a diag: the same, and nothing else. */
	ck_assert_int_eq(spmla_plan_make(&plan, config, &device, NULL), s);
	expect_untouched();
}

static void
run_cases(const arg_error *cases, uint32_t count)
{
	spmla_config config;
	uint32_t i;

	for (i = 0; i < count; i++) {
		fixture_config(&config);
		arg_set_all(&config, &cases[i]);
		expect(&config, cases[i].text);
	}
}

START_TEST(a_field_past_a_limit_is_named_with_the_limit)
{
	static const arg_error cases[] = {
		BAD_ENUM(config, model, 0, "1, 2 or 3"),
		BAD_ENUM(config, model, 4, "1, 2 or 3"),
		BAD_MOST(config, flags, 16, 15),
		BAD_RANGE(config, flags, UINT32_MAX,
			  "got 4294967295, want at most 15"),
		BAD_LEAST(config, heads, 0, 1),
		BAD_MOST(config, heads, 257, 256),
		BAD_LEAST(config, index_heads, 0, 1),
		BAD_MOST(config, index_heads, 129, 128),
		BAD_LEAST(config, topk, 0, 1),
		BAD_MOST(config, topk, 65537, 65536),
		BAD_ENUM(config, kv_layout, 3, "1 or 2"),
		BAD_ENUM(config, kv_scale_mode, 3, "1 or 2"),
		BAD_LEAST(config, max_rows, 0, 1),
		BAD_MOST(config, max_rows, 65537, 65536),
		BAD_LEAST(config, max_context_tokens, 0, 1),
		BAD_MOST(config, max_context_tokens, 16777217, 16777216),
		BAD_MOST(config, cache_layers, 1025, 1024),
		BAD_LEAST(config, bucket_count, 0, 1),
		BAD_MOST(config, bucket_count, 17, 16),
		BAD_MOST(config, ring_slots, 1025, 1024),
		BAD_MOST(config, max_table_stores, 65537, 65536),
		BAD_MOST(config, max_update_pages, 16777217, 16777216),
		BAD_MOST(config, max_graphs, 257, 256),
		BAD_MOST(config, max_graph_nodes, 1048577, 1048576),
		BAD_MOST(config, queue_entries, 65537, 65536),
		BAD_MOST(config, max_prefill_tokens, 65537, 65536),
		BAD_MOST(config, prefill_workspace_tokens, 2147483648,
			 2147483647),
		BAD_MOST(config, cpu_workers, 1025, 1024),
	};

	run_cases(cases, COUNT(cases));
}
END_TEST

START_TEST(a_field_at_its_limit_is_taken)
{
	static const arg_error cases[] = {
		GOOD_ARG(config, flags, 15),
		GOOD_ARG(config, heads, 1),
		GOOD_ARG(config, heads, 256),
		GOOD_ARG(config, index_heads, 1),
		GOOD_ARG(config, index_heads, 128),
		GOOD_ARG(config, topk, 1),
		GOOD_ARG(config, topk, 65536),
		GOOD_ARG(config, kv_layout, SPMLA_LAYOUT_MLA_BF16),
		GOOD_ARG(config, kv_scale_mode, SPMLA_SCALE_RAW),
		GOOD_ARG(config, max_rows, 65536),
		GOOD_ARG(config, max_context_tokens, 1),
		GOOD_ARG(config, max_context_tokens, 16777216),
		GOOD_ARG(config, cache_layers, 1024),
		GOOD_ARG(config, bucket_count, 1),
		GOOD_ARG(config, buckets[0].tokens, 65536),
		GOOD_ARG(config, buckets[0].tokens, 1),
		GOOD_ARG(config, buckets[2].requests, 8),
		GOOD_ARG(config, buckets[1].next_n, 8),
		GOOD_ARG(config, buckets[1].max_live_context, UINT32_MAX),
		GOOD_ARG(config, groups[0].source, SPMLA_TABLE_DEVICE),
		GOOD_ARG(config, groups[0].page_tokens, 1),
		GOOD_ARG(config, groups[0].page_tokens, 4096),
		GOOD_ARG(config, groups[0].pool_pages, 1),
		GOOD_ARG(config, ring_slots, 1),
		GOOD_ARG(config, ring_slots, 1024),
		GOOD_ARG(config, max_table_stores, 1),
		GOOD_ARG(config, max_table_stores, 65536),
		GOOD_ARG(config, max_update_pages, 1),
		GOOD_ARG(config, max_update_pages, 16777216),
		GOOD_ARG(config, max_graphs, 1),
		GOOD_ARG(config, max_graphs, 256),
		GOOD_ARG(config, max_graph_nodes, 1),
		GOOD_ARG(config, max_graph_nodes, 1048576),
		GOOD_ARG(config, queue_entries, 1),
		GOOD_ARG(config, queue_entries, 65536),
		GOOD_ARG(config, max_prefill_tokens, 1),
		GOOD_ARG(config, max_prefill_tokens, 65536),
		GOOD_ARG(config, prefill_workspace_tokens, 1),
		GOOD_ARG(config, prefill_workspace_tokens, 2147483647),
		GOOD_ARG(config, cpu_workers, 1),
		GOOD_ARG(config, cpu_workers, 1024),
	};

	run_cases(cases, COUNT(cases));
}
END_TEST

START_TEST(a_bucket_that_is_wrong_is_named_with_its_index)
{
	static const arg_error cases[] = {
		BAD_OF(buckets[0].tokens, 0,
		       "buckets.tokens[0]: got 0, want at least 1"),
		BAD_OF(buckets[1].tokens, 0,
		       "buckets.tokens[1]: got 0, want at least 1"),
		BAD_OF(buckets[2].tokens, 65537,
		       "buckets.tokens[2]: got 65537, want at most 65536"),
		BAD_OF(buckets[0].requests, 0,
		       "buckets.requests[0]: got 0, want at least 1"),
		/* max_rows is 8 */
		BAD_OF(buckets[1].requests, 9,
		       "buckets.requests[1]: got 9, want at most 8"),
		BAD_OF(buckets[2].next_n, 0,
		       "buckets.next_n[2]: got 0, want at least 1"),
		/* the bucket's tokens are 8 */
		BAD_OF(buckets[1].next_n, 9,
		       "buckets.next_n[1]: got 9, want at most 8"),
		/* three are in use: the fourth, all zeros, is wrong then */
		BAD_OF(bucket_count, 4,
		       "buckets.tokens[3]: got 0, want at least 1"),
		GOOD_ARG(config, buckets[3].tokens, 65537),
	};

	run_cases(cases, COUNT(cases));
}
END_TEST

START_TEST(a_table_group_that_is_wrong_is_named_with_its_index)
{
	static const arg_error cases[] = {
		BAD_OF(groups[0].source, 3,
		       "groups.source[0]: got 3, want 0, 1 or 2"),
		BAD_OF(groups[0].page_tokens, 4097,
		       "groups.page_tokens[0]: got 4097, want at most 4096"),
		BAD_OF(groups[0].pool_pages, 0,
		       "groups.pool_pages[0]: got 0, want at least 1"),
		BAD_OF(groups[0].ring_columns, 1,
		       "groups.ring_columns[0]: got 1, want 0"),
		/* V3.2 has one group: what stands in others does not count */
		GOOD_ARG(config, groups[1].source, 99),
		GOOD_ARG(config, groups[7].ring_columns, 99),
	};

	run_cases(cases, COUNT(cases));
}
END_TEST

START_TEST(the_slots_of_a_pool_stay_below_2_to_the_31)
{
	/* most = (2^31 - 1) / page_tokens, rounded down */
	static const struct {
		uint32_t page_tokens;
		uint32_t most;
		const char *text;
	} cases[] = {
		{1, 2147483647,
		 R "groups.pool_pages[0]: got 2147483648, "
		   "want at most 2147483647"},
		{3, 715827882,
		 R "groups.pool_pages[0]: got 715827883, "
		   "want at most 715827882"},
		{64, 33554431,
		 R "groups.pool_pages[0]: got 33554432, want at most 33554431"},
		{4096, 524287,
		 R "groups.pool_pages[0]: got 524288, want at most 524287"},
	};
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	for (i = 0; i < COUNT(cases); i++) {
		config.groups[0].page_tokens = cases[i].page_tokens;
		config.groups[0].pool_pages = cases[i].most;
		expect(&config, NULL);
		config.groups[0].pool_pages++;
		expect(&config, cases[i].text);
	}
}
END_TEST

START_TEST(a_softmax_scale_is_finite_and_above_0)
{
	static const arg_error cases[] = {
		BAD_BITS(config, softmax_scale, 0x7fc00000),
		BAD_BITS(config, softmax_scale, 0x7f800001),
		BAD_BITS(config, softmax_scale, 0xffc00000),
		BAD_BITS(config, softmax_scale, 0x7f800000),
		BAD_BITS(config, softmax_scale, 0xff800000),
		BAD_BITS(config, softmax_scale, 0xbf800000),
		BAD_BITS(config, softmax_scale, 0x80000000),
		BAD_BITS(config, softmax_scale, 0x80000001),
		GOOD_ARG(config, softmax_scale, 0x00000001u), /* 2^-149 */
		GOOD_ARG(config, softmax_scale, 0x7e800000u), /* 2^126 */
		BAD_BITS(config, softmax_scale, 0x7e800001),
		GOOD_ARG(config, softmax_scale, 0x3f800000u),
	};

	run_cases(cases, COUNT(cases));
}
END_TEST

START_TEST(a_budget_holds_one_row_of_logits)
{
	/* 512 tokens of context; rows are multiples of 256 elements */
	static const struct {
		uint32_t tokens;
		uint32_t workspace;
		uint64_t budget;
		const char *text;
	} cases[] = {
		{9, 0, 2048, NULL},
		{9, 0, 2047,
		 R "logits_budget_bytes: got 2047, want at least 2048"},
		{9, 0, 1, R "logits_budget_bytes: got 1, want at least 2048"},
		{9, 256, 1024, NULL},
		{9, 256, 1023,
		 R "logits_budget_bytes: got 1023, want at least 1024"},
		{9, 257, 1024,
		 R "logits_budget_bytes: got 1024, want at least 2048"},
		{9, 9999, 2048, NULL},
		{9, 0, UINT64_C(1) << 40, NULL},
		{9, 0, (UINT64_C(1) << 40) + 1,
		 R "logits_budget_bytes: got 1099511627777, "
		   "want at most 1099511627776"},
		/* no prefill: what stands there does not count */
		{0, 0, 1, NULL},
	};
	spmla_config config;
	uint32_t i;

	for (i = 0; i < COUNT(cases); i++) {
		fixture_config(&config);
		config.max_prefill_tokens = cases[i].tokens;
		config.prefill_workspace_tokens = cases[i].workspace;
		config.logits_budget_bytes = cases[i].budget;
		expect(&config, cases[i].text);
	}
}
END_TEST

START_TEST(a_pointer_that_is_null_is_named)
{
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_config config;

	fixture_config(&config);
	ck_assert_int_eq(spmla_plan_make(NULL, &config, &device, &diag),
			 SPMLA_E_NULL);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NULL: plan: got NULL, want a pointer");
	ck_assert_int_eq(spmla_plan_make(&plan, NULL, &device, &diag),
			 SPMLA_E_NULL);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NULL: config: got NULL, want a pointer");
	ck_assert_int_eq(spmla_plan_make(&plan, &config, NULL, &diag),
			 SPMLA_E_NULL);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NULL: device: got NULL, want a pointer");
	ck_assert_int_eq(spmla_plan_make(NULL, NULL, NULL, NULL), SPMLA_E_NULL);
	expect_untouched();
}
END_TEST

START_TEST(the_config_itself_is_not_written)
{
	spmla_config config, before;

	fixture_config(&config);
	memset(&config.buckets[3], 0x77, sizeof config.buckets[3]);
	memcpy(&before, &config, sizeof config);
	expect(&config, NULL);
	ck_assert_mem_eq(&config, &before, sizeof config);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{a_field_past_a_limit_is_named_with_the_limit, 1},
		{a_field_at_its_limit_is_taken, 1},
		{a_bucket_that_is_wrong_is_named_with_its_index, 1},
		{a_table_group_that_is_wrong_is_named_with_its_index, 1},
		{the_slots_of_a_pool_stay_below_2_to_the_31, 1},
		{a_softmax_scale_is_finite_and_above_0, 1},
		{a_budget_holds_one_row_of_logits, 1},
		{a_pointer_that_is_null_is_named, 1},
		{the_config_itself_is_not_written, 1},
	};
	const theme themes[] = {
		THEME("limits", setup, NULL, c),
	};

	return RUN_THEMES(themes);
}
