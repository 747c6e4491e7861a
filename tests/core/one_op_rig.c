/* SPDX-License-Identifier: Apache-2.0
 *
 * See one_op_rig.h.
 */
#include "tests/core/one_op_rig.h"

#include <check.h>
#include <string.h>

enum { LENGTH = 200, K = 3 };

static int32_t out[K];

static void
spoil(void)
{
	memset(out, 0x5A, sizeof out);
}

spmla_topk_args
one_op_args(void)
{
	static const int32_t length = LENGTH;
	static const int64_t start;
	static float scores[LENGTH];
	const spmla_topk_args a = {.struct_bytes = sizeof a,
				   .rows = 1,
				   .k = K,
				   .logits = scores,
				   .logits_elems = LENGTH,
				   .row_starts = &start,
				   .context_lens = &length,
				   .indices = out,
				   .indices_stride_elems = K};
	uint32_t i;

	for (i = 0; i < LENGTH; i++)
		scores[i] = (float)(i * 77 % LENGTH);
	return a;
}

spmla_status
one_op_enqueue(spmla_ctx *ctx, spmla_stream stream)
{
	const spmla_topk_args a = one_op_args();

	spoil();
	return spmla_topk(ctx, &a, stream);
}

/* 77 x 13 = 1001 = 1 of 200, so the largest lie at 197, 198, 199 times 13. */
uint32_t
one_op_came_out(void)
{
	static const int32_t want[K] = {161, 174, 187};
	const uint32_t is = memcmp(out, want, sizeof want) == 0;

	spoil();
	return is;
}

spmla_status
one_op_work(spmla_ctx *ctx, spmla_stream stream, spmla_stream replay)
{
	spmla_graph graph;
	spmla_status s;

	s = one_op_enqueue(ctx, stream);
	if (s == SPMLA_OK)
		s = spmla_graph_begin(ctx, stream);
	if (s != SPMLA_OK)
		return s;
	s = one_op_enqueue(ctx, stream);
	if (s == SPMLA_OK)
		s = spmla_graph_end(ctx, &graph);
	if (s != SPMLA_OK) {
		ck_assert_int_eq(spmla_graph_abort(ctx), SPMLA_OK);
		return s;
	}
	s = spmla_graph_replay(ctx, graph, 0, replay);
	return s == SPMLA_OK ? spmla_status_clear(ctx) : s;
}
