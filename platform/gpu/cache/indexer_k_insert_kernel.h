/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_insert: 16 lanes a token, eight tokens a block. Lane l has values
 * l, l + 16, .., which is the contract's order of sums. Lanes exchange codes
 * before they store them, so that a store has four neighbours. After norm and
 * after rope the row is rounded to bf16, as if it had been stored and read
 * again.
 */
#ifndef SPMLA_PLATFORM_GPU_CACHE_INDEXER_K_INSERT_KERNEL_H
#define SPMLA_PLATFORM_GPU_CACHE_INDEXER_K_INSERT_KERNEL_H

#include "spmla/platform/gpu/cache/row_device.h"
#include "spmla/platform/gpu/dialect/mxfp4.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/input_device.h"

#define SPMLA_K_indexer_k_insert(P, S) \
	SPMLA_K_FAULT(P)               \
	P(const uint16_t, k)           \
	P(const int64_t, slot_mapping) \
	P(const float, norm_weight)    \
	P(const float, norm_bias)      \
	P(const int32_t, positions)    \
	P(const float, cos_sin)        \
	P(uint8_t, cache)              \
	S(int64_t, k_stride)           \
	S(uint64_t, page_stride_bytes) \
	S(uint32_t, tokens)            \
	S(uint32_t, dtype)             \
	S(uint32_t, raw_scale)         \
	S(uint32_t, has_norm)          \
	S(uint32_t, has_rope)          \
	S(uint32_t, neox)              \
	S(uint32_t, cos_sin_rows)      \
	S(uint32_t, page_entries)      \
	S(uint32_t, pages)             \
	S(float, norm_eps)             \
	S(uint32_t, positions_wide)    \
	S(uint32_t, rope_bf16)         \
	S(uint32_t, norm_bf16)         \
	S(uint32_t, mxfp4)             \
	S(uint32_t, fnuz)              \
	S(uint32_t, tiled)
SPMLA_KERNEL_SCALARS(indexer_k_insert)

enum { K_INSERT_PAIRS = G_ROW_ROPE / 2, K_INSERT_ROTATED = 4 /* of a lane */ };

#ifdef SPMLA_GPU_KERNELS

/* The sum of the 128 values of 16 lanes: lane l adds l, l + 16, .. to 0, then
 * the tree 8, 4, 2, 1. */
FN float
k_insert_sum(const PRIVATE float *x)
{
	float sum = 0.0f;
	uint32_t i;

	UNROLL
	for (i = 0; i < G_ROW_EACH; i++)
		sum += x[i];
	return g_sum16(sum);
}

/* Rounds `count` values, a constant, to bf16. */
FN void
k_insert_round(PRIVATE float *x, uint32_t count)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < count; i += 2)
		g_row_values(g_f32_to_bf16x2(x[i], x[i + 1]), SPMLA_DTYPE_BF16,
			     x + i);
}

FN void
k_insert_norm(PRIVATE float *x, const PRIVATE float *weight,
	      const PRIVATE float *bias, float eps)
{
	const float mean = k_insert_sum(x) * 0.0078125f;
	float square[G_ROW_EACH], rstd;
	uint32_t i;

	UNROLL
	for (i = 0; i < G_ROW_EACH; i++) {
		x[i] -= mean;
		square[i] = x[i] * x[i];
	}
	rstd = g_div_rn(1.0f,
			g_sqrt_rn(k_insert_sum(square) * 0.0078125f + eps));
	UNROLL
	for (i = 0; i < G_ROW_EACH; i++)
		x[i] = x[i] * rstd * weight[i] + bias[i];
	k_insert_round(x, G_ROW_EACH);
}

/* Rotates those four of the lane's values that are among the first 64: a value
 * times c plus its partner times n. Products and sum are each rounded, and the
 * result to bf16. */
FN void
k_insert_rotate(PRIVATE float *x, const PRIVATE float *c,
		const PRIVATE float *n, uint32_t neox)
{
	float y[K_INSERT_ROTATED];
	uint32_t i;

	UNROLL
	for (i = 0; i < K_INSERT_ROTATED; i++)
		y[i] = neox ? x[i ^ 2u] : g_shuffle_xor_f(x[i], 1);
	UNROLL
	for (i = 0; i < K_INSERT_ROTATED; i++)
		x[i] = x[i] * c[i] + y[i] * n[i];
	k_insert_round(x, K_INSERT_ROTATED);
}

