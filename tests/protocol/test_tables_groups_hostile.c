/* SPDX-License-Identifier: Apache-2.0
 *
 * What a record may not say of V4's groups: encode names it; and in a slot that
 * was changed behind it, the prologue skips it, reports it and applies the
 * rest.
 */
#include <string.h>

#include "spmla/internal/backend.h"
#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"
#include "tests/protocol/groups_rig.h"

enum { ROW = 5, BUCKET = 2 };

static groups_rig r;

static void
setup(void)
{
	groups_open(&r, V4_SMALL);
}

static void
setup_tables(void)
{
	groups_open(&r, V4_TABLES);
}

static void
teardown(void)
{
	groups_close(&r);
}

/* ---- What a record may not say ----------------------------------------- */

static void
expect_refusal(uint32_t group, uint32_t first, uint32_t count, int32_t page,
	       const char *want)
{
	int32_t pages[V4_PAGES];
	uint64_t ticket;
	v4_draft d;
	uint32_t i;

	for (i = 0; i < count; i++)
		pages[i] = page;
	v4_draft_clear(&d);
	v4_draft_store(&d, 0, ROW, 0, 0, pages);
	v4_draft_store(&d, group, ROW, first, count, pages);
	expect_error(
		&r.f,
		spmla_step_write(r.f.ctx, v4_draft_step(&d), &ticket, NULL),
		want);
}

START_TEST(a_store_for_a_group_without_a_table_of_its_own_is_refused)
{
#define U "SPMLA_E_UNSUPPORTED: step.stores.group[1]: got "
#define E "SPMLA_E_RECORD: step.stores."
	expect_refusal(7, 0, 1, 0, E "group[1]: got 7, want at most 6");
	expect_refusal(UINT32_MAX, 0, 1, 0,
		       E "group[1]: got 4294967295, want at most 6");
	if (r.not_own[0] == SPMLA_GROUP_INDEX) {
		expect_refusal(SPMLA_GROUP_INDEX, 0, 1, 0, U "17, want 1");
		expect_refusal(SPMLA_GROUP_STATE_INDEX, 0, 1, 0,
			       U "20, want 1");
	} else {
		expect_refusal(SPMLA_GROUP_C4A, 0, 1, 0, U "2, want 1");
		expect_refusal(SPMLA_GROUP_STATE_C4A, 0, 1, 0, U "2, want 1");
	}
	groups_look(&r);
}
END_TEST

/* V4_SMALL's columns: window 4, C4A 128, C128A 8, states ceil(11 / 4) = 3 and
 * ceil(131 / 64) = 3. */
START_TEST(each_group_has_limits_of_its_own)
{
#define C "first_col + count[1]: got "
#define P "pages[1]: got "
	expect_refusal(0, 4, 1, 0, E C "5, want at most 4");
	expect_refusal(1, 128, 1, 0, E C "129, want at most 128");
	expect_refusal(2, 7, 2, 0, E C "9, want at most 8");
	expect_refusal(4, 0, 4, 0, E C "4, want at most 3");
	expect_refusal(5, UINT32_MAX, 1, 0, E C "4294967296, want at most 3");
	expect_refusal(0, 0, 1, 64, E P "64, want at most 63");
	expect_refusal(1, 0, 1, 512, E P "512, want at most 511");
	expect_refusal(2, 0, 1, 96, E P "96, want at most 95");
	expect_refusal(4, 0, 3, 48, E P "48, want at most 47");
	expect_refusal(5, 0, 1, -1, E P "4294967295, want at most 39");
	groups_look(&r);
}
END_TEST

/* Writes a record of two stores, changes the first one in the slot, runs it:
 * the second is applied, the first is reported with `row`. */
static void
tamper(uint32_t group_row, uint32_t first_col, uint32_t count, uint32_t row)
{
	const int32_t pages[2] = {1, 2};
	spmla_i_record *record;
	spmla_i_store *stores;
	uint64_t ticket;
	v4_draft d;

	v4_draft_clear(&d);
	v4_draft_store(&d, SPMLA_GROUP_C128A, ROW, 0, 2, pages);
	v4_draft_store(&d, SPMLA_GROUP_C128A, ROW + 1, 1, 2, pages);
	ck_assert_int_eq(
		spmla_step_write(r.f.ctx, v4_draft_step(&d), &ticket, NULL),
		SPMLA_OK);
	record = spmla_i_slot(r.f.ctx, ticket);
	stores = (spmla_i_store *)(record + 1);
	ck_assert_uint_eq(stores[0].group_row,
			  (uint32_t)SPMLA_GROUP_C128A << 24 | ROW);
	stores[0].group_row = group_row;
	stores[0].first_col = first_col;
	stores[0].count = count;
	ck_assert_int_eq(spmla_step_prologue(r.f.ctx,
					     &r.f.plan.config.buckets[BUCKET],
					     SPMLA_FROM_RING, NULL),
			 SPMLA_OK);
	fixture_drain(&r.f);
	v4_draft_clear(&d);
	v4_draft_store(&d, SPMLA_GROUP_C128A, ROW + 1, 1, 2, pages);
	v4_model_record(&r.m, &d, &r.f.plan.config.buckets[BUCKET]);
	v4_model_report(&r.m, row, SPMLA_FAULT_ROW);
	v4_model_check(&r.m, &r.f, &r.f.plan.config.buckets[BUCKET]);
}

START_TEST(a_group_that_no_encode_wrote_is_skipped_and_reported)
{
	static const uint32_t none[] = {7, 8, 9, 16, 99, 127, 128, 200, 255};
	uint32_t i;

	groups_fill(&r);
	for (i = 0; i < sizeof none / sizeof none[0]; i++)
		tamper(none[i] << 24 | ROW, 0, 1, ROW);
	for (i = 0; i < 2; i++)
		tamper(r.not_own[i] << 24 | ROW, 0, 1, ROW);
	tamper(255u << 24 | 0xffffff, 0, 1, 0xffffff);
	for (i = 0; i < 5; i++)
		tamper(r.own[i] << 24 | V4_ROWS, 0, 1, V4_ROWS);
}
END_TEST

START_TEST(a_store_past_its_own_groups_columns_is_skipped_and_reported)
{
	uint32_t i;

	groups_fill(&r);
	for (i = 0; i < 5; i++) {
		const uint32_t g = r.own[i], n = r.f.plan.group_columns[g];

		tamper(g << 24 | ROW, n, 1, ROW);
		tamper(g << 24 | ROW, n - 1, 2, ROW);
		tamper(g << 24 | ROW, UINT32_MAX, 2, ROW);
		tamper(g << 24 | ROW, 0, UINT32_MAX, ROW);
	}
}
END_TEST

SUITE
{
	const theme_test both[] = {
		{a_store_for_a_group_without_a_table_of_its_own_is_refused, 1},
		{a_group_that_no_encode_wrote_is_skipped_and_reported, 1},
		{a_store_past_its_own_groups_columns_is_skipped_and_reported,
		 1},
	};
	const theme_test small[] = {
		{each_group_has_limits_of_its_own, 1},
	};
	const theme themes[] = {
		THEME("rings", setup, teardown, both),
		THEME("tables", setup_tables, teardown, both),
		THEME("limits", setup, teardown, small),
	};

	return RUN_THEMES(themes);
}
