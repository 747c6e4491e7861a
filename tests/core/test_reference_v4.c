/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference of V4 against numbers worked out by hand.
 */
#include "tests/harness/themes.h"
#include "tests/reference/reference_v4.h"

#include <math.h>
#include <string.h>

/* A quarter turn: (e, o) becomes (-o, e); and none. */
static float quarter[64], none[64];

static void
make_turns(void)
{
	uint32_t i;

	for (i = 0; i < 32; i++) {
		quarter[i] = 0;
		quarter[32 + i] = 1;
		none[i] = 1;
		none[32 + i] = 0;
	}
}

enum { ONE = 0x3f80, MINUS_ONE = 0xbf80 };

static void
fill16(uint16_t *x, uint32_t n, uint16_t value)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		x[i] = value;
}

/* All ones, turned: 1 / 448 is between 2^-9 and 2^-8, so the scale is 2^-8
 * (byte 119) and every code is 256 = 2^8: (8 + 7) << 3. */
static void
make_ones(ref_v4_key *key, uint8_t values[576], uint8_t scales[8])
{
	uint16_t kv[REF_V4_DIM];
	uint32_t i;

	fill16(kv, REF_V4_DIM, ONE);
	ref_v4_window_key(key, kv, quarter);
	memset(values, 0x78, REF_V4_NOPE);
	for (i = 0; i < 32; i++) {
		values[448 + 4 * i] = MINUS_ONE & 255;
		values[449 + 4 * i] = MINUS_ONE >> 8;
		values[450 + 4 * i] = ONE & 255;
		values[451 + 4 * i] = ONE >> 8;
	}
	memset(scales, 119, 7);
	scales[7] = 0;
}

START_TEST(a_row_of_ones_is_the_bytes_that_it_has_to_be)
{
	uint8_t values[576], scales[8];
	double row[REF_V4_DIM];
	ref_v4_key key;
	ref_miss miss;
	uint32_t i;

	make_ones(&key, values, scales);
	ck_assert(ref_v4_check_row(&key, values, scales, &miss));
	ref_v4_read_row(row, values, scales);
	for (i = 0; i < REF_V4_DIM; i++)
		ck_assert(row[i] == (i < 448 || i % 2 ? 1 : -1));
}
END_TEST

START_TEST(any_other_byte_of_a_row_is_seen)
{
	uint8_t values[576], scales[8];
	ref_v4_key key;
	ref_miss miss;
	uint32_t i;

	make_ones(&key, values, scales);
	for (i = 0; i < sizeof values; i++) {
		values[i] ^= 1;
		ck_assert(!ref_v4_check_row(&key, values, scales, &miss));
		values[i] ^= 1;
	}
	for (i = 0; i < sizeof scales; i++) {
		scales[i] ^= 1;
		ck_assert(!ref_v4_check_row(&key, values, scales, &miss));
		scales[i] ^= 1;
	}
}
END_TEST

/* Rows that a group is made of: each of one number in even columns and another
 * in odd ones, one score in all. */
typedef struct rows {
	float kv[8][128];
	float score[8][128];
	float ape[128];
	float norm[128];
	ref_v4_group g;
} rows;

static void
open_rows(rows *r, uint32_t count)
{
	uint32_t i, d;

	memset(r, 0, sizeof *r);
	r->g.rows = count;
	r->g.dim = 128;
	r->g.norm_weight = r->norm;
	r->g.norm_eps = 0;
	r->g.cos_sin = none;
	for (d = 0; d < 128; d++)
		r->norm[d] = 1;
	for (i = 0; i < count; i++) {
		r->g.kv[i] = r->kv[i];
		r->g.score[i] = r->score[i];
		r->g.ape[i] = r->ape;
	}
}

static void
set_row(rows *r, uint32_t i, float even, float odd, float score)
{
	uint32_t d;

	for (d = 0; d < 128; d++) {
		r->kv[i][d] = d % 2 ? odd : even;
		r->score[i][d] = score;
	}
}

static void
holds(const ref_v4_key *key, uint32_t d, double x)
{
	ck_assert(key->low[d] <= x && x <= key->high[d]);
	/* No more than from one bf16 number to the next. */
	ck_assert(key->high[d] - key->low[d] <= 0x1p-7 * fabs(x));
}

