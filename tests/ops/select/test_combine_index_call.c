/* SPDX-License-Identifier: Apache-2.0
 *
 * combine_index, the call: what the host refuses, and that a recorded call
 * equals an eager one. The rows are in test_combine_index.c.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/index_rig.h"

#include "spmla/ops/combine_index.h"

#define FIELD(field) ARG_FIELD(spmla_combine_index_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: combine_index."
#define NO_POINTER(field)                                     \
	{                                                     \
		FIELD(field), 0, SPMLA_E_NULL,                \
			"SPMLA_E_NULL: combine_index." #field \
			": got NULL, want a pointer"          \
	}

static fixture f;
static int32_t req[2], context[2], seq[2], gather[2], topk[2 * 4];
static struct {
	int32_t indices[2 * 8];
	int32_t lens[2];
} io;
static spmla_combine_index_args a;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0x5A, sizeof io);
	a = (spmla_combine_index_args){.struct_bytes = sizeof a,
				       .tokens = 2,
				       .requests = 2,
				       .window = 3,
				       .ratio = 4,
				       .topk = 4,
				       .width = 8,
				       .request_rows = 20,
				       .window_row = 5,
				       .req_id_per_token = req,
				       .context_lens = context,
				       .seq_lens = seq,
				       .gather_lens = gather,
				       .topk_indices = topk,
				       .topk_stride_elems = 4,
				       .indices = io.indices,
				       .indices_stride_elems = 8,
				       .lens = io.lens};
}

static void
teardown(void)
{
	fixture_close(&f);
}

static spmla_status
call(const void *args)
{
	return spmla_combine_index(f.ctx, args, NULL);
}

START_TEST(every_field_is_checked_and_named)
{
	static const arg_error errors[] = {
		{FIELD(struct_bytes), 8, SPMLA_E_STRUCT_SIZE,
		 "SPMLA_E_STRUCT_SIZE: combine_index: got 8, want 120"},
		{FIELD(requests), 0, RANGE "requests: got 0, want at least 1"},
		{FIELD(window), 0, RANGE "window: got 0, want at least 1"},
		{FIELD(ratio), 0, RANGE "ratio: got 0, want at least 1"},
		{FIELD(width), 6, RANGE "width: got 6, want at least 7"},
		{FIELD(topk), UINT32_MAX, /* + 3 */
		 RANGE "width: got 8, want at least 4294967298"},
		{FIELD(width), UINT32_C(1) << 31,
		 RANGE "width: got 2147483648, want at most 2147483647"},
		{FIELD(request_rows), 0,
		 RANGE "request_rows: got 0, want at least 1"},
		{FIELD(request_rows), UINT32_C(1) << 30,
		 RANGE "request_rows: got 1073741824, want at most "
		       "1073741823"},
		{FIELD(window_row), 21,
		 RANGE "window_row: got 21, want at most 20"},
		{FIELD(topk_stride_elems), 3,
		 RANGE "topk_stride_elems: got 3, want at least 4"},
		{FIELD(indices_stride_elems), UINT64_MAX,
		 RANGE "indices_stride_elems: got 0, want at least 8"},
		NO_POINTER(req_id_per_token),
		NO_POINTER(context_lens),
		NO_POINTER(seq_lens),
		NO_POINTER(gather_lens),
		NO_POINTER(topk_indices),
		NO_POINTER(indices),
		NO_POINTER(lens),
	};
	static const int32_t spans[4];
	static const arg_error images[] = {
		{FIELD(max_image), 0,
		 RANGE "max_image: got 0, want at least 1"},
		{FIELD(max_image), 2, RANGE "width: got 8, want at least 9"},
	};

	index_check_errors(&f, call, &a, sizeof a, errors,
			   sizeof errors / sizeof *errors);
	a.image_spans = spans;
	a.max_image = 1;
	index_check_errors(&f, call, &a, sizeof a, images, 2);
	ck_assert_int_eq(io.indices[0], 0x5A5A5A5A);
	ck_assert_int_eq(spmla_combine_index(NULL, &a, NULL), SPMLA_E_NULL);
}
END_TEST

START_TEST(no_tokens_need_nothing)
{
	spmla_combine_index_args none = {.struct_bytes = sizeof none};

	ck_assert_int_eq(call(&none), SPMLA_OK);
	ck_assert_int_eq(io.indices[0], 0x5A5A5A5A);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	const spmla_combine_index_args good = a;
	uint64_t rng = test_seed() + 5;
	spmla_graph graph;
	uint32_t round, i;
	uint8_t eager[sizeof io];

	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(call(&a), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_int_eq(io.indices[0], 0x5A5A5A5A);
	memset(&a, 0xFF, sizeof a);
	for (round = 0; round < 4; round++) {
		index_random(&rng, topk, 8, 4);
		index_random(&rng, req, 2, 2);
		for (i = 0; i < 2; i++) {
			seq[i] = 5 + (int32_t)rng_below(&rng, 9);
			gather[i] = 5;
			topk[i * 4] -= 1;
		}
		for (i = 0; i < 2; i++)
			context[i] = seq[req[i]] - (int32_t)rng_below(&rng, 5);
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
		{no_tokens_need_nothing, 1},
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
