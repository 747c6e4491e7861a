/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode in parts by the library's own choice, in a context without a
 * model.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/decode_parts.h"
#include "spmla/ops/tile_sched.h"
#include "tests/harness/themes.h"
#include "tests/ops/attend/v4_decode_world.h"

/* Multiprocessors of the emulator: several parts a token. */
enum { TOPK = 200, MULTIPROCESSORS = 12 };

static fixture f;
static v4_world w;
static spmla_decode_parts by;
static uint8_t *workspace;

static void
setup_on(uint32_t multiprocessors)
{
	spmla_config config;

	ck_assert_int_eq(spmla_config_operations(&config), SPMLA_OK);
	fixture_multiprocessors(multiprocessors);
	fixture_open(&f, &config, 0);
	fixture_multiprocessors(0);
	v4_open(&w, V4_HEADS, 64, TOPK, 2, TOPK);
	v4_choose(&w);
	by = (spmla_decode_parts)SPMLA_DECODE_PARTS_INIT;
	w.a.tokens = V4_TOKENS;
	ck_assert_int_eq(spmla_decode_parts_choose(f.ctx, &w.a, &by), SPMLA_OK);
	workspace = test_alloc(by.workspace_bytes + 512, 0x5A);
}

static void
setup(void)
{
	setup_on(MULTIPROCESSORS);
}

/* 14 parts for five tokens: two each would leave four idle, more than a
 * quarter. */
static void
setup_uneven(void)
{
	setup_on(14);
}

/* Rounds of two tokens: on Hopper parts share the third. */
static void
setup_round(void)
{
	setup_on(2);
}

static void
teardown(void)
{
	free(workspace);
	v4_close(&w);
	fixture_close(&f);
}

static spmla_status
run(const void *at, uint64_t bytes)
{
	const spmla_status s = spmla_sparse_decode_in_parts(
		f.ctx, &w.a, (void *)(uintptr_t)at, bytes, NULL);

	fixture_drain(&f);
	return s;
}

/* Parts give the results of the whole, within the bounds of both; the workspace
 * is not left. */
START_TEST(the_choice_gives_the_results_of_the_whole)
{
	uint64_t i;

	w.a.tokens = V4_TOKENS;
	ck_assert_int_eq(run(by.parts ? workspace : NULL, by.workspace_bytes),
			 SPMLA_OK);
	for (i = 0; i < 512; i++)
		ck_assert_uint_eq(workspace[by.workspace_bytes + i], 0x5A);
	v4_expect(&w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	if (fixture_on_cpu())
		ck_assert_uint_eq(by.parts, 0);
	else
		ck_assert(f.plan.device.sm_count < 12 || by.parts > 0);
}
END_TEST

/* Packs the first lens[t] entries of each row into one list. */
static const int32_t *
pack(const int32_t *rows, int64_t stride, const int32_t *lens, int32_t *indptr,
     int32_t *to)
{
	uint32_t t;

	for (indptr[0] = 0, t = 0; t < V4_TOKENS; t++) {
		memcpy(to + indptr[t], rows + t * stride,
		       (uint32_t)lens[t] * sizeof *to);
		indptr[t + 1] = indptr[t] + lens[t];
	}
	return to;
}

/* _i: lengths of their own, or shared by two tokens, or ragged lists. The last
 * token, which parts share, has other lengths than the whole ones. */
START_TEST(parts_behind_whole_tokens_read_their_own_lists)
{
	static int32_t slots[V4_TOKENS * TOPK], extra[V4_TOKENS * TOPK];
	int32_t indptr[2][V4_TOKENS + 1];
	const int32_t lens[2][V4_TOKENS] = {{10, 10, 190}, {1, 1, 199}};
	const uint32_t each = _i == 1 ? 2 : 1;
	uint16_t *whole = test_alloc(w.out_elems * 2, 0);
	uint32_t i;

	for (i = 0; i < V4_TOKENS; i++) {
		w.lens[i / each] = lens[0][i];
		w.extra_lens[i / each] = lens[1][i];
	}
	w.a.lens_tokens = each;
	w.a.topk_lens = w.lens;
	w.a.extra_topk_lens = w.extra_lens;
	if (_i == 2) {
		w.a.slots = pack(w.slots, w.a.slots_stride_elems, lens[0],
				 indptr[0], slots);
		w.a.extra_slots =
			pack(w.extra_slots, w.a.extra_slots_stride_elems,
			     lens[1], indptr[1], extra);
		w.a.indptr = indptr[0];
		w.a.extra_indptr = indptr[1];
		w.a.topk = (uint32_t)indptr[0][V4_TOKENS];
		w.a.extra_topk = (uint32_t)indptr[1][V4_TOKENS];
		w.a.longest = w.a.extra_longest = 199;
	}
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &w.a, NULL), SPMLA_OK);
	fixture_drain(&f);
	memcpy(whole, w.out, w.out_elems * 2);
	memset(w.out, 0x5A, w.out_elems * 2);
	ck_assert_int_eq(spmla_decode_parts_choose(f.ctx, &w.a, &by), SPMLA_OK);
	if (f.plan.device.sm_count == 2 && f.plan.device.arch == 90)
		ck_assert_uint_eq(by.whole_tokens, 2);
	ck_assert_int_eq(run(by.parts ? workspace : NULL, by.workspace_bytes),
			 SPMLA_OK);
	for (i = 0; i < V4_TOKENS * V4_HEADS * 512; i++) {
		const uint32_t at =
			i / 512 / V4_HEADS *
				(uint32_t)w.a.out_token_stride_elems +
			i / 512 % V4_HEADS *
				(uint32_t)w.a.out_head_stride_elems +
			i % 512;
		const double want = test_bf16_value(whole[at]);

		ck_assert_double_eq_tol(test_bf16_value(w.out[at]), want,
					4e-3 + fabs(want) / 64);
	}
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	free(whole);
}
END_TEST

