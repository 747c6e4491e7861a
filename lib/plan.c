/* SPDX-License-Identifier: Apache-2.0
 *
 * spmla_plan_make: from config and device facts to a plan, without side
 * effects; and the readers of a plan.
 */
#include "spmla/arena/arena_plan.h"
#include "spmla/internal/backend.h"
#include "spmla/internal/checked_math.h"
#include "spmla/internal/config.h"

#include <string.h>

uint64_t
spmla_i_shape_logits(const spmla_shape *b, const spmla_config *c,
		     uint32_t *overflow)
{
	const uint64_t align = SPMLA_LOGITS_ROW_ALIGN;
	const uint32_t ratio = spmla_i_index_ratio(c);
	/* A context without a compressed key still has a row. */
	const uint32_t longest = c->max_context_tokens / ratio;
	const uint64_t by_live = spmla_i_add(
		spmla_i_mul(b->next_n, b->max_live_context, overflow) / ratio,
		spmla_i_mul(b->tokens, align - 1, overflow), overflow);
	const uint64_t by_tokens = spmla_i_mul(
		b->tokens,
		spmla_i_align(longest ? longest : 1, align, overflow),
		overflow);

	return by_live < by_tokens ? by_live : by_tokens;
}

/* The key of a plan in its records: a record fits every plan with the same key.
 */
static uint64_t
record_key(const spmla_config *c)
{
	const uint32_t limits[] = {
		c->max_rows,         c->max_context_tokens, c->max_table_stores,
		c->max_update_pages, c->bucket_count,
	};
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	uint32_t i;

	for (i = 0; i < SPMLA_I_COUNT(limits); i++)
		hash = (hash ^ limits[i]) * UINT64_C(0x100000001b3);
	for (i = 0; i < spmla_i_group_count(c); i++) {
		const spmla_table_config *g = &c->groups[i];

		hash = (hash ^ g->source) * UINT64_C(0x100000001b3);
		hash = (hash ^ g->page_tokens) * UINT64_C(0x100000001b3);
		hash = (hash ^ g->pool_pages) * UINT64_C(0x100000001b3);
		if (g->ring_columns)
			hash = (hash ^ g->ring_columns) *
			       UINT64_C(0x100000001b3);
	}
	for (i = 0; i < c->bucket_count; i++) {
		const spmla_shape *b = &c->buckets[i];

		hash = (hash ^ b->tokens) * UINT64_C(0x100000001b3);
		hash = (hash ^ b->requests) * UINT64_C(0x100000001b3);
		hash = (hash ^ b->next_n) * UINT64_C(0x100000001b3);
		hash = (hash ^ b->max_live_context) * UINT64_C(0x100000001b3);
	}
	if (c->max_prefill_tokens) {
		hash = (hash ^ c->max_prefill_tokens) * UINT64_C(0x100000001b3);
		hash = (hash ^ c->prefill_workspace_tokens) *
		       UINT64_C(0x100000001b3);
	}
	return hash;
}

/* Room for one piece of a prefill's index logits: the budget, or what the
 * longest step takes if that is less. */
static uint64_t
prefill_logits(const spmla_config *c)
{
	const uint64_t budget = c->logits_budget_bytes / sizeof(float);
	const uint64_t all =
		c->max_prefill_tokens *
		spmla_i_piece_stride(c, c->prefill_workspace_tokens);

	return all < budget ? all : budget; /* 0 without prefill */
}

/* The header, the lists at their longest, then one bit a row. */
static uint64_t
record_bytes(const spmla_plan *plan)
{
	const spmla_config *c = &plan->config;
	uint32_t overflow = 0; /* cannot happen: all factors are bounded */
	const uint64_t used =
		sizeof(spmla_i_record) +
		(uint64_t)plan->max_requests * sizeof(spmla_request) +
		(uint64_t)c->max_table_stores * sizeof(spmla_i_store) +
		(uint64_t)c->max_update_pages * sizeof(int32_t);

	return spmla_i_align(used + 8 * spmla_i_cdiv(c->max_rows, 64) + 8,
			     SPMLA_I_LINE_BYTES, &overflow);
}

