/* SPDX-License-Identifier: Apache-2.0
 *
 * The step prologue: one block. The record lies in pinned memory, where a read
 * takes a microsecond however wide it is: so all of it that local memory holds
 * is fetched by independent loads before anything is looked at. What is read is
 * never trusted: a record that is missing, too large or wrong becomes an empty
 * step or empty rows.
 *
 * The ticket comes with the rest, by loads that no order binds, and not first
 * by an acquire, which would cost a second trip over the bus. That is right
 * because a record is written before the launch call, which orders all of it
 * before the kernel: a slot has its ticket and its payload, or an older ticket
 * and is MISSING. One that is written while its kernel runs may be seen in
 * part: a step of old and new bytes, inside all bounds, and wrong.
 *
 * The hard idea is to wait little: every step starts with this. With no more
 * requests than items an item has a request, one scan places all queries and
 * counts the context, and an item then makes all of a token, whose only loads
 * are those of its page; what stand-alone ops hand on in memory stays in
 * registers. Longer lists, and those of a prefill, are done by the functions of
 * those ops, one after the other, in a kernel of its own: instructions are
 * fetched as they are run, once, so that what is not run must not lie between
 * them. For the same reason bad data is noted and reported in one place.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_KERNEL_H

#include "spmla/platform/gpu/dialect/divide.h"
#include "spmla/platform/gpu/step/decode_cut_device.h"
#include "spmla/platform/gpu/step/logits_rows_kernel.h"
#include "spmla/platform/gpu/step/prefill_rows_kernel.h"
#include "spmla/platform/gpu/step/step_stores_device.h"
#include "spmla/platform/gpu/step/table_device.h"
#include "spmla/platform/gpu/step/token_map_kernel.h"

/* V4's groups beyond the main one, in their order; of their tables the prologue
 * only writes: columns is 0 of one that is not SpMLA's own. */
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
	S(uint32_t, topk)              \
	S(spmla_g_divisor, page)       \
	S(spmla_g_divisor, ring_table) \
	S(uint32_t, groups)            \
	S(uint32_t, index_shift)       \
	SPMLA_GROUPS(S, SPMLA_S_OWN)
#define SPMLA_K_step_prologue(P, S)      SPMLA_K_STEP_PROLOGUE(P, S)
#define SPMLA_K_step_prologue_v4(P, S)   SPMLA_K_STEP_PROLOGUE(P, S)
#define SPMLA_K_step_prologue_wide(P, S) SPMLA_K_STEP_PROLOGUE(P, S)
SPMLA_KERNEL_SCALARS(step_prologue)
/* The same struct: all are one function. */
typedef spmla_k_step_prologue_scalars spmla_k_step_prologue_v4_scalars;
typedef spmla_k_step_prologue_scalars spmla_k_step_prologue_wide_scalars;

#ifdef SPMLA_GPU_KERNELS

enum {
	PROLOGUE_ITEMS = SPMLA_ITEMS_step_prologue,
	PROLOGUE_STAGED = 4096,     /* words of a record in local memory */
	PROLOGUE_STORE_WORDS = 256, /* of them behind the requests */
	PROLOGUE_LOADS = PROLOGUE_STAGED / 2 / PROLOGUE_ITEMS,
	/* Bits of a scan's sum that are query tokens; above them context. One
	 * request that is too long makes more tokens than any shape has. */
	PROLOGUE_TOKEN_BITS = 28,
	PROLOGUE_TOO_LONG = 1 << 17,
	/* Bits of another's that are logits, in units of their alignment; above
	 * them what tokens cost a decode in parts. */
	PROLOGUE_LOGITS_BITS = 40
};

/* What items know of each other's requests, whether one joins, and whether
 * logits did not fit. */
typedef struct prologue_shared {
	uint32_t ends[PROLOGUE_ITEMS]; /* of the queries */
	uint32_t lens[PROLOGUE_ITEMS];
	uint32_t rows[PROLOGUE_ITEMS];
	uint32_t over, joins;
} prologue_shared;

