/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader of sparse_decode_wgmma: four warps that bring a tile's rows of the
 * cache into shared memory, as f16 keys that serve as K and, transposed, as V.
 *
 * A row goes in pieces of 128 bytes, 16 a lane. A unit is one piece of 8 rows.
 * Each warp has a ring of four units (eight with few heads, beside their
 * queries) that cp.async fills. A lane reads back only what it copied itself,
 * one unit ahead of the conversion. So no warp waits for another, and loads go
 * on across tiles and tokens. V3.2's rope part may bypass the ring
 * (decode_rope_direct). A decode_format says what a row consists of, in
 * constants of a kernel: a new kind of row needs a new decode_format, and no
 * new kernel. Each list may have a format of its own. Of e2m1 rows a piece is 64
 * bytes and a lane has 8. So in every kind of row a lane has 16 values of a
 * piece of codes, and one scale.
 *
 * The hard ideas:
 * - f16 has 11 bits where bf16 has 8, but a smaller range. A key is the row's
 *   value times 64. So rows of e4m3 fit whose largest scale is in [2^-23, 2):
 *   every row that inserts make of values up to 896. A tile with a row that does
 *   not fit is marked in its notes and computed in f32 from the cache.
 * - In a cluster of two each block converts half of the rows and copies them
 *   into the peer's shared memory, panel by panel as they lie.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_LOADER_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_LOADER_DEVICE_H

#include "spmla/platform/gpu/attend/decode_rings_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* No row. It is above the place of every row. */
#define DECODE_NO_ROW 0xffffff00u

/* The row that a lane finds for its warp: row `lane` of the warp's. */
typedef struct decode_found {
	uint32_t page; /* where it begins, from the cache on, in 16 bytes */
	uint32_t entry;
	uint32_t keys; /* bit r: row r of the warp is a key */
	uint32_t bits; /* DECODE_SECOND and DECODE_NONE of the tile */
} decode_found;

/* A lane's 16 bytes of two rows of a unit, or 8 of e2m1, and their scales. */
typedef struct decode_unit {
	uint32_t x[2][4];
	uint32_t scale[2];
} decode_unit;

/* With a bf16 tail, piece 0 is the tail. It comes first, so that the loader
 * knows whether f16 holds it before it gives on the row's first half. Only half
 * of piece 1 is codes then. */
FN uint32_t
decode_piece_is_tail(decode_format f, uint32_t i)
{
	return f.bf16_tail && i == 0;
}

/* The byte where piece i of a row begins. */
FN uint32_t
decode_piece_byte(decode_format f, uint32_t i)
{
	if (f.bf16_tail)
		return i < 2 ? 448 - 64 * i : 128 * (i - 2);
	return i < 4 ? 8 * decode_code_bytes(f) * i : f.rope_byte;
}

/* The panel of the first 64 values of piece i. */
FN uint32_t
decode_piece_panel(decode_format f, uint32_t i)
{
	if (f.bf16_tail)
		return i < 2 ? 1 - i : 2 * (i - 1);
	return 2 * i;
}

/* Whether the rope part is copied to its panel, as it needs no conversion, and
 * not through the ring, which then holds more of the codes. The panel, where P
 * lay, is free only half a tile before the copy must have come. That is too late
 * in a cluster, where a tile takes half the time, and with a large ring. */
FN uint32_t
decode_rope_direct(const PRIVATE decode_loader *l)
{
	return l->format.rope_byte && !decode_some_e2m1(l) && l->cluster == 1 &&
	       l->format.heads == DECODE_HEADS;
}

/* How many pieces of a row go through the ring. */
FN uint32_t
decode_pieces(const PRIVATE decode_loader *l)
{
	return decode_rope_direct(l) ? DECODE_PIECES - 1 : DECODE_PIECES;
}

/* How many pieces make the first half of a row. */
FN uint32_t
decode_left_pieces(decode_format f)
{
	return f.bf16_tail ? 3 : 2;
}

