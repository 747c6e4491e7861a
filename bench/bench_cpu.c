/* SPDX-License-Identifier: Apache-2.0
 *
 * The speed of the CPU backend: each shape under each variant that the machine
 * has, on one core or more, beside a floor that the same run measures for one.
 * The hard idea is that floor: the larger of the bytes that have to move over
 * the memory's rate and of the flop over the fastest rate of fused
 * multiply-adds, whatever the variant. A time means something only beside it.
 */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "spmla/ops/mqa_logits.h"
#include "spmla/ops/sparse_decode.h"
#include "spmla/spmla.h"
#include "spmla/spmla_cpu.h"

enum {
	PAGE = 64,
	INDEX_HEADS = 64,
	MAX_HEADS = 128,
	MAX_CONTEXT = 32768,
	TOPK = 2048,
	LISTS = 32, /* of slots, in turn: together 43 MB of rows */
	KV_ROWS = 65536,
	HUGE_PAGE = 2 << 20
};

typedef struct bench {
	spmla_ctx *ctx;
	void *memory[SPMLA_MEMORY_COUNT];
	uint64_t rng;
	float seconds; /* a shape */
	uint32_t workers;
	bench_roofs roofs;
	bench_row rows[BENCH_ROWS];
	uint32_t count;
	spmla_mqa_logits_args logits;
	spmla_sparse_decode_args decode;
	const int32_t *slots; /* [LISTS][TOPK] */
	uint32_t lists;       /* of them in use */
	uint32_t turn;
} bench;

static uint32_t
next(bench *b)
{
	b->rng = b->rng * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(b->rng >> 33);
}

static void *
room(uint64_t bytes)
{
	const uint64_t align = bytes < HUGE_PAGE ? 4096 : HUGE_PAGE;
	void *p = aligned_alloc(align, (bytes + align - 1) / align * align);

	if (!p)
		abort();
	if (align == HUGE_PAGE)
		madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

static void
open_ctx(bench *b, uint32_t flags)
{
	static spmla_plan plan;
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_native native = SPMLA_NATIVE_INIT;
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_config config;
	uint32_t m, n = 0;
	char text[256];

	memset(&plan, 0, sizeof plan);
	plan.struct_bytes = (uint32_t)sizeof plan;
	native.flags = flags;
	native.parallel_for = bench_for;
	spmla_config_preset(&config, SPMLA_MODEL_V32);
	config.max_rows = 1;
	config.max_context_tokens = MAX_CONTEXT;
	config.groups[SPMLA_GROUP_MAIN].pool_pages = KV_ROWS / PAGE;
	config.bucket_count = 1;
	config.cpu_workers = b->workers;
	config.buckets[0] = (spmla_shape){1, 1, 1, 0};
	if (spmla_backend_query(&spmla_cpu, &native, &device, &diag) ||
	    spmla_plan_make(&plan, &config, &device, &diag))
		goto fail;
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		if (plan.region_bytes[m] == 0)
			continue;
		b->memory[m] = room(plan.region_bytes[m]);
		regions[n++] = (spmla_region){.struct_bytes =
						      (uint32_t)sizeof *regions,
					      .memory = m,
					      .base = b->memory[m],
					      .bytes = plan.region_bytes[m]};
	}
	if (spmla_init(&b->ctx, &plan, &spmla_cpu, &native, regions, n, &diag))
		goto fail;
	return;
fail:
	spmla_diag_text(&diag, text, sizeof text);
	fprintf(stderr, "%s\n", text);
	exit(1);
}

static void
close_ctx(bench *b)
{
	uint32_t m;

	spmla_fini(b->ctx);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		free(b->memory[m]);
		b->memory[m] = NULL;
	}
}

/* Codes without NaN, scales of 2^-4, bf16 around 1. */
static void
fill_codes(bench *b, uint8_t *codes, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		codes[i] = (uint8_t)(next(b) & 0xf7u);
}

static void
fill_bf16(bench *b, uint16_t *x, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] = (uint16_t)(0x3f00u | (next(b) & 0x80ffu));
}

