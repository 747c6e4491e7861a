/* SPDX-License-Identifier: Apache-2.0
 *
 * See v4_parts_rig.h.
 */
#include "tests/protocol/v4_parts_rig.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/splits.h"
#include "tests/harness/v32_rig.h"
#include "tests/protocol/parts_check.h"

static void
open_side(parts_side *s, uint32_t flags, uint32_t heads, uint32_t topk,
	  uint32_t longest, uint64_t seed)
{
	spmla_config c;

	v4_layer_config(&c);
	c.heads = heads;
	c.topk = topk;
	c.window_tokens = 128;
	c.max_context_tokens = longest;
	c.groups[SPMLA_GROUP_SWA].page_tokens = 64;
	c.groups[SPMLA_GROUP_C4A].page_tokens = 256;
	c.groups[SPMLA_GROUP_SWA].pool_pages = 40;
	c.max_update_pages = 4096;
	c.max_prefill_tokens = 6;
	c.prefill_workspace_tokens = PARTS_LONGEST;
	c.flags |= flags;
	fixture_open(&s->f, &c, 0);
	v4_layer_open(&s->rig, s->f.ctx, seed);
	v4_layer_fill(s->f.ctx, seed + 1);
	s->topk[0] = test_alloc((uint64_t)s->rig.tokens * topk * 4, 0);
	s->topk[1] = test_alloc((uint64_t)s->rig.tokens * 4, 0);
}

void
parts_rig_open(parts_rig *r, uint32_t heads, uint32_t topk,
	       uint32_t multiprocessors, uint32_t longest)
{
	uint64_t seed;

	fixture_multiprocessors(multiprocessors);
	r->rng = test_seed();
	seed = rng_next(&r->rng);
	open_side(&r->sides[PARTS], 0, heads, topk, longest, seed);
	open_side(&r->sides[FIXED], SPMLA_CONFIG_BATCH_INVARIANT, heads, topk,
		  longest, seed);
}

void
parts_rig_close(parts_rig *r)
{
	uint32_t i;

	for (i = 0; i < BOTH; i++) {
		free(r->sides[i].topk[0]);
		free(r->sides[i].topk[1]);
		v4_layer_close(&r->sides[i].rig);
		fixture_close(&r->sides[i].f);
	}
	fixture_multiprocessors(0);
}

/* A step to both. */
static void
write_step(parts_rig *rig, const spmla_shape *shape, const uint32_t *lens,
	   uint32_t gone)
{
	static const uint32_t owners[5] = {0, 1, 2, 4, 5};
	static int32_t pages[PARTS_ROWS][5][128];
	spmla_request requests[PARTS_ROWS];
	spmla_table_store stores[PARTS_ROWS * 5];
	spmla_step step = SPMLA_STEP_INIT;
	uint64_t ticket;
	uint32_t r, i, k;

	step.requests = requests;
	step.stores = stores;
	for (r = 0; r < shape->requests; r++) {
		requests[r] = (spmla_request){r, shape->next_n, lens[r],
					      SPMLA_REQUEST_JOIN};
		for (i = 0; i < 5; i++) {
			const spmla_plan *plan = &rig->sides[0].f.plan;
			const uint32_t g = owners[i];
			const uint32_t columns = plan->group_columns[g];
			const uint32_t n = columns < 128 ? columns : 128;
			const uint32_t pool = plan->config.groups[g].pool_pages;

			/* Those that are written are a row's own. */
			for (k = 0; k < n; k++)
				pages[r][i][k] = (int32_t)((r + k * 8) % pool);
			stores[step.store_count++] = (spmla_table_store){
				g, r, 0, gone && r == 0 && i == 1 ? 0 : n,
				pages[r][i]};
		}
	}
	step.request_count = shape->requests;
	for (i = 0; i < BOTH; i++)
		v32_must(rig->sides[i].f.ctx,
			 spmla_step_write(rig->sides[i].f.ctx, &step, &ticket,
					  NULL));
}

static const int32_t *
view(const parts_rig *r, uint32_t side, spmla_buf buf)
{
	return spmla_view(r->sides[side].f.ctx, buf, NULL);
}

/* With the batch-invariant flag V4's tokens are whole. */
static void
check_fixed(const parts_rig *r)
{
	ck_assert(!view(r, FIXED, SPMLA_BUF_TILE_SCHEDULER_METADATA));
	ck_assert(!view(r, FIXED, SPMLA_BUF_TILE_SCHEDULER_METADATA_C128A));
}

/* The tokens that parts share: up to half a round, behind whole rounds only on
 * Hopper. */
static uint32_t
in_parts(const spmla_plan *plan, uint32_t tokens)
{
	const uint32_t many = plan->config.heads > 64;
	const uint32_t at_a_time = plan->device.sm_count / (1 + many);
	const uint32_t last = tokens % at_a_time;

	return last <= at_a_time / 2 &&
			       (last == tokens || plan->device.arch == 90)
		       ? last
		       : 0;
}

