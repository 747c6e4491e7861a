/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep: what the call refuses and says, and how it is recorded and
 * replayed.
 */
#include "tests/harness/themes.h"
#include "tests/ops/select/indexer_q_rig.h"
#include "tests/reference/narrow_ref.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OP           "indexer_q_prep"
#define FIELD(field) ARG_FIELD(spmla_indexer_q_prep_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: " OP
#define NULL_OP      SPMLA_E_NULL, "SPMLA_E_NULL: " OP
#define NO_POINTER   ": got NULL, want a pointer"
#define WANT_FINITE  ", want a finite value above 0"

/* Of a call with rope and 4 heads. */
static const arg_error errors[] = {
	{FIELD(struct_bytes), 0, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: " OP ": got 0, want 128"},
	{FIELD(heads), 0, RANGE ".heads: got 0, want at least 1"},
	{FIELD(heads), 129, RANGE ".heads: got 129, want at most 128"},
	{FIELD(rope_style), 3, RANGE ".rope_style: got 3, want at most 2"},
	{FIELD(scale_floor), 3, RANGE ".scale_floor: got 3, want at most 2"},
	{FIELD(weights_dtype), SPMLA_DTYPE_FP16,
	 RANGE ".weights_dtype: got 1, want 0"},
	{FIELD(weights_dtype), 3,
	 RANGE ".weights_dtype: got 3, want at most 2"},
	{FIELD(cos_sin_rows), 0, RANGE ".cos_sin_rows: got 0, want at least 1"},
	{FIELD(softmax_scale), 0,
	 RANGE ".softmax_scale: got bits 0x0" WANT_FINITE},
	{FIELD(softmax_scale), 0x7fc00000, /* NaN */
	 RANGE ".softmax_scale: got bits 0x7fc00000" WANT_FINITE},
	{FIELD(head_scale), 0x80000000, /* -0 */
	 RANGE ".head_scale: got bits 0x80000000" WANT_FINITE},
	{FIELD(head_scale), 0x7f800000, /* inf */
	 RANGE ".head_scale: got bits 0x7f800000" WANT_FINITE},
	{FIELD(q), 0, NULL_OP ".q" NO_POINTER},
	{FIELD(q_token_stride_elems), 127,
	 RANGE ".q_token_stride_elems: got 127, want at least 128"},
	{FIELD(q_head_stride_elems), UINT64_MAX,
	 RANGE ".q_head_stride_elems: got 0, want at least 128"},
	{FIELD(weights), 0, NULL_OP ".weights" NO_POINTER},
	{FIELD(weights_stride_elems), 3,
	 RANGE ".weights_stride_elems: got 3, want at least 4"},
	{FIELD(positions), 0, NULL_OP ".positions" NO_POINTER},
	{FIELD(cos_sin), 0, NULL_OP ".cos_sin" NO_POINTER},
	{FIELD(q_out), 0, NULL_OP ".q_out" NO_POINTER},
	{FIELD(weights_out), 0, NULL_OP ".weights_out" NO_POINTER},
	{FIELD(rope_part), 2, RANGE ".rope_part: got 2, want at most 1"},
	{FIELD(q_format), 2, RANGE ".q_format: got 2, want at most 1"},
	{FIELD(q_format), 1, NULL_OP ".q_scales" NO_POINTER},
};

START_TEST(every_field_is_checked_and_named)
{
	uint32_t i;
	q_rig r;

	q_rig_open(&r, 3, 4);
	q_rig_rope(&r, SPMLA_ROPE_NEOX);
	memset(r.q_want, 0xAB, r.q_bytes);
	memset(r.weights_want, 0xAB, r.weights_bytes);
	memset(r.scales_want, 0xAB, r.scales_bytes);
	for (i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		const arg_error *e = &errors[i];
		spmla_indexer_q_prep_args bad = r.a;

		memcpy((char *)&bad + e->offset, &e->value, e->bytes);
		ck_assert_uint_eq(spmla_indexer_q_prep(r.f.ctx, &bad, NULL),
				  e->status);
		ck_assert_str_eq(fixture_diag(&r.f), e->text);
	}
	q_rig_compare(&r);
	q_rig_check(&r);
	q_rig_close(&r);
}
END_TEST

START_TEST(args_and_context_must_be_there)
{
	q_rig r;

	q_rig_open(&r, 1, 1);
	ck_assert_int_eq(spmla_indexer_q_prep(NULL, &r.a, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_indexer_q_prep(r.f.ctx, NULL, NULL),
			 SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&r.f), "SPMLA_E_NULL: " OP NO_POINTER);
	q_rig_close(&r);
}
END_TEST

START_TEST(without_rope_its_fields_do_not_matter)
{
	q_rig r;

	q_rig_open(&r, 3, 4);
	ck_assert_ptr_null(r.a.positions);
	ck_assert_ptr_null(r.a.cos_sin);
	r.a.cos_sin_rows = 0;
	q_rig_check(&r);
	q_rig_close(&r);
}
END_TEST

START_TEST(no_tokens_need_no_pointers_and_write_nothing)
{
	spmla_indexer_q_prep_args none = {0};
	q_rig r;

	q_rig_open(&r, 3, 4);
	r.a.tokens = 0;
	q_rig_check(&r);
	none.struct_bytes = (uint32_t)sizeof none;
	ck_assert_int_eq(spmla_indexer_q_prep(r.f.ctx, &none, NULL), SPMLA_OK);
	q_rig_close(&r);
}
END_TEST

START_TEST(a_replay_reads_what_lies_there_then)
{
	spmla_graph graph;
	uint32_t i;
	q_rig r;

	q_rig_open(&r, 5, 4);
	q_rig_rope(&r, SPMLA_ROPE_NEOX);
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_indexer_q_prep(r.f.ctx, &r.a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	for (i = 0; i < 3; i++) {
		q_rig_fill(&r);
		q_rig_model(&r);
		q_rig_reset(&r);
		ck_assert_int_eq(spmla_graph_replay(r.f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		q_rig_compare(&r);
		q_rig_check(&r); /* the eager op gives the same */
	}
	q_rig_close(&r);
}
END_TEST

/* A table of 2^24 positions is 4 GiB: the row of the last begins past 2^31 B,
 * that of position 1000000 at 256 MB. They turn as those of 3 and 5. */
START_TEST(rows_of_the_rope_table_may_lie_past_2_gib)
{
	const uint64_t bytes = UINT64_C(4) << 30;
	float *map = test_map(bytes);
	uint8_t *near_q;
	q_rig r;

	q_rig_open(&r, 2, 3);
	q_rig_rope(&r, SPMLA_ROPE_INTERLEAVED);
	r.positions[0] = 3;
	r.positions[1] = 5;
	q_rig_check(&r);
	near_q = test_alloc(r.q_bytes, 0);
	memcpy(near_q, r.q_out, r.q_bytes);
	memcpy(map + 16777215 * UINT64_C(64), r.cos_sin + 3 * 64, 256);
	memcpy(map + 1000000 * 64, r.cos_sin + 5 * 64, 256);
	r.a.cos_sin = map;
	r.a.cos_sin_rows = 1 << 24;
	r.positions[0] = 16777215;
	r.positions[1] = 1000000;
	memset(r.q_out, 0, 2 * 3 * 128);
	ck_assert_int_eq(spmla_indexer_q_prep(r.f.ctx, &r.a, NULL), SPMLA_OK);
	ck_assert_mem_eq(r.q_out, near_q, r.q_bytes);
	munmap(map, bytes);
	free(near_q);
	q_rig_close(&r);
}
END_TEST

/* amax 127 * 2^-133 is far below the floor, so s = 2^-42, and what is left of a
 * subnormal is a zero of its sign. */
START_TEST(a_head_of_subnormals_is_zeros_of_their_signs)
{
	uint32_t i;
	q_rig r;

	q_rig_open(&r, 1, 1);
	q_rig_f32(&r);
	r.weights_f32[0] = r.a.softmax_scale = r.a.head_scale = 1;
	for (i = 0; i < 128; i++)
		r.q[i] = (uint16_t)((i & 1) << 15 | (i % 127 + 1));
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 0x1p-42f);
	for (i = 0; i < 128; i++)
		ck_assert_uint_eq(r.q_out[i], i & 1 ? 0x80 : 0x00);
	q_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_field_is_checked_and_named, 1},
		{args_and_context_must_be_there, 1},
	};
	const theme_test edge[] = {
		{without_rope_its_fields_do_not_matter, 1},
		{no_tokens_need_no_pointers_and_write_nothing, 1},
		{a_head_of_subnormals_is_zeros_of_their_signs, 1},
		{rows_of_the_rope_table_may_lie_past_2_gib, 1},
	};
	const theme_test graph[] = {
		{a_replay_reads_what_lies_there_then, 1},
	};
	const theme themes[] = {
		THEME("error", NULL, NULL, error),
		THEME("edge", NULL, NULL, edge),
		THEME("graph", NULL, NULL, graph),
	};

	return RUN_THEMES(themes);
}
