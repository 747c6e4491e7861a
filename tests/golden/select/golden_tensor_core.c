/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of DeepGEMM's index scores on sm_90, which is coarser than its
 * own cases' bound: it is modelled here, and what it drops is allowed value by
 * value.
 */
#include "tests/golden/golden.h"

#include <math.h>

/* x cut to a multiple of 2^exponent, toward zero. */
static double
cut(double x, int exponent)
{
	return ldexp(trunc(ldexp(x, -exponent)), exponent);
}

/* One dot product of e4m3 values as the tensor cores of sm_90 give it: they add
 * 32 products and the sum so far at a time, each cut 13 bits below the largest
 * exponent among them (a product's exponent is the sum of its factors'), and
 * cut the result to 14 significant bits. Found by trial; it gives the golden
 * logits to within an f32 rounding, where exact sums do not. */
static double
tensor_core_dot(const double *q, const double *k)
{
	double sum = 0, next;
	uint32_t first, d;

	for (first = 0; first < SPMLA_INDEX_DIM; first += 32) {
		int top = sum != 0 ? ilogb(sum) : -1000;

		for (d = first; d < first + 32; d++)
			if (q[d] * k[d] != 0 && ilogb(q[d]) + ilogb(k[d]) > top)
				top = ilogb(q[d]) + ilogb(k[d]);
		next = cut(sum, top - 13);
		for (d = first; d < first + 32; d++)
			next += cut(q[d] * k[d], top - 13);
		sum = next != 0 ? cut(next, ilogb(next) - 13) : 0;
	}
	return sum;
}

static double
exact_dot(const double *q, const double *k)
{
	double sum = 0;
	uint32_t d;

	for (d = 0; d < SPMLA_INDEX_DIM; d++)
		sum += q[d] * k[d];
	return sum;
}

static void
decode_e4m3(const uint8_t *codes, double *values)
{
	uint32_t d;

	for (d = 0; d < SPMLA_INDEX_DIM; d++)
		values[d] = golden_value(GOLDEN_E4M3, codes + d);
}

static double
largest_product(const double *q, const double *k)
{
	double most = 0;
	uint32_t d;

	for (d = 0; d < SPMLA_INDEX_DIM; d++)
		most = fmax(most, fabs(q[d] * k[d]));
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
	double query[SPMLA_INDEX_DIM], k[SPMLA_INDEX_DIM], off = 0, own = 0;
	uint32_t h;

	decode_e4m3(key, k);
	for (h = 0; h < heads; h++) {
		decode_e4m3(q + (uint64_t)h * SPMLA_INDEX_DIM, query);
		off += (fmax(tensor_core_dot(query, k), 0) -
			fmax(exact_dot(query, k), 0)) *
		       weights[h];
		own += fabs(weights[h]) * 0.82 * largest_product(query, k);
	}
	return fabs(off * scale) + (cuts ? fabs(own * scale) : 0);
}
