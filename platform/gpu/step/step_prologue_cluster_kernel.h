/* SPDX-License-Identifier: Apache-2.0
 *
 * V4's prologue of few tokens as one launch of one cluster. Its first block is
 * step_prologue_v4. As soon as it knows rows and positions, it sends them to the
 * other blocks, which make the lists of the tokens while it goes on with pages
 * and logits. Block 1 + t % PROLOGUE_MAKERS has token t. No block waits for
 * anything but its cluster.
 *
 * An mbarrier of the block that gets words counts them: a barrier of the cluster
 * would wait for every store before it, some 1 us. Only subgroups that changed a
 * table wait for their stores, before the others are told.
 *
 * The hard idea: what the others do is known before the record is here, though
 * not for whom. So they rehearse it with the requests of the last step and write
 * nothing. That fetches their code and most of the tables' lines.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_CLUSTER_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_CLUSTER_KERNEL_H

#include "spmla/platform/gpu/dialect/async.h"
#include "spmla/platform/gpu/dialect/wgmma.h"
#include "spmla/platform/gpu/step/step_lists_device.h"
#include "spmla/platform/gpu/step/step_prologue_narrow_device.h"

/* Outputs have the names that step_prologue_windows gives them. all_* are its
 * tables: step_prologue's own tables are NULL where the engine has them. */
#define SPMLA_K_step_prologue_cluster(P, S) \
	SPMLA_K_STEP_PROLOGUE(P, S)         \
	SPMLA_P_WINDOWS_OUT(P)              \
	P(const int32_t, all_c4a_table)     \
	P(const int32_t, all_c4a_cols)      \
	P(const int32_t, all_c128a_table)   \
	P(const int32_t, all_c128a_cols)    \
	P(const int32_t, all_index_table)   \
	P(const int32_t, all_index_cols)    \
	S(spmla_k_step_prologue_windows_scalars, windows)
SPMLA_KERNEL_SCALARS(step_prologue_cluster)

