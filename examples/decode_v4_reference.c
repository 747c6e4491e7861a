/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares a sample of a V4 step's tokens with the independent reference:
 * queries, the selection, attention over the window and the compressed keys,
 * the output projection. Keys come from decode_v4_keys.c, which checks the
 * caches. Where scores are too near to tell, the library may select either key
 * in a layer of ratio 4.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "examples/decode_v4.h"

/* Tokens of a checked step that are looked at, in every layer. */
enum { SAMPLE_TOKENS = 4, NUMBER_TEXT = 32 };

struct v4_reference {
	const v4_model *model;
	const batch *batch;
	v4_keys *keys;
	v4_selection *selection;
	check_count count;
	uint32_t step;
	double *rows;   /* [most keys of a token][512] */
	double *probs;  /* [most keys of a token] */
	uint16_t *q;    /* [heads][512] */
	double *output; /* [heads][512] */
};

static uint32_t
most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

v4_reference *
v4_reference_open(const v4_model *m, const batch *b)
{
	const spmla_config *c = &m->plan->config;
	const uint32_t keys = c->window_tokens +
			      most(c->topk, c->max_context_tokens / 128 + 1);
	v4_reference *r = keep(sizeof *r);

	r->model = m;
	r->batch = b;
	r->rows = keep((uint64_t)keys * REF_V4_DIM * sizeof *r->rows);
	r->probs = keep(keys * sizeof *r->probs);
	r->q = keep((uint64_t)c->heads * REF_V4_DIM * sizeof *r->q);
	r->output = keep((uint64_t)c->heads * REF_V4_DIM * sizeof *r->output);
	r->keys = v4_keys_open(m, b);
	if (r->keys)
		r->selection = v4_selection_open(m, r->keys);
	if (r->selection)
		return r;
	v4_reference_close(r);
	return NULL;
}

void
v4_reference_close(v4_reference *r)
{
	if (r->keys)
		v4_keys_close(r->keys);
	if (r->selection)
		v4_selection_close(r->selection);
}

check_count
v4_reference_count(const v4_reference *r)
{
	return r->count;
}

void
v4_reference_tables(v4_reference *r)
{
	v4_keys_tables(r->keys);
}

static void
differ(v4_reference *r, const v4_place *p, const char *what, uint64_t element,
       double got, double want)
{
	const mismatch_at at = {"output != reference",
				r->step,
				p->layer,
				p->index,
				what,
				element};
	char got_text[NUMBER_TEXT], want_text[NUMBER_TEXT];

	snprintf(got_text, sizeof got_text, "%.9g", got);
	snprintf(want_text, sizeof want_text, "%.9g", want);
	r->count.mismatches++;
	mismatch(r->count.mismatches, &at, got_text, want_text);
}

static void
differ_miss(v4_reference *r, const v4_place *p, const ref_miss *miss)
{
	differ(r, p, miss->what, (uint64_t)miss->at, miss->got, miss->want);
}

static const v4_outputs *
outputs_of(const v4_reference *r, uint32_t layer)
{
	return &r->model->sides[0].layer[layer];
}

static const float *
cos_sin_of(const v4_reference *r, const v4_place *p)
{
	return r->model->layer[p->layer].cos_sin +
	       (uint64_t)p->of.position * 64;
}

static void
check_queries(v4_reference *r, const v4_place *p)
{
	const v4_model *m = r->model;
	const v4_outputs *o = outputs_of(r, p->layer);
	const uint32_t heads = m->plan->config.heads;
	uint32_t h;

	values_bf16(v4_stream(m, p->layer, V4_Q, p->of),
		    v4_width(m, p->layer, V4_Q), r->q);
	for (h = 0; h < heads; h++) {
		const uint64_t at = ((uint64_t)p->index * heads + h);
		ref_miss miss;

		if (!ref_v4_check_query(r->q + (uint64_t)h * REF_V4_DIM,
					(double)o->args.norm_eps,
					cos_sin_of(r, p),
					o->q + at * REF_V4_DIM, &miss))
			differ_miss(r, p, &miss);
	}
}

