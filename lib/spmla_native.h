/* SPDX-License-Identifier: Apache-2.0
 *
 * What a platform is given beside memory: its handles, what it may use, and, on
 * the CPU, threads.
 */
#ifndef SPMLA_NATIVE_H
#define SPMLA_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum spmla_native_flag {
	/* CPU: ops and replays are queued; spmla_cpu_queue_run runs them. */
	SPMLA_NATIVE_DEFERRED = 1,
	/* CPU: the widest instructions that may be used, where the machine has
	 * better: none, AVX2. Results then differ in their last bits only. */
	SPMLA_NATIVE_SCALAR = 2,
	SPMLA_NATIVE_AVX2 = 4,
	SPMLA_NATIVE_FLAG_FORCE_32 = 0x7fffffff
} spmla_native_flag;

/* CPU: the caller's loop. Calls body(arg, i) for every i < count, on whatever
 * threads and in whatever order, and returns when all of them have returned.
 * What was written before it is visible to the bodies, and what they wrote is
 * visible behind it; a thread pool that locks or joins gives that. Bodies
 * write disjoint outputs, allocate nothing, wait for nothing and need no more
 * than 16 KiB of stack; they compute in their thread's floating-point mode,
 * which has to be the default one (to nearest, subnormals kept).
 * It is called from where operations run, in the caller's thread: eager calls,
 * spmla_graph_replay, spmla_cpu_queue_run and spmla_cpu_launch; never twice at
 * once for a context. count is at most config.cpu_workers. Which body does
 * what is not fixed: each takes the next rows until none is left, in scratch
 * that it takes too. So fewer threads than bodies are fine, an index is but a
 * number, and one that is left out, comes twice or is past count does no harm.
 * Results and DEVICE_STATUS are, to the bit, those of one thread. */
typedef void (*spmla_parallel_body)(void *arg, uint32_t index);
typedef void (*spmla_parallel_for)(void *user, uint32_t count,
				   spmla_parallel_body body, void *arg);

/* The platform's handles; NULL = the current ones. The CPU has none. An older
 * struct ends where parallel_for begins. */
typedef struct spmla_native {
	uint32_t struct_bytes;
	uint32_t flags; /* spmla_native_flag bits */
	void *context;
	void *device;
	void *queue;
	spmla_parallel_for parallel_for; /* CPU; NULL: one thread */
	void *parallel_user;             /* its first argument */
} spmla_native;

#define SPMLA_NATIVE_INIT                                        \
	{                                                        \
		(uint32_t)sizeof(spmla_native), 0, 0, 0, 0, 0, 0 \
	}

#define SPMLA_NATIVE_MIN_BYTES ((uint32_t)offsetof(spmla_native, parallel_for))

#ifdef __cplusplus
}
#endif
#endif
