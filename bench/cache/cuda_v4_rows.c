/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of V4's ops on rows: norms, rotations, quantisation and the way
 * into and out of its caches. One token, and enough to fill the device; the
 * floor is by the rate of a copy.
 */
#include "bench/cuda.h"

#include <stdio.h>

#include "spmla/ops/indexer_q_prep.h"
#include "spmla/ops/inv_rope_quant.h"
#include "spmla/ops/kv_gather.h"
#include "spmla/ops/kv_insert.h"
#include "spmla/ops/qnorm_rope_kv_insert.h"
#include "spmla/ops/rms_norms.h"

enum {
	PAGE = 64,
	HEADS = 64,    /* of V4-Flash, and of its indexer */
	GROUPS = 8,    /* of them */
	Q_RANK = 1024, /* of its queries before their projection */
	POSITIONS = 8192,
	ROPE_ROW = 64,
	ROW_BYTES = SPMLA_V4_DIM * 2
};

static struct {
	uint32_t tokens, heads, requests, each, quant, q_format;
	const twin *q, *kv, *weight, *kv_weight, *slots, *positions, *rope;
	const twin *pool, *table, *starts, *out, *out2, *out3;
} v4;

static twin *
make_cache(gpu *g, uint32_t entries)
{
	return twin_make(
		g, (entries + PAGE - 1) / PAGE *
			   spmla_layout_page_bytes(SPMLA_LAYOUT_V4_FP8, PAGE));
}

static void
make_rope(gpu *g, uint32_t tokens)
{
	v4.positions = make_draw(g, tokens, POSITIONS);
	v4.rope = make_f32(g, POSITIONS * ROPE_ROW, -1, 1);
}

/* ---- rms_norms ---------------------------------------------------------- */

static spmla_status
rms_norms(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_rms_norms_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.q_rows = v4.tokens,
		.q_width = Q_RANK,
		.kv_rows = v4.tokens,
		.kv_width = SPMLA_V4_DIM,
		.norm_eps = 1e-6f,
		.q = v4.q->at[on],
		.q_stride_elems = Q_RANK,
		.q_weight = v4.weight->at[on],
		.q_out = v4.out->at[on],
		.q_out_stride_elems = Q_RANK,
		.kv = v4.kv->at[on],
		.kv_stride_elems = SPMLA_V4_DIM,
		.kv_weight = v4.kv_weight->at[on],
		.kv_out = v4.out2->at[on],
		.kv_out_stride_elems = SPMLA_V4_DIM,
	};

	return spmla_rms_norms(ctx, &a, stream);
}

static void
one_rms(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "rms_norms", .call = rms_norms, .rate = BY_COPY};

	v4.tokens = tokens;
	v4.q = make_bf16(g, (uint64_t)tokens * Q_RANK, 2);
	v4.kv = make_bf16(g, (uint64_t)tokens * SPMLA_V4_DIM, 2);
	v4.weight = make_bf16(g, Q_RANK, 2);
	v4.kv_weight = make_bf16(g, SPMLA_V4_DIM, 2);
	v4.out = c.outputs[0] = twin_make(g, v4.q->bytes);
	v4.out2 = c.outputs[1] = twin_make(g, v4.kv->bytes);
	c.bytes = 2 * ((double)v4.q->bytes + (double)v4.kv->bytes);
	op_row(g, &c, tokens, "tokens");
}

/* ---- qnorm_rope_kv_insert ----------------------------------------------- */

static spmla_status
qnorm(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const int64_t token = (int64_t)v4.heads * SPMLA_V4_DIM;
	const spmla_qnorm_rope_kv_insert_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = v4.tokens,
		.kv_tokens = v4.tokens,
		.heads = v4.heads,
		.padded_heads = v4.heads,
		.cos_sin_rows = POSITIONS,
		.norm_eps = 1e-6f,
		.q = v4.q->at[on],
		.q_token_stride_elems = token,
		.q_head_stride_elems = SPMLA_V4_DIM,
		.q_out = v4.out->at[on],
		.q_out_token_stride_elems = token,
		.q_out_head_stride_elems = SPMLA_V4_DIM,
		.kv = v4.kv->at[on],
		.kv_stride_elems = SPMLA_V4_DIM,
		.slot_mapping = v4.slots->at[on],
		.positions = v4.positions->at[on],
		.cos_sin = v4.rope->at[on],
		.cache = pool_cache(v4.pool, on, SPMLA_LAYOUT_V4_FP8, PAGE),
	};

	return spmla_qnorm_rope_kv_insert(ctx, &a, stream);
}

