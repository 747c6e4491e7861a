/* SPDX-License-Identifier: Apache-2.0
 *
 * See prefill_plan.h: the requests of a chunk, found again from its queries.
 */
#include "spmla/internal/config.h"
#include "spmla/internal/prefill.h"

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
