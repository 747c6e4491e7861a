/* SPDX-License-Identifier: Apache-2.0
 *
 * A backend on a driver at work: kernels are launched on the caller's stream,
 * and a capture is the driver's. The hard idea is failure: whatever the driver
 * refuses, every handle made so far is in the state or is destroyed, and the
 * context can still be used or ended.
 */
#include "spmla/platform/gpu/driver/backend_gpu.h"
#include "spmla/platform/gpu/driver/init_gpu.h"
#include "spmla/platform/gpu/launch.h"

#include <string.h>

enum { MAX_POINTERS = 64 };

#define ONE(type, name) +1u
#define SPMLA_KERNEL_LINE(stem, items, dynamic)                         \
	SPMLA_STATIC_ASSERT(                                            \
		0u SPMLA_K_##stem(ONE, SPMLA_I_K_NONE) <= MAX_POINTERS, \
		"launch_kernel has room for all parameters of " #stem);
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE
#undef ONE

void
spmla_i_gpu_backend_fini(spmla_ctx *ctx)
{
	void *before;

	/* If the engine has destroyed the driver's context, everything went
	 * with it. */
	if (spmla_i_gpu_enter(ctx, &before, NULL) != SPMLA_OK)
		return;
	spmla_i_gpu_release(ctx);
	spmla_i_gpu_leave(ctx, before);
}

static spmla_status
failed(spmla_ctx *ctx, spmla_i_gpu_call call, spmla_gpu_result code)
{
	return spmla_i_gpu_refused(
		&ctx->diag, spmla_i_gpu_driver_of(ctx)->platform->names[call],
		code);
}

/* ---- Streams ------------------------------------------------------------ */

/* NULL is the legacy stream, which cannot be captured. */
static spmla_status
check_stream(spmla_ctx *ctx, spmla_stream stream)
{
	const char *field = spmla_i_gpu_driver_of(ctx)->platform->stream_field;

	if (!stream)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE, field, 0,
				    SPMLA_WANT_NOT_NULL, 0);
	if (SPMLA_I_PTR(stream) == SPMLA_GPU_STREAM_LEGACY)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE, field,
				    SPMLA_GPU_STREAM_LEGACY,
				    SPMLA_WANT_AT_LEAST,
				    SPMLA_GPU_STREAM_LEGACY + 1);
	return SPMLA_OK;
}

/* If the driver cannot tell, the stream does not capture: the next call will
 * fail and say so. */
static uint32_t
stream_captures(const spmla_ctx *ctx, spmla_stream stream)
{
	int status = SPMLA_GPU_CAPTURE_NONE;

	if (!stream || SPMLA_I_PTR(stream) == SPMLA_GPU_STREAM_LEGACY)
		return 0;
	if (spmla_i_gpu_driver_of(ctx)->stream_capturing(stream, &status))
		return 0;
	return status != SPMLA_GPU_CAPTURE_NONE;
}

uint32_t
spmla_i_gpu_backend_capturing(const spmla_ctx *ctx, spmla_stream stream)
{
	return spmla_i_gpu_state_of(ctx)->capturing ||
	       stream_captures(ctx, stream);
}

static spmla_status
launch_kernel(const spmla_i_gpu_queue *queue, spmla_i_kernel kernel,
	      uint32_t blocks, const void *params)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(queue->ctx);
	const spmla_i_gpu_kernel *k = &spmla_i_gpu_kernels[kernel];
	void *list[MAX_POINTERS + 1];
	const uint8_t *at = params;
	spmla_gpu_result r;
	uint32_t i;

	/* The driver takes addresses of parameters and does not write them. */
	for (i = 0; i < k->pointers; i++)
		list[i] = (void *)(uintptr_t)(at + i * sizeof(void *));
	list[i] = (void *)(uintptr_t)(at + k->scalars_offset);
	r = driver->launch_kernel(
		spmla_i_gpu_state_of(queue->ctx)->kernels[kernel], blocks, 1, 1,
		k->items, 1, 1, k->dynamic_bytes, queue->stream, list, NULL);
	if (r)
		return spmla_i_fail_at(&queue->ctx->diag, SPMLA_E_DEVICE,
				       SPMLA_I_GPU_NAME(driver, launch_kernel),
				       (uint32_t)kernel, (uint32_t)r,
				       SPMLA_WANT_EQUAL, 0);
	return SPMLA_OK;
}

