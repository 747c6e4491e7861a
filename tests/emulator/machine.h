/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU for tests: kernels of the dialect, compiled as C, each item a fiber.
 * Subgroups are 16, 32 or 64 wide. Which items run, for how long, which block
 * begins first and when what is asynchronous happens is drawn from a seed, so
 * that what works by luck of an order does not work for long. What no order
 * explains (an item that misses a barrier, lanes of a subgroup that part, a
 * wait for what never comes) ends the program with the places where the items
 * wait.
 */
#ifndef TESTS_EMULATOR_MACHINE_H
#define TESTS_EMULATOR_MACHINE_H

#include <stdint.h>

typedef struct emulator_kernel {
	const char *name;
	void (*call)(const void *params); /* what every item does */
	uint32_t items;                   /* of a block */
	uint32_t dynamic_bytes;           /* of LOCAL_DYNAMIC */
	uint32_t cluster; /* blocks of a cluster; 0 and 1: no clusters */
	uint32_t live;    /* 1: its blocks wait for each other */
} emulator_kernel;

/* Runs a kernel to its end. The blocks of a cluster are alive together; those
 * of a live kernel too, as many as there is room for, but sometimes, as the
 * seed has it, one cluster after another. Other blocks run one by one. */
void emulator_run_kernel(const emulator_kernel *kernel, uint32_t blocks,
			 const void *params);

/* Runs of live kernels that follow have so many blocks alive together, or as
 * many as there is room for; 0: as the seed has it. */
void emulator_live(uint32_t blocks);

/* Changes the width and the seed of the runs that follow. */
void emulator_set(uint32_t width, uint64_t seed);

#endif
