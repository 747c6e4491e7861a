/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader of bf16 rows: four warps that copy a tile's rows unchanged into
 * panels, where they serve as K and, transposed, as V. A warp has 16 rows. The
 * copies themselves arrive at the mbarrier when they are done. So a lane asks
 * for the next half of a tile as soon as its place is free, and waits for no
 * row.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_COPIES_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_COPIES_DEVICE_H

#include "spmla/platform/gpu/attend/decode_loader_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* decode_found.keys if all rows of a warp are keys. */
enum { DECODE_WARP_KEYS = (1 << DECODE_WARP_ROWS) - 1 };

/* Where in a tile a lane copies 16 bytes of each row of its warp to: those of
 * row r lie r % 8 * 128 bytes and r / 8 octets further on, and r % 8 changes
 * the bits of the piece. The right half's lie 4 panels further on. */
FN uint32_t
decode_copy_to(const PRIVATE decode_loader *l)
{
	const uint32_t lane = decode_lane(l);

	return decode_first_row(l) / 8 * DECODE_OCTET_BYTES +
	       lane / 8 * DECODE_PANEL_BYTES + lane % 8 * 16;
}

/* Copies the lane's 16 bytes of row `row`, or zeros. */
FN void
decode_copy_piece(LOCAL uint8_t *tile, uint32_t to, uint32_t row,
		  uint32_t right, GLOBAL const uint8_t *from, uint32_t is)
{
	g_local_copy128(tile + (to ^ row % 8 << 4) +
				row / 8 * DECODE_OCTET_BYTES + row % 8 * 128 +
				4 * right * DECODE_PANEL_BYTES,
			from + 512 * right, is);
}

/* Asks for the rope part of the warp's rows, if there is one. It takes the
 * place of P. */
FN void
decode_copy_rope(const PRIVATE decode_loader *l,
		 const PRIVATE decode_ahead *ahead, uint32_t tile)
{
	const uint32_t lane = decode_lane(l);
	uint32_t at[DECODE_WARP_ROWS / 4], k;

	if (!l->format.rope_byte)
		return;
	UNROLL
	for (k = 0; k < DECODE_WARP_ROWS / 4; k++)
		at[k] = g_shuffle(ahead->at[0], lane / 8 + 4 * k) + lane % 8;
	decode_load_rope(l, 0, ahead->cache, at, tile);
}

/* Asks for the warp's rows of a tile, all of which are keys. Products wait for
 * the copies, and these for a free half of the tile. So what they need is
 * computed before: behind a wait, each is one instruction. */
FN void
decode_copy_tile(const PRIVATE decode_loader *l,
		 const PRIVATE decode_ahead *ahead, uint32_t tile,
		 uint32_t parity)
{
	const uint32_t lane = decode_lane(l);
	const uint32_t to = decode_copy_to(l);
	LOCAL decode_memory *mem = l->mem;
	GLOBAL const uint8_t *const cache = g_here_at(ahead->cache + 16 * lane);
	uint32_t at[DECODE_WARP_ROWS];
	uint32_t row;

	UNROLL
	for (row = 0; row < DECODE_WARP_ROWS; row++)
		at[row] = g_here(g_broadcast(ahead->at[0], row));
	g_mbarrier_wait(&mem->free[tile][0], parity ^ 1u);
	g_debug_sleep();
	UNROLL
	for (row = 0; row < DECODE_WARP_ROWS; row++)
		decode_copy_piece(mem->keys[tile], to, row, 0,
				  cache + (uint64_t)at[row] * 16, 1);
	g_mbarrier_arrive_copies(&mem->full[tile][0]);
	g_mbarrier_wait(&mem->free[tile][1], parity ^ 1u);
	g_debug_sleep();
	UNROLL
	for (row = 0; row < DECODE_WARP_ROWS; row++)
		decode_copy_piece(mem->keys[tile], to, row, 1,
				  cache + (uint64_t)at[row] * 16, 1);
	decode_copy_rope(l, ahead, tile);
	g_mbarrier_arrive_copies(&mem->full[tile][1]);
}

/* The same, where some rows are no keys and become zeros: the last tile of a
 * token, most often. */
FN void
decode_copy_some(const PRIVATE decode_loader *l,
		 const PRIVATE decode_ahead *ahead, uint32_t tile,
		 uint32_t parity)
{
	const uint32_t lane = decode_lane(l);
	const uint32_t to = decode_copy_to(l);
	LOCAL decode_memory *mem = l->mem;
	uint32_t right, row, at;

	NO_UNROLL
	for (right = 0; right < 2; right++) {
		g_mbarrier_wait(&mem->free[tile][right], parity ^ 1u);
		g_debug_sleep();
		UNROLL_BY(4)
		for (row = 0; row < DECODE_WARP_ROWS; row++) {
			at = g_broadcast(ahead->at[0], row);
			decode_copy_piece(mem->keys[tile], to, row, right,
					  ahead->cache + 16 * lane +
						  (uint64_t)at * 16,
					  at < DECODE_NO_ROW);
		}
		if (right)
			decode_copy_rope(l, ahead, tile);
		g_mbarrier_arrive_copies(&mem->full[tile][right]);
	}
}

/* Goes on to the tile whose rows are found: it is copied next. */
FN void
decode_copy_turn(const PRIVATE decode_loader *l, PRIVATE decode_ahead *w,
		 PRIVATE decode_known *known)
{
	w->cache = decode_cache(l, w->found.bits);
	w->at[0] = w->found.keys >> decode_lane(l) & 1u
			   ? w->found.page +
				     w->found.entry * (l->format.row_bytes / 16)
			   : DECODE_NO_ROW;
	known->keys = w->found.keys;
	known->none = w->found.bits & DECODE_NONE;
}

/* The loader's warps, until there is no work left. */
FN void
decode_copy_all(const PRIVATE decode_loader *l)
{
	LOCAL decode_memory *mem = l->mem;
	decode_ahead ahead;
	decode_known known;
	uint32_t m, i;

	/* Begins as if behind the last tile of a run without entries. */
	ahead.run = (uint32_t)-1;
	ahead.tile = DECODE_RUNS - 1;
	ahead.slot = -1;
	known.keys = known.none = 0; /* gcc 14 does not see turn 1 do it */
	NO_UNROLL
	for (i = 0; i < 3; i++) {
		decode_need_run(l, &ahead);
		if (i == 0 && l->warp == 0)
			g_named_arrive(DECODE_BEGAN, DECODE_BEGAN_THREADS);
		decode_find_next(l, &ahead);
		if (i == 1)
			decode_copy_turn(l, &ahead, &known);
	}
	/* The first runs' barriers are reused from here on. This sync makes
	 * sure that no warp still waits for them. */
	g_named_sync(DECODE_LOADERS, DECODE_WARPS * 32);
	for (m = 0; !known.none; m++) {
		const uint32_t tile = m & 1u, parity = m / 2 & 1u;
		const uint32_t keys = known.keys;

		if (keys == DECODE_WARP_KEYS)
			decode_copy_tile(l, &ahead, tile, parity);
		else
			decode_copy_some(l, &ahead, tile, parity);
		/* While the copies come, makes the runs that the multiplying
		 * warps see behind this tile. */
		decode_copy_turn(l, &ahead, &known);
		decode_need_run(l, &ahead);
		decode_find_next(l, &ahead);
		decode_note_rows(l, tile, keys, 0);
		g_subgroup_barrier();
		if (decode_lane(l) == 0)
			g_mbarrier_arrive(&mem->full[tile][1]);
	}
	g_local_copies_wait();
}

#endif
#endif
