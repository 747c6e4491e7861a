/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of many stores to the tables of V4's groups: more of them than a
 * prologue fetches at first, or at all, or than a subgroup has lanes; in any
 * mixture, and with bad ones between them. After each step all columns up to
 * each row's end are compared with what stores in their order, one by one, leave
 * behind. In the emulator a slot is overwritten as soon as it is given back.
 */
#include <string.h>

#include "spmla/internal/backend.h"
#include "tests/emulator/machine.h"
#include "tests/harness/themes.h"
#include "tests/protocol/v4_step_rig.h"

enum {
	ROWS = 300,
	STORES = 2000,
	PAGES = 10000,
	OWN = 5,    /* groups with a table */
	COLUMNS = 8 /* of C4A's table */
};

/* Few requests; as many as the emulator's blocks have items; so many that a
 * prologue loops over them. */
static const spmla_shape shapes[3] = {
	{1, 8, 1, 0}, {1, 64, 1, 0}, {1, ROWS, 1, 0}};
static const uint32_t own[OWN] = {SPMLA_GROUP_SWA, SPMLA_GROUP_C4A,
				  SPMLA_GROUP_C128A, SPMLA_GROUP_STATE_C4A,
				  SPMLA_GROUP_STATE_C128A};

static fixture f;
static uint64_t rng;
/* What the tables have to hold; last: the end of a row. */
static ref_table tables[OWN];
static uint32_t last[OWN][ROWS];
/* The step. */
static spmla_request requests[ROWS];
static spmla_table_store stores[STORES];
static int32_t pages[PAGES];
static uint8_t bad[STORES]; /* spoilt behind encode */
static uint32_t request_count, store_count, page_count;

/* The host writes its next record as soon as a slot is its own. */
static void
overwrite(const uint64_t *told)
{
	if (told == spmla_view(f.ctx, SPMLA_BUF_RING_CONSUMED, NULL))
		memset(spmla_i_slot(f.ctx, *told), 0xff, f.plan.record_bytes);
}

static void
setup(void)
{
	spmla_config config;
	uint32_t g;

	v4_step_config(&config, V4_SMALL);
	config.max_rows = ROWS;
	config.max_context_tokens = 256 * COLUMNS;
	memcpy(config.buckets, shapes, sizeof shapes);
	config.max_table_stores = STORES;
	config.max_update_pages = PAGES;
	fixture_open(&f, &config, 0);
	for (g = 0; g < OWN; g++)
		ck_assert(ref_table_open(&tables[g], ROWS,
					 f.plan.group_columns[own[g]],
					 config.groups[own[g]].page_tokens,
					 config.groups[own[g]].pool_pages));
	memset(last, 0, sizeof last);
	emulator_host(overwrite);
}

static void
teardown(void)
{
	uint32_t g;

	emulator_host(NULL);
	for (g = 0; g < OWN; g++)
		ref_table_close(&tables[g]);
	fixture_close(&f);
}

static void
begin(void)
{
	request_count = store_count = page_count = 0;
	memset(bad, 0, sizeof bad);
}

/* A paused request, which joins or not. */
static void
request(uint32_t row, uint32_t flags)
{
	uint32_t g;

	requests[request_count++] = (spmla_request){row, 0, 1, flags};
	for (g = 0; g < OWN && flags; g++) {
		ref_table_join(&tables[g], row);
		last[g][row] = 0;
	}
}

/* A store of drawn pages. A bad one changes no table. */
static void
store(uint32_t g, uint32_t row, uint32_t first, uint32_t count, uint8_t is_bad)
{
	const uint32_t pool = f.plan.config.groups[own[g]].pool_pages;
	uint32_t i;

	ck_assert_uint_lt(store_count, STORES);
	ck_assert_uint_le(page_count + count, PAGES);
	for (i = 0; i < count; i++)
		pages[page_count + i] = (int32_t)rng_below(&rng, pool);
	bad[store_count] = is_bad;
	stores[store_count++] = (spmla_table_store){own[g], row, first, count,
						    pages + page_count};
	if (!is_bad) {
		ck_assert(ref_table_store(&tables[g], row, first, count,
					  pages + page_count));
		if (last[g][row] < first + count)
			last[g][row] = first + count;
	}
	page_count += count;
}

