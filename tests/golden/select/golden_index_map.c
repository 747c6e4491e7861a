/* SPDX-License-Identifier: Apache-2.0
 *
 * Adapters of the DeepSeek V3.2 ops: vLLM's index conversion; golden_decode.c
 * has FlashMLA's sparse decode, golden_paged_logits.c DeepGEMM's paged logits.
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
	double page;

	if (!golden_has(c, in, (const int64_t[]){-1, -1}) ||
	    !golden_has(c, ids, in->shape) || !golden_has(c, out, in->shape) ||
	    !golden_has(c, table, (const int64_t[]){-1, -1}))
		return GOLDEN_FAILED;
	if (counts)
		counts = golden_need(c, "valid_counts", GOLDEN_I32, 1);
	if (golden_find(c, "valid_counts") && !golden_has(c, counts, in->shape))
		return GOLDEN_FAILED;
	if (!golden_need_param(c, "BLOCK_SIZE", &page) || page < 1 ||
	    page > 65536)
		return golden_fail(c, "bad param BLOCK_SIZE");
	if (!map_workspaces(c, in->shape[0], &a))
		return GOLDEN_FAILED;
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = (uint32_t)in->shape[0];
	a.k = (uint32_t)in->shape[1];
	a.rows = (uint32_t)table->shape[0];
	a.columns = (uint32_t)table->shape[1];
	a.table_stride_elems = (uint32_t)table->strides[0];
	a.page_tokens = (uint32_t)page;
	a.page_stride_rows = golden_page_stride(c);
	a.token_row = golden_first(ids);
	a.block_table = golden_first(table);
	a.indices = golden_first(in);
	a.indices_stride_elems = in->strides[0];
	a.slots = golden_first(out);
	a.slots_stride_elems = out->strides[0];
	a.valid_counts = counts ? golden_first(counts) : NULL;
	return golden_called(c, spmla_index_map(c->ctx, &a, NULL));
}

const golden_op golden_v32_ops[] = {
	{"convert_req_index_seed", run_index_map},
	{"convert_req_index_newest", run_index_map},
	{"flashmla_sparse_decode", golden_run_sparse_decode},
	{"deepgemm_paged_mqa_logits", golden_run_mqa_logits},
	{"flashmla_tile_scheduler", golden_run_tile_sched},
	{NULL, NULL}};
