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
	 * have arrived; if blocks wait, from bit DECODE_LEFT_AT on, which
	 * splits left their heads. Word 1: how many blocks are done with
	 * word 0. */
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

FN GLOBAL uint32_t *
decode_counts(const PRIVATE decode_args *a, const PRIVATE decode_splits *t)
{
	const uint32_t groups = (t->heads + DECODE_HEADS - 1) / DECODE_HEADS;

	return a->workspace + ((t->token - a->s.whole_tokens) * groups +
			       t->first_head / DECODE_HEADS) *
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
	GLOBAL uint32_t *counts = decode_counts(a, t);
	const uint32_t shares = t->count <= DECODE_WAITERS;
	const uint32_t count_bits =
		shares ? (1u << DECODE_LEFT_AT) - 1u : 0xffffffffu;
	const uint32_t own = shares ? 1u << t->own : 0;
	const uint32_t left = waits ? 0 : own << DECODE_LEFT_AT;
	const uint32_t before = g_add(counts, 1 + left);
	uint32_t adds = 0, n;

	g_debug_sleep();
	if ((before & count_bits) + 1 == t->count) {
		adds = shares ? own | before >> DECODE_LEFT_AT : 0xffffffffu;
	} else if (shares && waits) {
		for (n = DECODE_PATIENCE; n && !adds; n--) {
			adds = (g_load_device(counts) & count_bits) == t->count
				       ? own
				       : 0;
			if (!adds)
				g_sleep(64);
		}
		/* All may have arrived meanwhile. Then the last block missed
		 * the mark, and this block adds its heads itself. */
		if (!adds && (g_add(counts, own << DECODE_LEFT_AT) &
			      count_bits) == t->count)
			adds = own;
	}
	g_debug_sleep();
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

/* log2 of the sum of exp2(lse) over all splits; +inf if no split has a key.
 * `lse` is of split `lane`. */
FN float
decode_log_sum(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
	       uint32_t head, float lse)
{
	float most = lse, sum;
	uint32_t i;

	NO_UNROLL
	for (i = t->lane + 32; i < t->count; i += 32)
		most = g_larger(most, decode_split_lse(a, t, i, head));
	UNROLL
	for (i = 1; i < 32; i *= 2)
		most = g_larger(most, g_shuffle_xor_f(most, i));
	most = most == G_MINUS_INF ? 0.0f : most;
	sum = g_exp2(lse - most);
	NO_UNROLL
	for (i = t->lane + 32; i < t->count; i += 32)
		sum += g_exp2(decode_split_lse(a, t, i, head) - most);
	UNROLL
	for (i = 1; i < 32; i *= 2)
		sum += g_shuffle_xor_f(sum, i);
	return sum == 0.0f ? G_INF : g_log2(sum) + most;
}

/* What a lane has asked for: its values of splits first .. first +
 * DECODE_AT_ONCE - 1 of head h, columns 8 lane .. 8 lane + 7 and the same from
 * 256 on; and with splits 0, 32, .. the lse of split first + lane. */
typedef struct decode_asked {
	uint32_t h; /* DECODE_HEADS: nothing */
	uint32_t first;
	uint32_t x[DECODE_AT_ONCE][2][4];
	float lse;
} decode_asked;

FN void
decode_ask_splits(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
		  PRIVATE decode_asked *to)
{
	const uint32_t head = t->first_head + to->h;
	uint32_t r, i;

	if (to->first % 32 == 0)
		to->lse = decode_split_lse(a, t, to->first + t->lane, head);
	UNROLL
	for (r = 0; r < DECODE_AT_ONCE; r++) {
		GLOBAL const uint32_t *at =
			(GLOBAL const uint32_t *)decode_split_values(
				a, t->row + to->first + r, t->heads, head) +
			4 * t->lane;

		/* Without this, x would take registers from token to token. */
		UNROLL
		for (i = 0; i < 4; i++)
			to->x[r][0][i] = to->x[r][1][i] = 0;
		if (to->first + r < t->count) {
			g_load4_device(at, to->x[r][0]);
			g_load4_device(at + 128, to->x[r][1]);
		}
	}
}

/* Writes the lse of a head. Returns what its weights are relative to: log2 of
 * the sum of all splits, and of the sink. */
FN float
decode_finish_lse(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
		  uint32_t head, float lse)
{
	const PRIVATE decode_scalars *s = &a->s;
	const float g = decode_log_sum(a, t, head, lse);

	if (t->lane == 0 && s->has_lse)
		a->lse[decode_token_at(t->token, s->next_n,
				       s->lse_request_stride,
				       s->lse_token_stride) +
		       (int64_t)head * s->lse_head_stride] =
			decode_result_lse(g == G_INF, g, g, s->empty_lse,
					  s->base2, s->lse_sink,
					  s->lse_sink ? a->attn_sink[head]
						      : 0.0f);
	return s->has_sink ? decode_g_with_sink(g, a->attn_sink[head]) : g;
}

/* Writes the lane's part of a head. */
FN void
decode_finish_out(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
		  uint32_t head, const PRIVATE float *sum)
{
	const PRIVATE decode_scalars *s = &a->s;
	GLOBAL uint16_t *out =
		a->out +
		decode_token_at(t->token, s->next_n, s->out_request_stride,
				s->out_token_stride) +
		(int64_t)head * s->out_head_stride + 8 * t->lane;
	uint32_t y[4], i, r;

	UNROLL
	for (i = 0; i < 2; i++) {
		UNROLL
		for (r = 0; r < 4; r++)
			y[r] = g_f32_to_bf16x2(sum[8 * i + 2 * r],
					       sum[8 * i + 2 * r + 1]);
		g_store4(out + 256 * i, y);
	}
}

/* The warp's first head of the last split in `adds`, or of all. The heads of a
 * split are those h with h % splits == split, and a warp takes every eighth. */
FN uint32_t
decode_first_to_add(const PRIVATE decode_splits *t, uint32_t adds,
		    uint32_t warp)
{
	return adds == 0xffffffffu ? warp : 31 - g_clz(adds) + warp * t->count;
}

/* The warp's next head to add, from h on; DECODE_HEADS: none. Takes splits whose
 * heads are done out of `adds`, which is not 0. */
FN uint32_t
decode_head_to_add(const PRIVATE decode_splits *t, PRIVATE uint32_t *adds,
		   uint32_t h, uint32_t warp)
{
	NO_UNROLL
	while (h >= DECODE_HEADS || t->first_head + h >= t->heads) {
		if (*adds == 0xffffffffu || !(*adds & (*adds - 1)))
			return DECODE_HEADS;
		*adds &= ~(1u << (31 - g_clz(*adds)));
		h = decode_first_to_add(t, *adds, warp);
	}
	return h;
}

/* Adds the heads of the splits in `adds`, by 8 warps. While a lane adds some
 * splits of a head, the next ones, or the next head's, are on their way. It is
 * one loop that asks before it adds, because code that runs once is fetched
 * slowly. */
FN void
decode_add_heads(const PRIVATE decode_args *a, const PRIVATE decode_splits *t,
		 uint32_t adds, uint32_t warp)
{
	const uint32_t step = adds == 0xffffffffu ? 1 : t->count;
	uint32_t h = decode_first_to_add(t, adds, warp), first = 0, i, r;
	float sum[16], g = 0.0f, weight = 0.0f;
	decode_asked next;

	/* What is set under a condition only would take registers from token to
	 * token. */
	next.lse = 0.0f;
	next.h = DECODE_HEADS;
	next.first = 0;
	UNROLL
	for (i = 0; i < 8 * DECODE_AT_ONCE; i++)
		next.x[i / 8][i / 4 % 2][i % 4] = 0;
	UNROLL
	for (i = 0; i < 16; i++)
		sum[i] = 0.0f;
	NO_UNROLL
	while (adds) {
		const decode_asked now = next;
		const uint32_t head = t->first_head + now.h;

		h = next.h = decode_head_to_add(t, &adds, h, warp);
		next.first = first;
		if (h < DECODE_HEADS)
			decode_ask_splits(a, t, &next);
		else
			adds = 0;
		first += DECODE_AT_ONCE;
		if (first >= t->count) {
			first = 0;
			h += 8 * step;
		}
		if (now.h >= DECODE_HEADS)
			continue;
		if (now.first == 0) {
			g = decode_finish_lse(a, t, head, now.lse);
			UNROLL
			for (i = 0; i < 16; i++)
				sum[i] = 0.0f;
		}
		if (now.first % 32 == 0)
			weight = g_exp2(now.lse - g);
		UNROLL
		for (r = 0; r < DECODE_AT_ONCE; r++) {
			const float w = g_float(g_shuffle(
				g_bits(weight), (now.first + r) % 32));

			decode_add_split(now.x[r][0], w, sum);
			decode_add_split(now.x[r][1], w, sum + 8);
		}
		if (now.first + DECODE_AT_ONCE >= t->count)
			decode_finish_out(a, t, head, sum);
	}
}

#endif
#endif
