/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits by products of tiles (tile.h), for up to 64 heads. Queries and
 * keys are in either encoding of e4m3, keys by rows or in tiles, or both are in
 * MXFP4; logits are of either type. Queries lie in shared memory as bf16, which
 * is exact for e4m3 and for MXFP4 values with their scales. Keys go from the
 * cache to registers. The hard idea: the order of the 128 dims is free as long as both sides use
 * the same one. So a lane reads bytes of a key that lie together, and queries
 * are permuted to match.
 *
 * A subgroup has 16 keys of a unit of 64 and a share of the heads, by 16. Work
 * is the line of units of mqa_logits_device.h.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_TILE_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_TILE_KERNEL_H

#include "spmla/platform/gpu/dialect/codes.h"
#include "spmla/platform/gpu/dialect/mxfp4.h"
#include "spmla/platform/gpu/dialect/tile.h"
#include "spmla/platform/gpu/select/mqa_logits_device.h"

#define SPMLA_K_mqa_logits_tile(P, S) SPMLA_K_mqa_logits(P, S)
typedef spmla_k_mqa_logits_scalars spmla_k_mqa_logits_tile_scalars;
#define SPMLA_K_mqa_logits_mxfp4_tile(P, S) SPMLA_K_mqa_logits_mxfp4(P, S)
typedef spmla_k_mqa_logits_scalars spmla_k_mqa_logits_mxfp4_tile_scalars;

enum { MQA_TILE_HEADS = 64 };

#ifdef SPMLA_GPU_KERNELS

enum {
	/* bf16 values of a query's head in shared memory: 8 more than it has,
	 * so that heads lie in different banks. */
	MQA_TILE_ROW = MQA_DIM + 8,
	MQA_TILE_KEYS = MQA_UNIT / G_TILE, /* tiles of keys */
	MQA_TILE_STEPS = MQA_DIM / G_TILE,
	/* Subgroups that share the heads of a tile of keys, at most. */
	MQA_TILE_SHARES = MQA_ITEMS / G_TILE_LANES / MQA_TILE_KEYS
};

/* Shared memory. */
typedef struct mqa_tile_shared {
	uint64_t q[MQA_TILE_HEADS * MQA_TILE_ROW / 4];
	float w[MQA_TILE_HEADS];
	float sum[MQA_TILE_SHARES][MQA_UNIT];
	uint64_t ends[MQA_ITEMS];        /* of tokens' units on the line */
	uint64_t sums[G_SCAN_SUBGROUPS]; /* of the scans */
} mqa_tile_shared;

/* Lanes that share a row of A or B. */
FN uint32_t
mqa_tile_parts(void)
{
	return 8 / g_tile_words();
}

/* Where dim d of a query, a multiple of 4, lies: the values that a lane has of
 * a step are neighbours in a key. */
FN uint32_t
mqa_tile_place(uint32_t d)
{
	const uint32_t run = MQA_DIM / mqa_tile_parts();
	const uint32_t step = G_TILE / mqa_tile_parts();

	return d % run / step * G_TILE + d / run * step + d % step;
}

/* Two codes as bf16, exact; a NaN stays one. */
FN uint32_t
mqa_tile_pair(uint32_t codes, uint32_t fnuz)
{
	float low, high;

	if (fnuz) {
		low = g_fnuz_to_f32(codes & 0xffu);
		high = g_fnuz_to_f32(codes >> 8 & 0xffu);
	} else {
		g_e4m3x2_to_f32(codes, &low, &high);
	}
	return g_bits(low) >> 16 | (g_bits(high) & 0xffff0000u);
}

/* Two codes of MXFP4, a byte, with their scale as bf16, exact. */
FN uint32_t
mqa_tile_pair_mxfp4(uint32_t codes, float scale)
{
	const float low = g_e2m1_to_f32(codes & 15u) * scale;
	const float high = g_e2m1_to_f32(codes >> 4 & 15u) * scale;

	return g_bits(low) >> 16 | (g_bits(high) & 0xffff0000u);
}

/* Puts queries and weights of a token into shared memory, with zeros up to
 * whole tiles. Has a barrier at both ends. */