/* The dim of a panel's first value. */
FN uint32_t
decode_panel_dim(decode_format f, uint32_t panel)
{
	return (f.bf16_tail ? (panel + 6) % 8 : panel) * 64;
}

/* ---- Where rows are ---------------------------------------------------- */

/* Makes run r, by a lane of warp 0; all wait until it is made. */
FN void
decode_await_run(const PRIVATE decode_loader *l, uint32_t r)
{
	const uint32_t heads = DECODE_HEADS * l->cluster;
	LOCAL decode_memory *mem = l->mem;

	if (l->warp == 0 && decode_lane(l) == 0) {
		decode_walk_next(l->a, l->format.lists,
				 (l->a->s.heads + heads - 1) / heads,
				 g_blocks() / l->cluster,
				 decode_in_turn(l->format)
					 ? *decode_chunk_of(mem, l->rank)
					 : 1,
				 l->rank == 0, &mem->walk, mem->runs,
				 r % DECODE_RUNS);
		g_mbarrier_arrive(&mem->made[r % DECODE_MADE]);
	}
	g_mbarrier_wait(&mem->made[r % DECODE_MADE], r / DECODE_MADE & 1u);
	g_debug_sleep();
}

/* Asks for the slot of the lane's row of a tile. */
FN int32_t
decode_ask(const PRIVATE decode_loader *l, decode_tile tile)
{
	const PRIVATE decode_args *a = l->a;
	LOCAL const decode_run *run = decode_run_of(l->mem->runs, tile);
	const uint32_t row = decode_first_row(l) + decode_lane(l);
	const uint32_t second =
		l->format.lists == 2 && run->bits & DECODE_SECOND;

	return decode_lane(l) < decode_rows_of(l) &&
			       tile / DECODE_RUNS * DECODE_BLOCK + row <
				       run->count
		       ? decode_tile_slot(a, second, run, tile, row)
		       : -1;
}

/* Finds the row of a slot that was asked for. */
FN void
decode_find(const PRIVATE decode_loader *l, decode_tile tile, int32_t slot,
	    PRIVATE decode_found *to)
{
	const PRIVATE decode_args *a = l->a;
	LOCAL const decode_run *run = decode_run_of(l->mem->runs, tile);
	const uint32_t bits = run->bits;
	const uint32_t second = l->format.lists == 2 && bits & DECODE_SECOND;
	const spmla_g_divisor page = second ? a->s.extra_page : a->s.page;
	const uint32_t pages = second ? a->s.extra_pages : a->s.pages;
	const uint32_t stride =
		(uint32_t)((second ? a->s.extra_page_stride_bytes
				   : a->s.page_stride_bytes) /
			   16);
	const uint32_t number = g_divide((uint32_t)slot, page);
	const uint32_t is = slot >= 0 && number < pages;

	to->page = number * stride;
	to->entry = (uint32_t)slot - number * page.by;
	to->keys = (uint32_t)g_ballot(is);
	to->bits = bits;
	if (UNLIKELY(slot != -1 && !is) && decode_run_group(bits) == 0 &&
	    !a->s.quiet)
		g_fault(a->fault_state, a->fault_status, run->token,
			G_FAULT_INDEX);
}

/* The cache that holds a tile's rows. */
FN GLOBAL const uint8_t *
decode_cache(const PRIVATE decode_loader *l, uint32_t bits)
{
	return l->format.lists == 2 && bits & DECODE_SECOND ? l->a->extra_cache
							    : l->a->cache;
}

/* ---- From the cache into the ring -------------------------------------- */

