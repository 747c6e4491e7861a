/* SPDX-License-Identifier: Apache-2.0
 *
 * See narrow_ref.h.
 */
#include "tests/reference/narrow_ref.h"
#include "tests/harness/fixture.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

double
value16(uint16_t bits, uint32_t dtype)
{
	const int exponent = bits >> 10 & 31;
	const int mantissa = bits & 1023;
	double a;

	if (dtype == SPMLA_DTYPE_BF16)
		return ref_bf16_value(bits);
	if (exponent == 31)
		a = mantissa ? NAN : INFINITY;
	else if (exponent == 0)
		a = ldexp(mantissa, -24);
	else
		a = ldexp(1024 + mantissa, exponent - 25);
	return bits & 0x8000 ? -a : a;
}

uint8_t
quotient_code(double x, double s)
{
	const double q = ref_round_f32(x / s);

	return isnan(q) ? 0x7f : ref_e4m3(q);
}

uint8_t
encoded_quotient(double x, double s, uint32_t encoding)
{
	return encoding == SPMLA_E4M3_FNUZ ? ref_fnuz(ref_round_f32(x / s))
					   : quotient_code(x, s);
}

double
code_value(uint8_t code, uint32_t encoding)
{
	return encoding == SPMLA_E4M3_FNUZ ? ref_fnuz_value(code)
					   : ref_e4m3_value(code);
}

void
fill_bits16(uint64_t *rng, uint16_t *row, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		row[i] = (uint16_t)rng_next(rng);
}

void
fill_row16(uint64_t *rng, uint16_t *row, uint32_t n)
{
	const float size = ldexpf(1.0f, (int)rng_below(rng, 24) - 14);
	uint32_t i;

	if (rng_below(rng, 8) == 0) {
		fill_bits16(rng, row, n);
		return;
	}
	for (i = 0; i < n; i++)
		row[i] = test_bf16(rng_float(rng) * size);
}

void
fill_slots(uint64_t *rng, int64_t *slot, uint32_t n, uint32_t slots)
{
	const uint32_t first = rng_below(rng, slots);
	uint32_t t;

	/* An odd step visits a power of two of slots once each. */
	for (t = 0; t < n; t++) {
		slot[t] = -1;
		if (t < slots && rng_below(rng, 8))
			slot[t] = (first + t * 13) % slots;
	}
}

float *
rope_table(void)
{
	float *table = test_alloc(ROPE_POSITIONS * 64 * sizeof *table, 0);
	uint32_t p, i;

	for (p = 0; p < ROPE_POSITIONS; p++)
		for (i = 0; i < 32; i++) {
			const double angle = p * pow(10000, -(double)i / 32);

			table[p * 64 + i] = (float)cos(angle);
			table[p * 64 + 32 + i] = (float)sin(angle);
		}
	return table;
}

void
fill_positions(uint64_t *rng, int32_t *positions, uint32_t n)
{
	uint32_t t;

	for (t = 0; t < n; t++)
		positions[t] = (int32_t)rng_below(rng, ROPE_POSITIONS);
}

void
check_bytes(const void *got, const void *want, uint64_t bytes)
{
	const uint8_t *g = got, *w = want;
	uint64_t i;

	for (i = 0; i < bytes; i++)
		if (g[i] != w[i])
			ck_abort_msg("byte %" PRIu64
				     ": got 0x%02x, want 0x%02x",
				     i, g[i], w[i]);
}
