/* SPDX-License-Identifier: Apache-2.0
 *
 * Continuous batching: who decodes in the next step, in which row and pages.
 *
 * A request is let in only if all pages that it can ever need are free or will
 * not be needed by others ("promised"), so that nobody has to be thrown out;
 * pages are then taken one by one as it grows. Free rows and pages are stacks:
 * what was given back last is used first, in the very next step, which is what
 * the step protocol allows and what would show a table that keeps old columns.
 */
#include <string.h>

#include "examples/decode_loop.h"

/* Prompts that are taken in between two steps; so small batches occur too. */
enum { JOINS_A_STEP = 1 };

/* Of a step that decodes, or of prompts. */
static uint64_t
most_tokens(const spmla_plan *plan, uint32_t next_n)
{
	const uint64_t decode =
		(uint64_t)plan->config.max_rows * next_n + MODEL_TAIL_TOKENS;

	return decode > plan->max_tokens ? decode : plan->max_tokens;
}

void
batch_open(batch *b, const spmla_plan *plan, const trace *t, uint32_t next_n,
	   uint64_t seed)
{
	const spmla_config *c = &plan->config;
	const uint32_t pages = c->groups[SPMLA_GROUP_MAIN].pool_pages;
	const uint64_t rows = c->max_rows;
	uint32_t i;

	memset(b, 0, sizeof *b);
	b->trace = t;
	b->rows = c->max_rows;
	b->columns = plan->columns;
	b->page_tokens = c->groups[SPMLA_GROUP_MAIN].page_tokens;
	b->next_n = next_n;
	b->max_update_pages = c->max_update_pages;
	b->seed = seed;
	b->table = keep(rows * plan->columns * sizeof *b->table);
	b->table_cols = keep(rows * sizeof *b->table_cols);
	b->free_pages = keep(pages * sizeof *b->free_pages);
	b->page_used = keep(pages);
	b->free_rows = keep(rows * sizeof *b->free_rows);
	b->active = keep(rows * sizeof *b->active);
	b->requests = keep(rows * sizeof *b->requests);
	b->stores = keep(rows * sizeof *b->stores);
	b->accepted = keep(rows * sizeof *b->accepted);
	b->bulk = keep(rows * sizeof *b->bulk);
	b->tokens = keep(most_tokens(plan, next_n) * sizeof *b->tokens);
	for (i = 0; i < pages; i++)
		b->free_pages[i] = (int32_t)(pages - 1 - i);
	for (i = 0; i < b->rows; i++)
		b->free_rows[i] = b->rows - 1 - i;
	b->free_page_count = pages;
	b->free_row_count = b->rows;
}

static uint32_t
pages_for(const batch *b, uint32_t tokens)
{
	return (tokens + b->page_tokens - 1) / b->page_tokens;
}

/* Gives r the pages that its first `tokens` positions lie in. */
static void
take_pages(batch *b, running *r, uint32_t tokens)
{
	const uint32_t want = pages_for(b, tokens);
	int32_t *columns = b->table + (uint64_t)r->row * b->columns;

	while (r->pages < want) {
		const int32_t page = b->free_pages[--b->free_page_count];

		columns[r->pages++] = page;
		r->promised--;
		b->promised_pages--;
		b->pages_reused += b->page_used[page];
		b->page_used[page] = 1;
	}
	b->table_cols[r->row] = (int32_t)r->pages;
}

uint32_t
batch_admit(batch *b)
{
	uint32_t count = 0;

	while (count < JOINS_A_STEP && b->free_row_count > 0 &&
	       b->next < b->trace->count) {
		const trace_row *t = &b->trace->rows[b->next];
		const uint32_t want = pages_for(b, t->prompt + t->answer);
		running *r = &b->active[b->active_count];

		/* In order: a long request is not overtaken. */
		if (want > b->free_page_count - b->promised_pages)
			break;
		memset(r, 0, sizeof *r);
		r->id = b->next++;
		r->row = b->free_rows[--b->free_row_count];
		r->prompt = t->prompt;
		r->total = t->prompt + t->answer;
		r->context = t->prompt;
		r->promised = want;
		r->fresh = 1;
		b->promised_pages += want;
		take_pages(b, r, t->prompt);
		b->active_count++;
		b->joins++;
		b->clipped += t->clipped;
		count++;
	}
	if (b->active_count > b->most_active)
		b->most_active = b->active_count;
	return count;
}

