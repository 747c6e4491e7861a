/* SPDX-License-Identifier: Apache-2.0
 *
 * One V3.2 layer with all its tensors, random, and steps that use it. The
 * caches are the rig's, or the plan's if it has pools.
 */
#ifndef TESTS_HARNESS_V32_RIG_H
#define TESTS_HARNESS_V32_RIG_H

#include "tests/harness/fixture.h"

#include "spmla/v32.h"

typedef struct v32_rig {
	spmla_v32_layer layer;
	uint32_t tokens; /* rows of every tensor: the plan's most */
	uint32_t heads;
	uint32_t index_heads;
	uint64_t out_bytes;
	uint64_t lse_bytes;
	uint64_t kv_bytes; /* layout of the rig's caches; 0: the plan's */
	uint64_t index_bytes;
	uint16_t *kv_c;
	uint16_t *k_pe;
	uint16_t *index_k;
	uint16_t *index_q;
	uint16_t *q;
	float *norm_weight;
	float *norm_bias;
	float *cos_sin;
	float *index_weights;
	float *attn_sink; /* made, but not in the layer */
	uint16_t *out;
	float *lse;
	uint32_t bucket; /* of v32_rig_capture; 0 */
	uint32_t query;  /* tokens of each request in a step; 1 */
	int32_t *table;  /* DEVICE groups: the engine's, bound */
	uint32_t table_stride;
	spmla_graph graph;
	uint64_t seed; /* of the inputs of steps */
	uint64_t hash;
} v32_rig;

/* `cache_layer` is used if the plan has caches. Every pointer of the layer is
 * set except attn_sink, topk_indices and topk_lens; strides are dense. Outputs
 * and own caches are filled with 0xAB. Binds a table if the plan needs one. */
void v32_rig_open(v32_rig *r, spmla_ctx *ctx, uint32_t cache_layer,
		  uint64_t seed);
void v32_rig_close(v32_rig *r);

/* New values in every input of a step. */
void v32_rig_draw(v32_rig *r, uint64_t *seed);

/* Captures prologue and layer for the rig's bucket. */
void v32_rig_capture(v32_rig *r, spmla_ctx *ctx);

/* Writes step n, from 0: row 0 joins first and grows by `query` tokens a step,
 * row 1 joins in the third step. Their pages are 2, 4, .. and 3, 5, .. */
void v32_rig_write(const v32_rig *r, spmla_ctx *ctx, uint32_t n,
		   uint64_t *ticket);

/* Runs step n: new inputs, a record, a replay. Fails the test on any error or
 * report, and allocates nothing. Continues r->hash over the outputs. */
void v32_rig_step(v32_rig *r, spmla_ctx *ctx, uint32_t n);

/* The capture and that many steps; returns the hash. */
uint64_t v32_rig_decode(v32_rig *r, spmla_ctx *ctx, uint32_t steps);

/* Fails the test with the context's diag if s is not OK. */
void v32_must(const spmla_ctx *ctx, spmla_status s);

/* FNV-1a over bytes, continuing `hash`. */
uint64_t test_hash(uint64_t hash, const void *bytes, uint64_t count);

#endif
