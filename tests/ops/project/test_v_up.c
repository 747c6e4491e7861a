/* SPDX-License-Identifier: Apache-2.0
 *
 * v_up: products against double sums and vectors worked out by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/ops/project/project_rig.h"
#include "tests/reference/project_ref.h"

#include "spmla/ops/v_up.h"

enum {
	TOKENS = 3,
	HEADS = 3,
	PAD = 8,
	LATENT = 512 + PAD,
	ROW = 128 + PAD,
	LATENT_ELEMS = TOKENS * (HEADS * LATENT + PAD),
	W_ELEMS = HEADS * (512 * ROW + PAD),
	OUT_ELEMS = TOKENS * (HEADS * 128 + PAD)
};

static fixture f;
static spmla_v_up_args a;
static uint16_t *latent, *w, *out;
static uint64_t rng;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	rng = test_seed();
	latent = test_alloc(LATENT_ELEMS * 2, 0);
	w = test_alloc(W_ELEMS * 2, 0);
	out = test_alloc(OUT_ELEMS * 2, 0);
	project_fill(&rng, latent, LATENT_ELEMS);
	project_fill(&rng, w, W_ELEMS);
	a = (spmla_v_up_args){sizeof a, TOKENS, HEADS,
			      0,        latent, HEADS * LATENT + PAD,
			      LATENT,   w,      512 * ROW + PAD,
			      ROW,      out,    HEADS * 128 + PAD};
}

static void
teardown(void)
{
	free(latent);
	free(w);
	free(out);
	fixture_close(&f);
}

static void
run(void)
{
	ck_assert_int_eq(spmla_v_up(f.ctx, &a, NULL), SPMLA_OK);
}

/* The bound of a sum in its sum of |terms|. */
static double
slack(void)
{
	const uint32_t matrix =
		project_has(&f, SPMLA_KERNEL_v_up_mma) &&
		project_aligned(a.latent, a.latent_token_stride_elems,
				a.latent_head_stride_elems, 2) &&
		project_aligned(a.w_uv, a.w_row_stride_elems,
				a.w_head_stride_elems, 2) &&
		project_aligned(a.out, a.out_token_stride_elems, 0, 2);

	return matrix ? 0x1p-16 : 0x1p-18;
}

/* Every value is as it has to be, nothing else is written. No value is near
 * 0x5A5A. */
static void
check(void)
{
	uint32_t t, h, i, untouched = 0;

	memset(out, 0x5A, OUT_ELEMS * sizeof *out);
	run();
	for (i = 0; i < OUT_ELEMS; i++)
		untouched += out[i] == 0x5A5A;
	ck_assert_uint_eq(untouched, OUT_ELEMS - a.tokens * a.heads * 128);
	for (t = 0; t < a.tokens; t++)
		for (h = 0; h < a.heads; h++)
			project_check(
				a.out + t * a.out_token_stride_elems + h * 128,
				a.latent + t * a.latent_token_stride_elems +
					h * a.latent_head_stride_elems,
				a.w_uv + h * a.w_head_stride_elems,
				a.w_row_stride_elems, 512, 128, slack());
}

START_TEST(any_tokens_and_heads_equal_sums_in_double)
{
	a.tokens = 1 + (uint32_t)_i % 3;
	a.heads = 1 + (uint32_t)_i / 3;
	check();
}
END_TEST

/* latent = 2 at dim 0 and -1 at dim 511; w[0][j] = j, w[511][j] = 3:
 * 2 j - 3, a bf16 number for j < 128. */
START_TEST(product_worked_out_by_hand)
{
	uint32_t j;

	memset(latent, 0, LATENT_ELEMS * 2);
	memset(w, 0, W_ELEMS * 2);
	latent[0] = test_bf16(2);
	latent[511] = test_bf16(-1);
	for (j = 0; j < 128; j++) {
		w[j] = test_bf16((float)j);
		w[511 * ROW + j] = test_bf16(3);
	}
	check();
	for (j = 0; j < 128; j++)
		ck_assert_uint_eq(out[j], test_bf16(2 * (float)j - 3));
	ck_assert_uint_eq(out[128], 0);
}
END_TEST

/* As q_absorb, for rows that do not fit matrix instructions: 2^24 + 1 is 2^24
 * in f32. In one lane the 1 is lost, in lanes 0, 1, 2 the tree adds lane 2 to
 * lane 0 first and keeps it. */
START_TEST(products_are_summed_in_the_order_that_is_written)
{
	static const uint32_t at[2][3] = {{0, 16, 32}, {0, 1, 2}};
	static const float terms[3] = {0x1p24f, 1, -0x1p24f};
	uint32_t i;

	memset(w, 0, W_ELEMS * 2);
	a.w_row_stride_elems = 129;
	for (i = 0; i < 512; i++)
		latent[i] = test_bf16(1);
	for (i = 0; i < 3; i++)
		w[at[_i][i] * 129 + 9] = test_bf16(terms[i]);
	run();
	ck_assert_uint_eq(out[9], test_bf16((float)_i));
}
END_TEST

