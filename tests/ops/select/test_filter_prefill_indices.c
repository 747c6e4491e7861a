/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_prefill_indices: both halves, refusals, and that a recorded call
 * equals an eager one.
 */
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/reference/narrow_ref.h"

#include "spmla/ops/filter_prefill_indices.h"

enum { TOKENS = 4, K = 70, STRIDE = 75, ELEMS = TOKENS * STRIDE };

static fixture f;
static spmla_filter_prefill_indices_args a;
static int32_t in[ELEMS], lens[TOKENS], old[ELEMS], fresh[ELEMS];
static uint64_t rng;

static void
fill(void)
{
	uint32_t i;

	for (i = 0; i < ELEMS; i++)
		in[i] = (int32_t)rng_below(&rng, 101) - 1;
	for (i = 0; i < TOKENS; i++)
		lens[i] = (int32_t)rng_below(&rng, 100);
}

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	rng = test_seed();
	fill();
	a = (spmla_filter_prefill_indices_args){sizeof a, TOKENS, K,     0,
						in,       STRIDE, lens,  old,
						STRIDE,   fresh,  STRIDE};
}

static void
teardown(void)
{
	fixture_close(&f);
}

/* What an index becomes, in 64 bits. */
static int32_t
want_old(int64_t index, int64_t len)
{
	return index >= 0 && index < len ? (int32_t)index : -1;
}

static int32_t
want_fresh(int64_t index, int64_t len)
{
	return index >= 0 && len >= 0 && index >= len ? (int32_t)(index - len)
						      : -1;
}

/* Twice, over different poison: every element, gaps included. */
static void
check(void)
{
	uint32_t pass, i;

	for (pass = 0; pass < 2; pass++) {
		const int32_t poison =
			pass ? (int32_t)0xC3C3C3C3 : (int32_t)0x5A5A5A5A;

		memset(old, pass ? 0xC3 : 0x5A, sizeof old);
		memset(fresh, pass ? 0xC3 : 0x5A, sizeof fresh);
		ck_assert_int_eq(spmla_filter_prefill_indices(f.ctx, &a, NULL),
				 SPMLA_OK);
		for (i = 0; i < ELEMS; i++) {
			const uint32_t t = i / STRIDE;
			const int inside = i % STRIDE < a.k && t < a.tokens;

			ck_assert_int_eq(old[i],
					 inside && a.context_indices
						 ? want_old(in[i], lens[t])
						 : poison);
			ck_assert_int_eq(fresh[i],
					 inside && a.new_indices
						 ? want_fresh(in[i], lens[t])
						 : poison);
		}
	}
}

