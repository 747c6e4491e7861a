/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of DeepGEMM's index scores on sm_90, which is coarser than its
 * own cases' bound: it is modelled here, and what it drops is allowed value by
 * value.
 */
#include "tests/golden/golden.h"

#include <math.h>

/* Values of e4m3, and their exponents where they are not 0. */
typedef struct row {
	double values[SPMLA_INDEX_DIM];
	int exponents[SPMLA_INDEX_DIM];
} row;

/* x cut to a multiple of `unit`, a power of two, toward zero. */
static double
cut(double x, double unit)
{
	return trunc(x * (1 / unit)) * unit;
}

/* One dot product of e4m3 values as the tensor cores of sm_90 give it: they add
 * 32 products and the sum so far at a time, each cut 13 bits below the largest
 * exponent among them (a product's exponent is the sum of its factors'), and
 * cut the result to 14 significant bits. Found by trial; it gives the golden
 * logits to within an f32 rounding, where exact sums do not. */
static double
tensor_core_dot(const row *q, const row *k)
{
	double sum = 0, next, unit;
	uint32_t first, d;

	for (first = 0; first < SPMLA_INDEX_DIM; first += 32) {
		int top = sum != 0 ? ilogb(sum) : -1000;

		for (d = first; d < first + 32; d++) {
			const int exponent = q->exponents[d] + k->exponents[d];

			if (q->values[d] * k->values[d] != 0 && exponent > top)
				top = exponent;
		}
		unit = ldexp(1, top - 13);
		next = cut(sum, unit);
		for (d = first; d < first + 32; d++)
			next += cut(q->values[d] * k->values[d], unit);
		sum = next != 0 ? cut(next, ldexp(1, ilogb(next) - 13)) : 0;
	}
	return sum;
}

static double
exact_dot(const row *q, const row *k)
{
	double sum = 0;
	uint32_t d;

	for (d = 0; d < SPMLA_INDEX_DIM; d++)
		sum += q->values[d] * k->values[d];
	return sum;
}

static void
decode_e4m3(const uint8_t *codes, row *to)
{
	uint32_t d;

	for (d = 0; d < SPMLA_INDEX_DIM; d++) {
		const double x = golden_value(GOLDEN_E4M3, codes + d);

		to->values[d] = x;
		to->exponents[d] = x != 0 ? ilogb(x) : 0;
	}
}

static double
largest_product(const row *q, const row *k)
{
	double most = 0;
	uint32_t d;

	for (d = 0; d < SPMLA_INDEX_DIM; d++)
		most = fmax(most, fabs(q->values[d] * k->values[d]));
	return most;
}

/* mqa_logits.h says how far Hopper may be: its kernels group the dims in other
 * ways than DeepGEMM, so both distances count. */
double
golden_score_slack(const golden_case *c, const uint8_t *q, const float *weights,
		   uint32_t heads, const uint8_t *key, float scale)
{
	const spmla_device *device = &spmla_ctx_plan(c->ctx)->device;
	const int cuts =
		device->kind == SPMLA_BACKEND_CUDA && device->arch == 90;
	double off = 0, own = 0;
	row query, k;
	uint32_t h;

	decode_e4m3(key, &k);
	for (h = 0; h < heads; h++) {
		decode_e4m3(q + (uint64_t)h * SPMLA_INDEX_DIM, &query);
		off += (fmax(tensor_core_dot(&query, &k), 0) -
			fmax(exact_dot(&query, &k), 0)) *
		       weights[h];
		own += fabs(weights[h]) * 0.82 * largest_product(&query, &k);
	}
	return fabs(off * scale) + (cuts ? fabs(own * scale) : 0);
}
