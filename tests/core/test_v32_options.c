/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs of a V3.2 layer that can be known without a reference: rows that do
 * not exist, a context of one key, the sink, the lse, strides.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/bytes.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"

static fixture f;
static v32_rig rig;
static const spmla_shape shape = {4, 4, 1, 0};

static void
open_with(uint32_t layout)
{
	spmla_config config;

	fixture_config(&config);
	config.kv_layout = layout;
	fixture_open(&f, &config, 0);
	v32_rig_open(&rig, f.ctx, 0, 21);
}

static void
close_all(void)
{
	v32_rig_close(&rig);
	fixture_close(&f);
}

static void
run_step(uint32_t n)
{
	uint64_t ticket;

	v32_rig_draw(&rig, &rig.seed);
	v32_rig_write(&rig, f.ctx, n, &ticket);
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, &shape, SPMLA_FROM_RING, NULL));
	v32_must(f.ctx, spmla_v32_attn(f.ctx, &rig.layer, &shape, NULL));
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}

static void
attend_again(const spmla_v32_layer *layer)
{
	memset(rig.out, 0xAB, rig.out_bytes);
	memset(rig.lse, 0xAB, rig.lse_bytes);
	v32_must(f.ctx, spmla_v32_attend(f.ctx, layer, &shape, NULL));
}

/* rig.out of one token and head. */
static const uint16_t *
out(uint32_t token, uint32_t head)
{
	return rig.out + (token * rig.heads + head) * 512;
}

START_TEST(a_row_that_does_not_exist_is_empty)
{
	uint32_t minus, t, h;

	open_with(SPMLA_LAYOUT_FP8_DS_MLA);
	for (minus = 0; minus < 2; minus++) {
		rig.layer.empty_lse = minus ? SPMLA_EMPTY_LSE_MINUS_INF
					    : SPMLA_EMPTY_LSE_PLUS_INF;
		memset(rig.out, 0xAB, rig.out_bytes);
		memset(rig.lse, 0xAB, rig.lse_bytes);
		run_step(minus); /* one request, one token */
		for (t = 0; t < 4; t++)
			for (h = 0; h < rig.heads; h++) {
				const float lse = rig.lse[t * rig.heads + h];

				if (t == 0) {
					ck_assert(isfinite(lse));
					continue;
				}
				ck_assert(isinf(lse) &&
					  (lse < 0) == (minus == 1));
				ck_assert_uint_eq(
					bytes_other(out(t, h), 1024, 0), 1024);
			}
		/* Behind the shape nothing is written. */
		ck_assert_uint_eq(out(4, 0)[0], 0xABAB);
		ck_assert_uint_eq(((uint8_t *)rig.lse)[4 * 4 * rig.heads],
				  0xAB);
	}
	close_all();
}
END_TEST

/* A selection that the engine hands in. Row 0 has 5 tokens, and more room in
 * its page, where 5 is what an earlier owner of it left. */
START_TEST(a_selection_past_the_context_is_none_and_reported)
{
	spmla_v32_layer layer;
	uint16_t *alone;
	int32_t *indices, lens[4] = {4, 0, 0, 0};
	uint32_t topk, n;

	open_with(SPMLA_LAYOUT_FP8_DS_MLA);
	for (n = 0; n < 5; n++)
		run_step(n);
	topk = f.plan.config.topk;
	ck_assert_uint_ge(topk, 4);
	indices = test_alloc(4 * topk * sizeof *indices, 0xFF);
	alone = test_alloc(rig.out_bytes, 0);
	layer = rig.layer;
	layer.topk_indices = indices;
	layer.topk_lens = lens;
	indices[1] = 4;
	attend_again(&layer);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	memcpy(alone, rig.out, rig.out_bytes);
	indices[0] = 5;
	indices[2] = INT32_MAX;
	indices[3] = 6;
	attend_again(&layer);
	ck_assert_mem_eq(rig.out, alone, rig.out_bytes);
	ck_assert_uint_eq(fixture_status(&f).count, 3);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_INDEX);
	ck_assert_uint_eq(fixture_status(&f).row, 0);
	free(indices);
	free(alone);
	close_all();
}
END_TEST

START_TEST(an_empty_step_has_empty_rows_only)
{
	spmla_step step = SPMLA_STEP_INIT;
	uint64_t ticket;
	uint32_t i;

	open_with(SPMLA_LAYOUT_FP8_DS_MLA);
	v32_must(f.ctx, spmla_step_write(f.ctx, &step, &ticket, NULL));
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, &shape, SPMLA_FROM_RING, NULL));
	v32_must(f.ctx, spmla_v32_attn(f.ctx, &rig.layer, &shape, NULL));
	ck_assert_uint_eq(bytes_other(rig.out, 4 * rig.heads * 1024, 0),
			  4 * rig.heads * 1024);
	for (i = 0; i < 4 * rig.heads; i++)
		ck_assert(isinf(rig.lse[i]) && rig.lse[i] > 0);
	/* No key was written either. */
	ck_assert_uint_eq(bytes_other(rig.layer.kv.base, rig.kv_bytes, 0xAB),
			  rig.kv_bytes);
	ck_assert_uint_eq(
		bytes_other(rig.layer.index.base, rig.index_bytes, 0xAB),
		rig.index_bytes);
	close_all();
}
END_TEST

