/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert: 16 lanes a token, eight tokens a block. Lane l has octets (8
 * values) l, l + 16, l + 32, l + 48 of the latent, one of each 128 values with
 * a scale, and four values of the rope. A row is read before its slot is known,
 * as only the place of the result depends on the slot: one latency instead of
 * two. V4 rows, too, go eight a block; see v4_row_device.h.
 */
#ifndef SPMLA_PLATFORM_GPU_CACHE_KV_INSERT_KERNEL_H
#define SPMLA_PLATFORM_GPU_CACHE_KV_INSERT_KERNEL_H

#include "spmla/platform/gpu/cache/indexer_k_insert_kernel.h"
#include "spmla/platform/gpu/cache/row_device.h"
#include "spmla/platform/gpu/cache/v4_row_device.h"
#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/step/fault_device.h"

#define SPMLA_K_kv_insert(P, S)        \
	SPMLA_K_FAULT(P)               \
	P(const uint16_t, kv_c)        \
	P(const uint16_t, k_pe)        \
	P(const int64_t, slot_mapping) \
	P(uint8_t, cache)              \
	P(const float, scale_at)       \
	S(int64_t, kv_c_stride)        \
	S(int64_t, k_pe_stride)        \
	S(uint64_t, page_stride_bytes) \
	S(uint32_t, tokens)            \
	S(uint32_t, dtype)             \
	S(uint32_t, raw_scale)         \
	S(uint32_t, layout)            \
	S(uint32_t, fnuz)              \
	S(uint32_t, page_entries)      \
	S(uint32_t, pages)             \
	S(uint32_t, wide_kv_c)         \
	S(uint32_t, wide_k_pe)         \
	S(uint32_t, has_scale_at)      \
	S(float, inverse)
SPMLA_KERNEL_SCALARS(kv_insert)

/* Both kernels have the same parameters. */
#define SPMLA_K_kv_insert_v4(P, S) SPMLA_K_kv_insert(P, S)
typedef spmla_k_kv_insert_scalars spmla_k_kv_insert_v4_scalars;

/* The parameters of kv_insert and of indexer_k_insert. */
#define SPMLA_K_kv_insert_index(P, S)    \
	SPMLA_K_FAULT(P)                 \
	P(const uint16_t, kv_c)          \
	P(const uint16_t, k_pe)          \
	P(const int64_t, slot_mapping)   \
	P(uint8_t, cache)                \
	P(const float, scale_at)         \
	P(const uint16_t, index_k)       \
	P(const int64_t, index_slots)    \
	P(const float, norm_weight)      \
	P(const float, norm_bias)        \
	P(const int32_t, positions)      \
	P(const float, cos_sin)          \
	P(uint8_t, index_cache)          \
	S(spmla_k_kv_insert_scalars, kv) \
	S(spmla_k_indexer_k_insert_scalars, index)
SPMLA_KERNEL_SCALARS(kv_insert_index)

#ifdef SPMLA_GPU_KERNELS

/* The scale of the 128 values whose octets 16 lanes have. */
FN float
kv_insert_scale(const PRIVATE float *x, uint32_t raw, uint32_t fnuz)
{
	float scale;

	if (raw) {
		scale = g_div_rn(g_row_amax(x, 0.0f), fnuz ? 224.0f : 448.0f);
		return scale < 0x1p-126f ? 0x1p-126f : scale;
	}
	/* A quotient below 1e-4 gets 2^-13, which is pow2up(1e-4). */
	scale = g_row_pow2(g_row_amax(x, 1e-4f)) * (fnuz ? 2.0f : 1.0f);
	return scale < 0x1p-13f ? 0x1p-13f : scale;
}

