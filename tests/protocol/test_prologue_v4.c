/* SPDX-License-Identifier: Apache-2.0
 *
 * The prologue of V4 against its model, at random: from the ring, from the
 * device and by ADVANCE. Tables are of every kind, and rings wrap around.
 * Lengths grow, shrink and jump; many are at the ends of groups of 4 and 128,
 * or near 1M. Pages are missing, and logits have no room.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/protocol/v4_step_rig.h"

static fixture f;
static v4_model m;
static uint64_t rng;

/* What a row of the engine's knows of itself. */
typedef struct sim_row {
	uint32_t len; /* 0: not here */
	uint32_t last_query;
} sim_row;

static sim_row rows[V4_ROWS];

/* Tokens so far that ended a group of 4, of 128. */
static uint32_t ends[2];

static uint32_t
below(uint32_t bound)
{
	return rng_below(&rng, bound);
}

/* `sms`: multiprocessors of a substitute's device; 0: as many as it has. */
static void
open_kind(v4_kind kind, uint32_t sms)
{
	spmla_config config;

	rng = test_seed() + 1000 * (uint64_t)kind;
	memset(rows, 0, sizeof rows);
	memset(ends, 0, sizeof ends);
	v4_step_config(&config, kind);
	fixture_multiprocessors(sms);
	fixture_open(&f, &config, 0);
	fixture_multiprocessors(0);
	v4_model_open(&m, &f);
}

static void
close_kind(void)
{
	fixture_drain(&f);
	v4_model_close(&m);
	fixture_close(&f);
}

/* ---- Drawing steps ----------------------------------------------------- */

/* Ends of groups, of pages, of a ring and of the context are likely. */
static uint32_t
draw_len(void)
{
	const spmla_config *c = &f.plan.config;
	const uint32_t most = c->max_context_tokens;
	const uint32_t unit[4] = {4, 128, c->groups[below(7)].page_tokens,
				  c->window_tokens};
	uint32_t u, len;

	switch (below(4)) {
	case 0:
		return 1 + below(3 * c->window_tokens);
	case 1:
		return most - below(300 < most ? 300 : most);
	case 2:
		return 1 + below(most);
	default:
		u = unit[below(4)];
		len = u * (1 + below(most / u)) + below(5);
		return len > 2 && len - 2 < most ? len - 2 : 1;
	}
}

static int32_t
draw_page(uint32_t group)
{
	return (int32_t)below(f.plan.config.groups[group].pool_pages);
}

static void
store(v4_draft *d, uint32_t group, uint32_t row, uint32_t first, uint32_t count)
{
	int32_t pages[V4_PAGES];
	uint32_t i;

	for (i = 0; i < count; i++)
		pages[i] = draw_page(group);
	if (d->store_count < V4_STORES && d->page_count + count <= V4_PAGES)
		v4_draft_store(d, group, row, first, count, pages);
}

/* Pages from position `from` to `len`; now and then some are forgotten, in a
 * ring too, or come a second time. */
static void
store_pages(v4_draft *d, uint32_t row, uint32_t from, uint32_t len)
{
	const spmla_config *c = &f.plan.config;
	uint32_t g;

	for (g = 0; g < SPMLA_V4_GROUPS; g++) {
		const uint32_t page = c->groups[g].page_tokens;
		const uint32_t ring = c->groups[g].ring_columns;
		uint32_t first = (from + page - 1) / page;
		uint32_t end = (len + page - 1) / page;

		if (c->groups[g].source != SPMLA_TABLE_RING)
			continue;
		if (ring) {
			end = ring;
			first = from && below(8) ? end : 0;
		}
		if (below(12) == 0 && first < end)
			end -= 1 + below(end - first);
		if (below(12) == 0 && first < end)
			first += below(end - first);
		if (first < end)
			store(d, g, row, first, end - first);
	}
}

static uint64_t
live(const v4_draft *d)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < d->request_count; i++)
		if (d->requests[i].query_tokens)
			sum += d->requests[i].seq_len_tokens;
	return sum;
}

static uint32_t
tokens(const v4_draft *d)
{
	uint32_t sum = 0, i;

	for (i = 0; i < d->request_count; i++)
		sum += d->requests[i].query_tokens;
	return sum;
}

static void
schedule(v4_draft *d, uint32_t row, uint32_t query, const spmla_shape *limit)
{
	sim_row *r = &rows[row];
	const uint32_t join = r->len == 0 || below(8) == 0;
	const uint32_t kept =
		join ? 0 : r->len - below(r->last_query + 1) % r->len;
	uint32_t len = join ? draw_len() : kept + query;

	if (limit->max_live_context < 100)
		len = join ? query + below(10) : len;
	if (below(10) == 0) {
		v4_draft_request(d, row, 0, below(2) ? r->len : 0, 0);
		return;
	}
	if (len < query || len > f.plan.config.max_context_tokens ||
	    live(d) + len > limit->max_live_context) {
		r->len = 0;
		return;
	}
	store_pages(d, row, kept, len);
	v4_draft_request(d, row, query, len, join ? SPMLA_REQUEST_JOIN : 0);
	r->len = len;
	r->last_query = query;
}

