/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU backend's structures in planned host memory, which the plan sizes.
 */
#ifndef SPMLA_INTERNAL_GPU_SIZES_H
#define SPMLA_INTERNAL_GPU_SIZES_H

#include "spmla/internal/backend.h"

enum { SPMLA_I_MAX_KERNELS = 112, SPMLA_I_MAX_DRIVER_FUNCTIONS = 48 };

/* BACKEND_STATE on CUDA and HIP. Handles are the platform's. */
typedef struct spmla_i_gpu_state {
	const void *driver; /* the platform's table of functions */
	void *functions[SPMLA_I_MAX_DRIVER_FUNCTIONS]; /* room for it */
	void *context;
	void *library;        /* loaded kernels */
	void *stream;         /* for the backend's own work */
	void *capture_stream; /* NULL once the platform's capture has ended */
	uint32_t capturing;   /* from capture_begin to its end or abort */
	uint32_t reserved;
	void *kernels[SPMLA_I_MAX_KERNELS];
	uint32_t resident_blocks[SPMLA_I_MAX_KERNELS];
	void *graphs[SPMLA_I_MAX_GRAPHS];
} spmla_i_gpu_state;

enum {
	SPMLA_I_ZE_MAX_COPIES = 4,   /* native.graph_copies */
	SPMLA_I_ZE_MAX_FLIGHTS = 64, /* lists that were submitted and run */
	SPMLA_I_ZE_LOG_BYTES = 4096
};

/* A graph: closed lists of the same commands, submitted in turn, with a fence
 * each that tells when one may be submitted again. */
typedef struct spmla_i_ze_graph {
	void *lists[SPMLA_I_ZE_MAX_COPIES];
	void *fences[SPMLA_I_ZE_MAX_COPIES];
	uint32_t runs[SPMLA_I_ZE_MAX_COPIES]; /* 1: submitted */
	uint32_t next;                        /* copy */
	uint32_t reserved;
} spmla_i_ze_graph;

/* A list that was submitted. */
typedef struct spmla_i_ze_flight {
	uint32_t graph, copy;
} spmla_i_ze_flight;

/* BACKEND_STATE on Level Zero. */
typedef struct spmla_i_ze_state {
	const void *driver;
	void *functions[SPMLA_I_MAX_DRIVER_FUNCTIONS];
	void *context, *device, *queue;
	void *modules[2]; /* the portable one; the one with tile.h's kernels */
	void *list;       /* the backend's own; its calls wait */
	void *recorded;   /* the list whose calls are recorded, or NULL */
	uint32_t ordinal; /* of the queue group */
	uint32_t copies;  /* of a graph */
	uint32_t at_once; /* 1: the host may read what a list is writing */
	uint32_t flights; /* lists in flight[], in the order of the queue */
	uint32_t first;   /* of them */
	uint32_t reserved;
	uint64_t consumed; /* records, as the ended lists tell */
	void *kernels[SPMLA_I_MAX_KERNELS];
	uint32_t resident_blocks[SPMLA_I_MAX_KERNELS];
	spmla_i_ze_flight flight[SPMLA_I_ZE_MAX_FLIGHTS];
	spmla_i_ze_graph graphs[SPMLA_I_MAX_GRAPHS]; /* one may be recorded */
	char log[SPMLA_I_ZE_LOG_BYTES];              /* of a failed build */
} spmla_i_ze_state;

#endif
