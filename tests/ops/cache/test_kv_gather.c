/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: values and where they land, against a model in double and vectors
 * worked out by hand. Every check compares every byte of the output, gaps
 * included.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/gather_rig.h"
#include "tests/reference/narrow_ref.h"

#include "spmla/ops/kv_gather.h"

/* Requests: more than a block of a device has items. */
enum { MAX_KEYS = 1200, MAX_REQUESTS = 300, GAP = 8 };

static gather_rig g;
static int32_t starts[MAX_REQUESTS + 1]; /* the last: where all end */
static int32_t *seq_starts;
static uint16_t *dst;
static int64_t dst_stride;

static void
open_rig(uint32_t layout, uint32_t entries, uint32_t rows, uint32_t columns,
	 uint64_t pad)
{
	gather_open(&g, layout, entries, rows, columns, pad);
	seq_starts = NULL;
	dst_stride = 576 + GAP;
	dst = test_alloc(MAX_KEYS * (576 + GAP) * 2, 0);
}

static void
close_rig(void)
{
	gather_close(&g);
	free(dst);
}

static spmla_kv_gather_args
args_of(uint32_t requests, uint32_t keys)
{
	const spmla_kv_gather_args a = {
		sizeof a, requests, keys,       g.rows,    g.columns,
		g.stride, starts,   seq_starts, g.req_row, g.table,
		g.cols,   dst,      dst_stride, g.cache,   NULL,
		NULL,     0,        0,          NULL};

	return a;
}

/* e4m3 times f32 has 28 bits at most: exact in double. */
static uint16_t
product_bits(uint8_t code, float scale)
{
	const double x = ref_round_f32(ref_e4m3_value(code) * (double)scale);

	return isnan(x) ? 0x7fc0 : ref_bf16_bits(x);
}

static void
model_row(const gather_key *key, uint16_t *row)
{
	const uint8_t *entry;
	uint32_t i;

	memset(row, 0, 576 * sizeof *row);
	if (!key->page)
		return;
	if (g.cache.layout == SPMLA_LAYOUT_MLA_BF16) {
		memcpy(row, key->page + key->entry * 1152, 1152);
		return;
	}
	entry = key->page + key->entry * 656;
	for (i = 0; i < 512; i++) {
		float scale;

		memcpy(&scale, entry + 512 + i / 128 * 4, sizeof scale);
		row[i] = product_bits(entry[i], scale);
	}
	memcpy(row + 512, entry + 528, 128);
}

static void
check_gather(uint32_t requests, uint32_t keys)
{
	static gather_key model[MAX_KEYS];
	static uint16_t want[MAX_KEYS * (576 + GAP)];
	const spmla_kv_gather_args a = args_of(requests, keys);
	int64_t bounds[MAX_REQUESTS + 1];
	uint32_t faults, n;

	for (n = 0; n < requests; n++)
		bounds[n] = starts[n];
	bounds[requests] = keys;
	faults = gather_model(&g, bounds, requests, seq_starts, model, keys);
	memset(want, 123, sizeof want);
	memset(dst, 123, sizeof want);
	for (n = 0; n < keys; n++)
		if (model[n].owned)
			model_row(&model[n], want + n * dst_stride);
	ck_assert_int_eq(spmla_status_clear(g.f.ctx), SPMLA_OK);
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	check_bytes(dst, want, sizeof want);
	ck_assert_uint_eq(fixture_status(&g.f).count, faults);
}

/* Requests of these lengths one after another; returns where they end. */
static uint32_t
set_lens(const int32_t *lens, uint32_t requests)
{
	uint32_t b;

	starts[0] = 0;
	for (b = 0; b < requests; b++)
		starts[b + 1] = starts[b] + lens[b];
	return (uint32_t)starts[requests];
}

