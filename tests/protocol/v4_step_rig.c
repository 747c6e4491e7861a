/* SPDX-License-Identifier: Apache-2.0
 *
 * See v4_step_rig.h: configs, drafts and steps.
 */
#include "tests/protocol/v4_step_rig.h"

#include <check.h>
#include <string.h>

static void
group(spmla_config *c, uint32_t g, uint32_t source, uint32_t page_tokens,
      uint32_t pool_pages, uint32_t ring_columns)
{
	c->groups[g].source = source;
	c->groups[g].page_tokens = page_tokens;
	c->groups[g].pool_pages = pool_pages;
	c->groups[g].ring_columns = ring_columns;
}

/* Windows of 12 in 4 pages of 4; keys of 4 in pages of 4, of 128 in pages of 2.
 */
static void
small(spmla_config *c)
{
	c->window_tokens = 12;
	c->max_context_tokens = 2048;
	group(c, SPMLA_GROUP_SWA, SPMLA_TABLE_RING, 4, 64, SPMLA_RING_LEAST);
	group(c, SPMLA_GROUP_C4A, SPMLA_TABLE_RING, 16, 512, 0);
	group(c, SPMLA_GROUP_C128A, SPMLA_TABLE_RING, 256, 96, 0);
	group(c, SPMLA_GROUP_INDEX, SPMLA_TABLE_OF(SPMLA_GROUP_C4A), 0, 0, 0);
	group(c, SPMLA_GROUP_STATE_C4A, SPMLA_TABLE_RING, 4, 48,
	      SPMLA_RING_LEAST);
	group(c, SPMLA_GROUP_STATE_C128A, SPMLA_TABLE_RING, 64, 40,
	      SPMLA_RING_LEAST);
	group(c, SPMLA_GROUP_STATE_INDEX, SPMLA_TABLE_OF(SPMLA_GROUP_STATE_C4A),
	      0, 0, 0);
}

static void
tables(spmla_config *c)
{
	c->window_tokens = 20;
	c->max_context_tokens = 1500;
	group(c, SPMLA_GROUP_SWA, SPMLA_TABLE_RING, 16, 128, 0);
	group(c, SPMLA_GROUP_C4A, SPMLA_TABLE_DEVICE, 24, 200, 0);
	group(c, SPMLA_GROUP_C128A, SPMLA_TABLE_RING, 128, 90, 0);
	group(c, SPMLA_GROUP_INDEX, SPMLA_TABLE_RING, 32, 100, 0);
	group(c, SPMLA_GROUP_STATE_C4A, SPMLA_TABLE_DEVICE, 8, 60, 2);
	group(c, SPMLA_GROUP_STATE_C128A, SPMLA_TABLE_RING, 160, 70, 0);
	group(c, SPMLA_GROUP_STATE_INDEX, SPMLA_TABLE_RING, 4, 80, 0);
}

/* 256 columns of 4096 positions. */
static void
far_away(spmla_config *c)
{
	uint32_t b;

	small(c);
	c->window_tokens = V4_WINDOW;
	c->max_context_tokens = 1 << 20;
	c->groups[SPMLA_GROUP_SWA].page_tokens = 64;
	group(c, SPMLA_GROUP_C4A, SPMLA_TABLE_RING, 4096, 524287, 0);
	group(c, SPMLA_GROUP_C128A, SPMLA_TABLE_RING, 4096, 524287, 0);
	for (b = 0; b < 3; b++)
		c->buckets[b].max_live_context = 5u << 20;
}

void
v4_step_config(spmla_config *c, v4_kind kind)
{
	static const spmla_shape buckets[3] = {
		{4, 4, 1, 0}, {8, 4, 2, 0}, {16, 8, 4, 0}};
	uint32_t b;

	memset(c, 0, sizeof *c);
	c->struct_bytes = (uint32_t)sizeof *c;
	c->model = SPMLA_MODEL_V4_PRO;
	c->heads = 4;
	c->index_heads = 4;
	c->topk = 8;
	c->max_rows = V4_ROWS;
	c->bucket_count = 3;
	memcpy(c->buckets, buckets, sizeof buckets);
	c->max_table_stores = V4_STORES;
	c->max_update_pages = V4_PAGES;
	c->max_graphs = 16;
	if (kind == V4_TABLES)
		tables(c);
	else if (kind == V4_FAR)
		far_away(c);
	else
		small(c);
	if (kind == V4_PROMPTS) {
		c->max_prefill_tokens = V4_TOKENS;
		c->prefill_workspace_tokens = 6000;
		/* rows of 2048 / 4 keys: three and a rest */
		c->logits_budget_bytes = 4 * (3 * 512 + 100);
	}
	if (kind == V4_WIDE)
		c->buckets[2] = (spmla_shape){V4_TOKENS, V4_REQUESTS, 8, 0};
	if (kind != V4_TIGHT)
		return;
	/* Tokens that move on from there have up to 4096 keys each. */
	c->max_context_tokens = 16384;
	for (b = 0; b < 3; b++)
		c->buckets[b].max_live_context = 64;
}

