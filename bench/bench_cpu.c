/* SPDX-License-Identifier: Apache-2.0
 *
 * The speed of the CPU backend: each shape under each variant that the machine
 * has, on one core or more, beside a floor that the same run measures for one.
 * The hard idea is that floor: the larger of the bytes that have to move over
 * the memory's rate and of the flop over the fastest rate of fused
 * multiply-adds, whatever the variant. A time means something only beside it.
 */
#include "bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/options.h"
#include "spmla/spmla_cpu.h"

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
	config.max_context_tokens = BENCH_MAX_CONTEXT;
	config.groups[SPMLA_GROUP_MAIN].pool_pages =
		BENCH_POOL_ROWS / BENCH_PAGE;
	config.bucket_count = 1;
	config.cpu_workers = b->workers;
	config.buckets[0] = (spmla_shape){1, 1, 1, 0};
	if (spmla_backend_query(&spmla_cpu, &native, &device, &diag) ||
	    spmla_plan_make(&plan, &config, &device, &diag))
		goto fail;
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		if (plan.region_bytes[m] == 0)
			continue;
		b->memory[m] = bench_room(plan.region_bytes[m]);
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

/* The floor of a row and what sets it. */
static void
put_floor(const bench_roofs *r, bench_row *row)
{
	double bytes_s = r->copy_bytes_s > r->read_bytes_s ? r->copy_bytes_s
							   : r->read_bytes_s;
	double flops = 0;
	uint32_t i;

	if (row->reads == BENCH_READS_ROWS)
		bytes_s = r->row_bytes_s;
	for (i = 0; i < BENCH_VARIANTS; i++)
		flops = r->flops[i] > flops ? r->flops[i] : flops;
	row->floor_s = fmax(row->bytes / bytes_s, row->flop / flops);
	if (row->flop / flops >= row->bytes / bytes_s)
		row->bound = "flop";
	else
		row->bound = row->reads == BENCH_READS_ROWS ? "rows" : "bytes";
}

static void
print(bench *b)
{
	const bench_roofs *r = &b->roofs;
	uint32_t i;

	printf("Roofs of one core: copy %.1f GB/s (read + written), read %.1f "
	       "GB/s, random rows of %d bytes %.1f GB/s; fma in Gflop/s: "
	       "scalar %.1f, AVX2 %.1f, AVX-512 %.1f.\n",
	       r->copy_bytes_s * 1e-9, r->read_bytes_s * 1e-9, BENCH_KV_ROW,
	       r->row_bytes_s * 1e-9, r->flops[0] * 1e-9, r->flops[1] * 1e-9,
	       r->flops[2] * 1e-9);
	printf("\n| op | shape | variant | workers | best us | median us | p99 "
	       "us | GB/s "
	       "| Gflop/s | floor us | bound | over floor | of roof |\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (i = 0; i < b->count; i++) {
		bench_row *row = &b->rows[i];

		put_floor(r, row);
		printf("| %s | %s | %s | %u | %.1f | %.1f | %.1f | %.2f | %.1f "
		       "| %.1f | %s | %.2f | %.0f %% |\n",
		       row->op, row->shape, row->variant, b->workers,
		       row->best_s * 1e6, row->median_s * 1e6, row->p99_s * 1e6,
		       row->bytes / row->median_s * 1e-9,
		       row->flop / row->median_s * 1e-9, row->floor_s * 1e6,
		       row->bound, row->median_s / row->floor_s,
		       100 * row->floor_s / row->median_s);
	}
}

#define PROGRAM "bench_cpu"
#define ABOUT                                                              \
	"Measures operations of the CPU backend beside the floor of this " \
	"machine.\nPrints a Markdown table; bench/README.md explains it."

static int
parse(bench *b, const char **svg, int argc, char **argv)
{
	const char *seconds = "1";
	const option list[] = {
		{"--seconds", "how long each row is repeated", &seconds, NULL,
		 NULL, 0, 0},
		{"--only", "one operation alone, as kv_insert (default all)",
		 &b->only, NULL, NULL, 0, 0},
		{"--workers", "threads to lend", NULL, &b->workers, NULL, 1,
		 1024},
		{"--svg", "file to draw time over floor into", svg, NULL, NULL,
		 0, 0},
	};
	const int end = options_parse(PROGRAM, ABOUT, list,
				      sizeof list / sizeof list[0], argc, argv);

	if (end != OPTIONS_GO)
		return end;
	b->seconds = strtof(seconds, NULL);
	if (b->seconds > 0)
		return OPTIONS_GO;
	fprintf(stderr, PROGRAM ": --seconds: \"%s\" is not above 0\n",
		seconds);
	return OPTIONS_BAD;
}

int
main(int argc, char **argv)
{
	static const uint32_t flags[3] = {SPMLA_NATIVE_SCALAR,
					  SPMLA_NATIVE_AVX2, 0};
	static bench b = {.rng = 1, .workers = 1};
	const char *svg = NULL, *last = "";
	int i;

	i = parse(&b, &svg, argc, argv);
	if (i != OPTIONS_GO)
		return i == OPTIONS_HELP ? 0 : i;
	bench_make_attention(&b);
	bench_make_projection(&b);
	bench_make_rows(&b);
	bench_measure_roofs(&b.roofs);
	if (b.workers > 1) {
		bench_start_workers(b.workers);
		bench_use_wall_clock();
	}
	for (i = 0; i < 3; i++) {
		open_ctx(&b, flags[i]);
		if (strcmp(spmla_cpu_variant(b.ctx), last) != 0) {
			bench_measure_attention(&b);
			bench_measure_projection(&b);
			bench_measure_rows(&b);
		}
		last = spmla_cpu_variant(b.ctx);
		close_ctx(&b);
	}
	if (b.count == 0) {
		fprintf(stderr, PROGRAM ": --only: there are no rows of %s\n",
			b.only);
		return OPTIONS_BAD;
	}
	bench_measure_roofs(&b.roofs);
	print(&b);
	if (svg && !bench_draw(svg,
			       b.workers > 1 ? "SpMLA, floor of one core"
					     : "SpMLA on one core",
			       b.rows, b.count)) {
		fprintf(stderr, PROGRAM ": --svg: cannot write %s\n", svg);
		return 1;
	}
	return 0;
}
