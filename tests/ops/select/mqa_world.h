/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of mqa_logits with all that it points to, and its check against the
 * double reference: within 2^-18 of what is summed.
 */
#ifndef TESTS_OPS_SELECT_MQA_WORLD_H
#define TESTS_OPS_SELECT_MQA_WORLD_H

#include "tests/harness/fixture.h"

#include "spmla/ops/mqa_logits.h"

enum { MQA_HEADS = 128, MQA_TOKENS = 3, MQA_GAP = 5, MQA_LOGITS = 400 };

typedef struct mqa_world {
	spmla_mqa_logits_args a;
	uint8_t *q;
	int32_t *q_scales; /* of MXFP4 */
	float *weights;
	int32_t token_row[MQA_TOKENS];
	int32_t lens[MQA_TOKENS];
	int64_t starts[MQA_TOKENS];
	int32_t *table;
	uint8_t *pages;
	float *logits;
} mqa_world;

/* Tokens of rows 2, 0, 2 with contexts of 150, 149 and 1 keys, all random;
 * pages are padded, table rows are wider than their columns, and rows of logits
 * are MQA_GAP apart. heads <= MQA_HEADS. */
void mqa_open(mqa_world *w, uint32_t heads, uint32_t entries);
void mqa_close(mqa_world *w);

/* The same of INDEX_MXFP4. Values are between 2^-10 and 96. */
void mqa_open_mxfp4(mqa_world *w, uint32_t heads, uint32_t entries);

/* Queries and weights of a token and the codes of a key. One product is 2^16
 * and every other, and the sum of every other head, rounds to nothing beside
 * it: as much is lost as stands behind it in one chain of sums. */
void mqa_steep(uint8_t *q, float *weights, uint32_t heads, uint8_t *key);

/* The same of rows that lose most where sums are cut (fixture_cuts), 0, 1 or 2;
 * and the exact score, for a scale of 1. */
void mqa_adverse(uint8_t *q, float *weights, uint32_t heads, uint8_t *key,
		 uint32_t which);
double mqa_adverse_score(uint32_t heads, uint32_t which);

/* The codes of an entry of the cache, 128 or 64 bytes, and its f32 scale, or
 * its four of MXFP4. */
uint8_t *mqa_entry(const spmla_cache *c, uint32_t page, uint32_t i);
void mqa_put_scale(const spmla_cache *c, uint32_t page, uint32_t i,
		   float scale);
uint8_t *mqa_scales(const spmla_cache *c, uint32_t page, uint32_t i);

/* The first page of row 2, the row of tokens 0 and 2. */
uint32_t mqa_first_page(const mqa_world *w);

/* Runs the op over poison. Every score is as the reference has it (keys without
 * a page are -inf, bad rows are untouched), and nothing else is written. */
void mqa_check(fixture *f, const mqa_world *w);

/* The sticky status names this fault and row; clears it. */
void mqa_expect_status(fixture *f, spmla_fault fault, uint32_t row);

#endif
