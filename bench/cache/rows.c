/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of operations that move rows and compute little.
 */
#include "bench/bench.h"

#include <stdlib.h>

#include "spmla/ops/kv_insert.h"
#include "spmla/ops/split_combine.h"

enum {
	TOKENS = 1024,
	LATENT = 512,
	ROPE = 64,
	HEADS = BENCH_MAX_HEADS,
	SPLITS = 8
};

static spmla_kv_insert_args insert;
static spmla_split_combine_args combine;

static void
make_insert(bench *b)
{
	uint16_t *kv_c = bench_room(TOKENS * LATENT * 2);
	uint16_t *k_pe = bench_room(TOKENS * ROPE * 2);
	int64_t *slots = bench_room(TOKENS * 8);
	uint32_t t;

	bench_fill_bf16(&b->rng, kv_c, TOKENS * LATENT);
	bench_fill_bf16(&b->rng, k_pe, TOKENS * ROPE);
	for (t = 0; t < TOKENS; t++)
		slots[t] = (t * 37) % TOKENS;
	insert = (spmla_kv_insert_args){.struct_bytes = sizeof insert,
					.tokens = TOKENS,
					.dtype = SPMLA_DTYPE_BF16,
					.scale_mode = SPMLA_SCALE_RAW,
					.kv_c = kv_c,
					.k_pe = k_pe,
					.kv_c_stride_elems = LATENT,
					.k_pe_stride_elems = ROPE,
					.slot_mapping = slots,
					.cache = SPMLA_CACHE_INIT};
	insert.cache.layout = SPMLA_LAYOUT_FP8_DS_MLA;
	insert.cache.entries_per_page = BENCH_PAGE;
	insert.cache.pages = TOKENS / BENCH_PAGE;
	insert.cache.page_stride_bytes = BENCH_PAGE * BENCH_KV_ROW;
	insert.cache.base = bench_room(TOKENS * BENCH_KV_ROW);
}

static void
make_combine(bench *b)
{
	const uint32_t elems = SPLITS * HEADS * LATENT;
	float *out = bench_room(elems * 4), *lse;
	int32_t *num_splits = bench_room(8);
	uint32_t i;

	lse = bench_room(SPLITS * HEADS * 4);
	for (i = 0; i < elems; i++)
		out[i] = (float)(bench_next(&b->rng) % 1000) / 1000;
	for (i = 0; i < SPLITS * HEADS; i++)
		lse[i] = (float)(bench_next(&b->rng) % 1000) / 100;
	num_splits[1] = SPLITS;
	combine = (spmla_split_combine_args){
		.struct_bytes = sizeof combine,
		.tokens = 1,
		.heads = HEADS,
		.split_rows = SPLITS,
		.num_splits = num_splits,
		.split_out = out,
		.split_lse = lse,
		.out = bench_room(HEADS * LATENT * 2),
		.out_token_stride_elems = HEADS * LATENT,
		.out_head_stride_elems = LATENT,
	};
}

void
bench_make_rows(bench *b)
{
	make_insert(b);
	make_combine(b);
}

static void
run_insert(void *arg)
{
	const bench *b = arg;

	if (spmla_kv_insert(b->ctx, &insert, NULL) != SPMLA_OK)
		abort();
}

static void
run_combine(void *arg)
{
	const bench *b = arg;

	if (spmla_split_combine(b->ctx, &combine, NULL) != SPMLA_OK)
		abort();
}

/* The flop of kv_insert: an absolute value, a maximum, a division and its
 * rounding for a value. */
void
bench_measure_rows(bench *b)
{
	bench_measure(b, "split_combine", "128 heads, 8 splits", run_combine,
		      BENCH_READS_IN_ORDER, HEADS * LATENT * (SPLITS * 4.0 + 2),
		      2.0 * SPLITS * HEADS * LATENT);
	bench_measure(b, "kv_insert", "1024 tokens, fp8", run_insert,
		      BENCH_READS_IN_ORDER,
		      TOKENS * (BENCH_KV_ROW + (LATENT + ROPE) * 2.0),
		      4.0 * TOKENS * LATENT);
}