static void
check_metadata(const parts_rig *r, const spmla_shape *shape)
{
	const spmla_plan *plan = &r->sides[PARTS].f.plan;
	const spmla_i_cut cut = spmla_i_step_cut(plan, shape->tokens);
	const int32_t *lens = view(r, PARTS, SPMLA_BUF_CONTEXT_LENS);
	parts_step s = {view(r, PARTS, SPMLA_BUF_TILE_SCHEDULER_METADATA),
			view(r, PARTS, SPMLA_BUF_NUM_SPLITS),
			lens + cut.whole,
			(int32_t)(shape->tokens - cut.whole),
			(int32_t)cut.parts,
			128,
			(int32_t)plan->config.topk,
			4};

	if (plan->device.kind == SPMLA_BACKEND_CPU)
		ck_assert(cut.parts == 0 && !s.rows);
	else
		ck_assert_uint_eq(cut.parts ? shape->tokens - cut.whole : 0,
				  in_parts(plan, shape->tokens));
	if (cut.parts == 0)
		return;
	parts_check(&s);
	s.rows = view(r, PARTS, SPMLA_BUF_TILE_SCHEDULER_METADATA_C128A);
	s.splits = view(r, PARTS, SPMLA_BUF_NUM_SPLITS_C128A);
	s.far = PARTS_LONGEST;
	s.ratio = 128;
	parts_check(&s);
}

/* Sums in another order, rounded to bf16 or left. */
static void
check_equal(const parts_rig *r, uint32_t tokens)
{
	const v4_layer_rig *a = &r->sides[PARTS].rig, *b = &r->sides[FIXED].rig;
	const uint32_t cpu =
		r->sides[0].f.plan.device.kind == SPMLA_BACKEND_CPU;
	uint64_t i;

	for (i = 0; i < (uint64_t)tokens * a->heads * 512; i++) {
		const float x = test_bf16_value(a->layer.out[i]);
		const float y = test_bf16_value(b->layer.out[i]);

		if (cpu ? a->layer.out[i] != b->layer.out[i]
			: !(fabsf(x - y) <= 4e-3f + fabsf(y) / 64))
			ck_abort_msg("out[%u]: got %g, want %g", (uint32_t)i,
				     (double)x, (double)y);
	}
	for (i = 0; i < (uint64_t)tokens * a->heads; i++) {
		const float x = a->layer.lse[i], y = b->layer.lse[i];

		if (x != y && !(fabsf(x - y) <= 1e-4f + fabsf(y) / 4096))
			ck_abort_msg("lse[%u]: got %g, want %g", (uint32_t)i,
				     (double)x, (double)y);
	}
}

/* A layer of one side, of ratio 4 with the side's own selection, which topk
 * makes. `again`: attends to that once more; without index queries it may be of
 * any length, so that this is done whole. */
static void
run_layer(parts_side *s, const spmla_shape *shape, uint32_t ratio,
	  uint32_t again)
{
	spmla_v4_layer l = v4_layer_of(&s->rig, s->f.ctx, ratio);

	if (ratio == 4) {
		l.topk_indices = s->topk[0];
		l.topk_lens = s->topk[1];
	}
	memset(l.out, 0xff, s->rig.out_bytes);
	if (again) {
		l.index_q = NULL;
		v32_must(s->f.ctx, spmla_v4_attend(s->f.ctx, &l, shape, NULL));
		return;
	}
	memcpy(l.q, s->rig.q_before, s->rig.q_bytes);
	v32_must(s->f.ctx, spmla_v4_attn(s->f.ctx, &l, shape, NULL, NULL));
}

void
parts_rig_step(parts_rig *r, const spmla_shape *shape, const uint32_t *lens,
	       uint32_t gone, const uint32_t *ratios, uint32_t count)
{
	uint32_t i, k;

	write_step(r, shape, lens, gone);
	for (i = 0; i < BOTH; i++)
		v32_must(r->sides[i].f.ctx,
			 spmla_step_prologue(r->sides[i].f.ctx, shape,
					     SPMLA_FROM_RING, NULL));
	if (shape->next_n <= 4) { /* else it fits no bucket */
		check_metadata(r, shape);
		check_fixed(r);
	}
	for (k = 0; k < count; k++) {
		for (i = 0; i < BOTH; i++)
			run_layer(&r->sides[i], shape, ratios[k], 0);
		check_equal(r, shape->tokens);
		if (ratios[k] != 4)
			continue;
		/* Both may have had parts: now one has none. */
		run_layer(&r->sides[FIXED], shape, 4, 1);
		check_equal(r, shape->tokens);
	}
}
