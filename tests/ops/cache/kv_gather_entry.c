/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of kv_gather: rows of V3.2, of V4, of V4 with one scale,
 * and rows by slot.
 */
#include "tests/harness/registry.h"

enum { V32, V4, E4M3, BY_SLOT, VARIANTS };

static uint32_t
layout_of(draw *d, uint32_t variant)
{
	if (variant == E4M3)
		return SPMLA_LAYOUT_V4_E4M3;
	if (variant == V4)
		return SPMLA_LAYOUT_V4_FP8 + draw_choice(d, 2);
	return variant == V32 || draw_choice(d, 2) == 0
		       ? SPMLA_LAYOUT_FP8_DS_MLA + draw_choice(d, 2)
		       : SPMLA_LAYOUT_V4_FP8 + draw_choice(d, 3);
}

/* Up to where the next request begins, or less. */
static int32_t *
ends_of(draw *d, const spmla_kv_gather_args *a)
{
	int32_t *ends = draw_i32(d, a->requests, 0, a->keys + INT64_C(1));
	const int32_t *starts = a->workspace_starts;
	uint32_t b;

	for (b = 0; d->kind != DRAW_BAD && b < a->requests; b++) {
		ends[b] =
			b + 1 < a->requests ? starts[b + 1] : (int32_t)a->keys;
		ends[b] -= ends[b] > starts[b];
	}
	return ends;
}

static void
make_requests(draw *d, spmla_kv_gather_args *a)
{
	draw_table t;

	a->requests = draw_many(d, 4, 6);
	a->workspace_starts = draw_starts(d, a->requests - 1,
					  a->keys - draw_choice(d, a->keys));
	if (draw_there(d))
		a->workspace_ends = ends_of(d, a);
	if (draw_there(d))
		a->seq_starts = draw_i32(d, a->requests, 0, 3);
	a->ring = draw_choice(d, 2);
	t = draw_pages(d, a->requests,
		       (a->keys + 2) / a->cache.entries_per_page + 1,
		       a->cache.pages);
	a->rows = t.rows;
	a->columns = t.columns;
	a->table_stride_elems = t.stride;
	a->block_table = t.pages;
	a->table_cols = t.cols;
	if (d->kind != DRAW_EXAMPLE && draw_there(d))
		a->req_row = draw_i32(d, a->requests, 0, t.rows);
}

static void
make(draw *d, void *args)
{
	spmla_kv_gather_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);
	uint32_t dim;

	a->cache = draw_cache(d, layout_of(d, variant));
	draw_encoding(d, &a->cache, DRAW_IN);
	a->keys = draw_many(d, 12, 700);
	if (variant == BY_SLOT)
		a->slots = draw_i32(d, a->keys, -1,
				    (int64_t)a->cache.pages *
					    a->cache.entries_per_page);
	else
		make_requests(d, a);
	dim = a->cache.layout < SPMLA_LAYOUT_V4_FP8 ? 576 : 512;
	a->dst_stride_elems = draw_stride(d, dim);
	a->dst =
		draw_out(d, draw_strided(a->keys, a->dst_stride_elems, dim), 2);
	a->kv_scale = draw_scale(d);
	a->kv_scale_at = draw_scale_at(d);
}

static const arg_error errors[] = {
	BAD_MOST(kv_gather, keys, 2147483648, 2147483647),
	BAD_LEAST(kv_gather, rows, 3, 4),
	BAD_ARGS(kv_gather, rows, 0, req_row, 4, SPMLA_E_RANGE,
		 "SPMLA_E_RANGE: kv_gather.rows: got 0, want at least 1"),
	BAD_LEAST(kv_gather, columns, 0, 1),
	BAD_LEAST(kv_gather, table_stride_elems, 2, 3),
	BAD_MOST(kv_gather, ring, 2, 1),
	BAD_NULL(kv_gather, workspace_starts),
	BAD_NULL(kv_gather, block_table),
	BAD_NULL(kv_gather, dst),
	BAD_STRIDE(kv_gather, dst_stride_elems, 575, 576),
	BAD_RANGE(kv_gather, cache.layout, SPMLA_LAYOUT_INDEX_FP8,
		  "got 3, want 1, 2, 4, 5 or 6"),
	BAD_CACHE(kv_gather, cache, "1, 2, 4, 5 or 6", 3264, 3280, 16),
	BAD_MOST(kv_gather, cache.encoding, 2, 1),
};

static const arg_error v4_errors[] = {
	BAD_STRIDE(kv_gather, dst_stride_elems, 511, 512),
	BAD_PAGES(kv_gather, cache, 2912, 2920, 8),
	BAD_MOST(kv_gather, cache.encoding, 2, 1),
	BAD_ARGS(kv_gather, cache.layout, SPMLA_LAYOUT_V4_BF16, cache.encoding,
		 1, SPMLA_E_RANGE,
		 "SPMLA_E_RANGE: kv_gather.cache.encoding: got 1, want at "
		 "most 0"),
};

static const arg_error e4m3_errors[] = {
	BAD_FLOAT(kv_gather, kv_scale),
	BAD_STRIDE(kv_gather, dst_stride_elems, 511, 512),
	BAD_MOST(kv_gather, cache.encoding, 2, 1),
};

static const arg_error slot_errors[] = {
	BAD_MOST(kv_gather, keys, 2147483648, 2147483647),
	BAD_NULL(kv_gather, dst),
};

OP_ENTRY(kv_gather,
	 .errors = {ERRORS(errors), ERRORS(v4_errors), ERRORS(e4m3_errors),
		    ERRORS(slot_errors)},
	 .none = {ARG(kv_gather, keys, 0)}, .is_spread = 1);
