/* SPDX-License-Identifier: Apache-2.0
 *
 * See attn_rig.h: contexts and their results.
 */
#include "tests/harness/attn_rig.h"

#include "spmla/ops/ops.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values of a token. */
static uint32_t
out_elems(const attn_rig *r)
{
	return r->size.heads * SPMLA_MLA_LATENT;
}

static void *
room(uint64_t elems, uint64_t elem_bytes)
{
	return test_alloc(elems * elem_bytes, 0xAB);
}

/* ---- The context ------------------------------------------------------- */

void
attn_config(spmla_config *config, uint32_t slots)
{
	fixture_config(config);
	config->ring_slots = slots;
	config->cache_layers = ATTN_LAYERS;
}

void
attn_config_size(spmla_config *config, uint32_t slots, const attn_size *size)
{
	attn_config(config, slots);
	config->heads = size->heads;
	config->index_heads = size->index_heads;
	config->topk = size->topk;
}

/* Inputs and outputs of a layer, dense. */
static void
wire(attn_rig *r, const attn_inputs *in, uint32_t l)
{
	const attn_tensors *t = &in->layer[l];
	spmla_v32_layer *a = &r->layer[l];

	memset(a, 0, sizeof *a);
	a->struct_bytes = (uint32_t)sizeof *a;
	a->rope_style = SPMLA_ROPE_NEOX;
	a->cos_sin_rows = RIG_CONTEXT;
	a->norm_eps = 1e-6f;
	a->kv_c = t->kv_c;
	a->k_pe = t->k_pe;
	a->kv_c_stride_elems = SPMLA_MLA_LATENT;
	a->k_pe_stride_elems = SPMLA_MLA_ROPE;
	a->index_k = t->index_k;
	a->index_k_stride_elems = SPMLA_INDEX_DIM;
	a->index_norm_weight = in->norm_weight;
	a->index_norm_bias = in->norm_bias;
	a->cos_sin = in->cos_sin;
	a->index_q = t->index_q;
	a->index_q_token_stride_elems = r->size.index_heads * SPMLA_INDEX_DIM;
	a->index_q_head_stride_elems = SPMLA_INDEX_DIM;
	a->index_weights = t->weights;
	a->index_weights_stride_elems = r->size.index_heads;
	a->index_weights_dtype = SPMLA_DTYPE_F32;
	a->q = t->q;
	a->q_token_stride_elems = r->size.heads * SPMLA_MLA_DIM;
	a->q_head_stride_elems = SPMLA_MLA_DIM;
	a->attn_sink = l == 1 ? in->sink : NULL;
	a->out = r->out[l];
	a->out_token_stride_elems = out_elems(r);
	a->out_head_stride_elems = SPMLA_MLA_LATENT;
	a->lse = r->lse[l];
	a->lse_token_stride_elems = r->size.heads;
	a->lse_head_stride_elems = 1;
	a->empty_lse =
		l == 1 ? SPMLA_EMPTY_LSE_MINUS_INF : SPMLA_EMPTY_LSE_PLUS_INF;
	ck_assert_int_eq(
		spmla_cache_view(r->f.ctx, SPMLA_BUF_KV_CACHE, l, &a->kv),
		SPMLA_OK);
	ck_assert_int_eq(
		spmla_cache_view(r->f.ctx, SPMLA_BUF_INDEX_CACHE, l, &a->index),
		SPMLA_OK);
}

uint64_t
attn_slot_key(uint32_t slot)
{
	return UINT64_C(0xf111ed0000000000) + slot;
}

