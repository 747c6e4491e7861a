/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits by warpgroups' matrix instructions, for up to 64 heads. Two warps
 * in turn copy a unit, 64 keys, into a ring, as far ahead as the ring has room;
 * keys of one page take one bulk copy. Two warps load queries, one token ahead,
 * or two tokens of one row. Three warpgroups multiply the units of the ring in
 * turn.
 *
 * Queries and keys are multiplied as e4m3. One instruction takes 32 dims. It
 * truncates each product, and the sum so far, relative to the largest of them,
 * so the choice of dims decides the bits. The hard idea is to choose them so
 * that a lane reads its part of a key as it lies in a page: one instruction
 * takes the first 8 of every 16 dims, out of 64, and the next one the other 8.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_WGMMA_KERNEL_H

#include "spmla/platform/gpu/select/mqa_logits_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_wgmma_device.h"

#define SPMLA_K_mqa_logits_wgmma(P, S) SPMLA_K_mqa_logits(P, S)
SPMLA_KERNEL_SCALARS(mqa_logits_wgmma)

enum {
	MQA_WGMMA_SUMMERS = 3, /* warpgroups that multiply */
	MQA_WGMMA_ITEMS = 128 * (MQA_WGMMA_SUMMERS + 1),
	MQA_WGMMA_HEADS = 64,
	MQA_WGMMA_TOKENS = 2048, /* the most that a launch takes */
	MQA_WGMMA_PAIR = 2,      /* tokens that share keys */
	MQA_WGMMA_UNIT = 64,     /* keys */
	/* Blocks of fewer than MQA_WGMMA_SHORT units are faster with fewer
	 * stages on an H100, others with more. Multiples of MQA_WGMMA_COPIERS
	 * and of MQA_WGMMA_SUMMERS, so that a stage always has the same ones.
	 * Else one that is a turn ahead would take a stage for free, or full,
	 * that is not. Example: 64 rows of 8192 keys are 62 units for each of
	 * an H100's 132 blocks, so 6 stages; 128 rows are 124 units, so 12. */
	MQA_WGMMA_STAGES = 12,
	MQA_WGMMA_FEW_STAGES = 6,
	MQA_WGMMA_SHORT = 96,
#ifdef SPMLA_EMULATOR
	MQA_WGMMA_KEPT = 4,
#else
	/* Keys of more units, 17 MB, are evicted from the L2 first. */
	MQA_WGMMA_KEPT = 2048,
#endif
	MQA_WGMMA_TILE = 64 * SPMLA_INDEX_DIM, /* bytes of 64 keys or heads */
	MQA_WGMMA_COPIERS = 2, /* warps; one alone limits the kernel */
	MQA_WGMMA_ASKERS = 64, /* threads that load queries */
	/* pieces of 16 codes of 64 queries, for a thread */
	MQA_WGMMA_PIECES = MQA_WGMMA_TILE / 16 / MQA_WGMMA_ASKERS
};

/* Shared memory of a block. */
typedef struct mqa_wgmma_memory {
	uint8_t q[2][MQA_WGMMA_PAIR][MQA_WGMMA_TILE];
	uint8_t k[MQA_WGMMA_STAGES][MQA_WGMMA_TILE];
	float scales[MQA_WGMMA_STAGES][MQA_WGMMA_UNIT];
	uint32_t has_page[MQA_WGMMA_STAGES][2]; /* a bit a key */
	float w[2][MQA_WGMMA_PAIR][MQA_WGMMA_HEADS];
	g_mbarrier full[MQA_WGMMA_STAGES];
	g_mbarrier free[MQA_WGMMA_STAGES];
	g_mbarrier token_full[2];
	g_mbarrier token_free[2];
	uint64_t ends[MQA_WGMMA_TOKENS];
	uint64_t sums[G_SCAN_SUBGROUPS];
} mqa_wgmma_memory;

enum { MQA_WGMMA_BYTES = sizeof(mqa_wgmma_memory) };

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* ---- the line of units ---- */

/* How many keys a token has, by its table row, length and first logit. If its
 * row or its logits are out of range, returns 0 and sets *fault. */
FN uint32_t
mqa_wgmma_len(const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s, int32_t len,
	      uint32_t row, int64_t start, PRIVATE uint32_t *fault)
{
	const mqa_row r = mqa_row_of(row, s->rows, len, start, s->row_stride,
				     s->logits_elems);

	*fault = r.fault;
	return r.len;
}

