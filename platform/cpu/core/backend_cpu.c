/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU backend: an operation runs at once, is queued, or is recorded. A
 * recorded operation is its number and a copy of its arguments. So a replay is
 * a walk over nodes and cannot depend on what the host does in between.
 */
#include "spmla/internal/cpu_sizes.h"
#include "spmla/platform/cpu/core/cpu.h"
#include "spmla/platform/cpu/core/kernels_cpu.h"

static void (*const run_op[SPMLA_OP_COUNT])(spmla_ctx *, const void *) = {
#define SPMLA_OP(stem) spmla_i_cpu_##stem,
#include "spmla/ops/ops.inc"
#undef SPMLA_OP
};

static spmla_i_cpu_state *
state_of(const spmla_ctx *ctx)
{
	return ctx->buf[SPMLA_BUF_BACKEND_STATE];
}

static void
run_list(spmla_ctx *ctx, uint32_t index)
{
	const spmla_i_cpu_list *list = &state_of(ctx)->lists[index];
	const spmla_i_cpu_node *nodes = ctx->buf[SPMLA_BUF_GRAPH_NODES];
	uint32_t i;

	for (i = 0; i < list->count; i++) {
		const spmla_i_cpu_node *n = &nodes[list->first + i];

		run_op[n->op](ctx, &n->args);
	}
}

static spmla_status
no_space(spmla_ctx *ctx, const char *field, uint32_t most)
{
	return spmla_i_fail(&ctx->diag, SPMLA_E_SPACE, field,
			    (uint64_t)most + 1, SPMLA_WANT_AT_MOST, most);
}

/* The next free entry of the queue, or NULL. */
static spmla_i_cpu_node *
queue_entry(spmla_ctx *ctx)
{
	spmla_i_cpu_state *st = state_of(ctx);
	spmla_i_cpu_node *queue = ctx->buf[SPMLA_BUF_QUEUE];
	const uint32_t entries = ctx->plan.config.queue_entries;

	if (st->queue_count >= entries)
		return NULL;
	return &queue[(st->queue_head + st->queue_count++) % entries];
}

static spmla_status
cpu_enqueue(spmla_ctx *ctx, spmla_op op, const void *args, uint32_t bytes,
	    spmla_stream stream)
{
	spmla_i_cpu_state *st = state_of(ctx);
	spmla_i_cpu_node *node;

	(void)stream;
	if (st->capturing) {
		if (st->node_count >= ctx->plan.config.max_graph_nodes)
			return no_space(ctx, "config.max_graph_nodes",
					ctx->plan.config.max_graph_nodes);
		node = (spmla_i_cpu_node *)ctx->buf[SPMLA_BUF_GRAPH_NODES] +
		       st->node_count++;
	} else if (st->deferred) {
		node = queue_entry(ctx);
		if (!node)
			return no_space(ctx, "config.queue_entries",
					ctx->plan.config.queue_entries);
	} else {
		run_op[op](ctx, args);
		return SPMLA_OK;
	}
	node->op = (uint32_t)op;
	memcpy(&node->args, args, bytes);
	return SPMLA_OK;
}

static spmla_status
cpu_query(const spmla_native *native, spmla_device *device, spmla_diag *diag)
{
	(void)native;
	(void)diag;
	device->kind = SPMLA_BACKEND_CPU;
	device->arch = 0;
	device->sm_count = 1;
	device->subgroup_width = SPMLA_I_LANES;
	device->reserved = 0;
	device->ops = spmla_cpu.ops;
	return SPMLA_OK;
}

static spmla_status
cpu_init(spmla_ctx *ctx, const spmla_native *native, spmla_diag *diag)
{
	(void)diag;
	memset(state_of(ctx), 0, sizeof(spmla_i_cpu_state));
	state_of(ctx)->deferred =
		native && (native->flags & SPMLA_NATIVE_DEFERRED) != 0;
	state_of(ctx)->kernels = spmla_i_cpu_choose(native ? native->flags : 0);
	if (native && native->struct_bytes > SPMLA_NATIVE_MIN_BYTES) {
		state_of(ctx)->parallel_for = native->parallel_for;
		state_of(ctx)->parallel_user = native->parallel_user;
	}
	/* Counters, tables and the engine's buffers start at zero. */
	spmla_i_zero_device(ctx);
	return SPMLA_OK;
}

static spmla_status
cpu_zero(spmla_ctx *ctx, spmla_diag *diag)
{
	(void)diag;
	spmla_i_zero_device(ctx);
	return SPMLA_OK;
}

static void
cpu_fini(spmla_ctx *ctx)
{
	memset(state_of(ctx), 0, sizeof(spmla_i_cpu_state));
}

static uint32_t
cpu_capturing(const spmla_ctx *ctx, spmla_stream stream)
{
	(void)stream;
	return state_of(ctx)->capturing;
}

static spmla_status
cpu_begin(spmla_ctx *ctx, spmla_stream stream)
{
	spmla_i_cpu_state *st = state_of(ctx);

	(void)stream;
	st->capturing = 1;
	st->capture_first = st->node_count;
	return SPMLA_OK;
}

static spmla_status
cpu_end(spmla_ctx *ctx, uint32_t index)
{
	spmla_i_cpu_state *st = state_of(ctx);

	st->lists[index].first = st->capture_first;
	st->lists[index].count = st->node_count - st->capture_first;
	st->capturing = 0;
	return SPMLA_OK;
}

static spmla_status
cpu_abort(spmla_ctx *ctx)
{
	spmla_i_cpu_state *st = state_of(ctx);

	st->node_count = st->capture_first;
	st->capturing = 0;
	return SPMLA_OK;
}

