/* SPDX-License-Identifier: Apache-2.0
 *
 * What every operation writes, of sound data and of bad: the same each time,
 * whatever lay there, whether it is called, queued or recorded, and on every
 * backend what the plain CPU gives, within the operation's bound.
 */
#include "tests/every_op/op_call.h"
#include "tests/harness/themes.h"

#include <stdlib.h>
#include <string.h>

static fixture f, plain;

static void
setup(void)
{
	spmla_config config;

	op_config(&config);
	fixture_open(&f, &config, 0);
	fixture_open_plain(&plain, &config);
}

static void
teardown(void)
{
	fixture_close(&plain);
	fixture_close(&f);
}

/* Calls `check` with every variant, sound and bad, several times. */
static void
with_every_variant(int i, void (*check)(op_call *c))
{
	const uint32_t variants = op_variants(i);
	const uint32_t rounds = fixture_rounds(24, 3);
	uint32_t variant, round;
	op_call c;

	for (variant = 0; variant < variants; variant++)
		for (round = 0; round < 2 * rounds; round++) {
			op_begin(&c, i, round % 2 ? DRAW_BAD : DRAW_SOUND,
				 variant, round);
			op_make(&c);
			check(&c);
			op_free(&c);
		}
}

/* A byte that is not written is whatever lay there. */
static void
is_the_same_over_other_poison(op_call *c)
{
	op_result a = op_run(c, &f, 0x5A), b;
	uint64_t i;

	ck_assert_msg(draw_inputs_are_whole(&c->d), "%s, variant %u: inputs",
		      c->op->name, c->d.variant);
	b = op_run(c, &f, 0xC3);
	for (i = 0; i < a.count; i++)
		if (a.bytes[i] == 0x5A && b.bytes[i] == 0xC3)
			b.bytes[i] = 0x5A;
	op_same(c, &b, &a);
	free(a.bytes);
	free(b.bytes);
}

START_TEST(results_do_not_depend_on_what_lay_there)
{
	with_every_variant(_i, is_the_same_over_other_poison);
}
END_TEST

static void
is_close_to_the_plain_cpu(op_call *c)
{
	op_result want = op_run(c, &plain, 0x5A), got = op_run(c, &f, 0x5A);

	op_close(c, &got, &want);
	free(got.bytes);
	free(want.bytes);
}

START_TEST(results_are_those_of_the_plain_cpu)
{
	with_every_variant(_i, is_close_to_the_plain_cpu);
}
END_TEST

/* The same shape with other data, laid into the arrays of the first one. */
static void
change_data(op_call *c, uint64_t data)
{
	op_call other;

	op_begin(&other, c->i, c->d.kind, c->d.variant, c->seed);
	other.d.data += 1000 * (data + 1);
	op_make(&other);
	draw_take_data(&c->d, &other.d);
	op_free(&other);
}

START_TEST(a_replay_sees_what_changed_in_place)
{
	const uint32_t variants = op_variants(_i);
	op_result want, got;
	uint32_t variant, round;
	spmla_graph graph;
	spmla_i_args args;
	op_call c;

	for (variant = 0; variant < variants; variant++) {
		op_begin(&c, _i, variant % 2 ? DRAW_BAD : DRAW_SOUND, variant,
			 0);
		op_make(&c);
		draw_reset(&c.d, 0x5A);
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
		want = op_take(&c, &f);
		args = c.args;
		ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
		ck_assert_int_eq(c.op->call(f.ctx, &args), SPMLA_OK);
		ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
		memset(&args, 0xFF, sizeof args);
		got = op_take(&c, &f);
		op_same(&c, &got, &want); /* nothing ran */
		free(got.bytes);
		free(want.bytes);
		/* Level Zero has two lists a graph: each runs twice. */
		for (round = 0; round < 4; round++) {
			change_data(&c, round);
			want = op_run(&c, &f, 0x5A);
			draw_reset(&c.d, 0x5A);
			ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
			ck_assert_int_eq(
				spmla_graph_replay(f.ctx, graph, 0, NULL),
				SPMLA_OK);
			got = op_take(&c, &f);
			op_same(&c, &got, &want);
			free(got.bytes);
			free(want.bytes);
		}
		op_free(&c);
	}
}
END_TEST

START_TEST(a_queued_call_has_its_own_copy_of_the_args)
{
	const uint32_t variants = op_variants(_i);
	op_result want, got;
	spmla_config config;
	spmla_i_args args;
	uint32_t variant;
	fixture queued;
	op_call c;

	op_config(&config);
	fixture_open(&queued, &config, SPMLA_NATIVE_DEFERRED);
	for (variant = 0; variant < variants; variant++) {
		op_begin(&c, _i, DRAW_SOUND, variant, 3);
		op_make(&c);
		want = op_run(&c, &f, 0x5A);
		draw_reset(&c.d, 0x5A);
		args = c.args;
		ck_assert_int_eq(c.op->call(queued.ctx, &args), SPMLA_OK);
		memset(&args, 0xFF, sizeof args);
		ck_assert_uint_ge(fixture_pending(&queued), 1);
		got = op_take(&c, &queued);
		op_same(&c, &got, &want);
		free(got.bytes);
		free(want.bytes);
		op_free(&c);
	}
	fixture_close(&queued);
}
END_TEST

SUITE
{
	const theme_test determinism[] = {
		{results_do_not_depend_on_what_lay_there, EVERY_OP},
		{results_are_those_of_the_plain_cpu, EVERY_OP},
	};
	const theme_test graph[] = {
		{a_replay_sees_what_changed_in_place, EVERY_OP},
		{a_queued_call_has_its_own_copy_of_the_args, EVERY_OP},
	};
	const theme themes[] = {
		THEME("determinism", setup, teardown, determinism),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
