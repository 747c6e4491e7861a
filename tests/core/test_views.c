/* SPDX-License-Identifier: Apache-2.0
 *
 * What a context says of its memory: the address of each buffer, the planned
 * caches, its plan and its diag.
 */
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include <stdlib.h>
#include <string.h>

static fixture f;

static void
open_with(uint32_t layers, uint32_t source, uint32_t layout)
{
	spmla_config config;

	fixture_config(&config);
	config.cache_layers = layers;
	config.kv_layout = layout;
	config.groups[SPMLA_GROUP_MAIN].source = source;
	fixture_open(&f, &config, 0);
}

START_TEST(every_planned_buffer_has_the_address_of_its_row)
{
	spmla_row row = SPMLA_ROW_INIT;
	uint64_t bytes;
	uint32_t i;

	open_with(2, SPMLA_TABLE_RING, 0);
	for (i = 0; i < f.plan.row_count; i++) {
		ck_assert_int_eq(spmla_plan_row(&f.plan, i, &row), SPMLA_OK);
		bytes = 0;
		ck_assert_ptr_eq(spmla_view(f.ctx, (spmla_buf)row.buf, &bytes),
				 (unsigned char *)f.memory[row.memory] +
					 row.offset_bytes);
		ck_assert_uint_eq(bytes, row.bytes);
		ck_assert_ptr_nonnull(
			spmla_view(f.ctx, (spmla_buf)row.buf, NULL));
	}
	fixture_close(&f);
}
END_TEST

START_TEST(a_buffer_that_is_not_planned_has_no_address)
{
	static const spmla_buf absent[] = {
		SPMLA_BUF_KV_CACHE,
		SPMLA_BUF_INDEX_CACHE,
		SPMLA_BUF_BLOCK_TABLE_MAIN,
		SPMLA_BUF_TABLE_COLS_MAIN,
		SPMLA_BUF_TABLE_STAGING,
		(spmla_buf)4,
		(spmla_buf)72,
		(spmla_buf)95,
		(spmla_buf)96,
		(spmla_buf)1000,
		SPMLA_BUF_FORCE_32,
	};
	uint64_t bytes;
	uint32_t i;

	open_with(0, SPMLA_TABLE_DEVICE, 0);
	for (i = 0; i < sizeof absent / sizeof *absent; i++) {
		bytes = 99;
		ck_assert_ptr_null(spmla_view(f.ctx, absent[i], &bytes));
		ck_assert_uint_eq(bytes, 0);
	}
	bytes = 99;
	ck_assert_ptr_null(spmla_view(NULL, SPMLA_BUF_STEP_RING, &bytes));
	ck_assert_uint_eq(bytes, 0);
	fixture_close(&f);
}
END_TEST

/* 64 pages of 16 entries: 10496 B of 656 or 18432 B of 1152 a KV page, 2112 B
 * an index page. */
static void
check_caches(uint32_t layout, uint64_t kv_stride)
{
	unsigned char *base = f.memory[SPMLA_MEMORY_CACHE];
	unsigned char *index = spmla_view(f.ctx, SPMLA_BUF_INDEX_CACHE, NULL);
	spmla_cache cache;
	uint32_t layer;

	for (layer = 0; layer < 3; layer++) {
		const spmla_cache kv = {
			40, layout, 0,         16,
			64, 0,      kv_stride, base + layer * 64 * kv_stride};
		const spmla_cache ix = {
			40,   SPMLA_LAYOUT_INDEX_FP8,   0, 16, 64, 0,
			2112, index + layer * 64 * 2112};

		memset(&cache, 0x77, sizeof cache);
		ck_assert_int_eq(spmla_cache_view(f.ctx, SPMLA_BUF_KV_CACHE,
						  layer, &cache),
				 SPMLA_OK);
		ck_assert_mem_eq(&cache, &kv, sizeof cache);
		memset(&cache, 0x77, sizeof cache);
		ck_assert_int_eq(spmla_cache_view(f.ctx, SPMLA_BUF_INDEX_CACHE,
						  layer, &cache),
				 SPMLA_OK);
		ck_assert_mem_eq(&cache, &ix, sizeof cache);
	}
	/* The last page of the last layer ends where the region ends. */
	ck_assert_ptr_eq((unsigned char *)cache.base + 64 * 2112,
			 base + f.plan.region_bytes[SPMLA_MEMORY_CACHE]);
}

START_TEST(a_planned_cache_of_fp8_rows_is_described)
{
	open_with(3, SPMLA_TABLE_RING, SPMLA_LAYOUT_FP8_DS_MLA);
	check_caches(SPMLA_LAYOUT_FP8_DS_MLA, 10496);
	fixture_close(&f);
}
END_TEST

START_TEST(a_planned_cache_of_bf16_rows_is_described)
{
	open_with(3, SPMLA_TABLE_RING, SPMLA_LAYOUT_MLA_BF16);
	check_caches(SPMLA_LAYOUT_MLA_BF16, 18432);
	fixture_close(&f);
}
END_TEST

