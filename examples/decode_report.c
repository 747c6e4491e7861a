/* SPDX-License-Identifier: Apache-2.0
 *
 * What decode_loop prints. Room for all that it says of each step is taken at
 * the start.
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
report_open(report *r, uint32_t limit, uint32_t shown)
{
	uint32_t k;

	memset(r, 0, sizeof *r);
	r->limit = limit;
	r->progress = isatty(STDERR_FILENO) ? PROGRESS_BAR
		      : shown               ? PROGRESS_LINES
					    : PROGRESS_NONE;
	for (k = 0; k < TIMING_COUNT; k++)
		r->ns[k] = keep(limit * sizeof *r->ns[k]);
	r->sorted = keep(limit * sizeof *r->sorted);
	r->bucket = keep(limit * sizeof *r->bucket);
	r->active = keep(limit * sizeof *r->active);
	r->began_ns = report_now_ns();
}

uint64_t
report_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

const char *
time_text(double ns, char text[TIME_TEXT])
{
	static const char *const unit[] = {"ns", "us", "ms", "s"};
	uint32_t u = 0;

	while (ns >= 999.5 && u < 3) {
		ns /= 1000;
		u++;
	}
	snprintf(text, TIME_TEXT, "%.*f %s",
		 u == 0 || ns >= 99.95 ? 0
		 : ns >= 9.995         ? 1
				       : 2,
		 ns, unit[u]);
	return text;
}

/* Seconds since the start, the set-up of the checks included. */
static double
seconds(const report *r)
{
	return (double)(report_now_ns() - r->began_ns) * 1e-9;
}

/* Steps, tokens a second and the time left, prompts included. */
void
report_progress(report *r, const batch *b)
{
	enum { BAR = 12, TEXT = 64 }; /* and brackets and a space: 79 */
	const uint64_t now = report_now_ns();
	const uint64_t apart =
		r->progress == PROGRESS_BAR ? 100000000 : 1000000000;
	const uint64_t tokens = r->tokens + r->prefill.tokens;
	const uint32_t done = (uint32_t)((uint64_t)r->steps * BAR / r->limit);
	char bar[BAR + 1], text[96], left[TIME_TEXT] = "?";

	if (r->progress == PROGRESS_NONE || now - r->shown_ns < apart)
		return;
	r->shown_ns = now;
	if (r->steps)
		time_text(seconds(r) / r->steps * (r->limit - r->steps) * 1e9,
			  left);
	snprintf(text, sizeof text,
		 "step %" PRIu32 " of %" PRIu32 ", %" PRIu32
		 " %s, %.0f tokens/s, %s left",
		 r->steps, r->limit, b->active_count,
		 b->active_count == 1 ? "request" : "requests",
		 (double)tokens / seconds(r), left);
	if (r->progress == PROGRESS_LINES) {
		fprintf(stderr, "%s\n", text);
		return;
	}
	memset(bar, '.', BAR);
	memset(bar, '#', done);
	bar[BAR] = 0;
	/* A line that wraps would stay there. */
	fprintf(stderr, "\r[%s] %-*.*s", bar, TEXT, TEXT, text);
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
percentile(const uint64_t *sorted, uint32_t n, uint32_t percent)
{
	const uint64_t rank = ((uint64_t)n * percent + 99) / 100;

	return n == 0 ? 0 : (double)sorted[rank ? rank - 1 : 0];
}

bucket_time
report_bucket(const report *r, uint32_t bucket)
{
	bucket_time t = {0, 0, 0};
	uint32_t i;

	for (i = 0; i < r->steps; i++)
		if (r->bucket[i] == bucket)
			r->sorted[t.steps++] = r->ns[TIMING_STEP][i];
	sort_ns(r->sorted, t.steps);
	t.p50_ns = percentile(r->sorted, t.steps, 50);
	t.p99_ns = percentile(r->sorted, t.steps, 99);
	return t;
}

uint64_t
report_faults(const report *r)
{
	return r->missing + r->too_large + r->other_faults;
}

static void
print_time(const char *name, double p50_ns, double p99_ns)
{
	char p50[TIME_TEXT], p99[TIME_TEXT];

	printf("%-40s %10s %10s\n", name, time_text(p50_ns, p50),
	       time_text(p99_ns, p99));
}

static void
print_times(const report *r, const spmla_plan *plan)
{
	static const char *const name[TIMING_COUNT] = {
		"host: encode the record", "host: push it into the ring",
		"launch, on the CPU the step itself", "all of it"};
	char text[64];
	uint32_t i, k;

	printf("\n%-40s %10s %10s\n", "time of a step", "p50", "p99");
	for (k = 0; k < TIMING_COUNT; k++) {
		memcpy(r->sorted, r->ns[k], r->steps * sizeof *r->sorted);
		sort_ns(r->sorted, r->steps);
		print_time(name[k], percentile(r->sorted, r->steps, 50),
			   percentile(r->sorted, r->steps, 99));
	}
	for (i = 0; i <= SPMLA_BUCKET_PREFILL; i++) {
		const bucket_time t = report_bucket(r, i);

		if (t.steps == 0)
			continue;
		if (i == SPMLA_BUCKET_PREFILL)
			snprintf(text, sizeof text, "  %" PRIu32 " x eagerly",
				 t.steps);
		else
			snprintf(text, sizeof text,
				 "  %" PRIu32 " x bucket of %" PRIu32
				 " tokens, %" PRIu32 " requests",
				 t.steps, plan->config.buckets[i].tokens,
				 plan->config.buckets[i].requests);
		print_time(text, t.p50_ns, t.p99_ns);
	}
}

static void
print_bytes(const spmla_plan *plan)
{
	uint64_t own = keep_bytes();
	char text[BYTES_TEXT];
	uint32_t m;

	printf("\nmemory, all of it from before the first step\n");
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		own -= plan->region_bytes[m];
		printf("  %-38s %10s\n", spmla_memory_name(m),
		       bytes_text(plan->region_bytes[m], text));
	}
	printf("  %-38s %10s\n\n", "tensors and checks of this program",
	       bytes_text(own, text));
}

