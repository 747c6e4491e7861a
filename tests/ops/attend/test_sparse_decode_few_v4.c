/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode of few tokens with a workspace, over rows of V4 in two caches:
 * see few_rig.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/machine.h"
#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"
#include "tests/ops/attend/few_rig.h"
#include "tests/ops/attend/v4_decode_world.h"

typedef struct call {
	uint32_t tokens, heads, topk, extra_topk;
} call;

static fixture f;
static v4_world v;

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

static void
open_v4(uint32_t tokens, uint32_t heads, uint32_t topk, uint32_t extra_topk)
{
	v4_open(&v, heads, 64, topk, 2, extra_topk);
	v.a.tokens = tokens;
	few_lend(&v.a);
	v4_choose(&v);
}

static void
close_v4(void)
{
	few_take_back();
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
	v4_close(&v);
}

START_TEST(results_equal_dense_attention_for_any_shape)
{
	static const call real[] = {
		{1, 64, 128, 512},   {2, 64, 128, 500},   {3, 64, 100, 512},
		{2, 128, 128, 1024}, {3, 128, 128, 1000}, {3, 64, 128, 700},
		{2, 5, 128, 0},      {1, 17, 3, 90},      {3, 100, 128, 400},
		{3, 128, 128, 512},  {2, 100, 128, 500}};
	static const call small[] = {
		{1, 32, 128, 512},  {2, 16, 128, 500},  {3, 16, 100, 512},
		{2, 32, 128, 1024}, {3, 32, 128, 1000}, {3, 16, 128, 700},
		{2, 5, 128, 0},     {1, 17, 3, 90},     {1, 100, 128, 400},
		{3, 64, 128, 512},  {2, 100, 128, 500}};
	const call *c = fixture_on_real_gpu(&f) ? &real[_i] : &small[_i];

	open_v4(c->tokens, c->heads, c->topk, c->extra_topk);
	v4_check(&f, &v);
	close_v4();
}
END_TEST

/* A struct that a call with a second list has left behind. */
START_TEST(without_a_second_list_its_fields_are_not_read)
{
	static const int32_t indptr[2] = {0, 400};

	open_v4(1, 16, 128, 0);
	v.a.extra_indptr = indptr;
	v.a.extra_longest = 512;
	v.a.extra_slots = NULL;
	v4_check(&f, &v);
	close_v4();
}
END_TEST

START_TEST(lengths_cut_both_lists)
{
	uint32_t h;

	open_v4(3, 16, 128, 400);
	v.lens[0] = 128;
	v.lens[1] = 0;
	v.lens[2] = 5;
	v.extra_lens[0] = 0;
	v.extra_lens[1] = 0;
	v.extra_lens[2] = 333;
	v.a.topk_lens = v.lens;
	v.a.extra_topk_lens = v.extra_lens;
	for (h = 0; h < 16; h++)
		v.sink[h] = 4 * rng_float(&v.rng);
	v.a.attn_sink = v.sink;
	v4_check(&f, &v);
	close_v4();
}
END_TEST

/* The scale of the first group is 2^(byte - 127), of the others 1. */
START_TEST(scale_bytes_at_both_ends_count)
{
	static const struct {
		uint8_t byte;
		int32_t keys; /* of each list */
	} c[] = {{0, 100}, {1, 100}, {128, 100}, {245, 100}, {254, 1}};
	const uint16_t *out;
	uint32_t h, d;
	int32_t i;

	open_v4(1, 16, 100, 100);
	memset(v.q, 0, 16 * (512 + 8) * 2);
	for (i = 0; i < 100; i++) {
		const int32_t slot = i < c[_i].keys ? i : -1;

		v4_put(&v.a.cache, i, 1.5f, 2);
		v4_put(&v.a.extra_cache, i, 1.5f, 2);
		v4_scales(&v.a.cache, i)[0] = c[_i].byte;
		v4_scales(&v.a.extra_cache, i)[0] = c[_i].byte;
		v4_slots(&v, 0)[i] = slot;
		v4_extra(&v, 0)[i] = c[_i].keys > 1 ? slot : -1;
	}
	v4_run(&f, &v);
	for (h = 0; h < 16; h++) {
		out = v4_out(&v, 0, h);
		for (d = 0; d < 512; d++)
			ck_assert_uint_eq(
				out[d],
				test_bf16(d >= 448 ? 2
					  : d < 64 ? ldexpf(1.5f,
							    c[_i].byte - 127)
						   : 1.5f));
	}
	close_v4();
}
END_TEST

/* One key in 100 has the scale 1 in a group, the others have 2^-30 there. It is
 * another key in each group, at each place among 16; of groups that are four
 * apart one is even, one odd. */
START_TEST(one_large_scale_counts_wherever_it_lies)
{
	int32_t i, group;

	open_v4(1, 16, 100, 0);
	for (i = 0; i < 100; i++) {
		v4_put(&v.a.cache, i, 1.5f, 2);
		memset(v4_scales(&v.a.cache, i), 97, 7);
		v4_slots(&v, 0)[i] = i;
	}
	for (group = 0; group < 7; group++)
		v4_scales(&v.a.cache,
			  32 + (_i + group + group / 4) % 16)[group] = 127;
	v4_check(&f, &v);
	close_v4();
}
END_TEST

START_TEST(scale_of_255_is_nan)
{
	open_v4(1, 8, 128, 300);
	v4_slots(&v, 0)[100] = 17;
	v4_put(&v.a.cache, 17, 1, 1);
	v4_scales(&v.a.cache, 17)[3] = 255;
	v4_run(&f, &v);
	ck_assert_float_nan(v4_lse(&v, 0, 7));
	ck_assert_float_nan(test_bf16_value(v4_out(&v, 0, 0)[0]));
	ck_assert_float_nan(test_bf16_value(v4_out(&v, 0, 7)[511]));
	close_v4();
}
END_TEST

START_TEST(bits_do_not_depend_on_which_blocks_run_together)
{
	static const uint32_t together[3] = {1, 16, 3};
	uint16_t *out;
	uint32_t i;

	open_v4(fixture_on_real_gpu(&f) ? 3 : 1, 64, 128, 1000);
	out = malloc(v.out_elems * 2);
	for (i = 0; i < 3; i++) {
		emulator_live(together[i]);
		memset(v.out, 0, v.out_elems * 2);
		v4_run(&f, &v);
		if (i == 0)
			memcpy(out, v.out, v.out_elems * 2);
		ck_assert_mem_eq(out, v.out, v.out_elems * 2);
	}
	v4_check(&f, &v);
	free(out);
	close_v4();
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{results_equal_dense_attention_for_any_shape, 11},
		{without_a_second_list_its_fields_are_not_read, 1},
		{lengths_cut_both_lists, 1},
	};
	const theme_test edge[] = {
		{scale_bytes_at_both_ends_count, 5},
		{one_large_scale_counts_wherever_it_lies, 16},
		{scale_of_255_is_nan, 1},
	};
	const theme_test determinism[] = {
		{bits_do_not_depend_on_which_blocks_run_together, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
