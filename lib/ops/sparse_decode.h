/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode: attention of each token over its selected cache rows. dim, of
 * a query and of a key, is 576 (FP8_DS_MLA, MLA_BF16) or 512 (V4_FP8).
 */
#ifndef SPMLA_OPS_SPARSE_DECODE_H
#define SPMLA_OPS_SPARSE_DECODE_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_sparse_decode_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t heads;               /* 1..config.heads */
	uint32_t topk;                /* entries of a row of slots, 1 or more */
	uint32_t empty_lse;           /* spmla_empty_lse */
	float softmax_scale;          /* > 0, <= 2^126 */
	const uint16_t *q;            /* bf16 [tokens][heads][dim] */
	int64_t q_token_stride_elems; /* >= dim */
	int64_t q_head_stride_elems;  /* >= dim */
	const int32_t *slots; /* [tokens][slots_stride_elems]; ragged: [topk] */
	int64_t slots_stride_elems; /* >= topk */
	const int32_t *topk_lens; /* [tokens]: entries that count; NULL: topk */
	const float *attn_sink;   /* [heads], natural log units; NULL: none */
	uint16_t *out;            /* bf16 [tokens][heads][512] */
	int64_t out_token_stride_elems; /* >= 512 */
	int64_t out_head_stride_elems;  /* >= 512 */
	float *lse;                     /* NULL: not wanted, nor its strides */
	int64_t lse_token_stride_elems; /* >= 1 */
	int64_t lse_head_stride_elems;  /* >= 1 */
	spmla_cache cache;              /* FP8_DS_MLA, MLA_BF16 or V4_FP8 */
	/* Keys of a second cache, after the first one's; V4_FP8 only. */
	uint32_t extra_topk; /* 0: none, and no extra_ field is read */
	uint32_t parts; /* 0: no splits, and none of the split fields is read */
	const int32_t *extra_slots; /* [tokens][extra_slots_stride_elems] */
	int64_t extra_slots_stride_elems; /* >= extra_topk */
	const int32_t *extra_topk_lens;   /* [tokens]; NULL: extra_topk */
	spmla_cache extra_cache; /* V4_FP8, with a page size of its own */
	/* The work of each part, as tile_sched makes it with batch = tokens -
	 * whole_tokens and SPMLA_TILE_ROW_NEW. */
	const int32_t *tile_scheduler_metadata; /* [parts][8] */
	const int32_t *num_splits; /* [tokens - whole_tokens + 1] */
	float *split_out;          /* [split_rows][heads][512], dense */
	float *split_lse;          /* [split_rows][heads], dense, base 2 */
	/* tokens - whole_tokens + parts are enough */
	uint32_t split_rows;
	/* 0: token t is at t * token stride. Otherwise at (t / next_n) *
	 * request stride + (t % next_n) * token stride. */
	uint32_t next_n;
	/* Ragged, for each list separately: token t has the entries indptr[t]
	 * .. indptr[t + 1] - 1 of slots. topk is then the length of slots, and
	 * neither the stride nor topk_lens is read. NULL: rows. */
	const int32_t *indptr;       /* [tokens + 1] */
	const int32_t *extra_indptr; /* [tokens + 1], of extra_slots */
	/* Read if next_n > 0. */
	int64_t q_request_stride_elems;   /* >= dim */
	int64_t out_request_stride_elems; /* >= 512 */
	int64_t lse_request_stride_elems; /* >= 1, with lse */
	/* How many consecutive tokens share an entry of topk_lens and of
	 * extra_topk_lens, which are then [cdiv(tokens, lens_tokens)]; 0: 1. */
	uint32_t lens_tokens;
	uint32_t lse_base; /* spmla_lse_base */
	uint32_t lse_sink; /* 1: lse counts the sink; split_lse never does */
	/* 1: with parts, out and lse are complete after the call, as if
	 * spmla_split_combine followed; the split rows are then scratch. */
	uint32_t combine;
	/* Scratch with which a Hopper GPU does the call in one launch: few
	 * tokens without parts, or parts with `combine`. NULL: none. It must be
	 * 0 before the first call and is 0 after each; overlapping calls need
	 * one each (DECODE_WORKSPACE is one).
	 * Few tokens: e4m3 * scale is not rounded, and sums have another order.
	 * Parts: splits are rounded to bf16. The workspace has 8 * (tokens -
	 * whole_tokens) * cdiv(heads, 64) bytes; zero it again after bad
	 * metadata (below).
	 * It is ignored
	 * - if it is too small, for FNUZ and MLA_BF16, and for page strides
	 *   that are not multiples of 16;
	 * - for few tokens: if it, q or out is not aligned to 16 bytes;
	 * - for parts: if q, out, split_out or pages are not aligned to 16
	 *   bytes.
	 * With SPMLA_CONFIG_BATCH_INVARIANT there are no few tokens, except
	 * that any number of tokens of FP8_DS_MLA rows counts as few with up to
	 * 16 heads and 2048 entries (topk, or longest). The workspace then has
	 * 266368 bytes for each token. */
	uint32_t *workspace;
	uint64_t workspace_bytes;
	/* Ragged lists: the most entries of a token. 0: unknown, and few tokens
	 * do not use the workspace. A token with more entries may then be
	 * empty: FAULT_INDEX. */
	uint32_t longest;
	uint32_t extra_longest;
	/* With parts: the first whole_tokens tokens are done whole, and the
	 * parts share the others, which metadata and num_splits count from 0.
	 * At most `tokens` and 2^32 - 1 - parts. */
	uint32_t whole_tokens;
	uint32_t reserved; /* 0 */
} spmla_sparse_decode_args;

