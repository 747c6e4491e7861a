/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the CPU's operations: their names, reports of bad data, page
 * look-up, and sums in the one order that every backend keeps.
 */
#ifndef SPMLA_PLATFORM_CPU_CORE_CPU_H
#define SPMLA_PLATFORM_CPU_CORE_CPU_H

#include "spmla/internal/backend.h"
#include "spmla/internal/bf16.h"
#include "spmla/internal/fp8.h"
#include "spmla/spmla_cpu.h"

/* One function per operation. args are its arguments, checked and copied. */
#define SPMLA_OP(stem) \
	void spmla_i_cpu_##stem(spmla_ctx *ctx, const void *args);
#include "spmla/ops/ops.inc"
#undef SPMLA_OP

/* Reports bad data to the sticky status. May be used inside spmla_i_cpu_for:
 * the reports of its items count when it ends, whatever their order. */
void spmla_i_cpu_fault(spmla_ctx *ctx, uint32_t row, spmla_fault fault);

/* Makes `count` reports of this step at once; key = the smallest (row << 32 |
 * fault) of them. */
void spmla_i_cpu_report(spmla_ctx *ctx, uint64_t key, uint64_t count);

/* A block table as operations read it. */
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

/* An entry of e4m3 index keys lies in runs of 16 values: where its first run
 * begins in a page, and how far apart its runs are. */
static inline uint64_t
spmla_i_cpu_index_at(const spmla_cache *cache, uint64_t entry)
{
	const uint64_t tile = SPMLA_INDEX_TILE;

	if (cache->layout != SPMLA_LAYOUT_INDEX_FP8_TILED)
		return entry * SPMLA_INDEX_DIM;
	return entry / tile * tile * SPMLA_INDEX_DIM + entry % tile * tile;
}

static inline uint32_t
spmla_i_cpu_index_run(const spmla_cache *cache)
{
	return cache->layout == SPMLA_LAYOUT_INDEX_FP8_TILED
		       ? SPMLA_INDEX_TILE * SPMLA_INDEX_TILE
		       : SPMLA_INDEX_TILE;
}

#define SPMLA_I_LOG2_E 1.44269504088896341f
#define SPMLA_I_LN_2   0.693147180559945309f

enum {
	SPMLA_I_CPU_LINE = 64, /* bytes of a cache line */
	SPMLA_I_LANES = 16     /* lanes of a sum */
};

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

/* Four lanes. A struct, because gcc keeps it in a register at -O2; an array of
 * 16 lanes stays in memory (some five times slower). */
typedef struct spmla_i_cpu_lanes {
	float v[4];
} spmla_i_cpu_lanes;

static inline spmla_i_cpu_lanes
spmla_i_cpu_mac(spmla_i_cpu_lanes sum, const float *a, const float *b)
{
	uint32_t l;

	for (l = 0; l < 4; l++)
		sum.v[l] += a[l] * b[l];
	return sum;
}

static inline spmla_i_cpu_lanes
spmla_i_cpu_add(spmla_i_cpu_lanes a, spmla_i_cpu_lanes b)
{
	uint32_t l;

	for (l = 0; l < 4; l++)
		a.v[l] += b.v[l];
	return a;
}

/* a . b in f32: lane l of 16 takes l, l + 16, .., then the tree 8, 4, 2, 1. n
 * is a multiple of 16. */
static inline float
spmla_i_cpu_dot(const float *a, const float *b, uint32_t n)
{
	spmla_i_cpu_lanes s0 = {{0}}, s1 = {{0}}, s2 = {{0}}, s3 = {{0}};
	uint32_t d;

	for (d = 0; d < n; d += SPMLA_I_LANES) {
		s0 = spmla_i_cpu_mac(s0, a + d, b + d);
		s1 = spmla_i_cpu_mac(s1, a + d + 4, b + d + 4);
		s2 = spmla_i_cpu_mac(s2, a + d + 8, b + d + 8);
		s3 = spmla_i_cpu_mac(s3, a + d + 12, b + d + 12);
	}
	s0 = spmla_i_cpu_add(spmla_i_cpu_add(s0, s2), spmla_i_cpu_add(s1, s3));
	return (s0.v[0] + s0.v[2]) + (s0.v[1] + s0.v[3]);
}

#endif
