/* SPDX-License-Identifier: Apache-2.0
 *
 * How the loader of sparse_decode_wgmma makes f16 keys, the values of a row times
 * 64. A code to f16 is exact. An f32 scale is split into the sum of two f16
 * values, so that a product and a fused multiply-add round the key only once.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_CODES_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_CODES_DEVICE_H

#include "spmla/platform/gpu/attend/decode_memory_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* Stores 16 codes times their scale as f16 keys: 8 to byte `at`, 8 to the 16
 * bytes beside it. */
FN void
decode_store_codes(decode_format f, const PRIVATE uint32_t *x, uint32_t scale,
		   LOCAL uint8_t *panel, uint32_t at)
{
	const float bias = (float)(1u << DECODE_KEY_BIAS);
	const uint32_t split = f.scale == DECODE_SCALE_F32;
	uint32_t high, low = 0, y[8], e;

	if (split) {
		const float full = g_float(scale) * bias;
		float rounded, again;

		high = g_f32_to_f16x2(full, full);
		g_f16x2_to_f32(high, &rounded, &again);
		low = g_f32_to_f16x2(full - rounded, full - rounded);
	} else {
		const float full =
			f.scale == DECODE_SCALE_UE8M0
				? g_float((scale + DECODE_KEY_BIAS) << 23)
				: g_e4m3_to_f32(scale) * bias;

		high = g_f32_to_f16x2(full, full);
	}
	UNROLL
	for (e = 0; e < 8; e++) {
		const uint32_t pair = decode_code_pair(f, x, e);

		y[e] = g_mul_f16x2(pair, split ? low : high);
		if (split)
			y[e] = g_fma_f16x2(pair, high, y[e]);
	}
	g_local_store128(panel + at, y);
	g_local_store128(panel + (at ^ 16u), y + 4);
}

/* 8 bf16 values as f16 keys. */
FN void
decode_store_bf16(const PRIVATE uint32_t *x, LOCAL uint8_t *to)
{
	const float bias = (float)(1u << DECODE_KEY_BIAS);
	uint32_t y[4], e;

	UNROLL
	for (e = 0; e < 4; e++)
		y[e] = g_f32_to_f16x2(g_float(x[e] << 16) * bias,
				      g_float(x[e] & 0xffff0000u) * bias);
	g_local_store128(to, y);
}

/* 8 e4m3 values as bf16, exact. */
FN void
decode_store_rope(const PRIVATE uint32_t *x, LOCAL uint8_t *to)
{
	uint32_t y[4], e;

	UNROLL
	for (e = 0; e < 4; e++) {
		float low, high;

		g_e4m3x2_to_f32(x[e / 2] >> 16 * (e % 2) & 0xffffu, &low,
				&high);
		y[e] = g_f32_to_bf16x2(low, high);
	}
	g_local_store128(to, y);
}

/* Whether one of 8 bf16 values is too large for f16 as a key: above 1020. */
FN uint32_t
decode_bf16_wide(const PRIVATE uint32_t *x)
{
	uint32_t e, wide = 0;

	UNROLL
	for (e = 0; e < 4; e++)
		wide |= (x[e] & 0x7fff0000u) > 0x447f0000u ||
			(x[e] << 16 & 0x7fff0000u) > 0x447f0000u;
	return wide;
}

/* The log2 of the largest scale with which f16 holds every code as a key: codes
 * are below 2^9, FNUZ's below 2^8 and e2m1's below 2^3, keys below 2^16. */
FN uint32_t
decode_scale_room(decode_format f)
{
	const uint32_t codes = f.code == DECODE_E2M1   ? 3
			       : f.code == DECODE_FNUZ ? 8
						       : 9;

	return 16 - DECODE_KEY_BIAS - codes;
}

#endif
#endif
