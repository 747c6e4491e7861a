/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for the V4 model around the attention: tensors and weights are
 * values of decode_values.c. Layers on both sides, the replayed one and the
 * eager one, read the same inputs and write their own outputs.
 */
#include <math.h>
#include <string.h>

#include "examples/decode_v4.h"
#include "examples/device.h"

/* The kinds that are f32, for a token or a weight. */
static const v4_kind f32_kinds[] = {
	V4_COMPRESS_KV, V4_COMPRESS_SCORE, V4_INDEX_KV,
	V4_INDEX_SCORE, V4_INDEX_WEIGHTS,  V4_APE,
	V4_NORM,        V4_INDEX_APE,      V4_INDEX_NORM,
	V4_SINK,        V4_WO_SCALES};

enum { F32_KINDS = sizeof f32_kinds / sizeof f32_kinds[0] };

static int
is_weight(v4_kind kind)
{
	return kind >= V4_APE;
}

/* Values of a token; for a weight all values. 0: the layer has none. */
uint32_t
v4_width(const v4_model *m, uint32_t layer, v4_kind kind)
{
	const spmla_config *c = &m->plan->config;
	const v4_inputs *l = &m->layer[layer];
	const uint32_t inner = c->heads / m->output_groups * SPMLA_V4_DIM;
	const uint32_t four = l->ratio == 4;

	switch (kind) {
	case V4_Q:
		return c->heads * SPMLA_V4_DIM;
	case V4_KV:
		return SPMLA_V4_DIM;
	case V4_COMPRESS_KV:
	case V4_COMPRESS_SCORE:
		return l->width;
	case V4_INDEX_KV:
	case V4_INDEX_SCORE:
		return four * V4_INDEX_WIDTH;
	case V4_INDEX_Q:
		return four * c->index_heads * SPMLA_INDEX_DIM;
	case V4_INDEX_WEIGHTS:
		return four * c->index_heads;
	case V4_APE:
		return l->width * l->ratio;
	case V4_NORM:
		return l->width ? SPMLA_V4_DIM : 0;
	case V4_INDEX_APE:
		return four * V4_INDEX_WIDTH * 4;
	case V4_INDEX_NORM:
		return four * SPMLA_INDEX_DIM;
	case V4_SINK:
		return c->heads;
	case V4_WO:
		return m->output_groups * V4_OUTPUT_COLUMNS * inner;
	case V4_WO_SCALES:
		return m->output_groups * (V4_OUTPUT_COLUMNS / 128) *
		       (inner / 128);
	case V4_KINDS:
		break;
	}
	return 0;
}

uint64_t
v4_stream(const v4_model *m, uint32_t layer, v4_kind kind, token of)
{
	return values_stream(m->seed, layer, kind, of);
}

/* e4m3 numbers of any size that are no NaN. */
static void
fill_wo(uint64_t stream, uint8_t *out, uint64_t n)
{
	uint16_t x[256];
	uint64_t i, k;

	for (i = 0; i < n; i += 256) {
		values_bf16(stream + i, 256, x);
		for (k = 0; k < 256 && i + k < n; k++) {
			/* The sign, four of the exponent, the mantissa. */
			const uint8_t code = (uint8_t)((x[k] >> 8 & 128) |
						       (x[k] >> 4 & 127));

			out[i + k] = (code & 127) == 127 ? code - 1 : code;
		}
	}
}

static void
open_layer(v4_model *m, uint32_t layer)
{
	static const token none;
	v4_inputs *l = &m->layer[layer];
	const uint64_t tokens = m->plan->max_tokens;
	uint32_t i, k;

	l->ratio = model_v4_ratio(layer);
	l->width = l->ratio == 4 ? 1024 : l->ratio == 128 ? 512 : 0;
	l->cos_sin = m->cos_sin[l->ratio > 1];
	l->kv = keep(tokens * v4_width(m, layer, V4_KV) * 2);
	l->index_q = keep(tokens * v4_width(m, layer, V4_INDEX_Q) * 2);
	l->wo = keep(v4_width(m, layer, V4_WO));
	fill_wo(v4_stream(m, layer, V4_WO, none), l->wo,
		v4_width(m, layer, V4_WO));
	for (i = 0; i < F32_KINDS; i++) {
		const v4_kind kind = f32_kinds[i];
		const uint32_t width = v4_width(m, layer, kind);
		const uint64_t rows = is_weight(kind) ? 1 : tokens;
		float *x = keep(rows * width * sizeof *x);

		l->f32[kind] = x;
		if (!is_weight(kind))
			continue;
		values_f32(v4_stream(m, layer, kind, none), width, x);
		if (kind == V4_NORM || kind == V4_INDEX_NORM)
			for (k = 0; k < width; k++)
				x[k] = 1 + 0.25f * x[k];
		if (kind == V4_WO_SCALES)
			for (k = 0; k < width; k++)
				x[k] = 0.01f + 0.005f * fabsf(x[k]);
	}
}