/* splitmix64's finaliser over what the draw depends on. */
static uint64_t
draw(uint64_t seed, uint64_t request, uint64_t context)
{
	uint64_t z = seed + UINT64_C(0x9e3779b97f4a7c15) *
				    (request << 32 | (context + 1));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint32_t
query_tokens(const batch *b, const running *r)
{
	const uint32_t left = r->total - r->context;

	if (r->context < r->prompt)
		return r->prompt - r->context;
	return left < b->next_n ? left : b->next_n;
}

static void
add_token(batch *b, const running *r, uint32_t position, uint32_t draft)
{
	token *t = &b->tokens[b->token_count++];

	t->request = r->id;
	t->row = r->row;
	t->position = position;
	t->draft = draft;
}

/* The request's part of the step, and its tokens. */
static void
add_request(batch *b, uint32_t i)
{
	const running *r = &b->active[i];
	const uint32_t n = query_tokens(b, r);
	spmla_request *q = &b->requests[i];
	uint32_t j;

	q->row = r->row;
	q->query_tokens = n;
	q->seq_len_tokens = r->context + n;
	q->flags = 0;
	b->accepted[i] = 1 + (uint32_t)(draw(b->seed, r->id, r->context) % n);
	if (r->context < r->prompt)
		b->accepted[i] = n;
	for (j = 0; j < n; j++)
		add_token(b, r, r->context + j, j >= b->accepted[i]);
	if (q->seq_len_tokens > b->longest)
		b->longest = q->seq_len_tokens;
}

/* The record gets the columns of r from `first` on. */
static void
add_store(batch *b, const running *r, uint32_t first, uint32_t *pages_left)
{
	spmla_table_store *s = &b->stores[b->step.store_count++];

	s->group = SPMLA_GROUP_MAIN;
	s->row = r->row;
	s->first_col = first;
	s->count = r->pages - first;
	s->pages = b->table + (uint64_t)r->row * b->columns + first;
	*pages_left -= s->count;
}

/* The requests that grow come first: what they take of the record's room for
 * pages is certain to fit. A joining row goes into the record if the rest is
 * enough, and through the staging table otherwise. */
static void
add_stores(batch *b)
{
	uint32_t left = b->max_update_pages, i;

	for (i = 0; i < b->active_count; i++) {
		running *r = &b->active[i];
		const uint32_t had = r->pages;

		take_pages(b, r, r->context + query_tokens(b, r));
		if (r->fresh || r->pages == had)
			continue;
		add_store(b, r, had, &left);
		b->grows++;
	}
	for (i = 0; i < b->active_count; i++) {
		const running *r = &b->active[i];

		if (!r->fresh)
			continue;
		if (r->pages <= left) {
			b->requests[i].flags |= SPMLA_REQUEST_JOIN;
			add_store(b, r, 0, &left);
		} else {
			b->bulk[b->bulk_count++] = r->row;
			b->bulk_joins++;
		}
	}
}

int
batch_build(batch *b)
{
	uint32_t i;

	b->token_count = 0;
	b->bulk_count = 0;
	b->step = (spmla_step)SPMLA_STEP_INIT;
	for (i = 0; i < b->active_count; i++)
		add_request(b, i);
	add_stores(b);
	b->step.request_count = b->active_count;
	b->step.requests = b->requests;
	b->step.stores = b->stores;
	return b->active_count > 0;
}

void
batch_build_prompt(batch *b, running *r, const spmla_request *request,
		   uint32_t first)
{
	uint32_t left = b->max_update_pages, i;

	b->token_count = 0;
	b->bulk_count = 0;
	b->step = (spmla_step)SPMLA_STEP_INIT;
	b->requests[0] = *request;
	b->step.request_count = 1;
	b->step.requests = b->requests;
	b->step.stores = b->stores;
	if (first)
		add_store(b, r, 0, &left);
	for (i = request->query_tokens; i > 0; i--)
		add_token(b, r, request->seq_len_tokens - i, 0);
	r->fresh = 0;
}

static void
leave(batch *b, const running *r)
{
	const int32_t *columns = b->table + (uint64_t)r->row * b->columns;
	uint32_t i;

	for (i = 0; i < r->pages; i++)
		b->free_pages[b->free_page_count++] = columns[i];
	b->promised_pages -= r->promised;
	b->table_cols[r->row] = 0;
	b->free_rows[b->free_row_count++] = r->row;
	b->leaves++;
}

void
batch_finish(batch *b)
{
	uint32_t kept_count = 0, i;

	for (i = 0; i < b->active_count; i++) {
		running r = b->active[i];

		b->mixed_steps += r.context < r.prompt && b->active_count > 1;
		r.context += b->accepted[i];
		r.fresh = 0;
		b->accepted_tokens += b->accepted[i];
		if (r.context == r.total)
			leave(b, &r);
		else
			b->active[kept_count++] = r;
	}
	b->active_count = kept_count;
}
