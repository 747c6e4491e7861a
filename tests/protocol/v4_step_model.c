/* SPDX-License-Identifier: Apache-2.0
 *
 * See v4_step_rig.h: the model of a V4 step's buffers.
 */
#include "tests/protocol/v4_step_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tables ------------------------------------------------------------ */

static uint32_t
source(const v4_model *m, uint32_t group)
{
	return m->plan->config.groups[group].source;
}

uint32_t
v4_model_owner(const v4_model *m, uint32_t group)
{
	const uint32_t s = source(m, group);

	return s >= SPMLA_TABLE_OF_MAIN ? s - SPMLA_TABLE_OF_MAIN : group;
}

ref_table *
v4_model_table(v4_model *m, uint32_t group)
{
	return &m->tables[v4_model_owner(m, group)];
}

void
v4_model_open(v4_model *m, fixture *f)
{
	const spmla_config *c = &f->plan.config;
	uint32_t g, i;

	memset(m, 0, sizeof *m);
	m->plan = &f->plan;
	for (g = 0; g < SPMLA_V4_GROUPS; g++) {
		const uint32_t columns = f->plan.group_columns[g];

		if (v4_model_owner(m, g) != g)
			continue;
		ck_assert(ref_table_open(&m->tables[g], V4_ROWS, columns,
					 c->groups[g].page_tokens,
					 c->groups[g].pool_pages));
		if (source(m, g) != SPMLA_TABLE_DEVICE)
			continue;
		m->stride[g] = columns + V4_STRIDE;
		m->engine[g] = malloc(V4_ROWS * m->stride[g] * sizeof(int32_t));
		ck_assert_ptr_nonnull(m->engine[g]);
		for (i = 0; i < V4_ROWS * m->stride[g]; i++)
			m->engine[g][i] = i % m->stride[g] < columns ? -1 : 3;
		ck_assert_int_eq(
			spmla_table_bind(f->ctx, g, m->engine[g], m->stride[g]),
			SPMLA_OK);
	}
}

void
v4_model_close(v4_model *m)
{
	uint32_t g;

	for (g = 0; g < SPMLA_V4_GROUPS; g++) {
		if (v4_model_owner(m, g) == g)
			ref_table_close(&m->tables[g]);
		free(m->engine[g]);
	}
}

void
v4_model_engine(v4_model *m, uint32_t group, uint32_t row, uint32_t col,
		int32_t page)
{
	m->engine[group][row * m->stride[group] + col] = page;
	ck_assert(ref_table_store(&m->tables[group], row, col, 1, &page));
}

/* Columns of the group's table that count as written: a table of SpMLA's own
 * that has compressed keys ends at its first gap. */
uint32_t
v4_model_written(v4_model *m, uint32_t group, uint32_t row)
{
	const uint32_t owner = v4_model_owner(m, group);
	const ref_table *t = v4_model_table(m, group);
	uint32_t g;

	if (source(m, owner) == SPMLA_TABLE_RING)
		for (g = SPMLA_GROUP_C4A; g <= SPMLA_GROUP_INDEX; g++)
			if (v4_model_owner(m, g) == owner)
				return ref_table_written(t, row);
	return t->columns;
}

int64_t
v4_model_slot(v4_model *m, uint32_t group, uint32_t row, uint32_t entry,
	      uint32_t ratio)
{
	const ref_table *t = v4_model_table(m, group);
	uint32_t pos = ratio * entry + ratio - 1;
	int64_t slot;

	if (m->plan->config.groups[group].ring_columns)
		pos %= t->columns * t->page_tokens;
	if (pos / t->page_tokens >= v4_model_written(m, group, row))
		return -1;
	slot = ref_table_slot(t, row, pos);
	return slot < 0 ? -1 : slot / ratio;
}

/* ---- The step ---------------------------------------------------------- */

void
v4_model_report(v4_model *m, uint32_t row, uint32_t fault)
{
	const uint64_t key = (uint64_t)row << 32 | fault;
	const uint64_t least = (uint64_t)m->fault_row << 32 | m->fault;

	if (m->faults == 0 || key < least) {
		m->fault_row = row;
		m->fault = fault;
	}
	m->faults++;
	m->seen[fault]++;
}

