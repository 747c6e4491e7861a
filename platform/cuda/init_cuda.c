/* SPDX-License-Identifier: Apache-2.0
 *
 * Query, init and fini of the CUDA backend, with a driver and kernels that the
 * caller gives. The hard idea is failure: every handle has one owner, the
 * state, and one function destroys whatever is in it.
 */
#include "spmla/platform/cuda/init_cuda.h"
#include "spmla/platform/cuda/device_cuda.h"
#include "spmla/platform/gpu/launch.h"

#include <string.h>

SPMLA_STATIC_ASSERT((int)SPMLA_KERNEL_COUNT <= (int)SPMLA_I_MAX_KERNELS,
		    "the state holds every kernel");
SPMLA_STATIC_ASSERT(sizeof(spmla_i_cuda_driver) <=
			    sizeof(((spmla_i_gpu_state *)0)->functions),
		    "the state holds every function");

spmla_status
spmla_i_cuda_query(const spmla_i_cuda_driver *driver, uint32_t driver_version,
		   const spmla_native *native, spmla_device *device,
		   spmla_diag *diag)
{
	spmla_device facts = SPMLA_DEVICE_INIT;
	spmla_cu_context context;
	spmla_status s;

	s = spmla_i_cuda_start(driver, driver_version, diag);
	if (s == SPMLA_OK)
		s = spmla_i_cuda_context(driver, native, &context, diag);
	if (s == SPMLA_OK)
		s = spmla_i_cuda_push(driver, context, diag);
	if (s != SPMLA_OK)
		return s;
	s = spmla_i_cuda_facts(driver, &facts, diag);
	spmla_i_cuda_pop(driver);
	facts.kind = SPMLA_BACKEND_CUDA;
	if (s == SPMLA_OK)
		*device = facts;
	return s;
}

/* Grids and scratch are made for the plan's device. It must be this one or, as
 * for the kernels, an older one. */
static spmla_status
check_device(const spmla_ctx *ctx, spmla_diag *diag)
{
	const spmla_device *want = &ctx->plan.device;
	spmla_device got = SPMLA_DEVICE_INIT;
	spmla_status s =
		spmla_i_cuda_facts(spmla_i_cuda_driver_of(ctx), &got, diag);
	const spmla_i_check checks[] = {
		{"plan.device.arch", want->arch, SPMLA_WANT_AT_MOST, got.arch},
		{"plan.device.sm_count", want->sm_count, SPMLA_WANT_EQUAL,
		 got.sm_count},
		{"plan.device.subgroup_width", want->subgroup_width,
		 SPMLA_WANT_EQUAL, got.subgroup_width},
	};
	uint32_t i;

	for (i = 0; s == SPMLA_OK && i < SPMLA_I_COUNT(checks); i++)
		if (checks[i].rule == SPMLA_WANT_AT_MOST
			    ? checks[i].got > checks[i].want
			    : checks[i].got != checks[i].want)
			s = spmla_i_fail(diag, SPMLA_E_UNSUPPORTED,
					 checks[i].field, checks[i].got,
					 checks[i].rule, checks[i].want);
	return s;
}

/* Looks a kernel up, which loads it. */
static spmla_status
take_kernel(spmla_ctx *ctx, uint32_t i, spmla_diag *diag)
{
	const spmla_i_cuda_driver *driver = spmla_i_cuda_driver_of(ctx);
	const spmla_i_gpu_kernel *kernel = &spmla_i_gpu_kernels[i];
	spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
	spmla_cu_function function = NULL;
	int local_bytes = 0, blocks = 0;
	spmla_cu_result r;

	if (!spmla_i_gpu_runs((spmla_i_kernel)i, ctx->plan.device.arch))
		return SPMLA_OK;
	r = driver->module_function(&function, state->library, kernel->name);
	/* Hopper may load binaries without wgmma. */
	if (r == SPMLA_CU_NOT_FOUND && kernel->needs == SPMLA_GPU_NEEDS_WGMMA)
		return SPMLA_OK;
	if (r)
		return spmla_i_fail_at(diag, SPMLA_E_DEVICE,
				       "cuModuleGetFunction", i, (uint32_t)r,
				       SPMLA_WANT_EQUAL, 0);
	r = driver->function_attribute(&local_bytes,
				       SPMLA_CU_FUNCTION_LOCAL_BYTES, function);
	if (r)
		return spmla_i_cuda_failed(diag, "cuFuncGetAttribute", r);
	/* The driver would allocate device memory for this stack, and grow it
	 * later. A kernel that the driver compiled itself, for a device newer
	 * than all binaries, may be left out if there is another. */
	if (local_bytes && kernel->needs != SPMLA_GPU_NEEDS_NOTHING)
		return SPMLA_OK;
	if (local_bytes)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED, kernel->name,
				    (uint32_t)local_bytes, SPMLA_WANT_EQUAL, 0);
	/* If the device has less shared memory, it does without the kernel;
	 * spmla_device.ops tells the result. */
	r = 0;
	if (kernel->dynamic_bytes)
		r = driver->set_function_attribute(
			function, SPMLA_CU_FUNCTION_DYNAMIC_BYTES,
			(int)kernel->dynamic_bytes);
	if (r == SPMLA_CU_INVALID_VALUE)
		return SPMLA_OK;
	if (r)
		return spmla_i_cuda_failed(diag, "cuFuncSetAttribute", r);
	r = driver->occupancy(&blocks, function, (int)kernel->items,
			      kernel->dynamic_bytes);
	if (r)
		return spmla_i_cuda_failed(
			diag, "cuOccupancyMaxActiveBlocksPerMultiprocessor", r);
	if (blocks < 1)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED, kernel->name, 0,
				    SPMLA_WANT_AT_LEAST, 1);
	state->kernels[i] = function;
	state->resident_blocks[i] = (uint32_t)blocks *
				    ctx->plan.device.sm_count /
				    kernel->cluster * kernel->cluster;
	return SPMLA_OK;
}

