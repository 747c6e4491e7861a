/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode with the batch-invariant flag: fixed splits, by the library's
 * own choice. A token's bits are the same alone, with others and at any place
 * among them, and the results equal dense attention.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/ops/attend/shape_rig.h"

enum { MOST = 64, SMALL = 5, BATCHES = 6, CASES = 6, LATENT = 512 };
enum { MULTIPROCESSORS = 4 }; /* of the emulator */

static fixture f;
static shape_rig r;
static uint32_t tokens;
static const uint32_t *batches;
static int32_t lens[MOST], extra_lens[MOST];
static uint16_t *out;
static float *lse;

/* Case n: the model, then the heads: a block's, few, and a pair of blocks'. The
 * emulator has four blocks or two pairs, which do a token's splits in turn.
 * Splits of V3.2 have 4 blocks, a token has three (a device: 4, of 8 blocks); V4
 * has one. */
static void
open_case(int n)
{
	static const uint32_t real[BATCHES] = {1, 2, 5, 8, 40, MOST};
	static const uint32_t small[BATCHES] = {1, 3, 0};
	static const uint32_t keys[2][2][2] = {{{530, 0}, {100, 330}},
					       {{2048, 0}, {128, 512}}};
	static const uint32_t heads[2][3] = {{64, 16, 72}, {128, 64, 16}};
	const uint32_t *of;
	spmla_config config;
	uint64_t results;
	uint32_t on;

	ck_assert_int_eq(spmla_config_operations(&config), SPMLA_OK);
	config.flags |= SPMLA_CONFIG_BATCH_INVARIANT;
	fixture_multiprocessors(MULTIPROCESSORS);
	fixture_open(&f, &config, 0);
	fixture_multiprocessors(0);
	on = fixture_on_real_gpu(&f);
	of = keys[on][n / 3];
	batches = on ? real : small;
	tokens = on ? MOST : SMALL;
	shape_open(&r, &f,
		   n / 3 ? SPMLA_LAYOUT_V4_FP8 : SPMLA_LAYOUT_FP8_DS_MLA,
		   heads[on][n % 3], of[0], of[1], tokens);
	results = (uint64_t)tokens * r.a.heads;
	out = test_alloc(results * LATENT * sizeof *out, 0);
	lse = test_alloc(results * sizeof *lse, 0);
}

static void
close_case(void)
{
	free(out);
	free(lse);
	shape_close(&r);
	fixture_close(&f);
}

static int32_t
at_most(int32_t len, uint32_t keys)
{
	return len < (int32_t)keys ? len : (int32_t)keys;
}

/* Lists of all lengths: none, a key, and about where blocks and splits end. */
static void
cut_lists(void)
{
	static const int32_t some[8] = {0, 257, 1, 256, 255, 64, 512, 100};
	uint32_t t;

	for (t = 0; t < tokens; t++) {
		lens[t] = at_most(t % 3 ? some[(t - t / 3 - 1) % 8] : INT32_MAX,
				  r.keys[0]);
		extra_lens[t] = at_most(
			t % 2 == 1 ? some[t / 2 % 8] : INT32_MAX, r.keys[1]);
	}
	r.a.topk_lens = lens;
	r.a.extra_topk_lens = extra_lens;
}

