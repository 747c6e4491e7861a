/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_map, the call: what the host refuses, and that a recorded call equals an
 * eager one.
 */
#include <stddef.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/step/slot_map_rig.h"

static slot_map_rig r;

static void
setup(void)
{
	slot_map_open(&r);
}

static void
teardown(void)
{
	slot_map_close(&r);
}

START_TEST(a_recorded_call_reads_what_is_there_at_each_replay)
{
	const spmla_slot_map_args a = slot_map_args(&r, 1);
	spmla_graph graph;
	int32_t k;

	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_slot_map(r.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	for (k = 0; k < 3; k++) {
		r.io.row[0] = 1;
		r.io.position[0] = 70 + k;
		r.io.lens[0] = 71 + k;
		r.io.table[SLOT_STRIDE + 1] = 40 + k;
		replay(&r.f, graph, 0);
		ck_assert_int_eq(r.io.slot[0], (40 + k) * 64 + 6 + k);
		ck_assert_int_eq(r.io.lens[0], 71 + k);
	}
}
END_TEST

START_TEST(every_argument_that_is_wrong_is_named)
{
	static const struct {
		size_t at;
		uint32_t value;
		const char *text;
	} numbers[] = {
		{offsetof(spmla_slot_map_args, rows), 0,
		 "SPMLA_E_RANGE: slot_map.rows: got 0, want at least 1"},
		{offsetof(spmla_slot_map_args, columns), 0,
		 "SPMLA_E_RANGE: slot_map.columns: got 0, want at least 1"},
		{offsetof(spmla_slot_map_args, page_tokens), 0,
		 "SPMLA_E_RANGE: slot_map.page_tokens: got 0, want at least "
		 "1"},
		{offsetof(spmla_slot_map_args, pool_pages), 0,
		 "SPMLA_E_RANGE: slot_map.pool_pages: got 0, want at least 1"},
		{offsetof(spmla_slot_map_args, table_stride_elems), 5,
		 "SPMLA_E_RANGE: slot_map.table_stride_elems: got 5, want at "
		 "least 6"},
		{offsetof(spmla_slot_map_args, compress_ratio), 5,
		 "SPMLA_E_RANGE: slot_map.page_tokens: got 64, want a multiple "
		 "of 5"},
		{offsetof(spmla_slot_map_args, struct_bytes), 1,
		 "SPMLA_E_STRUCT_SIZE: slot_map: got 1, want 88"},
	};
	spmla_slot_map_args a = slot_map_args(&r, 1);
	uint32_t i;

	ck_assert_int_eq(spmla_slot_map(NULL, &a, NULL), SPMLA_E_NULL);
	expect_error(&r.f, spmla_slot_map(r.f.ctx, NULL, NULL),
		     "SPMLA_E_NULL: slot_map: got NULL, want a pointer");
	for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		a = slot_map_args(&r, 1);
		memcpy((uint8_t *)&a + numbers[i].at, &numbers[i].value, 4);
		expect_error(&r.f, spmla_slot_map(r.f.ctx, &a, NULL),
			     numbers[i].text);
	}
	for (i = 0; i < 6; i++) {
		a = slot_map_args(&r, 1);
		memset((uint8_t *)&a +
			       offsetof(spmla_slot_map_args, token_row) +
			       i * sizeof(void *),
		       0, sizeof(void *));
		ck_assert_int_eq(spmla_slot_map(r.f.ctx, &a, NULL),
				 i == 3 ? SPMLA_OK : SPMLA_E_NULL);
	}
	memset(&a, 0, sizeof a);
	a.struct_bytes = sizeof a;
	ck_assert_int_eq(spmla_slot_map(r.f.ctx, &a, NULL), SPMLA_OK);
}
END_TEST

SUITE
{
	const theme_test graph[] = {
		{a_recorded_call_reads_what_is_there_at_each_replay, 1},
	};
	const theme_test error[] = {
		{every_argument_that_is_wrong_is_named, 1},
	};
	const theme themes[] = {
		THEME("graph", setup, teardown, graph),
		THEME("error", setup, teardown, error),
	};

	return RUN_THEMES(themes);
}
