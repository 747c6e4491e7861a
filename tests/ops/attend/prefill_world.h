/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of sparse_prefill with all that it points to, and its check against
 * dense attention in double.
 */
#ifndef TESTS_OPS_ATTEND_PREFILL_WORLD_H
#define TESTS_OPS_ATTEND_PREFILL_WORLD_H

#include "tests/harness/fixture.h"
#include "tests/reference/reference.h"

#include "spmla/ops/sparse_prefill.h"

enum { PREFILL_TOKENS = 3, PREFILL_HEADS = 64, PREFILL_ROWS = 200 };

typedef struct prefill_world {
	spmla_sparse_prefill_args a;
	uint16_t *q;
	uint16_t *kv;
	int32_t *indices;
	int32_t lens[PREFILL_TOKENS];
	float sink[PREFILL_HEADS];
	uint16_t *out;
	float *lse;
	float *max_logits;
	uint32_t out_elems;
	uint32_t lse_elems;
	ref_work work;
	ref_kv_row *rows; /* the rows of a token that count, in order */
	uint64_t rng;
} prefill_world;

/* Three tokens of random queries over PREFILL_ROWS rows; every stride is wider
 * than it has to be, lse is [heads][tokens]. Every byte of kv is 0xFF, a NaN.
 * No row is chosen: all indices are -1. No lens, no sink. */
void prefill_open(prefill_world *w, uint32_t dim, uint32_t heads,
		  uint32_t topk);
void prefill_close(prefill_world *w);

/* A token's indices, and a row of kv. */
int32_t *prefill_indices(const prefill_world *w, uint32_t token);
uint16_t *prefill_row(const prefill_world *w, int32_t row);

/* Writes a row whose values are `value` in the first 512 and `rope` in the
 * rest. */
void prefill_put(const prefill_world *w, int32_t row, float value, float rope);
void prefill_put_random(prefill_world *w, int32_t row);

/* Gives every token random rows, written by prefill_put_random; of seven
 * entries one stays -1 and one is some other index that does not count. */
void prefill_choose(prefill_world *w);

/* The same, but every entry counts. */
void prefill_choose_keys(prefill_world *w);

/* Queries of zeros: every score is 0, so every key weighs the same. */
void prefill_zero_q(const prefill_world *w);

/* Runs the op, once. */
void prefill_run(fixture *f, const prefill_world *w);

/* Runs and returns the bytes of all results (to be freed). They equal `kept`,
 * if that is given. */
uint8_t *prefill_results(fixture *f, const prefill_world *w,
			 const uint8_t *kept);

/* Runs the op over poison. Every result is as the reference has it, nothing
 * else is written, nothing is reported. */
void prefill_check(fixture *f, prefill_world *w);

/* One head's results of the last run. */
const uint16_t *prefill_out(const prefill_world *w, uint32_t token,
			    uint32_t head);
float prefill_lse(const prefill_world *w, uint32_t token, uint32_t head);
float prefill_max(const prefill_world *w, uint32_t token, uint32_t head);

/* Wants this in all values of a head's out. */
void prefill_all_out(const prefill_world *w, uint32_t token, uint32_t head,
		     float want);

#endif
