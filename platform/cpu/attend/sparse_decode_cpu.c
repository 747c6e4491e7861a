/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode on the CPU. The hard idea: in each block of 64 entries, the
 * rows that count are dequantised once, packed, and then serve all heads. Rows
 * that do not count are never loaded, so nothing has to be masked and a NaN
 * there cannot meet a zero. A block is 64 entries of a list, whether they count
 * or not. So the number of a block fixes its contents, and parts can share a
 * token. Heads share only the keys: where tokens are few, workers share the
 * heads of a token.
 */
#include <math.h>

#include "spmla/platform/cpu/attend/decode_key_cpu.h"

enum {
	BLOCK = SPMLA_I_CPU_BLOCK_KEYS,
	TILE_HEADS = 4, /* heads of a tile of the vector kernels */
	/* A piece loads the keys once more, which costs as much as some 8 to 16
	 * heads. Example: 32 workers cut each of 4 tokens with 128 heads into 8
	 * pieces of 16 heads, and a single token into 16 pieces of 8. */
	PIECE_HEADS = 8
};

/* The work of a worker. */
typedef struct job {
	spmla_ctx *ctx;
	const spmla_sparse_decode_args *a;
	spmla_i_cpu_attend w;
	uint32_t quiet; /* another piece reports the faults of these slots */
} job;

/* A token's two lists. */
typedef struct keys {
	spmla_i_cpu_list list;
	spmla_i_cpu_list extra;
	uint32_t first_blocks; /* blocks of the first list, at least 1 */
	uint32_t blocks;       /* blocks of both */
} keys;

/* Finds token t's lists; reports a bad indptr. */
static keys
keys_of(const job *j, uint32_t t)
{
	const spmla_sparse_decode_args *a = j->a;
	keys k;

	memset(&k, 0, sizeof k);
	k.list = spmla_i_cpu_list_of(a->slots, a->slots_stride_elems,
				     a->topk_lens, a->lens_tokens, a->indptr,
				     a->topk, t);
	k.first_blocks = k.list.len > 0 ? (k.list.len - 1) / BLOCK + 1 : 1;
	if (a->extra_topk > 0)
		k.extra = spmla_i_cpu_list_of(
			a->extra_slots, a->extra_slots_stride_elems,
			a->extra_topk_lens, a->lens_tokens, a->extra_indptr,
			a->extra_topk, t);
	k.blocks = k.first_blocks +
		   (k.extra.len > 0 ? (k.extra.len - 1) / BLOCK + 1 : 0);
	if (k.list.is_bad && !j->quiet)
		spmla_i_cpu_fault(j->ctx, t, SPMLA_FAULT_INDEX);
	if (k.extra.is_bad && !j->quiet)
		spmla_i_cpu_fault(j->ctx, t, SPMLA_FAULT_INDEX);
	return k;
}

/* Packs the rows that count in a list's next block; returns their number.
 * `left` entries of the list remain, so rows behind the block are prefetched
 * before this one is computed. */
static uint32_t
gather(const job *j, const spmla_cache *cache, const int32_t *slots,
       uint32_t left, uint32_t token)
{
	const uint64_t limit = (uint64_t)cache->pages * cache->entries_per_page;
	const uint32_t n = spmla_i_cpu_block_len(0, left);
	uint32_t count = 0, i;

	for (i = 0; i < n; i++) {
		const int32_t ahead = left - i > SPMLA_I_CPU_ASK_AHEAD
					      ? slots[i + SPMLA_I_CPU_ASK_AHEAD]
					      : -1;

		if (ahead >= 0 && (uint32_t)ahead < limit)
			spmla_i_cpu_ask_key(cache, (uint32_t)ahead);
		if (slots[i] == -1)
			continue;
		if (slots[i] < 0 || (uint32_t)slots[i] >= limit) {
			if (!j->quiet)
				spmla_i_cpu_fault(j->ctx, token,
						  SPMLA_FAULT_INDEX);
			continue;
		}
		spmla_i_cpu_load_key(j->w.kernels, cache, (uint32_t)slots[i],
				     spmla_i_cpu_attend_key(&j->w, count));
		count++;
	}
	return count;
}

