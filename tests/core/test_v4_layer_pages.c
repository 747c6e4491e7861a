/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of V4 layers. A token of ratio 4 that selects a key without a page: its
 * result is empty, without the window's keys too, and the tokens beside it are
 * as they are without it. Compressor states without a page. And pages that
 * begin at no multiple of 16 bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/bytes.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

/* Four query tokens at the end of 64, which have 15, 15, 15 and 16 compressed
 * keys in pages of 4. */
enum { QUERY = 4, CONTEXT = 64, TOPK = 8, PAGE = 4, HEADS = 4, DIM = 512 };
enum { ROW = HEADS * DIM, PROMPT = 18 };

static const spmla_shape shapes[2] = {{16, 8, 4, 0}, {20, 8, 20, 0}};

static fixture f;
static v4_layer_rig rig;
static const uint16_t *index_q;
static int32_t *indices, *lens;
static const spmla_shape *shape;
static uint32_t query;

/* Bit 0: ragged lists; bit 1: a prompt; bit 2: whole, where a device would
 * attend in parts. */
static void
open_case(int32_t n)
{
	spmla_config config;
	uint32_t t, k;

	v4_layer_config(&config);
	config.max_prefill_tokens = 20;
	if (n & 1)
		config.flags |= SPMLA_CONFIG_RAGGED;
	if (n & 4)
		config.flags |= SPMLA_CONFIG_BATCH_INVARIANT;
	fixture_open(&f, &config, SPMLA_NATIVE_DEFERRED);
	v4_layer_open(&rig, f.ctx, 1);
	v4_layer_fill(f.ctx, 2);
	shape = &shapes[n >> 1 & 1];
	query = n & 2 ? PROMPT : QUERY;
	index_q = rig.layer.index_q;
	rig.layer.index_q = NULL; /* the selection is the engine's own */
	indices = spmla_view(f.ctx, SPMLA_BUF_TOPK_INDICES, NULL);
	lens = spmla_view(f.ctx, SPMLA_BUF_TOPK_LENS, NULL);
	v4_layer_write(f.ctx, query, CONTEXT);
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, shape, SPMLA_FROM_RING, NULL));
	fixture_drain(&f);
	for (t = 0; t < shape->tokens; t++)
		for (k = 0; k < TOPK; k++)
			indices[t * TOPK + k] = (int32_t)k; /* pages 0, 1 */
	for (t = 0; t < shape->tokens; t++)
		lens[t] = t < query ? TOPK : 0;
	indices[TOPK + 5] = 2 * PAGE + 1; /* token 1: one key of page 2 */
}

static void
attend(void)
{
	memset(rig.layer.out, 0xAB, rig.out_bytes);
	v32_must(f.ctx, spmla_v4_attend(f.ctx, &rig.layer, shape, NULL));
	fixture_drain(&f);
}

START_TEST(a_key_without_a_page_empties_its_token_alone)
{
	static const int32_t bad[] = {-1, 40, INT32_MAX};
	static uint16_t want[20 * ROW];
	int32_t *table;
	uint32_t i, h;

	open_case(_i);
	table = spmla_view(f.ctx, SPMLA_BUF_BLOCK_TABLE_C4A, NULL);
	attend();
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	memcpy(want, rig.layer.out, query * sizeof *want * ROW);
	ck_assert_uint_lt(bytes_other(want + ROW, ROW * 2, 0), ROW * 2);
	memset(want + ROW, 0, ROW * 2);
	for (i = 0; i < 3; i++) {
		table[2] = bad[i];
		attend();
		ck_assert_mem_eq(rig.layer.out, want,
				 query * sizeof *want * ROW);
		for (h = 0; h < HEADS; h++)
			ck_assert(rig.layer.lse[HEADS + h] > 1e38f); /* +inf */
		ck_assert_uint_eq(fixture_status(&f).count, 1);
		ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_PAGE);
		ck_assert_uint_eq(fixture_status(&f).row, 0);
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	}
	v4_layer_end(&f, &rig);
}
END_TEST

/* Keys 8 .. 11 of 15 or 16 lie in a page outside the pool. They rank last, so
 * the 8 best are others, and each token keeps these. Reported once a row. */
START_TEST(an_index_page_outside_the_pool_ranks_its_keys_last)
{
	int32_t *table;
	uint32_t t, k, h;

	open_case(_i);
	rig.layer.index_q = index_q;
	table = spmla_view(f.ctx, SPMLA_BUF_BLOCK_TABLE_C4A, NULL);
	table[2] = INT32_MAX;
	v32_must(f.ctx, spmla_v4_index(f.ctx, &rig.layer, shape, NULL));
	attend();
	for (t = 0; t < query; t++) {
		ck_assert_int_eq(lens[t], TOPK);
		for (k = 0; k < TOPK; k++)
			ck_assert(indices[t * TOPK + k] / PAGE != 2);
		for (h = 0; h < HEADS; h++)
			ck_assert(rig.layer.lse[t * HEADS + h] < 1e38f);
	}
	ck_assert_uint_ge(fixture_status(&f).count, 1);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&f).row, 0);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	v4_layer_end(&f, &rig);
}
END_TEST