/* Appends key number `key` to the n rows that the token attends to. */
static int
take_row(v4_reference *r, const v4_place *p, v4_key_kind kind, uint32_t key,
	 uint32_t *n)
{
	const uint8_t *values, *scales;
	ref_miss miss;

	values = v4_keys_stored(r->keys, p, kind, key, &scales, &miss);
	if (!values) {
		differ_miss(r, p, &miss);
		return 0;
	}
	ref_v4_read_row(r->rows + (uint64_t)(*n)++ * REF_V4_DIM, values,
			scales);
	return 1;
}

/* The window, then the selection or all complete groups. Returns the number of
 * keys, or -1 if a key is wrong. */
static int64_t
take_rows(v4_reference *r, const v4_place *p)
{
	const spmla_config *c = &r->model->plan->config;
	const v4_outputs *o = outputs_of(r, p->layer);
	const uint32_t ratio = r->model->layer[p->layer].ratio;
	const uint32_t end = p->of.position + 1;
	uint32_t i, n = 0;

	for (i = end > c->window_tokens ? end - c->window_tokens : 0; i < end;
	     i++)
		if (!take_row(r, p, V4_KEY_WINDOW, i, &n))
			return -1;
	for (i = 0; ratio == 128 && i < end / 128; i++)
		if (!take_row(r, p, V4_KEY_COMPRESSED, i, &n))
			return -1;
	for (i = 0; ratio == 4 && i < c->topk; i++) {
		const int32_t key =
			o->topk_indices[(uint64_t)p->index * c->topk + i];

		if (key >= 0 && (uint32_t)key < end / 4 &&
		    !take_row(r, p, V4_KEY_COMPRESSED, (uint32_t)key, &n))
			return -1;
	}
	return n;
}

static void
check_attention(v4_reference *r, const v4_place *p)
{
	const v4_model *m = r->model;
	const spmla_config *c = &m->plan->config;
	const v4_outputs *o = outputs_of(r, p->layer);
	const int64_t n = take_rows(r, p);
	ref_attend_result want;
	uint32_t h, d;

	for (h = 0; n >= 0 && h < c->heads; h++) {
		const uint64_t at = (uint64_t)p->index * c->heads + h;
		const uint16_t *out = o->out + at * REF_V4_DIM;

		ref_v4_attend(o->q + at * REF_V4_DIM, r->rows, (uint32_t)n,
			      (double)c->softmax_scale,
			      m->layer[p->layer].f32[V4_SINK] + h, r->probs,
			      &want);
		if (!ref_close_lse((double)o->lse[at], want.lse))
			differ(r, p, "lse", h, (double)o->lse[at], want.lse);
		for (d = 0; d < REF_V4_DIM; d++)
			if (!ref_close_out(ref_bf16_value(out[d]), want.out[d],
					   want.magnitude[d]))
				differ(r, p, "out", h * REF_V4_DIM + d,
				       ref_bf16_value(out[d]), want.out[d]);
	}
}

/* The error of one value of z: half a bf16 step, and the bound on the f32 sums.
 */
static void
check_z(v4_reference *r, const v4_place *p, uint32_t g, uint32_t column)
{
	const v4_model *m = r->model;
	const v4_inputs *l = &m->layer[p->layer];
	const v4_outputs *o = outputs_of(r, p->layer);
	const uint32_t inner =
		m->plan->config.heads / m->output_groups * REF_V4_DIM;
	const uint64_t row = (uint64_t)g * V4_OUTPUT_COLUMNS + column;
	const float *scales =
		l->f32[V4_WO_SCALES] +
		((uint64_t)g * (V4_OUTPUT_COLUMNS / 128) + column / 128) *
			(inner / 128);
	const double *x = r->output + (uint64_t)g * inner;
	const uint64_t at =
		(uint64_t)p->index * m->output_groups * V4_OUTPUT_COLUMNS + row;
	double sum = 0, terms = 0, got, slack;
	uint32_t i;

	for (i = 0; i < inner; i++) {
		const double term = x[i] *
				    ref_e4m3_value(l->wo[row * inner + i]) *
				    (double)scales[i / 128];

		sum += term;
		terms += fabs(term);
	}
	slack = m->plan->device.kind == SPMLA_BACKEND_CPU ? inner / 128 + 24
							  : inner / 2 + 160;
	got = ref_bf16_value(o->z[at]);
	if (!(fabs(got - sum) <=
	      0x1p-8 * fabs(sum) + slack * 0x1.1p-24 * terms))
		differ(r, p, "z", row, got, sum);
}

