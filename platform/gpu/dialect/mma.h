/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix instructions of subgroups of 32, as the dialect has them: PTX where
 * nvcc compiles, and for the emulator a model of the same fragments lane by
 * lane. A fragment of m16n8k16: lane 4 * g + t has rows g and g + 8 of A,
 * column g of B, and rows g and g + 8, columns 2t and 2t + 1, of C. Registers
 * pack two 16-bit values of neighbouring k.
 */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_MMA_H
#define SPMLA_PLATFORM_GPU_DIALECT_MMA_H

#include "spmla/platform/gpu/dialect/dialect.h"

#ifdef SPMLA_GPU_KERNELS

#if defined(__CUDACC__)

/* Loads 16 bytes of memory that nothing writes meanwhile. p is a multiple of
 * 16. */
FN void
g_load128(GLOBAL const void *p, PRIVATE uint32_t *x)
{
	asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, "
		     "[%4];"
		     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
		     : "l"(p));
}

/* The same if `is` is not 0, else zeros. The compiler moves this load across no
 * barrier; it may move g_load128 across one. */
FN void
g_load128_if(uint32_t is, GLOBAL const void *p, PRIVATE uint32_t *x)
{
	asm volatile("{.reg .pred p; setp.ne.u32 p, %4, 0; mov.b32 %0, 0; "
		     "mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; "
		     "@p ld.global.L1::no_allocate.v4.u32 "
		     "{%0, %1, %2, %3}, [%5];}"
		     : "=&r"(x[0]), "=&r"(x[1]), "=&r"(x[2]), "=&r"(x[3])
		     : "r"(is), "l"(p)
		     : "memory");
}

/* Stores 16 bytes, at a multiple of 16, by one instruction. Where values come
 * from asm, the compiler makes four stores of a g_store4. */
FN void
g_store128(GLOBAL void *p, const PRIVATE uint32_t *x)
{
	asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
		     :
		     : "l"(p), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
		     : "memory");
}

/* Orders shared memory among the items of a subgroup. */
FN void
g_subgroup_barrier(void)
{
	__syncwarp();
}

FN void
g_local_load128(LOCAL const void *p, PRIVATE uint32_t *x)
{
	const uint4 v = *(const uint4 *)p;

	x[0] = v.x;
	x[1] = v.y;
	x[2] = v.z;
	x[3] = v.w;
}

FN void
g_local_load64(LOCAL const void *p, PRIVATE uint32_t *x)
{
	const uint2 v = *(const uint2 *)p;

	x[0] = v.x;
	x[1] = v.y;
}

/* c += A * B, with A and B in f16 and sums in f32. */
FN void
g_mma_f16(PRIVATE float *c, const PRIVATE uint32_t *a,
	  const PRIVATE uint32_t *b)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
		     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
		     "{%0, %1, %2, %3};"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
		       "r"(b[1]));
}

FN void
g_mma_bf16(PRIVATE float *c, const PRIVATE uint32_t *a,
	   const PRIVATE uint32_t *b)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
		     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
		     "{%0, %1, %2, %3};"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
		       "r"(b[1]));
}

/* Two products of bf16, each rounded. Small results do not become 0: subnormals
 * are kept. */
FN uint32_t
g_mul_bf16x2(uint32_t a, uint32_t b)
{
	uint32_t x;

	asm("fma.rn.bf16x2 %0, %1, %2, %3;"
	    : "=r"(x)
	    : "r"(a), "r"(b), "r"(0x80008000u));
	return x;
}

/* Two products of f16, each rounded as by g_f32_to_f16. */
FN uint32_t
g_mul_f16x2(uint32_t a, uint32_t b)
{
	uint32_t x;

	asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(x) : "r"(a), "r"(b));
	return x;
}

/* a b + c of two f16 each, rounded once. */
FN uint32_t
g_fma_f16x2(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t x;

	asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(x) : "r"(a), "r"(b), "r"(c));
	return x;
}

/* The largest x of the subgroup. */
FN uint32_t
g_subgroup_largest(uint32_t x)
{
	uint32_t largest;

	asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;"
		     : "=r"(largest)
		     : "r"(x));
	return largest;
}

/* Four bytes chosen from a (bytes 0 to 3) and b (bytes 4 to 7). The four lower
 * hexadecimal digits of the selector choose them, the lowest first. */
FN uint32_t
g_bytes(uint32_t a, uint32_t b, uint32_t selector)
{
	return __byte_perm(a, b, selector);
}

/* The larger of the low halves and the larger of the high halves. */
FN uint32_t
g_larger_halves(uint32_t a, uint32_t b)
{
	return __vmaxu2(a, b);
}

/* Four 8 x 8 matrices of 16-bit values; lane l points at row l % 8 of matrix
 * l / 8. x[i] has row g, columns 2t and 2t + 1, of matrix i. */
FN void
g_load_matrices(LOCAL const uint16_t *row, PRIVATE uint32_t *x)
{
	const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
		     "{%0, %1, %2, %3}, [%4];"
		     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
		     : "r"(at)
		     : "memory");
}

