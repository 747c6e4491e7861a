/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes of the shapes that models have, and dense attention in double of all
 * their results. The hard idea: keys have scales that are powers of two, so no
 * kernel rounds a value, and what a result may be off by is the rounding of
 * weights alone. That is so little that a key of 2048 cannot be lost, nor
 * counted twice, without being seen.
 */
#ifndef TESTS_OPS_ATTEND_SHAPE_RIG_H
#define TESTS_OPS_ATTEND_SHAPE_RIG_H

#include "tests/harness/fixture.h"

#include "spmla/decode_parts.h"

typedef struct shape_rig {
	spmla_sparse_decode_args a;
	uint32_t dim;
	uint32_t keys[2]; /* of a token, in each list */
	uint32_t rows;    /* of the first cache; then of the second */
	uint32_t all;     /* of both, with one more at the end: the needle */
	int32_t *slots[2];
	uint16_t *q;
	uint16_t *out;
	float *lse;
	float *sink;
	uint32_t *few;    /* the workspace of few tokens */
	void *parts;      /* the workspace of parts */
	float *k;         /* [all][dim], what the rows mean */
	double *want;     /* [tokens][heads][512] */
	double *spread;   /* the same: root of the sum of (weight * v)^2 */
	double *want_lse; /* [tokens][heads] */
	uint64_t parts_bytes;
	uint64_t few_bytes;
	uint32_t needle[2]; /* its slot in each cache */
} shape_rig;

/* The ways to do a call. */
typedef enum shape_way {
	SHAPE_WHOLE,
	SHAPE_WORKSPACE,
	SHAPE_PARTS,
	SHAPE_WAYS
} shape_way;

/* Random queries, keys and slots for `tokens` tokens. A token has `first` keys
 * of V3.2's one cache, or `first` and `second` keys of V4's two. */
void shape_open(shape_rig *r, fixture *f, uint32_t layout, uint32_t heads,
		uint32_t first, uint32_t second, uint32_t tokens);
void shape_close(shape_rig *r);

/* The results of the first `tokens` tokens, on all processors. */
void shape_reference(shape_rig *r, uint32_t tokens);

/* Whether the device has a kernel for that way. A call with the workspace that has
 * none is done in parts. */
uint32_t shape_has(const shape_rig *r, const fixture *f, uint32_t tokens,
		   shape_way way);

/* Runs them on poison, with nothing to report. */
void shape_run(shape_rig *r, fixture *f, uint32_t tokens, shape_way way);

/* How many results of the last run are off; `text` says where the first is. */
uint64_t shape_wrong(const shape_rig *r, uint32_t tokens, char *text,
		     uint32_t capacity);

/* Fails the test if a result of the last run is off. */
void shape_check(const shape_rig *r, uint32_t tokens, shape_way way);

/* Entry `at` of token t, counted over both lists. */
int32_t *shape_entry(shape_rig *r, uint32_t t, uint32_t at);

/* The slot of the needle for that entry: a key that outweighs all others
 * together by far, for every query. */
int32_t shape_needle(const shape_rig *r, uint32_t at);

/* Whether token t has the results of the needle alone, once. */
uint32_t shape_is_needle(const shape_rig *r, uint32_t t);

#endif
