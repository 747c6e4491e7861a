/* SPDX-License-Identifier: Apache-2.0
 *
 * Query, init and fini of the Level Zero backend, with a table of functions and
 * kernels that the caller gives, and what its other calls share.
 */
#ifndef SPMLA_PLATFORM_LEVEL_ZERO_INIT_H
#define SPMLA_PLATFORM_LEVEL_ZERO_INIT_H

#include "spmla/internal/gpu_sizes.h"
#include "spmla/platform/level_zero/driver_level_zero.h"

/* As spmla_backend.query, except that spmla_device.ops is not filled in, and as
 * spmla_backend.init. The table is used until fini; it may lie in the state. */
spmla_status spmla_i_ze_query(const spmla_i_ze_driver *driver,
			      const spmla_native *native, spmla_device *device,
			      spmla_diag *diag);
spmla_status spmla_i_ze_init(spmla_ctx *ctx, const spmla_i_ze_driver *driver,
			     const spmla_i_ze_image images[SPMLA_ZE_MODULES],
			     const spmla_native *native, spmla_diag *diag);

/* Fields of spmla_backend. */
void spmla_i_ze_fini(spmla_ctx *ctx);
spmla_status spmla_i_ze_zero(spmla_ctx *ctx, spmla_diag *diag);
spmla_status spmla_i_ze_enqueue(spmla_ctx *ctx, spmla_op op, const void *args,
				uint32_t bytes, spmla_stream stream);
uint32_t spmla_i_ze_capturing(const spmla_ctx *ctx, spmla_stream stream);
spmla_status spmla_i_ze_begin(spmla_ctx *ctx, spmla_stream stream);
spmla_status spmla_i_ze_end(spmla_ctx *ctx, uint32_t index);
spmla_status spmla_i_ze_abort(spmla_ctx *ctx);
spmla_status spmla_i_ze_launch(spmla_ctx *ctx, uint32_t index,
			       spmla_stream queue);
spmla_status spmla_i_ze_status_clear(spmla_ctx *ctx);
uint32_t spmla_i_ze_pending(const spmla_ctx *ctx);
uint32_t spmla_i_ze_lost(const spmla_ctx *ctx);
uint64_t spmla_i_ze_consumed(const spmla_ctx *ctx);
uint32_t spmla_i_ze_readable(const spmla_ctx *ctx);

/* The initializers of those fields, in order. There are no branches. */
#define SPMLA_I_ZE_BACKEND                                                    \
	spmla_i_ze_fini, spmla_i_ze_zero, spmla_i_ze_enqueue,                 \
		spmla_i_ze_capturing, spmla_i_ze_begin, spmla_i_ze_end,       \
		spmla_i_ze_abort, spmla_i_ze_launch, NULL,                    \
		spmla_i_ze_status_clear, spmla_i_ze_pending, spmla_i_ze_lost, \
		spmla_i_ze_consumed, spmla_i_ze_readable

/* Destroys the lists and fences that a graph has. */
void spmla_i_ze_drop(const spmla_i_ze_state *state, spmla_i_ze_graph *graph);

/* Fills device memory with zeros, and waits. */
spmla_status spmla_i_ze_clear(const spmla_i_ze_state *state, void *to,
			      uint64_t bytes, spmla_diag *diag);

static inline spmla_i_ze_state *
spmla_i_ze_state_of(const spmla_ctx *ctx)
{
	return ctx->buf[SPMLA_BUF_BACKEND_STATE];
}

static inline const spmla_i_ze_driver *
spmla_i_ze_driver_of(const spmla_i_ze_state *state)
{
	return state->driver;
}

#endif
