/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits without matrix instructions, for every subgroup and any number of
 * heads. 16 lanes share four keys and a head's query: a lane has 8 of the 128
 * dims. The hard idea: the sums of 16 (head, key) pairs over 16 lanes take 15
 * shuffles, not 64, as each step of the tree hands half of the pairs over and
 * keeps the other half; then a lane has one pair's sum. Products of e4m3 are
 * exact in f32, so a fused step rounds as two would.
 *
 * Work is the line of 256 tokens' units of 64 keys, cut evenly over the blocks
 * wherever a token ends, and then that of the next 256 tokens.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_KERNEL_H

#include "spmla/platform/gpu/dialect/mxfp4.h"
#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/table_device.h"

/* Of mqa_logits_mma too. Token 0 is the call's `first_token`. */
#define SPMLA_K_mqa_logits(P, S)       \
	SPMLA_K_FAULT(P)               \
	P(const uint8_t, q)            \
	P(const float, weights)        \
	P(const int32_t, token_row)    \
	P(const int32_t, context_lens) \
	P(const int64_t, row_starts)   \
	P(const int32_t, block_table)  \
	P(const int32_t, table_cols)   \
	P(const uint8_t, cache)        \
	P(float, logits)               \
	S(uint64_t, logits_elems)      \
	S(uint64_t, page_stride_bytes) \
	SPMLA_S_TABLE(S)               \
	S(uint32_t, first_token)       \
	S(uint32_t, tokens)            \
	S(uint32_t, heads)
SPMLA_KERNEL_SCALARS(mqa_logits)

/* The kernel of INDEX_MXFP4 has the scales of the queries too. */
#define SPMLA_K_mqa_logits_mxfp4(P, S) \
	P(const uint32_t, q_scales)    \
	SPMLA_K_mqa_logits(P, S)
typedef spmla_k_mqa_logits_scalars spmla_k_mqa_logits_mxfp4_scalars;

enum { MQA_ITEMS = 256 };

#ifdef SPMLA_GPU_KERNELS

enum {
	MQA_DIM = 128,
	MQA_LANES = 16, /* that share a key */
	MQA_LANE_DIMS = MQA_DIM / MQA_LANES,
	MQA_KEYS = 4, /* that they have at a time */
	MQA_UNIT = MQA_ITEMS / MQA_LANES * MQA_KEYS,
	MQA_HEADS = 64, /* whose queries local memory holds */
	MQA_STAGED = MQA_HEADS * MQA_DIM,
	MQA_TILE = 4 /* heads at a time */
};

/* What a lane has of its four keys: of each the dims 4l .. 4l + 3 and as many
 * behind 64 + 4l, l its lane of 16; and the scale of key l % 4. */
typedef struct mqa_keys {
	float k[MQA_KEYS][MQA_LANE_DIMS];
	float scale;
} mqa_keys;

/* Four codes at p. */
FN uint32_t
mqa_word(GLOBAL const uint8_t *p, uint32_t aligned)
{
	if (aligned)
		return *(GLOBAL const uint32_t *)p;
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

FN void
mqa_decode(uint32_t codes, PRIVATE float *to)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++)
		to[i] = g_e4m3_to_f32((codes >> 8 * i) & 0xffu);
}

/* Four e2m1 values, two bytes, with their scale. */
FN void
mqa_decode_mxfp4(uint32_t codes, uint32_t scale, PRIVATE float *to)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++)
		to[i] = g_e2m1_to_f32((codes >> 4 * i) & 15u) * g_pow2(scale);
}

/* Queries and weights of `heads` heads, as f32, and zeros up to a whole tile.
 * Entry 16 j + l of a head is dim j of lane l. A barrier at both ends. */
