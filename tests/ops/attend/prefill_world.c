/* SPDX-License-Identifier: Apache-2.0
 *
 * See prefill_world.h.
 */
#include "tests/ops/attend/prefill_world.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAD = 8 };

void
prefill_open(prefill_world *w, uint32_t dim, uint32_t heads, uint32_t topk)
{
	const uint32_t q_head = dim + PAD, out_head = REF_LATENT + PAD;
	const uint32_t q_elems = PREFILL_TOKENS * (heads * q_head + PAD);
	uint32_t i;

	memset(w, 0, sizeof *w);
	w->rng = test_seed() + dim * 1000 + heads * 100 + topk;
	w->out_elems = PREFILL_TOKENS * (heads * out_head + PAD);
	w->lse_elems = heads * (PREFILL_TOKENS + 1);
	w->q = test_alloc(q_elems * 2, 0);
	w->kv = test_alloc(PREFILL_ROWS * (dim + PAD) * 2, 0xFF);
	w->indices = test_alloc(PREFILL_TOKENS * (topk + PAD) * 4, 0xFF);
	w->out = test_alloc(w->out_elems * 2, 0);
	w->lse = test_alloc(w->lse_elems * 4, 0);
	w->max_logits = test_alloc(w->lse_elems * 4, 0);
	w->rows = malloc((topk + 1) * sizeof *w->rows);
	ck_assert(w->rows && ref_work_open(&w->work, topk, 1));
	for (i = 0; i < q_elems; i++)
		w->q[i] = test_bf16(rng_float(&w->rng));
	w->a = (spmla_sparse_prefill_args){.struct_bytes = sizeof w->a,
					   .tokens = PREFILL_TOKENS,
					   .heads = heads,
					   .dim = dim,
					   .topk = topk,
					   .kv_rows = PREFILL_ROWS,
					   .softmax_scale = 0.0721687824f,
					   .q = w->q,
					   .kv = w->kv,
					   .indices = w->indices,
					   .out = w->out,
					   .max_logits = w->max_logits,
					   .lse = w->lse};
	w->a.q_token_stride_elems = heads * q_head + PAD;
	w->a.q_head_stride_elems = q_head;
	w->a.kv_stride_elems = dim + PAD;
	w->a.indices_stride_elems = topk + PAD;
	w->a.out_token_stride_elems = heads * out_head + PAD;
	w->a.out_head_stride_elems = out_head;
	w->a.lse_token_stride_elems = 1;
	w->a.lse_head_stride_elems = PREFILL_TOKENS + 1;
}

void
prefill_close(prefill_world *w)
{
	ref_work_close(&w->work);
	free(w->rows);
	free(w->q);
	free(w->kv);
	free(w->indices);
	free(w->out);
	free(w->lse);
	free(w->max_logits);
}

int32_t *
prefill_indices(const prefill_world *w, uint32_t token)
{
	return w->indices + token * w->a.indices_stride_elems;
}

uint16_t *
prefill_row(const prefill_world *w, int32_t row)
{
	return w->kv + row * w->a.kv_stride_elems;
}

void
prefill_put(const prefill_world *w, int32_t row, float value, float rope)
{
	uint32_t d;

	for (d = 0; d < w->a.dim; d++)
		prefill_row(w, row)[d] =
			test_bf16(d < REF_LATENT ? value : rope);
}

void
prefill_put_random(prefill_world *w, int32_t row)
{
	uint32_t d;

	for (d = 0; d < w->a.dim; d++)
		prefill_row(w, row)[d] = test_bf16(rng_float(&w->rng));
}

void
prefill_choose(prefill_world *w)
{
	static const int32_t others[5] = {INT32_MIN, INT32_MAX, -2,
					  PREFILL_ROWS, PREFILL_ROWS + 1};
	uint32_t t, i;

	for (t = 0; t < w->a.tokens; t++)
		for (i = 0; i < w->a.topk; i++) {
			int32_t *index = prefill_indices(w, t) + i;

			switch (rng_below(&w->rng, 7)) {
			case 0:
				*index = -1;
				break;
			case 1:
				*index = others[rng_below(&w->rng, 5)];
				break;
			default:
				*index = (int32_t)rng_below(&w->rng,
							    PREFILL_ROWS);
				prefill_put_random(w, *index);
			}
		}
}

