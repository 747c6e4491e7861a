/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of a test's own, run in the emulator under many schedules.
 */
#ifndef TESTS_CORE_EMULATOR_RIG_H
#define TESTS_CORE_EMULATOR_RIG_H

#include "tests/emulator/machine.h"

#include <stddef.h>

enum { RIG_SEEDS = 40 };

/* A kernel of one block at a time. */
#define RIG_KERNEL(call, items, dynamic_bytes)                                 \
	((emulator_kernel){#call, call, (items), (uint32_t)(dynamic_bytes), 1, \
			   0})

/* The same, of blocks in clusters of `blocks`. */
#define RIG_CLUSTER(call, items, dynamic_bytes, blocks)                     \
	((emulator_kernel){#call, call, (items), (uint32_t)(dynamic_bytes), \
			   (blocks), 0})

/* Runs it once, by the seed of the test and this number. */
void rig_run(emulator_kernel kernel, uint32_t width, uint32_t blocks,
	     const void *params, uint32_t number);

/* Under how many of RIG_SEEDS schedules the `bytes` at `out` become equal to
 * those at `want`. Before each run they are 0xAB. */
uint32_t rig_count(emulator_kernel kernel, uint32_t width, uint32_t blocks,
		   const void *params, void *out, const void *want,
		   size_t bytes);

#endif
