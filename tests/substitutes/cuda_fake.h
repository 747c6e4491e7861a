/* SPDX-License-Identifier: Apache-2.0
 *
 * A CUDA driver for tests, and most of a HIP runtime (hip_fake.h): a table of
 * functions that count their calls, fail where they are told to, and know every
 * handle, so that one which is lost, used after its end or made in the wrong
 * context ends the test. Kernels run on the emulator, at once, when launched by
 * themselves or by a graph.
 */
#ifndef TESTS_SUBSTITUTES_CUDA_FAKE_H
#define TESTS_SUBSTITUTES_CUDA_FAKE_H

#include "spmla/platform/cuda/driver_cuda.h"
#include "spmla/platform/gpu/driver/init_gpu.h"
#include "spmla/platform/hip/driver_hip.h"

typedef enum cuda_fake_call {
#define SHARED(field, name, version)   CUDA_FAKE_##field,
#define OWN(field, symbol, parameters) CUDA_FAKE_##field,
	SPMLA_CU_NAMES(SHARED) SPMLA_CU_OWN(OWN) SPMLA_HIP_OWN(OWN)
		SPMLA_HIP_PROPERTIES(OWN)
#undef SHARED
#undef OWN
			CUDA_FAKE_CALLS
} cuda_fake_call;

/* Attributes that only cuda_memory.c asks for: no, yes. */
enum { CUDA_FAKE_PAGEABLE = 88, CUDA_FAKE_SAME_ADDRESS = 91 };

/* Launches that are followed: a bit each. */
enum { CUDA_FAKE_LAUNCHES = 64 };

/* A kernel by itself, or a node of a capture. */
typedef struct cuda_fake_launch {
	uint32_t kernel; /* spmla_i_kernel */
	uint64_t behind; /* earlier launches that streams and events let end
	                  * before this one begins */
} cuda_fake_launch;

typedef struct cuda_fake {
	/* What it is; the test may change it. */
	int version;
	int major, minor, sm_count, warp;
	int capture_mode; /* that captures shall begin in; -1: any */
	int local_bytes;  /* of every kernel */
	int blocks;       /* occupancy of every kernel */
	/* The n-th call from here on (from 1) gives `code`; 0: none does. */
	uint32_t fail_at;
	int code;
	/* What happened. */
	int failed; /* the cuda_fake_call that did, or -1 */
	uint32_t total;
	uint32_t calls[CUDA_FAKE_CALLS];
	uint32_t alive; /* modules, streams, graphs, execs */
	uint32_t depth; /* of the stack of contexts */
	uint32_t memset_bytes;
	uint32_t not_waited_for; /* memsets since the last wait */
	uint32_t nodes;          /* of the last capture that ended */
	uint32_t launches;       /* since cuda_fake_follow */
	cuda_fake_launch launch[CUDA_FAKE_LAUNCHES];
} cuda_fake;

extern cuda_fake fake;
extern const spmla_i_cuda_driver cuda_fake_driver;

/* The backend on this driver; it says that it has every op. */
extern spmla_backend cuda_fake_backend;

/* A driver of 13.0 with one device, sm_90 of 4 SMs, and a current context. The
 * caller's streams are made anew. */
void cuda_fake_reset(void);

/* Forgets all launches: the next is number 0. */
void cuda_fake_follow(void);

/* A copy within the device's memory on the default stream, or a fill with
 * `byte` if `from` is NULL. It is done when something waits for that stream, or
 * behind the next launch: no other stream waits for it. */
void cuda_fake_later(void *to, const void *from, unsigned char byte,
		     size_t bytes);
/* Does the copies and fills that are not done yet. */
void cuda_fake_catch_up(void);

/* Counts a call, and returns the code that the call must give. */
int cuda_fake_enter(cuda_fake_call call);

/* The symbol of a call: "cuInit". */
const char *cuda_fake_name(cuda_fake_call call);

/* A stream of the caller's, i of [0, 4). */
spmla_stream cuda_fake_stream(uint32_t i);

/* An event of the caller's, i of [0, 4). */
void *cuda_fake_event(uint32_t i);
/* When one was last recorded, CLOCK_MONOTONIC. */
double cuda_fake_event_ms(void *event);

/* The caller's own capture of it; _end gives an exec that _launch runs. */
void cuda_fake_capture(uint32_t i);
void *cuda_fake_capture_end(uint32_t i);
void cuda_fake_capture_launch(void *exec);
/* What the driver does to a capture in which something forbidden was called. */
void cuda_fake_invalidate(uint32_t i);
/* Stream i joins the capture of stream `of`, as by events. */
void cuda_fake_join(uint32_t i, uint32_t of);

/* Changes which context is current for the caller: 1 is the one that it starts
 * with, 0 none. */
void cuda_fake_set_current(uint32_t on);

/* The context, for native.context. */
void *cuda_fake_context(void);

/* A context of SpMLA on this backend, in memory filled with 0xAB. */
typedef struct cuda_fake_rig {
	spmla_plan plan;
	spmla_native native;
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_ctx *ctx;
	spmla_diag diag; /* of the plan and of init */
} cuda_fake_rig;

/* Makes all but the context, of fixture_config or another; fails the test if it
 * cannot. */
void cuda_fake_rig_plan(cuda_fake_rig *rig);
void cuda_fake_rig_plan_of(cuda_fake_rig *rig, const spmla_config *config);
/* spmla_init. */
spmla_status cuda_fake_rig_init(cuda_fake_rig *rig);
void cuda_fake_rig_free(cuda_fake_rig *rig);

/* A query and an init that are refused, in these words. Neither writes anything
 * but the diag. */
void cuda_fake_query_says(const spmla_native *native, spmla_status status,
			  const char *want);
void cuda_fake_rig_init_says(cuda_fake_rig *rig, spmla_status status,
			     const char *want);

#endif
