/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows times a matrix, bf16 with sums in f32: what q_absorb and v_up share. The
 * hard idea is that threads are laid out by the contract's order of sums. The
 * contract adds in 16 lanes; each lane is 16 of the block's 256 threads, with
 * two of 32 columns a thread. A thread holds its part of the matrix in
 * registers, so that the matrix is read once for many tokens. The lanes' sums
 * meet in shared memory for the tree 8, 4, 2, 1. A product of two bf16 is exact
 * in f32, so g_fma rounds as the contract's sum does.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_PROJECT_DEVICE_H
#define SPMLA_PLATFORM_GPU_PROJECT_PROJECT_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"

enum {
	PROJECT_ITEMS = 256,
	PROJECT_LANES = 16,
	PROJECT_COLUMNS = 32, /* of a block at a time */
	PROJECT_TOKENS = 8,   /* of a block at a time */
	PROJECT_GROUP = 64,   /* tokens for which a block reads a matrix once */
	PROJECT_EACH = 8,     /* rows of a thread, of 128 rows of a matrix */
	/* Stride of a lane's sums in shared memory: one more than their number,
	 * so that the sums of two lanes lie in different banks. */
	PROJECT_LANE = PROJECT_TOKENS * PROJECT_COLUMNS + 1,
	PROJECT_SUMS = PROJECT_LANES * PROJECT_LANE
};

#ifdef SPMLA_GPU_KERNELS

/* Two neighbouring 16-bit values; `aligned`: p is a multiple of 4 bytes. */
FN uint32_t
project_pair(GLOBAL const uint16_t *p, uint32_t aligned)
{
	if (aligned)
		return *(GLOBAL const uint32_t *)p;
	return (uint32_t)p[1] << 16 | p[0];
}

/* Loads the thread's part of 128 rows of a matrix: two columns of its lane's
 * rows. `w` points at the first row, at the first of the block's columns. */
FN void
project_matrix(GLOBAL const uint16_t *w, int64_t stride, uint32_t aligned,
	       PRIVATE uint32_t *pairs)
{
	const uint32_t lane = g_item() / (PROJECT_COLUMNS / 2);
	const uint32_t column = g_item() % (PROJECT_COLUMNS / 2) * 2;
	uint32_t i;

	w += (int64_t)lane * stride + column;
	UNROLL
	for (i = 0; i < PROJECT_EACH; i++)
		pairs[i] = project_pair(
			w + (int64_t)(i * PROJECT_LANES) * stride, aligned);
}

/* Copies n values of each of up to 8 tokens to shared memory: [2][n], of four
 * tokens each; zeros for tokens that are not there. */
FN void
project_rows(GLOBAL const uint16_t *x, int64_t stride, uint32_t tokens,
	     uint32_t n, LOCAL uint64_t *rows)
{
	uint32_t e, t;

	for (e = g_item(); e < 2 * n; e += PROJECT_ITEMS) {
		const uint32_t i = e % n, first = e / n * 4;
		uint64_t four = 0;

		UNROLL
		for (t = 0; t < 4; t++)
			if (first + t < tokens)
				four |= (uint64_t)x[(int64_t)(first + t) *
							    stride +
						    i]
					<< 16 * t;
		rows[e] = four;
	}
}

/* Adds the products with 128 rows of the matrix to the thread's sums, [8
 * tokens][2 columns]. `rows` points at the tokens' values for the first of
 * these rows. */
FN void
project_add(LOCAL const uint64_t *rows, uint32_t n,
	    const PRIVATE uint32_t *pairs, PRIVATE float *sums)
{
	const uint32_t lane = g_item() / (PROJECT_COLUMNS / 2);
	uint32_t i, t;

	UNROLL
	for (i = 0; i < PROJECT_EACH; i++) {
		LOCAL const uint64_t *row = rows + i * PROJECT_LANES + lane;
		const uint64_t four[2] = {row[0], row[n]};
		const float low = g_bf16_to_f32(pairs[i] & 0xffffu);
		const float high = g_float(pairs[i] & 0xffff0000u);

		UNROLL
		for (t = 0; t < PROJECT_TOKENS; t++) {
			const float x = g_bf16_to_f32(
				(uint32_t)(four[t / 4] >> 16 * (t % 4)) &
				0xffffu);

			sums[2 * t] = g_fma(x, low, sums[2 * t]);
			sums[2 * t + 1] = g_fma(x, high, sums[2 * t + 1]);
		}
	}
}

/* Adds up the lanes' sums; returns, as bf16, the sum of token g_item() / 32 and
 * column g_item() % 32. `all` has room for PROJECT_SUMS. The barrier inside
 * follows the last read of the rows, so the caller may store the next rows at
 * once. The barrier that the caller needs after them follows the last read of
 * `all`. */
FN uint16_t
project_total(const PRIVATE float *sums, LOCAL float *all)
{
	const uint32_t lane = g_item() / (PROJECT_COLUMNS / 2);
	const uint32_t column = g_item() % (PROJECT_COLUMNS / 2) * 2;
	float v[PROJECT_LANES];
	uint32_t i, t;

	UNROLL
	for (t = 0; t < PROJECT_TOKENS; t++) {
		LOCAL float *to = all + lane * PROJECT_LANE +
				  t * PROJECT_COLUMNS + column;

		to[0] = sums[2 * t];
		to[1] = sums[2 * t + 1];
	}
	BARRIER();
	UNROLL
	for (i = 0; i < PROJECT_LANES; i++)
		v[i] = all[i * PROJECT_LANE + g_item()];
	UNROLL
	for (i = 0; i < 8; i++)
		v[i] += v[i + 8];
	UNROLL
	for (i = 0; i < 4; i++)
		v[i] += v[i + 4];
	return (uint16_t)g_f32_to_bf16((v[0] + v[2]) + (v[1] + v[3]));
}

#endif
#endif
