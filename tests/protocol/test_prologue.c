/* SPDX-License-Identifier: Apache-2.0
 *
 * The step prologue from the ring: every STEP buffer of random batches against
 * an independent model, one batch worked out by hand, and lengths that only
 * the device knows.
 */
#include <string.h>

#include "tests/harness/ring_rig.h"
#include "tests/harness/themes.h"

static ring_rig r;

static void
setup(void)
{
	ring_open(&r, 4, 0);
}

static void
setup_deferred(void)
{
	ring_open(&r, 4, SPMLA_NATIVE_DEFERRED);
}

static void
teardown(void)
{
	ring_close(&r);
}

/* Runs d through a bucket and compares everything. */
static void
run(draft *d, uint32_t bucket)
{
	replay(&r.f, r.graphs[bucket], draft_write(&r.f, d));
	fixture_drain(&r.f);
	ring_check(&r, d, bucket);
}

static const void *
view(spmla_buf buf)
{
	return spmla_view(r.f.ctx, buf, NULL);
}

/* ---- By hand ----------------------------------------------------------- */

START_TEST(a_batch_worked_out_by_hand)
{
	/* Row 6: 3 tokens of 35; row 2 paused at 100; row 0: nothing; row 7:
	 * its first token. Pages of 16, so position 32 is column 2. */
	static const int32_t six[3] = {9, 8, 50}, seven[1] = {63};
	static const int32_t start[9] = {0, 3, 3, 3, 4, 4, 4, 4, 4};
	static const int32_t lens[8] = {35, 100, 0, 1, 0, 0, 0, 0};
	static const int32_t rows[8] = {6, 2, 0, 7, 0, 0, 0, 0};
	static const int32_t req[16] = {0, 0, 0, 3};
	static const int32_t token_row[16] = {6, 6, 6, 7};
	static const int32_t pos[16] = {32, 33, 34, 0};
	static const int32_t context[16] = {33, 34, 35, 1};
	static const int64_t slot[16] = {800, 801, 802, 1008, -1, -1, -1, -1,
					 -1,  -1,  -1,  -1,   -1, -1, -1, -1};
	int64_t logits[17] = {0, 256, 512, 768};
	draft d;
	uint32_t i;

	for (i = 4; i <= 16; i++)
		logits[i] = 1024;
	draft_clear(&d);
	draft_request(&d, 6, 3, 35, SPMLA_REQUEST_JOIN);
	draft_request(&d, 2, 0, 100, 0);
	draft_request(&d, 0, 0, 0, 0);
	draft_request(&d, 7, 1, 1, SPMLA_REQUEST_JOIN);
	draft_store(&d, 6, 0, 3, six);
	draft_store(&d, 7, 0, 1, seven);
	run(&d, 2);
	ck_assert_mem_eq(view(SPMLA_BUF_QUERY_START_LOC), start, sizeof start);
	ck_assert_mem_eq(view(SPMLA_BUF_SEQ_LENS), lens, sizeof lens);
	ck_assert_mem_eq(view(SPMLA_BUF_REQ_ROW), rows, sizeof rows);
	ck_assert_mem_eq(view(SPMLA_BUF_REQ_ID_PER_TOKEN), req, sizeof req);
	ck_assert_mem_eq(view(SPMLA_BUF_TOKEN_ROW), token_row,
			 sizeof token_row);
	ck_assert_mem_eq(view(SPMLA_BUF_POSITIONS), pos, sizeof pos);
	ck_assert_mem_eq(view(SPMLA_BUF_CONTEXT_LENS), context, sizeof context);
	ck_assert_mem_eq(view(SPMLA_BUF_SLOT_MAPPING), slot, sizeof slot);
	ck_assert_mem_eq(view(SPMLA_BUF_LOGITS_ROW_STARTS), logits,
			 sizeof logits);
}
END_TEST

/* ---- Batches of every kind --------------------------------------------- */

