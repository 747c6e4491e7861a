/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_insert: what the call refuses and says, bad slots and positions,
 * pages of unusual size, and how it is recorded and replayed.
 */
#include "tests/harness/themes.h"
#include "tests/ops/cache/indexer_k_rig.h"
#include "tests/reference/narrow_ref.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OP           "indexer_k_insert"
#define FIELD(field) ARG_FIELD(spmla_indexer_k_insert_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: "
#define NULL_OP      SPMLA_E_NULL, "SPMLA_E_NULL: " OP
#define NO_POINTER   ": got NULL, want a pointer"
#define WANT_FINITE  ", want a finite value above 0"

/* Of a call with norm and rope. */
static const arg_error errors[] = {
	{FIELD(struct_bytes), 80, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: " OP ": got 80, want 128"},
	{FIELD(dtype), 2, RANGE OP ".dtype: got 2, want at most 1"},
	{FIELD(dtype), SPMLA_DTYPE_FP16, SPMLA_E_UNSUPPORTED,
	 "SPMLA_E_UNSUPPORTED: " OP ".dtype: got 1, want 0"},
	{FIELD(scale_mode), 0, RANGE OP ".scale_mode: got 0, want at least 1"},
	{FIELD(scale_mode), 3, RANGE OP ".scale_mode: got 3, want at most 2"},
	{FIELD(rope_style), 3, RANGE OP ".rope_style: got 3, want at most 2"},
	{FIELD(cos_sin_rows), 0,
	 RANGE OP ".cos_sin_rows: got 0, want at least 1"},
	{FIELD(norm_eps), 0, RANGE OP ".norm_eps: got bits 0x0" WANT_FINITE},
	{FIELD(norm_eps), 0xbf800000, /* -1 */
	 RANGE OP ".norm_eps: got bits 0xbf800000" WANT_FINITE},
	{FIELD(norm_eps), 0x7f800000, /* inf */
	 RANGE OP ".norm_eps: got bits 0x7f800000" WANT_FINITE},
	{FIELD(norm_eps), 0x7fc00000, /* NaN */
	 RANGE OP ".norm_eps: got bits 0x7fc00000" WANT_FINITE},
	{FIELD(k), 0, NULL_OP ".k" NO_POINTER},
	{FIELD(k_stride_elems), 127,
	 RANGE OP ".k_stride_elems: got 127, want at least 128"},
	{FIELD(k_stride_elems), UINT64_MAX,
	 RANGE OP ".k_stride_elems: got 0, want at least 128"},
	{FIELD(slot_mapping), 0, NULL_OP ".slot_mapping" NO_POINTER},
	{FIELD(norm_bias), 0, NULL_OP ".norm_bias" NO_POINTER},
	{FIELD(positions), 0, NULL_OP ".positions" NO_POINTER},
	{FIELD(cos_sin), 0, NULL_OP ".cos_sin" NO_POINTER},
	{FIELD(cache.struct_bytes), 0, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: cache.struct_bytes: got 0, want 40"},
	{FIELD(cache.layout), SPMLA_LAYOUT_FP8_DS_MLA,
	 RANGE "cache.layout: got 1, want 3"},
	{FIELD(cache.entries_per_page), 0,
	 RANGE "cache.entries_per_page: got 0, want at least 1"},
	{FIELD(cache.pages), 0, RANGE "cache.pages: got 0, want at least 1"},
	{FIELD(cache.page_stride_bytes), 512, /* 4 * 132 = 528 */
	 RANGE "cache.page_stride_bytes: got 512, want at least 528"},
	{FIELD(cache.page_stride_bytes), 529,
	 RANGE "cache.page_stride_bytes: got 529, want a multiple of 16"},
	{FIELD(cache.base), 0, SPMLA_E_NULL,
	 "SPMLA_E_NULL: cache.base" NO_POINTER},
	{FIELD(cache.base), 8,
	 RANGE "cache.base: got 8, want a multiple of 16"},
};

START_TEST(every_field_is_checked_and_named)
{
	uint32_t i;
	k_rig r;

	k_rig_open(&r, 3, 4, 2, 0);
	k_rig_norm(&r);
	k_rig_rope(&r, SPMLA_ROPE_NEOX);
	memset(r.want, 0xAB, r.pool_bytes);
	for (i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		const arg_error *e = &errors[i];
		spmla_indexer_k_insert_args bad = r.a;

		memcpy((char *)&bad + e->offset, &e->value, e->bytes);
		ck_assert_uint_eq(spmla_indexer_k_insert(r.f.ctx, &bad, NULL),
				  e->status);
		ck_assert_str_eq(fixture_diag(&r.f), e->text);
	}
	check_bytes(r.pool, r.want, r.pool_bytes);
	k_rig_check(&r);
	k_rig_close(&r);
}
END_TEST

START_TEST(args_and_context_must_be_there)
{
	k_rig r;

	k_rig_open(&r, 1, 4, 1, 0);
	ck_assert_int_eq(spmla_indexer_k_insert(NULL, &r.a, NULL),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_indexer_k_insert(r.f.ctx, NULL, NULL),
			 SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&r.f), "SPMLA_E_NULL: " OP NO_POINTER);
	k_rig_close(&r);
}
END_TEST

START_TEST(fp16_takes_neither_norm_nor_rope_alone)
{
	k_rig r;

	k_rig_open(&r, 1, 4, 1, 0);
	r.a.dtype = SPMLA_DTYPE_FP16;
	k_rig_check(&r);
	k_rig_norm(&r);
	ck_assert_int_eq(spmla_indexer_k_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_E_UNSUPPORTED);
	r.a.norm_weight = NULL;
	k_rig_check(&r);
	k_rig_rope(&r, SPMLA_ROPE_INTERLEAVED);
	ck_assert_int_eq(spmla_indexer_k_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_E_UNSUPPORTED);
	k_rig_close(&r);
}
END_TEST

/* Without a weight and a style the fields that go with them are not read. */
START_TEST(fields_of_absent_steps_do_not_matter)
{
	k_rig r;

	k_rig_open(&r, 3, 4, 1, 0);
	r.a.norm_eps = -1;
	r.a.norm_bias = NULL;
	r.a.positions = NULL;
	r.a.cos_sin = NULL;
	r.a.cos_sin_rows = 0;
	k_rig_check(&r);
	k_rig_close(&r);
}
END_TEST

START_TEST(no_tokens_need_no_pointers_and_write_nothing)
{
	spmla_indexer_k_insert_args none = {0};
	k_rig r;

	k_rig_open(&r, 3, 4, 1, 0);
	r.a.tokens = 0;
	k_rig_check(&r);
	none.struct_bytes = (uint32_t)sizeof none;
	ck_assert_int_eq(spmla_indexer_k_insert(r.f.ctx, &none, NULL),
			 SPMLA_OK);
	k_rig_close(&r);
}
END_TEST

/* Token 2 has both a bad slot and a bad position: one report. */
START_TEST(bad_slots_and_positions_are_skipped_and_reported)
{
	static const int64_t slots[8] = {-1, 15,        16, 0,
					 1,  INT64_MIN, 2,  INT64_MAX};
	static const int32_t positions[8] = {-5, 49,        50, 50,
					     -1, INT32_MAX, 0,  3};
	spmla_device_status status;
	k_rig r;

	k_rig_open(&r, 8, 4, 4, 16);
	k_rig_rope(&r, SPMLA_ROPE_NEOX);
	memcpy(r.slots, slots, sizeof slots);
	memcpy(r.positions, positions, sizeof positions);
	k_rig_check(&r);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	k_rig_run(&r);
	status = fixture_status(&r.f);
	ck_assert_uint_eq(status.count, 4); /* 2, 3, 4 and 7 */
	ck_assert_uint_eq(status.row, 2);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_SLOT);
	r.slots[2] = -1;
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	k_rig_run(&r);
	status = fixture_status(&r.f);
	ck_assert_uint_eq(status.count, 3);
	ck_assert_uint_eq(status.row, 3);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_POSITION);
	k_rig_close(&r);
}
END_TEST