START_TEST(fp8_requests_of_any_length_are_converted)
{
	static const int32_t lens[7][4] = {
		{1, 0, 0, 0},        {64, 0, 0, 0},  {128, 0, 0, 0},
		{512, 0, 0, 0},      {0, 77, 0, 13}, {256, 128, 384, 0},
		{128, 128, 128, 128}};
	uint32_t i;

	open_rig(SPMLA_LAYOUT_FP8_DS_MLA, 64, 4, 8, 0);
	for (i = 0; i < 7; i++) {
		check_gather(4, set_lens(lens[i], 4));
		gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	}
	close_rig();
	open_rig(SPMLA_LAYOUT_FP8_DS_MLA, 4, 3, 5, 48);
	dst_stride = 576;
	check_gather(3, set_lens((const int32_t[]){20, 3, 11}, 3));
	close_rig();
}
END_TEST

START_TEST(bf16_requests_are_copied_bit_for_bit)
{
	int32_t lens[MAX_REQUESTS];
	uint32_t entries, b;

	for (entries = 1; entries <= 64; entries *= 4) {
		open_rig(SPMLA_LAYOUT_MLA_BF16, entries, 3, 8, 16);
		check_gather(3, set_lens((const int32_t[]){5, 0, 8}, 3));
		gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
		close_rig();
	}
	open_rig(SPMLA_LAYOUT_MLA_BF16, 4, MAX_REQUESTS, 1, 0);
	for (b = 0; b < MAX_REQUESTS; b++)
		lens[b] = (int32_t)rng_below(&g.rng, 5);
	check_gather(MAX_REQUESTS, set_lens(lens, MAX_REQUESTS));
	close_rig();
}
END_TEST

START_TEST(a_request_may_start_inside_its_sequence)
{
	static int32_t first[2][3] = {{3, 4, 5}, {12, 4, 5}};

	open_rig(SPMLA_LAYOUT_FP8_DS_MLA, 4, 3, 5, 0);
	seq_starts = first[0];
	check_gather(3, set_lens((const int32_t[]){6, 5, 3}, 3));
	seq_starts = first[1];
	check_gather(3, set_lens((const int32_t[]){0, 5, 3}, 3));
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	close_rig();
}
END_TEST

static void
open_one(void)
{
	open_rig(SPMLA_LAYOUT_FP8_DS_MLA, 1, 1, 1, 0);
}

/* One row: codes of its third group, at that scale. */
static void
convert(const uint8_t *codes, float scale, uint16_t *bits, uint32_t n)
{
	static int32_t page[1];
	spmla_kv_gather_args a;

	memset(g.pool, 0, 656);
	memcpy(g.pool + 256, codes, n); /* the third group */
	memcpy(g.pool + 512 + 8, &scale, sizeof scale);
	(void)set_lens((const int32_t[]){1}, 1);
	a = args_of(1, 1);
	a.block_table = page;
	memset(dst, 0x5A, 4096);
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_uint_eq(dst[255], 0);
	memcpy(bits, dst + 256, n * sizeof *bits);
	ck_assert_uint_eq(dst[576], 0x5A5A);
}

/* Codes (spec 0.4): 0x38 = 1, 0x7e = 448, 0x01 = 2^-9, 0x0f = 1.875 * 2^-6,
 * 0xb9 = -1.125, 0x80 = -0. */
START_TEST(products_worked_out_by_hand)
{
	static const uint8_t code[6] = {0x38, 0x7e, 0x01, 0x0f, 0xb9, 0x80};
	uint16_t got[6];

	/* 0.75 = 1.5 * 2^-1: 126 << 7 | 64; 336 = 1.3125 * 2^8: 135 << 7 | 40;
	 * 0.75 * 2^-9: 117 << 7 | 64; 1.40625 * 2^-6: 121 << 7 | 52;
	 * -0.84375 = -1.6875 * 2^-1: 126 << 7 | 88 */
	convert(code, 0.75f, got, 6);
	ck_assert_uint_eq(got[0], 0x3f40);
	ck_assert_uint_eq(got[1], 0x43a8);
	ck_assert_uint_eq(got[2], 0x3ac0);
	ck_assert_uint_eq(got[3], 0x3cb4);
	ck_assert_uint_eq(got[4], 0xbf58);
	ck_assert_uint_eq(got[5], 0x8000);
	/* 448 * 2^-13 = 1.75 * 2^-5: 122 << 7 | 96 */
	convert(code, 0x1p-13f, got, 6);
	ck_assert_uint_eq(got[1], 0x3d60);
}
END_TEST

