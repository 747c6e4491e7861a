/* SPDX-License-Identifier: Apache-2.0
 *
 * token_map: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_token_map(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_token_map_args *a = args;
	spmla_k_token_map_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.query_start_loc = a->query_start_loc;
	p.seq_lens = a->seq_lens;
	p.req_row = a->req_row;
	p.req_id_per_token = a->req_id_per_token;
	p.token_row = a->token_row;
	p.positions = a->positions;
	p.context_lens = a->context_lens;
	p.s.requests = a->requests;
	p.s.tokens = a->tokens;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_token_map, 1, &p);
}
