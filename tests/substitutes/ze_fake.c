/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver's handles, devices, modules and memory; see ze_fake.h.
 */
#include "tests/substitutes/ze_fake_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HANDLES = 4096, VPU = 5, UNSUPPORTED = 0x78000003 };

ze_fake fake_ze;
static handle handles[HANDLES];
static handle *driver, *other_driver, *device, *other_device, *part, *context,
	*queue, *lists[2];

static const char *const names[ZE_FAKE_CALLS] = {
#define NAME(field, symbol, parameters) symbol,
	SPMLA_ZE_FUNCTIONS(NAME) ZE_FAKE_MORE(NAME)
#undef NAME
};

const char *
ze_fake_name(ze_fake_call call)
{
	return names[call];
}

/* Ends a program that breaks the driver's rules. It may be no test. */
void
ze_fake_must(uint32_t kept, const char *function, const char *what)
{
	if (kept)
		return;
	fprintf(stderr, "fake Level Zero: %s: %s\n", function, what);
	abort();
}

handle *
ze_fake_make(kind k)
{
	uint32_t i;

	for (i = 0; i < HANDLES; i++)
		if (handles[i].kind == FREE) {
			memset(&handles[i], 0, sizeof handles[i]);
			handles[i].kind = k;
			fake_ze.alive++;
			return &handles[i];
		}
	ze_fake_must(0, __func__, "out of handles");
	return NULL;
}

handle *
ze_fake_known(const void *p, kind k, const char *function)
{
	const uintptr_t at = (uintptr_t)p - (uintptr_t)handles;

	ze_fake_must(at < sizeof handles && at % sizeof *handles == 0 &&
			     handles[at / sizeof *handles].kind == k,
		     function, "no live handle of that kind");
	return &handles[at / sizeof *handles];
}

void
ze_fake_end(void *p, kind k, const char *function)
{
	handle *h = ze_fake_known(p, k, function);

	ze_fake_must(!h->running, function, "it still runs");
	free(h->commands);
	memset(h, 0, sizeof *h);
	fake_ze.alive--;
}

/* Counts a call, and returns the code that the call must give. */
int
ze_fake_enter(ze_fake_call call)
{
	fake_ze.calls[call]++;
	fake_ze.total++;
	if (fake_ze.total != fake_ze.fail_at &&
	    !(fake_ze.fails_on && fake_ze.fail_at &&
	      fake_ze.total > fake_ze.fail_at))
		return 0;
	fake_ze.failed = (int)call;
	return fake_ze.code;
}

/* ---- Devices ------------------------------------------------------------ */

int
ze_fake_f_init(uint32_t flags)
{
	ze_fake_must(flags == SPMLA_ZE_INIT_GPU_ONLY || flags == 0, __func__,
		     "flags");
	return ze_fake_enter(ZE_FAKE_init);
}

/* One handle, if there is room for it. */
static int
give(int code, uint32_t has, uint32_t *count, void *handle_to, handle *h)
{
	if (code)
		return code;
	if (handle_to && *count && has)
		memcpy(handle_to, &h, sizeof h);
	if (*count == 0 || *count > has)
		*count = has;
	return 0;
}

int
ze_fake_f_driver_get(uint32_t *count, spmla_ze_driver *drivers)
{
	handle *const all[2] = {other_driver, driver};
	const uint32_t first = !fake_ze.other_driver, has = 2 - first;
	const int r = ze_fake_enter(ZE_FAKE_driver_get);
	uint32_t i;

	if (r)
		return r;
	for (i = 0; drivers && i < *count && i < has; i++)
		drivers[i] = (void *)all[first + i];
	if (*count == 0 || *count > has)
		*count = has;
	return 0;
}

int
ze_fake_f_driver_version(spmla_ze_driver of, uint32_t *version)
{
	const handle *h = KNOWN(of, DRIVER);

	*version = h == other_driver ? 0 : fake_ze.version;
	return ze_fake_enter(ZE_FAKE_driver_version);
}

int
ze_fake_f_device_get(spmla_ze_driver of, uint32_t *count,
		     spmla_ze_device *devices)
{
	const handle *h = KNOWN(of, DRIVER);
	const int r = ze_fake_enter(ZE_FAKE_device_get);

	if (h == other_driver)
		return give(r, fake_ze.other_driver - 1, count, devices,
			    other_device);
	return give(r, fake_ze.devices, count, devices, device);
}

