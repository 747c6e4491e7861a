/* SPDX-License-Identifier: Apache-2.0
 *
 * spmla_v32_prefill on bad data: what is wrong is empty and reported, and
 * everything beside it is as it would be alone.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/bytes.h"
#include "tests/harness/prompt_rig.h"
#include "tests/harness/themes.h"

static const uint32_t none[PROMPTS];
static const uint32_t whole[PROMPTS] = {70, 33};
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

static void
prologue(spmla_shape shape)
{
	v32_must(r.f.ctx,
		 spmla_step_prologue(r.f.ctx, &shape, SPMLA_FROM_DEVICE, NULL));
}

/* The engine's requests in STEP_DEVICE. */
static void
put_device_step(const spmla_request *requests, uint32_t n, uint32_t flags)
{
	spmla_step_device *d = spmla_view(r.f.ctx, SPMLA_BUF_STEP_DEVICE, NULL);

	memset(d, 0, sizeof *d);
	d->requests = n;
	d->flags = flags;
	if (n > 0)
		memcpy(d + 1, requests, n * sizeof *requests);
}

static void
run_device(spmla_shape shape)
{
	prologue(shape);
	v32_must(r.f.ctx,
		 spmla_v32_prefill(r.f.ctx, &r.stage.layer, &shape, NULL));
}

static void
expect_empty(uint32_t t)
{
	const float *lse = r.stage.lse + t * PROMPT_HEADS;
	uint32_t h;

	ck_assert_uint_eq(
		bytes_other(r.stage.out + t * PROMPT_OUT, PROMPT_OUT * 2, 0),
		PROMPT_OUT * 2);
	for (h = 0; h < PROMPT_HEADS; h++)
		ck_assert(lse[h] > 1e38f); /* +inf */
}

START_TEST(a_step_that_is_empty_writes_empty_rows)
{
	uint32_t t;

	put_device_step(NULL, 0, 0);
	run_device((spmla_shape){9, 2, 9, 0});
	for (t = 0; t < 9; t++)
		expect_empty(t);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	ck_assert_uint_eq(
		bytes_other(r.stage.layer.kv.base, r.stage.kv_bytes, 0xAB),
		r.stage.kv_bytes);
}
END_TEST

/* A request is bad, the other one is as it would be alone. */
static void
check_beside(spmla_request bad, spmla_fault fault)
{
	const spmla_shape shape = {12, 2, 9, 200};
	const spmla_request good = {prompt_row[1], 3, 33, 0};
	const spmla_request two[2] = {bad, good};
	spmla_device_status s;
	uint16_t alone[3 * PROMPT_OUT];
	uint32_t t;

	put_device_step(&good, 1, 0);
	run_device(shape);
	memcpy(alone, r.stage.out, sizeof alone);
	put_device_step(two, 2, 0);
	/* The same inputs at the tokens of the good one. */
	memmove(r.stage.q + bad.query_tokens * 4 * 576, r.stage.q,
		3 * 4 * 576 * 2);
	memmove(r.stage.index_q + bad.query_tokens * 512, r.stage.index_q,
		3 * 512 * 2);
	memmove(r.stage.index_weights + bad.query_tokens * 4,
		r.stage.index_weights, 3 * 4 * 4);
	memmove(r.stage.kv_c + bad.query_tokens * 512, r.stage.kv_c,
		3 * 512 * 2);
	memmove(r.stage.k_pe + bad.query_tokens * 64, r.stage.k_pe, 3 * 64 * 2);
	memmove(r.stage.index_k + bad.query_tokens * 128, r.stage.index_k,
		3 * 128 * 2);
	run_device(shape);
	s = fixture_status(&r.f);
	ck_assert_uint_gt(s.count, 0);
	ck_assert_uint_eq(s.fault, fault);
	for (t = 0; t < bad.query_tokens; t++)
		expect_empty(t);
	ck_assert_mem_eq(r.stage.out + bad.query_tokens * PROMPT_OUT, alone,
			 sizeof alone);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
}

