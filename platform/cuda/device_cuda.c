/* SPDX-License-Identifier: Apache-2.0
 *
 * Device facts. All come from attributes, so a partition of a device reports
 * its own number of SMs.
 */
#include "spmla/platform/cuda/device_cuda.h"
#include "spmla/internal/check.h"

spmla_status
spmla_i_cuda_context(const spmla_i_cuda_driver *driver,
		     const spmla_native *native, spmla_cu_context *context,
		     spmla_diag *diag)
{
	spmla_cu_result r = 0;

	if (native && native->flags)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED, "native.flags",
				    native->flags, SPMLA_WANT_EQUAL, 0);
	*context = native ? native->context : NULL;
	if (!*context)
		r = driver->ctx_current(context);
	if (r)
		return spmla_i_cuda_failed(diag, "cuCtxGetCurrent", r);
	if (!*context)
		return spmla_i_fail(diag, SPMLA_E_NULL, "native.context", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	return SPMLA_OK;
}

spmla_status
spmla_i_cuda_facts(const spmla_i_cuda_driver *driver, spmla_device *device,
		   spmla_diag *diag)
{
	static const int attributes[] = {
		SPMLA_CU_ATTRIBUTE_MAJOR, SPMLA_CU_ATTRIBUTE_MINOR,
		SPMLA_CU_ATTRIBUTE_SM_COUNT, SPMLA_CU_ATTRIBUTE_WARP_SIZE};
	int got[SPMLA_I_COUNT(attributes)] = {0};
	spmla_cu_device number = 0;
	spmla_cu_result r;
	uint32_t i;

	r = driver->ctx_device(&number);
	if (r)
		return spmla_i_cuda_failed(diag, "cuCtxGetDevice", r);
	for (i = 0; i < SPMLA_I_COUNT(attributes); i++) {
		r = driver->attribute(&got[i], attributes[i], number);
		if (r)
			return spmla_i_cuda_failed(diag, "cuDeviceGetAttribute",
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
