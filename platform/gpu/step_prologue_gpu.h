/* SPDX-License-Identifier: Apache-2.0
 *
 * The step prologue: one block. The record lies in pinned memory, where a read
 * takes a microsecond however wide it is: so all of it that local memory holds
 * is fetched by independent loads before anything is looked at. The rest is
 * what the stand-alone ops do, by the same functions. What is read is never
 * trusted: a record that is missing, too large or wrong becomes an empty step
 * or empty rows.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_PROLOGUE_H
#define SPMLA_PLATFORM_GPU_STEP_PROLOGUE_H

#include "spmla/platform/gpu/decode_cut_gpu.h"
#include "spmla/platform/gpu/logits_rows_gpu.h"
#include "spmla/platform/gpu/prefill_rows_gpu.h"
#include "spmla/platform/gpu/slot_map_gpu.h"
#include "spmla/platform/gpu/token_map_gpu.h"

#define SPMLA_K_step_prologue(P, S)    \
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
	S(uint64_t, record_bytes)      \
	S(uint64_t, logits_capacity)   \
	S(uint64_t, piece_stride)      \
	SPMLA_S_TABLE(S)               \
	S(uint32_t, source)            \
	S(uint32_t, ring_slots)        \
	S(uint32_t, longest)           \
	S(uint32_t, tokens)            \
	S(uint32_t, requests)          \
	S(uint32_t, next_n)            \
	S(uint32_t, live)              \
	S(uint32_t, piece_tokens)      \
	S(uint32_t, parts)             \
	S(uint32_t, topk)
SPMLA_KERNEL_SCALARS(step_prologue)

/* As spmla_source, spmla_request_flag and spmla_step_flag, and the places of
 * spmla_i_record; the host asserts it. */
enum {
	G_FROM_RING = 1,
	G_FROM_DEVICE = 2,
	G_ADVANCE = 3,
	G_REQUEST_JOIN = 1,
	G_STEP_LENS_ON_DEVICE = 1,
	G_RECORD_WORDS = 16,
	G_RECORD_FLAGS = 4,
	G_RECORD_REQUESTS = 5,
	G_RECORD_STORES = 6,
	G_RECORD_PAGES = 7,
	G_REQUEST_WORDS = 4,
	G_STORE_WORDS = 4,
	G_STEP_DEVICE_WORDS = 16
};

#ifdef SPMLA_GPU_KERNELS

enum {
	PROLOGUE_ITEMS = SPMLA_ITEMS_step_prologue,
	PROLOGUE_STAGED = 4096 /* words of a record in local memory */
};

/* A word of the record. */
FN uint32_t
prologue_word(LOCAL const uint32_t *staged, GLOBAL const uint32_t *slot,
	      uint64_t i)
{
	return i < PROLOGUE_STAGED ? staged[i] : g_load_system(slot + i);
}

/* Fetches the head of a slot; records are whole lines. */
FN void
prologue_stage(GLOBAL const uint32_t *slot, uint64_t record_bytes,
	       LOCAL uint32_t *staged)
{
	GLOBAL const uint64_t *from = (GLOBAL const uint64_t *)slot;
	const uint64_t most = PROLOGUE_STAGED / 2;
	const uint64_t n = record_bytes / 8 < most ? record_bytes / 8 : most;
	uint64_t i;

	for (i = g_item(); i < n; i += PROLOGUE_ITEMS) {
		const uint64_t x = g_load64_system(from + i);

		staged[2 * i] = (uint32_t)x;
		staged[2 * i + 1] = (uint32_t)(x >> 32);
	}
	BARRIER();
}