static void
check_tables(void)
{
	uint32_t g, row, c;

	for (g = 0; g < OWN; g++) {
		const int32_t *table =
			spmla_view(f.ctx, spmla_i_block_table(own[g]), NULL);
		const int32_t *cols =
			spmla_view(f.ctx, spmla_i_table_cols(own[g]), NULL);
		const uint32_t is_whole = own[g] == SPMLA_GROUP_C4A ||
					  own[g] == SPMLA_GROUP_C128A;
		const ref_table *t = &tables[g];

		for (row = 0; row < ROWS; row++) {
			const uint32_t end = last[g][row];
			const uint32_t at = row * t->columns;

			ck_assert_int_eq(cols[ROWS + row], (int32_t)end);
			c = ref_table_written(t, row);
			ck_assert_int_eq(cols[row],
					 (int32_t)(is_whole ? c : end));
			for (c = 0; c < end; c++)
				if (table[at + c] != t->pages[at + c])
					ck_abort_msg("group %u, row %u, column "
						     "%u: got %d, want %d",
						     own[g], row, c,
						     table[at + c],
						     t->pages[at + c]);
		}
	}
}

/* Makes store i of a record one that no encode writes. */
static void
spoil(spmla_i_record *record, spmla_i_store *s)
{
	const uint32_t columns = f.plan.group_columns[s->group_row >> 24];

	switch (rng_below(&rng, 6)) {
	case 0:
		s->group_row = (s->group_row & 0xffffff) | 7u << 24;
		break;
	case 1:
		s->group_row = (s->group_row & 0xffffff) |
			       (uint32_t)SPMLA_GROUP_INDEX << 24;
		break;
	case 2:
		s->group_row += ROWS;
		break;
	case 3:
		s->count = columns + 1;
		break;
	case 4:
		s->first_col = columns - s->count + 1;
		break;
	default:
		s->first_page = record->pages - s->count + 1;
	}
}

/* The step, with a bucket, and what it has to leave. */
static void
run(uint32_t bucket)
{
	spmla_step step = SPMLA_STEP_INIT;
	uint32_t i, faults = 0, least = UINT32_MAX;
	spmla_device_status status;
	spmla_i_record *record;
	spmla_i_store *s;
	uint64_t ticket;

	step.request_count = request_count;
	step.store_count = store_count;
	step.requests = requests;
	step.stores = stores;
	if (spmla_step_write(f.ctx, &step, &ticket, NULL) != SPMLA_OK)
		ck_abort_msg("write: %s", fixture_diag(&f));
	record = spmla_i_slot(f.ctx, ticket);
	s = (spmla_i_store *)((spmla_request *)(record + 1) + request_count);
	for (i = 0; i < store_count; i++) {
		uint32_t row;

		if (!bad[i])
			continue;
		spoil(record, &s[i]);
		row = s[i].group_row & 0xffffff;
		least = row < least ? row : least;
		faults++;
	}
	ck_assert_int_eq(spmla_step_prologue(f.ctx, &shapes[bucket],
					     SPMLA_FROM_RING, NULL),
			 SPMLA_OK);
	fixture_drain(&f);
	check_tables();
	ck_assert_uint_eq(*(const uint64_t *)spmla_view(
				  f.ctx, SPMLA_BUF_RING_CONSUMED, NULL),
			  ticket);
	status = fixture_status(&f);
	ck_assert_uint_eq(status.count, faults);
	if (faults) {
		ck_assert_uint_eq(status.fault, SPMLA_FAULT_ROW);
		ck_assert_uint_eq(status.row, least);
	}
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
}

/* A record has 16 words, 4 for a request and 5 for a store of a page. The first
 * trip fetches 256 beyond the requests, for 51 such stores, and shared memory
 * holds 4096: too few for the 1500 stores of the last runs. */
