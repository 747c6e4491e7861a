/* SPDX-License-Identifier: Apache-2.0
 *
 * spmla_step_encode: checks a step once against the plan and makes a
 * relocatable record of it. The header's magic is written last, so a record
 * whose check failed is no record.
 */
#include "spmla/internal/backend.h"
#include "spmla/internal/config.h"

#include <string.h>

/* The sums over the requests. */
typedef struct totals {
	uint64_t tokens;
	uint64_t live_context;
	uint32_t next_n;
	uint64_t pages;
} totals;

static spmla_status
check_request(const spmla_request *r, uint32_t i, const spmla_config *c,
	      uint64_t *seen, spmla_diag *diag)
{
	const struct {
		const char *field;
		uint64_t got;
		uint64_t most;
	} limits[] = {
		{"step.requests.row", r->row, c->max_rows - 1},
		{"step.requests.seq_len_tokens", r->seq_len_tokens,
		 c->max_context_tokens},
		{"step.requests.query_tokens", r->query_tokens,
		 r->seq_len_tokens},
		{"step.requests.flags", r->flags, SPMLA_REQUEST_JOIN},
	};
	uint64_t bit;
	uint32_t k;

	for (k = 0; k < SPMLA_I_COUNT(limits); k++)
		if (limits[k].got > limits[k].most)
			return spmla_i_fail_at(
				diag, SPMLA_E_RECORD, limits[k].field, i,
				limits[k].got, SPMLA_WANT_AT_MOST,
				limits[k].most);
	bit = UINT64_C(1) << r->row % 64;
	if (seen[r->row / 64] & bit)
		return spmla_i_fail_at(diag, SPMLA_E_RECORD,
				       "step.requests.row", i, r->row,
				       SPMLA_WANT_UNIQUE, 0);
	seen[r->row / 64] |= bit;
	return SPMLA_OK;
}

static spmla_status
check_store(const spmla_table_store *t, uint32_t i, const spmla_plan *plan,
	    spmla_diag *diag)
{
	const uint32_t last = spmla_i_group_count(&plan->config) - 1;
	const uint32_t group = t->group < last ? t->group : last;
	const spmla_table_config *g = &plan->config.groups[group];
	const struct {
		const char *field;
		uint64_t got;
		uint64_t most;
	} limits[] = {
		{"step.stores.group", t->group, last},
		{"step.stores.row", t->row, plan->config.max_rows - 1},
		{"step.stores.first_col + count",
		 (uint64_t)t->first_col + t->count, plan->group_columns[group]},
	};
	uint32_t k;

	for (k = 0; k < SPMLA_I_COUNT(limits); k++)
		if (limits[k].got > limits[k].most)
			return spmla_i_fail_at(
				diag, SPMLA_E_RECORD, limits[k].field, i,
				limits[k].got, SPMLA_WANT_AT_MOST,
				limits[k].most);
	if (g->source != SPMLA_TABLE_RING)
		return spmla_i_fail_at(diag, SPMLA_E_UNSUPPORTED,
				       "step.stores.group", i, g->source,
				       SPMLA_WANT_EQUAL, SPMLA_TABLE_RING);
	if (t->count > 0 && !t->pages)
		return spmla_i_fail_at(diag, SPMLA_E_NULL, "step.stores.pages",
				       i, 0, SPMLA_WANT_NOT_NULL, 0);
	for (k = 0; k < t->count; k++)
		if (t->pages[k] < 0 || (uint32_t)t->pages[k] >= g->pool_pages)
			return spmla_i_fail_at(
				diag, SPMLA_E_RECORD, "step.stores.pages", i,
				(uint32_t)t->pages[k], SPMLA_WANT_AT_MOST,
				g->pool_pages - 1);
	return SPMLA_OK;
}

/* Finds the first bucket that the step fits; prefill comes after all of them.
 * The limits are applied one after the other. The limit that leaves no shape is
 * named, with the most that the remaining shapes allow. */
