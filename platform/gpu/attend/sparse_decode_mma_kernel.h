/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode with matrix instructions, for FP8_DS_MLA, V4_FP8 and bf16 rows,
 * and sparse_prefill for bf16 rows. A block has 64 heads of a token; it has 16
 * where shared memory is small or a row takes many registers. It walks the
 * token's keys, 64 at a time. Keys are dequantised once into shared memory and
 * serve there as K and, read transposed, as V. The next rows are then already
 * on their way into registers. For Q K^T a subgroup has 16 of the keys (with 16
 * heads: 8), and for P V the same share of the columns.
 *
 * The hard idea: weights are rounded to bf16 against the largest score of their
 * own 64 keys, as the contract says, and yet O needs no second accumulator. O
 * and L are kept relative to the last block's largest score, not to the largest
 * so far. That could overflow if the block's largest score is more than 60
 * below the largest so far, in log2 units. Then the block's weights are
 * relative to the largest so far, too, and are too small to change O.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_MMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_MMA_KERNEL_H

#include "spmla/platform/gpu/attend/decode_mma_rows_device.h"

#define SPMLA_K_sparse_decode_mma(P, S)        SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_mma_few(P, S)    SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_mma_v4(P, S)     SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_mma_v4_few(P, S) SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_bf16_mma(P, S)          SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_bf16_mma_512(P, S)      SPMLA_K_DECODE(P, S)
typedef decode_scalars spmla_k_sparse_decode_mma_scalars;
typedef decode_scalars spmla_k_sparse_decode_mma_few_scalars;
typedef decode_scalars spmla_k_sparse_decode_mma_v4_scalars;
typedef decode_scalars spmla_k_sparse_decode_mma_v4_few_scalars;
typedef decode_scalars spmla_k_sparse_bf16_mma_scalars;
typedef decode_scalars spmla_k_sparse_bf16_mma_512_scalars;

#ifdef SPMLA_GPU_KERNELS

/* The accumulators of an item: heads 16 i + 8 j + g of its subgroup, for i <
 * tiles and j = 0, 1; and columns 8 n + 2 t and 8 n + 2 t + 1 of the subgroup's
 * columns of O. */
typedef struct decode_mma_state {
	float o[2][16][4];
	float sum[4];     /* of p over the item's own keys */
	float reach[4];   /* the score that O is relative to */
	float largest[4]; /* score so far, unscaled */
} decode_mma_state;

/* Brings the queries of a block's heads to shared memory. Heads that do not
 * exist are zeros. */
FN void
decode_mma_load_q(GLOBAL const uint16_t *q, int64_t head_stride, uint32_t heads,
		  const PRIVATE decode_mma_kind *kind, LOCAL uint16_t *to)
{
	const uint32_t aligned =
		((uint64_t)q & 15u) == 0 && (head_stride & 7) == 0;
	const uint32_t pieces = kind->dim / 8;
	const uint32_t rows = kind->tiles == 2 ? (uint32_t)DECODE_HEADS
					       : (uint32_t)DECODE_MMA_FEW;
	uint32_t x[4][4], first, i, e;

	/* An item has four pieces of 8 values in flight. */
	for (first = g_item(); first < rows * pieces;
	     first += 4 * DECODE_MMA_ITEMS) {
		UNROLL
		for (i = 0; i < 4; i++) {
			const uint32_t at = first + i * DECODE_MMA_ITEMS;
			const uint32_t h = at / pieces;
			GLOBAL const uint16_t *from =
				q + (int64_t)h * head_stride + at % pieces * 8;
			const uint32_t is = h < heads && h < rows;

			g_load128_if(is && aligned, from, x[i]);
			if (is && !aligned) {
				UNROLL
				for (e = 0; e < 4; e++)
					x[i][e] = from[2 * e] |
						  (uint32_t)from[2 * e + 1]
							  << 16;
			}
		}
		UNROLL
		for (i = 0; i < 4; i++) {
			const uint32_t at = first + i * DECODE_MMA_ITEMS;

			if (at / pieces < rows)
				g_local_store128(
					to + at / pieces * DECODE_MMA_ROW +
						at % pieces * 8,
					x[i]);
		}
	}
}

