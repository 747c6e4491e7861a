/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode of FP8_DS_MLA rows by matrix instructions: a block has 64 heads
 * of a token and walks its keys, 64 at a time. Keys are dequantised once into
 * local memory and serve there as K and, read transposed, as V; the next rows
 * are already on their way into registers meanwhile.
 *
 * The hard idea: weights are rounded to bf16 against the largest score of their
 * own 64 keys, as the contract says, and yet O needs no second accumulator. O
 * and L are kept relative to the last block's largest score, not to the largest
 * so far; what that could make overflow, a block 2^60 below the largest, is
 * held at that distance and adds nothing that could be seen.
 */
#ifndef SPMLA_PLATFORM_GPU_SPARSE_DECODE_MMA_H
#define SPMLA_PLATFORM_GPU_SPARSE_DECODE_MMA_H

#include "spmla/platform/gpu/decode_work_gpu.h"
#include "spmla/platform/gpu/mma_gpu.h"

#define SPMLA_K_sparse_decode_mma(P, S) SPMLA_K_DECODE(P, S)
SPMLA_KERNEL_SCALARS(sparse_decode_mma)

enum {
	DECODE_MMA_ITEMS = 256,
	DECODE_MMA_KEYS = 64,
	/* 16-bit values of a row of queries or keys in local memory: 8 more
	 * than they have, so that 8 rows' 16 bytes lie in different banks. */
	DECODE_MMA_ROW = SPMLA_MLA_DIM + 8,
	DECODE_MMA_P_ROW = DECODE_MMA_KEYS + 8,
	/* Local memory in bytes: queries, keys, weights, which keys count, each
	 * of four subgroups' largest scores. */
	DECODE_MMA_Q_AT = 0,
	DECODE_MMA_K_AT = DECODE_MMA_Q_AT + 2 * DECODE_HEADS * DECODE_MMA_ROW,
	DECODE_MMA_P_AT =
		DECODE_MMA_K_AT + 2 * DECODE_MMA_KEYS * DECODE_MMA_ROW,
	DECODE_MMA_COUNTS_AT =
		DECODE_MMA_P_AT + 2 * DECODE_HEADS * DECODE_MMA_P_ROW,
	DECODE_MMA_MAX_AT = DECODE_MMA_COUNTS_AT + 4 * DECODE_MMA_KEYS,
	DECODE_MMA_NOTES_AT = DECODE_MMA_MAX_AT + 4 * 4 * DECODE_HEADS,
	DECODE_MMA_BYTES = DECODE_MMA_NOTES_AT + 4 * DECODE_NOTES
};

#ifdef SPMLA_GPU_KERNELS

/* How far, in powers of two, O may be above what it is relative to. */
#define DECODE_MMA_REACH 60.0f

/* What an item has of the next 64 rows: of row item / 4 each fourth 16 bytes,
 * and all scales. */
typedef struct decode_mma_row {
	uint32_t codes[32];
	uint32_t rope[8];
	uint32_t scales[4];
	uint32_t counts; /* whether the row is a key */
} decode_mma_row;

/* The accumulators of an item: heads 32 m + 16 i + 8 j + g of the block for i,
 * j = 0, 1 and its subgroup's m; of O the columns 8 n + 2t and one more behind
 * 128 times the subgroup's quarter. */
typedef struct decode_mma_state {
	float o[2][16][4];
	float sum[4];     /* of p over the item's own keys */
	float reach[4];   /* what O is relative to, in log2 units */
	float largest[4]; /* so far, in log2 units */
} decode_mma_state;

