/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotients by numbers that the host knows, such as the tokens of a page. A
 * division is some 20 instructions, and a kernel that runs once fetches each of
 * them; a product and a shift are 3. The hard idea: let shift = 31 + log2(by),
 * rounded up, and factor = 2^shift / by, rounded up. Then n * factor exceeds n
 * * 2^shift / by by less than n. If n < 2^31, that excess is less than 2^shift
 * / by, so the quotient is exact (Granlund and Montgomery, 1994).
 */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_DIVIDE_H
#define SPMLA_PLATFORM_GPU_DIALECT_DIVIDE_H

#include "spmla/platform/gpu/dialect/dialect.h"

/* As spmla_i_gpu_divisor makes it. */
typedef struct spmla_g_divisor {
	uint32_t by;
	uint32_t factor;
	uint32_t shift;
} spmla_g_divisor;

/* n / by for n < 2^31; 0 for by 0. For a larger n it may be one too many. */
FN uint32_t
g_divide(uint32_t n, const spmla_g_divisor d)
{
	return (uint32_t)(((uint64_t)n * d.factor) >> d.shift);
}

/* n % by, for the same n; n itself for by 0. */
FN uint32_t
g_modulo(uint32_t n, const spmla_g_divisor d)
{
	return n - g_divide(n, d) * d.by;
}

#endif
