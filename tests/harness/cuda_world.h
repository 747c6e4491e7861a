/* SPDX-License-Identifier: Apache-2.0
 *
 * The suites on a CUDA, HIP or Level Zero device, unchanged. They pass memory
 * of any kind, read results right after a call, and pass no stream. So there is
 * a backend that waits after each launch, and a program start that makes all
 * memory of the program readable by the device.
 *
 * A program must link cuda_world.c with --wrap=main and the wraps of
 * CUDA_WORLD_WRAPS in tests/defs.bzl. It then starts this way if
 * SPMLA_TEST_CUDA, SPMLA_TEST_HIP or SPMLA_TEST_LEVEL_ZERO is set or one of its
 * arguments is --backend=cuda, hip or level_zero; otherwise nothing changes. On
 * Level Zero memory stays what it is: only the substitute reads it, which is on
 * the CPU. SPMLA_TEST_CUDA_ARCH is the architecture whose kernels run, at most
 * the device's (89: sparse attention in 99 KB; 75: no matrix instructions).
 */
#ifndef TESTS_HARNESS_CUDA_WORLD_H
#define TESTS_HARNESS_CUDA_WORLD_H

#include "spmla/spmla.h"

/* spmla_cuda with these differences: a NULL stream is one of its own; it waits
 * for every launch; SPMLA_NATIVE_DEFERRED queues, as on the CPU; all operations
 * are listed as there, and one without kernels is E_UNSUPPORTED when it is
 * called. Weak: NULL in most programs. */
extern const spmla_backend cuda_sync __attribute__((weak));
/* The same of spmla_hip. */
extern const spmla_backend hip_sync __attribute__((weak));
/* The same of spmla_level_zero: graphs run on a queue of its own. Of graphs that
 * one call of cuda_sync_run runs, one after the other, it waits for the last;
 * so their lists overlap. */
extern const spmla_backend level_zero_sync __attribute__((weak));

/* Runs `count` entries of the deferred queue; returns how many it ran. */
uint32_t cuda_sync_run(spmla_ctx *ctx, uint32_t count) __attribute__((weak));

/* The bytes of the device's memory that are free. */
uint64_t cuda_world_free_bytes(void) __attribute__((weak));

/* Declares a device fault to be the program's purpose from now on: it ends with
 * 0. */
void cuda_world_expect_fault(void) __attribute__((weak));

/* Under SPMLA_TEST_GUARD=1, see cuda_guard.c: */
/* Bytes that end, up to the alignment, where mapped memory ends; for free(). */
void *cuda_guard_alloc(uint64_t bytes, uint32_t align) __attribute__((weak));
/* Such memory for a region. Changes the plan so that every extent ends there
 * too, except extents of HOST. Filled with 0xAB. */
void *cuda_guard_region(spmla_plan *plan, uint32_t memory)
	__attribute__((weak));

/* The device's own memory, see cuda_room.c; _open first: 0 if there is none. */
uint32_t cuda_room_open(void) __attribute__((weak));
void *cuda_room_alloc(uint64_t bytes, uint32_t align) __attribute__((weak));
/* The buffers of the next context lie as that plan says, whose extents have
 * moved, from base[memory] on. Both are read by spmla_init. */
void cuda_world_move(const spmla_plan *plan, void *const *base)
	__attribute__((weak));
/* As cuda_guard_region, for DEVICE or CACHE; not filled. */
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
