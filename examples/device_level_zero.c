/* SPDX-License-Identifier: Apache-2.0
 *
 * See device_level_zero.h. Declares the functions and structs that it uses,
 * with the numbers of Level Zero's documentation. An error ends the program
 * with the function's name and code.
 */
#include "examples/device_level_zero.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Handles are pointers here. Events are not used. */
#define FUNCTIONS(F)                                                        \
	F(zeInit, (uint32_t))                                               \
	F(zeDriverGet, (uint32_t *, void **))                               \
	F(zeDeviceGet, (void *, uint32_t *, void **))                       \
	F(zeDeviceGetProperties, (void *, void *))                          \
	F(zeDeviceGetCommandQueueGroupProperties,                           \
	  (void *, uint32_t *, void *))                                     \
	F(zeContextCreate, (void *, const void *, void **))                 \
	F(zeContextDestroy, (void *))                                       \
	F(zeCommandListCreateImmediate,                                     \
	  (void *, void *, const void *, void **))                          \
	F(zeCommandListDestroy, (void *))                                   \
	F(zeCommandListAppendMemoryCopy,                                    \
	  (void *, void *, const void *, size_t, void *, uint32_t, void *)) \
	F(zeCommandListAppendMemoryFill,                                    \
	  (void *, void *, const void *, size_t, size_t, void *, uint32_t,  \
	   void *))                                                         \
	F(zeCommandQueueCreate, (void *, void *, const void *, void **))    \
	F(zeCommandQueueDestroy, (void *))                                  \
	F(zeCommandQueueSynchronize, (void *, uint64_t))                    \
	F(zeMemAllocHost, (void *, const void *, size_t, size_t, void **))  \
	F(zeMemAllocDevice,                                                 \
	  (void *, const void *, size_t, size_t, void *, void **))          \
	F(zeMemFree, (void *, void *))

enum {
	GPU_ONLY = 1,
	PROPERTIES = 0x3,
	GROUP_PROPERTIES = 0x6,
	CONTEXT_DESC = 0xd,
	QUEUE_DESC = 0xe,
	DEVICE_ALLOC_DESC = 0x15,
	HOST_ALLOC_DESC = 0x16,
	COMPUTES = 1,
	WAITS = 1, /* mode of a list: each call */
	GROUPS = 8
};

/* What begins every struct: what it is, and what follows it. */
typedef struct head {
	uint32_t stype;
	const void *next;
} head;

typedef struct queue_group {
	head head;
	uint32_t flags;
	size_t pattern_bytes;
	uint32_t queues;
} queue_group;

typedef struct queue_desc {
	head head;
	uint32_t ordinal, index, flags, mode, priority;
} queue_desc;

typedef struct flags_desc {
	head head;
	uint32_t flags, ordinal;
} flags_desc;

#define MEMBER(name, args) int(*name) args;

static struct {
	void *library; /* NULL: it is not open */
	void *context, *device, *list, *queue;
	spmla_native native;
	struct {
		head head;
		uint32_t reserved[24];
		char name[256];
	} properties;
	FUNCTIONS(MEMBER)
} ze;

#define MUST(name, ...) must(ze.name(__VA_ARGS__), #name)

static void
must(int code, const char *function)
{
	if (code == 0)
		return;
	fprintf(stderr, "%s: the driver's code 0x%x\n", function,
		(unsigned)code);
	exit(1);
}

static int
find_functions(void)
{
#define FIND(name, args)                                 \
	*(void **)(&ze.name) = dlsym(ze.library, #name); \
	if (!ze.name)                                    \
		return 0;
	FUNCTIONS(FIND)
#undef FIND
	return 1;
}

static int
find_device(void **driver)
{
	uint32_t one = 1, count = 1;

	return ze.zeInit(GPU_ONLY) == 0 && ze.zeDriverGet(&one, driver) == 0 &&
	       one && ze.zeDeviceGet(*driver, &count, &ze.device) == 0 && count;
}

/* The first queue group that computes. */
static uint32_t
find_group(void)
{
	queue_group groups[GROUPS] = {0};
	uint32_t count = GROUPS, i;

	for (i = 0; i < GROUPS; i++)
		groups[i].head.stype = GROUP_PROPERTIES;
	MUST(zeDeviceGetCommandQueueGroupProperties, ze.device, &count, groups);
	for (i = 0; i + 1 < count && !(groups[i].flags & COMPUTES); i++)
		;
	return i;
}

int
level_zero_open(const char *program)
{
	const flags_desc context = {{CONTEXT_DESC, NULL}, 0, 0};
	queue_desc desc = {{QUEUE_DESC, NULL}, 0, 0, 0, WAITS, 0};
	void *driver = NULL;

	ze.library = dlopen("libze_loader.so.1", RTLD_NOW);
	if (!ze.library || !find_functions() || !find_device(&driver)) {
		fprintf(stderr,
			"%s: --backend: there is no Level Zero device\n",
			program);
		ze.library = NULL;
		return 0;
	}
	ze.properties.head.stype = PROPERTIES;
	MUST(zeDeviceGetProperties, ze.device, &ze.properties);
	MUST(zeContextCreate, driver, &context, &ze.context);
	desc.ordinal = find_group();
	MUST(zeCommandListCreateImmediate, ze.context, ze.device, &desc,
	     &ze.list);
	desc.mode = 0;
	MUST(zeCommandQueueCreate, ze.context, ze.device, &desc, &ze.queue);
	ze.native = (spmla_native)SPMLA_NATIVE_INIT;
	ze.native.context = ze.context;
	ze.native.device = ze.device;
	ze.native.queue = ze.queue;
	return 1;
}

int
level_zero_is_open(void)
{
	return ze.library != NULL;
}

void
level_zero_close(void)
{
	MUST(zeCommandListDestroy, ze.list);
	MUST(zeCommandQueueDestroy, ze.queue);
	MUST(zeContextDestroy, ze.context);
	ze.library = NULL;
}

const char *
level_zero_name(void)
{
	return ze.properties.name;
}

const spmla_native *
level_zero_native(void)
{
	return &ze.native;
}

spmla_stream
level_zero_list(void)
{
	return ze.list;
}

void *
level_zero_shared(uint64_t bytes, uint64_t align)
{
	const flags_desc desc = {{HOST_ALLOC_DESC, NULL}, 0, 0};
	void *p = NULL;

	MUST(zeMemAllocHost, ze.context, &desc, (size_t)bytes, (size_t)align,
	     &p);
	return p;
}

void *
level_zero_own(uint64_t bytes, uint64_t align)
{
	const flags_desc desc = {{DEVICE_ALLOC_DESC, NULL}, 0, 0};
	void *p = NULL;

	MUST(zeMemAllocDevice, ze.context, &desc, (size_t)bytes, (size_t)align,
	     ze.device, &p);
	return p;
}

void
level_zero_free(void *at)
{
	MUST(zeMemFree, ze.context, at);
}

/* Calls of the list wait for their end. */
void
level_zero_zero(void *to, uint64_t bytes)
{
	const uint8_t zero = 0;

	MUST(zeCommandListAppendMemoryFill, ze.list, to, &zero, 1,
	     (size_t)bytes, NULL, 0, NULL);
}

void
level_zero_copy(void *to, const void *from, uint64_t bytes)
{
	MUST(zeCommandListAppendMemoryCopy, ze.list, to, from, (size_t)bytes,
	     NULL, 0, NULL);
}

void
level_zero_wait(void)
{
	MUST(zeCommandQueueSynchronize, ze.queue, UINT64_MAX);
}
