/* SPDX-License-Identifier: Apache-2.0
 *
 * The queries of sparse_decode_wgmma: what an item of the two multiplying
 * warpgroups has, and how the queries of its heads come to shared memory as
 * f16, times a power of two for each head. The rope part stays in registers.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_QUERIES_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_QUERIES_DEVICE_H

#include "spmla/platform/gpu/attend/decode_loader_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* An item that multiplies. */
typedef struct decode_worker {
	const PRIVATE decode_args *a;
	LOCAL decode_memory *mem;
	decode_format format; /* of the first list; */
	decode_format extra;  /* of the second, for wide tiles */
	uint32_t cluster;
	uint32_t right; /* which warpgroup */
} decode_worker;

/* An item's part of its two heads: O in units of keys and weights, a part of L,
 * and the score that weights are relative to. */
typedef struct decode_heads {
	float o[128];
	uint32_t begun; /* some values have been added to O */
	float sum[2];
	float reach[2];
	float largest[2];    /* score so far */
	uint32_t factors;    /* of queries: two bf16 values */
	uint32_t rope[2][8]; /* of queries, times their factors */
} decode_heads;

/* The lane. What follows from it is computed again at each use: no registers
 * are left to keep it. */
FN uint32_t
decode_item_lane(void)
{
	return g_item_again() % 32;
}

FN uint32_t
decode_warp(void)
{
	return g_item_again() % 128 / 32;
}

/* The item's first head of the block's 64. The second is 8 further on. */
FN uint32_t
decode_head(void)
{
	const uint32_t item = g_item_again() % 128;

	return item / 32 * 16 + item % 32 / 4;
}

/* The block's first head in a run. */
FN uint32_t
decode_first_head(const PRIVATE decode_worker *w, uint32_t bits)
{
	const uint32_t rank = w->cluster == 2 ? g_cluster_rank() : 0;

	return (decode_run_group(bits) * w->cluster + rank) * DECODE_HEADS;
}

/* Queries of a head, for a run. */
FN GLOBAL const uint16_t *
decode_query(const PRIVATE decode_worker *w, LOCAL const decode_run *run,
	     uint32_t head)
{
	return w->a->q +
	       decode_token_at(run->token, w->a->s.next_n,
			       w->a->s.q_request_stride,
			       w->a->s.q_token_stride) +
	       (int64_t)(decode_first_head(w, run->bits) + head) *
		       w->a->s.q_head_stride;
}

/* Where 16-byte piece `piece` of the 64 of a head's query lies. */
FN LOCAL uint8_t *
decode_q_at(const PRIVATE decode_worker *w, uint32_t head, uint32_t piece)
{
	const uint32_t panel = piece / 8;
	const uint32_t swaps = w->format.code == DECODE_BF16 ? 0 : panel & 1u;

	return w->mem->queries + panel * decode_q_panel(w->format) +
	       head * 128 + (((piece % 8) ^ swaps ^ (head & 7u)) << 4);
}

/* The same for the rope part, which has 8 pieces. */
FN LOCAL uint8_t *
decode_q_rope_at(const PRIVATE decode_worker *w, uint32_t head, uint32_t piece)
{
	return w->mem->query_rope + head * 128 + ((piece ^ (head & 7u)) << 4);
}

/* Whether the worker keeps the queries of `run` for the next run, a split that
 * it does in turn. */
FN uint32_t
decode_keeps_queries(const PRIVATE decode_worker *w,
		     LOCAL const decode_run *run, LOCAL const decode_run *next)
{
	return decode_in_turn(w->format) && decode_goes_on(run, next);
}

/* Asks for the queries of a run, by the left warpgroup. A warp has a quarter of
 * the heads. A lane has pieces lane and 32 + lane of each. The rope part, a
 * line of 128 bytes, is prefetched. */
