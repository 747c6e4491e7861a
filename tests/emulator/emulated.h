/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands before a family's kernels where they are compiled as C. Each
 * family is an object of its own, so that a change of a kernel compiles one of
 * them. emulated.inc stands behind them.
 */
#ifndef TESTS_EMULATOR_EMULATED_H
#define TESTS_EMULATOR_EMULATED_H

#define SPMLA_EMULATOR    1
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/dialect.h"

#endif
