/* SPDX-License-Identifier: Apache-2.0
 *
 * The HIP runtime as a platform. HIP has no contexts: a thread has a current
 * device, by number. Three functions give the device's properties, in one of
 * two layouts.
 */
#include "spmla/internal/check.h"
#include "spmla/internal/gpu_sizes.h"
#include "spmla/platform/hip/driver_hip.h"

#include <string.h>

SPMLA_STATIC_ASSERT(sizeof(spmla_i_hip_driver) <=
			    sizeof(((spmla_i_gpu_state *)0)->functions),
		    "the state holds every function");
SPMLA_STATIC_ASSERT(sizeof(spmla_hip_properties_0600) ==
				    SPMLA_HIP_PROPERTIES_BYTES &&
			    sizeof(spmla_hip_properties_0000) ==
				    SPMLA_HIP_PROPERTIES_BYTES,
		    "the runtime writes that many bytes");

static const char *const libraries[] = {"libamdhip64.so.7", "libamdhip64.so.6",
					"libamdhip64.so.5", NULL};

static const char *const names[SPMLA_GPU_CALLS] = {
#define NAME(field, name) [SPMLA_GPU_CALL_##field] = name,
	SPMLA_HIP_NAMES(NAME)
#undef NAME
};

static const spmla_i_gpu_symbol symbols[] = {
#define SHARED(field, name) {name, offsetof(spmla_i_hip_driver, gpu.field), 0},
#define OWN(field, symbol, parameters) \
	{symbol, offsetof(spmla_i_hip_driver, field), 0},
#define OPTIONAL(field, symbol, parameters) \
	{symbol, offsetof(spmla_i_hip_driver, field), 1},
	SPMLA_HIP_NAMES(SHARED) SPMLA_HIP_OWN(OWN)
		SPMLA_HIP_PROPERTIES(OPTIONAL)
#undef SHARED
#undef OWN
#undef OPTIONAL
};

static const spmla_i_hip_driver *
hip(const spmla_i_gpu_driver *driver)
{
	return (const spmla_i_hip_driver *)driver;
}

/* A context is 1 + a device's number. */
static void *
context_of(int number)
{
	return (void *)((uintptr_t)number + 1);
}

static int
number_of(const void *context)
{
	return (int)((uintptr_t)context - 1);
}

static spmla_status
find_context(const spmla_i_gpu_driver *driver, const spmla_native *native,
	     void **context, spmla_diag *diag)
{
	spmla_gpu_result r = 0;
	int number = 0;

	if (native && native->flags)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED, "native.flags",
				    native->flags, SPMLA_WANT_EQUAL, 0);
	if (native && native->device)
		memcpy(&number, native->device, sizeof number);
	else
		r = hip(driver)->get_device(&number);
	if (r)
		return spmla_i_gpu_refused(diag, "hipGetDevice", r);
	*context = context_of(number);
	return SPMLA_OK;
}

static spmla_status
enter(const spmla_i_gpu_driver *driver, void *context, void **before,
      spmla_diag *diag)
{
	spmla_gpu_result r;
	int number = 0;

	r = hip(driver)->get_device(&number);
	if (r)
		return spmla_i_gpu_refused(diag, "hipGetDevice", r);
	*before = context_of(number);
	r = hip(driver)->set_device(number_of(context));
	return r ? spmla_i_gpu_refused(diag, "hipSetDevice", r) : SPMLA_OK;
}

static void
leave(const spmla_i_gpu_driver *driver, void *before)
{
	(void)hip(driver)->set_device(number_of(before));
}

