/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode: the results. What is special about a list of slots is in
 * test_sparse_decode_slots.c.
 */
#include <math.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"

static fixture f;
static decode_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = DECODE_HEADS;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

static void
open_fp8(uint32_t heads, uint32_t topk)
{
	decode_open(&w, SPMLA_LAYOUT_FP8_DS_MLA, heads, 64, topk);
}

static void
close_world(void)
{
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
	decode_close(&w);
}

static void
all_out(uint32_t token, uint32_t head, float want)
{
	const uint16_t *out = decode_out(&w, token, head);
	uint32_t d;

	for (d = 0; d < REF_LATENT; d++)
		ck_assert_uint_eq(out[d], test_bf16(want));
}

static void
zero_q(void)
{
	memset(w.q, 0, (size_t)(w.a.q_token_stride_elems * DECODE_TOKENS) * 2);
}

START_TEST(results_equal_dense_attention_for_any_shape_and_layout)
{
	static const uint32_t layouts[2] = {SPMLA_LAYOUT_FP8_DS_MLA,
					    SPMLA_LAYOUT_MLA_BF16};
	static const uint32_t heads[4] = {1, 3, 8, 64};
	static const uint32_t entries[4] = {1, 2, 61, 64};
	static const uint32_t topk[4] = {1, 64, 65, 150};
	const int i = _i;

	decode_open(&w, layouts[i / 16], heads[i / 4 % 4], entries[i % 4],
		    topk[(i + i / 4) % 4]);
	decode_choose(&w);
	decode_check(&f, &w);
	close_world();
}
END_TEST

START_TEST(sharp_and_flat_softmax_equal_dense_attention)
{
	static const float scales[5] = {4.0f, 1.0f, 0.25f, 1e-3f, 1e-30f};

	open_fp8(3, 200);
	decode_choose(&w);
	w.a.softmax_scale = scales[_i];
	decode_check(&f, &w);
	close_world();
}
END_TEST

/* Keys so that q . k = -2, 0, 3: the maximum moves in the first block and,
 * with 64 entries between, in later ones. */
START_TEST(growing_scores_rescale_what_was_summed)
{
	uint32_t i;

	open_fp8(1, 256);
	for (i = 0; i < 4; i++) {
		decode_put(&w, (int32_t)i, (float)i - 1, 0.25f * (float)i);
		w.slots[i * 64 + i] = (int32_t)i;
		w.slots[w.a.slots_stride_elems + 200 + i] = 3 - (int32_t)i;
	}
	w.a.softmax_scale = 1;
	decode_check(&f, &w);
	close_world();
}
END_TEST

/* A key that f16 does not hold, -1024, is alone in the first block or in the
 * second. The first head's score of it is 0, and 40 of the other key, which alone
 * counts. All other heads have queries of zeros: both keys count alike. */
START_TEST(wide_key_is_weighed_in_whatever_block_it_is)
{
	const float scales[4] = {1024, 1024, 1024, 1024};

	open_fp8(16, 65);
	zero_q();
	w.q[REF_LATENT] = test_bf16(1);
	decode_put(&w, 0, -1, 0);
	memcpy(decode_row(&w, 0) + 512, scales, 16);
	decode_put(&w, 1, 0.5f, 40);
	w.slots[0] = _i;
	w.slots[64] = 1 - _i;
	w.a.softmax_scale = 1;
	decode_check(&f, &w);
	all_out(0, 0, 0.5f);
	all_out(0, 1, -512.0f);
	close_world();
}
END_TEST

/* q = 0: every key weighs 1/n. (1 + 2 + 3) / 3 = 2, lse = ln 3. */
START_TEST(zero_query_is_the_mean)
{
	int32_t i;

	open_fp8(8, 5);
	zero_q();
	for (i = 0; i < 3; i++) {
		decode_put(&w, i + 60, (float)i + 1, 9);
		w.slots[i * 2] = i + 60;
	}
	decode_check(&f, &w);
	all_out(0, 0, 2);
	all_out(0, 7, 2);
	ck_assert_float_eq_tol(decode_lse(&w, 0, 3), 1.0986123f, 2e-7f);
	close_world();
}
END_TEST

