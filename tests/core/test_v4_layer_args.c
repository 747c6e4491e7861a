/* SPDX-License-Identifier: Apache-2.0
 *
 * What the calls of a V4 layer refuse of its fields, with which words, and how
 * many ops they had enqueued before: none where the layer's own caches,
 * selection or groups are wrong, or its first op's arguments.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

#define COUNT(a)     ((uint32_t)(sizeof(a) / sizeof((a)[0])))
#define AT(field)    ((uint32_t)offsetof(spmla_v4_layer, field))
#define SIZE(field)  ((uint32_t)sizeof(((spmla_v4_layer *)0)->field))
#define FIELD(field) AT(field), SIZE(field)
#define NUL(name)    "SPMLA_E_NULL: " name ": got NULL, want a pointer"
#define R            "SPMLA_E_RANGE: "

typedef v4_layer_call call;

/* One field of a layer that is otherwise right. */
typedef struct field_case {
	uint32_t at;
	uint32_t bytes; /* 4 or 8 */
	uint64_t value;
	uint32_t before;  /* ops that were enqueued */
	const char *text; /* NULL: accepted */
} field_case;

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

static void
run_cases(call fn, uint32_t ratio, const field_case *cases, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		spmla_v4_layer layer = v4_layer_of(&rig, f.ctx, ratio);

		/* little endian: the low bytes come first */
		memcpy((unsigned char *)&layer + cases[i].at, &cases[i].value,
		       cases[i].bytes);
		v4_layer_expect(&f, fn, &layer, &shape, cases[i].before,
				cases[i].text);
	}
}

START_TEST(insert_names_what_is_wrong)
{
	static const field_case cases[] = {
		{FIELD(swa.layout), 5, 0,
		 R "v4_layer.swa.layout: got 5, want 4"},
		{FIELD(swa.table_group), 1, 0,
		 R "v4_layer.swa.table_group: got 1, want 0"},
		{FIELD(swa.entries_per_page), 64, 0,
		 R "v4_layer.swa.entries_per_page: got 64, want 8"},
		{FIELD(swa.pages), 23, 0,
		 R "v4_layer.swa.pages: got 23, want at least 24"},
		{FIELD(swa.base), 0, 0, NUL("v4_layer.swa.base")},
		{FIELD(q), 0, 0, NUL("v4_layer.q")},
		{FIELD(q_token_stride_elems), 511, 0,
		 R "v4_layer.q_token_stride_elems: got 511, want at least 512"},
		{FIELD(q_head_stride_elems), 511, 0,
		 R "v4_layer.q_head_stride_elems: got 511, want at least 512"},
		{FIELD(kv), 0, 0, NUL("v4_layer.kv")},
		{FIELD(kv_stride_elems), 511, 0,
		 R "v4_layer.kv_stride_elems: got 511, want at least 512"},
		{FIELD(cos_sin), 0, 0, NUL("v4_layer.cos_sin")},
		{FIELD(cos_sin_rows), 511, 0,
		 R "v4_layer.cos_sin_rows: got 511, want at least 512"},
		{FIELD(norm_eps), 0, 0,
		 R "v4_layer.norm_eps: got bits 0x0, want a finite value above "
		   "0"},
		/* of the other calls */
		{FIELD(compress_kv), 0, 0, NULL},
		{FIELD(compressed.base), 0, 0, NULL},
		{FIELD(index_q), 0, 0, NULL},
		{FIELD(out), 0, 0, NULL},
	};

	run_cases(spmla_v4_insert, 1, cases, COUNT(cases));
	run_cases(spmla_v4_insert, 4, cases, COUNT(cases));
	run_cases(spmla_v4_insert, 128, cases, COUNT(cases));
}
END_TEST