typedef struct mqa_wgmma_job {
	SPMLA_KERNEL_FIELDS(mqa_logits_wgmma)
	LOCAL mqa_wgmma_memory *mem;
	uint32_t many;   /* keys are too many for the L2 to keep */
	uint32_t stages; /* of the ring */
} mqa_wgmma_job;

/* How many units token t has; all lanes of a subgroup call it, each for its
 * token. If tokens 2 i and 2 i + 1 are of one row, the first has the units of
 * both. `reports`: reports faults. */
FN uint32_t
mqa_wgmma_units(const PRIVATE mqa_wgmma_job *job, uint32_t t, uint32_t reports)
{
	const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s = &job->s;
	const uint32_t is = t < s->tokens, at = is ? t : 0;
	/* All are asked for at once. */
	const uint32_t row = (uint32_t)job->token_row[at];
	const int64_t start = mqa_row_start(job->row_starts, s->row_stride, at);
	const int32_t all_len = job->context_lens[at];
	uint32_t fault, len, other;

	len = mqa_wgmma_len(s, is ? all_len : 0, row, start, &fault);
	if (fault && reports)
		g_fault(job->fault_state, job->fault_status,
			fault == G_FAULT_ROW ? s->first_token + t : row, fault);
	/* The twin's length; its lane is the next or the one before. */
	other = g_shuffle_xor(len, 1);
	if (g_shuffle_xor(row, 1) != row)
		other = 0;
	if (other && len && (t & 1u))
		len = 0;
	else if (len && other > len)
		len = other;
	return len / MQA_WGMMA_UNIT + (len % MQA_WGMMA_UNIT != 0);
}

/* Makes the line of units of all tokens: ends[t] is how many units tokens 0 ..
 * t have. Returns the total. */
FN uint64_t
mqa_wgmma_line(const PRIVATE mqa_wgmma_job *job, LOCAL uint64_t *ends)
{
	uint64_t total = 0, all;
	uint32_t first;

	for (first = 0; first < job->s.tokens; first += MQA_WGMMA_ITEMS) {
		const uint32_t t = first + g_item();
		const uint32_t units = mqa_wgmma_units(job, t, g_block() == 0);
		const uint64_t before = g_scan_sum(units, MQA_WGMMA_ITEMS,
						   job->mem->sums, &all);

		if (t < job->s.tokens)
			ends[t] = total + before + units;
		total += all;
	}
	BARRIER();
	return total;
}

/* The same for up to 32 tokens: each subgroup makes a line for itself, so that
 * none waits for another. */
FN uint64_t
mqa_wgmma_line_of_few(const PRIVATE mqa_wgmma_job *job, LOCAL uint64_t *ends)
{
	const uint32_t units =
		mqa_wgmma_units(job, g_lane(), g_block() == 0 && g_item() < 32);
	uint64_t total;
	const uint64_t before = g_scan_lanes(units, &total);

	ends[g_lane()] = before + units;
	g_subgroup_barrier();
	return total;
}

/* ---- a block's way ---- */

/* Where a block is on its part of the line, and the token there, or two tokens
 * of one row. */
typedef struct mqa_wgmma_way {
	LOCAL const uint64_t *ends; /* the line */
	uint64_t unit;
	uint64_t last;
	uint32_t turn; /* tokens, or pairs, so far */
	uint32_t token;
	uint32_t row;
	uint32_t len[MQA_WGMMA_PAIR];
	uint32_t key;   /* the first one */
	uint32_t units; /* from there on */
	uint32_t stop;  /* no key from here on */
} mqa_wgmma_way;