/* Scores of a subgroup's heads with its keys, which begin at q and keys. It has
 * 16 keys, or 8 with 16 heads; with 8 a score is the sum of two chains. */
FN void
decode_mma_scores(LOCAL const uint16_t *q, LOCAL const uint16_t *keys,
		  const PRIVATE decode_mma_kind *kind, float score[2][2][4])
{
	const uint32_t l = g_lane();
	const uint32_t wide = kind->tiles == 2;
	LOCAL const uint16_t *a_row =
		q + (l % 8 + l / 8 % 2 * 8) * DECODE_MMA_ROW + l / 16 * 8;
	/* Four matrices: 16 dims of 16 keys, or 32 dims of 8 keys. */
	LOCAL const uint16_t *b_row =
		wide ? keys + (l % 8 + l / 16 * 8) * DECODE_MMA_ROW +
				l / 8 % 2 * 8
		     : keys + l % 8 * DECODE_MMA_ROW + l / 8 * 8;
	uint32_t k, h, i, j, e;

	UNROLL
	for (e = 0; e < 16; e++)
		score[e / 8][e / 4 % 2][e % 4] = 0.0f;
	UNROLL
	for (k = 0; k < kind->dim; k += 32) {
		uint32_t a[2][4], b[4];

		UNROLL
		for (h = 0; h < 2; h++) {
			if (h == 0 || wide)
				g_load_matrices(b_row + k + 16 * h, b);
			UNROLL
			for (i = 0; i < kind->tiles; i++)
				g_load_matrices(
					a_row + 16 * i * DECODE_MMA_ROW + k +
						16 * h,
					a[i]);
			if (!wide)
				g_mma_bf16(score[0][h], a[0], b + 2 * h);
			UNROLL
			for (i = 0; i < 2 && wide; i++) {
				UNROLL
				for (j = 0; j < 2; j++)
					g_mma_bf16(score[i][j], a[i],
						   b + 2 * j);
			}
		}
	}
	UNROLL
	for (e = 0; e < 4 && !wide; e++)
		score[0][0][e] += score[0][1][e];
}

/* O += P V for a subgroup's heads and columns, which begin at p and keys. */
FN void
decode_mma_values(LOCAL const uint16_t *p, LOCAL const uint16_t *keys,
		  const PRIVATE decode_mma_kind *kind,
		  PRIVATE decode_mma_state *st)
{
	const uint32_t l = g_lane();
	LOCAL const uint16_t *a_row =
		p + (l % 8 + l / 8 % 2 * 8) * DECODE_MMA_P_ROW + l / 16 * 8;
	LOCAL const uint16_t *b_row =
		keys + (l % 8 + l / 8 % 2 * 8) * DECODE_MMA_ROW + l / 16 * 8;
	uint32_t k, n, i, j;

	UNROLL
	for (k = 0; k < DECODE_BLOCK; k += 16) {
		uint32_t a[2][4];

		UNROLL
		for (i = 0; i < kind->tiles; i++)
			g_load_matrices(a_row + 16 * i * DECODE_MMA_P_ROW + k,
					a[i]);
		UNROLL
		for (n = 0; n < 8 * kind->tiles; n += 2) {
			uint32_t b[4];

			g_load_transposed(b_row + k * DECODE_MMA_ROW + 8 * n,
					  b);
			UNROLL
			for (i = 0; i < kind->tiles; i++) {
				UNROLL
				for (j = 0; j < 2; j++)
					g_mma_bf16(st->o[i][n + j], a[i],
						   b + 2 * j);
			}
		}
	}
}

/* Writes the largest score of each head over the subgroup's keys, which begin
 * at `first`, to `most`. Keys that do not count get -inf. */