START_TEST(a_cache_that_cannot_be_had_is_refused_and_nothing_written)
{
	spmla_cache cache, before;

	memset(&cache, 0x77, sizeof cache);
	before = cache;
	open_with(3, SPMLA_TABLE_RING, 0);
	ck_assert_int_eq(spmla_cache_view(NULL, SPMLA_BUF_KV_CACHE, 0, &cache),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_cache_view(f.ctx, SPMLA_BUF_KV_CACHE, 0, NULL),
			 SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_NULL: cache: got NULL, want a pointer");
	ck_assert_int_eq(spmla_cache_view(f.ctx, SPMLA_BUF_KV_CACHE, 3, &cache),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_RANGE: layer: got 3, want at most 2");
	ck_assert_int_eq(spmla_cache_view(f.ctx, SPMLA_BUF_INDEX_CACHE,
					  UINT32_MAX, &cache),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_cache_view(f.ctx, SPMLA_BUF_LOGITS, 0, &cache),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_RANGE: buf (a *_CACHE of the model)");
	ck_assert_int_eq(spmla_cache_view(f.ctx, SPMLA_BUF_FORCE_32, 0, &cache),
			 SPMLA_E_RANGE);
	fixture_close(&f);
	open_with(0, SPMLA_TABLE_RING, 0);
	ck_assert_int_eq(spmla_cache_view(f.ctx, SPMLA_BUF_KV_CACHE, 0, &cache),
			 SPMLA_E_UNSUPPORTED);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_UNSUPPORTED: config.cache_layers: got 0, "
			 "want at least 1");
	ck_assert_int_eq(
		spmla_cache_view(f.ctx, SPMLA_BUF_INDEX_CACHE, 0, &cache),
		SPMLA_E_UNSUPPORTED);
	fixture_close(&f);
	ck_assert_mem_eq(&cache, &before, sizeof cache);
}
END_TEST

START_TEST(a_context_keeps_its_own_copy_of_the_plan)
{
	spmla_plan before;

	open_with(1, SPMLA_TABLE_RING, 0);
	memcpy(&before, &f.plan, sizeof before);
	memset(&f.plan, 0, sizeof f.plan);
	ck_assert_mem_eq(spmla_ctx_plan(f.ctx), &before, sizeof before);
	ck_assert_ptr_null(spmla_ctx_plan(NULL));
	fixture_close(&f);
}
END_TEST

START_TEST(a_context_tells_why_its_last_call_failed)
{
	const spmla_shape too_large = {17, 8, 4, 0};

	open_with(0, SPMLA_TABLE_RING, 0);
	ck_assert_ptr_nonnull(spmla_ctx_diag(f.ctx));
	ck_assert_uint_eq(spmla_ctx_diag(f.ctx)->status, SPMLA_OK);
	ck_assert_int_eq(
		spmla_step_prologue(f.ctx, &too_large, SPMLA_FROM_RING, NULL),
		SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_RANGE: shape.tokens: got 17, want at most "
			 "16");
	/* It stays until the next failure. */
	ck_assert_int_eq(spmla_step_prologue(f.ctx, &f.plan.config.buckets[0],
					     SPMLA_FROM_DEVICE, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(spmla_ctx_diag(f.ctx)->status, SPMLA_E_RANGE);
	ck_assert_ptr_null(spmla_ctx_diag(NULL));
	fixture_close(&f);
}
END_TEST

START_TEST(fini_waits_for_captures_and_the_queue)
{
	const spmla_shape *shape = &f.plan.config.buckets[0];
	spmla_config config;

	ck_assert_int_eq(spmla_fini(NULL), SPMLA_E_NULL);
	fixture_config(&config);
	fixture_open(&f, &config, SPMLA_NATIVE_DEFERRED);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(f.ctx), SPMLA_E_STATE);
	ck_assert_int_eq(spmla_graph_abort(f.ctx), SPMLA_OK);
	ck_assert_int_eq(spmla_cpu_capture_begin(f.ctx), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(f.ctx), SPMLA_E_STATE);
	ck_assert_int_eq(spmla_cpu_capture_abort(f.ctx), SPMLA_OK);
	ck_assert_int_eq(
		spmla_step_prologue(f.ctx, shape, SPMLA_FROM_DEVICE, NULL),
		SPMLA_OK);
	ck_assert_int_eq(spmla_fini(f.ctx), SPMLA_E_BUSY);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_BUSY: queue: got 1, want 0");
	fixture_drain(&f);
	fixture_close(&f);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{every_planned_buffer_has_the_address_of_its_row, 1},
		{a_buffer_that_is_not_planned_has_no_address, 1},
		{a_planned_cache_of_fp8_rows_is_described, 1},
		{a_planned_cache_of_bf16_rows_is_described, 1},
		{a_cache_that_cannot_be_had_is_refused_and_nothing_written, 1},
		{a_context_keeps_its_own_copy_of_the_plan, 1},
		{a_context_tells_why_its_last_call_failed, 1},
		{fini_waits_for_captures_and_the_queue, 1},
	};
	const theme themes[] = {
		THEME("addresses", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
