/* SPDX-License-Identifier: Apache-2.0
 *
 * The Level Zero loader and the devices behind it. Level Zero has no current
 * device. The caller's device is looked for among the devices of every driver,
 * because only the version of its own driver counts.
 */
#include "spmla/internal/check.h"
#include "spmla/internal/gpu_sizes.h"
#include "spmla/platform/gpu/dialect/kernel.h"
#include "spmla/platform/level_zero/driver_level_zero.h"

#include <string.h>

enum { MOST_DRIVERS = 8, MOST_DEVICES = 32 };

SPMLA_STATIC_ASSERT(sizeof(spmla_i_ze_driver) <=
			    sizeof(((spmla_i_ze_state *)0)->functions),
		    "the state holds every function");
SPMLA_STATIC_ASSERT(sizeof(spmla_ze_device_properties) == 368 &&
			    sizeof(spmla_ze_compute_properties) == 88 &&
			    sizeof(spmla_ze_queue_group_properties) == 40 &&
			    sizeof(spmla_ze_memory_access_properties) == 40 &&
			    sizeof(spmla_ze_queue_desc) == 40 &&
			    sizeof(spmla_ze_list_desc) == 24 &&
			    sizeof(spmla_ze_module_desc) == 56 &&
			    sizeof(spmla_ze_kernel_properties) == 96,
		    "structs are as the loader has them");

static const char *const names[] = {"libze_loader.so.1", NULL};