void
prefill_choose_keys(prefill_world *w)
{
	uint32_t t, i;

	for (t = 0; t < w->a.tokens; t++)
		for (i = 0; i < w->a.topk; i++) {
			int32_t *index = prefill_indices(w, t) + i;

			*index = (int32_t)rng_below(&w->rng, PREFILL_ROWS);
			prefill_put_random(w, *index);
		}
}

/* ---- What has to come out ---------------------------------------------- */

/* The rows that count for a token, V4 rows with a rope of zeros behind; returns
 * how many. */
static uint32_t
rows_of(prefill_world *w, uint32_t t, const ref_kv_row **rows)
{
	const spmla_sparse_prefill_args *a = &w->a;
	uint32_t i, d, n = 0;

	for (i = 0; i < a->topk; i++) {
		const uint16_t *row;
		int64_t index;

		if (a->topk_lens && (int64_t)i >= a->topk_lens[t])
			break;
		index = a->indices[t * a->indices_stride_elems + i];
		if (index < 0 || index >= a->kv_rows)
			continue;
		row = a->kv + index * a->kv_stride_elems;
		for (d = 0; d < REF_DIM; d++)
			w->rows[n].k[d] =
				d < a->dim ? ref_bf16_value(row[d]) : 0;
		rows[n] = &w->rows[n];
		n++;
	}
	return n;
}

/* The largest scaled score, and of all scores the largest sum of |terms|. */
static double
largest(const prefill_world *w, const uint16_t *q,
	const ref_kv_row *const *rows, uint32_t n, double *magnitude)
{
	double max = -INFINITY;
	uint32_t i, d;

	*magnitude = 0;
	for (i = 0; i < n; i++) {
		double score = 0, sum = 0;

		for (d = 0; d < w->a.dim; d++) {
			const double term =
				ref_bf16_value(q[d]) * rows[i]->k[d];

			score += term;
			sum += fabs(term);
		}
		max = fmax(max, score * w->a.softmax_scale);
		*magnitude = fmax(*magnitude, sum * w->a.softmax_scale);
	}
	return max;
}

static int
close_logit(double got, double want, double magnitude)
{
	if (isinf(got) || isinf(want))
		return got == want;
	return fabs(got - want) <= 1e-6 + 2.01 / 65536 * fabs(want) ||
	       fabs(got - want) <= 0x1p-18 * magnitude;
}

static void
check_out(const uint16_t *out, const ref_attend_result *want, uint32_t n)
{
	uint32_t d;

	for (d = 0; d < REF_LATENT; d++) {
		const double got = ref_bf16_value(out[d]), x = want->out[d];
		const double off = fabs(got - x);

		if (n == 0)
			ck_assert_uint_eq(out[d], 0);
		else
			ck_assert_msg(
				off <= 8e-4 + 3.01 / 128 * fabs(x) ||
					off <= 0x1.1p-8 * (fabs(x) +
							   want->magnitude[d]),
				"dim %u: got %g, want %g", d, got, x);
	}
}

static void
check_head(prefill_world *w, uint32_t t, uint32_t h,
	   const ref_kv_row *const *rows, uint32_t n)
{
	const spmla_sparse_prefill_args *a = &w->a;
	const double unit = a->lse_base == SPMLA_LSE_BASE2 ? log(2) : 1;
	uint16_t q[REF_DIM] = {0};
	ref_attend_result want;
	double max, magnitude;

	memcpy(q,
	       a->q + t * a->q_token_stride_elems + h * a->q_head_stride_elems,
	       a->dim * sizeof *q);
	ref_attend(&w->work, q, rows, n, a->softmax_scale,
		   a->attn_sink ? &a->attn_sink[h] : NULL, &want);
	max = largest(w, q, rows, n, &magnitude);
	check_out(prefill_out(w, t, h), &want, n);
	if (n == 0 && a->empty_lse == SPMLA_EMPTY_LSE_MINUS_INF)
		want.lse = -INFINITY;
	if (a->lse)
		ck_assert_msg(close_logit(prefill_lse(w, t, h), want.lse / unit,
					  magnitude / unit),
			      "token %u head %u lse: got %.9g, want %.9g", t, h,
			      prefill_lse(w, t, h), want.lse / unit);
	if (a->max_logits)
		ck_assert_msg(close_logit(prefill_max(w, t, h), max / unit,
					  magnitude / unit),
			      "token %u head %u max: got %.9g, want %.9g", t, h,
			      prefill_max(w, t, h), max / unit);
}

