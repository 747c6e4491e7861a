/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of 512 bf16 values, each in the registers of 16 lanes, and how they are
 * stored in a V4 cache. An octet is 8 neighbouring values. The hard idea: lane
 * l has octets l, l + 16, l + 32, l + 48, each one load of 16 bytes. So 8
 * neighbouring lanes hold a group of 64 values with one scale, a rotated pair
 * never leaves its thread, and a block of 128 threads does 8 rows at a time
 * without shared memory or barriers.
 */
#ifndef SPMLA_PLATFORM_GPU_CACHE_V4_ROW_DEVICE_H
#define SPMLA_PLATFORM_GPU_CACHE_V4_ROW_DEVICE_H

#include "spmla/platform/gpu/cache/row_device.h"
#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/input_device.h"

enum {
	V4_LANES = 16,
	V4_EACH = 4,        /* octets of a row that a lane has */
	V4_ROWS = 8,        /* rows of a block of 128 items */
	V4_ROPE_OCTET = 56, /* the first that is rotated */
	V4_ROPE_PAIRS = SPMLA_V4_ROPE / 2
};

#ifdef SPMLA_GPU_KERNELS

/* Loads the lane's octets of a row; zeros if the row is not `there`. */
FN void
v4_load_row(GLOBAL const uint16_t *row, uint32_t there, uint32_t wide,
	    PRIVATE uint32_t *w)
{
	const uint32_t lane = g_item() % V4_LANES;
	uint32_t j;

	UNROLL
	for (j = 0; j < V4_EACH; j++) {
		w[4 * j] = w[4 * j + 1] = w[4 * j + 2] = w[4 * j + 3] = 0;
		if (there)
			g_row_load8(row + 8 * (V4_LANES * j + lane), wide,
				    w + 4 * j);
	}
}

/* Loads a position's four cosines, then four sines, for the lane's rotated
 * pairs. Octets from V4_ROPE_OCTET on are rotated: lanes 8 .. 15 have one
 * each. */
FN void
v4_load_angles(GLOBAL const float *cos_sin, uint32_t position, uint32_t there,
	       uint32_t form, PRIVATE uint32_t *angles)
{
	const uint32_t lane = g_item() % V4_LANES;
	const uint64_t at = (uint64_t)position * SPMLA_V4_ROPE + 4 * (lane % 8);
	uint32_t i;

	UNROLL
	for (i = 0; i < 8; i++)
		angles[i] = 0;
	if (!there || lane < V4_ROPE_OCTET % V4_LANES)
		return;
	g_reals4(cos_sin, form, at, angles);
	g_reals4(cos_sin, form, at + V4_ROPE_PAIRS, angles + 4);
}

/* Multiplies four pairs by r and rotates them. Each product and sum is rounded,
 * and the results to bf16. */
FN void
v4_rotate8(PRIVATE uint32_t *w, float r, const PRIVATE uint32_t *angles)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		const float x = g_bf16x2_low(w[i]) * r,
			    y = g_bf16x2_high(w[i]) * r;
		const float c = g_float(angles[i]), s = g_float(angles[4 + i]);

		w[i] = g_bf16x2_bits(x * c - y * s, y * c + x * s);
	}
}

/* The scale byte of the 64 values of an aligned group of 8 lanes; 255 if one is
 * infinite. A NaN is ignored. All threads of the subgroup call it. */
FN uint32_t
v4_scale_byte(const PRIVATE uint32_t *w)
{
	return g_bits(g_row_pow2(g_row_amax_bf16(w, 4, 8, 1e-4f))) >> 23;
}

/* 1 / 2^(byte - 127), or 0 for byte 255. Exact: with bytes of v4_scale_byte it
 * is normal. */
FN float
v4_inverse(uint32_t byte)
{
	return byte == 255 ? 0.0f : g_float((254 - byte) << 23);
}

/* The inverse of the scale at `at`, if it is there; otherwise `inverse`. */
FN float
v4_inverse_at(GLOBAL const float *at, uint32_t is_there, float inverse)
{
	return is_there ? g_div_rn(1.0f, *at) : inverse;
}

/* The e4m3 codes of the four values in two words, times `inverse`. */
FN uint32_t
v4_codes4(const PRIVATE uint32_t *w, float inverse)
{
	return g_f32_to_e4m3x4(
		g_bf16x2_low(w[0]) * inverse, g_bf16x2_high(w[0]) * inverse,
		g_bf16x2_low(w[1]) * inverse, g_bf16x2_high(w[1]) * inverse);
}

/* The same in FNUZ, of any values. */
FN uint32_t
v4_codes4_fnuz(const PRIVATE uint32_t *w, float inverse)
{
	return g_f32_to_fnuzx4(
		g_bf16x2_low(w[0]) * inverse, g_bf16x2_high(w[0]) * inverse,
		g_bf16x2_low(w[1]) * inverse, g_bf16x2_high(w[1]) * inverse);
}

