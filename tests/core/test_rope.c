/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of cosines and sines against values worked out by hand: frequencies
 * that come out short in decimals, of each of the three parts that YaRN makes.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/rope.h"
#include "spmla/v4.h"

/* The row of a position. */
static void
row_of(spmla_model model, uint32_t ratio, uint32_t position, float row[64])
{
	spmla_rope rope;

	ck_assert_int_eq(spmla_rope_preset(&rope, model, ratio), SPMLA_OK);
	ck_assert_int_eq(spmla_rope_fill(row, position, 1, &rope, NULL),
			 SPMLA_OK);
}

/* Frequency i at that position: angle, its cosine and its sine. */
typedef struct hand {
	uint32_t i;
	uint32_t position;
	double angle, cosine, sine;
} hand;

static void
check_hand(spmla_model model, uint32_t ratio, const hand *cases, uint32_t count)
{
	float row[64];
	uint32_t i;

	for (i = 0; i < count; i++) {
		const hand *h = &cases[i];
		/* of a frequency and of a product, each 2^-24 of the angle */
		const double tolerance = 0x1p-22 * (1 + h->angle);

		row_of(model, ratio, h->position, row);
		ck_assert_double_eq_tol((double)row[h->i], h->cosine,
					tolerance);
		ck_assert_double_eq_tol((double)row[32 + h->i], h->sine,
					tolerance);
	}
}

/* 32 ln(4096 / (2 pi 32)) / ln 10000 = 10.47 and 32 ln(4096 / (2 pi)) / ln
 * 10000 = 22.51, so 10 and 23 are where the stretched part begins and ends. */
START_TEST(the_table_of_v32_is_yarn)
{
	static const hand cases[] = {
		{0, 1, 1, 0.5403023058681398, 0.8414709848078965},
		/* 10000^(-10/32) = 10^-1.25: as it is */
		{10, 1, 0.0562341325, 0.9984192777926645, 0.0562044992146925},
		/* 0.01 * (7/13 + 6/13/40) = 0.0055: six parts of 13 */
		{16, 100, 0.55, 0.8525245220595057, 0.5226872289306592},
		/* 10^-2.875 / 40: all of it */
		{23, 30000, 1.0001410741, 0.540183590711225,
		 0.8415471991078859},
	};

	check_hand(SPMLA_MODEL_V32, 1, cases, 4);
}
END_TEST

/* 32 ln(65536 / (2 pi 32)) / ln 160000 = 15.45 and 24.71: 15 and 25. */
START_TEST(tables_of_compressed_keys_of_v4_are_yarn)
{
	static const hand cases[] = {
		{0, 1, 1, 0.5403023058681398, 0.8414709848078965},
		/* 160000^(-8/32) = 1/20: as it is */
		{8, 20, 1, 0.5403023058681398, 0.8414709848078965},
		/* 1/400 * (0.9 + 0.1/16) = 0.002265625 */
		{16, 400, 0.90625, 0.6167020661789121, 0.7871966473319488},
		{16, 256, 0.58, 0.8364626499151869, 0.5480239367918736},
		/* 160000^(-28/32) / 16 = 20^-3.5 / 16: a million is 1.747 */
		{28, 1000000, 1.7469281074, -0.1752225202651782,
		 0.9845288560483736},
	};

	check_hand(SPMLA_MODEL_V4_FLASH, 4, cases, 5);
	check_hand(SPMLA_MODEL_V4_FLASH, 128, cases, 5);
	check_hand(SPMLA_MODEL_V4_PRO, 4, cases, 5);
	check_hand(SPMLA_MODEL_V4_PRO, 128, cases, 5);
}
END_TEST

START_TEST(the_table_of_the_window_of_v4_is_plain)
{
	static const hand cases[] = {
		{0, 1, 1, 0.5403023058681398, 0.8414709848078965},
		/* 10000^(-16/32) = 0.01, 10000^(-24/32) = 0.001 */
		{16, 55, 0.55, 0.8525245220595057, 0.5226872289306592},
		{24, 580, 0.58, 0.8364626499151869, 0.5480239367918736},
	};

	check_hand(SPMLA_MODEL_V4_FLASH, 1, cases, 3);
	check_hand(SPMLA_MODEL_V4_PRO, 1, cases, 3);
}
END_TEST

START_TEST(position_0_is_not_rotated)
{
	float row[64];
	uint32_t i;

	row_of(SPMLA_MODEL_V32, 1, 0, row);
	for (i = 0; i < 64; i++)
		ck_assert(row[i] == (i < 32 ? 1.0f : 0.0f));
}
END_TEST

/* An angle is a product in f32: 2^24 - 1 times the frequency next to 0.7499. */
START_TEST(far_angles_are_rounded_as_the_models_have_them)
{
	const float frequency = 0.749894209332456f; /* 10000^(-1/32) */
	const float angle = 16777215.0f * frequency;
	float row[64];

	row_of(SPMLA_MODEL_V32, 1, (1 << 24) - 1, row);
	ck_assert(row[1] == (float)cos((double)angle));
	ck_assert(row[33] == (float)sin((double)angle));
}
END_TEST

