/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies that run beside a thread, and how subgroups of a block that do
 * different work wait for each other. With nvcc it is PTX, for Hopper only
 * except g_local_copy*. In the emulator it is calls, which let everything
 * happen as early or as late as it may.
 *
 * An mbarrier is a word of shared memory that counts arrivals and bytes. Its
 * phases follow each other, with parity 0, 1, 0 .. A phase is over when as many
 * threads as g_mbarrier_init says have arrived, and all bytes that were
 * expected have been copied. Threads that waited see what a thread wrote before
 * it arrived. Matrix instructions and bulk copies see it only if the thread
 * that wrote it called g_fence_async first.
 *
 * A cluster is up to eight blocks that run at the same time on neighbouring
 * multiprocessors. Each may write words into the LOCAL_DYNAMIC memory of any of
 * them. In a cluster of two, each block may also copy into the peer's memory
 * and arrive at mbarriers there. A place in another block's memory is named by
 * the same place in this block's. A block may do so only after g_cluster_sync
 * has told it that the other has begun. No block may end before others have
 * accessed its memory for the last time.
 *
 * Named barriers, 1 to 15, are barriers of some of a block's subgroups. The
 * number of threads is a multiple of 32, and all callers give the same. All
 * lanes of a subgroup call together.
 *
 * The file has more than 800 lines because it has nearly every function twice,
 * as PTX and for the emulator, and a change of one is a change of both.
 */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_ASYNC_H
#define SPMLA_PLATFORM_GPU_DIALECT_ASYNC_H

#include "spmla/platform/gpu/dialect/dialect.h"

typedef uint64_t g_mbarrier;

#if defined(__CUDACC__)

#ifdef SPMLA_GPU_KERNELS

FN uint32_t
async_at(LOCAL const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

/* ---- copies from global memory ------------------------------------------- */

/* Copies 16 bytes to shared memory if `is` is not 0, else writes zeros there.
 * The thread that asked sees them after g_local_copies_wait or wait_but. */
FN void
g_local_copy128(LOCAL void *to, GLOBAL const void *from, uint32_t is)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
		     :
		     : "r"(async_at(to)), "l"(from), "r"(is ? 16 : 0)
		     : "memory");
}

/* The same of 8 bytes. */
FN void
g_local_copy64(LOCAL void *to, GLOBAL const void *from, uint32_t is)
{
	asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
		     :
		     : "r"(async_at(to)), "l"(from), "r"(is ? 8 : 0)
		     : "memory");
}

/* The same of 4 bytes. */
FN void
g_local_copy32(LOCAL void *to, GLOBAL const void *from, uint32_t is)
{
	asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
		     :
		     : "r"(async_at(to)), "l"(from), "r"(is ? 4 : 0)
		     : "memory");
}

/* Makes a group of the copies that the thread has asked for since its last
 * group. */
FN void
g_local_copies_commit(void)
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Stores two words, at a multiple of 8 bytes, if `is` is not 0. */
FN void
g_local_store2_if(LOCAL uint32_t *to, uint32_t x, uint32_t y, uint32_t is)
{
	asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; "
		     "@p st.shared.v2.u32 [%0], {%1, %2};}"
		     :
		     : "r"(async_at(to)), "r"(x), "r"(y), "r"(is)
		     : "memory");
}

/* Where the next words go; a multiple of their bytes. */
typedef uint32_t g_local_place;

FN g_local_place
g_local_at(LOCAL const void *p)
{
	return async_at(p);
}

/* Stores x and y and moves on, unless x is smaller than `least`. */
FN void
g_local_push2(PRIVATE g_local_place *to, float x, uint32_t y, float least)
{
	asm volatile("{.reg .pred p; setp.geu.f32 p, %1, %3; "
		     "@p st.shared.v2.b32 [%0], {%1, %2}; "
		     "@p add.u32 %0, %0, 8;}"
		     : "+r"(*to)
		     : "f"(x), "r"(y), "f"(least)
		     : "memory");
}

