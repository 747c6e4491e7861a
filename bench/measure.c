/* SPDX-License-Identifier: Apache-2.0
 *
 * What measuring a shape takes: a clock, room in huge pages, numbers to fill it
 * with, and a row of the table.
 */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "spmla/spmla_cpu.h"

enum { HUGE_PAGE = 2 << 20 };

uint32_t
bench_next(uint64_t *rng)
{
	*rng = *rng * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(*rng >> 33);
}

void *
bench_room(uint64_t bytes)
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

void
bench_fill_codes(uint64_t *rng, uint8_t *codes, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		codes[i] = (uint8_t)(bench_next(rng) & 0xf7u);
}

void
bench_fill_bf16(uint64_t *rng, uint16_t *x, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] = (uint16_t)(0x3f00u | (bench_next(rng) & 0x80ffu));
}

static double measured[BENCH_RUNS];

static clockid_t used_clock = CLOCK_THREAD_CPUTIME_ID;

void
bench_use_wall_clock(void)
{
	used_clock = CLOCK_MONOTONIC;
}

double
bench_now(void)
{
	struct timespec t;

	clock_gettime(used_clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int
compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

const double *
bench_times(void (*run)(void *), void *arg, double seconds, uint32_t *count)
{
	const double end = bench_now() + seconds;
	uint32_t n = 0;

	run(arg);
	while (n < BENCH_RUNS && (n < 20 || bench_now() < end)) {
		const double start = bench_now();

		run(arg);
		measured[n++] = bench_now() - start;
	}
	qsort(measured, n, sizeof *measured, compare);
	*count = n;
	return measured;
}

void
bench_measure(bench *b, const char *op, const char *shape, void (*run)(void *),
	      bench_reads reads, double bytes, double flop)
{
	bench_row *r = &b->rows[b->count];
	const double *times;
	uint32_t n;

	if (b->only && strcmp(b->only, op) != 0)
		return;
	times = bench_times(run, b, b->seconds, &n);
	b->count++;
	r->op = op;
	snprintf(r->shape, sizeof r->shape, "%s", shape);
	r->variant = spmla_cpu_variant(b->ctx);
	r->reads = reads;
	r->bytes = bytes;
	r->flop = flop;
	r->best_s = times[0];
	r->median_s = times[n / 2];
	r->p99_s = times[(n - 1) * 99 / 100];
}
