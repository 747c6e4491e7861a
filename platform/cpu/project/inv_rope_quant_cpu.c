/* SPDX-License-Identifier: Apache-2.0
 *
 * inv_rope_quant on the CPU: a token at a time, 128 of its values at a time. A
 * token writes its own column of the scales; the last token also writes the
 * columns that pad them.
 */
#include "spmla/platform/cpu/cache/rope_cpu.h"
#include "spmla/platform/cpu/core/kernels_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"
#include "spmla/platform/cpu/core/quant_cpu.h"

#include <string.h>

enum {
	DIM = SPMLA_V4_DIM,
	GROUP = 128, /* values of a scale */
	SCALES = DIM / GROUP
};

/* The place of a head of a token. */
typedef struct place {
	uint64_t out; /* elements */
	/* elements, for the first of 4 scales or the only word */
	uint64_t scale;
} place;

static place
place_of(const spmla_inv_rope_quant_args *a, uint64_t t, uint32_t h)
{
	const uint64_t group = h / a->heads_per_group;
	const uint64_t head = h % a->heads_per_group;
	const uint64_t rows = a->quant == SPMLA_O_FP8 ? SCALES : 1;
	place p;

	p.out = t * (uint64_t)a->out_token_stride_elems +
		group * (uint64_t)a->out_group_stride_elems + head * DIM;
	p.scale = group * (uint64_t)a->scale_group_stride_elems +
		  head * rows * (uint64_t)a->scale_stride_elems + t;
	return p;
}

/* Writes the scales of a head in either form. */
static void
store_scales(const spmla_inv_rope_quant_args *a, uint64_t at,
	     const float *scales)
{
	const uint64_t stride = (uint64_t)a->scale_stride_elems;
	float *out = a->scales;
	uint32_t word = 0, i;

	if (a->quant == SPMLA_O_FP8) {
		for (i = 0; i < SCALES; i++)
			out[at + i * stride] = scales[i];
		return;
	}
	for (i = 0; i < SCALES; i++)
		word |= spmla_i_f32_bits(scales[i]) >> 23 << 8 * i;
	((uint32_t *)a->scales)[at] = word;
}

/* The floor keeps scales normal: 1e-10 / 448 rounds up to 2^-42. */
static float
scale_of(const spmla_i_cpu_kernels *kernels, const float *x)
{
	return spmla_i_pow2_up(kernels->amax(x, GROUP, 1e-10f) *
			       (1.0f / 448.0f));
}

static void
write_fp8(const spmla_inv_rope_quant_args *a,
	  const spmla_i_cpu_kernels *kernels, const uint16_t *o,
	  const float *cos_sin, place to)
{
	float scales[SCALES], x[GROUP];
	uint8_t *out = (uint8_t *)a->out + to.out;
	uint32_t g;

	for (g = 0; g < SCALES; g++) {
		kernels->load_bf16((const uint8_t *)(o + g * GROUP), GROUP, x);
		if (cos_sin && g == SCALES - 1)
			spmla_i_cpu_turn(x + GROUP - SPMLA_V4_ROPE, cos_sin,
					 a->rope_style, -1.0f);
		scales[g] = scale_of(kernels, x);
		kernels->quantise(out + g * GROUP, x, GROUP, scales[g]);
	}
	store_scales(a, to.scale, scales);
}

static void
write_bf16(const spmla_inv_rope_quant_args *a, const uint16_t *o,
	   const float *cos_sin, place to)
{
	uint16_t *out = (uint16_t *)a->out + to.out;
	float x[SPMLA_V4_ROPE];
	uint32_t i;

	memcpy(out, o, DIM * sizeof *out);
	if (!cos_sin)
		return;
	out += SPMLA_V4_NOPE;
	spmla_i_cpu_load16(x, o + SPMLA_V4_NOPE, SPMLA_V4_ROPE,
			   SPMLA_DTYPE_BF16);
	spmla_i_cpu_turn(x, cos_sin, a->rope_style, -1.0f);
	for (i = 0; i < SPMLA_V4_ROPE; i++)
		out[i] = spmla_i_cpu_bf16_bits(x[i]);
}

/* Clears a head of a token without a row of the rope table. */
static void
clear_head(const spmla_inv_rope_quant_args *a, place to)
{
	const float zeros[SCALES] = {0};

	if (a->quant == SPMLA_O_BF16) {
		memset((uint16_t *)a->out + to.out, 0, DIM * sizeof(uint16_t));
		return;
	}
	memset((uint8_t *)a->out + to.out, 0, DIM);
	store_scales(a, to.scale, zeros);
}

/* Clears the scales of the tokens behind the last, up to a multiple of 4. */
static void
pad_scales(const spmla_inv_rope_quant_args *a, uint32_t h)
{
	const uint64_t end = ((uint64_t)a->tokens + 3) / 4 * 4;
	const float zeros[SCALES] = {0};
	uint64_t t;

	for (t = a->tokens; t < end; t++)
		store_scales(a, place_of(a, t, h).scale, zeros);
}

static void
write_token(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t t)
{
	const spmla_inv_rope_quant_args *a = args;
	const spmla_i_cpu_kernels *kernels = spmla_i_cpu_kernels_of(ctx);
	const uint32_t heads = a->groups * a->heads_per_group;
	const float *cos_sin = NULL;
	uint32_t is_lost = 0, h;
	float own[SPMLA_INDEX_ROPE];

	(void)worker;
	if (a->rope_style != SPMLA_ROPE_NONE) {
		cos_sin = spmla_i_cpu_rope_row(
			a->cos_sin, a->cos_sin_dtype, a->cos_sin_rows,
			spmla_i_cpu_position(a->positions, a->positions_dtype,
					     t),
			own);
		is_lost = !cos_sin;
	}
	if (is_lost)
		spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_POSITION);
	for (h = 0; h < heads; h++) {
		const uint16_t *o = a->o + t * a->o_token_stride_elems +
				    h * a->o_head_stride_elems;
		const place to = place_of(a, t, h);

		if (is_lost)
			clear_head(a, to);
		else if (a->quant == SPMLA_O_BF16)
			write_bf16(a, o, cos_sin, to);
		else
			write_fp8(a, kernels, o, cos_sin, to);
		if (t == a->tokens - 1 && a->quant != SPMLA_O_BF16)
			pad_scales(a, h);
	}
}

void
spmla_i_cpu_inv_rope_quant(spmla_ctx *ctx, const void *args)
{
	const spmla_inv_rope_quant_args *a = args;

	spmla_i_cpu_for(ctx, a, a->tokens, write_token);
}
