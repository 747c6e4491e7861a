/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts a context's calls of the CUDA or HIP driver, whichever that is: its
 * functions count and then call the context's former ones.
 */
#ifndef TESTS_HARNESS_CUDA_COUNT_H
#define TESTS_HARNESS_CUDA_COUNT_H

#include "tests/substitutes/cuda_fake.h"

typedef struct cuda_count {
	uint32_t total;
	uint32_t calls[CUDA_FAKE_CALLS];
} cuda_count;

extern cuda_count counted;

/* Counts the context's calls from now on, starting at 0; one context at a time.
 * Returns 0 if it has no driver. */
uint32_t cuda_count_begin(spmla_ctx *ctx);

/* Restores the context's own functions. */
void cuda_count_end(spmla_ctx *ctx);

#endif
