/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompts by prefill, cut up in every way, against the independent reference
 * and against the same prompts decoded token by token.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/prompt_rig.h"
#include "tests/harness/themes.h"
#include "tests/reference/reference.h"

static const uint32_t none[PROMPTS];
/* The last is longer than a step of 64. */
static const uint32_t whole[PROMPTS] = {20, 33, 5, 70};

/* How a run is set up; zeros are 64 tokens a step and the defaults. */
typedef struct way {
	uint32_t tokens;
	uint32_t workspace;
	uint64_t budget_bytes;
	uint32_t full;
	uint32_t native_flags;
	uint32_t kv_layout;
	uint32_t kv_scale_mode;
	uint32_t flags;
	uint32_t sink;
	uint32_t index_layout;
	uint32_t fnuz;
} way;

static void
setup(void)
{
	(void)prompt_source();
}

static void
open_way(prompt_rig *r, const way *w)
{
	spmla_config config;

	prompt_config(&config, w->tokens ? w->tokens : 64, w->workspace,
		      w->budget_bytes);
	config.kv_layout = w->kv_layout;
	config.kv_scale_mode = w->kv_scale_mode;
	config.flags = w->flags;
	config.index_layout = w->index_layout;
	prompt_open(r, &config, w->native_flags);
	r->full = w->full;
	r->stage.layer.kv.encoding = w->fnuz;
	r->stage.layer.index.encoding = w->fnuz;
	if (w->sink)
		r->stage.layer.attn_sink = r->stage.attn_sink;
}

static void
check_status(const prompt_rig *r)
{
	const spmla_device_status status = fixture_status(&r->f);

	ck_assert_msg(status.count == 0, "row %u: %s", status.row,
		      spmla_fault_name(status.fault));
}

static void
expect_same_caches(const prompt_rig *a, const prompt_rig *b)
{
	ck_assert_mem_eq(a->stage.layer.kv.base, b->stage.layer.kv.base,
			 a->stage.kv_bytes);
	ck_assert_mem_eq(a->stage.layer.index.base, b->stage.layer.index.base,
			 a->stage.index_bytes);
}

static void
expect_same_selection(const prompt_rig *a, const prompt_rig *b)
{
	ck_assert_mem_eq(a->topk, b->topk, PROMPT_TOKENS * PROMPT_TOPK * 4);
	ck_assert_mem_eq(a->lens, b->lens, PROMPT_TOKENS * 4);
}

static void
expect_same(const prompt_rig *a, const prompt_rig *b)
{
	check_status(a);
	check_status(b);
	expect_same_caches(a, b);
	expect_same_selection(a, b);
	ck_assert_mem_eq(a->out, b->out, PROMPT_TOKENS * PROMPT_OUT * 2);
	ck_assert_mem_eq(a->lse, b->lse, PROMPT_TOKENS * PROMPT_HEADS * 4);
}

/* ---- The reference ----------------------------------------------------- */

typedef struct oracle {
	ref_table table;
	ref_cache cache;
	ref_work work;
} oracle;

static void
open_oracle(oracle *o, ref_scale_mode mode)
{
	const v32_rig *s = prompt_source();
	uint32_t p, i, col;

	ck_assert(ref_table_open(&o->table, 8, 32, 16, 64));
	ck_assert(ref_cache_open(&o->cache, 64 * 16));
	ck_assert(ref_work_open(&o->work, 512, 4));
	for (p = 0; p < PROMPTS; p++)
		for (i = 0; i < whole[p]; i++) {
			const uint32_t t = prompt_first[p] + i;
			const ref_index_k_rule rule = {s->norm_weight,
						       s->norm_bias,
						       1e-6f,
						       s->cos_sin + i * 64,
						       REF_ROPE_INTERLEAVED,
						       REF_SCALE_POW2};
			int32_t page;
			int64_t slot;

			col = i / 16;
			page = prompt_page(prompt_row[p], col);
			ck_assert(ref_table_store(&o->table, prompt_row[p], col,
						  1, &page));
			slot = ref_table_slot(&o->table, prompt_row[p], i);
			ck_assert(ref_cache_put_kv(&o->cache, slot,
						   s->kv_c + t * 512,
						   s->k_pe + t * 64, mode));
			ck_assert(ref_cache_put_index_k(
				&o->cache, slot, s->index_k + t * 128, &rule));
		}
}

