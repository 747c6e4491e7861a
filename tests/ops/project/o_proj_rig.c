/* SPDX-License-Identifier: Apache-2.0
 *
 * See o_proj_rig.h.
 */
#include "tests/ops/project/o_proj_rig.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ops/project/project_rig.h"
#include "tests/reference/narrow_ref.h"

enum { PAD = 16, FEW = 19 };

static uint32_t
is_fp8(const o_proj_rig *r)
{
	return r->a.quant != SPMLA_O_BF16;
}

static float
value_at(const o_proj_rig *r, const void *base, uint64_t at)
{
	uint16_t half;

	if (is_fp8(r))
		return (float)ref_e4m3_value(((const uint8_t *)base)[at]);
	memcpy(&half, (const uint8_t *)base + 2 * at, 2);
	return test_bf16_value(half);
}

static void
put_at(const o_proj_rig *r, uint8_t *base, uint64_t at, float x)
{
	const uint16_t half = test_bf16(x);

	if (is_fp8(r))
		base[at] = ref_e4m3(x);
	else
		memcpy(base + 2 * at, &half, 2);
}

static uint64_t
o_at(const o_proj_rig *r, uint32_t t, uint32_t g, uint32_t i)
{
	return t * (uint64_t)r->a.o_token_stride_elems +
	       g * (uint64_t)r->a.o_group_stride_elems + i;
}

static uint64_t
w_at(const o_proj_rig *r, uint32_t g, uint32_t d, uint32_t i)
{
	return g * (uint64_t)r->a.w_group_stride_elems +
	       d * (uint64_t)r->a.w_row_stride_elems + i;
}

static uint64_t
o_scale_at(const o_proj_rig *r, uint32_t t, uint32_t g, uint32_t part)
{
	const uint32_t row = r->a.quant == SPMLA_O_FP8 ? part : part / 4;

	return g * (uint64_t)r->a.o_scale_group_stride_elems +
	       row * (uint64_t)r->a.o_scale_stride_elems + t;
}

static uint64_t
w_scale_at(const o_proj_rig *r, uint32_t g, uint32_t block, uint32_t part)
{
	return g * (uint64_t)r->a.w_scale_group_stride_elems +
	       block * (uint64_t)r->a.w_scale_row_stride_elems + part;
}

static float
o_scale(const o_proj_rig *r, uint32_t t, uint32_t g, uint32_t part)
{
	const uint32_t word =
		((const uint32_t *)r->a.o_scales)[o_scale_at(r, t, g, part)];
	float s;

	memcpy(&s, &word, sizeof s);
	if (r->a.quant == SPMLA_O_FP8_PACKED)
		s = ldexpf(1, (int)(word >> part % 4 * 8 & 255) - 127);
	return s;
}

void
o_proj_put_o(o_proj_rig *r, uint32_t t, uint32_t g, uint32_t i, float x)
{
	put_at(r, r->o, o_at(r, t, g, i), x);
}

void
o_proj_put_w(o_proj_rig *r, uint32_t g, uint32_t d, uint32_t i, float x)
{
	put_at(r, r->w, w_at(r, g, d, i), x);
}

void
o_proj_put_o_scale(o_proj_rig *r, uint32_t t, uint32_t g, uint32_t part,
		   float s)
{
	uint32_t *word = &r->o_scales[o_scale_at(r, t, g, part)];
	const uint32_t shift = part % 4 * 8;
	uint32_t bits;

	memcpy(&bits, &s, sizeof bits);
	if (r->a.quant == SPMLA_O_FP8)
		*word = bits;
	else
		*word = (*word & ~(255u << shift)) | bits >> 23 << shift;
}

void
o_proj_put_w_scale(o_proj_rig *r, uint32_t g, uint32_t block, uint32_t part,
		   float s)
{
	r->w_scales[w_scale_at(r, g, block, part)] = s;
}

uint16_t
o_proj_z(const o_proj_rig *r, uint32_t t, uint32_t g, uint32_t d)
{
	return r->a.z[t * r->a.z_token_stride_elems +
		      g * r->a.z_group_stride_elems + d];
}

