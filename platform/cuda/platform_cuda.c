/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA driver as a platform. Device facts all come from attributes, so a
 * partition of a device reports its own number of SMs.
 */
#include "spmla/internal/check.h"
#include "spmla/internal/gpu_sizes.h"
#include "spmla/platform/cuda/driver_cuda.h"

SPMLA_STATIC_ASSERT(sizeof(spmla_i_cuda_driver) <=
			    sizeof(((spmla_i_gpu_state *)0)->functions),
		    "the state holds every function");

static const char *const libraries[] = {"libcuda.so.1", NULL};

static const char *const names[SPMLA_GPU_CALLS] = {
#define NAME(field, name, version) [SPMLA_GPU_CALL_##field] = name,
	SPMLA_CU_NAMES(NAME)
#undef NAME
};

static const spmla_i_gpu_symbol symbols[] = {
#define SHARED(field, name, version) \
	{name version, offsetof(spmla_i_cuda_driver, gpu.field), 0},
#define OWN(field, symbol, parameters) \
	{symbol, offsetof(spmla_i_cuda_driver, field), 0},
	SPMLA_CU_NAMES(SHARED) SPMLA_CU_OWN(OWN)
#undef SHARED
#undef OWN
};

static const spmla_i_cuda_driver *
cuda(const spmla_i_gpu_driver *driver)
{
	return (const spmla_i_cuda_driver *)driver;
}

static spmla_status
find_context(const spmla_i_gpu_driver *driver, const spmla_native *native,
	     void **context, spmla_diag *diag)
{
	spmla_cu_context current = native ? native->context : NULL;
	spmla_gpu_result r = 0;

	if (native && native->flags)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED, "native.flags",
				    native->flags, SPMLA_WANT_EQUAL, 0);
	if (!current)
		r = cuda(driver)->ctx_current(&current);
	if (r)
		return spmla_i_gpu_refused(diag, "cuCtxGetCurrent", r);
	if (!current)
		return spmla_i_fail(diag, SPMLA_E_NULL, "native.context", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	*context = current;
	return SPMLA_OK;
}

/* The driver keeps a stack of contexts, so nothing has to be saved here. */
static spmla_status
enter(const spmla_i_gpu_driver *driver, void *context, void **before,
      spmla_diag *diag)
{
	const spmla_gpu_result r = cuda(driver)->ctx_push(context);

	*before = NULL;
	return r ? spmla_i_gpu_refused(diag, "cuCtxPushCurrent", r) : SPMLA_OK;
}

static void
leave(const spmla_i_gpu_driver *driver, void *before)
{
	spmla_cu_context context;

	(void)before;
	(void)cuda(driver)->ctx_pop(&context);
}

static spmla_status
facts(const spmla_i_gpu_driver *driver, spmla_device *device, spmla_diag *diag)
{
	static const int attributes[] = {
		SPMLA_CU_ATTRIBUTE_MAJOR, SPMLA_CU_ATTRIBUTE_MINOR,
		SPMLA_CU_ATTRIBUTE_SM_COUNT, SPMLA_CU_ATTRIBUTE_WARP_SIZE};
	int got[SPMLA_I_COUNT(attributes)] = {0};
	spmla_cu_device number = 0;
	spmla_gpu_result r;
	uint32_t i;

	r = cuda(driver)->ctx_device(&number);
	if (r)
		return spmla_i_gpu_refused(diag, "cuCtxGetDevice", r);
	for (i = 0; i < SPMLA_I_COUNT(attributes); i++) {
		r = cuda(driver)->attribute(&got[i], attributes[i], number);
		if (r)
			return spmla_i_gpu_refused(diag, "cuDeviceGetAttribute",
						   r);
	}
	device->arch = 10 * (uint32_t)got[0] + (uint32_t)got[1];
	device->sm_count = (uint32_t)got[2];
	device->subgroup_width = (uint32_t)got[3];
	device->reserved = 0;
	if (device->arch < SPMLA_I_CUDA_OLDEST_ARCH)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED, "device.arch",
				    device->arch, SPMLA_WANT_AT_LEAST,
				    SPMLA_I_CUDA_OLDEST_ARCH);
	/* Kernels assume warps of 32. */
	if (device->subgroup_width != 32)
		return spmla_i_fail(
			diag, SPMLA_E_UNSUPPORTED, "device.subgroup_width",
			device->subgroup_width, SPMLA_WANT_EQUAL, 32);
	return SPMLA_OK;
}

const spmla_i_gpu_platform spmla_i_cuda_platform = {
	SPMLA_BACKEND_CUDA,
	SPMLA_WANT_AT_MOST,
	SPMLA_GPU_CAPTURE_THREAD_LOCAL,
	"stream (of cuStreamCreate, or CU_STREAM_PER_THREAD)",
	names,
	{libraries, symbols, SPMLA_I_COUNT(symbols)},
	sizeof(spmla_i_cuda_driver),
	find_context,
	enter,
	leave,
	facts,
};
