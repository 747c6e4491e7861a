/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_prefill, the call: what the host refuses, and that a recorded call
 * equals an eager one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/prefill_world.h"

static fixture f;
static prefill_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = 8;
	fixture_open(&f, &config, 0);
	prefill_open(&w, 576, 8, 20);
}

static void
teardown(void)
{
	prefill_close(&w);
	fixture_close(&f);
}

static void
expect_error(const spmla_sparse_prefill_args *a, const char *text)
{
	const spmla_status s = spmla_sparse_prefill(f.ctx, a, NULL);

	ck_assert_int_ne(s, SPMLA_OK);
	ck_assert_str_eq(fixture_diag(&f), text);
	ck_assert_msg(!strncmp(text, spmla_status_name(s),
			       strlen(spmla_status_name(s))),
		      "%s", text);
}

START_TEST(every_number_that_is_wrong_is_named)
{
	static const struct {
		size_t offset;
		uint32_t value;
		const char *text;
	} wrong[9] = {
#define WRONG(name, value, text)                           \
	{offsetof(spmla_sparse_prefill_args, name), value, \
	 "SPMLA_E_RANGE: sparse_prefill." #name ": got " text}
		WRONG(heads, 0, "0, want at least 1"),
		WRONG(heads, 9, "9, want at most 8"),
		WRONG(dim, 0, "0, want 576"),
		WRONG(dim, 575, "575, want 576"),
		WRONG(dim, 640, "640, want 576"),
		WRONG(topk, 0, "0, want at least 1"),
		WRONG(lse_base, 2, "2, want at most 1"),
		WRONG(empty_lse, 2, "2, want at most 1"),
		WRONG(empty_lse, 0xFFFFFFFF, "4294967295, want at most 1"),
#undef WRONG
	};
	spmla_sparse_prefill_args a = w.a;

	memcpy((uint8_t *)&a + wrong[_i].offset, &wrong[_i].value, 4);
	expect_error(&a, wrong[_i].text);
}
END_TEST

START_TEST(context_arguments_and_their_size_are_checked)
{
	spmla_sparse_prefill_args a = w.a;
	char text[96];

	ck_assert_int_eq(spmla_sparse_prefill(NULL, &a, NULL), SPMLA_E_NULL);
	expect_error(NULL,
		     "SPMLA_E_NULL: sparse_prefill: got NULL, want a pointer");
	a.struct_bytes = 4;
	snprintf(text, sizeof text,
		 "SPMLA_E_STRUCT_SIZE: sparse_prefill: got 4, want %u",
		 (unsigned)sizeof a);
	expect_error(&a, text);
}
END_TEST

START_TEST(softmax_scale_has_to_be_finite_and_above_zero)
{
	const float bad[6] = {0, -0.0f, -1, INFINITY, NAN, -INFINITY};
	spmla_sparse_prefill_args a = w.a;
	char text[128];
	uint32_t u;

	a.softmax_scale = bad[_i];
	memcpy(&u, &bad[_i], sizeof u);
	snprintf(text, sizeof text,
		 "SPMLA_E_RANGE: sparse_prefill.softmax_scale: got bits 0x%x, "
		 "want a finite value above 0",
		 u);
	expect_error(&a, text);
}
END_TEST

START_TEST(every_stride_that_is_wrong_is_named)
{
	static const struct {
		size_t offset;
		uint32_t least;
		const char *name;
	} fields[8] = {
#define FIELD(name, least) \
	{offsetof(spmla_sparse_prefill_args, name), least, #name}
		FIELD(q_token_stride_elems, 576),
		FIELD(q_head_stride_elems, 576),
		FIELD(kv_stride_elems, 576),
		FIELD(indices_stride_elems, 20),
		FIELD(out_token_stride_elems, 512),
		FIELD(out_head_stride_elems, 512),
		FIELD(lse_token_stride_elems, 1),
		FIELD(lse_head_stride_elems, 1),
#undef FIELD
	};
	spmla_sparse_prefill_args a = w.a;
	const int64_t small = fields[_i].least - 1, negative = -1000;
	char text[160];

	memcpy((uint8_t *)&a + fields[_i].offset, &small, sizeof small);
	snprintf(text, sizeof text,
		 "SPMLA_E_RANGE: sparse_prefill.%s: got %u, want at least %u",
		 fields[_i].name, fields[_i].least - 1, fields[_i].least);
	expect_error(&a, text);
	memcpy((uint8_t *)&a + fields[_i].offset, &negative, sizeof small);
	snprintf(text, sizeof text,
		 "SPMLA_E_RANGE: sparse_prefill.%s: got 0, want at least %u",
		 fields[_i].name, fields[_i].least);
	expect_error(&a, text);
}
END_TEST

START_TEST(strides_of_dim_512_may_be_512)
{
	prefill_close(&w);
	prefill_open(&w, 512, 8, 20);
	w.a.q_head_stride_elems = w.a.kv_stride_elems = 512;
	prefill_choose(&w);
	prefill_check(&f, &w);
	w.a.kv_stride_elems = 511;
	expect_error(&w.a, "SPMLA_E_RANGE: sparse_prefill.kv_stride_elems: "
			   "got 511, want at least 512");
}
END_TEST

START_TEST(every_pointer_that_is_missing_is_named)
{
	static const struct {
		size_t offset;
		const char *text;
	} fields[4] = {
#define FIELD(name)                                 \
	{offsetof(spmla_sparse_prefill_args, name), \
	 "SPMLA_E_NULL: sparse_prefill." #name ": got NULL, want a pointer"}
		FIELD(q),
		FIELD(kv),
		FIELD(indices),
		FIELD(out),
#undef FIELD
	};
	spmla_sparse_prefill_args a = w.a;

	memset((uint8_t *)&a + fields[_i].offset, 0, sizeof(void *));
	expect_error(&a, fields[_i].text);
}
END_TEST

START_TEST(what_is_optional_may_be_missing)
{
	spmla_sparse_prefill_args none = {.struct_bytes = sizeof none};

	ck_assert_int_eq(spmla_sparse_prefill(f.ctx, &none, NULL), SPMLA_OK);
	prefill_choose(&w);
	if (_i & 1)
		w.a.lse = NULL;
	if (_i & 2)
		w.a.max_logits = NULL;
	if (_i == 3)
		w.a.lse_head_stride_elems = w.a.lse_token_stride_elems = 0;
	prefill_check(&f, &w);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	spmla_graph graph;
	uint32_t round, i;
	uint8_t *eager, *replayed;

	w.a.topk_lens = w.lens;
	memset(w.out, 0x5A, w.out_elems * 2);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	prefill_run(&f, &w);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(w.out[0], 0x5A5A);
	for (round = 0; round < 3; round++) {
		prefill_choose(&w);
		for (i = 0; i < REF_DIM; i++)
			w.q[i] = test_bf16(rng_float(&w.rng));
		for (i = 0; i < PREFILL_TOKENS; i++)
			w.lens[i] = (int32_t)rng_below(&w.rng, 21);
		prefill_check(&f, &w);
		eager = prefill_results(&f, &w, NULL);
		memset(w.out, 0x5A, w.out_elems * 2);
		memset(w.lse, 0x5A, w.lse_elems * 4);
		ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(w.out, eager, w.out_elems * 2);
		ck_assert_mem_eq(w.lse, eager + w.out_elems * 2,
				 w.lse_elems * 4);
		replayed = prefill_results(&f, &w, eager);
		free(eager);
		free(replayed);
	}
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_number_that_is_wrong_is_named, 9},
		{context_arguments_and_their_size_are_checked, 1},
		{softmax_scale_has_to_be_finite_and_above_zero, 6},
		{every_stride_that_is_wrong_is_named, 8},
		{strides_of_dim_512_may_be_512, 1},
		{every_pointer_that_is_missing_is_named, 4},
		{what_is_optional_may_be_missing, 4},
	};
	const theme_test graph[] = {{replay_sees_what_changed_in_place, 1}};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
