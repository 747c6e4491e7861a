/* SPDX-License-Identifier: Apache-2.0
 *
 * Adapters of the prefill ops: FlashMLA's sparse forward and vLLM's XPU kernels
 * of the same form; golden_gathered_logits.c has DeepGEMM's logits. The XPU
 * kernels give a row without keys logits of -1e30 ln 2, where the library gives
 * infinities; that is looked at here.
 */
#include "tests/golden/golden.h"

#include <math.h>

typedef struct names {
	const char *kv;
	const char *indices;
	const char *lens; /* optional tensor */
	const char *scale;
	uint32_t finite_empty; /* the XPU kernels' empty rows */
} names;

/* A stride of a dimension of one element may be anything; the library wants
 * one that could be. */
static int64_t
stride_of(const golden_tensor *t, uint32_t dim, int64_t least)
{
	return t->shape[dim] == 1 && t->strides[dim] < least ? least
							     : t->strides[dim];
}

/* q, kv and indices; kv and indices may have a dimension of one head. */
static int
take_inputs(golden_case *c, const names *n, spmla_sparse_prefill_args *a)
{
	const golden_tensor *q = golden_need(c, "q", GOLDEN_BF16, 3);
	const golden_tensor *kv = golden_find(c, n->kv);
	const uint32_t rank = kv && kv->rank == 3 ? 3 : 2;
	const golden_tensor *indices =
		golden_need(c, n->indices, GOLDEN_I32, rank);
	double scale;

	kv = golden_need(c, n->kv, GOLDEN_BF16, rank);
	if (!golden_has(c, q, (const int64_t[]){-1, -1, -1}) || !kv ||
	    !indices || !golden_need_param(c, n->scale, &scale))
		return 0;
	if (kv->rank == 3 && (kv->shape[1] != 1 || indices->shape[1] != 1)) {
		(void)golden_fail(c, "more than one head of kv");
		return 0;
	}
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = (uint32_t)q->shape[0];
	a->heads = (uint32_t)q->shape[1];
	a->dim = (uint32_t)q->shape[2];
	a->topk = (uint32_t)indices->shape[indices->rank - 1];
	a->kv_rows = (uint32_t)kv->shape[0];
	a->softmax_scale = (float)scale;
	a->q = golden_first(q);
	a->q_token_stride_elems = stride_of(q, 0, a->dim);
	a->q_head_stride_elems = stride_of(q, 1, a->dim);
	a->kv = golden_first(kv);
	a->kv_stride_elems = stride_of(kv, 0, a->dim);
	a->indices = golden_first(indices);
	a->indices_stride_elems = stride_of(indices, 0, a->topk);
	return golden_has(c, kv,
			  kv->rank == 3 ? (const int64_t[]){-1, 1, a->dim}
					: (const int64_t[]){-1, a->dim}) &&
	       golden_has(c, indices,
			  indices->rank == 3
				  ? (const int64_t[]){a->tokens, 1, a->topk}
				  : (const int64_t[]){a->tokens, a->topk});
}

static int
take_options(golden_case *c, const names *n, spmla_sparse_prefill_args *a)
{
	const golden_tensor *sink = golden_find(c, "attn_sink");
	const golden_tensor *lens = golden_find(c, n->lens);

	if (sink) {
		sink = golden_need(c, "attn_sink", GOLDEN_F32, 1);
		if (!golden_has(c, sink, (const int64_t[]){a->heads}))
			return 0;
		a->attn_sink = golden_first(sink);
	}
	if (lens) {
		lens = golden_need(c, n->lens, GOLDEN_I32, 1);
		if (!golden_has(c, lens, (const int64_t[]){a->tokens}))
			return 0;
		a->topk_lens = golden_first(lens);
	}
	return 1;
}

