/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert: what the call refuses and says, pages of unusual size, and how it
 * is recorded, queued and replayed.
 */
#include "tests/harness/themes.h"
#include "tests/ops/cache/kv_insert_rig.h"
#include "tests/reference/narrow_ref.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIELD(field) ARG_FIELD(spmla_kv_insert_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: "
#define NO_POINTER   ": got NULL, want a pointer"

static const arg_error errors[] = {
	{FIELD(struct_bytes), 88, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: kv_insert: got 88, want 104"},
	{FIELD(dtype), SPMLA_DTYPE_F32,
	 RANGE "kv_insert.dtype: got 2, want at most 1"},
	{FIELD(scale_mode), 0,
	 RANGE "kv_insert.scale_mode: got 0, want at least 1"},
	{FIELD(scale_mode), 3,
	 RANGE "kv_insert.scale_mode: got 3, want at most 2"},
	{FIELD(kv_c), 0, SPMLA_E_NULL,
	 "SPMLA_E_NULL: kv_insert.kv_c" NO_POINTER},
	{FIELD(k_pe), 0, SPMLA_E_NULL,
	 "SPMLA_E_NULL: kv_insert.k_pe" NO_POINTER},
	{FIELD(slot_mapping), 0, SPMLA_E_NULL,
	 "SPMLA_E_NULL: kv_insert.slot_mapping" NO_POINTER},
	{FIELD(kv_c_stride_elems), 511,
	 RANGE "kv_insert.kv_c_stride_elems: got 511, want at least 512"},
	{FIELD(kv_c_stride_elems), UINT64_MAX,
	 RANGE "kv_insert.kv_c_stride_elems: got 0, want at least 512"},
	{FIELD(k_pe_stride_elems), 63,
	 RANGE "kv_insert.k_pe_stride_elems: got 63, want at least 64"},
	{FIELD(cache.struct_bytes), 32, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: cache.struct_bytes: got 32, want 40"},
	{FIELD(cache.layout), SPMLA_LAYOUT_INDEX_FP8,
	 RANGE "cache.layout: got 3, want 1"},
	{FIELD(cache.layout), 33, RANGE "cache.layout: got 33, want 1"},
	{FIELD(cache.entries_per_page), 0,
	 RANGE "cache.entries_per_page: got 0, want at least 1"},
	{FIELD(cache.pages), 0, RANGE "cache.pages: got 0, want at least 1"},
	{FIELD(cache.page_stride_bytes), 2608, /* 4 * 656 - 16 */
	 RANGE "cache.page_stride_bytes: got 2608, want at least 2624"},
	{FIELD(cache.page_stride_bytes), 2632,
	 RANGE "cache.page_stride_bytes: got 2632, want a multiple of 16"},
	{FIELD(cache.base), 0, SPMLA_E_NULL,
	 "SPMLA_E_NULL: cache.base" NO_POINTER},
	{FIELD(cache.base), 24,
	 RANGE "cache.base: got 24, want a multiple of 16"},
};

START_TEST(every_field_is_checked_and_named)
{
	uint32_t i;
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 3, 4, 2, 0);
	memset(r.want, 0xAB, r.pool_bytes);
	for (i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		const arg_error *e = &errors[i];
		spmla_kv_insert_args bad = r.a;

		memcpy((char *)&bad + e->offset, &e->value, e->bytes);
		ck_assert_uint_eq(spmla_kv_insert(r.f.ctx, &bad, NULL),
				  e->status);
		ck_assert_str_eq(fixture_diag(&r.f), e->text);
	}
	check_bytes(r.pool, r.want, r.pool_bytes);
	kv_rig_check(&r);
	kv_rig_close(&r);
}
END_TEST

START_TEST(args_and_context_must_be_there)
{
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 1, 4, 1, 0);
	ck_assert_int_eq(spmla_kv_insert(NULL, &r.a, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_kv_insert(r.f.ctx, NULL, NULL), SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&r.f),
			 "SPMLA_E_NULL: kv_insert" NO_POINTER);
	kv_rig_close(&r);
}
END_TEST

START_TEST(a_bf16_cache_needs_longer_pages_and_no_scale_mode)
{
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_MLA_BF16, 3, 4, 2, 0);
	r.a.scale_mode = 77;
	kv_rig_check(&r);
	r.a.cache.page_stride_bytes -= 16;
	ck_assert_int_eq(spmla_kv_insert(r.f.ctx, &r.a, NULL), SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&r.f),
			 "SPMLA_E_RANGE: cache.page_stride_bytes: got 4592, "
			 "want at least 4608");
	kv_rig_close(&r);
}
END_TEST

/* 17 entries in pages of 3 and of 7: the entry past the last of a page lies in
 * the next page, wherever that starts. */
