/* SPDX-License-Identifier: Apache-2.0
 *
 * The prologue of a step with no more requests than threads. A thread has a
 * request; one scan places all queries and counts the context; then a thread
 * makes a whole token, and loads only its page. What stand-alone ops hand on
 * in memory stays in registers. Bad data is noted first and reported in one
 * place.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_NARROW_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_NARROW_DEVICE_H

#include "spmla/platform/gpu/step/logits_rows_kernel.h"
#include "spmla/platform/gpu/step/step_prologue_device.h"

#ifdef SPMLA_GPU_KERNELS

enum {
	/* Bits of a scan's sum that are query tokens; above them context. One
	 * request that is too long makes more tokens than any shape has. */
	PROLOGUE_TOKEN_BITS = 28,
	PROLOGUE_TOO_LONG = 1 << 17,
	/* Bits of the other scan's sum that are logits, in units of their
	 * alignment; above them the tokens' costs for a decode in parts. */
	PROLOGUE_LOGITS_BITS = 40
};

/* The thread's request, out of wherever the step is. */
FN prologue_request
prologue_own_request(const PRIVATE prologue_job *job,
		     const PRIVATE prologue_state *st)
{
	const uint32_t at = g_item() * G_REQUEST_WORDS;
	prologue_request r = prologue_no_request();

	if (!st->ok || g_item() >= st->count)
		return r;
	if (job->s.source == G_FROM_RING) {
		LOCAL const uint32_t *from =
			job->shared->staged + G_RECORD_WORDS + at;

		r.row = from[0];
		r.query = from[1];
		r.seq = from[2];
		r.flags = from[3];
		return r;
	}
	return prologue_load(job->s.source == G_FROM_DEVICE
				     ? job->step_device + G_STEP_DEVICE_WORDS +
					       at
				     : job->kept + at);
}

/* Asks for what the request's tokens will wait for, here and in the second
 * launch. */
FN void
prologue_ask_all(const PRIVATE prologue_job *job,
		 const PRIVATE prologue_request *r)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;

	prologue_ask(job, r);
	if (s->groups == 1 || job->apart)
		return;
	prologue_ask_group(job->c4a_table, job->c4a_cols, s->c4a_columns,
			   s->c4a_page, s, r);
	prologue_ask_group(job->c128a_table, job->c128a_cols, s->c128a_columns,
			   s->c128a_page, s, r);
	prologue_ask_group(job->index_table, job->index_cols, s->index_columns,
			   s->index_page, s, r);
}

/* Places the request's queries: *start is their first token. Returns how many
 * there are in all. If these or the context are too many, there is no request.
 */
FN uint32_t
prologue_place(const PRIVATE prologue_job *job, PRIVATE prologue_state *st,
	       PRIVATE prologue_request *r, PRIVATE uint32_t *start)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;
	const uint32_t tokens = (1u << PROLOGUE_TOKEN_BITS) - 1u;
	uint32_t queries;
	uint64_t sum, total;

	sum = r->query > s->next_n.by ? PROLOGUE_TOO_LONG : r->query;
	if (r->query)
		sum |= (uint64_t)(r->seq < s->longest ? r->seq : s->longest)
		       << PROLOGUE_TOKEN_BITS;
	sum = g_scan_sum(sum, PROLOGUE_ITEMS, job->shared->sums, &total);
	*start = (uint32_t)sum & tokens;
	queries = (uint32_t)total & tokens;
	st->ok = st->ok && queries <= s->tokens &&
		 total >> PROLOGUE_TOKEN_BITS <= s->live;
	if (!st->ok) {
		*r = prologue_no_request();
		*start = queries = 0;
	}
	return queries;
}