/* Stores x, in one word, and moves on, if `is` is not 0. */
FN void
g_local_push_if(PRIVATE g_local_place *to, uint32_t x, uint32_t is)
{
	asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; "
		     "@p st.shared.u32 [%0], %1; "
		     "@p add.u32 %0, %0, 4;}"
		     : "+r"(*to)
		     : "r"(x), "r"(is)
		     : "memory");
}

/* Waits for all copies. */
FN void
g_local_copies_wait(void)
{
	asm volatile("cp.async.wait_all;" ::: "memory");
}

#define ASYNC_WAIT(n)                                                     \
	case n:                                                           \
		asm volatile("cp.async.wait_group " #n ";" ::: "memory"); \
		break;

/* Waits for all groups but the last `groups`, a constant from 0 to 7. */
FN void
g_local_copies_wait_but(uint32_t groups)
{
	switch (groups) {
		ASYNC_WAIT(0)
		ASYNC_WAIT(1)
		ASYNC_WAIT(2)
		ASYNC_WAIT(3)
		ASYNC_WAIT(4)
		ASYNC_WAIT(5)
		ASYNC_WAIT(6)
		ASYNC_WAIT(7)
	}
}

#undef ASYNC_WAIT

/* Lets matrix instructions and bulk copies see what the thread has written to
 * shared memory. Also stands between its reads and bulk copies that overwrite
 * what it has read. */
FN void
g_fence_async(void)
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- mbarriers ----------------------------------------------------------- */

/* Called by one thread. Others use the mbarrier after g_mbarriers_publish and a
 * barrier. */
FN void
g_mbarrier_init(LOCAL g_mbarrier *b, uint32_t arrivals)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
		     :
		     : "r"(async_at(b)), "r"(arrivals)
		     : "memory");
}

/* Called by the thread that made the mbarriers, after the last one. */
FN void
g_mbarriers_publish(void)
{
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

FN void
g_mbarrier_arrive(LOCAL g_mbarrier *b)
{
#ifdef SPMLA_KERNEL_DEBUG
	asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; "
		     "@p mbarrier.arrive.shared::cta.b64 _, [%0];}"
		     :
		     : "r"(async_at(b)), "r"(g_debug_arrives())
		     : "memory");
#else
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
		     :
		     : "r"(async_at(b))
		     : "memory");
#endif
}

/* Arrives, and makes the phase wait for `bytes` more bytes. */
FN void
g_mbarrier_arrive_expect(LOCAL g_mbarrier *b, uint32_t bytes)
{
	g_debug_pause();
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
		     :
		     : "r"(async_at(b)), "r"(bytes)
		     : "memory");
}

/* Arrives once all copies from global memory that the thread has asked for are
 * there. Does not wait for them. */
FN void
g_mbarrier_arrive_copies(LOCAL g_mbarrier *b)
{
	g_debug_pause();
	asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
		     :
		     : "r"(async_at(b))
		     : "memory");
}

/* Whether the phase of that parity is over. It may take a while to say no. */
FN uint32_t
async_try(LOCAL const g_mbarrier *b, uint32_t parity)
{
	uint32_t is;

	asm volatile("{.reg .pred p; "
		     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
		     "selp.u32 %0, 1, 0, p;}"
		     : "=r"(is)
		     : "r"(async_at(b)), "r"(parity)
		     : "memory");
	return is;
}

/* Waits until the phase of that parity, 0 or 1, is over. Returns at once if the
 * current phase has the other parity. */
FN void
g_mbarrier_wait(LOCAL const g_mbarrier *b, uint32_t parity)
{
	const uint32_t since = g_debug_clock();
	uint32_t late = 0;

	while (!late && !async_try(b, parity))
		late = g_debug_late(since);
	g_debug_end(late);
	g_debug_pause();
}

/* ---- named barriers ------------------------------------------------------ */