int
ze_fake_f_sub_devices(spmla_ze_device of, uint32_t *count,
		      spmla_ze_device *devices)
{
	const handle *h = KNOWN(of, DEVICE);
	const int r = ze_fake_enter(ZE_FAKE_sub_devices);

	return give(h == other_device ? UNSUPPORTED : r, 1, count, devices,
		    part);
}

void
ze_fake_of_device(const void *p, const char *function)
{
	ze_fake_must(p == device || p == part, function, "no device");
}

int
ze_fake_f_device_properties(spmla_ze_device of, spmla_ze_device_properties *to)
{
	const int r = ze_fake_enter(ZE_FAKE_device_properties);

	if (of != (void *)other_device)
		ze_fake_of_device(of, __func__);
	ze_fake_must(to->stype == SPMLA_ZE_DEVICE_PROPERTIES, __func__,
		     "stype");
	to->type = of == (void *)other_device ? VPU : fake_ze.type;
	to->vendor_id = 0x8086;
	to->device_id = fake_ze.device_id;
	to->slices = of == (void *)part && fake_ze.part_slices
			     ? fake_ze.part_slices
			     : fake_ze.slices;
	to->subslices_per_slice = fake_ze.subslices;
	snprintf(to->name, sizeof to->name, "%s", fake_ze.name);
	return r;
}

int
ze_fake_f_compute_properties(spmla_ze_device of,
			     spmla_ze_compute_properties *to)
{
	const int r = ze_fake_enter(ZE_FAKE_compute_properties);

	ze_fake_of_device(of, __func__);
	ze_fake_must(to->stype == SPMLA_ZE_COMPUTE_PROPERTIES, __func__,
		     "stype");
	to->max_group_items = fake_ze.group_items;
	to->max_shared_bytes = 65536;
	to->subgroup_size_count = 2;
	to->subgroup_sizes[0] = 8;
	to->subgroup_sizes[1] = fake_ze.subgroup_size;
	return r;
}

int
ze_fake_f_memory_access(spmla_ze_device of,
			spmla_ze_memory_access_properties *to)
{
	const int r = ze_fake_enter(ZE_FAKE_memory_access);

	ze_fake_of_device(of, __func__);
	ze_fake_must(to->stype == SPMLA_ZE_MEMORY_ACCESS_PROPERTIES, __func__,
		     "stype");
	to->host = fake_ze.host_access;
	return r;
}

int
ze_fake_f_queue_groups(spmla_ze_device of, uint32_t *count,
		       spmla_ze_queue_group_properties *to)
{
	const int r = ze_fake_enter(ZE_FAKE_queue_groups);

	ze_fake_of_device(of, __func__);
	ze_fake_must(*count >= 2, __func__, "room");
	ze_fake_must(to->stype == SPMLA_ZE_QUEUE_GROUP_PROPERTIES, __func__,
		     "stype");
	to[0].flags = 2; /* copies */
	to[ORDINAL].flags = fake_ze.queue_group_flags;
	*count = 2;
	return r;
}

int
ze_fake_f_device_status(spmla_ze_device of)
{
	ze_fake_of_device(of, __func__);
	return ze_fake_enter(ZE_FAKE_device_status);
}

/* ---- Modules and kernels ------------------------------------------------ */

/* Whether the module is that one. */
static int
is_known(const spmla_ze_module_desc *desc, const spmla_i_ze_image *image)
{
	return desc->bytes == image->bytes &&
	       !memcmp(desc->data, image->spirv, desc->bytes);
}

int
ze_fake_f_module_create(spmla_ze_context in, spmla_ze_device on,
			const spmla_ze_module_desc *desc,
			spmla_ze_module *module, spmla_ze_log *log)
{
	const int r = ze_fake_enter(ZE_FAKE_module_create);

	KNOWN(in, CONTEXT);
	ze_fake_of_device(on, __func__);
	ze_fake_must(desc->stype == SPMLA_ZE_MODULE_DESC &&
			     desc->format == SPMLA_ZE_FORMAT_SPIRV,
		     __func__, "desc");
	if (r)
		return r;
	snprintf(fake_ze.flags, sizeof fake_ze.flags, "%s", desc->flags);
	*log = (void *)ze_fake_make(LOG);
	if (fake_ze.build_log)
		return SPMLA_ZE_BUILD_FAILURE;
	ze_fake_must(is_known(desc, &fake_ze.modules[SPMLA_ZE_PORTABLE]) ||
			     is_known(desc, &fake_ze.modules[SPMLA_ZE_TILES]),
		     __func__,
		     "another module than those that were translated");
	*module = (void *)ze_fake_make(MODULE);
	return 0;
}

