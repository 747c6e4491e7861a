/* SPDX-License-Identifier: Apache-2.0
 *
 * split_combine, the call: what the host refuses, and that a recorded call
 * equals an eager one.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/combine_rig.h"
#include "tests/reference/narrow_ref.h"

static combine_rig r;

static void
setup(void)
{
	combine_open(&r);
}

static void
teardown(void)
{
	combine_close(&r);
}

#define FIELD(name) ARG_FIELD(spmla_split_combine_args, name)
#define NUMBER(name, value, text)                                           \
	{                                                                   \
		FIELD(name), value, SPMLA_E_RANGE,                          \
			"SPMLA_E_RANGE: split_combine." #name ": got " text \
	}
#define NULLED(name)                                         \
	{                                                    \
		FIELD(name), 0, SPMLA_E_NULL,                \
			"SPMLA_E_NULL: split_combine." #name \
			": got NULL, want a pointer"         \
	}

static const arg_error errors[] = {
	{FIELD(struct_bytes), 8, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: split_combine: got 8, want 104"},
	NUMBER(heads, 0, "0, want at least 1"),
	NUMBER(split_rows, 0, "0, want at least 1"),
	NUMBER(empty_lse, 2, "2, want at most 1"),
	NUMBER(out_token_stride_elems, 511, "511, want at least 512"),
	NUMBER(out_head_stride_elems, UINT64_MAX, "0, want at least 512"),
	NUMBER(lse_token_stride_elems, 0, "0, want at least 1"),
	NUMBER(lse_head_stride_elems, UINT64_MAX, "0, want at least 1"),
	NULLED(num_splits),
	NULLED(split_out),
	NULLED(split_lse),
	NULLED(out),
};

START_TEST(every_argument_that_is_wrong_is_named_and_nothing_is_written)
{
	const arg_error *e = &errors[_i];
	spmla_split_combine_args bad = r.a;

	memset(r.out, 0x5A, COMBINE_OUT_ELEMS * 2);
	memcpy((uint8_t *)&bad + e->offset, &e->value, e->bytes);
	ck_assert_uint_eq(spmla_split_combine(r.f.ctx, &bad, NULL), e->status);
	ck_assert_str_eq(fixture_diag(&r.f), e->text);
	ck_assert_uint_eq(r.out[0], 0x5A5A);
}
END_TEST

START_TEST(context_arguments_tokens_and_lse_may_be_missing)
{
	spmla_split_combine_args none = {.struct_bytes = sizeof none};

	ck_assert_int_eq(spmla_split_combine(NULL, &r.a, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_split_combine(r.f.ctx, NULL, NULL),
			 SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&r.f), "SPMLA_E_NULL: split_combine: got "
					     "NULL, want a pointer");
	ck_assert_int_eq(spmla_split_combine(r.f.ctx, &none, NULL), SPMLA_OK);
	r.a.lse = NULL;
	r.a.lse_token_stride_elems = r.a.lse_head_stride_elems = 0;
	combine_check(&r);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	static uint16_t eager[COMBINE_OUT_ELEMS];
	spmla_graph graph;
	uint32_t round;

	memset(r.out, 0x5A, sizeof eager);
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	combine_run(&r);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(r.out[0], 0x5A5A);
	for (round = 0; round < 3; round++) {
		combine_fill(&r);
		r.num_splits[1] = 2 + (int32_t)round;
		r.num_splits[2] = r.num_splits[3] = 5 + (int32_t)round;
		combine_check(&r);
		memcpy(eager, r.out, sizeof eager);
		memset(r.out, 0xC3, sizeof eager);
		ck_assert_int_eq(spmla_graph_replay(r.f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(r.out, eager, sizeof eager);
	}
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_argument_that_is_wrong_is_named_and_nothing_is_written,
		 (int)(sizeof errors / sizeof *errors)},
		{context_arguments_tokens_and_lse_may_be_missing, 1},
	};
	const theme_test graph[] = {{replay_sees_what_changed_in_place, 1}};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
