/* SPDX-License-Identifier: Apache-2.0
 *
 * libcuda.so.1 for a machine without a device: the fake driver as the library
 * that SpMLA opens. So the suites run on the emulator along the whole path to a
 * device: dlopen, the embedded kernels (their bytes are not read), captures,
 * registered memory. SPMLA_TEST_EMULATOR is the width of its subgroups, for
 * libamdhip64.c.
 */
#include "tests/substitutes/cuda_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/emulator/emulator.h"

#define PUBLIC __attribute__((visibility("default")))

typedef void function(void);

/* Each symbol is the function of that name in the table. */
#define SUBSTITUTE(field, symbol, from)                           \
	static function *resolve_##field(void)                    \
	{                                                         \
		return (function *)from.field;                    \
	}                                                         \
	PUBLIC extern function substitute_##field __asm__(symbol) \
		__attribute__((ifunc("resolve_" #field)));
#define SHARED(field, name, version) \
	SUBSTITUTE(field, name version, cuda_fake_driver.gpu)
#define OWN(field, symbol, parameters) \
	SUBSTITUTE(field, symbol, cuda_fake_driver)
SPMLA_CU_NAMES(SHARED)
SPMLA_CU_OWN(OWN)
#undef SHARED
#undef OWN

/* What else tests/harness/cuda_memory.c asks for. */
PUBLIC int cuDeviceGet(int *device, int ordinal);
PUBLIC int cuDevicePrimaryCtxRetain(void **to, int device);
PUBLIC int cuCtxSetCurrent(void *ctx);
PUBLIC int cuMemHostAlloc(void **to, size_t bytes, unsigned flags);
PUBLIC int cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags);
PUBLIC int cuMemHostUnregister(void *p);
PUBLIC int cuMemGetInfo_v2(size_t *available, size_t *all);
PUBLIC int cuMemAllocManaged(uint64_t *to, size_t bytes, unsigned flags);
PUBLIC int cuMemFree_v2(uint64_t at);
PUBLIC int cuMemGetAllocationGranularity(size_t *grain, const void *kind,
					 int option);
PUBLIC int cuMemAddressReserve(uint64_t *at, size_t bytes, size_t align,
			       uint64_t near_by, unsigned long long flags);
PUBLIC int cuMemAddressFree(uint64_t at, size_t bytes);
PUBLIC int cuMemCreate(uint64_t *memory, size_t bytes, const void *kind,
		       unsigned long long flags);
PUBLIC int cuMemRelease(uint64_t memory);
PUBLIC int cuMemMap(uint64_t at, size_t bytes, size_t offset, uint64_t memory,
		    unsigned long long flags);
PUBLIC int cuMemUnmap(uint64_t at, size_t bytes);
PUBLIC int cuMemSetAccess(uint64_t at, size_t bytes, const void *rights,
			  size_t count);
PUBLIC int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
PUBLIC int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);

__attribute__((constructor)) static void
start(void)
{
	const char *width = getenv("SPMLA_TEST_EMULATOR");
	const char *seed = getenv("SPMLA_TEST_SEED");

	cuda_fake_reset();
	fake.sm_count = 20; /* enough for several parts a token */
	fake.capture_mode = -1;
	emulator_set(width ? (uint32_t)strtoul(width, NULL, 10) : 32,
		     seed ? strtoull(seed, NULL, 0) : 1);
}

int
cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

int
cuDevicePrimaryCtxRetain(void **to, int device)
{
	(void)device;
	*to = cuda_fake_context();
	return 0;
}

int
cuCtxSetCurrent(void *ctx)
{
	return ctx != cuda_fake_context();
}

int
cuMemHostAlloc(void **to, size_t bytes, unsigned flags)
{
	(void)flags;
	*to = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return *to == MAP_FAILED ? 2 : 0;
}

enum { REGISTRATIONS = 1 << 14 };
static void *registrations[REGISTRATIONS];

/* The place of what was registered at p, the first free one for NULL. */
static void **
registration(const void *p)
{
	size_t i = 0;

	while (i < REGISTRATIONS && registrations[i] != p)
		i++;
	return i < REGISTRATIONS ? &registrations[i] : NULL;
}

/* A device would write this memory, so its pages must exist and be writable. */
int
cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
	volatile uint8_t *at = p;
	void **place = registration(p);
	size_t i;

	(void)flags;
	if (place)
		return 712; /* CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED */
	place = registration(NULL);
	if (!place)
		return 2; /* CUDA_ERROR_OUT_OF_MEMORY */
	for (i = 0; i < bytes; i += 4096)
		at[i] = at[i];
	*place = p;
	return 0;
}

