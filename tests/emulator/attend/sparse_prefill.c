/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/attend/sparse_prefill_kernel.h"