spmla_status
spmla_i_cuda_zero(spmla_ctx *ctx, spmla_diag *diag)
{
	const spmla_i_cuda_driver *driver = spmla_i_cuda_driver_of(ctx);
	const spmla_plan *plan = &ctx->plan;
	spmla_cu_result r;
	uint32_t i;

	for (i = 0; i < plan->row_count; i++) {
		const spmla_extent *e = &plan->extents[i];

		if (e->memory != SPMLA_MEMORY_DEVICE ||
		    e->life != SPMLA_LIFE_CONTEXT || e->bytes == 0)
			continue;
		r = driver->memset_async(SPMLA_I_PTR(ctx->buf[e->buf]), 0,
					 (size_t)e->bytes,
					 spmla_i_cuda_state(ctx)->stream);
		if (r)
			return spmla_i_cuda_failed(diag, "cuMemsetD8Async", r);
	}
	r = driver->stream_sync(spmla_i_cuda_state(ctx)->stream);
	return r ? spmla_i_cuda_failed(diag, "cuStreamSynchronize", r)
		 : SPMLA_OK;
}

/* Destroys what init and captures made; the context is current. */
void
spmla_i_cuda_release(spmla_ctx *ctx)
{
	const spmla_i_cuda_driver *driver = spmla_i_cuda_driver_of(ctx);
	spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
	uint32_t i;

	for (i = 0; i < SPMLA_I_MAX_GRAPHS; i++)
		if (state->graphs[i])
			(void)driver->exec_destroy(state->graphs[i]);
	memset(state->graphs, 0, sizeof state->graphs);
	if (state->library)
		(void)driver->module_unload(state->library);
	state->library = NULL;
	if (state->stream)
		(void)driver->stream_destroy(state->stream);
	state->stream = NULL;
}

/* Makes the driver's objects of the context; the CUDA context is current. */
static spmla_status
build(spmla_ctx *ctx, const spmla_i_cuda_image *image, spmla_diag *diag)
{
	const spmla_i_cuda_driver *driver = spmla_i_cuda_driver_of(ctx);
	spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
	spmla_cu_module module = NULL;
	spmla_cu_stream stream = NULL;
	spmla_cu_result r;
	spmla_status s;
	uint32_t i;

	s = check_device(ctx, diag);
	if (s != SPMLA_OK)
		return s;
	r = driver->stream_create(&stream, SPMLA_CU_STREAM_NON_BLOCKING);
	if (r)
		return spmla_i_cuda_failed(diag, "cuStreamCreate", r);
	state->stream = stream;
	r = driver->module_load(&module, image->data);
	if (r)
		return spmla_i_cuda_failed(diag, "cuModuleLoadData", r);
	state->library = module;
	for (i = 0; s == SPMLA_OK && i < SPMLA_KERNEL_COUNT; i++)
		s = take_kernel(ctx, i, diag);
	return s == SPMLA_OK ? spmla_i_cuda_zero(ctx, diag) : s;
}

spmla_status
spmla_i_cuda_init(spmla_ctx *ctx, const spmla_i_cuda_driver *driver,
		  const spmla_i_cuda_image *image, const spmla_native *native,
		  spmla_diag *diag)
{
	spmla_i_gpu_state *state = spmla_i_cuda_state(ctx);
	spmla_cu_context context = NULL;
	spmla_status s;

	if (image->bytes == 0)
		return spmla_i_fail(diag, SPMLA_E_NO_BLOB,
				    "bytes of kernels for CUDA", 0,
				    SPMLA_WANT_AT_LEAST, 1);
	s = spmla_i_cuda_start(driver, image->driver_version, diag);
	if (s == SPMLA_OK)
		s = spmla_i_cuda_context(driver, native, &context, diag);
	if (s == SPMLA_OK)
		s = spmla_i_cuda_push(driver, context, diag);
	if (s != SPMLA_OK)
		return s;
	state->driver = driver;
	state->context = context;
	s = build(ctx, image, diag);
	if (s != SPMLA_OK)
		spmla_i_cuda_release(ctx);
	spmla_i_cuda_pop(driver);
	return s;
}
