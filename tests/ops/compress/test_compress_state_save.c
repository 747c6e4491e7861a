/* SPDX-License-Identifier: Apache-2.0
 *
 * compress_state_save: whole states compared with a model that writes every
 * token in its order, and what the ring leaves out.
 */
#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"
#include "tests/ops/compress/state_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const uint32_t layouts[4] = {
	SPMLA_LAYOUT_STATE_128, SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_STATE_512,
	SPMLA_LAYOUT_STATE_1024};

START_TEST(paged_states_of_any_width_equal_the_rule)
{
	static const uint32_t tokens[3] = {1, 7, 33};
	static const uint32_t pages[3] = {4, 8, 16};
	uint32_t i;
	state_rig r;

	for (i = 0; i < 12; i++) {
		state_rig_open(&r, layouts[i % 4], tokens[i / 4],
			       pages[(i + i / 4) % 3], 6, 16 * i);
		state_rig_check(&r);
		ck_assert_uint_eq(fixture_status(&r.f).count, 0);
		state_rig_close(&r);
	}
}
END_TEST

/* Five requests of 0 to 79 tokens in rings of 64, or of 128 and more. */
START_TEST(rings_of_any_width_equal_the_rule)
{
	const uint32_t layout = layouts[_i];
	const uint32_t page = layout == SPMLA_LAYOUT_STATE_128 ||
					      layout == SPMLA_LAYOUT_STATE_512
				      ? 64
				      : 16;
	uint64_t rng = test_seed() + (uint64_t)_i;
	uint32_t round, row, t;
	state_rig r;

	for (round = 0; round < fixture_rounds(6, 2); round++) {
		const uint32_t columns = 2 + rng_below(&rng, 5);
		uint32_t query[STATE_RIG_ROWS];

		for (row = t = 0; row < STATE_RIG_ROWS; row++)
			t += query[row] = rng_below(&rng, 80);
		state_rig_open(&r, layout, t + 3, page,
			       columns * STATE_RIG_ROWS, 0);
		state_rig_ring(&r, columns);
		for (row = t = 0; row < STATE_RIG_ROWS; row++)
			t = state_rig_request(&r, t, query[row], (int32_t)row,
					      (int32_t)rng_below(&rng, 3000));
		state_rig_pad(&r, t);
		state_rig_check(&r);
		ck_assert_uint_eq(fixture_status(&r.f).count, 0);
		state_rig_close(&r);
	}
}
END_TEST

/* Capacity 256, page 5, position 300: slot 5 * 256 + 300 - 256 = 1324. 280
 * tokens begin at position 300, and the ring keeps positions 300 + 280 - 256 =
 * 324 and up: place 44 has position 300 + 256 = 556, place 68 position 324. */
START_TEST(the_last_tokens_of_a_request_stay_in_its_ring)
{
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_512, 280, 256, 6, 0);
	state_rig_ring(&r, 1);
	r.table[2 * STATE_RIG_TABLE] = 5;
	r.a.tokens = state_rig_request(&r, 0, 1, 2, 300);
	state_rig_check(&r);
	ck_assert_mem_eq(state_rig_at(&r, 1324), r.kv, 4 * 512);
	r.a.tokens = state_rig_request(&r, 0, 280, 2, 300);
	state_rig_check(&r);
	ck_assert_mem_eq(state_rig_at(&r, 1324), r.kv + 256 * 520, 4 * 512);
	ck_assert_mem_eq(state_rig_at(&r, 1280 + 68), r.kv + 24 * 520, 4 * 512);
	ck_assert_mem_eq(state_rig_at(&r, 1280 + 67), r.kv + 279 * 520,
			 4 * 512);
	state_rig_close(&r);
}
END_TEST

/* Two requests of one token each, capacity 16 apart in the call and in
 * position, are no request of 17; nor is padding a later token. */
START_TEST(only_tokens_of_the_same_request_take_a_place)
{
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_256, 34, 16, 5, 0);
	state_rig_ring(&r, 1);
	(void)state_rig_request(&r, 0, 16, 1, 100);
	(void)state_rig_request(&r, 16, 16, 3, 116);
	state_rig_pad(&r, 32);
	state_rig_check(&r);
	r.lens[16] = 0; /* as if it were row 1 and went on, but bad */
	r.row[16] = 1;
	state_rig_check(&r);
	ck_assert_mem_eq(state_rig_at(&r, 3 * 16 + 4), r.kv, 4 * 256);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	state_rig_close(&r);
}
END_TEST

