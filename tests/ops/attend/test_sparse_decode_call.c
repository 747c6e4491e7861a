/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode, the call: what the host refuses, and that a recorded call
 * equals an eager one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"

#include "spmla/ops/kv_insert.h"

static fixture f;
static decode_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = 8;
	fixture_open(&f, &config, 0);
	decode_open(&w, SPMLA_LAYOUT_MLA_BF16, 8, 64, 20);
}

static void
teardown(void)
{
	decode_close(&w);
	fixture_close(&f);
}

static void
expect_error(const spmla_sparse_decode_args *a, const char *text)
{
	const spmla_status s = spmla_sparse_decode(f.ctx, a, NULL);

	ck_assert_int_ne(s, SPMLA_OK);
	ck_assert_str_eq(fixture_diag(&f), text);
	ck_assert_msg(!strncmp(text, spmla_status_name(s),
			       strlen(spmla_status_name(s))),
		      "%s", text);
}

START_TEST(every_number_that_is_wrong_is_named)
{
	spmla_sparse_decode_args a = w.a;

	ck_assert_int_eq(spmla_sparse_decode(NULL, &a, NULL), SPMLA_E_NULL);
	expect_error(NULL,
		     "SPMLA_E_NULL: sparse_decode: got NULL, want a pointer");
	a.struct_bytes = 4;
	expect_error(&a, "SPMLA_E_STRUCT_SIZE: sparse_decode: got 4, want 280");
	a = w.a;
	a.heads = 0;
	expect_error(
		&a,
		"SPMLA_E_RANGE: sparse_decode.heads: got 0, want at least 1");
	a.heads = 9;
	expect_error(
		&a,
		"SPMLA_E_RANGE: sparse_decode.heads: got 9, want at most 8");
	a = w.a;
	a.topk = 0;
	expect_error(
		&a,
		"SPMLA_E_RANGE: sparse_decode.topk: got 0, want at least 1");
	a = w.a;
	a.empty_lse = 2;
	expect_error(&a, "SPMLA_E_RANGE: sparse_decode.empty_lse: got 2, "
			 "want at most 1");
}
END_TEST

START_TEST(softmax_scale_has_to_be_finite_and_above_zero)
{
	const float bad[6] = {0, -0.0f, -1, INFINITY, NAN, -INFINITY};
	static const char *const bits[6] = {"0",        "80000000", "bf800000",
					    "7f800000", NULL,       "ff800000"};
	spmla_sparse_decode_args a = w.a;
	char text[128];
	uint32_t u;

	a.softmax_scale = bad[_i];
	memcpy(&u, &bad[_i], sizeof u);
	snprintf(text, sizeof text,
		 "SPMLA_E_RANGE: sparse_decode.softmax_scale: got bits 0x%x, "
		 "want a finite value above 0",
		 u);
	expect_error(&a, text);
	if (bits[_i])
		ck_assert_ptr_nonnull(strstr(text, bits[_i]));
}
END_TEST

START_TEST(every_stride_that_is_wrong_is_named)
{
	static const struct {
		size_t offset;
		uint32_t least;
		const char *name;
	} fields[7] = {
#define FIELD(name, least) \
	{offsetof(spmla_sparse_decode_args, name), least, #name}
		FIELD(q_token_stride_elems, 576),
		FIELD(q_head_stride_elems, 576),
		FIELD(slots_stride_elems, 20),
		FIELD(out_token_stride_elems, 512),
		FIELD(out_head_stride_elems, 512),
		FIELD(lse_token_stride_elems, 1),
		FIELD(lse_head_stride_elems, 1),
#undef FIELD
	};
	spmla_sparse_decode_args a = w.a;
	const int64_t small = fields[_i].least - 1, negative = -1000;
	char text[160];

	memcpy((uint8_t *)&a + fields[_i].offset, &small, sizeof small);
	snprintf(text, sizeof text,
		 "SPMLA_E_RANGE: sparse_decode.%s: got %u, want at least %u",
		 fields[_i].name, fields[_i].least - 1, fields[_i].least);
	expect_error(&a, text);
	memcpy((uint8_t *)&a + fields[_i].offset, &negative, sizeof small);
	snprintf(text, sizeof text,
		 "SPMLA_E_RANGE: sparse_decode.%s: got 0, want at least %u",
		 fields[_i].name, fields[_i].least);
	expect_error(&a, text);
}
END_TEST

START_TEST(every_pointer_that_is_missing_is_named)
{
	spmla_sparse_decode_args a = w.a;

	a.q = NULL;
	expect_error(&a,
		     "SPMLA_E_NULL: sparse_decode.q: got NULL, want a pointer");
	a = w.a;
	a.slots = NULL;
	expect_error(
		&a,
		"SPMLA_E_NULL: sparse_decode.slots: got NULL, want a pointer");
	a = w.a;
	a.out = NULL;
	expect_error(
		&a,
		"SPMLA_E_NULL: sparse_decode.out: got NULL, want a pointer");
}
END_TEST

START_TEST(every_field_of_the_cache_that_is_wrong_is_named)
{
	spmla_sparse_decode_args a = w.a;

	a.cache.layout = SPMLA_LAYOUT_INDEX_FP8;
	expect_error(&a, "SPMLA_E_RANGE: cache.layout: got 3, want 1");
	a.cache.layout = 0;
	expect_error(&a, "SPMLA_E_RANGE: cache.layout: got 0, want 1");
	a = w.a;
	a.cache.entries_per_page = 0;
	expect_error(&a, "SPMLA_E_RANGE: cache.entries_per_page: got 0, "
			 "want at least 1");
	a = w.a;
	a.cache.pages = 0;
	expect_error(&a, "SPMLA_E_RANGE: cache.pages: got 0, want at least 1");
	a = w.a;
	a.cache.page_stride_bytes = 64 * 1152 - 16;
	expect_error(&a, "SPMLA_E_RANGE: cache.page_stride_bytes: got 73712, "
			 "want at least 73728");
	a = w.a;
	a.cache.base = (uint8_t *)a.cache.base + 8;
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &a, NULL), SPMLA_E_RANGE);
	ck_assert_str_eq(spmla_ctx_diag(f.ctx)->field, "cache.base");
	ck_assert_uint_eq(spmla_ctx_diag(f.ctx)->want, 16);
}
END_TEST

