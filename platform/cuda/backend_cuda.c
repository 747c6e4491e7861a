/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend: kernels are launched on the caller's stream, and a capture
 * is the driver's. The hard idea is failure: whatever the driver refuses, every
 * handle made so far is in the state or is destroyed, and the context can still
 * be used or ended.
 */
#include "spmla/platform/cuda/init_cuda.h"
#include "spmla/platform/gpu/launch.h"
#include "spmla/spmla_cuda.h"

#include <string.h>

enum { MAX_POINTERS = 40 };

#define ONE(type, name) +1u
#define SPMLA_KERNEL_LINE(stem, items, dynamic)                         \
	SPMLA_STATIC_ASSERT(                                            \
		0u SPMLA_K_##stem(ONE, SPMLA_I_K_NONE) <= MAX_POINTERS, \
		"launch_kernel has room for all parameters of " #stem);
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE
#undef ONE

static spmla_status
cuda_query(const spmla_native *native, spmla_device *device, spmla_diag *diag)
{
	spmla_i_cuda_driver driver;
	spmla_status s = spmla_i_cuda_open(&driver, diag);

	if (s != SPMLA_OK)
		return s;
	s = spmla_i_cuda_query(&driver, spmla_i_cuda_blob_driver, native,
			       device, diag);
	if (s == SPMLA_OK)
		device->ops = spmla_cuda.ops;
	return s;
}

static spmla_status
cuda_init(spmla_ctx *ctx, const spmla_native *native, spmla_diag *diag)
{
	const spmla_i_cuda_image image = {spmla_i_cuda_blob,
					  spmla_i_cuda_blob_bytes,
					  spmla_i_cuda_blob_driver};
	spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
	spmla_i_cuda_driver *driver = (void *)state->functions;
	spmla_status s;

	memset(state, 0, sizeof *state);
	s = spmla_i_cuda_open(driver, diag);
	if (s != SPMLA_OK)
		return s;
	return spmla_i_cuda_init(ctx, driver, &image, native, diag);
}

static void
cuda_fini(spmla_ctx *ctx)
{
	const spmla_i_cuda_driver *driver = spmla_i_cuda_driver_of(ctx);

	/* If the engine has destroyed the CUDA context, everything went with
	 * it. */
	if (spmla_i_cuda_push(driver, spmla_i_cuda_state(ctx)->context, NULL) !=
	    SPMLA_OK)
		return;
	spmla_i_cuda_release(ctx);
	spmla_i_cuda_pop(driver);
}

/* ---- Streams ------------------------------------------------------------ */

/* NULL is the legacy stream, which cannot be captured. */
static spmla_status
check_stream(spmla_ctx *ctx, spmla_stream stream)
{
	static const char field[] =
		"stream (of cuStreamCreate, or CU_STREAM_PER_THREAD)";

	if (!stream)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE, field, 0,
				    SPMLA_WANT_NOT_NULL, 0);
	if (SPMLA_I_PTR(stream) == SPMLA_CU_STREAM_LEGACY)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE, field,
				    SPMLA_CU_STREAM_LEGACY, SPMLA_WANT_AT_LEAST,
				    SPMLA_CU_STREAM_LEGACY + 1);
	return SPMLA_OK;
}

/* If the driver cannot tell, the stream does not capture: the next call will
 * fail and say so. */
static uint32_t
stream_captures(const spmla_ctx *ctx, spmla_stream stream)
{
	int status = SPMLA_CU_CAPTURE_NONE;

	if (!stream || SPMLA_I_PTR(stream) == SPMLA_CU_STREAM_LEGACY)
		return 0;
	if (spmla_i_cuda_driver_of(ctx)->stream_capturing(stream, &status))
		return 0;
	return status != SPMLA_CU_CAPTURE_NONE;
}

static uint32_t
cuda_capturing(const spmla_ctx *ctx, spmla_stream stream)
{
	return spmla_i_cuda_state(ctx)->capturing ||
	       stream_captures(ctx, stream);
}

