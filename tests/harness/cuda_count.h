/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts what a context asks of the CUDA driver, whichever driver that is:
 * functions that count and then call those that the context had.
 */
#ifndef TESTS_HARNESS_CUDA_COUNT_H
#define TESTS_HARNESS_CUDA_COUNT_H

#include "tests/substitutes/cuda_fake.h"

typedef struct cuda_count {
	uint32_t total;
	uint32_t calls[CUDA_FAKE_CALLS];
} cuda_count;

extern cuda_count counted;

/* From now on the context's calls are counted, from 0; of one context at a
 * time. 0: it has no driver. */
uint32_t cuda_count_begin(spmla_ctx *ctx);

/* The context has its own functions again. */
void cuda_count_end(spmla_ctx *ctx);

#endif
