/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the real kernels are from attention itself. FlashMLA rounds a value of
 * an fp8 row, its scale, and the weight of a key to bf16. A kernel that rounds
 * less, or weights against another maximum, is as far from FlashMLA's result
 * as that is from attention in double over values of code * scale. All kernels
 * but Hopper's round weights to bf16, and all but the CPU's and Hopper's round
 * values: they may be off attention as sparse_decode.h and sparse_prefill.h say.
 */
#include "tests/golden/golden.h"

#include <math.h>
#include <string.h>

static double
half_value(const uint8_t *p)
{
	return golden_value(GOLDEN_BF16, p);
}

/* The `dim` values of an entry. */
static void
decode_row(const spmla_cache *cache, int64_t slot, double *row)
{
	const uint32_t n = cache->entries_per_page, i = (uint32_t)(slot % n);
	const uint8_t *page = (const uint8_t *)cache->base +
			      (uint64_t)(slot / n) * cache->page_stride_bytes;
	const uint32_t v4 = cache->layout == SPMLA_LAYOUT_V4_FP8;
	const uint32_t values = v4 ? SPMLA_V4_NOPE : SPMLA_MLA_LATENT;
	const uint8_t *code =
		page + i * (v4 ? SPMLA_V4_VALUE_BYTES : SPMLA_FP8_DS_MLA_BYTES);
	const uint8_t *rope = code + (v4 ? values : SPMLA_FP8_DS_MLA_ROPE_BYTE);
	const uint8_t *scale =
		v4 ? page + n * SPMLA_V4_VALUE_BYTES + i * SPMLA_V4_SCALE_BYTES
		   : code + SPMLA_FP8_DS_MLA_SCALE_BYTE;
	uint32_t d;

	for (d = 0; d < values; d++)
		row[d] =
			golden_value(GOLDEN_E4M3, code + d) *
			(v4 ? ldexp(1, scale[d / SPMLA_V4_SCALE_GROUP] - 127)
			    : golden_value(
				      GOLDEN_F32,
				      scale + 4 * (d / SPMLA_MLA_SCALE_GROUP)));
	for (d = 0; d < 64; d++)
		row[values + d] = half_value(rope + 2 * d);
}

/* Adds the rows of a list of keys to the n that there are; returns how many
 * there are then. */
static uint32_t
take_rows(const spmla_cache *cache, const int32_t *slots, uint32_t len,
	  uint32_t dim, double *rows, uint32_t n)
{
	uint32_t k;

	for (k = 0; k < len; k++)
		if (slots[k] >= 0)
			decode_row(cache, slots[k], rows + dim * n++);
	return n;
}

static uint32_t
length_of(const int32_t *lens, uint32_t t, uint32_t most)
{
	return !lens                      ? most
	       : lens[t] < 0              ? 0
	       : (uint32_t)lens[t] < most ? (uint32_t)lens[t]
					  : most;
}

/* Returns the natural lse. sink: NULL for none. out: the mean of v. mean: the
 * mean of |v|. p: [n], for its use. */
static double
attend(float scale, const float *sink, const uint16_t *q, const double *rows,
       uint32_t n, uint32_t dim, double *p, double *out, double *mean)
{
	double most = -INFINITY, sum = 0, lse;
	double query[SPMLA_MLA_DIM];
	uint32_t k, d;

	for (d = 0; d < dim; d++)
		query[d] = half_value((const uint8_t *)(q + d));
	for (k = 0; k < n; k++) {
		for (p[k] = 0, d = 0; d < dim; d++)
			p[k] += query[d] * rows[dim * k + d];
		p[k] *= (double)scale;
		most = p[k] > most ? p[k] : most;
	}
	memset(out, 0, SPMLA_MLA_LATENT * sizeof *out);
	memset(mean, 0, SPMLA_MLA_LATENT * sizeof *mean);
	for (k = 0; k < n; k++) {
		p[k] = exp(p[k] - most);
		sum += p[k];
		for (d = 0; d < SPMLA_MLA_LATENT; d++) {
			out[d] += p[k] * rows[dim * k + d];
			mean[d] += p[k] * fabs(rows[dim * k + d]);
		}
	}
	lse = most + log(sum);
	if (sink)
		sum += exp((double)*sink - most);
	for (d = 0; n && d < SPMLA_MLA_LATENT; d++) {
		out[d] /= sum;
		mean[d] /= sum;
	}
	return lse;
}

