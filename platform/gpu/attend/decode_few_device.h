/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of sparse_decode_few: its work, its shared memory, and how queries
 * and rows of the cache come there.
 *
 * A unit of work is a token and a group of its heads. `ranks` blocks share it,
 * and each of their warps has 16 keys. The place of a key in the token's lists
 * decides its block, so nothing else in the batch does. Rows lie in shared
 * memory as the cache has them: one copy serves as K and as V.
 *
 * decode_format_device.h says what a row consists of. Rows have e4m3 or FNUZ
 * codes and groups of 64 or 128 values: a warp's 64 columns of O share a scale.
 * V4's have ue8m0 scales behind the page's rows, others f32 scales of their own.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_FEW_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_FEW_DEVICE_H

#include "spmla/platform/gpu/attend/decode_format_device.h"
#include "spmla/platform/gpu/dialect/async.h"
#include "spmla/platform/gpu/dialect/wgmma.h"

enum {
	FEW_WARPS = 8,   /* that multiply by values, of 64 columns each */
	FEW_KEYS = 16,   /* of a warp */
	FEW_CODES = 512, /* bytes of a row in shared memory: its codes, */
	FEW_TAIL = 128,  /* its bf16 values */
	FEW_SCALES = 16, /* and its scales */
	/* A head's query: 512 values as f16 and 64 as bf16. The room behind
	 * them keeps the 16-byte pieces of 8 heads in different banks. */
	FEW_PADDED_QUERY = 2 * 512 + 16,
	FEW_PADDED_TAIL = 2 * 64 + 64,
	FEW_WGMMA_HEADS = 64, /* of a unit, at most */
	FEW_GROUPS = 8,       /* of values that share a scale, at most */
	FEW_TILES = FEW_WGMMA_HEADS / 8 /* of 8 heads, at most */
};

/* Shared memory of a block, in this order. It is a map and not a struct,
 * because its sizes differ between the kernels.
 *
 *   codes     [keys of the block] FEW_CODES bytes
 *   tails     [keys] FEW_TAIL, unused if rows have none
 *   P         FEW_P_BYTES; before, queries as they are, [heads] 1024 bytes.
 *             With FEW_P_ON_TAILS P lies in the tails' place, and queries
 *             come to the place of queries
 *   scales    [keys] FEW_SCALES
 *   queries   [heads] FEW_PADDED_QUERY, then [heads] FEW_PADDED_TAIL; with
 *             FEW_BY_WGMMA nine panels of 64 dims
 *   notes     f32 [warps][heads] largest scores, f32 [warps][heads] sums of
 *             weights, words [warps][FEW_GROUPS] largest scales, f32 [heads]
 *             units of queries, four words of decode_exchange_device.h
 *
 * There is one P for each group of values: f16 weights times the group's
 * scales. With FEW_BY_WGMMA it is panels of 64 keys. */
#define FEW_BY_WGMMA(bf16_tail, heads) \
	((heads) == FEW_WGMMA_HEADS && !(bf16_tail))
/* Tails that are no values are read for the last time before P is written. With
 * up to 16 heads P is no larger than they are. */
#define FEW_P_ON_TAILS(bf16_tail, heads) (!(bf16_tail) && (heads) <= 16)
#define FEW_P_BYTES(bf16_tail, warps, heads) \
	(((bf16_tail) ? 8 : 4) * (warps) * (heads)*32)
#define FEW_TAILS_AT(warps)  ((warps)*FEW_KEYS * FEW_CODES)
#define FEW_TAILS_END(warps) (FEW_TAILS_AT(warps) + (warps)*FEW_KEYS * FEW_TAIL)
#define FEW_P_AT(bf16_tail, warps, heads)                       \
	(FEW_P_ON_TAILS(bf16_tail, heads) ? FEW_TAILS_AT(warps) \
					  : FEW_TAILS_END(warps))
