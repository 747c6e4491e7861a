/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a driver. The table lies in the caller's memory, because the library
 * has no state of its own; only the loaded driver stays.
 */
#include "spmla/platform/gpu/driver/library_gpu.h"
#include "spmla/internal/check.h"

#include <dlfcn.h>
#include <string.h>

typedef void any_function(void);

SPMLA_STATIC_ASSERT(sizeof(void *) == sizeof(any_function *),
		    "dlsym gives functions as data pointers");

spmla_status
spmla_i_gpu_load(void *table, const spmla_i_gpu_library *library,
		 spmla_diag *diag)
{
	const char *const *name = library->names;
	void *handle = NULL;
	size_t i;

	/* RTLD_NODELETE: threads and memory of the driver outlive the handle,
	 * which is closed at once. */
	for (; *name && !handle; name++)
		handle = dlopen(*name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!handle)
		return spmla_i_fail(diag, SPMLA_E_NO_DRIVER, library->names[0],
				    0, SPMLA_WANT_NOT_NULL, 0);
	for (i = 0; i < library->symbol_count; i++) {
		void *const found = dlsym(handle, library->symbols[i].name);

		memcpy((uint8_t *)table + library->symbols[i].offset, &found,
		       sizeof found);
	}
	dlclose(handle);
	return SPMLA_OK;
}

spmla_status
spmla_i_gpu_complete(const void *table, const spmla_i_gpu_library *library,
		     spmla_diag *diag)
{
	const spmla_i_gpu_symbol *symbols = library->symbols;
	size_t i;

	for (i = 0; i < library->symbol_count; i++) {
		void *found;

		memcpy(&found, (const uint8_t *)table + symbols[i].offset,
		       sizeof found);
		if (!found && !symbols[i].optional)
			return spmla_i_fail(diag, SPMLA_E_NO_DRIVER,
					    symbols[i].name, 0,
					    SPMLA_WANT_NOT_NULL, 0);
	}
	return SPMLA_OK;
}

spmla_status
spmla_i_gpu_refused(spmla_diag *diag, const char *function,
		    spmla_gpu_result code)
{
	return spmla_i_fail(diag, SPMLA_E_DEVICE, function, (uint32_t)code,
			    SPMLA_WANT_EQUAL, 0);
}

spmla_status
spmla_i_gpu_fits(const spmla_device *want, const spmla_device *got,
		 uint32_t arch_rule, spmla_diag *diag)
{
	const spmla_i_check checks[] = {
		{"plan.device.arch", want->arch, arch_rule, got->arch},
		{"plan.device.sm_count", want->sm_count, SPMLA_WANT_EQUAL,
		 got->sm_count},
		{"plan.device.subgroup_width", want->subgroup_width,
		 SPMLA_WANT_EQUAL, got->subgroup_width},
	};
	spmla_status s = SPMLA_OK;
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