/* 0 where there is no distance: between infinities. */
static double
distance(const golden_tensor *t, const int64_t *index, double exact)
{
	const double d =
		fabs(exact -
		     golden_value(t->dtype, t->want + golden_place(t, index) *
							      t->elem_bytes));

	return isfinite(d) ? d : 0;
}

void
golden_decode_slack(const spmla_sparse_decode_args *a, golden_tensor *out,
		    golden_tensor *lse, int64_t b, double rounding,
		    double *work)
{
	const uint32_t dim = a->cache.layout == SPMLA_LAYOUT_V4_FP8
				     ? SPMLA_V4_DIM
				     : SPMLA_MLA_DIM;
	double *rows = work + a->topk + a->extra_topk;
	double exact[SPMLA_MLA_LATENT], mean[SPMLA_MLA_LATENT];
	int64_t t, h, d;
	uint32_t n;

	for (t = 0; t < a->tokens; t++) {
		n = take_rows(&a->cache, a->slots + t * a->slots_stride_elems,
			      length_of(a->topk_lens, (uint32_t)t, a->topk),
			      dim, rows, 0);
		if (a->extra_topk)
			n = take_rows(&a->extra_cache,
				      a->extra_slots +
					      t * a->extra_slots_stride_elems,
				      length_of(a->extra_topk_lens, (uint32_t)t,
						a->extra_topk),
				      dim, rows, n);
		for (h = 0; h < a->heads; h++) {
			const int64_t at[3] = {b, h, t};
			const double l =
				attend(a->softmax_scale,
				       a->attn_sink ? a->attn_sink + h : NULL,
				       a->q + t * a->q_token_stride_elems +
					       h * a->q_head_stride_elems,
				       rows, n, dim, work, exact, mean);

			const int64_t l_at = (b * a->heads + h) * a->tokens + t;

			lse->exact[l_at] = l;
			lse->slack[l_at] = distance(lse, at, l);
			for (d = 0; d < SPMLA_MLA_LATENT; d++) {
				const int64_t in[4] = {b, t, h, d};
				const int64_t o_at =
					((b * a->tokens + t) * a->heads + h) *
						SPMLA_MLA_LATENT +
					d;

				out->exact[o_at] = exact[d];
				out->slack[o_at] = distance(out, in, exact[d]) +
						   rounding * mean[d];
			}
		}
	}
}

/* The keys of a token of a prefill; returns how many there are. */
static uint32_t
take_keys(const spmla_sparse_prefill_args *a, uint32_t t, double *rows)
{
	const int32_t *row = a->indices + t * a->indices_stride_elems;
	const uint32_t len = length_of(a->topk_lens, t, a->topk);
	uint32_t k, d, n = 0;

	for (k = 0; k < len; k++) {
		if (row[k] < 0 || (uint32_t)row[k] >= a->kv_rows)
			continue;
		for (d = 0; d < a->dim; d++)
			rows[a->dim * n + d] = half_value(
				(const uint8_t *)(a->kv +
						  row[k] * a->kv_stride_elems +
						  d));
		n++;
	}
	return n;
}

void
golden_prefill_slack(const spmla_sparse_prefill_args *a, golden_tensor *out,
		     double *work)
{
	double *rows = work + a->topk;
	double exact[SPMLA_MLA_LATENT], mean[SPMLA_MLA_LATENT];
	int64_t t, h, d;

	for (t = 0; t < a->tokens; t++) {
		const uint32_t n = take_keys(a, (uint32_t)t, rows);

		for (h = 0; h < a->heads; h++) {
			(void)attend(a->softmax_scale,
				     a->attn_sink ? a->attn_sink + h : NULL,
				     a->q + t * a->q_token_stride_elems +
					     h * a->q_head_stride_elems,
				     rows, n, a->dim, work, exact, mean);
			for (d = 0; d < SPMLA_MLA_LATENT; d++) {
				const int64_t in[3] = {t, h, d};

				out->slack[(t * a->heads + h) *
						   SPMLA_MLA_LATENT +
					   d] = distance(out, in, exact[d]) +
						0x1p-8 * mean[d];
			}
		}
	}
}
