/* SPDX-License-Identifier: Apache-2.0
 *
 * See inv_rope_rig.h.
 */
#include "tests/ops/project/inv_rope_rig.h"
#include "tests/reference/narrow_ref.h"
#include "tests/reference/v4_row_ref.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 512, ROW = DIM + 8, RED_ZONE = 64 };

static double
mul(double a, double b)
{
	return ref_round_f32(a * b);
}

static void
inv_rope_fill(inv_rope_rig *r)
{
	const uint32_t rows = r->a.tokens * r->a.groups * r->a.heads_per_group;
	uint32_t i, part;

	/* Each 128 values around a magnitude of their own. */
	for (i = 0; i < rows; i++)
		for (part = 0; part < 4; part++)
			fill_row16(&r->rng, r->o + i * ROW + part * 128, 128);
	fill_positions(&r->rng, r->positions, r->a.tokens);
}

void
inv_rope_open(inv_rope_rig *r, uint32_t tokens, uint32_t groups,
	      uint32_t heads_per_group)
{
	const uint32_t heads = groups * heads_per_group;
	const uint32_t row = heads_per_group * DIM + 8;
	const uint32_t padded = (tokens + 3) / 4 * 4 + 4;
	spmla_config config;

	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	r->rng = test_seed();
	r->o_elems = (uint64_t)tokens * heads * ROW;
	r->out_bytes = (uint64_t)tokens * groups * row * 2 + RED_ZONE;
	r->scale_words = (uint64_t)padded * heads * 4 + RED_ZONE;
	r->o = test_alloc((r->o_elems + ROW) * 2, 0xff);
	r->positions = test_alloc(tokens * sizeof *r->positions, 0xff);
	r->cos_sin = rope_table();
	r->out = test_alloc(r->out_bytes, 0xAB);
	r->out_want = test_alloc(r->out_bytes, 0xAB);
	r->scales = test_alloc(r->scale_words * 4, 0xAB);
	r->scales_want = test_alloc(r->scale_words * 4, 0xAB);
	r->a.struct_bytes = (uint32_t)sizeof r->a;
	r->a.tokens = tokens;
	r->a.groups = groups;
	r->a.heads_per_group = heads_per_group;
	r->a.quant = SPMLA_O_FP8;
	r->a.rope_style = SPMLA_ROPE_INTERLEAVED;
	r->a.cos_sin_rows = ROPE_POSITIONS;
	r->a.o = r->o;
	r->a.o_token_stride_elems = heads * ROW;
	r->a.o_head_stride_elems = ROW;
	r->a.positions = r->positions;
	r->a.cos_sin = r->cos_sin;
	r->a.out = r->out;
	/* Groups outermost, as the projection wants them. */
	r->a.out_token_stride_elems = row;
	r->a.out_group_stride_elems = (int64_t)tokens * row;
	r->a.scales = r->scales;
	r->a.scale_stride_elems = padded;
	r->a.scale_group_stride_elems = (int64_t)heads_per_group * 4 * padded;
	inv_rope_fill(r);
}

void
inv_rope_close(inv_rope_rig *r)
{
	fixture_close(&r->f);
	free(r->o);
	free(r->positions);
	free(r->cos_sin);
	free(r->out);
	free(r->out_want);
	free(r->scales);
	free(r->scales_want);
}

void
inv_rope_zero(inv_rope_rig *r)
{
	memset(r->o, 0, r->o_elems * 2);
	memset(r->positions, 0, r->a.tokens * sizeof *r->positions);
}

static void
inv_rope_reset(inv_rope_rig *r)
{
	memset(r->out, 0xAB, r->out_bytes);
	memset(r->scales, 0xAB, r->scale_words * 4);
}

void
inv_rope_run(inv_rope_rig *r)
{
	inv_rope_reset(r);
	ck_assert_int_eq(spmla_inv_rope_quant(r->f.ctx, &r->a, NULL), SPMLA_OK);
	fixture_drain(&r->f);
}

static uint64_t
out_at(const inv_rope_rig *r, uint32_t t, uint32_t h)
{
	return t * (uint64_t)r->a.out_token_stride_elems +
	       h / r->a.heads_per_group *
		       (uint64_t)r->a.out_group_stride_elems +
	       (uint64_t)(h % r->a.heads_per_group) * DIM;
}

static uint64_t
scale_at(const inv_rope_rig *r, uint32_t t, uint32_t h, uint32_t i)
{
	const uint32_t each = r->a.quant == SPMLA_O_FP8 ? 4 : 1;
	const uint32_t head = h % r->a.heads_per_group;

	return h / r->a.heads_per_group *
		       (uint64_t)r->a.scale_group_stride_elems +
	       (head * each + (each == 4 ? i : 0)) *
		       (uint64_t)r->a.scale_stride_elems +
	       t;
}

