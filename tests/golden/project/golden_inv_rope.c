/* SPDX-License-Identifier: Apache-2.0
 *
 * Adapter of inv_rope_quant: attention's results before the output projection.
 * The real kernel fuses a * b + c, so a code may be one step off; scales are
 * exact.
 */
#include "tests/golden/golden.h"

/* Tokens lie fastest, and padded to a multiple of 4. */
static int
has_scales(golden_case *c, const golden_tensor *t, const int64_t *shape)
{
	const int64_t padded = (shape[0] + 3) / 4 * 4;
	uint32_t d;

	for (d = 0; t && d < 3; d++)
		if (t->shape[d] != shape[d])
			break;
	if (!t)
		return 0;
	if (d == 3 && t->strides[0] == 1 && t->strides[2] == padded &&
	    t->strides[1] == padded * shape[2])
		return 1;
	(void)golden_fail(c, "o_scale has a shape that the op does not have");
	return 0;
}

static golden_verdict
run_inv_rope_quant(golden_case *c)
{
	const golden_tensor *o = golden_need(c, "o", GOLDEN_BF16, 3);
	const golden_tensor *out = golden_need(c, "o_fp8", GOLDEN_E4M3, 3);
	const golden_tensor *scales = golden_find(c, "o_scale");
	const int packed = scales && scales->dtype == GOLDEN_I32;
	spmla_inv_rope_quant_args a = {0};
	int64_t groups, heads;
	golden_floats table;

	scales = golden_need(c, "o_scale", packed ? GOLDEN_I32 : GOLDEN_F32, 3);
	if (!golden_has(c, o, (const int64_t[]){-1, -1, SPMLA_V4_DIM}) ||
	    !golden_take_table(c, "cos_sin_cache", SPMLA_V4_ROPE, &table) ||
	    !golden_has(c, out, (const int64_t[]){o->shape[0], -1, -1}))
		return GOLDEN_FAILED;
	groups = out->shape[1];
	heads = out->shape[2] / SPMLA_V4_DIM;
	if (groups * heads != o->shape[1] ||
	    heads * SPMLA_V4_DIM != out->shape[2])
		return golden_fail(c, "o_fp8 does not fit o");
	if (!has_scales(c, scales,
			(const int64_t[]){o->shape[0], groups,
					  packed ? heads : 4 * heads}))
		return GOLDEN_FAILED;
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = (uint32_t)o->shape[0];
	a.groups = (uint32_t)groups;
	a.heads_per_group = (uint32_t)heads;
	a.quant = packed ? SPMLA_O_FP8_PACKED : SPMLA_O_FP8;
	a.rope_style = SPMLA_ROPE_INTERLEAVED;
	a.cos_sin_rows = (uint32_t)table.shape[0];
	a.o = golden_first(o);
	a.o_token_stride_elems = o->strides[0];
	a.o_head_stride_elems = o->strides[1];
	a.positions = golden_positions(c, "positions", o->shape[0],
				       &a.positions_dtype);
	a.cos_sin = table.first;
	a.cos_sin_dtype = table.dtype;
	a.out = golden_first(out);
	a.out_token_stride_elems = out->strides[0];
	a.out_group_stride_elems = out->strides[1];
	a.scales = golden_first(scales);
	a.scale_stride_elems = scales->strides[2];
	a.scale_group_stride_elems = scales->strides[1];
	if (!a.positions)
		return GOLDEN_FAILED;
	return golden_called(c, spmla_inv_rope_quant(c->ctx, &a, NULL));
}

const golden_op golden_inv_rope_ops[] = {
	{"fused_inv_rope_fp8_quant", run_inv_rope_quant}, {NULL, NULL}};
