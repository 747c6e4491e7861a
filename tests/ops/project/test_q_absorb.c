/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb: the products and the rope part, against double sums, the
 * reference's rotation and vectors worked out by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/project/q_absorb_rig.h"
#include "tests/reference/project_ref.h"

static q_absorb_rig r;

static void
setup(void)
{
	q_absorb_open(&r);
}

static void
teardown(void)
{
	q_absorb_close(&r);
}

/* Queries of zeros and a matrix of zeros. */
static void
clear(void)
{
	memset(r.q_nope, 0, r.q_nope_elems * 2);
	memset(r.w, 0, r.w_elems * 2);
}

static uint16_t *
weight(uint32_t i, uint32_t j)
{
	return r.w + i * r.a.w_row_stride_elems + j;
}

START_TEST(any_tokens_and_heads_equal_sums_in_double)
{
	r.a.tokens = 1 + (uint32_t)_i % 3;
	r.a.heads = 1 + (uint32_t)_i / 3;
	q_absorb_check(&r);
}
END_TEST

START_TEST(rope_part_is_rotated_as_its_style_says)
{
	r.a.rope_style = (uint32_t)_i;
	q_absorb_check(&r);
}
END_TEST

START_TEST(without_a_rope_part_rows_have_512_values)
{
	r.a.q_pe = NULL;
	r.a.q_head_stride_elems = 512;
	r.a.q_pe_token_stride_elems = r.a.q_pe_head_stride_elems = 0;
	q_absorb_check(&r);
}
END_TEST

/* q = 1, 2, 3, 4, 0, ..; rows 0 to 3 of w are 1, -2, 0.5 and j:
 * 1 - 4 + 1.5 + 4 j = 4 j - 1.5, a bf16 number for j < 32. */
START_TEST(product_worked_out_by_hand)
{
	uint32_t i, j;

	clear();
	for (i = 0; i < 4; i++)
		r.q_nope[i] = test_bf16((float)i + 1);
	for (j = 0; j < 32; j++) {
		*weight(0, j) = test_bf16(1);
		*weight(1, j) = test_bf16(-2);
		*weight(2, j) = test_bf16(0.5f);
		*weight(3, j) = test_bf16((float)j);
	}
	q_absorb_check(&r);
	for (j = 0; j < 32; j++)
		ck_assert_uint_eq(r.q[j], test_bf16(4 * (float)j - 1.5f));
	ck_assert_uint_eq(r.q[32], 0);
}
END_TEST

/* 1 + 2^-8 lies in the middle of 1 and 1 + 2^-7 and goes to the even 1; another
 * 2^-20 decides for 1 + 2^-7. Sums in bf16 would lose it. */
START_TEST(sum_is_rounded_once_and_ties_go_to_even)
{
	uint32_t i;

	clear();
	r.q_nope[0] = test_bf16(1);
	r.q_nope[1] = test_bf16(0x1p-8f);
	r.q_nope[2] = test_bf16(0x1p-20f);
	for (i = 0; i < 3; i++)
		*weight(i, 7) = test_bf16(1);
	*weight(0, 8) = *weight(1, 8) = test_bf16(1);
	q_absorb_check(&r);
	ck_assert_uint_eq(r.q[7], test_bf16(1 + 0x1p-7f));
	ck_assert_uint_eq(r.q[8], test_bf16(1));
}
END_TEST

/* On the CPU, and for rows that do not fit matrix instructions.
 * 2^24 + 1 is 2^24 in f32. Terms 2^24, 1, -2^24 of one lane (i = 0, 16, 32)
 * give 0; in lanes 0, 1, 2 the tree adds lane 2 to lane 0 first and gives 1; in
 * lanes 0, 8, 1 it adds lane 8 to lane 0 first and gives 0. */
START_TEST(products_are_summed_in_the_order_that_is_written)
{
	static const uint32_t at[3][3] = {{0, 16, 32}, {0, 1, 2}, {0, 8, 1}};
	static const float terms[3] = {0x1p24f, 1, -0x1p24f};
	static const float want[3] = {0, 1, 0};
	uint32_t i;

	clear();
	r.a.w_row_stride_elems = 513;
	for (i = 0; i < 128; i++)
		r.q_nope[i] = test_bf16(1);
	for (i = 0; i < 3; i++)
		*weight(at[_i][i], 5) = test_bf16(terms[i]);
	q_absorb_run(&r);
	ck_assert_uint_eq(r.q[5], test_bf16(want[_i]));
}
END_TEST

