/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of sparse_decode by mma.sync, 64 at a time. They come from the cache
 * into registers, by slots that were asked for one block earlier, and are then
 * dequantised into shared memory.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_MMA_ROWS_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_MMA_ROWS_DEVICE_H

#include "spmla/platform/gpu/attend/decode_work_device.h"
#include "spmla/platform/gpu/dialect/mma.h"

enum {
	DECODE_MMA_ITEMS = 256,
	DECODE_MMA_FEW = 16, /* heads of the smaller kind of block */
	/* 16-bit values that a row of queries or keys takes in shared memory: 8
	 * more than it has, so that 16-byte pieces of 8 rows lie in different
	 * banks. */
	DECODE_MMA_ROW = SPMLA_MLA_DIM + 8,
	DECODE_MMA_P_ROW = DECODE_BLOCK + 8
};

/* Shared memory of a block. Behind it each head has a row of queries, and then
 * each has a row of weights. */
typedef struct decode_mma_memory {
	/* Largest scores of four subgroups. With 16 heads eight subgroups need
	 * less. */
	float most[4 * DECODE_HEADS];
	uint32_t counts[DECODE_BLOCK]; /* which keys count */
	int32_t notes[(DECODE_NOTES + 3) / 4 * 4];
	uint16_t keys[DECODE_BLOCK * DECODE_MMA_ROW];
} decode_mma_memory;

enum {
	DECODE_MMA_HEAD = 2 * (DECODE_MMA_ROW + DECODE_MMA_P_ROW), /* bytes */
	DECODE_MMA_BYTES =
		sizeof(decode_mma_memory) + DECODE_HEADS * DECODE_MMA_HEAD,
	DECODE_MMA_FEW_BYTES =
		sizeof(decode_mma_memory) + DECODE_MMA_FEW * DECODE_MMA_HEAD
};

#ifdef SPMLA_GPU_KERNELS

/* The choices that make a kernel; constants once all is inlined. */
typedef struct decode_mma_kind {
	uint32_t layout;
	uint32_t dim;   /* of a key */
	uint32_t tiles; /* of 16 heads in a subgroup: 2; 1 of 16 heads */
} decode_mma_kind;

/* An item's part of the next 64 rows. It has row item / 4: every fourth 16
 * bytes of the codes and of the rest, and a scale (V4: a word of scales). A row
 * that is no key is zeros. */
typedef struct decode_mma_row {
	uint32_t raw[SPMLA_MLA_DIM / 8];
	uint32_t scale;
	uint32_t counts; /* whether the row is a key */
	int32_t slot;    /* of the row 64 rows on */
} decode_mma_row;

/* Subgroups that share heads, and so keys and columns. */
FN uint32_t
decode_mma_shares(const PRIVATE decode_mma_kind *kind)
{
	return kind->tiles == 2 ? 4 : 8;
}

/* How many 16-byte pieces of a row's codes an item has: a fourth. */
FN uint32_t
decode_mma_codes(const PRIVATE decode_mma_kind *kind)
{
	return kind->layout == SPMLA_LAYOUT_V4_FP8 ? SPMLA_V4_NOPE / 64
						   : SPMLA_MLA_LATENT / 64;
}

/* Asks for the slot of the item's row of a block, of either list. `lens` are
 * the lengths of the token's lists. */
FN void
decode_mma_slot(PRIVATE decode_mma_row *to, const PRIVATE decode_scalars *s,
		GLOBAL const int32_t *slots, GLOBAL const int32_t *topk_lens,
		GLOBAL const int32_t *extra_slots,
		GLOBAL const int32_t *extra_topk_lens, uint32_t t,
		const PRIVATE uint32_t *lens, uint32_t block)
{
	const uint32_t blocks = decode_blocks(lens[0], 1);
	uint32_t entry = block * DECODE_BLOCK + g_item() / 4;

	to->slot = -1;
	if (block < blocks) {
		if (entry < lens[0])
			to->slot = slots[decode_list_of(topk_lens, s->list_form,
							s->lens_tokens,
							s->slots_stride,
							s->topk, t)
						 .first +
					 entry];
		return;
	}
	entry -= blocks * DECODE_BLOCK;
	if (entry < lens[1])
		to->slot = extra_slots[decode_list_of(extra_topk_lens,
						      s->extra_list_form,
						      s->lens_tokens,
						      s->extra_slots_stride,
						      s->extra_topk, t)
					       .first +
				       entry];
}

