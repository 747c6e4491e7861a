/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loop of sparse attention by products of tiles (tile.h), for rows of
 * every layout. A block has 16 heads of a token and 256 threads, or 32 or 64
 * heads and 512; 16 heads are a tile. It walks the token's keys, 32 at a time
 * in shared memory. For Q K^T a subgroup has a tile of heads and a share of the
 * dims, for P V a share of the columns and all heads. The 16 threads of a head
 * add up the shares of its scores and make the weights. Queries stay in
 * registers. What a row costs, to load it and to make bf16 of it, is spread
 * over the block's heads.
 *
 * The hard idea: weights are rounded to bf16, and yet a weight is the same
 * wherever a token is split. Weights are not relative to the largest score so
 * far, but to a power of two near it. A change to another power of two changes
 * only exponents. O is divided by the sum of the rounded weights, so that one
 * key alone gives its value; lse is of the sum of the others. And V lies in
 * shared memory by rows, but a lane needs columns. It reads two neighbouring
 * columns as one word, so each 32 columns are two tiles, one of the even columns
 * and one of the odd.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_ATTEND_TILE_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_ATTEND_TILE_DEVICE_H

#include "spmla/platform/gpu/attend/attend_tile_rows_device.h"
#include "spmla/platform/gpu/dialect/tile.h"

enum {
	/* Values that a row takes in shared memory: 8 more than it has, so that
	 * rows lie in different banks. */
	ATTEND_TILE_ROW = SPMLA_MLA_DIM + 8,
	ATTEND_TILE_P_ROW = ATTEND_HELD + 8,
	ATTEND_TILE_SCORE_ROW = ATTEND_HELD + 1,
	ATTEND_TILE_KEYS = ATTEND_HELD / G_TILE, /* tiles of keys */
	ATTEND_TILE_ALL_PAIRS = SPMLA_MLA_LATENT / (2 * G_TILE),
	ATTEND_TILE_ROUNDS = 2 /* at most */
};

/* The most tiles of heads of a block; only MFMA leaves registers for 64 heads.
 * The most that a subgroup has: steps of 16 dims, and pairs of tiles of
 * columns. The most subgroups that share a score of 16 or 32 heads. */
#if defined(__OPENCL_C_VERSION__)
#define ATTEND_TILE_HEADS 2
enum { ATTEND_TILE_STEPS = 5, ATTEND_TILE_PAIRS = 1, ATTEND_TILE_SHARES = 8 };
#elif defined(__GFX11__) || defined(__GFX12__)
#define ATTEND_TILE_HEADS 2
enum { ATTEND_TILE_STEPS = 9, ATTEND_TILE_PAIRS = 2, ATTEND_TILE_SHARES = 4 };
#elif defined(__HIP__)
#define ATTEND_TILE_HEADS 4
enum { ATTEND_TILE_STEPS = 18, ATTEND_TILE_PAIRS = 4, ATTEND_TILE_SHARES = 4 };
#else /* the emulator: all of them */
#define ATTEND_TILE_HEADS 4
enum { ATTEND_TILE_STEPS = 18, ATTEND_TILE_PAIRS = 4, ATTEND_TILE_SHARES = 8 };
#endif

/* 32-bit words behind attend_tile_local, by the tiles of heads of a block:
 * weights, two a word; factors; scores, of which 64 heads have half the shares,
 * so no more tiles than 32 heads. */
#define ATTEND_TILE_P_WORDS(tiles) ((tiles) * (G_TILE * ATTEND_TILE_P_ROW / 2))
#define ATTEND_TILE_WORDS(tiles)                                \
	(ATTEND_TILE_P_WORDS(tiles) + (tiles)*G_TILE +          \
	 ((tiles) == 1 ? 1 : 2) * ATTEND_TILE_SHARES * G_TILE * \
		 ATTEND_TILE_SCORE_ROW)

#ifdef SPMLA_GPU_KERNELS

/* What a block of threads shares. Behind it lies what each head has, so a block
 * of fewer heads has less. */
typedef struct attend_tile_local {
	uint64_t keys[ATTEND_HELD * ATTEND_TILE_ROW / 4]; /* first: queries */
	attend_rows rows[2]; /* of a block of entries and of the next one */
} attend_tile_local;

