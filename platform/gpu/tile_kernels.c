/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels by products of tiles alone, for platforms whose devices may lack
 * the instructions: there they are a module of their own.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/dialect.h"

#include "spmla/platform/gpu/attend/sparse_decode_tile_kernel.h"
#include "spmla/platform/gpu/attend/sparse_prefill_tile_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_gathered_tile_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_tile_kernel.h"