void
o_proj_fill(o_proj_rig *r)
{
	uint32_t t, g, part, d;
	uint64_t i;

	for (i = 0; i < r->o_bytes; i++)
		r->o[i] = (uint8_t)rng_next(&r->rng) & 0xf7; /* no NaN */
	for (i = 0; i < r->w_bytes; i++)
		r->w[i] = (uint8_t)rng_next(&r->rng) & 0xf7;
	if (!is_fp8(r)) {
		for (i = 0; i < r->o_bytes / 2; i++)
			put_at(r, r->o, i, rng_float(&r->rng));
		for (i = 0; i < r->w_bytes / 2; i++)
			put_at(r, r->w, i, rng_float(&r->rng));
		return;
	}
	for (g = 0; g < r->a.groups; g++)
		for (part = 0; part < r->a.inner / 128; part++) {
			for (t = 0; t < r->a.tokens; t++)
				o_proj_put_o_scale(
					r, t, g, part,
					ldexpf(1,
					       (int)rng_below(&r->rng, 9) - 5));
			for (d = 0; d < r->a.columns / 128; d++)
				o_proj_put_w_scale(r, g, d, part,
						   rng_float(&r->rng));
		}
}

/* Kernels without Hopper's instructions take 8 or 16 tokens at a time. On the
 * emulator, or with few steps, two or three such tiles are enough. */
static uint32_t
some_tokens(const o_proj_rig *r, uint32_t most)
{
	const uint32_t all =
		r->f.plan.device.kind == SPMLA_BACKEND_CPU ||
		project_has(&r->f, SPMLA_KERNEL_o_group_proj_wgmma) ||
		fixture_rounds(most, 0) == most;

	return all || most < FEW ? most : FEW;
}

void
o_proj_open(o_proj_rig *r, uint32_t quant, uint32_t most, uint32_t groups,
	    uint32_t inner, uint32_t columns)
{
	const uint32_t bytes = quant == SPMLA_O_BF16 ? 2 : 1;
	const uint32_t row = inner + PAD, parts = inner / 128;
	const uint32_t z_row = columns + 3, blocks = columns / 128;
	uint32_t tokens, padded;
	spmla_config config;

	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	tokens = some_tokens(r, most);
	padded = (tokens + 3) / 4 * 4;
	r->rng = test_seed();
	r->o_bytes = (uint64_t)tokens * groups * row * bytes;
	r->o_words = (uint64_t)groups * parts * padded;
	r->w_bytes = (uint64_t)groups * columns * row * bytes;
	r->w_floats = (uint64_t)groups * blocks * (parts + 2);
	r->z_elems = (uint64_t)tokens * groups * z_row;
	r->o = test_alloc(r->o_bytes, 0);
	r->o_scales = test_alloc(r->o_words * 4, 0xff);
	r->w = test_alloc(r->w_bytes, 0);
	r->w_scales = test_alloc(r->w_floats * 4, 0xff);
	r->z = test_alloc(r->z_elems * 2, 0);
	r->a = (spmla_o_group_proj_args){
		.struct_bytes = (uint32_t)sizeof r->a,
		.tokens = tokens,
		.groups = groups,
		.inner = inner,
		.columns = columns,
		.quant = quant,
		.o = r->o,
		.o_token_stride_elems = row,
		.o_group_stride_elems = (int64_t)tokens * row,
		.o_scales = r->o_scales,
		.o_scale_stride_elems = padded,
		.o_scale_group_stride_elems = (int64_t)parts * padded,
		.w = r->w,
		.w_group_stride_elems = (int64_t)columns * row,
		.w_row_stride_elems = row,
		.w_scales = r->w_scales,
		.w_scale_group_stride_elems = (int64_t)blocks * (parts + 2),
		.w_scale_row_stride_elems = parts + 2,
		.z = r->z,
		.z_token_stride_elems = (int64_t)groups * z_row,
		.z_group_stride_elems = z_row};
	o_proj_fill(r);
}

void
o_proj_close(o_proj_rig *r)
{
	fixture_close(&r->f);
	free(r->o);
	free(r->o_scales);
	free(r->w);
	free(r->w_scales);
	free(r->z);
}

void
o_proj_zero(o_proj_rig *r)
{
	uint32_t t, g, part, d;

	memset(r->o, 0, r->o_bytes);
	memset(r->w, 0, r->w_bytes);
	for (g = 0; is_fp8(r) && g < r->a.groups; g++)
		for (part = 0; part < r->a.inner / 128; part++) {
			for (t = 0; t < r->a.tokens; t++)
				o_proj_put_o_scale(r, t, g, part, 1);
			for (d = 0; d < r->a.columns / 128; d++)
				o_proj_put_w_scale(r, g, d, part, 1);
		}
}

