/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norms: what the call refuses and says, where rows may lie, and how it is
 * recorded and replayed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/rms_rig.h"
#include "tests/reference/narrow_ref.h"

#define OP           "rms_norms"
#define FIELD(field) ARG_FIELD(spmla_rms_norms_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: " OP
#define NULL_OP      SPMLA_E_NULL, "SPMLA_E_NULL: " OP
#define NO_POINTER   ": got NULL, want a pointer"
#define WANT_FINITE  ", want a finite value above 0"

static rms_rig r;

static void
setup(void)
{
	rms_open(&r);
}

static void
teardown(void)
{
	rms_close(&r);
}

/* Of a call with 2 rows of 1024 and 3 of 512. */
static const arg_error errors[] = {
	{FIELD(struct_bytes), 96, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: " OP ": got 96, want 104"},
	{FIELD(norm_eps), 0xbf800000,
	 RANGE ".norm_eps: got bits 0xbf800000" WANT_FINITE},
	{FIELD(q_rows), 0x80000000,
	 RANGE ".q_rows: got 2147483648, want at most 2147483647"},
	{FIELD(q_width), 0, RANGE ".q_width: got 0, want at least 8"},
	{FIELD(q_width), 4104, RANGE ".q_width: got 4104, want at most 4096"},
	{FIELD(q_width), 1020,
	 RANGE ".q_width: got 1020, want a multiple of 8"},
	{FIELD(q), 0, NULL_OP ".q" NO_POINTER},
	{FIELD(q_stride_elems), 1023,
	 RANGE ".q_stride_elems: got 1023, want at least 1024"},
	{FIELD(q_weight), 0, NULL_OP ".q_weight" NO_POINTER},
	{FIELD(q_out), 0, NULL_OP ".q_out" NO_POINTER},
	{FIELD(q_out_stride_elems), UINT64_MAX,
	 RANGE ".q_out_stride_elems: got 0, want at least 1024"},
	{FIELD(kv_rows), 0x80000000,
	 RANGE ".kv_rows: got 2147483648, want at most 2147483647"},
	{FIELD(kv_width), 4, RANGE ".kv_width: got 4, want at least 8"},
	{FIELD(kv), 0, NULL_OP ".kv" NO_POINTER},
	{FIELD(kv_stride_elems), 511,
	 RANGE ".kv_stride_elems: got 511, want at least 512"},
	{FIELD(kv_weight), 0, NULL_OP ".kv_weight" NO_POINTER},
	{FIELD(kv_out), 0, NULL_OP ".kv_out" NO_POINTER},
	{FIELD(kv_out_stride_elems), 511,
	 RANGE ".kv_out_stride_elems: got 511, want at least 512"},
};

START_TEST(every_field_is_checked_and_named)
{
	spmla_rms_norms_args none = {0};
	uint32_t i;

	rms_sizes(&r, 2, 1024, 3, 512);
	for (i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		const arg_error *e = &errors[i];
		spmla_rms_norms_args bad = r.a;

		memcpy((char *)&bad + e->offset, &e->value, e->bytes);
		ck_assert_uint_eq(spmla_rms_norms(r.f.ctx, &bad, NULL),
				  e->status);
		ck_assert_str_eq(fixture_diag(&r.f), e->text);
	}
	check_bytes(r.q.out, r.q.want, RMS_ELEMS * 2); /* nothing was written */
	check_bytes(r.kv.out, r.kv.want, RMS_ELEMS * 2);
	ck_assert_int_eq(spmla_rms_norms(NULL, &r.a, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_rms_norms(r.f.ctx, NULL, NULL), SPMLA_E_NULL);
	none.struct_bytes = (uint32_t)sizeof none;
	ck_assert_int_eq(spmla_rms_norms(r.f.ctx, &none, NULL), SPMLA_OK);
}
END_TEST

/* Of the same rows in place, which are 1032 and 528 apart. */
static const arg_error unequal[] = {
	{FIELD(q_out_stride_elems), 1024,
	 RANGE ".q_out_stride_elems: got 1024, want 1032"},
	{FIELD(q_stride_elems), 1024,
	 RANGE ".q_out_stride_elems: got 1032, want 1024"},
	{FIELD(kv_out_stride_elems), 536,
	 RANGE ".kv_out_stride_elems: got 536, want 528"},
	{FIELD(kv_stride_elems), 512,
	 RANGE ".kv_out_stride_elems: got 528, want 512"},
};

START_TEST(rows_in_place_have_one_stride)
{
	uint16_t *rows = malloc(RMS_ELEMS * 2);
	uint32_t i;

	rms_sizes(&r, 2, 1024, 3, 512);
	r.a.q_out = r.q.x;
	r.a.q_out_stride_elems = r.a.q_stride_elems;
	r.a.kv_out = r.kv.x;
	r.a.kv_out_stride_elems = r.a.kv_stride_elems;
	memcpy(rows, r.q.x, RMS_ELEMS * 2);
	for (i = 0; i < sizeof unequal / sizeof unequal[0]; i++) {
		const arg_error *e = &unequal[i];
		spmla_rms_norms_args bad = r.a;

		memcpy((char *)&bad + e->offset, &e->value, e->bytes);
		ck_assert_uint_eq(spmla_rms_norms(r.f.ctx, &bad, NULL),
				  e->status);
		ck_assert_str_eq(fixture_diag(&r.f), e->text);
	}
	fixture_drain(&r.f);
	check_bytes(r.q.x, rows, RMS_ELEMS * 2);
	ck_assert_int_eq(spmla_rms_norms(r.f.ctx, &r.a, NULL), SPMLA_OK);
	free(rows);
}
END_TEST

START_TEST(a_replay_reads_what_lies_there_then)
{
	spmla_graph graph;
	uint32_t i;

	rms_sizes(&r, 3, 1024, 2, 512);
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_rms_norms(r.f.ctx, &r.a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	for (i = 0; i < 3; i++) {
		rms_fill(&r);
		rms_model(&r);
		ck_assert_int_eq(spmla_graph_replay(r.f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		fixture_drain(&r.f);
		check_bytes(r.q.out, r.q.want, RMS_ELEMS * 2);
		check_bytes(r.kv.out, r.kv.want, RMS_ELEMS * 2);
	}
}
END_TEST

START_TEST(rows_may_lie_at_any_address_and_stride)
{
	uint32_t by;

	for (by = 0; by < 4; by++) {
		r.a.q = r.q.x + by;
		r.a.q_weight = r.q.weight + (by == 3);
		r.a.kv_out = r.kv.out + (by > 1);
		rms_sizes(&r, 4, 1536, 4, 512);
		r.a.kv_stride_elems = 512 + by;
		r.a.q_out_stride_elems = 1536 + 3 * by;
		rms_fill(&r);
		rms_check(&r);
	}
}
END_TEST

START_TEST(rows_may_be_normed_in_place)
{
	uint32_t i;

	rms_sizes(&r, 5, 1536, 5, 512);
	r.a.q_out_stride_elems = r.a.q_stride_elems;
	rms_model(&r);
	rms_run(&r);
	for (i = 0; i < 5; i++)
		memcpy(r.q.out + i * 1544, r.q.x + i * 1544, 1536 * 2);
	r.a.q = r.q.out;
	ck_assert_int_eq(spmla_rms_norms(r.f.ctx, &r.a, NULL), SPMLA_OK);
	check_bytes(r.q.out, r.q.want, RMS_ELEMS * 2);
}
END_TEST

/* Rows 2^31 elements apart, of which the pages that are touched exist. */
START_TEST(rows_past_4_gib_are_found)
{
	const uint64_t bytes = UINT64_C(5) << 30, apart = 0x80000000u;
	uint8_t *far;

	far = test_map(bytes);
	rms_sizes(&r, 2, 512, 0, 8);
	rms_check(&r);
	memcpy(far, r.q.x, 1024);
	memcpy(far + 2 * apart, r.q.x + 520, 1024);
	r.a.q = r.a.q_out = (uint16_t *)(void *)far;
	r.a.q_stride_elems = r.a.q_out_stride_elems = (int64_t)apart;
	ck_assert_int_eq(spmla_rms_norms(r.f.ctx, &r.a, NULL), SPMLA_OK);
	check_bytes(far + 2 * apart, r.q.want + 528, 1024);
	munmap(far, bytes);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_field_is_checked_and_named, 1},
		{rows_in_place_have_one_stride, 1},
	};
	const theme_test layout[] = {
		{rows_may_lie_at_any_address_and_stride, 1},
		{rows_may_be_normed_in_place, 1},
		{rows_past_4_gib_are_found, 1},
	};
	const theme_test graph[] = {
		{a_replay_reads_what_lies_there_then, 1},
	};
	const theme themes[] = {THEME("error", setup, teardown, error),
				THEME("layout", setup, teardown, layout),
				THEME("graph", setup, teardown, graph)};

	return RUN_THEMES(themes);
}
