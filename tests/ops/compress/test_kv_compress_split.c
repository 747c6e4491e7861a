/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: keys of ratio 128 that several blocks make, of calls of few
 * tokens and of more, which have kernels of their own. They have the bits of
 * those that one block makes, and what blocks count by and hand on is zeros
 * after each call (compress_rig_run looks), so that any call may follow. In the
 * emulator no block has to wait for another, as they run one after another.
 */
#include "spmla/platform/gpu/compress/kv_compress_few_kernel.h"
#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"
#include "tests/ops/compress/compress_rig.h"
#include "tests/reference/narrow_ref.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = COMPRESS_FEW };

static const uint32_t caches[3] = {SPMLA_LAYOUT_V4_FP8, SPMLA_LAYOUT_V4_BF16,
				   SPMLA_LAYOUT_V4_E4M3};

/* Three rows of three groups; RING, with half of each row in the call. */
static void
open_ring(compress_rig *r, uint32_t cache)
{
	uint32_t row;

	compress_rig_open(r, SPMLA_LAYOUT_STATE_512, cache, 3, 2, 0);
	compress_rig_ring(r, 128);
	for (row = 0; row < COMPRESS_RIG_ROWS; row++) {
		compress_rig_put(r, row, 60 + row, 188 + row);
		compress_rig_request(r, row, 188 + row, 384 - 188 - row);
	}
}

/* Two tokens, which end a group each of what is in the state; then, if `many`,
 * such as end none and make the call one of more than few tokens. */
static void
open_two(compress_rig *r, uint32_t cache, uint32_t many)
{
	compress_rig_open(r, SPMLA_LAYOUT_STATE_512, cache, 3, 2, 0);
	compress_rig_ring(r, 128);
	compress_rig_split(r);
	compress_rig_put(r, 1, 256, 383);
	compress_rig_put(r, 2, 128, 256);
	compress_rig_request(r, 1, 383, 1);
	compress_rig_request(r, 2, 255, 1);
	if (many)
		compress_rig_request(r, 0, 0, FEW - 1);
}

static uint8_t *
bytes_of(compress_rig *r)
{
	uint8_t *bytes = test_alloc(r->cache_bytes, 0);

	compress_rig_reset(r);
	compress_rig_run(r);
	memcpy(bytes, r->cache, r->cache_bytes);
	return bytes;
}

START_TEST(a_key_has_the_bits_of_one_that_one_block_makes)
{
	uint8_t *whole;
	compress_rig r;

	open_ring(&r, caches[_i]);
	whole = bytes_of(&r);
	compress_rig_split(&r);
	compress_rig_check(&r);
	check_bytes(r.cache, whole, r.cache_bytes);
	free(whole);
	compress_rig_close(&r);
}
END_TEST

/* A call of one token, of two and of all. */
START_TEST(a_key_does_not_depend_on_how_many_there_are)
{
	const uint64_t stride = 512 + COMPRESS_RIG_GAP;
	uint8_t *all;
	uint32_t first;
	compress_rig r;
	spmla_kv_compress_args a;

	open_ring(&r, SPMLA_LAYOUT_V4_E4M3);
	compress_rig_split(&r);
	all = bytes_of(&r);
	a = r.a;
	compress_rig_save(&r);
	compress_rig_reset(&r);
	for (first = 0; first < a.tokens; first += first % 3 ? 2 : 1) {
		const uint32_t rest = a.tokens - first;

		/* What was before it is in the state by now: the ring has the
		 * row's last 128 positions, so of the last group alone. */
		r.a.tokens = first % 3 && rest > 1 ? 2 : 1;
		if (r.positions[first] < 256)
			continue;
		r.a.positions = (const int32_t *)a.positions + first;
		r.a.token_row = a.token_row + first;
		r.a.slot_mapping = a.slot_mapping + first;
		r.a.kv = (const float *)a.kv + first * stride;
		r.a.score = (const float *)a.score + first * stride;
		compress_rig_run(&r);
	}
	for (first = 0; first < a.tokens; first++)
		if (r.positions[first] == 383) {
			const uint64_t at = (uint64_t)r.slots[first] * 512;

			ck_assert_mem_eq(r.cache + at, all + at, 512);
		}
	free(all);
	compress_rig_close(&r);
}
END_TEST

