/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's side of the step protocol: tickets and slots. The host counts what
 * it wrote and launched; the device says what it has consumed. A slot is free
 * once its ticket is consumed. Until it is filled it holds ticket 0 or an older
 * one, so the device can never take it for the next.
 */
#include "spmla/internal/backend.h"
#include "spmla/internal/config.h"
#include "spmla/internal/step_lists.h"

#include <string.h>

static spmla_status
check_free(spmla_ctx *ctx)
{
	const uint64_t in_use = ctx->written - spmla_i_consumed(ctx);

	if (in_use >= ctx->plan.config.ring_slots)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RING_FULL,
				    "records not consumed", in_use,
				    SPMLA_WANT_AT_MOST,
				    ctx->plan.config.ring_slots - 1);
	return SPMLA_OK;
}

/* The last ticket known to be launched. The device may be ahead of the launches
 * that the engine has reported. */
static uint64_t
last_launched(const spmla_ctx *ctx)
{
	const uint64_t consumed = spmla_i_consumed(ctx);

	return ctx->launched > consumed ? ctx->launched : consumed;
}

static spmla_status
null_argument(spmla_ctx *ctx, const char *field)
{
	return spmla_i_fail(&ctx->diag, SPMLA_E_NULL, field, 0,
			    SPMLA_WANT_NOT_NULL, 0);
}

/* Hands a filled slot to the device. */
static void
publish(spmla_ctx *ctx, spmla_i_record *slot, uint64_t *ticket)
{
	ctx->written++;
	spmla_i_store_u64(&slot->ticket, ctx->written);
	*ticket = ctx->written;
}

spmla_status
spmla_step_push(spmla_ctx *ctx, const void *record, uint64_t *ticket)
{
	const spmla_i_record *from = record;
	spmla_i_record *slot;
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (!record || !ticket)
		return null_argument(ctx, record ? "ticket" : "record");
	if (SPMLA_I_PTR(record) % 16 != 0)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE, "record",
				    SPMLA_I_PTR(record), SPMLA_WANT_MULTIPLE_OF,
				    16);
	if (from->magic != SPMLA_I_RECORD_MAGIC ||
	    from->key != ctx->plan.record_key || from->bytes < sizeof *from ||
	    from->bytes > ctx->plan.record_bytes)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RECORD, "record.key",
				    from->key, SPMLA_WANT_EQUAL,
				    ctx->plan.record_key);
	s = check_free(ctx);
	if (s != SPMLA_OK)
		return s;
	slot = spmla_i_slot(ctx, ctx->written + 1);
	spmla_i_store_u64(&slot->ticket, 0);
	memcpy((uint8_t *)slot + sizeof slot->ticket,
	       (const uint8_t *)record + sizeof slot->ticket,
	       from->bytes - sizeof slot->ticket);
	publish(ctx, slot, ticket);
	return SPMLA_OK;
}

spmla_status
spmla_step_write(spmla_ctx *ctx, const spmla_step *step, uint64_t *ticket,
		 spmla_step_info *info)
{
	spmla_i_record *slot;
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (!ticket)
		return null_argument(ctx, "ticket");
	s = check_free(ctx);
	if (s != SPMLA_OK)
		return s;
	slot = spmla_i_slot(ctx, ctx->written + 1);
	spmla_i_store_u64(&slot->ticket, 0);
	s = spmla_step_encode(&ctx->plan, step, slot, ctx->plan.record_bytes,
			      info, &ctx->diag);
	if (s == SPMLA_OK)
		publish(ctx, slot, ticket);
	return s;
}

spmla_status
spmla_step_undo(spmla_ctx *ctx, uint64_t ticket)
{
	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (ticket == 0 || ticket != ctx->written)
		return spmla_i_fail(&ctx->diag, SPMLA_E_TICKET, "ticket",
				    ticket, SPMLA_WANT_EQUAL, ctx->written);
	if (ticket <= last_launched(ctx))
		return spmla_i_fail(
			&ctx->diag, SPMLA_E_TICKET, "ticket (launched)", ticket,
			SPMLA_WANT_AT_LEAST, last_launched(ctx) + 1);
	spmla_i_store_u64(&spmla_i_slot(ctx, ticket)->ticket, 0);
	ctx->written--;
	return SPMLA_OK;
}

spmla_status
spmla_i_ticket_due(spmla_ctx *ctx, uint64_t ticket)
{
	const uint64_t last = last_launched(ctx);

	if (ticket != last + 1)
		return spmla_i_fail(&ctx->diag, SPMLA_E_TICKET, "ticket",
				    ticket, SPMLA_WANT_EQUAL, last + 1);
	if (ticket > ctx->written)
		return spmla_i_fail(&ctx->diag, SPMLA_E_TICKET,
				    "ticket (not written)", ticket,
				    SPMLA_WANT_AT_MOST, ctx->written);
	return SPMLA_OK;
}

spmla_status
spmla_step_launched(spmla_ctx *ctx, uint64_t ticket)
{
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	/* The ticket after the last one reported is due if it is written. The
	 * device may end the step while this runs, so the counter of consumed
	 * steps is not read. */
	if (ticket == ctx->launched + 1 && ticket <= ctx->written) {
		ctx->launched = ticket;
		return SPMLA_OK;
	}
	s = spmla_i_ticket_due(ctx, ticket);
	if (s == SPMLA_OK)
		ctx->launched = ticket;
	return s;
}

