/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of V4's groups: stores, JOIN, bulk writes and binds reach the
 * group that they name and no other. Every step compares all tables with the
 * model's.
 */
#include <stdlib.h>
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

/* ---- Stores ------------------------------------------------------------ */

START_TEST(a_store_reaches_the_group_that_it_names)
{
	uint32_t i, g;

	for (i = 0; i < 5; i++) {
		g = r.own[i];
		groups_store(&r, g, ROW, 0, 1);
		groups_store(&r, g, V4_ROWS - 1, r.f.plan.group_columns[g] - 1,
			     1);
		groups_store(&r, g, 0, 0, r.f.plan.group_columns[g]);
	}
	groups_fill(&r);
	for (i = 0; i < 5; i++)
		groups_store(&r, r.own[i], ROW, 0, 0);
}
END_TEST

START_TEST(stores_of_all_groups_come_in_one_record)
{
	int32_t pages[V4_PAGES];
	v4_draft d;
	uint32_t i;

	groups_fill(&r);
	v4_draft_clear(&d);
	for (i = 0; i < 10; i++) {
		const uint32_t g = r.own[i % 5];

		groups_pages(&r, pages, g, i, 2);
		v4_draft_store(&d, g, ROW + i % 3, 0, 1 + i / 5 % 2, pages);
		if (r.f.plan.group_columns[g] > 2)
			v4_draft_store(&d, g, ROW, 1, 2, pages);
	}
	v4_step_ring(&r.m, &r.f, &d, BUCKET);
}
END_TEST

START_TEST(a_row_that_joins_is_forgotten_by_every_group)
{
	v4_draft d;
	uint32_t i;

	groups_fill(&r);
	v4_draft_clear(&d);
	v4_draft_request(&d, ROW, 0, 0, SPMLA_REQUEST_JOIN);
	v4_step_ring(&r.m, &r.f, &d, BUCKET);
	/* The model agreed; so that it is not both of them: */
	for (i = 0; i < 5; i++) {
		const int32_t *cols =
			spmla_view(r.f.ctx, spmla_i_table_cols(r.own[i]), NULL);

		ck_assert_int_eq(cols[ROW], 0);
		ck_assert_int_eq(cols[ROW - 1],
				 (int32_t)r.f.plan.group_columns[r.own[i]]);
	}
	/* And it starts anew in one of them, with a hole. */
	groups_store(&r, SPMLA_GROUP_C128A, ROW, 1, 1);
}
END_TEST

/* ---- Bulk writes ------------------------------------------------------- */

static void
bulk(uint32_t group, uint32_t row, uint32_t first, uint32_t count)
{
	const uint32_t columns = r.f.plan.group_columns[group];
	int32_t *staging =
		spmla_view(r.f.ctx, spmla_i_table_staging(group), NULL);
	int32_t pages[V4_PAGES];

	groups_pages(&r, pages, group, row + 3, count);
	memcpy(staging + row * columns + first, pages, count * sizeof *pages);
	ck_assert_int_eq(
		spmla_table_write(r.f.ctx, group, row, first, count, NULL),
		SPMLA_OK);
	fixture_drain(&r.f);
	ck_assert(
		ref_table_store(&r.m.tables[group], row, first, count, pages));
	ref_table_truncate(&r.m.tables[group], row, first + count);
	groups_look(&r);
}

START_TEST(a_bulk_write_reaches_the_group_that_it_names)
{
	uint32_t i;

	groups_fill(&r);
	for (i = 0; i < 5; i++) {
		const uint32_t g = r.own[i], n = r.f.plan.group_columns[g];

		bulk(g, ROW, n / 2, n - n / 2);
		bulk(g, 0, 0, n - 1);
		bulk(g, V4_ROWS - 1, 1, 0);
		bulk(g, ROW, 0, n);
	}
}
END_TEST

START_TEST(a_bulk_write_names_what_is_wrong_of_its_group)
{
#define T "SPMLA_E_RANGE: "
#define W(group, row, first, count) \
	spmla_table_write(r.f.ctx, group, row, first, count, NULL)
	groups_fill(&r);
	expect_error(&r.f, W(7, 0, 0, 1), T "group: got 7, want at most 6");
	expect_error(&r.f, W(3, 0, 0, 1),
		     "SPMLA_E_UNSUPPORTED: config.groups.source: got 17, want "
		     "1");
	expect_error(&r.f, W(6, 0, 0, 1),
		     "SPMLA_E_UNSUPPORTED: config.groups.source: got 20, want "
		     "1");
	expect_error(&r.f, W(2, V4_ROWS, 0, 1), T "row: got 8, want at most 7");
	expect_error(&r.f, W(0, 0, 2, 3),
		     T "first_col + count: got 5, want at most 4");
	expect_error(&r.f, W(1, 0, 0, 129),
		     T "first_col + count: got 129, want at most 128");
	expect_error(&r.f, W(5, 0, 3, 1),
		     T "first_col + count: got 4, want at most 3");
	groups_look(&r);
}
END_TEST

