/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands before a kernel where it is compiled as C. Each of
 * platform/gpu/x/y_kernel.h is an object of its own, x/y.c here, so that a
 * change of a kernel compiles one of them. A kernel's definition comes with
 * emulator_call_<stem>, by which the emulator knows it. That function is weak,
 * because some of these headers include another one: both objects then have its
 * kernels.
 */
#ifndef TESTS_EMULATOR_EMULATED_H
#define TESTS_EMULATOR_EMULATED_H

#define SPMLA_EMULATOR    1
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/dialect.h"

#define EMULATED_ARG(type, name) p->name,

#undef SPMLA_KERNEL
#undef SPMLA_KERNEL_BLOCKS
#undef SPMLA_KERNEL_CLUSTER
#define EMULATED_KERNEL(stem)                                                \
	SPMLA_KERNEL_PARAMS(stem)                                            \
	static void spmla_k_##stem(SPMLA_KERNEL_ARGS(stem));                 \
	__attribute__((weak)) void emulator_call_##stem(const void *params); \
	void emulator_call_##stem(const void *params)                        \
	{                                                                    \
		const spmla_k_##stem##_params *p = params;                   \
                                                                             \
		spmla_k_##stem(SPMLA_K_##stem(EMULATED_ARG, SPMLA_I_K_NONE)  \
				       p->s);                                \
	}                                                                    \
	static
#define SPMLA_KERNEL(stem)                  EMULATED_KERNEL(stem)
#define SPMLA_KERNEL_BLOCKS(stem, blocks)   SPMLA_KERNEL(stem)
#define SPMLA_KERNEL_CLUSTER(stem, cluster) SPMLA_KERNEL(stem)

#endif