/* k is 1 in the latent and 2 in the rope; q is 0.5 everywhere, or -0.5:
 * s = 0.5 * (512 + 128) = 320. exp(-320) alone would be 0 in f32. */
START_TEST(one_key_is_its_value_and_its_score_is_the_lse)
{
	uint32_t t, i;

	open_fp8(1, 1);
	decode_put(&w, 9, 1, 2);
	w.a.softmax_scale = 1;
	for (t = 0; t < 2; t++) {
		for (i = 0; i < REF_DIM; i++)
			w.q[t * w.a.q_token_stride_elems + i] =
				test_bf16(0.5f - (float)t);
		w.slots[t * w.a.slots_stride_elems] = 9;
	}
	decode_check(&f, &w);
	all_out(0, 0, 1);
	all_out(1, 0, 1);
	ck_assert_float_eq(decode_lse(&w, 0, 0), 320);
	ck_assert_float_eq(decode_lse(&w, 1, 0), -320);
	close_world();
}
END_TEST

/* Heads have scores of their own. A weight that is not a power of two is off by
 * up to 2^-8 of itself in bf16, half a step of 1.875. */
START_TEST(one_key_is_its_value_whatever_its_weight_is)
{
	static const uint32_t heads[3] = {5, 20, 40};
	uint32_t h;

	decode_open(&w,
		    _i & 1 ? SPMLA_LAYOUT_MLA_BF16 : SPMLA_LAYOUT_FP8_DS_MLA,
		    heads[_i / 2], 64, 70);
	decode_put(&w, 9, 1.875f, -0.75f);
	w.slots[66] = 9;
	w.a.tokens = 1;
	decode_check(&f, &w);
	for (h = 0; h < heads[_i / 2]; h++)
		all_out(0, h, 1.875f);
	close_world();
}
END_TEST

/* Scores 1 and 0, softmax_scale ln 2 / 2: weights 1 and 2^-0.5 = 0.70711, in
 * bf16 0.70703125. (1 - 1.5 * 0.70703125) / 1.70711 = -145.27 * 2^-12. In a
 * block of its own the second key weighs 1, which brought to the first's
 * maximum is 2^-0.5, not rounded: -145.55 * 2^-12. Relative to a power of two
 * weights are 2^0.5, 1.4140625 in bf16, and 1: (1.4140625 - 1.5) / 2.4140625 =
 * -145.81 * 2^-12. */
START_TEST(weight_is_rounded_to_bf16_relative_to_its_block)
{
	open_fp8(1, 65);
	decode_make_odd(&w);
	zero_q();
	w.q[REF_LATENT] = test_bf16(1);
	w.q[w.a.q_token_stride_elems + REF_LATENT] = test_bf16(1);
	decode_put(&w, 0, 1, 1);
	decode_put(&w, 1, -1.5f, 0);
	w.slots[0] = 1;
	w.slots[1] = 0;
	w.slots[w.a.slots_stride_elems] = 0;
	w.slots[w.a.slots_stride_elems + 64] = 1;
	w.a.softmax_scale = 0.34657359f;
	decode_check(&f, &w);
	all_out(0, 0, (fixture_tiles(&f) ? -146 : -145) * 0x1p-12f);
	all_out(1, 0, -146 * 0x1p-12f);
	close_world();
}
END_TEST

/* 1.5 * 0.3017 = 231.7 * 2^-9, in bf16 232 * 2^-9. With the scale rounded to bf16,
 * 154 * 2^-9, it would be 231 * 2^-9. */
