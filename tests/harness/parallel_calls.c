/* SPDX-License-Identifier: Apache-2.0
 *
 * See parallel_world.h: the calls, of random data.
 */
#include <string.h>

#include "tests/harness/parallel_draw.h"

enum { IN_BYTES = 24 << 20, OUT_BYTES = 16 << 20, SPLIT_ROWS = 80 };

/* Slots of which some are skipped and some occur several times. */
static int64_t *
slot_mapping(par_world *w)
{
	int64_t *x = par_in(w, w->tokens * sizeof *x);
	uint32_t i;

	for (i = 0; i < w->tokens; i++) {
		x[i] = (int64_t)par_below(w, PAR_PAGES * PAR_ENTRIES);
		if (par_below(w, 8) == 0)
			x[i] = -1;
		if (i > 0 && par_below(w, 4) == 0)
			x[i] = x[par_below(w, i)];
		if (par_is_bad(w, 6))
			x[i] = PAR_PAGES * PAR_ENTRIES + par_below(w, 5);
	}
	return x;
}

static void
make_inserts(par_world *w)
{
	spmla_kv_insert_args *kv = &w->kv_insert;
	spmla_indexer_k_insert_args *k = &w->k_insert;

	kv->struct_bytes = (uint32_t)sizeof *kv;
	kv->tokens = w->tokens;
	kv->dtype = SPMLA_DTYPE_BF16;
	kv->scale_mode = SPMLA_SCALE_POW2;
	kv->kv_c = par_bf16s(w, w->tokens * 512);
	kv->k_pe = par_bf16s(w, w->tokens * 64);
	kv->kv_c_stride_elems = 512;
	kv->k_pe_stride_elems = 64;
	kv->slot_mapping = slot_mapping(w);
	kv->cache = par_cache_of(par_out(w, PAR_PAGES * PAR_ENTRIES * 656),
				 SPMLA_LAYOUT_FP8_DS_MLA);
	k->struct_bytes = (uint32_t)sizeof *k;
	k->tokens = w->tokens;
	k->dtype = SPMLA_DTYPE_BF16;
	k->scale_mode = SPMLA_SCALE_POW2;
	k->rope_style = SPMLA_ROPE_NEOX;
	k->cos_sin_rows = 50;
	k->norm_eps = 1e-6f;
	k->k = par_bf16s(w, w->tokens * 128);
	k->k_stride_elems = 128;
	k->slot_mapping = slot_mapping(w);
	k->norm_weight = par_floats(w, 128);
	k->norm_bias = par_floats(w, 128);
	k->positions = par_numbers(w, w->tokens, 50, 6);
	k->cos_sin = par_floats(w, 50 * 64);
	k->cache = par_cache_of(par_out(w, PAR_PAGES * PAR_ENTRIES * 132),
				SPMLA_LAYOUT_INDEX_FP8);
}

static void
make_q_prep(par_world *w)
{
	const uint32_t heads = w->tokens * PAR_INDEX_HEADS;
	spmla_indexer_q_prep_args *a = &w->q_prep;

	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = w->tokens;
	a->heads = PAR_INDEX_HEADS;
	a->rope_style = SPMLA_ROPE_INTERLEAVED;
	a->scale_floor = SPMLA_Q_SCALE_FUSED;
	a->weights_dtype = SPMLA_DTYPE_F32;
	a->cos_sin_rows = 50;
	a->softmax_scale = SPMLA_INDEX_SOFTMAX_SCALE;
	a->head_scale = 0.25f;
	a->q = par_bf16s(w, heads * 128);
	a->q_token_stride_elems = PAR_INDEX_HEADS * 128;
	a->q_head_stride_elems = 128;
	a->weights = par_floats(w, heads);
	a->weights_stride_elems = PAR_INDEX_HEADS;
	a->positions = par_numbers(w, w->tokens, 50, 6);
	a->cos_sin = par_floats(w, 50 * 64);
	a->q_out = par_out(w, heads * 128);
	a->weights_out = par_out(w, heads * 4);
}

static void
make_logits(par_world *w)
{
	spmla_mqa_logits_args *a = &w->logits;
	int64_t *starts = par_in(w, w->tokens * sizeof *starts), at = 0;
	uint32_t t;

	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = w->tokens;
	a->heads = PAR_INDEX_HEADS;
	a->rows = PAR_ROWS;
	a->columns = PAR_COLUMNS;
	a->table_stride_elems = PAR_COLUMNS + 1;
	a->q = par_codes(w, w->tokens * PAR_INDEX_HEADS * 128);
	a->weights = par_floats(w, w->tokens * PAR_INDEX_HEADS);
	a->token_row = par_numbers(w, w->tokens, PAR_ROWS, 8);
	a->context_lens =
		par_numbers(w, w->tokens, PAR_COLUMNS * PAR_ENTRIES + 1, 8);
	for (t = 0; t < w->tokens; t++) {
		starts[t] = at;
		if (a->context_lens[t] > 0 && a->context_lens[t] < 1000)
			at += a->context_lens[t] + (int64_t)par_below(w, 9);
		if (par_is_bad(w, 8))
			starts[t] = -5;
	}
	a->row_starts = starts;
	a->logits_elems = w->bad ? (uint64_t)at / 4 * 3 + 1 : (uint64_t)at;
	a->block_table =
		par_numbers(w, PAR_ROWS * (PAR_COLUMNS + 1), PAR_PAGES, 9);
	a->cache = par_cache(w, SPMLA_LAYOUT_INDEX_FP8);
	a->logits = par_out(w, a->logits_elems * 4 + 4);
}