/* Such memory, for a kernel of so many tiles of heads a block. */
#define ATTEND_TILE_LOCAL(name, tiles)                     \
	LOCAL_ARRAY(uint64_t, name##_words,                \
		    sizeof(attend_tile_local) / 8 +        \
			    ATTEND_TILE_WORDS(tiles) / 2); \
	LOCAL attend_tile_local *const name =              \
		(LOCAL attend_tile_local *)name##_words

/* What an item has. It shares tiles of O and Q with its subgroup, and the
 * softmax of one head a round with 15 other items. */
typedef struct attend_tile_state {
	float o[ATTEND_TILE_HEADS][ATTEND_TILE_PAIRS][2][G_TILE_SUMS];
	uint32_t q[ATTEND_TILE_STEPS][G_TILE_WORDS];
	float largest[ATTEND_TILE_ROUNDS]; /* score so far, unscaled */
	/* what O and L are relative to, in log2 units */
	float reach[ATTEND_TILE_ROUNDS];
	float sum[ATTEND_TILE_ROUNDS]; /* L */
	/* the same of rounded weights, of the item's keys alone */
	float rounded[ATTEND_TILE_ROUNDS];
	float c;      /* brings scores to log2 units */
	uint32_t dim; /* of a row: 576 or 512 */
} attend_tile_state;

/* ---- A subgroup's part ------------------------------------------------- */

/* `tiles` is the number of tiles of heads of a block, a constant. */

/* Threads of a block. */
FN uint32_t
attend_tile_items(const uint32_t tiles)
{
	return tiles == 1 ? ATTEND_ITEMS : 2 * ATTEND_ITEMS;
}

FN uint32_t
attend_tile_subgroups(const uint32_t tiles)
{
	return attend_tile_items(tiles) / g_tile_lanes();
}

/* Rounds in which the items, 16 to a head, have all heads of a block. */
FN uint32_t
attend_tile_rounds(const uint32_t tiles)
{
	return tiles == 4 ? 2 : 1;
}

/* The head that the item has in a round. */
FN uint32_t
attend_tile_head(uint32_t round, const uint32_t tiles)
{
	return (round * attend_tile_items(tiles) + g_item()) / ATTEND_LANES;
}

/* Into how many parts the tiles of keys are split for Q K^T: two where there
 * are many subgroups, so that no more than eight share a score. */
FN uint32_t
attend_tile_splits(const uint32_t tiles)
{
	return attend_tile_subgroups(tiles) / tiles > 4 ? ATTEND_TILE_KEYS : 1;
}

/* Subgroups that share a score. */
FN uint32_t
attend_tile_shares(const uint32_t tiles)
{
	return attend_tile_subgroups(tiles) / tiles / attend_tile_splits(tiles);
}

/* For Q K^T a subgroup has this tile of heads, ... */
FN uint32_t
attend_tile_mine(const uint32_t tiles)
{
	return g_tile_subgroup() / attend_tile_splits(tiles) % tiles;
}

/* ... and this share of the dims: every step of 16 at share + j shares. */
FN uint32_t
attend_tile_share(const uint32_t tiles)
{
	return g_tile_subgroup() / attend_tile_splits(tiles) / tiles;
}

/* Whether step j lies within a row of `dim` dims, 512 or 576. Only the last
 * steps depend on it. */
FN uint32_t
attend_tile_has(uint32_t dim, uint32_t j, const uint32_t tiles)
{
	const uint32_t shares = attend_tile_shares(tiles);

	if (j < SPMLA_MLA_LATENT / G_TILE / shares)
		return 1;
	return j * shares < SPMLA_MLA_DIM / G_TILE &&
	       G_TILE * (attend_tile_share(tiles) + j * shares) < dim;
}

/* For P V a subgroup has so many pairs of tiles of columns, ... */
FN uint32_t
attend_tile_pairs(const uint32_t tiles)
{
	const uint32_t subgroups = attend_tile_subgroups(tiles);

	return subgroups > ATTEND_TILE_ALL_PAIRS
		       ? 1
		       : ATTEND_TILE_ALL_PAIRS / subgroups;
}

