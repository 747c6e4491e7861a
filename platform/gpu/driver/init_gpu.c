/* SPDX-License-Identifier: Apache-2.0
 *
 * See init_gpu.h. The hard idea is failure: every handle has one owner, the
 * state, and one function destroys whatever is in it.
 */
#include "spmla/platform/gpu/driver/init_gpu.h"
#include "spmla/platform/gpu/launch.h"

#include <string.h>

SPMLA_STATIC_ASSERT((int)SPMLA_KERNEL_COUNT <= (int)SPMLA_I_MAX_KERNELS,
		    "the state holds every kernel");
spmla_status
spmla_i_gpu_query(const spmla_i_gpu_driver *driver, uint32_t driver_version,
		  const spmla_native *native, spmla_device *device,
		  spmla_diag *diag)
{
	const spmla_i_gpu_platform *platform = driver->platform;
	spmla_device facts = SPMLA_DEVICE_INIT;
	void *context, *before;
	spmla_status s;

	s = spmla_i_gpu_start(driver, driver_version, diag);
	if (s == SPMLA_OK)
		s = platform->context(driver, native, &context, diag);
	if (s == SPMLA_OK)
		s = platform->enter(driver, context, &before, diag);
	if (s != SPMLA_OK)
		return s;
	s = platform->facts(driver, &facts, diag);
	platform->leave(driver, before);
	facts.kind = platform->kind;
	if (s == SPMLA_OK)
		*device = facts;
	return s;
}

static spmla_status
check_device(const spmla_ctx *ctx, spmla_diag *diag)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);
	spmla_device got = SPMLA_DEVICE_INIT;
	spmla_status s = driver->platform->facts(driver, &got, diag);

	return s == SPMLA_OK
		       ? spmla_i_gpu_fits(&ctx->plan.device, &got,
					  driver->platform->arch_rule, diag)
		       : s;
}

/* Whether kernels may have a stack. Only the debug build of CUDA's does. */
static int
allows_stack(const spmla_ctx *ctx)
{
#ifdef SPMLA_KERNEL_DEBUG
	return ctx->plan.device.kind == SPMLA_BACKEND_CUDA;
#else
	(void)ctx;
	return 0;
#endif
}

/* Looks a kernel up, which loads it. */
static spmla_status
take_kernel(spmla_ctx *ctx, uint32_t i, spmla_diag *diag)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);
	const spmla_i_gpu_kernel *kernel = &spmla_i_gpu_kernels[i];
	spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	spmla_gpu_function function = NULL;
	int local_bytes = 0, blocks = 0;
	spmla_gpu_result r;

	if (!spmla_i_gpu_runs((spmla_i_kernel)i, &ctx->plan))
		return SPMLA_OK;
	r = driver->module_function(&function, state->library, kernel->name);
	/* Hopper may load binaries without wgmma. */
	if (r == SPMLA_GPU_NOT_FOUND && kernel->needs == SPMLA_GPU_NEEDS_WGMMA)
		return SPMLA_OK;
	if (r)
		return spmla_i_fail_at(
			diag, SPMLA_E_DEVICE,
			SPMLA_I_GPU_NAME(driver, module_function), i,
			(uint32_t)r, SPMLA_WANT_EQUAL, 0);
	r = driver->function_attribute(
		&local_bytes, SPMLA_GPU_FUNCTION_LOCAL_BYTES, function);
	if (r)
		return spmla_i_gpu_refused(
			diag, SPMLA_I_GPU_NAME(driver, function_attribute), r);
	/* The driver would allocate device memory for this stack, and grow it
	 * later. A kernel that the driver compiled itself, for a device newer
	 * than all binaries, may be left out if there is another. */
	local_bytes = allows_stack(ctx) ? 0 : local_bytes;
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
			function, SPMLA_GPU_FUNCTION_DYNAMIC_BYTES,
			(int)kernel->dynamic_bytes);
	if (r == SPMLA_GPU_INVALID_VALUE)
		return SPMLA_OK;
	if (r)
		return spmla_i_gpu_refused(
			diag, SPMLA_I_GPU_NAME(driver, set_function_attribute),
			r);
	r = driver->occupancy(&blocks, function, (int)kernel->items,
			      kernel->dynamic_bytes);
	if (r)
		return spmla_i_gpu_refused(
			diag, SPMLA_I_GPU_NAME(driver, occupancy), r);
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
spmla_i_gpu_zero(spmla_ctx *ctx, spmla_diag *diag)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);
	const spmla_plan *plan = &ctx->plan;
	spmla_gpu_result r;
	uint32_t i;

	for (i = 0; i < plan->row_count; i++) {
		const spmla_extent *e = &plan->extents[i];

		if (e->memory != SPMLA_MEMORY_DEVICE ||
		    e->life != SPMLA_LIFE_CONTEXT || e->bytes == 0)
			continue;
		r = driver->memset_async(SPMLA_I_PTR(ctx->buf[e->buf]), 0,
					 (size_t)e->bytes,
					 spmla_i_gpu_state_of(ctx)->stream);
		if (r)
			return spmla_i_gpu_refused(
				diag, SPMLA_I_GPU_NAME(driver, memset_async),
				r);
	}
	r = driver->stream_sync(spmla_i_gpu_state_of(ctx)->stream);
	return r ? spmla_i_gpu_refused(diag,
				       SPMLA_I_GPU_NAME(driver, stream_sync), r)
		 : SPMLA_OK;
}

