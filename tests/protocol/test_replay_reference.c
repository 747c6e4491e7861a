/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays against the independent reference: its own tables, keys, full sort
 * and dense attention. The reference follows the drafts alone.
 */
#include <string.h>

#include "tests/harness/attn_rig.h"
#include "tests/harness/themes.h"

enum { STEPS = 60, AHEAD = 3 };

typedef struct world {
	attn_rig rig;
	attn_inputs in;
	ref_table table;
	ref_cache cache[ATTN_LAYERS];
	ref_work work;
	float softmax_scale;
	uint32_t checked; /* tokens */
	uint32_t chosen;  /* rows with more keys than top-k */
} world;

static world w;

static ref_index_k_rule
key_rule(uint32_t position)
{
	const ref_index_k_rule rule = {w.in.norm_weight,
				       w.in.norm_bias,
				       1e-6f,
				       w.in.cos_sin + position * 64,
				       REF_ROPE_NEOX,
				       REF_SCALE_POW2};

	return rule;
}

/* The key of token t of the inputs goes to `slot`. */
static void
put_key(uint32_t t, int64_t slot, uint32_t position)
{
	const ref_index_k_rule rule = key_rule(position);
	uint32_t l;

	for (l = 0; l < ATTN_LAYERS; l++) {
		const attn_tensors *x = &w.in.layer[l];

		ck_assert(ref_cache_put_kv(
			&w.cache[l], slot, x->kv_c + t * REF_LATENT,
			x->k_pe + t * REF_ROPE, REF_SCALE_POW2));
		ck_assert(ref_cache_put_index_k(&w.cache[l], slot,
						x->index_k + t * REF_INDEX_DIM,
						&rule));
	}
}

static void
open_world(void)
{
	spmla_config config;
	uint32_t s, l;

	memset(&w, 0, sizeof w);
	attn_config(&config, AHEAD);
	attn_inputs_open(&w.in);
	attn_open(&w.rig, &config, &w.in, SPMLA_NATIVE_DEFERRED);
	attn_capture(&w.rig);
	w.softmax_scale = w.rig.f.plan.config.softmax_scale;
	ck_assert(
		ref_table_open(&w.table, RIG_ROWS, RIG_COLUMNS, 16, RIG_POOL));
	ck_assert(ref_work_open(&w.work, RIG_CONTEXT, ATTN_INDEX_HEADS));
	w.work.sums = fixture_cuts(&w.rig.f) ? REF_SUMS_CUT : REF_SUMS_F32;
	for (l = 0; l < ATTN_LAYERS; l++)
		ck_assert(ref_cache_open(&w.cache[l], ATTN_SLOTS));
	for (s = 0; s < ATTN_SLOTS; s++) {
		attn_fill_token(&w.in, 0, attn_slot_key(s));
		put_key(0, s, s % RIG_CONTEXT);
	}
}

static void
close_world(void)
{
	uint32_t l;

	for (l = 0; l < ATTN_LAYERS; l++)
		ref_cache_close(&w.cache[l]);
	ref_work_close(&w.work);
	ref_table_close(&w.table);
	attn_close(&w.rig);
	attn_inputs_close(&w.in);
}

static void
check_selection(uint32_t l, uint32_t t, uint32_t row, uint32_t position)
{
	const attn_tensors *x = &w.in.layer[l];
	const ref_index_q_rule rule = {
		ATTN_INDEX_HEADS,  w.in.cos_sin + position * 64, REF_ROPE_NEOX,
		REF_Q_FLOOR_FUSED, 0.08838834764831845f,         0.5f};
	ref_miss miss;

	ref_index_q(x->index_q + t * ATTN_INDEX_HEADS * REF_INDEX_DIM,
		    REF_INDEX_DIM, x->weights + t * ATTN_INDEX_HEADS, &rule,
		    w.work.q_values, w.work.q_weights);
	ref_score_row(&w.work, &w.cache[l], &w.table, row, position + 1,
		      ATTN_INDEX_HEADS);
	if (!ref_check_selection(&w.work, w.rig.topk[l] + t * ATTN_TOPK,
				 ATTN_TOPK, w.work.scores, position + 1,
				 w.work.tolerance, w.work.uncertain, &miss))
		ck_abort_msg("row %u position %u: %s at %lld", row, position,
			     miss.what, (long long)miss.at);
	w.chosen += position + 1 > ATTN_TOPK;
}

