/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_prefill by products of tiles, on AMD's and Intel's GPUs: the portable
 * kernel with the inner loop of attend_tile_device.h, and 16, 32 or 64 heads a
 * block.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_PREFILL_TILE_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_PREFILL_TILE_KERNEL_H

#include "spmla/platform/gpu/attend/attend_tile_device.h"
#include "spmla/platform/gpu/attend/sparse_prefill_device.h"

#define SPMLA_K_sparse_prefill_tile(P, S) SPMLA_K_sparse_prefill(P, S)
typedef spmla_k_sparse_prefill_scalars spmla_k_sparse_prefill_tile_scalars;
#define SPMLA_K_sparse_prefill_tile_32(P, S) SPMLA_K_sparse_prefill(P, S)
typedef spmla_k_sparse_prefill_scalars spmla_k_sparse_prefill_tile_32_scalars;
#define SPMLA_K_sparse_prefill_tile_64(P, S) SPMLA_K_sparse_prefill(P, S)
typedef spmla_k_sparse_prefill_scalars spmla_k_sparse_prefill_tile_64_scalars;

#ifdef SPMLA_GPU_KERNELS

typedef struct sparse_prefill_job {
	SPMLA_KERNEL_FIELDS(sparse_prefill)
} sparse_prefill_job;

/* The lse of the item's head of a round, empty or not. With lse_sink its sum
 * includes the sink. */
FN float
sparse_prefill_tile_lse(const PRIVATE attend_tile_state *st, uint32_t round,
			const PRIVATE spmla_k_sparse_prefill_scalars *s,
			float sink)
{
	const float natural = attend_tile_lse(st, round, s->scale);
	const uint32_t empty = attend_tile_empty(st, round);

	if (!empty && !s->base2 && !s->lse_sink)
		return natural;
	return decode_result_lse(empty, attend_tile_lse2(st, round), natural,
				 s->empty_lse, s->base2, s->lse_sink, sink);
}

/* Stores the results of token t's heads from first_head on. Barriers. */
FN void
sparse_prefill_tile_store(const PRIVATE sparse_prefill_job *job,
			  LOCAL attend_tile_local *shared,
			  PRIVATE attend_tile_state *st, uint32_t t,
			  uint32_t first_head, const uint32_t tiles)
{
	const PRIVATE spmla_k_sparse_prefill_scalars *s = &job->s;
	const uint32_t heads = s->heads - first_head;
	uint32_t i;

	BARRIER(); /* nobody reads factors */
	UNROLL
	for (i = 0; i < attend_tile_rounds(tiles); i++) {
		const uint32_t head = g_here(attend_tile_head(i, tiles));
		const uint32_t sinks = s->has_sink && head < heads;
		const float sink =
			sinks ? job->attn_sink[first_head + head] : 0.0f;
		const int64_t at =
			(int64_t)t * s->lse_token_stride +
			(int64_t)(first_head + head) * s->lse_head_stride;

		attend_tile_note(st, shared, i,
				 attend_tile_sink(st, i, sinks, sink), tiles);
		if (attend_lane() != 0 || head >= heads)
			continue;
		if (s->has_max_logits)
			job->max_logits[at] =
				attend_tile_empty(st, i) ? G_MINUS_INF
				: s->base2 ? st->largest[i] * st->c
					   : st->largest[i] * s->scale;
		if (s->has_lse)
			job->lse[at] = sparse_prefill_tile_lse(st, i, s, sink);
	}
	BARRIER();
	attend_tile_divide(st, shared, tiles);
	attend_tile_out(st,
			job->out + (int64_t)t * s->out_token_stride +
				(int64_t)first_head * s->out_head_stride,
			s->out_head_stride, heads, tiles);
}

/* Processes a token's list of len entries. While the values of 32 entries are
 * added, the next 32 rows are on their way; while 64 are processed, the indices
 * of the next ones. Barriers. */