/* Each token attends over the cache rows that its list names. Without parts the
 * call makes each token's result. With parts (split-KV) thread blocks share
 * tokens, and split_combine merges their results.
 *
 * Keys. Entry p of a token counts if slots[p] != -1 and p < topk_lens[t],
 * clamped to [0, topk]. The entries of the second cache follow, by the same
 * rule. In a ragged list every entry except -1 counts. A bad indptr (negative,
 * falling, or past topk) makes the list empty: FAULT_INDEX, once per part with
 * that token, or once if it is whole. A ragged list gives the bits of a row
 * with the same entries; with a workspace, only if `longest` is that row's
 * topk. A slot outside its cache does not count: FAULT_INDEX. A slot that occurs
 * twice counts twice.
 *
 * Rows. K is the dim values of the row, V its first 512. A value of a
 * FP8_DS_MLA row is e4m3 * scale, one of a V4_FP8 row e4m3 * 2^(byte - 127),
 * where the byte 255 stands for NaN. Each cache has its own encoding; FNUZ
 * caches use the portable kernel, unless SPMLA_CONFIG_ALLOW_UNPROVEN is set.
 * Rows that do not count are never read; a NaN in a row that counts goes
 * through the arithmetic.
 *
 * Rounding of values.
 * - The CPU rounds the product to f32.
 * - Hopper rounds it to f16 if q, out, split_out and pages are aligned to 16
 *   bytes. Few tokens with a workspace do not round it.
 * - All other kernels round it to bf16. So does Hopper, without
 *   SPMLA_CONFIG_BATCH_INVARIANT, in small calls in parts that do not add up
 *   their splits: tokens * cdiv(heads, 16) <= 16.
 *
 * Attention, in f32, over the keys that count:
 *   s = q . k, max = the largest s
 *   p = exp2((s - max) * softmax_scale * log2 e)
 *   L = sum of p, O = sum of p * v
 *   out = bf16(O / (L + exp(sink - max * softmax_scale)))
 *   lse = ln(sum of exp(softmax_scale * s)), plus exp(sink) in the sum with
 *         lse_sink; SPMLA_LSE_BASE2 multiplies it by log2 e
 * A sink of +inf makes out 0, of either sign; a sink of -inf changes nothing.
 * Sinks beyond 2.36e38 count as infinite: f32 does not hold them in log2 units.
 * With parts the same limit holds for scores times softmax_scale: a score that
 * counts as +inf makes out and lse NaN, one that counts as -inf weighs nothing.
 * A token without keys, or whose every s is -inf, has out = +0 and lse as
 * empty_lse says. Where |v| of a token's keys add up to 2^117, f32 may not hold
 * s or O: then out may be infinite and lse too small.
 *
 * Parts (split-KV). A block is 64 entries, in order, whether they count or not;
 * the second cache starts a new block. Token t has max(1, cdiv(topk_len, 64)) +
 * cdiv(extra_len, 64) blocks. Request r of the metadata is token whole_tokens +
 * r. Part p does the blocks from begin_block of request begin_req to end_block
 * of request end_req, and all blocks of the requests between. A token with one
 * split gets its results as above. Otherwise split i of request r goes to row
 * num_splits[r] + i of split_out and split_lse:
 *   split_out = O / L
 *   split_lse = log2 of the sum of exp2(c * s), c = softmax_scale * log2 e
 * both without the sink; a split without keys has 0 and -inf.
 * spmla_split_combine, with the same strides and lse, then makes the results;
 * with `combine` this call does.
 * The flags of a part are not read.
 *
 * Bad metadata. A part that begins behind the last request has no work. A part
 * that names requests before 0, ends past the last, or ends before it begins
 * does nothing: FAULT_INDEX, row = the part. Blocks past the end of a token are
 * skipped without a report, because metadata may be made for more keys than the
 * lengths then say. If begin_block is below 0, or end_block before begin_block,
 * only existing blocks are done: FAULT_INDEX, row = the token. A split row that
 * is not one of the token's, or >= split_rows, is not written: FAULT_INDEX, row
 * = the token. With `combine`, a token that has parts, whose num_splits[r + 1] -
 * num_splits[r] is not 1, and that has no split rows or not all of them
 * (num_splits[r] < 0, num_splits[r + 1] <= num_splits[r] or > split_rows), has
 * the results of a token without keys: FAULT_INDEX at least once, row = the
 * token. Tokens that no part covers are not written, unless they are whole, nor
 * is, with `combine`, one of which a split is not written.
 *
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable.
 * Deterministic: a row's bits depend only on that row, and on Hopper on the
 * alignment above.
 * - With parts also on: whether it is whole and where it is split, whether the
 *   workspace is used (above) and, without SPMLA_CONFIG_BATCH_INVARIANT,
 *   `tokens`.
 * - By tiles (HIP and Level Zero, with SPMLA_CONFIG_ALLOW_UNPROVEN) also on:
 *   heads.
 * - With a workspace and no parts also on: `tokens`, heads, topk and extra_topk
 *   (ragged: longest and extra_longest). With SPMLA_CONFIG_BATCH_INVARIANT not
 *   on `tokens`, and on the others only by whether they are within the limits
 *   above, if the workspace is large enough in every call, or NULL in every.
 * Exact: out is within 1e-3 + 2.01/128 |x|, lse within 1e-6 + 8.01/65536 |x| of
 * the exact result x over the values; in kernels that round values to bf16,
 * over these. Where values cancel, the error of out is up to 2^-8 of the
 * weighted mean of |v|; the error of lse up to 2^-18 (on Hopper 2^-11) of the
 * largest sum of |terms| of a score, times softmax_scale.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: FlashMLA sparse decode, sm_90, each block a split. */
spmla_status spmla_sparse_decode(spmla_ctx *ctx,
				 const spmla_sparse_decode_args *args,
				 spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
