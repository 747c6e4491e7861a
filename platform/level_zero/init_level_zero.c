/* SPDX-License-Identifier: Apache-2.0
 *
 * See init_level_zero.h. The device's compiler builds the modules here. If it
 * refuses one, its log goes into the diag. The state owns every handle, and
 * spmla_i_ze_fini destroys those that are in it.
 */
#include "spmla/platform/level_zero/init_level_zero.h"
#include "spmla/platform/gpu/launch.h"

#include <string.h>

/* Buffers may be larger than 4 GiB. Divisions and square roots are rounded
 * correctly. */
#define BUILD_FLAGS                                 \
	"-ze-opt-greater-than-4GB-buffer-required " \
	"-cl-fp32-correctly-rounded-divide-sqrt"

/* Kernels by products of tiles spill with 128 registers, and half as many
 * threads may have 256. */
#define TILE_FLAGS  \
	BUILD_FLAGS \
	" "         \
	"-ze-opt-large-register-file"

enum { MOST_GROUPS = 8, DEFAULT_COPIES = 2 };

/* Whether a kernel reads at addresses that it has as numbers (g_load_at). The
 * driver must be told of such indirect accesses. */
static uint32_t
is_indirect(uint32_t kernel)
{
	return kernel == SPMLA_KERNEL_kv_compress_few;
}

spmla_status
spmla_i_ze_query(const spmla_i_ze_driver *driver, const spmla_native *native,
		 spmla_device *device, spmla_diag *diag)
{
	spmla_ze_device found = native ? native->device : NULL;
	spmla_device facts = SPMLA_DEVICE_INIT;
	spmla_status s = spmla_i_ze_start(driver, &found, diag);

	if (s == SPMLA_OK)
		s = spmla_i_ze_facts(driver, found, &facts, diag);
	if (s == SPMLA_OK)
		*device = facts;
	return s;
}

/* Takes the caller's handles. All memory belongs to the caller's context, so
 * the library uses that context. */
static spmla_status
take_native(spmla_i_ze_state *state, const spmla_native *native,
	    spmla_diag *diag)
{
	const spmla_native none = SPMLA_NATIVE_INIT;
	uint32_t copies = 0;

	if (!native)
		native = &none;
	if (native->struct_bytes > offsetof(spmla_native, graph_copies))
		copies = native->graph_copies;
	const spmla_i_check checks[] = {
		{"native.context", SPMLA_I_PTR(native->context),
		 SPMLA_WANT_NOT_NULL, 0},
		{"native.device", SPMLA_I_PTR(native->device),
		 SPMLA_WANT_NOT_NULL, 0},
		{"native.graph_copies", copies, SPMLA_WANT_AT_MOST,
		 SPMLA_I_ZE_MAX_COPIES},
	};

	if (native->flags)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED, "native.flags",
				    native->flags, SPMLA_WANT_EQUAL, 0);
	state->context = native->context;
	state->device = native->device;
	state->queue = native->queue;
	state->copies = copies ? copies : DEFAULT_COPIES;
	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

/* Finds the first queue group that computes, and whether the host may read
 * counters while kernels write them. */
static spmla_status
find_ways(spmla_i_ze_state *state, spmla_diag *diag)
{
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);
	spmla_ze_queue_group_properties groups[MOST_GROUPS];
	spmla_ze_memory_access_properties access;
	uint32_t count = MOST_GROUPS, i;
	spmla_gpu_result r;

	memset(groups, 0, sizeof groups);
	for (i = 0; i < MOST_GROUPS; i++)
		groups[i].stype = SPMLA_ZE_QUEUE_GROUP_PROPERTIES;
	r = driver->queue_groups(state->device, &count, groups);
	if (r)
		return spmla_i_gpu_refused(
			diag, "zeDeviceGetCommandQueueGroupProperties", r);
	for (i = 0; i < count; i++)
		if (groups[i].flags & SPMLA_ZE_QUEUE_GROUP_COMPUTE)
			break;
	if (i == count)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED,
				    "queue groups that compute", 0,
				    SPMLA_WANT_AT_LEAST, 1);
	state->ordinal = i;
	memset(&access, 0, sizeof access);
	access.stype = SPMLA_ZE_MEMORY_ACCESS_PROPERTIES;
	r = driver->memory_access(state->device, &access);
	if (r)
		return spmla_i_gpu_refused(
			diag, "zeDeviceGetMemoryAccessProperties", r);
	state->at_once = (access.host & SPMLA_ZE_ACCESS_CONCURRENT) != 0;
	return SPMLA_OK;
}

/* Returns the compiler's log as the field of a diag. The driver gives all of a
 * log or nothing, so it is read into graphs[], which init does not use yet; the
 * state keeps its beginning. */
