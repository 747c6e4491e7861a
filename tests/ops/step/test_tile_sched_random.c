/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched on random batches and on those that are hard to plan: even ones,
 * chains of fresh starts, sums past 32 bits.
 */

#include "tests/harness/themes.h"
#include "tests/ops/step/tile_rig.h"
#include "tests/reference/narrow_ref.h"

static tile_rig r;

static void
setup(void)
{
	tile_open(&r);
}

static void
teardown(void)
{
	tile_close(&r);
}

static uint32_t
pick(uint64_t *rng, const uint32_t *from, uint32_t count)
{
	return from[rng_below(rng, count)];
}

/* 0, most, or anything between, each often. */
static void
fill_lens(uint64_t *rng, int32_t *out, uint32_t n, uint32_t most)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint32_t kind = rng_below(rng, 4);

		out[i] = (int32_t)(kind == 0   ? 0
				   : kind == 1 ? most
					       : rng_below(rng, most + 1));
	}
}

static void
random_case(uint64_t *rng, uint32_t max_batch, const uint32_t *topks,
	    uint32_t topk_count)
{
	static const uint32_t overheads[6] = {5, 5, 3, 0, 1, 40};
	static const uint32_t part_counts[8] = {1, 2, 3, 7, 33, 66, 132, 0};
	uint32_t parts = pick(rng, part_counts, 8);
	spmla_tile_sched_args a;

	if (parts == 0)
		parts = 1 + rng_below(rng, 200);
	a = tile_args(&r, 1 + rng_below(rng, max_batch), parts,
		      pick(rng, overheads, 6), pick(rng, topks, topk_count));
	a.row_format = rng_below(rng, 2);
	if (rng_below(rng, 3))
		a.topk_lens = r.lens;
	if (rng_below(rng, 3) == 0)
		a.extra_topk = pick(rng, topks, topk_count);
	if (rng_below(rng, 2))
		a.extra_topk_lens = r.extra_lens;
	fill_lens(rng, r.lens, a.batch, a.topk);
	fill_lens(rng, r.extra_lens, a.batch, a.extra_topk);
	tile_check(&r, &a);
}

START_TEST(random_batches_equal_the_serial_walk)
{
	static const uint32_t topks[8] = {2048, 2048, 1,   64,
					  65,   128,  640, 10000};
	const uint32_t rounds = fixture_rounds(20000, 5000);
	uint64_t rng = test_seed() + 11;
	uint32_t i;

	for (i = 0; i < rounds; i++)
		random_case(&rng, i % 4 ? 9 : 70, topks, 8);
}
END_TEST

START_TEST(random_huge_batches_equal_the_serial_walk)
{
	static const uint32_t topks[5] = {INT32_MAX, 1u << 30, INT32_MAX - 64,
					  2048, 1};
	const uint32_t rounds = fixture_rounds(4000, 1000);
	const uint32_t large = fixture_rounds(12, 12);
	uint64_t rng = test_seed() + 12;
	uint32_t i;

	for (i = 0; i < rounds; i++)
		random_case(&rng, 20, topks, 5);
	for (i = 0; i < large; i++)
		random_case(&rng, TILE_MAX_BATCH, topks, 5);
}
END_TEST

/* Requests of one cost, and the same with one exception. */
START_TEST(even_and_almost_even_batches_equal_the_serial_walk)
{
	static const uint32_t overheads[5] = {5, 3, 0, 1, 17};
	const uint32_t rounds = fixture_rounds(3000, 1000);
	uint64_t rng = test_seed() + 13;
	uint32_t i, j;

	for (i = 0; i < rounds; i++) {
		const uint32_t most = i % 100 ? 40 : 1200;
		spmla_tile_sched_args a = tile_args(
			&r, 1 + rng_below(&rng, most), 1 + rng_below(&rng, 300),
			pick(&rng, overheads, 5), 1 + rng_below(&rng, 4096));

		tile_check(&r, &a);
		if (i % 4)
			continue;
		for (j = 0; j < a.batch; j++)
			r.lens[j] = (int32_t)a.topk;
		r.lens[rng_below(&rng, a.batch)] = 1;
		a.topk_lens = r.lens;
		tile_check(&r, &a);
	}
}
END_TEST

/* What is left up to the end of a request when a part that follows whole
 * payloads from the last fresh start would end: at most `overhead` makes the
 * request's end a fresh start. */
enum {
	LEFT_NOTHING,
	LEFT_OVERHEAD,
	LEFT_ONE_MORE,
	LEFT_ALL_BUT_ONE,
	LEFT_ANY_OF_THESE,
	LEFT_LITTLE,
	LEFT_MUCH,
	LEFT_MUCH_BUT_SELDOM,
	LEFT_KINDS
};

