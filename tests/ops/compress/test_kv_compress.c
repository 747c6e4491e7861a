/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: whole caches compared with keys in double, and the ring with the
 * paged state bit for bit.
 */
#include "tests/harness/themes.h"
#include "tests/ops/compress/compress_rig.h"
#include "tests/reference/narrow_ref.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	uint32_t state;
	uint32_t cache;
	uint32_t encoding;
} kinds[] = {
	{SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_FP8, SPMLA_E4M3_FN},
	{SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_BF16, SPMLA_E4M3_FN},
	{SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_E4M3, SPMLA_E4M3_FN},
	{SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_INDEX_FP8, SPMLA_E4M3_FN},
	{SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_INDEX_MXFP4, SPMLA_E4M3_FN},
	{SPMLA_LAYOUT_STATE_128, SPMLA_LAYOUT_INDEX_FP8, SPMLA_E4M3_FN},
	{SPMLA_LAYOUT_STATE_128, SPMLA_LAYOUT_INDEX_MXFP4, SPMLA_E4M3_FN},
	{SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_FP8, SPMLA_E4M3_FN},
	{SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_BF16, SPMLA_E4M3_FN},
	{SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_E4M3, SPMLA_E4M3_FN},
	{SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_E4M3, SPMLA_E4M3_FNUZ},
	{SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_E4M3, SPMLA_E4M3_FNUZ},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uint32_t
groups_of(int kind)
{
	return kinds[kind].state == SPMLA_LAYOUT_STATE_512 ||
			       kinds[kind].state == SPMLA_LAYOUT_STATE_128
		       ? 3
		       : 9;
}

static void
open_kind(compress_rig *r, int kind, uint32_t entries, uint32_t pad)
{
	compress_rig_open(r, kinds[kind].state, kinds[kind].cache,
			  groups_of(kind), entries, pad);
	r->a.cache.encoding = kinds[kind].encoding;
}

/* One row from its beginning, one with some of it cached, one inside a group
 * and to its end; PAGED with all of it in the state. At ratio 128 a key is made
 * whole or by several blocks. */
START_TEST(keys_of_any_layout_equal_sums_in_double)
{
	static const uint32_t entries[3] = {64, 2, 3};
	uint32_t i, n;
	compress_rig r;

	for (i = 0; i < 3; i++) {
		open_kind(&r, _i, entries[i], 16 * i);
		n = r.history;
		if (i)
			compress_rig_split(&r);
		compress_rig_put(&r, 0, 0, n);
		compress_rig_put(&r, 1, 0, n);
		compress_rig_put(&r, 2, 0, n);
		compress_rig_request(&r, 2, 0, i == 0 ? n : n / 2);
		compress_rig_request(&r, 0, n / 3, n - n / 3);
		compress_rig_request(&r, 1, n - r.a.ratio - 1, r.a.ratio + 1);
		compress_rig_check(&r);
		ck_assert_uint_eq(fixture_status(&r.f).count, 0);
		compress_rig_close(&r);
	}
}
END_TEST

/* The state is NaN, except for the positions that a ring keeps. */
START_TEST(keys_of_a_ring_equal_sums_in_double)
{
	compress_rig r;
	uint32_t n, half;

	open_kind(&r, _i, 16, 0);
	n = r.history;
	half = n / 2 + 1; /* inside a group */
	compress_rig_ring(&r, r.group);
	compress_rig_split(&r);
	compress_rig_put(&r, 1, half > r.group ? half - r.group : 0, half);
	compress_rig_request(&r, 0, 0, n);
	compress_rig_request(&r, 1, half, n - half);
	compress_rig_put(&r, 2, n - r.group - 1, n - 1);
	compress_rig_request(&r, 2, n - 1, 1);
	compress_rig_check(&r);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	compress_rig_close(&r);
}
END_TEST

/* Three rows, cut into steps at random; PAGED saves before it compresses, RING
 * after. Every key, and so the whole cache, has the same bytes. */
START_TEST(a_ring_gives_the_bits_of_the_paged_state)
{
	uint64_t rng = test_seed() + (uint64_t)_i;
	uint32_t at[COMPRESS_RIG_ROWS] = {0}, row, left;
	compress_rig paged, ring;

	open_kind(&paged, _i, 8, 0);
	open_kind(&ring, _i, 8, 0);
	compress_rig_ring(&ring, ring.group + rng_below(&rng, 3) * 4);
	memcpy(ring.kv, paged.kv, (uint64_t)ring.most * ring.width * 4);
	memcpy(ring.score, paged.score, (uint64_t)ring.most * ring.width * 4);
	memcpy(ring.ape, paged.ape, (uint64_t)ring.a.ratio * ring.width * 4);
	memcpy(ring.norm, paged.norm, ring.dim * 4);
	do {
		paged.a.tokens = ring.a.tokens = 0;
		for (row = left = 0; row < COMPRESS_RIG_ROWS; row++) {
			const uint32_t rest = ring.history - at[row];
			uint32_t query = rng_below(&rng, ring.history);

			query = rng_below(&rng, 2) ? query % 4 : query;
			query = query < rest ? query : rest;
			compress_rig_request(&paged, row, at[row], query);
			compress_rig_request(&ring, row, at[row], query);
			at[row] += query;
			left += ring.history - at[row];
		}
		compress_rig_save(&paged);
		compress_rig_run(&paged);
		compress_rig_run(&ring);
		compress_rig_save(&ring);
	} while (left > 0);
	check_bytes(ring.cache, paged.cache, ring.cache_bytes);
	ck_assert_uint_eq(fixture_status(&paged.f).count, 0);
	ck_assert_uint_eq(fixture_status(&ring.f).count, 0);
	compress_rig_close(&paged);
	compress_rig_close(&ring);
}
END_TEST

START_TEST(a_key_does_not_depend_on_its_neighbours)
{
	uint8_t alone[512];
	compress_rig r;

	compress_rig_open(&r, SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_E4M3, 9,
			  4, 0);
	compress_rig_put(&r, 2, 0, r.history);
	compress_rig_request(&r, 2, 0, r.history);
	r.slots[19] = 14;
	r.slots[35] = -1;
	compress_rig_run(&r);
	memcpy(alone, r.cache + 14 * 512, 512);
	r.a.tokens = 1;
	r.a.positions = (const int32_t *)r.a.positions + 19;
	r.a.token_row += 19;
	r.a.slot_mapping += 19;
	compress_rig_reset(&r);
	compress_rig_run(&r);
	ck_assert_mem_eq(r.cache + 14 * 512, alone, 512);
	compress_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{keys_of_any_layout_equal_sums_in_double, KINDS},
		{keys_of_a_ring_equal_sums_in_double, KINDS},
	};
	const theme_test determinism[] = {
		{a_ring_gives_the_bits_of_the_paged_state, KINDS},
		{a_key_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