/* Goes on to the next token; returns 0 if there is none. */
FN uint32_t
mqa_wgmma_next(const PRIVATE mqa_wgmma_job *job, PRIVATE mqa_wgmma_way *way)
{
	const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s = &job->s;
	LOCAL const uint64_t *ends = way->ends;
	uint64_t begin, end;
	uint32_t t, fault, most;

	if (way->unit >= way->last)
		return 0;
	t = way->token =
		g_first_above64(ends, way->token, s->tokens, way->unit);
	begin = t ? ends[t - 1] : 0;
	end = ends[t] < way->last ? ends[t] : way->last;
	way->row = (uint32_t)job->token_row[t];
	way->len[0] = mqa_row_len(job->context_lens[t], s->row_stride);
	way->len[1] = 0;
	if (t + 1 < s->tokens && t % 2 == 0 &&
	    (uint32_t)job->token_row[t + 1] == way->row)
		way->len[1] = mqa_wgmma_len(
			s, job->context_lens[t + 1], way->row,
			mqa_row_start(job->row_starts, s->row_stride, t + 1),
			&fault);
	most = way->len[0] > way->len[1] ? way->len[0] : way->len[1];
	way->key = (uint32_t)(way->unit - begin) * MQA_WGMMA_UNIT;
	way->units = (uint32_t)(end - way->unit);
	way->stop = way->key + way->units * MQA_WGMMA_UNIT;
	way->stop = way->stop < most ? way->stop : most;
	way->unit = end;
	return 1;
}

/* ---- the warps that copy keys ---- */

/* Where the warp is in a row's pages: a lane has the pages of columns first +
 * lane and first + 32 + lane. */
typedef struct mqa_wgmma_pages {
	GLOBAL const int32_t *of;
	uint32_t columns; /* that there are */
	uint32_t first;
	int32_t page[2];
} mqa_wgmma_pages;

/* Loads the page of column `first` + lane; -1 behind the last column. */
FN int32_t
mqa_wgmma_ask_page(const PRIVATE mqa_wgmma_pages *pages, uint32_t first)
{
	const uint32_t column = first + g_lane();

	return column < pages->columns ? pages->of[column] : -1;
}

/* Goes on by `by` entries, at most to the page's end. */
FN void
mqa_wgmma_on(PRIVATE mqa_wgmma_pages *pages, PRIVATE uint32_t *column,
	     PRIVATE uint32_t *entry, uint32_t by, uint32_t page_tokens)
{
	*entry += by;
	if (*entry < page_tokens)
		return;
	*entry = 0;
	if (++*column == pages->first + 32) {
		pages->first += 32;
		pages->page[0] = pages->page[1];
		pages->page[1] = mqa_wgmma_ask_page(pages, pages->first + 32);
	}
}

/* Whether no other token reads these keys: a prompt, or many drafts, have more
 * than two tokens of one row. */
FN uint32_t
mqa_wgmma_once(const PRIVATE mqa_wgmma_job *job,
	       const PRIVATE mqa_wgmma_way *way)
{
	const uint32_t t = way->token, next = t + 1 + (way->len[1] != 0);

	return !(t && (uint32_t)job->token_row[t - 1] == way->row) &&
	       !(next < job->s.tokens &&
		 (uint32_t)job->token_row[next] == way->row);
}

/* Starts a copy of keys or scales into a stage. `once`: they are not read
 * again. */
FN void
mqa_wgmma_ask(const PRIVATE mqa_wgmma_job *job, uint32_t once, LOCAL void *to,
	      GLOBAL const uint8_t *from, uint32_t bytes, uint32_t stage)
{
	if (once)
		g_bulk_copy_once(to, from, bytes, &job->mem->full[stage]);
	else
		g_bulk_copy(to, from, bytes, &job->mem->full[stage]);
}

/* Copies a unit that lies in one page into a stage; the first lane does it. */
FN void
mqa_wgmma_copy_whole(const PRIVATE mqa_wgmma_job *job, uint32_t once,
		     uint32_t page, uint32_t entry, uint32_t is, uint32_t stage)
{
	const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s = &job->s;
	LOCAL mqa_wgmma_memory *mem = job->mem;
	GLOBAL const uint8_t *from =
		job->cache + (uint64_t)page * s->page_stride_bytes;

	mem->has_page[stage][0] = mem->has_page[stage][1] = is ? ~0u : 0;
	if (!is) {
		g_mbarrier_arrive(&mem->full[stage]);
		return;
	}
	g_mbarrier_arrive_expect(&mem->full[stage],
				 MQA_WGMMA_TILE + 4 * MQA_WGMMA_UNIT);
	mqa_wgmma_ask(job, once, mem->k[stage],
		      from + (uint64_t)entry * SPMLA_INDEX_DIM, MQA_WGMMA_TILE,
		      stage);
	mqa_wgmma_ask(job, once, mem->scales[stage],
		      from + (uint64_t)s->page_tokens * SPMLA_INDEX_DIM +
			      (uint64_t)entry * 4,
		      4 * MQA_WGMMA_UNIT, stage);
}

