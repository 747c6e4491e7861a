/* SPDX-License-Identifier: Apache-2.0
 *
 * malloc and mmap for a program whose memory a device must be able to read; see
 * cuda_memory.c. Blocks come from a heap that the driver allocated or, if large
 * and under guard, from cuda_guard.c. Small maps are registered one by one.
 * Maps of more address space than memory (MAP_NORESERVE) are memory that the
 * driver manages: only touched pages exist.
 */
#include "tests/harness/cuda_memory.h"
#include "tests/harness/cuda_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define cu          cuda_memory_driver
#define ARENA_BYTES (UINT64_C(1) << 30)

/* A smaller block is no buffer of a kernel, but the test program's own. */
enum { GUARD_LEAST = 64 };

/* Blocks are powers of two, aligned to themselves. The first granule of each
 * notes its class. */
enum { GRANULE = 6, CLASSES = 31 };
static uint8_t *arena;
static uint8_t *class_of;
static uint64_t arena_used;
static void *free_blocks[CLASSES];

void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_aligned_alloc(size_t, size_t);
int __wrap_posix_memalign(void **, size_t, size_t);
void __wrap_free(void *);
void *__wrap_mmap(void *, size_t, int, int, int, off_t);
int __wrap_munmap(void *, size_t);

static uint32_t
in_arena(const void *p)
{
	return arena && (uintptr_t)p - (uintptr_t)arena < ARENA_BYTES;
}

static uint8_t *
class_at(const void *p)
{
	return &class_of[((uintptr_t)p - (uintptr_t)arena) >> GRANULE];
}

static void *
take(size_t bytes, size_t align)
{
	uint32_t c = GRANULE;
	uint64_t at;
	void *p;

	if (bytes < align)
		bytes = align;
	while (c < CLASSES && (UINT64_C(1) << c) < bytes)
		c++;
	if (c == CLASSES)
		return NULL;
	p = free_blocks[c];
	if (p) {
		memcpy(&free_blocks[c], p, sizeof p);
		return p;
	}
	at = (arena_used + (UINT64_C(1) << c) - 1) >> c << c;
	if (at + (UINT64_C(1) << c) > ARENA_BYTES) {
		fprintf(stderr, "cuda_heap: the heap is full\n");
		_Exit(1);
	}
	arena_used = at + (UINT64_C(1) << c);
	p = arena + at;
	*class_at(p) = (uint8_t)c;
	return p;
}

/* ---- malloc ------------------------------------------------------------- */

static void *
guarded(size_t bytes, size_t align)
{
	if (bytes < GUARD_LEAST || !cuda_guard_is_open())
		return NULL;
	return cuda_guard_alloc(bytes, (uint32_t)align);
}

void *
__wrap_malloc(size_t bytes)
{
	void *p = guarded(bytes, 16);

	if (p)
		return p;
	return arena ? take(bytes, 16) : __real_malloc(bytes);
}

void *
__wrap_calloc(size_t count, size_t each)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(count, each, &bytes))
		return NULL;
	p = guarded(bytes, 16);
	if (!p && !arena)
		return __real_calloc(count, each);
	if (!p)
		p = take(bytes, 16);
	return p ? memset(p, 0, bytes) : NULL;
}

void
__wrap_free(void *p)
{
	const uint32_t c = in_arena(p) ? *class_at(p) : 0;

	if (c == 0) {
		if (!cuda_guard_free(p))
			__real_free(p);
		return;
	}
	memcpy(p, &free_blocks[c], sizeof p);
	free_blocks[c] = p;
}

/* The bytes of a block that __real_realloc does not know, or 0. */
static uint64_t
known_bytes(const void *p)
{
	return in_arena(p) ? UINT64_C(1) << *class_at(p) : cuda_guard_bytes(p);
}

void *
__wrap_realloc(void *p, size_t bytes)
{
	const uint64_t before = p ? known_bytes(p) : 0;
	void *to;

	if (p && before == 0)
		return __real_realloc(p, bytes);
	to = __wrap_malloc(bytes);
	if (!to || !p)
		return to;
	memcpy(to, p, before < bytes ? before : bytes);
	__wrap_free(p);
	return to;
}

void *
__wrap_aligned_alloc(size_t align, size_t bytes)
{
	void *p = guarded(bytes, align);

	if (p)
		return p;
	return arena ? take(bytes, align) : __real_aligned_alloc(align, bytes);
}

int
__wrap_posix_memalign(void **to, size_t align, size_t bytes)
{
	*to = guarded(bytes, align);
	if (*to)
		return 0;
	if (!arena)
		return __real_posix_memalign(to, align, bytes);
	*to = take(bytes, align);
	return *to ? 0 : ENOMEM;
}

/* ---- mmap --------------------------------------------------------------- */

enum { MANAGED = 16, ATTACH_GLOBAL = 1, REGISTERED = 64 };
static void *managed[MANAGED];
/* Unregister only maps that the driver knows: compute-sanitizer reports every
 * failed call, even one whose code is ignored. */
static void *registered[REGISTERED];

/* The place of that map, or the first free one for NULL. */
static void **
registered_at(const void *p)
{
	void **r = registered;

	while (r < registered + REGISTERED && *r != p)
		r++;
	return r < registered + REGISTERED ? r : NULL;
}

static void
register_map(void *p, size_t bytes)
{
	void **r = registered_at(NULL);

	cuda_memory_must(r ? 0 : ENOMEM, "room for one more map");
	cuda_memory_must(cu.host_register(p, bytes, CUDA_PORTABLE_AND_MAPPED),
			 "cuMemHostRegister");
	*r = p;
}

static void
unregister_map(void *p)
{
	void **r = registered_at(p);

	if (!r)
		return;
	cuda_memory_must(cu.host_unregister(p), "cuMemHostUnregister");
	*r = NULL;
}

/* The index in managed[], MANAGED if none. */
static uint32_t
managed_at(const void *p)
{
	uint32_t i = 0;

	while (i < MANAGED && managed[i] != p)
		i++;
	return i;
}

static void *
map_managed(size_t bytes)
{
	const uint32_t i = managed_at(NULL);
	uint64_t at = 0;
	const int r =
		i < MANAGED ? cu.managed_alloc(&at, bytes, ATTACH_GLOBAL) : -1;

	if (r) {
		printf("left out: cuMemAllocManaged of %zu B gives %d\n", bytes,
		       r);
		errno = ENOMEM;
		return MAP_FAILED;
	}
	managed[i] = (void *)(uintptr_t)at;
	return managed[i];
}

void *
__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file,
	    off_t offset)
{
	void *p;

	if (arena && flags & MAP_NORESERVE)
		return map_managed(bytes);
	p = __real_mmap(at, bytes, protection, flags, file, offset);
	if (arena && p != MAP_FAILED && protection & PROT_WRITE)
		register_map(p, bytes);
	return p;
}

int
__wrap_munmap(void *at, size_t bytes)
{
	const uint32_t i = arena ? managed_at(at) : MANAGED;

	if (i < MANAGED) {
		managed[i] = NULL;
		return cu.mem_free((uint64_t)(uintptr_t)at) ? -1 : 0;
	}
	unregister_map(at);
	return __real_munmap(at, bytes);
}

void
cuda_heap_open(void)
{
	void *heap = NULL;

	class_of = __real_calloc(1, ARENA_BYTES >> GRANULE);
	if (!class_of)
		cuda_memory_must(ENOMEM, "calloc");
	cuda_memory_must(
		cu.host_alloc(&heap, ARENA_BYTES, cuda_memory_host_flags()),
		"cuMemHostAlloc of a heap");
	arena = heap;
}