static uint32_t
pick_left(uint64_t *rng, uint32_t kind, uint32_t share, uint32_t overhead)
{
	if (kind == LEFT_ANY_OF_THESE)
		kind = rng_below(rng, LEFT_ANY_OF_THESE);
	if (kind == LEFT_MUCH_BUT_SELDOM && rng_below(rng, 50) == 0)
		kind = LEFT_LITTLE;
	switch (kind) {
	case LEFT_NOTHING:
		return 0;
	case LEFT_OVERHEAD:
		return overhead;
	case LEFT_ONE_MORE:
		return overhead + 1;
	case LEFT_ALL_BUT_ONE:
		return share - 1;
	case LEFT_LITTLE:
		return rng_below(rng, overhead + 1);
	default:
		return overhead + 1 + rng_below(rng, share - overhead - 1);
	}
}

/* Requests for `parts` parts of share + overhead blocks, of the kind; each of
 * at most `more` shares beyond what it must have. */
static spmla_tile_sched_args
chain(uint64_t *rng, uint32_t kind, uint32_t parts, uint32_t share,
      uint32_t overhead, uint32_t more)
{
	spmla_tile_sched_args a = tile_args(&r, 0, parts, overhead, 1);
	uint32_t fresh = 0, all = 0;

	while (all <= (parts - 1) * share && a.batch < TILE_MAX_BATCH) {
		const uint32_t left = pick_left(rng, kind, share, overhead);
		uint32_t cost = left + share - (all - fresh) % share;

		cost %= share;
		while (cost <= overhead)
			cost += share;
		cost += share * rng_below(rng, more + 1);
		if (all + cost > parts * share) /* the last one */
			cost = parts * share - all;
		if (cost <= overhead)
			break;
		all += cost;
		if (left <= overhead)
			fresh = all;
		r.lens[a.batch++] = (int32_t)((cost - overhead) * 64);
		if ((uint32_t)r.lens[a.batch - 1] > a.topk)
			a.topk = (uint32_t)r.lens[a.batch - 1];
	}
	a.topk_lens = r.lens;
	return a;
}

START_TEST(chains_of_fresh_starts_equal_the_serial_walk)
{
	static const uint32_t overheads[5] = {5, 3, 0, 1, 17};
	const uint32_t rounds = fixture_rounds(4000, 1000);
	uint64_t rng = test_seed() + 15;
	uint32_t i;

	for (i = 0; i < rounds; i++) {
		const uint32_t overhead = pick(&rng, overheads, 5);
		const uint32_t share = overhead + 2 + rng_below(&rng, 70);
		const uint32_t large = i % 200 == 0;
		spmla_tile_sched_args a = chain(
			&rng, rng_below(&rng, LEFT_KINDS),
			1 + rng_below(&rng, large ? TILE_MAX_PARTS - 1 : 150),
			share, overhead, i % 3 * rng_below(&rng, 6));

		tile_check(&r, &a);
	}
}
END_TEST

/* The payload of few parts is past 32 bits, and so is what a part has left. */
START_TEST(payloads_do_not_wrap)
{
	uint64_t rng = test_seed() + 14;
	uint32_t parts, i;

	for (parts = 1; parts <= 9; parts++) {
		spmla_tile_sched_args a =
			tile_args(&r, 700, parts, 5, INT32_MAX);

		for (i = 0; i < 700; i++)
			r.lens[i] =
				(int32_t)(INT32_MAX - rng_below(&rng, 9999));
		a.topk_lens = r.lens;
		a.extra_topk = INT32_MAX;
		tile_check(&r, &a);
	}
}
END_TEST

/* Requests of 2^26 blocks, the last of one fewer: a share is of some number of
 * them, and 64 of them are 2^32, so that low words repeat. */
START_TEST(shares_past_32_bits_are_not_taken_for_others)
{
	spmla_tile_sched_args a = tile_args(&r, 0, 3, 0, INT32_MAX);
	uint32_t each, i;

	a.topk_lens = r.lens;
	a.extra_topk = INT32_MAX;
	for (each = 65; each < 140; each += 3) {
		a.batch = a.parts * each;
		for (i = 0; i + 1 < a.batch; i++)
			r.lens[i] = INT32_MAX;
		r.lens[i] = INT32_MAX - 64;
		tile_check(&r, &a);
		ck_assert_int_eq(r.rows[8], (int32_t)each);
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{random_batches_equal_the_serial_walk, 1},
		{random_huge_batches_equal_the_serial_walk, 1},
		{even_and_almost_even_batches_equal_the_serial_walk, 1},
		{chains_of_fresh_starts_equal_the_serial_walk, 1},
	};
	const theme_test edge[] = {
		{payloads_do_not_wrap, 1},
		{shares_past_32_bits_are_not_taken_for_others, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
	};

	return RUN_THEMES(themes);
}
