/* SPDX-License-Identifier: Apache-2.0
 *
 * Block tables that SpMLA keeps: what a record's stores do, what JOIN forgets,
 * and the bulk write from TABLE_STAGING. Everything is seen through the slots
 * of a step, never by looking at the table.
 */
#include <string.h>

#include "tests/harness/engine.h"
#include "tests/harness/ring_rig.h"
#include "tests/harness/themes.h"

enum { ROW = 3, B = 2, PAGE = 16 };

static ring_rig r;

static void
setup(void)
{
	ring_open(&r, 4, 0);
}

static void
setup_deferred(void)
{
	ring_open(&r, 4, SPMLA_NATIVE_DEFERRED);
}

static void
teardown(void)
{
	ring_close(&r);
}

/* Runs a step of row ROW with one token at `position` beside what `d` already
 * stores, and returns its slot. */
static int64_t
slot_at(draft *d, uint32_t position)
{
	const int64_t *slots =
		spmla_view(r.f.ctx, SPMLA_BUF_SLOT_MAPPING, NULL);
	const int32_t *lens = spmla_view(r.f.ctx, SPMLA_BUF_CONTEXT_LENS, NULL);

	if (d->request_count == 0)
		draft_request(d, ROW, 1, position + 1, 0);
	replay(&r.f, r.graphs[B], draft_write(&r.f, d));
	fixture_drain(&r.f);
	ck_assert_int_eq(lens[0], slots[0] < 0 ? 0 : (int32_t)position + 1);
	if (slots[0] < 0) {
		expect_status(&r.f, 1, SPMLA_FAULT_PAGE, ROW,
			      ring_consumed(&r));
		ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	}
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	return slots[0];
}

static int64_t
look(uint32_t position)
{
	draft d;

	draft_clear(&d);
	return slot_at(&d, position);
}

static void
store(uint32_t first, uint32_t count, const int32_t *pages)
{
	draft d;

	draft_clear(&d);
	draft_store(&d, ROW, first, count, pages);
	replay(&r.f, r.graphs[0], draft_write(&r.f, &d));
	fixture_drain(&r.f);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}

static const int32_t pages[4] = {40, 7, 63, 0};

/* ---- Stores ------------------------------------------------------------ */

START_TEST(a_store_takes_effect_in_its_own_step)
{
	draft d;

	ck_assert_int_eq(look(0), -1);
	draft_clear(&d);
	draft_store(&d, ROW, 0, 4, pages);
	ck_assert_int_eq(slot_at(&d, 17), 7 * PAGE + 1);
	ck_assert_int_eq(look(0), 40 * PAGE);
	ck_assert_int_eq(look(47), 63 * PAGE + 15);
	ck_assert_int_eq(look(48), 0);
}
END_TEST

START_TEST(columns_that_were_never_written_have_no_slot)
{
	store(0, 2, pages);
	ck_assert_int_eq(look(31), 7 * PAGE + 15);
	ck_assert_int_eq(look(32), -1);
	ck_assert_int_eq(look(511), -1);
}
END_TEST

START_TEST(a_store_that_jumps_leaves_a_hole)
{
	store(0, 1, pages);
	store(3, 1, pages + 2);
	ck_assert_int_eq(look(15), 40 * PAGE + 15);
	ck_assert_int_eq(look(16), -1);
	ck_assert_int_eq(look(47), -1);
	ck_assert_int_eq(look(48), -1); /* it would miss keys */
	store(1, 1, pages + 1);
	ck_assert_int_eq(look(16), 7 * PAGE);
	ck_assert_int_eq(look(32), -1);
	ck_assert_int_eq(look(63), -1);
	store(2, 1, pages + 3);
	ck_assert_int_eq(look(32), 0);
	ck_assert_int_eq(look(48), 63 * PAGE);
}
END_TEST

START_TEST(a_hole_of_a_row_that_joined_again_is_empty)
{
	draft d;

	store(0, 4, pages);
	draft_clear(&d);
	draft_request(&d, ROW, 1, 49, SPMLA_REQUEST_JOIN);
	draft_store(&d, ROW, 3, 1, pages);
	ck_assert_int_eq(slot_at(&d, 48), -1);
	ck_assert_int_eq(look(0), -1);
	ck_assert_int_eq(look(16), -1);
	ck_assert_int_eq(look(47), -1);
}
END_TEST

START_TEST(stores_are_idempotent_and_a_later_one_wins)
{
	draft d;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		store(0, 4, pages);
		ck_assert_int_eq(look(20), 7 * PAGE + 4);
	}
	draft_clear(&d);
	draft_store(&d, ROW, 1, 1, pages + 2);
	draft_store(&d, ROW, 0, 2, pages + 2); /* 63 0 */
	draft_store(&d, ROW, 1, 1, pages);
	ck_assert_int_eq(slot_at(&d, 20), 40 * PAGE + 4);
	ck_assert_int_eq(look(0), 63 * PAGE);
	ck_assert_int_eq(look(48), 0);
}
END_TEST

