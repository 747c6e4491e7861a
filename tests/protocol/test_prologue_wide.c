/* SPDX-License-Identifier: Apache-2.0
 *
 * The step prologue with more requests, and with more tokens, than a block of
 * items: all STEP buffers against plain loops over the requests; and with
 * stores of more columns than a subgroup has lanes.
 */
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

enum { ROWS = 420, PAGE = 16, COLUMNS = 4 };

/* Many requests of few tokens; few of many. */
static const spmla_shape shapes[2] = {{500, 400, 2, 0}, {500, 40, 16, 0}};

static fixture f;
static spmla_request requests[400];
static spmla_table_store stores[400];
static int32_t pages[ROWS][COLUMNS], lens[400];
static uint64_t rng;

static void
open_world(void)
{
	spmla_config config;
	uint32_t row, col;

	fixture_config(&config);
	config.max_rows = ROWS;
	config.max_context_tokens = PAGE * COLUMNS;
	config.bucket_count = 2;
	memcpy(config.buckets, shapes, sizeof shapes);
	config.groups[SPMLA_GROUP_MAIN].pool_pages = ROWS * COLUMNS;
	config.max_table_stores = 400;
	config.max_update_pages = 400 * COLUMNS;
	fixture_open(&f, &config, 0);
	rng = test_seed() + 900;
	for (row = 0; row < ROWS; row++)
		for (col = 0; col < COLUMNS; col++)
			pages[row][col] = (int32_t)(row + col * ROWS);
}

static const void *
view(spmla_buf buf)
{
	return spmla_view(f.ctx, buf, NULL);
}

/* Requests of rows in any order, some of them paused; the lengths are at most
 * `most`. Returns how many tokens they have. */
static uint32_t
draw(const spmla_shape *shape, uint32_t most)
{
	static uint32_t order[ROWS];
	uint32_t left = shape->tokens, b;

	for (b = 0; b < ROWS; b++)
		order[b] = b;
	for (b = 0; b < shape->requests; b++) {
		const uint32_t other = b + rng_below(&rng, ROWS - b);
		const uint32_t row = order[other];
		uint32_t query = rng_below(&rng, shape->next_n + 1);

		order[other] = order[b];
		query = query < left ? query : left;
		left -= query;
		requests[b] =
			(spmla_request){row, query, 0, SPMLA_REQUEST_JOIN};
		requests[b].seq_len_tokens =
			query + rng_below(&rng, most - query + 1);
		lens[b] = (int32_t)requests[b].seq_len_tokens;
		stores[b] = (spmla_table_store){SPMLA_GROUP_MAIN, row, 0,
						COLUMNS, pages[row]};
	}
	return shape->tokens - left;
}

/* The buffers of a step of the requests as they are, with lengths `lens`. */
static void
check_step(const spmla_shape *shape)
{
	const int32_t *start = view(SPMLA_BUF_QUERY_START_LOC);
	const int32_t *id = view(SPMLA_BUF_REQ_ID_PER_TOKEN);
	const int32_t *row = view(SPMLA_BUF_TOKEN_ROW);
	const int32_t *position = view(SPMLA_BUF_POSITIONS);
	const int32_t *context = view(SPMLA_BUF_CONTEXT_LENS);
	const int64_t *slot = view(SPMLA_BUF_SLOT_MAPPING);
	const int64_t *logits = view(SPMLA_BUF_LOGITS_ROW_STARTS);
	uint32_t t = 0, b, j;
	int64_t elems = 0;

	for (b = 0; b < shape->requests; b++) {
		const spmla_request *q = &requests[b];

		ck_assert_int_eq(start[b], (int)t);
		ck_assert_int_eq(((const int32_t *)view(SPMLA_BUF_SEQ_LENS))[b],
				 lens[b]);
		ck_assert_int_eq(((const int32_t *)view(SPMLA_BUF_REQ_ROW))[b],
				 (int)q->row);
		for (j = 0; j < q->query_tokens; j++, t++) {
			const int32_t p =
				lens[b] - (int32_t)(q->query_tokens - j);

			ck_assert_int_eq(id[t], (int)b);
			ck_assert_int_eq(row[t], (int)q->row);
			ck_assert_int_eq(position[t], p);
			ck_assert_int_eq(context[t], p + 1);
			ck_assert_int_eq(slot[t],
					 pages[q->row][p / PAGE] * PAGE +
						 p % PAGE);
			ck_assert_int_eq(logits[t], elems);
			elems += SPMLA_LOGITS_ROW_ALIGN; /* contexts are less */
		}
	}
	ck_assert_int_eq(start[b], (int)t);
	for (; t < shape->tokens; t++) {
		ck_assert_int_eq(id[t], 0);
		ck_assert_int_eq(row[t], 0);
		ck_assert_int_eq(position[t], 0);
		ck_assert_int_eq(context[t], 0);
		ck_assert_int_eq(slot[t], -1);
		ck_assert_int_eq(logits[t], elems);
	}
	ck_assert_int_eq(logits[t], elems);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}

