/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode of many heads, which has kernels of its own on some devices:
 * they walk tokens one behind the other and share rows between blocks, and with
 * few heads have more rows in flight.
 */
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/combine.h"
#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"
#include "tests/ops/attend/v4_decode_world.h"

/* From WHOLE on, the heads fill all places of a block, or of a cluster. */
enum { HEADS = 5, WHOLE = 2, SPLITS = DECODE_MOST_TOKENS + 1 };
static const uint32_t heads_of[HEADS] = {80, 31, 64, 128, 32};

/* The kernels of the last three again, with heads that leave places free: tests
 * of values take these. */
static const uint32_t some_of[3] = {40, 72, 20};

static fixture f;
static decode_world w;
static v4_world v4;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = DECODE_MOST_HEADS;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	fixture_close(&f);
}

static void
open_v32(uint32_t heads, uint32_t topk)
{
	decode_open(&w, SPMLA_LAYOUT_FP8_DS_MLA, heads, 64, topk);
	decode_choose(&w);
}

/* One part has all tokens, each as one split, which the kernel adds up. */
static void
one_part(spmla_sparse_decode_args *a)
{
	const int32_t row[8] = {0, (int32_t)a->tokens - 1, 0, 1000};
	static _Alignas(
		16) float split_out[SPLITS * V4_MOST_HEADS * REF_LATENT];
	static float split_lse[SPLITS * V4_MOST_HEADS];
	static int32_t part[8], num_splits[SPLITS];
	static uint32_t workspace[4 * DECODE_MOST_TOKENS];
	uint32_t t;

	ck_assert_uint_le(spmla_i_combine_words(a->tokens, a->heads),
			  SPMLA_I_COUNT(workspace));
	memcpy(part, row, sizeof row);
	for (t = 0; t <= a->tokens; t++)
		num_splits[t] = (int32_t)t;
	a->parts = 1;
	a->tile_scheduler_metadata = part;
	a->num_splits = num_splits;
	a->split_out = split_out;
	a->split_lse = split_lse;
	a->split_rows = a->tokens + 1;
	a->combine = 1;
	a->workspace = workspace;
	a->workspace_bytes = sizeof workspace;
}

START_TEST(heads_of_v32_equal_dense_attention)
{
	open_v32(heads_of[_i % HEADS], _i / HEADS ? 130 : 200);
	decode_check(&f, &w);
	decode_close(&w);
}
END_TEST

/* Two blocks share a token's rows, and each has 64 heads: the fourth has none. */
START_TEST(a_block_without_heads_reads_no_queries)
{
	open_v32(192, 70);
	decode_check(&f, &w);
	decode_close(&w);
}
END_TEST

START_TEST(heads_of_v4_equal_dense_attention)
{
	v4_open(&v4, heads_of[_i % HEADS], 64, _i / HEADS ? 64 : 130, 2, 70);
	v4_choose(&v4);
	v4_check(&f, &v4);
	v4_close(&v4);
}
END_TEST

/* Lengths of none, one, an even and an odd number of blocks, each behind each,
 * first and last. */
START_TEST(tokens_of_any_length_follow_each_other)
{
	static const int32_t lens[4] = {0, 1, 128, 130};
	static const uint8_t tokens[4] = {7, 3, 5, 5};
	static const uint8_t which[4][7] = {{0, 0, 1, 0, 2, 0, 3},
					    {3, 1, 1},
					    {1, 2, 1, 3, 2},
					    {2, 2, 3, 3, 0}};
	const uint32_t n = (uint32_t)_i / 3;
	uint32_t t;

	decode_open_tokens(&w, SPMLA_LAYOUT_FP8_DS_MLA, tokens[n],
			   heads_of[WHOLE + _i % 3], 64, 130);
	decode_choose(&w);
	for (t = 0; t < tokens[n]; t++)
		w.lens[t] = lens[which[n][t]];
	w.a.topk_lens = w.lens;
	one_part(&w.a);
	decode_check(&f, &w);
	decode_close(&w);
}
END_TEST

START_TEST(so_they_do_with_a_second_list)
{
	static const int32_t lens[4][3] = {
		{0, 64, 130}, {1, 0, 65}, {130, 130, 0}, {64, 1, 1}};

	/* Equal lengths, and others: with each number of heads other ones. */
	const uint32_t kind = (uint32_t)_i % 3, n = (uint32_t)_i / 3 % 4;
	const uint32_t shift = _i / 12 ? kind + 1 : 0;

	v4_open(&v4, heads_of[WHOLE + kind], 64, 130, 2, 130);
	v4_choose(&v4);
	memcpy(v4.lens, lens[n], sizeof *lens);
	memcpy(v4.extra_lens, lens[(n + shift) % 4], sizeof *lens);
	v4.a.topk_lens = v4.lens;
	v4.a.extra_topk_lens = v4.extra_lens;
	one_part(&v4.a);
	v4_check(&f, &v4);
	v4_close(&v4);
}
END_TEST

