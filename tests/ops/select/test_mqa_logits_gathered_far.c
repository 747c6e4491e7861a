/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered where it is large, or lies at odd addresses.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/rng.h"
#include "tests/harness/themes.h"
#include "tests/ops/select/gathered_world.h"

static fixture f;
static gathered_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.index_heads = GATHERED_HEADS;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	gathered_close(&w);
	fixture_close(&f);
}

/* 40 million keys are 5 GB; only what is touched takes memory. */
START_TEST(key_beyond_four_gib_is_found)
{
	const uint32_t keys = 40 * 1000 * 1000, first = keys - 50;
	const size_t k_bytes = (size_t)keys * 128, scale_bytes = keys * 4ull;
	uint8_t *k = test_map(k_bytes + scale_bytes);
	float small[50];

	gathered_open(&w, 3, SPMLA_LOGITS_COMPRESSED);
	w.a.tokens = 1;
	w.starts[0] = 0;
	w.ends[0] = 50;
	gathered_check(&f, &w);
	memcpy(small, gathered_row(&w, 0), sizeof small);
	memcpy(k + (size_t)first * 128, w.k, 50 * 128);
	memcpy(k + k_bytes + first * 4ull, w.k_scales, 50 * 4);
	w.a.keys = keys;
	w.a.k = k;
	w.a.k_scales = (float *)(void *)(k + k_bytes);
	w.starts[0] = (int32_t)first;
	w.ends[0] = (int32_t)keys;
	gathered_check(&f, &w);
	ck_assert_mem_eq(gathered_row(&w, 0), small, sizeof small);
	munmap(k, k_bytes + scale_bytes);
}
END_TEST

/* 4096 bytes are 32 keys. Token 0 sees keys up to 31, token 1 keys 70 to 95. So
 * keys 32 to 63 and 96 to 127 are not read, and have no memory. */
