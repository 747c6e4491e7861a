/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode in parts that adds up its splits itself. With a workspace a
 * Hopper device does so in one launch, whose blocks wait for each other; others
 * enqueue split_combine.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/combine.h"
#include "tests/emulator/machine.h"
#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"
#include "tests/ops/attend/parts_rig.h"
#include "tests/ops/attend/v4_decode_world.h"

static fixture f;
static decode_world v32;
static v4_world v4;
static spmla_sparse_decode_args *a; /* of the world that is open */
static parts_rig p;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = V4_MOST_HEADS;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	emulator_live(0);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	fixture_close(&f);
}

static void
open_v32(uint32_t heads, uint32_t topk)
{
	decode_open(&v32, SPMLA_LAYOUT_FP8_DS_MLA, heads, 64, topk);
	decode_choose(&v32);
	a = &v32.a;
	parts_lend(&p, a);
}

static void
close_v32(void)
{
	parts_take_back(&p, a);
	decode_close(&v32);
}

static void
open_v4(uint32_t heads)
{
	v4_open(&v4, heads, 64, 300, 2, 150);
	v4_choose(&v4);
	a = &v4.a;
	parts_lend(&p, a);
}

static void
close_v4(void)
{
	parts_take_back(&p, a);
	v4_close(&v4);
}

/* One part for all but the last block of the last token: a block that has other
 * work waits for nobody. */
static void
cut_across(uint32_t blocks)
{
	const int32_t last = (int32_t)a->tokens - 1;
	const int32_t rows[3][8] = {
		{0, 0, 0, 1, 0},
		{0, last, 1, (int32_t)blocks - 1, 1},
		{last, last, (int32_t)blocks - 1, (int32_t)blocks, 1}};
	uint32_t t;

	memcpy(p.rows, rows, sizeof rows);
	a->parts = 3;
	p.num_splits[0] = 0;
	for (t = 0; t < a->tokens; t++)
		p.num_splits[t + 1] =
			p.num_splits[t] + (t == 0) + ((int32_t)t == last) + 1;
}

static const struct {
	uint32_t heads, splits;
} shapes[] = {{64, 2},   {128, 4}, {80, 3}, {17, 1},
	      {128, 21}, {64, 20}, {64, 68}};

START_TEST(splits_of_v32_add_up_to_dense_attention)
{
	open_v32(shapes[_i].heads, 260);
	parts_cut(&p, a, 5, shapes[_i].splits);
	decode_check(&f, &v32);
	close_v32();
}
END_TEST

START_TEST(splits_of_v4_add_up_to_dense_attention)
{
	open_v4(shapes[_i].heads);
	v4.sink[0] = 0.5f;
	v4.sink[1] = -INFINITY;
	v4.sink[2] = 3;
	a->attn_sink = v4.sink;
	parts_cut(&p, a, 8, shapes[_i].splits);
	v4_check(&f, &v4);
	close_v4();
}
END_TEST

START_TEST(parts_may_go_on_with_the_next_token)
{
	open_v4(_i ? 128 : 64);
	cut_across(8);
	v4_check(&f, &v4);
	close_v4();
}
END_TEST

/* Nobody counts whole tokens in: the workspace is one of the other token. */
START_TEST(whole_tokens_come_first)
{
	const uint32_t heads = _i ? 128 : 64;
	const uint64_t words = spmla_i_combine_words(1, heads);
	const uint64_t all = spmla_i_combine_words(V4_TOKENS, heads);

	open_v4(heads);
	a->whole_tokens = V4_TOKENS - 1;
	a->workspace_bytes = 4 * words;
	memset(p.workspace + words, 0x5A, 4 * (all - words));
	parts_cut(&p, a, 8, 4);
	v4_check(&f, &v4);
	memset(p.workspace + words, 0, 4 * (all - words));
	close_v4();
}
END_TEST

/* Part 4 ends behind the last request. Both blocks of a pair see it. */
START_TEST(a_bad_part_behind_a_whole_token_is_named)
{
	static const int32_t bad[8] = {0, V4_TOKENS - 1, 0, 1, 0};

	open_v4(_i ? 128 : 64);
	a->whole_tokens = 1;
	parts_cut(&p, a, 8, 2);
	memcpy(p.rows + 8 * a->parts++, bad, sizeof bad);
	v4_check(&f, &v4);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_INDEX);
	ck_assert_uint_eq(fixture_status(&f).row, 4);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	close_v4();
}
END_TEST

static void
run_v4_over_poison(void)
{
	memset(v4.out, 0x5A, v4.out_elems * 2);
	memset(v4.lse, 0x5A, v4.lse_elems * 4);
	v4_run(&f, &v4);
}

