/* SPDX-License-Identifier: Apache-2.0
 *
 * See indexer_k_rig.h.
 */
#include "tests/ops/cache/indexer_k_rig.h"
#include "tests/reference/mxfp4_ref.h"
#include "tests/reference/narrow_ref.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 128, STRIDE = 136, RED_ZONE = 64 };

static uint64_t rng;

static double
add(double a, double b)
{
	return ref_round_f32(a + b);
}

static double
mul(double a, double b)
{
	return ref_round_f32(a * b);
}

/* 16 lanes, then halves onto halves. */
static double
lane_sum(const double *x)
{
	double lane[16] = {0};
	uint32_t i;

	for (i = 0; i < DIM; i++)
		lane[i % 16] = add(lane[i % 16], x[i]);
	for (i = 0; i < 8; i++)
		lane[i] = add(lane[i], lane[i + 8]);
	for (i = 0; i < 4; i++)
		lane[i] = add(lane[i], lane[i + 4]);
	return add(add(lane[0], lane[2]), add(lane[1], lane[3]));
}

void
k_model_scaled(double *x, const float *weight, float eps)
{
	const double mean = ref_round_f32(lane_sum(x) / DIM);
	double square[DIM], var, rstd;
	uint32_t i;

	for (i = 0; i < DIM; i++) {
		x[i] = add(x[i], -mean);
		square[i] = mul(x[i], x[i]);
	}
	var = ref_round_f32(lane_sum(square) / DIM);
	rstd = ref_round_f32(1 / ref_round_f32(sqrt(add(var, (double)eps))));
	for (i = 0; i < DIM; i++)
		x[i] = mul(mul(x[i], rstd), (double)weight[i]);
}

void
k_model_norm(double *x, const float *weight, const float *bias, float eps)
{
	uint32_t i;

	k_model_scaled(x, weight, eps);
	for (i = 0; i < DIM; i++)
		x[i] = ref_round_bf16(add(x[i], (double)bias[i]));
}

static void
open_context(fixture *f)
{
	spmla_config config;

	if (rng == 0)
		rng = test_seed();
	fixture_config(&config);
	fixture_open(f, &config, 0);
}

static void
k_rig_fill(k_rig *r)
{
	uint32_t t;

	for (t = 0; t < r->a.tokens; t++)
		fill_row16(&rng, r->k + t * STRIDE, DIM);
	fill_slots(&rng, r->slots, r->a.tokens,
		   r->a.cache.pages * r->a.cache.entries_per_page);
	fill_positions(&rng, r->positions, r->a.tokens);
}

void
k_rig_open(k_rig *r, uint32_t tokens, uint32_t entries, uint32_t pages,
	   uint64_t pad)
{
	const spmla_cache cache = SPMLA_CACHE_INIT;

	memset(r, 0, sizeof *r);
	open_context(&r->f);
	r->a.struct_bytes = (uint32_t)sizeof r->a;
	r->a.tokens = tokens;
	r->a.scale_mode = SPMLA_SCALE_POW2;
	r->a.cache = cache;
	r->a.cache.layout = SPMLA_LAYOUT_INDEX_FP8;
	r->a.cache.entries_per_page = entries;
	r->a.cache.pages = pages;
	r->a.cache.page_stride_bytes = entries * 132 + pad;
	r->pool_bytes = pages * r->a.cache.page_stride_bytes + RED_ZONE;
	r->pool = test_alloc(r->pool_bytes, 0xAB);
	r->want = test_alloc(r->pool_bytes, 0xAB);
	r->k = test_alloc((tokens + 1) * STRIDE * 2, 0xff); /* NaN */
	r->slots = test_alloc(tokens * sizeof *r->slots, 0xff);
	r->positions = test_alloc(tokens * sizeof *r->positions, 0xff);
	r->cos_sin = rope_table();
	r->a.k = r->k;
	r->a.k_stride_elems = STRIDE;
	r->a.slot_mapping = r->slots;
	r->a.cache.base = r->pool;
	k_rig_fill(r);
}

void
k_rig_close(k_rig *r)
{
	fixture_close(&r->f);
	free(r->pool);
	free(r->want);
	free(r->k);
	free(r->slots);
	free(r->positions);
	free(r->cos_sin);
}

