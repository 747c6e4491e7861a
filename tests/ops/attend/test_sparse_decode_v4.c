/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode over V4 rows and with a second cache. Splits are in
 * test_sparse_decode_splits.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/v4_decode_world.h"

static fixture f;
static v4_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = V4_HEADS;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	v4_close(&w);
	fixture_close(&f);
}

static void
all_out(uint32_t token, uint32_t head, float want)
{
	uint32_t d;

	for (d = 0; d < 512; d++)
		ck_assert_uint_eq(v4_out(&w, token, head)[d], test_bf16(want));
}

static void
zero_q(void)
{
	memset(w.q, 0, w.out_elems * 2);
}

static void
expect_clean(void)
{
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}

START_TEST(results_equal_dense_attention_for_any_shape)
{
	static const uint32_t entries[4] = {1, 2, 61, 64};
	static const uint32_t topk[4] = {1, 64, 65, 150};
	static const uint32_t extra[4] = {0, 63, 70, 1};

	v4_open(&w, _i == 5 ? V4_HEADS : 3, entries[_i % 4], topk[_i / 4 % 4],
		entries[(_i + 1) % 4], extra[(_i + _i / 4) % 4]);
	if (_i >= 16) {
		test_close_gaps(&w.a.cache);
		test_close_gaps(&w.a.extra_cache);
	}
	v4_choose(&w);
	v4_check(&f, &w);
	expect_clean();
}
END_TEST

START_TEST(lengths_cut_both_lists)
{
	static const int32_t lens[8] = {0, 1, 64, 65, 100, INT32_MAX, -3, 99};

	v4_open(&w, 2, 64, 100, 2, 90);
	v4_choose(&w);
	memcpy(w.lens, (const int32_t[]){lens[_i], 100, lens[7 - _i]}, 12);
	memcpy(w.extra_lens, (const int32_t[]){90, lens[_i], lens[_i]}, 12);
	w.a.topk_lens = w.lens;
	w.a.extra_topk_lens = w.extra_lens;
	v4_check(&f, &w);
	expect_clean();
}
END_TEST

/* Pages of 64 entries: row 5 has its values at 2880, its rope at 3328, its
 * scales at 36864 + 40 = 36904; of 2: row 1 at 576 and 1152 + 8 = 1160. V is
 * all 512 values: 448 of 1.5 * 2^s and 64 of the rope. The 8th scale stays
 * 0xFF. */
START_TEST(row_lies_where_the_layout_says_and_all_of_it_is_the_value)
{
	const uint32_t entries = _i ? 2 : 64, row = _i ? 1 : 5;
	const uint32_t values = _i ? 576 : 2880, scales = _i ? 1160 : 36904;
	const uint16_t rope = test_bf16(-3);
	uint8_t *page;
	uint32_t i;

	v4_open(&w, 1, entries, 1, 1, 0);
	page = (uint8_t *)w.a.cache.base + w.a.cache.page_stride_bytes;
	memset(page + values, 0x3C, 448); /* 1.5 */
	for (i = 0; i < 64; i++)
		memcpy(page + values + 448 + i * 2, &rope, 2);
	for (i = 0; i < 7; i++)
		page[scales + i] = (uint8_t)(127 + i);
	for (i = 0; i < V4_TOKENS; i++)
		v4_slots(&w, i)[0] = (int32_t)(entries + row);
	v4_check(&f, &w);
	for (i = 0; i < 448; i++)
		ck_assert_uint_eq(v4_out(&w, 0, 0)[i],
				  test_bf16(ldexpf(1.5f, (int)i / 64)));
	for (; i < 512; i++)
		ck_assert_uint_eq(v4_out(&w, 0, 0)[i], rope);
}
END_TEST

/* Byte 0 is 2^-127: 1 * 2^-127 is a subnormal bf16 number, bits 0x0040. Byte
 * 254 is 2^127; 448 times that is inf. 255 is NaN. */
