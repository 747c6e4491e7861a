/* SPDX-License-Identifier: Apache-2.0
 *
 * From a plan's limits to its arena. Each number that a buffer's size depends
 * on is computed here, once, as a dimension.
 */
#include "spmla/arena/arena_plan.h"
#include "spmla/internal/backend.h"
#include "spmla/internal/checked_math.h"
#include "spmla/internal/combine.h"
#include "spmla/internal/config.h"
#include "spmla/internal/cpu_sizes.h"
#include "spmla/internal/few.h"
#include "spmla/internal/gpu_sizes.h"
#include "spmla/internal/splits.h"
#include "spmla/ops/tile_sched.h"

#include <string.h>

/* In a step of at most this many tokens, several blocks make one key of ratio
 * 128. A longer step has enough keys to fill a GPU with one block each. It
 * stands in lib because the plan reserves the memory. Example: a largest bucket
 * of 256 tokens gets room for 256; one of 2048 gets room for 1024, and its full
 * step takes one block a key. */
enum { SPMLA_I_SPLIT_KEYS = 1024 };

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
	dim[SPMLA_I_DIM_INDEX_Q_BYTES] =
		(uint64_t)c->index_heads * spmla_i_index_bytes(c);
	dim[SPMLA_I_DIM_INDEX_Q_SCALES] =
		c->index_layout == SPMLA_LAYOUT_INDEX_MXFP4 ? c->index_heads
							    : 0;
	dim[SPMLA_I_DIM_LOGITS] = plan->logits_elems;
	dim[SPMLA_I_DIM_RING_SLOTS] = c->ring_slots;
	dim[SPMLA_I_DIM_RECORD_BYTES] = plan->record_bytes;
	dim[SPMLA_I_DIM_STEP_DEVICE_BYTES] =
		sizeof(spmla_step_device) +
		(uint64_t)plan->max_requests * sizeof(spmla_request);
	dim[SPMLA_I_DIM_CONTEXT_BYTES] = sizeof(struct spmla_ctx);
	dim[SPMLA_I_DIM_BACKEND_BYTES] =
		cpu ? sizeof(spmla_i_cpu_state)
		: plan->device.kind == SPMLA_BACKEND_LEVEL_ZERO
			? sizeof(spmla_i_ze_state)
			: sizeof(spmla_i_gpu_state);
	dim[SPMLA_I_DIM_GRAPH_NODES] = cpu ? c->max_graph_nodes : 0;
	dim[SPMLA_I_DIM_QUEUE_ENTRIES] = cpu ? c->queue_entries : 0;
	/* Kernels have their scratch in shared memory. */
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
	dim[SPMLA_I_DIM_INDEX_PAGES] = dim[SPMLA_I_DIM_CACHE_PAGES];
	dim[SPMLA_I_DIM_INDEX_PAGE_BYTES] =
		spmla_layout_page_bytes(c->index_layout, g->page_tokens);
	dim[SPMLA_I_DIM_PIECE_TOKENS] = c->max_prefill_tokens;
	dim[SPMLA_I_DIM_PREFILL_TOKENS] = c->max_prefill_tokens;
	dim[SPMLA_I_DIM_PREFILL_REQUESTS_PLUS_1] =
		c->max_prefill_tokens ? (uint64_t)plan->max_requests + 1 : 0;
	dim[SPMLA_I_DIM_WORKSPACE] = c->prefill_workspace_tokens;
	dim[SPMLA_I_DIM_INDEX_K_BYTES] = spmla_i_index_bytes(c);
	dim[SPMLA_I_DIM_MLA_DIM] = SPMLA_MLA_DIM;
}

/* The pages and page bytes of a planned pool. */
static void
fill_pool(uint64_t *dim, const spmla_config *c, uint32_t layers, uint32_t group,
	  uint32_t layout, uint32_t *overflow)
{
	const spmla_table_config *g = &c->groups[group];

	dim[0] = spmla_i_mul(layers, g->pool_pages, overflow);
	dim[1] = spmla_layout_page_bytes(
		layout, g->page_tokens / spmla_i_group_ratio(c, group));
}

