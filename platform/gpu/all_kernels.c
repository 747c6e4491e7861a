/* SPDX-License-Identifier: Apache-2.0
 *
 * All kernels that are written once, as one translation unit of the dialect.
 * It is no part of the host library: it becomes the blobs of the platforms, and
 * in tests the emulator's kernels.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/all_kernels.h"
