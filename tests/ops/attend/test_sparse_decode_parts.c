/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode in splits over V3.2 rows: what split_combine would make of them
 * is worked out here, in double. Splits of V4 rows, and bad parts, are in
 * test_sparse_decode_splits.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"

enum { SPLITS = 3, ROWS = SPLITS + 1 };

static fixture f;
static decode_world w;
static float *split_out, *split_lse;

static void
setup_flags(uint32_t flags)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = DECODE_MOST_HEADS;
	config.flags |= flags;
	fixture_open(&f, &config, 0);
}

static void
setup(void)
{
	setup_flags(0);
}

static void
setup_fixed(void)
{
	setup_flags(SPMLA_CONFIG_BATCH_INVARIANT);
}

static void
teardown(void)
{
	free(split_out);
	free(split_lse);
	decode_close(&w);
	fixture_close(&f);
}

/* Token 0 in three splits of 1, 2 and 1 of its 4 blocks, token 1 whole, in the
 * part of the last of them. */
static void
cut(void)
{
	static const int32_t parts[SPLITS][8] = {{0, 0, 0, 1, 0, 7, 7, 7},
						 {0, 0, 1, 3, 1, 7, 7, 7},
						 {0, 1, 3, 4, 2, 7, 7, 7}};
	static const int32_t num_splits[3] = {0, SPLITS, ROWS};

	split_out = test_alloc(ROWS * w.a.heads * REF_LATENT * 4ull, 0xFF);
	split_lse = test_alloc(ROWS * w.a.heads * 4ull, 0xFF);
	w.a.parts = SPLITS;
	w.a.tile_scheduler_metadata = parts[0];
	w.a.num_splits = num_splits;
	w.a.split_out = split_out;
	w.a.split_lse = split_lse;
	w.a.split_rows = ROWS;
}

/* Head h of token 0 from its splits equals what the whole gave, which of more
 * than 16 heads another kernel may have made. By tiles a split is the mean by
 * its own rounded weights. The sum of those of a split is off by less than
 * 2^-9, of 60 keys by some 2^-12.7; the mean of their values is some 0.1. */
static void
expect_sum(uint32_t h, const uint16_t *out, float lse)
{
	const double least = w.a.heads <= 16 ? 1e-5 : 4e-3;
	const double off = fixture_tiles(&f) ? 1e-4 : 0;
	double weight[SPLITS], sum = 0;
	uint32_t i, d;

	for (i = 0; i < SPLITS; i++) {
		weight[i] = exp2(split_lse[i * w.a.heads + h]);
		sum += weight[i];
	}
	ck_assert_double_eq_tol(log(sum), lse, least);
	for (d = 0; d < REF_LATENT; d++) {
		const double want = test_bf16_value(out[d]);
		double x = 0;

		for (i = 0; i < SPLITS; i++)
			x += weight[i] / sum *
			     split_out[(i * w.a.heads + h) * REF_LATENT + d];
		ck_assert_double_eq_tol(x, want,
					least + off + 0x1.01p-8 * fabs(want));
	}
}

/* Head h of token 1, of one split, equals what the whole gave: to the bit, but
 * that few tokens of more than 16 heads may have a kernel of their own. */
static void
expect_same(const uint16_t *got, const uint16_t *want, float lse, float other)
{
	uint32_t d;

	if (w.a.heads <= 16) {
		ck_assert_mem_eq(got, want, REF_LATENT * 2);
		ck_assert(lse == other);
		return;
	}
	for (d = 0; d < REF_LATENT; d++) {
		const double x = test_bf16_value(want[d]);

		ck_assert_double_eq_tol(test_bf16_value(got[d]), x,
					4e-3 + 0x1.01p-6 * fabs(x));
	}
	ck_assert_double_eq_tol(lse, other, 1e-3);
}

START_TEST(splits_of_v32_rows_sum_to_the_whole)
{
	static const uint32_t heads[3] = {3, 20, 40};
	uint16_t *out;
	float *lse;
	uint32_t h;

	decode_open(&w,
		    _i & 1 ? SPMLA_LAYOUT_MLA_BF16 : SPMLA_LAYOUT_FP8_DS_MLA,
		    heads[_i / 2], 61, 200);
	if (w.a.heads <= 16)
		decode_make_odd(&w);
	decode_choose(&w);
	decode_check(&f, &w);
	out = malloc(w.out_elems * 2);
	lse = malloc(w.lse_elems * 4);
	memcpy(out, w.out, w.out_elems * 2);
	memcpy(lse, w.lse, w.lse_elems * 4);
	cut();
	memset(w.out, 0x5A, w.out_elems * 2);
	memset(w.lse, 0x5A, w.lse_elems * 4);
	decode_run(&f, &w);
	for (h = 0; h < w.a.heads; h++) {
		const size_t head = h * (size_t)w.a.out_head_stride_elems;
		const size_t one = head + (size_t)w.a.out_token_stride_elems;
		const size_t at = h * (size_t)w.a.lse_head_stride_elems;

		expect_sum(h, out + head, lse[at]);
		expect_same(w.out + one, out + one, w.lse[at + 1], lse[at + 1]);
		/* No result, no partial one of the token of one split. */
		ck_assert_uint_eq(w.out[head], 0x5A5A);
		ck_assert(isnan(split_lse[SPLITS * w.a.heads + h]));
	}
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
	free(out);
	free(lse);
}
END_TEST

