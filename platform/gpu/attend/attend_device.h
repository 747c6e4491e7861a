/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loop of the sparse attention operations without matrix
 * instructions. A block of 256 threads has 16 heads of a token and walks the
 * token's keys, 64 entries at a time. Each head belongs to 16 lanes. Their
 * registers hold its query, its O, its L and its largest score from the first
 * key to the last. So only keys and weights go through shared memory, and heads
 * share only the keys. Every key is a bf16 number, in every layout.
 *
 * The hard idea: a device with little shared memory has room for 32 keys, but
 * weights are rounded to bf16 against the largest score of 64. So a block first
 * makes the scores of both halves. It adds the values of the second half while
 * those rows are still there, then loads the first half again.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_ATTEND_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_ATTEND_DEVICE_H

#include "spmla/platform/gpu/attend/decode_work_device.h"

enum {
	ATTEND_ITEMS = 256,
	ATTEND_LANES = 16, /* of a head */
	ATTEND_HEADS = ATTEND_ITEMS / ATTEND_LANES,
	ATTEND_KEYS = 64, /* entries of a block */
	ATTEND_HELD = 32, /* rows in shared memory */
	/* Lane l has every 16th quad (four values) of a row, from quad l on. */
	ATTEND_QUADS = SPMLA_MLA_DIM / 4 / ATTEND_LANES,
	ATTEND_VALUE_QUADS = SPMLA_MLA_LATENT / 4 / ATTEND_LANES,
	ATTEND_ROW = SPMLA_MLA_DIM / 4,
	ATTEND_P_ROW = ATTEND_KEYS + 1 /* heads in different banks */
};

/* The place of an entry that has no row. */
#define ATTEND_NO_ROW (~(uint64_t)0)

/* A bit of scales_at: the row's codes are FNUZ. It costs no register. */
#define ATTEND_FNUZ ((uint64_t)1 << 63)

/* One more layout beside spmla_layout: bf16 rows aligned to two bytes only. */
enum { ATTEND_LOOSE_BF16 = 16 };

#ifdef SPMLA_GPU_KERNELS

/* Where the rows of a block's entries are, in shared memory. */
typedef struct attend_rows {
	uint64_t at[ATTEND_KEYS];        /* bytes from the base */
	uint64_t scales_at[ATTEND_KEYS]; /* V4_FP8 */
} attend_rows;

/* What a block of threads shares. */
typedef struct attend_local {
	uint64_t keys[ATTEND_HELD * ATTEND_ROW]; /* four bf16 values each */
	attend_rows rows;
	float p[ATTEND_HEADS * ATTEND_P_ROW]; /* scores, then weights */
} attend_local;

/* What a lane has of its head. */
typedef struct attend_state {
	uint64_t
		q[ATTEND_QUADS]; /* four bf16 values each: half the registers */
	float o[4 * ATTEND_VALUE_QUADS];
	float largest;   /* score so far, unscaled */
	float sum;       /* L */
	float c;         /* brings scores to log2 units */
	uint32_t quads;  /* of a row: 9; 8 if it has 512 values */
	uint32_t active; /* whether there is such a head */
} attend_state;

FN uint32_t
attend_lane(void)
{
	return g_item() % ATTEND_LANES;
}

FN uint64_t
attend_quad(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	return (uint64_t)(c | d << 16) << 32 | (a | b << 16);
}

/* Value i of a quad. */
FN float
attend_value(uint64_t quad, uint32_t i)
{
	const uint32_t pair = (uint32_t)(quad >> (i / 2 * 32));

	return i % 2 ? g_bf16x2_high(pair) : g_bf16x2_low(pair);
}

/* Empties the accumulators and takes the head's query, bf16 [dim]. */
FN void
attend_start(PRIVATE attend_state *st, GLOBAL const uint16_t *q, uint32_t dim,
	     uint32_t active, float softmax_scale)
{
	uint32_t k, i;

	st->largest = G_LOWEST;
	st->sum = 0.0f;
	st->c = softmax_scale * G_LOG2_E;
	st->quads = dim / (4 * ATTEND_LANES);
	st->active = active;
	UNROLL
	for (k = 0; k < ATTEND_QUADS; k++) {
		GLOBAL const uint16_t *four =
			q + 4 * (ATTEND_LANES * k + attend_lane());

		st->q[k] = 0;
		if (active && k < st->quads)
			st->q[k] =
				attend_quad(four[0], four[1], four[2], four[3]);
	}
	UNROLL
	for (i = 0; i < 4 * ATTEND_VALUE_QUADS; i++)
		st->o[i] = 0.0f;
}