spmla_status
spmla_i_gpu_backend_enqueue(spmla_ctx *ctx, spmla_op op, const void *args,
			    uint32_t bytes, spmla_stream stream)
{
	const spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	const spmla_i_gpu_queue queue = {ctx, stream, launch_kernel,
					 state->resident_blocks};
	spmla_status s = check_stream(ctx, stream);

	(void)bytes;
	if (s != SPMLA_OK)
		return s;
	/* On a stream outside the open capture it would run at once, so it is
	 * refused. */
	if (state->capturing && stream != state->capture_stream &&
	    !stream_captures(ctx, stream))
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE,
				    "stream (outside the capture)", 0,
				    SPMLA_WANT_NOTHING, 0);
	s = spmla_i_gpu_enqueue(&queue, op, args);
	if (s == SPMLA_E_UNSUPPORTED)
		return spmla_i_fail(&ctx->diag, s, "op", (uint32_t)op,
				    SPMLA_WANT_NOTHING, 0);
	return s;
}

/* ---- Graphs ------------------------------------------------------------- */

spmla_status
spmla_i_gpu_backend_begin(spmla_ctx *ctx, spmla_stream stream)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);
	spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	spmla_status s = check_stream(ctx, stream);
	spmla_gpu_result r;

	if (s != SPMLA_OK)
		return s;
	r = driver->capture_begin(stream, driver->platform->capture_mode);
	if (r)
		return failed(ctx, SPMLA_GPU_CALL_capture_begin, r);
	state->capture_stream = stream;
	state->capturing = 1;
	return SPMLA_OK;
}

/* Ends the driver's capture, whether or not it yields a graph. It stays open if
 * another thread began it. */
static spmla_gpu_result
take_graph(spmla_ctx *ctx, spmla_gpu_graph *graph)
{
	spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	spmla_gpu_result r;

	*graph = NULL;
	r = spmla_i_gpu_driver_of(ctx)->capture_end(state->capture_stream,
						    graph);
	if (r != SPMLA_GPU_WRONG_THREAD)
		state->capture_stream = NULL;
	return r;
}

/* Instantiates the graph and uploads it. */
static spmla_status
make_exec(spmla_ctx *ctx, spmla_gpu_stream stream, spmla_gpu_exec *exec)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);
	spmla_i_gpu_call call = SPMLA_GPU_CALL_capture_end;
	spmla_gpu_graph graph;
	spmla_gpu_result r;

	r = take_graph(ctx, &graph);
	if (r)
		goto fail;
	call = SPMLA_GPU_CALL_graph_instantiate;
	r = driver->graph_instantiate(exec, graph, 0);
	if (r) {
		*exec = NULL;
		goto fail;
	}
	/* The upload precedes any launch on this stream, and the driver orders
	 * it before launches on others. */
	call = SPMLA_GPU_CALL_graph_upload;
	r = driver->graph_upload(*exec, stream);
	if (r)
		goto fail;
	(void)driver->graph_destroy(graph);
	return SPMLA_OK;
fail:
	if (*exec)
		(void)driver->exec_destroy(*exec);
	if (graph)
		(void)driver->graph_destroy(graph);
	return failed(ctx, call, r);
}

spmla_status
spmla_i_gpu_backend_end(spmla_ctx *ctx, uint32_t index)
{
	spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	spmla_gpu_stream stream = state->capture_stream;
	spmla_gpu_exec exec = NULL;
	spmla_status s;
	void *before;

	if (!stream) /* a failed end: only an abort helps */
		return spmla_i_fail(&ctx->diag, SPMLA_E_CAPTURE,
				    "capture (failed to end)", 0,
				    SPMLA_WANT_NOTHING, 0);
	s = spmla_i_gpu_enter(ctx, &before, &ctx->diag);
	if (s != SPMLA_OK)
		return s;
	s = make_exec(ctx, stream, &exec);
	spmla_i_gpu_leave(ctx, before);
	if (s != SPMLA_OK)
		return s;
	state->graphs[index] = exec;
	state->capturing = 0;
	return SPMLA_OK;
}

