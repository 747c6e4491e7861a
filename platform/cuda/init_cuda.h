/* SPDX-License-Identifier: Apache-2.0
 *
 * Query, init and fini of a CUDA backend with a driver and kernels that the
 * caller gives, and the state that init makes and every other call reads.
 * spmla_cuda gives the installed driver and the embedded kernels.
 */
#ifndef SPMLA_PLATFORM_CUDA_INIT_H
#define SPMLA_PLATFORM_CUDA_INIT_H

#include "spmla/internal/gpu_sizes.h"
#include "spmla/platform/cuda/driver_cuda.h"

/* The embedded kernels, a fatbin; the driver finds its size in it. No bytes
 * where the library was built without nvcc. In spmla_cuda_blob.o, which the
 * build makes (platform/cuda/blob.sh). */
extern const uint8_t spmla_i_cuda_blob[];
extern const uint64_t spmla_i_cuda_blob_bytes;
/* the version that the kernels need: 13000 */
extern const uint32_t spmla_i_cuda_blob_driver;

typedef struct spmla_i_cuda_image {
	const void *data;
	uint64_t bytes;
	uint32_t driver_version; /* the version that they need */
} spmla_i_cuda_image;

/* As spmla_backend.query, except spmla_device.ops, and as spmla_backend.init.
 * The driver is used until fini. */
spmla_status spmla_i_cuda_query(const spmla_i_cuda_driver *driver,
				uint32_t driver_version,
				const spmla_native *native,
				spmla_device *device, spmla_diag *diag);
spmla_status spmla_i_cuda_init(spmla_ctx *ctx,
			       const spmla_i_cuda_driver *driver,
			       const spmla_i_cuda_image *image,
			       const spmla_native *native, spmla_diag *diag);

/* Zeroes counters, tables and the engine's buffers, as they start, and waits;
 * the context is current. */
spmla_status spmla_i_cuda_zero(spmla_ctx *ctx, spmla_diag *diag);

/* Destroys what init and captures made; the CUDA context is current. */
void spmla_i_cuda_release(spmla_ctx *ctx);

static inline spmla_i_gpu_state *
spmla_i_cuda_state(const spmla_ctx *ctx)
{
	return ctx->buf[SPMLA_BUF_BACKEND_STATE];
}

static inline const spmla_i_cuda_driver *
spmla_i_cuda_driver_of(const spmla_ctx *ctx)
{
	return spmla_i_cuda_state(ctx)->driver;
}

/* Makes the context current; a pop must follow if it succeeds. */
static inline spmla_status
spmla_i_cuda_push(const spmla_i_cuda_driver *driver, spmla_cu_context context,
		  spmla_diag *diag)
{
	const spmla_cu_result r = driver->ctx_push(context);

	return r ? spmla_i_cuda_failed(diag, "cuCtxPushCurrent", r) : SPMLA_OK;
}

static inline void
spmla_i_cuda_pop(const spmla_i_cuda_driver *driver)
{
	spmla_cu_context context;

	(void)driver->ctx_pop(&context);
}

#endif
