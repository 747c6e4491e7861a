/* SPDX-License-Identifier: Apache-2.0
 *
 * See decode_world.h.
 */
#include "tests/ops/attend/decode_world.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAD = 8, SLOTS = 300 };

static void
open_cache(decode_world *w, uint32_t layout, uint32_t entries)
{
	spmla_cache *c = &w->a.cache;
	const uint32_t bytes = layout == SPMLA_LAYOUT_FP8_DS_MLA ? 656 : 1152;

	*c = (spmla_cache)SPMLA_CACHE_INIT;
	c->layout = layout;
	c->entries_per_page = entries;
	c->pages = (SLOTS + entries - 1) / entries;
	c->page_stride_bytes = (uint64_t)entries * bytes + 48;
	w->pages = test_alloc(c->pages * c->page_stride_bytes, 0xFF);
	c->base = w->pages;
}

void
decode_open(decode_world *w, uint32_t layout, uint32_t heads, uint32_t entries,
	    uint32_t topk)
{
	decode_open_tokens(w, layout, DECODE_TOKENS, heads, entries, topk);
}

void
decode_open_tokens(decode_world *w, uint32_t layout, uint32_t tokens,
		   uint32_t heads, uint32_t entries, uint32_t topk)
{
	const uint32_t q_head = REF_DIM + PAD, out_head = REF_LATENT + PAD;
	const uint32_t q_elems = tokens * (heads * q_head + PAD);
	uint32_t i;

	memset(w, 0, sizeof *w);
	w->rng = test_seed() + layout * 1000 + heads * 100 + entries;
	w->out_elems = tokens * (heads * out_head + PAD);
	w->lse_elems = heads * (tokens + 1);
	w->q = test_alloc(q_elems * 2, 0);
	w->slots = test_alloc(tokens * (topk + PAD) * 4, 0xFF);
	w->out = test_alloc(w->out_elems * 2, 0);
	w->lse = test_alloc(w->lse_elems * 4, 0);
	w->rows = malloc((topk + 1) * sizeof *w->rows);
	ck_assert(w->rows && ref_work_open(&w->work, topk, 1));
	for (i = 0; i < q_elems; i++)
		w->q[i] = test_bf16(rng_float(&w->rng));
	w->a = (spmla_sparse_decode_args){.struct_bytes = sizeof w->a,
					  .tokens = tokens,
					  .heads = heads,
					  .topk = topk,
					  .softmax_scale = 0.0721687824f,
					  .q = w->q,
					  .slots = w->slots,
					  .out = w->out,
					  .lse = w->lse};
	w->a.q_token_stride_elems = heads * q_head + PAD;
	w->a.q_head_stride_elems = q_head;
	w->a.slots_stride_elems = topk + PAD;
	w->a.out_token_stride_elems = heads * out_head + PAD;
	w->a.out_head_stride_elems = out_head;
	w->a.lse_token_stride_elems = 1;
	w->a.lse_head_stride_elems = tokens + 1;
	open_cache(w, layout, entries);
}

void
decode_make_odd(decode_world *w)
{
	w->a.out_token_stride_elems--; /* there is padding */
}

void
decode_close(decode_world *w)
{
	ref_work_close(&w->work);
	free(w->rows);
	free(w->q);
	free(w->slots);
	free(w->out);
	free(w->lse);
	free(w->pages);
}

uint8_t *
decode_row(const decode_world *w, int32_t slot)
{
	const spmla_cache *c = &w->a.cache;
	const uint64_t s = (uint64_t)slot;

	return (uint8_t *)c->base +
	       s / c->entries_per_page * c->page_stride_bytes +
	       s % c->entries_per_page *
		       (c->layout == SPMLA_LAYOUT_FP8_DS_MLA ? 656 : 1152);
}

static void
put_half(uint8_t *row, uint32_t at_byte, float x)
{
	const uint16_t half = test_bf16(x);

	memcpy(row + at_byte, &half, 2);
}

void
decode_put(decode_world *w, int32_t slot, float value, float rope)
{
	const int fp8 = w->a.cache.layout == SPMLA_LAYOUT_FP8_DS_MLA;
	uint8_t *row = decode_row(w, slot);
	const float one = 1;
	uint32_t i;

	for (i = 0; i < REF_LATENT; i++)
		if (fp8)
			row[i] = ref_e4m3(value);
		else
			put_half(row, i * 2, value);
	for (i = 0; fp8 && i < REF_SCALES; i++)
		memcpy(row + 512 + i * 4, &one, 4);
	for (i = 0; i < REF_ROPE; i++)
		put_half(row, (fp8 ? 528 : 1024) + i * 2, rope);
}

