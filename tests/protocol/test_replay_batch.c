/* SPDX-License-Identifier: Apache-2.0
 *
 * What a row's result depends on: its own tokens and its own history. Not the
 * bucket, not the rows beside it, not its place among them; padding is always
 * written; a step without requests changes nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/attn_rig.h"
#include "tests/harness/engine.h"
#include "tests/harness/themes.h"

enum { ROW = 5, LEN = 300, COLUMNS = 19, KEY = 1234567 };

/* Where a row may be: of 4, 4 and 8, with that many behind. */
enum { PLACES = 10 + 10 + 36 };

/* As wide as a model's, on a device, with keys of two fixed splits; and what
 * results have room for. */
enum { WIDE_HEADS = 64, WIDE_TOPK = 288 };

static attn_rig r;
static attn_inputs in;

static void
open_with(uint32_t native_flags, uint32_t config_flags, const attn_size *size)
{
	spmla_config config;

	attn_config_size(&config, 4, size);
	config.flags |= config_flags;
	config.max_update_pages = RIG_POOL;
	attn_inputs_open_size(&in, size);
	attn_open(&r, &config, &in, native_flags);
	attn_capture(&r);
}

static const attn_size small = {ATTN_HEADS, ATTN_INDEX_HEADS, ATTN_TOPK};

/* On a device few tokens are done in one launch or in parts, and bits depend on
 * their number, without the flag that promises that they do not. */
static uint32_t
flags(void)
{
	return fixture_on_gpu() ? SPMLA_CONFIG_BATCH_INVARIANT : 0;
}

static void
setup(void)
{
	open_with(0, flags(), &small);
}

/* With the flag that promises it. */
static void
setup_invariant(void)
{
	static const attn_size wide = {WIDE_HEADS, WIDE_HEADS, WIDE_TOPK};
	static const attn_size narrow = {ATTN_HEADS, ATTN_INDEX_HEADS,
					 WIDE_TOPK};

	open_with(0, SPMLA_CONFIG_BATCH_INVARIANT,
		  fixture_on_gpu() ? &wide : &narrow);
}

static void
setup_deferred(void)
{
	open_with(SPMLA_NATIVE_DEFERRED, flags(), &small);
}

static void
teardown(void)
{
	fixture_drain(&r.f);
	attn_close(&r);
	attn_inputs_close(&in);
}

/* What the step says of one token. */
typedef struct result {
	uint16_t out[ATTN_LAYERS][WIDE_HEADS * SPMLA_MLA_LATENT];
	float lse[ATTN_LAYERS][WIDE_HEADS];
	int32_t topk[ATTN_LAYERS][WIDE_TOPK];
	int32_t len[ATTN_LAYERS];
} result;

static void
take_result(uint32_t token, result *x)
{
	const uint32_t heads = r.size.heads, topk = r.size.topk;
	uint32_t l;

	memset(x, 0, sizeof *x);
	for (l = 0; l < ATTN_LAYERS; l++) {
		const uint16_t *out =
			r.out[l] + token * heads * SPMLA_MLA_LATENT;

		memcpy(x->out[l], out, heads * SPMLA_MLA_LATENT * sizeof *out);
		memcpy(x->lse[l], r.lse[l] + token * heads,
		       heads * sizeof *r.lse[l]);
		memcpy(x->topk[l], r.topk[l] + token * topk,
		       topk * sizeof *r.topk[l]);
		x->len[l] = r.topk_lens[l][token];
	}
}

/* A row of its own, even pages. */
static void
add_row(draft *d, uint32_t row, uint32_t query, uint32_t len)
{
	int32_t pages[3];
	int32_t i;

	for (i = 0; i < 3; i++)
		pages[i] = (int32_t)row * 8 + 2 * i;
	draft_request(d, row, query, len, SPMLA_REQUEST_JOIN);
	draft_store(d, row, 0, 3, pages);
}