/* bf16 has 7 bits of fraction: 1 + 2^-8 lies halfway between 1 and 1 + 2^-7,
 * 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6; both go to the even one. */
START_TEST(halfway_products_go_to_the_even_neighbour)
{
	static const uint8_t one[2] = {0x38, 0xb8};
	uint16_t got[2];

	convert(one, 1.0f + 0x1p-8f, got, 2);
	ck_assert_uint_eq(got[0], 0x3f80);
	ck_assert_uint_eq(got[1], 0xbf80);
	convert(one, 1.0f + 0x3p-8f, got, 2);
	ck_assert_uint_eq(got[0], 0x3f82);
	ck_assert_uint_eq(got[1], 0xbf82);
	convert(one, 1.0f + 0x1p-8f + 0x1p-23f, got, 2);
	ck_assert_uint_eq(got[0], 0x3f81);
}
END_TEST

/* 0x3d = 1.625 = 13 / 8 times 10364771 * 2^-24 is 134742023 * 2^-27 = 1 + 2^-8
 * + 7 * 2^-27. As f32, in steps of 16 * 2^-27, it is 1 + 2^-8, and that goes to
 * 1 as bf16. Rounded once it would be 1 + 2^-7. */
START_TEST(a_product_is_rounded_to_f32_first)
{
	static const uint8_t code[1] = {0x3d};
	uint16_t got[1];

	convert(code, 10364771 * 0x1p-24f, got, 1);
	ck_assert_uint_eq(got[0], 0x3f80);
}
END_TEST

/* bf16 subnormals are multiples of 2^-133. */
START_TEST(what_is_not_a_normal_number)
{
	static const uint8_t code[8] = {0x7f, 0xff, 0x7e, 0xfe,
					0x00, 0x01, 0x02, 0x03};
	uint16_t got[8];

	convert(code, 0x1p120f, got, 8); /* 448 * 2^120 is past 2^128 */
	ck_assert_uint_eq(got[0], 0x7fc0);
	ck_assert_uint_eq(got[1], 0x7fc0);
	ck_assert_uint_eq(got[2], 0x7f80);
	ck_assert_uint_eq(got[3], 0xff80);
	convert(code, INFINITY, got, 8);
	ck_assert_uint_eq(got[3], 0xff80);
	ck_assert_uint_eq(got[4], 0x7fc0); /* 0 * inf */
	ck_assert_uint_eq(got[5], 0x7f80);
	convert(code, -NAN, got, 8);
	ck_assert_uint_eq(got[2], 0x7fc0);
	ck_assert_uint_eq(got[4], 0x7fc0);
	/* i * 2^-9 * 2^-126 = i / 4 of a step */
	convert(code, 0x1p-126f, got, 8);
	ck_assert_uint_eq(got[5], 0x0000);
	ck_assert_uint_eq(got[6], 0x0000); /* half: even */
	ck_assert_uint_eq(got[7], 0x0001);
	/* A subnormal scale is not taken for 0: 448 * 2^-140 = 3.5 steps, even
	 * is 4; 448 * 2^-149 is less than half a step. */
	convert(code, 0x1p-140f, got, 8);
	ck_assert_uint_eq(got[2], 0x0004);
	convert(code, 0x1p-149f, got, 8);
	ck_assert_uint_eq(got[2], 0x0000);
}
END_TEST

START_TEST(rows_before_the_first_request_are_left_alone)
{
	open_rig(SPMLA_LAYOUT_FP8_DS_MLA, 16, 2, 2, 0);
	starts[0] = 4;
	starts[1] = 9;
	check_gather(2, 30);
	close_rig();
}
END_TEST

