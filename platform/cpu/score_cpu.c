/* SPDX-License-Identifier: Apache-2.0
 *
 * See score_cpu.h. The hard idea: e4m3 is decoded once a token (queries, into
 * scratch) and once a key (128 floats), so that the loop over heads is nothing
 * but dot products in f32.
 */
#include "spmla/platform/cpu/score_cpu.h"

#include "spmla/platform/cpu/scalar_cpu.h"

spmla_i_cpu_score
spmla_i_cpu_score_open(const spmla_ctx *ctx, uint32_t worker, uint32_t heads,
		       const uint8_t *q, const float *weights)
{
	spmla_i_cpu_score s;

	s.kernels = spmla_i_cpu_kernels_of(ctx);
	s.heads = heads;
	s.padded = spmla_i_cpu_padded_heads(heads);
	s.q = spmla_i_cpu_index_scratch(ctx, worker);
	s.weights = s.q + (uint64_t)s.padded * SPMLA_INDEX_DIM;
	s.keys = s.weights + s.padded;
	s.kernels->score_open(&s, q, weights);
	return s;
}

void
spmla_i_cpu_score_keys(const spmla_i_cpu_score *s, const uint8_t *codes,
		       const uint8_t *scales, uint32_t n, float *out)
{
	s->kernels->score_keys(s, codes, scales, n, out);
}

void
spmla_i_cpu_scalar_score_open(const spmla_i_cpu_score *s, const uint8_t *q,
			      const float *weights)
{
	spmla_i_cpu_decode_e4m3(q, s->heads * SPMLA_INDEX_DIM, s->q);
	memcpy(s->weights, weights, s->heads * sizeof *weights);
}

/* The score of one key. Heads are summed as the terms of a dot product are, in
 * 16 lanes and their tree: of 128 heads, behind 11 roundings of the dot product
 * and one of the weight, 7 + 4 and that of the scale, 24 in all. */
static float
score_key(const spmla_i_cpu_score *s, const float *key, float scale)
{
	float sum[SPMLA_I_LANES] = {0};
	uint32_t h;

	for (h = 0; h < s->heads; h++) {
		const float x =
			spmla_i_cpu_dot(s->q + (uint64_t)h * SPMLA_INDEX_DIM,
					key, SPMLA_INDEX_DIM);

		sum[h % SPMLA_I_LANES] += (x > 0.0f ? x : 0.0f) * s->weights[h];
	}
	return scale * spmla_i_cpu_tree(sum);
}

void
spmla_i_cpu_scalar_score_keys(const spmla_i_cpu_score *s, const uint8_t *codes,
			      const uint8_t *scales, uint32_t n, float *out)
{
	float scale;
	uint32_t i;

	for (i = 0; i < n; i++) {
		spmla_i_cpu_decode_e4m3(codes + (uint64_t)i * SPMLA_INDEX_DIM,
					SPMLA_INDEX_DIM, s->keys);
		memcpy(&scale, scales + (uint64_t)i * sizeof scale,
		       sizeof scale);
		out[i] = score_key(s, s->keys, scale);
	}
}
