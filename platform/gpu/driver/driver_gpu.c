/* SPDX-License-Identifier: Apache-2.0
 *
 * See driver_gpu.h.
 */
#include "spmla/platform/gpu/driver/driver_gpu.h"
#include "spmla/internal/check.h"

#include <string.h>

spmla_status
spmla_i_gpu_open(spmla_i_gpu_driver *driver,
		 const spmla_i_gpu_platform *platform, spmla_diag *diag)
{
	memset(driver, 0, platform->driver_bytes);
	driver->platform = platform;
	return spmla_i_gpu_load(driver, &platform->library, diag);
}

spmla_status
spmla_i_gpu_start(const spmla_i_gpu_driver *driver, uint32_t version,
		  spmla_diag *diag)
{
	const char *function = SPMLA_I_GPU_NAME(driver, driver_version);
	spmla_gpu_result r;
	spmla_status s;
	int got = 0;

	/* An old driver lacks functions; its version is the better answer. */
	if (driver->driver_version) {
		r = driver->driver_version(&got);
		if (r)
			return spmla_i_gpu_refused(diag, function, r);
		if (got < 0 || (uint32_t)got < version)
			return spmla_i_fail(diag, SPMLA_E_DRIVER_OLD, function,
					    got < 0 ? 0 : (uint32_t)got,
					    SPMLA_WANT_AT_LEAST, version);
	}
	s = spmla_i_gpu_complete(driver, &driver->platform->library, diag);
	if (s != SPMLA_OK)
		return s;
	r = driver->init(0);
	return r ? spmla_i_gpu_refused(diag, SPMLA_I_GPU_NAME(driver, init), r)
		 : SPMLA_OK;
}
