/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of what stands around the attention: the projections of queries
 * and results, a matrix a head or a group of heads, and the sum of splits. With
 * few tokens their floor is the reading of the matrices.
 */
#include "bench/cuda.h"

#include "spmla/ops/o_group_proj.h"
#include "spmla/ops/q_absorb.h"
#include "spmla/ops/split_combine.h"
#include "spmla/ops/v_up.h"

enum {
	HEADS = 128,
	NOPE = 128, /* values of a head of a query, or of a value */
	POSITIONS = 8192,
	ROPE_ROW = 64,
	GROUPS = 8,     /* of V4-Flash: 64 heads */
	INNER = 4096,   /* values of a group */
	COLUMNS = 1024, /* of its matrix */
	PARTS = INNER / 128,
	HOST_TOKENS = 8 /* whose sums the CPU makes */
};

static struct {
	uint32_t tokens, heads, splits, quant, columns;
	const twin *a, *b, *w, *positions, *rope, *scales, *w_scales;
	const twin *num_splits, *out, *lse;
} pr;

static uint32_t
some_tokens(side on)
{
	return on == ON_DEVICE || pr.tokens < HOST_TOKENS ? pr.tokens
							  : HOST_TOKENS;
}

/* ---- q_absorb ----------------------------------------------------------- */

static spmla_status
q_absorb(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_q_absorb_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = some_tokens(on),
		.heads = pr.heads,
		.rope_style = SPMLA_ROPE_INTERLEAVED,
		.cos_sin_rows = POSITIONS,
		.q_nope = pr.a->at[on],
		.q_nope_token_stride_elems = (int64_t)pr.heads * NOPE,
		.q_nope_head_stride_elems = NOPE,
		.w_uk_t = pr.w->at[on],
		.w_head_stride_elems = NOPE * SPMLA_MLA_LATENT,
		.w_row_stride_elems = SPMLA_MLA_LATENT,
		.q_pe = pr.b->at[on],
		.q_pe_token_stride_elems = (int64_t)pr.heads * SPMLA_MLA_ROPE,
		.q_pe_head_stride_elems = SPMLA_MLA_ROPE,
		.positions = pr.positions->at[on],
		.cos_sin = pr.rope->at[on],
		.q = pr.out->at[on],
		.q_token_stride_elems = (int64_t)pr.heads * SPMLA_MLA_DIM,
		.q_head_stride_elems = SPMLA_MLA_DIM,
	};

	return spmla_q_absorb(ctx, &a, stream);
}

static void
one_q_absorb(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "q_absorb", .call = q_absorb, .by = {BY_BF16}};
	const uint64_t heads = (uint64_t)tokens * pr.heads;

	pr.tokens = tokens;
	pr.a = make_bf16(g, heads * NOPE, 2);
	pr.b = make_bf16(g, heads * SPMLA_MLA_ROPE, 2);
	pr.w = make_bf16(g, (uint64_t)pr.heads * NOPE * SPMLA_MLA_LATENT, 0.1f);
	pr.positions = make_draw(g, tokens, POSITIONS);
	pr.rope = make_f32(g, POSITIONS * ROPE_ROW, -1, 1);
	pr.out = c.outputs[0] = twin_make(g, heads * SPMLA_MLA_DIM * 2);
	c.checked[0] =
		UINT64_C(2) * some_tokens(ON_HOST) * pr.heads * SPMLA_MLA_DIM;
	c.bytes = (double)pr.a->bytes + (double)pr.b->bytes +
		  (double)pr.w->bytes + (double)pr.out->bytes;
	c.flop = 2.0 * (double)heads * NOPE * SPMLA_MLA_LATENT;
	c.product = BF16;
	op_row(g, &c, tokens, "tokens, 128 heads");
}

/* ---- v_up --------------------------------------------------------------- */

static spmla_status
v_up(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_v_up_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = some_tokens(on),
		.heads = pr.heads,
		.latent = pr.a->at[on],
		.latent_token_stride_elems =
			(int64_t)pr.heads * SPMLA_MLA_LATENT,
		.latent_head_stride_elems = SPMLA_MLA_LATENT,
		.w_uv = pr.w->at[on],
		.w_head_stride_elems = NOPE * SPMLA_MLA_LATENT,
		.w_row_stride_elems = NOPE,
		.out = pr.out->at[on],
		.out_token_stride_elems = (int64_t)pr.heads * NOPE,
	};

	return spmla_v_up(ctx, &a, stream);
}

static void
one_v_up(gpu *g, uint32_t tokens)
{
	op_case c = {.op = "v_up", .call = v_up, .by = {BY_BF16}};
	const uint64_t heads = (uint64_t)tokens * pr.heads;

	pr.tokens = tokens;
	pr.a = make_bf16(g, heads * SPMLA_MLA_LATENT, 2);
	pr.w = make_bf16(g, (uint64_t)pr.heads * NOPE * SPMLA_MLA_LATENT, 0.1f);
	pr.out = c.outputs[0] = twin_make(g, heads * NOPE * 2);
	c.checked[0] = UINT64_C(2) * some_tokens(ON_HOST) * pr.heads * NOPE;
	c.bytes = (double)pr.a->bytes + (double)pr.w->bytes +
		  (double)pr.out->bytes;
	c.flop = 2.0 * (double)heads * NOPE * SPMLA_MLA_LATENT;
	c.product = BF16;
	op_row(g, &c, tokens, "tokens, 128 heads");
}

/* ---- o_group_proj ------------------------------------------------------- */

