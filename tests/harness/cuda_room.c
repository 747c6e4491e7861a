/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's own memory, which the host cannot read, in pages without
 * neighbours; of CUDA alone: a block ends where the last of its pages ends. The
 * pages are the driver's smallest, 2 MiB. The driver's documentation has the
 * types.
 */
#include "tests/harness/cuda_memory.h"
#include "tests/harness/cuda_world.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { PINNED = 1, ON_DEVICE = 1, READ_WRITE = 3, MINIMUM = 0 };
enum { BLOCKS = 256, ROW_ALIGN = 256 };

typedef struct location {
	int type;
	int id;
} location;

typedef struct properties {
	int type;
	int handle_types;
	location where;
	void *unused;
	uint8_t flags[8];
} properties;

typedef struct access {
	location where;
	int flags;
} access;

static struct {
	int (*granularity)(size_t *, const properties *, int);
	int (*reserve)(uint64_t *, size_t, size_t, uint64_t,
		       unsigned long long);
	int (*release)(uint64_t, size_t);
	int (*create)(uint64_t *, size_t, const properties *,
		      unsigned long long);
	int (*destroy)(uint64_t);
	int (*map)(uint64_t, size_t, size_t, uint64_t, unsigned long long);
	int (*unmap)(uint64_t, size_t);
	int (*set_access)(uint64_t, size_t, const access *, size_t);
	int (*put)(uint64_t, const void *, size_t);
	int (*get)(void *, uint64_t, size_t);
} vm;

/* Pages with memory. `block`: the caller's block in the first ones. */
typedef struct pages {
	void *block;
	uint64_t of; /* the address that was reserved, and its bytes */
	uint64_t of_bytes;
	uint64_t at;
	uint64_t bytes;
	uint64_t memory;
} pages;

static pages blocks[BLOCKS];
static size_t grain;
static const properties kind = {PINNED, 0, {ON_DEVICE, 0}, NULL, {0}};

uint32_t
cuda_room_open(void)
{
	static const struct {
		const char *name;
		void *to;
	} symbols[] = {
		{"cuMemGetAllocationGranularity", &vm.granularity},
		{"cuMemAddressReserve", &vm.reserve},
		{"cuMemAddressFree", &vm.release},
		{"cuMemCreate", &vm.create},
		{"cuMemRelease", &vm.destroy},
		{"cuMemMap", &vm.map},
		{"cuMemUnmap", &vm.unmap},
		{"cuMemSetAccess", &vm.set_access},
		{"cuMemcpyHtoD_v2", &vm.put},
		{"cuMemcpyDtoH_v2", &vm.get},
	};
	void *library = cuda_memory_kind() == SPMLA_BACKEND_CUDA
				? dlopen("libcuda.so.1", RTLD_NOW)
				: NULL;
	size_t i;

	for (i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		void *found = library ? dlsym(library, symbols[i].name) : NULL;

		if (!found)
			return 0;
		memcpy(symbols[i].to, &found, sizeof found);
	}
	return vm.granularity(&grain, &kind, MINIMUM) == 0;
}

static uint64_t
up(uint64_t x, uint64_t to)
{
	return (x + to - 1) / to * to;
}

/* Maps memory to reserved pages. */
static pages *
map_pages(uint64_t of, uint64_t of_bytes, uint64_t at, uint64_t bytes)
{
	const access rights = {kind.where, READ_WRITE};
	pages *p = blocks;

	while (p < blocks + BLOCKS && p->bytes)
		p++;
	cuda_memory_must(p == blocks + BLOCKS, "room for a block");
	cuda_memory_must(vm.create(&p->memory, bytes, &kind, 0), "cuMemCreate");
	cuda_memory_must(vm.map(at, bytes, 0, p->memory, 0), "cuMemMap");
	cuda_memory_must(vm.set_access(at, bytes, &rights, 1),
			 "cuMemSetAccess");
	p->block = NULL;
	p->of = of;
	p->of_bytes = of_bytes;
	p->at = at;
	p->bytes = bytes;
	return p;
}

/* Reserves addresses with a hole behind them. */
static uint64_t
reserve(uint64_t bytes)
{
	uint64_t at = 0;

	cuda_memory_must(vm.reserve(&at, bytes + grain, 0, 0, 0),
			 "cuMemAddressReserve");
	return at;
}

void *
cuda_room_alloc(uint64_t bytes, uint32_t align)
{
	const uint64_t room = up(bytes, grain), at = reserve(room);
	pages *p = map_pages(at, room + grain, at, room);

	p->block = (void *)(uintptr_t)(at + room - up(bytes, align));
	return p->block;
}

void *
cuda_room_region(spmla_plan *plan, uint32_t memory)
{
	uint64_t all = 0, end = 0, at;
	pages *first = NULL;
	uint32_t i;

	for (i = 0; i < plan->row_count; i++)
		if (plan->extents[i].memory == memory)
			all += up(plan->extents[i].bytes, grain) + grain;
	at = reserve(all);
	for (i = 0; i < plan->row_count; i++) {
		spmla_extent *e = &plan->extents[i];
		const uint64_t room = up(e->bytes, grain);
		pages *p;

		if (e->memory != memory)
			continue;
		e->offset_bytes = end + room - up(e->bytes, ROW_ALIGN);
		p = map_pages(at, all + grain, at + end, room);
		first = first ? first : p;
		end += room + grain;
	}
	if (!first)
		return NULL;
	plan->region_bytes[memory] = end - grain;
	first->block = (void *)(uintptr_t)at;
	return first->block;
}

void
cuda_room_free(void *block)
{
	uint64_t of = 0, of_bytes = 0;
	pages *p;

	for (p = blocks; p < blocks + BLOCKS; p++)
		if (p->bytes && p->block == block) {
			of = p->of;
			of_bytes = p->of_bytes;
		}
	for (p = blocks; p < blocks + BLOCKS; p++) {
		if (!p->bytes || p->of != of)
			continue;
		cuda_memory_must(vm.unmap(p->at, p->bytes), "cuMemUnmap");
		cuda_memory_must(vm.destroy(p->memory), "cuMemRelease");
		p->bytes = 0;
	}
	if (of)
		cuda_memory_must(vm.release(of, of_bytes), "cuMemAddressFree");
}

void
cuda_room_put(void *to, const void *from, uint64_t bytes)
{
	cuda_memory_must(vm.put((uint64_t)(uintptr_t)to, from, bytes),
			 "cuMemcpyHtoD");
}

void
cuda_room_get(void *to, const void *from, uint64_t bytes)
{
	cuda_memory_must(vm.get(to, (uint64_t)(uintptr_t)from, bytes),
			 "cuMemcpyDtoH");
}
