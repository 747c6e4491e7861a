/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring, host side: tickets, slots, what a full ring refuses, and undo. The
 * deferred queue holds the device still.
 */
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/backend.h"

#include "tests/harness/ring_rig.h"
#include "tests/harness/themes.h"

static const uint32_t slot_counts[5] = {1, 2, 3, 4, 7};

static ring_rig r;

static void
open_ring(uint32_t slots)
{
	ring_open(&r, slots, SPMLA_NATIVE_DEFERRED);
}

static void
close_ring(void)
{
	ring_close(&r);
}

static void
setup(void)
{
	open_ring(4);
}

static spmla_status
try_write(void)
{
	uint64_t ticket = 0;
	draft d;

	draft_one(&d, 0, 5);
	return spmla_step_write(r.f.ctx, draft_step(&d), &ticket, NULL);
}

static spmla_status
try_push(void *record)
{
	uint64_t ticket = 0;
	draft d;

	draft_one(&d, 0, 5);
	ck_assert_int_eq(spmla_step_encode(&r.f.plan, draft_step(&d), record,
					   r.f.plan.record_bytes, NULL, NULL),
			 SPMLA_OK);
	return spmla_step_push(r.f.ctx, record, &ticket);
}

/* ---- Tickets and slots ------------------------------------------------- */

/* A context that has run for weeks, with slots whose number divides no power of
 * two. */
START_TEST(tickets_past_32_bits_find_their_slots)
{
	const uint64_t before = (UINT64_C(1) << 32) - 4;
	spmla_i_step_state *state;
	uint64_t t;

	open_ring(7);
	state = spmla_view(r.f.ctx, SPMLA_BUF_STEP_STATE, NULL);
	r.f.ctx->written = r.f.ctx->launched = before;
	state->done = before;
	*(uint64_t *)spmla_view(r.f.ctx, SPMLA_BUF_RING_CONSUMED, NULL) =
		before;
	for (t = before + 1; t <= before + 9; t++) {
		ck_assert_uint_eq(write_one(&r.f, 0, 5), t);
		replay(&r.f, r.graphs[2], t);
		fixture_drain(&r.f);
		expect_status(&r.f, 0, SPMLA_FAULT_NONE, 0, 0);
	}
	ck_assert_uint_eq(state->done, before + 9);
	close_ring();
}
END_TEST

START_TEST(tickets_count_from_one)
{
	uint64_t t;

	for (t = 1; t <= 3; t++)
		ck_assert_uint_eq(write_one(&r.f, 0, 5), t);
	for (t = 1; t <= 3; t++)
		replay(&r.f, r.graphs[2], t);
	fixture_drain(&r.f);
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 4);
}
END_TEST

START_TEST(a_ticket_lies_in_slot_n_modulo_any_number_of_slots)
{
	uint32_t i;

	for (i = 0; i < 5; i++) {
		const uint32_t slots = slot_counts[i];
		uint64_t t;

		open_ring(slots);
		ck_assert_uint_eq(ring_slot_ticket(&r, 0), 0);
		for (t = 1; t <= 3 * slots + 1; t++) {
			ck_assert_uint_eq(write_one(&r.f, t % 8, 5), t);
			ck_assert_uint_eq(ring_slot_ticket(&r, t), t);
			replay(&r.f, r.graphs[2], t);
			ring_run_one(&r);
			ck_assert_uint_eq(ring_consumed(&r), t);
		}
		ck_assert_uint_eq(fixture_status(&r.f).count, 0);
		close_ring();
	}
}
END_TEST

/* ---- Full -------------------------------------------------------------- */

/* All that a failed write could touch, one buffer after the other: copied to
 * `bytes`, or compared with them. */
static void
pinned(uint8_t *bytes, uint32_t compare)
{
	const uint8_t *base = r.f.memory[SPMLA_MEMORY_PINNED];
	uint32_t i;

	for (i = 0; i < r.f.plan.row_count; i++) {
		const spmla_extent *e = &r.f.plan.extents[i];

		if (e->memory != SPMLA_MEMORY_PINNED)
			continue;
		if (compare)
			ck_assert_mem_eq(bytes, base + e->offset_bytes,
					 e->bytes);
		else
			memcpy(bytes, base + e->offset_bytes, (size_t)e->bytes);
		bytes += e->bytes;
	}
}

START_TEST(the_ring_refuses_a_fifth_record_in_four_slots)
{
	static const char *const text =
		"SPMLA_E_RING_FULL: records not consumed: got 4, want at "
		"most 3";
	void *record = test_alloc(r.f.plan.record_bytes, 0);
	uint8_t *before;
	uint32_t i;

	for (i = 0; i < 4; i++)
		ck_assert_int_eq(try_write(), SPMLA_OK);
	before = test_alloc(r.f.regions[SPMLA_MEMORY_PINNED].bytes, 0);
	pinned(before, 0);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(try_write(), SPMLA_E_RING_FULL);
		ck_assert_str_eq(fixture_diag(&r.f), text);
		ck_assert_int_eq(try_push(record), SPMLA_E_RING_FULL);
		ck_assert_str_eq(fixture_diag(&r.f), text);
	}
	pinned(before, 1);
	for (i = 1; i <= 4; i++)
		replay(&r.f, r.graphs[2], i);
	ck_assert_int_eq(try_write(), SPMLA_E_RING_FULL);
	free(record);
	free(before);
}
END_TEST

