/* SPDX-License-Identifier: Apache-2.0
 *
 * Enqueues, records and replays on Level Zero. A graph is a closed command
 * list. The hard idea: a list must not be submitted while it runs. So a graph
 * is recorded as several copies at the same time, and the copies are submitted
 * in turn. Each copy has a fence that tells when it has ended. No call waits
 * for a fence.
 */
#include "spmla/platform/gpu/launch.h"
#include "spmla/platform/level_zero/init_level_zero.h"
#include "spmla/spmla_level_zero.h"

#include <string.h>

static spmla_status
failed(spmla_ctx *ctx, const char *function, spmla_gpu_result code)
{
	return spmla_i_gpu_refused(&ctx->diag, function, code);
}

static spmla_status
check_list(spmla_ctx *ctx, spmla_stream stream)
{
	if (!stream)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
				    "stream (an immediate command list)", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	if (stream == spmla_i_ze_state_of(ctx)->queue)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
				    "stream (an immediate command list, not "
				    "native.queue)",
				    0, SPMLA_WANT_NOTHING, 0);
	return SPMLA_OK;
}

/* ---- Recording ---------------------------------------------------------- */

static spmla_i_ze_graph *
recorded(const spmla_ctx *ctx)
{
	return &spmla_i_ze_state_of(ctx)->graphs[ctx->graph_count];
}

/* Commands after the barrier see what commands before it wrote. */
static spmla_gpu_result
barrier(const spmla_i_ze_driver *driver, spmla_ze_list list)
{
	return driver->append_barrier(list, NULL, 0, NULL);
}

static spmla_gpu_result
append(const spmla_i_ze_driver *driver, spmla_ze_list list,
       spmla_ze_kernel kernel, uint32_t blocks)
{
	const spmla_ze_group_count groups = {blocks, 1, 1};
	spmla_gpu_result r =
		driver->append_kernel(list, kernel, &groups, NULL, 0, NULL);

	return r ? r : barrier(driver, list);
}

static spmla_gpu_result
set_arguments(const spmla_i_ze_driver *driver, const spmla_i_gpu_kernel *k,
	      spmla_ze_kernel kernel, const uint8_t *params)
{
	spmla_gpu_result r = 0;
	uint32_t i;

	for (i = 0; r == 0 && i < k->pointers; i++) {
		const uint8_t *at = params + i * sizeof(void *);
		const void *pointer;

		memcpy(&pointer, at, sizeof pointer);
		r = driver->set_argument(kernel, i, sizeof pointer,
					 pointer ? at : NULL);
	}
	return r ? r
		 : driver->set_argument(kernel, k->pointers,
					k->params_bytes - k->scalars_offset,
					params + k->scalars_offset);
}

/* Appends a kernel to the stream's list, or to every copy of the graph that is
 * being recorded. */
static spmla_status
launch_kernel(const spmla_i_gpu_queue *queue, spmla_i_kernel kernel,
	      uint32_t blocks, const void *params)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(queue->ctx);
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);
	void *const handle = state->kernels[kernel];
	const char *function = "zeKernelSetArgumentValue";
	spmla_gpu_result r;
	uint32_t i;

	r = set_arguments(driver, &spmla_i_gpu_kernels[kernel], handle, params);
	if (r == 0) {
		function = "zeCommandListAppendLaunchKernel";
		if (!state->recorded)
			r = append(driver, queue->stream, handle, blocks);
		for (i = 0; r == 0 && state->recorded && i < state->copies; i++)
			r = append(driver, recorded(queue->ctx)->lists[i],
				   handle, blocks);
	}
	if (r)
		return spmla_i_fail_at(&queue->ctx->diag, SPMLA_E_DEVICE,
				       function, (uint32_t)kernel, (uint32_t)r,
				       SPMLA_WANT_EQUAL, 0);
	return SPMLA_OK;
}