static spmla_status
o_proj(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const uint32_t quantised = pr.quant != SPMLA_O_BF16;
	const spmla_o_group_proj_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = some_tokens(on),
		.groups = GROUPS,
		.inner = INNER,
		.columns = pr.columns,
		.quant = pr.quant,
		.o = pr.a->at[on],
		.o_token_stride_elems = GROUPS * INNER,
		.o_group_stride_elems = INNER,
		.o_scales = quantised ? pr.scales->at[on] : NULL,
		.o_scale_stride_elems = pr.tokens,
		.o_scale_group_stride_elems = (int64_t)PARTS * pr.tokens,
		.w = pr.w->at[on],
		.w_group_stride_elems = (int64_t)pr.columns * INNER,
		.w_row_stride_elems = INNER,
		.w_scales = quantised ? pr.w_scales->at[on] : NULL,
		.w_scale_group_stride_elems = pr.columns / 128 * PARTS,
		.w_scale_row_stride_elems = PARTS,
		.z = pr.out->at[on],
		.z_token_stride_elems = GROUPS * pr.columns,
		.z_group_stride_elems = pr.columns,
	};

	return spmla_o_group_proj(ctx, &a, stream);
}

static void
one_o_proj(gpu *g, uint32_t tokens, uint32_t quant)
{
	op_case c = {.op = "o_group_proj", .call = o_proj, .by = {BY_BF16}};
	const uint64_t n = (uint64_t)tokens * GROUPS;
	const uint64_t m = (uint64_t)GROUPS * pr.columns;

	pr.tokens = tokens;
	pr.quant = quant;
	if (quant == SPMLA_O_BF16) {
		pr.a = make_bf16(g, n * INNER, 2);
		pr.w = make_bf16(g, m * INNER, 0.1f);
	} else {
		pr.a = make_codes(g, n * INNER);
		pr.w = make_codes(g, m * INNER);
		pr.scales = make_f32(g, n * PARTS, 0.5f, 1);
		pr.w_scales = make_f32(g, m / 128 * PARTS, 0.05f, 0.1f);
	}
	pr.out = c.outputs[0] = twin_make(g, n * pr.columns * 2);
	c.checked[0] = UINT64_C(2) * some_tokens(ON_HOST) * GROUPS * pr.columns;
	c.bytes = (double)pr.a->bytes + (double)pr.w->bytes +
		  (double)pr.out->bytes;
	c.flop = 2.0 * (double)n * INNER * pr.columns;
	c.product = quant == SPMLA_O_BF16 ? BF16 : E4M3;
	op_row(g, &c, tokens,
	       quant == SPMLA_O_BF16 ? "tokens, 64 heads, bf16"
				     : "tokens, 64 heads, fp8");
}

/* ---- split_combine ------------------------------------------------------ */

static spmla_status
combine(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_split_combine_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = pr.tokens,
		.heads = pr.heads,
		.split_rows = pr.tokens * pr.splits,
		.num_splits = pr.num_splits->at[on],
		.split_out = pr.a->at[on],
		.split_lse = pr.b->at[on],
		.out = pr.out->at[on],
		.out_token_stride_elems = (int64_t)pr.heads * SPMLA_MLA_LATENT,
		.out_head_stride_elems = SPMLA_MLA_LATENT,
		.lse = pr.lse->at[on],
		.lse_token_stride_elems = pr.heads,
		.lse_head_stride_elems = 1,
	};

	return spmla_split_combine(ctx, &a, stream);
}

static void
one_combine(gpu *g, uint32_t tokens, uint32_t splits, const char *of)
{
	op_case c = {.op = "split_combine",
		     .call = combine,
		     .by = {BY_BF16, BY_F32}};
	const uint64_t heads = (uint64_t)tokens * pr.heads;
	const uint64_t rows = heads * splits;

	pr.tokens = tokens;
	pr.splits = splits;
	pr.num_splits = make_steps(g, tokens + 1, 0, (int32_t)splits);
	pr.a = make_f32(g, rows * SPMLA_MLA_LATENT, -1, 1);
	pr.b = make_f32(g, rows, -4, 4);
	pr.out = c.outputs[0] = twin_make(g, heads * SPMLA_MLA_LATENT * 2);
	pr.lse = c.outputs[1] = twin_make(g, heads * 4);
	c.bytes = (double)pr.a->bytes + (double)pr.b->bytes +
		  (double)pr.out->bytes;
	op_row(g, &c, tokens, of);
}

void
bench_projections(gpu *g)
{
	static const uint32_t batches[] = {1, 16, 128, 1024};
	const uint32_t most = g->tiny ? 1 : 4;
	uint32_t i;

	pr.heads = g->tiny ? 8 : HEADS;
	pr.columns = g->tiny ? 128 : COLUMNS;
	if (wanted(g, "split_combine")) {
		one_combine(g, 1, g->tiny ? 3 : 32,
			    "tokens of 32 splits, 128 heads");
		one_combine(g, g->tiny ? 2 : 32, 3,
			    "tokens of 3 splits, 128 heads");
	}
	for (i = 0; i < most && wanted(g, "q_absorb"); i++)
		one_q_absorb(g, batches[i]);
	for (i = 0; i < most && wanted(g, "v_up"); i++)
		one_v_up(g, batches[i]);
	for (i = 0; i < most && wanted(g, "o_group_proj"); i++)
		one_o_proj(g, batches[i], SPMLA_O_FP8);
	for (i = 0; i < most && wanted(g, "o_group_proj"); i++)
		one_o_proj(g, batches[i], SPMLA_O_BF16);
}
