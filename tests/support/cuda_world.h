/* SPDX-License-Identifier: Apache-2.0
 *
 * The suites on a real CUDA device, unchanged. They hand over memory of any
 * kind, look at results right after a call and pass no stream; so here is a
 * backend that waits after each launch, and a start of the program that makes
 * all of its memory readable by the device.
 *
 * A program that links cuda_world.c and --wrap=main and those of
 * CUDA_WORLD_WRAPS in tests/defs.bzl is so started if SPMLA_TEST_CUDA is set,
 * or one of its arguments is --backend=cuda. Otherwise nothing changes.
 */
#ifndef TESTS_SUPPORT_CUDA_WORLD_H
#define TESTS_SUPPORT_CUDA_WORLD_H

#include "spmla/spmla.h"

/* spmla_cuda, but: a NULL stream is one of its own; every launch is waited for;
 * SPMLA_NATIVE_DEFERRED queues, as on the CPU; every op counts as there, and one
 * without kernels is E_UNSUPPORTED when it is called. Weak, as most programs have
 * it not: NULL. */
extern const spmla_backend cuda_sync __attribute__((weak));

/* Runs `count` entries of the deferred queue; returns how many it ran. */
uint32_t cuda_sync_run(spmla_ctx *ctx, uint32_t count) __attribute__((weak));

/* The program's exit status where there is no device. */
enum { CUDA_WORLD_SKIPPED = 77 };

#endif
