/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of a serving engine around SpMLA: requests of real lengths join,
 * grow and leave; a graph a bucket is recorded once and replayed for each
 * step; between two steps memory is only written in place.
 *
 *	bazel run //examples:decode_loop -- --trace FILE --next-n 3
 *
 * A step: a request may join, and its prompt is run eagerly in chunks but for
 * its end (with --prefill 0 only its keys are inserted); the batch, with the
 * end of that prompt, becomes a record in the ring; the tensors that an
 * engine's projections would leave in place are filled; the bucket's graph is
 * replayed. Every --check-every steps the result is compared with an
 * independent reference, and with the same operations run eagerly, bit for bit.
 *
 * decode_batch.c is the scheduler, decode_model.c the stand-in for the model.
 */
#include "examples/decode_loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/arena_print.h"
#include "examples/device.h"

#define DEFAULT_TRACE "testdata/trace/synthetic_chat.csv"

enum { PATH_BYTES = 4096, OUT_BYTES = 1 << 16, OWN_OPTIONS = 5 };

/* --prefill: what is meant if it is not given. */
enum { PREFILL_TOKENS = 256, PREFILL_DEFAULT = 65537 };

static int
parse(loop *l, int argc, char **argv)
{
	option list[MODEL_OPTION_COUNT + OWN_OPTIONS];
	const option own[OWN_OPTIONS] = {
		{"--steps", "steps to run at most", NULL, &l->steps, NULL, 1,
		 10000000},
		{"--trace", "file of requests", &l->trace_path, NULL, NULL, 0,
		 0},
		{"--check-every", "steps from check to check, 0 = none", NULL,
		 &l->check_every, NULL, 0, UINT32_MAX},
		{"--undo-every",
		 "steps from a step that is taken back and "
		 "written again to the next, 0 = none",
		 NULL, &l->undo_every, NULL, 0, UINT32_MAX},
		{"--seed", "of all values", NULL, NULL, &l->seed, 0,
		 UINT64_MAX},
	};
	int end;

	l->options = (model_options){"cpu", "v32", 2, 8,  16, 512,
				     8,     4096,  1, 64, 0,  PREFILL_DEFAULT};
	l->steps = 40;
	l->check_every = 8;
	l->seed = 1;
	model_options_list(&l->options, list);
	memcpy(list + MODEL_OPTION_COUNT, own, sizeof own);
	end = options_parse(PROGRAM, list, MODEL_OPTION_COUNT + OWN_OPTIONS,
			    argc, argv);
	/* Prompts of a real trace are long. */
	if (l->options.prefill == PREFILL_DEFAULT)
		l->options.prefill = l->trace_path ? 0 : PREFILL_TOKENS;
	return end;
}

/* The trace that comes with the program: in the folder that `bazel run` starts
 * it in, or in the runfiles beside it. */
static void
default_trace(char *path, const char *argv0)
{
	snprintf(path, PATH_BYTES, "%s", DEFAULT_TRACE);
	if (access(path, R_OK) == 0)
		return;
	snprintf(path, PATH_BYTES, "%s.runfiles/spmla/%s", argv0,
		 DEFAULT_TRACE);
	if (access(path, R_OK) != 0)
		snprintf(path, PATH_BYTES, "%s", DEFAULT_TRACE);
}

static int
read_trace(loop *l, const char *argv0)
{
	char path[PATH_BYTES];

	if (!l->trace_path)
		default_trace(path, argv0);
	else if (!path_resolve(l->trace_path, path, sizeof path)) {
		fprintf(stderr, PROGRAM ": --trace: the path is too long\n");
		return EXIT_USAGE;
	}
	return trace_read(&l->trace, path, l->options.max_context) ? EXIT_GOOD
								   : EXIT_USAGE;
}

