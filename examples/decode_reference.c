/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares a sample of the step's tokens with the independent reference. The
 * reference follows the tables by the records alone and never reads the caches.
 * It computes the key of a position again from the model, so a key that is
 * stale, misplaced or of a rejected draft shows as a wrong score or output.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/decode_v32.h"
#include "tests/reference/reference.h"

/* Tokens of a checked step that are looked at, in every layer. */
enum { SAMPLE_TOKENS = 4, NUMBER_TEXT = 32 };

/* The key for which a slot of the reference's cache was last computed. */
typedef struct slot_tag {
	uint32_t request; /* plus 1; 0: nothing */
	uint32_t position;
	uint32_t draft;
} slot_tag;

struct reference_check {
	const model *model;
	const batch *batch;
	check_count count;
	uint32_t step;
	uint64_t slots;
	ref_table table;
	ref_work work;
	ref_cache *caches;  /* [layers] */
	slot_tag *tags;     /* [layers][slots] */
	uint16_t *q;        /* [heads][576] */
	uint16_t *index_q;  /* [index_heads][128] */
	uint16_t *weights;  /* [index_heads] */
	float *weights_f32; /* [index_heads] */
};

/* The state of the comparison. */
typedef struct place {
	uint32_t layer;
	uint32_t index; /* of the token in the step */
	token of;
} place;

reference_check *
reference_open(const model *m, const batch *b)
{
	const spmla_config *c = &m->plan->config;
	const uint32_t pages = c->groups[SPMLA_GROUP_MAIN].pool_pages;
	const uint32_t keys = c->max_context_tokens > c->topk
				      ? c->max_context_tokens
				      : c->topk;
	reference_check *r = keep(sizeof *r);
	int good;
	uint32_t l;

	r->model = m;
	r->batch = b;
	r->slots = (uint64_t)pages * b->tables[0].page_tokens;
	r->caches = keep(m->layers * sizeof *r->caches);
	r->tags = keep(m->layers * r->slots * sizeof *r->tags);
	r->q = keep(model_width(m, TENSOR_Q) * sizeof *r->q);
	r->index_q = keep(model_width(m, TENSOR_INDEX_Q) * sizeof *r->q);
	r->weights = keep(c->index_heads * sizeof *r->weights);
	r->weights_f32 = keep(c->index_heads * sizeof *r->weights_f32);
	good = ref_table_open(&r->table, b->rows, b->tables[0].columns,
			      b->tables[0].page_tokens, pages) &&
	       ref_work_open(&r->work, keys, c->index_heads);
	for (l = 0; good && l < m->layers; l++)
		good = ref_cache_open(&r->caches[l], r->slots);
	if (good)
		return r;
	reference_close(r);
	return NULL;
}

void
reference_close(reference_check *r)
{
	uint32_t l;

	for (l = 0; l < r->model->layers; l++)
		ref_cache_close(&r->caches[l]);
	ref_work_close(&r->work);
	ref_table_close(&r->table);
}

check_count
reference_count(const reference_check *r)
{
	return r->count;
}

void
reference_table(reference_check *r)
{
	const batch *b = r->batch;
	const page_table *t = &b->tables[0];
	const spmla_step *step = &b->step;
	uint32_t i;

	for (i = 0; i < b->bulk_count; i++) {
		const uint32_t row = b->bulk[i];
		const uint32_t count = (uint32_t)t->cols[row];

		(void)ref_table_store(&r->table, row, 0, count,
				      t->pages + (uint64_t)row * t->columns);
		ref_table_truncate(&r->table, row, count);
	}
	for (i = 0; i < step->request_count; i++)
		if (step->requests[i].flags & SPMLA_REQUEST_JOIN)
			ref_table_join(&r->table, step->requests[i].row);
	for (i = 0; i < step->store_count; i++) {
		const spmla_table_store *s = &step->stores[i];

		(void)ref_table_store(&r->table, s->row, s->first_col, s->count,
				      s->pages);
	}
}

