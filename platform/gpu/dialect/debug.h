/* SPDX-License-Identifier: Apache-2.0
 *
 * What the debug build of kernels has besides: CUDA's with SPMLA_KERNEL_DEBUG,
 * and the emulator, if SPMLA_TEST_KERNEL_DEBUG is set. No other build has any of
 * it. In a kernel that calls G_DEBUG_BEGIN:
 *
 * - A wait at an mbarrier or at a named barrier ends. After G_DEBUG_WAIT
 *   nanoseconds, or in the emulator when nothing else can go on, the block
 *   reports G_FAULT_TIMEOUT, with its number as the row, and its threads end.
 * - Shared memory is filled with NaN once it has been read for the last time
 *   (g_spoil).
 * - Threads pause for a random time behind each wait, before each arrival and at
 *   barriers. The step's serial is the seed, so each step pauses in other
 *   places. In the emulator the schedule is random anyway.
 *
 * The serial's upper half is 0 in all steps of an engine. A test sets it to n,
 * and block 0 loses its n-th arrival at an mbarrier.
 *
 * The hard idea is that products by warpgroups must go on beside other work as
 * in the ordinary build, or the debug build would hide what it looks for. The
 * compiler puts them one after another (C7520) where it sees a branch that may
 * divide a warp, a call or nanosleep. So what stands in waits is predicated
 * assembly, warps that multiply pause by chains of loads, and a named barrier
 * stays behind the counter that is waited for in its place.
 */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_DEBUG_H
#define SPMLA_PLATFORM_GPU_DIALECT_DEBUG_H

#if defined(__CUDACC__) && defined(SPMLA_KERNEL_DEBUG)

#define G_HAS_DEBUG 1
#define G_DEBUG     1

enum {
	G_DEBUG_WAIT = 1000000000,
	G_DEBUG_BLOCKS = 1024 /* of a launch; one such kernel runs at a time */
};

/* A block that has begun. */
typedef struct g_debug_block {
	uint64_t grid; /* which launch it belongs to */
	GLOBAL void *state;
	GLOBAL void *status;
	uint32_t tag; /* of the step: 1 + its serial's low bits */
	uint32_t seed;
	uint32_t arrivals; /* at mbarriers, from 1 on */
	uint32_t lost;     /* the one that is; 0: none */
	uint32_t late;     /* 1: a wait has taken too long */
	uint32_t zero;
	uint32_t named[16];  /* threads that have come to each barrier */
	uint32_t pauses[32]; /* of each warp */
} g_debug_block;

static __device__ volatile g_debug_block g_debug_blocks[G_DEBUG_BLOCKS];

/* Reports that a block waits in vain, if `is` is 1. It stands in fault_device.h,
 * which knows what the pointers point at. */
FN void g_report_timeout(volatile g_debug_block *b, uint32_t is);

FN volatile g_debug_block *
g_debug_here(void)
{
	return &g_debug_blocks[blockIdx.x % G_DEBUG_BLOCKS];
}

FN uint64_t
g_debug_grid(void)
{
	uint64_t grid;

	asm("mov.u64 %0, %%gridid;" : "=l"(grid));
	return grid;
}

/* Whether the kernel has called G_DEBUG_BEGIN. */
FN uint32_t
g_debug_begun(void)
{
	return g_debug_here()->grid == g_debug_grid();
}

FN void
g_debug_begin(GLOBAL void *state, GLOBAL void *status, uint64_t serial)
{
	volatile g_debug_block *b = g_debug_here();
	uint32_t i;

	if (threadIdx.x)
		return;
	b->state = state;
	b->status = status;
	b->tag = (uint32_t)serial + 1u;
	b->seed = (uint32_t)serial + blockIdx.x * 0x9e3779b9u;
	b->arrivals = 1;
	b->lost = blockIdx.x ? 0 : (uint32_t)(serial >> 32);
	b->late = 0;
	NO_UNROLL
	for (i = 0; i < 16; i++)
		b->named[i] = 0;
	NO_UNROLL
	for (i = 0; i < 32; i++)
		b->pauses[i] = 0;
	b->grid = g_debug_grid();
}

/* Called by all threads, before the block's first barrier. */
#define G_DEBUG_BEGIN(state, status) \
	g_debug_begin(state, status, (state)->serial)

/* ---- pauses -------------------------------------------------------------- */

