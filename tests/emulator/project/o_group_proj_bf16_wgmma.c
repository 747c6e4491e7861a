/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/project/o_group_proj_bf16_wgmma_kernel.h"
