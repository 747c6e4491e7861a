/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of a family as C. See emulated.h.
 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/step/fixed_splits_kernel.h"
#include "spmla/platform/gpu/step/indexer_schedule_kernel.h"
#include "spmla/platform/gpu/step/logits_rows_kernel.h"
#include "spmla/platform/gpu/step/prefill_rows_kernel.h"
#include "spmla/platform/gpu/step/slot_map_kernel.h"
#include "spmla/platform/gpu/step/step_prologue_kernel.h"
#include "spmla/platform/gpu/step/step_windows_kernel.h"
#include "spmla/platform/gpu/step/table_write_kernel.h"
#include "spmla/platform/gpu/step/tile_sched_kernel.h"
#include "spmla/platform/gpu/step/token_map_kernel.h"

#include "tests/emulator/emulated.inc"