FN void
decode_ask_queries(const PRIVATE decode_worker *w, LOCAL const decode_run *run)
{
	const uint32_t own = w->format.heads / 4;
	const uint32_t head = decode_warp() * own, lane = decode_item_lane();
	const uint32_t before = decode_first_head(w, run->bits) + head;
	const uint32_t heads =
		w->a->s.heads > before ? w->a->s.heads - before : 0;
	const uint32_t left = decode_panel_dim(w->format, lane / 8);
	const uint32_t right = decode_panel_dim(w->format, 4 + lane / 8);
	GLOBAL const uint16_t *from =
		decode_query(w, run, heads ? head : 0) + lane % 8 * 8;
	uint32_t i;

	if (decode_rope_in_registers(w->format) && lane < own && lane < heads)
		g_prefetch((GLOBAL const int32_t *)(decode_query(w, run,
								 head + lane) +
						    512));
	UNROLL_BY(2)
	for (i = 0; i < own; i++) {
		g_local_copy128(decode_q_at(w, head + i, lane), from + left,
				i < heads);
		g_local_copy128(decode_q_at(w, head + i, 32 + lane),
				from + right, i < heads);
		from += i + 1 < heads ? w->a->s.q_head_stride : 0;
	}
	if (w->format.code == DECODE_BF16 && w->format.rope_byte) {
		UNROLL_BY(2)
		for (i = lane / 8; i < own; i += 4)
			g_local_copy128(
				decode_q_rope_at(w, head + i, lane % 8),
				decode_query(w, run, i < heads ? head + i : 0) +
					512 + lane % 8 * 8,
				i < heads);
	}
	g_mbarrier_arrive_copies(&w->mem->queries_full);
}

/* The largest magnitudes of n words of bf16 pairs and of `most`, by halves. */
FN uint32_t
decode_magnitude(const PRIVATE uint32_t *x, uint32_t n, uint32_t most)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < n; i++)
		most = g_larger_halves(most, x[i] & 0x7fff7fffu);
	return most;
}

/* The larger exponent of a pair. */
FN uint32_t
decode_exponent(uint32_t pair)
{
	const uint32_t low = pair >> 7 & 0xffu, high = pair >> 23;

	return low > high ? low : high;
}

/* The first of the heads whose queries this warp converts. A warp has an eighth
 * of the block's heads. */
FN uint32_t
decode_own_queries(const PRIVATE decode_worker *w)
{
	return w->right * (w->format.heads / 2) +
	       decode_warp() * (w->format.heads / 8);
}

/* The largest exponent of the rope part of a head. The lane has head lane / 4
 * of the warp's. */
FN uint32_t
decode_rope_exponent(const PRIVATE decode_worker *w,
		     LOCAL const decode_run *run, uint32_t fresh)
{
	const uint32_t head = decode_own_queries(w) + decode_item_lane() / 4;
	const uint32_t is =
		fresh && decode_first_head(w, run->bits) + head < w->a->s.heads;
	GLOBAL const uint16_t *from = decode_query(w, run, is ? head : 0) +
				      512 + decode_item_lane() % 4 * 16;
	uint32_t x[8], most, e;

	g_load128_if(is, from, x);
	g_load128_if(is, from + 8, x + 4);
	most = decode_exponent(decode_magnitude(x, 8, 0));
	for (e = 1; e < 4; e *= 2) {
		const uint32_t other = g_shuffle_xor(most, e);

		most = other > most ? other : most;
	}
	return most;
}

/* Waits for the queries of a run. Except with bf16 rows, converts them to f16,
 * times a power of two for each head; each warpgroup converts half of the
 * heads. Gives the item the factors of its heads; an item without heads gets
 * some other heads' factors. `parity` is 1 if the number of earlier tokens is
 * odd. If they are not fresh, all that has been done: no branch around it,
 * which would put products one after the other (C7520). */
