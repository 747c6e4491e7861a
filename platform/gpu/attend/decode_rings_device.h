/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lane of the loader of sparse_decode_wgmma keeps, and its warp's ring
 * of units and places of scales. Each list may have a format of its own, so
 * sizes are those that rows of both formats need.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_RINGS_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_RINGS_DEVICE_H

#include "spmla/platform/gpu/attend/decode_codes_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* What a lane of the loader keeps. */
typedef struct decode_loader {
	const PRIVATE decode_args *a;
	LOCAL decode_memory *mem;
	decode_format format; /* of the first list's rows */
	decode_format extra;  /* of the second list's */
	uint32_t cluster;     /* its blocks: 1 or 2 */
	uint32_t rank;
	uint32_t warp;
	uint32_t lane;
	LOCAL uint8_t *ring; /* the lane's bytes of a unit's first rows */
	LOCAL const uint8_t *scales; /* the lane's of its first row */
	uint32_t store; /* place of its first codes, from the panel on */
	/* As `scales`, of rows of the second list's format. */
	LOCAL const uint8_t *extra_scales;
} decode_loader;

/* The lane. What follows from it is computed again at each use: no registers
 * are left to keep it. */
FN uint32_t
decode_lane(const PRIVATE decode_loader *l)
{
	return g_here(l->lane);
}

/* Rows of a tile that a warp loads. */
FN uint32_t
decode_rows_of(const PRIVATE decode_loader *l)
{
	return DECODE_WARP_ROWS / l->cluster;
}

/* The first of them. */
FN uint32_t
decode_first_row(const PRIVATE decode_loader *l)
{
	return (l->rank * DECODE_WARPS + l->warp) * decode_rows_of(l);
}

/* Whether a tile's rows have the second list's format. Where both are the same
 * it is 0, a constant. */
FN uint32_t
decode_is_extra(const PRIVATE decode_loader *l, uint32_t bits)
{
	return !decode_same_rows(l->format, l->extra) && bits & DECODE_SECOND;
}

/* The format of such rows, or of the first list's. */
FN decode_format
decode_format_of(const PRIVATE decode_loader *l, uint32_t is_extra)
{
	return is_extra ? l->extra : l->format;
}

/* Whether a list's rows are e2m1. Their scales are long, and their rope part
 * needs conversion. */
FN uint32_t
decode_some_e2m1(const PRIVATE decode_loader *l)
{
	return l->format.code == DECODE_E2M1 || l->extra.code == DECODE_E2M1;
}

/* Bytes of a lane's place for codes of a row. With e2m1 rows in one list alone
 * they use half of it. */
FN uint32_t
decode_lane_bytes(const PRIVATE decode_loader *l)
{
	const uint32_t first = decode_code_bytes(l->format);
	const uint32_t second = decode_code_bytes(l->extra);

	return first > second ? first : second;
}

/* Bytes of a unit. */
FN uint32_t
decode_unit_bytes(const PRIVATE decode_loader *l)
{
	return DECODE_UNIT / 16 * decode_lane_bytes(l);
}

/* Units of a ring. More than eight did not help: rows come in time. Long scales
 * lie where a fourth unit would, if units have their full size. */
FN uint32_t
decode_units(const PRIVATE decode_loader *l)
{
	if (l->format.heads != DECODE_HEADS)
		return DECODE_FEW_UNITS;
	return decode_some_e2m1(l) && decode_unit_bytes(l) == DECODE_UNIT
		       ? DECODE_UNITS - 1
		       : DECODE_UNITS;
}

/* Bytes from row to row of the scales in shared memory. */
FN uint32_t
decode_scales_stride(const PRIVATE decode_loader *l)
{
	return decode_some_e2m1(l) ? DECODE_LONG_SCALES : DECODE_SCALES;
}

/* The scales of the warp's row of a tile. */
FN LOCAL uint8_t *
decode_scales_of(const PRIVATE decode_loader *l, uint32_t tile, uint32_t row)
{
	return decode_some_e2m1(l)
		       ? l->mem->rings[l->warp].long_scales[tile][row]
		       : l->mem->rings[l->warp].scales[tile][row];
}

/* The scale of a lane's 16 values of piece 0, in the scales of the warp's row
 * `row` of tile 0. */
FN LOCAL const uint8_t *
decode_scale_at(const PRIVATE decode_loader *l, decode_format f, uint32_t row)
{
	return decode_scales_of(l, 0, row) +
	       decode_scale_byte(f, l->lane / (f.group / 16) % (128 / f.group));
}

/* The next place of the ring. */
FN uint32_t
decode_next_place(const PRIVATE decode_loader *l, uint32_t place)
{
	return (place + decode_unit_bytes(l)) %
	       (decode_units(l) * decode_unit_bytes(l));
}

#endif
#endif
