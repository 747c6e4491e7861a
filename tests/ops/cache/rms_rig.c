/* SPDX-License-Identifier: Apache-2.0
 *
 * See rms_rig.h.
 */
#include "tests/ops/cache/rms_rig.h"
#include "tests/reference/narrow_ref.h"
#include "tests/reference/v4_row_ref.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void
open_set(rms_rig *r, rms_set *s)
{
	uint32_t i;

	s->x = test_alloc(RMS_ELEMS * 2, 0xff); /* NaN */
	s->weight = test_alloc(RMS_WIDTH * 2, 0xff);
	s->out = test_alloc(RMS_ELEMS * 2, 0xAB);
	s->want = test_alloc(RMS_ELEMS * 2, 0xAB);
	for (i = 0; i < RMS_WIDTH; i++)
		s->weight[i] = test_bf16(1.0f + rng_float(&r->rng));
}

static void
close_set(const rms_set *s)
{
	free(s->x);
	free(s->weight);
	free(s->out);
	free(s->want);
}

void
rms_open(rms_rig *r)
{
	spmla_config config;

	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	r->rng = test_seed();
	open_set(r, &r->q);
	open_set(r, &r->kv);
	r->a.struct_bytes = (uint32_t)sizeof r->a;
	r->a.norm_eps = 1e-6f;
	r->a.q = r->q.x;
	r->a.q_weight = r->q.weight;
	r->a.q_out = r->q.out;
	r->a.kv = r->kv.x;
	r->a.kv_weight = r->kv.weight;
	r->a.kv_out = r->kv.out;
}

void
rms_close(rms_rig *r)
{
	close_set(&r->q);
	close_set(&r->kv);
	fixture_close(&r->f);
}

void
rms_fill(rms_rig *r)
{
	uint16_t *q = r->q.x + (r->a.q ? r->a.q - r->q.x : 0);
	uint16_t *kv = r->kv.x + (r->a.kv ? r->a.kv - r->kv.x : 0);
	uint32_t n;

	for (n = 0; n < r->a.q_rows; n++)
		fill_row16(&r->rng, q + n * r->a.q_stride_elems, r->a.q_width);
	for (n = 0; n < r->a.kv_rows; n++)
		fill_row16(&r->rng, kv + n * r->a.kv_stride_elems,
			   r->a.kv_width);
}

void
rms_sizes(rms_rig *r, uint32_t q_rows, uint32_t q_width, uint32_t kv_rows,
	  uint32_t kv_width)
{
	r->a.q_rows = q_rows;
	r->a.q_width = q_width;
	r->a.q_stride_elems = q_width + 8;
	r->a.q_out_stride_elems = q_width + 16;
	r->a.kv_rows = kv_rows;
	r->a.kv_width = kv_width;
	r->a.kv_stride_elems = kv_width + 16;
	r->a.kv_out_stride_elems = kv_width;
	rms_fill(r);
}

static void
model_row(const rms_rig *r, const uint16_t *x, const uint16_t *weight,
	  uint32_t width, uint16_t *want)
{
	const double rstd = v4_ref_rstd(x, width, r->a.norm_eps, 1);
	uint32_t i;

	for (i = 0; i < width; i++)
		want[i] = v4_ref_bits(ref_round_f32(
			ref_round_f32(ref_bf16_value(x[i]) * rstd) *
			ref_bf16_value(weight[i])));
}

void
rms_model(rms_rig *r)
{
	uint32_t n;

	memset(r->q.want, 0xAB, RMS_ELEMS * 2);
	memset(r->kv.want, 0xAB, RMS_ELEMS * 2);
	for (n = 0; n < r->a.q_rows; n++)
		model_row(r, r->a.q + n * r->a.q_stride_elems, r->a.q_weight,
			  r->a.q_width,
			  r->q.want + (r->a.q_out - r->q.out) +
				  n * r->a.q_out_stride_elems);
	for (n = 0; n < r->a.kv_rows; n++)
		model_row(r, r->a.kv + n * r->a.kv_stride_elems, r->a.kv_weight,
			  r->a.kv_width,
			  r->kv.want + (r->a.kv_out - r->kv.out) +
				  n * r->a.kv_out_stride_elems);
}

void
rms_run(rms_rig *r)
{
	memset(r->q.out, 0xAB, RMS_ELEMS * 2);
	memset(r->kv.out, 0xAB, RMS_ELEMS * 2);
	ck_assert_int_eq(spmla_rms_norms(r->f.ctx, &r->a, NULL), SPMLA_OK);
	fixture_drain(&r->f);
}

void
rms_check(rms_rig *r)
{
	rms_model(r);
	rms_run(r);
	check_bytes(r->q.out, r->q.want, RMS_ELEMS * 2);
	check_bytes(r->kv.out, r->kv.want, RMS_ELEMS * 2);
}