FN void
decode_mma_fetch(PRIVATE decode_mma_row *to,
		 const PRIVATE spmla_k_sparse_decode_mma_scalars *s,
		 GLOBAL spmla_g_state *fault_state,
		 GLOBAL spmla_g_status *fault_status,
		 GLOBAL const uint8_t *cache, GLOBAL const int32_t *slots,
		 uint32_t token, uint32_t first, uint32_t len, uint32_t reports)
{
	const uint32_t entry = first + g_item() / 4, part = g_item() % 4;
	const int32_t slot = entry < len ? slots[entry] : -1;
	const uint32_t page = (uint32_t)slot / s->page_entries;
	uint32_t j;

	to->counts = slot >= 0 && page < s->pages;
	if (slot != -1 && !to->counts && part == 0 && reports)
		g_fault(fault_state, fault_status, token, G_FAULT_INDEX);
	if (!to->counts)
		return;
	cache += (uint64_t)page * s->page_stride_bytes +
		 (uint64_t)((uint32_t)slot % s->page_entries) *
			 SPMLA_FP8_DS_MLA_BYTES;
	UNROLL
	for (j = 0; j < 8; j++)
		g_load128(cache + 64 * j + 16 * part, to->codes + 4 * j);
	g_load128(cache + SPMLA_FP8_DS_MLA_SCALE_BYTE, to->scales);
	UNROLL
	for (j = 0; j < 2; j++)
		g_load128(cache + SPMLA_FP8_DS_MLA_ROPE_BYTE + 64 * j +
				  16 * part,
			  to->rope + 4 * j);
}

/* Dequantises the row into local memory; one that is no key is zeros. */
FN void
decode_mma_store(const PRIVATE decode_mma_row *from, LOCAL uint16_t *keys,
		 LOCAL uint32_t *counts)
{
	const uint32_t row = g_item() / 4, part = g_item() % 4;
	LOCAL uint16_t *to = keys + row * DECODE_MMA_ROW + 16 * part;
	uint32_t x[8], i, j;

	if (part == 0)
		counts[row] = from->counts;
	UNROLL
	for (j = 0; j < 8; j++) {
		const float scale = g_round_bf16(g_float(from->scales[j / 2]));

		UNROLL
		for (i = 0; i < 8; i++) {
			const uint32_t pair = g_e4m3x2_to_f16x2(
				from->codes[4 * j + i / 2] >> 16 * (i % 2));
			float low, high;

			g_f16x2_to_f32(pair, &low, &high);
			x[i] = from->counts ? g_f32_to_bf16x2(low * scale,
							      high * scale)
					    : 0;
		}
		g_local_store128(to + 64 * j, x);
		g_local_store128(to + 64 * j + 8, x + 4);
	}
	to = keys + row * DECODE_MMA_ROW + SPMLA_MLA_LATENT + 8 * part;
	UNROLL
	for (j = 0; j < 2; j++) {
		UNROLL
		for (i = 0; i < 4; i++)
			x[i] = from->counts ? from->rope[4 * j + i] : 0;
		g_local_store128(to + 32 * j, x);
	}
}

/* Scores of 32 heads with 16 keys. */
FN void
decode_mma_scores(LOCAL const uint16_t *q, LOCAL const uint16_t *keys,
		  uint32_t m, uint32_t quarter, float score[2][2][4])
{
	const uint32_t l = g_lane();
	LOCAL const uint16_t *a_row =
		q + (32 * m + l % 8 + l / 8 % 2 * 8) * DECODE_MMA_ROW +
		l / 16 * 8;
	LOCAL const uint16_t *b_row =
		keys + (16 * quarter + l % 8 + l / 16 * 8) * DECODE_MMA_ROW +
		l / 8 % 2 * 8;
	uint32_t k, i, j, e;

	UNROLL
	for (e = 0; e < 16; e++)
		score[e / 8][e / 4 % 2][e % 4] = 0.0f;
	UNROLL
	for (k = 0; k < SPMLA_MLA_DIM; k += 16) {
		uint32_t a[2][4], b[4];

		g_load_matrices(b_row + k, b);
		UNROLL
		for (i = 0; i < 2; i++)
			g_load_matrices(a_row + 16 * i * DECODE_MMA_ROW + k,
					a[i]);
		UNROLL
		for (i = 0; i < 2; i++) {
			UNROLL
			for (j = 0; j < 2; j++)
				g_mma_bf16(score[i][j], a[i], b + 2 * j);
		}
	}
}