START_TEST(steps_of_no_tokens_are_padding)
{
	uint32_t b, i;
	draft d;

	for (b = 0; b < 3; b++) {
		draft_clear(&d);
		run(&d, b);
		for (i = 0; i < rig_shapes[b].requests; i++)
			draft_request(&d, i, 0, 0, SPMLA_REQUEST_JOIN);
		run(&d, b);
		for (i = 0; i < rig_shapes[b].requests; i++)
			d.requests[i].seq_len_tokens = 60 * i;
		run(&d, b);
	}
}
END_TEST

START_TEST(a_small_step_after_a_large_one_leaves_nothing_behind)
{
	draft large, small;
	uint32_t i;

	draft_clear(&large);
	for (i = 0; i < 8; i++) {
		const int32_t page = (int32_t)(8 * i);

		draft_request(&large, i, 2, 2 + i, SPMLA_REQUEST_JOIN);
		draft_store(&large, i, 0, 1, &page);
	}
	draft_clear(&small);
	draft_request(&small, 7, 1, 9, 0);
	run(&large, 2);
	run(&small, 2);
	run(&large, 2);
	run(&small, 0);
	run(&small, 1);
	run(&small, 2);
}
END_TEST

START_TEST(random_batches_through_every_bucket)
{
	const uint32_t rounds = fixture_rounds(3000, 3000);
	uint64_t rng = test_seed() + 77;
	uint32_t i;
	draft d;
	sim s;

	sim_open(&s, &r.f.plan, test_seed());
	for (i = 0; i < rounds; i++) {
		const uint32_t limit = rng_below(&rng, 3);

		sim_draft(&s, &rig_shapes[limit], &d);
		run(&d, limit + rng_below(&rng, 3 - limit));
	}
}
END_TEST

START_TEST(a_shape_may_be_smaller_than_its_bucket)
{
	const spmla_shape odd[4] = {
		{1, 1, 1, 0}, {3, 2, 2, 0}, {5, 7, 3, 0}, {15, 8, 1, 0}};
	const uint32_t rounds = fixture_rounds(400, 400);
	uint64_t rng = test_seed();
	uint32_t i;
	draft d;
	sim s;

	sim_open(&s, &r.f.plan, test_seed());
	for (i = 0; i < rounds; i++) {
		const spmla_shape *shape = &odd[rng_below(&rng, 4)];

		sim_draft(&s, shape, &d);
		(void)draft_write(&r.f, &d);
		ck_assert_int_eq(spmla_step_prologue(r.f.ctx, shape,
						     SPMLA_FROM_RING, NULL),
				 SPMLA_OK);
		fixture_drain(&r.f);
		model_record(&r.m, &d, shape);
		model_check(&r.m, &r.f, shape);
	}
}
END_TEST

/* ---- Lengths on the device --------------------------------------------- */

static void
set_row_len(uint32_t row, int32_t len)
{
	int32_t *row_len = spmla_view(r.f.ctx, SPMLA_BUF_ROW_LEN, NULL);

	row_len[row] = len;
	r.m.row_len[row] = len;
}

START_TEST(a_true_length_may_be_anything_up_to_its_bound)
{
	static const struct {
		int32_t len;
		uint32_t faults;
	} cases[] = {{40, 0},  {39, 0},        {33, 0},       {2, 0},
		     {1, 1},   {0, 1},         {-1, 1},       {41, 1},
		     {512, 1}, {INT32_MAX, 1}, {INT32_MIN, 1}};
	const int32_t *lens = view(SPMLA_BUF_SEQ_LENS);
	uint32_t i;
	draft d;

	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		draft_one(&d, 1, 40);
		d.flags = SPMLA_STEP_LENS_ON_DEVICE;
		d.requests[0].query_tokens = 2;
		draft_request(&d, 4, 0, 60, 0);
		set_row_len(1, cases[i].len);
		set_row_len(4, 60);
		replay(&r.f, r.graphs[2], draft_write(&r.f, &d));
		fixture_drain(&r.f);
		ck_assert_uint_eq(fixture_status(&r.f).count, cases[i].faults);
		ck_assert_int_eq(lens[0], cases[i].faults ? 0 : cases[i].len);
		ck_assert_int_eq(lens[1], 60);
		if (cases[i].faults)
			expect_status(&r.f, 1, SPMLA_FAULT_LENGTH, 1, i + 1);
		ring_check(&r, &d, 2);
	}
}
END_TEST

