/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of the prefill's operations and plan as an engine's binary sees
 * them, and the numbers of their enums. All are written out: one that changes
 * breaks engines that were built before.
 */
#include "tests/harness/pins.h"
#include "tests/harness/themes.h"

#include "spmla/ops/ops.h"
#include "spmla/prefill_plan.h"

#define S        PIN_S
#define F        PIN_F
#define V        PIN_V
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* clang-format off: a table is read as a table */
static const pin pins[] = {
	S(spmla_filter_prefill_indices_args, 72),
	F(spmla_filter_prefill_indices_args, struct_bytes, 0, 4),
	F(spmla_filter_prefill_indices_args, tokens, 4, 4),
	F(spmla_filter_prefill_indices_args, k, 8, 4),
	F(spmla_filter_prefill_indices_args, reserved, 12, 4),
	F(spmla_filter_prefill_indices_args, indices, 16, 8),
	F(spmla_filter_prefill_indices_args, indices_stride_elems, 24, 8),
	F(spmla_filter_prefill_indices_args, context_lens, 32, 8),
	F(spmla_filter_prefill_indices_args, context_indices, 40, 8),
	F(spmla_filter_prefill_indices_args, context_indices_stride_elems, 48,
	  8),
	F(spmla_filter_prefill_indices_args, new_indices, 56, 8),
	F(spmla_filter_prefill_indices_args, new_indices_stride_elems, 64, 8),
	S(spmla_lse2_to_lse_args, 32),
	F(spmla_lse2_to_lse_args, struct_bytes, 0, 4),
	F(spmla_lse2_to_lse_args, reserved, 4, 4),
	F(spmla_lse2_to_lse_args, count, 8, 8),
	F(spmla_lse2_to_lse_args, lse2, 16, 8),
	F(spmla_lse2_to_lse_args, lse, 24, 8),
	S(spmla_mqa_logits_gathered_args, 120),
	F(spmla_mqa_logits_gathered_args, struct_bytes, 0, 4),
	F(spmla_mqa_logits_gathered_args, tokens, 4, 4),
	F(spmla_mqa_logits_gathered_args, heads, 8, 4),
	F(spmla_mqa_logits_gathered_args, keys, 12, 4),
	F(spmla_mqa_logits_gathered_args, form, 16, 4),
	F(spmla_mqa_logits_gathered_args, columns, 20, 4),
	F(spmla_mqa_logits_gathered_args, q, 24, 8),
	F(spmla_mqa_logits_gathered_args, weights, 32, 8),
	F(spmla_mqa_logits_gathered_args, weights_stride_elems, 40, 8),
	F(spmla_mqa_logits_gathered_args, k, 48, 8),
	F(spmla_mqa_logits_gathered_args, k_scales, 56, 8),
	F(spmla_mqa_logits_gathered_args, starts, 64, 8),
	F(spmla_mqa_logits_gathered_args, ends, 72, 8),
	F(spmla_mqa_logits_gathered_args, logits, 80, 8),
	F(spmla_mqa_logits_gathered_args, logits_stride_elems, 88, 8),
	F(spmla_mqa_logits_gathered_args, q_scales, 96, 8),
	F(spmla_mqa_logits_gathered_args, layout, 104, 4),
	F(spmla_mqa_logits_gathered_args, logits_dtype, 108, 4),
	F(spmla_mqa_logits_gathered_args, k_encoding, 112, 4),
	F(spmla_mqa_logits_gathered_args, q_encoding, 116, 4),
	S(spmla_q_absorb_args, 144),
	F(spmla_q_absorb_args, struct_bytes, 0, 4),
	F(spmla_q_absorb_args, tokens, 4, 4),
	F(spmla_q_absorb_args, heads, 8, 4),
	F(spmla_q_absorb_args, rope_style, 12, 4),
	F(spmla_q_absorb_args, cos_sin_rows, 16, 4),
	F(spmla_q_absorb_args, positions_dtype, 20, 4),
	F(spmla_q_absorb_args, q_nope, 24, 8),
	F(spmla_q_absorb_args, q_nope_token_stride_elems, 32, 8),
	F(spmla_q_absorb_args, q_nope_head_stride_elems, 40, 8),
	F(spmla_q_absorb_args, w_uk_t, 48, 8),
	F(spmla_q_absorb_args, w_head_stride_elems, 56, 8),
	F(spmla_q_absorb_args, w_row_stride_elems, 64, 8),
	F(spmla_q_absorb_args, q_pe, 72, 8),
	F(spmla_q_absorb_args, q_pe_token_stride_elems, 80, 8),
	F(spmla_q_absorb_args, q_pe_head_stride_elems, 88, 8),
	F(spmla_q_absorb_args, positions, 96, 8),
	F(spmla_q_absorb_args, cos_sin, 104, 8),
	F(spmla_q_absorb_args, q, 112, 8),
	F(spmla_q_absorb_args, q_token_stride_elems, 120, 8),
	F(spmla_q_absorb_args, q_head_stride_elems, 128, 8),
	F(spmla_q_absorb_args, cos_sin_dtype, 136, 4),
	F(spmla_q_absorb_args, reserved, 140, 4),
	S(spmla_sparse_prefill_args, 176),
	F(spmla_sparse_prefill_args, struct_bytes, 0, 4),
	F(spmla_sparse_prefill_args, tokens, 4, 4),
	F(spmla_sparse_prefill_args, heads, 8, 4),
	F(spmla_sparse_prefill_args, dim, 12, 4),
	F(spmla_sparse_prefill_args, topk, 16, 4),
	F(spmla_sparse_prefill_args, kv_rows, 20, 4),
	F(spmla_sparse_prefill_args, lse_base, 24, 4),
	F(spmla_sparse_prefill_args, empty_lse, 28, 4),
	F(spmla_sparse_prefill_args, softmax_scale, 32, 4),
	F(spmla_sparse_prefill_args, lse_sink, 36, 4),
	F(spmla_sparse_prefill_args, q, 40, 8),
	F(spmla_sparse_prefill_args, q_token_stride_elems, 48, 8),
	F(spmla_sparse_prefill_args, q_head_stride_elems, 56, 8),
	F(spmla_sparse_prefill_args, kv, 64, 8),
	F(spmla_sparse_prefill_args, kv_stride_elems, 72, 8),
	F(spmla_sparse_prefill_args, indices, 80, 8),
	F(spmla_sparse_prefill_args, indices_stride_elems, 88, 8),
	F(spmla_sparse_prefill_args, topk_lens, 96, 8),
	F(spmla_sparse_prefill_args, attn_sink, 104, 8),
	F(spmla_sparse_prefill_args, out, 112, 8),
	F(spmla_sparse_prefill_args, out_token_stride_elems, 120, 8),
	F(spmla_sparse_prefill_args, out_head_stride_elems, 128, 8),
	F(spmla_sparse_prefill_args, max_logits, 136, 8),
	F(spmla_sparse_prefill_args, lse, 144, 8),
	F(spmla_sparse_prefill_args, lse_token_stride_elems, 152, 8),
	F(spmla_sparse_prefill_args, lse_head_stride_elems, 160, 8),
	F(spmla_sparse_prefill_args, indptr, 168, 8),
	S(spmla_split_combine_args, 136),
	F(spmla_split_combine_args, struct_bytes, 0, 4),
	F(spmla_split_combine_args, tokens, 4, 4),
	F(spmla_split_combine_args, heads, 8, 4),
	F(spmla_split_combine_args, split_rows, 12, 4),
	F(spmla_split_combine_args, empty_lse, 16, 4),
	F(spmla_split_combine_args, next_n, 20, 4),
	F(spmla_split_combine_args, num_splits, 24, 8),
	F(spmla_split_combine_args, split_out, 32, 8),
	F(spmla_split_combine_args, split_lse, 40, 8),
	F(spmla_split_combine_args, attn_sink, 48, 8),
	F(spmla_split_combine_args, out, 56, 8),
	F(spmla_split_combine_args, out_token_stride_elems, 64, 8),
	F(spmla_split_combine_args, out_head_stride_elems, 72, 8),
	F(spmla_split_combine_args, lse, 80, 8),
	F(spmla_split_combine_args, lse_token_stride_elems, 88, 8),
	F(spmla_split_combine_args, lse_head_stride_elems, 96, 8),
	F(spmla_split_combine_args, out_request_stride_elems, 104, 8),
	F(spmla_split_combine_args, lse_request_stride_elems, 112, 8),
	F(spmla_split_combine_args, lse_base, 120, 4),
	F(spmla_split_combine_args, lse_sink, 124, 4),
	F(spmla_split_combine_args, whole_tokens, 128, 4),
	F(spmla_split_combine_args, reserved, 132, 4),
	S(spmla_v_up_args, 80),
	F(spmla_v_up_args, struct_bytes, 0, 4),
	F(spmla_v_up_args, tokens, 4, 4),
	F(spmla_v_up_args, heads, 8, 4),
	F(spmla_v_up_args, reserved, 12, 4),
	F(spmla_v_up_args, latent, 16, 8),
	F(spmla_v_up_args, latent_token_stride_elems, 24, 8),
	F(spmla_v_up_args, latent_head_stride_elems, 32, 8),
	F(spmla_v_up_args, w_uv, 40, 8),
	F(spmla_v_up_args, w_head_stride_elems, 48, 8),
	F(spmla_v_up_args, w_row_stride_elems, 56, 8),
	F(spmla_v_up_args, out, 64, 8),
	F(spmla_v_up_args, out_token_stride_elems, 72, 8),
	S(spmla_range, 8),
	F(spmla_range, first, 0, 4),
	F(spmla_range, end, 4, 4),
	S(spmla_batch_split, 24),
	F(spmla_batch_split, struct_bytes, 0, 4),
	F(spmla_batch_split, num_decodes, 4, 4),
	F(spmla_batch_split, num_prefills, 8, 4),
	F(spmla_batch_split, num_decode_tokens, 12, 4),
	F(spmla_batch_split, num_prefill_tokens, 16, 4),
	F(spmla_batch_split, reserved, 20, 4),
	S(spmla_indexer_chunk, 16),
	F(spmla_indexer_chunk, requests, 0, 8),
	F(spmla_indexer_chunk, queries, 8, 8),
};

