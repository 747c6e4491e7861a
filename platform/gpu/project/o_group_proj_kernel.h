/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj: a block takes 32 columns of a group for 8 tokens. Eight threads
 * share two columns; each has 16 of every 128 values, which is one wide load of
 * e4m3. The hard idea is that threads are laid out by the contract's order of
 * sums: a thread adds its products in order, then a tree adds up the eight
 * threads. In each step of the tree a thread hands over half of its sums, 16 at
 * first (8 tokens, 2 columns). So thread j is left with the sums of token j,
 * and keeps their totals in registers. o passes through shared memory as bf16,
 * which holds e4m3 exactly, with four tokens in 8 bytes. Products are exact, so
 * g_fma rounds as the contract's sum does.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_KERNEL_H

#include "spmla/platform/gpu/dialect/divide.h"
#include "spmla/platform/gpu/dialect/mxfp4.h"

/* The parameters of all kernels of o_group_proj. Tiles of the kernel that runs:
 * token_tiles along the tokens, column_tiles along a group's columns, tiles in
 * all. */
#define SPMLA_K_o_group_proj(P, S)       \
	P(const uint8_t, o)              \
	P(const uint32_t, o_scales)      \
	P(const uint8_t, w)              \
	P(const float, w_scales)         \
	P(uint16_t, z)                   \
	S(int64_t, o_token_stride)       \
	S(int64_t, o_group_stride)       \
	S(int64_t, o_scale_stride)       \
	S(int64_t, o_scale_group_stride) \
	S(int64_t, w_group_stride)       \
	S(int64_t, w_row_stride)         \
	S(int64_t, w_scale_group_stride) \
	S(int64_t, w_scale_row_stride)   \
	S(int64_t, z_token_stride)       \
	S(int64_t, z_group_stride)       \
	S(spmla_g_divisor, token_tiles)  \
	S(spmla_g_divisor, column_tiles) \
	S(uint64_t, tiles)               \
	S(uint32_t, tokens)              \
	S(uint32_t, inner)               \
	S(uint32_t, columns)             \
	S(uint32_t, packed)              \
	S(uint32_t, w_aligned)           \
	S(uint32_t, z_aligned)
SPMLA_KERNEL_SCALARS(o_group_proj)
#define SPMLA_K_o_group_proj_bf16(P, S) SPMLA_K_o_group_proj(P, S)
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_bf16_scalars;

enum {
	O_PROJ_ITEMS = 128,
	O_PROJ_TOKENS = 8, /* of a block at a time */
	O_PROJ_COLUMNS = 32
};

#ifdef SPMLA_GPU_KERNELS

enum {
	O_PROJ_PART = 128, /* values with one scale */
	O_PROJ_LANES = 8,  /* threads that share a part */
	O_PROJ_EACH = 16,  /* values of a thread in a part */
	/* Parts loaded at once: 128 bytes of the matrix a thread. */
	O_PROJ_SLAB = 4,
	O_PROJ_SLAB16 = 2, /* the same for bf16 */
	/* After each 16 values is a gap of one place, so that the eight threads
	 * read different banks. */
	O_PROJ_ROW = O_PROJ_SLAB * O_PROJ_PART / 16 * 17,
	O_PROJ_WORDS = O_PROJ_SLAB * 4 /* words of a column in a thread */
};

/* Loads 16 bytes; `is_aligned`: p is a multiple of 16. */
FN void
o_proj_load(PRIVATE uint32_t *words, GLOBAL const uint8_t *p,
	    uint32_t is_aligned)
{
	uint32_t i;

	if (is_aligned) {
		g_load4((GLOBAL const float *)p, words);
	} else {
		UNROLL
		for (i = 0; i < 4; i++)
			words[i] = (uint32_t)p[4 * i] |
				   (uint32_t)p[4 * i + 1] << 8 |
				   (uint32_t)p[4 * i + 2] << 16 |
				   (uint32_t)p[4 * i + 3] << 24;
	}
}

