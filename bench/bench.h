/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the CPU bench share: a table of measured rows, the roofs of
 * the machine, the shapes, threads to lend, and the picture.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdint.h>

#include "spmla/spmla.h"

enum {
	BENCH_ROWS = 64,
	BENCH_RUNS = 4096,
	BENCH_VARIANTS = 3,
	BENCH_KV_ROW = 656, /* bytes of a row of an fp8 cache */
	BENCH_PAGE = 64,
	BENCH_MAX_HEADS = 128,
	BENCH_MAX_CONTEXT = 32768,
	BENCH_POOL_ROWS = 262144 /* of the cache: 172 MB */
};

typedef struct bench_roofs {
	double copy_bytes_s; /* read and written */
	double read_bytes_s;
	double row_bytes_s;           /* random rows of BENCH_KV_ROW bytes */
	double flops[BENCH_VARIANTS]; /* scalar, AVX2, AVX-512; 0: none */
} bench_roofs;

/* What the memory's roof of a shape is. */
typedef enum bench_reads {
	BENCH_READS_IN_ORDER, /* the higher of copy and read */
	BENCH_READS_ROWS      /* row_bytes_s */
} bench_reads;

/* One shape under one variant. */
typedef struct bench_row {
	const char *op;
	char shape[64];
	const char *variant;
	bench_reads reads;
	double bytes; /* that have to be read or written once */
	double flop;
	double best_s;
	double median_s;
	double p99_s;
	double floor_s;    /* the larger of bytes and flop over their roofs */
	const char *bound; /* which of them it is */
} bench_row;

typedef struct bench {
	spmla_ctx *ctx;
	void *memory[SPMLA_MEMORY_COUNT];
	uint64_t rng;
	float seconds;    /* a shape */
	uint32_t workers; /* lent to the backend */
	const char *only; /* shapes of this op; NULL: all */
	bench_roofs roofs;
	bench_row rows[BENCH_ROWS];
	uint32_t count;
} bench;

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

/* Zeros; in huge pages where they fit. Never given back. */
void *bench_room(uint64_t bytes);

uint32_t bench_next(uint64_t *rng);

/* n codes e4m3 without NaN. */
void bench_fill_codes(uint64_t *rng, uint8_t *codes, uint64_t n);

/* n bf16 around 1, of either sign. */
void bench_fill_bf16(uint64_t *rng, uint16_t *x, uint64_t n);

/* Measures run(b), a shape of an op, into the table. */
void bench_measure(bench *b, const char *op, const char *shape,
		   void (*run)(void *), bench_reads reads, double bytes,
		   double flop);

/* The shapes, in three files: make once, measure once a variant. */
void bench_make_attention(bench *b);
void bench_measure_attention(bench *b);
void bench_make_projection(bench *b);
void bench_measure_projection(bench *b);
void bench_make_rows(bench *b);
void bench_measure_rows(bench *b);

/* Draws measured over floor of every row; 0 if the file cannot be written. */
int bench_draw(const char *path, const char *title, const bench_row *rows,
	       uint32_t count);

#endif
