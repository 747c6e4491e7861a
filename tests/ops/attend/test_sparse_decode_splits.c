/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode in splits: any partition of a token's blocks, put together by
 * split_combine, gives what the whole gives.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/v4_decode_world.h"

static fixture f;
static v4_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = V4_HEADS;
	fixture_open(&f, &config, 0);
	v4_open(&w, 2, 64, 300, 2, 150);
	v4_choose(&w);
}

static void
teardown(void)
{
	v4_close(&w);
	fixture_close(&f);
}

/* Adds a part: tokens first .. last, from block `begin` of the first to block
 * `end` of the last, the first being its split `split`. */
static void
add_part(uint32_t first, uint32_t last, uint32_t begin, uint32_t end,
	 uint32_t split)
{
	const int32_t row[8] = {(int32_t)first,
				(int32_t)last,
				(int32_t)begin,
				(int32_t)end,
				(int32_t)split,
				7,
				7,
				7};

	ck_assert_uint_lt(w.a.parts, V4_PARTS);
	memcpy(w.parts + w.a.parts * 8, row, sizeof row);
	w.a.parts++;
}

/* Cuts token t anywhere, into `count` splits, empty ones too, each a part. */
static void
cut_token(uint32_t t, uint32_t count)
{
	const uint32_t blocks = v4_blocks(&w, t);
	uint32_t i, begin = 0;

	for (i = 0; i < count; i++) {
		uint32_t end = begin + rng_below(&w.rng, blocks - begin + 1);

		if (i + 1 == count)
			end = blocks;
		add_part(t, t, begin, end, i);
		begin = end;
	}
	w.num_splits[t + 1] = w.num_splits[t] + (int32_t)count;
}

/* The order of parts means nothing. */
static void
shuffle_parts(void)
{
	uint32_t i;

	for (i = w.a.parts; i > 1; i--) {
		int32_t *a = w.parts + (i - 1) * 8;
		int32_t *b = w.parts + rng_below(&w.rng, i) * 8;
		int32_t row[8];

		memcpy(row, a, sizeof row);
		memmove(a, b, sizeof row);
		memcpy(b, row, sizeof row);
	}
}

