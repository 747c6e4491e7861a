/* SPDX-License-Identifier: Apache-2.0
 *
 * spmla_wake: DEVICE memory that holds anything is as it was behind init, and
 * graphs run as they did.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

enum { STEPS = 4, SEED = 9 };

static fixture f;

/* The DEVICE region, whatever lies there. */
static void
sleep_and_wake(uint8_t byte)
{
	const uint64_t bytes = f.plan.region_bytes[SPMLA_MEMORY_DEVICE];
	uint32_t i;

	for (i = 0; i < f.plan.row_count; i++) {
		const spmla_extent *e = &f.plan.extents[i];

		ck_assert_uint_le(e->offset_bytes + e->bytes,
				  f.plan.region_bytes[e->memory]);
		if (e->memory == SPMLA_MEMORY_DEVICE)
			memset(spmla_view(f.ctx, (spmla_buf)e->buf, NULL), byte,
			       e->bytes);
	}
	ck_assert_uint_gt(bytes, 0);
	v32_must(f.ctx, spmla_wake(f.ctx));
}

START_TEST(a_graph_gives_the_same_bits_behind_it)
{
	spmla_config config;
	uint64_t hash;
	v32_rig rig;
	uint32_t n;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	v32_rig_open(&rig, f.ctx, 0, SEED);
	{
		const uint64_t seed = rig.seed, start = rig.hash;

		hash = v32_rig_decode(&rig, f.ctx, STEPS);
		sleep_and_wake(0xFF);
		rig.seed = seed;
		rig.hash = start;
	}
	for (n = 0; n < STEPS; n++)
		v32_rig_step(&rig, f.ctx, n);
	ck_assert(rig.hash == hash);
	v32_rig_close(&rig);
	fixture_close(&f);
}
END_TEST

/* A record that was not launched is dropped; its successor is the first. */
START_TEST(tickets_begin_anew_and_the_status_is_clear)
{
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	const spmla_shape shape = {4, 4, 1, 0};
	spmla_step step = SPMLA_STEP_INIT;
	spmla_config config;
	uint64_t ticket;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	/* no record: MISSING */
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, &shape, SPMLA_FROM_RING, NULL));
	v32_must(f.ctx, spmla_step_write(f.ctx, &step, &ticket, NULL));
	v32_must(f.ctx, spmla_status_read(f.ctx, &status));
	ck_assert_uint_eq(status.count, 1);
	sleep_and_wake(0x11);
	v32_must(f.ctx, spmla_status_read(f.ctx, &status));
	ck_assert_uint_eq(status.count, 0);
	v32_must(f.ctx, spmla_step_write(f.ctx, &step, &ticket, NULL));
	ck_assert_uint_eq(ticket, 1);
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, &shape, SPMLA_FROM_RING, NULL));
	v32_must(f.ctx, spmla_status_read(f.ctx, &status));
	ck_assert_uint_eq(status.count, 0);
	fixture_close(&f);
}
END_TEST

/* As behind init, no layer has a step. */
START_TEST(a_layer_needs_a_prologue_again)
{
	const spmla_shape shape = {16, 8, 4, 0};
	v4_layer_rig rig;

	v4_layer_begin(&f, &rig, &shape);
	v32_must(f.ctx, spmla_wake(f.ctx));
	v4_layer_expect(&f, spmla_v4_insert, &rig.layer, &shape, 0,
			"SPMLA_E_STATE: shape.tokens (of the last prologue): "
			"got 16, want at most 0");
	v4_layer_end(&f, &rig);
}
END_TEST

START_TEST(work_in_flight_and_captures_refuse_it)
{
	const spmla_shape shape = {4, 4, 1, 0};
	spmla_config config;

	ck_assert_int_eq(spmla_wake(NULL), SPMLA_E_NULL);
	fixture_config(&config);
	fixture_open(&f, &config, SPMLA_NATIVE_DEFERRED);
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, &shape, SPMLA_FROM_DEVICE, NULL));
	ck_assert_int_eq(spmla_wake(f.ctx), SPMLA_E_BUSY);
	fixture_drain(&f);
	v32_must(f.ctx, spmla_graph_begin(f.ctx, NULL));
	ck_assert_int_eq(spmla_wake(f.ctx), SPMLA_E_STATE);
	v32_must(f.ctx, spmla_graph_abort(f.ctx));
	v32_must(f.ctx, spmla_wake(f.ctx));
	fixture_close(&f);
}
END_TEST

SUITE
{
	const theme_test wake[] = {
		{a_graph_gives_the_same_bits_behind_it, 1},
		{tickets_begin_anew_and_the_status_is_clear, 1},
		{a_layer_needs_a_prologue_again, 1},
	};
	const theme_test error[] = {
		{work_in_flight_and_captures_refuse_it, 1},
	};
	const theme themes[] = {
		THEME("wake", NULL, NULL, wake),
		THEME("error", NULL, NULL, error),
	};

	return RUN_THEMES(themes);
}
