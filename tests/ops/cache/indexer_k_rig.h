/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of indexer_k_insert stand on: a context, random inputs, and
 * the outputs that there should be. The model does every f32 operation in
 * double and rounds it, in the order that the contract pins, so it must give
 * the same bits.
 */
#ifndef TESTS_OPS_CACHE_INDEXER_K_RIG_H
#define TESTS_OPS_CACHE_INDEXER_K_RIG_H

#include "spmla/ops/indexer_k_insert.h"
#include "tests/harness/fixture.h"

/* LayerNorm of x[128] up to the product with the weights: f32 values. */
void k_model_scaled(double *x, const float *weight, float eps);

/* And with the bias, rounded to bf16. */
void k_model_norm(double *x, const float *weight, const float *bias, float eps);

/* Forms of k_rig_form, behind the scale modes of e4m3fn: MXFP4, then the scale
 * modes of FNUZ, which are so many more than those. */
enum {
	K_RIG_MXFP4 = SPMLA_SCALE_RAW + 1,
	K_RIG_FNUZ = K_RIG_MXFP4 + 1 - SPMLA_SCALE_POW2,
	K_RIG_LAST = K_RIG_FNUZ + SPMLA_SCALE_RAW
};

typedef struct k_rig {
	fixture f;
	spmla_indexer_k_insert_args a;
	uint8_t *pool; /* pages * stride, and a red zone behind */
	uint8_t *want;
	uint64_t pool_bytes; /* red zone included */
	uint16_t *k;         /* [tokens] 136 apart, NaN in between */
	int64_t *slots;      /* distinct, one in 8 of them -1 */
	int32_t *positions;
	float *cos_sin;
	float weight[128];
	float bias[128];
} k_rig;

/* POW2, BF16, no norm, no rope; pages are `pad` bytes longer than they need. */
void k_rig_open(k_rig *r, uint32_t tokens, uint32_t entries, uint32_t pages,
		uint64_t pad);
void k_rig_close(k_rig *r);
/* POW2, RAW, K_RIG_MXFP4, which leaves larger gaps between pages, or FNUZ. */
void k_rig_form(k_rig *r, uint32_t form);
void k_rig_norm(k_rig *r); /* random weight and bias, eps 1e-6 */
void k_rig_rope(k_rig *r, uint32_t style);

/* Fills the pool with 0xAB and runs the op, which must give OK. */
void k_rig_run(k_rig *r);

/* Runs; the pool equals the model in every byte. */
void k_rig_check(k_rig *r);

/* The stored scale of a slot. */
float k_rig_scale(const k_rig *r, int64_t slot);

#endif
