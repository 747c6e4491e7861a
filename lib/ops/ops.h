/* SPDX-License-Identifier: Apache-2.0
 *
 * Every operation alone. Its arguments are one const struct with the shape
 * beside each field. Pointers are device pointers of the context's backend.
 *
 * The call checks everything that the host can see. What only the device can
 * see (slots, pages, lengths) is checked there: a bad row is skipped and
 * reported in the sticky status (spmla_status_read).
 *
 * Each contract ends with the same lines. Alias: which buffers may overlap.
 * Order: whether it enqueues, and whether a graph may capture it. Exact: bit
 * for bit, or within a stated bound. Deterministic: what a row's bits depend
 * on. Errors: status codes. Source: the kernel that it reproduces.
 */
#ifndef SPMLA_OPS_OPS_H
#define SPMLA_OPS_OPS_H

#include "spmla/ops/c128a_index.h"
#include "spmla/ops/combine_index.h"
#include "spmla/ops/compress_state_save.h"
#include "spmla/ops/filter_prefill_indices.h"
#include "spmla/ops/index_map.h"
#include "spmla/ops/indexer_k_gather.h"
#include "spmla/ops/indexer_k_insert.h"
#include "spmla/ops/indexer_q_prep.h"
#include "spmla/ops/indexer_schedule.h"
#include "spmla/ops/inv_rope_quant.h"
#include "spmla/ops/kv_compress.h"
#include "spmla/ops/kv_gather.h"
#include "spmla/ops/kv_insert.h"
#include "spmla/ops/logits_rows.h"
#include "spmla/ops/lse2_to_lse.h"
#include "spmla/ops/mqa_logits.h"
#include "spmla/ops/mqa_logits_gathered.h"
#include "spmla/ops/o_group_proj.h"
#include "spmla/ops/prefill_rows.h"
#include "spmla/ops/q_absorb.h"
#include "spmla/ops/qnorm_rope_kv_insert.h"
#include "spmla/ops/ragged_index.h"
#include "spmla/ops/rms_norms.h"
#include "spmla/ops/slot_map.h"
#include "spmla/ops/sparse_decode.h"
#include "spmla/ops/sparse_prefill.h"
#include "spmla/ops/split_combine.h"
#include "spmla/ops/swa_index.h"
#include "spmla/ops/tile_sched.h"
#include "spmla/ops/token_map.h"
#include "spmla/ops/topk.h"
#include "spmla/ops/v_up.h"

#endif
