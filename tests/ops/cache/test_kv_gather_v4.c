/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: rows of V4, by request and by slot, and rows of V3.2 by slot.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/kv_gather_rig.h"
#include "tests/reference/narrow_ref.h"

enum { FP8 = SPMLA_LAYOUT_V4_FP8 };

static const uint32_t layouts[3] = {FP8, SPMLA_LAYOUT_V4_BF16,
				    SPMLA_LAYOUT_V4_E4M3};

static kv_gather_rig r;

static void
open_in(uint32_t encoding, uint32_t layout, uint32_t entries, uint32_t rows,
	uint32_t columns, uint64_t pad)
{
	kv_gather_open(&r, layout, entries, rows, columns, pad);
	if (layout != SPMLA_LAYOUT_V4_BF16)
		r.a.cache.encoding = encoding;
}

/* Pages of random bytes: every code and every scale byte occurs. _i: the
 * encoding. */
START_TEST(v4_requests_of_any_length_are_converted)
{
	static const int32_t starts[4][4] = {{0, 1, 1, 65},
					     {0, 0, 130, 200},
					     {3, 40, 41, 42},
					     {0, 5, 9, 70}};
	uint32_t i;

	for (i = 0; i < 12; i++) {
		const uint32_t entries = i < 3 ? 1 : i < 6 ? 2 : 64;

		open_in((uint32_t)_i, layouts[i % 3], entries, 4, 200 / entries,
			16 * i);
		kv_gather_requests(&r, starts[i / 3], 4, 201);
		kv_gather_close(&r);
	}
}
END_TEST

/* As the source has it: of lengths 50, 17, 4 the last 20, 17 and 0, from row 5
 * of 28 on. */
START_TEST(last_entries_of_each_request_go_to_an_offset)
{
	static const int32_t lens[3] = {50, 17, 4}, take[3] = {20, 17, 0};
	static int32_t starts[3], ends[3], first[3];
	static gather_key model[84];
	int32_t b, n;

	kv_gather_open(&r, FP8, 16, 3, 5, 0);
	for (b = 0; b < 3; b++) {
		starts[b] = b * 28 + 5;
		ends[b] = starts[b] + take[b];
		first[b] = lens[b] - take[b];
		for (n = starts[b]; n < ends[b]; n++) {
			const int32_t at = first[b] + n - starts[b];

			model[n].owned = 1;
			model[n].page =
				r.g.pool +
				(uint64_t)r.g.table[(uint32_t)b * r.g.stride +
						    (uint32_t)at / 16] *
					r.g.cache.page_stride_bytes;
			model[n].entry = (uint64_t)at % 16;
		}
	}
	r.a.requests = 3;
	r.a.keys = 84;
	r.a.workspace_starts = starts;
	r.a.workspace_ends = ends;
	r.a.seq_starts = first;
	kv_gather_check(&r, model, 0);
	kv_gather_close(&r);
}
END_TEST

/* _i: the encoding. */
START_TEST(v4_slots_of_any_number_are_converted)
{
	static const uint32_t counts[4] = {1, 31, 33, 590};
	int32_t slots[KV_GATHER_KEYS];
	uint32_t i, n;

	for (i = 0; i < 12; i++) {
		open_in((uint32_t)_i, layouts[i % 3], 16, 2, 4, 16 * i);
		for (n = 0; n < counts[i / 3]; n++)
			slots[n] = rng_below(&r.g.rng, 9)
					   ? (int32_t)rng_below(
						     &r.g.rng,
						     16 * r.g.cache.pages)
					   : -1;
		kv_gather_slots(&r, slots, counts[i / 3]);
		kv_gather_close(&r);
	}
}
END_TEST

START_TEST(v4_output_may_lie_at_any_address_and_stride)
{
	static const int32_t slots[5] = {3, -1, 0, 63, 5};
	uint32_t i;

	for (i = 0; i < 12; i++) {
		kv_gather_open(&r, layouts[i % 3], 16, 1, 4, 0);
		r.a.dst = r.dst + i / 3;
		r.a.dst_stride_elems = i < 6 ? 512 : 515;
		kv_gather_slots(&r, slots, 5);
		kv_gather_close(&r);
	}
}
END_TEST

