/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of decode_loop: a small engine loop, without the model's matrices.
 * decode_loop.c puts them together.
 */
#ifndef EXAMPLES_DECODE_LOOP_H
#define EXAMPLES_DECODE_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "examples/options.h"
#include "spmla/spmla.h"

#define PROGRAM "decode_loop"

/* ---- Memory (decode_alloc.c) ------------------------------------------- */

/* The number of allocations and frees so far, by SpMLA or this program. The
 * linker sends malloc and its kin here: see BUILD.bazel. */
typedef struct alloc_count {
	uint64_t allocations;
	uint64_t frees;
} alloc_count;

alloc_count alloc_counted(void);

/* Zeroed memory, 256-byte aligned, that lives until device_free_all; keep_own
 * is memory of the device alone. Ends the program if there is no memory, which
 * happens only at the start. */
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

/* Reads TIMESTAMP,ContextTokens,GeneratedTokens. On an error prints file and
 * line and returns 0. */
int trace_read(trace *t, const char *path, uint32_t max_context);

/* ---- The batch (decode_batch.c, decode_pages.c) ------------------------ */

/* A request between its join and its leave. */
typedef struct running {
	uint32_t id; /* its row of the trace */
	uint32_t row;
	uint32_t prompt;
	uint32_t total; /* prompt and answer */
	/* tokens in the caches that stay; less than prompt while steps still
	 * have to take in the end of the prompt */
	uint32_t context;
	uint32_t fresh; /* joined since the last step */
	/* By table: columns of its row that are set, and pages that it may
	 * still take. */
	uint32_t pages[SPMLA_MAX_TABLE_GROUPS];
	uint32_t promised[SPMLA_MAX_TABLE_GROUPS];
} running;

/* One query token of a step, enough to compute all its values again. */
typedef struct token {
	uint32_t request; /* running.id */
	uint32_t row;
	uint32_t position;
	uint32_t draft; /* 1: will be rejected; its values differ then */
} token;

/* A table group with a table of its own, and the pages of its pools. */
typedef struct page_table {
	uint32_t group, columns, page_tokens;
	uint32_t ring;  /* a ring table */
	int32_t *pages; /* [rows][columns], the host's own */
	int32_t *cols;  /* [rows] */
	int32_t *free_pages;
	uint32_t free_count, promised;
	uint32_t *users; /* [pool_pages] columns that name the page */
	uint8_t *used;   /* [pool_pages] was given out before */
} page_table;

/* Bytes of a page that a request takes over from another one. */
typedef struct page_copy {
	uint32_t group; /* whose table names both */
	int32_t from, to;
} page_copy;

/* A request shares its first `tokens` tokens with another one. */
typedef struct origin {
	uint32_t parent; /* its id and 1; 0: none */
	uint32_t tokens;
} origin;

typedef struct batch {
	const trace *trace;
	uint32_t next; /* row of the trace to admit next */
	uint32_t rows, next_n, max_update_pages, max_context;
	uint32_t start; /* tokens that a request has when it joins */
	/* Tokens of prompts that a step takes in: of one request, and in all.
	 */
	uint32_t prompt_tokens, prompt_budget;
	uint32_t own_tables; /* the tables are the engine's: no stores */
	/* every how many joins a request takes over tokens of another one; 0:
	 * none */
	uint32_t fork_every;
	uint64_t seed;
	page_table tables[SPMLA_MAX_TABLE_GROUPS];
	uint32_t table_count;
	uint32_t *free_rows;
	uint32_t free_row_count;
	running *active; /* in order of arrival */
	uint32_t active_count;
	origin *origins;   /* [trace->count] */
	page_copy *copies; /* to be made before the step */
	uint32_t copy_count, copy_capacity;
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
	uint64_t rejected_tokens, forks, pages_shared, pages_copied;
	uint64_t pages_reused, wraps, clipped, mixed_steps;
	uint32_t most_active, longest;
} batch;

void batch_open(batch *b, const spmla_plan *plan, const trace *t,
		const model_options *m, uint64_t seed);

/* Makes the batch hold a step of r's prompt alone, with these query tokens. The
 * stores name all its pages if `first`. */
void batch_build_prompt(batch *b, running *r, const spmla_request *request,
			uint32_t first);

/* Admits requests while a row and pages are free, a few per step. Returns their
 * number. They are the last ones of active, and their prompts must be put into
 * the caches. */
uint32_t batch_admit(batch *b);

/* Makes the next step. Returns 0 if nobody is left. */
int batch_build(batch *b);

/* The step is done: lengths grow, requests leave, their pages are free again.
 */
void batch_finish(batch *b);

/* The request to which the token at a position belonged first. */
uint32_t batch_owner(const batch *b, uint32_t request, uint32_t position);

/* Finds the tables of a plan, with all pages free. */
void pages_open(batch *b, const spmla_plan *plan);

/* If all pages for r->total tokens are free or will not be needed by others,
 * promises them to r and returns 1. Within the first `prefix` tokens r shares
 * the pages of `parent` or gets copies of them; if parent is NULL those pages
 * are given. */
int pages_admit(batch *b, running *r, const running *parent, uint32_t prefix);

/* Gives r the pages of its first `tokens` positions. */
void pages_take(batch *b, running *r, uint32_t tokens);
void pages_release(batch *b, const running *r);

/* Puts the columns of r from column `had` on into the record. Returns their
 * number. */
