/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of what a step's prologue does in one kernel, as ops of their own,
 * and of two that convert results. Most of them move next to nothing: what
 * counts is how far they are above an empty kernel.
 */
#include "bench/cuda.h"

#include "spmla/ops/filter_prefill_indices.h"
#include "spmla/ops/logits_rows.h"
#include "spmla/ops/lse2_to_lse.h"
#include "spmla/ops/prefill_rows.h"
#include "spmla/ops/slot_map.h"
#include "spmla/ops/token_map.h"

enum { PAGE = 64, COLUMNS = 128, CONTEXT = PAGE * COLUMNS, TOPK = 2048 };

static struct {
	uint32_t tokens, requests;
	const twin *rows, *positions, *table, *lens, *starts, *ids;
	const twin *out, *out2, *out3, *out4;
} md;

/* ---- slot_map ----------------------------------------------------------- */

static spmla_status
slot_map(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_slot_map_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = md.tokens,
		.rows = md.requests,
		.columns = COLUMNS,
		.page_tokens = PAGE,
		.pool_pages = md.requests * COLUMNS,
		.table_stride_elems = COLUMNS,
		.token_row = md.rows->at[on],
		.positions = md.positions->at[on],
		.block_table = md.table->at[on],
		.context_lens = md.lens->at[on],
		.slot_mapping = md.out->at[on],
	};

	return spmla_slot_map(ctx, &a, stream);
}

/* Tokens of up to 256 requests. */
static void
one_slot_map(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "slot_map", .call = slot_map};

	md.tokens = tokens;
	md.requests = tokens < 256 ? tokens : 256;
	md.rows = make_draw(g, tokens, md.requests);
	md.positions = make_draw(g, tokens, CONTEXT);
	md.table = make_order(g, md.requests * COLUMNS);
	md.lens = make_steps(g, tokens, CONTEXT, 0);
	md.out = c.outputs[0] = twin_make(g, tokens * UINT64_C(8));
	c.bytes = tokens * (12.0 + 8 + 4);
	op_row(g, &c, tokens, "tokens");
}

/* ---- token_map ---------------------------------------------------------- */

static spmla_status
token_map(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_token_map_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.requests = md.requests,
		.tokens = md.tokens,
		.query_start_loc = md.starts->at[on],
		.seq_lens = md.lens->at[on],
		.req_row = md.rows->at[on],
		.req_id_per_token = md.out->at[on],
		.token_row = md.out2->at[on],
		.positions = md.out3->at[on],
		.context_lens = md.out4->at[on],
	};

	return spmla_token_map(ctx, &a, stream);
}

static void
one_token_map(gpu *g, uint32_t requests, uint32_t queries)
{
	op_case c = {.op = "token_map", .call = token_map};
	const uint64_t bytes = (uint64_t)requests * queries * 4;

	md.requests = requests;
	md.tokens = requests * queries;
	md.starts = make_steps(g, requests + 1, 0, (int32_t)queries);
	md.lens = make_steps(g, requests, 4096, 1);
	md.rows = make_order(g, requests);
	md.out = c.outputs[0] = twin_make(g, bytes);
	md.out2 = c.outputs[1] = twin_make(g, bytes);
	md.out3 = c.outputs[2] = twin_make(g, bytes);
	md.out4 = c.outputs[3] = twin_make(g, bytes);
	c.bytes = requests * 12.0 + (double)bytes * 4;
	op_row(g, &c, requests,
	       queries == 1 ? "requests" : "requests x 32 tokens");
}

/* ---- logits_rows -------------------------------------------------------- */

static spmla_status
logits_rows(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_logits_rows_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = md.tokens,
		.capacity_elems = (uint64_t)1 << 40,
		.token_row = md.rows->at[on],
		.context_lens = md.lens->at[on],
		.row_starts = md.out->at[on],
	};

	return spmla_logits_rows(ctx, &a, stream);
}

static void
one_logits_rows(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "logits_rows", .call = logits_rows};

	md.tokens = tokens;
	md.rows = make_order(g, tokens);
	md.lens = make_draw(g, tokens, 65536);
	md.out = c.outputs[0] = twin_make(g, (tokens + 1) * UINT64_C(8));
	c.bytes = tokens * 12.0;
	op_row(g, &c, tokens, "tokens");
}

/* ---- prefill_rows ------------------------------------------------------- */

static spmla_status
prefill_rows(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_prefill_rows_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.requests = md.requests,
		.tokens = md.tokens,
		.keys = md.requests * CONTEXT,
		.piece_tokens = 256,
		.piece_stride_elems = CONTEXT,
		.query_start_loc = md.starts->at[on],
		.seq_lens = md.positions->at[on],
		.req_row = md.rows->at[on],
		.req_id_per_token = md.ids->at[on],
		.context_lens = md.lens->at[on],
		.workspace_starts = md.out->at[on],
		.key_starts = md.out2->at[on],
		.key_ends = md.out3->at[on],
		.row_starts = md.out4->at[on],
	};

	return spmla_prefill_rows(ctx, &a, stream);
}