/* Copies a unit's keys into a stage, column by column. */
FN void
mqa_wgmma_copy(const PRIVATE mqa_wgmma_job *job, uint32_t once,
	       PRIVATE mqa_wgmma_pages *pages, uint32_t written,
	       uint32_t *column, uint32_t *entry, uint32_t count,
	       uint32_t stage)
{
	const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s = &job->s;
	LOCAL mqa_wgmma_memory *mem = job->mem;
	uint32_t at, run, i, bytes = 0;
	uint64_t has = 0;

	for (at = 0; at < count; at += run) {
		const uint32_t page = g_broadcast((uint32_t)pages->page[0],
						  *column - pages->first);
		const uint32_t is = page < s->pool_pages && *column < written;
		GLOBAL const uint8_t *from =
			job->cache +
			(is ? (uint64_t)page * s->page_stride_bytes : 0);

		run = s->page_tokens - *entry;
		run = run < count - at ? run : count - at;
		if (is && g_lane() == 0)
			mqa_wgmma_ask(job, once,
				      mem->k[stage] + at * SPMLA_INDEX_DIM,
				      from + (uint64_t)*entry * SPMLA_INDEX_DIM,
				      run * SPMLA_INDEX_DIM, stage);
		for (i = g_lane(); i < run && is; i += 32)
			g_local_copy32(&mem->scales[stage][at + i],
				       from +
					       (uint64_t)s->page_tokens *
						       SPMLA_INDEX_DIM +
					       (uint64_t)(*entry + i) * 4,
				       1);
		if (is) {
			bytes += run * SPMLA_INDEX_DIM;
			has |= (~(uint64_t)0 >> (64 - run)) << at;
		}
		mqa_wgmma_on(pages, column, entry, run, s->page_tokens);
	}
	g_mbarrier_arrive_copies(&mem->full[stage]);
	if (g_lane() == 0) {
		mem->has_page[stage][0] = (uint32_t)has;
		mem->has_page[stage][1] = (uint32_t)(has >> 32);
		g_mbarrier_arrive_expect(&mem->full[stage], bytes);
	}
}

/* How many columns of a row's table are written. */
FN uint32_t
mqa_wgmma_written(const PRIVATE mqa_wgmma_job *job,
		  const PRIVATE mqa_wgmma_way *way)
{
	const uint32_t most = job->s.columns;
	int32_t cols;

	if (!job->s.has_cols)
		return most;
	cols = job->table_cols[way->row];
	return cols <= 0 ? 0 : (uint32_t)cols < most ? (uint32_t)cols : most;
}

/* A row's pages from a column on. */
FN mqa_wgmma_pages
mqa_wgmma_pages_of(const PRIVATE mqa_wgmma_job *job,
		   const PRIVATE mqa_wgmma_way *way, uint32_t column)
{
	const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s = &job->s;
	mqa_wgmma_pages pages;

	pages.of = job->block_table + (uint64_t)way->row * s->stride;
	pages.columns = (way->stop - 1) / s->page_tokens + 1;
	pages.columns = pages.columns < s->columns ? pages.columns : s->columns;
	pages.first = column;
	pages.page[0] = mqa_wgmma_ask_page(&pages, column);
	pages.page[1] = mqa_wgmma_ask_page(&pages, column + 32);
	return pages;
}

/* Copies the units of copier `own` where each lies in one page. The warp goes
 * from one of its units to its next one: with long rows, the copiers limit the
 * kernel. */
