/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map: one block for each token. An item loads the pages of several
 * indices before it uses one, and reports faults afterwards. So a row costs two
 * memory latencies and no more. Slots are computed in 64 bits and only then
 * narrowed, so that nothing can wrap into a slot that looks valid.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_INDEX_MAP_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_INDEX_MAP_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/table_device.h"

/* Parameters of both kernels: one keeps rows as they are, one makes them
 * compact. */
#define SPMLA_K_index_map(P, S)            \
	SPMLA_K_FAULT(P)                   \
	P(const int32_t, token_row)        \
	P(const int32_t, block_table)      \
	P(const int32_t, table_cols)       \
	P(const int32_t, indices)          \
	P(const int32_t, lens)             \
	P(int32_t, slots)                  \
	P(int32_t, valid_counts)           \
	P(const int32_t, workspace_ids)    \
	P(const int32_t, workspace_starts) \
	P(const int32_t, context_lens)     \
	P(const int64_t, slot_mapping)     \
	P(int32_t, indptr)                 \
	P(const int32_t, first_cols)       \
	P(const int32_t, other_lens)       \
	P(int32_t, kept_lens)              \
	S(int64_t, indices_stride)         \
	S(int64_t, slots_stride)           \
	SPMLA_S_TABLE(S)                   \
	S(uint32_t, tokens)                \
	S(uint32_t, k)                     \
	S(uint32_t, page_stride_rows)      \
	S(uint32_t, workspaces)            \
	S(uint32_t, has_lens)              \
	S(uint32_t, has_counts)            \
	S(uint32_t, has_ids)               \
	S(uint32_t, has_context)           \
	S(uint32_t, has_slots)             \
	S(uint32_t, entries_before)        \
	S(uint32_t, is_ragged)             \
	S(uint32_t, has_first_cols)        \
	S(uint32_t, capacity)              \
	S(uint32_t, whole)                 \
	S(uint32_t, has_other)
SPMLA_KERNEL_SCALARS(index_map)
#define SPMLA_K_index_map_compact(P, S) SPMLA_K_index_map(P, S)
typedef spmla_k_index_map_scalars spmla_k_index_map_compact_scalars;

enum {
	INDEX_MAP_EACH = 4, /* indices that an item has in flight */
	INDEX_MAP_SUMS = 2 * G_SCAN_SUBGROUPS
};

#ifdef SPMLA_GPU_KERNELS

/* What holds for all indices of a token. */
typedef struct index_map_token {
	uint32_t len;       /* entries to read */
	uint32_t context;   /* where indices end; 2^31: nowhere */
	uint32_t is_kept;   /* the token has a workspace */
	uint32_t is_bad;    /* that, or its row of the table, does not exist */
	uint32_t columns;   /* of the table's row, written */
	uint32_t first_col; /* where its pages begin */
	int32_t start;      /* of the workspace, else 0 */
} index_map_token;

/* The offset from the first slot of a page or of the workspace; -1 for no slot,
 * -1 - fault for a wrong index. */
FN int32_t
index_map_offset(const PRIVATE index_map_token *of, int32_t index,
		 uint32_t page, uint32_t columns, uint32_t page_tokens)
{
	const uint32_t col = of->first_col + page;

	if (index < 0)
		return -1;
	if ((uint32_t)index >= of->context)
		return -1 - G_FAULT_INDEX;
	if (col >= columns) /* no fault of the step's */
		return -1;
	if (of->is_bad)
		return -1 - G_FAULT_ROW;
	if (col >= of->columns)
		return -1 - G_FAULT_PAGE;
	if (of->is_kept)
		return index;
	return (int32_t)((uint32_t)index - page * page_tokens);
}

/* What a block of `items` threads was given: it maps tokens `first`, first +
 * step, .. */
typedef struct index_map_job {
	SPMLA_KERNEL_FIELDS(index_map)
	uint32_t items;
	uint32_t first;
	uint32_t step;
	LOCAL uint64_t *sums; /* [INDEX_MAP_SUMS] */
	/* [3], used in turn: 1 if a token is empty. The next token's flag is
	 * cleared while no thread reads or sets it. */
	LOCAL uint32_t *empty;
} index_map_job;

