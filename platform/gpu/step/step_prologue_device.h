/* SPDX-License-Identifier: Apache-2.0
 *
 * The phases that both forms of the step prologue share: find the record,
 * check that it is a step, change the tables, and publish. prologue_state, in
 * an item's registers, hands results from phase to phase; prologue_shared is
 * what items know of each other.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_DEVICE_H

#include "spmla/platform/gpu/dialect/divide.h"
#include "spmla/platform/gpu/step/decode_cut_device.h"
#include "spmla/platform/gpu/step/step_stores_device.h"
#include "spmla/platform/gpu/step/table_device.h"

/* V4's groups beyond the main one, in order. The prologue only writes their
 * tables; a table that is not SpMLA's own has 0 columns. */
#define SPMLA_GROUPS(X, F) \
	F(X, c4a)          \
	F(X, c128a)        \
	F(X, index)        \
	F(X, state_c4a)    \
	F(X, state_c128a)  \
	F(X, state_index)
#define SPMLA_P_OWN(P, group)     \
	P(int32_t, group##_table) \
	P(int32_t, group##_cols)
#define SPMLA_S_OWN(S, group)        \
	S(uint32_t, group##_columns) \
	S(spmla_g_divisor, group##_page)

#define SPMLA_K_STEP_PROLOGUE(P, S)    \
	SPMLA_K_FAULT(P)               \
	P(const uint32_t, ring)        \
	P(uint64_t, consumed)          \
	P(const uint32_t, step_device) \
	P(const int32_t, row_len)      \
	P(const int32_t, advance_by)   \
	P(int32_t, block_table)        \
	P(int32_t, table_cols)         \
	P(uint32_t, kept)              \
	P(int32_t, query_start_loc)    \
	P(int32_t, seq_lens)           \
	P(int32_t, req_row)            \
	P(int32_t, req_id_per_token)   \
	P(int32_t, token_row)          \
	P(int32_t, positions)          \
	P(int32_t, context_lens)       \
	P(int64_t, slot_mapping)       \
	P(int64_t, logits_row_starts)  \
	P(int32_t, workspace_starts)   \
	P(int32_t, key_starts)         \
	P(int32_t, key_ends)           \
	P(int64_t, piece_row_starts)   \
	P(int32_t, metadata)           \
	P(int32_t, num_splits)         \
	P(int32_t, compressed_lens)    \
	SPMLA_GROUPS(P, SPMLA_P_OWN)   \
	S(uint64_t, record_bytes)      \
	S(uint64_t, logits_capacity)   \
	S(uint64_t, piece_stride)      \
	SPMLA_S_TABLE(S)               \
	S(uint32_t, source)            \
	S(spmla_g_divisor, ring_slots) \
	S(uint32_t, longest)           \
	S(uint32_t, tokens)            \
	S(uint32_t, requests)          \
	S(spmla_g_divisor, next_n)     \
	S(uint32_t, live)              \
	S(uint32_t, piece_tokens)      \
	S(uint32_t, parts)             \
	S(uint32_t, whole_tokens)      \
	S(uint32_t, topk)              \
	S(spmla_g_divisor, page)       \
	S(spmla_g_divisor, ring_table) \
	S(spmla_g_divisor, dcp_cycle)  \
	S(uint32_t, dcp_run)           \
	S(uint32_t, dcp_first)         \
	S(uint32_t, groups)            \
	S(uint32_t, whole)             \
	S(uint32_t, index_shift)       \
	SPMLA_GROUPS(S, SPMLA_S_OWN)
#define SPMLA_K_step_prologue(P, S) SPMLA_K_STEP_PROLOGUE(P, S)
SPMLA_KERNEL_SCALARS(step_prologue)

#ifdef SPMLA_GPU_KERNELS

enum {
	PROLOGUE_ITEMS = SPMLA_ITEMS_step_prologue,
	PROLOGUE_STAGED = 4096,     /* words of a record in shared memory */
	PROLOGUE_STORE_WORDS = 256, /* of them behind the requests */
	PROLOGUE_LOADS = PROLOGUE_STAGED / 2 / PROLOGUE_ITEMS
};

/* Shared memory, all of it. */
typedef struct prologue_shared {
	uint32_t staged[PROLOGUE_STAGED]; /* the slot, from its first word on */
	uint64_t sums[G_SCAN_SUBGROUPS];  /* of the scans */
	/* By request, one an item: end of its queries, length, row. */
	uint32_t ends[PROLOGUE_ITEMS];
	uint32_t lens[PROLOGUE_ITEMS];
	uint32_t rows[PROLOGUE_ITEMS];
	uint32_t joins;                         /* a request does */
	uint32_t over;                          /* logits did not fit */
	prologue_table tables[PROLOGUE_TABLES]; /* that records change */
	decode_cut cut;
} prologue_shared;

/* The arguments of a kernel. */
typedef struct prologue_job {
	SPMLA_KERNEL_FIELDS(step_prologue)
	LOCAL prologue_shared *shared;
	/* Other blocks of the launch make V4's lists and their lengths. */
	uint32_t apart;
} prologue_job;

/* As spmla_request. */
typedef struct prologue_request {
	uint32_t row, query, seq, flags;
} prologue_request;

/* Up to two faults of an item that are not reported yet, in order. */
typedef struct prologue_notes {
	uint32_t row[2], fault[2];
} prologue_notes;

/* An item's request as the step has it. */
typedef struct prologue_own {
	prologue_request r;
	uint32_t start; /* its first token */
	uint32_t row;   /* 0 if there is none such */
	uint32_t len;   /* 0: it is skipped */
} prologue_own;

/* What a phase leaves for those behind it. */
typedef struct prologue_state {
	g_reporter to; /* of this step */
	prologue_notes notes;
	GLOBAL const uint32_t *slot;
	uint64_t ticket; /* that the ring has to have */
	uint64_t bytes;  /* of the record */
	uint32_t staged; /* words of the slot in shared memory */
	uint32_t used;   /* whether the slot has the ticket */
	uint32_t ok;     /* whether there is a step, and it fits */
	uint32_t flags;  /* of the step */
	uint32_t last;   /* requests of the step before */
	uint32_t count;  /* requests of this one */
} prologue_state;

/* ---- Faults ------------------------------------------------------------ */

FN void
prologue_note(PRIVATE prologue_notes *notes, uint32_t row, uint32_t fault)
{
	const uint32_t i = notes->fault[0] != 0;

	notes->row[1] = i ? row : 0;
	notes->fault[1] = i ? fault : 0;
	notes->row[0] = i ? notes->row[0] : row;
	notes->fault[0] = i ? notes->fault[0] : fault;
}

FN void
prologue_report(const PRIVATE g_reporter *to, PRIVATE prologue_notes *notes)
{
	NO_UNROLL
	while (notes->fault[0]) {
		g_report(to, notes->row[0], notes->fault[0]);
		notes->row[0] = notes->row[1];
		notes->fault[0] = notes->fault[1];
		notes->fault[1] = 0;
	}
}

/* ---- Requests ---------------------------------------------------------- */

FN prologue_request
prologue_no_request(void)
{
	const prologue_request none = {0, 0, 0, 0};

	return none;
}

FN prologue_request
prologue_load(GLOBAL const uint32_t *from)
{
	prologue_request r;

	r.row = from[0];
	r.query = from[1];
	r.seq = from[2];
	r.flags = from[3];
	return r;
}

/* Prefetches what the last token of a request will wait for. */
FN void
prologue_ask(const PRIVATE prologue_job *job, const PRIVATE prologue_request *r)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;

	if (r->query && r->row < s->rows && r->seq - 1 < s->longest) {
		const uint32_t last = g_divide(r->seq - 1, s->page);

		g_prefetch(job->block_table + (uint64_t)r->row * s->stride +
			   g_modulo(last, s->ring_table));
		if (s->has_cols)
			g_prefetch(job->table_cols + r->row);
	}
}

/* The same for the second launch, in a linear table of V4's beyond the main
 * one. */
FN void
prologue_ask_group(GLOBAL const int32_t *pages, GLOBAL const int32_t *cols,
		   uint32_t columns, const spmla_g_divisor page,
		   const PRIVATE spmla_k_step_prologue_scalars *s,
		   const PRIVATE prologue_request *r)
{
	if (columns && r->query && r->row < s->rows &&
	    r->seq - 1 < s->longest) {
		g_prefetch(pages + (uint64_t)r->row * columns +
			   g_divide(r->seq - 1, page));
		g_prefetch(cols + r->row);
	}
}

/* ---- What there is ----------------------------------------------------- */

/* ticket % slots, slots up to 1024; by 64 bits a division is a call. */
FN uint64_t
prologue_slot(uint64_t ticket, const spmla_g_divisor slots)
{
	const uint32_t high = (uint32_t)(ticket >> 32), by = slots.by;
	const uint32_t low = (uint32_t)ticket;

	if (ticket >> 31 == 0)
		return g_modulo(low, slots);
	return (high % by * ((0xffffffffu % by + 1u) % by) + low % by) % by;
}

/* The tables that records change. */
FN void
prologue_set_tables(const PRIVATE prologue_job *job)
{
	LOCAL prologue_table *tables = job->shared->tables;
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;

	prologue_set_table(tables, job->block_table, job->table_cols,
			   s->has_cols ? s->columns : 0, s->whole & 1u);
	if (s->groups == 1)
		return;
#define TABLE_OF(i, group)                                        \
	prologue_set_table(tables + 1 + (i), job->group##_table,  \
			   job->group##_cols, s->group##_columns, \
			   s->whole >> (1 + (i)) & 1u);
	TABLE_OF(0, c4a)
	TABLE_OF(1, c128a)
	TABLE_OF(2, index)
	TABLE_OF(3, state_c4a)
	TABLE_OF(4, state_c128a)
	TABLE_OF(5, state_index)
#undef TABLE_OF
}

/* Which step it is. The first barrier comes later. */
FN prologue_state
prologue_begin(const PRIVATE prologue_job *job)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;
	const uint64_t done = job->fault_state->done;
	prologue_state st;

	st.ticket = done + 1;
	st.last = job->fault_state->requests;
	st.slot = job->ring + prologue_slot(st.ticket, s->ring_slots) *
				      (s->record_bytes / 4);
	st.to = g_reporter_of(job->fault_state, job->fault_status);
	st.to.serial++;
	if (s->source == G_FROM_RING)
		st.to.step = st.ticket;
	else if (s->source == G_FROM_DEVICE)
		st.to.step = done;
	st.notes.row[0] = st.notes.row[1] = 0;
	st.notes.fault[0] = st.notes.fault[1] = 0;
	st.bytes = 0;
	st.staged = st.used = st.flags = st.count = 0;
	st.ok = 1;
	if (g_item() == 0) {
		job->shared->over = job->shared->joins = 0;
		prologue_set_tables(job);
	}
	return st;
}

/* How many words are fetched at once: requests and some stores. */
FN uint32_t
prologue_staged(uint32_t requests, uint64_t record_bytes)
{
	uint64_t n = G_RECORD_WORDS + (uint64_t)requests * G_REQUEST_WORDS +
		     PROLOGUE_STORE_WORDS;

	n = n < PROLOGUE_STAGED ? n : PROLOGUE_STAGED;
	return (uint32_t)(n < record_bytes / 4 ? n : record_bytes / 4);
}

/* Fetches words of the slot, an even number. While they are on their way it
 * asks for what the item's request of the last step, `before`, waited for,
 * which is most often what this step's will. A barrier at the end. */
FN void
prologue_stage(const PRIVATE prologue_job *job,
	       const PRIVATE prologue_state *st,
	       const PRIVATE prologue_request *before)
{
	GLOBAL const uint64_t *from = (GLOBAL const uint64_t *)st->slot;
	LOCAL uint32_t *staged = job->shared->staged;
	uint64_t x[PROLOGUE_LOADS];
	uint32_t i;

	UNROLL
	for (i = 0; i < PROLOGUE_LOADS; i++) {
		const uint32_t at = i * PROLOGUE_ITEMS + g_item();

		x[i] = at < st->staged / 2 ? g_load64_system(from + at) : 0;
	}
	prologue_ask(job, before);
	UNROLL
	for (i = 0; i < PROLOGUE_LOADS; i++) {
		const uint32_t at = i * PROLOGUE_ITEMS + g_item();

		staged[2 * at] = (uint32_t)x[i];
		staged[2 * at + 1] = (uint32_t)(x[i] >> 32);
	}
	BARRIER();
}

/* How many requests there are: by the slot if it has the ticket, by
 * STEP_DEVICE, or for an ADVANCE as many as before. */
FN void
prologue_find(const PRIVATE prologue_job *job, PRIVATE prologue_state *st,
	      const PRIVATE prologue_request *before)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;
	LOCAL const uint32_t *staged = job->shared->staged;

	if (s->source == G_FROM_RING) {
		st->staged = prologue_staged(s->requests, s->record_bytes);
		prologue_stage(job, st, before);
		st->used = staged[0] == (uint32_t)st->ticket &&
			   staged[1] == (uint32_t)(st->ticket >> 32);
		if (st->used) {
			st->count = staged[G_RECORD_REQUESTS];
			st->flags = staged[G_RECORD_FLAGS];
			st->bytes = (uint64_t)4 * G_RECORD_WORDS +
				    (uint64_t)16 * st->count +
				    (uint64_t)16 * staged[G_RECORD_STORES] +
				    (uint64_t)4 * staged[G_RECORD_PAGES];
			st->ok = st->bytes <= s->record_bytes;
		}
	} else if (s->source == G_FROM_DEVICE) {
		st->count = job->step_device[0];
		st->flags = job->step_device[1];
	} else {
		st->count = st->last;
	}
	st->ok = st->ok && st->count <= s->requests;
}

/* A step that is not there, or does not fit, is an empty one. */
FN void
prologue_refuse(const PRIVATE prologue_job *job, PRIVATE prologue_state *st)
{
	if (g_item() == 0) {
		if (job->s.source == G_FROM_RING && !st->used)
			prologue_note(&st->notes, G_NO_ROW,
				      G_FAULT_TICKET_MISSING);
		else if (!st->ok)
			prologue_note(&st->notes, G_NO_ROW, G_FAULT_TOO_LARGE);
	}
	st->count = st->ok ? st->count : 0;
}

/* ---- The tables -------------------------------------------------------- */

/* Gives the slot back to the host if nothing of it is read again, while others
 * wait for the table. A release would wait for every store of this item and is
 * not needed: all reads of the slot are done, since their results went through
 * shared memory and barriers. */
FN void
prologue_let_go(const PRIVATE prologue_job *job,
		const PRIVATE prologue_state *st)
{
	if (st->used && st->bytes <= (uint64_t)4 * st->staged &&
	    g_item() == PROLOGUE_ITEMS - 1)
		g_store64_system(job->consumed, st->ticket);
}

/* Whether the record's changes of the tables are to be made. */
FN uint32_t
prologue_changes(const PRIVATE prologue_job *job,
		 const PRIVATE prologue_state *st)
{
	return job->s.source == G_FROM_RING && st->used && st->ok;
}

/* A request that joins forgets its old columns. Returns whether it does. */
FN uint32_t
prologue_forget(const PRIVATE prologue_job *job, uint32_t row, uint32_t flags)
{
	LOCAL const prologue_table *tables = job->shared->tables;
	uint32_t t;

	if (!(flags & G_REQUEST_JOIN) || row >= job->s.rows)
		return 0;
	for (t = 0; t < job->s.groups; t++)
		if (tables[t].columns)
			tables[t].cols[row] =
				tables[t].cols[job->s.rows + row] = 0;
	return 1;
}

/* Fetches the words of the slot behind those that are staged, up to word `end`.
 * A barrier at the end. A loop: ordinary steps jump over this code, and should
 * not jump far. */
FN void
prologue_stage_rest(const PRIVATE prologue_job *job,
		    const PRIVATE prologue_state *st, uint32_t end)
{
	GLOBAL const uint64_t *from = (GLOBAL const uint64_t *)st->slot;
	LOCAL uint32_t *staged = job->shared->staged;
	uint32_t at;

	NO_UNROLL
	for (at = st->staged / 2 + g_item(); at < end / 2;
	     at += PROLOGUE_ITEMS) {
		const uint64_t x = g_load64_system(from + at);

		staged[2 * at] = (uint32_t)x;
		staged[2 * at + 1] = (uint32_t)(x >> 32);
	}
	BARRIER();
}

/* The stores, the rest of the record. What is not staged of it comes in a
 * second trip over the bus, as far as there is room. `joins`: some rows have
 * just forgotten their columns. Returns whether the subgroup changed a table.
 */
FN uint32_t
prologue_store(const PRIVATE prologue_job *job,
	       const PRIVATE prologue_state *st, uint32_t joins)
{
	LOCAL const uint32_t *staged = job->shared->staged;
	uint32_t n = st->staged;

	if (!staged[G_RECORD_STORES])
		return 0;
	if (st->bytes > (uint64_t)4 * n) {
		n = st->bytes < (uint64_t)4 * PROLOGUE_STAGED
			    ? (uint32_t)(st->bytes + 7) / 8 * 2
			    : PROLOGUE_STAGED;
		prologue_stage_rest(job, st, n);
	} else if (joins) {
		BARRIER();
	}
	return prologue_stores(&st->to, staged, n, st->slot,
			       job->shared->tables, job->s.groups, job->s.rows);
}

/* ---- Lengths and tokens ------------------------------------------------ */

/* The length of a request, or 0 if it is to be skipped. */
FN uint32_t
prologue_length(PRIVATE prologue_notes *notes, GLOBAL const int32_t *row_len,
		uint32_t row, uint32_t query, uint32_t seq, uint32_t flags,
		uint32_t rows, uint32_t longest)
{
	const uint32_t bound = seq < longest ? seq : longest;
	uint32_t len = seq;

	if (row >= rows) {
		prologue_note(notes, row, G_FAULT_ROW);
		return 0;
	}
	if (flags & G_STEP_LENS_ON_DEVICE)
		len = (uint32_t)row_len[row]; /* negative: above any bound */
	if (len > bound || len < query) {
		prologue_note(notes, row, G_FAULT_LENGTH);
		return 0;
	}
	return len;
}

/* The length of a request after an ADVANCE; `before` is what it was. */
FN uint32_t
prologue_moved(PRIVATE prologue_notes *notes, uint32_t row, uint32_t query,
	       uint32_t before, int32_t by, uint32_t longest)
{
	const int64_t len = (int64_t)before + by;

	if (query == 0 || before == 0)
		return before;
	if (len < (int64_t)query || len > (int64_t)longest) {
		prologue_note(notes, row, G_FAULT_LENGTH);
		return 0;
	}
	return (uint32_t)len;
}

/* The page of a position's last key on this rank. */
typedef struct prologue_page {
	uint32_t keys; /* up to it, on this rank */
	uint32_t own;  /* it is of the position itself */
	uint32_t col;
	int32_t written; /* columns of the row; -1: there is no such row */
	int32_t page;    /* -1: none */
} prologue_page;

/* Loads it; no load waits for another. */
FN prologue_page
prologue_find_page(const PRIVATE prologue_job *job, uint32_t row,
		   uint32_t position)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;
	const uint32_t is_row = row < s->rows;
	prologue_page p;

	p.keys = g_own_keys(position, s->dcp_cycle, s->dcp_run, s->dcp_first,
			    &p.own);
	p.col = g_modulo(g_divide(p.keys - 1, s->page), s->ring_table);
	p.written = !is_row       ? -1
		    : s->has_cols ? job->table_cols[row]
				  : (int32_t)s->columns;
	p.page = is_row && p.col < s->columns
			 ? job->block_table[(uint64_t)row * s->stride + p.col]
			 : -1;
	return p;
}

