/* SPDX-License-Identifier: Apache-2.0
 *
 * See v4_decode_world.h.
 */
#include "tests/ops/attend/v4_decode_world.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAD = 8, DIM = 512 };

static void
open_cache(spmla_cache *c, uint32_t entries)
{
	*c = (spmla_cache)SPMLA_CACHE_INIT;
	c->layout = SPMLA_LAYOUT_V4_FP8;
	c->entries_per_page = entries;
	c->pages = (V4_SLOTS + entries - 1) / entries;
	c->page_stride_bytes = (entries * 584ull + 575) / 576 * 576;
	c->base = test_alloc(c->pages * c->page_stride_bytes, 0xFF);
}

static void
open_splits(v4_world *w)
{
	const uint32_t heads = w->a.heads;

	w->split_out = test_alloc(V4_SPLIT_ROWS * heads * DIM * 4ull, 0xFF);
	w->split_lse = test_alloc(V4_SPLIT_ROWS * heads * 4ull, 0xFF);
	w->a.tile_scheduler_metadata = w->parts;
	w->a.num_splits = w->num_splits;
	w->a.split_out = w->split_out;
	w->a.split_lse = w->split_lse;
	w->a.split_rows = V4_SPLIT_ROWS;
}

void
v4_open(v4_world *w, uint32_t heads, uint32_t entries, uint32_t topk,
	uint32_t extra_entries, uint32_t extra_topk)
{
	v4_open_tokens(w, V4_TOKENS, heads, entries, topk, extra_entries,
		       extra_topk);
}

void
v4_open_tokens(v4_world *w, uint32_t tokens, uint32_t heads, uint32_t entries,
	       uint32_t topk, uint32_t extra_entries, uint32_t extra_topk)
{
	const uint32_t row = DIM + PAD;
	const uint32_t elems = tokens * (heads * row + PAD);
	uint32_t i;

	memset(w, 0, sizeof *w);
	w->rng = test_seed() + heads * 100 + entries + topk + extra_topk;
	w->out_elems = elems;
	w->lse_elems = heads * (tokens + 1);
	w->q = test_alloc(elems * 2, 0);
	w->slots = test_alloc(tokens * (topk + PAD) * 4, 0xFF);
	w->extra_slots = test_alloc(tokens * (extra_topk + PAD) * 4, 0xFF);
	w->out = test_alloc(elems * 2, 0);
	w->lse = test_alloc(w->lse_elems * 4, 0);
	w->rows = calloc(topk + extra_topk + 1, sizeof *w->rows);
	ck_assert(w->rows && ref_work_open(&w->work, topk + extra_topk, 1));
	for (i = 0; i < elems; i++)
		w->q[i] = test_bf16(rng_float(&w->rng));
	w->a.struct_bytes = sizeof w->a;
	w->a.tokens = tokens;
	w->a.heads = heads;
	w->a.topk = topk;
	w->a.softmax_scale = 0.0721687824f;
	w->a.q = w->q;
	w->a.q_token_stride_elems = heads * row + PAD;
	w->a.q_head_stride_elems = row;
	w->a.slots = w->slots;
	w->a.slots_stride_elems = topk + PAD;
	w->a.out = w->out;
	w->a.out_token_stride_elems = heads * row + PAD;
	w->a.out_head_stride_elems = row;
	w->a.lse = w->lse;
	w->a.lse_token_stride_elems = 1;
	w->a.lse_head_stride_elems = tokens + 1;
	w->a.extra_topk = extra_topk;
	w->a.extra_slots = w->extra_slots;
	w->a.extra_slots_stride_elems = extra_topk + PAD;
	open_cache(&w->a.cache, entries);
	open_cache(&w->a.extra_cache, extra_entries);
	open_splits(w);
}

void
v4_make_odd(v4_world *w)
{
	w->a.out_token_stride_elems--; /* there is padding */
}

void
v4_close(v4_world *w)
{
	ref_work_close(&w->work);
	free(w->rows);
	free(w->q);
	free(w->slots);
	free(w->extra_slots);
	free(w->out);
	free(w->lse);
	free(w->split_out);
	free(w->split_lse);
	free(w->a.cache.base);
	free(w->a.extra_cache.base);
}

int32_t *
v4_slots(const v4_world *w, uint32_t token)
{
	return w->slots + token * w->a.slots_stride_elems;
}

int32_t *
v4_extra(const v4_world *w, uint32_t token)
{
	return w->extra_slots + token * w->a.extra_slots_stride_elems;
}

static uint8_t *
page_of(const spmla_cache *c, int32_t slot)
{
	return (uint8_t *)c->base +
	       (uint64_t)slot / c->entries_per_page * c->page_stride_bytes;
}

