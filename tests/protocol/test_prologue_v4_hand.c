/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of V4 whose buffers were worked out by hand: a ring that wraps around,
 * a token that ends a group of 4 and one of 128, keys without a page, logits
 * without room. Every step is the model's too.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/protocol/v4_step_rig.h"

enum { ROW = 2, SMALL_BUCKET = 0, LARGE_BUCKET = 2 };

static fixture f;
static v4_model m;

static void
open_kind(v4_kind kind)
{
	spmla_config config;

	v4_step_config(&config, kind);
	fixture_open(&f, &config, 0);
	v4_model_open(&m, &f);
}

static void
setup(void)
{
	open_kind(V4_SMALL);
}

static void
setup_tables(void)
{
	open_kind(V4_TABLES);
}

static void
setup_tight(void)
{
	open_kind(V4_TIGHT);
}

/* Rows of 1024 / 4 = 256 logits. */
static void
setup_prompts(void)
{
	spmla_config config;

	v4_step_config(&config, V4_PROMPTS);
	config.prefill_workspace_tokens = 1024;
	fixture_open(&f, &config, 0);
	v4_model_open(&m, &f);
}

static void
teardown(void)
{
	v4_model_close(&m);
	fixture_close(&f);
}

/* Element i of a buffer of int32, or of int64. */
static int32_t
at(spmla_buf buf, uint32_t i)
{
	return ((const int32_t *)spmla_view(f.ctx, buf, NULL))[i];
}

static int64_t
at64(spmla_buf buf, uint32_t i)
{
	return ((const int64_t *)spmla_view(f.ctx, buf, NULL))[i];
}

#define AT(buf, i)   at(SPMLA_BUF_##buf, i)
#define AT64(buf, i) at64(SPMLA_BUF_##buf, i)

static const int32_t window_pages[4] = {10, 20, 30, 40};

/* The pages of row ROW up to 256 tokens: window_pages; C4A column c is page 100
 * + c, but column `hole` has none; C128A column 0 is page 5. */
static void
join(uint32_t len, uint32_t hole)
{
	static const int32_t five = 5;
	int32_t pages[16];
	v4_draft d;
	uint32_t c;

	v4_draft_clear(&d);
	v4_draft_request(&d, ROW, 0, len, SPMLA_REQUEST_JOIN);
	v4_draft_store(&d, SPMLA_GROUP_SWA, ROW, 0, 4, window_pages);
	for (c = 0; c < 16; c++)
		pages[c] = 100 + (int32_t)c;
	v4_draft_store(&d, SPMLA_GROUP_C4A, ROW, 0, hole, pages);
	if (hole < 15)
		v4_draft_store(&d, SPMLA_GROUP_C4A, ROW, hole + 1, 15 - hole,
			       pages + hole + 1);
	v4_draft_store(&d, SPMLA_GROUP_C128A, ROW, 0, 1, &five);
	v4_step_ring(&m, &f, &d, SMALL_BUCKET);
}

/* One token of row ROW, the last of `len`. */
static void
step(uint32_t len)
{
	v4_draft d;

	v4_draft_clear(&d);
	v4_draft_request(&d, ROW, 1, len, 0);
	v4_step_ring(&m, &f, &d, SMALL_BUCKET);
}

/* Position 127: windows of 12 start at 116 = column 29, which is 1 of 4: page
 * 20, slots 80 .. 83; then 30: 120 .. 123; then 40: 160 .. 163. It ends key 31
 * of 4: column 127 / 16 = 7, key 3 of its page: 107 * 4 + 3 = 431; and key 0 of
 * 128: page 5 of 2 keys: 10. */
