/* SPDX-License-Identifier: Apache-2.0
 *
 * Adapters of indexer_q_prep of V4. The real kernels fuse a * b + c, so a code
 * may be one step off. With MXFP4 the scale of a group may differ with its
 * largest value, so codes and scales are judged together.
 */
#include "tests/golden/golden.h"

#include <math.h>

static int
fill_queries(golden_case *c, spmla_indexer_q_prep_args *a)
{
	const golden_tensor *q = golden_need(c, "index_q", GOLDEN_BF16, 3);
	const golden_tensor *weights = golden_find(c, "index_weights");
	const golden_tensor *out = golden_need(c, "weights_out", GOLDEN_F32, 2);
	const int f32 = weights && weights->dtype == GOLDEN_F32;
	double softmax_scale, head_scale;
	golden_floats table;

	weights = golden_need(c, "index_weights",
			      f32 ? GOLDEN_F32 : GOLDEN_BF16, 2);
	if (!golden_has(c, q, (const int64_t[]){-1, -1, SPMLA_INDEX_DIM}) ||
	    !golden_take_table(c, "index_q_cos_sin_cache", SPMLA_INDEX_ROPE,
			       &table) ||
	    !golden_has(c, weights, q->shape) || !golden_has(c, out, q->shape))
		return 0;
	if (!golden_need_param(c, "softmax_scale", &softmax_scale) ||
	    !golden_need_param(c, "head_scale", &head_scale))
		return 0;
	if (!golden_dense(out)) {
		(void)golden_fail(c, "weights_out has gaps");
		return 0;
	}
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = (uint32_t)q->shape[0];
	a->heads = (uint32_t)q->shape[1];
	a->rope_style = SPMLA_ROPE_INTERLEAVED;
	a->rope_part = SPMLA_ROPE_LAST;
	a->scale_floor = SPMLA_Q_SCALE_V4;
	a->weights_dtype = f32 ? SPMLA_DTYPE_F32 : SPMLA_DTYPE_BF16;
	a->cos_sin_rows = (uint32_t)table.shape[0];
	a->softmax_scale = (float)softmax_scale;
	a->head_scale = (float)head_scale;
	a->q = golden_first(q);
	a->q_token_stride_elems = q->strides[0];
	a->q_head_stride_elems = q->strides[1];
	a->weights = golden_first(weights);
	a->weights_stride_elems = weights->strides[0];
	a->positions = golden_positions(c, "positions", q->shape[0],
					&a->positions_dtype);
	a->cos_sin = table.first;
	a->cos_sin_dtype = table.dtype;
	a->weights_out = golden_first(out);
	return a->positions != NULL;
}

static golden_verdict
run_indexer_q_fp8(golden_case *c)
{
	const golden_tensor *out = golden_need(c, "q_fp8", GOLDEN_E4M3, 3);
	spmla_indexer_q_prep_args a = {0};

	if (!fill_queries(c, &a) ||
	    !golden_has(c, out,
			(const int64_t[]){a.tokens, a.heads, SPMLA_INDEX_DIM}))
		return GOLDEN_FAILED;
	if (!golden_dense(out))
		return golden_fail(c, "q_fp8 has gaps");
	a.q_out = golden_first(out);
	return golden_called(c, spmla_indexer_q_prep(c->ctx, &a, NULL));
}

/* Codes of e2m1 as whole numbers in the order of their values. */
static int
nibble_order(uint8_t byte, uint32_t i)
{
	const int code = byte >> 4 * i & 15;

	return code & 8 ? -(code & 7) : code & 7;
}

/* Whether 16 bytes of codes differ by a step at most. Counts those. */
static int
near_codes(const uint8_t *got, const uint8_t *want, uint32_t *steps)
{
	uint32_t i, n;

	for (i = 0; i < SPMLA_MXFP4_GROUP / 2; i++)
		for (n = 0; n < 2; n++) {
			const int step = nibble_order(got[i], n) -
					 nibble_order(want[i], n);

			if (step < -1 || step > 1)
				return 0;
			*steps += step != 0;
		}
	return 1;
}

