/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzzer knows of step_prologue.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_step_prologue_args *a = args;

	a->shape.tokens = draw_odd(d, draw_size(d, 8), UINT32_MAX);
	a->shape.requests = draw_odd(d, draw_size(d, 5), UINT32_MAX);
	a->shape.next_n = draw_odd(d, draw_size(d, 4), UINT32_MAX);
	a->shape.max_live_context = draw_odd(d, draw_choice(d, 2), UINT32_MAX);
	a->source = draw_odd(d, draw_choice(d, 3), UINT32_MAX);
}

static spmla_status
call(spmla_ctx *ctx, const void *args)
{
	const spmla_step_prologue_args *a = args;

	return spmla_step_prologue(ctx, &a->shape, (spmla_source)a->source,
				   NULL);
}

const op_entry op_step_prologue = {
	.name = "step_prologue",
	.args_bytes = (uint32_t)sizeof(spmla_step_prologue_args),
	.is_protocol = 1,
	.make = make,
	.call = call};
