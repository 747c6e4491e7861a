/* SPDX-License-Identifier: Apache-2.0
 *
 * See step_rig.h: the model of a step's buffers.
 */
#include "tests/harness/step_rig.h"

#include <check.h>
#include <string.h>

void
model_open(step_model *m, const fixture *f)
{
	const spmla_config *c = &f->plan.config;
	const spmla_table_config *g = &c->groups[SPMLA_GROUP_MAIN];

	memset(m, 0, sizeof *m);
	ck_assert_int_eq(ref_table_open(&m->table, c->max_rows, f->plan.columns,
					g->page_tokens, g->pool_pages),
			 1);
	m->is_own = g->source == SPMLA_TABLE_RING;
	m->max_context = c->max_context_tokens;
	m->logits_elems = f->plan.logits_elems;
}

void
model_close(step_model *m)
{
	ref_table_close(&m->table);
}

static void
report(step_model *m, uint32_t row, uint32_t fault)
{
	const uint64_t key = (uint64_t)row << 32 | fault;
	const uint64_t least = (uint64_t)m->fault_row << 32 | m->fault;

	if (m->faults == 0 || key < least) {
		m->fault_row = row;
		m->fault = fault;
	}
	m->faults++;
}

void
model_empty(step_model *m, uint32_t fault)
{
	m->requests = 0;
	memset(m->request, 0, sizeof m->request);
	memset(m->len, 0, sizeof m->len);
	if (fault != SPMLA_FAULT_NONE)
		report(m, SPMLA_NO_INDEX, fault);
}

/* Lengths of a step that fits. */
static void
take_requests(step_model *m, const draft *d)
{
	uint32_t b;

	model_empty(m, SPMLA_FAULT_NONE);
	m->requests = d->request_count;
	for (b = 0; b < d->request_count; b++) {
		const spmla_request *r = &d->requests[b];
		int64_t len = r->seq_len_tokens;

		m->request[b] = *r;
		if (r->row >= m->table.rows) {
			report(m, r->row, SPMLA_FAULT_ROW);
			continue;
		}
		if (d->flags & SPMLA_STEP_LENS_ON_DEVICE)
			len = m->row_len[r->row];
		if (len < 0 || len > r->seq_len_tokens ||
		    len > m->max_context || len < r->query_tokens)
			report(m, r->row, SPMLA_FAULT_LENGTH);
		else
			m->len[b] = (int32_t)len;
	}
}

void
model_record(step_model *m, const draft *d, const spmla_shape *shape)
{
	const int32_t *pages = d->pages;
	uint32_t i;

	if (!draft_fits(d, shape)) {
		model_empty(m, SPMLA_FAULT_TOO_LARGE);
		return;
	}
	take_requests(m, d);
	for (i = 0; i < d->request_count; i++)
		if (d->requests[i].flags & SPMLA_REQUEST_JOIN)
			ref_table_join(&m->table, d->requests[i].row);
	for (i = 0; i < d->store_count; i++) {
		const spmla_table_store *t = &d->stores[i];

		ck_assert_int_eq(ref_table_store(&m->table, t->row,
						 t->first_col, t->count, pages),
				 1);
		pages += t->count;
	}
}

void
model_device(step_model *m, const draft *d, const spmla_shape *shape)
{
	if (draft_fits(d, shape))
		take_requests(m, d);
	else
		model_empty(m, SPMLA_FAULT_TOO_LARGE);
}

void
model_advance(step_model *m, const int32_t *by, const spmla_shape *shape)
{
	draft d;
	uint32_t b;

	draft_clear(&d);
	for (b = 0; b < m->requests; b++)
		d.requests[d.request_count++] = m->request[b];
	if (!draft_fits(&d, shape)) {
		model_empty(m, SPMLA_FAULT_TOO_LARGE);
		return;
	}
	for (b = 0; b < m->requests; b++) {
		const int64_t len = (int64_t)m->len[b] + by[b];
		const spmla_request *r = &m->request[b];

		if (m->len[b] == 0 || r->query_tokens == 0)
			continue;
		if (len >= r->query_tokens && len <= m->max_context) {
			m->len[b] = (int32_t)len;
			continue;
		}
		m->len[b] = 0;
		report(m, r->row, SPMLA_FAULT_LENGTH);
	}
}

/* The expected contents of the buffers. */
typedef struct expected {
	int32_t start[RIG_REQUESTS + 1];
	int32_t lens[RIG_REQUESTS];
	int32_t row[RIG_REQUESTS];
	int32_t req_id[RIG_TOKENS];
	int32_t token_row[RIG_TOKENS];
	int32_t position[RIG_TOKENS];
	int32_t context[RIG_TOKENS];
	int64_t slot[RIG_TOKENS];
	int64_t logits[RIG_TOKENS + 1];
} expected;

