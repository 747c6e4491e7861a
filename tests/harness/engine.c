/* SPDX-License-Identifier: Apache-2.0
 *
 * See engine.h.
 */
#include "tests/harness/engine.h"

#include "spmla/spmla_cpu.h"
#include "tests/emulator/emulator.h"

static uint32_t
on_cpu(const spmla_ctx *ctx)
{
	return !ctx || ctx->backend == &spmla_cpu;
}

/* E_STATE unless the engine's capture is open; with `open` 0, if any capture
 * is. */
static spmla_status
check_capture(spmla_ctx *ctx, uint32_t open)
{
	const uint32_t is_open = ctx->backend->capturing(ctx, NULL) &&
				 !(open && ctx->capture_open);

	if (is_open != open)
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE, "capture",
				    is_open, SPMLA_WANT_EQUAL, open);
	return SPMLA_OK;
}

spmla_status
engine_capture_begin(spmla_ctx *ctx)
{
	spmla_status s;

	if (on_cpu(ctx))
		return spmla_cpu_capture_begin(ctx);
	s = check_capture(ctx, 0);
	if (s != SPMLA_OK)
		return s;
	if (ctx->graph_count >= ctx->plan.config.max_graphs)
		return spmla_i_fail(&ctx->diag, SPMLA_E_SPACE,
				    "config.max_graphs", ctx->graph_count + 1,
				    SPMLA_WANT_AT_MOST,
				    ctx->plan.config.max_graphs);
	return ctx->backend->capture_begin(ctx, NULL);
}

spmla_status
engine_capture_end(spmla_ctx *ctx, engine_list *list)
{
	spmla_status s;

	if (on_cpu(ctx))
		return spmla_cpu_capture_end(ctx, list);
	if (!list)
		return spmla_i_fail(&ctx->diag, SPMLA_E_NULL, "list", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	s = check_capture(ctx, 1);
	if (s == SPMLA_OK)
		s = ctx->backend->capture_end(ctx, ctx->graph_count);
	if (s != SPMLA_OK)
		return s;
	ctx->graphs[ctx->graph_count].kind = SPMLA_I_GRAPH_ENGINE;
	*list = ++ctx->graph_count;
	return s;
}

spmla_status
engine_capture_abort(spmla_ctx *ctx)
{
	spmla_status s;

	if (on_cpu(ctx))
		return spmla_cpu_capture_abort(ctx);
	s = check_capture(ctx, 1);
	return s == SPMLA_OK ? ctx->backend->capture_abort(ctx) : s;
}

spmla_status
engine_launch(spmla_ctx *ctx, engine_list list)
{
	if (on_cpu(ctx))
		return spmla_cpu_launch(ctx, list);
	if (ctx->backend->capturing(ctx, NULL))
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE, "capture", 1,
				    SPMLA_WANT_EQUAL, 0);
	if (list == 0 || list > ctx->graph_count ||
	    ctx->graphs[list - 1].kind != SPMLA_I_GRAPH_ENGINE)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
				    "list (of spmla_cpu_capture_end)", list,
				    SPMLA_WANT_AT_MOST, ctx->graph_count);
	return ctx->backend->launch(ctx, list - 1, NULL);
}
