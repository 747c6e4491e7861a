/* SPDX-License-Identifier: Apache-2.0
 *
 * topk: numbers of rows for which kernels share a row in different ways, with
 * rows that make a threshold out of a part of them wrong. What is selected is
 * in test_topk.c.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/topk_rig.h"

enum { MOST_ROWS = 140, ROOM = 160000, LONG_ROOM = 300000 };

static fixture f;
static float *scores;
static int64_t starts[MOST_ROWS];
static int32_t lens[MOST_ROWS];

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	scores = test_alloc(LONG_ROOM * sizeof *scores, 0);
}

static void
teardown(void)
{
	free(scores);
	fixture_close(&f);
}

static float
normal(uint64_t *rng)
{
	float sum = 0;
	uint32_t i;

	for (i = 0; i < 4; i++)
		sum += rng_float(rng);
	return sum;
}

/* Rows that are easy, and rows that are hard to cut. */
enum {
	NORMAL,
	ASCENDS,
	DESCENDS,
	STEPS,
	ONE_VALUE,
	TWO_VALUES,
	MOST_EQUAL,
	ONE_IN_EIGHT, /* the best lie in each eighth piece of 32 */
	ONE_BLOCK,    /* .. in the pieces that one block of eight gets */
	FIRST_HALF,   /* .. in the first half */
	OUTLIERS,
	NEGATIVE,
	NARROW,  /* differ in the low bits */
	NOTHING, /* -inf, except some */
	KINDS
};

static float
score(uint64_t *rng, uint32_t kind, uint32_t i, uint32_t len)
{
	static const float far[6] = {INFINITY, -INFINITY, NAN,
				     -NAN,     3e38f,     -0.0f};
	const float x = normal(rng);

	switch (kind) {
	case ASCENDS:
		return (float)i - 700;
	case DESCENDS:
		return 700 - (float)i;
	case STEPS:
		return floorf(x * 4) / 4;
	case ONE_VALUE:
		return -0.25f;
	case TWO_VALUES:
		return rng_below(rng, 3) ? 0 : -0.0f - (float)(i % 2);
	case MOST_EQUAL:
		return rng_below(rng, 9) ? 0.5f : x;
	case ONE_IN_EIGHT:
		return i / 32 % 8 == 0 ? 9 + x : x;
	case ONE_BLOCK:
		return i / 32 % 8 == i / 256 % 8 ? 9 + x : x;
	case FIRST_HALF:
		return i < len / 2 ? 9 + x : x;
	case OUTLIERS:
		return rng_below(rng, 40) ? x : far[rng_below(rng, 6)];
	case NEGATIVE:
		return -1 - x * x;
	case NARROW:
		return 1 + (float)rng_below(rng, 1 << 14) * 0x1p-23f;
	case NOTHING:
		return rng_below(rng, 9) ? -INFINITY : x;
	default:
		return x;
	}
}

/* Rows of lengths up to `most`, most of them of less, all within the room. */
static void
fill(uint64_t *rng, uint32_t rows, uint32_t most, uint32_t kind)
{
	uint32_t next = 0, r, i;

	for (r = 0; r < rows; r++) {
		const uint32_t left = ROOM - next - 8;
		uint32_t len = rng_below(rng, r % 3 ? most / 16 + 1 : most + 1);

		len = len < left ? len : left;
		next += rng_below(rng, 8);
		starts[r] = next;
		lens[r] = (int32_t)len;
		for (i = 0; i < len; i++)
			scores[next + i] = score(
				rng, kind < KINDS ? kind : r % KINDS, i, len);
		next += len;
	}
}

static void
check(uint32_t rows, uint32_t k, uint32_t ties)
{
	spmla_topk_args a = {.struct_bytes = sizeof a, .rows = rows};

	a.k = k;
	a.ties = ties;
	a.logits = scores;
	a.logits_elems = rows == 1 ? LONG_ROOM : ROOM;
	a.row_starts = starts;
	a.context_lens = lens;
	a.indices_stride_elems = k + rows % 3;
	topk_check_rows(&f, &a);
}

START_TEST(rows_of_every_kind_equal_a_full_sort)
{
	static const uint32_t ks[6] = {1, 37, 130, 512, 1024, 2048};
	/* Each k has both kinds of ties; in the emulator one, by the kind of row. */
	const uint32_t rounds = fixture_rounds(12, 6);
	uint64_t rng = test_seed() + 20 + (uint64_t)_i;
	uint32_t round;

	for (round = 0; round < rounds; round++) {
		fill(&rng, 1 + rng_below(&rng, 2), round % 2 ? 70000 : 9000,
		     (uint32_t)_i);
		lens[0] = lens[0] > 5000 ? lens[0] : lens[0] / 2;
		check(1, ks[round % 6], (round / 2 + (uint32_t)_i) % 2);
	}
}
END_TEST