/* Waits until `items` threads, this one included, have come to barrier `id`. */
FN void
g_named_sync(uint32_t id, uint32_t items)
{
	g_debug_named(id, items, 1);
	asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(items) : "memory");
	g_debug_pause();
}

/* Comes to barrier `id` without waiting. */
FN void
g_named_arrive(uint32_t id, uint32_t items)
{
	g_debug_named(id, items, 0);
	asm volatile("bar.arrive %0, %1;" : : "r"(id), "r"(items) : "memory");
}

/* As g_named_sync. Returns whether `is` is not 0 for any of the threads. */
FN uint32_t
g_named_any(uint32_t id, uint32_t items, uint32_t is)
{
	uint32_t any;

	g_debug_pause();
	asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; "
		     "bar.red.or.pred p, %1, %2, p; selp.u32 %0, 1, 0, p;}"
		     : "=r"(any)
		     : "r"(id), "r"(items), "r"(is)
		     : "memory");
	g_debug_pause();
	return any;
}

/* ---- clusters ------------------------------------------------------------ */

/* The number of this block in the cluster, from 0 on. */
FN uint32_t
g_cluster_rank(void)
{
	uint32_t rank;

	asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
	return rank;
}

/* A barrier of all threads of the cluster. */
FN void
g_cluster_sync(void)
{
	asm volatile("barrier.cluster.arrive.release.aligned; "
		     "barrier.cluster.wait.acquire.aligned;" ::
			     : "memory");
}

/* g_cluster_arrive and g_cluster_wait are the two halves of g_cluster_sync.
 * Accesses between them have no order. */
FN void
g_cluster_arrive(void)
{
	asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

/* The first half, for a block that wrote nothing that other blocks shall see.
 */
FN void
g_cluster_arrive_relaxed(void)
{
	asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

FN void
g_cluster_wait(void)
{
	asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* A place in a block's memory, as a number: add n for n bytes further on. */
typedef uint32_t g_cluster_place;

FN g_cluster_place
g_cluster_at(LOCAL const void *p, uint32_t rank)
{
	uint32_t at;

	asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
		     : "=r"(at)
		     : "r"(async_at(p)), "r"(rank));
	return at;
}

/* Other blocks see the word after the next g_cluster_sync. */
FN void
g_cluster_store(g_cluster_place at, uint32_t x)
{
	asm volatile("st.shared::cluster.u32 [%0], %1;"
		     :
		     : "r"(at), "r"(x)
		     : "memory");
}

/* Stores two words, at a multiple of 8 bytes, if `is` is not 0. */
FN void
g_cluster_store2_if(g_cluster_place at, uint32_t x, uint32_t y, uint32_t is)
{
	asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; "
		     "@p st.shared::cluster.v2.u32 [%0], {%1, %2};}"
		     :
		     : "r"(at), "r"(x), "r"(y), "r"(is)
		     : "memory");
}

/* As g_mbarrier_arrive_expect, at another block's mbarrier. */
FN void
g_cluster_arrive_expect(g_cluster_place b, uint32_t bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%0], "
		     "%1;"
		     :
		     : "r"(b), "r"(bytes)
		     : "memory");
}

/* Copies from this block's memory to another's, whose mbarrier `b` counts the
 * bytes. Their number and the addresses are multiples of 16. */
FN void
g_cluster_copy(g_cluster_place to, LOCAL const void *from, uint32_t bytes,
	       g_cluster_place b)
{
	asm volatile("cp.async.bulk.shared::cluster.shared::cta."
		     "mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
		     :
		     : "r"(to), "r"(async_at(from)), "r"(bytes), "r"(b)
		     : "memory");
}

FN void
g_cluster_add(g_cluster_place at, uint32_t x)
{
	asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;"
		     :
		     : "r"(at), "r"(x)
		     : "memory");
}

/* A place in the peer's shared memory. */
FN uint32_t
async_peer(LOCAL const void *p)
{
	return g_cluster_at(p, g_cluster_rank() ^ 1u);
}