/* A head's values rotated back, with the roundings of f32. */
static void
turn_back(const inv_rope_rig *r, uint32_t t, double *x)
{
	const uint32_t near = r->a.rope_style == SPMLA_ROPE_NEOX ? 1 : 2;
	const uint32_t apart = r->a.rope_style == SPMLA_ROPE_NEOX ? 32 : 1;
	const float *row = r->cos_sin + r->positions[t] * 64;
	uint32_t i;

	if (r->a.rope_style == SPMLA_ROPE_NONE)
		return;
	for (i = 0; i < 32; i++) {
		const double c = (double)row[i], s = (double)row[32 + i];
		double *pair = x + 448 + near * i;
		const double a = pair[0], b = pair[apart];

		pair[0] = ref_round_f32(mul(a, c) + mul(b, s));
		pair[apart] = ref_round_f32(mul(b, c) - mul(a, s));
	}
}

static void
want_scale(inv_rope_rig *r, uint32_t t, uint32_t h, uint32_t i, float s)
{
	uint32_t *word = &r->scales_want[scale_at(r, t, h, i)];
	uint32_t bits;

	memcpy(&bits, &s, sizeof bits);
	if (r->a.quant == SPMLA_O_FP8)
		*word = bits;
	else
		*word = (i ? *word : 0) | bits >> 23 << 8 * i;
}

static void
model_head(inv_rope_rig *r, uint32_t t, uint32_t h)
{
	const uint16_t *o = r->a.o + t * r->a.o_token_stride_elems +
			    h * r->a.o_head_stride_elems;
	uint8_t *codes = r->out_want + out_at(r, t, h);
	double x[DIM], s;
	uint32_t i;

	for (i = 0; i < DIM; i++)
		x[i] = ref_bf16_value(o[i]);
	turn_back(r, t, x);
	for (i = 0; i < DIM; i++) {
		uint16_t half = o[i];

		if (i >= 448 && r->a.rope_style)
			half = v4_ref_bits(x[i]);
		if (r->a.quant == SPMLA_O_BF16)
			memcpy(r->out_want + 2 * (out_at(r, t, h) + i), &half,
			       2);
	}
	for (i = 0; i < 4 && r->a.quant != SPMLA_O_BF16; i++) {
		uint32_t j;

		s = fmax(ref_amax(x + 128 * i, 128), (double)1e-10f);
		s = ref_pow2up(mul(s, (double)(1.0f / 448.0f)));
		for (j = 128 * i; j < 128 * i + 128; j++)
			codes[j] = quotient_code(x[j], s);
		want_scale(r, t, h, i, (float)s);
	}
}

static void
model_lost(inv_rope_rig *r, uint32_t t, uint32_t h)
{
	const uint32_t bytes = r->a.quant == SPMLA_O_BF16 ? 2 : 1;
	uint32_t i;

	memset(r->out_want + bytes * out_at(r, t, h), 0, bytes * DIM);
	for (i = 0; i < 4 && bytes == 1; i++)
		want_scale(r, t, h, i, 0);
}

static void
inv_rope_model(inv_rope_rig *r)
{
	const uint32_t heads = r->a.groups * r->a.heads_per_group;
	uint32_t t, h, i;

	memset(r->out_want, 0xAB, r->out_bytes);
	memset(r->scales_want, 0xAB, r->scale_words * 4);
	for (t = 0; t < (r->a.tokens + 3) / 4 * 4; t++)
		for (h = 0; h < heads; h++) {
			const int32_t p = t < r->a.tokens ? r->positions[t] : 0;

			if (t >= r->a.tokens)
				for (i = 0; i < 4 && r->a.quant; i++)
					want_scale(r, t, h, i, 0);
			else if (r->a.rope_style &&
				 (p < 0 || (uint32_t)p >= r->a.cos_sin_rows))
				model_lost(r, t, h);
			else
				model_head(r, t, h);
		}
}

void
inv_rope_check(inv_rope_rig *r)
{
	inv_rope_model(r);
	inv_rope_run(r);
	check_bytes(r->scales, r->scales_want, r->scale_words * 4);
	check_bytes(r->out, r->out_want, r->out_bytes);
}

const uint8_t *
inv_rope_codes(const inv_rope_rig *r, uint32_t t, uint32_t h)
{
	return r->out + out_at(r, t, h);
}

float
inv_rope_scale_of(const inv_rope_rig *r, uint32_t t, uint32_t h, uint32_t i)
{
	uint32_t bits = r->scales[scale_at(r, t, h, i)];
	float s;

	if (r->a.quant == SPMLA_O_FP8_PACKED)
		bits = (bits >> 8 * i & 255) << 23;
	memcpy(&s, &bits, sizeof s);
	return s;
}
