/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops over the independent items of an operation (mostly tokens), spread over
 * the caller's threads. The hard idea: the bytes that an item writes are fixed,
 * the worker that runs it is not. A worker takes the next items until none is
 * left, in scratch of its own whose contents do not outlive an item. So results
 * do not depend on the number of workers, and rows of any length balance. An
 * item takes microseconds, and handing it out a tenth of one.
 */
#ifndef SPMLA_PLATFORM_CPU_CORE_PARALLEL_CPU_H
#define SPMLA_PLATFORM_CPU_CORE_PARALLEL_CPU_H

#include "spmla/internal/cpu_scratch.h"
#include "spmla/platform/cpu/core/cpu.h"

/* Runs one item of an operation, in the scratch of worker `worker`. Items write
 * disjoint bytes and may report faults. */
typedef void (*spmla_i_cpu_item)(spmla_ctx *ctx, const void *args,
				 uint32_t worker, uint32_t item);

/* Runs items [0, items) in any order, in parallel where the caller has lent
 * threads. */
void spmla_i_cpu_for(spmla_ctx *ctx, const void *args, uint32_t items,
		     spmla_i_cpu_item run);

/* The same, one after the other, for data that may make two items write the
 * same bytes. */
void spmla_i_cpu_in_order(spmla_ctx *ctx, const void *args, uint32_t items,
			  spmla_i_cpu_item run);

/* Workers that spmla_i_cpu_for may use; 1: this thread. */
uint32_t spmla_i_cpu_workers(const spmla_ctx *ctx);

/* The number of pieces, 1 .. most, into which each of `rows` is cut so that
 * each worker has `share` of them. Example: for 8 workers with a share of 4, 3
 * rows are cut into 11 pieces each, and 40 rows are not cut. */
static inline uint32_t
spmla_i_cpu_pieces(const spmla_ctx *ctx, uint32_t rows, uint32_t share,
		   uint32_t most)
{
	const uint64_t want = (uint64_t)spmla_i_cpu_workers(ctx) * share;
	const uint64_t pieces = (want + rows - 1) / rows;

	if (spmla_i_cpu_workers(ctx) == 1 || most <= 1)
		return 1;
	return pieces < most ? (uint32_t)pieces : most;
}

/* The begin of piece `piece` of `pieces` of n things; the last piece ends at n.
 */
static inline uint32_t
spmla_i_cpu_piece_start(uint32_t n, uint32_t piece, uint32_t pieces)
{
	return (uint32_t)((uint64_t)n * piece / pieces);
}

/* Tokens that write slots are distributed by slot: item slot % items has all
 * tokens that write it and takes them in order, so that the last one stays, as
 * with one worker. A few tokens are not worth the overhead. */
static inline uint32_t
spmla_i_cpu_slot_items(const spmla_ctx *ctx, uint32_t tokens)
{
	const uint32_t workers = spmla_i_cpu_workers(ctx);
	const uint32_t most = tokens / 8 + 1;

	return workers < most ? workers : most;
}

static inline void *
spmla_i_cpu_index_scratch(const spmla_ctx *ctx, uint32_t worker)
{
	const uint64_t stride = spmla_i_cpu_worker_stride(
		spmla_i_cpu_index_scratch_bytes(ctx->plan.config.index_heads));

	return (uint8_t *)ctx->buf[SPMLA_BUF_INDEX_SCRATCH] + worker * stride;
}

static inline void *
spmla_i_cpu_attend_scratch(const spmla_ctx *ctx, uint32_t worker)
{
	const uint64_t stride = spmla_i_cpu_worker_stride(
		spmla_i_cpu_attend_scratch_bytes(ctx->plan.config.heads));

	return (uint8_t *)ctx->buf[SPMLA_BUF_ATTEND_SCRATCH] + worker * stride;
}

#endif