/* Destroys what init and captures made; the context is current. */
void
spmla_i_gpu_release(spmla_ctx *ctx)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);
	spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
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

/* Makes the driver's objects of the context; the driver's is current. */
static spmla_status
build(spmla_ctx *ctx, const spmla_i_gpu_image *image, spmla_diag *diag)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);
	spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	spmla_gpu_module module = NULL;
	spmla_gpu_stream stream = NULL;
	spmla_gpu_result r;
	spmla_status s;
	uint32_t i;

	s = check_device(ctx, diag);
	if (s != SPMLA_OK)
		return s;
	r = driver->stream_create(&stream, SPMLA_GPU_STREAM_NON_BLOCKING);
	if (r)
		return spmla_i_gpu_refused(
			diag, SPMLA_I_GPU_NAME(driver, stream_create), r);
	state->stream = stream;
	r = driver->module_load(&module, image->data);
	if (r)
		return spmla_i_gpu_refused(
			diag, SPMLA_I_GPU_NAME(driver, module_load), r);
	state->library = module;
	for (i = 0; s == SPMLA_OK && i < SPMLA_KERNEL_COUNT; i++)
		s = take_kernel(ctx, i, diag);
	return s == SPMLA_OK ? spmla_i_gpu_zero(ctx, diag) : s;
}

spmla_status
spmla_i_gpu_init(spmla_ctx *ctx, const spmla_i_gpu_driver *driver,
		 const spmla_i_gpu_image *image, const spmla_native *native,
		 spmla_diag *diag)
{
	spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	void *context = NULL, *before;
	spmla_status s;

	if (image->bytes == 0)
		return spmla_i_fail(diag, SPMLA_E_NO_BLOB, image->field, 0,
				    SPMLA_WANT_AT_LEAST, 1);
	s = spmla_i_gpu_start(driver, image->driver_version, diag);
	if (s == SPMLA_OK)
		s = driver->platform->context(driver, native, &context, diag);
	if (s == SPMLA_OK)
		s = driver->platform->enter(driver, context, &before, diag);
	if (s != SPMLA_OK)
		return s;
	state->driver = driver;
	state->context = context;
	s = build(ctx, image, diag);
	if (s != SPMLA_OK)
		spmla_i_gpu_release(ctx);
	driver->platform->leave(driver, before);
	return s;
}
