/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of a family as C. See emulated.h.
 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/cache/indexer_k_gather_kernel.h"
#include "spmla/platform/gpu/cache/indexer_k_insert_kernel.h"
#include "spmla/platform/gpu/cache/kv_gather_kernel.h"
#include "spmla/platform/gpu/cache/kv_insert_kernel.h"
#include "spmla/platform/gpu/cache/qnorm_rope_kv_insert_kernel.h"
#include "spmla/platform/gpu/cache/rms_norms_kernel.h"

#include "tests/emulator/emulated.inc"
