/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference's tables, caches, scores, selection and attention. The one
 * idea: every position's dequantised key is kept by slot, so a step's answer
 * is a plain sum over keys that a plain table finds.
 */
#include "tests/reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int
ref_table_open(ref_table *t, uint32_t rows, uint32_t columns,
	       uint32_t page_tokens, uint32_t pool_pages)
{
	const size_t count = (size_t)rows * columns;
	size_t i;

	t->rows = rows;
	t->columns = columns;
	t->page_tokens = page_tokens;
	t->pool_pages = pool_pages;
	t->pages = malloc((count ? count : 1) * sizeof *t->pages);
	for (i = 0; t->pages && i < count; i++)
		t->pages[i] = -1;
	return t->pages != NULL;
}

void
ref_table_close(ref_table *t)
{
	free(t->pages);
	memset(t, 0, sizeof *t);
}

void
ref_table_join(ref_table *t, uint32_t row)
{
	ref_table_truncate(t, row, 0);
}

int
ref_table_store(ref_table *t, uint32_t row, uint32_t first, uint32_t count,
		const int32_t *pages)
{
	uint32_t i;

	if (row >= t->rows || first > t->columns || count > t->columns - first)
		return 0;
	for (i = 0; i < count; i++)
		t->pages[(size_t)row * t->columns + first + i] = pages[i];
	return 1;
}

void
ref_table_truncate(ref_table *t, uint32_t row, uint32_t columns)
{
	uint32_t c;

	for (c = columns; row < t->rows && c < t->columns; c++)
		t->pages[(size_t)row * t->columns + c] = -1;
}

int64_t
ref_table_slot(const ref_table *t, uint32_t row, uint32_t position)
{
	const uint32_t column = position / t->page_tokens;
	int64_t page;

	if (row >= t->rows || column >= t->columns)
		return -1;
	page = t->pages[(size_t)row * t->columns + column];
	if (page < 0 || page >= (int64_t)t->pool_pages)
		return -1;
	return page * t->page_tokens + position % t->page_tokens;
}

uint32_t
ref_table_written(const ref_table *t, uint32_t row)
{
	uint32_t c = 0;

	while (row < t->rows && c < t->columns &&
	       t->pages[(size_t)row * t->columns + c] != -1)
		c++;
	return c;
}

int
ref_cache_open(ref_cache *c, uint64_t slots)
{
	const size_t n = slots ? (size_t)slots : 1;

	c->slots = slots;
	c->kv = calloc(n, sizeof *c->kv);
	c->index = calloc(n, sizeof *c->index);
	c->has = calloc(n, 1);
	if (c->kv && c->index && c->has)
		return 1;
	ref_cache_close(c);
	return 0;
}

void
ref_cache_close(ref_cache *c)
{
	free(c->kv);
	free(c->index);
	free(c->has);
	memset(c, 0, sizeof *c);
}

int
ref_cache_put_kv(ref_cache *c, int64_t slot, const uint16_t *kv_c,
		 const uint16_t *k_pe, ref_scale_mode mode)
{
	if (slot < 0)
		return 1;
	if ((uint64_t)slot >= c->slots)
		return 0;
	ref_quantise_kv(&c->kv[slot], kv_c, k_pe, mode);
	c->has[slot] |= 1;
	return 1;
}

int
ref_cache_put_index_k(ref_cache *c, int64_t slot, const uint16_t *k,
		      const ref_index_k_rule *rule)
{
	if (slot < 0)
		return 1;
	if ((uint64_t)slot >= c->slots)
		return 0;
	ref_quantise_index_k(&c->index[slot], k, rule);
	c->has[slot] |= 2;
	return 1;
}

const ref_kv_row *
ref_cache_kv(const ref_cache *c, int64_t slot)
{
	if (slot < 0 || (uint64_t)slot >= c->slots || !(c->has[slot] & 1))
		return NULL;
	return &c->kv[slot];
}

const ref_index_key *
ref_cache_index_k(const ref_cache *c, int64_t slot)
{
	if (slot < 0 || (uint64_t)slot >= c->slots || !(c->has[slot] & 2))
		return NULL;
	return &c->index[slot];
}

int
ref_work_open(ref_work *w, uint32_t max_keys, uint32_t index_heads)
{
	const size_t n = max_keys ? max_keys : 1;
	const size_t h = index_heads ? index_heads : 1;

	w->max_keys = max_keys;
	w->heads = index_heads;
	w->order = calloc(2 * n, sizeof *w->order);
	w->index_keys = calloc(n, sizeof *w->index_keys);
	w->kv_rows = calloc(n, sizeof *w->kv_rows);
	w->probs = calloc(n, sizeof *w->probs);
	w->scores = calloc(n, sizeof *w->scores);
	w->tolerance = calloc(n, sizeof *w->tolerance);
	w->uncertain = calloc(n, 1);
	w->chosen = calloc(n, 1);
	w->q_values = calloc(h * REF_INDEX_DIM, sizeof *w->q_values);
	w->q_weights = calloc(h, sizeof *w->q_weights);
	if (w->order && w->index_keys && w->kv_rows && w->probs && w->scores &&
	    w->tolerance && w->uncertain && w->chosen && w->q_values &&
	    w->q_weights)
		return 1;
	ref_work_close(w);
	return 0;
}