FN void
mqa_stage(GLOBAL const uint8_t *q, GLOBAL const float *weights, uint32_t heads,
	  LOCAL float *q32, LOCAL float *w)
{
	const uint32_t aligned = ((uint64_t)q & 3u) == 0;
	const uint32_t words = MQA_DIM / 4;
	const uint32_t tiles = (heads + MQA_TILE - 1) / MQA_TILE;
	uint32_t i, j;

	BARRIER();
	for (i = g_item(); i < tiles * MQA_TILE * words; i += MQA_ITEMS) {
		const uint32_t word = i % words;
		LOCAL float *to = q32 + i / words * MQA_DIM +
				  word / MQA_LANES * 4 * MQA_LANES +
				  word % MQA_LANES;
		float x[4];

		mqa_decode(i < heads * words ? mqa_word(q + 4 * i, aligned) : 0,
			   x);
		UNROLL
		for (j = 0; j < 4; j++)
			to[j * MQA_LANES] = x[j];
	}
	for (i = g_item(); i < tiles * MQA_TILE; i += MQA_ITEMS)
		w[i] = i < heads ? weights[i] : 0.0f;
	BARRIER();
}

/* The same of MXFP4 queries. */
FN void
mqa_stage_mxfp4(GLOBAL const uint8_t *q, GLOBAL const uint32_t *q_scales,
		GLOBAL const float *weights, uint32_t heads, LOCAL float *q32,
		LOCAL float *w)
{
	const uint32_t fours = MQA_DIM / 4;
	const uint32_t tiles = (heads + MQA_TILE - 1) / MQA_TILE;
	uint32_t i, j;

	BARRIER();
	for (i = g_item(); i < tiles * MQA_TILE * fours; i += MQA_ITEMS) {
		const uint32_t h = i / fours, four = i % fours;
		LOCAL float *to = q32 + h * MQA_DIM +
				  four / MQA_LANES * 4 * MQA_LANES +
				  four % MQA_LANES;
		uint32_t codes = 0, scale = 0;
		float x[4];

		if (h < heads) {
			codes = q[2 * i] | (uint32_t)q[2 * i + 1] << 8;
			scale = q_scales[h] >> four / 8 * 8 & 0xffu;
		}
		mqa_decode_mxfp4(codes, scale, x);
		UNROLL
		for (j = 0; j < 4; j++)
			to[j * MQA_LANES] = x[j];
	}
	for (i = g_item(); i < tiles * MQA_TILE; i += MQA_ITEMS)
		w[i] = i < heads ? weights[i] : 0.0f;
	BARRIER();
}

/* One of the lane's keys: `codes` are all of it; zeros if it is none. */
FN void
mqa_load_key(PRIVATE float *k, GLOBAL const uint8_t *codes, uint32_t is_key,
	     uint32_t aligned)
{
	const uint32_t lane = g_item() % MQA_LANES;
	uint32_t low = 0, high = 0;

	if (is_key) {
		low = mqa_word(codes + 4 * lane, aligned);
		high = mqa_word(codes + MQA_DIM / 2 + 4 * lane, aligned);
	}
	mqa_decode(low, k);
	mqa_decode(high, k + 4);
}

/* The same of an MXFP4 key, the dims are the same; `scales` are its four. */
FN void
mqa_load_mxfp4(PRIVATE float *k, GLOBAL const uint8_t *codes,
	       GLOBAL const uint32_t *scales, uint32_t is_key)
{
	const uint32_t lane = g_item() % MQA_LANES;
	uint32_t low = 0, high = 0, word = 0;

	if (is_key) {
		low = ((GLOBAL const uint16_t *)codes)[lane];
		high = ((GLOBAL const uint16_t *)codes)[MQA_LANES + lane];
		word = *scales;
	}
	word >>= lane / 8 * 8; /* of the first half, 16 bits up of the second */
	mqa_decode_mxfp4(low, word & 0xffu, k);
	mqa_decode_mxfp4(high, word >> 16 & 0xffu, k + 4);
}

/* Of 16 pairs, each lane's part in v[pair]: pair l's sum over the 16 lanes by
 * the tree 8, 4, 2, 1, in lane l. */