/* Attends to blocks [begin, end) of a token, from empty accumulators. */
static void
attend_blocks(const job *j, uint32_t t, const keys *k, uint32_t begin,
	      uint32_t end)
{
	const spmla_sparse_decode_args *a = j->a;
	const uint32_t any =
		begin < end && (k->list.len > 0 || k->extra.len > 0);
	uint32_t b, first;

	spmla_i_cpu_attend_start(
		&j->w,
		any ? a->q + spmla_i_cpu_token_at(t, a->next_n,
						  a->q_request_stride_elems,
						  a->q_token_stride_elems)
		    : NULL,
		a->q_head_stride_elems);
	for (b = begin; any && b < end; b++) {
		const uint32_t extra = b >= k->first_blocks;
		const spmla_i_cpu_list *list = extra ? &k->extra : &k->list;

		first = (extra ? b - k->first_blocks : b) * BLOCK;
		spmla_i_cpu_attend_block(
			&j->w,
			gather(j, extra ? &a->extra_cache : &a->cache,
			       list->entries + first, list->len - first, t));
	}
}

/* Writes a token's results. */
static void
finish(const job *j, uint32_t token)
{
	const spmla_sparse_decode_args *a = j->a;
	const spmla_i_cpu_attend *w = &j->w;
	const int64_t out_at = spmla_i_cpu_token_at(token, a->next_n,
						    a->out_request_stride_elems,
						    a->out_token_stride_elems);
	const int64_t lse_at = spmla_i_cpu_token_at(token, a->next_n,
						    a->lse_request_stride_elems,
						    a->lse_token_stride_elems);
	const spmla_i_cpu_lse form = {a->lse_base, a->empty_lse,
				      a->lse_sink ? a->attn_sink : NULL};
	uint32_t h;

	for (h = 0; h < a->heads; h++) {
		spmla_i_cpu_attend_out(
			w, h, a->attn_sink ? &a->attn_sink[h] : NULL,
			a->out + out_at + h * a->out_head_stride_elems);
		if (a->lse)
			a->lse[lse_at + h * a->lse_head_stride_elems] =
				spmla_i_cpu_attend_result_lse(w, h, &form);
	}
}

/* Writes a split's partial results. */
static void
finish_split(const job *j, uint32_t row)
{
	const spmla_sparse_decode_args *a = j->a;
	const spmla_i_cpu_attend *w = &j->w;
	uint32_t h;

	for (h = 0; h < a->heads; h++) {
		const uint64_t at = (uint64_t)row * a->heads + h;

		spmla_i_cpu_attend_partial(
			w, h, a->split_out + at * SPMLA_MLA_LATENT);
		a->split_lse[at] = spmla_i_cpu_attend_empty(w, h)
					   ? -INFINITY
					   : spmla_i_cpu_attend_lse2(w, h);
	}
}

/* Does split `split` of request r: blocks [begin, end), which are not checked
 * yet. */
static void
run_split(const job *j, uint32_t r, int32_t split, int32_t begin, int32_t end)
{
	const spmla_sparse_decode_args *a = j->a;
	const uint32_t t = a->whole_tokens + r;
	const keys k = keys_of(j, t);
	const int64_t first = a->num_splits[r], next = a->num_splits[r + 1];
	const int64_t row = first + split;

	if (begin < 0 || end < begin) {
		spmla_i_cpu_fault(j->ctx, t, SPMLA_FAULT_INDEX);
		begin = begin < 0 ? 0 : begin;
		end = end < begin ? begin : end;
	}
	if (split < 0 || row < 0 || row >= next ||
	    (next - first > 1 && row >= a->split_rows)) {
		spmla_i_cpu_fault(j->ctx, t, SPMLA_FAULT_INDEX);
		return;
	}
	attend_blocks(j, t, &k, (uint32_t)begin,
		      (uint32_t)end < k.blocks ? (uint32_t)end : k.blocks);
	if (next - first == 1)
		finish(j, t);
	else
		finish_split(j, (uint32_t)row);
}

static job
job_of(spmla_ctx *ctx, const spmla_sparse_decode_args *a, uint32_t worker)
{
	const uint32_t v4 = a->cache.layout == SPMLA_LAYOUT_V4_FP8;
	const job j = {
		ctx, a,
		spmla_i_cpu_attend_open(ctx, worker, a->heads,
					v4 ? SPMLA_V4_DIM : SPMLA_MLA_DIM,
					a->softmax_scale),
		0};

	return j;
}

/* The tokens that parts share: the requests of the metadata. */
static uint32_t
requests_of(const spmla_sparse_decode_args *a)
{
	return a->tokens - a->whole_tokens;
}

