/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader of bf16 rows: four warps that copy a tile's rows unchanged into
 * panels, where they serve as K and, transposed, as V. A warp has 16 rows. The
 * copies themselves arrive at the mbarrier when they are done. So a lane waits
 * for no row. Between the halves of a tile it finds the tiles to come.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_COPIES_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_COPIES_DEVICE_H

#include "spmla/platform/gpu/attend/decode_loader_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* A lane's four rows of a tile: rows lane / 8, lane / 8 + 4, .. of its warp's.
 */
typedef struct decode_copy {
	GLOBAL const uint8_t *from[4]; /* the lane's bytes of the first panel */
	uint32_t is[4];                /* whether the row is a key */
} decode_copy;

/* Takes the rows of the tile that is copied next. */
FN void
decode_copy_take(const PRIVATE decode_ahead *ahead, PRIVATE decode_copy *c)
{
	uint32_t k;

	UNROLL
	for (k = 0; k < 4; k++) {
		c->from[k] =
			g_here_at(ahead->cache + (uint64_t)ahead->at[k] * 16);
		c->is[k] = ahead->at[k] < DECODE_NO_ROW;
	}
}

/* Asks for half of the warp's rows of a tile; those that are no keys become
 * zeros. Panel i has bytes 128 i and on of a row. The right half includes the
 * rope part, whose panel, the last one, held P. A lane has the same 16 bytes of
 * each panel. So a copy is one instruction: each of its two addresses is a
 * row's and a constant. */
FN void
decode_copy_half(const PRIVATE decode_loader *l, const PRIVATE decode_copy *c,
		 uint32_t tile, uint32_t right)
{
	const uint32_t lane = decode_lane(l), row = lane / 8;
	const uint32_t to = row * 128 + ((lane % 8 ^ row) << 4);
	const uint32_t panels = right && l->format.rope_byte ? 5 : 4;
	LOCAL uint8_t *keys = l->mem->keys[tile] +
			      decode_first_row(l) / 8 * DECODE_OCTET_BYTES;
	uint32_t i, k;

	g_debug_sleep();
	UNROLL
	for (i = 4 * right; i < 4 * right + panels; i++) {
		UNROLL
		for (k = 0; k < 4; k++)
			g_local_copy128(keys + (to ^ k % 2 * DECODE_FOUR_ROWS) +
						k / 2 * DECODE_OCTET_BYTES +
						i * DECODE_PANEL_BYTES,
					c->from[k] + 128 * i, c->is[k]);
	}
	g_mbarrier_arrive_copies(&l->mem->full[tile][right]);
}

/* Goes on to the tile whose rows are found: it is copied next. */
FN void
decode_copy_turn(const PRIVATE decode_loader *l, PRIVATE decode_ahead *w,
		 PRIVATE decode_known *known)
{
	w->cache = decode_cache(l, w->found.bits);
	decode_rows_at(l, &w->found, w->at);
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
	decode_copy copy;
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

		decode_copy_take(&ahead, &copy);
		g_mbarrier_wait(&mem->free[tile][0], parity ^ 1u);
		decode_copy_half(l, &copy, tile, 0);
		/* Before the right half is free, makes the runs that the
		 * multiplying warps see behind this tile, and asks for slots. */
		decode_copy_turn(l, &ahead, &known);
		decode_need_run(l, &ahead);
		decode_find_next(l, &ahead);
		g_mbarrier_wait(&mem->free[tile][1], parity ^ 1u);
		decode_copy_half(l, &copy, tile, 1);
		decode_note_rows(l, tile, keys, 0);
		g_subgroup_barrier();
		if (decode_lane(l) == 0)
			g_mbarrier_arrive(&mem->full[tile][1]);
	}
	g_local_copies_wait();
}

#endif
#endif
