/* SPDX-License-Identifier: Apache-2.0
 *
 * The speed of the CUDA backend through the public interface: each shape as a
 * captured graph, beside a floor that the same run measures and beside what the
 * fastest public kernels took. Every row's result is compared with the CPU
 * backend's, so that no row is of a kernel that does nothing.
 */
#include "bench/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static gpu g = {.repeats = 30, .seconds = 2, .rng = 1};

typedef struct options {
	const char *svg, *date, *commit;
} options;

static int
usage(void)
{
	fprintf(stderr,
		"usage: bench_cuda [--repeats N] [--seconds N] [--only OPS] "
		"[--long] [--tiny]\n"
		"                  [--arch N] [--svg FILE] [--date TEXT] "
		"[--commit "
		"TEXT]\n");
	return 2;
}

/* 0 if they are not understood. */
static int
parse(options *o, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *name = argv[i];
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(name, "--long") == 0) {
			g.longer = 1;
			continue;
		}
		if (strcmp(name, "--tiny") == 0) {
			g.tiny = 1;
			continue;
		}
		if (!value)
			return 0;
		if (strcmp(name, "--repeats") == 0)
			g.repeats = (uint32_t)strtoul(value, NULL, 10);
		else if (strcmp(name, "--seconds") == 0)
			g.seconds = strtod(value, NULL);
		else if (strcmp(name, "--only") == 0)
			g.only = value;
		else if (strcmp(name, "--arch") == 0)
			g.arch = (uint32_t)strtoul(value, NULL, 10);
		else if (strcmp(name, "--svg") == 0)
			o->svg = value;
		else if (strcmp(name, "--date") == 0)
			o->date = value;
		else if (strcmp(name, "--commit") == 0)
			o->commit = value;
		else
			return 0;
		i++;
	}
	return g.repeats >= 1 && g.repeats <= 4096 && g.seconds > 0;
}

static void
print_head(const options *o, unsigned mhz)
{
	const time_t now = time(NULL);
	char today[16];

	strftime(today, sizeof today, "%Y-%m-%d", localtime(&now));
	printf("SpMLA on CUDA, %s, commit %s\n\n", o->date ? o->date : today,
	       o->commit ? o->commit : "unknown");
	gpu_describe(&g);
	printf("SM clock before: %u MHz (0: unknown)\n", mhz);
	if (g.read_bytes_us > 0)
		printf("Roofs: read %.2f TB/s, copy %.2f TB/s (read + "
		       "written), empty graph %.2f us; products 796 TFLOP/s "
		       "bf16, twice that e4m3 (as given, not measured here).\n",
		       g.read_bytes_us * 1e-6, g.copy_bytes_us * 1e-6,
		       g.launch_us);
	else
		printf("No kernels of the bench's own here: nothing is "
		       "flushed, and no roof is known.\n");
	printf("Median of %u graph replays, at most %g s a row.\n", g.repeats,
	       g.seconds);
}

/* The contexts for operations alone: no step is ever run in them. */
static void
open_worlds(void)
{
	spmla_config config;

	lib_must(NULL, spmla_config_preset(&config, SPMLA_MODEL_V32),
		 "spmla_config_preset");
	config.max_rows = 1;
	config.max_context_tokens = 131072;
	config.groups[SPMLA_GROUP_MAIN].pool_pages = 2048;
	config.bucket_count = 1;
	config.buckets[0] = (spmla_shape){1, 1, 1, 0};
	world_open(&g, &g.ops, &config, ON_DEVICE);
	world_open(&g, &g.cpu, &config, ON_HOST);
}

int
main(int argc, char **argv)
{
	options o = {NULL, NULL, NULL};
	unsigned mhz;

	if (!parse(&o, argc, argv))
		return usage();
	if (!gpu_open(&g)) {
		printf("SKIPPED: no CUDA device\n");
		return 0;
	}
	mhz = gpu_sm_mhz(&g);
	measure_roofs(&g);
	print_head(&o, mhz);
	open_worlds();
	table_head();
	if (g.count > 0)
		table_row(&g, &g.rows[0]);
	bench_schedules(&g);
	bench_topk(&g);
	bench_logits(&g);
	bench_decode(&g);
	bench_prefill(&g);
	bench_moves(&g);
	bench_gathers(&g);
	bench_metadata(&g);
	bench_projections(&g);
	bench_v4_rows(&g);
	bench_v4_compress(&g);
	bench_v4_index(&g);
	bench_v4_steps(&g);
	bench_steps(&g);
	world_close(&g, &g.cpu);
	world_close(&g, &g.ops);
	printf("\nSM clock after: %u MHz. %u rows, %u of them wrong.\n",
	       gpu_sm_mhz(&g), g.count, g.wrong);
	if (g.only && g.count == (g.read ? 1 : 0)) {
		fprintf(stderr, "bench_cuda: no rows of %s\n", g.only);
		return usage();
	}
	if (o.svg && !cuda_draw(o.svg, g.rows, g.count)) {
		fprintf(stderr, "bench_cuda: cannot write %s\n", o.svg);
		return 1;
	}
	return g.wrong != 0;
}
