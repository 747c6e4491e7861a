/* SPDX-License-Identifier: Apache-2.0
 *
 * The second launch of V4's prologue: a block a token, as a context of a
 * million tokens has 8192 entries of C128A. The hard idea is what a token is
 * that has no place for one of its compressed keys, or for its index logits:
 * its other keys and its states are written, as it has a context, but no
 * layer's length for it is above 0, so that all its results are empty. Behind
 * the tokens' blocks come two more where decode is done in parts: how those of
 * layers of ratio 4 and of 128 share the tokens. They count keys by context
 * alone, as many as there are or more.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_WINDOWS_H
#define SPMLA_PLATFORM_GPU_STEP_WINDOWS_H

#include "spmla/platform/gpu/decode_cut_gpu.h"
#include "spmla/platform/gpu/fault_gpu.h"

/* A group's table; pages are of compressed entries. */
#define SPMLA_P_GROUP(P, group)         \
	P(const int32_t, group##_table) \
	P(const int32_t, group##_cols)
#define SPMLA_S_GROUP(S, group)           \
	S(uint32_t, group##_columns)      \
	S(uint32_t, group##_stride)       \
	S(uint32_t, group##_pool_pages)   \
	S(uint32_t, group##_page_entries) \
	S(uint32_t, group##_has_cols)

#define SPMLA_K_step_windows(P, S)     \
	SPMLA_K_FAULT(P)               \
	P(const int32_t, token_row)    \
	P(const int32_t, positions)    \
	P(const int32_t, context_lens) \
	P(int32_t, compressed_lens)    \
	P(int64_t, c4a_slots)          \
	P(int64_t, index_slots)        \
	P(int64_t, c128a_slots)        \
	P(int32_t, swa_indices)        \
	P(int32_t, swa_lens)           \
	P(int32_t, c128a_indices)      \
	P(int32_t, c128a_lens)         \
	P(int32_t, c4a_metadata)       \
	P(int32_t, c4a_splits)         \
	P(int32_t, c128a_metadata)     \
	P(int32_t, c128a_splits)       \
	SPMLA_P_GROUP(P, swa)          \
	SPMLA_P_GROUP(P, c4a)          \
	SPMLA_P_GROUP(P, c128a)        \
	SPMLA_P_GROUP(P, index)        \
	SPMLA_S_GROUP(S, swa)          \
	SPMLA_S_GROUP(S, c4a)          \
	SPMLA_S_GROUP(S, c128a)        \
	SPMLA_S_GROUP(S, index)        \
	S(uint32_t, swa_ring)          \
	S(uint32_t, has_index)         \
	S(uint32_t, tokens)            \
	S(uint32_t, window)            \
	S(uint32_t, c128a_width)       \
	S(uint32_t, topk)              \
	S(uint32_t, parts)             \
	S(uint32_t, blocks)
SPMLA_KERNEL_SCALARS(step_windows)

enum { WINDOWS_CUTS = 2 }; /* blocks behind the tokens' */

#ifdef SPMLA_GPU_KERNELS

enum { WINDOWS_LOADS = 4 }; /* pages of a row that an item asks for at a time */

/* A group's table at one row. `known` is as it was loaded: where g_slot_row
 * makes one row and waits for that first, here the pages of five lists are
 * asked for together with it. */
typedef struct windows_group {
	GLOBAL const int32_t *pages;
	int32_t known; /* columns that are written */
	uint32_t columns, modulo, pool_pages, entries;
} windows_group;

FN windows_group
windows_group_of(GLOBAL const int32_t *table, GLOBAL const int32_t *cols,
		 uint32_t row, uint32_t columns, uint32_t stride,
		 uint32_t pool_pages, uint32_t entries, uint32_t has_cols,
		 uint32_t ring)
{
	windows_group g;

	g.pages = table + (uint64_t)row * stride;
	g.known = has_cols ? cols[row] : (int32_t)columns;
	g.columns = columns;
	g.modulo = ring ? columns : 0;
	g.pool_pages = pool_pages;
	g.entries = entries;
	return g;
}

/* The column of an entry. */
FN uint32_t
windows_col(const PRIVATE windows_group *g, uint32_t entry)
{
	const uint32_t col = entry / g->entries;

	return g->modulo ? col % g->modulo : col;
}

/* What the table has there, which may be no page: the load does not wait for
 * that of `known`. */
FN int32_t
windows_load(const PRIVATE windows_group *g, uint32_t entry)
{
	const uint32_t col = windows_col(g, entry);

	return col < g->columns ? g->pages[col] : -1;
}

/* The slot of an entry, of which windows_load gave `page`; -1: it has none. */
FN int64_t
windows_slot(const PRIVATE windows_group *g, uint32_t entry, int32_t page)
{
	if (g->known < 0 || windows_col(g, entry) >= (uint32_t)g->known ||
	    page < 0 || (uint32_t)page >= g->pool_pages)
		return -1;
	return (int64_t)page * g->entries + entry % g->entries;
}

/* The slot of the compressed key that ends with position pos, -1 if none does;
 * 0 in *seen if it has no page, which item 0 reports. */
FN int64_t
windows_key(const PRIVATE g_reporter *to, const PRIVATE windows_group *g,
	    uint32_t ratio, uint32_t row, uint32_t pos, int32_t page,
	    PRIVATE uint32_t *seen)
{
	int64_t slot;

	if ((pos + 1) % ratio != 0)
		return -1;
	slot = windows_slot(g, pos / ratio, page);
	if (slot < 0) {
		if (g_item() == 0)
			g_report(to, row, G_FAULT_PAGE);
		*seen = 0;
	}
	return slot;
}

/* Entry k of a row that begins with entry `start`: its slot, or -1, which the
 * first entry of the page reports. */
FN void
windows_put(const PRIVATE g_reporter *to, const PRIVATE windows_group *g,
	    uint32_t row, uint32_t start, uint32_t k, int32_t page,
	    GLOBAL int32_t *out)
{
	const int64_t slot = windows_slot(g, start + k, page);

	if (slot < 0 && (k == 0 || (start + k) % g->entries == 0))
		g_report(to, row, G_FAULT_PAGE);
	out[k] = (int32_t)slot;
}

#define GROUP(group, ring)                                                    \
	windows_group_of(group##_table, group##_cols, row, s.group##_columns, \
			 s.group##_stride, s.group##_pool_pages,              \
			 s.group##_page_entries, s.group##_has_cols, ring)

SPMLA_KERNEL_BLOCKS(step_windows, 4)
{
	LOCAL_ARRAY(decode_cut, cut, 1);
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	const uint32_t items = SPMLA_ITEMS_step_windows, item = g_item();
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	uint32_t t, first, i;

	for (t = g_block(); t < s.blocks; t += g_blocks()) {
		if (t >= s.tokens) {
			const uint32_t four = t == s.tokens;

			BARRIER(); /* the cut before is done */
			decode_cut_ends(context_lens, s.window,
					four ? s.topk : s.c128a_width,
					four ? SPMLA_COMPRESS_OVERLAP
					     : SPMLA_COMPRESS_MOST,
					s.tokens, items, cut, sums);
			BARRIER();
			decode_cut_block(s.tokens, s.parts,
					 four ? c4a_metadata : c128a_metadata,
					 four ? c4a_splits : c128a_splits,
					 items, cut);
			continue;
		}
		const uint32_t row = (uint32_t)token_row[t];
		const uint32_t pos = (uint32_t)positions[t];
		const uint32_t context = (uint32_t)context_lens[t];
		const int32_t logits = compressed_lens[t];
		const windows_group swa = GROUP(swa, s.swa_ring);
		const windows_group c4a = GROUP(c4a, 0);
		const windows_group c128a = GROUP(c128a, 0);
		const windows_group index = GROUP(index, 0);
		/* Lengths if nothing is wrong; loads are for them. */
		const uint32_t start =
			context > s.window ? context - s.window : 0;
		const uint32_t len = context - start;
		const uint32_t keys = context / SPMLA_COMPRESS_MOST;
		const uint32_t most = len > keys ? len : keys;
		GLOBAL int32_t *window = swa_indices + (uint64_t)t * s.window;
		GLOBAL int32_t *all =
			c128a_indices + (uint64_t)t * s.c128a_width;
		const int32_t c4a_page =
			windows_load(&c4a, pos / SPMLA_COMPRESS_OVERLAP);
		const int32_t index_page =
			windows_load(&index, pos / SPMLA_COMPRESS_OVERLAP);
		const int32_t c128a_page =
			windows_load(&c128a, pos / SPMLA_COMPRESS_MOST);
		uint32_t seen = context;
		int64_t four = -1, score = -1, last = -1;

		for (first = item; first < most + item;
		     first += WINDOWS_LOADS * items) {
			int32_t near[WINDOWS_LOADS], far[WINDOWS_LOADS];

			UNROLL
			for (i = 0; i < WINDOWS_LOADS; i++) {
				const uint32_t k = first + i * items;

				near[i] =
					k < len ? windows_load(&swa, start + k)
						: -1;
				far[i] =
					k < keys ? windows_load(&c128a, k) : -1;
			}
			if (first == item) {
				four = windows_key(&to, &c4a,
						   SPMLA_COMPRESS_OVERLAP, row,
						   pos, c4a_page, &seen);
				if (s.has_index)
					score = windows_key(
						&to, &index,
						SPMLA_COMPRESS_OVERLAP, row,
						pos, index_page, &seen);
				last = windows_key(&to, &c128a,
						   SPMLA_COMPRESS_MOST, row,
						   pos, c128a_page, &seen);
				if (seen / SPMLA_COMPRESS_OVERLAP > 0 &&
				    logits == 0)
					seen = 0; /* they had no room */
			}
			if (seen == 0)
				break;
			UNROLL
			for (i = 0; i < WINDOWS_LOADS; i++) {
				const uint32_t k = first + i * items;

				if (k < len)
					windows_put(&to, &swa, row, start, k,
						    near[i], window);
				if (k < keys)
					windows_put(&to, &c128a, row, 0, k,
						    far[i], all);
			}
		}
		BARRIER(); /* all have read compressed_lens */
		if (item != 0)
			continue;
		c4a_slots[t] = four;
		if (s.has_index)
			index_slots[t] = score;
		c128a_slots[t] = last;
		compressed_lens[t] = (int32_t)(seen / SPMLA_COMPRESS_OVERLAP);
		swa_lens[t] = (int32_t)(seen ? len : 0);
		c128a_lens[t] = (int32_t)(seen ? keys : 0);
	}
}

#undef GROUP
#endif
#endif
