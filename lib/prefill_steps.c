/* SPDX-License-Identifier: Apache-2.0
 *
 * See prefill_plan.h: a step in chunks, of prompts or of decodes and prompts.
 * The query tokens of the step form one line, one request behind the other. A
 * chunk is a range of that line, so two numbers give its tokens and the length
 * of each of its contexts.
 */
#include "spmla/internal/config.h"
#include "spmla/internal/prefill.h"

#include <string.h>

/* The limits of a chunk. */
typedef struct room {
	uint32_t tokens;
	uint32_t requests;
	uint32_t context;
} room;

static spmla_status
check_call(const spmla_plan *plan, const spmla_step *step, const void *chunks,
	   uint32_t capacity, const uint32_t *count, spmla_diag *diag)
{
	const spmla_i_check pointers[] = {
		{"prefill_plan.plan", SPMLA_I_PTR(plan), SPMLA_WANT_NOT_NULL,
		 0},
		{"prefill_plan.step", SPMLA_I_PTR(step), SPMLA_WANT_NOT_NULL,
		 0},
		{"prefill_plan.chunks", capacity == 0 || chunks,
		 SPMLA_WANT_NOT_NULL, 0},
		{"prefill_plan.count", SPMLA_I_PTR(count), SPMLA_WANT_NOT_NULL,
		 0},
	};
	spmla_status s =
		spmla_i_check_all(diag, pointers, SPMLA_I_COUNT(pointers));

	if (s == SPMLA_OK)
		s = spmla_i_check_size(diag, "plan.struct_bytes",
				       plan->struct_bytes, sizeof *plan);
	if (s == SPMLA_OK)
		s = spmla_i_check_size(diag, "step.struct_bytes",
				       step->struct_bytes, sizeof *step);
	if (s == SPMLA_OK && step->request_count > 0 && !step->requests)
		s = spmla_i_fail(diag, SPMLA_E_NULL, "step.requests", 0,
				 SPMLA_WANT_NOT_NULL, 0);
	if (s == SPMLA_OK && step->flags != 0)
		s = spmla_i_fail(diag, SPMLA_E_RECORD, "step.flags",
				 step->flags, SPMLA_WANT_EQUAL, 0);
	if (s == SPMLA_OK && plan->config.max_prefill_tokens == 0)
		s = spmla_i_fail(diag, SPMLA_E_UNSUPPORTED,
				 "config.max_prefill_tokens", 0,
				 SPMLA_WANT_AT_LEAST, 1);
	return s;
}

/* Whether `r` fits a bucket that has those tokens, requests and context taken.
 */
static uint32_t
fits(const spmla_shape *b, const spmla_request *r, uint32_t tokens,
     uint32_t requests, uint32_t context)
{
	return r->query_tokens <= b->next_n &&
	       r->query_tokens <= b->tokens - tokens &&
	       requests < b->requests &&
	       r->seq_len_tokens <= b->max_live_context - context;
}

/* Whether a request runs as a decode: some bucket takes it. */
static uint32_t
is_decode(const spmla_config *c, const spmla_request *r)
{
	uint32_t i;

	for (i = 0; i < c->bucket_count; i++)
		if (fits(&c->buckets[i], r, 0, 0, 0))
			return 1;
	return 0;
}

/* Checks every request by itself, and sums up the query tokens. A request needs
 * room in the workspace only if it has query tokens. With `split`, decodes need
 * none. */