void
v4_model_empty(v4_model *m, uint32_t fault)
{
	m->requests = 0;
	memset(m->request, 0, sizeof m->request);
	memset(m->len, 0, sizeof m->len);
	if (fault != SPMLA_FAULT_NONE)
		v4_model_report(m, SPMLA_NO_INDEX, fault);
}

static uint32_t
fits(const v4_model *m, const spmla_request *r, uint32_t count,
     const spmla_shape *shape)
{
	const uint32_t longest = m->plan->config.max_context_tokens;
	uint64_t tokens = 0, live = 0;
	uint32_t b;

	for (b = 0; b < count; b++) {
		if (r[b].query_tokens > shape->next_n)
			return 0;
		tokens += r[b].query_tokens;
		if (r[b].query_tokens)
			live += r[b].seq_len_tokens > longest
					? longest
					: r[b].seq_len_tokens;
	}
	return count <= shape->requests && tokens <= shape->tokens &&
	       live <= shape->max_live_context;
}

static void
take_requests(v4_model *m, const v4_draft *d)
{
	uint32_t b;

	v4_model_empty(m, SPMLA_FAULT_NONE);
	m->requests = d->request_count;
	for (b = 0; b < d->request_count; b++) {
		const spmla_request *r = &d->requests[b];
		int64_t len = r->seq_len_tokens;

		m->request[b] = *r;
		if (r->row >= V4_ROWS) {
			v4_model_report(m, r->row, SPMLA_FAULT_ROW);
			continue;
		}
		if (d->flags & SPMLA_STEP_LENS_ON_DEVICE)
			len = m->row_len[r->row];
		if (len < 0 || len > r->seq_len_tokens ||
		    len > m->plan->config.max_context_tokens ||
		    len < r->query_tokens)
			v4_model_report(m, r->row, SPMLA_FAULT_LENGTH);
		else
			m->len[b] = (int32_t)len;
	}
}

void
v4_model_record(v4_model *m, const v4_draft *d, const spmla_shape *shape)
{
	const int32_t *pages = d->pages;
	uint32_t i, g;

	if (!fits(m, d->requests, d->request_count, shape)) {
		v4_model_empty(m, SPMLA_FAULT_TOO_LARGE);
		return;
	}
	take_requests(m, d);
	for (i = 0; i < d->request_count; i++)
		for (g = 0; g < SPMLA_V4_GROUPS; g++)
			if ((d->requests[i].flags & SPMLA_REQUEST_JOIN) &&
			    source(m, g) == SPMLA_TABLE_RING)
				ref_table_join(&m->tables[g],
					       d->requests[i].row);
	for (i = 0; i < d->store_count; i++) {
		const spmla_table_store *t = &d->stores[i];

		ck_assert(ref_table_store(&m->tables[t->group], t->row,
					  t->first_col, t->count, pages));
		pages += t->count;
	}
}

void
v4_model_device(v4_model *m, const v4_draft *d, const spmla_shape *shape)
{
	if (fits(m, d->requests, d->request_count, shape))
		take_requests(m, d);
	else
		v4_model_empty(m, SPMLA_FAULT_TOO_LARGE);
}

void
v4_model_advance(v4_model *m, const int32_t *by, const spmla_shape *shape)
{
	uint32_t b;

	if (!fits(m, m->request, m->requests, shape)) {
		v4_model_empty(m, SPMLA_FAULT_TOO_LARGE);
		return;
	}
	for (b = 0; b < m->requests; b++) {
		const int64_t len = (int64_t)m->len[b] + by[b];
		const spmla_request *r = &m->request[b];

		if (m->len[b] == 0 || r->query_tokens == 0)
			continue;
		m->len[b] = (int32_t)len;
		if (len < r->query_tokens ||
		    len > m->plan->config.max_context_tokens) {
			m->len[b] = 0;
			v4_model_report(m, r->row, SPMLA_FAULT_LENGTH);
		}
	}
}
