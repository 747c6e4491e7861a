/* SPDX-License-Identifier: Apache-2.0
 *
 * What the list of a kernel's parameters makes: the struct of its scalars, the
 * signature, and for the host the struct of all parameters in order.
 */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_KERNEL_H
#define SPMLA_PLATFORM_GPU_DIALECT_KERNEL_H

#define SPMLA_I_K_NONE(type, name)
#define SPMLA_I_K_FIELD(type, name)   type name;
#define SPMLA_I_K_PARAM(type, name)   GLOBAL type *name,
#define SPMLA_I_K_POINTER(type, name) GLOBAL type *name;
#define SPMLA_I_K_NAME(type, name)    name,

/* struct spmla_k_<stem>_scalars; after the list, before the kernel. */
#define SPMLA_KERNEL_SCALARS(stem)                              \
	typedef struct spmla_k_##stem##_scalars {               \
		SPMLA_K_##stem(SPMLA_I_K_NONE, SPMLA_I_K_FIELD) \
	} spmla_k_##stem##_scalars;

/* All parameters as fields of a struct, for functions that share them; and, in
 * a kernel, the initializers of those fields. */
#define SPMLA_KERNEL_FIELDS(stem)                         \
	SPMLA_K_##stem(SPMLA_I_K_POINTER, SPMLA_I_K_NONE) \
		spmla_k_##stem##_scalars s;
#define SPMLA_KERNEL_VALUES(stem) \
	SPMLA_K_##stem(SPMLA_I_K_NAME, SPMLA_I_K_NONE) s

/* struct spmla_k_<stem>_params: what the host binds, in the kernel's order. */
#define SPMLA_KERNEL_PARAMS(stem)                \
	typedef struct spmla_k_##stem##_params { \
		SPMLA_KERNEL_FIELDS(stem)        \
	} spmla_k_##stem##_params;

/* Stands before the definition of spmla_k_<stem>. */
#define SPMLA_KERNEL(stem) KERNEL(SPMLA_ITEMS_##stem)

/* The same, for a kernel whose registers leave room for at least `blocks`
 * blocks on a CUDA multiprocessor. */
#define SPMLA_KERNEL_BLOCKS(stem, blocks) \
	KERNEL_BLOCKS(SPMLA_ITEMS_##stem, blocks)

/* The same, for a kernel with clusters of `cluster` blocks. Its line in
 * kernels.inc says so, too. */
#define SPMLA_KERNEL_CLUSTER(stem, cluster) \
	KERNEL_CLUSTER(SPMLA_ITEMS_##stem, cluster)

/* The kernel's parameters. */
#define SPMLA_KERNEL_ARGS(stem)                         \
	SPMLA_K_##stem(SPMLA_I_K_PARAM, SPMLA_I_K_NONE) \
		const spmla_k_##stem##_scalars s

/* Threads of a kernel that is one block. The emulator takes fewer, since a
 * fiber costs more than a thread. So its loops over a block's width run more
 * than once. */
#ifdef SPMLA_EMULATOR
#define SPMLA_WIDE_BLOCK 128
#define SPMLA_STEP_BLOCK 64
#else
#define SPMLA_WIDE_BLOCK 1024
#define SPMLA_STEP_BLOCK 256 /* fewer threads wait less for each other */
#endif

/* Threads of a subgroup in SPIR-V. All of Intel's GPUs have this width, so one
 * module is enough. */
#define SPMLA_SPIRV_WIDTH 16

/* SPMLA_ITEMS_<stem>: threads of a block. */
enum {
#define SPMLA_KERNEL_LINE(stem, items, dynamic) SPMLA_ITEMS_##stem = items,
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE
	SPMLA_I_ITEMS_END
};

#endif