/* ... and so many tiles of heads: all of them, but where there are more
 * subgroups than pairs, half. */
FN uint32_t
attend_tile_owned(const uint32_t tiles)
{
	return attend_tile_subgroups(tiles) > ATTEND_TILE_ALL_PAIRS ? tiles / 2
								    : tiles;
}

/* The tile of heads that it has as number i. */
FN uint32_t
attend_tile_own(uint32_t i, const uint32_t tiles)
{
	return g_tile_subgroup() / ATTEND_TILE_ALL_PAIRS *
		       attend_tile_owned(tiles) +
	       i;
}

/* The first of the 32 columns of a pair. */
FN uint32_t
attend_tile_column(uint32_t pair, const uint32_t tiles)
{
	return (g_tile_subgroup() * attend_tile_pairs(tiles) + pair) %
	       ATTEND_TILE_ALL_PAIRS * 2 * G_TILE;
}

/* Weights, [head][32 keys]. Intel's compiler spills more if such a pointer is
 * kept, or has the head in it. */
FN LOCAL uint16_t *
attend_tile_p(LOCAL attend_tile_local *shared)
{
	return (LOCAL uint16_t *)(shared + 1);
}

/* By which O is multiplied, a factor a head. */
FN LOCAL float *
attend_tile_factor(LOCAL attend_tile_local *shared, const uint32_t tiles)
{
	return (LOCAL float *)(shared + 1) + ATTEND_TILE_P_WORDS(tiles);
}

/* Scores, [share][head][32 keys]. */
FN LOCAL float *
attend_tile_score(LOCAL attend_tile_local *shared, const uint32_t tiles)
{
	return attend_tile_factor(shared, tiles) + tiles * G_TILE;
}

/* ---- Keys -------------------------------------------------------------- */

/* Puts the queries of a round's heads into the place of keys. q is the block's
 * first one; `heads` or fewer exist. Barriers. */
FN void
attend_tile_queries(LOCAL attend_tile_local *shared, GLOBAL const uint16_t *q,
		    int64_t head_stride, uint32_t heads, uint32_t dim,
		    uint32_t round, const uint32_t tiles)
{
	const uint32_t head = g_here(attend_tile_head(round, tiles));
	LOCAL uint64_t *row =
		shared->keys + g_item() / ATTEND_LANES * (ATTEND_TILE_ROW / 4);
	uint32_t i;

	BARRIER(); /* nobody reads the keys or queries that are there */
	if (head < heads)
		attend_load_loose(
			row,
			(GLOBAL const uint8_t *)(q +
						 (int64_t)head * head_stride),
			dim / (4 * ATTEND_LANES));
	for (i = attend_lane(); i < dim / 4 && head >= heads; i += ATTEND_LANES)
		row[i] = 0;
	BARRIER();
}

/* Empties the accumulators and takes the queries of the block's heads, of which
 * there are `heads` or fewer. Barriers. */
FN void
attend_tile_start(PRIVATE attend_tile_state *st,
		  LOCAL attend_tile_local *shared, GLOBAL const uint16_t *q,
		  int64_t head_stride, uint32_t heads, uint32_t dim,
		  float softmax_scale, const uint32_t tiles)
{
	const uint32_t rounds = attend_tile_rounds(tiles);
	const uint32_t mine = attend_tile_mine(tiles);
	LOCAL const uint16_t *mine_at =
		(LOCAL const uint16_t *)shared->keys +
		mine % (tiles / rounds) * G_TILE * ATTEND_TILE_ROW +
		attend_tile_share(tiles) * G_TILE;
	uint32_t pair, tile, round, i, j;

	st->c = softmax_scale * G_LOG2_E;
	st->dim = dim;
	UNROLL
	for (tile = 0; tile < attend_tile_owned(tiles); tile++) {
		UNROLL
		for (pair = 0; pair < attend_tile_pairs(tiles); pair++) {
			UNROLL
			for (i = 0; i < g_tile_sums(); i++)
				st->o[tile][pair][0][i] =
					st->o[tile][pair][1][i] = 0.0f;
		}
	}
	UNROLL
	for (round = 0; round < rounds; round++) {
		st->largest[round] = G_LOWEST;
		st->reach[round] = G_MINUS_INF;
		st->sum[round] = st->rounded[round] = 0.0f;
		attend_tile_queries(shared, q, head_stride, heads, dim, round,
				    tiles);
		if (mine / (tiles / rounds) != round)
			continue;
		UNROLL
		for (j = 0; j < ATTEND_TILE_STEPS; j++) {
			if (attend_tile_has(dim, j, tiles))
				g_tile_a(mine_at + j * G_TILE *
							   attend_tile_shares(
								   tiles),
					 ATTEND_TILE_ROW, st->q[j]);
		}
	}
}

