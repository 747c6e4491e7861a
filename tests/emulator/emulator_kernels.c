/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of the kernels by number. The kernels are in <family>/<kernel>.c.
 */
#define SPMLA_EMULATOR 1
#include "spmla/platform/gpu/dialect/dialect.h"

#include "tests/emulator/emulator.h"

#include <stdio.h>
#include <stdlib.h>

#define SPMLA_KERNEL_LINE(stem, items, dynamic) \
	void emulator_call_##stem(const void *params);
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE

static const emulator_kernel kernels[SPMLA_KERNEL_COUNT] = {
#define SPMLA_KERNEL_LINE(stem, items, dynamic) \
	{"spmla_k_" #stem, emulator_call_##stem, items, dynamic, 1, 0},
#define SPMLA_KERNEL_LIVE(stem, items, dynamic, blocks) \
	{"spmla_k_" #stem, emulator_call_##stem, items, dynamic, blocks, 1},
#define SPMLA_KERNEL_CLUSTERS(stem, items, dynamic, blocks) \
	{"spmla_k_" #stem, emulator_call_##stem, items, dynamic, blocks, 0},
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE
};

/* Appends the kernel's name, once, to the file that SPMLA_TEST_KERNELS names.
 */
static void
tell(spmla_i_kernel kernel)
{
	static uint8_t told[SPMLA_KERNEL_COUNT];
	const char *path = getenv("SPMLA_TEST_KERNELS");
	FILE *to;

	if (!path || told[kernel])
		return;
	told[kernel] = 1;
	to = fopen(path, "a");
	if (!to)
		abort();
	fprintf(to, "%s\n", kernels[kernel].name);
	fclose(to);
}

void
emulator_run(spmla_i_kernel kernel, uint32_t blocks, const void *params)
{
	tell(kernel);
	emulator_run_kernel(&kernels[kernel], blocks, params);
}