FN void
decode_mma_highest(float score[2][2][4], LOCAL const uint32_t *counts,
		   LOCAL float *most, const PRIVATE decode_mma_kind *kind,
		   uint32_t heads, uint32_t share, uint32_t first)
{
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	float high[4];
	uint32_t i, j, r, n;

	UNROLL
	for (r = 0; r < 4; r++)
		high[r] = G_MINUS_INF;
	UNROLL
	for (i = 0; i < kind->tiles; i++) {
		UNROLL
		for (j = 0; j < kind->tiles; j++) {
			UNROLL
			for (n = 0; n < 4; n++) {
				if (!counts[first + 8 * j + 2 * t + n % 2])
					score[i][j][n] = G_MINUS_INF;
				high[2 * i + n / 2] = g_larger(
					high[2 * i + n / 2], score[i][j][n]);
			}
		}
	}
	UNROLL
	for (r = 0; r < 2 * kind->tiles; r++) {
		high[r] = g_larger(high[r], g_shuffle_xor_f(high[r], 1));
		high[r] = g_larger(high[r], g_shuffle_xor_f(high[r], 2));
		if (t == 0)
			most[share * heads + 8 * r + g] = high[r];
	}
}

/* Brings O and L to the reference of the block's weights, which goes to `base`.
 */
FN void
decode_mma_rebase(LOCAL const float *most, const PRIVATE decode_mma_kind *kind,
		  uint32_t heads, float c, PRIVATE decode_mma_state *st,
		  PRIVATE float *base)
{
	const float none = G_MINUS_INF;
	uint32_t r, n;

	UNROLL
	for (r = 0; r < 2 * kind->tiles; r++) {
		float own = none, to, factor;

		UNROLL
		for (n = 0; n < decode_mma_shares(kind); n++)
			own = g_larger(own,
				       most[n * heads + 8 * r + g_lane() / 4]);
		st->largest[r] = g_larger(st->largest[r], own);
		to = own;
		if ((st->largest[r] - own) * c > DECODE_O_REACH)
			to = st->largest[r];
		/* All scores are -inf: every weight is exp2(-inf), and O and L
		 * stay. */
		if (own == none)
			to = st->reach[r];
		factor = st->reach[r] == to ? 1.0f
					    : g_exp2((st->reach[r] - to) * c);
		if (to == none)
			factor = 1.0f;
		base[r] = to == none ? 0.0f : to;
		st->reach[r] = to;
		st->sum[r] *= factor;
		UNROLL
		for (n = 0; n < 8 * kind->tiles; n++) {
			st->o[r / 2][n][r % 2 * 2] *= factor;
			st->o[r / 2][n][r % 2 * 2 + 1] *= factor;
		}
	}
}

/* Turns scores into weights: finds each head's largest score, brings O and L to
 * it and writes P to shared memory. `most` and `p` begin at the subgroup's
 * heads. The block has `heads` in all. `c` brings scores to log2 units. */
FN void
decode_mma_weights(float score[2][2][4], LOCAL const uint32_t *counts,
		   LOCAL float *most, LOCAL uint16_t *p,
		   const PRIVATE decode_mma_kind *kind, uint32_t heads,
		   uint32_t share, float c, PRIVATE decode_mma_state *st)
{
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	const uint32_t first = share * (DECODE_BLOCK / decode_mma_shares(kind));
	float base[4];
	uint32_t j, r;

	decode_mma_highest(score, counts, most, kind, heads, share, first);
	BARRIER();
	decode_mma_rebase(most, kind, heads, c, st, base);
	UNROLL
	for (r = 0; r < 2 * kind->tiles; r++) {
		UNROLL
		for (j = 0; j < kind->tiles; j++) {
			const PRIVATE float *x = score[r / 2][j] + r % 2 * 2;
			const float low = g_exp2((x[0] - base[r]) * c);
			const float up = g_exp2((x[1] - base[r]) * c);
			LOCAL uint16_t *to = p +
					     (8 * r + g) * DECODE_MMA_P_ROW +
					     first + 8 * j + 2 * t;

			st->sum[r] += low + up;
			*(LOCAL uint32_t *)to = g_f32_to_bf16x2(low, up);
		}
	}
	BARRIER();
}

