/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator as a backend: launches run at once, are queued, or are recorded
 * with a copy of their parameters, so that a replay cannot depend on anything
 * that the host does in between.
 */
#include "tests/emulator/emulator.h"

#include "spmla/internal/gpu_sizes.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PARAMS_BYTES = 1024 };

typedef struct launch {
	spmla_i_kernel kernel;
	uint32_t blocks;
	uint32_t list; /* 1 + the list to run, or 0 */
	_Alignas(16) uint8_t params[MAX_PARAMS_BYTES];
} launch;

/* Grows, so that a context takes little memory. */
typedef struct launches {
	launch *at;
	uint32_t count;
	uint32_t room;
} launches;

typedef struct list {
	uint32_t first;
	uint32_t count;
} list;

typedef struct machine {
	uint32_t capturing;
	uint32_t deferred;
	uint32_t capture_first;
	uint32_t queue_head;
	list lists[SPMLA_I_MAX_GRAPHS];
	launches record;
	launches queue;
} machine;

static machine *
device_of(const spmla_ctx *ctx)
{
	return ((spmla_i_gpu_state *)ctx->buf[SPMLA_BUF_BACKEND_STATE])
		->context;
}

static void
run_launch(machine *d, const launch *l)
{
	uint32_t i;

	if (!l->list) {
		emulator_run(l->kernel, l->blocks, l->params);
		return;
	}
	for (i = 0; i < d->lists[l->list - 1].count; i++) {
		const launch *node =
			&d->record.at[d->lists[l->list - 1].first + i];

		emulator_run(node->kernel, node->blocks, node->params);
	}
}

static void
append(launches *all, const launch *l)
{
	if (all->count == all->room) {
		all->room = all->room ? 2 * all->room : 64;
		all->at = realloc(all->at, all->room * sizeof *all->at);
		if (!all->at)
			abort();
	}
	all->at[all->count++] = *l;
}

/* Runs, queues or records it. */
static void
put(machine *d, const launch *l)
{
	if (d->capturing)
		append(&d->record, l);
	else if (d->deferred)
		append(&d->queue, l);
	else
		run_launch(d, l);
}

static spmla_status
launch_kernel(const spmla_i_gpu_queue *queue, spmla_i_kernel kernel,
	      uint32_t blocks, const void *params)
{
	launch l;

	memset(&l, 0, sizeof l);
	l.kernel = kernel;
	l.blocks = blocks;
	if (spmla_i_gpu_kernels[kernel].params_bytes > sizeof l.params)
		abort();
	memcpy(l.params, params, spmla_i_gpu_kernels[kernel].params_bytes);
	put(device_of(queue->ctx), &l);
	return SPMLA_OK;
}

static spmla_status
emu_enqueue(spmla_ctx *ctx, spmla_op op, const void *args, uint32_t bytes,
	    spmla_stream stream)
{
	const spmla_i_gpu_state *state = ctx->buf[SPMLA_BUF_BACKEND_STATE];
	const spmla_i_gpu_queue queue = {ctx, stream, launch_kernel,
					 state->resident_blocks};

	(void)bytes;
	return spmla_i_gpu_enqueue(&queue, op, args);
}

static uint64_t
number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static spmla_status
emu_query(const spmla_native *native, spmla_device *device, spmla_diag *diag)
{
	(void)native;
	(void)diag;
	device->kind = SPMLA_BACKEND_CUDA;
	device->arch = (uint32_t)number("SPMLA_TEST_EMULATOR_ARCH", 90);
	device->sm_count = 3;
	device->subgroup_width = 32;
	device->reserved = 0;
	device->ops = spmla_emulator.ops;
	return SPMLA_OK;
}

static spmla_status
emu_zero(spmla_ctx *ctx, spmla_diag *diag)
{
	(void)diag;
	spmla_i_zero_device(ctx);
	return SPMLA_OK;
}

/* Whether the machine has a kernel. With unproven kernels it is a GPU of AMD's
 * or Intel's: it has products of tiles, whatever the width. Else it is one of
 * CUDA, whose matrix instructions need subgroups of 32. */
