/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the CPU bench share: a table of measured rows, the roofs of
 * the machine, threads to lend, and the picture.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdint.h>

#include "spmla/spmla.h"

enum { BENCH_ROWS = 64, BENCH_RUNS = 4096, BENCH_VARIANTS = 3 };

typedef struct bench_roofs {
	double copy_bytes_s; /* read and written */
	double read_bytes_s;
	double flops[BENCH_VARIANTS]; /* scalar, AVX2, AVX-512; 0: none */
} bench_roofs;

/* One shape under one variant. */
typedef struct bench_row {
	const char *op;
	char shape[64];
	const char *variant;
	double bytes; /* that have to be read or written once */
	double flop;
	double best_s;
	double median_s;
	double p99_s;
	double floor_s; /* the larger of bytes and flop over their roofs */
} bench_row;

/* Seconds that this thread has run, where others on the machine do not count;
 * after bench_use_wall_clock, seconds. */
double bench_now(void);
void bench_use_wall_clock(void);

/* Makes the threads that bench_for, a spmla_parallel_for, uses besides its
 * caller. */
void bench_start_workers(uint32_t workers);
void bench_for(void *user, uint32_t count, spmla_parallel_body body, void *arg);

/* Calls run(arg) for about `seconds`, at least 20 times, and returns the times
 * in order, smallest first; *count = how many. The next call overwrites them.
 */
const double *bench_times(void (*run)(void *), void *arg, double seconds,
			  uint32_t *count);

/* Measures the roofs of one core, or keeps those that are there where they are
 * higher: it is called before and after the shapes. */
void bench_measure_roofs(bench_roofs *roofs);

/* Draws measured over floor of every row; 0 if the file cannot be written. */
int bench_draw(const char *path, const char *title, const bench_row *rows,
	       uint32_t count);

#endif
