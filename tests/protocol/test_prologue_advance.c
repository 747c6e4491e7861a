/* SPDX-License-Identifier: Apache-2.0
 *
 * ADVANCE: the rows of the step that is there move on the device, as often as
 * a graph says, and stay inside their bounds.
 */
#include <string.h>

#include "tests/harness/engine.h"
#include "tests/harness/ring_rig.h"
#include "tests/harness/themes.h"

static fixture f;
static step_model m;

static void
open_config(const spmla_config *config, uint32_t native_flags)
{
	fixture_open(&f, config, native_flags);
	model_open(&m, &f);
}

static void
open_with(uint32_t native_flags)
{
	spmla_config config;

	fixture_config(&config);
	config.max_graphs = 16;
	open_config(&config, native_flags);
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

static int32_t *
advance_by(void)
{
	return spmla_view(f.ctx, SPMLA_BUF_ADVANCE_BY, NULL);
}

static void
prologue(const spmla_shape *shape, spmla_source source)
{
	ck_assert_int_eq(spmla_step_prologue(f.ctx, shape, source, NULL),
			 SPMLA_OK);
	fixture_drain(&f);
}

static void
advance(const spmla_shape *shape)
{
	prologue(shape, SPMLA_ADVANCE);
	model_advance(&m, advance_by(), shape);
	model_check(&m, &f, shape);
}

static void
run_ring(draft *d, const spmla_shape *shape)
{
	(void)draft_write(&f, d);
	prologue(shape, SPMLA_FROM_RING);
	model_record(&m, d, shape);
	model_check(&m, &f, shape);
}

/* Rows 1, 4 and 6 with two, none and one query tokens, four pages each. */
static void
three_rows(draft *d, uint32_t len)
{
	static const uint32_t rows[3] = {1, 4, 6}, query[3] = {2, 0, 1};
	uint32_t i;

	draft_clear(d);
	for (i = 0; i < 3; i++) {
		const int32_t pages[4] = {(int32_t)rows[i], 20,
					  (int32_t)rows[i] + 30,
					  (int32_t)rows[i] + 40};

		draft_request(d, rows[i], query[i], len + i,
			      SPMLA_REQUEST_JOIN);
		draft_store(d, rows[i], 0, 4, pages);
	}
}

static void
set_by(int32_t a, int32_t b, int32_t c)
{
	int32_t *by = advance_by();

	by[0] = a;
	by[1] = b;
	by[2] = c;
}

START_TEST(rows_with_tokens_move_and_paused_ones_stay)
{
	const int32_t *lens = spmla_view(f.ctx, SPMLA_BUF_SEQ_LENS, NULL);
	const int32_t *pos = spmla_view(f.ctx, SPMLA_BUF_POSITIONS, NULL);
	draft d;

	three_rows(&d, 20);
	run_ring(&d, &rig_shapes[1]);
	set_by(3, 5, 0);
	advance(&rig_shapes[1]);
	ck_assert_int_eq(lens[0], 23);
	ck_assert_int_eq(lens[1], 21);
	ck_assert_int_eq(lens[2], 22);
	ck_assert_int_eq(pos[0], 21);
	ck_assert_int_eq(pos[1], 22);
	set_by(-4, -100, 1);
	advance(&rig_shapes[1]);
	ck_assert_int_eq(lens[0], 19);
	ck_assert_int_eq(lens[1], 21);
	ck_assert_int_eq(lens[2], 23);
}
END_TEST

START_TEST(one_graph_may_advance_many_times)
{
	const int32_t *lens = spmla_view(f.ctx, SPMLA_BUF_SEQ_LENS, NULL);
	spmla_graph graph;
	uint32_t i, k;
	draft d;

	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	prologue(&rig_shapes[1], SPMLA_FROM_RING);
	for (i = 0; i < 5; i++)
		prologue(&rig_shapes[1], SPMLA_ADVANCE);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	set_by(1, 1, 2);
	for (k = 0; k < 4; k++) {
		three_rows(&d, 10 + k);
		replay(&f, graph, draft_write(&f, &d));
		fixture_drain(&f);
		model_record(&m, &d, &rig_shapes[1]);
		for (i = 0; i < 5; i++)
			model_advance(&m, advance_by(), &rig_shapes[1]);
		model_check(&m, &f, &rig_shapes[1]);
		ck_assert_int_eq(lens[0], (int32_t)(15 + k));
		ck_assert_int_eq(lens[2], (int32_t)(22 + k));
	}
}
END_TEST

START_TEST(a_row_that_leaves_its_bounds_is_skipped_for_good)
{
	static const int32_t bad[] = {-20,       493, INT32_MAX,
				      INT32_MIN, -19, 1000};
	uint32_t i;
	draft d;

	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		three_rows(&d, 20);
		run_ring(&d, &rig_shapes[2]);
		set_by(bad[i], 0, 1);
		prologue(&rig_shapes[2], SPMLA_ADVANCE);
		expect_status(&f, 1, SPMLA_FAULT_LENGTH, 1, i + 1);
		model_advance(&m, advance_by(), &rig_shapes[2]);
		model_check(&m, &f, &rig_shapes[2]);
		set_by(1, 0, 1); /* it does not come back */
		advance(&rig_shapes[2]);
		ck_assert_int_eq(m.len[0], 0);
		ck_assert_int_eq(m.len[2], 24);
	}
	three_rows(&d, 20);
	run_ring(&d, &rig_shapes[2]);
	set_by(-18, 0, 490); /* the very ends: query 2, context 512 */
	prologue(&rig_shapes[2], SPMLA_ADVANCE);
	model_advance(&m, advance_by(), &rig_shapes[2]);
	ck_assert_int_eq(m.len[0], 2);
	ck_assert_int_eq(m.len[2], 512);
	model_check(&m, &f, &rig_shapes[2]);
}
END_TEST

