/* SPDX-License-Identifier: Apache-2.0
 *
 * The adapter of mqa_logits_gathered: DeepGEMM's fp8 logits, cleaned.
 */
#include "tests/golden/golden.h"

static int
find_slack(golden_case *c, golden_tensor *logits,
	   const spmla_mqa_logits_gathered_args *a)
{
	uint32_t t;
	int32_t n;

	if (logits->slack)
		return 1;
	logits->slack = golden_scratch(c, logits->count * sizeof(double));
	logits->slack_why = "what sm_90 tensor cores drop";
	logits->diff_limit = 5e-6; /* of DeepGEMM's own tests */
	for (t = 0; logits->slack && t < a->tokens; t++)
		for (n = a->starts[t]; n < a->ends[t]; n++)
			logits->slack[(uint64_t)t * a->columns + (uint32_t)n] =
				golden_score_slack(
					c,
					a->q + (uint64_t)t * a->heads *
							SPMLA_INDEX_DIM,
					a->weights +
						t * a->weights_stride_elems,
					a->heads,
					a->k + (uint64_t)n * SPMLA_INDEX_DIM,
					a->k_scales[n]);
	return logits->slack != NULL;
}

golden_verdict
golden_run_mqa_logits_gathered(golden_case *c)
{
	const golden_tensor *q = golden_need(c, "q", GOLDEN_E4M3, 3);
	const golden_tensor *k = golden_need(c, "k", GOLDEN_E4M3, 2);
	const golden_tensor *scales = golden_need(c, "k_scale", GOLDEN_F32, 1);
	const golden_tensor *weights = golden_need(c, "weights", GOLDEN_F32, 2);
	const golden_tensor *starts =
		golden_need(c, "cu_seq_len_k_start", GOLDEN_I32, 1);
	const golden_tensor *ends =
		golden_need(c, "cu_seq_len_k_end", GOLDEN_I32, 1);
	golden_tensor *logits = golden_need(c, "logits", GOLDEN_F32, 2);
	spmla_mqa_logits_gathered_args a = {0};
	golden_verdict v;

	if (!golden_has(c, q, (const int64_t[]){-1, -1, SPMLA_INDEX_DIM}) ||
	    !golden_has(c, k, (const int64_t[]){-1, SPMLA_INDEX_DIM}) ||
	    !golden_has(c, scales, k->shape) ||
	    !golden_has(c, weights, q->shape) ||
	    !golden_has(c, starts, q->shape) ||
	    !golden_has(c, ends, q->shape) ||
	    !golden_has(c, logits, (const int64_t[]){q->shape[0], k->shape[0]}))
		return GOLDEN_FAILED;
	if (!golden_dense(q) || !golden_dense(k))
		return golden_fail(c, "q or k have gaps");
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = (uint32_t)q->shape[0];
	a.heads = (uint32_t)q->shape[1];
	a.keys = a.columns = (uint32_t)k->shape[0];
	a.form = SPMLA_LOGITS_CLEAN;
	a.q = golden_first(q);
	a.weights = golden_first(weights);
	a.weights_stride_elems = weights->strides[0];
	a.k = golden_first(k);
	a.k_scales = golden_first(scales);
	a.starts = golden_first(starts);
	a.ends = golden_first(ends);
	a.logits = golden_first(logits);
	a.logits_stride_elems = logits->strides[0];
	v = golden_called(c, spmla_mqa_logits_gathered(c->ctx, &a, NULL));
	/* after the call, which has reported any row out of bounds */
	if (v == GOLDEN_RAN && !find_slack(c, logits, &a))
		v = GOLDEN_FAILED;
	return v;
}
