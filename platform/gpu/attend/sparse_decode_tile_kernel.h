/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode by products of tiles, on AMD's and Intel's GPUs: the portable
 * kernel with another inner loop (attend_tile_device.h). A block of threads has
 * 16, 32 or 64 heads, of one token or of all tokens of a part. 64 heads take
 * more registers than a thread has by WMMA and dpas.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_TILE_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_TILE_KERNEL_H

#include "spmla/platform/gpu/attend/attend_tile_device.h"
#include "spmla/platform/gpu/attend/sparse_decode_device.h"

#define SPMLA_K_sparse_decode_tile(P, S) SPMLA_K_DECODE(P, S)
typedef spmla_k_sparse_decode_scalars spmla_k_sparse_decode_tile_scalars;
#define SPMLA_K_sparse_decode_tile_32(P, S) SPMLA_K_DECODE(P, S)
typedef spmla_k_sparse_decode_scalars spmla_k_sparse_decode_tile_32_scalars;
#define SPMLA_K_sparse_decode_tile_64(P, S) SPMLA_K_DECODE(P, S)
typedef spmla_k_sparse_decode_scalars spmla_k_sparse_decode_tile_64_scalars;

#ifdef SPMLA_GPU_KERNELS

/* Stores the results of the block's heads, from first_head on: of the whole
 * token, or of the split `row`. Barriers. */
FN void
sparse_decode_tile_store(const PRIVATE sparse_decode_job *job,
			 LOCAL attend_tile_local *shared,
			 PRIVATE attend_tile_state *st, uint32_t row,
			 uint32_t t, uint32_t first_head, const uint32_t tiles)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;
	const uint32_t heads = s->heads - first_head;
	const uint32_t whole = row == DECODE_WHOLE;
	const uint64_t split = (uint64_t)row * s->heads + first_head;
	const int64_t lse_at =
		decode_token_at(t, s->next_n, s->lse_request_stride,
				s->lse_token_stride) +
		(int64_t)first_head * s->lse_head_stride;
	uint32_t i;

	BARRIER(); /* nobody reads factors */
	UNROLL
	for (i = 0; i < attend_tile_rounds(tiles); i++) {
		const uint32_t head = g_here(attend_tile_head(i, tiles));
		const uint32_t sinks = s->has_sink && head < heads;
		const float sink =
			sinks ? job->attn_sink[first_head + head] : 0.0f;
		float lse;

		attend_tile_note(st, shared, i,
				 attend_tile_sink(st, i, whole && sinks, sink),
				 tiles);
		lse = attend_tile_lse2(st, i);
		if (attend_lane() != 0 || head >= heads)
			continue;
		if (!whole)
			job->split_lse[split + head] = lse;
		else if (s->has_lse)
			job->lse[lse_at + (int64_t)head * s->lse_head_stride] =
				decode_result_lse(
					attend_tile_empty(st, i), lse,
					attend_tile_lse(st, i, s->scale),
					s->empty_lse, s->base2, s->lse_sink,
					sink);
	}
	BARRIER();
	attend_tile_divide(st, shared, tiles);
	if (whole)
		attend_tile_out(st,
				job->out +
					decode_token_at(t, s->next_n,
							s->out_request_stride,
							s->out_token_stride) +
					(int64_t)first_head *
						s->out_head_stride,
				s->out_head_stride, heads, tiles);
	else
		attend_tile_partial(st,
				    job->split_out + split * SPMLA_MLA_LATENT,
				    heads, tiles);
}

/* A block of entries, and the slot that the item has of it. No entries: there
 * is no such block. */
typedef struct sparse_decode_ahead {
	int32_t b;
	uint32_t n;
	int32_t slot;
} sparse_decode_ahead;

/* The cache of block b. */
FN GLOBAL const uint8_t *
sparse_decode_tile_base(const PRIVATE sparse_decode_job *job,
			const PRIVATE sparse_decode_lists *lists, int32_t b)
{
	return b < lists->first_blocks ? job->cache : job->extra_cache;
}

/* Asks for the slots of the next block that has entries, from b to end - 1. */
FN sparse_decode_ahead
sparse_decode_tile_look(const PRIVATE sparse_decode_job *job,
			const PRIVATE sparse_decode_lists *lists, int32_t b,
			int32_t end)
{
	sparse_decode_ahead ahead = {b, 0, -1};

	for (; b < end && ahead.n == 0; b++) {
		const sparse_decode_span span =
			sparse_decode_span_of(job, lists, b);

		ahead.b = b;
		ahead.n = span.n;
		ahead.slot = sparse_decode_slot(&span);
	}
	return ahead;
}

/* Writes where the rows of that block are. */
FN void
sparse_decode_tile_note(const PRIVATE sparse_decode_job *job,
			const PRIVATE sparse_decode_lists *lists,
			const PRIVATE sparse_decode_ahead *ahead,
			LOCAL attend_rows *rows, uint32_t t, uint32_t reports)
{
	const sparse_decode_span span =
		sparse_decode_span_of(job, lists, ahead->b);

	sparse_decode_rows(job, &span, ahead->slot, rows, t, reports);
}

/* Processes blocks begin to end - 1 of token t. While the values of 32 entries
 * are added, the next 32 rows are on their way; while a block is processed, the
 * slots of the next one. Barriers. */
