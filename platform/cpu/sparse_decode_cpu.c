/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode on the CPU. The hard idea: the rows that count of each block of
 * 64 entries are dequantised once, packed, and then serve all heads; rows that
 * do not count are never loaded, so nothing has to be masked and a NaN there
 * cannot meet a zero. A block is 64 entries of the list, whether they count or
 * not: -1 entries leave the blocks of the others where they are.
 */
#include <float.h>
#include <math.h>

#include "spmla/internal/cpu_scratch.h"
#include "spmla/platform/cpu/cpu.h"

#define LOG2_E 1.44269504088896341f
#define LN_2   0.693147180559945309f

/* ATTEND_SCRATCH; the order and sizes are cpu_scratch.h's. */
typedef struct work {
	float *keys; /* [64][576], the block's rows that count */
	float *q;    /* [heads][576] */
	float *o;    /* [heads][512], sum of p * v */
	float *max;  /* [heads], largest score so far, unscaled */
	float *sum;  /* [heads], L */
	float *p;    /* [64], scores and then weights */
} work;

static work
lay_out(float *scratch, uint32_t heads)
{
	work w;

	w.keys = scratch;
	w.q = w.keys + SPMLA_I_CPU_BLOCK_KEYS * SPMLA_MLA_DIM;
	w.o = w.q + (uint64_t)heads * SPMLA_MLA_DIM;
	w.max = w.o + (uint64_t)heads * SPMLA_MLA_LATENT;
	w.sum = w.max + heads;
	w.p = w.sum + heads;
	return w;
}

static void
load_bf16(const uint8_t *bytes, uint32_t n, float *values)
{
	uint16_t half;
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&half, bytes + i * sizeof half, sizeof half);
		values[i] = spmla_i_bf16_to_f32(half);
	}
}

/* One group of 128 latent values. e4m3 times a bf16 scale is exact in f32, so
 * one rounding to bf16 equals the bf16 product of the sm_90 kernel. */
static void
load_group(const uint8_t *codes, const uint8_t *scale_bytes, float *values)
{
	float scale;
	uint32_t i;

	memcpy(&scale, scale_bytes, sizeof scale);
	scale = spmla_i_round_bf16(scale);
	for (i = 0; i < SPMLA_MLA_SCALE_GROUP; i++)
		values[i] = spmla_i_round_bf16(spmla_i_e4m3_to_f32(codes[i]) *
					       scale);
}

/* One cache row as f32. */
static void
load_key(const spmla_cache *cache, uint32_t slot, float *key)
{
	const uint64_t entry = slot % cache->entries_per_page;
	const uint8_t *page =
		spmla_i_cpu_page_at(cache, slot / cache->entries_per_page);
	const uint8_t *bytes = page + entry * SPMLA_FP8_DS_MLA_BYTES;
	uint32_t g;

	if (cache->layout == SPMLA_LAYOUT_MLA_BF16) {
		load_bf16(page + entry * SPMLA_MLA_BF16_BYTES, SPMLA_MLA_DIM,
			  key);
		return;
	}
	for (g = 0; g < SPMLA_MLA_SCALES; g++)
		load_group(bytes + g * SPMLA_MLA_SCALE_GROUP,
			   bytes + SPMLA_FP8_DS_MLA_SCALE_BYTE +
				   g * sizeof(float),
			   key + g * SPMLA_MLA_SCALE_GROUP);
	load_bf16(bytes + SPMLA_FP8_DS_MLA_ROPE_BYTE, SPMLA_MLA_ROPE,
		  key + SPMLA_MLA_LATENT);
}

/* Packs the rows that count among n entries; returns how many do. */
static uint32_t
gather(spmla_ctx *ctx, const spmla_cache *cache, const int32_t *slots,
       uint32_t n, uint32_t token, float *keys)
{
	const uint64_t limit = (uint64_t)cache->pages * cache->entries_per_page;
	uint32_t count = 0, i;

	for (i = 0; i < n; i++) {
		if (slots[i] == -1)
			continue;
		if (slots[i] < 0 || (uint32_t)slots[i] >= limit) {
			spmla_i_cpu_fault(ctx, token, SPMLA_FAULT_INDEX);
			continue;
		}
		load_key(cache, (uint32_t)slots[i],
			 keys + (uint64_t)count * SPMLA_MLA_DIM);
		count++;
	}
	return count;
}

/* o += p * v */
static void
add_scaled(float *restrict o, float p, const float *restrict v)
{
	uint32_t d;

	for (d = 0; d < SPMLA_MLA_LATENT; d++)
		o[d] += p * v[d];
}

/* One head's online softmax over a block of `count` keys; c is the softmax
 * scale in log2 units. Weights are rounded to bf16 relative to the block's own
 * maximum and only then brought to the running one, so that a block's
 * contribution does not depend on the blocks before it: this is what the split
 * kernel computes where each block is a split. */