static const char *
read_log(spmla_i_ze_state *state, spmla_ze_log log)
{
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);
	static const char prefix[] = "zeModuleCreate: ";
	const size_t room = sizeof state->log - sizeof prefix;
	char *const all = (char *)state->graphs;
	size_t bytes = 0;

	memset(state->log, 0, sizeof state->log);
	memcpy(state->log, prefix, sizeof prefix);
	if (!log || driver->log_text(log, &bytes, NULL) ||
	    bytes > sizeof state->graphs)
		return state->log;
	if (driver->log_text(log, &bytes, all) == 0)
		memcpy(state->log + sizeof prefix - 1, all,
		       bytes < room ? bytes : room);
	memset(state->graphs, 0, sizeof state->graphs);
	return state->log;
}

static spmla_status
build_module(spmla_i_ze_state *state, uint32_t which,
	     const spmla_i_ze_image *image, spmla_diag *diag)
{
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);
	const spmla_ze_module_desc desc = {
		SPMLA_ZE_MODULE_DESC,
		NULL,
		SPMLA_ZE_FORMAT_SPIRV,
		(size_t)image->bytes,
		image->spirv,
		which == SPMLA_ZE_TILES ? TILE_FLAGS : BUILD_FLAGS,
		NULL};
	spmla_ze_module module = NULL;
	spmla_ze_log log = NULL;
	spmla_status s = SPMLA_OK;
	spmla_gpu_result r;

	r = driver->module_create(state->context, state->device, &desc, &module,
				  &log);
	if (r == SPMLA_ZE_BUILD_FAILURE)
		s = spmla_i_gpu_refused(diag, read_log(state, log), r);
	else if (r)
		s = spmla_i_gpu_refused(diag, "zeModuleCreate", r);
	else
		state->modules[which] = module;
	if (log)
		(void)driver->log_destroy(log);
	return s;
}

/* The module to which a kernel belongs. */
static uint32_t
module_of(uint32_t kernel)
{
	return spmla_i_gpu_kernels[kernel].needs == SPMLA_GPU_NEEDS_TILE
		       ? SPMLA_ZE_TILES
		       : SPMLA_ZE_PORTABLE;
}

/* Creates a kernel. Its block size is set here, once and for all. */
static spmla_status
take_kernel(spmla_i_ze_state *state, uint32_t i, spmla_diag *diag)
{
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);
	const spmla_i_gpu_kernel *k = &spmla_i_gpu_kernels[i];
	const spmla_ze_kernel_desc desc = {SPMLA_ZE_KERNEL_DESC, NULL, 0,
					   k->name};
	const char *function = "zeKernelCreate";
	spmla_ze_kernel_properties p;
	spmla_ze_kernel kernel = NULL;
	spmla_gpu_result r;
	uint32_t groups = 0;

	memset(&p, 0, sizeof p);
	p.stype = SPMLA_ZE_KERNEL_PROPERTIES;
	r = driver->kernel_create(state->modules[module_of(i)], &desc, &kernel);
	if (r == 0) {
		state->kernels[i] = kernel;
		function = "zeKernelGetProperties";
		r = driver->kernel_properties(kernel, &p);
	}
	if (r == 0) {
		function = "zeKernelSetGroupSize";
		r = driver->group_size(kernel, k->items, 1, 1);
	}
	if (r == 0 && is_indirect(i)) {
		function = "zeKernelSetIndirectAccess";
		r = driver->indirect_access(kernel, SPMLA_ZE_INDIRECT_ALL);
	}
	if (r == 0) {
		function = "zeKernelSuggestMaxCooperativeGroupCount";
		r = driver->resident_groups(kernel, &groups);
	}
	if (r)
		return spmla_i_fail_at(diag, SPMLA_E_DEVICE, function, i,
				       (uint32_t)r, SPMLA_WANT_EQUAL, 0);
	if (p.args != k->pointers + 1)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED, k->name, p.args,
				    SPMLA_WANT_EQUAL, k->pointers + 1);
	if (groups < 1)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED, k->name, 0,
				    SPMLA_WANT_AT_LEAST, 1);
	state->resident_blocks[i] = groups;
	return SPMLA_OK;
}

spmla_status
spmla_i_ze_clear(const spmla_i_ze_state *state, void *to, uint64_t bytes,
		 spmla_diag *diag)
{
	const uint8_t zero = 0;
	const spmla_gpu_result r = spmla_i_ze_driver_of(state)->append_fill(
		state->list, to, &zero, sizeof zero, (size_t)bytes, NULL, 0,
		NULL);

	return r ? spmla_i_gpu_refused(diag, "zeCommandListAppendMemoryFill", r)
		 : SPMLA_OK;
}