FN float
mqa_sum_pairs(PRIVATE float *v)
{
	const uint32_t lane = g_item() % MQA_LANES;
	uint32_t i;

#define MQA_STEP(step)                                                   \
	UNROLL                                                           \
	for (i = 0; i < (step); i++) {                                   \
		const float keep = lane & (step) ? v[i + (step)] : v[i]; \
		const float give = lane & (step) ? v[i] : v[i + (step)]; \
                                                                         \
		v[i] = keep + g_shuffle_xor_f(give, (step));             \
	}
	MQA_STEP(8u)
	MQA_STEP(4u)
	MQA_STEP(2u)
	MQA_STEP(1u)
#undef MQA_STEP
	return v[0];
}

/* Adds to the lane's sum what the staged heads give: those that are l / 4 more
 * than a multiple of 4, for key l % 4. */
FN float
mqa_score(const PRIVATE mqa_keys *keys, LOCAL const float *q32,
	  LOCAL const float *w, uint32_t heads, float sum)
{
	const uint32_t lane = g_item() % MQA_LANES;
	uint32_t h, a, b, j;

	for (h = 0; h < heads; h += MQA_TILE) {
		float v[MQA_TILE * MQA_KEYS], x;

		UNROLL
		for (a = 0; a < MQA_TILE; a++) {
			LOCAL const float *at = q32 + (h + a) * MQA_DIM + lane;

			UNROLL
			for (b = 0; b < MQA_KEYS; b++)
				v[a * MQA_KEYS + b] = 0.0f;
			UNROLL
			for (j = 0; j < MQA_LANE_DIMS; j++) {
				const float y = at[j * MQA_LANES];

				UNROLL
				for (b = 0; b < MQA_KEYS; b++)
					v[a * MQA_KEYS + b] =
						g_fma(y, keys->k[b][j],
						      v[a * MQA_KEYS + b]);
			}
		}
		/* relu(x) is x where x > 0, of a NaN 0. */
		x = mqa_sum_pairs(v);
		sum += (x > 0.0f ? x : 0.0f) * w[h + lane / MQA_KEYS];
	}
	return sum;
}

/* The sum over all heads for key l % 4, before its scale. q and weights are the
 * token's, q_scales of MXFP4 alone; `stage` if local memory has not got them
 * yet, `any` if the subgroup has a key: both are uniform, the one over the
 * block. Barriers. */
FN float
mqa_score_all(const PRIVATE mqa_keys *keys, GLOBAL const uint8_t *q,
	      GLOBAL const uint32_t *q_scales, uint32_t mxfp4,
	      GLOBAL const float *weights, uint32_t heads, uint32_t stage,
	      uint32_t any, LOCAL float *q32, LOCAL float *w)
{
	float sum = 0.0f;
	uint32_t h;

	for (h = 0; h < heads; h += MQA_HEADS) {
		const uint32_t n =
			heads - h < MQA_HEADS ? heads - h : MQA_HEADS;

		if ((stage || heads > MQA_HEADS) && mxfp4)
			mqa_stage_mxfp4(q + (uint64_t)h * (MQA_DIM / 2),
					q_scales + h, weights + h, n, q32, w);
		else if (stage || heads > MQA_HEADS)
			mqa_stage(q + (uint64_t)h * MQA_DIM, weights + h, n,
				  q32, w);
		if (any)
			sum = mqa_score(keys, q32, w, n, sum);
	}
	sum += g_shuffle_xor_f(sum, 8);
	sum += g_shuffle_xor_f(sum, 4);
	return sum;
}

/* Which token of the line has a unit: the first that ends behind it. */
FN uint32_t
mqa_find(LOCAL const uint64_t *ends, uint32_t first, uint32_t count,
	 uint64_t unit)
{
	uint32_t high = count;

	while (first < high) {
		const uint32_t middle = (first + high) / 2;

		if (ends[middle] > unit)
			high = middle;
		else
			first = middle + 1;
	}
	return first;
}