/* ---- Keys into shared memory ------------------------------------------- */

/* Four codes as bf16(e4m3 * scale). */
FN uint64_t
attend_dequantised(uint32_t codes, float scale)
{
	return attend_quad(
		g_f32_to_bf16(g_e4m3_to_f32(codes & 0xffu) * scale),
		g_f32_to_bf16(g_e4m3_to_f32(codes >> 8 & 0xffu) * scale),
		g_f32_to_bf16(g_e4m3_to_f32(codes >> 16 & 0xffu) * scale),
		g_f32_to_bf16(g_e4m3_to_f32(codes >> 24) * scale));
}

/* The same for FNUZ codes. */
FN uint64_t
attend_fnuz_quad(uint32_t codes, float scale)
{
	return attend_quad(
		g_f32_to_bf16(g_fnuz_to_f32(codes & 0xffu) * scale),
		g_f32_to_bf16(g_fnuz_to_f32(codes >> 8 & 0xffu) * scale),
		g_f32_to_bf16(g_fnuz_to_f32(codes >> 16 & 0xffu) * scale),
		g_f32_to_bf16(g_fnuz_to_f32(codes >> 24) * scale));
}

FN void
attend_load_fp8_ds_mla(LOCAL uint64_t *key, GLOBAL const uint8_t *row)
{
	const uint32_t l = attend_lane();
	GLOBAL const uint32_t *codes = (GLOBAL const uint32_t *)row;
	GLOBAL const float *scales =
		(GLOBAL const float *)(row + SPMLA_FP8_DS_MLA_SCALE_BYTE);
	GLOBAL const uint64_t *rope =
		(GLOBAL const uint64_t *)(row + SPMLA_FP8_DS_MLA_ROPE_BYTE);
	uint32_t x[ATTEND_VALUE_QUADS], k;
	float scale[SPMLA_MLA_SCALES];
	uint64_t last;

	UNROLL
	for (k = 0; k < ATTEND_VALUE_QUADS; k++)
		x[k] = codes[ATTEND_LANES * k + l];
	UNROLL
	for (k = 0; k < SPMLA_MLA_SCALES; k++)
		scale[k] = scales[k];
	last = rope[l];
	/* A scale is for 128 values: two rounds of the lanes. */
	UNROLL
	for (k = 0; k < ATTEND_VALUE_QUADS; k++)
		key[ATTEND_LANES * k + l] =
			attend_dequantised(x[k], scale[k / 2]);
	key[ATTEND_LANES * ATTEND_VALUE_QUADS + l] = last;
}

FN void
attend_load_v4_fp8(LOCAL uint64_t *key, GLOBAL const uint8_t *row,
		   GLOBAL const uint8_t *scales_of_row)
{
	const uint32_t l = attend_lane();
	GLOBAL const uint32_t *codes = (GLOBAL const uint32_t *)row;
	GLOBAL const uint64_t *rope =
		(GLOBAL const uint64_t *)(row + SPMLA_V4_NOPE);
	const uint64_t scales = *(GLOBAL const uint64_t *)scales_of_row;
	uint32_t x[SPMLA_V4_SCALES], k;
	uint64_t last;

	UNROLL
	for (k = 0; k < SPMLA_V4_SCALES; k++)
		x[k] = codes[ATTEND_LANES * k + l];
	last = rope[l];
	/* A scale is for 64 values: one round of the lanes. */
	UNROLL
	for (k = 0; k < SPMLA_V4_SCALES; k++)
		key[ATTEND_LANES * k + l] = attend_dequantised(
			x[k], g_ue8m0((uint32_t)(scales >> (8 * k)) & 0xffu));
	key[ATTEND_LANES * SPMLA_V4_SCALES + l] = last;
}

/* The same for FNUZ codes, of either layout: a word at a time, in few
 * registers. */