static void
prologue(const spmla_shape *shape, spmla_source source)
{
	ck_assert_int_eq(spmla_step_prologue(f.ctx, shape, source, NULL),
			 SPMLA_OK);
	fixture_drain(&f);
}

/* A step of the ring with requests and stores as they were drawn. */
static void
run_record(const spmla_shape *shape)
{
	spmla_step step = SPMLA_STEP_INIT;
	uint64_t ticket;

	step.request_count = step.store_count = shape->requests;
	step.requests = requests;
	step.stores = stores;
	ck_assert_int_eq(spmla_step_write(f.ctx, &step, &ticket, NULL),
			 SPMLA_OK);
	prologue(shape, SPMLA_FROM_RING);
	check_step(shape);
}

START_TEST(more_requests_or_tokens_than_items_are_all_there)
{
	const spmla_shape *shape = &shapes[_i];
	uint32_t round, b;

	open_world();
	for (round = 0; round < 3; round++) {
		spmla_step_device *device =
			spmla_view(f.ctx, SPMLA_BUF_STEP_DEVICE, NULL);
		int32_t *by = spmla_view(f.ctx, SPMLA_BUF_ADVANCE_BY, NULL);

		(void)draw(shape, PAGE * COLUMNS - 1);
		run_record(shape);
		/* A token further, where one was decoded. */
		for (b = 0; b < shape->requests; b++) {
			by[b] = 1;
			lens[b] += requests[b].query_tokens && lens[b];
		}
		prologue(shape, SPMLA_ADVANCE);
		check_step(shape);
		/* Other requests, whose pages are there. */
		(void)draw(shape, PAGE * COLUMNS);
		for (b = 0; b < shape->requests; b++)
			memcpy((spmla_request *)(device + 1) + b, &requests[b],
			       sizeof *requests);
		device->requests = shape->requests;
		device->flags = 0;
		for (b = 0; b < ROWS; b++) {
			int32_t *staged = spmla_view(
				f.ctx, SPMLA_BUF_TABLE_STAGING, NULL);

			memcpy(staged + b * f.plan.columns, pages[b],
			       sizeof pages[b]);
			ck_assert_int_eq(spmla_table_write(f.ctx,
							   SPMLA_GROUP_MAIN, b,
							   0, COLUMNS, NULL),
					 SPMLA_OK);
		}
		prologue(shape, SPMLA_FROM_DEVICE);
		check_step(shape);
	}
	fixture_close(&f);
}
END_TEST

/* What the last prologue left is memory that an engine can reach. */
START_TEST(rows_that_were_overwritten_are_skipped_and_reported)
{
	const spmla_shape *shape = &shapes[0];
	const int32_t *context;
	spmla_device_status status;
	int32_t *rows;
	uint32_t b, t;

	open_world();
	(void)draw(shape, PAGE * COLUMNS - 1);
	run_record(shape);
	rows = spmla_view(f.ctx, SPMLA_BUF_REQ_ROW, NULL);
	memset(spmla_view(f.ctx, SPMLA_BUF_ADVANCE_BY, NULL), 0,
	       shape->requests * sizeof(int32_t));
	for (b = 0; b < shape->requests; b++)
		rows[b] = b % 2 ? INT32_MAX : INT32_MIN;
	prologue(shape, SPMLA_ADVANCE);
	context = view(SPMLA_BUF_CONTEXT_LENS);
	for (t = 0; t < shape->tokens; t++)
		ck_assert_int_eq(context[t], 0);
	status = fixture_status(&f);
	ck_assert_uint_gt(status.count, 0);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_ROW);
	fixture_close(&f);
}
END_TEST

static void
expect_lens(const spmla_shape *shape)
{
	const int32_t *got = view(SPMLA_BUF_SEQ_LENS);
	const int32_t *context = view(SPMLA_BUF_CONTEXT_LENS);
	uint32_t t = 0, b, j;

	for (b = 0; b < shape->requests; b++) {
		const uint32_t query = requests[b].query_tokens;

		ck_assert_int_eq(got[b], lens[b]);
		for (j = 0; j < query; j++, t++)
			ck_assert_int_eq(
				context[t],
				lens[b] ? lens[b] - (int32_t)(query - 1 - j)
					: 0);
	}
}

