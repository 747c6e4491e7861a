/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of tiles, C += A B of 16 x 16, by the matrix instructions of AMD's
 * and Intel's GPUs: operands in bf16, sums in f32. CUDA's are in mma.h. The
 * hard idea: all of these instructions place operands in the registers of a
 * subgroup alike. lane % 16 is the column of B and C, and the row of A. Two
 * functions cover what differs: which rows of C, and which k, a lane has. Only
 * dpas has A by columns.
 *
 * MFMA (gfx90a, 942, 950): 64 lanes. WMMA: 32; on gfx11 both halves of the
 * lanes have the same A and B. dpas: 16. In the emulator the width decides. */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_TILE_H
#define SPMLA_PLATFORM_GPU_DIALECT_TILE_H

#include "spmla/platform/gpu/dialect/dialect.h"

enum { G_TILE = 16 }; /* rows, columns and k */

enum { G_TILE_DPAS, G_TILE_WMMA11, G_TILE_WMMA12, G_TILE_MFMA };

/* Lanes that have a tile, the kind of instruction, words of A or B in a lane,
 * and sums in a lane. Arrays of words have the most that a kind needs; loops
 * end at g_tile_words and g_tile_sums. */
#if defined(__OPENCL_C_VERSION__)
#define G_TILE_KIND G_TILE_DPAS
enum { G_TILE_LANES = 16, G_TILE_WORDS = 8, G_TILE_SUMS = 16 };
#elif defined(__HIP__) && defined(__GFX11__)
#define G_TILE_KIND G_TILE_WMMA11
enum { G_TILE_LANES = 32, G_TILE_WORDS = 8, G_TILE_SUMS = 8 };
#elif defined(__HIP__) && defined(__GFX12__)
#define G_TILE_KIND G_TILE_WMMA12
enum { G_TILE_LANES = 32, G_TILE_WORDS = 4, G_TILE_SUMS = 8 };
#elif defined(__HIP__)
#define G_TILE_KIND G_TILE_MFMA
enum { G_TILE_LANES = 64, G_TILE_WORDS = 2, G_TILE_SUMS = 4 };
#else /* the emulator: the fewest lanes, the most words */
#define G_TILE_KIND spmla_i_emu_tile_kind()
enum { G_TILE_LANES = 16, G_TILE_WORDS = 8, G_TILE_SUMS = 16 };

/* Functions of tests/emulator: the kind, the instruction, and dpas itself,
 * which has 8 rows. */
uint32_t spmla_i_emu_tile_kind(void);
void spmla_i_emu_dpas(float *c, const uint32_t *a, const uint32_t *b);
void spmla_i_emu_tile(float *c, const uint32_t *a, const uint32_t *b);
#endif

#ifdef SPMLA_GPU_KERNELS

/* The kind of instruction, as a constant. */
FN uint32_t
g_tile_kind(void)
{
	return G_TILE_KIND;
}

/* The width of the subgroup, as a constant. */
FN uint32_t
g_tile_lanes(void)
{
#if defined(__OPENCL_C_VERSION__) || defined(__HIP__)
	return G_TILE_LANES;
#else
	return g_width();
#endif
}

FN uint32_t
g_tile_sums(void)
{
	return G_TILE * G_TILE / g_tile_lanes();
}

FN uint32_t
g_tile_words(void)
{
	return g_tile_kind() == G_TILE_WMMA11 ? 8 : 128 / g_tile_lanes();
}

/* The number of the item's subgroup in its block. The compiler, too, knows that
 * it is the same in all lanes, so that no branch on it leaves lanes out. */
FN uint32_t
g_tile_subgroup(void)
{
#if defined(__HIP__)
	return (uint32_t)__builtin_amdgcn_readfirstlane(
		(int)(g_item() / G_TILE_LANES));
#else
	return g_item() / g_tile_lanes();
#endif
}

/* The lane's row of A, and column of B and C. */
FN uint32_t
g_tile_lane(void)
{
	return g_item() % G_TILE;
}

/* The row of the lane's sum i. */
FN uint32_t
g_tile_row(uint32_t i)
{
	const uint32_t part = g_item() % g_tile_lanes() / G_TILE;

	return g_tile_kind() == G_TILE_WMMA11 ? 2 * i + part
					      : g_tile_sums() * part + i;
}

/* The first k of word w of A and B. The word has the next k, too. */
FN uint32_t
g_tile_k(uint32_t w)
{
	const uint32_t part = g_item() % g_tile_lanes() / G_TILE;

	return g_tile_kind() == G_TILE_WMMA11 ? 2 * w
					      : 2 * (g_tile_words() * part + w);
}

/* A lane's words of the row at `from`, a multiple of 8 bytes. */
FN void
g_tile_read(LOCAL const uint16_t *from, PRIVATE uint32_t *x)
{
	LOCAL const uint32_t *words =
		(LOCAL const uint32_t *)(from + g_tile_k(0));
	uint32_t w;

	UNROLL
	for (w = 0; w < g_tile_words(); w++)
		x[w] = words[w];
}