int
ze_fake_f_module_destroy(spmla_ze_module module)
{
	ze_fake_end(module, MODULE, __func__);
	return ze_fake_enter(ZE_FAKE_module_destroy);
}

int
ze_fake_f_log_text(spmla_ze_log log, size_t *bytes, char *text)
{
	const int r = ze_fake_enter(ZE_FAKE_log_text);

	KNOWN(log, LOG);
	*bytes = strlen(fake_ze.build_log) + 1;
	if (text && r == 0)
		memcpy(text, fake_ze.build_log, *bytes);
	return r;
}

int
ze_fake_f_log_destroy(spmla_ze_log log)
{
	ze_fake_end(log, LOG, __func__);
	return ze_fake_enter(ZE_FAKE_log_destroy);
}

int
ze_fake_f_kernel_create(spmla_ze_module module,
			const spmla_ze_kernel_desc *desc,
			spmla_ze_kernel *kernel)
{
	const int r = ze_fake_enter(ZE_FAKE_kernel_create);
	ze_fake_kernel found;
	handle *h;

	KNOWN(module, MODULE);
	ze_fake_must(desc->stype == SPMLA_ZE_KERNEL_DESC, __func__, "stype");
	if (r)
		return r;
	if (!fake_ze.find(desc->name, &found))
		return 0x78000011; /* INVALID_KERNEL_NAME */
	h = ze_fake_make(KERNEL);
	h->kernel = found;
	*kernel = (void *)h;
	return 0;
}

int
ze_fake_f_kernel_destroy(spmla_ze_kernel kernel)
{
	ze_fake_end(kernel, KERNEL, __func__);
	return ze_fake_enter(ZE_FAKE_kernel_destroy);
}

int
ze_fake_f_kernel_properties(spmla_ze_kernel kernel,
			    spmla_ze_kernel_properties *to)
{
	const handle *h = KNOWN(kernel, KERNEL);

	ze_fake_must(to->stype == SPMLA_ZE_KERNEL_PROPERTIES, __func__,
		     "stype");
	to->args = h->kernel.args;
	to->required_group[0] = h->kernel.items;
	to->required_group[1] = to->required_group[2] = 1;
	to->required_subgroup_size = h->kernel.width;
	return ze_fake_enter(ZE_FAKE_kernel_properties);
}

int
ze_fake_f_group_size(spmla_ze_kernel kernel, uint32_t x, uint32_t y, uint32_t z)
{
	handle *h = KNOWN(kernel, KERNEL);

	ze_fake_must(x == h->kernel.items && y == 1 && z == 1, __func__,
		     "not the kernel's own");
	h->grouped = 1;
	return ze_fake_enter(ZE_FAKE_group_size);
}

int
ze_fake_f_indirect_access(spmla_ze_kernel kernel, uint32_t flags)
{
	ze_fake_must(flags == SPMLA_ZE_INDIRECT_ALL, __func__, "flags");
	KNOWN(kernel, KERNEL)->indirect = 1;
	fake_ze.indirect++;
	return ze_fake_enter(ZE_FAKE_indirect_access);
}

int
ze_fake_f_resident_groups(spmla_ze_kernel kernel, uint32_t *count)
{
	ze_fake_must(KNOWN(kernel, KERNEL)->grouped, __func__, "no group size");
	*count = fake_ze.resident;
	return ze_fake_enter(ZE_FAKE_resident_groups);
}

