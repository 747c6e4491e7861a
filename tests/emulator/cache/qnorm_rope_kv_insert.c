/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/cache/qnorm_rope_kv_insert_kernel.h"
