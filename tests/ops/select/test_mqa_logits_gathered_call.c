/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered, the call: what the host refuses, and that a recorded
 * call equals an eager one.
 */
#include <stdio.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/gathered_world.h"

static fixture f;
static gathered_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.index_heads = 8;
	fixture_open(&f, &config, 0);
	gathered_open(&w, 8, SPMLA_LOGITS_ABSOLUTE);
}

static void
teardown(void)
{
	gathered_close(&w);
	fixture_close(&f);
}

static void
expect_error(const spmla_mqa_logits_gathered_args *a, const char *text)
{
	const spmla_status s = spmla_mqa_logits_gathered(f.ctx, a, NULL);

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
	} wrong[6] = {
#define WRONG(name, value, text)                                \
	{offsetof(spmla_mqa_logits_gathered_args, name), value, \
	 "SPMLA_E_RANGE: mqa_logits_gathered." text}
		WRONG(heads, 0, "heads: got 0, want at least 1"),
		WRONG(heads, 9, "heads: got 9, want at most 8"),
		WRONG(form, 3, "form: got 3, want at most 2"),
		WRONG(columns, 89, "columns: got 89, want at least 90"),
		WRONG(columns, 121,
		      "logits_stride_elems: got 120, want at least 121"),
		WRONG(keys, 101, "columns: got 100, want at least 101"),
#undef WRONG
	};
	spmla_mqa_logits_gathered_args a = w.a;

	memcpy((uint8_t *)&a + wrong[_i].offset, &wrong[_i].value, 4);
	expect_error(&a, wrong[_i].text);
}
END_TEST

START_TEST(width_and_strides_that_are_wrong_are_named)
{
	spmla_mqa_logits_gathered_args a = w.a;

	a.form = SPMLA_LOGITS_COMPRESSED;
	a.columns = 0;
	expect_error(&a, "SPMLA_E_RANGE: mqa_logits_gathered.columns: got 0, "
			 "want at least 1");
	a = w.a;
	a.weights_stride_elems = 7;
	expect_error(&a, "SPMLA_E_RANGE: mqa_logits_gathered."
			 "weights_stride_elems: got 7, want at least 8");
	a.weights_stride_elems = -8;
	expect_error(&a, "SPMLA_E_RANGE: mqa_logits_gathered."
			 "weights_stride_elems: got 0, want at least 8");
	a = w.a;
	a.logits_stride_elems = -100;
	expect_error(&a, "SPMLA_E_RANGE: mqa_logits_gathered."
			 "logits_stride_elems: got 0, want at least 100");
}
END_TEST

START_TEST(context_arguments_and_their_size_are_checked)
{
	spmla_mqa_logits_gathered_args a = w.a;
	char text[96];

	ck_assert_int_eq(spmla_mqa_logits_gathered(NULL, &a, NULL),
			 SPMLA_E_NULL);
	expect_error(NULL, "SPMLA_E_NULL: mqa_logits_gathered: got NULL, want "
			   "a pointer");
	a.struct_bytes = 4;
	snprintf(text, sizeof text,
		 "SPMLA_E_STRUCT_SIZE: mqa_logits_gathered: got 4, want %u",
		 (unsigned)sizeof a);
	expect_error(&a, text);
}
END_TEST

START_TEST(every_pointer_that_is_missing_is_named)
{
	static const struct {
		size_t offset;
		const char *text;
	} fields[7] = {
#define FIELD(name)                                      \
	{offsetof(spmla_mqa_logits_gathered_args, name), \
	 "SPMLA_E_NULL: mqa_logits_gathered." #name      \
	 ": got NULL, want a pointer"}
		FIELD(q),      FIELD(weights), FIELD(k),      FIELD(k_scales),
		FIELD(starts), FIELD(ends),    FIELD(logits),
#undef FIELD
	};
	spmla_mqa_logits_gathered_args a = w.a;

	memset((uint8_t *)&a + fields[_i].offset, 0, sizeof(void *));
	expect_error(&a, fields[_i].text);
}
END_TEST

START_TEST(no_tokens_is_no_work)
{
	spmla_mqa_logits_gathered_args a = {.struct_bytes = sizeof a};

	ck_assert_int_eq(spmla_mqa_logits_gathered(f.ctx, &a, NULL), SPMLA_OK);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	enum { BYTES = GATHERED_TOKENS * GATHERED_STRIDE * 4 };
	uint64_t rng = test_seed() + 9;
	static uint8_t eager[BYTES];
	spmla_graph graph;
	uint32_t round, i;

	w.a.form = SPMLA_LOGITS_CLEAN;
	memset(w.logits, 0x5A, BYTES);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_mqa_logits_gathered(f.ctx, &w.a, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_mem_eq(w.logits, "\x5A\x5A\x5A\x5A", 4);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 8 * 128; i++)
			w.q[i] = (uint8_t)rng_below(&rng, 0x7F);
		for (i = 0; i < GATHERED_TOKENS; i++) {
			w.starts[i] = (int32_t)rng_below(&rng, 91);
			w.ends[i] = (int32_t)rng_below(&rng, 91);
		}
		gathered_check(&f, &w);
		memcpy(eager, w.logits, BYTES);
		memset(w.logits, 0xC3, BYTES);
		ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(w.logits, eager, BYTES);
	}
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_number_that_is_wrong_is_named, 6},
		{width_and_strides_that_are_wrong_are_named, 1},
		{context_arguments_and_their_size_are_checked, 1},
		{every_pointer_that_is_missing_is_named, 7},
		{no_tokens_is_no_work, 1},
	};
	const theme_test graph[] = {{replay_sees_what_changed_in_place, 1}};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
