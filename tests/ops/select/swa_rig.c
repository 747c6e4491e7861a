/* SPDX-License-Identifier: Apache-2.0
 *
 * See swa_rig.h.
 */
#include "tests/ops/select/swa_rig.h"

#include <check.h>
#include <string.h>

void
swa_open(swa_rig *r)
{
	spmla_config config;

	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	memset(&r->io, 0x5A, sizeof r->io);
	r->a = (spmla_swa_index_args){.struct_bytes = sizeof r->a,
				      .tokens = 1,
				      .window = 3,
				      .width = 5,
				      .rows = 2,
				      .columns = 2,
				      .table_stride_elems = 4,
				      .page_tokens = 4,
				      .pool_pages = 8,
				      .positions = r->pos,
				      .token_row = r->row,
				      .slot_mapping = r->slot,
				      .block_table = r->table,
				      .indices = r->io.indices,
				      .indices_stride_elems = 7,
				      .lens = r->io.lens};
	memcpy(r->table, (const int32_t[]){5, 3, 0x7777, 0x7777, 2, 7, 0, 0},
	       8 * sizeof *r->table);
}

void
swa_close(swa_rig *r)
{
	fixture_close(&r->f);
}

void
swa_run(swa_rig *r)
{
	ck_assert_int_eq(spmla_swa_index(r->f.ctx, &r->a, NULL), SPMLA_OK);
}

/* ---- The rule once more -------------------------------------------------- */

static int64_t
replay_of(const spmla_swa_index_args *a, int64_t row)
{
	return a->replay_starts && a->replay_starts[row] > 0
		       ? a->replay_starts[row]
		       : 0;
}

/* The slot of position p, or -1. */
static int64_t
slot_of(const spmla_swa_index_args *a, int64_t row, int64_t p)
{
	const int64_t stride =
		a->page_stride_rows ? a->page_stride_rows : a->page_tokens;
	int64_t col = p / a->page_tokens, page;

	if (a->ring)
		col %= a->columns;
	if (col >= (int64_t)a->columns ||
	    (a->table_cols && col >= a->table_cols[row]))
		return -1;
	page = a->block_table[row * a->table_stride_elems + col];
	if (page < 0 || (a->pool_pages && page >= (int64_t)a->pool_pages) ||
	    page * stride + a->page_tokens > INT64_C(1) << 31)
		return -1;
	return page * stride + p % a->page_tokens;
}

static void
oracle_token(swa_rig *r, uint32_t t, index_faults *faults)
{
	const spmla_swa_index_args *a = &r->a;
	const int64_t row = a->token_row[t],
		      p = ((const int32_t *)a->positions)[t];
	int32_t *out = r->want.indices + t * a->indices_stride_elems;
	index_window w;
	int64_t k;

	for (k = 0; k < (int64_t)a->width; k++)
		out[k] = -1;
	r->want.lens[t] = 0;
	if (a->slot_mapping[t] < 0)
		return;
	if (row < 0 || row >= (int64_t)a->rows) {
		index_report(faults, t, SPMLA_FAULT_ROW);
		return;
	}
	if (p < 0 || replay_of(a, row) > p) {
		index_report(faults, (uint64_t)row, SPMLA_FAULT_POSITION);
		return;
	}
	w = index_window_of(p, a->window,
			    a->image_spans ? a->image_spans + 2 * t : NULL,
			    a->max_image, replay_of(a, row));
	r->want.lens[t] =
		(int32_t)(a->padded_lens ? a->width : w.last + 1 - w.first);
	for (k = w.first; k <= w.last; k++) {
		int32_t *to = &out[k - w.first];

		*to = (int32_t)slot_of(a, row, k);
		if (*to < 0 && (k == w.first || k % a->page_tokens == 0))
			index_report(faults, (uint64_t)row, SPMLA_FAULT_PAGE);
	}
}

static void
oracle_request(swa_rig *r, uint32_t b, index_faults *faults)
{
	const spmla_swa_index_args *a = &r->a;
	const int64_t q =
		(int64_t)a->query_start_loc[b + 1] - a->query_start_loc[b];
	const uint32_t row = a->req_row ? (uint32_t)a->req_row[b] : b;
	int64_t before = a->seq_lens[b] - q;

	r->want.gather[b] = 0;
	if (q < 0)
		return;
	if (a->replay_starts && row >= a->rows) {
		index_report(faults, b, SPMLA_FAULT_ROW);
		return;
	}
	before -= a->replay_starts ? replay_of(a, row) : 0;
	if (before < 0) {
		index_report(faults, row, SPMLA_FAULT_LENGTH);
		return;
	}
	if (before > (int64_t)a->window - 1)
		before = (int64_t)a->window - 1;
	r->want.gather[b] = (int32_t)(q + before);
}

void
swa_check(swa_rig *r)
{
	index_faults faults = {0};
	uint32_t i;

	memset(&r->io, 0x5A, sizeof r->io);
	memset(&r->want, 0x5A, sizeof r->want);
	for (i = 0; i < r->a.tokens; i++)
		oracle_token(r, i, &faults);
	for (i = 0; i < r->a.requests; i++)
		oracle_request(r, i, &faults);
	swa_run(r);
	ck_assert_mem_eq(&r->io, &r->want, sizeof r->io);
	index_check_faults(&r->f, &faults);
}

void
swa_expect(swa_rig *r, const int32_t *indices, uint32_t n, int32_t len)
{
	swa_run(r);
	ck_assert_mem_eq(r->io.indices, indices, n * sizeof *indices);
	ck_assert_int_eq(r->io.indices[n], 0x5A5A5A5A);
	ck_assert_int_eq(r->io.lens[0], len);
	ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
	swa_check(r);
}
