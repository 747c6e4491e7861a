/* SPDX-License-Identifier: Apache-2.0
 *
 * Replay against eager calls, bit for bit. The same step runs a second time:
 * the metadata comes from three numbers per request that the host computed,
 * each operation is called alone, in buffers of its own, and on copies of the
 * caches that were made before the replay. So a replay must also have written
 * every byte of the caches that the eager calls write, and no other.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "examples/decode_v32.h"
#include "examples/device.h"

#include "spmla/decode_parts.h"

static void
open_outputs(eager_check *e, const spmla_plan *plan)
{
	const spmla_config *c = &plan->config;
	const uint64_t t = plan->max_tokens;

	e->req_id = keep(t * sizeof(int32_t));
	e->token_row = keep(t * sizeof(int32_t));
	e->positions = keep(t * sizeof(int32_t));
	e->context_lens = keep(t * sizeof(int32_t));
	e->slot_mapping = keep(t * sizeof(int64_t));
	e->row_starts = keep((t + 1) * sizeof(int64_t));
	e->index_q = keep(t * c->index_heads * SPMLA_INDEX_DIM);
	e->index_weights = keep(t * c->index_heads * sizeof(float));
	e->logits = keep(plan->logits_elems * sizeof(float));
	e->topk_indices = keep(t * c->topk * sizeof(int32_t));
	e->topk_lens = keep(t * sizeof(int32_t));
	e->topk_slots = keep(t * c->topk * sizeof(int32_t));
	e->out = keep(t * c->heads * SPMLA_MLA_LATENT * 2);
	e->lse = keep(t * c->heads * sizeof(float));
}

static spmla_sparse_decode_args
decode_args(const eager_check *e, uint32_t layer, uint32_t tokens)
{
	const spmla_config *c = &e->model->plan->config;
	const spmla_v32_layer *l = &e->model->layer[layer].args;
	spmla_sparse_decode_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = tokens;
	a.heads = c->heads;
	a.topk = c->topk;
	a.empty_lse = l->empty_lse;
	a.softmax_scale = c->softmax_scale;
	a.q = l->q;
	a.q_token_stride_elems = l->q_token_stride_elems;
	a.q_head_stride_elems = l->q_head_stride_elems;
	a.slots = e->topk_slots;
	a.slots_stride_elems = c->topk;
	a.topk_lens = e->topk_lens;
	a.out = e->out;
	a.out_token_stride_elems = l->out_token_stride_elems;
	a.out_head_stride_elems = l->out_head_stride_elems;
	a.lse = e->lse;
	a.lse_token_stride_elems = l->lse_token_stride_elems;
	a.lse_head_stride_elems = l->lse_head_stride_elems;
	a.cache = e->kv[layer];
	/* The layers' workspace is clean between calls. */
	a.workspace = spmla_view(e->model->ctx, SPMLA_BUF_DECODE_WORKSPACE,
				 &a.workspace_bytes);
	return a;
}

/* On a GPU batch-invariant steps have fixed splits, or one launch. A call alone
 * has the same bits if it has the same, and a workspace as they have. */
static void
open_parts(eager_check *e)
{
	const spmla_sparse_decode_args a =
		decode_args(e, 0, e->model->plan->max_tokens);
	spmla_decode_parts parts = SPMLA_DECODE_PARTS_INIT;

	if (spmla_decode_parts_choose(e->model->ctx, &a, &parts) == SPMLA_OK)
		e->parts_bytes = parts.workspace_bytes;
	if (e->parts_bytes)
		e->parts = keep(e->parts_bytes);
}

static uint64_t
cache_bytes(const spmla_cache *cache)
{
	return cache->pages * cache->page_stride_bytes;
}

void
eager_open(eager_check *e, const model *m, const batch *b)
{
	const spmla_plan *plan = m->plan;
	uint32_t l;

	memset(e, 0, sizeof *e);
	e->model = m;
	e->batch = b;
	e->query_start_loc =
		keep((plan->max_requests + 1ull) * sizeof(int32_t));
	e->seq_lens = keep(plan->max_requests * sizeof(int32_t));
	e->req_row = keep(plan->max_requests * sizeof(int32_t));
	open_outputs(e, plan);
	e->kv = keep(m->layers * sizeof *e->kv);
	e->index = keep(m->layers * sizeof *e->index);
	for (l = 0; l < m->layers; l++) {
		e->kv[l] = m->layer[l].args.kv;
		e->index[l] = m->layer[l].args.index;
		e->kv[l].base = keep_own(cache_bytes(&e->kv[l]));
		e->index[l].base = keep_own(cache_bytes(&e->index[l]));
		if (cache_bytes(&e->kv[l]) > e->pulled_bytes)
			e->pulled_bytes = cache_bytes(&e->kv[l]);
	}
	/* No buffer that is compared is larger than a cache or all of
	 * DEVICE. */
	if (e->pulled_bytes < plan->region_bytes[SPMLA_MEMORY_DEVICE])
		e->pulled_bytes = plan->region_bytes[SPMLA_MEMORY_DEVICE];
	for (l = 0; l < 2 && device_native(); l++)
		e->pulled[l] = keep(e->pulled_bytes);
	open_parts(e);
}