/* The values of all of the lane's octets. */
FN void
kv_insert_values(const PRIVATE uint32_t *w, uint32_t dtype, PRIVATE float *x)
{
	uint32_t i;

	if (dtype == SPMLA_DTYPE_FP16) {
		UNROLL
		for (i = 0; i < 4 * SPMLA_MLA_SCALES; i++)
			g_row_values(w[i], SPMLA_DTYPE_FP16, x + 2 * i);
		return;
	}
	UNROLL
	for (i = 0; i < 4 * SPMLA_MLA_SCALES; i++)
		g_row_values(w[i], SPMLA_DTYPE_BF16, x + 2 * i);
}

/* Stores w, the lane's octet of each 128 values, as codes in an entry, and the
 * scales, if it is `live`. All threads of the subgroup call it. dtype and the
 * division are a branch each, for all four groups at once. */
FN void
kv_insert_fp8(const PRIVATE uint32_t *w, uint32_t live, GLOBAL uint8_t *entry,
	      uint32_t dtype, uint32_t raw, uint32_t fnuz)
{
	const uint32_t lane = g_item() % G_ROW_LANES;
	float x[G_ROW_EACH * SPMLA_MLA_SCALES];
	g_row_divisor d[SPMLA_MLA_SCALES];
	uint32_t scales[SPMLA_MLA_SCALES], g;

	kv_insert_values(w, dtype, x);
	UNROLL
	for (g = 0; g < SPMLA_MLA_SCALES; g++) {
		const float scale =
			kv_insert_scale(x + G_ROW_EACH * g, raw, fnuz);

		scales[g] = g_bits(scale);
		d[g] = g_row_divisor_of(scale, raw);
		/* A code means half as much in FNUZ as in e4m3fn. */
		if (fnuz)
			d[g] = g_row_half(d[g]);
	}
	g_row_divide(x, d, SPMLA_MLA_SCALES, raw);
	UNROLL
	for (g = 0; g < SPMLA_MLA_SCALES; g++) {
		uint32_t low = g_row_codes4(x + G_ROW_EACH * g);
		uint32_t high = g_row_codes4(x + G_ROW_EACH * g + 4);

		if (fnuz) {
			low = g_e4m3x4_to_fnuz(low);
			high = g_e4m3x4_to_fnuz(high);
		}
		if (live)
			*(GLOBAL uint64_t *)(entry + g * SPMLA_MLA_SCALE_GROUP +
					     8 * lane) =
				(uint64_t)high << 32 | low;
	}
	if (live && lane == 0)
		g_store4((GLOBAL uint16_t *)(entry +
					     SPMLA_FP8_DS_MLA_SCALE_BYTE),
			 scales);
}

typedef struct kv_insert_job {
	SPMLA_KERNEL_FIELDS(kv_insert)
} kv_insert_job;

/* Inserts the block's V3.2 rows. Returns the number of the block's next tile
 * less the number of tiles. */
