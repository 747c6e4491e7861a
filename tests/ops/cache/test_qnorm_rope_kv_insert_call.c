/* SPDX-License-Identifier: Apache-2.0
 *
 * qnorm_rope_kv_insert: what the call refuses and says, where rows may lie, and
 * how it is recorded and replayed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/qnorm_rig.h"
#include "tests/reference/narrow_ref.h"

#define OP           "qnorm_rope_kv_insert"
#define FIELD(field) ARG_FIELD(spmla_qnorm_rope_kv_insert_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: "
#define NULL_OP      SPMLA_E_NULL, "SPMLA_E_NULL: " OP
#define NO_POINTER   ": got NULL, want a pointer"
#define WANT_FINITE  ", want a finite value above 0"
#define LEAST        ", want at least 512"

enum { E4M3 = SPMLA_LAYOUT_V4_E4M3 };

/* Of a call with 3 tokens, 2 heads of 4 and pages of 4. */
static const arg_error errors[] = {
	{FIELD(struct_bytes), 0, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: " OP ": got 0, want 160"},
	{FIELD(kv_tokens), 4, RANGE OP ".kv_tokens: got 4, want at most 3"},
	{FIELD(heads), 0, RANGE OP ".heads: got 0, want at least 1"},
	{FIELD(padded_heads), 1,
	 RANGE OP ".padded_heads: got 1, want at least 2"},
	{FIELD(cos_sin_rows), 0,
	 RANGE OP ".cos_sin_rows: got 0, want at least 1"},
	{FIELD(norm_eps), 0, RANGE OP ".norm_eps: got bits 0x0" WANT_FINITE},
	{FIELD(norm_eps), 0x7fc00000,
	 RANGE OP ".norm_eps: got bits 0x7fc00000" WANT_FINITE},
	{FIELD(kv_scale), 0x80000000,
	 RANGE OP ".kv_scale: got bits 0x80000000" WANT_FINITE},
	{FIELD(kv_scale), 0x7f800000,
	 RANGE OP ".kv_scale: got bits 0x7f800000" WANT_FINITE},
	{FIELD(q), 0, NULL_OP ".q" NO_POINTER},
	{FIELD(q_token_stride_elems), 511,
	 RANGE OP ".q_token_stride_elems: got 511" LEAST},
	{FIELD(q_head_stride_elems), UINT64_MAX,
	 RANGE OP ".q_head_stride_elems: got 0" LEAST},
	{FIELD(q_out), 0, NULL_OP ".q_out" NO_POINTER},
	{FIELD(q_out_token_stride_elems), 511,
	 RANGE OP ".q_out_token_stride_elems: got 511" LEAST},
	{FIELD(q_out_head_stride_elems), 1,
	 RANGE OP ".q_out_head_stride_elems: got 1" LEAST},
	{FIELD(kv), 0, NULL_OP ".kv" NO_POINTER},
	{FIELD(kv_stride_elems), 511,
	 RANGE OP ".kv_stride_elems: got 511" LEAST},
	{FIELD(slot_mapping), 0, NULL_OP ".slot_mapping" NO_POINTER},
	{FIELD(positions), 0, NULL_OP ".positions" NO_POINTER},
	{FIELD(cos_sin), 0, NULL_OP ".cos_sin" NO_POINTER},
	{FIELD(cache.layout), SPMLA_LAYOUT_MLA_BF16,
	 RANGE "cache.layout: got 2, want 4"},
	{FIELD(cache.layout), 7, RANGE "cache.layout: got 7, want 4"},
	{FIELD(cache.entries_per_page), 0,
	 RANGE "cache.entries_per_page: got 0, want at least 1"},
	{FIELD(cache.pages), 0, RANGE "cache.pages: got 0, want at least 1"},
	{FIELD(cache.page_stride_bytes), 2032,
	 RANGE "cache.page_stride_bytes: got 2032, want at least 2048"},
	{FIELD(cache.base), 0, SPMLA_E_NULL,
	 "SPMLA_E_NULL: cache.base" NO_POINTER},
};

START_TEST(every_field_is_checked_and_named)
{
	uint32_t i;
	qnorm_rig r;

	qnorm_open(&r, E4M3, 3, 2, 4, 4);
	memset(r.q_want, 0xAB, r.q_bytes);
	memset(r.want, 0xAB, r.pool_bytes);
	for (i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		const arg_error *e = &errors[i];
		spmla_qnorm_rope_kv_insert_args bad = r.a;

		memcpy((char *)&bad + e->offset, &e->value, e->bytes);
		ck_assert_uint_eq(
			spmla_qnorm_rope_kv_insert(r.f.ctx, &bad, NULL),
			e->status);
		ck_assert_str_eq(fixture_diag(&r.f), e->text);
	}
	check_bytes(r.q_out, r.q_want, r.q_bytes);
	check_bytes(r.pool, r.want, r.pool_bytes);
	qnorm_check(&r);
	qnorm_close(&r);
}
END_TEST

/* Of the same call in place, heads 520 apart and tokens 1040. */
static const arg_error unequal[] = {
	{FIELD(q_token_stride_elems), 1024,
	 RANGE OP ".q_out_token_stride_elems: got 1040, want 1024"},
	{FIELD(q_out_token_stride_elems), 1056,
	 RANGE OP ".q_out_token_stride_elems: got 1056, want 1040"},
	{FIELD(q_head_stride_elems), 512,
	 RANGE OP ".q_out_head_stride_elems: got 520, want 512"},
	{FIELD(q_out_head_stride_elems), 528,
	 RANGE OP ".q_out_head_stride_elems: got 528, want 520"},
};

START_TEST(queries_in_place_have_the_same_strides)
{
	uint16_t rows[3 * 2 * 520];
	uint32_t i;
	qnorm_rig r;

	qnorm_open(&r, SPMLA_LAYOUT_V4_FP8, 3, 2, 2, 4);
	r.a.q_out = r.q;
	r.a.q_out_token_stride_elems = r.a.q_token_stride_elems;
	r.a.q_out_head_stride_elems = r.a.q_head_stride_elems;
	memcpy(rows, r.q, sizeof rows);
	memset(r.want, 0xAB, r.pool_bytes);
	for (i = 0; i < sizeof unequal / sizeof unequal[0]; i++) {
		const arg_error *e = &unequal[i];
		spmla_qnorm_rope_kv_insert_args bad = r.a;

		memcpy((char *)&bad + e->offset, &e->value, e->bytes);
		ck_assert_uint_eq(
			spmla_qnorm_rope_kv_insert(r.f.ctx, &bad, NULL),
			e->status);
		ck_assert_str_eq(fixture_diag(&r.f), e->text);
	}
	fixture_drain(&r.f);
	check_bytes(r.q, rows, sizeof rows);
	check_bytes(r.pool, r.want, r.pool_bytes);
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_OK);
	qnorm_close(&r);
}
END_TEST

