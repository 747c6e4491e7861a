/* SPDX-License-Identifier: Apache-2.0
 *
 * Golden cases: inputs and outputs of a real kernel, run through the library.
 * golden_case.c loads them, golden_compare.c judges, an adapter per op
 * (golden_index_map.c) hands a case's tensors to the library through
 * golden_access.c, and golden_runner.c walks folders and prints. A new op is an
 * adapter and its line in a table.
 */
#ifndef TESTS_GOLDEN_GOLDEN_H
#define TESTS_GOLDEN_GOLDEN_H

#include "spmla/ops/ops.h"
#include "spmla/spmla.h"
#include "tests/harness/json.h"

enum {
	GOLDEN_MAX_RANK = 6,
	GOLDEN_MAX_TENSORS = 48,
	GOLDEN_MAX_SCRATCH = 16,
	GOLDEN_SENTINEL = 0xAB
};

typedef enum golden_dtype {
	GOLDEN_I32 = 0,
	GOLDEN_I64 = 1,
	GOLDEN_F32 = 2,
	GOLDEN_BF16 = 3,
	GOLDEN_E4M3 = 4,
	GOLDEN_U8 = 5,
	GOLDEN_BOOL = 6
} golden_dtype;

typedef enum golden_role {
	GOLDEN_INPUT = 0,
	GOLDEN_OUTPUT = 1, /* starts as sentinel bytes */
	GOLDEN_INOUT = 2   /* starts as file_before */
} golden_role;

typedef enum golden_rule {
	GOLDEN_EXACT = 0,
	/* one code step of e4m3, on at most 1 + count / 1000 elements */
	GOLDEN_QUANTIZED = 1,
	GOLDEN_FLOAT = 2 /* |got - want| <= atol + rtol * |want| */
} golden_rule;

typedef enum golden_verdict {
	GOLDEN_RAN = 0,
	GOLDEN_FAILED = 1,
	GOLDEN_SKIPPED = 2
} golden_verdict;

/* What is done to an output of the operation, to see that the case fails. */
typedef enum golden_fault {
	GOLDEN_RIGHT = 0,
	GOLDEN_NOTHING = 1, /* it is as before the run */
	/* every element is off by one code, and one with a tolerance by two
	 * of these */
	GOLDEN_OFF = 2
} golden_fault;

typedef struct golden_case golden_case;

/* How far the elements of a tensor are from exact ones. */
typedef struct golden_error {
	double rms;
	double most;
} golden_error;

/* Element (i, j, ..) is element offset + i * strides[0] + .. of a storage of
 * `elems` elements; every element of the shape lies inside it. */
typedef struct golden_tensor {
	const char *name;
	golden_dtype dtype;
	golden_role role;
	golden_rule rule; /* of outputs */
	double rtol;
	double atol;
	uint32_t rank;
	uint32_t elem_bytes;
	int64_t shape[GOLDEN_MAX_RANK];
	int64_t strides[GOLDEN_MAX_RANK];
	int64_t offset;
	uint64_t elems;
	uint64_t count;  /* product of the shape */
	uint8_t *data;   /* storage: an input's, or what the library writes */
	uint8_t *before; /* storage of an inout before the run */
	uint8_t *want;   /* storage of outputs */
	uint8_t *first;  /* what the first run wrote */
	uint32_t read;   /* an adapter asked for it */
	/* golden_leave_out */
	uint32_t left_out;
	/* Set by an adapter, or NULL: [count] what the real kernel itself may
	 * be off beyond the rule, in element order, and why. */
	double *slack;
	const char *slack_why;
	uint64_t slack_used; /* elements that needed it */
	/* Set by an adapter, or NULL: [count] the exact results, in element
	 * order. The error of ours and of the real kernel is then found. */
	double *exact;
	golden_error ours;
	golden_error theirs;
	/* Set by an adapter, or 0: what our largest error, and our rms, may be
	 * of theirs. */
	double error_limit, rms_limit;
	/* Set by an adapter that compares by itself: elements that it let be
	 * other than the kernel's, and why. */
	uint64_t accepted;
	const char *accepted_why;
	/* Set by an adapter, or 0: the most that
	 * 1 - 2 sum(xy) / (sum(xx) + sum(yy)) may be over finite elements. */
	double diff_limit;
	/* Set by an adapter, or NULL: compares the storages instead of the
	 * rule, for bytes that are codes of several kinds. */
	golden_verdict (*judge)(golden_case *c, const struct golden_tensor *t);
} golden_tensor;