static const pin_value values[] = {
	V(SPMLA_LOGITS_ABSOLUTE, 0),
	V(SPMLA_LOGITS_CLEAN, 1),
	V(SPMLA_LOGITS_COMPRESSED, 2),
	V(SPMLA_LOGITS_FORM_FORCE_32, 0x7fffffff),
	V(SPMLA_LSE_NATURAL, 0),
	V(SPMLA_LSE_BASE2, 1),
	V(SPMLA_LSE_BASE_FORCE_32, 0x7fffffff),
	V(SPMLA_UNIFORM_NO, 0),
	V(SPMLA_UNIFORM_REQUIRED, 1),
	V(SPMLA_UNIFORM_FORCE_32, 0x7fffffff),
	V(SPMLA_REORDER_SM90, 0),
	V(SPMLA_REORDER_SM100, 1),
	V(SPMLA_REORDER_FORCE_32, 0x7fffffff),
	V(SPMLA_V4_DIM, 512),
	V(SPMLA_V4_NOPE, 448),
	V(SPMLA_V4_ROPE, 64),
	V(SPMLA_V4_SCALE_GROUP, 64),
	V(SPMLA_V4_SCALES, 7),
	V(SPMLA_V4_VALUE_BYTES, 576),
	V(SPMLA_V4_SCALE_BYTES, 8),
	V(SPMLA_V4_FP8_BYTES, 584),
	V(sizeof(spmla_logits_form), 4),
	V(sizeof(spmla_lse_base), 4),
	V(sizeof(spmla_uniform), 4),
	V(sizeof(spmla_reorder_arch), 4),
};
/* clang-format on */

START_TEST(every_field_of_the_arguments_lies_where_it_lay)
{
	pins_check(pins, COUNT(pins));
}
END_TEST

START_TEST(numbers_of_the_enums_and_of_the_v4_layout_stay)
{
	pins_check_values(values, COUNT(values));
}
END_TEST

SUITE
{
	const theme_test tests[] = {
		{every_field_of_the_arguments_lies_where_it_lay, 1},
		{numbers_of_the_enums_and_of_the_v4_layout_stay, 1},
	};
	const theme themes[] = {THEME("layout", NULL, NULL, tests)};

	return RUN_THEMES(themes);
}
