/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loop of sparse attention by products of tiles (tile.h), for rows of
 * every layout. A block of 256 threads has 16 heads of a token and walks the
 * token's keys, 32 at a time in shared memory. For Q K^T a subgroup takes 16 of
 * the keys and a share of the dims; for P V it takes a share of the columns.
 * The 16 threads of a head add up the shares of its scores and make the
 * weights. Queries stay in registers.
 *
 * The hard idea: weights are rounded to bf16, and yet it makes no difference
 * where a token is split. Weights are not relative to the largest score so far,
 * but to a power of two near it. A change to another power of two changes only
 * exponents. And V lies in shared memory by rows, but a lane needs columns. It
 * reads two neighbouring columns as one word, so each 32 columns are two tiles,
 * one of the even columns and one of the odd.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_ATTEND_TILE_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_ATTEND_TILE_DEVICE_H

#include "spmla/platform/gpu/attend/attend_device.h"
#include "spmla/platform/gpu/dialect/tile.h"

enum {
	/* Values that a row takes in shared memory: 8 more than it has, so that
	 * rows lie in different banks. */
	ATTEND_TILE_ROW = SPMLA_MLA_DIM + 8,
	ATTEND_TILE_P_ROW = ATTEND_HELD + 8,
	ATTEND_TILE_SCORE_ROW = ATTEND_HELD + 1,
	ATTEND_TILE_KEYS = ATTEND_HELD / G_TILE, /* tiles of keys */
	/* Subgroups that share the scores of a tile of keys, at most. */
	ATTEND_TILE_SHARES = ATTEND_ITEMS / G_TILE_LANES / ATTEND_TILE_KEYS,
#if defined(__OPENCL_C_VERSION__) || defined(__HIP__)
	/* A subgroup's steps of 16 dims, and its pairs of tiles of columns. */
	ATTEND_TILE_STEPS =
		(SPMLA_MLA_DIM / G_TILE - 1) / ATTEND_TILE_SHARES + 1,
	ATTEND_TILE_PAIRS =
		SPMLA_MLA_LATENT * G_TILE_LANES / (2 * G_TILE * ATTEND_ITEMS)
#else
	/* The emulator's blocks may have few subgroups: room for the most that
	 * one can have. */
	ATTEND_TILE_STEPS = SPMLA_MLA_DIM / G_TILE / 2,
	ATTEND_TILE_PAIRS = 4
#endif
};

#ifdef SPMLA_GPU_KERNELS

/* What a block of threads shares. */
typedef struct attend_tile_local {
	uint64_t keys[ATTEND_HELD * ATTEND_TILE_ROW / 4]; /* first: queries */
	attend_rows rows;
	uint16_t p[ATTEND_HEADS * ATTEND_TILE_P_ROW]; /* weights */
	float factor[ATTEND_HEADS]; /* by which O is multiplied */
	float score[ATTEND_TILE_SHARES][ATTEND_HEADS * ATTEND_TILE_SCORE_ROW];
} attend_tile_local;

/* What an item has. It shares tiles of O and Q with its subgroup, and the
 * softmax of head item / 16 with 15 other items. */
typedef struct attend_tile_state {
	float o[ATTEND_TILE_PAIRS][2][G_TILE_SUMS];
	uint32_t q[ATTEND_TILE_STEPS][G_TILE_WORDS];
	float largest; /* score so far, unscaled */
	float reach;   /* what O and L are relative to, in log2 units */
	float sum;     /* L */
	float c;       /* brings scores to log2 units */
	uint32_t dim;  /* of a row: 576 or 512 */
} attend_tile_state;

/* Subgroups that share a tile of keys. */
FN uint32_t
attend_tile_shares(void)
{
	return ATTEND_ITEMS / ATTEND_TILE_KEYS / g_tile_lanes();
}

/* Whether the subgroup's step j lies within a row of `dim` dims, 512 or 576. */
FN uint32_t
attend_tile_has(uint32_t dim, uint32_t j)
{
	const uint32_t shares = attend_tile_shares();
	const uint32_t share = g_tile_subgroup() / ATTEND_TILE_KEYS;

	return j < SPMLA_MLA_LATENT / G_TILE / shares ||
	       G_TILE * (share + j * shares) < dim;
}