static void
expect_token(step_model *m, expected *e, uint32_t t, uint32_t b, uint32_t j)
{
	const spmla_request *r = &m->request[b];
	const uint32_t pos = (uint32_t)m->len[b] - r->query_tokens + j;

	e->req_id[t] = (int32_t)b;
	e->token_row[t] = e->row[b];
	if (m->len[b] == 0)
		return;
	e->position[t] = (int32_t)pos;
	e->context[t] = (int32_t)pos + 1;
	e->slot[t] = ref_table_slot(&m->table, r->row, pos);
	if (m->is_own &&
	    pos / m->table.page_tokens >= ref_table_written(&m->table, r->row))
		e->slot[t] = -1;
	if (e->slot[t] >= 0)
		return;
	e->context[t] = 0;
	report(m, r->row, SPMLA_FAULT_PAGE);
}

static void
expect_logits(step_model *m, expected *e, uint32_t tokens)
{
	uint64_t room = m->logits_elems;
	uint32_t t;

	for (t = 0; t < tokens; t++) {
		const uint64_t len = (uint64_t)e->context[t];
		const uint64_t whole = (len + 255) / 256 * 256;

		e->logits[t] = (int64_t)(m->logits_elems - room);
		if (len > room) {
			e->context[t] = 0;
			report(m, (uint32_t)e->token_row[t],
			       SPMLA_FAULT_LOGITS);
		} else {
			room -= whole < room ? whole : room;
		}
	}
	e->logits[tokens] = (int64_t)(m->logits_elems - room);
}

static void
expect_all(step_model *m, expected *e, const spmla_shape *shape)
{
	uint32_t t = 0, b, j;

	memset(e, 0, sizeof *e);
	for (b = 0; b < RIG_TOKENS; b++)
		e->slot[b] = -1;
	for (b = 0; b < shape->requests; b++) {
		const spmla_request *r = &m->request[b];

		e->start[b] = (int32_t)t;
		if (b < m->requests && r->row < m->table.rows)
			e->row[b] = (int32_t)r->row;
		e->lens[b] = m->len[b];
		for (j = 0; j < r->query_tokens; j++)
			expect_token(m, e, t++, b, j);
	}
	e->start[b] = (int32_t)t;
	expect_logits(m, e, shape->tokens);
}

#define CHECK_BUFFER(f, buf, want, n) \
	check_buffer(f, SPMLA_BUF_##buf, #buf, want, n, sizeof *(want))

static void
check_buffer(const fixture *f, spmla_buf buf, const char *name,
	     const void *want, uint32_t n, uint64_t elem_bytes)
{
	uint64_t bytes;
	const uint8_t *got = spmla_view(f->ctx, buf, &bytes);
	uint32_t i;

	ck_assert_uint_ge(bytes, n * elem_bytes);
	for (i = 0; i < n; i++)
		if (memcmp(got + i * elem_bytes,
			   (const uint8_t *)want + i * elem_bytes,
			   elem_bytes) != 0)
			ck_abort_msg("%s[%u]: got %d, want %d", name, i,
				     *(const int32_t *)(got + i * elem_bytes),
				     *(const int32_t *)((const uint8_t *)want +
							i * elem_bytes));
}

static void
check_buffers(step_model *m, fixture *f, const spmla_shape *shape)
{
	expected e;

	expect_all(m, &e, shape);
	CHECK_BUFFER(f, STEP_REQUESTS, m->request, shape->requests);
	CHECK_BUFFER(f, QUERY_START_LOC, e.start, shape->requests + 1);
	CHECK_BUFFER(f, SEQ_LENS, e.lens, shape->requests);
	CHECK_BUFFER(f, REQ_ROW, e.row, shape->requests);
	CHECK_BUFFER(f, REQ_ID_PER_TOKEN, e.req_id, shape->tokens);
	CHECK_BUFFER(f, TOKEN_ROW, e.token_row, shape->tokens);
	CHECK_BUFFER(f, POSITIONS, e.position, shape->tokens);
	CHECK_BUFFER(f, CONTEXT_LENS, e.context, shape->tokens);
	CHECK_BUFFER(f, SLOT_MAPPING, e.slot, shape->tokens);
	CHECK_BUFFER(f, LOGITS_ROW_STARTS, e.logits, shape->tokens + 1);
}

void
model_check(step_model *m, fixture *f, const spmla_shape *shape)
{
	spmla_device_status status;

	check_buffers(m, f, shape);
	status = fixture_status(f);
	ck_assert_uint_eq(status.count, m->faults);
	if (m->faults) {
		ck_assert_str_eq(spmla_fault_name(status.fault),
				 spmla_fault_name(m->fault));
		ck_assert_uint_eq(status.row, m->fault_row);
	}
	m->faults = 0;
	ck_assert_int_eq(spmla_status_clear(f->ctx), SPMLA_OK);
}

void
expect_empty_step(fixture *f, const spmla_shape *shape)
{
	step_model m;

	memset(&m, 0, sizeof m);
	m.logits_elems = f->plan.logits_elems;
	check_buffers(&m, f, shape);
}

void
expect_status(fixture *f, uint32_t count, uint32_t fault, uint32_t row,
	      uint64_t step)
{
	const spmla_device_status s = fixture_status(f);

	ck_assert_uint_eq(s.count, count);
	ck_assert_str_eq(spmla_fault_name(s.fault), spmla_fault_name(fault));
	ck_assert_uint_eq(s.row, row);
	ck_assert_uint_eq(s.step, step);
}