static spmla_status
check_requests(const spmla_config *c, const spmla_step *step, uint32_t split,
	       spmla_diag *diag)
{
	uint64_t tokens = 0;
	uint32_t i, k;

	for (i = 0; i < step->request_count; i++) {
		const spmla_request *r = &step->requests[i];
		const uint32_t longest =
			r->query_tokens > 0 && !(split && is_decode(c, r)) &&
					c->prefill_workspace_tokens <
						c->max_context_tokens
				? c->prefill_workspace_tokens
				: c->max_context_tokens;
		const spmla_i_check checks[] = {
			{"step.requests.row", r->row, SPMLA_WANT_AT_MOST,
			 c->max_rows - 1},
			{"step.requests.seq_len_tokens", r->seq_len_tokens,
			 SPMLA_WANT_AT_MOST, longest},
			{"step.requests.query_tokens", r->query_tokens,
			 SPMLA_WANT_AT_MOST, r->seq_len_tokens},
			{"step.requests.flags", r->flags, SPMLA_WANT_AT_MOST,
			 SPMLA_REQUEST_JOIN},
		};

		for (k = 0; k < SPMLA_I_COUNT(checks); k++)
			if (!spmla_i_keeps(checks[k].got, checks[k].rule,
					   checks[k].want))
				return spmla_i_fail_at(
					diag, SPMLA_E_RECORD, checks[k].field,
					i, checks[k].got, checks[k].rule,
					checks[k].want);
		tokens += r->query_tokens;
	}
	if (tokens > UINT32_MAX)
		return spmla_i_fail(diag, SPMLA_E_OVERFLOW,
				    "step.requests.query_tokens", tokens,
				    SPMLA_WANT_AT_MOST, UINT32_MAX);
	return SPMLA_OK;
}

/* Checks that no row occurs twice, with a bit per row and some rows at a time,
 * so that they fit a small stack. Names the first request that repeats a row.
 */
static spmla_status
check_rows(const spmla_config *c, const spmla_step *step, spmla_diag *diag)
{
	enum { ROWS = 4096 };
	uint64_t seen[ROWS / 64];
	uint32_t end = step->request_count, first, i;

	for (first = 0; first < c->max_rows; first += ROWS) {
		memset(seen, 0, sizeof seen);
		for (i = 0; i < end; i++) {
			const uint32_t row = step->requests[i].row - first;
			const uint64_t bit = UINT64_C(1) << row % 64;

			if (row >= ROWS)
				continue;
			if (seen[row / 64] & bit)
				end = i;
			seen[row / 64] |= bit;
		}
	}
	if (end == step->request_count)
		return SPMLA_OK;
	return spmla_i_fail_at(diag, SPMLA_E_RECORD, "step.requests.row", end,
			       step->requests[end].row, SPMLA_WANT_UNIQUE, 0);
}

/* Takes the next chunk, which begins in request *i with *done of its tokens
 * taken. No single length exceeds the room, so a chunk is never empty while a
 * token is left. */
static void
take_chunk(const spmla_step *step, const room *most, uint32_t *i,
	   uint32_t *done, spmla_prefill_chunk *chunk)
{
	uint32_t tokens = 0;

	chunk->requests = (spmla_range){*i, *i};
	chunk->request_count = 0;
	chunk->live_context = 0;
	while (*i < step->request_count && tokens < most->tokens) {
		const spmla_request *r = &step->requests[*i];
		const uint32_t rest = r->query_tokens - *done;
		const uint32_t part = rest < most->tokens - tokens
					      ? rest
					      : most->tokens - tokens;
		const uint32_t context = r->seq_len_tokens - (rest - part);

		if (rest > 0) {
			if (chunk->request_count == most->requests ||
			    context > most->context - chunk->live_context)
				break;
			if (chunk->request_count == 0)
				chunk->requests.first = *i;
			chunk->requests.end = *i + 1;
			chunk->request_count++;
			chunk->live_context += context;
			tokens += part;
		}
		*done += part;
		if (part == rest) {
			++*i;
			*done = 0;
		}
	}
	chunk->queries.end = chunk->queries.first + tokens;
}

/* Takes whole requests from i on for as long as they fit the bucket; returns
 * the next one. */