/* The dimensions of V4. */
static void
fill_v4(uint64_t *dim, const spmla_plan *plan, uint32_t *overflow)
{
	const spmla_config *c = &plan->config;
	uint64_t decode = 0;
	uint32_t i;

	for (i = 1; i < SPMLA_V4_GROUPS; i++) {
		uint64_t *d = &dim[SPMLA_I_DIM_ROWS_C4A + 2 * (i - 1)];

		d[0] = c->groups[i].source == SPMLA_TABLE_RING ? c->max_rows
							       : 0;
		d[1] = plan->group_columns[i];
	}
	/* Nothing is gathered: keys are read where they are. */
	dim[SPMLA_I_DIM_PREFILL_TOKENS] = 0;
	dim[SPMLA_I_DIM_PREFILL_REQUESTS_PLUS_1] = 0;
	dim[SPMLA_I_DIM_WORKSPACE] = 0;
	for (i = 0; i < c->bucket_count; i++)
		decode = c->buckets[i].tokens > decode ? c->buckets[i].tokens
						       : decode;
	dim[SPMLA_I_DIM_V4_TOKENS] = plan->max_tokens;
	dim[SPMLA_I_DIM_INDEX_SLOTS] =
		plan->group_table[SPMLA_GROUP_INDEX] == SPMLA_GROUP_C4A
			? 0
			: plan->max_tokens;
	dim[SPMLA_I_DIM_WINDOW] = c->window_tokens;
	dim[SPMLA_I_DIM_C128A_TOKENS] = spmla_i_piece_tokens(c);
	dim[SPMLA_I_DIM_C128A_WIDTH] = spmla_i_c128a_width(c);
	if (plan->device.kind != SPMLA_BACKEND_CPU)
		dim[SPMLA_I_DIM_SPLIT_KEYS] = decode < SPMLA_I_SPLIT_KEYS
						      ? decode
						      : SPMLA_I_SPLIT_KEYS;
	dim[SPMLA_I_DIM_KEY_VALUES] = SPMLA_V4_DIM;
	if (spmla_i_is_hopper(&plan->device))
		dim[SPMLA_I_DIM_STEP_UNITS] = spmla_i_unit_words(decode);
	dim[SPMLA_I_DIM_OUTPUT_TOKENS] =
		spmla_i_align(spmla_i_piece_tokens(c), 4, overflow);
	dim[SPMLA_I_DIM_OUTPUT_BYTES] =
		spmla_i_output_bytes(c, c->output_quant);
	dim[SPMLA_I_DIM_OUTPUT_SCALES] =
		(uint64_t)c->heads * (SPMLA_V4_DIM / SPMLA_MLA_SCALE_GROUP);
	fill_pool(&dim[SPMLA_I_DIM_INDEX_PAGES], c, c->c4a_layers,
		  SPMLA_GROUP_INDEX, c->index_layout, overflow);
	fill_pool(&dim[SPMLA_I_DIM_C4A_PAGES], c, c->c4a_layers,
		  SPMLA_GROUP_C4A, c->kv_layout, overflow);
	fill_pool(&dim[SPMLA_I_DIM_C128A_PAGES], c, c->c128a_layers,
		  SPMLA_GROUP_C128A, c->kv_layout, overflow);
	fill_pool(&dim[SPMLA_I_DIM_STATE_C4A_PAGES], c, c->c4a_layers,
		  SPMLA_GROUP_STATE_C4A, SPMLA_LAYOUT_STATE_1024, overflow);
	fill_pool(&dim[SPMLA_I_DIM_STATE_INDEX_PAGES], c, c->c4a_layers,
		  SPMLA_GROUP_STATE_INDEX, SPMLA_LAYOUT_STATE_256, overflow);
	fill_pool(&dim[SPMLA_I_DIM_STATE_C128A_PAGES], c, c->c128a_layers,
		  SPMLA_GROUP_STATE_C128A, SPMLA_LAYOUT_STATE_512, overflow);
}