/* ADVANCE to the ends of [query, longest], and one past each. */
START_TEST(rows_that_leave_their_bounds_are_skipped_and_reported)
{
	const spmla_shape *shape = &shapes[_i];
	spmla_device_status status;
	uint32_t gone = 0, i, b;
	int32_t *by;

	open_world();
	(void)draw(shape, PAGE * COLUMNS - 1);
	run_record(shape);
	by = spmla_view(f.ctx, SPMLA_BUF_ADVANCE_BY, NULL);
	for (b = 0; b < shape->requests; b++) {
		const int32_t query = (int32_t)requests[b].query_tokens;
		const int32_t to[4] = {PAGE * COLUMNS, PAGE * COLUMNS + 1,
				       query, query - 1};

		by[b] = to[b % 4] - lens[b];
		if (query == 0)
			continue;
		lens[b] = b % 2 ? 0 : to[b % 4];
		gone += b % 2;
	}
	for (i = 0; i < 2; i++) {
		prologue(shape, SPMLA_ADVANCE);
		expect_lens(shape);
		/* What is gone does not come back. */
		for (b = 0; b < shape->requests; b++)
			by[b] = 0;
	}
	status = fixture_status(&f);
	ck_assert_uint_gt(gone, 0);
	ck_assert_uint_eq(status.count, gone);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_LENGTH);
	fixture_close(&f);
}
END_TEST

/* ---- Stores ------------------------------------------------------------- */

enum { WIDE_ROWS = 2, WIDE = 300 };

static int32_t wide[WIDE_ROWS][WIDE];
static int32_t wide_cols[2 * WIDE_ROWS]; /* as TABLE_COLS_MAIN */

/* One store a row, of up to all columns, behind those that are there or over
 * them, with a gap or not; half of the rows join. */
static void
draw_wide(int32_t store_pages[WIDE_ROWS][WIDE])
{
	uint32_t row, c;

	for (row = 0; row < WIDE_ROWS; row++) {
		const uint32_t join = rng_below(&rng, 2);
		const uint32_t first = rng_below(&rng, 2)
					       ? rng_below(&rng, WIDE)
					       : rng_below(&rng, 20);
		const uint32_t count = 1 + rng_below(&rng, WIDE - first);

		int32_t *end = &wide_cols[WIDE_ROWS + row];

		if (join)
			*end = 0;
		requests[row] = (spmla_request){row, 0, 1,
						join ? SPMLA_REQUEST_JOIN : 0};
		for (c = 0; c < count; c++)
			store_pages[row][c] =
				(int32_t)rng_below(&rng, ROWS * COLUMNS);
		stores[row] = (spmla_table_store){SPMLA_GROUP_MAIN, row, first,
						  count, store_pages[row]};
		for (c = (uint32_t)*end; c < first; c++)
			wide[row][c] = -1;
		memcpy(wide[row] + first, store_pages[row], 4 * count);
		if ((uint32_t)*end < first + count)
			*end = (int32_t)(first + count);
		for (c = 0; (int32_t)c < *end && wide[row][c] >= 0; c++)
			;
		wide_cols[row] = (int32_t)c;
	}
}

/* Wider than any subgroup, and two of them than what is fetched at once. */
START_TEST(stores_of_many_columns_reach_each_of_them)
{
	static int32_t store_pages[WIDE_ROWS][WIDE];
	const spmla_shape shape = {4, WIDE_ROWS, 1, 0};
	const uint32_t rounds = fixture_rounds(200, 200);
	spmla_step step = SPMLA_STEP_INIT;
	spmla_config config;
	uint32_t i, row;

	fixture_config(&config);
	config.max_rows = WIDE_ROWS;
	config.max_context_tokens = PAGE * WIDE;
	config.bucket_count = 1;
	config.buckets[0] = shape;
	config.groups[SPMLA_GROUP_MAIN].pool_pages = ROWS * COLUMNS;
	config.max_update_pages = WIDE_ROWS * WIDE;
	fixture_open(&f, &config, 0);
	rng = test_seed() + 901;
	memset(wide_cols, 0, sizeof wide_cols);
	step.requests = requests;
	step.request_count = WIDE_ROWS;
	step.stores = stores;
	step.store_count = WIDE_ROWS;
	for (i = 0; i < rounds; i++) {
		uint64_t ticket = 0;

		draw_wide(store_pages);
		ck_assert_int_eq(spmla_step_write(f.ctx, &step, &ticket, NULL),
				 SPMLA_OK);
		ck_assert_int_eq(spmla_step_prologue(f.ctx, &shape,
						     SPMLA_FROM_RING, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(view(SPMLA_BUF_TABLE_COLS_MAIN), wide_cols,
				 sizeof wide_cols);
		for (row = 0; row < WIDE_ROWS; row++)
			ck_assert_mem_eq(
				(const int32_t *)view(
					SPMLA_BUF_BLOCK_TABLE_MAIN) +
					row * WIDE,
				wide[row],
				4 * (size_t)wide_cols[WIDE_ROWS + row]);
	}
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	fixture_close(&f);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{more_requests_or_tokens_than_items_are_all_there, 2},
		{rows_that_were_overwritten_are_skipped_and_reported, 1},
		{rows_that_leave_their_bounds_are_skipped_and_reported, 2},
		{stores_of_many_columns_reach_each_of_them, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
	};

	return RUN_THEMES(themes);
}
