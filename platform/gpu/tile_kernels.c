/* SPDX-License-Identifier: Apache-2.0
 *
 * Only the kernels with the tile products of tile.h. A Level Zero device may
 * lack these instructions, so there they are a module of their own, and the
 * other kernels build without it.
 */
#define SPMLA_GPU_KERNELS  1
#define SPMLA_SPIRV_INLINE __attribute__((always_inline))
#include "spmla/platform/gpu/dialect/dialect.h"

#include "spmla/platform/gpu/attend/sparse_decode_tile_kernel.h"
#include "spmla/platform/gpu/attend/sparse_prefill_tile_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_gathered_tile_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_tile_kernel.h"
