/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode of few tokens with a workspace, over rows of V3.2: scales, NaN,
 * lse, and that bits depend on a token alone. See few_rig.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/machine.h"
#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"
#include "tests/ops/attend/few_rig.h"

static fixture f;
static decode_world w;

static void
setup(void)
{
	few_open(&f, FEW_QUARTER);
}

static void
teardown(void)
{
	few_close(&f);
}

START_TEST(scales_above_1_and_far_apart_count)
{
	static const int low[3] = {-3, -30, 3}, high[3] = {4, 5, 3};

	few_open_kind(&f, &w, _i / 3, 2, 12, 260);
	few_choose_v32(&w, low[_i % 3], high[_i % 3]);
	w.a.softmax_scale = 1e-3f;
	decode_check(&f, &w);
	few_close_v32(&f, &w);
}
END_TEST

START_TEST(lse_is_of_the_base_and_with_the_sink_as_asked)
{
	float lse[2][8];
	uint32_t h, i;

	few_open_v32(&w, 1, 8, 200);
	few_choose_v32(&w, -6, 0);
	for (h = 0; h < 8; h++)
		w.sink[h] = 4 * rng_float(&w.rng);
	w.a.attn_sink = w.sink;
	for (i = 0; i < 2; i++) {
		w.a.lse_base = i ? SPMLA_LSE_BASE2 : SPMLA_LSE_NATURAL;
		w.a.lse_sink = i;
		decode_run(&f, &w);
		for (h = 0; h < 8; h++)
			lse[i][h] = decode_lse(&w, 0, h);
	}
	for (h = 0; h < 8; h++)
		ck_assert_float_eq_tol(lse[1][h],
				       log2f(expf(lse[0][h]) + expf(w.sink[h])),
				       1e-5f);
	few_close_v32(&f, &w);
}
END_TEST

START_TEST(nan_code_that_counts_is_not_hidden)
{
	const uint8_t nan[2] = {0x7F, 0xFF};
	const uint16_t *out;
	uint32_t h, i;

	few_open_kind(&f, &w, _i / 2, 1, 33, 300);
	few_choose_v32(&w, -6, 0);
	w.slots[270] = 17;
	decode_put_random(&w, 17);
	decode_row(&w, 17)[300] = nan[_i % 2];
	decode_run(&f, &w);
	for (h = 0; h < 33; h++) {
		ck_assert_float_nan(decode_lse(&w, 0, h));
		out = decode_out(&w, 0, h);
		for (i = 0; i < REF_LATENT; i++)
			ck_assert_float_nan(test_bf16_value(out[i]));
	}
	few_close_v32(&f, &w);
}
END_TEST

/* Every key's score is 0, so out is the mean of equal values, whatever their
 * scale: of the first group also where f32 ends. */
START_TEST(scales_of_any_size_count)
{
	static const struct {
		float scale;
		int32_t keys;
	} c[] = {{0x1p127f, 1}, {0x1p118f, 300}, {0x1p64f, 300},
		 {1, 300},      {0x1p-64f, 300}, {0x1p-126f, 300}};
	const uint16_t *out;
	uint32_t h, d;
	int32_t i;

	few_open_v32(&w, 1, 16, 300);
	memset(w.q, 0, 16 * (REF_DIM + 8) * 2);
	for (i = 0; i < c[_i].keys; i++) {
		decode_put(&w, i, 1.5f, 1);
		memcpy(decode_row(&w, i) + 512, &c[_i].scale, 4);
		w.slots[i] = i;
	}
	decode_run(&f, &w);
	for (h = 0; h < 16; h++) {
		out = decode_out(&w, 0, h);
		for (d = 0; d < REF_LATENT; d++)
			ck_assert_uint_eq(
				out[d],
				test_bf16(1.5f * (d < 128 ? c[_i].scale : 1)));
	}
	few_close_v32(&f, &w);
}
END_TEST

/* Scores come from the rope: 64 * r. A key of scale 2^40 weighs e^-128, less
 * than 2^-184, and the key of scale 2^-3 beside it weighs all the rest. */
START_TEST(large_scale_that_weighs_nothing_hides_no_other)
{
	const float large = 0x1p40f, small = 0x1p-3f;
	const uint16_t *out;
	uint32_t i, h, d;

	few_open_v32(&w, 1, 40, 100);
	memset(w.q, 0, 40 * (REF_DIM + 8) * 2);
	for (h = 0; h < 40; h++)
		for (i = 0; i < REF_ROPE; i++)
			w.q[h * w.a.q_head_stride_elems + REF_LATENT + i] =
				test_bf16(1);
	decode_put(&w, 3, 1.5f, -1);
	decode_put(&w, 4, -1.25f, 1);
	for (i = 0; i < REF_SCALES; i++) {
		memcpy(decode_row(&w, 3) + 512 + 4 * i, &large, 4);
		memcpy(decode_row(&w, 4) + 512 + 4 * i, &small, 4);
	}
	w.slots[50] = 3;
	w.slots[60] = 4;
	w.a.softmax_scale = 1;
	decode_run(&f, &w);
	for (h = 0; h < 40; h++) {
		out = decode_out(&w, 0, h);
		for (d = 0; d < REF_LATENT; d++)
			ck_assert_uint_eq(out[d], test_bf16(-1.25f * 0x1p-3f));
	}
	few_close_v32(&f, &w);
}
END_TEST

