/* SPDX-License-Identifier: Apache-2.0
 *
 * The dialect's functions, with one implementation for each toolchain. The hard
 * idea: a function returns the same bits on all of them, except g_exp2 and
 * g_log2.
 *
 * g_load4 and g_store4 take an address that is a multiple of 16, g_store2f one
 * that is a multiple of 8. g_prefetch asks for what will be read soon, and may
 * do nothing. g_larger is the larger of two; a NaN, signalling or not, is never
 * larger. g_larger_or_nan is NaN if either is. g_saturate is x, or the nearer
 * of 0 and 1 if x is outside of them; of a NaN 0. g_exp2_flush is g_exp2, except
 * that a result below 2^-126 may be 0.
 *
 * g_store_device and g_load_device are for words that blocks hand to each other
 * while both run. A word that is read is always one that was written, never a
 * mixture. No order is promised between words, not even between the words of
 * one call. A plain store of such a word is meant for the next kernel. Variants
 * for two and four words need an address that is a multiple of 8 or 16. A loop
 * that waits for another block calls g_sleep: some nanoseconds, a hint.
 *
 * g_load_fresh is for what a block has read, or its multiprocessor, and another
 * block has changed since and has told this one so. It takes nothing from a
 * cache that other multiprocessors do not share.
 *
 * g_load_at reads what a pointer to global memory points at, as a number.
 * g_here is x itself, g_here_at a place and g_item_again the thread. The
 * compiler computes what follows from them where it is used, and does not keep
 * it in registers. */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_BUILTINS_H
#define SPMLA_PLATFORM_GPU_DIALECT_BUILTINS_H

/* The bits of +inf, of which a NaN has more, and of the NaN that kernels make.
 */
#define G_INF_BITS 0x7f800000u
#define G_NAN_BITS 0x7fc00000u

/* One line a function, so that platforms stand side by side. */
/* clang-format off */
#if defined(__OPENCL_C_VERSION__)

/* SPIR-V's own atomics. In SPIR-V, atomics of OpenCL 1 order a block only, and
 * atomics of OpenCL 2 take generic pointers. Scope 1 is the device, semantics 0
 * relaxed. */
#define G_ATOMIC(name) uint32_t __attribute__((overloadable)) __spirv_Atomic##name
enum { G_DEVICE = 1, G_RELAXED = 0 };
G_ATOMIC(IAdd)(GLOBAL uint32_t *p, int scope, int order, uint32_t x);
G_ATOMIC(UMax)(GLOBAL uint32_t *p, int scope, int order, uint32_t x);
G_ATOMIC(Exchange)(GLOBAL uint32_t *p, int scope, int order, uint32_t x);
G_ATOMIC(Or)(GLOBAL uint32_t *p, int scope, int order, uint32_t x);
G_ATOMIC(CompareExchange)(GLOBAL uint32_t *p, int scope, int same, int other, uint32_t x, uint32_t want);