START_TEST(a_token_that_ends_both_groups)
{
	static const int32_t window[12] = {80,  81,  82,  83,  120, 121,
					   122, 123, 160, 161, 162, 163};
	uint32_t k;

	join(127, 16);
	step(128);
	ck_assert_int_eq(AT64(SLOT_MAPPING, 0), 163);
	ck_assert_int_eq(AT(CONTEXT_LENS, 0), 128);
	ck_assert_int_eq(AT(SWA_LENS, 0), 12);
	for (k = 0; k < 12; k++)
		ck_assert_int_eq(AT(SWA_INDICES, k), window[k]);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C4A, 0), 431);
	ck_assert_ptr_null(spmla_view(
		f.ctx, SPMLA_BUF_COMPRESSED_SLOT_MAPPING_INDEX, NULL));
	ck_assert_int_eq(AT(COMPRESSED_LENS, 0), 32);
	ck_assert_int_eq(AT64(LOGITS_ROW_STARTS, 1), 256);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C128A, 0), 10);
	ck_assert_int_eq(AT(C128A_LENS, 0), 1);
	ck_assert_int_eq(AT(C128A_INDICES, 0), 10);
	/* The padding of the bucket. */
	for (k = 1; k < 4; k++) {
		ck_assert_int_eq(AT(SWA_LENS, k), 0);
		ck_assert_int_eq(AT(C128A_LENS, k), 0);
		ck_assert_int_eq(AT(COMPRESSED_LENS, k), 0);
		ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C4A, k), -1);
		ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C128A, k), -1);
	}
}
END_TEST

/* Position 128 is in column 32, which is 0 of 4: page 10, slot 40. It ends no
 * group and sees what 127 did. */
START_TEST(the_token_after_it_comes_round_and_ends_none)
{
	static const int32_t window[12] = {81,  82,  83,  120, 121, 122,
					   123, 160, 161, 162, 163, 40};
	uint32_t k;

	join(128, 16);
	step(129);
	ck_assert_int_eq(AT64(SLOT_MAPPING, 0), 40);
	ck_assert_int_eq(AT(SWA_LENS, 0), 12);
	for (k = 0; k < 12; k++)
		ck_assert_int_eq(AT(SWA_INDICES, k), window[k]);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C4A, 0), -1);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C128A, 0), -1);
	ck_assert_int_eq(AT(COMPRESSED_LENS, 0), 32);
	ck_assert_int_eq(AT(C128A_LENS, 0), 1);
	ck_assert_int_eq(AT(C128A_INDICES, 0), 10);
}
END_TEST

/* Tokens 1 .. 4: windows grow, the first key of 4 comes with the fourth. */
START_TEST(the_first_tokens_see_what_there_is)
{
	v4_draft d;
	uint32_t t;

	join(0, 16);
	v4_draft_clear(&d);
	v4_draft_request(&d, ROW, 4, 4, 0);
	v4_step_ring(&m, &f, &d, LARGE_BUCKET);
	for (t = 0; t < 4; t++) {
		ck_assert_int_eq(AT(SWA_LENS, t), (int32_t)t + 1);
		ck_assert_int_eq(AT(SWA_INDICES, 12 * t), 40);
		ck_assert_int_eq(AT(SWA_INDICES, 12 * t + t), 40 + (int32_t)t);
		ck_assert_int_eq(AT(COMPRESSED_LENS, t), t == 3);
		ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C4A, t),
				 t == 3 ? 400 : -1);
		ck_assert_int_eq(AT(C128A_LENS, t), 0);
	}
}
END_TEST

/* A token whose key has no page: its window's slot and its key of 128 are
 * there, as is its context; it sees nothing. The tokens behind it would miss
 * that key, so they see nothing either, until its page is there. */
START_TEST(a_key_without_a_page_costs_all_tokens_from_its_own_on)
{
	v4_draft d;
	uint64_t first;

	join(127, 7);
	step(128);
	ck_assert_int_eq(AT64(SLOT_MAPPING, 0), 163);
	ck_assert_int_eq(AT(CONTEXT_LENS, 0), 128);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C4A, 0), -1);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C128A, 0), 10);
	ck_assert_int_eq(AT(COMPRESSED_LENS, 0), 0);
	ck_assert_int_eq(AT(SWA_LENS, 0), 0);
	ck_assert_int_eq(AT(C128A_LENS, 0), 0);
	/* Its row of logits is laid out all the same. */
	ck_assert_int_eq(AT64(LOGITS_ROW_STARTS, 1), 256);
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_PAGE], 1);
	first = m.fault_step;
	step(129);
	ck_assert_uint_eq(m.fault_step, first + 1);
	ck_assert_int_ge(AT64(SLOT_MAPPING, 0), 0);
	ck_assert_int_eq(AT(CONTEXT_LENS, 0), 129);
	ck_assert_int_eq(AT(COMPRESSED_LENS, 0), 0);
	ck_assert_int_eq(AT(SWA_LENS, 0), 0);
	ck_assert_int_eq(AT(C128A_LENS, 0), 0);
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_PAGE], 2);
	v4_draft_clear(&d);
	v4_draft_request(&d, ROW, 1, 129, 0);
	v4_draft_store(&d, SPMLA_GROUP_C4A, ROW, 7, 1, window_pages);
	v4_step_ring(&m, &f, &d, SMALL_BUCKET);
	ck_assert_int_eq(AT(COMPRESSED_LENS, 0), 32);
	ck_assert_int_eq(AT(SWA_LENS, 0), 12);
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_PAGE], 2);
}
END_TEST