void
decode_put_random(decode_world *w, int32_t slot)
{
	const int fp8 = w->a.cache.layout == SPMLA_LAYOUT_FP8_DS_MLA;
	uint8_t *row = decode_row(w, slot);
	uint32_t i;

	for (i = 0; i < REF_LATENT; i++)
		if (fp8)
			row[i] = ref_e4m3(rng_float(&w->rng));
		else
			put_half(row, i * 2, rng_float(&w->rng));
	for (i = 0; fp8 && i < REF_SCALES; i++) {
		const float scale = 1.0f + 0.5f * rng_float(&w->rng);

		memcpy(row + 512 + i * 4, &scale, 4);
	}
	for (i = 0; i < REF_ROPE; i++)
		put_half(row, (fp8 ? 528 : 1024) + i * 2, rng_float(&w->rng));
}

void
decode_choose(decode_world *w)
{
	uint32_t t, i;

	for (t = 0; t < w->a.tokens; t++)
		for (i = 0; i < w->a.topk; i++) {
			int32_t *slot =
				&w->slots[t * w->a.slots_stride_elems + i];

			*slot = -1;
			if (rng_below(&w->rng, 7) == 0)
				continue;
			*slot = (int32_t)rng_below(&w->rng, SLOTS);
			decode_put_random(w, *slot);
		}
}

/* The reference's form of a row: code * scale, maybe rounded to bf16. */
static void
read_row(const decode_world *w, int32_t slot, int rounded, ref_kv_row *to)
{
	const int fp8 = w->a.cache.layout == SPMLA_LAYOUT_FP8_DS_MLA;
	const uint8_t *row = decode_row(w, slot);
	uint16_t half;
	float scale;
	uint32_t i;

	for (i = 0; i < REF_DIM; i++) {
		if (fp8 && i < REF_LATENT) {
			const double code = ref_e4m3_value(row[i]);

			memcpy(&scale, row + 512 + i / 128 * 4, 4);
			to->k[i] =
				rounded ? ref_round_bf16(code * (double)scale)
					: code * (double)scale;
			continue;
		}
		memcpy(&half, row + (fp8 ? 528 + (i - 512) * 2 : i * 2), 2);
		to->k[i] = ref_bf16_value(half);
	}
}

/* The rows that count for a token; returns how many. */
static uint32_t
rows_of(decode_world *w, uint32_t t, int rounded, const ref_kv_row **rows)
{
	const spmla_sparse_decode_args *a = &w->a;
	const int64_t limit =
		(int64_t)a->cache.pages * a->cache.entries_per_page;
	uint32_t i, n = 0;

	for (i = 0; i < a->topk; i++) {
		int32_t slot;

		if (a->topk_lens && (int64_t)i >= a->topk_lens[t])
			break;
		slot = a->slots[t * a->slots_stride_elems + i];
		if (slot < 0 || slot >= limit)
			continue;
		read_row(w, slot, rounded, &w->rows[n]);
		rows[n] = &w->rows[n];
		n++;
	}
	return n;
}

/* Kernels for matrix instructions of f16 round keys and queries by 2^-12 of
 * themselves, which makes up less than 2^-13 of the terms of a score. */
static int
is_close_lse(double lse, const ref_attend_result *want)
{
	return ref_close_lse(lse, want->lse) ||
	       (!fixture_on_cpu() &&
		fabs(lse - want->lse) <= 0x1p-13 * want->terms);
}

/* An error e of scores moves a mean by up to 2 e of its terms. */
static int
is_close_out(double got, const ref_attend_result *want, uint32_t d)
{
	return ref_close_out(got, want->out[d], want->magnitude[d]) ||
	       (!fixture_on_cpu() &&
		fabs(got - want->out[d]) <=
			0x1p-12 * want->terms * want->magnitude[d]);
}

static void
check_head(const decode_world *w, uint32_t t, uint32_t h, uint32_t n,
	   const ref_attend_result *want)
{
	const uint16_t *out = decode_out(w, t, h);
	const float lse = decode_lse(w, t, h);
	uint32_t d;

	for (d = 0; d < REF_LATENT; d++) {
		const double got = ref_bf16_value(out[d]);

		if (n == 0)
			ck_assert_uint_eq(out[d], 0);
		else
			ck_assert_msg(
				is_close_out(got, want, d),
				"token %u head %u dim %u: got %g, want %g", t,
				h, d, got, want->out[d]);
	}
	if (n == 0)
		ck_assert_double_eq(lse, w->a.empty_lse ? -INFINITY : INFINITY);
	else
		ck_assert_msg(is_close_lse(lse, want),
			      "token %u head %u lse: got %.9g, want %.9g", t, h,
			      lse, want->lse);
}

