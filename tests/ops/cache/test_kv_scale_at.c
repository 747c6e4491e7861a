/* SPDX-License-Identifier: Apache-2.0
 *
 * The scale of an e4m3 cache where the device has it: the bytes and values of
 * the same number in the arguments.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/ops/kv_gather.h"
#include "spmla/ops/kv_insert.h"

enum { TOKENS = 3, ENTRIES = 4, BYTES = ENTRIES * 512 };

static fixture f;
static uint16_t *rows, *dst[2];
static uint8_t *pages[2];
static float *scale;

static void
setup(void)
{
	uint64_t rng = test_seed() + 3;
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	rows = test_alloc(TOKENS * 512 * 2, 0);
	scale = test_alloc(sizeof *scale, 0);
	for (i = 0; i < 2; i++) {
		dst[i] = test_alloc(TOKENS * 512 * 2, 0x5A);
		pages[i] = test_alloc(BYTES, 0x5A);
	}
	for (i = 0; i < TOKENS * 512; i++)
		rows[i] = test_bf16(rng_float(&rng));
	*scale = 0.3f;
}

static void
teardown(void)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		free(dst[i]);
		free(pages[i]);
	}
	free(rows);
	free(scale);
	fixture_close(&f);
}

static void
run(uint32_t side)
{
	static const int64_t slot_mapping[TOKENS] = {2, 0, 3};
	static const int32_t slots[TOKENS] = {3, 0, 2};
	spmla_cache cache = SPMLA_CACHE_INIT;
	spmla_kv_insert_args in = {.struct_bytes = sizeof in,
				   .tokens = TOKENS,
				   .dtype = SPMLA_DTYPE_BF16,
				   .kv_c = rows,
				   .kv_c_stride_elems = 512,
				   .slot_mapping = slot_mapping};
	spmla_kv_gather_args out = {.struct_bytes = sizeof out,
				    .keys = TOKENS,
				    .dst = dst[side],
				    .dst_stride_elems = 512,
				    .slots = slots};

	cache.layout = SPMLA_LAYOUT_V4_E4M3;
	cache.entries_per_page = ENTRIES;
	cache.pages = 1;
	cache.page_stride_bytes = BYTES;
	cache.base = pages[side];
	in.cache = out.cache = cache;
	if (side == 0)
		in.kv_scale = out.kv_scale = *scale;
	else
		in.kv_scale_at = out.kv_scale_at = scale;
	ck_assert_int_eq(spmla_kv_insert(f.ctx, &in, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_kv_gather(f.ctx, &out, NULL), SPMLA_OK);
	fixture_drain(&f);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}

START_TEST(a_scale_on_the_device_gives_the_bytes_of_one_in_the_arguments)
{
	run(0);
	run(1);
	ck_assert_mem_eq(pages[0], pages[1], BYTES);
	ck_assert_mem_eq(dst[0], dst[1], TOKENS * 512 * 2);
	/* It is read when the operation runs. */
	*scale = 1.5f;
	run(1);
	ck_assert_mem_ne(pages[0], pages[1], BYTES);
	run(0);
	ck_assert_mem_eq(pages[0], pages[1], BYTES);
	ck_assert_mem_eq(dst[0], dst[1], TOKENS * 512 * 2);
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{a_scale_on_the_device_gives_the_bytes_of_one_in_the_arguments,
		 1},
	};
	const theme themes[] = {THEME("layout", setup, teardown, layout)};

	return RUN_THEMES(themes);
}
