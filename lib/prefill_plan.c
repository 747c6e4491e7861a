/* SPDX-License-Identifier: Apache-2.0
 *
 * See prefill_plan.h: the decodes of a batch, and the lengths of context
 * parallel ranks. prefill_chunks.c, prefill_gathered.c and prefill_steps.c have
 * the chunks.
 */
#include "spmla/internal/prefill.h"

#define FIELD(function, field) #function "." #field

/* ---- Decodes and prefills ---------------------------------------------- */

static uint32_t
longest_of(const uint32_t *lens, uint32_t count)
{
	uint32_t longest = 0, i;

	for (i = 0; i < count; i++)
		longest = lens[i] > longest ? lens[i] : longest;
	return longest;
}

static uint32_t
is_uniform(const uint32_t *lens, uint32_t count)
{
	uint32_t i;

	for (i = 1; i < count; i++)
		if (lens[i] != lens[0] && lens[i] != 0)
			return 0;
	return 1;
}

/* Rules 1 to 4: the first request that is a prefill. Sets *all_uniform where
 * rule 3 makes all of them decodes. */
static uint32_t
first_prefill(const uint32_t *lens, uint32_t requests, uint32_t threshold,
	      uint32_t uniform, uint32_t *all_uniform)
{
	uint32_t i;

	*all_uniform = 0;
	if (requests == 0)
		return 0;
	if (longest_of(lens, requests) <= threshold &&
	    (uniform == SPMLA_UNIFORM_NO || threshold <= 1))
		return requests;
	if (lens[0] > threshold)
		return 0;
	if (uniform == SPMLA_UNIFORM_REQUIRED && is_uniform(lens, requests)) {
		*all_uniform = 1;
		return requests;
	}
	for (i = 0; i < requests; i++)
		if (uniform == SPMLA_UNIFORM_REQUIRED ? lens[i] != lens[0]
						      : lens[i] > threshold)
			break;
	return i;
}

spmla_status
spmla_split_decodes_and_prefills(const uint32_t *query_lens, uint32_t requests,
				 uint32_t tokens, uint32_t threshold,
				 uint32_t uniform, spmla_batch_split *split,
				 spmla_diag *diag)
{
	const spmla_i_check checks[] = {
		{FIELD(split_decodes_and_prefills, split), SPMLA_I_PTR(split),
		 SPMLA_WANT_NOT_NULL, 0},
		{FIELD(split_decodes_and_prefills, query_lens),
		 requests == 0 || query_lens, SPMLA_WANT_NOT_NULL, 0},
		{FIELD(split_decodes_and_prefills, uniform), uniform,
		 SPMLA_WANT_AT_MOST, SPMLA_UNIFORM_REQUIRED},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
	uint32_t first, all_uniform;
	uint64_t sum;

	if (s != SPMLA_OK)
		return s;
	if (split->struct_bytes != sizeof *split)
		return spmla_i_fail(diag, SPMLA_E_STRUCT_SIZE,
				    FIELD(split_decodes_and_prefills, split),
				    split->struct_bytes, SPMLA_WANT_EQUAL,
				    sizeof *split);
	sum = spmla_i_sum_lens(query_lens, requests);
	if (sum > UINT32_MAX)
		return spmla_i_fail(
			diag, SPMLA_E_OVERFLOW,
			FIELD(split_decodes_and_prefills, query_lens), sum,
			SPMLA_WANT_AT_MOST, UINT32_MAX);
	if (tokens < sum)
		return spmla_i_fail(diag, SPMLA_E_RANGE,
				    FIELD(split_decodes_and_prefills, tokens),
				    tokens, SPMLA_WANT_AT_LEAST, sum);
	first = first_prefill(query_lens, requests, threshold, uniform,
			      &all_uniform);
	if (all_uniform && (uint64_t)requests * query_lens[0] != tokens)
		return spmla_i_fail(diag, SPMLA_E_RANGE,
				    FIELD(split_decodes_and_prefills, tokens),
				    tokens, SPMLA_WANT_EQUAL,
				    (uint64_t)requests * query_lens[0]);
	split->num_decodes = first;
	split->num_prefills = requests - first;
	/* Padding lies behind the last request, of either kind. */
	split->num_decode_tokens =
		first == requests
			? tokens
			: (uint32_t)spmla_i_sum_lens(query_lens, first);
	split->num_prefill_tokens = tokens - split->num_decode_tokens;
	split->reserved = 0;
	return SPMLA_OK;
}

spmla_status
spmla_reorder_threshold(uint32_t heads, uint32_t arch, uint32_t *threshold,
			spmla_diag *diag)
{
	/* by spmla_reorder_arch; 0: not in that table */
	static const struct {
		uint32_t heads;
		uint32_t threshold[2];
	} rows[] = {
		{8, {0, 128}},    {16, {128, 128}},   {32, {128, 128}},
		{64, {256, 256}}, {128, {256, 1024}},
	};
	const spmla_i_check checks[] = {
		{FIELD(reorder_threshold, threshold), SPMLA_I_PTR(threshold),
		 SPMLA_WANT_NOT_NULL, 0},
		{FIELD(reorder_threshold, heads), heads, SPMLA_WANT_AT_LEAST,
		 1},
		{FIELD(reorder_threshold, heads), heads, SPMLA_WANT_AT_MOST,
		 128},
		{FIELD(reorder_threshold, arch), arch, SPMLA_WANT_AT_MOST,
		 SPMLA_REORDER_SM100},
	};
	const spmla_status s =
		spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
	uint32_t i = 0;

	if (s != SPMLA_OK)
		return s;
	while (rows[i].heads < heads || rows[i].threshold[arch] == 0)
		i++;
	*threshold = rows[i].threshold[arch];
	return SPMLA_OK;
}

/* ---- Context parallel decode ------------------------------------------- */

/* Whole rounds of all ranks, then this rank's part of the last one. */
static uint32_t
local_len(uint32_t len, uint32_t ranks, uint32_t rank, uint32_t interleave)
{
	const uint32_t base = len / interleave / ranks * interleave;
	const uint64_t before =
		(uint64_t)base * ranks + (uint64_t)rank * interleave;
	uint64_t rest = len > before ? len - before : 0;

	if (rest > interleave)
		rest = interleave;
	return base + (uint32_t)rest;
}

spmla_status
spmla_dcp_local_seq_lens(const uint32_t *seq_lens, uint32_t requests,
			 uint32_t ranks, uint32_t rank, uint32_t interleave,
			 uint32_t *local_lens, spmla_diag *diag)
{
	const spmla_i_check checks[] = {
		{FIELD(dcp_local_seq_lens, seq_lens), requests == 0 || seq_lens,
		 SPMLA_WANT_NOT_NULL, 0},
		{FIELD(dcp_local_seq_lens, local_lens),
		 requests == 0 || local_lens, SPMLA_WANT_NOT_NULL, 0},
		{FIELD(dcp_local_seq_lens, ranks), ranks, SPMLA_WANT_AT_LEAST,
		 1},
		{FIELD(dcp_local_seq_lens, interleave), interleave,
		 SPMLA_WANT_AT_LEAST, 1},
		{FIELD(dcp_local_seq_lens, rank), rank, SPMLA_WANT_AT_MOST,
		 (uint64_t)ranks - 1},
	};
	const spmla_status s =
		spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
	uint32_t i;

	for (i = 0; s == SPMLA_OK && i < requests; i++)
		local_lens[i] = local_len(seq_lens[i], ranks, rank, interleave);
	return s;
}