FN void
decode_take_queries(const PRIVATE decode_worker *w, LOCAL const decode_run *run,
		    uint32_t fresh, uint32_t parity, PRIVATE decode_heads *h)
{
	LOCAL uint32_t *factors = (LOCAL uint32_t *)w->mem->reach[1];
	const uint32_t lane = decode_item_lane();
	const uint32_t scale = g_bits(w->a->s.scale) >> 23;
	/* The largest exponent of a factor. With it 14 log2 units are a score
	 * that f32 holds, as wide tiles need. Queries that become 0 by it have
	 * scores that round to 0. */
	const uint32_t limit = scale ? scale + 112 : 112 - 23;
	uint32_t rope = 0, i, j, e;

	if (decode_rope_in_registers(w->format))
		rope = decode_rope_exponent(w, run, fresh);
	g_named_sync(DECODE_QUERIES, 256); /* nobody reads sums */
	g_mbarrier_wait(&w->mem->queries_full, parity);
	if (w->format.code == DECODE_BF16) {
		g_fence_async();
		h->factors = 0x3f803f80u; /* 1 and 1 */
		return;
	}
	UNROLL_BY(2)
	for (i = 0; i < (fresh ? w->format.heads / 8 : 0); i++) {
		const uint32_t head = decode_own_queries(w) + i;
		const uint32_t of_rope = g_broadcast(rope, 4 * i);
		uint32_t x[2][4], most = 0, exponent;
		float by;

		UNROLL
		for (j = 0; j < 2; j++) {
			g_local_load128(decode_q_at(w, head, 32 * j + lane),
					x[j]);
			most = decode_magnitude(x[j], 4, most);
		}
		most = decode_exponent(most);
		most = g_subgroup_largest(most > of_rope ? most : of_rope);
		/* Brings the largest value into [1/64, 1/32). */
		exponent = most < 1 ? 247 : most > 247 ? 1 : 248 - most;
		exponent = exponent < limit ? exponent : limit;
		by = g_float(exponent << 23);
		UNROLL
		for (j = 0; j < 2; j++) {
			UNROLL
			for (e = 0; e < 4; e++)
				x[j][e] = g_f32_to_f16x2(
					g_float(x[j][e] << 16) * by,
					g_float(x[j][e] & 0xffff0000u) * by);
			g_local_store128(decode_q_at(w, head, 32 * j + lane),
					 x[j]);
		}
		/* The factor of scores: keys are multiplied by
		 * 2^DECODE_KEY_BIAS. */
		if (lane == 0)
			factors[head] = (exponent + DECODE_KEY_BIAS) << 7;
	}
	g_fence_async();
	g_named_sync(DECODE_QUERIES, 256);
	i = factors[decode_head() % w->format.heads] |
	    factors[(decode_head() + 8) % w->format.heads] << 16;
	h->factors = fresh ? i : h->factors;
	g_named_sync(DECODE_QUERIES, 256);
}

/* 1 / what queries and keys of the item's head i were multiplied by. */
FN float
decode_unscale(const PRIVATE decode_heads *h, uint32_t i)
{
	const uint32_t factor = i ? h->factors & 0xffff0000u : h->factors << 16;

	return g_float((254u << 23) - factor);
}

/* Factor from the head's scores to log2 units. decode_scale_of: to natural
 * units. */
FN float
decode_unit_of(const PRIVATE decode_worker *w, const PRIVATE decode_heads *h,
	       uint32_t i)
{
	return w->a->s.scale * G_LOG2_E * decode_unscale(h, i);
}

FN float
decode_scale_of(const PRIVATE decode_worker *w, const PRIVATE decode_heads *h,
		uint32_t i)
{
	return w->a->s.scale * decode_unscale(h, i);
}

/* Asks for the rope part of the item's heads, as fragments of A: word j of a
 * head has dims 8 j + 2 t and the next one, t = lane % 4. The scores of a
 * missing head may be anything: it gets the rope part of the token's first
 * head. */
FN void
decode_ask_rope(const PRIVATE decode_worker *w, LOCAL const decode_run *run,
		PRIVATE decode_heads *h)
{
	const uint32_t first = decode_first_head(w, run->bits);
	uint32_t i, j;

	UNROLL
	for (i = 0; i < 2; i++) {
		const uint32_t head = decode_head() + 8 * i;
		const uint32_t is = first + head < w->a->s.heads;
		GLOBAL const uint32_t *from =
			(GLOBAL const uint32_t *)(decode_query(w, run,
							       is ? head
								  : 0 - first) +
						  512) +
			decode_item_lane() % 4;

		UNROLL
		for (j = 0; j < 8; j++)
			h->rope[i][j] = from[4 * j];
	}
}

/* Multiplies the rope part by the heads' factors. */
FN void
decode_scale_rope(PRIVATE decode_heads *h)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 16; i++) {
		const uint32_t by =
			i / 8 ? h->factors >> 16 : h->factors & 0xffffu;

		h->rope[i / 8][i % 8] =
			g_mul_bf16x2(h->rope[i / 8][i % 8], by * 0x10001u);
	}
}

#endif
#endif