/* Pages of 16 and 256 positions are 4 and 2 keys. */
START_TEST(compress_names_what_is_wrong_of_a_cache)
{
	static const field_case four[] = {
		{FIELD(compressed.layout), 3, 0,
		 R "v4_layer.compressed.layout: got 3, want 4"},
		{FIELD(compressed.table_group), 2, 0,
		 R "v4_layer.compressed.table_group: got 2, want 1"},
		{FIELD(compressed.entries_per_page), 16, 0,
		 R "v4_layer.compressed.entries_per_page: got 16, want 4"},
		{FIELD(compressed.pages), 39, 0,
		 R "v4_layer.compressed.pages: got 39, want at least 40"},
		{FIELD(state.layout), SPMLA_LAYOUT_STATE_512, 0,
		 R "v4_layer.state.layout: got 9, want 10"},
		{FIELD(state.table_group), 5, 0,
		 R "v4_layer.state.table_group: got 5, want 4"},
		{FIELD(state.entries_per_page), 1, 0,
		 R "v4_layer.state.entries_per_page: got 1, want 4"},
		{FIELD(state.pages), 19, 0,
		 R "v4_layer.state.pages: got 19, want at least 20"},
		{FIELD(index.layout), SPMLA_LAYOUT_INDEX_MXFP4, 0,
		 R "v4_layer.index.layout: got 7, want 3"},
		/* its own number, or the number of the group with the table */
		{FIELD(index.table_group), 1, 0, NULL},
		{FIELD(index.table_group), 3, 0, NULL},
		{FIELD(index.table_group), 2, 0,
		 R "v4_layer.index.table_group: got 2, want 3"},
		{FIELD(index_state.layout), SPMLA_LAYOUT_STATE_1024, 0,
		 R "v4_layer.index_state.layout: got 10, want 8"},
		{FIELD(index_state.table_group), 4, 0, NULL},
		{FIELD(index_state.table_group), 5, 0,
		 R "v4_layer.index_state.table_group: got 5, want 6"},
	};
	static const field_case most[] = {
		{FIELD(compressed.table_group), 1, 0,
		 R "v4_layer.compressed.table_group: got 1, want 2"},
		{FIELD(compressed.entries_per_page), 4, 0,
		 R "v4_layer.compressed.entries_per_page: got 4, want 2"},
		{FIELD(compressed.pages), 7, 0,
		 R "v4_layer.compressed.pages: got 7, want at least 8"},
		{FIELD(state.layout), SPMLA_LAYOUT_STATE_1024, 0,
		 R "v4_layer.state.layout: got 10, want 9"},
		{FIELD(state.table_group), 4, 0,
		 R "v4_layer.state.table_group: got 4, want 5"},
		/* it has no index keys */
		{FIELD(index.layout), 1, 0, NULL},
		{FIELD(index_score), 0, 0, NULL},
		{FIELD(index_state.pages), 0, 0, NULL},
	};

	run_cases(spmla_v4_compress, 4, four, COUNT(four));
	run_cases(spmla_v4_compress, 128, most, COUNT(most));
}
END_TEST

