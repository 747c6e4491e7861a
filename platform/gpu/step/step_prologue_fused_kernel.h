/* SPDX-License-Identifier: Apache-2.0
 *
 * V4's prologue of a decode as one launch. Block 0 is step_prologue_v4. As soon
 * as it knows rows and positions, it hands each token on to a block that makes
 * the token's lists, while it goes on with pages and logits. A unit is a token,
 * or behind the tokens one of the two cuts of a decode in parts; block 1 + u has
 * unit u. It gets words through STEP_UNITS, in the L2: a word that is not there
 * yet is 0, and whoever serves the unit leaves zeros.
 *
 * The hard idea is a wait that ends though something keeps block 0 from
 * beginning. A block that has waited too long gives its unit up: it swaps a mark
 * into the unit's claim, if that is 0. Block 0 adds its own mark as it hands the
 * unit on, and looks at the claim later. So either the swap fails, and words are
 * sure to come, or block 0 finds the block's mark and serves the unit itself. A
 * device never takes away one block alone, so block 0 goes on once it has begun.
 * That wait ends, too, as every wait must, but only on a broken device; the
 * token is empty then, and later ones are a step behind. Whoever serves a unit
 * makes its claim 0. If block 0's mark comes after that, it stays: in the next
 * step the block waits on where it might have given up.
 *
 * What a block does is known before the record is here, though not for whom. So
 * it rehearses it with the last step's request and writes nothing. That fetches
 * its code and most of the tables' lines.
 *
 * Subgroups that changed a table wait for their stores before a unit is handed
 * on. No other store is waited for. A block that has its words loads tables
 * behind a barrier, from the L2. PTX asks for a fence there, too; Hopper does not
 * load ahead of a barrier.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_FUSED_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_FUSED_KERNEL_H

#include "spmla/platform/gpu/dialect/wgmma.h"
#include "spmla/platform/gpu/step/step_lists_device.h"
#include "spmla/platform/gpu/step/step_prologue_narrow_device.h"

/* Outputs have the names that step_prologue_windows gives them. all_* are its
 * tables: step_prologue's own tables are NULL where the engine has them. */
#define SPMLA_K_step_prologue_fused(P, S)                 \
	SPMLA_K_STEP_PROLOGUE(P, S)                       \
	SPMLA_P_WINDOWS_OUT(P)                            \
	P(uint32_t, units)                                \
	P(const int32_t, all_c4a_table)                   \
	P(const int32_t, all_c4a_cols)                    \
	P(const int32_t, all_c128a_table)                 \
	P(const int32_t, all_c128a_cols)                  \
	P(const int32_t, all_index_table)                 \
	P(const int32_t, all_index_cols)                  \
	S(spmla_k_step_prologue_windows_scalars, windows) \
	S(uint32_t, logits_fit)
SPMLA_KERNEL_SCALARS(step_prologue_fused)

enum {
	PROLOGUE_FUSED_TOKENS = 512, /* at most */
	PROLOGUE_UNITS = PROLOGUE_FUSED_TOKENS + WINDOWS_CUTS,
	/* Words of a unit's line. */
	UNIT_ROW = 0,    /* 1 + the token's row */
	UNIT_END = 1,    /* 1 + the end of its context, or 1 */
	UNIT_SERIAL = 2, /* 31 bits, and the next 31; the top bits are set */
	UNIT_STEP = 4,   /* the same */
	UNIT_FATE = 6,   /* UNIT_PLACED, UNIT_NO_ROOM */
	UNIT_CLAIM = 7,  /* the sum of the two marks */
	/* For each cut, 1 + the context of the token. */
	UNIT_CONTEXTS = 8,
	UNIT_WORDS = 16,
	/* The token's index logits have room, or not. */
	UNIT_PLACED = 1,
	UNIT_NO_ROOM = 2,
	UNIT_GIVEN_UP = 1,  /* the block's mark */
	UNIT_HANDED_ON = 2, /* block 0's */
	UNIT_NONE = 0x7fffffff,
	PROLOGUE_FUSED_BYTES = 38 * 1024
};

#define UNIT_TOP 0x80000000u

/* Reads of a line until its unit is given up, and once words are sure to come. On
 * an H100 that is some 3 ms, as block 0 may have many pages to store, and some
 * 0.4 s. Blocks of the emulator let others go on in between. */
#ifdef SPMLA_EMULATOR
enum { UNIT_PATIENCE = 16, UNIT_LONG = 1 << 14, UNIT_SLEEPS = 1 };
#else
enum { UNIT_PATIENCE = 1 << 13, UNIT_LONG = 1 << 20, UNIT_SLEEPS = 0 };
#endif

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