/* Pairs of tiles of columns that a subgroup has. */
FN uint32_t
attend_tile_pairs(void)
{
	return SPMLA_MLA_LATENT * g_tile_lanes() / (2 * G_TILE * ATTEND_ITEMS);
}

/* The first of the 32 columns of a pair. */
FN uint32_t
attend_tile_column(uint32_t pair)
{
	return (g_tile_subgroup() * attend_tile_pairs() + pair) * 2 * G_TILE;
}

/* Empties the accumulators and takes the queries of the block's heads. q is the
 * query of the item's head; the head exists if `active`. Barriers. */
FN void
attend_tile_start(PRIVATE attend_tile_state *st,
		  LOCAL attend_tile_local *shared, GLOBAL const uint16_t *q,
		  uint32_t dim, uint32_t active, float softmax_scale)
{
	const uint32_t shares = attend_tile_shares();
	const uint32_t share = g_tile_subgroup() / ATTEND_TILE_KEYS;
	LOCAL uint64_t *row =
		shared->keys + g_item() / ATTEND_LANES * (ATTEND_TILE_ROW / 4);
	uint32_t pair, i, j;

	st->largest = G_LOWEST;
	st->reach = G_MINUS_INF;
	st->sum = 0.0f;
	st->c = softmax_scale * G_LOG2_E;
	st->dim = dim;
	UNROLL
	for (pair = 0; pair < attend_tile_pairs(); pair++) {
		UNROLL
		for (i = 0; i < g_tile_sums(); i++)
			st->o[pair][0][i] = st->o[pair][1][i] = 0.0f;
	}
	BARRIER(); /* nobody reads the last token's keys */
	if (active)
		attend_load_loose(row, (GLOBAL const uint8_t *)q,
				  dim / (4 * ATTEND_LANES));
	for (i = attend_lane(); i < dim / 4 && !active; i += ATTEND_LANES)
		row[i] = 0;
	BARRIER();
	UNROLL
	for (j = 0; j < ATTEND_TILE_STEPS; j++) {
		const uint32_t k = G_TILE * (share + j * shares);

		if (attend_tile_has(dim, j))
			g_tile_a((LOCAL const uint16_t *)shared->keys + k,
				 ATTEND_TILE_ROW, st->q[j]);
	}
}

/* Loads the rows of 32 entries from `first` on. An entry without a row becomes
 * zeros. */
FN void
attend_tile_load(const PRIVATE attend_tile_state *st,
		 LOCAL attend_tile_local *shared, GLOBAL const uint8_t *base,
		 uint32_t layout, uint32_t first)
{
	uint32_t i, j;

	for (i = g_item() / ATTEND_LANES; i < ATTEND_HELD; i += ATTEND_HEADS) {
		const uint64_t at = shared->rows.at[first + i];
		LOCAL uint64_t *key = shared->keys + i * (ATTEND_TILE_ROW / 4);

		if (at != ATTEND_NO_ROW)
			attend_load_row(key, base, at,
					shared->rows.scales_at[first + i],
					layout, st->dim / (4 * ATTEND_LANES));
		for (j = attend_lane(); at == ATTEND_NO_ROW && j < st->dim / 4;
		     j += ATTEND_LANES)
			key[j] = 0;
	}
}

/* The subgroup's share of the scores of its 16 keys. */
FN void
attend_tile_scores(const PRIVATE attend_tile_state *st,
		   LOCAL attend_tile_local *shared)
{
	const uint32_t shares = attend_tile_shares();
	const uint32_t share = g_tile_subgroup() / ATTEND_TILE_KEYS;
	const uint32_t first = g_tile_subgroup() % ATTEND_TILE_KEYS * G_TILE;
	LOCAL const uint16_t *keys =
		(LOCAL const uint16_t *)shared->keys + first * ATTEND_TILE_ROW;
	LOCAL float *to = shared->score[share] + first + g_tile_lane();
	float sums[G_TILE_SUMS];
	uint32_t i, j;

	UNROLL
	for (i = 0; i < g_tile_sums(); i++)
		sums[i] = 0.0f;
	UNROLL
	for (j = 0; j < ATTEND_TILE_STEPS; j++) {
		const uint32_t k = G_TILE * (share + j * shares);
		uint32_t b[G_TILE_WORDS];

		if (attend_tile_has(st->dim, j)) {
			g_tile_b(keys + k, ATTEND_TILE_ROW, b);
			g_tile_bf16(sums, st->q[j], b);
		}
	}
	UNROLL
	for (i = 0; i < g_tile_sums(); i++)
		to[g_tile_row(i) * ATTEND_TILE_SCORE_ROW] = sums[i];
}