int
cuMemHostUnregister(void *p)
{
	void **place = registration(p);

	if (!place)
		return 713; /* CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED */
	*place = NULL;
	return 0;
}

/* As if each handle took 2 MiB of the device. */
int
cuMemGetInfo_v2(size_t *available, size_t *all)
{
	*all = (size_t)1 << 36;
	*available = *all - ((size_t)fake.alive << 21);
	return 0;
}

/* The size of a mapping is not kept, so it stays until the program ends. */
int
cuMemAllocManaged(uint64_t *to, size_t bytes, unsigned flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)flags;
	*to = (uint64_t)(uintptr_t)p;
	return p == MAP_FAILED ? 2 : 0;
}

int
cuMemFree_v2(uint64_t at)
{
	(void)at;
	return 0;
}

/* ---- The device's own memory: pages of the host, mapped or not ----------- */

static void *
address(uint64_t at)
{
	return (void *)(uintptr_t)at;
}

int
cuMemGetAllocationGranularity(size_t *grain, const void *kind, int option)
{
	(void)kind;
	(void)option;
	*grain = 4096;
	return 0;
}

int
cuMemAddressReserve(uint64_t *at, size_t bytes, size_t align, uint64_t near_by,
		    unsigned long long flags)
{
	void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	(void)align;
	(void)near_by;
	(void)flags;
	*at = (uint64_t)(uintptr_t)p;
	return p == MAP_FAILED ? 2 : 0;
}

int
cuMemAddressFree(uint64_t at, size_t bytes)
{
	return munmap(address(at), bytes) ? 1 : 0;
}

int
cuMemCreate(uint64_t *memory, size_t bytes, const void *kind,
	    unsigned long long flags)
{
	(void)bytes;
	(void)kind;
	(void)flags;
	*memory = 1;
	return 0;
}

int
cuMemRelease(uint64_t memory)
{
	return memory != 1;
}

int
cuMemMap(uint64_t at, size_t bytes, size_t offset, uint64_t memory,
	 unsigned long long flags)
{
	(void)at;
	(void)bytes;
	(void)flags;
	return offset || memory != 1;
}

int
cuMemUnmap(uint64_t at, size_t bytes)
{
	return mprotect(address(at), bytes, PROT_NONE) ? 1 : 0;
}

int
cuMemSetAccess(uint64_t at, size_t bytes, const void *rights, size_t count)
{
	(void)rights;
	(void)count;
	return mprotect(address(at), bytes, PROT_READ | PROT_WRITE) ? 1 : 0;
}

int
cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
	cuda_fake_catch_up();
	memcpy(address(to), from, bytes);
	return 0;
}

int
cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
	cuda_fake_catch_up();
	memcpy(to, address(from), bytes);
	return 0;
}

/* ---- What bench_cuda asks for too -------------------------------------- */

PUBLIC int cuDeviceGetName(char *name, int size, int device);
PUBLIC int cuDeviceGetPCIBusId(char *name, int size, int device);
PUBLIC int cuCtxSynchronize(void);
PUBLIC int cuMemAlloc_v2(uint64_t *to, size_t bytes);
PUBLIC int cuMemFreeHost(void *at);
PUBLIC int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes,
				void *stream);
