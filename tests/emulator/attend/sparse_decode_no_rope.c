/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels for Hopper of a kind of row that the library does not have: V3.2's
 * without the rope part, as GLM-5.3 has them. A new kind of row needs a
 * decode_format, and each of its kernels a name and a share of the registers;
 * ops/attend/test_decode_no_rope.c tests that it needs no more. Registers are
 * shared as with V4's rows, which have no rope in registers either.
 */
#include "tests/emulator/emulated.h"

/* The library's own kernels are in other objects. */
#undef SPMLA_KERNEL
#define SPMLA_KERNEL(stem)        \
	SPMLA_KERNEL_PARAMS(stem) \
	__attribute__((unused)) static
#include "spmla/platform/gpu/attend/sparse_decode_few_kernel.h"
#include "spmla/platform/gpu/attend/sparse_decode_wgmma_kernel.h"
#undef SPMLA_KERNEL
#define SPMLA_KERNEL(stem) EMULATED_KERNEL(stem)

#define SPMLA_K_sparse_decode_wgmma_no_rope(P, S)      SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_wgmma_no_rope_32(P, S)   SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_wgmma_no_rope_pair(P, S) SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_no_rope_16(P, S)     SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_no_rope_32(P, S)     SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_no_rope_64(P, S)     SPMLA_K_DECODE(P, S)
typedef decode_scalars spmla_k_sparse_decode_wgmma_no_rope_scalars;
typedef decode_scalars spmla_k_sparse_decode_wgmma_no_rope_32_scalars;
typedef decode_scalars spmla_k_sparse_decode_wgmma_no_rope_pair_scalars;
typedef few_scalars spmla_k_sparse_decode_few_no_rope_16_scalars;
typedef few_scalars spmla_k_sparse_decode_few_no_rope_32_scalars;
typedef few_scalars spmla_k_sparse_decode_few_no_rope_64_scalars;

/* 512 codes, then four f32 scales. */
FN decode_format
decode_no_rope(void)
{
	decode_format f;

	f.row_bytes = 528;
	f.code = DECODE_E4M3;
	f.group = 128;
	f.scale = DECODE_SCALE_F32;
	f.scales_byte = 512;
	f.rope_byte = 0;
	f.bf16_tail = 0;
	f.lists = 1;
	f.heads = DECODE_HEADS;
	f.whole = 0;
	return f;
}

SPMLA_KERNEL(sparse_decode_wgmma_no_rope)
void
spmla_k_sparse_decode_wgmma_no_rope(
	SPMLA_KERNEL_ARGS(sparse_decode_wgmma_no_rope))
{
	DECODE_WGMMA_RUN(decode_no_rope(), 1, DECODE_V4_REGISTERS,
			 DECODE_V4_LOADER_REGISTERS);
}

SPMLA_KERNEL(sparse_decode_wgmma_no_rope_32)
void
spmla_k_sparse_decode_wgmma_no_rope_32(
	SPMLA_KERNEL_ARGS(sparse_decode_wgmma_no_rope_32))
{
	DECODE_WGMMA_RUN(decode_few_heads(decode_no_rope()), 1,
			 DECODE_V4_REGISTERS, DECODE_V4_LOADER_REGISTERS);
}

SPMLA_KERNEL_CLUSTER(sparse_decode_wgmma_no_rope_pair, 2)
void
spmla_k_sparse_decode_wgmma_no_rope_pair(
	SPMLA_KERNEL_ARGS(sparse_decode_wgmma_no_rope_pair))
{
	DECODE_WGMMA_RUN(decode_no_rope(), 2, DECODE_V4_REGISTERS,
			 DECODE_V4_LOADER_REGISTERS);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_no_rope_16, 1)
void
spmla_k_sparse_decode_few_no_rope_16(
	SPMLA_KERNEL_ARGS(sparse_decode_few_no_rope_16))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(0, 8, 16));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_no_rope_16)};

	few_run(&a, few_kind_of(decode_no_rope(), 16, 16, 8), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_no_rope_32, 1)
void
spmla_k_sparse_decode_few_no_rope_32(
	SPMLA_KERNEL_ARGS(sparse_decode_few_no_rope_32))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(0, 8, 32));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_no_rope_32)};

	few_run(&a, few_kind_of(decode_no_rope(), 32, 16, 8), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_no_rope_64, 1)
void
spmla_k_sparse_decode_few_no_rope_64(
	SPMLA_KERNEL_ARGS(sparse_decode_few_no_rope_64))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(0, 8, 64));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_no_rope_64)};

	few_run(&a, few_kind_of(decode_no_rope(), 64, 16, 8), local);
}