/* Up to two heads, with rope parts, and rows as matrix instructions take them:
 * within the bound, and the last token has the bits that it has alone. Token 5
 * has no row of the rope table. */
START_TEST(any_number_of_tokens_give_each_its_own_bits)
{
	enum { MOST = 200, HEADS = 2, NOPE = 128, PE = 64, OUT = 576 + 8 };
	static const struct {
		uint32_t tokens, heads;
	} c[6] = {{15, 2}, {17, 2}, {128, 2}, {131, 2}, {MOST, 2}, {MOST, 1}};
	static int32_t positions[MOST];
	const uint32_t n = c[_i % 6].tokens, heads = c[_i % 6].heads;
	const uint32_t last = n - 1;
	uint16_t *x = test_alloc(2 * MOST * HEADS * (NOPE + PE), 0);
	uint16_t *pe = x + MOST * HEADS * NOPE;
	uint16_t *q = test_alloc(2 * MOST * HEADS * OUT, 0x5A);
	const uint16_t zeros[576] = {0};
	uint16_t alone[576];
	uint32_t t, h, i;

	project_fill(&r.rng, pe, MOST * HEADS * PE);
	for (h = 0; h < HEADS; h++)
		project_cancel(&r.rng, x + h * NOPE, HEADS * NOPE, n,
			       r.w + h * r.a.w_head_stride_elems,
			       r.a.w_row_stride_elems, NOPE, 512);
	for (t = 0; t < n; t++)
		positions[t] = t == 5 ? -1 : (int32_t)t % ROPE_POSITIONS;
	r.a.tokens = n;
	r.a.heads = heads;
	r.a.rope_style = 1 + (uint32_t)_i / 6;
	r.a.positions = positions;
	r.a.q_nope = x;
	r.a.q_nope_token_stride_elems = HEADS * NOPE;
	r.a.q_nope_head_stride_elems = NOPE;
	r.a.q_pe = pe;
	r.a.q_pe_token_stride_elems = HEADS * PE;
	r.a.q_pe_head_stride_elems = PE;
	r.a.q = q;
	r.a.q_token_stride_elems = HEADS * OUT;
	r.a.q_head_stride_elems = OUT;
	q_absorb_run(&r);
	q_absorb_expect_status(&r, SPMLA_FAULT_POSITION, 5);
	for (t = 0; t < n; t++)
		for (h = 0; h < heads; h++) {
			const uint16_t *got = q + (t * HEADS + h) * OUT;

			for (i = 576; i < OUT; i++)
				ck_assert_uint_eq(got[i], 0x5A5A);
			if (t == 5) {
				ck_assert_mem_eq(got, zeros, sizeof zeros);
				continue;
			}
			q_absorb_check_rope(&r, t, h, got + 512);
			/* Styles differ in the rope part alone. */
			if (_i >= 6 && t != last)
				continue;
			project_check(got, x + (t * HEADS + h) * NOPE,
				      r.w + h * r.a.w_head_stride_elems,
				      r.a.w_row_stride_elems, NOPE, 512,
				      q_absorb_slack(&r));
		}
	for (i = 0; n < MOST && i < OUT; i++)
		ck_assert_uint_eq(q[n * HEADS * OUT + i], 0x5A5A);
	h = heads - 1;
	memcpy(alone, q + (last * HEADS + h) * OUT, sizeof alone);
	r.a.tokens = r.a.heads = 1;
	r.a.q_nope += (last * HEADS + h) * NOPE;
	r.a.q_pe += (last * HEADS + h) * PE;
	r.a.w_uk_t += h * r.a.w_head_stride_elems;
	r.a.positions = positions + last;
	q_absorb_run(&r);
	ck_assert_mem_eq(q, alone, sizeof alone);
	free(x);
	free(q);
}
END_TEST

/* One head, with rope parts; rows of odd lengths at odd addresses in the
 * second half, which like the rope parts' address matrix instructions do not
 * take. Token 5 has no row of the rope table. */