static void
fill_limits(spmla_plan *plan, uint32_t *overflow)
{
	const spmla_config *c = &plan->config;
	uint32_t i;

	for (i = 0; i < c->bucket_count; i++) {
		const spmla_shape *b = &c->buckets[i];
		const uint64_t logits = spmla_i_shape_logits(b, c, overflow);

		if (b->tokens > plan->max_tokens)
			plan->max_tokens = b->tokens;
		if (b->requests > plan->max_requests)
			plan->max_requests = b->requests;
		if (logits > plan->logits_elems)
			plan->logits_elems = logits;
	}
	if (c->max_prefill_tokens > plan->max_tokens)
		plan->max_tokens = c->max_prefill_tokens;
	if (prefill_logits(c) > plan->logits_elems)
		plan->logits_elems = prefill_logits(c);
	for (i = 0; i < spmla_i_group_count(c); i++) {
		plan->group_table[i] = spmla_i_group_table(c, i);
		plan->group_columns[i] = spmla_i_group_columns(c, i);
	}
	plan->columns = plan->group_columns[SPMLA_GROUP_MAIN];
	plan->record_bytes = record_bytes(plan);
	plan->record_key = record_key(c);
}

spmla_status
spmla_plan_make(spmla_plan *plan, const spmla_config *config,
		const spmla_device *device, spmla_diag *diag)
{
	const spmla_i_check pointers[] = {
		{"plan", SPMLA_I_PTR(plan), SPMLA_WANT_NOT_NULL, 0},
		{"config", SPMLA_I_PTR(config), SPMLA_WANT_NOT_NULL, 0},
		{"device", SPMLA_I_PTR(device), SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_device facts;
	spmla_config resolved;
	uint32_t overflow = 0;
	spmla_status s;

	s = spmla_i_check_all(diag, pointers, SPMLA_I_COUNT(pointers));
	if (s == SPMLA_OK)
		s = spmla_i_config_resolve(&resolved, config, diag);
	if (s == SPMLA_OK)
		s = spmla_i_device_check(device, &resolved, diag);
	if (s == SPMLA_OK)
		s = spmla_i_lists_check(&resolved, diag);
	if (s != SPMLA_OK)
		return s;
	facts = *device; /* `config` may be the plan's own */
	memset(plan, 0, sizeof *plan);
	plan->struct_bytes = (uint32_t)sizeof *plan;
	plan->version = SPMLA_VERSION;
	plan->config = resolved;
	plan->device = facts;
	fill_limits(plan, &overflow);
	s = spmla_i_plan_arena(plan, overflow, diag);
	if (s != SPMLA_OK)
		memset(plan, 0, sizeof *plan);
	return s;
}

spmla_status
spmla_plan_row(const spmla_plan *plan, uint32_t i, spmla_row *row)
{
	const spmla_i_arena_row *t;
	const spmla_extent *e;

	if (!plan || !row)
		return SPMLA_E_NULL;
	if (row->struct_bytes != sizeof *row)
		return SPMLA_E_STRUCT_SIZE;
	if (i >= plan->row_count)
		return SPMLA_E_RANGE;
	e = &plan->extents[i];
	t = spmla_i_arena_find(e->buf);
	if (!t)
		return SPMLA_E_RANGE;
	row->buf = e->buf;
	row->memory = e->memory;
	row->life = e->life;
	row->branch = e->branch;
	row->elem_bytes = t->elem_bytes;
	row->count = e->bytes / t->elem_bytes;
	row->offset_bytes = e->offset_bytes;
	row->bytes = e->bytes;
	row->align_bytes = SPMLA_I_BUF_ALIGN;
	row->name = t->name;
	row->shape = t->shape;
	row->writer = t->writer;
	return SPMLA_OK;
}

uint64_t
spmla_plan_regions(const spmla_plan *plan, void *block,
		   spmla_region regions[SPMLA_MEMORY_COUNT])
{
	uint64_t end = 0;
	uint32_t m, overflow = 0;

	if (!plan || !regions)
		return 0;
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		spmla_region *r = &regions[m];

		r->struct_bytes = (uint32_t)sizeof *r;
		r->memory = m;
		r->bytes = plan->region_bytes[m];
		r->base = block ? (uint8_t *)block + end : NULL;
		end = spmla_i_align(spmla_i_add(end, r->bytes, &overflow),
				    SPMLA_I_BUF_ALIGN, &overflow);
	}
	return overflow ? 0 : end;
}