START_TEST(a_store_keeps_the_columns_behind_it)
{
	store(0, 4, pages);
	store(0, 1, pages + 1);
	ck_assert_int_eq(look(0), 7 * PAGE);
	ck_assert_int_eq(look(48), 0);
	store(2, 0, pages);
	ck_assert_int_eq(look(32), 63 * PAGE);
}
END_TEST

START_TEST(a_store_of_another_row_changes_nothing_here)
{
	draft d;
	uint32_t row;

	store(0, 4, pages);
	draft_clear(&d);
	for (row = 0; row < RIG_ROWS; row++)
		if (row != ROW) {
			draft_request(&d, row, 0, 0, SPMLA_REQUEST_JOIN);
			draft_store(&d, row, 0, 1, pages + 3);
		}
	replay(&r.f, r.graphs[2], draft_write(&r.f, &d));
	fixture_drain(&r.f);
	ck_assert_int_eq(look(0), 40 * PAGE);
	ck_assert_int_eq(look(48), 0);
}
END_TEST

START_TEST(join_forgets_the_old_columns_before_the_stores)
{
	draft d;

	store(0, 4, pages);
	draft_clear(&d);
	draft_request(&d, ROW, 1, 17, SPMLA_REQUEST_JOIN);
	draft_store(&d, ROW, 0, 2, pages + 2); /* 63 0 */
	ck_assert_int_eq(slot_at(&d, 16), 0);
	ck_assert_int_eq(look(32), -1);
	draft_clear(&d); /* a paused row joins too */
	draft_request(&d, ROW, 0, 0, SPMLA_REQUEST_JOIN);
	replay(&r.f, r.graphs[B], draft_write(&r.f, &d));
	fixture_drain(&r.f);
	ck_assert_int_eq(look(0), -1);
}
END_TEST

/* ---- Bulk writes ------------------------------------------------------- */

static void
stage(uint32_t row, uint32_t first, uint32_t count, const int32_t *from)
{
	int32_t *staging = spmla_view(r.f.ctx, SPMLA_BUF_TABLE_STAGING, NULL);

	memcpy(staging + row * RIG_COLUMNS + first, from, count * sizeof *from);
}

static spmla_status
bulk(uint32_t first, uint32_t count)
{
	return spmla_table_write(r.f.ctx, SPMLA_GROUP_MAIN, ROW, first, count,
				 NULL);
}

START_TEST(a_bulk_write_replaces_the_row_and_ends_it)
{
	int32_t all[RIG_COLUMNS];
	int32_t i;

	for (i = 0; i < RIG_COLUMNS; i++)
		all[i] = 63 - i;
	stage(ROW, 0, RIG_COLUMNS, all);
	ck_assert_int_eq(bulk(0, RIG_COLUMNS), SPMLA_OK);
	ck_assert_int_eq(look(511), 32 * PAGE + 15);
	ck_assert_int_eq(look(0), 63 * PAGE);
	stage(ROW, 0, 2, pages);
	ck_assert_int_eq(bulk(0, 2), SPMLA_OK);
	ck_assert_int_eq(look(16), 7 * PAGE);
	ck_assert_int_eq(look(32), -1);
	ck_assert_int_eq(look(511), -1);
}
END_TEST

START_TEST(a_bulk_write_from_a_column_on_keeps_what_lies_before)
{
	store(0, 4, pages);
	stage(ROW, 1, 2, pages + 2); /* 63 0 */
	ck_assert_int_eq(bulk(1, 2), SPMLA_OK);
	ck_assert_int_eq(look(0), 40 * PAGE);
	ck_assert_int_eq(look(16), 63 * PAGE);
	ck_assert_int_eq(look(32), 0);
	ck_assert_int_eq(look(48), -1); /* cut off */
	ck_assert_int_eq(bulk(2, 0), SPMLA_OK);
	ck_assert_int_eq(look(16), 63 * PAGE);
	ck_assert_int_eq(look(32), -1);
	ck_assert_int_eq(bulk(0, 0), SPMLA_OK);
	ck_assert_int_eq(look(0), -1);
}
END_TEST

START_TEST(a_bulk_write_past_the_end_leaves_a_hole)
{
	store(0, 1, pages);
	stage(ROW, 3, 1, pages + 1);
	ck_assert_int_eq(bulk(3, 1), SPMLA_OK);
	ck_assert_int_eq(look(15), 40 * PAGE + 15);
	ck_assert_int_eq(look(16), -1);
	ck_assert_int_eq(look(48), -1);
	store(1, 2, pages + 2);
	ck_assert_int_eq(look(16), 63 * PAGE);
	ck_assert_int_eq(look(48), 7 * PAGE);
	ck_assert_int_eq(look(64), -1);
}
END_TEST

START_TEST(staged_pages_outside_the_pool_have_no_slot)
{
	static const int32_t bad[4] = {-1, 64, INT32_MIN, INT32_MAX};
	uint32_t i;

	stage(ROW, 0, 4, bad);
	ck_assert_int_eq(bulk(0, 4), SPMLA_OK);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(look(PAGE * i), -1);
}
END_TEST