FN uint32_t
kv_insert_rows(const PRIVATE kv_insert_job *job)
{
	const spmla_k_kv_insert_scalars s = job->s;
	const uint32_t tiles = (s.tokens - 1) / G_ROW_GROUPS + 1;
	const uint32_t lane = g_item() % G_ROW_LANES;
	uint32_t tile, g;

	for (tile = g_block(); tile < tiles; tile += g_blocks()) {
		const uint32_t t = tile * G_ROW_GROUPS + g_item() / G_ROW_LANES;
		const uint32_t there = t < s.tokens;
		const int64_t slot = there ? job->slot_mapping[t] : -1;
		uint32_t w[4 * SPMLA_MLA_SCALES], rope[2], live;
		g_place place;
		GLOBAL uint8_t *out;

		UNROLL
		for (g = 0; g < 4 * SPMLA_MLA_SCALES; g++)
			w[g] = 0;
		rope[0] = rope[1] = 0;
		if (there) {
			GLOBAL const uint16_t *latent =
				job->kv_c + (int64_t)t * s.kv_c_stride +
				8 * lane;

			UNROLL
			for (g = 0; g < SPMLA_MLA_SCALES; g++)
				g_row_load8(latent + g * SPMLA_MLA_SCALE_GROUP,
					    s.wide_kv_c, w + 4 * g);
			g_row_load4(job->k_pe + (int64_t)t * s.k_pe_stride +
					    4 * lane,
				    s.wide_k_pe, rope);
		}
		place = g_place_of(slot, s.page_entries, s.pages);
		live = place.inside;
		if (slot >= 0 && !live && lane == 0)
			g_fault(job->fault_state, job->fault_status, t,
				G_FAULT_SLOT);
		out = job->cache +
		      (live ? place.page * s.page_stride_bytes : 0);
		if (s.layout == SPMLA_LAYOUT_FP8_DS_MLA) {
			out += live ? place.entry * SPMLA_FP8_DS_MLA_BYTES : 0;
			kv_insert_fp8(w, live, out, s.dtype, s.raw_scale,
				      s.fnuz);
			out += SPMLA_FP8_DS_MLA_ROPE_BYTE;
		} else if (live) {
			out += place.entry * SPMLA_MLA_BF16_BYTES;
			UNROLL
			for (g = 0; g < SPMLA_MLA_SCALES; g++)
				g_store4((GLOBAL uint16_t *)out +
						 g * SPMLA_MLA_SCALE_GROUP +
						 8 * lane,
					 w + 4 * g);
			out += SPMLA_MLA_LATENT * 2;
		}
		if (live)
			*(GLOBAL uint64_t *)(out + 8 * lane) =
				(uint64_t)rope[1] << 32 | rope[0];
	}
	return tile - tiles;
}

/* With room for one block more, ptxas spills to the stack; kv_insert_index as
 * well. */
SPMLA_KERNEL_BLOCKS(kv_insert, 8)
void
spmla_k_kv_insert(SPMLA_KERNEL_ARGS(kv_insert))
{
	const kv_insert_job job = {SPMLA_KERNEL_VALUES(kv_insert)};

	(void)kv_insert_rows(&job);
}

/* The numbers of index keys' tiles follow the numbers of KV rows' tiles, so
 * each block goes on with its next tile. */
SPMLA_KERNEL_BLOCKS(kv_insert_index, 7)
void
spmla_k_kv_insert_index(SPMLA_KERNEL_ARGS(kv_insert_index))
{
	const kv_insert_job job = {fault_state,  fault_status, kv_c,     k_pe,
				   slot_mapping, cache,        scale_at, s.kv};
	const k_insert_job index = {
		fault_state, fault_status, index_k, index_slots, norm_weight,
		norm_bias,   positions,    cos_sin, index_cache, s.index};

	k_insert_rows(&index, kv_insert_rows(&job));
}

SPMLA_KERNEL(kv_insert_v4)
void
spmla_k_kv_insert_v4(SPMLA_KERNEL_ARGS(kv_insert_v4))
{
	const uint64_t tiles = ((uint64_t)s.tokens + V4_ROWS - 1) / V4_ROWS;
	const uint32_t group = g_item() / V4_LANES;
	const uint32_t first = g_item() % V4_LANES == 0;
	uint64_t tile;

	(void)k_pe; /* V3.2's */
	for (tile = g_block(); tile < tiles; tile += g_blocks()) {
		const uint64_t n = tile * V4_ROWS + group;
		const uint32_t t = (uint32_t)n;
		const int64_t slot = n < s.tokens ? slot_mapping[t] : -1;
		const g_place place = g_place_of(slot, s.page_entries, s.pages);
		const uint32_t live = place.inside;
		uint32_t w[4 * V4_EACH];

		if (slot >= 0 && !live && first)
			g_fault(fault_state, fault_status, t, G_FAULT_SLOT);
		v4_load_row(kv_c + (int64_t)t * s.kv_c_stride, n < s.tokens,
			    s.wide_kv_c, w);
		v4_write_row(
			w, live,
			cache + (live ? place.page * s.page_stride_bytes : 0),
			s.layout, s.fnuz, s.page_entries, place.entry,
			v4_inverse_at(scale_at, s.has_scale_at, s.inverse));
	}
}

#endif
#endif
