/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_prefill: the results. Which indices count is in
 * test_sparse_prefill_indices.c.
 */
#include <math.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/prefill_world.h"

static fixture f;
static prefill_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = PREFILL_HEADS;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	prefill_close(&w);
	fixture_close(&f);
}

START_TEST(results_equal_dense_attention_for_any_shape)
{
	static const uint32_t heads[3] = {1, 5, 8};
	static const uint32_t topk[4] = {1, 64, 65, 150};

	prefill_open(&w, _i & 1 ? 512 : 576, heads[_i / 2 % 3], topk[_i / 6]);
	prefill_choose(&w);
	prefill_check(&f, &w);
}
END_TEST

/* A tile has 64 entries, 16 for each warp that copies. Where all 16 count, their
 * rows are copied in another way than in token 1's second tile. */
START_TEST(every_entry_may_count)
{
	static const uint32_t topk[4] = {64, 128, 320, 350};

	prefill_open(&w, _i & 1 ? 512 : 576, 8, topk[_i / 2]);
	prefill_choose_keys(&w);
	if (w.a.topk > 100)
		prefill_indices(&w, 1)[100] = -1;
	prefill_check(&f, &w);
}
END_TEST

/* Some fill no block of 32 or 64 heads. */
START_TEST(as_many_heads_as_the_plan_has_and_fewer)
{
	static const uint32_t heads[3] = {20, 40, PREFILL_HEADS};

	prefill_open(&w, 576, heads[_i], 40);
	prefill_choose(&w);
	prefill_check(&f, &w);
}
END_TEST

/* Rows of kv that are aligned to two bytes only. */
START_TEST(rows_may_be_an_odd_number_of_values_apart)
{
	prefill_open(&w, _i ? 512 : 576, 3, 70);
	w.a.kv_stride_elems = w.a.dim + 1;
	prefill_choose(&w);
	prefill_check(&f, &w);
}
END_TEST

START_TEST(sharp_and_flat_softmax_equal_dense_attention)
{
	static const float scales[5] = {4.0f, 1.0f, 0.25f, 1e-3f, 1e-30f};

	prefill_open(&w, 512, 3, 200);
	prefill_choose(&w);
	w.a.softmax_scale = scales[_i];
	prefill_check(&f, &w);
}
END_TEST

/* q = 0: every key weighs 1/n. (1 + 2 + 3) / 3 = 2, lse = ln 3 = 1.0986123 or
 * log2 3 = 1.5849625, the largest score is 0. */
START_TEST(zero_query_is_the_mean_and_its_lse_the_logarithm_of_the_count)
{
	int32_t i;

	prefill_open(&w, _i & 2 ? 512 : 576, 8, 70);
	w.a.lse_base = (uint32_t)_i & 1;
	prefill_zero_q(&w);
	for (i = 0; i < 3; i++) {
		prefill_put(&w, i + 60, (float)i + 1, 9);
		prefill_indices(&w, 0)[i * 33] = i + 60;
	}
	prefill_check(&f, &w);
	prefill_all_out(&w, 0, 0, 2);
	prefill_all_out(&w, 0, 7, 2);
	ck_assert_float_eq_tol(prefill_lse(&w, 0, 3),
			       _i & 1 ? 1.5849625f : 1.0986123f, 3e-7f);
	ck_assert_float_eq(prefill_max(&w, 0, 3), 0);
}
END_TEST

/* k is 1 in the latent and 2 in the rope, q is 0.5: s = 0.5 * (512 + 128) =
 * 320, without a rope 256. With a softmax_scale of ln 2 the base 2 form is s
 * itself. */
START_TEST(one_key_is_its_value_and_its_score_is_lse_and_max)
{
	const float score = _i & 2 ? 256 : 320;
	uint32_t i;

	prefill_open(&w, _i & 2 ? 512 : 576, 1, 1);
	prefill_put(&w, 9, 1, 2);
	for (i = 0; i < w.a.dim; i++)
		w.q[i] = test_bf16(0.5f);
	prefill_indices(&w, 0)[0] = 9;
	w.a.lse_base = (uint32_t)_i & 1;
	w.a.softmax_scale = _i & 1 ? 0.693147181f : 1;
	prefill_check(&f, &w);
	prefill_all_out(&w, 0, 0, 1);
	ck_assert_float_eq_tol(prefill_lse(&w, 0, 0), score, 1e-4f);
	ck_assert_float_eq_tol(prefill_max(&w, 0, 0), score, 1e-4f);
}
END_TEST

/* As sparse_decode: heads have scores of their own. */
START_TEST(one_key_is_its_value_whatever_its_weight_is)
{
	static const uint32_t heads[3] = {5, 20, 40};
	uint32_t h;

	prefill_open(&w, 576, heads[_i], 70);
	prefill_put(&w, 9, 1.875f, -0.75f);
	prefill_indices(&w, 0)[66] = 9;
	prefill_check(&f, &w);
	for (h = 0; h < heads[_i]; h++)
		prefill_all_out(&w, 0, h, 1.875f);
}
END_TEST

