/* SPDX-License-Identifier: Apache-2.0
 *
 * See device.h. Declares the driver functions that it calls. An error ends the
 * program with the function's name and code.
 */
#include "examples/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/spmla_cpu.h"
#include "spmla/spmla_cuda.h"

enum { MOST_BLOCKS = 4096, ALIGN = 256 };
enum { NON_BLOCKING = 1, NO_TIMING = 2 }; /* of a stream, of an event */
enum { SIDE_STREAMS = 2, SIDE_EVENTS = 3 };

/* Names in the library, and members. A device address is a pointer here. */
#define FUNCTIONS(F)                                             \
	F(init, "cuInit", (unsigned))                            \
	F(device_get, "cuDeviceGet", (int *, int))               \
	F(retain, "cuDevicePrimaryCtxRetain", (void **, int))    \
	F(release, "cuDevicePrimaryCtxRelease_v2", (int))        \
	F(set_current, "cuCtxSetCurrent", (void *))              \
	F(stream_create, "cuStreamCreate", (void **, unsigned))  \
	F(stream_destroy, "cuStreamDestroy_v2", (void *))        \
	F(stream_wait, "cuStreamSynchronize", (void *))          \
	F(event_create, "cuEventCreate", (void **, unsigned))    \
	F(event_destroy, "cuEventDestroy_v2", (void *))          \
	F(host_alloc, "cuMemAllocHost_v2", (void **, size_t))    \
	F(host_free, "cuMemFreeHost", (void *))                  \
	F(alloc, "cuMemAlloc_v2", (void **, size_t))             \
	F(mem_free, "cuMemFree_v2", (void *))                    \
	F(set, "cuMemsetD8_v2", (void *, unsigned char, size_t)) \
	F(copy, "cuMemcpy", (void *, const void *, size_t))

#define MEMBER(member, name, args) int(*member) args;

static struct {
	void *library; /* NULL: the CPU */
	void *context;
	void *stream;
	int number;
	spmla_native native;
	spmla_v4_branches branches;
	FUNCTIONS(MEMBER)
} cuda;

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

#define MUST(member, ...) must(cuda.member(__VA_ARGS__), #member)

static int
find_functions(const char *program)
{
#define FIND(member, name, args)                                            \
	*(void **)(&cuda.member) = dlsym(cuda.library, name);               \
	if (!cuda.member) {                                                 \
		fprintf(stderr, "%s: the CUDA driver has no %s\n", program, \
			name);                                              \
		return 0;                                                   \
	}
	FUNCTIONS(FIND)
#undef FIND
	return 1;
}

static void
make_branches(void)
{
	uint32_t i;

	cuda.branches = (spmla_v4_branches)SPMLA_V4_BRANCHES_INIT;
	for (i = 0; i < SIDE_STREAMS; i++)
		MUST(stream_create, &cuda.branches.streams[i], NON_BLOCKING);
	for (i = 0; i < SIDE_EVENTS; i++)
		MUST(event_create, &cuda.branches.events[i], NO_TIMING);
}

const spmla_backend *
device_open(const char *program, const char *name)
{
	if (strcmp(name, "cpu") == 0)
		return &spmla_cpu;
	if (strcmp(name, "cuda") != 0) {
		fprintf(stderr,
			"%s: --backend: \"%s\" is unknown; there are cpu and "
			"cuda\n",
			program, name);
		return NULL;
	}
	cuda.library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda.library || !find_functions(program) || cuda.init(0) ||
	    cuda.device_get(&cuda.number, 0)) {
		fprintf(stderr, "%s: --backend: there is no CUDA device\n",
			program);
		return NULL;
	}
	MUST(retain, &cuda.context, cuda.number);
	MUST(set_current, cuda.context);
	MUST(stream_create, &cuda.stream, NON_BLOCKING);
	make_branches();
	cuda.native = (spmla_native)SPMLA_NATIVE_INIT;
	cuda.native.context = cuda.context;
	return &spmla_cuda;
}

void
device_close(void)
{
	uint32_t i;

	if (!cuda.library)
		return;
	for (i = 0; i < SIDE_EVENTS; i++)
		MUST(event_destroy, cuda.branches.events[i]);
	for (i = 0; i < SIDE_STREAMS; i++)
		MUST(stream_destroy, cuda.branches.streams[i]);
	MUST(stream_destroy, cuda.stream);
	MUST(release, cuda.number);
	cuda.library = NULL;
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
	int (*get_name)(char *, int, int) = NULL;
	char name[100] = "a device without a name";

	if (!cuda.library) {
		cpu_name(name, sizeof name);
		snprintf(text, DEVICE_TEXT, "cpu (%s), %s",
			 spmla_cpu_variant(ctx), name);
		return;
	}
	*(void **)(&get_name) = dlsym(cuda.library, "cuDeviceGetName");
	if (get_name)
		must(get_name(name, sizeof name, cuda.number),
		     "cuDeviceGetName");
	snprintf(text, DEVICE_TEXT, "cuda (sm_%u), %s",
		 spmla_ctx_plan(ctx)->device.arch, name);
}

const spmla_native *
device_native(void)
{
	return cuda.library ? &cuda.native : NULL;
}

spmla_stream
device_stream(void)
{
	return cuda.stream;
}

const spmla_v4_branches *
device_branches(void)
{
	return cuda.library ? &cuda.branches : NULL;
}

/* A block, zeroed. */
static void *
take(uint64_t bytes, int own)
{
	const uint64_t size = (bytes + ALIGN - 1) / ALIGN * ALIGN;
	void *p = NULL;

	if (size < bytes || size > SIZE_MAX || block_count == MOST_BLOCKS)
		return NULL;
	if (!cuda.library)
		p = aligned_alloc(ALIGN, (size_t)size);
	else if (own)
		MUST(alloc, &p, (size_t)size);
	else
		MUST(host_alloc, &p, (size_t)size);
	if (!p)
		return NULL;
	if (cuda.library && own)
		MUST(set, p, 0, (size_t)size);
	else
		memset(p, 0, (size_t)size);
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

		if (!cuda.library)
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
	if (cuda.library)
		MUST(stream_wait, cuda.stream);
}

void
device_copy(void *to, const void *from, uint64_t bytes)
{
	if (!cuda.library) {
		memcpy(to, from, (size_t)bytes);
		return;
	}
	device_wait();
	MUST(copy, to, from, (size_t)bytes);
}
