/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode and split_combine as engines call them: tokens by request and
 * query, lengths of requests, and the forms of an lse.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/v4_decode_world.h"

enum { HEADS = 3, TOPK = 70, TOKENS = V4_TOKENS, SPACE = 16384 };

static fixture f;
static v4_world w;
static float lse[TOKENS * HEADS];
static uint16_t out[TOKENS * HEADS * 512];

/* Three tokens of two lists, whole or of two parts. */
static void
open_world(uint32_t parts)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = HEADS;
	fixture_open(&f, &config, 0);
	v4_open(&w, HEADS, 64, TOPK, 2, TOPK);
	v4_choose(&w);
	memcpy(w.sink, (const float[]){0.5f, 3, -2}, sizeof(float[HEADS]));
	if (parts) {
		const spmla_tile_sched_args a = {.struct_bytes = sizeof a,
						 .batch = TOKENS,
						 .parts = parts,
						 .topk = TOPK,
						 .extra_topk = TOPK,
						 .tile_scheduler_metadata =
							 w.parts,
						 .num_splits = w.num_splits};

		ck_assert_int_eq(spmla_tile_sched(f.ctx, &a, NULL), SPMLA_OK);
		w.a.parts = parts;
		w.a.split_rows = V4_SPLIT_ROWS;
		w.a.tile_scheduler_metadata = w.parts;
		w.a.num_splits = w.num_splits;
		w.a.split_out = w.split_out;
		w.a.split_lse = w.split_lse;
	}
}

static void
teardown(void)
{
	v4_close(&w);
	fixture_close(&f);
}

/* Keeps the results, dense. */
static void
keep(void)
{
	uint32_t t, h;

	for (t = 0; t < TOKENS; t++)
		for (h = 0; h < HEADS; h++) {
			memcpy(out + (t * HEADS + h) * 512, v4_out(&w, t, h),
			       1024);
			lse[t * HEADS + h] = v4_lse(&w, t, h);
		}
}

/* Two queries a request: token 2 is the first of request 1, which lies far
 * behind. lse is [request][head][query], as FlashMLA has it. */
START_TEST(tokens_may_lie_by_request_and_query)
{
	uint16_t *q, *to;
	float *sums;
	uint32_t t, h;

	open_world(_i ? 4 : 0);
	v4_run(&f, &w);
	keep();
	q = test_alloc(2 * SPACE * 2, 0xFF);
	to = test_alloc(2 * SPACE * 2, 0x5A);
	sums = test_alloc(64 * 4, 0x5A);
	for (t = 0; t < TOKENS; t++)
		for (h = 0; h < HEADS; h++)
			memcpy(q + t / 2 * SPACE + (t % 2 * HEADS + h) * 512,
			       w.a.q + t * w.a.q_token_stride_elems +
				       h * w.a.q_head_stride_elems,
			       1024);
	w.a.q = q;
	w.a.out = to;
	w.a.lse = sums;
	w.a.next_n = 2;
	w.a.q_request_stride_elems = w.a.out_request_stride_elems = SPACE;
	w.a.q_token_stride_elems = w.a.out_token_stride_elems = HEADS * 512;
	w.a.q_head_stride_elems = w.a.out_head_stride_elems = 512;
	w.a.lse_request_stride_elems = 20;
	w.a.lse_head_stride_elems = 2;
	w.a.lse_token_stride_elems = 1;
	v4_run(&f, &w);
	for (t = 0; t < TOKENS; t++)
		for (h = 0; h < HEADS; h++) {
			ck_assert_mem_eq(to + t / 2 * SPACE +
						 (t % 2 * HEADS + h) * 512,
					 out + (t * HEADS + h) * 512, 1024);
			ck_assert_float_eq(sums[t / 2 * 20 + h * 2 + t % 2],
					   lse[t * HEADS + h]);
		}
	ck_assert_uint_eq(to[HEADS * 512 * 2], 0x5A5A);
	ck_assert_uint_eq(to[SPACE + HEADS * 512], 0x5A5A);
	free(q);
	free(to);
	free(sums);
}
END_TEST