/* Asks for the scales of a tile's rows. */
FN void
decode_load_scales(const PRIVATE decode_loader *l,
		   const PRIVATE decode_found *found, uint32_t tile)
{
	const decode_format f =
		decode_format_of(l, decode_is_extra(l, found->bits));
	const uint32_t bytes = decode_scale_bytes(f);
	const uint32_t by = l->format.lists == 2 && found->bits & DECODE_SECOND
				    ? l->a->s.extra_page.by
				    : l->a->s.page.by;
	GLOBAL const uint8_t *from =
		decode_cache(l, found->bits) + (uint64_t)found->page * 16;
	const uint32_t is = found->keys >> decode_lane(l) & 1u;
	LOCAL uint8_t *to;
	uint32_t i;

	if (decode_lane(l) >= decode_rows_of(l))
		return;
	to = decode_scales_of(l, tile, decode_lane(l));
	if (f.scales_byte)
		from = from + (uint64_t)found->entry * f.row_bytes +
		       f.scales_byte;
	else
		from = from + (uint64_t)by * f.row_bytes + found->entry * bytes;
	if (bytes == 8)
		g_local_copy64(to, from, is);
	UNROLL
	for (i = 0; i < bytes / 16; i++)
		g_local_copy128(to + 16 * i, from + 16 * i, is);
}

/* Where the lane's 16 bytes of its rows lie, counted from the cache on in units
 * of 16 bytes; its 8 bytes of e2m1 are the first or the last ones there. A lane
 * has rows lane / 8, lane / 8 + 4, .. of the rows that the warp's lanes found.
 */
FN void
decode_rows_at(const PRIVATE decode_loader *l,
	       const PRIVATE decode_found *found, PRIVATE uint32_t *at)
{
	const decode_format f =
		decode_format_of(l, decode_is_extra(l, found->bits));
	const uint32_t own =
		found->keys >> decode_lane(l) & 1u
			? found->page + found->entry * (f.row_bytes / 16)
			: DECODE_NO_ROW;
	uint32_t k;

	UNROLL
	for (k = 0; k < decode_rows_of(l) / 4; k++)
		at[k] = g_shuffle(own, decode_lane(l) / 8 + 4 * k) +
			decode_lane(l) % 8 * decode_code_bytes(f) / 16;
}

/* Asks for unit u of a tile, whose rows have format f: piece i of 8 rows. */
FN void
decode_load(const PRIVATE decode_loader *l, uint32_t is_extra,
	    GLOBAL const uint8_t *cache, const PRIVATE uint32_t *at, uint32_t u,
	    uint32_t place)
{
	const decode_format f = decode_format_of(l, is_extra);
	const uint32_t octets = decode_rows_of(l) / 8;
	const uint32_t i = u / octets, octet = u % octets;
	const uint32_t half = decode_unit_bytes(l) / 2;
	uint32_t j;

	if (G_DEBUG)
		for (j = 0; j < 2; j++) /* the lane has read this place */
			g_spoil(l->ring + place + j * half,
				decode_lane_bytes(l), 0, 1);
	if (i == 4 && !f.bf16_tail && !f.rope_byte)
		return;
	if (f.bf16_tail && i == 1 && decode_lane(l) & 4u)
		return;
	UNROLL
	for (j = 0; j < 2; j++) {
		if (f.code == DECODE_E2M1)
			g_local_copy64(
				l->ring + place + j * half,
				cache + (uint64_t)at[2 * octet + j] * 16 +
					decode_piece_byte(f, i) +
					decode_lane(l) % 2 * 8,
				at[2 * octet + j] < DECODE_NO_ROW);
		else
			g_local_copy128(
				l->ring + place + j * half,
				cache + (uint64_t)at[2 * octet + j] * 16 +
					decode_piece_byte(f, i),
				at[2 * octet + j] < DECODE_NO_ROW);
	}
}

/* Asks for the rope part of a tile's rows, which lie at `at`. */
FN void
decode_load_rope(const PRIVATE decode_loader *l, uint32_t is_extra,
		 GLOBAL const uint8_t *cache, const PRIVATE uint32_t *at,
		 uint32_t tile)
{
	const decode_format f = decode_format_of(l, is_extra);
	LOCAL uint8_t *panel = l->mem->keys[tile] +
			       decode_first_row(l) / 8 * DECODE_OCTET_BYTES +
			       8 * DECODE_PANEL_BYTES;
	const uint32_t lane = decode_lane(l);
	uint32_t k;

	UNROLL
	for (k = 0; k < decode_rows_of(l) / 4; k++) {
		const uint32_t row = lane / 8 + k % 2 * 4;

		g_local_copy128(panel + k / 2 * DECODE_OCTET_BYTES + row * 128 +
					((lane % 8 ^ row) << 4),
				cache + (uint64_t)at[k] * 16 + f.rope_byte,
				at[k] < DECODE_NO_ROW);
	}
}

