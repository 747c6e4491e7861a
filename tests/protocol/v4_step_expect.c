/* SPDX-License-Identifier: Apache-2.0
 *
 * See v4_step_rig.h: what the buffers of a V4 step must hold.
 */
#include "tests/protocol/v4_step_rig.h"

#include <check.h>
#include <string.h>

typedef struct expected {
	int32_t start[V4_REQUESTS + 1];
	int32_t row[V4_REQUESTS];
	int32_t req_id[V4_TOKENS];
	int32_t token_row[V4_TOKENS];
	int32_t position[V4_TOKENS];
	int32_t context[V4_TOKENS];
	int64_t slot[V4_TOKENS];
	int64_t logits[V4_TOKENS + 1];
	int32_t compressed[V4_TOKENS];
	int64_t c4a_slot[V4_TOKENS];
	int64_t index_slot[V4_TOKENS];
	int64_t c128a_slot[V4_TOKENS];
	int32_t swa_len[V4_TOKENS];
	int32_t c128a_len[V4_TOKENS];
	int32_t swa[V4_TOKENS][V4_WINDOW];
	int32_t c128a[V4_TOKENS][V4_WIDTH];
} expected;

static void
expect_token(v4_model *m, expected *e, uint32_t t, uint32_t b, uint32_t j)
{
	const spmla_request *r = &m->request[b];
	const uint32_t pos = (uint32_t)m->len[b] - r->query_tokens + j;

	e->req_id[t] = (int32_t)b;
	e->token_row[t] = e->row[b];
	if (m->len[b] == 0)
		return;
	e->position[t] = (int32_t)pos;
	e->slot[t] = v4_model_slot(m, SPMLA_GROUP_SWA, r->row, pos, 1);
	if (e->slot[t] < 0)
		v4_model_report(m, r->row, SPMLA_FAULT_PAGE);
	else
		e->context[t] = (int32_t)pos + 1;
}

/* Each token of a prefill has a row. */
static uint32_t
is_prefill(const v4_model *m, const spmla_shape *shape)
{
	uint32_t i;

	for (i = 0; i < m->plan->config.bucket_count; i++)
		if (shape->tokens <= m->plan->config.buckets[i].tokens)
			return 0;
	return 1;
}

/* One for as many keys as the shape's context has, in whole 256; an ADVANCE may
 * have gone past it. */
static void
expect_rows(v4_model *m, expected *e, const spmla_shape *shape)
{
	const uint32_t longest = m->plan->config.max_context_tokens;
	const uint32_t live = shape->max_live_context;
	const int32_t keys = (int32_t)((live < longest ? live : longest) / 4);
	const int32_t room = keys > 256 ? (keys + 255) / 256 * 256 : 256;
	uint32_t t;

	for (t = 0; t < shape->tokens; t++) {
		e->compressed[t] = e->context[t] / 4;
		if (e->compressed[t] <= room)
			continue;
		e->compressed[t] = 0;
		v4_model_report(m, (uint32_t)e->token_row[t],
				SPMLA_FAULT_LOGITS);
	}
}

/* Rows of index logits: a key for every whole 4 tokens. */
static void
expect_logits(v4_model *m, expected *e, uint32_t tokens)
{
	const uint64_t all = m->plan->logits_elems;
	uint64_t used = 0;
	uint32_t t;

	for (t = 0; t < tokens; t++) {
		const uint64_t keys = (uint64_t)e->context[t] / 4;
		const uint64_t whole = (keys + 255) / 256 * 256;

		e->logits[t] = (int64_t)used;
		if (keys > all - used) {
			v4_model_report(m, (uint32_t)e->token_row[t],
					SPMLA_FAULT_LOGITS);
		} else {
			e->compressed[t] = (int32_t)keys;
			used = used + whole < all ? used + whole : all;
		}
	}
	e->logits[tokens] = (int64_t)used;
}

/* Where a key that ends with this token goes; 0 if there is no place for it, or
 * for an earlier key. */
static uint32_t
expect_key(v4_model *m, const expected *e, int64_t *slot, uint32_t t,
	   uint32_t group, uint32_t ratio)
{
	const uint32_t row = (uint32_t)e->token_row[t];
	const uint32_t keys = (uint32_t)e->context[t] / ratio;
	const uint32_t of_page =
		m->plan->config.groups[group].page_tokens / ratio;

	if (keys == 0)
		return 1;
	if (e->context[t] % (int32_t)ratio != 0) {
		if ((keys - 1) / of_page < v4_model_written(m, group, row))
			return 1;
		v4_model_report(m, row, SPMLA_FAULT_PAGE);
		return 0;
	}
	*slot = v4_model_slot(m, group, row,
			      (uint32_t)e->context[t] / ratio - 1, ratio);
	if (*slot < 0)
		v4_model_report(m, row, SPMLA_FAULT_PAGE);
	return *slot >= 0;
}

/* Slots of `len` entries from `start` on; a page that is not there is reported
 * once. An entry is `ratio` positions. Returns how many pages are missing. */
