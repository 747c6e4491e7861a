/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: where its rows go, for any number of requests, ends and places of
 * the output. Rows are MLA_BF16: they are copies.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/gather_rig.h"

#include "spmla/ops/kv_gather.h"

static gather_rig g;
static int32_t starts[2] = {0, 20};
static uint16_t dst[60 * 576];

static void
setup(void)
{
	gather_open(&g, SPMLA_LAYOUT_MLA_BF16, 16, 2, 4, 0);
	memset(dst, 0x5A, sizeof dst);
}

static void
teardown(void)
{
	gather_close(&g);
}

/* As a prefill has them, whose shape is larger than its step. */
START_TEST(rows_behind_a_requests_end_are_left_alone)
{
	const int32_t ends[2] = {starts[1] - 3, 44};
	spmla_kv_gather_args a = gather_two_requests(&g, starts, dst);
	uint16_t *whole = test_alloc(60 * 576 * 2, 0);
	int32_t n;

	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	memcpy(whole, dst, 60 * 576 * 2);
	memset(dst, 0x5A, 60 * 576 * 2);
	a.workspace_ends = ends;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_uint_eq(fixture_status(&g.f).count, 0);
	for (n = 0; n < 50; n++) {
		const uint32_t owned =
			n < ends[0] || (n >= starts[1] && n < 44);

		if (owned)
			ck_assert_mem_eq(dst + n * 576, whole + n * 576, 1152);
		else
			ck_assert_uint_eq(dst[n * 576], 0x5A5A);
	}
	free(whole);
}
END_TEST

/* More than any block of a device has items; two keys each. */
START_TEST(any_number_of_requests_find_their_keys)
{
	enum { REQUESTS = 700 };
	static int32_t many[REQUESTS], first[REQUESTS], row[REQUESTS];
	uint16_t *out = test_alloc(2 * REQUESTS * 1152, 0x5A);
	spmla_kv_gather_args a = gather_two_requests(&g, starts, dst);
	int32_t n;

	for (n = 0; n < REQUESTS; n++) {
		many[n] = 2 * n;
		first[n] = n % 60;
		row[n] = n % 2;
	}
	a.requests = REQUESTS;
	a.keys = 2 * REQUESTS;
	a.workspace_starts = many;
	a.seq_starts = first;
	a.req_row = row;
	a.dst = out;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	for (n = 0; n < 2 * REQUESTS; n++) {
		const int32_t j = first[n / 2] + n % 2;
		const int32_t page = g.table[row[n / 2] * 7 + j / 16];

		ck_assert_mem_eq(out + n * 576,
				 g.pool + page * 18432 + j % 16 * 1152, 1152);
	}
	free(out);
}
END_TEST

START_TEST(output_may_lie_at_any_address_and_stride)
{
	static uint16_t odd[60 * 577];
	spmla_kv_gather_args a = gather_two_requests(&g, starts, dst);
	uint32_t by, n;

	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	for (by = 1; by < 4; by++) {
		memset(odd, 0x5A, sizeof odd);
		a.dst = odd + by;
		a.dst_stride_elems = 576 + by % 2;
		ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
		for (n = 0; n < 50; n++)
			ck_assert_mem_eq(a.dst + n * a.dst_stride_elems,
					 dst + n * 576, 1152);
		ck_assert_uint_eq(odd[0], 0x5A5A);
		ck_assert_uint_eq(a.dst[50 * a.dst_stride_elems], 0x5A5A);
	}
}
END_TEST

/* Four columns of 16: position 1000 is the 40th of 64, of the third page, its
 * entry 8; 24 keys later come the entries of the first. 2^31 - 1 is the 63rd.
 */
START_TEST(ring_takes_columns_modulo_their_number)
{
	static const int32_t first[2] = {1000, INT32_MAX};
	spmla_kv_gather_args a = gather_two_requests(&g, starts, dst);
	uint32_t n;

	a.ring = 1;
	a.seq_starts = first;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_uint_eq(fixture_status(&g.f).count, 0);
	for (n = 0; n < 50; n++) {
		const uint32_t b = n >= 20, place = b ? 63 + n - 20 : 40 + n;
		const uint32_t page =
			(uint32_t)g.table[b * 7 + place % 64 / 16];

		ck_assert_mem_eq(dst + n * 576,
				 g.pool + page * 18432 + place % 16 * 1152,
				 1152);
	}
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{rows_behind_a_requests_end_are_left_alone, 1},
		{any_number_of_requests_find_their_keys, 1},
		{output_may_lie_at_any_address_and_stride, 1},
		{ring_takes_columns_modulo_their_number, 1},
	};
	const theme themes[] = {THEME("layout", setup, teardown, layout)};

	return RUN_THEMES(themes);
}