FN void
mqa_wgmma_run_whole(const PRIVATE mqa_wgmma_job *job,
		    PRIVATE mqa_wgmma_way *way, uint32_t own)
{
	const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s = &job->s;
	const uint32_t per_page = s->page_tokens / MQA_WGMMA_UNIT;
	/* A step of MQA_WGMMA_COPIERS units, which are two. */
	const uint32_t columns = per_page == 1 ? 2 : per_page == 2;
	const uint32_t parts = per_page > 2 ? 2 : 0;
	/* Whose turn it is; what stage is next, and whether it was full. */
	uint32_t whose = 0, stage = own, parity = 0, again = 0;

	while (mqa_wgmma_next(job, way)) {
		const uint32_t once = job->many && mqa_wgmma_once(job, way);
		const uint32_t written = mqa_wgmma_written(job, way);
		uint32_t unit = own >= whose ? own - whose
					     : own + MQA_WGMMA_COPIERS - whose;
		const uint32_t first = way->key / MQA_WGMMA_UNIT + unit;
		uint32_t column = first / per_page;
		uint32_t part = first - column * per_page;
		mqa_wgmma_pages pages = mqa_wgmma_pages_of(job, way, column);

		for (; unit < way->units; unit += MQA_WGMMA_COPIERS) {
			uint32_t page;

			if (again)
				g_mbarrier_wait(&job->mem->free[stage],
						parity ^ 1u);
			/* Behind the wait, so that no lane copies before all
			 * have waited. A late lane would find the stage in
			 * another phase and wait for good. */
			page = g_broadcast((uint32_t)pages.page[0],
					   column - pages.first);
			if (g_lane() == 0)
				mqa_wgmma_copy_whole(job, once, page,
						     part * MQA_WGMMA_UNIT,
						     page < s->pool_pages &&
							     column < written,
						     stage);
			column += columns;
			part += parts;
			if (part >= per_page) {
				part -= per_page;
				column++;
			}
			if (column - pages.first >= 32) {
				pages.first += 32;
				pages.page[0] = pages.page[1];
				pages.page[1] = mqa_wgmma_ask_page(
					&pages, pages.first + 32);
			}
			stage += MQA_WGMMA_COPIERS;
			if (stage >= job->stages) {
				stage -= job->stages;
				parity ^= 1u;
				again = 1;
			}
		}
		whose = (whose + way->units) % MQA_WGMMA_COPIERS;
	}
}

/* Goes on by `count` keys that another warp copies. */
FN void
mqa_wgmma_skip(PRIVATE mqa_wgmma_pages *pages, PRIVATE uint32_t *column,
	       PRIVATE uint32_t *entry, uint32_t count, uint32_t page_tokens)
{
	uint32_t at, run;

	for (at = 0; at < count; at += run) {
		run = page_tokens - *entry;
		run = run < count - at ? run : count - at;
		mqa_wgmma_on(pages, column, entry, run, page_tokens);
	}
}

/* Copies the units of copier `own` where they may lie in several pages. */
FN void
mqa_wgmma_run_pages(const PRIVATE mqa_wgmma_job *job,
		    PRIVATE mqa_wgmma_way *way, uint32_t own)
{
	const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s = &job->s;
	/* Whose turn it is; what stage is next, and whether it was full. */
	uint32_t whose = 0, stage = 0, parity = 0, again = 0;

	while (mqa_wgmma_next(job, way)) {
		uint32_t column = way->key / s->page_tokens;
		uint32_t entry = way->key - column * s->page_tokens;
		const uint32_t once = job->many && mqa_wgmma_once(job, way);
		const uint32_t written = mqa_wgmma_written(job, way);
		mqa_wgmma_pages pages = mqa_wgmma_pages_of(job, way, column);
		uint32_t key;

		for (key = way->key; key < way->stop; key += MQA_WGMMA_UNIT) {
			const uint32_t left = way->stop - key;
			const uint32_t count =
				left < MQA_WGMMA_UNIT ? left : MQA_WGMMA_UNIT;

			if (whose == own && again)
				g_mbarrier_wait(&job->mem->free[stage],
						parity ^ 1u);
			if (whose != own)
				mqa_wgmma_skip(&pages, &column, &entry, count,
					       s->page_tokens);
			else
				mqa_wgmma_copy(job, once, &pages, written,
					       &column, &entry, count, stage);
			whose = whose + 1 == MQA_WGMMA_COPIERS ? 0 : whose + 1;
			if (++stage == job->stages) {
				stage = 0;
				parity ^= 1u;
				again = 1;
			}
		}
	}
	g_local_copies_wait();
}

/* ---- the warps that load queries ---- */

/* Loads a token's queries and weights. 16 codes from dim 64 half + 16 t on are
 * four words; word j becomes word t of piece 4 half + j in the panel. */