uint8_t *
v4_row(const spmla_cache *c, int32_t slot)
{
	return page_of(c, slot) + (uint64_t)slot % c->entries_per_page * 576;
}

uint8_t *
v4_scales(const spmla_cache *c, int32_t slot)
{
	return page_of(c, slot) + c->entries_per_page * 576ull +
	       (uint64_t)slot % c->entries_per_page * 8;
}

static void
put_half(uint8_t *at, float x)
{
	const uint16_t half = test_bf16(x);

	memcpy(at, &half, 2);
}

void
v4_put(const spmla_cache *c, int32_t slot, float value, float rope)
{
	uint32_t i;

	memset(v4_row(c, slot), ref_e4m3(value), 448);
	memset(v4_scales(c, slot), 127, 7);
	for (i = 0; i < 64; i++)
		put_half(v4_row(c, slot) + 448 + i * 2, rope);
}

static void
put_random(v4_world *w, const spmla_cache *c, int32_t slot)
{
	uint8_t *row = v4_row(c, slot);
	uint32_t i;

	for (i = 0; i < 448; i++) { /* codes up to 0x38, which is 1 */
		const uint64_t bits = rng_next(&w->rng);

		row[i] = (uint8_t)((bits & 0x80) | (bits >> 8) % 0x39);
	}
	for (i = 0; i < 7; i++)
		v4_scales(c, slot)[i] = (uint8_t)(125 + rng_below(&w->rng, 4));
	for (i = 0; i < 64; i++)
		put_half(v4_row(c, slot) + 448 + i * 2, rng_float(&w->rng));
}

static void
choose(v4_world *w, const spmla_cache *c, int32_t *slots, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		slots[i] = -1;
		if (rng_below(&w->rng, 7) == 0)
			continue;
		slots[i] = (int32_t)rng_below(&w->rng, V4_SLOTS);
		put_random(w, c, slots[i]);
	}
}

void
v4_choose(v4_world *w)
{
	uint32_t t;

	for (t = 0; t < w->a.tokens; t++) {
		choose(w, &w->a.cache, v4_slots(w, t), w->a.topk);
		choose(w, &w->a.extra_cache, v4_extra(w, t), w->a.extra_topk);
	}
}

/* ---- What has to come out ---------------------------------------------- */

/* The reference's form of a row, zeros behind its 512 values. */
static void
read_row(const spmla_cache *c, int32_t slot, ref_kv_row *to)
{
	const uint8_t *row = v4_row(c, slot), *scales = v4_scales(c, slot);
	uint16_t half;
	uint32_t i;

	for (i = 0; i < 448; i++)
		to->k[i] = scales[i / 64] == 255 ? (double)NAN
						 : ldexp(ref_e4m3_value(row[i]),
							 scales[i / 64] - 127);
	for (i = 0; i < 64; i++) {
		memcpy(&half, row + 448 + i * 2, 2);
		to->k[448 + i] = ref_bf16_value(half);
		to->k[512 + i] = 0;
	}
}

/* Adds the rows that count of a list to w->rows; returns how many there are
 * then. */
static uint32_t
add_rows(v4_world *w, const spmla_cache *c, const int32_t *slots, uint32_t n,
	 const int32_t *len, uint32_t count)
{
	const int64_t limit = (int64_t)c->pages * c->entries_per_page;
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (len && (int64_t)i >= *len)
			break;
		if (slots[i] < 0 || slots[i] >= limit)
			continue;
		read_row(c, slots[i], &w->rows[count]);
		w->work.kv_rows[count] = &w->rows[count];
		count++;
	}
	return count;
}

static uint32_t
rows_of(v4_world *w, uint32_t t)
{
	const uint32_t n = add_rows(
		w, &w->a.cache, w->a.slots + t * w->a.slots_stride_elems,
		w->a.topk, w->a.topk_lens ? &w->a.topk_lens[t] : NULL, 0);

	if (w->a.extra_topk == 0)
		return n;
	return add_rows(w, &w->a.extra_cache, v4_extra(w, t), w->a.extra_topk,
			w->a.extra_topk_lens ? &w->a.extra_topk_lens[t] : NULL,
			n);
}

