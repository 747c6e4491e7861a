/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/attend/sparse_decode_bf16_wgmma_kernel.h"
