/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of decode_loop: an engine's loop in small, without the model's
 * matrices. See decode_loop.c for how they play together.
 */
#ifndef EXAMPLES_DECODE_LOOP_H
#define EXAMPLES_DECODE_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "examples/options.h"
#include "spmla/ops/ops.h"
#include "spmla/prefill_plan.h"
#include "spmla/v32.h"

#define PROGRAM "decode_loop"

/* ---- Memory (decode_alloc.c) ------------------------------------------- */

/* How often SpMLA or this program allocated or freed so far. The linker sends
 * malloc and its kin here: see BUILD.bazel. */
typedef struct alloc_count {
	uint64_t allocations;
	uint64_t frees;
} alloc_count;

alloc_count alloc_counted(void);

/* Zeros, 4096-byte aligned, until device_free_all; keep_own on the device
 * alone. Ends the program if there is no memory: this happens at the start
 * only. */
void *keep(uint64_t bytes);
void *keep_own(uint64_t bytes);
uint64_t keep_bytes(void);

/* ---- The trace (decode_trace.c) ---------------------------------------- */

typedef struct trace_row {
	uint32_t prompt;
	uint32_t answer;
	uint32_t clipped; /* it was longer than a context may be */
} trace_row;

typedef struct trace {
	trace_row *rows;
	uint32_t count;
	uint32_t capacity;
} trace;

/* Reads TIMESTAMP,ContextTokens,GeneratedTokens. Names file and line of what
 * is wrong and returns 0. */
int trace_read(trace *t, const char *path, uint32_t max_context);

/* ---- The batch (decode_batch.c) ---------------------------------------- */

/* A request between its join and its leave. */
typedef struct running {
	uint32_t id; /* its row of the trace */
	uint32_t row;
	uint32_t prompt;
	uint32_t total;    /* prompt and answer */
	uint32_t context;  /* tokens in the caches that stay; less than prompt
	                    * while a mixed step has to take in its end */
	uint32_t pages;    /* columns of its table row that are set */
	uint32_t promised; /* pages it may still take */
	uint32_t fresh;    /* joined since the last step */
} running;

/* One query token of a step, enough to compute all its values again. */
typedef struct token {
	uint32_t request; /* running.id */
	uint32_t row;
	uint32_t position;
	uint32_t draft; /* 1: will be rejected; its values differ then */
} token;

typedef struct batch {
	const trace *trace;
	uint32_t next; /* row of the trace to admit next */
	uint32_t rows, columns, page_tokens, next_n, max_update_pages;
	uint64_t seed;
	int32_t *table;      /* [rows][columns], the host's own */
	int32_t *table_cols; /* [rows] */
	int32_t *free_pages;
	uint32_t free_page_count, promised_pages;
	uint32_t *free_rows;
	uint32_t free_row_count;
	running *active; /* in order of arrival */
	uint32_t active_count;
	/* the step in the making */
	spmla_step step;
	spmla_request *requests;
	spmla_table_store *stores;
	uint32_t *accepted; /* [requests], of the query tokens */
	uint32_t *bulk;     /* [rows] rows that go through the staging table */
	uint32_t bulk_count;
	token *tokens;
	uint32_t token_count;
	/* what happened so far */
	uint64_t joins, leaves, grows, bulk_joins, accepted_tokens;
	uint64_t pages_reused, clipped, mixed_steps;
	uint32_t most_active, longest;
	uint8_t *page_used; /* [pool_pages] was ever given out */
} batch;

void batch_open(batch *b, const spmla_plan *plan, const trace *t,
		uint32_t next_n, uint64_t seed);

/* The batch holds a step of r's prompt alone, with these query tokens; stores
 * name all its pages if `first`. */
void batch_build_prompt(batch *b, running *r, const spmla_request *request,
			uint32_t first);

/* Takes in requests while a row and pages are free, a few a step. Returns how
 * many: the last ones of active, whose prompt is to be put into the caches. */