static uint32_t
expect_row(v4_model *m, uint32_t group, uint32_t row, uint32_t start,
	   uint32_t len, uint32_t ratio, int32_t *out)
{
	const uint32_t of_page =
		m->plan->config.groups[group].page_tokens / ratio;
	uint32_t missing = 0, k;

	for (k = 0; k < len; k++) {
		out[k] =
			(int32_t)v4_model_slot(m, group, row, start + k, ratio);
		if (out[k] < 0 && (k == 0 || (start + k) % of_page == 0)) {
			v4_model_report(m, row, SPMLA_FAULT_PAGE);
			missing++;
		}
	}
	return missing;
}

static void
expect_windows(v4_model *m, expected *e, uint32_t t)
{
	const uint32_t window = m->plan->config.window_tokens;
	const uint32_t row = (uint32_t)e->token_row[t];
	uint32_t n = (uint32_t)e->context[t], start;
	uint32_t placed;

	placed = expect_key(m, e, &e->c4a_slot[t], t, SPMLA_GROUP_C4A, 4);
	if (v4_model_owner(m, SPMLA_GROUP_INDEX) != SPMLA_GROUP_C4A)
		placed &= expect_key(m, e, &e->index_slot[t], t,
				     SPMLA_GROUP_INDEX, 4);
	placed &=
		expect_key(m, e, &e->c128a_slot[t], t, SPMLA_GROUP_C128A, 128);
	if (!placed || (uint32_t)e->compressed[t] < n / 4)
		n = 0;
	start = n > window ? n - window : 0;
	if (expect_row(m, SPMLA_GROUP_SWA, row, start, n - start, 1,
		       e->swa[t]) +
	    expect_row(m, SPMLA_GROUP_C128A, row, 0, n / 128, 128, e->c128a[t]))
		n = start = 0;
	e->compressed[t] = (int32_t)(n / 4);
	e->c128a_len[t] = (int32_t)(n / 128);
	e->swa_len[t] = (int32_t)(n - start);
}

static void
expect_all(v4_model *m, expected *e, const spmla_shape *shape)
{
	uint32_t t = 0, b, j;

	memset(e, 0, sizeof *e);
	for (j = 0; j < V4_TOKENS; j++)
		e->slot[j] = e->c4a_slot[j] = e->index_slot[j] =
			e->c128a_slot[j] = -1;
	for (b = 0; b < shape->requests; b++) {
		const spmla_request *r = &m->request[b];

		e->start[b] = (int32_t)t;
		if (b < m->requests && r->row < V4_ROWS)
			e->row[b] = (int32_t)r->row;
		for (j = 0; j < r->query_tokens; j++)
			expect_token(m, e, t++, b, j);
	}
	e->start[b] = (int32_t)t;
	if (is_prefill(m, shape))
		expect_rows(m, e, shape);
	else
		expect_logits(m, e, shape->tokens);
	for (t = 0; t < shape->tokens; t++)
		expect_windows(m, e, t);
}

/* ---- Comparing --------------------------------------------------------- */

