/* SPDX-License-Identifier: Apache-2.0
 *
 * combine_index: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_combine_index(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_combine_index_args *a = args;
	spmla_k_combine_index_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.req_id_per_token = a->req_id_per_token;
	p.context_lens = a->context_lens;
	p.seq_lens = a->seq_lens;
	p.gather_lens = a->gather_lens;
	p.topk_indices = a->topk_indices;
	p.image_spans = a->image_spans;
	p.indices = a->indices;
	p.lens = a->lens;
	p.s.topk_stride = a->topk_stride_elems;
	p.s.indices_stride = a->indices_stride_elems;
	p.s.tokens = a->tokens;
	p.s.requests = a->requests;
	p.s.window = a->window;
	p.s.ratio = a->ratio;
	p.s.topk = a->topk;
	p.s.width = a->width;
	p.s.request_rows = a->request_rows;
	p.s.window_row = a->window_row;
	p.s.max_image = a->image_spans ? a->max_image : 0;
	p.s.has_images = a->image_spans != NULL;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_combine_index, a->tokens,
				  &p);
}
