/* SPDX-License-Identifier: Apache-2.0
 *
 * See gather_rig.h.
 */
#include "tests/ops/cache/gather_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void
fill_table(gather_rig *g)
{
	const uint32_t cells = g->rows * g->stride;
	uint32_t i;

	g->table = test_alloc(cells * sizeof *g->table, 0);
	for (i = 0; i < cells; i++) {
		const uint32_t other = rng_below(&g->rng, i + 1);

		g->table[i] = g->table[other];
		g->table[other] = (int32_t)i;
	}
}

void
gather_open(gather_rig *g, uint32_t layout, uint32_t entries, uint32_t rows,
	    uint32_t columns, uint64_t pad)
{
	const uint64_t page_bytes =
		spmla_layout_entry_bytes(layout) * (uint64_t)entries;
	const spmla_cache cache = SPMLA_CACHE_INIT;
	spmla_config config;
	uint64_t i, bytes;

	memset(g, 0, sizeof *g);
	fixture_config(&config);
	fixture_open(&g->f, &config, 0);
	g->rng = test_seed() + entries + rows + columns;
	g->rows = rows;
	g->columns = columns;
	g->stride = columns + GATHER_TABLE_GAP;
	fill_table(g);
	g->cache = cache;
	g->cache.layout = layout;
	g->cache.entries_per_page = entries;
	g->cache.pages = rows * g->stride;
	g->cache.page_stride_bytes = page_bytes + pad;
	bytes = g->cache.pages * g->cache.page_stride_bytes;
	g->pool = test_alloc(bytes, 0);
	for (i = 0; i < bytes; i += 8) {
		const uint64_t noise = rng_next(&g->rng);

		memcpy(g->pool + i, &noise, sizeof noise);
	}
	g->cache.base = g->pool;
}

void
gather_close(gather_rig *g)
{
	fixture_close(&g->f);
	free(g->pool);
	free(g->table);
}

/* The page of a position, or NULL. */
static const uint8_t *
page_of(const gather_rig *g, int64_t row, int64_t position)
{
	int64_t column = position / g->cache.entries_per_page, page;

	if (g->ring)
		column %= g->columns;
	if (column >= (int64_t)g->columns)
		return NULL;
	if (g->cols && column >= g->cols[row])
		return NULL;
	page = g->table[row * g->stride + column];
	if (page < 0 || page >= (int64_t)g->cache.pages)
		return NULL;
	return (const uint8_t *)g->cache.base +
	       (uint64_t)page * g->cache.page_stride_bytes;
}

spmla_kv_gather_args
gather_two_requests(const gather_rig *g, const int32_t *starts, uint16_t *dst)
{
	return (spmla_kv_gather_args){.struct_bytes =
					      sizeof(spmla_kv_gather_args),
				      .requests = 2,
				      .keys = 50,
				      .rows = 2,
				      .columns = 4,
				      .table_stride_elems = 7,
				      .workspace_starts = starts,
				      .block_table = g->table,
				      .dst = dst,
				      .dst_stride_elems = 576,
				      .cache = g->cache};
}

uint32_t
gather_model(const gather_rig *g, const int64_t *bounds, uint32_t requests,
	     const int32_t *starts, gather_key *keys, uint32_t count)
{
	int64_t done = 0, n;
	uint32_t faults = 0, b;

	memset(keys, 0, count * sizeof *keys);
	for (b = 0; b < requests; b++) {
		const int64_t row = g->req_row ? g->req_row[b] : (int64_t)b;
		const int64_t start = starts ? starts[b] : 0;
		int64_t first = bounds[b], end = bounds[b + 1];
		uint32_t good = 1;

		if (first < done || end < first || end > (int64_t)count)
			good = 0;
		first = first < done ? done : first;
		first = first > (int64_t)count ? (int64_t)count : first;
		end = end < first ? first : end;
		end = end > (int64_t)count ? (int64_t)count : end;
		if (first < end &&
		    (row < 0 || row >= (int64_t)g->rows || start < 0))
			good = 0;
		faults += !good;
		for (n = first; n < end; n++) {
			keys[n].owned = 1;
			if (!good)
				continue;
			keys[n].page = page_of(g, row, start + n - first);
			keys[n].entry = (uint64_t)(start + n - first) %
					g->cache.entries_per_page;
			faults += !keys[n].page;
		}
		done = end;
	}
	return faults;
}

void
gather_status(gather_rig *g, uint32_t count, spmla_fault fault, uint32_t row)
{
	const spmla_device_status status = fixture_status(&g->f);

	ck_assert_uint_eq(status.count, count);
	ck_assert_uint_eq(status.fault, fault);
	if (count)
		ck_assert_uint_eq(status.row, row);
	ck_assert_int_eq(spmla_status_clear(g->f.ctx), SPMLA_OK);
}