/* The last token's split rows begin before 0, end behind split_rows, fall, or
 * are none. Its results are those of a token without keys. In the last two cases
 * it has one part, whose row would be -1. */
START_TEST(a_token_without_its_split_rows_is_empty)
{
	const int32_t rows = V4_TOKENS + PARTS_MOST, last = V4_TOKENS - 1;
	const int32_t bad[6][2] = {{-1, 1},  {rows - 1, rows + 1},
				   {2, 0},   {3, 3},
				   {-1, -1}, {-1, -3}};
	uint16_t *out;
	float *lse;
	uint32_t t;

	open_v4(_i / 6 ? 128 : 64);
	a->whole_tokens = (uint32_t)last;
	parts_cut(&p, a, 8, 2);
	for (t = 0; t < V4_TOKENS; t++) {
		v4.lens[t] = (int32_t)a->topk;
		v4.extra_lens[t] = (int32_t)a->extra_topk;
	}
	v4.lens[last] = v4.extra_lens[last] = 0;
	a->topk_lens = v4.lens;
	a->extra_topk_lens = v4.extra_lens;
	run_v4_over_poison();
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	out = test_alloc(v4.out_elems * 2, 0);
	lse = test_alloc(v4.lse_elems * 4, 0);
	memcpy(out, v4.out, v4.out_elems * 2);
	memcpy(lse, v4.lse, v4.lse_elems * 4);
	v4.lens[last] = (int32_t)a->topk;
	v4.extra_lens[last] = (int32_t)a->extra_topk;
	memcpy(p.num_splits, bad[_i % 6], sizeof bad[0]);
	if (_i % 6 >= 4)
		a->parts = 1;
	run_v4_over_poison();
	ck_assert_mem_eq(out, v4.out, v4.out_elems * 2);
	ck_assert_mem_eq(lse, v4.lse, v4.lse_elems * 4);
	ck_assert_uint_ge(fixture_status(&f).count, 1);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_INDEX);
	ck_assert_uint_eq(fixture_status(&f).row, (uint32_t)last);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	free(out);
	free(lse);
	close_v4();
}
END_TEST

START_TEST(empty_tokens_are_empty)
{
	open_v4(64);
	v4.lens[0] = v4.lens[2] = 0;
	v4.lens[1] = 65;
	memset(v4.extra_lens, 0, sizeof v4.extra_lens);
	a->topk_lens = v4.lens;
	a->extra_topk_lens = v4.extra_lens;
	a->empty_lse = (uint32_t)_i;
	parts_cut(&p, a, 8, 4);
	v4_check(&f, &v4);
	close_v4();
}
END_TEST

/* Whoever adds: all blocks at the same time, or so few that most give up. */
START_TEST(bits_do_not_depend_on_which_blocks_run_together)
{
	static const uint32_t live[4] = {0, 2, 4, 6};
	uint16_t *first = NULL;
	uint32_t i;

	open_v32(128, 260);
	parts_cut(&p, a, 5, 4);
	for (i = 0; i < 4; i++) {
		emulator_live(live[i]);
		memset(v32.out, 0, v32.out_elems * 2);
		decode_run(&f, &v32);
		if (first)
			ck_assert_mem_eq(first, v32.out, v32.out_elems * 2);
		first = first ? first : malloc(v32.out_elems * 2);
		ck_assert(first != NULL);
		memcpy(first, v32.out, v32.out_elems * 2);
	}
	free(first);
	close_v32();
}
END_TEST

/* Two launches, as without a workspace. */
START_TEST(a_workspace_that_is_too_small_is_not_used)
{
	open_v32(128, 260);
	parts_cut(&p, a, 5, 4);
	a->workspace_bytes -= 4;
	memset(p.workspace, 0x5A, a->workspace_bytes);
	decode_check(&f, &v32);
	ck_assert_uint_eq(p.workspace[0], 0x5A5A5A5A);
	memset(p.workspace, 0, a->workspace_bytes);
	close_v32();
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{splits_of_v32_add_up_to_dense_attention, 7},
		{splits_of_v4_add_up_to_dense_attention, 7},
		{parts_may_go_on_with_the_next_token, 2},
		{whole_tokens_come_first, 2},
	};
	const theme_test edge[] = {
		{empty_tokens_are_empty, 2},
		{a_bad_part_behind_a_whole_token_is_named, 2},
		{a_token_without_its_split_rows_is_empty, 12},
		{a_workspace_that_is_too_small_is_not_used, 1},
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