struct golden_case {
	const char *op;
	const char *name;
	json_doc doc;
	golden_tensor tensors[GOLDEN_MAX_TENSORS];
	uint32_t tensor_count;
	spmla_ctx *ctx;
	void *scratch[GOLDEN_MAX_SCRATCH];
	uint32_t scratch_count;
	golden_fault fault;
	golden_tensor *faulty;
	uint32_t fault_part;
	uint64_t faults;     /* elements that it changed */
	uint64_t fault_hash; /* of the output then: it is changed once */
	char reason[320];    /* of a FAIL or SKIPPED: the run's first */
};

/* Runs a case once: reads inputs, writes outputs. Called twice. */
typedef golden_verdict (*golden_run)(golden_case *c);

typedef struct golden_op {
	const char *name; /* NULL ends a table */
	golden_run run;
} golden_op;

extern const golden_op golden_v32_ops[];
extern const golden_op golden_prefill_ops[];
extern const golden_op golden_v4_front_ops[];
extern const golden_op golden_v4_attend_ops[];
extern const golden_op golden_v4_index_ops[];
extern const golden_op golden_compress_ops[];
extern const golden_op golden_inv_rope_ops[];
extern const golden_op golden_index_q_ops[];

/* golden_paged_logits.c */
golden_verdict golden_run_mqa_logits(golden_case *c);

/* golden_schedules.c; the second runs a tensor of the logits' cases. */
golden_verdict golden_run_tile_sched(golden_case *c);
golden_verdict golden_run_indexer_schedule(golden_case *c);

/* golden_decode.c */
golden_verdict golden_run_sparse_decode(golden_case *c);

/* golden_exact.c: attention in double of batch element b, into `exact` of out
 * and lse. Into their slack, how far the real kernel is from it, and one whose
 * weights and values are off by `rounding` of themselves may be. work: 577 for
 * each entry of a token's lists. */
void golden_decode_slack(const spmla_sparse_decode_args *a, golden_tensor *out,
			 golden_tensor *lse, int64_t b, double rounding,
			 double *work);
/* The same of the out of a prefill by tiles. work: 577 for each entry of a
 * token's list. */
void golden_prefill_slack(const spmla_sparse_prefill_args *a,
			  golden_tensor *out, double *work);

/* golden_gathered_logits.c */
golden_verdict golden_run_mqa_logits_gathered(golden_case *c);

/* golden_tensor_core.c: how far sm_90 is from the exact score of one key, and,
 * if the case runs on one, how far the operation may be; e4m3 q [heads][128],
 * key [128]. */
double golden_score_slack(const golden_case *c, const uint8_t *q,
			  const float *weights, uint32_t heads,
			  const uint8_t *key, float scale);

/* ---- golden_case.c ----------------------------------------------------- */

/* Loads dir/manifest.json and its tensors. 0: c->reason says why not. Either
 * way golden_case_free is due. */
int golden_case_load(golden_case *c, const char *dir);
void golden_case_free(golden_case *c);

/* Sets outputs and inouts to what they are before a run, and frees the last
 * one's scratch. */
void golden_case_reset(golden_case *c);

/* RAN if an adapter asked for every input of the case. */
golden_verdict golden_case_read(golden_case *c);

/* Keeps what the outputs are now as `first`. 0 without memory. */
int golden_case_keep(golden_case *c);

/* ---- For adapters (golden_access.c) -------------------------------------- */

/* NULL if there is none of that name. */
golden_tensor *golden_find(golden_case *c, const char *name);