static spmla_status
cpu_launch(spmla_ctx *ctx, uint32_t index, spmla_stream stream)
{
	spmla_i_cpu_node *entry;

	(void)stream;
	if (!state_of(ctx)->deferred) {
		run_list(ctx, index);
		return SPMLA_OK;
	}
	entry = queue_entry(ctx);
	if (!entry)
		return no_space(ctx, "config.queue_entries",
				ctx->plan.config.queue_entries);
	entry->op = SPMLA_OP_COUNT;
	entry->list = index;
	return SPMLA_OK;
}

/* The CPU keeps no other status. */
static spmla_status
cpu_status_clear(spmla_ctx *ctx)
{
	(void)ctx;
	return SPMLA_OK;
}

static uint32_t
cpu_pending(const spmla_ctx *ctx)
{
	return state_of(ctx)->queue_count;
}

const spmla_backend spmla_cpu = {
	"cpu",
	SPMLA_BACKEND_CPU,
	SPMLA_I_OP_BIT(SPMLA_OP_COUNT) - 1,
	cpu_query,
	cpu_init,
	cpu_fini,
	cpu_zero,
	cpu_enqueue,
	cpu_capturing,
	cpu_begin,
	cpu_end,
	cpu_abort,
	cpu_launch,
	NULL, /* one timeline */
	cpu_status_clear,
	cpu_pending,
	NULL,
	NULL,
	NULL,
};

/* ---- The calls of spmla_cpu.h ------------------------------------------- */

/* Refuses the state of another backend. */
static uint32_t
is_cpu(const spmla_ctx *ctx)
{
	return spmla_i_lives(ctx) && ctx->backend == &spmla_cpu;
}

static spmla_status
check_cpu(spmla_ctx *ctx)
{
	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (!is_cpu(ctx))
		return spmla_i_fail(&ctx->diag, SPMLA_E_UNSUPPORTED,
				    "ctx (of another backend)",
				    ctx->backend->kind, SPMLA_WANT_EQUAL,
				    SPMLA_BACKEND_CPU);
	return SPMLA_OK;
}

uint32_t
spmla_cpu_queue_run(spmla_ctx *ctx, uint32_t count)
{
	spmla_i_cpu_state *st;
	const spmla_i_cpu_node *queue;
	uint32_t ran;

	if (!is_cpu(ctx))
		return 0;
	st = state_of(ctx);
	queue = ctx->buf[SPMLA_BUF_QUEUE];
	for (ran = 0; ran < count && st->queue_count > 0; ran++) {
		const spmla_i_cpu_node *n = &queue[st->queue_head];

		if (n->op == SPMLA_OP_COUNT)
			run_list(ctx, n->list);
		else
			run_op[n->op](ctx, &n->args);
		st->queue_head =
			(st->queue_head + 1) % ctx->plan.config.queue_entries;
		st->queue_count--;
	}
	return ran;
}

const char *
spmla_cpu_variant(const spmla_ctx *ctx)
{
	return is_cpu(ctx) ? state_of(ctx)->kernels->name : "";
}

uint32_t
spmla_cpu_queue_pending(const spmla_ctx *ctx)
{
	return is_cpu(ctx) ? cpu_pending(ctx) : 0;
}

spmla_status
spmla_cpu_capture_begin(spmla_ctx *ctx)
{
	const spmla_status s = check_cpu(ctx);

	if (s != SPMLA_OK)
		return s;
	if (state_of(ctx)->capturing)
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE, "capture", 1,
				    SPMLA_WANT_EQUAL, 0);
	if (ctx->graph_count >= ctx->plan.config.max_graphs)
		return no_space(ctx, "config.max_graphs",
				ctx->plan.config.max_graphs);
	ctx->capture_before = ctx->recorded;
	return cpu_begin(ctx, NULL);
}

/* The engine's own capture is open. */
static spmla_status
check_engine_capture(spmla_ctx *ctx)
{
	const uint32_t open = state_of(ctx)->capturing && !ctx->capture_open;

	if (!open)
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE, "capture", open,
				    SPMLA_WANT_EQUAL, 1);
	return SPMLA_OK;
}

spmla_status
spmla_cpu_capture_end(spmla_ctx *ctx, spmla_cpu_list *list)
{
	spmla_status s = check_cpu(ctx);

	if (s != SPMLA_OK)
		return s;
	if (!list)
		return spmla_i_fail(&ctx->diag, SPMLA_E_NULL, "list", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	s = check_engine_capture(ctx);
	if (s != SPMLA_OK)
		return s;
	s = cpu_end(ctx, ctx->graph_count);
	ctx->graphs[ctx->graph_count].kind = SPMLA_I_GRAPH_ENGINE;
	*list = ++ctx->graph_count;
	return s;
}

spmla_status
spmla_cpu_capture_abort(spmla_ctx *ctx)
{
	spmla_status s = check_cpu(ctx);

	if (s == SPMLA_OK)
		s = check_engine_capture(ctx);
	if (s != SPMLA_OK)
		return s;
	ctx->recorded = ctx->capture_before;
	return cpu_abort(ctx);
}

spmla_status
spmla_cpu_launch(spmla_ctx *ctx, spmla_cpu_list list)
{
	const spmla_status s = check_cpu(ctx);

	if (s != SPMLA_OK)
		return s;
	if (state_of(ctx)->capturing)
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE, "capture", 1,
				    SPMLA_WANT_EQUAL, 0);
	if (list == 0 || list > ctx->graph_count ||
	    ctx->graphs[list - 1].kind != SPMLA_I_GRAPH_ENGINE)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
				    "list (of spmla_cpu_capture_end)", list,
				    SPMLA_WANT_AT_MOST, ctx->graph_count);
	return cpu_launch(ctx, list - 1, NULL);
}