/* Eight codes of a V4_E4M3 cache. */
FN uint64_t
v4_codes8_e4m3(const PRIVATE uint32_t *w, float inverse, uint32_t fnuz)
{
	if (fnuz)
		return (uint64_t)v4_codes4_fnuz(w + 2, inverse) << 32 |
		       v4_codes4_fnuz(w, inverse);
	return (uint64_t)v4_codes4(w + 2, inverse) << 32 |
	       v4_codes4(w, inverse);
}

/* Eight codes of values up to 448; in FNUZ they mean half of the values. */
FN uint64_t
v4_codes8(const PRIVATE uint32_t *w, float inverse, uint32_t fnuz)
{
	uint32_t low = v4_codes4(w, inverse), high = v4_codes4(w + 2, inverse);

	if (fnuz) {
		low = g_e4m3x4_to_fnuz(low);
		high = g_e4m3x4_to_fnuz(high);
	}
	return (uint64_t)high << 32 | low;
}

/* Stores eight rope values. Pages of V4_FP8 may begin at any multiple of 8
 * bytes. */
FN void
v4_write_rope(GLOBAL uint16_t *p, const PRIVATE uint32_t *w)
{
	if ((uint64_t)p % 16 == 0) {
		g_store4(p, w);
		return;
	}
	((GLOBAL uint64_t *)p)[0] = (uint64_t)w[1] << 32 | w[0];
	((GLOBAL uint64_t *)p)[1] = (uint64_t)w[3] << 32 | w[2];
}

/* Writes octet `o` of entry `entry` of a page. `byte` is the scale byte of its
 * group for e4m3fn. FNUZ divides by 224, so its scale is twice that. */
FN void
v4_write8(GLOBAL uint8_t *page, uint32_t layout, uint32_t fnuz,
	  uint64_t entries, uint64_t entry, uint32_t o,
	  const PRIVATE uint32_t *w, uint32_t byte, float inverse)
{
	GLOBAL uint8_t *values = page + entry * SPMLA_V4_VALUE_BYTES;
	GLOBAL uint8_t *scales = page + entries * SPMLA_V4_VALUE_BYTES +
				 entry * SPMLA_V4_SCALE_BYTES;

	if (layout == SPMLA_LAYOUT_V4_BF16) {
		g_store4((GLOBAL uint16_t *)(page +
					     entry * SPMLA_V4_BF16_BYTES) +
				 8 * o,
			 w);
		return;
	}
	if (layout == SPMLA_LAYOUT_V4_E4M3) {
		*(GLOBAL uint64_t *)(page + entry * SPMLA_V4_E4M3_BYTES +
				     8 * o) = v4_codes8_e4m3(w, inverse, fnuz);
		return;
	}
	if (o % 8 == 0)
		scales[o / 8] = (uint8_t)(o < V4_ROPE_OCTET
						  ? byte + (fnuz && byte < 255)
						  : 0);
	if (o < V4_ROPE_OCTET)
		*(GLOBAL uint64_t *)(values + 8 * o) =
			v4_codes8(w, v4_inverse(byte), fnuz);
	else
		v4_write_rope((GLOBAL uint16_t *)(values + SPMLA_V4_NOPE) +
				      8 * (o - V4_ROPE_OCTET),
			      w);
}

/* v4_write_row for one layout, a compile-time constant. */
FN void
v4_write_layout(PRIVATE uint32_t *w, uint32_t live, GLOBAL uint8_t *page,
		const uint32_t layout, uint32_t fnuz, uint64_t entries,
		uint64_t entry, float inverse)
{
	const uint32_t lane = g_item() % V4_LANES;
	uint32_t j;

	UNROLL
	for (j = 0; j < V4_EACH; j++) {
		uint32_t byte = 0;

		if (layout == SPMLA_LAYOUT_V4_FP8)
			byte = v4_scale_byte(w + 4 * j);
		if (live)
			v4_write8(page, layout, fnuz, entries, entry,
				  V4_LANES * j + lane, w + 4 * j, byte,
				  inverse);
	}
}

/* Stores a row, already rotated, as entry `entry` of a page, if it is `live`.
 * fnuz: codes are FNUZ. All threads of the subgroup call it. */
FN void
v4_write_row(PRIVATE uint32_t *w, uint32_t live, GLOBAL uint8_t *page,
	     uint32_t layout, uint32_t fnuz, uint64_t entries, uint64_t entry,
	     float inverse)
{
	if (layout == SPMLA_LAYOUT_V4_FP8)
		v4_write_layout(w, live, page, SPMLA_LAYOUT_V4_FP8, fnuz,
				entries, entry, inverse);
	else if (layout == SPMLA_LAYOUT_V4_BF16)
		v4_write_layout(w, live, page, SPMLA_LAYOUT_V4_BF16, 0, entries,
				entry, inverse);
	else
		v4_write_layout(w, live, page, SPMLA_LAYOUT_V4_E4M3, fnuz,
				entries, entry, inverse);
}

#endif
#endif
