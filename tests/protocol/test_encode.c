/* SPDX-License-Identifier: Apache-2.0
 *
 * spmla_step_encode: every limit of the plan by name and number. The fixture's
 * plan: 8 rows, 512 tokens, 32 columns of 16, 64 pages, buckets {4,4,1}
 * {8,4,2} {16,8,4}; hence 16 stores and 32 pages a record.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"

static fixture f;
static uint8_t *record;
static draft d;

static void
open_config(const spmla_config *config)
{
	fixture_open(&f, config, 0);
	record = test_alloc(f.plan.record_bytes, 0xAB);
}

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	open_config(&config);
	draft_one(&d, 0, 5);
}

static void
teardown(void)
{
	free(record);
	fixture_close(&f);
}

static void
expect_text(const spmla_diag *diag, const char *text)
{
	ck_assert_str_eq(test_diag_text(diag), text);
}

/* Encoding d fails with `text`, and leaves no record behind. */
static void
refused(spmla_status status, const char *text)
{
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint64_t ticket;
	draft good;

	draft_clear(&good);
	ck_assert_int_eq(spmla_step_encode(&f.plan, draft_step(&good), record,
					   f.plan.record_bytes, NULL, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_step_encode(&f.plan, draft_step(&d), record,
					   f.plan.record_bytes, NULL, &diag),
			 status);
	expect_text(&diag, text);
	ck_assert_int_eq(spmla_step_encode(&f.plan, draft_step(&d), record,
					   f.plan.record_bytes, NULL, NULL),
			 status);
	ck_assert_int_eq(spmla_step_write(f.ctx, draft_step(&d), &ticket, NULL),
			 status);
	ck_assert_str_eq(fixture_diag(&f), text);
}

static spmla_step_info
accepted(void)
{
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;

	if (spmla_step_encode(&f.plan, draft_step(&d), record,
			      f.plan.record_bytes, &info, &diag) != SPMLA_OK)
		ck_abort_msg("%s got %llu", diag.field,
			     (unsigned long long)diag.got);
	return info;
}

/* ---- Requests ---------------------------------------------------------- */

START_TEST(each_field_of_a_request_has_its_limit)
{
	d.requests[0].row = 7;
	d.stores[0].row = 7;
	(void)accepted();
	d.requests[0].row = 8;
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.requests.row[0]: got 8, "
				"want at most 7");
	draft_one(&d, 0, 5);
	draft_request(&d, 1, 1, 513, 0);
	refused(SPMLA_E_RECORD,
		"SPMLA_E_RECORD: step.requests.seq_len_tokens[1]: got 513, "
		"want at most 512");
	d.requests[1].seq_len_tokens = 512;
	(void)accepted();
	d.requests[1].seq_len_tokens = UINT32_MAX;
	refused(SPMLA_E_RECORD,
		"SPMLA_E_RECORD: step.requests.seq_len_tokens[1]: got "
		"4294967295, want at most 512");
	d.requests[1].query_tokens = 3;
	d.requests[1].seq_len_tokens = 2;
	refused(SPMLA_E_RECORD,
		"SPMLA_E_RECORD: step.requests.query_tokens[1]: got 3, want "
		"at most 2");
	d.requests[1].seq_len_tokens = 3;
	(void)accepted();
	d.requests[1].flags = 2;
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.requests.flags[1]: got "
				"2, want at most 1");
}
END_TEST

START_TEST(a_row_is_named_at_most_once)
{
	draft_request(&d, 3, 1, 5, 0);
	draft_request(&d, 0, 0, 5, 0);
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.requests.row[2]: got 0 "
				"again, want it once");
	d.requests[2].row = 4;
	(void)accepted();
}
END_TEST