/* ---- The engine's own -------------------------------------------------- */

START_TEST(tables_of_the_engine_are_bound_group_by_group)
{
#define B(group, table, stride) spmla_table_bind(f.ctx, group, table, stride)
	int32_t *c4a = test_alloc(V4_ROWS * 63 * sizeof *c4a, 0);
	int32_t *state = test_alloc(V4_ROWS * 2 * sizeof *state, 0);
	fixture f;
	const spmla_shape *shape;
	spmla_config config;
	spmla_graph graph;

	v4_step_config(&config, V4_TABLES);
	fixture_open(&f, &config, 0);
	shape = &f.plan.config.buckets[0];
	expect_error(&f, spmla_step_prologue(f.ctx, shape, SPMLA_ADVANCE, NULL),
		     "SPMLA_E_STATE: table_bind[1]: got 0, want at least 1");
	expect_error(&f, B(0, c4a, 63),
		     "SPMLA_E_UNSUPPORTED: config.groups.source: got 1, want "
		     "2");
	expect_error(&f, B(7, c4a, 63), T "group: got 7, want at most 6");
	expect_error(&f, B(1, NULL, 63),
		     "SPMLA_E_NULL: table: got NULL, want a pointer");
	/* 1500 tokens: 63 pages of 24; a ring of 2 */
	expect_error(&f, B(1, c4a, 62),
		     T "stride_elems: got 62, want at least 63");
	expect_error(&f, B(4, state, 1),
		     T "stride_elems: got 1, want at least 2");
	ck_assert_int_eq(B(1, c4a, 63), SPMLA_OK);
	expect_error(&f, spmla_step_prologue(f.ctx, shape, SPMLA_ADVANCE, NULL),
		     "SPMLA_E_STATE: table_bind[4]: got 0, want at least 1");
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(
		spmla_step_prologue(f.ctx, shape, SPMLA_FROM_RING, NULL),
		SPMLA_E_STATE);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_E_CAPTURE);
	ck_assert_int_eq(spmla_graph_abort(f.ctx), SPMLA_OK);
	ck_assert_int_eq(B(4, state, 2), SPMLA_OK);
	expect_error(&f, B(4, state, 2),
		     "SPMLA_E_STATE: table (bound already): got 1, want 0");
	ck_assert_int_eq(
		spmla_step_prologue(f.ctx, shape, SPMLA_FROM_DEVICE, NULL),
		SPMLA_OK);
	fixture_drain(&f);
	fixture_close(&f);
	free(c4a);
	free(state);
}
END_TEST

START_TEST(a_group_without_a_table_of_its_own_has_no_buffers)
{
	uint32_t i;

	for (i = 0; i < 5; i++) {
		ck_assert_ptr_nonnull(spmla_view(
			r.f.ctx, spmla_i_block_table(r.own[i]), NULL));
		ck_assert_ptr_nonnull(spmla_view(
			r.f.ctx, spmla_i_table_staging(r.own[i]), NULL));
	}
	for (i = 0; i < 2; i++) {
		const spmla_buf buf = spmla_i_block_table(r.not_own[i]);

		ck_assert_ptr_null(spmla_view(r.f.ctx, buf, NULL));
		ck_assert_ptr_null(
			spmla_view(r.f.ctx, (spmla_buf)(buf + 1), NULL));
		ck_assert_ptr_null(
			spmla_view(r.f.ctx, (spmla_buf)(buf + 2), NULL));
	}
}
END_TEST

SUITE
{
	const theme_test both[] = {
		{a_store_reaches_the_group_that_it_names, 1},
		{stores_of_all_groups_come_in_one_record, 1},
		{a_row_that_joins_is_forgotten_by_every_group, 1},
		{a_bulk_write_reaches_the_group_that_it_names, 1},
		{a_group_without_a_table_of_its_own_has_no_buffers, 1},
	};
	const theme_test small[] = {
		{a_bulk_write_names_what_is_wrong_of_its_group, 1},
	};
	const theme_test alone[] = {
		{tables_of_the_engine_are_bound_group_by_group, 1},
	};
	const theme themes[] = {
		THEME("rings", setup, teardown, both),
		THEME("tables", setup_tables, teardown, both),
		THEME("limits", setup, teardown, small),
		THEME("bind", NULL, NULL, alone),
	};

	return RUN_THEMES(themes);
}
