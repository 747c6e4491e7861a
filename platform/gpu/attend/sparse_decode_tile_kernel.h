/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode by products of tiles, on AMD's and Intel's GPUs: the portable
 * kernel with another inner loop. A block of threads has 16 heads, of one token
 * or of all tokens of a part. attend_tile_device.h processes 64 entries.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_TILE_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_TILE_KERNEL_H

#include "spmla/platform/gpu/attend/attend_tile_device.h"
#include "spmla/platform/gpu/attend/sparse_decode_device.h"

#define SPMLA_K_sparse_decode_tile(P, S) SPMLA_K_DECODE(P, S)
typedef spmla_k_sparse_decode_scalars spmla_k_sparse_decode_tile_scalars;

#ifdef SPMLA_GPU_KERNELS

/* Shared memory. */
typedef struct sparse_decode_tile_shared {
	attend_tile_local block;
	int32_t notes[DECODE_NOTES]; /* the piece of work */
} sparse_decode_tile_shared;

/* Stores the results of the block's heads, from first_head on: of the whole
 * token, or of the split `row`. Barriers. */
FN void
sparse_decode_tile_store(const PRIVATE sparse_decode_job *job,
			 LOCAL attend_tile_local *shared,
			 PRIVATE attend_tile_state *st, uint32_t row,
			 uint32_t t, uint32_t first_head)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;
	const uint32_t head = first_head + g_item() / ATTEND_LANES;
	const uint32_t heads = s->heads - first_head;
	const uint32_t whole = row == DECODE_WHOLE;
	const uint32_t writes = attend_lane() == 0 && head < s->heads;
	const uint64_t split = (uint64_t)row * s->heads;
	float sink = 0.0f;

	if (s->has_sink && head < s->heads)
		sink = job->attn_sink[head];
	attend_tile_divide(st, shared,
			   whole && s->has_sink ? g_sink_weight(sink, st->reach)
						: 0.0f);
	if (!whole) {
		attend_tile_partial(st,
				    job->split_out + (split + first_head) *
							     SPMLA_MLA_LATENT,
				    heads);
		if (writes)
			job->split_lse[split + head] = attend_tile_lse2(st);
		return;
	}
	attend_tile_out(st,
			job->out +
				decode_token_at(t, s->next_n,
						s->out_request_stride,
						s->out_token_stride) +
				(int64_t)first_head * s->out_head_stride,
			s->out_head_stride, heads);
	if (s->has_lse && writes)
		job->lse[decode_token_at(t, s->next_n, s->lse_request_stride,
					 s->lse_token_stride) +
			 (int64_t)head * s->lse_head_stride] =
			decode_result_lse(
				attend_tile_empty(st), attend_tile_lse2(st),
				attend_tile_lse(st, s->scale), s->empty_lse,
				s->base2, s->lse_sink, sink);
}

/* Processes the blocks of token t that the piece in the notes has. Barriers. */
FN void
sparse_decode_tile_token(const PRIVATE sparse_decode_job *job,
			 LOCAL attend_tile_local *shared, uint32_t t,
			 uint32_t first_head)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;
	const uint32_t head = first_head + g_item() / ATTEND_LANES;
	const uint32_t reports = first_head == 0;
	const sparse_decode_lists lists = sparse_decode_lists_of(job, t);
	const decode_range range = sparse_decode_range(job, &lists, t, reports);
	attend_tile_state st;
	int32_t b;

	if (range.end < 0)
		return;
	attend_tile_start(&st, shared,
			  job->q +
				  decode_token_at(t, s->next_n,
						  s->q_request_stride,
						  s->q_token_stride) +
				  (int64_t)head * s->q_head_stride,
			  s->dim, head < s->heads, s->scale);
	for (b = range.begin; b < range.end; b++) {
		const uint32_t n =
			sparse_decode_block(job, &lists, b, t, reports);

		if (n)
			attend_tile_block(&st, shared,
					  b < lists.first_blocks
						  ? job->cache
						  : job->extra_cache,
					  s->layout, n);
	}
	sparse_decode_tile_store(job, shared, &st, range.row, t, first_head);
}

SPMLA_KERNEL(sparse_decode_tile)
void
spmla_k_sparse_decode_tile(SPMLA_KERNEL_ARGS(sparse_decode_tile))
{
	LOCAL_ARRAY(sparse_decode_tile_shared, shared, 1);
	const sparse_decode_job job = {SPMLA_KERNEL_VALUES(sparse_decode_tile),
				       &shared->block.rows, shared->notes};
	const uint32_t groups = (s.heads + ATTEND_HEADS - 1) / ATTEND_HEADS;
	const uint32_t pieces = s.whole + s.parts;
	LOCAL int32_t *notes = shared->notes;
	uint64_t work;
	uint32_t t;

	for (work = g_block(); work < (uint64_t)pieces * groups;
	     work += g_blocks()) {
		const uint32_t group = (uint32_t)(work % groups);

		decode_take(fault_state, fault_status, group == 0,
			    tile_scheduler_metadata, s.whole,
			    (uint32_t)(work / groups), s.tokens, notes);
		for (t = (uint32_t)notes[DECODE_FIRST];
		     (int32_t)t <= notes[DECODE_LAST]; t++)
			sparse_decode_tile_token(&job, &shared->block, t,
						 group * ATTEND_HEADS);
	}
}

#endif
#endif