START_TEST(pieces_are_the_whole_and_write_nothing_else)
{
	enum { ROWS = 50 };
	float whole[ROWS * 64], *piece = test_alloc(sizeof whole + 8, 0xAB);
	const unsigned char *end = (unsigned char *)piece + sizeof whole;
	spmla_rope rope;
	uint32_t i;

	ck_assert_int_eq(spmla_rope_preset(&rope, SPMLA_MODEL_V4_PRO, 4),
			 SPMLA_OK);
	rope.mscale = 0.5;
	ck_assert_int_eq(spmla_rope_fill(whole, 100, ROWS, &rope, NULL),
			 SPMLA_OK);
	ck_assert_float_eq_tol(whole[0], 0.5f * (float)cos(100), 1e-7f);
	for (i = 0; i < ROWS; i += 10)
		ck_assert_int_eq(spmla_rope_fill(piece + i * 64, 100 + i, 10,
						 &rope, NULL),
				 SPMLA_OK);
	ck_assert_mem_eq(piece, whole, sizeof whole);
	for (i = 0; i < 8; i++)
		ck_assert_uint_eq(end[i], 0xAB);
	ck_assert_int_eq(spmla_rope_fill(piece, 1 << 24, 0, &rope, NULL),
			 SPMLA_OK);
	ck_assert_mem_eq(piece, whole, sizeof whole);
	free(piece);
}
END_TEST

static void
refused(const spmla_rope *rope, uint32_t first, spmla_status status,
	const char *field)
{
	spmla_diag diag = SPMLA_DIAG_INIT;
	float row[64] = {7};

	ck_assert_int_eq(spmla_rope_fill(row, first, 1, rope, &diag), status);
	ck_assert_str_eq(diag.field, field);
	ck_assert_uint_eq(diag.status, status);
	ck_assert(row[0] == 7);
}

START_TEST(what_makes_no_table_is_refused_by_name)
{
	spmla_rope good, r;
	spmla_diag diag = SPMLA_DIAG_INIT;

	ck_assert_int_eq(spmla_rope_preset(NULL, SPMLA_MODEL_V32, 1),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_rope_preset(&r, (spmla_model)4, 1),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_rope_preset(&r, SPMLA_MODEL_V32, 4),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_rope_preset(&r, SPMLA_MODEL_V4_PRO, 2),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_rope_preset(&good, SPMLA_MODEL_V32, 1),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_rope_fill(NULL, 0, 1, &good, &diag),
			 SPMLA_E_NULL);
	ck_assert_str_eq(diag.field, "cos_sin");
	refused(NULL, 0, SPMLA_E_NULL, "rope");
	r = good;
	r.struct_bytes--;
	refused(&r, 0, SPMLA_E_STRUCT_SIZE, "rope.struct_bytes");
	refused(&good, 1 << 24, SPMLA_E_RANGE, "first_position + rows");
	refused(&good, UINT32_MAX, SPMLA_E_RANGE, "first_position + rows");
#define REFUSE(name, value, text)                            \
	do {                                                 \
		r = good;                                    \
		r.name = value;                              \
		refused(&r, 0, SPMLA_E_RANGE, "rope." text); \
	} while (0)
	REFUSE(theta, 1, "theta: want above 1, to 2^100");
	REFUSE(theta, (double)NAN, "theta: want above 1, to 2^100");
	REFUSE(mscale, 0, "mscale: want above 0, to 2^100");
	REFUSE(mscale, (double)INFINITY, "mscale: want above 0, to 2^100");
	REFUSE(factor, 0.5, "factor: want 1 to 2^100");
	REFUSE(beta_slow, 0, "beta_slow: want at least 2^-100");
	REFUSE(beta_fast, 1, "beta_fast: want above beta_slow, to 2^100");
#undef REFUSE
	r = good; /* plain: the fields of YaRN do not count */
	r.original_tokens = 0;
	r.factor = r.beta_fast = r.beta_slow = 0;
	ck_assert_int_eq(spmla_rope_fill((float[64]){0}, 5, 1, &r, NULL),
			 SPMLA_OK);
}
END_TEST

SUITE
{
	const theme_test values[] = {
		{the_table_of_v32_is_yarn, 1},
		{tables_of_compressed_keys_of_v4_are_yarn, 1},
		{the_table_of_the_window_of_v4_is_plain, 1},
		{position_0_is_not_rotated, 1},
		{far_angles_are_rounded_as_the_models_have_them, 1},
	};
	const theme_test calls[] = {
		{pieces_are_the_whole_and_write_nothing_else, 1},
		{what_makes_no_table_is_refused_by_name, 1},
	};
	const theme themes[] = {
		THEME("values", NULL, NULL, values),
		THEME("calls", NULL, NULL, calls),
	};

	return RUN_THEMES(themes);
}
