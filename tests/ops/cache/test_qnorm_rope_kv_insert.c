/* SPDX-License-Identifier: Apache-2.0
 *
 * qnorm_rope_kv_insert: queries and whole pools compared with a model that does
 * every f32 operation in double and rounds it, and single values derived by
 * hand. Every check compares all bytes, gaps and padding too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/qnorm_rig.h"
#include "tests/reference/narrow_ref.h"

enum { FP8 = SPMLA_LAYOUT_V4_FP8, DIM = 512 };

/* One token, one head, zeros, position 0 (cos 1, sin 0), slot 0 of pages of
 * one. */
static void
open_one(qnorm_rig *r, uint32_t layout)
{
	qnorm_open(r, layout, 1, 1, 1, 1);
	memset(r->q, 0, DIM * 2);
	memset(r->kv, 0, DIM * 2);
	r->positions[0] = 0;
	r->slots[0] = 0;
}

/* _i: the encoding. */
START_TEST(rows_of_any_shape_and_layout_equal_the_model)
{
	static const uint32_t heads[6][2] = {{1, 1},  {3, 8}, {8, 8},
					     {4, 16}, {9, 9}, {16, 17}};
	static const float scales[3] = {1.0f, 0.3f, 3e-5f};
	uint32_t i;
	qnorm_rig r;

	for (i = 0; i < 18; i++) {
		qnorm_open(&r, FP8 + i % 3, 1 + 4 * (i / 6), heads[i % 6][0],
			   heads[i % 6][1], i % 2 ? 1 : 5);
		r.a.kv_scale = scales[i / 6];
		if (r.a.cache.layout != SPMLA_LAYOUT_V4_BF16)
			r.a.cache.encoding = (uint32_t)_i;
		qnorm_check(&r);
		qnorm_close(&r);
	}
}
END_TEST

/* What the norm is, whatever the order of its sum: 2^-8 of the value for the
 * rounding to bf16 and nothing to speak of for f32. */
START_TEST(heads_are_the_norm_and_the_rotation_of_their_values)
{
	uint32_t t, i;
	qnorm_rig r;

	qnorm_open(&r, FP8, 6, 2, 2, 5);
	for (t = 0; t < 12 * 520; t++)
		r.q[t] = test_bf16((float)((int)(t * 37 % 101) - 50) / 8);
	qnorm_run(&r);
	for (t = 0; t < 6; t++) {
		const uint16_t *q = r.q + (2 * t + 1) * 520;
		const uint16_t *out = qnorm_head(&r, t, 1);
		double sum = 0, norm;

		for (i = 0; i < DIM; i++)
			sum += pow((double)test_bf16_value(q[i]), 2);
		norm = 1 / sqrt(sum / DIM + 1e-6);
		for (i = 0; i < DIM; i++) {
			const float *cs =
				r.cos_sin + r.positions[t] * 64 + (i - 448) / 2;
			const double x = (double)test_bf16_value(q[i]) * norm;
			const double y =
				(double)test_bf16_value(q[i ^ 1]) * norm;
			const double want =
				i < 448 ? x
					: x * (double)cs[0] +
						  (i % 2 ? y : -y) *
							  (double)cs[32];

			ck_assert_double_le(
				fabs((double)test_bf16_value(out[i]) - want),
				0x1p-8 * fabs(want) + 1e-5);
		}
	}
	qnorm_close(&r);
}
END_TEST

START_TEST(fewer_keys_than_tokens_leave_the_rest_alone)
{
	spmla_cache none = {0};
	qnorm_rig r;

	qnorm_open(&r, FP8, 7, 2, 8, 3);
	r.a.kv_tokens = 3;
	qnorm_check(&r);
	r.a.kv_tokens = 0;
	qnorm_check(&r);
	none = r.a.cache;
	memset(&r.a.cache, 0xff, sizeof r.a.cache);
	r.a.kv = NULL;
	r.a.slot_mapping = NULL;
	r.a.kv_stride_elems = 0;
	qnorm_run(&r);
	r.a.cache = none;
	check_bytes(r.q_out, r.q_want, r.q_bytes);
	check_bytes(r.pool, r.want, r.pool_bytes);
	qnorm_close(&r);
}
END_TEST

/* q is 3 and -3: the mean of squares is 9, r = 1 / sqrt(9 + 1e-6) = 0.33333331
 * or so, and 3 r = 1 - 5.6e-8, to bf16 1. With
 * one 96 of 512, squares sum to 9216, the mean is 18, r = 1 / 4.2426408 =
 * 0.23570226 and 96 r = 22.627417 = 1.41421 * 2^4: to bf16 1.4140625 * 2^4, 131
 * << 7 | 53. */