/* Where a head's results begin, of a token or of a split. */
FN GLOBAL uint16_t *
decode_mma_out(const PRIVATE decode_scalars *s, GLOBAL uint16_t *out,
	       uint32_t token, uint32_t head)
{
	return out +
	       decode_token_at(token, s->next_n, s->out_request_stride,
			       s->out_token_stride) +
	       (int64_t)head * s->out_head_stride;
}

FN GLOBAL float *
decode_mma_split(const PRIVATE decode_scalars *s, GLOBAL float *split_out,
		 uint32_t row, uint32_t head)
{
	return split_out + ((uint64_t)row * s->heads + head) * SPMLA_MLA_LATENT;
}

/* Writes the lane's columns of a head's O, times `factor`: to `out`, or to the
 * split `row`. The head is number r of the lane's. With 64 heads the address is
 * found once: found for each pair, it takes a third of the code. Kernels of 16
 * heads that have 128 registers have none to keep it. */
FN void
decode_mma_write_head(const PRIVATE decode_mma_state *st,
		      const PRIVATE decode_scalars *s,
		      const PRIVATE decode_mma_kind *kind, GLOBAL uint16_t *out,
		      GLOBAL float *split_out, uint32_t row, uint32_t token,
		      uint32_t head, uint32_t share, uint32_t r,
		      uint32_t is_empty, float factor)
{
	const uint32_t early = kind->tiles == 2;
	const uint32_t first =
		share * (SPMLA_MLA_LATENT / decode_mma_shares(kind)) +
		2 * (g_lane() % 4);
	uint32_t n;

	if (early && row == DECODE_WHOLE)
		out = decode_mma_out(s, out, token, head) + first;
	else if (early)
		split_out = decode_mma_split(s, split_out, row, head) + first;
	UNROLL
	for (n = 0; n < 8 * kind->tiles; n++) {
		const float a = st->o[r / 2][n][r % 2 * 2];
		const float b = st->o[r / 2][n][r % 2 * 2 + 1];
		const float x = is_empty ? 0.0f : a * factor;
		const float y = is_empty ? 0.0f : b * factor;

		if (row == DECODE_WHOLE) {
			GLOBAL uint16_t *to = out + 8 * n;
			const uint32_t pair = g_f32_to_bf16x2(x, y);

			if (!early)
				to = decode_mma_out(s, to, token, head) + first;
			to[0] = (uint16_t)pair;
			to[1] = (uint16_t)(pair >> 16);
		} else {
			GLOBAL float *to = split_out + 8 * n;

			if (!early)
				to = decode_mma_split(s, to, row, head) + first;
			to[0] = x;
			to[1] = y;
		}
	}
}

/* Writes the results of a token or a split; `most` is scratch. The block
 * has `heads` heads; the subgroup's begin at own_head. */