/* The case may have this tensor, which the run does without: an output is not
 * compared, an input not handed on. PASS says so. */
void golden_leave_out(golden_case *c, const char *name);

/* The tensor of that name, type and rank, or NULL with c->reason set. */
golden_tensor *golden_need(golden_case *c, const char *name, golden_dtype dtype,
			   uint32_t rank);

/* 1 if t has that shape (negative: any size) and its last dimension has no
 * gaps; else 0 with c->reason set. t may be NULL: 0. */
int golden_has(golden_case *c, const golden_tensor *t, const int64_t *shape);

/* A paged cache [pages][entries][1][entry_bytes], as the library names it; 0
 * with c->reason set. */
int golden_cache(golden_case *c, const char *name, spmla_layout layout,
		 spmla_cache *cache);

/* The address of the first element. */
void *golden_first(const golden_tensor *t);

/* 1 if the elements lie one after another. */
int golden_dense(const golden_tensor *t);

/* An element of an int32 tensor of rank 1 or 2 (j 0 for rank 1). */
int32_t golden_i32(const golden_tensor *t, int64_t i, int64_t j);

/* A tensor of at least n positions, int32 or int64, and its spmla_int_dtype;
 * NULL with c->reason set. */
const void *golden_positions(golden_case *c, const char *name, int64_t n,
			     uint32_t *dtype);

/* A tensor of floats as it is. */
typedef struct golden_floats {
	const void *first;
	int64_t stride; /* from row to row */
	int64_t shape[GOLDEN_MAX_RANK];
	uint32_t dtype; /* spmla_real_dtype */
} golden_floats;

/* A tensor of f32 or bf16, of that rank and shape (negative: any size); 0 with
 * c->reason set. */
int golden_take_floats(golden_case *c, const char *name, uint32_t rank,
		       const int64_t *shape, golden_floats *out);

/* Makes it f32, dense, for an operation that takes nothing else. */
int golden_widen(golden_case *c, const char *name, golden_floats *out);

/* The same of a table [any][width] of rotations: dense rows. */
int golden_take_table(golden_case *c, const char *name, int64_t width,
		      golden_floats *out);

/* A number of the manifest's params. 0: there is none. The second then sets
 * c->reason. */
int golden_param(const golden_case *c, const char *name, double *value);
int golden_need_param(golden_case *c, const char *name, double *value);

/* Slots from page to page, where the case says so; else 0, as operations mean
 * pages without gaps. */
uint32_t golden_page_stride(const golden_case *c);

/* Zeroed memory that lasts until the next run; NULL with c->reason set. */
void *golden_scratch(golden_case *c, uint64_t bytes);

/* The verdict of a call: RAN, or FAILED with the context's diag as reason.
 * Every adapter asks for it right behind the call, before it looks at an
 * output: this is where a fault is made. */
golden_verdict golden_called(golden_case *c, spmla_status status);

/* The first reason of a run stays. */
golden_verdict golden_fail(golden_case *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
golden_verdict golden_skip(golden_case *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- golden_compare.c -------------------------------------------------- */

/* RAN, or FAILED with the first mismatch as reason. */
golden_verdict golden_compare(golden_case *c);

/* RAN if the outputs hold the very bytes that golden_case_keep kept. */
golden_verdict golden_compare_runs(golden_case *c);

/* The value of an element, of any type, as double (int64 must not lie). */
double golden_value(golden_dtype dtype, const uint8_t *element);

/* The element's place in the storage; index[] in the order of the shape. Then
 * the next one's. */
uint64_t golden_place(const golden_tensor *t, const int64_t *index);
void golden_step(const golden_tensor *t, int64_t *index);

/* ---- golden_faults.c ----------------------------------------------------- */

/* Makes the case's fault, if it has one. */
void golden_make_fault(golden_case *c);

/* Runs a case that passed once more with each fault of each output. RAN if it
 * failed every time; *made counts. */
golden_verdict golden_prove(golden_case *c, golden_run run, uint32_t *made);

#endif
