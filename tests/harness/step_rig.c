/* SPDX-License-Identifier: Apache-2.0
 *
 * See step_rig.h: drafts and the scheduler.
 */
#include "tests/harness/step_rig.h"

#include <check.h>
#include <string.h>

void
draft_clear(draft *d)
{
	memset(d, 0, sizeof *d);
}

void
draft_request(draft *d, uint32_t row, uint32_t query, uint32_t len,
	      uint32_t flags)
{
	const spmla_request r = {row, query, len, flags};

	ck_assert_uint_lt(d->request_count, RIG_ROOM);
	d->requests[d->request_count++] = r;
}

void
draft_store(draft *d, uint32_t row, uint32_t first_col, uint32_t count,
	    const int32_t *pages)
{
	const spmla_table_store t = {SPMLA_GROUP_MAIN, row, first_col, count,
				     NULL};

	ck_assert_uint_lt(d->store_count, RIG_ROOM);
	ck_assert_uint_le(d->page_count + count, RIG_ROOM);
	d->stores[d->store_count++] = t;
	memcpy(d->pages + d->page_count, pages, count * sizeof *pages);
	d->page_count += count;
}

const spmla_step *
draft_step(draft *d)
{
	const spmla_step step = SPMLA_STEP_INIT;
	const int32_t *pages = d->pages;
	uint32_t i;

	for (i = 0; i < d->store_count; i++) {
		d->stores[i].pages = pages;
		pages += d->stores[i].count;
	}
	d->step = step;
	d->step.flags = d->flags;
	d->step.request_count = d->request_count;
	d->step.store_count = d->store_count;
	d->step.requests = d->requests;
	d->step.stores = d->stores;
	return &d->step;
}

uint32_t
draft_next_n(const draft *d)
{
	uint32_t most = 0, i;

	for (i = 0; i < d->request_count; i++)
		if (d->requests[i].query_tokens > most)
			most = d->requests[i].query_tokens;
	return most;
}

uint32_t
draft_tokens(const draft *d)
{
	uint32_t sum = 0, i;

	for (i = 0; i < d->request_count; i++)
		sum += d->requests[i].query_tokens;
	return sum;
}

uint64_t
draft_live(const draft *d)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < d->request_count; i++)
		if (d->requests[i].query_tokens)
			sum += d->requests[i].seq_len_tokens < RIG_CONTEXT
				       ? d->requests[i].seq_len_tokens
				       : RIG_CONTEXT;
	return sum;
}

uint32_t
draft_fits(const draft *d, const spmla_shape *shape)
{
	return d->request_count <= shape->requests &&
	       draft_next_n(d) <= shape->next_n &&
	       draft_tokens(d) <= shape->tokens &&
	       (shape->max_live_context == 0 ||
		draft_live(d) <= shape->max_live_context);
}

uint64_t
draft_write(fixture *f, draft *d)
{
	uint64_t ticket = 0;

	if (spmla_step_write(f->ctx, draft_step(d), &ticket, NULL) != SPMLA_OK)
		ck_abort_msg("write: %s", fixture_diag(f));
	return ticket;
}

void
draft_one(draft *d, uint32_t row, uint32_t len)
{
	int32_t pages[4];
	int32_t i;

	for (i = 0; i < 4; i++)
		pages[i] = (int32_t)row * 4 + i;
	draft_clear(d);
	draft_request(d, row, 1, len, SPMLA_REQUEST_JOIN);
	draft_store(d, row, 0, 4, pages);
}

uint64_t
write_one(fixture *f, uint32_t row, uint32_t len)
{
	draft d;

	draft_one(&d, row, len);
	return draft_write(f, &d);
}

/* ---- Graphs ------------------------------------------------------------ */

const spmla_shape rig_shapes[3] = {{4, 4, 1, 0}, {8, 4, 2, 0}, {16, 8, 4, 0}};

