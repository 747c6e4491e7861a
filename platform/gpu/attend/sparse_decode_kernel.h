/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode without matrix instructions, for every layout, two caches and
 * splits. A block of items has 16 heads, of one token or of all tokens of a
 * part. attend_device.h processes 64 entries.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_KERNEL_H

#include "spmla/platform/gpu/attend/sparse_decode_device.h"

#ifdef SPMLA_GPU_KERNELS

/* Shared memory. */
typedef struct sparse_decode_shared {
	attend_local block;
	int32_t notes[DECODE_NOTES]; /* the piece of work */
} sparse_decode_shared;

/* Stores the head's results: of the whole token, or of the split `row`. */
FN void
sparse_decode_store(const PRIVATE sparse_decode_job *job,
		    const PRIVATE attend_state *st, uint32_t row, uint32_t t,
		    uint32_t head)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;

	if (row != DECODE_WHOLE) {
		const uint64_t at = (uint64_t)row * s->heads + head;

		attend_partial(st, job->split_out + at * SPMLA_MLA_LATENT);
		if (attend_lane() == 0)
			job->split_lse[at] = attend_empty(st) ? G_MINUS_INF
							      : attend_lse2(st);
		return;
	}
	attend_out(st, s->has_sink, s->has_sink ? job->attn_sink[head] : 0.0f,
		   job->out +
			   decode_token_at(t, s->next_n, s->out_request_stride,
					   s->out_token_stride) +
			   (int64_t)head * s->out_head_stride);
	if (s->has_lse && attend_lane() == 0)
		job->lse[decode_token_at(t, s->next_n, s->lse_request_stride,
					 s->lse_token_stride) +
			 (int64_t)head * s->lse_head_stride] =
			attend_result_lse(st, s->base2, s->empty_lse, s->scale,
					  s->lse_sink,
					  s->lse_sink ? job->attn_sink[head]
						      : 0.0f);
}

/* Processes the blocks of token t that the piece in the notes has, for the
 * item's head. Barriers. */
FN void
sparse_decode_token(const PRIVATE sparse_decode_job *job,
		    LOCAL attend_local *shared, uint32_t t, uint32_t head,
		    uint32_t reports)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;
	const uint32_t active = head < s->heads;
	const sparse_decode_lists lists = sparse_decode_lists_of(job, t);
	const decode_range range = sparse_decode_range(job, &lists, t, reports);
	attend_state st;
	int32_t b;

	if (range.end < 0)
		return;
	attend_start(&st,
		     job->q +
			     decode_token_at(t, s->next_n, s->q_request_stride,
					     s->q_token_stride) +
			     (int64_t)head * s->q_head_stride,
		     s->dim, active, s->scale);
	for (b = range.begin; b < range.end; b++) {
		const uint32_t n =
			sparse_decode_block(job, &lists, b, t, reports);

		if (n)
			attend_block(&st, shared,
				     b < lists.first_blocks ? job->cache
							    : job->extra_cache,
				     s->layout, n);
	}
	if (active)
		sparse_decode_store(job, &st, range.row, t, head);
}

/* With two blocks a multiprocessor ptxas would use a stack on sm_100 and
 * sm_120. */
SPMLA_KERNEL_BLOCKS(sparse_decode, 1)
void
spmla_k_sparse_decode(SPMLA_KERNEL_ARGS(sparse_decode))
{
	LOCAL_ARRAY(sparse_decode_shared, shared, 1);
	const sparse_decode_job job = {SPMLA_KERNEL_VALUES(sparse_decode),
				       &shared->block.rows, shared->notes};
	const uint32_t groups = (s.heads + ATTEND_HEADS - 1) / ATTEND_HEADS;
	const uint32_t pieces = s.whole_tokens + s.parts;
	LOCAL int32_t *notes = shared->notes;
	uint64_t work;
	uint32_t t;

	for (work = g_block(); work < (uint64_t)pieces * groups;
	     work += g_blocks()) {
		const uint32_t piece = (uint32_t)(work / groups);
		const uint32_t group = (uint32_t)(work % groups);
		const uint32_t head =
			group * ATTEND_HEADS + g_item() / ATTEND_LANES;

		decode_take(fault_state, fault_status, group == 0,
			    tile_scheduler_metadata, s.whole_tokens, piece,
			    s.tokens, notes);
		for (t = (uint32_t)notes[DECODE_FIRST];
		     (int32_t)t <= notes[DECODE_LAST]; t++)
			sparse_decode_token(&job, &shared->block, t, head,
					    group == 0);
	}
}

#endif
#endif
