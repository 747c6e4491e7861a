/* SPDX-License-Identifier: Apache-2.0
 *
 * See kv_gather_rig.h.
 */
#include "tests/ops/cache/kv_gather_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/narrow_ref.h"
#include "tests/reference/v4_row_ref.h"

void
kv_gather_open(kv_gather_rig *r, uint32_t layout, uint32_t entries,
	       uint32_t rows, uint32_t columns, uint64_t pad)
{
	gather_open(&r->g, layout, entries, rows, columns, pad);
	r->dst = test_alloc(
		KV_GATHER_KEYS * (KV_GATHER_DIM + KV_GATHER_GAP) * 2, 0);
	memset(&r->a, 0, sizeof r->a);
	r->a.struct_bytes = (uint32_t)sizeof r->a;
	r->a.rows = r->g.rows;
	r->a.columns = r->g.columns;
	r->a.table_stride_elems = r->g.stride;
	r->a.block_table = r->g.table;
	r->a.dst = r->dst;
	r->a.dst_stride_elems = KV_GATHER_DIM + KV_GATHER_GAP;
	r->a.cache = r->g.cache;
	r->a.kv_scale = layout == SPMLA_LAYOUT_V4_E4M3 ? 0.3f : 0;
}

void
kv_gather_close(kv_gather_rig *r)
{
	gather_close(&r->g);
	free(r->dst);
}

void
kv_gather_check(kv_gather_rig *r, const gather_key *model, uint32_t faults)
{
	static uint16_t want[KV_GATHER_KEYS * (KV_GATHER_DIM + KV_GATHER_GAP)];
	uint32_t n;

	memset(want, 123, sizeof want);
	memset(r->dst, 123, sizeof want);
	for (n = 0; n < r->a.keys; n++) {
		uint16_t *row =
			want + (r->a.dst - r->dst) + n * r->a.dst_stride_elems;

		if (!model[n].owned)
			continue;
		memset(row, 0, KV_GATHER_DIM * sizeof *row);
		if (model[n].page)
			v4_ref_read(&r->a.cache, model[n].page, model[n].entry,
				    r->a.kv_scale, row);
	}
	ck_assert_int_eq(spmla_status_clear(r->g.f.ctx), SPMLA_OK);
	ck_assert_int_eq(spmla_kv_gather(r->g.f.ctx, &r->a, NULL), SPMLA_OK);
	check_bytes(r->dst, want, sizeof want);
	ck_assert_uint_eq(fixture_status(&r->g.f).count, faults);
}

void
kv_gather_requests(kv_gather_rig *r, const int32_t *starts, uint32_t requests,
		   uint32_t keys)
{
	static gather_key model[KV_GATHER_KEYS];
	int64_t bounds[9];
	uint32_t b;

	r->a.requests = requests;
	r->a.keys = keys;
	r->a.workspace_starts = starts;
	for (b = 0; b < requests; b++)
		bounds[b] = starts[b];
	bounds[requests] = keys;
	kv_gather_check(r, model,
			gather_model(&r->g, bounds, requests, r->a.seq_starts,
				     model, keys));
}

void
kv_gather_slots(kv_gather_rig *r, const int32_t *slots, uint32_t keys)
{
	static gather_key model[KV_GATHER_KEYS];
	uint32_t n, faults = 0;

	memset(model, 0, sizeof model);
	r->a.keys = keys;
	r->a.slots = slots;
	for (n = 0; n < keys; n++) {
		const int64_t slot = slots[n],
			      per = r->a.cache.entries_per_page;

		model[n].owned = 1;
		if (slot >= 0 && slot / per < (int64_t)r->a.cache.pages) {
			model[n].page = (const uint8_t *)r->a.cache.base +
					(uint64_t)(slot / per) *
						r->a.cache.page_stride_bytes;
			model[n].entry = (uint64_t)(slot % per);
		}
		faults += slot >= 0 && !model[n].page;
	}
	kv_gather_check(r, model, faults);
}
