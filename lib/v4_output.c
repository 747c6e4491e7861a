/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of a V4 layer. Tokens are independent, so a long step runs in
 * pieces that fit the planned buffers. If values are wider than planned, the
 * pieces are shorter.
 */
#include "spmla/internal/v4.h"

#include <string.h>

enum { SCALES_OF_HEAD = SPMLA_V4_DIM / SPMLA_MLA_SCALE_GROUP };

/* The results of a piece: dense, tokens outermost, scales by rows of tokens. */
typedef struct piece {
	uint32_t first;
	uint32_t tokens;
	int64_t scale_stride_elems;
} piece;

static spmla_status
quantise(spmla_ctx *ctx, const spmla_v4_layer *l, const piece *p,
	 spmla_stream stream)
{
	const uint32_t heads = ctx->plan.config.heads;
	const uint32_t of_group = heads / l->output_groups;
	const uint32_t rows = l->output_quant == SPMLA_O_FP8_PACKED
				      ? of_group
				      : of_group * SCALES_OF_HEAD;
	spmla_inv_rope_quant_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = p->tokens;
	a.groups = l->output_groups;
	a.heads_per_group = of_group;
	a.quant = l->output_quant;
	a.rope_style = SPMLA_ROPE_INTERLEAVED;
	a.cos_sin_rows = l->cos_sin_rows;
	a.o = l->out + p->first * l->out_token_stride_elems;
	a.o_token_stride_elems = l->out_token_stride_elems;
	a.o_head_stride_elems = l->out_head_stride_elems;
	a.positions = (const int32_t *)ctx->buf[SPMLA_BUF_POSITIONS] + p->first;
	a.cos_sin = l->cos_sin;
	a.cos_sin_dtype = l->cos_sin_dtype;
	a.out = ctx->buf[SPMLA_BUF_OUTPUT_O];
	a.out_token_stride_elems = (int64_t)heads * SPMLA_V4_DIM;
	a.out_group_stride_elems = (int64_t)of_group * SPMLA_V4_DIM;
	a.scales = ctx->buf[SPMLA_BUF_OUTPUT_SCALES];
	a.scale_stride_elems = p->scale_stride_elems;
	a.scale_group_stride_elems = rows * p->scale_stride_elems;
	return spmla_inv_rope_quant(ctx, &a, stream);
}

static spmla_status
project(spmla_ctx *ctx, const spmla_v4_layer *l, const piece *p,
	spmla_stream stream)
{
	const uint32_t of_group = ctx->plan.config.heads / l->output_groups;
	const uint32_t rows = l->output_quant == SPMLA_O_FP8_PACKED
				      ? of_group
				      : of_group * SCALES_OF_HEAD;
	spmla_o_group_proj_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = p->tokens;
	a.groups = l->output_groups;
	a.inner = of_group * SPMLA_V4_DIM;
	a.columns = l->output_columns;
	a.quant = l->output_quant;
	a.o = ctx->buf[SPMLA_BUF_OUTPUT_O];
	a.o_token_stride_elems = (int64_t)ctx->plan.config.heads * SPMLA_V4_DIM;
	a.o_group_stride_elems = a.inner;
	a.o_scales = ctx->buf[SPMLA_BUF_OUTPUT_SCALES];
	a.o_scale_stride_elems = p->scale_stride_elems;
	a.o_scale_group_stride_elems = rows * p->scale_stride_elems;
	a.w = l->wo;
	a.w_group_stride_elems = l->wo_group_stride_elems;
	a.w_row_stride_elems = l->wo_row_stride_elems;
	a.w_scales = l->wo_scales;
	a.w_scale_group_stride_elems = l->wo_scale_group_stride_elems;
	a.w_scale_row_stride_elems = l->wo_scale_row_stride_elems;
	a.z = l->z + p->first * l->z_token_stride_elems;
	a.z_token_stride_elems = l->z_token_stride_elems;
	a.z_group_stride_elems = l->z_group_stride_elems;
	return spmla_o_group_proj(ctx, &a, stream);
}

static spmla_status
check_output(spmla_ctx *ctx, const spmla_v4_layer *l)
{
	const spmla_i_check checks[] = {
		{"v4_layer.output_groups", l->output_groups,
		 SPMLA_WANT_AT_LEAST, 1},
		{"v4_layer.output_groups (to divide config.heads)",
		 l->output_groups ? ctx->plan.config.heads % l->output_groups
				  : 0,
		 SPMLA_WANT_EQUAL, 0},
		{"v4_layer.out", SPMLA_I_PTR(l->out), SPMLA_WANT_NOT_NULL, 0},
		{"v4_layer.z", SPMLA_I_PTR(l->z), SPMLA_WANT_NOT_NULL, 0},
	};
	const spmla_status s =
		spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));

	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

spmla_status
spmla_v4_output(spmla_ctx *ctx, const spmla_v4_layer *layer,
		const spmla_shape *shape, spmla_stream stream)
{
	piece p = {0, 0, 0};
	uint64_t room, most;
	spmla_status s = spmla_i_v4_begin(ctx, layer, shape, stream);

	if (s == SPMLA_OK)
		s = check_output(ctx, layer);
	if (s != SPMLA_OK)
		return s;
	/* From one row of scales to the next; a multiple of 4. */
	most = ctx->buf_bytes[SPMLA_BUF_OUTPUT_SCALES] /
	       ((uint64_t)ctx->plan.config.heads * SCALES_OF_HEAD *
		sizeof(float));
	p.scale_stride_elems = (int64_t)most;
	room = ctx->buf_bytes[SPMLA_BUF_OUTPUT_O] /
	       spmla_i_output_bytes(&ctx->plan.config, layer->output_quant);
	room = room < most ? room : most;
	for (; s == SPMLA_OK && p.first < shape->tokens; p.first += p.tokens) {
		const uint32_t rest = shape->tokens - p.first;

		p.tokens = rest < room ? rest : (uint32_t)room;
		s = quantise(ctx, layer, &p, stream);
		if (s == SPMLA_OK)
			s = project(ctx, layer, &p, stream);
	}
	return spmla_i_v4_end(ctx, s);
}
