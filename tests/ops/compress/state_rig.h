/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of compress_state_save stand on: requests with some tokens
 * each, random states with NaN between their rows, and the state that there
 * should be: each token written in its order, the later over the earlier. A
 * test changes args and data, then calls state_rig_check.
 */
#ifndef TESTS_OPS_COMPRESS_STATE_RIG_H
#define TESTS_OPS_COMPRESS_STATE_RIG_H

#include "spmla/ops/compress_state_save.h"
#include "tests/harness/fixture.h"

enum { STATE_RIG_ROWS = 5, STATE_RIG_TABLE = 7 }; /* columns and stride */

typedef struct state_rig {
	fixture f;
	spmla_compress_state_save_args a;
	uint32_t width;
	float *kv; /* [tokens], width + 8 apart */
	float *score;
	float *ape; /* [ratio][width] */
	int32_t *positions;
	int64_t *slots; /* distinct, one in 8 of them -1 */
	int32_t *lens;
	int32_t *row;
	int32_t table[STATE_RIG_ROWS * STATE_RIG_TABLE];
	int32_t cols[STATE_RIG_ROWS];
	uint8_t *state; /* pages * stride, and a red zone behind */
	uint8_t *want;
	uint64_t state_bytes;
} state_rig;

/* PAGED, tokens at random slots and positions; pages are `pad` bytes longer
 * than they need. */
void state_rig_open(state_rig *r, uint32_t layout, uint32_t tokens,
		    uint32_t page_tokens, uint32_t pages, uint32_t pad);
void state_rig_close(state_rig *r);

/* RING of `columns` pages a row; the pages of rows are all different. */
void state_rig_ring(state_rig *r, uint32_t columns);

/* The next `query` tokens, from token `t` on, belong to `row`, from position
 * `first` on. Returns t + query. */
uint32_t state_rig_request(state_rig *r, uint32_t t, uint32_t query,
			   int32_t row, int32_t first);

/* Tokens from t on are padding. */
void state_rig_pad(state_rig *r, uint32_t t);

/* Where the state of a slot is, in r->state. */
const float *state_rig_at(const state_rig *r, int64_t slot);

/* Fills the state with 0xAB, then the op, which must give OK. */
void state_rig_run(state_rig *r);

/* Runs; the state equals the model in every byte, except that NaN equals NaN.
 */
void state_rig_check(state_rig *r);

#endif