/* Arrives at the peer's mbarrier. The peer may then overwrite what this thread
 * has read, but it need not see what this thread wrote. */
FN void
g_mbarrier_arrive_peer(LOCAL g_mbarrier *b)
{
	g_debug_pause();
	asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];"
		     :
		     : "r"(async_peer(b))
		     : "memory");
}

/* Copies from this block's memory to the peer's, whose mbarrier `b` counts the
 * bytes. Their number and the addresses are multiples of 16. */
FN void
g_peer_copy(LOCAL void *to, LOCAL const void *from, uint32_t bytes,
	    LOCAL g_mbarrier *b)
{
	g_cluster_copy(async_peer(to), from, bytes, async_peer(b));
}

/* ---- bulk copies --------------------------------------------------------- */

/* Copies from global memory. The mbarrier counts the bytes; their number and
 * the addresses are multiples of 16. */
FN void
g_bulk_copy(LOCAL void *to, GLOBAL const void *from, uint32_t bytes,
	    LOCAL g_mbarrier *b)
{
	asm volatile("cp.async.bulk.shared::cluster.global."
		     "mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
		     :
		     : "r"(async_at(to)), "l"(from), "r"(bytes),
		       "r"(async_at(b))
		     : "memory");
}

/* g_bulk_copy of memory that is read once: the L2 evicts its lines before
 * others. */
FN void
g_bulk_copy_once(LOCAL void *to, GLOBAL const void *from, uint32_t bytes,
		 LOCAL g_mbarrier *b)
{
	uint64_t policy;

	asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;"
	    : "=l"(policy));
	asm volatile("cp.async.bulk.shared::cluster.global."
		     "mbarrier::complete_tx::bytes.L2::cache_hint "
		     "[%0], [%1], %2, [%3], %4;"
		     :
		     : "r"(async_at(to)), "l"(from), "r"(bytes),
		       "r"(async_at(b)), "l"(policy)
		     : "memory");
}

/* ---- warps --------------------------------------------------------------- */

/* x of lane `lane`, which each lane chooses for itself. */
FN uint32_t
g_shuffle(uint32_t x, uint32_t lane)
{
	return __shfl_sync(0xffffffffu, x, (int)lane);
}

/* The sum over the lanes; below, the largest. */
FN uint32_t
g_warp_sum(uint32_t x)
{
	return __reduce_add_sync(0xffffffffu, x);
}

FN uint32_t
g_warp_most(uint32_t x)
{
	return __reduce_max_sync(0xffffffffu, x);
}

/* The sum over the lanes up to this one. */
FN uint32_t
g_warp_upto(uint32_t x)
{
	uint32_t step;

	UNROLL
	for (step = 1; step < 32; step <<= 1)
		asm volatile("{.reg .u32 y; .reg .pred p; "
			     "shfl.sync.up.b32 y|p, %0, %1, 0, -1; "
			     "@p add.u32 %0, %0, y;}"
			     : "+r"(x)
			     : "r"(step));
	return x;
}

/* ---- registers ----------------------------------------------------------- */

/* From now on a lane of the warpgroup has n registers: a constant from 24 to
 * 240, a multiple of 8. All lanes of the warpgroup call it. UP waits until
 * others have given back enough registers. */
#define G_REGISTERS_UP(n) \
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"((int)(n)))
#define G_REGISTERS_DOWN(n) \
	asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"((int)(n)))

#endif

#else /* the emulator */

/* Functions of tests/emulator. */
void spmla_i_emu_copy(void *to, const void *from, uint32_t bytes, uint32_t is);
void spmla_i_emu_copies_commit(void);
void spmla_i_emu_copies_wait_but(uint32_t groups);
void spmla_i_emu_copies_wait(void);
void spmla_i_emu_mbarrier_init(g_mbarrier *b, uint32_t arrivals);
void spmla_i_emu_mbarrier_arrive(g_mbarrier *b, uint32_t bytes);
void spmla_i_emu_mbarrier_arrive_copies(g_mbarrier *b);
void spmla_i_emu_mbarrier_wait(const g_mbarrier *b, uint32_t parity,
			       const char *file, int line);
