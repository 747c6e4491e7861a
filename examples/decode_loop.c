/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of a serving engine around SpMLA. Requests of real lengths join,
 * grow and leave. One graph per bucket is captured once and replayed for each
 * step; between two steps memory is only written in place.
 *
 *   bazel run //examples:decode_loop -- --trace FILE --next-n 3
 *
 * A step: a request may join, and its prompt runs eagerly in chunks, except its
 * end (with --prefill 0 only its keys are inserted). The batch, with the end of
 * that prompt, becomes a record in the ring. The tensors that an engine's
 * projections would write are filled. The bucket's graph is replayed. Every
 * --check-every steps the result is compared with an independent reference, and
 * with the same operations run eagerly, bit for bit.
 *
 * The layers are V3.2's; with --model v4-flash or v4-pro, V4's.
 * Steps of V4 take in prompts beside what they decode.
 *
 * decode_batch.c is the scheduler and decode_pages.c its pages. decode_v32.c
 * and decode_v4.c hold the differences between the models.
 */
#include "examples/decode_loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/arena_print.h"
#include "examples/device.h"

#define ABOUT                                                                  \
	"Serves the requests of a trace: they join, grow and leave, and one "  \
	"captured\ngraph per bucket is replayed for every step. Compares the " \
	"results with an\nindependent reference and with eager calls.\n\n"     \
	"Models have defaults of their own: --model v4-flash --help lists "    \
	"V4's."

/* Requests of V4 have short prompts: it takes them in a few tokens a step. */
#define TRACE_V32 "testdata/trace/synthetic_chat.csv"
#define TRACE_V4  "testdata/trace/short.csv"

enum { OUT_BYTES = 1 << 16, OWN_OPTIONS = 10 };

/* The default of --prefill for V3.2 and the program's own trace. */
enum { PREFILL_TOKENS = 256 };

/* V4: layers of all kinds, two of them twice; a top-k that leaves keys out. */
static const model_options v32_defaults = {
	"cpu", "v32", "preset", "fp8",          2,          8, 16, 512, 8, 4096,
	1,     64,    0,        PREFILL_TOKENS, "captured", 0, 0};
static const model_options v4_defaults = {
	"cpu", "v4-flash", "preset", "fp8", 6,  8,          16, 128, 8,
	4096,  1,          256,      0,     48, "captured", 0,  0};

static int
parse(loop *l, int argc, char **argv)
{
	option list[MODEL_OPTION_COUNT + OWN_OPTIONS];
	const option own[OWN_OPTIONS] = {
		{"--steps", "steps to run at most", NULL, &l->steps, NULL, 1,
		 10000000},
		{"--trace",
		 "file of requests (default: one of the program's own); V3.2 "
		 "then has --prefill 0 unless told otherwise",
		 &l->trace_path, NULL, NULL, 0, 0},
		{"--check-every", "compare every so many steps, 0 = never",
		 NULL, &l->check_every, NULL, 0, UINT32_MAX},
		{"--undo-every",
		 "every so many steps, take one back and write it again, "
		 "0 = never",
		 NULL, &l->undo_every, NULL, 0, UINT32_MAX},
		{"--fork-every",
		 "V4: every so many joins, a request takes over another's "
		 "tokens, 0 = never",
		 NULL, &l->fork_every, NULL, 0, UINT32_MAX},
		{"--branches",
		 "V4 on a GPU: 1 = a layer's branches run side by side, 0 = "
		 "in order",
		 NULL, &l->branches, NULL, 0, 1},
		{"--seed", "seed of all values", NULL, NULL, &l->seed, 0,
		 UINT64_MAX},
		{"--plan", "print where the plan puts every buffer", NULL,
		 &l->plan_shown, NULL, 0, 0},
		{"--progress",
		 "show progress on stderr, even if that is no terminal", NULL,
		 &l->progress, NULL, 0, 0},
		{"--svg", "file to draw the step times and the occupancy into",
		 &l->svg, NULL, NULL, 0, 0},
	};
	int end;

	l->options = strncmp(options_text(argc, argv, "--model", "v32"), "v4-",
			     3) == 0
			     ? v4_defaults
			     : v32_defaults;
	/* Prompts of a real trace are long. */
	if (l->options.prefill == PREFILL_TOKENS &&
	    options_text(argc, argv, "--trace", NULL))
		l->options.prefill = 0;
	l->steps = 40;
	l->check_every = l->options.model == v32_defaults.model ? 8 : 1;
	l->fork_every = 3;
	l->branches = 1;
	l->seed = 1;
	model_options_list(&l->options, list);
	memcpy(list + MODEL_OPTION_COUNT, own, sizeof own);
	end = options_parse(PROGRAM, ABOUT, list,
			    MODEL_OPTION_COUNT + OWN_OPTIONS, argc, argv);
	return end;
}

