/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of decode_loop, and the count that shows that no step allocates. With
 * -Wl,--wrap=malloc every call of malloc in SpMLA or in this program goes to
 * __wrap_malloc, and __real_malloc is the C library's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "examples/decode_loop.h"
#include "examples/device.h"

static alloc_count counted;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
int __real_posix_memalign(void **p, size_t align, size_t bytes);
void __real_free(void *p);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
int __wrap_posix_memalign(void **p, size_t align, size_t bytes);
void __wrap_free(void *p);

void *
__wrap_malloc(size_t bytes)
{
	counted.allocations++;
	return __real_malloc(bytes);
}

void *
__wrap_calloc(size_t count, size_t bytes)
{
	counted.allocations++;
	return __real_calloc(count, bytes);
}

void *
__wrap_realloc(void *p, size_t bytes)
{
	counted.allocations++;
	return __real_realloc(p, bytes);
}

void *
__wrap_aligned_alloc(size_t align, size_t bytes)
{
	counted.allocations++;
	return __real_aligned_alloc(align, bytes);
}

int
__wrap_posix_memalign(void **p, size_t align, size_t bytes)
{
	counted.allocations++;
	return __real_posix_memalign(p, align, bytes);
}

void
__wrap_free(void *p)
{
	counted.frees++;
	__real_free(p);
}

alloc_count
alloc_counted(void)
{
	return counted;
}

static uint64_t kept_bytes;

/* Returns the memory, or ends the program. */
static void *
kept(void *p, uint64_t bytes)
{
	if (!p) {
		fprintf(stderr, PROGRAM ": no memory for %llu bytes\n",
			(unsigned long long)bytes);
		exit(1);
	}
	kept_bytes += bytes;
	return p;
}

void *
keep(uint64_t bytes)
{
	return kept(device_shared(bytes), bytes);
}

void *
keep_own(uint64_t bytes)
{
	return kept(device_own(bytes), bytes);
}

uint64_t
keep_bytes(void)
{
	return kept_bytes;
}
