/* SPDX-License-Identifier: Apache-2.0
 *
 * A V4 step of the bench: contexts of both backends with the same tables, and
 * the record and graph of what is measured.
 */
#ifndef BENCH_STEP_CUDA_V4_STEPS_H
#define BENCH_STEP_CUDA_V4_STEPS_H

#include "bench/cuda.h"

enum { V4_MOST = 256, STORES = 4, WINDOW = 128 };

typedef struct v4_bench {
	world gpu, cpu;
	spmla_shape shape;
	spmla_source source;
	spmla_request requests[V4_MOST];
	spmla_table_store stores[V4_MOST];
	int32_t pages[V4_MOST];
	uint32_t growing; /* requests that get a page */
	spmla_step step;
	spmla_graph graph;
	uint64_t ticket;
	uint32_t nodes;
	uint32_t most; /* tokens of the bucket */
} v4_bench;

extern v4_bench v4;

/* Contexts of `rows` requests with up to `context` tokens, tables written, and
 * pools for `layers` layers of each ratio, 0 or 1. */
void v4_open(gpu *g, spmla_model model, uint32_t rows, uint32_t context,
	     uint32_t layers);
void v4_close(gpu *g);

/* The graph of `run` for a token of each of n requests, which v4.requests has,
 * and the record for it. */
void v4_record(gpu *g, uint32_t n, void (*run)(gpu *g));
void v4_prologue(gpu *g);
void v4_prepare(gpu *g);
void v4_launch(gpu *g);

/* The prologue of the first n requests by the CPU. */
void v4_host_step(uint32_t n);
/* Says what the device has reported. */
void v4_status(gpu *g, const cuda_row *r);

#endif