/* Two keys of score +-3e38, which in log2 units is more than f32 has, beside
 * sinks that lse counts. */
START_TEST(lse_of_scores_near_the_end_of_f32_counts_its_sink)
{
	const float sinks[3] = {INFINITY, -INFINITY, 0};
	const float rounded = test_bf16_value(test_bf16(3e38f));
	const float score = _i ? -rounded : rounded;
	uint32_t h;

	few_open_v32(&w, 1, 3, 200);
	w.a.softmax_scale = 1;
	w.a.lse_sink = 1;
	for (h = 0; h < 3; h++) {
		uint16_t *q = w.q + h * w.a.q_head_stride_elems;

		memset(q, 0, REF_DIM * 2);
		q[575] = test_bf16(0x1p60f);
	}
	decode_put(&w, 7, 1, score * 0x1p-60f);
	w.slots[1] = w.slots[199] = 7;
	memcpy(w.sink, sinks, sizeof sinks);
	w.a.attn_sink = w.sink;
	decode_run(&f, &w);
	for (h = 0; h < 3; h++)
		ck_assert_float_eq(decode_lse(&w, 0, h),
				   sinks[h] > score ? sinks[h] : score);
	few_close_v32(&f, &w);
}
END_TEST

/* However many blocks run together: with one at a time each owner but the last
 * gives up, and the last block adds all heads. */
START_TEST(bits_do_not_depend_on_which_blocks_run_together)
{
	static const uint32_t together[4] = {16, 1, 2, 7};
	uint16_t *out;
	uint32_t i;

	if (fixture_on_real_gpu(&f))
		few_open_v32(&w, _i ? 3 : 2, 128, 200);
	else
		few_open_v32(&w, 1, _i ? 128 : 64, 200);
	few_choose_v32(&w, -6, 0);
	out = malloc(w.out_elems * 2);
	for (i = 0; i < 4; i++) {
		emulator_live(together[i]);
		memset(w.out, 0, w.out_elems * 2);
		decode_run(&f, &w);
		if (i == 0)
			memcpy(out, w.out, w.out_elems * 2);
		ck_assert_mem_eq(out, w.out, w.out_elems * 2);
	}
	decode_check(&f, &w);
	free(out);
	few_close_v32(&f, &w);
}
END_TEST

/* On an H100 128 heads have 64 heads a block with three tokens, 32 with two and
 * 16 with one. On the emulator 32 heads have 32 and 16 with two tokens and one,
 * and 64 heads have 64 and 32. */
START_TEST(bits_of_a_token_do_not_depend_on_its_batch)
{
	const uint32_t real = fixture_on_real_gpu(&f);
	const uint32_t heads = real ? 128 : _i ? 64 : 32;
	const uint32_t last = real ? 2 : 1, elems = heads * (REF_LATENT + 8);
	uint16_t *out;

	few_open_v32(&w, last + 1, heads, 200);
	few_choose_v32(&w, -6, 0);
	decode_run(&f, &w);
	out = malloc(elems * 2);
	memcpy(out, w.out + last * w.a.out_token_stride_elems, elems * 2);
	while (--w.a.tokens) {
		few_take_back();
		memset(w.out, 0, w.out_elems * 2);
		w.a.q += w.a.q_token_stride_elems;
		w.a.slots += w.a.slots_stride_elems;
		few_lend(&w.a);
		decode_run(&f, &w);
		ck_assert_mem_eq(out,
				 w.out + (w.a.tokens - 1) *
						 w.a.out_token_stride_elems,
				 elems * 2);
	}
	free(out);
	few_close_v32(&f, &w);
}
END_TEST

SUITE
{
	const theme_test values[] = {
		{scales_above_1_and_far_apart_count, 6},
		{lse_is_of_the_base_and_with_the_sink_as_asked, 1},
		{nan_code_that_counts_is_not_hidden, 4},
		{scales_of_any_size_count, 6},
		{large_scale_that_weighs_nothing_hides_no_other, 1},
		{lse_of_scores_near_the_end_of_f32_counts_its_sink, 2},
	};
	const theme_test determinism[] = {
		{bits_do_not_depend_on_which_blocks_run_together, 2},
		{bits_of_a_token_do_not_depend_on_its_batch, 2},
	};
	const theme themes[] = {
		THEME("values", setup, teardown, values),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