FN void
sparse_prefill_tile_list(const PRIVATE sparse_prefill_job *job,
			 LOCAL attend_tile_local *shared,
			 GLOBAL const int32_t *list, uint32_t len,
			 PRIVATE attend_tile_state *st, const uint32_t tiles)
{
	const uint32_t layout = attend_bf16_layout(job->s.layout);
	GLOBAL const uint8_t *kv = (GLOBAL const uint8_t *)job->kv;
	LOCAL attend_rows *rows = shared->rows, *others = shared->rows + 1;
	attend_tile_held held;
	uint32_t block;

	sparse_prefill_rows(&job->s, sparse_prefill_index(list, len), rows);
	BARRIER();
	if (len)
		attend_tile_ask(st, &held, rows, kv, layout, 0, tiles);
	for (block = 0; block < len; block += ATTEND_KEYS) {
		const uint32_t left = len - block;
		const uint32_t n = left < ATTEND_KEYS ? left : ATTEND_KEYS;
		const int32_t next = sparse_prefill_index(
			list + block + ATTEND_KEYS, left - n);
		LOCAL attend_rows *const mine = rows;
		uint32_t first;

		for (first = 0; first < n; first += ATTEND_HELD) {
			const uint32_t more = first + ATTEND_HELD < n;

			attend_tile_weigh(st, shared, &held, mine, kv, layout,
					  first, tiles);
			if (!more)
				sparse_prefill_rows(&job->s, next, others);
			BARRIER();
			if (more || left > n)
				attend_tile_ask(st, &held, more ? mine : others,
						kv, layout,
						more ? first + ATTEND_HELD : 0,
						tiles);
			attend_tile_add(st, shared, tiles);
		}
		rows = others;
		others = mine;
	}
}

/* The kernel, with so many tiles of heads a block. */
FN void
sparse_prefill_tile_all(const PRIVATE sparse_prefill_job *job,
			LOCAL attend_tile_local *shared, const uint32_t tiles)
{
	const PRIVATE spmla_k_sparse_prefill_scalars *s = &job->s;
	const uint32_t groups = (s->heads - 1) / (tiles * G_TILE) + 1;
	uint64_t work;

	for (work = g_block(); work < (uint64_t)s->tokens * groups;
	     work += g_blocks()) {
		const uint32_t t = (uint32_t)(work / groups);
		const uint32_t first_head =
			(uint32_t)(work % groups) * tiles * G_TILE;
		const decode_list found = decode_list_of(
			job->topk_lens, s->list_form, s->lens_tokens,
			s->indices_stride, s->topk, t);
		attend_tile_state st;

		attend_tile_start(&st, shared,
				  job->q + (int64_t)t * s->q_token_stride +
					  (int64_t)first_head *
						  s->q_head_stride,
				  s->q_head_stride, s->heads - first_head,
				  s->dim, s->scale, tiles);
		if (found.faults && first_head == 0 && g_item() == 0)
			g_fault(job->fault_state, job->fault_status, t,
				G_FAULT_INDEX);
		sparse_prefill_tile_list(job, shared,
					 job->indices + found.first, found.len,
					 &st, tiles);
		sparse_prefill_tile_store(job, shared, &st, t, first_head,
					  tiles);
	}
}

SPMLA_KERNEL(sparse_prefill_tile)
void
spmla_k_sparse_prefill_tile(SPMLA_KERNEL_ARGS(sparse_prefill_tile))
{
	ATTEND_TILE_LOCAL(shared, 1);
	const sparse_prefill_job job = {
		SPMLA_KERNEL_VALUES(sparse_prefill_tile)};

	sparse_prefill_tile_all(&job, shared, 1);
}

SPMLA_KERNEL(sparse_prefill_tile_32)
void
spmla_k_sparse_prefill_tile_32(SPMLA_KERNEL_ARGS(sparse_prefill_tile_32))
{
	ATTEND_TILE_LOCAL(shared, 2);
	const sparse_prefill_job job = {
		SPMLA_KERNEL_VALUES(sparse_prefill_tile_32)};

	sparse_prefill_tile_all(&job, shared, 2);
}

#if ATTEND_TILE_HEADS == 4
SPMLA_KERNEL(sparse_prefill_tile_64)
void
spmla_k_sparse_prefill_tile_64(SPMLA_KERNEL_ARGS(sparse_prefill_tile_64))
{
	ATTEND_TILE_LOCAL(shared, 4);
	const sparse_prefill_job job = {
		SPMLA_KERNEL_VALUES(sparse_prefill_tile_64)};

	sparse_prefill_tile_all(&job, shared, 4);
}
#endif

#endif
#endif