/* Requests of 512 new tokens each, behind what they have already. */
static void
one_prefill_rows(gpu *g, uint32_t requests)
{
	op_case c = {.op = "prefill_rows", .call = prefill_rows};
	const uint32_t each = g->tiny ? 8 : 512;
	const uint32_t tokens = requests * each;
	twin *ids = twin_make(g, tokens * UINT64_C(4));
	uint32_t i;

	for (i = 0; i < tokens; i++)
		((int32_t *)ids->at[ON_HOST])[i] = (int32_t)(i / each);
	twin_push(g, ids);
	md.requests = requests;
	md.tokens = tokens;
	md.ids = ids;
	md.starts = make_steps(g, requests + 1, 0, (int32_t)each);
	md.positions = make_steps(g, requests, CONTEXT, 0);
	md.rows = make_order(g, requests);
	md.lens = make_draw(g, tokens, CONTEXT);
	md.out = c.outputs[0] = twin_make(g, (requests + 1) * UINT64_C(4));
	md.out2 = c.outputs[1] = twin_make(g, tokens * UINT64_C(4));
	md.out3 = c.outputs[2] = twin_make(g, tokens * UINT64_C(4));
	md.out4 = c.outputs[3] = twin_make(g, tokens * UINT64_C(8));
	c.bytes = tokens * 24.0;
	op_row(g, &c, requests, "requests x 512 tokens");
}

/* ---- lse2_to_lse -------------------------------------------------------- */

static spmla_status
lse2_to_lse(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_lse2_to_lse_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.count = (uint64_t)md.tokens * 128,
		.lse2 = md.lens->at[on],
		.lse = md.out->at[on],
	};

	return spmla_lse2_to_lse(ctx, &a, stream);
}

static void
one_lse(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "lse2_to_lse", .call = lse2_to_lse};

	md.tokens = tokens;
	md.lens = make_f32(g, (uint64_t)tokens * 128, -8, 8);
	md.out = c.outputs[0] = twin_make(g, md.lens->bytes);
	c.bytes = 2 * (double)md.lens->bytes;
	c.rate = BY_COPY;
	op_row(g, &c, tokens, "tokens, 128 heads");
}

/* ---- filter_prefill_indices --------------------------------------------- */

static spmla_status
filter(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_filter_prefill_indices_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = md.tokens,
		.k = TOPK,
		.indices = md.ids->at[on],
		.indices_stride_elems = TOPK,
		.context_lens = md.lens->at[on],
		.context_indices = md.out->at[on],
		.context_indices_stride_elems = TOPK,
		.new_indices = md.out2->at[on],
		.new_indices_stride_elems = TOPK,
	};

	return spmla_filter_prefill_indices(ctx, &a, stream);
}

static void
one_filter(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "filter_prefill_indices", .call = filter};

	md.tokens = tokens;
	md.ids = make_draw(g, tokens * TOPK, CONTEXT);
	md.lens = make_draw(g, tokens, CONTEXT);
	md.out = c.outputs[0] = twin_make(g, md.ids->bytes);
	md.out2 = c.outputs[1] = twin_make(g, md.ids->bytes);
	c.bytes = 3 * (double)md.ids->bytes;
	c.rate = BY_COPY;
	op_row(g, &c, tokens, "tokens x 2048");
}

/* ---- table_write -------------------------------------------------------- */

static spmla_status
write_table(spmla_ctx *ctx, side on, spmla_stream stream)
{
	(void)on;
	return spmla_table_write(ctx, SPMLA_GROUP_MAIN, 0, 0, md.tokens,
				 stream);
}

static void
one_table_write(gpu *g, uint32_t columns)
{
	op_case c = {.op = "table_write", .call = write_table, .eager = 1};
	int32_t *staged[2] = {
		spmla_view(g->cpu.ctx, SPMLA_BUF_TABLE_STAGING, NULL),
		spmla_view(g->ops.ctx, SPMLA_BUF_TABLE_STAGING, NULL)};
	const twin table = {
		{spmla_view(g->cpu.ctx, SPMLA_BUF_BLOCK_TABLE_MAIN, NULL),
		 spmla_view(g->ops.ctx, SPMLA_BUF_BLOCK_TABLE_MAIN, NULL)},
		columns * UINT64_C(4)};
	uint32_t i;

	md.tokens = columns;
	for (i = 0; i < columns; i++)
		staged[0][i] = staged[1][i] =
			(int32_t)(next_random(g) % CONTEXT);
	c.outputs[0] = &table;
	c.bytes = columns * 8.0;
	op_row(g, &c, columns, "pages of a row, no graph");
}

void
bench_metadata(gpu *g)
{
	static const uint32_t batches[] = {1, 32, 256};
	const uint32_t most = g->tiny ? 1 : 3;
	uint32_t i;

	for (i = 0; i < most && wanted(g, "token_map"); i++)
		one_token_map(g, batches[i], 1);
	if (wanted(g, "token_map"))
		one_token_map(g, g->tiny ? 2 : 256, 32);
	for (i = 0; i < most && wanted(g, "slot_map"); i++)
		one_slot_map(g, batches[i]);
	if (wanted(g, "slot_map"))
		one_slot_map(g, g->tiny ? 16 : 8192);
	for (i = 0; i < most && wanted(g, "logits_rows"); i++)
		one_logits_rows(g, batches[i]);
	if (wanted(g, "prefill_rows")) {
		one_prefill_rows(g, 1);
		one_prefill_rows(g, g->tiny ? 2 : 16);
	}
	if (wanted(g, "lse2_to_lse")) {
		one_lse(g, 1);
		one_lse(g, g->tiny ? 4 : 8192);
	}
	if (wanted(g, "filter_prefill_indices")) {
		one_filter(g, 1);
		one_filter(g, g->tiny ? 2 : 4096);
	}
	if (wanted(g, "table_write")) {
		one_table_write(g, 1);
		one_table_write(g, g->tiny ? 16 : 2048);
	}
}
