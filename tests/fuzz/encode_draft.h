/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of any kind, for fuzz_encode.c: requests and table stores of the
 * input's, in memory that is exactly as long as the step says.
 */
#ifndef TESTS_FUZZ_ENCODE_DRAFT_H
#define TESTS_FUZZ_ENCODE_DRAFT_H

#include "tests/fuzz/world.h"

/* A row of any table of the worlds has at most MOST_PAGES columns. */
enum { MOST_REQUESTS = 10, MOST_STORES = 9, MOST_PAGES = 40 };

typedef struct draft {
	spmla_step step;
	spmla_request *requests; /* exactly as many as are said to be there */
	spmla_table_store stores[MOST_STORES];
} draft;

/* Rows are mostly in order, as most draws would name one twice. */
static inline void
read_requests(input *in, draft *d)
{
	const uint32_t n = d->step.request_count < MOST_REQUESTS
				   ? d->step.request_count
				   : MOST_REQUESTS;
	uint32_t i;

	d->requests = malloc(n ? n * sizeof *d->requests : 1);
	REQUIRE(d->requests);
	for (i = 0; i < n; i++) {
		spmla_request *r = &d->requests[i];
		const uint32_t kind = in_u8(in);

		r->row = kind & 0x80 ? in_edge(in) : i;
		r->query_tokens = kind & 0x40 ? in_edge(in) : kind & 3;
		r->seq_len_tokens =
			kind & 0x20 ? in_edge(in)
				    : r->query_tokens + (kind >> 2 & 1) * 17;
		r->flags = kind & 0x10 ? in_edge(in) : kind >> 3 & 1;
	}
}

static inline void
read_stores(input *in, draft *d, uint32_t groups)
{
	const uint32_t n = d->step.store_count < MOST_STORES
				   ? d->step.store_count
				   : MOST_STORES;
	uint32_t i;

	for (i = 0; i < n; i++) {
		spmla_table_store *t = &d->stores[i];
		const uint32_t kind = in_u8(in);
		uint32_t room;
		int32_t *pages;

		t->group = kind & 0x80  ? in_edge(in)
			   : groups > 1 ? in_below(in, groups)
					: 0;
		t->row = kind & 0x40 ? in_edge(in) : i;
		t->first_col = kind & 0x20 ? in_edge(in) : 0;
		t->count = kind & 0x10 ? in_edge(in) : 1 + (kind & 7);
		t->pages = NULL;
		if (kind & 8)
			continue;
		room = t->count < MOST_PAGES ? t->count : MOST_PAGES;
		pages = malloc(room ? room * sizeof *pages : 1);
		REQUIRE(pages);
		in_fill_edges(in, (uint32_t *)pages, room);
		t->pages = pages;
	}
}

/* Stores are mostly of the first `groups` groups. */
static inline void
read_draft(input *in, draft *d, uint32_t groups)
{
	const spmla_step step = SPMLA_STEP_INIT;
	const uint32_t kind = in_u8(in);

	memset(d, 0, sizeof *d);
	d->step = step;
	if ((kind & 0xe0) == 0xe0)
		d->step.struct_bytes = in_edge(in);
	d->step.flags = kind & 16 ? in_edge(in) : kind >> 3 & 1;
	d->step.request_count = kind & 4 ? in_edge(in) : in_below(in, 5);
	d->step.store_count = kind & 2 ? in_edge(in) : in_below(in, 4);
	read_requests(in, d);
	read_stores(in, d, groups);
	d->step.requests = d->requests;
	d->step.stores = kind & 1 ? NULL : d->stores;
}

static inline void
free_draft(draft *d)
{
	uint32_t i;

	for (i = 0; i < MOST_STORES; i++)
		free((void *)(uintptr_t)d->stores[i].pages);
	free(d->requests);
}

static inline void
check_info(const spmla_plan *p, const spmla_step_info *info)
{
	const spmla_shape *b = &p->config.buckets[info->bucket];

	REQUIRE(info->bucket < p->config.bucket_count);
	REQUIRE(info->tokens <= b->tokens && info->requests <= b->requests);
	REQUIRE(info->next_n <= b->next_n);
	REQUIRE(info->live_context <= b->max_live_context);
	REQUIRE(info->record_bytes <= p->record_bytes);
}

#endif