FN uint32_t g_item(void) { return (uint32_t)get_local_id(0); }
FN uint32_t g_block(void) { return (uint32_t)get_group_id(0); }
FN uint32_t g_blocks(void) { return (uint32_t)get_num_groups(0); }
FN uint32_t g_width(void) { return get_max_sub_group_size(); }
FN uint32_t g_lane(void) { return get_sub_group_local_id(); }
FN uint32_t g_bits(float x) { return as_uint(x); }
FN float g_float(uint32_t u) { return as_float(u); }
FN float g_fma(float a, float b, float c) { return fma(a, b, c); }
FN float g_larger(float a, float b) { return b > a || a != a ? b : a; }
FN float g_larger_or_nan(float a, float b) { return a != a || a > b ? a : b; }
FN float g_saturate(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
FN void g_load4(GLOBAL const float *p, PRIVATE uint32_t *x) { const uint4 v = *(GLOBAL const uint4 *)p; x[0] = v.x; x[1] = v.y; x[2] = v.z; x[3] = v.w; }
FN void g_store4(GLOBAL uint16_t *p, const PRIVATE uint32_t *x) { *(GLOBAL uint4 *)p = (uint4)(x[0], x[1], x[2], x[3]); }
FN void g_store2f(GLOBAL float *p, float x, float y) { *(GLOBAL float2 *)p = (float2)(x, y); }
FN float g_exp2(float x) { return exp2(x); }
FN float g_exp2_flush(float x) { return exp2(x); }
FN float g_log2(float x) { return log2(x); }
FN uint32_t g_clz(uint32_t x) { return clz(x); }
FN uint32_t g_popcount(uint32_t x) { return popcount(x); }
FN uint32_t g_shuffle_xor(uint32_t x, uint32_t mask) { return sub_group_shuffle_xor(x, mask); }
FN uint32_t g_broadcast(uint32_t x, uint32_t lane) { return sub_group_broadcast(x, lane); }
FN uint64_t g_ballot(uint32_t x) { const uint4 b = sub_group_ballot(x != 0); return (uint64_t)b.y << 32 | b.x; }
FN uint32_t g_local_add(LOCAL uint32_t *p, uint32_t x) { return atomic_add(p, x); }
FN uint32_t g_local_min(LOCAL uint32_t *p, uint32_t x) { return atomic_min(p, x); }
FN uint32_t g_local_max(LOCAL uint32_t *p, uint32_t x) { return atomic_max(p, x); }
FN uint32_t g_add(GLOBAL uint32_t *p, uint32_t x) { return __spirv_AtomicIAdd(p, G_DEVICE, G_RELAXED, x); }
FN uint32_t g_max(GLOBAL uint32_t *p, uint32_t x) { return __spirv_AtomicUMax(p, G_DEVICE, G_RELAXED, x); }
FN uint32_t g_cas(GLOBAL uint32_t *p, uint32_t want, uint32_t x) { return __spirv_AtomicCompareExchange(p, G_DEVICE, G_RELAXED, G_RELAXED, x, want); }
FN uint32_t g_load_system(GLOBAL const uint32_t *p) { return *(volatile GLOBAL const uint32_t *)p; }
FN uint64_t g_load64_system(GLOBAL const uint64_t *p) { return *(volatile GLOBAL const uint64_t *)p; }
FN void g_store_system(GLOBAL uint32_t *p, uint32_t x) { *(volatile GLOBAL uint32_t *)p = x; }
FN void g_store64_system(GLOBAL uint64_t *p, uint64_t x) { *(volatile GLOBAL uint64_t *)p = x; }
FN void g_release64_system(GLOBAL uint64_t *p, uint64_t x) { atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, memory_scope_all_svm_devices); *(volatile GLOBAL uint64_t *)p = x; }
FN void g_store_device(GLOBAL uint32_t *p, uint32_t x) { (void)__spirv_AtomicExchange(p, G_DEVICE, G_RELAXED, x); }
FN void g_store2_device(GLOBAL uint32_t *p, const PRIVATE uint32_t *x) { g_store_device(p, x[0]); g_store_device(p + 1, x[1]); }
FN void g_store4_device(GLOBAL uint32_t *p, const PRIVATE uint32_t *x) { g_store2_device(p, x); g_store2_device(p + 2, x + 2); }
FN uint32_t g_load_device(GLOBAL const uint32_t *p) { return __spirv_AtomicOr((GLOBAL uint32_t *)p, G_DEVICE, G_RELAXED, 0u); }
FN void g_load2_device(GLOBAL const uint32_t *p, PRIVATE uint32_t *x) { x[0] = g_load_device(p); x[1] = g_load_device(p + 1); }
FN void g_load4_device(GLOBAL const uint32_t *p, PRIVATE uint32_t *x) { g_load2_device(p, x); g_load2_device(p + 2, x + 2); }
FN void g_sleep(uint32_t nanoseconds) { (void)nanoseconds; }
FN void g_fence_system(void) { atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, memory_scope_all_svm_devices); }
FN void g_fence_device(void) { atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, memory_scope_device); }
FN void g_prefetch(GLOBAL const int32_t *p) { prefetch((GLOBAL const int *)p, 1); }
FN int32_t g_load_fresh(GLOBAL const int32_t *p) { return *p; }
FN uint32_t g_here(uint32_t x) { return x; }
FN GLOBAL const uint8_t *g_here_at(GLOBAL const uint8_t *p) { return p; }
FN uint32_t g_item_again(void) { return g_item(); }
FN uint32_t g_load_at(uint64_t at) { return *(GLOBAL const uint32_t *)at; }

#elif defined(__CUDACC__)

