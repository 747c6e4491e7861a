/* SPDX-License-Identifier: Apache-2.0
 *
 * What the calls of a V3.2 layer refuse, with which words: they name the
 * layer's field, also where an operation checks it.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/bad_args.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))
#define R        "SPMLA_E_RANGE: "

typedef spmla_status (*call)(spmla_ctx *, const spmla_v32_layer *,
			     const spmla_shape *, spmla_stream);

typedef spmla_v32_layer spmla_v32_layer_args;

static fixture f;
static v32_rig rig;
static const spmla_shape shape = {4, 4, 1, 0};

static void
setup(void)
{
	spmla_config config;
	uint64_t ticket;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	v32_rig_open(&rig, f.ctx, 0, 1);
	v32_rig_write(&rig, f.ctx, 0, &ticket);
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, &shape, SPMLA_FROM_RING, NULL));
}

static void
teardown(void)
{
	v32_rig_close(&rig);
	fixture_close(&f);
}

/* Alone, and in a capture, which it must spoil. */
static void
expect(call fn, const spmla_v32_layer *layer, const spmla_shape *sh,
       const char *want)
{
	const spmla_status s = fn(f.ctx, layer, sh, NULL);
	spmla_graph graph;

	if (!want) {
		v32_must(f.ctx, s);
		return;
	}
	ck_assert_int_ne(s, SPMLA_OK);
	ck_assert_str_eq(fixture_diag(&f), want);
	ck_assert_uint_eq(spmla_ctx_diag(f.ctx)->status, s);
	v32_must(f.ctx, spmla_graph_begin(f.ctx, NULL));
	ck_assert_int_eq(fn(f.ctx, layer, sh, NULL), s);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_E_CAPTURE);
	v32_must(f.ctx, spmla_graph_abort(f.ctx));
}

static void
run_cases(call fn, const arg_error *cases, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		spmla_v32_layer layer = rig.layer;

		arg_set_all(&layer, &cases[i]);
		expect(fn, &layer, &shape, cases[i].text);
	}
}

static const call calls[] = {spmla_v32_insert, spmla_v32_index,
			     spmla_v32_attend, spmla_v32_attn};

START_TEST(every_call_wants_a_context_a_layer_and_a_shape)
{
	uint32_t i;

	for (i = 0; i < COUNT(calls); i++) {
		spmla_v32_layer layer = rig.layer;

		ck_assert_int_eq(calls[i](NULL, &layer, &shape, NULL),
				 SPMLA_E_NULL);
		expect(calls[i], NULL, &shape, NULL_TEXT("v32_layer"));
		expect(calls[i], &layer, NULL, NULL_TEXT("shape"));
		layer.struct_bytes = 320;
		expect(calls[i], &layer, &shape,
		       "SPMLA_E_STRUCT_SIZE: v32_layer: got 320, want 336");
	}
}
END_TEST

START_TEST(a_shape_larger_than_every_bucket_is_refused)
{
	static const struct {
		spmla_shape shape;
		const char *text;
	} cases[] = {
		{{0, 4, 1, 0}, R "shape.tokens: got 0, want at least 1"},
		{{17, 4, 1, 0}, R "shape.tokens: got 17, want at most 16"},
		{{4, 0, 1, 0}, R "shape.requests: got 0, want at least 1"},
		{{4, 9, 1, 0}, R "shape.requests: got 9, want at most 8"},
		{{4, 4, 0, 0}, R "shape.next_n: got 0, want at least 1"},
		{{4, 4, 5, 0}, R "shape.next_n: got 5, want at most 4"},
	};
	uint32_t i, k;

	for (k = 0; k < COUNT(calls); k++)
		for (i = 0; i < COUNT(cases); i++)
			expect(calls[k], &rig.layer, &cases[i].shape,
			       cases[i].text);
}
END_TEST

START_TEST(a_call_of_more_tokens_than_its_prologue_is_refused)
{
	const spmla_shape small = f.plan.config.buckets[0];
	const spmla_shape large = f.plan.config.buckets[1];
	uint32_t i;

	ck_assert_uint_lt(small.tokens, large.tokens);
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, &small, SPMLA_FROM_DEVICE, NULL));
	for (i = 0; i < COUNT(calls); i++)
		expect(calls[i], &rig.layer, &large,
		       "SPMLA_E_STATE: shape.tokens (of the last prologue): "
		       "got 8, want at most 4");
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, &large, SPMLA_FROM_DEVICE, NULL));
	v32_must(f.ctx, spmla_v32_insert(f.ctx, &rig.layer, &small, NULL));
}
END_TEST

