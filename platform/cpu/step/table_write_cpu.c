/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of the block tables on the CPU: the bulk copy from TABLE_STAGING, and
 * the stores of a record.
 */
#include "spmla/internal/config.h"
#include "spmla/platform/cpu/step/table_cpu.h"

void
spmla_i_cpu_table_join(spmla_ctx *ctx, uint32_t row)
{
	const spmla_config *c = &ctx->plan.config;
	uint32_t g;

	for (g = 0; g < spmla_i_group_count(c); g++) {
		int32_t *cols = ctx->buf[spmla_i_table_cols(g)];

		if (cols)
			cols[row] = cols[c->max_rows + row] = 0;
	}
}

/* The engine can write this memory, so its contents are not trusted. */
static void
trust(int32_t *cols, int32_t *last, uint32_t columns)
{
	if (*last < 0 || *last > (int32_t)columns)
		*last = 0;
	if (*cols < 0 || *cols > *last)
		*cols = 0;
}

void
spmla_i_cpu_table_store(spmla_ctx *ctx, uint32_t group, uint32_t row,
			uint32_t first_col, uint32_t count,
			const int32_t *pages)
{
	const uint32_t columns = ctx->plan.group_columns[group];
	int32_t *table = (int32_t *)ctx->buf[spmla_i_block_table(group)] +
			 (uint64_t)row * columns;
	int32_t *cols = (int32_t *)ctx->buf[spmla_i_table_cols(group)] + row;
	int32_t *last = cols + ctx->plan.config.max_rows;
	const int32_t end = (int32_t)(first_col + count);

	trust(cols, last, columns);
	/* Columns that a store skips were never written. */
	for (; *last < (int32_t)first_col; ++*last)
		table[*last] = -1;
	memcpy(table + first_col, pages, count * sizeof *pages);
	if (*last < end)
		*last = end;
	if (!spmla_i_group_is_whole(&ctx->plan.config, group)) {
		*cols = *last;
		return;
	}
	if (*cols < (int32_t)first_col)
		return;
	if (*cols < end)
		*cols = end;
	/* It may have closed a gap. */
	while (*cols < *last && table[*cols] >= 0)
		++*cols;
}

void
spmla_i_cpu_table_write(spmla_ctx *ctx, const void *args)
{
	const spmla_table_write_args *a = args;
	const int32_t *staging =
		(const int32_t *)ctx->buf[spmla_i_table_staging(a->group)] +
		(uint64_t)a->row * ctx->plan.group_columns[a->group];
	int32_t *cols =
		(int32_t *)ctx->buf[spmla_i_table_cols(a->group)] + a->row;
	int32_t *last = cols + ctx->plan.config.max_rows;

	trust(cols, last, ctx->plan.group_columns[a->group]);
	if (*cols > (int32_t)a->first_col)
		*cols = (int32_t)a->first_col;
	if (*last > (int32_t)a->first_col)
		*last = (int32_t)a->first_col;
	spmla_i_cpu_table_store(ctx, a->group, a->row, a->first_col, a->count,
				staging + a->first_col);
}
