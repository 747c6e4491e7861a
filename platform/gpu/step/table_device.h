/* SPDX-License-Identifier: Apache-2.0
 *
 * A block table as kernels have it, and the page of one of its columns.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_TABLE_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_TABLE_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/divide.h"

/* Its scalars, beside the parameters block_table and table_cols. */
#define SPMLA_S_TABLE(S)         \
	S(uint32_t, rows)        \
	S(uint32_t, columns)     \
	S(uint32_t, stride)      \
	S(uint32_t, pool_pages)  \
	S(uint32_t, page_tokens) \
	S(uint32_t, has_cols)

#ifdef SPMLA_GPU_KERNELS

/* How many keys of positions 0 .. position lie on this rank. Ranks have `run`
 * positions in turn; this one has them from `first` of each `cycle` on. *own:
 * the last key is of the position itself. Without ranks, run and cycle are 1,
 * and first is 0. */
FN uint32_t
g_own_keys(uint32_t position, spmla_g_divisor cycle, uint32_t run,
	   uint32_t first, PRIVATE uint32_t *own)
{
	const uint32_t n = g_divide(position, cycle);
	const uint32_t rest = position - n * cycle.by + 1;
	const uint32_t more = rest > first ? rest - first : 0;

	*own = more > 0 && more <= run;
	return n * run + (more < run ? more : run);
}

typedef struct g_table {
	GLOBAL const int32_t *pages;
	GLOBAL const int32_t *cols; /* columns of a row that are written */
	uint32_t rows;
	uint32_t columns;
	uint32_t stride;
	uint32_t pool_pages;
	uint32_t page_tokens;
	uint32_t has_cols;
} g_table;

/* The initializers of one: the two pointers, and the struct of scalars. */
#define G_TABLE(pages, cols, s)                                       \
	{                                                             \
		pages, cols, (s).rows, (s).columns, (s).stride,       \
			(s).pool_pages, (s).page_tokens, (s).has_cols \
	}

/* The page of a column, or -1 if it was not written or is outside the pool;
 * `row` is inside the table. */
FN int32_t
g_table_page(const PRIVATE g_table *t, uint32_t row, uint32_t col)
{
	int32_t page;

	if (col >= t->columns ||
	    (t->has_cols &&
	     (t->cols[row] < 0 || col >= (uint32_t)t->cols[row])))
		return -1;
	page = t->pages[(uint64_t)row * t->stride + col];
	return page >= 0 && (uint32_t)page < t->pool_pages ? page : -1;
}

#endif
#endif
