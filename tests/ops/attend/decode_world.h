/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of sparse_decode with all that it points to, and its check against
 * dense attention in double over the dequantised rows.
 */
#ifndef TESTS_OPS_ATTEND_DECODE_WORLD_H
#define TESTS_OPS_ATTEND_DECODE_WORLD_H

#include "tests/harness/fixture.h"
#include "tests/reference/reference.h"

#include "spmla/ops/sparse_decode.h"

enum {
	DECODE_TOKENS = 2,
	DECODE_MOST_TOKENS = 8,
	DECODE_HEADS = 64,
	DECODE_MOST_HEADS = 192
};

typedef struct decode_world {
	spmla_sparse_decode_args a;
	uint16_t *q;
	int32_t *slots;
	int32_t lens[DECODE_MOST_TOKENS];
	float sink[DECODE_MOST_HEADS];
	uint16_t *out;
	float *lse;
	uint8_t *pages;
	uint32_t out_elems;
	uint32_t lse_elems;
	ref_work work;
	ref_kv_row *rows; /* the dequantised rows of a token, in order */
	int rounded;      /* whether the device rounds them to bf16 */
	uint64_t rng;
} decode_world;

/* Two tokens of random queries; every stride is wider than it has to be, lse is
 * [heads][tokens], pages are padded and every byte of the cache is 0xFF, a NaN
 * in each format. No slot is chosen: all are -1. No lens, no sink. */
void decode_open(decode_world *w, uint32_t layout, uint32_t heads,
		 uint32_t entries, uint32_t topk);
/* The same for up to DECODE_MOST_TOKENS. */
void decode_open_tokens(decode_world *w, uint32_t layout, uint32_t tokens,
			uint32_t heads, uint32_t entries, uint32_t topk);
void decode_close(decode_world *w);

/* Makes the stride of out odd: kernels of Hopper's own, which round
 * differently, do not take such a call. */
void decode_make_odd(decode_world *w);

/* The slot's bytes. */
uint8_t *decode_row(const decode_world *w, int32_t slot);

/* Writes a row whose K is `value` in the latent and `rope` in the rope. The
 * value has to be an e4m3 one. */
void decode_put(decode_world *w, int32_t slot, float value, float rope);

/* Writes a row of random values up to 1, with scales that are no powers of
 * two. */
void decode_put_random(decode_world *w, int32_t slot);

/* Gives every token random slots, written by decode_put_random; one entry in
 * seven stays -1. */
void decode_choose(decode_world *w);

/* Runs the op, once. */
void decode_run(fixture *f, const decode_world *w);

/* Runs the op over poison. Every result is as the reference has it, and nothing
 * else is written. */
void decode_check(fixture *f, decode_world *w);

/* One head's results of the last run. */
const uint16_t *decode_out(const decode_world *w, uint32_t token,
			   uint32_t head);
float decode_lse(const decode_world *w, uint32_t token, uint32_t head);

/* The sticky status names this fault and row (NONE: is empty); clears it. */
void decode_expect_status(fixture *f, spmla_fault fault, uint32_t row);

#endif