FN uint32_t g_item(void) { return threadIdx.x; }
FN uint32_t g_block(void) { return blockIdx.x; }
FN uint32_t g_blocks(void) { return gridDim.x; }
FN uint32_t g_width(void) { return 32; }
FN uint32_t g_lane(void) { return threadIdx.x & 31u; }
FN uint32_t g_bits(float x) { return __float_as_uint(x); }
FN float g_float(uint32_t u) { return __uint_as_float(u); }
FN float g_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
FN float g_larger(float a, float b) { return fmaxf(a, b); }
FN float g_larger_or_nan(float a, float b) { float x; asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b)); return x; }
FN float g_saturate(float x) { return __saturatef(x); }
FN void g_load4(GLOBAL const float *p, PRIVATE uint32_t *x) { const uint4 v = *(const uint4 *)p; x[0] = v.x; x[1] = v.y; x[2] = v.z; x[3] = v.w; }
FN void g_store4(GLOBAL uint16_t *p, const PRIVATE uint32_t *x) { *(uint4 *)p = make_uint4(x[0], x[1], x[2], x[3]); }
FN void g_store2f(GLOBAL float *p, float x, float y) { *(float2 *)p = make_float2(x, y); }
FN float g_exp2(float x) { return exp2f(x); }
FN float g_exp2_flush(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
FN float g_log2(float x) { return log2f(x); }
FN uint32_t g_clz(uint32_t x) { return (uint32_t)__clz((int)x); }
FN uint32_t g_popcount(uint32_t x) { return (uint32_t)__popc(x); }
FN uint32_t g_shuffle_xor(uint32_t x, uint32_t mask) { return __shfl_xor_sync(0xffffffffu, x, (int)mask); }
FN uint32_t g_broadcast(uint32_t x, uint32_t lane) { return __shfl_sync(0xffffffffu, x, (int)lane); }
FN uint64_t g_ballot(uint32_t x) { return __ballot_sync(0xffffffffu, x != 0); }
FN uint32_t g_local_add(LOCAL uint32_t *p, uint32_t x) { return atomicAdd(p, x); }
FN uint32_t g_local_min(LOCAL uint32_t *p, uint32_t x) { return atomicMin(p, x); }
FN uint32_t g_local_max(LOCAL uint32_t *p, uint32_t x) { return atomicMax(p, x); }
FN uint32_t g_add(GLOBAL uint32_t *p, uint32_t x) { return atomicAdd(p, x); }
FN uint32_t g_max(GLOBAL uint32_t *p, uint32_t x) { return atomicMax(p, x); }
FN uint32_t g_cas(GLOBAL uint32_t *p, uint32_t want, uint32_t x) { return atomicCAS(p, want, x); }
FN uint32_t g_load_system(GLOBAL const uint32_t *p) { uint32_t x; asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory"); return x; }
FN uint64_t g_load64_system(GLOBAL const uint64_t *p) { uint64_t x; asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory"); return x; }
FN void g_store_system(GLOBAL uint32_t *p, uint32_t x) { asm volatile("st.relaxed.sys.global.u32 [%0], %1;" : : "l"(p), "r"(x) : "memory"); }
FN void g_store64_system(GLOBAL uint64_t *p, uint64_t x) { asm volatile("st.relaxed.sys.global.u64 [%0], %1;" : : "l"(p), "l"(x) : "memory"); }
FN void g_release64_system(GLOBAL uint64_t *p, uint64_t x) { asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(p), "l"(x) : "memory"); }
FN void g_store_device(GLOBAL uint32_t *p, uint32_t x) { asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(p), "r"(x) : "memory"); }
FN void g_store2_device(GLOBAL uint32_t *p, const PRIVATE uint32_t *x) { asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" : : "l"(p), "r"(x[0]), "r"(x[1]) : "memory"); }
FN void g_store4_device(GLOBAL uint32_t *p, const PRIVATE uint32_t *x) { asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" : : "l"(p), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory"); }
FN uint32_t g_load_device(GLOBAL const uint32_t *p) { uint32_t x; asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory"); return x; }
FN void g_load2_device(GLOBAL const uint32_t *p, PRIVATE uint32_t *x) { asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];" : "=r"(x[0]), "=r"(x[1]) : "l"(p) : "memory"); }
FN void g_load4_device(GLOBAL const uint32_t *p, PRIVATE uint32_t *x) { asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "l"(p) : "memory"); }
FN void g_sleep(uint32_t nanoseconds) { __nanosleep(nanoseconds); }
FN void g_fence_system(void) { __threadfence_system(); }
FN void g_fence_device(void) { __threadfence(); }
FN void g_prefetch(GLOBAL const int32_t *p) { asm volatile("prefetch.global.L2 [%0];" : : "l"(p)); }
FN int32_t g_load_fresh(GLOBAL const int32_t *p) { int32_t x; asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(p)); return x; }
FN uint32_t g_here(uint32_t x) { asm volatile("" : "+r"(x)); return x; }
FN GLOBAL const uint8_t *g_here_at(GLOBAL const uint8_t *p) { asm volatile("" : "+l"(p)); return p; }
FN uint32_t g_item_again(void) { uint32_t x; asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x)); return x; }
FN uint32_t g_load_at(uint64_t at) { uint32_t x; asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(at)); return x; }