START_TEST(any_number_of_rows_equals_a_full_sort)
{
	static const uint32_t rows[8] = {2, 16, 17, 66, 67, 132, 133, 140};
	static const uint32_t ks[8] = {512, 300, 64, 200, 512, 100, 64, 333};
	uint64_t rng = test_seed() + 40 + (uint64_t)_i;
	const uint32_t most = 120000 / rows[_i] * 2;

	fill(&rng, rows[_i], most, KINDS);
	check(rows[_i], ks[_i], SPMLA_TIES_LOWER);
	check(rows[_i], ks[_i], SPMLA_TIES_HIGHER);
	fill(&rng, rows[_i], most, NORMAL);
	check(rows[_i], ks[_i] / 2, SPMLA_TIES_LOWER);
}
END_TEST

/* Rows as long as what one block holds, one shorter and one longer; neither end
 * is aligned. */
START_TEST(lengths_around_what_a_block_holds_equal_a_full_sort)
{
	static const uint32_t around[5] = {512, 1024, 2048, 4096, 8192};
	static const uint32_t rows[4] = {1, 20, 70, 140};
	const uint32_t every = fixture_rounds(8, 4) < 8 ? 11 : 5;
	uint64_t rng = test_seed() + 60 + (uint64_t)_i;
	uint32_t i, off;

	for (i = 0; i < ROOM; i++)
		scores[i] = normal(&rng);
	for (i = 0; i < rows[_i]; i++)
		lens[i] = 0;
	for (i = 0; i < rows[_i]; i++)
		starts[i] = 0;
	for (i = 0; i < 5; i++)
		for (off = 0; off < 36; off += every) {
			starts[0] = off;
			lens[0] = (int32_t)(around[i] + off % 3) - 1;
			check(rows[_i], around[i] / 8, off % 2);
		}
}
END_TEST

/* What one block has whole, aligned and not, with the best at the end. */
START_TEST(rows_of_little_room_equal_a_full_sort)
{
	uint64_t rng = test_seed() + 100 + (uint64_t)_i;
	uint32_t off, i;

	for (off = 0; off < 8; off++) {
		const uint32_t start = off < 4 ? 0 : 33 * off;
		const int64_t at = start;
		const int32_t len = (int32_t)(8192 - start);
		const spmla_topk_args a = {.struct_bytes = sizeof a,
					   .rows = 1,
					   .k = off % 2 ? 2048 : 5,
					   .ties = off / 2 % 2,
					   .logits = scores + off % 4,
					   .logits_elems = 8192,
					   .row_starts = &at,
					   .context_lens = &len,
					   .indices_stride_elems = 2048};

		for (i = 0; i < (uint32_t)len; i++)
			scores[off % 4 + start + i] =
				score(&rng, (uint32_t)_i, i, (uint32_t)len);
		scores[off % 4 + 8191] = INFINITY;
		topk_check_rows(&f, &a);
	}
}
END_TEST

/* A block has bits for 262144 scores at a time, so that this takes two turns of
 * it. */
START_TEST(a_row_of_more_bits_than_a_block_has_equals_a_full_sort)
{
	static const uint32_t kinds[4] = {NORMAL, STEPS, ONE_VALUE, FIRST_HALF};
	uint64_t rng = test_seed() + 80 + (uint64_t)_i;
	uint32_t i;

	starts[0] = 7;
	lens[0] = 262144 + 32 * _i + 1;
	for (i = 0; i < (uint32_t)lens[0]; i++)
		scores[starts[0] + i] =
			score(&rng, kinds[_i], i, (uint32_t)lens[0]);
	check(1, 2048, (uint32_t)_i % 2);
	lens[0] += 30000;
	for (; i-- > 0;)
		scores[starts[0] + i + 30000] = scores[starts[0] + i];
	check(1, 600, SPMLA_TIES_LOWER);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{rows_of_every_kind_equal_a_full_sort, KINDS},
		{any_number_of_rows_equals_a_full_sort, 8},
		{lengths_around_what_a_block_holds_equal_a_full_sort, 4},
		{rows_of_little_room_equal_a_full_sort, KINDS},
		{a_row_of_more_bits_than_a_block_has_equals_a_full_sort, 4},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
	};

	return RUN_THEMES(themes);
}
