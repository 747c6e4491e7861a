/* SPDX-License-Identifier: Apache-2.0
 *
 * Thousands of random operations on the ring against a model of the protocol
 * that is four numbers, the slots and the queue. Some of the launches are the
 * engine's own, and some of those should not be: they come twice, or without a
 * record. Every status, counter and step is compared after every operation.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/harness/engine.h"
#include "tests/harness/ring_rig.h"
#include "tests/harness/themes.h"

enum { OPERATIONS = 6000, QUEUE = 12, MAX_SLOTS = 5 };

/* The protocol as its text has it. */
typedef struct ring_model {
	uint64_t slots;
	uint64_t written;
	uint64_t launched; /* as the host knows */
	uint64_t done;     /* = consumed: a step runs as a whole */
	uint64_t ticket[MAX_SLOTS];
	draft step[MAX_SLOTS];
	uint32_t queue[QUEUE]; /* buckets */
	uint32_t queued;
	uint32_t strays; /* queued launches that took no ticket */
} ring_model;

static ring_rig r;
static ring_model model;
static uint64_t rng;

static uint64_t
last_launched(void)
{
	return model.launched > model.done ? model.launched : model.done;
}

/* A step that tells itself apart by row and length; it may be too large for
 * the first bucket or the second. */
static void
any_step(draft *d)
{
	const uint32_t row = rng_below(&rng, 8);
	const uint32_t query = 1u << rng_below(&rng, 3);
	int32_t pages[2];

	pages[0] = (int32_t)rng_below(&rng, 64);
	pages[1] = (int32_t)rng_below(&rng, 64);
	draft_clear(d);
	if (rng_below(&rng, 16) == 0)
		return; /* no requests: warm-up */
	draft_request(d, row, query, 16 + rng_below(&rng, 16),
		      SPMLA_REQUEST_JOIN);
	draft_store(d, row, 0, 2, pages);
}

static void
do_write(void)
{
	static uint64_t record[1024];
	const uint64_t at = (model.written + 1) % model.slots;
	uint64_t ticket = 0;
	spmla_status s;
	draft d;

	any_step(&d);
	if (rng_below(&rng, 2)) {
		s = spmla_step_write(r.f.ctx, draft_step(&d), &ticket, NULL);
	} else {
		ck_assert_uint_le(r.f.plan.record_bytes, sizeof record);
		ck_assert_int_eq(spmla_step_encode(&r.f.plan, draft_step(&d),
						   record, sizeof record, NULL,
						   NULL),
				 SPMLA_OK);
		s = spmla_step_push(r.f.ctx, record, &ticket);
	}
	if (model.written - model.done == model.slots) {
		ck_assert_int_eq(s, SPMLA_E_RING_FULL);
		return;
	}
	ck_assert_int_eq(s, SPMLA_OK);
	ck_assert_uint_eq(ticket, ++model.written);
	model.ticket[at] = ticket;
	model.step[at] = d;
}

/* The last ticket or one beside it. */
static void
do_undo(void)
{
	const uint64_t ticket =
		model.written + rng_below(&rng, 4) / 3 - rng_below(&rng, 4) / 3;
	const spmla_status s = spmla_step_undo(r.f.ctx, ticket);

	if (ticket == 0 || ticket != model.written ||
	    ticket <= last_launched()) {
		ck_assert_int_eq(s, SPMLA_E_TICKET);
		return;
	}
	ck_assert_int_eq(s, SPMLA_OK);
	model.ticket[ticket % model.slots] = 0;
	model.written--;
}

/* The next ticket to launch or one beside it. */
static uint64_t
near_due(void)
{
	return last_launched() + 1 + rng_below(&rng, 8) / 7 -
	       rng_below(&rng, 8) / 7;
}

static uint32_t
is_due(uint64_t ticket)
{
	return ticket == last_launched() + 1 && ticket <= model.written;
}

static void
do_replay(void)
{
	const uint64_t ticket = near_due();
	const uint32_t b = rng_below(&rng, 3);
	const spmla_status s =
		spmla_graph_replay(r.f.ctx, r.graphs[b], ticket, NULL);

	if (!is_due(ticket)) {
		ck_assert_int_eq(s, SPMLA_E_TICKET);
	} else if (!draft_fits(&model.step[ticket % model.slots],
			       &rig_shapes[b])) {
		ck_assert_int_eq(s, SPMLA_E_RANGE);
	} else if (model.queued == QUEUE) {
		ck_assert_int_eq(s, SPMLA_E_SPACE);
	} else {
		ck_assert_int_eq(s, SPMLA_OK);
		model.queue[model.queued++] = b;
		model.launched = ticket;
	}
}

