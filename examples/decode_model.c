/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for the V3.2 model around the attention: its tensors are values of
 * decode_values.c.
 */
#include <math.h>
#include <string.h>

#include "examples/decode_v32.h"
#include "examples/device.h"

#define NORM_EPS 1e-6f

uint32_t
model_width(const model *m, tensor kind)
{
	const spmla_config *c = &m->plan->config;

	switch (kind) {
	case TENSOR_Q:
		return c->heads * SPMLA_MLA_DIM;
	case TENSOR_KV_C:
		return SPMLA_MLA_LATENT;
	case TENSOR_K_PE:
		return SPMLA_MLA_ROPE;
	case TENSOR_INDEX_K:
		return SPMLA_INDEX_DIM;
	case TENSOR_INDEX_Q:
		return c->index_heads * SPMLA_INDEX_DIM;
	case TENSOR_INDEX_WEIGHTS:
		return c->index_heads;
	}
	return 0;
}

void
model_values(const model *m, uint32_t layer, tensor kind, token of,
	     uint16_t *out)
{
	values_bf16(values_stream(m->seed, layer, kind, of),
		    model_width(m, kind), out);
}

static void
open_layer(const model *m, layer_tensors *l)
{
	const spmla_config *c = &m->plan->config;
	const uint64_t t = m->plan->max_tokens;

	l->q = keep(t * c->heads * SPMLA_MLA_DIM * 2);
	l->kv_c = keep(t * SPMLA_MLA_LATENT * 2);
	l->k_pe = keep(t * SPMLA_MLA_ROPE * 2);
	l->index_k = keep(t * SPMLA_INDEX_DIM * 2);
	l->index_q = keep(t * c->index_heads * SPMLA_INDEX_DIM * 2);
	l->index_weights = keep(t * c->index_heads * 2);
	l->out = keep(t * c->heads * SPMLA_MLA_LATENT * 2);
	l->lse = keep(t * c->heads * sizeof(float));
	l->topk_indices = keep(t * c->topk * sizeof(int32_t));
	l->topk_lens = keep(t * sizeof(int32_t));
}

static void
open_constants(model *m)
{
	const uint32_t positions = m->plan->config.max_context_tokens;
	double turn[32];
	uint32_t i, p;

	m->norm_weight = keep(SPMLA_INDEX_DIM * sizeof(float));
	m->norm_bias = keep(SPMLA_INDEX_DIM * sizeof(float));
	m->cos_sin =
		keep((uint64_t)positions * SPMLA_INDEX_ROPE * sizeof(float));
	for (i = 0; i < SPMLA_INDEX_DIM; i++) {
		m->norm_weight[i] = 1 + 0.25f * sinf((float)(3 * i));
		m->norm_bias[i] = 0.125f * cosf((float)(5 * i));
	}
	for (i = 0; i < 32; i++)
		turn[i] = pow(10000, -(double)i / 32);
	for (p = 0; p < positions; p++)
		values_cos_sin(turn, p,
			       m->cos_sin + (uint64_t)p * SPMLA_INDEX_ROPE);
}

void
model_open(model *m, const spmla_plan *plan, uint32_t layers, uint64_t seed)
{
	uint32_t l;

	memset(m, 0, sizeof *m);
	m->plan = plan;
	m->layers = layers;
	m->seed = seed;
	m->layer = keep(layers * sizeof *m->layer);
	for (l = 0; l < layers; l++)
		open_layer(m, &m->layer[l]);
	open_constants(m);
	m->chunk_kv_c = keep(INSERT_TOKENS * SPMLA_MLA_LATENT * 2);
	m->chunk_k_pe = keep(INSERT_TOKENS * SPMLA_MLA_ROPE * 2);
	m->chunk_index_k = keep(INSERT_TOKENS * SPMLA_INDEX_DIM * 2);
	m->chunk_slots = keep(INSERT_TOKENS * sizeof(int64_t));
	m->chunk_positions = keep(INSERT_TOKENS * sizeof(int32_t));
}

/* The addresses that a capture contains; they never change. */
static spmla_status
bind_layer(model *m, uint32_t l)
{
	layer_tensors *t = &m->layer[l];
	spmla_v32_layer *a = &t->args;
	const spmla_status s = spmla_v32_layer_preset(m->ctx, l, a);

	a->rope_style = SPMLA_ROPE_NEOX;
	a->cos_sin_rows = m->plan->config.max_context_tokens;
	a->cos_sin = m->cos_sin;
	a->index_norm_weight = m->norm_weight;
	a->index_norm_bias = m->norm_bias;
	a->kv_c = t->kv_c;
	a->k_pe = t->k_pe;
	a->index_k = t->index_k;
	a->index_q = t->index_q;
	a->index_weights = t->index_weights;
	a->index_q_scale_floor = SPMLA_Q_SCALE_FUSED;
	a->topk_indices = t->topk_indices;
	a->topk_lens = t->topk_lens;
	a->q = t->q;
	a->out = t->out;
	a->lse = t->lse;
	a->empty_lse = SPMLA_EMPTY_LSE_PLUS_INF;
	return s;
}

