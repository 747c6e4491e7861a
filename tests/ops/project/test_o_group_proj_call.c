/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj: what the call refuses and says, how it is recorded and
 * replayed, large distances, and that it takes what inv_rope_quant gives.
 */
#include "tests/harness/themes.h"
#include "tests/ops/project/inv_rope_rig.h"
#include "tests/ops/project/o_proj_rig.h"
#include "tests/reference/narrow_ref.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OP           "o_group_proj"
#define FIELD(field) ARG_FIELD(spmla_o_group_proj_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: " OP
#define NULL_OP      SPMLA_E_NULL, "SPMLA_E_NULL: " OP
#define NO_POINTER   ": got NULL, want a pointer"

static o_proj_rig r;

/* Of a call with packed scales, 3 tokens, 2 groups, 512 values, 128 columns. */
static const arg_error errors[] = {
	{FIELD(struct_bytes), 8, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: " OP ": got 8, want 144"},
	{FIELD(groups), 0, RANGE ".groups: got 0, want at least 1"},
	{FIELD(groups), 257, RANGE ".groups: got 257, want at most 256"},
	{FIELD(quant), 3, RANGE ".quant: got 3, want at most 2"},
	{FIELD(inner), 0, RANGE ".inner: got 0, want at least 512"},
	{FIELD(inner), 131584, RANGE ".inner: got 131584, want at most 131072"},
	{FIELD(inner), 640, RANGE ".inner: got 640, want a multiple of 512"},
	{FIELD(columns), 0, RANGE ".columns: got 0, want at least 128"},
	{FIELD(columns), 65664,
	 RANGE ".columns: got 65664, want at most 65536"},
	{FIELD(columns), 160,
	 RANGE ".columns: got 160, want a multiple of 128"},
	{FIELD(o), 0, NULL_OP ".o" NO_POINTER},
	{FIELD(o_token_stride_elems), 511,
	 RANGE ".o_token_stride_elems: got 511, want at least 512"},
	{FIELD(o_group_stride_elems), UINT64_MAX,
	 RANGE ".o_group_stride_elems: got 0, want at least 512"},
	{FIELD(o_scales), 0, NULL_OP ".o_scales" NO_POINTER},
	{FIELD(o_scale_stride_elems), 2,
	 RANGE ".o_scale_stride_elems: got 2, want at least 3"},
	{FIELD(o_scale_group_stride_elems), 2,
	 RANGE ".o_scale_group_stride_elems: got 2, want at least 3"},
	{FIELD(w), 0, NULL_OP ".w" NO_POINTER},
	{FIELD(w_group_stride_elems), 511,
	 RANGE ".w_group_stride_elems: got 511, want at least 512"},
	{FIELD(w_row_stride_elems), 511,
	 RANGE ".w_row_stride_elems: got 511, want at least 512"},
	{FIELD(w_scales), 0, NULL_OP ".w_scales" NO_POINTER},
	{FIELD(w_scale_group_stride_elems), 3,
	 RANGE ".w_scale_group_stride_elems: got 3, want at least 4"},
	{FIELD(w_scale_row_stride_elems), 3,
	 RANGE ".w_scale_row_stride_elems: got 3, want at least 4"},
	{FIELD(z), 0, NULL_OP ".z" NO_POINTER},
	{FIELD(z_token_stride_elems), 127,
	 RANGE ".z_token_stride_elems: got 127, want at least 128"},
	{FIELD(z_group_stride_elems), UINT64_MAX,
	 RANGE ".z_group_stride_elems: got 0, want at least 128"},
};

START_TEST(every_field_is_checked_and_named)
{
	const arg_error *e = &errors[_i];
	spmla_o_group_proj_args bad;

	o_proj_open(&r, SPMLA_O_FP8_PACKED, 3, 2, 512, 128);
	bad = r.a;
	memset(r.z, 0x5A, r.z_elems * 2);
	memcpy((char *)&bad + e->offset, &e->value, e->bytes);
	ck_assert_uint_eq(spmla_o_group_proj(r.f.ctx, &bad, NULL), e->status);
	ck_assert_str_eq(fixture_diag(&r.f), e->text);
	ck_assert_uint_eq(r.z[0], 0x5A5A);
	o_proj_close(&r);
}
END_TEST

START_TEST(args_and_context_must_be_there)
{
	o_proj_open(&r, SPMLA_O_BF16, 1, 1, 128, 128);
	ck_assert_int_eq(spmla_o_group_proj(NULL, &r.a, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_o_group_proj(r.f.ctx, NULL, NULL), SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&r.f), "SPMLA_E_NULL: " OP NO_POINTER);
	o_proj_close(&r);
}
END_TEST

START_TEST(bf16_needs_no_scales)
{
	o_proj_open(&r, SPMLA_O_BF16, 3, 2, 384, 128);
	r.a.o_scales = NULL;
	r.a.w_scales = NULL;
	r.a.o_scale_stride_elems = r.a.o_scale_group_stride_elems = 0;
	r.a.w_scale_row_stride_elems = r.a.w_scale_group_stride_elems = 0;
	o_proj_check(&r);
	o_proj_close(&r);
}
END_TEST

START_TEST(no_tokens_need_no_pointers_and_write_nothing)
{
	spmla_o_group_proj_args none = {0};

	o_proj_open(&r, SPMLA_O_FP8, 3, 1, 128, 128);
	r.a.tokens = 0;
	o_proj_check(&r);
	none.struct_bytes = (uint32_t)sizeof none;
	ck_assert_int_eq(spmla_o_group_proj(r.f.ctx, &none, NULL), SPMLA_OK);
	o_proj_close(&r);
}
END_TEST

START_TEST(a_replay_reads_what_lies_there_then)
{
	spmla_graph graph;
	uint16_t *eager;
	uint32_t i;

	o_proj_open(&r, (uint32_t)_i, 3, 2, 512, 128);
	eager = test_alloc(r.z_elems * 2, 0);
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_o_group_proj(r.f.ctx, &r.a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	for (i = 0; i < 3; i++) {
		o_proj_fill(&r);
		o_proj_check(&r);
		memcpy(eager, r.z, r.z_elems * 2);
		memset(r.z, 0xC3, r.z_elems * 2);
		ck_assert_int_eq(spmla_graph_replay(r.f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(r.z, eager, r.z_elems * 2);
	}
	free(eager);
	o_proj_close(&r);
}
END_TEST

/* Groups of the matrix 3 GiB apart, tokens of o too; only what is touched takes
 * memory. */
START_TEST(bytes_past_2_and_4_gib_are_found)
{
	const uint64_t apart = UINT64_C(3) << 30;
	const uint32_t bytes = _i ? 1 : 2;
	uint8_t *map = test_map(7 * apart);
	uint32_t g, t;

	o_proj_open(&r, (uint32_t)_i, 2, 3, 512, 128);
	for (g = 0; g < 3; g++)
		memcpy(map + g * apart,
		       r.w + g * bytes * (uint64_t)r.a.w_group_stride_elems,
		       bytes * (uint64_t)r.a.w_group_stride_elems);
	for (t = 0; t < 2; t++)
		for (g = 0; g < 3; g++)
			memcpy(map + (3 + t) * apart + g * 2048,
			       r.o + bytes * (t * (uint64_t)r.a
							      .o_token_stride_elems +
					      g * (uint64_t)r.a
							      .o_group_stride_elems),
			       512 * bytes);
	r.a.w = map;
	r.a.w_group_stride_elems = (int64_t)(apart / bytes);
	r.a.o = map + 3 * apart;
	r.a.o_token_stride_elems = (int64_t)(apart / bytes);
	r.a.o_group_stride_elems = 2048 / bytes;
	o_proj_check(&r);
	munmap(map, 7 * apart);
	o_proj_close(&r);
}
END_TEST

/* The outputs of inv_rope_quant, as they are. A token outside the rope table is
 * zeros to the end. */
START_TEST(what_inv_rope_quant_writes_is_taken)
{
	inv_rope_rig from;
	uint32_t i;

	inv_rope_open(&from, 5, 2, 1);
	from.a.quant = (uint32_t)_i;
	memset(from.o, 0, from.o_elems * 2);
	for (i = 0; i < from.o_elems; i++)
		from.o[i] = test_bf16(rng_float(&from.rng));
	from.positions[2] = -1;
	inv_rope_check(&from);
	o_proj_open(&r, (uint32_t)_i, 5, 2, 512, 128);
	r.a.o = from.out;
	r.a.o_token_stride_elems = from.a.out_token_stride_elems;
	r.a.o_group_stride_elems = from.a.out_group_stride_elems;
	r.a.o_scales = from.scales;
	r.a.o_scale_stride_elems = from.a.scale_stride_elems;
	r.a.o_scale_group_stride_elems = from.a.scale_group_stride_elems;
	o_proj_check(&r);
	for (i = 0; i < 128; i++)
		ck_assert_uint_eq(o_proj_z(&r, 2, 1, i) & 0x7fff, 0);
	inv_rope_close(&from);
	o_proj_close(&r);
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
		{bf16_needs_no_scales, 1},
		{no_tokens_need_no_pointers_and_write_nothing, 1},
		{what_inv_rope_quant_writes_is_taken, 3},
	};
	const theme_test layout[] = {{bytes_past_2_and_4_gib_are_found, 3}};
	const theme_test graph[] = {{a_replay_reads_what_lies_there_then, 3}};
	const theme themes[] = {
		THEME("error", NULL, NULL, error),
		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),
		THEME("graph", NULL, NULL, graph),
	};

	return RUN_THEMES(themes);
}