/* The trace that comes with the program: in the folder that `bazel run` starts
 * it in, or in the runfiles beside it. */
static void
default_trace(char *path, const char *argv0, const char *name)
{
	snprintf(path, PATH_BYTES, "%s", name);
	if (access(path, R_OK) == 0)
		return;
	snprintf(path, PATH_BYTES, "%s.runfiles/spmla/%s", argv0, name);
	if (access(path, R_OK) != 0)
		snprintf(path, PATH_BYTES, "%s", name);
}

static int
read_trace(loop *l, const char *argv0)
{
	const int v32 = l->plan.config.model == SPMLA_MODEL_V32;

	if (!l->trace_path)
		default_trace(l->trace_file, argv0, v32 ? TRACE_V32 : TRACE_V4);
	else if (!path_resolve(l->trace_path, l->trace_file, PATH_BYTES)) {
		fprintf(stderr, PROGRAM ": --trace: the path is too long\n");
		return EXIT_USAGE;
	}
	return trace_read(&l->trace, l->trace_file, l->options.max_context)
		       ? EXIT_GOOD
		       : EXIT_USAGE;
}

int
loop_init(loop *l, spmla_ctx **ctx)
{
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_diag diag = SPMLA_DIAG_INIT;
	alloc_count before;
	uint32_t count = 0, m;
	char text[256];

	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		spmla_region *r = &regions[count];

		if (l->plan.region_bytes[m] == 0)
			continue;
		r->struct_bytes = (uint32_t)sizeof *r;
		r->memory = m;
		r->bytes = l->plan.region_bytes[m];
		r->base = m == SPMLA_MEMORY_DEVICE || m == SPMLA_MEMORY_CACHE
				  ? keep_own(r->bytes)
				  : keep(r->bytes);
		count++;
	}
	before = alloc_counted();
	if (spmla_init(ctx, &l->plan, l->backend, device_native(), regions,
		       count, &diag) != SPMLA_OK) {
		spmla_diag_text(&diag, text, sizeof text);
		fprintf(stderr, PROGRAM ": spmla_init: %s\n", text);
		return EXIT_FAILED;
	}
	l->init_allocations += alloc_counted().allocations - before.allocations;
	return EXIT_GOOD;
}

/* All memory there will be: the plan's regions and the example's own. */
static int
set_up(loop *l)
{
	int end = loop_init(l, &l->ctx);

	if (end != EXIT_GOOD)
		return end;
	l->record = keep(l->plan.record_bytes);
	report_open(&l->report, l->steps, l->progress);
	batch_open(&l->batch, &l->plan, &l->trace, &l->options, l->seed);
	return l->calls->open(l);
}

static uint64_t
mismatches(const loop *l)
{
	return l->calls->eager_count(l).mismatches +
	       l->calls->reference_count(l).mismatches;
}

/* One graph a bucket. */
static spmla_status
capture(loop *l)
{
	const spmla_config *c = &l->plan.config;
	spmla_status s = SPMLA_OK;
	uint32_t b;

	for (b = 0; b < c->bucket_count && s == SPMLA_OK; b++) {
		const spmla_shape *shape = &c->buckets[b];

		s = spmla_graph_begin(l->ctx, device_stream());
		if (s == SPMLA_OK)
			s = spmla_step_prologue(l->ctx, shape, SPMLA_FROM_RING,
						device_stream());
		if (s == SPMLA_OK)
			s = l->calls->record(l, shape);
		if (s == SPMLA_OK)
			s = spmla_graph_end(l->ctx, &l->graphs[b]);
	}
	return s;
}

static int
run(loop *l)
{
	report *r = &l->report;
	int end = EXIT_GOOD;
	uint32_t step, joined;

	if (capture(l) != SPMLA_OK)
		return loop_failed(l->ctx, "the capture");
	for (step = 0; step < l->steps && end == EXIT_GOOD; step++) {
		batch *b = &l->batch;

		for (joined = batch_admit(b); joined > 0; joined--) {
			end = l->calls->take_prompt(
				l, &b->active[b->active_count - joined], step);
			if (end != EXIT_GOOD)
				return end;
		}
		if (!batch_build(b))
			break; /* the trace is done */
		end = loop_step(l, step);
		r->tokens += b->token_count;
		r->steps++;
		batch_finish(b);
		report_progress(r, b);
		if (mismatches(l) + report_faults(r) != 0)
			end = EXIT_FAILED;
	}
	return end;
}

