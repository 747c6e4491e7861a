/* SPDX-License-Identifier: Apache-2.0
 *
 * libcuda.so.1 for a machine without a device: the fake driver as the library
 * that SpMLA opens, so that the suites run on the emulator by the whole road
 * that they take to a device: dlopen, the embedded kernels (which are then not
 * looked into), captures, memory that is registered.
 */
#include "tests/support/cuda_fake.h"

#include <sys/mman.h>

#define PUBLIC __attribute__((visibility("default")))

typedef void function(void);

/* Each symbol is the function of that name in the table. */
#define SUBSTITUTE(field, symbol, parameters)                     \
	static function *resolve_##field(void)                    \
	{                                                         \
		return (function *)cuda_fake_driver.field;        \
	}                                                         \
	PUBLIC extern function substitute_##field __asm__(symbol) \
		__attribute__((ifunc("resolve_" #field)));
SPMLA_CU_FUNCTIONS(SUBSTITUTE)
#undef SUBSTITUTE

/* What else tests/support/cuda_memory.c asks for. */
PUBLIC int cuDeviceGet(int *device, int ordinal);
PUBLIC int cuDevicePrimaryCtxRetain(void **to, int device);
PUBLIC int cuCtxSetCurrent(void *ctx);
PUBLIC int cuMemHostAlloc(void **to, size_t bytes, unsigned flags);
PUBLIC int cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags);
PUBLIC int cuMemHostUnregister(void *p);

__attribute__((constructor)) static void
start(void)
{
	cuda_fake_reset();
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

/* A device would write it: the pages have to be there and writable. */
int
cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
	volatile uint8_t *at = p;
	size_t i;

	(void)flags;
	for (i = 0; i < bytes; i += 4096)
		at[i] = at[i];
	return 0;
}

int
cuMemHostUnregister(void *p)
{
	(void)p;
	return 0;
}