#define FEW_SCALES_AT(bf16_tail, warps, heads) \
	(FEW_TAILS_END(warps) +                \
	 (FEW_P_ON_TAILS(bf16_tail, heads)     \
		  ? 0                          \
		  : FEW_P_BYTES(bf16_tail, warps, heads)))
#define FEW_Q_AT(bf16_tail, warps, heads) \
	(FEW_SCALES_AT(bf16_tail, warps, heads) + (warps)*FEW_KEYS * FEW_SCALES)
#define FEW_QUERY_BYTES(bf16_tail, heads) \
	(FEW_BY_WGMMA(bf16_tail, heads) ? 2 * 512 : FEW_PADDED_QUERY)
#define FEW_QUERY_TAIL_BYTES(bf16_tail, heads) \
	(FEW_BY_WGMMA(bf16_tail, heads) ? 2 * 64 : FEW_PADDED_TAIL)
#define FEW_NOTES_AT(bf16_tail, warps, heads)           \
	(FEW_Q_AT(bf16_tail, warps, heads) +            \
	 (heads) * (FEW_QUERY_BYTES(bf16_tail, heads) + \
		    FEW_QUERY_TAIL_BYTES(bf16_tail, heads)))
#define FEW_BYTES(bf16_tail, warps, heads)       \
	(FEW_NOTES_AT(bf16_tail, warps, heads) + \
	 4 * ((warps) * (2 * (heads) + FEW_GROUPS) + (heads) + 4))

/* The choices that make a kernel; constants once all is inlined. */
typedef struct few_kind {
	decode_format format;
	uint32_t heads; /* of a unit: 8, 16, 32 or FEW_WGMMA_HEADS */
	uint32_t ranks; /* 8 or 16, no more than heads */
	uint32_t warps; /* that have keys, 5 to 9 */
} few_kind;

/* The parameters of every kernel of sparse_decode_few. The workspace is 0
 * between calls: see decode_exchange_device.h. */
#define SPMLA_K_sparse_decode_few_v32_16(P, S)  SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_v32_32(P, S)  SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_v32_64(P, S)  SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_v4_8(P, S)    SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_v4_16(P, S)   SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_v4_32(P, S)   SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_v4_64(P, S)   SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_long_16(P, S) SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_long_32(P, S) SPMLA_K_DECODE(P, S)
SPMLA_KERNEL_SCALARS(sparse_decode_few_v32_16)
/* The same struct: all are one function. */
typedef spmla_k_sparse_decode_few_v32_16_scalars
	spmla_k_sparse_decode_few_v32_32_scalars,
	spmla_k_sparse_decode_few_v32_64_scalars,
	spmla_k_sparse_decode_few_v4_8_scalars,
	spmla_k_sparse_decode_few_v4_16_scalars,
	spmla_k_sparse_decode_few_v4_32_scalars,
	spmla_k_sparse_decode_few_v4_64_scalars,
	spmla_k_sparse_decode_few_long_16_scalars,
	spmla_k_sparse_decode_few_long_32_scalars;

/* The sizes are those for Hopper. */
#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

typedef spmla_k_sparse_decode_few_v32_16_scalars few_scalars;

typedef struct few_args {
	SPMLA_KERNEL_FIELDS(sparse_decode_few_v32_16)
} few_args;

/* Scores, later weights, of an item's two keys (few_keys) and its heads 8 n + 2
 * t + e: [n][2 * key + e]. */
typedef float few_scores[FEW_TILES][4];

/* O of columns 64 w + 8 g + 2 i + j and heads 8 n + 2 t + e: [i][n][2 * j + e].
 */
typedef float few_o[4][FEW_TILES][4];

/* A block and its unit, as an item sees them. */
typedef struct few_block {
	const PRIVATE few_args *a;
	few_kind kind;
	LOCAL uint8_t *rows; /* the codes; from here on all of it */
	uint32_t unit;
	uint32_t rank;
	uint32_t token;
	uint32_t first_head;
	uint32_t warp;
	uint32_t lane;
} few_block;