/* As spmla_request. */
typedef struct prologue_request {
	uint32_t row, query, seq, flags;
} prologue_request;

/* Up to two faults of an item that are not reported yet, in order. */
typedef struct prologue_notes {
	uint32_t row[2], fault[2];
} prologue_notes;

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

/* How many words are fetched at once: requests and some stores. */
FN uint32_t
prologue_staged(uint32_t requests, uint64_t record_bytes)
{
	uint64_t n = G_RECORD_WORDS + (uint64_t)requests * G_REQUEST_WORDS +
		     PROLOGUE_STORE_WORDS;

	n = n < PROLOGUE_STAGED ? n : PROLOGUE_STAGED;
	return (uint32_t)(n < record_bytes / 4 ? n : record_bytes / 4);
}

/* Asks for what the last token of a request will wait for. */
FN void
prologue_ask(GLOBAL const int32_t *block_table,
	     GLOBAL const int32_t *table_cols,
	     const PRIVATE spmla_k_step_prologue_scalars *s,
	     const PRIVATE prologue_request *r)
{
	if (r->query && r->row < s->rows && r->seq - 1 < s->longest) {
		const uint32_t last = g_divide(r->seq - 1, s->page);

		g_prefetch(block_table + (uint64_t)r->row * s->stride +
			   g_modulo(last, s->ring_table));
		if (s->has_cols)
			g_prefetch(table_cols + r->row);
	}
}

/* The same for the second launch, of a table of V4's beyond the main one that
 * does not come round. */
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

FN void
prologue_load(GLOBAL const uint32_t *from, PRIVATE prologue_request *r)
{
	r->row = from[0];
	r->query = from[1];
	r->seq = from[2];
	r->flags = from[3];
}

/* Fetches n words of a slot, an even number. While they are on their way it
 * asks for what the last step's request of this item waited for, which is most
 * often what this step's will. */
FN void
prologue_stage(GLOBAL const uint32_t *slot, uint32_t n, LOCAL uint32_t *staged,
	       GLOBAL const int32_t *block_table,
	       GLOBAL const int32_t *table_cols,
	       const PRIVATE spmla_k_step_prologue_scalars *s,
	       const PRIVATE prologue_request *before)
{
	GLOBAL const uint64_t *from = (GLOBAL const uint64_t *)slot;
	uint64_t x[PROLOGUE_LOADS];
	uint32_t i;

	UNROLL
	for (i = 0; i < PROLOGUE_LOADS; i++) {
		const uint32_t at = i * PROLOGUE_ITEMS + g_item();

		x[i] = at < n / 2 ? g_load64_system(from + at) : 0;
	}
	prologue_ask(block_table, table_cols, s, before);
	UNROLL
	for (i = 0; i < PROLOGUE_LOADS; i++) {
		const uint32_t at = i * PROLOGUE_ITEMS + g_item();

		staged[2 * at] = (uint32_t)x[i];
		staged[2 * at + 1] = (uint32_t)(x[i] >> 32);
	}
	BARRIER();
}

/* Whether `count` requests of `kept` fit the shape, by their own numbers. */
FN uint32_t
prologue_fits(GLOBAL const uint32_t *kept, uint32_t count, uint32_t most_tokens,
	      uint32_t next_n, uint32_t most_live, uint32_t longest,
	      LOCAL uint64_t *sums)
{
	uint64_t tokens = 0, live = 0;
	uint32_t first;

	for (first = 0; first < count; first += PROLOGUE_ITEMS) {
		const uint32_t b = first + g_item();
		const uint32_t query =
			b < count ? kept[b * G_REQUEST_WORDS + 1] : 0;
		const uint32_t seq =
			b < count ? kept[b * G_REQUEST_WORDS + 2] : 0;
		/* One that is too long is as many tokens as no shape has. */
		const uint64_t x =
			query > next_n ? (uint64_t)1 << 40 : (uint64_t)query;
		uint64_t total;

		(void)g_scan_sum(x, PROLOGUE_ITEMS, sums, &total);
		tokens += total;
		(void)g_scan_sum(!query          ? 0
				 : seq < longest ? seq
						 : longest,
				 PROLOGUE_ITEMS, sums, &total);
		live += total;
	}
	return tokens <= most_tokens && live <= most_live;
}

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

