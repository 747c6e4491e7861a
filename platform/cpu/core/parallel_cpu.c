/* SPDX-License-Identifier: Apache-2.0
 *
 * See parallel_cpu.h. A loop is two counters: one hands out scratch, the other
 * items. Whatever the caller's parallel-for does with its indices, no scratch
 * has two workers and every item runs once.
 */
#include "spmla/platform/cpu/core/parallel_cpu.h"

#include "spmla/internal/cpu_sizes.h"

typedef struct loop {
	spmla_ctx *ctx;
	const void *args;
	spmla_i_cpu_item run;
	uint64_t items;
	uint64_t workers;
	uint64_t joined; /* bodies that began; atomic */
	uint64_t taken;  /* items handed out, at the end more; atomic */
} loop;

static spmla_i_cpu_state *
state_of(const spmla_ctx *ctx)
{
	return ctx->buf[SPMLA_BUF_BACKEND_STATE];
}

uint32_t
spmla_i_cpu_workers(const spmla_ctx *ctx)
{
	const uint32_t planned = ctx->plan.config.cpu_workers;

	/* 0 in a plan that was stored before this field existed. */
	return planned > 1 && state_of(ctx)->parallel_for ? planned : 1;
}

/* The body. Its index is not trusted. */
static void
work(void *arg, uint32_t index)
{
	loop *l = arg;
	const uint64_t worker = spmla_i_fetch_add_u64(&l->joined, 1);
	uint64_t item;

	(void)index;
	if (worker >= l->workers)
		return;
	for (;;) {
		item = spmla_i_fetch_add_u64(&l->taken, 1);
		if (item >= l->items)
			return;
		l->run(l->ctx, l->args, (uint32_t)worker, (uint32_t)item);
	}
}

void
spmla_i_cpu_in_order(spmla_ctx *ctx, const void *args, uint32_t items,
		     spmla_i_cpu_item run)
{
	uint32_t i;

	for (i = 0; i < items; i++)
		run(ctx, args, 0, i);
}

void
spmla_i_cpu_for(spmla_ctx *ctx, const void *args, uint32_t items,
		spmla_i_cpu_item run)
{
	spmla_i_cpu_state *st = state_of(ctx);
	const uint32_t workers = spmla_i_cpu_workers(ctx);
	const uint32_t count = items < workers ? items : workers;
	loop l = {ctx, args, run, items, count, 0, 0};

	if (count <= 1) {
		spmla_i_cpu_in_order(ctx, args, items, run);
		return;
	}
	st->loop_key = UINT64_MAX;
	st->loop_faults = 0;
	st->loop_open = 1;
	st->parallel_for(st->parallel_user, count, work, &l);
	if (l.joined == 0) /* it called nothing */
		work(&l, 0);
	st->loop_open = 0;
	if (st->loop_faults > 0)
		spmla_i_cpu_report(ctx, st->loop_key, st->loop_faults);
}