typedef struct prologue_fused_shared {
	union {
		prologue_shared first; /* block 0's, up to its last token */
		lists_shared lists;
	} as;
	uint32_t words[UNIT_CLAIM + 1]; /* of the line; the last: it is there */
	/* Block 0's, bit u % 32: unit u is given up; the last word: some are. */
	uint32_t orphans[PROLOGUE_UNITS / 32 + 2];
} prologue_fused_shared;

/* The arguments of the kernel. */
typedef struct prologue_fused_job {
	SPMLA_KERNEL_FIELDS(step_prologue_fused)
	LOCAL prologue_fused_shared *shared;
} prologue_fused_job;

FN prologue_job
prologue_first_job(const PRIVATE prologue_fused_job *job)
{
	prologue_job j;

	SPMLA_STATIC_ASSERT(sizeof(prologue_fused_shared) <=
				    PROLOGUE_FUSED_BYTES,
			    "kernels.inc asks for enough");
#define COPY(type, name) j.name = job->name;
	SPMLA_K_step_prologue(COPY, SPMLA_I_K_NONE);
#undef COPY
#define COPY(type, name) j.s.name = job->s.name;
	SPMLA_K_step_prologue(SPMLA_I_K_NONE, COPY);
#undef COPY
	j.shared = &job->shared->as.first;
	j.apart = 1;
	return j;
}

FN lists_job
prologue_lists_job(const PRIVATE prologue_fused_job *job, uint32_t unit)
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
	j.shared = &job->shared->as.lists;
	j.items = PROLOGUE_ITEMS;
	j.context_pages = job->s.pool_pages;
	j.t = unit;
	j.row = j.end = j.is_real = 0;
	j.to.state = job->fault_state;
	j.to.status = job->fault_status;
	j.to.serial = j.to.step = 0;
	return j;
}

FN GLOBAL uint32_t *
prologue_line(const PRIVATE prologue_fused_job *job, uint32_t unit)
{
	return job->units + (uint64_t)unit * UNIT_WORDS;
}

/* The word with which block 0 tells a cut the context of token t. */
FN GLOBAL uint32_t *
prologue_context(const PRIVATE prologue_fused_job *job, uint32_t cut,
		 uint32_t t)
{
	return prologue_line(job, t) + UNIT_CONTEXTS + cut;
}

/* ---- Block 0 ----------------------------------------------------------- */

/* Hands all units on. */
FN void
prologue_hand_on(const PRIVATE prologue_fused_job *job,
		 const PRIVATE prologue_job *j, const PRIVATE g_reporter *to,
		 uint32_t queries)
{
	LOCAL const prologue_shared *first = j->shared;
	uint32_t t;

	NO_UNROLL
	for (t = g_item(); t < job->s.windows.blocks; t += PROLOGUE_ITEMS) {
		GLOBAL uint32_t *const line = prologue_line(job, t);
		const uint32_t b = prologue_request_of(j, t, queries);
		const uint32_t row = t < queries ? first->rows[b] : 0;
		const uint32_t len = t < queries ? first->lens[b] : 0;
		const uint32_t end = len ? len - (first->ends[b] - t) + 1 : 0;
		const uint32_t words[UNIT_FATE] = {
			row + 1,
			end + 1,
			(uint32_t)to->serial | UNIT_TOP,
			(uint32_t)(to->serial >> 31) | UNIT_TOP,
			(uint32_t)to->step | UNIT_TOP,
			(uint32_t)(to->step >> 31) | UNIT_TOP};

		(void)g_add(line + UNIT_CLAIM, UNIT_HANDED_ON);
		g_store4_device(line, words);
		g_store2_device(line + UNIT_STEP, words + UNIT_STEP);
		if (job->s.logits_fit)
			g_store_device(line + UNIT_FATE, UNIT_PLACED);
	}
}

/* Tells each unit its fate, unless it has it since it was handed on, and the cuts
 * all contexts. Notes the units that were given up. */
FN void
prologue_hand_over(const PRIVATE prologue_fused_job *job, uint32_t over)
{
	LOCAL uint32_t *orphans = job->shared->orphans;
	uint32_t u, c;

	NO_UNROLL
	for (u = g_item(); u < job->s.windows.blocks; u += PROLOGUE_ITEMS) {
		GLOBAL uint32_t *const line = prologue_line(job, u);
		const uint32_t claim = g_load_device(line + UNIT_CLAIM);
		uint32_t context = 0;

		if (u < job->s.tokens && (over || job->s.windows.parts))
			context = (uint32_t)job->context_lens[u];
		if (u < job->s.tokens && job->s.windows.parts)
			for (c = 0; c < WINDOWS_CUTS; c++)
				g_store_device(prologue_context(job, c, u),
					       context + 1);
		if (!job->s.logits_fit)
			g_store_device(
				line + UNIT_FATE,
				over && context >= SPMLA_COMPRESS_OVERLAP &&
						job->compressed_lens[u] == 0
					? UNIT_NO_ROOM
					: UNIT_PLACED);
		if (claim & UNIT_GIVEN_UP || g_blocks() == 1) {
			(void)g_local_add(orphans + u / 32, 1u << u % 32);
			orphans[PROLOGUE_UNITS / 32 + 1] = 1;
		}
	}
}

