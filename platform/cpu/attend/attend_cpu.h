/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loop that the sparse attention operations share: the online softmax
 * of all heads over packed keys, a block of at most 64 entries at a time. The
 * caller decides which keys count and where they come from. V is the first 512
 * values of a key.
 */
#ifndef SPMLA_PLATFORM_CPU_ATTEND_ATTEND_CPU_H
#define SPMLA_PLATFORM_CPU_ATTEND_ATTEND_CPU_H

#include "spmla/platform/cpu/core/kernels_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"
#include "spmla/platform/cpu/step/list_cpu.h"

/* Where token t lies: with next_n, as number t % next_n of its request. */
static inline int64_t
spmla_i_cpu_token_at(uint32_t t, uint32_t next_n, int64_t request_stride,
		     int64_t token_stride)
{
	if (!next_n)
		return t * token_stride;
	return t / next_n * request_stride + t % next_n * token_stride;
}

/* Entries of the block that starts at `first` of `len`. */
static inline uint32_t
spmla_i_cpu_block_len(uint32_t first, uint32_t len)
{
	return len - first < SPMLA_I_CPU_BLOCK_KEYS ? len - first
						    : SPMLA_I_CPU_BLOCK_KEYS;
}

/* Entries between the prefetch of a row and its use: a row from memory takes
 * about four times as long as its conversion. */
enum { SPMLA_I_CPU_ASK_AHEAD = 8 };

/* Prefetches n bytes. Without it a row from memory costs its whole latency,
 * because the conversion of a row fills the processor's reorder window. The
 * empty asm keeps gcc (12) from dropping the call: it takes a function that
 * only prefetches for one without effect. */
static inline void
spmla_i_cpu_ask(const uint8_t *bytes, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i += SPMLA_I_CPU_LINE)
		__builtin_prefetch(bytes + i);
	__builtin_prefetch(bytes + n - 1);
	__asm__ volatile("");
}

/* heads <= config.heads, dim <= 576. */
spmla_i_cpu_attend spmla_i_cpu_attend_open(const spmla_ctx *ctx,
					   uint32_t worker, uint32_t heads,
					   uint32_t dim, float softmax_scale);

/* Clears the accumulators and decodes a token's queries, bf16 [heads][dim],
 * heads q_head_stride_elems apart. q may be NULL if no block follows. */
void spmla_i_cpu_attend_start(const spmla_i_cpu_attend *w, const uint16_t *q,
			      int64_t q_head_stride_elems);

/* All heads over the first `count` keys. */
void spmla_i_cpu_attend_block(const spmla_i_cpu_attend *w, uint32_t count);

/* Whether a head saw no key, or only keys whose score is -inf: nothing else
 * leaves L at 0, because the largest weight is 1. */
static inline uint32_t
spmla_i_cpu_attend_empty(const spmla_i_cpu_attend *w, uint32_t head)
{
	return w->sum[head] == 0.0f;
}

/* A head's result as bf16 [512]; sink in natural log units, or NULL. +0 if the
 * head is empty. */
void spmla_i_cpu_attend_out(const spmla_i_cpu_attend *w, uint32_t head,
			    const float *sink, uint16_t *out);

/* The same before the sink and the rounding: O / L, f32 [512]. */
void spmla_i_cpu_attend_partial(const spmla_i_cpu_attend *w, uint32_t head,
				float *out);

/* log2 of the sum of exp2(c * score), and the natural form; for a head that is
 * not empty. */
float spmla_i_cpu_attend_lse2(const spmla_i_cpu_attend *w, uint32_t head);
float spmla_i_cpu_attend_lse(const spmla_i_cpu_attend *w, uint32_t head);

/* lse2 with the sink, which is in natural log units, in the sum. */
float spmla_i_cpu_lse2_with_sink(float lse2, float sink);

/* How an lse is wanted: the fields of the operations. */
typedef struct spmla_i_cpu_lse {
	uint32_t base;      /* spmla_lse_base */
	uint32_t empty;     /* spmla_empty_lse */
	const float *sinks; /* that it counts; NULL: none */
} spmla_i_cpu_lse;

/* The lse of a head without keys. */
float spmla_i_cpu_empty_lse(uint32_t empty_lse);

/* A head's lse. */
float spmla_i_cpu_attend_result_lse(const spmla_i_cpu_attend *w, uint32_t head,
				    const spmla_i_cpu_lse *form);

#endif
