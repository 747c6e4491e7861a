/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a driver. The table lies in the caller's memory, because the library
 * has no state of its own; only the loaded driver stays.
 */
#include "spmla/platform/gpu/driver/driver_gpu.h"
#include "spmla/internal/check.h"

#include <dlfcn.h>
#include <string.h>

SPMLA_STATIC_ASSERT(sizeof(void *) == sizeof(((spmla_i_gpu_driver *)0)->init),
		    "dlsym gives functions as data pointers");

spmla_status
spmla_i_gpu_open(spmla_i_gpu_driver *driver,
		 const spmla_i_gpu_platform *platform, spmla_diag *diag)
{
	const char *const *name = platform->libraries;
	void *library = NULL;
	size_t i;

	memset(driver, 0, platform->driver_bytes);
	driver->platform = platform;
	/* RTLD_NODELETE: threads and memory of the driver outlive the handle,
	 * which is closed at once. */
	for (; *name && !library; name++)
		library = dlopen(*name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!library)
		return spmla_i_fail(diag, SPMLA_E_NO_DRIVER,
				    platform->libraries[0], 0,
				    SPMLA_WANT_NOT_NULL, 0);
	for (i = 0; i < platform->symbol_count; i++) {
		void *const found = dlsym(library, platform->symbols[i].name);

		memcpy((uint8_t *)driver + platform->symbols[i].offset, &found,
		       sizeof found);
	}
	dlclose(library);
	return SPMLA_OK;
}

/* The first missing function. */
static const char *
missing(const spmla_i_gpu_driver *driver)
{
	const spmla_i_gpu_symbol *symbols = driver->platform->symbols;
	size_t i;

	for (i = 0; i < driver->platform->symbol_count; i++) {
		void *found;

		memcpy(&found, (const uint8_t *)driver + symbols[i].offset,
		       sizeof found);
		if (!found && !symbols[i].optional)
			return symbols[i].name;
	}
	return NULL;
}

spmla_status
spmla_i_gpu_refused(spmla_diag *diag, const char *function,
		    spmla_gpu_result code)
{
	return spmla_i_fail(diag, SPMLA_E_DEVICE, function, (uint32_t)code,
			    SPMLA_WANT_EQUAL, 0);
}

spmla_status
spmla_i_gpu_start(const spmla_i_gpu_driver *driver, uint32_t version,
		  spmla_diag *diag)
{
	const char *absent = missing(driver);
	const char *function = SPMLA_I_GPU_NAME(driver, driver_version);
	spmla_gpu_result r;
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
	if (absent)
		return spmla_i_fail(diag, SPMLA_E_NO_DRIVER, absent, 0,
				    SPMLA_WANT_NOT_NULL, 0);
	r = driver->init(0);
	return r ? spmla_i_gpu_refused(diag, SPMLA_I_GPU_NAME(driver, init), r)
		 : SPMLA_OK;
}
