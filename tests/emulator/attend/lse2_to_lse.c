/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/attend/lse2_to_lse_kernel.h"
