/* SPDX-License-Identifier: Apache-2.0
 *
 * logits_rows: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_logits_rows(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_logits_rows_args *a = args;
	spmla_k_logits_rows_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.token_row = a->token_row;
	p.context_lens = a->context_lens;
	p.row_starts = a->row_starts;
	p.s.capacity = a->capacity_elems;
	p.s.tokens = a->tokens;
	p.s.has_token_row = a->token_row != NULL;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_logits_rows, 1, &p);
}