START_TEST(scale_bytes_at_both_ends)
{
	uint32_t d;

	v4_open(&w, 1, 64, 1, 1, 0);
	v4_make_odd(&w);
	zero_q();
	v4_put(&w.a.cache, 3, 1, 0);
	v4_put(&w.a.cache, 4, 448, 0);
	v4_put(&w.a.cache, 5, 1, 0);
	memset(v4_scales(&w.a.cache, 3), 0, 7);
	memset(v4_scales(&w.a.cache, 4) + 6, 254, 1);
	memset(v4_scales(&w.a.cache, 5) + 6, 255, 1);
	for (d = 0; d < 3; d++)
		v4_slots(&w, d)[0] = 3 + (int32_t)d;
	for (d = 384; d < 448; d++) /* of inf this would be a score of -inf */
		w.q[2 * w.a.q_token_stride_elems + d] = test_bf16(-1);
	v4_run(&f, &w);
	for (d = 0; d < 448; d++)
		ck_assert_uint_eq(v4_out(&w, 0, 0)[d], 0x0040);
	/* q = 0 times inf or NaN is NaN */
	ck_assert_float_nan(v4_lse(&w, 1, 0));
	ck_assert_float_nan(v4_lse(&w, 2, 0));
	expect_clean();
}
END_TEST

/* 7 * 2^-9 * 2^-127 is 7 / 8 of the least subnormal bf16 number, which is what
 * the value becomes. Kernels for Hopper make f16 of rows. */
START_TEST(a_subnormal_value_is_rounded)
{
	const uint32_t rounds = fixture_on_cpu() || fixture_tiles(&f);
	uint32_t d;

	v4_open(&w, 1, 64, 1, 1, 0);
	zero_q();
	v4_put(&w.a.cache, 3, 0x7p-9f, 0);
	memset(v4_scales(&w.a.cache, 3), 0, 7);
	for (d = 0; d < V4_TOKENS; d++)
		v4_slots(&w, d)[0] = 3;
	v4_run(&f, &w);
	for (d = 0; d < 448 && rounds; d++)
		ck_assert_uint_eq(v4_out(&w, 0, 0)[d], 1);
	expect_clean();
}
END_TEST

/* q = 0: the mean of 1, 2 and of 3, 6 in the second cache is 3, lse = ln 4. */
START_TEST(both_caches_count_alike)
{
	v4_open(&w, 2, 64, 70, 2, 66);
	zero_q();
	v4_put(&w.a.cache, 60, 1, 1);
	v4_put(&w.a.cache, 61, 2, 2);
	v4_put(&w.a.extra_cache, 60, 3, 3);
	v4_put(&w.a.extra_cache, 7, 6, 6);
	v4_slots(&w, 0)[0] = 60;
	v4_slots(&w, 0)[69] = 61;
	v4_extra(&w, 0)[1] = 60;
	v4_extra(&w, 0)[65] = 7;
	v4_check(&f, &w);
	all_out(0, 1, 3);
	ck_assert_float_eq_tol(v4_lse(&w, 0, 1), 1.3862944f, 1e-6f);
}
END_TEST

/* q = 0: (1 + 1 + 4 + 4 + 5) / 5 = 3, lse = ln 5; all other
 * rows are NaN. */
START_TEST(slot_that_occurs_twice_counts_twice_in_either_list)
{
	v4_open(&w, 2, 64, 70, 2, 66);
	zero_q();
	v4_put(&w.a.cache, 60, 1, 1);
	v4_put(&w.a.extra_cache, 7, 4, 4);
	v4_put(&w.a.cache, 9, 5, 5);
	v4_slots(&w, 0)[0] = v4_slots(&w, 0)[69] = 60;
	v4_slots(&w, 0)[1] = 9;
	v4_extra(&w, 0)[2] = v4_extra(&w, 0)[65] = 7;
	v4_check(&f, &w);
	all_out(0, 1, 3);
	ck_assert_float_eq_tol(v4_lse(&w, 0, 1), 1.6094379f, 1e-6f);
}
END_TEST