/* The same, but x[i] has rows 2t and 2t + 1 of column g. */
FN void
g_load_transposed(LOCAL const uint16_t *row, PRIVATE uint32_t *x)
{
	const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
		     "{%0, %1, %2, %3}, [%4];"
		     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
		     : "r"(at)
		     : "memory");
}

/* The inverse of g_load_matrices; Hopper and later only. */
FN void
g_store_matrices(LOCAL uint16_t *row, const PRIVATE uint32_t *x)
{
	const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

	asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 "
		     "[%0], {%1, %2, %3, %4};"
		     :
		     : "r"(at), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
		     : "memory");
}

FN void
g_local_store128(LOCAL void *p, const PRIVATE uint32_t *x)
{
	*(uint4 *)p = make_uint4(x[0], x[1], x[2], x[3]);
}

/* Two f16 as f32, exact. */
FN void
g_f16x2_to_f32(uint32_t pair, PRIVATE float *low, PRIVATE float *high)
{
	asm("{.reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; "
	    "cvt.f32.f16 %1, h;}"
	    : "=f"(*low), "=f"(*high)
	    : "r"(pair));
}

#else /* the emulator */

FN void
g_load128(const void *p, uint32_t *x)
{
	memcpy(x, spmla_i_emu_wide(p, 16), 16);
}

FN void
g_load128_if(uint32_t is, const void *p, uint32_t *x)
{
	memset(x, 0, 16);
	if (is)
		memcpy(x, spmla_i_emu_wide(p, 16), 16);
}

FN void
g_store128(void *p, const uint32_t *x)
{
	g_store4(p, x);
}

FN void
g_subgroup_barrier(void)
{
	(void)spmla_i_emu_exchange(NULL, 0);
}

FN void
g_local_load128(const void *p, uint32_t *x)
{
	memcpy(x, spmla_i_emu_wide(p, 16), 16);
}

FN void
g_local_load64(const void *p, uint32_t *x)
{
	memcpy(x, spmla_i_emu_wide(p, 8), 8);
}

/* A function of tests/emulator: c += A * B. */
void spmla_i_emu_mma(float *c, const uint32_t *a, const uint32_t *b,
		     uint32_t is_bf16);

FN void
g_mma_f16(float *c, const uint32_t *a, const uint32_t *b)
{
	spmla_i_emu_mma(c, a, b, 0);
}

FN void
g_mma_bf16(float *c, const uint32_t *a, const uint32_t *b)
{
	spmla_i_emu_mma(c, a, b, 1);
}

FN uint32_t
g_mul_bf16x2(uint32_t a, uint32_t b)
{
	return g_f32_to_bf16x2(g_bf16_to_f32(a & 0xffffu) *
				       g_bf16_to_f32(b & 0xffffu),
			       g_bf16_to_f32(a >> 16) * g_bf16_to_f32(b >> 16));
}

/* Functions of tests/emulator. */
uint32_t spmla_i_emu_mul_f16x2(uint32_t a, uint32_t b);
uint32_t spmla_i_emu_fma_f16x2(uint32_t a, uint32_t b, uint32_t c);

FN uint32_t
g_mul_f16x2(uint32_t a, uint32_t b)
{
	return spmla_i_emu_mul_f16x2(a, b);
}

FN uint32_t
g_fma_f16x2(uint32_t a, uint32_t b, uint32_t c)
{
	return spmla_i_emu_fma_f16x2(a, b, c);
}

FN uint32_t
g_subgroup_largest(uint32_t x)
{
	const uint32_t *all = spmla_i_emu_exchange(&x, 1);
	uint32_t largest = 0, l;

	for (l = 0; l < 32; l++)
		largest = all[l] > largest ? all[l] : largest;
	return largest;
}

FN uint32_t
mma_byte(uint64_t from, uint32_t selector, uint32_t i)
{
	return (uint32_t)(from >> 8 * (selector >> 4 * i & 7u) & 0xffu)
	       << 8 * i;
}

FN uint32_t
g_bytes(uint32_t a, uint32_t b, uint32_t selector)
{
	const uint64_t from = (uint64_t)b << 32 | a;

	return mma_byte(from, selector, 0) | mma_byte(from, selector, 1) |
	       mma_byte(from, selector, 2) | mma_byte(from, selector, 3);
}

FN uint32_t
mma_larger(uint32_t a, uint32_t b, uint32_t bits)
{
	uint32_t x = 0, i;

	for (i = 0; i < 32; i += bits) {
		const uint32_t mask = ((1u << bits) - 1u) << i;

		x |= (a & mask) > (b & mask) ? a & mask : b & mask;
	}
	return x;
}

FN uint32_t
g_larger_halves(uint32_t a, uint32_t b)
{
	return mma_larger(a, b, 16);
}

/* The rows of the four matrices, by lane. */
FN void
mma_rows(const uint16_t *row, uint16_t **rows)
{
	const uint64_t at = (uint64_t)(uintptr_t)row;
	const uint32_t words[2] = {(uint32_t)at, (uint32_t)(at >> 32)};
	const uint32_t *v = spmla_i_emu_exchange(words, 2);
	uint32_t l;

	for (l = 0; l < 32; l++)
		rows[l] = (uint16_t *)(uintptr_t)((uint64_t)v[32 + l] << 32 |
						  v[l]);
}