/* Blocks of a GPU write both at once: values are whole, keys need not be. */
START_TEST(of_two_keys_for_one_slot_every_value_is_that_of_one)
{
	uint8_t page[2][4 * 132];
	uint32_t i, bytes;
	k_rig r;

	k_rig_open(&r, 2, 4, 1, 0);
	for (i = 0; i < 2; i++) {
		r.slots[i] = 2;
		r.slots[1 - i] = -1;
		k_rig_run(&r);
		memcpy(page[i], r.pool, sizeof page[i]);
	}
	r.slots[0] = r.slots[1] = 2;
	k_rig_run(&r);
	for (i = 0; i < sizeof page[0]; i += bytes) {
		bytes = i < 4 * 128 ? 1 : 4;
		ck_assert(!memcmp(r.pool + i, page[0] + i, bytes) ||
			  !memcmp(r.pool + i, page[1] + i, bytes));
	}
	k_rig_close(&r);
}
END_TEST

/* 64 * 132 = 8448 B: row 63 has its values at 8064, its scale at 8444. Page 1
 * starts a stride later. */
START_TEST(values_and_scales_lie_apart_in_a_page)
{
	k_rig r;

	k_rig_open(&r, 2, 64, 2, 48);
	ck_assert_uint_eq(r.a.cache.page_stride_bytes, 8496);
	memset(r.k, 0, 136 * 2 * 2);
	r.k[0] = test_bf16(448.0f);          /* scale 1, 0x7e */
	r.k[136 + 127] = test_bf16(-896.0f); /* scale 2, 0xfe */
	r.slots[0] = 63;
	r.slots[1] = 127;
	k_rig_check(&r);
	ck_assert_uint_eq(r.pool[8064], 0x7e);
	ck_assert_mem_eq(r.pool + 8444, "\0\0\x80\x3f", 4);
	ck_assert_uint_eq(r.pool[8496 + 8064 + 127], 0xfe);
	ck_assert_mem_eq(r.pool + 8496 + 8444, "\0\0\0\x40", 4);
	ck_assert_uint_eq(r.pool[8448], 0xAB);
	k_rig_close(&r);
}
END_TEST