spmla_status
model_bind(model *m, spmla_ctx *ctx)
{
	spmla_status s = SPMLA_OK;
	uint32_t l;

	m->ctx = ctx;
	for (l = 0; l < m->layers && s == SPMLA_OK; l++)
		s = bind_layer(m, l);
	return s;
}

static void
fill_tensor(const model *m, uint32_t layer, tensor kind, const token *tokens,
	    uint32_t count, uint16_t *out)
{
	const uint32_t width = model_width(m, kind);
	uint32_t t;

	for (t = 0; t < count; t++)
		model_values(m, layer, kind, tokens[t],
			     out + (uint64_t)t * width);
}

void
model_fill(model *m, const token *tokens, uint32_t count)
{
	uint32_t l;

	for (l = 0; l < m->layers; l++) {
		layer_tensors *t = &m->layer[l];

		fill_tensor(m, l, TENSOR_Q, tokens, count, t->q);
		fill_tensor(m, l, TENSOR_KV_C, tokens, count, t->kv_c);
		fill_tensor(m, l, TENSOR_K_PE, tokens, count, t->k_pe);
		fill_tensor(m, l, TENSOR_INDEX_K, tokens, count, t->index_k);
		fill_tensor(m, l, TENSOR_INDEX_Q, tokens, count, t->index_q);
		fill_tensor(m, l, TENSOR_INDEX_WEIGHTS, tokens, count,
			    t->index_weights);
	}
}

spmla_kv_insert_args
model_kv_insert(const spmla_plan *plan)
{
	spmla_kv_insert_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.dtype = SPMLA_DTYPE_BF16;
	a.scale_mode = plan->config.kv_scale_mode;
	a.kv_c_stride_elems = SPMLA_MLA_LATENT;
	a.k_pe_stride_elems = SPMLA_MLA_ROPE;
	return a;
}

spmla_indexer_k_insert_args
model_index_k_insert(const model *m)
{
	spmla_indexer_k_insert_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.dtype = SPMLA_DTYPE_BF16;
	a.scale_mode = SPMLA_SCALE_POW2;
	a.rope_style = SPMLA_ROPE_NEOX;
	a.cos_sin_rows = m->plan->config.max_context_tokens;
	a.cos_sin = m->cos_sin;
	a.norm_eps = NORM_EPS;
	a.norm_weight = m->norm_weight;
	a.norm_bias = m->norm_bias;
	a.k_stride_elems = SPMLA_INDEX_DIM;
	return a;
}

/* Some of a prompt, one layer. */
static spmla_status
insert_layer(model *m, uint32_t layer, token first, uint32_t count)
{
	spmla_kv_insert_args kv = model_kv_insert(m->plan);
	spmla_indexer_k_insert_args k = model_index_k_insert(m);
	spmla_status s;
	uint32_t i;

	for (i = 0; i < count; i++) {
		token of = first;

		of.position += i;
		model_values(m, layer, TENSOR_KV_C, of,
			     m->chunk_kv_c + i * SPMLA_MLA_LATENT);
		model_values(m, layer, TENSOR_K_PE, of,
			     m->chunk_k_pe + i * SPMLA_MLA_ROPE);
		model_values(m, layer, TENSOR_INDEX_K, of,
			     m->chunk_index_k + i * SPMLA_INDEX_DIM);
	}
	kv.tokens = count;
	kv.kv_c = m->chunk_kv_c;
	kv.k_pe = m->chunk_k_pe;
	kv.slot_mapping = m->chunk_slots;
	kv.cache = m->layer[layer].args.kv;
	s = spmla_kv_insert(m->ctx, &kv, device_stream());
	if (s != SPMLA_OK)
		return s;
	k.tokens = count;
	k.k = m->chunk_index_k;
	k.slot_mapping = m->chunk_slots;
	k.positions = m->chunk_positions;
	k.cache = m->layer[layer].args.index;
	return spmla_indexer_k_insert(m->ctx, &k, device_stream());
}

spmla_status
model_insert(model *m, const batch *b, const running *r)
{
	const page_table *table = &b->tables[0];
	const int32_t *columns =
		table->pages + (uint64_t)r->row * table->columns;
	token first = {r->id, r->row, 0, 0};
	spmla_status s = SPMLA_OK;
	uint32_t l, i;

	while (first.position < r->prompt && s == SPMLA_OK) {
		uint32_t count = r->prompt - first.position;

		if (count > INSERT_TOKENS)
			count = INSERT_TOKENS;
		for (i = 0; i < count; i++) {
			const uint32_t p = first.position + i;

			m->chunk_positions[i] = (int32_t)p;
			m->chunk_slots[i] =
				(int64_t)columns[p / table->page_tokens] *
					table->page_tokens +
				p % table->page_tokens;
		}
		for (l = 0; l < m->layers && s == SPMLA_OK; l++) {
			s = insert_layer(m, l, first, count);
			device_wait(); /* the chunk's tensors are used again */
		}
		first.position += count;
	}
	return s;
}
