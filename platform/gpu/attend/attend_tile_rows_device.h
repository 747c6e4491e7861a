/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows for the products of tiles, in two steps: from memory to registers, which
 * can be under way while products run, and from there to shared memory as bf16.
 * 16 lanes have a row.
 *
 * The hard idea: codes become bf16 four at a time (codes.h). What that gets
 * wrong is rare: a NaN, or a scale that with the power of two overflows. A lane
 * that sees one makes its values again, one at a time.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_ATTEND_TILE_ROWS_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_ATTEND_TILE_ROWS_DEVICE_H

#include "spmla/platform/gpu/attend/attend_device.h"
#include "spmla/platform/gpu/dialect/codes.h"

#ifdef SPMLA_GPU_KERNELS

/* What a lane has of a row. Of fp8 rows it has 8 codes, two words, of every
 * 128; then the words of scales and rope. Of V4 rows the last 8 lanes have 8
 * values of rope instead of the fourth 8 codes. Of bf16 rows it has quads, as
 * attend_device.h counts them. */
typedef struct attend_tile_raw {
	uint32_t x[2 * ATTEND_QUADS];
} attend_tile_raw;

enum {
	ATTEND_TILE_SCALES_AT = 8, /* the words of FP8_DS_MLA's scales */
	ATTEND_TILE_ROPE_AT = 12,
	ATTEND_TILE_V4_SCALES_AT = 10
};

FN void
attend_tile_take(PRIVATE uint32_t *x, GLOBAL const uint8_t *from)
{
	const uint64_t two = *(GLOBAL const uint64_t *)from;

	x[0] = (uint32_t)two;
	x[1] = (uint32_t)(two >> 32);
}

FN uint64_t
attend_tile_pair(const PRIVATE uint32_t *x)
{
	return (uint64_t)x[1] << 32 | x[0];
}

/* Asks for the lane's part of a row. */
FN void
attend_tile_fetch(PRIVATE attend_tile_raw *raw, GLOBAL const uint8_t *base,
		  uint64_t at, uint64_t scales_at, uint32_t layout,
		  uint32_t quads)
{
	const uint32_t l = attend_lane();
	GLOBAL const uint8_t *row = base + at;
	PRIVATE uint32_t *x = raw->x;
	uint32_t k;

	if (layout == SPMLA_LAYOUT_FP8_DS_MLA) {
		UNROLL
		for (k = 0; k < 4; k++)
			attend_tile_take(x + 2 * k, row + 128 * k + 8 * l);
		UNROLL
		for (k = 0; k < 2; k++)
			attend_tile_take(x + ATTEND_TILE_SCALES_AT + 2 * k,
					 row + SPMLA_FP8_DS_MLA_SCALE_BYTE +
						 8 * k);
		attend_tile_take(x + ATTEND_TILE_ROPE_AT,
				 row + SPMLA_FP8_DS_MLA_ROPE_BYTE + 8 * l);
	} else if (layout == SPMLA_LAYOUT_V4_FP8) {
		const uint32_t last =
			l < 8 ? 384 + 8 * l : SPMLA_V4_NOPE + 16 * (l - 8);

		UNROLL
		for (k = 0; k < 3; k++)
			attend_tile_take(x + 2 * k, row + 128 * k + 8 * l);
		UNROLL
		for (k = 0; k < 2; k++)
			attend_tile_take(x + 6 + 2 * k, row + last + 8 * k);
		attend_tile_take(x + ATTEND_TILE_V4_SCALES_AT,
				 base + (scales_at & ~ATTEND_FNUZ));
	} else if (layout == SPMLA_LAYOUT_MLA_BF16) {
		UNROLL
		for (k = 0; k < ATTEND_VALUE_QUADS; k++)
			attend_tile_take(x + 2 * k, row + 128 * k + 8 * l);
		if (quads > ATTEND_VALUE_QUADS)
			attend_tile_take(x + 2 * ATTEND_VALUE_QUADS,
					 row + 128 * ATTEND_VALUE_QUADS +
						 8 * l);
	}
}

/* The scale of the lane's 8 codes number k of every 128. */
FN float
attend_tile_scale(const PRIVATE attend_tile_raw *raw, uint32_t v4, uint32_t k)
{
	PRIVATE const uint32_t *x = raw->x;
	uint32_t byte;

	if (!v4)
		return g_float(x[ATTEND_TILE_SCALES_AT + k]);
	byte = x[ATTEND_TILE_V4_SCALES_AT + k / 2] >>
		       (k % 2 * 16 + attend_lane() / 8 * 8) &
	       0xffu;
	return g_ue8m0(byte);
}