/* With one key its weight is exactly 1: out is the latent that was put in, and
 * lse its score: scale * sum of q * k. */
START_TEST(a_context_of_one_key_gives_that_key)
{
	const double scale = 0.1352337788608801;
	uint32_t h, d;

	open_with(SPMLA_LAYOUT_MLA_BF16);
	run_step(0);
	for (h = 0; h < rig.heads; h++) {
		const uint16_t *q = rig.q + h * 576;
		double score = 0;

		ck_assert_mem_eq(out(0, h), rig.kv_c, 512 * 2);
		for (d = 0; d < 576; d++) {
			const uint16_t k =
				d < 512 ? rig.kv_c[d] : rig.k_pe[d - 512];

			score += (double)test_bf16_value(q[d]) *
				 (double)test_bf16_value(k);
		}
		ck_assert_double_eq_tol((double)rig.lse[h], scale * score,
					1e-5);
	}
	close_all();
}
END_TEST

START_TEST(the_selection_is_all_keys_until_there_are_more_than_topk)
{
	const int32_t *indices, *lens;
	int32_t n, i, last;

	open_with(SPMLA_LAYOUT_FP8_DS_MLA);
	indices = spmla_view(f.ctx, SPMLA_BUF_TOPK_INDICES, NULL);
	lens = spmla_view(f.ctx, SPMLA_BUF_TOPK_LENS, NULL);
	for (n = 1; n <= 24; n++) {
		run_step((uint32_t)n - 1);
		ck_assert_int_eq(lens[0], n < 8 ? n : 8);
		for (i = 0, last = -1; i < 8; i++) {
			if (n <= 8) {
				ck_assert_int_eq(indices[i], i < n ? i : -1);
				continue;
			}
			ck_assert_int_gt(indices[i], last);
			ck_assert_int_lt(indices[i], n);
			last = indices[i];
		}
	}
	close_all();
}
END_TEST

START_TEST(without_lse_the_output_is_the_same)
{
	spmla_v32_layer layer;
	uint16_t *want;
	uint64_t i;

	open_with(SPMLA_LAYOUT_FP8_DS_MLA);
	for (i = 0; i < 20; i++)
		run_step((uint32_t)i);
	want = test_alloc(rig.out_bytes, 0);
	layer = rig.layer;
	attend_again(&layer);
	memcpy(want, rig.out, rig.out_bytes);
	layer.lse = NULL;
	layer.lse_token_stride_elems = 0;
	layer.lse_head_stride_elems = 0;
	attend_again(&layer);
	ck_assert_mem_eq(rig.out, want, rig.out_bytes);
	ck_assert_uint_eq(bytes_other(rig.lse, rig.lse_bytes, 0xAB),
			  rig.lse_bytes);
	free(want);
	close_all();
}
END_TEST

START_TEST(a_sink_acts_on_the_output_and_not_on_the_lse)
{
	spmla_v32_layer layer;
	uint16_t *want;
	float *lse;
	uint32_t h, i;

	open_with(SPMLA_LAYOUT_FP8_DS_MLA);
	for (i = 0; i < 20; i++)
		run_step(i);
	layer = rig.layer;
	want = test_alloc(rig.out_bytes, 0);
	lse = test_alloc(rig.lse_bytes, 0);
	attend_again(&layer);
	memcpy(want, rig.out, rig.out_bytes);
	memcpy(lse, rig.lse, rig.lse_bytes);
	layer.attn_sink = rig.attn_sink;
	/* -inf takes nothing, +inf all, 0 something */
	for (h = 0; h < rig.heads; h++)
		rig.attn_sink[h] = h == 0   ? -INFINITY
				   : h == 1 ? INFINITY
					    : 0.0f;
	attend_again(&layer);
	ck_assert_mem_eq(rig.lse, lse, rig.lse_bytes);
	ck_assert_mem_eq(out(0, 0), want, 1024);
	for (i = 0; i < 512; i++) {
		const uint32_t at = 2 * 512 + i;
		/* out * L / (L + 1), L = exp(lse): the sink is one key of
		 * score 0 */
		const double l = exp((double)lse[2]);
		const double v = (double)test_bf16_value(want[at]);

		ck_assert_double_eq((double)test_bf16_value(out(0, 1)[i]), 0);
		ck_assert_double_eq_tol((double)test_bf16_value(rig.out[at]),
					v * l / (l + 1), fabs(v) / 64 + 1e-6);
	}
	free(want);
	free(lse);
	close_all();
}
END_TEST