static void
differ(reference_check *r, const place *p, const char *what, uint64_t element,
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

static const float *
cos_sin_row(const reference_check *r, uint32_t position)
{
	return r->model->cos_sin + (uint64_t)position * SPMLA_INDEX_ROPE;
}

/* Computes the key of a position unless its slot has it. */
static void
put_key(reference_check *r, uint32_t layer, token of)
{
	const model *m = r->model;
	const int64_t slot = ref_table_slot(&r->table, of.row, of.position);
	const slot_tag tag = {of.request + 1, of.position, of.draft};
	ref_index_k_rule rule;
	uint16_t kv_c[SPMLA_MLA_LATENT], k_pe[SPMLA_MLA_ROPE];
	uint16_t index_k[SPMLA_INDEX_DIM];
	slot_tag *have;

	if (slot < 0)
		return;
	have = &r->tags[layer * r->slots + (uint64_t)slot];
	if (memcmp(have, &tag, sizeof tag) == 0)
		return;
	*have = tag;
	model_values(m, layer, TENSOR_KV_C, of, kv_c);
	model_values(m, layer, TENSOR_K_PE, of, k_pe);
	model_values(m, layer, TENSOR_INDEX_K, of, index_k);
	memset(&rule, 0, sizeof rule);
	rule.norm_weight = m->norm_weight;
	rule.norm_bias = m->norm_bias;
	rule.norm_eps = m->layer[layer].args.norm_eps;
	rule.cos_sin = cos_sin_row(r, of.position);
	rule.rope = REF_ROPE_NEOX;
	rule.mode = REF_SCALE_POW2;
	(void)ref_cache_put_kv(&r->caches[layer], slot, kv_c, k_pe,
			       REF_SCALE_POW2);
	(void)ref_cache_put_index_k(&r->caches[layer], slot, index_k, &rule);
}

/* All keys that the token sees: what was accepted, then this step's. */
static void
put_keys(reference_check *r, const place *p)
{
	const batch *b = r->batch;
	token of = p->of;
	uint32_t first = p->index;

	while (first > 0 && b->tokens[first - 1].request == of.request)
		first--;
	of.draft = 0;
	for (of.position = 0; of.position < b->tokens[first].position;
	     of.position++)
		put_key(r, p->layer, of);
	for (; first <= p->index; first++)
		put_key(r, p->layer, b->tokens[first]);
}

/* Scores every key and checks the selection. */
static void
check_selection(reference_check *r, const place *p)
{
	const model *m = r->model;
	const spmla_config *c = &m->plan->config;
	const layer_tensors *t = &m->layer[p->layer];
	const int32_t *indices = t->topk_indices + (uint64_t)p->index * c->topk;
	const uint32_t n = p->of.position + 1;
	const uint32_t set = n < c->topk ? n : c->topk;
	const ref_index_q_rule rule = {
		c->index_heads,
		cos_sin_row(r, p->of.position),
		REF_ROPE_NEOX,
		REF_Q_FLOOR_FUSED,
		(float)(1 / sqrt(SPMLA_INDEX_DIM)),
		(float)(1 / sqrt(c->index_heads)),
	};
	ref_work *w = &r->work;
	ref_miss miss = {"", -1, 0, 0};
	uint32_t h;

	model_values(m, p->layer, TENSOR_INDEX_Q, p->of, r->index_q);
	model_values(m, p->layer, TENSOR_INDEX_WEIGHTS, p->of, r->weights);
	for (h = 0; h < c->index_heads; h++)
		r->weights_f32[h] = (float)ref_bf16_value(r->weights[h]);
	ref_index_q(r->index_q, SPMLA_INDEX_DIM, r->weights_f32, &rule,
		    w->q_values, w->q_weights);
	ref_score_row(w, &r->caches[p->layer], &r->table, p->of.row, n,
		      c->index_heads);
	if (t->topk_lens[p->index] != (int32_t)set)
		differ(r, p, "TOPK_LENS", 0, t->topk_lens[p->index], set);
	if (!ref_check_selection(w, indices, c->topk, w->scores, n,
				 w->tolerance, w->uncertain, &miss))
		differ(r, p, miss.what, (uint64_t)miss.at, miss.got, miss.want);
}

static void
check_output(reference_check *r, const place *p)
{
	const model *m = r->model;
	const spmla_config *c = &m->plan->config;
	const layer_tensors *t = &m->layer[p->layer];
	const int32_t *indices = t->topk_indices + (uint64_t)p->index * c->topk;
	ref_attend_result want;
	uint32_t h, d;

	model_values(m, p->layer, TENSOR_Q, p->of, r->q);
	for (h = 0; h < c->heads; h++) {
		const uint64_t at = (uint64_t)p->index * c->heads + h;
		const uint16_t *out = t->out + at * SPMLA_MLA_LATENT;

		if (!ref_attend_row(&r->work, &r->caches[p->layer], &r->table,
				    p->of.row, indices, c->topk,
				    r->q + h * SPMLA_MLA_DIM,
				    (double)c->softmax_scale, NULL, &want)) {
			differ(r, p, "a selected key that is not there", h, 0,
			       1);
			return;
		}
		if (!ref_close_lse(t->lse[at], want.lse))
			differ(r, p, "lse", h, t->lse[at], want.lse);
		for (d = 0; d < SPMLA_MLA_LATENT; d++)
			if (!ref_close_out(ref_bf16_value(out[d]), want.out[d],
					   want.magnitude[d]))
				differ(r, p, "out", h * SPMLA_MLA_LATENT + d,
				       ref_bf16_value(out[d]), want.out[d]);
	}
}

/* Rows of the bucket that the step does not use: out = 0, lse = +inf. */
static void
check_padding(reference_check *r, uint32_t layer, uint32_t tokens)
{
	const uint64_t heads = r->model->plan->config.heads;
	const layer_tensors *t = &r->model->layer[layer];
	place p = {layer, 0, {0, 0, 0, 0}};
	uint64_t i;

	for (p.index = r->batch->token_count; p.index < tokens; p.index++) {
		const uint16_t *out =
			t->out + p.index * heads * SPMLA_MLA_LATENT;
		const float *lse = t->lse + p.index * heads;

		for (i = 0; i < heads * SPMLA_MLA_LATENT; i++)
			if (out[i] != 0)
				differ(r, &p, "padding out", i,
				       ref_bf16_value(out[i]), 0);
		for (i = 0; i < heads; i++)
			if (!(isinf(lse[i]) && lse[i] > 0))
				differ(r, &p, "padding lse", i, (double)lse[i],
				       HUGE_VAL);
	}
}

void
reference_after(reference_check *r, uint32_t step, uint32_t tokens)
{
	const batch *b = r->batch;
	const uint32_t count =
		b->token_count < SAMPLE_TOKENS ? b->token_count : SAMPLE_TOKENS;
	uint32_t i;
	place p;

	r->step = step;
	for (p.layer = 0; p.layer < r->model->layers; p.layer++) {
		/* Spread over the requests, and others each time. */
		for (i = 0; i < count; i++) {
			p.index = (i * b->token_count / count + step) %
				  b->token_count;
			p.of = b->tokens[p.index];
			put_keys(r, &p);
			check_selection(r, &p);
			check_output(r, &p);
			r->count.done++;
		}
		check_padding(r, p.layer, tokens);
	}
}
