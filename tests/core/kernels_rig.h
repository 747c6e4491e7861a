/* SPDX-License-Identifier: Apache-2.0
 *
 * What the suites of the CPU's inner loops share.
 */
#ifndef TESTS_CORE_KERNELS_RIG_H
#define TESTS_CORE_KERNELS_RIG_H

#include "spmla/platform/cpu/core/kernels_cpu.h"

/* Loop index 0: AVX2, 1: AVX-512; NULL where the machine has it not. */
const spmla_i_cpu_kernels *kernels_variant(int i);

/* The same bits, or both are NaN. */
void kernels_same_float(float got, float want);

#endif