START_TEST(scale_is_not_rounded)
{
	const float scale = 0.3017f;
	uint32_t i;

	open_fp8(1, 1);
	decode_make_odd(&w);
	decode_put(&w, 0, 1.5f, 0);
	for (i = 0; i < REF_SCALES; i++)
		memcpy(decode_row(&w, 0) + 512 + i * 4, &scale, 4);
	w.slots[0] = 0;
	decode_check(&f, &w);
	all_out(0, 0, 232 * 0x1p-9f);
	close_world();
}
END_TEST

START_TEST(each_group_of_128_has_its_own_scale)
{
	static const float scales[4] = {1, 2, 0x1p-6f, 0x1p-126f};
	const uint16_t *out;
	uint32_t i;

	open_fp8(1, 1);
	decode_put(&w, 0, 1.5f, 0);
	memcpy(decode_row(&w, 0) + 512, scales, 16);
	w.slots[0] = 0;
	decode_check(&f, &w);
	out = decode_out(&w, 0, 0);
	for (i = 0; i < 4; i++) {
		ck_assert_uint_eq(out[i * 128], test_bf16(1.5f * scales[i]));
		ck_assert_uint_eq(out[i * 128 + 127],
				  test_bf16(1.5f * scales[i]));
	}
	close_world();
}
END_TEST

/* q = 0, one key of value 3: lse = 0. A sink of 0 takes half of the weight,
 * one of ln 2 two thirds, +inf all, -inf none; the lse never sees it. */
START_TEST(sink_takes_its_share_and_leaves_the_lse)
{
	const float sinks[5] = {0, 0.693147181f, INFINITY, -INFINITY, 300};
	const float want[5] = {1.5f, 1, 0, 3, 0};
	uint32_t h;

	open_fp8(5, 2);
	zero_q();
	decode_put(&w, 7, 3, 1);
	w.slots[1] = 7;
	memcpy(w.sink, sinks, sizeof sinks);
	w.a.attn_sink = w.sink;
	decode_check(&f, &w);
	for (h = 0; h < 5; h++) {
		all_out(0, h, want[h]);
		ck_assert_float_eq(decode_lse(&w, 0, h), 0);
	}
	close_world();
}
END_TEST

/* Two keys of value 1 and score +-3e38, which in log2 units is more than f32
 * has: a sink of +inf still leaves nothing, of -inf all, and one of 0 is far
 * above the keys or far below. In odd rounds lse counts the sink;
 * rows of the last four are e4m3. */
START_TEST(infinite_sink_stands_alone_whatever_the_scores_are)
{
	const float sinks[3] = {INFINITY, -INFINITY, 0};
	const float rounded = test_bf16_value(test_bf16(3e38f));
	const float score = _i & 2 ? -rounded : rounded;
	uint32_t h;

	if (_i & 4)
		open_fp8(3, 2);
	else
		decode_open(&w, SPMLA_LAYOUT_MLA_BF16, 3, 64, 2);
	w.a.softmax_scale = 1;
	zero_q();
	for (h = 0; h < 3; h++)
		w.q[h * w.a.q_head_stride_elems + 575] = test_bf16(0x1p60f);
	decode_put(&w, 7, 1, score * 0x1p-60f);
	decode_put(&w, 9, 1, score * 0x1p-60f);
	w.slots[0] = 7;
	w.slots[1] = 9;
	memcpy(w.sink, sinks, sizeof sinks);
	w.a.attn_sink = w.sink;
	w.a.lse_sink = _i & 1;
	decode_run(&f, &w);
	all_out(0, 0, 0);
	all_out(0, 1, 1);
	all_out(0, 2, score > 0 ? 1 : 0);
	for (h = 0; h < 3; h++) {
		const uint32_t sink = w.a.lse_sink && sinks[h] > score;

		/* ln 2 is nothing beside it. */
		ck_assert_float_eq(decode_lse(&w, 0, h),
				   sink ? sinks[h] : score);
	}
	close_world();
}
END_TEST

START_TEST(random_sinks_equal_dense_attention)
{
	uint32_t h;

	open_fp8(8, 100);
	decode_choose(&w);
	for (h = 0; h < 8; h++)
		w.sink[h] = 8 * rng_float(&w.rng);
	w.sink[2] = INFINITY;
	w.sink[5] = -INFINITY;
	w.a.attn_sink = w.sink;
	decode_check(&f, &w);
	close_world();
}
END_TEST

