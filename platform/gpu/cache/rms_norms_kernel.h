/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norms: a block takes one row of q or of kv, or four if rows are short and
 * many. A thread has octets i, i + 128, .. of a row, each one load of 16 bytes,
 * up to four in flight, and keeps them until they are written.
 */
#ifndef SPMLA_PLATFORM_GPU_CACHE_RMS_NORMS_KERNEL_H
#define SPMLA_PLATFORM_GPU_CACHE_RMS_NORMS_KERNEL_H

#include "spmla/platform/gpu/cache/v4_row_device.h"

#define SPMLA_K_rms_norms(P, S)      \
	P(const uint16_t, q)         \
	P(const uint16_t, q_weight)  \
	P(uint16_t, q_out)           \
	P(const uint16_t, kv)        \
	P(const uint16_t, kv_weight) \
	P(uint16_t, kv_out)          \
	S(int64_t, q_stride)         \
	S(int64_t, q_out_stride)     \
	S(int64_t, kv_stride)        \
	S(int64_t, kv_out_stride)    \
	S(uint32_t, q_rows)          \
	S(uint32_t, q_width)         \
	S(uint32_t, q_wide)          \
	S(uint32_t, kv_rows)         \
	S(uint32_t, kv_width)        \
	S(uint32_t, kv_wide)         \
	S(float, norm_eps)
SPMLA_KERNEL_SCALARS(rms_norms)

enum {
	RMS_ITEMS = 128,
	RMS_EACH = 4, /* octets of a thread: 4096 values are the widest row */
	RMS_SHORT = 8 * RMS_ITEMS, /* most values of a row that is short */
	RMS_PARTS = RMS_ITEMS / 16
};

#ifdef SPMLA_GPU_KERNELS

/* The rows of q or of kv. */
typedef struct rms_set {
	GLOBAL const uint16_t *x, *weight;
	GLOBAL uint16_t *out;
	int64_t stride, out_stride;
	uint32_t rows, width, wide;
} rms_set;

/* Norms RMS_EACH / each rows from `first` on; a thread has `each` octets of a
 * row, a compile-time constant. `parts` has RMS_PARTS entries for each row. All
 * threads of the block call it. */
FN void
rms_norms_rows(const PRIVATE rms_set *set, uint32_t first, const uint32_t each,
	       float eps, LOCAL float *parts)
{
	const uint32_t item = g_item(), rows = RMS_EACH / each;
	uint32_t w[4 * RMS_EACH], i, k, n;
	float r[RMS_EACH];

	UNROLL
	for (k = 0; k < RMS_EACH; k++) {
		const uint32_t at = 8 * (RMS_ITEMS * (k % each) + item);
		const int64_t row = (int64_t)first + k / each;

		w[4 * k] = w[4 * k + 1] = w[4 * k + 2] = w[4 * k + 3] = 0;
		if (at < set->width && row < set->rows)
			g_row_load8(set->x + row * set->stride + at, set->wide,
				    w + 4 * k);
	}
	/* Zeros behind the row add nothing: a sum of squares is never -0. */
	BARRIER(); /* all have read the previous parts */
	UNROLL
	for (n = 0; n < rows; n++) {
		float sum = 0.0f;

		UNROLL
		for (i = 4 * each * n; i < 4 * each * (n + 1); i++) {
			const float low = g_bf16x2_low(w[i]),
				    high = g_bf16x2_high(w[i]);

			sum += low * low;
			sum += high * high;
		}
		sum = g_sum16(sum);
		if (item % 16 == 0)
			parts[RMS_PARTS * n + item / 16] = sum;
	}
	BARRIER();
	UNROLL
	for (n = 0; n < rows; n++) {
		LOCAL const float *p = parts + RMS_PARTS * n;
		const float sum = ((p[0] + p[4]) + (p[2] + p[6])) +
				  ((p[1] + p[5]) + (p[3] + p[7]));

		r[n] = g_div_rn(
			1.0f,
			g_sqrt_rn(g_div_rn(sum, (float)set->width) + eps));
	}
	UNROLL
	for (k = 0; k < each; k++) {
		const uint32_t at = 8 * (RMS_ITEMS * k + item);
		uint32_t by[4], y[4];

		if (at >= set->width)
			continue;
		g_row_load8(set->weight + at, set->wide, by);
		UNROLL
		for (n = 0; n < rows; n++) {
			const PRIVATE uint32_t *own = w + 4 * (each * n + k);

			UNROLL
			for (i = 0; i < 4; i++)
				y[i] = g_bf16x2_bits(
					g_bf16x2_low(own[i]) * r[n] *
						g_bf16x2_low(by[i]),
					g_bf16x2_high(own[i]) * r[n] *
						g_bf16x2_high(by[i]));
			if (first + n < set->rows)
				g_row_store8(set->out +
						     ((int64_t)first + n) *
							     set->out_stride +
						     at,
					     set->wide, y);
		}
	}
}

/* How many rows a block takes at a time: several, if rows are short and there
 * is not a block for each. Example: on 924 blocks, 900 rows of 1024 values take
 * a block each, and 3000 rows are 750 tiles of 4. */
FN uint32_t
rms_norms_share(uint32_t width, uint64_t rows)
{
	return width <= RMS_SHORT && rows > g_blocks() ? RMS_EACH : 1;
}

SPMLA_KERNEL(rms_norms)
void
spmla_k_rms_norms(SPMLA_KERNEL_ARGS(rms_norms))
{
	LOCAL_ARRAY(float, parts, RMS_PARTS *RMS_EACH);
	const uint64_t rows = (uint64_t)s.q_rows + s.kv_rows;
	const uint32_t q_share = rms_norms_share(s.q_width, rows);
	const uint32_t kv_share = rms_norms_share(s.kv_width, rows);
	const uint32_t q_tiles = (s.q_rows + q_share - 1) / q_share;
	const uint32_t tiles = q_tiles + (s.kv_rows + kv_share - 1) / kv_share;
	uint32_t tile;

	for (tile = g_block(); tile < tiles; tile += g_blocks()) {
		const uint32_t is_q = tile < q_tiles;
		const uint32_t share = is_q ? q_share : kv_share;
		const uint32_t first = (is_q ? tile : tile - q_tiles) * share;
		rms_set set;

		set.x = is_q ? q : kv;
		set.weight = is_q ? q_weight : kv_weight;
		set.out = is_q ? q_out : kv_out;
		set.stride = is_q ? s.q_stride : s.kv_stride;
		set.out_stride = is_q ? s.q_out_stride : s.kv_out_stride;
		set.rows = is_q ? s.q_rows : s.kv_rows;
		set.width = is_q ? s.q_width : s.kv_width;
		set.wide = is_q ? s.q_wide : s.kv_wide;
		if (share > 1)
			rms_norms_rows(&set, first, 1, s.norm_eps, parts);
		else
			rms_norms_rows(&set, first, RMS_EACH, s.norm_eps,
				       parts);
	}
}

#endif
#endif
