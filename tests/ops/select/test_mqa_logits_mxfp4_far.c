/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits over keys of INDEX_MXFP4: where queries and pages may lie.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/mqa_world.h"

static fixture f;
static mqa_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.index_heads = MQA_HEADS;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	mqa_close(&w);
	fixture_close(&f);
}

/* All keys in the last of `pages` pages, `stride` bytes apart; only what is
 * touched takes memory. */
static void
check_last_page(uint32_t pages, uint64_t stride, uint32_t entries)
{
	const uint32_t last = pages - 1;
	void *base = test_map(pages * stride);
	uint32_t i;

	mqa_open_mxfp4(&w, 3, 64);
	w.a.cache.base = base;
	w.a.cache.entries_per_page = entries;
	w.a.cache.page_stride_bytes = stride;
	w.a.cache.pages = pages;
	for (i = 0; i < 64; i++) {
		memset(mqa_entry(&w.a.cache, last, i), 0x30 + (int)i % 8, 64);
		memset(mqa_scales(&w.a.cache, last, i), 120 + (int)i % 9, 4);
	}
	w.a.columns = 1;
	for (i = 0; i < 3; i++) {
		w.table[i * w.a.table_stride_elems] = (int32_t)last;
		w.lens[i] = 64;
	}
	mqa_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	munmap(base, pages * stride);
}

START_TEST(page_beyond_four_gib_is_found)
{
	check_last_page(3, UINT64_C(3) << 30, 64);
}
END_TEST

/* 2^26 entries of 64 bytes. */
START_TEST(scales_that_begin_at_four_gib_are_found)
{
	check_last_page(1, UINT64_C(68) << 26, 1u << 26);
}
END_TEST

START_TEST(queries_may_lie_at_any_address)
{
	static float aligned[MQA_LOGITS];
	uint8_t *q = test_alloc(MQA_TOKENS * 8 * 64 + 1, 0);

	mqa_open_mxfp4(&w, 8, 61);
	mqa_check(&f, &w);
	memcpy(aligned, w.logits, sizeof aligned);
	memcpy(q + 1, w.q, MQA_TOKENS * 8 * 64);
	w.a.q = q + 1;
	mqa_check(&f, &w);
	ck_assert_mem_eq(w.logits, aligned, sizeof aligned);
	free(q);
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{page_beyond_four_gib_is_found, 1},
		{scales_that_begin_at_four_gib_are_found, 1},
		{queries_may_lie_at_any_address, 1},
	};
	const theme themes[] = {

		THEME("layout", setup, teardown, layout),

	};

	return RUN_THEMES(themes);
}
