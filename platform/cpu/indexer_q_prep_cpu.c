/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep on the CPU: rotate and quantise each head, fold its scale into
 * its weight. Folding is exact in the logits, relu(s * x) = s * relu(x), and
 * s is a power of two.
 */
#include "spmla/platform/cpu/parallel_cpu.h"
#include "spmla/platform/cpu/quant_cpu.h"
#include "spmla/platform/cpu/rope_cpu.h"

#include <string.h>

enum { DIM = SPMLA_INDEX_DIM };

static float
scale_of(const float *x, uint32_t scale_floor)
{
	float scale = spmla_i_cpu_amax(x, DIM, 1e-10f) / 448.0f;

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

/* `cos_sin` is the position's; NULL: no rope. */
static void
prepare(const spmla_indexer_q_prep_args *a, uint32_t t, const float *cos_sin)
{
	uint32_t h;

	for (h = 0; h < a->heads; h++) {
		const uint64_t out = (uint64_t)t * a->heads + h;
		float x[DIM];
		float scale;

		spmla_i_cpu_load16(x,
				   a->q + t * a->q_token_stride_elems +
					   h * a->q_head_stride_elems,
				   DIM, SPMLA_DTYPE_BF16);
		if (cos_sin)
			spmla_i_cpu_rope(x, cos_sin, a->rope_style);
		scale = scale_of(x, a->scale_floor);
		spmla_i_cpu_quantise(a->q_out + out * DIM, x, DIM, scale);
		a->weights_out[out] = weight_at(a, t, h) * scale *
				      a->softmax_scale * a->head_scale;
	}
}

static void
prepare_token(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t t)
{
	const spmla_indexer_q_prep_args *a = args;
	const uint64_t first_head = (uint64_t)t * a->heads;
	const float *cos_sin = NULL;

	(void)worker;
	if (a->rope_style != SPMLA_ROPE_NONE) {
		cos_sin = spmla_i_cpu_rope_row(a->cos_sin, a->cos_sin_rows,
					       a->positions[t]);
		if (!cos_sin) {
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_POSITION);
			memset(a->q_out + first_head * DIM, 0,
			       (size_t)a->heads * DIM);
			memset(a->weights_out + first_head, 0,
			       a->heads * sizeof *a->weights_out);
			return;
		}
	}
	prepare(a, t, cos_sin);
}

void
spmla_i_cpu_indexer_q_prep(spmla_ctx *ctx, const void *args)
{
	const spmla_indexer_q_prep_args *a = args;

	spmla_i_cpu_for(ctx, a, a->tokens, prepare_token);
}