START_TEST(rows_are_told_apart_in_plans_of_many)
{
	spmla_config config;
	uint32_t i;

	teardown();
	fixture_config(&config);
	config.max_rows = 200;
	open_config(&config);
	draft_clear(&d);
	for (i = 0; i < 6; i++) /* equal bits of half words */
		draft_request(&d, 5 + 32 * i, 1, 5, 0);
	(void)accepted();
	draft_clear(&d);
	for (i = 0; i < 8; i++)
		draft_request(&d, 28 * i, 1, 5, 0);
	(void)accepted();
	d.requests[7].row = 64;
	(void)accepted();
	d.requests[6].row = 64;
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.requests.row[7]: got 64 "
				"again, want it once");
	d.requests[6].row = 199;
	(void)accepted();
	d.requests[6].row = 200;
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.requests.row[6]: got "
				"200, want at most 199");
}
END_TEST

START_TEST(paused_rows_and_rows_of_nothing_are_legal)
{
	draft_clear(&d);
	(void)accepted();
	draft_request(&d, 1, 0, 0, 0);
	draft_request(&d, 2, 0, 512, 0);
	draft_request(&d, 3, 1, 1, 0);
	ck_assert_uint_eq(accepted().live_context, 1);
}
END_TEST

/* ---- Stores ------------------------------------------------------------ */

START_TEST(each_field_of_a_store_has_its_limit)
{
	const int32_t page = 3;

	draft_store(&d, 1, 31, 1, &page);
	(void)accepted();
	d.stores[1].group = 1;
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.stores.group[1]: got 1, "
				"want at most 0");
	d.stores[1].group = SPMLA_GROUP_MAIN;
	d.stores[1].row = 8;
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.stores.row[1]: got 8, "
				"want at most 7");
	d.stores[1].row = 7;
	d.stores[1].first_col = 32;
	refused(SPMLA_E_RECORD,
		"SPMLA_E_RECORD: step.stores.first_col + count[1]: got 33, "
		"want at most 32");
	d.stores[1].first_col = UINT32_MAX;
	refused(SPMLA_E_RECORD,
		"SPMLA_E_RECORD: step.stores.first_col + count[1]: got "
		"4294967296, want at most 32");
}
END_TEST

START_TEST(pages_lie_in_the_pool)
{
	d.pages[2] = 64;
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.stores.pages[0]: got "
				"64, want at most 63");
	d.pages[2] = -1;
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.stores.pages[0]: got "
				"4294967295, want at most 63");
	d.pages[2] = 63;
	(void)accepted();
}
END_TEST

START_TEST(stores_and_their_pages_are_counted)
{
	static const int32_t pages[32] = {1, 2, 3};
	uint32_t i;

	draft_clear(&d);
	draft_store(&d, 0, 0, 30, pages);
	draft_store(&d, 1, 0, 2, pages);
	(void)accepted();
	draft_store(&d, 2, 0, 1, pages);
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.stores.count: got 33, "
				"want at most 32");
	draft_clear(&d);
	for (i = 0; i < 16; i++)
		draft_store(&d, i % 8, i, 1, pages);
	(void)accepted();
	draft_store(&d, 0, 0, 0, pages);
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.store_count: got 17, "
				"want at most 16");
}
END_TEST

START_TEST(stores_are_refused_where_the_engine_has_the_table)
{
	spmla_config config;

	teardown();
	fixture_config(&config);
	config.groups[SPMLA_GROUP_MAIN].source = SPMLA_TABLE_DEVICE;
	open_config(&config);
	refused(SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: step.stores.group[0]: got 2, want 1");
	d.store_count = 0;
	(void)accepted();
}
END_TEST

/* ---- The whole step ---------------------------------------------------- */

START_TEST(a_step_that_fits_no_bucket_is_named_by_what_is_too_much)
{
	uint32_t i;

	draft_clear(&d);
	for (i = 0; i < 8; i++)
		draft_request(&d, i, 2, 5, 0);
	(void)accepted();
	d.requests[7].query_tokens = 3;
	refused(SPMLA_E_RECORD,
		"SPMLA_E_RECORD: step.tokens: got 17, want at most 16");
	d.requests[7].query_tokens = 5;
	refused(SPMLA_E_RECORD,
		"SPMLA_E_RECORD: step.next_n: got 5, want at most 4");
	draft_request(&d, 8, 0, 0, 0);
	refused(SPMLA_E_RECORD,
		"SPMLA_E_RECORD: step.request_count: got 9, want at most 8");
	draft_clear(&d);
	d.flags = 2;
	refused(SPMLA_E_RECORD,
		"SPMLA_E_RECORD: step.flags: got 2, want at most 1");
}
END_TEST

START_TEST(what_is_too_much_depends_on_the_buckets_that_the_rest_allows)
{
	spmla_config config;

	teardown();
	fixture_config(&config);
	config.buckets[0].max_live_context = 2048;
	config.buckets[1].max_live_context = 900;
	config.buckets[2].max_live_context = 600;
	open_config(&config);
	draft_clear(&d);
	draft_request(&d, 0, 1, 450, 0);
	draft_request(&d, 1, 1, 451, 0);
	ck_assert_uint_eq(accepted().bucket, 0);
	d.requests[1].query_tokens = 2;
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.live_context: got 901, "
				"want at most 900");
	d.requests[1].seq_len_tokens = 450;
	ck_assert_uint_eq(accepted().bucket, 1);
	d.requests[1].query_tokens = 3;
	refused(SPMLA_E_RECORD, "SPMLA_E_RECORD: step.live_context: got 900, "
				"want at most 600");
	d.requests[1].query_tokens = 0; /* paused: it does not count */
	ck_assert_uint_eq(accepted().live_context, 450);
}
END_TEST