/* Whether a head's results are `want`. */
static int
is_close(const decode_world *w, uint32_t t, uint32_t h,
	 const ref_attend_result *want)
{
	const uint16_t *out = decode_out(w, t, h);
	uint32_t d;

	for (d = 0; d < REF_LATENT; d++)
		if (!ref_close_out(ref_bf16_value(out[d]), want->out[d],
				   want->magnitude[d]))
			return 0;
	return is_close_lse(decode_lse(w, t, h), want);
}

/* The results of a head with n rows. Kernels for matrix instructions of bf16,
 * and the portable one, round scales and values to bf16. */
static void
attend_head(decode_world *w, uint32_t t, uint32_t h, uint32_t n,
	    ref_attend_result *want)
{
	const spmla_sparse_decode_args *a = &w->a;
	const uint16_t *q =
		a->q + t * a->q_token_stride_elems + h * a->q_head_stride_elems;
	const float *sink = a->attn_sink ? &a->attn_sink[h] : NULL;

	ref_attend(&w->work, q, w->work.kv_rows, n, a->softmax_scale, sink,
		   want);
	if (fixture_on_cpu() || n == 0 || is_close(w, t, h, want))
		return;
	w->rounded = !w->rounded;
	rows_of(w, t, w->rounded, w->work.kv_rows);
	ref_attend(&w->work, q, w->work.kv_rows, n, a->softmax_scale, sink,
		   want);
}

static void
check_values(decode_world *w)
{
	const spmla_sparse_decode_args *a = &w->a;
	ref_attend_result want;
	uint32_t t, h;

	for (t = 0; t < a->tokens; t++) {
		const ref_kv_row **rows = w->work.kv_rows;
		const uint32_t n = rows_of(w, t, w->rounded, rows);

		for (h = 0; h < a->heads; h++) {
			attend_head(w, t, h, n, &want);
			check_head(w, t, h, n, &want);
		}
	}
}

/* Marks what has to be written with 1. */
static void
mark(const decode_world *w, uint8_t *out, uint8_t *lse)
{
	const spmla_sparse_decode_args *a = &w->a;
	uint32_t t, h;

	memset(out, 0, w->out_elems);
	memset(lse, 0, w->lse_elems);
	for (t = 0; t < a->tokens; t++)
		for (h = 0; h < a->heads; h++) {
			memset(out + t * a->out_token_stride_elems +
				       h * a->out_head_stride_elems,
			       1, REF_LATENT);
			lse[t * a->lse_token_stride_elems +
			    h * a->lse_head_stride_elems] = 1;
		}
}

void
decode_run(fixture *f, const decode_world *w)
{
	ck_assert_int_eq(spmla_sparse_decode(f->ctx, &w->a, NULL), SPMLA_OK);
}

void
decode_check(fixture *f, decode_world *w)
{
	const size_t out_bytes = w->out_elems * sizeof *w->out;
	const size_t lse_bytes = w->lse_elems * sizeof *w->lse;
	uint8_t *out_mark = malloc(w->out_elems), *lse_mark = malloc(lse_bytes);
	uint32_t i;

	mark(w, out_mark, lse_mark);
	memset(w->out, 0x5A, out_bytes);
	memset(w->lse, 0x5A, lse_bytes);
	decode_run(f, w);
	for (i = 0; i < w->out_elems; i++)
		ck_assert(out_mark[i] || w->out[i] == 0x5A5A);
	for (i = 0; i < w->lse_elems; i++)
		if (!lse_mark[i] || !w->a.lse)
			ck_assert_mem_eq(&w->lse[i], "\x5A\x5A\x5A\x5A", 4);
	if (w->a.lse)
		check_values(w);
	free(out_mark);
	free(lse_mark);
}

const uint16_t *
decode_out(const decode_world *w, uint32_t token, uint32_t head)
{
	return w->out + token * w->a.out_token_stride_elems +
	       head * w->a.out_head_stride_elems;
}

float
decode_lse(const decode_world *w, uint32_t token, uint32_t head)
{
	return w->lse[token * w->a.lse_token_stride_elems +
		      head * w->a.lse_head_stride_elems];
}

void
decode_expect_status(fixture *f, spmla_fault fault, uint32_t row)
{
	const spmla_device_status s = fixture_status(f);

	ck_assert_str_eq(spmla_fault_name(s.fault), spmla_fault_name(fault));
	ck_assert_uint_eq(s.count > 0, fault != SPMLA_FAULT_NONE);
	if (fault != SPMLA_FAULT_NONE)
		ck_assert_uint_eq(s.row, row);
	ck_assert_int_eq(spmla_status_clear(f->ctx), SPMLA_OK);
}