static void
close_oracle(oracle *o)
{
	ref_cache_close(&o->cache);
	ref_work_close(&o->work);
	ref_table_close(&o->table);
}

/* A token's selection, by score. */
static void
check_selected(oracle *o, const prompt_rig *r, uint32_t p, uint32_t i)
{
	const v32_rig *s = prompt_source();
	const uint32_t t = prompt_first[p] + i, row = prompt_row[p];
	const int32_t *topk = r->topk + t * PROMPT_TOPK;
	const ref_index_q_rule rule = {4,
				       s->cos_sin + i * 64,
				       REF_ROPE_INTERLEAVED,
				       REF_Q_FLOOR_FUSED,
				       0.08838834764831845f,
				       0.5f};
	ref_miss miss;

	ref_index_q(s->index_q + t * 512, 128, s->index_weights + t * 4, &rule,
		    o->work.q_values, o->work.q_weights);
	ref_score_row(&o->work, &o->cache, &o->table, row, i + 1, 4);
	if (!ref_check_selection(&o->work, topk, PROMPT_TOPK, o->work.scores,
				 i + 1, o->work.tolerance, o->work.uncertain,
				 &miss))
		ck_abort_msg("prompt %u position %u: %s at %lld", p, i,
			     miss.what, (long long)miss.at);
}

static void
check_token(oracle *o, const prompt_rig *r, uint32_t p, uint32_t i)
{
	const v32_rig *s = prompt_source();
	const uint32_t t = prompt_first[p] + i, row = prompt_row[p];
	const int32_t *topk = r->topk + t * PROMPT_TOPK;
	ref_attend_result want;
	uint32_t h, d;

	check_selected(o, r, p, i);
	for (h = 0; h < PROMPT_HEADS; h++) {
		const uint32_t at = t * PROMPT_HEADS + h;

		ck_assert(ref_attend_row(
			&o->work, &o->cache, &o->table, row, topk, PROMPT_TOPK,
			s->q + at * 576, r->f.plan.config.softmax_scale,
			r->stage.layer.attn_sink ? &r->stage.layer.attn_sink[h]
						 : NULL,
			&want));
		for (d = 0; d < 512; d++)
			ck_assert(ref_close_out(
				ref_bf16_value(r->out[at * 512 + d]),
				want.out[d], want.magnitude[d]));
		ck_assert(ref_close_lse(r->lse[at], want.lse));
	}
}

static void
check_reference(const way *w, ref_scale_mode mode)
{
	prompt_rig r;
	uint32_t p, i;
	oracle o;

	open_way(&r, w);
	open_oracle(&o, mode);
	o.work.sums = fixture_cuts(&r.f) ? REF_SUMS_CUT : REF_SUMS_F32;
	prompt_run(&r, none, whole);
	check_status(&r);
	ck_assert_uint_gt(r.prefills, 1);
	for (p = 0; p < PROMPTS; p++)
		for (i = 0; i < whole[p]; i++)
			check_token(&o, &r, p, i);
	close_oracle(&o);
	prompt_close(&r);
}

START_TEST(every_token_of_a_prompt_is_as_the_reference_has_it)
{
	static const way plain, sink = {.sink = 1, .tokens = 50};

	check_reference(&plain, REF_SCALE_POW2);
	check_reference(&sink, REF_SCALE_POW2);
}
END_TEST

START_TEST(bf16_rows_are_as_the_reference_has_them)
{
	static const way bf16 = {.kv_layout = SPMLA_LAYOUT_MLA_BF16};

	check_reference(&bf16, REF_SCALE_NONE);
}
END_TEST

/* Two ways of the same prompts select the same keys. If scores are cut
 * (fixture_cuts), which the two do apart, each selects the best keys within its
 * own bound. */
static void
expect_selection_of_decode(const prompt_rig *prefill, const prompt_rig *decode,
			   const uint32_t *tokens, uint32_t cuts)
{
	uint32_t p, i;
	oracle o;

	if (!cuts) {
		expect_same_selection(prefill, decode);
		return;
	}
	ck_assert_mem_eq(prefill->lens, decode->lens, PROMPT_TOKENS * 4);
	open_oracle(&o, REF_SCALE_POW2);
	o.work.sums = REF_SUMS_CUT;
	for (p = 0; p < PROMPTS; p++)
		for (i = 0; i < tokens[p]; i++) {
			check_selected(&o, prefill, p, i);
			check_selected(&o, decode, p, i);
		}
	close_oracle(&o);
}