/* A length out of bounds is reported with its token. */
START_TEST(a_long_list_behind_whole_tokens_is_named)
{
	w.lens[0] = w.lens[1] = 10;
	w.lens[2] = TOPK + 1;
	w.a.topk_lens = w.lens;
	ck_assert_int_eq(run(by.parts ? workspace : NULL, by.workspace_bytes),
			 SPMLA_OK);
	v4_expect(&w);
	if (by.parts == 0)
		return; /* nobody reports lengths of whole tokens */
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_LENGTH);
	ck_assert_uint_eq(fixture_status(&f).row, 2);
}
END_TEST

/* The choice for so many tokens and heads of V3.2, and keys of a token. */
static void
choose_v32(uint32_t tokens, uint32_t heads, uint32_t topk)
{
	spmla_sparse_decode_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = tokens;
	a.heads = heads;
	a.topk = topk;
	a.cache.layout = SPMLA_LAYOUT_FP8_DS_MLA;
	by = (spmla_decode_parts)SPMLA_DECODE_PARTS_INIT;
	ck_assert_int_eq(spmla_decode_parts_choose(f.ctx, &a, &by), SPMLA_OK);
}

/* Sizes are products of what the header says. */
START_TEST(the_choice_says_what_the_buffers_take)
{
	static const uint32_t heads[3] = {16, 65, 256};
	const uint32_t h = heads[_i];
	const uint32_t groups = (h + 63) / 64;
	const uint32_t parts = f.plan.device.sm_count / groups;
	/* A kernel that combines splits does best with few behind whole rounds. */
	const uint32_t combines = f.plan.device.kind == SPMLA_BACKEND_CUDA &&
				  f.plan.device.arch == 90;

	choose_v32(1, h, 2048);
	if (fixture_on_cpu() || parts < 2) {
		ck_assert_uint_eq(by.parts, 0);
		ck_assert_uint_eq(by.workspace_bytes, 0);
		return;
	}
	ck_assert_uint_eq(by.parts, parts);
	ck_assert_uint_eq(by.split_rows, 1 + parts);
	ck_assert_uint_eq(by.tile_scheduler_metadata_bytes, 32 * parts);
	ck_assert_uint_eq(by.num_splits_bytes, 8);
	ck_assert_uint_eq(by.split_out_bytes, UINT64_C(2048) * h * (1 + parts));
	ck_assert_uint_eq(by.split_lse_bytes, UINT64_C(4) * h * (1 + parts));
	ck_assert_uint_eq(by.workspace_bytes % 256, 0);
	ck_assert_uint_le(by.split_out_bytes + by.split_lse_bytes,
			  by.workspace_bytes);
	/* Rounds that are full keep the device busy. */
	choose_v32(500 * parts, h, 2048);
	ck_assert_uint_eq(by.parts, 0);
	choose_v32(500 * parts + 1, h, 2048);
	ck_assert_uint_eq(by.parts, combines && parts > 16 ? 16 : parts);
	ck_assert_uint_eq(by.whole_tokens, 500 * parts);
	ck_assert_uint_eq(by.split_rows, 1 + by.parts);
	ck_assert_uint_eq(by.num_splits_bytes, 8);
}
END_TEST

/* Where a token's parts are as many as any other's, tile_sched cuts them by the
 * choice's overhead, so that no part has two tokens: 32 blocks of keys, and 5,
 * which are no multiple of the parts. */