/* One token of row 5, the step's only one. At 127 its states are kept; at 128 a
 * key is made of them, too. Ratio 4 has two compressors. */
START_TEST(a_page_of_states_outside_the_pool_names_the_stable_row)
{
	const uint32_t ratio = _i & 1 ? 128 : 4, ends = (uint32_t)_i / 2;
	const spmla_buf buf = _i & 1 ? SPMLA_BUF_BLOCK_TABLE_STATE_C128A
				     : SPMLA_BUF_BLOCK_TABLE_STATE_C4A;
	const uint32_t row = 5, group = _i & 1 ? SPMLA_GROUP_STATE_C128A
					       : SPMLA_GROUP_STATE_C4A;
	spmla_v4_layer layer;
	spmla_config config;
	int32_t *table;
	uint32_t columns, i;

	v4_layer_config(&config);
	fixture_open(&f, &config, SPMLA_NATIVE_DEFERRED);
	v4_layer_open(&rig, f.ctx, 1);
	v4_layer_fill(f.ctx, 2);
	layer = v4_layer_of(&rig, f.ctx, ratio);
	v4_layer_write_row(f.ctx, row, 1, 127 + ends);
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, &shapes[0], SPMLA_FROM_RING, NULL));
	fixture_drain(&f);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	columns = f.plan.group_columns[group];
	table = (int32_t *)spmla_view(f.ctx, buf, NULL) + row * columns;
	for (i = 0; i < columns; i++)
		table[i] = INT32_MAX;
	v32_must(f.ctx, spmla_v4_compress(f.ctx, &layer, &shapes[0], NULL));
	fixture_drain(&f);
	ck_assert_uint_eq(fixture_status(&f).count,
			  (ratio == 4 ? 2u : 1u) * (1 + ends));
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&f).row, row);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	v4_layer_end(&f, &rig);
}
END_TEST

/* The same cache in memory of its own, page by page as close as it may be, but
 * for `more` units; returns the memory. */
static void *
restride(spmla_cache *c, uint32_t more)
{
	c->page_stride_bytes = (uint64_t)spmla_layout_entry_bytes(c->layout) *
				       c->entries_per_page +
			       more * spmla_layout_stride_align(c->layout);
	c->base = test_alloc(c->page_stride_bytes * c->pages, 0);
	return c->base;
}

static void
run_layer(uint32_t ratio, uint32_t index_layout, uint32_t more)
{
	const uint32_t prompt = index_layout == SPMLA_LAYOUT_INDEX_FP8;
	spmla_v4_layer layer;
	spmla_config config;
	void *pools[3];
	uint32_t i;

	v4_layer_config(&config);
	config.max_prefill_tokens = 20;
	config.index_layout = index_layout;
	fixture_open(&f, &config, SPMLA_NATIVE_DEFERRED);
	v4_layer_open(&rig, f.ctx, 1);
	shape = &shapes[prompt];
	query = prompt ? PROMPT : QUERY;
	layer = v4_layer_of(&rig, f.ctx, ratio);
	pools[0] = restride(&layer.swa, more);
	pools[1] = restride(&layer.compressed, more);
	pools[2] = restride(&layer.index, more);
	v4_layer_write(f.ctx, query, query);
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, shape, SPMLA_FROM_RING, NULL));
	v32_must(f.ctx, spmla_v4_attn(f.ctx, &layer, shape, NULL, NULL));
	fixture_drain(&f);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	for (i = 0; i < 3; i++)
		free(pools[i]);
}

/* Pages of 4 entries are multiples of 16 bytes; one unit more is not. Matrix
 * instructions read only the former, and add in another order. */
START_TEST(pages_need_not_begin_at_multiples_of_16_bytes)
{
	static const uint32_t ratios[3] = {1, 4, 128};
	const uint32_t index_layout =
		_i / 3 ? SPMLA_LAYOUT_INDEX_MXFP4 : SPMLA_LAYOUT_INDEX_FP8;
	uint16_t *want;
	uint64_t i;

	run_layer(ratios[_i % 3], index_layout, 0);
	want = malloc(rig.out_bytes);
	ck_assert_ptr_nonnull(want);
	memcpy(want, rig.layer.out, rig.out_bytes);
	v4_layer_end(&f, &rig);
	run_layer(ratios[_i % 3], index_layout, 1);
	for (i = 0; i < query * ROW; i++)
		ck_assert_float_eq_tol(test_bf16_value(rig.layer.out[i]),
				       test_bf16_value(want[i]), 0.02f);
	if (fixture_on_cpu())
		ck_assert_mem_eq(rig.layer.out, want, rig.out_bytes);
	v4_layer_end(&f, &rig);
	free(want);
}
END_TEST

SUITE
{
	const theme_test edge[] = {
		{a_key_without_a_page_empties_its_token_alone, 8},
		{an_index_page_outside_the_pool_ranks_its_keys_last, 8},
		{a_page_of_states_outside_the_pool_names_the_stable_row, 4},
	};
	const theme_test layout[] = {
		{pages_need_not_begin_at_multiples_of_16_bytes, 6},
	};
	const theme themes[] = {
		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),
	};

	return RUN_THEMES(themes);
}