static void
draw(v4_draft *d, const spmla_shape *limit)
{
	uint32_t order[V4_ROWS], i;

	v4_draft_clear(d);
	for (i = 0; i < V4_ROWS; i++) {
		const uint32_t j = below(i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (i = 0; i < V4_ROWS && d->request_count < limit->requests; i++) {
		const uint32_t left = limit->tokens - tokens(d);
		const uint32_t query = 1 + below(limit->next_n);

		if (below(5))
			schedule(d, order[i], query < left ? query : left,
				 limit);
	}
}

/* ---- Running them ------------------------------------------------------ */

/* The engine's own tables and lengths change between steps. */
static void
engine_writes(uint32_t count)
{
	int32_t *row_len = spmla_view(f.ctx, SPMLA_BUF_ROW_LEN, NULL);
	uint32_t g, i;

	for (g = 0; g < SPMLA_V4_GROUPS; g++)
		for (i = 0; m.engine[g] && i < count; i++)
			v4_model_engine(
				&m, g, below(V4_ROWS),
				below(f.plan.group_columns[g]),
				below(40)  ? draw_page(g)
				: below(2) ? -1
					   : (int32_t)f.plan.config.groups[g]
						     .pool_pages);
	for (i = 0; i < V4_ROWS; i++) {
		m.row_len[i] = (int32_t)rows[i].len - (int32_t)below(3);
		row_len[i] = m.row_len[i];
	}
}

static void
advance(uint32_t bucket)
{
	const int32_t far = (int32_t)f.plan.config.max_context_tokens / 4;
	int32_t by[V4_REQUESTS];
	uint32_t i;

	for (i = 0; i < V4_REQUESTS; i++)
		by[i] = below(3)   ? (int32_t)below(6) - 2
			: below(2) ? (int32_t)below((uint32_t)far)
				   : 127;
	v4_step_advance(&m, &f, by, bucket);
}

static void
count_ends(const spmla_shape *shape)
{
	const int64_t *four =
		spmla_view(f.ctx, SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C4A, NULL);
	const int64_t *all = spmla_view(
		f.ctx, SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C128A, NULL);
	uint32_t t;

	for (t = 0; t < shape->tokens; t++) {
		ends[0] += four[t] >= 0;
		ends[1] += all[t] >= 0;
	}
}

static void
one_step(void)
{
	const uint32_t count = f.plan.config.max_prefill_tokens ? 4 : 3;
	const uint32_t dice = below(10), limit = below(count);
	const uint32_t bucket = below(8) ? limit : below(count);
	const spmla_shape shape = v4_shape(&f.plan, limit);
	v4_draft d;

	engine_writes(dice == 0 ? 60 : 6);
	if (dice < 3) {
		advance(bucket);
		return;
	}
	draw(&d, &shape);
	d.flags = below(4) ? 0 : SPMLA_STEP_LENS_ON_DEVICE;
	if (dice > 4) {
		v4_step_ring(&m, &f, &d, bucket);
		return;
	}
	if (d.request_count && below(6) == 0)
		d.requests[0].row = V4_ROWS + below(3);
	if (d.request_count && below(6) == 0)
		d.requests[d.request_count - 1].seq_len_tokens +=
			f.plan.config.max_context_tokens;
	v4_step_device(&m, &f, &d, bucket);
}

START_TEST(random_steps_are_those_of_the_model)
{
	const v4_kind kind = (v4_kind)_i;
	const uint32_t steps = kind == V4_FAR ? fixture_rounds(1000, 300)
					      : fixture_rounds(3000, 1000);
	uint32_t i;

	open_kind(kind, 0);
	for (i = 0; i < 4; i++)
		engine_writes(2000); /* mostly full */
	for (i = 0; i < steps; i++) {
		one_step();
		count_ends(&f.plan.config.buckets[0]);
	}
	/* Nothing of what this is about was left out. */
	if (steps >= 300) {
		ck_assert_uint_gt(ends[0], 20);
		ck_assert_uint_gt(ends[1], 0);
		ck_assert_uint_gt(m.seen[SPMLA_FAULT_TOO_LARGE], 0);
		ck_assert_uint_gt(m.seen[SPMLA_FAULT_LENGTH], 0);
		ck_assert_uint_gt(m.seen[SPMLA_FAULT_PAGE], 0);
		ck_assert_uint_gt(m.seen[SPMLA_FAULT_ROW], 0);
		if (kind == V4_TIGHT)
			ck_assert_uint_gt(m.seen[SPMLA_FAULT_LOGITS], 0);
	}
	close_kind();
}
END_TEST

/* The prologue of a decode gets fewer blocks than it has tokens, or one. */
START_TEST(steps_of_few_multiprocessors_are_those_of_the_model)
{
	static const uint32_t sms[3] = {1, 2, 7};
	uint32_t i;

	open_kind(V4_WIDE, sms[_i]);
	for (i = 0; i < 4; i++)
		engine_writes(2000);
	for (i = 0; i < fixture_rounds(300, 100); i++)
		one_step();
	ck_assert_uint_gt(m.seen[SPMLA_FAULT_PAGE], 0);
	close_kind();
}
END_TEST

SUITE
{
	const theme_test random[] = {
		{random_steps_are_those_of_the_model, V4_KINDS},
		{steps_of_few_multiprocessors_are_those_of_the_model, 3},
	};
	const theme themes[] = {THEME("random", NULL, NULL, random)};

	return RUN_THEMES(themes);
}
