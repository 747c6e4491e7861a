/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode of many heads, which has kernels of its own on some devices:
 * they walk tokens one behind the other and share rows between blocks.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"
#include "tests/ops/attend/v4_decode_world.h"

static const uint32_t heads_of[4] = {64, 80, 128, 17};

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

/* One part has all tokens, each as one split. */
static void
one_part(spmla_sparse_decode_args *a, int32_t *part, int32_t *num_splits,
	 float *split_out, float *split_lse)
{
	const int32_t row[8] = {0, (int32_t)a->tokens - 1, 0, 1000};
	uint32_t t;

	memcpy(part, row, sizeof row);
	for (t = 0; t <= a->tokens; t++)
		num_splits[t] = (int32_t)t;
	a->parts = 1;
	a->tile_scheduler_metadata = part;
	a->num_splits = num_splits;
	a->split_out = split_out;
	a->split_lse = split_lse;
	a->split_rows = a->tokens + 1;
}

START_TEST(heads_of_v32_equal_dense_attention)
{
	open_v32(heads_of[_i % 4], _i / 4 ? 130 : 200);
	decode_check(&f, &w);
	decode_close(&w);
}
END_TEST

START_TEST(heads_of_v4_equal_dense_attention)
{
	v4_open(&v4, heads_of[_i % 4], 64, _i / 4 ? 64 : 130, 2, 70);
	v4_choose(&v4);
	v4_check(&f, &v4);
	v4_close(&v4);
}
END_TEST

/* Lengths of none, one, an odd and an even number of blocks, in turn. */
START_TEST(tokens_of_any_length_follow_each_other)
{
	static const int32_t lens[5] = {0, 1, 64, 130, 200};
	static float split_out[3 * DECODE_MOST_HEADS * REF_LATENT];
	static float split_lse[3 * DECODE_MOST_HEADS];
	int32_t part[8], num_splits[DECODE_TOKENS + 1];

	open_v32(_i % 2 ? 128 : 64, 200);
	w.lens[0] = lens[_i / 2 % 5];
	w.lens[1] = lens[_i / 2 / 5];
	w.a.topk_lens = w.lens;
	one_part(&w.a, part, num_splits, split_out, split_lse);
	decode_check(&f, &w);
	decode_close(&w);
}
END_TEST

START_TEST(so_they_do_with_a_second_list)
{
	static const int32_t lens[4][3] = {
		{0, 64, 130}, {1, 0, 65}, {130, 130, 0}, {64, 1, 1}};

	v4_open(&v4, _i % 2 ? 128 : 64, 64, 130, 2, 130);
	v4_choose(&v4);
	memcpy(v4.lens, lens[_i / 2 % 4], sizeof v4.lens);
	memcpy(v4.extra_lens, lens[_i / 2 / 4], sizeof v4.extra_lens);
	v4.a.topk_lens = v4.lens;
	v4.a.extra_topk_lens = v4.extra_lens;
	one_part(&v4.a, v4.parts, v4.num_splits, v4.split_out, v4.split_lse);
	v4_check(&f, &v4);
	v4_close(&v4);
}
END_TEST

/* Scales above and below what f16 holds, in one row of a tile or in many. */
START_TEST(scales_of_any_size_count)
{
	static const float scales[4] = {40.0f, 1e-9f, 3.0f, 1e-38f};
	const uint32_t step = _i / 4 % 2 ? 1 : 31;
	uint32_t i;

	open_v32(_i / 8 ? 128 : 64, 130);
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

	v4_open(&v4, _i / 3 ? 128 : 64, 64, 130, 2, 70);
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

/* A key whose score is far above all others, at each place of a block: what is
 * dropped or taken twice shows. */
START_TEST(one_key_decides_wherever_it_is)
{
	const uint32_t at = (uint32_t)_i * 3;
	const uint16_t *out;
	uint32_t h, d;

	decode_open(&w, SPMLA_LAYOUT_FP8_DS_MLA, 128, 64, 130);
	for (d = 0; d < 130; d++) {
		decode_put(&w, (int32_t)d, 1, 0);
		w.slots[d] = (int32_t)d;
	}
	decode_put(&w, (int32_t)at, 2, 8);
	for (h = 0; h < 128; h++)
		for (d = 0; d < REF_DIM; d++)
			w.q[h * w.a.q_head_stride_elems + d] =
				test_bf16(d < REF_LATENT ? 0 : 4);
	w.a.softmax_scale = 0.1f;
	decode_run(&f, &w);
	for (h = 0; h < 128; h++) {
		out = decode_out(&w, 0, h);
		for (d = 0; d < REF_LATENT; d++)
			ck_assert_uint_eq(out[d], test_bf16(2));
	}
	decode_close(&w);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{heads_of_v32_equal_dense_attention, 8},
		{heads_of_v4_equal_dense_attention, 8},
		{tokens_of_any_length_follow_each_other, 50},
		{so_they_do_with_a_second_list, 32},
	};
	const theme_test values[] = {
		{scales_of_any_size_count, 16},
		{scales_of_v4_of_any_size_count, 6},
		{one_key_decides_wherever_it_is, 43},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("values", setup, teardown, values),
	};

	return RUN_THEMES(themes);
}
