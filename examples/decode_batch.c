/* SPDX-License-Identifier: Apache-2.0
 *
 * Continuous batching: which requests decode in the next step, and in which row
 * (decode_pages.c has the pages). Free rows are a stack too, so a row is used
 * again in the very next step. V3.2: a prompt is put into the caches before the
 * request's first step, except its end, which this step takes in. V4: steps
 * take in all of the prompt within a budget per step; a request that gets
 * nothing of it waits as a paused row.
 */
#include <string.h>

#include "examples/decode_loop.h"

/* Most joins between two steps; so small batches occur too. */
enum { JOINS_A_STEP = 1 };

/* Query tokens of a step of decode, or of prompts. */
static uint64_t
most_tokens(const spmla_plan *plan, uint32_t next_n)
{
	const uint64_t decode =
		(uint64_t)plan->config.max_rows * next_n + MODEL_TAIL_TOKENS;

	return decode > plan->max_tokens ? decode : plan->max_tokens;
}

void
batch_open(batch *b, const spmla_plan *plan, const trace *t,
	   const model_options *m, uint64_t seed)
{
	const spmla_config *c = &plan->config;
	const uint64_t rows = c->max_rows;
	uint32_t i;

	memset(b, 0, sizeof *b);
	b->trace = t;
	b->rows = c->max_rows;
	b->next_n = m->next_n;
	b->start = m->start;
	b->max_update_pages = c->max_update_pages;
	b->max_context = c->max_context_tokens;
	b->seed = seed;
	pages_open(b, plan);
	b->free_rows = keep(rows * sizeof *b->free_rows);
	b->active = keep(rows * sizeof *b->active);
	b->origins = keep(t->count * sizeof *b->origins);
	b->requests = keep(rows * sizeof *b->requests);
	b->accepted = keep(rows * sizeof *b->accepted);
	b->bulk = keep(rows * sizeof *b->bulk);
	b->tokens = keep(most_tokens(plan, m->next_n) * sizeof *b->tokens);
	for (i = 0; i < b->rows; i++)
		b->free_rows[i] = b->rows - 1 - i;
	b->free_row_count = b->rows;
}