/* The length of the item's request, and what items know of each other's. */
FN void
prologue_own_length(const PRIVATE prologue_job *job, PRIVATE prologue_state *st,
		    PRIVATE prologue_own *own)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;
	LOCAL prologue_shared *shared = job->shared;
	const uint32_t item = g_item();
	const prologue_request r = own->r;

	own->row = r.row < s->rows ? r.row : 0;
	own->len = 0;
	if (item < st->count && s->source == G_ADVANCE)
		own->len = prologue_moved(&st->notes, r.row, r.query,
					  (uint32_t)job->seq_lens[item],
					  job->advance_by[item], s->longest);
	else if (item < st->count)
		own->len = prologue_length(&st->notes, job->row_len, r.row,
					   r.query, r.seq, st->flags, s->rows,
					   s->longest);
	shared->ends[item] = own->start + r.query;
	shared->lens[item] = own->len;
	shared->rows[item] = own->row;
}

/* QUERY_START_LOC, SEQ_LENS and REQ_ROW, padded to the shape, and what the next
 * step may read of this one. */
FN void
prologue_write_own(const PRIVATE prologue_job *job,
		   const PRIVATE prologue_own *own)
{
	const uint32_t item = g_item();
	GLOBAL uint32_t *keep = job->kept + item * G_REQUEST_WORDS;

	if (item >= job->s.requests)
		return;
	job->seq_lens[item] = (int32_t)own->len;
	job->req_row[item] = (int32_t)own->row;
	job->query_start_loc[item + 1] = (int32_t)(own->start + own->r.query);
	keep[0] = own->r.row;
	keep[1] = own->r.query;
	keep[2] = own->r.seq;
	keep[3] = own->r.flags;
}

/* The request of token t, if that is one of `queries`, else 0. No request has
 * more than next_n tokens; if all have that many, nothing is searched for. */
FN uint32_t
prologue_request_of(const PRIVATE prologue_job *job, uint32_t t,
		    uint32_t queries)
{
	LOCAL const uint32_t *ends = job->shared->ends;
	uint32_t low;

	if (t >= queries)
		return 0;
	low = g_divide(t, job->s.next_n);
	return g_first_above(ends, low, ends[low] > t ? low : job->s.requests,
			     t);
}

/* Writes token t, and in the first turn `own`; returns the token's context. What
 * does not need the page is written while it is on its way. */
FN uint32_t
prologue_make_token(const PRIVATE prologue_job *job, PRIVATE prologue_state *st,
		    uint32_t t, uint32_t queries,
		    const PRIVATE prologue_own *own)
{
	LOCAL const prologue_shared *shared = job->shared;
	const uint32_t b = prologue_request_of(job, t, queries);
	const uint32_t is_query = t < queries;
	const uint32_t row = is_query ? shared->rows[b] : 0;
	const uint32_t len = is_query ? shared->lens[b] : 0;
	const uint32_t p = len ? len - (shared->ends[b] - t) : 0;
	const prologue_page page =
		prologue_find_page(job, len ? row : G_NO_ROW, p);
	uint32_t context = 0;
	int64_t place = -1;

	if (t < PROLOGUE_ITEMS)
		prologue_write_own(job, own);
	if (t < job->s.tokens) {
		job->req_id_per_token[t] = (int32_t)b;
		job->token_row[t] = (int32_t)row;
		job->positions[t] = (int32_t)p;
	}
	if (len)
		context =
			prologue_use_page(job, &st->notes, row, &page, &place);
	if (t < job->s.tokens) {
		job->context_lens[t] = (int32_t)context;
		job->slot_mapping[t] = place;
	}
	return context;
}

/* Places the logits of token t, `keys` of them, behind the *elems before it,
 * and the token on the line of costs, behind *costs. */
