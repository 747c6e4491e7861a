/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of a family as C. See emulated.h.
 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/compress/compress_state_save_kernel.h"
#include "spmla/platform/gpu/compress/kv_compress_few_kernel.h"
#include "spmla/platform/gpu/compress/kv_compress_kernel.h"

#include "tests/emulator/emulated.inc"