START_TEST(every_request_gets_a_page_of_every_group)
{
	const uint32_t bucket = _i < 4 ? 1 : 2, rows = shapes[bucket].requests;
	const uint32_t groups = _i / 2 % 2 ? OWN : 1;
	uint32_t col, i, n;

	rng = test_seed() + 910;
	for (col = 0; col < 2; col++) {
		begin();
		for (i = 0; i < rows; i++)
			request(i, 0);
		/* Group by group, or row by row, from the last one on. */
		for (n = 0; n < rows * groups; n++)
			if (_i % 2)
				store(n / rows, n % rows, col, 1, 0);
			else
				store(n % groups, rows - 1 - n / groups, col, 1,
				      0);
		run(bucket);
	}
}
END_TEST

/* 150 are more than any subgroup has lanes. */
START_TEST(many_stores_to_one_row_keep_their_order)
{
	const uint32_t g = 1, row = 5; /* C4A's */
	uint32_t i;

	rng = test_seed() + 911;
	begin();
	for (i = 0; i < 150; i++)
		store(g, row, 0, 1, 0);
	run(0);
	begin();
	for (i = 0; i < 150; i++)
		store(g, row, i % 3, 1 + i % 2, 0);
	run(0);
	/* A gap, and pages behind it, before those that close it. */
	begin();
	for (i = COLUMNS - 1; i > 2; i--)
		store(g, row, i, 1, 0);
	store(0, row, 3, 1, 0);
	run(0);
	ck_assert_uint_eq(ref_table_written(&tables[g], row), COLUMNS);
	ck_assert_uint_eq(ref_table_written(&tables[0], row), 0);
}
END_TEST

/* One store more, of any kind, to one of the first `rows` rows. */
static void
draw(uint32_t rows)
{
	const uint32_t g = rng_below(&rng, OWN), row = rng_below(&rng, rows);
	const uint32_t columns = tables[g].columns, end = last[g][row];
	const uint8_t is_bad = rng_below(&rng, 20) == 0;
	uint32_t first = end, count = 1;

	switch (rng_below(&rng, 8)) {
	case 0: /* over what is there */
		first = rng_below(&rng, end + 1);
		count = rng_below(&rng, 7);
		break;
	case 1: /* behind a gap, or none */
		first = end + rng_below(&rng, 3);
		break;
	case 2:
		first = rng_below(&rng, columns + 1);
		count = rng_below(&rng, columns + 1);
		break;
	case 3: /* into a gap, if there is one */
		first = ref_table_written(&tables[g], row);
		break;
	default:
		if (end >= columns)
			first = rng_below(&rng, columns);
	}
	first = first < columns ? first : columns;
	count = count < columns - first ? count : columns - first;
	if (store_count < STORES && count <= PAGES - page_count)
		store(g, row, first, count, is_bad);
}

START_TEST(random_stores_are_those_of_the_model)
{
	static const uint32_t most[4] = {4, 40, 300, STORES};
	static const uint32_t rows[4] = {1, 6, 64, ROWS};
	const uint32_t rounds = fixture_rounds(300, 100);
	uint32_t round, n, i;

	rng = test_seed() + 912 + (uint64_t)_i;
	for (round = 0; round < rounds; round++) {
		const uint32_t among = rows[rng_below(&rng, 4)];

		begin();
		n = rng_below(&rng, shapes[_i].requests + 1);
		for (i = 0; i < n; i++)
			request(i, rng_below(&rng, 3) ? 0 : SPMLA_REQUEST_JOIN);
		n = rng_below(&rng, most[rng_below(&rng, 4)] + 1);
		for (i = 0; i < n; i++)
			draw(among);
		run((uint32_t)_i);
	}
}
END_TEST

SUITE
{
	const theme_test many[] = {
		{every_request_gets_a_page_of_every_group, 8},
		{many_stores_to_one_row_keep_their_order, 1},
		{random_stores_are_those_of_the_model, 3},
	};
	const theme themes[] = {
		THEME("many", setup, teardown, many),
	};

	return RUN_THEMES(themes);
}
