/* SPDX-License-Identifier: Apache-2.0
 *
 * table_write: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch_gpu.h"

spmla_status
spmla_i_gpu_table_write(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_table_write_args *a = args;
	spmla_k_table_write_params p;

	memset(&p, 0, sizeof p);
	p.staging = queue->ctx->buf[SPMLA_BUF_TABLE_STAGING];
	p.table = queue->ctx->buf[SPMLA_BUF_BLOCK_TABLE_MAIN];
	p.cols = queue->ctx->buf[SPMLA_BUF_TABLE_COLS_MAIN];
	p.s.line = (uint64_t)a->row * queue->ctx->plan.columns;
	p.s.row = a->row;
	p.s.columns = queue->ctx->plan.columns;
	p.s.first_col = a->first_col;
	p.s.count = a->count;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_table_write, 1, &p);
}