/* splitmix64's finaliser, over the inputs of the draw. */
static uint64_t
draw(uint64_t seed, uint64_t request, uint64_t context)
{
	uint64_t z = seed + UINT64_C(0x9e3779b97f4a7c15) *
				    (request << 32 | (context + 1));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* The request whose tokens request `id` takes over, and how many; NULL: none.
 * Ring tables keep only the end of the tokens, so there it takes over all. */
static const running *
choose_parent(const batch *b, uint32_t id, uint32_t answer, uint32_t *prefix)
{
	const uint64_t any = draw(b->seed, id, 0);
	const running *parent;
	uint32_t i, rings = 0;

	*prefix = b->start;
	if (b->fork_every == 0 || b->active_count == 0 ||
	    id % b->fork_every != b->fork_every - 1)
		return NULL;
	for (i = 0; i < b->table_count; i++)
		rings += b->tables[i].ring;
	parent = &b->active[any % b->active_count];
	*prefix = parent->context;
	if (rings == 0 && *prefix > b->start + 1)
		*prefix -= (uint32_t)((any >> 32) % ((*prefix - b->start) / 2));
	if (*prefix > 0 && *prefix + answer < b->max_context)
		return parent;
	*prefix = b->start;
	return NULL;
}

/* Admits the next request of the trace in a free row; 0 if there are no pages.
 */
static int
admit_one(batch *b)
{
	const trace_row *t = &b->trace->rows[b->next];
	running *r = &b->active[b->active_count];
	const running *parent;
	uint32_t prefix, most;

	memset(r, 0, sizeof *r);
	r->id = b->next;
	r->row = b->free_rows[b->free_row_count - 1];
	parent = choose_parent(b, r->id, t->answer, &prefix);
	most = b->max_context - t->answer;
	r->prompt = prefix + t->prompt < most ? prefix + t->prompt : most;
	r->total = r->prompt + t->answer;
	r->context = b->prompt_budget ? prefix : r->prompt;
	r->fresh = 1;
	/* In order: a long request is not overtaken. */
	if (!pages_admit(b, r, parent, prefix))
		return 0;
	if (parent) {
		b->origins[r->id].parent = parent->id + 1;
		b->origins[r->id].tokens = prefix;
		b->forks++;
	}
	pages_take(b, r, r->context);
	b->next++;
	b->free_row_count--;
	b->active_count++;
	b->joins++;
	b->clipped += t->clipped;
	return 1;
}

uint32_t
batch_admit(batch *b)
{
	uint32_t count = 0;

	b->copy_count = 0;
	while (count < JOINS_A_STEP && b->free_row_count > 0 &&
	       b->next < b->trace->count && admit_one(b))
		count++;
	if (b->active_count > b->most_active)
		b->most_active = b->active_count;
	return count;
}

uint32_t
batch_owner(const batch *b, uint32_t request, uint32_t position)
{
	while (position < b->origins[request].tokens)
		request = b->origins[request].parent - 1;
	return request;
}

static uint32_t
least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Query tokens of a request: of its prompt or of its answer. *budget is what
 * the step may still take of prompts. */
static uint32_t
query_tokens(const batch *b, const running *r, uint32_t *budget)
{
	const uint32_t prompt = r->prompt - least(r->prompt, r->context);
	uint32_t n;

	if (prompt == 0)
		return least(r->total - r->context, b->next_n);
	if (b->prompt_budget == 0)
		return prompt;
	n = least(prompt, least(b->prompt_tokens, *budget));
	*budget -= n;
	return n;
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
add_request(batch *b, uint32_t i, uint32_t *budget)
{
	const running *r = &b->active[i];
	const uint32_t n = query_tokens(b, r, budget);
	spmla_request *q = &b->requests[i];
	uint32_t j;

	q->row = r->row;
	q->query_tokens = n;
	q->seq_len_tokens = r->context + n;
	q->flags = 0;
	b->accepted[i] = n;
	if (r->context >= r->prompt)
		b->accepted[i] =
			1 + (uint32_t)(draw(b->seed, r->id, r->context) % n);
	for (j = 0; j < n; j++)
		add_token(b, r, r->context + j, j >= b->accepted[i]);
	if (q->seq_len_tokens > b->longest)
		b->longest = q->seq_len_tokens;
}

static uint32_t
all_pages(const batch *b, const running *r)
{
	uint32_t count = 0, i;

	for (i = 0; i < b->table_count; i++)
		count += r->pages[i];
	return count;
}

/* Growing requests come first: the record certainly has room for their pages. A
 * joining row goes into the record if the rest is enough, and through the
 * staging tables otherwise. */
static void
add_stores(batch *b)
{
	uint32_t left = b->max_update_pages, i;

	for (i = 0; i < b->active_count; i++) {
		running *r = &b->active[i];
		uint32_t had[SPMLA_MAX_TABLE_GROUPS], count;

		memcpy(had, r->pages, sizeof had);
		pages_take(b, r, b->requests[i].seq_len_tokens);
		if (r->fresh)
			continue;
		count = pages_store(b, r, had);
		left -= count;
		b->grows += count > 0;
	}
	for (i = 0; i < b->active_count; i++) {
		const running *r = &b->active[i];

		if (!r->fresh)
			continue;
		if (b->own_tables || all_pages(b, r) <= left) {
			b->requests[i].flags |= SPMLA_REQUEST_JOIN;
			left -= pages_store(b, r, NULL);
		} else {
			b->bulk[b->bulk_count++] = r->row;
			b->bulk_joins++;
		}
	}
}

int
batch_build(batch *b)
{
	uint32_t budget = b->prompt_budget, i;

	b->token_count = 0;
	b->bulk_count = 0;
	b->step = (spmla_step)SPMLA_STEP_INIT;
	for (i = 0; i < b->active_count; i++)
		add_request(b, i, &budget);
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
	uint32_t i;

	b->token_count = 0;
	b->bulk_count = 0;
	b->step = (spmla_step)SPMLA_STEP_INIT;
	b->requests[0] = *request;
	b->step.request_count = 1;
	b->step.requests = b->requests;
	b->step.stores = b->stores;
	if (first)
		(void)pages_store(b, r, NULL);
	for (i = request->query_tokens; i > 0; i--)
		add_token(b, r, request->seq_len_tokens - i, 0);
	r->fresh = 0;
}

void
batch_finish(batch *b)
{
	uint32_t kept_count = 0, prompts = 0, answers = 0, i;

	for (i = 0; i < b->active_count; i++) {
		running r = b->active[i];

		prompts +=
			r.context < r.prompt && b->requests[i].query_tokens > 0;
		answers += r.context >= r.prompt;
		r.context += b->accepted[i];
		r.fresh = 0;
		b->accepted_tokens += b->accepted[i];
		b->rejected_tokens +=
			b->requests[i].query_tokens - b->accepted[i];
		if (r.context < r.total) {
			b->active[kept_count++] = r;
			continue;
		}
		pages_release(b, &r);
		b->free_rows[b->free_row_count++] = r.row;
		b->leaves++;
	}
	b->active_count = kept_count;
	b->mixed_steps += prompts > 0 && answers > 0;
}