static uint32_t
runs(const spmla_plan *plan, uint32_t kernel, uint32_t width)
{
	const uint32_t needs = spmla_i_gpu_kernels[kernel].needs;

	if (needs == SPMLA_GPU_NEEDS_NOTHING)
		return 1;
	if (plan->config.flags & SPMLA_CONFIG_ALLOW_UNPROVEN)
		return needs == SPMLA_GPU_NEEDS_TILE ||
		       (needs == SPMLA_GPU_NEEDS_MFMA && width == 64);
	return width == 32 && spmla_i_gpu_runs((spmla_i_kernel)kernel, plan);
}

static spmla_status
emu_init(spmla_ctx *ctx, const spmla_native *native, spmla_diag *diag)
{
	spmla_i_gpu_state *state = ctx->buf[SPMLA_BUF_BACKEND_STATE];
	const uint32_t width = (uint32_t)number("SPMLA_TEST_EMULATOR", 32);
	uint32_t i;

	(void)diag;
	memset(state, 0, sizeof *state);
	state->context = calloc(1, sizeof(machine));
	if (!state->context)
		abort();
	device_of(ctx)->deferred =
		native && (native->flags & SPMLA_NATIVE_DEFERRED) != 0;
	spmla_i_zero_device(ctx);
	/* There is room for a cluster of any size. */
	for (i = 0; i < SPMLA_KERNEL_COUNT; i++) {
		const spmla_i_gpu_kernel *k = &spmla_i_gpu_kernels[i];
		const uint32_t clusters =
			ctx->plan.device.sm_count / k->cluster;

		if (runs(&ctx->plan, i, width))
			state->resident_blocks[i] =
				(clusters ? clusters : 1) * k->cluster;
	}
	emulator_set(width, number("SPMLA_TEST_SEED", 1));
	return SPMLA_OK;
}

static void
emu_fini(spmla_ctx *ctx)
{
	machine *d = device_of(ctx);

	free(d->record.at);
	free(d->queue.at);
	free(d);
}

static uint32_t
emu_capturing(const spmla_ctx *ctx, spmla_stream stream)
{
	(void)stream;
	return device_of(ctx)->capturing;
}

static spmla_status
emu_begin(spmla_ctx *ctx, spmla_stream stream)
{
	machine *d = device_of(ctx);

	(void)stream;
	d->capturing = 1;
	d->capture_first = d->record.count;
	return SPMLA_OK;
}

static spmla_status
emu_end(spmla_ctx *ctx, uint32_t index)
{
	machine *d = device_of(ctx);

	d->lists[index].first = d->capture_first;
	d->lists[index].count = d->record.count - d->capture_first;
	d->capturing = 0;
	return SPMLA_OK;
}

static spmla_status
emu_abort(spmla_ctx *ctx)
{
	device_of(ctx)->record.count = device_of(ctx)->capture_first;
	device_of(ctx)->capturing = 0;
	return SPMLA_OK;
}

static spmla_status
emu_launch(spmla_ctx *ctx, uint32_t index, spmla_stream stream)
{
	launch l;

	(void)stream;
	memset(&l, 0, sizeof l);
	l.list = index + 1;
	put(device_of(ctx), &l);
	return SPMLA_OK;
}

static spmla_status
emu_status_clear(spmla_ctx *ctx)
{
	spmla_i_step_state *state = ctx->buf[SPMLA_BUF_STEP_STATE];

	state->fault_step = state->fault_count = 0;
	memset(state->fault_rows, 0, sizeof state->fault_rows);
	return SPMLA_OK;
}

static uint32_t
emu_pending(const spmla_ctx *ctx)
{
	return device_of(ctx)->queue.count - device_of(ctx)->queue_head;
}

uint32_t
emulator_queue_run(spmla_ctx *ctx, uint32_t count)
{
	machine *d = device_of(ctx);
	uint32_t ran;

	for (ran = 0; ran < count && emu_pending(ctx); ran++)
		run_launch(d, &d->queue.at[d->queue_head++]);
	if (!emu_pending(ctx))
		d->queue_head = d->queue.count = 0;
	return ran;
}

const spmla_backend spmla_emulator = {
	"emulator",
	SPMLA_BACKEND_CUDA,
	SPMLA_I_OP_BIT(SPMLA_OP_COUNT) - 1,
	emu_query,
	emu_init,
	emu_fini,
	emu_zero,
	emu_enqueue,
	emu_capturing,
	emu_begin,
	emu_end,
	emu_abort,
	emu_launch,
	NULL, /* one timeline */
	emu_status_clear,
	emu_pending,
	NULL,
	NULL,
	NULL,
};
