/* SPDX-License-Identifier: Apache-2.0
 *
 * What mqa_logits and mqa_logits_gathered by wgmma share: how products become
 * scores.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_WGMMA_DEVICE_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_WGMMA_DEVICE_H

#include "spmla/platform/gpu/dialect/wgmma.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* Waits for products; then the accumulators may be read. */
FN void
mqa_wgmma_done(PRIVATE float *c, uint32_t count)
{
	g_wgmma_wait();
	g_wgmma_hold_all(c, count);
}

/* Says that the warp no longer reads what the barrier guards. */
FN void
mqa_wgmma_free(LOCAL g_mbarrier *barrier)
{
	g_subgroup_barrier();
	if (g_lane() == 0)
		g_mbarrier_arrive(barrier);
}

/* How relu is computed: the larger of x and 0, or 2^-25 x saturated to 0 .. 1.
 * Of a NaN both are 0. More units of a multiprocessor multiply than compare. No
 * sum of 128 products is as large as 2^25. The weights take the factor back. */
enum { MQA_RELU_LARGER = 0, MQA_RELU_SATURATED = 1 };

#define MQA_WGMMA_DOWN 0x1p-25f
#define MQA_WGMMA_UP   0x1p25f

/* A lane's weights of so many rows of queries, in the order of its
 * accumulators. */
FN void
mqa_wgmma_weights(LOCAL const float *from, uint32_t rows, const uint32_t relu,
		  PRIVATE float *w)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 16 * rows; i++) {
		w[i] = from[i / 2 * 8 + g_lane() % 4 * 2 + i % 2];
		if (relu == MQA_RELU_SATURATED)
			w[i] *= MQA_WGMMA_UP;
	}
}

/* The sums over a lane's heads, for 1, 2 or 4 rows of queries: sums[2 r + i] is
 * that of row r and key g + 8 i of the subgroup. */
FN void
mqa_wgmma_sum_heads(const PRIVATE float *c, const PRIVATE float *w,
		    uint32_t rows, const uint32_t relu, PRIVATE float *sums)
{
	uint32_t r, i, j;

	UNROLL
	for (r = 0; r < rows; r++) {
		float sum[4]; /* even and odd heads of two keys */

		UNROLL
		for (j = 0; j < 8; j++) {
			UNROLL
			for (i = 0; i < 4; i++) {
				const float x = c[32 * r + 4 * j + i];

				sum[i] = g_fma(
					relu == MQA_RELU_SATURATED
						? g_saturate(x * MQA_WGMMA_DOWN)
						: g_larger(x, 0.0f),
					w[16 * r + 2 * j + i % 2],
					j ? sum[i] : 0.0f);
			}
		}
		sums[2 * r] = sum[0] + sum[1];
		sums[2 * r + 1] = sum[2] + sum[3];
	}
}

/* The scores, before the key's scale, of key g + 8 (t % 2) of the subgroup,
 * from the sums of its lanes. With 2 rows a lane gets row t / 2; with 4 it gets
 * rows t / 2 * 2 and t / 2 * 2 + 1. */
FN void
mqa_wgmma_score(const PRIVATE float *sums, uint32_t rows, PRIVATE float *score)
{
	const uint32_t odd = g_lane() & 1u, high = g_lane() & 2u;
	float own[4];
	uint32_t r;

	UNROLL
	for (r = 0; r < rows; r++) {
		own[r] = odd ? sums[2 * r + 1] : sums[2 * r];
		own[r] +=
			g_shuffle_xor_f(odd ? sums[2 * r] : sums[2 * r + 1], 1);
	}
	if (rows == 1) {
		score[0] = own[0] + g_shuffle_xor_f(own[0], 2);
		return;
	}
	UNROLL
	for (r = 0; r < rows / 2; r++) {
		score[r] = high ? own[rows / 2 + r] : own[r];
		score[r] +=
			g_shuffle_xor_f(high ? own[r] : own[rows / 2 + r], 2);
	}
}

#endif
#endif