START_TEST(any_partition_combines_to_the_whole)
{
	uint32_t t;

	w.lens[0] = 300;
	w.lens[1] = (int32_t)rng_below(&w.rng, 301);
	w.lens[2] = 0;
	w.extra_lens[0] = 150;
	w.extra_lens[1] = (int32_t)rng_below(&w.rng, 151);
	w.extra_lens[2] = _i & 1 ? 70 : 0;
	w.a.topk_lens = w.lens;
	w.a.extra_topk_lens = w.extra_lens;
	w.sink[0] = 0.5f;
	w.sink[1] = _i & 2 ? -INFINITY : 3;
	w.a.attn_sink = _i & 4 ? w.sink : NULL;
	w.a.empty_lse = (uint32_t)_i & 1;
	for (t = 0; t < V4_TOKENS; t++)
		cut_token(t, 1 + rng_below(&w.rng, 10));
	shuffle_parts();
	v4_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* The scheduler sees the tokens behind the whole ones. */
START_TEST(parts_of_the_scheduler_combine_to_the_whole)
{
	const uint32_t whole = (uint32_t)_i / 8;
	spmla_tile_sched_args sched = {.struct_bytes = sizeof sched,
				       .batch = V4_TOKENS - whole,
				       .parts = 1 + (uint32_t)_i % 8,
				       .overhead_blocks = _i & 1 ? 5 : 1,
				       .row_format = SPMLA_TILE_ROW_NEW,
				       .topk = w.a.topk,
				       .extra_topk = w.a.extra_topk,
				       .topk_lens = w.lens + whole,
				       .extra_topk_lens = w.extra_lens + whole,
				       .tile_scheduler_metadata = w.parts,
				       .num_splits = w.num_splits};
	uint32_t t;

	for (t = 0; t < V4_TOKENS; t++) {
		w.lens[t] = (int32_t)rng_below(&w.rng, 301);
		w.extra_lens[t] = (int32_t)rng_below(&w.rng, 151);
	}
	w.lens[1] = _i % 3 == 0 ? 0 : w.lens[1];
	w.a.topk_lens = w.lens;
	w.a.extra_topk_lens = w.extra_lens;
	w.a.parts = sched.parts;
	w.a.whole_tokens = whole;
	ck_assert_int_eq(spmla_tile_sched(f.ctx, &sched, NULL), SPMLA_OK);
	v4_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(token_of_one_split_has_the_bits_of_the_whole)
{
	uint16_t *whole = malloc(w.out_elems * 2);
	float lse[6];

	v4_make_odd(&w);
	v4_run(&f, &w);
	memcpy(whole, w.out, w.out_elems * 2);
	memcpy(lse, w.lse, sizeof lse);
	/* one part for all, and then a part each */
	memset(w.out, 0, w.out_elems * 2);
	memset(w.split_out, 0xFF, 512 * 4);
	if (_i) {
		add_part(0, 2, 0, v4_blocks(&w, 2), 0);
	} else {
		add_part(2, 2, 0, v4_blocks(&w, 2), 0);
		add_part(0, 1, 0, v4_blocks(&w, 1), 0);
	}
	memcpy(w.num_splits, (const int32_t[]){0, 1, 2, 3}, 16);
	v4_check(&f, &w);
	v4_run(&f, &w);
	ck_assert_uint_eq(v4_out(&w, 2, 1)[7],
			  whole[2 * w.a.out_token_stride_elems +
				w.a.out_head_stride_elems + 7]);
	ck_assert_mem_eq(v4_out(&w, 1, 0), whole + w.a.out_token_stride_elems,
			 512 * 2);
	ck_assert_mem_eq(w.lse, lse, 3 * 4);
	ck_assert(isnan(w.split_out[0]));
	free(whole);
}
END_TEST

/* q = 0; token 0 has a key of 1 in its first block and keys of 2 and 4 in its
 * second cache: split 0 gives O / L = 1 and log2 1 = 0, split 1 (2 + 4) / 2 = 3
 * and log2 2 = 1, split 2, of no block, 0 and -inf. The sink is not in them. */
START_TEST(partial_results_worked_out_by_hand)
{
	uint32_t h, d;

	memset(w.q, 0, w.out_elems * 2);
	memset(v4_slots(&w, 0), 0xFF, 300 * 4);
	memset(v4_extra(&w, 0), 0xFF, 150 * 4);
	v4_put(&w.a.cache, 3, 1, 1);
	v4_put(&w.a.extra_cache, 3, 2, 2);
	v4_put(&w.a.extra_cache, 9, 4, 4);
	v4_slots(&w, 0)[2] = v4_extra(&w, 0)[0] = 3;
	v4_extra(&w, 0)[149] = 9;
	w.sink[0] = w.sink[1] = 2;
	w.a.attn_sink = w.sink;
	w.a.tokens = 1;
	add_part(0, 0, 0, 5, 0);
	add_part(0, 0, 5, 8, 1);
	add_part(0, 0, 8, 8, 2);
	memcpy(w.num_splits, (const int32_t[]){4, 7}, 8);
	v4_check(&f, &w);
	for (h = 0; h < 2; h++) {
		const float want[3] = {1, 3, 0}, lse[3] = {0, 1, -INFINITY};
		uint32_t i;

		for (i = 0; i < 3; i++) {
			const uint32_t row = (4 + i) * 2 + h;

			ck_assert_float_eq(w.split_lse[row], lse[i]);
			for (d = 0; d < 512; d++)
				ck_assert_float_eq(w.split_out[row * 512 + d],
						   want[i]);
		}
	}
	ck_assert_uint_eq(((uint32_t *)(void *)w.split_lse)[3 * 2 + 1],
			  0xFFFFFFFF);
	ck_assert_uint_eq(((uint32_t *)(void *)w.split_lse)[7 * 2], 0xFFFFFFFF);
}
END_TEST

/* The parts behind a whole token: one of both requests, and two without work. */
START_TEST(idle_parts_behind_a_whole_token_do_nothing)
{
	static const int32_t idle[2][8] = {{2, 1, 0, 8, 0, 0, 0, 0},
					   {INT32_MAX, 0, -5, -5, -5, 0, 0, 0}};

	w.a.whole_tokens = 1;
	add_part(0, 1, 0, v4_blocks(&w, 2), 0);
	memcpy(w.parts + 8, idle, sizeof idle);
	w.a.parts = 3;
	memcpy(w.num_splits, (const int32_t[]){0, 1, 2}, 12);
	v4_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(all_tokens_may_be_whole)
{
	static const int32_t idle[2][8] = {{0, -1, 0, 0, 0, 0, 0, 0},
					   {5, 0, -5, -5, -5, 0, 0, 0}};

	w.a.whole_tokens = V4_TOKENS;
	memcpy(w.parts, idle, sizeof idle);
	w.a.parts = 2;
	w.num_splits[0] = 0;
	v4_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* Part 1 names requests that are not among the two behind a whole token. */
START_TEST(a_bad_part_behind_a_whole_token_is_named)
{
	static const int32_t bad[5][2] = {{-1, 1},
					  {0, 2},
					  {1, 0},
					  {INT32_MIN, INT32_MIN},
					  {1, INT32_MAX}};

	w.a.whole_tokens = 1;
	add_part(0, 1, 0, v4_blocks(&w, 2), 0);
	add_part(0, 0, 0, 1, 0);
	memcpy(w.parts + 8, bad[_i], sizeof bad[_i]);
	memcpy(w.num_splits, (const int32_t[]){0, 1, 2}, 12);
	v4_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_INDEX);
	ck_assert_uint_eq(fixture_status(&f).row, 1);
}
END_TEST

START_TEST(part_without_work_does_nothing)
{
	static const int32_t idle[2][8] = {{3, 2, 0, 8, 0, 0, 0, 0},
					   {INT32_MAX, 0, -5, -5, -5, 0, 0, 0}};

	add_part(0, 2, 0, v4_blocks(&w, 2), 0);
	memcpy(w.parts + 8, idle, sizeof idle);
	w.a.parts = 3;
	memcpy(w.num_splits, (const int32_t[]){0, 1, 2, 3}, 16);
	v4_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* begin_req, end_req. */
START_TEST(part_of_tokens_that_are_not_there_is_left_out_and_reported)
{
	static const int32_t bad[5][2] = {{-1, 2},
					  {0, 3},
					  {2, 1},
					  {INT32_MIN, INT32_MIN},
					  {1, INT32_MAX}};

	add_part(0, 2, 0, v4_blocks(&w, 2), 0);
	add_part(0, 0, 0, 1, 0);
	memcpy(w.parts + 8, bad[_i], 8);
	memcpy(w.num_splits, (const int32_t[]){0, 1, 2, 3}, 16);
	v4_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_INDEX);
	ck_assert_uint_eq(fixture_status(&f).row, 1);
}
END_TEST

/* Blocks past the token's are none; so the result is right all the same, and
 * with a begin below 0, which is reported. */
START_TEST(blocks_that_are_not_there_are_left_out)
{
	const uint32_t blocks = v4_blocks(&w, 1);
	const uint32_t bad[4][2] = {{5, blocks + 1},
				    {5, INT32_MAX},
				    {(uint32_t)-5, blocks},
				    {blocks + 2, blocks + 9}};

	add_part(0, 0, 0, v4_blocks(&w, 0), 0);
	add_part(1, 1, 0, 5, 0);
	add_part(1, 1, bad[_i][0], bad[_i][1], 1);
	add_part(2, 2, 0, v4_blocks(&w, 2), 0);
	memcpy(w.num_splits, (const int32_t[]){0, 1, 3, 4}, 16);
	if (_i == 2) /* from -5: all blocks, so the first split has none */
		w.parts[8 + 3] = 0;
	if (_i == 3) /* the first split has all, the second one none */
		w.parts[8 + 3] = INT32_MAX;
	v4_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, _i == 2 ? 1 : 0);
	if (_i != 2)
		return;
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_INDEX);
	ck_assert_uint_eq(fixture_status(&f).row, 1);
}
END_TEST

/* The block has no key; the second list's keys begin with the next block. */
START_TEST(an_empty_first_list_is_a_block)
{
	uint32_t h;

	w.lens[0] = w.lens[2] = 10;
	w.lens[1] = 0;
	w.extra_lens[0] = w.extra_lens[2] = 0;
	w.extra_lens[1] = 130;
	w.a.topk_lens = w.lens;
	w.a.extra_topk_lens = w.extra_lens;
	add_part(0, 0, 0, 1, 0);
	add_part(1, 1, 0, 1, 0);
	add_part(1, 1, 1, 4, 1);
	add_part(2, 2, 0, 1, 0);
	memcpy(w.num_splits, (const int32_t[]){0, 1, 3, 4}, 16);
	v4_check(&f, &w);
	for (h = 0; h < w.a.heads; h++) {
		ck_assert_float_eq(w.split_lse[1 * w.a.heads + h], -INFINITY);
		ck_assert(isfinite(w.split_lse[2 * w.a.heads + h]));
	}
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* The part that begins behind token 1's last block goes on to token 2. */
START_TEST(a_part_may_begin_behind_a_token_and_go_on)
{
	const uint32_t blocks = v4_blocks(&w, 1) + (uint32_t)_i * 5;

	add_part(0, 0, 0, v4_blocks(&w, 0), 0);
	add_part(1, 1, 0, blocks, 0);
	add_part(1, 2, blocks, v4_blocks(&w, 2), 1);
	memcpy(w.num_splits, (const int32_t[]){0, 1, 3, 4}, 16);
	v4_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* A split number that token 1 does not have, or a row past split_rows. */
START_TEST(split_row_that_is_not_there_is_not_written_and_reported)
{
	static const int32_t splits[4] = {2, -1, INT32_MIN, INT32_MAX};
	uint32_t i;

	add_part(0, 0, 0, v4_blocks(&w, 0), 0);
	add_part(1, 1, 0, 5, 0);
	add_part(1, 1, 5, v4_blocks(&w, 1), 1);
	add_part(2, 2, 0, v4_blocks(&w, 2), 0);
	memcpy(w.num_splits, (const int32_t[]){0, 1, 3, 4}, 16);
	if (_i < 4)
		w.parts[2 * 8 + 4] = splits[_i];
	else
		w.a.split_rows = 2;
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &w.a, NULL), SPMLA_OK);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_INDEX);
	ck_assert_uint_eq(fixture_status(&f).row, 1);
	for (i = 0; i < V4_SPLIT_ROWS * 2; i++)
		ck_assert_uint_eq(((uint32_t *)(void *)w.split_lse)[i] ==
					  0xFFFFFFFF,
				  i / 2 != 1);
}
END_TEST

