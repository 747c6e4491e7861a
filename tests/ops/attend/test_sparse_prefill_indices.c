/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_prefill: which indices count, and that nothing else is ever read.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/prefill_world.h"

static fixture f;
static prefill_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = PREFILL_HEADS;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	prefill_close(&w);
	fixture_close(&f);
}

/* Token 1 has -1 only, token 2 indices outside kv, token 0 length 0. */
START_TEST(token_without_a_key_is_zero_and_its_logits_as_asked)
{
	const float sinks[3] = {1, INFINITY, -INFINITY};
	uint32_t t, i;

	prefill_open(&w, 576, 3, 130);
	prefill_choose(&w);
	memset(prefill_indices(&w, 1), 0xFF, 130 * sizeof(int32_t));
	for (i = 0; i < 130; i++)
		prefill_indices(&w, 2)[i] = PREFILL_ROWS + (int32_t)i;
	w.lens[0] = _i & 4 ? 0 : -5;
	w.lens[1] = w.lens[2] = 130;
	w.a.topk_lens = w.lens;
	w.a.empty_lse = (uint32_t)_i & 1;
	w.a.lse_base = (uint32_t)_i >> 1 & 1;
	memcpy(w.sink, sinks, sizeof sinks);
	w.a.attn_sink = _i & 4 ? w.sink : NULL;
	prefill_check(&f, &w);
	for (t = 0; t < 3; t++) {
		prefill_all_out(&w, t, 2, 0);
		ck_assert_float_eq(prefill_lse(&w, t, 1),
				   _i & 1 ? -INFINITY : INFINITY);
		ck_assert_float_eq(prefill_max(&w, t, 1), -INFINITY);
	}
}
END_TEST

START_TEST(only_the_first_entries_count_up_to_the_length)
{
	static const int32_t lens[10] = {0,   1,   63,  64,        65,
					 128, 129, 130, INT32_MAX, -9};

	prefill_open(&w, 512, 2, 130);
	prefill_choose(&w);
	w.lens[0] = lens[_i];
	w.lens[1] = lens[9 - _i];
	w.lens[2] = 100;
	w.a.topk_lens = w.lens;
	prefill_check(&f, &w);
}
END_TEST

/* The list ends at a page that may not be read; the rest would be 4 GiB. */
START_TEST(entries_past_the_length_are_not_read)
{
	uint8_t *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(map != MAP_FAILED && !mprotect(map + 4096, 4096, PROT_NONE));
	prefill_open(&w, 576, 2, 80);
	prefill_choose(&w);
	memcpy(map + 4096 - 66 * 4, w.indices, 66 * 4);
	w.a.indices = (int32_t *)(void *)(map + 4096 - 66 * 4);
	w.a.topk = 1u << 30;
	w.a.indices_stride_elems = 1 << 30;
	w.a.tokens = 1;
	w.lens[0] = 66;
	w.a.topk_lens = w.lens;
	prefill_check(&f, &w);
	munmap(map, 8192);
}
END_TEST

START_TEST(without_kv_every_index_is_invalid)
{
	prefill_open(&w, 512, 2, 20);
	prefill_choose(&w);
	w.a.kv = NULL;
	w.a.kv_rows = 0;
	w.a.kv_stride_elems = 0;
	prefill_check(&f, &w);
	prefill_all_out(&w, 0, 0, 0);
}
END_TEST

/* q = 0: (1 + 1 + 4) / 3 = 2. Row 199 is the last. */
START_TEST(last_row_counts_and_a_row_that_occurs_twice_counts_twice)
{
	prefill_open(&w, 576, 3, 130);
	prefill_zero_q(&w);
	prefill_put(&w, 11, 1, 0);
	prefill_put(&w, PREFILL_ROWS - 1, 4, 0);
	prefill_indices(&w, 0)[0] = 11;
	prefill_indices(&w, 0)[70] = PREFILL_ROWS - 1;
	prefill_indices(&w, 0)[129] = 11;
	prefill_check(&f, &w);
	prefill_all_out(&w, 0, 1, 2);
}
END_TEST