START_TEST(what_is_optional_may_be_missing)
{
	spmla_sparse_decode_args none = {.struct_bytes = sizeof none};

	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &none, NULL), SPMLA_OK);
	decode_choose(&w);
	w.a.lse = NULL;
	w.a.lse_head_stride_elems = w.a.lse_token_stride_elems = 0;
	decode_check(&f, &w);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	const size_t out_bytes = w.out_elems * 2;
	uint16_t *eager = malloc(out_bytes);
	spmla_graph graph;
	float lse;
	uint32_t round, i;

	w.a.topk_lens = w.lens;
	memset(w.out, 0x5A, out_bytes);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	decode_run(&f, &w);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(w.out[0], 0x5A5A);
	for (round = 0; round < 3; round++) {
		decode_choose(&w);
		for (i = 0; i < REF_DIM; i++)
			w.q[i] = test_bf16(rng_float(&w.rng));
		w.lens[0] = (int32_t)rng_below(&w.rng, 21);
		w.lens[1] = (int32_t)rng_below(&w.rng, 21);
		decode_check(&f, &w);
		memset(w.out, 0x5A, out_bytes);
		decode_run(&f, &w);
		memcpy(eager, w.out, out_bytes);
		lse = decode_lse(&w, 1, 7);
		memset(w.out, 0x5A, out_bytes);
		memset(w.lse, 0x5A, w.lse_elems * 4);
		ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(w.out, eager, out_bytes);
		ck_assert(decode_lse(&w, 1, 7) == lse);
	}
	free(eager);
}
END_TEST

/* What kv_insert writes with each scale rule, and zero queries read back from
 * one key. Tile 0 is full of 336: POW2 gives scale 1 and a tie of 320 and 352,
 * 320; RAW 0.75 and 448. Tile 1 is zeros. Tile 2 has 448 and 3.3 (bf16
 * 3.296875): scale 1, and 3.25 in steps of 1/4; tile 3 is -7: scale 2^-6 and
 * -448, by both rules. */
START_TEST(inserted_row_is_read_as_it_was_written)
{
	static uint16_t latent[512], rope[64];
	static const int64_t slot[1] = {77};
	const float want[4] = {_i ? 336 : 320, 0, 3.25f, -7};
	spmla_kv_insert_args in = {.struct_bytes = sizeof in,
				   .tokens = 1,
				   .scale_mode = _i ? SPMLA_SCALE_RAW
						    : SPMLA_SCALE_POW2,
				   .kv_c = latent,
				   .k_pe = rope,
				   .kv_c_stride_elems = 512,
				   .k_pe_stride_elems = 64,
				   .slot_mapping = slot};
	uint32_t i;

	decode_close(&w);
	decode_open(&w, SPMLA_LAYOUT_FP8_DS_MLA, 8, 64, 20);
	for (i = 0; i < 512; i++)
		latent[i] = test_bf16(i < 128   ? 336
				      : i < 256 ? 0
				      : i < 384 ? 3.3f
						: -7);
	latent[256] = test_bf16(448);
	in.cache = w.a.cache;
	ck_assert_int_eq(spmla_kv_insert(f.ctx, &in, NULL), SPMLA_OK);
	memset(w.q, 0, 8 * (REF_DIM + 8) * 2);
	w.slots[13] = 77;
	decode_check(&f, &w);
	ck_assert_uint_eq(decode_out(&w, 0, 5)[256], test_bf16(448));
	for (i = 0; i < 512; i++)
		if (i != 256)
			ck_assert_uint_eq(decode_out(&w, 0, 5)[i],
					  test_bf16(want[i / 128]));
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{inserted_row_is_read_as_it_was_written, 2},
	};
	const theme_test error[] = {
		{every_number_that_is_wrong_is_named, 1},
		{softmax_scale_has_to_be_finite_and_above_zero, 6},
		{every_stride_that_is_wrong_is_named, 7},
		{every_pointer_that_is_missing_is_named, 1},
		{every_field_of_the_cache_that_is_wrong_is_named, 1},
		{what_is_optional_may_be_missing, 1},
	};
	const theme_test graph[] = {
		{replay_sees_what_changed_in_place, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("error", setup, teardown, error),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