#elif defined(__HIP__)

FN uint32_t g_item(void) { return __builtin_amdgcn_workitem_id_x(); }
FN uint32_t g_block(void) { return __builtin_amdgcn_workgroup_id_x(); }
FN uint32_t g_width(void) { return __builtin_amdgcn_wavefrontsize(); }
FN uint32_t g_lane(void) { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)) & (g_width() - 1); }
/* Threads of the grid / threads of a block, from the dispatch packet. */
FN uint32_t g_blocks(void) { const uint32_t items = __builtin_amdgcn_workgroup_size_x(); return (__builtin_amdgcn_grid_size_x() + items - 1) / items; }
FN uint32_t g_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
FN float g_float(uint32_t u) { return __builtin_bit_cast(float, u); }
FN float g_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
FN float g_larger(float a, float b) { return b > a || a != a ? b : a; }
FN float g_larger_or_nan(float a, float b) { return a != a || a > b ? a : b; }
FN float g_saturate(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
typedef uint32_t g_vector4 __attribute__((ext_vector_type(4)));
FN void g_load4(GLOBAL const float *p, PRIVATE uint32_t *x) { const g_vector4 v = *(const g_vector4 *)p; x[0] = v.x; x[1] = v.y; x[2] = v.z; x[3] = v.w; }
FN void g_store4(GLOBAL uint16_t *p, const PRIVATE uint32_t *x) { const g_vector4 v = {x[0], x[1], x[2], x[3]}; *(g_vector4 *)p = v; }
FN void g_store2f(GLOBAL float *p, float x, float y) { p[0] = x; p[1] = y; }
FN float g_exp2(float x) { return __builtin_amdgcn_exp2f(x); }
FN float g_exp2_flush(float x) { return __builtin_amdgcn_exp2f(x); }
FN float g_log2(float x) { return __builtin_amdgcn_logf(x); }
FN uint32_t g_clz(uint32_t x) { return x ? (uint32_t)__builtin_clz(x) : 32; }
FN uint32_t g_popcount(uint32_t x) { return (uint32_t)__builtin_popcount(x); }
FN uint32_t g_shuffle_xor(uint32_t x, uint32_t mask) { return (uint32_t)__builtin_amdgcn_ds_bpermute((int)((g_lane() ^ mask) * 4), (int)x); }
FN uint32_t g_broadcast(uint32_t x, uint32_t lane) { return (uint32_t)__builtin_amdgcn_ds_bpermute((int)(lane * 4), (int)x); }
FN uint64_t g_ballot(uint32_t x) { return g_width() == 64 ? __builtin_amdgcn_uicmpl(x, 0, 33) : (uint64_t)__builtin_amdgcn_uicmp(x, 0, 33); }
FN uint32_t g_local_add(LOCAL uint32_t *p, uint32_t x) { return __hip_atomic_fetch_add(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); }
FN uint32_t g_local_min(LOCAL uint32_t *p, uint32_t x) { return __hip_atomic_fetch_min(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); }
FN uint32_t g_local_max(LOCAL uint32_t *p, uint32_t x) { return __hip_atomic_fetch_max(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); }
FN uint32_t g_add(GLOBAL uint32_t *p, uint32_t x) { return __hip_atomic_fetch_add(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
FN uint32_t g_max(GLOBAL uint32_t *p, uint32_t x) { return __hip_atomic_fetch_max(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
FN uint32_t g_cas(GLOBAL uint32_t *p, uint32_t want, uint32_t x) { uint32_t old = want; __hip_atomic_compare_exchange_strong(p, &old, x, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); return old; }
FN uint32_t g_load_system(GLOBAL const uint32_t *p) { return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM); }
FN uint64_t g_load64_system(GLOBAL const uint64_t *p) { return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM); }
FN void g_store_system(GLOBAL uint32_t *p, uint32_t x) { __hip_atomic_store(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM); }
FN void g_store64_system(GLOBAL uint64_t *p, uint64_t x) { __hip_atomic_store(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM); }
FN void g_release64_system(GLOBAL uint64_t *p, uint64_t x) { __hip_atomic_store(p, x, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM); }
FN void g_store_device(GLOBAL uint32_t *p, uint32_t x) { __hip_atomic_store(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
FN void g_store2_device(GLOBAL uint32_t *p, const PRIVATE uint32_t *x) { g_store_device(p, x[0]); g_store_device(p + 1, x[1]); }
FN void g_store4_device(GLOBAL uint32_t *p, const PRIVATE uint32_t *x) { g_store2_device(p, x); g_store2_device(p + 2, x + 2); }
FN uint32_t g_load_device(GLOBAL const uint32_t *p) { return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
FN void g_load2_device(GLOBAL const uint32_t *p, PRIVATE uint32_t *x) { x[0] = g_load_device(p); x[1] = g_load_device(p + 1); }
FN void g_load4_device(GLOBAL const uint32_t *p, PRIVATE uint32_t *x) { g_load2_device(p, x); g_load2_device(p + 2, x + 2); }
FN void g_sleep(uint32_t nanoseconds) { (void)nanoseconds; __builtin_amdgcn_s_sleep(1); }
FN void g_fence_system(void) { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }
FN void g_fence_device(void) { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
FN void g_prefetch(GLOBAL const int32_t *p) { __builtin_prefetch(p); }
FN int32_t g_load_fresh(GLOBAL const int32_t *p) { return *p; }
FN uint32_t g_here(uint32_t x) { asm volatile("" : "+v"(x)); return x; }
FN GLOBAL const uint8_t *g_here_at(GLOBAL const uint8_t *p) { return p; }
FN uint32_t g_item_again(void) { return g_item(); }
FN uint32_t g_load_at(uint64_t at) { return *(const uint32_t *)at; }
FN void g_barrier(void) { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); }

#else /* the emulator */

FN uint32_t g_item(void) { return spmla_i_emu_item(); }
FN uint32_t g_block(void) { return spmla_i_emu_block(); }
FN uint32_t g_blocks(void) { return spmla_i_emu_blocks(); }
FN uint32_t g_width(void) { return spmla_i_emu_width(); }
FN uint32_t g_lane(void) { return spmla_i_emu_lane(); }
FN uint32_t g_bits(float x) { uint32_t u; memcpy(&u, &x, sizeof u); return u; }
FN float g_float(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }
FN float g_fma(float a, float b, float c) { return fmaf(a, b, c); }
FN float g_larger(float a, float b) { return b > a || a != a ? b : a; }
FN float g_larger_or_nan(float a, float b) { return a != a || a > b ? a : b; }
FN float g_saturate(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
FN void g_load4(const float *p, uint32_t *x) { memcpy(x, spmla_i_emu_wide(p, 16), 16); }
FN void g_store4(uint16_t *p, const uint32_t *x) { memcpy(spmla_i_emu_wide(p, 16), x, 16); }
FN void g_store2f(float *p, float x, float y) { float v[2] = {x, y}; memcpy(spmla_i_emu_wide(p, 8), v, 8); }
FN float g_exp2(float x) { return exp2f(x); }
FN float g_exp2_flush(float x) { return exp2f(x); }
FN float g_log2(float x) { return log2f(x); }
FN uint32_t g_clz(uint32_t x) { return x ? (uint32_t)__builtin_clz(x) : 32; }
FN uint32_t g_popcount(uint32_t x) { return (uint32_t)__builtin_popcount(x); }
FN uint32_t g_shuffle_xor(uint32_t x, uint32_t mask) { return spmla_i_emu_exchange(&x, 1)[g_lane() ^ mask]; }
FN uint32_t g_broadcast(uint32_t x, uint32_t lane) { return spmla_i_emu_exchange(&x, 1)[lane]; }
FN uint64_t g_ballot(uint32_t x) { const uint32_t is = x != 0, *v = spmla_i_emu_exchange(&is, 1); uint64_t b = 0; uint32_t l; for (l = 0; l < g_width(); l++) b |= (uint64_t)v[l] << l; return b; }
FN uint32_t g_add(uint32_t *p, uint32_t x) { const uint32_t old = *p; *p = old + x; return old; }
FN uint32_t g_max(uint32_t *p, uint32_t x) { const uint32_t old = *p; *p = old > x ? old : x; return old; }
FN uint32_t g_cas(uint32_t *p, uint32_t want, uint32_t x) { const uint32_t old = *p; if (old == want) *p = x; return old; }
FN uint32_t g_local_add(uint32_t *p, uint32_t x) { return g_add(p, x); }
FN uint32_t g_local_min(uint32_t *p, uint32_t x) { const uint32_t old = *p; *p = old < x ? old : x; return old; }
FN uint32_t g_local_max(uint32_t *p, uint32_t x) { return g_max(p, x); }
FN uint32_t g_load_system(const uint32_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
FN uint64_t g_load64_system(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
FN void g_store_system(uint32_t *p, uint32_t x) { __atomic_store_n(p, x, __ATOMIC_RELEASE); }
FN void g_store64_system(uint64_t *p, uint64_t x) { spmla_i_emu_tell_host(p, x); }
FN void g_release64_system(uint64_t *p, uint64_t x) { spmla_i_emu_tell_host(p, x); }
FN void g_store_device(uint32_t *p, uint32_t x) { spmla_i_emu_hand_on(p, &x, 1); }
FN void g_store2_device(uint32_t *p, const uint32_t *x) { spmla_i_emu_hand_on(spmla_i_emu_wide(p, 8), x, 2); }
FN void g_store4_device(uint32_t *p, const uint32_t *x) { spmla_i_emu_hand_on(spmla_i_emu_wide(p, 16), x, 4); }
FN uint32_t g_load_device(const uint32_t *p) { uint32_t x; spmla_i_emu_take(p, &x, 1); return x; }
FN void g_load2_device(const uint32_t *p, uint32_t *x) { spmla_i_emu_take(spmla_i_emu_wide(p, 8), x, 2); }
FN void g_load4_device(const uint32_t *p, uint32_t *x) { spmla_i_emu_take(spmla_i_emu_wide(p, 16), x, 4); }
FN void g_sleep(uint32_t nanoseconds) { (void)nanoseconds; spmla_i_emu_sleep(); }
FN void g_fence_system(void) { }
FN void g_fence_device(void) { }
FN void g_prefetch(const int32_t *p) { (void)p; }
FN int32_t g_load_fresh(GLOBAL const int32_t *p) { return *p; }
FN uint32_t g_here(uint32_t x) { return x; }
FN const uint8_t *g_here_at(const uint8_t *p) { return p; }
FN uint32_t g_item_again(void) { return g_item(); }
FN uint32_t g_load_at(uint64_t at) { return *(const uint32_t *)at; }

#endif
/* clang-format on */

#if defined(__CUDACC__)

FN float
g_div_rn(float a, float b)
{
	return __fdiv_rn(a, b);
}

FN float
g_sqrt_rn(float x)
{
	return __fsqrt_rn(x);
}

#elif defined(__HIP__)

FN float
g_div_rn(float a, float b)
{
	return a / b; /* hardware scale, Newton steps and fix-up: exact */
}

#endif

#if defined(__HIP__) && __clang_major__ >= 18

FN float
g_sqrt_rn(float x)
{
	return __builtin_sqrtf(x);
}

#elif !defined(__CUDACC__)

/* A float's significand, with its hidden bit at bit 23 and subnormals shifted
 * up, and its exponent: value = m * 2^(e - 23). x is finite and not 0. */
FN uint32_t
g_significand(float x, PRIVATE int32_t *e)
{
	const uint32_t a = g_bits(x) & 0x7fffffffu;
	uint32_t m = a & 0x7fffffu, up;

	if (a >= 0x800000u) {
		*e = (int32_t)(a >> 23) - 127;
		return m | 0x800000u;
	}
	up = g_clz(m) - 8;
	*e = -126 - (int32_t)up;
	return m << up;
}

/* The float nearest to m * 2^(e - 26), ties to even, where the top bit of m is
 * bit 26. `sticky` tells that lower bits were lost. */
FN float
g_round(uint32_t m, uint32_t sticky, int32_t e, uint32_t sign)
{
	uint32_t drop = 3, rest, code;

	if (e > 127)
		return g_float(sign | G_INF_BITS);
	if (e < -126) {
		drop += (uint32_t)(-126 - e);
		e = -127; /* subnormal: no hidden bit */
	}
	if (drop > 31)
		return g_float(sign);
	rest = m & ((1u << drop) - 1u);
	code = m >> drop;
	code = e == -127 ? code
			 : ((uint32_t)(e + 127) << 23) + (code - 0x800000u);
	if (rest > 1u << (drop - 1) ||
	    (rest == 1u << (drop - 1) && (sticky || (code & 1u))))
		code++; /* a carry into the exponent is right */
	return g_float(sign | code);
}

#ifndef __HIP__

/* a / b as IEEE 754 rounds it. It uses integers, because the platform's own
 * division is not exact. */
FN float
g_div_rn(float a, float b)
{
	const uint32_t ua = g_bits(a) & 0x7fffffffu;
	const uint32_t ub = g_bits(b) & 0x7fffffffu;
	const uint32_t sign = (g_bits(a) ^ g_bits(b)) & 0x80000000u;
	int32_t ea, eb, e;
	uint32_t ma, mb, q, r, i;

	if (ua > G_INF_BITS || ub > G_INF_BITS || (ua == 0 && ub == 0) ||
	    (ua == G_INF_BITS && ub == G_INF_BITS))
		return g_float(G_NAN_BITS);
	if (ua == G_INF_BITS || ub == 0)
		return g_float(sign | G_INF_BITS);
	if (ua == 0 || ub == G_INF_BITS)
		return g_float(sign);
	ma = g_significand(a, &ea);
	mb = g_significand(b, &eb);
	e = ea - eb;
	if (ma < mb) {
		ma <<= 1;
		e--;
	}
	q = 1; /* the first bit: ma >= mb */
	r = ma - mb;
	for (i = 0; i < 26; i++) {
		r <<= 1;
		q <<= 1;
		if (r >= mb) {
			r -= mb;
			q |= 1u;
		}
	}
	return g_round(q, r != 0, e, sign);
}

#endif

/* The square root as IEEE 754 rounds it, bit by bit. Clang 17's own for AMD
 * GPUs is off by up to one in the last place. */
FN float
g_sqrt_rn(float x)
{
	const uint32_t u = g_bits(x);
	uint64_t rest, root = 0, bit;
	int32_t e;
	uint32_t m;

	if (u == 0x80000000u || u == 0 || u == G_INF_BITS)
		return x;
	if (u >= G_INF_BITS)
		return g_float(G_NAN_BITS);
	m = g_significand(x, &e);
	/* sqrt(m * 2^(e - 23)) = sqrt(m << 29 or 30) * 2^(..), with an even
	 * exponent */
	rest = (uint64_t)m << (29 + (e & 1));
	for (bit = (uint64_t)1 << 52; bit; bit >>= 2) {
		if (rest >= root + bit) {
			rest -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return g_round((uint32_t)root, rest != 0, (e - (e & 1)) / 2, 0);
}

#endif

FN uint32_t
g_popcount64(uint64_t x)
{
	return g_popcount((uint32_t)x) + g_popcount((uint32_t)(x >> 32));
}

/* The lowest set bit of x, which is not 0. */
FN uint32_t
g_lowest64(uint64_t x)
{
	const uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);

	return low ? 31 - g_clz(low & (0u - low))
		   : 63 - g_clz(high & (0u - high));
}

/* a / b within two units of the last place, for b no smaller than 2^-126. */
FN float
g_div_near(float a, float b)
{
#if defined(__CUDACC__)
	/* Above 2^126 the instruction gives 0. */
	const float down = b > 1e19f ? 5.4210109e-20f /* 2^-64 */ : 1.0f;

	return __fdividef(a * down, b * down);
#else
	return g_div_rn(a, b);
#endif
}

FN float
g_shuffle_xor_f(float x, uint32_t mask)
{
	return g_float(g_shuffle_xor(g_bits(x), mask));
}

/* The sum over the 16 lanes around this one, by the tree 8, 4, 2, 1. All 16 get
 * it. */
FN float
g_sum16(float x)
{
	x += g_shuffle_xor_f(x, 8);
	x += g_shuffle_xor_f(x, 4);
	x += g_shuffle_xor_f(x, 2);
	x += g_shuffle_xor_f(x, 1);
	return x;
}

/* The largest x over the same 16 lanes. No x is NaN. */
FN float
g_max16(float x)
{
	uint32_t mask;

	for (mask = 8; mask; mask >>= 1) {
		const float y = g_shuffle_xor_f(x, mask);

		x = y > x ? y : x;
	}
	return x;
}

#endif
