/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of mqa_logits_gathered with all that it points to, and its check
 * against the double reference: within 2^-18 of what is summed.
 */
#ifndef TESTS_OPS_SELECT_GATHERED_WORLD_H
#define TESTS_OPS_SELECT_GATHERED_WORLD_H

#include "tests/harness/fixture.h"

#include "spmla/ops/mqa_logits_gathered.h"

enum {
	GATHERED_HEADS = 128,
	GATHERED_TOKENS = 4,
	GATHERED_KEYS = 90,
	GATHERED_STRIDE = 120
};

typedef struct gathered_world {
	spmla_mqa_logits_gathered_args a;
	uint8_t *q;
	float *weights;
	uint8_t *k;
	float *k_scales;
	int32_t starts[GATHERED_TOKENS];
	int32_t ends[GATHERED_TOKENS];
	float *logits; /* [GATHERED_TOKENS][GATHERED_STRIDE] */
} gathered_world;

/* Tokens that see keys [10, 74), [0, 90), none, and [89, 90), all random; rows
 * of weights are wider than they have to be, rows of logits have 100 columns
 * and are GATHERED_STRIDE apart. heads <= GATHERED_HEADS. */
void gathered_open(gathered_world *w, uint32_t heads, uint32_t form);
void gathered_close(gathered_world *w);

/* A token's row of logits. */
float *gathered_row(const gathered_world *w, uint32_t token);

/* Runs the op over poison. Every score is as the reference has it, -inf where
 * the form asks for it, and nothing else is written. A row of bad data is as a
 * row without keys. */
void gathered_check(fixture *f, const gathered_world *w);

#endif