static void
check_head(v4_world *w, uint32_t t, uint32_t h, uint32_t n)
{
	const float got_lse = v4_lse(w, t, h);
	uint16_t q[REF_DIM] = {0};
	ref_attend_result want;
	uint32_t d;

	memcpy(q,
	       w->a.q + t * w->a.q_token_stride_elems +
		       h * w->a.q_head_stride_elems,
	       DIM * 2);
	ref_attend(&w->work, q, w->work.kv_rows, n, w->a.softmax_scale,
		   w->a.attn_sink ? &w->a.attn_sink[h] : NULL, &want);
	if (n == 0 && w->a.empty_lse == SPMLA_EMPTY_LSE_MINUS_INF)
		want.lse = -INFINITY;
	/* Queries may be f16 on a GPU: see decode_world.c. */
	ck_assert_msg(
		ref_close_lse(got_lse, want.lse) ||
			(!fixture_on_cpu() &&
			 fabs(got_lse - want.lse) <= 0x1p-13 * want.terms),
		"token %u head %u lse: got %.9g, want %.9g", t, h, got_lse,
		want.lse);
	for (d = 0; d < DIM; d++) {
		const double got = ref_bf16_value(v4_out(w, t, h)[d]);

		if (n == 0)
			ck_assert_uint_eq(v4_out(w, t, h)[d], 0);
		else
			ck_assert_msg(ref_close_out(got, want.out[d],
						    want.magnitude[d]),
				      "token %u head %u dim %u: got %g, want "
				      "%g",
				      t, h, d, got, want.out[d]);
	}
}

/* ---- Runs -------------------------------------------------------------- */

void
v4_run(fixture *f, v4_world *w)
{
	ck_assert_int_eq(spmla_sparse_decode(f->ctx, &w->a, NULL), SPMLA_OK);
	if (w->a.parts == 0 || w->a.combine)
		return;
	w->combine = (spmla_split_combine_args){
		.struct_bytes = sizeof w->combine,
		.tokens = w->a.tokens,
		.heads = w->a.heads,
		.split_rows = w->a.split_rows,
		.empty_lse = w->a.empty_lse,
		.num_splits = w->a.num_splits,
		.split_out = w->a.split_out,
		.split_lse = w->a.split_lse,
		.attn_sink = w->a.attn_sink,
		.out = w->a.out,
		.out_token_stride_elems = w->a.out_token_stride_elems,
		.out_head_stride_elems = w->a.out_head_stride_elems,
		.lse = w->a.lse,
		.lse_token_stride_elems = w->a.lse_token_stride_elems,
		.lse_head_stride_elems = w->a.lse_head_stride_elems,
		.next_n = w->a.next_n,
		.out_request_stride_elems = w->a.out_request_stride_elems,
		.lse_request_stride_elems = w->a.lse_request_stride_elems,
		.lse_base = w->a.lse_base,
		.lse_sink = w->a.lse_sink,
		.whole_tokens = w->a.whole_tokens};
	ck_assert_int_eq(spmla_split_combine(f->ctx, &w->combine, NULL),
			 SPMLA_OK);
}

void
v4_expect(v4_world *w)
{
	uint32_t t, h;

	for (t = 0; t < w->a.tokens; t++) {
		const uint32_t n = rows_of(w, t);

		for (h = 0; h < w->a.heads; h++)
			check_head(w, t, h, n);
	}
}

void
v4_check(fixture *f, v4_world *w)
{
	const uint32_t heads = w->a.tokens * w->a.heads;
	uint64_t i, untouched = 0;

	memset(w->out, 0x5A, w->out_elems * sizeof *w->out);
	memset(w->lse, 0x5A, w->lse_elems * sizeof *w->lse);
	v4_run(f, w);
	for (i = 0; i < w->out_elems; i++)
		untouched += w->out[i] == 0x5A5A;
	ck_assert_uint_eq(untouched, w->out_elems - heads * DIM);
	for (untouched = i = 0; i < w->lse_elems; i++)
		untouched += !memcmp(&w->lse[i], "\x5A\x5A\x5A\x5A", 4);
	ck_assert_uint_eq(untouched, w->lse_elems - heads);
	v4_expect(w);
}

static uint32_t
clamped(const int32_t *lens, uint32_t t, uint32_t most)
{
	if (!lens)
		return most;
	return lens[t] < 0               ? 0
	       : lens[t] > (int32_t)most ? most
					 : (uint32_t)lens[t];
}

uint32_t
v4_blocks(const v4_world *w, uint32_t token)
{
	const uint32_t len = clamped(w->a.topk_lens, token, w->a.topk);
	const uint32_t extra =
		clamped(w->a.extra_topk_lens, token, w->a.extra_topk);

	return (len + 63) / 64 + (len == 0) + (extra + 63) / 64;
}

const uint16_t *
v4_out(const v4_world *w, uint32_t token, uint32_t head)
{
	return w->out + token * w->a.out_token_stride_elems +
	       head * w->a.out_head_stride_elems;
}

float
v4_lse(const v4_world *w, uint32_t token, uint32_t head)
{
	return w->lse[token * w->a.lse_token_stride_elems +
		      head * w->a.lse_head_stride_elems];
}