START_TEST(a_request_reads_the_row_it_names)
{
	static const int32_t rows[4] = {2, 0, 3, 2};

	open_rig(SPMLA_LAYOUT_MLA_BF16, 4, 3, 3, 0);
	g.req_row = rows;
	check_gather(4, set_lens((const int32_t[]){12, 1, 2, 7}, 4));
	gather_status(&g, 1, SPMLA_FAULT_ROW, 2);
	check_gather(4, set_lens((const int32_t[]){12, 1, 0, 7}, 4));
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	close_rig();
}
END_TEST

/* 2 columns of 4: positions 8, 9 of row 0; row 1 has 1 column written and,
 * there, a page that is not; of row 2 the start is past the table. */
START_TEST(keys_without_a_page_are_zeros)
{
	static const int32_t cols[3] = {2, 1, 2};
	static int32_t first[3] = {5, 0, INT32_MAX};

	open_rig(SPMLA_LAYOUT_FP8_DS_MLA, 4, 3, 2, 0);
	g.cols = cols;
	seq_starts = first;
	check_gather(3, set_lens((const int32_t[]){5, 6, 2}, 3));
	gather_status(&g, 2 + 2 + 2, SPMLA_FAULT_PAGE, 0);
	g.table[g.stride] = (int32_t)g.cache.pages;
	check_gather(3, 13);
	gather_status(&g, 2 + 6 + 2, SPMLA_FAULT_PAGE, 0);
	close_rig();
}
END_TEST

START_TEST(bounds_and_starts_out_of_order_give_zeros)
{
	static const int32_t bounds[3][3] = {
		{0, 5, 3},          /* 1 ends at 3, 2 starts there */
		{-1, 2, 5},         /* 0 */
		{0, 4, INT32_MAX}}; /* 1 and 2 */
	static const uint32_t faults[3] = {2, 1, 2};
	static const uint32_t row[3] = {1, 0, 1};
	static int32_t below[3] = {0, -1, INT32_MIN};
	uint32_t i;

	open_rig(SPMLA_LAYOUT_FP8_DS_MLA, 4, 3, 3, 0);
	for (i = 0; i < 3; i++) {
		memcpy(starts, bounds[i], sizeof bounds[i]);
		check_gather(3, 9);
		gather_status(&g, faults[i], SPMLA_FAULT_LENGTH, row[i]);
	}
	seq_starts = below; /* of a request without keys it is not looked at */
	check_gather(3, set_lens((const int32_t[]){5, 6, 0}, 3));
	gather_status(&g, 1, SPMLA_FAULT_LENGTH, 1);
	close_rig();
}
END_TEST

START_TEST(a_request_does_not_depend_on_its_neighbours)
{
	static uint16_t alone[7 * 584];
	static const int32_t rows[1] = {1};

	open_rig(SPMLA_LAYOUT_FP8_DS_MLA, 4, 3, 3, 0);
	check_gather(3, set_lens((const int32_t[]){5, 7, 11}, 3));
	memcpy(alone, dst + 5 * 584, sizeof alone);
	g.req_row = rows;
	check_gather(1, set_lens((const int32_t[]){7}, 1));
	ck_assert_mem_eq(dst, alone, sizeof alone);
	close_rig();
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{fp8_requests_of_any_length_are_converted, 1},
		{bf16_requests_are_copied_bit_for_bit, 1},
		{a_request_may_start_inside_its_sequence, 1},
		{a_request_reads_the_row_it_names, 1},
	};
	const theme_test values[] = {
		{products_worked_out_by_hand, 1},
		{halfway_products_go_to_the_even_neighbour, 1},
		{a_product_is_rounded_to_f32_first, 1},
		{what_is_not_a_normal_number, 1},
	};
	const theme_test edge[] = {
		{rows_before_the_first_request_are_left_alone, 1},
		{keys_without_a_page_are_zeros, 1},
		{bounds_and_starts_out_of_order_give_zeros, 1},
	};
	const theme_test determinism[] = {
		{a_request_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {THEME("shape", NULL, NULL, shape),
				THEME("edge", open_one, close_rig, values),
				THEME("edge", NULL, NULL, edge),
				THEME("determinism", NULL, NULL, determinism)};

	return RUN_THEMES(themes);
}
