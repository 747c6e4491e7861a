/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands behind a step in fuzz_encode.c: a whole layer, and the checks of
 * what the step's buffers may hold, which is all that the ops rely on.
 */
#ifndef TESTS_FUZZ_ENCODE_STEP_H
#define TESTS_FUZZ_ENCODE_STEP_H

#include "spmla/v32.h"
#include "tests/fuzz/world.h"

enum { MAX_TOKENS = 8 };

/* ---- A layer ----------------------------------------------------------- */

static inline const spmla_v32_layer *
layer_of(const world *w)
{
	static uint16_t kv_c[MAX_TOKENS * 512], k_pe[MAX_TOKENS * 64],
		index_k[MAX_TOKENS * 128], index_q[MAX_TOKENS * 3 * 128],
		index_weights[MAX_TOKENS * 3], q[MAX_TOKENS * 2 * 576],
		out[MAX_TOKENS * 2 * 512];
	static float cos_sin[24 * 64], lse[MAX_TOKENS * 2];
	static spmla_v32_layer layer;

	memset(&layer, 0, sizeof layer);
	layer.struct_bytes = (uint32_t)sizeof layer;
	layer.rope_style = SPMLA_ROPE_NEOX;
	layer.cos_sin_rows = 24; /* fewer than there are positions */
	layer.cos_sin = cos_sin;
	layer.kv_c = kv_c;
	layer.kv_c_stride_elems = 512;
	layer.k_pe = k_pe;
	layer.k_pe_stride_elems = 64;
	layer.index_k = index_k;
	layer.index_k_stride_elems = 128;
	layer.index_q = index_q;
	layer.index_q_token_stride_elems = 3 * 128;
	layer.index_q_head_stride_elems = 128;
	layer.index_weights = index_weights;
	layer.index_weights_stride_elems = 3;
	layer.q = q;
	layer.q_token_stride_elems = 2 * 576;
	layer.q_head_stride_elems = 576;
	layer.out = out;
	layer.out_token_stride_elems = 2 * 512;
	layer.out_head_stride_elems = 512;
	layer.lse = lse;
	layer.lse_token_stride_elems = 2;
	layer.lse_head_stride_elems = 1;
	REQUIRE(spmla_cache_view(w->ctx, SPMLA_BUF_KV_CACHE, 0, &layer.kv) ==
		SPMLA_OK);
	REQUIRE(spmla_cache_view(w->ctx, SPMLA_BUF_INDEX_CACHE, 0,
				 &layer.index) == SPMLA_OK);
	return &layer;
}

/* ---- What the ops rely on ---------------------------------------------- */

static inline void
check_tokens(const world *w, const spmla_shape *shape)
{
	const int32_t *req = spmla_view(w->ctx, SPMLA_BUF_REQ_ID_PER_TOKEN, 0);
	const int32_t *row = spmla_view(w->ctx, SPMLA_BUF_TOKEN_ROW, NULL);
	const int32_t *pos = spmla_view(w->ctx, SPMLA_BUF_POSITIONS, NULL);
	const int32_t *len = spmla_view(w->ctx, SPMLA_BUF_CONTEXT_LENS, NULL);
	const int64_t *slot = spmla_view(w->ctx, SPMLA_BUF_SLOT_MAPPING, NULL);
	const int32_t *keys =
		spmla_view(w->ctx, SPMLA_BUF_COMPRESSED_LENS, NULL);
	const int64_t *at =
		spmla_view(w->ctx, SPMLA_BUF_LOGITS_ROW_STARTS, NULL);
	const spmla_config *c = &w->plan.config;
	const int64_t slots = (int64_t)c->groups[0].pool_pages *
			      (int64_t)c->groups[0].page_tokens;
	uint32_t t;

	for (t = 0; t < shape->tokens; t++) {
		REQUIRE(req[t] >= 0 && (uint32_t)req[t] < shape->requests);
		REQUIRE(row[t] >= 0 && (uint32_t)row[t] < c->max_rows);
		REQUIRE(pos[t] >= 0 &&
			(uint32_t)pos[t] < c->max_context_tokens);
		REQUIRE(len[t] == 0 || len[t] == pos[t] + 1);
		REQUIRE(slot[t] >= -1 && slot[t] < slots);
		REQUIRE(len[t] == 0 || slot[t] >= 0);
		REQUIRE(at[t] >= 0 && at[t] <= at[t + 1]);
		REQUIRE(at[t] + (keys ? keys[t] : len[t]) <= at[t + 1]);
	}
	REQUIRE((uint64_t)at[t] <= w->plan.logits_elems);
}

static inline void
check_step(const world *w, const spmla_shape *shape)
{
	const int32_t *start = spmla_view(w->ctx, SPMLA_BUF_QUERY_START_LOC, 0);
	const int32_t *len = spmla_view(w->ctx, SPMLA_BUF_SEQ_LENS, NULL);
	const int32_t *row = spmla_view(w->ctx, SPMLA_BUF_REQ_ROW, NULL);
	const spmla_config *c = &w->plan.config;
	uint32_t b;

	REQUIRE(start[0] == 0);
	for (b = 0; b < shape->requests; b++) {
		REQUIRE(start[b] <= start[b + 1]);
		REQUIRE(len[b] >= 0 &&
			(uint32_t)len[b] <= c->max_context_tokens);
		REQUIRE(len[b] == 0 || len[b] >= start[b + 1] - start[b]);
		REQUIRE(row[b] >= 0 && (uint32_t)row[b] < c->max_rows);
	}
	REQUIRE((uint32_t)start[b] <= shape->tokens);
	check_tokens(w, shape);
}

#endif
