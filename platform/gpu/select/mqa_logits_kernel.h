/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits without matrix instructions, for every subgroup width and any
 * number of heads. 16 lanes share four keys and a head's query: a lane has 8 of
 * the 128 dims. The hard idea: the sums of 16 (head, key) pairs over 16 lanes
 * take 15 shuffles, not 64. Each step of the tree hands half of the pairs over
 * and keeps the other half; at the end a lane has one pair's sum. Products of
 * e4m3 are exact in f32, so a fused multiply-add rounds as two separate steps
 * would.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_KERNEL_H

#include "spmla/platform/gpu/dialect/mxfp4.h"
#include "spmla/platform/gpu/select/mqa_logits_device.h"

#ifdef SPMLA_GPU_KERNELS

/* Heads in shared memory as f32: entry 16 j + l of a query is dim j of lane
 * l. */
typedef struct mqa_staged {
	float q[MQA_HEADS * MQA_DIM];
	float w[MQA_HEADS];
} mqa_staged;

/* Shared memory. */
typedef struct mqa_shared {
	mqa_staged heads;
	uint64_t ends[MQA_ITEMS];        /* of tokens' units on the line */
	uint64_t sums[G_SCAN_SUBGROUPS]; /* of the scans */
} mqa_shared;

/* A lane's part of its four keys, where l is its lane of 16: dims 4l .. 4l + 3
 * and 64 + 4l .. 64 + 4l + 3 of each key, and the scale of key l % 4. */
typedef struct mqa_keys {
	float k[MQA_KEYS][MQA_LANE_DIMS];
	float scale;
} mqa_keys;

FN void
mqa_decode(uint32_t codes, uint32_t fnuz, PRIVATE float *to)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t code = (codes >> 8 * i) & 0xffu;

		to[i] = fnuz ? g_fnuz_to_f32(code) : g_e4m3_to_f32(code);
	}
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

/* Puts queries and weights of `heads` heads into shared memory, with zeros up
 * to a whole tile. Only MXFP4 queries have scales; others may be FNUZ. Has a
 * barrier at both ends. */
FN void
mqa_stage(GLOBAL const uint8_t *q, GLOBAL const uint32_t *q_scales,
	  const uint32_t mxfp4, uint32_t fnuz, GLOBAL const float *weights,
	  uint32_t heads, LOCAL mqa_staged *to)
{
	const uint32_t aligned = ((uint64_t)q & 3u) == 0;
	const uint32_t fours = MQA_DIM / 4;
	const uint32_t tiles = (heads + MQA_TILE - 1) / MQA_TILE;
	uint32_t i, j;

	BARRIER();
	for (i = g_item(); i < tiles * MQA_TILE * fours; i += MQA_ITEMS) {
		const uint32_t h = i / fours, four = i % fours;
		LOCAL float *at = to->q + h * MQA_DIM +
				  four / MQA_LANES * 4 * MQA_LANES +
				  four % MQA_LANES;
		uint32_t codes = 0, scale = 0;
		float x[4];

		if (mxfp4) {
			if (h < heads) {
				codes = q[2 * i] | (uint32_t)q[2 * i + 1] << 8;
				scale = q_scales[h] >> four / 8 * 8 & 0xffu;
			}
			mqa_decode_mxfp4(codes, scale, x);
		} else {
			if (h < heads)
				codes = mqa_word(q + 4 * i, aligned);
			mqa_decode(codes, fnuz, x);
		}
		UNROLL
		for (j = 0; j < 4; j++)
			at[j * MQA_LANES] = x[j];
	}
	for (i = g_item(); i < tiles * MQA_TILE; i += MQA_ITEMS)
		to->w[i] = i < heads ? weights[i] : 0.0f;
	BARRIER();
}

/* Loads the lane's dims of one key; zeros if is_key is 0. `codes` is the whole
 * key, in which runs of 16 values lie `run` bytes apart. */
