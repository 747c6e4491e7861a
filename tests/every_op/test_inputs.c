/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs in the type that an engine has: positions of int64, floats of bf16.
 * What an operation writes are the bits of the same values in the type that it
 * has by itself.
 */
#include "tests/every_op/op_call.h"
#include "tests/harness/themes.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static fixture f;

static void
setup(void)
{
	spmla_config config;

	op_config(&config);
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

/* A draw whose values both types hold. */
static void
make_plain(op_call *c)
{
	const op_input *in = c->op->inputs;
	void *p;

	c->op->make(&c->d, &c->args);
	memcpy(&c->args, &c->op->args_bytes, sizeof c->op->args_bytes);
	for (; in < c->op->inputs + OP_INPUTS && in->dtype; in++) {
		memcpy(&p, (uint8_t *)&c->args + in->pointer, sizeof p);
		if (p && !in->is_int)
			draw_round_bf16(&c->d, p);
	}
	draw_keep(&c->d);
}

START_TEST(another_type_has_the_bits_of_the_first)
{
	const op_entry *op = op_entries[OPS_OF_PROTOCOL + _i];
	const uint32_t variants = op_variants(_i);
	const uint32_t rounds = fixture_rounds(12, 3);
	op_result want, got;
	uint32_t variant, n;
	op_call c;

	for (variant = 0; variant < variants && op->inputs[0].dtype; variant++)
		for (n = 0; n < rounds; n++) {
			op_begin(&c, _i, DRAW_SOUND, variant, n);
			make_plain(&c);
			want = op_run(&c, &f, 0x5A);
			op_retype(op, &c.d, &c.args);
			got = op_run(&c, &f, 0x5A);
			op_same(&c, &got, &want);
			free(want.bytes);
			free(got.bytes);
			op_free(&c);
		}
}
END_TEST

/* The call's scores as f32, and then as bf16, in exact arrays. */
static void
check_scores(op_call *c, uint32_t logits_at, uint32_t dtype_at)
{
	const uint32_t bf16 = SPMLA_REAL_BF16;
	uint8_t *args = (uint8_t *)&c->args;
	const draw_array *wide;
	uint16_t *narrow;
	op_result r;
	uint64_t i, n;
	float *scores;

	memset(args + dtype_at, 0, sizeof bf16);
	memcpy(&scores, args + logits_at, sizeof scores);
	wide = draw_array_at(&c->d, scores);
	n = wide->count / sizeof *scores;
	r = op_run(c, &f, 0);
	free(r.bytes);
	narrow = draw_out(&c->d, n, sizeof *narrow);
	memset(narrow, 0, n * sizeof *narrow);
	wide = draw_array_at(&c->d, scores);
	memcpy(args + logits_at, &narrow, sizeof narrow);
	memcpy(args + dtype_at, &bf16, sizeof bf16);
	ck_assert_int_eq(c->op->call(f.ctx, &c->args), SPMLA_OK);
	fixture_drain(&f);
	for (i = 0; i < n; i++) {
		const float got = test_bf16_value(narrow[i]);
		const float want = scores[i];

		if (!getenv("SPMLA_TEST_EMULATOR") &&
		    !getenv("SPMLA_TEST_CUDA"))
			ck_assert_uint_eq(narrow[i], test_bf16(want));
		ck_assert_msg(
			got == want ||
				fabs((double)got - (double)want) <=
					wide->absolute +
						0x1.01p-8 * fabs((double)want),
			"%s: %g, want %g", c->op->name, (double)got,
			(double)want);
	}
}

static const struct {
	spmla_op op;
	uint32_t logits;
	uint32_t dtype;
} scores_of[2] = {
	{SPMLA_OP_mqa_logits, offsetof(spmla_mqa_logits_args, logits),
	 offsetof(spmla_mqa_logits_args, logits_dtype)},
	{SPMLA_OP_mqa_logits_gathered,
	 offsetof(spmla_mqa_logits_gathered_args, logits),
	 offsetof(spmla_mqa_logits_gathered_args, logits_dtype)},
};

START_TEST(scores_of_bf16_are_rounded_once)
{
	const int number = (int)scores_of[_i].op - OPS_OF_PROTOCOL;
	const uint32_t variants = op_variants(number);
	uint32_t variant, n, f32;
	op_call c;

	for (variant = 0; variant < variants; variant++)
		for (n = 0; n < 12; n++) {
			op_begin(&c, number, DRAW_SOUND, variant, n);
			op_make(&c);
			memcpy(&f32, (uint8_t *)&c.args + scores_of[_i].dtype,
			       sizeof f32);
			if (f32 == SPMLA_REAL_F32)
				check_scores(&c, scores_of[_i].logits,
					     scores_of[_i].dtype);
			op_free(&c);
		}
}
END_TEST

SUITE
{
	const theme_test determinism[] = {
		{another_type_has_the_bits_of_the_first, EVERY_OP},
		{scores_of_bf16_are_rounded_once, 2},
	};
	const theme themes[] = {
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
