/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole steps of V4 for tests of the protocol: the prologue and a layer of each
 * kind over the pools of a plan, one graph a bucket. The values of inputs
 * follow from the request and the position. So a token can be moved to another
 * place of a batch, and a key that is written again is the same.
 */
#ifndef TESTS_PROTOCOL_V4_REPLAY_RIG_H
#define TESTS_PROTOCOL_V4_REPLAY_RIG_H

#include "tests/harness/v4_layer_rig.h"
#include "tests/protocol/v4_step_rig.h"

enum { V4_LAYERS = 3, V4_BUCKETS = 3, V4_MOST_HEADS = 64 };

/* The emulator's multiprocessors. With either number the largest bucket is done
 * whole and the second in parts; the first is done in one launch (few.h), or in
 * parts too. */
enum { V4_SOME_SMS = 20, V4_MANY_SMS = 32 };

typedef struct v4_replay_rig {
	fixture f;
	v4_layer_rig rig[V4_LAYERS]; /* the tensors of each */
	spmla_v4_layer layer[V4_LAYERS];
	spmla_graph graph[V4_BUCKETS]; /* after v4_replay_capture */
} v4_replay_rig;

/* v4_layer_config with room for all rows' pages; on a device as wide as a
 * model's. Layers of ratio 1, 4 and 128; the second has a sink, -inf
 * for the lse of what is empty, and an output. */
void v4_replay_config(spmla_config *config, uint32_t index_layout);

/* Equal seeds give equal weights and pools. */
void v4_replay_open(v4_replay_rig *r, const spmla_config *config,
		    uint32_t native_flags, uint64_t seed);
void v4_replay_close(v4_replay_rig *r);

/* The values of a token, all layers. */
void v4_replay_fill(v4_replay_rig *r, uint32_t token, uint32_t request,
		    uint32_t position);

/* The prologue and the layers. */
spmla_status v4_replay_enqueue(v4_replay_rig *r, const spmla_shape *shape,
			       spmla_source source);
/* One graph a bucket. */
void v4_replay_capture(v4_replay_rig *r);

/* Adds a row with pages of its own in every group, that has all its tokens but
 * `query`. */
void v4_replay_join(const v4_replay_rig *r, v4_draft *d, uint32_t row,
		    uint32_t query, uint32_t len);

/* Writes the draft's record, and returns its ticket; info may be NULL. */
uint64_t v4_replay_write(v4_replay_rig *r, v4_draft *d, spmla_step_info *info);

/* Fills all outputs with 0xAB. */
void v4_replay_forget(v4_replay_rig *r);

/* All outputs, those beyond the step's too, the selection of its tokens and all
 * caches are equal, bit for bit. */
void v4_replay_expect_equal(const v4_replay_rig *a, const v4_replay_rig *b,
			    const spmla_shape *shape, uint64_t step);

/* The token has no keys: out and z 0, lse as asked, nothing selected. */
void v4_replay_expect_empty(const v4_replay_rig *r, uint32_t token);

/* A hash of all caches. */
uint64_t v4_replay_cache_hash(const v4_replay_rig *r);

#endif
