/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/cache/rms_norms_kernel.h"
