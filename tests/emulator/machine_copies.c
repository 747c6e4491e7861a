/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies that are under way, and the mbarriers that count them. The hard idea:
 * a copy lands as late, or as early, as a kernel must expect. From the request
 * until it lands, its destination is all 0xFF, which is NaN. Its source is read
 * when it lands. Some land at once, some when the schedule draws them, and the
 * rest when somebody waits.
 *
 * An mbarrier is its own 64-bit word, as on a device: bit 0 is the parity of
 * the phase. Then come the arrivals of a phase, the arrivals still missing, the
 * bytes still missing (a copy may land before its bytes are expected), and a
 * mark of a valid mbarrier.
 */
#include "tests/emulator/machine_state.h"

#include "spmla/platform/gpu/dialect/async.h"

#include <stdlib.h>
#include <string.h>

enum {
	COUNT_BITS = 20, /* of each of an mbarrier's counts */
	MARK = 5,
	MAX_GROUPS_OPEN = 7,
	UNREAD = 0xFF
};

/* A copy of an item, or its arrival once the copies before have landed. */
typedef struct copy {
	uint8_t *to;
	const uint8_t *from;
	g_mbarrier *arrives; /* NULL: a copy */
	uint32_t bytes;
	uint32_t is; /* 0: zeros */
	uint32_t group;
	uint32_t landed;
} copy;

/* What an item has under way, in order. */
typedef struct queue {
	copy *copies;
	uint32_t room;
	uint32_t first;
	uint32_t end;
	uint32_t groups; /* that it committed */
	uint32_t listed; /* in busy */
} queue;

static queue queues[FIBERS];
static uint32_t busy[FIBERS]; /* items whose queues may not be empty */
static uint32_t busy_count;

/* ---- mbarriers ----------------------------------------------------------- */

typedef struct phase {
	uint32_t parity;
	uint32_t arrivals;
	uint32_t pending;
	int32_t bytes;
} phase;

static phase
phase_of(const g_mbarrier *barrier)
{
	const uint64_t word = *barrier;
	const uint64_t mask = ((uint64_t)1 << COUNT_BITS) - 1;
	phase p;

	if (word >> 61 != MARK)
		machine_fail("no mbarrier is there");
	p.parity = word & 1u;
	p.arrivals = (uint32_t)(word >> 1 & mask);
	p.pending = (uint32_t)(word >> (1 + COUNT_BITS) & mask);
	p.bytes = (int32_t)((uint32_t)(word >> (1 + 2 * COUNT_BITS) & mask)
			    << (32 - COUNT_BITS)) >>
		  (32 - COUNT_BITS);
	return p;
}

/* Writes a phase back; if nothing is missing, the next phase. */
static void
put_phase(g_mbarrier *barrier, phase p)
{
	const uint64_t mask = ((uint64_t)1 << COUNT_BITS) - 1;
	const uint32_t ends = p.pending == 0 && p.bytes == 0;

	if (ends) {
		p.parity ^= 1u;
		p.pending = p.arrivals;
	}
	*barrier = (uint64_t)MARK << 61 |
		   ((uint64_t)(uint32_t)p.bytes & mask)
			   << (1 + 2 * COUNT_BITS) |
		   (uint64_t)p.pending << (1 + COUNT_BITS) |
		   (uint64_t)p.arrivals << 1 | p.parity;
	if (ends)
		machine_wake(machine_block_of(barrier), AT_MBARRIER, barrier,
			     0);
}

static void
arrive(g_mbarrier *barrier, uint32_t bytes)
{
	phase p = phase_of(barrier);

	if (p.pending == 0)
		machine_fail("an arrival too many at an mbarrier");
	p.pending--;
	p.bytes += (int32_t)bytes;
	put_phase(barrier, p);
}

void
machine_count_bytes(g_mbarrier *barrier, uint32_t bytes)
{
	phase p = phase_of(barrier);

	p.bytes -= (int32_t)bytes;
	put_phase(barrier, p);
}

void
spmla_i_emu_mbarrier_init(g_mbarrier *barrier, uint32_t arrivals)
{
	const phase p = {0, arrivals, arrivals, 0};

	if (arrivals == 0 || arrivals >> COUNT_BITS)
		machine_fail("an mbarrier of no such arrivals");
	put_phase(barrier, p);
}