/* Rows of 576 values by slot equal the rows of the requests. */
START_TEST(rows_of_v32_are_found_by_slot_too)
{
	static const int32_t none[1] = {0};
	uint32_t layout, n;

	for (layout = SPMLA_LAYOUT_FP8_DS_MLA; layout <= SPMLA_LAYOUT_MLA_BF16;
	     layout++) {
		uint16_t *rows = test_alloc(12 * 576 * 2, 0x5A);
		int32_t slots[12];

		kv_gather_open(&r, layout, 4, 1, 3, 0);
		r.a.dst_stride_elems = 576;
		r.a.requests = 1;
		r.a.keys = 12;
		r.a.workspace_starts = none;
		ck_assert_int_eq(spmla_kv_gather(r.g.f.ctx, &r.a, NULL),
				 SPMLA_OK);
		for (n = 0; n < 12; n++)
			slots[n] = r.g.table[n / 4] * 4 + (int32_t)n % 4;
		r.a.slots = slots;
		r.a.dst = rows;
		slots[7] = -1;
		ck_assert_int_eq(spmla_kv_gather(r.g.f.ctx, &r.a, NULL),
				 SPMLA_OK);
		memset(r.dst + 7 * 576, 0, 1152);
		check_bytes(rows, r.dst, 12 * 1152);
		free(rows);
		kv_gather_close(&r);
	}
}
END_TEST

/* 0x38 is 1, 0xb9 -1.125, 0x7e 448, 0x01 2^-9, 0x80 -0; 2^-127 would be a
 * subnormal bf16, but byte 0 is 0, as the source has it. bf16 subnormals are
 * multiples of 2^-133: with byte 1, 2^-126, they are 2^-9 * 2^-126 = 2^-2 of
 * one, to 0; 3 * 2^-9 (0x03) to 3/4, to 1. */
START_TEST(v4_products_worked_out_by_hand)
{
	static const uint8_t code[8] = {0x38, 0xb9, 0x7e, 0x01,
					0x80, 0xff, 0x00, 0x03};
	static const struct {
		uint8_t byte;
		uint16_t want[8];
	} v[] = {
		{127,
		 {0x3f80, 0xbf90, 0x43e0, 0x3b00, 0x8000, 0x7fc0, 0, 0x3bc0}},
		{124,
		 {0x3e00, 0xbe10, 0x4260, 0x3980, 0x8000, 0x7fc0, 0, 0x3a40}},
		{1, {0x0080, 0x8090, 0x04e0, 0, 0x8000, 0x7fc0, 0, 0x0001}},
		{0, {0, 0x8000, 0, 0, 0x8000, 0x7fc0, 0, 0}},
		{254,
		 {0x7f00, 0xff10, 0x7f80, 0x7a80, 0x8000, 0x7fc0, 0, 0x7b40}},
		{255,
		 {0x7f80, 0xff80, 0x7f80, 0x7f80, 0x7fc0, 0x7fc0, 0x7fc0,
		  0x7f80}},
	};
	static const int32_t slot[1] = {0};
	uint32_t i;

	kv_gather_open(&r, FP8, 1, 1, 1, 0);
	for (i = 0; i < sizeof v / sizeof *v; i++) {
		memset(r.g.pool, 0, 584);
		memcpy(r.g.pool + 64 * (i + 1), code, 8);
		memset(r.g.pool + 576, 127, 7);
		r.g.pool[576 + i + 1] = v[i].byte;
		kv_gather_slots(&r, slot, 1);
		ck_assert_mem_eq(r.dst + 64 * (i + 1), v[i].want, 16);
	}
	kv_gather_close(&r);
	/* 448 * 0.3 = 134.4 = 2^7 (1 + 6.4 / 128): 134 << 7 | 6. */
	kv_gather_open(&r, SPMLA_LAYOUT_V4_E4M3, 1, 1, 1, 0);
	memset(r.g.pool, 0, 512);
	r.g.pool[511] = 0x7e;
	kv_gather_slots(&r, slot, 1);
	ck_assert_uint_eq(r.dst[511], 134 << 7 | 6);
	kv_gather_close(&r);
}
END_TEST

START_TEST(v4_keys_without_a_page_are_zeros)
{
	static const int32_t cols[2] = {2, 1};
	static const int32_t starts[2] = {0, 9}, first[2] = {5, 0};

	kv_gather_open(&r, FP8, 4, 2, 3, 0);
	r.g.cols = r.a.table_cols = cols;
	r.a.seq_starts = first;
	kv_gather_requests(&r, starts, 2, 17);
	gather_status(&r.g, 6 + 4, SPMLA_FAULT_PAGE, 0);
	kv_gather_close(&r);
}
END_TEST