/* Every index that is not negative counts then. */
START_TEST(as_many_rows_as_32_bits_count_may_be_there)
{
	prefill_open(&w, 576, 2, 70);
	prefill_put_random(&w, 7);
	prefill_put_random(&w, 8);
	prefill_indices(&w, 0)[0] = 8;
	prefill_indices(&w, 1)[69] = 7;
	w.a.kv_rows = UINT32_MAX;
	prefill_check(&f, &w);
}
END_TEST

/* prefill_open filled kv with NaN; only chosen rows were written. A score of 0
 * has the weight 1 in every kernel. */
START_TEST(nan_in_rows_that_do_not_count_is_not_read)
{
	uint32_t t, d;

	prefill_open(&w, 576, 3, 70);
	prefill_zero_q(&w);
	prefill_put_random(&w, 44);
	for (t = 0; t < PREFILL_TOKENS; t++) {
		prefill_indices(&w, t)[69] = 44;
		prefill_indices(&w, t)[3] = PREFILL_ROWS;
	}
	prefill_check(&f, &w);
	for (d = 0; d < REF_LATENT; d++)
		ck_assert_uint_eq(prefill_out(&w, 2, 2)[d],
				  prefill_row(&w, 44)[d]);
}
END_TEST

/* Rows 3 GiB apart; only what is touched takes memory. */
START_TEST(row_beyond_four_gib_is_found)
{
	const uint64_t stride = UINT64_C(3) << 30;
	uint16_t *kv = test_map(3 * stride);

	prefill_open(&w, 576, 2, 4);
	free(w.kv);
	w.kv = kv;
	w.a.kv = kv;
	w.a.kv_rows = 3;
	w.a.kv_stride_elems = (int64_t)(stride / 2);
	prefill_put_random(&w, 1);
	prefill_put_random(&w, 2);
	prefill_indices(&w, 0)[0] = 2;
	prefill_indices(&w, 0)[2] = 1;
	prefill_check(&f, &w);
	w.kv = NULL;
	munmap(kv, 3 * stride);
}
END_TEST

START_TEST(garbage_past_the_length_equals_minus_one_bit_for_bit)
{
	static const int32_t garbage[4] = {INT32_MAX, INT32_MIN, 0, 12345};
	uint8_t *kept;
	uint32_t t, i;

	prefill_open(&w, _i ? 512 : 576, 3, 130);
	prefill_choose(&w);
	w.lens[0] = 70;
	w.lens[1] = 1;
	w.lens[2] = 0;
	for (t = 0; t < PREFILL_TOKENS; t++)
		for (i = (uint32_t)w.lens[t]; i < 130; i++)
			prefill_indices(&w, t)[i] = -1;
	kept = prefill_results(&f, &w, NULL);
	w.a.topk_lens = w.lens;
	free(prefill_results(&f, &w, kept));
	for (t = 0; t < PREFILL_TOKENS; t++)
		for (i = (uint32_t)w.lens[t]; i < 130; i++)
			prefill_indices(&w, t)[i] = garbage[i % 4];
	free(prefill_results(&f, &w, kept));
	free(kept);
}
END_TEST

SUITE
{
	const theme_test edge[] = {
		{token_without_a_key_is_zero_and_its_logits_as_asked, 8},
		{only_the_first_entries_count_up_to_the_length, 10},
		{entries_past_the_length_are_not_read, 1},
		{without_kv_every_index_is_invalid, 1},
		{last_row_counts_and_a_row_that_occurs_twice_counts_twice, 1},
		{as_many_rows_as_32_bits_count_may_be_there, 1},
		{nan_in_rows_that_do_not_count_is_not_read, 1},
	};
	const theme_test layout[] = {{row_beyond_four_gib_is_found, 1}};
	const theme_test determinism[] = {
		{garbage_past_the_length_equals_minus_one_bit_for_bit, 2},
	};
	const theme themes[] = {
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