/* The byte of a row where its 64 bf16 values begin; 0: it has none. */
FN uint32_t
few_tail_byte(decode_format f)
{
	return f.bf16_tail ? SPMLA_V4_NOPE : f.rope_byte;
}

/* Whether products are wgmma's, and queries and P panels of wgmma.h. V4's
 * blocks of FEW_WGMMA_HEADS heads have five warps of keys, and mma.sync. */
FN uint32_t
few_by_wgmma(const PRIVATE few_block *b)
{
	return FEW_BY_WGMMA(b->kind.format.bf16_tail, b->kind.heads);
}

/* Warps of a block. Beyond FEW_WARPS there is one that has no keys, since the
 * compiler gives 10 warps as many registers as 9. */
FN uint32_t
few_warps(few_kind kind)
{
	return kind.warps > FEW_WARPS ? kind.warps + 1 : FEW_WARPS;
}

/* Items of a block. */
FN uint32_t
few_items(few_kind kind)
{
	return 32 * few_warps(kind);
}

FN LOCAL uint8_t *
few_tails(const PRIVATE few_block *b)
{
	return b->rows + FEW_TAILS_AT(b->kind.warps);
}

FN LOCAL uint8_t *
few_weights_at(const PRIVATE few_block *b)
{
	return b->rows +
	       FEW_P_AT(b->kind.format.bf16_tail, b->kind.warps, b->kind.heads);
}

FN LOCAL uint8_t *
few_scales(const PRIVATE few_block *b)
{
	return b->rows + FEW_SCALES_AT(b->kind.format.bf16_tail, b->kind.warps,
				       b->kind.heads);
}

FN LOCAL uint8_t *
few_queries(const PRIVATE few_block *b)
{
	return b->rows +
	       FEW_Q_AT(b->kind.format.bf16_tail, b->kind.warps, b->kind.heads);
}

FN LOCAL uint8_t *
few_query_tails(const PRIVATE few_block *b)
{
	return few_queries(b) +
	       b->kind.heads *
		       FEW_QUERY_BYTES(b->kind.format.bf16_tail, b->kind.heads);
}

/* Where the queries end. */
FN LOCAL uint8_t *
few_notes(const PRIVATE few_block *b)
{
	return few_query_tails(b) +
	       b->kind.heads * FEW_QUERY_TAIL_BYTES(b->kind.format.bf16_tail,
						    b->kind.heads);
}

/* [warps][heads] */
FN LOCAL float *
few_most(const PRIVATE few_block *b)
{
	return (LOCAL float *)few_notes(b);
}

/* [warps][heads] */
FN LOCAL float *
few_sums(const PRIVATE few_block *b)
{
	return few_most(b) + b->kind.warps * b->kind.heads;
}

/* [warps][FEW_GROUPS]: f32 as bits; or ue8m0 as four words of two bytes. */
FN LOCAL uint32_t *
few_largest_scales(const PRIVATE few_block *b)
{
	return (LOCAL uint32_t *)(few_sums(b) + b->kind.warps * b->kind.heads);
}

/* [heads]: the unit of the queries in shared memory. */
FN LOCAL float *
few_units(const PRIVATE few_block *b)
{
	return (LOCAL float *)(few_largest_scales(b) +
			       b->kind.warps * FEW_GROUPS);
}

/* Four words. */
FN LOCAL uint32_t *
few_exchange_notes(const PRIVATE few_block *b)
{
	return (LOCAL uint32_t *)(few_units(b) + b->kind.heads);
}

/* ---- Rows of the cache ------------------------------------------------- */

/* Where 16-byte piece i of a row lies. Pieces i of eight rows lie in different
 * banks, and so do the halves of two rows. */
FN uint32_t
few_piece(uint32_t row, uint32_t i)
{
	return (i ^ ((row & 1u) << 2 | (row & 2u))) << 4;
}

/* What a lane has asked for: the slot of row lane % 16 of its warp's 16 rows.
 */