/* The reference of the weights, in log2 units, if x is the largest score: x
 * without its fraction. From 2^23 on x has none. */
FN float
attend_tile_reach(float x)
{
	return g_abs(x) < 0x1p23f ? (float)(int32_t)x : x;
}

/* How far the largest score x lies above `reach`. */
FN float
attend_tile_above(float x, float reach)
{
	return g_abs(reach) < 0x1p23f ? x - reach : 0.0f;
}

/* Makes the weights of the item's two keys for its head, and the factor that
 * brings O and L to the new reference. An entry without a row has weight 0. A
 * NaN is never the largest. */
FN void
attend_tile_weights(PRIVATE attend_tile_state *st,
		    LOCAL attend_tile_local *shared, uint32_t first)
{
	const uint32_t head = g_item() / ATTEND_LANES, l = attend_lane();
	float score[ATTEND_TILE_KEYS], most = st->largest, sum = 0.0f;
	float reach, above, rescale;
	uint32_t i, n;

	UNROLL
	for (i = 0; i < ATTEND_TILE_KEYS; i++) {
		const uint32_t key = i * G_TILE + l;

		score[i] = 0.0f;
		for (n = 0; n < attend_tile_shares(); n++)
			score[i] +=
				shared->score[n][head * ATTEND_TILE_SCORE_ROW +
						 key];
		if (shared->rows.at[first + key] == ATTEND_NO_ROW)
			score[i] = G_MINUS_INF;
		most = score[i] > most ? score[i] : most;
	}
	most = g_max16(most);
	reach = attend_tile_reach(most * st->c);
	above = attend_tile_above(most * st->c, reach);
	rescale = g_abs(reach) < G_INF ? g_exp2(st->reach - reach)
				       : g_exp2((st->largest - most) * st->c);
	UNROLL
	for (i = 0; i < ATTEND_TILE_KEYS; i++) {
		const float x = g_exp2((score[i] - most) * st->c + above);

		sum += x;
		shared->p[head * ATTEND_TILE_P_ROW + i * G_TILE + l] =
			(uint16_t)g_f32_to_bf16(x);
	}
	st->largest = most;
	st->reach = reach;
	st->sum = st->sum * rescale + g_sum16(sum);
	if (l == 0)
		shared->factor[head] = rescale;
}

/* O += P V, after O was brought to the new reference. */
FN void
attend_tile_values(PRIVATE attend_tile_state *st,
		   LOCAL const attend_tile_local *shared)
{
	uint32_t a[ATTEND_TILE_KEYS][G_TILE_WORDS], pair, k, i;
	float factor[G_TILE_SUMS];

	UNROLL
	for (i = 0; i < g_tile_sums(); i++)
		factor[i] = shared->factor[g_tile_row(i)];
	UNROLL
	for (k = 0; k < ATTEND_TILE_KEYS; k++)
		g_tile_a(shared->p + k * G_TILE, ATTEND_TILE_P_ROW, a[k]);
	UNROLL
	for (pair = 0; pair < attend_tile_pairs(); pair++) {
		LOCAL const uint16_t *columns =
			(LOCAL const uint16_t *)shared->keys +
			attend_tile_column(pair);

		UNROLL
		for (i = 0; i < g_tile_sums(); i++) {
			st->o[pair][0][i] *= factor[i];
			st->o[pair][1][i] *= factor[i];
		}
		UNROLL
		for (k = 0; k < ATTEND_TILE_KEYS; k++) {
			uint32_t even[G_TILE_WORDS], odd[G_TILE_WORDS];

			g_tile_b_pair(columns + k * G_TILE * ATTEND_TILE_ROW,
				      ATTEND_TILE_ROW, even, odd);
			g_tile_bf16(st->o[pair][0], a[k], even);
			g_tile_bf16(st->o[pair][1], a[k], odd);
		}
	}
}

/* One block of n entries, 1 to 64. shared->rows has all 64, written after a
 * barrier that followed the last block. */