/* The units of token t; the first block reports why there are none. */
FN uint32_t
mqa_logits_units(GLOBAL spmla_g_state *fault_state,
		 GLOBAL spmla_g_status *fault_status,
		 const PRIVATE spmla_k_mqa_logits_scalars *s, uint32_t t,
		 uint32_t row, int32_t len, int64_t start)
{
	uint32_t fault = 0;

	if (len <= 0)
		return 0;
	if (row >= s->rows)
		fault = G_FAULT_ROW;
	else if (start < 0 || (uint64_t)start > s->logits_elems ||
		 (uint64_t)len > s->logits_elems - (uint64_t)start)
		fault = G_FAULT_LOGITS;
	if (!fault)
		return ((uint32_t)len + MQA_UNIT - 1) / MQA_UNIT;
	if (g_block() == 0)
		g_fault(fault_state, fault_status,
			fault == G_FAULT_ROW ? s->first_token + t : row, fault);
	return 0;
}

/* The lane's four keys from `first` on; the page of key l % 4, or -1. */
FN int32_t
mqa_logits_load(PRIVATE mqa_keys *keys,
		const PRIVATE spmla_k_mqa_logits_scalars *s,
		GLOBAL const uint8_t *cache, GLOBAL const int32_t *block_table,
		GLOBAL const int32_t *table_cols, uint32_t row, uint32_t first,
		uint32_t len, uint32_t mxfp4)
{
	const uint32_t lane = g_item() % MQA_LANES;
	int32_t own = -1;
	uint32_t b;

	keys->scale = 0.0f;
	UNROLL
	for (b = 0; b < MQA_KEYS; b++) {
		const uint32_t key = first + b;
		const uint32_t entry = key % s->page_tokens;
		GLOBAL const uint8_t *at = cache;
		int32_t page = -1;

		if (key < len)
			page = g_table_page(block_table, table_cols,
					    s->has_cols, s->columns, s->stride,
					    s->pool_pages, row,
					    key / s->page_tokens);
		if (page >= 0)
			at += (uint64_t)page * s->page_stride_bytes;
		if (mxfp4) {
			mqa_load_mxfp4(
				keys->k[b],
				at + (uint64_t)entry * (MQA_DIM / 2),
				(GLOBAL const uint32_t
					 *)(at + (uint64_t)s->page_tokens *
							 (MQA_DIM / 2)) +
					entry,
				page >= 0);
			keys->scale = 1.0f;
		} else {
			mqa_load_key(keys->k[b], at + (uint64_t)entry * MQA_DIM,
				     page >= 0, 1);
		}
		if (!mxfp4 && lane == b && page >= 0)
			keys->scale = ((
				GLOBAL const float *)(at +
						      (uint64_t)s->page_tokens *
							      MQA_DIM))[entry];
		own = lane % MQA_KEYS == b ? page : own;
	}
	return own;
}

