/* SPDX-License-Identifier: Apache-2.0
 *
 * lse2_to_lse on the CPU.
 */
#include "spmla/platform/cpu/core/cpu.h"

void
spmla_i_cpu_lse2_to_lse(spmla_ctx *ctx, const void *args)
{
	const spmla_lse2_to_lse_args *a = args;
	uint64_t i;

	(void)ctx;
	for (i = 0; i < a->count; i++)
		a->lse[i] = a->lse2[i] * 0.693147180559945309f;
}
