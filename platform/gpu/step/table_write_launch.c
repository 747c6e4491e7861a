/* SPDX-License-Identifier: Apache-2.0
 *
 * table_write: from its args to its kernel.
 */
#include "spmla/internal/config.h"
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_table_write(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_table_write_args *a = args;
	spmla_k_table_write_params p;

	memset(&p, 0, sizeof p);
	p.staging = queue->ctx->buf[spmla_i_table_staging(a->group)];
	p.table = queue->ctx->buf[spmla_i_block_table(a->group)];
	p.cols = queue->ctx->buf[spmla_i_table_cols(a->group)];
	p.s.columns = queue->ctx->plan.group_columns[a->group];
	p.s.line = (uint64_t)a->row * p.s.columns;
	p.s.row = a->row;
	p.s.rows = queue->ctx->plan.config.max_rows;
	p.s.whole = spmla_i_group_is_whole(&queue->ctx->plan.config, a->group);
	p.s.first_col = a->first_col;
	p.s.count = a->count;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_table_write, 1, &p);
}