FN void
decode_mma_write(PRIVATE decode_mma_state *st, const PRIVATE decode_scalars *s,
		 const PRIVATE decode_mma_kind *kind,
		 GLOBAL const float *attn_sink, GLOBAL uint16_t *out,
		 GLOBAL float *lse, GLOBAL float *max_logits,
		 GLOBAL float *split_out, GLOBAL float *split_lse,
		 LOCAL float *most, LOCAL const int32_t *notes, uint32_t token,
		 uint32_t first_head, uint32_t heads, uint32_t own_head,
		 uint32_t share)
{
	const uint32_t g = g_lane() / 4, lane_t = g_lane() % 4;
	const uint32_t shares = decode_mma_shares(kind);
	const float none = G_MINUS_INF;
	const float c = s->scale * G_LOG2_E;
	uint32_t row, whole, r, n;

	/* L over all keys: adds up the lanes of a quad, then the subgroups. */
	UNROLL
	for (r = 0; r < 2 * kind->tiles; r++) {
		st->sum[r] += g_shuffle_xor_f(st->sum[r], 1);
		st->sum[r] += g_shuffle_xor_f(st->sum[r], 2);
		if (lane_t == 0)
			most[share * heads + own_head + 8 * r + g] = st->sum[r];
	}
	BARRIER();
	row = (uint32_t)notes[DECODE_ROW];
	whole = row == DECODE_WHOLE;
	UNROLL
	for (r = 0; r < 2 * kind->tiles; r++) {
		const uint32_t local_head = own_head + 8 * r + g;
		const uint32_t head = first_head + local_head;
		const int64_t at =
			decode_token_at(token, s->next_n, s->lse_request_stride,
					s->lse_token_stride) +
			(int64_t)head * s->lse_head_stride;
		float sum = 0.0f, total, lse2, factor;
		uint32_t is_empty;

		UNROLL
		for (n = 0; n < shares; n++)
			sum += most[n * heads + local_head];
		if (head >= s->heads)
			continue;
		is_empty = sum == 0.0f;
		lse2 = is_empty ? none : st->reach[r] * c + g_log2(sum);
		total = sum;
		if (whole && s->has_sink && !is_empty)
			total += g_sink_weight(attn_sink[head],
					       st->reach[r] * c);
		factor = is_empty ? 0.0f : g_div_rn(1.0f, total);
		decode_mma_write_head(st, s, kind, out, split_out, row, token,
				      head, share, r, is_empty, factor);
		if (share || lane_t)
			continue;
		if (!whole)
			split_lse[(uint64_t)row * s->heads + head] = lse2;
		else if (s->has_lse)
			lse[at] = decode_result_lse(
				is_empty, lse2, st->reach[r] * s->scale,
				s->empty_lse, s->base2, s->lse_sink,
				s->lse_sink ? attn_sink[head] : 0.0f);
		if (s->has_max_logits)
			max_logits[at] =
				is_empty ? none
					 : st->largest[r] *
						   (s->base2 ? c : s->scale);
	}
	BARRIER(); /* all have read the sums */
}

/* The body of all kernels. Its last two parameters are constants of each. It is
 * one long function with many parameters: with a struct of them and a function
 * for each phase, two kernels run out of registers and take a stack on sm_90a,
 * and one does on sm_80, 86 and 89 (CUDA 13). */
