/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator as a backend: the kernels that are written once, run by
 * machine.h.
 */
#ifndef TESTS_EMULATOR_EMULATOR_H
#define TESTS_EMULATOR_EMULATOR_H

#include "spmla/platform/gpu/launch.h"
#include "tests/emulator/machine.h"

/* The backend. `native` is not looked at; SPMLA_TEST_EMULATOR=16|32|64 in the
 * environment is the width (32), SPMLA_TEST_EMULATOR_ARCH the architecture
 * (90), SPMLA_TEST_SEED the seed of the schedules. It says that it is CUDA, of
 * 3 SMs that hold one block each; matrix instructions of CUDA are there at width 32, or, where the config
 * allows unproven kernels, those of tile.h at each: at 32 as gfx11 has them, or
 * with SPMLA_TEST_WMMA=12 as gfx12. */
extern const spmla_backend spmla_emulator;

/* Runs what the deferred queue holds, `count` entries at most: a launch of an
 * op alone, or of a graph. Returns how many it ran. */
uint32_t emulator_queue_run(spmla_ctx *ctx, uint32_t count);

/* Runs one kernel to its end. Its name goes into the file that
 * SPMLA_TEST_KERNELS names, once a program. */
void emulator_run(spmla_i_kernel kernel, uint32_t blocks, const void *params);

#endif