/* The dimensions of fixed splits. */
static void
fill_fixed(uint64_t *dim, const spmla_plan *plan)
{
	const uint64_t tokens = spmla_i_fixed_tokens(plan);
	const uint64_t parts =
		tokens * spmla_i_fixed_splits(plan, spmla_i_cut_keys(plan));

	dim[SPMLA_I_DIM_DECODE_PARTS] = parts;
	dim[SPMLA_I_DIM_SPLIT_TOKENS_PLUS_1] = parts ? tokens + 1 : 0;
	dim[SPMLA_I_DIM_SPLIT_ROWS] = parts;
}

/* The dimensions of decode steps in parts. */
static void
fill_splits(uint64_t *dim, const spmla_plan *plan)
{
	const spmla_config *c = &plan->config;
	const uint32_t tokens = spmla_i_split_tokens(plan);
	const uint32_t parts = tokens ? spmla_i_split_parts(plan) : 0;

	dim[SPMLA_I_DIM_TILE_ROW] = SPMLA_TILE_ROW_ELEMS;
	dim[SPMLA_I_DIM_HEADS] = c->heads;
	dim[SPMLA_I_DIM_HEAD_VALUES] = (uint64_t)c->heads * SPMLA_MLA_LATENT;
	if (c->flags & SPMLA_CONFIG_BATCH_INVARIANT) {
		fill_fixed(dim, plan);
		return;
	}
	dim[SPMLA_I_DIM_DECODE_PARTS] = parts;
	dim[SPMLA_I_DIM_SPLIT_TOKENS_PLUS_1] =
		tokens ? (uint64_t)tokens + 1 : 0;
	if (spmla_i_is_v4(c)) {
		dim[SPMLA_I_DIM_C128A_PARTS] = parts;
		dim[SPMLA_I_DIM_C128A_SPLIT_TOKENS_PLUS_1] =
			dim[SPMLA_I_DIM_SPLIT_TOKENS_PLUS_1];
	}
	dim[SPMLA_I_DIM_SPLIT_ROWS] = tokens ? (uint64_t)tokens + parts : 0;
}

/* The dimensions of lists of keys, in rows or ragged. */
static void
fill_lists(uint64_t *dim, const spmla_plan *plan)
{
	const spmla_config *c = &plan->config;
	const uint64_t piece = spmla_i_piece_tokens(c);
	const uint32_t v4 = spmla_i_is_v4(c);

	dim[SPMLA_I_DIM_C4A_SWA_TOKENS] = v4 ? piece : 0;
	if (!(plan->config.flags & SPMLA_CONFIG_RAGGED)) {
		dim[SPMLA_I_DIM_SLOTS_TOKENS] = piece;
		dim[SPMLA_I_DIM_C4A_SLOTS_TOKENS] = v4 ? piece : 0;
		return;
	}
	dim[SPMLA_I_DIM_RAGGED_TOKENS] = piece;
	dim[SPMLA_I_DIM_RAGGED_TOKENS_PLUS_1] = piece + 1;
	if (v4) {
		dim[SPMLA_I_DIM_RAGGED_V4_TOKENS] = piece;
		dim[SPMLA_I_DIM_RAGGED_V4_TOKENS_PLUS_1] = piece + 1;
		dim[SPMLA_I_DIM_RAGGED_SWA_TOKENS] = plan->max_tokens;
		dim[SPMLA_I_DIM_RAGGED_SWA_TOKENS_PLUS_1] =
			(uint64_t)plan->max_tokens + 1;
	}
	dim[SPMLA_I_DIM_SCHEDULE_ROWS] = (uint64_t)plan->device.sm_count + 1;
	dim[SPMLA_I_DIM_SCHEDULE_ROW] = 2;
}

