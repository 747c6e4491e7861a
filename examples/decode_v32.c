/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of V3.2: the functions that decode_loop.c calls.
 */
#include <stdio.h>
#include <string.h>

#include "examples/decode_v32.h"
#include "examples/device.h"

static int
v32_open(loop *l)
{
	v32_run *v = keep(sizeof *v);

	l->v32 = v;
	if (l->options.prefill) {
		v->chunk_capacity =
			l->options.max_context / l->options.prefill + 1;
		v->chunks = keep(v->chunk_capacity * sizeof *v->chunks);
	}
	model_open(&v->model, &l->plan, l->options.layers, l->seed);
	if (model_bind(&v->model, l->ctx) != SPMLA_OK)
		return loop_failed(l->ctx, "a layer of the plan");
	if (l->check_every == 0)
		return EXIT_GOOD;
	eager_open(&v->eager, &v->model, &l->batch);
	v->reference = reference_open(&v->model, &l->batch);
	if (v->reference)
		return EXIT_GOOD;
	fprintf(stderr, PROGRAM ": no memory for the reference's keys; "
				"--check-every 0 does without\n");
	return EXIT_FAILED;
}

static spmla_status
v32_record(loop *l, const spmla_shape *shape)
{
	const model *m = &l->v32->model;
	spmla_status s = SPMLA_OK;
	uint32_t i;

	for (i = 0; i < m->layers && s == SPMLA_OK; i++)
		s = spmla_v32_attn(l->ctx, &m->layer[i].args, shape,
				   device_stream());
	return s;
}

static int
v32_take_prompt(loop *l, running *r, uint32_t step)
{
	if (l->options.prefill)
		return loop_prefill(l, r, step, loop_check_is_due(l, step));
	if (model_insert(&l->v32->model, &l->batch, r) != SPMLA_OK)
		return loop_failed(l->ctx, "the prompt");
	return EXIT_GOOD;
}

static int
v32_before(loop *l, int checked)
{
	if (checked)
		eager_before(&l->v32->eager);
	return EXIT_GOOD;
}

static void
v32_fill(loop *l)
{
	model_fill(&l->v32->model, l->batch.tokens, l->batch.token_count);
}

static int
v32_after(loop *l, uint32_t step, const spmla_shape *shape, int checked)
{
	v32_run *v = l->v32;

	if (v->reference)
		reference_table(v->reference);
	if (!checked)
		return EXIT_GOOD;
	if (eager_after(&v->eager, step, shape) != SPMLA_OK)
		return loop_failed(l->ctx, "the eager step");
	reference_after(v->reference, step, shape->tokens);
	return EXIT_GOOD;
}

static check_count
v32_eager_count(const loop *l)
{
	const eager_check *e = &l->v32->eager;
	const check_count count = {e->steps, e->mismatches};

	return count;
}

static check_count
v32_reference_count(const loop *l)
{
	static const check_count none;

	return l->v32->reference ? reference_count(l->v32->reference) : none;
}

static void
v32_close(loop *l)
{
	if (l->v32 && l->v32->reference)
		reference_close(l->v32->reference);
}

const model_calls v32_calls = {
	v32_open,  v32_record,      v32_take_prompt,     v32_before, v32_fill,
	v32_after, v32_eager_count, v32_reference_count, v32_close};
