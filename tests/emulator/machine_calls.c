/* SPDX-License-Identifier: Apache-2.0
 *
 * What dialect.h calls, and barriers: who an item is, its block's memory, and
 * where items wait for each other.
 */
#include "tests/emulator/machine_state.h"

#include "spmla/platform/gpu/dialect/async.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_IDLE = 1 << 22,
	LOCAL_ALIGN = 1024, /* of LOCAL_DYNAMIC */
	POISON = 0xC9
};

uint32_t
spmla_i_emu_item(void)
{
	return machine.current - machine.here_first;
}

uint32_t
spmla_i_emu_lane(void)
{
	return machine.current & (machine.width - 1);
}

uint32_t
spmla_i_emu_block(void)
{
	return machine.here->index;
}

uint32_t
spmla_i_emu_blocks(void)
{
	return machine.grid;
}

uint32_t
spmla_i_emu_width(void)
{
	return machine.width;
}

/* The first item of a block that reaches an array poisons what the last block
 * left there. */
void
spmla_i_emu_local(void *array, uint32_t bytes)
{
	machine_block *block = machine.here;
	uint32_t i;

	if (machine.cluster > 1 || machine.kernel->live)
		machine_fail("LOCAL_ARRAY, where blocks are alive together");
	for (i = 0; i < block->array_count; i++)
		if (block->arrays[i] == array)
			return;
	if (block->array_count == MAX_ARRAYS)
		machine_fail("too many local arrays");
	block->arrays[block->array_count++] = array;
	memset(array, POISON, bytes);
}

/* Each place keeps its memory for the blocks to come. */
void *
spmla_i_emu_dynamic(uint32_t bytes)
{
	machine_block *block = machine.here;
	void *local, *seen;

	if (block->local_met)
		return block->local;
	if (bytes != machine.kernel->dynamic_bytes)
		machine_fail("LOCAL_DYNAMIC is not as large as the kernel's "
			     "line says");
	if (block->shared_bytes != bytes) {
		free(block->local);
		free(block->seen);
		if (posix_memalign(&local, LOCAL_ALIGN, bytes) ||
		    posix_memalign(&seen, LOCAL_ALIGN, bytes))
			abort();
		block->local = local;
		block->seen = seen;
		block->shared_bytes = bytes;
	}
	block->local_met = 1;
	memset(block->seen, POISON, bytes);
	return memset(block->local, POISON, bytes);
}

machine_block *
machine_block_of(const void *local)
{
	const uintptr_t at = (uintptr_t)local;
	machine_block *block = machine.here; /* most often */
	uint32_t i;

	for (i = 0; i <= MAX_LIVE; block = &machine.blocks[i++])
		if (block->alive && block->local_met &&
		    at - (uintptr_t)block->local < block->shared_bytes)
			return block;
	return machine.here;
}

void
spmla_i_emu_hand_on(uint32_t *to, const uint32_t *words, uint32_t count)
{
	memcpy(to, words, count * sizeof *to);
}

void
spmla_i_emu_take(const uint32_t *from, uint32_t *words, uint32_t count)
{
	memcpy(words, from, count * sizeof *from);
}

static void (*host)(const uint64_t *to);

void
emulator_host(void (*told)(const uint64_t *to))
{
	host = told;
}

void
spmla_i_emu_tell_host(uint64_t *to, uint64_t x)
{
	__atomic_store_n(to, x, __ATOMIC_RELEASE);
	if (host)
		host(to);
}

void
spmla_i_emu_misaligned(void)
{
	machine_fail("a wide access at an address that is not aligned to it");
}

/* An item that polls sleeps in between. If nothing else happens for too many
 * sleeps, the program ends. */
void
spmla_i_emu_sleep(void)
{
	if (++machine.idle > MAX_IDLE)
		machine_fail("items ask again and again for what does not "
			     "come");
	machine.slept = 1;
	fiber_back(machine.current);
}

uint32_t
machine_meet(machine_barrier *barrier, machine_block *first, uint32_t places,
	     uint32_t count, uint32_t waits, uint32_t is_vote, uint32_t vote,
	     const char *file, int line)
{
	machine_item *self = &machine.items[machine.current];
	uint32_t i;

	self->file = file;
	self->line = line;
	if (barrier->arrived == 0) {
		barrier->count = count;
		barrier->is_vote = is_vote;
		barrier->vote = 0;
		barrier->file = file;
		barrier->line = line;
	}
	if (barrier->count != count || barrier->is_vote != is_vote)
		machine_fail("items do not mean the same barrier");
	barrier->vote |= vote;
	if (++barrier->arrived < count) {
		if (waits)
			machine_wait(AT_BARRIER, barrier);
		else
			machine_pause();
		return self->vote;
	}
	barrier->arrived = 0;
	barrier->phase++;
	for (i = 0; i < places; i++)
		machine_wake(first + i, AT_BARRIER, barrier, barrier->vote);
	return barrier->vote;
}

void
spmla_i_emu_barrier(const char *file, int line)
{
	machine_block *block = machine.here;
	machine_barrier *barrier = block->barriers;

	if (barrier->arrived &&
	    (line != barrier->line ||
	     (file != barrier->file && strcmp(file, barrier->file) != 0)))
		machine_fail("items wait at different barriers");
	(void)machine_meet(barrier, block, 1, machine.kernel->items, 1, 0, 0,
			   file, line);
}

const uint32_t *
spmla_i_emu_exchange(const uint32_t *words, uint32_t count)
{
	const uint32_t lane = machine.lane;
	machine_group *group = machine.group;
	uint32_t *given = group->words[group->turn % 2];
	uint32_t i;

	if (count > MAX_WORDS)
		machine_fail("an item gives too many words");
	if (group->giving == 0)
		group->word_count = count;
	if (group->word_count != count)
		machine_fail("items give different numbers of words");
	for (i = 0; i < count; i++)
		given[i * machine.width + lane] = words[i];
	if (++group->giving < machine.width) {
		machine_wait(AT_EXCHANGE, group);
		return given;
	}
	group->giving = 0;
	group->turn++;
	machine_ready(group, ~UINT64_C(0) >> (64 - machine.width));
	return given;
}

uint32_t
machine_is_first(void)
{
	machine_group *group = machine.group;
	const uint32_t is_first = group->summed != group->turn;

	group->summed = group->turn;
	return is_first;
}

uint32_t
spmla_i_emu_named(uint32_t id, uint32_t items, uint32_t waits, uint32_t votes,
		  uint32_t is, const char *file, int line)
{
	machine_block *block = machine.here;

	if (id == 0 || id >= MAX_BARRIERS || items == 0 || items % 32 ||
	    items > machine.kernel->items)
		machine_fail("no such named barrier");
	return machine_meet(&block->barriers[id], block, 1, items, waits, votes,
			    is, file, line);
}