START_TEST(a_bad_request_is_empty_and_spares_the_others)
{
	prompt_run(&r, none, whole);
	/* a row past the last, lengths past the longest and below the query */
	check_beside((spmla_request){8, 4, 9, 0}, SPMLA_FAULT_ROW);
	check_beside((spmla_request){UINT32_MAX, 4, 9, 0}, SPMLA_FAULT_ROW);
	check_beside((spmla_request){1, 4, 3, 0}, SPMLA_FAULT_LENGTH);
	/* a row without pages */
	check_beside((spmla_request){3, 4, 9, 0}, SPMLA_FAULT_PAGE);
}
END_TEST

START_TEST(a_step_larger_than_its_shape_is_empty)
{
	static const spmla_request long_one[1] = {{1, 4, 70, 0}};
	const spmla_shape shape = {9, 2, 9, 69};

	prompt_run(&r, none, whole);
	put_device_step(long_one, 1, 0);
	run_device(shape);
	expect_empty(0);
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_TOO_LARGE);
}
END_TEST

START_TEST(contexts_that_outgrow_the_workspace_on_the_device_are_skipped)
{
	const spmla_shape shape = {12, 2, 9, 104};
	const spmla_request two[2] = {{prompt_row[0], 2, 70, 0},
				      {prompt_row[1], 2, 33, 0}};
	int32_t *by;
	uint16_t first[2 * PROMPT_OUT];

	prompt_run(&r, none, whole);
	put_device_step(two, 2, 0);
	run_device(shape);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	memcpy(first, r.stage.out, sizeof first);
	by = spmla_view(r.f.ctx, SPMLA_BUF_ADVANCE_BY, NULL);
	by[0] = 0;
	by[1] = 2; /* 70 + 35 > 104 */
	v32_must(r.f.ctx,
		 spmla_step_prologue(r.f.ctx, &shape, SPMLA_ADVANCE, NULL));
	v32_must(r.f.ctx,
		 spmla_v32_prefill(r.f.ctx, &r.stage.layer, &shape, NULL));
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_LENGTH);
	ck_assert_uint_eq(fixture_status(&r.f).row, prompt_row[1]);
	ck_assert_mem_eq(r.stage.out, first, sizeof first);
	expect_empty(2);
	expect_empty(3);
}
END_TEST

/* A page outside of the pool, in the middle of a context, no stray read. Both
 * tokens select every key. */
START_TEST(a_page_outside_of_the_pool_empties_the_token)
{
	const spmla_request one[1] = {{prompt_row[0], 2, 70, 0}};
	int32_t indices[9 * PROMPT_TOPK], lens[9];
	const spmla_shape shape = {9, 2, 9, 200};
	spmla_v32_layer layer;
	int32_t *table;
	uint32_t i;

	prompt_run(&r, none, whole);
	table = spmla_view(r.f.ctx, SPMLA_BUF_BLOCK_TABLE_MAIN, NULL);
	table[prompt_row[0] * r.f.plan.columns + 1] = 64; /* of 64 pages */
	put_device_step(one, 1, 0);
	run_device((spmla_shape){9, 2, 9, 200});
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&r.f).row, prompt_row[0]);
	/* 16 index keys, 16 rows of KV, and the rows that are selected */
	ck_assert_uint_ge(fixture_status(&r.f).count, 32);
	/* Now token 0 does, twice; token 1 does not. */
	for (i = 0; i < 9 * PROMPT_TOPK; i++)
		indices[i] = (int32_t)(i % PROMPT_TOPK);
	for (i = 0; i < 9; i++)
		lens[i] = i < 2 ? PROMPT_TOPK : 0;
	indices[3] = 16;
	indices[7] = 31;
	layer = r.stage.layer;
	layer.index_q = NULL;
	layer.topk_indices = indices;
	layer.topk_lens = lens;
	layer.topk_stride_elems = PROMPT_TOPK;
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	prologue(shape);
	v32_must(r.f.ctx, spmla_v32_prefill(r.f.ctx, &layer, &shape, NULL));
	expect_empty(0);
	for (i = 0; r.stage.out[PROMPT_OUT + i] == 0; i++)
		ck_assert_uint_lt(i, PROMPT_OUT);
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&r.f).row, prompt_row[0]);
	ck_assert_uint_eq(fixture_status(&r.f).count, 16 + 2);
}
END_TEST

