/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector projection, written once for all widths: included behind vec_*.h
 * and vector_kernels.h. The hard idea: the header fixes the order of a sum (16
 * lanes over i, then a tree), but here a vector holds columns. So a tile sums
 * as many of the 16 lanes at once as it has registers for. It takes the lanes
 * that the tree adds first. Recursion does the rest of the tree.
 */
#include "spmla/platform/cpu/core/kernels_cpu.h"

enum {
	MOST_LANES = 4, /* at once */
	TILE_COLUMNS = 2 * LANES,
	LINE_ELEMS = SPMLA_I_CPU_LINE / 2
};

/* The next prefetch of the next matrix. It walks in memory order, because rows
 * are slow to fetch in the order of the sums. */
typedef struct cursor {
	const uint16_t *row; /* NULL: no prefetch */
	uint32_t column;
} cursor;

/* Some rows of x times TILE_COLUMNS columns of w. */
typedef struct tile {
	const spmla_i_cpu_project *p;
	const uint16_t *x;
	const uint16_t *w;
	cursor *ask;
} tile;

/* Prefetches as much of the next matrix as `lanes` lanes of a tile use of this
 * one. */
INLINE void
ask_lines(cursor *c, const spmla_i_cpu_project *p, uint32_t lanes)
{
	uint32_t lines = p->n / SPMLA_I_LANES * lanes * TILE_COLUMNS;

	if (!c->row)
		return;
	for (lines /= LINE_ELEMS; lines > 0; lines--) {
		__builtin_prefetch(c->row + c->column);
		c->column += LINE_ELEMS;
		if (c->column >= p->columns) {
			c->column = 0;
			c->row += p->w_stride_elems;
		}
	}
}

/* How many lanes of `rows` rows the registers hold. With too few sums at once,
 * an fma would wait for the one before it. */
INLINE uint32_t
lanes_at_once(const uint32_t rows)
{
	return rows * 8 <= PROJECT_SUMS ? 4 : rows * 4 <= PROJECT_SUMS ? 2 : 1;
}

/* Lanes lane, lane + 16 / lanes, .., added as the tree does. A bf16 is the
 * upper half of an f32, so even columns are in one vector and odd ones in the
 * other. */
INLINE void
project_lanes(const tile *t, uint32_t lane, const uint32_t rows,
	      const uint32_t lanes, vec (*out)[2])
{
	const uint32_t apart = SPMLA_I_LANES / lanes;
	const int64_t n = t->p->n, step = apart * t->p->w_stride_elems;
	const uint16_t *w = t->w + lane * t->p->w_stride_elems;
	const uint16_t *x[PROJECT_ROWS];
	vec sum[MOST_LANES][PROJECT_ROWS][2];
	uint32_t g, r, c;
	int64_t i;

	UNROLL for (r = 0; r < rows; r++)
	{
		x[r] = t->x + r * t->p->x_stride_elems + lane;
		UNROLL for (g = 0; g < lanes; g++)
			UNROLL for (c = 0; c < 2; c++) sum[g][r][c] =
				vec_set(0.0f);
	}
	for (i = 0; i < n; i += SPMLA_I_LANES)
		UNROLL for (g = 0; g < lanes; g++, w += step)
		{
			const vec even = vec_load_even(w);
			const vec odd = vec_load_odd(w);

			UNROLL for (r = 0; r < rows; r++)
			{
				const vec by =
					vec_set_bf16(x[r] + i + g * apart);

				sum[g][r][0] = vec_fma(by, even, sum[g][r][0]);
				sum[g][r][1] = vec_fma(by, odd, sum[g][r][1]);
			}
		}
	UNROLL for (r = 0; r < rows; r++) UNROLL for (c = 0; c < 2; c++)
	{
		vec all = sum[0][r][c];

		if (lanes == 4)
			all = vec_add(vec_add(all, sum[2][r][c]),
				      vec_add(sum[1][r][c], sum[3][r][c]));
		else if (lanes == 2)
			all = vec_add(all, sum[1][r][c]);
		out[r][c] = all;
	}
}

/* Lanes lane, lane + step, .. as the tree adds them, for `rows` rows. The calls
 * are real calls, so each has its own small frame. */
#define PROJECT_TILE(rows)                                                 \
	TARGET __attribute__((noinline)) static void project_tree_##rows(  \
		const tile *t, uint32_t lane, uint32_t step, vec(*out)[2]) \
	{                                                                  \
		const uint32_t lanes = lanes_at_once(rows);                \
		vec more[rows][2];                                         \
		uint32_t r, c;                                             \
                                                                           \
		if (step * lanes == SPMLA_I_LANES) {                       \
			ask_lines(t->ask, t->p, lanes);                    \
			project_lanes(t, lane, rows, lanes, out);          \
			return;                                            \
		}                                                          \
		project_tree_##rows(t, lane, 2 * step, out);               \
		project_tree_##rows(t, lane + step, 2 * step, more);       \
		UNROLL for (r = 0; r < rows; r++)                          \
			UNROLL for (c = 0; c < 2; c++) out[r][c] =         \
				vec_add(out[r][c], more[r][c]);            \
	}
PROJECT_TILES(PROJECT_TILE)

typedef void project_tree(const tile *t, uint32_t lane, uint32_t step,
			  vec (*out)[2]);

#define PROJECT_NAME(rows) project_tree_##rows,
static project_tree *const project_trees[PROJECT_ROWS] = {
	PROJECT_TILES(PROJECT_NAME)};

/* A column of the matrix stays in cache while all rows pass; the first rows
 * prefetch the next matrix. */
TARGET static void
project(const spmla_i_cpu_project *p)
{
	cursor next = {p->next == p->w ? NULL : p->next, 0}, none = {NULL, 0};
	vec sum[PROJECT_ROWS][2];
	uint32_t column, row, rows, r;

	for (column = 0; column < p->columns; column += TILE_COLUMNS)
		for (row = 0; row < p->rows; row += rows) {
			const tile t = {p, p->x + row * p->x_stride_elems,
					p->w + column, row ? &none : &next};

			rows = least(p->rows - row, PROJECT_ROWS);
			project_trees[rows - 1](&t, 0, 1, sum);
			for (r = 0; r < rows; r++)
				vec_store_bf16_pairs(
					p->out +
						(row + r) *
							p->out_stride_elems +
						column,
					sum[r][0], sum[r][1]);
		}
}
