/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompts of V4 on both roads to their attention: gathered, chunk by chunk,
 * into a workspace of bf16 keys (kv_gather, combine_index, sparse_prefill), and
 * over the paged caches (index_map or c128a_index, sparse_decode); and what
 * both are checked against, dense attention in double.
 *
 * The one idea: every key, query and score follows from its request and
 * position, so that the reference needs no table, and the same token may run in
 * any step and chunk. A key that was not written is NaN, in the caches and in
 * the workspace.
 */
#ifndef TESTS_OPS_ATTEND_ROAD_RIG_H
#define TESTS_OPS_ATTEND_ROAD_RIG_H

#include "tests/harness/fixture.h"
#include "tests/reference/reference.h"

#include "spmla/ops/ops.h"
#include "spmla/prefill_plan.h"

enum {
	ROAD_DIM = 512,
	ROAD_HEADS = 3,
	ROAD_REQUESTS = 6,
	ROAD_ROWS = 8, /* of the tables */
	ROAD_TOKENS = 40,
	ROAD_COLUMNS = 16, /* at most */
	ROAD_STRIDE = ROAD_COLUMNS + 3,
	ROAD_SCORES = 112, /* most compressed keys that are chosen from */
	ROAD_WIDTH = 128   /* of a token's keys, both kinds */
};

typedef struct road_shape {
	uint32_t ratio;        /* 1, 4 or 128 */
	uint32_t window;       /* tokens */
	uint32_t topk;         /* of compressed keys; 0 with ratio 1 */
	uint32_t ring_columns; /* of the window's table; 0: positions' own */
} road_shape;

typedef struct road_request {
	uint32_t id;  /* < ROAD_ROWS: what its keys and queries follow from */
	uint32_t seq; /* tokens, the queries too */
	uint32_t tokens; /* query tokens */
	uint32_t replay; /* no key of the window before it */
} road_request;

/* A kind of key: its cache and its table. */
typedef struct road_cache {
	spmla_cache cache;
	uint32_t columns;
	uint32_t ring;
	int32_t table[ROAD_ROWS * ROAD_STRIDE];
	int32_t cols[ROAD_ROWS];
} road_cache;

/* Results of a step, in the order of its tokens. */
typedef struct road_result {
	uint16_t *out; /* [ROAD_TOKENS][ROAD_HEADS][ROAD_DIM] */
	float *lse;    /* [ROAD_TOKENS][ROAD_HEADS] */
	uint32_t chunks;
	uint32_t shared; /* chunks of several requests with tokens */
} road_result;

typedef struct road_rig {
	fixture f;
	road_shape shape;
	road_cache window;
	road_cache compressed;
	float sink[ROAD_HEADS];
	/* The step. */
	const road_request *request;
	uint32_t requests;
	uint32_t tokens;
	int32_t start_loc[ROAD_REQUESTS + 1];
	int32_t seq_lens[ROAD_REQUESTS];
	int32_t req_row[ROAD_REQUESTS];
	int32_t replay_starts[ROAD_ROWS];
	int32_t gather_lens[ROAD_REQUESTS];
	int32_t req_id[ROAD_TOKENS];
	int32_t token_row[ROAD_TOKENS];
	int32_t positions[ROAD_TOKENS];
	int32_t context_lens[ROAD_TOKENS];
	int32_t compressed_lens[ROAD_TOKENS];
	int64_t slot_mapping[ROAD_TOKENS];
	int32_t window_slots[ROAD_TOKENS * ROAD_WIDTH];
	int32_t window_lens[ROAD_TOKENS];
	int32_t chosen[ROAD_TOKENS * ROAD_WIDTH]; /* of the request */
	uint16_t *q;                              /* as road_result.out */
	/* What the reference works with. */
	ref_work work;
	double *rows;
} road_rig;

void road_open(road_rig *r, const road_shape *shape);
void road_close(road_rig *r);

/* A step of these requests, which stay the caller's: writes the keys that they
 * have by then, as far as a window or a compressed key may still be seen, and
 * has the library make positions, slots, windows and selections. */
void road_step(road_rig *r, const road_request *request, uint32_t requests);

/* Both roads, over poisoned results; nothing is reported. The gathered one has
 * a workspace of so many rows. */
void road_gathered(road_rig *r, uint32_t workspace_rows, road_result *to);
void road_paged(road_rig *r, road_result *to);
void road_free(road_result *result);

/* Every token's out and lse are as far from the reference's as the operation of
 * that road says, or nearer. */
void road_check_gathered(road_rig *r, const road_result *got);
void road_check_paged(road_rig *r, const road_result *got);

/* `count` tokens have the same bits, from those tokens on. */
void road_expect_same(const road_result *a, uint32_t first_a,
		      const road_result *b, uint32_t first_b, uint32_t count);

/* ---- What follows from request and position ------------------------------ */

/* Key n of a request, of the window at position n, or compressed: the bytes of
 * a V4_FP8 row. */
void road_key(uint32_t id, uint32_t is_compressed, uint32_t n, uint8_t *values,
	      uint8_t *scales);
/* bf16 [ROAD_HEADS][ROAD_DIM]. */
void road_query(uint32_t id, uint32_t position, uint16_t *q);
/* n index scores, some of them the same. */
void road_scores(uint32_t id, uint32_t position, float *scores, uint32_t n);

#endif