spmla_status
spmla_i_ze_enqueue(spmla_ctx *ctx, spmla_op op, const void *args,
		   uint32_t bytes, spmla_stream stream)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	const spmla_i_gpu_queue queue = {ctx, stream, launch_kernel,
					 state->resident_blocks};
	spmla_status s = check_list(ctx, stream);
	spmla_gpu_result r = 0;

	(void)bytes;
	if (s != SPMLA_OK)
		return s;
	/* On another list the operation would run at once, not be recorded. */
	if (state->recorded && stream != state->recorded)
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE,
				    "stream (outside the capture)", 0,
				    SPMLA_WANT_NOTHING, 0);
	if (!state->recorded)
		r = barrier(spmla_i_ze_driver_of(state), stream);
	if (r)
		return failed(ctx, "zeCommandListAppendBarrier", r);
	s = spmla_i_gpu_enqueue(&queue, op, args);
	if (s == SPMLA_E_UNSUPPORTED)
		return spmla_i_fail(&ctx->diag, s, "op", (uint32_t)op,
				    SPMLA_WANT_NOTHING, 0);
	return s;
}

/* ---- Graphs ------------------------------------------------------------- */

uint32_t
spmla_i_ze_capturing(const spmla_ctx *ctx, spmla_stream stream)
{
	(void)stream;
	return spmla_i_ze_state_of(ctx)->recorded != NULL;
}

/* Opens the list of copy i, and creates its fence. */
static spmla_status
open_copy(spmla_ctx *ctx, spmla_i_ze_graph *graph, uint32_t i)
{
	const spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);
	const spmla_ze_list_desc desc = {SPMLA_ZE_LIST_DESC, NULL,
					 state->ordinal, 0};
	const spmla_ze_fence_desc fence_desc = {SPMLA_ZE_FENCE_DESC, NULL, 0};
	spmla_ze_fence fence = NULL;
	spmla_ze_list list = NULL;
	spmla_gpu_result r;

	r = driver->list_create(state->context, state->device, &desc, &list);
	if (r)
		return failed(ctx, "zeCommandListCreate", r);
	graph->lists[i] = list;
	r = driver->fence_create(state->queue, &fence_desc, &fence);
	if (r)
		return failed(ctx, "zeFenceCreate", r);
	graph->fences[i] = fence;
	r = barrier(driver, list);
	return r ? failed(ctx, "zeCommandListAppendBarrier", r) : SPMLA_OK;
}

spmla_status
spmla_i_ze_begin(spmla_ctx *ctx, spmla_stream stream)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	spmla_status s = check_list(ctx, stream);
	uint32_t i;

	if (s == SPMLA_OK && !state->queue)
		s = spmla_i_fail(&ctx->diag, SPMLA_E_NULL, "native.queue", 0,
				 SPMLA_WANT_NOT_NULL, 0);
	for (i = 0; s == SPMLA_OK && i < state->copies; i++)
		s = open_copy(ctx, recorded(ctx), i);
	if (s == SPMLA_OK)
		state->recorded = stream;
	else
		spmla_i_ze_drop(state, recorded(ctx));
	return s;
}

/* The last command of each list is a barrier already. If a list cannot be
 * closed, the recording goes on, and only an abort ends it. */
spmla_status
spmla_i_ze_end(spmla_ctx *ctx, uint32_t index)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);
	spmla_gpu_result r;
	uint32_t i;

	for (i = 0; i < state->copies; i++) {
		r = driver->list_close(state->graphs[index].lists[i]);
		if (r)
			return failed(ctx, "zeCommandListClose", r);
	}
	state->recorded = NULL;
	return SPMLA_OK;
}

spmla_status
spmla_i_ze_abort(spmla_ctx *ctx)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);

	spmla_i_ze_drop(state, recorded(ctx));
	state->recorded = NULL;
	return SPMLA_OK;
}

void *
spmla_level_zero_list(const spmla_ctx *ctx, uint32_t copy)
{
	const spmla_i_ze_state *state;

	if (!spmla_i_lives(ctx) ||
	    ctx->plan.device.kind != SPMLA_BACKEND_LEVEL_ZERO)
		return NULL;
	state = spmla_i_ze_state_of(ctx);
	return state->recorded && copy < state->copies
		       ? recorded(ctx)->lists[copy]
		       : NULL;
}

/* ---- Replays ------------------------------------------------------------ */

/* Takes out of flight[] the lists that have ended. They end in the order in
 * which they were submitted. */
