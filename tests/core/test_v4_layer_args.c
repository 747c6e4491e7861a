/* SPDX-License-Identifier: Apache-2.0
 *
 * What the calls of a V4 layer refuse of its fields, with which words, and how
 * many ops they had enqueued before: none where the layer's own caches,
 * selection or groups are wrong, or its first op's arguments.
 */
#include <string.h>

#include "tests/harness/bad_args.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))
#define R        "SPMLA_E_RANGE: "

typedef v4_layer_call call;

typedef spmla_v4_layer spmla_v4_layer_args;

static fixture f;
static v4_layer_rig rig;
static const spmla_shape shape = {4, 4, 1, 0};

static void
setup(void)
{
	v4_layer_begin(&f, &rig, &shape);
}

static void
teardown(void)
{
	v4_layer_end(&f, &rig);
}

/* `before` operations are enqueued when the call refuses. */
static void
run_cases(call fn, uint32_t ratio, uint32_t before, const arg_error *cases,
	  uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		spmla_v4_layer layer = v4_layer_of(&rig, f.ctx, ratio);

		arg_set_all(&layer, &cases[i]);
		v4_layer_expect(&f, fn, &layer, &shape, before, cases[i].text);
	}
}

START_TEST(insert_names_what_is_wrong)
{
	static const arg_error cases[] = {
		BAD_EQUAL(v4_layer, swa.layout, 5, 4),
		BAD_EQUAL(v4_layer, swa.table_group, 1, 0),
		BAD_EQUAL(v4_layer, swa.entries_per_page, 64, 8),
		BAD_LEAST(v4_layer, swa.pages, 23, 24),
		BAD_NULL(v4_layer, swa.base),
		BAD_NULL(v4_layer, q),
		BAD_LEAST(v4_layer, q_token_stride_elems, 511, 512),
		BAD_LEAST(v4_layer, q_head_stride_elems, 511, 512),
		BAD_NULL(v4_layer, kv),
		BAD_LEAST(v4_layer, kv_stride_elems, 511, 512),
		BAD_NULL(v4_layer, cos_sin),
		BAD_LEAST(v4_layer, cos_sin_rows, 511, 512),
		BAD_BITS(v4_layer, norm_eps, 0x0),
		/* of the other calls */
		GOOD_ARG(v4_layer, compress_kv, 0),
		GOOD_ARG(v4_layer, compressed.base, 0),
		GOOD_ARG(v4_layer, index_q, 0),
		GOOD_ARG(v4_layer, out, 0),
	};

	run_cases(spmla_v4_insert, 1, 0, cases, COUNT(cases));
	run_cases(spmla_v4_insert, 4, 0, cases, COUNT(cases));
	run_cases(spmla_v4_insert, 128, 0, cases, COUNT(cases));
}
END_TEST

/* Pages of 16 and 256 positions are 4 and 2 keys. */
START_TEST(compress_names_what_is_wrong_of_a_cache)
{
	static const arg_error four[] = {
		BAD_EQUAL(v4_layer, compressed.layout, 3, 4),
		BAD_EQUAL(v4_layer, compressed.table_group, 2, 1),
		BAD_EQUAL(v4_layer, compressed.entries_per_page, 16, 4),
		BAD_LEAST(v4_layer, compressed.pages, 39, 40),
		BAD_RANGE(v4_layer, state.layout, SPMLA_LAYOUT_STATE_512,
			  "got 9, want 10"),
		BAD_EQUAL(v4_layer, state.table_group, 5, 4),
		BAD_EQUAL(v4_layer, state.entries_per_page, 1, 4),
		BAD_LEAST(v4_layer, state.pages, 19, 20),
		BAD_RANGE(v4_layer, index.layout, SPMLA_LAYOUT_INDEX_MXFP4,
			  "got 7, want 3"),
		/* its own number, or the number of the group with the table */
		GOOD_ARG(v4_layer, index.table_group, 1),
		GOOD_ARG(v4_layer, index.table_group, 3),
		BAD_EQUAL(v4_layer, index.table_group, 2, 3),
		BAD_RANGE(v4_layer, index_state.layout, SPMLA_LAYOUT_STATE_1024,
			  "got 10, want 8"),
		GOOD_ARG(v4_layer, index_state.table_group, 4),
		BAD_EQUAL(v4_layer, index_state.table_group, 5, 6),
	};
	static const arg_error most[] = {
		BAD_EQUAL(v4_layer, compressed.table_group, 1, 2),
		BAD_EQUAL(v4_layer, compressed.entries_per_page, 4, 2),
		BAD_LEAST(v4_layer, compressed.pages, 7, 8),
		BAD_RANGE(v4_layer, state.layout, SPMLA_LAYOUT_STATE_1024,
			  "got 10, want 9"),
		BAD_EQUAL(v4_layer, state.table_group, 4, 5),
		/* it has no index keys */
		GOOD_ARG(v4_layer, index.layout, 1),
		GOOD_ARG(v4_layer, index_score, 0),
		GOOD_ARG(v4_layer, index_state.pages, 0),
	};

	run_cases(spmla_v4_compress, 4, 0, four, COUNT(four));
	run_cases(spmla_v4_compress, 128, 0, most, COUNT(most));
}
END_TEST

