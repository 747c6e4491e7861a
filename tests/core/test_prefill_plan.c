/* SPDX-License-Identifier: Apache-2.0
 *
 * The prefill plan: the vectors of the sources, and what has to hold for any
 * batch. Chunks are in test_prefill_chunks.c, refusals in
 * test_prefill_plan_call.c.
 */
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/prefill_plan.h"

enum { MOST = 40 };

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

/* ---- Decodes and prefills ---------------------------------------------- */

typedef struct split_vector {
	const char *name;
	uint32_t requests, tokens, threshold, uniform;
	uint32_t lens[8];
	uint32_t want[4]; /* decodes, prefills, decode and prefill tokens */
} split_vector;

/* The first is vLLM's; the others follow from its rules, by number. */
static const split_vector splits[] = {
	{"rule 3: not the first length", 3, 6, 128, 1, {1, 2, 3}, {1, 2, 1, 5}},
	{"rule 1", 3, 6, 3, 0, {1, 2, 3}, {3, 0, 6, 0}},
	{"rule 1, uniform of 1", 3, 3, 1, 1, {1, 1, 1}, {3, 0, 3, 0}},
	{"rule 1, uniform of 1 with none", 3, 2, 1, 1, {1, 0, 1}, {3, 0, 2, 0}},
	{"rule 1, threshold 0", 2, 0, 0, 0, {0, 0}, {2, 0, 0, 0}},
	{"rule 2", 3, 9, 3, 0, {4, 3, 2}, {0, 3, 0, 9}},
	{"rule 2, uniform", 3, 12, 3, 1, {4, 4, 4}, {0, 3, 0, 12}},
	{"rule 3: longer ones", 4, 11, 2, 0, {1, 2, 3, 5}, {2, 2, 3, 8}},
	{"rule 3: all alike", 3, 6, 8, 1, {2, 2, 2}, {3, 0, 6, 0}},
	{"rule 3: alike or none", 3, 6, 8, 1, {2, 0, 2}, {3, 0, 6, 0}},
	{"rule 3: none first", 3, 4, 8, 1, {0, 2, 2}, {1, 2, 0, 4}},
	{"rule 4: short after the first",
	 4,
	 9,
	 2,
	 0,
	 {1, 5, 1, 2},
	 {1, 3, 1, 8}},
	{"rule 4, uniform", 4, 7, 8, 1, {2, 2, 1, 2}, {2, 2, 4, 3}},
	{"padding behind decodes", 2, 9, 4, 0, {1, 2}, {2, 0, 9, 0}},
	{"padding behind prefills", 2, 9, 1, 0, {1, 2}, {1, 1, 1, 8}},
	{"uniform of 2 is not rule 1", 2, 3, 2, 1, {1, 2}, {1, 1, 1, 2}},
	{"nothing", 0, 0, 4, 0, {0}, {0, 0, 0, 0}},
	{"nothing, uniform", 0, 0, 4, 1, {0}, {0, 0, 0, 0}},
	{"padding alone", 0, 3, 4, 1, {0}, {0, 0, 3, 0}},
};

START_TEST(batch_is_split_as_the_rules_say)
{
	const split_vector *v = &splits[_i];
	spmla_batch_split got = SPMLA_BATCH_SPLIT_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	const spmla_status s = spmla_split_decodes_and_prefills(
		v->requests ? v->lens : NULL, v->requests, v->tokens,
		v->threshold, v->uniform, &got, &diag);

	ck_assert_msg(s == SPMLA_OK && got.num_decodes == v->want[0] &&
			      got.num_prefills == v->want[1] &&
			      got.num_decode_tokens == v->want[2] &&
			      got.num_prefill_tokens == v->want[3],
		      "%s: %s %u %u %u %u", v->name, spmla_status_name(s),
		      got.num_decodes, got.num_prefills, got.num_decode_tokens,
		      got.num_prefill_tokens);
}
END_TEST