/* Scores 1 and 0, softmax_scale ln 2 / 2: in one block the second weighs
 * bf16(2^-0.5) = 0.70703125, in a block of its own 2^-0.5: values 1 and -1.5
 * give -145.27 and -145.55 times 2^-12 (see test_sparse_decode.c). The second
 * cache's entries never share a block with the first's. */
START_TEST(second_cache_starts_a_block_of_its_own)
{
	uint32_t t;

	v4_open(&w, 1, 64, 2, 64, 2);
	v4_make_odd(&w);
	zero_q();
	for (t = 0; t < 2; t++)
		w.q[t * w.a.q_token_stride_elems + 448] = test_bf16(1);
	v4_put(&w.a.cache, 0, 1, 1);
	v4_put(&w.a.cache, 1, -1.5f, 0);
	v4_put(&w.a.extra_cache, 1, -1.5f, 0);
	v4_slots(&w, 0)[0] = v4_slots(&w, 1)[0] = 0;
	v4_slots(&w, 0)[1] = v4_extra(&w, 1)[0] = 1;
	w.a.softmax_scale = 0.34657359f;
	v4_check(&f, &w);
	ck_assert_uint_eq(
		v4_out(&w, 0, 0)[0],
		test_bf16((fixture_tiles(&f) ? -146 : -145) * 0x1p-12f));
	ck_assert_uint_eq(v4_out(&w, 1, 0)[0], test_bf16(-146 * 0x1p-12f));
}
END_TEST

/* q = 0, a key of 3 in each cache: lse = ln 2. The sink is one more key of
 * weight exp(sink): 0 leaves 2/3, ln 2 a half, +inf nothing, -inf all. */
START_TEST(sink_counts_once_for_both_caches)
{
	const float sinks[4] = {0, 0.693147181f, INFINITY, -INFINITY};
	const float want[4] = {2, 1.5f, 0, 3};
	uint32_t h;

	v4_open(&w, 4, 64, 1, 64, 1);
	zero_q();
	v4_put(&w.a.cache, 0, 3, 3);
	v4_put(&w.a.extra_cache, 0, 3, 3);
	v4_slots(&w, 0)[0] = v4_extra(&w, 0)[0] = 0;
	memcpy(w.sink, sinks, sizeof sinks);
	w.a.attn_sink = w.sink;
	v4_check(&f, &w);
	for (h = 0; h < 4; h++) {
		all_out(0, h, want[h]);
		ck_assert_float_eq_tol(v4_lse(&w, 0, h), 0.6931472f, 1e-6f);
	}
}
END_TEST

START_TEST(token_without_keys_in_both_caches_is_empty)
{
	v4_open(&w, 2, 64, 70, 64, 70);
	v4_choose(&w);
	w.lens[0] = w.extra_lens[0] = 0;
	w.lens[1] = w.extra_lens[1] = 70;
	w.lens[2] = 0;
	w.extra_lens[2] = 5;
	memset(v4_slots(&w, 1), 0xFF, 70 * 4);
	memset(v4_extra(&w, 1), 0xFF, 70 * 4);
	w.a.topk_lens = w.lens;
	w.a.extra_topk_lens = w.extra_lens;
	w.a.empty_lse = (uint32_t)_i;
	v4_check(&f, &w);
	all_out(0, 1, 0);
	all_out(1, 1, 0);
	ck_assert_float_eq(v4_lse(&w, 1, 0), _i ? -INFINITY : INFINITY);
	expect_clean();
}
END_TEST