FN void
g_load_matrices(const uint16_t *row, uint32_t *x)
{
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	uint16_t *rows[32];
	uint32_t i;

	mma_rows(row, rows);
	for (i = 0; i < 4; i++)
		x[i] = rows[8 * i + g][2 * t] |
		       (uint32_t)rows[8 * i + g][2 * t + 1] << 16;
}

FN void
g_load_transposed(const uint16_t *row, uint32_t *x)
{
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	uint16_t *rows[32];
	uint32_t i;

	mma_rows(row, rows);
	for (i = 0; i < 4; i++)
		x[i] = rows[8 * i + 2 * t][g] |
		       (uint32_t)rows[8 * i + 2 * t + 1][g] << 16;
}

/* Each lane writes its words to rows that other lanes gave. */
FN void
g_store_matrices(uint16_t *row, const uint32_t *x)
{
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	uint16_t *rows[32];
	uint32_t i;

	mma_rows(row, rows);
	for (i = 0; i < 4; i++)
		memcpy(rows[8 * i + g] + 2 * t, x + i, 4);
}

FN void
g_local_store128(void *p, const uint32_t *x)
{
	memcpy(spmla_i_emu_wide(p, 16), x, 16);
}

FN void
g_f16x2_to_f32(uint32_t pair, float *low, float *high)
{
	*low = g_fp16_to_f32(pair & 0xffffu);
	*high = g_fp16_to_f32(pair >> 16);
}

#endif

/* Eight e2m1 codes times 2^(scale - 127) as bf16, exact: x[i] has codes i and i
 * + 4. The bits of a code, taken as bf16, are a value 2^126 too small; that
 * holds for subnormals, too. */
FN void
g_e2m1x8_to_bf16(uint32_t codes, uint32_t scale, PRIVATE uint32_t *x)
{
	const uint32_t s = scale ? scale << 7 : 0x40u;
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t size =
			(i < 2 ? codes << (6 - 4 * i) : codes >> (4 * i - 6)) &
			0x01c001c0u;
		const uint32_t sign = codes << (12 - 4 * i) & 0x80008000u;

		x[i] = g_mul_bf16x2(g_mul_bf16x2(size | sign, 0x7e807e80u),
				    s | s << 16);
	}
}

/* Two e4m3 in the low 16 bits as two f16, exact. Devices before sm_89 have no
 * instruction for it. There the bits of a code, taken as f16, are a value 2^8
 * too small; that holds for subnormals, too. */
FN uint32_t
g_e4m3x2_to_f16x2(uint32_t codes)
{
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 890
	uint32_t x;

	asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(x) : "h"((uint16_t)codes));
	return x;
#else
	const uint32_t wide = (codes & 0xffu) | (codes & 0xff00u) << 8;
	const uint32_t size = wide & 0x007f007fu;
	const uint32_t nan = (size + 0x00010001u) >> 7 & 0x00010001u;

	return g_mul_f16x2(size << 7, 0x5c005c00u) | (wide & 0x00800080u) << 8 |
	       nan * 0x7fffu;
#endif
}

/* The same for four codes; x[0] has the lower two. */
FN void
g_e4m3x4_to_f16x4(uint32_t codes, PRIVATE uint32_t *x)
{
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 890
	asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; "
	    "cvt.rn.f16x2.e4m3x2 %0, l; cvt.rn.f16x2.e4m3x2 %1, h;}"
	    : "=r"(x[0]), "=r"(x[1])
	    : "r"(codes));
#else
	x[0] = g_e4m3x2_to_f16x2(codes & 0xffffu);
	x[1] = g_e4m3x2_to_f16x2(codes >> 16);
#endif
}

/* Two FNUZ codes in the low 16 bits as two f16, exact. The bits of a code, taken
 * as f16, are a value 2^7 too small. 0x7f is a number, and -0 the only NaN. */
FN uint32_t
g_fnuzx2_to_f16x2(uint32_t codes)
{
	const uint32_t wide = (codes & 0xffu) | (codes & 0xff00u) << 8;
	const uint32_t size = wide & 0x007f007fu, sign = wide & 0x00800080u;
	const uint32_t nan = (sign & ~(size + 0x007f007fu)) >> 7;

	return g_mul_f16x2(size << 7, 0x58005800u) | sign << 8 | nan * 0x7fffu;
}

/* Two e2m1 codes in the low 8 bits as two f16, exact. The bits of a code, taken
 * as f16, are a value 2^14 too small; that holds for subnormals, too. */
FN uint32_t
g_e2m1x2_to_f16x2(uint32_t codes)
{
	const uint32_t size = (codes & 7u) << 9 | (codes & 0x70u) << 21;
	const uint32_t sign = (codes & 8u) << 12 | (codes & 0x80u) << 24;

	return g_mul_f16x2(size | sign, 0x74007400u);
}

#endif
#endif