START_TEST(pages_of_odd_size_and_wide_stride_keep_their_padding)
{
	uint32_t t;
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 17, 3, 6, 4096);
	for (t = 0; t < 17; t++)
		r.slots[t] = t;
	kv_rig_check(&r);
	kv_rig_close(&r);
	kv_rig_open(&r, SPMLA_LAYOUT_MLA_BF16, 17, 7, 3, 16);
	for (t = 0; t < 17; t++)
		r.slots[t] = 20 - t;
	kv_rig_check(&r);
	kv_rig_close(&r);
}
END_TEST

/* 7000000 entries of 656 B end at 4.59e9 B, past 32 bits, signed or not. */
START_TEST(slots_past_4_gib_are_written_where_they_belong)
{
	static const int64_t slots[3] = {3300000, 6600000, 7000000};
	const uint64_t bytes = UINT64_C(5) << 30;
	uint8_t near_slots[3 * SPMLA_FP8_DS_MLA_BYTES];
	uint8_t *far_pool;
	uint32_t t;
	kv_rig r;

	far_pool = test_map(bytes);
	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 3, 64, 1, 0);
	for (t = 0; t < 3; t++)
		r.slots[t] = t;
	kv_rig_check(&r);
	memcpy(near_slots, r.pool, sizeof near_slots);
	for (t = 0; t < 3; t++)
		r.slots[t] = slots[t];
	r.a.cache.base = far_pool;
	r.a.cache.pages = (uint32_t)(bytes / r.a.cache.page_stride_bytes);
	ck_assert_int_eq(spmla_kv_insert(r.f.ctx, &r.a, NULL), SPMLA_OK);
	for (t = 0; t < 3; t++)
		ck_assert_mem_eq(far_pool + (uint64_t)slots[t] * 656,
				 near_slots + t * 656, 656);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	munmap(far_pool, bytes);
	kv_rig_close(&r);
}
END_TEST

START_TEST(a_replay_reads_what_lies_there_then)
{
	spmla_graph graph;
	uint32_t i;
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 9, 4, 4, 16);
	kv_rig_reset(&r);
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_kv_insert(r.f.ctx, &r.a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	memset(r.want, 0xAB, r.pool_bytes);
	check_bytes(r.pool, r.want, r.pool_bytes);
	for (i = 0; i < 3; i++) {
		kv_rig_fill(&r);
		kv_rig_model(&r);
		kv_rig_reset(&r);
		ck_assert_int_eq(spmla_graph_replay(r.f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		fixture_drain(&r.f);
		check_bytes(r.pool, r.want, r.pool_bytes);
		kv_rig_check(&r); /* the eager op gives the same */
	}
	kv_rig_close(&r);
}
END_TEST

START_TEST(a_refused_call_fails_its_capture)
{
	spmla_graph graph;
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 1, 4, 1, 0);
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	r.a.dtype = SPMLA_DTYPE_F32;
	ck_assert_int_eq(spmla_kv_insert(r.f.ctx, &r.a, NULL), SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_E_CAPTURE);
	ck_assert_int_eq(spmla_graph_abort(r.f.ctx), SPMLA_OK);
	r.a.dtype = SPMLA_DTYPE_BF16;
	kv_rig_check(&r);
	kv_rig_close(&r);
}
END_TEST

START_TEST(a_queued_op_has_its_own_copy_of_the_args)
{
	spmla_config config;
	spmla_kv_insert_args args;
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 5, 4, 4, 0);
	fixture_close(&r.f);
	fixture_config(&config);
	fixture_open(&r.f, &config, SPMLA_NATIVE_DEFERRED);
	kv_rig_model(&r);
	kv_rig_reset(&r);
	args = r.a;
	ck_assert_int_eq(spmla_kv_insert(r.f.ctx, &args, NULL), SPMLA_OK);
	memset(&args, 0xff, sizeof args);
	ck_assert_uint_eq(fixture_pending(&r.f), 1);
	fixture_drain(&r.f);
	check_bytes(r.pool, r.want, r.pool_bytes);
	kv_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_field_is_checked_and_named, 1},
		{args_and_context_must_be_there, 1},
		{a_bf16_cache_needs_longer_pages_and_no_scale_mode, 1},
	};
	const theme_test layout[] = {
		{pages_of_odd_size_and_wide_stride_keep_their_padding, 1},
		{slots_past_4_gib_are_written_where_they_belong, 1},
	};
	const theme_test graph[] = {
		{a_replay_reads_what_lies_there_then, 1},
		{a_refused_call_fails_its_capture, 1},
		{a_queued_op_has_its_own_copy_of_the_args, 1},
	};
	const theme themes[] = {
		THEME("error", NULL, NULL, error),
		THEME("layout", NULL, NULL, layout),
		THEME("graph", NULL, NULL, graph),
	};

	return RUN_THEMES(themes);
}