START_TEST(extra_slot_outside_its_cache_does_not_count_and_is_reported)
{
	const int32_t hostile[5] = {INT32_MIN, INT32_MAX, -2, 0, 1};
	const int32_t limit = 2 * (int32_t)((V4_SLOTS + 1) / 2);

	v4_open(&w, 2, 64, 20, 2, 70);
	v4_choose(&w);
	v4_extra(&w, 1)[66] = _i < 3 ? hostile[_i] : limit + hostile[_i];
	v4_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_INDEX);
	ck_assert_uint_eq(fixture_status(&f).row, 1);
}
END_TEST

START_TEST(garbage_past_both_lengths_equals_minus_one_bit_for_bit)
{
	uint16_t *kept;
	uint32_t t, i;

	v4_open(&w, 3, 64, 130, 2, 70);
	v4_choose(&w);
	for (t = 0; t < V4_TOKENS; t++) {
		w.lens[t] = 30 + 40 * (int32_t)t;
		w.extra_lens[t] = 68 - 34 * (int32_t)t;
		for (i = (uint32_t)w.lens[t]; i < 130; i++)
			v4_slots(&w, t)[i] = -1;
		for (i = (uint32_t)w.extra_lens[t]; i < 70; i++)
			v4_extra(&w, t)[i] = -1;
	}
	v4_run(&f, &w);
	kept = malloc(w.out_elems * 2);
	memcpy(kept, w.out, w.out_elems * 2);
	for (t = 0; t < V4_TOKENS; t++) {
		for (i = (uint32_t)w.lens[t]; i < 130; i++)
			v4_slots(&w, t)[i] = INT32_MAX - (int32_t)i;
		for (i = (uint32_t)w.extra_lens[t]; i < 70; i++)
			v4_extra(&w, t)[i] = INT32_MIN + (int32_t)i;
	}
	w.a.topk_lens = w.lens;
	w.a.extra_topk_lens = w.extra_lens;
	v4_run(&f, &w);
	ck_assert_mem_eq(w.out, kept, w.out_elems * 2);
	expect_clean();
	free(kept);
}
END_TEST

/* Three pages of 3 GiB each; only what is touched takes memory. */
START_TEST(slot_beyond_four_gib_is_found_in_both_caches)
{
	const uint64_t stride = UINT64_C(3) << 30;
	void *base = test_map(3 * stride);
	void *own[2];

	v4_open(&w, 2, 64, 4, 64, 4);
	own[0] = w.a.cache.base;
	own[1] = w.a.extra_cache.base;
	w.a.cache.base = w.a.extra_cache.base = base;
	w.a.cache.pages = w.a.extra_cache.pages = 3;
	w.a.cache.page_stride_bytes = stride;
	w.a.extra_cache.page_stride_bytes = stride;
	v4_put(&w.a.cache, 190, 1.5f, 2);
	v4_put(&w.a.cache, 70, -1, 1);
	v4_slots(&w, 0)[0] = v4_extra(&w, 1)[2] = 190;
	v4_slots(&w, 1)[3] = v4_extra(&w, 2)[0] = 70;
	v4_check(&f, &w);
	expect_clean();
	w.a.cache.base = own[0];
	w.a.extra_cache.base = own[1];
	munmap(base, 3 * stride);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{results_equal_dense_attention_for_any_shape, 32},
		{both_caches_count_alike, 1},
		{slot_that_occurs_twice_counts_twice_in_either_list, 1},
		{second_cache_starts_a_block_of_its_own, 1},
	};
	const theme_test edge[] = {
		{lengths_cut_both_lists, 8},
		{scale_bytes_at_both_ends, 1},
		{a_subnormal_value_is_rounded, 1},
		{sink_counts_once_for_both_caches, 1},
		{token_without_keys_in_both_caches_is_empty, 2},
		{extra_slot_outside_its_cache_does_not_count_and_is_reported,
		 5},
	};
	const theme_test layout[] = {
		{row_lies_where_the_layout_says_and_all_of_it_is_the_value, 2},
		{slot_beyond_four_gib_is_found_in_both_caches, 1},
	};
	const theme_test determinism[] = {
		{garbage_past_both_lengths_equals_minus_one_bit_for_bit, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