spmla_status
spmla_step_resync(spmla_ctx *ctx)
{
	uint64_t consumed;
	uint32_t i;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	consumed = spmla_i_consumed(ctx);
	if (ctx->backend->pending(ctx))
		return spmla_i_fail(&ctx->diag, SPMLA_E_BUSY, "queue",
				    ctx->backend->pending(ctx),
				    SPMLA_WANT_EQUAL, 0);
	ctx->written = consumed;
	ctx->launched = consumed;
	for (i = 0; i < ctx->plan.config.ring_slots; i++)
		spmla_i_store_u64(&spmla_i_slot(ctx, i)->ticket, 0);
	return SPMLA_OK;
}

/* The largest value of measure m among the first `count` shapes that satisfy
 * all measures before m. The measures are tokens, requests, next_n and live
 * context. */
static uint32_t
shape_most(const spmla_config *c, uint32_t count, const uint32_t need[4],
	   uint32_t m)
{
	uint32_t most = 0, i, k;

	for (i = 0; i < count; i++) {
		const spmla_shape b = spmla_i_shape_at(c, i);
		const uint32_t limit[4] = {b.tokens, b.requests, b.next_n,
					   b.max_live_context};

		for (k = 0; k < m && need[k] <= limit[k]; k++)
			;
		if (k == m && limit[m] > most)
			most = limit[m];
	}
	return most;
}

/* Checks that `got` fits one of the first `count` shapes; *live = the most
 * context that it may then have. */
static spmla_status
fit_shape(const spmla_config *c, uint32_t count, const uint32_t got[4],
	  uint32_t *live, spmla_diag *diag)
{
	static const char *const fields[4] = {"shape.tokens", "shape.requests",
					      "shape.next_n",
					      "shape.max_live_context"};
	uint32_t m;

	for (m = 0; m < 4; m++) {
		if (m < 3 && got[m] == 0)
			return spmla_i_fail(diag, SPMLA_E_RANGE, fields[m], 0,
					    SPMLA_WANT_AT_LEAST, 1);
		*live = shape_most(c, count, got, m);
		if (got[m] > *live)
			return spmla_i_fail(diag, SPMLA_E_RANGE, fields[m],
					    got[m], SPMLA_WANT_AT_MOST, *live);
	}
	return SPMLA_OK;
}

spmla_status
spmla_i_check_shape(spmla_ctx *ctx, const spmla_shape *shape,
		    uint32_t *live_context, uint32_t *prefill)
{
	const spmla_config *c = &ctx->plan.config;
	uint32_t live = 0;
	spmla_status s;

	if (!shape)
		return null_argument(ctx, "shape");
	const uint32_t got[4] = {shape->tokens, shape->requests, shape->next_n,
				 shape->max_live_context};

	*prefill = 0;
	s = fit_shape(c, c->bucket_count, got, &live,
		      c->max_prefill_tokens ? NULL : &ctx->diag);
	if (s != SPMLA_OK && c->max_prefill_tokens) {
		*prefill = 1;
		s = fit_shape(c, spmla_i_shape_count(c), got, &live,
			      &ctx->diag);
	}
	*live_context = got[3] ? got[3] : live;
	return s;
}

/* How a prefill of this shape cuts its index logits. Decode may have room for
 * more of them than the budget allows. */
static void
set_pieces(const spmla_plan *plan, spmla_step_prologue_args *a)
{
	const uint64_t stride =
		spmla_i_piece_stride(&plan->config, a->shape.max_live_context);
	const uint64_t budget =
		plan->config.logits_budget_bytes / sizeof(float);
	const uint64_t room =
		plan->logits_elems < budget ? plan->logits_elems : budget;
	const uint64_t rows = room / stride; /* >= 1 */

	a->piece_stride_elems = stride;
	a->piece_tokens =
		rows < a->shape.tokens ? (uint32_t)rows : a->shape.tokens;
}

spmla_status
spmla_step_prologue(spmla_ctx *ctx, const spmla_shape *shape,
		    spmla_source source, spmla_stream stream)
{
	spmla_step_prologue_args args = {{0, 0, 0, 0}, 0, 0, 0};
	uint32_t live = 0, prefill = 0;
	uint64_t last;
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	last = last_launched(ctx); /* before this prologue runs */
	s = spmla_i_check_shape(ctx, shape, &live, &prefill);
	if (s == SPMLA_OK &&
	    (source < SPMLA_FROM_RING || source > SPMLA_ADVANCE))
		s = spmla_i_fail(
			&ctx->diag, SPMLA_E_RANGE, "source", (uint64_t)source,
			SPMLA_I_FROM_TO(SPMLA_FROM_RING, SPMLA_ADVANCE));
	if (s == SPMLA_OK)
		s = spmla_i_tables_bound(ctx);
	if (s == SPMLA_OK) {
		args.shape = *shape;
		args.source = (uint32_t)source;
		args.shape.max_live_context = live;
		if (prefill)
			set_pieces(&ctx->plan, &args);
	}
	s = spmla_i_op_end(ctx, s, SPMLA_OP_step_prologue, &args, sizeof args,
			   stream);
	if (s != SPMLA_OK)
		return s;
	if (ctx->backend->capturing(ctx, stream)) {
		ctx->recorded = args;
		if (ctx->capture_open) {
			spmla_i_graph *g = &ctx->graphs[ctx->graph_count];

			g->prologue = args;
			if (source == SPMLA_FROM_RING) {
				g->ring = args.shape;
				ctx->capture_rings++;
			}
		}
		return spmla_i_step_lists(ctx, args.shape.tokens, stream);
	}
	ctx->prologue = args;
	ctx->recorded.shape.tokens = 0;
	if (source == SPMLA_FROM_RING && last < ctx->written)
		ctx->launched = last + 1; /* an eager prologue is the launch */
	return spmla_i_step_lists(ctx, args.shape.tokens, stream);
}