START_TEST(compress_names_what_is_wrong_of_a_tensor)
{
	static const arg_error cases[] = {
		BAD_NULL(v4_layer, compress_kv),
		BAD_NULL(v4_layer, compress_score),
		BAD_LEAST(v4_layer, compress_kv_stride_elems, 511, 512),
		BAD_LEAST(v4_layer, compress_score_stride_elems, 511, 512),
		BAD_NULL(v4_layer, ape),
		BAD_NULL(v4_layer, norm_weight),
		BAD_NULL(v4_layer, cos_sin),
		BAD_LEAST(v4_layer, cos_sin_rows, 511, 512),
		BAD_BITS(v4_layer, norm_eps, 0x7f800000),
		BAD_NULL(v4_layer, state.base),
		GOOD_ARG(v4_layer, q, 0),
		GOOD_ARG(v4_layer, swa.layout, 1),
	};
	static const arg_error index[] = {
		BAD_LEAST(v4_layer, compress_kv_stride_elems, 1023, 1024),
		/* no indexer of its own: nothing of it counts */
		GOOD_ARG(v4_layer, index_kv, 0),
	};
	static const arg_error own[] = {
		BAD_NULL(v4_layer, index_score),
		BAD_NULL(v4_layer, index_ape),
		BAD_NULL(v4_layer, index_norm_weight),
		BAD_LEAST(v4_layer, index_kv_stride_elems, 255, 256),
		BAD_LEAST(v4_layer, index_score_stride_elems, 255, 256),
	};
	spmla_v4_layer layer = v4_layer_of(&rig, f.ctx, 4);

	run_cases(spmla_v4_compress, 128, 0, cases, COUNT(cases));
	run_cases(spmla_v4_compress, 4, 0, index, COUNT(index));
	run_cases(spmla_v4_compress, 4, 2, own, COUNT(own));
	layer.index_kv = NULL;
	layer.index.layout = 99;
	layer.index_score = NULL;
	v4_layer_expect(&f, spmla_v4_compress, &layer, &shape, 0, NULL);
	ck_assert_uint_eq(fixture_pending(&f), 2);
}
END_TEST

START_TEST(index_names_what_is_wrong)
{
	static int32_t some[16 * 8];
	const arg_error cases[] = {
		BAD_EQUAL(v4_layer, ratio, 1, 4),
		BAD_EQUAL(v4_layer, ratio, 128, 4),
		BAD_NULL(v4_layer, index_q),
		BAD_LEAST(v4_layer, index_q_token_stride_elems, 127, 128),
		BAD_LEAST(v4_layer, index_q_head_stride_elems, 127, 128),
		BAD_NULL(v4_layer, index_weights),
		BAD_LEAST(v4_layer, index_weights_stride_elems, 3, 4),
		BAD_ENUM(v4_layer, index_weights_dtype, 3, "0 or 2"),
		BAD_NULL(v4_layer, cos_sin),
		GOOD_ARG(v4_layer, topk_stride_elems, 8),
		GOOD_ARG(v4_layer, index_kv, 0),
	};
	const arg_error later[] = {
		BAD_EQUAL(v4_layer, index.layout, 7, 3),
		BAD_EQUAL(v4_layer, index.entries_per_page, 16, 4),
		BAD_LEAST(v4_layer, index.pages, 39, 40),
		BAD_EQUAL(v4_layer, index.table_group, 0, 3),
		BAD_NULL(v4_layer, index.base),
		BAD_ARG(v4_layer, topk_indices, (uintptr_t)some, SPMLA_E_NULL,
			NULL_TEXT("v4_layer.topk_lens")),
		BAD_ARG(v4_layer, topk_lens, (uintptr_t)some, SPMLA_E_NULL,
			NULL_TEXT("v4_layer.topk_indices")),
		BAD_EQUAL(v4_layer, topk_stride_elems, 9, 8),
	};
	spmla_v4_layer layer = rig.layer;

	run_cases(spmla_v4_index, 4, 0, cases, COUNT(cases));
	run_cases(spmla_v4_index, 4, 1, later, COUNT(later));
	layer.topk_indices = some;
	layer.topk_lens = some;
	layer.topk_stride_elems = 7;
	v4_layer_expect(&f, spmla_v4_index, &layer, &shape, 2,
			R "v4_layer.topk_stride_elems: got 7, want at least 8");
}
END_TEST

