/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode by warpgroups' matrix instructions, of fp8 rows.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_WGMMA_KERNEL_H

#include "spmla/platform/gpu/attend/decode_seesaw_device.h"

#define SPMLA_K_sparse_decode_wgmma(P, S)         SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_wgmma_pair(P, S)    SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_wgmma_32(P, S)      SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_wgmma_v4_32(P, S)   SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_wgmma_v4(P, S)      SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_wgmma_v4_pair(P, S) SPMLA_K_DECODE(P, S)
typedef decode_scalars spmla_k_sparse_decode_wgmma_scalars;
typedef decode_scalars spmla_k_sparse_decode_wgmma_pair_scalars;
typedef decode_scalars spmla_k_sparse_decode_wgmma_32_scalars;
typedef decode_scalars spmla_k_sparse_decode_wgmma_v4_32_scalars;
typedef decode_scalars spmla_k_sparse_decode_wgmma_v4_scalars;
typedef decode_scalars spmla_k_sparse_decode_wgmma_v4_pair_scalars;

enum {
	/* Registers of a lane that multiplies, and of one that loads. Two of
	 * the first and one of the second are at most 3 x 168, which the launch
	 * gives. */
	DECODE_V32_REGISTERS = 208,
	DECODE_V32_LOADER_REGISTERS = 88,
	DECODE_V4_REGISTERS = 200,
	DECODE_V4_LOADER_REGISTERS = 104
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

SPMLA_KERNEL(sparse_decode_wgmma)
void
spmla_k_sparse_decode_wgmma(SPMLA_KERNEL_ARGS(sparse_decode_wgmma))
{
	DECODE_WGMMA_RUN(decode_fp8_ds_mla(), 1, DECODE_V32_REGISTERS,
			 DECODE_V32_LOADER_REGISTERS);
}

SPMLA_KERNEL(sparse_decode_wgmma_32)
void
spmla_k_sparse_decode_wgmma_32(SPMLA_KERNEL_ARGS(sparse_decode_wgmma_32))
{
	DECODE_WGMMA_RUN(decode_few_heads(decode_fp8_ds_mla()), 1,
			 DECODE_V32_REGISTERS, DECODE_V32_LOADER_REGISTERS);
}

SPMLA_KERNEL_CLUSTER(sparse_decode_wgmma_pair, 2)
void
spmla_k_sparse_decode_wgmma_pair(SPMLA_KERNEL_ARGS(sparse_decode_wgmma_pair))
{
	DECODE_WGMMA_RUN(decode_fp8_ds_mla(), 2, DECODE_V32_REGISTERS,
			 DECODE_V32_LOADER_REGISTERS);
}

SPMLA_KERNEL(sparse_decode_wgmma_v4)
void
spmla_k_sparse_decode_wgmma_v4(SPMLA_KERNEL_ARGS(sparse_decode_wgmma_v4))
{
	DECODE_WGMMA_RUN(decode_v4_fp8(), 1, DECODE_V4_REGISTERS,
			 DECODE_V4_LOADER_REGISTERS);
}

SPMLA_KERNEL(sparse_decode_wgmma_v4_32)
void
spmla_k_sparse_decode_wgmma_v4_32(SPMLA_KERNEL_ARGS(sparse_decode_wgmma_v4_32))
{
	DECODE_WGMMA_RUN(decode_few_heads(decode_v4_fp8()), 1,
			 DECODE_V4_REGISTERS, DECODE_V4_LOADER_REGISTERS);
}

SPMLA_KERNEL_CLUSTER(sparse_decode_wgmma_v4_pair, 2)
void
spmla_k_sparse_decode_wgmma_v4_pair(
	SPMLA_KERNEL_ARGS(sparse_decode_wgmma_v4_pair))
{
	DECODE_WGMMA_RUN(decode_v4_fp8(), 2, DECODE_V4_REGISTERS,
			 DECODE_V4_LOADER_REGISTERS);
}

#endif
#endif