PUBLIC int cuGraphGetNodes(void *graph, void **nodes, size_t *count);
PUBLIC int cuEventElapsedTime(float *ms, void *from, void *to);

int
cuDeviceGetName(char *name, int size, int device)
{
	(void)device;
	snprintf(name, (size_t)size, "substitute");
	return 0;
}

int
cuDeviceGetPCIBusId(char *name, int size, int device)
{
	(void)name;
	(void)size;
	return device + 1; /* there is no bus */
}

int
cuCtxSynchronize(void)
{
	cuda_fake_catch_up();
	return 0;
}

enum { BLOCKS = 1 << 12 };
static struct {
	uint64_t at;
	size_t bytes;
} blocks[BLOCKS];
static size_t block_count;

/* Whether an address is of memory that the device alone has. A block stays one
 * when it is freed: its mapping stays, too. */
static int
is_own(uint64_t at)
{
	size_t i = 0;

	while (i < block_count &&
	       (at < blocks[i].at || at - blocks[i].at >= blocks[i].bytes))
		i++;
	return i < block_count;
}

int
cuMemAlloc_v2(uint64_t *to, size_t bytes)
{
	if (block_count == BLOCKS || cuMemAllocManaged(to, bytes, 1))
		return 2; /* CUDA_ERROR_OUT_OF_MEMORY */
	blocks[block_count].at = *to;
	blocks[block_count++].bytes = bytes;
	return 0;
}

/* Its size is not known: it stays. */
int
cuMemFreeHost(void *at)
{
	return at == NULL;
}

int
cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
	return stream == NULL;
}

/* The nodes of the capture that ended last. */
int
cuGraphGetNodes(void *graph, void **nodes, size_t *count)
{
	*count = fake.nodes;
	return graph == NULL || nodes != NULL;
}

int
cuEventElapsedTime(float *ms, void *from, void *to)
{
	*ms = (float)(cuda_fake_event_ms(to) - cuda_fake_event_ms(from));
	return 0;
}

/* ---- What the example asks for too ------------------------------------- */

PUBLIC int cuDevicePrimaryCtxRelease_v2(int device);
PUBLIC int cuEventCreate(void **event, unsigned flags);
PUBLIC int cuEventDestroy_v2(void *event);
PUBLIC int cuMemAllocHost_v2(void **to, size_t bytes);
PUBLIC int cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t bytes);
PUBLIC int cuMemcpy(uint64_t to, uint64_t from, size_t bytes);

int
cuDevicePrimaryCtxRelease_v2(int device)
{
	return device ? 101 : 0; /* CUDA_ERROR_INVALID_DEVICE */
}

/* With timing or without. A destroyed event is not used again. */
int
cuEventCreate(void **event, unsigned flags)
{
	static uint32_t made;

	if (made == 4 || (flags != 0 && flags != 2))
		return 1; /* CUDA_ERROR_INVALID_VALUE */
	*event = cuda_fake_event(made++);
	return 0;
}

int
cuEventDestroy_v2(void *event)
{
	return event == NULL;
}

/* Begins inside a page, as the driver's small blocks do. */
int
cuMemAllocHost_v2(void **to, size_t bytes)
{
	const int code = cuMemHostAlloc(to, bytes + 256, 0);

	if (code == 0)
		*to = (uint8_t *)*to + 256;
	return code;
}

int
cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t bytes)
{
	cuda_fake_later(address(to), NULL, byte, bytes);
	return 0;
}

/* Returns before a copy within the device's memory is done, as the driver. */
int
cuMemcpy(uint64_t to, uint64_t from, size_t bytes)
{
	if (is_own(to) && is_own(from)) {
		cuda_fake_later(address(to), address(from), 0, bytes);
		return 0;
	}
	cuda_fake_catch_up();
	memcpy(address(to), address(from), bytes);
	return 0;
}