int
ze_fake_f_set_argument(spmla_ze_kernel kernel, uint32_t index, size_t bytes,
		       const void *value)
{
	const int r = ze_fake_enter(ZE_FAKE_set_argument);
	handle *h = KNOWN(kernel, KERNEL);

	ze_fake_must(index < h->kernel.args, __func__, "index");
	if (r)
		return r;
	h->set |= UINT64_C(1) << index;
	if (index + 1 == h->kernel.args) {
		ze_fake_must(value && bytes <= ZE_FAKE_MAX_SCALARS, __func__,
			     "bytes");
		h->args.scalar_bytes = (uint32_t)bytes;
		memcpy(h->args.scalars, value, bytes);
		return 0;
	}
	ze_fake_must(bytes == sizeof(void *), __func__, "bytes of a pointer");
	h->args.pointers[index] = NULL;
	if (value)
		memcpy(&h->args.pointers[index], value, bytes);
	return 0;
}

/* ---- What callers need -------------------------------------------------- */

int
ze_fake_f_context_create(spmla_ze_driver of, const void *desc,
			 spmla_ze_context *to)
{
	KNOWN(of, DRIVER);
	*to = (void *)context;
	return desc ? ze_fake_enter(ZE_FAKE_context_create) : 1;
}

int
ze_fake_f_context_destroy(spmla_ze_context which)
{
	KNOWN(which, CONTEXT);
	return ze_fake_enter(ZE_FAKE_context_destroy);
}

int
ze_fake_f_queue_create(spmla_ze_context in, spmla_ze_device on,
		       const spmla_ze_queue_desc *desc, spmla_ze_queue *to)
{
	KNOWN(in, CONTEXT);
	ze_fake_of_device(on, __func__);
	ze_fake_must(desc->stype == SPMLA_ZE_QUEUE_DESC &&
			     desc->ordinal == ORDINAL,
		     __func__, "desc");
	*to = (void *)queue;
	return ze_fake_enter(ZE_FAKE_queue_create);
}

int
ze_fake_f_queue_destroy(spmla_ze_queue which)
{
	KNOWN(which, QUEUE);
	ze_fake_must(!ze_fake_running(), __func__, "lists run");
	return ze_fake_enter(ZE_FAKE_queue_destroy);
}

static int
allocate(ze_fake_call call, spmla_ze_context in, size_t bytes, size_t align,
	 void **to)
{
	const int r = ze_fake_enter(call);

	KNOWN(in, CONTEXT);
	*to = NULL;
	if (r == 0 && posix_memalign(to, align > 64 ? align : 64, bytes))
		return 0x70000002; /* OUT_OF_HOST_MEMORY */
	return r;
}

int
ze_fake_f_alloc_host(spmla_ze_context in, const void *desc, size_t bytes,
		     size_t align, void **to)
{
	(void)desc;
	return allocate(ZE_FAKE_alloc_host, in, bytes, align, to);
}

int
ze_fake_f_alloc_device(spmla_ze_context in, const void *desc, size_t bytes,
		       size_t align, spmla_ze_device on, void **to)
{
	(void)desc;
	ze_fake_of_device(on, __func__);
	return allocate(ZE_FAKE_alloc_device, in, bytes, align, to);
}

int
ze_fake_f_mem_free(spmla_ze_context in, void *at)
{
	KNOWN(in, CONTEXT);
	free(at);
	return ze_fake_enter(ZE_FAKE_mem_free);
}

const ze_fake_driver ze_fake_driver_table = {
#define FIELD(field, symbol, parameters) ze_fake_f_##field,
	{SPMLA_ZE_FUNCTIONS(FIELD)}, ZE_FAKE_MORE(FIELD)
#undef FIELD
};

/* ---- The caller --------------------------------------------------------- */

void
ze_fake_start(uint64_t seed)
{
	uint32_t i;

	for (i = 0; i < HANDLES; i++)
		free(handles[i].commands);
	memset(handles, 0, sizeof handles);
	ze_fake_reset_lists(seed);
	fake_ze.failed = -1;
	driver = ze_fake_make(DRIVER);
	other_driver = ze_fake_make(DRIVER);
	device = ze_fake_make(DEVICE);
	other_device = ze_fake_make(DEVICE);
	part = ze_fake_make(PART);
	context = ze_fake_make(CONTEXT);
	queue = ze_fake_make(QUEUE);
	for (i = 0; i < 2; i++) {
		lists[i] = ze_fake_make(LIST);
		lists[i]->immediate = 1;
	}
	fake_ze.alive = 0;
}

void
ze_fake_native(spmla_native *native)
{
	native->context = context;
	native->device = device;
	native->queue = queue;
}

spmla_stream
ze_fake_list(uint32_t i)
{
	return lists[i];
}
