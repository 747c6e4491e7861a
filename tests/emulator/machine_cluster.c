/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters: blocks that reach into each other's memory. The hard idea: a copy
 * to the peer is under way until its bytes are counted. Only then is its source
 * read. Until then its destination is all 0xFF, which is NaN.
 */
#include "tests/emulator/machine_state.h"

#include "spmla/platform/gpu/dialect/async.h"

#include <string.h>

enum { MAX_COPIES = 1024, UNREAD = 0xFF };

typedef struct peer_copy {
	uint8_t *to;
	const uint8_t *from;
	g_mbarrier *counts;
	uint32_t bytes;
	const machine_block *blocks[2]; /* whose memory that is */
} peer_copy;

static peer_copy copies[MAX_COPIES];
static uint32_t copy_count;

uint32_t
spmla_i_emu_cluster_rank(void)
{
	return (uint32_t)(machine.here - machine.blocks) % machine.cluster;
}

/* The first block of the cluster. */
static machine_block *
first_block(void)
{
	return machine.here - spmla_i_emu_cluster_rank();
}

void
spmla_i_emu_cluster_sync(const char *file, int line)
{
	spmla_i_emu_cluster_arrive(file, line);
	spmla_i_emu_cluster_wait(file, line);
}

void
spmla_i_emu_cluster_arrive(const char *file, int line)
{
	machine_item *self = &machine.items[machine.current];
	machine_block *first = first_block();

	if (self->arrived)
		machine_fail("an item arrives twice at the cluster's barrier");
	self->arrived = first->cluster.phase + 1;
	(void)machine_meet(&first->cluster, first, machine.cluster,
			   machine.cluster * machine.kernel->items, 0, 0, 0,
			   file, line);
}

void
spmla_i_emu_cluster_wait(const char *file, int line)
{
	machine_item *self = &machine.items[machine.current];
	machine_barrier *barrier = &first_block()->cluster;

	self->file = file;
	self->line = line;
	if (!self->arrived)
		machine_fail("an item waits for what it did not arrive at");
	if (self->arrived == barrier->phase + 1)
		machine_wait(AT_BARRIER, barrier);
	self->arrived = 0;
}

/* The place in a block's memory. */
static uint8_t *
place_in(uint32_t rank, const void *place)
{
	const machine_block *here = machine.here;
	const machine_block *block = first_block() + rank;
	const uintptr_t at = (uintptr_t)place - (uintptr_t)here->local;

	if (rank >= machine.cluster)
		machine_fail("a cluster has no such block");
	if (!here->local_met || at >= here->shared_bytes)
		machine_fail("a place in the peer is none of LOCAL_DYNAMIC");
	if (!block->alive || !block->local_met)
		machine_fail("a peer has not begun, or has ended");
	return block->local + at;
}

/* The place in the peer's memory. */
static void *
peer_of(const void *place)
{
	if (machine.cluster != 2)
		machine_fail("a block has no peer");
	return place_in(spmla_i_emu_cluster_rank() ^ 1u, place);
}

/* A place is the rank << 32, plus the offset in that block's memory. So a block
 * may have it before the other block has begun. */
uint64_t
spmla_i_emu_cluster_at(const void *p, uint32_t rank)
{
	return (uint64_t)rank << 32 |
	       (uint32_t)((uintptr_t)p - (uintptr_t)machine.here->local);
}

uint32_t *
spmla_i_emu_cluster_words(uint64_t at, uint32_t count)
{
	const uint8_t *here = machine.here->local + (uint32_t)at;
	const uint32_t rank = (uint32_t)(at >> 32);

	if ((uint32_t)at % (count * sizeof(uint32_t)))
		machine_fail("words of the cluster at an odd place");
	(void)place_in(rank, here + count * sizeof(uint32_t) - 1);
	return (uint32_t *)(void *)place_in(rank, here);
}

void
spmla_i_emu_peer_arrive(g_mbarrier *b)
{
	spmla_i_emu_mbarrier_arrive(peer_of(b), 0);
}

/* A copy to a place in the block of that rank. */
static void
copy_to(uint32_t rank, void *to, const void *from, uint32_t bytes,
	g_mbarrier *b)
{
	const peer_copy c = {
		to, from, b, bytes, {machine.here, first_block() + rank}};

	if (bytes == 0 || bytes % 16 || (uintptr_t)to % 16 ||
	    (uintptr_t)from % 16)
		machine_fail("a copy to the peer of odd bytes");
	if (copy_count == MAX_COPIES)
		machine_fail("too many copies to peers");
	(void)place_in(rank, (const uint8_t *)from + bytes - 1);
	memset(c.to, UNREAD, bytes);
	machine_written(c.to, bytes);
	copies[copy_count++] = c;
}

void
spmla_i_emu_peer_copy(void *to, const void *from, uint32_t bytes, g_mbarrier *b)
{
	(void)peer_of((const uint8_t *)to + bytes - 1);
	copy_to(spmla_i_emu_cluster_rank() ^ 1u, peer_of(to), from, bytes,
		peer_of(b));
}

/* What is at a place of the cluster. */
static void *
cluster_at(uint64_t at)
{
	return place_in((uint32_t)(at >> 32),
			machine.here->local + (uint32_t)at);
}

void
spmla_i_emu_cluster_copy(uint64_t to, const void *from, uint32_t bytes,
			 uint64_t b)
{
	(void)cluster_at(to + bytes - 1);
	copy_to((uint32_t)(to >> 32), cluster_at(to), from, bytes,
		cluster_at(b));
}

void
spmla_i_emu_cluster_expect(uint64_t b, uint32_t bytes)
{
	spmla_i_emu_mbarrier_arrive(cluster_at(b), bytes);
}

/* A copy from global memory counts as a copy of the block to itself. */
void
spmla_i_emu_bulk_copy(void *to, const void *from, uint32_t bytes, g_mbarrier *b)
{
	const peer_copy c = {to, from, b, bytes, {machine.here, machine.here}};

	if (bytes % 16 || (uintptr_t)to % 16 || (uintptr_t)from % 16)
		machine_fail("a bulk copy of odd bytes");
	if (copy_count == MAX_COPIES)
		machine_fail("too many bulk copies");
	memset(c.to, UNREAD, bytes);
	machine_written(c.to, bytes);
	copies[copy_count++] = c;
}

uint32_t
machine_land_peer(void)
{
	peer_copy c;
	uint32_t i;

	if (copy_count == 0)
		return 0;
	i = machine_draw(copy_count);
	c = copies[i];
	copies[i] = copies[--copy_count];
	machine_read(c.to, c.from, c.bytes);
	machine_written(c.to, c.bytes);
	machine_count_bytes(c.counts, c.bytes);
	return 1;
}

void
machine_land_peer_end(machine_block *block)
{
	uint32_t i;

	for (i = 0; i < copy_count; i++)
		if (copies[i].blocks[0] == block ||
		    copies[i].blocks[1] == block)
			machine_fail("a block ends before a copy between it "
				     "and its peer");
}