/* What the items have of 32 rows. An item has one, or two. */
typedef struct attend_tile_held {
	attend_tile_raw row[2];
} attend_tile_held;

/* Rows that an item has a part of. */
FN uint32_t
attend_tile_rows(const uint32_t tiles)
{
	return ATTEND_HELD * ATTEND_LANES / attend_tile_items(tiles);
}

/* The item's row number i of 32. */
FN uint32_t
attend_tile_row(uint32_t i, const uint32_t tiles)
{
	return (i * attend_tile_items(tiles) + g_item()) / ATTEND_LANES;
}

/* Asks for the rows of 32 entries from `first` on. */
FN void
attend_tile_ask(const PRIVATE attend_tile_state *st,
		PRIVATE attend_tile_held *held, LOCAL const attend_rows *rows,
		GLOBAL const uint8_t *base, uint32_t layout, uint32_t first,
		const uint32_t tiles)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < attend_tile_rows(tiles); i++) {
		const uint32_t row = first + attend_tile_row(i, tiles);

		if (rows->at[row] != ATTEND_NO_ROW)
			attend_tile_fetch(held->row + i, base, rows->at[row],
					  rows->scales_at[row], layout,
					  st->dim / (4 * ATTEND_LANES));
	}
}

/* Puts them into shared memory. An entry without a row becomes zeros. */
FN void
attend_tile_load(const PRIVATE attend_tile_state *st,
		 LOCAL attend_tile_local *shared,
		 const PRIVATE attend_tile_held *held,
		 LOCAL const attend_rows *rows, GLOBAL const uint8_t *base,
		 uint32_t layout, uint32_t first, const uint32_t tiles)
{
	uint32_t i, j;

	UNROLL
	for (i = 0; i < attend_tile_rows(tiles); i++) {
		const uint32_t row = attend_tile_row(i, tiles);
		const uint64_t at = rows->at[first + row];
		LOCAL uint64_t *key =
			shared->keys + row * (ATTEND_TILE_ROW / 4);

		if (at != ATTEND_NO_ROW)
			attend_tile_put(key, held->row + i, base, at,
					rows->scales_at[first + row], layout,
					st->dim / (4 * ATTEND_LANES));
		for (j = attend_lane(); at == ATTEND_NO_ROW && j < st->dim / 4;
		     j += ATTEND_LANES)
			key[j] = 0;
	}
}

/* ---- Scores and weights ------------------------------------------------ */

/* The subgroup's share of the scores of its heads with 16 keys. */
FN void
attend_tile_scores_of(const PRIVATE attend_tile_state *st,
		      LOCAL attend_tile_local *shared, uint32_t first,
		      const uint32_t tiles)
{
	const uint32_t share = attend_tile_share(tiles);
	const uint32_t row = (share * tiles + attend_tile_mine(tiles)) * G_TILE;
	LOCAL const uint16_t *keys = (LOCAL const uint16_t *)shared->keys +
				     first * ATTEND_TILE_ROW + G_TILE * share;
	LOCAL float *to = attend_tile_score(shared, tiles) +
			  row * ATTEND_TILE_SCORE_ROW + first + g_tile_lane();
	float sums[G_TILE_SUMS];
	uint32_t i, j;

	UNROLL
	for (i = 0; i < g_tile_sums(); i++)
		sums[i] = 0.0f;
	UNROLL
	for (j = 0; j < ATTEND_TILE_STEPS; j++) {
		uint32_t b[G_TILE_WORDS];

		if (attend_tile_has(st->dim, j, tiles)) {
			g_tile_b(keys + j * G_TILE * attend_tile_shares(tiles),
				 ATTEND_TILE_ROW, b);
			g_tile_bf16(sums, st->q[j], b);
		}
	}
	UNROLL
	for (i = 0; i < g_tile_sums(); i++)
		to[g_tile_row(i) * ATTEND_TILE_SCORE_ROW] = sums[i];
}

