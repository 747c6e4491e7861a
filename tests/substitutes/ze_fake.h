/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver of Level Zero for tests: a table of functions that count their
 * calls, fail where they are told to, and know every handle, so that one which
 * is lost, used after its end or of another kind ends the test. A submitted
 * list counts as running until somebody waits for it or asks often enough; then
 * its commands execute. Submitting, changing or destroying a running list ends
 * the test. Commands between two barriers run in a drawn order.
 *
 * Where kernels come from is the caller's: from the emulator by their names, or
 * from SPIR-V (libze_spmla.c).
 */
#ifndef TESTS_SUBSTITUTES_ZE_FAKE_H
#define TESTS_SUBSTITUTES_ZE_FAKE_H

#include "spmla/platform/level_zero/driver_level_zero.h"
#include "spmla/spmla.h"

/* F(field, symbol, parameters): what only callers of the library need. */
#define ZE_FAKE_MORE(F)                                                    \
	F(context_create, "zeContextCreate",                               \
	  (spmla_ze_driver driver, const void *desc,                       \
	   spmla_ze_context *context))                                     \
	F(context_destroy, "zeContextDestroy", (spmla_ze_context context)) \
	F(queue_create, "zeCommandQueueCreate",                            \
	  (spmla_ze_context context, spmla_ze_device device,               \
	   const spmla_ze_queue_desc *desc, spmla_ze_queue *queue))        \
	F(queue_destroy, "zeCommandQueueDestroy", (spmla_ze_queue queue))  \
	F(queue_sync, "zeCommandQueueSynchronize",                         \
	  (spmla_ze_queue queue, uint64_t timeout))                        \
	F(alloc_host, "zeMemAllocHost",                                    \
	  (spmla_ze_context context, const void *desc, size_t bytes,       \
	   size_t align, void **to))                                       \
	F(alloc_device, "zeMemAllocDevice",                                \
	  (spmla_ze_context context, const void *desc, size_t bytes,       \
	   size_t align, spmla_ze_device device, void **to))               \
	F(mem_free, "zeMemFree", (spmla_ze_context context, void *at))     \
	F(append_copy, "zeCommandListAppendMemoryCopy",                    \
	  (spmla_ze_list list, void *to, const void *from, size_t bytes,   \
	   spmla_ze_event signal, uint32_t count, spmla_ze_event *wait))

typedef enum ze_fake_call {
#define CALL(field, symbol, parameters) ZE_FAKE_##field,
	SPMLA_ZE_FUNCTIONS(CALL) ZE_FAKE_MORE(CALL)
#undef CALL
		ZE_FAKE_CALLS
} ze_fake_call;

typedef struct ze_fake_driver {
	spmla_i_ze_driver own;
#define FIELD(field, symbol, parameters) int(*field) parameters;
	ZE_FAKE_MORE(FIELD)
#undef FIELD
} ze_fake_driver;

/* A kernel of a module: the last of its arguments is a struct. */
typedef struct ze_fake_kernel {
	const char *name;
	uint32_t items;
	uint32_t args;
	uint32_t width;    /* of a subgroup */
	uint32_t indirect; /* 1: it reads at addresses that are numbers */
	void (*code)(void);
} ze_fake_kernel;

enum { ZE_FAKE_MAX_ARGS = 40, ZE_FAKE_MAX_SCALARS = 512 };

/* The arguments of a launch. */
typedef struct ze_fake_args {
	void *pointers[ZE_FAKE_MAX_ARGS];
	uint32_t scalar_bytes;
	_Alignas(16) uint8_t scalars[ZE_FAKE_MAX_SCALARS];
} ze_fake_args;

typedef struct ze_fake {
	/* What it is; the test may change it. */
	uint32_t version;
	const char *name;
	uint32_t type, device_id, slices, subslices;
	uint32_t group_items, subgroup_size;
	uint32_t host_access;       /* SPMLA_ZE_ACCESS_.. */
	uint32_t queue_group_flags; /* of the second group; the first copies */
	uint32_t part_slices; /* of the device's one part; 0: all slices */
	uint32_t devices;     /* 0: the driver has none */
	/* An old driver comes first. 1: it has no devices; 2: it has one that
	 * is no GPU and knows nothing of parts. */
	uint32_t other_driver;
	uint32_t resident; /* groups of each kernel */
	uint32_t patience; /* how often a fence is asked before its list ends */
	const char *build_log; /* NULL: a module is built */
	/* The modules that are taken (NULL: any), their kernels, and how one
	 * runs. */
	spmla_i_ze_image modules[SPMLA_ZE_MODULES];
	uint32_t (*find)(const char *name, ze_fake_kernel *kernel);
	void (*run)(const ze_fake_kernel *kernel, uint32_t groups,
		    const ze_fake_args *args);
	/* The n-th call from here on (from 1) gives `code`, and with fails_on
	 * all behind it; 0: none does. */
	uint32_t fail_at, fails_on;
	int code;
	/* What happened. */
	int failed; /* the ze_fake_call that did, or -1 */
	uint32_t total;
	uint32_t calls[ZE_FAKE_CALLS];
	uint32_t alive;     /* modules, logs, kernels, lists, fences */
	uint32_t indirect;  /* kernels that were told so */
	uint32_t ran;       /* kernels */
	uint32_t most_runs; /* of a list that was submitted */
	uint32_t shuffled;  /* times that commands were put out of order */
	char flags[128];    /* the last module was built with */
} ze_fake;

extern ze_fake fake_ze;
extern const ze_fake_driver ze_fake_driver_table;

/* A driver of 1.3 with one device, a B580 of the emulator's kernels. No handle
 * is alive but the caller's. cuda_fake_backend and its rig are of Level Zero,
 * with ze_fake_native. */
void ze_fake_reset(void);

/* The driver alone, without a backend: the caller has set what it is. */
void ze_fake_start(uint64_t seed);

/* "zeInit" */
const char *ze_fake_name(ze_fake_call call);

/* The caller's handles, and immediate lists i of [0, 2). */
void ze_fake_native(spmla_native *native);
spmla_stream ze_fake_list(uint32_t i);

/* Runs what was submitted, or the first list of it. */
void ze_fake_wait(void);
void ze_fake_wait_first(void);

#endif