START_TEST(any_number_of_tokens_have_the_bits_that_are_written)
{
	enum { MOST = 131, NOPE = 129, PE = 65, ROW = 513, OUT = 577 };
	static const uint32_t counts[4] = {8, 9, 64, MOST};
	static int32_t positions[MOST];
	const uint32_t odd = (uint32_t)_i / 4, n = counts[_i % 4];
	uint16_t *x = test_alloc(2 * (MOST * (NOPE + PE + OUT) + 3), 0);
	uint16_t *pe = x + MOST * NOPE + 1, *q = pe + MOST * PE + 1;
	uint16_t *w = test_alloc(2 * (128 * ROW + 1), 0);
	uint32_t t, j;

	project_fill(&r.rng, pe, MOST * PE);
	project_cancel(&r.rng, x + odd, 128 + odd, n, w + odd, 512 + odd, 128,
		       512);
	for (t = 0; t < n; t++)
		positions[t] = t == 5 ? -1 : (int32_t)t % ROPE_POSITIONS;
	r.a.tokens = n;
	r.a.heads = 1;
	r.a.rope_style = SPMLA_ROPE_NEOX;
	r.a.positions = positions;
	r.a.q_nope = x + odd;
	r.a.q_nope_token_stride_elems = 128 + odd;
	r.a.w_uk_t = w + odd;
	r.a.w_row_stride_elems = 512 + odd;
	r.a.q_pe = pe + odd;
	r.a.q_pe_token_stride_elems = 64 + odd;
	r.a.q = q + odd;
	r.a.q_token_stride_elems = 576 + odd;
	q_absorb_run(&r);
	ck_assert_uint_eq(fixture_status(&r.f).count, 1);
	ck_assert_uint_eq(fixture_status(&r.f).row, 5);
	for (t = 0; t < n; t++) {
		const uint16_t *got = r.a.q + t * r.a.q_token_stride_elems;

		if (t != 5)
			q_absorb_check_rope(&r, t, 0, got + 512);
		for (j = 0; j < 512; j++)
			ck_assert_uint_eq(
				got[j],
				t == 5 ? 0
				       : project_bits(r.a.q_nope +
							      t * (128 + odd),
						      r.a.w_uk_t + j, 512 + odd,
						      128));
		for (; t == 5 && j < 576; j++)
			ck_assert_uint_eq(got[j], 0);
	}
	free(x);
	free(w);
}
END_TEST

/* Position 0 has cos 1 and sin 0. Position 3: the first pair turns by 3 rad,
 * 1 * cos 3 - 0 = -0.98999 and 0 + 1 * sin 3 = 0.14112; in bf16, steps of 2^-8
 * and 2^-10, -253 * 2^-8 and 145 * 2^-10. NEOX has its second value at 32,
 * INTERLEAVED at 1. */
START_TEST(rotation_worked_out_by_hand)
{
	const uint32_t second = _i ? 1 : 32;
	uint32_t i;

	r.a.rope_style = _i ? SPMLA_ROPE_INTERLEAVED : SPMLA_ROPE_NEOX;
	r.a.tokens = 2;
	r.positions[0] = 0;
	r.positions[1] = 3;
	memset(r.q_pe + r.a.q_pe_token_stride_elems, 0, 64 * 2);
	r.q_pe[r.a.q_pe_token_stride_elems] = test_bf16(1);
	q_absorb_check(&r);
	for (i = 0; i < 64; i++)
		ck_assert_uint_eq(r.q[512 + i], r.q_pe[i]);
	ck_assert_uint_eq(r.q[r.a.q_token_stride_elems + 512],
			  test_bf16(-253 * 0x1p-8f));
	ck_assert_uint_eq(r.q[r.a.q_token_stride_elems + 512 + second],
			  test_bf16(145 * 0x1p-10f));
}
END_TEST

START_TEST(position_outside_the_table_gives_zeros_and_is_reported)
{
	static const int32_t bad[5] = {-1, INT32_MIN, INT32_MAX, ROPE_POSITIONS,
				       ROPE_POSITIONS + 1};

	r.a.rope_style = SPMLA_ROPE_NEOX;
	r.positions[1] = bad[_i];
	q_absorb_check(&r);
	q_absorb_expect_status(&r, SPMLA_FAULT_POSITION, 1);
	r.positions[1] = ROPE_POSITIONS - 1;
	q_absorb_check(&r);
	q_absorb_expect_status(&r, SPMLA_FAULT_NONE, 0);
}
END_TEST

START_TEST(without_a_rope_positions_are_not_looked_at)
{
	r.positions[1] = -1;
	r.a.positions = NULL;
	r.a.cos_sin = NULL;
	r.a.cos_sin_rows = 0;
	q_absorb_check(&r);
	q_absorb_expect_status(&r, SPMLA_FAULT_NONE, 0);
}
END_TEST

