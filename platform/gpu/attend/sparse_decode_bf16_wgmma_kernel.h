/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode and sparse_prefill of bf16 rows by warpgroups' matrix
 * instructions. Rows have 576 values, or 512, which all serve as V. The kernels
 * are named for their rows, because they serve two operations.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_BF16_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_BF16_WGMMA_KERNEL_H

#include "spmla/platform/gpu/attend/decode_seesaw_device.h"

#define SPMLA_K_sparse_bf16_wgmma(P, S)     SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_bf16_wgmma_512(P, S) SPMLA_K_DECODE(P, S)
typedef decode_scalars spmla_k_sparse_bf16_wgmma_scalars;
typedef decode_scalars spmla_k_sparse_bf16_wgmma_512_scalars;

enum {
	/* Registers of a lane that multiplies, and of one that loads. */
	BF16_WGMMA_REGISTERS = 216,
	BF16_WGMMA_LOADER_REGISTERS = 72
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

SPMLA_KERNEL(sparse_bf16_wgmma)
void
spmla_k_sparse_bf16_wgmma(SPMLA_KERNEL_ARGS(sparse_bf16_wgmma))
{
	DECODE_WGMMA_RUN(decode_bf16(SPMLA_MLA_DIM), 1, BF16_WGMMA_REGISTERS,
			 BF16_WGMMA_LOADER_REGISTERS);
}

/* For sparse_prefill alone, which has no parts. */
SPMLA_KERNEL(sparse_bf16_wgmma_512)
void
spmla_k_sparse_bf16_wgmma_512(SPMLA_KERNEL_ARGS(sparse_bf16_wgmma_512))
{
	DECODE_WGMMA_RUN(decode_whole_tokens(decode_bf16(SPMLA_V4_DIM)), 1,
			 BF16_WGMMA_REGISTERS, BF16_WGMMA_LOADER_REGISTERS);
}

#endif
#endif