/* Runs `count` tokens from `first` on, to their places of out and lse. */
static void
run_some(uint32_t first, uint32_t count, shape_way way)
{
	const uint64_t head = (uint64_t)first * r.a.heads;
	const uint8_t *few = (const uint8_t *)r.few;
	spmla_sparse_decode_args a = r.a;

	a.tokens = count;
	a.q += head * r.dim;
	a.slots += (uint64_t)first * r.keys[0];
	a.topk_lens += first;
	if (a.extra_topk) {
		a.extra_slots += (uint64_t)first * r.keys[1];
		a.extra_topk_lens += first;
	}
	a.out += head * LATENT;
	a.lse += head;
	memset(a.out, 0xFF, (uint64_t)count * a.heads * LATENT * 2);
	memset(a.lse, 0xFF, (uint64_t)count * a.heads * 4);
	if (way == SHAPE_WORKSPACE) {
		a.workspace = r.few;
		a.workspace_bytes = r.few_bytes;
	}
	v32_must(f.ctx, spmla_sparse_decode_in_parts(f.ctx, &a, r.parts,
						     r.parts_bytes, NULL));
	fixture_drain(&f);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	/* No word is left, however the blocks met. */
	ck_assert(few[0] == 0 &&
		  memcmp(few, few + 1, (size_t)r.few_bytes - 1) == 0);
}

/* They have the bits of all tokens together. */
static void
expect_same(uint32_t first, uint32_t count)
{
	const uint64_t at = (uint64_t)first * r.a.heads;
	const uint64_t n = (uint64_t)count * r.a.heads;

	ck_assert_mem_eq(r.out + at * LATENT, out + at * LATENT,
			 n * LATENT * sizeof *out);
	ck_assert_mem_eq(r.lse + at, lse + at, n * sizeof *lse);
}

START_TEST(a_token_has_the_same_bits_in_every_batch_and_place)
{
	uint32_t way, i, first, n;

	open_case(_i);
	cut_lists();
	for (way = SHAPE_WORKSPACE; way < SHAPE_WAYS; way++) {
		const uint64_t results = (uint64_t)tokens * r.a.heads;

		run_some(0, tokens, (shape_way)way);
		memcpy(out, r.out, results * LATENT * sizeof *out);
		memcpy(lse, r.lse, results * sizeof *lse);
		for (i = 0; i < BATCHES && batches[i]; i++)
			for (first = 0; first < tokens; first += batches[i]) {
				n = tokens - first < batches[i] ? tokens - first
								: batches[i];
				run_some(first, n, (shape_way)way);
				expect_same(first, n);
			}
	}
	close_case();
}
END_TEST

/* Random lengths, and tokens first .. first + count - 1 of them all. */
START_TEST(a_token_has_the_same_bits_in_random_batches)
{
	uint64_t rng = test_seed();
	uint32_t way, round, t;

	open_case(_i);
	cut_lists();
	for (t = 0; t < tokens; t++) {
		lens[t] = (int32_t)rng_below(&rng, r.keys[0] + 1);
		extra_lens[t] = (int32_t)rng_below(&rng, r.keys[1] + 1);
	}
	for (way = SHAPE_WORKSPACE; way < SHAPE_WAYS; way++) {
		const uint64_t results = (uint64_t)tokens * r.a.heads;

		run_some(0, tokens, (shape_way)way);
		memcpy(out, r.out, results * LATENT * sizeof *out);
		memcpy(lse, r.lse, results * sizeof *lse);
		for (round = 0; round < fixture_rounds(50, 3); round++) {
			const uint32_t first = rng_below(&rng, tokens);
			const uint32_t n = 1 + rng_below(&rng, tokens - first);

			run_some(first, n, (shape_way)way);
			expect_same(first, n);
		}
	}
	close_case();
}
END_TEST

START_TEST(every_value_is_that_of_dense_attention)
{
	uint32_t i, way;

	open_case(_i);
	shape_reference(&r, fixture_on_real_gpu(&f) ? 8 : 3);
	for (i = 0; i < BATCHES && batches[i] && batches[i] <= 8; i++)
		for (way = SHAPE_WORKSPACE; way < SHAPE_WAYS; way++) {
			shape_run(&r, &f, batches[i], (shape_way)way);
			shape_check(&r, batches[i], (shape_way)way);
		}
	close_case();
}
END_TEST

