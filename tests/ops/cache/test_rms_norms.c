/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norms: all bytes of both outputs compared with a model that does every
 * f32 operation in double and rounds it, and values derived by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/rms_rig.h"

static rms_rig r;

static void
setup(void)
{
	rms_open(&r);
}

static void
teardown(void)
{
	rms_close(&r);
}

START_TEST(rows_of_any_width_equal_the_model)
{
	static const uint32_t widths[6][2] = {{1536, 512}, {1024, 512},
					      {8, 16},     {1032, 4096},
					      {4096, 8},   {72, 2056}};
	uint32_t i;

	for (i = 0; i < 6; i++) {
		rms_sizes(&r, 1 + i, widths[i][0], 9 - i, widths[i][1]);
		rms_check(&r);
	}
}
END_TEST

START_TEST(either_set_may_have_no_rows)
{
	rms_sizes(&r, 3, 1024, 0, 512);
	r.a.kv = r.a.kv_weight = r.a.kv_out = NULL;
	r.a.kv_width = 0;
	rms_check(&r);
	r.a.kv = r.kv.x;
	r.a.kv_weight = r.kv.weight;
	r.a.kv_out = r.kv.out;
	rms_sizes(&r, 0, 1024, 3, 512);
	r.a.q = r.a.q_weight = r.a.q_out = NULL;
	r.a.q_width = 7;
	rms_check(&r);
}
END_TEST

/* Whatever the order of the sum: two roundings of f32 and one to bf16. */
START_TEST(rows_are_the_norm_of_their_values)
{
	uint32_t n, i;

	rms_sizes(&r, 9, 1536, 0, 8);
	for (i = 0; i < RMS_ELEMS; i++)
		r.q.x[i] = test_bf16((float)((int)(i * 37 % 101) - 50) / 8);
	rms_run(&r);
	for (n = 0; n < 9; n++) {
		const uint16_t *x = r.q.x + n * 1544;
		double sum = 0;

		for (i = 0; i < 1536; i++)
			sum += pow((double)test_bf16_value(x[i]), 2);
		for (i = 0; i < 1536; i++) {
			const double want =
				(double)test_bf16_value(x[i]) /
				sqrt(sum / 1536 + 1e-6) *
				(double)test_bf16_value(r.q.weight[i]);

			ck_assert_double_le(
				fabs((double)test_bf16_value(
					     r.q.out[n * 1552 + i]) -
				     want),
				0x1.01p-8 * fabs(want));
		}
	}
}
END_TEST

/* 8 values of 3 and -3: mean of squares 9, r = 1 / sqrt(9.000001) a little
 * below 1 / 3, 3 r a little below 1; times weights 1, 2, -0.5 and 0: to bf16
 * 1, -2, -0.5 and -0. One 8 and seven 0 have mean 8, r = 0.35355337, 8 r =
 * 2.828427 = 1.4142 * 2: 128 << 7 | 53. */
START_TEST(norm_worked_out_by_hand)
{
	uint32_t i;

	rms_sizes(&r, 2, 8, 0, 8);
	for (i = 0; i < 8; i++) {
		r.q.x[i] = test_bf16(i % 2 ? -3.0f : 3.0f);
		r.q.x[16 + i] = 0;
		r.q.weight[i] = test_bf16(1.0f);
	}
	r.q.x[16] = test_bf16(8.0f);
	r.q.weight[1] = test_bf16(2.0f);
	r.q.weight[2] = test_bf16(-0.5f);
	r.q.weight[3] = 0;
	rms_check(&r);
	ck_assert_uint_eq(r.q.out[0], 0x3f80);
	ck_assert_uint_eq(r.q.out[1], 0xc000);
	ck_assert_uint_eq(r.q.out[2], 0xbf00);
	ck_assert_uint_eq(r.q.out[3], 0x8000);
	ck_assert_uint_eq(r.q.out[24], 128 << 7 | 53);
	ck_assert_uint_eq(r.q.out[25], 0);
}
END_TEST

/* eps is 2^-2, so r of zeros is 2; of 2^-133 it is 2^-132, 2 steps. A NaN is in
 * the whole row; an infinity makes r 0, itself NaN. */
START_TEST(zeros_subnormals_nan_and_infinity_have_defined_bits)
{
	uint32_t i;

	rms_sizes(&r, 3, 16, 0, 8);
	r.a.norm_eps = 0.25f;
	for (i = 0; i < 16; i++) {
		r.q.x[i] = 0;
		r.q.x[24 + i] = r.q.x[48 + i] = test_bf16(-1.0f);
		r.q.weight[i] = test_bf16(1.0f);
	}
	r.q.x[1] = 0x8000;
	r.q.x[2] = 0x0001;
	r.q.x[24] = 0xffc1;
	r.q.x[48] = 0xff80;
	rms_check(&r);
	ck_assert_uint_eq(r.q.out[0], 0);
	ck_assert_uint_eq(r.q.out[1], 0x8000);
	ck_assert_uint_eq(r.q.out[2], 0x0002);
	for (i = 0; i < 16; i++)
		ck_assert_uint_eq(r.q.out[32 + i], 0x7fc0);
	ck_assert_uint_eq(r.q.out[64], 0x7fc0);
	ck_assert_uint_eq(r.q.out[65], 0x8000);
}
END_TEST

START_TEST(a_row_does_not_depend_on_its_neighbours)
{
	static uint16_t row[1536];

	rms_sizes(&r, 9, 1536, 9, 512);
	rms_check(&r);
	memcpy(row, r.q.out + 6 * r.a.q_out_stride_elems, sizeof row);
	r.a.q += 6 * r.a.q_stride_elems;
	r.a.q_rows = 1;
	r.a.kv_rows = 0;
	rms_check(&r);
	ck_assert_mem_eq(r.q.out, row, sizeof row);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{rows_of_any_width_equal_the_model, 1},
		{either_set_may_have_no_rows, 1},
		{rows_are_the_norm_of_their_values, 1},
	};
	const theme_test edge[] = {
		{norm_worked_out_by_hand, 1},
		{zeros_subnormals_nan_and_infinity_have_defined_bits, 1},
	};
	const theme_test determinism[] = {
		{a_row_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("determinism", setup, teardown, determinism)};

	return RUN_THEMES(themes);
}
