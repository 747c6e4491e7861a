/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of V4's lists of keys: the window, all compressed entries, both in
 * the rows of a prefill, lists one behind the other, and the top-k as slots
 * without gaps.
 */
#include "bench/cuda.h"

#include <stdio.h>

#include "spmla/ops/c128a_index.h"
#include "spmla/ops/combine_index.h"
#include "spmla/ops/index_map.h"
#include "spmla/ops/ragged_index.h"
#include "spmla/ops/swa_index.h"

enum {
	WINDOW = 128,
	PAGE = 64,
	COLUMNS = 1024, /* of a row of the tables */
	C128A = 1024,   /* entries: a context of 131072 */
	C128A_PAGE = 2,
	TOPK = 512
};

static struct {
	uint32_t tokens, requests, width;
	const twin *positions, *slots, *rows, *table, *lens, *seq, *gathered;
	const twin *starts, *indices, *out, *out2, *out3;
} ix;

/* A row of the table a token. */
static void
make_tokens(gpu *g, uint32_t tokens, uint32_t context)
{
	ix.tokens = tokens;
	ix.rows = make_order(g, tokens);
	ix.slots = make_slots(g, tokens);
	ix.positions = make_steps(g, tokens, (int32_t)context - 1, 0);
	ix.table = make_order(g, tokens * COLUMNS);
}

/* ---- swa_index ---------------------------------------------------------- */

static spmla_status
swa(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_swa_index_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = ix.tokens,
		.window = WINDOW,
		.width = WINDOW,
		.rows = ix.tokens,
		.columns = COLUMNS,
		.table_stride_elems = COLUMNS,
		.page_tokens = PAGE,
		.requests = ix.tokens,
		.positions = ix.positions->at[on],
		.token_row = ix.rows->at[on],
		.slot_mapping = ix.slots->at[on],
		.block_table = ix.table->at[on],
		.indices = ix.out->at[on],
		.indices_stride_elems = WINDOW,
		.lens = ix.out2->at[on],
		.query_start_loc = ix.starts->at[on],
		.seq_lens = ix.seq->at[on],
		.gather_lens = ix.out3->at[on],
	};

	return spmla_swa_index(ctx, &a, stream);
}

static void
one_swa(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "swa_index", .call = swa, .rate = BY_COPY};

	make_tokens(g, tokens, 32768);
	ix.starts = make_steps(g, tokens + 1, 0, 1);
	ix.seq = make_steps(g, tokens, 32768, 0);
	ix.out = c.outputs[0] = twin_make(g, tokens * UINT64_C(4) * WINDOW);
	ix.out2 = c.outputs[1] = twin_make(g, tokens * UINT64_C(4));
	ix.out3 = c.outputs[2] = twin_make(g, tokens * UINT64_C(4));
	c.bytes = tokens * (WINDOW * 4.0 + 44);
	op_row(g, &c, tokens, "tokens, window 128");
}

/* ---- c128a_index -------------------------------------------------------- */

static spmla_status
c128a(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_c128a_index_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = ix.tokens,
		.decode_tokens = ix.tokens,
		.ratio = 128,
		.width = C128A,
		.rows = ix.tokens,
		.columns = COLUMNS,
		.table_stride_elems = COLUMNS,
		.page_entries = C128A_PAGE,
		.positions = ix.positions->at[on],
		.slot_mapping = ix.slots->at[on],
		.token_row = ix.rows->at[on],
		.block_table = ix.table->at[on],
		.decode_slots = ix.out->at[on],
		.decode_stride_elems = C128A,
		.decode_lens = ix.out2->at[on],
	};

	return spmla_c128a_index(ctx, &a, stream);
}

static void
one_c128a(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "c128a_index", .call = c128a, .rate = BY_COPY};

	make_tokens(g, tokens, C128A * 128);
	ix.out = c.outputs[0] = twin_make(g, tokens * UINT64_C(4) * C128A);
	ix.out2 = c.outputs[1] = twin_make(g, tokens * UINT64_C(4));
	c.bytes = tokens * (C128A * 4.0 + C128A / C128A_PAGE * 4 + 20);
	op_row(g, &c, tokens, "tokens x 1024");
}

/* ---- combine_index and ragged_index ------------------------------------- */

static spmla_status
combine(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_combine_index_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = ix.tokens,
		.requests = 1,
		.window = WINDOW,
		.ratio = 4,
		.topk = TOPK,
		.width = TOPK + WINDOW,
		.request_rows = 65536,
		.window_row = 16384,
		.req_id_per_token = ix.starts->at[on],
		.context_lens = ix.lens->at[on],
		.seq_lens = ix.seq->at[on],
		.gather_lens = ix.gathered->at[on],
		.topk_indices = ix.indices->at[on],
		.topk_stride_elems = TOPK,
		.indices = ix.out->at[on],
		.indices_stride_elems = TOPK + WINDOW,
		.lens = ix.out2->at[on],
	};

	return spmla_combine_index(ctx, &a, stream);
}