static spmla_gpu_result
land(const spmla_ctx *ctx)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);

	while (state->flights) {
		const spmla_i_ze_flight *f = &state->flight[state->first];
		spmla_i_ze_graph *graph = &state->graphs[f->graph];
		const spmla_gpu_result r =
			driver->fence_query(graph->fences[f->copy]);

		if (r)
			return r == SPMLA_ZE_NOT_READY ? 0 : r;
		graph->runs[f->copy] = 0;
		state->consumed +=
			ctx->graphs[f->graph].kind == SPMLA_I_GRAPH_TICKET;
		state->first = (state->first + 1) % SPMLA_I_ZE_MAX_FLIGHTS;
		state->flights--;
	}
	return 0;
}

/* Submits the graph's next copy. */
static spmla_status
submit(spmla_ctx *ctx, uint32_t index)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);
	spmla_i_ze_graph *graph = &state->graphs[index];
	const uint32_t copy = graph->next;
	spmla_ze_list list = graph->lists[copy];
	spmla_i_ze_flight *f = &state->flight[(state->first + state->flights) %
					      SPMLA_I_ZE_MAX_FLIGHTS];
	spmla_gpu_result r = driver->fence_reset(graph->fences[copy]);

	if (r)
		return failed(ctx, "zeFenceReset", r);
	r = driver->queue_execute(state->queue, 1, &list, graph->fences[copy]);
	if (r)
		return failed(ctx, "zeCommandQueueExecuteCommandLists", r);
	f->graph = index;
	f->copy = copy;
	graph->runs[copy] = 1;
	graph->next = (copy + 1) % state->copies;
	state->flights++;
	return SPMLA_OK;
}

spmla_status
spmla_i_ze_launch(spmla_ctx *ctx, uint32_t index, spmla_stream queue)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	const spmla_i_ze_graph *graph = &state->graphs[index];
	spmla_gpu_result r;

	if (queue != state->queue)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
				    "stream (native.queue, for a replay)",
				    SPMLA_I_PTR(queue), SPMLA_WANT_EQUAL,
				    SPMLA_I_PTR(state->queue));
	r = land(ctx);
	if (r)
		return failed(ctx, "zeFenceQueryStatus", r);
	if (graph->runs[graph->next])
		return spmla_i_fail(&ctx->diag, SPMLA_E_BUSY,
				    "copies of the graph that run",
				    state->copies, SPMLA_WANT_AT_MOST,
				    state->copies - 1);
	if (state->flights == SPMLA_I_ZE_MAX_FLIGHTS)
		return spmla_i_fail(&ctx->diag, SPMLA_E_BUSY, "graphs that run",
				    state->flights, SPMLA_WANT_AT_MOST,
				    SPMLA_I_ZE_MAX_FLIGHTS - 1);
	return submit(ctx, index);
}

/* If the host may not read the ring's counter while a list runs, a record
 * counts as consumed once the list that read it has ended. */
uint64_t
spmla_i_ze_consumed(const spmla_ctx *ctx)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);

	if (!state->at_once)
		(void)land(ctx);
	if (state->at_once || !state->flights)
		state->consumed =
			spmla_i_load_u64(ctx->buf[SPMLA_BUF_RING_CONSUMED]);
	return state->consumed;
}

uint32_t
spmla_i_ze_readable(const spmla_ctx *ctx)
{
	return spmla_i_ze_state_of(ctx)->at_once || !spmla_i_ze_pending(ctx);
}

uint32_t
spmla_i_ze_pending(const spmla_ctx *ctx)
{
	/* On a lost device, submitted work does not run. */
	return land(ctx) && spmla_i_ze_lost(ctx)
		       ? 0
		       : spmla_i_ze_state_of(ctx)->flights;
}

uint32_t
spmla_i_ze_lost(const spmla_ctx *ctx)
{
	const spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);

	return spmla_i_ze_driver_of(state)->device_status(state->device) != 0;
}

/* Clears what the device keeps of the first bad step; see fault_device.h. */
spmla_status
spmla_i_ze_status_clear(spmla_ctx *ctx)
{
	const uint64_t first = offsetof(spmla_i_step_state, fault_step);

	return spmla_i_ze_clear(spmla_i_ze_state_of(ctx),
				(uint8_t *)ctx->buf[SPMLA_BUF_STEP_STATE] +
					first,
				sizeof(spmla_i_step_state) - first, &ctx->diag);
}