void
eager_before(eager_check *e)
{
	const model *m = e->model;
	uint32_t l;

	for (l = 0; l < m->layers; l++) {
		device_copy(e->kv[l].base, m->layer[l].args.kv.base,
			    cache_bytes(&e->kv[l]));
		device_copy(e->index[l].base, m->layer[l].args.index.base,
			    cache_bytes(&e->index[l]));
	}
}

static spmla_status
run_token_map(eager_check *e)
{
	const spmla_step *step = &e->batch->step;
	spmla_token_map_args a;
	uint32_t b;

	e->query_start_loc[0] = 0;
	for (b = 0; b < step->request_count; b++) {
		const spmla_request *q = &step->requests[b];

		e->query_start_loc[b + 1] =
			e->query_start_loc[b] + (int32_t)q->query_tokens;
		e->seq_lens[b] = (int32_t)q->seq_len_tokens;
		e->req_row[b] = (int32_t)q->row;
	}
	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.requests = step->request_count;
	a.tokens = e->shape.tokens;
	a.query_start_loc = e->query_start_loc;
	a.seq_lens = e->seq_lens;
	a.req_row = e->req_row;
	a.req_id_per_token = e->req_id;
	a.token_row = e->token_row;
	a.positions = e->positions;
	a.context_lens = e->context_lens;
	return spmla_token_map(e->model->ctx, &a, device_stream());
}

static spmla_status
run_slot_map(eager_check *e)
{
	const spmla_plan *plan = e->model->plan;
	const batch *b = e->batch;
	spmla_slot_map_args a;
	spmla_logits_rows_args r;
	spmla_status s;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = e->shape.tokens;
	a.rows = b->rows;
	a.columns = b->tables[0].columns;
	a.page_tokens = b->tables[0].page_tokens;
	a.pool_pages = plan->config.groups[SPMLA_GROUP_MAIN].pool_pages;
	a.table_stride_elems = b->tables[0].columns;
	a.token_row = e->token_row;
	a.positions = e->positions;
	a.block_table = b->tables[0].pages;
	a.table_cols = b->tables[0].cols;
	a.context_lens = e->context_lens;
	a.slot_mapping = e->slot_mapping;
	s = spmla_slot_map(e->model->ctx, &a, device_stream());
	if (s != SPMLA_OK)
		return s;
	memset(&r, 0, sizeof r);
	r.struct_bytes = (uint32_t)sizeof r;
	r.tokens = e->shape.tokens;
	r.capacity_elems = plan->logits_elems;
	r.token_row = e->token_row;
	r.context_lens = e->context_lens;
	r.row_starts = e->row_starts;
	return spmla_logits_rows(e->model->ctx, &r, device_stream());
}

static spmla_status
run_insert(eager_check *e, uint32_t layer)
{
	const model *m = e->model;
	const layer_tensors *t = &m->layer[layer];
	spmla_kv_insert_args kv = model_kv_insert(m->plan);
	spmla_indexer_k_insert_args k = model_index_k_insert(m);
	spmla_status s;

	kv.tokens = e->shape.tokens;
	kv.kv_c = t->kv_c;
	kv.k_pe = t->k_pe;
	kv.slot_mapping = e->slot_mapping;
	kv.cache = e->kv[layer];
	s = spmla_kv_insert(m->ctx, &kv, device_stream());
	if (s != SPMLA_OK)
		return s;
	k.tokens = e->shape.tokens;
	k.k = t->index_k;
	k.slot_mapping = e->slot_mapping;
	k.positions = e->positions;
	k.cache = e->index[layer];
	return spmla_indexer_k_insert(m->ctx, &k, device_stream());
}

