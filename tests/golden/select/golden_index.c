/* SPDX-License-Identifier: Apache-2.0
 *
 * Adapters of V4's index operations. Where a real kernel leaves the row of a
 * token without a slot as it was, or converts it all the same, the library
 * writes an empty row: golden_v4_rows.c makes the golden file say so.
 */
#include "tests/golden/golden_v4.h"

#include <string.h>

/* ---- swa_index ----------------------------------------------------------- */

/* The batch of a case of window metadata. */
typedef struct swa_case {
	const golden_tensor *starts, *lens, *table, *slots;
	golden_tensor *decode, *decode_lens, *prefill, *prefill_lens, *gather;
	uint32_t tokens, requests, decodes, prefills;
	int32_t *req_id, *row, *pos, *context, *rows; /* token_map's */
	double window, page;
} swa_case;

/* The rows and lengths of one part of the batch; a case may be without. */
static int
take_rows(golden_case *c, const char *rows, const char *lens,
	  golden_tensor **out, golden_tensor **out_lens)
{
	if (!golden_find(c, rows) && !golden_find(c, lens))
		return 1;
	*out = golden_need(c, rows, GOLDEN_I32, 3);
	*out_lens = golden_need(c, lens, GOLDEN_I32, 1);
	return golden_has(c, *out, (const int64_t[]){-1, 1, -1}) &&
	       golden_has(c, *out_lens, (*out)->shape);
}

static uint32_t
tokens_of(const golden_tensor *rows)
{
	return rows ? (uint32_t)rows->shape[0] : 0;
}

static int
take_swa(golden_case *c, swa_case *m)
{
	double decodes;

	m->starts = golden_need(c, "query_start_loc", GOLDEN_I32, 1);
	m->lens = golden_need(c, "seq_lens", GOLDEN_I32, 1);
	m->table = golden_need(c, "block_table", GOLDEN_I32, 2);
	m->slots = golden_need(c, "slot_mapping", GOLDEN_I64, 1);
	m->gather = golden_find(c, "prefill_gather_lens");
	if (m->gather)
		m->gather =
			golden_need(c, "prefill_gather_lens", GOLDEN_I32, 1);
	if (!golden_has(c, m->starts, (const int64_t[]){-1}) ||
	    !golden_has(c, m->lens, (const int64_t[]){-1}) ||
	    !golden_has(c, m->table, (const int64_t[]){-1, -1}) ||
	    !golden_has(c, m->slots, (const int64_t[]){-1}) ||
	    !take_rows(c, "decode_swa_indices", "decode_swa_lens", &m->decode,
		       &m->decode_lens) ||
	    !take_rows(c, "prefill_swa_indices", "prefill_swa_lens",
		       &m->prefill, &m->prefill_lens) ||
	    (golden_find(c, "prefill_gather_lens") &&
	     !golden_has(c, m->gather, (const int64_t[]){-1})) ||
	    !golden_need_param(c, "window", &m->window) ||
	    !golden_need_param(c, "bs", &m->page) ||
	    !golden_need_param(c, "decodes", &decodes))
		return 0;
	m->requests = (uint32_t)m->lens->shape[0];
	if (m->starts->shape[0] != (int64_t)m->requests + 1)
		return 0;
	m->decodes = (uint32_t)decodes;
	m->tokens = (uint32_t)golden_i32(m->starts, m->requests, 0);
	m->prefills = m->gather ? (uint32_t)m->gather->shape[0] : 0;
	return tokens_of(m->decode) + tokens_of(m->prefill) <= m->tokens &&
	       m->slots->shape[0] >= (int64_t)m->tokens &&
	       (!m->gather ||
		m->decodes + (uint64_t)m->prefills == m->requests);
}

/* Requests and positions of the tokens. */
static golden_verdict
map_tokens(golden_case *c, swa_case *m)
{
	const golden_tensor *map =
		golden_need(c, "token_to_req_indices", GOLDEN_I32, 1);
	spmla_token_map_args a = {0};
	uint32_t b;

	m->row = golden_scratch(c, m->tokens * sizeof *m->row);
	m->pos = golden_scratch(c, m->tokens * sizeof *m->pos);
	m->context = golden_scratch(c, m->tokens * sizeof *m->context);
	m->rows = golden_scratch(c, m->requests * sizeof *m->rows);
	if (!m->row || !m->pos || !m->context || !m->rows || !map ||
	    !golden_has(c, map, (const int64_t[]){(int64_t)m->tokens}))
		return GOLDEN_FAILED;
	for (b = 0; b < m->requests; b++)
		m->rows[b] = (int32_t)b;
	a.struct_bytes = (uint32_t)sizeof a;
	a.requests = m->requests;
	a.tokens = m->tokens;
	a.query_start_loc = golden_first(m->starts);
	a.seq_lens = golden_first(m->lens);
	a.req_row = m->rows;
	a.req_id_per_token = golden_first(map);
	a.token_row = m->row;
	a.positions = m->pos;
	a.context_lens = m->context;
	return golden_called(c, spmla_token_map(c->ctx, &a, NULL));
}