FN void
o_proj_none(PRIVATE uint32_t *words)
{
	words[0] = words[1] = words[2] = words[3] = 0;
}

/* The bits of an e4m3 code, moved to where f32 has them, are the value times
 * 2^-120; that holds for subnormals, too, but not for NaN. This is shorter than
 * g_e4m3_to_f32, which keeps the sign of a NaN. */
FN float
o_proj_e4m3(uint32_t code)
{
	const float x =
		g_float((code & 0x80u) << 24 | (code & 0x7fu) << 20) * 0x1p120f;

	return (code & 0x7fu) == 0x7fu ? G_NAN : x;
}

/* Value i of the thread's 16 in part b of a slab. `words` are the thread's
 * words of one column of the slab. */
FN float
o_proj_value(const PRIVATE uint32_t *words, uint32_t b, uint32_t i,
	     uint32_t fp8)
{
	if (fp8)
		return o_proj_e4m3(words[4 * b + i / 4] >> 8 * (i % 4) & 0xffu);
	return i % 2 ? g_float(words[8 * b + i / 2] & 0xffff0000u)
		     : g_bf16_to_f32(words[8 * b + i / 2] & 0xffffu);
}

/* Copies values [0, n) of up to 8 tokens to shared memory, as bf16:
 * [2][O_PROJ_ROW], of four tokens each; zeros for tokens that are not there. */
FN void
o_proj_rows(GLOBAL const uint8_t *o, int64_t stride, uint32_t tokens,
	    uint32_t n, uint32_t fp8, LOCAL uint64_t *rows)
{
	uint32_t e, t;

	for (e = g_item(); e < 2 * n; e += O_PROJ_ITEMS) {
		const uint32_t i = e % n, first = e / n * 4;
		uint64_t four = 0;

		UNROLL
		for (t = 0; t < 4; t++) {
			const int64_t at = (int64_t)(first + t) * stride + i;
			uint32_t half_word = 0;

			if (first + t < tokens && fp8)
				half_word = g_bits(o_proj_e4m3(o[at])) >> 16;
			else if (first + t < tokens)
				half_word = ((GLOBAL const uint16_t *)o)[at];
			four |= (uint64_t)half_word << 16 * t;
		}
		rows[e / n * O_PROJ_ROW + i / 16 * 17 + i % 16] = four;
	}
}

/* Adds up the thread's products of part b, from 0 on: sums[8 tokens][2
 * columns]. */
FN void
o_proj_part(LOCAL const uint64_t *rows, const PRIVATE uint32_t *low,
	    const PRIVATE uint32_t *high, uint32_t b, uint32_t fp8,
	    PRIVATE float *sums)
{
	LOCAL const uint64_t *row =
		rows + (b * O_PROJ_LANES + g_item() % O_PROJ_LANES) * 17;
	uint32_t i, t;

	UNROLL
	for (t = 0; t < 2 * O_PROJ_TOKENS; t++)
		sums[t] = 0.0f;
	UNROLL
	for (i = 0; i < O_PROJ_EACH; i++) {
		const uint64_t four[2] = {row[i], row[O_PROJ_ROW + i]};
		const float x = o_proj_value(low, b, i, fp8);
		const float y = o_proj_value(high, b, i, fp8);

		UNROLL
		for (t = 0; t < O_PROJ_TOKENS; t++) {
			const float v = g_bf16_to_f32(
				(uint32_t)(four[t / 4] >> 16 * (t % 4)) &
				0xffffu);

			sums[2 * t] = g_fma(v, x, sums[2 * t]);
			sums[2 * t + 1] = g_fma(v, y, sums[2 * t + 1]);
		}
	}
}

/* Adds up the sums of the eight threads. Thread j is left with the two sums of
 * token j, in sums[0] and sums[1]. */
