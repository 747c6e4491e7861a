/* SPDX-License-Identifier: Apache-2.0
 *
 * Every file of kernels. With SPMLA_GPU_KERNELS it is the kernels, without it
 * the lists of their parameters.
 */
#ifndef SPMLA_PLATFORM_GPU_ALL_H
#define SPMLA_PLATFORM_GPU_ALL_H

#include "spmla/platform/gpu/dialect_gpu.h"

#include "spmla/platform/gpu/c128a_index_gpu.h"
#include "spmla/platform/gpu/combine_index_gpu.h"
#include "spmla/platform/gpu/compress_state_save_gpu.h"
#include "spmla/platform/gpu/filter_prefill_indices_gpu.h"
#include "spmla/platform/gpu/index_map_gpu.h"
#include "spmla/platform/gpu/indexer_k_gather_gpu.h"
#include "spmla/platform/gpu/indexer_k_insert_gpu.h"
#include "spmla/platform/gpu/indexer_q_prep_gpu.h"
#include "spmla/platform/gpu/indexer_schedule_gpu.h"
#include "spmla/platform/gpu/inv_rope_quant_gpu.h"
#include "spmla/platform/gpu/kv_compress_few_gpu.h"
#include "spmla/platform/gpu/kv_compress_gpu.h"
#include "spmla/platform/gpu/kv_gather_gpu.h"
#include "spmla/platform/gpu/kv_insert_gpu.h"
#include "spmla/platform/gpu/logits_rows_gpu.h"
#include "spmla/platform/gpu/lse2_to_lse_gpu.h"
#include "spmla/platform/gpu/mqa_logits_gathered_gpu.h"
#include "spmla/platform/gpu/mqa_logits_gpu.h"
#include "spmla/platform/gpu/o_group_proj_gpu.h"
#include "spmla/platform/gpu/prefill_rows_gpu.h"
#include "spmla/platform/gpu/q_absorb_gpu.h"
#include "spmla/platform/gpu/qnorm_rope_kv_insert_gpu.h"
#include "spmla/platform/gpu/ragged_index_gpu.h"
#include "spmla/platform/gpu/rms_norms_gpu.h"
#include "spmla/platform/gpu/slot_map_gpu.h"
#include "spmla/platform/gpu/sparse_decode_gpu.h"
#include "spmla/platform/gpu/sparse_prefill_gpu.h"
#include "spmla/platform/gpu/split_combine_gpu.h"
#include "spmla/platform/gpu/step_prologue_gpu.h"
#include "spmla/platform/gpu/step_windows_gpu.h"
#include "spmla/platform/gpu/swa_index_gpu.h"
#include "spmla/platform/gpu/table_write_gpu.h"
#include "spmla/platform/gpu/tile_sched_gpu.h"
#include "spmla/platform/gpu/token_map_gpu.h"
#include "spmla/platform/gpu/topk_gpu.h"
#include "spmla/platform/gpu/v_up_gpu.h"

/* Matrix instructions: CUDA, and the emulator's model of them. */
#if !defined(__OPENCL_C_VERSION__) && !defined(__HIP__)
#include "spmla/platform/gpu/mqa_logits_gathered_mma_gpu.h"
#include "spmla/platform/gpu/mqa_logits_gathered_wgmma_gpu.h"
#include "spmla/platform/gpu/mqa_logits_mma_gpu.h"
#include "spmla/platform/gpu/mqa_logits_wgmma_gpu.h"
#include "spmla/platform/gpu/o_group_proj_mma_gpu.h"
#include "spmla/platform/gpu/sparse_decode_mma_gpu.h"
#include "spmla/platform/gpu/sparse_decode_wgmma_gpu.h"
#endif

#endif