/* The length of request b after an ADVANCE; `before` is what it was. */
FN uint32_t
prologue_moved(PRIVATE prologue_notes *notes, const PRIVATE prologue_request *r,
	       uint32_t before, int32_t by, uint32_t longest)
{
	const int64_t len = (int64_t)before + by;

	if (r->query == 0 || before == 0)
		return before;
	if (len < (int64_t)r->query || len > (int64_t)longest) {
		prologue_note(notes, r->row, G_FAULT_LENGTH);
		return 0;
	}
	return (uint32_t)len;
}

/* The slot of a position, and the context of the token there; 0 if it has no
 * slot. */
FN uint32_t
prologue_token(PRIVATE prologue_notes *notes, GLOBAL const int32_t *block_table,
	       GLOBAL const int32_t *table_cols,
	       const PRIVATE spmla_k_step_prologue_scalars *s, uint32_t row,
	       uint32_t position, PRIVATE int64_t *slot)
{
	const uint32_t col =
		g_modulo(g_divide(position, s->page), s->ring_table);
	/* Neither load waits for the other. */
	const uint32_t is_row = row < s->rows;
	const int32_t written = !is_row       ? -1
				: s->has_cols ? table_cols[row]
					      : (int32_t)s->columns;
	const int32_t page =
		is_row && col < s->columns
			? block_table[(uint64_t)row * s->stride + col]
			: -1;

	if (written < 0 || col >= (uint32_t)written || page < 0 ||
	    (uint32_t)page >= s->pool_pages) {
		prologue_note(notes, row, is_row ? G_FAULT_PAGE : G_FAULT_ROW);
		return 0;
	}
	*slot = (int64_t)page * s->page_tokens + g_modulo(position, s->page);
	return position + 1;
}