static void
print_count(const char *name, uint64_t count)
{
	printf("%-30s %12" PRIu64 "\n", name, count);
}

/* Counts that are 0 for most command lines are left out. */
static void
print_rare(const char *name, uint64_t count)
{
	if (count)
		print_count(name, count);
}

static void
print_requests(const report *r, const batch *b)
{
	char text[TIME_TEXT];

	print_count("requests joined", b->joins);
	print_rare("  through the staging table", b->bulk_joins);
	print_rare("  clipped to --max-context", b->clipped);
	print_rare("  with another one's tokens", b->forks);
	print_count("requests done", b->leaves);
	print_count("most requests at a time", b->most_active);
	print_count("longest sequence, tokens", b->longest);
	print_rare("prompts run", r->prefill.prompts);
	print_rare("  steps of prompts", r->prefill.chunks);
	print_rare("  of them replayed", r->prefill.replayed);
	print_rare("  tokens", r->prefill.tokens);
	if (r->prefill.ns)
		printf("%-30s %12s\n", "  time",
		       time_text((double)r->prefill.ns, text));
	print_rare("pages used again", b->pages_reused);
	print_rare("pages shared by requests", b->pages_shared);
	print_rare("pages copied", b->pages_copied);
	print_rare("table rows grown", b->grows);
	print_rare("table rows wrap around", b->wraps);
}

void
report_print(report *r, const spmla_plan *plan, const batch *b)
{
	if (r->progress == PROGRESS_BAR)
		fputc('\n', stderr); /* the bar ends where the trace does */
	print_count("steps", r->steps);
	print_count("  of prompts and answers", b->mixed_steps);
	print_rare("  taken back and sent again", r->undone);
	print_count("tokens", r->tokens);
	print_count("  accepted", b->accepted_tokens);
	print_rare("  rejected", b->rejected_tokens);
	print_requests(r, b);
	print_rare("faults: ticket missing", r->missing);
	print_rare("faults: record too large", r->too_large);
	print_rare("faults: others", r->other_faults);
	print_rare("full ring, waited for", r->ring_full);
	print_times(r, plan);
	print_bytes(plan);
}