/* How many of token t's indices are read. */
FN uint32_t
index_map_len(const PRIVATE index_map_job *job, uint32_t t)
{
	const PRIVATE spmla_k_index_map_scalars *s = &job->s;
	const int32_t len = s->has_lens ? job->lens[t] : 0;
	const uint32_t n = !s->has_lens ? s->k : len > 0 ? (uint32_t)len : 0;

	if (s->has_slots && job->slot_mapping[t] < 0)
		return 0;
	return n < s->k ? n : s->k;
}

/* What holds for the indices of token t, whose table row is `row`. */
FN index_map_token
index_map_token_of(const PRIVATE index_map_job *job, uint32_t t, uint32_t row)
{
	const PRIVATE spmla_k_index_map_scalars *s = &job->s;
	const int32_t id = s->has_ids ? job->workspace_ids[t] : -1;
	const int32_t context = s->has_context ? job->context_lens[t] : 0;
	const int32_t first = s->has_first_cols ? job->first_cols[t] : 0;
	index_map_token of;

	of.len = index_map_len(job, t);
	of.context = !s->has_context ? 0x80000000u
		     : context > 0   ? (uint32_t)context
				     : 0;
	of.is_kept = id >= 0;
	of.is_bad = id >= 0 ? (uint32_t)id >= s->workspaces ||
				      (s->whole && row >= s->rows)
			    : row >= s->rows;
	of.columns = s->columns;
	of.first_col = first < 0 ? 0 : (uint32_t)first;
	of.start = 0;
	if (!of.is_bad && id >= 0)
		of.start = job->workspace_starts[id];
	if (!of.is_bad && (id < 0 || s->whole) && s->has_cols) {
		const int32_t cols = job->table_cols[row];

		of.columns = cols < 0 ? 0 : (uint32_t)cols;
		if (of.columns > s->columns)
			of.columns = s->columns;
	}
	if (first < 0 && (id < 0 || s->whole))
		of.columns = 0;
	return of;
}

/* Makes slots of the item's indices in a piece, which begins with entry `base`
 * of the row `in`; -1 for no slot. Returns the faults, four bits for each
 * index. */
FN uint32_t
index_map_piece(const PRIVATE index_map_job *job,
		const PRIVATE index_map_token *of, GLOBAL const int32_t *in,
		GLOBAL const int32_t *pages, uint32_t base,
		PRIVATE int32_t *slots)
{
	const PRIVATE spmla_k_index_map_scalars *s = &job->s;
	int32_t page[INDEX_MAP_EACH];
	uint32_t faults = 0, u;

	UNROLL
	for (u = 0; u < INDEX_MAP_EACH; u++) {
		const uint32_t j = base + u * job->items + g_item();

		slots[u] = -1;
		if (j < of->len)
			slots[u] = in[j];
	}
	UNROLL
	for (u = 0; u < INDEX_MAP_EACH; u++) {
		const uint32_t col = (uint32_t)slots[u] / s->page_tokens;

		slots[u] = index_map_offset(of, slots[u], col, s->columns,
					    s->page_tokens);
		page[u] = 0;
		if (slots[u] >= 0 && (!of->is_kept || s->whole))
			page[u] = pages[of->first_col + col];
	}
	UNROLL
	for (u = 0; u < INDEX_MAP_EACH; u++) {
		const int64_t first =
			of->is_kept ? of->start
				    : (int64_t)page[u] * s->page_stride_rows;
		const int64_t slot = first + slots[u];
		const uint32_t none = slots[u] < 0;
		uint32_t fault = 0;

		if (none)
			fault = (uint32_t)(-1 - slots[u]);
		else if ((uint32_t)page[u] >= s->pool_pages)
			fault = G_FAULT_PAGE;
		else if (slot < 0 || slot > 0x7fffffff)
			fault = G_FAULT_INDEX;
		faults |= fault << 4 * u;
		slots[u] = none || fault ? -1 : (int32_t)slot;
	}
	return faults;
}

/* Writes a piece as it is; returns how many of the item's slots are valid. */
FN uint32_t
index_map_write(const PRIVATE index_map_job *job, const PRIVATE int32_t *slots,
		uint32_t base, uint32_t k, GLOBAL int32_t *out)
{
	uint32_t valid = 0, u;

	UNROLL
	for (u = 0; u < INDEX_MAP_EACH; u++) {
		const uint32_t j = base + u * job->items + g_item();

		valid += slots[u] >= 0;
		if (j < k)
			out[j] = slots[u];
	}
	return valid;
}

