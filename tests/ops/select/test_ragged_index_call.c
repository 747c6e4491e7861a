/* SPDX-License-Identifier: Apache-2.0
 *
 * ragged_index, the call: what the host refuses, and that a recorded call
 * equals an eager one. The packing is in test_ragged_index.c.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/index_rig.h"

#include "spmla/ops/ragged_index.h"

#define FIELD(field) ARG_FIELD(spmla_ragged_index_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: ragged_index."
#define NO_POINTER(field)                                    \
	{                                                    \
		FIELD(field), 0, SPMLA_E_NULL,               \
			"SPMLA_E_NULL: ragged_index." #field \
			": got NULL, want a pointer"         \
	}

static fixture f;
static int32_t dense[3 * 4], lens[3];
static struct {
	int32_t indptr[4];
	int32_t indices[12];
} io;
static spmla_ragged_index_args a;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0x5A, sizeof io);
	a = (spmla_ragged_index_args){.struct_bytes = sizeof a,
				      .tokens = 3,
				      .width = 4,
				      .num_slots = 50,
				      .capacity_elems = 12,
				      .indices = dense,
				      .indices_stride_elems = 4,
				      .lens = lens,
				      .ragged_indptr = io.indptr,
				      .ragged_indices = io.indices};
}

static void
teardown(void)
{
	fixture_close(&f);
}

static spmla_status
call(const void *args)
{
	return spmla_ragged_index(f.ctx, args, NULL);
}

START_TEST(every_field_is_checked_and_named)
{
	static const arg_error errors[] = {
		{FIELD(struct_bytes), 8, SPMLA_E_STRUCT_SIZE,
		 "SPMLA_E_STRUCT_SIZE: ragged_index: got 8, want 64"},
		{FIELD(width), UINT32_C(1) << 31,
		 RANGE "width: got 2147483648, want at most 2147483647"},
		{FIELD(capacity_elems), UINT32_C(1) << 31,
		 RANGE "capacity_elems: got 2147483648, want at most "
		       "2147483647"},
		{FIELD(indices_stride_elems), 3,
		 RANGE "indices_stride_elems: got 3, want at least 4"},
		{FIELD(indices_stride_elems), UINT64_MAX,
		 RANGE "indices_stride_elems: got 0, want at least 4"},
		NO_POINTER(indices),
		NO_POINTER(ragged_indptr),
		NO_POINTER(ragged_indices),
	};

	index_check_errors(&f, call, &a, sizeof a, errors,
			   sizeof errors / sizeof *errors);
	ck_assert_int_eq(io.indptr[0], 0x5A5A5A5A);
	ck_assert_int_eq(spmla_ragged_index(NULL, &a, NULL), SPMLA_E_NULL);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	const spmla_ragged_index_args good = a;
	uint64_t rng = test_seed() + 5;
	spmla_graph graph;
	uint32_t round, i;
	uint8_t eager[sizeof io];

	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(call(&a), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_int_eq(io.indptr[0], 0x5A5A5A5A);
	memset(&a, 0xFF, sizeof a);
	for (round = 0; round < 4; round++) {
		index_random(&rng, dense, 12, 60);
		for (i = 0; i < 3; i++)
			lens[i] = (int32_t)rng_below(&rng, 7) - 1;
		memset(&io, 0x5A, sizeof io);
		ck_assert_int_eq(call(&good), SPMLA_OK);
		memcpy(eager, &io, sizeof io);
		memset(&io, 0x5A, sizeof io);
		ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(&io, eager, sizeof io);
	}
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_field_is_checked_and_named, 1},
	};
	const theme_test graph[] = {
		{replay_sees_what_changed_in_place, 1},
	};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