START_TEST(norm_worked_out_by_hand)
{
	uint32_t i;
	qnorm_rig r;

	open_one(&r, FP8);
	for (i = 0; i < DIM; i++)
		r.q[i] = test_bf16(i % 2 ? -3.0f : 3.0f);
	qnorm_check(&r);
	for (i = 0; i < DIM; i++)
		ck_assert_uint_eq(r.q_out[i], i % 2 ? 0xbf80 : 0x3f80);
	memset(r.q, 0, DIM * 2);
	r.q[77] = test_bf16(96.0f);
	qnorm_check(&r);
	ck_assert_uint_eq(r.q_out[77], 131 << 7 | 53);
	ck_assert_uint_eq(r.q_out[78], 0);
	qnorm_close(&r);
}
END_TEST

/* cos 0, sin 1 of the first pair, cos 0.5, sin -2 of the last: (2, 6) becomes
 * (2 * 0 - 6 * 1, 6 * 0 + 2 * 1) = (-6, 2), and (2, 6) becomes (1 + 12, 3 - 4).
 * The key is stored rotated, with a scale of its own. */
START_TEST(rotation_worked_out_by_hand)
{
	uint16_t rope[64];
	qnorm_rig r;

	open_one(&r, FP8);
	r.positions[0] = 3;
	r.cos_sin[3 * 64] = 0.0f;
	r.cos_sin[3 * 64 + 32] = 1.0f;
	r.cos_sin[3 * 64 + 31] = 0.5f;
	r.cos_sin[3 * 64 + 63] = -2.0f;
	r.kv[448] = r.kv[510] = test_bf16(2.0f);
	r.kv[449] = r.kv[511] = test_bf16(6.0f);
	qnorm_check(&r);
	memcpy(rope, r.pool + 448, sizeof rope);
	ck_assert_uint_eq(rope[0], test_bf16(-6.0f));
	ck_assert_uint_eq(rope[1], test_bf16(2.0f));
	ck_assert_uint_eq(rope[62], test_bf16(13.0f));
	ck_assert_uint_eq(rope[63], test_bf16(-1.0f));
	ck_assert_uint_eq(r.pool[576], 105);
	qnorm_close(&r);
}
END_TEST

/* (1 + 2^-7) * (1 + 2^-8) - 1 * 2^-8 in f32 is 1 + 2^-7 + 2^-15, as bf16 1 +
 * 2^-7. A product rounded to bf16 would be 1 + 2^-6, and so would be the
 * result.
 */
START_TEST(rotation_is_rounded_once_at_its_end)
{
	uint16_t rope[2];
	qnorm_rig r;

	open_one(&r, FP8);
	r.cos_sin[0] = 1.0f + 0x1p-8f;
	r.cos_sin[32] = 0x1p-8f;
	r.kv[448] = test_bf16(1.0f + 0x1p-7f);
	r.kv[449] = test_bf16(1.0f);
	qnorm_check(&r);
	memcpy(rope, r.pool + 448, sizeof rope);
	ck_assert_uint_eq(rope[0], 0x3f81);
	qnorm_close(&r);
}
END_TEST

START_TEST(heads_of_padding_are_zeros)
{
	uint32_t t, h, i;
	qnorm_rig r;

	qnorm_open(&r, FP8, 3, 5, 16, 4);
	qnorm_check(&r);
	for (t = 0; t < 3; t++)
		for (h = 5; h < 16; h++)
			for (i = 0; i < DIM; i++)
				ck_assert_uint_eq(qnorm_head(&r, t, h)[i], 0);
	qnorm_close(&r);
}
END_TEST

/* Zeros have r = 1 / sqrt(1e-6) = 1000, and -0 stays. The least bf16, 2^-133,
 * times 1000 is 1.953125 * 2^-124: 3 << 7 | 122. */
START_TEST(zeros_and_subnormal_values_are_not_flushed)
{
	qnorm_rig r;

	open_one(&r, SPMLA_LAYOUT_V4_BF16);
	r.q[1] = 0x8000;
	r.q[2] = 0x0001;
	r.kv[5] = 0x8001;
	qnorm_check(&r);
	ck_assert_uint_eq(r.q_out[0], 0);
	ck_assert_uint_eq(r.q_out[1], 0x8000);
	ck_assert_uint_eq(r.q_out[2], 3 << 7 | 122);
	ck_assert_uint_eq(r.pool[10], 0x01);
	ck_assert_uint_eq(r.pool[11], 0x80);
	qnorm_close(&r);
}
END_TEST

/* A NaN is in the mean and so in all of its head, a NaN or infinity of a key in
 * its pair (0 * inf). An infinite head has r = 0: zeros, and 0 * inf. Squares
 * of 2^64 are infinite too. */
START_TEST(nan_and_infinity_have_defined_bits)
{
	uint16_t rope[4];
	uint32_t i;
	qnorm_rig r;

	open_one(&r, FP8);
	for (i = 0; i < DIM; i++)
		r.q[i] = test_bf16(-1.0f);
	r.q[3] = 0xffc0;
	r.kv[448] = 0xffc1;
	r.kv[451] = 0x7f80;
	qnorm_check(&r);
	for (i = 0; i < DIM; i++)
		ck_assert_uint_eq(r.q_out[i], 0x7fc0);
	memcpy(rope, r.pool + 448, sizeof rope);
	ck_assert_uint_eq(rope[0], 0x7fc0);
	ck_assert_uint_eq(rope[1], 0x7fc0);
	ck_assert_uint_eq(rope[2], 0x7fc0);
	ck_assert_uint_eq(rope[3], 0x7f80);
	r.q[3] = 0xff80;
	qnorm_check(&r);
	ck_assert_uint_eq(r.q_out[2], 0x8000);
	ck_assert_uint_eq(r.q_out[3], 0x7fc0);
	r.q[3] = test_bf16(0x1p64f);
	qnorm_check(&r);
	ck_assert_uint_eq(r.q_out[3], 0);
	qnorm_close(&r);
}
END_TEST