static uint32_t
take_bucket(const spmla_step *step, const spmla_shape *b, uint32_t i,
	    spmla_prefill_chunk *chunk)
{
	uint32_t tokens = 0;

	chunk->requests = (spmla_range){i, i};
	chunk->request_count = 0;
	chunk->live_context = 0;
	for (; i < step->request_count; i++) {
		const spmla_request *r = &step->requests[i];

		if (r->query_tokens == 0)
			continue;
		if (!fits(b, r, tokens, chunk->request_count,
			  chunk->live_context))
			break;
		if (chunk->request_count == 0)
			chunk->requests.first = i;
		chunk->requests.end = i + 1;
		chunk->request_count++;
		chunk->live_context += r->seq_len_tokens;
		tokens += r->query_tokens;
	}
	chunk->queries.end = chunk->queries.first + tokens;
	return i;
}

/* Takes the next requests as decodes, as many as a bucket has room for; 0 if
 * the next one is none. */
static uint32_t
take_decodes(const spmla_config *c, const spmla_step *step, uint32_t *i,
	     spmla_prefill_chunk *chunk)
{
	const uint32_t first = *i;
	uint32_t most = 0, b;

	for (b = 0; b < c->bucket_count; b++) {
		spmla_prefill_chunk one = *chunk;
		const uint32_t next =
			take_bucket(step, &c->buckets[b], first, &one);

		if (one.request_count <= most)
			continue;
		most = one.request_count;
		*i = next;
		*chunk = one;
	}
	return most;
}

/* Walks over the chunks and returns their number. With chunks NULL it only
 * counts. With c NULL, every chunk is of prompts. */
static uint32_t
walk(const spmla_config *c, const spmla_step *step, const room *most,
     spmla_prefill_chunk *chunks)
{
	uint32_t i = 0, done = 0, count = 0;
	spmla_prefill_chunk chunk = {{0, 0}, {0, 0}, 0, 0};

	for (;;) {
		chunk.queries.first = chunk.queries.end;
		if (!c || done || !take_decodes(c, step, &i, &chunk))
			take_chunk(step, most, &i, &done, &chunk);
		if (chunk.request_count == 0)
			return count;
		if (chunks)
			chunks[count] = chunk;
		count++;
	}
}

static spmla_status
cut(const spmla_plan *plan, const spmla_step *step, uint32_t split,
    spmla_prefill_chunk *chunks, uint32_t capacity, uint32_t *count,
    spmla_diag *diag)
{
	spmla_status s = check_call(plan, step, chunks, capacity, count, diag);
	const spmla_config *decodes = split && plan ? &plan->config : NULL;
	spmla_shape shape;
	uint32_t needed;
	room most;

	if (s == SPMLA_OK)
		s = check_requests(&plan->config, step, split, diag);
	if (s == SPMLA_OK)
		s = check_rows(&plan->config, step, diag);
	if (s != SPMLA_OK)
		return s;
	shape = spmla_i_shape_at(&plan->config, plan->config.bucket_count);
	most.tokens = shape.tokens;
	most.requests = shape.requests;
	most.context = shape.max_live_context;
	needed = walk(decodes, step, &most, NULL);
	if (needed > capacity)
		return spmla_i_fail(diag, SPMLA_E_SPACE, "prefill_plan.chunks",
				    capacity, SPMLA_WANT_AT_LEAST, needed);
	*count = walk(decodes, step, &most, chunks);
	return SPMLA_OK;
}

spmla_status
spmla_prefill_plan(const spmla_plan *plan, const spmla_step *step,
		   spmla_prefill_chunk *chunks, uint32_t capacity,
		   uint32_t *count, spmla_diag *diag)
{
	return cut(plan, step, 0, chunks, capacity, count, diag);
}

spmla_status
spmla_split_step(const spmla_plan *plan, const spmla_step *step,
		 spmla_prefill_chunk *chunks, uint32_t capacity,
		 uint32_t *count, spmla_diag *diag)
{
	return cut(plan, step, 1, chunks, capacity, count, diag);
}