/* Appends the valid slots of a piece to the `valid` slots that the block has
 * written; returns the new count. The output may be the input: a scan's
 * barriers lie between the reads and the writes of a piece, and writes do not
 * go past the piece. */
FN uint32_t
index_map_append(const PRIVATE index_map_job *job, const PRIVATE int32_t *slots,
		 uint32_t base, uint32_t len, uint32_t valid,
		 GLOBAL int32_t *out)
{
	uint32_t u;

	UNROLL
	for (u = 0; u < INDEX_MAP_EACH; u++) {
		uint32_t at, some;

		if (base + u * job->items >= len)
			continue;
		at = g_scan_flags(slots[u] >= 0, job->items, job->sums, &some);
		if (slots[u] >= 0)
			out[valid + at] = slots[u];
		valid += some;
	}
	return valid;
}

/* Sums x over the block's `items`; only item 0 gets the sum. Has a barrier. */
FN uint32_t
index_map_sum(uint32_t x, uint32_t items, LOCAL uint64_t *sums)
{
	uint32_t mask, i;

	for (mask = g_width() / 2; mask; mask >>= 1)
		x += g_shuffle_xor(x, mask);
	if (g_lane() == 0)
		sums[g_item() / g_width()] = x;
	BARRIER();
	if (g_item() == 0)
		for (i = 1; i < items / g_width(); i++)
			x += (uint32_t)sums[i];
	return x;
}

/* A token's row of slots. */
typedef struct index_map_row {
	GLOBAL int32_t *out;
	uint32_t width;
	uint32_t lost; /* 1: there is no room for it */
} index_map_row;

/* The row of token t, which has n entries. With ragged rows, *end moves from
 * the end of the row of token `from` - 1 to the end of t's row, both as if
 * there were room for all. Has barriers if rows are ragged. */
FN index_map_row
index_map_row_of(const PRIVATE index_map_job *job, uint32_t from, uint32_t t,
		 uint32_t n, PRIVATE uint64_t *end)
{
	const PRIVATE spmla_k_index_map_scalars *s = &job->s;
	uint64_t own = 0, all, begin;
	index_map_row r;
	uint32_t i;

	r.lost = 0;
	r.width = s->k;
	r.out = job->slots + (int64_t)t * s->slots_stride;
	if (!s->is_ragged)
		return r;
	for (i = from + g_item(); i < t; i += job->items)
		own += index_map_len(job, i);
	(void)g_scan_sum(own, job->items, job->sums, &all);
	BARRIER(); /* the sums are read */
	begin = *end + all;
	*end = begin + n;
	r.lost = n > 0 && *end > s->capacity;
	all = *end < s->capacity ? *end : s->capacity;
	begin = begin < s->capacity ? begin : s->capacity;
	r.out = job->slots + begin;
	r.width = (uint32_t)(all - begin);
	if (g_item() == 0) {
		if (t == 0)
			job->indptr[0] = 0;
		job->indptr[t + 1] = (int32_t)all;
	}
	return r;
}

/* With s.whole, a lost page empties the token. Returns 1, and fills the row
 * with -1, if any item has lost a page. Has a barrier if s.whole is set. */
FN uint32_t
index_map_empty(const PRIVATE index_map_job *job, uint32_t lost, uint32_t turn,
		const PRIVATE index_map_row *to)
{
	uint32_t j;

	if (!job->s.whole)
		return 0;
	if (lost)
		job->empty[turn] = 1;
	if (g_item() == 0)
		job->empty[turn == 2 ? 0 : turn + 1] = 0;
	BARRIER();
	if (!job->empty[turn])
		return 0;
	for (j = g_item(); j < to->width; j += job->items)
		to->out[j] = -1;
	return 1;
}

