/* SPDX-License-Identifier: Apache-2.0
 *
 * Split-KV decode for engines that call operations: the library chooses the
 * parts, by the layers' rule, and states their memory; one call cuts, attends
 * and combines.
 */
#ifndef SPMLA_DECODE_PARTS_H
#define SPMLA_DECODE_PARTS_H

#include "spmla/ops/sparse_decode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a decode in parts takes. */
typedef struct spmla_decode_parts {
	uint32_t struct_bytes;
	/* 0: the tokens keep the device busy by themselves, so the decode runs
	 * whole, and all else here is 0. Otherwise the parts share the tokens
	 * behind the first whole_tokens ones. */
	uint32_t parts;
	uint32_t split_rows;      /* of split_out and split_lse */
	uint32_t overhead_blocks; /* of tile_sched */
	/* What each buffer takes: int32 [parts][8], int32 [tokens -
	 * whole_tokens + 1], f32 [split_rows][heads][512] and f32
	 * [split_rows][heads]. */
	uint64_t tile_scheduler_metadata_bytes;
	uint64_t num_splits_bytes;
	uint64_t split_out_bytes;
	uint64_t split_lse_bytes;
	uint64_t workspace_bytes; /* all four, each aligned to 256 bytes */
	uint32_t split_blocks;    /* of tile_sched */
	uint32_t whole_tokens;    /* of sparse_decode */
} spmla_decode_parts;

#define SPMLA_DECODE_PARTS_INIT                                               \
	{                                                                     \
		(uint32_t)sizeof(spmla_decode_parts), 0, 0, 0, 0, 0, 0, 0, 0, \
			0, 0                                                  \
	}

/* The library's choice for a decode on the context's device: in how many parts,
 * or whole. It reads no length on the device, so a captured graph may rely on
 * it.
 *
 * From args it reads tokens, heads, topk, extra_topk, lens_tokens and
 * cache.layout; whether indptr and extra_indptr are set, and then longest and
 * extra_longest; with args->workspace also what sparse_decode reads to decide
 * whether it uses it.
 *
 * On the CPU a decode is always whole. On a GPU without
 * SPMLA_CONFIG_BATCH_INVARIANT it is whole if the tokens keep the device busy
 * by themselves, or if args->workspace serves them in one launch. Tokens that
 * fill the device once or several times stay whole, and parts share those
 * behind them. So more tokens may need more bytes, fewer or none: ask for each
 * number.
 *
 * With SPMLA_CONFIG_BATCH_INVARIANT only CUDA splits, and only tokens without a
 * second list. A split has max(4, cdiv(blocks, 4)) key blocks, where blocks
 * follows from topk (ragged: longest) alone. The decode is whole if a token has
 * one split, if a ragged list has longest 0, or if args->workspace serves it in
 * one launch, as it may with up to 16 heads. A token's bits then do not
 * depend on the other tokens, if args->workspace is NULL in every call or large
 * enough for each.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE (heads 1..config.heads). Pure. */
spmla_status spmla_decode_parts_choose(spmla_ctx *ctx,
				       const spmla_sparse_decode_args *args,
				       spmla_decode_parts *parts);

/* Runs spmla_sparse_decode by that choice. `workspace` (not args->workspace)
 * holds metadata and splits; nothing else may use it until the operations have
 * run. args->parts must be 0. args->combine, args->whole_tokens and the fields
 * from tile_scheduler_metadata to split_rows are ignored. `workspace` may be
 * NULL if workspace_bytes of the choice is 0. Lengths out of bounds are
 * reported for tokens that parts share (FAULT_LENGTH, row = the token), not for
 * whole ones.
 * Order: enqueues up to three operations; capturable.
 * Exact: as the three operations.
 * Errors: E_NULL; E_STRUCT_SIZE; E_RANGE, also for a workspace that is too
 * small or not aligned to 256 bytes. Nothing is enqueued then. */
spmla_status spmla_sparse_decode_in_parts(spmla_ctx *ctx,
					  const spmla_sparse_decode_args *args,
					  void *workspace,
					  uint64_t workspace_bytes,
					  spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
