/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of V4 for tests of the protocol: configs with tables of every kind,
 * drafts with stores of any group, and a model of what every STEP buffer and
 * every table must then hold. The model knows the step, the reference's block
 * tables and the rules of the manual; it shares no code with the library. The
 * one idea of it: the slot of a compressed key is its last position's, by
 * the ratio, and a table that wraps around is asked for a position modulo what
 * it holds.
 */
#ifndef TESTS_PROTOCOL_V4_STEP_RIG_H
#define TESTS_PROTOCOL_V4_STEP_RIG_H

#include "tests/harness/fixture.h"
#include "tests/reference/reference.h"

enum {
	V4_ROWS = 8,
	V4_REQUESTS = 8,
	V4_TOKENS = 40,
	V4_STORES = 64, /* of a draft */
	V4_PAGES = 1200,
	V4_WINDOW = 128, /* the most of a config */
	V4_WIDTH = 8192, /* the most of C128A_INDICES */
	V4_STRIDE = 9    /* columns of an engine's row behind the plan's */
};

typedef enum v4_kind {
	V4_SMALL = 0,  /* window and states in rings, one table of C4A and index
	                */
	V4_TABLES = 1, /* long tables, the index keys' own, two of the engine's
	                */
	V4_FAR = 2,    /* contexts of 1M in large pages */
	V4_TIGHT = 3,  /* V4_SMALL with little room for logits */
	V4_PROMPTS = 4, /* V4_SMALL with prefill of 40 tokens, logits in pieces
	                 */
	V4_WIDE = 5,    /* V4_SMALL with a bucket {40,8,8} */
	V4_KINDS = 6
} v4_kind;

/* As a bucket: prefill's shape. */
enum { V4_PREFILL = 3 };

/* 8 rows, buckets {4,4,1} {8,4,2} {16,8,4}; see v4_kind. */
void v4_step_config(spmla_config *config, v4_kind kind);

/* ---- Drafts ------------------------------------------------------------ */

typedef struct v4_draft {
	uint32_t flags;
	uint32_t request_count;
	uint32_t store_count;
	uint32_t page_count;
	spmla_request requests[V4_REQUESTS];
	spmla_table_store stores[V4_STORES]; /* pages: set by v4_draft_step */
	int32_t pages[V4_PAGES];
	spmla_step step;
} v4_draft;

void v4_draft_clear(v4_draft *d);
void v4_draft_request(v4_draft *d, uint32_t row, uint32_t query, uint32_t len,
		      uint32_t flags);
void v4_draft_store(v4_draft *d, uint32_t group, uint32_t row,
		    uint32_t first_col, uint32_t count, const int32_t *pages);
/* The step with its pointers into this draft. */
const spmla_step *v4_draft_step(v4_draft *d);

/* ---- The model --------------------------------------------------------- */

typedef struct v4_model {
	const spmla_plan *plan;
	ref_table tables[SPMLA_V4_GROUPS]; /* of a group that shares: none */
	int32_t *engine[SPMLA_V4_GROUPS];  /* of a DEVICE group: the table */
	uint32_t stride[SPMLA_V4_GROUPS];
	int32_t row_len[V4_ROWS]; /* what the engine wrote to ROW_LEN */
	/* the current step */
	uint32_t requests;
	spmla_request request[V4_REQUESTS];
	int32_t len[V4_REQUESTS]; /* 0: none or skipped */
	/* expected status */
	uint32_t faults;
	uint32_t fault;
	uint32_t fault_row;
	uint64_t fault_step; /* as the device last said */
	uint32_t seen[16];   /* reports so far, by spmla_fault */
} v4_model;

/* Binds tables for the DEVICE groups, all pages -1. */
void v4_model_open(v4_model *m, fixture *f);
void v4_model_close(v4_model *m);

/* Whose table the group uses, and the table. */
uint32_t v4_model_owner(const v4_model *m, uint32_t group);
ref_table *v4_model_table(v4_model *m, uint32_t group);

/* The slot of an entry of `ratio` positions, -1 for none. */
uint32_t v4_model_written(v4_model *m, uint32_t group, uint32_t row);
int64_t v4_model_slot(v4_model *m, uint32_t group, uint32_t row, uint32_t entry,
		      uint32_t ratio);

/* Expects a report of the next step. */
void v4_model_report(v4_model *m, uint32_t row, uint32_t fault);

/* A column of an engine's table, there and in the model. */
void v4_model_engine(v4_model *m, uint32_t group, uint32_t row, uint32_t col,
		     int32_t page);

/* What the device does with a record, with STEP_DEVICE, or with lengths that
 * move by by[b]. */
void v4_model_record(v4_model *m, const v4_draft *d, const spmla_shape *shape);
void v4_model_device(v4_model *m, const v4_draft *d, const spmla_shape *shape);
void v4_model_advance(v4_model *m, const int32_t *by, const spmla_shape *shape);
void v4_model_empty(v4_model *m, uint32_t fault);

/* A bucket of the plan's, or prefill's shape. */
spmla_shape v4_shape(const spmla_plan *plan, uint32_t bucket);

/* Compares every STEP buffer of a prologue, every table of SpMLA's own and the
 * sticky status, then clears that. */
void v4_model_check(v4_model *m, fixture *f, const spmla_shape *shape);

/* ---- Steps ------------------------------------------------------------- */

/* Writes the draft's record and runs it with a bucket; or copies its requests
 * to STEP_DEVICE; the model follows and is compared. */
void v4_step_ring(v4_model *m, fixture *f, v4_draft *d, uint32_t bucket);
void v4_step_device(v4_model *m, fixture *f, v4_draft *d, uint32_t bucket);
void v4_step_advance(v4_model *m, fixture *f, const int32_t *by,
		     uint32_t bucket);

#endif
