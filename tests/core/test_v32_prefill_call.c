/* SPDX-License-Identifier: Apache-2.0
 *
 * spmla_v32_prefill as a call: which step is one, and what it refuses.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/bytes.h"
#include "tests/harness/prompt_rig.h"
#include "tests/harness/themes.h"

static prompt_rig r;

static void
open_rig(void)
{
	spmla_config config;

	(void)prompt_source();
	prompt_config(&config, 100, 200, 0);
	prompt_open(&r, &config, 0);
}

static void
close_rig(void)
{
	prompt_close(&r);
	prompt_source_close();
}

/* ---- Which step is a prefill ------------------------------------------- */

static uint32_t
bucket_of(const spmla_request *requests, uint32_t n)
{
	static uint8_t record[1 << 14] __attribute__((aligned(16)));
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	spmla_step step = SPMLA_STEP_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	char text[200];

	step.requests = requests;
	step.request_count = n;
	if (spmla_step_encode(&r.f.plan, &step, record, sizeof record, &info,
			      &diag) != SPMLA_OK) {
		spmla_diag_text(&diag, text, sizeof text);
		ck_abort_msg("%s", text);
	}
	return info.bucket;
}

START_TEST(a_step_is_a_prefill_if_it_fits_no_bucket)
{
	static const spmla_request one[1] = {{0, 1, 200, 0}};
	static const spmla_request four[4] = {
		{0, 1, 9, 0}, {1, 1, 9, 0}, {2, 1, 9, 0}, {3, 1, 9, 0}};
	static const spmla_request two_tokens[1] = {{0, 2, 9, 0}};
	static const spmla_request most[2] = {{0, 60, 120, 0}, {1, 40, 80, 0}};

	ck_assert_uint_eq(bucket_of(one, 1), 0);
	ck_assert_uint_eq(bucket_of(four, 4), 1);
	ck_assert_uint_eq(bucket_of(two_tokens, 1), SPMLA_BUCKET_PREFILL);
	ck_assert_uint_eq(bucket_of(most, 2), SPMLA_BUCKET_PREFILL);
	ck_assert_uint_eq(bucket_of(NULL, 0), 0);
}
END_TEST

static void
refuse_step(const spmla_request *requests, uint32_t n, const char *want)
{
	spmla_step step = SPMLA_STEP_INIT;
	uint64_t ticket;

	step.requests = requests;
	step.request_count = n;
	ck_assert_int_eq(spmla_step_write(r.f.ctx, &step, &ticket, NULL),
			 SPMLA_E_RECORD);
	ck_assert_str_eq(fixture_diag(&r.f), want);
}

START_TEST(a_step_larger_than_prefill_says_what_is_too_much)
{
	static const spmla_request tokens[2] = {{0, 60, 60, 0}, {1, 41, 41, 0}};
	static const spmla_request one[1] = {{0, 101, 101, 0}};
	static const spmla_request context[2] = {{0, 2, 120, 0}, {1, 2, 81, 0}};
	static const spmla_request five[5] = {{0, 2, 2, 0},
					      {1, 1, 1, 0},
					      {2, 1, 1, 0},
					      {3, 1, 1, 0},
					      {4, 1, 1, 0}};

	refuse_step(tokens, 2,
		    "SPMLA_E_RECORD: step.tokens: got 101, want at most 100");
	refuse_step(one, 1,
		    "SPMLA_E_RECORD: step.next_n: got 101, want at most 100");
	refuse_step(context, 2,
		    "SPMLA_E_RECORD: step.live_context: got 201, "
		    "want at most 200");
	refuse_step(five, 5,
		    "SPMLA_E_RECORD: step.request_count: got 5, "
		    "want at most 4");
}
END_TEST

/* Contexts of up to 200 tokens: rows of 256 logits, so that 1024 B hold one.
 * Decode has more room for logits than that, and a prefill leaves it alone. */
START_TEST(pieces_of_logits_fit_the_budget)
{
	const spmla_shape shape = {9, 2, 9, 150};
	static const uint32_t rows[4] = {1, 2, 5, 9};
	uint32_t i, t;

	for (i = 0; i < 4; i++) {
		const uint64_t budget = 1024u * rows[i] + (i == 1 ? 1023 : 0);
		spmla_config config;
		const int64_t *at;
		fixture f;

		prompt_config(&config, 100, 200, budget);
		fixture_open(&f, &config, 0);
		ck_assert_uint_ge(f.plan.logits_elems, 2048);
		ck_assert_int_eq(spmla_step_prologue(f.ctx, &shape,
						     SPMLA_FROM_DEVICE, NULL),
				 SPMLA_OK);
		at = spmla_view(f.ctx, SPMLA_BUF_PIECE_ROW_STARTS, NULL);
		for (t = 0; t < 9; t++)
			ck_assert_int_eq(at[t], t % rows[i] * 256);
		fixture_close(&f);
	}
}
END_TEST

/* kv_insert with or without index keys, kv_gather, index_map, sparse_prefill;
 * prep_q and indexer_k_gather; and nine pieces of one token: logits and top-k.
 */