/* All memory there will be: the plan's regions and the example's own. */
static int
set_up(loop *l)
{
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_diag diag = SPMLA_DIAG_INIT;
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
	l->before_init = alloc_counted();
	if (spmla_init(&l->ctx, &l->plan, l->backend, device_native(), regions,
		       count, &diag) != SPMLA_OK) {
		spmla_diag_text(&diag, text, sizeof text);
		fprintf(stderr, PROGRAM ": spmla_init: %s\n", text);
		return EXIT_FAILED;
	}
	l->after_init = alloc_counted();
	l->record = keep(l->plan.record_bytes);
	if (l->options.prefill) {
		l->chunk_capacity =
			l->options.max_context / l->options.prefill + 1;
		l->chunks = keep(l->chunk_capacity * sizeof *l->chunks);
	}
	report_open(&l->report, l->steps);
	batch_open(&l->batch, &l->plan, &l->trace, l->options.next_n, l->seed);
	model_open(&l->model, &l->plan, l->options.layers, l->seed);
	if (model_bind(&l->model, l->ctx) != SPMLA_OK)
		return loop_failed(l, "spmla_cache_view");
	if (l->check_every == 0)
		return EXIT_GOOD;
	eager_open(&l->eager, &l->model, &l->batch);
	l->reference = reference_open(&l->model, &l->batch);
	if (l->reference)
		return EXIT_GOOD;
	fprintf(stderr, PROGRAM ": no memory for the reference's keys; "
				"--check-every 0 does without\n");
	return EXIT_FAILED;
}

static uint64_t
bad_count(const loop *l)
{
	const report *r = &l->report;
	uint64_t n = l->eager.mismatches;

	if (l->reference)
		n += reference_count(l->reference).mismatches;
	return n + r->missing + r->too_large + r->other_faults;
}

/* A joined request's prompt. */
static int
take_prompt(loop *l, running *r, uint32_t step)
{
	if (l->options.prefill)
		return loop_prefill(l, r, step, loop_check_is_due(l, step));
	if (model_insert(&l->model, &l->batch, r) != SPMLA_OK)
		return loop_failed(l, "the prompt");
	return EXIT_GOOD;
}

static int
run(loop *l)
{
	report *r = &l->report;
	int end = EXIT_GOOD;
	uint32_t step, joined;

	if (model_capture(&l->model) != SPMLA_OK)
		return loop_failed(l, "the capture");
	for (step = 0; step < l->steps && end == EXIT_GOOD; step++) {
		batch *b = &l->batch;

		for (joined = batch_admit(b); joined > 0; joined--) {
			end = take_prompt(
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
		if (bad_count(l) != 0)
			end = EXIT_FAILED;
	}
	return end;
}

/* The lines that a script may look for. */
static void
print_results(loop *l, alloc_count now)
{
	const check_count none = {0, 0};
	const check_count reference =
		l->reference ? reference_count(l->reference) : none;

	report_print(&l->report, &l->plan, &l->batch);
	printf("allocations in spmla_init: %" PRIu64 "\n",
	       l->after_init.allocations - l->before_init.allocations);
	printf("allocations after init: %" PRIu64 "\n",
	       now.allocations - l->at_start.allocations);
	printf("frees after init: %" PRIu64 "\n",
	       now.frees - l->at_start.frees);
	printf("reference check: %" PRIu64 " tokens, %" PRIu64 " mismatches\n",
	       reference.done, reference.mismatches);
	printf("replay = eager: %" PRIu64 " steps, %" PRIu64 " mismatches\n",
	       l->eager.steps, l->eager.mismatches);
}

int
main(int argc, char **argv)
{
	static loop l;
	static char out[OUT_BYTES];
	alloc_count now;
	int end;

	setvbuf(stdout, out, _IOFBF, sizeof out);
	end = parse(&l, argc, argv);
	if (end != OPTIONS_GO)
		return end == OPTIONS_HELP ? EXIT_GOOD : EXIT_USAGE;
	if (model_options_plan(PROGRAM, &l.options, &l.backend, &l.plan) !=
		    OPTIONS_GO ||
	    read_trace(&l, argv[0]) != EXIT_GOOD)
		return EXIT_USAGE;
	end = set_up(&l);
	if (end == EXIT_GOOD) {
		arena_print(&l.plan, stdout);
		fflush(stdout);
		l.at_start = alloc_counted();
		end = run(&l);
		now = alloc_counted();
		print_results(&l, now);
		if (now.allocations != l.at_start.allocations)
			end = EXIT_FAILED;
		if (spmla_fini(l.ctx) != SPMLA_OK)
			end = loop_failed(&l, "spmla_fini");
	}
	if (l.reference)
		reference_close(l.reference);
	device_free_all();
	device_close();
	return end;
}