static spmla_status
run_q_prep(eager_check *e, uint32_t layer)
{
	const spmla_v32_layer *l = &e->model->layer[layer].args;
	const uint32_t heads = e->model->plan->config.index_heads;
	spmla_indexer_q_prep_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = e->shape.tokens;
	a.heads = heads;
	a.rope_style = l->rope_style;
	a.scale_floor = l->index_q_scale_floor;
	a.weights_dtype = l->index_weights_dtype;
	a.cos_sin_rows = l->cos_sin_rows;
	a.softmax_scale = 0.08838834764831845f; /* 128^-0.5 */
	a.head_scale = 1.0f / sqrtf((float)heads);
	a.q = l->index_q;
	a.q_token_stride_elems = l->index_q_token_stride_elems;
	a.q_head_stride_elems = l->index_q_head_stride_elems;
	a.weights = l->index_weights;
	a.weights_stride_elems = l->index_weights_stride_elems;
	a.positions = e->positions;
	a.cos_sin = l->cos_sin;
	a.q_out = e->index_q;
	a.weights_out = e->index_weights;
	return spmla_indexer_q_prep(e->model->ctx, &a, device_stream());
}

static spmla_status
run_select(eager_check *e, uint32_t layer)
{
	const spmla_plan *plan = e->model->plan;
	const batch *b = e->batch;
	spmla_mqa_logits_args a;
	spmla_topk_args k;
	spmla_status s;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = e->shape.tokens;
	a.heads = plan->config.index_heads;
	a.rows = b->rows;
	a.columns = b->tables[0].columns;
	a.table_stride_elems = b->tables[0].columns;
	a.q = e->index_q;
	a.weights = e->index_weights;
	a.token_row = e->token_row;
	a.context_lens = e->context_lens;
	a.row_starts = e->row_starts;
	a.block_table = b->tables[0].pages;
	a.table_cols = b->tables[0].cols;
	a.logits = e->logits;
	a.logits_elems = plan->logits_elems;
	a.cache = e->index[layer];
	s = spmla_mqa_logits(e->model->ctx, &a, device_stream());
	if (s != SPMLA_OK)
		return s;
	memset(&k, 0, sizeof k);
	k.struct_bytes = (uint32_t)sizeof k;
	k.rows = e->shape.tokens;
	k.k = plan->config.topk;
	k.logits = e->logits;
	k.logits_elems = plan->logits_elems;
	k.row_starts = e->row_starts;
	k.context_lens = e->context_lens;
	k.indices = e->topk_indices;
	k.indices_stride_elems = k.k;
	k.lens = e->topk_lens;
	return spmla_topk(e->model->ctx, &k, device_stream());
}

static spmla_status
run_index_map(eager_check *e)
{
	const spmla_config *c = &e->model->plan->config;
	const batch *b = e->batch;
	spmla_index_map_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = e->shape.tokens;
	a.k = c->topk;
	a.rows = b->rows;
	a.columns = b->tables[0].columns;
	a.table_stride_elems = b->tables[0].columns;
	a.page_tokens = b->tables[0].page_tokens;
	a.pool_pages = c->groups[SPMLA_GROUP_MAIN].pool_pages;
	a.token_row = e->token_row;
	a.block_table = b->tables[0].pages;
	a.table_cols = b->tables[0].cols;
	a.indices = e->topk_indices;
	a.indices_stride_elems = c->topk;
	a.lens = e->topk_lens;
	a.slots = e->topk_slots;
	a.slots_stride_elems = c->topk;
	return spmla_index_map(e->model->ctx, &a, device_stream());
}

static spmla_status
run_attend(eager_check *e, uint32_t layer)
{
	const spmla_sparse_decode_args a =
		decode_args(e, layer, e->shape.tokens);
	const spmla_status s = run_index_map(e);

	if (s != SPMLA_OK)
		return s;
	return spmla_sparse_decode_in_parts(e->model->ctx, &a, e->parts,
					    e->parts_bytes, device_stream());
}

spmla_status
eager_layer(eager_check *e, uint32_t layer)
{
	spmla_status s = run_insert(e, layer);

	if (s == SPMLA_OK)
		s = run_q_prep(e, layer);
	if (s == SPMLA_OK)
		s = run_select(e, layer);
	return s == SPMLA_OK ? run_attend(e, layer) : s;
}

spmla_status
eager_metadata(eager_check *e)
{
	const spmla_status s = run_token_map(e);

	return s == SPMLA_OK ? run_slot_map(e) : s;
}
