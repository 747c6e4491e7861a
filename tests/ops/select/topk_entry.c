/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of topk: ragged rows, rows of one stride, and rows that are
 * mapped, by the same launch, in place, or by the next one.
 */
#include "tests/harness/registry.h"

enum { RAGGED, DENSE, MAPPED, IN_PLACE, APART, VARIANTS };

static void
make_slots(draw *d, spmla_index_map_args *m, uint32_t variant)
{
	if (variant == IN_PLACE) {
		m->slots = (int32_t *)(uintptr_t)m->indices;
		m->slots_stride_elems = m->indices_stride_elems;
		return;
	}
	if (variant == APART && draw_choice(d, 2)) {
		m->capacity_elems = m->tokens * m->k;
		m->slots = draw_changed(
			d, draw_i32(d, m->tokens * (uint64_t)m->k, -1, 9));
		m->indptr = draw_out(d, m->tokens + UINT64_C(1), 4);
		return;
	}
	m->slots_stride_elems = draw_stride(d, m->k);
	m->slots = draw_out(
		d, draw_strided(m->tokens, m->slots_stride_elems, m->k), 4);
}

/* A map of all that topk selects, of `room` positions. */
static void
make_map(draw *d, spmla_topk_args *a, uint32_t room, uint32_t variant)
{
	spmla_index_map_args *m = &a->map;
	const uint32_t pool = draw_size(d, 20), page = draw_size(d, 16);
	const draw_table t = draw_pages(d, draw_many(d, 4, 6),
					(room + page - 1) / page, pool);

	m->struct_bytes = (uint32_t)sizeof *m;
	m->tokens = a->rows;
	m->k = a->k;
	m->page_tokens = page;
	m->pool_pages = pool;
	m->rows = t.rows;
	m->columns = t.columns;
	m->table_stride_elems = t.stride;
	m->block_table = t.pages;
	m->table_cols = t.cols;
	m->token_row = draw_i32(d, m->tokens, 0, m->rows);
	m->indices = a->indices;
	m->indices_stride_elems = a->indices_stride_elems;
	m->lens = draw_there(d) ? a->lens : NULL;
	make_slots(d, m, variant);
	m->valid_counts = draw_there(d) ? draw_out(d, m->tokens, 4) : NULL;
	if (draw_there(d)) /* past every index */
		m->context_lens =
			draw_i32(d, m->tokens, room, room + INT64_C(5));
	m->compact = draw_choice(d, 2);
	m->whole = draw_choice(d, 2);
	if (draw_there(d)) {
		m->other_lens = draw_i32(d, m->tokens, 0, 9);
		m->kept_lens = draw_out(d, m->tokens, 4);
	}
	if (variant != APART)
		return;
	m->entries_before = draw_choice(d, 3);
	if (draw_choice(d, 3) == 1)
		m->slot_mapping = draw_i64(d, m->tokens, -1, 4);
}

static void
make(draw *d, void *args)
{
	spmla_topk_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);
	const uint32_t room = draw_many(d, 70, 330);

	a->rows = draw_tokens(d);
	a->k = draw_many(d, 20, 37);
	a->logits_elems = (uint64_t)a->rows * room;
	a->logits = draw_f32(d, a->logits_elems);
	a->ties = draw_choice(d, 2);
	a->row_stride_elems = room;
	if (variant != DENSE)
		a->row_starts = draw_i64(d, a->rows, 0,
					 (int64_t)a->logits_elems - room + 1);
	a->context_lens = draw_i32(d, a->rows, 0, room + INT64_C(1));
	a->indices_stride_elems = draw_stride(d, a->k);
	a->indices = draw_out(
		d, draw_strided(a->rows, a->indices_stride_elems, a->k), 4);
	a->lens = draw_there(d) ? draw_out(d, a->rows, 4) : NULL;
	if (variant >= MAPPED)
		make_map(d, a, room, variant);
}

static const arg_error errors[] = {
	BAD_LEAST(topk, k, 0, 1),
	BAD_NULL(topk, logits),
	BAD_ENUM(topk, logits_dtype, 2, "0 or 1"),
	BAD_RANGE(topk, ties, 2, "got 2, want 0 or 1"),
	BAD_NULL(topk, context_lens),
	BAD_NULL(topk, indices),
	BAD_STRIDE(topk, indices_stride_elems, 19, 20),
};

static const arg_error dense_errors[] = {
	BAD_STRIDE(topk, row_stride_elems, 0, 1),
	BAD_RANGE(topk, row_stride_elems, INT64_MAX / 4 + 1,
		  "got 2305843009213693952, want at most "
		  "2305843009213693951"),
};

static const arg_error map_errors[] = {
	BAD_ARG(topk, map.struct_bytes, 8, SPMLA_E_STRUCT_SIZE,
		"SPMLA_E_STRUCT_SIZE: topk.map.struct_bytes: got 8, want 192"),
	BAD_EQUAL(topk, map.tokens, 3, 4),
	BAD_EQUAL(topk, map.k, 19, 20),
	BAD_ARG(topk, map.indices, 4, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: topk.map.indices (topk.indices): got 0, want "
		"1"),
	BAD_EQUAL(topk, map.indices_stride_elems, 21, 20),
	BAD_ARG(topk, map.rows, 0, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: index_map.rows: got 0, want at least 1"),
	BAD_ARG(topk, map.slots, 0, SPMLA_E_NULL,
		"SPMLA_E_NULL: index_map.slots: got NULL, want a pointer"),
};

OP_ENTRY(topk, .inputs = {INPUT_REAL(topk, logits, logits_dtype)},
	 .errors = {ERRORS(errors), ERRORS(dense_errors), ERRORS(map_errors)},
	 .none = {ARG(topk, rows, 0)}, .is_spread = 1);