START_TEST(tokens_that_are_alike_share_no_part)
{
	const uint32_t most = f.plan.device.sm_count;
	const uint32_t topk = _i ? 320 : 2048;
	uint32_t tokens, i, even = 0;
	int32_t *rows, *splits;

	for (tokens = 1; tokens < most; tokens++) {
		spmla_tile_sched_args a;

		choose_v32(tokens, 64, topk);
		if (by.parts == 0 || by.parts % tokens || by.whole_tokens)
			continue;
		even++;
		ck_assert_uint_ge(by.parts * 4, most * 3);
		rows = test_alloc(by.tile_scheduler_metadata_bytes, 0);
		splits = test_alloc(by.num_splits_bytes, 0);
		memset(&a, 0, sizeof a);
		a.struct_bytes = (uint32_t)sizeof a;
		a.batch = tokens;
		a.parts = by.parts;
		a.overhead_blocks = by.overhead_blocks;
		a.topk = topk;
		a.tile_scheduler_metadata = rows;
		a.num_splits = splits;
		ck_assert_int_eq(spmla_tile_sched(f.ctx, &a, NULL), SPMLA_OK);
		fixture_drain(&f);
		for (i = 0; i < by.parts; i++)
			ck_assert(rows[8 * i] >= (int32_t)tokens ||
				  rows[8 * i] == rows[8 * i + 1]);
		ck_assert_int_le(splits[tokens], (int32_t)by.parts);
		free(rows);
		free(splits);
	}
	ck_assert(fixture_on_cpu() || most < 2 || even > 0);
}
END_TEST

START_TEST(tokens_that_share_parts_cost_three_blocks_more)
{
	choose_v32(5, 64, 2048);
	if (fixture_on_gpu() && f.plan.device.sm_count != 14)
		return;
	ck_assert_uint_eq(by.parts, fixture_on_cpu() ? 0 : 14);
	ck_assert_uint_eq(by.overhead_blocks, fixture_on_cpu() ? 0 : 3);
}
END_TEST

START_TEST(wrong_calls_are_refused_and_enqueue_nothing)
{
	spmla_decode_parts other = SPMLA_DECODE_PARTS_INIT;

	w.a.heads = 257;
	ck_assert_int_eq(spmla_decode_parts_choose(f.ctx, &w.a, &other),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f), "SPMLA_E_RANGE: sparse_decode.heads:"
					   " got 257, want at most 256");
	w.a.heads = V4_HEADS;
	other.struct_bytes = 8;
	ck_assert_int_eq(spmla_decode_parts_choose(f.ctx, &w.a, &other),
			 SPMLA_E_STRUCT_SIZE);
	ck_assert_int_eq(spmla_decode_parts_choose(f.ctx, NULL, &other),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_decode_parts_choose(f.ctx, &w.a, NULL),
			 SPMLA_E_NULL);
	memset(w.out, 0x77, w.out_elems * 2);
	w.a.parts = 1;
	ck_assert_int_eq(run(workspace, by.workspace_bytes), SPMLA_E_RANGE);
	w.a.parts = 0;
	w.a.topk = 0;
	ck_assert_int_eq(run(workspace, by.workspace_bytes), SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f), "SPMLA_E_RANGE: sparse_decode.topk: "
					   "got 0, want at least 1");
	w.a.topk = TOPK;
	if (by.parts) {
		ck_assert_int_eq(run(workspace, by.workspace_bytes - 1),
				 SPMLA_E_RANGE);
		ck_assert_int_eq(run(workspace + 16, by.workspace_bytes),
				 SPMLA_E_RANGE);
		ck_assert_int_eq(run(NULL, by.workspace_bytes), SPMLA_E_NULL);
	}
	ck_assert_uint_eq(w.out[0], 0x7777);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{the_choice_gives_the_results_of_the_whole, 1},
		{the_choice_says_what_the_buffers_take, 3},
		{tokens_that_are_alike_share_no_part, 2},
	};
	const theme_test uneven[] = {
		{tokens_that_share_parts_cost_three_blocks_more, 1},
	};
	const theme_test behind[] = {
		{parts_behind_whole_tokens_read_their_own_lists, 3},
		{a_long_list_behind_whole_tokens_is_named, 1},
	};
	const theme_test error[] = {
		{wrong_calls_are_refused_and_enqueue_nothing, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("uneven", setup_uneven, teardown, uneven),
		THEME("behind whole tokens", setup_round, teardown, behind),
		THEME("error", setup, teardown, error),
	};

	return RUN_THEMES(themes);
}