/* ---- From the ring into panels ----------------------------------------- */

/* Reads unit u of a tile, which must have come, and its scales. */
FN void
decode_read(const PRIVATE decode_loader *l, uint32_t is_extra, uint32_t tile,
	    uint32_t u, uint32_t place, PRIVATE decode_unit *to)
{
	const decode_format f = decode_format_of(l, is_extra);
	const uint32_t octets = decode_rows_of(l) / 8;
	const uint32_t i = u / octets, octet = u % octets;
	const uint32_t dim = decode_panel_dim(f, decode_piece_panel(f, i));
	const uint32_t stride = decode_scales_stride(l);
	const uint32_t half = decode_unit_bytes(l) / 2;
	LOCAL const uint8_t *scales =
		(is_extra ? l->extra_scales : l->scales) +
		(tile * DECODE_WARP_ROWS + 8 * octet) * stride +
		decode_scale_byte(f, dim / f.group);
	uint32_t j;

	UNROLL
	for (j = 0; j < 2; j++) {
		LOCAL const uint8_t *scale = scales + 4 * j * stride;

		if (f.code == DECODE_E2M1)
			g_local_load64(l->ring + place + j * half, to->x[j]);
		else
			g_local_load128(l->ring + place + j * half, to->x[j]);
		if ((i == 4 && !f.bf16_tail) || decode_piece_is_tail(f, i))
			continue;
		to->scale[j] = f.scale == DECODE_SCALE_F32
				       ? *(LOCAL const uint32_t *)scale
				       : *scale;
	}
}

/* Where the lane's codes of the first four rows go, counted from the first
 * panel of a piece. Lanes 4 .. 7 of a row write to the next panel. In odd
 * panels neighbouring 16-byte pieces change places, so that the stores of eight
 * lanes use all banks. The codes of the row 4 rows on go to this ^
 * DECODE_FOUR_ROWS. */
FN uint32_t
decode_store_at(uint32_t lane)
{
	const uint32_t row = lane / 8, odd = lane / 4 % 2;

	return odd * DECODE_PANEL_BYTES + row * 128 +
	       (((2 * (lane % 4) + odd) ^ row) << 4);
}

enum { DECODE_FOUR_ROWS = 512 | 64 };

/* Converts unit u, of rows of format f, into the panels of a tile. Returns
 * whether the lane has values that f16 does not hold. */
FN uint32_t
decode_convert(const PRIVATE decode_loader *l, uint32_t is_extra, uint32_t tile,
	       uint32_t u, const PRIVATE decode_unit *from)
{
	const decode_format f = decode_format_of(l, is_extra);
	const uint32_t octets = decode_rows_of(l) / 8;
	const uint32_t i = u / octets;
	const uint32_t octet = decode_first_row(l) / 8 + u % octets;
	LOCAL uint8_t *keys = l->mem->keys[tile] + octet * DECODE_OCTET_BYTES;
	LOCAL uint8_t *panel =
		keys + decode_piece_panel(f, i) * DECODE_PANEL_BYTES;
	uint32_t j, wide = 0;

	if (i == 4 && !f.bf16_tail && !f.rope_byte)
		return 0;
	UNROLL
	for (j = 0; j < 2; j++) {
		const PRIVATE uint32_t *x = from->x[j];
		const uint32_t lane = decode_lane(l) % 8;
		const uint32_t row = decode_lane(l) / 8 + 4 * j;

		if (i == 4 && !f.bf16_tail) {
			LOCAL uint8_t *to =
				panel + row * 128 + ((lane ^ row) << 4);

			if (f.code == DECODE_E2M1)
				decode_store_rope(x, to);
			else
				g_local_store128(to, x);
			continue;
		}
		if (decode_piece_is_tail(f, i)) {
			decode_store_bf16(x, panel + row * 128 +
						     ((lane ^ 1u ^ row) << 4));
			wide |= decode_bf16_wide(x);
			continue;
		}
		if (f.bf16_tail && i == 1 && lane >= 4)
			continue;
		decode_store_codes(f, x, from->scale[j], panel,
				   l->store ^ j * DECODE_FOUR_ROWS);
	}
	return wide;
}