/* As the op asks: every row begins at a multiple of 16 bytes. */
uint32_t
o_proj_by_matrix(const o_proj_rig *r)
{
	const uint32_t bytes = is_fp8(r) ? 1 : 2;

	return project_has(&r->f, SPMLA_KERNEL_o_group_proj_mma) &&
	       project_aligned(r->a.w, r->a.w_row_stride_elems,
			       r->a.w_group_stride_elems, bytes) &&
	       project_aligned(r->a.o, r->a.o_token_stride_elems,
			       r->a.o_group_stride_elems, bytes);
}

void
o_proj_set_invariant(o_proj_rig *r)
{
	r->f.ctx->plan.config.flags |= SPMLA_CONFIG_BATCH_INVARIANT;
}

void
o_proj_run(o_proj_rig *r)
{
	ck_assert_int_eq(spmla_o_group_proj(r->f.ctx, &r->a, NULL), SPMLA_OK);
	fixture_drain(&r->f);
}

/* The contract's order in f32, and sums in double beside it; by matrix
 * instructions only those. o and w are rows of the operands. */
static void
check_value(const o_proj_rig *r, uint32_t t, uint32_t g, uint32_t d,
	    const float *o, const float *w)
{
	const uint32_t matrix = o_proj_by_matrix(r);
	const double parts = (double)r->a.inner / 128;
	const double slack = 0x1p-24 * (parts + (matrix ? 184 : 24));
	const uint16_t got = o_proj_z(r, t, g, d);
	double exact = 0, terms = 0;
	uint32_t part, j, i, half;
	float total = 0;

	for (part = 0; part < r->a.inner / 128; part++) {
		float lane[8] = {0}, scale = 1;

		if (is_fp8(r))
			scale = o_scale(r, t, g, part) *
				r->a.w_scales[w_scale_at(r, g, d / 128, part)];
		for (j = 0; j < 8; j++)
			for (i = 0; i < 16; i++) {
				const float x = *o++, y = *w++;

				lane[j] += x * y;
				exact += (double)x * y * scale;
				terms += fabs((double)x * y * scale);
			}
		for (half = 4; half; half /= 2)
			for (j = 0; j < half; j++)
				lane[j] += lane[j + half];
		total += lane[0] * scale;
	}
	if (isnan(total))
		ck_assert_uint_eq(got, 0x7fc0);
	else if (!matrix || !isfinite(total))
		ck_assert_msg(got == test_bf16(total),
			      "token %u group %u column %u: 0x%04x, want "
			      "0x%04x (%g)",
			      t, g, d, got, test_bf16(total), (double)total);
	if (isfinite(exact))
		ck_assert(fabs(test_bf16_value(got) - exact) <=
			  0x1p-8 * fabs(exact) + 1.01 * slack * terms);
}

void
o_proj_check(o_proj_rig *r)
{
	const uint32_t inner = r->a.inner;
	const size_t bytes = r->z_elems * 2;
	float *o = test_alloc((uint64_t)r->a.tokens * inner * sizeof *o, 0);
	float *w = test_alloc(inner * sizeof *w, 0);
	uint64_t i, untouched = 0;
	uint32_t t, g, d, at;

	memset(r->z, 0x5A, bytes);
	o_proj_run(r);
	for (i = 0; i < r->z_elems; i++)
		untouched += r->z[i] == 0x5A5A;
	ck_assert_uint_eq(untouched, r->z_elems - (uint64_t)r->a.tokens *
							  r->a.groups *
							  r->a.columns);
	for (g = 0; g < r->a.groups; g++) {
		for (t = 0; t < r->a.tokens; t++)
			for (at = 0; at < inner; at++)
				o[t * inner + at] =
					value_at(r, r->a.o, o_at(r, t, g, at));
		for (d = 0; d < r->a.columns; d++) {
			for (at = 0; at < inner; at++)
				w[at] = value_at(r, r->a.w, w_at(r, g, d, at));
			for (t = 0; t < r->a.tokens; t++)
				check_value(r, t, g, d, o + t * inner, w);
		}
	}
	free(o);
	free(w);
}