static void
make_selection(par_world *w)
{
	const spmla_mqa_logits_args *l = &w->logits;
	spmla_topk_args *a = &w->topk;
	spmla_index_map_args *m = &w->index_map;

	a->struct_bytes = (uint32_t)sizeof *a;
	a->rows = w->tokens;
	a->k = 37;
	a->logits = par_floats(w, (uint32_t)l->logits_elems + 1);
	a->logits_elems = l->logits_elems;
	a->row_starts = l->row_starts;
	a->context_lens = l->context_lens;
	a->indices = par_out(w, w->tokens * 40 * 4);
	a->indices_stride_elems = 40;
	a->lens = par_out(w, w->tokens * 4);
	m->struct_bytes = (uint32_t)sizeof *m;
	m->tokens = w->tokens;
	m->k = 37;
	m->rows = PAR_ROWS;
	m->columns = PAR_COLUMNS;
	m->table_stride_elems = PAR_COLUMNS + 1;
	m->page_tokens = PAR_ENTRIES;
	m->pool_pages = PAR_PAGES;
	m->token_row = l->token_row;
	m->block_table = l->block_table;
	m->indices =
		par_numbers(w, w->tokens * 37, PAR_COLUMNS * PAR_ENTRIES, 9);
	m->indices_stride_elems = 37;
	m->slots = par_out(w, w->tokens * 37 * 4);
	m->slots_stride_elems = 37;
	m->valid_counts = par_out(w, w->tokens * 4);
	m->context_lens = w->bad ? l->context_lens : NULL;
}

/* The tokens' blocks cut up into parts, as tile_sched would or at random. */
static void
cut(par_world *w, int32_t *parts, int32_t *splits)
{
	uint32_t t, n = 0;

	splits[0] = 0;
	for (t = 0; t < w->tokens; t++) {
		const uint32_t left = PAR_PARTS - n;
		const int32_t pieces =
			left > 4 ? 1 + (int32_t)par_below(w, 3) : 1;
		const int32_t blocks = w->decode.topk_lens[t] > 64 ? 2 : 1;
		int32_t i;

		for (i = 0; left > 1 && i < pieces; i++) {
			const int32_t row[8] = {(int32_t)t, (int32_t)t,
						blocks * i / pieces,
						blocks * (i + 1) / pieces, i};

			memcpy(parts + 8 * n++, row, sizeof row);
		}
		splits[t + 1] = splits[t] + pieces;
	}
	for (; n < PAR_PARTS; n++) {
		const int32_t idle[8] = {(int32_t)w->tokens};

		memcpy(parts + 8 * n, idle, sizeof idle);
	}
	if (w->bad)
		parts[8 * par_below(w, PAR_PARTS)] = -3;
}

static void
make_decode(par_world *w)
{
	spmla_sparse_decode_args *a = &w->decode, *p = &w->parts;
	int32_t *parts = par_in(w, PAR_PARTS * 32), *splits = par_in(w, 64 * 4);

	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = w->tokens;
	a->heads = PAR_HEADS;
	a->topk = PAR_TOPK;
	a->softmax_scale = 0.05f;
	a->q = par_bf16s(w, w->tokens * PAR_HEADS * 576);
	a->q_token_stride_elems = PAR_HEADS * 576;
	a->q_head_stride_elems = 576;
	a->slots = par_numbers(w, w->tokens * PAR_TOPK, PAR_PAGES * PAR_ENTRIES,
			       9);
	a->slots_stride_elems = PAR_TOPK;
	a->topk_lens = par_numbers(w, w->tokens, 129, 9);
	a->attn_sink = par_floats(w, PAR_HEADS);
	a->out = par_out(w, w->tokens * PAR_HEADS * 512 * 2);
	a->out_token_stride_elems = PAR_HEADS * 512;
	a->out_head_stride_elems = 512;
	a->lse = par_out(w, w->tokens * PAR_HEADS * 4);
	a->lse_token_stride_elems = 1;
	a->lse_head_stride_elems = w->tokens;
	a->cache = par_cache(w, SPMLA_LAYOUT_FP8_DS_MLA);
	cut(w, parts, splits);
	*p = *a;
	p->heads = 3;
	p->parts = PAR_PARTS;
	p->tile_scheduler_metadata = parts;
	p->num_splits = splits;
	p->split_rows = SPLIT_ROWS;
	p->split_out = par_out(w, SPLIT_ROWS * 3 * 512 * 4);
	p->split_lse = par_out(w, SPLIT_ROWS * 3 * 4);
}

