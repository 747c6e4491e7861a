/* SPDX-License-Identifier: Apache-2.0
 *
 * The step prologue without the ring: STEP_DEVICE as the engine left it, good
 * or hostile, and ADVANCE, which moves the rows of the step that is there.
 */
#include <string.h>

#include "tests/harness/ring_rig.h"
#include "tests/harness/themes.h"

static fixture f;
static step_model m;

static void
open_with(uint32_t native_flags)
{
	spmla_config config;

	fixture_config(&config);
	config.max_graphs = 16;
	fixture_open(&f, &config, native_flags);
	model_open(&m, &f);
}

static void
setup(void)
{
	open_with(0);
}

static void
setup_deferred(void)
{
	open_with(SPMLA_NATIVE_DEFERRED);
}

static void
teardown(void)
{
	fixture_drain(&f);
	model_close(&m);
	fixture_close(&f);
}

/* The engine's copy into STEP_DEVICE. */
static void
put_device(const draft *d)
{
	uint64_t bytes;
	uint8_t *room = spmla_view(f.ctx, SPMLA_BUF_STEP_DEVICE, &bytes);
	spmla_step_device head;

	memset(&head, 0xEE, sizeof head);
	head.requests = d->request_count;
	head.flags = d->flags;
	ck_assert_uint_le(
		sizeof head + d->request_count * sizeof(spmla_request), bytes);
	memcpy(room, &head, sizeof head);
	memcpy(room + sizeof head, d->requests,
	       d->request_count * sizeof(spmla_request));
}

static void
prologue(const spmla_shape *shape, spmla_source source)
{
	ck_assert_int_eq(spmla_step_prologue(f.ctx, shape, source, NULL),
			 SPMLA_OK);
	fixture_drain(&f);
}

static void
run_device(const draft *d, const spmla_shape *shape)
{
	put_device(d);
	prologue(shape, SPMLA_FROM_DEVICE);
	model_device(&m, d, shape);
	model_check(&m, &f, shape);
}

/* Gives every row of the model and the context four pages. */
static void
give_pages(void)
{
	uint32_t row;

	for (row = 0; row < RIG_ROWS; row++) {
		draft d;

		draft_one(&d, row, 5);
		(void)draft_write(&f, &d);
		prologue(&rig_shapes[0], SPMLA_FROM_RING);
		model_record(&m, &d, &rig_shapes[0]);
		model_check(&m, &f, &rig_shapes[0]);
	}
}

static uint64_t
consumed(void)
{
	return *(const uint64_t *)spmla_view(f.ctx, SPMLA_BUF_RING_CONSUMED,
					     NULL);
}

/* ---- From the device --------------------------------------------------- */

START_TEST(a_step_on_the_device_needs_no_slot_and_no_ticket)
{
	draft d;
	uint64_t t;

	give_pages();
	for (t = 9; t <= 12; t++) /* a full ring does not matter */
		ck_assert_uint_eq(write_one(&f, 0, 5), t);
	draft_clear(&d);
	draft_request(&d, 3, 2, 40, 0);
	draft_request(&d, 1, 0, 0, 0);
	draft_request(&d, 6, 4, 64, 0);
	run_device(&d, &rig_shapes[2]);
	draft_request(&d, 7, 1, 65, 0); /* no page there */
	put_device(&d);
	prologue(&rig_shapes[2], SPMLA_FROM_DEVICE);
	expect_status(&f, 1, SPMLA_FAULT_PAGE, 7, 8);
	ck_assert_uint_eq(consumed(), 8);
	ck_assert_int_eq(spmla_step_undo(f.ctx, 12), SPMLA_OK);
}
END_TEST

