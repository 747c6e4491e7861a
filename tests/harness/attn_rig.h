/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole steps for tests of the protocol: two V3.2 layers over caches of their
 * own, one graph per bucket, and inputs generated from a key per token, so that
 * a token can be moved to another place of a batch.
 */
#ifndef TESTS_HARNESS_ATTN_RIG_H
#define TESTS_HARNESS_ATTN_RIG_H

#include "tests/harness/step_rig.h"

#include "spmla/v32.h"

enum {
	ATTN_LAYERS = 2,
	ATTN_HEADS = 4,       /* of fixture_config */
	ATTN_INDEX_HEADS = 4, /* of fixture_config */
	ATTN_TOPK = 8,        /* of fixture_config */
	ATTN_SLOTS = 1024     /* of a layer's cache */
};

/* The sizes of the enums above, unless a test wants larger ones. */
typedef struct attn_size {
	uint32_t heads;
	uint32_t index_heads;
	uint32_t topk;
} attn_size;

/* The engine's tensors of one layer, RIG_TOKENS rows each. */
typedef struct attn_tensors {
	uint16_t *kv_c;
	uint16_t *k_pe;
	uint16_t *index_k;
	uint16_t *index_q;
	uint16_t *q;
	float *weights;
} attn_tensors;

typedef struct attn_inputs {
	attn_size size;
	uint16_t *noise; /* where all values come from */
	float *cos_sin;  /* [RIG_CONTEXT][64] */
	float *norm_weight;
	float *norm_bias;
	float *sink; /* [heads], of the second layer */
	attn_tensors layer[ATTN_LAYERS];
} attn_inputs;

void attn_inputs_open(attn_inputs *in);
void attn_inputs_open_size(attn_inputs *in, const attn_size *size);
void attn_inputs_close(attn_inputs *in);

/* The values of one token, all layers. */
void attn_fill_token(attn_inputs *in, uint32_t token, uint64_t key);
/* Fills every token t of a step: key step * RIG_TOKENS + t. */
void attn_fill_step(attn_inputs *in, uint64_t step);

typedef struct attn_rig {
	fixture f;
	attn_size size;
	spmla_v32_layer layer[ATTN_LAYERS];
	uint16_t *out[ATTN_LAYERS]; /* [RIG_TOKENS][heads][512] */
	float *lse[ATTN_LAYERS];    /* [RIG_TOKENS][heads] */
	int32_t *topk[ATTN_LAYERS]; /* the second layer's: TOPK_INDICES */
	int32_t *topk_lens[ATTN_LAYERS];
	spmla_graph graph[3]; /* after attn_capture */
} attn_rig;

/* fixture_config with `slots` and room for the layers' caches. */
void attn_config(spmla_config *config, uint32_t slots);
void attn_config_size(spmla_config *config, uint32_t slots,
		      const attn_size *size);
/* Opens a rig of the size of `in`. Every slot of the caches then holds a key
 * generated from its number. */
void attn_open(attn_rig *r, const spmla_config *config, attn_inputs *in,
	       uint32_t native_flags);
void attn_close(attn_rig *r);

/* The key of slot s after attn_open. */
uint64_t attn_slot_key(uint32_t slot);

/* The prologue and both layers. */
spmla_status attn_enqueue(attn_rig *r, const spmla_shape *shape,
			  spmla_source source);
/* One graph a bucket. */
void attn_capture(attn_rig *r);

/* Fills all outputs with 0xAB. */
void attn_forget(attn_rig *r);
/* Outputs, lse, selections and STEP buffers are equal, bit for bit. */
void attn_expect_equal(attn_rig *a, attn_rig *b, const spmla_shape *shape,
		       uint64_t step);
/* Folds the same bytes into a hash. */
uint64_t attn_hash(attn_rig *r, const spmla_shape *shape, uint64_t hash);

/* Token t has no keys: out 0, lse as asked, nothing selected. */
void attn_expect_empty(const attn_rig *r, uint32_t token);

#endif
