/* SPDX-License-Identifier: Apache-2.0
 *
 * See cuda_count.h.
 */
#include "tests/harness/cuda_count.h"

#include <string.h>

cuda_count counted;
static const spmla_i_gpu_driver *real;
#define REAL_CUDA ((const spmla_i_cuda_driver *)real)
#define REAL_HIP  ((const spmla_i_hip_driver *)real)

/* One function: the parameters, and their names to hand them on. */
#define COUNTED_OF(of, field, parameters, names)     \
	static spmla_gpu_result c_##field parameters \
	{                                            \
		counted.calls[CUDA_FAKE_##field]++;  \
		counted.total++;                     \
		return (of).field names;             \
	}
#define COUNTED(field, parameters, names) \
	COUNTED_OF(*real, field, parameters, names)
#define COUNTED_CUDA(field, parameters, names) \
	COUNTED_OF(*REAL_CUDA, field, parameters, names)
#define COUNTED_HIP(field, parameters, names) \
	COUNTED_OF(*REAL_HIP, field, parameters, names)

COUNTED(init, (unsigned flags), (flags))
COUNTED(driver_version, (int *version), (version))
COUNTED_CUDA(ctx_current, (spmla_cu_context * ctx), (ctx))
COUNTED_CUDA(ctx_push, (spmla_cu_context ctx), (ctx))
COUNTED_CUDA(ctx_pop, (spmla_cu_context * ctx), (ctx))
COUNTED_CUDA(ctx_device, (spmla_cu_device * device), (device))
COUNTED_CUDA(attribute, (int *value, int attribute, spmla_cu_device device),
	     (value, attribute, device))
COUNTED(module_load, (spmla_gpu_module * module, const void *image),
	(module, image))
COUNTED(module_unload, (spmla_gpu_module module), (module))
COUNTED(module_function,
	(spmla_gpu_function * function, spmla_gpu_module module,
	 const char *name),
	(function, module, name))
COUNTED(function_attribute,
	(int *value, int attribute, spmla_gpu_function function),
	(value, attribute, function))
COUNTED(set_function_attribute,
	(spmla_gpu_function function, int attribute, int value),
	(function, attribute, value))
COUNTED(occupancy,
	(int *blocks, spmla_gpu_function function, int items,
	 size_t shared_bytes),
	(blocks, function, items, shared_bytes))
COUNTED(launch_kernel,
	(spmla_gpu_function function, unsigned grid_x, unsigned grid_y,
	 unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
	 unsigned shared_bytes, spmla_gpu_stream stream, void **params,
	 void **extra),
	(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
	 shared_bytes, stream, params, extra))
COUNTED(memset_async,
	(spmla_gpu_ptr to, unsigned char byte, size_t count,
	 spmla_gpu_stream stream),
	(to, byte, count, stream))
COUNTED(stream_create, (spmla_gpu_stream * stream, unsigned flags),
	(stream, flags))
COUNTED(stream_destroy, (spmla_gpu_stream stream), (stream))
COUNTED(stream_sync, (spmla_gpu_stream stream), (stream))
COUNTED(stream_wait,
	(spmla_gpu_stream stream, spmla_gpu_event event, unsigned flags),
	(stream, event, flags))
COUNTED(event_record, (spmla_gpu_event event, spmla_gpu_stream stream),
	(event, stream))
COUNTED(stream_capturing, (spmla_gpu_stream stream, int *status),
	(stream, status))
COUNTED(capture_begin, (spmla_gpu_stream stream, int mode), (stream, mode))
COUNTED(capture_end, (spmla_gpu_stream stream, spmla_gpu_graph *graph),
	(stream, graph))
COUNTED(graph_destroy, (spmla_gpu_graph graph), (graph))
COUNTED(graph_instantiate,
	(spmla_gpu_exec * exec, spmla_gpu_graph graph, uint64_t flags),
	(exec, graph, flags))
COUNTED(exec_destroy, (spmla_gpu_exec exec), (exec))
COUNTED(graph_upload, (spmla_gpu_exec exec, spmla_gpu_stream stream),
	(exec, stream))
COUNTED(graph_launch, (spmla_gpu_exec exec, spmla_gpu_stream stream),
	(exec, stream))

COUNTED_HIP(get_device, (int *number), (number))
COUNTED_HIP(set_device, (int number), (number))

/* The driver's table with functions that count. */
static union {
	spmla_i_gpu_driver gpu;
	spmla_i_cuda_driver cuda;
	spmla_i_hip_driver hip;
} counting;

static void
make_counting(void)
{
	memcpy(&counting, real, real->platform->driver_bytes);
#define SHARED(field, parameters)       counting.gpu.field = c_##field;
#define CUDA(field, symbol, parameters) counting.cuda.field = c_##field;
#define HIP(field, symbol, parameters)  counting.hip.field = c_##field;
	SPMLA_GPU_FUNCTIONS(SHARED)
	if (real->platform->kind == SPMLA_BACKEND_CUDA) {
		SPMLA_CU_OWN(CUDA)
	} else {
		SPMLA_HIP_OWN(HIP)
	}
#undef SHARED
#undef CUDA
#undef HIP
}

uint32_t
cuda_count_begin(spmla_ctx *ctx)
{
	spmla_i_gpu_state *state;

	/* The emulator also has kind CUDA, but no driver. */
	if (!ctx->buf[SPMLA_BUF_BACKEND_STATE] ||
	    (strcmp(ctx->backend->name, "cuda") != 0 &&
	     strcmp(ctx->backend->name, "hip") != 0))
		return 0;
	state = spmla_i_gpu_state_of(ctx);
	real = state->driver;
	make_counting();
	state->driver = &counting;
	memset(&counted, 0, sizeof counted);
	return 1;
}

void
cuda_count_end(spmla_ctx *ctx)
{
	spmla_i_gpu_state_of(ctx)->driver = real;
}
