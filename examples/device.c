/* SPDX-License-Identifier: Apache-2.0
 *
 * See device.h. Declares the driver functions that it calls. An error ends the
 * program with the function's name and code.
 */
#include "examples/device.h"
#include "examples/device_level_zero.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/spmla_cpu.h"
#include "spmla/spmla_cuda.h"
#include "spmla/spmla_hip.h"
#include "spmla/spmla_level_zero.h"

enum { MOST_BLOCKS = 4096, ALIGN = 256 };
enum { NON_BLOCKING = 1, NO_TIMING = 2 }; /* of a stream, of an event */
enum { SIDE_STREAMS = 2, SIDE_EVENTS = 3 };

/* Members, and their names in CUDA and in HIP: most functions are the same. A
 * device address is a pointer here. */
#define FUNCTIONS(F)                                                          \
	F(init, "cuInit", "hipInit", (unsigned))                              \
	F(device_get, "cuDeviceGet", "hipDeviceGet", (int *, int))            \
	F(device_name, "cuDeviceGetName", "hipDeviceGetName",                 \
	  (char *, int, int))                                                 \
	F(retain, "cuDevicePrimaryCtxRetain", NULL, (void **, int))           \
	F(release, "cuDevicePrimaryCtxRelease_v2", NULL, (int))               \
	F(set_current, "cuCtxSetCurrent", NULL, (void *))                     \
	F(set_device, NULL, "hipSetDevice", (int))                            \
	F(stream_create, "cuStreamCreate", "hipStreamCreateWithFlags",        \
	  (void **, unsigned))                                                \
	F(stream_destroy, "cuStreamDestroy_v2", "hipStreamDestroy", (void *)) \
	F(stream_wait, "cuStreamSynchronize", "hipStreamSynchronize",         \
	  (void *))                                                           \
	F(event_create, "cuEventCreate", "hipEventCreateWithFlags",           \
	  (void **, unsigned))                                                \
	F(event_destroy, "cuEventDestroy_v2", "hipEventDestroy", (void *))    \
	F(host_alloc, "cuMemAllocHost_v2", NULL, (void **, size_t))           \
	F(hip_host_alloc, NULL, "hipHostMalloc", (void **, size_t, unsigned)) \
	F(host_free, "cuMemFreeHost", "hipHostFree", (void *))                \
	F(alloc, "cuMemAlloc_v2", "hipMalloc", (void **, size_t))             \
	F(mem_free, "cuMemFree_v2", "hipFree", (void *))                      \
	F(set, "cuMemsetD8_v2", "hipMemsetD8",                                \
	  (void *, unsigned char, size_t))                                    \
	F(copy, "cuMemcpy", NULL, (void *, const void *, size_t))             \
	F(hip_copy, NULL, "hipMemcpy", (void *, const void *, size_t, int))

#define MEMBER(member, name, hip_name, args) int(*member) args;

static struct {
	void *library; /* NULL: the CPU */
	int is_hip;    /* else CUDA */
	void *context;
	void *stream;
	int number;
	spmla_native native;
	spmla_v4_branches branches;
	FUNCTIONS(MEMBER)
} gpu;

/* hipHostMallocPortable, Mapped and Coherent: the host and a kernel see each
 * other's writes while it runs. */
enum { HIP_COHERENT = 0x40000003, HIP_MEMCPY_DEFAULT = 4 };

/* What was allocated, to be freed at the end. */
static struct {
	void *at;
	int own;
} blocks[MOST_BLOCKS];
static uint32_t block_count;

static void
must(int code, const char *function)
{
	if (code == 0)
		return;
	fprintf(stderr, "%s: the driver's code %d\n", function, code);
	exit(1);
}

#define MUST(member, ...) must(gpu.member(__VA_ARGS__), #member)

static int
find_functions(const char *program)
{
	const char *wanted;

#define FIND(member, name, hip_name, args)                                    \
	wanted = gpu.is_hip ? hip_name : name;                                \
	*(void **)(&gpu.member) = wanted ? dlsym(gpu.library, wanted) : NULL; \
	if (wanted && !gpu.member) {                                          \
		fprintf(stderr, "%s: the driver has no %s\n", program,        \
			wanted);                                              \
		return 0;                                                     \
	}
	FUNCTIONS(FIND)
#undef FIND
	return 1;
}

static void *
open_library(void)
{
	static const char *const names[][4] = {
		{"libcuda.so.1"},
		{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}};
	const char *const *name = names[gpu.is_hip];
	void *library = NULL;

	while (*name && !library)
		library = dlopen(*name++, RTLD_NOW);
	return library;
}

static void
make_branches(void)
{
	uint32_t i;

	gpu.branches = (spmla_v4_branches)SPMLA_V4_BRANCHES_INIT;
	for (i = 0; i < SIDE_STREAMS; i++)
		MUST(stream_create, &gpu.branches.streams[i], NON_BLOCKING);
	for (i = 0; i < SIDE_EVENTS; i++)
		MUST(event_create, &gpu.branches.events[i], NO_TIMING);
}