FN void
mqa_wgmma_load_q(const PRIVATE mqa_wgmma_job *job, uint32_t token,
		 uint32_t is_token, LOCAL uint8_t *panel, LOCAL float *w,
		 uint32_t item)
{
	const uint32_t heads = is_token ? job->s.heads : 0;
	GLOBAL const uint8_t *q =
		job->q + (uint64_t)token * job->s.heads * SPMLA_INDEX_DIM;
	GLOBAL const float *weights =
		job->weights + (uint64_t)token * job->s.heads;
	const uint32_t aligned = ((uint64_t)q & 15u) == 0;
	uint32_t raw[MQA_WGMMA_PIECES][4], i, j;

	UNROLL
	for (i = 0; i < MQA_WGMMA_PIECES; i++) {
		const uint32_t at = i * MQA_WGMMA_ASKERS + item;
		const uint32_t is = at / 8 < heads;

		g_load128_if(is && aligned, q + 16 * at, raw[i]);
		if (is && !aligned) {
			UNROLL
			for (j = 0; j < 4; j++)
				raw[i][j] = mqa_word(q + 16 * at + 4 * j, 0);
		}
	}
	for (i = item; i < MQA_WGMMA_HEADS; i += MQA_WGMMA_ASKERS)
		w[i] = i < heads ? weights[i] : 0.0f;
	UNROLL
	for (i = 0; i < MQA_WGMMA_PIECES; i++) {
		const uint32_t at = i * MQA_WGMMA_ASKERS + item;
		const uint32_t head = at / 8, half = at % 8 / 4, t = at % 4;

		/* Words 0 and 1 are of one instruction, 2 and 3 of the next. */
		UNROLL
		for (j = 0; j < 4; j++)
			*(LOCAL uint32_t *)(panel + head * SPMLA_INDEX_DIM +
					    16 * ((4 * half + j) ^
						  (head & 7u)) +
					    4 * t) = raw[i][j];
	}
}

FN void
mqa_wgmma_run_queries(const PRIVATE mqa_wgmma_job *job,
		      PRIVATE mqa_wgmma_way *way)
{
	LOCAL mqa_wgmma_memory *mem = job->mem;
	const uint32_t item = g_item() % 128 - 32 * MQA_WGMMA_COPIERS;
	uint32_t i;

	while (mqa_wgmma_next(job, way)) {
		const uint32_t buffer = way->turn & 1u;

		if (way->turn >= 2)
			g_mbarrier_wait(&mem->token_free[buffer],
					(way->turn / 2 - 1) & 1u);
		for (i = 0; i < (way->len[1] ? 2 : 1); i++)
			mqa_wgmma_load_q(job, way->token + i, 1,
					 mem->q[buffer][i], mem->w[buffer][i],
					 item);
		g_fence_async();
		g_mbarrier_arrive(&mem->token_full[buffer]);
		way->turn++;
	}
}

/* ---- the warpgroups that multiply ---- */

/* Reads the lane's part of a stage, as operands of four instructions, and the
 * scale of key g + 8 (t % 2) of the subgroup. Returns whether that key has a
 * page. */
FN uint32_t
mqa_wgmma_take(LOCAL const mqa_wgmma_memory *mem, uint32_t stage,
	       uint32_t a[4][4], PRIVATE float *scale)
{
	const uint32_t first = g_item() % 128 / 32 * 16, g = g_lane() / 4;
	const uint32_t key = first + g + 8 * (g_lane() & 1u);
	LOCAL const uint8_t *codes = mem->k[stage] +
				     (first + g) * SPMLA_INDEX_DIM +
				     16 * (g_lane() % 4);
	uint32_t raw[2][4], half, i;

	UNROLL
	for (half = 0; half < 2; half++) {
		UNROLL
		for (i = 0; i < 2; i++)
			g_local_load128(codes + 64 * half +
						8 * SPMLA_INDEX_DIM * i,
					raw[i]);
		UNROLL
		for (i = 0; i < 8; i++)
			a[2 * half + i / 4][i % 4] =
				raw[i % 2][i / 4 * 2 + i % 4 / 2];
	}
	*scale = mem->scales[stage][key];
	return mem->has_page[stage][key / 32] >> (key & 31u) & 1u;
}

/* Products and sums over heads for one token, or for two. Weights are read for
 * each unit: kept, they would leave too few registers for three warpgroups.
 * For two tokens they are read behind the products, for the same reason. */
