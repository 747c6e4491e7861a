/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays against eager steps: a thousand steps of random batches through one
 * graph a bucket, written ahead, undone and run at random, give the bits of
 * the same steps run one by one on a context of its own.
 */
#include <string.h>

#include "tests/harness/attn_rig.h"
#include "tests/harness/themes.h"

enum { STEPS = 1000, ENOUGH = 60, MAX_SLOTS = 8 };

/* A step that is written and has not run. */
typedef struct pending {
	draft step;
	uint32_t bucket;
	sim before; /* the scheduler, for an undo */
} pending;

typedef struct run {
	attn_rig ahead; /* graphs, deferred */
	attn_rig eager;
	attn_inputs in;
	sim sim;
	uint64_t rng;
	uint64_t written, launched, ran;
	uint32_t full; /* writes that found no slot */
	uint32_t undone;
	uint64_t hash;
	pending log[MAX_SLOTS];
} run;

static run r;

static pending *
log_of(uint64_t ticket)
{
	return &r.log[ticket % MAX_SLOTS];
}

/* The scheduler's next step, through the first bucket that it fits or any
 * larger one. */
static void
write_next(uint32_t slots)
{
	const uint32_t limit = rng_below(&r.rng, 3);
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	pending *p = log_of(r.written + 1);
	uint64_t ticket;
	spmla_status s;

	if (r.written - r.ran == slots) {
		draft d;

		draft_clear(&d);
		ck_assert_int_eq(spmla_step_write(r.ahead.f.ctx, draft_step(&d),
						  &ticket, NULL),
				 SPMLA_E_RING_FULL);
		r.full++;
		return;
	}
	p->before = r.sim;
	sim_draft(&r.sim, &rig_shapes[limit], &p->step);
	s = spmla_step_write(r.ahead.f.ctx, draft_step(&p->step), &ticket,
			     &info);
	if (s != SPMLA_OK)
		ck_abort_msg("write: %s", fixture_diag(&r.ahead.f));
	ck_assert_uint_eq(ticket, ++r.written);
	ck_assert_uint_le(info.bucket, limit);
	p->bucket = info.bucket + rng_below(&r.rng, 3 - info.bucket);
}

static void
undo_last(void)
{
	ck_assert_int_eq(spmla_step_undo(r.ahead.f.ctx, r.written), SPMLA_OK);
	r.sim = log_of(r.written)->before;
	r.sim.rng = rng_next(&r.rng); /* another step takes its place */
	r.written--;
	r.undone++;
}

/* The device runs a step; its inputs are there by then. The same step runs
 * eagerly, and both must agree. */
static void
run_next(void)
{
	pending *p = log_of(++r.ran);
	const spmla_shape *shape = &rig_shapes[p->bucket];

	attn_fill_step(&r.in, r.ran);
	attn_forget(&r.ahead);
	attn_forget(&r.eager);
	ck_assert_uint_eq(fixture_run(&r.ahead.f, 1), 1);
	ck_assert_uint_eq(draft_write(&r.eager.f, &p->step), r.ran);
	ck_assert_int_eq(attn_enqueue(&r.eager, shape, SPMLA_FROM_RING),
			 SPMLA_OK);
	attn_expect_equal(&r.ahead, &r.eager, shape, r.ran);
	r.hash = attn_hash(&r.ahead, shape, r.hash);
}

/* Runs `steps` steps; returns a hash over all that they left behind. */
static uint64_t
run_steps(uint32_t slots, uint32_t steps, uint64_t seed)
{
	spmla_config config;
	uint64_t hash;

	memset(&r, 0, sizeof r);
	r.rng = seed;
	attn_config(&config, slots);
	attn_inputs_open(&r.in);
	attn_open(&r.ahead, &config, &r.in, SPMLA_NATIVE_DEFERRED);
	attn_open(&r.eager, &config, &r.in, 0);
	attn_capture(&r.ahead);
	sim_open(&r.sim, &r.ahead.f.plan, seed);
	while (r.ran < steps) {
		const uint32_t dice = rng_below(&r.rng, 16);

		if (dice < 6) {
			write_next(slots);
		} else if (dice < 7) {
			if (r.written > r.launched)
				undo_last();
		} else if (dice < 12) {
			if (r.launched < r.written) {
				replay(&r.ahead.f,
				       r.ahead.graph[log_of(r.launched + 1)
							     ->bucket],
				       r.launched + 1);
				r.launched++;
			}
		} else if (r.ran < r.launched) {
			run_next();
		}
	}
	while (r.ran < r.launched)
		run_next();
	ck_assert_uint_eq(fixture_status(&r.ahead.f).count, 0);
	ck_assert_uint_eq(fixture_status(&r.eager.f).count, 0);
	if (steps >= ENOUGH) {
		ck_assert_uint_gt(r.full, 0);
		ck_assert_uint_gt(r.undone, 0);
	}
	hash = r.hash;
	attn_close(&r.ahead);
	attn_close(&r.eager);
	attn_inputs_close(&r.in);
	return hash;
}

START_TEST(a_thousand_random_steps_equal_an_eager_run_bit_for_bit)
{
	(void)run_steps(4, fixture_rounds(STEPS, 40), test_seed());
}
END_TEST

START_TEST(random_steps_equal_an_eager_run_at_every_depth)
{
	uint32_t slots;

	for (slots = 1; slots <= 5; slots++)
		(void)run_steps(slots, fixture_rounds(60, 12),
				test_seed() + slots);
}
END_TEST

START_TEST(a_second_run_gives_the_same_bits)
{
	const uint32_t steps = fixture_rounds(120, 12);
	const uint64_t first = run_steps(3, steps, test_seed() + 9);

	ck_assert_uint_eq(run_steps(3, steps, test_seed() + 9), first);
	ck_assert_uint_ne(run_steps(3, steps, test_seed() + 10), first);
}
END_TEST

SUITE
{
	const theme_test bits[] = {
		{a_thousand_random_steps_equal_an_eager_run_bit_for_bit, 1},
		{random_steps_equal_an_eager_run_at_every_depth, 1},
		{a_second_run_gives_the_same_bits, 1},
	};
	const theme themes[] = {
		THEME("replay and eager", NULL, NULL, bits),
	};

	return RUN_THEMES(themes);
}