FN void
mqa_load_key(PRIVATE float *k, GLOBAL const uint8_t *codes, uint32_t is_key,
	     uint32_t aligned, uint32_t fnuz, uint32_t run)
{
	const uint32_t lane = g_item() % MQA_LANES;
	uint32_t low = 0, high = 0;

	if (is_key) {
		codes += run * (lane / 4) + 4 * (lane % 4);
		low = mqa_word(codes, aligned);
		high = mqa_word(codes + 4 * run, aligned);
	}
	mqa_decode(low, fnuz, k);
	mqa_decode(high, fnuz, k + 4);
}

/* The same dims of an MXFP4 key; the word at `scales` has its four scales. */
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

/* Sums 16 pairs over 16 lanes by the tree 8, 4, 2, 1. v[pair] is the lane's
 * part; lane l gets the sum of pair l. */
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

/* Adds the scores of the staged heads to the lane's sum: heads h with h % 4 = l
 * / 4, for key l % 4. */
FN float
mqa_score(const PRIVATE mqa_keys *keys, LOCAL const mqa_staged *staged,
	  uint32_t heads, float sum)
{
	const uint32_t lane = g_item() % MQA_LANES;
	uint32_t h, a, b, j;

	for (h = 0; h < heads; h += MQA_TILE) {
		float v[MQA_TILE * MQA_KEYS], x;

		UNROLL
		for (a = 0; a < MQA_TILE; a++) {
			LOCAL const float *at =
				staged->q + (h + a) * MQA_DIM + lane;

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
		/* relu(x) is x where x > 0, else 0, also for a NaN. */
		x = mqa_sum_pairs(v);
		sum += (x > 0.0f ? x : 0.0f) * staged->w[h + lane / MQA_KEYS];
	}
	return sum;
}

/* The sum over all heads for key l % 4, before its scale. q, q_scales and
 * weights are the token's. `stage`: the token's heads are not in shared memory
 * yet; it is uniform over the block. `any`: the subgroup has a key. Has
 * barriers. */
FN float
mqa_score_all(const PRIVATE mqa_keys *keys, GLOBAL const uint8_t *q,
	      GLOBAL const uint32_t *q_scales, const uint32_t mxfp4,
	      uint32_t q_fnuz, GLOBAL const float *weights, uint32_t heads,
	      uint32_t stage, uint32_t any, LOCAL mqa_staged *staged)
{
	float sum = 0.0f;
	uint32_t h;

	for (h = 0; h < heads; h += MQA_HEADS) {
		const uint32_t n =
			heads - h < MQA_HEADS ? heads - h : MQA_HEADS;

		if (stage || heads > MQA_HEADS)
			mqa_stage(q + (uint64_t)h * (mxfp4 ? MQA_DIM / 2
							   : MQA_DIM),
				  mxfp4 ? q_scales + h : q_scales, mxfp4,
				  q_fnuz, weights + h, n, staged);
		if (any)
			sum = mqa_score(keys, staged, n, sum);
	}
	sum += g_shuffle_xor_f(sum, 8);
	sum += g_shuffle_xor_f(sum, 4);
	return sum;
}

/* The first key of a unit that the item's 16 lanes have. */
FN uint32_t
mqa_own(void)
{
	return g_item() / MQA_LANES * MQA_KEYS;
}

/* The first key of a unit that the item's subgroup has. */
FN uint32_t
mqa_subgroup(void)
{
	return g_item() / g_width() * (g_width() / MQA_LANES) * MQA_KEYS;
}

/* Loads the lane's four keys from `first` on; returns the page of key l % 4, or
 * -1. */
FN int32_t
mqa_logits_load(PRIVATE mqa_keys *keys, const PRIVATE mqa_logits_job *job,
		uint32_t row, uint32_t first, uint32_t len,
		const uint32_t mxfp4)
{
	const PRIVATE spmla_k_mqa_logits_scalars *s = &job->s;
	const g_table table = G_TABLE(job->block_table, job->table_cols, *s);
	const uint32_t lane = g_item() % MQA_LANES;
	const uint32_t key_bytes = mxfp4 ? MQA_DIM / 2 : MQA_DIM;
	int32_t own = -1;
	uint32_t b;

	keys->scale = mxfp4 ? 1.0f : 0.0f;
	UNROLL
	for (b = 0; b < MQA_KEYS; b++) {
		const uint32_t key = first + b;
		const uint32_t entry = key % s->page_tokens;
		GLOBAL const uint8_t *at = job->cache, *scales;
		int32_t page = -1;

		if (key < len)
			page = g_table_page(&table, row, key / s->page_tokens);
		if (page >= 0)
			at += (uint64_t)page * s->page_stride_bytes;
		scales = at + (uint64_t)s->page_tokens * key_bytes;
		at += s->tiled ? (uint64_t)(entry / 16) * 2048 + entry % 16 * 16
			       : (uint64_t)entry * key_bytes;
		if (mxfp4)
			mqa_load_mxfp4(keys->k[b], at,
				       (GLOBAL const uint32_t *)scales + entry,
				       page >= 0);
		else
			mqa_load_key(keys->k[b], at, page >= 0, 1, s->fnuz,
				     s->tiled ? 256 : 16);
		if (!mxfp4 && lane == b && page >= 0)
			keys->scale = ((GLOBAL const float *)scales)[entry];
		own = lane % MQA_KEYS == b ? page : own;
	}
	return own;
}

/* Scores a unit of token t, the keys from `first` on. `stage`: the token's
 * heads are not in shared memory yet. */
FN void
mqa_logits_unit(const PRIVATE mqa_logits_job *job, uint32_t t, uint32_t first,
		uint32_t stage, const uint32_t mxfp4)
{
	const PRIVATE spmla_k_mqa_logits_scalars *s = &job->s;
	const uint32_t lane = g_item() % MQA_LANES;
	const uint32_t len = mqa_row_len(job->context_lens[t], s->row_stride);
	const uint64_t head = (uint64_t)t * s->heads;
	uint32_t key;
	int32_t page;
	float score;
	mqa_keys keys;

	page = mqa_logits_load(&keys, job, (uint32_t)job->token_row[t],
			       first + mqa_own(), len, mxfp4);
	score = mqa_score_all(
		&keys, job->q + head * (mxfp4 ? MQA_DIM / 2 : MQA_DIM),
		mxfp4 ? job->q_scales + head : job->q_scales, mxfp4, s->q_fnuz,
		job->weights + head, s->heads, stage,
		first + mqa_subgroup() < len, &job->shared->heads);
	key = first + mqa_own() + lane;
	if (lane >= MQA_KEYS || key >= len)
		return;
	/* The table row is read again, because no register keeps it. */
	if (page < 0 && key % s->page_tokens == 0)
		g_fault(job->fault_state, job->fault_status,
			(uint32_t)job->token_row[t], G_FAULT_PAGE);
	g_put_real(job->logits, s->logits_bf16,
		   mqa_row_start(job->row_starts, s->row_stride, t) + key,
		   page < 0 ? G_MINUS_INF : keys.scale * score);
}

/* The kernel, of either layout. */
FN void
mqa_logits_all(const PRIVATE mqa_logits_job *job, const uint32_t mxfp4)
{
	const uint32_t tokens = job->s.tokens;
	LOCAL mqa_shared *shared = job->shared;
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

			mqa_logits_unit(job, token, line.first, stage, mxfp4);
		}
	}
}

SPMLA_KERNEL(mqa_logits)
void
spmla_k_mqa_logits(SPMLA_KERNEL_ARGS(mqa_logits))
{
	LOCAL_ARRAY(mqa_shared, shared, 1);
	const mqa_logits_job job = {SPMLA_KERNEL_VALUES(mqa_logits), 0, shared};

	mqa_logits_all(&job, 0);
}

SPMLA_KERNEL(mqa_logits_mxfp4)
void
spmla_k_mqa_logits_mxfp4(SPMLA_KERNEL_ARGS(mqa_logits_mxfp4))
{
	LOCAL_ARRAY(mqa_shared, shared, 1);
	const mqa_logits_job job = {SPMLA_KERNEL_VALUES(mqa_logits), q_scales,
				    shared};

	mqa_logits_all(&job, 1);
}

#endif
#endif
