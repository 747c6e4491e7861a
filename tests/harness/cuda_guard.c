/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks that end where mapped memory ends, between pages that nobody may
 * touch: a kernel that reads or writes past one faults, wherever it lies. Pages
 * are the host's, of 4 KiB, as the device sees them too. The rest of a block's
 * pages, in front of it and (for its alignment) behind it, is checked when the
 * block is freed.
 */
#include "tests/harness/cuda_memory.h"
#include "tests/harness/cuda_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, BUCKETS = 4096, UNTOUCHED = 0xC5 };
enum { ROW_ALIGN = 256 }; /* of a plan */

typedef struct piece {
	uint64_t offset; /* from guard.pages */
	uint64_t bytes;
} piece;

/* Lies in a page of its own in front of the pages that it describes. */
typedef struct guard {
	struct guard *next;
	void *block;    /* the caller's block */
	uint8_t *map;   /* all of it, with the holes */
	uint8_t *pages; /* the first that may be mapped */
	uint64_t map_bytes;
	uint32_t count;
	piece pieces[SPMLA_MAX_PLAN_ROWS];
} guard;

_Static_assert(sizeof(guard) <= PAGE, "a guard fits its page");

static uint32_t is_open;
static guard *guards[BUCKETS];

void
cuda_guard_open(void)
{
	is_open = 1;
}

uint32_t
cuda_guard_is_open(void)
{
	return is_open;
}

static uint64_t
up(uint64_t x, uint64_t to)
{
	return (x + to - 1) / to * to;
}

static guard **
find(const void *block)
{
	guard **g = &guards[(uintptr_t)block / 16 % BUCKETS];

	while (*g && (*g)->block != block)
		g = &(*g)->next;
	return g;
}

uint64_t
cuda_guard_bytes(const void *p)
{
	const guard *g = is_open ? *find(p) : NULL;

	return g ? g->pieces[0].bytes : 0;
}

/* The pages of a piece. */
static uint8_t *
piece_pages(const guard *g, const piece *p, uint64_t *bytes)
{
	const uint64_t first = p->offset / PAGE * PAGE;

	*bytes = up(p->offset + p->bytes, PAGE) - first;
	return g->pages + first;
}

/* Reserves address space for `span` bytes of pages, none of which is mapped
 * yet. */
static guard *
reserve(uint64_t span)
{
	const uint64_t bytes = span + 3 * PAGE; /* hole, guard, .., hole */
	uint8_t *map = __real_mmap(NULL, bytes, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	guard *g = (guard *)(void *)(map + PAGE);

	if (map == MAP_FAILED || mprotect(g, PAGE, PROT_READ | PROT_WRITE) != 0)
		cuda_memory_must(errno, "mmap of a guarded block");
	g->map = map;
	g->map_bytes = bytes;
	g->pages = map + 2 * PAGE;
	return g;
}

static void
add_piece(guard *g, uint64_t offset, uint64_t bytes, int fill)
{
	const piece p = {offset, bytes};
	uint64_t room;
	uint8_t *at = piece_pages(g, &p, &room);

	g->pieces[g->count++] = p;
	if (mprotect(at, room, PROT_READ | PROT_WRITE) != 0)
		cuda_memory_must(errno, "mprotect of a guarded block");
	memset(at, UNTOUCHED, room);
	memset(g->pages + offset, fill, bytes);
	if (cuda_memory_mapped)
		cuda_memory_must(cuda_memory_driver.host_register(
					 at, room, CUDA_PORTABLE_AND_MAPPED),
				 "cuMemHostRegister of a guarded block");
}

static void *
enlist(guard *g, void *block)
{
	guard **head = &guards[(uintptr_t)block / 16 % BUCKETS];

	g->block = block;
	g->next = *head;
	*head = g;
	return block;
}

void *
cuda_guard_alloc(uint64_t bytes, uint32_t align)
{
	uint64_t span, offset;
	guard *g;

	if (!is_open)
		return NULL;
	bytes += bytes == 0;
	span = up(bytes, PAGE);
	offset = span - up(bytes, align);
	g = reserve(span);
	add_piece(g, offset, bytes, 0);
	return enlist(g, g->pages + offset);
}

/* Moves each extent of that memory to the end of pages of its own, with a hole
 * behind, in `g` if it is not NULL. Returns the end of the last one. */
static uint64_t
spread(spmla_plan *plan, uint32_t memory, guard *g)
{
	uint64_t end = 0;
	uint32_t i;

	for (i = 0; i < plan->row_count; i++) {
		spmla_extent *e = &plan->extents[i];
		const uint64_t room = up(e->bytes, PAGE);

		if (e->memory != memory)
			continue;
		e->offset_bytes = end + room - up(e->bytes, ROW_ALIGN);
		if (g)
			add_piece(g, e->offset_bytes, e->bytes, 0xAB);
		end += room + PAGE;
	}
	return end - PAGE;
}

void *
cuda_guard_region(spmla_plan *plan, uint32_t memory)
{
	uint64_t bytes;
	guard *g;

	if (!is_open)
		return NULL;
	/* The context finds itself at its region's start. */
	if (memory == SPMLA_MEMORY_HOST) {
		bytes = plan->region_bytes[memory];
		return memset(cuda_guard_alloc(bytes, ROW_ALIGN), 0xAB, bytes);
	}
	bytes = spread(plan, memory, NULL);
	g = reserve(up(bytes, PAGE));
	(void)spread(plan, memory, g);
	plan->region_bytes[memory] = bytes;
	return enlist(g, g->pages);
}

static void
check_untouched(const guard *g, const uint8_t *from, const uint8_t *past,
		const char *where)
{
	for (; from < past; from++) {
		if (*from == UNTOUCHED)
			continue;
		fprintf(stderr, "cuda_guard: written %s a block of %llu B\n",
			where, (unsigned long long)g->pieces[0].bytes);
		_Exit(1);
	}
}

uint32_t
cuda_guard_free(void *p)
{
	guard **at, *g;
	uint32_t i;

	if (!is_open || !p)
		return 0;
	at = find(p);
	g = *at;
	if (!g)
		return 0;
	*at = g->next;
	for (i = 0; i < g->count; i++) {
		const piece *one = &g->pieces[i];
		const uint8_t *block = g->pages + one->offset;
		uint64_t room;
		uint8_t *pages = piece_pages(g, one, &room);

		check_untouched(g, pages, block, "before");
		check_untouched(g, block + one->bytes, pages + room, "behind");
		if (cuda_memory_mapped)
			cuda_memory_must(
				cuda_memory_driver.host_unregister(pages),
				"cuMemHostUnregister of a guarded block");
	}
	(void)__real_munmap(g->map, g->map_bytes);
	return 1;
}