/* Ratio 4, width 256: entry = kv[0 .. 255], then score + ape[pos % 4]. */
START_TEST(kv_comes_first_and_then_score_with_its_ape)
{
	const float *at;
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_256, 1, 4, 3, 32);
	ck_assert_uint_eq(r.a.state.page_stride_bytes, 4 * 2048 + 32);
	r.positions[0] = 1000002; /* % 4 == 2 */
	r.slots[0] = 2 * 4 + 1;
	r.kv[0] = 3.0f;
	r.kv[255] = -0.0f;
	r.score[0] = 1.5f;
	r.score[255] = 0x1p-149f;
	r.ape[2 * 256] = 0.25f;
	r.ape[2 * 256 + 255] = 0x1p-148f;
	state_rig_check(&r);
	at = (const float *)(const void *)(r.state + 2 * 8224 + 2048);
	ck_assert(at[0] == 3.0f && at[255] == 0.0f && signbit(at[255]));
	ck_assert(at[256] == 1.75f && at[511] == 0x1.8p-148f);
	state_rig_close(&r);
}
END_TEST

START_TEST(sums_are_rounded_and_nothing_is_flushed)
{
	const float *at;
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_512, 1, 8, 1, 0);
	r.positions[0] = 255; /* % 128 == 127 */
	r.slots[0] = 7;
	r.score[0] = 0x1p24f; /* 2^24 + 1: a tie, to the even one */
	r.ape[127 * 512] = 1.0f;
	r.score[1] = 0x1p24f; /* 2^24 + 3 = 2^24 + 4 */
	r.ape[127 * 512 + 1] = 3.0f;
	r.score[2] = INFINITY;
	r.ape[127 * 512 + 2] = -INFINITY;
	r.score[3] = -0.0f;
	r.ape[127 * 512 + 3] = -0.0f;
	r.kv[4] = NAN;
	state_rig_check(&r);
	at = state_rig_at(&r, 7);
	ck_assert(at[512] == 0x1p24f && at[513] == 0x1p24f + 4.0f);
	ck_assert(isnan(at[514]) && signbit(at[515]) && isnan(at[4]));
	state_rig_close(&r);
}
END_TEST

START_TEST(slots_below_zero_are_skipped_silently)
{
	static const int64_t none[4] = {-1, -2, INT64_MIN, -4096};
	uint32_t t;
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_512, 4, 8, 2, 0);
	memcpy(r.slots, none, sizeof none);
	for (t = 0; t < 4; t++)
		r.positions[t] = -7; /* not read */
	state_rig_check(&r);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	state_rig_close(&r);
}
END_TEST

/* Token 1 has a bad slot and a bad position: one report. */
START_TEST(slots_past_the_state_and_positions_below_zero_are_reported)
{
	static const int64_t slots[6] = {15, 16, 3, INT64_MAX, 0, 4};
	static const int32_t positions[6] = {5, -1, -1, 2, INT32_MIN, 4};
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_1024, 6, 4, 4, 16);
	memcpy(r.slots, slots, sizeof slots);
	memcpy(r.positions, positions, sizeof positions);
	state_rig_check(&r);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	state_rig_run(&r);
	expect_status(&r.f, 4, SPMLA_FAULT_SLOT, 1, 0);
	state_rig_close(&r);
}
END_TEST

START_TEST(rows_and_pages_that_are_not_there_are_skipped_and_reported)
{
	static const int32_t bad_rows[3] = {-1, STATE_RIG_ROWS, INT32_MAX};
	static const int32_t bad_pages[3] = {-1, 10, INT32_MIN};
	uint32_t i;
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_256, 3, 16, 10, 0);
	state_rig_ring(&r, 2);
	for (i = 0; i < 3; i++) {
		(void)state_rig_request(&r, 0, 3, 4, 62); /* columns 1, 1, 0 */
		r.row[1] = bad_rows[i];
		state_rig_check(&r);
		ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
		state_rig_run(&r);
		expect_status(&r.f, 1, SPMLA_FAULT_ROW, 1, 0);
		ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	}
	(void)state_rig_request(&r, 0, 3, 4, 62);
	for (i = 0; i < 3; i++) {
		r.table[4 * STATE_RIG_TABLE + 1] = bad_pages[i];
		state_rig_run(&r);
		expect_status(&r.f, 2, SPMLA_FAULT_PAGE, 4, 0);
		state_rig_check(&r);
		ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	}
	r.table[4 * STATE_RIG_TABLE + 1] = 0;
	r.cols[4] = 1;
	r.positions[2] = -64;
	state_rig_run(&r);
	expect_status(&r.f, 3, SPMLA_FAULT_PAGE, 4, 0);
	state_rig_check(&r);
	r.a.table_cols = NULL; /* all columns are written */
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	state_rig_run(&r);
	expect_status(&r.f, 1, SPMLA_FAULT_POSITION, 4, 0);
	state_rig_check(&r);
	state_rig_close(&r);
}
END_TEST

