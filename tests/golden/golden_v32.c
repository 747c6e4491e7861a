/* SPDX-License-Identifier: Apache-2.0
 *
 * Adapters of the DeepSeek V3.2 ops: vLLM's index conversion, FlashMLA's sparse
 * decode; golden_v32_logits.c has DeepGEMM's paged logits.
 */
#include "tests/golden/golden.h"

/* ---- index_map --------------------------------------------------------- */

static int
map_workspaces(golden_case *c, int64_t tokens, spmla_index_map_args *a)
{
	const golden_tensor *ids, *starts;

	if (!golden_find(c, "prefill_workspace_request_ids"))
		return 1;
	ids = golden_need(c, "prefill_workspace_request_ids", GOLDEN_I32, 1);
	starts = golden_need(c, "prefill_workspace_starts", GOLDEN_I32, 1);
	if (!golden_has(c, ids, (const int64_t[]){tokens}) ||
	    !golden_has(c, starts, (const int64_t[]){-1}))
		return 0;
	a->workspaces = (uint32_t)starts->shape[0];
	a->workspace_ids = golden_first(ids);
	a->workspace_starts = golden_first(starts);
	return 1;
}

/* Any page id is valid there, so pool_pages is 0. */
static golden_verdict
run_index_map(golden_case *c)
{
	const golden_tensor *ids = golden_need(c, "req_id", GOLDEN_I32, 1);
	const golden_tensor *table =
		golden_need(c, "block_table", GOLDEN_I32, 2);
	const golden_tensor *in =
		golden_need(c, "token_indices", GOLDEN_I32, 2);
	const golden_tensor *out = golden_need(c, "out", GOLDEN_I32, 2);
	golden_tensor *counts = golden_find(c, "valid_counts");
	spmla_index_map_args a = {0};
	double page, stride = 0;

	if (!golden_has(c, in, (const int64_t[]){-1, -1}) ||
	    !golden_has(c, ids, in->shape) || !golden_has(c, out, in->shape) ||
	    !golden_has(c, table, (const int64_t[]){-1, -1}))
		return GOLDEN_FAILED;
	if (counts)
		counts = golden_need(c, "valid_counts", GOLDEN_I32, 1);
	if (golden_find(c, "valid_counts") && !golden_has(c, counts, in->shape))
		return GOLDEN_FAILED;
	if (!golden_param(c, "BLOCK_SIZE", &page) || page < 1 || page > 65536)
		return golden_fail(c, "no param BLOCK_SIZE");
	(void)golden_param(c, "BLOCK_STRIDE_ROWS", &stride);
	if (stride < 0 || stride > 65536)
		return golden_fail(c, "bad param BLOCK_STRIDE_ROWS");
	if (!map_workspaces(c, in->shape[0], &a))
		return GOLDEN_FAILED;
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = (uint32_t)in->shape[0];
	a.k = (uint32_t)in->shape[1];
	a.rows = (uint32_t)table->shape[0];
	a.columns = (uint32_t)table->shape[1];
	a.table_stride_elems = (uint32_t)table->strides[0];
	a.page_tokens = (uint32_t)page;
	a.page_stride_rows = (uint32_t)stride;
	a.token_row = golden_first(ids);
	a.block_table = golden_first(table);
	a.indices = golden_first(in);
	a.indices_stride_elems = in->strides[0];
	a.slots = golden_first(out);
	a.slots_stride_elems = out->strides[0];
	a.valid_counts = counts ? golden_first(counts) : NULL;
	return golden_called(c, spmla_index_map(c->ctx, &a, NULL));
}

/* ---- sparse_decode ----------------------------------------------------- */

/* A stride of a dimension of one element may be anything; the library wants
 * one that could be. */
static int64_t
stride_of(const golden_tensor *t, uint32_t dim, int64_t least)
{
	return t->shape[dim] == 1 && t->strides[dim] < least ? least
							     : t->strides[dim];
}

/* One batch element is a call: lse is [b][h][s_q], so the tokens of two
 * elements have no common stride. */