spmla_graph
capture_prologue(fixture *f, const spmla_shape *shape, spmla_source source)
{
	spmla_graph graph = 0;

	ck_assert_int_eq(spmla_graph_begin(f->ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_step_prologue(f->ctx, shape, source, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f->ctx, &graph), SPMLA_OK);
	return graph;
}

engine_list
capture_list(fixture *f, const spmla_shape *shape, spmla_source source)
{
	engine_list list = 0;

	ck_assert_int_eq(engine_capture_begin(f->ctx), SPMLA_OK);
	ck_assert_int_eq(spmla_step_prologue(f->ctx, shape, source, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(engine_capture_end(f->ctx, &list), SPMLA_OK);
	return list;
}

void
replay(fixture *f, spmla_graph graph, uint64_t ticket)
{
	if (spmla_graph_replay(f->ctx, graph, ticket, NULL) != SPMLA_OK)
		ck_abort_msg("replay: %s", fixture_diag(f));
}

/* ---- The scheduler ----------------------------------------------------- */

void
sim_open(sim *s, const spmla_plan *plan, uint64_t seed)
{
	const spmla_table_config *g = &plan->config.groups[SPMLA_GROUP_MAIN];

	ck_assert_uint_eq(plan->config.max_rows, RIG_ROWS);
	ck_assert_uint_eq(plan->columns, RIG_COLUMNS);
	ck_assert_uint_eq(g->pool_pages, RIG_POOL);
	memset(s, 0, sizeof *s);
	s->rng = seed;
	s->page_tokens = g->page_tokens;
	s->max_context = plan->config.max_context_tokens;
	s->max_pages = plan->config.max_update_pages;
}

static void
free_pages(sim *s, sim_row *r)
{
	uint32_t i;

	for (i = 0; i < r->cols; i++)
		s->used[r->pages[i]] = 0;
	r->cols = 0;
}

/* Gives the row the pages of `len` tokens; returns 0 if there are not enough
 * now. */
static uint32_t
grow(sim *s, uint32_t row, uint32_t len, draft *d)
{
	sim_row *r = &s->rows[row];
	const uint32_t need = (len + s->page_tokens - 1) / s->page_tokens;
	const uint32_t first = r->cols;
	uint32_t n = 0, p = rng_below(&s->rng, RIG_POOL), i;

	if (len > s->max_context)
		return 0;
	if (need <= first)
		return 1;
	if (d->page_count + need - first > s->max_pages ||
	    d->store_count + 2 > RIG_STORES)
		return 0;
	for (i = 0; i < RIG_POOL && n < need - first; i++, p++)
		if (!s->used[p % RIG_POOL])
			r->pages[first + n++] = (int32_t)(p % RIG_POOL);
	if (n < need - first)
		return 0;
	for (i = first; i < need; i++)
		s->used[r->pages[i]] = 1;
	r->cols = need;
	/* One store, or two of which the second repeats the first. */
	draft_store(d, row, first, need - first, r->pages + first);
	if (need - first > 1 && d->page_count + 1 <= s->max_pages &&
	    rng_below(&s->rng, 2))
		draft_store(d, row, need - 1, 1, r->pages + need - 1);
	return 1;
}

/* Admits a row without pages, with `len` tokens. */
static void
enter(sim *s, uint32_t row, uint32_t query, uint32_t len, draft *d)
{
	sim_row *r = &s->rows[row];

	if (query == 0 || len < query || !grow(s, row, len, d))
		return;
	r->len = len;
	r->last_query = query;
	r->preempted = 0;
	draft_request(d, row, query, len, SPMLA_REQUEST_JOIN);
}

static void
go_on(sim *s, uint32_t row, uint32_t query, draft *d)
{
	sim_row *r = &s->rows[row];
	const uint32_t draw = rng_below(&s->rng, r->last_query + 1);
	const uint32_t rejected = draw < r->last_query ? draw : 0;

	if (query == 0 || !grow(s, row, r->len - rejected + query, d)) {
		draft_request(d, row, 0, r->len, 0); /* paused */
		return;
	}
	r->len = r->len - rejected + query;
	r->last_query = query;
	draft_request(d, row, query, r->len, 0);
}

static void
schedule(sim *s, uint32_t row, uint32_t query, draft *d)
{
	sim_row *r = &s->rows[row];
	const uint32_t dice = rng_below(&s->rng, 24);

	if (r->cols == 0 && r->preempted) {
		if (dice < 8)
			enter(s, row, query, r->preempted, d);
	} else if (r->cols == 0) {
		if (dice < 6)
			enter(s, row, query, 1 + rng_below(&s->rng, 96), d);
		else if (dice < 8)
			draft_request(d, row, 0, 0, 0);
	} else if (dice < 1) {
		free_pages(s, r);
	} else if (dice < 2) {
		r->preempted = r->len;
		free_pages(s, r);
	} else if (dice < 4) {
		go_on(s, row, 0, d);
	} else if (dice < 20) {
		go_on(s, row, query, d);
	}
}

void
sim_draft(sim *s, const spmla_shape *limit, draft *d)
{
	uint32_t order[RIG_ROWS];
	uint32_t i;

	draft_clear(d);
	for (i = 0; i < RIG_ROWS; i++) {
		const uint32_t j = rng_below(&s->rng, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (i = 0; i < RIG_ROWS && d->request_count < limit->requests; i++) {
		const uint32_t left = limit->tokens - draft_tokens(d);
		uint32_t query = 1 + rng_below(&s->rng, limit->next_n);

		query = query < left ? query : left;
		schedule(s, order[i], query, d);
	}
}
