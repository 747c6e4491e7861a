/* SPDX-License-Identifier: Apache-2.0
 *
 * inv_rope_quant: what the call refuses and says, how it is recorded and
 * replayed, and large distances.
 */
#include "tests/harness/themes.h"
#include "tests/ops/project/inv_rope_rig.h"
#include "tests/reference/narrow_ref.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OP           "inv_rope_quant"
#define FIELD(field) ARG_FIELD(spmla_inv_rope_quant_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: " OP
#define NULL_OP      SPMLA_E_NULL, "SPMLA_E_NULL: " OP
#define NO_POINTER   ": got NULL, want a pointer"

static inv_rope_rig r;

/* Of a call with 5 tokens, 2 groups of 3 heads. */
static const arg_error errors[] = {
	{FIELD(struct_bytes), 0, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: " OP ": got 0, want 120"},
	{FIELD(groups), 0, RANGE ".groups: got 0, want at least 1"},
	{FIELD(groups), 257, RANGE ".groups: got 257, want at most 256"},
	{FIELD(heads_per_group), 0,
	 RANGE ".heads_per_group: got 0, want at least 1"},
	{FIELD(heads_per_group), 257,
	 RANGE ".heads_per_group: got 257, want at most 256"},
	{FIELD(quant), 3, RANGE ".quant: got 3, want at most 2"},
	{FIELD(rope_style), 3, RANGE ".rope_style: got 3, want at most 2"},
	{FIELD(cos_sin_rows), 0, RANGE ".cos_sin_rows: got 0, want at least 1"},
	{FIELD(o), 0, NULL_OP ".o" NO_POINTER},
	{FIELD(o_token_stride_elems), 511,
	 RANGE ".o_token_stride_elems: got 511, want at least 512"},
	{FIELD(o_head_stride_elems), UINT64_MAX,
	 RANGE ".o_head_stride_elems: got 0, want at least 512"},
	{FIELD(positions), 0, NULL_OP ".positions" NO_POINTER},
	{FIELD(cos_sin), 0, NULL_OP ".cos_sin" NO_POINTER},
	{FIELD(out), 0, NULL_OP ".out" NO_POINTER},
	{FIELD(out_token_stride_elems), 1535,
	 RANGE ".out_token_stride_elems: got 1535, want at least 1536"},
	{FIELD(out_group_stride_elems), 1535,
	 RANGE ".out_group_stride_elems: got 1535, want at least 1536"},
	{FIELD(scales), 0, NULL_OP ".scales" NO_POINTER},
	{FIELD(scale_stride_elems), 7,
	 RANGE ".scale_stride_elems: got 7, want at least 8"},
	{FIELD(scale_group_stride_elems), 7,
	 RANGE ".scale_group_stride_elems: got 7, want at least 8"},
};

START_TEST(every_field_is_checked_and_named)
{
	const arg_error *e = &errors[_i];
	spmla_inv_rope_quant_args bad;

	inv_rope_open(&r, 5, 2, 3);
	bad = r.a;
	memset(r.out_want, 0xAB, r.out_bytes);
	memset(r.scales_want, 0xAB, r.scale_words * 4);
	memcpy((char *)&bad + e->offset, &e->value, e->bytes);
	ck_assert_uint_eq(spmla_inv_rope_quant(r.f.ctx, &bad, NULL), e->status);
	ck_assert_str_eq(fixture_diag(&r.f), e->text);
	inv_rope_compare(&r);
	inv_rope_check(&r);
	inv_rope_close(&r);
}
END_TEST

START_TEST(args_and_context_must_be_there)
{
	inv_rope_open(&r, 1, 1, 1);
	ck_assert_int_eq(spmla_inv_rope_quant(NULL, &r.a, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_inv_rope_quant(r.f.ctx, NULL, NULL),
			 SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&r.f), "SPMLA_E_NULL: " OP NO_POINTER);
	inv_rope_close(&r);
}
END_TEST

START_TEST(what_is_not_asked_for_needs_no_fields)
{
	inv_rope_open(&r, 3, 2, 2);
	r.a.rope_style = SPMLA_ROPE_NONE;
	r.a.positions = NULL;
	r.a.cos_sin = NULL;
	r.a.cos_sin_rows = 0;
	inv_rope_check(&r);
	r.a.quant = SPMLA_O_BF16;
	r.a.scales = NULL;
	r.a.scale_stride_elems = r.a.scale_group_stride_elems = 0;
	inv_rope_check(&r);
	inv_rope_close(&r);
}
END_TEST

START_TEST(no_tokens_need_no_pointers_and_write_nothing)
{
	spmla_inv_rope_quant_args none = {0};

	inv_rope_open(&r, 3, 2, 2);
	r.a.tokens = 0;
	inv_rope_check(&r);
	none.struct_bytes = (uint32_t)sizeof none;
	ck_assert_int_eq(spmla_inv_rope_quant(r.f.ctx, &none, NULL), SPMLA_OK);
	inv_rope_close(&r);
}
END_TEST

START_TEST(a_replay_reads_what_lies_there_then)
{
	spmla_graph graph;
	uint32_t i;

	inv_rope_open(&r, 5, 2, 2);
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_inv_rope_quant(r.f.ctx, &r.a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	for (i = 0; i < 3; i++) {
		inv_rope_fill(&r);
		inv_rope_model(&r);
		inv_rope_reset(&r);
		ck_assert_int_eq(spmla_graph_replay(r.f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		inv_rope_compare(&r);
		inv_rope_check(&r); /* the eager op gives the same */
	}
	inv_rope_close(&r);
}
END_TEST

/* Tokens of o, and of the output, 3 GiB apart, and the position of the last one
 * in row 2^24 - 1 of a table of 4 GiB. Only what is touched takes memory. */
START_TEST(bytes_past_2_and_4_gib_are_found)
{
	const uint64_t apart = UINT64_C(3) << 30;
	uint8_t *map = test_map(10 * apart);
	uint8_t *o = map, *out = map + 4 * apart, *table = map + 8 * apart;
	uint32_t t;

	inv_rope_open(&r, 3, 1, 1);
	r.a.quant = (uint32_t)_i;
	inv_rope_check(&r);
	for (t = 0; t < 3; t++)
		memcpy(o + t * apart, r.o + t * 520, 1024);
	memcpy(table + 16777215 * UINT64_C(256),
	       r.cos_sin + r.positions[2] * 64, 256);
	for (t = 0; t < 2; t++)
		memcpy(table + t * 256, r.cos_sin + r.positions[t] * 64, 256);
	r.positions[0] = 0;
	r.positions[1] = 1;
	r.positions[2] = 16777215;
	r.a.cos_sin = (float *)(void *)table;
	r.a.cos_sin_rows = 1 << 24;
	r.a.o = (uint16_t *)(void *)o;
	r.a.o_token_stride_elems = (int64_t)(apart / 2);
	r.a.out = out;
	r.a.out_token_stride_elems = (int64_t)(_i ? apart : apart / 2);
	ck_assert_int_eq(spmla_inv_rope_quant(r.f.ctx, &r.a, NULL), SPMLA_OK);
	for (t = 0; t < 3; t++)
		ck_assert_mem_eq(out + t * apart,
				 r.out_want + t * 520 * (_i ? 1 : 2),
				 _i ? 512 : 1024);
	ck_assert_mem_eq(r.scales, r.scales_want, r.scale_words * 4);
	munmap(map, 10 * apart);
	inv_rope_close(&r);
}
END_TEST

/* Rows of scales 3 GiB apart. */
START_TEST(scales_past_4_gib_are_written_where_they_belong)
{
	const uint64_t apart = UINT64_C(3) << 30;
	uint8_t *map = test_map(8 * apart);
	uint32_t i;

	inv_rope_open(&r, 2, 1, 2);
	inv_rope_check(&r);
	r.a.scales = map;
	r.a.scale_stride_elems = (int64_t)(apart / 4);
	ck_assert_int_eq(spmla_inv_rope_quant(r.f.ctx, &r.a, NULL), SPMLA_OK);
	for (i = 0; i < 8; i++)
		ck_assert_mem_eq(map + i * apart, r.scales_want + i * 8, 16);
	munmap(map, 8 * apart);
	inv_rope_close(&r);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_field_is_checked_and_named,
		 (int)(sizeof errors / sizeof *errors)},
		{args_and_context_must_be_there, 1},
	};
	const theme_test edge[] = {
		{what_is_not_asked_for_needs_no_fields, 1},
		{no_tokens_need_no_pointers_and_write_nothing, 1},
	};
	const theme_test layout[] = {
		{bytes_past_2_and_4_gib_are_found, 2},
		{scales_past_4_gib_are_written_where_they_belong, 1},
	};
	const theme_test graph[] = {{a_replay_reads_what_lies_there_then, 1}};
	const theme themes[] = {
		THEME("error", NULL, NULL, error),
		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),
		THEME("graph", NULL, NULL, graph),
	};

	return RUN_THEMES(themes);
}