static void
run_v32(void)
{
	decode_run(&f, &w);
}

static void
run_v4(void)
{
	v4_run(&f, &v4);
}

/* 32 of 33 heads: on Hopper another kernel, with the same sums. */
static void
take_few(spmla_sparse_decode_args *a, uint32_t out_elems, uint32_t lse_elems,
	 void (*run)(void))
{
	uint16_t *out = test_alloc(out_elems * sizeof *out, 0);
	float *lse = test_alloc(lse_elems * sizeof *lse, 0);
	uint32_t t, h;

	run();
	memcpy(out, a->out, out_elems * sizeof *out);
	memcpy(lse, a->lse, lse_elems * sizeof *lse);
	memset(a->out, 0x5A, out_elems * sizeof *out);
	memset(a->lse, 0x5A, lse_elems * sizeof *lse);
	a->heads = 32;
	run();
	for (t = 0; t < a->tokens; t++)
		for (h = 0; h < a->heads; h++) {
			const int64_t o = t * a->out_token_stride_elems +
					  h * a->out_head_stride_elems;
			const int64_t l = t * a->lse_token_stride_elems +
					  h * a->lse_head_stride_elems;

			ck_assert_mem_eq(a->out + o, out + o, REF_LATENT * 2);
			ck_assert_mem_eq(a->lse + l, lse + l, 4);
		}
	free(out);
	free(lse);
}

/* A block a token, or one for all. */
START_TEST(few_heads_have_the_bits_of_more)
{
	if ((fixture_on_gpu() && f.device.arch != 90) || fixture_tiles(&f))
		return;
	open_v32(33, 700);
	if (_i % 2)
		one_part(&w.a);
	take_few(&w.a, w.out_elems, w.lse_elems, run_v32);
	decode_close(&w);
	v4_open(&v4, 33, 64, 130, 2, 600);
	v4_choose(&v4);
	if (_i % 2)
		one_part(&v4.a);
	take_few(&v4.a, v4.out_elems, v4.lse_elems, run_v4);
	v4_close(&v4);
}
END_TEST

/* Scales above and below what f16 holds, in one row of a tile or in many: each
 * with some number of heads in one and with others in many. */
START_TEST(scales_of_any_size_count)
{
	static const float scales[4] = {40.0f, 1e-9f, 3.0f, 1e-38f};
	const uint32_t step = (_i % 4 + _i / 4) % 2 ? 1 : 31;
	uint32_t i;

	open_v32(some_of[_i / 4], 130);
	for (i = 0; i < 130; i += step) {
		const int32_t slot = w.slots[i];

		if (slot >= 0)
			memcpy(decode_row(&w, slot) + 512 + 4 * (i % 4),
			       &scales[_i % 4], 4);
	}
	decode_check(&f, &w);
	decode_close(&w);
}
END_TEST

START_TEST(scales_of_v4_of_any_size_count)
{
	static const uint8_t scales[3] = {130, 90, 3};
	uint32_t i;

	v4_open(&v4, some_of[_i / 3], 64, 130, 2, 70);
	v4_choose(&v4);
	for (i = 0; i < 70; i += 9) {
		const int32_t slot = v4_extra(&v4, i % 3)[i];

		if (slot >= 0)
			v4_scales(&v4.a.extra_cache, slot)[i % 7] =
				scales[_i % 3];
	}
	v4_check(&f, &v4);
	v4_close(&v4);
}
END_TEST

/* Every key's score is 0, so out is the mean of equal values, up to where f32
 * ends: so it is with a query of zeros, with a very small one, and with a very
 * small softmax_scale. */
