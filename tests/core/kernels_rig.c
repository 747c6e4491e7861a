/* SPDX-License-Identifier: Apache-2.0
 *
 * See kernels_rig.h.
 */
#include "tests/core/kernels_rig.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const spmla_i_cpu_kernels *
kernels_variant(int i)
{
	const spmla_i_cpu_kernels *k =
		spmla_i_cpu_choose(i == 0 ? SPMLA_NATIVE_AVX2 : 0);

	if (strcmp(k->name, i == 0 ? "avx2" : "avx512") == 0)
		return k;
	printf("SKIPPED: no %s on this machine\n", i == 0 ? "avx2" : "avx512");
	return NULL;
}

void
kernels_same_float(float got, float want)
{
	if (isnan(want))
		ck_assert(isnan(got));
	else
		ck_assert_mem_eq(&got, &want, sizeof got);
}