void
k_rig_form(k_rig *r, uint32_t form)
{
	if (form == K_RIG_MXFP4) {
		r->a.cache.layout = SPMLA_LAYOUT_INDEX_MXFP4;
		return;
	}
	if (form > K_RIG_MXFP4) {
		r->a.cache.encoding = SPMLA_E4M3_FNUZ;
		form -= K_RIG_FNUZ;
	}
	r->a.scale_mode = form;
}

void
k_rig_norm(k_rig *r)
{
	uint32_t i;

	for (i = 0; i < DIM; i++) {
		r->weight[i] = 1 + rng_float(&rng) / 2;
		r->bias[i] = rng_float(&rng) / 4;
	}
	r->a.norm_weight = r->weight;
	r->a.norm_bias = r->bias;
	r->a.norm_eps = 1e-6f;
}

void
k_rig_rope(k_rig *r, uint32_t style)
{
	r->a.rope_style = style;
	r->a.positions = r->positions;
	r->a.cos_sin = r->cos_sin;
	r->a.cos_sin_rows = ROPE_POSITIONS;
}

/* The pool to 0xAB. */
static void
k_rig_reset(k_rig *r)
{
	memset(r->pool, 0xAB, r->pool_bytes);
}

void
k_rig_run(k_rig *r)
{
	k_rig_reset(r);
	ck_assert_int_eq(spmla_indexer_k_insert(r->f.ctx, &r->a, NULL),
			 SPMLA_OK);
	fixture_drain(&r->f);
}

/* MXFP4 has four scales where e4m3 has one. */
static void
model_key(const k_rig *r, uint32_t t, uint8_t *codes, uint8_t *scale)
{
	const uint16_t *k = (const uint16_t *)r->a.k + t * r->a.k_stride_elems;
	double x[DIM], s;
	uint32_t i;
	float f;

	for (i = 0; i < DIM; i++)
		x[i] = value16(k[i], r->a.dtype);
	if (r->a.norm_weight)
		k_model_norm(x, r->a.norm_weight, r->a.norm_bias,
			     r->a.norm_eps);
	if (r->a.rope_style)
		ref_rope(x, r->cos_sin + r->positions[t] * 64,
			 (ref_rope_style)r->a.rope_style);
	if (r->a.cache.layout == SPMLA_LAYOUT_INDEX_MXFP4) {
		ref_mxfp4_encode(x, DIM, codes, scale);
		return;
	}
	s = ref_round_f32(fmax(ref_amax(x, DIM), (double)1e-4f) /
			  (r->a.cache.encoding ? 224 : 448));
	if (r->a.scale_mode == SPMLA_SCALE_POW2)
		s = ref_pow2up(s);
	for (i = 0; i < DIM; i++)
		codes[i] = encoded_quotient(x[i], s, r->a.cache.encoding);
	f = (float)s;
	memcpy(scale, &f, sizeof f);
}

/* Into want. */
static void
k_rig_model(k_rig *r)
{
	const spmla_cache *c = &r->a.cache;
	const int64_t entries = c->entries_per_page;
	const int64_t bytes =
		c->layout == SPMLA_LAYOUT_INDEX_MXFP4 ? DIM / 2 : DIM;
	uint32_t t;

	memset(r->want, 0xAB, r->pool_bytes);
	for (t = 0; t < r->a.tokens; t++) {
		const int64_t slot = r->slots[t];
		uint8_t *page = r->want;

		if (slot < 0 || slot / entries >= c->pages)
			continue;
		if (r->a.rope_style &&
		    (r->positions[t] < 0 ||
		     (uint32_t)r->positions[t] >= r->a.cos_sin_rows))
			continue;
		page += (uint64_t)(slot / entries) * c->page_stride_bytes;
		model_key(r, t, page + slot % entries * bytes,
			  page + entries * bytes + slot % entries * 4);
	}
}

void
k_rig_check(k_rig *r)
{
	k_rig_model(r);
	k_rig_run(r);
	check_bytes(r->pool, r->want, r->pool_bytes);
}

float
k_rig_scale(const k_rig *r, int64_t slot)
{
	const int64_t entries = r->a.cache.entries_per_page;
	float s;

	memcpy(&s,
	       r->pool +
		       slot / entries * (int64_t)r->a.cache.page_stride_bytes +
		       entries * 128 + slot % entries * 4,
	       sizeof s);
	return s;
}
