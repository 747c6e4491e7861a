/* SPDX-License-Identifier: Apache-2.0
 *
 * A program whose static, stack and heap memory the device can read; see
 * cuda_memory.c, cuda_heap.c and cuda_guard.c.
 */
#ifndef TESTS_HARNESS_CUDA_MEMORY_H
#define TESTS_HARNESS_CUDA_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "spmla/spmla.h"

enum { CUDA_PORTABLE_AND_MAPPED = 3 }; /* flags of allocation */

typedef struct cuda_driver {
	int (*init)(unsigned);
	int (*device)(int *, int);
	int (*attribute)(int *, int, int);
	int (*retain)(void **, int);
	int (*set_current)(void *); /* not on HIP, nor is `retain` */
	int (*set_device)(int);     /* on HIP */
	int (*host_alloc)(void **, size_t, unsigned);
	int (*host_register)(void *, size_t, unsigned);
	int (*host_unregister)(void *);
	int (*stream_create)(void **, unsigned);
	int (*stream_sync)(void *);
	int (*mem_info)(size_t *, size_t *);
	int (*managed_alloc)(uint64_t *, size_t, unsigned);
	int (*mem_free)(uint64_t);
} cuda_driver;

extern cuda_driver cuda_memory_driver;
extern uint32_t cuda_memory_mapped; /* memory needs to be registered */

/* Flags of host memory that kernels use while the host does. */
uint32_t cuda_memory_host_flags(void);

/* The platform of the device: spmla_backend_kind. */
uint32_t cuda_memory_kind(void);

/* Ends the program unless `code` is 0. */
void cuda_memory_must(int code, const char *what);

/* The program's stream, made at its start. */
void *cuda_memory_stream(void);

/* Waits for it; the driver's code. */
int cuda_memory_sync(void *stream);

/* Level Zero, see level_zero_world.c: 0 if there is no device. Its stream is an
 * immediate list, whose calls wait. */
uint32_t level_zero_world_open(void);
const spmla_native *level_zero_world_native(void);
void *level_zero_world_list(void);
/* Waits for the queue. */
int level_zero_world_sync(void);

/* From now on malloc returns memory that the driver allocated. */
void cuda_heap_open(void);

/* From now on large blocks of malloc lie like blocks of cuda_guard_alloc. */
void cuda_guard_open(void);
uint32_t cuda_guard_is_open(void);
/* The bytes of a block of the guard, 0 if it is none. */
uint64_t cuda_guard_bytes(const void *p);
/* Returns 0 if it is no block of the guard. Ends the program if memory beside
 * it was written. */
uint32_t cuda_guard_free(void *p);

/* The original functions. */
void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_aligned_alloc(size_t, size_t);
int __real_posix_memalign(void **, size_t, size_t);
void __real_free(void *);
void *__real_mmap(void *, size_t, int, int, int, long);
int __real_munmap(void *, size_t);

#endif