/* The slot of the position, -1 if it is another rank's; and the context of the
 * token there, 0 if it has no key here. */
FN uint32_t
prologue_use_page(const PRIVATE prologue_job *job,
		  PRIVATE prologue_notes *notes, uint32_t row,
		  const PRIVATE prologue_page *p, PRIVATE int64_t *slot)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;

	if (p->keys == 0)
		return 0;
	if (p->written < 0 || p->col >= (uint32_t)p->written || p->page < 0 ||
	    (uint32_t)p->page >= s->pool_pages) {
		prologue_note(notes, row,
			      row < s->rows ? G_FAULT_PAGE : G_FAULT_ROW);
		return 0;
	}
	if (p->own)
		*slot = (int64_t)p->page * s->page_tokens +
			g_modulo(p->keys - 1, s->page);
	return p->keys;
}

/* How many keys each token's index logits have. */
FN GLOBAL int32_t *
prologue_index_lens(const PRIVATE prologue_job *job)
{
	return job->s.index_shift ? job->compressed_lens : job->context_lens;
}

/* ---- The end ----------------------------------------------------------- */

/* The step as kernels behind this one know it, and that the ring moves on. All
 * threads have read what is replaced: a barrier stood between. A barrier at the
 * end. */
FN void
prologue_publish(const PRIVATE prologue_job *job,
		 const PRIVATE prologue_state *st)
{
	if (g_item() == 0) {
		job->fault_state->serial = st->to.serial;
		job->fault_state->step = st->to.step;
		job->query_start_loc[0] = 0;
		job->fault_state->requests = st->count;
		if (st->used)
			job->fault_state->done = st->ticket;
	}
	BARRIER();
}

/* Cuts the tokens of a decode into parts, all but the first whole_tokens ones.
 * `again`: the line of their costs is missing, or contexts may have been
 * shortened since. */
FN void
prologue_cut(const PRIVATE prologue_job *job, uint32_t again)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;
	LOCAL prologue_shared *shared = job->shared;
	const uint32_t tokens = s->tokens - s->whole_tokens;

	if (!s->parts)
		return;
	if (again) {
		BARRIER();
		decode_cut_ends(job->context_lens + s->whole_tokens, s->topk, 0,
				1, tokens, s->parts, PROLOGUE_ITEMS,
				&shared->cut, shared->sums);
		BARRIER();
	}
	decode_cut_block(tokens, s->parts, job->metadata, job->num_splits,
			 PROLOGUE_ITEMS, &shared->cut);
}

/* Gives the slot back if prologue_let_go did not. */
FN void
prologue_end(const PRIVATE prologue_job *job, const PRIVATE prologue_state *st)
{
	if (st->used && st->bytes > (uint64_t)4 * st->staged && g_item() == 0)
		g_release64_system(job->consumed, st->ticket);
}

#endif
#endif