typedef struct few_slot {
	int32_t slot;
	uint32_t entry;  /* of the list */
	uint32_t len;    /* of the list; 0 if it is bad */
	uint32_t second; /* 1: the second list */
	uint32_t faults; /* the list is bad; set at its first entry */
} few_slot;

/* The row that a lane has found. */
typedef struct few_found {
	uint64_t row;    /* its address */
	uint64_t scales; /* the address of its scales */
	uint32_t keys;   /* bit r: row r of the 16 is a key */
	/* 1: it is bad; only the first group of heads says so */
	uint32_t faults;
} few_found;

/* Asks for the lane's slot and, at the same time, for the length of its list. A
 * ragged list's length comes first. */
FN few_slot
few_ask_slot(const PRIVATE few_block *b)
{
	const PRIVATE few_args *a = b->a;
	const PRIVATE few_scalars *s = &a->s;
	const uint32_t at = (b->rank * b->kind.warps + b->warp) * FEW_KEYS +
			    b->lane % FEW_KEYS;
	const uint32_t second = b->kind.format.lists == 2 && at >= s->entries;
	const uint32_t entries = second ? s->extra_entries : s->entries;
	const uint32_t most = second ? s->extra_topk : s->topk;
	const uint32_t form = second ? s->extra_list_form : s->list_form;
	GLOBAL const int32_t *slots = second ? a->extra_slots : a->slots;
	decode_list list;
	few_slot to;

	to.second = second;
	to.entry = second ? at - s->entries : at;
	to.slot = -1;
	to.len = to.faults = 0;
	if (b->warp >= b->kind.warps || to.entry >= entries)
		return to;
	list = decode_list_of(second ? a->extra_topk_lens : a->topk_lens, form,
			      s->lens_tokens,
			      second ? s->extra_slots_stride : s->slots_stride,
			      most, b->token);
	to.len = list.len <= entries ? list.len : 0;
	to.faults = (list.faults || list.len > entries) && to.entry == 0;
	if (form != DECODE_RAGGED || to.entry < to.len)
		to.slot = slots[list.first + to.entry];
	return to;
}

/* Finds the rows of a warp. */
FN few_found
few_find(const PRIVATE few_block *b, const PRIVATE few_slot *from)
{
	const PRIVATE few_args *a = b->a;
	const PRIVATE few_scalars *s = &a->s;
	const decode_format f = b->kind.format;
	const uint32_t second = from->second;
	const int32_t slot = from->entry < from->len ? from->slot : -1;
	const spmla_g_divisor page = second ? s->extra_page : s->page;
	const uint32_t number = g_divide((uint32_t)slot, page);
	const uint32_t is =
		slot >= 0 && number < (second ? s->extra_pages : s->pages);
	const uint32_t entry = is ? (uint32_t)slot - number * page.by : 0;
	/* A row that is no key is not read, but its address must be valid. */
	uint64_t at = (uint64_t)(is && second ? a->extra_cache : a->cache);
	few_found found;

	if (is)
		at += number * (second ? s->extra_page_stride_bytes
				       : s->page_stride_bytes);
	found.row = at + (uint64_t)entry * f.row_bytes;
	found.scales = at;
	if (is)
		found.scales += (uint64_t)page.by * f.row_bytes +
				entry * decode_scale_bytes(f);
	found.keys = (uint32_t)g_ballot(is) & 0xffffu;
	found.faults = ((slot != -1 && !is) || from->faults) &&
		       b->first_head == 0 && b->lane < FEW_KEYS;
	return found;
}

/* Reports a bad slot or list. */
FN void
few_report(const PRIVATE few_block *b, const PRIVATE few_found *found)
{
	if (found->faults)
		g_fault(b->a->fault_state, b->a->fault_status, b->token,
			G_FAULT_INDEX);
}

