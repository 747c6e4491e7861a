/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps for tests of the protocol: a draft that can be copied and written
 * again, a small scheduler that makes drafts as an engine would, and a model of
 * the expected contents of every STEP buffer. The model knows the step, the
 * reference's block table and the rules of the headers; it shares no code with
 * the library.
 */
#ifndef TESTS_HARNESS_STEP_RIG_H
#define TESTS_HARNESS_STEP_RIG_H

#include "tests/harness/engine.h"
#include "tests/harness/fixture.h"
#include "tests/reference/reference.h"

enum {
	RIG_ROWS = 8, /* of fixture_config */
	RIG_REQUESTS = 8,
	RIG_TOKENS = 16,
	RIG_STORES = 16,
	RIG_COLUMNS = 32,
	RIG_POOL = 64,
	RIG_CONTEXT = 512,
	RIG_ROOM = 64 /* room of a draft's lists, more than any plan allows */
};

/* ---- Drafts ------------------------------------------------------------ */

typedef struct draft {
	uint32_t flags;
	uint32_t request_count;
	uint32_t store_count;
	uint32_t page_count;
	spmla_request requests[RIG_ROOM];
	spmla_table_store stores[RIG_ROOM]; /* pages: set by draft_step */
	int32_t pages[RIG_ROOM];
	spmla_step step;
} draft;

void draft_clear(draft *d);
void draft_request(draft *d, uint32_t row, uint32_t query, uint32_t len,
		   uint32_t flags);
void draft_store(draft *d, uint32_t row, uint32_t first_col, uint32_t count,
		 const int32_t *pages);
/* The step with its pointers into this copy of the draft. */
const spmla_step *draft_step(draft *d);

/* The most query tokens of a request, all query tokens, all context. A length
 * that no sequence can have counts as the longest. */
uint32_t draft_next_n(const draft *d);
uint32_t draft_tokens(const draft *d);
uint64_t draft_live(const draft *d);
uint32_t draft_fits(const draft *d, const spmla_shape *shape);

/* spmla_step_write that must succeed; returns the ticket. */
uint64_t draft_write(fixture *f, draft *d);

/* A step of one request of `len` tokens in row `row`, pages row * 4 and on.
 * Writes it and returns its ticket. */
uint64_t write_one(fixture *f, uint32_t row, uint32_t len);
/* Such a step, not written. */
void draft_one(draft *d, uint32_t row, uint32_t len);

/* ---- Graphs ------------------------------------------------------------ */

/* The buckets of fixture_config. */
extern const spmla_shape rig_shapes[3];

/* A graph, or an engine's own list, that holds one prologue. */
spmla_graph capture_prologue(fixture *f, const spmla_shape *shape,
			     spmla_source source);
engine_list capture_list(fixture *f, const spmla_shape *shape,
			 spmla_source source);

/* spmla_graph_replay that must succeed. */
void replay(fixture *f, spmla_graph graph, uint64_t ticket);

/* `call` must fail with `text`. */
#define expect_error(f, call, text)                      \
	do {                                             \
		ck_assert_int_ne(call, SPMLA_OK);        \
		ck_assert_str_eq(fixture_diag(f), text); \
	} while (0)

/* ---- A scheduler ------------------------------------------------------- */

typedef struct sim_row {
	uint32_t len;
	uint32_t last_query; /* of its last step */
	uint32_t cols;
	int32_t pages[RIG_COLUMNS];
	uint32_t preempted; /* its length, if it lost its pages */
} sim_row;

/* Plain data: a copy is a snapshot, for steps that are undone. */
typedef struct sim {
	uint64_t rng;
	uint32_t page_tokens;
	uint32_t max_context;
	uint32_t max_pages; /* in one step */
	sim_row rows[RIG_ROWS];
	uint8_t used[RIG_POOL];
} sim;

void sim_open(sim *s, const spmla_plan *plan, uint64_t seed);

/* The next step, of at most `limit`: rows join, grow, pause, are preempted and
 * come back, leave, and shrink where draft tokens were rejected. */
void sim_draft(sim *s, const spmla_shape *limit, draft *d);

/* ---- The model --------------------------------------------------------- */

typedef struct step_model {
	ref_table table;
	uint32_t is_own; /* SpMLA's: a gap in it ends a row */
	uint32_t max_context;
	uint64_t logits_elems;
	int32_t row_len[RIG_ROWS]; /* what the engine wrote to ROW_LEN */
	/* the current step */
	uint32_t requests;
	spmla_request request[RIG_REQUESTS];
	int32_t len[RIG_REQUESTS]; /* 0: none or skipped */
	/* expected status */
	uint32_t faults;
	uint32_t fault;
	uint32_t fault_row;
} step_model;

void model_open(step_model *m, const fixture *f);
void model_close(step_model *m);

/* Models the device: with a record, with STEP_DEVICE, or without a record. */
void model_record(step_model *m, const draft *d, const spmla_shape *shape);
void model_device(step_model *m, const draft *d, const spmla_shape *shape);
void model_empty(step_model *m, uint32_t fault);
/* lengths += by[b] */
void model_advance(step_model *m, const int32_t *by, const spmla_shape *shape);

/* Compares every STEP buffer and the sticky status, then clears both. */
void model_check(step_model *m, fixture *f, const spmla_shape *shape);

/* Checks that the STEP buffers say: an empty step. */
void expect_empty_step(fixture *f, const spmla_shape *shape);

/* Checks the sticky status: step, row and fault of the first report, and the
 * count. */
void expect_status(fixture *f, uint32_t count, uint32_t fault, uint32_t row,
		   uint64_t step);

#endif
