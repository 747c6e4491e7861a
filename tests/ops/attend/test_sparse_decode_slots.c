/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode: which entries of a list of slots count, and that nothing else
 * is ever read.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"

static fixture f;
static decode_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = 8;
	fixture_open(&f, &config, 0);
	decode_open(&w, SPMLA_LAYOUT_FP8_DS_MLA, 3, 61, 130);
}

static void
teardown(void)
{
	decode_close(&w);
	fixture_close(&f);
}

/* The slots of token 1. */
static int32_t *
second(void)
{
	return w.slots + w.a.slots_stride_elems;
}

/* Runs and keeps the bytes of all results, or compares with the kept ones. */
static uint8_t *
results(const uint8_t *kept)
{
	const size_t out = w.out_elems * 2, lse = w.lse_elems * 4;
	uint8_t *bytes = malloc(out + lse);

	memset(w.out, 0x5A, out);
	memset(w.lse, 0x5A, lse);
	decode_run(&f, &w);
	memcpy(bytes, w.out, out);
	memcpy(bytes + out, w.lse, lse);
	if (kept)
		ck_assert_mem_eq(bytes, kept, out + lse);
	return bytes;
}

START_TEST(token_without_a_slot_is_zero_and_its_lse_as_asked)
{
	const float sinks[3] = {1, INFINITY, -INFINITY};

	decode_choose(&w);
	memset(second(), 0xFF, 130 * sizeof(int32_t));
	w.a.empty_lse =
		_i & 1 ? SPMLA_EMPTY_LSE_MINUS_INF : SPMLA_EMPTY_LSE_PLUS_INF;
	memcpy(w.sink, sinks, sizeof sinks);
	w.a.attn_sink = _i & 2 ? w.sink : NULL;
	decode_check(&f, &w);
	ck_assert_float_eq(decode_lse(&w, 1, 2), _i & 1 ? -INFINITY : INFINITY);
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
}
END_TEST

START_TEST(only_the_first_entries_count_up_to_the_length)
{
	static const int32_t lens[10] = {0,   1,   63,  64,        65,
					 128, 129, 130, INT32_MAX, -9};

	decode_choose(&w);
	w.lens[0] = lens[_i];
	w.lens[1] = lens[9 - _i];
	w.a.topk_lens = w.lens;
	decode_check(&f, &w);
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
}
END_TEST

START_TEST(garbage_past_the_length_equals_minus_one_bit_for_bit)
{
	static const int32_t garbage[4] = {INT32_MAX, INT32_MIN, 0, 12345};
	uint8_t *kept;
	uint32_t i;

	decode_choose(&w);
	w.lens[0] = 70;
	w.lens[1] = 1;
	for (i = 70; i < 130; i++)
		w.slots[i] = -1;
	for (i = 1; i < 130; i++)
		second()[i] = -1;
	kept = results(NULL);
	w.a.topk_lens = w.lens;
	free(results(kept));
	for (i = 70; i < 130; i++)
		w.slots[i] = garbage[i % 4];
	for (i = 1; i < 130; i++)
		second()[i] = garbage[i % 4];
	free(results(kept));
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
	free(kept);
}
END_TEST

/* The list ends at a page that may not be read; the rest would be 4 GiB. */
START_TEST(entries_past_the_length_are_not_read)
{
	uint8_t *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(map != MAP_FAILED && !mprotect(map + 4096, 4096, PROT_NONE));
	decode_choose(&w);
	memcpy(map + 4096 - 66 * 4, w.slots, 66 * 4);
	w.a.slots = (int32_t *)(void *)(map + 4096 - 66 * 4);
	w.a.topk = 1u << 30;
	w.a.slots_stride_elems = 1 << 30;
	w.a.tokens = 1;
	w.lens[0] = 66;
	w.a.topk_lens = w.lens;
	decode_check(&f, &w);
	munmap(map, 8192);
}
END_TEST

START_TEST(slot_outside_the_cache_does_not_count_and_is_reported)
{
	const int32_t limit =
		(int32_t)(w.a.cache.pages * w.a.cache.entries_per_page);
	const int32_t hostile[6] = {INT32_MIN, INT32_MAX, -2,
				    limit,     limit + 1, INT32_MIN + 1};
	uint8_t *kept;

	decode_choose(&w);
	second()[5] = second()[77] = -1;
	kept = results(NULL);
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
	second()[77] = hostile[_i];
	free(results(kept));
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	decode_expect_status(&f, SPMLA_FAULT_INDEX, 1);
	second()[5] = hostile[5 - _i];
	free(results(kept));
	ck_assert_uint_eq(fixture_status(&f).count, 2);
	free(kept);
}
END_TEST