FN float
mqa_wgmma_scores(uint32_t a[4][4], g_panel q, LOCAL const float *weights,
		 uint32_t both)
{
	float w[16 * MQA_WGMMA_PAIR], sums[2 * MQA_WGMMA_PAIR], score;
	uint32_t i;

	if (both) {
		float c[64];

		g_wgmma_begin();
		g_wgmma_e4m3_n128_registers_first(c, a[0], q);
		UNROLL
		for (i = 1; i < 4; i++)
			g_wgmma_e4m3_n128_registers(c, a[i],
						    g_panel_step(q, i));
		g_wgmma_commit();
		mqa_wgmma_done(c, 64);
		mqa_wgmma_weights(weights, 2, MQA_RELU_LARGER, w);
		mqa_wgmma_sum_heads(c, w, 2, MQA_RELU_LARGER, sums);
		mqa_wgmma_score(sums, 2, &score);
	} else {
		float c[32];

		g_wgmma_begin();
		g_wgmma_e4m3_n64_registers_first(c, a[0], q);
		UNROLL
		for (i = 1; i < 4; i++)
			g_wgmma_e4m3_n64_registers(c, a[i], g_panel_step(q, i));
		g_wgmma_commit();
		mqa_wgmma_weights(weights, 1, MQA_RELU_LARGER, w);
		mqa_wgmma_done(c, 32);
		mqa_wgmma_sum_heads(c, w, 1, MQA_RELU_LARGER, sums);
		mqa_wgmma_score(sums, 1, &score);
	}
	return score;
}

/* Writes a key's score, or -inf and a fault if it has no page. */
FN void
mqa_wgmma_write(GLOBAL spmla_g_state *fault_state,
		GLOBAL spmla_g_status *fault_status, GLOBAL float *logits,
		uint32_t row, uint32_t page_tokens, uint32_t key,
		uint32_t has_page, float score)
{
	if (!has_page) {
		score = G_MINUS_INF;
		if (key % page_tokens == 0)
			g_fault(fault_state, fault_status, row, G_FAULT_PAGE);
	}
	logits[key] = score;
}

/* Where a warpgroup that multiplies is. */
typedef struct mqa_wgmma_place {
	uint32_t whose;         /* turn it is */
	uint32_t stage, parity; /* of the warpgroup's next unit */
} mqa_wgmma_place;

/* Multiplies the units of warpgroup `own`, and goes from one of them to its
 * next one. `both`: for two tokens of one row. */
FN void
mqa_wgmma_sum(const PRIVATE mqa_wgmma_job *job,
	      const PRIVATE mqa_wgmma_way *way, uint32_t own, g_panel q,
	      uint32_t buffer, PRIVATE mqa_wgmma_place *place, uint32_t both)
{
	LOCAL mqa_wgmma_memory *mem = job->mem;
	const uint32_t rank = g_lane() % 4 / 2;
	const uint32_t len = rank ? way->len[1] : way->len[0];
	GLOBAL float *to = job->logits + (len ? mqa_row_start(job->row_starts,
							      job->s.row_stride,
							      way->token + rank)
					      : 0);
	uint32_t unit =
		(own + MQA_WGMMA_SUMMERS - place->whose) % MQA_WGMMA_SUMMERS;
	uint32_t key = way->key + unit * MQA_WGMMA_UNIT +
		       g_item() % 128 / 32 * 16 + g_lane() / 4 +
		       8 * (g_lane() & 1u);

	for (; unit < way->units; unit += MQA_WGMMA_SUMMERS) {
		uint32_t a[4][4], has_page;
		float scale, score;

		g_mbarrier_wait(&mem->full[place->stage], place->parity);
		has_page = mqa_wgmma_take(mem, place->stage, a, &scale);
		mqa_wgmma_free(&mem->free[place->stage]);
		score = mqa_wgmma_scores(a, q, mem->w[buffer][0], both);
		if (key < len)
			mqa_wgmma_write(job->fault_state, job->fault_status, to,
					way->row, job->s.page_tokens, key,
					has_page, scale * score);
		key += MQA_WGMMA_SUMMERS * MQA_WGMMA_UNIT;
		place->stage += MQA_WGMMA_SUMMERS;
		if (place->stage >= job->stages) {
			place->stage -= job->stages;
			place->parity ^= 1u;
		}
	}
	place->whose = (place->whose + way->units) % MQA_WGMMA_SUMMERS;
}

