/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/step/prefill_rows_kernel.h"
