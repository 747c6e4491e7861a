/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of a family as C. See emulated.h.
 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/attend/lse2_to_lse_kernel.h"
#include "spmla/platform/gpu/attend/sparse_bf16_wgmma_kernel.h"
#include "spmla/platform/gpu/attend/sparse_decode_few_kernel.h"
#include "spmla/platform/gpu/attend/sparse_decode_kernel.h"
#include "spmla/platform/gpu/attend/sparse_decode_mma_kernel.h"
#include "spmla/platform/gpu/attend/sparse_decode_tile_kernel.h"
#include "spmla/platform/gpu/attend/sparse_decode_wgmma_kernel.h"
#include "spmla/platform/gpu/attend/sparse_prefill_kernel.h"
#include "spmla/platform/gpu/attend/sparse_prefill_tile_kernel.h"
#include "spmla/platform/gpu/attend/split_combine_kernel.h"

#include "tests/emulator/emulated.inc"