void
spmla_i_emu_mbarrier_arrive(g_mbarrier *barrier, uint32_t bytes)
{
	if (bytes || !machine_loses())
		arrive(barrier, bytes);
	machine_pause();
}

/* A woken item looks again: the next phase may be over by then. */
void
spmla_i_emu_mbarrier_wait(const g_mbarrier *barrier, uint32_t parity,
			  const char *file, int line)
{
	machine_item *self = &machine.items[machine.current];

	self->file = file;
	self->line = line;
	while (phase_of(barrier).parity == (parity & 1u))
		machine_wait(AT_MBARRIER, barrier);
}

/* ---- copies of an item --------------------------------------------------- */

static void
push(const copy *c)
{
	queue *q = &queues[machine.current];

	if (q->end == q->room) {
		q->room = q->room ? 2 * q->room : 64;
		q->copies = realloc(q->copies, q->room * sizeof *q->copies);
		if (!q->copies)
			abort();
	}
	q->copies[q->end++] = *c;
	if (q->listed)
		return;
	q->listed = 1;
	busy[busy_count++] = machine.current;
}

static void
land(copy *c)
{
	if (c->landed)
		return;
	c->landed = 1;
	if (c->arrives)
		arrive(c->arrives, 0);
	else if (c->is)
		memcpy(c->to, c->from, c->bytes);
	else
		memset(c->to, 0, c->bytes);
}

/* Drops what has landed. */
static void
sweep(queue *q)
{
	while (q->first < q->end && q->copies[q->first].landed)
		q->first++;
	if (q->first == q->end)
		q->first = q->end = 0;
}

/* Lands copy i of a queue; an arrival lands after all copies before it. */
static void
land_one(queue *q, uint32_t i)
{
	uint32_t j;

	for (j = q->first; j < i && q->copies[i].arrives; j++)
		if (!q->copies[j].arrives)
			land(&q->copies[j]);
	land(&q->copies[i]);
	sweep(q);
}

void
spmla_i_emu_copy(void *to, const void *from, uint32_t bytes, uint32_t is)
{
	copy c = {.to = to, .from = from, .bytes = bytes, .is = is};

	if ((uintptr_t)to % bytes || (is && (uintptr_t)from % bytes))
		machine_fail("a copy to or from an odd address");
	c.group = queues[machine.current].groups;
	memset(to, UNREAD, bytes);
	if (machine_draw(4))
		push(&c);
	else
		land(&c);
}

void
spmla_i_emu_copies_commit(void)
{
	queues[machine.current].groups++;
}

static void
land_groups(queue *q, uint32_t upto)
{
	uint32_t i;

	for (i = q->first; i < q->end; i++)
		if (!q->copies[i].arrives && q->copies[i].group < upto)
			land(&q->copies[i]);
	sweep(q);
}

void
spmla_i_emu_copies_wait(void)
{
	queue *q = &queues[machine.current];

	land_groups(q, ++q->groups);
}

void
spmla_i_emu_copies_wait_but(uint32_t groups)
{
	queue *q = &queues[machine.current];

	if (groups > MAX_GROUPS_OPEN)
		machine_fail("a wait for all but too many groups");
	if (q->groups > groups)
		land_groups(q, q->groups - groups);
}

void
spmla_i_emu_mbarrier_arrive_copies(g_mbarrier *barrier)
{
	const copy c = {.arrives = barrier};

	push(&c);
}

/* ---- when ---------------------------------------------------------------- */

uint32_t
machine_land(void)
{
	while (busy_count) {
		const uint32_t i = machine_draw(busy_count);
		queue *q = &queues[busy[i]];

		if (q->first < q->end) {
			const uint32_t n = q->end - q->first;

			land_one(q, q->first + machine_draw(n));
			return 1;
		}
		q->listed = 0;
		busy[i] = busy[--busy_count];
	}
	return 0;
}

void
machine_land_end(machine_block *block)
{
	const uint32_t items = machine.kernel->items;
	const uint32_t first = (uint32_t)(block - machine.blocks) * items;
	uint32_t i;

	for (i = first; i < first + items; i++)
		queues[i].first = queues[i].end = queues[i].groups = 0;
}