FN void
attend_tile_block(PRIVATE attend_tile_state *st,
		  LOCAL attend_tile_local *shared, GLOBAL const uint8_t *base,
		  uint32_t layout, uint32_t n)
{
	uint32_t first;

	for (first = 0; first < n; first += ATTEND_HELD) {
		BARRIER(); /* nobody reads the rows that are there */
		attend_tile_load(st, shared, base, layout, first);
		BARRIER();
		attend_tile_scores(st, shared);
		BARRIER();
		attend_tile_weights(st, shared, first);
		BARRIER();
		attend_tile_values(st, shared);
	}
}

/* Whether the item's head saw no key, or only keys whose score is -inf. */
FN uint32_t
attend_tile_empty(const PRIVATE attend_tile_state *st)
{
	return st->sum == 0.0f;
}

/* log2 of the sum of exp2(c * score), of a head that is not empty. */
FN float
attend_tile_lse2(const PRIVATE attend_tile_state *st)
{
	return attend_tile_empty(st) ? G_MINUS_INF
				     : g_log2(st->sum) + st->reach;
}

/* ln of the sum of exp(softmax_scale * score), of a head that is not empty. It
 * is right also for scores too large for log2 units. */
FN float
attend_tile_lse(const PRIVATE attend_tile_state *st, float softmax_scale)
{
	const float above = attend_tile_above(st->largest * st->c, st->reach);

	return (g_log2(st->sum) - above) * G_LN_2 + st->largest * softmax_scale;
}

/* Divides O by L + more, where `more` is what the sink adds to the head's L.
 * The O of an empty head becomes 0. Barriers. */
FN void
attend_tile_divide(PRIVATE attend_tile_state *st,
		   LOCAL attend_tile_local *shared, float more)
{
	uint32_t pair, i;

	BARRIER(); /* nobody reads factors */
	if (attend_lane() == 0)
		shared->factor[g_item() / ATTEND_LANES] =
			attend_tile_empty(st) ? 0.0f
					      : g_div_rn(1.0f, st->sum + more);
	BARRIER();
	UNROLL
	for (i = 0; i < g_tile_sums(); i++) {
		const float factor = shared->factor[g_tile_row(i)];

		UNROLL
		for (pair = 0; pair < attend_tile_pairs(); pair++) {
			PRIVATE float *even = st->o[pair][0] + i;
			PRIVATE float *odd = st->o[pair][1] + i;

			*even = factor == 0.0f ? 0.0f : *even * factor;
			*odd = factor == 0.0f ? 0.0f : *odd * factor;
		}
	}
}

/* Writes O of the block's first `heads` heads as bf16. A lane's rows lie at one
 * fixed step, so it keeps one address, not one for each row. */
FN void
attend_tile_out(const PRIVATE attend_tile_state *st, GLOBAL uint16_t *out,
		int64_t head_stride, uint32_t heads)
{
	const uint32_t step = g_tile_row(1) - g_tile_row(0);
	uint32_t pair, i;

	out += (int64_t)g_tile_row(0) * head_stride + 2 * g_tile_lane();
	UNROLL
	for (i = 0; i < g_tile_sums(); i++, out += step * head_stride) {
		if (g_tile_row(i) >= heads)
			continue;
		UNROLL
		for (pair = 0; pair < attend_tile_pairs(); pair++) {
			GLOBAL uint16_t *to = out + attend_tile_column(pair);

			to[0] = (uint16_t)g_f32_to_bf16(st->o[pair][0][i]);
			to[1] = (uint16_t)g_f32_to_bf16(st->o[pair][1][i]);
		}
	}
}

FN void
attend_tile_partial(const PRIVATE attend_tile_state *st, GLOBAL float *out,
		    uint32_t heads)
{
	uint32_t pair, i;

	UNROLL
	for (i = 0; i < g_tile_sums(); i++) {
		const uint32_t head = g_tile_row(i);

		UNROLL
		for (pair = 0; pair < attend_tile_pairs(); pair++) {
			GLOBAL float *to = out + head * SPMLA_MLA_LATENT +
					   attend_tile_column(pair) +
					   2 * g_tile_lane();

			if (head < heads) {
				to[0] = st->o[pair][0][i];
				to[1] = st->o[pair][1][i];
			}
		}
	}
}

#endif
#endif