START_TEST(a_slot_is_free_exactly_when_its_record_is_consumed)
{
	uint32_t i;

	for (i = 0; i < 5; i++) {
		const uint32_t slots = slot_counts[i];
		uint64_t t;

		open_ring(slots);
		for (t = 1; t <= slots; t++)
			replay(&r.f, r.graphs[2], write_one(&r.f, 0, 5));
		for (; t <= 4 * slots; t++) {
			ck_assert_int_eq(try_write(), SPMLA_E_RING_FULL);
			ring_run_one(&r);
			ck_assert_uint_eq(write_one(&r.f, 0, 5), t);
			replay(&r.f, r.graphs[2], t);
		}
		close_ring();
	}
}
END_TEST

START_TEST(a_step_that_is_refused_uses_no_ticket_and_harms_no_slot)
{
	uint64_t ticket = 77;
	draft d;

	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	draft_one(&d, 8, 5);
	expect_error(&r.f,
		     spmla_step_write(r.f.ctx, draft_step(&d), &ticket, NULL),
		     "SPMLA_E_RECORD: step.requests.row[0]: got 8, want at "
		     "most 7");
	ck_assert_uint_eq(ticket, 77);
	ck_assert_uint_eq(ring_slot_ticket(&r, 1), 1);
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 2);
	replay(&r.f, r.graphs[2], 1);
	replay(&r.f, r.graphs[2], 2);
	fixture_drain(&r.f);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(a_missing_argument_is_named)
{
	void *record = test_alloc(r.f.plan.record_bytes, 0);
	uint64_t ticket;
	draft d;

	draft_one(&d, 0, 5);
	ck_assert_int_eq(spmla_step_write(NULL, draft_step(&d), &ticket, NULL),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_step_push(NULL, record, &ticket), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_step_undo(NULL, 1), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_step_launched(NULL, 1), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_step_resync(NULL), SPMLA_E_NULL);
	expect_error(&r.f, spmla_step_write(r.f.ctx, NULL, &ticket, NULL),
		     "SPMLA_E_NULL: step: got NULL, want a pointer");
	expect_error(&r.f,
		     spmla_step_write(r.f.ctx, draft_step(&d), NULL, NULL),
		     "SPMLA_E_NULL: ticket: got NULL, want a pointer");
	expect_error(&r.f, spmla_step_push(r.f.ctx, NULL, &ticket),
		     "SPMLA_E_NULL: record: got NULL, want a pointer");
	expect_error(&r.f, spmla_step_push(r.f.ctx, record, NULL),
		     "SPMLA_E_NULL: ticket: got NULL, want a pointer");
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	free(record);
}
END_TEST

/* ---- Undo -------------------------------------------------------------- */

START_TEST(undo_takes_back_the_last_ticket_and_the_next_write_has_it_again)
{
	const spmla_request *requests =
		spmla_view(r.f.ctx, SPMLA_BUF_STEP_REQUESTS, NULL);

	ck_assert_uint_eq(write_one(&r.f, 1, 5), 1);
	ck_assert_uint_eq(write_one(&r.f, 2, 6), 2);
	ck_assert_int_eq(spmla_step_undo(r.f.ctx, 2), SPMLA_OK);
	ck_assert_uint_eq(ring_slot_ticket(&r, 2), 0);
	ck_assert_uint_eq(write_one(&r.f, 3, 7), 2);
	replay(&r.f, r.graphs[2], 1);
	ck_assert_int_eq(spmla_step_undo(r.f.ctx, 2), SPMLA_OK);
	ck_assert_uint_eq(write_one(&r.f, 4, 8), 2);
	replay(&r.f, r.graphs[2], 2);
	ring_run_one(&r);
	ck_assert_uint_eq(requests[0].row, 1);
	ring_run_one(&r);
	ck_assert_uint_eq(requests[0].row, 4);
	ck_assert_uint_eq(requests[0].seq_len_tokens, 8);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(undo_goes_back_one_by_one_as_far_as_nothing_is_launched)
{
	uint64_t t;

	for (t = 1; t <= 4; t++)
		ck_assert_uint_eq(write_one(&r.f, 0, 5), t);
	replay(&r.f, r.graphs[2], 1);
	for (t = 4; t >= 2; t--)
		ck_assert_int_eq(spmla_step_undo(r.f.ctx, t), SPMLA_OK);
	expect_error(&r.f, spmla_step_undo(r.f.ctx, 1),
		     "SPMLA_E_TICKET: ticket (launched): got 1, want at "
		     "least 2");
	fixture_drain(&r.f);
	expect_error(&r.f, spmla_step_undo(r.f.ctx, 1),
		     "SPMLA_E_TICKET: ticket (launched): got 1, want at "
		     "least 2");
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 2);
}
END_TEST