FN void
mqa_tile_stage(GLOBAL const uint8_t *q, GLOBAL const uint32_t *q_scales,
	       const uint32_t mxfp4, uint32_t fnuz, GLOBAL const float *weights,
	       uint32_t heads, LOCAL mqa_tile_shared *to)
{
	const uint32_t aligned = ((uint64_t)q & 3u) == 0;
	const uint32_t rows = (heads + G_TILE - 1) / G_TILE * G_TILE;
	uint32_t i;

	BARRIER();
	for (i = g_item(); i < rows * (MQA_DIM / 4); i += MQA_ITEMS) {
		const uint32_t h = i / (MQA_DIM / 4), four = i % (MQA_DIM / 4);
		uint32_t codes = 0, low, high;

		if (mxfp4) {
			float scale = 0.0f;

			if (h < heads) {
				codes = q[2 * i] | (uint32_t)q[2 * i + 1] << 8;
				scale = g_pow2(q_scales[h] >> four / 8 * 8 &
					       0xffu);
			}
			low = mqa_tile_pair_mxfp4(codes, scale);
			high = mqa_tile_pair_mxfp4(codes >> 8, scale);
		} else {
			if (h < heads)
				codes = mqa_word(q + 4 * i, aligned);
			low = mqa_tile_pair(codes & 0xffffu, fnuz);
			high = mqa_tile_pair(codes >> 16, fnuz);
		}
		to->q[(h * MQA_TILE_ROW + mqa_tile_place(4 * four)) / 4] =
			(uint64_t)high << 32 | low;
	}
	for (i = g_item(); i < rows; i += MQA_ITEMS)
		to->w[i] = i < heads ? weights[i] : 0.0f;
	BARRIER();
}

/* Which part of a row of A or B the lane has. */
FN uint32_t
mqa_tile_part(void)
{
	return mqa_tile_parts() == 1 ? 0 : g_item() % g_tile_lanes() / G_TILE;
}

/* Loads 16 bytes of a key, aligned to 16 or not; zeros if is_key is 0. */
FN void
mqa_tile_bytes(GLOBAL const uint8_t *codes, uint32_t is_key, uint32_t aligned,
	       PRIVATE uint32_t *x)
{
	uint32_t j;

	UNROLL
	for (j = 0; j < 4; j++)
		x[j] = is_key && !aligned ? mqa_word(codes + 4 * j, 0) : 0;
	if (is_key && aligned)
		g_load4((GLOBAL const float *)codes, x);
}

/* Loads the lane's part of a key as operand B of all steps; zeros if is_key is
 * 0. Runs of 16 values lie `run` bytes apart, aligned to 16 or not. One NaN, at
 * any place, makes all sums of a key NaN. */
FN void
mqa_tile_load(PRIVATE uint32_t b[MQA_TILE_STEPS][G_TILE_WORDS],
	      GLOBAL const uint8_t *codes, uint32_t is_key, uint32_t aligned,
	      uint32_t fnuz, uint32_t run)
{
	const uint32_t pieces = MQA_TILE_STEPS / mqa_tile_parts();
	const uint32_t words = g_tile_words();
	const float power = g_codes_power(fnuz);
	uint32_t nan = 0, i, j, x[4];

	codes += mqa_tile_part() * pieces * run;
	UNROLL
	for (i = 0; i < pieces; i++, codes += run) {
		mqa_tile_bytes(codes, is_key, aligned, x);
		nan |= g_codes_any_nan(x, 4, fnuz);
		UNROLL
		for (j = 0; j < 4; j++) {
			const uint32_t w = 8 * i + 2 * j;

			g_codes_to_bf16x4(x[j], power, 1,
					  b[w / words] + w % words);
		}
	}
	if (nan)
		b[0][0] = G_NAN_BITS;
}

/* The same for MXFP4; 16 bytes are group g, whose scale is byte g of the word
 * at `scales`. */
