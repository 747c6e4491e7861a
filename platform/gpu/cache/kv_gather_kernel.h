/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: a block takes 32 rows of the output at a time. 32 threads look up
 * one page each, as a look-up is a chain of dependent loads; a gather by slot
 * has no search. Then 16 lanes take a row, eight values at a time, and load all
 * of it before they use any. The product of a code and its scale is rounded
 * twice, to f32 and then to bf16. V4 rows have a kernel of their own, as one
 * kernel for both would need more registers.
 */
#ifndef SPMLA_PLATFORM_GPU_CACHE_KV_GATHER_KERNEL_H
#define SPMLA_PLATFORM_GPU_CACHE_KV_GATHER_KERNEL_H

#include "spmla/platform/gpu/cache/gather_device.h"
#include "spmla/platform/gpu/cache/v4_row_device.h"

#define SPMLA_K_kv_gather(P, S)            \
	SPMLA_K_FAULT(P)                   \
	P(const int32_t, workspace_starts) \
	P(const int32_t, workspace_ends)   \
	P(const int32_t, seq_starts)       \
	P(const int32_t, req_row)          \
	P(const int32_t, block_table)      \
	P(const int32_t, table_cols)       \
	P(const int32_t, slots)            \
	P(const uint8_t, cache)            \
	P(uint16_t, dst)                   \
	P(const float, scale_at)           \
	S(int64_t, dst_stride)             \
	S(uint64_t, page_stride_bytes)     \
	SPMLA_S_TABLE(S)                   \
	S(uint32_t, requests)              \
	S(uint32_t, keys)                  \
	S(uint32_t, has_ends)              \
	S(uint32_t, has_seq_starts)        \
	S(uint32_t, has_req_row)           \
	S(uint32_t, has_slots)             \
	S(uint32_t, ring)                  \
	S(uint32_t, layout)                \
	S(uint32_t, fnuz)                  \
	S(float, kv_scale)                 \
	S(uint32_t, has_scale_at)          \
	S(uint32_t, whole_words)           \
	S(uint32_t, wide)
SPMLA_KERNEL_SCALARS(kv_gather)

/* Both kernels have the same parameters. */
#define SPMLA_K_kv_gather_v4(P, S) SPMLA_K_kv_gather(P, S)
typedef spmla_k_kv_gather_scalars spmla_k_kv_gather_v4_scalars;

enum {
	KV_GATHER_ROWS = 32,  /* at a time */
	KV_GATHER_LANES = 16, /* for a row */
	KV_GATHER_TURNS = KV_GATHER_ROWS * KV_GATHER_LANES / GATHER_ITEMS,
	KV_GATHER_OCTETS =
		SPMLA_MLA_LATENT / 8 / KV_GATHER_LANES, /* of a lane */
	KV_GATHER_V4_EACH = 4, /* octets of a thread at a time; a row has 64 */
	KV_GATHER_V4_ROWS = GATHER_ITEMS * KV_GATHER_V4_EACH / 64
};

#ifdef SPMLA_GPU_KERNELS

/* Eight codes times their scale, as bf16. Each NaN becomes 0x7fc0; that is
 * skipped if no code is NaN and the scale is finite. */
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
	if ((g_bits(scale) & G_INF_BITS) != G_INF_BITS &&
	    !g_e4m3_any_nan(codes[0]) && !g_e4m3_any_nan(codes[1]))
		return;
	UNROLL
	for (i = 0; i < 4; i++)
		values[i] = g_bf16x2_one_nan(values[i], x[2 * i], x[2 * i + 1]);
}

/* The same for FNUZ codes. */
FN void
kv_gather_octet_fnuz(const PRIVATE uint32_t *codes, float scale,
		     PRIVATE uint32_t *values)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t two = codes[i / 2] >> 16 * (i % 2);
		const float x = g_fnuz_to_f32(two & 0xffu) * scale;
		const float y = g_fnuz_to_f32(two >> 8 & 0xffu) * scale;

		values[i] = g_bf16x2_one_nan(g_f32_to_bf16x2(x, y), x, y);
	}
}

/* Stores four values of the rope, at the end of a row. */
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

/* Converts KV_GATHER_ROWS rows of FP8_DS_MLA to bf16. Row i begins at from[i]
 * in the cache; the first output row is at `to`. A row of zeros is one with
 * codes and scales of 0. */
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
			g_row_store8(out + 8 * lane + j * SPMLA_MLA_SCALE_GROUP,
				     wide, w);
		}
		kv_gather_store_last(out + SPMLA_MLA_LATENT + 4 * lane, wide,
				     rope[i]);
	}
}