/* Asks for the item's part of the row whose slot has come. */
FN void
decode_mma_fetch(PRIVATE decode_mma_row *to,
		 const PRIVATE decode_mma_kind *kind,
		 GLOBAL const uint8_t *cache, uint64_t page_stride_bytes,
		 spmla_g_divisor page, uint32_t pages)
{
	const uint32_t part = g_item() % 4, codes = decode_mma_codes(kind);
	const uint32_t number = g_divide((uint32_t)to->slot, page);
	const uint32_t entry = (uint32_t)to->slot - number * page.by;
	const uint32_t is = to->slot >= 0 && number < pages;
	const uint32_t is_bf16 = kind->layout == SPMLA_LAYOUT_MLA_BF16;
	const uint32_t is_v4 = kind->layout == SPMLA_LAYOUT_V4_FP8;
	const uint32_t row_bytes = is_bf16 ? 2 * kind->dim
				   : is_v4 ? (uint32_t)SPMLA_V4_VALUE_BYTES
					   : (uint32_t)SPMLA_FP8_DS_MLA_BYTES;
	GLOBAL const uint8_t *row = cache;
	uint32_t j;

	to->counts = is;
	to->scale = 0;
	if (is)
		row += number * page_stride_bytes;
	if (is && is_v4)
		to->scale =
			((GLOBAL const uint32_t
				  *)(row +
				     (uint64_t)page.by * SPMLA_V4_VALUE_BYTES +
				     (uint64_t)entry *
					     SPMLA_V4_SCALE_BYTES))[part % 2];
	if (is)
		row += (uint64_t)entry * row_bytes;
	if (is && !is_v4 && !is_bf16)
		to->scale =
			((GLOBAL const uint32_t
				  *)(row + SPMLA_FP8_DS_MLA_SCALE_BYTE))[part];
	row += 16 * part;
	if (is_bf16) {
		UNROLL
		for (j = 0; j < kind->dim / 32; j++)
			g_load128_if(is, row + 64 * j, to->raw + 4 * j);
		return;
	}
	UNROLL
	for (j = 0; j < codes; j++)
		g_load128_if(is, row + 64 * j, to->raw + 4 * j);
	row += is_v4 ? SPMLA_V4_NOPE : SPMLA_FP8_DS_MLA_ROPE_BYTE;
	UNROLL
	for (j = 0; j < 2; j++)
		g_load128_if(is, row + 64 * j, to->raw + 4 * (codes + j));
}

/* Asks for block `block` of a token, and for the slot of the block after it.
 * Reports a slot outside the cache. */
FN void
decode_mma_next(PRIVATE decode_mma_row *to, const PRIVATE decode_mma_kind *kind,
		const PRIVATE decode_scalars *s,
		GLOBAL spmla_g_state *fault_state,
		GLOBAL spmla_g_status *fault_status,
		GLOBAL const int32_t *slots, GLOBAL const int32_t *topk_lens,
		GLOBAL const int32_t *extra_slots,
		GLOBAL const int32_t *extra_topk_lens,
		GLOBAL const uint8_t *cache, GLOBAL const uint8_t *extra_cache,
		uint32_t t, const PRIVATE uint32_t *lens, uint32_t block,
		uint32_t reports)
{
	const int32_t slot = to->slot;

	if (kind->layout == SPMLA_LAYOUT_V4_FP8 &&
	    block >= decode_blocks(lens[0], 1))
		decode_mma_fetch(to, kind, extra_cache,
				 s->extra_page_stride_bytes, s->extra_page,
				 s->extra_pages);
	else
		decode_mma_fetch(to, kind, cache, s->page_stride_bytes, s->page,
				 s->pages);
	if (slot != -1 && !to->counts && g_item() % 4 == 0 && reports &&
	    !s->quiet)
		g_fault(fault_state, fault_status, t, G_FAULT_INDEX);
	decode_mma_slot(to, s, slots, topk_lens, extra_slots, extra_topk_lens,
			t, lens, block + 1);
}

/* The scale of the row's codes 64 j .. 64 j + 63; by all items together. */
FN float
decode_mma_scale(const PRIVATE decode_mma_row *from,
		 const PRIVATE decode_mma_kind *kind, uint32_t j)
{
	const uint32_t first = g_lane() / 4 * 4;

	if (kind->layout == SPMLA_LAYOUT_V4_FP8)
		return g_ue8m0(g_broadcast(from->scale, first + j / 4) >>
				       j % 4 * 8 &
			       0xffu);
	return g_float(g_broadcast(from->scale, first + j / 2));
}

/* Dequantises the row into shared memory. */
FN void
decode_mma_store(const PRIVATE decode_mma_row *from,
		 const PRIVATE decode_mma_kind *kind, LOCAL uint16_t *keys,
		 LOCAL uint32_t *counts)
{
	const uint32_t row = g_item() / 4, part = g_item() % 4;
	const uint32_t codes = decode_mma_codes(kind);
	LOCAL uint16_t *to = keys + row * DECODE_MMA_ROW;
	uint32_t x[8], i, j;

	if (part == 0)
		counts[row] = from->counts;
	if (kind->layout == SPMLA_LAYOUT_MLA_BF16) {
		UNROLL
		for (j = 0; j < kind->dim / 32; j++)
			g_local_store128(to + 32 * j + 8 * part,
					 from->raw + 4 * j);
		return;
	}
	UNROLL
	for (j = 0; j < codes; j++) {
		const float scale = decode_mma_scale(from, kind, j);

		UNROLL
		for (i = 0; i < 8; i++) {
			const uint32_t pair = g_e4m3x2_to_f16x2(
				from->raw[4 * j + i / 2] >> 16 * (i % 2));
			float low, high;

			g_f16x2_to_f32(pair, &low, &high);
			x[i] = g_f32_to_bf16x2(low * scale, high * scale);
		}
		g_local_store128(to + 64 * j + 16 * part, x);
		g_local_store128(to + 64 * j + 16 * part + 8, x + 4);
	}
	UNROLL
	for (j = 0; j < 2; j++)
		g_local_store128(to + 64 * codes + 32 * j + 8 * part,
				 from->raw + 4 * (codes + j));
}

#endif
#endif
