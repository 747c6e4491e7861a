/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress of ratio 128 by one block a key, by the kernel for few tokens and
 * by the kernel for many: whatever a call is made of, all write the same bytes
 * and report the same.
 */
#include "spmla/platform/gpu/compress/kv_compress_few_kernel.h"
#include "tests/harness/themes.h"
#include "tests/ops/compress/compress_rig.h"
#include "tests/reference/narrow_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = COMPRESS_FEW, QUERY = 5, ROUNDS = 20, ENOUGH = 6, SPOILT = 200 };

static uint64_t rng;

static uint32_t
one_in(uint32_t n)
{
	return rng_below(&rng, n) == 0;
}

/* One in `rare` of x becomes a number that no batch has. */
static void
spoil(int32_t *x, uint32_t n, uint32_t rare)
{
	static const int32_t hostile[8] = {
		-1, 0, 127, 128, 255, INT32_MIN, INT32_MAX, INT32_MAX - 127};
	uint32_t i;

	for (i = 0; i < n; i++)
		if (one_in(rare))
			x[i] = hostile[rng_below(&rng, 8)];
}

static void
spoil_floats(uint8_t *at, uint64_t bytes)
{
	static const float wild[6] = {NAN,   INFINITY, -INFINITY,
				      -0.0f, 1e-42f,   3e38f};
	uint32_t i;

	for (i = 0; i < SPOILT; i++) {
		const uint64_t k = rng_next(&rng) % (bytes / 4);

		memcpy(at + 4 * k, &wild[rng_below(&rng, 6)], 4);
	}
}

/* Up to five tokens of each row. One of them ends a group and has a slot: with
 * two in the same slot each value could come from either. */
static void
draw_call(compress_rig *r)
{
	uint32_t row, t;

	if (!one_in(4))
		compress_rig_ring(r, 128);
	for (row = 0; row < COMPRESS_RIG_ROWS; row++) {
		const uint32_t query = 2 + rng_below(&rng, QUERY - 1);
		const uint32_t end = 128 * (1 + rng_below(&rng, 3));
		const uint32_t past = end < r->history && one_in(3);
		const uint32_t first = end - query + past;

		/* What a ring's call has is in no state yet. */
		compress_rig_put(r, row, end - 128,
				 r->a.form == SPMLA_STATE_RING ? first : end);
		compress_rig_request(r, row, first, query);
	}
	for (t = 0; t < r->a.tokens; t++)
		if ((r->positions[t] + 1) % 128)
			r->slots[t] = -1;
	if (one_in(2))
		r->a.context_lens = r->lens;
	if (one_in(3))
		spoil_floats(r->state, r->state_bytes);
	if (one_in(3))
		spoil(r->table, COMPRESS_RIG_ROWS * r->a.table_stride_elems,
		      one_in(2) ? 4 : 40);
	if (one_in(3))
		spoil(r->cols, COMPRESS_RIG_ROWS, 3);
	if (one_in(3)) {
		spoil(r->positions, r->a.tokens, 4);
		spoil(r->row, r->a.tokens, 4);
		spoil(r->lens, r->a.tokens, 4);
	}
	if (one_in(4))
		r->slots[rng_below(&rng, r->a.tokens)] = INT64_MAX;
}

/* What a call writes and reports. */
static uint8_t *
outcome(compress_rig *r, spmla_device_status *status)
{
	uint8_t *bytes = test_alloc(r->cache_bytes, 0);

	compress_rig_reset(r);
	compress_rig_run(r);
	memcpy(bytes, r->cache, r->cache_bytes);
	*status = fixture_status(&r->f);
	ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
	return bytes;
}

static void
expect_outcome(compress_rig *r, const uint8_t *bytes,
	       const spmla_device_status *status)
{
	spmla_device_status now;
	uint8_t *got = outcome(r, &now);

	check_bytes(got, bytes, r->cache_bytes);
	ck_assert_uint_eq(now.count, status->count);
	if (now.count) {
		ck_assert_uint_eq(now.fault, status->fault);
		ck_assert_uint_eq(now.row, status->row);
	}
	free(got);
}

static uint32_t
is_written(const compress_rig *r, const uint8_t *bytes)
{
	uint64_t i;

	for (i = 0; i < r->cache_bytes; i++)
		if (bytes[i] != 0xAB)
			return 1;
	return 0;
}

START_TEST(all_ways_give_the_same)
{
	static const uint32_t caches[3] = {SPMLA_LAYOUT_V4_FP8,
					   SPMLA_LAYOUT_V4_BF16,
					   SPMLA_LAYOUT_V4_E4M3};
	const uint32_t rounds = fixture_rounds(ROUNDS, 12);
	uint32_t i, written = 0, told = 0;

	rng = test_seed() + (uint32_t)_i;
	for (i = 0; i < rounds; i++) {
		spmla_device_status status;
		uint8_t *bytes;
		compress_rig r;

		compress_rig_open(&r, SPMLA_LAYOUT_STATE_512, caches[_i], 3,
				  1 + rng_below(&rng, 4), 0);
		draw_call(&r);
		bytes = outcome(&r, &status);
		written += is_written(&r, bytes);
		told += status.count > 0;
		compress_rig_split(&r);
		ck_assert_uint_le(r.a.tokens, FEW);
		expect_outcome(&r, bytes, &status);
		/* And such as end no group. */
		compress_rig_request(&r, 0, 0, FEW);
		expect_outcome(&r, bytes, &status);
		free(bytes);
		compress_rig_close(&r);
	}
	ck_assert_uint_gt(written, 0);
	if (rounds >= ENOUGH) /* fewer may have nothing to report */
		ck_assert_uint_gt(told, 0);
}
END_TEST

SUITE
{
	const theme_test determinism[] = {
		{all_ways_give_the_same, 3},
	};
	const theme themes[] = {
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