/* ---- Cuts -------------------------------------------------------------- */

START_TEST(a_prompt_has_the_same_bits_however_it_is_cut_up)
{
	/* 512 floats a row of logits at most: 2048 B are one row */
	static const way ways[] = {
		{.tokens = 128},
		{.tokens = 97, .workspace = 90},
		{.tokens = 33, .workspace = 101, .budget_bytes = 2048},
		{.tokens = 64, .budget_bytes = 5000, .full = 1},
		{.tokens = 9, .native_flags = SPMLA_NATIVE_DEFERRED},
		{.tokens = 7, .full = 1},
		{.tokens = 60, .flags = SPMLA_CONFIG_APART},
	};
	prompt_rig first, r;
	uint32_t i;

	open_way(&first, &ways[0]);
	prompt_run(&first, none, whole);
	ck_assert_uint_eq(first.prefills, 1);
	for (i = 1; i < sizeof ways / sizeof ways[0]; i++) {
		open_way(&r, &ways[i]);
		prompt_run(&r, none, whole);
		ck_assert_uint_gt(r.prefills, 1);
		ck_assert_uint_eq(r.decodes, 0);
		expect_same(&r, &first);
		prompt_close(&r);
	}
	prompt_close(&first);
}
END_TEST

START_TEST(the_order_of_prompts_in_a_step_changes_no_bit)
{
	static const uint32_t order[PROMPTS] = {3, 1, 0, 2};
	static const way plain = {.tokens = 128};
	spmla_request requests[PROMPTS];
	prompt_rig a, b;
	uint32_t i;

	open_way(&a, &plain);
	open_way(&b, &plain);
	prompt_run(&a, none, whole);
	for (i = 0; i < PROMPTS; i++)
		requests[i] =
			(spmla_request){prompt_row[order[i]], whole[order[i]],
					whole[order[i]], SPMLA_REQUEST_JOIN};
	prompt_step(&b, requests, PROMPTS);
	expect_same(&a, &b);
	prompt_close(&a);
	prompt_close(&b);
}
END_TEST

/* A step of decode takes about as long as one of prefill. So prompts are short,
 * on the emulator still more so. They are more than one step of prefill all the
 * same. */
START_TEST(the_caches_are_those_of_decode_bit_for_bit)
{
	static const uint32_t lengths[2][PROMPTS] = {{20, 17, 5, 33},
						     {2, 12, 1, 18}};
	static const way ways[] = {
		{.tokens = 0},
		{.tokens = 41, .kv_scale_mode = SPMLA_SCALE_RAW},
		{.tokens = 41, .kv_layout = SPMLA_LAYOUT_MLA_BF16},
		{.budget_bytes = 5000,
		 .index_layout = SPMLA_LAYOUT_INDEX_MXFP4},
		{.tokens = 41, .fnuz = 1},
		{.tokens = 41, .index_layout = SPMLA_LAYOUT_INDEX_FP8_TILED},
	};
	const uint32_t is_short = fixture_rounds(2, 1) < 2;
	const uint32_t *few = lengths[is_short];
	prompt_rig a, b;
	uint32_t i;

	for (i = 0; i < sizeof ways / sizeof *ways; i++) {
		way w = ways[i];

		if (is_short)
			w.tokens = 19;
		open_way(&a, &w);
		open_way(&b, &w);
		prompt_run(&a, none, few);
		prompt_decode(&b, none, few, 0);
		ck_assert_uint_gt(a.prefills, 1);
		ck_assert_uint_eq(b.prefills, 0);
		ck_assert_uint_eq(b.decodes, few[0] + few[1] + few[2] + few[3]);
		check_status(&a);
		check_status(&b);
		expect_same_caches(&a, &b);
		expect_selection_of_decode(
			&a, &b, few,
			fixture_cuts(&a.f) && !ways[i].fnuz &&
				ways[i].index_layout !=
					SPMLA_LAYOUT_INDEX_MXFP4);
		prompt_close(&a);
		prompt_close(&b);
	}
}
END_TEST

/* ---- With decode ------------------------------------------------------- */

/* Prompts without their last tokens are prefilled, then all go on by graphs. A
 * token may be in a step of another shape, which else may have other bits. */
