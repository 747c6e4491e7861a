/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU backend's structures in planned host memory, which the plan sizes.
 */
#ifndef SPMLA_INTERNAL_GPU_SIZES_H
#define SPMLA_INTERNAL_GPU_SIZES_H

#include "spmla/internal/backend.h"

enum { SPMLA_I_MAX_KERNELS = 80, SPMLA_I_MAX_DRIVER_FUNCTIONS = 48 };

/* BACKEND_STATE. Handles are the platform's. */
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

#endif
