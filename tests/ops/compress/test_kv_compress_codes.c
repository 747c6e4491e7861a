/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes of kv_compress in both encodings of e4m3: every bf16 number becomes its
 * code; and FNUZ has the codes of e4m3fn for the same values over twice the
 * scale, except -0, which is 0, and NaN, which is 0x80.
 */
#include "tests/harness/themes.h"
#include "tests/ops/compress/compress_rig.h"
#include "tests/reference/code_walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Every number -------------------------------------------------------- */

static const struct {
	uint32_t state;
	uint32_t cache;
	uint32_t entry_bytes; /* of codes */
	uint32_t values;      /* that do not turn */
	uint32_t group;       /* of the walk */
	uint32_t split;       /* several blocks make a key */
} walks[] = {
	{SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_FP8, 576, 448, 64, 0},
	{SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_E4M3, 512, 448, 0, 0},
	{SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_FP8, 576, 448, 64, 0},
	{SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_FP8, 576, 448, 64, 1},
	{SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_E4M3, 512, 448, 0, 0},
	{SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_E4M3, 512, 448, 0, 1},
	{SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_INDEX_FP8, 128, 64, 64, 0},
	{SPMLA_LAYOUT_STATE_128, SPMLA_LAYOUT_INDEX_FP8, 128, 64, 64, 0},
};
enum { WALKS = sizeof walks / sizeof *walks };

/* All kv are 1 and so are the mean and its norm: a key is the weights of the
 * norm. One that turns could lose -0; these are zeros. _i / 2: the walk; _i %
 * 2: the encoding. */
START_TEST(every_bf16_is_written_as_its_code)
{
	const uint32_t n = walks[_i / 2].values;
	uint16_t row[448];
	const uint8_t *codes;
	compress_rig r;
	code_walk w;
	uint64_t i;

	compress_rig_open(&r, walks[_i / 2].state, walks[_i / 2].cache, 1, 4,
			  0);
	if (walks[_i / 2].split)
		compress_rig_split(&r);
	r.a.cache.encoding = (uint32_t)_i % 2;
	r.a.norm_eps = 0x1p-126f;
	r.a.e4m3_scale = 1;
	for (i = 0; i < (uint64_t)r.most * r.width; i++)
		r.kv[i] = 1;
	memset(r.norm, 0, r.dim * sizeof *r.norm);
	compress_rig_put(&r, 0, 0, r.history);
	compress_rig_request(&r, 0, r.history - 1, 1);
	codes = r.cache + (uint64_t)r.slots[0] * walks[_i / 2].entry_bytes;
	code_walk_begin(&w, r.a.cache.encoding, walks[_i / 2].group);
	w.brief = 1;
	while (code_walk_more(&w)) {
		code_walk_row(&w, row, n);
		for (i = 0; i < n; i++)
			r.norm[i] = test_bf16_value(row[i]);
		compress_rig_reset(&r);
		compress_rig_run(&r);
		for (i = 0; i < n; i++)
			code_walk_check(&w, row[i], codes[i]);
	}
	code_walk_end(&w);
	compress_rig_close(&r);
}
END_TEST

/* ---- Keys of random states ----------------------------------------------- */

static const struct {
	uint32_t state;
	uint32_t cache;
	uint32_t keys; /* of a row */
} kinds[] = {
	{SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_FP8, 24},
	{SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_FP8, 8},
	{SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_INDEX_FP8, 60},
};

static void
mend(uint8_t *codes, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (codes[i] == 0x80)
			codes[i] = 0;
		else if ((codes[i] & 0x7f) == 0x7f)
			codes[i] = 0x80;
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
	free(want);
	compress_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test values[] = {
		{every_bf16_is_written_as_its_code, 2 * WALKS},
		{keys_have_the_codes_of_e4m3fn_over_twice_the_scale, 6},
	};
	const theme themes[] = {THEME("codes", NULL, NULL, values)};

	return RUN_THEMES(themes);
}