START_TEST(undo_refuses_any_ticket_but_the_last)
{
	expect_error(&r.f, spmla_step_undo(r.f.ctx, 0),
		     "SPMLA_E_TICKET: ticket: got 0, want 0");
	expect_error(&r.f, spmla_step_undo(r.f.ctx, 1),
		     "SPMLA_E_TICKET: ticket: got 1, want 0");
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	ck_assert_uint_eq(write_one(&r.f, 1, 5), 2);
	expect_error(&r.f, spmla_step_undo(r.f.ctx, 1),
		     "SPMLA_E_TICKET: ticket: got 1, want 2");
	expect_error(&r.f, spmla_step_undo(r.f.ctx, 3),
		     "SPMLA_E_TICKET: ticket: got 3, want 2");
	ck_assert_int_eq(spmla_step_undo(r.f.ctx, 2), SPMLA_OK);
	expect_error(&r.f, spmla_step_undo(r.f.ctx, 2),
		     "SPMLA_E_TICKET: ticket: got 2, want 1");
	ck_assert_int_eq(spmla_step_undo(r.f.ctx, 1), SPMLA_OK);
	expect_error(&r.f, spmla_step_undo(r.f.ctx, 1),
		     "SPMLA_E_TICKET: ticket: got 1, want 0");
}
END_TEST

START_TEST(undo_sees_a_launch_that_the_engine_did_not_tell_of)
{
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	ring_launch(&r, 2);
	fixture_drain(&r.f);
	expect_error(&r.f, spmla_step_undo(r.f.ctx, 1),
		     "SPMLA_E_TICKET: ticket (launched): got 1, want at "
		     "least 2");
}
END_TEST

START_TEST(undo_makes_room_in_a_full_ring)
{
	uint32_t i;

	for (i = 0; i < 5; i++) {
		const uint32_t slots = slot_counts[i];
		uint64_t t;

		open_ring(slots);
		for (t = 1; t <= slots; t++)
			ck_assert_uint_eq(write_one(&r.f, 0, 5), t);
		ck_assert_int_eq(try_write(), SPMLA_E_RING_FULL);
		ck_assert_int_eq(spmla_step_undo(r.f.ctx, slots), SPMLA_OK);
		ck_assert_uint_eq(write_one(&r.f, 0, 5), slots);
		ck_assert_int_eq(try_write(), SPMLA_E_RING_FULL);
		close_ring();
	}
}
END_TEST

START_TEST(table_stores_and_joins_of_an_undone_record_are_not_applied)
{
	static const int32_t pages[4] = {40, 41, 42, 43};
	draft first, undone, last;

	draft_one(&first, 3, 50);
	draft_clear(&undone);
	draft_request(&undone, 3, 1, 51, SPMLA_REQUEST_JOIN);
	draft_store(&undone, 3, 0, 4, pages);
	draft_clear(&last);
	draft_request(&last, 3, 4, 51, 0);
	replay(&r.f, r.graphs[2], draft_write(&r.f, &first));
	ck_assert_int_eq(spmla_step_undo(r.f.ctx, draft_write(&r.f, &undone)),
			 SPMLA_OK);
	replay(&r.f, r.graphs[2], draft_write(&r.f, &last));
	ring_run_one(&r);
	ring_check(&r, &first, 2);
	ring_run_one(&r);
	ring_check(&r, &last, 2);
}
END_TEST

SUITE
{
	const theme_test slots[] = {
		{tickets_count_from_one, 1},
		{a_missing_argument_is_named, 1},
	};
	const theme_test any[] = {
		{a_ticket_lies_in_slot_n_modulo_any_number_of_slots, 1},
		{a_slot_is_free_exactly_when_its_record_is_consumed, 1},
		{undo_makes_room_in_a_full_ring, 1},
		{tickets_past_32_bits_find_their_slots, 1},
	};
	const theme_test full[] = {
		{the_ring_refuses_a_fifth_record_in_four_slots, 1},
		{a_step_that_is_refused_uses_no_ticket_and_harms_no_slot, 1},
	};
	const theme_test undo[] = {
		{undo_takes_back_the_last_ticket_and_the_next_write_has_it_again,
		 1},
		{undo_goes_back_one_by_one_as_far_as_nothing_is_launched, 1},
		{undo_refuses_any_ticket_but_the_last, 1},
		{undo_sees_a_launch_that_the_engine_did_not_tell_of, 1},
		{table_stores_and_joins_of_an_undone_record_are_not_applied, 1},
	};
	const theme themes[] = {
		THEME("tickets and slots", setup, close_ring, slots),
		THEME("any number of slots", NULL, NULL, any),
		THEME("full", setup, close_ring, full),
		THEME("undo", setup, close_ring, undo),
	};

	return RUN_THEMES(themes);
}
