/* SPDX-License-Identifier: Apache-2.0
 *
 * See c128a_rig.h.
 */
#include "tests/ops/select/c128a_rig.h"

#include <check.h>
#include <string.h>

void
c128a_good(c128a_rig *r)
{
	memset(&r->io, 0x5A, sizeof r->io);
	memset(r->pos, 0, sizeof r->pos);
	memset(r->row, 0, sizeof r->row);
	memset(r->slot, 0, sizeof r->slot);
	r->a = (spmla_c128a_index_args){.struct_bytes = sizeof r->a,
					.tokens = 2,
					.decode_tokens = 1,
					.ratio = 128,
					.width = 5,
					.rows = 2,
					.columns = 2,
					.table_stride_elems = 4,
					.page_entries = 2,
					.pool_pages = 8,
					.positions = r->pos,
					.slot_mapping = r->slot,
					.token_row = r->row,
					.block_table = r->table,
					.decode_slots = r->io.slots,
					.decode_stride_elems = 7,
					.decode_lens = r->io.lens,
					.prefill_indices = r->io.local,
					.prefill_stride_elems = 6,
					.prefill_lens = r->io.local_lens};
	memcpy(r->table, (const int32_t[]){5, 3, 0x7777, 0x7777, 2, 7, 0, 0},
	       8 * sizeof *r->table);
}

void
c128a_open(c128a_rig *r)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	c128a_good(r);
}

void
c128a_close(c128a_rig *r)
{
	fixture_close(&r->f);
}

void
c128a_run(c128a_rig *r)
{
	ck_assert_int_eq(spmla_c128a_index(r->f.ctx, &r->a, NULL), SPMLA_OK);
}

/* ---- The rule once more -------------------------------------------------- */

/* How many entries token t sees. */
static int64_t
count_of(const c128a_rig *r, uint32_t t, index_faults *faults)
{
	const int decode = t < r->a.decode_tokens;
	const int64_t row = decode ? r->a.token_row[t] : 0,
		      p = ((const int32_t *)r->a.positions)[t];
	int64_t n;

	if (r->a.slot_mapping[t] < 0)
		return 0;
	if (decode && (row < 0 || row >= (int64_t)r->a.rows)) {
		index_report(faults, t, SPMLA_FAULT_ROW);
		return 0;
	}
	if (p < 0) {
		index_report(faults, decode ? (uint64_t)row : t,
			     SPMLA_FAULT_POSITION);
		return 0;
	}
	n = (p + 1) / r->a.ratio;
	return n < (int64_t)r->a.width ? n : (int64_t)r->a.width;
}

static void
oracle_decode(c128a_rig *r, uint32_t t, index_faults *faults)
{
	const int64_t stride = r->a.page_stride_rows ? r->a.page_stride_rows
						     : r->a.page_entries;
	const int64_t n = count_of(r, t, faults), row = r->a.token_row[t];
	int64_t e;

	r->want.lens[t] = (int32_t)n;
	for (e = 0; e < (int64_t)r->a.width; e++) {
		const int64_t col = e / r->a.page_entries;
		int32_t *out = &r->want.slots[t * r->a.decode_stride_elems + e];
		int64_t page = -1;

		*out = -1;
		if (e >= n)
			continue;
		if (col < (int64_t)r->a.columns &&
		    (!r->a.table_cols || col < r->a.table_cols[row]))
			page = r->a.block_table[row * r->a.table_stride_elems +
						col];
		if (page < 0 ||
		    (r->a.pool_pages && page >= (int64_t)r->a.pool_pages) ||
		    page * stride + r->a.page_entries > INT64_C(1) << 31) {
			if (e % r->a.page_entries == 0)
				index_report(faults, (uint64_t)row,
					     SPMLA_FAULT_PAGE);
			continue;
		}
		*out = (int32_t)(page * stride + e % r->a.page_entries);
	}
}

static void
oracle_prefill(c128a_rig *r, uint32_t t, index_faults *faults)
{
	const int64_t n = count_of(r, t, faults);
	const uint32_t i = t - r->a.decode_tokens;
	int64_t e;

	if (r->a.prefill_lens)
		r->want.local_lens[i] = (int32_t)n;
	for (e = 0; e < (int64_t)r->a.width; e++)
		r->want.local[i * r->a.prefill_stride_elems + e] =
			e < n ? (int32_t)e : -1;
}

void
c128a_check(c128a_rig *r)
{
	index_faults faults = {0};
	uint32_t t;

	memset(&r->io, 0x5A, sizeof r->io);
	memset(&r->want, 0x5A, sizeof r->want);
	for (t = 0; t < r->a.tokens; t++)
		if (t < r->a.decode_tokens)
			oracle_decode(r, t, &faults);
		else
			oracle_prefill(r, t, &faults);
	c128a_run(r);
	ck_assert_mem_eq(&r->io, &r->want, sizeof r->io);
	index_check_faults(&r->f, &faults);
}

void
c128a_expect(c128a_rig *r, int32_t position, const int32_t *slots,
	     const int32_t *local, int32_t n)
{
	r->pos[0] = r->pos[1] = position;
	c128a_run(r);
	ck_assert_mem_eq(r->io.slots, slots, 5 * sizeof *slots);
	ck_assert_mem_eq(r->io.local, local, 5 * sizeof *local);
	ck_assert_int_eq(r->io.slots[5], 0x5A5A5A5A);
	ck_assert_int_eq(r->io.local[5], 0x5A5A5A5A);
	ck_assert_int_eq(r->io.lens[0], n);
	ck_assert_int_eq(r->io.local_lens[0], n);
	ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
	c128a_check(r);
}