START_TEST(tokens_may_share_a_length)
{
	static const int32_t each[TOKENS] = {65, 65, 3}, both[2] = {65, 3};

	open_world(0);
	memcpy(w.lens, each, sizeof each);
	memcpy(w.extra_lens, each, sizeof each);
	w.a.topk_lens = w.lens;
	w.a.extra_topk_lens = w.extra_lens;
	v4_check(&f, &w);
	keep();
	memset(w.lens, 0, sizeof w.lens);
	memset(w.extra_lens, 0, sizeof w.extra_lens);
	memcpy(w.lens, both, sizeof both);
	memcpy(w.extra_lens, both, sizeof both);
	w.a.lens_tokens = 2;
	memset(w.out, 0, w.out_elems * 2);
	v4_run(&f, &w);
	ck_assert_mem_eq(v4_out(&w, 1, 2), out + (HEADS + 2) * 512, 1024);
	ck_assert_mem_eq(v4_out(&w, 2, 0), out + 2 * HEADS * 512, 1024);
	ck_assert_float_eq(v4_lse(&w, 2, 1), lse[2 * HEADS + 1]);
}
END_TEST

static void
close_to(float got, double want)
{
	ck_assert_msg(fabs(got - want) <= 2e-6 + 2e-6 * fabs(want),
		      "got %.9g, want %.9g", got, want);
}

/* log2(e^lse + e^sink). A sink far above or below every score is no trouble,
 * though its term overflows f32 or vanishes. */
START_TEST(lse_may_be_in_base_2_and_count_the_sink)
{
	static const float sinks[][HEADS] = {
		{0.5f, 3, -2}, {200, -200, 88}, {INFINITY, -INFINITY, 0}};
	const float *sink = sinks[_i / 2];
	uint32_t t, h;

	open_world(_i % 2 ? 4 : 0);
	v4_run(&f, &w);
	keep();
	memcpy(w.sink, sink, sizeof sinks[0]);
	w.a.attn_sink = w.sink;
	v4_run(&f, &w);
	for (t = 0; t < TOKENS; t++)
		for (h = 0; h < HEADS; h++)
			ck_assert_float_eq(v4_lse(&w, t, h),
					   lse[t * HEADS + h]);
	w.a.lse_sink = 1;
	w.a.lse_base = SPMLA_LSE_BASE2;
	v4_run(&f, &w);
	for (t = 0; t < TOKENS; t++)
		for (h = 0; h < HEADS; h++) {
			const double x = lse[t * HEADS + h], y = sink[h];
			const double most = fmax(x, y);

			if (isinf(most))
				ck_assert_float_eq(v4_lse(&w, t, h),
						   (float)most);
			else
				close_to(v4_lse(&w, t, h),
					 (log(exp(x - most) + exp(y - most)) +
					  most) / log(2));
		}
	w.a.lse_sink = 0;
	v4_run(&f, &w);
	close_to(v4_lse(&w, 2, 1), lse[2 * HEADS + 1] / log(2));
}
END_TEST

START_TEST(lse_of_no_key_may_be_the_lowest)
{
	uint32_t t, h;

	open_world(_i ? 4 : 0);
	memset(w.lens, 0, sizeof w.lens);
	memset(w.extra_lens, 0, sizeof w.extra_lens);
	w.a.topk_lens = w.lens;
	w.a.extra_topk_lens = w.extra_lens;
	w.a.empty_lse = SPMLA_EMPTY_LSE_LOWEST;
	w.a.attn_sink = w.sink;
	w.a.lse_sink = 1;
	w.a.lse_base = SPMLA_LSE_BASE2;
	v4_run(&f, &w);
	for (t = 0; t < TOKENS; t++)
		for (h = 0; h < HEADS; h++) {
			ck_assert_float_eq(v4_lse(&w, t, h), -1e30f);
			ck_assert_uint_eq(v4_out(&w, t, h)[0], 0);
		}
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{tokens_may_lie_by_request_and_query, 2},
		{tokens_may_share_a_length, 1},
	};
	const theme_test edge[] = {
		{lse_may_be_in_base_2_and_count_the_sink, 6},
		{lse_of_no_key_may_be_the_lowest, 2},
	};
	const theme themes[] = {
		THEME("layout", NULL, teardown, layout),
		THEME("edge", NULL, teardown, edge),
	};

	return RUN_THEMES(themes);
}
