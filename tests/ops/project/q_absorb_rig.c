/* SPDX-License-Identifier: Apache-2.0
 *
 * See q_absorb_rig.h.
 */
#include "tests/ops/project/q_absorb_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ops/project/project_rig.h"
#include "tests/reference/project_ref.h"

enum {
	PAD = 8,
	HEADS = Q_ABSORB_HEADS,
	TOKENS = Q_ABSORB_TOKENS,
	NOPE = 128 + PAD,
	PE = 64 + PAD,
	ROW = 512 + PAD,
	OUT = 576 + PAD
};

void
q_absorb_open(q_absorb_rig *r)
{
	spmla_config config;

	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	r->rng = test_seed();
	r->q_nope_elems = TOKENS * (HEADS * NOPE + PAD);
	r->w_elems = HEADS * (128 * ROW + PAD);
	r->q_elems = TOKENS * (HEADS * OUT + PAD);
	r->q_nope = test_alloc(r->q_nope_elems * 2, 0);
	r->w = test_alloc(r->w_elems * 2, 0);
	r->q_pe = test_alloc(TOKENS * (HEADS * PE + PAD) * 2, 0);
	r->q = test_alloc(r->q_elems * 2, 0);
	r->cos_sin = rope_table();
	project_fill(&r->rng, r->q_nope, r->q_nope_elems);
	project_fill(&r->rng, r->w, r->w_elems);
	project_fill(&r->rng, r->q_pe, TOKENS * (HEADS * PE + PAD));
	fill_positions(&r->rng, r->positions, TOKENS);
	r->a = (spmla_q_absorb_args){.struct_bytes = sizeof r->a,
				     .tokens = TOKENS,
				     .heads = HEADS,
				     .cos_sin_rows = ROPE_POSITIONS,
				     .q_nope = r->q_nope,
				     .w_uk_t = r->w,
				     .q_pe = r->q_pe,
				     .positions = r->positions,
				     .cos_sin = r->cos_sin,
				     .q = r->q};
	r->a.q_nope_token_stride_elems = HEADS * NOPE + PAD;
	r->a.q_nope_head_stride_elems = NOPE;
	r->a.w_head_stride_elems = 128 * ROW + PAD;
	r->a.w_row_stride_elems = ROW;
	r->a.q_pe_token_stride_elems = HEADS * PE + PAD;
	r->a.q_pe_head_stride_elems = PE;
	r->a.q_token_stride_elems = HEADS * OUT + PAD;
	r->a.q_head_stride_elems = OUT;
}

void
q_absorb_close(q_absorb_rig *r)
{
	free(r->q_nope);
	free(r->w);
	free(r->q_pe);
	free(r->q);
	free(r->cos_sin);
	fixture_close(&r->f);
}

double
q_absorb_slack(const q_absorb_rig *r)
{
	const spmla_q_absorb_args *a = &r->a;
	const uint32_t matrix =
		project_has(&r->f, SPMLA_KERNEL_q_absorb_mma) &&
		project_aligned(a->q_nope, a->q_nope_token_stride_elems,
				a->q_nope_head_stride_elems, 2) &&
		project_aligned(a->w_uk_t, a->w_row_stride_elems,
				a->w_head_stride_elems, 2) &&
		(!a->q_pe ||
		 project_aligned(a->q_pe, a->q_pe_token_stride_elems,
				 a->q_pe_head_stride_elems, 2)) &&
		project_aligned(a->q, a->q_token_stride_elems,
				a->q_head_stride_elems, 2);

	return matrix ? 0x1p-16 : 0x1p-20;
}

void
q_absorb_run(q_absorb_rig *r)
{
	ck_assert_int_eq(spmla_q_absorb(r->f.ctx, &r->a, NULL), SPMLA_OK);
}

void
q_absorb_check_rope(const q_absorb_rig *r, uint32_t t, uint32_t h,
		    const uint16_t *got)
{
	const spmla_q_absorb_args *a = &r->a;
	const uint16_t *pe = a->q_pe + t * a->q_pe_token_stride_elems +
			     h * a->q_pe_head_stride_elems;
	double x[64];
	uint32_t i;

	if (a->rope_style == SPMLA_ROPE_NONE) {
		ck_assert_mem_eq(got, pe, 64 * 2);
		return;
	}
	for (i = 0; i < 64; i++)
		x[i] = ref_bf16_value(pe[i]);
	ref_rope(x,
		 (const float *)a->cos_sin +
			 ((const int32_t *)a->positions)[t] * 64,
		 (ref_rope_style)a->rope_style);
	for (i = 0; i < 64; i++)
		ck_assert_uint_eq(got[i], ref_bf16_bits(x[i]));
}

static void
check_head(const q_absorb_rig *r, uint32_t t, uint32_t h, const uint16_t *got)
{
	const spmla_q_absorb_args *a = &r->a;
	const uint16_t zeros[576] = {0};
	const int32_t p = a->positions ? ((const int32_t *)a->positions)[t] : 0;

	if (a->rope_style != SPMLA_ROPE_NONE &&
	    (p < 0 || p >= ROPE_POSITIONS)) {
		ck_assert_mem_eq(got, zeros, sizeof zeros);
		return;
	}
	project_check(got,
		      a->q_nope + t * a->q_nope_token_stride_elems +
			      h * a->q_nope_head_stride_elems,
		      a->w_uk_t + h * a->w_head_stride_elems,
		      a->w_row_stride_elems, 128, 512, q_absorb_slack(r));
	if (a->q_pe)
		q_absorb_check_rope(r, t, h, got + 512);
}

void
q_absorb_check(q_absorb_rig *r)
{
	const uint32_t dim = r->a.q_pe ? 576 : 512;
	const size_t bytes = r->q_elems * sizeof *r->q;
	uint32_t t, h, i, untouched = 0;

	memset(r->q, 0x5A, bytes);
	q_absorb_run(r);
	for (i = 0; i < r->q_elems; i++)
		untouched += r->q[i] == 0x5A5A;
	ck_assert_uint_eq(untouched,
			  r->q_elems - r->a.tokens * r->a.heads * dim);
	for (t = 0; t < r->a.tokens; t++)
		for (h = 0; h < r->a.heads; h++)
			check_head(r, t, h,
				   r->a.q + t * r->a.q_token_stride_elems +
					   h * r->a.q_head_stride_elems);
}

void
q_absorb_expect_status(q_absorb_rig *r, spmla_fault fault, uint32_t row)
{
	const spmla_device_status s = fixture_status(&r->f);

	ck_assert_str_eq(spmla_fault_name(s.fault), spmla_fault_name(fault));
	ck_assert_uint_eq(s.count, fault == SPMLA_FAULT_NONE ? 0 : 1);
	if (fault != SPMLA_FAULT_NONE)
		ck_assert_uint_eq(s.row, row);
	ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
}
