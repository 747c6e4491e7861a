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
	uint32_t g;

	for (g = 0; g < spmla_i_group_count(&ctx->plan.config); g++) {
		int32_t *cols = ctx->buf[spmla_i_table_cols(g)];

		if (cols)
			cols[row] = 0;
	}
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
	const int32_t end = (int32_t)(first_col + count);

	/* The engine can write this memory, so its contents are not trusted. */
	if (*cols < 0 || *cols > (int32_t)columns)
		*cols = 0;
	/* Columns that a store skips were never written. */
	for (; *cols < (int32_t)first_col; ++*cols)
		table[*cols] = -1;
	memcpy(table + first_col, pages, count * sizeof *pages);
	if (*cols < end)
		*cols = end;
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

	if (*cols > (int32_t)a->first_col)
		*cols = (int32_t)a->first_col;
	spmla_i_cpu_table_store(ctx, a->group, a->row, a->first_col, a->count,
				staging + a->first_col);
}