/* Two heads, with rows as matrix instructions take them: within the bound,
 * and the last token has the bits that it has alone. */
START_TEST(any_number_of_tokens_give_each_its_own_bits)
{
	enum { MOST = 131, OUT = 2 * 128 + PAD };
	static const uint32_t counts[4] = {15, 17, 128, MOST};
	const uint32_t n = counts[_i], last = n - 1;
	uint16_t *x = test_alloc(2 * MOST * 2 * 512, 0);
	uint16_t *y = test_alloc(2 * (MOST + 1) * OUT, 0x5A);
	uint16_t alone[128];
	uint32_t t, h, i;

	a.tokens = n;
	a.heads = 2;
	a.latent = x;
	a.latent_token_stride_elems = 2 * 512;
	a.latent_head_stride_elems = 512;
	a.out = y;
	a.out_token_stride_elems = OUT;
	for (h = 0; h < 2; h++)
		project_cancel(&rng, x + h * 512, 2 * 512, n,
			       w + h * a.w_head_stride_elems, ROW, 512, 128);
	run();
	for (t = 0; t < n; t++) {
		for (h = 0; h < 2; h++)
			project_check(y + t * OUT + h * 128,
				      x + (t * 2 + h) * 512,
				      w + h * a.w_head_stride_elems, ROW, 512,
				      128, slack());
		for (i = 2 * 128; i < OUT; i++)
			ck_assert_uint_eq(y[t * OUT + i], 0x5A5A);
	}
	for (i = 0; i < OUT; i++)
		ck_assert_uint_eq(y[n * OUT + i], 0x5A5A);
	memcpy(alone, y + last * OUT + 128, sizeof alone);
	a.tokens = a.heads = 1;
	a.latent += (last * 2 + 1) * 512;
	a.w_uv += a.w_head_stride_elems;
	run();
	ck_assert_mem_eq(y, alone, sizeof alone);
	free(x);
	free(y);
}
END_TEST

/* One head, with rows as matrix instructions take them: all tokens have the
 * bits that they have among 16. */
START_TEST(tokens_have_the_bits_that_they_have_among_16)
{
	enum { MOST = 200 };
	uint16_t *x = test_alloc(2 * MOST * (512 + 2 * 128), 0);
	uint16_t *all = x + MOST * 512, *some = all + MOST * 128;
	uint32_t t;

	project_cancel(&rng, x, 512, MOST, w, ROW, 512, 128);
	a.tokens = MOST;
	a.heads = 1;
	a.latent = x;
	a.latent_token_stride_elems = 512;
	a.out = all;
	a.out_token_stride_elems = 128;
	run();
	for (t = 0; t < MOST; t += a.tokens) {
		a.tokens = MOST - t < 16 ? MOST - t : 16;
		a.latent = x + t * 512;
		a.out = some + t * 128;
		run();
	}
	ck_assert_mem_eq(some, all, 2 * MOST * 128);
	free(x);
}
END_TEST

/* Each block has several heads, one after another. Matrices overlap: the one of
 * the next head begins a row further on. */
START_TEST(more_heads_than_blocks_take_turns)
{
	enum { MOST = 130 };
	const uint32_t heads = 2 * (f.plan.device.sm_count + 1);
	uint16_t *x = test_alloc(2 * MOST * heads * (512 + 128), 0);
	uint16_t *y = x + MOST * heads * 512;
	uint16_t *m = test_alloc(2 * (heads + 512) * ROW, 0);
	uint32_t t, h;

	project_fill(&rng, x, MOST * heads * 512);
	project_fill(&rng, m, (heads + 512) * ROW);
	a.tokens = MOST;
	a.heads = heads;
	a.latent = x;
	a.latent_token_stride_elems = heads * 512;
	a.latent_head_stride_elems = 512;
	a.w_uv = m;
	a.w_head_stride_elems = a.w_row_stride_elems = ROW;
	a.out = y;
	a.out_token_stride_elems = heads * 128;
	run();
	for (t = 0; t < MOST; t += t % 16 == 15 ? 1 : 5)
		for (h = 0; h < heads; h++)
			project_check(y + (t * heads + h) * 128,
				      x + (t * heads + h) * 512, m + h * ROW,
				      ROW, 512, 128, slack());
	free(x);
	free(m);
}
END_TEST

/* One head; rows of odd lengths at odd addresses in the second half. The
 * results lie where matrix instructions do not take them. */