static golden_verdict
decode_element(golden_case *c, spmla_sparse_decode_args a, int64_t b)
{
	const golden_tensor *q = golden_find(c, "q");
	const golden_tensor *indices = golden_find(c, "indices");
	const golden_tensor *out = golden_find(c, "out");
	const golden_tensor *lse = golden_find(c, "lse");
	const golden_tensor *lens = golden_find(c, "topk_length");
	int32_t *per_token = NULL;
	uint32_t t;

	if (lens) {
		per_token = golden_scratch(c, a.tokens * sizeof *per_token);
		if (!per_token)
			return GOLDEN_FAILED;
		for (t = 0; t < a.tokens; t++)
			per_token[t] = golden_i32(lens, b, 0);
	}
	a.q = (const uint16_t *)golden_first(q) + b * q->strides[0];
	a.slots = (const int32_t *)golden_first(indices) +
		  b * indices->strides[0];
	a.topk_lens = per_token;
	a.out = (uint16_t *)golden_first(out) + b * out->strides[0];
	a.lse = (float *)golden_first(lse) + b * lse->strides[0];
	return golden_called(c, spmla_sparse_decode(c->ctx, &a, NULL));
}

static int
decode_shapes(golden_case *c, const golden_tensor *q)
{
	const int64_t b = q->shape[0], s_q = q->shape[1], h = q->shape[2];
	const golden_tensor *lse = golden_need(c, "lse", GOLDEN_F32, 3);
	const golden_tensor *sink = golden_find(c, "attn_sink");
	const golden_tensor *lens = golden_find(c, "topk_length");

	if (!golden_has(c, golden_find(c, "indices"),
			(const int64_t[]){b, s_q, -1}) ||
	    !golden_has(c, golden_find(c, "out"),
			(const int64_t[]){b, s_q, h, SPMLA_MLA_LATENT}))
		return 0;
	if (lse->shape[0] != b || lse->shape[1] != h || lse->shape[2] != s_q) {
		(void)golden_fail(c, "lse is not [b][h][s_q]");
		return 0;
	}
	if (sink && !golden_has(c, golden_need(c, "attn_sink", GOLDEN_F32, 1),
				(const int64_t[]){h}))
		return 0;
	return !lens ||
	       golden_has(c, golden_need(c, "topk_length", GOLDEN_I32, 1),
			  (const int64_t[]){b});
}

static golden_verdict
run_sparse_decode(golden_case *c)
{
	const golden_tensor *q = golden_need(c, "q", GOLDEN_BF16, 4);
	const golden_tensor *indices = golden_need(c, "indices", GOLDEN_I32, 3);
	const golden_tensor *out = golden_need(c, "out", GOLDEN_BF16, 4);
	const golden_tensor *lse = golden_need(c, "lse", GOLDEN_F32, 3);
	const golden_tensor *sink = golden_find(c, "attn_sink");
	spmla_sparse_decode_args a = {0};
	golden_verdict v = GOLDEN_RAN;
	double scale;
	int64_t b;

	if (!indices || !out || !lse ||
	    !golden_has(c, q, (const int64_t[]){-1, -1, -1, -1}))
		return GOLDEN_FAILED;
	if (q->shape[3] != SPMLA_MLA_DIM || golden_find(c, "extra_indices"))
		return golden_skip(c,
				   "flashmla_sparse_decode with d %d (V4) is "
				   "not implemented",
				   (int)q->shape[3]);
	if (!decode_shapes(c, q) ||
	    !golden_cache(c, "kv_cache", SPMLA_LAYOUT_FP8_DS_MLA, &a.cache))
		return GOLDEN_FAILED;
	if (!golden_param(c, "softmax_scale", &scale))
		return golden_fail(c, "no param softmax_scale");
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = (uint32_t)q->shape[1];
	a.heads = (uint32_t)q->shape[2];
	a.topk = (uint32_t)indices->shape[2];
	a.softmax_scale = (float)scale;
	a.q_token_stride_elems = stride_of(q, 1, SPMLA_MLA_DIM);
	a.q_head_stride_elems = stride_of(q, 2, SPMLA_MLA_DIM);
	a.slots_stride_elems = stride_of(indices, 1, indices->shape[2]);
	a.attn_sink = sink ? golden_first(sink) : NULL;
	a.out_token_stride_elems = stride_of(out, 1, SPMLA_MLA_LATENT);
	a.out_head_stride_elems = stride_of(out, 2, SPMLA_MLA_LATENT);
	a.lse_head_stride_elems = stride_of(lse, 1, 1);
	a.lse_token_stride_elems = stride_of(lse, 2, 1);
	for (b = 0; v == GOLDEN_RAN && b < q->shape[0]; b++)
		v = decode_element(c, a, b);
	return v;
}

const golden_op golden_v32_ops[] = {
	{"convert_req_index_seed", run_index_map},
	{"convert_req_index_newest", run_index_map},
	{"flashmla_sparse_decode", run_sparse_decode},
	{"deepgemm_paged_mqa_logits", golden_run_mqa_logits},
	{"flashmla_tile_scheduler", golden_run_tile_sched},
	{NULL, NULL}};
