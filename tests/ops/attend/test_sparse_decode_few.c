/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode of few tokens with a workspace, over rows of V3.2: what it reads
 * and writes. See few_rig.h; test_sparse_decode_few_values.c has values.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"
#include "tests/ops/attend/few_rig.h"

enum { SHAPES = 11 };

typedef struct call {
	uint32_t tokens, heads, topk;
} call;

static fixture f;
static decode_world w;

static void
setup(void)
{
	few_open(&f, FEW_QUARTER);
}

static void
setup_half(void)
{
	few_open(&f, FEW_HALF);
}

static void
teardown(void)
{
	few_close(&f);
}

/* As many groups of blocks as there is room for, of 16, 32 and 64 heads; on a
 * device others than on the emulator. */
START_TEST(results_equal_dense_attention_for_any_shape)
{
	static const call real[SHAPES] = {
		{1, 16, 2048}, {2, 8, 300},  {2, 64, 150}, {1, 128, 129},
		{2, 128, 300}, {2, 1, 1},    {1, 33, 128}, {2, 68, 1000},
		{4, 128, 300}, {3, 68, 150}, {5, 60, 1000}};
	static const call small[SHAPES] = {
		{1, 16, 2048}, {2, 8, 300},  {1, 1, 1},     {1, 33, 129},
		{2, 32, 128},  {2, 64, 300}, {1, 68, 1000}, {2, 68, 150},
		{3, 60, 1000}, {2, 1, 1},    {1, 16, 129}};
	const call *c = fixture_on_real_gpu(&f) ? &real[_i] : &small[_i];

	few_open_v32(&w, c->tokens, c->heads, c->topk);
	few_choose_v32(&w, -6, 0);
	decode_check(&f, &w);
	few_close_v32(&f, &w);
}
END_TEST

START_TEST(lengths_sinks_and_empty_rows)
{
	const int i = _i % 3;
	uint32_t h;

	few_open_kind(&f, &w, _i / 3, 2, 12, 500);
	few_choose_v32(&w, -6, 0);
	w.lens[0] = i == 0 ? 0 : 131;
	w.lens[1] = i == 1 ? 500 : 1;
	w.a.topk_lens = w.lens;
	w.a.empty_lse =
		i == 2 ? SPMLA_EMPTY_LSE_MINUS_INF : SPMLA_EMPTY_LSE_PLUS_INF;
	for (h = 0; h < 64; h++)
		w.sink[h] = 8 * rng_float(&w.rng);
	w.sink[2] = INFINITY;
	w.sink[5] = -INFINITY;
	w.a.attn_sink = w.sink;
	if (i == 2) /* token 1 has only -1 */
		memset(w.slots + w.a.slots_stride_elems, 0xFF, 500 * 4);
	decode_check(&f, &w);
	few_close_v32(&f, &w);
}
END_TEST

START_TEST(a_call_without_lse_writes_none)
{
	few_open_v32(&w, 1, 16, 200);
	few_choose_v32(&w, -6, 0);
	w.a.lse = NULL;
	decode_check(&f, &w);
	few_close_v32(&f, &w);
}
END_TEST

/* A run's results, kept. */
static uint16_t *
kept_out(void)
{
	uint16_t *out = malloc(w.out_elems * 2);

	ck_assert(out != NULL);
	memcpy(out, w.out, w.out_elems * 2);
	memset(w.out, 0, w.out_elems * 2);
	return out;
}

static void
expect_empty(void)
{
	decode_run(&f, &w);
	ck_assert_uint_eq(decode_out(&w, 0, 16)[511], 0);
	ck_assert_float_eq(decode_lse(&w, 0, 16), INFINITY);
	decode_expect_status(&f, SPMLA_FAULT_INDEX, 0);
}

START_TEST(ragged_list_gives_the_bits_of_a_row)
{
	int32_t indptr[2] = {0, 300};
	uint16_t *out;

	few_open_v32(&w, 1, 17, 300);
	few_choose_v32(&w, -6, 0);
	decode_run(&f, &w);
	out = kept_out();
	w.a.indptr = indptr;
	w.a.longest = 300;
	decode_run(&f, &w);
	ck_assert_mem_eq(out, w.out, w.out_elems * 2);
	indptr[1] = 301; /* past the slots */
	expect_empty();
	indptr[1] = 300;
	w.a.longest = 299; /* read where the device has use for it */
	decode_run(&f, &w);
	if (fixture_status(&f).count == 0)
		ck_assert_mem_eq(out, w.out, w.out_elems * 2);
	else
		expect_empty();
	free(out);
	few_close_v32(&f, &w);
}
END_TEST

START_TEST(requests_lie_where_their_strides_say)
{
	uint16_t *out;

	few_open_v32(&w, 2, 16, 200);
	few_choose_v32(&w, -6, 0);
	decode_run(&f, &w);
	out = kept_out();
	w.a.next_n = 1;
	w.a.q_request_stride_elems = w.a.q_token_stride_elems;
	w.a.out_request_stride_elems = w.a.out_token_stride_elems;
	w.a.lse_request_stride_elems = w.a.lse_token_stride_elems;
	w.a.q_token_stride_elems = REF_DIM;
	w.a.out_token_stride_elems = REF_LATENT;
	decode_run(&f, &w);
	ck_assert_mem_eq(out, w.out, w.out_elems * 2);
	free(out);
	few_close_v32(&f, &w);
}
END_TEST

/* Whichever group of heads has it, a bad slot is one report. */
START_TEST(slot_outside_the_cache_is_reported_and_does_not_count)
{
	uint32_t last;

	few_open_kind(&f, &w, _i, 1, 32, 300);
	few_choose_v32(&w, -6, 0);
	last = w.a.tokens - 1;
	w.slots[last * w.a.slots_stride_elems + 200] = 1 << 20;
	decode_check(&f, &w);
	decode_expect_status(&f, SPMLA_FAULT_INDEX, last);
	few_close_v32(&f, &w);
}
END_TEST

/* One word less, queries that begin at an odd address, or parts of none. */
START_TEST(call_that_cannot_have_it_runs_as_others_do)
{
	few_open_v32(&w, 1, 16, 300);
	few_choose_v32(&w, -6, 0);
	if (_i == 0)
		w.a.workspace_bytes -= 4;
	else
		w.a.q++;
	decode_check(&f, &w);
	few_close_v32(&f, &w);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{results_equal_dense_attention_for_any_shape, SHAPES},
	};
	const theme_test memory[] = {
		{lengths_sinks_and_empty_rows, 6},
		{a_call_without_lse_writes_none, 1},
		{ragged_list_gives_the_bits_of_a_row, 1},
		{requests_lie_where_their_strides_say, 1},
		{slot_outside_the_cache_is_reported_and_does_not_count, 2},
		{call_that_cannot_have_it_runs_as_others_do, 2},
	};
	const theme themes[] = {
		THEME("shape", setup_half, teardown, shape),
		THEME("memory", setup, teardown, memory),
	};

	return RUN_THEMES(themes);
}