/* Fills the keys of RIG_TOKENS slots from `first` on. */
static void
fill_slots(attn_rig *r, attn_inputs *in, uint32_t first)
{
	int64_t slots[RIG_TOKENS];
	int32_t positions[RIG_TOKENS];
	uint32_t l, t;

	for (t = 0; t < RIG_TOKENS; t++) {
		slots[t] = first + t;
		positions[t] = (int32_t)((first + t) % RIG_CONTEXT);
		attn_fill_token(in, t, attn_slot_key(first + t));
	}
	for (l = 0; l < ATTN_LAYERS; l++) {
		const spmla_v32_layer *a = &r->layer[l];
		const spmla_kv_insert_args kv = {
			.struct_bytes = sizeof kv,
			.tokens = RIG_TOKENS,
			.dtype = SPMLA_DTYPE_BF16,
			.scale_mode = SPMLA_SCALE_POW2,
			.kv_c = a->kv_c,
			.k_pe = a->k_pe,
			.kv_c_stride_elems = a->kv_c_stride_elems,
			.k_pe_stride_elems = a->k_pe_stride_elems,
			.slot_mapping = slots,
			.cache = a->kv};
		const spmla_indexer_k_insert_args index = {
			.struct_bytes = sizeof index,
			.tokens = RIG_TOKENS,
			.dtype = SPMLA_DTYPE_BF16,
			.scale_mode = SPMLA_SCALE_POW2,
			.rope_style = a->rope_style,
			.cos_sin_rows = a->cos_sin_rows,
			.norm_eps = a->norm_eps,
			.k = a->index_k,
			.k_stride_elems = a->index_k_stride_elems,
			.slot_mapping = slots,
			.norm_weight = a->index_norm_weight,
			.norm_bias = a->index_norm_bias,
			.positions = positions,
			.cos_sin = a->cos_sin,
			.cache = a->index};

		ck_assert_int_eq(spmla_kv_insert(r->f.ctx, &kv, NULL),
				 SPMLA_OK);
		ck_assert_int_eq(spmla_indexer_k_insert(r->f.ctx, &index, NULL),
				 SPMLA_OK);
	}
	fixture_drain(&r->f);
}

void
attn_open(attn_rig *r, const spmla_config *config, attn_inputs *in,
	  uint32_t native_flags)
{
	uint32_t l, s;

	memset(r, 0, sizeof *r);
	r->size = in->size;
	fixture_open(&r->f, config, native_flags);
	for (l = 0; l < ATTN_LAYERS; l++) {
		r->out[l] = room(RIG_TOKENS * out_elems(r), sizeof **r->out);
		r->lse[l] = room(RIG_TOKENS * r->size.heads, sizeof **r->lse);
		wire(r, in, l);
	}
	r->topk[0] = room(RIG_TOKENS * r->size.topk, sizeof **r->topk);
	r->topk_lens[0] = room(RIG_TOKENS, sizeof **r->topk_lens);
	r->topk[1] = spmla_view(r->f.ctx, SPMLA_BUF_TOPK_INDICES, NULL);
	r->topk_lens[1] = spmla_view(r->f.ctx, SPMLA_BUF_TOPK_LENS, NULL);
	r->layer[0].topk_indices = r->topk[0];
	r->layer[0].topk_lens = r->topk_lens[0];
	for (s = 0; s < ATTN_SLOTS; s += RIG_TOKENS)
		fill_slots(r, in, s);
}

void
attn_close(attn_rig *r)
{
	uint32_t l;

	for (l = 0; l < ATTN_LAYERS; l++) {
		free(r->out[l]);
		free(r->lse[l]);
	}
	free(r->topk[0]);
	free(r->topk_lens[0]);
	fixture_close(&r->f);
}

spmla_status
attn_enqueue(attn_rig *r, const spmla_shape *shape, spmla_source source)
{
	spmla_status s = spmla_step_prologue(r->f.ctx, shape, source, NULL);
	uint32_t l;

	for (l = 0; s == SPMLA_OK && l < ATTN_LAYERS; l++)
		s = spmla_v32_attn(r->f.ctx, &r->layer[l], shape, NULL);
	return s;
}

void
attn_capture(attn_rig *r)
{
	uint32_t b;

	for (b = 0; b < 3; b++) {
		ck_assert_int_eq(spmla_graph_begin(r->f.ctx, NULL), SPMLA_OK);
		ck_assert_int_eq(
			attn_enqueue(r, &rig_shapes[b], SPMLA_FROM_RING),
			SPMLA_OK);
		ck_assert_int_eq(spmla_graph_end(r->f.ctx, &r->graph[b]),
				 SPMLA_OK);
	}
}

/* ---- Results ----------------------------------------------------------- */

/* A piece of a step's results. */
typedef struct piece {
	const char *name;
	void *bytes;
	size_t count;
} piece;

