/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotients as kernels have them, by a product and a shift: equal to C's for
 * every n below 2^31.
 */
#include "spmla/platform/gpu/launch.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

enum { LARGEST = 0x7fffffff };

static void
check(uint32_t n, uint32_t by)
{
	const spmla_g_divisor d = spmla_i_gpu_divisor(by);

	if (g_divide(n, d) != n / by || g_modulo(n, d) != n % by)
		ck_abort_msg("%u by %u: %u and %u", n, by, g_divide(n, d),
			     g_modulo(n, d));
}

/* The first and the last n of a quotient: there an error shows first. */
static void
check_edges(uint32_t quotient, uint32_t by)
{
	const uint64_t first = (uint64_t)quotient * by;

	if (first > LARGEST)
		return;
	check((uint32_t)first, by);
	if (first)
		check((uint32_t)first - 1, by);
	if (first + by - 1 <= LARGEST)
		check((uint32_t)first + by - 1, by);
}

START_TEST(quotients_are_exact)
{
	uint64_t rng = test_seed() + 5;
	uint32_t by, i;

	for (by = 1; by <= 5000; by++) {
		check(LARGEST, by);
		check_edges(LARGEST / by, by);
		for (i = 0; i < 200; i++)
			check_edges(rng_below(&rng, LARGEST / by + 1), by);
	}
	for (i = 0; i < 200000; i++) {
		by = 1 + rng_below(&rng, LARGEST);
		check(LARGEST, by);
		check(by, by);
		check(by - 1, by);
		check_edges(rng_below(&rng, LARGEST / by + 1), by);
	}
}
END_TEST

START_TEST(powers_of_two_and_their_neighbours)
{
	uint32_t bit, i;

	for (bit = 0; bit < 31; bit++)
		for (i = 0; i < 3; i++) {
			const uint32_t by = (1u << bit) + i - 1;

			if (by == 0)
				continue;
			check(0, by);
			check(LARGEST, by);
			check_edges(LARGEST / by, by);
			check_edges(1, by);
		}
	check(LARGEST, LARGEST);
	check(LARGEST - 1, LARGEST);
}
END_TEST

START_TEST(nothing_is_taken_off_by_zero)
{
	const spmla_g_divisor d = spmla_i_gpu_divisor(0);

	ck_assert_uint_eq(g_divide(LARGEST, d), 0);
	ck_assert_uint_eq(g_modulo(LARGEST, d), LARGEST);
}
END_TEST

SUITE
{
	const theme_test numbers[] = {
		{quotients_are_exact, 1},
		{powers_of_two_and_their_neighbours, 1},
		{nothing_is_taken_off_by_zero, 1},
	};
	const theme themes[] = {THEME("numbers", NULL, NULL, numbers)};

	return RUN_THEMES(themes);
}
