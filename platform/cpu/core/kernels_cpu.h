/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loops of the CPU that decide its speed, one table of them for each
 * instruction set. The scalar table is the oracle. Init chooses one by what the
 * machine has; from then on nothing asks again. Bytes, integers, dequantised
 * values and projections are equal in all of them; scores and attention differ
 * by the order of their sums, which depends on the variant and on nothing else:
 * not on where a key or a head lies in a tile, nor on how many there are.
 */
#ifndef SPMLA_PLATFORM_CPU_CORE_KERNELS_CPU_H
#define SPMLA_PLATFORM_CPU_CORE_KERNELS_CPU_H

#include "spmla/platform/cpu/attend/attend_cpu.h"
#include "spmla/platform/cpu/project/project_cpu.h"
#include "spmla/platform/cpu/select/score_cpu.h"

typedef struct spmla_i_cpu_kernels {
	const char *name;
	/* values = bf16(e4m3 * scale); n is a multiple of 16. */
	void (*dequantise)(const uint8_t *codes, uint32_t n, float scale,
			   float *values);
	/* n bf16 values of any alignment as f32; n is a multiple of 16. */
	void (*load_bf16)(const uint8_t *bytes, uint32_t n, float *values);
	/* Takes a token's index queries e4m3 [heads][128] and weights. */
	void (*score_open)(const spmla_i_cpu_score *s, const uint8_t *q,
			   const float *weights);
	/* The scores of n keys, e4m3 [n][128], and their f32 scales, which may
	 * lie anywhere. */
	void (*score_keys)(const spmla_i_cpu_score *s, const uint8_t *codes,
			   const uint8_t *scales, uint32_t n, float *out);
	/* All heads over the first `count` keys, 1..64. */
	void (*attend_block)(const spmla_i_cpu_attend *w, uint32_t count);
	/* out = bf16(o / total), 512 values. */
	void (*attend_divide)(const float *o, float total, uint16_t *out);
	/* Rows times a matrix; the same bits in all variants. */
	void (*project)(const spmla_i_cpu_project *p);
	/* The two of the scores with values that are f32 already: takes query h
	 * < padded [128] (behind the heads zeros), and gives the scores of the
	 * n keys in s->keys, at most 16; scales as score_keys has them. */
	void (*score_query)(const spmla_i_cpu_score *s, uint32_t h,
			    const float *q, float weight);
	void (*score_values)(const spmla_i_cpu_score *s, const uint8_t *scales,
			     uint32_t n, float *out);
} spmla_i_cpu_kernels;

extern const spmla_i_cpu_kernels spmla_i_cpu_scalar;
#if defined(__x86_64__)
extern const spmla_i_cpu_kernels spmla_i_cpu_avx2;
extern const spmla_i_cpu_kernels spmla_i_cpu_avx512;
#endif

/* The fastest that this machine has and spmla_native.flags allow. */
const spmla_i_cpu_kernels *spmla_i_cpu_choose(uint32_t native_flags);

/* The context's. */
const spmla_i_cpu_kernels *spmla_i_cpu_kernels_of(const spmla_ctx *ctx);

#endif