#define CHECK_BUFFER(f, buf, want, n) \
	check_buffer(f, SPMLA_BUF_##buf, #buf, want, 0, n, sizeof *(want))

/* n elements of the buffer, from `first` on. */
static void
check_buffer(const fixture *f, spmla_buf buf, const char *name,
	     const void *want, uint64_t first, uint32_t n, uint64_t elem_bytes)
{
	uint64_t bytes;
	const uint8_t *got = spmla_view(f->ctx, buf, &bytes);
	uint32_t i;

	ck_assert_uint_ge(bytes, (first + n) * elem_bytes);
	got += first * elem_bytes;
	for (i = 0; i < n; i++)
		if (memcmp(got + i * elem_bytes,
			   (const uint8_t *)want + i * elem_bytes,
			   elem_bytes) != 0)
			ck_abort_msg("%s[%u]: got %d, want %d", name,
				     (uint32_t)first + i,
				     *(const int32_t *)(got + i * elem_bytes),
				     *(const int32_t *)((const uint8_t *)want +
							i * elem_bytes));
}

/* Rows of a piece lie one behind the other, inside the budget; the next piece
 * begins where the first did, and not before there is no room. */
static void
check_pieces(const v4_model *m, const fixture *f, const expected *e,
	     uint32_t tokens)
{
	const int64_t *starts =
		spmla_view(f->ctx, SPMLA_BUF_PIECE_ROW_STARTS, NULL);
	const int64_t room = (int64_t)m->plan->config.logits_budget_bytes / 4;
	const int64_t stride = starts[1];
	uint32_t t;

	ck_assert_int_eq(starts[0], 0);
	ck_assert_int_eq(stride % 256, 0);
	for (t = 0; t < tokens; t++) {
		ck_assert_int_le(e->compressed[t], stride);
		ck_assert_int_le(starts[t] + stride, room);
		if (t > 0 && starts[t] == 0)
			ck_assert_int_gt(starts[t - 1] + 2 * stride, room);
		else if (t > 0)
			ck_assert_int_eq(starts[t], starts[t - 1] + stride);
	}
}

static void
check_buffers(v4_model *m, fixture *f, const spmla_shape *shape)
{
	static expected e;
	const spmla_config *c = &f->plan.config;
	const uint32_t width = (c->max_context_tokens / 128 + 127) / 128 * 128;
	uint32_t t;

	expect_all(m, &e, shape);
	CHECK_BUFFER(f, STEP_REQUESTS, m->request, shape->requests);
	CHECK_BUFFER(f, QUERY_START_LOC, e.start, shape->requests + 1);
	CHECK_BUFFER(f, SEQ_LENS, m->len, shape->requests);
	CHECK_BUFFER(f, REQ_ROW, e.row, shape->requests);
	CHECK_BUFFER(f, REQ_ID_PER_TOKEN, e.req_id, shape->tokens);
	CHECK_BUFFER(f, TOKEN_ROW, e.token_row, shape->tokens);
	CHECK_BUFFER(f, POSITIONS, e.position, shape->tokens);
	CHECK_BUFFER(f, CONTEXT_LENS, e.context, shape->tokens);
	CHECK_BUFFER(f, SLOT_MAPPING, e.slot, shape->tokens);
	if (is_prefill(m, shape))
		check_pieces(m, f, &e, shape->tokens);
	else
		CHECK_BUFFER(f, LOGITS_ROW_STARTS, e.logits, shape->tokens + 1);
	CHECK_BUFFER(f, COMPRESSED_LENS, e.compressed, shape->tokens);
	CHECK_BUFFER(f, COMPRESSED_SLOT_MAPPING_C4A, e.c4a_slot, shape->tokens);
	if (v4_model_owner(m, SPMLA_GROUP_INDEX) != SPMLA_GROUP_C4A)
		CHECK_BUFFER(f, COMPRESSED_SLOT_MAPPING_INDEX, e.index_slot,
			     shape->tokens);
	CHECK_BUFFER(f, COMPRESSED_SLOT_MAPPING_C128A, e.c128a_slot,
		     shape->tokens);
	CHECK_BUFFER(f, SWA_LENS, e.swa_len, shape->tokens);
	CHECK_BUFFER(f, C128A_LENS, e.c128a_len, shape->tokens);
	for (t = 0; t < shape->tokens; t++) {
		check_buffer(f, SPMLA_BUF_SWA_INDICES, "SWA_INDICES", e.swa[t],
			     (uint64_t)t * c->window_tokens,
			     (uint32_t)e.swa_len[t], sizeof e.swa[t][0]);
		check_buffer(f, SPMLA_BUF_C128A_INDICES, "C128A_INDICES",
			     e.c128a[t], (uint64_t)t * width,
			     (uint32_t)e.c128a_len[t], sizeof e.c128a[t][0]);
	}
}

static const char *const names[SPMLA_V4_GROUPS] = {
	"SWA",       "C4A",         "C128A",      "INDEX",
	"STATE_C4A", "STATE_C128A", "STATE_INDEX"};

/* Every table of SpMLA's own, whatever the step used of it. */
static void
check_table(v4_model *m, fixture *f, uint32_t g)
{
	const spmla_buf buf =
		g ? (spmla_buf)(SPMLA_BUF_BLOCK_TABLE_C4A + 3 * (g - 1))
		  : SPMLA_BUF_BLOCK_TABLE_MAIN;
	const int32_t *table = spmla_view(f->ctx, buf, NULL);
	const int32_t *cols = spmla_view(f->ctx, (spmla_buf)(buf + 1), NULL);
	const ref_table *t = &m->tables[g];
	uint32_t row, col;

	ck_assert(table && cols);
	for (row = 0; row < V4_ROWS; row++) {
		const int32_t end = cols[V4_ROWS + row];
		const uint32_t written = v4_model_written(m, g, row);

		ck_assert_int_eq(cols[row],
				 written < t->columns ? (int32_t)written : end);
		for (col = 0; col < t->columns; col++) {
			const uint32_t at = row * t->columns + col;
			const int32_t got = (int32_t)col < end ? table[at] : -1;

			if (got != t->pages[at])
				ck_abort_msg("table %s[%u][%u]: got %d, "
					     "want %d",
					     names[g], row, col, got,
					     t->pages[at]);
		}
	}
}

void
v4_model_check(v4_model *m, fixture *f, const spmla_shape *shape)
{
	spmla_device_status status;
	uint32_t g;

	check_buffers(m, f, shape);
	for (g = 0; g < SPMLA_V4_GROUPS; g++)
		if (f->plan.config.groups[g].source == SPMLA_TABLE_RING)
			check_table(m, f, g);
	status = fixture_status(f);
	ck_assert_uint_eq(status.count, m->faults);
	if (m->faults) {
		ck_assert_str_eq(spmla_fault_name(status.fault),
				 spmla_fault_name(m->fault));
		ck_assert_uint_eq(status.row, m->fault_row);
		m->fault_step = status.step;
	}
	m->faults = 0;
	ck_assert_int_eq(spmla_status_clear(f->ctx), SPMLA_OK);
}