/* Runs token 69 of prompt 0, with keys 0 .. 7 selected but `key` in place of
 * key 3: as a decode or as a prefill. */
static void
run_last(uint32_t as_decode, int32_t key)
{
	const spmla_request last[1] = {{prompt_row[0], 1, 70, 0}};
	const spmla_shape shape = as_decode ? (spmla_shape){1, 1, 1, 0}
					    : (spmla_shape){9, 2, 9, 200};
	int32_t indices[9 * PROMPT_TOPK] = {0, 1, 2, key, 4, 5, 6, 7};
	int32_t lens[9] = {PROMPT_TOPK};
	spmla_v32_layer layer = r.stage.layer;

	layer.index_q = NULL;
	layer.topk_indices = indices;
	layer.topk_lens = lens;
	layer.topk_stride_elems = PROMPT_TOPK;
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	put_device_step(last, 1, 0);
	prologue(shape);
	v32_must(r.f.ctx, (as_decode ? spmla_v32_attn : spmla_v32_prefill)(
				  r.f.ctx, &layer, &shape, NULL));
	fixture_drain(&r.f);
}

/* Token 0 of the step is empty, for want of a page of prompt 0. */
static void
expect_no_page(void)
{
	expect_empty(0);
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&r.f).row, prompt_row[0]);
}

/* _i: as a decode. */
START_TEST(decode_and_prefill_have_one_rule_for_a_missing_page)
{
	const uint32_t as_decode = (uint32_t)_i;
	int32_t *page, *cols;

	prompt_run(&r, none, whole);
	page = (int32_t *)spmla_view(r.f.ctx, SPMLA_BUF_BLOCK_TABLE_MAIN,
				     NULL) +
	       prompt_row[0] * r.f.plan.columns + 1;
	cols = (int32_t *)spmla_view(r.f.ctx, SPMLA_BUF_TABLE_COLS_MAIN, NULL) +
	       prompt_row[0];
	run_last(as_decode, 16); /* the first key of column 1 */
	ck_assert_float_lt(r.stage.lse[0], 1e38f);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	*page = 64; /* of 64 pages */
	run_last(as_decode, 3);
	ck_assert_float_lt(r.stage.lse[0], 1e38f);
	run_last(as_decode, 16);
	expect_no_page();
	*page = prompt_page(prompt_row[0], 1);
	*cols = 1; /* the others were never written */
	run_last(as_decode, 3);
	expect_no_page();
}
END_TEST

/* Selects for token 69 of prompt 0, with weights below 0, so that every score
 * is at most 0, as a decode or as a prefill. */
static void
select_last(uint32_t as_decode, int32_t *indices)
{
	const spmla_request last[1] = {{prompt_row[0], 1, 70, 0}};
	const spmla_shape shape = as_decode ? (spmla_shape){1, 1, 1, 0}
					    : (spmla_shape){9, 2, 9, 200};
	uint32_t h;

	for (h = 0; h < 4; h++)
		r.stage.index_weights[h] = -1.0f - (float)h;
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	put_device_step(last, 1, 0);
	prologue(shape);
	v32_must(r.f.ctx, (as_decode ? spmla_v32_attn : spmla_v32_prefill)(
				  r.f.ctx, &r.stage.layer, &shape, NULL));
	fixture_drain(&r.f);
	memcpy(indices, spmla_view(r.f.ctx, SPMLA_BUF_TOPK_INDICES, NULL),
	       PROMPT_TOPK * 4);
}

/* A zero in place of the key would have the highest score. _i: the layout of
 * index keys, and the page. */
