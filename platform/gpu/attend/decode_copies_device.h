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

/* Copies 16 bytes of row `row` of the lane's warp to panel `panel` of a tile,
 * as piece `piece` of 8. `at` is where the row begins, counted from the cache
 * in units of 16 bytes; the piece begins `byte` bytes on. If `at` is
 * DECODE_NO_ROW, the piece becomes zeros. */
FN void
decode_copy_piece(const PRIVATE decode_loader *l, GLOBAL const uint8_t *cache,
		  uint32_t tile, uint32_t row, uint32_t panel, uint32_t piece,
		  uint32_t at, uint32_t byte)
{
	const uint32_t octet = decode_first_row(l) / 8 + row / 8;

	g_local_copy128(l->mem->keys[tile] + octet * DECODE_OCTET_BYTES +
				panel * DECODE_PANEL_BYTES + row % 8 * 128 +
				((piece ^ row % 8) << 4),
			cache + (uint64_t)at * 16 + byte, at < DECODE_NO_ROW);
}

/* Asks for half of the warp's rows of a tile. The right half includes the rope
 * part, which takes the place of P. */
FN void
decode_copy_half(const PRIVATE decode_loader *l,
		 const PRIVATE decode_ahead *ahead, uint32_t tile,
		 uint32_t right)
{
	const uint32_t lane = decode_lane(l);
	uint32_t row;

	g_debug_sleep();
	UNROLL
	for (row = 0; row < DECODE_WARP_ROWS; row++)
		decode_copy_piece(l, ahead->cache, tile, row,
				  4 * right + lane / 8, lane % 8,
				  g_broadcast(ahead->at[0], row),
				  512 * right + 16 * lane);
	if (right && l->format.rope_byte) {
		UNROLL
		for (row = 0; row < DECODE_WARP_ROWS; row += 4)
			decode_copy_piece(
				l, ahead->cache, tile, row + lane / 8, 8,
				lane % 8,
				g_shuffle(ahead->at[0], row + lane / 8),
				l->format.rope_byte + lane % 8 * 16);
	}
	g_mbarrier_arrive_copies(&l->mem->full[tile][right]);
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

		g_mbarrier_wait(&mem->free[tile][0], parity ^ 1u);
		decode_copy_half(l, &ahead, tile, 0);
		g_mbarrier_wait(&mem->free[tile][1], parity ^ 1u);
		decode_copy_half(l, &ahead, tile, 1);
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
