/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs in the type that an engine has: positions of int64, floats of bf16.
 * What an operation writes are the bits of the same values in the type that it
 * has by itself.
 */
#include "tests/every_op/op_call.h"
#include "tests/harness/themes.h"

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

SUITE
{
	const theme_test determinism[] = {
		{another_type_has_the_bits_of_the_first, EVERY_OP},
	};
	const theme themes[] = {
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