/* Window column 0 is never written: position 128 has no slot, so nothing of it
 * is there; 132's window has the hole, so it sees nothing. */
START_TEST(a_window_without_a_page)
{
	v4_draft d;

	v4_draft_clear(&d);
	v4_draft_request(&d, ROW, 1, 132, SPMLA_REQUEST_JOIN);
	v4_draft_store(&d, SPMLA_GROUP_SWA, ROW, 1, 3, window_pages + 1);
	v4_step_ring(&m, &f, &d, SMALL_BUCKET); /* 131: column 32, is 0 */
	ck_assert_int_eq(AT64(SLOT_MAPPING, 0), -1);
	ck_assert_int_eq(AT(CONTEXT_LENS, 0), 0);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C4A, 0), -1);
	ck_assert_int_eq(AT(SWA_LENS, 0), 0);
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_PAGE], 1);
	/* 132: column 33, is 1; of 121 .. 132 it lacks 128 .. 131, and its
	 * tables of 4 and of 128 are there. */
	v4_draft_clear(&d);
	v4_draft_request(&d, ROW, 1, 133, 0);
	v4_draft_store(&d, SPMLA_GROUP_C4A, ROW, 0, 3, window_pages);
	v4_draft_store(&d, SPMLA_GROUP_C4A, ROW, 3, 3, window_pages);
	v4_draft_store(&d, SPMLA_GROUP_C4A, ROW, 6, 3, window_pages);
	v4_draft_store(&d, SPMLA_GROUP_C128A, ROW, 0, 1, window_pages);
	v4_step_ring(&m, &f, &d, SMALL_BUCKET);
	ck_assert_int_eq(AT(CONTEXT_LENS, 0), 133);
	ck_assert_int_eq(AT(SWA_LENS, 0), 0);
	ck_assert_int_eq(AT(COMPRESSED_LENS, 0), 0);
	ck_assert_int_eq(AT(C128A_LENS, 0), 0);
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_PAGE], 2);
	v4_draft_clear(&d);
	v4_draft_request(&d, ROW, 1, 133, 0);
	v4_draft_store(&d, SPMLA_GROUP_SWA, ROW, 0, 1, window_pages);
	v4_step_ring(&m, &f, &d, SMALL_BUCKET);
	ck_assert_int_eq(AT(SWA_LENS, 0), 12);
	ck_assert_int_eq(AT(C128A_LENS, 0), 1);
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_PAGE], 2);
}
END_TEST

/* The index keys' own table, pages of 32 = 8 keys, and the engine's of C4A,
 * pages of 24 = 6 keys. Position 63 ends key 15: column 63 / 24 = 2, key
 * 15 - 12 = 3: 9 * 6 + 3 = 57; column 63 / 32 = 1, key 7: 4 * 8 + 7 = 39.
 * Windows of 20 in pages of 16: 44 .. 63 = columns 2 and 3. */