static void
one_qnorm(gpu *g, uint32_t tokens)
{
	op_case c = {
		.op = "qnorm_rope_kv_insert", .call = qnorm, .rate = BY_COPY};

	v4.tokens = tokens;
	v4.q = make_bf16(g, (uint64_t)tokens * v4.heads * SPMLA_V4_DIM, 2);
	v4.kv = make_bf16(g, (uint64_t)tokens * SPMLA_V4_DIM, 2);
	v4.slots = make_slots(g, tokens);
	make_rope(g, tokens);
	v4.out = c.outputs[0] = twin_make(g, v4.q->bytes);
	v4.pool = c.outputs[1] = make_cache(g, tokens);
	c.bytes = 2 * (double)v4.q->bytes +
		  tokens * (ROW_BYTES + SPMLA_V4_FP8_BYTES + ROPE_ROW * 4.0);
	op_row(g, &c, tokens, "tokens, 64 heads");
}

/* ---- kv_insert ---------------------------------------------------------- */

static spmla_status
kv_insert(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_kv_insert_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = v4.tokens,
		.dtype = SPMLA_DTYPE_BF16,
		.kv_c = v4.kv->at[on],
		.kv_c_stride_elems = SPMLA_V4_DIM,
		.slot_mapping = v4.slots->at[on],
		.cache = pool_cache(v4.pool, on, SPMLA_LAYOUT_V4_FP8, PAGE),
	};

	return spmla_kv_insert(ctx, &a, stream);
}

static void
one_kv_insert(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "kv_insert", .call = kv_insert, .rate = BY_COPY};

	v4.tokens = tokens;
	v4.kv = make_bf16(g, (uint64_t)tokens * SPMLA_V4_DIM, 2);
	v4.slots = make_slots(g, tokens);
	v4.pool = c.outputs[0] = make_cache(g, tokens);
	c.bytes = tokens * (ROW_BYTES + SPMLA_V4_FP8_BYTES + 8.0);
	op_row(g, &c, tokens, "tokens, V4");
}

/* ---- kv_gather ---------------------------------------------------------- */

static spmla_status
kv_gather(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const uint32_t columns = (v4.each + PAGE - 1) / PAGE;
	const spmla_kv_gather_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.requests = v4.requests,
		.keys = v4.requests * v4.each,
		.rows = v4.requests,
		.columns = columns,
		.table_stride_elems = columns,
		.workspace_starts = v4.starts->at[on],
		.block_table = v4.table->at[on],
		.dst = v4.out->at[on],
		.dst_stride_elems = SPMLA_V4_DIM,
		.cache = pool_cache(v4.pool, on, SPMLA_LAYOUT_V4_FP8, PAGE),
	};

	return spmla_kv_gather(ctx, &a, stream);
}

static void
one_gather(gpu *g, uint32_t requests, uint32_t each)
{
	op_case c = {.op = "kv_gather", .call = kv_gather, .rate = BY_COPY};
	const uint32_t pages = requests * ((each + PAGE - 1) / PAGE);
	const uint64_t keys = (uint64_t)requests * each;
	char of[TEXT];

	v4.requests = requests;
	v4.each = each;
	v4.pool = make_pool(g, SPMLA_LAYOUT_V4_FP8, PAGE, pages);
	v4.table = make_order(g, pages);
	v4.starts = make_steps(g, requests, 0, (int32_t)each);
	v4.out = c.outputs[0] = twin_make(g, keys * ROW_BYTES);
	c.bytes = (double)keys * (ROW_BYTES + SPMLA_V4_FP8_BYTES);
	snprintf(of, sizeof of, "x %u keys, V4", each);
	op_row(g, &c, requests, of);
}

/* ---- indexer_q_prep ----------------------------------------------------- */

static spmla_status
q_prep(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_indexer_q_prep_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = v4.tokens,
		.heads = v4.heads,
		.rope_style = SPMLA_ROPE_INTERLEAVED,
		.scale_floor = SPMLA_Q_SCALE_V4,
		.weights_dtype = SPMLA_DTYPE_F32,
		.cos_sin_rows = POSITIONS,
		.softmax_scale = SPMLA_INDEX_SOFTMAX_SCALE,
		.head_scale = 0.125f,
		.q = v4.q->at[on],
		.q_token_stride_elems = (int64_t)v4.heads * SPMLA_INDEX_DIM,
		.q_head_stride_elems = SPMLA_INDEX_DIM,
		.weights = v4.weight->at[on],
		.weights_stride_elems = v4.heads,
		.positions = v4.positions->at[on],
		.cos_sin = v4.rope->at[on],
		.q_out = v4.out->at[on],
		.weights_out = v4.out2->at[on],
		.rope_part = SPMLA_ROPE_LAST,
		.q_format = v4.q_format,
		.q_scales = v4.out3->at[on],
	};

	return spmla_indexer_q_prep(ctx, &a, stream);
}

