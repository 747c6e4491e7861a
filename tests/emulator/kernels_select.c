/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of a family as C. See emulated.h.
 */
#include "tests/emulator/emulated.h"

#include "spmla/platform/gpu/select/c128a_index_kernel.h"
#include "spmla/platform/gpu/select/combine_index_kernel.h"
#include "spmla/platform/gpu/select/filter_prefill_indices_kernel.h"
#include "spmla/platform/gpu/select/index_map_kernel.h"
#include "spmla/platform/gpu/select/indexer_q_prep_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_gathered_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_gathered_mma_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_gathered_tile_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_gathered_wgmma_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_mma_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_tile_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_wgmma_kernel.h"
#include "spmla/platform/gpu/select/ragged_index_kernel.h"
#include "spmla/platform/gpu/select/swa_index_kernel.h"
#include "spmla/platform/gpu/select/topk_by_kernel.h"
#include "spmla/platform/gpu/select/topk_kernel.h"

#include "tests/emulator/emulated.inc"
