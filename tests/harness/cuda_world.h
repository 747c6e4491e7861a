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
 * SPMLA_TEST_CUDA_ARCH is the architecture whose kernels are to be run, at most
 * the device's (89: sparse attention in 99 KB; 75: no matrix instructions).
 */
#ifndef TESTS_HARNESS_CUDA_WORLD_H
#define TESTS_HARNESS_CUDA_WORLD_H

#include "spmla/spmla.h"

/* spmla_cuda, but: a NULL stream is one of its own; every launch is waited for;
 * SPMLA_NATIVE_DEFERRED queues, as on the CPU; every op counts as there, and
 * one without kernels is E_UNSUPPORTED when it is called. Weak, as most
 * programs have it not: NULL. */
extern const spmla_backend cuda_sync __attribute__((weak));

/* Runs `count` entries of the deferred queue; returns how many it ran. */
uint32_t cuda_sync_run(spmla_ctx *ctx, uint32_t count) __attribute__((weak));

/* The bytes of the device's memory that are free. */
uint64_t cuda_world_free_bytes(void) __attribute__((weak));

/* A fault of the device is from now on what the program is there for: it ends
 * with 0. */
void cuda_world_expect_fault(void) __attribute__((weak));

/* Under SPMLA_TEST_GUARD=1, see cuda_guard.c: */
/* Bytes that end, but for the alignment, where mapped memory ends; for
 * free(). */
void *cuda_guard_alloc(uint64_t bytes, uint32_t align) __attribute__((weak));
/* Such memory for a region; changes the plan so that every extent does, but for
 * those of HOST. Filled with 0xAB. */
void *cuda_guard_region(spmla_plan *plan, uint32_t memory)
	__attribute__((weak));

/* The device's own memory, see cuda_room.c; _open first: 0 if there is none. */
uint32_t cuda_room_open(void) __attribute__((weak));
void *cuda_room_alloc(uint64_t bytes, uint32_t align) __attribute__((weak));
/* As cuda_guard_region, of DEVICE or CACHE; not filled. */
void *cuda_room_region(spmla_plan *plan, uint32_t memory) __attribute__((weak));
void cuda_room_free(void *block) __attribute__((weak));
void cuda_room_put(void *to, const void *from, uint64_t bytes)
	__attribute__((weak));
void cuda_room_get(void *to, const void *from, uint64_t bytes)
	__attribute__((weak));

/* The exit status of a program or a suite that has nothing to test, as where
 * there is no device. */
enum { CUDA_WORLD_SKIPPED = 77 };

#endif