START_TEST(args_and_context_must_be_there)
{
	spmla_qnorm_rope_kv_insert_args none = {0};
	qnorm_rig r;

	qnorm_open(&r, E4M3, 1, 1, 1, 4);
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(NULL, &r.a, NULL),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(r.f.ctx, NULL, NULL),
			 SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&r.f), "SPMLA_E_NULL: " OP NO_POINTER);
	none.struct_bytes = (uint32_t)sizeof none;
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(r.f.ctx, &none, NULL),
			 SPMLA_OK);
	qnorm_close(&r);
}
END_TEST

START_TEST(only_an_e4m3_cache_has_a_scale)
{
	qnorm_rig r;

	qnorm_open(&r, SPMLA_LAYOUT_V4_FP8, 3, 2, 4, 4);
	r.a.kv_scale = 0;
	qnorm_check(&r);
	qnorm_close(&r);
}
END_TEST

START_TEST(rows_may_lie_at_any_address_and_stride)
{
	uint32_t by;
	qnorm_rig r;

	for (by = 0; by < 4; by++) {
		qnorm_open(&r, SPMLA_LAYOUT_V4_FP8, 5, 3, 4, 2);
		r.a.q = r.q + by;
		r.a.q_head_stride_elems = 512 + by;
		r.a.kv = r.kv + by;
		r.a.kv_stride_elems = by == 2 ? 517 : 512;
		/* Heads outermost, each with its tokens. */
		r.a.q_out_token_stride_elems = 512 + by % 2;
		r.a.q_out_head_stride_elems = 5 * (512 + by % 2) + by;
		qnorm_check(&r);
		qnorm_close(&r);
	}
}
END_TEST