static spmla_status
find_bucket(const spmla_config *c, uint32_t requests, const totals *t,
	    uint32_t *bucket, spmla_diag *diag)
{
	static const char *const fields[4] = {
		"step.request_count", "step.next_n", "step.live_context",
		"step.tokens"};
	const uint64_t need[4] = {requests, t->next_n, t->live_context,
				  t->tokens};
	const uint32_t count = spmla_i_shape_count(c);
	uint32_t fits = (1u << count) - 1, m, i;

	for (m = 0; m < 4; m++) {
		uint64_t most = 0;
		uint32_t left = 0;

		for (i = 0; i < count; i++) {
			const spmla_shape b = spmla_i_shape_at(c, i);
			const uint64_t limit[4] = {b.requests, b.next_n,
						   b.max_live_context,
						   b.tokens};

			if (!(fits >> i & 1u))
				continue;
			if (limit[m] > most)
				most = limit[m];
			if (need[m] <= limit[m])
				left |= 1u << i;
		}
		if (!left)
			return spmla_i_fail(diag, SPMLA_E_RECORD, fields[m],
					    need[m], SPMLA_WANT_AT_MOST, most);
		fits = left;
	}
	for (i = 0; !(fits >> i & 1u); i++)
		;
	*bucket = i < c->bucket_count ? i : SPMLA_BUCKET_PREFILL;
	return SPMLA_OK;
}

static spmla_status
check_call(const spmla_plan *plan, const spmla_step *step, const void *record,
	   uint64_t capacity, const spmla_step_info *info, spmla_diag *diag)
{
	const spmla_i_check pointers[] = {
		{"plan", SPMLA_I_PTR(plan), SPMLA_WANT_NOT_NULL, 0},
		{"step", SPMLA_I_PTR(step), SPMLA_WANT_NOT_NULL, 0},
		{"record", SPMLA_I_PTR(record), SPMLA_WANT_NOT_NULL, 0},
		{"record", SPMLA_I_PTR(record), SPMLA_WANT_MULTIPLE_OF, 16},
	};
	spmla_status s;

	s = spmla_i_check_all(diag, pointers, SPMLA_I_COUNT(pointers));
	if (s != SPMLA_OK)
		return s;
	s = spmla_i_check_size(diag, "plan.struct_bytes", plan->struct_bytes,
			       sizeof *plan);
	if (s != SPMLA_OK)
		return s;
	s = spmla_i_check_size(diag, "step.struct_bytes", step->struct_bytes,
			       sizeof *step);
	if (s != SPMLA_OK)
		return s;
	if (info)
		s = spmla_i_check_size(diag, "info.struct_bytes",
				       info->struct_bytes, sizeof *info);
	if (s != SPMLA_OK)
		return s;
	if (capacity < plan->record_bytes)
		return spmla_i_fail(diag, SPMLA_E_RANGE,
				    "record_capacity_bytes", capacity,
				    SPMLA_WANT_AT_LEAST, plan->record_bytes);
	return SPMLA_OK;
}

/* Checks counts, flags and lists of the step itself. */
static spmla_status
check_step(const spmla_plan *plan, const spmla_step *step, spmla_diag *diag)
{
	const spmla_i_check limits[] = {
		{"step.flags", step->flags, SPMLA_WANT_AT_MOST,
		 SPMLA_STEP_LENS_ON_DEVICE},
		{"step.request_count", step->request_count, SPMLA_WANT_AT_MOST,
		 plan->max_requests},
		{"step.store_count", step->store_count, SPMLA_WANT_AT_MOST,
		 plan->config.max_table_stores},
	};
	const spmla_i_check lists[] = {
		{"step.requests", SPMLA_I_PTR(step->requests),
		 step->request_count ? SPMLA_WANT_NOT_NULL : SPMLA_WANT_NOTHING,
		 0},
		{"step.stores", SPMLA_I_PTR(step->stores),
		 step->store_count ? SPMLA_WANT_NOT_NULL : SPMLA_WANT_NOTHING,
		 0},
	};
	const spmla_status s =
		spmla_i_check_all(diag, limits, SPMLA_I_COUNT(limits));

	if (s == SPMLA_E_RANGE && diag)
		diag->status = SPMLA_E_RECORD;
	if (s != SPMLA_OK)
		return SPMLA_E_RECORD;
	return spmla_i_check_all(diag, lists, SPMLA_I_COUNT(lists));
}

