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

#include "examples/options.h"

#define PROGRAM "bench_cuda"
#define ABOUT                                                           \
	"Measures the library's calls on the first CUDA device, as "    \
	"replays of graphs.\nPrints a Markdown table; bench/README.md " \
	"explains it."

static gpu g = {.repeats = 30, .rng = 1};

typedef struct options {
	const char *svg, *date, *commit;
} options;

static int
parse(options *o, int argc, char **argv)
{
	const char *seconds = "2";
	const option list[] = {
		{"--repeats", "replays of a row", NULL, &g.repeats, NULL, 1,
		 4096},
		{"--seconds", "the most that a row may take", &seconds, NULL,
		 NULL, 0, 0},
		{"--only", "operations, separated by commas", &g.only, NULL,
		 NULL, 0, 0},
		{"--long", "the largest prefills, decodes and layer too", NULL,
		 &g.longer, NULL, 0, 0},
		{"--tiny", "shapes that the emulator can run", NULL, &g.tiny,
		 NULL, 0, 0},
		{"--arch", "take the kernels of an older architecture, 80",
		 NULL, &g.arch, NULL, 1, 1000},
		{"--svg", "file to draw time over batch into", &o->svg, NULL,
		 NULL, 0, 0},
		{"--date", "of the head; else today", &o->date, NULL, NULL, 0,
		 0},
		{"--commit", "of the head", &o->commit, NULL, NULL, 0, 0},
	};
	const int end = options_parse(PROGRAM, ABOUT, list,
				      sizeof list / sizeof list[0], argc, argv);

	if (end != OPTIONS_GO)
		return end;
	g.seconds = strtod(seconds, NULL);
	if (g.seconds > 0)
		return OPTIONS_GO;
	fprintf(stderr, PROGRAM ": --seconds: \"%s\" is not above 0\n",
		seconds);
	return OPTIONS_BAD;
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
	config.flags |= SPMLA_CONFIG_BATCH_INVARIANT;
	world_open(&g, &g.fixed, &config, ON_DEVICE);
}

int
main(int argc, char **argv)
{
	options o = {NULL, NULL, NULL};
	unsigned mhz;
	int end;

	end = parse(&o, argc, argv);
	if (end != OPTIONS_GO)
		return end == OPTIONS_HELP ? 0 : end;
	if (!gpu_open(&g)) {
		printf("SKIPPED: no CUDA device\n");
		return 0;
	}
	mhz = gpu_sm_mhz(&g);
	measure_roofs(&g);
	print_head(&o, mhz);
	open_worlds();
	table_head(&g);
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
	bench_v4_layers(&g);
	bench_steps(&g);
	world_close(&g, &g.cpu);
	world_close(&g, &g.ops);
	world_close(&g, &g.fixed);
	printf("\nSM clock after: %u MHz. %u rows, %u of them wrong.\n",
	       gpu_sm_mhz(&g), g.count, g.wrong);
	if (g.only && g.count == (g.read ? 1 : 0)) {
		fprintf(stderr, "bench_cuda: no rows of %s\n", g.only);
		return OPTIONS_BAD;
	}
	if (o.svg && !cuda_draw(o.svg, g.rows, g.count)) {
		fprintf(stderr, "bench_cuda: cannot write %s\n", o.svg);
		return 1;
	}
	return g.wrong != 0;
}
