/* SPDX-License-Identifier: Apache-2.0
 *
 * The cos_sin tables that layers and operations read: one row per position, 32
 * cosines and then 32 sines. These functions run on the host, need no context
 * and write only the caller's memory. An engine that loads its model's own
 * tables does not need them.
 */
#ifndef SPMLA_ROPE_H
#define SPMLA_ROPE_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The parameters of a table. It has 32 frequencies: theta^(-i/32) for i =
 * 0..31.
 *
 * With original_tokens, YaRN (Peng et al., 2023) stretches them. A frequency
 * that turns beta_fast times or more in original_tokens tokens stays. One that
 * turns beta_slow times or less is divided by factor. Between these two bounds,
 * rounded to whole i, both are blended, linearly in i. */
typedef struct spmla_rope {
	uint32_t struct_bytes;
	uint32_t original_tokens; /* 0: plain; the next three are ignored */
	double factor;            /* >= 1 */
	double beta_fast;         /* > beta_slow */
	double beta_slow;         /* > 0 */
	double theta;             /* > 1 */
	double mscale;            /* > 0; multiplies cosines and sines */
} spmla_rope;

#define SPMLA_ROPE_INIT                                        \
	{                                                      \
		(uint32_t)sizeof(spmla_rope), 0, 0, 0, 0, 0, 0 \
	}

/* The parameters of a model's layers. `ratio` is spmla_v4_layer.ratio, and 1
 * for V3.2:
 *
 *   V3.2             theta 10000, YaRN from 4096 tokens, factor 40
 *   V4, ratio 1      theta 10000, plain
 *   V4, ratio 4      theta 160000, YaRN from 65536 tokens, factor 16
 *   V4, ratio 128    the same as ratio 4
 *
 * YaRN has beta_fast 32 and beta_slow 1. mscale is 1 in all of them: the config
 * preset of V3.2 has it in softmax_scale. Errors: E_NULL, E_RANGE. */
spmla_status spmla_rope_preset(spmla_rope *rope, spmla_model model,
			       uint32_t ratio);

/* Fills the rows of `rows` positions, from first_position on: f32 [rows][64],
 * dense. The angle is the f32 product of position and frequency; the row has
 * its cosines and sines. Memory: writes rows * 256 bytes. Errors: E_NULL,
 * E_STRUCT_SIZE, E_RANGE. */
spmla_status spmla_rope_fill(float *cos_sin, uint32_t first_position,
			     uint32_t rows, const spmla_rope *rope,
			     spmla_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
