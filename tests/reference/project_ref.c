/* SPDX-License-Identifier: Apache-2.0
 *
 * See project_ref.h.
 */
#include "tests/reference/project_ref.h"

#include <check.h>
#include <math.h>

#include "tests/harness/fixture.h"
#include "tests/reference/reference.h"

void
project_fill(uint64_t *rng, uint16_t *values, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		values[i] = test_bf16(rng_float(rng));
}

void
project_check(const uint16_t *got, const uint16_t *x, const uint16_t *w,
	      int64_t w_stride_elems, uint32_t n, uint32_t columns,
	      double slack)
{
	uint32_t i, j;

	for (j = 0; j < columns; j++) {
		const double value = ref_bf16_value(got[j]);
		double sum = 0, terms = 0;

		for (i = 0; i < n; i++) {
			const double term =
				ref_bf16_value(x[i]) *
				ref_bf16_value(w[i * w_stride_elems + j]);

			sum += term;
			terms += fabs(term);
		}
		if (isnan(sum))
			ck_assert(isnan(value));
		else if (isinf(sum))
			ck_assert(value == sum);
		else
			ck_assert_msg(fabs(value - sum) <=
					      0x1p-8 * fabs(sum) +
						      1.01 * slack * terms,
				      "column %u: got %.9g, want %.9g", j,
				      value, sum);
	}
}

uint16_t
project_bits(const uint16_t *x, const uint16_t *w, int64_t w_stride_elems,
	     uint32_t n)
{
	float lane[16] = {0};
	uint32_t i, half;

	for (i = 0; i < n; i++)
		lane[i % 16] += test_bf16_value(x[i]) *
				test_bf16_value(w[i * w_stride_elems]);
	for (half = 8; half; half /= 2)
		for (i = 0; i < half; i++)
			lane[i] += lane[i + half];
	return test_bf16(lane[0]);
}

void
project_cancel(uint64_t *rng, uint16_t *x, int64_t x_stride_elems,
	       uint32_t rows, uint16_t *w, int64_t w_stride_elems, uint32_t n,
	       uint32_t columns)
{
	uint32_t r, i, j;

	for (r = 0; r < rows; r++, x += x_stride_elems)
		for (i = 0; i < n / 2; i++)
			x[i] = x[n - 1 - i] = test_bf16(rng_float(rng));
	for (i = 0; i < n / 2; i++)
		for (j = 0; j < columns; j++) {
			const float y = rng_float(rng);

			w[i * w_stride_elems + j] = test_bf16(y);
			w[(n - 1 - i) * w_stride_elems + j] = test_bf16(-y);
		}
}
