/* SPDX-License-Identifier: Apache-2.0
 *
 * swa_index: from its args to its kernel.
 */
#include "spmla/internal/checked_math.h"
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_swa_index(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_swa_index_args *a = args;
	const uint32_t stride =
		a->page_stride_rows ? a->page_stride_rows : a->page_tokens;
	spmla_k_swa_index_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.positions = a->positions;
	p.s.positions_wide = a->positions_dtype == SPMLA_INT64;
	p.token_row = a->token_row;
	p.slot_mapping = a->slot_mapping;
	p.block_table = a->block_table;
	p.table_cols = a->table_cols;
	p.replay_starts = a->replay_starts;
	p.image_spans = a->image_spans;
	p.indices = a->indices;
	p.lens = a->lens;
	p.query_start_loc = a->query_start_loc;
	p.seq_lens = a->seq_lens;
	p.req_row = a->req_row;
	p.gather_lens = a->gather_lens;
	p.s.indices_stride = a->indices_stride_elems;
	p.s.rows = a->rows;
	p.s.columns = a->columns;
	p.s.stride = a->table_stride_elems;
	p.s.pool_pages =
		spmla_i_slot_pages(a->pool_pages, a->page_tokens, stride);
	p.s.page_tokens = a->page_tokens;
	p.s.has_cols = a->table_cols != NULL;
	p.s.page_stride_rows = stride;
	p.s.ring = a->ring;
	p.s.tokens = a->tokens;
	p.s.requests = a->requests;
	p.s.window = a->window;
	p.s.width = a->width;
	p.s.max_image = a->image_spans ? a->max_image : 0;
	p.s.padded_lens = a->padded_lens;
	p.s.has_images = a->image_spans != NULL;
	p.s.has_replay = a->replay_starts != NULL;
	p.s.has_req_row = a->req_row != NULL;
	return spmla_i_gpu_launch(
		queue, SPMLA_KERNEL_swa_index,
		a->tokens > a->requests ? a->tokens : a->requests, &p);
}
