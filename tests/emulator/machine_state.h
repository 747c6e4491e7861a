/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the machine share: its state, and how an item waits.
 */
#ifndef TESTS_EMULATOR_MACHINE_STATE_H
#define TESTS_EMULATOR_MACHINE_STATE_H

#include "tests/emulator/fiber.h"
#include "tests/emulator/machine.h"

enum {
	MAX_GROUPS = FIBERS / 16,
	MAX_LIVE = 16, /* blocks that are alive at a time */
	MAX_WORDS = 16,
	MAX_SUMS = 256, /* of a subgroup's product */
	MAX_ARRAYS = 64,
	MAX_BARRIERS = 16 /* of a block; the first is BARRIER */
};

typedef enum item_state {
	READY,
	AT_BARRIER,
	AT_MBARRIER,
	AT_EXCHANGE,
	AT_PRODUCTS,
	ENDED
} item_state;

/* An item. Fiber i is item i % items of the block in place i / items. */
typedef struct machine_item {
	item_state state; /* that it waited in last, unless its group says that
			   * it is ready */
	const void *at;   /* what it waits for */
	uint32_t vote;    /* what the barrier gave it */
	uint32_t arrived; /* at the cluster's barrier, 1 + its phase, or 0 */
	const char *file;
	int line; /* where it waits, or did last */
} machine_item;

/* A subgroup. Its lanes are at most one exchange apart, so two buffers are
 * enough for the words that they exchange. */
typedef struct machine_group {
	uint64_t ready;  /* a bit a lane that can run */
	uint32_t listed; /* in machine.runnable */
	uint32_t giving; /* lanes that wait in an exchange */
	uint32_t word_count;
	uint32_t turn;
	uint32_t words[2][MAX_WORDS * 64];
	uint32_t summed; /* the turn whose products `sums` has */
	float sums[MAX_SUMS];
	uint32_t fences[64]; /* of each lane, in this block */
} machine_group;

typedef struct machine_barrier {
	uint32_t arrived;
	uint32_t phase; /* how often all have arrived */
	uint32_t count; /* of items that it waits for */
	uint32_t is_vote;
	uint32_t vote;
	const char *file; /* of the first to arrive */
	int line;
} machine_barrier;

/* A place for a block, and the block in it. */
typedef struct machine_block {
	uint32_t index;
	uint32_t alive; /* items that have not ended */
	machine_barrier barriers[MAX_BARRIERS];
	machine_barrier cluster; /* of the cluster's first block */
	uint8_t *local;          /* LOCAL_DYNAMIC */
	uint8_t *seen;           /* the same, as asynchronous reads see it */
	uint32_t shared_bytes;
	uint32_t local_met;             /* by this block */
	const void *arrays[MAX_ARRAYS]; /* LOCAL_ARRAYs that it has met */
	uint32_t array_count;
	void *state; /* where it reports to, in the debug build; or NULL */
	void *status;
	uint32_t arrivals; /* at mbarriers, */
	uint32_t lost;     /* of which it loses one, from 1 on; 0: none */
} machine_block;

typedef struct machine_state {
	machine_item items[FIBERS];
	machine_group groups[MAX_GROUPS];
	machine_block blocks[MAX_LIVE];
	uint32_t runnable[MAX_GROUPS]; /* groups; of some no item is ready */
	uint32_t runnable_count;
	uint32_t current;     /* fiber */
	machine_group *group; /* it is in */
	machine_block *here;  /* it is in */
	uint32_t here_first;  /* fiber of that */
	uint32_t lanes;       /* the group's first fiber */
	uint32_t lane;        /* that ran last */
	uint32_t stride;      /* from lane to lane */
	uint32_t steps;       /* that are left to the group */
	uint32_t width;
	uint32_t width_bits; /* its log2 */
	uint64_t seed;
	const emulator_kernel *kernel;
	const void *params;
	uint32_t cluster;
	uint32_t live;  /* blocks of a live kernel at a time; 0: drawn */
	uint32_t grid;  /* blocks of the kernel */
	uint32_t begun; /* of them */
	uint32_t first; /* that began */
	uint32_t alive; /* blocks */
	uint32_t idle;  /* times that items slept, and nothing else happened */
	uint32_t slept; /* the item that ran last came back to sleep */
	uint64_t shy;   /* bit g % 64: group g only runs when no other can */
} machine_state;

extern machine_state machine;

/* A number below the bound. */
uint32_t machine_draw(uint32_t bound);

/* Ends the program: says what is wrong and where the items are. */
_Noreturn void machine_fail(const char *what);

/* Makes these lanes of a group ready, which wait. */
void machine_ready(machine_group *group, uint64_t lanes);

/* Lets the item that runs wait for `at` until somebody wakes it. */
void machine_wait(item_state state, const void *at);

/* Lets others run, sometimes, though the item that runs could go on: behind an
 * arrival, which may be what they wait for. */
void machine_pause(void);

/* Makes the items of a block ready that wait in this state for `at`; that is
 * what a barrier gives them. */
void machine_wake(machine_block *block, item_state state, const void *at,
		  uint32_t vote);

/* An item arrives at a barrier of `count` items; if it waits, the result of the
 * vote. `places` blocks from the first on share the barrier. */
uint32_t machine_meet(machine_barrier *barrier, machine_block *first,
		      uint32_t places, uint32_t count, uint32_t waits,
		      uint32_t is_vote, uint32_t vote, const char *file,
		      int line);

/* The block whose LOCAL_DYNAMIC has this address. */
machine_block *machine_block_of(const void *local);

/* An asynchronous read, a multiple of 4 bytes; what lacks a fence is all ones.
 * Then: an asynchronous copy wrote these bytes, so asynchronous reads see them.
 */
void machine_read(void *to, const void *from, uint32_t bytes);
void machine_written(const void *place, uint32_t bytes);

/* Whether an arrival of the item that runs is the one to lose. */
uint32_t machine_loses(void);

/* Reports that a block of the debug build waits in vain. Returns 0 if it is none
 * of the debug build. */
uint32_t machine_report_late(const machine_block *block);

/* Whether the item that runs is the first to go on after its subgroup's last
 * exchange: it computes what the lanes share. */
uint32_t machine_is_first(void);

/* So many bytes that an mbarrier counts have come. */
void machine_count_bytes(uint64_t *barrier, uint32_t bytes);

/* Lets something happen that is under way, of items' copies or of copies to
 * peers; 0 if nothing is. */
uint32_t machine_land(void);
uint32_t machine_land_peer(void);

/* A block begins; `first` is its first fiber. An item ends, which has waited
 * for its products. */
void machine_products_begin(uint32_t first);
void machine_products_end(void);

/* A block has ended. Its items' copies are forgotten; those to and from its
 * peer have landed. */
void machine_land_end(machine_block *block);
void machine_land_peer_end(machine_block *block);

#endif
