/* SPDX-License-Identifier: Apache-2.0
 *
 * See prefill_plan.h: prompts in chunks. Every split is one greedy walk over
 * the requests, once to count and once to write. Sums have 64 bits.
 */
#include "spmla/internal/prefill.h"

#define FIELD(function, field) #function "." #field

/* The first length that does not fit alone. */
static spmla_status
check_each(const char *field, const uint32_t *lens, uint32_t count,
	   uint32_t most, spmla_diag *diag)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (lens[i] > most)
			return spmla_i_fail_at(diag, SPMLA_E_RANGE, field, i,
					       lens[i], SPMLA_WANT_AT_MOST,
					       most);
	return SPMLA_OK;
}

static spmla_status
check_room(const char *field, uint64_t needed, uint32_t capacity,
	   spmla_diag *diag)
{
	if (needed <= capacity)
		return SPMLA_OK;
	return spmla_i_fail(diag, SPMLA_E_SPACE, field, capacity,
			    SPMLA_WANT_AT_LEAST, needed);
}

/* Walks over the chunks and returns their number. `chunks` may be NULL. */
static uint32_t
walk_chunks(const uint32_t *seq_lens, uint32_t requests,
	    uint32_t workspace_tokens, uint32_t offset, spmla_range *chunks)
{
	uint32_t first, end, count = 0;

	for (first = 0; first < requests; first = end) {
		uint64_t sum = 0;

		for (end = first; end < requests; end++) {
			if (sum + seq_lens[end] > workspace_tokens)
				break;
			sum += seq_lens[end];
		}
		if (chunks)
			chunks[count] =
				(spmla_range){first + offset, end + offset};
		count++;
	}
	return count;
}

spmla_status
spmla_split_prefill_chunks(const uint32_t *seq_lens, uint32_t requests,
			   uint32_t workspace_tokens, uint32_t offset,
			   spmla_range *chunks, uint32_t capacity,
			   uint32_t *count, spmla_diag *diag)
{
	const spmla_i_check checks[] = {
		{FIELD(split_prefill_chunks, count), SPMLA_I_PTR(count),
		 SPMLA_WANT_NOT_NULL, 0},
		{FIELD(split_prefill_chunks, seq_lens),
		 requests == 0 || seq_lens, SPMLA_WANT_NOT_NULL, 0},
		{FIELD(split_prefill_chunks, chunks), capacity == 0 || chunks,
		 SPMLA_WANT_NOT_NULL, 0},
		{FIELD(split_prefill_chunks, offset), offset,
		 SPMLA_WANT_AT_MOST, UINT32_MAX - requests},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK)
		s = check_each(FIELD(split_prefill_chunks, seq_lens), seq_lens,
			       requests, workspace_tokens, diag);
	if (s == SPMLA_OK)
		s = check_room(FIELD(split_prefill_chunks, chunks),
			       walk_chunks(seq_lens, requests, workspace_tokens,
					   offset, NULL),
			       capacity, diag);
	if (s == SPMLA_OK)
		*count = walk_chunks(seq_lens, requests, workspace_tokens,
				     offset, chunks);
	return s;
}

/* Checks that chunk c holds the requests from `first` on. */
static spmla_status
check_chunk(const uint32_t *seq_lens, uint32_t requests,
	    const spmla_range *chunk, uint32_t c, uint32_t first,
	    spmla_diag *diag)
{
	const char *field = FIELD(prefill_workspace_starts, chunks);
	uint64_t rows;

	if (chunk->first != first)
		return spmla_i_fail_at(diag, SPMLA_E_RANGE, field, c,
				       chunk->first, SPMLA_WANT_EQUAL, first);
	if (chunk->end < first)
		return spmla_i_fail_at(diag, SPMLA_E_RANGE, field, c,
				       chunk->end, SPMLA_WANT_AT_LEAST, first);
	if (chunk->end > requests)
		return spmla_i_fail_at(diag, SPMLA_E_RANGE, field, c,
				       chunk->end, SPMLA_WANT_AT_MOST,
				       requests);
	rows = spmla_i_sum_lens(seq_lens + first, chunk->end - first);
	if (rows > UINT32_MAX)
		return spmla_i_fail_at(diag, SPMLA_E_OVERFLOW, field, c, rows,
				       SPMLA_WANT_AT_MOST, UINT32_MAX);
	return SPMLA_OK;
}

