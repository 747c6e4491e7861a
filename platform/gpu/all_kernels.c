/* SPDX-License-Identifier: Apache-2.0
 *
 * All kernels as one translation unit in the kernel dialect. It is not part of
 * the host library: each platform compiles it into its blob.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/all_kernels.h"