START_TEST(position_outside_the_table_is_zeros_and_no_key)
{
	spmla_device_status status;
	qnorm_rig r;

	qnorm_open(&r, FP8, 12, 3, 10, 4);
	r.slots[3] = 2;
	r.slots[7] = -1;
	r.slots[8] = 1;
	r.positions[3] = ROPE_POSITIONS;
	r.positions[7] = -1;
	r.positions[8] = INT32_MIN;
	r.positions[9] = INT32_MAX;
	qnorm_check(&r);
	status = fixture_status(&r.f);
	ck_assert_uint_eq(status.count, 4);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_POSITION);
	ck_assert_uint_eq(status.row, 3);
	qnorm_close(&r);
}
END_TEST

START_TEST(slots_outside_are_skipped_and_those_past_it_reported)
{
	static const int64_t slots[8] = {15,        INT64_MIN,        16, -1,
					 INT64_MAX, INT64_C(1) << 32, 3,  17};
	spmla_device_status status;
	qnorm_rig r;

	qnorm_open(&r, FP8, 8, 2, 2, 4);
	memcpy(r.slots, slots, sizeof slots);
	r.positions[7] = -5; /* bad too: two reports */
	qnorm_check(&r);
	status = fixture_status(&r.f);
	ck_assert_uint_eq(status.count, 5);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_SLOT);
	ck_assert_uint_eq(status.row, 2);
	qnorm_close(&r);
}
END_TEST

START_TEST(of_two_keys_for_one_slot_every_byte_is_that_of_one)
{
	uint8_t row[2][584];
	uint32_t i;
	qnorm_rig r;

	qnorm_open(&r, FP8, 2, 1, 1, 1);
	for (i = 0; i < 2; i++) {
		r.slots[i] = 0;
		r.slots[1 - i] = -1;
		qnorm_run(&r);
		memcpy(row[i], r.pool, 584);
	}
	r.slots[0] = r.slots[1] = 0;
	qnorm_run(&r);
	for (i = 0; i < 584; i++)
		ck_assert(r.pool[i] == row[0][i] || r.pool[i] == row[1][i]);
	qnorm_close(&r);
}
END_TEST

START_TEST(a_row_does_not_depend_on_its_neighbours)
{
	uint16_t head[DIM];
	uint8_t entry[576];
	uint32_t t;
	qnorm_rig r;

	qnorm_open(&r, FP8, 11, 5, 8, 4);
	for (t = 0; t < 11; t++)
		if (r.slots[t] == 0 || t < 2)
			r.slots[t] = -1;
	r.slots[6] = 0;
	qnorm_run(&r);
	memcpy(head, qnorm_head(&r, 6, 3), sizeof head);
	memcpy(entry, r.pool, sizeof entry);
	r.a.tokens = r.a.kv_tokens = r.a.heads = r.a.padded_heads = 1;
	r.a.q += 6 * r.a.q_token_stride_elems + 3 * r.a.q_head_stride_elems;
	r.a.kv += 6 * r.a.kv_stride_elems;
	r.a.slot_mapping += 6;
	r.a.positions = (const int32_t *)r.a.positions + 6;
	qnorm_check(&r);
	ck_assert_mem_eq(r.q_out, head, sizeof head);
	ck_assert_mem_eq(r.pool, entry, sizeof entry);
	qnorm_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{rows_of_any_shape_and_layout_equal_the_model, 2},
		{heads_are_the_norm_and_the_rotation_of_their_values, 1},
		{fewer_keys_than_tokens_leave_the_rest_alone, 1},
		{heads_of_padding_are_zeros, 1},
	};
	const theme_test edge[] = {
		{norm_worked_out_by_hand, 1},
		{rotation_worked_out_by_hand, 1},
		{rotation_is_rounded_once_at_its_end, 1},
		{zeros_and_subnormal_values_are_not_flushed, 1},
		{nan_and_infinity_have_defined_bits, 1},
		{position_outside_the_table_is_zeros_and_no_key, 1},
		{slots_outside_are_skipped_and_those_past_it_reported, 1},
		{of_two_keys_for_one_slot_every_byte_is_that_of_one, 1},
	};
	const theme_test determinism[] = {
		{a_row_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {THEME("shape", NULL, NULL, shape),
				THEME("edge", NULL, NULL, edge),
				THEME("determinism", NULL, NULL, determinism)};

	return RUN_THEMES(themes);
}
