/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of a family as C. See emulated.h.
 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/project/inv_rope_quant_kernel.h"
#include "spmla/platform/gpu/project/o_group_proj_kernel.h"
#include "spmla/platform/gpu/project/o_group_proj_mma_kernel.h"
#include "spmla/platform/gpu/project/o_group_proj_wgmma_kernel.h"
#include "spmla/platform/gpu/project/q_absorb_kernel.h"
#include "spmla/platform/gpu/project/q_absorb_mma_head_kernel.h"
#include "spmla/platform/gpu/project/q_absorb_mma_kernel.h"
#include "spmla/platform/gpu/project/v_up_kernel.h"
#include "spmla/platform/gpu/project/v_up_mma_kernel.h"

#include "tests/emulator/emulated.inc"