/* The engine's own launch: told as it must be, or a stray one. */
static void
do_launch(void)
{
	const uint32_t b = rng_below(&rng, 3);
	const uint32_t stray = rng_below(&rng, 6) == 0;
	const uint64_t ticket = near_due();
	spmla_status s;

	if (!stray && !is_due(ticket)) {
		s = spmla_step_launched(r.f.ctx, ticket);
		if (ticket == model.launched + 1 && ticket <= model.done) {
			ck_assert_int_eq(s, SPMLA_OK); /* late, but true */
			model.launched = ticket;
		} else {
			ck_assert_int_eq(s, SPMLA_E_TICKET);
		}
		return;
	}
	s = engine_launch(r.f.ctx, r.lists[b]);
	if (model.queued == QUEUE) {
		ck_assert_int_eq(s, SPMLA_E_SPACE);
		return;
	}
	ck_assert_int_eq(s, SPMLA_OK);
	model.queue[model.queued++] = b;
	if (stray) {
		model.strays++;
		return;
	}
	ck_assert_int_eq(spmla_step_launched(r.f.ctx, ticket), SPMLA_OK);
	model.launched = ticket;
}

/* What the device does with the oldest entry of the queue. */
static void
model_run(void)
{
	const spmla_shape *shape = &rig_shapes[model.queue[0]];
	const uint64_t next = model.done + 1;
	const uint64_t at = next % model.slots;

	memmove(model.queue, model.queue + 1,
		(size_t)--model.queued * sizeof model.queue[0]);
	if (model.ticket[at] == next) {
		model_record(&r.m, &model.step[at], shape);
		model.done = next;
	} else {
		model_empty(&r.m, SPMLA_FAULT_TICKET_MISSING);
	}
	model_check(&r.m, &r.f, shape);
}

static void
do_run(void)
{
	uint32_t k = 1 + rng_below(&rng, 3);

	for (; k > 0; k--) {
		const uint32_t had = model.queued;

		ck_assert_uint_eq(fixture_run(&r.f, 1), had > 0);
		if (had)
			model_run();
	}
}

static void
do_resync(void)
{
	const spmla_status s = spmla_step_resync(r.f.ctx);
	uint64_t i;

	if (model.queued) {
		ck_assert_int_eq(s, SPMLA_E_BUSY);
		return;
	}
	ck_assert_int_eq(s, SPMLA_OK);
	model.written = model.launched = model.done;
	model.strays = 0;
	for (i = 0; i < model.slots; i++)
		model.ticket[i] = 0;
}

static void
operate(void)
{
	const uint32_t dice = rng_below(&rng, 100);

	if (dice < 35)
		do_write();
	else if (dice < 45)
		do_undo();
	else if (dice < 65)
		do_replay();
	else if (dice < 75)
		do_launch();
	else if (dice < 97)
		do_run();
	else
		do_resync();
	/* After a stray launch took another's record, launches that wait for
	 * theirs go without; only a drain and a resync help. */
	if (model.strays && model.queued == 0)
		do_resync();
}

static void
check_counters(uint32_t operation)
{
	uint64_t t;

	if (ring_consumed(&r) != model.done)
		ck_abort_msg("operation %u: consumed %" PRIu64
			     ", want %" PRIu64,
			     operation, ring_consumed(&r), model.done);
	for (t = 0; t < model.slots; t++)
		ck_assert_uint_eq(ring_slot_ticket(&r, t), model.ticket[t]);
	ck_assert_uint_eq(fixture_pending(&r.f), model.queued);
}

static void
run_operations(uint32_t slots, uint64_t seed)
{
	spmla_config config;
	uint32_t i;

	memset(&model, 0, sizeof model);
	model.slots = slots;
	rng = seed;
	fixture_config(&config);
	config.ring_slots = slots;
	config.queue_entries = QUEUE;
	ring_open_config(&r, &config, SPMLA_NATIVE_DEFERRED);
	for (i = 0; i < OPERATIONS; i++) {
		operate();
		check_counters(i);
	}
	ck_assert_uint_gt(model.done, OPERATIONS / 20);
	fixture_drain(&r.f);
	ck_assert_int_eq(spmla_step_resync(r.f.ctx), SPMLA_OK);
	ring_close(&r);
}

START_TEST(random_operations_keep_the_protocol_in_one_slot)
{
	run_operations(1, test_seed() + 1);
}
END_TEST

START_TEST(random_operations_keep_the_protocol_in_two_slots)
{
	run_operations(2, test_seed() + 2);
}
END_TEST

START_TEST(random_operations_keep_the_protocol_in_three_slots)
{
	run_operations(3, test_seed() + 3);
}
END_TEST

START_TEST(random_operations_keep_the_protocol_in_four_slots)
{
	run_operations(4, test_seed() + 4);
}
END_TEST

START_TEST(random_operations_keep_the_protocol_in_five_slots)
{
	run_operations(5, test_seed() + 5);
}
END_TEST

SUITE
{
	const theme_test every_depth[] = {
		{random_operations_keep_the_protocol_in_one_slot, 1},
		{random_operations_keep_the_protocol_in_two_slots, 1},
		{random_operations_keep_the_protocol_in_three_slots, 1},
		{random_operations_keep_the_protocol_in_four_slots, 1},
		{random_operations_keep_the_protocol_in_five_slots, 1},
	};
	const theme themes[] = {
		THEME("every depth", NULL, NULL, every_depth),
	};

	return RUN_THEMES(themes);
}