/* Weights 3 : 1 give 3 and 1 of (4, 0) and (0, 4); the mean square is 5. */
START_TEST(columns_are_weighed_by_the_softmax_of_their_scores)
{
	ref_v4_key key;
	uint32_t d;
	rows r;

	open_rows(&r, 2);
	set_row(&r, 0, 4, 0, (float)log(3));
	set_row(&r, 1, 0, 4, 0);
	ref_v4_compress(&key, &r.g);
	for (d = 0; d < 128; d++)
		holds(&key, d, ref_round_bf16((d % 2 ? 1 : 3) / sqrt(5)));
}
END_TEST

/* The same, where ape makes the difference, and the weights of the norm. */
START_TEST(ape_is_added_to_the_score)
{
	float ape[128];
	ref_v4_key key;
	uint32_t d;
	rows r;

	open_rows(&r, 2);
	set_row(&r, 0, 4, 0, 1);
	set_row(&r, 1, 0, 4, 1);
	for (d = 0; d < 128; d++) {
		ape[d] = (float)log(3);
		r.norm[d] = 2;
	}
	r.g.ape[0] = ape;
	ref_v4_compress(&key, &r.g);
	for (d = 0; d < 128; d++)
		holds(&key, d, ref_round_bf16((d % 2 ? 2 : 6) / sqrt(5)));
}
END_TEST

/* 3 and 1 of two rows; the six before the first position do not count. */
START_TEST(rows_before_the_first_position_do_not_count)
{
	ref_v4_key key;
	uint32_t i, d;
	rows r;

	open_rows(&r, 8);
	for (i = 0; i < 6; i++)
		r.g.kv[i] = NULL;
	set_row(&r, 6, 2, 2, -7);
	set_row(&r, 7, 4, 0, -7);
	ref_v4_compress(&key, &r.g);
	for (d = 0; d < 128; d++)
		holds(&key, d, ref_round_bf16((d % 2 ? 1 : 3) / sqrt(5)));
}
END_TEST

START_TEST(the_last_64_of_a_compressed_key_are_turned)
{
	ref_v4_key key;
	uint32_t d;
	rows r;

	open_rows(&r, 1);
	set_row(&r, 0, 3, 1, 0);
	r.g.cos_sin = quarter;
	ref_v4_compress(&key, &r.g);
	for (d = 0; d < 64; d++)
		holds(&key, d, ref_round_bf16((d % 2 ? 1 : 3) / sqrt(5)));
	for (; d < 128; d++)
		holds(&key, d, ref_round_bf16((d % 2 ? 3 : -1) / sqrt(5)));
}
END_TEST

/* One row of (1, 1) gives a key of ones: as e4m3 256 * 2^-8; as e2m1 with
 * 1 / 6 rounded up to 2^-2 it is 4, code 6, byte 125. */
START_TEST(an_index_key_is_the_codes_that_it_has_to_be)
{
	uint8_t fp8[128], fp4[64], scales[4] = {125, 125, 125, 125};
	ref_index_key read;
	ref_v4_key key;
	ref_miss miss;
	rows r;

	open_rows(&r, 1);
	set_row(&r, 0, 1, 1, 0);
	ref_v4_compress(&key, &r.g);
	memset(fp8, 0x78, sizeof fp8);
	memset(fp4, 0x66, sizeof fp4);
	ck_assert(ref_v4_check_index(&key, fp8, 0x1p-8, &miss));
	ck_assert(!ref_v4_check_index(&key, fp8, 0x1p-7, &miss));
	ck_assert(ref_v4_check_mxfp4(&key, fp4, scales, &miss));
	ref_v4_read_index(&read, fp8, 0x1p-8);
	ck_assert(read.value[127] * read.scale == 1);
	ref_v4_read_mxfp4(&read, fp4, scales);
	ck_assert(read.value[127] * read.scale == 1);
	fp8[9] = 0x77;
	ck_assert(!ref_v4_check_index(&key, fp8, 0x1p-8, &miss));
	fp4[63] = 0x56;
	ck_assert(!ref_v4_check_mxfp4(&key, fp4, scales, &miss));
	ck_assert_int_eq(miss.at, 127);
}
END_TEST

/* Twos are ones when normed; turned they are -1 and 1. */
START_TEST(a_query_is_normed_and_turned)
{
	uint16_t q[REF_V4_DIM], got[REF_V4_DIM];
	ref_miss miss;
	uint32_t i;

	fill16(q, REF_V4_DIM, 0x4000);
	fill16(got, REF_V4_DIM, ONE);
	for (i = REF_V4_NOPE; i < REF_V4_DIM; i += 2)
		got[i] = MINUS_ONE;
	ck_assert(ref_v4_check_query(q, 0, quarter, got, &miss));
	ck_assert(!ref_v4_check_query(q, 0, none, got, &miss));
	got[7] = ONE + 1;
	ck_assert(!ref_v4_check_query(q, 0, quarter, got, &miss));
	ck_assert_int_eq(miss.at, 7);
}
END_TEST

