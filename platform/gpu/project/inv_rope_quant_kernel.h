/* SPDX-License-Identifier: Apache-2.0
 *
 * inv_rope_quant: 16 lanes take a head of a token, and a block takes four heads
 * of four tokens at a time. Lane l has octets (8 values) l, l + 16, l + 32, l +
 * 48 of the head, one of each 128 values with a scale. All are loaded before
 * any is used, and before the position is known. A block takes four tokens
 * because the scales of neighbouring tokens lie side by side, and padding
 * tokens, up to a multiple of four, have scales too. A scale is a power of two,
 * at least 2^-42. So its inverse is exact, and the product with it has the bits
 * of the quotient.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_INV_ROPE_QUANT_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_INV_ROPE_QUANT_KERNEL_H

#include "spmla/platform/gpu/cache/row_device.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/input_device.h"

#define SPMLA_K_inv_rope_quant(P, S)   \
	SPMLA_K_FAULT(P)               \
	P(const uint16_t, o)           \
	P(const int32_t, positions)    \
	P(const float, cos_sin)        \
	P(uint8_t, out)                \
	P(uint32_t, scales)            \
	S(int64_t, o_token_stride)     \
	S(int64_t, o_head_stride)      \
	S(int64_t, out_token_stride)   \
	S(int64_t, out_group_stride)   \
	S(int64_t, scale_stride)       \
	S(int64_t, scale_group_stride) \
	S(uint32_t, tokens)            \
	S(uint32_t, groups)            \
	S(uint32_t, heads_per_group)   \
	S(uint32_t, bf16)              \
	S(uint32_t, packed)            \
	S(uint32_t, has_rope)          \
	S(uint32_t, neox)              \
	S(uint32_t, cos_sin_rows)      \
	S(uint32_t, o_aligned)         \
	S(uint32_t, out_aligned)       \
	S(uint32_t, rope_form)         \
	S(uint32_t, positions_wide)
SPMLA_KERNEL_SCALARS(inv_rope_quant)

enum {
	INV_ROPE_TOKENS = 4,
	INV_ROPE_HEADS = 4,
	INV_ROPE_LANES = 16,
	INV_ROPE_EACH = 8,  /* values of an octet */
	INV_ROPE_SCALES = 4 /* of a head; also the octets of a lane */
};

#ifdef SPMLA_GPU_KERNELS

/* Loads four cosines or sines, from index `at` on. */
FN void
inv_rope_angles(PRIVATE float *to, GLOBAL const float *cos_sin, uint32_t form,
		uint64_t at)
{
	uint32_t words[4], i;

	g_reals4(cos_sin, form, at, words);
	UNROLL
	for (i = 0; i < 4; i++)
		to[i] = g_float(words[i]);
}

/* The cosines and sines for the lane's last octet, if it `turns`: lanes 8 .. 15
 * have the head's last 64 values. INTERLEAVED: for four pairs. NEOX: for eight
 * values. */
FN void
inv_rope_factors(GLOBAL const float *cos_sin, uint32_t position, uint32_t turns,
		 uint32_t neox, uint32_t form, PRIVATE float *c,
		 PRIVATE float *sine)
{
	const uint32_t own = g_item() % 8; /* which eighth of the 64 */
	const uint64_t at = (uint64_t)position * SPMLA_V4_ROPE +
			    (neox ? own % 4 * 8 : own * 4);
	uint32_t i;

	UNROLL
	for (i = 0; i < 8; i++)
		c[i] = sine[i] = 0.0f;
	if (turns) {
		inv_rope_angles(c, cos_sin, form, at);
		inv_rope_angles(sine, cos_sin, form, at + 32);
	}
	if (turns && neox) {
		inv_rope_angles(c + 4, cos_sin, form, at + 4);
		inv_rope_angles(sine + 4, cos_sin, form, at + 36);
	}
}

/* Rotates the octet back if it turns. INTERLEAVED: the thread has four whole
 * pairs. NEOX: the lane 4 away has the partners, so all lanes call it. */