static void
attend_block(const work *w, uint32_t head, uint32_t count, float c)
{
	const float *q = w->q + (uint64_t)head * SPMLA_MLA_DIM;
	float *o = w->o + (uint64_t)head * SPMLA_MLA_LATENT;
	float block = -FLT_MAX, max = w->max[head];
	float rescale, share, sum;
	uint32_t i, d;

	for (i = 0; i < count; i++) {
		w->p[i] = spmla_i_cpu_dot(q,
					  w->keys + (uint64_t)i * SPMLA_MLA_DIM,
					  SPMLA_MLA_DIM);
		block = w->p[i] > block ? w->p[i] : block;
	}
	max = block > max ? block : max;
	rescale = exp2f((w->max[head] - max) * c);
	share = exp2f((block - max) * c);
	sum = w->sum[head] * rescale;
	if (rescale != 1.0f)
		for (d = 0; d < SPMLA_MLA_LATENT; d++)
			o[d] *= rescale;
	for (i = 0; i < count; i++) {
		const float p = exp2f((w->p[i] - block) * c);

		sum += p * share;
		add_scaled(o, spmla_i_round_bf16(p) * share,
			   w->keys + (uint64_t)i * SPMLA_MLA_DIM);
	}
	w->max[head] = max;
	w->sum[head] = sum;
}

/* Writes one head's result. L is 0 if no key counts (or every score is -inf):
 * then the largest weight was not 1. */
static void
finish(const spmla_sparse_decode_args *a, const work *w, uint32_t token,
       uint32_t head, float c)
{
	const float *o = w->o + (uint64_t)head * SPMLA_MLA_LATENT;
	uint16_t *out = a->out + token * a->out_token_stride_elems +
			head * a->out_head_stride_elems;
	const float sum = w->sum[head];
	float total = sum;
	float lse;
	uint32_t d;

	if (sum == 0.0f) {
		memset(out, 0, SPMLA_MLA_LATENT * sizeof *out);
		lse = a->empty_lse == SPMLA_EMPTY_LSE_PLUS_INF ? INFINITY
							       : -INFINITY;
	} else {
		if (a->attn_sink)
			total += exp2f(a->attn_sink[head] * LOG2_E -
				       w->max[head] * c);
		for (d = 0; d < SPMLA_MLA_LATENT; d++)
			out[d] = spmla_i_f32_to_bf16(o[d] / total);
		lse = log2f(sum) * LN_2 + w->max[head] * a->softmax_scale;
	}
	if (a->lse)
		a->lse[token * a->lse_token_stride_elems +
		       head * a->lse_head_stride_elems] = lse;
}

/* Decodes a token's queries and empties its accumulators. */
static void
start(const spmla_sparse_decode_args *a, const work *w, uint32_t token,
      uint32_t len)
{
	uint32_t h;

	for (h = 0; h < a->heads; h++) {
		const uint16_t *q = a->q + token * a->q_token_stride_elems +
				    h * a->q_head_stride_elems;

		w->max[h] = -FLT_MAX;
		w->sum[h] = 0.0f;
		if (len > 0)
			load_bf16((const uint8_t *)q, SPMLA_MLA_DIM,
				  w->q + (uint64_t)h * SPMLA_MLA_DIM);
	}
	if (len > 0)
		memset(w->o, 0,
		       (uint64_t)a->heads * SPMLA_MLA_LATENT * sizeof *w->o);
}

void
spmla_i_cpu_sparse_decode(spmla_ctx *ctx, const void *args)
{
	const spmla_sparse_decode_args *a = args;
	const work w = lay_out(ctx->buf[SPMLA_BUF_ATTEND_SCRATCH], a->heads);
	const float c = a->softmax_scale * LOG2_E;
	uint32_t t, h, first, n, count;

	for (t = 0; t < a->tokens; t++) {
		const int32_t *slots = a->slots + t * a->slots_stride_elems;
		uint32_t len = a->topk;

		if (a->topk_lens && a->topk_lens[t] < (int64_t)len)
			len = a->topk_lens[t] > 0 ? (uint32_t)a->topk_lens[t]
						  : 0;
		start(a, &w, t, len);
		for (first = 0; first < len; first += n) {
			n = len - first < SPMLA_I_CPU_BLOCK_KEYS
				    ? len - first
				    : SPMLA_I_CPU_BLOCK_KEYS;
			count = gather(ctx, &a->cache, slots + first, n, t,
				       w.keys);
			for (h = 0; count > 0 && h < a->heads; h++)
				attend_block(&w, h, count, c);
		}
		for (h = 0; h < a->heads; h++)
			finish(a, &w, t, h, c);
	}
}
