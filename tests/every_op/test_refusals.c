/* SPDX-License-Identifier: Apache-2.0
 *
 * What every operation refuses, and what it says: the field, what it got and
 * what it wants, as the registry has them. Nothing is written then, and nothing
 * is done where there is no work.
 */
#include "tests/every_op/op_call.h"
#include "tests/harness/themes.h"

#include <stdio.h>
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

/* The call, which fails, and writes nothing. */
static void
refuse(op_call *c, const void *args, uint32_t status, const char *text)
{
	op_result before, after;

	draw_reset(&c->d, 0x5A);
	before = op_take(c, &f);
	ck_assert_uint_eq((uint32_t)c->op->call(f.ctx, args), status);
	ck_assert_str_eq(fixture_diag(&f), text);
	after = op_take(c, &f);
	op_same(c, &after, &before);
	free(before.bytes);
	free(after.bytes);
}

static void
set(spmla_i_args *args, const arg_value *v)
{
	memcpy((uint8_t *)args + v->offset, &v->value, v->bytes);
}

START_TEST(args_and_the_context_have_to_be_there)
{
	char text[96];
	op_call c;

	op_begin(&c, _i, DRAW_EXAMPLE, 0, 0);
	op_make(&c);
	ck_assert_int_eq(c.op->call(NULL, &c.args), SPMLA_E_NULL);
	(void)snprintf(text, sizeof text,
		       "SPMLA_E_NULL: %s: got NULL, want a pointer",
		       c.op->name);
	refuse(&c, NULL, SPMLA_E_NULL, text);
	op_free(&c);
}
END_TEST

START_TEST(a_struct_of_another_size_is_refused)
{
	static const int32_t off[4] = {-8, -1, 1, 8};
	spmla_i_args args;
	uint32_t i, size;
	char text[96];
	op_call c;

	op_begin(&c, _i, DRAW_EXAMPLE, 0, 0);
	op_make(&c);
	for (i = 0; i < 4; i++) {
		args = c.args;
		size = c.op->args_bytes + (uint32_t)off[i];
		memcpy(&args, &size, sizeof size);
		(void)snprintf(text, sizeof text,
			       "SPMLA_E_STRUCT_SIZE: %s: got %u, want %u",
			       c.op->name, size, c.op->args_bytes);
		refuse(&c, &args, SPMLA_E_STRUCT_SIZE, text);
	}
	op_free(&c);
}
END_TEST

START_TEST(every_field_that_is_wrong_is_named_and_nothing_is_written)
{
	const uint32_t variants = op_variants(_i);
	uint32_t variant, i;
	op_result r;
	op_call c;

	for (variant = 0; variant < variants; variant++) {
		op_begin(&c, _i, DRAW_EXAMPLE, variant, 0);
		op_make(&c);
		for (i = 0; i < c.op->errors[variant].count; i++) {
			const arg_error *e = &c.op->errors[variant].list[i];
			spmla_i_args args = c.args;

			arg_set_all(&args, e);
			refuse(&c, &args, e->status, e->text);
		}
		r = op_run(&c, &f, 0x5A); /* the others are right */
		ck_assert_uint_eq(r.status.count, 0);
		free(r.bytes);
		op_free(&c);
	}
	ck_assert_uint_gt(op_entries[OPS_OF_PROTOCOL + _i]->errors[0].count, 0);
}
END_TEST

START_TEST(a_refused_call_fails_its_capture_and_nothing_else)
{
	spmla_i_args bad;
	spmla_graph graph;
	const arg_error *e;
	op_result want, got;
	op_call c;

	op_begin(&c, _i, DRAW_EXAMPLE, 0, 0);
	op_make(&c);
	e = &c.op->errors[0].list[0];
	want = op_run(&c, &f, 0x5A);
	bad = c.args;
	arg_set_all(&bad, e);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_uint_eq((uint32_t)c.op->call(f.ctx, &bad), e->status);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_E_CAPTURE);
	ck_assert_int_eq(spmla_graph_abort(f.ctx), SPMLA_OK);
	got = op_run(&c, &f, 0x5A);
	op_same(&c, &got, &want);
	free(got.bytes);
	free(want.bytes);
	op_free(&c);
}
END_TEST

/* With all fields and with none. */
START_TEST(counts_of_none_are_no_work)
{
	spmla_i_args none;
	op_result before, after;
	uint32_t i;
	op_call c;

	op_begin(&c, _i, DRAW_EXAMPLE, 0, 0);
	op_make(&c);
	draw_reset(&c.d, 0x5A);
	before = op_take(&c, &f);
	if (c.op->none[0].bytes > 0) {
		memset(&none, 0, sizeof none);
		memcpy(&none, &c.op->args_bytes, sizeof c.op->args_bytes);
		ck_assert_int_eq(c.op->call(f.ctx, &none), SPMLA_OK);
		none = c.args;
		for (i = 0; i < 2; i++)
			set(&none, &c.op->none[i]);
		ck_assert_int_eq(c.op->call(f.ctx, &none), SPMLA_OK);
	}
	after = op_take(&c, &f);
	op_same(&c, &after, &before);
	free(after.bytes);
	free(before.bytes);
	op_free(&c);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{args_and_the_context_have_to_be_there, EVERY_OP},
		{a_struct_of_another_size_is_refused, EVERY_OP},
		{every_field_that_is_wrong_is_named_and_nothing_is_written,
		 EVERY_OP},
	};
	const theme_test edge[] = {{counts_of_none_are_no_work, EVERY_OP}};
	const theme_test graph[] = {
		{a_refused_call_fails_its_capture_and_nothing_else, EVERY_OP},
	};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("edge", setup, teardown, edge),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