void
ref_work_close(ref_work *w)
{
	free(w->order);
	free(w->index_keys);
	free(w->kv_rows);
	free(w->probs);
	free(w->scores);
	free(w->tolerance);
	free(w->uncertain);
	free(w->chosen);
	free(w->q_values);
	free(w->q_weights);
	memset(w, 0, sizeof *w);
}

void
ref_logits(const double *q_values, const double *q_weights, uint32_t heads,
	   const ref_index_key *const *keys, uint32_t n, ref_sums sums,
	   double *scores, double *tolerance)
{
	const double cut = sums == REF_SUMS_CUT ? 0.82 : 0;
	uint32_t i, h, d;

	for (i = 0; i < n; i++) {
		double sum = 0, size = 0;

		for (h = 0; keys[i] && h < heads; h++) {
			const double *q = q_values + (size_t)h * REF_INDEX_DIM;
			double dot = 0, terms = 0, most = 0;

			for (d = 0; d < REF_INDEX_DIM; d++) {
				const double x = q[d] * keys[i]->value[d];

				dot += x;
				terms += fabs(x);
				most = fmax(most, fabs(x));
			}
			sum += fmax(dot, 0) * q_weights[h];
			size += (0x1p-18 * terms + cut * most) *
				fabs(q_weights[h]);
		}
		scores[i] = keys[i] ? sum * keys[i]->scale : -INFINITY;
		tolerance[i] = keys[i] ? size * keys[i]->scale : 0;
	}
}

void
ref_score_row(ref_work *w, const ref_cache *c, const ref_table *t, uint32_t row,
	      uint32_t n, uint32_t heads)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const ref_index_key *key =
			ref_cache_index_k(c, ref_table_slot(t, row, i));

		w->index_keys[i] = key;
		w->uncertain[i] = key && key->uncertain;
	}
	ref_logits(w->q_values, w->q_weights, heads, w->index_keys, n, w->sums,
		   w->scores, w->tolerance);
}

/* A score, and the sum of its terms' sizes: four sums each, as one would wait
 * for every addition. */
static double
score(const double *query, const double *key, double *terms)
{
	double dot[4] = {0}, size[4] = {0};
	uint32_t d, i;

	for (d = 0; d < REF_DIM; d += 4)
		for (i = 0; i < 4; i++) {
			const double x = query[d + i] * key[d + i];

			dot[i] += x;
			size[i] += fabs(x);
		}
	*terms = (size[0] + size[1]) + (size[2] + size[3]);
	return (dot[0] + dot[1]) + (dot[2] + dot[3]);
}

static void
add_value(double *restrict out, double *restrict magnitude,
	  const double *restrict key, double p)
{
	uint32_t d;

	for (d = 0; d < REF_LATENT; d++) {
		out[d] += p * key[d];
		magnitude[d] += p * fabs(key[d]);
	}
}

void
ref_attend(ref_work *w, const uint16_t *q, const ref_kv_row *const *rows,
	   uint32_t n, double softmax_scale, const float *sink,
	   ref_attend_result *r)
{
	double query[REF_DIM];
	double max = -INFINITY, sum = 0, denominator;
	uint32_t i, d;

	memset(r, 0, sizeof *r);
	for (d = 0; d < REF_DIM; d++)
		query[d] = ref_bf16_value(q[d]);
	for (i = 0; i < n; i++) {
		double terms;

		w->probs[i] = score(query, rows[i]->k, &terms) * softmax_scale;
		max = fmax(max, w->probs[i]);
		r->terms = fmax(r->terms, terms * softmax_scale);
	}
	r->lse = INFINITY;
	if (n == 0)
		return;
	for (i = 0; i < n; i++) {
		w->probs[i] = exp(w->probs[i] - max);
		sum += w->probs[i];
	}
	r->lse = max + log(sum);
	/* A sink is one more term of the denominator; +inf leaves nothing. */
	denominator = sum + (sink ? exp(*sink - max) : 0);
	for (i = 0; i < n; i++)
		add_value(r->out, r->magnitude, rows[i]->k,
			  w->probs[i] / denominator);
}

int
ref_attend_row(ref_work *w, const ref_cache *c, const ref_table *t,
	       uint32_t row, const int32_t *indices, uint32_t count,
	       const uint16_t *q, double softmax_scale, const float *sink,
	       ref_attend_result *result)
{
	uint32_t i, n = 0;

	for (i = 0; i < count; i++) {
		int64_t slot;

		if (indices[i] < 0)
			continue;
		slot = ref_table_slot(t, row, (uint32_t)indices[i]);
		if (slot < 0)
			continue;
		if (n >= w->max_keys || !ref_cache_kv(c, slot))
			return 0;
		w->kv_rows[n++] = ref_cache_kv(c, slot);
	}
	ref_attend(w, q, w->kv_rows, n, softmax_scale, sink, result);
	return 1;
}

int
ref_close_out(double got, double want, double magnitude)
{
	const double off = fabs(got - want);

	if (magnitude == 0)
		return off <= 1e-3 + 2.01 / 128 * fabs(want);
	return off <= 1e-3 + 2.01 / 128 * fabs(want) ||
	       off <= 0x1.1p-8 * (fabs(want) + magnitude);
}

int
ref_close_lse(double got, double want)
{
	if (isinf(want) || isinf(got))
		return got == want;
	return fabs(got - want) <= 1e-6 + 8.01 / 65536 * fabs(want);
}
