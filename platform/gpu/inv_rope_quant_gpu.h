/* SPDX-License-Identifier: Apache-2.0
 *
 * inv_rope_quant: a block takes a head of four tokens at a time, 16 lanes each
 * of the 16 groups of 128 values, 8 values (16 bytes) an item. Four tokens,
 * because their scales lie side by side: they are written together, those that
 * pad the number of tokens too. Every s is a power of two from 2^-42 on, so its
 * inverse is one, and the product has the bits of the quotient.
 */
#ifndef SPMLA_PLATFORM_GPU_INV_ROPE_QUANT_H
#define SPMLA_PLATFORM_GPU_INV_ROPE_QUANT_H

#include "spmla/platform/gpu/fault_gpu.h"

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
	S(uint32_t, cos_sin_aligned)
SPMLA_KERNEL_SCALARS(inv_rope_quant)

enum {
	INV_ROPE_TOKENS = 4,
	INV_ROPE_EACH = 8,  /* values of an item */
	INV_ROPE_SCALES = 4 /* of a head */
};

#ifdef SPMLA_GPU_KERNELS

/* 8 bf16 values at p. */
FN void
inv_rope_load(PRIVATE float *x, GLOBAL const uint16_t *p, uint32_t is_aligned)
{
	uint32_t words[4], i;

	if (is_aligned) {
		g_load4((GLOBAL const float *)p, words);
	} else {
		UNROLL
		for (i = 0; i < 4; i++)
			words[i] = (uint32_t)p[2 * i + 1] << 16 | p[2 * i];
	}
	UNROLL
	for (i = 0; i < 4; i++) {
		x[2 * i] = g_bf16_to_f32(words[i] & 0xffffu);
		x[2 * i + 1] = g_float(words[i] & 0xffff0000u);
	}
}

/* Four cosines or sines at p. */
FN void
inv_rope_angles(PRIVATE float *to, GLOBAL const float *p, uint32_t is_aligned)
{
	uint32_t words[4], i;

	if (is_aligned) {
		g_load4(p, words);
	} else {
		UNROLL
		for (i = 0; i < 4; i++)
			words[i] = g_bits(p[i]);
	}
	UNROLL
	for (i = 0; i < 4; i++)
		to[i] = g_float(words[i]);
}

/* Rotates the item's 8 values back if it `turns`: it has some of the last 64 of
 * a head, as lane 8 .. 15 of the last 128 values. `row` is the position's.
 * INTERLEAVED: four pairs are the item's own. NEOX: partners are those of the
 * lane 4 away, so all lanes come here. */
FN void
inv_rope_turn(PRIVATE float *x, GLOBAL const float *row, uint32_t turns,
	      uint32_t neox, uint32_t is_aligned)
{
	const uint32_t own = g_item() % 8; /* eighth of the 64 */
	const uint32_t at = neox ? own % 4 * 8 : own * 4;
	float c[8], sine[8];
	uint32_t i;

	UNROLL
	for (i = 0; i < 8; i++)
		c[i] = sine[i] = 0.0f;
	if (turns) {
		inv_rope_angles(c, row + at, is_aligned);
		inv_rope_angles(sine, row + 32 + at, is_aligned);
	}
	if (!neox) {
		UNROLL
		for (i = 0; turns && i < 4; i++) {
			const float a = x[2 * i], b = x[2 * i + 1];

			x[2 * i] = a * c[i] + b * sine[i];
			x[2 * i + 1] = b * c[i] - a * sine[i];
		}
		return;
	}
	if (turns) {
		inv_rope_angles(c + 4, row + at + 4, is_aligned);
		inv_rope_angles(sine + 4, row + 32 + at + 4, is_aligned);
	}
	UNROLL
	for (i = 0; i < 8; i++) {
		const float other = g_shuffle_xor_f(x[i], 4);
		const float near = x[i] * c[i], far = other * sine[i];

		if (turns)
			x[i] = own < 4 ? near + far : near - far;
	}
}

/* The scale of the 128 values of 16 lanes, and of all of them the same. */
FN float
inv_rope_scale(const PRIVATE float *x)
{
	float most = 1e-10f;
	uint32_t mask, i;

	UNROLL
	for (i = 0; i < INV_ROPE_EACH; i++) {
		const float a = g_abs(x[i]);

		most = a > most ? a : most; /* of a NaN: no */
	}
	UNROLL
	for (mask = 8; mask; mask >>= 1) {
		const float a = g_shuffle_xor_f(most, mask);

		most = a > most ? a : most;
	}
	return g_pow2_up(most * (1.0f / 448.0f));
}