/* The kernel, of either layout; `mxfp4` is a constant. */
FN void
mqa_logits_all(GLOBAL spmla_g_state *fault_state,
	       GLOBAL spmla_g_status *fault_status, GLOBAL const uint8_t *q,
	       GLOBAL const uint32_t *q_scales, GLOBAL const float *weights,
	       GLOBAL const int32_t *token_row,
	       GLOBAL const int32_t *context_lens,
	       GLOBAL const int64_t *row_starts,
	       GLOBAL const int32_t *block_table,
	       GLOBAL const int32_t *table_cols, GLOBAL const uint8_t *cache,
	       GLOBAL float *logits,
	       const PRIVATE spmla_k_mqa_logits_scalars *s, uint32_t mxfp4,
	       LOCAL float *q32, LOCAL float *w, LOCAL uint64_t *ends,
	       LOCAL uint64_t *sums)
{
	const uint32_t lane = g_item() % MQA_LANES;
	/* The first of a unit's keys that the lane has, and its subgroup. */
	const uint32_t own = g_item() / MQA_LANES * MQA_KEYS;
	const uint32_t subgroup =
		g_item() / g_width() * (g_width() / MQA_LANES) * MQA_KEYS;
	uint32_t base;

	for (base = 0; base < s->tokens; base += MQA_ITEMS) {
		const uint32_t count = s->tokens - base < MQA_ITEMS
					       ? s->tokens - base
					       : MQA_ITEMS;
		const uint32_t mine = base + g_item();
		uint32_t units = 0, token = 0, first = 0, rest = 0, left;
		uint64_t before, total, last;

		if (g_item() < count)
			units = mqa_logits_units(
				fault_state, fault_status, s, mine,
				(uint32_t)token_row[mine], context_lens[mine],
				row_starts[mine]);
		before = g_scan_sum(units, MQA_ITEMS, sums, &total);
		ends[g_item()] = before + units;
		BARRIER();
		last = total * (g_block() + 1) / g_blocks();
		left = (uint32_t)(last - total * g_block() / g_blocks());
		/* `rest` units of a token begin with key `first` of it. */
		for (; left; left--, rest--, first += MQA_UNIT) {
			const uint32_t stage = rest == 0;
			uint32_t t, key, len, row;
			int32_t page;
			float score;
			mqa_keys keys;

			if (stage) {
				const uint64_t unit = last - left;

				token = mqa_find(ends, token, count, unit);
				before = token ? ends[token - 1] : 0;
				first = (uint32_t)(unit - before) * MQA_UNIT;
				rest = (uint32_t)(ends[token] - unit);
			}
			t = base + token;
			len = (uint32_t)context_lens[t];
			row = (uint32_t)token_row[t];
			page = mqa_logits_load(&keys, s, cache, block_table,
					       table_cols, row, first + own,
					       len, mxfp4);
			score = mqa_score_all(
				&keys,
				q + (uint64_t)t * s->heads *
						(mxfp4 ? MQA_DIM / 2 : MQA_DIM),
				mxfp4 ? q_scales + (uint64_t)t * s->heads
				      : q_scales,
				mxfp4, weights + (uint64_t)t * s->heads,
				s->heads, stage, first + subgroup < len, q32,
				w);
			key = first + own + lane;
			if (lane >= MQA_KEYS || key >= len)
				continue;
			if (page < 0 && key % s->page_tokens == 0)
				g_fault(fault_state, fault_status, row,
					G_FAULT_PAGE);
			logits[row_starts[t] + key] =
				page < 0 ? G_MINUS_INF : keys.scale * score;
		}
	}
}

SPMLA_KERNEL(mqa_logits)
void
spmla_k_mqa_logits(SPMLA_KERNEL_ARGS(mqa_logits))
{
	LOCAL_ARRAY(float, q32, MQA_STAGED);
	LOCAL_ARRAY(float, w, MQA_HEADS);
	LOCAL_ARRAY(uint64_t, ends, MQA_ITEMS);
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);

	mqa_logits_all(fault_state, fault_status, q, 0, weights, token_row,
		       context_lens, row_starts, block_table, table_cols, cache,
		       logits, &s, 0, q32, w, ends, sums);
}

SPMLA_KERNEL(mqa_logits_mxfp4)
void
spmla_k_mqa_logits_mxfp4(SPMLA_KERNEL_ARGS(mqa_logits_mxfp4))
{
	LOCAL_ARRAY(float, q32, MQA_STAGED);
	LOCAL_ARRAY(float, w, MQA_HEADS);
	LOCAL_ARRAY(uint64_t, ends, MQA_ITEMS);
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);

	mqa_logits_all(fault_state, fault_status, q, q_scales, weights,
		       token_row, context_lens, row_starts, block_table,
		       table_cols, cache, logits, &s, 1, q32, w, ends, sums);
}

#endif
#endif