/* Rows that no load of 16 bytes may read, of kv, of score or of ape. */
START_TEST(rows_need_not_be_aligned)
{
	static const uint32_t states[3] = {SPMLA_LAYOUT_STATE_512,
					   SPMLA_LAYOUT_STATE_1024,
					   SPMLA_LAYOUT_STATE_256};
	const uint32_t index = states[_i] == SPMLA_LAYOUT_STATE_256;
	uint8_t *aligned;
	uint32_t i;
	compress_rig r;

	compress_rig_open(&r, states[_i],
			  index ? SPMLA_LAYOUT_INDEX_FP8 : SPMLA_LAYOUT_V4_FP8,
			  3, 2, 0);
	compress_rig_ring(&r, r.group);
	compress_rig_split(&r);
	compress_rig_request(&r, 1, 0, r.history);
	aligned = bytes_of(&r);
	for (i = 0; i < 3; i++) {
		const uint64_t n = (uint64_t)r.most * (r.width + 8);
		float *room = test_alloc((n + 1) * 4, 0xff);
		const spmla_kv_compress_args a = r.a;

		if (i == 2) {
			memcpy(room + 1, r.ape,
			       (uint64_t)r.a.ratio * r.width * 4);
			r.a.ape = room + 1;
		} else {
			memcpy(room + 1, i ? r.call_score : r.call_kv, n * 4);
			*(i ? &r.a.score : &r.a.kv) = room + 1;
		}
		compress_rig_check(&r);
		check_bytes(r.cache, aligned, r.cache_bytes);
		r.a = a;
		free(room);
	}
	free(aligned);
	compress_rig_close(&r);
}
END_TEST

/* Groups that begin in the state and end in a call of as many tokens as few may
 * be, and the same in one of more. */
START_TEST(rows_of_the_call_are_found_whatever_the_kernel)
{
	static const uint32_t ends[2] = {127, 255};
	uint8_t *few;
	uint32_t i;
	compress_rig r;

	compress_rig_open(&r, SPMLA_LAYOUT_STATE_512, caches[_i], 3, 2, 0);
	compress_rig_ring(&r, 128);
	compress_rig_split(&r);
	for (i = 0; i < 2; i++) {
		compress_rig_put(&r, i, ends[i] - 127, ends[i] - 7);
		compress_rig_request(&r, i, ends[i] - 7, 8);
	}
	ck_assert_uint_eq(r.a.tokens, FEW);
	compress_rig_check(&r);
	few = bytes_of(&r);
	compress_rig_request(&r, 2, 0, 1);
	compress_rig_check(&r);
	check_bytes(r.cache, few, r.cache_bytes);
	free(few);
	compress_rig_close(&r);
}
END_TEST

/* The first token has a fault, which is reported once; its key is `zeros`, or
 * as it was. All others are made. */
static void
expect_fault(compress_rig *r, const uint8_t *good, uint32_t fault, int zeros)
{
	const uint64_t at = (uint64_t)compress_rig_slot(r, 1, 383) * 512;
	uint32_t i;

	compress_rig_reset(r);
	compress_rig_run(r);
	/* Its row is 1, or none: then the report names token 0. */
	expect_status(&r->f, 1, fault, fault != SPMLA_FAULT_ROW, 0);
	ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
	for (i = 0; i < 512; i++)
		ck_assert_uint_eq(r->cache[at + i], zeros ? 0 : 0xAB);
	memcpy(r->cache + at, good + at, 512);
	check_bytes(r->cache, good, r->cache_bytes);
}

START_TEST(a_fault_of_a_shared_key_is_told_once)
{
	uint8_t *good;
	int64_t slot;
	compress_rig r;

	open_two(&r, SPMLA_LAYOUT_V4_E4M3, (uint32_t)_i);
	good = bytes_of(&r);
	slot = r.slots[0];
	r.slots[0] = INT64_MAX;
	expect_fault(&r, good, SPMLA_FAULT_SLOT, 0);
	r.slots[0] = slot;
	r.positions[0] = -1;
	expect_fault(&r, good, SPMLA_FAULT_POSITION, 0);
	r.positions[0] = 383;
	r.row[0] = COMPRESS_RIG_ROWS;
	expect_fault(&r, good, SPMLA_FAULT_ROW, 0);
	r.row[0] = 1;
	compress_rig_check(&r);
	check_bytes(r.cache, good, r.cache_bytes);
	free(good);
	compress_rig_close(&r);
}
END_TEST

