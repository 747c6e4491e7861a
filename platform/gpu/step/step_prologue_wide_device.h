/* SPDX-License-Identifier: Apache-2.0
 *
 * The prologue of a step with more requests than threads, or of a prefill. It
 * calls the functions of the stand-alone ops in their order, and each finds in
 * memory what the last one left there. A phase loops over requests or tokens
 * and reports at once.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_WIDE_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_WIDE_DEVICE_H

#include "spmla/platform/gpu/step/logits_rows_kernel.h"
#include "spmla/platform/gpu/step/prefill_rows_kernel.h"
#include "spmla/platform/gpu/step/step_prologue_device.h"
#include "spmla/platform/gpu/step/token_map_kernel.h"

#ifdef SPMLA_GPU_KERNELS

/* Copies the requests to `kept`; an ADVANCE finds its requests there. A barrier
 * at the end. */
FN void
prologue_keep(const PRIVATE prologue_job *job, const PRIVATE prologue_state *st)
{
	const uint32_t words = st->ok ? st->count * G_REQUEST_WORDS : 0;
	uint32_t i;

	for (i = g_item(); i < words; i += PROLOGUE_ITEMS)
		if (job->s.source == G_FROM_RING)
			job->kept[i] = prologue_word(
				job->shared->staged, st->staged, st->slot,
				(uint64_t)G_RECORD_WORDS + i);
		else if (job->s.source == G_FROM_DEVICE)
			job->kept[i] =
				job->step_device[G_STEP_DEVICE_WORDS + i];
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

FN void
prologue_forget_all(const PRIVATE prologue_job *job,
		    const PRIVATE prologue_state *st)
{
	uint32_t b;

	for (b = g_item(); b < st->count; b += PROLOGUE_ITEMS) {
		GLOBAL const uint32_t *r = job->kept + b * G_REQUEST_WORDS;

		(void)prologue_forget(job, r[0], r[3]);
	}
}

/* SEQ_LENS of an ADVANCE, whose other lists stand, and their padding. */
FN void
prologue_advance_all(const PRIVATE prologue_job *job,
		     PRIVATE prologue_state *st)
{
	uint32_t b, i;

	for (b = g_item(); b < job->s.requests; b += PROLOGUE_ITEMS) {
		GLOBAL uint32_t *r = job->kept + b * G_REQUEST_WORDS;

		if (b < st->count) {
			job->seq_lens[b] = (int32_t)prologue_moved(
				&st->notes, r[0], r[1],
				(uint32_t)job->seq_lens[b], job->advance_by[b],
				job->s.longest);
			prologue_report(&st->to, &st->notes);
			continue;
		}
		for (i = 0; i < G_REQUEST_WORDS; i++)
			r[i] = 0;
		job->seq_lens[b] = 0;
		job->req_row[b] = 0;
		job->query_start_loc[b + 1] =
			st->count ? job->query_start_loc[st->count] : 0;
	}
}

/* QUERY_START_LOC, SEQ_LENS and REQ_ROW of another step, padded to the
 * shape. */
FN void
prologue_lengths(const PRIVATE prologue_job *job, PRIVATE prologue_state *st)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;
	uint64_t before = 0;
	uint32_t first, i;

	for (first = 0; first < s->requests; first += PROLOGUE_ITEMS) {
		const uint32_t b = first + g_item(), in = b < st->count;
		GLOBAL uint32_t *r = job->kept + b * G_REQUEST_WORDS;
		const uint32_t row = in ? r[0] : 0, query = in ? r[1] : 0;
		uint64_t total;
		const uint64_t own =
			before + g_scan_sum(query, PROLOGUE_ITEMS,
					    job->shared->sums, &total);

		if (b < s->requests) {
			job->seq_lens[b] =
				in ? (int32_t)prologue_length(
					     &st->notes, job->row_len, row,
					     query, r[2], st->flags, s->rows,
					     s->longest)
				   : 0;
			prologue_report(&st->to, &st->notes);
			job->req_row[b] = row < s->rows ? (int32_t)row : 0;
			job->query_start_loc[b + 1] = (int32_t)(own + query);
			for (i = 0; !in && i < G_REQUEST_WORDS; i++)
				r[i] = 0;
		}
		before += total;
	}
}

