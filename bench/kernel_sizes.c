/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the bytes of dynamic shared memory of every kernel, for
 * kernel_report.sh.
 */
#include "spmla/platform/gpu/launch.h"

#include <stdio.h>

int
main(void)
{
	uint32_t i;

	for (i = 0; i < SPMLA_KERNEL_COUNT; i++)
		printf("%s %u\n", spmla_i_gpu_kernels[i].name,
		       spmla_i_gpu_kernels[i].dynamic_bytes);
	return 0;
}