/* Codes of 256 and a scale of 2^-8, which the weight gets; with e2m1 the value
 * keeps its scale. */
START_TEST(index_queries_leave_their_scale_to_the_weight)
{
	const float weight = 3;
	const ref_index_q_rule rule = {
		1,    quarter, REF_ROPE_INTERLEAVED, REF_Q_FLOOR_FUSED,
		0.5f, 0.25f};
	double values[REF_INDEX_DIM], out;
	uint16_t q[REF_INDEX_DIM];
	uint32_t i;

	fill16(q, REF_INDEX_DIM, ONE);
	ref_v4_index_q(q, REF_INDEX_DIM, &weight, &rule, 0, values, &out);
	ck_assert(out == 3 * 0x1p-8 * 0.125);
	for (i = 0; i < REF_INDEX_DIM; i++)
		ck_assert(values[i] == (i < 64 || i % 2 ? 256 : -256));
	ref_v4_index_q(q, REF_INDEX_DIM, &weight, &rule, 1, values, &out);
	ck_assert(out == 3 * 0.125);
	for (i = 0; i < REF_INDEX_DIM; i++)
		ck_assert(values[i] == (i < 64 || i % 2 ? 1 : -1));
}
END_TEST

/* Both rows score 0: (1 + 3) / 2, and with a sink of ln 2 (1 + 3) / 4. */
START_TEST(a_sink_is_one_more_term_below)
{
	static double kv[2][REF_V4_DIM];
	const float sink = (float)log(2);
	uint16_t q[REF_V4_DIM];
	ref_attend_result result;
	double probs[2];
	uint32_t d;

	fill16(q, REF_V4_DIM, 0);
	for (d = 0; d < REF_V4_DIM; d++) {
		kv[0][d] = 1;
		kv[1][d] = d % 2 ? 3 : -3;
	}
	ref_v4_attend(q, kv[0], 2, 1, NULL, probs, &result);
	ck_assert(fabs(result.lse - log(2)) < 1e-12);
	ck_assert(result.out[0] == -1 && result.out[511] == 2);
	ck_assert(result.magnitude[0] == 2);
	ref_v4_attend(q, kv[0], 2, 1, &sink, probs, &result);
	ck_assert(fabs(result.lse - log(2)) < 1e-12);
	ck_assert(fabs(result.out[511] - 1) < 1e-6);
	ref_v4_attend(q, kv[0], 0, 1, NULL, probs, &result);
	ck_assert(isinf(result.lse) && result.lse > 0 && result.out[3] == 0);
}
END_TEST

/* The values have 3 bits behind the first: 1.0625 lies between 1 and 1.125 and
 * is nearer to neither, so the even code takes it. */
START_TEST(results_are_turned_back_and_quantised)
{
	uint16_t o[REF_V4_DIM];
	double values[REF_V4_DIM];
	uint32_t i;

	fill16(o, REF_V4_DIM, ONE);
	o[5] = 0x3f88;
	ref_v4_output(o, quarter, values);
	ck_assert(values[5] == 1);
	for (i = 0; i < REF_V4_DIM; i++)
		ck_assert(values[i] == (i < 448 || i % 2 == 0 ? 1 : -1));
}
END_TEST

SUITE
{
	const theme_test keys[] = {
		{a_row_of_ones_is_the_bytes_that_it_has_to_be, 1},
		{any_other_byte_of_a_row_is_seen, 1},
		{columns_are_weighed_by_the_softmax_of_their_scores, 1},
		{ape_is_added_to_the_score, 1},
		{rows_before_the_first_position_do_not_count, 1},
		{the_last_64_of_a_compressed_key_are_turned, 1},
		{an_index_key_is_the_codes_that_it_has_to_be, 1},
	};

	const theme_test queries[] = {
		{a_query_is_normed_and_turned, 1},
		{index_queries_leave_their_scale_to_the_weight, 1},
		{a_sink_is_one_more_term_below, 1},
		{results_are_turned_back_and_quantised, 1},
	};
	const theme themes[] = {
		THEME("keys", make_turns, NULL, keys),
		THEME("queries", make_turns, NULL, queries),
	};

	return RUN_THEMES(themes);
}