/* O += P V for 32 heads and 128 columns. */
FN void
decode_mma_values(LOCAL const uint16_t *p, LOCAL const uint16_t *keys,
		  uint32_t m, uint32_t quarter, PRIVATE decode_mma_state *st)
{
	const uint32_t l = g_lane();
	LOCAL const uint16_t *a_row =
		p + (32 * m + l % 8 + l / 8 % 2 * 8) * DECODE_MMA_P_ROW +
		l / 16 * 8;
	LOCAL const uint16_t *b_row = keys +
				      (l % 8 + l / 8 % 2 * 8) * DECODE_MMA_ROW +
				      128 * quarter + l / 16 * 8;
	uint32_t k, n, i, j;

	UNROLL
	for (k = 0; k < DECODE_MMA_KEYS; k += 16) {
		uint32_t a[2][4];

		UNROLL
		for (i = 0; i < 2; i++)
			g_load_matrices(a_row + 16 * i * DECODE_MMA_P_ROW + k,
					a[i]);
		UNROLL
		for (n = 0; n < 16; n += 2) {
			uint32_t b[4];

			g_load_transposed(b_row + k * DECODE_MMA_ROW + 8 * n,
					  b);
			UNROLL
			for (i = 0; i < 2; i++) {
				UNROLL
				for (j = 0; j < 2; j++)
					g_mma_bf16(st->o[i][n + j], a[i],
						   b + 2 * j);
			}
		}
	}
}

FN float
decode_mma_larger(float a, float b)
{
	return b > a ? b : a; /* a NaN is never larger */
}

/* Scores to weights: the largest of each head, P into local memory, O and L
 * made relative to it. `c` brings scores to log2 units. */
FN void
decode_mma_weights(float score[2][2][4], LOCAL const uint32_t *counts,
		   LOCAL float *most, LOCAL uint16_t *p, float c, uint32_t m,
		   uint32_t quarter, PRIVATE decode_mma_state *st)
{
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	const float none = g_float(0xff800000u);
	float high[4];
	uint32_t i, j, r, n;

	UNROLL
	for (r = 0; r < 4; r++)
		high[r] = none;
	UNROLL
	for (i = 0; i < 2; i++) {
		UNROLL
		for (j = 0; j < 2; j++) {
			UNROLL
			for (n = 0; n < 4; n++) {
				const uint32_t key =
					16 * quarter + 8 * j + 2 * t + n % 2;

				if (!counts[key])
					score[i][j][n] = none;
				high[2 * i + n / 2] = decode_mma_larger(
					high[2 * i + n / 2], score[i][j][n]);
			}
		}
	}
	UNROLL
	for (r = 0; r < 4; r++) {
		high[r] =
			decode_mma_larger(high[r], g_shuffle_xor_f(high[r], 1));
		high[r] =
			decode_mma_larger(high[r], g_shuffle_xor_f(high[r], 2));
		if (t == 0)
			most[quarter * DECODE_HEADS + 32 * m + 8 * r + g] =
				high[r];
	}
	BARRIER();
	UNROLL
	for (r = 0; r < 4; r++) {
		float own = none, base, factor;

		UNROLL
		for (n = 0; n < 4; n++)
			own = decode_mma_larger(
				own,
				most[n * DECODE_HEADS + 32 * m + 8 * r + g]);
		/* Of only -inf: every weight is exp2(-inf) and nothing moves.
		 */
		own = own * c;
		st->largest[r] = decode_mma_larger(st->largest[r], own);
		base = decode_mma_larger(st->largest[r] - DECODE_MMA_REACH,
					 own);
		if (own == none)
			base = st->reach[r];
		factor = st->reach[r] == base ? 1.0f
					      : g_exp2(st->reach[r] - base);
		if (base == none)
			factor = 1.0f;
		high[r] = base == none ? 0.0f : base;
		st->reach[r] = base;
		st->sum[r] *= factor;
		UNROLL
		for (n = 0; n < 16; n++) {
			st->o[r / 2][n][r % 2 * 2] *= factor;
			st->o[r / 2][n][r % 2 * 2 + 1] *= factor;
		}
	}
	UNROLL
	for (i = 0; i < 2; i++) {
		UNROLL
		for (j = 0; j < 2; j++) {
			UNROLL
			for (r = 0; r < 2; r++) {
				const float base = high[2 * i + r];
				const float low =
					g_exp2(score[i][j][2 * r] * c - base);
				const float up = g_exp2(
					score[i][j][2 * r + 1] * c - base);
				LOCAL uint32_t *to =
					(LOCAL uint32_t
						 *)(p +
						    (32 * m + 16 * i + 8 * r +
						     g) * DECODE_MMA_P_ROW +
						    16 * quarter + 8 * j +
						    2 * t);

				st->sum[2 * i + r] += low + up;
				*to = g_f32_to_bf16x2(low, up);
			}
		}
	}
	BARRIER();
}