/* The bad page is row 1's; pages have 64 positions. */
START_TEST(a_page_that_is_not_there_makes_a_shared_key_of_zeros)
{
	const int32_t bad[3] = {-1, COMPRESS_RIG_ROWS * 2, INT32_MIN};
	uint32_t i, k;
	uint8_t *good;
	compress_rig r;

	open_two(&r, SPMLA_LAYOUT_V4_E4M3, (uint32_t)_i);
	good = bytes_of(&r);
	for (k = 0; k < 2; k++) {
		int32_t *entry = r.table + r.a.table_stride_elems + k;
		const int32_t page = *entry;

		for (i = 0; i < 3; i++) {
			*entry = bad[i];
			expect_fault(&r, good, SPMLA_FAULT_PAGE, 1);
		}
		*entry = page;
		compress_rig_check(&r);
		check_bytes(r.cache, good, r.cache_bytes);
	}
	free(good);
	compress_rig_close(&r);
}
END_TEST

/* What is no zeros before a call makes keys of any value; but it ends, and once
 * there are zeros all is as it was. */
START_TEST(what_is_not_zeros_hangs_nothing)
{
	uint64_t bytes;
	uint8_t *good;
	uint32_t i;
	compress_rig r;

	open_two(&r, SPMLA_LAYOUT_V4_E4M3, (uint32_t)_i);
	bytes = (uint64_t)r.most * 512 * 4;
	good = bytes_of(&r);
	for (i = 0; i < 4; i++) {
		if (i != 1)
			r.split_counts[0] = i < 3 ? 3 : 32;
		if (i % 3)
			memset(r.split_keys, 0x5a, bytes);
		ck_assert_int_eq(spmla_kv_compress(r.f.ctx, &r.a, NULL),
				 SPMLA_OK);
		fixture_drain(&r.f);
		ck_assert_uint_eq(fixture_status(&r.f).count, 0);
		memset(r.split_keys, 0, bytes);
		memset(r.split_counts, 0, r.most * 4);
		compress_rig_check(&r);
		check_bytes(r.cache, good, r.cache_bytes);
	}
	free(good);
	compress_rig_close(&r);
}
END_TEST

START_TEST(a_key_of_nan_has_the_bits_of_one_that_one_block_makes)
{
	uint8_t *whole, *split;
	compress_rig r;

	compress_rig_open(&r, SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_BF16, 3,
			  2, 0);
	compress_rig_ring(&r, 128);
	compress_rig_put(&r, 1, 256, 383);
	memset(r.state, 0xff, r.state_bytes);
	compress_rig_request(&r, 1, 383, 1);
	if (_i)
		compress_rig_request(&r, 0, 0, FEW);
	whole = bytes_of(&r);
	compress_rig_split(&r);
	split = bytes_of(&r);
	check_bytes(split, whole, r.cache_bytes);
	free(split);
	free(whole);
	compress_rig_close(&r);
}
END_TEST

START_TEST(every_replay_counts_from_zero)
{
	spmla_graph graph;
	uint32_t i, row;
	compress_rig r;

	compress_rig_open(&r, SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_FP8, 3, 4,
			  16);
	compress_rig_ring(&r, 128);
	compress_rig_split(&r);
	r.a.tokens = 2;
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_kv_compress(r.f.ctx, &r.a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	for (i = 0; i < 6; i++) {
		const uint32_t end = 128 * (i % 3 + 1);
		uint8_t *eager;

		r.a.tokens = 0;
		for (row = 0; row < 2; row++) {
			compress_rig_put(&r, row, end - 128, end - 1);
			compress_rig_request(&r, row, end - 1, 1);
		}
		if (i > 2)
			r.slots[i % 2] = -1;
		compress_rig_check(&r);
		eager = bytes_of(&r);
		compress_rig_reset(&r);
		replay(&r.f, graph, 0);
		check_bytes(r.cache, eager, r.cache_bytes);
		compress_rig_expect_zeros(&r);
		free(eager);
	}
	compress_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test determinism[] = {
		{a_key_has_the_bits_of_one_that_one_block_makes, 3},
		{a_key_does_not_depend_on_how_many_there_are, 1},
		{rows_need_not_be_aligned, 3},
		{rows_of_the_call_are_found_whatever_the_kernel, 3},
	};
	const theme_test edge[] = {
		{a_fault_of_a_shared_key_is_told_once, 2},
		{a_page_that_is_not_there_makes_a_shared_key_of_zeros, 2},
		{what_is_not_zeros_hangs_nothing, 2},
		{a_key_of_nan_has_the_bits_of_one_that_one_block_makes, 2},
	};
	const theme_test graph[] = {
		{every_replay_counts_from_zero, 1},
	};
	const theme themes[] = {
		THEME("determinism", NULL, NULL, determinism),
		THEME("edge", NULL, NULL, edge),
		THEME("graph", NULL, NULL, graph),
	};

	return RUN_THEMES(themes);
}