FN uint32_t
g_debug_random(void)
{
	volatile g_debug_block *b = g_debug_here();
	const uint32_t warp = threadIdx.x / 32;
	uint32_t x = b->seed;

	x ^= warp * 0x85ebca6bu + b->pauses[warp]++ * 0xc2b2ae35u;
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

/* A pause. Of eight, seven are too short to notice; one takes up to 2 us. */
FN void
g_debug_sleep(void)
{
	const uint32_t x = g_debug_random();

	__nanosleep(x % 8 ? x >> 3 & 31u : x >> 3 & 2047u);
}

/* The same at mbarriers and named barriers: up to six loads, each of which waits
 * for the one before it. What is loaded is 0. */
#define G_DEBUG_LINK(bits)                    \
	"and.b32 m, %0, " #bits "; "          \
	"setp.ne.and.u32 p, m, 0, p; "        \
	"@p ld.volatile.global.u32 m, [at]; " \
	"@!p mov.b32 m, 0; "                  \
	"cvt.u64.u32 next, m; "               \
	"add.u64 at, at, next; "

FN void
g_debug_pause(void)
{
	asm volatile("{.reg .pred p; .reg .b32 m; .reg .b64 at, next; "
		     "setp.eq.u32 p, 0, 0; mov.b64 at, %1; "
		     /* clang-format off */
		     G_DEBUG_LINK(1) G_DEBUG_LINK(6) G_DEBUG_LINK(24)
		     G_DEBUG_LINK(96) G_DEBUG_LINK(384) G_DEBUG_LINK(1536)
		     /* clang-format on */
		     "}"
		     :
		     : "r"(g_debug_random()), "l"(&g_debug_here()->zero)
		     : "memory");
}

#undef G_DEBUG_LINK

/* Pauses. Returns 1 if the thread is to arrive at an mbarrier; 0 if that arrival
 * is the one to lose. */
FN uint32_t
g_debug_arrives(void)
{
	volatile g_debug_block *b = g_debug_here();

	g_debug_pause();
	return !g_debug_begun() ||
	       atomicAdd((uint32_t *)&b->arrivals, 1) != b->lost;
}

/* ---- waits that end ------------------------------------------------------ */

FN uint32_t
g_debug_clock(void)
{
	uint32_t now;

	asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(now));
	return now;
}

/* Whether a wait has lasted too long, in this thread since `since`, or in
 * another one of the block. */
FN uint32_t
g_debug_late(uint32_t since)
{
	return g_debug_begun() & ((g_debug_clock() - since > G_DEBUG_WAIT) |
				  (g_debug_here()->late != 0));
}

/* Behind a wait: if it was late, ends the thread. The first of a block reports.
 * Blocks of a cluster end together. */
FN void
g_debug_end(uint32_t late)
{
	volatile g_debug_block *b = g_debug_here();
	uint32_t before = 1;

	asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; "
		     "@p atom.global.exch.b32 %0, [%2], 1;}"
		     : "+r"(before)
		     : "r"(late), "l"(&b->late)
		     : "memory");
	g_report_timeout(b, late & (before ^ 1u));
	asm volatile("{.reg .pred p, q; .reg .b32 n; setp.ne.u32 p, %0, 0; "
		     "mov.u32 n, %%cluster_nctarank; "
		     "setp.gt.and.u32 q, n, 1, p; "
		     "@q barrier.cluster.arrive.release; "
		     "@q barrier.cluster.wait.acquire; @p exit;}"
		     :
		     : "r"(late)
		     : "memory");
}

/* Stands in front of a named barrier, which cannot end by itself: waits until
 * all its threads have come, if this one waits for them. A thread that ends has
 * come too, for those that already wait at the barrier. */
FN void
g_debug_named(uint32_t id, uint32_t items, uint32_t waits)
{
	volatile uint32_t *count = &g_debug_here()->named[id];
	const uint32_t since = g_debug_clock();
	uint32_t end = 0, late = 0;

	g_debug_pause();
	__syncwarp();
	asm volatile("{.reg .pred p; setp.eq.u32 p, %1, 0; "
		     "@p atom.global.add.u32 %0, [%2], 32;}"
		     : "+r"(end)
		     : "r"(threadIdx.x % 32), "l"(count)
		     : "memory");
	end = __shfl_sync(0xffffffffu, end, 0) / items * items + items;
	if (!waits)
		return;
	while (!late && g_debug_begun() && (int32_t)(*count - end) < 0)
		late = g_debug_late(since);
	asm volatile("{.reg .pred p; setp.ne.u32 p, %0, 0; "
		     "@p barrier.cta.arrive %1, %2;}"
		     :
		     : "r"(late), "r"(id), "r"(items)
		     : "memory");
	g_debug_end(late);
}

#elif !defined(__CUDACC__) && !defined(__HIP__) && \
	!defined(__OPENCL_C_VERSION__)

#define G_HAS_DEBUG 1

/* Functions of tests/emulator. */
uint32_t spmla_i_emu_debug(void);
void spmla_i_emu_debug_begin(void *state, void *status, uint64_t serial);

#define G_DEBUG spmla_i_emu_debug()
#define G_DEBUG_BEGIN(state, status) \
	spmla_i_emu_debug_begin(state, status, (state)->serial)

FN void
g_debug_sleep(void)
{
}

#else

#define G_HAS_DEBUG                  0
#define G_DEBUG                      0
#define G_DEBUG_BEGIN(state, status) ((void)0)

FN void
g_debug_sleep(void)
{
}

FN void
g_debug_pause(void)
{
}

FN uint32_t
g_debug_clock(void)
{
	return 0;
}

FN uint32_t
g_debug_late(uint32_t since)
{
	(void)since;
	return 0;
}

FN void
g_debug_end(uint32_t late)
{
	(void)late;
}

FN void
g_debug_named(uint32_t id, uint32_t items, uint32_t waits)
{
	(void)(id + items + waits);
}

#endif

/* Fills shared memory whose values nobody needs any more with all ones, which
 * are NaN in every type that lies there. By `items` threads, of which this one
 * is number `item`. */
FN void
g_spoil(LOCAL uint8_t *from, uint32_t bytes, uint32_t item, uint32_t items)
{
	LOCAL uint32_t *to = (LOCAL uint32_t *)from;
	uint32_t i;

	NO_UNROLL
	for (i = item; i < bytes / 4; i += items)
		to[i] = ~0u;
}

#endif