/* Angles: base 10000, plain. Layers that compress: base 160000, stretched 16
 * times for waves longer than the 65536 tokens of training, and less for waves
 * that turned 1 to 32 times in these. */
static void
open_rope(v4_model *m, uint32_t start)
{
	/* A group that began earlier also uses given tokens. */
	const uint32_t first = start > 128 ? start - 128 : 0;
	const uint32_t positions = m->plan->config.max_context_tokens;
	const double whole = 2 * 3.14159265358979323846, seen = 65536;
	double turn[2][32], low, high;
	uint32_t i, p, k;

	low = floor(64 * log(seen / (32 * whole)) / (2 * log(160000)));
	high = ceil(64 * log(seen / whole) / (2 * log(160000)));
	for (i = 0; i < 32; i++) {
		const double ramp = fmin(fmax((i - low) / (high - low), 0), 1);

		turn[0][i] = pow(10000, -(double)i / 32);
		turn[1][i] =
			pow(160000, -(double)i / 32) * (1 - ramp + ramp / 16);
	}
	for (k = 0; k < 2; k++) {
		m->cos_sin[k] = keep((uint64_t)positions * SPMLA_V4_ROPE *
				     sizeof(float));
		for (p = first; p < positions; p++)
			values_cos_sin(turn[k], p,
				       m->cos_sin[k] +
					       (uint64_t)p * SPMLA_V4_ROPE);
	}
}

void
v4_model_open(v4_model *m, const spmla_plan *plan, uint32_t layers,
	      uint32_t start, uint64_t seed)
{
	uint32_t l;

	memset(m, 0, sizeof *m);
	m->plan = plan;
	m->layers = layers;
	m->seed = seed;
	m->output_groups = plan->config.heads % 2 ? 1 : 2;
	m->layer = keep(layers * sizeof *m->layer);
	open_rope(m, start);
	for (l = 0; l < layers; l++)
		open_layer(m, l);
}

static void
open_outputs(const v4_model *m, v4_outputs *o)
{
	const spmla_config *c = &m->plan->config;
	const uint64_t t = m->plan->max_tokens;

	o->q = keep(t * c->heads * SPMLA_V4_DIM * 2);
	o->out = keep(t * c->heads * SPMLA_V4_DIM * 2);
	o->lse = keep(t * c->heads * sizeof(float));
	o->topk_indices = keep(t * c->topk * sizeof(int32_t));
	o->topk_lens = keep(t * sizeof(int32_t));
	o->z = keep(t * m->output_groups * V4_OUTPUT_COLUMNS * 2);
}

static void
bind_output(const v4_model *m, uint32_t layer, v4_outputs *o)
{
	const int64_t of_group = m->plan->config.heads / m->output_groups;
	const int64_t inner = of_group * SPMLA_V4_DIM;
	const v4_inputs *l = &m->layer[layer];
	spmla_v4_layer *a = &o->args;

	a->output_quant = layer % 2 ? SPMLA_O_FP8_PACKED : SPMLA_O_FP8;
	a->output_groups = m->output_groups;
	a->output_columns = V4_OUTPUT_COLUMNS;
	a->wo = l->wo;
	a->wo_row_stride_elems = inner;
	a->wo_group_stride_elems = V4_OUTPUT_COLUMNS * inner;
	a->wo_scales = l->f32[V4_WO_SCALES];
	a->wo_scale_row_stride_elems = inner / 128;
	a->wo_scale_group_stride_elems = V4_OUTPUT_COLUMNS / 128 * inner / 128;
	a->z = o->z;
	a->z_group_stride_elems = V4_OUTPUT_COLUMNS;
	a->z_token_stride_elems = m->output_groups * V4_OUTPUT_COLUMNS;
}

