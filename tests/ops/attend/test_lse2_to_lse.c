/* SPDX-License-Identifier: Apache-2.0
 *
 * lse2_to_lse: every value, and a result in place of the input.
 */
#include <math.h>
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/reference/reference.h"

#include "spmla/ops/lse2_to_lse.h"

enum { COUNT = 1000 };

static fixture f;
static spmla_lse2_to_lse_args a;
static float in[COUNT + 1], out[COUNT + 1];

static void
setup(void)
{
	uint64_t rng = test_seed();
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	for (i = 0; i <= COUNT; i++)
		in[i] = ldexpf(rng_float(&rng), (int)rng_below(&rng, 20));
	a = (spmla_lse2_to_lse_args){sizeof a, 0, COUNT, in, out};
}

static void
teardown(void)
{
	fixture_close(&f);
}

/* The f32 nearest to ln 2 is 11629080 * 2^-24. */
static void
check(void)
{
	uint32_t i;

	memset(out, 0x5A, sizeof out);
	ck_assert_int_eq(spmla_lse2_to_lse(f.ctx, &a, NULL), SPMLA_OK);
	for (i = 0; i < a.count; i++) {
		const double want = ref_round_f32((double)in[i] * 0xB17218p-24);

		ck_assert(isnan(in[i]) ? isnan(out[i]) : out[i] == want);
	}
	ck_assert_mem_eq(&out[a.count], "\x5A\x5A\x5A\x5A", 4);
}

START_TEST(every_value_is_one_f32_product)
{
	static const uint32_t counts[4] = {1, 2, 17, COUNT};

	a.count = counts[_i];
	check();
}
END_TEST

/* log2 1 = 0, log2 2 = 1 and ln 2 = 0.693147181 in f32, log2 8 = 3 and 3 *
 * 11629080 * 2^-24 = 34887240 * 2^-24, in steps of 4: itself. */
START_TEST(values_worked_out_by_hand)
{
	in[0] = 0;
	in[1] = 1;
	in[2] = 3;
	in[3] = -1;
	check();
	ck_assert_float_eq(out[0], 0);
	ck_assert_float_eq(out[1], 11629080 * 0x1p-24f);
	ck_assert_float_eq(out[2], 34887240 * 0x1p-24f);
	ck_assert_float_eq(out[3], -11629080 * 0x1p-24f);
}
END_TEST

START_TEST(empty_rows_and_nan_stay_what_they_are)
{
	in[0] = -INFINITY;
	in[1] = INFINITY;
	in[2] = NAN;
	in[3] = -0.0f;
	in[4] = 0x1p-149f;
	check();
	ck_assert_float_eq(out[0], -INFINITY);
	ck_assert_float_eq(out[1], INFINITY);
	ck_assert_float_nan(out[2]);
	ck_assert(signbit(out[3]));
}
END_TEST

START_TEST(result_may_replace_the_input)
{
	uint32_t i;

	check();
	a.lse = in;
	ck_assert_int_eq(spmla_lse2_to_lse(f.ctx, &a, NULL), SPMLA_OK);
	for (i = 0; i < COUNT; i++)
		ck_assert_mem_eq(&in[i], &out[i], 4);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{every_value_is_one_f32_product, 4},
		{values_worked_out_by_hand, 1},
	};
	const theme_test edge[] = {{empty_rows_and_nan_stay_what_they_are, 1}};
	const theme_test layout[] = {{result_may_replace_the_input, 1}};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),

		THEME("layout", setup, teardown, layout),

	};

	return RUN_THEMES(themes);
}