/* The address that lane `lane` of the warp has. */
FN GLOBAL const uint8_t *
few_address(uint64_t own, uint32_t lane)
{
	const uint32_t low = g_broadcast((uint32_t)own, lane);
	const uint32_t high = g_broadcast((uint32_t)(own >> 32), lane);

	return (GLOBAL const uint8_t *)((uint64_t)high << 32 | low);
}

/* Asks for a piece of a row's tail. */
FN void
few_ask_tail(const PRIVATE few_block *b, GLOBAL const uint8_t *row, uint32_t r,
	     uint32_t piece, uint32_t is)
{
	g_local_copy128(few_tails(b) + (FEW_KEYS * b->warp + r) * FEW_TAIL +
				few_piece(r, piece),
			row + few_tail_byte(b->kind.format) + 16 * piece, is);
}

/* Asks for the rows of a warp that has keys. One instruction fetches a row's
 * codes; with V4 it fetches the first half of the tail, too. */
FN void
few_ask_rows(const PRIVATE few_block *b, const PRIVATE few_found *found)
{
	const decode_format f = b->kind.format;
	const uint32_t lane = b->lane;
	LOCAL uint8_t *codes = b->rows + FEW_KEYS * b->warp * FEW_CODES;
	LOCAL uint8_t *scales = few_scales(b) + FEW_KEYS * b->warp * FEW_SCALES;
	uint32_t i;

	UNROLL
	for (i = 0; i < FEW_KEYS; i++) {
		GLOBAL const uint8_t *row = few_address(found->row, i);
		const uint32_t is = found->keys >> i & 1u;

		if (16 * lane < decode_coded(f))
			g_local_copy128(codes + i * FEW_CODES +
						few_piece(i, lane),
					row + 16 * lane, is);
		else
			few_ask_tail(b, row, i, lane - decode_coded(f) / 16,
				     is);
	}
	if (f.bf16_tail) {
		UNROLL
		for (i = 0; i < 2; i++) {
			const uint32_t r = 8 * i + lane / 4;

			few_ask_tail(b, few_address(found->row, r), r,
				     4 + lane % 4, found->keys >> r & 1u);
		}
		if (lane < FEW_KEYS)
			g_local_copy64(scales + lane * FEW_SCALES,
				       (GLOBAL const uint8_t *)found->scales,
				       found->keys >> lane & 1u);
	} else {
		/* One piece a row, or nine: its scales, then its tail. */
		const uint32_t pieces = few_tail_byte(f) ? 9 : 1;

		UNROLL
		for (i = 0; i < (pieces * FEW_KEYS + 31) / 32; i++) {
			const uint32_t n = 32 * i + lane, piece = n % pieces;
			const uint32_t r = n / pieces % FEW_KEYS;
			GLOBAL const uint8_t *row = few_address(found->row, r);
			const uint32_t is = found->keys >> r & 1u;

			if (n >= pieces * FEW_KEYS)
				continue;
			if (piece == 0)
				g_local_copy128(scales + r * FEW_SCALES,
						row + f.scales_byte, is);
			else
				few_ask_tail(b, row, r, piece - 1, is);
		}
	}
}

/* ---- Queries ----------------------------------------------------------- */

/* Each of FEW_WARPS warps brings the queries of `few_each` heads. */
FN uint32_t
few_each(const PRIVATE few_block *b)
{
	return b->kind.heads / FEW_WARPS;
}

/* Tails that a lane has in registers, of head 4 i + lane / 8 of the warp's: of
 * V3.2, where a query's tail lies behind its first 512 values. */
FN uint32_t
few_query_tails_each(const PRIVATE few_block *b)
{
	const decode_format f = b->kind.format;

	return few_tail_byte(f) && !f.bf16_tail ? (few_each(b) + 3) / 4 : 0;
}

/* The query of the i-th of the warp's heads. That head may not exist. */
FN GLOBAL const uint16_t *
few_query_at(const PRIVATE few_block *b, uint32_t i)
{
	const PRIVATE few_scalars *s = &b->a->s;

	return b->a->q +
	       decode_token_at(b->token, s->next_n, s->q_request_stride,
			       s->q_token_stride) +
	       (int64_t)(b->first_head + b->warp * few_each(b) + i) *
		       s->q_head_stride;
}

