/* SPDX-License-Identifier: Apache-2.0
 *
 * MXFP4 index keys on the gathered road: indexer_k_gather copies them as they
 * are, and they score as in the paged operation, which answers to the
 * reference.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/mqa_world.h"

#include "spmla/ops/indexer_k_gather.h"
#include "spmla/ops/mqa_logits_gathered.h"

enum { KEYS = 150, AFTER = 16 };

static fixture f;
static mqa_world w;
static uint8_t *codes;
static int32_t *scales;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.index_heads = 8;
	fixture_open(&f, &config, 0);
	codes = test_alloc((KEYS + AFTER) * 64 + 4, 0x5A);
	scales = test_alloc((KEYS + AFTER) * 4, 0x5A);
}

static void
teardown(void)
{
	mqa_close(&w);
	free(codes);
	free(scales);
	fixture_close(&f);
}

/* The keys of row 2, which tokens 0 and 2 have; zeros for a page of -1. */
static void
gather(uint32_t entries)
{
	static const int32_t ends[2] = {0, KEYS}, row = 2;
	const spmla_indexer_k_gather_args a = {
		.struct_bytes = sizeof a,
		.requests = 1,
		.keys = KEYS + AFTER,
		.rows = 3,
		.columns = w.a.columns,
		.table_stride_elems = w.a.table_stride_elems,
		.cu_seq_lens = ends,
		.req_row = &row,
		.block_table = w.table,
		.dst_k = codes,
		.dst_scale = (float *)(void *)scales,
		.cache = w.a.cache};
	static const uint8_t zeros[64];
	uint32_t n;

	ck_assert_int_eq(spmla_indexer_k_gather(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	for (n = 0; n < KEYS; n++) {
		const uint32_t page =
			(uint32_t)w.table[2 * w.a.table_stride_elems +
					  n / entries];

		if (page == UINT32_MAX) {
			ck_assert_mem_eq(codes + n * 64, zeros, 64);
			ck_assert_uint_eq((uint32_t)scales[n],
					  SPMLA_INDEX_MISSING);
			continue;
		}
		ck_assert_mem_eq(codes + n * 64,
				 mqa_entry(&w.a.cache, page, n % entries), 64);
		ck_assert_mem_eq(scales + n,
				 mqa_scales(&w.a.cache, page, n % entries), 4);
	}
	for (n = KEYS * 64; n < (KEYS + AFTER) * 64; n++)
		ck_assert_uint_eq(codes[n], 0x5A);
	ck_assert_int_eq(scales[KEYS], 0x5A5A5A5A);
}

/* The keys at a multiple of 16 bytes, or 4 bytes later. */
START_TEST(scores_are_those_of_the_paged_operation)
{
	static const uint32_t entries[3] = {64, 1, 30};
	static const int32_t starts[1] = {3}, ends[1] = {KEYS};
	float got[KEYS + 2], largest = 0;
	spmla_mqa_logits_gathered_args a = {.struct_bytes = sizeof a,
					    .tokens = 1,
					    .heads = 8,
					    .keys = KEYS,
					    .form = SPMLA_LOGITS_CLEAN,
					    .columns = KEYS + 1,
					    .weights_stride_elems = 8,
					    .starts = starts,
					    .ends = ends,
					    .logits = got,
					    .logits_stride_elems = KEYS + 2,
					    .layout = SPMLA_LAYOUT_INDEX_MXFP4};
	const float *paged;
	uint32_t n;

	mqa_open_mxfp4(&w, 8, entries[_i / 2]);
	mqa_check(&f, &w);
	gather(entries[_i / 2]);
	memmove(codes + 4 * (_i % 2), codes, KEYS * 64);
	a.q = w.q;
	a.q_scales = w.q_scales;
	a.weights = w.weights;
	a.k = codes + 4 * (_i % 2);
	a.k_scales = (const float *)(const void *)scales;
	memset(got, 0x5A, sizeof got);
	ck_assert_int_eq(spmla_mqa_logits_gathered(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	paged = w.logits + w.starts[0];
	for (n = 3; n < KEYS; n++)
		largest = fmaxf(largest, fabsf(paged[n]));
	for (n = 3; n < KEYS; n++)
		if (fixture_on_cpu() || fixture_tiles(&f))
			ck_assert_float_eq(got[n], paged[n]);
		else
			ck_assert_float_eq_tol(got[n], paged[n],
					       0x1p-12f * largest);
	for (n = 0; n < 3; n++)
		ck_assert_float_eq(got[n], -INFINITY);
	ck_assert_float_eq(got[KEYS], -INFINITY);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* In mqa_logits and in mqa_logits_gathered. */
START_TEST(a_missing_key_scores_minus_infinity)
{
	static const int32_t starts[1] = {0}, ends[1] = {KEYS};
	float got[KEYS];
	spmla_mqa_logits_gathered_args a = {.struct_bytes = sizeof a,
					    .tokens = 1,
					    .heads = 8,
					    .keys = KEYS,
					    .columns = KEYS,
					    .weights_stride_elems = 8,
					    .starts = starts,
					    .ends = ends,
					    .logits = got,
					    .logits_stride_elems = KEYS,
					    .layout = SPMLA_LAYOUT_INDEX_MXFP4};
	uint32_t n;

	mqa_open_mxfp4(&w, 8, 30);
	w.table[2 * w.a.table_stride_elems + 3] = -1;
	mqa_check(&f, &w);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	gather(30);
	mqa_expect_status(&f, SPMLA_FAULT_PAGE, 2);
	a.q = w.q;
	a.q_scales = w.q_scales;
	a.weights = w.weights;
	a.k = codes;
	a.k_scales = (const float *)(const void *)scales;
	ck_assert_int_eq(spmla_mqa_logits_gathered(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	for (n = 0; n < KEYS; n++) {
		ck_assert_int_eq(w.logits[w.starts[0] + n] == -INFINITY,
				 n / 30 == 3);
		ck_assert_int_eq(got[n] == -INFINITY, n / 30 == 3);
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{scores_are_those_of_the_paged_operation, 6},
		{a_missing_key_scores_minus_infinity, 1},
	};
	const theme themes[] = {THEME("shape", setup, teardown, shape)};

	return RUN_THEMES(themes);
}