spmla_status
spmla_prefill_workspace_starts(const uint32_t *seq_lens, uint32_t requests,
			       const spmla_range *chunks, uint32_t count,
			       uint32_t *starts, spmla_diag *diag)
{
	const spmla_i_check checks[] = {
		{FIELD(prefill_workspace_starts, seq_lens),
		 requests == 0 || seq_lens, SPMLA_WANT_NOT_NULL, 0},
		{FIELD(prefill_workspace_starts, chunks), count == 0 || chunks,
		 SPMLA_WANT_NOT_NULL, 0},
		{FIELD(prefill_workspace_starts, starts),
		 requests == 0 || starts, SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
	uint32_t c, i, next = 0;

	for (c = 0; s == SPMLA_OK && c < count; c++) {
		s = check_chunk(seq_lens, requests, &chunks[c], c, next, diag);
		next = chunks[c].end;
	}
	if (s == SPMLA_OK && next != requests)
		s = spmla_i_fail(diag, SPMLA_E_RANGE,
				 FIELD(prefill_workspace_starts, chunks), next,
				 SPMLA_WANT_EQUAL, requests);
	for (c = 0; s == SPMLA_OK && c < count; c++) {
		uint32_t row = 0;

		for (i = chunks[c].first; i < chunks[c].end; i++) {
			starts[i] = row;
			row += seq_lens[i];
		}
	}
	return s;
}

/* Sums of a chunk of whole requests. */
typedef struct chunk_size {
	uint64_t keys;
	uint64_t queries;
} chunk_size;

/* Where the chunk that begins at `first` ends: one request at least. */
static uint32_t
grow_chunk(const uint32_t *seq_lens, const uint32_t *query_lens,
	   uint32_t requests, uint32_t workspace_keys, uint64_t budget,
	   uint32_t first, chunk_size *size)
{
	uint32_t end = first + 1;

	size->keys = seq_lens[first];
	size->queries = query_lens[first];
	for (; end < requests; end++) {
		const uint64_t keys = size->keys + seq_lens[end];
		const uint64_t queries = size->queries + query_lens[end];

		/* keys <= workspace_keys < 2^32; queries may be any. */
		if (keys > workspace_keys ||
		    (keys > 0 && queries > budget / keys))
			break;
		size->keys = keys;
		size->queries = queries;
	}
	return end;
}

/* Walks over the chunks and returns their number. `chunks` may be NULL. */
static uint64_t
walk_indexer_chunks(const uint32_t *seq_lens, const uint32_t *query_lens,
		    uint32_t requests, uint32_t workspace_keys, uint64_t budget,
		    uint32_t offset, spmla_indexer_chunk *chunks)
{
	uint64_t count = 0, pieces, step, i;
	uint32_t first, end;

	for (first = 0; first < requests; first = end) {
		chunk_size size;

		end = grow_chunk(seq_lens, query_lens, requests, workspace_keys,
				 budget, first, &size);
		if (size.keys == 0 || size.queries == 0)
			continue;
		step = budget / size.keys > 0 ? budget / size.keys : 1;
		pieces = (size.queries - 1) / step + 1;
		for (i = 0; chunks && i < pieces; i++) {
			const uint64_t at = i * step;
			const uint64_t rest = size.queries - at;

			chunks[count + i] = (spmla_indexer_chunk){
				{first + offset, end + offset},
				{(uint32_t)at,
				 (uint32_t)(at + (rest < step ? rest : step))}};
		}
		count += pieces;
	}
	return count;
}

spmla_status
spmla_split_indexer_prefill_chunks(const uint32_t *seq_lens,
				   const uint32_t *query_lens,
				   uint32_t requests, uint32_t workspace_keys,
				   uint64_t max_logits_bytes, uint32_t offset,
				   spmla_indexer_chunk *chunks,
				   uint32_t capacity, uint32_t *count,
				   spmla_diag *diag)
{
	const spmla_i_check checks[] = {
		{FIELD(split_indexer_prefill_chunks, count), SPMLA_I_PTR(count),
		 SPMLA_WANT_NOT_NULL, 0},
		{FIELD(split_indexer_prefill_chunks, seq_lens),
		 requests == 0 || seq_lens, SPMLA_WANT_NOT_NULL, 0},
		{FIELD(split_indexer_prefill_chunks, query_lens),
		 requests == 0 || query_lens, SPMLA_WANT_NOT_NULL, 0},
		{FIELD(split_indexer_prefill_chunks, chunks),
		 capacity == 0 || chunks, SPMLA_WANT_NOT_NULL, 0},
		{FIELD(split_indexer_prefill_chunks, offset), offset,
		 SPMLA_WANT_AT_MOST, UINT32_MAX - requests},
	};
	const uint64_t budget = max_logits_bytes / sizeof(float);
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK)
		s = check_each(FIELD(split_indexer_prefill_chunks, seq_lens),
			       seq_lens, requests, workspace_keys, diag);
	if (s == SPMLA_OK &&
	    spmla_i_sum_lens(query_lens, requests) > UINT32_MAX)
		s = spmla_i_fail(
			diag, SPMLA_E_OVERFLOW,
			FIELD(split_indexer_prefill_chunks, query_lens),
			spmla_i_sum_lens(query_lens, requests),
			SPMLA_WANT_AT_MOST, UINT32_MAX);
	if (s == SPMLA_OK)
		s = check_room(FIELD(split_indexer_prefill_chunks, chunks),
			       walk_indexer_chunks(seq_lens, query_lens,
						   requests, workspace_keys,
						   budget, offset, NULL),
			       capacity, diag);
	if (s == SPMLA_OK)
		*count = (uint32_t)walk_indexer_chunks(seq_lens, query_lens,
						       requests, workspace_keys,
						       budget, offset, chunks);
	return s;
}
