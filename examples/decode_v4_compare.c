/* SPDX-License-Identifier: Apache-2.0
 *
 * Replay against eager calls, bit for bit. A second context of the same plan,
 * with tables, caches and outputs of its own, gets every record and runs the
 * step call by call, without a graph. Then all STEP buffers, all caches and all
 * outputs must have the same bytes. So a replay must also have written every
 * byte of the caches that the eager calls write, and no other.
 */
#include <stdio.h>
#include <string.h>

#include "examples/decode_v4.h"
#include "examples/device.h"

/* Bytes that are copied from the device at a time. */
enum { PIECE_BYTES = 1 << 20, BYTE_TEXT = 8 };

void
v4_compare_open(v4_compare *c, const v4_model *m)
{
	uint32_t i;

	memset(c, 0, sizeof *c);
	c->model = m;
	for (i = 0; i < V4_SIDES && device_native(); i++)
		c->pulled[i] = keep(PIECE_BYTES);
}

static spmla_status
run_layer(spmla_ctx *ctx, const spmla_v4_layer *a, const spmla_shape *shape)
{
	spmla_status s = spmla_v4_insert(ctx, a, shape, device_stream());

	if (s == SPMLA_OK)
		s = spmla_v4_compress(ctx, a, shape, device_stream());
	if (s == SPMLA_OK && a->ratio == 4)
		s = spmla_v4_index(ctx, a, shape, device_stream());
	if (s == SPMLA_OK)
		s = spmla_v4_attend(ctx, a, shape, device_stream());
	if (s == SPMLA_OK)
		s = spmla_v4_output(ctx, a, shape, device_stream());
	return s;
}

spmla_status
v4_compare_run(v4_compare *c, const batch *b, const void *record,
	       const spmla_shape *shape)
{
	const v4_side *side = &c->model->sides[1];
	spmla_status s = loop_write_bulk(b, side->ctx);
	uint64_t ticket;
	uint32_t l;

	if (s == SPMLA_OK)
		s = spmla_step_push(side->ctx, record, &ticket);
	if (s == SPMLA_OK)
		s = spmla_step_prologue(side->ctx, shape, SPMLA_FROM_RING,
					device_stream());
	for (l = 0; l < c->model->layers && s == SPMLA_OK; l++)
		s = run_layer(side->ctx, &side->layer[l].args, shape);
	device_wait();
	return s;
}

static const uint8_t *
pull(const v4_compare *c, uint32_t side, const uint8_t *p, uint64_t bytes)
{
	if (!device_native())
		return p;
	device_copy(c->pulled[side], p, bytes);
	return c->pulled[side];
}

/* The first byte that differs; it counts once. */
static void
compare(v4_compare *c, const mismatch_at *where, const void *got,
	const void *want, uint64_t bytes)
{
	mismatch_at at = *where;
	char got_text[BYTE_TEXT], want_text[BYTE_TEXT];
	uint64_t done, n, i;

	for (done = 0; done < bytes; done += n) {
		const uint8_t *g, *w;

		n = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
		g = pull(c, 0, (const uint8_t *)got + done, n);
		w = pull(c, 1, (const uint8_t *)want + done, n);
		if (memcmp(g, w, n) == 0)
			continue;
		for (i = 0; g[i] == w[i]; i++)
			;
		at.element = done + i;
		snprintf(got_text, sizeof got_text, "0x%02x", g[i]);
		snprintf(want_text, sizeof want_text, "0x%02x", w[i]);
		c->count.mismatches++;
		mismatch(c->count.mismatches, &at, got_text, want_text);
		return;
	}
}

static void
compare_planned(v4_compare *c, uint32_t step)
{
	const v4_model *m = c->model;
	uint32_t i;

	for (i = 0; i < m->plan->row_count; i++) {
		mismatch_at at = {"replay != eager", step, SPMLA_NO_INDEX,
				  SPMLA_NO_INDEX,    NULL, 0};
		spmla_row row = SPMLA_ROW_INIT;

		if (spmla_plan_row(m->plan, i, &row) != SPMLA_OK ||
		    (row.life != SPMLA_LIFE_STEP &&
		     row.memory != SPMLA_MEMORY_CACHE))
			continue;
		at.what = row.name;
		compare(c, &at,
			spmla_view(m->sides[0].ctx, (spmla_buf)row.buf, NULL),
			spmla_view(m->sides[1].ctx, (spmla_buf)row.buf, NULL),
			row.bytes);
	}
}

static void
compare_outputs(v4_compare *c, uint32_t step, uint32_t layer, uint32_t tokens)
{
	const v4_model *m = c->model;
	const spmla_config *config = &m->plan->config;
	const v4_outputs *got = &m->sides[0].layer[layer];
	const v4_outputs *want = &m->sides[1].layer[layer];
	const uint64_t t = tokens, heads = config->heads;
	const struct {
		const char *what;
		const void *got, *want;
		uint64_t bytes;
	} list[] = {
		{"q", got->q, want->q, t * heads * SPMLA_V4_DIM * 2},
		{"out", got->out, want->out, t * heads * SPMLA_V4_DIM * 2},
		{"lse", got->lse, want->lse, t * heads * sizeof(float)},
		{"TOPK_INDICES", got->topk_indices, want->topk_indices,
		 t * config->topk * sizeof(int32_t)},
		{"TOPK_LENS", got->topk_lens, want->topk_lens,
		 t * sizeof(int32_t)},
		{"z", got->z, want->z,
		 t * m->output_groups * V4_OUTPUT_COLUMNS * 2},
	};
	uint32_t i;

	for (i = 0; i < sizeof list / sizeof list[0]; i++) {
		const mismatch_at at = {"replay != eager", step,         layer,
					SPMLA_NO_INDEX,    list[i].what, 0};

		compare(c, &at, list[i].got, list[i].want, list[i].bytes);
	}
}

void
v4_compare_step(v4_compare *c, uint32_t step, uint32_t tokens)
{
	uint32_t l;

	compare_planned(c, step);
	for (l = 0; l < c->model->layers; l++)
		compare_outputs(c, step, l, tokens);
	c->count.done++;
}
