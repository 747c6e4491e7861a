/* SPDX-License-Identifier: Apache-2.0
 *
 * Context-parallel decode: one sequence on several ranks, each with a context
 * of its own. What the prologue says of each rank's tokens is counted key by
 * key; and the ranks' results, merged by their lse, equal the results of one
 * context that has all keys.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"

enum { RANKS = 3, STEPS = 40, FEW_STEPS = 18, TOPK = 64, DIM = 512 };

typedef struct side {
	fixture f;
	v32_rig rig;
} side;

static side sides[RANKS + 1]; /* the last has all */
static const spmla_shape shape = {4, 4, 1, 0};

/* _i: runs of 1, 2, 5 positions. Few steps are more than a round of ranks, and
 * more than a page of all keys. */
static const uint32_t runs[3] = {1, 2, 5};

static void
open_sides(uint32_t run)
{
	spmla_config config;
	uint32_t i;

	for (i = 0; i <= RANKS; i++) {
		fixture_config(&config);
		config.topk = TOPK;
		if (i < RANKS) {
			config.dcp_ranks = RANKS;
			config.dcp_rank = i;
			config.dcp_interleave = run;
		}
		fixture_open(&sides[i].f, &config, 0);
		v32_rig_open(&sides[i].rig, sides[i].f.ctx, 0, 5);
		sides[i].rig.layer.empty_lse = SPMLA_EMPTY_LSE_MINUS_INF;
	}
}

static void
close_sides(void)
{
	uint32_t i;

	for (i = 0; i <= RANKS; i++) {
		v32_rig_close(&sides[i].rig);
		fixture_close(&sides[i].f);
	}
}

static void
run_step(side *s, uint32_t n)
{
	uint64_t ticket;

	v32_rig_draw(&s->rig, &s->rig.seed);
	v32_rig_write(&s->rig, s->f.ctx, n, &ticket);
	v32_must(s->f.ctx,
		 spmla_step_prologue(s->f.ctx, &shape, SPMLA_FROM_RING, NULL));
	v32_must(s->f.ctx,
		 spmla_v32_attn(s->f.ctx, &s->rig.layer, &shape, NULL));
	ck_assert_uint_eq(fixture_status(&s->f).count, 0);
}

static const void *
view(const side *s, spmla_buf buf)
{
	return spmla_view(s->f.ctx, buf, NULL);
}

/* Row 0's pages are 2, 4, .., row 1's 3, 5, .. */
static void
check_tokens(uint32_t rank, uint32_t run)
{
	const int32_t *all = view(&sides[RANKS], SPMLA_BUF_CONTEXT_LENS);
	const int32_t *own = view(&sides[rank], SPMLA_BUF_CONTEXT_LENS);
	const int32_t *row = view(&sides[rank], SPMLA_BUF_TOKEN_ROW);
	const int32_t *position = view(&sides[rank], SPMLA_BUF_POSITIONS);
	const int64_t *slot = view(&sides[rank], SPMLA_BUF_SLOT_MAPPING);
	int32_t p, n;
	uint32_t t;

	for (t = 0; t < shape.tokens; t++) {
		const int32_t last = all[t] - 1;
		int64_t want = -1;

		for (p = n = 0; p < all[t]; p++)
			n += (uint32_t)p / run % RANKS == rank;
		ck_assert_int_eq(own[t], n);
		if (all[t] == 0)
			continue;
		ck_assert_int_eq(position[t], last);
		if ((uint32_t)last / run % RANKS == rank)
			want = (2 * ((n - 1) / 16) + 2 + row[t]) * 16 +
			       (n - 1) % 16;
		ck_assert_int_eq(slot[t], want);
	}
}

static void
check_merged(void)
{
	const v32_rig *all = &sides[RANKS].rig;
	uint32_t h, d, i;

	for (h = 0; h < shape.tokens * all->heads; h++) {
		double weight[RANKS], sum = 0;

		for (i = 0; i < RANKS; i++)
			sum += weight[i] = exp((double)sides[i].rig.lse[h]);
		if (sum == 0) {
			ck_assert_float_eq(all->lse[h], -INFINITY);
			continue;
		}
		ck_assert_float_eq_tol(all->lse[h], (float)log(sum), 1e-3f);
		for (d = 0; d < DIM; d++) {
			double x = 0;

			for (i = 0; i < RANKS; i++)
				x += weight[i] / sum *
				     (double)test_bf16_value(
					     sides[i].rig.out[h * DIM + d]);
			ck_assert_float_eq_tol(
				test_bf16_value(all->out[h * DIM + d]),
				(float)x, 0.03f);
		}
	}
}

START_TEST(ranks_have_their_own_keys_and_merge_to_the_whole)
{
	const uint32_t steps = fixture_rounds(STEPS, FEW_STEPS);
	uint32_t n, i;

	open_sides(runs[_i]);
	for (n = 0; n < steps; n++) {
		for (i = 0; i <= RANKS; i++)
			run_step(&sides[i], n);
		for (i = 0; i < RANKS; i++)
			check_tokens(i, runs[_i]);
		check_merged();
	}
	close_sides();
}
END_TEST

/* Each rank would count it, and lse does not have it. */
START_TEST(a_sink_belongs_to_the_merge)
{
	static const float sink[128];
	spmla_v32_layer layer;

	open_sides(1);
	run_step(&sides[0], 0);
	layer = sides[0].rig.layer;
	layer.attn_sink = sink;
	ck_assert_int_eq(spmla_v32_attend(sides[0].f.ctx, &layer, &shape, NULL),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&sides[0].f),
			 "SPMLA_E_RANGE: v32_layer.attn_sink (with "
			 "config.dcp_ranks above 1): got 1, want 0");
	close_sides();
}
END_TEST

static void
expect(uint32_t model, uint32_t ranks, uint32_t rank, uint32_t prefill,
       const char *want)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_config config;
	spmla_plan plan;

	fixture_config(&config);
	config.model = model;
	config.dcp_ranks = ranks;
	config.dcp_rank = rank;
	config.max_prefill_tokens = prefill;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_plan_make(&plan, &config, &device, &diag),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(test_diag_text(&diag), want);
}

START_TEST(what_has_no_ranks_is_refused)
{
	expect(SPMLA_MODEL_V32, 2, 2, 0,
	       "SPMLA_E_RANGE: config.dcp_rank: got 2, want at most 1");
	expect(SPMLA_MODEL_V32, 2, 0, 64,
	       "SPMLA_E_RANGE: config.dcp_ranks: got 2, want at most 1");
	expect(SPMLA_MODEL_V32, 65537, 0, 0,
	       "SPMLA_E_RANGE: config.dcp_ranks: got 65537, want at most "
	       "65536");
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{ranks_have_their_own_keys_and_merge_to_the_whole, 3},
		{a_sink_belongs_to_the_merge, 1},
		{what_has_no_ranks_is_refused, 1},
	};
	const theme themes[] = {
		THEME("ranks", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
