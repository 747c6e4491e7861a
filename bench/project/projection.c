/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of the projections around attention: 128 heads of V3.2, and the 64
 * heads of V4-Flash in 8 groups. The calls take the matrices of several layers
 * in turn, as in a model, so that they come from memory.
 */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "spmla/ops/o_group_proj.h"
#include "spmla/ops/q_absorb.h"
#include "spmla/ops/v_up.h"

enum {
	HEADS = BENCH_MAX_HEADS,
	NOPE = 128,
	LATENT = 512,
	ROPE = 64,
	POSITIONS = 64,
	MATRIX = NOPE * LATENT, /* elements, of either projection */
	LAYERS = 8,             /* 134 MB */
	MAX_TOKENS = 16,
	GROUPS = 8, /* of o_group_proj */
	INNER = 4096,
	COLUMNS = 1024,
	GROUP_LAYERS = 2 /* in the same memory */
};

static spmla_o_group_proj_args group;
static spmla_q_absorb_args absorb;
static spmla_v_up_args up;
static const uint16_t *weights; /* [LAYERS][HEADS][MATRIX] */
static uint32_t turn;

/* bf16, so that w and o may be the other operations'. */
static void
make_group(const uint16_t *o)
{
	group = (spmla_o_group_proj_args){
		.struct_bytes = sizeof group,
		.groups = GROUPS,
		.inner = INNER,
		.columns = COLUMNS,
		.quant = SPMLA_O_BF16,
		.o = o,
		.o_token_stride_elems = GROUPS * INNER,
		.o_group_stride_elems = INNER,
		.w_group_stride_elems = COLUMNS * INNER,
		.w_row_stride_elems = INNER,
		.z = bench_room(MAX_TOKENS * GROUPS * COLUMNS * 2),
		.z_token_stride_elems = GROUPS * COLUMNS,
		.z_group_stride_elems = COLUMNS,
	};
}

void
bench_make_projection(bench *b)
{
	const uint64_t elems = (uint64_t)LAYERS * HEADS * MATRIX;
	uint16_t *w = bench_room(elems * 2);
	uint16_t *q = bench_room(MAX_TOKENS * HEADS * (LATENT + ROPE) * 2);
	uint16_t *nope = bench_room(MAX_TOKENS * HEADS * (NOPE + ROPE) * 2);
	int32_t *positions = bench_room(MAX_TOKENS * 4);
	uint32_t t;

	bench_fill_bf16(&b->rng, w, elems);
	bench_fill_bf16(&b->rng, nope, MAX_TOKENS * HEADS * (NOPE + ROPE));
	for (t = 0; t < MAX_TOKENS; t++)
		positions[t] = (int32_t)t;
	weights = w;
	absorb = (spmla_q_absorb_args){.struct_bytes = sizeof absorb,
				       .heads = HEADS,
				       .rope_style = SPMLA_ROPE_INTERLEAVED,
				       .cos_sin_rows = POSITIONS,
				       .q_nope = nope,
				       .q_pe = nope + NOPE,
				       .positions = positions,
				       .cos_sin = bench_room(POSITIONS * 256),
				       .q = q};
	absorb.q_nope_token_stride_elems = HEADS * (NOPE + ROPE);
	absorb.q_pe_token_stride_elems = HEADS * (NOPE + ROPE);
	absorb.q_nope_head_stride_elems = NOPE + ROPE;
	absorb.q_pe_head_stride_elems = NOPE + ROPE;
	absorb.w_head_stride_elems = MATRIX;
	absorb.w_row_stride_elems = LATENT;
	absorb.q_token_stride_elems = HEADS * (LATENT + ROPE);
	absorb.q_head_stride_elems = LATENT + ROPE;
	up = (spmla_v_up_args){.struct_bytes = sizeof up, .heads = HEADS};
	up.latent = bench_room(MAX_TOKENS * HEADS * LATENT * 2);
	bench_fill_bf16(&b->rng, (uint16_t *)(uintptr_t)up.latent,
			MAX_TOKENS * HEADS * LATENT);
	up.latent_token_stride_elems = HEADS * LATENT;
	up.latent_head_stride_elems = LATENT;
	up.w_head_stride_elems = MATRIX;
	up.w_row_stride_elems = NOPE;
	up.out = bench_room(MAX_TOKENS * HEADS * NOPE * 2);
	up.out_token_stride_elems = HEADS * NOPE;
	make_group(up.latent);
}

static const uint16_t *
layer(void)
{
	return weights + (uint64_t)(turn++ % LAYERS) * HEADS * MATRIX;
}

static void
run_absorb(void *arg)
{
	const bench *b = arg;

	absorb.w_uk_t = layer();
	if (spmla_q_absorb(b->ctx, &absorb, NULL) != SPMLA_OK)
		abort();
}

static void
run_up(void *arg)
{
	const bench *b = arg;

	up.w_uv = layer();
	if (spmla_v_up(b->ctx, &up, NULL) != SPMLA_OK)
		abort();
}

static void
run_group(void *arg)
{
	const bench *b = arg;

	group.w = weights +
		  (uint64_t)(turn++ % GROUP_LAYERS) * GROUPS * COLUMNS * INNER;
	if (spmla_o_group_proj(b->ctx, &group, NULL) != SPMLA_OK)
		abort();
}

static void
measure_group(bench *b, uint32_t tokens)
{
	const double values = (double)GROUPS * COLUMNS * INNER;
	char shape[64];

	group.tokens = tokens;
	snprintf(shape, sizeof shape, "%d groups, bf16, %u token%s", GROUPS,
		 tokens, tokens > 1 ? "s" : "");
	bench_measure(b, "o_group_proj", shape, run_group, BENCH_READS_IN_ORDER,
		      2 * values + 2.0 * tokens * GROUPS * (INNER + COLUMNS),
		      2 * values * tokens);
}

void
bench_measure_projection(bench *b)
{
	static const uint32_t tokens[2] = {1, MAX_TOKENS};
	char shape[64];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		const double rows = (double)tokens[i] * HEADS;
		const double w = 2.0 * HEADS * MATRIX;
		const double flop = 2.0 * tokens[i] * HEADS * MATRIX;

		absorb.tokens = up.tokens = tokens[i];
		snprintf(shape, sizeof shape, "%d heads, %u token%s", HEADS,
			 tokens[i], i ? "s" : "");
		bench_measure(b, "q_absorb", shape, run_absorb,
			      BENCH_READS_IN_ORDER,
			      w + rows * 2 * (NOPE + LATENT + 2 * ROPE), flop);
		bench_measure(b, "v_up", shape, run_up, BENCH_READS_IN_ORDER,
			      w + rows * 2 * (NOPE + LATENT), flop);
		measure_group(b, tokens[i]);
	}
}
