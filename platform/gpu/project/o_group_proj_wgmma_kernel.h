/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj of e4m3 by wgmma, as f16. Tokens are copied as they are; the
 * threads that multiply convert them in registers. Columns are loaded to
 * registers, and stored in panels as f16. The order of k is free if both
 * operands have the same, so 16 bytes of a row are a step:
 * o_e4m3_store_columns has the order.
 *
 * The hard idea: a fence of shared memory waits for all loads and copies that
 * its thread has under way. So those that fetch are sets, which take parts in
 * turn. A set asks for all of its part, waits, stores, fences; others load
 * meanwhile.
 *
 * With 64 columns a warp has registers for the sums of two parts. So within a
 * tile half of a part's products are under way while it does other work.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_WGMMA_KERNEL_H

#include "spmla/platform/gpu/project/o_proj_wgmma_device.h"

#define SPMLA_K_o_group_proj_wgmma(P, S)   SPMLA_K_o_group_proj(P, S)
#define SPMLA_K_o_group_proj_wgmma64(P, S) SPMLA_K_o_group_proj(P, S)
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_wgmma_scalars;
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_wgmma64_scalars;

/* Sets of threads that fetch. A set has a thread for each column of a tile, and
 * one stage: the panels and the scales of a part. */
#define O_E4M3_SETS(columns) (O_WGMMA_BACK / (columns))

/* Data of a block in shared memory, in this order, for tiles of that many
 * columns.
 *
 *   panels   [sets][2] O_E4M3_PANEL, columns as f16
 *   tokens   [2 * sets][O_WGMMA_TOKENS][O_WGMMA_ROW]
 *   scales   f32 [sets][O_WGMMA_TOKENS], tokens' times the columns'
 */
#define O_E4M3_PANEL(columns) (2 * 64 * (columns)) /* bytes */
#define O_E4M3_TOKENS_AT(columns)   \
	(O_WGMMA_DATA_AT(columns) + \
	 O_E4M3_SETS(columns) * 2 * O_E4M3_PANEL(columns))
#define O_E4M3_SCALES_AT(columns)    \
	(O_E4M3_TOKENS_AT(columns) + \
	 O_E4M3_SETS(columns) * 2 * O_WGMMA_TOKENS * O_WGMMA_ROW)
#define O_E4M3_SHARED(columns) \
	(O_E4M3_SCALES_AT(columns) + O_E4M3_SETS(columns) * 4 * O_WGMMA_TOKENS)

