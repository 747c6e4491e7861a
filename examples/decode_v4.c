/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of V4: the functions that decode_loop.c calls. Prompts take the calls
 * of decode, so steps take them in beside what they decode. On a device the
 * branches of a layer are branches of the graph, while the eager calls of the
 * comparison run in order. Between two steps a request may take over the pages
 * of another one: whole pages are shared, partial ones are copied in their
 * present state.
 */
#include <stdio.h>
#include <string.h>

#include "examples/decode_v4.h"
#include "examples/device.h"

/* Gives a context its caches. If the engine owns the tables, the context gets
 * the batch's, which are written between two steps. */
static int
bind(loop *l, uint32_t side, spmla_ctx *ctx)
{
	const batch *b = &l->batch;
	uint32_t i;

	if (v4_model_bind(&l->v4->model, side, ctx) != SPMLA_OK)
		return loop_failed(ctx, "a layer of the plan");
	if (b->start)
		v4_given_fill(&l->v4->model, side);
	for (i = 0; i < b->table_count && b->own_tables; i++) {
		const page_table *t = &b->tables[i];

		if (spmla_table_bind(ctx, t->group, t->pages, t->columns) !=
		    SPMLA_OK)
			return loop_failed(ctx, "spmla_table_bind");
	}
	return EXIT_GOOD;
}

static int
open_checks(loop *l)
{
	v4_run *v = l->v4;
	spmla_ctx *eager;
	int end = loop_init(l, &eager);

	if (end == EXIT_GOOD)
		end = bind(l, 1, eager);
	if (end != EXIT_GOOD)
		return end;
	v4_compare_open(&v->compare, &v->model);
	v->reference = v4_reference_open(&v->model, &l->batch);
	if (v->reference)
		return EXIT_GOOD;
	fprintf(stderr, PROGRAM ": no memory for the reference; "
				"--check-every 0 does without\n");
	return EXIT_FAILED;
}

static int
v4_open(loop *l)
{
	v4_run *v = keep(sizeof *v);
	batch *b = &l->batch;
	int end;

	l->v4 = v;
	b->fork_every = l->fork_every;
	b->prompt_tokens = b->next_n;
	b->prompt_budget = b->rows * b->next_n;
	if (l->options.prefill) {
		b->prompt_tokens = l->options.prefill;
		b->prompt_budget = l->options.prefill;
	}
	v4_model_open(&v->model, &l->plan, l->options.layers, b->start,
		      l->seed);
	end = bind(l, 0, l->ctx);
	return end == EXIT_GOOD && l->check_every ? open_checks(l) : end;
}

static spmla_status
v4_record(loop *l, const spmla_shape *shape)
{
	const spmla_v4_branches *branches =
		l->branches ? device_branches() : NULL;
	const v4_model *m = &l->v4->model;
	spmla_status s = SPMLA_OK;
	uint32_t i;

	for (i = 0; i < m->layers && s == SPMLA_OK; i++)
		s = spmla_v4_attn(l->ctx, &m->sides[0].layer[i].args, shape,
				  branches, device_stream());
	return s;
}

static int
v4_take_prompt(loop *l, running *r, uint32_t step)
{
	(void)l;
	(void)r;
	(void)step;
	return EXIT_GOOD;
}

static int
v4_before(loop *l, int checked)
{
	const batch *b = &l->batch;
	uint32_t i, side;

	(void)checked;
	for (i = 0; i < b->copy_count; i++)
		for (side = 0; side < V4_SIDES; side++)
			v4_model_copy(&l->v4->model, side, &b->copies[i]);
	return EXIT_GOOD;
}

static void
v4_fill(loop *l)
{
	v4_model_fill(&l->v4->model, l->batch.tokens, l->batch.token_count);
}

static int
v4_after(loop *l, uint32_t step, const spmla_shape *shape, int checked)
{
	v4_run *v = l->v4;
	spmla_ctx *eager = v->model.sides[1].ctx;

	if (!eager)
		return EXIT_GOOD;
	v4_reference_tables(v->reference);
	if (v4_compare_run(&v->compare, &l->batch, l->record, shape) !=
	    SPMLA_OK)
		return loop_failed(eager, "the eager step");
	loop_read_status(l, eager, step);
	if (!checked)
		return EXIT_GOOD;
	v4_compare_step(&v->compare, step, shape->tokens);
	v4_reference_step(v->reference, step, shape->tokens);
	return EXIT_GOOD;
}

static check_count
v4_eager_count(const loop *l)
{
	return l->v4->compare.count;
}

static check_count
v4_count(const loop *l)
{
	static const check_count none;

	return l->v4->reference ? v4_reference_count(l->v4->reference) : none;
}

static void
v4_close(loop *l)
{
	spmla_ctx *eager;

	if (!l->v4)
		return;
	if (l->v4->reference)
		v4_reference_close(l->v4->reference);
	eager = l->v4->model.sides[1].ctx;
	if (eager && spmla_fini(eager) != SPMLA_OK)
		(void)loop_failed(eager, "spmla_fini");
}

const model_calls v4_calls = {v4_open,        v4_record, v4_take_prompt,
			      v4_before,      v4_fill,   v4_after,
			      v4_eager_count, v4_count,  v4_close};
