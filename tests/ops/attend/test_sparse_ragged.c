/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode and sparse_prefill over ragged lists: the bits of rows with the
 * same entries, and what an indptr may say.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"
#include "tests/ops/attend/prefill_world.h"
#include "tests/ops/attend/v4_decode_world.h"

enum { TOPK = 130, BEFORE = 5 };

/* Lists without rows: exactly the entries, the first BEFORE of which are no
 * token's. */
typedef struct packed {
	int32_t *entries;
	int32_t indptr[4];
	uint32_t count;
} packed;

static fixture f;
static decode_world w;
static v4_world v4;
static prefill_world p;
static packed first, extra;

static void
open_context(uint32_t heads)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = heads;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
	free(first.entries);
	free(extra.entries);
	memset(&first, 0, sizeof first);
	memset(&extra, 0, sizeof extra);
}

static void
pack(packed *to, const int32_t *rows, int64_t stride, const int32_t *lens,
     uint32_t tokens)
{
	uint32_t t;

	to->count = BEFORE;
	for (t = 0; t < tokens; t++) {
		to->indptr[t] = (int32_t)to->count;
		to->count += (uint32_t)lens[t];
	}
	to->indptr[tokens] = (int32_t)to->count;
	to->entries = malloc(to->count * sizeof *to->entries);
	memset(to->entries, 0x7F, BEFORE * sizeof *to->entries);
	for (t = 0; t < tokens; t++)
		memcpy(to->entries + to->indptr[t], rows + t * stride,
		       (uint32_t)lens[t] * sizeof *to->entries);
}

/* Both arrays in one, to be freed; the same as `kept`, if there is one. */
static uint8_t *
results(const void *out, size_t out_bytes, const void *lse, size_t lse_bytes,
	const uint8_t *kept)
{
	uint8_t *bytes = malloc(out_bytes + lse_bytes);

	memcpy(bytes, out, out_bytes);
	memcpy(bytes + out_bytes, lse, lse_bytes);
	if (kept)
		ck_assert_mem_eq(bytes, kept, out_bytes + lse_bytes);
	return bytes;
}

static uint8_t *
decode_results(const uint8_t *kept)
{
	memset(w.out, 0x5A, w.out_elems * 2);
	memset(w.lse, 0x5A, w.lse_elems * 4);
	decode_run(&f, &w);
	return results(w.out, w.out_elems * 2, w.lse, w.lse_elems * 4, kept);
}

static uint8_t *
v4_results(const uint8_t *kept)
{
	memset(v4.out, 0x5A, v4.out_elems * 2);
	memset(v4.lse, 0x5A, v4.lse_elems * 4);
	v4_run(&f, &v4);
	return results(v4.out, v4.out_elems * 2, v4.lse, v4.lse_elems * 4,
		       kept);
}

static void
expect_clean(void)
{
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}

/* ---- The same bits ------------------------------------------------------- */

static const int32_t lens_of[][3] = {
	{130, 130, 130}, {0, 65, 1}, {64, 0, 128}, {1, 129, 0}};

START_TEST(ragged_lists_have_the_bits_of_rows)
{
	const int32_t *lens = lens_of[_i / 2];
	uint8_t *kept;

	open_context(DECODE_HEADS);
	decode_open(&w,
		    _i % 2 ? SPMLA_LAYOUT_MLA_BF16 : SPMLA_LAYOUT_FP8_DS_MLA,
		    _i == 2 ? DECODE_HEADS : 3, 61, TOPK);
	decode_choose(&w);
	memcpy(w.lens, lens, sizeof *lens_of);
	w.a.topk_lens = w.lens;
	kept = decode_results(NULL);
	pack(&first, w.slots, w.a.slots_stride_elems, lens, DECODE_TOKENS);
	w.a.slots = first.entries;
	w.a.indptr = first.indptr;
	w.a.topk = first.count;
	/* Neither is read. */
	w.a.slots_stride_elems = -1;
	w.lens[0] = w.lens[1] = 1;
	free(decode_results(kept));
	expect_clean();
	free(kept);
	decode_close(&w);
}
END_TEST

