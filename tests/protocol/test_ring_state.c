/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring, its ends: when a slot is given back, resync after lost track, and
 * fini with work in flight.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/engine.h"
#include "tests/harness/ring_rig.h"
#include "tests/harness/themes.h"

static ring_rig r;

static void
setup(void)
{
	ring_open(&r, 4, SPMLA_NATIVE_DEFERRED);
}

static void
teardown(void)
{
	ring_close(&r);
}

/* ---- Consumed ---------------------------------------------------------- */

/* What the trap overwrites when the counter's page is touched. */
static struct {
	struct sigaction old;
	uint8_t *page;
	uint8_t *slot;
	size_t slot_bytes;
	volatile sig_atomic_t hits;
} trap;

enum { PAGE_BYTES = 4096 };

static void
on_touch(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	if ((uintptr_t)info->si_addr / PAGE_BYTES !=
		    (uintptr_t)trap.page / PAGE_BYTES ||
	    trap.hits++) {
		signal(SIGSEGV, SIG_DFL); /* not ours: let it crash */
		return;
	}
	(void)mprotect(trap.page, PAGE_BYTES, PROT_READ | PROT_WRITE);
	if (trap.slot)
		memset(trap.slot, 0xEE, trap.slot_bytes);
}

/* The counter's page has the protection `allowed`. The first access that this
 * forbids hits the trap, which then allows all. */
static void
set_trap(uint8_t *slot, size_t slot_bytes, int allowed)
{
	uint8_t *counter = spmla_view(r.f.ctx, SPMLA_BUF_RING_CONSUMED, NULL);
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = on_touch;
	action.sa_flags = SA_SIGINFO;
	trap.page = counter - (uintptr_t)counter % PAGE_BYTES;
	trap.slot = slot;
	trap.slot_bytes = slot_bytes;
	trap.hits = 0;
	ck_assert_int_eq(sigaction(SIGSEGV, &action, &trap.old), 0);
	ck_assert_int_eq(mprotect(trap.page, PAGE_BYTES, allowed), 0);
}

/* Returns how often it was hit. */
static int
take_trap_away(void)
{
	(void)mprotect(trap.page, PAGE_BYTES, PROT_READ | PROT_WRITE);
	ck_assert_int_eq(sigaction(SIGSEGV, &trap.old, NULL), 0);
	return trap.hits;
}

/* Runs one entry; the slot is overwritten at the very store that says it may
 * be: the page of the counter is read-only until then. On a device it is just
 * run: there the store is the device's, to whom the page is what it was when it
 * was registered, so nothing traps; and the test that then fails leaves a page
 * on which the next store of the library ends the program. */
static void
run_with_trap(uint64_t ticket)
{
	if (fixture_on_gpu()) {
		ring_run_one(&r);
		return;
	}
	set_trap(ring_slot(&r, ticket), (size_t)r.f.plan.record_bytes,
		 PROT_READ);
	ring_run_one(&r);
	ck_assert_int_eq(take_trap_away(), 1);
}

START_TEST(nothing_of_a_slot_is_read_after_it_is_given_back)
{
	uint64_t rng = test_seed();
	uint32_t i;
	draft d;
	sim s;

	sim_open(&s, &r.f.plan, rng);
	for (i = 0; i < 64; i++) {
		const uint32_t b = i % 3;
		uint64_t ticket;

		sim_draft(&s, &rig_shapes[b], &d);
		ticket = draft_write(&r.f, &d);
		replay(&r.f, r.graphs[b], ticket);
		run_with_trap(ticket);
		ck_assert_uint_eq(ring_consumed(&r), ticket);
		ring_check(&r, &d, b);
	}
}
END_TEST

START_TEST(a_too_large_record_is_given_back_after_its_last_read)
{
	draft d;

	draft_clear(&d);
	draft_request(&d, 6, 4, 20, SPMLA_REQUEST_JOIN);
	ring_launch_ticket(&r, 0, draft_write(&r.f, &d));
	run_with_trap(1);
	expect_empty_step(&r.f, &rig_shapes[0]);
	expect_status(&r.f, 1, SPMLA_FAULT_TOO_LARGE, SPMLA_NO_INDEX, 1);
	ck_assert_uint_eq(ring_consumed(&r), 1);
}
END_TEST

