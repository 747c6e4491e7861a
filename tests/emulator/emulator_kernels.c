/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels as C, and calls of them by number.
 */
#define SPMLA_EMULATOR 1
#include "platform/gpu/all_kernels.c"

#include "tests/emulator/emulator.h"

#define ARG(type, name) p->name,
#define SPMLA_KERNEL_LINE(stem, items, dynamic)                           \
	static void call_##stem(const void *params)                       \
	{                                                                 \
		const spmla_k_##stem##_params *p = params;                \
                                                                          \
		spmla_k_##stem(SPMLA_K_##stem(ARG, SPMLA_I_K_NONE) p->s); \
	}
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE

const uint32_t emulator_items[SPMLA_KERNEL_COUNT] = {
#define SPMLA_KERNEL_LINE(stem, items, dynamic) items,
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE
};

void
emulator_call(spmla_i_kernel kernel, const void *params)
{
	static void (*const call[])(const void *) = {
#define SPMLA_KERNEL_LINE(stem, items, dynamic) call_##stem,
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE
	};

	call[kernel](params);
}