/* The reference quantises the library's own results of attention. */
static void
check_output(v4_reference *r, const v4_place *p)
{
	const v4_model *m = r->model;
	const v4_outputs *o = outputs_of(r, p->layer);
	const uint32_t heads = m->plan->config.heads;
	uint32_t h, g, column;

	for (h = 0; h < heads; h++)
		ref_v4_output(
			o->out + ((uint64_t)p->index * heads + h) * REF_V4_DIM,
			cos_sin_of(r, p), r->output + (uint64_t)h * REF_V4_DIM);
	for (g = 0; g < m->output_groups; g++)
		for (column = 0; column < V4_OUTPUT_COLUMNS; column++)
			check_z(r, p, g, column);
}

/* Rows of the bucket that the step does not use: out = z = 0, lse = +inf. */
static void
check_padding(v4_reference *r, uint32_t layer, uint32_t tokens)
{
	const v4_model *m = r->model;
	const uint64_t heads = m->plan->config.heads;
	const uint64_t columns = m->output_groups * V4_OUTPUT_COLUMNS;
	const v4_outputs *o = outputs_of(r, layer);
	v4_place p = {layer, 0, 0, {0, 0, 0, 0}};
	uint64_t i;

	for (p.index = r->batch->token_count; p.index < tokens; p.index++) {
		const uint16_t *out = o->out + p.index * heads * REF_V4_DIM;
		const uint16_t *z = o->z + p.index * columns;
		const float *lse = o->lse + p.index * heads;

		for (i = 0; i < heads * REF_V4_DIM; i++)
			if (out[i] != 0)
				differ(r, &p, "padding out", i,
				       ref_bf16_value(out[i]), 0);
		for (i = 0; i < columns; i++)
			if (z[i] != 0)
				differ(r, &p, "padding z", i,
				       ref_bf16_value(z[i]), 0);
		for (i = 0; i < heads; i++)
			if (!(isinf(lse[i]) && lse[i] > 0))
				differ(r, &p, "padding lse", i, (double)lse[i],
				       HUGE_VAL);
	}
}

void
v4_reference_step(v4_reference *r, uint32_t step, uint32_t tokens)
{
	const batch *b = r->batch;
	const uint32_t count =
		b->token_count < SAMPLE_TOKENS ? b->token_count : SAMPLE_TOKENS;
	ref_miss miss;
	uint32_t i;
	v4_place p;

	r->step = step;
	for (p.layer = 0; p.layer < r->model->layers; p.layer++) {
		v4_keys_pull(r->keys, p.layer);
		/* Spread over the requests, and others each time. */
		for (i = 0; i < count; i++) {
			p.index = (i * b->token_count / count + step) %
				  b->token_count;
			p.of = b->tokens[p.index];
			p.first = p.index;
			while (p.first > 0 &&
			       b->tokens[p.first - 1].row == p.of.row)
				p.first--;
			check_queries(r, &p);
			if (r->model->layer[p.layer].ratio == 4 &&
			    !v4_selection_check(r->selection, &p, &miss))
				differ_miss(r, &p, &miss);
			check_attention(r, &p);
			check_output(r, &p);
			r->count.done++;
		}
		check_padding(r, p.layer, tokens);
	}
}
