/* SPDX-License-Identifier: Apache-2.0
 *
 * The scratch of the CPU's operations, in bytes. The plan reserves the bytes
 * that these functions return, and the operations lay out their arrays in the
 * same order, so no size is computed twice. Each of cpu_workers workers has one
 * of each kind, one behind the other.
 */
#ifndef SPMLA_INTERNAL_CPU_SCRATCH_H
#define SPMLA_INTERNAL_CPU_SCRATCH_H

#include "spmla/spmla_layout.h"

enum {
	SPMLA_I_CPU_TOPK_BINS = 2048, /* uint32 each: one histogram */
	SPMLA_I_CPU_BLOCK_KEYS = 64,  /* keys between two rescalings */
	SPMLA_I_CPU_SCORE_KEYS = 16,  /* index keys decoded at once */
	/* kv_compress, f32: max [512], key [512], two sums [16][16]; three
	 * pointers a row. */
	SPMLA_I_CPU_COMPRESS_BYTES =
		3 * 4 * SPMLA_V4_DIM + 3 * 8 * SPMLA_COMPRESS_MOST,
	SPMLA_I_CPU_SCRATCH_ALIGN = 256
};

/* The stride from one worker's scratch to the next; each is aligned as the
 * first. */
static inline uint64_t
spmla_i_cpu_worker_stride(uint64_t one_bytes)
{
	const uint64_t align = SPMLA_I_CPU_SCRATCH_ALIGN;

	return (one_bytes + align - 1) / align * align;
}

/* The scratch of all workers. A single worker has no padding. */
static inline uint64_t
spmla_i_cpu_workers_bytes(uint64_t one_bytes, uint32_t workers)
{
	return (workers - 1) * spmla_i_cpu_worker_stride(one_bytes) + one_bytes;
}

/* Index heads, rounded up to whole vectors of any width. */
static inline uint32_t
spmla_i_cpu_padded_heads(uint32_t index_heads)
{
	return (index_heads + 15) / 16 * 16;
}

/* INDEX_SCRATCH of a worker, one of these at a time: the histogram of topk; for
 * index scores, all f32 and heads padded, one token's queries [heads][128],
 * weights [heads], keys [16][128]; or the columns and rows of kv_compress. */
static inline uint64_t
spmla_i_cpu_index_scratch_bytes(uint32_t index_heads)
{
	const uint64_t bins =
		SPMLA_I_CPU_TOPK_BINS * (uint64_t)sizeof(uint32_t);
	const uint64_t heads = spmla_i_cpu_padded_heads(index_heads);
	const uint64_t scores =
		(heads * (SPMLA_INDEX_DIM + 1) +
		 SPMLA_I_CPU_SCORE_KEYS * (uint64_t)SPMLA_INDEX_DIM) *
		sizeof(float);

	const uint64_t least = bins > SPMLA_I_CPU_COMPRESS_BYTES
				       ? bins
				       : SPMLA_I_CPU_COMPRESS_BYTES;

	return scores > least ? scores : least;
}

/* ATTEND_SCRATCH of a worker, all f32: keys [64][576], q [heads][576],
 * O [heads][512], p [heads][64], max [heads], L [heads], rescale [heads]. */
static inline uint64_t
spmla_i_cpu_attend_scratch_bytes(uint32_t heads)
{
	const uint64_t floats =
		SPMLA_I_CPU_BLOCK_KEYS * (uint64_t)SPMLA_MLA_DIM +
		(uint64_t)heads * (SPMLA_MLA_DIM + SPMLA_MLA_LATENT +
				   SPMLA_I_CPU_BLOCK_KEYS + 3);

	return floats * sizeof(float);
}

#endif