enum { PIECES = 4 * ATTN_LAYERS + 10 };

static void
list_pieces(attn_rig *r, const spmla_shape *s, piece *p)
{
	const size_t t = s->tokens, b = s->requests;
	const struct {
		const char *name;
		spmla_buf buf;
		size_t bytes;
	} step[10] = {
		{"STEP_REQUESTS", SPMLA_BUF_STEP_REQUESTS, 16 * b},
		{"QUERY_START_LOC", SPMLA_BUF_QUERY_START_LOC, 4 * (b + 1)},
		{"SEQ_LENS", SPMLA_BUF_SEQ_LENS, 4 * b},
		{"REQ_ROW", SPMLA_BUF_REQ_ROW, 4 * b},
		{"REQ_ID_PER_TOKEN", SPMLA_BUF_REQ_ID_PER_TOKEN, 4 * t},
		{"TOKEN_ROW", SPMLA_BUF_TOKEN_ROW, 4 * t},
		{"POSITIONS", SPMLA_BUF_POSITIONS, 4 * t},
		{"CONTEXT_LENS", SPMLA_BUF_CONTEXT_LENS, 4 * t},
		{"SLOT_MAPPING", SPMLA_BUF_SLOT_MAPPING, 8 * t},
		{"LOGITS_ROW_STARTS", SPMLA_BUF_LOGITS_ROW_STARTS, 8 * (t + 1)},
	};
	uint32_t i, l;

	for (l = 0; l < ATTN_LAYERS; l++) {
		const piece layer[4] = {
			{"out", r->out[l], t * out_elems(r) * sizeof **r->out},
			{"lse", r->lse[l], t * r->size.heads * sizeof **r->lse},
			{"topk", r->topk[l], t * r->size.topk * 4},
			{"topk_lens", r->topk_lens[l], t * 4},
		};

		memcpy(p + 4 * l, layer, sizeof layer);
	}
	for (i = 0; i < 10; i++) {
		const piece one = {step[i].name,
				   spmla_view(r->f.ctx, step[i].buf, NULL),
				   step[i].bytes};

		p[4 * ATTN_LAYERS + i] = one;
	}
}

void
attn_forget(attn_rig *r)
{
	piece p[PIECES];
	uint32_t i;

	list_pieces(r, &rig_shapes[2], p);
	for (i = 0; i < 4 * ATTN_LAYERS; i++)
		memset(p[i].bytes, 0xAB, p[i].count);
}

void
attn_expect_equal(attn_rig *a, attn_rig *b, const spmla_shape *shape,
		  uint64_t step)
{
	piece p[PIECES], q[PIECES];
	uint32_t i;

	list_pieces(a, shape, p);
	list_pieces(b, shape, q);
	for (i = 0; i < PIECES; i++)
		if (memcmp(p[i].bytes, q[i].bytes, p[i].count) != 0)
			ck_abort_msg("step %llu, %u tokens: %s differs",
				     (unsigned long long)step, shape->tokens,
				     p[i].name);
}

uint64_t
attn_hash(attn_rig *r, const spmla_shape *shape, uint64_t hash)
{
	piece p[PIECES];
	size_t j;
	uint32_t i;

	list_pieces(r, shape, p);
	for (i = 0; i < PIECES; i++)
		for (j = 0; j < p[i].count; j++)
			hash = (hash ^ ((const uint8_t *)p[i].bytes)[j]) *
			       UINT64_C(0x100000001b3);
	return hash;
}

void
attn_expect_empty(const attn_rig *r, uint32_t token)
{
	uint32_t l, i;

	for (l = 0; l < ATTN_LAYERS; l++) {
		for (i = 0; i < out_elems(r); i++)
			ck_assert_uint_eq(r->out[l][token * out_elems(r) + i],
					  0);
		for (i = 0; i < r->size.heads; i++)
			ck_assert(r->lse[l][token * r->size.heads + i] ==
				  (l == 1 ? -INFINITY : INFINITY));
		for (i = 0; i < r->size.topk; i++)
			ck_assert_int_eq(r->topk[l][token * r->size.topk + i],
					 -1);
		ck_assert_int_eq(r->topk_lens[l][token], 0);
	}
}