START_TEST(compress_names_what_is_wrong_of_a_tensor)
{
	static const field_case cases[] = {
		{FIELD(compress_kv), 0, 0, NUL("v4_layer.compress_kv")},
		{FIELD(compress_score), 0, 0, NUL("v4_layer.compress_score")},
		{FIELD(compress_kv_stride_elems), 511, 0,
		 R "v4_layer.compress_kv_stride_elems: got 511, want at least "
		   "512"},
		{FIELD(compress_score_stride_elems), 511, 0,
		 R "v4_layer.compress_score_stride_elems: got 511, want at "
		   "least 512"},
		{FIELD(ape), 0, 0, NUL("v4_layer.ape")},
		{FIELD(norm_weight), 0, 0, NUL("v4_layer.norm_weight")},
		{FIELD(cos_sin), 0, 0, NUL("v4_layer.cos_sin")},
		{FIELD(cos_sin_rows), 511, 0,
		 R "v4_layer.cos_sin_rows: got 511, want at least 512"},
		{FIELD(norm_eps), 0x7f800000, 0,
		 R "v4_layer.norm_eps: got bits 0x7f800000, want a finite "
		   "value above "
		   "0"},
		{FIELD(state.base), 0, 0, NUL("v4_layer.state.base")},
		{FIELD(q), 0, 0, NULL},
		{FIELD(swa.layout), 1, 0, NULL},
	};
	static const field_case index[] = {
		{FIELD(compress_kv_stride_elems), 1023, 0,
		 R "v4_layer.compress_kv_stride_elems: got 1023, want at least "
		   "1024"},
		{FIELD(index_score), 0, 2, NUL("v4_layer.index_score")},
		{FIELD(index_ape), 0, 2, NUL("v4_layer.index_ape")},
		{FIELD(index_norm_weight), 0, 2,
		 NUL("v4_layer.index_norm_weight")},
		{FIELD(index_kv_stride_elems), 255, 2,
		 R
		 "v4_layer.index_kv_stride_elems: got 255, want at least 256"},
		{FIELD(index_score_stride_elems), 255, 2,
		 R "v4_layer.index_score_stride_elems: got 255, want at least "
		   "256"},
		/* no indexer of its own: nothing of it counts */
		{FIELD(index_kv), 0, 0, NULL},
	};
	spmla_v4_layer layer = v4_layer_of(&rig, f.ctx, 4);

	run_cases(spmla_v4_compress, 128, cases, COUNT(cases));
	run_cases(spmla_v4_compress, 4, index, COUNT(index));
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
	const field_case cases[] = {
		{FIELD(ratio), 1, 0, R "v4_layer.ratio: got 1, want 4"},
		{FIELD(ratio), 128, 0, R "v4_layer.ratio: got 128, want 4"},
		{FIELD(index_q), 0, 0, NUL("v4_layer.index_q")},
		{FIELD(index_q_token_stride_elems), 127, 0,
		 R "v4_layer.index_q_token_stride_elems: got 127, want at "
		   "least 128"},
		{FIELD(index_q_head_stride_elems), 127, 0,
		 R "v4_layer.index_q_head_stride_elems: got 127, want at least "
		   "128"},
		{FIELD(index_weights), 0, 0, NUL("v4_layer.index_weights")},
		{FIELD(index_weights_stride_elems), 3, 0,
		 R
		 "v4_layer.index_weights_stride_elems: got 3, want at least 4"},
		{FIELD(index_weights_dtype), 3, 0,
		 R "v4_layer.index_weights_dtype: got 3, want 0 or 2"},
		{FIELD(cos_sin), 0, 0, NUL("v4_layer.cos_sin")},
		{FIELD(index.layout), 7, 1,
		 R "v4_layer.index.layout: got 7, want 3"},
		{FIELD(index.entries_per_page), 16, 1,
		 R "v4_layer.index.entries_per_page: got 16, want 4"},
		{FIELD(index.pages), 39, 1,
		 R "v4_layer.index.pages: got 39, want at least 40"},
		{FIELD(index.table_group), 0, 1,
		 R "v4_layer.index.table_group: got 0, want 3"},
		{FIELD(index.base), 0, 1, NUL("v4_layer.index.base")},
		{FIELD(topk_indices), (uintptr_t)some, 1,
		 NUL("v4_layer.topk_lens")},
		{FIELD(topk_lens), (uintptr_t)some, 1,
		 NUL("v4_layer.topk_indices")},
		{FIELD(topk_stride_elems), 9, 1,
		 R "v4_layer.topk_stride_elems: got 9, want 8"},
		{FIELD(topk_stride_elems), 8, 0, NULL},
		{FIELD(index_kv), 0, 0, NULL},
	};
	spmla_v4_layer layer = rig.layer;

	run_cases(spmla_v4_index, 4, cases, COUNT(cases));
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
	const field_case window[] = {
		{FIELD(swa.layout), 1, 0,
		 R "v4_layer.swa.layout: got 1, want 4"},
		{FIELD(swa.pages), 0, 0,
		 R "v4_layer.swa.pages: got 0, want at least 24"},
		{FIELD(q), 0, 0, NUL("v4_layer.q")},
		{FIELD(q_token_stride_elems), 511, 0,
		 R "v4_layer.q_token_stride_elems: got 511, want at least 512"},
		{FIELD(out), 0, 0, NUL("v4_layer.out")},
		{FIELD(out_head_stride_elems), 511, 0,
		 R
		 "v4_layer.out_head_stride_elems: got 511, want at least 512"},
		{FIELD(lse_token_stride_elems), 0, 0,
		 R "v4_layer.lse_token_stride_elems: got 0, want at least 1"},
		{FIELD(empty_lse), 3, 0,
		 R "v4_layer.empty_lse: got 3, want 0, 1 or 2"},
		{FIELD(compressed.layout), 1, 0, NULL},
		{FIELD(topk_lens), (uintptr_t)some, 0, NULL},
		{FIELD(lse), 0, 0, NULL},
		{FIELD(attn_sink), 0, 0, NULL},
	};
	const field_case four[] = {
		{FIELD(compressed.layout), 5, 0,
		 R "v4_layer.compressed.layout: got 5, want 4"},
		{FIELD(compressed.table_group), 2, 0,
		 R "v4_layer.compressed.table_group: got 2, want 1"},
		{FIELD(compressed.entries_per_page), 2, 0,
		 R "v4_layer.compressed.entries_per_page: got 2, want 4"},
		{FIELD(topk_indices), (uintptr_t)some, 0,
		 NUL("v4_layer.topk_lens")},
		{FIELD(topk_stride_elems), 7, 0,
		 R "v4_layer.topk_stride_elems: got 7, want 8"},
		/* index_map is before it */
		{FIELD(q), 0, 1, NUL("v4_layer.q")},
		{FIELD(index.layout), 0, 0, NULL},
	};
	const field_case most[] = {
		{FIELD(compressed.entries_per_page), 4, 0,
		 R "v4_layer.compressed.entries_per_page: got 4, want 2"},
		{FIELD(compressed.pages), 7, 0,
		 R "v4_layer.compressed.pages: got 7, want at least 8"},
		{FIELD(q), 0, 0, NUL("v4_layer.q")},
		{FIELD(topk_lens), (uintptr_t)some, 0, NULL},
	};

	run_cases(spmla_v4_attend, 1, window, COUNT(window));
	run_cases(spmla_v4_attend, 4, four, COUNT(four));
	run_cases(spmla_v4_attend, 128, most, COUNT(most));
}
END_TEST