/* For any other result the capture is over: it is invalid, or went with its
 * context. */
spmla_status
spmla_i_gpu_backend_abort(spmla_ctx *ctx)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);
	spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	spmla_gpu_result r = 0;
	spmla_gpu_graph graph;
	void *before;

	if (state->capture_stream &&
	    spmla_i_gpu_enter(ctx, &before, NULL) == SPMLA_OK) {
		r = take_graph(ctx, &graph);
		if (graph)
			(void)driver->graph_destroy(graph);
		spmla_i_gpu_leave(ctx, before);
	}
	if (r == SPMLA_GPU_WRONG_THREAD)
		return failed(ctx, SPMLA_GPU_CALL_capture_end, r);
	state->capturing = 0;
	state->capture_stream = NULL;
	return SPMLA_OK;
}

spmla_status
spmla_i_gpu_backend_launch(spmla_ctx *ctx, uint32_t index, spmla_stream stream)
{
	spmla_status s = check_stream(ctx, stream);
	spmla_gpu_result r;

	if (s != SPMLA_OK)
		return s;
	r = spmla_i_gpu_driver_of(ctx)->graph_launch(
		spmla_i_gpu_state_of(ctx)->graphs[index], stream);
	return r ? failed(ctx, SPMLA_GPU_CALL_graph_launch, r) : SPMLA_OK;
}

/* Inside a capture too: then `to` joins it. */
spmla_status
spmla_i_gpu_backend_order(spmla_ctx *ctx, spmla_stream from, spmla_stream to,
			  void *event)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);
	spmla_status s = check_stream(ctx, from);
	spmla_gpu_result r;

	if (s == SPMLA_OK)
		s = check_stream(ctx, to);
	if (s != SPMLA_OK)
		return s;
	r = driver->event_record(event, from);
	if (r)
		return failed(ctx, SPMLA_GPU_CALL_event_record, r);
	r = driver->stream_wait(to, event, 0);
	return r ? failed(ctx, SPMLA_GPU_CALL_stream_wait, r) : SPMLA_OK;
}

/* ---- The rest ----------------------------------------------------------- */

spmla_status
spmla_i_gpu_backend_zero(spmla_ctx *ctx, spmla_diag *diag)
{
	spmla_status s;
	void *before;

	s = spmla_i_gpu_enter(ctx, &before, diag);
	if (s != SPMLA_OK)
		return s;
	s = spmla_i_gpu_zero(ctx, diag);
	spmla_i_gpu_leave(ctx, before);
	return s;
}

/* Reads the device's record of the first bad step; see fault_device.h. */
spmla_status
spmla_i_gpu_backend_status_clear(spmla_ctx *ctx)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);
	const spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	const uint64_t first = offsetof(spmla_i_step_state, fault_step);
	spmla_i_gpu_call call = SPMLA_GPU_CALL_memset_async;
	spmla_gpu_result r;
	spmla_status s;
	void *before;

	s = spmla_i_gpu_enter(ctx, &before, &ctx->diag);
	if (s != SPMLA_OK)
		return s;
	r = driver->memset_async(
		SPMLA_I_PTR(ctx->buf[SPMLA_BUF_STEP_STATE]) + first, 0,
		(size_t)(sizeof(spmla_i_step_state) - first), state->stream);
	if (r == 0) {
		call = SPMLA_GPU_CALL_stream_sync;
		r = driver->stream_sync(state->stream);
	}
	spmla_i_gpu_leave(ctx, before);
	return r ? failed(ctx, call, r) : SPMLA_OK;
}

/* Queued work may be running. */
uint32_t
spmla_i_gpu_backend_pending(const spmla_ctx *ctx)
{
	(void)ctx;
	return 0;
}

/* After a fault in any kernel, each call of the driver returns its code. This
 * call is allowed during captures. */
uint32_t
spmla_i_gpu_backend_lost(const spmla_ctx *ctx)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);
	const spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	int status = SPMLA_GPU_CAPTURE_NONE;
	spmla_gpu_result r;
	void *before;

	if (spmla_i_gpu_enter(ctx, &before, NULL) != SPMLA_OK)
		return 1;
	r = driver->stream_capturing(state->stream, &status);
	spmla_i_gpu_leave(ctx, before);
	return r != 0;
}