FN void
mqa_tile_load_mxfp4(PRIVATE uint32_t b[MQA_TILE_STEPS][G_TILE_WORDS],
		    GLOBAL const uint8_t *codes, GLOBAL const uint32_t *scales,
		    uint32_t is_key, uint32_t aligned)
{
	const uint32_t groups = MQA_DIM / 32 / mqa_tile_parts();
	const uint32_t first = mqa_tile_part() * groups;
	const uint32_t words = g_tile_words();
	const uint32_t word = is_key ? *scales : 0;
	uint32_t i, j, x[4];

	UNROLL
	for (i = 0; i < groups; i++) {
		const float scale = g_pow2(word >> 8 * (first + i) & 0xffu);

		mqa_tile_bytes(codes + 16 * (first + i), is_key, aligned, x);
		UNROLL
		for (j = 0; j < 16; j++) {
			const uint32_t w = 16 * i + j;

			b[w / words][w % words] = mqa_tile_pair_mxfp4(
				x[j / 4] >> j % 4 * 8, scale);
		}
	}
}

/* The sum over the subgroup's heads of relu(q . k) w for the lane's key.
 * relu(x) is x where x > 0, else 0, also for a NaN. */
FN float
mqa_tile_score(PRIVATE uint32_t b[MQA_TILE_STEPS][G_TILE_WORDS],
	       LOCAL const mqa_tile_shared *shared, uint32_t heads)
{
	const uint32_t shares = MQA_ITEMS / g_tile_lanes() / MQA_TILE_KEYS;
	uint32_t h = g_tile_subgroup() / MQA_TILE_KEYS * G_TILE, i, j;
	float sum = 0.0f;

	for (; h < heads; h += shares * G_TILE) {
		LOCAL const uint16_t *q =
			(LOCAL const uint16_t *)shared->q + h * MQA_TILE_ROW;
		float c[G_TILE_SUMS];

		UNROLL
		for (i = 0; i < g_tile_sums(); i++)
			c[i] = 0.0f;
		UNROLL
		for (j = 0; j < MQA_TILE_STEPS; j++) {
			uint32_t a[G_TILE_WORDS];

			g_tile_a(q + j * G_TILE, MQA_TILE_ROW, a);
			g_tile_bf16(c, a, b[j]);
		}
		UNROLL
		for (i = 0; i < g_tile_sums(); i++)
			sum += (c[i] > 0.0f ? c[i] : 0.0f) *
			       shared->w[h + g_tile_row(i)];
	}
	for (i = G_TILE; i < g_tile_lanes(); i *= 2)
		sum += g_shuffle_xor_f(sum, i);
	return sum;
}

/* The lane's key of a unit. */
FN uint32_t
mqa_tile_own(void)
{
	return g_tile_subgroup() % MQA_TILE_KEYS * G_TILE + g_tile_lane();
}

/* The sum over all heads for that key. Barriers. */
FN float
mqa_tile_sum(PRIVATE uint32_t b[MQA_TILE_STEPS][G_TILE_WORDS],
	     LOCAL mqa_tile_shared *shared, uint32_t heads)
{
	const uint32_t shares = MQA_ITEMS / g_tile_lanes() / MQA_TILE_KEYS;
	float sum = mqa_tile_score(b, shared, heads);
	uint32_t n;

	if (shares == 1)
		return sum;
	shared->sum[g_tile_subgroup() / MQA_TILE_KEYS][mqa_tile_own()] = sum;
	BARRIER();
	sum = 0.0f;
	for (n = 0; n < shares; n++)
		sum += shared->sum[n][mqa_tile_own()];
	BARRIER(); /* nobody reads the sums */
	return sum;
}

/* Whether the item is the one that writes its key's score. */
FN uint32_t
mqa_tile_writes(void)
{
	return g_tile_subgroup() < MQA_TILE_KEYS &&
	       g_item() % g_tile_lanes() < G_TILE;
}

/* Scores a unit of token t, the keys from `first` on. `stage`: the token's
 * heads are not in shared memory yet. Has barriers. */