uint32_t pages_store(batch *b, const running *r, const uint32_t *had);

/* ---- Values (decode_values.c) ------------------------------------------ */

/* A stream of numbers that depends only on (seed, layer, kind, token). */
uint64_t values_stream(uint64_t seed, uint32_t layer, uint32_t kind, token of);
void values_bf16(uint64_t stream, uint32_t width, uint16_t *out);
void values_f32(uint64_t stream, uint32_t width, float *out);

/* Writes cos and sin of a position, 32 each, as angles p * turn[i]. */
void values_cos_sin(const double turn[32], uint32_t position, float *row);

/* ---- The checks -------------------------------------------------------- */

typedef struct check_count {
	uint64_t done; /* tokens times layers, or steps */
	uint64_t mismatches;
} check_count;

/* The place of a difference; SPMLA_NO_INDEX for what does not apply. */
typedef struct mismatch_at {
	const char *check;
	uint32_t step, layer, token;
	const char *what;
	uint64_t element;
} mismatch_at;

/* Prints a mismatch if it is one of the first few `seen`. */
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

/* How the run is told of on stderr. */
typedef enum progress {
	PROGRESS_NONE = 0,
	PROGRESS_LINES = 1, /* one a second */
	PROGRESS_BAR = 2    /* a terminal: ten a second, in place */
} progress;

typedef struct report {
	uint32_t steps, limit;
	uint64_t tokens;
	uint64_t *ns[TIMING_COUNT]; /* [limit] */
	uint64_t *sorted;           /* [limit] scratch */
	uint32_t *bucket;           /* [limit] SPMLA_BUCKET_PREFILL: no graph */
	uint32_t *active;           /* [limit] requests of the step */
	prefill_count prefill;
	uint64_t missing, too_large, other_faults, ring_full, undone;
	progress progress;
	uint64_t began_ns, ended_ns, shown_ns;
} report;

/* p50 and p99 of the steps of a bucket. */
typedef struct bucket_time {
	uint32_t steps;
	double p50_ns, p99_ns;
} bucket_time;

enum { TIME_TEXT = 32 };

/* `shown`: tell of the progress even if stderr is no terminal. */
void report_open(report *r, uint32_t limit, uint32_t shown);
uint64_t report_now_ns(void);
void report_progress(report *r, const batch *b);
void report_print(report *r, const spmla_plan *plan, const batch *b);
uint64_t report_faults(const report *r);
bucket_time report_bucket(const report *r, uint32_t bucket);

/* "16.6 ms" */
const char *time_text(double ns, char text[TIME_TEXT]);

/* Draws the time and the requests of every step (decode_svg.c). Both return 0,
 * after a line on stderr, if the file cannot be written. */
int report_can_draw(const char *file);
int report_draw(const report *r, const spmla_plan *plan, const char *file);

/* ---- The loop (decode_loop.c), a step (decode_step.c) ------------------ */

enum { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

typedef struct loop loop;

/* The calls that differ by model. Those that can fail return an exit status. */
typedef struct model_calls {
	/* Allocates everything, after spmla_init. */
	int (*open)(loop *l);
	/* The layers of a step, in a capture or eagerly. */
	spmla_status (*record)(loop *l, const spmla_shape *shape);
	/* Handles the prompt of a request that joined. */
	int (*take_prompt)(loop *l, running *r, uint32_t step);
	/* Before the step's record is written. */
	int (*before)(loop *l, int checked);
	/* Writes the step's input tensors in place. */
	void (*fill)(loop *l);
	/* After the replay of a graph of that shape. */
	int (*after)(loop *l, uint32_t step, const spmla_shape *shape,
		     int checked);
	check_count (*eager_count)(const loop *l);
	check_count (*reference_count)(const loop *l);
	void (*close)(loop *l);
} model_calls;

extern const model_calls v32_calls, v4_calls;

struct loop {
	model_options options;
	const char *trace_path, *svg;
	char trace_file[PATH_BYTES]; /* as it was found */
	uint32_t steps, check_every, undo_every, fork_every, branches;
	uint32_t plan_shown, progress;
	uint64_t seed;
	const spmla_backend *backend;
	spmla_plan plan;
	spmla_ctx *ctx;
	void *record;
	spmla_graph graphs[SPMLA_MAX_BUCKETS];
	trace trace;
	batch batch;
	report report;
	uint64_t init_allocations; /* of all contexts */
	alloc_count at_start;
	const model_calls *calls;
	struct v32_run *v32; /* of the calls: one or the other */
	struct v4_run *v4;
};

/* A context in memory of its own. */
int loop_init(loop *l, spmla_ctx **ctx);

/* Prints the context's last error; returns EXIT_FAILED. */
int loop_failed(const spmla_ctx *ctx, const char *call);

/* Writes, launches and checks the step that the batch holds. */
int loop_step(loop *l, uint32_t step);

/* Writes the rows of the step's tables that are too long for its record. */
spmla_status loop_write_bulk(const batch *b, spmla_ctx *ctx);

/* Encodes the step that the batch holds and puts it into the ring. */
int loop_write(loop *l, spmla_step_info *info, uint64_t *ticket);

/* Counts the device's reports, by kind. None is expected. */
void loop_read_status(loop *l, spmla_ctx *ctx, uint32_t step);

/* Whether this step's results are compared. */
int loop_check_is_due(const loop *l, uint32_t step);

#endif
