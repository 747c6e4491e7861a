/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/select/topk_by_kernel.h"
