/* SPDX-License-Identifier: Apache-2.0
 *
 * The dialect in which each kernel is written once: the subset of C11, C++ and
 * OpenCL C that nvcc, clang for AMDGPU, clang for SPIR-V and, for tests, a C
 * compiler with a work-group emulator all accept. Its rules:
 *
 * - A kernel is SPMLA_KERNEL(stem) void spmla_k_stem(SPMLA_KERNEL_ARGS(stem)),
 *   with its line in kernels.inc and its list SPMLA_K_stem(P, S): P(type, name)
 *   is a pointer, a GLOBAL parameter of its own; S(type, name) a scalar of
 *   fixed width, a field of the one struct `s`. The list also makes the host's
 *   binding, so neither can differ.
 * - A function that needs many of a kernel's parameters takes one struct, with
 *   SPMLA_KERNEL_FIELDS(stem). The kernel fills it with
 *   SPMLA_KERNEL_VALUES(stem). All is inlined, so it costs no register.
 * - g_item() is the thread within its block. LOCAL is shared memory, as OpenCL
 *   spells it.
 * - Shared memory is declared by LOCAL_ARRAY at the scope of the kernel and
 *   handed on as LOCAL T *. Several arrays are one struct, whose fields say
 *   what they hold: LOCAL_ARRAY(<op>_shared, shared, 1). Behind the struct may
 *   lie arrays whose length depends on the kernel (ATTEND_TILE_LOCAL). Pointers
 *   to private memory are PRIVATE.
 *   LOCAL_DYNAMIC is the one array of a kernel with more than 48 KB; its line
 *   in kernels.inc says how many bytes.
 * - BARRIER() orders shared and global memory of the block. Every thread
 *   reaches every BARRIER; an early return is uniform over the block.
 * - A subgroup is 16, 32 or 64 threads wide, g_width(). It has lane,
 *   xor-shuffle, broadcast and ballot, which all its threads call together.
 *   Sums of floats over lanes use g_sum16, or a tree of at most 16 lanes that
 *   is written out, so that no bit of a result depends on the width. Kernels
 *   with the matrix instructions of mma.h and wgmma.h have 32 lanes, and add in
 *   the order in which these instructions lay values out.
 * - UNROLL_BY(n) repeats the body of a loop n times and no more: long code
 *   takes time, too, to come from memory.
 * - NO_UNROLL is for loops of a kernel that runs once and alone, such as a
 *   step's first one. There the cost of an instruction is its fetch from
 *   memory.
 * - A private array is indexed by constants once loops marked UNROLL are
 *   unrolled. Otherwise it would be local memory on CUDA, which is not allowed.
 * - A block waits only for blocks that have begun, as a counter tells it, and
 *   only for a limited time. So a kernel ends in whatever order its blocks run,
 *   even one after another.
 * - Atomics are 32-bit integers. There is no double, long, size_t, vector type
 *   or generic pointer. Contraction is off; g_fma fuses.
 * - Quotients and roots are g_div_rn and g_sqrt_rn. g_div_near, g_exp2 and
 *   g_log2 are for results that have a tolerance.
 */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_DIALECT_H
#define SPMLA_PLATFORM_GPU_DIALECT_DIALECT_H

#if defined(__OPENCL_C_VERSION__)

/* tile_kernels.c defines it: Intel's compiler keeps large functions, and the
 * arrays that they are given then lie in memory. */
#ifndef SPMLA_SPIRV_INLINE
#define SPMLA_SPIRV_INLINE
#endif

#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_subgroups : enable

typedef uchar uint8_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;

#define GLOBAL   __global
#define LOCAL    __local
#define PRIVATE  __private
#define CONSTANT __constant
#define FN       static SPMLA_SPIRV_INLINE inline
#define KERNEL(items)                                               \
	__kernel __attribute__((reqd_work_group_size(items, 1, 1))) \
	__attribute__((intel_reqd_sub_group_size(SPMLA_SPIRV_WIDTH)))
#define LOCAL_ARRAY(type, name, n) __local type name[n]
#define UNROLL                     __attribute__((opencl_unroll_hint))
#define UNROLL_BY(n)               __attribute__((opencl_unroll_hint(n)))
#define NO_UNROLL                  __attribute__((opencl_unroll_hint(1)))
#define BARRIER()                  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

#elif defined(__CUDACC__)

#include <stdint.h>

#define GLOBAL
#define LOCAL
#define PRIVATE
#define CONSTANT static __device__ const
#define FN       static __device__ __forceinline__
/* An SM needs no second block of 1024 threads. ptxas would try for two, with
 * half the registers each, and spill. */
#define KERNEL(items) \
	extern "C" __global__ __launch_bounds__(items, (items) == 1024)
#define KERNEL_BLOCKS(items, blocks) \
	extern "C" __global__ __launch_bounds__(items, blocks)