/* The tokens [first, first + the rows of `out`). */
static golden_verdict
run_windows(golden_case *c, const swa_case *m, int64_t first,
	    golden_tensor *out, const golden_tensor *lens, uint32_t requests)
{
	spmla_swa_index_args a = {0};

	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = tokens_of(out);
	a.window = (uint32_t)m->window;
	a.width = out ? (uint32_t)out->shape[2] : 0;
	a.rows = (uint32_t)m->table->shape[0];
	a.columns = (uint32_t)m->table->shape[1];
	a.table_stride_elems = (uint32_t)m->table->strides[0];
	a.page_tokens = (uint32_t)m->page;
	a.page_stride_rows = golden_page_stride(c);
	a.requests = requests;
	a.positions = m->pos + first;
	a.token_row = m->row + first;
	a.slot_mapping = (const int64_t *)golden_first(m->slots) + first;
	a.block_table = golden_first(m->table);
	if (out) {
		a.indices = golden_first(out);
		a.indices_stride_elems = out->strides[0];
		a.lens = golden_first(lens);
		golden_empty_rows(out, a.slot_mapping, a.tokens, a.width);
	}
	a.query_start_loc =
		(const int32_t *)golden_first(m->starts) + m->decodes;
	a.seq_lens = (const int32_t *)golden_first(m->lens) + m->decodes;
	if (requests)
		a.gather_lens = golden_first(m->gather);
	return golden_called(c, spmla_swa_index(c->ctx, &a, NULL));
}

static golden_verdict
run_swa(golden_case *c)
{
	golden_tensor *ragged = golden_find(c, "decode_swa_ragged_indices");
	golden_tensor *indptr = golden_find(c, "decode_swa_ragged_indptr");
	golden_verdict v;
	swa_case m = {0};

	if (!take_swa(c, &m))
		return golden_fail(c, "not a case of window metadata");
	v = map_tokens(c, &m);
	if (v == GOLDEN_RAN)
		v = run_windows(c, &m, 0, m.decode, m.decode_lens, 0);
	if (v == GOLDEN_RAN)
		v = run_windows(c, &m, tokens_of(m.decode), m.prefill,
				m.prefill_lens, m.prefills);
	/* slot_mapping >= 0, no op's output */
	golden_leave_out(c, "is_valid_token");
	if (v == GOLDEN_RAN && ragged && indptr && m.decode)
		v = golden_ragged(
			c, golden_first(m.decode), m.decode->strides[0],
			golden_first(m.decode_lens),
			(uint32_t)m.decode->shape[0],
			(uint32_t)m.decode->shape[2], 0, ragged, indptr);
	return v;
}

/* ---- c128a_index --------------------------------------------------------- */

/* The tensors of a case; the written columns of the buffers are params.maxc. */
static int
take_c128a(golden_case *c, spmla_c128a_index_args *a)
{
	const golden_tensor *pos = golden_find(c, "positions");
	const golden_tensor *req =
		golden_need(c, "token_to_req_indices", GOLDEN_I32, 1);
	const golden_tensor *table =
		golden_need(c, "block_table", GOLDEN_I32, 2);
	const golden_tensor *slots =
		golden_need(c, "slot_mapping", GOLDEN_I64, 1);
	double page, width, decodes;

	a->positions = golden_positions(c, "positions", 0, &a->positions_dtype);
	if (!a->positions || !golden_has(c, req, pos->shape) ||
	    !golden_has(c, slots, pos->shape) ||
	    !golden_has(c, table, (const int64_t[]){-1, -1}) ||
	    !golden_need_param(c, "bs", &page) ||
	    !golden_need_param(c, "maxc", &width) ||
	    !golden_need_param(c, "decode", &decodes))
		return 0;
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = (uint32_t)pos->shape[0];
	a->decode_tokens = (uint32_t)decodes;
	a->ratio = 128;
	a->width = (uint32_t)width;
	a->rows = (uint32_t)table->shape[0];
	a->columns = (uint32_t)table->shape[1];
	a->table_stride_elems = (uint32_t)table->strides[0];
	a->page_entries = (uint32_t)page;
	a->page_stride_rows = golden_page_stride(c);
	a->slot_mapping = golden_first(slots);
	a->token_row = golden_first(req);
	a->block_table = golden_first(table);
	return 1;
}