FN void
o_proj_tree(PRIVATE float *sums)
{
	const uint32_t lane = g_item() % O_PROJ_LANES;
	uint32_t i;

#define O_PROJ_STEP(step)                                               \
	UNROLL                                                          \
	for (i = 0; i < 2 * (step); i++) {                              \
		const float keep =                                      \
			lane & (step) ? sums[i + 2 * (step)] : sums[i]; \
		const float give =                                      \
			lane & (step) ? sums[i] : sums[i + 2 * (step)]; \
                                                                        \
		sums[i] = keep + g_shuffle_xor_f(give, (step));         \
	}
	O_PROJ_STEP(4u)
	O_PROJ_STEP(2u)
	O_PROJ_STEP(1u)
#undef O_PROJ_STEP
}

/* The scale of part b of the thread's token. `scales` points at the token's
 * scale of the group's first part. */
FN float
o_proj_o_scale(GLOBAL const uint32_t *scales, int64_t stride, uint32_t b,
	       uint32_t packed)
{
	if (packed)
		return g_pow2(scales[(int64_t)(b / 4) * stride] >> b % 4 * 8 &
			      0xffu);
	return g_float(scales[(int64_t)b * stride]);
}

/* Loads a slab, n parts, of the thread's two columns. `row` points at the first
 * one's values. */
FN void
o_proj_load_slab(GLOBAL const uint8_t *row, int64_t stride_bytes, uint32_t n,
		 uint32_t fp8, uint32_t aligned, PRIVATE uint32_t *low,
		 PRIVATE uint32_t *high)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < O_PROJ_SLAB; i++) {
		/* 16 bytes are the thread's share of a part; of bf16, half */
		const uint32_t is_there = fp8 ? i < n : i / 2 < n;
		GLOBAL const uint8_t *p =
			row + (fp8 ? i * O_PROJ_PART
				   : i / 2 * O_PROJ_PART * 2 + i % 2 * 16);

		if (!is_there) {
			o_proj_none(low + 4 * i);
			o_proj_none(high + 4 * i);
			continue;
		}
		o_proj_load(low + 4 * i, p, aligned);
		o_proj_load(high + 4 * i, p + stride_bytes, aligned);
	}
}

/* What the sums of a slab's n parts are multiplied by: the scale of token t
 * times the scale of the columns. */
FN void
o_proj_load_scales(GLOBAL const uint32_t *o_scales,
		   GLOBAL const float *w_scales,
		   const PRIVATE spmla_k_o_group_proj_scalars *s, uint32_t g,
		   uint32_t t, uint32_t column, uint32_t slab, uint32_t n,
		   PRIVATE float *scale)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < O_PROJ_SLAB; i++) {
		scale[i] = 1.0f;
		if (i >= n || t >= s->tokens)
			continue;
		scale[i] =
			o_proj_o_scale(o_scales +
					       (int64_t)g *
						       s->o_scale_group_stride +
					       t,
				       s->o_scale_stride, slab + i, s->packed) *
			w_scales[(int64_t)g * s->w_scale_group_stride +
				 (int64_t)(column / O_PROJ_PART) *
					 s->w_scale_row_stride +
				 slab + i];
	}
}

/* Adds a slab's n parts to the sums of the thread's token and columns. */
FN void
o_proj_slab(LOCAL const uint64_t *rows, const PRIVATE uint32_t *low,
	    const PRIVATE uint32_t *high, const PRIVATE float *scale,
	    uint32_t n, uint32_t fp8, PRIVATE float *total)
{
	uint32_t b;

	UNROLL
	for (b = 0; b < (fp8 ? O_PROJ_SLAB : O_PROJ_SLAB16); b++) {
		float sums[2 * O_PROJ_TOKENS];

		if (b >= n)
			break;
		o_proj_part(rows, low, high, b, fp8, sums);
		o_proj_tree(sums);
		total[0] += sums[0] * (fp8 ? scale[b] : 1.0f);
		total[1] += sums[1] * (fp8 ? scale[b] : 1.0f);
	}
}