/* "gfx90a:sramecc+:xnack-" is 0x90a; 0 for no such name. */
static uint32_t
arch_of(const char name[SPMLA_HIP_NAME_BYTES])
{
	uint32_t arch = 0, i;

	if (memcmp(name, "gfx", 3) != 0)
		return 0;
	for (i = 3; i < 3 + 7 && name[i] && name[i] != ':'; i++) {
		const char c = name[i];

		if (c >= '0' && c <= '9')
			arch = arch << 4 | (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			arch = arch << 4 | (uint32_t)(c - 'a' + 10);
		else
			return 0;
	}
	return arch;
}

/* Every architecture that may have kernels, and the diag's field if the library
 * was built without them. */
static const struct {
	uint32_t arch;
	const char *field;
} archs[] = {
	{0x90a, "bytes of kernels for gfx90a"},
	{0x942, "bytes of kernels for gfx942"},
	{0x950, "bytes of kernels for gfx950"},
	{0x1100, "bytes of kernels for gfx1100"},
	{0x1201, "bytes of kernels for gfx1201"},
};

/* The diag's field for an architecture; NULL if it never has kernels. */
static const char *
kernels_of(uint32_t arch)
{
	uint32_t i;

	for (i = 0; i < SPMLA_I_COUNT(archs); i++)
		if (archs[i].arch == arch)
			return archs[i].field;
	return NULL;
}

spmla_i_gpu_image
spmla_i_hip_image(const uint8_t *blob, const spmla_i_hip_part *parts,
		  uint64_t count, uint32_t arch)
{
	spmla_i_gpu_image image = {NULL, 0, SPMLA_HIP_OLDEST, kernels_of(arch)};
	uint64_t i;

	if (!image.field)
		image.field = "bytes of kernels for plan.device.arch";
	for (i = 0; i < count; i++)
		if (parts[i].arch == arch) {
			image.data = blob + parts[i].offset;
			image.bytes = parts[i].bytes;
		}
	return image;
}

/* Reads the properties with the first of the three functions that is there. The
 * runtime writes all 1472 bytes, so this stack frame is larger than others may
 * be. */
static spmla_status
read_properties(const spmla_i_hip_driver *driver, int number,
		spmla_device *device, spmla_diag *diag)
{
	union {
		spmla_hip_properties_0600 new;
		spmla_hip_properties_0000 old;
	} p;
	const char *function = "hipGetDevicePropertiesR0600";
	spmla_gpu_result r;

	memset(&p, 0, sizeof p);
	if (driver->properties_0600) {
		r = driver->properties_0600(&p.new, number);
	} else if (driver->properties_0000) {
		function = "hipGetDevicePropertiesR0000";
		r = driver->properties_0000(&p.old, number);
	} else if (driver->properties_before) {
		function = "hipGetDeviceProperties";
		r = driver->properties_before(&p.old, number);
	} else {
		return spmla_i_fail(diag, SPMLA_E_NO_DRIVER, function, 0,
				    SPMLA_WANT_NOT_NULL, 0);
	}
	if (r)
		return spmla_i_gpu_refused(diag, function, r);
	if (driver->properties_0600) {
		device->arch = arch_of(p.new.arch_name);
		device->sm_count = (uint32_t)p.new.multiprocessors;
		device->subgroup_width = (uint32_t)p.new.warp_size;
	} else {
		device->arch = arch_of(p.old.arch_name);
		device->sm_count = (uint32_t)p.old.multiprocessors;
		device->subgroup_width = (uint32_t)p.old.warp_size;
	}
	return SPMLA_OK;
}

static spmla_status
facts(const spmla_i_gpu_driver *driver, spmla_device *device, spmla_diag *diag)
{
	spmla_gpu_result r;
	uint32_t width;
	int number = 0;
	spmla_status s;

	r = hip(driver)->get_device(&number);
	if (r)
		return spmla_i_gpu_refused(diag, "hipGetDevice", r);
	s = read_properties(hip(driver), number, device, diag);
	if (s != SPMLA_OK)
		return s;
	device->reserved = 0;
	if (!kernels_of(device->arch))
		return spmla_i_fail(
			diag, SPMLA_E_UNSUPPORTED,
			"device.arch (gfx90a, 942, 950, 1100 or 1201)",
			device->arch, SPMLA_WANT_NOTHING, 0);
	/* The compiler's default: wave64 up to gfx9, wave32 later. */
	width = device->arch < 0x1000 ? 64 : 32;
	if (device->subgroup_width != width)
		return spmla_i_fail(
			diag, SPMLA_E_UNSUPPORTED, "device.subgroup_width",
			device->subgroup_width, SPMLA_WANT_EQUAL, width);
	return SPMLA_OK;
}

/* Relaxed capture: another thread may end it, and no call of another thread
 * invalidates it. */
const spmla_i_gpu_platform spmla_i_hip_platform = {
	SPMLA_BACKEND_HIP,
	SPMLA_WANT_EQUAL,
	SPMLA_GPU_CAPTURE_RELAXED,
	"stream (of hipStreamCreate, or hipStreamPerThread)",
	names,
	{libraries, symbols, SPMLA_I_COUNT(symbols)},
	sizeof(spmla_i_hip_driver),
	find_context,
	enter,
	leave,
	facts,
};