FN void
prologue_first(const PRIVATE prologue_fused_job *job)
{
	const prologue_job j = prologue_first_job(job);
	LOCAL uint32_t *orphans = job->shared->orphans;
	prologue_state st = prologue_begin(&j);
	prologue_own own;
	uint32_t queries, over, t;

	for (t = g_item(); t < PROLOGUE_UNITS / 32 + 2; t += PROLOGUE_ITEMS)
		orphans[t] = 0;
	queries = prologue_requests(&j, &st, &own);
	prologue_hand_on(job, &j, &st.to, queries);
	prologue_tokens(&j, &st, queries, &own);
	over = j.shared->over;
	if (over) {
		for (t = g_item(); t < j.s.tokens; t += PROLOGUE_ITEMS)
			j.compressed_lens[t] =
				j.context_lens[t] >> j.s.index_shift;
		g_fence_device();
		BARRIER();
		prologue_fit(&j, &st);
		g_fence_device(); /* before others write these lengths */
		BARRIER();
	}
	prologue_hand_over(job, over);
	prologue_end(&j, &st);
	BARRIER();
}

/* ---- The other blocks -------------------------------------------------- */

/* The request that the last step had at w's token. Block 0 may be changing those:
 * any values do. */
FN void
prologue_recall(const PRIVATE prologue_fused_job *job, PRIVATE lists_job *w)
{
	const uint32_t b = g_divide(w->t, job->s.next_n);
	const uint32_t last = job->fault_state->requests;

	if (b < last && b < job->s.requests) {
		w->row = job->kept[b * G_REQUEST_WORDS];
		w->end = job->kept[b * G_REQUEST_WORDS + 2];
	}
	if (w->row >= job->s.rows || w->end > job->s.longest)
		w->row = w->end = 0;
}

/* Reads a unit's line. Returns whether those that
 * block 0 hands on together are there. */
FN uint32_t
prologue_read(GLOBAL const uint32_t *line, PRIVATE uint32_t *x)
{
	g_load4_device(line, x);
	g_load4_device(line + 4, x + 4);
	return (x[0] != 0) & (x[1] != 0) & (x[2] != 0) & (x[3] != 0) &
	       (x[4] != 0) & (x[5] != 0);
}

/* Waits for a unit's words. Returns 0 if the unit is given up. Block 0 has written
 * them, and serves what others have not. */
FN uint32_t
prologue_await(GLOBAL uint32_t *line, PRIVATE uint32_t *x)
{
	uint32_t patience = UNIT_PATIENCE, n;

	for (;;) {
		NO_UNROLL
		for (n = 0; n < patience; n++) {
			if (prologue_read(line, x))
				return 1;
			if (g_block() == 0)
				return 0;
			if (UNIT_SLEEPS)
				g_sleep(0);
		}
		if (patience == UNIT_LONG)
			break;
		if (g_cas(line + UNIT_CLAIM, 0, UNIT_GIVEN_UP) == 0)
			return 0;
		patience = UNIT_LONG;
	}
	x[UNIT_ROW] = x[UNIT_END] = x[UNIT_FATE] = 1;
	return 1;
}

/* A number of 62 bits. */
FN uint64_t
prologue_number(LOCAL const uint32_t *words)
{
	return (uint64_t)(words[1] - UNIT_TOP) << 31 | (words[0] - UNIT_TOP);
}

/* Waits for a word that is sure to come; 0 on a broken device. */
FN uint32_t
prologue_take(GLOBAL const uint32_t *from)
{
	uint32_t n, x = 0;

	NO_UNROLL
	for (n = 0; n < UNIT_LONG && x == 0; n++) {
		if (n)
			g_sleep(0);
		x = g_load_device(from);
	}
	return x;
}

/* How the parts of a decode share the tokens behind the first whole_tokens ones,
 * for layers of ratio 4 or 128: the metadata of step_prologue_windows. */
FN void
prologue_cut_unit(const PRIVATE prologue_fused_job *job,
		  const PRIVATE lists_job *w, uint32_t cut)
{
	const PRIVATE spmla_k_step_prologue_windows_scalars *s = &w->a.s;
	const uint32_t ratio =
		cut ? SPMLA_COMPRESS_MOST : SPMLA_COMPRESS_OVERLAP;
	const uint32_t tokens = s->tokens - s->whole_tokens;
	uint32_t done = 0, first;

	NO_UNROLL
	for (first = 0; first < s->tokens; first += w->items) {
		const uint32_t t = first + g_item();
		uint32_t n = 0;

		if (t < s->tokens) {
			GLOBAL uint32_t *from = prologue_context(job, cut, t);

			n = prologue_take(from);
			n -= n != 0;
			g_store_device(from, 0);
		}
		/* Tokens before the line's first one cost nothing. */
		done = decode_cut_line(
			n, s->window, cut ? s->c128a_width : s->topk, ratio,
			t - s->whole_tokens, done, tokens, s->parts, w->items,
			&w->shared->cut, w->shared->sums);
	}
	windows_parts(&w->a, ratio, w->items, &w->shared->cut);
}

