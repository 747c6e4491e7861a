/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered on the CPU: the keys that a token sees, and the places of
 * their scores. score_cpu.h has the scores.
 */
#include <math.h>

#include "spmla/platform/cpu/core/input_cpu.h"
#include "spmla/platform/cpu/select/score_cpu.h"

/* Columns [first, end) of the row that begins with element `row`. */
static void
put_minus_inf(const spmla_mqa_logits_gathered_args *a, uint64_t row,
	      uint32_t first, uint32_t end)
{
	uint32_t i;

	for (i = first; i < end; i++)
		spmla_i_cpu_put_real(a->logits, a->logits_dtype, row + i,
				     -INFINITY);
}

/* Sets the scores of missing keys, for which indexer_k_gather had no page, to
 * -inf. */
static void
mark_missing(const float *scales, uint32_t n, float *row)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (spmla_i_f32_bits(scales[i]) == SPMLA_INDEX_MISSING)
			row[i] = -INFINITY;
}

/* Scores all keys [start, end). mark_missing then replaces the scores of
 * missing keys. */
static void
score_there(spmla_ctx *ctx, const spmla_mqa_logits_gathered_args *a,
	    uint32_t worker, uint32_t t, uint32_t start, uint32_t end,
	    float *row)
{
	const uint64_t head = (uint64_t)t * a->heads;
	const float *weights = a->weights + t * a->weights_stride_elems;
	spmla_i_cpu_score s;

	if (a->layout == SPMLA_LAYOUT_INDEX_MXFP4) {
		s = spmla_i_cpu_score_open_mxfp4(
			ctx, worker, a->heads,
			a->q + head * SPMLA_INDEX_MXFP4_VALUE_BYTES,
			(const uint8_t *)(a->q_scales + head), weights);
		spmla_i_cpu_score_keys_mxfp4(
			&s,
			a->k + (uint64_t)start * SPMLA_INDEX_MXFP4_VALUE_BYTES,
			(const uint8_t *)(a->k_scales + start), end - start,
			row);
		return;
	}
	s = spmla_i_cpu_score_open(ctx, worker, a->heads,
				   a->q + head * SPMLA_INDEX_DIM, weights,
				   a->q_encoding);
	(a->k_encoding == SPMLA_E4M3_FNUZ ? spmla_i_cpu_score_keys_fnuz
					  : spmla_i_cpu_score_keys)(
		&s, a->k + (uint64_t)start * SPMLA_INDEX_DIM,
		(const uint8_t *)(a->k_scales + start), end - start, row);
}

/* Scores keys [start, end) into row[0..]. */
static void
score_keys(spmla_ctx *ctx, const spmla_mqa_logits_gathered_args *a,
	   uint32_t worker, uint32_t t, uint32_t start, uint32_t end,
	   float *row)
{
	score_there(ctx, a, worker, t, start, end, row);
	mark_missing(a->k_scales + start, end - start, row);
}

/* The same into logits from element `at` on. */
static void
put_keys(spmla_ctx *ctx, const spmla_mqa_logits_gathered_args *a,
	 uint32_t worker, uint32_t t, uint32_t start, uint32_t end, uint64_t at)
{
	float own[SPMLA_I_CPU_SCORE_KEYS];
	uint32_t n, k;

	if (a->logits_dtype == SPMLA_REAL_F32) {
		score_keys(ctx, a, worker, t, start, end,
			   (float *)a->logits + at);
		return;
	}
	for (; start < end; start += n, at += n) {
		n = end - start < SPMLA_I_CPU_SCORE_KEYS
			    ? end - start
			    : SPMLA_I_CPU_SCORE_KEYS;
		score_keys(ctx, a, worker, t, start, start + n, own);
		for (k = 0; k < n; k++)
			spmla_i_cpu_put_real(a->logits, a->logits_dtype, at + k,
					     own[k]);
	}
}

static uint32_t
inside(int32_t n, uint32_t keys)
{
	return n >= 0 && (uint32_t)n <= keys;
}

static void
score_token(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t t)
{
	const spmla_mqa_logits_gathered_args *a = args;
	const uint64_t row = t * (uint64_t)a->logits_stride_elems;
	uint32_t start = 0, end = 0;

	if (!inside(a->starts[t], a->keys) || !inside(a->ends[t], a->keys)) {
		spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_INDEX);
	} else if (a->starts[t] < a->ends[t]) {
		start = (uint32_t)a->starts[t];
		end = (uint32_t)a->ends[t];
	}
	if (a->form == SPMLA_LOGITS_COMPRESSED && end - start > a->columns) {
		spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_LOGITS);
		return;
	}
	if (start < end)
		put_keys(ctx, a, worker, t, start, end,
			 a->form == SPMLA_LOGITS_COMPRESSED ? row
							    : row + start);
	if (a->form == SPMLA_LOGITS_CLEAN) {
		put_minus_inf(a, row, 0, start);
		put_minus_inf(a, row, end, a->columns);
	}
}

void
spmla_i_cpu_mqa_logits_gathered(spmla_ctx *ctx, const void *args)
{
	const spmla_mqa_logits_gathered_args *a = args;

	spmla_i_cpu_for(ctx, a, a->tokens, score_token);
}
