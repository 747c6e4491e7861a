/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a compressed key: norm, rotation, codes, store. The hard idea: a
 * thread has four neighbouring columns, so a rotated pair never leaves it, and
 * 16 lanes have the 64 columns of a scale.
 */
#ifndef SPMLA_PLATFORM_GPU_COMPRESS_COMPRESS_KEY_DEVICE_H
#define SPMLA_PLATFORM_GPU_COMPRESS_COMPRESS_KEY_DEVICE_H

#include "spmla/platform/gpu/cache/v4_row_device.h"
#include "spmla/platform/gpu/dialect/mxfp4.h"

enum {
	COMPRESS_EACH = 4, /* columns of a thread */
	COMPRESS_LANES = 16,
	/* Squares of a key of 512 columns or of four keys of 128. A lane's
	 * squares lie beside each other, with a gap behind them that keeps
	 * lanes in different banks. */
	COMPRESS_GAP = 4,
	COMPRESS_SQUARES = SPMLA_V4_DIM + 4 * COMPRESS_GAP * COMPRESS_LANES
};

#ifdef SPMLA_GPU_KERNELS

/* Prefetches the norm's weights; all threads call it. */
FN void
compress_ask_norm(GLOBAL const float *norm_weight, const uint32_t dim)
{
	if (g_item() < dim / 32)
		g_prefetch((GLOBAL const int32_t *)norm_weight + 32 * g_item());
}

/* Where the angles of the group that ends at a position begin in cos_sin. */
FN uint64_t
compress_angles(int32_t position, const uint32_t ratio)
{
	return (uint64_t)((uint32_t)position & ~(ratio - 1)) * SPMLA_V4_ROPE;
}

FN void
compress_ask_angles(GLOBAL const float *cos_sin, int32_t position, uint32_t i,
		    const uint32_t ratio)
{
	if (i < 2)
		g_prefetch((GLOBAL const int32_t *)cos_sin +
			   compress_angles(position, ratio) + 32 * i);
}

/* What columns 4 q .. 4 q + 3 of a key, the thread's, are multiplied by. */
typedef struct compress_end {
	float weight[COMPRESS_EACH];
	float cos[COMPRESS_EACH / 2];
	float sin[COMPRESS_EACH / 2];
} compress_end;

FN void
compress_load_end(PRIVATE compress_end *to, uint32_t q,
		  GLOBAL const float *norm_weight, uint32_t norm_bf16,
		  GLOBAL const float *cos_sin, uint32_t rope_bf16,
		  uint64_t angles, const uint32_t dim)
{
	const uint32_t rope = (dim - SPMLA_V4_ROPE) / COMPRESS_EACH;
	uint32_t j;

	UNROLL
	for (j = 0; j < COMPRESS_EACH; j++)
		to->weight[j] =
			g_real(norm_weight, norm_bf16, COMPRESS_EACH * q + j);
	UNROLL
	for (j = 0; j < COMPRESS_EACH / 2; j++) {
		const uint32_t n = 2 * (q - rope) + j;

		to->cos[j] = q >= rope ? g_real(cos_sin, rope_bf16, angles + n)
				       : 1.0f;
		to->sin[j] = q >= rope ? g_real(cos_sin, rope_bf16,
						angles + SPMLA_V4_ROPE / 2 + n)
				       : 0.0f;
	}
}

/* Norms and rotates columns 4 q .. 4 q + 3 of a key. `w` gets them as two words
 * of bf16, or zeros if the key is lost. `squares` is shared memory for this
 * key. A thread that is not `there` only joins the barrier inside. */
FN void
compress_finish(LOCAL float *squares, const PRIVATE float *c, uint32_t q,
		const uint32_t there, const compress_end end, float eps,
		uint32_t lost, const uint32_t dim, PRIVATE uint32_t *w)
{
	const uint32_t stride = dim / COMPRESS_LANES + COMPRESS_GAP;
	const uint32_t rope = (dim - SPMLA_V4_ROPE) / COMPRESS_EACH;
	const LOCAL float *lane = squares + q % COMPRESS_LANES * stride;
	float y[COMPRESS_EACH];
	float sum = 0.0f, r;
	uint32_t j, k;

	if (there) {
		UNROLL
		for (j = 0; j < COMPRESS_EACH; j++) {
			const uint32_t col = COMPRESS_EACH * q + j;

			squares[col % COMPRESS_LANES * stride +
				col / COMPRESS_LANES] = c[j] * c[j];
		}
	}
	BARRIER();
	if (!there)
		return;
	for (k = 0; k < dim / COMPRESS_LANES; k += 8) {
		UNROLL
		for (j = 0; j < 8; j++)
			sum += lane[k + j];
	}
	/* Both are exact; a quotient by `dim` need not be on every platform. */
	sum = g_sum16(sum) * (dim == SPMLA_V4_DIM ? 1.0f / SPMLA_V4_DIM
						  : 1.0f / SPMLA_INDEX_DIM);
	r = g_div_rn(1.0f, g_sqrt_rn(sum + eps));
	UNROLL
	for (j = 0; j < COMPRESS_EACH; j++)
		y[j] = c[j] * r * end.weight[j];
	UNROLL
	for (j = 0; j < 2; j++) {
		const float a = y[2 * j], b = y[2 * j + 1];

		if (q >= rope) {
			y[2 * j] = a * end.cos[j] - b * end.sin[j];
			y[2 * j + 1] = b * end.cos[j] + a * end.sin[j];
		}
		w[j] = lost ? 0 : g_bf16x2_bits(y[2 * j], y[2 * j + 1]);
	}
}

/* Four codes for the scale with that byte, or FNUZ codes for twice that
 * scale. */
