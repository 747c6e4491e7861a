/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters: two blocks that reach into each other's memory. The hard idea is
 * that a copy to the peer is under way until its bytes are counted: its source
 * is read then, and where it goes is 0xFF, which is NaN, until then.
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
	machine_block *first = first_block();

	(void)machine_meet(&first->cluster, first, machine.cluster,
			   machine.cluster * machine.kernel->items, 1, 0, 0,
			   file, line);
}

/* The place in the peer's memory. */
static void *
peer_of(const void *place)
{
	const machine_block *here = machine.here;
	const machine_block *peer =
		first_block() + (spmla_i_emu_cluster_rank() ^ 1u);
	const uintptr_t at = (uintptr_t)place - (uintptr_t)here->local;

	if (machine.cluster != 2)
		machine_fail("a block has no peer");
	if (!here->local_met || at >= here->shared_bytes)
		machine_fail("a place in the peer is none of LOCAL_DYNAMIC");
	if (!peer->alive || !peer->local_met)
		machine_fail("a peer has not begun, or has ended");
	return peer->local + at;
}

void
spmla_i_emu_peer_arrive(g_mbarrier *b)
{
	spmla_i_emu_mbarrier_arrive(peer_of(b), 0);
}

void
spmla_i_emu_peer_copy(void *to, const void *from, uint32_t bytes, g_mbarrier *b)
{
	const machine_block *peer =
		first_block() + (spmla_i_emu_cluster_rank() ^ 1u);
	const peer_copy c = {
		peer_of(to), from, peer_of(b), bytes, {machine.here, peer}};

	if (bytes % 16 || (uintptr_t)to % 16 || (uintptr_t)from % 16)
		machine_fail("a copy to the peer of odd bytes");
	if (copy_count == MAX_COPIES)
		machine_fail("too many copies to peers");
	(void)peer_of((const uint8_t *)from + bytes - 1);
	(void)peer_of((const uint8_t *)to + bytes - 1);
	memset(c.to, UNREAD, bytes);
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
	memcpy(c.to, c.from, c.bytes);
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