START_TEST(scales_count_up_to_the_largest_there_is)
{
	static const struct {
		float scale, q, softmax_scale;
		int32_t keys;
	} c[] = {{0x1p127f, 0, 0.1f, 1},        {0x1p121f, 0, 0.1f, 1},
		 {0x1p118f, 0, 0.1f, 130},      {0x1p114f, 0, 0.1f, 130},
		 {0x1p118f, 0x1p-133f, 1, 130}, {0x1p118f, 1, 0x1p-140f, 130}};
	const uint32_t heads = some_of[_i / 6];
	const uint16_t *out;
	uint32_t h, d;
	int32_t i;

	decode_open_tokens(&w, SPMLA_LAYOUT_FP8_DS_MLA, 1, heads, 64, 130);
	for (h = 0; h < heads; h++)
		for (d = 0; d < REF_DIM; d++)
			w.q[h * w.a.q_head_stride_elems + d] =
				test_bf16(c[_i % 6].q);
	w.a.softmax_scale = c[_i % 6].softmax_scale;
	for (i = 0; i < c[_i % 6].keys; i++) {
		decode_put(&w, i, 1.5f, 1);
		memcpy(decode_row(&w, i) + 512, &c[_i % 6].scale, 4);
		w.slots[i] = i;
	}
	decode_run(&f, &w);
	for (h = 0; h < heads; h++) {
		out = decode_out(&w, 0, h);
		for (d = 0; d < REF_LATENT; d++)
			ck_assert_uint_eq(
				out[d],
				test_bf16(1.5f *
					  (d < 128 ? c[_i % 6].scale : 1)));
	}
	decode_close(&w);
}
END_TEST

/* Its score, times the query's factor, is beyond f32. */
START_TEST(the_largest_key_is_not_lost)
{
	const float scale = 0x1p127f;
	uint32_t h, d;

	decode_open_tokens(&w, SPMLA_LAYOUT_FP8_DS_MLA, 1, some_of[_i], 64, 3);
	for (h = 0; h < some_of[_i]; h++)
		for (d = 0; d < REF_DIM; d++)
			w.q[h * w.a.q_head_stride_elems + d] =
				test_bf16(0x1p-110f);
	decode_put(&w, 5, 1.5f, 1);
	memcpy(decode_row(&w, 5) + 512, &scale, 4);
	w.slots[0] = 5;
	w.slots[1] = w.slots[2] = -1;
	decode_run(&f, &w);
	for (h = 0; h < some_of[_i]; h++) {
		ck_assert(decode_lse(&w, 0, h) > 1e3f);
		for (d = 0; d < REF_LATENT; d++)
			ck_assert(test_bf16_value(decode_out(&w, 0, h)[d]) >=
				  (d < 128 ? 0x1p127f : 1));
	}
	decode_close(&w);
}
END_TEST

/* A key whose score is far above all others, at each place of a block: what is
 * dropped or taken twice shows. It is row 130, at another place for each token.
 */
START_TEST(one_key_decides_wherever_it_is)
{
	const uint32_t heads = some_of[1 + _i / 6];
	const uint16_t *out;
	uint32_t t, h, d;

	decode_open_tokens(&w, SPMLA_LAYOUT_FP8_DS_MLA, DECODE_MOST_TOKENS,
			   heads, 64, 130);
	for (d = 0; d < 130; d++)
		decode_put(&w, (int32_t)d, 1, 0);
	decode_put(&w, 130, 2, 8);
	for (t = 0; t < DECODE_MOST_TOKENS; t++) {
		int32_t *slots = w.slots + t * w.a.slots_stride_elems;

		for (d = 0; d < 130; d++)
			slots[d] = (int32_t)d;
		slots[((uint32_t)_i % 6 * DECODE_MOST_TOKENS + t) % 43 * 3] =
			130;
		for (h = 0; h < heads; h++)
			for (d = 0; d < REF_DIM; d++)
				w.q[t * w.a.q_token_stride_elems +
				    h * w.a.q_head_stride_elems + d] =
					test_bf16(d < REF_LATENT ? 0 : 4);
	}
	w.a.softmax_scale = 0.1f;
	decode_run(&f, &w);
	for (t = 0; t < DECODE_MOST_TOKENS; t++)
		for (h = 0; h < heads; h++) {
			out = decode_out(&w, t, h);
			for (d = 0; d < REF_LATENT; d++)
				ck_assert_uint_eq(out[d], test_bf16(2));
		}
	decode_close(&w);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{heads_of_v32_equal_dense_attention, 2 * HEADS},
		{a_block_without_heads_reads_no_queries, 1},
		{heads_of_v4_equal_dense_attention, 2 * HEADS},
		{tokens_of_any_length_follow_each_other, 12},
		{so_they_do_with_a_second_list, 24},
		{few_heads_have_the_bits_of_more, 2},
	};
	const theme_test values[] = {
		{scales_of_any_size_count, 12},
		{scales_count_up_to_the_largest_there_is, 18},
		{the_largest_key_is_not_lost, 3},
		{scales_of_v4_of_any_size_count, 9},
		{one_key_decides_wherever_it_is, 12},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("values", setup, teardown, values),
	};

	return RUN_THEMES(themes);
}
