/* SPDX-License-Identifier: Apache-2.0
 *
 * See prefill_plan.h: a step of prompts in chunks. The query tokens of the step
 * form one line, one request behind the other. A chunk is a range of that line,
 * so two numbers give its tokens and the length of each of its contexts.
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

/* Checks every request by itself, and sums up the query tokens. Only requests
 * with query tokens need room in a workspace. */
static spmla_status
check_requests(const spmla_config *c, const spmla_step *step, spmla_diag *diag)
{
	uint64_t tokens = 0;
	uint32_t i, k;

	for (i = 0; i < step->request_count; i++) {
		const spmla_request *r = &step->requests[i];
		const uint32_t longest =
			r->query_tokens > 0 && c->prefill_workspace_tokens <
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

/* Walks over the chunks and returns their number; NULL: only counts. */
static uint32_t
walk(const spmla_step *step, const room *most, spmla_prefill_chunk *chunks)
{
	uint32_t i = 0, done = 0, count = 0;
	spmla_prefill_chunk chunk = {{0, 0}, {0, 0}, 0, 0};

	for (;;) {
		chunk.queries.first = chunk.queries.end;
		take_chunk(step, most, &i, &done, &chunk);
		if (chunk.request_count == 0)
			return count;
		if (chunks)
			chunks[count] = chunk;
		count++;
	}
}

spmla_status
spmla_prefill_plan(const spmla_plan *plan, const spmla_step *step,
		   spmla_prefill_chunk *chunks, uint32_t capacity,
		   uint32_t *count, spmla_diag *diag)
{
	spmla_status s = check_call(plan, step, chunks, capacity, count, diag);
	spmla_shape shape;
	uint32_t needed;
	room most;

	if (s == SPMLA_OK)
		s = check_requests(&plan->config, step, diag);
	if (s == SPMLA_OK)
		s = check_rows(&plan->config, step, diag);
	if (s != SPMLA_OK)
		return s;
	shape = spmla_i_shape_at(&plan->config, plan->config.bucket_count);
	most.tokens = shape.tokens;
	most.requests = shape.requests;
	most.context = shape.max_live_context;
	needed = walk(step, &most, NULL);
	if (needed > capacity)
		return spmla_i_fail(diag, SPMLA_E_SPACE, "prefill_plan.chunks",
				    capacity, SPMLA_WANT_AT_LEAST, needed);
	*count = walk(step, &most, chunks);
	return SPMLA_OK;
}

/* The part of a request, with tokens [begin, begin + query_tokens), that is in
 * the chunk; 0 tokens if none is. */
static spmla_request
part_of(const spmla_request *r, uint64_t begin,
	const spmla_prefill_chunk *chunk)
{
	const uint64_t end = begin + r->query_tokens;
	const uint64_t first =
		begin > chunk->queries.first ? begin : chunk->queries.first;
	const uint64_t last =
		end < chunk->queries.end ? end : chunk->queries.end;
	spmla_request part = *r;

	part.query_tokens = first < last ? (uint32_t)(last - first) : 0;
	part.seq_len_tokens = r->seq_len_tokens - (uint32_t)(end - last);
	if (first > begin)
		part.flags &= ~(uint32_t)SPMLA_REQUEST_JOIN;
	return part;
}

/* Returns the chunk that these queries of the step make. Writes its requests
 * unless `requests` is NULL. */
static spmla_prefill_chunk
walk_parts(const spmla_step *step, const spmla_prefill_chunk *chunk,
	   spmla_request *requests)
{
	const uint32_t first = chunk->queries.first;
	spmla_prefill_chunk found = {{first, first}, {0, 0}, 0, 0};
	uint64_t begin = 0;
	uint32_t i;

	for (i = 0; i < step->request_count; i++) {
		const spmla_request part =
			part_of(&step->requests[i], begin, chunk);

		begin += step->requests[i].query_tokens;
		if (part.query_tokens == 0)
			continue;
		if (requests)
			requests[found.request_count] = part;
		if (found.request_count == 0)
			found.requests.first = i;
		found.requests.end = i + 1;
		found.request_count++;
		found.queries.end += part.query_tokens;
		found.live_context += part.seq_len_tokens;
	}
	return found;
}

/* Checks that it is the chunk that its queries make, and not an empty one. */
static spmla_status
check_parts(const spmla_prefill_chunk *chunk, const spmla_prefill_chunk *found,
	    spmla_diag *diag)
{
	const spmla_i_check checks[] = {
		{"chunk_requests.chunk (of this step)", found->request_count,
		 SPMLA_WANT_EQUAL, chunk->request_count},
		{"chunk_requests.chunk.request_count", chunk->request_count,
		 SPMLA_WANT_AT_LEAST, 1},
		{"chunk_requests.chunk.queries.end", chunk->queries.end,
		 SPMLA_WANT_EQUAL, found->queries.end},
		{"chunk_requests.chunk.requests.first", chunk->requests.first,
		 SPMLA_WANT_EQUAL, found->requests.first},
		{"chunk_requests.chunk.requests.end", chunk->requests.end,
		 SPMLA_WANT_EQUAL, found->requests.end},
		{"chunk_requests.chunk.live_context", chunk->live_context,
		 SPMLA_WANT_EQUAL, found->live_context},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_prefill_chunk_requests(const spmla_step *step,
			     const spmla_prefill_chunk *chunk,
			     spmla_request *requests, uint32_t capacity,
			     spmla_diag *diag)
{
	const spmla_i_check pointers[] = {
		{"chunk_requests.step", SPMLA_I_PTR(step), SPMLA_WANT_NOT_NULL,
		 0},
		{"chunk_requests.chunk", SPMLA_I_PTR(chunk),
		 SPMLA_WANT_NOT_NULL, 0},
		{"chunk_requests.requests", capacity == 0 || requests,
		 SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_status s =
		spmla_i_check_all(diag, pointers, SPMLA_I_COUNT(pointers));
	spmla_prefill_chunk found;

	if (s == SPMLA_OK)
		s = spmla_i_check_size(diag, "step.struct_bytes",
				       step->struct_bytes, sizeof *step);
	if (s == SPMLA_OK && step->request_count > 0 && !step->requests)
		s = spmla_i_fail(diag, SPMLA_E_NULL, "step.requests", 0,
				 SPMLA_WANT_NOT_NULL, 0);
	if (s != SPMLA_OK)
		return s;
	found = walk_parts(step, chunk, NULL);
	s = check_parts(chunk, &found, diag);
	if (s != SPMLA_OK)
		return s;
	if (found.request_count > capacity)
		return spmla_i_fail(diag, SPMLA_E_SPACE,
				    "chunk_requests.requests", capacity,
				    SPMLA_WANT_AT_LEAST, found.request_count);
	(void)walk_parts(step, chunk, requests);
	return SPMLA_OK;
}
