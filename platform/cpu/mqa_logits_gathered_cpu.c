/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered on the CPU: a token's queries are decoded once, into
 * scratch, and each of its keys once, on the stack.
 */
#include "spmla/internal/cpu_scratch.h"
#include "spmla/platform/cpu/score_cpu.h"

static void
put_minus_inf(float *row, uint32_t first, uint32_t end)
{
	uint32_t i;

	for (i = first; i < end; i++)
		row[i] = spmla_i_f32_from_bits(0xff800000u);
}

/* Scores of keys [start, end) to row[0..]. */
static void
score_keys(spmla_ctx *ctx, const spmla_mqa_logits_gathered_args *a, uint32_t t,
	   uint32_t start, uint32_t end, float *row)
{
	const uint64_t elems = (uint64_t)a->heads * SPMLA_INDEX_DIM;
	float *q = ctx->buf[SPMLA_BUF_INDEX_SCRATCH];
	float key[SPMLA_INDEX_DIM];
	uint32_t n;

	spmla_i_cpu_decode_e4m3(a->q + t * elems, (uint32_t)elems, q);
	for (n = start; n < end; n++) {
		spmla_i_cpu_decode_e4m3(a->k + (uint64_t)n * SPMLA_INDEX_DIM,
					SPMLA_INDEX_DIM, key);
		row[n - start] = spmla_i_cpu_score_key(
			q, a->weights + t * a->weights_stride_elems, a->heads,
			key, a->k_scales[n]);
	}
}

static uint32_t
inside(int32_t n, uint32_t keys)
{
	return n >= 0 && (uint32_t)n <= keys;
}

void
spmla_i_cpu_mqa_logits_gathered(spmla_ctx *ctx, const void *args)
{
	const spmla_mqa_logits_gathered_args *a = args;
	uint32_t t;

	for (t = 0; t < a->tokens; t++) {
		float *row = a->logits + t * a->logits_stride_elems;
		uint32_t start = 0, end = 0;

		if (!inside(a->starts[t], a->keys) ||
		    !inside(a->ends[t], a->keys)) {
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_INDEX);
		} else if (a->starts[t] < a->ends[t]) {
			start = (uint32_t)a->starts[t];
			end = (uint32_t)a->ends[t];
		}
		if (a->form == SPMLA_LOGITS_COMPRESSED &&
		    end - start > a->columns) {
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_LOGITS);
			continue;
		}
		if (start < end)
			score_keys(ctx, a, t, start, end,
				   a->form == SPMLA_LOGITS_COMPRESSED
					   ? row
					   : row + start);
		if (a->form == SPMLA_LOGITS_CLEAN) {
			put_minus_inf(row, 0, start);
			put_minus_inf(row, end, a->columns);
		}
	}
}
