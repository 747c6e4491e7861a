/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: a block takes 32 rows of the output at a time. 32 items find their
 * pages, side by side as each look-up waits for the one before it; then all
 * items move four values at a time, of several rows at once. The product of a
 * code and its scale is rounded twice, to f32 and then to bf16.
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
	S(uint32_t, whole_words)
SPMLA_KERNEL_SCALARS(kv_gather)

enum {
	KV_GATHER_ROWS = 32,                 /* at a time */
	KV_GATHER_QUADS = SPMLA_MLA_DIM / 4, /* of a row: four values each */
	KV_GATHER_EACH = 6 /* quads that an item has in flight */
};

#ifdef SPMLA_GPU_KERNELS

/* A code times its scale as bf16; a NaN has no sign. Without branches: the
 * code's bits as f32, a subnormal if it is one, are 2^120 too small. */
FN uint32_t
kv_gather_product(uint32_t code, float scale)
{
	const uint32_t sign = (code & 0x80u) << 24, size = code & 0x7fu;
	const float x = g_float(size << 20) * 0x1p120f;
	const float y = g_float(sign | g_bits(x)) * scale;
	const uint32_t is_nan = size == 0x7fu || y != y;

	return is_nan ? 0x7fc0u : g_f32_to_bf16(y);
}

/* Two codes. */
FN uint32_t
kv_gather_pair(uint32_t codes, float scale)
{
	return kv_gather_product(codes >> 8 & 0xffu, scale) << 16 |
	       kv_gather_product(codes & 0xffu, scale);
}

/* Moves those rows, the first of which `to` is, from where they begin in the
 * cache. */
FN void
kv_gather_values(GLOBAL const uint8_t *cache, LOCAL const uint64_t *from,
		 GLOBAL uint16_t *to, int64_t stride, uint32_t fp8,
		 uint32_t whole_words)
{
	enum {
		ALL = KV_GATHER_ROWS * KV_GATHER_QUADS,
		LATENT = SPMLA_MLA_LATENT / 4, /* quads of it */
		GROUP = SPMLA_MLA_SCALE_GROUP / 4
	};
	uint32_t first, i, j;

	for (first = g_item(); first < ALL;
	     first += KV_GATHER_EACH * GATHER_ITEMS) {
		/* Two words of values, or one of codes and their scale. */
		uint32_t low[KV_GATHER_EACH], high[KV_GATHER_EACH];

		UNROLL
		for (i = 0; i < KV_GATHER_EACH; i++) {
			const uint32_t at = first + i * GATHER_ITEMS;
			const uint32_t quad = at % KV_GATHER_QUADS;
			const uint32_t is_coded = fp8 && quad < LATENT;
			const uint64_t entry = from[at / KV_GATHER_QUADS];
			uint32_t low_at = 8 * quad, high_at = 8 * quad + 4;

			if (fp8) {
				low_at = is_coded ? 4 * quad
						  : SPMLA_FP8_DS_MLA_ROPE_BYTE +
							    8 * (quad - LATENT);
				high_at =
					is_coded ? SPMLA_FP8_DS_MLA_SCALE_BYTE +
							   4 * (quad / GROUP)
						 : low_at + 4;
			}
			low[i] = high[i] = 0; /* as codes and a scale too */
			if (entry < GATHER_LEAVE) {
				low[i] = *(GLOBAL const uint32_t *)(cache +
								    entry +
								    low_at);
				high[i] = *(GLOBAL const uint32_t *)(cache +
								     entry +
								     high_at);
			}
		}
		UNROLL
		for (i = 0; i < KV_GATHER_EACH; i++) {
			const uint32_t at = first + i * GATHER_ITEMS;
			const uint32_t row = at / KV_GATHER_QUADS;
			const uint32_t quad = at % KV_GATHER_QUADS;
			GLOBAL uint16_t *out =
				to + (int64_t)row * stride + 4 * quad;
			uint64_t values = (uint64_t)high[i] << 32 | low[i];

			if (from[row] == GATHER_LEAVE)
				continue;
			if (fp8 && quad < LATENT) {
				const float scale = g_float(high[i]);

				values = (uint64_t)kv_gather_pair(low[i] >> 16,
								  scale)
						 << 32 |
					 kv_gather_pair(low[i], scale);
			}
			if (whole_words) {
				*(GLOBAL uint64_t *)out = values;
				continue;
			}
			for (j = 0; j < 4; j++)
				out[j] = (uint16_t)(values >> 16 * j);
		}
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
			kv_gather_values(cache, from,
					 dst + (int64_t)first * s.dst_stride,
					 s.dst_stride, s.fp8, s.whole_words);
		}
		done = last;
	}
}

#endif
#endif
