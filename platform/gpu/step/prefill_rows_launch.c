/* SPDX-License-Identifier: Apache-2.0
 *
 * prefill_rows: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_prefill_rows(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_prefill_rows_args *a = args;
	spmla_k_prefill_rows_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.query_start_loc = a->query_start_loc;
	p.seq_lens = a->seq_lens;
	p.req_row = a->req_row;
	p.req_id_per_token = a->req_id_per_token;
	p.context_lens = a->context_lens;
	p.workspace_starts = a->workspace_starts;
	p.key_starts = a->key_starts;
	p.key_ends = a->key_ends;
	p.row_starts = a->row_starts;
	p.s.piece_stride = a->piece_stride_elems;
	p.s.requests = a->requests;
	p.s.tokens = a->tokens;
	p.s.keys = a->keys;
	p.s.piece_tokens = a->piece_tokens;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_prefill_rows, 1, &p);
}