/* The same of two groups whose scales differ by 2: of values. The largest value
 * lies where scales change: it is 6 by the smaller scale and 3 by the other. */
static int
near_values(const uint8_t *got, const uint8_t *want, int is_larger)
{
	static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
	double most[2] = {0, 0};
	uint32_t i, n;

	for (i = 0; i < SPMLA_MXFP4_GROUP / 2; i++)
		for (n = 0; n < 2; n++) {
			const int g = nibble_order(got[i], n);
			const int w = nibble_order(want[i], n);
			const double x = magnitude[g < 0 ? -g : g];
			const double y = magnitude[w < 0 ? -w : w];

			most[0] = x > most[0] ? x : most[0];
			most[1] = y > most[1] ? y : most[1];
			/* half a step of 2 of each, whose scale is 1 and 2 */
			if (fabs((g < 0 ? -x : x) * (is_larger ? 2 : 1) -
				 (w < 0 ? -y : y) * (is_larger ? 1 : 2)) > 3)
				return 0;
		}
	return most[!is_larger] == 3 && most[is_larger] == 6;
}

/* MXFP4 is judged as codes and scales together: a value one step off may be
 * the largest of its group and make a scale, and so all codes, others. */
static golden_verdict
judge_mxfp4(golden_case *c, const golden_tensor *t)
{
	const golden_tensor *s = golden_find(c, "q_scale");
	const uint64_t groups = t->count / (SPMLA_MXFP4_GROUP / 2);
	uint32_t steps = 0;
	uint64_t g;

	for (g = 0; g < groups; g++) {
		const uint64_t at = g * SPMLA_MXFP4_GROUP / 2;
		const uint64_t first = (uint64_t)t->offset + at;
		const uint64_t scale = (uint64_t)s->offset * 4 + g;
		const int up = s->data[scale] - s->want[scale];
		int is_near;

		if (up == 0)
			is_near = near_codes(t->data + first, t->want + first,
					     &steps);
		else
			is_near = (up == 1 || up == -1) &&
				  near_values(t->data + first, t->want + first,
					      up == 1);
		steps += up != 0;
		if (!is_near || steps > 1 + 2 * t->count / 1000)
			return golden_fail(c, "%s: group %d of 32 differs",
					   t->name, (int)g);
	}
	return GOLDEN_RAN;
}

/* Judged with the codes. */
static golden_verdict
judge_nothing(golden_case *c, const golden_tensor *t)
{
	(void)c;
	(void)t;
	return GOLDEN_RAN;
}

static golden_verdict
run_indexer_q_mxfp4(golden_case *c)
{
	golden_tensor *out = golden_need(c, "q_packed", GOLDEN_U8, 3);
	golden_tensor *scales = golden_need(c, "q_scale", GOLDEN_I32, 2);
	spmla_indexer_q_prep_args a = {0};

	if (!fill_queries(c, &a) ||
	    !golden_has(c, out,
			(const int64_t[]){a.tokens, a.heads,
					  SPMLA_INDEX_MXFP4_VALUE_BYTES}) ||
	    !golden_has(c, scales, (const int64_t[]){a.tokens, a.heads}))
		return GOLDEN_FAILED;
	if (!golden_dense(out) || !golden_dense(scales))
		return golden_fail(c, "q_packed or q_scale have gaps");
	a.q_format = SPMLA_INDEX_Q_MXFP4;
	a.q_out = golden_first(out);
	a.q_scales = golden_first(scales);
	out->judge = judge_mxfp4;
	scales->judge = judge_nothing;
	return golden_called(c, spmla_indexer_q_prep(c->ctx, &a, NULL));
}

const golden_op golden_index_q_ops[] = {
	{"fused_indexer_q_fp8", run_indexer_q_fp8},
	{"fused_indexer_q_mxfp4", run_indexer_q_mxfp4},
	{NULL, NULL}};
