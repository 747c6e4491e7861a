/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA bench compares a row's results with the CPU's.
 */
#include "bench/cuda.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* of two roads of bf16 operands: norm of the difference over the norm */
#define BOUND 1e-2

/* Bytes of a device's result, for the caller to free. */
static uint8_t *
pull(gpu *g, const twin *t, uint64_t at, uint64_t n)
{
	uint8_t *got = host_room(n);

	CU(g, sync_all, ());
	CU(g, pull, (got, (uintptr_t)t->at[ON_DEVICE] + at, (size_t)n));
	return got;
}

static void
say(gpu *g, cuda_row *r, double error, int good)
{
	if (!good && strncmp(r->check, "WRONG", 5) != 0)
		g->wrong++;
	if (!good)
		snprintf(r->check, sizeof r->check, "WRONG %.1e", error);
	else if (r->check[0] == 0 || strcmp(r->check, "exact") == 0)
		snprintf(r->check, sizeof r->check,
			 error > 0 ? "%.0e" : "exact", error);
}

void
check_bytes(gpu *g, cuda_row *r, const twin *t, uint64_t at, uint64_t n)
{
	uint8_t *got = pull(g, t, at, n);
	const uint8_t *want = (const uint8_t *)t->at[ON_HOST] + at;

	say(g, r, 0, memcmp(got, want, (size_t)n) == 0);
	free(got);
}

static float
of_bf16(const uint8_t *at)
{
	uint16_t half;
	uint32_t bits;
	float x;

	memcpy(&half, at, sizeof half);
	bits = (uint32_t)half << 16;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static float
of_f32(const uint8_t *at)
{
	float x;

	memcpy(&x, at, sizeof x);
	return x;
}

static void
check_norm(gpu *g, cuda_row *r, const twin *t, uint64_t at, uint64_t n,
	   uint32_t each, float (*value)(const uint8_t *), double bound)
{
	const uint8_t *want = (const uint8_t *)t->at[ON_HOST] + at * each;
	uint8_t *got = pull(g, t, at * each, n * each);
	double apart = 0, norm = 0, error;
	uint64_t i;

	for (i = 0; i < n; i++) {
		const double w = value(want + i * each);
		const double d = value(got + i * each) - w;

		apart += d * d;
		norm += w * w;
	}
	error = sqrt(apart / norm);
	say(g, r, error, norm > 0 && error <= bound); /* NaN is not */
	free(got);
}

void
check_bf16(gpu *g, cuda_row *r, const twin *t, uint64_t at, uint64_t n)
{
	check_norm(g, r, t, at, n, 2, of_bf16, BOUND);
}

void
check_f32(gpu *g, cuda_row *r, const twin *t, uint64_t at, uint64_t n)
{
	check_norm(g, r, t, at, n, 4, of_f32, BOUND);
}

void
check_selected(gpu *g, cuda_row *r, const twin *t, uint64_t at, uint64_t n,
	       double keys)
{
	check_norm(g, r, t, at, n, 2, of_bf16, BOUND + sqrt(2 / keys));
}