START_TEST(a_row_that_the_step_skipped_does_not_move)
{
	int32_t *row_len = spmla_view(f.ctx, SPMLA_BUF_ROW_LEN, NULL);
	draft d;

	three_rows(&d, 20);
	d.flags = SPMLA_STEP_LENS_ON_DEVICE;
	m.row_len[1] = row_len[1] = 50; /* above its bound */
	m.row_len[4] = row_len[4] = 21;
	m.row_len[6] = row_len[6] = 9; /* the true length moves */
	run_ring(&d, &rig_shapes[1]);
	set_by(1, 1, 1);
	advance(&rig_shapes[1]);
	ck_assert_int_eq(m.len[0], 0);
	ck_assert_int_eq(m.len[2], 10);
}
END_TEST

START_TEST(a_larger_shape_is_padded_and_a_smaller_one_too_large)
{
	draft d, full;
	uint32_t i;

	draft_clear(&full); /* leaves tokens everywhere */
	for (i = 0; i < 8; i++)
		draft_request(&full, i, 2, 30, SPMLA_REQUEST_JOIN);
	(void)draft_write(&f, &full);
	prologue(&rig_shapes[2], SPMLA_FROM_RING);
	model_record(&m, &full, &rig_shapes[2]);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	three_rows(&d, 20);
	run_ring(&d, &rig_shapes[1]);
	set_by(1, 1, 1);
	advance(&rig_shapes[2]);
	advance(&rig_shapes[1]);
	prologue(&rig_shapes[0], SPMLA_ADVANCE); /* next_n is 2 */
	expect_empty_step(&f, &rig_shapes[0]);
	expect_status(&f, 1, SPMLA_FAULT_TOO_LARGE, SPMLA_NO_INDEX, 2);
}
END_TEST

START_TEST(nothing_moves_before_the_first_step_and_after_an_empty_one)
{
	const engine_list list =
		capture_list(&f, &rig_shapes[1], SPMLA_FROM_RING);
	draft d;
	uint32_t b;

	set_by(1, 1, 1);
	for (b = 0; b < 3; b++) {
		prologue(&rig_shapes[b], SPMLA_ADVANCE);
		expect_empty_step(&f, &rig_shapes[b]);
	}
	three_rows(&d, 20);
	run_ring(&d, &rig_shapes[1]);
	ck_assert_int_eq(engine_launch(f.ctx, list), SPMLA_OK); /* none */
	fixture_drain(&f);
	for (b = 0; b < 3; b++) {
		prologue(&rig_shapes[b], SPMLA_ADVANCE);
		expect_empty_step(&f, &rig_shapes[b]);
	}
	expect_status(&f, 1, SPMLA_FAULT_TICKET_MISSING, SPMLA_NO_INDEX, 2);
}
END_TEST

