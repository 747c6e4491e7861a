/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of the gathers: whole requests out of pages in no order. Their
 * floor is by the rate of a copy.
 */
#include "bench/cuda.h"

#include <stdio.h>

#include "spmla/ops/indexer_k_gather.h"
#include "spmla/ops/kv_gather.h"

enum { PAGE = 64 };

static struct {
	uint32_t requests, each, columns; /* keys of a request, and its pages */
	const twin *pool, *table, *bounds, *out, *scales;
} gt;

static spmla_kv_gather_args
kv_args(side on)
{
	return (spmla_kv_gather_args){
		.struct_bytes = (uint32_t)sizeof(spmla_kv_gather_args),
		.requests = gt.requests,
		.keys = gt.requests * gt.each,
		.rows = gt.requests,
		.columns = gt.columns,
		.table_stride_elems = gt.columns,
		.workspace_starts = gt.bounds->at[on],
		.block_table = gt.table->at[on],
		.dst = gt.out->at[on],
		.dst_stride_elems = SPMLA_MLA_DIM,
		.cache = pool_cache(gt.pool, on, SPMLA_LAYOUT_FP8_DS_MLA, PAGE),
	};
}

static spmla_indexer_k_gather_args
k_args(side on)
{
	return (spmla_indexer_k_gather_args){
		.struct_bytes = (uint32_t)sizeof(spmla_indexer_k_gather_args),
		.requests = gt.requests,
		.keys = gt.requests * gt.each,
		.rows = gt.requests,
		.columns = gt.columns,
		.table_stride_elems = gt.columns,
		.cu_seq_lens = gt.bounds->at[on],
		.block_table = gt.table->at[on],
		.dst_k = gt.out->at[on],
		.dst_scale = gt.scales->at[on],
		.cache = pool_cache(gt.pool, on, SPMLA_LAYOUT_INDEX_FP8, PAGE),
	};
}

static void
run_kv(gpu *g)
{
	const spmla_kv_gather_args a = kv_args(ON_DEVICE);

	lib_must(g->ops.ctx, spmla_kv_gather(g->ops.ctx, &a, g->stream),
		 "kv_gather");
}

static void
run_k(gpu *g)
{
	const spmla_indexer_k_gather_args a = k_args(ON_DEVICE);

	lib_must(g->ops.ctx, spmla_indexer_k_gather(g->ops.ctx, &a, g->stream),
		 "indexer_k_gather");
}

static void
make(gpu *g, uint32_t requests, uint32_t each, uint32_t layout, uint32_t bytes)
{
	const uint32_t keys = requests * each;
	twin *bounds = twin_make(g, (requests + 1) * 4);
	twin *table;
	uint32_t i;

	gt.requests = requests, gt.each = each;
	gt.columns = (each + PAGE - 1) / PAGE;
	table = twin_make(g, requests * gt.columns * 4);
	fill_order(g, table->at[ON_HOST], requests * gt.columns);
	for (i = 0; i <= requests; i++)
		((int32_t *)bounds->at[ON_HOST])[i] = (int32_t)(i * each);
	twin_push(g, bounds);
	twin_push(g, table);
	gt.bounds = bounds, gt.table = table;
	gt.pool = make_pool(g, layout, PAGE, requests * gt.columns);
	gt.out = twin_make(g, (uint64_t)keys * bytes);
	gt.scales = twin_make(g, (uint64_t)keys * 4);
}

static void
one(gpu *g, uint32_t requests, uint32_t each, uint32_t layout)
{
	const int is_kv = layout == SPMLA_LAYOUT_FP8_DS_MLA;
	const uint32_t bytes = is_kv ? SPMLA_MLA_DIM * 2 : SPMLA_INDEX_DIM;
	const double keys = (double)requests * each;
	const double moved = is_kv ? bytes + SPMLA_FP8_DS_MLA_BYTES
				   : 2 * SPMLA_INDEX_FP8_BYTES;
	shot s = {.op = is_kv ? "kv_gather" : "indexer_k_gather",
		  .run = is_kv ? run_kv : run_k};
	spmla_indexer_k_gather_args k;
	spmla_kv_gather_args kv;
	cuda_row *r;

	make(g, requests, each, layout, bytes);
	s.outputs[0] = gt.out, s.outputs[1] = is_kv ? NULL : gt.scales;
	r = measure(g, &s);
	snprintf(r->shape, sizeof r->shape, "%u x %u keys", requests, each);
	r->batch = requests;
	add_floor(g, r, keys * moved, BY_COPY, 0, NO_PRODUCT);
	kv = kv_args(ON_HOST);
	k = k_args(ON_HOST);
	lib_must(g->cpu.ctx,
		 is_kv ? spmla_kv_gather(g->cpu.ctx, &kv, NULL)
		       : spmla_indexer_k_gather(g->cpu.ctx, &k, NULL),
		 s.op);
	check_bytes(g, r, gt.out, 0, gt.out->bytes);
	if (!is_kv)
		check_bytes(g, r, gt.scales, 0, gt.scales->bytes);
	table_row(g, r);
	twins_free(g);
}

void
bench_gathers(gpu *g)
{
	const uint32_t each = g->tiny ? 100 : 8192;

	if (wanted(g, "kv_gather")) {
		one(g, 1, each, SPMLA_LAYOUT_FP8_DS_MLA);
		one(g, g->tiny ? 3 : 16, each, SPMLA_LAYOUT_FP8_DS_MLA);
	}
	if (wanted(g, "indexer_k_gather")) {
		one(g, 1, each, SPMLA_LAYOUT_INDEX_FP8);
		one(g, g->tiny ? 3 : 64, each, SPMLA_LAYOUT_INDEX_FP8);
	}
}