/* The last tokens of a prompt of 32768. */
static void
one_combine(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "combine_index", .call = combine, .rate = BY_COPY};
	const int32_t before = 32768 - (int32_t)tokens;

	ix.tokens = tokens;
	ix.starts = make_steps(g, tokens, 0, 0);
	ix.lens = make_steps(g, tokens, before + 1, 1);
	ix.seq = make_steps(g, 1, 32768, 0);
	ix.gathered = make_steps(g, 1, (int32_t)tokens + WINDOW - 1, 0);
	ix.indices = make_draw(g, tokens * TOPK, (uint32_t)before / 4);
	ix.out = c.outputs[0] =
		twin_make(g, tokens * UINT64_C(4) * (TOPK + WINDOW));
	ix.out2 = c.outputs[1] = twin_make(g, tokens * UINT64_C(4));
	c.bytes = (double)ix.indices->bytes + (double)ix.out->bytes;
	op_row(g, &c, tokens, "tokens x (512 + 128)");
}

static spmla_status
ragged(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_ragged_index_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = ix.tokens,
		.width = ix.width,
		.num_slots = 65536,
		.capacity_elems = ix.tokens * ix.width,
		.indices = ix.indices->at[on],
		.indices_stride_elems = ix.width,
		.lens = ix.lens->at[on],
		.ragged_indptr = ix.out->at[on],
		.ragged_indices = ix.out2->at[on],
	};

	return spmla_ragged_index(ctx, &a, stream);
}

static void
one_ragged(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "ragged_index", .call = ragged, .rate = BY_COPY};

	ix.tokens = tokens;
	ix.width = TOPK + WINDOW;
	ix.indices = make_draw(g, tokens * ix.width, 65536);
	ix.lens = make_draw(g, tokens, ix.width + 1);
	ix.out = c.outputs[0] = twin_make(g, (tokens + 1) * UINT64_C(4));
	ix.out2 = c.outputs[1] = twin_make(g, ix.indices->bytes);
	c.bytes = (double)ix.indices->bytes; /* half of it, twice */
	op_row(g, &c, tokens, "tokens x up to 640");
}

/* ---- index_map, compact ------------------------------------------------- */

static spmla_status
compact(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_index_map_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = ix.tokens,
		.k = ix.width,
		.rows = ix.tokens,
		.columns = COLUMNS,
		.table_stride_elems = COLUMNS,
		.page_tokens = PAGE,
		.token_row = ix.rows->at[on],
		.block_table = ix.table->at[on],
		.indices = ix.indices->at[on],
		.indices_stride_elems = ix.width,
		.slots = ix.out->at[on],
		.slots_stride_elems = ix.width,
		.valid_counts = ix.out2->at[on],
		.slot_mapping = ix.slots->at[on],
		.compact = 1,
	};

	return spmla_index_map(ctx, &a, stream);
}

/* One index of eight is none. */
static void
one_compact(gpu *g, uint32_t tokens, uint32_t k)
{
	op_case c = {.op = "index_map", .call = compact, .rate = BY_COPY};
	twin *indices;
	int32_t *at;
	char of[TEXT];
	uint32_t i;

	make_tokens(g, tokens, 65536);
	ix.width = k;
	indices = make_draw(g, tokens * k, COLUMNS * PAGE);
	at = indices->at[ON_HOST];
	for (i = 0; i < tokens * k; i++)
		at[i] = next_random(g) % 8 ? at[i] : -1;
	twin_push(g, indices);
	ix.indices = indices;
	ix.out = c.outputs[0] = twin_make(g, indices->bytes);
	ix.out2 = c.outputs[1] = twin_make(g, tokens * UINT64_C(4));
	c.bytes = 2 * (double)indices->bytes;
	snprintf(of, sizeof of, "tokens x %u, compact", k);
	op_row(g, &c, tokens, of);
}

void
bench_v4_index(gpu *g)
{
	const uint32_t many = g->tiny ? 3 : 256;

	if (wanted(g, "swa_index")) {
		one_swa(g, 1);
		one_swa(g, many);
	}
	if (wanted(g, "c128a_index")) {
		one_c128a(g, 1);
		one_c128a(g, many);
	}
	if (wanted(g, "combine_index")) {
		one_combine(g, 1);
		one_combine(g, g->tiny ? 3 : 4096);
	}
	if (wanted(g, "ragged_index")) {
		one_ragged(g, 1);
		one_ragged(g, many);
		one_ragged(g, g->tiny ? 5 : 4096);
	}
	if (wanted(g, "index_map")) {
		one_compact(g, 1, TOPK);
		one_compact(g, many, TOPK);
		one_compact(g, many, 1024);
	}
}