/* Reports the item's faults, four bits each; returns whether it lost a page. */
FN uint32_t
index_map_report(const PRIVATE index_map_job *job, uint32_t row,
		 uint32_t faults)
{
	uint32_t lost = 0;

	NO_UNROLL
	for (; faults; faults >>= 4) {
		lost |= (faults & 15u) == G_FAULT_PAGE;
		if (faults & 15u)
			g_fault(job->fault_state, job->fault_status, row,
				faults & 15u);
	}
	return lost;
}

/* All work of a block; `compact`: makes rows compact. */
FN void
index_map_all(const PRIVATE index_map_job *job, const uint32_t compact)
{
	const PRIVATE spmla_k_index_map_scalars *s = &job->s;
	uint32_t t, from = 0, turn = 0, third = 0;
	uint64_t end = 0;

	if (s->whole) {
		if (g_item() == 0)
			job->empty[0] = 0;
		BARRIER();
	}
	NO_UNROLL
	for (t = job->first; t < s->tokens;
	     t += job->step, third = third == 2 ? 0 : third + 1) {
		GLOBAL const int32_t *in =
			job->indices + (int64_t)t * s->indices_stride;
		const uint32_t row = (uint32_t)job->token_row[t];
		GLOBAL const int32_t *pages =
			job->block_table +
			(row < s->rows ? (uint64_t)row * s->stride : 0);
		index_map_token of = index_map_token_of(job, t, row);
		const index_map_row to =
			index_map_row_of(job, from, t, of.len, &end);
		/* The item's slots, or the block's if they are compact. */
		uint32_t valid = 0, lost = 0, base, j;

		from = t + 1;
		if (to.lost) {
			of.len = 0;
			if (g_item() == 0)
				g_fault(job->fault_state, job->fault_status,
					row < s->rows ? row : t,
					G_FAULT_LENGTH);
		}
		NO_UNROLL
		for (base = 0; base < (compact ? of.len : to.width);
		     base += INDEX_MAP_EACH * job->items) {
			int32_t piece[INDEX_MAP_EACH];
			const uint32_t faults = index_map_piece(
				job, &of, in, pages, base, piece);

			if (!compact)
				valid += index_map_write(job, piece, base,
							 to.width, to.out);
			lost |= index_map_report(job, row < s->rows ? row : t,
						 faults);
			if (compact)
				valid = index_map_append(job, piece, base,
							 of.len, valid, to.out);
		}
		for (j = valid + g_item(); compact && j < to.width;
		     j += job->items)
			to.out[j] = -1;
		lost = index_map_empty(job, lost, third, &to);
		if (s->has_other && g_item() == 0)
			job->kept_lens[t] = lost ? 0 : job->other_lens[t];
		if (!s->has_counts)
			continue;
		/* Two sets of sums in turn, so one barrier for each token is
		 * enough. */
		if (!compact) {
			valid = index_map_sum(valid, job->items,
					      job->sums + turn);
			turn ^= G_SCAN_SUBGROUPS;
		}
		if (g_item() == 0) {
			if (!s->has_slots || job->slot_mapping[t] >= 0)
				valid += s->entries_before;
			job->valid_counts[t] = lost ? 0 : (int32_t)valid;
		}
	}
}

/* Two blocks per SM: ptxas would choose three, and then registers spill. */
SPMLA_KERNEL_BLOCKS(index_map, 2)
void
spmla_k_index_map(SPMLA_KERNEL_ARGS(index_map))
{
	LOCAL_ARRAY(uint64_t, sums, INDEX_MAP_SUMS);
	LOCAL_ARRAY(uint32_t, empty, 3);
	const index_map_job job = {SPMLA_KERNEL_VALUES(index_map),
				   SPMLA_ITEMS_index_map,
				   g_block(),
				   g_blocks(),
				   sums,
				   empty};

	index_map_all(&job, 0);
}

SPMLA_KERNEL_BLOCKS(index_map_compact, 2)
void
spmla_k_index_map_compact(SPMLA_KERNEL_ARGS(index_map_compact))
{
	LOCAL_ARRAY(uint64_t, sums, INDEX_MAP_SUMS);
	LOCAL_ARRAY(uint32_t, empty, 3);
	const index_map_job job = {SPMLA_KERNEL_VALUES(index_map),
				   SPMLA_ITEMS_index_map,
				   g_block(),
				   g_blocks(),
				   sums,
				   empty};

	index_map_all(&job, 1);
}

#endif
#endif