/* Cuts the tokens' blocks for four parts, by the lengths of rows or by what the
 * ragged lists say. */
static void
cut(int32_t *parts, int32_t *num_splits)
{
	const spmla_tile_sched_args a = {.struct_bytes = sizeof a,
					 .batch = V4_TOKENS,
					 .parts = 4,
					 .topk = v4.a.topk,
					 .extra_topk = v4.a.extra_topk,
					 .topk_lens = v4.lens,
					 .extra_topk_lens = v4.extra_lens,
					 .indptr = v4.a.indptr,
					 .extra_indptr = v4.a.extra_indptr,
					 .tile_scheduler_metadata = parts,
					 .num_splits = num_splits};

	ck_assert_int_eq(spmla_tile_sched(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
}

static void
open_parts(void)
{
	cut(v4.parts, v4.num_splits);
	v4.a.parts = 4;
	v4.a.split_rows = V4_SPLIT_ROWS;
	v4.a.tile_scheduler_metadata = v4.parts;
	v4.a.num_splits = v4.num_splits;
	v4.a.split_out = v4.split_out;
	v4.a.split_lse = v4.split_lse;
}

START_TEST(each_list_of_v4_may_be_ragged)
{
	const uint32_t which = 1 + (uint32_t)_i % 3;
	const int32_t *lens = lens_of[_i / 3], *more = lens_of[3 - _i / 3];
	int32_t parts[4 * 8], num_splits[V4_TOKENS + 1];
	uint8_t *kept;

	open_context(V4_HEADS);
	v4_open(&v4, V4_HEADS, 64, TOPK, 2, TOPK);
	v4_choose(&v4);
	memcpy(v4.lens, lens, sizeof *lens_of);
	memcpy(v4.extra_lens, more, sizeof *lens_of);
	v4.a.topk_lens = v4.lens;
	v4.a.extra_topk_lens = v4.extra_lens;
	if (_i / 3 % 2)
		open_parts();
	kept = v4_results(NULL);
	pack(&first, v4.slots, v4.a.slots_stride_elems, lens, V4_TOKENS);
	pack(&extra, v4.extra_slots, v4.a.extra_slots_stride_elems, more,
	     V4_TOKENS);
	if (which & 1) {
		v4.a.slots = first.entries;
		v4.a.indptr = first.indptr;
		v4.a.topk = first.count;
	}
	if (which & 2) {
		v4.a.extra_slots = extra.entries;
		v4.a.extra_indptr = extra.indptr;
		v4.a.extra_topk = extra.count;
	}
	free(v4_results(kept));
	cut(parts, num_splits);
	if (v4.a.parts) {
		ck_assert_mem_eq(parts, v4.parts, sizeof parts);
		ck_assert_mem_eq(num_splits, v4.num_splits, sizeof num_splits);
	}
	expect_clean();
	free(kept);
	v4_close(&v4);
}
END_TEST

START_TEST(ragged_lists_of_a_prefill_have_the_bits_of_rows)
{
	const int32_t *lens = lens_of[_i / 2];
	uint8_t *kept;

	open_context(PREFILL_HEADS);
	prefill_open(&p, _i % 2 ? 512 : 576, _i == 2 ? PREFILL_HEADS : 3, TOPK);
	prefill_choose(&p);
	memcpy(p.lens, lens, sizeof p.lens);
	p.a.topk_lens = p.lens;
	kept = prefill_results(&f, &p, NULL);
	pack(&first, p.indices, p.a.indices_stride_elems, lens, PREFILL_TOKENS);
	p.a.indices = first.entries;
	p.a.indptr = first.indptr;
	p.a.topk = first.count;
	p.a.indices_stride_elems = -1;
	memset(p.lens, 0, sizeof p.lens);
	free(prefill_results(&f, &p, kept));
	expect_clean();
	free(kept);
	prefill_close(&p);
}
END_TEST

/* ---- What an indptr may say ---------------------------------------------- */

/* Where token 1 begins and ends. There are 265 entries. */
static const int32_t hostile[][2] = {{-1, 200},
				     {135, 134},
				     {135, 266},
				     {135, INT32_MAX},
				     {INT32_MIN, INT32_MIN},
				     {INT32_MAX, INT32_MIN}};

START_TEST(an_indptr_that_leads_outside_is_an_empty_token)
{
	uint8_t *kept;

	open_context(DECODE_HEADS);
	decode_open(&w, SPMLA_LAYOUT_FP8_DS_MLA, 3, 61, TOPK);
	decode_choose(&w);
	memcpy(w.lens, lens_of[0], sizeof *lens_of);
	pack(&first, w.slots, w.a.slots_stride_elems, w.lens, DECODE_TOKENS);
	ck_assert_uint_eq(first.count, 265);
	w.lens[1] = 0;
	/* Token 0 ends where token 1 begins, so it is empty where that is
	 * outside. */
	if (hostile[_i][0] < 5 || hostile[_i][0] > 265)
		w.lens[0] = 0;
	w.a.topk_lens = w.lens;
	kept = decode_results(NULL);
	w.a.slots = first.entries;
	w.a.indptr = first.indptr;
	w.a.topk = first.count;
	first.indptr[1] = hostile[_i][0];
	first.indptr[2] = hostile[_i][1];
	free(decode_results(kept));
	ck_assert_uint_eq(fixture_status(&f).count, w.lens[0] ? 1 : 2);
	decode_expect_status(&f, SPMLA_FAULT_INDEX, w.lens[0] ? 1 : 0);
	free(kept);
	decode_close(&w);
}
END_TEST

START_TEST(so_it_is_of_a_second_list_and_of_a_prefill)
{
	open_context(PREFILL_HEADS);
	v4_open(&v4, 3, 64, TOPK, 2, TOPK);
	v4_choose(&v4);
	pack(&extra, v4.extra_slots, v4.a.extra_slots_stride_elems, lens_of[0],
	     V4_TOKENS);
	v4.a.extra_slots = extra.entries;
	v4.a.extra_indptr = extra.indptr;
	v4.a.extra_topk = extra.count - 1;
	v4_run(&f, &v4);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	decode_expect_status(&f, SPMLA_FAULT_INDEX, V4_TOKENS - 1);
	cut(v4.parts, v4.num_splits);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	decode_expect_status(&f, SPMLA_FAULT_LENGTH, V4_TOKENS - 1);
	v4_close(&v4);

	prefill_open(&p, 576, 3, TOPK);
	prefill_choose(&p);
	pack(&first, p.indices, p.a.indices_stride_elems, lens_of[0],
	     PREFILL_TOKENS);
	p.a.indices = first.entries;
	p.a.indptr = first.indptr;
	p.a.topk = first.count - 1;
	free(prefill_results(&f, &p, NULL));
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	decode_expect_status(&f, SPMLA_FAULT_INDEX, PREFILL_TOKENS - 1);
	ck_assert_uint_eq(prefill_out(&p, PREFILL_TOKENS - 1, 2)[511], 0);
	prefill_close(&p);
}
END_TEST

SUITE
{
	const theme_test determinism[] = {
		{ragged_lists_have_the_bits_of_rows, 8},
		{each_list_of_v4_may_be_ragged, 12},
		{ragged_lists_of_a_prefill_have_the_bits_of_rows, 8},
	};
	const theme_test error[] = {
		{an_indptr_that_leads_outside_is_an_empty_token, 6},
		{so_it_is_of_a_second_list_and_of_a_prefill, 1},
	};
	const theme themes[] = {
		THEME("determinism", NULL, teardown, determinism),
		THEME("error", NULL, teardown, error),
	};

	return RUN_THEMES(themes);
}
