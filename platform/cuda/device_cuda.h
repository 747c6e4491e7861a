/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of a device that the plan and the backend need.
 */
#ifndef SPMLA_PLATFORM_CUDA_DEVICE_H
#define SPMLA_PLATFORM_CUDA_DEVICE_H

#include "spmla/platform/cuda/driver_cuda.h"

/* The oldest architecture with kernels (as PTX). */
enum { SPMLA_I_CUDA_OLDEST_ARCH = 80 };

/* The context that `native` (may be NULL) names, or the current one. Errors:
 * E_NULL if there is none, E_UNSUPPORTED for flags, E_DEVICE. */
spmla_status spmla_i_cuda_context(const spmla_i_cuda_driver *driver,
				  const spmla_native *native,
				  spmla_cu_context *context, spmla_diag *diag);

/* Fills in the facts of the current context's device, except kind and ops.
 * Errors: E_UNSUPPORTED, E_DEVICE. */
spmla_status spmla_i_cuda_facts(const spmla_i_cuda_driver *driver,
				spmla_device *device, spmla_diag *diag);

#endif
