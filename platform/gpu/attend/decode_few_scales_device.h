/* SPDX-License-Identifier: Apache-2.0
 *
 * The scales of rows in a block of sparse_decode_few: in units of a key for
 * scores, and in units of the block, group by group, for P.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_FEW_SCALES_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_FEW_SCALES_DEVICE_H

#include "spmla/platform/gpu/attend/decode_few_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* The scales of an item's two keys, g and g + 8 of its warp (lane = 4 g + t).
 */
typedef struct few_keys {
	float scale[2][FEW_GROUPS]; /* in units of `unit` */
	float unit[2];              /* a power of two, from the largest scale */
} few_keys;

/* n as a ue8m0 byte, from 1 to 254. */
FN uint32_t
few_byte(int32_t n)
{
	return n < 1 ? 1 : n > 254 ? 254 : (uint32_t)n;
}

/* The scales of a key, as they are. */
FN void
few_read_scales(const PRIVATE few_block *b, uint32_t key, PRIVATE uint32_t *raw)
{
	LOCAL const uint8_t *at = few_scales(b) + key * FEW_SCALES;

	if (b->kind.format.scale == DECODE_SCALE_F32) {
		g_local_load128(at, raw);
	} else {
		raw[0] = ((LOCAL const uint32_t *)at)[0];
		raw[1] = ((LOCAL const uint32_t *)at)[1];
	}
}

/* The bits of scale i, or its byte. */
FN uint32_t
few_scale_bits(decode_format f, const PRIVATE uint32_t *raw, uint32_t i)
{
	return f.scale == DECODE_SCALE_F32 ? raw[i]
					   : raw[i / 4] >> 8 * (i % 4) & 0xffu;
}

/* Scale `bits` in units of 2^(byte - 127). A ue8m0 byte of 255 is NaN, if
 * `nans` says that it may occur. No branches: this runs very often. */
FN float
few_scale_in(decode_format f, uint32_t bits, uint32_t byte, uint32_t nans)
{
	const int32_t up = (int32_t)(bits + 127 - byte);
	const uint32_t nan = nans ? 0u - ((bits + 1) >> 8) : 0;

	if (f.scale == DECODE_SCALE_F32)
		return g_float(bits) * g_pow2(254 - byte);
	return g_float((uint32_t)(up > 0 ? up : 0) << 23 |
		       (nan & g_bits(G_NAN)));
}

/* A key's scales in a unit of the key's own. */
FN void
few_relate(decode_format f, const PRIVATE uint32_t *raw, PRIVATE float *scale,
	   PRIVATE float *unit)
{
	uint32_t most = 0, i;

	UNROLL
	for (i = 0; i < decode_groups(f); i++) {
		const uint32_t bits = few_scale_bits(f, raw, i);
		const uint32_t e =
			f.scale == DECODE_SCALE_F32 ? bits >> 23 & 0xffu : bits;

		most = e > most ? e : most;
	}
	most = most < 1 ? 1 : most > 253 ? 253 : most;
	*unit = g_float(most << 23);
	UNROLL
	for (i = 0; i < decode_groups(f); i++)
		scale[i] = few_scale_in(f, few_scale_bits(f, raw, i), most, 1);
}

/* Writes the largest of a warp's scales, group by group: f32 as bits; ue8m0 as
 * four words, where word 2 w + j has bytes j and j + 2 of word w of a key's
 * scales. */
FN void
few_note_scales(const PRIVATE few_block *b, uint32_t raw[2][4])
{
	const decode_format f = b->kind.format;
	LOCAL uint32_t *to = few_largest_scales(b) + b->warp * FEW_GROUPS;
	const uint32_t first = b->lane >> 2 & 1u, second = b->lane >> 3 & 1u;
	uint32_t x[4], most, i;

	if (f.scale == DECODE_SCALE_F32) {
		UNROLL
		for (i = 0; i < decode_groups(f); i++) {
			const uint32_t low = raw[0][i] & 0x7fffffffu;
			const uint32_t high = raw[1][i] & 0x7fffffffu;

			most = g_subgroup_largest(low > high ? low : high);

			if (b->lane == i)
				to[i] = most;
		}
		return;
	}
	UNROLL
	for (i = 0; i < 4; i++)
		x[i] = g_larger_halves(
			raw[0][i / 2] >> 8 * (i % 2) & 0x00ff00ffu,
			raw[1][i / 2] >> 8 * (i % 2) & 0x00ff00ffu);
	/* Each step halves the number of words in a lane. */
	UNROLL
	for (i = 0; i < 2; i++) {
		const uint32_t other =
			g_shuffle_xor(first ? x[i] : x[2 + i], 4);

		x[i] = g_larger_halves(first ? x[2 + i] : x[i], other);
	}
	most = g_larger_halves(second ? x[1] : x[0],
			       g_shuffle_xor(second ? x[0] : x[1], 8));
	most = g_larger_halves(most, g_shuffle_xor(most, 16));
	if ((b->lane & 19u) == 0)
		to[2 * first + second] = most;
}

/* The units of P, group by group, as ue8m0 bytes: the block's largest scales,
 * rounded up. Returns whether one is above 1. */
FN uint32_t
few_units_of_p(const PRIVATE few_block *b, PRIVATE uint32_t *byte)
{
	const decode_format f = b->kind.format;
	LOCAL const uint32_t *from = few_largest_scales(b);
	uint32_t most[4] = {0, 0, 0, 0}, wide = 0, i, k;

	UNROLL
	for (k = 0; k < b->kind.warps; k++) {
		uint32_t x[4];

		g_local_load128(from + k * FEW_GROUPS, x);
		UNROLL
		for (i = 0; i < 4; i++)
			most[i] = f.scales_byte
					  ? (x[i] > most[i] ? x[i] : most[i])
					  : g_larger_halves(most[i], x[i]);
	}
	UNROLL
	for (i = 0; i < decode_groups(f); i++) {
		const uint32_t pair = most[i / 4 * 2 + i % 2];

		byte[i] = few_byte(
			(int32_t)(f.scale == DECODE_SCALE_F32
					  ? (most[i % 4] + 0x7fffffu) >> 23
				  : i % 4 / 2 ? pair >> 16
					      : pair & 0xffu));
		wide |= byte[i] > 127;
	}
	return wide;
}

#endif
#endif