/* `narrow`, a constant: no more requests than items, and no prefill. */
FN void
prologue_run(SPMLA_K_STEP_PROLOGUE(SPMLA_I_K_PARAM, SPMLA_I_K_NONE)
		     const spmla_k_step_prologue_scalars s,
	     const uint32_t narrow, LOCAL uint32_t *staged,
	     LOCAL uint64_t *sums, LOCAL prologue_shared *shared,
	     LOCAL prologue_table *tables, LOCAL decode_cut *cut)
{
	const uint64_t done = fault_state->done;
	const uint64_t ticket = done + 1;
	const uint32_t last_requests = fault_state->requests;
	const uint32_t pieces = narrow ? 0 : s.piece_tokens;
	const uint32_t item = g_item();
	/* Keys that a token's index logits are of. */
	GLOBAL int32_t *index_lens =
		s.index_shift ? compressed_lens : context_lens;
	GLOBAL const uint32_t *slot =
		ring +
		prologue_slot(ticket, s.ring_slots) * (s.record_bytes / 4);
	g_reporter to = g_reporter_of(fault_state, fault_status);
	prologue_request r = {0, 0, 0, 0};
	prologue_notes notes = {{0, 0}, {0, 0}};
	uint32_t count = 0, flags = 0, ok = 1, used = 0, start = 0, queries = 0;
	uint32_t n = 0, first, b, t;
	uint64_t bytes = 0;

	to.serial++;
	if (s.source == G_FROM_RING)
		to.step = ticket;
	else if (s.source == G_FROM_DEVICE)
		to.step = done;

	if (item == 0) {
		shared->over = shared->joins = 0;
		prologue_set_table(tables, block_table, table_cols,
				   s.has_cols ? s.columns : 0);
	}
	if (item == 0 && s.groups > 1) {
#define TABLE_OF(i, group)                                                \
	prologue_set_table(tables + 1 + (i), group##_table, group##_cols, \
			   s.group##_columns);
		TABLE_OF(0, c4a)
		TABLE_OF(1, c128a)
		TABLE_OF(2, index)
		TABLE_OF(3, state_c4a)
		TABLE_OF(4, state_c128a)
		TABLE_OF(5, state_index)
#undef TABLE_OF
	}
	/* What there is. */
	if (s.source == G_FROM_RING) {
		n = prologue_staged(s.requests, s.record_bytes);
		if (narrow && item < last_requests && item < s.requests)
			prologue_load(kept + item * G_REQUEST_WORDS, &r);
		prologue_stage(slot, n, staged, block_table, table_cols, &s,
			       &r);
		r.row = r.query = r.seq = r.flags = 0;
		used = staged[0] == (uint32_t)ticket &&
		       staged[1] == (uint32_t)(ticket >> 32);
		if (used) {
			count = staged[G_RECORD_REQUESTS];
			flags = staged[G_RECORD_FLAGS];
			bytes = (uint64_t)4 * G_RECORD_WORDS +
				(uint64_t)16 * count +
				(uint64_t)16 * staged[G_RECORD_STORES] +
				(uint64_t)4 * staged[G_RECORD_PAGES];
			ok = bytes <= s.record_bytes;
		}
	} else if (s.source == G_FROM_DEVICE) {
		count = step_device[0];
		flags = step_device[1];
	} else {
		count = last_requests;
	}
	ok = ok && count <= s.requests;

	/* The requests, to registers or to `kept`, and whether they fit. */
	if (narrow) {
		uint64_t sum, total;

		if (ok && item < count) {
			const uint32_t at = item * G_REQUEST_WORDS;

			if (s.source == G_FROM_RING) {
				LOCAL const uint32_t *from =
					staged + G_RECORD_WORDS + at;

				r.row = from[0];
				r.query = from[1];
				r.seq = from[2];
				r.flags = from[3];
			} else if (s.source == G_FROM_DEVICE) {
				prologue_load(step_device +
						      G_STEP_DEVICE_WORDS + at,
					      &r);
			} else {
				prologue_load(kept + at, &r);
			}
		}
		if (s.source == G_FROM_RING && (r.flags & G_REQUEST_JOIN))
			shared->joins = 1;
		prologue_ask(block_table, table_cols, &s, &r);
		if (s.groups > 1) {
			prologue_ask_group(c4a_table, c4a_cols, s.c4a_columns,
					   s.c4a_page, &s, &r);
			prologue_ask_group(c128a_table, c128a_cols,
					   s.c128a_columns, s.c128a_page, &s,
					   &r);
			prologue_ask_group(index_table, index_cols,
					   s.index_columns, s.index_page, &s,
					   &r);
		}
		sum = r.query > s.next_n.by ? PROLOGUE_TOO_LONG : r.query;
		if (r.query)
			sum |= (uint64_t)(r.seq < s.longest ? r.seq : s.longest)
			       << PROLOGUE_TOKEN_BITS;
		sum = g_scan_sum(sum, PROLOGUE_ITEMS, sums, &total);
		start = (uint32_t)sum & ((1u << PROLOGUE_TOKEN_BITS) - 1u);
		queries = (uint32_t)total & ((1u << PROLOGUE_TOKEN_BITS) - 1u);
		ok = ok && queries <= s.tokens &&
		     total >> PROLOGUE_TOKEN_BITS <= s.live;
		if (!ok) {
			r.row = r.query = r.seq = r.flags = 0;
			start = queries = 0;
		}
	} else {
		for (b = item; ok && b < count * G_REQUEST_WORDS;
		     b += PROLOGUE_ITEMS)
			if (s.source == G_FROM_RING)
				kept[b] = prologue_word(
					staged, n, slot,
					(uint64_t)G_RECORD_WORDS + b);
			else if (s.source == G_FROM_DEVICE)
				kept[b] = step_device[G_STEP_DEVICE_WORDS + b];
		BARRIER();
		ok = ok && prologue_fits(kept, count, s.tokens, s.next_n.by,
					 s.live, s.longest, sums);
	}
	if (item == 0) {
		if (s.source == G_FROM_RING && !used)
			prologue_note(&notes, G_NO_ROW, G_FAULT_TICKET_MISSING);
		else if (!ok)
			prologue_note(&notes, G_NO_ROW, G_FAULT_TOO_LARGE);
	}
	count = ok ? count : 0;

	/* If nothing of the slot is read again the host may have it: here, as
	 * others meanwhile wait for the table. No release, which would wait for
	 * every store of this item: what was read of the slot is here, since
	 * it has gone through local memory and barriers. */
	if (used && bytes <= (uint64_t)4 * n && item == PROLOGUE_ITEMS - 1)
		g_store64_system(consumed, ticket);
	/* The table's changes: all that is left of the record. */
	if (s.source == G_FROM_RING && used && ok) {
		for (b = item; b < count; b += PROLOGUE_ITEMS) {
			const uint32_t at = b * G_REQUEST_WORDS;
			const uint32_t row = narrow ? r.row : kept[at];

			if (!((narrow ? r.flags : kept[at + 3]) &
			      G_REQUEST_JOIN) ||
			    row >= s.rows)
				continue;
			for (t = 0; t < s.groups; t++)
				if (tables[t].columns)
					tables[t].cols[row] = 0;
		}
		if (staged[G_RECORD_STORES]) {
			if (!narrow || shared->joins)
				BARRIER();
			prologue_stores(&to, staged, n, slot, tables, s.groups,
					s.rows);
		}
	}

	/* QUERY_START_LOC, SEQ_LENS and REQ_ROW, padded to the shape. */
	if (narrow) {
		uint32_t len = 0;

		if (item < count && s.source == G_ADVANCE)
			len = prologue_moved(&notes, &r,
					     (uint32_t)seq_lens[item],
					     advance_by[item], s.longest);
		else if (item < count)
			len = prologue_length(&notes, row_len, r.row, r.query,
					      r.seq, flags, s.rows, s.longest);
		shared->ends[item] = start + r.query;
		shared->lens[item] = len;
		shared->rows[item] = r.row < s.rows ? r.row : 0;
		if (item < s.requests) {
			GLOBAL uint32_t *keep = kept + item * G_REQUEST_WORDS;

			seq_lens[item] = (int32_t)len;
			req_row[item] = (int32_t)(r.row < s.rows ? r.row : 0);
			query_start_loc[item + 1] = (int32_t)(start + r.query);
			keep[0] = r.row;
			keep[1] = r.query;
			keep[2] = r.seq;
			keep[3] = r.flags;
		}
	} else if (s.source == G_ADVANCE && ok) {
		for (b = item; b < s.requests; b += PROLOGUE_ITEMS) {
			const uint32_t at = b * G_REQUEST_WORDS;

			if (b < count) {
				r.row = kept[at];
				r.query = kept[at + 1];
				seq_lens[b] = (int32_t)prologue_moved(
					&notes, &r, (uint32_t)seq_lens[b],
					advance_by[b], s.longest);
				prologue_report(&to, &notes);
				continue;
			}
			for (t = 0; t < G_REQUEST_WORDS; t++)
				kept[at + t] = 0;
			seq_lens[b] = 0;
			req_row[b] = 0;
			query_start_loc[b + 1] =
				count ? query_start_loc[count] : 0;
		}
	} else {
		uint64_t before = 0;

		for (first = 0; first < s.requests; first += PROLOGUE_ITEMS) {
			const uint32_t at = (first + item) * G_REQUEST_WORDS;
			const uint32_t in = first + item < count;
			const uint32_t row = in ? kept[at] : 0;
			const uint32_t query = in ? kept[at + 1] : 0;
			uint64_t total;
			const uint64_t own =
				before +
				g_scan_sum(query, PROLOGUE_ITEMS, sums, &total);

			b = first + item;
			if (b < s.requests) {
				seq_lens[b] =
					in ? (int32_t)prologue_length(
						     &notes, row_len, row,
						     query, kept[at + 2], flags,
						     s.rows, s.longest)
					   : 0;
				prologue_report(&to, &notes);
				req_row[b] = row < s.rows ? (int32_t)row : 0;
				query_start_loc[b + 1] = (int32_t)(own + query);
				for (t = 0; !in && t < G_REQUEST_WORDS; t++)
					kept[at + t] = 0;
			}
			before += total;
		}
	}
	if (item == 0) {
		fault_state->serial = to.serial;
		fault_state->step = to.step;
		query_start_loc[0] = 0;
		fault_state->requests = count;
	}
	BARRIER();

	/* The tokens, and where their logits go. */
	if (narrow) {
		const uint64_t align = SPMLA_LOGITS_ROW_ALIGN;
		const uint64_t low_bits =
			((uint64_t)1 << PROLOGUE_LOGITS_BITS) - 1;
		uint64_t elems = 0;
		uint32_t costs = 0;

		NO_UNROLL
		for (first = 0; first < s.tokens; first += PROLOGUE_ITEMS) {
			uint32_t low = 0, high = s.requests, p = 0, context = 0;
			int64_t place = -1;
			uint64_t at, before, total;

			t = first + item;
			/* No request has more than next_n tokens; where all
			 * have, nothing is searched for. */
			if (t < queries) {
				low = g_divide(t, s.next_n);
				high = shared->ends[low] > t ? low : high;
			}
			NO_UNROLL
			while (t < queries && low < high) {
				const uint32_t middle = (low + high) / 2;

				if (shared->ends[middle] > t)
					high = middle;
				else
					low = middle + 1;
			}
			if (t < queries && shared->lens[low]) {
				p = shared->lens[low] - (shared->ends[low] - t);
				context = prologue_token(
					&notes, block_table, table_cols, &s,
					shared->rows[low], p, &place);
			}
			if (t < s.tokens) {
				req_id_per_token[t] = (int32_t)low;
				token_row[t] =
					t < queries ? (int32_t)shared->rows[low]
						    : 0;
				positions[t] = (int32_t)p;
				context_lens[t] = (int32_t)context;
				slot_mapping[t] = place;
			}
			context >>= s.index_shift;
			if (s.index_shift && t < s.tokens)
				compressed_lens[t] = (int32_t)context;
			at = (context + align - 1) / align;
			if (s.parts && t < s.tokens) {
				const uint32_t cost =
					decode_cut_cost(context, s.topk, 0, 1);

				at |= (uint64_t)cost << PROLOGUE_LOGITS_BITS;
			}
			before = g_scan_sum(at, PROLOGUE_ITEMS, sums, &total);
			if (s.parts && t < s.tokens)
				decode_cut_token(
					cut, t,
					costs + (uint32_t)((before + at) >>
							   PROLOGUE_LOGITS_BITS));
			at = before;
			at = elems + (at & low_bits) * align;
			if (at > s.logits_capacity ||
			    context > s.logits_capacity - at)
				shared->over = 1;
			if (t < s.tokens)
				logits_row_starts[t] = (int64_t)at;
			elems += (total & low_bits) * align;
			costs += (uint32_t)(total >> PROLOGUE_LOGITS_BITS);
			prologue_report(&to, &notes);
		}
		BARRIER();
		if (item == 0) {
			if (shared->over)
				logits_rows_walk(&to, token_row, 1, index_lens,
						 logits_row_starts,
						 s.logits_capacity, s.tokens);
			else
				logits_row_starts[s.tokens] =
					(int64_t)(elems < s.logits_capacity
							  ? elems
							  : s.logits_capacity);
		}
	} else {
		token_map_block(&to, query_start_loc, seq_lens, req_row,
				req_id_per_token, token_row, positions,
				context_lens, s.requests, s.tokens,
				PROLOGUE_ITEMS, shared->ends, sums);
		BARRIER();
		for (t = item; t < s.tokens; t += PROLOGUE_ITEMS) {
			int64_t place = -1;

			if (context_lens[t] > 0)
				context_lens[t] = (int32_t)prologue_token(
					&notes, block_table, table_cols, &s,
					(uint32_t)token_row[t],
					(uint32_t)positions[t], &place);
			prologue_report(&to, &notes);
			slot_mapping[t] = place;
			if (s.index_shift)
				compressed_lens[t] =
					context_lens[t] >> s.index_shift;
		}
		BARRIER();
		if (!pieces)
			logits_rows_block(&to, token_row, 1, index_lens,
					  logits_row_starts, s.logits_capacity,
					  s.tokens, PROLOGUE_ITEMS, sums);
	}
	if (pieces && s.index_shift)
		for (t = item; t < s.tokens; t += PROLOGUE_ITEMS) {
			piece_row_starts[t] =
				(int64_t)(t % pieces * s.piece_stride);
			/* An ADVANCE may go past the workspace. */
			if ((uint64_t)compressed_lens[t] > s.piece_stride) {
				g_report(&to, (uint32_t)token_row[t],
					 G_FAULT_LOGITS);
				compressed_lens[t] = 0;
			}
		}
	else if (pieces)
		prefill_rows_block(&to, query_start_loc, seq_lens, req_row,
				   req_id_per_token, context_lens,
				   workspace_starts, key_starts, key_ends,
				   piece_row_starts, s.requests, s.tokens,
				   s.live, s.piece_tokens, s.piece_stride,
				   PROLOGUE_ITEMS, sums);
	if (s.parts) {
		if (!narrow || shared->over) {
			BARRIER(); /* contexts may have been shortened */
			decode_cut_ends(context_lens, s.topk, 0, 1, s.tokens,
					PROLOGUE_ITEMS, cut, sums);
			BARRIER();
		}
		decode_cut_block(s.tokens, s.parts, metadata, num_splits,
				 PROLOGUE_ITEMS, cut);
	}
	if (s.source == G_FROM_RING && used && item == 0) {
		if (bytes > (uint64_t)4 * n)
			g_release64_system(consumed, ticket);
		fault_state->done = ticket;
	}
}

#define ARGS_NAME(type, name) name,
#define ARRAYS()                                              \
	LOCAL_ARRAY(uint32_t, staged, PROLOGUE_STAGED);       \
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);        \
	LOCAL_ARRAY(prologue_shared, shared, 1);              \
	LOCAL_ARRAY(prologue_table, tables, PROLOGUE_TABLES); \
	LOCAL_ARRAY(decode_cut, cut, 1)