spmla_status
spmla_i_lists_check(const spmla_config *c, spmla_diag *diag)
{
	uint64_t width = c->topk;

	if (!(c->flags & SPMLA_CONFIG_RAGGED))
		return SPMLA_OK;
	if (spmla_i_is_v4(c) && width < spmla_i_c128a_width(c))
		width = spmla_i_c128a_width(c);
	const spmla_i_check checks[] = {
		{"tokens of a piece (config.flags has RAGGED)",
		 spmla_i_piece_tokens(c), SPMLA_WANT_AT_MOST,
		 INT32_MAX / width},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

/* The most workspace words of a step of few tokens that is decoded in one
 * launch, for this many keys. A step's shape may have fewer tokens than its
 * bucket, so every number of tokens is tried. */
static uint64_t
few_words(const spmla_plan *plan, uint64_t keys)
{
	const spmla_config *c = &plan->config;
	uint64_t most = 0, words;
	uint32_t t, way;

	for (t = 1; t <= plan->max_tokens && t <= plan->device.sm_count; t++) {
		way = spmla_i_few_choose(&plan->device, c->kv_layout, t,
					 c->heads, keys);
		if (way == SPMLA_I_FEW_COUNT)
			break;
		words = spmla_i_few_words(way, t, c->heads);
		most = words > most ? words : most;
	}
	return most;
}

/* The same with the batch-invariant flag, for the largest bucket. */
static uint64_t
always_words(const spmla_plan *plan)
{
	const spmla_config *c = &plan->config;
	const uint32_t way = spmla_i_few_always(&plan->device, c->kv_layout,
						c->heads, c->topk);

	return way == SPMLA_I_FEW_COUNT
		       ? 0
		       : spmla_i_few_words(way, spmla_i_fixed_tokens(plan),
					   c->heads);
}

/* The workspace of decodes in one launch. */
static void
fill_few(uint64_t *dim, const spmla_plan *plan)
{
	const spmla_config *c = &plan->config;
	const uint64_t v4 = spmla_i_is_v4(c) ? c->window_tokens : 0;
	const uint64_t keys[3] = {v4, v4 + c->topk,
				  v4 ? v4 + spmla_i_c128a_width(c) : c->topk};
	uint64_t *to = &dim[SPMLA_I_DIM_DECODE_WORKSPACE];
	uint32_t i;

	if (c->flags & SPMLA_CONFIG_BATCH_INVARIANT) {
		*to = always_words(plan);
		return;
	}
	for (i = !v4; i < 3; i++) {
		const uint64_t words = few_words(plan, keys[i]);

		*to = words > *to ? words : *to;
	}
}

/* The workspace words with which parts combine their splits. */
static void
fill_combine(uint64_t *dim, const spmla_plan *plan)
{
	const uint32_t fixed =
		dim[SPMLA_I_DIM_SPLIT_ROWS] ? spmla_i_fixed_tokens(plan) : 0;
	const uint32_t tokens =
		plan->config.flags & SPMLA_CONFIG_BATCH_INVARIANT
			? fixed
			: spmla_i_split_tokens(plan);
	const uint64_t words =
		spmla_i_combine_words(tokens, plan->config.heads);
	uint64_t *to = &dim[SPMLA_I_DIM_DECODE_WORKSPACE];

	if (spmla_i_can_combine(&plan->device) && words > *to)
		*to = words;
}

spmla_status
spmla_i_plan_arena(spmla_plan *plan, uint32_t overflow, spmla_diag *diag)
{
	uint64_t dim[SPMLA_I_DIM_COUNT];

	memset(dim, 0, sizeof dim);
	fill_dims(dim, plan, &overflow);
	if (spmla_i_is_v4(&plan->config))
		fill_v4(dim, plan, &overflow);
	fill_splits(dim, plan);
	fill_lists(dim, plan);
	fill_few(dim, plan);
	fill_combine(dim, plan);
	if (overflow)
		return spmla_i_fail(diag, SPMLA_E_OVERFLOW, "LOGITS", 0,
				    SPMLA_WANT_NOTHING, 0);
	return spmla_i_arena_plan(
		plan, dim, plan->config.flags & SPMLA_CONFIG_APART, diag);
}