static void
bind_compressor(const v4_model *m, uint32_t layer, spmla_v4_layer *a)
{
	const v4_inputs *l = &m->layer[layer];

	if (l->ratio == 1)
		return;
	a->compress_kv = l->f32[V4_COMPRESS_KV];
	a->compress_score = l->f32[V4_COMPRESS_SCORE];
	a->ape = l->f32[V4_APE];
	a->norm_weight = l->f32[V4_NORM];
	if (l->ratio != 4)
		return;
	a->index_kv = l->f32[V4_INDEX_KV];
	a->index_score = l->f32[V4_INDEX_SCORE];
	a->index_ape = l->f32[V4_INDEX_APE];
	a->index_norm_weight = l->f32[V4_INDEX_NORM];
	a->index_q = l->index_q;
	a->index_weights = l->f32[V4_INDEX_WEIGHTS];
	a->index_weights_dtype = SPMLA_DTYPE_F32;
}

static void
bind_attention(const v4_model *m, uint32_t layer, v4_outputs *o)
{
	const v4_inputs *l = &m->layer[layer];
	spmla_v4_layer *a = &o->args;

	a->cos_sin = l->cos_sin;
	a->q = o->q;
	a->kv = l->kv;
	if (l->ratio == 4) {
		a->topk_indices = o->topk_indices;
		a->topk_lens = o->topk_lens;
	}
	a->attn_sink = l->f32[V4_SINK];
	a->out = o->out;
	a->lse = o->lse;
	a->empty_lse = SPMLA_EMPTY_LSE_PLUS_INF;
}

spmla_status
v4_model_bind(v4_model *m, uint32_t side, spmla_ctx *ctx)
{
	v4_side *s = &m->sides[side];
	uint32_t seen[3] = {0, 0, 0}, l;
	spmla_status status = SPMLA_OK;

	s->ctx = ctx;
	s->layer = keep(m->layers * sizeof *s->layer);
	for (l = 0; l < m->layers && status == SPMLA_OK; l++) {
		const uint32_t ratio = m->layer[l].ratio;
		const uint32_t kind = ratio == 4 ? 1 : ratio == 128 ? 2 : 0;

		open_outputs(m, &s->layer[l]);
		status = spmla_v4_layer_preset(ctx, ratio, l, seen[kind]++,
					       &s->layer[l].args);
		bind_attention(m, l, &s->layer[l]);
		bind_compressor(m, l, &s->layer[l].args);
		bind_output(m, l, &s->layer[l]);
	}
	return status;
}

static void
fill_token(v4_model *m, uint32_t l, const token *of, uint32_t t)
{
	v4_inputs *in = &m->layer[l];
	const uint32_t q = v4_width(m, l, V4_Q), kv = v4_width(m, l, V4_KV);
	const uint32_t index_q = v4_width(m, l, V4_INDEX_Q);
	uint32_t i;

	for (i = 0; i < V4_SIDES; i++)
		if (m->sides[i].ctx)
			values_bf16(v4_stream(m, l, V4_Q, *of), q,
				    m->sides[i].layer[l].q + (uint64_t)t * q);
	values_bf16(v4_stream(m, l, V4_KV, *of), kv, in->kv + (uint64_t)t * kv);
	values_bf16(v4_stream(m, l, V4_INDEX_Q, *of), index_q,
		    in->index_q + (uint64_t)t * index_q);
	for (i = 0; i < F32_KINDS; i++) {
		const v4_kind kind = f32_kinds[i];
		const uint32_t width = v4_width(m, l, kind);

		if (!is_weight(kind))
			values_f32(v4_stream(m, l, kind, *of), width,
				   in->f32[kind] + (uint64_t)t * width);
	}
}

void
v4_model_fill(v4_model *m, const token *tokens, uint32_t count)
{
	uint32_t l, t;

	for (l = 0; l < m->layers; l++)
		for (t = 0; t < count; t++)
			fill_token(m, l, &tokens[t], t);
}

static void
copy_page(const v4_model *m, const spmla_cache *cache, const page_copy *copy)
{
	const uint64_t bytes = cache->page_stride_bytes;
	uint8_t *base = cache->base;

	/* A layer's cache that it has not is all zeros. */
	if (base && m->plan->group_table[cache->table_group] == copy->group)
		device_copy(base + (uint64_t)copy->to * bytes,
			    base + (uint64_t)copy->from * bytes, bytes);
}

void
v4_model_copy(const v4_model *m, uint32_t side, const page_copy *copy)
{
	uint32_t l;

	for (l = 0; l < m->layers && m->sides[side].ctx; l++) {
		const spmla_v4_layer *a = &m->sides[side].layer[l].args;

		copy_page(m, &a->swa, copy);
		copy_page(m, &a->compressed, copy);
		copy_page(m, &a->state, copy);
		copy_page(m, &a->index, copy);
		copy_page(m, &a->index_state, copy);
	}
}