/* ---- Drafts ------------------------------------------------------------ */

void
v4_draft_clear(v4_draft *d)
{
	memset(d, 0, sizeof *d);
}

void
v4_draft_request(v4_draft *d, uint32_t row, uint32_t query, uint32_t len,
		 uint32_t flags)
{
	const spmla_request r = {row, query, len, flags};

	ck_assert_uint_lt(d->request_count, V4_REQUESTS);
	d->requests[d->request_count++] = r;
}

void
v4_draft_store(v4_draft *d, uint32_t group_of, uint32_t row, uint32_t first_col,
	       uint32_t count, const int32_t *pages)
{
	const spmla_table_store t = {group_of, row, first_col, count, NULL};

	ck_assert_uint_lt(d->store_count, V4_STORES);
	ck_assert_uint_le(d->page_count + count, V4_PAGES);
	d->stores[d->store_count++] = t;
	memcpy(d->pages + d->page_count, pages, count * sizeof *pages);
	d->page_count += count;
}

const spmla_step *
v4_draft_step(v4_draft *d)
{
	const spmla_step step = SPMLA_STEP_INIT;
	const int32_t *pages = d->pages;
	uint32_t i;

	for (i = 0; i < d->store_count; i++) {
		d->stores[i].pages = pages;
		pages += d->stores[i].count;
	}
	d->step = step;
	d->step.flags = d->flags;
	d->step.request_count = d->request_count;
	d->step.store_count = d->store_count;
	d->step.requests = d->requests;
	d->step.stores = d->stores;
	return &d->step;
}

/* ---- Steps ------------------------------------------------------------- */

spmla_shape
v4_shape(const spmla_plan *plan, uint32_t bucket)
{
	const spmla_config *c = &plan->config;
	const spmla_shape prefill = {c->max_prefill_tokens, plan->max_requests,
				     c->max_prefill_tokens,
				     c->prefill_workspace_tokens};

	return bucket == V4_PREFILL ? prefill : c->buckets[bucket];
}

static spmla_shape
run(fixture *f, uint32_t bucket, spmla_source source)
{
	const spmla_shape shape = v4_shape(&f->plan, bucket);

	if (spmla_step_prologue(f->ctx, &shape, source, NULL) != SPMLA_OK)
		ck_abort_msg("prologue: %s", fixture_diag(f));
	fixture_drain(f);
	return shape;
}

void
v4_step_ring(v4_model *m, fixture *f, v4_draft *d, uint32_t bucket)
{
	spmla_shape shape;
	uint64_t ticket;

	if (spmla_step_write(f->ctx, v4_draft_step(d), &ticket, NULL))
		ck_abort_msg("write: %s", fixture_diag(f));
	shape = run(f, bucket, SPMLA_FROM_RING);
	v4_model_record(m, d, &shape);
	v4_model_check(m, f, &shape);
}

void
v4_step_device(v4_model *m, fixture *f, v4_draft *d, uint32_t bucket)
{
	uint8_t *room = spmla_view(f->ctx, SPMLA_BUF_STEP_DEVICE, NULL);
	spmla_shape shape;
	spmla_step_device head;

	memset(&head, 0xEE, sizeof head);
	head.requests = d->request_count;
	head.flags = d->flags;
	memcpy(room, &head, sizeof head);
	memcpy(room + sizeof head, d->requests,
	       d->request_count * sizeof(spmla_request));
	shape = run(f, bucket, SPMLA_FROM_DEVICE);
	v4_model_device(m, d, &shape);
	v4_model_check(m, f, &shape);
}

void
v4_step_advance(v4_model *m, fixture *f, const int32_t *by, uint32_t bucket)
{
	spmla_shape shape;

	memcpy(spmla_view(f->ctx, SPMLA_BUF_ADVANCE_BY, NULL), by,
	       V4_REQUESTS * sizeof *by);
	shape = run(f, bucket, SPMLA_ADVANCE);
	v4_model_advance(m, by, &shape);
	v4_model_check(m, f, &shape);
}
