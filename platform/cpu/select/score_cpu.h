/* SPDX-License-Identifier: Apache-2.0
 *
 * The index scores of keys, the same for paged and gathered ones: a token's
 * queries are taken once and then meet any number of runs of keys.
 */
#ifndef SPMLA_PLATFORM_CPU_SELECT_SCORE_CPU_H
#define SPMLA_PLATFORM_CPU_SELECT_SCORE_CPU_H

#include "spmla/platform/cpu/core/parallel_cpu.h"

/* In a worker's INDEX_SCRATCH; the order and sizes are cpu_scratch.h's. */
typedef struct spmla_i_cpu_score {
	const struct spmla_i_cpu_kernels *kernels;
	uint32_t heads;
	uint32_t padded; /* heads, rounded up to 16 */
	float *q;        /* [padded][128]; vector variants: [128][padded] */
	float *weights;  /* [padded]; 0 behind the heads */
	float *keys;     /* [16][128] */
} spmla_i_cpu_score;

/* n e4m3 codes as f32, exact. */
static inline void
spmla_i_cpu_decode_e4m3(const uint8_t *codes, uint32_t n, float *values)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		values[i] = spmla_i_e4m3_to_f32(codes[i]);
}

/* heads <= config.index_heads; q and weights as spmla_mqa_logits_args have
 * them, of one token. */
spmla_i_cpu_score spmla_i_cpu_score_open(const spmla_ctx *ctx, uint32_t worker,
					 uint32_t heads, const uint8_t *q,
					 const float *weights);

/* out[i] = scale[i] * sum over h of (relu(q[h] . key[i]) * weights[h]). A NaN
 * product counts as 0, as fmaxf(x, 0) gives. codes are [n][128], scales f32 of
 * any alignment. */
void spmla_i_cpu_score_keys(const spmla_i_cpu_score *s, const uint8_t *codes,
			    const uint8_t *scales, uint32_t n, float *out);

/* The same of MXFP4. A query or a key is 64 bytes of e2m1 and 4 scales, which
 * lie [heads][4] and [n][4]; scores have no factor of their own. */
spmla_i_cpu_score spmla_i_cpu_score_open_mxfp4(const spmla_ctx *ctx,
					       uint32_t worker, uint32_t heads,
					       const uint8_t *q,
					       const uint8_t *scales,
					       const float *weights);
void spmla_i_cpu_score_keys_mxfp4(const spmla_i_cpu_score *s,
				  const uint8_t *codes, const uint8_t *scales,
				  uint32_t n, float *out);

#endif
