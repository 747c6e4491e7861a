/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of sparse_decode over V4 rows with a second cache, whole or in splits
 * that split_combine puts together, and its check against dense attention in
 * double over the dequantised rows.
 */
#ifndef TESTS_OPS_ATTEND_V4_DECODE_WORLD_H
#define TESTS_OPS_ATTEND_V4_DECODE_WORLD_H

#include "tests/harness/fixture.h"
#include "tests/reference/reference.h"

#include "spmla/ops/ops.h"

enum {
	V4_TOKENS = 3,
	V4_MOST_TOKENS = 5,
	V4_HEADS = 16,
	V4_MOST_HEADS = 128,
	V4_SLOTS = 200,
	V4_PARTS = 64,
	V4_SPLIT_ROWS = V4_TOKENS + V4_PARTS
};

typedef struct v4_world {
	spmla_sparse_decode_args a;
	spmla_split_combine_args combine;
	uint16_t *q;
	int32_t *slots;
	int32_t *extra_slots;
	int32_t lens[V4_MOST_TOKENS];
	int32_t extra_lens[V4_MOST_TOKENS];
	float sink[V4_MOST_HEADS];
	uint16_t *out;
	float *lse;
	uint32_t out_elems;
	uint32_t lse_elems;
	int32_t parts[V4_PARTS * 8];
	int32_t num_splits[V4_MOST_TOKENS + 1];
	float *split_out; /* [V4_SPLIT_ROWS][heads][512] */
	float *split_lse;
	ref_work work;
	ref_kv_row *rows; /* the dequantised rows of a token, in order */
	uint64_t rng;
} v4_world;

/* Three tokens of random queries; every stride is wider than it has to be, lse
 * is [heads][tokens], pages are padded to a multiple of 576 and every byte of
 * the caches is 0xFF, a NaN in each format. No slot is chosen: all are -1. No
 * lens, no sink, no parts. extra_topk 0: no second cache. */
void v4_open(v4_world *w, uint32_t heads, uint32_t entries, uint32_t topk,
	     uint32_t extra_entries, uint32_t extra_topk);
/* The same for up to V4_MOST_TOKENS; with more than V4_TOKENS no parts. */
void v4_open_tokens(v4_world *w, uint32_t tokens, uint32_t heads,
		    uint32_t entries, uint32_t topk, uint32_t extra_entries,
		    uint32_t extra_topk);
void v4_close(v4_world *w);

/* Makes the stride of out odd: kernels of Hopper's own, which round
 * differently, do not take such a call. */
void v4_make_odd(v4_world *w);

/* A token's slots in one of the two lists. */
int32_t *v4_slots(const v4_world *w, uint32_t token);
int32_t *v4_extra(const v4_world *w, uint32_t token);

/* The bytes of a row: 448 codes and 64 bf16; its 8 scale bytes. */
uint8_t *v4_row(const spmla_cache *c, int32_t slot);
uint8_t *v4_scales(const spmla_cache *c, int32_t slot);

/* Writes a row whose K is `value` in the nope part, an e4m3 number, and `rope`
 * behind it; all scales are 1. */
void v4_put(const spmla_cache *c, int32_t slot, float value, float rope);

/* Gives every token random slots in both lists, and the rows random values up
 * to 1 with scales of 1/4 to 2; one entry in seven stays -1. */
void v4_choose(v4_world *w);

/* Runs the op, and with parts, unless that combines, split_combine, once. */
void v4_run(fixture *f, v4_world *w);

/* Runs the op over poison. Every result is as the reference has it, and nothing
 * else is written. */
void v4_check(fixture *f, v4_world *w);

/* Every result of the last run is as the reference has it. */
void v4_expect(v4_world *w);

/* Blocks of a token, as sparse_decode counts them. */
uint32_t v4_blocks(const v4_world *w, uint32_t token);

/* One head's results of the last run. */
const uint16_t *v4_out(const v4_world *w, uint32_t token, uint32_t head);
float v4_lse(const v4_world *w, uint32_t token, uint32_t head);

#endif