START_TEST(decode_and_prefill_select_no_key_that_is_lost)
{
	static const int32_t lost[2] = {-1, 64}; /* of 64 pages */
	int32_t by_decode[PROMPT_TOPK], by_prefill[PROMPT_TOPK];
	spmla_config config;
	float lse;
	uint32_t i;

	prompt_close(&r);
	prompt_config(&config, 100, 200, 0);
	if (_i & 1)
		config.index_layout = SPMLA_LAYOUT_INDEX_MXFP4;
	prompt_open(&r, &config, 0);
	prompt_run(&r, none, whole);
	((int32_t *)spmla_view(r.f.ctx, SPMLA_BUF_BLOCK_TABLE_MAIN,
			       NULL))[prompt_row[0] * r.f.plan.columns + 1] =
		lost[_i / 2];
	select_last(1, by_decode);
	lse = r.stage.lse[0];
	select_last(0, by_prefill);
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_PAGE);
	for (i = 0; i < PROMPT_TOPK; i++) {
		ck_assert_int_ne(by_prefill[i] / 16, 1);
		ck_assert_int_eq(by_prefill[i], by_decode[i]);
	}
	ck_assert_float_lt(fabsf(lse), 1e6f);
	ck_assert_float_eq_tol(r.stage.lse[0], lse, 1e-2f);
}
END_TEST

/* A selection that the engine hands in: entries of token 1, whose context is
 * 70, that do not lie in it. Row 70 of the workspace is the first of the next
 * request, 103 is behind all of them. */
START_TEST(a_selection_past_the_context_reads_no_other_request)
{
	const spmla_shape shape = {9, 2, 9, 200};
	const spmla_request two[2] = {{prompt_row[0], 2, 70, 0},
				      {prompt_row[1], 2, 33, 0}};
	const int32_t stray[PROMPT_TOPK] = {70, 103, INT32_MAX, -1,
					    71, 0,   1,         2};
	int32_t indices[9 * PROMPT_TOPK], lens[9];
	uint16_t alone[4 * PROMPT_OUT];
	spmla_v32_layer layer;
	uint32_t i;

	prompt_run(&r, none, whole);
	for (i = 0; i < 9 * PROMPT_TOPK; i++)
		indices[i] = i % PROMPT_TOPK < 5 ? -1 : (int32_t)i % 8 - 5;
	for (i = 0; i < 9; i++)
		lens[i] = i < 4 ? PROMPT_TOPK : 0;
	put_device_step(two, 2, 0);
	layer = r.stage.layer;
	layer.index_q = NULL;
	layer.topk_indices = indices;
	layer.topk_lens = lens;
	layer.topk_stride_elems = PROMPT_TOPK;
	prologue(shape);
	v32_must(r.f.ctx, spmla_v32_prefill(r.f.ctx, &layer, &shape, NULL));
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	memcpy(alone, r.stage.out, sizeof alone);
	memcpy(indices + PROMPT_TOPK, stray, sizeof stray);
	indices[0] = 69; /* of token 0, whose context ends before token 1 */
	v32_must(r.f.ctx, spmla_v32_prefill(r.f.ctx, &layer, &shape, NULL));
	ck_assert_mem_eq(r.stage.out, alone, sizeof alone);
	ck_assert_uint_eq(fixture_status(&r.f).count, 5);
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_INDEX);
	ck_assert_uint_eq(fixture_status(&r.f).row, prompt_row[0]);
}
END_TEST

SUITE
{
	const theme_test hostile[] = {
		{a_step_that_is_empty_writes_empty_rows, 1},
		{a_bad_request_is_empty_and_spares_the_others, 1},
		{a_step_larger_than_its_shape_is_empty, 1},
		{contexts_that_outgrow_the_workspace_on_the_device_are_skipped,
		 1},
		{a_page_outside_of_the_pool_empties_the_token, 1},
		{decode_and_prefill_have_one_rule_for_a_missing_page, 2},
		{decode_and_prefill_select_no_key_that_is_lost, 4},
		{a_selection_past_the_context_reads_no_other_request, 1},
	};
	const theme themes[] = {
		THEME("hostile", open_rig, close_rig, hostile),
	};

	return RUN_THEMES(themes);
}