/* A page of 1, 3 or 7 entries ends in 12, 4 or 4 bytes that nobody owns. */
START_TEST(pages_of_odd_size_keep_their_padding)
{
	static const uint32_t entries[3] = {1, 3, 7};
	uint32_t i, t;
	k_rig r;

	for (i = 0; i < 3; i++) {
		k_rig_open(&r, 17, entries[i], 21 / entries[i], 4096 * i);
		for (t = 0; t < 17; t++)
			r.slots[t] = 20 - t;
		k_rig_check(&r);
		k_rig_close(&r);
	}
}
END_TEST

/* Pages 2^31 + 1024 bytes apart: page 2 starts past 2^32. */
START_TEST(pages_may_be_more_than_2_gib_apart)
{
	const uint64_t bytes = UINT64_C(5) << 30;
	const uint64_t stride = (UINT64_C(1) << 31) + 1024;
	uint8_t *far_pool;
	uint32_t t;
	k_rig r;

	far_pool = test_map(bytes);
	k_rig_open(&r, 3, 4, 3, 0);
	for (t = 0; t < 3; t++)
		r.slots[t] = 4 * t + t;
	k_rig_check(&r);
	r.a.cache.base = far_pool;
	r.a.cache.page_stride_bytes = stride;
	ck_assert_int_eq(spmla_indexer_k_insert(r.f.ctx, &r.a, NULL), SPMLA_OK);
	for (t = 0; t < 3; t++) {
		const uint8_t *near_page = r.pool + t * 528;
		const uint8_t *far_page = far_pool + t * stride;

		ck_assert_mem_eq(far_page + t * 128, near_page + t * 128, 128);
		ck_assert_mem_eq(far_page + 512 + t * 4,
				 near_page + 512 + t * 4, 4);
	}
	munmap(far_pool, bytes);
	k_rig_close(&r);
}
END_TEST

START_TEST(a_replay_reads_what_lies_there_then)
{
	spmla_graph graph;
	uint32_t i;
	k_rig r;

	k_rig_open(&r, 9, 4, 4, 16);
	k_rig_norm(&r);
	k_rig_rope(&r, SPMLA_ROPE_INTERLEAVED);
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_indexer_k_insert(r.f.ctx, &r.a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	memset(r.want, 0xAB, r.pool_bytes);
	check_bytes(r.pool, r.want, r.pool_bytes);
	for (i = 0; i < 3; i++) {
		k_rig_fill(&r);
		k_rig_norm(&r); /* the weights too change in place */
		k_rig_model(&r);
		k_rig_reset(&r);
		ck_assert_int_eq(spmla_graph_replay(r.f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		check_bytes(r.pool, r.want, r.pool_bytes);
		k_rig_check(&r); /* the eager op gives the same */
	}
	k_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_field_is_checked_and_named, 1},
		{args_and_context_must_be_there, 1},
		{fp16_takes_neither_norm_nor_rope_alone, 1},
	};
	const theme_test edge[] = {
		{fields_of_absent_steps_do_not_matter, 1},
		{no_tokens_need_no_pointers_and_write_nothing, 1},
		{bad_slots_and_positions_are_skipped_and_reported, 1},
		{of_two_keys_for_one_slot_every_value_is_that_of_one, 1},
	};
	const theme_test layout[] = {
		{values_and_scales_lie_apart_in_a_page, 1},
		{pages_of_odd_size_keep_their_padding, 1},
		{pages_may_be_more_than_2_gib_apart, 1},
	};
	const theme_test graph[] = {
		{a_replay_reads_what_lies_there_then, 1},
	};
	const theme themes[] = {
		THEME("error", NULL, NULL, error),
		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),
		THEME("graph", NULL, NULL, graph),
	};

	return RUN_THEMES(themes);
}