/* Whether f16 does not hold some row, by the rows' scales in shared memory: one
 * lane a row. As bits, NaN and negative scales are larger than others. */
FN uint32_t
decode_scales_wide(const PRIVATE decode_loader *l, decode_format f,
		   uint32_t tile)
{
	const uint32_t row = decode_lane(l) % decode_rows_of(l);
	const uint32_t room = decode_scale_room(f);
	LOCAL const uint8_t *from = decode_scales_of(l, tile, row);
	uint32_t x[8], most = 0, i;

	g_local_load128(from, x);
	if (f.code == DECODE_E2M1)
		g_local_load128(from + 16, x + 4);
	if (f.scale == DECODE_SCALE_F32) {
		UNROLL
		for (i = 0; i < 4; i++)
			most = x[i] > most ? x[i] : most;
		return most >= (127 + room) << 23 ||
		       (most && most < 104u << 23);
	}
	UNROLL
	for (i = 0; i < decode_groups(f); i++) {
		const uint32_t byte = x[i / 4] >> 8 * (i % 4) & 0xffu;

		most = byte > most ? byte : most;
	}
	if (f.scale == DECODE_SCALE_UE8M0)
		return most > 127 + room || (most && most < 104);
	return most > (7 + room) << 3; /* none is too small */
}

/* ---- Tiles ------------------------------------------------------------- */

/* The barrier of a tile that tells whether the peer has received this block's
 * rows. In a cluster a warp has only 8 rows, so the scales of 8 more have free
 * places, and the first warp's are used. The wait is needed because the source of
 * the copy is overwritten: V3.2's rope part by P, values by results. */
FN LOCAL g_mbarrier *
decode_received(LOCAL decode_memory *mem, uint32_t tile)
{
	return (LOCAL g_mbarrier *)mem->rings[0]
		.scales[tile][DECODE_WARP_ROWS / 2];
}

/* Notes which of the warp's rows are keys. */
FN void
decode_note_rows(const PRIVATE decode_loader *l, uint32_t tile, uint32_t keys,
		 uint32_t wide)
{
	const uint32_t octets = decode_rows_of(l) / 8;
	const uint32_t first = decode_first_row(l) / 8;

	if (decode_lane(l) < octets) {
		LOCAL decode_note *note =
			l->mem->notes[tile] + first + decode_lane(l);

		note->keys = keys >> 8 * decode_lane(l) & 0xffu;
		note->wide = wide;
	}
}

/* Gives half of a tile on: to this block, and to the peer. */
FN void
decode_give(const PRIVATE decode_loader *l, uint32_t tile, uint32_t right)
{
	const uint32_t octet = decode_first_row(l) / 8;
	const uint32_t rope = right && l->format.rope_byte;
	const uint32_t bytes = (4 + rope) * DECODE_PANEL_BYTES;
	LOCAL g_mbarrier *full = &l->mem->full[tile][right];
	LOCAL uint8_t *keys = l->mem->keys[tile] + octet * DECODE_OCTET_BYTES +
			      4 * right * DECODE_PANEL_BYTES;

	g_debug_sleep();
	if (l->cluster == 2)
		g_fence_async(); /* otherwise the multiplying warps do */
	g_subgroup_barrier();
	if (decode_lane(l))
		return;
	if (l->cluster == 1) {
		g_mbarrier_arrive(full);
		return;
	}
	g_peer_copy(keys, keys, bytes, full);
	if (!right)
		g_peer_copy(&l->mem->notes[tile][octet],
			    &l->mem->notes[tile][octet], sizeof(decode_note),
			    full);
	/* The bytes that the peer's warps copy here. */
	if (l->warp == 0)
		g_mbarrier_arrive_expect(
			full,
			DECODE_WARPS *
				(bytes +
				 (right ? 0 : (uint32_t)sizeof(decode_note))));
	else
		g_mbarrier_arrive(full);
}