static spmla_status
launch_kernel(const spmla_i_gpu_queue *queue, spmla_i_kernel kernel,
	      uint32_t blocks, const void *params)
{
	const spmla_i_gpu_kernel *k = &spmla_i_gpu_kernels[kernel];
	void *list[MAX_POINTERS + 1];
	const uint8_t *at = params;
	spmla_cu_result r;
	uint32_t i;

	/* The driver takes addresses of parameters and does not write them. */
	for (i = 0; i < k->pointers; i++)
		list[i] = (void *)(uintptr_t)(at + i * sizeof(void *));
	list[i] = (void *)(uintptr_t)(at + k->scalars_offset);
	r = spmla_i_cuda_driver_of(queue->ctx)
		    ->launch_kernel(
			    spmla_i_cuda_state(queue->ctx)->kernels[kernel],
			    blocks, 1, 1, k->items, 1, 1, k->dynamic_bytes,
			    queue->stream, list, NULL);
	if (r)
		return spmla_i_fail_at(&queue->ctx->diag, SPMLA_E_DEVICE,
				       "cuLaunchKernel", (uint32_t)kernel,
				       (uint32_t)r, SPMLA_WANT_EQUAL, 0);
	return SPMLA_OK;
}

static spmla_status
cuda_enqueue(spmla_ctx *ctx, spmla_op op, const void *args, uint32_t bytes,
	     spmla_stream stream)
{
	const spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
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

static spmla_status
cuda_begin(spmla_ctx *ctx, spmla_stream stream)
{
	spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
	spmla_status s = check_stream(ctx, stream);
	spmla_cu_result r;

	if (s != SPMLA_OK)
		return s;
	r = spmla_i_cuda_driver_of(ctx)->capture_begin(
		stream, SPMLA_CU_CAPTURE_THREAD_LOCAL);
	if (r)
		return spmla_i_cuda_failed(&ctx->diag, "cuStreamBeginCapture",
					   r);
	state->capture_stream = stream;
	state->capturing = 1;
	return SPMLA_OK;
}

/* Ends the driver's capture, whether or not it yields a graph. It stays open if
 * another thread began it. */
static spmla_cu_result
take_graph(spmla_ctx *ctx, spmla_cu_graph *graph)
{
	spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
	spmla_cu_result r;

	*graph = NULL;
	r = spmla_i_cuda_driver_of(ctx)->capture_end(state->capture_stream,
						     graph);
	if (r != SPMLA_CU_WRONG_THREAD)
		state->capture_stream = NULL;
	return r;
}

/* Instantiates the graph and uploads it. */
static spmla_status
make_exec(spmla_ctx *ctx, spmla_cu_stream stream, spmla_cu_exec *exec)
{
	const spmla_i_cuda_driver *driver = spmla_i_cuda_driver_of(ctx);
	const char *function = "cuStreamEndCapture";
	spmla_cu_graph graph;
	spmla_cu_result r;

	r = take_graph(ctx, &graph);
	if (r)
		goto fail;
	function = "cuGraphInstantiateWithFlags";
	r = driver->graph_instantiate(exec, graph, 0);
	if (r) {
		*exec = NULL;
		goto fail;
	}
	/* The upload precedes any launch on this stream, and the driver orders
	 * it before launches on others. */
	function = "cuGraphUpload";
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
	return spmla_i_cuda_failed(&ctx->diag, function, r);
}

static spmla_status
cuda_end(spmla_ctx *ctx, uint32_t index)
{
	spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
	spmla_cu_stream stream = state->capture_stream;
	spmla_cu_exec exec = NULL;
	spmla_status s;

	if (!stream) /* a failed end: only an abort helps */
		return spmla_i_fail(&ctx->diag, SPMLA_E_CAPTURE,
				    "capture (failed to end)", 0,
				    SPMLA_WANT_NOTHING, 0);
	s = spmla_i_cuda_push(spmla_i_cuda_driver_of(ctx), state->context,
			      &ctx->diag);
	if (s != SPMLA_OK)
		return s;
	s = make_exec(ctx, stream, &exec);
	spmla_i_cuda_pop(spmla_i_cuda_driver_of(ctx));
	if (s != SPMLA_OK)
		return s;
	state->graphs[index] = exec;
	state->capturing = 0;
	return SPMLA_OK;
}

/* For any other result the capture is over: it is invalid, or went with its
 * context. */
static spmla_status
cuda_abort(spmla_ctx *ctx)
{
	const spmla_i_cuda_driver *driver = spmla_i_cuda_driver_of(ctx);
	spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
	spmla_cu_result r = 0;
	spmla_cu_graph graph;

	if (state->capture_stream &&
	    spmla_i_cuda_push(driver, state->context, NULL) == SPMLA_OK) {
		r = take_graph(ctx, &graph);
		if (graph)
			(void)driver->graph_destroy(graph);
		spmla_i_cuda_pop(driver);
	}
	if (r == SPMLA_CU_WRONG_THREAD)
		return spmla_i_cuda_failed(&ctx->diag, "cuStreamEndCapture", r);
	state->capturing = 0;
	state->capture_stream = NULL;
	return SPMLA_OK;
}

static spmla_status
cuda_launch(spmla_ctx *ctx, uint32_t index, spmla_stream stream)
{
	spmla_status s = check_stream(ctx, stream);
	spmla_cu_result r;

	if (s != SPMLA_OK)
		return s;
	r = spmla_i_cuda_driver_of(ctx)->graph_launch(
		spmla_i_cuda_state(ctx)->graphs[index], stream);
	return r ? spmla_i_cuda_failed(&ctx->diag, "cuGraphLaunch", r)
		 : SPMLA_OK;
}

/* Inside a capture too: then `to` joins it. */
static spmla_status
cuda_order(spmla_ctx *ctx, spmla_stream from, spmla_stream to, void *event)
{
	const spmla_i_cuda_driver *driver = spmla_i_cuda_driver_of(ctx);
	spmla_status s = check_stream(ctx, from);
	spmla_cu_result r;

	if (s == SPMLA_OK)
		s = check_stream(ctx, to);
	if (s != SPMLA_OK)
		return s;
	r = driver->event_record(event, from);
	if (r)
		return spmla_i_cuda_failed(&ctx->diag, "cuEventRecord", r);
	r = driver->stream_wait(to, event, 0);
	return r ? spmla_i_cuda_failed(&ctx->diag, "cuStreamWaitEvent", r)
		 : SPMLA_OK;
}

/* ---- The rest ----------------------------------------------------------- */

static spmla_status
cuda_zero(spmla_ctx *ctx, spmla_diag *diag)
{
	const spmla_i_cuda_driver *driver = spmla_i_cuda_driver_of(ctx);
	spmla_status s = spmla_i_cuda_push(
		driver, spmla_i_cuda_state(ctx)->context, diag);

	if (s != SPMLA_OK)
		return s;
	s = spmla_i_cuda_zero(ctx, diag);
	spmla_i_cuda_pop(driver);
	return s;
}

/* Reads the device's record of the first bad step; see fault_device.h. */
static spmla_status
cuda_status_clear(spmla_ctx *ctx)
{
	const spmla_i_cuda_driver *driver = spmla_i_cuda_driver_of(ctx);
	const spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
	const uint64_t first = offsetof(spmla_i_step_state, fault_step);
	const uint64_t past = offsetof(spmla_i_step_state, reserved);
	const char *function = "cuMemsetD8Async";
	spmla_cu_result r;
	spmla_status s;

	s = spmla_i_cuda_push(driver, state->context, &ctx->diag);
	if (s != SPMLA_OK)
		return s;
	r = driver->memset_async(SPMLA_I_PTR(ctx->buf[SPMLA_BUF_STEP_STATE]) +
					 first,
				 0, (size_t)(past - first), state->stream);
	if (r == 0) {
		function = "cuStreamSynchronize";
		r = driver->stream_sync(state->stream);
	}
	spmla_i_cuda_pop(driver);
	return r ? spmla_i_cuda_failed(&ctx->diag, function, r) : SPMLA_OK;
}

/* Queued work may be running. */
static uint32_t
cuda_pending(const spmla_ctx *ctx)
{
	(void)ctx;
	return 0;
}

/* After a fault in any kernel, each call of the driver returns its code. This
 * call is allowed during captures. */
static uint32_t
cuda_lost(const spmla_ctx *ctx)
{
	const spmla_i_cuda_driver *driver = spmla_i_cuda_driver_of(ctx);
	const spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
	int status = SPMLA_CU_CAPTURE_NONE;
	spmla_cu_result r;

	if (spmla_i_cuda_push(driver, state->context, NULL) != SPMLA_OK)
		return 1;
	r = driver->stream_capturing(state->stream, &status);
	spmla_i_cuda_pop(driver);
	return r != 0;
}

const spmla_backend spmla_cuda = {
	"cuda",
	SPMLA_BACKEND_CUDA,
#define SPMLA_GPU_OP(stem) SPMLA_I_OP_BIT(SPMLA_OP_##stem) |
#include "spmla/platform/gpu/ops.inc"
#undef SPMLA_GPU_OP
	0,
	cuda_query,
	cuda_init,
	cuda_fini,
	cuda_zero,
	cuda_enqueue,
	cuda_capturing,
	cuda_begin,
	cuda_end,
	cuda_abort,
	cuda_launch,
	cuda_order,
	cuda_status_clear,
	cuda_pending,
	cuda_lost,
};
