/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress into FNUZ: the codes of e4m3fn for the same values over twice the
 * scale, except -0, which is 0, and NaN, which is 0x80. Every code comes up,
 * though random keys may lack some of the values from 256 to 448.
 */
#include "tests/harness/themes.h"
#include "tests/ops/compress/compress_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	uint32_t state;
	uint32_t cache;
	uint32_t keys; /* of a row */
} kinds[] = {
	{SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_FP8, 24},
	{SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_FP8, 8},
	{SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_INDEX_FP8, 60},
};

/* Which codes of e4m3fn there were. */
static uint8_t seen[256];

static void
mend(uint8_t *codes, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		seen[codes[i]] = 1;
		if (codes[i] == 0x80)
			codes[i] = 0;
		else if ((codes[i] & 0x7f) == 0x7f)
			codes[i] = 0x80;
	}
}

static void
mend_entry(const spmla_cache *c, uint8_t *page, uint32_t e)
{
	const uint32_t entries = c->entries_per_page;
	uint8_t *scales;
	float scale;
	uint32_t g;

	if (c->layout == SPMLA_LAYOUT_V4_FP8) {
		mend(page + e * 576, 448);
		scales = page + entries * 576 + e * 8;
		for (g = 0; g < 7; g++)
			scales[g] = (uint8_t)(scales[g] + (scales[g] < 255));
		return;
	}
	mend(page + e * 128, 128);
	scales = page + entries * 128 + e * 4;
	memcpy(&scale, scales, sizeof scale);
	scale *= 2;
	memcpy(scales, &scale, sizeof scale);
}

START_TEST(keys_have_the_codes_of_e4m3fn_over_twice_the_scale)
{
	compress_rig r;
	uint8_t *want;
	uint32_t pos, row, i;

	compress_rig_open(&r, kinds[_i / 2].state, kinds[_i / 2].cache,
			  kinds[_i / 2].keys, 3, 0);
	if (_i % 2)
		compress_rig_split(&r);
	r.kv[5] = NAN; /* of one of row 0's keys */
	/* Columns of 18 magnitudes, the smallest of which round to zeros. */
	for (i = 0; i < COMPRESS_RIG_ROWS * r.history * r.width; i++)
		if (i % 4 > 1)
			r.kv[i] = ldexpf(r.kv[i], -(int)(i % r.dim / 4 % 18));
	memset(seen, 0, sizeof seen);
	for (row = 0; row < COMPRESS_RIG_ROWS; row++) {
		compress_rig_put(&r, row, 0, r.history);
		compress_rig_request(&r, row, 0, r.history);
	}
	compress_rig_reset(&r);
	compress_rig_run(&r);
	want = malloc(r.cache_bytes);
	ck_assert_ptr_nonnull(want);
	memcpy(want, r.cache, r.cache_bytes);
	for (row = 0; row < COMPRESS_RIG_ROWS; row++)
		for (pos = r.a.ratio - 1; pos < r.history; pos += r.a.ratio) {
			const int64_t slot = compress_rig_slot(&r, row, pos);

			mend_entry(&r.a.cache,
				   want + slot / 3 *
						   (int64_t)r.a.cache
							   .page_stride_bytes,
				   (uint32_t)(slot % 3));
		}
	compress_rig_reset(&r);
	r.a.cache.encoding = SPMLA_E4M3_FNUZ;
	compress_rig_run(&r);
	ck_assert_mem_eq(r.cache, want, r.cache_bytes);
	for (i = 0; i < 256; i++)
		ck_assert_msg(seen[i] || (i & 0x7f) >= 0x78, "no code 0x%02x",
			      i);
	ck_assert(seen[0x7f]);
	free(want);
	compress_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test values[] = {
		{keys_have_the_codes_of_e4m3fn_over_twice_the_scale, 6},
	};
	const theme themes[] = {THEME("fnuz", NULL, NULL, values)};

	return RUN_THEMES(themes);
}