FN void
inv_rope_turn(PRIVATE float *x, const PRIVATE float *c,
	      const PRIVATE float *sine, uint32_t turns, uint32_t neox)
{
	const uint32_t own = g_item() % 8;
	uint32_t i;

	if (!neox) {
		UNROLL
		for (i = 0; turns && i < 4; i++) {
			const float a = x[2 * i], b = x[2 * i + 1];

			x[2 * i] = a * c[i] + b * sine[i];
			x[2 * i + 1] = b * c[i] - a * sine[i];
		}
		return;
	}
	UNROLL
	for (i = 0; i < 8; i++) {
		const float other = g_shuffle_xor_f(x[i], 4);
		const float near = x[i] * c[i], far = other * sine[i];

		if (turns)
			x[i] = own < 4 ? near + far : near - far;
	}
}

/* The scale of the 128 values of 16 lanes. All of them get it. */
FN float
inv_rope_scale(const PRIVATE float *x)
{
	float most = 1e-10f;
	uint32_t mask, i;

	UNROLL
	for (i = 0; i < INV_ROPE_EACH; i++)
		most = g_larger(most, g_abs(x[i]));
	UNROLL
	for (mask = 8; mask; mask >>= 1)
		most = g_larger(most, g_shuffle_xor_f(most, mask));
	return g_pow2_up(most * (1.0f / 448.0f));
}

/* Stores 8 values as e4m3; `is_aligned`: p is a multiple of 8 bytes. */
FN void
inv_rope_store8(GLOBAL uint8_t *p, const PRIVATE float *x, float scale,
		uint32_t is_aligned)
{
	const uint32_t biased = g_bits(scale) >> 23;
	const float inverse = g_float(biased < 254 ? (254 - biased) << 23
						   : 0); /* 0 for +inf */
	uint64_t codes = 0;
	uint32_t i;

	UNROLL
	for (i = 0; i < INV_ROPE_EACH; i += 2)
		codes |= (uint64_t)g_f32_to_e4m3x2(x[i] * inverse,
						   x[i + 1] * inverse)
			 << 8 * i;
	if (is_aligned) {
		*(GLOBAL uint64_t *)p = codes;
	} else {
		UNROLL
		for (i = 0; i < INV_ROPE_EACH; i++)
			p[i] = (uint8_t)(codes >> 8 * i);
	}
}

/* Stores 8 values as bf16. If they were not rotated, they are bf16 already, and
 * keep their bits, also of a NaN. */
FN void
inv_rope_store16(GLOBAL uint16_t *p, const PRIVATE float *x, uint32_t turned,
		 uint32_t is_aligned)
{
	uint64_t halves[2] = {0, 0};
	uint32_t i;

	UNROLL
	for (i = 0; i < INV_ROPE_EACH; i++) {
		const uint64_t value =
			turned ? g_bf16_bits(x[i]) : g_bits(x[i]) >> 16;

		halves[i / 4] |= value << 16 * (i % 4);
	}
	if (is_aligned) {
		((GLOBAL uint64_t *)p)[0] = halves[0];
		((GLOBAL uint64_t *)p)[1] = halves[1];
	} else {
		UNROLL
		for (i = 0; i < INV_ROPE_EACH; i++)
			p[i] = (uint16_t)(halves[i / 4] >> 16 * (i % 4));
	}
}

/* Does a head of a token: its values if it is `there`, else zeros. For a
 * padding token, without `is_token`, it writes scales alone. Scales go to
 * `scale_to`, if the head exists (`writes`). All threads of the subgroup call
 * it. */