/* Checks every request and store and adds them up. `seen` is the record's room
 * for one bit a row. */
static spmla_status
check_lists(const spmla_plan *plan, const spmla_step *step, uint64_t *seen,
	    totals *t, spmla_diag *diag)
{
	spmla_status s = SPMLA_OK;
	uint32_t i;

	memset(seen, 0, 8 * ((plan->config.max_rows + (size_t)63) / 64));
	for (i = 0; s == SPMLA_OK && i < step->request_count; i++) {
		const spmla_request *r = &step->requests[i];

		s = check_request(r, i, &plan->config, seen, diag);
		t->tokens += r->query_tokens;
		if (r->query_tokens > 0)
			t->live_context += r->seq_len_tokens;
		if (r->query_tokens > t->next_n)
			t->next_n = r->query_tokens;
	}
	for (i = 0; s == SPMLA_OK && i < step->store_count; i++) {
		s = check_store(&step->stores[i], i, plan, diag);
		t->pages += step->stores[i].count;
	}
	if (s == SPMLA_OK && t->pages > plan->config.max_update_pages)
		s = spmla_i_fail(diag, SPMLA_E_RECORD, "step.stores.count",
				 t->pages, SPMLA_WANT_AT_MOST,
				 plan->config.max_update_pages);
	return s;
}

/* Copies the lists behind the header. The step is already checked. */
static uint32_t
write_lists(spmla_i_record *record, const spmla_step *step)
{
	uint8_t *end = (uint8_t *)(record + 1);
	uint32_t page = 0, i;

	if (step->request_count)
		memcpy(end, step->requests,
		       step->request_count * sizeof *step->requests);
	end += step->request_count * sizeof *step->requests;
	for (i = 0; i < step->store_count; i++) {
		const spmla_table_store *t = &step->stores[i];
		const spmla_i_store store = {t->group << 24 | t->row,
					     t->first_col, t->count, page};

		memcpy(end, &store, sizeof store);
		end += sizeof store;
		page += t->count;
	}
	for (i = 0; i < step->store_count; i++) {
		const spmla_table_store *t = &step->stores[i];

		if (t->count)
			memcpy(end, t->pages, t->count * sizeof *t->pages);
		end += t->count * sizeof *t->pages;
	}
	return (uint32_t)(end - (uint8_t *)record);
}

spmla_status
spmla_step_encode(const spmla_plan *plan, const spmla_step *step, void *record,
		  uint64_t record_capacity_bytes, spmla_step_info *info,
		  spmla_diag *diag)
{
	spmla_i_record *header = record;
	totals t = {0, 0, 0, 0};
	uint32_t bucket = 0;
	uint64_t *seen;
	spmla_status s;

	s = check_call(plan, step, record, record_capacity_bytes, info, diag);
	if (s == SPMLA_OK)
		s = check_step(plan, step, diag);
	if (s != SPMLA_OK)
		return s;
	header->magic = 0;
	seen = (uint64_t *)((uint8_t *)record + plan->record_bytes) -
	       (plan->config.max_rows + 63) / 64;
	s = check_lists(plan, step, seen, &t, diag);
	if (s == SPMLA_OK)
		s = find_bucket(&plan->config, step->request_count, &t, &bucket,
				diag);
	if (s != SPMLA_OK)
		return s;
	header->ticket = 0;
	header->bytes = write_lists(header, step);
	header->flags = step->flags;
	header->requests = step->request_count;
	header->stores = step->store_count;
	header->pages = (uint32_t)t.pages;
	header->tokens = (uint32_t)t.tokens;
	header->next_n = t.next_n;
	header->live_context = (uint32_t)t.live_context;
	header->bucket = bucket;
	header->key = plan->record_key;
	memset(header->reserved, 0, sizeof header->reserved);
	header->magic = SPMLA_I_RECORD_MAGIC;
	if (info) {
		info->bucket = bucket;
		info->tokens = header->tokens;
		info->requests = header->requests;
		info->next_n = header->next_n;
		info->live_context = header->live_context;
		info->record_bytes = header->bytes;
	}
	return SPMLA_OK;
}