START_TEST(as_many_ops_are_enqueued_as_the_manual_says)
{
	const spmla_shape shape = {9, 2, 9, 150};
	static const uint32_t ops[4] = {4, 4, 4 + 2 + 18, 4 + 2 + 18};
	spmla_config config;
	prompt_rig deferred;
	uint32_t i;

	prompt_config(&config, 100, 200, 1024);
	prompt_open(&deferred, &config, SPMLA_NATIVE_DEFERRED);
	for (i = 0; i < 4; i++) {
		spmla_v32_layer l = deferred.stage.layer;
		spmla_ctx *ctx = deferred.f.ctx;

		l.index_k = i & 1 ? l.index_k : NULL;
		l.index_q = i & 2 ? l.index_q : NULL;
		v32_must(ctx, spmla_step_prologue(ctx, &shape,
						  SPMLA_FROM_DEVICE, NULL));
		fixture_drain(&deferred.f);
		v32_must(ctx, spmla_v32_prefill(ctx, &l, &shape, NULL));
		ck_assert_uint_eq(fixture_pending(&deferred.f), ops[i]);
		fixture_drain(&deferred.f);
	}
	prompt_close(&deferred);
}
END_TEST

/* ---- What the calls refuse --------------------------------------------- */

static void
expect_call(spmla_status s, spmla_status want, const char *text)
{
	ck_assert_int_eq(s, want);
	ck_assert_str_eq(fixture_diag(&r.f), text);
}

static void
prologue(spmla_shape shape)
{
	v32_must(r.f.ctx,
		 spmla_step_prologue(r.f.ctx, &shape, SPMLA_FROM_DEVICE, NULL));
}