FN void
inv_rope_head(GLOBAL const uint16_t *from, GLOBAL const float *cos_sin,
	      uint32_t position, GLOBAL uint8_t *out, int64_t to,
	      GLOBAL uint32_t *scale_to, uint32_t is_token, uint32_t there,
	      uint32_t writes, const PRIVATE spmla_k_inv_rope_quant_scalars *s)
{
	const uint32_t lane = g_item() % INV_ROPE_LANES;
	const uint32_t turns = s->has_rope && there && lane >= 8;
	uint32_t w[4 * INV_ROPE_SCALES], i, j, own = 0, word = 0;
	float c[8], sine[8];

	UNROLL
	for (j = 0; j < INV_ROPE_SCALES; j++) {
		w[4 * j] = w[4 * j + 1] = w[4 * j + 2] = w[4 * j + 3] = 0;
		if (is_token)
			g_row_load8(from + INV_ROPE_EACH *
						    (INV_ROPE_LANES * j + lane),
				    s->o_aligned, w + 4 * j);
	}
	inv_rope_factors(cos_sin, position, turns, s->neox, s->rope_form, c,
			 sine);
	UNROLL
	for (j = 0; j < INV_ROPE_SCALES; j++) {
		const uint32_t is_last = j + 1 == INV_ROPE_SCALES;
		const int64_t at =
			to + INV_ROPE_EACH * (INV_ROPE_LANES * j + lane);
		float x[INV_ROPE_EACH], scale;

		UNROLL
		for (i = 0; i < 4; i++)
			g_row_values(there ? w[4 * j + i] : 0, SPMLA_DTYPE_BF16,
				     x + 2 * i);
		if (s->has_rope && is_last)
			inv_rope_turn(x, c, sine, turns, s->neox);
		if (s->bf16) {
			if (is_token)
				inv_rope_store16((GLOBAL uint16_t *)out + at, x,
						 is_last && turns,
						 s->out_aligned);
			continue;
		}
		scale = inv_rope_scale(x);
		if (is_token)
			inv_rope_store8(out + at, x, scale, s->out_aligned);
		scale = there ? scale : 0.0f;
		own = lane == j ? g_bits(scale) : own;
		word |= g_bits(scale) >> 23 << 8 * j;
	}
	if (s->bf16 || !writes)
		return;
	if (s->packed && lane == 0)
		*scale_to = word;
	else if (!s->packed && lane < INV_ROPE_SCALES)
		scale_to[lane * s->scale_stride] = own;
}

SPMLA_KERNEL(inv_rope_quant)
void
spmla_k_inv_rope_quant(SPMLA_KERNEL_ARGS(inv_rope_quant))
{
	const uint32_t heads = s.groups * s.heads_per_group;
	const uint32_t tiles = (heads - 1) / INV_ROPE_HEADS + 1;
	const uint64_t units =
		(uint64_t)((s.tokens - 1) / INV_ROPE_TOKENS + 1) * tiles;
	const uint32_t row = g_item() / INV_ROPE_LANES;
	uint64_t unit;

	for (unit = g_block(); unit < units; unit += g_blocks()) {
		const uint32_t h = (uint32_t)(unit % tiles) * INV_ROPE_HEADS +
				   row / INV_ROPE_TOKENS;
		const uint32_t t = (uint32_t)(unit / tiles) * INV_ROPE_TOKENS +
				   row % INV_ROPE_TOKENS;
		const uint32_t group = h / s.heads_per_group;
		const uint32_t head = h % s.heads_per_group;
		const uint32_t is_head = h < heads;
		const uint32_t is_token = is_head && t < s.tokens;
		const uint32_t position =
			s.has_rope && is_token
				? (uint32_t)g_position(positions,
						       s.positions_wide, t)
				: 0;
		const uint32_t is_lost =
			s.has_rope && position >= s.cos_sin_rows;

		if (is_lost && h == 0 && g_item() % INV_ROPE_LANES == 0)
			g_fault(fault_state, fault_status, t, G_FAULT_POSITION);
		inv_rope_head(o + (int64_t)t * s.o_token_stride +
				      (int64_t)h * s.o_head_stride,
			      cos_sin, position, out,
			      (int64_t)t * s.out_token_stride +
				      (int64_t)group * s.out_group_stride +
				      head * SPMLA_V4_DIM,
			      scales + (int64_t)group * s.scale_group_stride +
				      (int64_t)head *
					      (s.packed ? 1 : INV_ROPE_SCALES) *
					      s.scale_stride +
				      t,
			      is_token, is_token && !is_lost, is_head, &s);
	}
}

#endif
#endif
