/* SPDX-License-Identifier: Apache-2.0
 *
 * What every backend on a driver has in its spmla_backend, from fini on, behind
 * its own query and init.
 */
#ifndef SPMLA_PLATFORM_GPU_DRIVER_BACKEND_GPU_H
#define SPMLA_PLATFORM_GPU_DRIVER_BACKEND_GPU_H

#include "spmla/internal/backend.h"

void spmla_i_gpu_backend_fini(spmla_ctx *ctx);
spmla_status spmla_i_gpu_backend_zero(spmla_ctx *ctx, spmla_diag *diag);
spmla_status spmla_i_gpu_backend_enqueue(spmla_ctx *ctx, spmla_op op,
					 const void *args, uint32_t bytes,
					 spmla_stream stream);
uint32_t spmla_i_gpu_backend_capturing(const spmla_ctx *ctx,
				       spmla_stream stream);
spmla_status spmla_i_gpu_backend_begin(spmla_ctx *ctx, spmla_stream stream);
spmla_status spmla_i_gpu_backend_end(spmla_ctx *ctx, uint32_t index);
spmla_status spmla_i_gpu_backend_abort(spmla_ctx *ctx);
spmla_status spmla_i_gpu_backend_launch(spmla_ctx *ctx, uint32_t index,
					spmla_stream stream);
spmla_status spmla_i_gpu_backend_order(spmla_ctx *ctx, spmla_stream from,
				       spmla_stream to, void *event);
spmla_status spmla_i_gpu_backend_status_clear(spmla_ctx *ctx);
uint32_t spmla_i_gpu_backend_pending(const spmla_ctx *ctx);
uint32_t spmla_i_gpu_backend_lost(const spmla_ctx *ctx);

/* The initializers of those fields, in order. */
#define SPMLA_I_GPU_BACKEND                                                  \
	spmla_i_gpu_backend_fini, spmla_i_gpu_backend_zero,                  \
		spmla_i_gpu_backend_enqueue, spmla_i_gpu_backend_capturing,  \
		spmla_i_gpu_backend_begin, spmla_i_gpu_backend_end,          \
		spmla_i_gpu_backend_abort, spmla_i_gpu_backend_launch,       \
		spmla_i_gpu_backend_order, spmla_i_gpu_backend_status_clear, \
		spmla_i_gpu_backend_pending, spmla_i_gpu_backend_lost, NULL, \
		NULL

#endif