/* The same for FNUZ codes, an octet at a time: slower, but short code. */
FN void
kv_gather_fp8_fnuz(GLOBAL const uint8_t *cache, LOCAL const uint64_t *from,
		   GLOBAL uint16_t *to, int64_t stride, uint32_t wide)
{
	const uint32_t lane = g_item() % KV_GATHER_LANES;
	uint32_t i, j;

	NO_UNROLL
	for (i = g_item() / KV_GATHER_LANES; i < KV_GATHER_ROWS;
	     i += GATHER_ITEMS / KV_GATHER_LANES) {
		const uint64_t at = from[i];
		const uint32_t there = at < GATHER_LEAVE;
		GLOBAL const uint8_t *row = cache + (there ? at : 0);
		GLOBAL uint16_t *out = to + (int64_t)i * stride;

		if (at == GATHER_LEAVE)
			continue;
		NO_UNROLL
		for (j = 0; j < KV_GATHER_OCTETS; j++) {
			uint32_t w[4], codes[2] = {0, 0};
			float scale = 0.0f;

			if (there) {
				GLOBAL const uint8_t *p =
					row + 8 * lane +
					j * SPMLA_MLA_SCALE_GROUP;

				codes[0] = ((GLOBAL const uint32_t *)p)[0];
				codes[1] = ((GLOBAL const uint32_t *)p)[1];
				scale = ((
					GLOBAL const float
						*)(row +
						   SPMLA_FP8_DS_MLA_SCALE_BYTE))
					[j];
			}
			kv_gather_octet_fnuz(codes, scale, w);
			g_row_store8(out + 8 * lane + j * SPMLA_MLA_SCALE_GROUP,
				     wide, w);
		}
		kv_gather_store_last(
			out + SPMLA_MLA_LATENT + 4 * lane, wide,
			there ? *(GLOBAL const uint64_t
					  *)(row + SPMLA_FP8_DS_MLA_ROPE_BYTE +
					     8 * lane)
			      : 0);
	}
}

/* The same for rows of MLA_BF16, which are copied. */
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
			g_row_store8(out + 8 * lane + j * SPMLA_MLA_SCALE_GROUP,
				     wide, w[j]);
		kv_gather_store_last(out + SPMLA_MLA_LATENT + 4 * lane, wide,
				     rope);
	}
}

/* Shared memory. */
typedef struct kv_gather_shared {
	gather_line line;
	uint64_t from[KV_GATHER_ROWS];   /* where rows begin in the cache, */
	uint64_t scales[KV_GATHER_ROWS]; /* and where V4's scales do */
} kv_gather_shared;

/* The parameters of either kernel. */
typedef struct kv_gather_job {
	SPMLA_KERNEL_FIELDS(kv_gather)
	LOCAL kv_gather_shared *shared;
} kv_gather_job;

/* Makes the spans of up to GATHER_ITEMS requests, from `tile` on. *first is the
 * first row of the first span; returns where the last one ends. By slot: all
 * rows. */
FN uint32_t
kv_gather_tile(const PRIVATE kv_gather_job *job, const PRIVATE g_reporter *to,
	       uint32_t tile, uint32_t done, PRIVATE uint32_t *first)
{
	const PRIVATE spmla_k_kv_gather_scalars *s = &job->s;
	const uint32_t b = tile + g_item(), there = b < s->requests;
	int64_t begin = 0, end = 0;
	int32_t start = 0, row = -1;
	uint32_t last;

	*first = 0;
	if (s->has_slots)
		return s->keys;
	if (there) {
		begin = job->workspace_starts[b];
		end = s->has_ends           ? job->workspace_ends[b]
		      : b + 1 < s->requests ? job->workspace_starts[b + 1]
					    : (int64_t)s->keys;
		start = s->has_seq_starts ? job->seq_starts[b] : 0;
		row = s->has_req_row ? job->req_row[b] : (int32_t)b;
	}
	last = gather_spans(to, s->requests <= g_width(), there, b, begin, end,
			    start, row, s->rows, s->keys, done,
			    &job->shared->line);
	*first = job->shared->line.spans[0].first;
	return last;
}

/* Where output row n comes from: as gather_page, by request or by slot. */
FN uint64_t
kv_gather_place(const PRIVATE kv_gather_job *job, const PRIVATE g_reporter *to,
		uint32_t n, PRIVATE uint32_t *entry)
{
	const PRIVATE spmla_k_kv_gather_scalars *s = &job->s;
	const g_table table = G_TABLE(job->block_table, job->table_cols, *s);
	uint32_t slot;

	if (!s->has_slots)
		return gather_page(to, job->shared->line.spans, &table, s->ring,
				   s->page_stride_bytes, n, entry);
	slot = (uint32_t)job->slots[n];
	*entry = slot % s->page_tokens;
	if (slot & 0x80000000u)
		return GATHER_ZEROS;
	if (slot / s->page_tokens >= s->pool_pages) {
		g_report(to, n, G_FAULT_SLOT);
		return GATHER_ZEROS;
	}
	return slot / s->page_tokens * s->page_stride_bytes;
}

