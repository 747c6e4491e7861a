/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loops that decide the CPU's speed, one table of functions per
 * instruction set. The scalar table is the oracle. Init chooses a table once,
 * by what the machine has. Bytes, integers, dequantised values and projections
 * are equal in all tables. Scores and attention differ in the order of their
 * sums, which depends only on the variant: not on the place of a key or head in
 * a tile, nor on their number.
 */
#ifndef SPMLA_PLATFORM_CPU_CORE_KERNELS_CPU_H
#define SPMLA_PLATFORM_CPU_CORE_KERNELS_CPU_H

#include "spmla/internal/cpu_scratch.h"
#include "spmla/platform/cpu/core/cpu.h"

/* The online softmax of all heads, in a worker's ATTEND_SCRATCH; cpu_scratch.h
 * has the order and sizes. */
typedef struct spmla_i_cpu_attend {
	const struct spmla_i_cpu_kernels *kernels;
	uint32_t heads;
	uint32_t dim;   /* of a key and a query: 576 or 512 */
	float scale;    /* of the softmax */
	float c;        /* the same in log2 units */
	float *keys;    /* [64][dim], the block's keys that count */
	float *q;       /* [heads][dim] */
	float *o;       /* [heads][512], sum of p * v */
	float *p;       /* [heads][64], scores and then weights */
	float *max;     /* [heads], largest score so far, unscaled */
	float *sum;     /* [heads], L */
	float *rescale; /* [heads], factor that brings O to the new maximum */
} spmla_i_cpu_attend;

/* The place for the block's i-th key that counts. */
static inline float *
spmla_i_cpu_attend_key(const spmla_i_cpu_attend *w, uint32_t i)
{
	return w->keys + (uint64_t)i * w->dim;
}

/* The index scores of a token, in a worker's INDEX_SCRATCH; cpu_scratch.h has
 * the order and sizes. */
typedef struct spmla_i_cpu_score {
	const struct spmla_i_cpu_kernels *kernels;
	uint32_t heads;
	uint32_t padded; /* heads, rounded up to 16 */
	float *q;        /* [padded][128]; vector variants: [128][padded] */
	float *weights;  /* [padded]; 0 behind the heads */
	float *keys;     /* [16][128] */
} spmla_i_cpu_score;

/* Rows times a matrix, bf16, with sums in f32 in the order of spmla_i_cpu_dot;
 * q_absorb and v_up share it, a head at a time:
 *   out[r][j] = bf16(sum over i < n of x[r][i] * w[i][j])
 * The product of two bf16 numbers is exact in f32, so a fused multiply-add
 * rounds as a product and a sum do. So all variants give the same bits, as long
 * as no product leaves the range of f32. */
typedef struct spmla_i_cpu_project {
	const uint16_t *x; /* [rows][n] */
	int64_t x_stride_elems;
	const uint16_t *w; /* [n][columns] */
	int64_t w_stride_elems;
	/* the matrix after this one, with the same layout, to be prefetched; w:
	 * there is none */
	const uint16_t *next;
	uint16_t *out; /* [rows][columns] */
	int64_t out_stride_elems;
	uint32_t rows;
	uint32_t n;       /* a multiple of 16 */
	uint32_t columns; /* a multiple of 32 */
} spmla_i_cpu_project;

enum {
	SPMLA_I_CPU_PART = 128,       /* values of a part of o_group_proj */
	SPMLA_I_CPU_PART_COLUMNS = 16 /* of a call */
};

typedef struct spmla_i_cpu_kernels {
	const char *name;
	/* values = e4m3 * scale; n is a multiple of 16. */
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
	/* The same two steps for values that are f32 already. score_query takes
	 * query h < padded [128] (zeros behind the heads). The other gives the
	 * scores of the n keys in s->keys, at most 16; scales as in score_keys.
	 */
	void (*score_query)(const spmla_i_cpu_score *s, uint32_t h,
			    const float *q, float weight);
	void (*score_values)(const spmla_i_cpu_score *s, const uint8_t *scales,
			     uint32_t n, float *out);
	/* A part of o_group_proj, in the order of its header: sums[d] is x
	 * times row d of w, for 16 rows that lie row_bytes apart. Products of
	 * bf16 and of e4m3 are exact, so all variants give the same bits. */
	void (*part_bf16)(const uint8_t *x, const uint8_t *w,
			  uint64_t row_bytes, float *sums);
	void (*part_e4m3)(const uint8_t *x, const uint8_t *w,
			  uint64_t row_bytes, float *sums);
	/* The larger of least_amax and every |x| that is no NaN, and codes =
	 * e4m3(x / scale), as in quant_cpu.h; n is a multiple of 16. */
	float (*amax)(const float *x, uint32_t n, float least_amax);
	void (*quantise)(uint8_t *codes, const float *x, uint32_t n,
			 float scale);
} spmla_i_cpu_kernels;

extern const spmla_i_cpu_kernels spmla_i_cpu_scalar;
#if defined(__x86_64__)
extern const spmla_i_cpu_kernels spmla_i_cpu_avx2;
extern const spmla_i_cpu_kernels spmla_i_cpu_avx512;
#endif

/* The fastest table that this machine has and spmla_native.flags allow. */
const spmla_i_cpu_kernels *spmla_i_cpu_choose(uint32_t native_flags);

/* The context's table. */
const spmla_i_cpu_kernels *spmla_i_cpu_kernels_of(const spmla_ctx *ctx);

#endif