FN void
decode_mma_run(SPMLA_K_DECODE(SPMLA_I_K_PARAM, SPMLA_I_K_NONE)
		       const PRIVATE decode_scalars *s,
	       LOCAL uint8_t *local, decode_mma_kind kind, uint32_t heads)
{
	LOCAL decode_mma_memory *mem = (LOCAL decode_mma_memory *)local;
	LOCAL float *most = mem->most;
	LOCAL uint32_t *counts = mem->counts;
	LOCAL int32_t *notes = mem->notes;
	LOCAL uint16_t *keys = mem->keys;
	LOCAL uint16_t *q_local = (LOCAL uint16_t *)(mem + 1);
	LOCAL uint16_t *p = q_local + heads * DECODE_MMA_ROW;
	const uint32_t shares = decode_mma_shares(&kind);
	const uint32_t share = g_item_again() / 32 % shares;
	const uint32_t own_head = kind.tiles == 2 ? g_item() / 128 * 32 : 0;
	const uint32_t groups = (s->heads + heads - 1) / heads;
	const float c = s->scale * G_LOG2_E;
	const float none = G_MINUS_INF;
	const uint32_t pieces = s->whole_tokens + s->parts;
	/* 1: the loop over blocks has one round more, before the first block.
	 * It asks for rows, then loads queries while these are on their way. So
	 * the code for rows is there once. With 16 heads such a loop is slower.
	 */
	const int32_t extra_round = kind.tiles == 2;
	uint64_t work;

	(void)workspace; /* split_combine adds up the splits */
	for (work = g_block(); work < (uint64_t)pieces * groups;
	     work += g_blocks()) {
		const uint32_t first_head = (uint32_t)(work % groups) * heads;
		const uint32_t reports = first_head == 0;
		uint32_t t;

		decode_take(fault_state, fault_status, reports,
			    tile_scheduler_metadata, s->whole_tokens,
			    (uint32_t)(work / groups), s->tokens, notes);
		for (t = (uint32_t)notes[DECODE_FIRST];
		     (int32_t)t <= notes[DECODE_LAST]; t++) {
			uint32_t lens[2], faults, i;
			GLOBAL const uint16_t *from;
			decode_list list;
			decode_range range;
			int32_t block;
			decode_mma_state st;
			decode_mma_row next;

			list = decode_list_of(topk_lens, s->list_form,
					      s->lens_tokens, s->slots_stride,
					      s->topk, t);
			lens[0] = list.len;
			lens[1] = 0;
			faults = list.faults;
			if (kind.layout == SPMLA_LAYOUT_V4_FP8) {
				list = decode_list_of(
					extra_topk_lens, s->extra_list_form,
					s->lens_tokens, s->extra_slots_stride,
					s->extra_topk, t);
				lens[1] = list.len;
				faults += list.faults;
			}
			range = decode_blocks_of(
				fault_state, fault_status, reports, notes,
				num_splits, s->whole_tokens, s->split_rows, t,
				(int32_t)(decode_blocks(lens[0], 1) +
					  decode_blocks(lens[1], 0)),
				faults);
			if (range.end < 0)
				continue;
			/* Kept here, as no registers are left for them. */
			if (g_item() == 0) {
				notes[DECODE_LEN] = (int32_t)lens[0];
				notes[DECODE_EXTRA_LEN] = (int32_t)lens[1];
				notes[DECODE_ROW] = (int32_t)range.row;
			}
			UNROLL
			for (i = 0; i < 4; i++) {
				st.sum[i] = 0.0f;
				st.reach[i] = none;
				st.largest[i] = none;
			}
			if (range.begin < range.end) {
				decode_mma_slot(&next, s, slots, topk_lens,
						extra_slots, extra_topk_lens, t,
						lens, (uint32_t)range.begin);
				if (!extra_round)
					decode_mma_next(
						&next, &kind, s, fault_state,
						fault_status, slots, topk_lens,
						extra_slots, extra_topk_lens,
						cache, extra_cache, t, lens,
						(uint32_t)range.begin, reports);
			}
			from = q +
			       decode_token_at(t, s->next_n,
					       s->q_request_stride,
					       s->q_token_stride) +
			       (int64_t)first_head * s->q_head_stride;
			/* A barrier has passed since the last queries were
			 * read. */
			if (!extra_round)
				decode_mma_load_q(from, s->q_head_stride,
						  s->heads - first_head, &kind,
						  q_local);
			UNROLL
			for (i = 0; i < 128; i++)
				st.o[i / 64][i / 4 % 16][i % 4] = 0.0f;
			for (block = range.begin - extra_round;
			     block < range.end; block++) {
				float score[2][2][4];

				if (!extra_round || block >= range.begin) {
					decode_mma_store(&next, &kind, keys,
							 counts);
					BARRIER();
					lens[0] = (uint32_t)notes[DECODE_LEN];
					lens[1] = (uint32_t)
						notes[DECODE_EXTRA_LEN];
				}
				if (block + 1 < range.end)
					decode_mma_next(
						&next, &kind, s, fault_state,
						fault_status, slots, topk_lens,
						extra_slots, extra_topk_lens,
						cache, extra_cache, t, lens,
						(uint32_t)block + 1, reports);
				if (extra_round && block < range.begin) {
					decode_mma_load_q(from,
							  s->q_head_stride,
							  s->heads - first_head,
							  &kind, q_local);
					continue;
				}
				decode_mma_scores(
					q_local + own_head * DECODE_MMA_ROW,
					keys + share * (DECODE_BLOCK / shares) *
							DECODE_MMA_ROW,
					&kind, score);
				decode_mma_weights(
					score, counts, most + own_head,
					p + own_head * DECODE_MMA_P_ROW, &kind,
					heads, share, c, &st);
				decode_mma_values(
					p + own_head * DECODE_MMA_P_ROW,
					keys + share * (SPMLA_MLA_LATENT /
							shares),
					&kind, &st);
				BARRIER(); /* all have read these keys */
			}
			decode_mma_write(&st, s, &kind, attn_sink, out, lse,
					 max_logits, split_out, split_lse, most,
					 notes, t, first_head, heads, own_head,
					 share);
		}
	}
}

#define ARGS_NAME(type, name) name,