FN void
attend_tile_scores(const PRIVATE attend_tile_state *st,
		   LOCAL attend_tile_local *shared, const uint32_t tiles)
{
	const uint32_t splits = attend_tile_splits(tiles);
	uint32_t i;

	UNROLL
	for (i = 0; i < ATTEND_TILE_KEYS / splits; i++)
		attend_tile_scores_of(st, shared,
				      (g_tile_subgroup() % splits + i) * G_TILE,
				      tiles);
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

/* Makes the weights of the item's two keys for its head of a round, and the
 * factor that brings O and L to the new reference. An entry without a row has
 * weight 0. A NaN is never the largest. */
FN void
attend_tile_weights(PRIVATE attend_tile_state *st,
		    LOCAL attend_tile_local *shared,
		    LOCAL const attend_rows *rows, uint32_t first,
		    uint32_t round, const uint32_t tiles)
{
	const uint32_t head = attend_tile_head(round, tiles), l = attend_lane();
	float score[ATTEND_TILE_KEYS], most = st->largest[round], sum = 0.0f;
	float reach, above, rescale, rounded = 0.0f;
	uint32_t i, n;

	UNROLL
	for (i = 0; i < ATTEND_TILE_KEYS; i++) {
		const uint32_t key = i * G_TILE + l;

		score[i] = 0.0f;
		UNROLL
		for (n = 0; n < attend_tile_shares(tiles); n++)
			score[i] += attend_tile_score(
				shared, tiles)[(n * tiles * G_TILE + head) *
						       ATTEND_TILE_SCORE_ROW +
					       key];
		if (rows->at[first + key] == ATTEND_NO_ROW)
			score[i] = G_MINUS_INF;
		most = score[i] > most ? score[i] : most;
	}
	most = g_max16(most);
	reach = attend_tile_reach(most * st->c);
	above = attend_tile_above(most * st->c, reach);
	rescale = g_abs(reach) < G_INF
			  ? g_exp2(st->reach[round] - reach)
			  : g_exp2((st->largest[round] - most) * st->c);
	UNROLL
	for (i = 0; i < ATTEND_TILE_KEYS; i++) {
		const float x = g_exp2((score[i] - most) * st->c + above);
		const uint32_t near = g_f32_to_bf16(x);

		sum += x;
		rounded += g_float(near << 16);
		attend_tile_p(
			shared)[head * ATTEND_TILE_P_ROW + i * G_TILE + l] =
			(uint16_t)near;
	}
	st->largest[round] = most;
	st->reach[round] = reach;
	st->sum[round] = st->sum[round] * rescale + g_sum16(sum);
	st->rounded[round] = st->rounded[round] * rescale + rounded;
	if (l == 0)
		attend_tile_factor(shared, tiles)[head] = rescale;
}

/* ---- O ----------------------------------------------------------------- */

/* Brings its tile of O to the new reference. References are powers of two near
 * the largest score, so most steps change none. */
FN void
attend_tile_rescale(PRIVATE attend_tile_state *st,
		    LOCAL attend_tile_local *shared, uint32_t tile,
		    const uint32_t tiles)
{
	LOCAL const float *factors = attend_tile_factor(shared, tiles);
	float factor[G_TILE_SUMS];
	uint32_t changed = 0, pair, i;

	UNROLL
	for (i = 0; i < g_tile_sums(); i++) {
		factor[i] = factors[attend_tile_own(tile, tiles) * G_TILE +
				    g_tile_row(i)];
		changed |= factor[i] != 1.0f;
	}
	if (!changed)
		return;
	UNROLL
	for (pair = 0; pair < attend_tile_pairs(tiles); pair++) {
		UNROLL
		for (i = 0; i < g_tile_sums(); i++) {
			st->o[tile][pair][0][i] *= factor[i];
			st->o[tile][pair][1][i] *= factor[i];
		}
	}
}

/* O += P V over 16 of the keys. */
FN void
attend_tile_values_of(PRIVATE attend_tile_state *st,
		      LOCAL attend_tile_local *shared, uint32_t first,
		      const uint32_t tiles)
{
	LOCAL const uint16_t *rows =
		(LOCAL const uint16_t *)shared->keys + first * ATTEND_TILE_ROW;
	uint32_t a[ATTEND_TILE_HEADS][G_TILE_WORDS], pair, tile;

	UNROLL
	for (tile = 0; tile < attend_tile_owned(tiles); tile++)
		g_tile_a(attend_tile_p(shared) +
				 attend_tile_own(tile, tiles) * G_TILE *
					 ATTEND_TILE_P_ROW +
				 first,
			 ATTEND_TILE_P_ROW, a[tile]);
	UNROLL
	for (pair = 0; pair < attend_tile_pairs(tiles); pair++) {
		uint32_t even[G_TILE_WORDS], odd[G_TILE_WORDS];

		g_tile_b_pair(rows + attend_tile_column(pair, tiles),
			      ATTEND_TILE_ROW, even, odd);
		UNROLL
		for (tile = 0; tile < attend_tile_owned(tiles); tile++) {
			g_tile_bf16(st->o[tile][pair][0], a[tile], even);
			g_tile_bf16(st->o[tile][pair][1], a[tile], odd);
		}
	}
}

/* A step over 32 entries from `first` on, which the items hold: its first half
 * ends with weights, the second one, after a barrier, adds the values. In
 * between the items can ask for the next rows. Barriers. */
FN void
attend_tile_weigh(PRIVATE attend_tile_state *st,
		  LOCAL attend_tile_local *shared,
		  const PRIVATE attend_tile_held *held,
		  LOCAL const attend_rows *rows, GLOBAL const uint8_t *base,
		  uint32_t layout, uint32_t first, const uint32_t tiles)
{
	uint32_t i;

	BARRIER(); /* nobody reads the rows that are there */
	attend_tile_load(st, shared, held, rows, base, layout, first, tiles);
	BARRIER();
	attend_tile_scores(st, shared, tiles);
	BARRIER();
	UNROLL
	for (i = 0; i < attend_tile_rounds(tiles); i++)
		attend_tile_weights(st, shared, rows, first, i, tiles);
}

FN void
attend_tile_add(PRIVATE attend_tile_state *st, LOCAL attend_tile_local *shared,
		const uint32_t tiles)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < attend_tile_owned(tiles); i++)
		attend_tile_rescale(st, shared, i, tiles);
	UNROLL
	for (i = 0; i < ATTEND_TILE_KEYS; i++)
		attend_tile_values_of(st, shared, i * G_TILE, tiles);
}