uint32_t batch_admit(batch *b);

/* Makes the next step. Returns 0 if nobody is left. */
int batch_build(batch *b);

/* The step is done: lengths grow, requests leave, pages are free again. */
void batch_finish(batch *b);

/* ---- The model (decode_model.c) ---------------------------------------- */

typedef enum tensor {
	TENSOR_Q = 1,
	TENSOR_KV_C = 2,
	TENSOR_K_PE = 3,
	TENSOR_INDEX_K = 4,
	TENSOR_INDEX_Q = 5,
	TENSOR_INDEX_WEIGHTS = 6
} tensor;

/* What an engine's projections would leave in place for a layer. */
typedef struct layer_tensors {
	uint16_t *q;             /* [tokens][heads][576] */
	uint16_t *kv_c;          /* [tokens][512] */
	uint16_t *k_pe;          /* [tokens][64] */
	uint16_t *index_k;       /* [tokens][128] */
	uint16_t *index_q;       /* [tokens][index_heads][128] */
	uint16_t *index_weights; /* [tokens][index_heads] */
	uint16_t *out;           /* [tokens][heads][512] */
	float *lse;              /* [tokens][heads] */
	int32_t *topk_indices;   /* [tokens][topk] */
	int32_t *topk_lens;      /* [tokens] */
	spmla_v32_layer args;
} layer_tensors;

/* Tokens of a prompt that are inserted at a time, without prefill. */
enum { INSERT_TOKENS = 128 };

typedef struct model {
	const spmla_plan *plan;
	spmla_ctx *ctx;
	uint64_t seed;
	uint32_t layers;
	layer_tensors *layer;
	float *norm_weight; /* [128] */
	float *norm_bias;   /* [128] */
	float *cos_sin;     /* [max_context][64] */
	spmla_graph graphs[SPMLA_MAX_BUCKETS];
	/* a chunk of a prompt */
	uint16_t *chunk_kv_c, *chunk_k_pe, *chunk_index_k;
	int64_t *chunk_slots;
	int32_t *chunk_positions;
} model;

/* Allocates; model_bind then names the context's caches. */
void model_open(model *m, const spmla_plan *plan, uint32_t layers,
		uint64_t seed);
spmla_status model_bind(model *m, spmla_ctx *ctx);

/* Records one graph a bucket. */
spmla_status model_capture(model *m);

/* bf16 values of a tensor's row; depends on nothing but its arguments. */
void model_values(const model *m, uint32_t layer, tensor kind, token of,
		  uint16_t *out);
uint32_t model_width(const model *m, tensor kind);

/* The insert args of `count` rows, for the prompt and for the eager check. */
spmla_kv_insert_args model_kv_insert(const spmla_plan *plan);
spmla_indexer_k_insert_args model_index_k_insert(const model *m);

/* Writes the step's input tensors in place. */
void model_fill(model *m, const token *tokens, uint32_t count);

/* Puts a prompt's keys into the caches, without attention, eagerly, at slots of
 * the host's table. */
spmla_status model_insert(model *m, const batch *b, const running *r);

/* ---- The checks (decode_eager.c, decode_compare.c, decode_reference.c) - */

/* Operations one by one beside the replay, in buffers of their own. */
typedef struct eager_check {
	const model *model;
	const batch *batch;
	uint64_t steps, mismatches;
	uint32_t step;
	spmla_shape shape;
	int32_t *query_start_loc, *seq_lens, *req_row;
	int32_t *req_id, *token_row, *positions, *context_lens;
	int64_t *slot_mapping, *row_starts;
	uint8_t *index_q;
	float *index_weights, *logits;
	int32_t *topk_indices, *topk_lens, *topk_slots;
	uint16_t *out;
	float *lse;
	spmla_cache *kv, *index; /* [layers] copies of the caches */
	void *pulled[2];         /* room for what lies on the device */
	uint64_t pulled_bytes;
} eager_check;

