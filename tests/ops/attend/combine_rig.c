/* SPDX-License-Identifier: Apache-2.0
 *
 * See combine_rig.h.
 */
#include "tests/ops/attend/combine_rig.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"

enum {
	HEADS = COMBINE_HEADS,
	ROWS = COMBINE_ROWS,
	OUT_BYTES = COMBINE_OUT_ELEMS * 2,
	LSE_BYTES = COMBINE_LSE_ELEMS * 4
};

/* Other partial results. */
static void
combine_fill(combine_rig *r)
{
	uint32_t i;

	for (i = 0; i < ROWS * HEADS; i++)
		r->split_lse[i] = 6 * rng_float(&r->rng);
	for (i = 0; i < ROWS * HEADS * 512; i++)
		r->split_out[i] = rng_float(&r->rng);
}

void
combine_open(combine_rig *r)
{
	static const int32_t num_splits[COMBINE_TOKENS + 1] = {0, 2, 2, 5, 38};
	spmla_config config;

	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	r->rng = test_seed();
	r->split_out = test_alloc(ROWS * HEADS * 512 * 4, 0);
	r->split_lse = test_alloc(ROWS * HEADS * 4, 0);
	r->out = test_alloc(OUT_BYTES, 0);
	r->lse = test_alloc(LSE_BYTES, 0);
	memcpy(r->num_splits, num_splits, sizeof num_splits);
	combine_fill(r);
	r->a = (spmla_split_combine_args){
		.struct_bytes = sizeof r->a,
		.tokens = COMBINE_TOKENS,
		.heads = HEADS,
		.split_rows = ROWS,
		.num_splits = r->num_splits,
		.split_out = r->split_out,
		.split_lse = r->split_lse,
		.out = r->out,
		.out_token_stride_elems = HEADS * COMBINE_HEAD + 8,
		.out_head_stride_elems = COMBINE_HEAD,
		.lse = r->lse,
		.lse_token_stride_elems = 1,
		.lse_head_stride_elems = COMBINE_TOKENS + 1};
}

void
combine_close(combine_rig *r)
{
	free(r->split_out);
	free(r->split_lse);
	free(r->out);
	free(r->lse);
	fixture_close(&r->f);
}

void
combine_run(combine_rig *r)
{
	ck_assert_int_eq(spmla_split_combine(r->f.ctx, &r->a, NULL), SPMLA_OK);
}

const uint16_t *
combine_out(const combine_rig *r, uint32_t token, uint32_t head)
{
	return r->out + token * r->a.out_token_stride_elems +
	       head * r->a.out_head_stride_elems;
}

float
combine_lse(const combine_rig *r, uint32_t token, uint32_t head)
{
	return r->lse[token * r->a.lse_token_stride_elems +
		      head * r->a.lse_head_stride_elems];
}

/* What a dimension has to be, and the sum of |terms|. */
static double
want_out(const combine_rig *r, uint32_t t, uint32_t h, uint32_t d,
	 double denominator, double *terms)
{
	double want = 0;
	int32_t i;

	*terms = 0;
	for (i = r->num_splits[t]; i < r->num_splits[t + 1]; i++) {
		const uint32_t row = (uint32_t)i * HEADS + h;
		double term;

		if (isinf(r->split_lse[row]))
			continue;
		term = exp2((double)r->split_lse[row]) *
		       r->split_out[row * 512 + d] / denominator;
		want += term;
		*terms += fabs(term);
	}
	return want;
}

static void
check_head(const combine_rig *r, uint32_t t, uint32_t h)
{
	const float lse = combine_lse(r, t, h);
	double sum = 0, want, terms, denominator;
	uint32_t d;
	int32_t i;

	for (i = r->num_splits[t]; i < r->num_splits[t + 1]; i++)
		sum += exp2((double)r->split_lse[i * HEADS + (int32_t)h]);
	denominator =
		sum + (r->a.attn_sink ? exp((double)r->a.attn_sink[h]) : 0);
	want = sum > 0 ? log(sum) : r->a.empty_lse ? -INFINITY : INFINITY;
	if (r->a.lse)
		ck_assert_msg(lse == want || fabs(lse - want) <=
						     1e-6 * (1 + fabs(want)),
			      "token %u head %u: lse %g, want %g", t, h, lse,
			      want);
	for (d = 0; d < 512; d++) {
		const double got = ref_bf16_value(combine_out(r, t, h)[d]);

		want = want_out(r, t, h, d, denominator, &terms);
		ck_assert_msg(fabs(got - want) <= 0x1.02p-8 * terms,
			      "token %u head %u dim %u: got %g, want %g", t, h,
			      d, got, want);
		if (sum == 0)
			ck_assert_uint_eq(combine_out(r, t, h)[d], 0);
	}
}

void
combine_check(combine_rig *r)
{
	uint32_t t, h, i, written = 0, untouched = 0;

	memset(r->out, 0x5A, OUT_BYTES);
	memset(r->lse, 0x5A, LSE_BYTES);
	combine_run(r);
	for (t = 0; t < r->a.tokens; t++)
		for (h = 0;
		     r->num_splits[t + 1] - r->num_splits[t] != 1 && h < HEADS;
		     h++, written++)
			check_head(r, t, h);
	for (i = 0; i < COMBINE_OUT_ELEMS; i++)
		untouched += r->out[i] == 0x5A5A;
	ck_assert_uint_eq(untouched, COMBINE_OUT_ELEMS - written * 512);
	for (untouched = i = 0; i < COMBINE_LSE_ELEMS; i++)
		untouched += !memcmp(&r->lse[i], "\x5A\x5A\x5A\x5A", 4);
	ck_assert_uint_eq(untouched,
			  COMBINE_LSE_ELEMS - (r->a.lse ? written : 0));
}