START_TEST(insert_names_what_is_wrong)
{
	static const arg_error cases[] = {
		BAD_EQUAL(v32_layer, kv.layout, 2, 1),
		BAD_EQUAL(v32_layer, kv.layout, 0, 1),
		BAD_EQUAL(v32_layer, kv.table_group, 1, 0),
		BAD_EQUAL(v32_layer, kv.entries_per_page, 32, 16),
		BAD_LEAST(v32_layer, kv.pages, 63, 64),
		BAD_NULL(v32_layer, kv.base),
		BAD_LEAST(v32_layer, kv.page_stride_bytes, 10480, 10496),
		BAD_NULL(v32_layer, kv_c),
		BAD_NULL(v32_layer, k_pe),
		BAD_LEAST(v32_layer, kv_c_stride_elems, 511, 512),
		BAD_LEAST(v32_layer, k_pe_stride_elems, 63, 64),
		BAD_RANGE(v32_layer, k_pe_stride_elems, (uint64_t)-64,
			  "got 0, want at least 64"),
		BAD_EQUAL(v32_layer, index.layout, 1, 3),
		BAD_EQUAL(v32_layer, index.table_group, 7, 0),
		BAD_EQUAL(v32_layer, index.entries_per_page, 15, 16),
		BAD_LEAST(v32_layer, index.pages, 0, 64),
		BAD_LEAST(v32_layer, index_k_stride_elems, 127, 128),
		BAD_ENUM(v32_layer, rope_style, 3, "0, 1 or 2"),
		BAD_NULL(v32_layer, cos_sin),
		BAD_LEAST(v32_layer, cos_sin_rows, 511, 512),
		BAD_NULL(v32_layer, index_norm_bias),
		BAD_BITS(v32_layer, norm_eps, 0x0),
		/* Without an indexer of its own, and already normed. */
		GOOD_ARG(v32_layer, index_k, 0),
		GOOD_ARG(v32_layer, index_norm_weight, 0),
		GOOD_ARG(v32_layer, kv.pages, 65),
	};

	/* The last is larger than the rig's memory, but not its page ids. */
	run_cases(spmla_v32_insert, cases, COUNT(cases));
}
END_TEST

START_TEST(index_names_what_is_wrong)
{
	static int32_t some[16 * 8];
	const arg_error cases[] = {
		BAD_NULL(v32_layer, index_q),
		BAD_LEAST(v32_layer, index_q_token_stride_elems, 127, 128),
		BAD_LEAST(v32_layer, index_q_head_stride_elems, 127, 128),
		BAD_NULL(v32_layer, index_weights),
		BAD_LEAST(v32_layer, index_weights_stride_elems, 3, 4),
		BAD_RANGE(v32_layer, index_weights_dtype, SPMLA_DTYPE_FP16,
			  "got 1, want 0 or 2"),
		BAD_ENUM(v32_layer, index_weights_dtype, 3, "0 or 2"),
		BAD_ENUM(v32_layer, index_q_scale_floor, 3, "0, 1 or 2"),
		BAD_ENUM(v32_layer, rope_style, 3, "0, 1 or 2"),
		BAD_NULL(v32_layer, cos_sin),
		BAD_LEAST(v32_layer, cos_sin_rows, 511, 512),
		BAD_EQUAL(v32_layer, index.table_group, 1, 0),
		BAD_EQUAL(v32_layer, index.entries_per_page, 64, 16),
		BAD_LEAST(v32_layer, index.pages, 63, 64),
		BAD_EQUAL(v32_layer, index.layout, 2, 3),
		BAD_ARG(v32_layer, topk_indices, (uintptr_t)some, SPMLA_E_NULL,
			NULL_TEXT("v32_layer.topk_lens")),
		BAD_ARG(v32_layer, topk_lens, (uintptr_t)some, SPMLA_E_NULL,
			NULL_TEXT("v32_layer.topk_indices")),
		BAD_EQUAL(v32_layer, topk_stride_elems, 9, 8),
		BAD_EQUAL(v32_layer, topk_stride_elems, 7, 8),
		GOOD_ARG(v32_layer, topk_stride_elems, 8),
		GOOD_ARG(v32_layer, index_k, 0),
	};
	spmla_v32_layer layer = rig.layer;

	run_cases(spmla_v32_index, cases, COUNT(cases));
	layer.topk_indices = some;
	layer.topk_lens = some;
	layer.topk_stride_elems = 7;
	expect(spmla_v32_index, &layer, &shape,
	       R "v32_layer.topk_stride_elems: got 7, want at least 8");
	/* The planned buffers have their rows, by name too. */
	layer.topk_indices = spmla_view(f.ctx, SPMLA_BUF_TOPK_INDICES, NULL);
	layer.topk_lens = spmla_view(f.ctx, SPMLA_BUF_TOPK_LENS, NULL);
	layer.topk_stride_elems = 9;
	expect(spmla_v32_index, &layer, &shape,
	       R "v32_layer.topk_stride_elems: got 9, want 8");
	layer.topk_stride_elems = 0;
	expect(spmla_v32_index, &layer, &shape, NULL);
}
END_TEST