START_TEST(decode_goes_on_where_prefill_ended)
{
	static const uint32_t parts[2][PROMPTS] = {{11, 17, 2, 66},
						   {14, 17, 2, 21}};
	static const uint32_t short_ends[PROMPTS] = {17, 19, 5, 26};
	static const way plain = {.tokens = 40,
				  .flags = SPMLA_CONFIG_BATCH_INVARIANT};
	const uint32_t is_short = fixture_rounds(2, 1) < 2;
	const uint32_t *part = parts[is_short];
	const uint32_t *ends = is_short ? short_ends : whole;
	prompt_rig a, b;
	uint32_t p;

	open_way(&a, &plain);
	open_way(&b, &plain);
	a.graphs = b.graphs = 1;
	prompt_run(&a, none, part);
	ck_assert_uint_gt(a.prefills, 1);
	prompt_decode(&a, part, ends, 1);
	prompt_decode(&b, none, ends, 1);
	check_status(&a);
	check_status(&b);
	expect_same_caches(&a, &b);
	expect_selection_of_decode(&a, &b, ends, fixture_cuts(&a.f));
	for (p = 0; p < PROMPTS; p++) {
		const uint32_t t = prompt_first[p] + part[p];
		const uint32_t n = ends[p] - part[p];

		ck_assert_mem_eq(a.out + t * PROMPT_OUT, b.out + t * PROMPT_OUT,
				 n * PROMPT_OUT * 2);
		ck_assert_mem_eq(a.lse + t * PROMPT_HEADS,
				 b.lse + t * PROMPT_HEADS,
				 n * PROMPT_HEADS * 4);
	}
	prompt_close(&a);
	prompt_close(&b);
}
END_TEST

START_TEST(a_cached_prefix_is_not_computed_again)
{
	static const uint32_t cached[PROMPTS] = {16, 32, 0, 47};
	static const way plain = {.tokens = 128}, small = {.tokens = 30};
	prompt_rig a, b;

	open_way(&a, &plain);
	open_way(&b, &small);
	prompt_run(&a, none, whole);
	prompt_run(&b, none, cached);
	prompt_run(&b, cached, whole);
	expect_same(&a, &b);
	prompt_close(&a);
	prompt_close(&b);
}
END_TEST

START_TEST(one_decode_token_may_ride_along)
{
	static const way plain = {.tokens = 128};
	static const uint32_t but_one[PROMPTS] = {19, 0, 0, 0};
	const spmla_request mixed[2] = {{prompt_row[0], 1, 20, 0},
					{prompt_row[3], 70, 70, 1}};
	static const uint32_t rest_from[PROMPTS] = {20, 0, 0, 70};
	prompt_rig a, b;

	open_way(&a, &plain);
	open_way(&b, &plain);
	prompt_run(&a, none, whole);
	prompt_run(&b, none, but_one);
	prompt_step(&b, mixed, 2);
	prompt_run(&b, rest_from, whole);
	expect_same(&a, &b);
	prompt_close(&a);
	prompt_close(&b);
}
END_TEST

START_TEST(ragged_lists_change_no_bit)
{
	static const uint32_t part[PROMPTS] = {11, 17, 2, 66};
	static const way rows, ragged = {.flags = SPMLA_CONFIG_RAGGED};
	prompt_rig a, b;

	open_way(&a, &rows);
	open_way(&b, &ragged);
	a.graphs = b.graphs = 1;
	prompt_run(&a, none, part);
	prompt_run(&b, none, part);
	prompt_decode(&a, part, whole, 1);
	prompt_decode(&b, part, whole, 1);
	expect_same(&a, &b);
	prompt_close(&a);
	prompt_close(&b);
}
END_TEST

SUITE
{
	const theme_test reference[] = {
		{every_token_of_a_prompt_is_as_the_reference_has_it, 1},
		{bf16_rows_are_as_the_reference_has_them, 1},
	};
	const theme_test cuts[] = {
		{a_prompt_has_the_same_bits_however_it_is_cut_up, 1},
		{the_order_of_prompts_in_a_step_changes_no_bit, 1},
		{ragged_lists_change_no_bit, 1},
		{the_caches_are_those_of_decode_bit_for_bit, 1},
	};
	const theme_test decode[] = {
		{decode_goes_on_where_prefill_ended, 1},
		{a_cached_prefix_is_not_computed_again, 1},
		{one_decode_token_may_ride_along, 1},
	};
	const theme themes[] = {
		THEME("reference", setup, prompt_source_close, reference),
		THEME("cuts", setup, prompt_source_close, cuts),
		THEME("decode", setup, prompt_source_close, decode),
	};

	return RUN_THEMES(themes);
}