/* Loads eight 16-bit values. Pages of V4_FP8 may begin at any multiple of 8
 * bytes. */
FN void
kv_gather_v4_load8(GLOBAL const uint8_t *p, PRIVATE uint32_t *w)
{
	uint64_t x[2];

	if ((uint64_t)p % 16 == 0) {
		g_load4((GLOBAL const float *)p, w);
		return;
	}
	x[0] = ((GLOBAL const uint64_t *)p)[0];
	x[1] = ((GLOBAL const uint64_t *)p)[1];
	w[0] = (uint32_t)x[0];
	w[1] = (uint32_t)(x[0] >> 32);
	w[2] = (uint32_t)x[1];
	w[3] = (uint32_t)(x[1] >> 32);
}

/* Converts `rows` V4 rows to bf16, as kv_gather_fp8 does. With V4_FP8,
 * scales[i] is where the scale bytes of row i lie. */
FN void
kv_gather_v4_values(GLOBAL const uint8_t *cache, LOCAL const uint64_t *from,
		    LOCAL const uint64_t *scales, uint32_t layout,
		    uint32_t fnuz, float kv_scale, GLOBAL uint16_t *to,
		    int64_t stride, uint32_t whole, uint32_t rows)
{
	enum { OCTETS = SPMLA_V4_DIM / 8 };
	const uint32_t is_fp8 = layout == SPMLA_LAYOUT_V4_FP8;
	uint32_t first, i;

	for (first = g_item(); first < rows * OCTETS;
	     first += KV_GATHER_V4_EACH * GATHER_ITEMS) {
		/* Four words of values, or two of codes and their scale. */
		uint32_t w[4 * KV_GATHER_V4_EACH];

		UNROLL
		for (i = 0; i < KV_GATHER_V4_EACH; i++) {
			const uint32_t at = first + i * GATHER_ITEMS;
			const uint32_t o = at % OCTETS;
			const uint64_t entry = from[at / OCTETS];
			const uint32_t is_rope = is_fp8 && o >= V4_ROPE_OCTET;
			GLOBAL const uint8_t *p = cache + entry;
			uint32_t byte = 0; /* of the scale */

			w[4 * i] = w[4 * i + 1] = w[4 * i + 2] = w[4 * i + 3] =
				0; /* also as codes */
			if (entry >= GATHER_LEAVE)
				continue;
			if (is_rope || layout == SPMLA_LAYOUT_V4_BF16) {
				p += is_rope ? SPMLA_V4_NOPE : 0;
				p += 16 * (is_rope ? o - V4_ROPE_OCTET : o);
				kv_gather_v4_load8(p, w + 4 * i);
			} else {
				const uint64_t codes =
					*(GLOBAL const uint64_t *)(p + 8 * o);

				w[4 * i] = (uint32_t)codes;
				w[4 * i + 1] = (uint32_t)(codes >> 32);
				if (is_fp8)
					byte = cache[scales[at / OCTETS] +
						     o / 8];
				w[4 * i + 2] =
					is_fp8 ? byte << 23 : g_bits(kv_scale);
			}
		}
		UNROLL
		for (i = 0; i < KV_GATHER_V4_EACH; i++) {
			const uint32_t at = first + i * GATHER_ITEMS;
			const uint32_t row = at / OCTETS, o = at % OCTETS;
			const uint32_t codes[2] = {w[4 * i], w[4 * i + 1]};
			const uint32_t is_codes =
				layout == SPMLA_LAYOUT_V4_E4M3 ||
				(is_fp8 && o < V4_ROPE_OCTET);

			if (from[row] == GATHER_LEAVE)
				continue;
			if (is_codes && fnuz)
				kv_gather_octet_fnuz(codes,
						     g_float(w[4 * i + 2]),
						     w + 4 * i);
			else if (is_codes)
				kv_gather_octet(codes, g_float(w[4 * i + 2]),
						w + 4 * i);
			g_row_store8(to + (int64_t)row * stride + 8 * o, whole,
				     w + 4 * i);
		}
	}
}

/* Writes to shared memory where output rows [first, first + rows), as far as
 * they are below `last`, come from. Barriers at both ends. */