static void
make_logits(bench *b)
{
	const uint32_t pages = MAX_CONTEXT / PAGE;
	spmla_mqa_logits_args *a = &b->logits;
	int32_t *table = room(pages * 4);
	uint8_t *q = room(INDEX_HEADS * 128), *keys = room(pages * PAGE * 132);
	float *weights = room(INDEX_HEADS * 4);
	const float scale = 0.0625f;
	uint32_t i, j;

	for (i = 0; i < pages; i++) {
		table[i] = (int32_t)((i * 37) % pages);
		fill_codes(b, keys + i * PAGE * 132, PAGE * 128);
		for (j = 0; j < PAGE; j++)
			memcpy(keys + i * PAGE * 132 + PAGE * 128 + j * 4,
			       &scale, 4);
	}
	fill_codes(b, q, INDEX_HEADS * 128);
	for (i = 0; i < INDEX_HEADS; i++)
		weights[i] = (float)(next(b) % 100) / 100;
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = 1;
	a->heads = INDEX_HEADS;
	a->rows = 1;
	a->columns = a->table_stride_elems = pages;
	a->q = q;
	a->weights = weights;
	a->token_row = room(4);
	a->row_starts = room(8);
	a->block_table = table;
	a->logits = room(MAX_CONTEXT * 4);
	a->logits_elems = MAX_CONTEXT;
	a->cache = (spmla_cache)SPMLA_CACHE_INIT;
	a->cache.layout = SPMLA_LAYOUT_INDEX_FP8;
	a->cache.entries_per_page = PAGE;
	a->cache.pages = pages;
	a->cache.page_stride_bytes = PAGE * 132;
	a->cache.base = keys;
}

static void
make_decode(bench *b)
{
	spmla_sparse_decode_args *a = &b->decode;
	uint8_t *rows = room((uint64_t)KV_ROWS * 656);
	uint16_t *q = room(MAX_HEADS * 576 * 2);
	int32_t *slots = room(LISTS * TOPK * 4);
	const float scale = 0.0625f;
	uint32_t i, j;

	for (i = 0; i < KV_ROWS; i++) {
		uint8_t *row = rows + (uint64_t)i * 656;

		fill_codes(b, row, 512);
		for (j = 0; j < 4; j++)
			memcpy(row + 512 + j * 4, &scale, 4);
		fill_bf16(b, (uint16_t *)(void *)(row + 528), 64);
	}
	for (i = 0; i < LISTS * TOPK; i++)
		slots[i] = (int32_t)(next(b) % KV_ROWS);
	fill_bf16(b, q, MAX_HEADS * 576);
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = 1;
	a->topk = TOPK;
	a->softmax_scale = 0.07216878f;
	a->q = q;
	a->q_token_stride_elems = MAX_HEADS * 576;
	a->q_head_stride_elems = 576;
	b->slots = slots;
	a->slots_stride_elems = TOPK;
	a->out = room(MAX_HEADS * 512 * 2);
	a->out_token_stride_elems = MAX_HEADS * 512;
	a->out_head_stride_elems = 512;
	a->cache = (spmla_cache)SPMLA_CACHE_INIT;
	a->cache.layout = SPMLA_LAYOUT_FP8_DS_MLA;
	a->cache.entries_per_page = PAGE;
	a->cache.pages = KV_ROWS / PAGE;
	a->cache.page_stride_bytes = PAGE * 656;
	a->cache.base = rows;
}

static void
run_logits(void *arg)
{
	const bench *b = arg;

	if (spmla_mqa_logits(b->ctx, &b->logits, NULL) != SPMLA_OK)
		abort();
}

static void
run_decode(void *arg)
{
	bench *b = arg;

	b->decode.slots = b->slots + b->turn++ % b->lists * TOPK;
	if (spmla_sparse_decode(b->ctx, &b->decode, NULL) != SPMLA_OK)
		abort();
}

static void
measure(bench *b, const char *op, const char *shape, void (*run)(void *),
	double bytes, double flop)
{
	bench_row *r = &b->rows[b->count++];
	uint32_t n;
	const double *times = bench_times(run, b, b->seconds, &n);

	r->op = op;
	snprintf(r->shape, sizeof r->shape, "%s", shape);
	r->variant = spmla_cpu_variant(b->ctx);
	r->bytes = bytes;
	r->flop = flop;
	r->best_s = times[0];
	r->median_s = times[n / 2];
	r->p99_s = times[(n - 1) * 99 / 100];
}