/* Waits until block 0 hands on the words of w's unit. Returns 0 if the unit is
 * given up. A barrier inside. */
FN uint32_t
prologue_begin_unit(const PRIVATE prologue_fused_job *job, PRIVATE lists_job *w)
{
	LOCAL uint32_t *words = job->shared->words;

	if (g_item() == 0) {
		uint32_t x[UNIT_WORDS], i;

		words[UNIT_CLAIM] = prologue_await(prologue_line(job, w->t), x);
		for (i = 0; i < UNIT_CLAIM; i++)
			words[i] = x[i];
		w->shared->lists = 0;
	}
	BARRIER();
	w->is_real = words[UNIT_CLAIM];
	w->row = words[UNIT_ROW] - 1;
	w->end = words[UNIT_END] - 1;
	/* The engine may see this memory: it is not trusted. */
	if (w->row >= job->s.rows || w->end > job->s.longest)
		w->row = w->end = 0;
	return w->is_real;
}

/* A token's lengths, once the block has made all the rest; and zeros for the
 * next step. By one thread. */
FN void
prologue_end_unit(const PRIVATE prologue_fused_job *job, PRIVATE lists_job *w)
{
	LOCAL const uint32_t *words = job->shared->words;
	GLOBAL uint32_t *const line = prologue_line(job, w->t);
	const uint32_t zeros[4] = {0, 0, 0, 0};
	uint32_t fate = UNIT_PLACED;

	if (w->is_real) {
		fate = words[UNIT_FATE];
		w->to.serial = prologue_number(words + UNIT_SERIAL);
		w->to.step = prologue_number(words + UNIT_STEP);
		if (!fate)
			fate = prologue_take(line + UNIT_FATE);
		g_store4_device(line, zeros);
		g_store4_device(line + 4, zeros);
	}
	if (w->t < job->s.tokens)
		lists_end(w, fate != UNIT_PLACED);
}

/* What a block does for its unit: a rehearsal, of no token in block 0, and then,
 * by the same code, the unit itself. */
FN void
prologue_serve(const PRIVATE prologue_fused_job *job, uint32_t unit)
{
	lists_job w = prologue_lists_job(job, unit);

	if (g_block())
		prologue_recall(job, &w);
	NO_UNROLL
	for (;;) {
		if (unit < job->s.tokens)
			lists_make(&w);
		else if (w.is_real)
			prologue_cut_unit(job, &w, unit - job->s.tokens);
		BARRIER();
		if (g_item() == 0)
			prologue_end_unit(job, &w);
		if (w.is_real || !prologue_begin_unit(job, &w))
			break;
	}
}

/* The block's first unit from `from` on; UNIT_NONE: it has none. Block 0 has
 * those that were given up. */
FN uint32_t
prologue_next(const PRIVATE prologue_fused_job *job, uint32_t from)
{
	LOCAL const uint32_t *orphans = job->shared->orphans;
	const uint32_t units = job->s.windows.blocks;

	if (g_block())
		return from < units ? from : UNIT_NONE;
	if (!orphans[PROLOGUE_UNITS / 32 + 1])
		return UNIT_NONE;
	NO_UNROLL
	for (; from < units; from++)
		if (orphans[from / 32] >> from % 32 & 1u)
			return from;
	return UNIT_NONE;
}

SPMLA_KERNEL_BLOCKS(step_prologue_fused, 2)
void
spmla_k_step_prologue_fused(SPMLA_KERNEL_ARGS(step_prologue_fused))
{
	LOCAL_DYNAMIC(memory, PROLOGUE_FUSED_BYTES);
	const prologue_fused_job job = {
		SPMLA_KERNEL_VALUES(step_prologue_fused),
		(LOCAL prologue_fused_shared *)(LOCAL void *)memory};
	const uint32_t step = g_block() ? g_blocks() - 1 : 1;
	uint32_t unit = g_block() ? g_block() - 1 : 0;

	if (g_block() == 0)
		prologue_first(&job);
	NO_UNROLL
	for (;;) {
		unit = prologue_next(&job, unit);
		if (unit == UNIT_NONE)
			break;
		prologue_serve(&job, unit);
		BARRIER();
		unit += step;
	}
}

#endif
#endif
