/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the kernels by number. The kernels are in kernels_<family>.c.
 */
#define SPMLA_EMULATOR 1
#include "spmla/platform/gpu/dialect/dialect.h"

#include "tests/emulator/emulator.h"

#define SPMLA_KERNEL_LINE(stem, items, dynamic) \
	void emulator_call_##stem(const void *params);
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
#define SPMLA_KERNEL_LINE(stem, items, dynamic) emulator_call_##stem,
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE
	};

	call[kernel](params);
}
