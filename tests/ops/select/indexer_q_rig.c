/* SPDX-License-Identifier: Apache-2.0
 *
 * See indexer_q_rig.h.
 */
#include "tests/ops/select/indexer_q_rig.h"
#include "tests/reference/mxfp4_ref.h"
#include "tests/reference/narrow_ref.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 128, STRIDE = 136, RED_ZONE = 64 };

static uint64_t rng;

static double
mul(double a, double b)
{
	return ref_round_f32(a * b);
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
q_rig_fill(q_rig *r)
{
	const uint32_t tokens = r->a.tokens, heads = r->a.heads;
	uint32_t i;

	for (i = 0; i < tokens * heads; i++)
		fill_row16(&rng, r->q + i * STRIDE, DIM);
	for (i = 0; i < tokens * (heads + 3); i++) {
		r->weights_bf16[i] = test_bf16(rng_float(&rng));
		r->weights_f32[i] = rng_float(&rng);
	}
	fill_positions(&rng, r->positions, tokens);
}

void
q_rig_open(q_rig *r, uint32_t tokens, uint32_t heads)
{
	const uint32_t rows = tokens * heads;

	memset(r, 0, sizeof *r);
	open_context(&r->f);
	r->q_bytes = rows * DIM + RED_ZONE;
	r->weights_bytes = rows * sizeof(float) + RED_ZONE;
	r->scales_bytes = rows * sizeof(int32_t) + RED_ZONE;
	r->q = test_alloc((rows + 1) * STRIDE * 2, 0xff); /* NaN */
	r->weights_bf16 = test_alloc(tokens * (heads + 3) * 2, 0xff);
	r->weights_f32 = test_alloc(tokens * (heads + 3) * 4, 0xff);
	r->positions = test_alloc(tokens * sizeof *r->positions, 0xff);
	r->cos_sin = rope_table();
	r->q_out = test_alloc(r->q_bytes, 0xAB);
	r->q_want = test_alloc(r->q_bytes, 0xAB);
	r->weights_out = test_alloc(r->weights_bytes, 0xAB);
	r->weights_want = test_alloc(r->weights_bytes, 0xAB);
	r->scales_out = test_alloc(r->scales_bytes, 0xAB);
	r->scales_want = test_alloc(r->scales_bytes, 0xAB);
	r->a.struct_bytes = (uint32_t)sizeof r->a;
	r->a.tokens = tokens;
	r->a.heads = heads;
	r->a.scale_floor = SPMLA_Q_SCALE_FUSED;
	r->a.weights_dtype = SPMLA_DTYPE_BF16;
	r->a.softmax_scale = 0.08838834764831845f;
	r->a.head_scale = 1 / sqrtf((float)heads);
	r->a.q = r->q;
	r->a.q_token_stride_elems = heads * STRIDE;
	r->a.q_head_stride_elems = STRIDE;
	r->a.weights = r->weights_bf16;
	r->a.weights_stride_elems = heads + 3;
	r->a.q_out = r->q_out;
	r->a.weights_out = (float *)(void *)r->weights_out;
	q_rig_fill(r);
}

void
q_rig_close(q_rig *r)
{
	fixture_close(&r->f);
	free(r->q);
	free(r->weights_bf16);
	free(r->weights_f32);
	free(r->positions);
	free(r->cos_sin);
	free(r->q_out);
	free(r->q_want);
	free(r->weights_out);
	free(r->weights_want);
	free(r->scales_out);
	free(r->scales_want);
}

void
q_rig_rope(q_rig *r, uint32_t style)
{
	r->a.rope_style = style;
	r->a.positions = r->positions;
	r->a.cos_sin = r->cos_sin;
	r->a.cos_sin_rows = ROPE_POSITIONS;
}

void
q_rig_f32(q_rig *r)
{
	r->a.weights_dtype = SPMLA_DTYPE_F32;
	r->a.weights = r->weights_f32;
}

void
q_rig_v4(q_rig *r)
{
	r->a.rope_part = SPMLA_ROPE_LAST;
	r->a.scale_floor = SPMLA_Q_SCALE_V4;
}

void
q_rig_mxfp4(q_rig *r)
{
	r->a.q_format = SPMLA_INDEX_Q_MXFP4;
	r->a.q_scales = (int32_t *)(void *)r->scales_out;
}

static void
q_rig_reset(q_rig *r)
{
	memset(r->q_out, 0xAB, r->q_bytes);
	memset(r->weights_out, 0xAB, r->weights_bytes);
	memset(r->scales_out, 0xAB, r->scales_bytes);
}

void
q_rig_run(q_rig *r)
{
	q_rig_reset(r);
	ck_assert_int_eq(spmla_indexer_q_prep(r->f.ctx, &r->a, NULL), SPMLA_OK);
	fixture_drain(&r->f);
}

/* Codes and, of e4m3, their scale; 1 else. */
static double
model_codes(q_rig *r, uint32_t out, const double *x)
{
	const double least = r->a.scale_floor == SPMLA_Q_SCALE_V4
				     ? (double)1e-4f
				     : (double)1e-10f;
	double s;
	uint32_t i;

	if (r->a.q_format == SPMLA_INDEX_Q_MXFP4) {
		ref_mxfp4_encode(x, DIM, r->q_want + out * DIM / 2,
				 r->scales_want + 4 * out);
		return 1;
	}
	s = ref_round_f32(fmax(ref_amax(x, DIM), least) /
			  (r->a.q_encoding == SPMLA_E4M3_FNUZ ? 224 : 448));
	if (r->a.scale_floor == SPMLA_Q_SCALE_GROUP)
		s = fmax(s, least);
	s = ref_pow2up(s);
	for (i = 0; i < DIM; i++)
		r->q_want[out * DIM + i] =
			encoded_quotient(x[i], s, r->a.q_encoding);
	return s;
}

static float
model_query(q_rig *r, uint32_t t, uint32_t h)
{
	const int64_t at = t * r->a.weights_stride_elems + h;
	const uint16_t *q = r->a.q + t * r->a.q_token_stride_elems +
			    h * r->a.q_head_stride_elems;
	double x[DIM], s, w;
	uint32_t i;

	for (i = 0; i < DIM; i++)
		x[i] = ref_bf16_value(q[i]);
	if (r->a.rope_style)
		ref_rope(x + (r->a.rope_part == SPMLA_ROPE_LAST ? 64 : 0),
			 r->cos_sin + r->positions[t] * 64,
			 (ref_rope_style)r->a.rope_style);
	s = model_codes(r, t * r->a.heads + h, x);
	w = r->a.weights_dtype == SPMLA_DTYPE_F32
		    ? (double)r->weights_f32[at]
		    : ref_bf16_value(r->weights_bf16[at]);
	w = mul(mul(w, s), (double)r->a.softmax_scale);
	return (float)mul(w, (double)r->a.head_scale);
}

static void
q_rig_model(q_rig *r)
{
	const uint32_t mxfp4 = r->a.q_format == SPMLA_INDEX_Q_MXFP4;
	const uint32_t bytes = mxfp4 ? DIM / 2 : DIM;
	uint32_t t, h;

	memset(r->q_want, 0xAB, r->q_bytes);
	memset(r->weights_want, 0xAB, r->weights_bytes);
	memset(r->scales_want, 0xAB, r->scales_bytes);
	for (t = 0; t < r->a.tokens; t++)
		for (h = 0; h < r->a.heads; h++) {
			const uint32_t out = t * r->a.heads + h;
			float w = 0;

			if (!r->a.rope_style ||
			    (r->positions[t] >= 0 &&
			     (uint32_t)r->positions[t] < r->a.cos_sin_rows)) {
				w = model_query(r, t, h);
			} else {
				memset(r->q_want + out * bytes, 0, bytes);
				memset(r->scales_want + 4 * out,
				       mxfp4 ? 0 : 0xAB, 4);
			}
			memcpy(r->weights_want + out * sizeof w, &w, sizeof w);
		}
}

void
q_rig_check(q_rig *r)
{
	uint32_t i, rows = r->a.tokens * r->a.heads;

	q_rig_model(r);
	q_rig_run(r);
	check_bytes(r->q_out, r->q_want, r->q_bytes);
	check_bytes(r->scales_out, r->scales_want, r->scales_bytes);
	for (i = 0; i < rows; i++) {
		float got, want;

		memcpy(&got, r->weights_out + i * sizeof got, sizeof got);
		memcpy(&want, r->weights_want + i * sizeof want, sizeof want);
		/* Which NaN is not specified. */
		if (!isnan(got) || !isnan(want))
			check_bytes(&got, &want, sizeof got);
	}
	check_bytes(r->weights_out + rows * sizeof(float),
		    r->weights_want + rows * sizeof(float),
		    r->weights_bytes - rows * sizeof(float));
}

float
q_rig_weight(const q_rig *r, uint32_t t, uint32_t h)
{
	return r->a.weights_out[t * r->a.heads + h];
}