START_TEST(of_two_tokens_for_one_slot_every_value_is_that_of_one)
{
	float one[2][512];
	const float *at;
	uint32_t i, d;
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_256, 2, 4, 1, 0);
	for (d = 0; d < 256; d++)
		for (i = 0; i < 2; i++)
			r.score[i * 264 + d] = r.ape[d] = (float)(d + i);
	for (i = 0; i < 2; i++) {
		r.positions[i] = 4;
		r.slots[i] = 2;
		r.slots[1 - i] = -1;
		state_rig_run(&r);
		memcpy(one[i], state_rig_at(&r, 2), sizeof one[i]);
	}
	r.slots[0] = r.slots[1] = 2;
	state_rig_run(&r);
	at = state_rig_at(&r, 2);
	for (d = 0; d < 512; d++)
		ck_assert(!memcmp(at + d, one[0] + d, 4) ||
			  !memcmp(at + d, one[1] + d, 4));
	state_rig_close(&r);
}
END_TEST

START_TEST(a_token_does_not_depend_on_its_neighbours)
{
	float alone[2048];
	state_rig r;
	uint32_t t;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_1024, 9, 4, 4, 0);
	for (t = 0; t < 9; t++)
		if (r.slots[t] == 15)
			r.slots[t] = r.slots[5]; /* each has its own */
	r.slots[5] = 15;
	r.slots[8] = -1;
	state_rig_check(&r);
	memcpy(alone, state_rig_at(&r, 15), sizeof alone);
	r.a.tokens = 1;
	r.a.kv = r.kv + 5 * r.a.kv_stride_elems;
	r.a.score = r.score + 5 * r.a.score_stride_elems;
	r.a.slot_mapping = r.slots + 5;
	r.a.positions = r.positions + 5;
	state_rig_run(&r);
	ck_assert_mem_eq(state_rig_at(&r, 15), alone, sizeof alone);
	state_rig_close(&r);
}
END_TEST

/* Pages 2^31 + 1024 bytes apart: page 2 starts past 2^32. */
START_TEST(pages_may_be_more_than_2_gib_apart)
{
	const uint64_t bytes = UINT64_C(5) << 30;
	const uint64_t stride = (UINT64_C(1) << 31) + 1024;
	uint8_t *far_state;
	uint32_t t;
	state_rig r;

	far_state = test_map(bytes);
	state_rig_open(&r, SPMLA_LAYOUT_STATE_256, 3, 4, 3, 0);
	for (t = 0; t < 3; t++)
		r.slots[t] = 4 * t + t;
	state_rig_check(&r);
	r.a.state.base = far_state;
	r.a.state.page_stride_bytes = stride;
	ck_assert_int_eq(spmla_compress_state_save(r.f.ctx, &r.a, NULL),
			 SPMLA_OK);
	fixture_drain(&r.f);
	for (t = 0; t < 3; t++)
		ck_assert_mem_eq(far_state + t * (stride + 2048),
				 r.state + t * (4 * 2048 + 2048), 2048);
	munmap(far_state, bytes);
	state_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{paged_states_of_any_width_equal_the_rule, 1},
		{rings_of_any_width_equal_the_rule, 4},
	};
	const theme_test edge[] = {
		{the_last_tokens_of_a_request_stay_in_its_ring, 1},
		{only_tokens_of_the_same_request_take_a_place, 1},
		{sums_are_rounded_and_nothing_is_flushed, 1},
		{slots_below_zero_are_skipped_silently, 1},
		{slots_past_the_state_and_positions_below_zero_are_reported, 1},
		{rows_and_pages_that_are_not_there_are_skipped_and_reported, 1},
		{of_two_tokens_for_one_slot_every_value_is_that_of_one, 1},
	};
	const theme_test layout[] = {
		{kv_comes_first_and_then_score_with_its_ape, 1},
		{pages_may_be_more_than_2_gib_apart, 1},
	};
	const theme_test determinism[] = {
		{a_token_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