/* A lane's codes again, without the idea above. */
FN void
attend_tile_again(LOCAL uint64_t *key, GLOBAL const uint8_t *base, uint64_t at,
		  uint64_t scales_at, uint32_t v4)
{
	const uint32_t l = attend_lane();
	const uint32_t words = v4 && l >= 8 ? 6 : 8;
	GLOBAL const uint32_t *codes = (GLOBAL const uint32_t *)(base + at);
	GLOBAL const float *scales =
		(GLOBAL const float *)(base + at + SPMLA_FP8_DS_MLA_SCALE_BYTE);
	uint32_t i;

	NO_UNROLL
	for (i = 0; i < words; i++) {
		const uint32_t quad = i / 2 * 32 + 2 * l + i % 2;
		const float scale =
			v4 ? g_ue8m0(base[(scales_at & ~ATTEND_FNUZ) +
					  quad / 16])
			   : scales[quad / 32];

		key[quad] = scales_at & ATTEND_FNUZ
				    ? attend_fnuz_quad(codes[quad], scale)
				    : attend_dequantised(codes[quad], scale);
	}
}

/* Puts the lane's part of an fp8 row into shared memory. */
FN void
attend_tile_put_fp8(LOCAL uint64_t *key, const PRIVATE attend_tile_raw *raw,
		    GLOBAL const uint8_t *base, uint64_t at, uint64_t scales_at,
		    uint32_t v4)
{
	const uint32_t fnuz = (scales_at & ATTEND_FNUZ) != 0;
	const uint32_t l = attend_lane();
	const uint32_t rope = v4 && l >= 8; /* instead of the last codes */
	/* The power of two, and the least scale with which values of V4 are no
	 * subnormals. */
	const float power = g_codes_power(fnuz);
	const float least = v4 ? 0x1p-110f * power : 0.0f;
	PRIVATE const uint32_t *x = raw->x;
	uint32_t odd = g_codes_any_nan(x, 6, fnuz) |
		       (rope ? 0 : g_codes_any_nan(x + 6, 2, fnuz));
	uint32_t k;

	UNROLL
	for (k = 0; k < 4; k++) {
		const float scale = attend_tile_scale(raw, v4, k) * power;
		uint32_t y[4], i;

		g_codes_to_bf16x4(x[2 * k], scale, v4, y);
		g_codes_to_bf16x4(x[2 * k + 1], scale, v4, y + 2);
		if (k == 3 && rope) {
			UNROLL
			for (i = 0; i < 4; i++)
				y[i] = x[6 + i];
		} else {
			odd |= !(g_abs(scale) < G_INF && g_abs(scale) >= least);
		}
		key[32 * k + 2 * l] = attend_tile_pair(y);
		key[32 * k + 2 * l + 1] = attend_tile_pair(y + 2);
	}
	if (!v4)
		key[4 * 32 + l] = attend_tile_pair(x + ATTEND_TILE_ROPE_AT);
	if (UNLIKELY(odd))
		attend_tile_again(key, base, at, scales_at, v4);
}

/* Puts the lane's part of a row into shared memory. */
FN void
attend_tile_put(LOCAL uint64_t *key, const PRIVATE attend_tile_raw *raw,
		GLOBAL const uint8_t *base, uint64_t at, uint64_t scales_at,
		uint32_t layout, uint32_t quads)
{
	uint32_t k;

	if (layout == SPMLA_LAYOUT_FP8_DS_MLA) {
		attend_tile_put_fp8(key, raw, base, at, scales_at, 0);
	} else if (layout == SPMLA_LAYOUT_V4_FP8) {
		attend_tile_put_fp8(key, raw, base, at, scales_at, 1);
	} else if (layout == SPMLA_LAYOUT_MLA_BF16) {
		UNROLL
		for (k = 0; k < ATTEND_VALUE_QUADS; k++)
			key[ATTEND_LANES * k + attend_lane()] =
				attend_tile_pair(raw->x + 2 * k);
		if (quads > ATTEND_VALUE_QUADS)
			key[ATTEND_LANES * ATTEND_VALUE_QUADS + attend_lane()] =
				attend_tile_pair(raw->x +
						 2 * ATTEND_VALUE_QUADS);
	} else {
		attend_load_loose(key, base + at, quads);
	}
}

#endif
#endif
