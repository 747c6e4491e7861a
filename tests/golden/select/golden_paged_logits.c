/* SPDX-License-Identifier: Apache-2.0
 *
 * The adapter of mqa_logits: DeepGEMM's fp8 paged logits. The real kernel's
 * arithmetic is coarser than its own cases' bound; golden_tensor_core.c says by
 * how much.
 */
#include "tests/golden/golden.h"

#include <string.h>

/* slack[key] of one token: how far the real kernel is from exact sums. */
static void
token_slack(const golden_case *c, const spmla_mqa_logits_args *a,
	    uint32_t token, double *slack)
{
	const uint32_t entries = a->cache.entries_per_page;
	int32_t n;

	for (n = 0; n < a->context_lens[token]; n++) {
		const uint32_t at = (uint32_t)n % entries;
		const uint8_t *page =
			(const uint8_t *)a->cache.base +
			(uint64_t)a->block_table[(uint64_t)a->token_row[token] *
							 a->table_stride_elems +
						 (uint32_t)n / entries] *
				a->cache.page_stride_bytes;
		float scale;

		memcpy(&scale,
		       page + (uint64_t)entries * SPMLA_INDEX_DIM + at * 4ull,
		       sizeof scale);
		slack[n] = golden_score_slack(
			c, a->q + (uint64_t)token * a->heads * SPMLA_INDEX_DIM,
			a->weights + (uint64_t)token * a->heads, a->heads,
			page + (uint64_t)at * SPMLA_INDEX_DIM, scale);
	}
}

static int
find_slack(golden_case *c, golden_tensor *logits,
	   const spmla_mqa_logits_args *a)
{
	uint32_t t;

	if (logits->slack)
		return 1;
	logits->slack = golden_scratch(c, logits->count * sizeof(double));
	logits->slack_why = "what sm_90 tensor cores drop";
	logits->diff_limit = 5e-6; /* of DeepGEMM's own tests */
	for (t = 0; logits->slack && t < a->tokens; t++)
		token_slack(c, a, t,
			    logits->slack +
				    (uint64_t)t * (uint64_t)logits->shape[1]);
	return logits->slack != NULL;
}

/* Past a row's length the case holds 0, which stands for "undefined"; the
 * library must not write there. */
static golden_verdict
end_rows(golden_case *c, const golden_tensor *logits, const int32_t *lens)
{
	static const uint8_t sentinel[4] = {GOLDEN_SENTINEL, GOLDEN_SENTINEL,
					    GOLDEN_SENTINEL, GOLDEN_SENTINEL};
	int64_t t, n;

	for (t = 0; t < logits->shape[0]; t++)
		for (n = lens[t]; n < logits->shape[1]; n++) {
			float *at = (float *)golden_first(logits) +
				    t * logits->strides[0] + n;

			if (memcmp(at, sentinel, sizeof sentinel) != 0)
				return golden_fail(
					c,
					"logits[%d][%d] was written, past the "
					"length of %d",
					(int)t, (int)n, (int)lens[t]);
			*at = 0;
		}
	return GOLDEN_RAN;
}

/* Per-token arrays; [b][next_n] is flat in all of them. */
static int
lay_out_tokens(golden_case *c, const golden_tensor *lens,
	       const golden_tensor *logits, spmla_mqa_logits_args *a)
{
	const int64_t next_n = lens->shape[1];
	int32_t *rows = golden_scratch(c, a->tokens * sizeof *rows);
	int32_t *context = golden_scratch(c, a->tokens * sizeof *context);
	int64_t *starts = golden_scratch(c, a->tokens * sizeof *starts);
	uint32_t t;

	if (!rows || !context || !starts)
		return 0;
	for (t = 0; t < a->tokens; t++) {
		rows[t] = (int32_t)(t / next_n);
		context[t] = golden_i32(lens, t / next_n, t % next_n);
		starts[t] = t * logits->strides[0];
		if (context[t] < 0 || context[t] > logits->shape[1]) {
			(void)golden_fail(c, "context_lens out of bounds");
			return 0;
		}
	}
	a->token_row = rows;
	a->context_lens = context;
	a->row_starts = starts;
	return 1;
}

golden_verdict
golden_run_mqa_logits(golden_case *c)
{
	const golden_tensor *q = golden_need(c, "q", GOLDEN_E4M3, 4);
	const golden_tensor *weights = golden_need(c, "weights", GOLDEN_F32, 2);
	const golden_tensor *lens =
		golden_need(c, "context_lens", GOLDEN_I32, 2);
	const golden_tensor *table =
		golden_need(c, "block_table", GOLDEN_I32, 2);
	golden_tensor *logits = golden_need(c, "logits", GOLDEN_F32, 2);
	spmla_mqa_logits_args a = {0};
	golden_verdict v;

	if (!golden_has(c, q, (const int64_t[]){-1, -1, -1, SPMLA_INDEX_DIM}) ||
	    !golden_has(c, lens, q->shape) || lens->shape[1] == 0 ||
	    !golden_has(c, logits,
			(const int64_t[]){q->shape[0] * q->shape[1], -1}) ||
	    !golden_has(c, weights,
			(const int64_t[]){logits->shape[0], q->shape[2]}) ||
	    !golden_has(c, table, (const int64_t[]){q->shape[0], -1}) ||
	    !golden_cache(c, "kv_cache", SPMLA_LAYOUT_INDEX_FP8, &a.cache))
		return GOLDEN_FAILED;
	if (!golden_dense(q) || !golden_dense(weights))
		return golden_fail(c, "q or weights have gaps");
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = (uint32_t)logits->shape[0];
	a.heads = (uint32_t)q->shape[2];
	a.rows = (uint32_t)table->shape[0];
	a.columns = (uint32_t)table->shape[1];
	a.table_stride_elems = (uint32_t)table->strides[0];
	a.q = golden_first(q);
	a.weights = golden_first(weights);
	a.block_table = golden_first(table);
	a.logits = golden_first(logits);
	a.logits_elems = logits->elems - (uint64_t)logits->offset;
	if (!lay_out_tokens(c, lens, logits, &a))
		return GOLDEN_FAILED;
	v = golden_called(c, spmla_mqa_logits(c->ctx, &a, NULL));
	if (v == GOLDEN_RAN)
		v = end_rows(c, logits, a.context_lens);
	if (v == GOLDEN_RAN && golden_find(c, "schedule_metadata"))
		v = golden_run_indexer_schedule(c);
	/* after the call, which has reported any page out of bounds */
	if (v == GOLDEN_RAN && !find_slack(c, logits, &a))
		v = GOLDEN_FAILED;
	return v;
}
