/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of the loop, from the record to the device's status.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "examples/decode_loop.h"
#include "examples/device.h"

/* Prints why the context's last call failed. */
int
loop_failed(const loop *l, const char *call)
{
	char text[256];

	spmla_diag_text(spmla_ctx_diag(l->ctx), text, sizeof text);
	fprintf(stderr, PROGRAM ": %s: %s\n", call, text);
	return EXIT_FAILED;
}

/* Rows of the table that are too long for a record. */
static spmla_status
write_bulk_rows(loop *l)
{
	const batch *b = &l->batch;
	int32_t *staging = spmla_view(l->ctx, SPMLA_BUF_TABLE_STAGING, NULL);
	spmla_status s = SPMLA_OK;
	uint32_t i;

	for (i = 0; i < b->bulk_count && s == SPMLA_OK; i++) {
		const uint32_t row = b->bulk[i];
		const uint64_t at = (uint64_t)row * b->columns;
		const uint32_t count = (uint32_t)b->table_cols[row];

		memcpy(staging + at, b->table + at, count * sizeof *staging);
		s = spmla_table_write(l->ctx, SPMLA_GROUP_MAIN, row, 0, count,
				      device_stream());
	}
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
		return loop_failed(l, "spmla_step_push");
	l->report.ns[TIMING_ENCODE][l->report.steps] = encoded - start;
	l->report.ns[TIMING_PUSH][l->report.steps] = report_now_ns() - encoded;
	return EXIT_GOOD;
}

/* Takes the step back and writes it anew, as an engine that changes its mind
 * before the launch. */
static int
write_again(loop *l, spmla_step_info *info, uint64_t *ticket)
{
	const spmla_status s = spmla_step_undo(l->ctx, *ticket);

	if (s != SPMLA_OK)
		return loop_failed(l, "spmla_step_undo");
	l->report.undone++;
	return loop_write(l, info, ticket);
}

static int
launch(loop *l, uint64_t ticket, uint32_t bucket)
{
	report *r = &l->report;
	const uint64_t start = report_now_ns();
	const spmla_status s = spmla_graph_replay(
		l->ctx, l->model.graphs[bucket], ticket, device_stream());

	r->ns[TIMING_LAUNCH][r->steps] = report_now_ns() - start;
	r->ns[TIMING_STEP][r->steps] = r->ns[TIMING_ENCODE][r->steps] +
				       r->ns[TIMING_PUSH][r->steps] +
				       r->ns[TIMING_LAUNCH][r->steps];
	r->replays[bucket]++;
	return s == SPMLA_OK ? EXIT_GOOD : loop_failed(l, "spmla_graph_replay");
}

void
loop_read_status(loop *l, uint32_t step)
{
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	report *r = &l->report;

	if (spmla_status_read(l->ctx, &status) != SPMLA_OK || status.count == 0)
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
	(void)spmla_status_clear(l->ctx);
}

static int
run_checks(loop *l, uint32_t step, uint32_t bucket)
{
	if (eager_after(&l->eager, step, bucket) != SPMLA_OK)
		return loop_failed(l, "the eager step");
	reference_after(l->reference, step,
			l->plan.config.buckets[bucket].tokens);
	return EXIT_GOOD;
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
	uint64_t ticket = 0;
	int end;

	if (checked)
		eager_before(&l->eager);
	if (write_bulk_rows(l) != SPMLA_OK)
		return loop_failed(l, "spmla_table_write");
	end = loop_write(l, &info, &ticket);
	if (end == EXIT_GOOD && again)
		end = write_again(l, &info, &ticket);
	if (end != EXIT_GOOD)
		return end;
	model_fill(&l->model, l->batch.tokens, l->batch.token_count);
	end = launch(l, ticket, info.bucket);
	/* The next step's tensors take the place of these. */
	device_wait();
	if (end == EXIT_GOOD && l->reference)
		reference_table(l->reference);
	if (end == EXIT_GOOD && checked)
		end = run_checks(l, step, info.bucket);
	loop_read_status(l, step);
	return end;
}