/* ---- Runs -------------------------------------------------------------- */

void
prefill_zero_q(const prefill_world *w)
{
	memset(w->q, 0,
	       (size_t)(w->a.q_token_stride_elems * PREFILL_TOKENS) * 2);
}

void
prefill_run(fixture *f, const prefill_world *w)
{
	ck_assert_int_eq(spmla_sparse_prefill(f->ctx, &w->a, NULL), SPMLA_OK);
}

static void
poison(const prefill_world *w)
{
	memset(w->out, 0x5A, w->out_elems * 2);
	memset(w->lse, 0x5A, w->lse_elems * 4);
	memset(w->max_logits, 0x5A, w->lse_elems * 4);
}

static uint8_t *
copy_results(const prefill_world *w)
{
	const size_t out = w->out_elems * 2, lse = w->lse_elems * 4;
	uint8_t *bytes = malloc(out + 2 * lse);

	memcpy(bytes, w->out, out);
	memcpy(bytes + out, w->lse, lse);
	memcpy(bytes + out + lse, w->max_logits, lse);
	return bytes;
}

uint8_t *
prefill_results(fixture *f, const prefill_world *w, const uint8_t *kept)
{
	uint8_t *bytes;

	poison(w);
	prefill_run(f, w);
	bytes = copy_results(w);
	if (kept)
		ck_assert_mem_eq(bytes, kept,
				 w->out_elems * 2 + w->lse_elems * 8);
	return bytes;
}

static uint32_t
untouched(const float *values, uint64_t count)
{
	uint32_t n = 0;

	for (; count; count--, values++)
		n += !memcmp(values, "\x5A\x5A\x5A\x5A", 4);
	return n;
}

/* A head's results are written and nothing else. No result is near 0x5A5A, as
 * bf16 or as half of a float. */
static void
check_written(const prefill_world *w)
{
	const uint32_t heads = w->a.tokens * w->a.heads;
	uint64_t i, left = 0;

	for (i = 0; i < w->out_elems; i++)
		left += w->out[i] == 0x5A5A;
	ck_assert_uint_eq(left, w->out_elems - heads * REF_LATENT);
	ck_assert_uint_eq(untouched(w->lse, w->lse_elems),
			  w->lse_elems - (w->a.lse ? heads : 0));
	ck_assert_uint_eq(untouched(w->max_logits, w->lse_elems),
			  w->lse_elems - (w->a.max_logits ? heads : 0));
}

void
prefill_check(fixture *f, prefill_world *w)
{
	uint32_t t, h;

	poison(w);
	prefill_run(f, w);
	check_written(w);
	for (t = 0; t < w->a.tokens; t++) {
		const uint32_t n = rows_of(w, t, w->work.kv_rows);

		for (h = 0; h < w->a.heads; h++)
			check_head(w, t, h, w->work.kv_rows, n);
	}
	ck_assert_uint_eq(fixture_status(f).count, 0);
}

const uint16_t *
prefill_out(const prefill_world *w, uint32_t token, uint32_t head)
{
	return w->out + token * w->a.out_token_stride_elems +
	       head * w->a.out_head_stride_elems;
}

float
prefill_lse(const prefill_world *w, uint32_t token, uint32_t head)
{
	return w->lse[token * w->a.lse_token_stride_elems +
		      head * w->a.lse_head_stride_elems];
}

float
prefill_max(const prefill_world *w, uint32_t token, uint32_t head)
{
	return w->max_logits[token * w->a.lse_token_stride_elems +
			     head * w->a.lse_head_stride_elems];
}

void
prefill_all_out(const prefill_world *w, uint32_t token, uint32_t head,
		float want)
{
	uint32_t d;

	for (d = 0; d < REF_LATENT; d++)
		ck_assert_uint_eq(prefill_out(w, token, head)[d],
				  test_bf16(want));
}