FN void
attend_load_fnuz(LOCAL uint64_t *key, GLOBAL const uint8_t *row,
		 GLOBAL const uint8_t *scales_of_row, uint32_t v4)
{
	const uint32_t l = attend_lane();
	const uint32_t rounds = v4 ? SPMLA_V4_SCALES : ATTEND_VALUE_QUADS;
	GLOBAL const uint32_t *codes = (GLOBAL const uint32_t *)row;
	GLOBAL const float *scales =
		(GLOBAL const float *)(row + SPMLA_FP8_DS_MLA_SCALE_BYTE);
	GLOBAL const uint64_t *rope =
		(GLOBAL const uint64_t *)(row +
					  (v4 ? SPMLA_V4_NOPE
					      : SPMLA_FP8_DS_MLA_ROPE_BYTE));
	uint32_t k;

	NO_UNROLL
	for (k = 0; k < rounds; k++) {
		const uint32_t x = codes[ATTEND_LANES * k + l];
		const float scale =
			v4 ? g_ue8m0(scales_of_row[k]) : scales[k / 2];

		key[ATTEND_LANES * k + l] = attend_fnuz_quad(x, scale);
	}
	key[ATTEND_LANES * rounds + l] = rope[l];
}

FN void
attend_load_bf16(LOCAL uint64_t *key, GLOBAL const uint8_t *row, uint32_t quads)
{
	const uint32_t l = attend_lane();
	GLOBAL const uint64_t *from = (GLOBAL const uint64_t *)row;
	uint64_t x[ATTEND_QUADS];
	uint32_t k;

	UNROLL
	for (k = 0; k < ATTEND_QUADS; k++)
		x[k] = k < quads ? from[ATTEND_LANES * k + l] : 0;
	UNROLL
	for (k = 0; k < ATTEND_QUADS; k++)
		if (k < quads)
			key[ATTEND_LANES * k + l] = x[k];
}

FN void
attend_load_loose(LOCAL uint64_t *key, GLOBAL const uint8_t *row,
		  uint32_t quads)
{
	uint32_t i;

	for (i = attend_lane(); i < ATTEND_LANES * quads; i += ATTEND_LANES) {
		GLOBAL const uint16_t *four =
			(GLOBAL const uint16_t *)row + 4 * i;

		key[i] = attend_quad(four[0], four[1], four[2], four[3]);
	}
}

/* The layout of sparse_prefill's rows. Tells the compiler that there are no
 * others, so that its kernels have no code for them. */
FN uint32_t
attend_bf16_layout(uint32_t layout)
{
	return layout == SPMLA_LAYOUT_MLA_BF16 ? (uint32_t)SPMLA_LAYOUT_MLA_BF16
					       : (uint32_t)ATTEND_LOOSE_BF16;
}

/* Loads a row, by 16 lanes. */
FN void
attend_load_row(LOCAL uint64_t *key, GLOBAL const uint8_t *base, uint64_t at,
		uint64_t scales_at, uint32_t layout, uint32_t quads)
{
	if ((layout == SPMLA_LAYOUT_FP8_DS_MLA ||
	     layout == SPMLA_LAYOUT_V4_FP8) &&
	    scales_at & ATTEND_FNUZ)
		attend_load_fnuz(key, base + at,
				 base + (scales_at ^ ATTEND_FNUZ),
				 layout == SPMLA_LAYOUT_V4_FP8);
	else if (layout == SPMLA_LAYOUT_FP8_DS_MLA)
		attend_load_fp8_ds_mla(key, base + at);
	else if (layout == SPMLA_LAYOUT_V4_FP8)
		attend_load_v4_fp8(key, base + at, base + scales_at);
	else if (layout == SPMLA_LAYOUT_MLA_BF16)
		attend_load_bf16(key, base + at, quads);
	else
		attend_load_loose(key, base + at, quads);
}

/* Loads the rows of 32 entries from `first` on. For an entry without a row,
 * shared memory keeps what it has. */
FN void
attend_load(LOCAL attend_local *shared, GLOBAL const uint8_t *base,
	    uint32_t layout, uint32_t quads, uint32_t first)
{
	LOCAL const attend_rows *rows = &shared->rows;
	uint32_t i;

	for (i = g_item() / ATTEND_LANES; i < ATTEND_HELD; i += ATTEND_HEADS)
		if (rows->at[first + i] != ATTEND_NO_ROW)
			attend_load_row(shared->keys + i * ATTEND_ROW, base,
					rows->at[first + i],
					rows->scales_at[first + i], layout,
					quads);
}