/* What is known of a tile before its rows are converted. */
typedef struct decode_known {
	uint32_t keys; /* of the warp's rows */
	uint32_t none; /* there is no tile: no work is left */
	uint32_t wide;
} decode_known;

/* What a lane knows of the tiles to come. */
typedef struct decode_ahead {
	GLOBAL const uint8_t *cache; /* of the tile whose units are asked for */
	uint32_t at[4];              /* and its rows, */
	uint32_t is_extra;           /* of the second list's format */
	decode_found found;          /* its row of the next tile */
	int32_t slot;                /* of the tile after that, */
	decode_tile tile;            /* which is this tile */
	uint32_t run;                /* of run `run` */
} decode_ahead;

/* Goes on to tile m, whose rows are found: its units are asked for next. */
FN void
decode_turn(const PRIVATE decode_loader *l, uint32_t m, PRIVATE decode_ahead *w,
	    PRIVATE decode_known *known)
{
	w->cache = decode_cache(l, w->found.bits);
	w->is_extra = decode_is_extra(l, w->found.bits);
	decode_rows_at(l, &w->found, w->at);
	decode_load_scales(l, &w->found, m % 2);
	known->keys = w->found.keys;
	known->none = w->found.bits & DECODE_NONE;
}

/* If all slots of a run were asked for, waits for the next run. */
FN void
decode_need_run(const PRIVATE decode_loader *l, const PRIVATE decode_ahead *w)
{
	LOCAL const decode_run *run = decode_run_of(l->mem->runs, w->tile);

	if (!(run->bits & DECODE_NONE) &&
	    decode_tile_is_last(run->count, w->tile))
		decode_await_run(l, w->run + 1);
}

/* Whether decode_need_run is called before a tile, and not while the tile is
 * converted. The later call takes registers, which only the loader of V3.2
 * without a cluster lacks. The early call is slow with two runs a token: a tile
 * of V4 took 6.0 us and not 3.6. */
FN uint32_t
decode_needs_early(const PRIVATE decode_loader *l)
{
	return l->format.lists == 1 && l->cluster == 1;
}

/* Finds the rows of the next tile, and asks for the slots of the tile after it.
 */
FN void
decode_find_next(const PRIVATE decode_loader *l, PRIVATE decode_ahead *w)
{
	LOCAL const decode_run *run = decode_run_of(l->mem->runs, w->tile);

	decode_find(l, w->tile, w->slot, &w->found);
	if (run->bits & DECODE_NONE)
		return;
	if (decode_tile_is_last(run->count, w->tile))
		w->tile = ++w->run % DECODE_RUNS;
	else
		w->tile += DECODE_RUNS;
	w->slot = decode_ask(l, w->tile);
}

/* Reads a tile's first unit, and finds whether f16 holds its rows. */
FN void
decode_read_first(const PRIVATE decode_loader *l, uint32_t is_extra,
		  uint32_t tile, uint32_t place, PRIVATE decode_unit *to,
		  PRIVATE decode_known *known)
{
	g_subgroup_barrier(); /* other lanes asked for scales, too */
	decode_read(l, is_extra, tile, 0, place, to);
	/* A loop each, so that its index is a constant. */
	known->wide = is_extra ? decode_scales_wide(l, l->extra, tile)
			       : decode_scales_wide(l, l->format, tile);
}

/* Before the first tile: finds its rows and asks for all units but the last. */
FN void
decode_load_first(const PRIVATE decode_loader *l, PRIVATE decode_ahead *w,
		  PRIVATE decode_known *known)
{
	uint32_t i, u;

	/* Begins as if behind the last tile of a run without entries. */
	w->run = (uint32_t)-1;
	w->tile = DECODE_RUNS - 1;
	w->slot = -1;
	NO_UNROLL
	for (i = 0; i < 3; i++) {
		decode_need_run(l, w);
		if (i == 0 && l->warp == 0)
			g_named_arrive(DECODE_BEGAN, DECODE_BEGAN_THREADS);
		decode_find_next(l, w);
		if (i != 1)
			continue;
		decode_turn(l, 0, w, known);
		UNROLL
		for (u = 0; u < decode_units(l); u++) {
			decode_load(l, w->is_extra, w->cache, w->at, u,
				    u * decode_unit_bytes(l));
			g_local_copies_commit();
		}
	}
}

