/* SPDX-License-Identifier: Apache-2.0
 *
 * See parts_check.h.
 */
#include "tests/protocol/parts_check.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/splits.h"

enum { MOST_BLOCKS = 64, MOST_TOKENS = 16 };

typedef struct coverage {
	int32_t blocks[MOST_TOKENS][MOST_BLOCKS]; /* how many parts have it */
	int32_t splits[MOST_TOKENS];              /* so far */
} coverage;

static int32_t
least(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

static int32_t
blocks_of(const parts_step *s, int32_t t)
{
	const int32_t near = (least(s->lens[t], s->near) + 63) / 64;
	const int32_t far = (least(s->lens[t] / s->ratio, s->far) + 63) / 64;

	return (near > 0 ? near : 1) + far;
}

/* What one part says of one token: it covers blocks [begin, end). */
static void
cover(const parts_step *s, coverage *seen, int32_t token, int32_t begin,
      int32_t end, int32_t split)
{
	int32_t b;

	ck_assert_int_lt(begin, end);
	ck_assert_int_eq(split, seen->splits[token]);
	ck_assert_int_lt(split, s->splits[token + 1] - s->splits[token]);
	seen->splits[token]++;
	for (b = begin; b < end; b++)
		ck_assert_int_eq(seen->blocks[token][b]++, 0);
}

/* The row of a part with work; returns what it costs. */
static int32_t
check_row(const parts_step *s, coverage *seen, const int32_t *row)
{
	int32_t cost = 0, t;

	for (t = row[0]; t <= row[1]; t++) {
		const int32_t all = blocks_of(s, t);
		const int32_t begin = t == row[0] ? row[2] : 0;
		const int32_t end = t == row[1] ? row[3] : all;

		cover(s, seen, t, begin, end, t == row[0] ? row[4] : 0);
		cost += end - begin + SPMLA_I_SPLIT_OVERHEAD;
		if (t == row[0])
			ck_assert_int_eq(row[5], begin > 0 || (t == row[1] &&
							       end < all));
		if (t == row[1])
			ck_assert_int_eq(row[6], end < all || (t == row[0] &&
							       begin > 0));
	}
	return cost;
}

/* Whether tokens are alike and have equally many parts each. */
static int
is_even(const parts_step *s)
{
	int32_t t;

	for (t = 1; t < s->tokens; t++)
		if (blocks_of(s, t) != blocks_of(s, 0))
			return 0;
	return s->parts % s->tokens == 0;
}

/* Where tokens are alike a part has one token, and an even share of it. */
static void
check_share(const parts_step *s, const int32_t *row)
{
	const int32_t each = s->parts / s->tokens;

	ck_assert_int_eq(row[0], row[1]);
	ck_assert_int_le(row[3] - row[2],
			 (blocks_of(s, row[0]) + each - 1) / each);
}

void
parts_check(const parts_step *s)
{
	const int even = is_even(s);
	int32_t most = 0, total = 0, p, t, b;
	static coverage seen;

	ck_assert_int_le(s->tokens, MOST_TOKENS);
	memset(&seen, 0, sizeof seen);
	for (p = 0; p < s->parts; p++) {
		const int32_t *row = s->rows + 8 * p;
		int32_t cost;

		ck_assert_int_eq(row[7], 0);
		if (row[0] >= s->tokens) { /* no work */
			ck_assert_int_eq(row[1], s->tokens - 1);
			continue;
		}
		if (even)
			check_share(s, row);
		cost = check_row(s, &seen, row);
		most = cost > most ? cost : most;
		total += cost;
	}
	ck_assert_int_eq(s->splits[0], 0);
	for (t = 0; t < s->tokens; t++) {
		ck_assert_int_eq(s->splits[t + 1] - s->splits[t],
				 seen.splits[t]);
		for (b = 0; b < blocks_of(s, t); b++)
			ck_assert_int_eq(seen.blocks[t][b], 1);
	}
	/* Not proven, but no batch of these tests exceeds it. */
	ck_assert_int_le(most, total / s->parts + 2 * SPMLA_I_SPLIT_OVERHEAD);
}

void
parts_check_fixed(const parts_step *s, int32_t each)
{
	int32_t p = 0, t, i;

	for (t = 0; t < s->tokens; t++) {
		const int32_t blocks = blocks_of(s, t);
		const int32_t n = (blocks + each - 1) / each;

		ck_assert_int_eq(s->splits[t], p);
		for (i = 0; i < n; i++) {
			const int32_t row[8] = {
				t,        t,
				each * i, least(each * (i + 1), blocks),
				i,        n > 1,
				n > 1,    0};

			ck_assert_int_lt(p, s->parts);
			ck_assert_mem_eq(s->rows + 8 * p++, row, sizeof row);
		}
	}
	ck_assert_int_eq(s->splits[s->tokens], p);
	for (; p < s->parts; p++) {
		const int32_t row[8] = {s->tokens, s->tokens - 1, 0,
					blocks_of(s, s->tokens - 1)};

		ck_assert_mem_eq(s->rows + 8 * p, row, sizeof row);
	}
}

uint32_t
parts_launches(const spmla_device *device)
{
	/* Those need subgroups of 32. */
	const char *width = getenv("SPMLA_TEST_EMULATOR");

	if (device->kind == SPMLA_BACKEND_CPU)
		return 0;
	return device->arch != 90 || (width && strcmp(width, "32") != 0);
}