FN void
mqa_tile_unit(const PRIVATE mqa_logits_job *job, LOCAL mqa_tile_shared *shared,
	      uint32_t t, uint32_t first, uint32_t stage, const uint32_t mxfp4)
{
	const PRIVATE spmla_k_mqa_logits_scalars *s = &job->s;
	const g_table table = G_TABLE(job->block_table, job->table_cols, *s);
	const uint32_t len = mqa_row_len(job->context_lens[t], s->row_stride);
	const uint32_t row = (uint32_t)job->token_row[t];
	const uint32_t key = first + mqa_tile_own();
	const uint32_t entry = key % s->page_tokens;
	const uint32_t key_bytes = mxfp4 ? MQA_DIM / 2 : MQA_DIM;
	const uint64_t head = (uint64_t)t * s->heads;
	GLOBAL const uint8_t *at = job->cache, *scales;
	uint32_t b[MQA_TILE_STEPS][G_TILE_WORDS];
	int32_t page = -1;
	float sum;

	if (stage)
		mqa_tile_stage(job->q + head * key_bytes,
			       mxfp4 ? job->q_scales + head : job->q_scales,
			       mxfp4, s->q_fnuz, job->weights + head, s->heads,
			       shared);
	if (key < len)
		page = g_table_page(&table, row, key / s->page_tokens);
	if (page >= 0)
		at += (uint64_t)page * s->page_stride_bytes;
	scales = at + (uint64_t)s->page_tokens * key_bytes + 4 * entry;
	at += s->tiled ? (uint64_t)(entry / 16) * 2048 + entry % 16 * 16
		       : (uint64_t)entry * key_bytes;
	if (mxfp4)
		mqa_tile_load_mxfp4(b, at, (GLOBAL const uint32_t *)scales,
				    page >= 0, 1);
	else
		mqa_tile_load(b, at, page >= 0, 1, s->fnuz,
			      s->tiled ? 256 : 16);
	sum = mqa_tile_sum(b, shared, s->heads);
	if (!mqa_tile_writes() || key >= len)
		return;
	if (page < 0 && entry == 0)
		g_fault(job->fault_state, job->fault_status, row, G_FAULT_PAGE);
	if (page < 0)
		sum = G_MINUS_INF;
	else if (!mxfp4)
		sum *= *(GLOBAL const float *)scales;
	g_put_real(job->logits, s->logits_bf16,
		   mqa_row_start(job->row_starts, s->row_stride, t) + key, sum);
}

/* The kernel, of either format; `mxfp4` is a constant. */
FN void
mqa_tile_all(const PRIVATE mqa_logits_job *job, const uint32_t mxfp4,
	     LOCAL mqa_tile_shared *shared)
{
	const uint32_t tokens = job->s.tokens;
	uint32_t base;

	for (base = 0; base < tokens; base += MQA_ITEMS) {
		const uint32_t t = base + g_item();
		mqa_line line =
			mqa_share(tokens - base,
				  t < tokens ? mqa_logits_units(job, t) : 0,
				  shared->ends, shared->sums);

		for (; line.left; mqa_step(&line)) {
			const uint32_t stage = mqa_seek(&line, shared->ends);
			const uint32_t token = base + line.token;

			mqa_tile_unit(job, shared, token, line.first, stage,
				      mxfp4);
		}
	}
}

SPMLA_KERNEL(mqa_logits_tile)
void
spmla_k_mqa_logits_tile(SPMLA_KERNEL_ARGS(mqa_logits_tile))
{
	LOCAL_ARRAY(mqa_tile_shared, shared, 1);
	const mqa_logits_job job = {SPMLA_KERNEL_VALUES(mqa_logits_tile), 0, 0};

	mqa_tile_all(&job, 0, shared);
}

SPMLA_KERNEL(mqa_logits_mxfp4_tile)
void
spmla_k_mqa_logits_mxfp4_tile(SPMLA_KERNEL_ARGS(mqa_logits_mxfp4_tile))
{
	LOCAL_ARRAY(mqa_tile_shared, shared, 1);
	const mqa_logits_job job = {SPMLA_KERNEL_VALUES(mqa_logits), q_scales,
				    0};

	mqa_tile_all(&job, 1, shared);
}

#endif
#endif
