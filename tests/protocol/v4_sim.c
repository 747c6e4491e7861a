/* SPDX-License-Identifier: Apache-2.0
 *
 * See v4_sim.h.
 */
#include "tests/protocol/v4_sim.h"

#include <check.h>
#include <string.h>

const uint32_t v4_sim_groups[V4_SIM_TABLES] = {
	SPMLA_GROUP_SWA, SPMLA_GROUP_C4A, SPMLA_GROUP_C128A,
	SPMLA_GROUP_STATE_C4A, SPMLA_GROUP_STATE_C128A};

void
v4_sim_open(v4_sim *s, const spmla_plan *plan, uint64_t seed)
{
	uint32_t i;

	memset(s, 0, sizeof *s);
	s->rng = seed;
	s->plan = plan;
	ck_assert_uint_eq(plan->config.max_rows, V4_ROWS);
	for (i = 0; i < V4_SIM_TABLES; i++) {
		const uint32_t g = v4_sim_groups[i];
		const uint32_t columns = plan->group_columns[g];

		ck_assert_uint_eq(plan->group_table[g], g);
		ck_assert_uint_le(columns, V4_SIM_COLUMNS);
		ck_assert_uint_le(columns * V4_ROWS,
				  plan->config.groups[g].pool_pages);
		ck_assert_uint_le(plan->config.groups[g].pool_pages,
				  V4_SIM_POOL);
	}
}

/* A free page of the table's pools, from anywhere. */
static int32_t
take_page(v4_sim *s, uint32_t table)
{
	const uint32_t pool =
		s->plan->config.groups[v4_sim_groups[table]].pool_pages;
	uint32_t p = rng_below(&s->rng, pool);

	while (s->used[table][p])
		p = (p + 1) % pool;
	s->used[table][p] = 1;
	return (int32_t)p;
}

/* Gives the row the pages of `len` tokens. */
static void
grow(v4_sim *s, uint32_t row, uint32_t len, v4_draft *d)
{
	v4_sim_row *r = &s->rows[row];
	uint32_t i;

	for (i = 0; i < V4_SIM_TABLES; i++) {
		const uint32_t g = v4_sim_groups[i], first = r->cols[i];
		const uint32_t page = s->plan->config.groups[g].page_tokens;
		uint32_t need = (len + page - 1) / page;

		if (need > s->plan->group_columns[g])
			need = s->plan->group_columns[g];
		while (r->cols[i] < need)
			r->pages[i][r->cols[i]++] = take_page(s, i);
		if (first < need)
			v4_draft_store(d, g, row, first, need - first,
				       r->pages[i] + first);
	}
}

static void
leave(v4_sim *s, uint32_t row)
{
	v4_sim_row *r = &s->rows[row];
	uint32_t i, k;

	for (i = 0; i < V4_SIM_TABLES; i++)
		for (k = 0; k < r->cols[i]; k++)
			s->used[i][r->pages[i][k]] = 0;
	memset(r, 0, sizeof *r);
	s->left++;
}

/* With a length that is short, or soon past a group of 128, or any. */
static void
join(v4_sim *s, uint32_t row, uint32_t query, v4_draft *d)
{
	const uint32_t most = s->plan->config.max_context_tokens;
	const uint32_t kind = s->near_ends ? 1 : rng_below(&s->rng, 3);
	v4_sim_row *r = &s->rows[row];
	uint32_t len = 1 + rng_below(&s->rng, 12);

	if (kind == 1)
		len = 128 * (1 + rng_below(&s->rng, most / 128 - 1)) -
		      rng_below(&s->rng, 6);
	else if (kind == 2)
		len = 1 + rng_below(&s->rng, most);
	r->id = ++s->ids;
	r->len = len < query ? query : len;
	r->last_query = query;
	grow(s, row, r->len, d);
	v4_draft_request(d, row, query, r->len, SPMLA_REQUEST_JOIN);
	s->joined++;
}

/* The positions of a step that the row takes part in. */
static void
note(v4_sim *s, const v4_sim_row *r)
{
	const uint32_t g = SPMLA_GROUP_SWA;
	const uint32_t held = s->plan->group_columns[g] *
			      s->plan->config.groups[g].page_tokens;
	uint32_t p;

	for (p = r->len - r->last_query; p < r->len; p++) {
		s->rounds += p >= held;
		s->ends[0] += p % 4 == 3;
		s->ends[1] += p % 128 == 127;
	}
}

static void
go_on(v4_sim *s, uint32_t row, uint32_t query, v4_draft *d)
{
	v4_sim_row *r = &s->rows[row];
	const uint32_t rejected = rng_below(&s->rng, r->last_query);
	const uint32_t len = r->len - rejected + query;

	if (len > s->plan->config.max_context_tokens) {
		leave(s, row);
		return;
	}
	r->len = len;
	r->last_query = query;
	grow(s, row, len, d);
	v4_draft_request(d, row, query, len, 0);
	s->grown++;
	s->rejected += rejected;
}

static void
schedule(v4_sim *s, uint32_t row, uint32_t query, v4_draft *d)
{
	v4_sim_row *r = &s->rows[row];
	const uint32_t dice = rng_below(&s->rng, 24);

	if (query && r->id == 0 && dice < 10)
		join(s, row, query, d);
	else if (r->id == 0 || dice >= 22)
		return;
	else if (dice < 1) {
		leave(s, row);
		return;
	} else if (dice < 3 || query == 0) {
		v4_draft_request(d, row, 0, r->len, 0);
		s->paused++;
		return;
	} else
		go_on(s, row, query, d);
	note(s, r);
}

void
v4_sim_draft(v4_sim *s, const spmla_shape *limit, v4_draft *d)
{
	uint32_t order[V4_ROWS], left = limit->tokens, i;

	v4_draft_clear(d);
	for (i = 0; i < V4_ROWS; i++) {
		const uint32_t j = rng_below(&s->rng, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (i = 0; i < V4_ROWS && d->request_count < limit->requests; i++) {
		const uint32_t before = d->request_count;
		uint32_t query = 1 + rng_below(&s->rng, limit->next_n);

		query = query < left ? query : left;
		schedule(s, order[i], query, d);
		if (d->request_count > before)
			left -= d->requests[before].query_tokens;
	}
}
