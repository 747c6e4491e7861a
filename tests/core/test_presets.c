/* SPDX-License-Identifier: Apache-2.0
 *
 * What the library fills in of a plan for its caller: the regions in one block,
 * and the fields of a layer.
 */
#include "tests/core/v4_config.h"
#include "tests/harness/bytes.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/v32.h"
#include "spmla/v4.h"

#include <stdlib.h>
#include <string.h>

static fixture f;

static void
open_v32(uint32_t layers)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = 3;
	config.index_heads = 5;
	config.cache_layers = layers;
	fixture_open(&f, &config, 0);
}

static void
open_v4(uint32_t layers, uint32_t c4a, uint32_t c128a)
{
	spmla_config config;

	v4_config(&config);
	config.heads = 3;
	config.index_heads = 5;
	config.cache_layers = layers;
	config.c4a_layers = c4a;
	config.c128a_layers = c128a;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

/* ---- Regions ------------------------------------------------------------ */

START_TEST(one_block_of_the_bytes_holds_a_context)
{
	const spmla_plan *plan = &f.plan;
	spmla_region r[SPMLA_MEMORY_COUNT];
	uint64_t bytes, end = 0;
	spmla_ctx *ctx = NULL;
	uint8_t *block;
	uint32_t m;

	open_v32((uint32_t)_i);
	memset(r, 0x77, sizeof r);
	bytes = spmla_plan_regions(plan, NULL, r);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++)
		ck_assert_ptr_null(r[m].base);
	block = test_alloc(bytes, 0xAB);
	ck_assert_uint_eq(spmla_plan_regions(plan, block, r), bytes);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		ck_assert_uint_eq(r[m].struct_bytes, 24);
		ck_assert_uint_eq(r[m].memory, m);
		ck_assert_uint_eq(r[m].bytes, plan->region_bytes[m]);
		ck_assert_ptr_eq((uint8_t *)r[m].base, block + end);
		end += (r[m].bytes + 255) / 256 * 256;
	}
	ck_assert_uint_eq(bytes, end);
	ck_assert_int_eq(spmla_init(&ctx, plan, &spmla_cpu, NULL, r,
				    SPMLA_MEMORY_COUNT, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_step_prologue(ctx, &plan->config.buckets[0],
					     SPMLA_FROM_DEVICE, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_fini(ctx), SPMLA_OK);
	free(block);
}
END_TEST

START_TEST(regions_that_cannot_be_are_of_no_bytes)
{
	spmla_region r[SPMLA_MEMORY_COUNT];

	open_v32(0);
	ck_assert_uint_eq(spmla_plan_regions(NULL, NULL, r), 0);
	ck_assert_uint_eq(spmla_plan_regions(&f.plan, NULL, NULL), 0);
	f.plan.region_bytes[SPMLA_MEMORY_CACHE] = UINT64_MAX;
	ck_assert_uint_eq(spmla_plan_regions(&f.plan, NULL, r), 0);
}
END_TEST

/* ---- V3.2 --------------------------------------------------------------- */

START_TEST(a_v32_layer_has_dense_tensors_and_its_pools)
{
	spmla_v32_layer got, want;

	open_v32(2);
	memset(&got, 0x77, sizeof got);
	memset(&want, 0, sizeof want);
	want.struct_bytes = sizeof want;
	want.cos_sin_rows = f.plan.config.max_context_tokens;
	want.norm_eps = 1e-6f;
	want.kv_c_stride_elems = 512;
	want.k_pe_stride_elems = 64;
	want.index_k_stride_elems = 128;
	want.index_q_token_stride_elems = 640; /* 5 heads of 128 */
	want.index_q_head_stride_elems = 128;
	want.index_weights_stride_elems = 5;
	want.q_token_stride_elems = 1728; /* 3 heads of 576 */
	want.q_head_stride_elems = 576;
	want.out_token_stride_elems = 1536; /* 3 heads of 512 */
	want.out_head_stride_elems = 512;
	want.lse_token_stride_elems = 3;
	want.lse_head_stride_elems = 1;
	ck_assert_int_eq(
		spmla_cache_view(f.ctx, SPMLA_BUF_KV_CACHE, 1, &want.kv),
		SPMLA_OK);
	ck_assert_int_eq(
		spmla_cache_view(f.ctx, SPMLA_BUF_INDEX_CACHE, 1, &want.index),
		SPMLA_OK);
	ck_assert_int_eq(spmla_v32_layer_preset(f.ctx, 1, &got), SPMLA_OK);
	ck_assert_mem_eq(&got, &want, sizeof want);
}
END_TEST

START_TEST(pools_of_the_engine_are_left_to_it)
{
	spmla_v32_layer l;

	open_v32(0);
	ck_assert_int_eq(spmla_v32_layer_preset(f.ctx, 7, &l), SPMLA_OK);
	ck_assert_uint_eq(l.kv.struct_bytes, 0);
	ck_assert_ptr_null(l.kv.base);
	ck_assert_ptr_null(l.index.base);
	ck_assert_int_eq(l.q_token_stride_elems, 1728);
}
END_TEST

START_TEST(a_v32_layer_that_is_not_there_is_refused_and_not_written)
{
	spmla_v32_layer l;
	spmla_v4_layer v4;

	open_v32(2);
	memset(&l, 0x5a, sizeof l);
	memset(&v4, 0x5a, sizeof v4);
	ck_assert_int_eq(spmla_v32_layer_preset(NULL, 0, &l), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_v32_layer_preset(f.ctx, 0, NULL), SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_NULL: v32_layer: got NULL, want a pointer");
	ck_assert_int_eq(spmla_v32_layer_preset(f.ctx, 2, &l), SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_RANGE: layer: got 2, want at most 1");
	ck_assert_int_eq(spmla_v4_layer_preset(f.ctx, 1, 0, 0, &v4),
			 SPMLA_E_UNSUPPORTED);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_UNSUPPORTED: plan.config.model: got 1, want "
			 "2 or 3");
	ck_assert_uint_eq(bytes_other(&l, sizeof l, 0x5a), sizeof l);
	ck_assert_uint_eq(bytes_other(&v4, sizeof v4, 0x5a), sizeof v4);
}
END_TEST

/* ---- V4 ----------------------------------------------------------------- */

static void
want_pool(spmla_buf buf, uint32_t index, spmla_cache *cache)
{
	ck_assert_int_eq(spmla_cache_view(f.ctx, buf, index, cache), SPMLA_OK);
}

/* What layers of all ratios have; of 3 heads, the window of layer 4. */
static void
want_v4(spmla_v4_layer *want, uint32_t ratio)
{
	memset(want, 0, sizeof *want);
	want->struct_bytes = sizeof *want;
	want->ratio = ratio;
	want->cos_sin_rows = 1000;
	want->norm_eps = 1e-6f;
	want->q_token_stride_elems = 1536;
	want->q_head_stride_elems = 512;
	want->kv_stride_elems = 512;
	want->out_token_stride_elems = 1536;
	want->out_head_stride_elems = 512;
	want->lse_token_stride_elems = 3;
	want->lse_head_stride_elems = 1;
	want_pool(SPMLA_BUF_KV_CACHE, 4, &want->swa);
}

static void
expect_v4(uint32_t ratio, uint32_t ratio_index, const spmla_v4_layer *want)
{
	spmla_v4_layer got;

	memset(&got, 0x77, sizeof got);
	ck_assert_int_eq(
		spmla_v4_layer_preset(f.ctx, ratio, 4, ratio_index, &got),
		SPMLA_OK);
	ck_assert_mem_eq(&got, want, sizeof got);
}

START_TEST(a_v4_layer_has_dense_tensors_and_its_pools)
{
	spmla_v4_layer want;

	open_v4(5, 3, 2);
	want_v4(&want, 1);
	expect_v4(1, 99, &want);

	want_v4(&want, 128);
	want.compress_kv_stride_elems = 512;
	want.compress_score_stride_elems = 512;
	want_pool(SPMLA_BUF_C128A_CACHE, 1, &want.compressed);
	want_pool(SPMLA_BUF_STATE_C128A_CACHE, 1, &want.state);
	expect_v4(128, 1, &want);

	want_v4(&want, 4);
	want.compress_kv_stride_elems = 1024;
	want.compress_score_stride_elems = 1024;
	want.index_kv_stride_elems = 256;
	want.index_score_stride_elems = 256;
	want.index_q_token_stride_elems = 640;
	want.index_q_head_stride_elems = 128;
	want.index_weights_stride_elems = 5;
	want_pool(SPMLA_BUF_C4A_CACHE, 2, &want.compressed);
	want_pool(SPMLA_BUF_STATE_C4A_CACHE, 2, &want.state);
	want_pool(SPMLA_BUF_INDEX_CACHE, 2, &want.index);
	want_pool(SPMLA_BUF_STATE_INDEX_CACHE, 2, &want.index_state);
	expect_v4(4, 2, &want);
}
END_TEST

START_TEST(of_v4_any_of_the_pools_may_be_the_engines)
{
	spmla_v4_layer l;

	open_v4(1, 0, 0);
	ck_assert_int_eq(spmla_v4_layer_preset(f.ctx, 4, 0, 9, &l), SPMLA_OK);
	ck_assert_ptr_nonnull(l.swa.base);
	ck_assert_ptr_null(l.compressed.base);
	ck_assert_ptr_null(l.state.base);
	ck_assert_ptr_null(l.index.base);
	ck_assert_ptr_null(l.index_state.base);
}
END_TEST

START_TEST(a_v4_layer_that_is_not_there_is_refused_and_not_written)
{
	spmla_v32_layer v32;
	spmla_v4_layer l;

	open_v4(5, 3, 2);
	memset(&l, 0x5a, sizeof l);
	memset(&v32, 0x5a, sizeof v32);
	ck_assert_int_eq(spmla_v4_layer_preset(f.ctx, 2, 0, 0, &l),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_RANGE: v4_layer.ratio: got 2, want 1, 4 or "
			 "128");
	ck_assert_int_eq(spmla_v4_layer_preset(f.ctx, 1, 5, 0, &l),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_v4_layer_preset(f.ctx, 4, 0, 3, &l),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_v4_layer_preset(f.ctx, 128, 0, 2, &l),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_RANGE: layer: got 2, want at most 1");
	ck_assert_int_eq(spmla_v4_layer_preset(f.ctx, 4, 0, 0, NULL),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_v32_layer_preset(f.ctx, 0, &v32),
			 SPMLA_E_UNSUPPORTED);
	ck_assert_uint_eq(bytes_other(&l, sizeof l, 0x5a), sizeof l);
	ck_assert_uint_eq(bytes_other(&v32, sizeof v32, 0x5a), sizeof v32);
}
END_TEST

SUITE
{
	const theme_test r[] = {
		{one_block_of_the_bytes_holds_a_context, 3},
		{regions_that_cannot_be_are_of_no_bytes, 1},
	};
	const theme_test v32[] = {
		{a_v32_layer_has_dense_tensors_and_its_pools, 1},
		{pools_of_the_engine_are_left_to_it, 1},
		{a_v32_layer_that_is_not_there_is_refused_and_not_written, 1},
	};
	const theme_test v4[] = {
		{a_v4_layer_has_dense_tensors_and_its_pools, 1},
		{of_v4_any_of_the_pools_may_be_the_engines, 1},
		{a_v4_layer_that_is_not_there_is_refused_and_not_written, 1},
	};
	const theme themes[] = {
		THEME("regions", NULL, teardown, r),
		THEME("v32", NULL, teardown, v32),
		THEME("v4", NULL, teardown, v4),
	};

	return RUN_THEMES(themes);
}
