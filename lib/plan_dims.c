/* SPDX-License-Identifier: Apache-2.0
 *
 * From a plan's limits to its arena. Every number that a buffer's size depends
 * on is made here, once, as a dimension.
 */
#include "spmla/arena/arena_plan.h"
#include "spmla/internal/backend.h"
#include "spmla/internal/checked_math.h"
#include "spmla/internal/cpu_sizes.h"
#include "spmla/internal/gpu_sizes.h"
#include "spmla/internal/splits.h"
#include "spmla/ops/tile_sched.h"

static void
fill_dims(uint64_t *dim, const spmla_plan *plan, uint32_t *overflow)
{
	const spmla_config *c = &plan->config;
	const spmla_table_config *g = &c->groups[SPMLA_GROUP_MAIN];
	const uint32_t cpu = plan->device.kind == SPMLA_BACKEND_CPU;

	dim[SPMLA_I_DIM_ONE] = 1;
	dim[SPMLA_I_DIM_TOKENS] = plan->max_tokens;
	dim[SPMLA_I_DIM_TOKENS_PLUS_1] = (uint64_t)plan->max_tokens + 1;
	dim[SPMLA_I_DIM_REQUESTS] = plan->max_requests;
	dim[SPMLA_I_DIM_REQUESTS_PLUS_1] = (uint64_t)plan->max_requests + 1;
	dim[SPMLA_I_DIM_ROWS] = c->max_rows;
	dim[SPMLA_I_DIM_RING_ROWS] =
		g->source == SPMLA_TABLE_RING ? c->max_rows : 0;
	dim[SPMLA_I_DIM_COLUMNS] = plan->columns;
	dim[SPMLA_I_DIM_TOPK] = c->topk;
	dim[SPMLA_I_DIM_INDEX_HEADS] = c->index_heads;
	dim[SPMLA_I_DIM_INDEX_VALUES] =
		(uint64_t)c->index_heads * SPMLA_INDEX_DIM;
	dim[SPMLA_I_DIM_LOGITS] = plan->logits_elems;
	dim[SPMLA_I_DIM_RING_SLOTS] = c->ring_slots;
	dim[SPMLA_I_DIM_RECORD_BYTES] = plan->record_bytes;
	dim[SPMLA_I_DIM_STEP_DEVICE_BYTES] =
		sizeof(spmla_step_device) +
		(uint64_t)plan->max_requests * sizeof(spmla_request);
	dim[SPMLA_I_DIM_CONTEXT_BYTES] = sizeof(struct spmla_ctx);
	dim[SPMLA_I_DIM_BACKEND_BYTES] =
		cpu ? sizeof(spmla_i_cpu_state) : sizeof(spmla_i_gpu_state);
	dim[SPMLA_I_DIM_GRAPH_NODES] = cpu ? c->max_graph_nodes : 0;
	dim[SPMLA_I_DIM_QUEUE_ENTRIES] = cpu ? c->queue_entries : 0;
	/* Kernels have theirs on the chip. */
	dim[SPMLA_I_DIM_INDEX_SCRATCH] =
		cpu ? spmla_i_cpu_workers_bytes(
			      spmla_i_cpu_index_scratch_bytes(c->index_heads),
			      c->cpu_workers)
		    : 0;
	dim[SPMLA_I_DIM_ATTEND_SCRATCH] =
		cpu ? spmla_i_cpu_workers_bytes(
			      spmla_i_cpu_attend_scratch_bytes(c->heads),
			      c->cpu_workers)
		    : 0;
	dim[SPMLA_I_DIM_CACHE_PAGES] =
		spmla_i_mul(c->cache_layers, g->pool_pages, overflow);
	dim[SPMLA_I_DIM_KV_PAGE_BYTES] =
		spmla_layout_page_bytes(c->kv_layout, g->page_tokens);
	dim[SPMLA_I_DIM_INDEX_PAGE_BYTES] =
		spmla_layout_page_bytes(SPMLA_LAYOUT_INDEX_FP8, g->page_tokens);
	dim[SPMLA_I_DIM_PREFILL_TOKENS] = c->max_prefill_tokens;
	dim[SPMLA_I_DIM_PREFILL_REQUESTS_PLUS_1] =
		c->max_prefill_tokens ? (uint64_t)plan->max_requests + 1 : 0;
	dim[SPMLA_I_DIM_WORKSPACE] = c->prefill_workspace_tokens;
	dim[SPMLA_I_DIM_INDEX_DIM] = SPMLA_INDEX_DIM;
	dim[SPMLA_I_DIM_MLA_DIM] = SPMLA_MLA_DIM;
}

/* What decode steps in parts take. */
static void
fill_splits(uint64_t *dim, const spmla_plan *plan)
{
	const spmla_config *c = &plan->config;
	const uint32_t tokens = spmla_i_split_tokens(plan);
	const uint32_t parts = tokens ? spmla_i_split_parts(plan) : 0;

	dim[SPMLA_I_DIM_DECODE_PARTS] = parts;
	dim[SPMLA_I_DIM_TILE_ROW] = SPMLA_TILE_ROW_ELEMS;
	dim[SPMLA_I_DIM_SPLIT_TOKENS_PLUS_1] =
		tokens ? (uint64_t)tokens + 1 : 0;
	dim[SPMLA_I_DIM_SPLIT_ROWS] = tokens ? (uint64_t)tokens + parts : 0;
	dim[SPMLA_I_DIM_HEADS] = c->heads;
	dim[SPMLA_I_DIM_HEAD_VALUES] = (uint64_t)c->heads * SPMLA_MLA_LATENT;
}

spmla_status
spmla_i_plan_arena(spmla_plan *plan, uint32_t overflow, spmla_diag *diag)
{
	uint64_t dim[SPMLA_I_DIM_COUNT];

	fill_dims(dim, plan, &overflow);
	fill_splits(dim, plan);
	if (overflow)
		return spmla_i_fail(diag, SPMLA_E_OVERFLOW, "LOGITS", 0,
				    SPMLA_WANT_NOTHING, 0);
	return spmla_i_arena_plan(
		plan, dim, plan->config.flags & SPMLA_CONFIG_APART, diag);
}
