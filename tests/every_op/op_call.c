/* SPDX-License-Identifier: Apache-2.0
 *
 * See op_call.h.
 */
#include "tests/every_op/op_call.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void *
draw_alloc(uint64_t bytes)
{
	return test_alloc(bytes, 0xAB);
}

void
op_config(spmla_config *config)
{
	fixture_config(config);
	config->heads = OP_MOST_HEADS;
	config->index_heads = OP_MOST_INDEX_HEADS;
	config->max_graphs = OP_VARIANTS;
}

enum { LARGE_HEADS = 54, LARGE_INDEX_HEADS = 20 };

void
op_large_config(spmla_config *config)
{
	fixture_config(config);
	config->heads = LARGE_HEADS;
	config->index_heads = LARGE_INDEX_HEADS;
}

void
op_large(op_call *c, uint32_t tokens)
{
	c->d.large = 1;
	c->d.tokens = tokens;
	c->d.most_heads = LARGE_HEADS;
	c->d.most_index_heads = LARGE_INDEX_HEADS;
}

void
op_begin(op_call *c, int i, draw_kind kind, uint32_t variant, uint64_t seed)
{
	memset(c, 0, sizeof *c);
	c->op = op_entries[OPS_OF_PROTOCOL + i];
	c->i = i;
	c->seed = seed;
	draw_seed(&c->d, kind, test_seed() + 1000 * (uint64_t)i + seed,
		  seed + 7);
	c->d.variant = variant;
	c->d.most_heads = OP_MOST_HEADS;
	c->d.most_index_heads = OP_MOST_INDEX_HEADS;
}

void
op_make(op_call *c)
{
	c->op->make(&c->d, &c->args);
	memcpy(&c->args, &c->op->args_bytes, sizeof c->op->args_bytes);
	op_retype_some(c->op, &c->d, &c->args);
	draw_keep(&c->d);
}

void
op_free(op_call *c)
{
	draw_free(&c->d);
}

uint32_t
op_variants(int i)
{
	op_call c;
	uint32_t n;

	op_begin(&c, i, DRAW_EXAMPLE, 0, 0);
	op_make(&c);
	n = c.d.variants;
	op_free(&c);
	return n;
}

op_result
op_take(const op_call *c, fixture *f)
{
	op_result r;

	fixture_drain(f);
	r.count = draw_result_bytes(&c->d);
	r.bytes = malloc(r.count + 1);
	ck_assert_ptr_nonnull(r.bytes);
	draw_results(&c->d, r.bytes);
	r.status = fixture_status(f);
	return r;
}

op_result
op_run(op_call *c, fixture *f, uint8_t poison)
{
	draw_reset(&c->d, poison);
	ck_assert_int_eq(spmla_status_clear(f->ctx), SPMLA_OK);
	ck_assert_msg(c->op->call(f->ctx, &c->args) == SPMLA_OK, "%s: %s",
		      c->op->name, fixture_diag(f));
	return op_take(c, f);
}

static void
same_reports(const op_call *c, const op_result *got, const op_result *want)
{
	const spmla_device_status *g = &got->status, *w = &want->status;

	ck_assert_msg(memcmp(g, w, sizeof *g) == 0,
		      "%s, variant %u: %u x %s, row %u; want %u x %s, row %u",
		      c->op->name, c->d.variant, g->count,
		      spmla_fault_name(g->fault), g->row, w->count,
		      spmla_fault_name(w->fault), w->row);
	ck_assert_msg(c->d.kind == DRAW_BAD || g->count == 0,
		      "%s, variant %u: %s of sound data", c->op->name,
		      c->d.variant, spmla_fault_name(g->fault));
}

void
op_same(const op_call *c, const op_result *got, const op_result *want)
{
	uint64_t i = got->count;

	if (memcmp(got->bytes, want->bytes, got->count) != 0)
		for (i = 0; got->bytes[i] == want->bytes[i]; i++)
			;
	ck_assert_msg(i == got->count, "%s, variant %u: byte %" PRIu64,
		      c->op->name, c->d.variant, i);
	same_reports(c, got, want);
}

void
op_close(const op_call *c, const op_result *got, const op_result *want)
{
	char text[160];

	ck_assert_msg(
		draw_close(&c->d, got->bytes, want->bytes, text, sizeof text),
		"%s, variant %u: %s", c->op->name, c->d.variant, text);
	same_reports(c, got, want);
}