FN uint32_t
compress_codes4(const PRIVATE uint32_t *w, uint32_t byte, uint32_t fnuz)
{
	const uint32_t codes = v4_codes4(w, v4_inverse(byte));

	return fnuz ? g_e4m3x4_to_fnuz(codes) : codes;
}

/* Four codes of a V4_E4M3 cache. Those of FNUZ one after the other: with four
 * at a time ptxas spills in kv_compress_any. */
FN uint32_t
compress_codes4_e4m3(const PRIVATE uint32_t *w, float scale, uint32_t fnuz)
{
	uint32_t codes = 0, i;

	if (!fnuz)
		return g_f32_to_e4m3x4(g_div_rn(g_bf16x2_low(w[0]), scale),
				       g_div_rn(g_bf16x2_high(w[0]), scale),
				       g_div_rn(g_bf16x2_low(w[1]), scale),
				       g_div_rn(g_bf16x2_high(w[1]), scale));
	NO_UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t two = i < 2 ? w[0] : w[1];
		const float x = i % 2 ? g_bf16x2_high(two) : g_bf16x2_low(two);

		codes |= g_f32_to_fnuzx4(g_div_rn(x, scale), 0.0f, 0.0f, 0.0f)
			 << 8 * i;
	}
	return codes;
}

/* Stores columns 4 q .. 4 q + 3 of a key of 512 columns, if it is `live`. */
FN void
compress_store(const PRIVATE uint32_t *w, uint32_t q, uint32_t live,
	       GLOBAL uint8_t *page, uint32_t entry, uint32_t entries,
	       uint32_t layout, uint32_t fnuz, float e4m3_scale)
{
	const uint64_t both = (uint64_t)w[1] << 32 | w[0];

	if (layout == SPMLA_LAYOUT_V4_E4M3) {
		const uint32_t codes =
			compress_codes4_e4m3(w, e4m3_scale, fnuz);

		if (live)
			((GLOBAL uint32_t *)(page +
					     (uint64_t)entry *
						     SPMLA_V4_E4M3_BYTES))[q] =
				codes;
	} else if (layout == SPMLA_LAYOUT_V4_BF16) {
		if (live)
			((GLOBAL uint64_t *)(page +
					     (uint64_t)entry *
						     SPMLA_V4_BF16_BYTES))[q] =
				both;
	} else {
		const uint32_t nope = SPMLA_V4_NOPE / COMPRESS_EACH;
		const float scale = g_row_pow2(
			g_row_amax_bf16(w, 2, COMPRESS_LANES, 1e-4f));
		const uint32_t byte = g_bits(scale) >> 23;
		GLOBAL uint8_t *row =
			page + (uint64_t)entry * SPMLA_V4_VALUE_BYTES;

		if (!live)
			return;
		if (q < nope)
			((GLOBAL uint32_t *)row)[q] =
				compress_codes4(w, byte, fnuz);
		else
			((GLOBAL uint64_t *)(row + SPMLA_V4_NOPE))[q - nope] =
				both;
		if (q % COMPRESS_LANES == 0)
			page[(uint64_t)entries * SPMLA_V4_VALUE_BYTES +
			     (uint64_t)entry * SPMLA_V4_SCALE_BYTES +
			     q / COMPRESS_LANES] =
				(uint8_t)(q < nope ? byte + (fnuz && byte < 255)
						   : 0u);
	}
}

/* The same for an index key; a barrier inside, except for MXFP4. */
FN void
compress_store_index(LOCAL float *largest, const PRIVATE uint32_t *w,
		     uint32_t q, uint32_t live, GLOBAL uint8_t *page,
		     uint32_t entry, uint32_t entries, uint32_t layout,
		     uint32_t fnuz)
{
	if (layout == SPMLA_LAYOUT_INDEX_FP8) {
		const float a = g_row_amax_bf16(w, 2, COMPRESS_LANES, 1e-4f);
		float scale;

		if (q % COMPRESS_LANES == 0)
			largest[q / COMPRESS_LANES] = a;
		BARRIER();
		scale = g_row_pow2(g_larger(largest[0], largest[1]));
		if (!live)
			return;
		((GLOBAL uint32_t *)(page +
				     (uint64_t)entry * SPMLA_INDEX_DIM))[q] =
			compress_codes4(w, g_bits(scale) >> 23, fnuz);
		if (q == 0)
			((GLOBAL float *)(page +
					  (uint64_t)entries *
						  SPMLA_INDEX_DIM))[entry] =
				fnuz ? 2.0f * scale : scale;
	} else {
		const uint32_t lanes = SPMLA_MXFP4_GROUP / COMPRESS_EACH;
		const uint32_t scale =
			g_mxfp4_scale(g_row_amax_bf16(w, 2, lanes, 0.0f));
		const float inverse = g_mxfp4_inverse(scale);
		GLOBAL uint8_t *values =
			page + (uint64_t)entry * SPMLA_INDEX_MXFP4_VALUE_BYTES;
		GLOBAL uint8_t *scales =
			page +
			(uint64_t)entries * SPMLA_INDEX_MXFP4_VALUE_BYTES +
			(uint64_t)entry * SPMLA_INDEX_MXFP4_SCALES;

		if (!live)
			return;
		((GLOBAL uint16_t *)values)[q] =
			(uint16_t)(g_f32_to_e2m1(g_bf16x2_low(w[0]) * inverse) |
				   g_f32_to_e2m1(g_bf16x2_high(w[0]) * inverse)
					   << 4 |
				   g_f32_to_e2m1(g_bf16x2_low(w[1]) * inverse)
					   << 8 |
				   g_f32_to_e2m1(g_bf16x2_high(w[1]) * inverse)
					   << 12);
		if (q % lanes == 0)
			scales[q / lanes] = (uint8_t)scale;
	}
}

#endif
#endif
