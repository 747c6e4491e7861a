/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norms: a block a row of either set. An item has the octets i, i + 128, ..
 * of it, each one load of 16 bytes, all in flight, and keeps them until they
 * are written.
 */
#ifndef SPMLA_PLATFORM_GPU_RMS_NORMS_H
#define SPMLA_PLATFORM_GPU_RMS_NORMS_H

#include "spmla/platform/gpu/v4_row_gpu.h"

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
	RMS_EACH = 4, /* octets of the widest row, 4096 values, an item */
	RMS_PARTS = RMS_ITEMS / 16
};

#ifdef SPMLA_GPU_KERNELS

/* One row; `parts` has RMS_PARTS entries. By all items together. */
FN void
rms_norms_row(GLOBAL const uint16_t *x, GLOBAL const uint16_t *weight,
	      GLOBAL uint16_t *out, uint32_t width, uint32_t wide, float eps,
	      LOCAL float *parts)
{
	const uint32_t item = g_item();
	uint32_t w[4 * RMS_EACH], i, k;
	float sum = 0.0f, r;

	UNROLL
	for (k = 0; k < RMS_EACH; k++) {
		const uint32_t at = 8 * (RMS_ITEMS * k + item);

		w[4 * k] = w[4 * k + 1] = w[4 * k + 2] = w[4 * k + 3] = 0;
		if (at < width)
			g_row_load8(x + at, wide, w + 4 * k);
	}
	/* Zeros behind the row add nothing: a sum of squares is never -0. */
	UNROLL
	for (i = 0; i < 4 * RMS_EACH; i++) {
		const float low = v4_low(w[i]), high = v4_high(w[i]);

		sum += low * low;
		sum += high * high;
	}
	sum = g_sum16(sum);
	BARRIER(); /* nobody reads the parts of the row before */
	if (item % 16 == 0)
		parts[item / 16] = sum;
	BARRIER();
	sum = ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
	      ((parts[1] + parts[5]) + (parts[3] + parts[7]));
	r = g_div_rn(1.0f, g_sqrt_rn(g_div_rn(sum, (float)width) + eps));
	UNROLL
	for (k = 0; k < RMS_EACH; k++) {
		const uint32_t at = 8 * (RMS_ITEMS * k + item);
		uint32_t by[4];

		if (at >= width)
			continue;
		g_row_load8(weight + at, wide, by);
		UNROLL
		for (i = 0; i < 4; i++)
			by[i] = v4_pair(
				v4_low(w[4 * k + i]) * r * v4_low(by[i]),
				v4_high(w[4 * k + i]) * r * v4_high(by[i]));
		g_row_store8(out + at, wide, by);
	}
}

SPMLA_KERNEL(rms_norms)
{
	LOCAL_ARRAY(float, parts, RMS_PARTS);
	const uint32_t rows = s.q_rows + s.kv_rows;
	uint32_t r;

	for (r = g_block(); r < rows; r += g_blocks()) {
		const uint32_t is_q = r < s.q_rows;
		const int64_t n = is_q ? r : r - s.q_rows;

		rms_norms_row(is_q ? q + n * s.q_stride : kv + n * s.kv_stride,
			      is_q ? q_weight : kv_weight,
			      is_q ? q_out + n * s.q_out_stride
				   : kv_out + n * s.kv_out_stride,
			      is_q ? s.q_width : s.kv_width,
			      is_q ? s.q_wide : s.kv_wide, s.norm_eps, parts);
	}
}

#endif
#endif
