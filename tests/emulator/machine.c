/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks, their items and who runs when. The hard idea is the schedule: a
 * subgroup that can run is drawn, and runs for a drawn number of steps, a step
 * being what an item does until it waits. A few subgroups at a time are shy:
 * they only run when no other can. So some get far ahead of others, as a
 * producer and its consumers do on a device, and in another run the others do.
 */
#include "tests/emulator/machine_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_BURST = 9,   /* log2 of steps */
	SHY_STEPS = 256, /* picks, more or less, until others are shy */
};

machine_state machine = {.width = 32, .width_bits = 5, .seed = 1};

uint32_t
machine_draw(uint32_t bound)
{
	uint64_t z = machine.seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z >> 32) * bound >> 32);
}

static uint32_t
is_ready(uint32_t fiber)
{
	return machine.groups[fiber >> machine.width_bits].ready >>
		       (fiber & (machine.width - 1)) &
	       1u;
}

static item_state
state_of(uint32_t fiber)
{
	return is_ready(fiber) ? READY : machine.items[fiber].state;
}

/* Whether two items that follow each other are at the same place. */
static int
together(uint32_t i, uint32_t j)
{
	const machine_item *a = &machine.items[i], *b = &machine.items[j];

	return state_of(i) == state_of(j) && a->line == b->line &&
	       a->file == b->file;
}

static void
tell_items(uint32_t place)
{
	static const char *const names[] = {
		"ready",          "at a barrier",
		"at an mbarrier", "in a subgroup call",
		"at products",    "ended"};
	const uint32_t first = place * machine.kernel->items;
	const machine_item *items = machine.items + first;
	uint32_t i;

	for (i = 0; i < machine.kernel->items; i++)
		if (i == 0 || !together(first + i, first + i - 1))
			fprintf(stderr,
				"  block %u, from item %u on: %s %s:%d\n",
				machine.blocks[place].index, i,
				names[state_of(first + i)],
				items[i].file ? items[i].file : "",
				items[i].line);
}

void
machine_fail(const char *what)
{
	uint32_t i;

	fprintf(stderr, "emulator: %s, block %u: %s\n", machine.kernel->name,
		machine.here->index, what);
	for (i = 0; i < MAX_LIVE; i++)
		if (machine.blocks[i].alive)
			tell_items(i);
	abort();
}

/* ---- who runs ------------------------------------------------------------ */

void
machine_ready(machine_group *group, uint64_t lanes)
{
	group->ready |= lanes;
	if (group->listed)
		return;
	group->listed = 1;
	machine.runnable[machine.runnable_count++] =
		(uint32_t)(group - machine.groups);
}

/* Makes one item ready. */
static void
make_ready(uint32_t fiber)
{
	machine_ready(&machine.groups[fiber >> machine.width_bits],
		      UINT64_C(1) << (fiber & (machine.width - 1)));
}

static void
leave(item_state state)
{
	machine.items[machine.current].state = state;
	machine.group->ready &= ~(UINT64_C(1) << machine.lane);
}

/* The lane of the group that is next, in the drawn order, or none. */
static uint32_t
next_item(void)
{
	const uint32_t mask = machine.width - 1;
	const uint64_t ready = machine.group->ready;
	uint32_t lane = machine.lane;

	if (!machine.steps || !ready)
		return FIBERS;
	machine.steps--;
	do {
		lane = (lane + machine.stride) & mask;
	} while (!(ready >> lane & 1u));
	machine.lane = lane;
	return machine.lanes + lane;
}

/* The item that runs has made a step, and the next lane goes on. Most switches
 * are between the same places of the code, which processors predict well. */
static void
step(void)
{
	const uint32_t self = machine.current;
	const uint32_t next = next_item();

	machine.idle = 0;
	if (next == FIBERS) {
		fiber_back(self);
	} else if (next != self) {
		machine.current = next;
		fiber_pass(self, next);
	}
}