START_TEST(tables_of_their_own_and_of_the_engine)
{
	static const int32_t swa[4] = {50, 51, 52, 53}, index[2] = {3, 4};
	v4_draft d;
	int32_t k;

	v4_model_engine(&m, SPMLA_GROUP_C4A, ROW, 2, 9);
	v4_draft_clear(&d);
	v4_draft_request(&d, ROW, 1, 64, SPMLA_REQUEST_JOIN);
	v4_draft_store(&d, SPMLA_GROUP_SWA, ROW, 0, 4, swa);
	v4_draft_store(&d, SPMLA_GROUP_INDEX, ROW, 0, 2, index);
	v4_step_ring(&m, &f, &d, SMALL_BUCKET);
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_PAGE], 0);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C4A, 0), 57);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_INDEX, 0), 39);
	ck_assert_int_eq(AT(COMPRESSED_LENS, 0), 16);
	ck_assert_int_eq(AT(SWA_LENS, 0), 20);
	for (k = 0; k < 20; k++)
		ck_assert_int_eq(AT(SWA_INDICES, (uint32_t)k),
				 k < 4 ? 52 * 16 + 12 + k : 53 * 16 + k - 4);
	/* Without the engine's page, the index key is there alone. */
	v4_model_engine(&m, SPMLA_GROUP_C4A, ROW, 2, -1);
	step(64);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C4A, 0), -1);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_INDEX, 0), 39);
	ck_assert_int_eq(AT(SWA_LENS, 0), 0);
	/* Without either, both are reported. */
	v4_draft_clear(&d);
	v4_draft_request(&d, ROW, 1, 64, SPMLA_REQUEST_JOIN);
	v4_draft_store(&d, SPMLA_GROUP_SWA, ROW, 0, 4, swa);
	v4_step_ring(&m, &f, &d, SMALL_BUCKET);
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_PAGE], 3);
}
END_TEST

/* Room for 4 * 64 / 4 + 16 * 255 = 4144 logits. 16384 tokens have 4096 keys;
 * the 48 that are left are what 192 tokens have, and too few for 196. */
START_TEST(logits_without_room_cost_the_lengths_alone)
{
	static const int32_t by[V4_REQUESTS] = {16383, 191, 195, 3};
	int32_t pages[64];
	uint32_t row, i;
	v4_draft d;

	for (i = 0; i < 64; i++)
		pages[i] = (int32_t)i;
	ck_assert_uint_eq(f.plan.logits_elems, 4144);
	for (row = 0; row < 4; row++) {
		v4_draft_clear(&d);
		v4_draft_request(&d, row, 1, 1, SPMLA_REQUEST_JOIN);
		v4_draft_store(&d, SPMLA_GROUP_SWA, row, 0, 4, pages);
		v4_draft_store(&d, SPMLA_GROUP_C4A, row, 0, 13, pages);
		v4_draft_store(&d, SPMLA_GROUP_C128A, row, 0, 64, pages);
		v4_step_ring(&m, &f, &d, LARGE_BUCKET);
	}
	for (i = 0; i < 16; i++) {
		v4_draft_clear(&d);
		v4_draft_store(&d, SPMLA_GROUP_C4A, 0, 64 * i, 64, pages);
		v4_step_ring(&m, &f, &d, LARGE_BUCKET);
	}
	v4_draft_clear(&d);
	for (row = 0; row < 4; row++)
		v4_draft_request(&d, row, 1, 1, 0);
	v4_step_ring(&m, &f, &d, LARGE_BUCKET);
	v4_step_advance(&m, &f, by, LARGE_BUCKET);
	ck_assert_int_eq(AT(COMPRESSED_LENS, 0), 4096);
	ck_assert_int_eq(AT(COMPRESSED_LENS, 1), 48);
	ck_assert_int_eq(AT64(LOGITS_ROW_STARTS, 1), 4096);
	ck_assert_int_eq(AT64(LOGITS_ROW_STARTS, 2), 4144);
	ck_assert_int_eq(AT(C128A_LENS, 0), 128);
	ck_assert_int_eq(AT(C128A_LENS, 1), 1);
	for (i = 2; i < 4; i++) {
		ck_assert_int_eq(AT(CONTEXT_LENS, i), i == 2 ? 196 : 4);
		ck_assert_int_eq(AT(COMPRESSED_LENS, i), 0);
		ck_assert_int_eq(AT(SWA_LENS, i), 0);
		ck_assert_int_eq(AT(C128A_LENS, i), 0);
	}
	/* 196: page 12 of 4 keys, the first */
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C4A, 2), 48);
	ck_assert_int_eq(AT64(COMPRESSED_SLOT_MAPPING_C4A, 3), 0);
	ck_assert_int_ge(AT64(SLOT_MAPPING, 2), 0);
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_LOGITS], 2);
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_PAGE], 0);
}
END_TEST