static void
one_q_prep(gpu *g, uint32_t tokens, uint32_t q_format)
{
	op_case c = {.op = "indexer_q_prep", .call = q_prep, .rate = BY_COPY};
	const int fp4 = q_format == SPMLA_INDEX_Q_MXFP4;
	const uint64_t heads = (uint64_t)tokens * v4.heads;

	v4.tokens = tokens;
	v4.q_format = q_format;
	v4.q = make_bf16(g, heads * SPMLA_INDEX_DIM, 2);
	v4.weight = make_f32(g, heads, -1, 1);
	make_rope(g, tokens);
	v4.out = c.outputs[0] =
		twin_make(g, heads * SPMLA_INDEX_DIM / (fp4 ? 2 : 1));
	v4.out2 = c.outputs[1] = twin_make(g, heads * 4);
	v4.out3 = twin_make(g, heads * 4);
	c.outputs[2] = fp4 ? v4.out3 : NULL;
	c.bytes = (double)v4.q->bytes + (double)v4.out->bytes +
		  (double)heads * (fp4 ? 12 : 8) + tokens * ROPE_ROW * 4.0;
	op_row(g, &c, tokens,
	       fp4 ? "tokens, 64 heads, V4 MXFP4" : "tokens, 64 heads, V4 fp8");
}

/* ---- inv_rope_quant ----------------------------------------------------- */

static spmla_status
inv_rope(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const uint32_t each = v4.heads / GROUPS;
	const int64_t group = (int64_t)each * SPMLA_V4_DIM;
	const int64_t tokens = (v4.tokens + 3) / 4 * 4;
	const spmla_inv_rope_quant_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = v4.tokens,
		.groups = GROUPS,
		.heads_per_group = each,
		.quant = v4.quant,
		.rope_style = SPMLA_ROPE_INTERLEAVED,
		.cos_sin_rows = POSITIONS,
		.o = v4.q->at[on],
		.o_token_stride_elems = (int64_t)v4.heads * SPMLA_V4_DIM,
		.o_head_stride_elems = SPMLA_V4_DIM,
		.positions = v4.positions->at[on],
		.cos_sin = v4.rope->at[on],
		.out = v4.out->at[on],
		.out_token_stride_elems = group * GROUPS,
		.out_group_stride_elems = group,
		.scales = v4.out2->at[on],
		.scale_stride_elems = tokens,
		.scale_group_stride_elems =
			tokens * each *
			(v4.quant == SPMLA_O_FP8_PACKED ? 1 : 4),
	};

	return spmla_inv_rope_quant(ctx, &a, stream);
}

static void
one_inv_rope(gpu *g, uint32_t tokens, uint32_t quant)
{
	op_case c = {.op = "inv_rope_quant", .call = inv_rope, .rate = BY_COPY};
	const uint64_t heads = (uint64_t)tokens * v4.heads;
	const uint64_t rows = (tokens + UINT64_C(3)) / 4 * 4 * v4.heads;

	v4.tokens = tokens;
	v4.quant = quant;
	v4.q = make_bf16(g, heads * SPMLA_V4_DIM, 2);
	make_rope(g, tokens);
	v4.out = c.outputs[0] = twin_make(g, heads * SPMLA_V4_DIM);
	v4.out2 = c.outputs[1] =
		twin_make(g, rows * (quant == SPMLA_O_FP8_PACKED ? 4 : 16));
	c.bytes = (double)v4.q->bytes + (double)v4.out->bytes +
		  (double)v4.out2->bytes;
	op_row(g, &c, tokens,
	       quant == SPMLA_O_FP8 ? "tokens, 64 heads"
				    : "tokens, 64 heads, packed");
}

void
bench_v4_rows(gpu *g)
{
	const uint32_t many = g->tiny ? 4 : 1024;

	v4.heads = g->tiny ? GROUPS : HEADS;
	if (wanted(g, "rms_norms")) {
		one_rms(g, 1);
		one_rms(g, g->tiny ? 4 : 8192);
	}
	if (wanted(g, "qnorm_rope_kv_insert")) {
		one_qnorm(g, 1);
		one_qnorm(g, many);
	}
	if (wanted(g, "kv_insert")) {
		one_kv_insert(g, 1);
		one_kv_insert(g, g->tiny ? 64 : 8192);
	}
	if (wanted(g, "kv_gather")) {
		one_gather(g, 1, g->tiny ? 100 : 8192);
		one_gather(g, g->tiny ? 3 : 16, g->tiny ? 100 : 8192);
	}
	if (wanted(g, "indexer_q_prep")) {
		one_q_prep(g, 1, SPMLA_INDEX_Q_FP8);
		one_q_prep(g, many, SPMLA_INDEX_Q_FP8);
		one_q_prep(g, 1, SPMLA_INDEX_Q_MXFP4);
		one_q_prep(g, many, SPMLA_INDEX_Q_MXFP4);
	}
	if (wanted(g, "inv_rope_quant")) {
		one_inv_rope(g, 1, SPMLA_O_FP8);
		one_inv_rope(g, many, SPMLA_O_FP8);
		one_inv_rope(g, many, SPMLA_O_FP8_PACKED);
	}
}