static void
check_outputs(uint32_t l, uint32_t t, uint32_t row)
{
	const attn_tensors *x = &w.in.layer[l];
	ref_attend_result want;
	uint32_t h, d;

	for (h = 0; h < ATTN_HEADS; h++) {
		const uint32_t at = t * ATTN_HEADS + h;

		ck_assert(ref_attend_row(&w.work, &w.cache[l], &w.table, row,
					 w.rig.topk[l] + t * ATTN_TOPK,
					 ATTN_TOPK, x->q + at * REF_DIM,
					 w.softmax_scale,
					 l == 1 ? &w.in.sink[h] : NULL, &want));
		for (d = 0; d < REF_LATENT; d++)
			ck_assert(ref_close_out(
				ref_bf16_value(
					w.rig.out[l][at * REF_LATENT + d]),
				want.out[d], want.magnitude[d]));
		ck_assert(ref_close_lse(w.rig.lse[l][at], want.lse));
	}
}

static void
follow_table(const draft *d)
{
	const int32_t *pages = d->pages;
	uint32_t i;

	for (i = 0; i < d->request_count; i++)
		if (d->requests[i].flags & SPMLA_REQUEST_JOIN)
			ref_table_join(&w.table, d->requests[i].row);
	for (i = 0; i < d->store_count; i++) {
		const spmla_table_store *s = &d->stores[i];

		ck_assert(ref_table_store(&w.table, s->row, s->first_col,
					  s->count, pages));
		pages += s->count;
	}
}

static void
check_step(const draft *d, const spmla_shape *shape)
{
	uint32_t t = 0, i, j, l;

	follow_table(d);
	for (i = 0; i < d->request_count; i++) {
		const spmla_request *q = &d->requests[i];

		for (j = 0; j < q->query_tokens; j++, t++) {
			const uint32_t p =
				q->seq_len_tokens - q->query_tokens + j;

			put_key(t, ref_table_slot(&w.table, q->row, p), p);
		}
	}
	for (t = 0, i = 0; i < d->request_count; i++) {
		const spmla_request *q = &d->requests[i];

		for (j = 0; j < q->query_tokens; j++, t++) {
			const uint32_t p =
				q->seq_len_tokens - q->query_tokens + j;

			for (l = 0; l < ATTN_LAYERS; l++) {
				check_selection(l, t, q->row, p);
				check_outputs(l, t, q->row);
			}
			w.checked++;
		}
	}
	for (; t < shape->tokens; t++)
		attn_expect_empty(&w.rig, t);
}

START_TEST(replayed_steps_equal_the_independent_reference)
{
	static draft log[AHEAD + 1];
	uint32_t bucket[AHEAD + 1];
	const uint32_t steps = fixture_rounds(STEPS, 8);
	uint64_t written = 0, ran = 0;
	sim s;

	open_world();
	sim_open(&s, &w.rig.f.plan, test_seed());
	while (ran < steps) {
		for (; written < ran + AHEAD; written++) {
			const uint32_t at = (written + 1) % (AHEAD + 1);

			bucket[at] = (uint32_t)written % 3;
			sim_draft(&s, &rig_shapes[bucket[at]], &log[at]);
			replay(&w.rig.f, w.rig.graph[bucket[at]],
			       draft_write(&w.rig.f, &log[at]));
		}
		attn_fill_step(&w.in, ++ran);
		attn_forget(&w.rig);
		ck_assert_uint_eq(fixture_run(&w.rig.f, 1), 1);
		check_step(&log[ran % (AHEAD + 1)],
			   &rig_shapes[bucket[ran % (AHEAD + 1)]]);
	}
	fixture_drain(&w.rig.f);
	ck_assert_uint_eq(fixture_status(&w.rig.f).count, 0);
	ck_assert_uint_gt(w.checked, steps);
	ck_assert_uint_gt(w.chosen, steps);
	close_world();
}
END_TEST

SUITE
{
	const theme_test reference[] = {
		{replayed_steps_equal_the_independent_reference, 1},
	};
	const theme themes[] = {
		THEME("reference", NULL, NULL, reference),
	};

	return RUN_THEMES(themes);
}
