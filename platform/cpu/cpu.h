/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CPU's operations share: their names, reports of bad data, page
 * look-up, and sums in the one order that every backend keeps.
 */
#ifndef SPMLA_PLATFORM_CPU_H
#define SPMLA_PLATFORM_CPU_H

#include "spmla/internal/backend.h"
#include "spmla/internal/bf16.h"
#include "spmla/internal/fp8.h"
#include "spmla/spmla_cpu.h"

/* One function an op; args are the op's, checked and copied. */
#define SPMLA_OP(stem) void spmla_i_cpu_##stem(spmla_ctx *ctx, const void *args);
#include "spmla/ops/ops.inc"
#undef SPMLA_OP

/* Reports bad data into the sticky status. */
void spmla_i_cpu_fault(spmla_ctx *ctx, uint32_t row, spmla_fault fault);

/* A block table as its readers see it. */
typedef struct spmla_i_cpu_table {
	const int32_t *pages;
	const int32_t *cols; /* written columns of each row; NULL: all */
	uint32_t rows;
	uint32_t columns;
	uint32_t stride_elems;
	uint32_t pool_pages;
} spmla_i_cpu_table;

/* The page of a column, or -1 if it was not written or is outside the pool.
 * `row` is valid. */
static inline int32_t
spmla_i_cpu_page(const spmla_i_cpu_table *t, uint32_t row, uint32_t col)
{
	int32_t page;

	if (col >= t->columns)
		return -1;
	if (t->cols && (t->cols[row] < 0 || col >= (uint32_t)t->cols[row]))
		return -1;
	page = t->pages[(uint64_t)row * t->stride_elems + col];
	return page >= 0 && (uint32_t)page < t->pool_pages ? page : -1;
}

/* Address of a page; `page` is valid. */
static inline uint8_t *
spmla_i_cpu_page_at(const spmla_cache *cache, uint64_t page)
{
	return (uint8_t *)cache->base + page * cache->page_stride_bytes;
}

enum { SPMLA_I_LANES = 16 };

/* The fixed tree over 16 lane sums: 8, 4, 2, 1. */
static inline float
spmla_i_cpu_tree(float lane[SPMLA_I_LANES])
{
	uint32_t step, i;

	for (step = SPMLA_I_LANES / 2; step > 0; step /= 2)
		for (i = 0; i < step; i++)
			lane[i] += lane[i + step];
	return lane[0];
}

/* a . b in f32: lane l takes l, l + 16, ..; n is a multiple of 16. */
static inline float
spmla_i_cpu_dot(const float *a, const float *b, uint32_t n)
{
	float lane[SPMLA_I_LANES] = {0};
	uint32_t d, l;

	for (d = 0; d < n; d += SPMLA_I_LANES)
		for (l = 0; l < SPMLA_I_LANES; l++)
			lane[l] += a[d + l] * b[d + l];
	return spmla_i_cpu_tree(lane);
}

#endif