static void
make_gathers(par_world *w)
{
	spmla_indexer_k_gather_args *k = &w->k_gather;
	spmla_kv_gather_args *kv = &w->kv_gather;
	int32_t *starts = par_in(w, (PAR_ROWS + 1) * 4);
	uint32_t b;

	for (b = 0; b <= PAR_ROWS; b++)
		starts[b] = (int32_t)(b * PAR_KEYS / PAR_ROWS);
	if (w->bad)
		starts[1 + par_below(w, PAR_ROWS - 1)] -= 300;
	k->struct_bytes = (uint32_t)sizeof *k;
	k->requests = PAR_ROWS;
	k->keys = PAR_KEYS;
	k->rows = PAR_ROWS;
	k->columns = PAR_COLUMNS;
	k->table_stride_elems = PAR_COLUMNS + 1;
	k->cu_seq_lens = starts;
	k->req_row = par_numbers(w, PAR_ROWS, PAR_ROWS, 6);
	k->block_table = w->logits.block_table;
	k->dst_k = par_out(w, PAR_KEYS * 128);
	k->dst_scale = par_out(w, PAR_KEYS * 4);
	k->cache = w->logits.cache;
	kv->struct_bytes = (uint32_t)sizeof *kv;
	kv->requests = PAR_ROWS;
	kv->keys = PAR_KEYS;
	kv->rows = PAR_ROWS;
	kv->columns = PAR_COLUMNS;
	kv->table_stride_elems = PAR_COLUMNS + 1;
	kv->workspace_starts = starts;
	kv->seq_starts = par_numbers(w, PAR_ROWS, 20, 6);
	kv->req_row = k->req_row;
	kv->block_table = k->block_table;
	kv->dst = par_out(w, PAR_KEYS * 576 * 2);
	kv->dst_stride_elems = 576;
	kv->cache = w->decode.cache;
}

static void
make_prefill(par_world *w)
{
	spmla_mqa_logits_gathered_args *g = &w->gathered;
	spmla_sparse_prefill_args *a = &w->prefill;

	g->struct_bytes = (uint32_t)sizeof *g;
	g->tokens = w->tokens;
	g->heads = PAR_INDEX_HEADS;
	g->keys = PAR_KEYS;
	g->form = par_below(w, 3);
	g->columns =
		g->form == SPMLA_LOGITS_COMPRESSED && w->bad ? 300 : PAR_KEYS;
	g->q = w->logits.q;
	g->weights = w->logits.weights;
	g->weights_stride_elems = PAR_INDEX_HEADS;
	g->k = par_codes(w, PAR_KEYS * 128);
	g->k_scales = par_floats(w, PAR_KEYS);
	g->starts = par_numbers(w, w->tokens, PAR_KEYS + 1, 8);
	g->ends = par_numbers(w, w->tokens, PAR_KEYS + 1, 8);
	g->logits = par_out(w, w->tokens * 705 * 4);
	g->logits_stride_elems = 705;
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = w->tokens;
	a->heads = PAR_HEADS;
	a->dim = 576;
	a->topk = PAR_TOPK;
	a->kv_rows = PAR_KEYS;
	a->softmax_scale = 0.05f;
	a->q = w->decode.q;
	a->q_token_stride_elems = PAR_HEADS * 576;
	a->q_head_stride_elems = 576;
	a->kv = par_bf16s(w, PAR_KEYS * 576);
	a->kv_stride_elems = 576;
	a->indices = par_numbers(w, w->tokens * PAR_TOPK, PAR_KEYS, 9);
	a->indices_stride_elems = PAR_TOPK;
	a->topk_lens = w->decode.topk_lens;
	a->attn_sink = w->decode.attn_sink;
	a->out = par_out(w, w->tokens * PAR_HEADS * 512 * 2);
	a->out_token_stride_elems = PAR_HEADS * 512;
	a->out_head_stride_elems = 512;
	a->max_logits = par_out(w, w->tokens * PAR_HEADS * 4);
	a->lse = par_out(w, w->tokens * PAR_HEADS * 4);
	a->lse_token_stride_elems = PAR_HEADS;
	a->lse_head_stride_elems = 1;
}

void
par_open(par_world *w, uint32_t tokens, uint32_t bad, uint64_t seed)
{
	memset(w, 0, sizeof *w);
	w->tokens = tokens;
	w->bad = bad;
	w->rng = seed;
	w->in_bytes = IN_BYTES;
	w->in = test_alloc(w->in_bytes, 0);
	w->out_bytes = OUT_BYTES;
	w->out = test_alloc(w->out_bytes, 0xAB);
	make_inserts(w);
	make_q_prep(w);
	make_logits(w);
	make_selection(w);
	make_decode(w);
	make_gathers(w);
	make_prefill(w);
}