/* The larger of `most` and 8 bf16 values, without signs, as bits; the halves of
 * words apart. */
FN uint32_t
few_largest(const PRIVATE uint32_t *x, uint32_t most)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++)
		most = g_larger_halves(most, x[i] & 0x7fff7fffu);
	return most;
}

/* Stores 8 dims of a head, from dim 8 `octet` on: in their order, or for wgmma
 * in the order in which few_wgmma_take_codes finds dims in a row. */
FN void
few_store_octet(const PRIVATE few_block *b, uint32_t head, uint32_t octet,
		const PRIVATE uint32_t *x)
{
	const uint32_t panel = octet / 8, odd = panel & 1u, high = panel & 2u;
	LOCAL uint8_t *to;
	uint32_t y[4], e;

	if (!few_by_wgmma(b)) {
		g_local_store128(few_queries(b) + head * FEW_PADDED_QUERY +
					 16 * octet,
				 x);
		return;
	}
	/* Word e goes to piece 4 (octet % 2) + e. Lanes of four panels store at
	 * the same time; each begins with another word, for the banks. */
	UNROLL
	for (e = 0; e < 4; e++) {
		const uint32_t near = odd ? x[e ^ 1u] : x[e];
		const uint32_t far = odd ? x[e ^ 3u] : x[e ^ 2u];

		y[e] = high ? far : near;
	}
	to = few_queries(b) + panel * G_PANEL_BYTES + head * 128 +
	     octet % 8 / 2 * 4;
	UNROLL
	for (e = 0; e < 4; e++)
		*(LOCAL uint32_t *)(to + 16 * ((4 * (octet % 2) +
						(e ^ (panel & 3u))) ^
					       (head & 7u))) = y[e];
}

/* The same for the tail: piece 4 j + t of its dims, as they are. */
FN void
few_store_tail(const PRIVATE few_block *b, uint32_t head, uint32_t piece,
	       const PRIVATE uint32_t *x)
{
	LOCAL uint8_t *to;
	uint32_t e;

	if (!few_by_wgmma(b)) {
		g_local_store128(few_query_tails(b) + head * FEW_PADDED_TAIL +
					 16 * piece,
				 x);
		return;
	}
	to = few_query_tails(b) + head * 128 + piece % 4 * 4;
	UNROLL
	for (e = 0; e < 4; e++)
		*(LOCAL uint32_t *)(to + 16 * ((piece / 4 * 4 + e) ^
					       (head & 7u))) = x[e];
}

/* Stores a head's values as f16: the lane's dims from 8 lane and from 256 + 8
 * lane on. They are multiplied by a power of two, so that the head's largest
 * value lies in [2^8, 2^9). */
FN void
few_store_query(const PRIVATE few_block *b, uint32_t head, uint32_t x[2][4])
{
	uint32_t most = few_largest(x[0], 9u << 7), j, e;
	float by;

	most = few_largest(x[1], most);
	most = g_larger_halves(most, most >> 16) >> 7 & 0xffu;
	most = g_subgroup_largest(most);
	by = g_float((262 - most) << 23);
	if (b->lane == 0)
		few_units(b)[head] = g_float((most - 8) << 23);
	UNROLL
	for (j = 0; j < 2; j++) {
		uint32_t y[4];

		UNROLL
		for (e = 0; e < 4; e++)
			y[e] = g_f32_to_f16x2(g_bf16x2_low(x[j][e]) * by,
					      g_bf16x2_high(x[j][e]) * by);
		if (256 * j + 8 * b->lane < decode_coded(b->kind.format))
			few_store_octet(b, head, 32 * j + b->lane, y);
	}
}

/* Where the first 512 values of heads come, as they are: in the place of P or,
 * if that is the tails', where they will be f16. */