START_TEST(every_index_goes_to_its_half)
{
	a.tokens = 1 + (uint32_t)_i % TOKENS;
	a.k = _i < TOKENS ? K : 1;
	check();
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* A context of 5: 4 is its last, 5 is the first new one; -1 is none in both. */
START_TEST(vector_worked_out_by_hand)
{
	static const int32_t row[6] = {4, 5, -1, 0, 9, -1};
	static const int32_t context[6] = {4, -1, -1, 0, -1, -1};
	static const int32_t news[6] = {-1, 0, -1, -1, 4, -1};

	memcpy(in, row, sizeof row);
	lens[0] = 5;
	a.k = 6;
	check();
	ck_assert_mem_eq(old, context, sizeof context);
	ck_assert_mem_eq(fresh, news, sizeof news);
}
END_TEST

START_TEST(context_may_be_empty_or_everything)
{
	lens[0] = 0;
	lens[1] = INT32_MAX;
	lens[2] = 1;
	in[0] = 0;
	in[1] = INT32_MAX;
	in[STRIDE] = INT32_MAX;
	in[STRIDE + 1] = INT32_MAX - 1;
	check();
	ck_assert_int_eq(fresh[1], INT32_MAX);
	ck_assert_int_eq(fresh[STRIDE], 0);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(any_negative_index_is_none)
{
	in[0] = -2;
	in[1] = INT32_MIN;
	lens[0] = 0;
	check();
	ck_assert_int_eq(old[0] & old[1] & fresh[0] & fresh[1], -1);
}
END_TEST

START_TEST(negative_context_is_none_everywhere_and_reported)
{
	spmla_device_status s;

	lens[2] = _i ? INT32_MIN : -1;
	check();
	s = fixture_status(&f);
	ck_assert_uint_eq(s.count, 2);
	ck_assert_uint_eq(s.fault, SPMLA_FAULT_LENGTH);
	ck_assert_uint_eq(s.row, 2);
}
END_TEST

START_TEST(half_that_is_not_wanted_is_not_written)
{
	if (_i) {
		a.context_indices = NULL;
		a.context_indices_stride_elems = 0;
	} else {
		a.new_indices = NULL;
		a.new_indices_stride_elems = 0;
	}
	check();
}
END_TEST

START_TEST(half_may_replace_the_input)
{
	int32_t before[ELEMS];
	uint32_t i;

	memcpy(before, in, sizeof before);
	if (_i)
		a.context_indices = in;
	else
		a.new_indices = in;
	ck_assert_int_eq(spmla_filter_prefill_indices(f.ctx, &a, NULL),
			 SPMLA_OK);
	for (i = 0; i < ELEMS; i++) {
		const uint32_t t = i / STRIDE;

		if (i % STRIDE >= K)
			continue;
		ck_assert_int_eq(_i ? in[i] : old[i],
				 want_old(before[i], lens[t]));
		ck_assert_int_eq(_i ? fresh[i] : in[i],
				 want_fresh(before[i], lens[t]));
	}
}
END_TEST

/* The call is refused with `text`, and nothing is written. */
static void
refuse(const char *text)
{
	int32_t before[ELEMS];

	memcpy(before, in, sizeof before);
	memset(old, 0x5A, sizeof old);
	ck_assert_int_eq(spmla_filter_prefill_indices(f.ctx, &a, NULL),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f), text);
	ck_assert_mem_eq(in, before, sizeof before);
	ck_assert_int_eq(old[0], 0x5A5A5A5A);
}

START_TEST(half_in_place_keeps_the_stride_of_the_input)
{
	if (_i) {
		a.context_indices = in;
		a.context_indices_stride_elems = STRIDE - 1;
		refuse("SPMLA_E_RANGE: filter_prefill_indices."
		       "context_indices_stride_elems: got 74, want 75");
	} else {
		a.new_indices = in;
		a.new_indices_stride_elems = STRIDE + 1;
		refuse("SPMLA_E_RANGE: filter_prefill_indices."
		       "new_indices_stride_elems: got 76, want 75");
	}
}
END_TEST

START_TEST(halves_are_not_one_buffer)
{
	a.context_indices = a.new_indices = _i ? in : old;
	refuse("SPMLA_E_RANGE: filter_prefill_indices.new_indices "
	       "(context_indices too): got 1, want 0");
}
END_TEST

#define STEM        "filter_prefill_indices"
#define FIELD(name) ARG_FIELD(spmla_filter_prefill_indices_args, name)
#define NUMBER(name, value, text)                                      \
	{                                                              \
		FIELD(name), value, SPMLA_E_RANGE,                     \
			"SPMLA_E_RANGE: " STEM "." #name ": got " text \
	}
#define NULLED(name)                                    \
	{                                               \
		FIELD(name), 0, SPMLA_E_NULL,           \
			"SPMLA_E_NULL: " STEM "." #name \
			": got NULL, want a pointer"    \
	}

static const arg_error errors[] = {
	{FIELD(struct_bytes), 8, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: " STEM ": got 8, want 72"},
	NUMBER(k, 0, "0, want at least 1"),
	NUMBER(indices_stride_elems, K - 1, "69, want at least 70"),
	NUMBER(context_indices_stride_elems, K - 1, "69, want at least 70"),
	NUMBER(new_indices_stride_elems, UINT64_MAX, "0, want at least 70"),
	NULLED(indices),
	NULLED(context_lens),
};

START_TEST(every_argument_that_is_wrong_is_named_and_nothing_is_written)
{
	const arg_error *e = &errors[_i];
	spmla_filter_prefill_indices_args bad = a;

	memset(old, 0x5A, sizeof old);
	memcpy((uint8_t *)&bad + e->offset, &e->value, e->bytes);
	ck_assert_uint_eq(spmla_filter_prefill_indices(f.ctx, &bad, NULL),
			  e->status);
	ck_assert_str_eq(fixture_diag(&f), e->text);
	ck_assert_int_eq(old[0], 0x5A5A5A5A);
}
END_TEST

START_TEST(call_without_an_output_context_or_arguments_is_refused)
{
	spmla_filter_prefill_indices_args bad = a;

	ck_assert_int_eq(spmla_filter_prefill_indices(NULL, &a, NULL),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_filter_prefill_indices(f.ctx, NULL, NULL),
			 SPMLA_E_NULL);
	bad.context_indices = bad.new_indices = NULL;
	ck_assert_int_eq(spmla_filter_prefill_indices(f.ctx, &bad, NULL),
			 SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&f), "SPMLA_E_NULL: " STEM
					   ".context_indices: got NULL, want "
					   "a pointer");
	bad.tokens = 0;
	ck_assert_int_eq(spmla_filter_prefill_indices(f.ctx, &bad, NULL),
			 SPMLA_OK);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	int32_t eager[ELEMS];
	spmla_graph graph;

	memset(old, 0x5A, sizeof old);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_filter_prefill_indices(f.ctx, &a, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_int_eq(old[0], 0x5A5A5A5A);
	fill();
	check();
	memcpy(eager, fresh, sizeof eager);
	memset(fresh, 0xC3, sizeof fresh);
	ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, 0, NULL), SPMLA_OK);
	ck_assert_mem_eq(fresh, eager, sizeof eager);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{every_index_goes_to_its_half, 2 * TOKENS},
		{vector_worked_out_by_hand, 1},
	};
	const theme_test edge[] = {
		{context_may_be_empty_or_everything, 1},
		{any_negative_index_is_none, 1},
		{negative_context_is_none_everywhere_and_reported, 2},
	};
	const theme_test error[] = {
		{every_argument_that_is_wrong_is_named_and_nothing_is_written,
		 (int)(sizeof errors / sizeof *errors)},
		{call_without_an_output_context_or_arguments_is_refused, 1},
		{half_in_place_keeps_the_stride_of_the_input, 2},
		{halves_are_not_one_buffer, 2},
	};
	const theme_test layout[] = {
		{half_that_is_not_wanted_is_not_written, 2},
		{half_may_replace_the_input, 2},
	};
	const theme_test graph[] = {{replay_sees_what_changed_in_place, 1}};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("error", setup, teardown, error),
		THEME("layout", setup, teardown, layout),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
