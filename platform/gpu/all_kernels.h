/* SPDX-License-Identifier: Apache-2.0
 *
 * Includes every kernel file. With SPMLA_GPU_KERNELS defined these are the
 * kernels, without it only the lists of their parameters.
 */
#ifndef SPMLA_PLATFORM_GPU_ALL_KERNELS_H
#define SPMLA_PLATFORM_GPU_ALL_KERNELS_H

#include "spmla/platform/gpu/dialect/dialect.h"

#include "spmla/platform/gpu/attend/lse2_to_lse_kernel.h"
#include "spmla/platform/gpu/attend/sparse_decode_kernel.h"
#include "spmla/platform/gpu/attend/sparse_prefill_kernel.h"
#include "spmla/platform/gpu/attend/split_combine_kernel.h"
#include "spmla/platform/gpu/cache/indexer_k_gather_kernel.h"
#include "spmla/platform/gpu/cache/indexer_k_insert_kernel.h"
#include "spmla/platform/gpu/cache/kv_gather_kernel.h"
#include "spmla/platform/gpu/cache/kv_insert_kernel.h"
#include "spmla/platform/gpu/cache/qnorm_rope_kv_insert_kernel.h"
#include "spmla/platform/gpu/cache/rms_norms_kernel.h"
#include "spmla/platform/gpu/compress/compress_state_save_kernel.h"
#include "spmla/platform/gpu/compress/kv_compress_few_kernel.h"
#include "spmla/platform/gpu/compress/kv_compress_kernel.h"
#include "spmla/platform/gpu/project/inv_rope_quant_kernel.h"
#include "spmla/platform/gpu/project/o_group_proj_kernel.h"
#include "spmla/platform/gpu/project/q_absorb_kernel.h"
#include "spmla/platform/gpu/project/v_up_kernel.h"
#include "spmla/platform/gpu/select/c128a_index_kernel.h"
#include "spmla/platform/gpu/select/combine_index_kernel.h"
#include "spmla/platform/gpu/select/filter_prefill_indices_kernel.h"
#include "spmla/platform/gpu/select/index_map_kernel.h"
#include "spmla/platform/gpu/select/indexer_q_prep_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_gathered_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_kernel.h"
#include "spmla/platform/gpu/select/ragged_index_kernel.h"
#include "spmla/platform/gpu/select/swa_index_kernel.h"
#include "spmla/platform/gpu/select/topk_kernel.h"
#include "spmla/platform/gpu/step/indexer_schedule_kernel.h"
#include "spmla/platform/gpu/step/logits_rows_kernel.h"
#include "spmla/platform/gpu/step/prefill_rows_kernel.h"
#include "spmla/platform/gpu/step/slot_map_kernel.h"
#include "spmla/platform/gpu/step/step_prologue_kernel.h"
#include "spmla/platform/gpu/step/step_prologue_windows_kernel.h"
#include "spmla/platform/gpu/step/table_write_kernel.h"
#include "spmla/platform/gpu/step/tile_sched_fixed_kernel.h"
#include "spmla/platform/gpu/step/tile_sched_kernel.h"
#include "spmla/platform/gpu/step/token_map_kernel.h"

/* Kernels with the tile products of tile.h: for HIP, and for the emulator,
 * which models them. Level Zero has them in tile_kernels.c. */
#if !defined(__OPENCL_C_VERSION__) && !defined(__CUDACC__)
#include "spmla/platform/gpu/attend/sparse_decode_tile_kernel.h"
#include "spmla/platform/gpu/attend/sparse_prefill_tile_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_gathered_tile_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_tile_kernel.h"
#endif

/* Kernels with the matrix instructions of mma.h and wgmma.h: for CUDA, and for
 * the emulator, which models them. */
#if !defined(__OPENCL_C_VERSION__) && !defined(__HIP__)
#include "spmla/platform/gpu/attend/sparse_decode_bf16_wgmma_kernel.h"
#include "spmla/platform/gpu/attend/sparse_decode_few_kernel.h"
#include "spmla/platform/gpu/attend/sparse_decode_mma_kernel.h"
#include "spmla/platform/gpu/attend/sparse_decode_wgmma_kernel.h"
#include "spmla/platform/gpu/project/o_group_proj_bf16_wgmma_kernel.h"
#include "spmla/platform/gpu/project/o_group_proj_mma_kernel.h"
#include "spmla/platform/gpu/project/o_group_proj_wgmma_kernel.h"
#include "spmla/platform/gpu/project/q_absorb_mma_kernel.h"
#include "spmla/platform/gpu/project/q_absorb_wgmma_kernel.h"
#include "spmla/platform/gpu/project/v_up_mma_kernel.h"
#include "spmla/platform/gpu/project/v_up_wgmma_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_gathered_mma_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_gathered_wgmma_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_mma_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_wgmma_kernel.h"
#include "spmla/platform/gpu/select/topk_by_kernel.h"
#include "spmla/platform/gpu/step/step_prologue_fused_kernel.h"
#endif

#endif