/* Transposes the four bytes of four lanes: lane r gets byte r of each. */
FN uint32_t
k_insert_transpose(uint32_t word)
{
	const uint32_t other = g_shuffle_xor(word, 2);
	uint32_t next;

	word = g_lane() & 2u ? (word & 0xffff0000u) | other >> 16
			     : (word & 0xffffu) | other << 16;
	next = g_shuffle_xor(word, 1);
	return g_lane() & 1u ? (word & 0xff00ff00u) | (next >> 8 & 0x00ff00ffu)
			     : (word & 0x00ff00ffu) | (next & 0x00ff00ffu) << 8;
}

/* Codes of a row, with four neighbours in each word. Returns the row's
 * scale. */
FN float
k_insert_codes(PRIVATE float *x, uint32_t raw, uint32_t fnuz,
	       PRIVATE uint32_t *codes)
{
	const float amax = g_row_amax(x, 1e-4f), more = fnuz ? 2.0f : 1.0f;
	const float scale = raw ? g_div_rn(amax, 448.0f) : g_row_pow2(amax);
	const g_row_divisor d = g_row_divisor_of(scale, raw);
	uint32_t i;

	/* A code means half as much in FNUZ as in e4m3fn, so the scale is
	 * doubled: amax / 224 is exactly twice amax / 448, as neither is
	 * subnormal. */
	g_row_divide(x, &d, 1, raw);
	UNROLL
	for (i = 0; i < 2; i++) {
		codes[i] = k_insert_transpose(g_row_codes4(x + 4 * i));
		if (fnuz)
			codes[i] = g_e4m3x4_to_fnuz(codes[i]);
	}
	return scale * more;
}

/* The same for MXFP4: group g of 32 is x[2 g] and x[2 g + 1] of 16 lanes. Eight
 * lanes' codes of an x[i] make a word; lane l keeps the word of x[l % 8].
 * Returns the four scale bytes. To keep the code short, the loop always takes
 * the group in x[0] and x[1], and moves the rest of x forward. */
FN uint32_t
k_insert_mxfp4(PRIVATE float *x, PRIVATE uint32_t *codes)
{
	const uint32_t own = g_item() % 8;
	uint32_t scales = 0, g, i, mask;

	NO_UNROLL
	for (g = 0; g < G_ROW_EACH / 2; g++) {
		float a = g_larger(0.0f, g_abs(x[0])), inverse;
		uint32_t byte;

		a = g_larger(a, g_abs(x[1]));
		UNROLL
		for (mask = G_ROW_LANES / 2; mask; mask >>= 1)
			a = g_larger(a, g_shuffle_xor_f(a, mask));
		byte = g_mxfp4_scale(a);
		inverse = g_mxfp4_inverse(byte);
		scales |= byte << 8 * g;
		UNROLL
		for (i = 0; i < 2; i++) {
			uint32_t word = g_f32_to_e2m1(x[i] * inverse)
					<< 4 * own;

			UNROLL
			for (mask = 4; mask; mask >>= 1)
				word |= g_shuffle_xor(word, mask);
			*codes = own == 2 * g + i ? word : *codes;
		}
		UNROLL
		for (i = 0; i < G_ROW_EACH - 2; i++)
			x[i] = x[i + 2];
	}
	return scales;
}

typedef struct k_insert_job {
	SPMLA_KERNEL_FIELDS(indexer_k_insert)
} k_insert_job;

/* The factors of the lane's rotated values: c and n of k_insert_rotate. Zeros
 * without `has_factors`. */
FN void
k_insert_factors(GLOBAL const float *cos_sin,
		 const PRIVATE spmla_k_indexer_k_insert_scalars *s,
		 uint32_t position, uint32_t has_factors, PRIVATE float *c,
		 PRIVATE float *n)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < K_INSERT_ROTATED; i++) {
		const uint32_t v = g_item() % G_ROW_LANES + 16 * i;
		const uint32_t pair = s->neox ? v % K_INSERT_PAIRS : v / 2;
		const uint32_t is_first =
			s->neox ? v < K_INSERT_PAIRS : v % 2 == 0;
		const uint64_t angle = (uint64_t)position * G_ROW_ROPE + pair;

		c[i] = n[i] = 0.0f;
		if (has_factors) {
			c[i] = g_real(cos_sin, s->rope_bf16, angle);
			n[i] = g_real(cos_sin, s->rope_bf16,
				      angle + K_INSERT_PAIRS);
			n[i] = is_first ? -n[i] : n[i];
		}
	}
}