uint32_t spmla_i_emu_cluster_rank(void);
void spmla_i_emu_cluster_sync(const char *file, int line);
void spmla_i_emu_cluster_arrive(const char *file, int line);
void spmla_i_emu_cluster_wait(const char *file, int line);
uint64_t spmla_i_emu_cluster_at(const void *p, uint32_t rank);
/* Where `count` words of the cluster's memory are. */
uint32_t *spmla_i_emu_cluster_words(uint64_t at, uint32_t count);
void spmla_i_emu_cluster_copy(uint64_t to, const void *from, uint32_t bytes,
			      uint64_t b);
void spmla_i_emu_cluster_expect(uint64_t b, uint32_t bytes);
void spmla_i_emu_peer_copy(void *to, const void *from, uint32_t bytes,
			   g_mbarrier *b);
void spmla_i_emu_peer_arrive(g_mbarrier *b);
void spmla_i_emu_bulk_copy(void *to, const void *from, uint32_t bytes,
			   g_mbarrier *b);
void spmla_i_emu_fence_async(void);
/* `waits` is 0: only arrives. `votes` is 0: there is no vote. */
uint32_t spmla_i_emu_named(uint32_t id, uint32_t items, uint32_t waits,
			   uint32_t votes, uint32_t is, const char *file,
			   int line);

#ifdef SPMLA_GPU_KERNELS

FN void
g_local_copy128(void *to, const void *from, uint32_t is)
{
	spmla_i_emu_copy(to, from, 16, is);
}

FN void
g_local_copy64(void *to, const void *from, uint32_t is)
{
	spmla_i_emu_copy(to, from, 8, is);
}

FN void
g_local_copy32(void *to, const void *from, uint32_t is)
{
	spmla_i_emu_copy(to, from, 4, is);
}

FN void
g_local_store2_if(uint32_t *to, uint32_t x, uint32_t y, uint32_t is)
{
	if (!is)
		return;
	to[0] = x;
	to[1] = y;
}

typedef uint32_t *g_local_place;

FN g_local_place
g_local_at(const void *p)
{
	return (uint32_t *)(uintptr_t)p;
}

FN void
g_local_push2(g_local_place *to, float x, uint32_t y, float least)
{
	if (x < least)
		return;
	(*to)[0] = g_bits(x);
	(*to)[1] = y;
	*to += 2;
}

FN void
g_local_push_if(g_local_place *to, uint32_t x, uint32_t is)
{
	if (!is)
		return;
	**to = x;
	*to += 1;
}

FN void
g_local_copies_commit(void)
{
	spmla_i_emu_copies_commit();
}

FN void
g_local_copies_wait(void)
{
	spmla_i_emu_copies_wait();
}

FN void
g_local_copies_wait_but(uint32_t groups)
{
	spmla_i_emu_copies_wait_but(groups);
}

FN void
g_fence_async(void)
{
	spmla_i_emu_fence_async();
}

FN void
g_mbarrier_init(g_mbarrier *b, uint32_t arrivals)
{
	spmla_i_emu_mbarrier_init(b, arrivals);
}

FN void
g_mbarriers_publish(void)
{
}

FN void
g_mbarrier_arrive(g_mbarrier *b)
{
	spmla_i_emu_mbarrier_arrive(b, 0);
}

FN void
g_mbarrier_arrive_expect(g_mbarrier *b, uint32_t bytes)
{
	spmla_i_emu_mbarrier_arrive(b, bytes);
}

FN void
g_mbarrier_arrive_copies(g_mbarrier *b)
{
	spmla_i_emu_mbarrier_arrive_copies(b);
}

FN uint32_t
g_cluster_rank(void)
{
	return spmla_i_emu_cluster_rank();
}

