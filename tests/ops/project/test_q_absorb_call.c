/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb, the call: what the host refuses, and that a recorded call equals an
 * eager one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/project/q_absorb_rig.h"
#include "tests/reference/project_ref.h"

static q_absorb_rig r;

static void
setup(void)
{
	q_absorb_open(&r);
	r.a.rope_style = SPMLA_ROPE_NEOX;
}

static void
teardown(void)
{
	q_absorb_close(&r);
}

#define NULLED(name)                                                   \
	{                                                              \
		ARG_FIELD(spmla_q_absorb_args, name), 0, SPMLA_E_NULL, \
			"SPMLA_E_NULL: q_absorb." #name                \
			": got NULL, want a pointer"                   \
	}
#define NUMBER(name, value, text)                                           \
	{                                                                   \
		ARG_FIELD(spmla_q_absorb_args, name), value, SPMLA_E_RANGE, \
			"SPMLA_E_RANGE: q_absorb." #name ": got " text      \
	}

static const arg_error errors[] = {
	{ARG_FIELD(spmla_q_absorb_args, struct_bytes), 8, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: q_absorb: got 8, want 136"},
	NUMBER(heads, 0, "0, want at least 1"),
	NUMBER(rope_style, 3, "3, want at most 2"),
	NUMBER(cos_sin_rows, 0, "0, want at least 1"),
	NUMBER(q_nope_token_stride_elems, 127, "127, want at least 128"),
	NUMBER(q_nope_head_stride_elems, UINT64_MAX, "0, want at least 128"),
	NUMBER(w_head_stride_elems, 511, "511, want at least 512"),
	NUMBER(w_row_stride_elems, 511, "511, want at least 512"),
	NUMBER(q_pe_token_stride_elems, 63, "63, want at least 64"),
	NUMBER(q_pe_head_stride_elems, UINT64_MAX, "0, want at least 64"),
	NUMBER(q_token_stride_elems, 575, "575, want at least 576"),
	NUMBER(q_head_stride_elems, 575, "575, want at least 576"),
	NULLED(q_nope),
	NULLED(w_uk_t),
	NULLED(positions),
	NULLED(cos_sin),
	NULLED(q),
	NULLED(q_pe),
};

START_TEST(every_argument_that_is_wrong_is_named_and_nothing_is_written)
{
	const arg_error *e = &errors[_i];
	spmla_q_absorb_args bad = r.a;

	memset(r.q, 0x5A, r.q_elems * 2);
	memcpy((uint8_t *)&bad + e->offset, &e->value, e->bytes);
	ck_assert_uint_eq(spmla_q_absorb(r.f.ctx, &bad, NULL), e->status);
	ck_assert_str_eq(fixture_diag(&r.f), e->text);
	ck_assert_uint_eq(r.q[0], 0x5A5A);
	q_absorb_check(&r);
}
END_TEST

START_TEST(context_and_arguments_have_to_be_there)
{
	ck_assert_int_eq(spmla_q_absorb(NULL, &r.a, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_q_absorb(r.f.ctx, NULL, NULL), SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&r.f),
			 "SPMLA_E_NULL: q_absorb: got NULL, want a pointer");
}
END_TEST

START_TEST(no_tokens_is_no_work)
{
	spmla_q_absorb_args none = {.struct_bytes = sizeof none};

	ck_assert_int_eq(spmla_q_absorb(r.f.ctx, &none, NULL), SPMLA_OK);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	const size_t bytes = r.q_elems * 2;
	uint16_t *eager = malloc(bytes);
	spmla_graph graph;
	uint32_t round;

	memset(r.q, 0x5A, bytes);
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	q_absorb_run(&r);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(r.q[0], 0x5A5A);
	for (round = 0; round < 3; round++) {
		project_fill(&r.rng, r.q_nope, r.q_nope_elems);
		fill_positions(&r.rng, r.positions, Q_ABSORB_TOKENS);
		q_absorb_check(&r);
		memcpy(eager, r.q, bytes);
		memset(r.q, 0xC3, bytes);
		ck_assert_int_eq(spmla_graph_replay(r.f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(r.q, eager, bytes);
	}
	free(eager);
}
END_TEST

/* A table of 2^24 positions is 4 GiB: the row of the last begins past 2^31 B,
 * that of position 1000000 at 256 MB. They turn as those of 3 and 5. */
START_TEST(rows_of_the_rope_table_may_lie_past_2_gib)
{
	const uint64_t bytes = UINT64_C(4) << 30;
	float *map = test_map(bytes);
	const uint32_t q_bytes = r.q_elems * 2;
	uint16_t *near_q = test_alloc(q_bytes, 0);

	r.a.tokens = 2;
	r.positions[0] = 3;
	r.positions[1] = 5;
	q_absorb_check(&r);
	memcpy(near_q, r.q, q_bytes);
	memcpy(map + 16777215 * UINT64_C(64), r.cos_sin + 3 * 64, 256);
	memcpy(map + 1000000 * 64, r.cos_sin + 5 * 64, 256);
	r.a.cos_sin = map;
	r.a.cos_sin_rows = 1 << 24;
	r.positions[0] = 16777215;
	r.positions[1] = 1000000;
	q_absorb_run(&r);
	ck_assert_mem_eq(r.q, near_q, q_bytes);
	q_absorb_expect_status(&r, SPMLA_FAULT_NONE, 0);
	munmap(map, bytes);
	free(near_q);
}
END_TEST

/* 2^-133, the least bf16, times 2^100 is 2^-33; 2^-100 * 2^-30 = 2^-130 is 8
 * times the least, not 0. In a rope part that is not rotated it is copied. */
START_TEST(subnormal_values_are_not_flushed)
{
	memset(r.q_nope, 0, r.q_nope_elems * 2);
	r.q_nope[0] = 0x0001;
	r.q_nope[1] = test_bf16(0x1p-100f);
	memset(r.w, 0, r.w_elems * 2);
	r.w[4] = test_bf16(0x1p100f);
	r.w[r.a.w_row_stride_elems + 5] = test_bf16(0x1p-30f);
	r.a.rope_style = SPMLA_ROPE_NONE;
	r.q_pe[63] = 0x8001;
	q_absorb_run(&r);
	ck_assert_uint_eq(r.q[4], test_bf16(0x1p-33f));
	ck_assert_uint_eq(r.q[5], 0x0008);
	ck_assert_uint_eq(r.q[512 + 63], 0x8001);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_argument_that_is_wrong_is_named_and_nothing_is_written,
		 (int)(sizeof errors / sizeof *errors)},
		{context_and_arguments_have_to_be_there, 1},
		{no_tokens_is_no_work, 1},
	};
	const theme_test edge[] = {{subnormal_values_are_not_flushed, 1}};
	const theme_test layout[] = {
		{rows_of_the_rope_table_may_lie_past_2_gib, 1}};
	const theme_test graph[] = {{replay_sees_what_changed_in_place, 1}};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
