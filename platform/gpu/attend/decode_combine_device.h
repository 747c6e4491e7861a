/* SPDX-License-Identifier: Apache-2.0
 *
 * How blocks of sparse_decode_wgmma add up splits without a second kernel. The
 * blocks meant are those with the splits of one token, for the same 64 of its
 * heads. Each block writes its split (out as bf16, and lse) to the split rows,
 * counts itself in and waits for the others. Then each adds the heads h with h
 * % splits == its own split, in the order of splits.
 *
 * The hard idea is a wait that ends though another stream may keep a block from
 * beginning. A block that has waited too long, or has other work to do, marks
 * its heads as left. The last block to arrive finds the marks and adds those
 * heads, too. The order is the same, so the bits are the same. With many splits
 * no block waits, and the last one adds all heads.
 *
 * A token's counts are 0 before and after: the block that finishes last clears
 * them.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_COMBINE_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_COMBINE_DEVICE_H

#include "spmla/platform/gpu/attend/decode_memory_device.h"

/* Reads of a count until a block gives up: some 200 us on an H100. */
#ifdef SPMLA_EMULATOR
enum { DECODE_PATIENCE = 16 };
#else
enum { DECODE_PATIENCE = 256 };
#endif

enum {
	/* Words of a token and a group of 64 heads. Word 0: how many blocks
	 * have arrived; from bit DECODE_LEFT_AT on, which splits left their
	 * heads. Word 1: how many blocks are done with word 0. */
	DECODE_COUNTS = 2,
	DECODE_LEFT_AT = 12,
	DECODE_WAITERS = 20, /* with more splits no block waits */
	DECODE_AT_ONCE = 4   /* splits whose values a lane has in flight */
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* A token's splits, for a block's heads. It is made anew for each token: no
 * registers are left to keep it. */
typedef struct decode_splits {
	uint32_t heads, lane;
	uint32_t token;
	uint32_t first_head;
	uint32_t row;   /* of split 0 */
	uint32_t count; /* splits */
	uint32_t own;
} decode_splits;

/* Whether splits are added up here. */
FN uint32_t
decode_combines(const PRIVATE decode_args *a)
{
	return a->s.parts && a->workspace;
}

FN GLOBAL uint32_t *
decode_counts(const PRIVATE decode_args *a, const PRIVATE decode_splits *t)
{
	const uint32_t groups = (t->heads + DECODE_HEADS - 1) / DECODE_HEADS;

	return a->workspace +
	       (t->token * groups + t->first_head / DECODE_HEADS) *
		       DECODE_COUNTS;
}

/* Where a split's values of a head lie. */
FN GLOBAL uint16_t *
decode_split_values(const PRIVATE decode_args *a, uint64_t row, uint32_t heads,
		    uint32_t head)
{
	return (GLOBAL uint16_t *)a->split_out +
	       (row * heads + head) * SPMLA_MLA_LATENT;
}

/* Counts the block in, by one item. Returns the splits whose heads this block
 * adds, as bits. With more than DECODE_WAITERS splits the last block gets ~0,
 * all heads, and the others 0. */
FN uint32_t
decode_arrive(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
	      uint32_t waits)
{
	const uint32_t count_bits = (1u << DECODE_LEFT_AT) - 1u;
	GLOBAL uint32_t *counts = decode_counts(a, t);
	const uint32_t shares = t->count <= DECODE_WAITERS;
	const uint32_t before = g_add(counts, 1);
	uint32_t adds = 0, n;

	if ((before & count_bits) + 1 == t->count) {
		adds = shares ? 1u << t->own | before >> DECODE_LEFT_AT
			      : 0xffffffffu;
	} else if (shares) {
		for (n = waits ? DECODE_PATIENCE : 0; n && !adds; n--) {
			adds = (g_load_device(counts) & count_bits) == t->count
				       ? 1u << t->own
				       : 0;
			if (!adds)
				g_sleep(64);
		}
		/* All may have arrived meanwhile. Then the last block missed
		 * the mark, and this block adds its heads itself. */
		if (!adds && (g_add(counts, 1u << (DECODE_LEFT_AT + t->own)) &
			      count_bits) == t->count)
			adds = 1u << t->own;
	}
	if (g_add(counts + 1, 1) + 1 == t->count)
		counts[0] = counts[1] = 0;
	return adds;
}

/* Adds 8 values times w. */
FN void
decode_add_split(const PRIVATE uint32_t *x, float w, PRIVATE float *sum)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		sum[2 * i] = g_fma(w, g_bf16x2_low(x[i]), sum[2 * i]);
		sum[2 * i + 1] = g_fma(w, g_bf16x2_high(x[i]), sum[2 * i + 1]);
	}
}

/* The lse of split `i` of a head; -inf behind the last split. */
FN float
decode_split_lse(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
		 uint32_t i, uint32_t head)
{
	return i < t->count ? g_float(g_load_device(
				      (GLOBAL const uint32_t *)a->split_lse +
				      (uint64_t)(t->row + i) * t->heads + head))
			    : G_MINUS_INF;
}