/* 8 values as e4m3 at p, a multiple of 8 if `is_aligned`. */
FN void
inv_rope_store8(GLOBAL uint8_t *p, const PRIVATE float *x, float scale,
		uint32_t is_aligned)
{
	const uint32_t biased = g_bits(scale) >> 23;
	const float inverse = g_float(biased < 254 ? (254 - biased) << 23
						   : 0); /* of +inf 0 */
	uint64_t codes = 0;
	uint32_t i;

	UNROLL
	for (i = 0; i < INV_ROPE_EACH; i++)
		codes |= (uint64_t)g_f32_to_e4m3(x[i] * inverse) << 8 * i;
	if (is_aligned) {
		*(GLOBAL uint64_t *)p = codes;
	} else {
		UNROLL
		for (i = 0; i < INV_ROPE_EACH; i++)
			p[i] = (uint8_t)(codes >> 8 * i);
	}
}

/* 8 values as bf16; those that did not turn are bf16 already, NaN or not. */
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

/* The block's 16 scales, [4 of a head][4 tokens], where `to` is the head's
 * first of the first token. A barrier at both ends. */
FN void
inv_rope_scales(GLOBAL uint32_t *to, int64_t stride, float scale,
		uint32_t packed, LOCAL float *all)
{
	const uint32_t i = g_item(), token = i % INV_ROPE_TOKENS;
	uint32_t word = 0, j;

	BARRIER();
	if (i % 16 == 0)
		all[i / 16 % INV_ROPE_SCALES * INV_ROPE_TOKENS + i / 64] =
			scale;
	BARRIER();
	if (packed && i < INV_ROPE_TOKENS) {
		UNROLL
		for (j = 0; j < INV_ROPE_SCALES; j++)
			word |= g_bits(all[j * INV_ROPE_TOKENS + i]) >>
				23 << 8 * j;
		to[i] = word;
	} else if (!packed && i < INV_ROPE_TOKENS * INV_ROPE_SCALES) {
		to[(int64_t)(i / INV_ROPE_TOKENS) * stride + token] =
			g_bits(all[i]);
	}
}

SPMLA_KERNEL(inv_rope_quant)
{
	LOCAL_ARRAY(float, all, INV_ROPE_TOKENS *INV_ROPE_SCALES);
	const uint32_t heads = s.groups * s.heads_per_group;
	const uint64_t units =
		(uint64_t)((s.tokens - 1) / INV_ROPE_TOKENS + 1) * heads;
	/* The item's values of a head, and its token of four. */
	const uint32_t at = g_item() % 64 * INV_ROPE_EACH;
	const uint32_t own = g_item() / 64;
	uint64_t unit;

	for (unit = g_block(); unit < units; unit += g_blocks()) {
		const uint32_t h = (uint32_t)(unit % heads);
		const uint32_t first =
			(uint32_t)(unit / heads) * INV_ROPE_TOKENS;
		const uint32_t t = first + own;
		const uint32_t group = h / s.heads_per_group;
		const uint32_t head = h % s.heads_per_group;
		const uint32_t is_token = t < s.tokens;
		const uint32_t position =
			s.has_rope && is_token ? (uint32_t)positions[t] : 0;
		const uint32_t is_lost =
			s.has_rope && position >= s.cos_sin_rows;
		const uint32_t is_there = is_token && !is_lost;
		const uint32_t turns =
			s.has_rope && is_there && at >= SPMLA_V4_NOPE;
		const int64_t to = (int64_t)t * s.out_token_stride +
				   (int64_t)group * s.out_group_stride +
				   head * SPMLA_V4_DIM + at;
		float x[INV_ROPE_EACH] = {0.0f, 0.0f, 0.0f, 0.0f,
					  0.0f, 0.0f, 0.0f, 0.0f};
		float scale;

		if (is_lost && h == 0 && at == 0)
			g_fault(fault_state, fault_status, t, G_FAULT_POSITION);
		if (is_there)
			inv_rope_load(x,
				      o + (int64_t)t * s.o_token_stride +
					      (int64_t)h * s.o_head_stride + at,
				      s.o_aligned);
		if (s.has_rope)
			inv_rope_turn(
				x, cos_sin + (uint64_t)position * SPMLA_V4_ROPE,
				turns, s.neox, s.cos_sin_aligned);
		if (s.bf16) {
			if (is_token)
				inv_rope_store16((GLOBAL uint16_t *)out + to, x,
						 turns, s.out_aligned);
			continue;
		}
		scale = inv_rope_scale(x);
		if (is_token)
			inv_rope_store8(out + to, x, scale, s.out_aligned);
		inv_rope_scales(
			scales + (int64_t)group * s.scale_group_stride +
				(int64_t)head *
					(s.packed ? 1 : INV_ROPE_SCALES) *
					s.scale_stride +
				first,
			s.scale_stride, is_there ? scale : 0.0f, s.packed, all);
	}
}

#endif
#endif
