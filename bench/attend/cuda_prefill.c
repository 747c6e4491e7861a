/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of the attention over gathered keys. Each query's are drawn in no
 * order from all of them.
 */
#include "bench/cuda.h"

#include <stdio.h>
#include <string.h>

#include "spmla/ops/sparse_prefill.h"

enum { MOST_HEADS = 128, MOST_KEYS = 8192 };

static struct {
	uint32_t tokens, heads, dim, topk, keys;
	const twin *q, *kv, *indices, *out, *lse;
} pf;

static spmla_sparse_prefill_args
prefill_args(side on, uint32_t first, uint32_t tokens)
{
	const size_t head = (size_t)first * pf.heads;

	return (spmla_sparse_prefill_args){
		.struct_bytes = (uint32_t)sizeof(spmla_sparse_prefill_args),
		.tokens = tokens,
		.heads = pf.heads,
		.dim = pf.dim,
		.topk = pf.topk,
		.kv_rows = pf.keys,
		.softmax_scale = 0.0721687836f,
		.q = (const uint16_t *)pf.q->at[on] + head * pf.dim,
		.q_token_stride_elems = (int64_t)pf.heads * pf.dim,
		.q_head_stride_elems = pf.dim,
		.kv = pf.kv->at[on],
		.kv_stride_elems = pf.dim,
		.indices = (const int32_t *)pf.indices->at[on] +
			   (size_t)first * pf.topk,
		.indices_stride_elems = pf.topk,
		.out = (uint16_t *)pf.out->at[on] + head * SPMLA_MLA_LATENT,
		.out_token_stride_elems = (int64_t)pf.heads * SPMLA_MLA_LATENT,
		.out_head_stride_elems = SPMLA_MLA_LATENT,
		.lse = (float *)pf.lse->at[on] + head,
		.lse_token_stride_elems = pf.heads,
		.lse_head_stride_elems = 1,
	};
}

static void
run_prefill(gpu *g)
{
	const spmla_sparse_prefill_args a =
		prefill_args(ON_DEVICE, 0, pf.tokens);

	lib_must(g->ops.ctx, spmla_sparse_prefill(g->ops.ctx, &a, g->stream),
		 "sparse_prefill");
}

static void
make_prefill(gpu *g, uint32_t tokens)
{
	const uint64_t all = (uint64_t)tokens * pf.heads;
	twin *t = twin_make(g, all * pf.dim * 2);
	static int32_t order[MOST_KEYS];
	uint32_t i;

	pf.tokens = tokens;
	fill_bf16(g, t->at[ON_HOST], all * pf.dim, 4);
	twin_push(g, t);
	pf.q = t;
	t = twin_make(g, (uint64_t)pf.keys * pf.dim * 2);
	fill_bf16(g, t->at[ON_HOST], (uint64_t)pf.keys * pf.dim, 1);
	twin_push(g, t);
	pf.kv = t;
	t = twin_make(g, (uint64_t)tokens * pf.topk * 4);
	for (i = 0; i < tokens; i++) {
		fill_order(g, order, pf.keys);
		memcpy((int32_t *)t->at[ON_HOST] + (size_t)i * pf.topk, order,
		       pf.topk * sizeof *order);
	}
	twin_push(g, t);
	pf.indices = t;
	pf.out = twin_make(g, all * SPMLA_MLA_LATENT * 2);
	pf.lse = twin_make(g, all * 4);
}

static void
one_prefill(gpu *g, uint32_t tokens)
{
	shot s = {.op = "sparse_prefill", .run = run_prefill};
	cuda_row *r;
	uint32_t t;

	make_prefill(g, tokens);
	s.outputs[0] = pf.out, s.outputs[1] = pf.lse;
	r = measure(g, &s);
	snprintf(r->shape, sizeof r->shape,
		 "%u queries, %u heads, d %u, top-k %u", tokens, pf.heads,
		 pf.dim, pf.topk);
	add_floor(g, r,
		  (double)pf.q->bytes + (double)pf.kv->bytes +
			  (double)pf.indices->bytes + (double)pf.out->bytes,
		  BY_READ,
		  2.0 * tokens * pf.heads * pf.topk *
			  (pf.dim + SPMLA_MLA_LATENT),
		  BF16);
	for (t = 0; t < tokens; t += tokens - 1) {
		const spmla_sparse_prefill_args a = prefill_args(ON_HOST, t, 1);
		const uint64_t head = (uint64_t)t * pf.heads;

		lib_must(g->cpu.ctx, spmla_sparse_prefill(g->cpu.ctx, &a, NULL),
			 "sparse_prefill");
		check_bf16(g, r, pf.out, head * SPMLA_MLA_LATENT,
			   (uint64_t)pf.heads * SPMLA_MLA_LATENT);
		check_f32(g, r, pf.lse, head, pf.heads);
	}
	table_row(g, r);
	twins_free(g);
}

void
bench_prefill(gpu *g)
{
	/* V3.2, and V4's two kinds of layers. */
	static const struct {
		uint32_t heads, dim, topk;
	} longer[] = {{128, SPMLA_MLA_DIM, 2048},
		      {128, SPMLA_V4_DIM, 640},
		      {64, SPMLA_V4_DIM, 640},
		      {128, SPMLA_V4_DIM, 1152}};
	uint32_t i;

	if (!wanted(g, "sparse_prefill"))
		return;
	pf.heads = g->tiny ? 8 : MOST_HEADS;
	pf.dim = SPMLA_MLA_DIM;
	pf.topk = g->tiny ? 64 : 2048;
	pf.keys = g->tiny ? 128 : MOST_KEYS;
	one_prefill(g, g->tiny ? 2 : 1024);
	for (i = 0; g->longer && i < sizeof longer / sizeof *longer; i++) {
		pf.heads = longer[i].heads;
		pf.dim = longer[i].dim;
		pf.topk = longer[i].topk;
		one_prefill(g, 4096);
	}
}