/* Of one table: what V4 has beyond it costs no instruction. */
SPMLA_KERNEL_BLOCKS(step_prologue, 1)
void
spmla_k_step_prologue(SPMLA_KERNEL_ARGS(step_prologue))
{
	ARRAYS();
	spmla_k_step_prologue_scalars one = s;

	one.groups = 1;
	one.ring_table.by = one.ring_table.factor = 0;
	one.index_shift = 0;
	prologue_run(SPMLA_K_STEP_PROLOGUE(ARGS_NAME, SPMLA_I_K_NONE) one, 1,
		     staged, sums, shared, tables, cut);
}

SPMLA_KERNEL_BLOCKS(step_prologue_v4, 1)
void
spmla_k_step_prologue_v4(SPMLA_KERNEL_ARGS(step_prologue_v4))
{
	ARRAYS();

	prologue_run(SPMLA_K_STEP_PROLOGUE(ARGS_NAME, SPMLA_I_K_NONE) s, 1,
		     staged, sums, shared, tables, cut);
}

SPMLA_KERNEL_BLOCKS(step_prologue_wide, 1)
void
spmla_k_step_prologue_wide(SPMLA_KERNEL_ARGS(step_prologue_wide))
{
	ARRAYS();

	prologue_run(SPMLA_K_STEP_PROLOGUE(ARGS_NAME, SPMLA_I_K_NONE) s, 0,
		     staged, sums, shared, tables, cut);
}

#undef ARRAYS
#undef ARGS_NAME
#endif
#endif
