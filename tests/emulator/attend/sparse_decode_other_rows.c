/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels for Hopper of kinds of rows that the library does not have. A new kind
 * of row needs a decode_format, and each of its kernels a name and a share of
 * the registers; ops/attend/test_decode_other_rows.c tests that it needs no
 * more. Here a format is no constant, so one kernel takes all kinds. Those of few
 * tokens take groups of 128 values.
 */
#include "tests/emulator/emulated.h"
#include "tests/emulator/other_rows.h"

/* The library's own kernels are in other objects. */
#undef SPMLA_KERNEL
#define SPMLA_KERNEL(stem)        \
	SPMLA_KERNEL_PARAMS(stem) \
	__attribute__((unused)) static
#include "spmla/platform/gpu/attend/sparse_decode_few_kernel.h"
#include "spmla/platform/gpu/attend/sparse_decode_wgmma_kernel.h"
#undef SPMLA_KERNEL
#define SPMLA_KERNEL(stem) EMULATED_KERNEL(stem)

#define SPMLA_K_sparse_decode_wgmma_other(P, S)      SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_wgmma_other_32(P, S)   SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_wgmma_other_pair(P, S) SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_other_16(P, S)     SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_other_32(P, S)     SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_few_other_64(P, S)     SPMLA_K_DECODE(P, S)
typedef decode_scalars spmla_k_sparse_decode_wgmma_other_scalars;
typedef decode_scalars spmla_k_sparse_decode_wgmma_other_32_scalars;
typedef decode_scalars spmla_k_sparse_decode_wgmma_other_pair_scalars;
typedef few_scalars spmla_k_sparse_decode_few_other_16_scalars;
typedef few_scalars spmla_k_sparse_decode_few_other_32_scalars;
typedef few_scalars spmla_k_sparse_decode_few_other_64_scalars;

/* What the kinds of other_rows.h consist of. */
FN decode_format
other_rows_of(other_row row)
{
	decode_format f = decode_fp8_ds_mla();

	switch (row) {
	case ROW_NO_ROPE: /* 512 codes, then four f32 scales */
		f.row_bytes = 528;
		f.rope_byte = 0;
		return f;
	case ROW_FNUZ:
		f.code = DECODE_FNUZ;
		return f;
	case ROW_V41: /* 512 codes, then 16 scales */
	case ROW_V41_PLANAR:
		f.row_bytes = row == ROW_V41 ? 528 : 512;
		f.group = 32;
		f.scale = DECODE_SCALE_UE8M0;
		f.scales_byte = row == ROW_V41 ? 512 : 0;
		f.rope_byte = 0;
		return f;
	case ROW_FP4: /* 256 bytes of codes, then 32 scales */
	case ROW_FP4_PLANAR:
	case ROW_NVFP4: /* between them rope */
	case OTHER_ROWS:
		f.row_bytes = row == ROW_FP4     ? 288
			      : row == ROW_NVFP4 ? 352
						 : 256;
		f.code = DECODE_E2M1;
		f.group = 16;
		f.scale = row == ROW_NVFP4 ? DECODE_SCALE_SWIZZLED
					   : DECODE_SCALE_E4M3;
		f.scales_byte = row == ROW_FP4     ? 256
				: row == ROW_NVFP4 ? 320
						   : 0;
		f.rope_byte = row == ROW_NVFP4 ? 256 : 0;
	}
	return f;
}

/* The format of a list's rows. Both lists of a call of one list have the first
 * list's. */
FN decode_format
other_format(uint32_t list)
{
	const uint32_t lists = emulator_rows[1] == OTHER_ROWS ? 1 : 2;
	decode_format f = other_rows_of(emulator_rows[list % lists]);

	f.lists = lists;
	return f;
}

SPMLA_KERNEL(sparse_decode_wgmma_other)
void
spmla_k_sparse_decode_wgmma_other(SPMLA_KERNEL_ARGS(sparse_decode_wgmma_other))
{
	DECODE_WGMMA_RUN_LISTS(other_format(0), other_format(1), 1,
			       DECODE_V4_REGISTERS, DECODE_V4_LOADER_REGISTERS);
}

SPMLA_KERNEL(sparse_decode_wgmma_other_32)
void
spmla_k_sparse_decode_wgmma_other_32(
	SPMLA_KERNEL_ARGS(sparse_decode_wgmma_other_32))
{
	DECODE_WGMMA_RUN_LISTS(decode_few_heads(other_format(0)),
			       decode_few_heads(other_format(1)), 1,
			       DECODE_V4_REGISTERS, DECODE_V4_LOADER_REGISTERS);
}

SPMLA_KERNEL_CLUSTER(sparse_decode_wgmma_other_pair, 2)
void
spmla_k_sparse_decode_wgmma_other_pair(
	SPMLA_KERNEL_ARGS(sparse_decode_wgmma_other_pair))
{
	DECODE_WGMMA_RUN_LISTS(other_format(0), other_format(1), 2,
			       DECODE_V4_REGISTERS, DECODE_V4_LOADER_REGISTERS);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_other_16, 1)
void
spmla_k_sparse_decode_few_other_16(
	SPMLA_KERNEL_ARGS(sparse_decode_few_other_16))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(0, 8, 16));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_other_16)};

	few_run(&a, few_kind_of(other_format(0), 16, 16, 8), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_other_32, 1)
void
spmla_k_sparse_decode_few_other_32(
	SPMLA_KERNEL_ARGS(sparse_decode_few_other_32))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(0, 8, 32));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_other_32)};

	few_run(&a, few_kind_of(other_format(0), 32, 16, 8), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_other_64, 1)
void
spmla_k_sparse_decode_few_other_64(
	SPMLA_KERNEL_ARGS(sparse_decode_few_other_64))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(0, 8, 64));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_other_64)};

	few_run(&a, few_kind_of(other_format(0), 64, 16, 8), local);
}