enum {
	PROLOGUE_CLUSTER = 8, /* blocks */
	PROLOGUE_MAKERS = PROLOGUE_CLUSTER - 1,
	PROLOGUE_CLUSTER_TOKENS = PROLOGUE_MAKERS * LISTS_SLOTS,
	/* Entries of C128A, as wide as the lists are, of a block's tokens, if
	 * these are more than two. */
	PROLOGUE_CLUSTER_ENTRIES = 6144,
	PROLOGUE_CLUSTER_BYTES = 38 * 1024
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* The memory of a block other than the first. */
typedef struct prologue_other_shared {
	g_mbarrier tokens_told; /* lists.tokens is here */
	g_mbarrier end_told;    /* all else is here */
	uint32_t end[6];        /* pairs: over; low and high words of serial,
				 * and of the step */
	lists_shared lists;
	uint32_t before[2 * LISTS_SLOTS]; /* as lists.tokens, in a rehearsal */
	/* Pairs: the context of a token, 0. */
	uint32_t contexts[2 * PROLOGUE_CLUSTER_TOKENS];
} prologue_other_shared;

typedef union prologue_cluster_shared {
	prologue_shared first;
	prologue_other_shared other;
} prologue_cluster_shared;

/* The arguments of the kernel. */
typedef struct prologue_cluster_job {
	SPMLA_KERNEL_FIELDS(step_prologue_cluster)
	LOCAL prologue_cluster_shared *shared;
} prologue_cluster_job;

FN prologue_job
prologue_first_job(const PRIVATE prologue_cluster_job *job)
{
	prologue_job j;

	SPMLA_STATIC_ASSERT(sizeof(prologue_cluster_shared) <=
				    PROLOGUE_CLUSTER_BYTES,
			    "kernels.inc asks for enough");
#define COPY(type, name) j.name = job->name;
	SPMLA_K_step_prologue(COPY, SPMLA_I_K_NONE);
#undef COPY
#define COPY(type, name) j.s.name = job->s.name;
	SPMLA_K_step_prologue(SPMLA_I_K_NONE, COPY);
#undef COPY
	j.shared = &job->shared->first;
	j.apart = 1;
	return j;
}

FN lists_job
prologue_other_job(const PRIVATE prologue_cluster_job *job)
{
	lists_job j;

#define COPY(type, name) j.a.name = job->name;
	SPMLA_K_FAULT(COPY)
	SPMLA_P_WINDOWS_IN(COPY)
	SPMLA_P_WINDOWS_OUT(COPY)
#undef COPY
	j.a.swa_table = job->block_table;
	j.a.swa_cols = job->table_cols;
	j.a.c4a_table = job->all_c4a_table;
	j.a.c4a_cols = job->all_c4a_cols;
	j.a.c128a_table = job->all_c128a_table;
	j.a.c128a_cols = job->all_c128a_cols;
	j.a.index_table = job->all_index_table;
	j.a.index_cols = job->all_index_cols;
	j.a.s = job->s.windows;
	j.shared = &job->shared->other.lists;
	j.tokens = job->shared->other.before;
	j.items = PROLOGUE_ITEMS;
	j.context_pages = job->s.pool_pages;
	j.first = g_cluster_rank() - 1;
	j.step = PROLOGUE_MAKERS;
	j.is_real = 0;
	j.over = 0;
	j.to.state = job->fault_state;
	j.to.status = job->fault_status;
	j.to.serial = j.to.step = 0;
	return j;
}

/* ---- The first block --------------------------------------------------- */

/* Sends two words to the same place in a block's memory, where `told` counts
 * them. */
FN void
prologue_send(LOCAL const uint32_t *to, uint32_t x, uint32_t y,
	      LOCAL const g_mbarrier *told, uint32_t rank)
{
	g_cluster_send2(g_cluster_at(to, rank), x, y, g_cluster_at(told, rank));
}

/* Tells the other blocks their tokens. */
FN void
prologue_hand_on(const PRIVATE prologue_cluster_job *job,
		 const PRIVATE prologue_job *j, uint32_t queries)
{
	LOCAL const prologue_shared *first = &job->shared->first;
	LOCAL const prologue_other_shared *other = &job->shared->other;
	uint32_t t;

	g_cluster_wait(); /* they have begun */
	NO_UNROLL
	for (t = g_item(); t < job->s.tokens; t += PROLOGUE_ITEMS) {
		const uint32_t b = prologue_request_of(j, t, queries);
		const uint32_t row = t < queries ? first->rows[b] : 0;
		const uint32_t len = t < queries ? first->lens[b] : 0;
		const uint32_t slot = t / PROLOGUE_MAKERS;

		prologue_send(other->lists.tokens + 2 * slot, row,
			      len ? len - (first->ends[b] - t) + 1 : 0,
			      &other->tokens_told,
			      1 + t - slot * PROLOGUE_MAKERS);
	}
}

/* Tells them what they end with: whether the logits of some tokens did not fit,
 * and what to report to; and those that cut all contexts. */
FN void
prologue_hand_over(const PRIVATE prologue_cluster_job *job,
		   const PRIVATE g_reporter *to)
{
	LOCAL const prologue_other_shared *other = &job->shared->other;
	LOCAL const g_mbarrier *told = &other->end_told;
	const uint32_t over = job->shared->first.over, rank = 1 + g_item();
	uint32_t t;

	if (over) {
		g_fence_device();
		BARRIER();
	}
	if (rank <= PROLOGUE_MAKERS) {
		prologue_send(other->end, over, 0, told, rank);
		prologue_send(other->end + 2, (uint32_t)to->serial,
			      (uint32_t)(to->serial >> 32), told, rank);
		prologue_send(other->end + 4, (uint32_t)to->step,
			      (uint32_t)(to->step >> 32), told, rank);
	}
	if (!job->s.windows.parts)
		return;
	NO_UNROLL
	for (t = g_item(); t < job->s.tokens; t += PROLOGUE_ITEMS) {
		const uint32_t n = (uint32_t)job->context_lens[t];
		uint32_t i;

		for (i = 0; i < WINDOWS_CUTS; i++)
			prologue_send(other->contexts + 2 * t, n, 0, told,
				      PROLOGUE_MAKERS - i);
	}
}

FN void
prologue_first(const PRIVATE prologue_cluster_job *job)
{
	const prologue_job j = prologue_first_job(job);
	prologue_state st = prologue_begin(&j);
	prologue_own own;
	const uint32_t queries = prologue_requests(&j, &st, &own);
	uint32_t t;

	prologue_hand_on(job, &j, queries);
	prologue_tokens(&j, &st, queries, &own);
	if (j.shared->over) {
		for (t = g_item(); t < j.s.tokens; t += PROLOGUE_ITEMS)
			j.compressed_lens[t] =
				j.context_lens[t] >> j.s.index_shift;
		g_fence_device();
		BARRIER();
		prologue_fit(&j, &st);
	}
	prologue_hand_over(job, &st.to);
	prologue_end(&j, &st);
}

/* ---- The other blocks -------------------------------------------------- */

/* Prepares `n` slots for words of the first block, and lets it send them. */
FN void
prologue_await(const PRIVATE prologue_cluster_job *job, uint32_t n,
	       uint32_t is_cut)
{
	LOCAL prologue_other_shared *shared = &job->shared->other;

	if (g_item() == 0) {
		g_mbarrier_init(&shared->tokens_told, 1);
		g_mbarrier_init(&shared->end_told, 1);
		g_mbarriers_publish();
		g_mbarrier_arrive_expect(&shared->tokens_told, 8 * n);
		g_mbarrier_arrive_expect(
			&shared->end_told,
			8 * (3 + (is_cut ? job->s.tokens : 0)));
	}
	BARRIER();
}

/* Fills slots with the tokens that requests of the last step would have. The
 * first block may be changing those: any values do. A barrier at the end. */
FN void
prologue_rehearse(const PRIVATE prologue_cluster_job *job,
		  const PRIVATE lists_job *w, uint32_t n)
{
	LOCAL prologue_other_shared *shared = &job->shared->other;
	const uint32_t i = g_item();
	const uint32_t last = job->fault_state->requests;

	if (i < n) {
		const uint32_t b =
			g_divide(w->first + i * w->step, job->s.next_n);
		uint32_t row = 0, end = 0;

		if (b < last && b < job->s.requests) {
			row = job->kept[b * G_REQUEST_WORDS];
			end = job->kept[b * G_REQUEST_WORDS + 2];
		}
		if (row >= job->s.rows || end > job->s.longest)
			row = end = 0;
		shared->before[2 * i] = row;
		shared->before[2 * i + 1] = end;
		shared->lists.lists[i] = 0;
	}
	BARRIER();
}

FN void
prologue_other(const PRIVATE prologue_cluster_job *job)
{
	LOCAL prologue_other_shared *shared = &job->shared->other;
	lists_job w = prologue_other_job(job);
	const uint32_t n =
		w.first < job->s.tokens
			? (job->s.tokens - 1 - w.first) / PROLOGUE_MAKERS + 1
			: 0;
	const uint32_t is_cut = job->s.windows.parts &&
				w.first + WINDOWS_CUTS >= PROLOGUE_MAKERS;

	prologue_await(job, n, is_cut);
	g_cluster_arrive_relaxed();
	prologue_rehearse(job, &w, n);
	NO_UNROLL
	for (;;) {
		lists_make(&w, n);
		if (w.is_real)
			break;
		g_mbarrier_wait_cluster(&shared->tokens_told, 0);
		w.tokens = shared->lists.tokens;
		w.is_real = 1;
	}
	g_mbarrier_wait_cluster(&shared->end_told, 0);
	BARRIER();
	w.over = shared->end[0];
	w.to.serial = (uint64_t)shared->end[3] << 32 | shared->end[2];
	w.to.step = (uint64_t)shared->end[5] << 32 | shared->end[4];
	if (g_item() < n)
		lists_end(&w, g_item());
	g_cluster_wait();
	if (is_cut)
		lists_cut(&w,
			  w.first + 1 == PROLOGUE_MAKERS
				  ? SPMLA_COMPRESS_OVERLAP
				  : SPMLA_COMPRESS_MOST,
			  shared->contexts);
}

SPMLA_KERNEL_CLUSTER(step_prologue_cluster, 8)
void
spmla_k_step_prologue_cluster(SPMLA_KERNEL_ARGS(step_prologue_cluster))
{
	LOCAL_DYNAMIC(memory, PROLOGUE_CLUSTER_BYTES);
	const prologue_cluster_job job = {
		SPMLA_KERNEL_VALUES(step_prologue_cluster),
		(LOCAL prologue_cluster_shared *)(LOCAL void *)memory};

	if (g_cluster_rank() == 0) {
		g_cluster_arrive_relaxed();
		prologue_first(&job);
	} else {
		prologue_other(&job);
	}
}

#endif
#endif
