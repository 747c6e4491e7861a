/* SPDX-License-Identifier: Apache-2.0
 *
 * What decode_loop prints. Room for every time is taken at the start.
 */
#include "examples/decode_loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "examples/arena_print.h"

/* Lines that a check prints at most; it counts on. */
enum { MISMATCH_LINES = 10 };

void
mismatch(uint64_t seen, const mismatch_at *at, const char *got,
	 const char *want)
{
	if (seen > MISMATCH_LINES)
		return;
	printf("%s: step %" PRIu32, at->check, at->step);
	if (at->layer != SPMLA_NO_INDEX)
		printf(", layer %" PRIu32, at->layer);
	if (at->token != SPMLA_NO_INDEX)
		printf(", token %" PRIu32, at->token);
	printf(": %s, element %" PRIu64 ": got %s, want %s\n", at->what,
	       at->element, got, want);
}

void
report_open(report *r, uint32_t limit)
{
	uint32_t k;

	memset(r, 0, sizeof *r);
	r->limit = limit;
	r->bar = isatty(STDERR_FILENO);
	for (k = 0; k < TIMING_COUNT; k++)
		r->ns[k] = keep(limit * sizeof *r->ns[k]);
}

uint64_t
report_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void
report_progress(const report *r, const batch *b)
{
	enum { WIDTH = 40 };
	char bar[WIDTH + 1];
	const uint32_t done = (uint32_t)((uint64_t)r->steps * WIDTH / r->limit);

	if (!r->bar)
		return;
	memset(bar, '.', WIDTH);
	memset(bar, '#', done);
	bar[WIDTH] = 0;
	fprintf(stderr,
		"\r[%s] step %" PRIu32 "/%" PRIu32 ", %" PRIu32 " requests ",
		bar, r->steps, r->limit, b->active_count);
}

/* Shell sort: qsort may allocate. */
static void
sort_ns(uint64_t *x, uint32_t n)
{
	uint32_t gap, i, k;

	for (gap = n / 2; gap > 0; gap /= 2)
		for (i = gap; i < n; i++) {
			const uint64_t v = x[i];

			for (k = i; k >= gap && x[k - gap] > v; k -= gap)
				x[k] = x[k - gap];
			x[k] = v;
		}
}

/* Nearest rank. */
static double
percentile_us(const uint64_t *sorted, uint32_t n, uint32_t percent)
{
	const uint64_t rank = ((uint64_t)n * percent + 99) / 100;

	return n == 0 ? 0 : (double)sorted[rank ? rank - 1 : 0] / 1e3;
}

static void
print_times(report *r)
{
	static const char *const name[TIMING_COUNT] = {
		"host: encode", "host: push",
		"launch (on the CPU the step too)", "step"};
	uint32_t k;

	printf("%-30s %12s %12s\n", "time, microseconds", "p50", "p99");
	for (k = 0; k < TIMING_COUNT; k++) {
		sort_ns(r->ns[k], r->steps);
		printf("%-30s %12.2f %12.2f\n", name[k],
		       percentile_us(r->ns[k], r->steps, 50),
		       percentile_us(r->ns[k], r->steps, 99));
	}
}

static void
print_bytes(const spmla_plan *plan)
{
	char text[BYTES_TEXT];
	uint32_t m;

	for (m = 0; m < SPMLA_MEMORY_COUNT; m++)
		printf("bytes of %-21s %12" PRIu64 "  (%s)\n",
		       spmla_memory_name(m), plan->region_bytes[m],
		       bytes_text(plan->region_bytes[m], text));
}

static void
print_buckets(const report *r, const spmla_plan *plan)
{
	uint32_t i;

	for (i = 0; i < plan->config.bucket_count; i++) {
		const spmla_shape *s = &plan->config.buckets[i];

		printf("replays of bucket %-12" PRIu32 " %12" PRIu64
		       "  (%" PRIu32 " tokens, %" PRIu32 " requests)\n",
		       i, r->replays[i], s->tokens, s->requests);
	}
}

static void
print_count(const char *name, uint64_t count)
{
	printf("%-30s %12" PRIu64 "\n", name, count);
}

void
report_print(report *r, const spmla_plan *plan, const batch *b)
{
	if (r->bar)
		fputc('\n', stderr); /* the bar ends where the trace does */
	print_count("steps", r->steps);
	print_count("query tokens", r->tokens);
	print_count("accepted tokens", b->accepted_tokens);
	print_count("rejected tokens", b->rejected_tokens);
	print_count("requests joined", b->joins);
	print_count("  through the staging table", b->bulk_joins);
	print_count("  clipped to --max-context", b->clipped);
	print_count("requests done", b->leaves);
	print_count("most requests at a time", b->most_active);
	print_count("longest sequence", b->longest);
	print_count("joined on another's tokens", b->forks);
	print_count("  pages shared", b->pages_shared);
	print_count("  pages copied", b->pages_copied);
	print_count("table rows grown", b->grows);
	print_count("table rows come round", b->wraps);
	print_count("pages used again", b->pages_reused);
	print_count("prompts run", r->prefill.prompts);
	print_count("  in chunks", r->prefill.chunks);
	print_count("  of them replayed", r->prefill.replayed);
	print_count("  tokens", r->prefill.tokens);
	print_count("  microseconds in all", r->prefill.ns / 1000);
	print_count("mixed steps", b->mixed_steps);
	print_buckets(r, plan);
	print_times(r);
	print_bytes(plan);
	print_count("bytes of the example's own",
		    keep_bytes() - plan->region_bytes[SPMLA_MEMORY_HOST] -
			    plan->region_bytes[SPMLA_MEMORY_PINNED] -
			    plan->region_bytes[SPMLA_MEMORY_DEVICE] -
			    plan->region_bytes[SPMLA_MEMORY_CACHE]);
	print_count("protocol: ticket missing", r->missing);
	print_count("protocol: too large", r->too_large);
	print_count("protocol: other faults", r->other_faults);
	print_count("protocol: ring full", r->ring_full);
	print_count("protocol: undo", r->undone);
}