START_TEST(attend_names_what_is_wrong)
{
	static int32_t some[16 * 8];
	const arg_error window[] = {
		BAD_EQUAL(v4_layer, swa.layout, 1, 4),
		BAD_LEAST(v4_layer, swa.pages, 0, 24),
		BAD_NULL(v4_layer, q),
		BAD_LEAST(v4_layer, q_token_stride_elems, 511, 512),
		BAD_NULL(v4_layer, out),
		BAD_LEAST(v4_layer, out_head_stride_elems, 511, 512),
		BAD_LEAST(v4_layer, lse_token_stride_elems, 0, 1),
		BAD_ENUM(v4_layer, empty_lse, 3, "0, 1 or 2"),
		GOOD_ARG(v4_layer, compressed.layout, 1),
		GOOD_ARG(v4_layer, topk_lens, (uintptr_t)some),
		GOOD_ARG(v4_layer, lse, 0),
		GOOD_ARG(v4_layer, attn_sink, 0),
	};
	const arg_error four[] = {
		BAD_EQUAL(v4_layer, compressed.layout, 5, 4),
		BAD_EQUAL(v4_layer, compressed.table_group, 2, 1),
		BAD_EQUAL(v4_layer, compressed.entries_per_page, 2, 4),
		BAD_ARG(v4_layer, topk_indices, (uintptr_t)some, SPMLA_E_NULL,
			NULL_TEXT("v4_layer.topk_lens")),
		BAD_EQUAL(v4_layer, topk_stride_elems, 7, 8),
		GOOD_ARG(v4_layer, index.layout, 0),
	};
	const arg_error mapped[] = {
		/* index_map is before it */
		BAD_NULL(v4_layer, q),
	};
	const arg_error most[] = {
		BAD_EQUAL(v4_layer, compressed.entries_per_page, 4, 2),
		BAD_LEAST(v4_layer, compressed.pages, 7, 8),
		BAD_NULL(v4_layer, q),
		GOOD_ARG(v4_layer, topk_lens, (uintptr_t)some),
	};

	run_cases(spmla_v4_attend, 1, 0, window, COUNT(window));
	run_cases(spmla_v4_attend, 4, 0, four, COUNT(four));
	run_cases(spmla_v4_attend, 4, 1, mapped, COUNT(mapped));
	run_cases(spmla_v4_attend, 128, 0, most, COUNT(most));
}
END_TEST

START_TEST(output_names_what_is_wrong)
{
	static const arg_error cases[] = {
		BAD_LEAST(v4_layer, output_groups, 0, 1),
		/* 4 heads: 4 % 3 is 1 */
		BAD_ARG(v4_layer, output_groups, 3, SPMLA_E_RANGE,
			R "v4_layer.output_groups (to divide config.heads): "
			  "got 1, want 0"),
		BAD_ARG(v4_layer, output_groups, 8, SPMLA_E_RANGE,
			R "v4_layer.output_groups (to divide config.heads): "
			  "got 4, want 0"),
		BAD_NULL(v4_layer, out),
		BAD_NULL(v4_layer, z),
		BAD_ENUM(v4_layer, output_quant, 3, "0, 1 or 2"),
		BAD_LEAST(v4_layer, out_token_stride_elems, 511, 512),
		BAD_NULL(v4_layer, cos_sin),
		GOOD_ARG(v4_layer, q, 0),
		GOOD_ARG(v4_layer, swa.layout, 0),
	};
	static const arg_error product[] = {
		BAD_NULL(v4_layer, wo),
		BAD_LEAST(v4_layer, output_columns, 100, 128),
		BAD_MULTIPLE(v4_layer, output_columns, 200, 128),
		BAD_LEAST(v4_layer, wo_row_stride_elems, 1023, 1024),
		BAD_LEAST(v4_layer, z_group_stride_elems, 127, 128),
		BAD_ARG(v4_layer, output_quant, SPMLA_O_FP8, SPMLA_E_NULL,
			NULL_TEXT("v4_layer.wo_scales")),
	};

	run_cases(spmla_v4_output, 1, 0, cases, COUNT(cases));
	run_cases(spmla_v4_output, 1, 1, product, COUNT(product));
	run_cases(spmla_v4_output, 4, 0, cases, COUNT(cases));
	run_cases(spmla_v4_output, 4, 1, product, COUNT(product));
}
END_TEST

SUITE
{
	const theme_test each[] = {
		{insert_names_what_is_wrong, 1},
		{compress_names_what_is_wrong_of_a_cache, 1},
		{compress_names_what_is_wrong_of_a_tensor, 1},
		{index_names_what_is_wrong, 1},
		{attend_names_what_is_wrong, 1},
		{output_names_what_is_wrong, 1},
	};
	const theme themes[] = {
		THEME("each", setup, teardown, each),
	};

	return RUN_THEMES(themes);
}
