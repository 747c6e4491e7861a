/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched: divides the key blocks of all requests among the parts of a
 * sparse decode (split-KV).
 */
#ifndef SPMLA_OPS_TILE_SCHED_H
#define SPMLA_OPS_TILE_SCHED_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The launch parameters of FlashMLA's kernels: the number of parts, and what a
 * request costs beyond its blocks. */
typedef enum spmla_tile_rule {
	SPMLA_TILE_OLD_SM90 = 1,  /* of FlashMLA 1858932, 2025-09-30 */
	SPMLA_TILE_OLD_SM100 = 2, /* the same */
	SPMLA_TILE_SM90 = 3,
	SPMLA_TILE_SM100_HEAD64 = 4,
	SPMLA_TILE_SM100_HEAD128 = 5, /* d 512 */
	SPMLA_TILE_RULE_FORCE_32 = 0x7fffffff
} spmla_tile_rule;

/* The order of the eight words of a part. */
typedef enum spmla_tile_row {
	/* begin_req, end_req (inclusive), begin_block, end_block (exclusive),
	 * begin_split, first_req_is_split, last_req_is_split, 0 */
	SPMLA_TILE_ROW_NEW = 0,
	/* begin_req, begin_block, end_req (inclusive), end_block (exclusive),
	 * begin_split, 0, 0, 0 */
	SPMLA_TILE_ROW_OLD = 1,
	SPMLA_TILE_ROW_FORCE_32 = 0x7fffffff
} spmla_tile_row;

enum { SPMLA_TILE_BLOCK_KEYS = 64, SPMLA_TILE_ROW_ELEMS = 8 };

typedef struct spmla_tile_sched_args {
	uint32_t struct_bytes;
	uint32_t batch;           /* ..2^30; 0 is legal */
	uint32_t parts;           /* 1..2^30 */
	uint32_t overhead_blocks; /* cost of a request beyond its blocks,
				   * ..2^20 */
	uint32_t row_format;      /* spmla_tile_row */
	uint32_t topk;            /* 1..2^31 - 1 */
	uint32_t extra_topk;      /* of a second cache; 0: none */
	/* How many requests share an entry of topk_lens and of extra_topk_lens;
	 * 0 counts as 1. */
	uint32_t lens_tokens;
	const int32_t *topk_lens;         /* [batch]; NULL: topk */
	const int32_t *extra_topk_lens;   /* [batch], read if extra_topk > 0;
					 * NULL: extra_topk */
	int32_t *tile_scheduler_metadata; /* [parts][8], dense */
	int32_t *num_splits;              /* [batch + 1] */
	/* [batch + 1], of ragged lists: request i has indptr[i + 1] - indptr[i]
	 * keys, as in sparse_decode, and topk counts the entries of all. NULL:
	 * rows. */
	const int32_t *indptr;
	const int32_t *extra_indptr;
	/* 0, or fixed splits: key blocks of each. parts is then a multiple of
	 * batch, and overhead_blocks is not read. */
	uint32_t split_blocks; /* ..2^26 */
	/* Added to a request's number in reports. For the tokens behind whole
	 * ones: whole_tokens of sparse_decode. */
	uint32_t first_request;
} spmla_tile_sched_args;

/* Parts and overhead_blocks of a rule; pure. h_q and h_k are the heads of
 * queries and keys, s_q the query tokens of a batch element, all at least 1;
 * sm_count is 1..2^30. SM90 wants h_q of at least 64, the OLD rules a multiple
 * of h_k. Divisions round down, except cdiv:
 *   OLD_SM90        max((sm_count / 2) / h_k / (cdiv(h_q / h_k, 128) * s_q), 1)
 *   OLD_SM100       max(sm_count / h_k / (cdiv(h_q / h_k, 64) * s_q), 1)
 *   SM90            max(sm_count / s_q / (h_q / 64), 1)
 *   SM100_HEAD64    max(sm_count / s_q, 1)
 *   SM100_HEAD128   max(sm_count / s_q / 2, 1)
 * overhead_blocks is 3 for SM100_HEAD128 and 5 for all others.
 * Errors, in `diag` unless it is NULL: E_NULL, E_RANGE; then nothing is
 * written.
 * Source: FlashMLA. */
spmla_status spmla_tile_sched_parts(uint32_t rule, uint32_t sm_count,
				    uint32_t s_q, uint32_t h_q, uint32_t h_k,
				    uint32_t *parts, uint32_t *overhead_blocks,
				    spmla_diag *diag);

/* Shares the blocks of 64 keys of all requests out to `parts` parts, in runs of
 * about equal cost. A request costs its blocks plus overhead_blocks.
 *
 * Request i has s keys in n = cdiv(s, 64) blocks. t = max(1, keys of the first
 * list). Without extra_topk s = t; with it s = t rounded up to 64, plus the
 * second list's keys. A list has topk_lens[i] (extra_topk_lens[i]) keys, or
 * what its indptr says, or topk (extra_topk).
 * A part takes work of up to
 *   cdiv(sum of (n + overhead_blocks), parts) + overhead_blocks
 * blocks. A request costs the blocks that it has left, plus overhead_blocks.
 * Parts are filled in order. A request that does not fit is split if at least
 * one of its blocks fits. num_splits[i] is the number of splits of all requests
 * before i.
 * A part without work has begin_req = batch, end_req = batch - 1, begin_block
 * 0, end_block = n of the last request (0 if there is none), and 0 elsewhere.
 *
 * With split_blocks a request has min(cdiv(n, split_blocks), parts / batch)
 * splits. Each has split_blocks blocks; the last one has the rest. Every part
 * is one split, in order, and no two requests share a part: a request's splits
 * depend on its n alone.
 *
 * The cut decides where sums are split, never what is summed. A length outside
 * [0, topk] ([0, extra_topk]) is clamped, as in the attention; an indptr that
 * is negative, falls or leads past topk counts as no keys. Both: FAULT_LENGTH
 * with row first_request + i.
 * Alias: none. Order: enqueues; capturable. Exact: integers, sums in 64 bits.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: FlashMLA get_mla_metadata, except the rows of parts without work. */
spmla_status spmla_tile_sched(spmla_ctx *ctx, const spmla_tile_sched_args *args,
			      spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
