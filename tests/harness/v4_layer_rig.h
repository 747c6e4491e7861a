/* SPDX-License-Identifier: Apache-2.0
 *
 * One V4 layer with all its tensors, random, of any ratio, on the caches of a
 * plan; and a step whose tokens end groups.
 */
#ifndef TESTS_HARNESS_V4_LAYER_RIG_H
#define TESTS_HARNESS_V4_LAYER_RIG_H

#include "tests/harness/fixture.h"

#include "spmla/v4.h"

typedef struct v4_layer_rig {
	spmla_v4_layer layer; /* of ratio 4 */
	uint32_t tokens;      /* rows of every tensor: the plan's most */
	uint32_t heads;
	uint64_t q_bytes;
	uint64_t out_bytes;
	uint64_t z_bytes;
	void *tensors[24];
	uint32_t tensor_count;
	uint16_t *q_before; /* the original q; insert overwrites it */
} v4_layer_rig;

/* A small V4 with a pool of each kind: 4 heads, top-k 8, 8 rows, 512 tokens of
 * context, windows of 16, buckets {4,4,1} {8,4,2} {16,8,4}. */
void v4_layer_config(spmla_config *config);

/* Every pointer of the layer is set except topk_indices and topk_lens; strides
 * are dense. Outputs are filled with 0xAB, the pools with zeros. */
void v4_layer_open(v4_layer_rig *r, spmla_ctx *ctx, uint64_t seed);
void v4_layer_close(v4_layer_rig *r);

/* Random keys and states in the pools of all layers. */
void v4_layer_fill(spmla_ctx *ctx, uint64_t seed);

/* The layer with another ratio, and the caches for it. */
spmla_v4_layer v4_layer_of(const v4_layer_rig *r, spmla_ctx *ctx,
			   uint32_t ratio);

/* Restores the queries, and fills outputs and pools anew. */
void v4_layer_reset(v4_layer_rig *r, spmla_ctx *ctx);

/* A fixture of v4_layer_config with the deferred queue, its layer, and the
 * prologue of a step of `shape` in which row 0 has its 128th token. */
void v4_layer_begin(fixture *f, v4_layer_rig *r, const spmla_shape *shape);
void v4_layer_end(fixture *f, v4_layer_rig *r);

/* Writes a step: row 0 joins with `len` tokens, the last of them query tokens.
 */
void v4_layer_write(spmla_ctx *ctx, uint32_t query, uint32_t len);
void v4_layer_write_row(spmla_ctx *ctx, uint32_t row, uint32_t query,
			uint32_t len);

typedef spmla_status (*v4_layer_call)(spmla_ctx *, const spmla_v4_layer *,
				      const spmla_shape *, spmla_stream);

/* One call on a fixture with the deferred queue. NULL: it must succeed.
 * Otherwise it must be refused with those words after it enqueued `before`
 * operations, and fail an open capture. */
void v4_layer_expect(fixture *f, v4_layer_call call,
		     const spmla_v4_layer *layer, const spmla_shape *shape,
		     uint32_t before, const char *want);

/* A hash of queries, outputs and pools. */
uint64_t v4_layer_hash(const v4_layer_rig *r, const spmla_ctx *ctx);

#endif