enum {
	O_E4M3_BYTES = O_E4M3_SHARED(O_WGMMA_COLUMNS),
	O_E4M3_FEW_BYTES = O_E4M3_SHARED(O_WGMMA_FEW)
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum {
	O_E4M3_MOST_SETS = 4,
	O_E4M3_STEPS = O_PROJ_PART / 16,
	/* Named barriers: mbarriers are there, for those that multiply and for
	 * each set; and each set but the last has asked for its first part. */
	O_E4M3_READY = 1,
	O_E4M3_SET_READY = 2,
	O_E4M3_ASKED = O_E4M3_SET_READY + O_E4M3_MOST_SETS
};
SPMLA_STATIC_ASSERT(O_E4M3_SETS(O_WGMMA_FEW) == O_E4M3_MOST_SETS,
		    "no kernel has more sets");

typedef struct o_e4m3_barriers {
	/* Of a stage: a part is there; products have read it. */
	g_mbarrier made[O_E4M3_MOST_SETS], used[O_E4M3_MOST_SETS];
} o_e4m3_barriers;
SPMLA_STATIC_ASSERT(sizeof(o_e4m3_barriers) <= O_WGMMA_BARRIERS,
		    "barriers have room");

/* Called by those that multiply. Sets wait when they have asked for data. */
FN void
o_e4m3_barriers_init(uint32_t columns, LOCAL o_e4m3_barriers *b)
{
	const uint32_t item = g_item();
	uint32_t i;

	if (item < O_E4M3_SETS(columns)) {
		g_mbarrier_init(&b->made[item], columns / 32);
		g_mbarrier_init(&b->used[item], O_WGMMA_FRONT / 32);
		g_mbarriers_publish();
	}
	g_named_sync(O_E4M3_READY, O_WGMMA_FRONT);
	UNROLL
	for (i = 0; i < O_E4M3_SETS(columns); i++)
		g_named_arrive(O_E4M3_SET_READY + i, O_WGMMA_FRONT + columns);
}

/* Where part `at` of the block's tiles is: columns as f16, tokens, scales. */
FN LOCAL uint8_t *
o_e4m3_panels(uint32_t columns, LOCAL uint8_t *local, uint32_t at)
{
	return local + O_WGMMA_DATA_AT(columns) +
	       at % O_E4M3_SETS(columns) * 2 * O_E4M3_PANEL(columns);
}

FN LOCAL uint8_t *
o_e4m3_tokens(uint32_t columns, LOCAL uint8_t *local, uint32_t at)
{
	return local + O_E4M3_TOKENS_AT(columns) +
	       at % (2 * O_E4M3_SETS(columns)) * O_WGMMA_TOKENS * O_WGMMA_ROW;
}

FN LOCAL float *
o_e4m3_scales(uint32_t columns, LOCAL uint8_t *local, uint32_t at)
{
	return (LOCAL float *)(local + O_E4M3_SCALES_AT(columns)) +
	       at % O_E4M3_SETS(columns) * O_WGMMA_TOKENS;
}

/* ---- those that fetch ---- */

/* What a set fetches of a tile. A thread has piece item % 8, of 16 bytes, of
 * rows that are columns / 8 apart, and the scales of tokens that are `columns`
 * apart. */
typedef struct o_e4m3_share {
	GLOBAL const uint8_t *o, *w; /* the thread's first rows */
	/* Scales of the tile's first part: of the thread's first token, and of
	 * the columns. */
	GLOBAL const uint32_t *o_scale, *w_scale;
	uint32_t second; /* from the first token's scale to the second's */
	uint32_t tokens; /* from the tile's first one to the call's last */
} o_e4m3_share;

/* A thread's first row of the columns. Of 8 threads four have the first four
 * pieces of a row, and four the last four of the row beside it. So they store
 * to different banks. */
FN uint32_t
o_e4m3_row(uint32_t item)
{
	return item / 8 ^ item % 8 / 4;
}

/* Finds the columns of the tile. */
FN void
o_e4m3_columns_of(const PRIVATE o_proj_params *p, uint32_t columns,
		  uint32_t unit, uint32_t item, PRIVATE o_e4m3_share *share)
{
	const o_tile tile = o_tile_of(p, O_WGMMA_TOKENS, columns, unit);

	share->w =
		p->w + (int64_t)tile.group * p->s.w_group_stride +
		(int64_t)(tile.column + o_e4m3_row(item)) * p->s.w_row_stride +
		item % 8 * 16;
}

/* Finds the tokens of the tile, and all scales. A token behind the last one has
 * another token's scale; its sums are not written. A set calls it once it has
 * asked for the tile's first columns, so that these come sooner. */
FN void
o_e4m3_tokens_of(const PRIVATE o_proj_params *p, uint32_t columns,
		 uint32_t unit, uint32_t item, PRIVATE o_e4m3_share *share)
{
	const o_tile tile = o_tile_of(p, O_WGMMA_TOKENS, columns, unit);

	share->o = p->o +
		   (int64_t)(tile.first + item / 8) * p->s.o_token_stride +
		   (int64_t)tile.group * p->s.o_group_stride + item % 8 * 16;
	share->tokens = p->s.tokens - tile.first;
	share->o_scale = p->o_scales +
			 (int64_t)tile.group * p->s.o_scale_group_stride +
			 tile.first + (item < share->tokens ? item : 0);
	share->second = item + columns < share->tokens ? columns : 0;
	share->w_scale =
		(GLOBAL const uint32_t *)p->w_scales +
		(int64_t)tile.group * p->s.w_scale_group_stride +
		(int64_t)(tile.column / O_PROJ_PART) * p->s.w_scale_row_stride;
}

/* Starts the copies of a part's tokens. Tokens behind the last are zeros. */
FN void
o_e4m3_copy_tokens(const PRIVATE o_proj_params *p, uint32_t columns,
		   const PRIVATE o_e4m3_share *share, uint32_t item,
		   uint32_t part, LOCAL uint8_t *tokens)
{
	const uint32_t step = columns / 8, row = item / 8;
	GLOBAL const uint8_t *from = share->o + part * O_PROJ_PART;
	LOCAL uint8_t *to =
		tokens + row * O_WGMMA_ROW + (item % 8 ^ row % 8) * 16;
	uint32_t t, i;

	if (share->tokens < O_WGMMA_TOKENS) {
		NO_UNROLL
		for (t = row; t < O_WGMMA_TOKENS; t += step) {
			g_local_copy128(to, from, t < share->tokens);
			from += step * p->s.o_token_stride;
			to += step * O_WGMMA_ROW;
		}
		return;
	}
	UNROLL
	for (i = 0; i < O_WGMMA_TOKENS / step; i++) {
		g_local_copy128(to + i * step * O_WGMMA_ROW, from, 1);
		from += step * p->s.o_token_stride;
	}
}

/* Loads a thread's pieces of a part of the columns. g_load128 would not do: the
 * compiler may move it before o_e4m3_may_ask. */
FN void
o_e4m3_load_columns(const PRIVATE o_proj_params *p, uint32_t columns,
		    const PRIVATE o_e4m3_share *share, uint32_t part,
		    uint32_t raw[8][4])
{
	GLOBAL const uint8_t *from = share->w + part * O_PROJ_PART;
	uint32_t i;

	UNROLL
	for (i = 0; i < 8; i++) {
		g_load128_if(1, from, raw[i]);
		from += columns / 8 * p->s.w_row_stride;
	}
}

/* Stores them as f16 in panels. A piece is a step's 16 values. Lane t of the
 * four that have a token's row has word t of a piece. It multiplies the word's
 * first two values as k = 2 t and 2 t + 1, and the others as k = 2 t + 8 and
 * 2 t + 9, so they are stored there. */
FN void
o_e4m3_store_columns(uint32_t columns, uint32_t raw[8][4], uint32_t item,
		     LOCAL uint8_t *panels)
{
	LOCAL uint16_t *panel =
		(LOCAL uint16_t *)(panels +
				   item % 8 / 4 * O_E4M3_PANEL(columns));
	uint32_t i, half, t;

	UNROLL
	for (i = 0; i < 8; i++) {
		uint32_t x[4][2];

		UNROLL
		for (t = 0; t < 4; t++)
			g_e4m3x4_to_f16x4(raw[i][t], x[t]);
		UNROLL
		for (half = 0; half < 2; half++) {
			const uint32_t words[4] = {x[0][half], x[1][half],
						   x[2][half], x[3][half]};

			g_local_store128(
				panel +
					g_panel_at(o_e4m3_row(item),
						   item % 4 * 16 + 8 * half) +
					i * (columns / 8) * G_PANEL,
				words);
		}
	}
}

/* A set asks for its first part once the set before has asked. Otherwise all
 * would wait for the data of all. */
FN void
o_e4m3_may_ask(uint32_t columns, uint32_t set)
{
	if (set > 0)
		g_named_sync(O_E4M3_ASKED + set - 1, 2 * columns);
}

/* Also waits until mbarriers are there. */
FN void
o_e4m3_has_asked(uint32_t columns, uint32_t set)
{
	if (set + 1 < O_E4M3_SETS(columns))
		g_named_arrive(O_E4M3_ASKED + set, 2 * columns);
	g_named_sync(O_E4M3_SET_READY + set, O_WGMMA_FRONT + columns);
}

/* Where a set is: a part of the tile `unit`. */
typedef struct o_e4m3_place {
	uint32_t unit, part, is_new; /* the set's first part of the tile */
} o_e4m3_place;

/* Moves on by that many parts. */
FN void
o_e4m3_move(const PRIVATE o_proj_params *p, uint32_t parts,
	    PRIVATE o_e4m3_place *place)
{
	place->part += parts;
	place->is_new = 0;
	NO_UNROLL
	for (; place->part >= p->s.inner / O_PROJ_PART; place->is_new = 1) {
		place->part -= p->s.inner / O_PROJ_PART;
		place->unit += g_blocks();
	}
}

/* Fetches the parts of the block's tiles that are the set's. It asks for a
 * part's columns behind the fence of its part before, which would wait for
 * them. A part's tokens take the place of those of two rounds before. The set
 * has waited for products with them before it stored the columns of the last
 * round. */
FN void
o_e4m3_fetch(const PRIVATE o_proj_params *p, uint32_t columns,
	     LOCAL o_e4m3_barriers *b, LOCAL uint8_t *local)
{
	const uint32_t sets = O_E4M3_SETS(columns);
	const uint32_t each = O_WGMMA_TOKENS / columns; /* scales */
	const uint32_t units = (uint32_t)p->s.tiles;
	uint32_t item = g_item() - O_WGMMA_FRONT;
	uint32_t raw[8][4], at, i;
	o_e4m3_place place = {g_block(), 0, 1};
	o_e4m3_share share = {0, 0, 0, 0, 0, 0};

	g_wgmma_defer(&item); /* or it is read anew each time */
	at = item / columns;
	item %= columns;
	o_e4m3_move(p, at, &place);
	place.is_new = 1;
	/* Before the wait, so that addresses are there. */
	o_e4m3_columns_of(p, columns, place.unit, item, &share);
	o_e4m3_may_ask(columns, at);
	if (place.unit >= units) { /* others count on it all the same */
		o_e4m3_has_asked(columns, at);
		return;
	}
	o_e4m3_load_columns(p, columns, &share, place.part, raw);
	/* The loop ends in its middle. With the test at its top, ptxas has too
	 * few registers for addresses. */
	NO_UNROLL
	for (;; at += sets) {
		LOCAL float *scales = o_e4m3_scales(columns, local, at);
		GLOBAL const uint32_t *row;
		uint32_t word[2], w_word;

		g_wgmma_defer(&item); /* or what follows from it is kept */
		if (place.is_new)
			o_e4m3_tokens_of(p, columns, place.unit, item, &share);
		row = share.o_scale +
		      (int64_t)(p->s.packed ? place.part / 4 : place.part) *
			      p->s.o_scale_stride;
		UNROLL
		for (i = 0; i < each; i++)
			word[i] = row[i * share.second];
		w_word = share.w_scale[place.part];
		o_e4m3_copy_tokens(p, columns, &share, item, place.part,
				   o_e4m3_tokens(columns, local, at));
		if (at < sets)
			o_e4m3_has_asked(columns, at);
		o_wgmma_wait_last(b->used, at, sets);
		UNROLL
		for (i = 0; i < each; i++)
			scales[item + i * columns] =
				o_ring_scale_of(p, word[i], w_word, place.part);
		o_e4m3_store_columns(columns, raw, item,
				     o_e4m3_panels(columns, local, at));
		g_local_copies_wait();
		g_fence_async(); /* panels */
		o_wgmma_arrive(&b->made[at % sets]);
		o_e4m3_move(p, sets, &place);
		if (place.unit >= units)
			return;
		if (place.is_new)
			o_e4m3_columns_of(p, columns, place.unit, item, &share);
		o_e4m3_load_columns(p, columns, &share, place.part, raw);
	}
}

/* ---- those that multiply ---- */

/* What a warp has of a tile in registers. With 64 columns parts take d[0] and
 * d[1], and scale[0] and scale[1], in turn; with 128 all take the first. */
typedef struct o_e4m3_work {
	uint32_t raw[4][4]; /* tokens of a part */
	uint32_t a[O_E4M3_STEPS][4];
	float d[2][O_WGMMA_SUMS], total[O_WGMMA_SUMS];
	float scale[2][2]; /* of a lane's two tokens */
} o_e4m3_work;

/* Loads what a lane needs of the warp's tokens of part `at`, once it is there,
 * if it is before `end`: in word i of raw[s] a word of piece 2 s + i / 2, of
 * row g or, if i is odd, g + 8, where g is lane / 4. */
FN void
o_e4m3_load(uint32_t columns, LOCAL o_e4m3_barriers *b, LOCAL uint8_t *local,
	    uint32_t item, uint32_t at, uint32_t end, PRIVATE o_e4m3_work *w)
{
	const uint32_t row = item / 32 * 16 + item % 16;
	LOCAL const uint8_t *from =
		o_e4m3_tokens(columns, local, at) + row * O_WGMMA_ROW;
	uint32_t s;

	if (at >= end)
		return;
	o_wgmma_wait(b->made, at, O_E4M3_SETS(columns));
	UNROLL
	for (s = 0; s < 4; s++)
		g_load_matrices(
			(LOCAL const uint16_t *)(from +
						 ((2 * s + item % 32 / 16) ^
						  row % 8) *
							 16),
			w->raw[s]);
}

/* Converts half of them to the fragments of A of four steps. */
FN void
o_e4m3_convert(uint32_t half, PRIVATE o_e4m3_work *w)
{
	uint32_t i;

	UNROLL
	for (i = 4 * half; i < 4 * half + 4; i++) {
		uint32_t x[2], y[2];

		g_e4m3x4_to_f16x4(w->raw[i / 2][i % 2 * 2], x);
		g_e4m3x4_to_f16x4(w->raw[i / 2][i % 2 * 2 + 1], y);
		w->a[i][0] = x[0];
		w->a[i][1] = y[0];
		w->a[i][2] = x[1];
		w->a[i][3] = y[1];
	}
}

/* Begins the products of half of part `at`: d[k] = A B with the first half,
 * d[k] += A B with the second. */
FN void
o_e4m3_begin(uint32_t columns, LOCAL uint8_t *local, uint32_t at, uint32_t half,
	     uint32_t k, PRIVATE o_e4m3_work *w)
{
	const g_panel b = g_panel_of(o_e4m3_panels(columns, local, at) +
					     half * O_E4M3_PANEL(columns),
				     G_GROUP_BYTES, 0);
	uint32_t i;

	if (half == 0)
		g_wgmma_hold_all(w->d[k], columns / 2);
	g_wgmma_begin();
	UNROLL
	for (i = 0; i < 4; i++) {
		PRIVATE uint32_t *a = w->a[4 * half + i];
		const g_panel b_i = g_panel_step(b, i);

		if (columns == O_WGMMA_FEW) {
			if (half == 0 && i == 0)
				g_wgmma_f16_n64_registers_first(w->d[k], a,
								b_i);
			else
				g_wgmma_f16_n64_registers(w->d[k], a, b_i);
		} else {
			if (half == 0 && i == 0)
				g_wgmma_f16_n128_registers_first(w->d[k], a,
								 b_i);
			else
				g_wgmma_f16_n128_registers(w->d[k], a, b_i);
		}
	}
	g_wgmma_commit();
}

/* Loads the scales of part `at`. */
FN void
o_e4m3_load_scales(uint32_t columns, LOCAL uint8_t *local, uint32_t item,
		   uint32_t at, uint32_t k, PRIVATE o_e4m3_work *w)
{
	LOCAL const float *scales = o_e4m3_scales(columns, local, at) +
				    item / 32 * 16 + item % 32 / 4;

	w->scale[k][0] = scales[0];
	w->scale[k][1] = scales[8];
}

/* Adds half of d[k], whose products are over, times scale[k], to total. The
 * call for half 0 comes first: it holds all of d[k]. */
FN void
o_e4m3_add_half(uint32_t columns, uint32_t half, uint32_t k,
		PRIVATE o_e4m3_work *w)
{
	uint32_t i;

	if (half == 0)
		g_wgmma_hold_all(w->d[k], columns / 2);
	UNROLL
	for (i = half * columns / 4; i < (half + 1) * columns / 4; i++)
		w->total[i] =
			g_fma(w->d[k][i], w->scale[k][i / 2 % 2], w->total[i]);
}

FN void
o_e4m3_add(uint32_t columns, uint32_t k, PRIVATE o_e4m3_work *w)
{
	o_e4m3_add_half(columns, 0, k, w);
	o_e4m3_add_half(columns, 1, k, w);
}

/* Waits for all products. Those that fetch may then overwrite part `at`. */
FN void
o_e4m3_end(uint32_t columns, LOCAL o_e4m3_barriers *b, uint32_t at)
{
	g_wgmma_wait();
	o_wgmma_arrive(&b->used[at % O_E4M3_SETS(columns)]);
}

/* Multiplies the parts from `at` on, one after the other. */
FN void
o_e4m3_tile(uint32_t columns, LOCAL o_e4m3_barriers *b, LOCAL uint8_t *local,
	    uint32_t item, uint32_t at, uint32_t end, PRIVATE o_e4m3_work *w)
{
	o_e4m3_load(columns, b, local, item, at, end, w);
	NO_UNROLL
	for (; at < end; at++) {
		g_wgmma_defer(&item); /* or what follows from it is kept */
		o_e4m3_convert(0, w);
		o_e4m3_convert(1, w);
		o_e4m3_load_scales(columns, local, item, at, 0, w);
		o_e4m3_begin(columns, local, at, 0, 0, w);
		o_e4m3_begin(columns, local, at, 1, 0, w);
		o_e4m3_end(columns, b, at);
		o_e4m3_load(columns, b, local, item, at + 1, end, w);
		o_e4m3_add(columns, 0, w);
	}
}

/* Begins part `at`, in d[k], and ends the part before. While half of a part is
 * multiplied, the next half is converted. Half of the sums of the part before
 * are added ahead of the wait for the next part, half behind its loads. */
FN void
o_e4m3_step(uint32_t columns, LOCAL o_e4m3_barriers *b, LOCAL uint8_t *local,
	    uint32_t item, uint32_t at, uint32_t end, uint32_t k,
	    PRIVATE o_e4m3_work *w)
{
	g_wgmma_wait_but(1);
	o_e4m3_convert(0, w);
	o_e4m3_load_scales(columns, local, item, at, k, w);
	o_e4m3_begin(columns, local, at, 0, k, w);
	g_wgmma_wait_but(1);
	o_e4m3_convert(1, w);
	o_e4m3_begin(columns, local, at, 1, k, w);
	o_e4m3_add_half(columns, 0, k ^ 1, w);
	o_wgmma_arrive(&b->used[(at - 1) % O_E4M3_SETS(columns)]);
	o_e4m3_load(columns, b, local, item, at + 1, end, w);
	o_e4m3_add_half(columns, 1, k ^ 1, w);
}

/* Multiplies the parts from `at` on. Each begins before the one before has
 * ended. */
FN void
o_e4m3_few_tile(uint32_t columns, LOCAL o_e4m3_barriers *b,
		LOCAL uint8_t *local, uint32_t item, uint32_t at, uint32_t end,
		PRIVATE o_e4m3_work *w)
{
	o_e4m3_load(columns, b, local, item, at, end, w);
	o_e4m3_convert(0, w);
	o_e4m3_convert(1, w);
	o_e4m3_load_scales(columns, local, item, at, 0, w);
	o_e4m3_begin(columns, local, at, 0, 0, w);
	o_e4m3_begin(columns, local, at, 1, 0, w);
	o_e4m3_load(columns, b, local, item, at + 1, end, w);
	NO_UNROLL
	for (at++; at + 1 < end; at += 2) {
		o_e4m3_step(columns, b, local, item, at, end, 1, w);
		o_e4m3_step(columns, b, local, item, at + 1, end, 0, w);
	}
	if (at < end) {
		o_e4m3_step(columns, b, local, item, at, end, 1, w);
		o_e4m3_end(columns, b, at);
		o_e4m3_add(columns, 1, w);
	} else {
		o_e4m3_end(columns, b, at - 1);
		o_e4m3_add(columns, 0, w);
	}
}

/* Multiplies all tiles of the block. */
FN void
o_e4m3_multiply(const PRIVATE o_proj_params *p, uint32_t columns,
		LOCAL o_e4m3_barriers *b, LOCAL uint8_t *local)
{
	const uint32_t units = (uint32_t)p->s.tiles;
	const uint32_t parts = p->s.inner / O_PROJ_PART;
	uint32_t unit, i, at = 0, item = g_item();
	o_e4m3_work w;

	g_wgmma_defer(&item); /* or it is read anew each time */
	for (unit = g_block(); unit < units; unit += g_blocks(), at += parts) {
		/* Products set d, but g_wgmma_hold_all reads it first. */
		UNROLL
		for (i = 0; i < columns / 2; i++)
			w.total[i] = w.d[0][i] = w.d[1][i] = 0.0f;
		if (columns == O_WGMMA_FEW)
			o_e4m3_few_tile(columns, b, local, item, at, at + parts,
					&w);
		else
			o_e4m3_tile(columns, b, local, item, at, at + parts,
				    &w);
		o_wgmma_write(p, columns, unit, w.total, local);
	}
}

FN void
o_e4m3_all(const PRIVATE o_proj_params *p, uint32_t columns,
	   LOCAL uint8_t *local)
{
	LOCAL o_e4m3_barriers *b = (LOCAL o_e4m3_barriers *)local;

	if (g_item() < O_WGMMA_FRONT) {
		o_e4m3_barriers_init(columns, b);
		G_REGISTERS_UP(O_WGMMA_FRONT_REGISTERS);
		o_e4m3_multiply(p, columns, b, local);
	} else {
		G_REGISTERS_DOWN(O_WGMMA_BACK_REGISTERS);
		o_e4m3_fetch(p, columns, b, local);
	}
}

SPMLA_KERNEL_BLOCKS(o_group_proj_wgmma, 1)
void
spmla_k_o_group_proj_wgmma(SPMLA_KERNEL_ARGS(o_group_proj_wgmma))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	LOCAL_DYNAMIC(local, O_E4M3_BYTES);

	o_e4m3_all(&p, O_WGMMA_COLUMNS, local);
}

SPMLA_KERNEL_BLOCKS(o_group_proj_wgmma64, 1)
void
spmla_k_o_group_proj_wgmma64(SPMLA_KERNEL_ARGS(o_group_proj_wgmma64))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	LOCAL_DYNAMIC(local, O_E4M3_FEW_BYTES);

	o_e4m3_all(&p, O_WGMMA_FEW, local);
}

#endif
#endif
