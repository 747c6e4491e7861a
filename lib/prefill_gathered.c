/* SPDX-License-Identifier: Apache-2.0
 *
 * See prefill_plan.h: prompts of V4 that share a workspace of gathered keys.
 * One greedy walk, once to count and once to write.
 */
#include "spmla/internal/prefill.h"

#define FIELD(field) "split_gathered_chunks." #field

static uint32_t
compressed(uint32_t seq_len, uint32_t ratio)
{
	return ratio > 1 ? seq_len / ratio : 0;
}

static uint32_t
larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The first request that does not fit alone. */
static spmla_status
check_each(const uint32_t *seq_lens, const uint32_t *gather_lens,
	   uint32_t requests, uint32_t ratio, uint32_t workspace_rows,
	   spmla_diag *diag)
{
	uint32_t i;

	for (i = 0; i < requests; i++) {
		const uint64_t rows = (uint64_t)compressed(seq_lens[i], ratio) +
				      gather_lens[i];

		if (rows > workspace_rows)
			return spmla_i_fail_at(
				diag, SPMLA_E_RANGE, FIELD(seq_lens), i, rows,
				SPMLA_WANT_AT_MOST, workspace_rows);
	}
	return SPMLA_OK;
}

/* Walks over the chunks and returns their number. `chunks` may be NULL. */
static uint32_t
walk(const uint32_t *seq_lens, const uint32_t *gather_lens, uint32_t requests,
     uint32_t ratio, uint32_t workspace_rows, spmla_gathered_chunk *chunks)
{
	uint32_t first, end, count = 0;

	for (first = 0; first < requests; first = end) {
		uint32_t keys = 0, others = 0;

		for (end = first; end < requests; end++) {
			const uint32_t k =
				larger(keys, compressed(seq_lens[end], ratio));
			const uint32_t o = larger(others, gather_lens[end]);

			/* The sum has at most 33 bits. The product fits 64 bits
			 * if fewer than 2^31 requests share a chunk. */
			if (((uint64_t)k + o) * (end + 1 - first) >
			    workspace_rows)
				break;
			keys = k;
			others = o;
		}
		if (chunks)
			chunks[count] = (spmla_gathered_chunk){
				{first, end}, keys, keys + others};
		count++;
	}
	return count;
}

spmla_status
spmla_split_gathered_chunks(const uint32_t *seq_lens,
			    const uint32_t *gather_lens, uint32_t requests,
			    uint32_t ratio, uint32_t workspace_rows,
			    spmla_gathered_chunk *chunks, uint32_t capacity,
			    uint32_t *count, spmla_diag *diag)
{
	const spmla_i_check checks[] = {
		{FIELD(count), SPMLA_I_PTR(count), SPMLA_WANT_NOT_NULL, 0},
		{FIELD(seq_lens), requests == 0 || seq_lens,
		 SPMLA_WANT_NOT_NULL, 0},
		{FIELD(gather_lens), requests == 0 || gather_lens,
		 SPMLA_WANT_NOT_NULL, 0},
		{FIELD(chunks), capacity == 0 || chunks, SPMLA_WANT_NOT_NULL,
		 0},
		{FIELD(ratio), ratio, SPMLA_WANT_AT_LEAST, 1},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
	uint32_t needed;

	if (s == SPMLA_OK)
		s = check_each(seq_lens, gather_lens, requests, ratio,
			       workspace_rows, diag);
	if (s != SPMLA_OK)
		return s;
	needed = walk(seq_lens, gather_lens, requests, ratio, workspace_rows,
		      NULL);
	if (needed > capacity)
		return spmla_i_fail(diag, SPMLA_E_SPACE, FIELD(chunks),
				    capacity, SPMLA_WANT_AT_LEAST, needed);
	*count = walk(seq_lens, gather_lens, requests, ratio, workspace_rows,
		      chunks);
	return SPMLA_OK;
}