SPMLA_KERNEL(sparse_decode_mma)
{
	LOCAL_DYNAMIC(local, DECODE_MMA_BYTES);
	LOCAL uint16_t *q_local = (LOCAL uint16_t *)(local + DECODE_MMA_Q_AT);
	LOCAL uint16_t *keys = (LOCAL uint16_t *)(local + DECODE_MMA_K_AT);
	LOCAL uint16_t *p = (LOCAL uint16_t *)(local + DECODE_MMA_P_AT);
	LOCAL uint32_t *counts =
		(LOCAL uint32_t *)(local + DECODE_MMA_COUNTS_AT);
	LOCAL float *most = (LOCAL float *)(local + DECODE_MMA_MAX_AT);
	LOCAL int32_t *notes = (LOCAL int32_t *)(local + DECODE_MMA_NOTES_AT);
	const uint32_t groups = (s.heads + DECODE_HEADS - 1) / DECODE_HEADS;
	const uint32_t m = g_item() / 32 % 2, quarter = g_item() / 64;
	const uint32_t g = g_lane() / 4, lane_t = g_lane() % 4;
	const float c = s.scale * 1.44269504088896341f;
	const float none = g_float(0xff800000u);
	const uint32_t pieces = s.parts ? s.parts : s.tokens;
	uint64_t work;

	/* There is one cache, and no prefill. */
	(void)extra_slots, (void)extra_topk_lens, (void)extra_cache;
	(void)max_logits;
	for (work = g_block(); work < (uint64_t)pieces * groups;
	     work += g_blocks()) {
		const uint32_t group = (uint32_t)(work % groups);
		const uint32_t first_head = group * DECODE_HEADS;
		const uint32_t reports = group == 0;
		uint32_t t;

		decode_take(fault_state, fault_status, reports,
			    tile_scheduler_metadata, s.parts,
			    (uint32_t)(work / groups), s.tokens, notes);
		for (t = (uint32_t)notes[DECODE_FIRST];
		     (int32_t)t <= notes[DECODE_LAST]; t++) {
			const int64_t token = t;
			const uint32_t len =
				decode_len(topk_lens, s.has_lens, s.topk, t);
			GLOBAL const int32_t *list =
				slots + token * s.slots_stride;
			decode_range range;
			uint64_t row;
			int32_t block;
			uint32_t i, r, n;
			decode_mma_state st;
			decode_mma_row next;

			range = decode_blocks_of(
				fault_state, fault_status, reports, notes,
				num_splits, s.parts, s.split_rows, t,
				(int32_t)decode_blocks(len, 1));
			if (range.end < 0)
				continue;
			UNROLL
			for (r = 0; r < 4; r++) {
				st.sum[r] = 0.0f;
				st.reach[r] = none;
				st.largest[r] = none;
			}
			UNROLL
			for (i = 0; i < 128; i++)
				st.o[i / 64][i / 4 % 16][i % 4] = 0.0f;
			BARRIER(); /* nobody reads the last keys and queries */
			for (i = g_item(); i < DECODE_HEADS * SPMLA_MLA_DIM / 2;
			     i += DECODE_MMA_ITEMS) {
				const uint32_t h = i / (SPMLA_MLA_DIM / 2);
				const uint32_t d = i % (SPMLA_MLA_DIM / 2) * 2;
				GLOBAL const uint16_t *from =
					q + token * s.q_token_stride +
					(int64_t)(first_head + h) *
						s.q_head_stride +
					d;
				uint32_t x = 0;

				if (first_head + h < s.heads)
					x = from[0] | (uint32_t)from[1] << 16;
				*(LOCAL uint32_t *)(q_local +
						    h * DECODE_MMA_ROW + d) = x;
			}
			if (range.begin < range.end)
				decode_mma_fetch(&next, &s, fault_state,
						 fault_status, cache, list, t,
						 (uint32_t)range.begin *
							 DECODE_MMA_KEYS,
						 len, reports);
			for (block = range.begin; block < range.end; block++) {
				float score[2][2][4];

				decode_mma_store(&next, keys, counts);
				BARRIER();
				if (block + 1 < range.end)
					decode_mma_fetch(
						&next, &s, fault_state,
						fault_status, cache, list, t,
						(uint32_t)(block + 1) *
							DECODE_MMA_KEYS,
						len, reports);
				decode_mma_scores(q_local, keys, m, quarter,
						  score);
				decode_mma_weights(score, counts, most, p, c, m,
						   quarter, &st);
				decode_mma_values(p, keys, m, quarter, &st);
				BARRIER(); /* nobody reads these keys */
			}
			row = decode_row(notes, num_splits, s.parts,
					 s.split_rows, t, &i);
			/* L of all keys: lanes of a quad, then the quarters. */
			UNROLL
			for (r = 0; r < 4; r++) {
				st.sum[r] += g_shuffle_xor_f(st.sum[r], 1);
				st.sum[r] += g_shuffle_xor_f(st.sum[r], 2);
				if (lane_t == 0)
					most[quarter * DECODE_HEADS + 32 * m +
					     8 * r + g] = st.sum[r];
			}
			BARRIER();
			UNROLL
			for (r = 0; r < 4; r++) {
				const uint32_t local_head = 32 * m + 8 * r + g;
				const uint32_t head = first_head + local_head;
				const float sum =
					most[local_head] +
					most[DECODE_HEADS + local_head] +
					most[2 * DECODE_HEADS + local_head] +
					most[3 * DECODE_HEADS + local_head];
				const uint32_t is_empty = sum == 0.0f;
				float total = sum, lse2;
				uint32_t column;

				if (head >= s.heads)
					continue;
				lse2 = st.reach[r] + g_log2(sum);
				if (is_empty)
					lse2 = none;
				if (row == ~(uint64_t)0 && s.has_sink &&
				    !is_empty)
					total += g_sink_weight(attn_sink[head],
							       st.reach[r]);
				UNROLL
				for (n = 0; n < 16; n++) {
					const float a =
						st.o[r / 2][n][r % 2 * 2];
					const float b =
						st.o[r / 2][n][r % 2 * 2 + 1];
					const float x =
						is_empty ? 0.0f
							 : g_div_rn(a, total);
					const float y =
						is_empty ? 0.0f
							 : g_div_rn(b, total);

					column = 128 * quarter + 8 * n +
						 2 * lane_t;
					if (row == ~(uint64_t)0) {
						GLOBAL uint16_t *to =
							out +
							token * s.out_token_stride +
							(int64_t)head *
								s.out_head_stride +
							column;

						to[0] = (uint16_t)g_f32_to_bf16(
							x);
						to[1] = (uint16_t)g_f32_to_bf16(
							y);
					} else {
						GLOBAL float *to =
							split_out +
							(row * s.heads + head) *
								SPMLA_MLA_LATENT +
							column;

						to[0] = x;
						to[1] = y;
					}
				}
				if (quarter || lane_t)
					continue;
				if (row != ~(uint64_t)0)
					split_lse[row * s.heads + head] = lse2;
				else if (s.has_lse)
					lse[token * s.lse_token_stride +
					    (int64_t)head * s.lse_head_stride] =
						!is_empty
							? lse2 * 0.693147180559945309f
						: s.empty_minus_inf
							? none
							: g_float(0x7f800000u);
			}
			BARRIER(); /* nobody reads the sums */
		}
	}
}

#endif
#endif