START_TEST(attend_names_what_is_wrong)
{
	static int32_t some[16 * 8];
	const arg_error cases[] = {
		BAD_NULL(v32_layer, q),
		BAD_LEAST(v32_layer, q_token_stride_elems, 575, 576),
		BAD_LEAST(v32_layer, q_head_stride_elems, 575, 576),
		BAD_NULL(v32_layer, out),
		BAD_LEAST(v32_layer, out_token_stride_elems, 511, 512),
		BAD_LEAST(v32_layer, out_head_stride_elems, 511, 512),
		BAD_LEAST(v32_layer, lse_token_stride_elems, 0, 1),
		BAD_LEAST(v32_layer, lse_head_stride_elems, 0, 1),
		BAD_ENUM(v32_layer, empty_lse, 3, "0, 1 or 2"),
		BAD_EQUAL(v32_layer, kv.layout, 2, 1),
		BAD_EQUAL(v32_layer, kv.table_group, 1, 0),
		BAD_EQUAL(v32_layer, kv.entries_per_page, 8, 16),
		BAD_LEAST(v32_layer, kv.pages, 1, 64),
		BAD_ARG(v32_layer, kv.struct_bytes, 0, SPMLA_E_STRUCT_SIZE,
			"SPMLA_E_STRUCT_SIZE: v32_layer.kv.struct_bytes: got "
			"0, want 40"),
		BAD_ARG(v32_layer, topk_indices, (uintptr_t)some, SPMLA_E_NULL,
			NULL_TEXT("v32_layer.topk_lens")),
		BAD_ARG(v32_layer, topk_lens, (uintptr_t)some, SPMLA_E_NULL,
			NULL_TEXT("v32_layer.topk_indices")),
		BAD_RANGE(v32_layer, topk_stride_elems, (uint64_t)-8,
			  "got 0, want 8"),
		GOOD_ARG(v32_layer, lse, 0),
		GOOD_ARG(v32_layer, index_q, 0),
	};

	/* A selection, so that what is accepted reads one. */
	v32_must(f.ctx, spmla_v32_index(f.ctx, &rig.layer, &shape, NULL));
	run_cases(spmla_v32_attend, cases, COUNT(cases));
}
END_TEST

/* A table that is not read may be short: with rope NONE, and where the layer
 * has no indexer. */
START_TEST(a_rope_table_that_is_not_read_may_be_short)
{
	spmla_v32_layer layer = rig.layer;

	layer.cos_sin_rows = 0;
	layer.rope_style = SPMLA_ROPE_NONE;
	expect(spmla_v32_attn, &layer, &shape, NULL);
	layer.rope_style = SPMLA_ROPE_NEOX;
	layer.index_k = NULL;
	layer.index_q = NULL;
	expect(spmla_v32_attn, &layer, &shape, NULL);
}
END_TEST

START_TEST(attn_names_what_is_wrong_in_any_of_its_parts)
{
	static const arg_error cases[] = {
		BAD_NULL(v32_layer, kv_c),
		BAD_NULL(v32_layer, index_weights),
		BAD_NULL(v32_layer, out),
		GOOD_ARG(v32_layer, index_q, 0),
	};

	v32_must(f.ctx, spmla_v32_attn(f.ctx, &rig.layer, &shape, NULL));
	run_cases(spmla_v32_attn, cases, COUNT(cases));
}
END_TEST

/* Both inserts; index queries, logits, top-k, which maps what it selects; or
 * index_map alone; decode. */
START_TEST(attn_enqueues_what_the_layer_has)
{
	static const uint32_t ops[4] = {1 + 0 + 2, 1 + 0 + 2, 1 + 3 + 1,
					1 + 3 + 1};
	spmla_config config;
	fixture queued;
	uint32_t i;

	fixture_config(&config);
	fixture_open(&queued, &config, SPMLA_NATIVE_DEFERRED);
	if (fixture_on_cpu()) /* others count launches */
		for (i = 0; i < 4; i++) {
			spmla_v32_layer l = rig.layer;

			l.index_k = i & 1 ? l.index_k : NULL;
			l.index_q = i & 2 ? l.index_q : NULL;
			v32_must(queued.ctx,
				 spmla_step_prologue(queued.ctx, &shape,
						     SPMLA_FROM_DEVICE, NULL));
			fixture_drain(&queued);
			v32_must(queued.ctx,
				 spmla_v32_attn(queued.ctx, &l, &shape, NULL));
			ck_assert_uint_eq(fixture_pending(&queued), ops[i]);
		}
	fixture_drain(&queued);
	fixture_close(&queued);
}
END_TEST

SUITE
{
	const theme_test attn[] = {
		{attn_enqueues_what_the_layer_has, 1},
	};
	const theme_test c[] = {
		{every_call_wants_a_context_a_layer_and_a_shape, 1},
		{a_shape_larger_than_every_bucket_is_refused, 1},
		{a_call_of_more_tokens_than_its_prologue_is_refused, 1},
		{insert_names_what_is_wrong, 1},
		{index_names_what_is_wrong, 1},
		{attend_names_what_is_wrong, 1},
		{a_rope_table_that_is_not_read_may_be_short, 1},
		{attn_names_what_is_wrong_in_any_of_its_parts, 1},
	};
	const theme themes[] = {
		THEME("attn", setup, teardown, attn),
		THEME("error", setup, teardown, c),
	};

	return RUN_THEMES(themes);
}