/* ---- A block ----------------------------------------------------------- */

/* The head's scores with 16 of the keys in shared memory: lane l gets key l's.
 * A lane sums its products in the order of its values. The tree 8, 4, 2, 1 then
 * adds the sums of the lanes. At each step a lane hands on the half of the keys
 * that it will not end with, so 16 keys take 15 shuffles. */
FN float
attend_scores(const PRIVATE attend_state *st, LOCAL const uint64_t *keys)
{
	const uint32_t l = attend_lane();
	float part[ATTEND_LANES];
	uint32_t step, k, i, j;

	UNROLL
	for (j = 0; j < ATTEND_LANES; j++)
		part[j] = 0.0f;
	if (st->active) {
		UNROLL
		for (k = 0; k < ATTEND_QUADS; k++) {
			if (k == ATTEND_QUADS - 1 && st->quads < ATTEND_QUADS)
				continue;
			UNROLL
			for (j = 0; j < ATTEND_LANES; j++) {
				const uint64_t x = keys[j * ATTEND_ROW +
							ATTEND_LANES * k + l];

				UNROLL
				for (i = 0; i < 4; i++)
					part[j] = g_fma(
						attend_value(st->q[k], i),
						attend_value(x, i), part[j]);
			}
		}
	}
	UNROLL
	for (step = 0; step < 4; step++) {
		const uint32_t span = 8u >> step;

		UNROLL
		for (j = 0; j < 8; j++) {
			if (j < span) {
				const float low = part[j];
				const float high = part[j + span];
				const float mine = l & span ? high : low;
				const float other = l & span ? low : high;

				part[j] = mine + g_shuffle_xor_f(other, span);
			}
		}
	}
	return part[0];
}

/* Turns scores into weights, in place, and brings O and L to the largest score
 * so far. Lane l has entries l, l + 16, .. of the block. */
FN void
attend_weights(PRIVATE attend_state *st, LOCAL attend_local *shared)
{
	const uint32_t l = attend_lane();
	LOCAL float *p = shared->p + g_item() / ATTEND_LANES * ATTEND_P_ROW;
	float block = G_LOWEST, sum = 0.0f, largest, rescale, share;
	uint32_t i, d;

	/* A NaN fails the comparison, so it is never the largest. */
	for (i = l; i < ATTEND_KEYS; i += ATTEND_LANES)
		if (shared->rows.at[i] != ATTEND_NO_ROW && p[i] > block)
			block = p[i];
	block = g_max16(block);
	largest = block > st->largest ? block : st->largest;
	rescale = g_exp2((st->largest - largest) * st->c);
	share = g_exp2((block - largest) * st->c);
	for (i = l; i < ATTEND_KEYS; i += ATTEND_LANES) {
		float x = 0.0f;

		if (shared->rows.at[i] != ATTEND_NO_ROW)
			x = g_exp2((p[i] - block) * st->c);
		sum += x;
		p[i] = g_round_bf16(x) * share;
	}
	st->largest = largest;
	st->sum = st->sum * rescale + g_sum16(sum) * share;
	if (rescale != 1.0f) {
		UNROLL
		for (d = 0; d < 4 * ATTEND_VALUE_QUADS; d++)
			st->o[d] *= rescale;
	}
}

/* O += P V over n entries of the block from `first` on, whose rows are in
 * shared memory. Entries without a row are skipped, so where they stand changes
 * no bit. */
FN void
attend_values(PRIVATE attend_state *st, LOCAL const attend_local *shared,
	      uint32_t first, uint32_t n)
{
	LOCAL const float *p =
		shared->p + g_item() / ATTEND_LANES * ATTEND_P_ROW + first;
	LOCAL const uint64_t *key = shared->keys + attend_lane();
	uint32_t j, k, i;

	if (!st->active)
		return;
	for (j = 0; j < n; j++, key += ATTEND_ROW) {
		if (shared->rows.at[first + j] == ATTEND_NO_ROW)
			continue;
		UNROLL
		for (k = 0; k < ATTEND_VALUE_QUADS; k++) {
			const uint64_t x = key[ATTEND_LANES * k];

			UNROLL
			for (i = 0; i < 4; i++)
				st->o[4 * k + i] =
					g_fma(p[j], attend_value(x, i),
					      st->o[4 * k + i]);
		}
	}
}