spmla_status
spmla_i_ze_zero(spmla_ctx *ctx, spmla_diag *diag)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	spmla_status s = SPMLA_OK;
	uint32_t i;

	for (i = 0; s == SPMLA_OK && i < ctx->plan.row_count; i++) {
		const spmla_extent *e = &ctx->plan.extents[i];

		if (e->memory == SPMLA_MEMORY_DEVICE &&
		    e->life == SPMLA_LIFE_CONTEXT && e->bytes)
			s = spmla_i_ze_clear(state, ctx->buf[e->buf], e->bytes,
					     diag);
	}
	state->consumed = 0;
	return s;
}

void
spmla_i_ze_drop(const spmla_i_ze_state *state, spmla_i_ze_graph *graph)
{
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);
	uint32_t i;

	for (i = 0; i < SPMLA_I_ZE_MAX_COPIES; i++) {
		if (graph->lists[i])
			(void)driver->list_destroy(graph->lists[i]);
		if (graph->fences[i])
			(void)driver->fence_destroy(graph->fences[i]);
	}
	memset(graph, 0, sizeof *graph);
}

void
spmla_i_ze_fini(spmla_ctx *ctx)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);
	uint32_t i;

	for (i = 0; i < SPMLA_I_MAX_GRAPHS; i++)
		spmla_i_ze_drop(state, &state->graphs[i]);
	for (i = 0; i < SPMLA_I_MAX_KERNELS; i++)
		if (state->kernels[i])
			(void)driver->kernel_destroy(state->kernels[i]);
	memset(state->kernels, 0, sizeof state->kernels);
	for (i = 0; i < SPMLA_ZE_MODULES; i++)
		if (state->modules[i])
			(void)driver->module_destroy(state->modules[i]);
	memset(state->modules, 0, sizeof state->modules);
	if (state->list)
		(void)driver->list_destroy(state->list);
	state->list = NULL;
}

/* Creates the kernels that the context may run, and their modules. */
static spmla_status
take_kernels(spmla_ctx *ctx, const spmla_i_ze_image images[SPMLA_ZE_MODULES],
	     spmla_diag *diag)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	spmla_status s = SPMLA_OK;
	uint32_t i;

	for (i = 0; s == SPMLA_OK && i < SPMLA_KERNEL_COUNT; i++) {
		const uint32_t which = module_of(i);

		if (!spmla_i_gpu_runs((spmla_i_kernel)i, &ctx->plan))
			continue;
		if (!state->modules[which])
			s = build_module(state, which, &images[which], diag);
		if (s == SPMLA_OK)
			s = take_kernel(state, i, diag);
	}
	return s;
}

/* Creates the driver objects that the context owns. */
static spmla_status
build(spmla_ctx *ctx, const spmla_i_ze_image images[SPMLA_ZE_MODULES],
      spmla_diag *diag)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	const spmla_i_ze_driver *driver = spmla_i_ze_driver_of(state);
	spmla_ze_queue_desc desc = {SPMLA_ZE_QUEUE_DESC,        NULL, 0, 0, 0,
				    SPMLA_ZE_QUEUE_SYNCHRONOUS, 0};
	spmla_ze_list list = NULL;
	spmla_gpu_result r;
	spmla_status s;

	s = find_ways(state, diag);
	if (s != SPMLA_OK)
		return s;
	desc.ordinal = state->ordinal;
	r = driver->list_immediate(state->context, state->device, &desc, &list);
	if (r)
		return spmla_i_gpu_refused(diag, "zeCommandListCreateImmediate",
					   r);
	state->list = list;
	s = take_kernels(ctx, images, diag);
	return s == SPMLA_OK ? spmla_i_ze_zero(ctx, diag) : s;
}

spmla_status
spmla_i_ze_init(spmla_ctx *ctx, const spmla_i_ze_driver *driver,
		const spmla_i_ze_image images[SPMLA_ZE_MODULES],
		const spmla_native *native, spmla_diag *diag)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	spmla_device facts = SPMLA_DEVICE_INIT;
	spmla_ze_device device;
	spmla_status s;

	state->driver = driver;
	if (images[SPMLA_ZE_PORTABLE].bytes == 0)
		return spmla_i_fail(diag, SPMLA_E_NO_BLOB,
				    "bytes of kernels for Level Zero", 0,
				    SPMLA_WANT_AT_LEAST, 1);
	s = take_native(state, native, diag);
	device = state->device;
	if (s == SPMLA_OK)
		s = spmla_i_ze_start(driver, &device, diag);
	if (s == SPMLA_OK)
		s = spmla_i_ze_facts(driver, device, &facts, diag);
	if (s == SPMLA_OK)
		s = spmla_i_gpu_fits(&ctx->plan.device, &facts,
				     SPMLA_WANT_EQUAL, diag);
	if (s == SPMLA_OK)
		s = build(ctx, images, diag);
	if (s != SPMLA_OK)
		spmla_i_ze_fini(ctx);
	return s;
}
