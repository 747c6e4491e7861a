/* SPDX-License-Identifier: Apache-2.0
 *
 * V4's prologue as one launch: the arguments of both launches that it replaces.
 */
#include "spmla/internal/config.h"
#include "spmla/platform/gpu/launch.h"

/* Whether the index logits of every step of this shape have room. The host knows
 * a bound of the context unless the device adds to it. */
static uint32_t
logits_fit(const spmla_plan *plan, const spmla_step_prologue_args *a)
{
	uint32_t overflow = 0;
	const uint64_t most =
		spmla_i_shape_logits(&a->shape, &plan->config, &overflow);

	return a->source != SPMLA_ADVANCE && !overflow &&
	       most <= plan->logits_elems;
}

spmla_status
spmla_i_gpu_step_prologue_fused(const spmla_i_gpu_queue *queue,
				const spmla_k_step_prologue_params *first,
				const spmla_step_prologue_args *a,
				spmla_i_cut cut)
{
	spmla_k_step_prologue_fused_params p;

	memset(&p, 0, sizeof p);
#define COPY(type, name) p.name = first->name;
	SPMLA_K_step_prologue(COPY, SPMLA_I_K_NONE);
#undef COPY
#define COPY(type, name) p.s.name = first->s.name;
	SPMLA_K_step_prologue(SPMLA_I_K_NONE, COPY);
#undef COPY
	spmla_i_gpu_fused_windows(queue, a->shape.tokens, cut, &p);
	p.units = queue->ctx->buf[SPMLA_BUF_STEP_UNITS];
	p.s.logits_fit = logits_fit(&queue->ctx->plan, a);
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_step_prologue_fused,
				  1 + p.s.windows.blocks, &p);
}
