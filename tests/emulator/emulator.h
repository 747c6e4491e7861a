/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator as a backend: the kernels that are written once, run by
 * machine.h.
 */
#ifndef TESTS_EMULATOR_EMULATOR_H
#define TESTS_EMULATOR_EMULATOR_H

#include "spmla/platform/gpu/launch.h"
#include "tests/emulator/machine.h"

/* The backend. `native` is ignored. The environment sets the width
 * (SPMLA_TEST_EMULATOR=16|32|64; 32 if unset), the architecture
 * (SPMLA_TEST_EMULATOR_ARCH; 90) and the seed of the schedules
 * (SPMLA_TEST_SEED). The backend says that it is CUDA, with 3 SMs that hold one
 * block each. At width 32 it has CUDA's matrix instructions. If the config
 * allows unproven kernels, it has the ones of tile.h instead, at every width;
 * at width 32 these are gfx11's, or with SPMLA_TEST_WMMA=12 gfx12's. */
extern const spmla_backend spmla_emulator;

/* Runs what the deferred queue holds, `count` entries at most: a launch of an
 * op alone, or of a graph. Returns how many it ran. */
uint32_t emulator_queue_run(spmla_ctx *ctx, uint32_t count);

/* Runs one kernel to its end. Its name goes into the file that
 * SPMLA_TEST_KERNELS names, once a program. */
void emulator_run(spmla_i_kernel kernel, uint32_t blocks, const void *params);

#endif
