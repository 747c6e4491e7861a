/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU for tests: kernels of the dialect, compiled as C, each item a fiber.
 * Subgroups are 16, 32 or 64 wide. A seed draws which items run, for how long,
 * which block begins first and when asynchronous operations happen. So code
 * that works in one order only fails in some run. An error in any order (an
 * item that misses a barrier, lanes of a subgroup that diverge, a wait for what
 * never comes) ends the program and shows where the items wait.
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

/* Runs a kernel to its end. The blocks of a cluster are alive together. The
 * blocks of a live kernel are too, as many as there is room for; with some
 * seeds its clusters run one after another. Other blocks run one by one. */
void emulator_run_kernel(const emulator_kernel *kernel, uint32_t blocks,
			 const void *params);

/* Later runs of live kernels have `blocks` blocks alive together, or as many as
 * there is room for. 0: the seed decides. */
void emulator_live(uint32_t blocks);

/* Whether kernels are the debug build (debug.h). Unless it is said, the
 * environment does: SPMLA_TEST_KERNEL_DEBUG. Blocks that wait for what never
 * comes then report it and end. */
void emulator_debug(uint32_t is);
uint32_t emulator_is_debug(void);

/* Changes the width and the seed of the runs that follow; the seed alone. */
void emulator_set(uint32_t width, uint64_t seed);
void emulator_seed(uint64_t seed);

/* From now on the host calls this when a kernel has told it a number at `to`,
 * while threads may still run. NULL: it does nothing. */
void emulator_host(void (*told)(const uint64_t *to));

#endif