/* The slots of tokens that token_map has placed. A barrier at both ends. */
FN void
prologue_slots(const PRIVATE prologue_job *job, PRIVATE prologue_state *st)
{
	uint32_t t;

	BARRIER();
	for (t = g_item(); t < job->s.tokens; t += PROLOGUE_ITEMS) {
		int64_t place = -1;

		if (job->context_lens[t] > 0) {
			const uint32_t row = (uint32_t)job->token_row[t];
			const prologue_page p = prologue_find_page(
				job, row, (uint32_t)job->positions[t]);

			job->context_lens[t] = (int32_t)prologue_use_page(
				job, &st->notes, row, &p, &place);
		}
		prologue_report(&st->to, &st->notes);
		job->slot_mapping[t] = place;
		if (job->s.index_shift)
			job->compressed_lens[t] =
				job->context_lens[t] >> job->s.index_shift;
	}
	BARRIER();
}

/* Where V4's index logits go in a prefill: the tokens of a piece have their
 * logits side by side. */
FN void
prologue_pieces(const PRIVATE prologue_job *job,
		const PRIVATE prologue_state *st)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;
	uint32_t t;

	for (t = g_item(); t < s->tokens; t += PROLOGUE_ITEMS) {
		job->piece_row_starts[t] =
			(int64_t)(t % s->piece_tokens * s->piece_stride);
		/* An ADVANCE may go past the workspace. */
		if ((uint64_t)job->compressed_lens[t] > s->piece_stride) {
			g_report(&st->to, (uint32_t)job->token_row[t],
				 G_FAULT_LOGITS);
			job->compressed_lens[t] = 0;
		}
	}
}

FN void
prologue_wide(const PRIVATE prologue_job *job)
{
	const PRIVATE spmla_k_step_prologue_scalars *s = &job->s;
	LOCAL prologue_shared *shared = job->shared;
	const prologue_request none = prologue_no_request();
	prologue_state st = prologue_begin(job);

	prologue_find(job, &st, &none);
	prologue_keep(job, &st);
	st.ok = st.ok &&
		prologue_fits(job->kept, st.count, s->tokens, s->next_n.by,
			      s->live, s->longest, shared->sums);
	prologue_refuse(job, &st);
	prologue_let_go(job, &st);
	if (prologue_changes(job, &st)) {
		prologue_forget_all(job, &st);
		(void)prologue_store(job, &st, 1);
	}
	if (s->source == G_ADVANCE && st.ok)
		prologue_advance_all(job, &st);
	else
		prologue_lengths(job, &st);
	prologue_publish(job, &st);
	token_map_block(&st.to, job->query_start_loc, job->seq_lens,
			job->req_row, job->req_id_per_token, job->token_row,
			job->positions, job->context_lens, s->requests,
			s->tokens, PROLOGUE_ITEMS, shared->ends, shared->sums);
	prologue_slots(job, &st);
	if (!s->piece_tokens)
		logits_rows_block(&st.to, job->token_row, 1,
				  prologue_index_lens(job),
				  job->logits_row_starts, s->logits_capacity,
				  s->tokens, PROLOGUE_ITEMS, shared->sums);
	else if (s->index_shift)
		prologue_pieces(job, &st);
	else
		prefill_rows_block(
			&st.to, job->query_start_loc, job->seq_lens,
			job->req_row, job->req_id_per_token, job->context_lens,
			job->workspace_starts, job->key_starts, job->key_ends,
			job->piece_row_starts, s->requests, s->tokens, s->live,
			s->piece_tokens, s->piece_stride, PROLOGUE_ITEMS,
			shared->sums);
	prologue_cut(job, 1);
	prologue_end(job, &st);
}

#endif
#endif
