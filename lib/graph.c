/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture and replay. The backend knows what a graph is. This file enforces
 * that one launch takes one ticket. It also remembers the step that a launch
 * begins: later calls outside the graph belong to it.
 */
#include "spmla/internal/backend.h"

#include <string.h>

spmla_status
spmla_graph_begin(spmla_ctx *ctx, spmla_stream stream)
{
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (ctx->capture_open || ctx->backend->capturing(ctx, stream))
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE, "capture", 1,
				    SPMLA_WANT_EQUAL, 0);
	if (ctx->graph_count >= ctx->plan.config.max_graphs)
		return spmla_i_fail(&ctx->diag, SPMLA_E_SPACE,
				    "config.max_graphs", ctx->graph_count + 1,
				    SPMLA_WANT_AT_MOST,
				    ctx->plan.config.max_graphs);
	s = ctx->backend->capture_begin(ctx, stream);
	if (s != SPMLA_OK)
		return s;
	ctx->capture_open = 1;
	ctx->capture_rings = 0;
	ctx->capture_failed = SPMLA_OK;
	ctx->capture_before = ctx->recorded;
	memset(&ctx->graphs[ctx->graph_count], 0, sizeof ctx->graphs[0]);
	return SPMLA_OK;
}

static spmla_status
check_open(spmla_ctx *ctx)
{
	if (!ctx->capture_open)
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE, "capture", 0,
				    SPMLA_WANT_EQUAL, 1);
	return SPMLA_OK;
}

spmla_status
spmla_graph_end(spmla_ctx *ctx, spmla_graph *graph)
{
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (!graph)
		return spmla_i_fail(&ctx->diag, SPMLA_E_NULL, "graph", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	s = check_open(ctx);
	if (s != SPMLA_OK)
		return s;
	if (ctx->capture_failed != SPMLA_OK)
		return spmla_i_fail(&ctx->diag, SPMLA_E_CAPTURE,
				    "status of an op in the capture",
				    ctx->capture_failed, SPMLA_WANT_EQUAL,
				    SPMLA_OK);
	if (ctx->capture_rings > 1)
		return spmla_i_fail(&ctx->diag, SPMLA_E_CAPTURE,
				    "FROM_RING prologues in the capture",
				    ctx->capture_rings, SPMLA_WANT_AT_MOST, 1);
	s = ctx->backend->capture_end(ctx, ctx->graph_count);
	if (s != SPMLA_OK)
		return s;
	ctx->graphs[ctx->graph_count].kind = ctx->capture_rings
						     ? SPMLA_I_GRAPH_TICKET
						     : SPMLA_I_GRAPH_NO_TICKET;
	*graph = ++ctx->graph_count;
	ctx->capture_open = 0;
	return SPMLA_OK;
}

spmla_status
spmla_graph_abort(spmla_ctx *ctx)
{
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	s = check_open(ctx);
	if (s != SPMLA_OK)
		return s;
	s = ctx->backend->capture_abort(ctx);
	if (s != SPMLA_OK)
		return s;
	ctx->recorded = ctx->capture_before;
	ctx->capture_open = 0;
	return SPMLA_OK;
}

/* Refuses a replay whose calls would be refused outside of a graph. Calls
 * before the graph's first prologue belong to the step that began last. */
static spmla_status
check_step(spmla_ctx *ctx, const spmla_i_graph *g)
{
	const spmla_shape *got = &ctx->prologue.shape;
	const spmla_shape *under = &g->under.shape;
	const uint32_t piece = g->under.piece_tokens;
	const spmla_want same = piece ? SPMLA_WANT_EQUAL : SPMLA_WANT_NOTHING;
	const spmla_i_check checks[] = {
		{"graph: shape.tokens (of the last prologue)", got->tokens,
		 g->exact ? SPMLA_WANT_EQUAL : SPMLA_WANT_AT_LEAST,
		 g->exact ? under->tokens : g->tokens},
		{"graph: shape.requests (of the last prologue)", got->requests,
		 same, under->requests},
		{"graph: shape.max_live_context (of the last prologue)",
		 got->max_live_context, same, under->max_live_context},
		{"graph: tokens a piece (of the last prologue)",
		 ctx->prologue.piece_tokens, SPMLA_WANT_EQUAL, piece},
	};

	if (g->tokens == 0)
		return SPMLA_OK;
	return spmla_i_check_now(ctx, checks, SPMLA_I_COUNT(checks));
}

/* Refuses a record that is larger than the graph's shape. The prologue would
 * refuse it too, but would use up the ticket, its joins and its stores. */
static spmla_status
check_record(spmla_ctx *ctx, const spmla_i_graph *g, uint64_t ticket)
{
	const spmla_i_record *r = spmla_i_slot(ctx, ticket);
	const spmla_i_check checks[] = {
		{"record: tokens (of the graph's shape)", r->tokens,
		 SPMLA_WANT_AT_MOST, g->ring.tokens},
		{"record: requests (of the graph's shape)", r->requests,
		 SPMLA_WANT_AT_MOST, g->ring.requests},
		{"record: next_n (of the graph's shape)", r->next_n,
		 SPMLA_WANT_AT_MOST, g->ring.next_n},
		{"record: live context (of the graph's shape)", r->live_context,
		 SPMLA_WANT_AT_MOST, g->ring.max_live_context},
	};

	return spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
}

static spmla_status
check_replay(spmla_ctx *ctx, const spmla_i_graph *g, uint64_t ticket)
{
	spmla_status s = SPMLA_OK;

	if (g->kind == SPMLA_I_GRAPH_TICKET) {
		s = spmla_i_ticket_due(ctx, ticket);
		if (s == SPMLA_OK)
			s = check_record(ctx, g, ticket);
	} else if (ticket != 0) {
		s = spmla_i_fail(&ctx->diag, SPMLA_E_TICKET,
				 "ticket (graph takes none)", ticket,
				 SPMLA_WANT_EQUAL, 0);
	}
	return s == SPMLA_OK ? check_step(ctx, g) : s;
}

spmla_status
spmla_graph_replay(spmla_ctx *ctx, spmla_graph graph, uint64_t ticket,
		   spmla_stream stream)
{
	const spmla_i_graph *g;
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (ctx->backend->capturing(ctx, stream))
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE, "capture", 1,
				    SPMLA_WANT_EQUAL, 0);
	g = graph > 0 && graph <= ctx->graph_count ? &ctx->graphs[graph - 1]
						   : NULL;
	if (!g || g->kind == SPMLA_I_GRAPH_ENGINE)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
				    "graph (of spmla_graph_end)", graph,
				    SPMLA_WANT_AT_MOST, ctx->graph_count);
	s = check_replay(ctx, g, ticket);
	if (s == SPMLA_OK)
		s = ctx->backend->launch(ctx, graph - 1, stream);
	if (s != SPMLA_OK)
		return s;
	if (g->kind == SPMLA_I_GRAPH_TICKET)
		ctx->launched = ticket;
	if (g->prologue.shape.tokens) {
		ctx->prologue = g->prologue;
		ctx->recorded.shape.tokens = 0;
	}
	return s;
}
