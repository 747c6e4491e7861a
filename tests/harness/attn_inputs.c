/* SPDX-License-Identifier: Apache-2.0
 *
 * See attn_rig.h: the engine's tensors.
 */
#include "tests/harness/attn_rig.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NOISE = 1 << 16, MAX_INDEX_HEADS = 64 };

static uint32_t
q_elems(const attn_inputs *in)
{
	return in->size.heads * SPMLA_MLA_DIM;
}

static uint32_t
index_q_elems(const attn_inputs *in)
{
	return in->size.index_heads * SPMLA_INDEX_DIM;
}

static void *
room(uint64_t elems, uint64_t elem_bytes)
{
	return test_alloc(elems * elem_bytes, 0xAB);
}

void
attn_inputs_open(attn_inputs *in)
{
	static const attn_size size = {ATTN_HEADS, ATTN_INDEX_HEADS, ATTN_TOPK};

	attn_inputs_open_size(in, &size);
}

void
attn_inputs_open_size(attn_inputs *in, const attn_size *size)
{
	uint64_t rng = test_seed() ^ 0x5eed;
	uint32_t i, l;

	ck_assert_uint_le(size->index_heads, MAX_INDEX_HEADS);
	in->size = *size;
	ck_assert_uint_lt(q_elems(in), NOISE);
	in->noise = room(NOISE, sizeof *in->noise);
	in->cos_sin = room(RIG_CONTEXT * SPMLA_INDEX_ROPE, sizeof(float));
	in->norm_weight = room(SPMLA_INDEX_DIM, sizeof(float));
	in->norm_bias = room(SPMLA_INDEX_DIM, sizeof(float));
	in->sink = room(in->size.heads, sizeof(float));
	for (i = 0; i < NOISE; i++)
		in->noise[i] = test_bf16(rng_float(&rng));
	for (i = 0; i < RIG_CONTEXT * 32; i++) {
		const double angle = i / 32 * pow(1e4, (i % 32) / -32.0);
		float *row = in->cos_sin + i / 32 * 64;

		row[i % 32] = (float)cos(angle);
		row[32 + i % 32] = (float)sin(angle);
	}
	for (i = 0; i < SPMLA_INDEX_DIM; i++) {
		in->norm_weight[i] = 1.0f + 0.25f * rng_float(&rng);
		in->norm_bias[i] = 0.25f * rng_float(&rng);
	}
	for (i = 0; i < in->size.heads; i++)
		in->sink[i] = rng_float(&rng);
	for (l = 0; l < ATTN_LAYERS; l++) {
		attn_tensors *t = &in->layer[l];

		t->kv_c = room(RIG_TOKENS * SPMLA_MLA_LATENT, 2);
		t->k_pe = room(RIG_TOKENS * SPMLA_MLA_ROPE, 2);
		t->index_k = room(RIG_TOKENS * SPMLA_INDEX_DIM, 2);
		t->index_q = room(RIG_TOKENS * index_q_elems(in), 2);
		t->q = room(RIG_TOKENS * q_elems(in), 2);
		t->weights = room(RIG_TOKENS * in->size.index_heads, 4);
	}
}

void
attn_inputs_close(attn_inputs *in)
{
	uint32_t l;

	for (l = 0; l < ATTN_LAYERS; l++) {
		free(in->layer[l].kv_c);
		free(in->layer[l].k_pe);
		free(in->layer[l].index_k);
		free(in->layer[l].index_q);
		free(in->layer[l].q);
		free(in->layer[l].weights);
	}
	free(in->noise);
	free(in->cos_sin);
	free(in->norm_weight);
	free(in->norm_bias);
	free(in->sink);
}

/* A window of the noise that *state generates. */
static void
draw(const attn_inputs *in, uint64_t *state, uint16_t *values, uint32_t n)
{
	memcpy(values, in->noise + rng_below(state, NOISE - n),
	       n * sizeof *values);
}

void
attn_fill_token(attn_inputs *in, uint32_t token, uint64_t key)
{
	uint64_t state = key * UINT64_C(0x2545f4914f6cdd1d) + test_seed();
	uint16_t weights[MAX_INDEX_HEADS];
	uint32_t l, h;

	for (l = 0; l < ATTN_LAYERS; l++) {
		attn_tensors *t = &in->layer[l];

		draw(in, &state, t->kv_c + token * SPMLA_MLA_LATENT,
		     SPMLA_MLA_LATENT);
		draw(in, &state, t->k_pe + token * SPMLA_MLA_ROPE,
		     SPMLA_MLA_ROPE);
		draw(in, &state, t->index_k + token * SPMLA_INDEX_DIM,
		     SPMLA_INDEX_DIM);
		draw(in, &state, t->index_q + token * index_q_elems(in),
		     index_q_elems(in));
		draw(in, &state, t->q + token * q_elems(in), q_elems(in));
		draw(in, &state, weights, in->size.index_heads);
		for (h = 0; h < in->size.index_heads; h++)
			t->weights[token * in->size.index_heads + h] =
				test_bf16_value(weights[h]);
	}
}

void
attn_fill_step(attn_inputs *in, uint64_t step)
{
	uint32_t t;

	for (t = 0; t < RIG_TOKENS; t++)
		attn_fill_token(in, t, step * RIG_TOKENS + t);
}
