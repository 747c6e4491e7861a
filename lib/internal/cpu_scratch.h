/* SPDX-License-Identifier: Apache-2.0
 *
 * The scratch of the CPU's operations, in bytes. The plan reserves what these
 * functions say and the operations lay their arrays out in the same order, so
 * that neither computes the other's size.
 */
#ifndef SPMLA_INTERNAL_CPU_SCRATCH_H
#define SPMLA_INTERNAL_CPU_SCRATCH_H

#include "spmla/spmla_layout.h"

enum {
	SPMLA_I_CPU_TOPK_BINS = 2048, /* uint32 each: one histogram */
	SPMLA_I_CPU_BLOCK_KEYS = 64   /* keys between two rescalings */
};

/* INDEX_SCRATCH: the histogram of topk, or one token's index queries as f32
 * [index_heads][128] for mqa_logits; never both at once. */
static inline uint64_t
spmla_i_cpu_index_scratch_bytes(uint32_t index_heads)
{
	const uint64_t bins =
		SPMLA_I_CPU_TOPK_BINS * (uint64_t)sizeof(uint32_t);
	const uint64_t q =
		(uint64_t)index_heads * SPMLA_INDEX_DIM * sizeof(float);

	return q > bins ? q : bins;
}

/* ATTEND_SCRATCH of sparse_decode, all f32: keys [64][576], q [heads][576],
 * O [heads][512], max [heads], L [heads], p [64]. */
static inline uint64_t
spmla_i_cpu_attend_scratch_bytes(uint32_t heads)
{
	const uint64_t floats =
		SPMLA_I_CPU_BLOCK_KEYS * (uint64_t)(SPMLA_MLA_DIM + 1) +
		(uint64_t)heads * (SPMLA_MLA_DIM + SPMLA_MLA_LATENT + 2);

	return floats * sizeof(float);
}

#endif