/* One block of n entries, 1 to 64. shared->rows.at has all 64 rows, written
 * after a barrier that followed the last block. More than 32 entries are loaded
 * in halves 0, 1, 0: the first two rounds make the scores, the last two add the
 * values. */
FN void
attend_block(PRIVATE attend_state *st, LOCAL attend_local *shared,
	     GLOBAL const uint8_t *base, uint32_t layout, uint32_t n)
{
	const uint32_t scored =
		n > ATTEND_HELD; /* the round that ends scores */
	LOCAL float *score = shared->p +
			     g_item() / ATTEND_LANES * ATTEND_P_ROW +
			     attend_lane();
	uint32_t round, row;

	for (round = 0; round <= 2 * scored; round++) {
		const uint32_t first = round % 2 * ATTEND_HELD;
		const uint32_t held =
			n - first < ATTEND_HELD ? n - first : ATTEND_HELD;

		BARRIER(); /* nobody reads the rows that are there */
		attend_load(shared, base, layout, st->quads, first);
		BARRIER();
		for (row = 0; round < 2 && row < held; row += ATTEND_LANES)
			score[first + row] = attend_scores(
				st, shared->keys + row * ATTEND_ROW);
		if (round == scored) {
			attend_weights(st, shared);
			BARRIER();
		}
		if (round >= scored)
			attend_values(st, shared, first, held);
	}
}

/* ---- Results ----------------------------------------------------------- */

/* Whether the head saw no key, or only keys with score -inf. Only then is L 0,
 * because otherwise the largest weight is 1. */
FN uint32_t
attend_empty(const PRIVATE attend_state *st)
{
	return st->sum == 0.0f;
}

/* The head's result as bf16 [512], with the sink, in natural log units. */
FN void
attend_out(const PRIVATE attend_state *st, uint32_t has_sink, float sink,
	   GLOBAL uint16_t *out)
{
	float total = st->sum, inverse;
	uint32_t k, i;

	if (has_sink)
		total += g_sink_weight(sink, st->largest * st->c);
	inverse = attend_empty(st) ? 0.0f : g_div_rn(1.0f, total);
	UNROLL
	for (k = 0; k < ATTEND_VALUE_QUADS; k++) {
		UNROLL
		for (i = 0; i < 4; i++) {
			const float x = st->o[4 * k + i] * inverse;

			out[4 * (ATTEND_LANES * k + attend_lane()) + i] =
				(uint16_t)(attend_empty(st) ? 0
							    : g_f32_to_bf16(x));
		}
	}
}

/* The same before the sink and the rounding: O / L, f32 [512]. */
FN void
attend_partial(const PRIVATE attend_state *st, GLOBAL float *out)
{
	const float inverse = attend_empty(st) ? 0.0f : g_div_rn(1.0f, st->sum);
	uint32_t k, i;

	UNROLL
	for (k = 0; k < ATTEND_VALUE_QUADS; k++) {
		UNROLL
		for (i = 0; i < 4; i++)
			out[4 * (ATTEND_LANES * k + attend_lane()) + i] =
				attend_empty(st) ? 0.0f
						 : st->o[4 * k + i] * inverse;
	}
}

/* log2 of the sum of exp2(c * score), of a head that is not empty. */
FN float
attend_lse2(const PRIVATE attend_state *st)
{
	return g_log2(st->sum) + st->largest * st->c;
}

/* ln of the sum of exp(softmax_scale * score), of a head that is not empty. */
FN float
attend_lse(const PRIVATE attend_state *st, float softmax_scale)
{
	return g_log2(st->sum) * G_LN_2 + st->largest * softmax_scale;
}

/* The lse of any head, empty or not. With lse_sink its sum includes the sink.
 */
FN float
attend_result_lse(const PRIVATE attend_state *st, uint32_t base2,
		  float empty_lse, float softmax_scale, uint32_t lse_sink,
		  float sink)
{
	const float natural = attend_lse(st, softmax_scale);

	if (!attend_empty(st) && !base2 && !lse_sink)
		return natural;
	return decode_result_lse(attend_empty(st), attend_lse2(st), natural,
				 empty_lse, base2, lse_sink, sink);
}

#endif
#endif