static int
take_outputs(golden_case *c, spmla_sparse_prefill_args *a)
{
	const golden_tensor *out = golden_need(c, "out", GOLDEN_BF16, 3);
	const golden_tensor *max = golden_find(c, "max_logits");
	const golden_tensor *lse = golden_find(c, "lse");
	const int64_t shape[3] = {a->tokens, a->heads, SPMLA_MLA_LATENT};

	if (!golden_has(c, out, shape))
		return 0;
	a->out = golden_first(out);
	a->out_token_stride_elems = stride_of(out, 0, SPMLA_MLA_LATENT);
	a->out_head_stride_elems = stride_of(out, 1, SPMLA_MLA_LATENT);
	if (!max && !lse)
		return 1;
	max = golden_need(c, "max_logits", GOLDEN_F32, 2);
	lse = golden_need(c, "lse", GOLDEN_F32, 2);
	if (!golden_has(c, max, shape) || !golden_has(c, lse, shape))
		return 0;
	if (!golden_dense(max) || !golden_dense(lse)) {
		(void)golden_fail(c, "max_logits or lse have gaps");
		return 0;
	}
	a->max_logits = golden_first(max);
	a->lse = golden_first(lse);
	a->lse_token_stride_elems = a->heads;
	a->lse_head_stride_elems = 1;
	return 1;
}

/* Whether a token has an index that counts. */
static int
has_key(const spmla_sparse_prefill_args *a, uint32_t t)
{
	const int32_t *row = a->indices + t * a->indices_stride_elems;
	uint32_t i;

	for (i = 0; i < a->topk; i++)
		if (row[i] >= 0 && (uint32_t)row[i] < a->kv_rows)
			return 1;
	return 0;
}

/* The library's infinities of empty rows, once seen, become the numbers that
 * the real kernel gives. */
static golden_verdict
accept_empty_rows(golden_case *c, const spmla_sparse_prefill_args *a)
{
	const float empty = -1e30f * 0.693147180559945309f;
	uint32_t t, h;

	for (t = 0; a->lse && t < a->tokens; t++)
		for (h = 0; !has_key(a, t) && h < a->heads; h++) {
			const uint64_t i = (uint64_t)t * a->heads + h;

			if (a->max_logits[i] != -INFINITY ||
			    a->lse[i] != INFINITY)
				return golden_fail(c,
						   "row %d has no key, yet its "
						   "logits are finite",
						   (int)t);
			a->max_logits[i] = a->lse[i] = empty;
		}
	return GOLDEN_RAN;
}

/* For kernels by tiles, which round weights to bf16 relative to a power of
 * two. */
static int
find_slack(golden_case *c, const spmla_sparse_prefill_args *a)
{
	golden_tensor *out = golden_find(c, "out");
	const spmla_plan *plan = spmla_ctx_plan(c->ctx);
	double *work;

	if (plan->device.kind == SPMLA_BACKEND_CPU ||
	    plan->device.kind == SPMLA_BACKEND_CUDA ||
	    !(plan->config.flags & SPMLA_CONFIG_ALLOW_UNPROVEN))
		return 1;
	work = golden_scratch(c,
			      (uint64_t)a->topk * (1 + a->dim) * sizeof *work);
	out->slack = golden_scratch(c, out->count * sizeof *work);
	out->slack_why = "the real kernel is off attention in double";
	if (!work || !out->slack)
		return 0;
	golden_prefill_slack(a, out, work);
	return 1;
}

static golden_verdict
run(golden_case *c, const names *n)
{
	spmla_sparse_prefill_args a = {0};
	golden_verdict v;

	if (!take_inputs(c, n, &a) || !take_options(c, n, &a) ||
	    !take_outputs(c, &a) || !find_slack(c, &a))
		return GOLDEN_FAILED;
	v = golden_called(c, spmla_sparse_prefill(c->ctx, &a, NULL));
	if (v == GOLDEN_RAN && n->finite_empty)
		v = accept_empty_rows(c, &a);
	return v;
}

static golden_verdict
run_flashmla(golden_case *c)
{
	static const names n = {"kv", "indices", "topk_length", "softmax_scale",
				0};

	return run(c, &n);
}

static golden_verdict
run_xpu(golden_case *c)
{
	static const names n = {"kv", "indices", "topk_length", "sm_scale", 1};

	return run(c, &n);
}

static golden_verdict
run_xpu_old(golden_case *c)
{
	static const names n = {"kv_workspace", "topk_indices", "topk_lens",
				"softmax_scale", 1};

	return run(c, &n);
}

const golden_op golden_prefill_ops[] = {
	{"deepgemm_mqa_logits", golden_run_mqa_logits_gathered},
	{"flashmla_sparse_prefill", run_flashmla},
	{"xpu_mla_sparse_bf16", run_xpu},
	{"xpu_sparse_mla_bf16_old", run_xpu_old},
	{NULL, NULL}};