START_TEST(output_names_what_is_wrong)
{
	static const field_case cases[] = {
		{FIELD(output_groups), 0, 0,
		 R "v4_layer.output_groups: got 0, want at least 1"},
		/* 4 heads: 4 % 3 is 1 */
		{FIELD(output_groups), 3, 0,
		 R "v4_layer.output_groups (to divide config.heads): got 1, "
		   "want 0"},
		{FIELD(output_groups), 8, 0,
		 R "v4_layer.output_groups (to divide config.heads): got 4, "
		   "want 0"},
		{FIELD(out), 0, 0, NUL("v4_layer.out")},
		{FIELD(z), 0, 0, NUL("v4_layer.z")},
		{FIELD(output_quant), 3, 0,
		 R "v4_layer.output_quant: got 3, want 0, 1 or 2"},
		{FIELD(out_token_stride_elems), 511, 0,
		 R "v4_layer.out_token_stride_elems: got 511, "
		   "want at least 512"},
		{FIELD(cos_sin), 0, 0, NUL("v4_layer.cos_sin")},
		{FIELD(wo), 0, 1, NUL("v4_layer.wo")},
		{FIELD(output_columns), 100, 1,
		 R "v4_layer.output_columns: got 100, want at least 128"},
		{FIELD(output_columns), 200, 1,
		 R "v4_layer.output_columns: got 200, want a multiple of 128"},
		{FIELD(wo_row_stride_elems), 1023, 1,
		 R
		 "v4_layer.wo_row_stride_elems: got 1023, want at least 1024"},
		{FIELD(z_group_stride_elems), 127, 1,
		 R "v4_layer.z_group_stride_elems: got 127, want at least 128"},
		{FIELD(output_quant), SPMLA_O_FP8, 1,
		 NUL("v4_layer.wo_scales")},
		{FIELD(q), 0, 0, NULL},
		{FIELD(swa.layout), 0, 0, NULL},
	};

	run_cases(spmla_v4_output, 1, cases, COUNT(cases));
	run_cases(spmla_v4_output, 4, cases, COUNT(cases));
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