START_TEST(a_bulk_write_is_ordered_before_the_step_that_follows)
{
	const int64_t *slots =
		spmla_view(r.f.ctx, SPMLA_BUF_SLOT_MAPPING, NULL);
	draft d;

	store(0, 4, pages);
	draft_clear(&d);
	draft_request(&d, ROW, 1, 1, 0);
	replay(&r.f, r.graphs[B], draft_write(&r.f, &d));
	stage(ROW, 0, 1, pages + 2);
	ck_assert_int_eq(bulk(0, 1), SPMLA_OK);
	replay(&r.f, r.graphs[B], draft_write(&r.f, &d));
	ck_assert_uint_eq(fixture_pending(&r.f), 3);
	ring_run_one(&r);
	ck_assert_int_eq(slots[0], 40 * PAGE);
	ring_run_one(&r);
	ring_run_one(&r);
	ck_assert_int_eq(slots[0], 63 * PAGE);
}
END_TEST

START_TEST(a_bulk_write_names_what_is_wrong)
{
	const uint32_t before = fixture_status(&r.f).count;

	ck_assert_int_eq(spmla_table_write(NULL, 0, 0, 0, 0, NULL),
			 SPMLA_E_NULL);
	expect_error(&r.f, spmla_table_write(r.f.ctx, 1, 0, 0, 1, NULL),
		     "SPMLA_E_RANGE: group: got 1, want at most 0");
	expect_error(&r.f, spmla_table_write(r.f.ctx, 0, 8, 0, 1, NULL),
		     "SPMLA_E_RANGE: row: got 8, want at most 7");
	expect_error(&r.f, spmla_table_write(r.f.ctx, 0, 7, 31, 2, NULL),
		     "SPMLA_E_RANGE: first_col + count: got 33, want at most "
		     "32");
	expect_error(&r.f,
		     spmla_table_write(r.f.ctx, 0, 7, UINT32_MAX, 1, NULL),
		     "SPMLA_E_RANGE: first_col + count: got 4294967296, want "
		     "at most 32");
	ck_assert_int_eq(spmla_table_write(r.f.ctx, 0, 7, 32, 0, NULL),
			 SPMLA_OK);
	fixture_drain(&r.f);
	ck_assert_uint_eq(fixture_status(&r.f).count, before);
}
END_TEST

START_TEST(a_bulk_write_is_refused_inside_a_capture)
{
	spmla_config config;
	spmla_graph graph;
	fixture f;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	expect_error(&f, spmla_table_write(f.ctx, 0, 0, 0, 1, NULL),
		     "SPMLA_E_STATE: capture: got 1, want 0");
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_E_CAPTURE);
	ck_assert_int_eq(spmla_graph_abort(f.ctx), SPMLA_OK);
	ck_assert_int_eq(engine_capture_begin(f.ctx), SPMLA_OK);
	expect_error(&f, spmla_table_write(f.ctx, 0, 0, 0, 1, NULL),
		     "SPMLA_E_STATE: capture: got 1, want 0");
	ck_assert_int_eq(engine_capture_abort(f.ctx), SPMLA_OK);
	ck_assert_int_eq(spmla_table_write(f.ctx, 0, 0, 0, 0, NULL), SPMLA_OK);
	fixture_close(&f);
}
END_TEST

SUITE
{
	const theme_test stores[] = {
		{a_store_takes_effect_in_its_own_step, 1},
		{columns_that_were_never_written_have_no_slot, 1},
		{a_store_that_jumps_leaves_a_hole, 1},
		{a_hole_of_a_row_that_joined_again_is_empty, 1},
		{stores_are_idempotent_and_a_later_one_wins, 1},
		{a_store_keeps_the_columns_behind_it, 1},
		{a_store_of_another_row_changes_nothing_here, 1},
		{join_forgets_the_old_columns_before_the_stores, 1},
	};
	const theme_test bulk_writes[] = {
		{a_bulk_write_replaces_the_row_and_ends_it, 1},
		{a_bulk_write_from_a_column_on_keeps_what_lies_before, 1},
		{a_bulk_write_past_the_end_leaves_a_hole, 1},
		{staged_pages_outside_the_pool_have_no_slot, 1},
		{a_bulk_write_names_what_is_wrong, 1},
		{a_bulk_write_is_refused_inside_a_capture, 1},
	};
	const theme_test order[] = {
		{a_bulk_write_is_ordered_before_the_step_that_follows, 1},
	};
	const theme themes[] = {
		THEME("stores", setup, teardown, stores),
		THEME("stores, queued", setup_deferred, teardown, stores),
		THEME("bulk", setup, teardown, bulk_writes),
		THEME("bulk, queued", setup_deferred, teardown, bulk_writes),
		THEME("order", setup_deferred, teardown, order),
	};

	return RUN_THEMES(themes);
}