/* Both kernels; `fp8` is a constant. */
FN void
o_proj_all(GLOBAL const uint8_t *o, GLOBAL const uint32_t *o_scales,
	   GLOBAL const uint8_t *w, GLOBAL const float *w_scales,
	   GLOBAL uint16_t *z, const PRIVATE spmla_k_o_group_proj_scalars *s,
	   uint32_t fp8, LOCAL uint64_t *rows)
{
	const uint32_t most = fp8 ? O_PROJ_SLAB : O_PROJ_SLAB16;
	const uint32_t bytes = fp8 ? 1 : 2;
	const uint32_t parts = s->inner / O_PROJ_PART;
	const uint32_t groups_of_tokens = (s->tokens - 1) / O_PROJ_TOKENS + 1;
	const uint32_t tiles = s->columns / O_PROJ_COLUMNS;
	const uint32_t lane = g_item() % O_PROJ_LANES;
	uint64_t unit;

	for (unit = g_block(); unit < s->tiles; unit += g_blocks()) {
		const uint32_t first =
			(uint32_t)(unit % groups_of_tokens) * O_PROJ_TOKENS;
		const uint32_t column =
			(uint32_t)(unit / groups_of_tokens % tiles) *
				O_PROJ_COLUMNS +
			g_item() / O_PROJ_LANES * 2;
		const uint32_t g = (uint32_t)(unit / groups_of_tokens / tiles);
		const uint32_t t = first + lane;
		const uint32_t is_token = t < s->tokens;
		GLOBAL const uint8_t *x =
			o +
			(int64_t)bytes * ((int64_t)first * s->o_token_stride +
					  (int64_t)g * s->o_group_stride);
		GLOBAL const uint8_t *row =
			w +
			(int64_t)bytes * ((int64_t)g * s->w_group_stride +
					  (int64_t)column * s->w_row_stride +
					  lane * O_PROJ_EACH);
		float total[2] = {0.0f, 0.0f};
		uint32_t slab;

		for (slab = 0; slab < parts; slab += most) {
			const uint32_t n =
				parts - slab < most ? parts - slab : most;
			uint32_t low[O_PROJ_WORDS], high[O_PROJ_WORDS];
			float scale[O_PROJ_SLAB];

			o_proj_load_slab(row, (int64_t)bytes * s->w_row_stride,
					 n, fp8, s->w_aligned, low, high);
			if (fp8)
				o_proj_load_scales(o_scales, w_scales, s, g, t,
						   column, slab, n, scale);
			BARRIER();
			o_proj_rows(x, s->o_token_stride, s->tokens - first,
				    n * O_PROJ_PART, fp8, rows);
			BARRIER();
			o_proj_slab(rows, low, high, scale, n, fp8, total);
			x += n * O_PROJ_PART * bytes;
			row += n * O_PROJ_PART * bytes;
		}
		if (is_token) {
			GLOBAL uint16_t *to =
				z + (int64_t)t * s->z_token_stride +
				(int64_t)g * s->z_group_stride + column;

			to[0] = (uint16_t)g_bf16_bits(total[0]);
			to[1] = (uint16_t)g_bf16_bits(total[1]);
		}
	}
}

SPMLA_KERNEL(o_group_proj)
void
spmla_k_o_group_proj(SPMLA_KERNEL_ARGS(o_group_proj))
{
	LOCAL_ARRAY(uint64_t, rows, 2 * O_PROJ_ROW);

	o_proj_all(o, o_scales, w, w_scales, z, &s, 1, rows);
}

SPMLA_KERNEL(o_group_proj_bf16)
void
spmla_k_o_group_proj_bf16(SPMLA_KERNEL_ARGS(o_group_proj_bf16))
{
	LOCAL_ARRAY(uint64_t, rows, 2 * O_PROJ_ROW);

	o_proj_all(o, o_scales, w, w_scales, z, &s, 0, rows);
}

#endif
#endif