FN LOCAL uint8_t *
few_raw_queries(const PRIVATE few_block *b)
{
	return FEW_P_ON_TAILS(b->kind.format.bf16_tail, b->kind.heads)
		       ? few_queries(b)
		       : few_weights_at(b);
}

/* Bytes from head to head there. */
FN uint32_t
few_raw_pitch(const PRIVATE few_block *b)
{
	return FEW_P_ON_TAILS(b->kind.format.bf16_tail, b->kind.heads)
		       ? FEW_PADDED_QUERY
		       : 1024;
}

/* Asks for queries. Their first 512 values come to shared memory as they are,
 * so the code of a head can run in a loop, and no register waits for them. */
FN void
few_ask_queries(const PRIVATE few_block *b, uint32_t tail[2][4])
{
	const PRIVATE few_scalars *s = &b->a->s;
	const uint32_t each = few_each(b);
	const uint32_t first = b->first_head + b->warp * each;
	GLOBAL const uint16_t *from = few_query_at(b, 0);
	LOCAL uint8_t *to = few_raw_queries(b) +
			    b->warp * each * few_raw_pitch(b) + 16 * b->lane;
	uint32_t i;

	if (b->warp >= FEW_WARPS)
		return;
	NO_UNROLL
	for (i = 0; i < each; i++) {
		const uint32_t is = first + i < s->heads;
		GLOBAL const uint16_t *at = is ? from + 8 * b->lane : b->a->q;

		g_local_copy128(to, (GLOBAL const uint8_t *)at, is);
		g_local_copy128(to + 512, (GLOBAL const uint8_t *)(at + 256),
				is);
		from += s->q_head_stride;
		to += few_raw_pitch(b);
	}
	g_local_copies_commit();
	from = few_query_at(b, b->lane / 8) + 512 + 8 * (b->lane % 8);
	UNROLL
	for (i = 0; i < few_query_tails_each(b); i++) {
		const uint32_t head = 4 * i + b->lane / 8;

		g_load128_if(head < each && first + head < s->heads,
			     from + 4 * i * s->q_head_stride, tail[i]);
	}
}

/* Fills what nobody reads again, between barriers; the debug build alone calls
 * it. */
FN void
few_spoil(const PRIVATE few_block *b, LOCAL uint8_t *from, uint32_t bytes)
{
	BARRIER();
	g_spoil(from, bytes, g_item(), few_items(b->kind));
	BARRIER();
}

/* Brings these queries to their places. The copies of the rows, the next group,
 * may still be under way. */
FN void
few_store_queries(const PRIVATE few_block *b, uint32_t tail[2][4])
{
	const uint32_t each = few_each(b), first = b->warp * each;
	const uint32_t coded = decode_coded(b->kind.format);
	uint32_t i;

	if (b->warp >= FEW_WARPS)
		return;
	UNROLL
	for (i = 0; i < few_query_tails_each(b); i++) {
		const uint32_t head = 4 * i + b->lane / 8;

		if (head < each)
			few_store_tail(b, first + head, b->lane % 8, tail[i]);
	}
	g_local_copies_wait_but(1);
	NO_UNROLL
	for (i = 0; i < each; i++) {
		LOCAL uint8_t *from = few_raw_queries(b) +
				      (first + i) * few_raw_pitch(b) +
				      16 * b->lane;
		uint32_t x[2][4];

		g_local_load128(from, x[0]);
		g_local_load128(from + 512, x[1]);
		if (G_DEBUG) {
			g_spoil(from, 16, 0, 1);
			g_spoil(from + 512, 16, 0, 1);
		}
		if (b->kind.format.bf16_tail && 256 + 8 * b->lane >= coded) {
			few_store_tail(b, first + i,
				       b->lane - (coded - 256) / 8, x[1]);
			x[1][0] = x[1][1] = x[1][2] = x[1][3] = 0;
		}
		few_store_query(b, first + i, x);
	}
}

#endif
#endif
