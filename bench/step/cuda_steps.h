/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of the bench: contexts of both backends with the same tables, and the
 * record, graph and layer of what is measured.
 */
#ifndef BENCH_STEP_CUDA_STEPS_H
#define BENCH_STEP_CUDA_STEPS_H

#include "bench/cuda.h"
#include "spmla/v32.h"

enum { MOST_REQUESTS = 256, STORES = 4, PAGE = 64, HEADS = 128 };

typedef struct step_bench {
	world gpu, cpu;
	uint32_t row_pages;   /* of each request's table */
	uint32_t pool_pages;  /* rows * row_pages */
	const int32_t *pages; /* [rows][row_pages] */
	spmla_shape shape;
	spmla_source source;
	uint32_t layers; /* after the prologue */
	spmla_request requests[MOST_REQUESTS];
	spmla_table_store stores[STORES];
	spmla_step step;
	spmla_graph graph;
	uint64_t ticket;
	uint32_t nodes;
} step_bench;

extern step_bench st;

/* A layer's tensors and pools; on the device, and on the host. */
typedef struct layer_twins {
	uint32_t tokens, heads, index_heads, topk;
	const twin *kv_c, *k_pe, *index_k, *norm, *rope, *index_q, *weights;
	const twin *q, *out, *lse, *kv, *index;
} layer_twins;

void layer_make(gpu *g, layer_twins *l, uint32_t positions, uint32_t pages);
spmla_v32_layer layer_of(const layer_twins *l, side on);
extern layer_twins ly;

/* Contexts of `rows` requests with up to `context` tokens, tables written. */
void steps_open(gpu *g, uint32_t rows, uint32_t context, uint32_t heads);
void steps_close(gpu *g, cuda_row *r); /* r: the last, marked on a fault */

/* The record: n requests of `len` tokens, or where it is 0 of some. */
void steps_record(gpu *g, uint32_t n, uint32_t len);
/* The graph: a prologue and st.layers layers, for st.shape. */
void steps_capture(gpu *g);
void steps_prepare(gpu *g);
void steps_launch(gpu *g);

/* Prints what the host does for a replay. */
void host_head(void);
void host_row(gpu *g, const char *what, double device_us);

#endif