START_TEST(last_slot_of_the_cache_counts)
{
	const int32_t last =
		(int32_t)(w.a.cache.pages * w.a.cache.entries_per_page) - 1;

	decode_put(&w, last, 1.5f, 0.5f);
	w.slots[3] = last;
	decode_check(&f, &w);
	ck_assert_uint_eq(decode_out(&w, 0, 0)[0], test_bf16(1.5f));
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
}
END_TEST

/* q = 0: (1 + 1 + 4) / 3 = 2, lse = ln 3. */
START_TEST(slot_that_occurs_twice_counts_twice)
{
	memset(w.q, 0, 3 * (REF_DIM + 8) * 2);
	decode_put(&w, 11, 1, 0);
	decode_put(&w, 200, 4, 0);
	w.slots[0] = 11;
	w.slots[70] = 200;
	w.slots[129] = 11;
	decode_check(&f, &w);
	ck_assert_uint_eq(decode_out(&w, 0, 1)[300], test_bf16(2));
	ck_assert_float_eq_tol(decode_lse(&w, 0, 1), 1.0986123f, 2e-7f);
}
END_TEST

/* decode_open filled the cache with NaN; only chosen rows were written. */
START_TEST(nan_in_rows_that_do_not_count_is_not_read)
{
	uint32_t i, d;

	decode_choose(&w);
	for (i = 0; i < 130; i++)
		second()[i] = -1;
	w.slots[0] = second()[1] = 44;
	decode_put_random(&w, 44);
	decode_run(&f, &w);
	for (d = 0; d < REF_LATENT; d++) {
		ck_assert(!isnan(test_bf16_value(decode_out(&w, 0, 0)[d])));
		ck_assert(!isnan(test_bf16_value(decode_out(&w, 1, 2)[d])));
	}
	decode_check(&f, &w);
}
END_TEST

/* Three pages of 3 GiB each; only what is touched takes memory. */
START_TEST(slot_beyond_four_gib_is_found)
{
	const uint64_t stride = UINT64_C(3) << 30;
	void *base = test_map(3 * stride);

	w.a.cache.base = base;
	w.a.cache.pages = 3;
	w.a.cache.page_stride_bytes = stride;
	w.slots[0] = 61 * 2 + 60;
	w.slots[1] = 61;
	decode_put_random(&w, w.slots[0]);
	decode_put_random(&w, w.slots[1]);
	decode_check(&f, &w);
	decode_expect_status(&f, SPMLA_FAULT_NONE, 0);
	munmap(base, 3 * stride);
}
END_TEST

START_TEST(bits_of_a_token_do_not_depend_on_the_others)
{
	uint16_t alone[REF_LATENT];
	float lse;

	decode_choose(&w);
	decode_run(&f, &w);
	memcpy(alone, decode_out(&w, 1, 2), sizeof alone);
	lse = decode_lse(&w, 1, 2);
	w.a.tokens = 1;
	w.a.heads = 1;
	w.a.topk = 130;
	w.a.q += w.a.q_token_stride_elems + 2 * w.a.q_head_stride_elems;
	w.a.slots = second();
	decode_check(&f, &w);
	ck_assert_mem_eq(decode_out(&w, 0, 0), alone, sizeof alone);
	ck_assert_float_eq(decode_lse(&w, 0, 0), lse);
}
END_TEST

SUITE
{
	const theme_test edge[] = {
		{token_without_a_slot_is_zero_and_its_lse_as_asked, 4},
		{only_the_first_entries_count_up_to_the_length, 10},
		{entries_past_the_length_are_not_read, 1},
		{slot_outside_the_cache_does_not_count_and_is_reported, 6},
		{last_slot_of_the_cache_counts, 1},
		{slot_that_occurs_twice_counts_twice, 1},
		{nan_in_rows_that_do_not_count_is_not_read, 1},
	};
	const theme_test layout[] = {
		{slot_beyond_four_gib_is_found, 1},
	};
	const theme_test determinism[] = {
		{garbage_past_the_length_equals_minus_one_bit_for_bit, 1},
		{bits_of_a_token_do_not_depend_on_the_others, 1},
	};
	const theme themes[] = {
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