/* One block an SM. */
#define KERNEL_CLUSTER(items, cluster)                        \
	extern "C" __global__ __cluster_dims__(cluster, 1, 1) \
		__launch_bounds__(items, 1)
#define LOCAL_ARRAY(type, name, n) __shared__ type name[n]
#define LOCAL_DYNAMIC(name, n)     extern __shared__ __align__(1024) uint8_t name[]
#define UNROLL                     _Pragma("unroll")
#define UNROLL_BY(n)               PRAGMA(unroll n)
#define NO_UNROLL                  _Pragma("unroll 1")
#ifdef SPMLA_KERNEL_DEBUG
#define BARRIER() (g_debug_sleep(), __syncthreads(), g_debug_sleep())
#else
#define BARRIER() __syncthreads()
#endif

#elif defined(__HIP__)

typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;

#define GLOBAL
#define LOCAL
#define PRIVATE
#define CONSTANT static __attribute__((constant)) const
#define FN       static __attribute__((device, always_inline)) inline
#define KERNEL(items)                      \
	extern "C" __attribute__((global)) \
	__attribute__((amdgpu_flat_work_group_size(items, items)))
#define LOCAL_ARRAY(type, name, n) static __attribute__((shared)) type name[n]
#define UNROLL                     _Pragma("unroll")
#define UNROLL_BY(n)               PRAGMA(unroll n)
#define NO_UNROLL                  _Pragma("unroll 1")
#define BARRIER()                  g_barrier()

#else /* C: the emulator, and the host, which reads the lists alone */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define GLOBAL
#define LOCAL
#define PRIVATE
#define CONSTANT static const
#define UNROLL
#define UNROLL_BY(n)
#define NO_UNROLL
#define FN            static inline
#define KERNEL(items) static
/* One block runs at a time; its threads share the array. Blocks that are alive
 * together use LOCAL_DYNAMIC, which each has for itself, and no arrays. */
#define LOCAL_ARRAY(type, name, n) \
	static type name[n];       \
	spmla_i_emu_local(name, (uint32_t)sizeof name)
#define LOCAL_DYNAMIC(name, n) uint8_t *const name = spmla_i_emu_dynamic(n)
#define BARRIER()              spmla_i_emu_barrier(__FILE__, __LINE__)

/* Functions of tests/emulator. The identity of a thread never changes while it
 * runs, so the compiler asks for it once. */
#define SPMLA_I_EMU_WHO        __attribute__((const)) uint32_t
SPMLA_I_EMU_WHO spmla_i_emu_item(void);
SPMLA_I_EMU_WHO spmla_i_emu_lane(void);
SPMLA_I_EMU_WHO spmla_i_emu_block(void);
SPMLA_I_EMU_WHO spmla_i_emu_blocks(void);
SPMLA_I_EMU_WHO spmla_i_emu_width(void);
void spmla_i_emu_local(void *array, uint32_t bytes);
void *spmla_i_emu_dynamic(uint32_t bytes);
void spmla_i_emu_barrier(const char *file, int line);
/* One, two or four words that blocks hand to each other. */
void spmla_i_emu_hand_on(uint32_t *to, const uint32_t *words, uint32_t count);
void spmla_i_emu_take(const uint32_t *from, uint32_t *words, uint32_t count);
/* A number that the host may act on at once. */
void spmla_i_emu_tell_host(uint64_t *to, uint64_t x);
void spmla_i_emu_sleep(void);
/* An access of `bytes` bytes. On a GPU it faults if the address is not a
 * multiple of them. */
void spmla_i_emu_misaligned(void);
static inline void *
spmla_i_emu_wide(const void *p, uint32_t bytes)
{
	if ((uintptr_t)p % bytes)
		spmla_i_emu_misaligned();
	return (void *)(uintptr_t)p;
}
/* Every thread of the subgroup gives `count` words, at most 16. Returns all of
 * them, valid until the next call: word w of lane l is [w * width + l]. */
const uint32_t *spmla_i_emu_exchange(const uint32_t *words, uint32_t count);

#endif

#define PRAGMA(text) _Pragma(#text)

/* A condition that is rarely true: the compiler may move its code away. */
#if defined(__OPENCL_C_VERSION__)
#define UNLIKELY(x) (x)
#else
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#endif

#ifndef KERNEL_BLOCKS
#define KERNEL_BLOCKS(items, blocks) KERNEL(items)
#endif
#ifndef KERNEL_CLUSTER
#define KERNEL_CLUSTER(items, cluster) KERNEL(items)
#endif

#include "spmla/platform/gpu/dialect/kernel.h"

#include "spmla/spmla_layout.h"

#ifdef SPMLA_GPU_KERNELS
#include "spmla/platform/gpu/dialect/builtins.h"

#include "spmla/platform/gpu/dialect/number.h"

#include "spmla/platform/gpu/dialect/debug.h"
#endif

#endif
