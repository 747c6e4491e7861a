/* SPDX-License-Identifier: Apache-2.0
 *
 * The step prologue on the CPU: takes the next record, applies its table
 * stores, tells the host that the slot is free, and derives the step's buffers,
 * first of the requests and then of the tokens (step_tokens_cpu.h). The hard
 * idea: it never trusts what it reads. A record that is missing, too large or
 * wrong gives an empty step or empty rows, never a stray access.
 */
#include "spmla/internal/config.h"
#include "spmla/platform/cpu/step/step_tokens_cpu.h"
#include "spmla/platform/cpu/step/table_cpu.h"

/* The source of a step's requests. */
typedef struct input {
	const spmla_request *requests;
	uint32_t count;
	uint32_t flags; /* spmla_step_flag bits */
} input;

static spmla_i_step_state *
state_of(const spmla_ctx *ctx)
{
	return ctx->buf[SPMLA_BUF_STEP_STATE];
}

/* Whether the requests fit the shape, by their own numbers. A length that no
 * sequence can have skips its row (length_of), not the step. */
static uint32_t
fits(const spmla_ctx *ctx, const input *in, const spmla_step_prologue_args *a)
{
	const uint32_t longest = ctx->plan.config.max_context_tokens;
	uint64_t tokens = 0, live = 0;
	uint32_t b;

	if (in->count > a->shape.requests)
		return 0;
	for (b = 0; b < in->count; b++) {
		const spmla_request *r = &in->requests[b];

		if (r->query_tokens > a->shape.next_n)
			return 0;
		tokens += r->query_tokens;
		if (r->query_tokens > 0)
			live += r->seq_len_tokens < longest ? r->seq_len_tokens
							    : longest;
	}
	return tokens <= a->shape.tokens && live <= a->shape.max_live_context;
}

/* The length of request r, or 0 if it is to be skipped. */
static uint32_t
length_of(spmla_ctx *ctx, const spmla_request *r, uint32_t flags)
{
	const int32_t *row_len = ctx->buf[SPMLA_BUF_ROW_LEN];
	const uint32_t bound =
		r->seq_len_tokens < ctx->plan.config.max_context_tokens
			? r->seq_len_tokens
			: ctx->plan.config.max_context_tokens;
	uint32_t len = r->seq_len_tokens;

	if (r->row >= ctx->plan.config.max_rows) {
		spmla_i_cpu_fault(ctx, r->row, SPMLA_FAULT_ROW);
		return 0;
	}
	if (flags & SPMLA_STEP_LENS_ON_DEVICE)
		len = (uint32_t)row_len[r->row]; /* negative: above any bound */
	if (len > bound || len < r->query_tokens) {
		spmla_i_cpu_fault(ctx, r->row, SPMLA_FAULT_LENGTH);
		return 0;
	}
	return len;
}

/* Forgets the columns of rows that join. */
static void
join_rows(spmla_ctx *ctx, const input *in)
{
	uint32_t b;

	for (b = 0; b < in->count; b++)
		if ((in->requests[b].flags & SPMLA_REQUEST_JOIN) &&
		    in->requests[b].row < ctx->plan.config.max_rows)
			spmla_i_cpu_table_join(ctx, in->requests[b].row);
}

/* Applies a record's stores; a store outside the table is skipped. */
static void
apply_stores(spmla_ctx *ctx, const spmla_i_record *record)
{
	const spmla_i_store *stores =
		(const spmla_i_store *)((const spmla_request *)(record + 1) +
					record->requests);
	const int32_t *pages = (const int32_t *)(stores + record->stores);
	uint32_t i;

	for (i = 0; i < record->stores; i++) {
		const spmla_i_store *t = &stores[i];
		const uint32_t row = t->group_row & 0xffffffu;
		const uint32_t group = t->group_row >> 24;
		const uint32_t columns =
			group < SPMLA_MAX_TABLE_GROUPS &&
					ctx->buf[spmla_i_block_table(group)]
				? ctx->plan.group_columns[group]
				: 0;

		if (row < ctx->plan.config.max_rows && columns &&
		    t->count <= columns && t->first_col <= columns - t->count &&
		    t->count <= record->pages &&
		    t->first_page <= record->pages - t->count)
			spmla_i_cpu_table_store(ctx, group, row, t->first_col,
						t->count,
						pages + t->first_page);
		else
			spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_ROW);
	}
}

/* Makes QUERY_START_LOC, SEQ_LENS and REQ_ROW of a step, padded to the shape.
 */
static void
derive_requests(spmla_ctx *ctx, const input *in,
		const spmla_step_prologue_args *a)
{
	spmla_i_step_state *state = state_of(ctx);
	spmla_request *kept = ctx->buf[SPMLA_BUF_STEP_REQUESTS];
	int32_t *start = ctx->buf[SPMLA_BUF_QUERY_START_LOC];
	int32_t *lens = ctx->buf[SPMLA_BUF_SEQ_LENS];
	int32_t *rows = ctx->buf[SPMLA_BUF_REQ_ROW];
	uint32_t b;

	start[0] = 0;
	for (b = 0; b < a->shape.requests; b++) {
		static const spmla_request none = {0, 0, 0, 0};
		const spmla_request r = b < in->count ? in->requests[b] : none;

		lens[b] = b < in->count ? (int32_t)length_of(ctx, &r, in->flags)
					: 0;
		rows[b] =
			r.row < ctx->plan.config.max_rows ? (int32_t)r.row : 0;
		start[b + 1] = start[b] + (int32_t)r.query_tokens;
		kept[b] = r;
	}
	state->requests = in->count;
	spmla_i_cpu_step_tokens(ctx, a);
}

