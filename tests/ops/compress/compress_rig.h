/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of kv_compress stand on: what a few rows of a batch gave at
 * each of their positions, and the state that holds it, paged or as a ring.
 * Each key is computed in double, with a bound for an evaluation in f32; what
 * was stored is checked against both, code by code.
 */
#ifndef TESTS_OPS_COMPRESS_COMPRESS_RIG_H
#define TESTS_OPS_COMPRESS_COMPRESS_RIG_H

#include "spmla/ops/compress_state_save.h"
#include "spmla/ops/kv_compress.h"
#include "tests/harness/fixture.h"

enum { COMPRESS_RIG_ROWS = 3, COMPRESS_RIG_GAP = 8 };

typedef struct compress_rig {
	fixture f;
	spmla_kv_compress_args a;
	uint32_t dim, width, group; /* group: rows of a key */
	uint32_t history;           /* positions of a row */
	uint32_t most;              /* tokens that arrays have room for */
	/* [COMPRESS_RIG_ROWS][history][width] */
	float *kv;
	float *score;
	float *ape;
	float *norm;    /* [dim] */
	float *cos_sin; /* [history][64]; of position 0 no rotation */
	/* The call's tokens, and what they gave, width + GAP apart. */
	int32_t *positions;
	int32_t *row;
	int32_t *lens;
	int64_t *slots;
	float *call_kv;
	float *call_score;
	int32_t *table;
	int32_t cols[COMPRESS_RIG_ROWS];
	uint8_t *state;
	uint64_t state_bytes;
	uint8_t *cache; /* pages, and a red zone behind */
	uint8_t *seen;  /* bytes that were checked */
	uint64_t cache_bytes;
	uint32_t *split_keys; /* compress_rig_split has set it */
	uint32_t *split_counts;
} compress_rig;

/* Ratio 4 or 128, as the layout of the state says; `groups` groups a row, a
 * cache of pages of `entries` keys that are `pad` bytes longer than they need.
 * PAGED; no tokens. */
void compress_rig_open(compress_rig *r, uint32_t state_layout,
		       uint32_t cache_layout, uint32_t groups, uint32_t entries,
		       uint32_t pad);
void compress_rig_close(compress_rig *r);

/* RING of at least `tokens` tokens; its state is NaN. */
void compress_rig_ring(compress_rig *r, uint32_t tokens);

/* Several blocks make a key of ratio 128, from now on. */
void compress_rig_split(compress_rig *r);

/* The next `query` tokens of the call belong to `row`, from position `first`
 * on. */
void compress_rig_request(compress_rig *r, uint32_t row, uint32_t first,
			  uint32_t query);

/* Puts what a row gave at positions [first, end) into the state. */
void compress_rig_put(compress_rig *r, uint32_t row, uint32_t first,
		      uint32_t end);

/* compress_state_save of the call's tokens. */
void compress_rig_save(compress_rig *r);

/* The slot of the key that position `pos` of a row ends. */
int64_t compress_rig_slot(const compress_rig *r, uint32_t row, uint32_t pos);

/* The key that token t ends is as it should be; marks its bytes in r->seen. */
void compress_ref_check(compress_rig *r, uint32_t t);

/* Fills the cache with 0xAB. */
void compress_rig_reset(compress_rig *r);

/* The op, which must give OK, and leave what it counts by as it was. */
void compress_rig_run(compress_rig *r);

/* What blocks count by and hand on, if compress_rig_split was called. */
void compress_rig_expect_zeros(const compress_rig *r);

/* Resets and runs twice; every key that the call makes is as it should be, and
 * all else in the cache is as it was. */
void compress_rig_check(compress_rig *r);

#endif
