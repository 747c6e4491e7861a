/* SPDX-License-Identifier: Apache-2.0
 *
 * The cos_sin tables that layers and operations take: a row a position, 32
 * cosines and then 32 sines. Host only and pure: no context, no device, no
 * memory but the caller's. An engine that has its models' tables does not need
 * this.
 */
#ifndef SPMLA_ROPE_H
#define SPMLA_ROPE_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a table is made from. Frequency i of 32 is theta^(-i/32). With
 * original_tokens it is stretched as YaRN does: those that turn beta_fast times
 * or more in that many tokens stay, those that turn beta_slow times or less are
 * divided by factor, and between the two whole numbers i around these the part
 * that is divided grows evenly. */
typedef struct spmla_rope {
	uint32_t struct_bytes;
	uint32_t original_tokens; /* 0: plain, the next three do not count */
	double factor;            /* >= 1 */
	double beta_fast;         /* > beta_slow */
	double beta_slow;         /* > 0 */
	double theta;             /* > 1 */
	double mscale;            /* > 0; cosines and sines are times this */
} spmla_rope;

#define SPMLA_ROPE_INIT                                        \
	{                                                      \
		(uint32_t)sizeof(spmla_rope), 0, 0, 0, 0, 0, 0 \
	}

/* What a model's layers take, by spmla_v4_layer.ratio; V3.2: ratio 1. V3.2:
 * theta 10000, YaRN from 4096 tokens, factor 40, beta 32 and 1. V4: ratio 1
 * theta 10000, plain; 4 and 128 theta 160000, YaRN from 65536 tokens, factor 16,
 * beta 32 and 1. mscale is 1 in all: what V3.2 has of it is in softmax_scale of
 * its preset. Errors: E_NULL, E_RANGE. */
spmla_status spmla_rope_preset(spmla_rope *rope, spmla_model model,
			       uint32_t ratio);

/* Rows of positions first_position and on, [rows][64] floats, dense. A position
 * below 2^24 times a frequency is rounded to f32 before its cosine and sine are
 * taken, as the models' own code has it, and so are these.
 * Memory: writes rows * 256 bytes. Errors: E_NULL, E_STRUCT_SIZE, E_RANGE. */
spmla_status spmla_rope_fill(float *cos_sin, uint32_t first_position,
			     uint32_t rows, const spmla_rope *rope,
			     spmla_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