/* log2 of the sum of exp2(lse) over all splits; +inf if no split has a key. */
FN float
decode_log_sum(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
	       uint32_t head)
{
	float most = G_MINUS_INF, sum = 0.0f;
	uint32_t i;

	NO_UNROLL
	for (i = t->lane; i < t->count; i += 32)
		most = g_larger(most, decode_split_lse(a, t, i, head));
	UNROLL
	for (i = 1; i < 32; i *= 2)
		most = g_larger(most, g_shuffle_xor_f(most, i));
	most = most == G_MINUS_INF ? 0.0f : most;
	NO_UNROLL
	for (i = t->lane; i < t->count; i += 32)
		sum += g_exp2(decode_split_lse(a, t, i, head) - most);
	UNROLL
	for (i = 1; i < 32; i *= 2)
		sum += g_shuffle_xor_f(sum, i);
	return sum == 0.0f ? G_INF : g_log2(sum) + most;
}

/* Asks for the lane's values of splits first .. first + DECODE_AT_ONCE - 1. */
FN void
decode_ask_splits(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
		  uint32_t first, uint32_t head,
		  uint32_t x[DECODE_AT_ONCE][2][4])
{
	uint32_t r, i;

	UNROLL
	for (r = 0; r < DECODE_AT_ONCE; r++) {
		GLOBAL const uint32_t *at =
			(GLOBAL const uint32_t *)decode_split_values(
				a, t->row + first + r, t->heads, head) +
			4 * t->lane;

		/* Without this, x would take registers from token to token. */
		UNROLL
		for (i = 0; i < 4; i++)
			x[r][0][i] = x[r][1][i] = 0;
		if (first + r < t->count) {
			g_load4_device(at, x[r][0]);
			g_load4_device(at + 128, x[r][1]);
		}
	}
}

/* Sums of a head's splits, with weights relative to g. The lane has columns 8
 * lane .. 8 lane + 7 and the same from 256 on. */
FN void
decode_sum_splits(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
		  uint32_t head, float g, uint32_t x[DECODE_AT_ONCE][2][4],
		  PRIVATE float *sum)
{
	uint32_t first, i, r;

	UNROLL
	for (i = 0; i < 16; i++)
		sum[i] = 0.0f;
	NO_UNROLL
	for (first = 0; first < t->count; first += DECODE_AT_ONCE) {
		if (first)
			decode_ask_splits(a, t, first, head, x);
		UNROLL
		for (r = 0; r < DECODE_AT_ONCE; r++) {
			const float weight = g_exp2(
				decode_split_lse(a, t, first + r, head) - g);

			decode_add_split(x[r][0], weight, sum);
			decode_add_split(x[r][1], weight, sum + 8);
		}
	}
}

/* Adds up a head, by a warp. */
FN void
decode_add_head(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
		uint32_t head)
{
	const PRIVATE decode_scalars *s = &a->s;
	GLOBAL uint16_t *out =
		a->out +
		decode_token_at(t->token, s->next_n, s->out_request_stride,
				s->out_token_stride) +
		(int64_t)head * s->out_head_stride + 8 * t->lane;
	uint32_t x[DECODE_AT_ONCE][2][4], y[4], i, r;
	float g, sum[16];

	decode_ask_splits(a, t, 0, head, x);
	g = decode_log_sum(a, t, head);
	if (t->lane == 0 && s->has_lse)
		a->lse[decode_token_at(t->token, s->next_n,
				       s->lse_request_stride,
				       s->lse_token_stride) +
		       (int64_t)head * s->lse_head_stride] =
			decode_result_lse(g == G_INF, g, g, s->empty_lse,
					  s->base2, s->lse_sink,
					  s->lse_sink ? a->attn_sink[head]
						      : 0.0f);
	if (s->has_sink)
		g = decode_g_with_sink(g, a->attn_sink[head]);
	decode_sum_splits(a, t, head, g, x, sum);
	UNROLL
	for (i = 0; i < 2; i++) {
		UNROLL
		for (r = 0; r < 4; r++)
			y[r] = g_f32_to_bf16x2(sum[8 * i + 2 * r],
					       sum[8 * i + 2 * r + 1]);
		g_store4(out + 256 * i, y);
	}
}

/* Adds the heads of the splits in `adds`, by 8 warps. */
FN void
decode_add_heads(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
		 uint32_t adds, uint32_t warp)
{
	const uint32_t all = adds == 0xffffffffu;
	const uint32_t step = all ? 1 : t->count;

	NO_UNROLL
	while (adds) {
		uint32_t h = (all ? 0 : 31 - g_clz(adds)) + warp * step;

		NO_UNROLL
		for (; h < DECODE_HEADS && t->first_head + h < t->heads;
		     h += 8 * step)
			decode_add_head(a, t, t->first_head + h);
		adds = all ? 0 : adds & ~(1u << (31 - g_clz(adds)));
	}
}

#endif
#endif