/* Does the part of this row: begin_req, end_req, begin_block, end_block,
 * begin_split. */
static void
run_part(const job *j, uint32_t part)
{
	const spmla_sparse_decode_args *a = j->a;
	const int32_t *m = a->tile_scheduler_metadata +
			   (uint64_t)part * SPMLA_TILE_ROW_ELEMS;
	const int64_t requests = requests_of(a);
	int64_t r;

	if (m[0] >= requests)
		return;
	if (m[0] < 0 || m[1] < m[0] || m[1] >= requests) {
		spmla_i_cpu_fault(j->ctx, part, SPMLA_FAULT_INDEX);
		return;
	}
	for (r = m[0]; r <= m[1]; r++) {
		const int32_t begin = r == m[0] ? m[2] : 0;
		const int32_t end = r == m[1] ? m[3] : INT32_MAX;

		run_split(j, (uint32_t)r, r == m[0] ? m[4] : 0, begin, end);
	}
}

/* Does a whole token, or a part: the parts follow the whole tokens. */
static void
run_work(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	const spmla_sparse_decode_args *a = args;
	const job j = job_of(ctx, a, worker);
	keys k;

	if (item >= a->whole_tokens) {
		run_part(&j, item - a->whole_tokens);
		return;
	}
	k = keys_of(&j, item);
	attend_blocks(&j, item, &k, 0, k.blocks);
	finish(&j, item);
}

/* Whether no two parts write the same row: splits and requests ascend, as
 * tile_sched makes them. Otherwise parts run in order, and the last one's
 * results stay. */
static uint32_t
parts_apart(const spmla_sparse_decode_args *a)
{
	const int64_t requests = requests_of(a);
	int32_t request = -1, split = 0; /* the last one so far */
	uint32_t r, p;

	for (r = 0; r < requests_of(a); r++)
		if (a->num_splits[r + 1] < a->num_splits[r])
			return 0;
	for (p = 0; p < a->parts; p++) {
		const int32_t *m = a->tile_scheduler_metadata +
				   (uint64_t)p * SPMLA_TILE_ROW_ELEMS;

		if (m[0] < 0 || m[1] < m[0] || m[1] >= requests)
			continue; /* does nothing */
		if (m[0] < request || (m[0] == request && m[4] <= split))
			return 0;
		split = m[1] == m[0] ? m[4] : 0;
		request = m[1];
	}
	return 1;
}

static uint32_t
pieces_of(const spmla_ctx *ctx, const spmla_sparse_decode_args *a)
{
	return spmla_i_cpu_pieces(ctx, a->tokens, 1, a->heads / PIECE_HEADS);
}

/* Does some heads of one token: the same call for these heads only. */
static void
run_piece(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	spmla_sparse_decode_args a = *(const spmla_sparse_decode_args *)args;
	const uint32_t pieces = pieces_of(ctx, &a);
	const uint32_t tiles = (a.heads - 1) / TILE_HEADS + 1;
	const uint32_t t = item / pieces, piece = item % pieces;
	const uint32_t first =
		TILE_HEADS * spmla_i_cpu_piece_start(tiles, piece, pieces);
	const uint32_t end =
		TILE_HEADS * spmla_i_cpu_piece_start(tiles, piece + 1, pieces);
	keys k;
	job j;

	a.heads = (end < a.heads ? end : a.heads) - first;
	a.q += first * a.q_head_stride_elems;
	a.out += first * a.out_head_stride_elems;
	if (a.attn_sink)
		a.attn_sink += first;
	if (a.lse)
		a.lse += first * a.lse_head_stride_elems;
	j = job_of(ctx, &a, worker);
	j.quiet = piece > 0;
	k = keys_of(&j, t);
	attend_blocks(&j, t, &k, 0, k.blocks);
	finish(&j, t);
}

void
spmla_i_cpu_sparse_decode(spmla_ctx *ctx, const void *args)
{
	const spmla_sparse_decode_args *a = args;

	if (a->parts == 0)
		spmla_i_cpu_for(ctx, a, a->tokens * pieces_of(ctx, a),
				run_piece);
	else if (spmla_i_cpu_workers(ctx) > 1 && parts_apart(a))
		spmla_i_cpu_for(ctx, a, a->whole_tokens + a->parts, run_work);
	else
		spmla_i_cpu_in_order(ctx, a, a->whole_tokens + a->parts,
				     run_work);
}