void eager_open(eager_check *e, const model *m, const batch *b);

/* Copies the caches; before the replay. */
void eager_before(eager_check *e);

/* The step's metadata, and a layer. */
spmla_status eager_metadata(eager_check *e);
spmla_status eager_layer(eager_check *e, uint32_t layer);

/* Runs the step again, eagerly, and compares every byte. */
spmla_status eager_after(eager_check *e, uint32_t step, uint32_t bucket);

typedef struct reference_check reference_check;

/* NULL if there is no memory. */
reference_check *reference_open(const model *m, const batch *b);
void reference_close(reference_check *r);

/* Follows the step's table changes; every step. */
void reference_table(reference_check *r);

/* Compares a sample of the step's tokens, in all layers, and the padding up to
 * `tokens`. */
void reference_after(reference_check *r, uint32_t step, uint32_t tokens);

typedef struct check_count {
	uint64_t done; /* tokens times layers, or steps */
	uint64_t mismatches;
} check_count;

check_count reference_count(const reference_check *r);

/* Where something differs; SPMLA_NO_INDEX for what does not apply. */
typedef struct mismatch_at {
	const char *check;
	uint32_t step, layer, token;
	const char *what;
	uint64_t element;
} mismatch_at;

/* Prints it if it is one of the first few that were `seen`. */
void mismatch(uint64_t seen, const mismatch_at *at, const char *got,
	      const char *want);

/* ---- The report (decode_report.c) -------------------------------------- */

typedef enum timing {
	TIMING_ENCODE = 0,
	TIMING_PUSH = 1,
	TIMING_LAUNCH = 2,
	TIMING_STEP = 3,
	TIMING_COUNT = 4
} timing;

/* Steps of prompts. */
typedef struct prefill_count {
	uint64_t prompts, chunks, tokens, replayed, ns;
} prefill_count;

typedef struct report {
	uint32_t steps, limit;
	uint64_t tokens;
	uint64_t replays[SPMLA_MAX_BUCKETS];
	uint64_t *ns[TIMING_COUNT]; /* [limit] */
	prefill_count prefill;
	uint64_t missing, too_large, other_faults, ring_full, undone;
	int bar; /* stderr is a terminal */
} report;

void report_open(report *r, uint32_t limit);
uint64_t report_now_ns(void);
void report_progress(const report *r, const batch *b);
void report_print(report *r, const spmla_plan *plan, const batch *b);

/* ---- The loop (decode_loop.c), a step (decode_step.c), a prompt
 * (decode_prefill.c) ------------------------------------------------------ */

enum { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

typedef struct loop {
	model_options options;
	const char *trace_path;
	uint32_t steps, check_every, undo_every;
	uint64_t seed;
	const spmla_backend *backend;
	spmla_plan plan;
	spmla_ctx *ctx;
	void *record;
	spmla_prefill_chunk *chunks; /* of a prompt */
	uint32_t chunk_capacity;
	trace trace;
	batch batch;
	model model;
	report report;
	eager_check eager;
	reference_check *reference;
	alloc_count before_init, after_init, at_start;
} loop;

/* Prints why the context's last call failed; returns EXIT_FAILED. */
int loop_failed(const loop *l, const char *call);

/* Writes, launches and checks the step that the batch holds. */
int loop_step(loop *l, uint32_t step);

/* Encodes the step that the batch holds and puts it into the ring. */
int loop_write(loop *l, spmla_step_info *info, uint64_t *ticket);

/* Counts what the device reported, by kind. None is expected. */
void loop_read_status(loop *l, uint32_t step);

/* Runs a prompt but for the end that the next step takes in, chunk by chunk.
 * With `checked` each chunk is compared with the reference. */
int loop_prefill(loop *l, running *r, uint32_t step, int checked);

/* Whether the results of this step are compared. */
int loop_check_is_due(const loop *l, uint32_t step);

#endif