FN void
kv_gather_places(const PRIVATE kv_gather_job *job, const PRIVATE g_reporter *to,
		 uint32_t first, uint32_t last, uint32_t rows,
		 uint32_t entry_bytes, const uint32_t v4)
{
	const uint32_t i = g_item();

	BARRIER(); /* all have read the previous places */
	if (i < rows) {
		uint64_t page = GATHER_LEAVE;
		uint32_t entry = 0;

		if (first + i < last)
			page = kv_gather_place(job, to, first + i, &entry);
		if (v4)
			job->shared->scales[i] =
				page +
				(uint64_t)job->s.page_tokens *
					SPMLA_V4_VALUE_BYTES +
				(uint64_t)entry * SPMLA_V4_SCALE_BYTES;
		if (page < GATHER_LEAVE)
			page += (uint64_t)entry * entry_bytes;
		job->shared->from[i] = page;
	}
	BARRIER();
}

/* Three, as many as without the code for FNUZ. With it, ptxas left alone would
 * try to fit four blocks, and spill. */
SPMLA_KERNEL_BLOCKS(kv_gather, 3)
void
spmla_k_kv_gather(SPMLA_KERNEL_ARGS(kv_gather))
{
	LOCAL_ARRAY(kv_gather_shared, shared, 1);
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	const kv_gather_job job = {SPMLA_KERNEL_VALUES(kv_gather), shared};
	const uint32_t is_fp8 = s.layout == SPMLA_LAYOUT_FP8_DS_MLA;
	const uint32_t entry_bytes =
		is_fp8 ? SPMLA_FP8_DS_MLA_BYTES : SPMLA_MLA_BF16_BYTES;
	const uint32_t tiles = s.has_slots ? 1 : s.requests;
	uint32_t done = 0, tile, first;

	for (tile = 0; tile < tiles; tile += GATHER_ITEMS) {
		const uint32_t last =
			kv_gather_tile(&job, &to, tile, done, &first);

		first += g_block() * KV_GATHER_ROWS;
		for (; first < last; first += g_blocks() * KV_GATHER_ROWS) {
			kv_gather_places(&job, &to, first, last, KV_GATHER_ROWS,
					 entry_bytes, 0);
			if (is_fp8 && s.fnuz)
				kv_gather_fp8_fnuz(cache, shared->from,
						   dst + (int64_t)first *
								   s.dst_stride,
						   s.dst_stride, s.wide);
			else if (is_fp8)
				kv_gather_fp8(cache, shared->from,
					      dst + (int64_t)first *
							      s.dst_stride,
					      s.dst_stride, s.wide);
			else
				kv_gather_bf16(cache, shared->from,
					       dst + (int64_t)first *
							       s.dst_stride,
					       s.dst_stride, s.wide);
		}
		done = last;
	}
}

/* How many rows a block takes at a time: the smaller number if all blocks then
 * do all rows in one turn. Example: on an H100, which holds 528 blocks, 4000
 * keys are 250 tiles of 16 rows, and 10000 keys are 313 tiles of 32. */
FN uint32_t
kv_gather_v4_rows(uint32_t keys)
{
	return keys <= g_blocks() * KV_GATHER_V4_ROWS ? KV_GATHER_V4_ROWS
						      : KV_GATHER_ROWS;
}

SPMLA_KERNEL_BLOCKS(kv_gather_v4, 4)
void
spmla_k_kv_gather_v4(SPMLA_KERNEL_ARGS(kv_gather_v4))
{
	LOCAL_ARRAY(kv_gather_shared, shared, 1);
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	const kv_gather_job job = {SPMLA_KERNEL_VALUES(kv_gather), shared};
	const uint32_t entry_bytes =
		s.layout == SPMLA_LAYOUT_V4_FP8    ? SPMLA_V4_VALUE_BYTES
		: s.layout == SPMLA_LAYOUT_V4_BF16 ? SPMLA_V4_BF16_BYTES
						   : SPMLA_V4_E4M3_BYTES;
	const uint32_t tiles = s.has_slots ? 1 : s.requests;
	const uint32_t rows = kv_gather_v4_rows(s.keys);
	uint32_t done = 0, tile, first;

	for (tile = 0; tile < tiles; tile += GATHER_ITEMS) {
		const uint32_t last =
			kv_gather_tile(&job, &to, tile, done, &first);

		first += g_block() * rows;
		for (; first < last; first += g_blocks() * rows) {
			kv_gather_places(&job, &to, first, last, rows,
					 entry_bytes, 1);
			kv_gather_v4_values(
				cache, shared->from, shared->scales, s.layout,
				s.fnuz, s.has_scale_at ? *scale_at : s.kv_scale,
				dst + (int64_t)first * s.dst_stride,
				s.dst_stride, s.whole_words, rows);
		}
		done = last;
	}
}

#endif
#endif