/* A token of fewer than 4 has no row to have room for. */
START_TEST(a_token_without_index_keys_needs_no_room)
{
	static const int32_t by[V4_REQUESTS] = {16383, 191, 2};
	int32_t pages[64];
	uint32_t row, i;
	v4_draft d;

	for (i = 0; i < 64; i++)
		pages[i] = (int32_t)i;
	v4_draft_clear(&d);
	for (row = 0; row < 3; row++) {
		v4_draft_request(&d, row, 1, 1, SPMLA_REQUEST_JOIN);
		v4_draft_store(&d, SPMLA_GROUP_SWA, row, 0, 4, pages);
		v4_draft_store(&d, SPMLA_GROUP_C4A, row, 0, 13, pages);
		v4_draft_store(&d, SPMLA_GROUP_C4A, row, 1023, 1, pages);
		v4_draft_store(&d, SPMLA_GROUP_C128A, row, 0, 64, pages);
	}
	v4_step_ring(&m, &f, &d, LARGE_BUCKET);
	v4_step_advance(&m, &f, by, LARGE_BUCKET);
	ck_assert_int_eq(AT(COMPRESSED_LENS, 2), 0);
	ck_assert_int_eq(AT(SWA_LENS, 2), 3);
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_LOGITS], 0);
}
END_TEST

/* The context of a prefill moves past the workspace: a token at 1028 or more
 * has 257 keys and no row for them. */
START_TEST(an_advance_past_the_workspace_costs_the_lengths_alone)
{
	static const int32_t by[V4_REQUESTS] = {16};
	int32_t pages[128];
	v4_draft d;
	uint32_t t;

	for (t = 0; t < 128; t++)
		pages[t] = (int32_t)t % 40;
	v4_draft_clear(&d);
	v4_draft_request(&d, ROW, 20, 1016, SPMLA_REQUEST_JOIN);
	v4_draft_store(&d, SPMLA_GROUP_SWA, ROW, 0,
		       f.plan.group_columns[SPMLA_GROUP_SWA], pages);
	v4_draft_store(&d, SPMLA_GROUP_C4A, ROW, 0, 128, pages);
	v4_draft_store(&d, SPMLA_GROUP_C128A, ROW, 0, 8, pages);
	v4_step_ring(&m, &f, &d, V4_PREFILL);
	ck_assert_int_eq(AT(COMPRESSED_LENS, 19), 254);
	v4_step_advance(&m, &f, by, V4_PREFILL);
	for (t = 0; t < 20; t++) {
		const int32_t context = 1013 + (int32_t)t;
		const uint32_t fits = context < 1028;

		ck_assert_int_eq(AT(CONTEXT_LENS, t), context);
		ck_assert_int_eq(AT(COMPRESSED_LENS, t),
				 fits ? context / 4 : 0);
		ck_assert_int_eq(AT(SWA_LENS, t), fits ? 12 : 0);
		ck_assert_int_ge(AT64(SLOT_MAPPING, t), 0);
	}
	ck_assert_uint_eq(m.seen[SPMLA_FAULT_LOGITS], 5);
}
END_TEST

SUITE
{
	const theme_test small[] = {
		{a_token_that_ends_both_groups, 1},
		{the_token_after_it_comes_round_and_ends_none, 1},
		{the_first_tokens_see_what_there_is, 1},
		{a_key_without_a_page_costs_all_tokens_from_its_own_on, 1},
		{a_window_without_a_page, 1},
	};
	const theme_test tables[] = {
		{tables_of_their_own_and_of_the_engine, 1},
	};
	const theme_test tight[] = {
		{logits_without_room_cost_the_lengths_alone, 1},
		{a_token_without_index_keys_needs_no_room, 1},
	};
	const theme_test prompts[] = {
		{an_advance_past_the_workspace_costs_the_lengths_alone, 1},
	};
	const theme themes[] = {
		THEME("rings", setup, teardown, small),
		THEME("tables", setup_tables, teardown, tables),
		THEME("logits", setup_tight, teardown, tight),
		THEME("prompts", setup_prompts, teardown, prompts),
	};

	return RUN_THEMES(themes);
}