START_TEST(any_batch_is_covered_once_and_decodes_are_short)
{
	uint64_t rng = test_seed();
	uint32_t round, i;

	for (round = 0; round < 2000; round++) {
		const uint32_t requests = 1 + rng_below(&rng, MOST);
		const uint32_t threshold = rng_below(&rng, 8);
		const uint32_t most = 1 + rng_below(&rng, 12);
		const uint32_t uniform = rng_below(&rng, 2);
		spmla_batch_split got = SPMLA_BATCH_SPLIT_INIT;
		uint32_t lens[MOST], tokens = 0, decoded = 0;

		for (i = 0; i < requests; i++)
			tokens += lens[i] = rng_below(&rng, most);
		if (spmla_split_decodes_and_prefills(lens, requests, tokens,
						     threshold, uniform, &got,
						     NULL) != SPMLA_OK) {
			/* only where padding is missing */
			ck_assert(uniform && requests * lens[0] != tokens);
			continue;
		}
		ck_assert_uint_eq(got.num_decodes + got.num_prefills, requests);
		ck_assert_uint_eq(
			got.num_decode_tokens + got.num_prefill_tokens, tokens);
		for (i = 0; i < got.num_decodes; i++) {
			ck_assert_uint_le(lens[i], threshold);
			decoded += lens[i];
		}
		ck_assert_uint_eq(decoded, got.num_decode_tokens);
		if (got.num_prefills > 0)
			ck_assert(
				lens[got.num_decodes] > threshold ||
				(uniform && lens[got.num_decodes] != lens[0]));
	}
}
END_TEST

START_TEST(threshold_is_that_of_the_heads_that_kernels_pad_to)
{
	static const uint32_t vectors[][3] = {
		/* heads, sm_90, sm_100 */
		{8, 128, 128},  {16, 128, 128},   {32, 128, 128},
		{64, 256, 256}, {128, 256, 1024}, {1, 128, 128},
		{33, 256, 256}, {65, 256, 1024},  {17, 128, 128},
	};
	uint32_t i, arch, got;

	for (i = 0; i < COUNT(vectors); i++)
		for (arch = 0; arch < 2; arch++) {
			ck_assert_int_eq(spmla_reorder_threshold(vectors[i][0],
								 arch, &got,
								 NULL),
					 SPMLA_OK);
			ck_assert_uint_eq(got, vectors[i][1 + arch]);
		}
}
END_TEST

/* ---- Context parallel -------------------------------------------------- */

/* Token t belongs to rank t / interleave % ranks. */
START_TEST(local_lengths_count_the_tokens_that_a_rank_owns)
{
	uint32_t ranks, interleave, rank, t;

	for (ranks = 1; ranks <= 4; ranks++)
		for (interleave = 1; interleave <= 5; interleave++) {
			uint32_t owned[4] = {0};

			for (t = 0; t < 60; t++) {
				for (rank = 0; rank < ranks; rank++) {
					uint32_t len = t;

					ck_assert_int_eq(
						spmla_dcp_local_seq_lens(
							&len, 1, ranks, rank,
							interleave, &len, NULL),
						SPMLA_OK);
					ck_assert_uint_eq(len, owned[rank]);
				}
				owned[t / interleave % ranks]++;
			}
		}
}
END_TEST

/* 2^32 - 1 = 3 * 5 * 17 * 257 * 65537: 5 ranks take 858993459 each. */
START_TEST(longest_sequence_does_not_wrap)
{
	uint32_t lens[2] = {UINT32_MAX, 0}, local[2], rank;

	for (rank = 0; rank < 5; rank++) {
		ck_assert_int_eq(spmla_dcp_local_seq_lens(lens, 2, 5, rank, 1,
							  local, NULL),
				 SPMLA_OK);
		ck_assert_uint_eq(local[0], 858993459);
		ck_assert_uint_eq(local[1], 0);
	}
	ck_assert_int_eq(spmla_dcp_local_seq_lens(lens, 1, UINT32_MAX,
						  UINT32_MAX - 1, UINT32_MAX,
						  local, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(local[0], 0);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{batch_is_split_as_the_rules_say, COUNT(splits)},
		{any_batch_is_covered_once_and_decodes_are_short, 1},
		{threshold_is_that_of_the_heads_that_kernels_pad_to, 1},
	};
	const theme_test edge[] = {
		{local_lengths_count_the_tokens_that_a_rank_owns, 1},
		{longest_sequence_does_not_wrap, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
	};

	return RUN_THEMES(themes);
}
