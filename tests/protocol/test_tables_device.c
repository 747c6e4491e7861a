/* SPDX-License-Identifier: Apache-2.0
 *
 * Block tables that the engine keeps on the device: bound once, read only,
 * with any stride, and never trusted.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/attn_rig.h"
#include "tests/harness/themes.h"

enum { STRIDE = RIG_COLUMNS + 5, BYTES = RIG_ROWS * STRIDE * 4 };

static fixture f;
static int32_t *table; /* [RIG_ROWS][STRIDE]; ASan sees its end */

static void
config_device(spmla_config *config)
{
	attn_config(config, 4);
	config->groups[SPMLA_GROUP_MAIN].source = SPMLA_TABLE_DEVICE;
}

/* Row r: pages r, r + 8, .. and -1 behind the columns. */
static void
fill_table(void)
{
	int32_t r, c;

	for (r = 0; r < RIG_ROWS; r++)
		for (c = 0; c < STRIDE; c++)
			table[r * STRIDE + c] =
				c < RIG_COLUMNS ? (r + 8 * c) % RIG_POOL : -1;
}

static void
setup(void)
{
	spmla_config config;

	config_device(&config);
	fixture_open(&f, &config, 0);
	table = malloc(BYTES);
	fill_table();
}

static void
teardown(void)
{
	free(table);
	fixture_close(&f);
}

static spmla_status
bind(uint32_t stride)
{
	return spmla_table_bind(f.ctx, SPMLA_GROUP_MAIN, table, stride);
}

static spmla_status
prologue(void)
{
	return spmla_step_prologue(f.ctx, &rig_shapes[2], SPMLA_FROM_RING,
				   NULL);
}

/* One token at the end of `len` tokens of a row; its slot. */
static int64_t
slot_of(uint32_t row, uint32_t len)
{
	const int64_t *slots = spmla_view(f.ctx, SPMLA_BUF_SLOT_MAPPING, NULL);
	draft d;

	draft_clear(&d);
	draft_request(&d, row, 1, len, 0);
	(void)draft_write(&f, &d);
	ck_assert_int_eq(prologue(), SPMLA_OK);
	return slots[0];
}

START_TEST(a_plan_with_an_engine_table_has_no_table_of_its_own)
{
	uint64_t bytes = 1;

	ck_assert_ptr_null(
		spmla_view(f.ctx, SPMLA_BUF_BLOCK_TABLE_MAIN, &bytes));
	ck_assert_uint_eq(bytes, 0);
	ck_assert_ptr_null(spmla_view(f.ctx, SPMLA_BUF_TABLE_COLS_MAIN, NULL));
	ck_assert_ptr_null(spmla_view(f.ctx, SPMLA_BUF_TABLE_STAGING, NULL));
}
END_TEST

START_TEST(bind_names_what_is_wrong_and_binds_once)
{
	ck_assert_int_eq(spmla_table_bind(NULL, 0, table, STRIDE),
			 SPMLA_E_NULL);
	expect_error(&f, spmla_table_bind(f.ctx, 1, table, STRIDE),
		     "SPMLA_E_RANGE: group: got 1, want at most 0");
	expect_error(&f, spmla_table_bind(f.ctx, 0, NULL, STRIDE),
		     "SPMLA_E_NULL: table: got NULL, want a pointer");
	expect_error(&f, bind(31),
		     "SPMLA_E_RANGE: stride_elems: got 31, want at least 32");
	expect_error(&f, prologue(),
		     "SPMLA_E_STATE: table_bind[0]: got 0, want at least 1");
	ck_assert_int_eq(bind(STRIDE), SPMLA_OK);
	expect_error(&f, bind(STRIDE),
		     "SPMLA_E_STATE: table (bound already): got 1, want 0");
	ck_assert_int_eq(prologue(), SPMLA_OK);
}
END_TEST

START_TEST(bind_is_refused_where_records_carry_the_table)
{
	spmla_config config;
	fixture ring;

	fixture_config(&config);
	fixture_open(&ring, &config, 0);
	expect_error(&ring, spmla_table_bind(ring.ctx, 0, table, STRIDE),
		     "SPMLA_E_UNSUPPORTED: config.groups.source: got 1, "
		     "want 2");
	fixture_close(&ring);
}
END_TEST

START_TEST(bulk_writes_and_stores_are_refused)
{
	const int32_t page = 1;
	uint64_t ticket;
	draft d;

	ck_assert_int_eq(bind(STRIDE), SPMLA_OK);
	expect_error(&f, spmla_table_write(f.ctx, 0, 0, 0, 1, NULL),
		     "SPMLA_E_UNSUPPORTED: config.groups.source: got 2, "
		     "want 1");
	draft_clear(&d);
	draft_request(&d, 0, 1, 1, 0);
	draft_store(&d, 0, 0, 1, &page);
	expect_error(&f, spmla_step_write(f.ctx, draft_step(&d), &ticket, NULL),
		     "SPMLA_E_UNSUPPORTED: step.stores.group[0]: got 2, "
		     "want 1");
	ck_assert_int_eq(table[0], 0);
}
END_TEST

