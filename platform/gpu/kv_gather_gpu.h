/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: a block takes 32 rows of the output at a time. 32 items find their
 * pages, side by side as each look-up waits for the one before it; then 16
 * lanes take a row, eight values at a time, and have asked for all of it before
 * they use any. The product of a code and its scale is rounded twice, to f32
 * and then to bf16.
 */
#ifndef SPMLA_PLATFORM_GPU_KV_GATHER_H
#define SPMLA_PLATFORM_GPU_KV_GATHER_H

#include "spmla/platform/gpu/gather_gpu.h"

#define SPMLA_K_kv_gather(P, S)            \
	SPMLA_K_FAULT(P)                   \
	P(const int32_t, workspace_starts) \
	P(const int32_t, workspace_ends)   \
	P(const int32_t, seq_starts)       \
	P(const int32_t, req_row)          \
	P(const int32_t, block_table)      \
	P(const int32_t, table_cols)       \
	P(const uint8_t, cache)            \
	P(uint16_t, dst)                   \
	S(int64_t, dst_stride)             \
	S(uint64_t, page_stride_bytes)     \
	SPMLA_S_TABLE(S)                   \
	S(uint32_t, requests)              \
	S(uint32_t, keys)                  \
	S(uint32_t, has_ends)              \
	S(uint32_t, has_seq_starts)        \
	S(uint32_t, has_req_row)           \
	S(uint32_t, fp8)                   \
	S(uint32_t, wide)
SPMLA_KERNEL_SCALARS(kv_gather)

enum {
	KV_GATHER_ROWS = 32,  /* at a time */
	KV_GATHER_LANES = 16, /* a row */
	KV_GATHER_TURNS = KV_GATHER_ROWS * KV_GATHER_LANES / GATHER_ITEMS,
	KV_GATHER_OCTETS = SPMLA_MLA_LATENT / 8 / KV_GATHER_LANES /* a lane's */
};

#ifdef SPMLA_GPU_KERNELS

/* Eight codes times their scale as bf16; a NaN has no sign, which costs a
 * second look where there may be one. */
FN void
kv_gather_octet(const PRIVATE uint32_t *codes, float scale,
		PRIVATE uint32_t *values)
{
	float x[8];
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		g_e4m3x2_to_f32(codes[i / 2] >> 16 * (i % 2), x + 2 * i,
				x + 2 * i + 1);
		x[2 * i] *= scale;
		x[2 * i + 1] *= scale;
		values[i] = g_f32_to_bf16x2(x[2 * i], x[2 * i + 1]);
	}
	if ((g_bits(scale) & 0x7f800000u) != 0x7f800000u &&
	    !g_e4m3_any_nan(codes[0]) && !g_e4m3_any_nan(codes[1]))
		return;
	UNROLL
	for (i = 0; i < 4; i++) {
		if (x[2 * i] != x[2 * i])
			values[i] = (values[i] & 0xffff0000u) | 0x7fc0u;
		if (x[2 * i + 1] != x[2 * i + 1])
			values[i] = (values[i] & 0xffffu) | 0x7fc00000u;
	}
}

/* Eight values; `wide`: p is a multiple of 16. */
FN void
kv_gather_store(GLOBAL uint16_t *p, uint32_t wide, const PRIVATE uint32_t *w)
{
	uint32_t i;

	if (wide) {
		g_store4(p, w);
		return;
	}
	UNROLL
	for (i = 0; i < 4; i++) {
		p[2 * i] = (uint16_t)w[i];
		p[2 * i + 1] = (uint16_t)(w[i] >> 16);
	}
}

/* Four values, at the end of a row. */
FN void
kv_gather_store_last(GLOBAL uint16_t *p, uint32_t wide, uint64_t w)
{
	uint32_t i;

	if (wide) {
		*(GLOBAL uint64_t *)p = w;
		return;
	}
	UNROLL
	for (i = 0; i < 4; i++)
		p[i] = (uint16_t)(w >> 16 * i);
}

/* Moves coded rows, the first of which `to` is, from where they begin in the
 * cache. Zeros are codes and scales too. */
FN void
kv_gather_fp8(GLOBAL const uint8_t *cache, LOCAL const uint64_t *from,
	      GLOBAL uint16_t *to, int64_t stride, uint32_t wide)
{
	const uint32_t lane = g_item() % KV_GATHER_LANES;
	const uint32_t first = g_item() / KV_GATHER_LANES * KV_GATHER_TURNS;
	uint64_t codes[KV_GATHER_TURNS][KV_GATHER_OCTETS];
	uint64_t rope[KV_GATHER_TURNS];
	uint32_t scales[KV_GATHER_TURNS][4], i, j;

	UNROLL
	for (i = 0; i < KV_GATHER_TURNS; i++) {
		const uint64_t at = from[first + i];
		GLOBAL const uint8_t *row =
			cache + (at < GATHER_LEAVE ? at : 0);

		UNROLL
		for (j = 0; j < 4; j++)
			codes[i][j] = scales[i][j] = 0;
		rope[i] = 0;
		if (at >= GATHER_LEAVE)
			continue;
		UNROLL
		for (j = 0; j < KV_GATHER_OCTETS; j++)
			codes[i][j] = *(GLOBAL const uint64_t
						*)(row + 8 * lane +
						   j * SPMLA_MLA_SCALE_GROUP);
		g_load4((GLOBAL const float *)(row +
					       SPMLA_FP8_DS_MLA_SCALE_BYTE),
			scales[i]);
		rope[i] =
			*(GLOBAL const uint64_t *)(row +
						   SPMLA_FP8_DS_MLA_ROPE_BYTE +
						   8 * lane);
	}
	UNROLL
	for (i = 0; i < KV_GATHER_TURNS; i++) {
		GLOBAL uint16_t *out = to + (int64_t)(first + i) * stride;

		if (from[first + i] == GATHER_LEAVE)
			continue;
		UNROLL
		for (j = 0; j < KV_GATHER_OCTETS; j++) {
			uint32_t w[4], pair[2];

			pair[0] = (uint32_t)codes[i][j];
			pair[1] = (uint32_t)(codes[i][j] >> 32);
			kv_gather_octet(pair, g_float(scales[i][j]), w);
			kv_gather_store(out + 8 * lane +
						j * SPMLA_MLA_SCALE_GROUP,
					wide, w);
		}
		kv_gather_store_last(out + SPMLA_MLA_LATENT + 4 * lane, wide,
				     rope[i]);
	}
}