/* Token 0 has one key whose score is -inf and one of score 0; token 1 has the
 * first alone. */
START_TEST(key_of_score_minus_infinity_weighs_nothing)
{
	uint16_t *q;
	int32_t i;

	decode_open(&w, SPMLA_LAYOUT_MLA_BF16, 1, 64, 2);
	w.a.softmax_scale = 1;
	decode_put(&w, 3, -3e38f, -3e38f);
	decode_put(&w, 4, 0, 1);
	for (i = 0; i < DECODE_TOKENS; i++) {
		q = w.q + i * w.a.q_token_stride_elems;
		memset(q, 0, REF_DIM * 2);
		q[0] = q[1] = test_bf16(2);
		w.slots[i * w.a.slots_stride_elems] = 3;
	}
	w.slots[1] = 4;
	decode_run(&f, &w);
	for (i = 0; i < REF_LATENT; i++) {
		ck_assert_float_eq(test_bf16_value(decode_out(&w, 0, 0)[i]), 0);
		ck_assert_uint_eq(decode_out(&w, 1, 0)[i], 0);
	}
	ck_assert_float_eq(decode_lse(&w, 0, 0), 0);
	ck_assert_float_eq(decode_lse(&w, 1, 0), INFINITY);
	close_world();
}
END_TEST

START_TEST(nan_that_counts_is_not_hidden)
{
	uint32_t d;

	open_fp8(3, 70);
	decode_choose(&w);
	w.slots[66] = 17;
	decode_put_random(&w, 17);
	decode_row(&w, 17)[100] = 0x7F;
	for (d = 0; d < 70; d++) /* token 1 does not use it */
		if (w.slots[w.a.slots_stride_elems + d] == 17)
			w.slots[w.a.slots_stride_elems + d] = -1;
	decode_run(&f, &w);
	ck_assert_float_nan(decode_lse(&w, 0, 0));
	ck_assert_float_nan(decode_lse(&w, 0, 2));
	ck_assert_float_nan(test_bf16_value(decode_out(&w, 0, 1)[511]));
	w.a.tokens = 1;
	w.a.q += w.a.q_token_stride_elems;
	w.a.slots += w.a.slots_stride_elems;
	decode_check(&f, &w);
	close_world();
}
END_TEST

START_TEST(subnormal_codes_count)
{
	uint32_t i, d;

	open_fp8(3, 40);
	decode_choose(&w);
	for (i = 0; i < 40; i++)
		for (d = 0; w.slots[i] >= 0 && d < REF_LATENT; d++)
			decode_row(&w, w.slots[i])[d] &= 0x87;
	decode_check(&f, &w);
	close_world();
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{results_equal_dense_attention_for_any_shape_and_layout, 32},
		{sharp_and_flat_softmax_equal_dense_attention, 5},
		{growing_scores_rescale_what_was_summed, 1},
		{wide_key_is_weighed_in_whatever_block_it_is, 2},
		{zero_query_is_the_mean, 1},
		{one_key_is_its_value_and_its_score_is_the_lse, 1},
		{one_key_is_its_value_whatever_its_weight_is, 6},
		{weight_is_rounded_to_bf16_relative_to_its_block, 1},
		{random_sinks_equal_dense_attention, 1},
	};
	const theme_test edge[] = {
		{sink_takes_its_share_and_leaves_the_lse, 1},
		{infinite_sink_stands_alone_whatever_the_scores_are, 8},
		{key_of_score_minus_infinity_weighs_nothing, 1},
		{nan_that_counts_is_not_hidden, 1},
		{subnormal_codes_count, 1},
	};
	const theme_test layout[] = {
		{scale_is_not_rounded, 1},
		{each_group_of_128_has_its_own_scale, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
	};

	return RUN_THEMES(themes);
}
