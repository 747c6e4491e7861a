/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of an op that is called alone: timed, and compared with the CPU's. The
 * hard idea: before either side's call both outputs are filled with the same
 * byte, so that what the op has to leave alone is compared as well.
 */
#include "bench/cuda.h"

#include <stdio.h>
#include <string.h>

static const op_case *now;

static void
run_now(gpu *g)
{
	lib_must(g->ops.ctx, now->call(g->ops.ctx, ON_DEVICE, g->stream),
		 now->op);
}

static void
check_outputs(gpu *g, cuda_row *r, const op_case *c)
{
	uint32_t i;

	for (i = 0; i < OUTPUTS && c->outputs[i]; i++)
		memset(c->outputs[i]->at[ON_HOST], SPOILT,
		       (size_t)c->outputs[i]->bytes);
	lib_must(g->cpu.ctx, c->call(g->cpu.ctx, ON_HOST, NULL), c->op);
	for (i = 0; i < OUTPUTS && c->outputs[i]; i++) {
		const twin *t = c->outputs[i];
		const uint64_t n = c->checked[i] ? c->checked[i] : t->bytes;

		if (c->by[i] == BY_BYTES)
			check_bytes(g, r, t, 0, n);
		else if (c->by[i] == BY_BF16)
			check_bf16(g, r, t, 0, n / 2);
		else
			check_f32(g, r, t, 0, n / 4);
	}
}

void
op_row(gpu *g, const op_case *c, uint32_t batch, const char *of)
{
	shot s = {.op = c->op};
	cuda_row *r;

	now = c;
	if (c->eager)
		s.launch = run_now;
	else
		s.run = run_now;
	memcpy(s.outputs, c->outputs, sizeof s.outputs);
	r = measure(g, &s);
	snprintf(r->shape, sizeof r->shape, "%u %s", batch, of);
	r->batch = batch;
	add_floor(g, r, c->bytes, c->rate, c->flop, c->product);
	check_outputs(g, r, c);
	table_row(g, r);
	twins_free(g);
}

/* ---- Inputs ------------------------------------------------------------- */

twin *
make_bf16(gpu *g, uint64_t n, float most)
{
	twin *t = twin_make(g, n * 2);

	fill_bf16(g, t->at[ON_HOST], n, most);
	twin_push(g, t);
	return t;
}

twin *
make_f32(gpu *g, uint64_t n, float least, float most)
{
	twin *t = twin_make(g, n * 4);

	fill_f32(g, t->at[ON_HOST], n, least, most);
	twin_push(g, t);
	return t;
}

twin *
make_codes(gpu *g, uint64_t n)
{
	twin *t = twin_make(g, n);

	fill_e4m3(g, t->at[ON_HOST], n);
	twin_push(g, t);
	return t;
}

twin *
make_order(gpu *g, uint32_t n)
{
	twin *t = twin_make(g, (uint64_t)n * 4);

	fill_order(g, t->at[ON_HOST], n);
	twin_push(g, t);
	return t;
}

twin *
make_slots(gpu *g, uint32_t n)
{
	const twin *order = make_order(g, n);
	twin *t = twin_make(g, (uint64_t)n * 8);
	uint32_t i;

	for (i = 0; i < n; i++)
		((int64_t *)t->at[ON_HOST])[i] =
			((int32_t *)order->at[ON_HOST])[i];
	twin_push(g, t);
	return t;
}

twin *
make_draw(gpu *g, uint32_t n, uint32_t below)
{
	twin *t = twin_make(g, (uint64_t)n * 4);
	uint32_t i;

	for (i = 0; i < n; i++)
		((int32_t *)t->at[ON_HOST])[i] =
			(int32_t)(next_random(g) % below);
	twin_push(g, t);
	return t;
}

twin *
make_steps(gpu *g, uint32_t n, int32_t first, int32_t step)
{
	twin *t = twin_make(g, (uint64_t)n * 4);
	uint32_t i;

	for (i = 0; i < n; i++)
		((int32_t *)t->at[ON_HOST])[i] = first + (int32_t)i * step;
	twin_push(g, t);
	return t;
}
