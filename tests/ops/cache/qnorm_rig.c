/* SPDX-License-Identifier: Apache-2.0
 *
 * See qnorm_rig.h.
 */
#include "tests/ops/cache/qnorm_rig.h"
#include "tests/reference/narrow_ref.h"
#include "tests/reference/v4_row_ref.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 512, STRIDE = 520, OUT_STRIDE = 528, PAGES = 4, RED_ZONE = 64 };

/* Rows of all magnitudes and, one in 8, of any bits. */
static void
qnorm_fill(qnorm_rig *r)
{
	static uint64_t rng;
	uint32_t t, h;

	if (rng == 0)
		rng = test_seed();
	for (t = 0; t < r->a.tokens; t++) {
		for (h = 0; h < r->a.heads; h++)
			fill_row16(&rng, r->q + (t * r->a.heads + h) * STRIDE,
				   DIM);
		fill_row16(&rng, r->kv + t * STRIDE, DIM);
	}
	fill_slots(&rng, r->slots, r->a.tokens,
		   r->a.cache.pages * r->a.cache.entries_per_page);
	fill_positions(&rng, r->positions, r->a.tokens);
}

static void
open_cache(qnorm_rig *r, uint32_t layout, uint32_t entries)
{
	r->a.cache = (spmla_cache)SPMLA_CACHE_INIT;
	r->a.cache.layout = layout;
	r->a.cache.entries_per_page = entries;
	r->a.cache.pages = PAGES;
	r->a.cache.page_stride_bytes = v4_ref_page_bytes(layout, entries) + 48;
	r->pool_bytes = PAGES * r->a.cache.page_stride_bytes + RED_ZONE;
	r->pool = test_alloc(r->pool_bytes, 0xAB);
	r->want = test_alloc(r->pool_bytes, 0xAB);
	r->a.cache.base = r->pool;
	r->a.kv_scale = 1;
}

void
qnorm_open(qnorm_rig *r, uint32_t layout, uint32_t tokens, uint32_t heads,
	   uint32_t padded_heads, uint32_t entries)
{
	spmla_config config;

	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	r->a.struct_bytes = (uint32_t)sizeof r->a;
	r->a.tokens = r->a.kv_tokens = tokens;
	r->a.heads = heads;
	r->a.padded_heads = padded_heads;
	r->a.cos_sin_rows = ROPE_POSITIONS;
	r->a.norm_eps = 1e-6f;
	r->q_bytes = (tokens * padded_heads * OUT_STRIDE) * 2 + RED_ZONE;
	r->q = test_alloc((tokens * heads + 1) * STRIDE * 2, 0xff); /* NaN */
	r->kv = test_alloc((tokens + 1) * STRIDE * 2, 0xff);
	r->slots = test_alloc(tokens * sizeof *r->slots, 0xff);
	r->positions = test_alloc(tokens * sizeof *r->positions, 0);
	r->cos_sin = rope_table();
	r->q_out = test_alloc(r->q_bytes, 0xAB);
	r->q_want = test_alloc(r->q_bytes, 0xAB);
	r->a.q = r->q;
	r->a.q_token_stride_elems = heads * STRIDE;
	r->a.q_head_stride_elems = STRIDE;
	r->a.q_out = r->q_out;
	r->a.q_out_token_stride_elems = padded_heads * OUT_STRIDE;
	r->a.q_out_head_stride_elems = OUT_STRIDE;
	r->a.kv = r->kv;
	r->a.kv_stride_elems = STRIDE;
	r->a.slot_mapping = r->slots;
	r->a.positions = r->positions;
	r->a.cos_sin = r->cos_sin;
	open_cache(r, layout, entries);
	qnorm_fill(r);
}

void
qnorm_close(qnorm_rig *r)
{
	fixture_close(&r->f);
	free(r->q);
	free(r->kv);
	free(r->slots);
	free(r->positions);
	free(r->cos_sin);
	free(r->q_out);
	free(r->q_want);
	free(r->pool);
	free(r->want);
}

uint16_t *
qnorm_head(const qnorm_rig *r, uint32_t t, uint32_t h)
{
	return r->a.q_out + t * r->a.q_out_token_stride_elems +
	       h * r->a.q_out_head_stride_elems;
}

/* Fills the outputs with 0xAB. */
static void
qnorm_reset(qnorm_rig *r)
{
	memset(r->q_out, 0xAB, r->q_bytes);
	memset(r->pool, 0xAB, r->pool_bytes);
}

void
qnorm_run(qnorm_rig *r)
{
	qnorm_reset(r);
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(r->f.ctx, &r->a, NULL),
			 SPMLA_OK);
	fixture_drain(&r->f);
}

/* The position's row of the table, or NULL. */
static const float *
row_of(const qnorm_rig *r, uint32_t t)
{
	const int64_t p = ((const int32_t *)r->a.positions)[t];

	return p < 0 || p >= (int64_t)r->a.cos_sin_rows
		       ? NULL
		       : (const float *)r->a.cos_sin + p * 64;
}

static void
model_query(qnorm_rig *r, uint32_t t, const float *cos_sin)
{
	uint32_t h;

	for (h = 0; h < r->a.padded_heads; h++) {
		uint16_t *out = r->q_want + (qnorm_head(r, t, h) - r->q_out);

		memset(out, 0, DIM * 2);
		if (h < r->a.heads && cos_sin)
			v4_ref_query(r->a.q + t * r->a.q_token_stride_elems +
					     h * r->a.q_head_stride_elems,
				     r->a.norm_eps, cos_sin, out);
	}
}

uint32_t
qnorm_model(qnorm_rig *r)
{
	const spmla_cache *c = &r->a.cache;
	uint32_t faults = 0, t;

	memset(r->q_want, 0xAB, r->q_bytes);
	memset(r->want, 0xAB, r->pool_bytes);
	for (t = 0; t < r->a.tokens; t++) {
		const float *cos_sin = row_of(r, t);
		uint16_t row[DIM];

		faults += !cos_sin;
		model_query(r, t, cos_sin);
		if (t >= r->a.kv_tokens || r->a.slot_mapping[t] < 0)
			continue;
		faults += r->a.slot_mapping[t] / c->entries_per_page >=
			  (int64_t)c->pages;
		if (!cos_sin)
			continue;
		memcpy(row, r->a.kv + t * r->a.kv_stride_elems, sizeof row);
		v4_ref_rotate(row, cos_sin);
		v4_ref_write(c, r->want, r->a.slot_mapping[t], row,
			     r->a.kv_scale);
	}
	return faults;
}

void
qnorm_check(qnorm_rig *r)
{
	const uint32_t faults = qnorm_model(r);

	ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
	qnorm_run(r);
	check_bytes(r->q_out, r->q_want, r->q_bytes);
	check_bytes(r->pool, r->want, r->pool_bytes);
	ck_assert_uint_eq(fixture_status(&r->f).count, faults);
}