START_TEST(a_join_on_the_device_forgets_nothing)
{
	draft d;

	give_pages();
	draft_clear(&d);
	draft_request(&d, 3, 1, 40, SPMLA_REQUEST_JOIN);
	run_device(&d, &rig_shapes[2]);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(a_graph_reads_the_step_that_is_there_when_it_runs)
{
	const spmla_graph graph =
		capture_prologue(&f, &rig_shapes[1], SPMLA_FROM_DEVICE);
	uint64_t rng = test_seed();
	uint32_t i;
	draft d;
	sim s;

	sim_open(&s, &f.plan, test_seed());
	for (i = 0; i < 300; i++) {
		sim_draft(&s, &rig_shapes[1], &d);
		d.store_count = 0;
		if (rng_below(&rng, 8) == 0)
			give_pages();
		put_device(&d);
		replay(&f, graph, 0);
		fixture_drain(&f);
		model_device(&m, &d, &rig_shapes[1]);
		model_check(&m, &f, &rig_shapes[1]);
	}
}
END_TEST

START_TEST(a_step_on_the_device_that_is_too_large_is_empty)
{
	const spmla_step_device bad = {UINT32_MAX, 0, {0}};
	draft d;
	uint32_t i;

	give_pages();
	draft_clear(&d);
	for (i = 0; i < 5; i++)
		draft_request(&d, i, 1, 5, 0);
	run_device(&d, &rig_shapes[0]);
	run_device(&d, &rig_shapes[2]);
	d.requests[2].query_tokens = 5;
	d.requests[2].seq_len_tokens = 30;
	run_device(&d, &rig_shapes[2]);
	d.requests[2].query_tokens = UINT32_MAX;
	run_device(&d, &rig_shapes[2]);
	for (i = 0; i < 5; i++)
		d.requests[i].query_tokens = 4;
	run_device(&d, &rig_shapes[2]);
	memcpy(spmla_view(f.ctx, SPMLA_BUF_STEP_DEVICE, NULL), &bad,
	       sizeof bad);
	prologue(&rig_shapes[2], SPMLA_FROM_DEVICE);
	expect_empty_step(&f, &rig_shapes[2]);
	expect_status(&f, 1, SPMLA_FAULT_TOO_LARGE, SPMLA_NO_INDEX, 8);
}
END_TEST

START_TEST(a_bad_row_or_length_costs_its_own_row_only)
{
	static const spmla_request bad[] = {
		{8, 1, 5, 0},           {UINT32_MAX, 1, 5, 0},
		{0x80000000u, 0, 0, 1}, {2, 1, 513, 0},
		{2, 1, UINT32_MAX, 0},  {2, 1, 0x80000000u, 0},
		{2, 3, 2, 0},           {2, 1, 0, 0},
		{2, 0, 513, 0},         {8, 4, UINT32_MAX, UINT32_MAX}};
	uint32_t i;
	draft d;

	give_pages();
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		draft_clear(&d);
		draft_request(&d, 1, 2, 20, 0);
		d.requests[d.request_count++] = bad[i];
		draft_request(&d, 3, 2, 20, 0);
		put_device(&d);
		prologue(&rig_shapes[2], SPMLA_FROM_DEVICE);
		expect_status(&f, 1,
			      bad[i].row >= 8 ? SPMLA_FAULT_ROW
					      : SPMLA_FAULT_LENGTH,
			      bad[i].row, 8);
		model_device(&m, &d, &rig_shapes[2]);
		model_check(&m, &f, &rig_shapes[2]);
	}
}
END_TEST

START_TEST(lengths_on_the_device_work_without_a_record_too)
{
	int32_t *row_len = spmla_view(f.ctx, SPMLA_BUF_ROW_LEN, NULL);
	int32_t len;
	draft d;

	give_pages();
	draft_clear(&d);
	d.flags = SPMLA_STEP_LENS_ON_DEVICE;
	draft_request(&d, 3, 2, 40, 0);
	for (len = -2; len < 43; len++) {
		row_len[3] = m.row_len[3] = len;
		run_device(&d, &rig_shapes[1]);
	}
}
END_TEST

START_TEST(random_bytes_in_step_device_never_fault)
{
	uint64_t bytes;
	uint8_t *room = spmla_view(f.ctx, SPMLA_BUF_STEP_DEVICE, &bytes);
	int32_t *row_len = spmla_view(f.ctx, SPMLA_BUF_ROW_LEN, NULL);
	const int64_t *slots = spmla_view(f.ctx, SPMLA_BUF_SLOT_MAPPING, NULL);
	uint64_t rng = test_seed() + 11;
	uint32_t round, i;

	give_pages();
	for (round = 0; round < 4000; round++) {
		const spmla_shape *shape = &rig_shapes[rng_below(&rng, 3)];
		const uint32_t kind = rng_below(&rng, 4);

		for (i = 0; i < bytes / 4; i++) {
			const uint32_t small = rng_below(&rng, 12);
			const uint32_t word =
				rng_below(&rng, 4 * (kind + 1))
					? small
					: (uint32_t)rng_next(&rng);

			memcpy(room + 4 * i, &word, sizeof word);
		}
		for (i = 0; i < RIG_ROWS; i++)
			row_len[i] =
				(int32_t)rng_next(&rng) >> rng_below(&rng, 32);
		prologue(shape, SPMLA_FROM_DEVICE);
		for (i = 0; i < shape->tokens; i++) {
			ck_assert_int_ge(slots[i], -1);
			ck_assert_int_lt(slots[i], 1024);
		}
		prologue(shape, SPMLA_ADVANCE);
	}
}
END_TEST