/* Three columns wrap around, and row 1 has only two of them. Its 21 keys from
 * 4094 on lie in columns 1023, 1024, ..; columns 1025 and 1028 are the third
 * one, so their keys have no page. */
START_TEST(v4_ring_comes_round_and_misses_what_was_not_written)
{
	static const int32_t cols[2] = {3, 2};
	static const int32_t starts[2] = {0, 30}, first[2] = {7, 4094};

	kv_gather_open(&r, FP8, 4, 2, 3, 0);
	r.g.ring = r.a.ring = 1;
	r.g.cols = r.a.table_cols = cols;
	r.a.seq_starts = first;
	kv_gather_requests(&r, starts, 2, 51);
	gather_status(&r.g, 4 + 3, SPMLA_FAULT_PAGE, 1);
	kv_gather_close(&r);
}
END_TEST

START_TEST(slots_past_the_cache_are_zeros_and_reported)
{
	int32_t slots[6] = {-1, 0, INT32_MIN, 0, INT32_MAX, -7};

	kv_gather_open(&r, FP8, 4, 1, 1, 0); /* 4 pages */
	slots[1] = 15;
	slots[3] = 16;
	kv_gather_slots(&r, slots, 6);
	gather_status(&r.g, 2, SPMLA_FAULT_SLOT, 3);
	kv_gather_close(&r);
}
END_TEST

/* Page 130000 of 37376 B begins at 4.86e9 B. */
START_TEST(v4_pages_past_4_gib_are_read_where_they_lie)
{
	const uint64_t bytes = UINT64_C(5) << 30, page = 130000;
	const int32_t slots[2] = {130000 * 64 + 63, 130000 * 64};
	uint8_t *far;

	far = test_map(bytes);
	kv_gather_open(&r, FP8, 64, 1, 1, 0);
	memcpy(far + page * 37376, r.g.pool, 37376);
	r.a.cache.base = far;
	r.a.cache.pages = (uint32_t)(bytes / 37376);
	kv_gather_slots(&r, slots, 2);
	munmap(far, bytes);
	kv_gather_close(&r);
}
END_TEST

START_TEST(by_slot_no_table_is_needed)
{
	static const int32_t slots[2] = {3, 1};

	kv_gather_open(&r, FP8, 4, 1, 1, 0);
	r.a.rows = r.a.columns = r.a.table_stride_elems = 0;
	r.a.block_table = NULL;
	kv_gather_slots(&r, slots, 2);
	r.a.keys = 0;
	r.a.dst = NULL;
	ck_assert_int_eq(spmla_kv_gather(r.g.f.ctx, &r.a, NULL), SPMLA_OK);
	kv_gather_close(&r);
}
END_TEST

START_TEST(v4_row_does_not_depend_on_its_neighbours)
{
	static uint16_t alone[KV_GATHER_DIM];
	int32_t slots[40];
	int32_t n;

	kv_gather_open(&r, FP8, 8, 2, 4, 0);
	for (n = 0; n < 40; n++)
		slots[n] = n;
	kv_gather_slots(&r, slots, 40);
	memcpy(alone, r.dst + 37 * r.a.dst_stride_elems, sizeof alone);
	kv_gather_slots(&r, slots + 37, 1);
	ck_assert_mem_eq(r.dst, alone, sizeof alone);
	kv_gather_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{v4_requests_of_any_length_are_converted, 2},
		{last_entries_of_each_request_go_to_an_offset, 1},
		{v4_slots_of_any_number_are_converted, 2},
		{rows_of_v32_are_found_by_slot_too, 1},
	};
	const theme_test edge[] = {
		{v4_products_worked_out_by_hand, 1},
		{v4_keys_without_a_page_are_zeros, 1},
		{v4_ring_comes_round_and_misses_what_was_not_written, 1},
		{slots_past_the_cache_are_zeros_and_reported, 1},
		{by_slot_no_table_is_needed, 1},
	};
	const theme_test layout[] = {
		{v4_output_may_lie_at_any_address_and_stride, 1},
		{v4_pages_past_4_gib_are_read_where_they_lie, 1},
	};
	const theme_test determinism[] = {
		{v4_row_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {THEME("shape", NULL, NULL, shape),
				THEME("edge", NULL, NULL, edge),
				THEME("layout", NULL, NULL, layout),
				THEME("determinism", NULL, NULL, determinism)};

	return RUN_THEMES(themes);
}