/* The loader's warps, until there is no work left. Unit u is read while unit u
 * - 1 is converted; then another unit is asked for in its place. */
FN void
decode_load_all(const PRIVATE decode_loader *l)
{
	const uint32_t octets = decode_rows_of(l) / 8;
	const uint32_t units = decode_pieces(l) * octets;
	const uint32_t left = decode_left_pieces(l->format) * octets;
	const uint32_t ring = decode_units(l);
	LOCAL decode_memory *mem = l->mem;
	uint32_t place = 0, m, u;
	decode_ahead ahead;
	decode_unit unit[2];
	decode_known known = {0, 0, 0};

	for (m = 0;; m++) {
		const uint32_t tile = m & 1u, parity = m / 2 & 1u;
		uint32_t is_extra, keys, wide;

		if (m == 0) {
			decode_load_first(l, &ahead, &known);
			/* The first runs' barriers are reused from here on.
			 * This sync makes sure that no warp still waits for
			 * them. */
			g_named_sync(DECODE_LOADERS, DECODE_WARPS * 32);
			g_local_copies_wait_but(ring - 1);
			decode_read_first(l, ahead.is_extra, 0, 0, unit,
					  &known);
			decode_load(l, ahead.is_extra, ahead.cache, ahead.at,
				    ring, 0);
			g_local_copies_commit();
			place = decode_unit_bytes(l);
		}
		if (known.none)
			break;
		if (decode_needs_early(l))
			decode_need_run(l, &ahead);
		is_extra = ahead.is_extra;
		keys = known.keys;
		wide = known.wide;
		UNROLL
		for (u = 0; u < units; u++) {
			g_local_copies_wait_but(ring - 1);
			if (u == units - 1)
				decode_read_first(l, ahead.is_extra, tile ^ 1u,
						  place, &unit[units & 1u],
						  &known);
			else
				decode_read(l, is_extra, tile, u + 1, place,
					    &unit[(u + 1) & 1u]);
			if (decode_rope_direct(l) && u == left - 1) {
				/* Both warpgroups read the notes, and P, which
				 * lay there. The copies belong to the group of
				 * the unit asked for below, which has come by
				 * the last unit. `ahead` has this tile's rows
				 * until the turn. */
				g_mbarrier_wait(&mem->free[tile][1],
						parity ^ 1u);
				decode_load_rope(l, is_extra, ahead.cache,
						 ahead.at, tile);
			}
			if (u == units - ring - 1) {
				decode_turn(l, m + 1, &ahead, &known);
				if (!decode_needs_early(l))
					decode_need_run(l, &ahead);
				decode_find_next(l, &ahead);
			}
			decode_load(l, ahead.is_extra, ahead.cache, ahead.at,
				    (u + ring + 1) % units, place);
			g_local_copies_commit();
			place = decode_next_place(l, place);
			if (u == 0)
				g_mbarrier_wait(&mem->free[tile][0],
						parity ^ 1u);
			/* Both warpgroups read the notes. */
			if (!decode_rope_direct(l) && u == left - 1)
				g_mbarrier_wait(&mem->free[tile][1],
						parity ^ 1u);
			wide |= decode_convert(l, is_extra, tile, u,
					       &unit[u & 1u]);
			if (u == left - 1) {
				decode_note_rows(l, tile, keys,
						 g_ballot(wide) != 0);
				decode_give(l, tile, 0);
			}
			if (u == units - 1)
				decode_give(l, tile, 1);
		}
		if (units & 1u)
			unit[0] = unit[1];
	}
	g_local_copies_wait();
}

#endif
#endif
