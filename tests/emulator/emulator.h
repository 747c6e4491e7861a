/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU for tests: the kernels that are written once, compiled as C and run
 * block after block, each item a fiber. Subgroups are 16, 32 or 64 wide, and
 * items run between barriers in an order drawn from a seed, as is the block
 * that runs first, so that what works by luck of an order does not work for
 * long. What no order explains (an item that misses a barrier, lanes of a
 * subgroup that part) ends the program with the places where the items wait.
 */
#ifndef TESTS_EMULATOR_EMULATOR_H
#define TESTS_EMULATOR_EMULATOR_H

#include "spmla/platform/gpu/launch.h"

/* The backend. `native` is not looked at; SPMLA_TEST_EMULATOR=16|32|64 in the
 * environment is the width (32), SPMLA_TEST_EMULATOR_ARCH the architecture
 * (90), SPMLA_TEST_SEED the seed of the schedules. It says that it is CUDA, of
 * 3 SMs that hold one block each; matrix instructions are there at width 32. */
extern const spmla_backend spmla_emulator;

/* Runs what the deferred queue holds, `count` entries at most: a launch of an
 * op alone, or of a graph. Returns how many it ran. */
uint32_t emulator_queue_run(spmla_ctx *ctx, uint32_t count);

/* Runs one kernel to its end. Its name goes into the file that
 * SPMLA_TEST_KERNELS names, once a program. */
void emulator_run(spmla_i_kernel kernel, uint32_t blocks, const void *params);

/* Changes the width and the seed of the runs that follow. */
void emulator_set(uint32_t width, uint64_t seed);

/* The kernels' functions and how many items their blocks have here; in
 * emulator_kernels.c. */
extern const uint32_t emulator_items[SPMLA_KERNEL_COUNT];
void emulator_call(spmla_i_kernel kernel, const void *params);

#endif