/* A: row r, k 0 .. 15, begins at rows + r stride. stride is a multiple of 4. */
FN void
g_tile_a(LOCAL const uint16_t *rows, uint32_t stride, PRIVATE uint32_t *a)
{
	uint32_t w;

	if (g_tile_kind() != G_TILE_DPAS) {
		g_tile_read(rows + g_tile_lane() * stride, a);
		return;
	}
	UNROLL
	for (w = 0; w < 8; w++) {
		LOCAL const uint16_t *at =
			rows + 2 * w * stride + g_tile_lane();

		a[w] = at[0] | (uint32_t)at[stride] << 16;
	}
}

/* B: column n begins at columns + n stride. */
FN void
g_tile_b(LOCAL const uint16_t *columns, uint32_t stride, PRIVATE uint32_t *b)
{
	g_tile_read(columns + g_tile_lane() * stride, b);
}

/* Two B tiles from 16 rows of 32 columns: row k begins at rows + k stride.
 * `even` gets the even columns, `odd` the odd ones. */
FN void
g_tile_b_pair(LOCAL const uint16_t *rows, uint32_t stride,
	      PRIVATE uint32_t *even, PRIVATE uint32_t *odd)
{
	uint32_t w;

	/* gfx11 has twice the words that lanes need. The words of several tiles
	 * at once would not fit in registers. */
#if defined(__HIP__) && defined(__GFX11__)
	__builtin_amdgcn_sched_barrier(0);
#endif
	UNROLL
	for (w = 0; w < g_tile_words(); w++) {
		LOCAL const uint16_t *at =
			rows + g_tile_k(w) * stride + 2 * g_tile_lane();
		const uint32_t x = *(LOCAL const uint32_t *)at;
		const uint32_t y = *(LOCAL const uint32_t *)(at + stride);

		even[w] = (x & 0xffffu) | y << 16;
		odd[w] = x >> 16 | (y & 0xffff0000u);
	}
}

/* c += A B. All lanes of the subgroup call it. The order in which an
 * instruction adds is not documented; MFMA on gfx90a takes subnormal operands
 * and sums as 0. */
#if defined(__OPENCL_C_VERSION__)

float8 __attribute__((overloadable))
intel_sub_group_bf16_bf16_matrix_mad_k16(short8 a, int8 b, float8 c);

/* One instruction has 8 rows of A. */
FN void
g_tile_bf16(PRIVATE float *c, const PRIVATE uint32_t *a,
	    const PRIVATE uint32_t *b)
{
	const int8 y = as_int8(
		(uint8)(b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]));
	uint32_t i;

	UNROLL
	for (i = 0; i < 2; i++, a += 4, c += 8) {
		const short8 x = as_short8((uint4)(a[0], a[1], a[2], a[3]));
		const float8 sums = intel_sub_group_bf16_bf16_matrix_mad_k16(
			x, y,
			(float8)(c[0], c[1], c[2], c[3], c[4], c[5], c[6],
				 c[7]));

		c[0] = sums.s0;
		c[1] = sums.s1;
		c[2] = sums.s2;
		c[3] = sums.s3;
		c[4] = sums.s4;
		c[5] = sums.s5;
		c[6] = sums.s6;
		c[7] = sums.s7;
	}
}

#elif defined(__HIP__)

#define TILE_VECTOR(type, n) type __attribute__((ext_vector_type(n)))
typedef TILE_VECTOR(uint32_t, G_TILE_WORDS) tile_words;
typedef TILE_VECTOR(short, 2 * G_TILE_WORDS) tile_bf16;
typedef TILE_VECTOR(float, G_TILE_SUMS) tile_sums;
#undef TILE_VECTOR

FN void
g_tile_bf16(PRIVATE float *c, const PRIVATE uint32_t *a,
	    const PRIVATE uint32_t *b)
{
	tile_words left, right;
	tile_bf16 x, y;
	tile_sums sums;
	uint32_t i;

	UNROLL
	for (i = 0; i < G_TILE_WORDS; i++) {
		left[i] = a[i];
		right[i] = b[i];
	}
	UNROLL
	for (i = 0; i < G_TILE_SUMS; i++)
		sums[i] = c[i];
	x = __builtin_bit_cast(tile_bf16, left);
	y = __builtin_bit_cast(tile_bf16, right);
#if defined(__GFX11__)
	sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(x, y, sums);
#elif defined(__GFX12__)
	sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(x, y, sums);
#else
	sums = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, sums, 0, 0, 0);
#endif
	UNROLL
	for (i = 0; i < G_TILE_SUMS; i++)
		c[i] = sums[i];
}

#else /* the emulator */

FN void
g_tile_bf16(float *c, const uint32_t *a, const uint32_t *b)
{
	spmla_i_emu_tile(c, a, b);
}

#endif
#endif
#endif