static const spmla_i_gpu_symbol symbols[] = {
#define SYMBOL(field, symbol, parameters) \
	{symbol, offsetof(spmla_i_ze_driver, field), 0},
	SPMLA_ZE_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

const spmla_i_gpu_library spmla_i_ze_library = {names, symbols,
						SPMLA_I_COUNT(symbols)};

static spmla_status
is_gpu(const spmla_i_ze_driver *driver, spmla_ze_device device, uint32_t *is,
       spmla_diag *diag)
{
	spmla_ze_device_properties p;
	spmla_gpu_result r;

	memset(&p, 0, sizeof p);
	p.stype = SPMLA_ZE_DEVICE_PROPERTIES;
	r = driver->device_properties(device, &p);
	if (r)
		return spmla_i_gpu_refused(diag, "zeDeviceGetProperties", r);
	*is = p.type == SPMLA_ZE_DEVICE_GPU;
	return SPMLA_OK;
}

/* Sets *to, unless it is set, to `want` if the list has it; if want is NULL, to
 * the list's first GPU. Other devices are there, too, if the process has asked
 * for them. */
static spmla_status
pick(const spmla_i_ze_driver *driver, const spmla_ze_device *devices,
     uint32_t count, spmla_ze_device want, spmla_ze_device *to,
     spmla_diag *diag)
{
	spmla_status s = SPMLA_OK;
	uint32_t i;

	for (i = 0; s == SPMLA_OK && i < count && !*to; i++) {
		uint32_t is = devices[i] == want;

		if (!want)
			s = is_gpu(driver, devices[i], &is, diag);
		if (is)
			*to = devices[i];
	}
	return s;
}

/* Looks for the device among a driver's devices, or among its GPUs' parts. */
static spmla_status
search(const spmla_i_ze_driver *driver, spmla_ze_driver in, uint32_t parts,
       spmla_ze_device want, spmla_ze_device *found, spmla_diag *diag)
{
	spmla_ze_device devices[MOST_DEVICES], of_one[MOST_DEVICES];
	uint32_t count = MOST_DEVICES, i;
	spmla_status s = SPMLA_OK;
	spmla_gpu_result r;

	r = driver->device_get(in, &count, devices);
	if (r)
		return spmla_i_gpu_refused(diag, "zeDeviceGet", r);
	if (!parts)
		return pick(driver, devices, count, want, found, diag);
	for (i = 0; s == SPMLA_OK && i < count && !*found; i++) {
		uint32_t n = MOST_DEVICES, is = 0;

		s = is_gpu(driver, devices[i], &is, diag);
		if (!is)
			continue;
		r = driver->sub_devices(devices[i], &n, of_one);
		if (r)
			return spmla_i_gpu_refused(diag,
						   "zeDeviceGetSubDevices", r);
		s = pick(driver, of_one, n, want, found, diag);
	}
	return s;
}

/* Looks at every driver's devices, then at every GPU's parts. *in is the driver
 * that has the device. */
static spmla_status
find(const spmla_i_ze_driver *driver, spmla_ze_device want, spmla_ze_driver *in,
     spmla_ze_device *found, spmla_diag *diag)
{
	spmla_ze_driver drivers[MOST_DRIVERS];
	uint32_t count = MOST_DRIVERS, parts, i;
	spmla_status s = SPMLA_OK;
	spmla_gpu_result r;

	r = driver->driver_get(&count, drivers);
	if (r)
		return spmla_i_gpu_refused(diag, "zeDriverGet", r);
	for (parts = 0; parts < (want ? 2u : 1u); parts++)
		for (i = 0; s == SPMLA_OK && i < count && !*found; i++) {
			*in = drivers[i];
			s = search(driver, drivers[i], parts, want, found,
				   diag);
		}
	return s;
}

spmla_status
spmla_i_ze_start(const spmla_i_ze_driver *driver, spmla_ze_device *device,
		 spmla_diag *diag)
{
	spmla_ze_device found = NULL;
	spmla_ze_driver in = NULL;
	uint32_t version = 0;
	spmla_gpu_result r;
	spmla_status s;

	s = spmla_i_gpu_complete(driver, &spmla_i_ze_library, diag);
	if (s != SPMLA_OK)
		return s;
	r = driver->init(SPMLA_ZE_INIT_GPU_ONLY);
	if (r)
		return spmla_i_gpu_refused(diag, "zeInit", r);
	s = find(driver, *device, &in, &found, diag);
	if (s != SPMLA_OK)
		return s;
	if (!found)
		return *device ? spmla_i_fail(diag, SPMLA_E_RANGE,
					      "native.device (of zeDeviceGet)",
					      0, SPMLA_WANT_NOTHING, 0)
			       : spmla_i_fail(diag, SPMLA_E_DEVICE,
					      "zeDeviceGet: GPUs", 0,
					      SPMLA_WANT_AT_LEAST, 1);
	r = driver->driver_version(in, &version);
	if (r)
		return spmla_i_gpu_refused(diag, "zeDriverGetApiVersion", r);
	if (version < SPMLA_ZE_OLDEST)
		return spmla_i_fail(diag, SPMLA_E_DRIVER_OLD,
				    "zeDriverGetApiVersion", version,
				    SPMLA_WANT_AT_LEAST, SPMLA_ZE_OLDEST);
	*device = found;
	return SPMLA_OK;
}

/* Checks that the device can run blocks and subgroups as wide as the
 * kernels'. */
static spmla_status
check_widths(const spmla_i_ze_driver *driver, spmla_ze_device device,
	     spmla_diag *diag)
{
	spmla_ze_compute_properties p;
	spmla_gpu_result r;
	uint32_t i = 0;

	memset(&p, 0, sizeof p);
	p.stype = SPMLA_ZE_COMPUTE_PROPERTIES;
	r = driver->compute_properties(device, &p);
	if (r)
		return spmla_i_gpu_refused(diag, "zeDeviceGetComputeProperties",
					   r);
	if (p.max_group_items < SPMLA_WIDE_BLOCK)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED,
				    "maxTotalGroupSize of the device",
				    p.max_group_items, SPMLA_WANT_AT_LEAST,
				    SPMLA_WIDE_BLOCK);
	while (i < p.subgroup_size_count && i < SPMLA_ZE_SUBGROUP_SIZES &&
	       p.subgroup_sizes[i] != SPMLA_SPIRV_WIDTH)
		i++;
	if (i == p.subgroup_size_count || i == SPMLA_ZE_SUBGROUP_SIZES)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED,
				    "subGroupSizes of the device", 0,
				    SPMLA_WANT_EQUAL, SPMLA_SPIRV_WIDTH);
	return SPMLA_OK;
}

spmla_status
spmla_i_ze_facts(const spmla_i_ze_driver *driver, spmla_ze_device device,
		 spmla_device *to, spmla_diag *diag)
{
	spmla_ze_device_properties p;
	spmla_gpu_result r;
	spmla_status s;

	memset(&p, 0, sizeof p);
	p.stype = SPMLA_ZE_DEVICE_PROPERTIES;
	r = driver->device_properties(device, &p);
	if (r)
		return spmla_i_gpu_refused(diag, "zeDeviceGetProperties", r);
	if (p.type != SPMLA_ZE_DEVICE_GPU)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED,
				    "native.device (a GPU)", p.type,
				    SPMLA_WANT_EQUAL, SPMLA_ZE_DEVICE_GPU);
	s = check_widths(driver, device, diag);
	if (s != SPMLA_OK)
		return s;
	to->kind = SPMLA_BACKEND_LEVEL_ZERO;
	to->arch = p.device_id;
	to->sm_count = p.slices * p.subslices_per_slice;
	to->subgroup_width = SPMLA_SPIRV_WIDTH;
	to->reserved = 0;
	return SPMLA_OK;
}
