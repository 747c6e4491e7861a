/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep on the CPU: rotates and quantises each head and folds its one
 * scale into its weight. Folding is exact in the logits, because relu(s * x) =
 * s * relu(x) and s is a power of two. The four scales of MXFP4 stay beside the
 * codes.
 */
#include "spmla/internal/mxfp4.h"
#include "spmla/platform/cpu/cache/rope_cpu.h"
#include "spmla/platform/cpu/core/kernels_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"
#include "spmla/platform/cpu/core/quant_cpu.h"

#include <string.h>

enum { DIM = SPMLA_INDEX_DIM };

static float
scale_of(const spmla_i_cpu_kernels *kernels, const float *x,
	 uint32_t scale_floor, uint32_t fnuz)
{
	const float least = scale_floor == SPMLA_Q_SCALE_V4 ? 1e-4f : 1e-10f;
	float scale = kernels->amax(x, DIM, least) / (fnuz ? 224.0f : 448.0f);

	if (scale_floor == SPMLA_Q_SCALE_GROUP && scale < 1e-10f)
		scale = 1e-10f;
	return spmla_i_pow2_up(scale);
}

static float
weight_at(const spmla_indexer_q_prep_args *a, uint32_t t, uint32_t h)
{
	const int64_t i = t * a->weights_stride_elems + h;

	if (a->weights_dtype == SPMLA_DTYPE_F32)
		return ((const float *)a->weights)[i];
	return spmla_i_bf16_to_f32(((const uint16_t *)a->weights)[i]);
}

/* Writes query number `out` as MXFP4. */
static void
write_mxfp4(const spmla_indexer_q_prep_args *a, uint64_t out, const float *x)
{
	uint8_t *codes = a->q_out + out * SPMLA_INDEX_MXFP4_VALUE_BYTES;
	uint32_t word = 0, g;

	for (g = 0; g < SPMLA_INDEX_MXFP4_SCALES; g++)
		word |= (uint32_t)spmla_i_mxfp4_encode(
				codes + g * SPMLA_MXFP4_GROUP / 2,
				x + g * SPMLA_MXFP4_GROUP)
			<< 8 * g;
	memcpy(&a->q_scales[out], &word, sizeof word);
}

/* `cos_sin` is the position's row; NULL: no rope. */
static void
prepare(const spmla_indexer_q_prep_args *a, const spmla_i_cpu_kernels *kernels,
	uint32_t t, const float *cos_sin)
{
	const uint32_t fnuz = a->q_encoding == SPMLA_E4M3_FNUZ;
	const uint32_t turned =
		a->rope_part == SPMLA_ROPE_LAST ? DIM - SPMLA_INDEX_ROPE : 0;
	uint32_t h;

	for (h = 0; h < a->heads; h++) {
		const uint64_t out = (uint64_t)t * a->heads + h;
		float weight = weight_at(a, t, h);
		float x[DIM];

		kernels->load_bf16(
			(const uint8_t *)(a->q + t * a->q_token_stride_elems +
					  h * a->q_head_stride_elems),
			DIM, x);
		if (cos_sin)
			spmla_i_cpu_rope(x + turned, cos_sin, a->rope_style);
		if (a->q_format == SPMLA_INDEX_Q_MXFP4) {
			write_mxfp4(a, out, x);
		} else {
			const float scale =
				scale_of(kernels, x, a->scale_floor, fnuz);

			(fnuz ? spmla_i_cpu_quantise_fnuz : kernels->quantise)(
				a->q_out + out * DIM, x, DIM, scale);
			weight *= scale;
		}
		a->weights_out[out] = weight * a->softmax_scale * a->head_scale;
	}
}

/* Clears all outputs of a token without a row of the rope table. */
static void
clear_token(const spmla_indexer_q_prep_args *a, uint32_t t)
{
	const uint64_t first = (uint64_t)t * a->heads;
	const uint32_t bytes = a->q_format == SPMLA_INDEX_Q_MXFP4
				       ? SPMLA_INDEX_MXFP4_VALUE_BYTES
				       : DIM;

	memset(a->q_out + first * bytes, 0, (size_t)a->heads * bytes);
	memset(a->weights_out + first, 0, a->heads * sizeof *a->weights_out);
	if (a->q_format == SPMLA_INDEX_Q_MXFP4)
		memset(a->q_scales + first, 0, a->heads * sizeof *a->q_scales);
}

static void
prepare_token(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t t)
{
	const spmla_indexer_q_prep_args *a = args;
	const float *cos_sin = NULL;
	float own[SPMLA_INDEX_ROPE];

	(void)worker;
	if (a->rope_style != SPMLA_ROPE_NONE) {
		cos_sin = spmla_i_cpu_rope_row(
			a->cos_sin, a->cos_sin_dtype, a->cos_sin_rows,
			spmla_i_cpu_position(a->positions, a->positions_dtype,
					     t),
			own);
		if (!cos_sin) {
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_POSITION);
			clear_token(a, t);
			return;
		}
	}
	prepare(a, spmla_i_cpu_kernels_of(ctx), t, cos_sin);
}

void
spmla_i_cpu_indexer_q_prep(spmla_ctx *ctx, const void *args)
{
	const spmla_indexer_q_prep_args *a = args;

	spmla_i_cpu_for(ctx, a, a->tokens, prepare_token);
}