void
machine_wait(item_state state, const void *at)
{
	machine.items[machine.current].at = at;
	leave(state);
	step();
}

void
machine_pause(void)
{
	if (machine_draw(4) == 0)
		step();
}

void
machine_wake(machine_block *block, item_state state, const void *at,
	     uint32_t vote)
{
	const uint32_t items = machine.kernel->items;
	const uint32_t first = (uint32_t)(block - machine.blocks) * items;
	uint32_t i;

	for (i = first; i < first + items; i++)
		if (machine.items[i].at == at && state_of(i) == state) {
			machine.items[i].vote = vote;
			make_ready(i);
		}
}

static uint64_t
draw64(void)
{
	return (uint64_t)machine_draw(~0u) << 32 | machine_draw(~0u);
}

/* A group of which an item is ready, or NULL. */
static machine_group *
pick(void)
{
	uint32_t tries = 4;

	if (machine_draw(SHY_STEPS) == 0)
		machine.shy = draw64() & draw64();
	while (machine.runnable_count) {
		const uint32_t i = machine_draw(machine.runnable_count);
		const uint32_t g = machine.runnable[i];

		if (!machine.groups[g].ready) {
			machine.groups[g].listed = 0;
			machine.runnable[i] =
				machine.runnable[--machine.runnable_count];
		} else if (!(machine.shy >> g % 64 & 1u) || tries-- == 0) {
			return &machine.groups[g];
		}
	}
	return NULL;
}

static void
item_start(void)
{
	machine.kernel->call(machine.params);
	machine_products_end();
	leave(ENDED);
	machine.here->alive--;
	fiber_end(machine.current);
}

/* ---- blocks -------------------------------------------------------------- */

static void
begin_block(machine_block *block, uint32_t index)
{
	const uint32_t items = machine.kernel->items;
	const uint32_t first = (uint32_t)(block - machine.blocks) * items;
	uint32_t i;

	block->index = index;
	block->alive = items;
	block->local_met = 0;
	memset(block->barriers, 0, sizeof block->barriers);
	memset(&block->cluster, 0, sizeof block->cluster);
	block->array_count = 0;
	block->state = NULL;
	block->lost = 0;
	machine_products_begin(first);
	for (i = first; i < first + items; i++) {
		memset(&machine.items[i], 0, sizeof machine.items[i]);
		machine.groups[i / machine.width].fences[i % machine.width] = 0;
		fiber_begin(i, item_start);
		make_ready(i);
	}
	machine.alive++;
}

/* The next cluster, if there is one, in the places from `first` on. */
static void
begin_cluster(machine_block *first)
{
	const uint32_t index = (machine.first + machine.begun) % machine.grid;
	uint32_t i;

	if (machine.begun == machine.grid)
		return;
	for (i = 0; i < machine.cluster; i++)
		begin_block(first + i, index + i);
	machine.begun += machine.cluster;
}

/* All items of the block that ran have ended. */
static void
end_block(void)
{
	const uint32_t place = (uint32_t)(machine.here - machine.blocks);
	machine_block *first =
		machine.blocks + place / machine.cluster * machine.cluster;
	uint32_t alive = 0, i;

	machine_land_end(machine.here);
	machine_land_peer_end(machine.here);
	machine.alive--;
	for (i = 0; i < machine.cluster; i++)
		alive += first[i].alive;
	if (alive == 0)
		begin_cluster(first);
}

/* Lets lanes of a group run, in a drawn order: until the steps are made, no
 * lane is ready, or one has slept or ended. */
static void
run_group(machine_group *group)
{
	const uint32_t items = machine.kernel->items;
	uint32_t next;

	machine.lanes = (uint32_t)(group - machine.groups) * machine.width;
	machine.stride = machine_draw(machine.width) | 1u;
	machine.steps = 1u << machine_draw(MAX_BURST + 1);
	machine.lane = machine_draw(machine.width);
	machine.group = group;
	machine.here = &machine.blocks[machine.lanes / items];
	machine.here_first = machine.lanes / items * items;
	while ((next = next_item()) != FIBERS) {
		machine.current = next;
		machine.slept = 0;
		fiber_go(next);
		if (machine.slept)
			return;
		machine.idle = 0;
		if (!machine.here->alive) {
			end_block();
			return;
		}
	}
}

