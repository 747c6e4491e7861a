/* SPDX-License-Identifier: Apache-2.0
 *
 * For cudart_engine.cu: an engine of two V3.2 layers on the CUDA runtime, with
 * kernels of its own around SpMLA's, and twice: a side whose steps are replayed
 * graphs and one whose steps are eager calls. Both are on one stream and get
 * the same steps; a kernel behind each step compares all that the two have.
 * Whatever is not expected is printed; a call that must not fail ends the
 * program.
 */
#ifndef TESTS_GPU_CUDART_RIG_H
#define TESTS_GPU_CUDART_RIG_H

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include "spmla/spmla_cuda.h"
#include "spmla/v32.h"

enum {
	LAYERS = 2,
	HEADS = 8,
	INDEX_HEADS = 4,
	TOPK = 8,
	ROWS = 6,
	TOKENS = 12, /* of the larger bucket */
	PAGE = 16,
	COLUMNS = 16,
	CONTEXT = PAGE * COLUMNS,
	POOL = 8 * COLUMNS,
	BUCKETS = 2,
	SLOTS = 3,
	MAX_STEPS = 200, /* of one run */
	PIECES = 4 * LAYERS + 2,
	OPS = 7 /* of a layer, the engine's and SpMLA's */
};

/* A layer's inputs, bf16. */
enum { KV_C, K_PE, INDEX_K, INDEX_Q, WEIGHTS, QUERY, INPUTS };

/* How a step of the first side gets to the device; MIXED: in turn, at
 * random. */
typedef enum kind { ENGINE, REPLAY, EAGER, MIXED } kind;

/* An array that both sides have, and that is compared. */
typedef struct piece {
	const char *name;
	uint32_t *words;
	uint64_t count;
} piece;

typedef struct side {
	spmla_ctx *ctx;
	uint16_t *in[LAYERS][INPUTS];
	spmla_v32_layer layer[LAYERS];
	int32_t *topk[LAYERS]; /* the second layer's: TOPK_INDICES */
	piece pieces[PIECES];
} side;

/* What a comparison found: how many words differ; of the first one its index
 * in the upper half, its value in the lower. */
typedef struct report {
	unsigned long long count, got, want;
} report;

/* A step, for what is printed of it. */
typedef struct trace {
	kind how;
	uint32_t bucket, requests, tokens;
	uint64_t ticket;
} trace;

typedef struct row {
	uint32_t len, cols;
} row;

typedef struct rig {
	cudaStream_t stream;
	void *context; /* the CUcontext that the runtime has made current */
	int device;
	spmla_plan plan;
	uint32_t *seed; /* of the step, on the device */
	float *cos_sin, *norm_weight, *norm_bias;
	side graph, eager;
	report *reports; /* [MAX_STEPS][PIECES] */
	cudaGraphExec_t exec[BUCKETS];
	spmla_graph replay[BUCKETS];
	size_t nodes[BUCKETS]; /* of the bucket's first capture */
	uint64_t rng;
	row rows[ROWS];
	uint32_t swap; /* the eager side's ops `swap` and the next one change
	                * places; from OPS - 1 on none do */
	uint32_t full; /* writes that had to wait for a slot */
	trace log[MAX_STEPS];
} rig;

extern uint32_t failures;
extern const uint32_t input_width[INPUTS]; /* elements of a token */

/* Prints, and counts a failure. */
void complain(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define COMPLAIN(...) complain(__FILE__, __LINE__, __VA_ARGS__)
#define EXPECT(condition)                           \
	do {                                        \
		if (!(condition))                   \
			COMPLAIN("%s", #condition); \
	} while (0)

/* The runtime's call gives `want`. What it gives becomes its last error, which
 * is so taken back. */
void expect_cuda(const char *file, int line, const char *call, cudaError_t got,
		 cudaError_t want);
#define CUDA_GIVES(want, call) \
	expect_cuda(__FILE__, __LINE__, #call, call, want)
/* It must succeed. */
#define CUDA(call) CUDA_GIVES(cudaSuccess, call)

/* SpMLA's call gives `want`, of `field`, unless that is NULL; and the runtime
 * does not know of it. */
void expect_spmla(const char *file, int line, const char *call,
		  const spmla_ctx *ctx, spmla_status got, spmla_status want,
		  const char *field);
#define SPMLA_GIVES(want, field, ctx, call) \
	expect_spmla(__FILE__, __LINE__, #call, ctx, call, want, field)
/* It must succeed. */
#define SPMLA(ctx, call) SPMLA_GIVES(SPMLA_OK, NULL, ctx, call)

void rig_open(rig *r);
/* Drains the stream, and ends both contexts. */
void rig_close(rig *r);

/* A prologue and the layers, with the engine's kernels between. */
void enqueue_step(rig *r, side *s, const spmla_shape *shape);
const spmla_shape *shape_of(const rig *r, uint32_t bucket);

/* Writes a random step that fits the bucket to both sides, and its seed. */
void write_step(rig *r, uint32_t bucket, uint32_t n);
/* The step of `ticket` on its way, on the first side, and on the other one with
 * the comparison behind it. */
void launch_step(rig *r, const trace *t);
void check_step(rig *r, uint32_t n);
/* That many of both; waits for them, and prints what differs. Returns how many
 * steps do. */
uint32_t run_steps(rig *r, kind how, uint32_t count);
uint32_t read_reports(rig *r, uint32_t count, uint32_t quiet);
/* All that is compared, from the first side to the other. */
void copy_state(rig *r);

/* Captures a step of the first side: into r->exec, and into r->replay. */
void capture_own(rig *r, uint32_t bucket, cudaStreamCaptureMode mode);
void capture_spmla(rig *r, uint32_t bucket);
/* Every bucket, both ways. */
void capture_all(rig *r);
/* Only kernels are in the graph, and as many whoever captured it. */
void expect_kernels(rig *r, cudaGraph_t graph, uint32_t bucket,
		    const char *whose);
void expect_capture(const rig *r, cudaStreamCaptureStatus want);

/* Ends both contexts and the device: nothing follows in this process. */
void lose_device(rig *r);

/* The check of cudart_held.cu. */
void held_multiprocessors(rig *r);

/* Device, context, last error and both sticky statuses are as they were. */
void expect_clean(const rig *r, const char *where);

#endif