FN void
sparse_decode_tile_blocks(const PRIVATE sparse_decode_job *job,
			  LOCAL attend_tile_local *shared,
			  const PRIVATE sparse_decode_lists *lists,
			  const PRIVATE decode_range *range, uint32_t t,
			  uint32_t reports, PRIVATE attend_tile_state *st,
			  const uint32_t tiles)
{
	LOCAL attend_rows *rows = shared->rows, *others = shared->rows + 1;
	sparse_decode_ahead now =
		sparse_decode_tile_look(job, lists, range->begin, range->end);
	attend_tile_held held;

	sparse_decode_tile_note(job, lists, &now, rows, t, reports);
	BARRIER();
	if (now.n)
		attend_tile_ask(st, &held, rows,
				sparse_decode_tile_base(job, lists, now.b),
				job->s.layout, 0, tiles);
	while (now.n) {
		const sparse_decode_ahead next = sparse_decode_tile_look(
			job, lists, now.b + 1, range->end);
		LOCAL attend_rows *const mine = rows;
		uint32_t first;

		for (first = 0; first < now.n; first += ATTEND_HELD) {
			const uint32_t more = first + ATTEND_HELD < now.n;

			attend_tile_weigh(
				st, shared, &held, mine,
				sparse_decode_tile_base(job, lists, now.b),
				job->s.layout, first, tiles);
			if (!more && next.n)
				sparse_decode_tile_note(job, lists, &next,
							others, t, reports);
			BARRIER();
			if (more || next.n)
				attend_tile_ask(st, &held, more ? mine : others,
						sparse_decode_tile_base(
							job, lists,
							more ? now.b : next.b),
						job->s.layout,
						more ? first + ATTEND_HELD : 0,
						tiles);
			attend_tile_add(st, shared, tiles);
		}
		now = next;
		rows = others;
		others = mine;
	}
}

/* Processes what the piece in the notes has of token t. Barriers. */
FN void
sparse_decode_tile_token(const PRIVATE sparse_decode_job *job,
			 LOCAL attend_tile_local *shared, uint32_t t,
			 uint32_t first_head, const uint32_t tiles)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;
	const uint32_t reports = first_head == 0;
	const sparse_decode_lists lists = sparse_decode_lists_of(job, t);
	const decode_range range = sparse_decode_range(job, &lists, t, reports);
	attend_tile_state st;

	if (range.end < 0)
		return;
	attend_tile_start(&st, shared,
			  job->q +
				  decode_token_at(t, s->next_n,
						  s->q_request_stride,
						  s->q_token_stride) +
				  (int64_t)first_head * s->q_head_stride,
			  s->q_head_stride, s->heads - first_head, s->dim,
			  s->scale, tiles);
	sparse_decode_tile_blocks(job, shared, &lists, &range, t, reports, &st,
				  tiles);
	sparse_decode_tile_store(job, shared, &st, range.row, t, first_head,
				 tiles);
}

/* The kernel, with so many tiles of heads a block. */
FN void
sparse_decode_tile_all(const PRIVATE sparse_decode_job *job,
		       LOCAL attend_tile_local *shared, const uint32_t tiles)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;
	const uint32_t groups = (s->heads - 1) / (tiles * G_TILE) + 1;
	const uint32_t pieces = s->whole_tokens + s->parts;
	LOCAL int32_t *notes = job->notes;
	uint64_t work;
	uint32_t t;

	for (work = g_block(); work < (uint64_t)pieces * groups;
	     work += g_blocks()) {
		const uint32_t group = (uint32_t)(work % groups);

		decode_take(job->fault_state, job->fault_status, group == 0,
			    job->tile_scheduler_metadata, s->whole_tokens,
			    (uint32_t)(work / groups), s->tokens, notes);
		for (t = (uint32_t)notes[DECODE_FIRST];
		     (int32_t)t <= notes[DECODE_LAST]; t++)
			sparse_decode_tile_token(job, shared, t,
						 group * tiles * G_TILE, tiles);
	}
}

SPMLA_KERNEL(sparse_decode_tile)
void
spmla_k_sparse_decode_tile(SPMLA_KERNEL_ARGS(sparse_decode_tile))
{
	ATTEND_TILE_LOCAL(shared, 1);
	LOCAL_ARRAY(int32_t, notes, DECODE_NOTES); /* the piece of work */
	const sparse_decode_job job = {SPMLA_KERNEL_VALUES(sparse_decode_tile),
				       shared->rows, notes};

	sparse_decode_tile_all(&job, shared, 1);
}

SPMLA_KERNEL(sparse_decode_tile_32)
void
spmla_k_sparse_decode_tile_32(SPMLA_KERNEL_ARGS(sparse_decode_tile_32))
{
	ATTEND_TILE_LOCAL(shared, 2);
	LOCAL_ARRAY(int32_t, notes, DECODE_NOTES); /* the piece of work */
	const sparse_decode_job job = {
		SPMLA_KERNEL_VALUES(sparse_decode_tile_32), shared->rows,
		notes};

	sparse_decode_tile_all(&job, shared, 2);
}

#if ATTEND_TILE_HEADS == 4
SPMLA_KERNEL(sparse_decode_tile_64)
void
spmla_k_sparse_decode_tile_64(SPMLA_KERNEL_ARGS(sparse_decode_tile_64))
{
	ATTEND_TILE_LOCAL(shared, 4);
	LOCAL_ARRAY(int32_t, notes, DECODE_NOTES); /* the piece of work */
	const sparse_decode_job job = {
		SPMLA_KERNEL_VALUES(sparse_decode_tile_64), shared->rows,
		notes};

	sparse_decode_tile_all(&job, shared, 4);
}
#endif

#endif
#endif
