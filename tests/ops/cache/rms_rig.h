/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of rms_norms stand on: a context, random rows with NaN between
 * and behind them, weights, outputs, and what they should hold, from a model in
 * double.
 */
#ifndef TESTS_OPS_CACHE_RMS_RIG_H
#define TESTS_OPS_CACHE_RMS_RIG_H

#include "spmla/ops/rms_norms.h"
#include "tests/harness/fixture.h"

enum {
	RMS_ROWS = 9,
	RMS_WIDTH = 4096 + 24, /* of a row with the gap behind it */
	RMS_ELEMS = RMS_ROWS * RMS_WIDTH
};

typedef struct rms_set {
	uint16_t *x;      /* [RMS_ELEMS] */
	uint16_t *weight; /* [RMS_WIDTH] */
	uint16_t *out;    /* [RMS_ELEMS] */
	uint16_t *want;   /* [RMS_ELEMS] */
} rms_set;

typedef struct rms_rig {
	fixture f;
	spmla_rms_norms_args a;
	rms_set q;
	rms_set kv;
	uint64_t rng;
} rms_rig;

/* eps 1e-6; no rows yet. */
void rms_open(rms_rig *r);
void rms_close(rms_rig *r);

/* So many rows of such widths, with gaps between most; filled. */
void rms_sizes(rms_rig *r, uint32_t q_rows, uint32_t q_width, uint32_t kv_rows,
	       uint32_t kv_width);

/* Rows of all magnitudes and, one in 8, of any bits. */
void rms_fill(rms_rig *r);

/* Fills the outputs with 0xAB and runs the op, which must give OK. */
void rms_run(rms_rig *r);

/* What there should be, into want. */
void rms_model(rms_rig *r);

/* Runs; outputs equal the model in every byte. */
void rms_check(rms_rig *r);

#endif