const spmla_backend *
device_open(const char *program, const char *name)
{
	gpu.is_hip = strcmp(name, "hip") == 0;
	if (strcmp(name, "cpu") == 0)
		return &spmla_cpu;
	if (strcmp(name, "level_zero") == 0)
		return level_zero_open(program) ? &spmla_level_zero : NULL;
	if (!gpu.is_hip && strcmp(name, "cuda") != 0) {
		fprintf(stderr,
			"%s: --backend: \"%s\" is unknown; there are cpu, "
			"cuda, hip and level_zero\n",
			program, name);
		return NULL;
	}
	gpu.library = open_library();
	if (!gpu.library || !find_functions(program) || gpu.init(0) ||
	    gpu.device_get(&gpu.number, 0)) {
		fprintf(stderr, "%s: --backend: there is no %s device\n",
			program, gpu.is_hip ? "HIP" : "CUDA");
		return NULL;
	}
	gpu.native = (spmla_native)SPMLA_NATIVE_INIT;
	if (gpu.is_hip) {
		MUST(set_device, gpu.number);
		gpu.native.device = &gpu.number;
	} else {
		MUST(retain, &gpu.context, gpu.number);
		MUST(set_current, gpu.context);
		gpu.native.context = gpu.context;
	}
	MUST(stream_create, &gpu.stream, NON_BLOCKING);
	make_branches();
	return gpu.is_hip ? &spmla_hip : &spmla_cuda;
}

void
device_close(void)
{
	uint32_t i;

	if (level_zero_is_open())
		level_zero_close();
	if (!gpu.library)
		return;
	for (i = 0; i < SIDE_EVENTS; i++)
		MUST(event_destroy, gpu.branches.events[i]);
	for (i = 0; i < SIDE_STREAMS; i++)
		MUST(stream_destroy, gpu.branches.streams[i]);
	MUST(stream_destroy, gpu.stream);
	if (!gpu.is_hip)
		MUST(release, gpu.number);
	gpu.library = NULL;
}

/* The processor's name, as Linux has it. */
static void
cpu_name(char *name, size_t capacity)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(name, capacity, "an unknown processor");
	while (f && fgets(line, sizeof line, f)) {
		const char *colon = strstr(line, ": ");

		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		snprintf(name, capacity, "%.*s", (int)strcspn(colon + 2, "\n"),
			 colon + 2);
		break;
	}
	if (f)
		fclose(f);
}

void
device_text(const spmla_ctx *ctx, char text[DEVICE_TEXT])
{
	char name[100] = "";

	if (level_zero_is_open()) {
		snprintf(text, DEVICE_TEXT, "level_zero (0x%x), %.100s",
			 spmla_ctx_plan(ctx)->device.arch, level_zero_name());
		return;
	}
	if (!gpu.library) {
		cpu_name(name, sizeof name);
		snprintf(text, DEVICE_TEXT, "cpu (%s), %s",
			 spmla_cpu_variant(ctx), name);
		return;
	}
	MUST(device_name, name, sizeof name, gpu.number);
	snprintf(text, DEVICE_TEXT,
		 gpu.is_hip ? "hip (gfx%x), %s" : "cuda (sm_%u), %s",
		 spmla_ctx_plan(ctx)->device.arch, name);
}

const spmla_native *
device_native(void)
{
	if (level_zero_is_open())
		return level_zero_native();
	return gpu.library ? &gpu.native : NULL;
}

spmla_stream
device_stream(void)
{
	return level_zero_is_open() ? level_zero_list() : gpu.stream;
}

spmla_stream
device_queue(void)
{
	return level_zero_is_open() ? level_zero_native()->queue : gpu.stream;
}

const spmla_v4_branches *
device_branches(void)
{
	return gpu.library ? &gpu.branches : NULL;
}

/* Waits for the default stream. A copy or fill of the device's memory runs
 * there and returns before it is done. This program's streams do not wait for
 * the default stream. */
static void
await_default(void)
{
	MUST(stream_wait, NULL);
}

/* A block, zeroed. */
static void *
take(uint64_t bytes, int own)
{
	const uint64_t size = (bytes + ALIGN - 1) / ALIGN * ALIGN;
	void *p = NULL;

	if (size < bytes || size > SIZE_MAX || block_count == MOST_BLOCKS)
		return NULL;
	if (level_zero_is_open())
		p = own ? level_zero_own(size, ALIGN)
			: level_zero_shared(size, ALIGN);
	else if (!gpu.library)
		p = aligned_alloc(ALIGN, (size_t)size);
	else if (own)
		MUST(alloc, &p, (size_t)size);
	else if (gpu.is_hip)
		MUST(hip_host_alloc, &p, (size_t)size, HIP_COHERENT);
	else
		MUST(host_alloc, &p, (size_t)size);
	if (!p)
		return NULL;
	if (own && level_zero_is_open()) {
		level_zero_zero(p, size);
	} else if (gpu.library && own) {
		MUST(set, p, 0, (size_t)size);
		await_default();
	} else {
		memset(p, 0, (size_t)size);
	}
	blocks[block_count].at = p;
	blocks[block_count++].own = own;
	return p;
}

void *
device_shared(uint64_t bytes)
{
	return take(bytes ? bytes : 1, 0);
}

void *
device_own(uint64_t bytes)
{
	return take(bytes ? bytes : 1, 1);
}

void
device_free_all(void)
{
	while (block_count > 0) {
		void *p = blocks[--block_count].at;

		if (level_zero_is_open())
			level_zero_free(p);
		else if (!gpu.library)
			free(p);
		else if (blocks[block_count].own)
			MUST(mem_free, p);
		else
			MUST(host_free, p);
	}
}

void
device_wait(void)
{
	if (level_zero_is_open())
		level_zero_wait();
	else if (gpu.library)
		MUST(stream_wait, gpu.stream);
}

void
device_copy(void *to, const void *from, uint64_t bytes)
{
	device_wait();
	if (level_zero_is_open())
		level_zero_copy(to, from, bytes);
	else if (!gpu.library)
		memcpy(to, from, (size_t)bytes);
	else if (gpu.is_hip)
		MUST(hip_copy, to, from, (size_t)bytes, HIP_MEMCPY_DEFAULT);
	else
		MUST(copy, to, from, (size_t)bytes);
	if (gpu.library)
		await_default();
}