START_TEST(the_bucket_is_the_first_that_fits)
{
	uint32_t i;

	draft_clear(&d);
	ck_assert_uint_eq(accepted().bucket, 0);
	for (i = 0; i < 4; i++)
		draft_request(&d, i, 1, 5, 0);
	ck_assert_uint_eq(accepted().bucket, 0);
	d.requests[2].query_tokens = 2;
	ck_assert_uint_eq(accepted().bucket, 1);
	d.requests[2].query_tokens = 1;
	draft_request(&d, 4, 0, 5, 0); /* five requests */
	ck_assert_uint_eq(accepted().bucket, 2);
	d.request_count = 3;
	d.requests[2].query_tokens = 3;
	ck_assert_uint_eq(accepted().bucket, 2);
}
END_TEST

START_TEST(info_says_what_the_step_is)
{
	static const int32_t page = 9;
	spmla_step_info info;

	draft_clear(&d);
	draft_request(&d, 5, 3, 100, 0);
	draft_request(&d, 2, 0, 400, 0);
	draft_request(&d, 7, 1, 11, SPMLA_REQUEST_JOIN);
	draft_store(&d, 7, 0, 1, &page);
	info = accepted();
	ck_assert_uint_eq(info.struct_bytes, sizeof info);
	ck_assert_uint_eq(info.bucket, 2);
	ck_assert_uint_eq(info.tokens, 4);
	ck_assert_uint_eq(info.requests, 3);
	ck_assert_uint_eq(info.next_n, 3);
	ck_assert_uint_eq(info.live_context, 111);
	/* header, three requests, a store, a page */
	ck_assert_uint_eq(info.record_bytes, 64 + 3 * 16 + 16 + 4);
}
END_TEST

SUITE
{
	const theme_test requests[] = {
		{each_field_of_a_request_has_its_limit, 1},
		{a_row_is_named_at_most_once, 1},
		{rows_are_told_apart_in_plans_of_many, 1},
		{paused_rows_and_rows_of_nothing_are_legal, 1},
	};
	const theme_test stores[] = {
		{each_field_of_a_store_has_its_limit, 1},
		{pages_lie_in_the_pool, 1},
		{stores_and_their_pages_are_counted, 1},
		{stores_are_refused_where_the_engine_has_the_table, 1},
	};
	const theme_test whole[] = {
		{a_step_that_fits_no_bucket_is_named_by_what_is_too_much, 1},
		{what_is_too_much_depends_on_the_buckets_that_the_rest_allows,
		 1},
		{the_bucket_is_the_first_that_fits, 1},
		{info_says_what_the_step_is, 1},
	};
	const theme themes[] = {
		THEME("requests", setup, teardown, requests),
		THEME("stores", setup, teardown, stores),
		THEME("the whole step", setup, teardown, whole),
	};

	return RUN_THEMES(themes);
}