START_TEST(bits_of_a_rope_part_that_is_not_rotated_are_kept)
{
	uint32_t i;

	for (i = 0; i < 64; i++)
		r.q_pe[i] = (uint16_t)(0x7F80 + i % 3 * 0x4001 + i);
	q_absorb_check(&r);
	ck_assert_mem_eq(r.q + 512, r.q_pe, 64 * 2);
}
END_TEST

START_TEST(infinities_and_nan_go_through_the_arithmetic)
{
	r.q_nope[3] = 0x7F80;
	*weight(3, 0) = 0;      /* inf * 0 is NaN */
	*weight(3, 1) = 0xBF80; /* -inf */
	r.q_nope[r.a.q_nope_token_stride_elems] = 0x7FC0;
	q_absorb_check(&r);
	ck_assert_float_nan(test_bf16_value(r.q[0]));
	ck_assert_float_eq(test_bf16_value(r.q[1]), -INFINITY);
	ck_assert_float_nan(
		test_bf16_value(r.q[r.a.q_token_stride_elems + 100]));
}
END_TEST

START_TEST(heads_may_be_outermost)
{
	r.a.q_nope_head_stride_elems = 3 * 136;
	r.a.q_nope_token_stride_elems = 136;
	r.a.q_pe_head_stride_elems = 3 * 72;
	r.a.q_pe_token_stride_elems = 72;
	r.a.q_head_stride_elems = 3 * 584;
	r.a.q_token_stride_elems = 584;
	/* heads inside the rows of w */
	r.a.w_head_stride_elems = 512;
	r.a.w_row_stride_elems = Q_ABSORB_HEADS * 512;
	q_absorb_check(&r);
}
END_TEST

/* Heads 3 GiB apart; only what is touched takes memory. */
START_TEST(weights_beyond_four_gib_are_found)
{
	const uint64_t stride = UINT64_C(3) << 30;
	uint8_t *map = test_map(3 * stride);
	uint32_t h;

	for (h = 0; h < 3; h++)
		memcpy(map + h * stride, r.w + h * r.a.w_head_stride_elems,
		       127 * 520 * 2 + 512 * 2);
	r.a.heads = 3;
	r.a.w_uk_t = (uint16_t *)(void *)map;
	r.a.w_head_stride_elems = (int64_t)(stride / 2);
	q_absorb_check(&r);
	munmap(map, 3 * stride);
}
END_TEST

START_TEST(bits_of_a_token_do_not_depend_on_the_others)
{
	uint16_t alone[576];

	r.a.rope_style = SPMLA_ROPE_INTERLEAVED;
	q_absorb_run(&r);
	memcpy(alone, r.q + r.a.q_token_stride_elems + r.a.q_head_stride_elems,
	       sizeof alone);
	r.a.tokens = r.a.heads = 1;
	r.a.q_nope +=
		r.a.q_nope_token_stride_elems + r.a.q_nope_head_stride_elems;
	r.a.q_pe += r.a.q_pe_token_stride_elems + r.a.q_pe_head_stride_elems;
	r.a.w_uk_t += r.a.w_head_stride_elems;
	r.a.positions = (const int32_t *)r.a.positions + 1;
	q_absorb_check(&r);
	ck_assert_mem_eq(r.q, alone, sizeof alone);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{any_tokens_and_heads_equal_sums_in_double, 12},
		{rope_part_is_rotated_as_its_style_says, 3},
		{without_a_rope_part_rows_have_512_values, 1},
		{product_worked_out_by_hand, 1},
		{sum_is_rounded_once_and_ties_go_to_even, 1},
		{rotation_worked_out_by_hand, 2},
	};
	const theme_test edge[] = {
		{position_outside_the_table_gives_zeros_and_is_reported, 5},
		{without_a_rope_positions_are_not_looked_at, 1},
		{bits_of_a_rope_part_that_is_not_rotated_are_kept, 1},
		{infinities_and_nan_go_through_the_arithmetic, 1},
	};
	const theme_test layout[] = {
		{heads_may_be_outermost, 1},
		{weights_beyond_four_gib_are_found, 1},
	};
	const theme_test determinism[] = {
		{products_are_summed_in_the_order_that_is_written, 3},
		{any_number_of_tokens_have_the_bits_that_are_written, 8},
		{any_number_of_tokens_give_each_its_own_bits, 12},
		{bits_of_a_token_do_not_depend_on_the_others, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