static void
measure_all(bench *b)
{
	static const uint32_t contexts[2] = {8192, 32768};
	static const uint32_t heads[2] = {16, 128};
	char shape[64];
	int32_t len;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		len = (int32_t)contexts[i];
		b->logits.context_lens = &len;
		snprintf(shape, sizeof shape, "64 heads, %u keys", contexts[i]);
		measure(b, "mqa_logits", shape, run_logits,
			(132.0 + 4) * contexts[i],
			2.0 * INDEX_HEADS * 128 * contexts[i]);
	}
	for (i = 0; i < 4; i++) {
		const uint32_t h = heads[i / 2];

		b->decode.heads = h;
		b->lists = i % 2 ? LISTS : 1;
		snprintf(shape, sizeof shape, "%u heads, %d rows, %s", h, TOPK,
			 i % 2 ? "memory" : "cached");
		measure(b, "sparse_decode", shape, run_decode,
			656.0 * TOPK + h * (576.0 + 512) * 2,
			2.0 * h * TOPK * (576 + 512));
	}
}

static void
print(bench *b)
{
	const bench_roofs *r = &b->roofs;
	const double bytes_s = r->copy_bytes_s > r->read_bytes_s
				       ? r->copy_bytes_s
				       : r->read_bytes_s;
	double flops = 0;
	uint32_t i;

	for (i = 0; i < BENCH_VARIANTS; i++)
		flops = r->flops[i] > flops ? r->flops[i] : flops;
	printf("Roofs of one core: copy %.1f GB/s (read + written), read %.1f "
	       "GB/s; fma in Gflop/s: scalar %.1f, AVX2 %.1f, AVX-512 %.1f.\n",
	       r->copy_bytes_s * 1e-9, r->read_bytes_s * 1e-9,
	       r->flops[0] * 1e-9, r->flops[1] * 1e-9, r->flops[2] * 1e-9);
	printf("\n| op | shape | variant | workers | best us | median us | "
	       "p99 us | GB/s | Gflop/s | floor us | over floor | of roof |\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (i = 0; i < b->count; i++) {
		bench_row *row = &b->rows[i];

		row->floor_s = fmax(row->bytes / bytes_s, row->flop / flops);
		printf("| %s | %s | %s | %u | %.1f | %.1f | %.1f | %.2f | "
		       "%.1f | %.1f | %.2f | %.0f %% |\n",
		       row->op, row->shape, row->variant, b->workers,
		       row->best_s * 1e6, row->median_s * 1e6, row->p99_s * 1e6,
		       row->bytes / row->median_s * 1e-9,
		       row->flop / row->median_s * 1e-9, row->floor_s * 1e6,
		       row->median_s / row->floor_s,
		       100 * row->floor_s / row->median_s);
	}
}

/* bench_cpu [--seconds N] [--workers N] [--svg FILE] */
int
main(int argc, char **argv)
{
	static const uint32_t flags[3] = {SPMLA_NATIVE_SCALAR,
					  SPMLA_NATIVE_AVX2, 0};
	static bench b = {.rng = 1, .seconds = 1, .workers = 1};
	const char *svg = NULL, *last = "";
	int i;

	for (i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], "--svg") == 0)
			svg = argv[i + 1];
		else if (strcmp(argv[i], "--seconds") == 0)
			b.seconds = strtof(argv[i + 1], NULL);
		else if (strcmp(argv[i], "--workers") == 0)
			b.workers = (uint32_t)strtoul(argv[i + 1], NULL, 10);
		else
			break;
	if (i < argc) {
		fprintf(stderr, "usage: bench_cpu [--seconds N] [--workers N] "
				"[--svg FILE]\n");
		return 2;
	}
	make_logits(&b);
	make_decode(&b);
	bench_measure_roofs(&b.roofs);
	if (b.workers > 1) {
		bench_start_workers(b.workers);
		bench_use_wall_clock();
	}
	for (i = 0; i < 3; i++) {
		open_ctx(&b, flags[i]);
		if (strcmp(spmla_cpu_variant(b.ctx), last) != 0)
			measure_all(&b);
		last = spmla_cpu_variant(b.ctx);
		close_ctx(&b);
	}
	bench_measure_roofs(&b.roofs);
	print(&b);
	if (svg && !bench_draw(svg,
			       b.workers > 1 ? "SpMLA, floor of one core"
					     : "SpMLA on one core",
			       b.rows, b.count)) {
		fprintf(stderr, "cannot write %s\n", svg);
		return 1;
	}
	return 0;
}
