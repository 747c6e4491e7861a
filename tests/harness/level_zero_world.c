/* SPDX-License-Identifier: Apache-2.0
 *
 * The first GPU that Level Zero's loader has, with a context, an immediate list
 * whose calls wait, and a queue, for programs of cuda_world.h.
 */
#include "tests/harness/cuda_memory.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/spmla.h"
#include "tests/substitutes/ze_fake.h"

enum { CONTEXT_DESC = 0xd };

static ze_fake_driver ze;
static spmla_native native;
static void *list;

static const struct {
	const char *name;
	size_t offset;
} symbols[] = {
#define OWN(field, symbol, parameters) \
	{symbol, offsetof(ze_fake_driver, own.field)},
#define MORE(field, symbol, parameters) \
	{symbol, offsetof(ze_fake_driver, field)},
	SPMLA_ZE_FUNCTIONS(OWN) ZE_FAKE_MORE(MORE)
#undef OWN
#undef MORE
};

static uint32_t
find_functions(void)
{
	void *library = dlopen("libze_loader.so.1", RTLD_NOW);
	size_t i;

	for (i = 0; library && i < sizeof symbols / sizeof *symbols; i++) {
		void *const found = dlsym(library, symbols[i].name);

		if (!found)
			return 0;
		memcpy((uint8_t *)&ze + symbols[i].offset, &found,
		       sizeof found);
	}
	return library != NULL;
}

/* The first queue group that computes. */
static uint32_t
ordinal_of(spmla_ze_device device)
{
	spmla_ze_queue_group_properties groups[8];
	uint32_t count = 8, i = 0;

	memset(groups, 0, sizeof groups);
	for (i = 0; i < count; i++)
		groups[i].stype = SPMLA_ZE_QUEUE_GROUP_PROPERTIES;
	cuda_memory_must(ze.own.queue_groups(device, &count, groups),
			 "zeDeviceGetCommandQueueGroupProperties");
	for (i = 0; i < count; i++)
		if (groups[i].flags & SPMLA_ZE_QUEUE_GROUP_COMPUTE)
			break;
	return i;
}

uint32_t
level_zero_world_open(void)
{
	const struct {
		uint32_t stype;
		const void *next;
		uint32_t flags;
	} context_desc = {CONTEXT_DESC, NULL, 0};
	spmla_ze_queue_desc desc = {SPMLA_ZE_QUEUE_DESC,        NULL, 0, 0, 0,
				    SPMLA_ZE_QUEUE_SYNCHRONOUS, 0};
	spmla_ze_driver driver;
	spmla_ze_device device;
	spmla_ze_context context;
	spmla_ze_queue queue;
	spmla_ze_list immediate;
	uint32_t drivers = 1, devices = 1;
	int started;

	if (!find_functions())
		return 0;
	started = ze.own.init(SPMLA_ZE_INIT_GPU_ONLY);
	/* A driver that was named does not pass by not starting. */
	if (getenv("ZE_ENABLE_ALT_DRIVERS"))
		cuda_memory_must(started, "zeInit with ZE_ENABLE_ALT_DRIVERS");
	if (started || ze.own.driver_get(&drivers, &driver) || !drivers ||
	    ze.own.device_get(driver, &devices, &device) || !devices)
		return 0;
	cuda_memory_must(ze.context_create(driver, &context_desc, &context),
			 "zeContextCreate");
	desc.ordinal = ordinal_of(device);
	cuda_memory_must(
		ze.own.list_immediate(context, device, &desc, &immediate),
		"zeCommandListCreateImmediate");
	desc.mode = 0;
	cuda_memory_must(ze.queue_create(context, device, &desc, &queue),
			 "zeCommandQueueCreate");
	native = (spmla_native)SPMLA_NATIVE_INIT;
	native.context = context;
	native.device = device;
	native.queue = queue;
	list = immediate;
	return 1;
}

const spmla_native *
level_zero_world_native(void)
{
	return &native;
}

void *
level_zero_world_list(void)
{
	return list;
}

int
level_zero_world_sync(void)
{
	return ze.queue_sync(native.queue, UINT64_MAX);
}