/* ---- Results ----------------------------------------------------------- */

/* Whether the item's head of a round saw no key, or only keys whose score is
 * -inf. */
FN uint32_t
attend_tile_empty(const PRIVATE attend_tile_state *st, uint32_t round)
{
	return st->sum[round] == 0.0f;
}

/* log2 of the sum of exp2(c * score). */
FN float
attend_tile_lse2(const PRIVATE attend_tile_state *st, uint32_t round)
{
	return attend_tile_empty(st, round)
		       ? G_MINUS_INF
		       : g_log2(st->sum[round]) + st->reach[round];
}

/* ln of the sum of exp(softmax_scale * score), of a head that is not empty. It
 * is right also for scores too large for log2 units. */
FN float
attend_tile_lse(const PRIVATE attend_tile_state *st, uint32_t round,
		float softmax_scale)
{
	const float above =
		attend_tile_above(st->largest[round] * st->c, st->reach[round]);

	return (g_log2(st->sum[round]) - above) * G_LN_2 +
	       st->largest[round] * softmax_scale;
}

/* What the sink of a head adds to its L; 0 without a sink. */
FN float
attend_tile_sink(const PRIVATE attend_tile_state *st, uint32_t round,
		 uint32_t has_sink, float sink)
{
	return has_sink ? g_sink_weight(sink, st->reach[round]) : 0.0f;
}