/* The same for rows of values as they shall be. */
FN void
kv_gather_bf16(GLOBAL const uint8_t *cache, LOCAL const uint64_t *from,
	       GLOBAL uint16_t *to, int64_t stride, uint32_t wide)
{
	const uint32_t lane = g_item() % KV_GATHER_LANES;
	uint32_t i, j;

	for (i = g_item() / KV_GATHER_LANES; i < KV_GATHER_ROWS;
	     i += GATHER_ITEMS / KV_GATHER_LANES) {
		const uint64_t at = from[i];
		GLOBAL const uint16_t *row =
			(GLOBAL const uint16_t *)(cache +
						  (at < GATHER_LEAVE ? at : 0));
		GLOBAL uint16_t *out = to + (int64_t)i * stride;
		uint32_t w[KV_GATHER_OCTETS][4];
		uint64_t rope = 0;

		if (at == GATHER_LEAVE)
			continue;
		UNROLL
		for (j = 0; j < KV_GATHER_OCTETS; j++) {
			w[j][0] = w[j][1] = w[j][2] = w[j][3] = 0;
			if (at < GATHER_LEAVE)
				g_load4((GLOBAL const float
						 *)(row + 8 * lane +
						    j * SPMLA_MLA_SCALE_GROUP),
					w[j]);
		}
		if (at < GATHER_LEAVE)
			rope = *(GLOBAL const uint64_t *)(row +
							  SPMLA_MLA_LATENT +
							  4 * lane);
		UNROLL
		for (j = 0; j < KV_GATHER_OCTETS; j++)
			kv_gather_store(out + 8 * lane +
						j * SPMLA_MLA_SCALE_GROUP,
					wide, w[j]);
		kv_gather_store_last(out + SPMLA_MLA_LATENT + 4 * lane, wide,
				     rope);
	}
}

SPMLA_KERNEL(kv_gather)
{
	LOCAL_ARRAY(gather_span, spans, GATHER_ITEMS);
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	LOCAL_ARRAY(uint64_t, from, KV_GATHER_ROWS);
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	const uint32_t entry_bytes =
		s.fp8 ? SPMLA_FP8_DS_MLA_BYTES : SPMLA_MLA_BF16_BYTES;
	const uint32_t i = g_item();
	uint32_t done = 0, tile;

	for (tile = 0; tile < s.requests; tile += GATHER_ITEMS) {
		const uint32_t b = tile + i, there = b < s.requests;
		int64_t begin = 0, end = 0;
		int32_t start = 0, row = -1;
		uint32_t last, first;

		if (there) {
			begin = workspace_starts[b];
			end = s.has_ends           ? workspace_ends[b]
			      : b + 1 < s.requests ? workspace_starts[b + 1]
						   : (int64_t)s.keys;
			start = s.has_seq_starts ? seq_starts[b] : 0;
			row = s.has_req_row ? req_row[b] : (int32_t)b;
		}
		last = gather_spans(&to, there, b, begin, end, start, row,
				    s.rows, s.keys, done, spans, sums);
		first = spans[0].first + g_block() * KV_GATHER_ROWS;
		for (; first < last; first += g_blocks() * KV_GATHER_ROWS) {
			const uint32_t n = first + i;

			BARRIER(); /* nobody reads the last rows' places */
			if (i < KV_GATHER_ROWS) {
				uint64_t page = GATHER_LEAVE;
				uint32_t entry = 0;

				if (n < last)
					page = gather_page(
						&to, spans, block_table,
						table_cols, s.has_cols,
						s.columns, s.stride,
						s.pool_pages, s.page_tokens,
						s.page_stride_bytes, n, &entry);
				if (page < GATHER_LEAVE)
					page += (uint64_t)entry * entry_bytes;
				from[i] = page;
			}
			BARRIER();
			if (s.fp8)
				kv_gather_fp8(cache, from,
					      dst + (int64_t)first *
							      s.dst_stride,
					      s.dst_stride, s.wide);
			else
				kv_gather_bf16(cache, from,
					       dst + (int64_t)first *
							       s.dst_stride,
					       s.dst_stride, s.wide);
		}
		done = last;
	}
}

#endif
#endif
