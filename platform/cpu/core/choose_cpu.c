/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the instruction set of the CPU backend. The hard idea: the processor
 * must have it, and the system must save its registers (XCR0). The compiler's
 * own check would add a constructor to the archive.
 */
#include "spmla/platform/cpu/core/kernels_cpu.h"

#include "spmla/internal/cpu_sizes.h"

#if defined(__x86_64__)
#include <cpuid.h>

enum {
	XCR0_YMM = 0x06, /* xmm, ymm */
	XCR0_ZMM = 0xe6  /* and masks, both halves of zmm0-15, zmm16-31 */
};

/* The register state that the system saves; OSXSAVE is set. */
static uint32_t
saved_state(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

/* 0: neither; 1: AVX2 and FMA; 2: also AVX-512 F, BW, DQ, VL. */
static uint32_t
vector_level(void)
{
	const uint32_t first = bit_FMA | bit_OSXSAVE | bit_AVX;
	const uint32_t wide =
		bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
	uint32_t a, b, c, d, state;

	if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first)
		return 0;
	state = saved_state();
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2) ||
	    (state & XCR0_YMM) != XCR0_YMM)
		return 0;
	return (b & wide) == wide && (state & XCR0_ZMM) == XCR0_ZMM ? 2 : 1;
}

const spmla_i_cpu_kernels *
spmla_i_cpu_choose(uint32_t native_flags)
{
	const uint32_t level =
		native_flags & SPMLA_NATIVE_SCALAR ? 0 : vector_level();

	if (level == 0)
		return &spmla_i_cpu_scalar;
	if (level == 1 || (native_flags & SPMLA_NATIVE_AVX2))
		return &spmla_i_cpu_avx2;
	return &spmla_i_cpu_avx512;
}
#else
const spmla_i_cpu_kernels *
spmla_i_cpu_choose(uint32_t native_flags)
{
	(void)native_flags;
	return &spmla_i_cpu_scalar;
}
#endif

const spmla_i_cpu_kernels *
spmla_i_cpu_kernels_of(const spmla_ctx *ctx)
{
	const spmla_i_cpu_state *st = ctx->buf[SPMLA_BUF_BACKEND_STATE];

	return st->kernels;
}