/* As sparse_decode: scores 1 and 0, softmax_scale ln 2 / 2: weights 1 and
 * 2^-0.5 = 0.70711, in bf16 0.70703125. (1 - 1.5 * 0.70703125) / 1.70711 =
 * -145.27 * 2^-12; in a block of its own the second key's weight is not
 * rounded: -145.55 * 2^-12. By tiles they are 2^0.5, in bf16 1.4140625, and 1,
 * wherever they are: (1.4140625 - 1.5) / 2.41406 = -145.81 * 2^-12. */
START_TEST(weight_is_rounded_to_bf16_relative_to_its_block)
{
	prefill_open(&w, 576, 1, 65);
	/* Token 1 not for Hopper's kernel, whose weights are relative to the
	 * largest score of some earlier block: it takes no odd stride. */
	w.a.q_head_stride_elems |= !_i;
	prefill_zero_q(&w);
	w.q[REF_LATENT] = test_bf16(1);
	w.q[w.a.q_token_stride_elems + REF_LATENT] = test_bf16(1);
	prefill_put(&w, 0, 1, 1);
	prefill_put(&w, 1, -1.5f, 0);
	prefill_indices(&w, 0)[0] = 1;
	prefill_indices(&w, 0)[1] = 0;
	prefill_indices(&w, 1)[0] = 0;
	prefill_indices(&w, 1)[64] = 1;
	w.a.softmax_scale = 0.34657359f;
	prefill_check(&f, &w);
	prefill_all_out(&w, 0, 0, (fixture_tiles(&f) ? -146 : -145) * 0x1p-12f);
	if (!_i)
		prefill_all_out(&w, 1, 0, -146 * 0x1p-12f);
}
END_TEST

START_TEST(random_sinks_equal_dense_attention)
{
	uint32_t h;

	prefill_open(&w, _i ? 512 : 576, 8, 100);
	prefill_choose(&w);
	for (h = 0; h < 8; h++)
		w.sink[h] = 8 * rng_float(&w.rng);
	w.sink[2] = INFINITY;
	w.sink[5] = -INFINITY;
	w.a.attn_sink = w.sink;
	prefill_check(&f, &w);
}
END_TEST

/* q = 0, one key of value 3: lse = 0. A sink of 0 takes half of the weight, one
 * of ln 2 two thirds, +inf all, -inf none; lse and max never see it. */
START_TEST(sink_takes_its_share_and_leaves_the_logits)
{
	const float sinks[5] = {0, 0.693147181f, INFINITY, -INFINITY, 300};
	const float want[5] = {1.5f, 1, 0, 3, 0};
	uint32_t h;

	prefill_open(&w, 512, 5, 2);
	prefill_zero_q(&w);
	prefill_put(&w, 7, 3, 1);
	prefill_indices(&w, 0)[1] = 7;
	memcpy(w.sink, sinks, sizeof sinks);
	w.a.attn_sink = w.sink;
	w.a.lse_base = (uint32_t)_i;
	prefill_check(&f, &w);
	for (h = 0; h < 5; h++) {
		prefill_all_out(&w, 0, h, want[h]);
		ck_assert_float_eq(prefill_lse(&w, 0, h), 0);
		ck_assert_float_eq(prefill_max(&w, 0, h), 0);
	}
}
END_TEST

/* Two keys of value 1 and score +-3e38, which in log2 units is more than f32
 * has: a sink of +inf still leaves nothing, of -inf all, and one of 0 is far
 * above the keys or far below. In odd rounds lse counts the sink. */
START_TEST(infinite_sink_stands_alone_whatever_the_scores_are)
{
	const float sinks[3] = {INFINITY, -INFINITY, 0};
	const float rounded = test_bf16_value(test_bf16(3e38f));
	const float score = _i & 2 ? -rounded : rounded;
	uint32_t h;

	prefill_open(&w, 576, 3, 2);
	w.a.softmax_scale = 1;
	prefill_zero_q(&w);
	for (h = 0; h < 3; h++)
		w.q[h * w.a.q_head_stride_elems + 575] = test_bf16(1);
	prefill_put(&w, 7, 1, score);
	prefill_put(&w, 9, 1, score);
	prefill_indices(&w, 0)[0] = 7;
	prefill_indices(&w, 0)[1] = 9;
	memcpy(w.sink, sinks, sizeof sinks);
	w.a.attn_sink = w.sink;
	w.a.lse_sink = _i & 1;
	prefill_run(&f, &w);
	prefill_all_out(&w, 0, 0, 0);
	prefill_all_out(&w, 0, 1, 1);
	prefill_all_out(&w, 0, 2, score > 0 ? 1 : 0);
	for (h = 0; h < 3; h++) {
		const uint32_t sink = w.a.lse_sink && sinks[h] > score;

		/* ln 2 is nothing beside it. */
		ck_assert_float_eq(prefill_lse(&w, 0, h),
				   sink ? sinks[h] : score);
		ck_assert_float_eq(prefill_max(&w, 0, h), score);
	}
}
END_TEST