START_TEST(bits_of_a_split_do_not_depend_on_the_others)
{
	float alone[512], lse;

	w.a.tokens = 1;
	add_part(0, 0, 0, 2, 0);
	add_part(0, 0, 2, 6, 1);
	add_part(0, 0, 6, 8, 2);
	memcpy(w.num_splits, (const int32_t[]){0, 3}, 8);
	v4_check(&f, &w);
	memcpy(alone, w.split_out + 2 * 512, sizeof alone);
	lse = w.split_lse[2];
	w.a.parts = 0;
	add_part(0, 0, 2, 6, 1);
	memset(w.split_out, 0xFF, 6 * 512 * 4);
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &w.a, NULL), SPMLA_OK);
	ck_assert_mem_eq(w.split_out + 2 * 512, alone, sizeof alone);
	ck_assert_float_eq(w.split_lse[2], lse);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{any_partition_combines_to_the_whole, 8},
		{parts_of_the_scheduler_combine_to_the_whole, 24},
		{partial_results_worked_out_by_hand, 1},
	};
	const theme_test edge[] = {
		{idle_parts_behind_a_whole_token_do_nothing, 1},
		{all_tokens_may_be_whole, 1},
		{a_bad_part_behind_a_whole_token_is_named, 5},
		{part_without_work_does_nothing, 1},
		{part_of_tokens_that_are_not_there_is_left_out_and_reported, 5},
		{blocks_that_are_not_there_are_left_out, 4},
		{an_empty_first_list_is_a_block, 1},
		{a_part_may_begin_behind_a_token_and_go_on, 2},
		{split_row_that_is_not_there_is_not_written_and_reported, 5},
	};
	const theme_test determinism[] = {
		{token_of_one_split_has_the_bits_of_the_whole, 2},
		{bits_of_a_split_do_not_depend_on_the_others, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
