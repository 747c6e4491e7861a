/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the projections share: whether a call is done by matrix
 * instructions, which have an order of sums of their own.
 */
#ifndef TESTS_OPS_PROJECT_PROJECT_RIG_H
#define TESTS_OPS_PROJECT_PROJECT_RIG_H

#include "spmla/platform/gpu/launch.h"
#include "tests/harness/fixture.h"

/* The device has the kernel. */
uint32_t project_has(const fixture *f, spmla_i_kernel kernel);

/* Rows of 2-byte or 1-byte values with these strides begin at multiples of 16
 * bytes. */
uint32_t project_aligned(const void *base, int64_t stride_elems,
			 int64_t other_stride_elems, uint32_t elem_bytes);

#endif
