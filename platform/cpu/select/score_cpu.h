/* SPDX-License-Identifier: Apache-2.0
 *
 * The index scores of keys, for paged and gathered keys alike: a token's
 * queries are decoded once and then meet any number of runs of keys.
 */
#ifndef SPMLA_PLATFORM_CPU_SELECT_SCORE_CPU_H
#define SPMLA_PLATFORM_CPU_SELECT_SCORE_CPU_H

#include "spmla/platform/cpu/core/kernels_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"

/* heads <= config.index_heads. q and weights are as in spmla_mqa_logits_args,
 * for one token; encoding is q's. */
spmla_i_cpu_score spmla_i_cpu_score_open(const spmla_ctx *ctx, uint32_t worker,
					 uint32_t heads, const uint8_t *q,
					 const float *weights,
					 uint32_t encoding);

/* out[i] = scale[i] * sum over h of (relu(q[h] . key[i]) * weights[h]). A NaN
 * product counts as 0, as fmaxf(x, 0) gives. codes are [n][128], scales f32 of
 * any alignment. */
void spmla_i_cpu_score_keys(const spmla_i_cpu_score *s, const uint8_t *codes,
			    const uint8_t *scales, uint32_t n, float *out);

/* The same for keys in FNUZ. */
void spmla_i_cpu_score_keys_fnuz(const spmla_i_cpu_score *s,
				 const uint8_t *codes, const uint8_t *scales,
				 uint32_t n, float *out);

/* The same for keys [first, first + n) of a page of INDEX_FP8_TILED. */
void spmla_i_cpu_score_keys_tiled(const spmla_i_cpu_score *s,
				  const spmla_cache *cache, const uint8_t *page,
				  uint32_t first, uint32_t n, float *out);

/* The same for MXFP4. A query or a key is 64 bytes of e2m1 and 4 scales, which
 * lie [heads][4] and [n][4]. Scores have no factor of their own. */
spmla_i_cpu_score spmla_i_cpu_score_open_mxfp4(const spmla_ctx *ctx,
					       uint32_t worker, uint32_t heads,
					       const uint8_t *q,
					       const uint8_t *scales,
					       const float *weights);
void spmla_i_cpu_score_keys_mxfp4(const spmla_i_cpu_score *s,
				  const uint8_t *codes, const uint8_t *scales,
				  uint32_t n, float *out);

#endif