/* Stores the lane's codes of an entry in its page, and the entry's scale. */
FN void
k_insert_write(GLOBAL uint8_t *cache,
	       const PRIVATE spmla_k_indexer_k_insert_scalars *s,
	       const PRIVATE g_place *place, const PRIVATE uint32_t *codes,
	       uint32_t scale)
{
	const uint32_t lane = g_item() % G_ROW_LANES;
	const uint32_t bytes = s->mxfp4 ? G_ROW / 2 : G_ROW;
	/* Bytes from one run of 16 values to the next. */
	const uint32_t run = s->tiled ? 256 : 16;
	GLOBAL uint8_t *page = cache + place->page * s->page_stride_bytes;
	GLOBAL uint8_t *row = page + place->entry * bytes;

	if (s->tiled)
		row = page + place->entry / 16 * 2048 + place->entry % 16 * 16;
	row += s->mxfp4 ? 8 * (lane % 8) + lane / 8 * 4
			: run * (lane % 4) + lane / 4 * 4;
	*(GLOBAL uint32_t *)row = codes[0];
	if (!s->mxfp4)
		*(GLOBAL uint32_t *)(row + 4 * run) = codes[1];
	page += (uint64_t)s->page_entries * bytes;
	if (lane == 0)
		((GLOBAL uint32_t *)page)[place->entry] = scale;
}

/* Inserts the block's tiles of eight tokens, from tile `first` on. */
FN void
k_insert_rows(const PRIVATE k_insert_job *job, uint32_t first)
{
	const spmla_k_indexer_k_insert_scalars s = job->s;
	const uint32_t tiles = (s.tokens - 1) / G_ROW_GROUPS + 1;
	const uint32_t lane = g_item() % G_ROW_LANES;
	float weight[G_ROW_EACH], bias[G_ROW_EACH];
	uint32_t tile, i;

	UNROLL
	for (i = 0; i < G_ROW_EACH; i++) {
		weight[i] = bias[i] = 0.0f;
		if (s.has_norm) {
			weight[i] = g_real(job->norm_weight, s.norm_bf16,
					   lane + 16 * i);
			bias[i] = g_real(job->norm_bias, s.norm_bf16,
					 lane + 16 * i);
		}
	}
	for (tile = first; tile < tiles; tile += g_blocks()) {
		const uint32_t t = tile * G_ROW_GROUPS + g_item() / G_ROW_LANES;
		const uint32_t there = t < s.tokens;
		const int64_t slot = there ? job->slot_mapping[t] : -1;
		const uint32_t position =
			there && s.has_rope
				? (uint32_t)g_position(job->positions,
						       s.positions_wide, t)
				: 0;
		const uint32_t is_known =
			!s.has_rope || position < s.cos_sin_rows;
		float x[G_ROW_EACH], c[K_INSERT_ROTATED], n[K_INSERT_ROTATED];
		uint32_t live, values[G_ROW_EACH], codes[2] = {0, 0};
		g_place place;
		uint32_t scale; /* bits of an f32, or four bytes of MXFP4 */

		UNROLL
		for (i = 0; i < G_ROW_EACH; i++)
			values[i] = there ? job->k[(int64_t)t * s.k_stride +
						   lane + 16 * i]
					  : 0;
		k_insert_factors(job->cos_sin, &s, position,
				 s.has_rope && is_known, c, n);
		place = g_place_of(slot, s.page_entries, s.pages);
		live = place.inside && is_known;
		if (slot >= 0 && !live && lane == 0)
			g_fault(job->fault_state, job->fault_status, t,
				place.inside ? G_FAULT_POSITION : G_FAULT_SLOT);
		if (s.dtype == SPMLA_DTYPE_FP16) {
			UNROLL
			for (i = 0; i < G_ROW_EACH; i++)
				x[i] = g_fp16_to_f32(values[i]);
		} else {
			UNROLL
			for (i = 0; i < G_ROW_EACH; i++)
				x[i] = g_bf16_to_f32(values[i]);
		}
		if (s.has_norm)
			k_insert_norm(x, weight, bias, s.norm_eps);
		if (s.has_rope)
			k_insert_rotate(x, c, n, s.neox);
		if (s.mxfp4)
			scale = k_insert_mxfp4(x, codes);
		else if (s.raw_scale)
			scale = g_bits(k_insert_codes(x, 1, s.fnuz, codes));
		else
			scale = g_bits(k_insert_codes(x, 0, s.fnuz, codes));
		if (live)
			k_insert_write(job->cache, &s, &place, codes, scale);
	}
}

SPMLA_KERNEL(indexer_k_insert)
void
spmla_k_indexer_k_insert(SPMLA_KERNEL_ARGS(indexer_k_insert))
{
	const k_insert_job job = {SPMLA_KERNEL_VALUES(indexer_k_insert)};

	k_insert_rows(&job, g_block());
}

#endif
#endif