/* The step may end between two reads of the counter. */
START_TEST(a_launch_is_reported_without_a_look_at_the_counter)
{
	const uint64_t ticket = write_one(&r.f, 0, 5);

	if (!fixture_on_gpu())
		set_trap(NULL, 0, PROT_NONE);
	ck_assert_int_eq(spmla_step_launched(r.f.ctx, ticket), SPMLA_OK);
	if (!fixture_on_gpu())
		ck_assert_int_eq(take_trap_away(), 0);
	ck_assert_int_eq(spmla_step_resync(r.f.ctx), SPMLA_OK);
}
END_TEST

START_TEST(a_later_op_of_the_step_does_not_look_at_the_slot)
{
	const spmla_shape *shape = &rig_shapes[2];
	int32_t *by = spmla_view(r.f.ctx, SPMLA_BUF_ADVANCE_BY, NULL);
	draft d;

	draft_one(&d, 5, 30);
	ck_assert_uint_eq(draft_write(&r.f, &d), 1);
	ck_assert_int_eq(
		spmla_step_prologue(r.f.ctx, shape, SPMLA_FROM_RING, NULL),
		SPMLA_OK);
	ck_assert_int_eq(
		spmla_step_prologue(r.f.ctx, shape, SPMLA_ADVANCE, NULL),
		SPMLA_OK);
	ring_run_one(&r);
	memset(ring_slot(&r, 1), 0xEE, (size_t)r.f.plan.record_bytes);
	memset(by, 0, RIG_REQUESTS * sizeof *by);
	by[0] = 2;
	ring_run_one(&r);
	model_record(&r.m, &d, shape);
	model_advance(&r.m, by, shape);
	model_check(&r.m, &r.f, shape);
}
END_TEST

/* ---- Resync ------------------------------------------------------------ */

START_TEST(resync_drops_what_was_not_consumed)
{
	draft d;

	replay(&r.f, r.graphs[0], write_one(&r.f, 0, 5));
	fixture_drain(&r.f);
	ck_assert_uint_eq(write_one(&r.f, 1, 6), 2);
	ck_assert_uint_eq(write_one(&r.f, 2, 7), 3);
	ck_assert_int_eq(spmla_step_resync(r.f.ctx), SPMLA_OK);
	ck_assert_uint_eq(ring_slot_ticket(&r, 2), 0);
	ck_assert_uint_eq(ring_slot_ticket(&r, 3), 0);
	expect_error(&r.f, spmla_graph_replay(r.f.ctx, r.graphs[0], 2, NULL),
		     "SPMLA_E_TICKET: ticket (not written): got 2, want at "
		     "most 1");
	draft_one(&d, 3, 8);
	ck_assert_uint_eq(draft_write(&r.f, &d), 2);
	replay(&r.f, r.graphs[0], 2);
	ring_run_one(&r);
	ring_check(&r, &d, 0);
	ck_assert_uint_eq(ring_consumed(&r), 2);
}
END_TEST

START_TEST(resync_forgives_launches_that_never_came)
{
	draft d;

	ck_assert_uint_eq(write_one(&r.f, 1, 6), 1);
	ck_assert_uint_eq(write_one(&r.f, 2, 6), 2);
	ck_assert_int_eq(spmla_step_launched(r.f.ctx, 1), SPMLA_OK);
	ck_assert_int_eq(spmla_step_launched(r.f.ctx, 2), SPMLA_OK);
	expect_error(&r.f, spmla_fini(r.f.ctx),
		     "SPMLA_E_BUSY: steps in flight: got 2, want 0");
	ck_assert_int_eq(spmla_step_resync(r.f.ctx), SPMLA_OK);
	draft_one(&d, 3, 8);
	ck_assert_uint_eq(draft_write(&r.f, &d), 1);
	replay(&r.f, r.graphs[1], 1);
	ring_run_one(&r);
	ring_check(&r, &d, 1);
}
END_TEST