FN decode_mma_kind
decode_mma_kind_of(uint32_t layout, uint32_t dim, uint32_t tiles)
{
	decode_mma_kind kind;

	kind.layout = layout;
	kind.dim = dim;
	kind.tiles = tiles;
	return kind;
}

SPMLA_KERNEL(sparse_decode_mma)
void
spmla_k_sparse_decode_mma(SPMLA_KERNEL_ARGS(sparse_decode_mma))
{
	LOCAL_DYNAMIC(local, DECODE_MMA_BYTES);

	decode_mma_run(
		SPMLA_K_DECODE(ARGS_NAME, SPMLA_I_K_NONE) & s, local,
		decode_mma_kind_of(SPMLA_LAYOUT_FP8_DS_MLA, SPMLA_MLA_DIM, 2),
		DECODE_HEADS);
}

SPMLA_KERNEL(sparse_decode_mma_v4)
void
spmla_k_sparse_decode_mma_v4(SPMLA_KERNEL_ARGS(sparse_decode_mma_v4))
{
	LOCAL_DYNAMIC(local, DECODE_MMA_BYTES);

	decode_mma_run(SPMLA_K_DECODE(ARGS_NAME, SPMLA_I_K_NONE) & s, local,
		       decode_mma_kind_of(SPMLA_LAYOUT_V4_FP8, SPMLA_V4_DIM, 2),
		       DECODE_HEADS);
}

/* A multiprocessor with 227 KB holds two of these blocks. Any other holds one,
 * whose lanes may then have more registers. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
#define FEW_BLOCKS 2
#else
#define FEW_BLOCKS 1
#endif

SPMLA_KERNEL_BLOCKS(sparse_decode_mma_few, FEW_BLOCKS)
void
spmla_k_sparse_decode_mma_few(SPMLA_KERNEL_ARGS(sparse_decode_mma_few))
{
	LOCAL_DYNAMIC(local, DECODE_MMA_FEW_BYTES);

	decode_mma_run(
		SPMLA_K_DECODE(ARGS_NAME, SPMLA_I_K_NONE) & s, local,
		decode_mma_kind_of(SPMLA_LAYOUT_FP8_DS_MLA, SPMLA_MLA_DIM, 1),
		DECODE_MMA_FEW);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_mma_v4_few, FEW_BLOCKS)
void
spmla_k_sparse_decode_mma_v4_few(SPMLA_KERNEL_ARGS(sparse_decode_mma_v4_few))
{
	LOCAL_DYNAMIC(local, DECODE_MMA_FEW_BYTES);

	decode_mma_run(SPMLA_K_DECODE(ARGS_NAME, SPMLA_I_K_NONE) & s, local,
		       decode_mma_kind_of(SPMLA_LAYOUT_V4_FP8, SPMLA_V4_DIM, 1),
		       DECODE_MMA_FEW);
}

#undef FEW_BLOCKS

/* A bf16 row takes too many registers for two blocks. */
SPMLA_KERNEL(sparse_bf16_mma)
void
spmla_k_sparse_bf16_mma(SPMLA_KERNEL_ARGS(sparse_bf16_mma))
{
	LOCAL_DYNAMIC(local, DECODE_MMA_FEW_BYTES);

	decode_mma_run(
		SPMLA_K_DECODE(ARGS_NAME, SPMLA_I_K_NONE) & s, local,
		decode_mma_kind_of(SPMLA_LAYOUT_MLA_BF16, SPMLA_MLA_DIM, 1),
		DECODE_MMA_FEW);
}

SPMLA_KERNEL(sparse_bf16_mma_512)
void
spmla_k_sparse_bf16_mma_512(SPMLA_KERNEL_ARGS(sparse_bf16_mma_512))
{
	LOCAL_DYNAMIC(local, DECODE_MMA_FEW_BYTES);

	decode_mma_run(
		SPMLA_K_DECODE(ARGS_NAME, SPMLA_I_K_NONE) & s, local,
		decode_mma_kind_of(SPMLA_LAYOUT_MLA_BF16, SPMLA_V4_DIM, 1),
		DECODE_MMA_FEW);
}

#undef ARGS_NAME
#endif
#endif
