/* SPDX-License-Identifier: Apache-2.0
 *
 * g_fence_async: when matrix instructions and bulk copies see what threads
 * wrote to shared memory. Plain stores cannot be caught, so a block has a
 * second copy of LOCAL_DYNAMIC, which only fences and asynchronous copies bring
 * up to date. Where the two differ, an asynchronous read gets all ones, which
 * are NaN: a thread wrote there without a fence, or before the read was over.
 *
 * A fence brings over what every thread of the block wrote, not its caller
 * alone. So a fence too few does not show where another one follows before the
 * read, and one that orders reads before an asynchronous write never shows.
 */
#include "tests/emulator/machine_state.h"

#include "spmla/platform/gpu/dialect/async.h"

#include <string.h>

#define UNSEEN UINT32_MAX

/* What asynchronous reads see of a place; the place itself, if it is in no
 * block's LOCAL_DYNAMIC. */
static uint8_t *
seen(const void *place)
{
	const machine_block *block = machine_block_of(place);
	const uintptr_t at = (uintptr_t)place - (uintptr_t)block->local;

	if (!block->local_met || at >= block->shared_bytes)
		return (uint8_t *)(uintptr_t)place;
	return block->seen + at;
}

void
machine_read(void *to, const void *from, uint32_t bytes)
{
	const uint8_t *written = from, *fenced = seen(from);
	uint8_t *at = to;
	uint32_t i, now, then;

	for (i = 0; i < bytes; i += 4) {
		memcpy(&now, written + i, 4);
		memcpy(&then, fenced + i, 4);
		then |= now == then ? 0u : UNSEEN;
		memcpy(at + i, &then, 4);
	}
}

void
machine_written(const void *place, uint32_t bytes)
{
	uint8_t *to = seen(place);

	if (to != place)
		memcpy(to, place, bytes);
}

/* A copy of 200 KB for each thread would take long. So the last lane of a
 * subgroup that comes to its n-th fence copies for all of them. */
void
spmla_i_emu_fence_async(void)
{
	machine_block *block = machine.here;
	uint32_t *fences = machine.group->fences;
	const uint32_t mine = ++fences[spmla_i_emu_lane()];
	uint32_t i;

	for (i = 0; i < machine.width; i++)
		if (fences[i] < mine)
			return;
	if (block->local_met)
		memcpy(block->seen, block->local, block->shared_bytes);
}