/* Row `row` of one token at `len`, with `count` pages. */
static void
add_paged(draft *d, uint32_t row, uint32_t len, uint32_t count)
{
	static const int32_t pages[20] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

	draft_request(d, row, 1, len, SPMLA_REQUEST_JOIN);
	draft_store(d, row, 0, count, pages);
}

START_TEST(a_row_past_the_logits_is_skipped_and_later_ones_kept)
{
	const int32_t *context, *by;
	const int64_t *starts;
	const spmla_shape *shape;
	spmla_config config;
	draft d;

	teardown();
	fixture_config(&config);
	config.bucket_count = 1;
	config.buckets[0] = (spmla_shape){4, 4, 1, 100};
	shape = &config.buckets[0];
	open_config(&config, 0);
	context = spmla_view(f.ctx, SPMLA_BUF_CONTEXT_LENS, NULL);
	starts = spmla_view(f.ctx, SPMLA_BUF_LOGITS_ROW_STARTS, NULL);
	by = advance_by();
	/* 1 * 100 + 4 * 255 elements: two rows of 512 and 96 more */
	ck_assert_uint_eq(f.plan.logits_elems, 1120);
	draft_clear(&d);
	add_paged(&d, 0, 40, 20);
	run_ring(&d, shape);
	draft_clear(&d);
	draft_request(&d, 0, 1, 40, 0);
	add_paged(&d, 1, 40, 20);
	add_paged(&d, 2, 10, 7);
	add_paged(&d, 3, 10, 1);
	run_ring(&d, shape);
	set_by(260, 260, 86);
	advance_by()[3] = 0;
	advance(shape);
	ck_assert_int_eq(context[2], 96); /* just fits; row 3 does not */
	ck_assert_int_eq(context[3], 0);
	set_by(0, 0, 1);
	prologue(shape, SPMLA_ADVANCE);
	expect_status(&f, 1, SPMLA_FAULT_LOGITS, 2, 2);
	ck_assert_int_eq(context[2], 0);
	ck_assert_int_eq(starts[2], 1024);
	ck_assert_int_eq(context[3], 10);
	ck_assert_int_eq(starts[3], 1024);
	ck_assert_int_eq(starts[4], 1120);
	model_advance(&m, by, shape);
	model_check(&m, &f, shape);
}
END_TEST

START_TEST(random_steps_advance_as_the_model_does)
{
	uint64_t rng = test_seed() + 21;
	uint32_t i, k;
	draft d;
	sim s;

	sim_open(&s, &f.plan, test_seed());
	for (i = 0; i < 500; i++) {
		const uint32_t b = rng_below(&rng, 3);

		sim_draft(&s, &rig_shapes[b], &d);
		run_ring(&d, &rig_shapes[b]);
		for (k = 0; k < RIG_REQUESTS; k++)
			advance_by()[k] =
				rng_below(&rng, 12)
					? (int32_t)rng_below(&rng, 9) - 4
					: (int32_t)rng_next(&rng);
		for (k = rng_below(&rng, 5); k > 0; k--)
			advance(&rig_shapes[b]);
		advance(&rig_shapes[rng_below(&rng, 3)]);
	}
}
END_TEST

SUITE
{
	const theme_test moving[] = {
		{rows_with_tokens_move_and_paused_ones_stay, 1},
		{one_graph_may_advance_many_times, 1},
		{a_row_that_leaves_its_bounds_is_skipped_for_good, 1},
		{a_row_that_the_step_skipped_does_not_move, 1},
		{a_larger_shape_is_padded_and_a_smaller_one_too_large, 1},
		{nothing_moves_before_the_first_step_and_after_an_empty_one, 1},
		{random_steps_advance_as_the_model_does, 1},
	};
	const theme_test logits[] = {
		{a_row_past_the_logits_is_skipped_and_later_ones_kept, 1},
	};
	const theme themes[] = {
		THEME("advance", setup, teardown, moving),
		THEME("advance, queued", setup_deferred, teardown, moving),
		THEME("logits", setup, teardown, logits),
	};

	return RUN_THEMES(themes);
}