START_TEST(any_number_of_tokens_have_the_bits_that_are_written)
{
	enum { MOST = 131, IN = MOST * 513 + 3, OUT = MOST * 129 + 1 };
	static const uint32_t counts[4] = {8, 9, 64, MOST};
	const uint32_t odd = (uint32_t)_i / 4;
	uint16_t *x = test_alloc(2 * (IN + OUT), 0), *y = x + IN;
	uint16_t *m = test_alloc(2 * (512 * 129 + 1), 0);
	uint32_t t, j;

	a.tokens = counts[_i % 4];
	a.heads = 1;
	a.latent = x + odd;
	a.latent_token_stride_elems = 512 + odd;
	a.w_uv = m + odd;
	a.w_row_stride_elems = 128 + odd;
	a.out = y + odd;
	a.out_token_stride_elems = 128 + odd;
	project_cancel(&rng, x + odd, 512 + odd, a.tokens, m + odd, 128 + odd,
		       512, 128);
	run();
	for (t = 0; t < a.tokens; t++)
		for (j = 0; j < 128; j++)
			ck_assert_uint_eq(
				a.out[t * (128 + odd) + j],
				project_bits(a.latent + t * (512 + odd),
					     a.w_uv + j, 128 + odd, 512));
	free(x);
	free(m);
}
END_TEST

START_TEST(infinities_and_nan_go_through_the_arithmetic)
{
	latent[3] = 0x7F80;
	w[3 * ROW] = 0;
	w[3 * ROW + 1] = 0xBF80;
	latent[a.latent_token_stride_elems] = 0x7FC0;
	check();
	ck_assert_float_nan(test_bf16_value(out[0]));
	ck_assert_float_eq(test_bf16_value(out[1]), -INFINITY);
	ck_assert_float_nan(test_bf16_value(out[a.out_token_stride_elems]));
}
END_TEST

/* As q_absorb: 2^-133 * 2^100 = 2^-33, 2^-100 * 2^-30 = 8 * 2^-133. */
START_TEST(subnormal_values_are_not_flushed)
{
	memset(latent, 0, LATENT_ELEMS * 2);
	memset(w, 0, W_ELEMS * 2);
	latent[0] = 0x0001;
	latent[1] = test_bf16(0x1p-100f);
	w[4] = test_bf16(0x1p100f);
	w[ROW + 5] = test_bf16(0x1p-30f);
	run();
	ck_assert_uint_eq(out[4], test_bf16(0x1p-33f));
	ck_assert_uint_eq(out[5], 0x0008);
}
END_TEST

START_TEST(heads_may_be_outermost)
{
	a.latent_head_stride_elems = TOKENS * LATENT;
	a.latent_token_stride_elems = LATENT;
	a.w_head_stride_elems = 128;
	a.w_row_stride_elems = HEADS * 128;
	a.out_token_stride_elems = HEADS * 128;
	check();
}
END_TEST

/* Heads 3 GiB apart; only what is touched takes memory. */
START_TEST(weights_beyond_four_gib_are_found)
{
	const uint64_t stride = UINT64_C(3) << 30;
	uint8_t *map = test_map(HEADS * stride);
	uint32_t h;

	for (h = 0; h < HEADS; h++)
		memcpy(map + h * stride, w + h * a.w_head_stride_elems,
		       (511 * ROW + 128) * 2);
	a.w_uv = (uint16_t *)(void *)map;
	a.w_head_stride_elems = (int64_t)(stride / 2);
	check();
	munmap(map, HEADS * stride);
}
END_TEST

START_TEST(bits_of_a_row_do_not_depend_on_the_others)
{
	uint16_t alone[128];

	run();
	memcpy(alone, out + a.out_token_stride_elems + 2 * 128, sizeof alone);
	a.tokens = a.heads = 1;
	a.latent +=
		a.latent_token_stride_elems + 2 * a.latent_head_stride_elems;
	a.w_uv += 2 * a.w_head_stride_elems;
	check();
	ck_assert_mem_eq(out, alone, sizeof alone);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{any_tokens_and_heads_equal_sums_in_double, 9},
		{product_worked_out_by_hand, 1},
		{more_heads_than_blocks_take_turns, 1},
	};
	const theme_test edge[] = {
		{infinities_and_nan_go_through_the_arithmetic, 1},
		{subnormal_values_are_not_flushed, 1},
	};
	const theme_test layout[] = {
		{heads_may_be_outermost, 1},
		{weights_beyond_four_gib_are_found, 1},
	};
	const theme_test determinism[] = {
		{products_are_summed_in_the_order_that_is_written, 2},
		{any_number_of_tokens_have_the_bits_that_are_written, 8},
		{any_number_of_tokens_give_each_its_own_bits, 4},
		{tokens_have_the_bits_that_they_have_among_16, 1},
		{bits_of_a_row_do_not_depend_on_the_others, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),

		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),

	};

	return RUN_THEMES(themes);
}