START_TEST(queries_may_be_prepared_in_place)
{
	qnorm_rig r;

	qnorm_open(&r, SPMLA_LAYOUT_V4_FP8, 9, 8, 8, 4);
	r.a.q_out_head_stride_elems = r.a.q_head_stride_elems;
	r.a.q_out_token_stride_elems = r.a.q_token_stride_elems;
	qnorm_model(&r);
	memset(r.q_out, 0xAB, r.q_bytes);
	for (uint32_t i = 0; i < 72; i++)
		memcpy(r.q_out + i * 520, r.q + i * 520, 1024);
	r.a.q = r.q_out;
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_OK);
	check_bytes(r.q_out, r.q_want, r.q_bytes);
	qnorm_close(&r);
}
END_TEST

/* 8000000 entries of 584 B and heads 2^31 elements apart, of which the pages
 * that are touched exist. */
START_TEST(far_slots_and_heads_are_found)
{
	const uint64_t bytes = UINT64_C(5) << 30;
	const int64_t slot = 8000063;
	uint8_t *far;
	qnorm_rig r;

	far = test_map(bytes);
	qnorm_open(&r, SPMLA_LAYOUT_V4_FP8, 1, 2, 2, 64);
	r.slots[0] = slot % 64;
	qnorm_check(&r);
	r.slots[0] = slot;
	r.a.cache.page_stride_bytes = 37376;
	r.a.cache.base = far;
	r.a.cache.pages = (uint32_t)(bytes / 37376);
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_OK);
	ck_assert_mem_eq(far + (uint64_t)slot / 64 * 37376 + 63 * 576,
			 r.pool + 63 * 576, 576);
	ck_assert_mem_eq(far + (uint64_t)slot / 64 * 37376 + 36864 + 63 * 8,
			 r.pool + 36864 + 63 * 8, 8);
	r.slots[0] = -1;
	r.a.q_out = (uint16_t *)(void *)far;
	r.a.q_out_head_stride_elems = INT64_C(0x80000200);
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_OK);
	ck_assert_mem_eq(far + UINT64_C(0x100000400), r.q_out + 528, 1024);
	munmap(far, bytes);
	qnorm_close(&r);
}
END_TEST

START_TEST(a_replay_reads_what_lies_there_then)
{
	spmla_graph graph;
	uint32_t i;
	qnorm_rig r;

	qnorm_open(&r, SPMLA_LAYOUT_V4_FP8, 4, 2, 4, 4);
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	for (i = 0; i < 3; i++) {
		qnorm_fill(&r);
		qnorm_model(&r);
		qnorm_reset(&r);
		ck_assert_int_eq(spmla_graph_replay(r.f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		fixture_drain(&r.f);
		check_bytes(r.q_out, r.q_want, r.q_bytes);
		check_bytes(r.pool, r.want, r.pool_bytes);
	}
	qnorm_close(&r);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_field_is_checked_and_named, 1},
		{queries_in_place_have_the_same_strides, 1},
		{args_and_context_must_be_there, 1},
		{only_an_e4m3_cache_has_a_scale, 1},
	};
	const theme_test layout[] = {
		{rows_may_lie_at_any_address_and_stride, 1},
		{queries_may_be_prepared_in_place, 1},
		{far_slots_and_heads_are_found, 1},
	};
	const theme_test graph[] = {
		{a_replay_reads_what_lies_there_then, 1},
	};
	const theme themes[] = {THEME("error", NULL, NULL, error),
				THEME("layout", NULL, NULL, layout),
				THEME("graph", NULL, NULL, graph)};

	return RUN_THEMES(themes);
}
