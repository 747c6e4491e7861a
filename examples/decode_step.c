/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of the loop, from the record to the device's status.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "examples/decode_loop.h"
#include "examples/device.h"

int
loop_failed(const spmla_ctx *ctx, const char *call)
{
	char text[256];

	spmla_diag_text(spmla_ctx_diag(ctx), text, sizeof text);
	fprintf(stderr, PROGRAM ": %s: %s\n", call, text);
	return EXIT_FAILED;
}

static spmla_status
write_row(const page_table *t, uint32_t row, spmla_ctx *ctx)
{
	static const spmla_buf staging_of[SPMLA_V4_GROUPS] = {
		SPMLA_BUF_TABLE_STAGING,
		SPMLA_BUF_TABLE_STAGING_C4A,
		SPMLA_BUF_TABLE_STAGING_C128A,
		SPMLA_BUF_TABLE_STAGING_INDEX,
		SPMLA_BUF_TABLE_STAGING_STATE_C4A,
		SPMLA_BUF_TABLE_STAGING_STATE_C128A,
		SPMLA_BUF_TABLE_STAGING_STATE_INDEX,
	};
	int32_t *staging = spmla_view(ctx, staging_of[t->group], NULL);
	const uint64_t at = (uint64_t)row * t->columns;
	const uint32_t count = (uint32_t)t->cols[row];

	memcpy(staging + at, t->pages + at, count * sizeof *staging);
	return spmla_table_write(ctx, t->group, row, 0, count, device_stream());
}

spmla_status
loop_write_bulk(const batch *b, spmla_ctx *ctx)
{
	spmla_status s = SPMLA_OK;
	uint32_t i, k;

	for (i = 0; i < b->bulk_count; i++)
		for (k = 0; k < b->table_count && s == SPMLA_OK; k++)
			s = write_row(&b->tables[k], b->bulk[i], ctx);
	return s;
}

/* A full ring: an engine would wait for the oldest step's event. */
static spmla_status
push(loop *l, uint64_t *ticket)
{
	spmla_status s = spmla_step_push(l->ctx, l->record, ticket);

	if (s != SPMLA_E_RING_FULL)
		return s;
	l->report.ring_full++;
	device_wait();
	return spmla_step_push(l->ctx, l->record, ticket);
}

int
loop_write(loop *l, spmla_step_info *info, uint64_t *ticket)
{
	spmla_diag diag = SPMLA_DIAG_INIT;
	const uint64_t start = report_now_ns();
	uint64_t encoded;
	char text[256];
	spmla_status s;

	s = spmla_step_encode(&l->plan, &l->batch.step, l->record,
			      l->plan.record_bytes, info, &diag);
	if (s != SPMLA_OK) {
		spmla_diag_text(&diag, text, sizeof text);
		fprintf(stderr, PROGRAM ": spmla_step_encode: %s\n", text);
		return EXIT_FAILED;
	}
	encoded = report_now_ns();
	s = push(l, ticket);
	if (s != SPMLA_OK)
		return loop_failed(l->ctx, "spmla_step_push");
	l->report.ns[TIMING_ENCODE][l->report.steps] = encoded - start;
	l->report.ns[TIMING_PUSH][l->report.steps] = report_now_ns() - encoded;
	return EXIT_GOOD;
}

/* Takes the step back and writes it again, like an engine that changes its mind
 * before the launch. */
static int
write_again(loop *l, spmla_step_info *info, uint64_t *ticket)
{
	const spmla_status s = spmla_step_undo(l->ctx, *ticket);

	if (s != SPMLA_OK)
		return loop_failed(l->ctx, "spmla_step_undo");
	l->report.undone++;
	return loop_write(l, info, ticket);
}

/* The shape of the graph that takes the step, or the step's own if it is one of
 * prompts, which no graph takes. */
static spmla_shape
shape_of(const loop *l, const spmla_step_info *info)
{
	const spmla_shape own = {info->tokens, info->requests, info->next_n,
				 info->live_context};

	return info->bucket == SPMLA_BUCKET_PREFILL
		       ? own
		       : l->plan.config.buckets[info->bucket];
}

static spmla_status
run_prompts(loop *l, const spmla_shape *shape)
{
	const spmla_status s = spmla_step_prologue(
		l->ctx, shape, SPMLA_FROM_RING, device_stream());

	l->report.prefill.chunks++;
	l->report.prefill.tokens += shape->tokens;
	return s == SPMLA_OK ? l->calls->record(l, shape) : s;
}

static int
launch(loop *l, uint64_t ticket, const spmla_step_info *info,
       const spmla_shape *shape)
{
	report *r = &l->report;
	const uint32_t prompts = info->bucket == SPMLA_BUCKET_PREFILL;
	const uint64_t start = report_now_ns();
	const spmla_status s =
		prompts ? run_prompts(l, shape)
			: spmla_graph_replay(l->ctx, l->graphs[info->bucket],
					     ticket, device_queue());

	r->ns[TIMING_LAUNCH][r->steps] = report_now_ns() - start;
	r->ns[TIMING_STEP][r->steps] = r->ns[TIMING_ENCODE][r->steps] +
				       r->ns[TIMING_PUSH][r->steps] +
				       r->ns[TIMING_LAUNCH][r->steps];
	r->bucket[r->steps] = info->bucket;
	r->active[r->steps] = l->batch.active_count;
	return s == SPMLA_OK ? EXIT_GOOD
			     : loop_failed(l->ctx, "spmla_graph_replay");
}

void
loop_read_status(loop *l, spmla_ctx *ctx, uint32_t step)
{
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	report *r = &l->report;

	if (spmla_status_read(ctx, &status) != SPMLA_OK || status.count == 0)
		return;
	printf("step %" PRIu32 ": %" PRIu32 " faults, first %s in row %" PRIu32
	       "\n",
	       step, status.count, spmla_fault_name(status.fault), status.row);
	if (status.fault == SPMLA_FAULT_TICKET_MISSING)
		r->missing += status.count;
	else if (status.fault == SPMLA_FAULT_TOO_LARGE)
		r->too_large += status.count;
	else
		r->other_faults += status.count;
	(void)spmla_status_clear(ctx);
}

static int
is_due(uint32_t every, uint32_t step)
{
	return every != 0 && step % every == every - 1;
}

/* The first step is checked too: a trace may be short. */
int
loop_check_is_due(const loop *l, uint32_t step)
{
	return is_due(l->check_every, step) || (step == 0 && l->check_every);
}

int
loop_step(loop *l, uint32_t step)
{
	const int checked = loop_check_is_due(l, step);
	const int again = is_due(l->undo_every, step);
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	spmla_shape shape;
	uint64_t ticket = 0;
	int end;

	end = l->calls->before(l, checked);
	if (end != EXIT_GOOD)
		return end;
	if (loop_write_bulk(&l->batch, l->ctx) != SPMLA_OK)
		return loop_failed(l->ctx, "spmla_table_write");
	end = loop_write(l, &info, &ticket);
	if (end == EXIT_GOOD && again)
		end = write_again(l, &info, &ticket);
	if (end != EXIT_GOOD)
		return end;
	l->calls->fill(l);
	shape = shape_of(l, &info);
	end = launch(l, ticket, &info, &shape);
	/* The next step's tensors take the place of these. */
	device_wait();
	if (end == EXIT_GOOD)
		end = l->calls->after(l, step, &shape, checked);
	loop_read_status(l, l->ctx, step);
	return end;
}