/* V3.2: a split has a quarter of a token's most blocks, and at least 4. */
START_TEST(the_choice_follows_from_the_lists_alone)
{
	static const uint32_t cases[][3] = {{256, 0, 0},
					    {257, 2, 4},
					    {2048, 4, 8},
					    {2049, 4, 9},
					    {16384, 4, 64}};
	uint32_t n, i, t;

	open_case(0);
	n = fixture_on_real_gpu(&f) ? 33 : 5;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		for (t = 1; t < n; t += n - 2) {
			const uint32_t on =
				f.plan.device.kind == SPMLA_BACKEND_CUDA;
			const uint32_t parts = on ? t * cases[i][1] : 0;
			spmla_decode_parts by = SPMLA_DECODE_PARTS_INIT;
			spmla_sparse_decode_args a = r.a;

			a.tokens = t;
			a.topk = cases[i][0];
			a.slots_stride_elems = a.topk;
			v32_must(f.ctx,
				 spmla_decode_parts_choose(f.ctx, &a, &by));
			ck_assert_uint_eq(by.parts, parts);
			ck_assert_uint_eq(by.split_rows, parts);
			ck_assert_uint_eq(by.split_blocks,
					  on ? cases[i][2] : 0);
			/* A ragged list, known and not. */
			a.indptr = a.slots;
			a.topk = 100000;
			v32_must(f.ctx,
				 spmla_decode_parts_choose(f.ctx, &a, &by));
			ck_assert_uint_eq(by.parts, 0);
			a.longest = cases[i][0];
			v32_must(f.ctx,
				 spmla_decode_parts_choose(f.ctx, &a, &by));
			ck_assert_uint_eq(by.parts, parts);
		}
	close_case();
}
END_TEST

/* V3.2 with up to 16 heads and 2048 keys has one launch on Hopper, with a
 * workspace that has room; all else has fixed splits. */
START_TEST(few_heads_have_one_launch_with_a_workspace)
{
	static const struct {
		uint32_t heads, keys, offset, lacks, one; /* offset: of q */
	} cases[] = {{16, 2048, 0, 0, 1}, {1, 2048, 0, 0, 1},
		     {16, 2048, 0, 1, 0}, {16, 2048, 1, 0, 0},
		     {17, 2048, 0, 0, 0}, {16, 2049, 0, 0, 0}};
	const uint64_t token = 4 * (32 + 16 * 16 * (4 + 256));
	uint32_t i, ragged;

	open_case(1);
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		for (ragged = 0; ragged < 2; ragged++) {
			const spmla_device *d = &f.plan.device;
			spmla_decode_parts by = SPMLA_DECODE_PARTS_INIT;
			spmla_sparse_decode_args a = r.a;

			a.tokens = 3;
			a.heads = cases[i].heads;
			a.topk = cases[i].keys;
			a.slots_stride_elems = a.topk;
			a.q += cases[i].offset;
			a.workspace = r.few;
			a.workspace_bytes =
				3 * token * (1 + a.heads / 17) - cases[i].lacks;
			if (ragged) {
				a.indptr = a.slots;
				a.longest = a.topk;
				a.topk = 100000;
			}
			v32_must(f.ctx,
				 spmla_decode_parts_choose(f.ctx, &a, &by));
			ck_assert_uint_eq(by.parts,
					  d->kind != SPMLA_BACKEND_CUDA ? 0
					  : d->arch == 90 && cases[i].one
						  ? 0
						  : 3 * 4);
		}
	close_case();
}
END_TEST

SUITE
{
	const theme_test bits[] = {
		{a_token_has_the_same_bits_in_every_batch_and_place, CASES},
		{a_token_has_the_same_bits_in_random_batches, CASES},
	};
	const theme_test values[] = {
		{every_value_is_that_of_dense_attention, CASES},
		{the_choice_follows_from_the_lists_alone, 1},
		{few_heads_have_one_launch_with_a_workspace, 1},
	};
	const theme themes[] = {
		THEME("bits", NULL, NULL, bits),
		THEME("values", NULL, NULL, values),
	};

	return RUN_THEMES(themes);
}