/* Notes by what the O of the item's head of a round is divided: the sum of the
 * rounded weights, as O has them, and `more`, which the sink adds. So the O of
 * a single key is its value. The O of an empty head becomes 0. Nobody reads
 * factors. */
FN void
attend_tile_note(const PRIVATE attend_tile_state *st,
		 LOCAL attend_tile_local *shared, uint32_t round, float more,
		 const uint32_t tiles)
{
	const float rounded = g_sum16(st->rounded[round]);

	if (attend_lane() == 0)
		attend_tile_factor(shared,
				   tiles)[attend_tile_head(round, tiles)] =
			attend_tile_empty(st, round)
				? 0.0f
				: g_div_rn(1.0f, rounded + more);
}

/* Divides O, after a barrier that followed the notes. */
FN void
attend_tile_divide(PRIVATE attend_tile_state *st,
		   LOCAL attend_tile_local *shared, const uint32_t tiles)
{
	LOCAL const float *factors = attend_tile_factor(shared, tiles);
	uint32_t tile, pair, i;

	UNROLL
	for (tile = 0; tile < attend_tile_owned(tiles); tile++) {
		UNROLL
		for (i = 0; i < g_tile_sums(); i++) {
			const float factor =
				factors[attend_tile_own(tile, tiles) * G_TILE +
					g_tile_row(i)];

			UNROLL
			for (pair = 0; pair < attend_tile_pairs(tiles);
			     pair++) {
				PRIVATE float *even = st->o[tile][pair][0] + i;
				PRIVATE float *odd = st->o[tile][pair][1] + i;

				*even = factor == 0.0f ? 0.0f : *even * factor;
				*odd = factor == 0.0f ? 0.0f : *odd * factor;
			}
		}
	}
}

/* Writes O of the block's first `heads` heads as bf16. A lane's rows lie at one
 * fixed step, so it keeps one address, not one for each row. */
FN void
attend_tile_out(const PRIVATE attend_tile_state *st, GLOBAL uint16_t *out,
		int64_t head_stride, uint32_t heads, const uint32_t tiles)
{
	const uint32_t step = g_tile_row(1) - g_tile_row(0);
	const uint32_t first =
		g_here(attend_tile_own(0, tiles) * G_TILE + g_tile_row(0));
	uint32_t tile, pair, i;

	out += (int64_t)first * head_stride + 2 * g_tile_lane();
	UNROLL
	for (tile = 0; tile < attend_tile_owned(tiles); tile++) {
		GLOBAL uint16_t *row = out;

		UNROLL
		for (i = 0; i < g_tile_sums(); i++, row += step * head_stride) {
			if (tile * G_TILE + first + i * step >= heads)
				continue;
			UNROLL
			for (pair = 0; pair < attend_tile_pairs(tiles);
			     pair++) {
				GLOBAL uint16_t *to =
					row + attend_tile_column(pair, tiles);

				to[0] = (uint16_t)g_f32_to_bf16(
					st->o[tile][pair][0][i]);
				to[1] = (uint16_t)g_f32_to_bf16(
					st->o[tile][pair][1][i]);
			}
		}
		out += G_TILE * head_stride;
	}
}

/* The same as f32, head after head. */
FN void
attend_tile_partial(const PRIVATE attend_tile_state *st, GLOBAL float *out,
		    uint32_t heads, const uint32_t tiles)
{
	const uint32_t step = g_tile_row(1) - g_tile_row(0);
	const uint32_t first =
		g_here(attend_tile_own(0, tiles) * G_TILE + g_tile_row(0));
	uint32_t tile, pair, i;

	UNROLL
	for (tile = 0; tile < attend_tile_owned(tiles); tile++) {
		UNROLL
		for (i = 0; i < g_tile_sums(); i++) {
			const uint32_t head = tile * G_TILE + first + i * step;

			if (head >= heads)
				continue;
			UNROLL
			for (pair = 0; pair < attend_tile_pairs(tiles);
			     pair++) {
				GLOBAL float *to =
					out + head * SPMLA_MLA_LATENT +
					attend_tile_column(pair, tiles) +
					2 * g_tile_lane();

				to[0] = st->o[tile][pair][0][i];
				to[1] = st->o[tile][pair][1][i];
			}
		}
	}
}

#endif
#endif
