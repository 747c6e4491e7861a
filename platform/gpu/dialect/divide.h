/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotients by numbers that the host knows, such as a page's tokens. A division
 * is some 20 instructions, each of which a kernel that runs once has to fetch;
 * a product and a shift are 3. The hard idea: with shift = 31 + log2 of `by`,
 * rounded up, and factor = 2^shift / by, rounded up, the product of n and
 * factor is too large by less than n * by / 2^31 of 2^shift / by, so that for n
 * < 2^31 the quotient is exact (Granlund and Montgomery, 1994).
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

/* n / by for n < 2^31; 0 for by 0. Of a larger n it may be one too many. */
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