START_TEST(row_len_is_not_read_unless_the_step_says_so)
{
	draft d;

	set_row_len(1, -7);
	draft_one(&d, 1, 40);
	run(&d, 0);
	ck_assert_int_eq(((const int32_t *)view(SPMLA_BUF_SEQ_LENS))[0], 40);
}
END_TEST

START_TEST(a_row_that_is_skipped_keeps_its_place_in_the_batch)
{
	const int32_t *req = view(SPMLA_BUF_REQ_ID_PER_TOKEN);
	const int32_t *pos = view(SPMLA_BUF_POSITIONS);
	draft d;

	draft_one(&d, 1, 40);
	d.flags = SPMLA_STEP_LENS_ON_DEVICE;
	draft_request(&d, 2, 1, 50, 0);
	draft_request(&d, 1 + 2, 1, 50, 0);
	set_row_len(1, 40);
	set_row_len(2, 51);
	set_row_len(3, 50);
	replay(&r.f, r.graphs[0], draft_write(&r.f, &d));
	fixture_drain(&r.f);
	ck_assert_int_eq(req[0], 0);
	ck_assert_int_eq(req[1], 1);
	ck_assert_int_eq(req[2], 2);
	ck_assert_int_eq(pos[1], 0);
	ck_assert_int_eq(pos[2], 49);
	expect_status(&r.f, 2, SPMLA_FAULT_LENGTH, 2, 1); /* 3: no page */
	ring_check(&r, &d, 0);
}
END_TEST

START_TEST(random_batches_with_lengths_on_the_device)
{
	const uint32_t rounds = fixture_rounds(1000, 1000);
	uint64_t rng = test_seed() + 5;
	uint32_t i, q;
	draft d;
	sim s;

	sim_open(&s, &r.f.plan, test_seed() + 3);
	for (i = 0; i < rounds; i++) {
		const uint32_t b = rng_below(&rng, 3);

		sim_draft(&s, &rig_shapes[b], &d);
		d.flags = rng_below(&rng, 4) ? SPMLA_STEP_LENS_ON_DEVICE : 0;
		for (q = 0; q < d.request_count; q++) {
			const uint32_t bound = d.requests[q].seq_len_tokens;

			set_row_len(
				d.requests[q].row,
				rng_below(&rng, 16)
					? (int32_t)bound -
						  (int32_t)rng_below(&rng, 4)
					: (int32_t)rng_next(&rng));
		}
		run(&d, b);
	}
}
END_TEST

SUITE
{
	const theme_test batches[] = {
		{a_batch_worked_out_by_hand, 1},
		{steps_of_no_tokens_are_padding, 1},
		{a_small_step_after_a_large_one_leaves_nothing_behind, 1},
		{random_batches_through_every_bucket, 1},
		{a_shape_may_be_smaller_than_its_bucket, 1},
	};
	const theme_test lengths[] = {
		{a_true_length_may_be_anything_up_to_its_bound, 1},
		{row_len_is_not_read_unless_the_step_says_so, 1},
		{a_row_that_is_skipped_keeps_its_place_in_the_batch, 1},
		{random_batches_with_lengths_on_the_device, 1},
	};
	const theme themes[] = {
		THEME("batches", setup, teardown, batches),
		THEME("batches, queued", setup_deferred, teardown, batches),
		THEME("lengths on the device", setup, teardown, lengths),
		THEME("lengths on the device, queued", setup_deferred, teardown,
		      lengths),
	};

	return RUN_THEMES(themes);
}