/* Runs the row with `before` others in front of it and `after` behind. */
static void
run_row(uint32_t bucket, uint32_t before, uint32_t after, result *x)
{
	int32_t pages[COLUMNS];
	uint32_t row = 0, i;
	draft d;

	for (i = 0; i < COLUMNS; i++) /* odd */
		pages[i] = (int32_t)((11 * i + 20) % 32 * 2 + 1);
	draft_clear(&d);
	for (i = 0; i < before + 1 + after; i++) {
		attn_fill_token(&in, i, i == before ? KEY : 100 * bucket + i);
		if (i == before) {
			draft_request(&d, ROW, 1, LEN, SPMLA_REQUEST_JOIN);
			draft_store(&d, ROW, 0, COLUMNS, pages);
			continue;
		}
		row += row == ROW;
		add_row(&d, row, 1, 20 + 3 * row);
		row++;
	}
	attn_forget(&r);
	replay(&r.f, r.graph[bucket], draft_write(&r.f, &d));
	fixture_drain(&r.f);
	take_result(before, x);
}

START_TEST(a_row_has_the_same_bits_in_every_bucket_and_place)
{
	static result alone, x;
	/* On the emulator, or with few steps, not every one of them. A wide
	 * step takes long there, so the row is alone, or at an end of a full
	 * step. */
	const uint32_t all = fixture_rounds(PLACES, 12) == PLACES;
	const uint32_t is_wide = r.size.topk == WIDE_TOPK;
	uint32_t b, before, after, ran = 0;

	run_row(0, 0, 0, &alone);
	ck_assert_int_eq(alone.len[0], (int)r.size.topk);
	for (b = 0; b < 3; b++) {
		const uint32_t n = rig_shapes[b].requests;
		const uint32_t step = all ? 1 : is_wide ? n - 1 : 3;

		for (before = 0; before < n; before += step)
			for (after = 0; before + 1 + after <= n;
			     after += step, ran++) {
				run_row(b, before, after, &x);
				ck_assert_mem_eq(&x, &alone, sizeof x);
			}
	}
	if (all)
		ck_assert_uint_eq(ran, PLACES);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(query_tokens_together_have_the_bits_of_one_at_a_time)
{
	static result together[4], x;
	uint32_t j;
	draft d;

	draft_clear(&d);
	add_row(&d, 2, 4, 40);
	for (j = 0; j < 4; j++)
		attn_fill_token(&in, j, 900 + j);
	replay(&r.f, r.graph[2], draft_write(&r.f, &d));
	fixture_drain(&r.f);
	for (j = 0; j < 4; j++)
		take_result(j, &together[j]);
	for (j = 0; j < 4; j++) {
		draft_clear(&d);
		add_row(&d, 2, 1, 37 + j);
		attn_fill_token(&in, 0, 900 + j);
		replay(&r.f, r.graph[0], draft_write(&r.f, &d));
		fixture_drain(&r.f);
		take_result(0, &x);
		ck_assert_mem_eq(&x, &together[j], sizeof x);
	}
}
END_TEST

/* All bytes of the caches, into `copy`; or, if it has them, compares. Between
 * them there may be no memory. */
static void
each_cache(uint8_t *copy, uint32_t compare)
{
	uint32_t i;

	for (i = 0; i < r.f.plan.row_count; i++) {
		const spmla_extent *e = &r.f.plan.extents[i];
		const void *cache =
			spmla_view(r.f.ctx, (spmla_buf)e->buf, NULL);

		if (e->memory != SPMLA_MEMORY_CACHE)
			continue;
		if (compare)
			ck_assert_mem_eq(copy, cache, (size_t)e->bytes);
		else
			memcpy(copy, cache, (size_t)e->bytes);
		copy += e->bytes;
	}
}

static uint8_t *
cache_bytes(void)
{
	uint8_t *copy =
		test_alloc(r.f.plan.region_bytes[SPMLA_MEMORY_CACHE], 0);

	each_cache(copy, 0);
	return copy;
}

static void
expect_cache(uint8_t *copy)
{
	each_cache(copy, 1);
	free(copy);
}

START_TEST(padding_is_written_and_writes_no_cache)
{
	uint32_t b, t;
	draft d;

	draft_clear(&d);
	for (b = 0; b < 3; b++) {
		uint8_t *before;

		draft_clear(&d);
		draft_request(&d, 3, 0, 30, 0); /* paused */
		draft_request(&d, 4, 0, 0, 0);
		before = cache_bytes();
		attn_forget(&r);
		replay(&r.f, r.graph[b], draft_write(&r.f, &d));
		fixture_drain(&r.f);
		for (t = 0; t < rig_shapes[b].tokens; t++)
			attn_expect_empty(&r, t);
		expect_cache(before);
	}
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(a_step_without_requests_warms_up_and_changes_nothing)
{
	static result first, again;
	uint32_t b, t;
	draft d;

	run_row(0, 0, 0, &first);
	for (b = 0; b < 3; b++) {
		uint8_t *before = cache_bytes();

		draft_clear(&d);
		attn_fill_step(&in, b);
		attn_forget(&r);
		replay(&r.f, r.graph[b], draft_write(&r.f, &d));
		fixture_drain(&r.f);
		for (t = 0; t < rig_shapes[b].tokens; t++)
			attn_expect_empty(&r, t);
		expect_cache(before);
	}
	run_row(0, 0, 0, &again);
	ck_assert_mem_eq(&first, &again, sizeof first);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(a_launch_without_a_record_writes_empty_outputs_and_no_cache)
{
	uint8_t *before = cache_bytes();
	engine_list list;
	uint32_t t;

	ck_assert_int_eq(engine_capture_begin(r.f.ctx), SPMLA_OK);
	ck_assert_int_eq(attn_enqueue(&r, &rig_shapes[2], SPMLA_FROM_RING),
			 SPMLA_OK);
	ck_assert_int_eq(engine_capture_end(r.f.ctx, &list), SPMLA_OK);
	attn_fill_step(&in, 1);
	attn_forget(&r);
	ck_assert_int_eq(engine_launch(r.f.ctx, list), SPMLA_OK);
	fixture_drain(&r.f);
	for (t = 0; t < 16; t++)
		attn_expect_empty(&r, t);
	expect_cache(before);
	expect_status(&r.f, 1, SPMLA_FAULT_TICKET_MISSING, SPMLA_NO_INDEX, 1);
}
END_TEST

START_TEST(a_token_without_a_page_writes_no_key_and_has_an_empty_result)
{
	static result x, good;
	uint8_t *before;
	uint32_t l;
	draft d;

	run_row(0, 0, 0, &good);
	before = cache_bytes();
	draft_clear(&d);
	draft_request(&d, 6, 1, 20, SPMLA_REQUEST_JOIN); /* no pages at all */
	attn_fill_token(&in, 0, 55);
	attn_forget(&r);
	replay(&r.f, r.graph[1], draft_write(&r.f, &d));
	fixture_drain(&r.f);
	attn_expect_empty(&r, 0);
	expect_cache(before);
	expect_status(&r.f, 1, SPMLA_FAULT_PAGE, 6, 2);
	run_row(2, 0, 0, &x);
	for (l = 0; l < ATTN_LAYERS; l++)
		ck_assert_mem_eq(x.out[l], good.out[l], sizeof x.out[l]);
}
END_TEST

SUITE
{
	const theme_test batch[] = {
		{a_row_has_the_same_bits_in_every_bucket_and_place, 1},
		{query_tokens_together_have_the_bits_of_one_at_a_time, 1},
	};
	const theme_test empty[] = {
		{padding_is_written_and_writes_no_cache, 1},
		{a_step_without_requests_warms_up_and_changes_nothing, 1},
		{a_launch_without_a_record_writes_empty_outputs_and_no_cache,
		 1},
		{a_token_without_a_page_writes_no_key_and_has_an_empty_result,
		 1},
	};
	const theme themes[] = {
		THEME("batch", setup, teardown, batch),
		THEME("batch invariance", setup_invariant, teardown, batch),
		THEME("empty", setup, teardown, empty),
		THEME("empty, queued", setup_deferred, teardown, empty),
	};

	return RUN_THEMES(themes);
}