/* In the second of its blocks, the first of a split of two. */
START_TEST(one_key_of_a_split_is_its_value_whatever_its_weight_is)
{
	uint32_t h, d;

	decode_open(&w, SPMLA_LAYOUT_FP8_DS_MLA, _i ? 40 : 3, 61, 200);
	decode_put(&w, 9, 1.875f, -0.75f);
	w.slots[66] = 9;
	cut();
	decode_run(&f, &w);
	for (h = 0; h < w.a.heads; h++) {
		const float *first = split_out + h * REF_LATENT;
		const float *second = first + w.a.heads * REF_LATENT;

		ck_assert(isinf(split_lse[h]));
		for (d = 0; d < REF_LATENT; d++) {
			ck_assert_float_eq(first[d], 0);
			ck_assert_float_eq_tol(second[d], 1.875f, 1e-6f);
		}
	}
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
}
END_TEST

/* A token of two keys in a split of two tiles, and one that is whole. The second
 * key's weight is the largest, 2^5 to 2^7.8 times the first one's. It is rounded,
 * as that is too little for a new reference. The sum that divides has the rounded
 * weight; lse has not. */
START_TEST(rounding_of_the_largest_weight_cancels)
{
	static const uint32_t heads[3] = {20, 40, 72};
	const int is_hopper = f.device.arch == 90 && !fixture_tiles(&f);
	uint32_t t, h, d;

	decode_open(&w, SPMLA_LAYOUT_FP8_DS_MLA, heads[_i], 61, 200);
	decode_put(&w, 9, 1, 0);
	decode_put(&w, 10, 1.875f, 0.75f);
	for (t = 0; t < DECODE_TOKENS; t++) {
		uint16_t *q = w.q + t * w.a.q_token_stride_elems;
		int32_t *slots = w.slots + t * w.a.slots_stride_elems;

		slots[66] = 9;
		slots[130] = 10;
		for (h = 0; h < w.a.heads; h++, q += w.a.q_head_stride_elems) {
			memset(q, 0, REF_DIM * 2);
			q[REF_LATENT] = test_bf16(64 + (float)h / 2);
		}
	}
	cut();
	decode_run(&f, &w);
	for (h = 0; h < w.a.heads; h++) {
		const double weight =
			exp((64 + h / 2.0) * 0.75 * (double)w.a.softmax_scale);
		const double want = (1 + 1.875 * weight) / (1 + weight);

		ck_assert_double_eq_tol((double)decode_lse(&w, 1, h),
					log(1 + weight),
					is_hopper ? 1e-6 : 1e-5);
		for (d = 0; d < REF_LATENT; d++)
			ck_assert_double_eq_tol(
				split_out[(w.a.heads + h) * REF_LATENT + d],
				want, is_hopper ? 2e-5 : 4e-3);
	}
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
}
END_TEST

/* Each of the tokens in two splits of 2 of its 4 blocks. */
static void
cut_each(int32_t (*parts)[8], int32_t *num_splits)
{
	const uint32_t rows = 2 * w.a.tokens;
	uint32_t i;

	for (i = 0; i < rows; i++) {
		const int32_t t = (int32_t)i / 2, split = (int32_t)i % 2;

		parts[i][0] = parts[i][1] = t;
		parts[i][2] = 2 * split;
		parts[i][3] = 2 * split + 2;
		parts[i][4] = split;
		num_splits[t + 1] = 2 * (t + 1);
	}
	w.a.parts = w.a.split_rows = rows;
	w.a.tile_scheduler_metadata = parts[0];
	w.a.num_splits = num_splits;
}

/* Of 40 heads one token is a small call, six are none (see is_small). */
START_TEST(with_the_flag_a_split_has_the_same_bits_in_every_batch)
{
	enum { TOKENS = 6, HEADS = 40, TWO = 2 * HEADS };
	static int32_t parts[2 * TOKENS][8], num_splits[TOKENS + 1];
	float *out, *lse;

	decode_open_tokens(&w,
			   _i ? SPMLA_LAYOUT_MLA_BF16 : SPMLA_LAYOUT_FP8_DS_MLA,
			   TOKENS, HEADS, 61, 200);
	decode_choose(&w);
	split_out = test_alloc(TOKENS * TWO * REF_LATENT * 4ull, 0xFF);
	split_lse = test_alloc(TOKENS * TWO * 4ull, 0xFF);
	out = malloc(TWO * REF_LATENT * 4);
	lse = malloc(TWO * 4);
	w.a.split_out = split_out;
	w.a.split_lse = split_lse;
	cut_each(parts, num_splits);
	decode_run(&f, &w);
	memcpy(out, split_out, TWO * REF_LATENT * 4);
	memcpy(lse, split_lse, TWO * 4);
	memset(split_out, 0xFF, TWO * REF_LATENT * 4);
	memset(split_lse, 0xFF, TWO * 4);
	w.a.tokens = 1;
	cut_each(parts, num_splits);
	decode_run(&f, &w);
	ck_assert_mem_eq(split_out, out, TWO * REF_LATENT * 4);
	ck_assert_mem_eq(split_lse, lse, TWO * 4);
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
	free(out);
	free(lse);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{splits_of_v32_rows_sum_to_the_whole, 6},
		{one_key_of_a_split_is_its_value_whatever_its_weight_is, 2},
	};
	const theme_test rounding[] = {
		{rounding_of_the_largest_weight_cancels, 3},
	};
	const theme_test determinism[] = {
		{with_the_flag_a_split_has_the_same_bits_in_every_batch, 2},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		/* Without the flag Hopper does small calls by `mma.sync`. */
		THEME("rounding", setup_fixed, teardown, rounding),
		THEME("determinism", setup_fixed, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
