/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of the batch's requests, in each table of the plan. The hard idea is
 * the promise. A request is admitted only if all pages that it can ever need
 * are free or will not be needed by others, so no request is ever evicted. It
 * then takes the pages one by one as it grows. Free pages are stacks: a page
 * given back last is used first, in the very next step. The step protocol
 * allows that, and it would reveal a table that keeps old columns. A ring table
 * never needs more pages than columns.
 */
#include <string.h>

#include "examples/decode_loop.h"

static void
open_table(page_table *t, const spmla_plan *plan, uint32_t group,
	   uint32_t given)
{
	const spmla_table_config *g = &plan->config.groups[group];
	const uint64_t rows = plan->config.max_rows;
	uint32_t i;

	t->group = group;
	t->columns = plan->group_columns[group];
	t->page_tokens = g->page_tokens;
	t->ring = g->ring_columns != 0;
	t->pages = keep(rows * t->columns * sizeof *t->pages);
	t->cols = keep(rows * sizeof *t->cols);
	t->free_pages = keep(g->pool_pages * sizeof *t->free_pages);
	t->users = keep(g->pool_pages * sizeof *t->users);
	t->used = keep(g->pool_pages);
	for (i = 0; i < g->pool_pages - given; i++)
		t->free_pages[i] = (int32_t)(g->pool_pages - 1 - i);
	t->free_count = i;
	for (i = 0; i < given; i++)
		t->users[i] = 1; /* for ever */
}

void
pages_open(batch *b, const spmla_plan *plan)
{
	const uint32_t groups =
		plan->config.model == SPMLA_MODEL_V32 ? 1 : SPMLA_V4_GROUPS;
	uint32_t g, columns = 0;

	for (g = 0; g < groups; g++) {
		page_table *t = &b->tables[b->table_count];

		if (plan->group_table[g] != g)
			continue;
		open_table(t, plan, g, b->start ? MODEL_GIVEN_PAGES : 0);
		b->own_tables =
			plan->config.groups[g].source == SPMLA_TABLE_DEVICE;
		columns += t->columns;
		b->table_count++;
	}
	b->copy_capacity = columns;
	b->copies = keep(columns * sizeof *b->copies);
	b->stores = keep((uint64_t)plan->config.max_rows * b->table_count *
			 sizeof *b->stores);
}

static uint32_t
pages_for(const page_table *t, uint32_t tokens)
{
	const uint32_t pages = (tokens + t->page_tokens - 1) / t->page_tokens;

	return t->ring && pages > t->columns ? t->columns : pages;
}

/* Pages whose tokens all belong to another request; a ring's page will be
 * written again. */
static uint32_t
shared_pages(const page_table *t, uint32_t prefix)
{
	return t->ring ? 0 : prefix / t->page_tokens;
}

/* The page of a column that is given. */
static uint32_t
given_page(uint32_t column)
{
	return column % MODEL_GIVEN_PAGES;
}

static int32_t *
row_of(const page_table *t, const running *r)
{
	return t->pages + (uint64_t)r->row * t->columns;
}

/* The pages of `parent` up to prefix: whole ones are shared, others copied.
 * Without a parent, given ones. */
static void
take_over(batch *b, running *r, const running *parent, uint32_t prefix)
{
	uint32_t i, c;

	for (i = 0; i < b->table_count; i++) {
		page_table *t = &b->tables[i];

		r->pages[i] = shared_pages(t, prefix);
		for (c = 0; c < r->pages[i]; c++) {
			const int32_t page = parent ? row_of(t, parent)[c]
						    : (int32_t)given_page(c);

			row_of(t, r)[c] = page;
			t->users[page]++;
			b->pages_shared += parent != NULL;
		}
	}
	pages_take(b, r, prefix);
	for (i = 0; i < b->table_count && parent; i++) {
		const page_table *t = &b->tables[i];

		for (c = shared_pages(t, prefix); c < r->pages[i]; c++) {
			page_copy *copy = &b->copies[b->copy_count++];

			copy->group = t->group;
			copy->from = row_of(t, parent)[c];
			copy->to = row_of(t, r)[c];
			b->pages_copied++;
		}
	}
}

int
pages_admit(batch *b, running *r, const running *parent, uint32_t prefix)
{
	uint32_t i;

	for (i = 0; i < b->table_count; i++) {
		const page_table *t = &b->tables[i];

		r->promised[i] =
			pages_for(t, r->total) - shared_pages(t, prefix);
		if (r->promised[i] > t->free_count - t->promised)
			return 0;
	}
	for (i = 0; i < b->table_count; i++)
		b->tables[i].promised += r->promised[i];
	take_over(b, r, parent, prefix);
	return 1;
}

void
pages_take(batch *b, running *r, uint32_t tokens)
{
	uint32_t i;

	for (i = 0; i < b->table_count; i++) {
		page_table *t = &b->tables[i];
		const uint32_t want = pages_for(t, tokens);

		while (r->pages[i] < want) {
			const int32_t page = t->free_pages[--t->free_count];

			row_of(t, r)[r->pages[i]++] = page;
			r->promised[i]--;
			t->promised--;
			b->pages_reused += t->used[page];
			t->used[page] = 1;
			t->users[page] = 1;
		}
		t->cols[r->row] = (int32_t)r->pages[i];
	}
}

void
pages_release(batch *b, const running *r)
{
	uint32_t i, c;

	for (i = 0; i < b->table_count; i++) {
		page_table *t = &b->tables[i];

		for (c = 0; c < r->pages[i]; c++) {
			const int32_t page = row_of(t, r)[c];

			if (--t->users[page] == 0)
				t->free_pages[t->free_count++] = page;
		}
		t->promised -= r->promised[i];
		t->cols[r->row] = 0;
		b->wraps += t->ring && r->total > t->columns * t->page_tokens;
	}
}

uint32_t
pages_store(batch *b, const running *r, const uint32_t *had)
{
	uint32_t count = 0, i;

	for (i = 0; i < b->table_count && !b->own_tables; i++) {
		const page_table *t = &b->tables[i];
		const uint32_t first = had ? had[i] : 0;
		spmla_table_store *s = &b->stores[b->step.store_count];

		if (r->pages[i] == first)
			continue;
		s->group = t->group;
		s->row = r->row;
		s->first_col = first;
		s->count = r->pages[i] - first;
		s->pages = row_of(t, r) + first;
		b->step.store_count++;
		count += s->count;
	}
	return count;
}