/* Whether `count` requests of `kept` fit the shape, by their own numbers. */
FN uint32_t
prologue_fits(GLOBAL const uint32_t *kept, uint32_t count, uint32_t requests,
	      uint32_t most_tokens, uint32_t next_n, uint32_t most_live,
	      uint32_t longest, LOCAL uint64_t *sums)
{
	uint64_t tokens = 0, live = 0;
	uint32_t first;

	if (count > requests)
		return 0;
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

/* A record's stores. A subgroup takes those of its rows, in order; a lane
 * always the same columns: so stores of a row keep their order and those of
 * different rows do not wait for each other. */
FN void
prologue_stores(const PRIVATE g_reporter *to, LOCAL const uint32_t *staged,
		GLOBAL const uint32_t *slot, GLOBAL int32_t *table,
		GLOBAL int32_t *cols, uint32_t rows, uint32_t columns,
		uint32_t stride)
{
	const uint32_t width = g_width(), lane = g_lane();
	const uint32_t subgroups = PROLOGUE_ITEMS / width;
	const uint32_t own = g_item() / width;
	const uint32_t stores = staged[G_RECORD_STORES];
	const uint32_t pages = staged[G_RECORD_PAGES];
	const uint64_t list =
		G_RECORD_WORDS +
		(uint64_t)staged[G_RECORD_REQUESTS] * G_REQUEST_WORDS;
	const uint64_t page_list = list + (uint64_t)stores * G_STORE_WORDS;
	uint32_t first, c;

	for (first = 0; first < stores; first += width) {
		const uint32_t i = first + lane;
		const uint32_t some =
			i < stores ? prologue_word(
					     staged, slot,
					     list + (uint64_t)i * G_STORE_WORDS)
				   : 0;
		uint64_t mine = g_ballot(i < stores &&
					 (some & 0xffffffu) % subgroups == own);

		for (; mine; mine &= mine - 1) {
			const uint64_t at =
				list + (uint64_t)(first + g_lowest64(mine)) *
					       G_STORE_WORDS;
			GLOBAL int32_t *line;
			uint32_t row, from, count, page, end, begin;
			int32_t old;

			row = prologue_word(staged, slot, at) & 0xffffffu;
			from = prologue_word(staged, slot, at + 1);
			count = prologue_word(staged, slot, at + 2);
			page = prologue_word(staged, slot, at + 3);
			if (row >= rows || count > columns ||
			    from > columns - count || count > pages ||
			    page > pages - count) {
				if (lane == 0)
					g_report(to, row, G_FAULT_ROW);
				continue;
			}
			line = table + (uint64_t)row * stride;
			end = from + count;
			/* The engine may see this memory: it is not trusted. */
			old = (int32_t)g_broadcast(
				lane == 0 ? (uint32_t)cols[row] : 0, 0);
			if (old < 0 || (uint32_t)old > columns)
				old = 0;
			/* Columns that a store jumps over are not written. */
			begin = (uint32_t)old < from ? (uint32_t)old : from;
			for (c = begin / width * width + lane; c < end;
			     c += width)
				if (c >= from)
					line[c] = (int32_t)prologue_word(
						staged, slot,
						page_list + page + (c - from));
				else if (c >= begin)
					line[c] = -1;
			if (lane == 0)
				cols[row] = (uint32_t)old < end ? (int32_t)end
								: old;
		}
	}
}

/* The length of a request, or 0 if it is to be skipped. */
FN uint32_t
prologue_length(const PRIVATE g_reporter *to, GLOBAL const int32_t *row_len,
		uint32_t row, uint32_t query, uint32_t seq, uint32_t flags,
		uint32_t rows, uint32_t longest)
{
	const uint32_t bound = seq < longest ? seq : longest;
	uint32_t len = seq;

	if (row >= rows) {
		g_report(to, row, G_FAULT_ROW);
		return 0;
	}
	if (flags & G_STEP_LENS_ON_DEVICE)
		len = (uint32_t)row_len[row]; /* negative: above any bound */
	if (len > bound || len < query) {
		g_report(to, row, G_FAULT_LENGTH);
		return 0;
	}
	return len;
}

SPMLA_KERNEL(step_prologue)
{
	LOCAL_ARRAY(uint32_t, staged, PROLOGUE_STAGED);
	LOCAL_ARRAY(uint32_t, ends, PROLOGUE_ITEMS);
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	LOCAL_ARRAY(decode_cut, cut, 1);
	const uint64_t done = fault_state->done;
	const uint64_t ticket = done + 1;
	const uint32_t last_requests = fault_state->requests;
	GLOBAL const uint32_t *slot =
		ring + ticket % s.ring_slots * (s.record_bytes / 4);
	g_reporter to = g_reporter_of(fault_state, fault_status);
	uint32_t count = 0, flags = 0, ok = 1, used = 0, first, b, t;

	to.serial++;
	if (s.source == G_FROM_RING)
		to.step = ticket;
	else if (s.source == G_FROM_DEVICE)
		to.step = done;
	BARRIER();
	if (g_item() == 0) {
		fault_state->serial = to.serial;
		fault_state->step = to.step;
	}

	/* The requests, to `kept`. */
	if (s.source == G_FROM_RING) {
		prologue_stage(slot, s.record_bytes, staged);
		used = staged[0] == (uint32_t)ticket &&
		       staged[1] == (uint32_t)(ticket >> 32);
		if (used) {
			count = staged[G_RECORD_REQUESTS];
			flags = staged[G_RECORD_FLAGS];
			ok = (uint64_t)4 * G_RECORD_WORDS +
				     (uint64_t)16 * count +
				     (uint64_t)16 * staged[G_RECORD_STORES] +
				     (uint64_t)4 * staged[G_RECORD_PAGES] <=
			     s.record_bytes;
		}
		if (count <= s.requests && ok)
			for (b = g_item(); b < count * G_REQUEST_WORDS;
			     b += PROLOGUE_ITEMS)
				kept[b] = prologue_word(
					staged, slot,
					(uint64_t)G_RECORD_WORDS + b);
	} else if (s.source == G_FROM_DEVICE) {
		count = step_device[0];
		flags = step_device[1];
		if (count <= s.requests)
			for (b = g_item(); b < count * G_REQUEST_WORDS;
			     b += PROLOGUE_ITEMS)
				kept[b] = step_device[G_STEP_DEVICE_WORDS + b];
	} else {
		count = last_requests;
	}
	BARRIER();
	ok = ok && prologue_fits(kept, count, s.requests, s.tokens, s.next_n,
				 s.live, s.longest, sums);
	if (g_item() == 0 && s.source == G_FROM_RING && !used)
		g_report(&to, G_NO_ROW, G_FAULT_TICKET_MISSING);
	else if (g_item() == 0 && !ok)
		g_report(&to, G_NO_ROW, G_FAULT_TOO_LARGE);
	count = ok ? count : 0;

	/* The table's changes; then the slot is the host's again. */
	if (s.source == G_FROM_RING && used) {
		for (b = g_item(); s.has_cols && b < count; b += PROLOGUE_ITEMS)
			if ((kept[b * G_REQUEST_WORDS + 3] & G_REQUEST_JOIN) &&
			    kept[b * G_REQUEST_WORDS] < s.rows)
				table_cols[kept[b * G_REQUEST_WORDS]] = 0;
		BARRIER();
		if (ok && s.has_cols)
			prologue_stores(&to, staged, slot, block_table,
					table_cols, s.rows, s.columns,
					s.stride);
		BARRIER();
		if (g_item() == 0) {
			g_fence_system();
			g_store64_system(consumed, ticket);
			fault_state->done = ticket;
		}
	}

	/* QUERY_START_LOC, SEQ_LENS and REQ_ROW, padded to the shape. */
	if (s.source == G_ADVANCE && ok) {
		for (b = g_item(); b < s.requests; b += PROLOGUE_ITEMS) {
			const uint32_t at = b * G_REQUEST_WORDS;
			const uint32_t query = b < count ? kept[at + 1] : 0;
			int64_t len;

			if (b >= count) {
				for (t = 0; t < G_REQUEST_WORDS; t++)
					kept[at + t] = 0;
				seq_lens[b] = 0;
				req_row[b] = 0;
				query_start_loc[b + 1] =
					count ? query_start_loc[count] : 0;
				continue;
			}
			if (query == 0 || seq_lens[b] == 0)
				continue;
			len = (int64_t)seq_lens[b] + advance_by[b];
			if (len < (int64_t)query || len > (int64_t)s.longest) {
				g_report(&to, kept[at], G_FAULT_LENGTH);
				len = 0;
			}
			seq_lens[b] = (int32_t)len;
		}
		if (g_item() == 0)
			query_start_loc[0] = 0;
	} else {
		uint64_t start = 0;

		for (first = 0; first < s.requests; first += PROLOGUE_ITEMS) {
			const uint32_t at =
				(first + g_item()) * G_REQUEST_WORDS;
			const uint32_t in = first + g_item() < count;
			const uint32_t row = in ? kept[at] : 0;
			const uint32_t query = in ? kept[at + 1] : 0;
			uint64_t total;
			const uint64_t before =
				g_scan_sum(query, PROLOGUE_ITEMS, sums, &total);

			b = first + g_item();
			if (b < s.requests) {
				seq_lens[b] =
					in ? (int32_t)prologue_length(
						     &to, row_len, row, query,
						     kept[at + 2], flags,
						     s.rows, s.longest)
					   : 0;
				req_row[b] = row < s.rows ? (int32_t)row : 0;
				query_start_loc[b + 1] =
					(int32_t)(start + before + query);
				for (t = 0; !in && t < G_REQUEST_WORDS; t++)
					kept[at + t] = 0;
			}
			start += total;
		}
		if (g_item() == 0) {
			query_start_loc[0] = 0;
			fault_state->requests = count;
		}
	}
	BARRIER();

	/* What the stand-alone ops do. */
	token_map_block(&to, query_start_loc, seq_lens, req_row,
			req_id_per_token, token_row, positions, context_lens,
			s.requests, s.tokens, ends, sums);
	BARRIER();
	for (t = g_item(); t < s.tokens; t += PROLOGUE_ITEMS) {
		int64_t place = -1;

		if (context_lens[t] > 0)
			place = slot_map_token(
				&to, block_table, table_cols, s.has_cols,
				s.rows, s.columns, s.stride, s.pool_pages,
				s.page_tokens, (uint32_t)token_row[t],
				(uint32_t)positions[t]);
		slot_mapping[t] = place;
		if (place < 0)
			context_lens[t] = 0;
	}
	BARRIER();
	if (s.piece_tokens)
		prefill_rows_block(
			&to, query_start_loc, seq_lens, req_row,
			req_id_per_token, context_lens, workspace_starts,
			key_starts, key_ends, piece_row_starts, s.requests,
			s.tokens, s.live, s.piece_tokens, s.piece_stride, sums);
	else
		logits_rows_block(&to, token_row, 1, context_lens,
				  logits_row_starts, s.logits_capacity,
				  s.tokens, sums);
	if (s.parts) {
		BARRIER(); /* it may have shortened contexts */
		decode_cut_block(context_lens, s.topk, s.tokens, s.parts,
				 metadata, num_splits, PROLOGUE_ITEMS, cut,
				 sums);
	}
}

#endif
#endif