/* Heads outermost in q and out, lse [heads][tokens]. */
START_TEST(strides_move_tensors_and_change_no_value)
{
	const uint32_t tokens = 4;
	spmla_v32_layer layer;
	uint16_t *q, *o, *want;
	float *lse;
	uint32_t t, h, i;

	open_with(SPMLA_LAYOUT_FP8_DS_MLA);
	for (i = 0; i < 20; i++)
		run_step(i);
	layer = rig.layer;
	attend_again(&layer);
	want = test_alloc(rig.out_bytes, 0);
	memcpy(want, rig.out, rig.out_bytes);
	q = test_alloc(rig.heads * tokens * 600 * 2, 0xFF);
	o = test_alloc(rig.heads * tokens * 520 * 2, 0xAB);
	lse = test_alloc(rig.heads * tokens * 4, 0xAB);
	for (t = 0; t < tokens; t++)
		for (h = 0; h < rig.heads; h++)
			memcpy(q + (h * tokens + t) * 600,
			       rig.q + (t * rig.heads + h) * 576, 576 * 2);
	layer.q = q;
	layer.q_token_stride_elems = 600;
	layer.q_head_stride_elems = tokens * 600;
	layer.out = o;
	layer.out_token_stride_elems = 520;
	layer.out_head_stride_elems = tokens * 520;
	layer.lse = lse;
	layer.lse_token_stride_elems = 1;
	layer.lse_head_stride_elems = tokens;
	v32_must(f.ctx, spmla_v32_attend(f.ctx, &layer, &shape, NULL));
	for (t = 0; t < tokens; t++)
		for (h = 0; h < rig.heads; h++) {
			const uint16_t *row = o + (h * tokens + t) * 520;

			ck_assert_mem_eq(row, want + (t * rig.heads + h) * 512,
					 1024);
			ck_assert_uint_eq(row[512], 0xABAB);
			ck_assert_mem_eq(&lse[h * tokens + t],
					 &rig.lse[t * rig.heads + h], 4);
		}
	free(want);
	free(q);
	free(o);
	free(lse);
	close_all();
}
END_TEST

/* Matrix instructions read e4m3fn alone, and add in another order. */
static uint32_t
one_kernel_reads_both(void)
{
	const char *width = getenv("SPMLA_TEST_EMULATOR");

	return fixture_on_cpu() ||
	       (!fixture_on_gpu() && width && strcmp(width, "32") != 0);
}

/* Rows in FNUZ have the codes of e4m3fn and scales of twice that, so they are
 * the same keys. */
START_TEST(rows_in_fnuz_give_the_same_results)
{
	uint16_t *want = NULL;
	uint32_t fnuz, i;

	for (fnuz = 0; fnuz < 2; fnuz++) {
		open_with(SPMLA_LAYOUT_FP8_DS_MLA);
		rig.layer.kv.encoding = fnuz ? SPMLA_E4M3_FNUZ : SPMLA_E4M3_FN;
		for (i = 0; i < 20; i++)
			run_step(i);
		if (!fnuz) {
			want = test_alloc(rig.out_bytes, 0);
			memcpy(want, rig.out, rig.out_bytes);
		}
		for (i = 0; i < rig.out_bytes / 2; i++)
			ck_assert_float_eq_tol(test_bf16_value(rig.out[i]),
					       test_bf16_value(want[i]), 0.02f);
		if (one_kernel_reads_both())
			ck_assert_mem_eq(rig.out, want, rig.out_bytes);
		close_all();
	}
	free(want);
}
END_TEST

/* Twenty steps with pages of index keys of 4 bytes more. No selection changes,
 * and so no bit of the output. */
START_TEST(pages_of_index_keys_may_begin_at_multiples_of_4_bytes)
{
	uint16_t *want = NULL;
	uint32_t odd, i;

	for (odd = 0; odd < 2; odd++) {
		spmla_cache *c = &rig.layer.index;
		void *planned, *own;

		open_with(SPMLA_LAYOUT_FP8_DS_MLA);
		planned = c->base;
		c->page_stride_bytes += odd ? 4 : 0;
		own = test_alloc(c->page_stride_bytes * c->pages, 0xAB);
		c->base = own;
		for (i = 0; i < 20; i++)
			run_step(i);
		c->base = planned;
		free(own);
		if (odd) {
			ck_assert_mem_eq(rig.out, want, rig.out_bytes);
		} else {
			want = test_alloc(rig.out_bytes, 0);
			memcpy(want, rig.out, rig.out_bytes);
		}
		close_all();
	}
	free(want);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{a_row_that_does_not_exist_is_empty, 1},
		{a_selection_past_the_context_is_none_and_reported, 1},
		{an_empty_step_has_empty_rows_only, 1},
		{a_context_of_one_key_gives_that_key, 1},
		{the_selection_is_all_keys_until_there_are_more_than_topk, 1},
		{without_lse_the_output_is_the_same, 1},
		{a_sink_acts_on_the_output_and_not_on_the_lse, 1},
		{strides_move_tensors_and_change_no_value, 1},
		{rows_in_fnuz_give_the_same_results, 1},
		{pages_of_index_keys_may_begin_at_multiples_of_4_bytes, 1},
	};
	const theme themes[] = {
		THEME("edge", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
