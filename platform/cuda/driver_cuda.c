/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the driver. The table lies in the caller's memory, because the library
 * has no state of its own; only the loaded libcuda stays.
 */
#include "spmla/platform/cuda/driver_cuda.h"
#include "spmla/internal/check.h"

#include <dlfcn.h>
#include <string.h>

typedef struct symbol {
	const char *name;
	size_t offset; /* in the table */
} symbol;

static const symbol symbols[] = {
#define SYMBOL(field, symbol, parameters) \
	{symbol, offsetof(spmla_i_cuda_driver, field)},
	SPMLA_CU_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

SPMLA_STATIC_ASSERT(sizeof(void *) == sizeof(((spmla_i_cuda_driver *)0)->init),
		    "dlsym gives functions as data pointers");

spmla_status
spmla_i_cuda_open(spmla_i_cuda_driver *driver, spmla_diag *diag)
{
	/* RTLD_NODELETE: threads and memory of the driver outlive the handle,
	 * which is closed at once. */
	void *library =
		dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	uint32_t i;

	memset(driver, 0, sizeof *driver);
	if (!library)
		return spmla_i_fail(diag, SPMLA_E_NO_DRIVER, "libcuda.so.1", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	for (i = 0; i < SPMLA_I_COUNT(symbols); i++) {
		void *const found = dlsym(library, symbols[i].name);

		memcpy((uint8_t *)driver + symbols[i].offset, &found,
		       sizeof found);
	}
	dlclose(library);
	return SPMLA_OK;
}

/* The first missing function. */
static const char *
missing(const spmla_i_cuda_driver *driver)
{
	uint32_t i;

	for (i = 0; i < SPMLA_I_COUNT(symbols); i++) {
		void *found;

		memcpy(&found, (const uint8_t *)driver + symbols[i].offset,
		       sizeof found);
		if (!found)
			return symbols[i].name;
	}
	return NULL;
}

spmla_status
spmla_i_cuda_failed(spmla_diag *diag, const char *function,
		    spmla_cu_result code)
{
	return spmla_i_fail(diag, SPMLA_E_DEVICE, function, (uint32_t)code,
			    SPMLA_WANT_EQUAL, 0);
}

spmla_status
spmla_i_cuda_start(const spmla_i_cuda_driver *driver, uint32_t version,
		   spmla_diag *diag)
{
	const char *absent = missing(driver);
	spmla_cu_result r;
	int got = 0;

	/* An old driver lacks functions; its version is the better answer. */
	if (driver->driver_version) {
		r = driver->driver_version(&got);
		if (r)
			return spmla_i_cuda_failed(diag, "cuDriverGetVersion",
						   r);
		if (got < 0 || (uint32_t)got < version)
			return spmla_i_fail(diag, SPMLA_E_DRIVER_OLD,
					    "cuDriverGetVersion",
					    got < 0 ? 0 : (uint32_t)got,
					    SPMLA_WANT_AT_LEAST, version);
	}
	if (absent)
		return spmla_i_fail(diag, SPMLA_E_NO_DRIVER, absent, 0,
				    SPMLA_WANT_NOT_NULL, 0);
	r = driver->init(0);
	return r ? spmla_i_cuda_failed(diag, "cuInit", r) : SPMLA_OK;
}