START_TEST(resync_is_refused_while_the_queue_holds_work)
{
	ck_assert_uint_eq(write_one(&r.f, 1, 6), 1);
	ck_assert_uint_eq(write_one(&r.f, 2, 6), 2);
	replay(&r.f, r.graphs[0], 1);
	ring_launch(&r, 0); /* ticket 2, not told */
	expect_error(&r.f, spmla_step_resync(r.f.ctx),
		     "SPMLA_E_BUSY: queue: got 2, want 0");
	ck_assert_uint_eq(ring_slot_ticket(&r, 2), 2);
	ring_run_one(&r);
	expect_error(&r.f, spmla_step_resync(r.f.ctx),
		     "SPMLA_E_BUSY: queue: got 1, want 0");
	ring_run_one(&r);
	ck_assert_int_eq(spmla_step_resync(r.f.ctx), SPMLA_OK);
	ck_assert_uint_eq(write_one(&r.f, 2, 6), 3);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(resync_of_a_ring_in_order_changes_nothing)
{
	uint64_t t;

	ck_assert_int_eq(spmla_step_resync(r.f.ctx), SPMLA_OK);
	for (t = 1; t <= 9; t++) {
		ck_assert_uint_eq(write_one(&r.f, 1, 6), t);
		replay(&r.f, r.graphs[0], t);
		ring_run_one(&r);
		ck_assert_int_eq(spmla_step_resync(r.f.ctx), SPMLA_OK);
	}
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* ---- Fini -------------------------------------------------------------- */

START_TEST(fini_is_refused_while_steps_are_in_flight)
{
	replay(&r.f, r.graphs[0], write_one(&r.f, 0, 5));
	replay(&r.f, r.graphs[0], write_one(&r.f, 0, 6));
	expect_error(&r.f, spmla_fini(r.f.ctx),
		     "SPMLA_E_BUSY: steps in flight: got 2, want 0");
	ring_run_one(&r);
	expect_error(&r.f, spmla_fini(r.f.ctx),
		     "SPMLA_E_BUSY: steps in flight: got 1, want 0");
	ring_run_one(&r);
	/* Written and not launched is not in flight; teardown calls fini. */
	ck_assert_uint_eq(write_one(&r.f, 0, 7), 3);
}
END_TEST

START_TEST(fini_is_refused_while_the_queue_holds_work)
{
	ck_assert_int_eq(spmla_step_prologue(r.f.ctx, &rig_shapes[0],
					     SPMLA_ADVANCE, NULL),
			 SPMLA_OK);
	expect_error(&r.f, spmla_fini(r.f.ctx),
		     "SPMLA_E_BUSY: queue: got 1, want 0");
}
END_TEST

START_TEST(fini_is_refused_inside_a_capture)
{
	static const char *const text = "SPMLA_E_STATE: capture: got 1, want 0";
	fixture f;
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	expect_error(&f, spmla_fini(f.ctx), text);
	ck_assert_int_eq(spmla_graph_abort(f.ctx), SPMLA_OK);
	ck_assert_int_eq(engine_capture_begin(f.ctx), SPMLA_OK);
	expect_error(&f, spmla_fini(f.ctx), text);
	ck_assert_int_eq(engine_capture_abort(f.ctx), SPMLA_OK);
	fixture_close(&f);
}
END_TEST

SUITE
{
	const theme_test given_back[] = {
		{nothing_of_a_slot_is_read_after_it_is_given_back, 1},
		{a_too_large_record_is_given_back_after_its_last_read, 1},
		{a_launch_is_reported_without_a_look_at_the_counter, 1},
		{a_later_op_of_the_step_does_not_look_at_the_slot, 1},
	};
	const theme_test resync[] = {
		{resync_drops_what_was_not_consumed, 1},
		{resync_forgives_launches_that_never_came, 1},
		{resync_is_refused_while_the_queue_holds_work, 1},
		{resync_of_a_ring_in_order_changes_nothing, 1},
	};
	const theme_test fini[] = {
		{fini_is_refused_while_steps_are_in_flight, 1},
		{fini_is_refused_while_the_queue_holds_work, 1},
		{fini_is_refused_inside_a_capture, 1},
	};
	const theme themes[] = {
		THEME("consumed", setup, teardown, given_back),
		THEME("resync", setup, teardown, resync),
		THEME("fini", setup, teardown, fini),
	};

	return RUN_THEMES(themes);
}
