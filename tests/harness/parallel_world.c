/* SPDX-License-Identifier: Apache-2.0
 *
 * See parallel_world.h: running and comparing. The calls are made in
 * parallel_calls.c.
 */
#include "tests/harness/parallel_world.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

void
par_config(spmla_config *config)
{
	fixture_config(config);
	config->heads = PAR_HEADS;
	config->index_heads = PAR_INDEX_HEADS;
	config->topk = PAR_TOPK;
}

void
par_close(par_world *w)
{
	free(w->in);
	free(w->out);
	memset(w, 0, sizeof *w);
}

const char *
par_name(par_op op)
{
	static const char *const names[PAR_OPS] = {"kv_insert",
						   "indexer_k_insert",
						   "indexer_q_prep",
						   "mqa_logits",
						   "topk",
						   "index_map",
						   "sparse_decode",
						   "sparse_decode in parts",
						   "indexer_k_gather",
						   "kv_gather",
						   "mqa_logits_gathered",
						   "sparse_prefill"};

	return names[op];
}

static spmla_status
call(spmla_ctx *ctx, const par_world *w, par_op op)
{
	switch (op) {
	case PAR_KV_INSERT:
		return spmla_kv_insert(ctx, &w->kv_insert, NULL);
	case PAR_INDEXER_K_INSERT:
		return spmla_indexer_k_insert(ctx, &w->k_insert, NULL);
	case PAR_INDEXER_Q_PREP:
		return spmla_indexer_q_prep(ctx, &w->q_prep, NULL);
	case PAR_MQA_LOGITS:
		return spmla_mqa_logits(ctx, &w->logits, NULL);
	case PAR_TOPK_OP:
		return spmla_topk(ctx, &w->topk, NULL);
	case PAR_INDEX_MAP:
		return spmla_index_map(ctx, &w->index_map, NULL);
	case PAR_SPARSE_DECODE:
		return spmla_sparse_decode(ctx, &w->decode, NULL);
	case PAR_SPARSE_DECODE_PARTS:
		return spmla_sparse_decode(ctx, &w->parts, NULL);
	case PAR_INDEXER_K_GATHER:
		return spmla_indexer_k_gather(ctx, &w->k_gather, NULL);
	case PAR_KV_GATHER:
		return spmla_kv_gather(ctx, &w->kv_gather, NULL);
	case PAR_MQA_LOGITS_GATHERED:
		return spmla_mqa_logits_gathered(ctx, &w->gathered, NULL);
	case PAR_SPARSE_PREFILL:
		return spmla_sparse_prefill(ctx, &w->prefill, NULL);
	default:
		return SPMLA_E_RANGE;
	}
}

void
par_run(fixture *f, par_world *w, par_op op)
{
	memset(w->out, 0xAB, w->out_used);
	ck_assert_int_eq(spmla_status_clear(f->ctx), SPMLA_OK);
	ck_assert_msg(call(f->ctx, w, op) == SPMLA_OK, "%s: %s", par_name(op),
		      fixture_diag(f));
}

void
par_compare(fixture *serial, fixture *parallel, par_world *w, par_op op)
{
	uint8_t *kept = test_alloc(w->out_used, 0);
	spmla_device_status want, got;
	uint64_t i;

	par_run(serial, w, op);
	want = fixture_status(serial);
	memcpy(kept, w->out, w->out_used);
	par_run(parallel, w, op);
	got = fixture_status(parallel);
	for (i = 0; i < w->out_used && kept[i] == w->out[i]; i++)
		;
	ck_assert_msg(i == w->out_used, "%s, %u tokens: byte %llu",
		      par_name(op), w->tokens, (unsigned long long)i);
	ck_assert_msg(memcmp(&got, &want, sizeof got) == 0,
		      "%s, %u tokens: %u x %s, row %u; want %u x %s, row %u",
		      par_name(op), w->tokens, got.count,
		      spmla_fault_name(got.fault), got.row, want.count,
		      spmla_fault_name(want.fault), want.row);
	ck_assert_msg(w->bad || want.count == 0, "%s: %s", par_name(op),
		      spmla_fault_name(want.fault));
	free(kept);
}
