/* SPDX-License-Identifier: Apache-2.0
 *
 * Query, init and fini of a backend on a driver, with a table and kernels that
 * the caller gives, and the state that init makes and every other call reads. A
 * platform gives the installed driver and the embedded kernels.
 */
#ifndef SPMLA_PLATFORM_GPU_DRIVER_INIT_GPU_H
#define SPMLA_PLATFORM_GPU_DRIVER_INIT_GPU_H

#include "spmla/internal/gpu_sizes.h"
#include "spmla/platform/gpu/driver/driver_gpu.h"

typedef struct spmla_i_gpu_image {
	const void *data;
	uint64_t bytes;
	uint32_t driver_version; /* the version that they need */
	const char *field;       /* of the diag if there are no bytes */
} spmla_i_gpu_image;

/* As spmla_backend.query, except spmla_device.ops, and as spmla_backend.init.
 * The driver is used until fini. */
spmla_status spmla_i_gpu_query(const spmla_i_gpu_driver *driver,
			       uint32_t driver_version,
			       const spmla_native *native, spmla_device *device,
			       spmla_diag *diag);
spmla_status spmla_i_gpu_init(spmla_ctx *ctx, const spmla_i_gpu_driver *driver,
			      const spmla_i_gpu_image *image,
			      const spmla_native *native, spmla_diag *diag);

/* Zeroes counters, tables and the engine's buffers, as they start, and waits;
 * the context is current. */
spmla_status spmla_i_gpu_zero(spmla_ctx *ctx, spmla_diag *diag);

/* Destroys what init and captures made; the driver's context is current. */
void spmla_i_gpu_release(spmla_ctx *ctx);

static inline spmla_i_gpu_state *
spmla_i_gpu_state_of(const spmla_ctx *ctx)
{
	return ctx->buf[SPMLA_BUF_BACKEND_STATE];
}

static inline const spmla_i_gpu_driver *
spmla_i_gpu_driver_of(const spmla_ctx *ctx)
{
	return spmla_i_gpu_state_of(ctx)->driver;
}

/* Makes the context's device current; _leave must follow if it succeeds. */
static inline spmla_status
spmla_i_gpu_enter(const spmla_ctx *ctx, void **before, spmla_diag *diag)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);

	return driver->platform->enter(
		driver, spmla_i_gpu_state_of(ctx)->context, before, diag);
}

static inline void
spmla_i_gpu_leave(const spmla_ctx *ctx, void *before)
{
	const spmla_i_gpu_driver *driver = spmla_i_gpu_driver_of(ctx);

	driver->platform->leave(driver, before);
}

#endif