FN void
prologue_line_up(const PRIVATE prologue_job *job, uint32_t t, uint32_t keys,
		 PRIVATE uint64_t *elems, PRIVATE uint32_t *costs)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;
	LOCAL prologue_shared *shared = job->shared;
	const uint64_t align = SPMLA_LOGITS_ROW_ALIGN;
	const uint64_t low_bits = ((uint64_t)1 << PROLOGUE_LOGITS_BITS) - 1;
	const uint32_t is_cut =
		s->parts && t >= s->whole_tokens && t < s->tokens;
	uint64_t at = (keys + align - 1) / align, before, total;

	if (is_cut) {
		const uint32_t cost =
			decode_cut_blocks(keys, s->topk, 0, 1) +
			decode_cut_overhead(s->tokens - s->whole_tokens,
					    s->parts);

		at |= (uint64_t)cost << PROLOGUE_LOGITS_BITS;
	}
	before = g_scan_sum(at, PROLOGUE_ITEMS, shared->sums, &total);
	if (is_cut)
		decode_cut_token(&shared->cut, t - s->whole_tokens,
				 *costs + (uint32_t)((before + at) >>
						     PROLOGUE_LOGITS_BITS));
	at = *elems + (before & low_bits) * align;
	if (at > s->logits_capacity || keys > s->logits_capacity - at)
		shared->over = 1;
	if (t < s->tokens)
		job->logits_row_starts[t] = (int64_t)at;
	*elems += (total & low_bits) * align;
	*costs += (uint32_t)(total >> PROLOGUE_LOGITS_BITS);
}

/* All tokens, a thread each, and where their logits go. Sets shared->over if
 * some do not fit. A barrier at the end. */
FN void
prologue_tokens(const PRIVATE prologue_job *job, PRIVATE prologue_state *st,
		uint32_t queries, const PRIVATE prologue_own *own)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;
	uint64_t elems = 0;
	uint32_t costs = 0, first;

	NO_UNROLL
	for (first = 0; first < s->tokens; first += PROLOGUE_ITEMS) {
		const uint32_t t = first + g_item();
		uint32_t keys = prologue_make_token(job, st, t, queries, own);

		keys >>= s->index_shift;
		if (s->index_shift && !job->apart && t < s->tokens)
			job->compressed_lens[t] = (int32_t)keys;
		prologue_line_up(job, t, keys, &elems, &costs);
		prologue_report(&st->to, &st->notes);
	}
	if (g_item() == 0)
		job->logits_row_starts[s->tokens] =
			(int64_t)(elems < s->logits_capacity
					  ? elems
					  : s->logits_capacity);
	BARRIER();
}

/* If some logits do not fit, one thread walks over all and leaves those out. */
FN void
prologue_fit(const PRIVATE prologue_job *job, const PRIVATE prologue_state *st)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;

	if (job->shared->over && g_item() == 0)
		logits_rows_walk(
			&st->to, job->token_row, 1, prologue_index_lens(job),
			job->logits_row_starts, s->logits_capacity, s->tokens);
}

/* The requests of the step, up to the last barrier before its tokens. Returns
 * how many tokens there are. */
FN uint32_t
prologue_requests(const PRIVATE prologue_job *job, PRIVATE prologue_state *st,
		  PRIVATE prologue_own *own)
{
	const uint32_t item = g_item();
	PRIVATE prologue_request *r = &own->r;
	uint32_t queries, changed = 0;

	*r = prologue_no_request();
	if (job->s.source == G_FROM_RING && item < st->last &&
	    item < job->s.requests)
		*r = prologue_load(job->kept + item * G_REQUEST_WORDS);
	prologue_find(job, st, r);
	*r = prologue_own_request(job, st);
	if (job->s.source == G_FROM_RING && (r->flags & G_REQUEST_JOIN))
		job->shared->joins = 1;
	prologue_ask_all(job, r);
	queries = prologue_place(job, st, r, &own->start);
	prologue_refuse(job, st);
	prologue_let_go(job, st);
	if (prologue_changes(job, st)) {
		if (item < st->count)
			changed = prologue_forget(job, r->row, r->flags);
		changed |= prologue_store(job, st, job->shared->joins);
		if (job->apart && changed)
			g_fence_device(); /* before others are told */
	}
	prologue_own_length(job, st, own);
	prologue_publish(job, st);
	return queries;
}

FN void
prologue_narrow(const PRIVATE prologue_job *job)
{
	prologue_state st = prologue_begin(job);
	prologue_own own;
	const uint32_t queries = prologue_requests(job, &st, &own);

	prologue_tokens(job, &st, queries, &own);
	prologue_fit(job, &st);
	prologue_cut(job, job->shared->over);
	prologue_end(job, &st);
}

#endif
#endif