FN void
g_mbarrier_arrive_peer(g_mbarrier *b)
{
	spmla_i_emu_peer_arrive(b);
}

FN void
g_peer_copy(void *to, const void *from, uint32_t bytes, g_mbarrier *b)
{
	spmla_i_emu_peer_copy(to, from, bytes, b);
}

FN void
g_bulk_copy(void *to, const void *from, uint32_t bytes, g_mbarrier *b)
{
	spmla_i_emu_bulk_copy(to, from, bytes, b);
}

FN void
g_bulk_copy_once(void *to, const void *from, uint32_t bytes, g_mbarrier *b)
{
	spmla_i_emu_bulk_copy(to, from, bytes, b);
}

typedef uint64_t g_cluster_place;

FN g_cluster_place
g_cluster_at(const void *p, uint32_t rank)
{
	return spmla_i_emu_cluster_at(p, rank);
}

FN void
g_cluster_store(g_cluster_place at, uint32_t x)
{
	*spmla_i_emu_cluster_words(at, 1) = x;
}

FN void
g_cluster_store2_if(g_cluster_place at, uint32_t x, uint32_t y, uint32_t is)
{
	uint32_t *to;

	if (!is)
		return;
	to = spmla_i_emu_cluster_words(at, 2);
	to[0] = x;
	to[1] = y;
}

FN void
g_cluster_arrive_expect(g_cluster_place b, uint32_t bytes)
{
	spmla_i_emu_cluster_expect(b, bytes);
}

FN void
g_cluster_copy(g_cluster_place to, const void *from, uint32_t bytes,
	       g_cluster_place b)
{
	spmla_i_emu_cluster_copy(to, from, bytes, b);
}

FN void
g_cluster_add(g_cluster_place at, uint32_t x)
{
	*spmla_i_emu_cluster_words(at, 1) += x;
}

FN uint32_t
g_shuffle(uint32_t x, uint32_t lane)
{
	return g_broadcast(x, lane);
}

FN uint32_t
g_warp_sum(uint32_t x)
{
	const uint32_t *lanes = spmla_i_emu_exchange(&x, 1);
	uint32_t sum = 0, i;

	for (i = 0; i < g_width(); i++)
		sum += lanes[i];
	return sum;
}

FN uint32_t
g_warp_upto(uint32_t x)
{
	const uint32_t *lanes = spmla_i_emu_exchange(&x, 1);
	uint32_t sum = 0, i;

	for (i = 0; i <= g_lane(); i++)
		sum += lanes[i];
	return sum;
}

FN uint32_t
g_warp_most(uint32_t x)
{
	const uint32_t *lanes = spmla_i_emu_exchange(&x, 1);
	uint32_t i;

	for (i = 0; i < g_width(); i++)
		x = lanes[i] > x ? lanes[i] : x;
	return x;
}

#define g_cluster_sync()           spmla_i_emu_cluster_sync(__FILE__, __LINE__)
#define g_cluster_arrive()         spmla_i_emu_cluster_arrive(__FILE__, __LINE__)
#define g_cluster_wait()           spmla_i_emu_cluster_wait(__FILE__, __LINE__)
#define g_cluster_arrive_relaxed() g_cluster_arrive()
#define g_mbarrier_wait(b, parity) \
	spmla_i_emu_mbarrier_wait(b, parity, __FILE__, __LINE__)
#define g_named_sync(id, items) \
	((void)spmla_i_emu_named(id, items, 1, 0, 0, __FILE__, __LINE__))
#define g_named_arrive(id, items) \
	((void)spmla_i_emu_named(id, items, 0, 0, 0, __FILE__, __LINE__))
#define g_named_any(id, items, is) \
	spmla_i_emu_named(id, items, 1, 1, (is) != 0, __FILE__, __LINE__)

#define G_REGISTERS_UP(n)   ((void)(n))
#define G_REGISTERS_DOWN(n) ((void)(n))

#endif
#endif
#endif