static golden_verdict
run_c128a(golden_case *c)
{
	golden_tensor *decode = golden_need(c, "global_decode", GOLDEN_I32, 2);
	golden_tensor *lens = golden_need(c, "decode_lens", GOLDEN_I32, 1);
	golden_tensor *prefill = golden_need(c, "prefill_local", GOLDEN_I32, 2);
	spmla_c128a_index_args a = {0};

	if (!take_c128a(c, &a) ||
	    !golden_has(c, decode, (const int64_t[]){-1, -1}) ||
	    !golden_has(c, prefill, decode->shape) ||
	    !golden_has(c, lens, decode->shape) || a.decode_tokens > a.tokens ||
	    a.tokens > decode->shape[0] || a.width > decode->shape[1])
		return golden_fail(c, "not a case of C128A metadata");
	a.decode_slots = golden_first(decode);
	a.decode_stride_elems = decode->strides[0];
	a.decode_lens = golden_first(lens);
	a.prefill_indices = golden_first(prefill);
	a.prefill_stride_elems = prefill->strides[0];
	golden_empty_rows(decode, a.slot_mapping, a.decode_tokens, a.width);
	golden_empty_rows(prefill, a.slot_mapping + a.decode_tokens,
			  a.tokens - a.decode_tokens, a.width);
	return golden_called(c, spmla_c128a_index(c->ctx, &a, NULL));
}

/* ---- index_map, compact -------------------------------------------------- */

int
golden_take_global(golden_case *c, spmla_index_map_args *a)
{
	const golden_tensor *in = golden_need(c, "topk_indices", GOLDEN_I32, 2);
	const golden_tensor *req =
		golden_need(c, "token_to_req_indices", GOLDEN_I32, 1);
	const golden_tensor *table =
		golden_need(c, "block_table", GOLDEN_I32, 2);
	const golden_tensor *valid =
		golden_need(c, "is_valid_token", GOLDEN_BOOL, 1);
	int64_t *slots, t;
	double page;

	if (!golden_has(c, in, (const int64_t[]){-1, -1}) ||
	    !golden_has(c, req, (const int64_t[]){-1}) ||
	    !golden_has(c, table, (const int64_t[]){-1, -1}) ||
	    !golden_has(c, valid, in->shape) || req->shape[0] < in->shape[0] ||
	    !golden_need_param(c, "block_size", &page))
		return 0;
	slots = golden_scratch(c, (uint64_t)in->shape[0] * sizeof *slots);
	if (!slots)
		return 0;
	for (t = 0; t < in->shape[0]; t++)
		slots[t] = ((uint8_t *)golden_first(valid))[t] ? 0 : -1;
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = (uint32_t)in->shape[0];
	a->k = (uint32_t)in->shape[1];
	a->rows = (uint32_t)table->shape[0];
	a->columns = (uint32_t)table->shape[1];
	a->table_stride_elems = (uint32_t)table->strides[0];
	a->page_tokens = (uint32_t)page;
	a->page_stride_rows = golden_page_stride(c);
	a->token_row = golden_first(req);
	a->block_table = golden_first(table);
	a->indices = golden_first(in);
	a->indices_stride_elems = in->strides[0];
	a->slot_mapping = slots;
	a->compact = 1;
	return 1;
}

uint32_t
golden_pages_missing(const spmla_index_map_args *a, uint32_t t)
{
	uint32_t k, missing = 0;

	for (k = 0; a->slot_mapping[t] >= 0 && k < a->k; k++) {
		const int32_t index =
			a->indices[t * a->indices_stride_elems + k];
		const int64_t row =
			(int64_t)a->token_row[t] * a->table_stride_elems;

		missing +=
			index >= 0 &&
			a->block_table[row + index / (int)a->page_tokens] < 0;
	}
	return missing;
}

static golden_verdict
run_global_topk(golden_case *c)
{
	golden_tensor *out =
		golden_need(c, "global_topk_indices", GOLDEN_I32, 2);
	golden_tensor *lens = golden_need(c, "topk_lens", GOLDEN_I32, 1);
	spmla_index_map_args a = {0};
	uint32_t t, missing = 0;

	if (!golden_take_global(c, &a) ||
	    !golden_has(c, out,
			(const int64_t[]){(int64_t)a.tokens, (int64_t)a.k}) ||
	    !golden_has(c, lens, out->shape))
		return golden_fail(c, "not a case of global top-k");
	a.slots = golden_first(out);
	a.slots_stride_elems = out->strides[0];
	a.valid_counts = golden_first(lens);
	golden_empty_rows(out, a.slot_mapping, a.tokens, a.k);
	for (t = 0; t < a.tokens; t++) {
		golden_want(
			lens, t,
			(int32_t)golden_compact_row(out, t, a.k, 0, INT64_MAX));
		missing += golden_pages_missing(&a, t);
	}
	return golden_reported(c, spmla_index_map(c->ctx, &a, NULL),
			       SPMLA_FAULT_PAGE, missing);
}

/* clang-format off: a line an op */
const golden_op golden_v4_index_ops[] = {
	{"c128a_topk_metadata", run_c128a},
	{"combine_topk_swa", golden_run_combine},
	{"combine_topk_swa_ragged", golden_run_combine_ragged},
	{"global_topk_indices_and_lens", run_global_topk},
	{"global_topk_ragged", golden_run_global_ragged},
	{"ragged_from_dense", golden_run_ragged},
	{"swa_metadata", run_swa},
	{NULL, NULL},
};
/* clang-format on */