/* What runs, before anything else is said. */
static void
print_head(const loop *l)
{
	static const char *const model[] = {
		[SPMLA_MODEL_V32] = "DeepSeek V3.2",
		[SPMLA_MODEL_V4_FLASH] = "DeepSeek V4-Flash",
		[SPMLA_MODEL_V4_PRO] = "DeepSeek V4-Pro"};
	const spmla_config *c = &l->plan.config;
	char device[DEVICE_TEXT];

	device_text(l->ctx, device);
	/* A substitute says so before anything else. */
	if (strstr(device, "SUBSTITUTE"))
		printf("device: %s\n", strstr(device, "SUBSTITUTE"));
	printf("%s, %" PRIu32 " %s, %" PRIu32 " heads, %" PRIu32
	       " index heads, top-k %" PRIu32 ", on %s\n",
	       model[c->model], l->options.layers,
	       l->options.layers == 1 ? "layer" : "layers", c->heads,
	       c->index_heads, c->topk, device);
	printf("%s: %" PRIu32 " requests, at most %" PRIu32
	       " at a time, contexts up to %" PRIu32 " tokens\n\n",
	       l->trace_file, l->trace.count, c->max_rows,
	       c->max_context_tokens);
	if (l->plan_shown) {
		arena_print(&l->plan, stdout);
		printf("\n");
	}
	fflush(stdout);
}

static void
print_checks(const loop *l, alloc_count now)
{
	const check_count reference = l->calls->reference_count(l);
	const check_count eager = l->calls->eager_count(l);

	printf("allocations in spmla_init: %" PRIu64 "\n", l->init_allocations);
	printf("allocations after init: %" PRIu64 "\n",
	       now.allocations - l->at_start.allocations);
	printf("frees after init: %" PRIu64 "\n",
	       now.frees - l->at_start.frees);
	printf("reference check: %" PRIu64 " tokens, %" PRIu64 " mismatches\n",
	       reference.done, reference.mismatches);
	printf("replay = eager: %" PRIu64 " steps, %" PRIu64 " mismatches\n",
	       eager.done, eager.mismatches);
}

/* The last line: whether all of it was right. */
static int
print_verdict(const loop *l, int end, alloc_count now)
{
	const uint64_t taken = now.allocations - l->at_start.allocations;
	const uint64_t faults = report_faults(&l->report);
	char compared[64] = "nothing compared";

	if (taken != 0 || mismatches(l) + faults != 0)
		end = EXIT_FAILED;
	if (l->check_every)
		snprintf(compared, sizeof compared, "%" PRIu64 " mismatches",
			 mismatches(l));
	printf("\n%s: %" PRIu32 " steps, %" PRIu64 " tokens, %s, ",
	       end == EXIT_GOOD ? "OK" : "FAILED", l->report.steps,
	       l->report.tokens, compared);
	if (faults)
		printf("%" PRIu64 " faults, ", faults);
	printf("%" PRIu64 " allocations\n", taken);
	return end;
}

/* The loop, between spmla_init and spmla_fini. */
static int
serve(loop *l)
{
	alloc_count now;
	int end;

	print_head(l);
	l->at_start = alloc_counted();
	end = run(l);
	now = alloc_counted();
	report_print(&l->report, &l->plan, &l->batch);
	print_checks(l, now);
	if (spmla_fini(l->ctx) != SPMLA_OK)
		end = loop_failed(l->ctx, "spmla_fini");
	if (l->svg && !report_draw(&l->report, &l->plan, l->svg))
		end = end == EXIT_GOOD ? EXIT_USAGE : end;
	return print_verdict(l, end, now);
}

int
main(int argc, char **argv)
{
	static loop l;
	static char out[OUT_BYTES];
	int end;

	setvbuf(stdout, out, _IOFBF, sizeof out);
	end = parse(&l, argc, argv);
	if (end != OPTIONS_GO)
		return end == OPTIONS_HELP ? EXIT_GOOD : EXIT_USAGE;
	if (model_options_plan(PROGRAM, &l.options, &l.backend, &l.plan) !=
		    OPTIONS_GO ||
	    read_trace(&l, argv[0]) != EXIT_GOOD ||
	    (l.svg && !report_can_draw(l.svg)))
		return EXIT_USAGE;
	l.calls =
		l.plan.config.model == SPMLA_MODEL_V32 ? &v32_calls : &v4_calls;
	end = set_up(&l);
	if (end == EXIT_GOOD)
		end = serve(&l);
	else
		printf("FAILED: nothing ran\n");
	l.calls->close(&l);
	device_free_all();
	device_close();
	return end;
}