START_TEST(keys_that_no_row_sees_are_not_read)
{
	enum { KEYS = 128 };
	uint8_t *map = mmap(NULL, KEYS * 128, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	float *scales = test_alloc(KEYS * sizeof *scales, 0);
	uint32_t n;

	ck_assert(map != MAP_FAILED);
	gathered_open(&w, 8, SPMLA_LOGITS_COMPRESSED);
	memcpy(map, w.k, 32 * 128);
	memcpy(map + 64 * 128, w.k + 32 * 128, 32 * 128);
	for (n = 0; n < KEYS; n++)
		scales[n] = w.k_scales[n % 64];
	ck_assert(!mprotect(map + 4096, 4096, PROT_NONE) &&
		  !mprotect(map + 3 * 4096, 4096, PROT_NONE));
	w.a.k = map;
	w.a.k_scales = scales;
	w.a.keys = KEYS;
	w.a.tokens = 2;
	w.starts[0] = 3;
	w.ends[0] = 32;
	w.starts[1] = 70;
	w.ends[1] = 96;
	gathered_check(&f, &w);
	munmap(map, KEYS * 128);
	free(scales);
}
END_TEST

START_TEST(queries_and_keys_may_lie_at_any_address)
{
	enum { ELEMS = GATHERED_TOKENS * GATHERED_STRIDE };
	static float aligned[ELEMS];
	uint8_t *q = test_alloc(GATHERED_TOKENS * 8 * 128 + 1, 0);
	uint8_t *k = test_alloc(GATHERED_KEYS * 128 + 4, 0);
	uint32_t offset;

	gathered_open(&w, 8, SPMLA_LOGITS_CLEAN);
	gathered_check(&f, &w);
	memcpy(aligned, w.logits, sizeof aligned);
	memcpy(q + 1, w.q, GATHERED_TOKENS * 8 * 128);
	w.a.q = q + 1;
	for (offset = 1; offset <= 4; offset *= 2) {
		memcpy(k + offset, w.k, GATHERED_KEYS * 128);
		w.a.k = k + offset;
		gathered_check(&f, &w);
		ck_assert_mem_eq(w.logits, aligned, sizeof aligned);
	}
	free(q);
	free(k);
}
END_TEST

/* All have the query of token 1, and up to 7 keys from t % 80 on, if any. */
START_TEST(thousands_of_tokens_are_scored_and_reported_each_as_alone)
{
	enum { MANY = 8200, HEADS = 3, COLUMNS = 8 };
	uint8_t *q = test_alloc(MANY * HEADS * 128, 0);
	float *weights = test_alloc(MANY * HEADS * sizeof *weights, 0);
	int32_t *starts = test_alloc(MANY * sizeof *starts, 0);
	int32_t *ends = test_alloc(MANY * sizeof *ends, 0);
	float *logits = test_alloc(MANY * COLUMNS * sizeof *logits, 0x5A);
	const float untouched = logits[0];
	const float *alone;
	uint32_t t, n;

	gathered_open(&w, HEADS, SPMLA_LOGITS_ABSOLUTE);
	gathered_check(&f, &w);
	alone = gathered_row(&w, 1);
	for (t = 0; t < MANY; t++) {
		memcpy(q + t * HEADS * 128, w.q + HEADS * 128, HEADS * 128);
		memcpy(weights + t * HEADS,
		       w.weights + w.a.weights_stride_elems,
		       HEADS * sizeof *weights);
		starts[t] = (int32_t)(t * 31 % 80);
		ends[t] = starts[t];
		if (t % 100 == 7 || t > 8190)
			ends[t] += (int32_t)(t % 8);
	}
	ends[8197] = GATHERED_KEYS + 1;
	w.a.tokens = MANY;
	w.a.form = SPMLA_LOGITS_COMPRESSED;
	w.a.columns = COLUMNS;
	w.a.q = q;
	w.a.weights = weights;
	w.a.weights_stride_elems = HEADS;
	w.a.starts = starts;
	w.a.ends = ends;
	w.a.logits = logits;
	w.a.logits_stride_elems = COLUMNS;
	ck_assert_int_eq(spmla_mqa_logits_gathered(f.ctx, &w.a, NULL),
			 SPMLA_OK);
	for (t = 0; t < MANY; t++)
		for (n = 0; n < COLUMNS; n++)
			ck_assert_mem_eq(
				&logits[t * COLUMNS + n],
				t != 8197 && starts[t] + (int32_t)n < ends[t]
					? &alone[starts[t] + (int32_t)n]
					: &untouched,
				sizeof untouched);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	ck_assert_uint_eq(fixture_status(&f).row, 8197);
	free(q);
	free(weights);
	free(starts);
	free(ends);
	free(logits);
}
END_TEST

/* Codes of e4m3 that are no NaN. */
static void
random_codes(uint64_t *rng, uint8_t *codes, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		codes[i] = (uint8_t)(rng_below(rng, 0x7f) | rng_below(rng, 2)
								    << 7);
}

/* The bits are the same as in calls with few keys. */
START_TEST(more_keys_than_a_block_holds_at_once_are_scored)
{
	enum { KEYS = 2048, TOKENS = 9, HEADS = 5, PIECE = 64 };
	uint8_t *q = test_alloc(TOKENS * HEADS * 128, 0);
	uint8_t *k = test_alloc(KEYS * 128, 0);
	float *weights = test_alloc(TOKENS * HEADS * sizeof *weights, 0);
	float *scales = test_alloc(KEYS * sizeof *scales, 0);
	float *logits = test_alloc(TOKENS * KEYS * sizeof *logits, 0);
	float small[TOKENS][PIECE];
	int32_t starts[TOKENS], ends[TOKENS];
	uint64_t rng = test_seed();
	uint32_t i, t, first;

	random_codes(&rng, q, TOKENS * HEADS * 128);
	random_codes(&rng, k, KEYS * 128);
	for (i = 0; i < TOKENS * HEADS; i++)
		weights[i] = rng_float(&rng);
	for (i = 0; i < KEYS; i++)
		scales[i] = ldexpf(1, -(int)rng_below(&rng, 9));
	for (t = 0; t < TOKENS; t++) {
		starts[t] = 0;
		ends[t] = KEYS;
	}
	gathered_open(&w, HEADS, SPMLA_LOGITS_ABSOLUTE);
	w.a.tokens = TOKENS;
	w.a.keys = w.a.columns = KEYS;
	w.a.q = q;
	w.a.k = k;
	w.a.k_scales = scales;
	w.a.weights = weights;
	w.a.weights_stride_elems = HEADS;
	w.a.starts = starts;
	w.a.ends = ends;
	w.a.logits = logits;
	w.a.logits_stride_elems = KEYS;
	ck_assert_int_eq(spmla_mqa_logits_gathered(f.ctx, &w.a, NULL),
			 SPMLA_OK);
	w.a.keys = w.a.columns = PIECE;
	w.a.logits = small[0];
	w.a.logits_stride_elems = PIECE;
	for (t = 0; t < TOKENS; t++)
		ends[t] = PIECE;
	for (first = 0; first < KEYS; first += PIECE) {
		w.a.k = k + first * 128;
		w.a.k_scales = scales + first;
		ck_assert_int_eq(spmla_mqa_logits_gathered(f.ctx, &w.a, NULL),
				 SPMLA_OK);
		fixture_drain(&f);
		for (t = 0; t < TOKENS; t++)
			ck_assert_mem_eq(logits + t * KEYS + first, small[t],
					 sizeof small[t]);
	}
	free(q);
	free(k);
	free(weights);
	free(scales);
	free(logits);
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{key_beyond_four_gib_is_found, 1},
		{keys_that_no_row_sees_are_not_read, 1},
		{queries_and_keys_may_lie_at_any_address, 1},
		{thousands_of_tokens_are_scored_and_reported_each_as_alone, 1},
		{more_keys_than_a_block_holds_at_once_are_scored, 1},
	};
	const theme themes[] = {
		THEME("layout", setup, teardown, layout),
	};

	return RUN_THEMES(themes);
}