/* ---- The call ---------------------------------------------------------- */

START_TEST(the_prologue_names_what_is_wrong)
{
	const struct {
		spmla_shape shape;
		const char *text;
	} cases[] = {
		{{0, 1, 1, 0}, "shape.tokens: got 0, want at least 1"},
		{{1, 0, 1, 0}, "shape.requests: got 0, want at least 1"},
		{{1, 1, 0, 0}, "shape.next_n: got 0, want at least 1"},
		{{17, 8, 4, 0}, "shape.tokens: got 17, want at most 16"},
		{{16, 9, 4, 0}, "shape.requests: got 9, want at most 8"},
		{{16, 8, 5, 0}, "shape.next_n: got 5, want at most 4"},
		{{4, 4, 1, 4097},
		 "shape.max_live_context: got 4097, want at most 4096"},
		{{16, 8, 4, UINT32_MAX},
		 "shape.max_live_context: got 4294967295, want at most 4096"},
	};
	char text[128];
	uint32_t i;

	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		strcpy(text, "SPMLA_E_RANGE: ");
		strcat(text, cases[i].text);
		expect_error(&f,
			     spmla_step_prologue(f.ctx, &cases[i].shape,
						 SPMLA_FROM_RING, NULL),
			     text);
	}
	ck_assert_int_eq(spmla_step_prologue(NULL, &rig_shapes[0],
					     SPMLA_FROM_RING, NULL),
			 SPMLA_E_NULL);
	expect_error(&f,
		     spmla_step_prologue(f.ctx, NULL, SPMLA_FROM_RING, NULL),
		     "SPMLA_E_NULL: shape: got NULL, want a pointer");
	expect_error(&f,
		     spmla_step_prologue(f.ctx, &rig_shapes[0], (spmla_source)4,
					 NULL),
		     "SPMLA_E_RANGE: source: got 4, want 1, 2 or 3");
	ck_assert_int_eq(spmla_step_prologue(f.ctx, &rig_shapes[0],
					     (spmla_source)0, NULL),
			 SPMLA_E_RANGE);
	ck_assert_uint_eq(fixture_pending(&f), 0);
}
END_TEST

START_TEST(a_shape_must_be_a_bucket_or_smaller)
{
	spmla_config config;
	spmla_shape shape = {16, 2, 1, 0};
	fixture two;

	fixture_config(&config);
	config.bucket_count = 2;
	config.buckets[0] = (spmla_shape){16, 2, 1, 0};
	config.buckets[1] = (spmla_shape){8, 8, 4, 0};
	fixture_open(&two, &config, 0);
	ck_assert_int_eq(
		spmla_step_prologue(two.ctx, &shape, SPMLA_FROM_RING, NULL),
		SPMLA_OK);
	shape.requests = 3;
	expect_error(
		&two,
		spmla_step_prologue(two.ctx, &shape, SPMLA_FROM_RING, NULL),
		"SPMLA_E_RANGE: shape.requests: got 3, want at most 2");
	shape.requests = 2;
	shape.next_n = 2;
	expect_error(
		&two,
		spmla_step_prologue(two.ctx, &shape, SPMLA_FROM_RING, NULL),
		"SPMLA_E_RANGE: shape.next_n: got 2, want at most 1");
	shape.tokens = 8;
	ck_assert_int_eq(
		spmla_step_prologue(two.ctx, &shape, SPMLA_FROM_RING, NULL),
		SPMLA_OK);
	fixture_close(&two);
}
END_TEST

SUITE
{
	const theme_test device[] = {
		{a_step_on_the_device_needs_no_slot_and_no_ticket, 1},
		{a_join_on_the_device_forgets_nothing, 1},
		{a_graph_reads_the_step_that_is_there_when_it_runs, 1},
		{a_step_on_the_device_that_is_too_large_is_empty, 1},
		{a_bad_row_or_length_costs_its_own_row_only, 1},
		{lengths_on_the_device_work_without_a_record_too, 1},
		{random_bytes_in_step_device_never_fault, 1},
	};
	const theme_test calls[] = {
		{the_prologue_names_what_is_wrong, 1},
		{a_shape_must_be_a_bucket_or_smaller, 1},
	};
	const theme themes[] = {
		THEME("from the device", setup, teardown, device),
		THEME("from the device, queued", setup_deferred, teardown,
		      device),
		THEME("the call", setup_deferred, teardown, calls),
	};

	return RUN_THEMES(themes);
}