START_TEST(nan_that_counts_is_not_hidden)
{
	prefill_open(&w, 576, 3, 70);
	prefill_choose(&w);
	prefill_indices(&w, 0)[66] = 17;
	prefill_put_random(&w, 17);
	prefill_row(&w, 17)[100] = 0x7FC0;
	prefill_run(&f, &w);
	ck_assert_float_nan(prefill_lse(&w, 0, 0));
	ck_assert_float_nan(test_bf16_value(prefill_out(&w, 0, 1)[511]));
}
END_TEST

/* Token 0: a key of score -inf and one of score 0; token 1 the first alone. */
START_TEST(key_of_score_minus_infinity_weighs_nothing)
{
	uint32_t t;

	prefill_open(&w, 512, 1, 2);
	w.a.softmax_scale = 1;
	prefill_put(&w, 3, -3e38f, 0);
	prefill_put(&w, 4, 0, 0);
	prefill_zero_q(&w);
	for (t = 0; t < 2; t++) {
		w.q[t * w.a.q_token_stride_elems] = test_bf16(2);
		w.q[t * w.a.q_token_stride_elems + 1] = test_bf16(2);
		prefill_indices(&w, t)[0] = 3;
	}
	prefill_indices(&w, 0)[1] = 4;
	prefill_run(&f, &w);
	prefill_all_out(&w, 1, 0, 0);
	ck_assert_float_eq(prefill_lse(&w, 0, 0), 0);
	ck_assert_float_eq(prefill_lse(&w, 1, 0), INFINITY);
	ck_assert_float_eq(prefill_max(&w, 1, 0), -INFINITY);
}
END_TEST

/* One key of weight 1: the value itself, also the least bf16, 2^-133. */
START_TEST(subnormal_values_are_not_flushed)
{
	uint32_t i;

	prefill_open(&w, _i ? 512 : 576, 3, 4);
	for (i = 0; i < w.a.dim; i++)
		prefill_row(&w, 9)[i] =
			(uint16_t)((i & 1) << 15 | (i % 127 + 1));
	prefill_indices(&w, 1)[2] = 9;
	prefill_run(&f, &w);
	ck_assert_mem_eq(prefill_out(&w, 1, 2), prefill_row(&w, 9), 512 * 2);
}
END_TEST

START_TEST(bits_of_a_token_do_not_depend_on_the_others)
{
	uint16_t alone[REF_LATENT];
	float lse;

	prefill_open(&w, 576, 3, 130);
	prefill_choose(&w);
	prefill_run(&f, &w);
	memcpy(alone, prefill_out(&w, 1, 2), sizeof alone);
	lse = prefill_lse(&w, 1, 2);
	w.a.tokens = w.a.heads = 1;
	w.a.q += w.a.q_token_stride_elems + 2 * w.a.q_head_stride_elems;
	w.a.indices = prefill_indices(&w, 1);
	prefill_check(&f, &w);
	ck_assert_mem_eq(prefill_out(&w, 0, 0), alone, sizeof alone);
	ck_assert_float_eq(prefill_lse(&w, 0, 0), lse);
}
END_TEST

START_TEST(what_is_optional_may_be_missing)
{
	prefill_open(&w, 576, 8, 20);
	prefill_choose(&w);
	if (_i & 1)
		w.a.lse = NULL;
	if (_i & 2)
		w.a.max_logits = NULL;
	if (_i == 3)
		w.a.lse_head_stride_elems = w.a.lse_token_stride_elems = 0;
	prefill_check(&f, &w);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{results_equal_dense_attention_for_any_shape, 24},
		{every_entry_may_count, 8},
		{as_many_heads_as_the_plan_has_and_fewer, 3},
		{rows_may_be_an_odd_number_of_values_apart, 2},
		{sharp_and_flat_softmax_equal_dense_attention, 5},
		{zero_query_is_the_mean_and_its_lse_the_logarithm_of_the_count,
		 4},
		{one_key_is_its_value_and_its_score_is_lse_and_max, 4},
		{one_key_is_its_value_whatever_its_weight_is, 3},
		{weight_is_rounded_to_bf16_relative_to_its_block, 2},
		{random_sinks_equal_dense_attention, 2},
		{what_is_optional_may_be_missing, 4},
	};
	const theme_test edge[] = {
		{sink_takes_its_share_and_leaves_the_logits, 2},
		{infinite_sink_stands_alone_whatever_the_scores_are, 4},
		{nan_that_counts_is_not_hidden, 1},
		{subnormal_values_are_not_flushed, 2},
		{key_of_score_minus_infinity_weighs_nothing, 1},
	};
	const theme_test determinism[] = {
		{bits_of_a_token_do_not_depend_on_the_others, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