static void
empty_step(spmla_ctx *ctx, const spmla_step_prologue_args *a, spmla_fault fault)
{
	static const input nothing = {NULL, 0, 0};

	spmla_i_cpu_fault(ctx, SPMLA_NO_INDEX, fault);
	derive_requests(ctx, &nothing, a);
}

static void
consume(spmla_ctx *ctx, uint64_t ticket)
{
	spmla_i_store_u64(ctx->buf[SPMLA_BUF_RING_CONSUMED], ticket);
}

/* Checks that a record's lists lie inside it. */
static uint32_t
record_is_whole(const spmla_ctx *ctx, const spmla_i_record *r)
{
	const uint64_t need = sizeof *r +
			      (uint64_t)r->requests * sizeof(spmla_request) +
			      (uint64_t)r->stores * sizeof(spmla_i_store) +
			      (uint64_t)r->pages * sizeof(int32_t);

	return need <= ctx->plan.record_bytes;
}

static void
from_ring(spmla_ctx *ctx, const spmla_step_prologue_args *a)
{
	spmla_i_step_state *state = state_of(ctx);
	const uint64_t ticket = state->done + 1;
	const spmla_i_record *record = spmla_i_slot(ctx, ticket);
	spmla_request *kept = ctx->buf[SPMLA_BUF_STEP_REQUESTS];
	input in;

	state->step = ticket;
	if (spmla_i_load_u64(&record->ticket) != ticket) {
		empty_step(ctx, a, SPMLA_FAULT_TICKET_MISSING);
		return;
	}
	in.requests = (const spmla_request *)(record + 1);
	in.count = record->requests;
	in.flags = record->flags;
	if (!record_is_whole(ctx, record) || !fits(ctx, &in, a)) {
		consume(ctx, ticket);
		empty_step(ctx, a, SPMLA_FAULT_TOO_LARGE);
	} else {
		/* The slot may be overwritten once it is consumed. */
		memcpy(kept, in.requests, in.count * sizeof *kept);
		in.requests = kept;
		join_rows(ctx, &in);
		apply_stores(ctx, record);
		consume(ctx, ticket);
		derive_requests(ctx, &in, a);
	}
	state->done = ticket;
}

static void
from_device(spmla_ctx *ctx, const spmla_step_prologue_args *a)
{
	const spmla_step_device *step = ctx->buf[SPMLA_BUF_STEP_DEVICE];
	const input in = {(const spmla_request *)(step + 1), step->requests,
			  step->flags};

	state_of(ctx)->step = state_of(ctx)->done;
	if (!fits(ctx, &in, a)) {
		empty_step(ctx, a, SPMLA_FAULT_TOO_LARGE);
		return;
	}
	derive_requests(ctx, &in, a);
}

/* The shape may be larger than the step: the rest is padding. */
static void
pad_requests(spmla_ctx *ctx, const spmla_step_prologue_args *a)
{
	static const spmla_request none = {0, 0, 0, 0};
	const spmla_i_step_state *state = state_of(ctx);
	spmla_request *kept = ctx->buf[SPMLA_BUF_STEP_REQUESTS];
	int32_t *start = ctx->buf[SPMLA_BUF_QUERY_START_LOC];
	int32_t *lens = ctx->buf[SPMLA_BUF_SEQ_LENS];
	int32_t *rows = ctx->buf[SPMLA_BUF_REQ_ROW];
	uint32_t b;

	start[0] = 0;
	for (b = state->requests; b < a->shape.requests; b++) {
		kept[b] = none;
		lens[b] = 0;
		rows[b] = 0;
		start[b + 1] = start[b];
	}
}

/* Moves the lengths of the rows in the step; everything else follows from them.
 */
static void
advance(spmla_ctx *ctx, const spmla_step_prologue_args *a)
{
	const spmla_i_step_state *state = state_of(ctx);
	const spmla_request *kept = ctx->buf[SPMLA_BUF_STEP_REQUESTS];
	const int32_t *by = ctx->buf[SPMLA_BUF_ADVANCE_BY];
	int32_t *lens = ctx->buf[SPMLA_BUF_SEQ_LENS];
	const input in = {kept, state->requests, 0};
	uint32_t b;

	if (!fits(ctx, &in, a)) {
		empty_step(ctx, a, SPMLA_FAULT_TOO_LARGE);
		return;
	}
	for (b = 0; b < state->requests; b++) {
		const int64_t len = (int64_t)lens[b] + by[b];

		if (kept[b].query_tokens == 0 || lens[b] == 0)
			continue;
		if (len < (int64_t)kept[b].query_tokens ||
		    len > (int64_t)ctx->plan.config.max_context_tokens) {
			spmla_i_cpu_fault(ctx, kept[b].row, SPMLA_FAULT_LENGTH);
			lens[b] = 0;
		} else {
			lens[b] = (int32_t)len;
		}
	}
	pad_requests(ctx, a);
	spmla_i_cpu_step_tokens(ctx, a);
}

void
spmla_i_cpu_step_prologue(spmla_ctx *ctx, const void *args)
{
	const spmla_step_prologue_args *a = args;

	state_of(ctx)->serial++;
	switch ((spmla_source)a->source) {
	case SPMLA_FROM_RING:
		from_ring(ctx, a);
		break;
	case SPMLA_FROM_DEVICE:
		from_device(ctx, a);
		break;
	default:
		advance(ctx, a);
	}
}