FN void
mqa_wgmma_run_summer(const PRIVATE mqa_wgmma_job *job,
		     PRIVATE mqa_wgmma_way *way, uint32_t own)
{
	LOCAL mqa_wgmma_memory *mem = job->mem;
	const g_panel q_panel =
		g_panel_of(mem->q[0][0], G_GROUP_BYTES, G_PANEL_BYTES);
	mqa_wgmma_place place = {0, own, 0};

	while (mqa_wgmma_next(job, way)) {
		/* Broadcast, so that the panel is computed once a token. */
		const uint32_t buffer = g_broadcast(way->turn & 1u, 0);
		const g_panel q = g_panel_on(q_panel, buffer * MQA_WGMMA_PAIR *
							      MQA_WGMMA_TILE);

		g_mbarrier_wait(&mem->token_full[buffer], way->turn / 2 & 1u);
		if (g_broadcast(way->len[1], 0))
			mqa_wgmma_sum(job, way, own, q, buffer, &place, 1);
		else
			mqa_wgmma_sum(job, way, own, q, buffer, &place, 0);
		mqa_wgmma_free(&mem->token_free[buffer]);
		way->turn++;
	}
}

/* ---- the kernel ---- */

FN void
mqa_wgmma_begin(LOCAL mqa_wgmma_memory *mem, uint32_t whole)
{
	uint32_t i;

	if (g_item() != 0)
		return;
	for (i = 0; i < MQA_WGMMA_STAGES; i++) {
		g_mbarrier_init(&mem->full[i], whole ? 1 : 33);
		g_mbarrier_init(&mem->free[i], 4);
	}
	for (i = 0; i < 2; i++) {
		g_mbarrier_init(&mem->token_full[i], MQA_WGMMA_ASKERS);
		g_mbarrier_init(&mem->token_free[i], 4 * MQA_WGMMA_SUMMERS);
	}
	g_mbarriers_publish();
}

SPMLA_KERNEL_BLOCKS(mqa_logits_wgmma, 1)
void
spmla_k_mqa_logits_wgmma(SPMLA_KERNEL_ARGS(mqa_logits_wgmma))
{
	LOCAL_DYNAMIC(local, MQA_WGMMA_BYTES);
	mqa_wgmma_job job = {SPMLA_KERNEL_VALUES(mqa_logits_wgmma),
			     (LOCAL mqa_wgmma_memory *)local, 0, 0};
	const uint32_t own = g_broadcast(g_item() / 128, 0);
	/* Whether a unit lies within one page. */
	const uint32_t whole = s.page_tokens % MQA_WGMMA_UNIT == 0;
	LOCAL uint64_t *ends = job.mem->ends;
	uint64_t total, each;
	uint32_t more;
	mqa_wgmma_way way;

	mqa_wgmma_begin(job.mem, whole);
	/* In front of the line. Behind it, each warp would wait for the loads
	 * of all. */
	BARRIER();
	/* At most a token for each lane of a warp. Example: for 33 tokens the
	 * block makes one line, which all of its warps wait for. */
	if (s.tokens <= 32) {
		ends += g_item() / 32 * 32;
		total = mqa_wgmma_line_of_few(&job, ends);
	} else {
		total = mqa_wgmma_line(&job, ends);
	}
	/* The first `more` blocks have one unit more. */
	each = total / g_blocks();
	job.many = total > MQA_WGMMA_KEPT;
	job.stages = each < MQA_WGMMA_SHORT ? MQA_WGMMA_FEW_STAGES
					    : MQA_WGMMA_STAGES;
	more = (uint32_t)(total - each * g_blocks());
	way.ends = ends;
	way.unit = each * g_block() + (g_block() < more ? g_block() : more);
	way.last = way.unit + each + (g_block() < more);
	way.token = way.turn = 0;
	if (own < MQA_WGMMA_SUMMERS) {
		mqa_wgmma_run_summer(&job, &way, own);
	} else {
		const uint32_t warp = g_broadcast(g_item() % 128 / 32, 0);

		if (warp >= MQA_WGMMA_COPIERS)
			mqa_wgmma_run_queries(&job, &way);
		else if (whole)
			mqa_wgmma_run_whole(&job, &way, warp);
		else
			mqa_wgmma_run_pages(&job, &way, warp);
	}
}

#endif
#endif