START_TEST(decode_and_prefill_are_not_mixed_up)
{
	const spmla_shape small = {4, 4, 1, 0}, large = {9, 2, 9, 150};
	const spmla_v32_layer *l = &r.stage.layer;

	prologue(small);
	expect_call(spmla_v32_prefill(r.f.ctx, l, &small, NULL), SPMLA_E_STATE,
		    "SPMLA_E_STATE: prologue (that began a prefill): got 0, "
		    "want at least 1");
	expect_call(spmla_v32_prefill(r.f.ctx, l, &large, NULL), SPMLA_E_STATE,
		    "SPMLA_E_STATE: shape.tokens (of the last prologue): "
		    "got 9, want at most 4");
	prologue(large);
	expect_call(spmla_v32_index(r.f.ctx, l, &small, NULL), SPMLA_E_STATE,
		    "SPMLA_E_STATE: shape (the last prologue began a "
		    "prefill): got 1, want 0");
	expect_call(spmla_v32_attend(r.f.ctx, l, &large, NULL), SPMLA_E_STATE,
		    "SPMLA_E_STATE: shape (the last prologue began a "
		    "prefill): got 1, want 0");
	v32_must(r.f.ctx, spmla_v32_prefill(r.f.ctx, l, &large, NULL));
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* What was captured and thrown away began no step. */
START_TEST(an_aborted_capture_leaves_the_step_that_was_begun)
{
	const spmla_shape small = {4, 4, 1, 0}, large = {9, 2, 9, 150};
	const spmla_v32_layer *l = &r.stage.layer;
	spmla_ctx *ctx = r.f.ctx;
	spmla_graph graph;

	prologue(large);
	v32_must(ctx, spmla_v32_prefill(ctx, l, &large, NULL));
	v32_must(ctx, spmla_graph_begin(ctx, NULL));
	prologue(small);
	v32_must(ctx, spmla_graph_abort(ctx));
	v32_must(ctx, spmla_v32_prefill(ctx, l, &large, NULL));
	/* Failed ops and all. */
	v32_must(ctx, spmla_graph_begin(ctx, NULL));
	prologue(small);
	ck_assert_int_eq(spmla_v32_insert(ctx, l, NULL, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_graph_end(ctx, &graph), SPMLA_E_CAPTURE);
	v32_must(ctx, spmla_graph_abort(ctx));
	v32_must(ctx, spmla_v32_prefill(ctx, l, &large, NULL));
}
END_TEST

/* Whoever makes the index keys. */
START_TEST(a_prefill_wants_a_rope_row_for_each_position)
{
	const spmla_shape shape = {9, 2, 9, 150};
	spmla_v32_layer l = r.stage.layer;

	prologue(shape);
	l.index_k = NULL;
	l.cos_sin_rows = r.f.plan.config.max_context_tokens - 1;
	expect_call(spmla_v32_prefill(r.f.ctx, &l, &shape, NULL), SPMLA_E_RANGE,
		    "SPMLA_E_RANGE: v32_layer.cos_sin_rows: got 511, want at "
		    "least 512");
}
END_TEST

START_TEST(a_prefill_takes_the_prologues_shape)
{
	const spmla_shape shape = {9, 2, 9, 150};
	const spmla_v32_layer *l = &r.stage.layer;
	spmla_shape other = shape;

	prologue(shape);
	other.tokens = 8;
	expect_call(spmla_v32_prefill(r.f.ctx, l, &other, NULL), SPMLA_E_STATE,
		    "SPMLA_E_STATE: shape.tokens (of the last prologue): "
		    "got 8, want 9");
	other = shape;
	other.requests = 1;
	expect_call(spmla_v32_prefill(r.f.ctx, l, &other, NULL), SPMLA_E_STATE,
		    "SPMLA_E_STATE: shape.requests (of the last prologue): "
		    "got 1, want 2");
	other = shape;
	other.max_live_context = 151;
	expect_call(spmla_v32_prefill(r.f.ctx, l, &other, NULL), SPMLA_E_STATE,
		    "SPMLA_E_STATE: shape.max_live_context (of the last "
		    "prologue): got 151, want 150");
	other.max_live_context = 201;
	expect_call(spmla_v32_prefill(r.f.ctx, l, &other, NULL), SPMLA_E_RANGE,
		    "SPMLA_E_RANGE: shape.max_live_context: got 201, "
		    "want at most 200");
	other = (spmla_shape){101, 2, 9, 0};
	expect_call(
		spmla_step_prologue(r.f.ctx, &other, SPMLA_FROM_DEVICE, NULL),
		SPMLA_E_RANGE,
		"SPMLA_E_RANGE: shape.tokens: got 101, want at most 100");
	ck_assert_int_eq(spmla_v32_prefill(NULL, l, &shape, NULL),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_v32_prefill(r.f.ctx, NULL, &shape, NULL),
			 SPMLA_E_NULL);
	expect_call(spmla_v32_prefill(r.f.ctx, l, NULL, NULL), SPMLA_E_NULL,
		    "SPMLA_E_NULL: shape: got NULL, want a pointer");
}
END_TEST

START_TEST(a_layer_that_is_wrong_is_refused_before_anything_is_written)
{
	const spmla_shape shape = {9, 2, 9, 150};
	spmla_v32_layer bad = r.stage.layer;

	prologue(shape);
	bad.index.entries_per_page = 8;
	expect_call(spmla_v32_prefill(r.f.ctx, &bad, &shape, NULL),
		    SPMLA_E_RANGE,
		    "SPMLA_E_RANGE: v32_layer.index.entries_per_page: got 8, "
		    "want 16");
	bad = r.stage.layer;
	bad.topk_lens = r.lens;
	expect_call(spmla_v32_prefill(r.f.ctx, &bad, &shape, NULL),
		    SPMLA_E_NULL,
		    "SPMLA_E_NULL: v32_layer.topk_indices: got NULL, "
		    "want a pointer");
	bad = r.stage.layer;
	bad.kv.layout = SPMLA_LAYOUT_MLA_BF16;
	ck_assert_int_eq(spmla_v32_prefill(r.f.ctx, &bad, &shape, NULL),
			 SPMLA_E_RANGE);
	ck_assert_uint_eq(
		bytes_other(r.stage.layer.kv.base, r.stage.kv_bytes, 0xAB),
		r.stage.kv_bytes);
}
END_TEST

START_TEST(a_plan_without_prefill_has_none)
{
	const spmla_shape shape = {9, 2, 9, 150};
	spmla_config config;
	fixture f;

	prompt_config(&config, 0, 77, 88);
	fixture_open(&f, &config, 0);
	ck_assert_uint_eq(f.plan.config.prefill_workspace_tokens, 0);
	ck_assert_uint_eq(f.plan.config.logits_budget_bytes, 0);
	ck_assert_ptr_null(spmla_view(f.ctx, SPMLA_BUF_WORKSPACE_STARTS, NULL));
	ck_assert_ptr_null(spmla_view(f.ctx, SPMLA_BUF_GATHERED_KV, NULL));
	ck_assert_int_eq(
		spmla_step_prologue(f.ctx, &shape, SPMLA_FROM_DEVICE, NULL),
		SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f), "SPMLA_E_RANGE: shape.tokens: got "
					   "9, want at most 4");
	fixture_close(&f);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{a_step_is_a_prefill_if_it_fits_no_bucket, 1},
		{a_step_larger_than_prefill_says_what_is_too_much, 1},
		{pieces_of_logits_fit_the_budget, 1},
		{as_many_ops_are_enqueued_as_the_manual_says, 1},
	};
	const theme_test error[] = {
		{decode_and_prefill_are_not_mixed_up, 1},
		{an_aborted_capture_leaves_the_step_that_was_begun, 1},
		{a_prefill_wants_a_rope_row_for_each_position, 1},
		{a_prefill_takes_the_prologues_shape, 1},
		{a_layer_that_is_wrong_is_refused_before_anything_is_written,
		 1},
		{a_plan_without_prefill_has_none, 1},
	};
	const theme themes[] = {
		THEME("shape", open_rig, close_rig, shape),
		THEME("error", open_rig, close_rig, error),
	};

	return RUN_THEMES(themes);
}