START_TEST(slots_follow_the_engine_table_and_its_stride)
{
	uint32_t row, col;

	ck_assert_int_eq(bind(STRIDE), SPMLA_OK);
	for (row = 0; row < RIG_ROWS; row++)
		for (col = 0; col < RIG_COLUMNS; col++)
			ck_assert_int_eq(slot_of(row, 16 * col + 4),
					 (row + 8 * col) % RIG_POOL * 16 + 3);
	table[7 * STRIDE + 31] = 2; /* the engine's to change */
	ck_assert_int_eq(slot_of(7, 512), 2 * 16 + 15);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(a_join_leaves_the_engine_table_alone)
{
	draft d;

	ck_assert_int_eq(bind(STRIDE), SPMLA_OK);
	draft_clear(&d);
	draft_request(&d, 4, 1, 100, SPMLA_REQUEST_JOIN);
	(void)draft_write(&f, &d);
	ck_assert_int_eq(prologue(), SPMLA_OK);
	ck_assert_int_eq(slot_of(4, 1), 4 * 16);
	ck_assert_int_eq(table[4 * STRIDE], 4);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(pages_outside_the_pool_have_no_slot)
{
	static const int32_t bad[4] = {-1, 64, INT32_MIN, INT32_MAX};
	uint32_t i;

	ck_assert_int_eq(bind(STRIDE), SPMLA_OK);
	for (i = 0; i < 4; i++) {
		table[2 * STRIDE + 1] = bad[i];
		ck_assert_int_eq(slot_of(2, 17), -1);
		expect_status(&f, 1, SPMLA_FAULT_PAGE, 2, 2 * i + 1);
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
		ck_assert_int_eq(slot_of(2, 16), 2 * 16 + 15);
		ck_assert_uint_eq(fixture_status(&f).count, 0);
	}
}
END_TEST

/* ---- Whole steps ------------------------------------------------------- */

/* The same steps with records that carry the table give the same bits. */
START_TEST(both_sources_give_the_same_bits)
{
	static attn_inputs in;
	attn_rig ring, device;
	spmla_config config;
	uint32_t i, s;
	sim sched;

	attn_inputs_open(&in);
	attn_config(&config, 4);
	attn_open(&ring, &config, &in, 0);
	config_device(&config);
	attn_open(&device, &config, &in, 0);
	memset(table, 0xff, BYTES);
	ck_assert_int_eq(spmla_table_bind(device.f.ctx, 0, table, STRIDE),
			 SPMLA_OK);
	attn_capture(&device);
	sim_open(&sched, &ring.f.plan, test_seed());
	for (s = 1; s <= fixture_rounds(40, 6); s++) {
		const uint32_t b = s % 3;
		draft d;

		sim_draft(&sched, &rig_shapes[b], &d);
		attn_fill_step(&in, s);
		attn_forget(&ring);
		attn_forget(&device);
		(void)draft_write(&ring.f, &d);
		ck_assert_int_eq(
			attn_enqueue(&ring, &rig_shapes[b], SPMLA_FROM_RING),
			SPMLA_OK);
		for (i = 0; i < d.store_count; i++)
			memcpy(table + d.stores[i].row * STRIDE +
				       d.stores[i].first_col,
			       d.stores[i].pages,
			       d.stores[i].count * sizeof *table);
		d.store_count = 0;
		replay(&device.f, device.graph[b], draft_write(&device.f, &d));
		attn_expect_equal(&ring, &device, &rig_shapes[b], s);
	}
	ck_assert_uint_eq(fixture_status(&ring.f).count, 0);
	ck_assert_uint_eq(fixture_status(&device.f).count, 0);
	attn_close(&ring);
	attn_close(&device);
	attn_inputs_close(&in);
}
END_TEST

/* Holes below a token's own position: its context has them, and the step must
 * neither read nor select what is not there. */
START_TEST(any_table_gives_a_defined_step)
{
	static attn_inputs in;
	uint64_t rng = test_seed();
	attn_rig device;
	spmla_config config;
	uint32_t i, s;
	sim sched;

	attn_inputs_open(&in);
	config_device(&config);
	attn_open(&device, &config, &in, 0);
	ck_assert_int_eq(spmla_table_bind(device.f.ctx, 0, table, STRIDE),
			 SPMLA_OK);
	attn_capture(&device);
	sim_open(&sched, &device.f.plan, test_seed());
	for (s = 1; s <= fixture_rounds(60, 6); s++) {
		draft d;

		for (i = 0; i < RIG_ROWS * STRIDE; i++)
			table[i] = rng_below(&rng, 4)
					   ? (int32_t)rng_below(&rng, 64)
					   : (int32_t)rng_next(&rng);
		sim_draft(&sched, &rig_shapes[2], &d);
		d.store_count = 0;
		attn_fill_step(&in, s);
		replay(&device.f, device.graph[2], draft_write(&device.f, &d));
		for (i = 0; i < 16 * ATTN_TOPK; i++) {
			ck_assert_int_ge(device.topk[1][i], -1);
			ck_assert_int_lt(device.topk[1][i], RIG_CONTEXT);
		}
	}
	ck_assert_uint_gt(fixture_status(&device.f).count, 0);
	attn_close(&device);
	attn_inputs_close(&in);
}
END_TEST

SUITE
{
	const theme_test binding[] = {
		{a_plan_with_an_engine_table_has_no_table_of_its_own, 1},
		{bind_names_what_is_wrong_and_binds_once, 1},
		{bind_is_refused_where_records_carry_the_table, 1},
		{bulk_writes_and_stores_are_refused, 1},
	};
	const theme_test reading[] = {
		{slots_follow_the_engine_table_and_its_stride, 1},
		{a_join_leaves_the_engine_table_alone, 1},
		{pages_outside_the_pool_have_no_slot, 1},
	};
	const theme_test steps[] = {
		{both_sources_give_the_same_bits, 1},
		{any_table_gives_a_defined_step, 1},
	};
	const theme themes[] = {
		THEME("bind", setup, teardown, binding),
		THEME("read", setup, teardown, reading),
		THEME("whole steps", setup, teardown, steps),
	};

	return RUN_THEMES(themes);
}