static uint32_t
land(void)
{
	if (machine_draw(2))
		return machine_land() || machine_land_peer();
	return machine_land_peer() || machine_land();
}

/* Ends a block whose items wait for what never comes. */
static void
give_up(machine_block *block)
{
	const uint32_t items = machine.kernel->items;
	const uint32_t first = (uint32_t)(block - machine.blocks) * items;
	uint32_t i;

	if (!block->alive)
		return;
	for (i = first; i < first + items; i++) {
		machine.items[i].state = ENDED;
		machine.groups[i / machine.width].giving = 0;
	}
	machine_land_end(block);
	block->alive = 0;
	machine.alive--;
}

/* Whether an item of the block waits at an mbarrier. */
static uint32_t
is_late(const machine_block *block)
{
	const uint32_t items = machine.kernel->items;
	const uint32_t first = (uint32_t)(block - machine.blocks) * items;
	uint32_t i;

	for (i = first; block->alive && i < first + items; i++)
		if (machine.items[i].state == AT_MBARRIER)
			return 1;
	return 0;
}

/* Nothing can go on. In the debug build, ends the clusters that wait at an
 * mbarrier, after their blocks have reported it. Returns 0 if there is none. */
static uint32_t
time_out(void)
{
	uint32_t any = 0, i, j;

	for (i = 0; i + machine.cluster <= MAX_LIVE; i += machine.cluster) {
		uint32_t late = 0;

		for (j = i; j < i + machine.cluster; j++)
			if (is_late(&machine.blocks[j]))
				late |= machine_report_late(&machine.blocks[j]);
		for (j = i; late && j < i + machine.cluster; j++)
			give_up(&machine.blocks[j]);
		if (late)
			begin_cluster(&machine.blocks[i]);
		any |= late;
	}
	return any;
}

static void
run_blocks(void)
{
	while (machine.alive) {
		machine_group *group = pick();

		if (group)
			run_group(group);
		if ((!group || machine_draw(8) == 0) && !land() && !group &&
		    !time_out())
			machine_fail("items wait for others that do not come");
	}
}

void
emulator_run_kernel(const emulator_kernel *kernel, uint32_t blocks,
		    const void *params)
{
	uint32_t places, i;

	machine.kernel = kernel;
	machine.params = params;
	machine.cluster = kernel->cluster ? kernel->cluster : 1;
	machine.grid = blocks;
	machine.begun = machine.idle = 0;
	machine.here = machine.blocks;
	while (machine.runnable_count)
		machine.groups[machine.runnable[--machine.runnable_count]]
			.listed = 0;
	places = FIBERS / kernel->items < MAX_LIVE ? FIBERS / kernel->items
						   : MAX_LIVE;
	if (!kernel->live || (!machine.live && machine_draw(4) == 0))
		places = machine.cluster;
	else if (machine.live && machine.live < places)
		places = machine.live;
	if (blocks % machine.cluster || places < machine.cluster ||
	    kernel->items % machine.width)
		machine_fail("no such grid");
	machine.first =
		machine_draw(blocks / machine.cluster) * machine.cluster;
	for (i = 0; i + machine.cluster <= places; i += machine.cluster)
		begin_cluster(machine.blocks + i);
	run_blocks();
}

void
emulator_live(uint32_t blocks)
{
	machine.live = blocks;
}

void
emulator_set(uint32_t width, uint64_t seed)
{
	machine.width = width;
	machine.width_bits = (uint32_t)__builtin_ctz(width);
	emulator_seed(seed);
}

void
emulator_seed(uint64_t seed)
{
	machine.seed = seed;
	machine.shy = 0;
}
