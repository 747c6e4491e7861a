/* SPDX-License-Identifier: Apache-2.0
 *
 * What the caller gives a platform besides memory: its handles, what it may
 * use, and threads for the CPU.
 */
#ifndef SPMLA_NATIVE_H
#define SPMLA_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of spmla_native. */
typedef enum spmla_native_flag {
	/* CPU: operations and replays are queued; spmla_cpu_queue_run runs
	 * them. */
	SPMLA_NATIVE_DEFERRED = 1,
	/* CPU: caps the instruction set at scalar code or AVX2 on machines that
	 * have more. Results differ in their last bits only. */
	SPMLA_NATIVE_SCALAR = 2,
	SPMLA_NATIVE_AVX2 = 4,
	SPMLA_NATIVE_FLAG_FORCE_32 = 0x7fffffff
} spmla_native_flag;

/* CPU: the caller's loop. It calls body(arg, i) for every i < count, on any
 * threads and in any order, and returns when all of them have returned.
 * Memory order: the bodies see what was written before the loop began, and the
 * caller sees what the bodies wrote when it returns. A thread pool that locks
 * or joins gives that.
 * Bodies write disjoint outputs, allocate nothing, wait for nothing and need at
 * most 16 KiB of stack. They compute in the floating-point mode of their
 * thread, which must be the default (round to nearest, subnormals kept).
 * The library calls the loop from the thread that runs operations: in eager
 * calls, spmla_graph_replay, spmla_cpu_queue_run and spmla_cpu_launch. It never
 * calls it twice at once for a context. count is at most config.cpu_workers.
 * `index` means nothing: each body claims free scratch, then rows until none
 * are left. So fewer threads than bodies are fine, and an index may be left
 * out, repeated or too large.
 * Results and DEVICE_STATUS are the same as with one thread, to the bit. */
typedef void (*spmla_parallel_body)(void *arg, uint32_t index);
typedef void (*spmla_parallel_for)(void *user, uint32_t count,
				   spmla_parallel_body body, void *arg);

/* The platform's handles; NULL means the current ones. The CPU has none;
 * spmla_cuda.h, spmla_hip.h and spmla_level_zero.h say which ones they take. An
 * older, smaller struct ends before parallel_for, or before graph_copies. */
typedef struct spmla_native {
	uint32_t struct_bytes;
	uint32_t flags; /* spmla_native_flag bits */
	void *context;
	void *device;
	void *queue;
	spmla_parallel_for parallel_for; /* CPU; NULL: one thread */
	void *parallel_user;             /* its first argument */
	/* Level Zero: how often a graph is recorded, and so how many replays of
	 * it may be under way; 1..4, 0: 2 */
	uint32_t graph_copies;
	uint32_t reserved; /* 0 */
} spmla_native;

#define SPMLA_NATIVE_INIT                                              \
	{                                                              \
		(uint32_t)sizeof(spmla_native), 0, 0, 0, 0, 0, 0, 0, 0 \
	}

#define SPMLA_NATIVE_MIN_BYTES ((uint32_t)offsetof(spmla_native, parallel_for))

#ifdef __cplusplus
}
#endif
#endif
