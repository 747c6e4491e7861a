/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of V4 over dequantised rows, and what its output projection gets.
 */
#include "tests/reference/reference_v4.h"

#include <math.h>
#include <string.h>

/* Values of a scale of the output's quantisation. */
enum { OUTPUT_GROUP = 128 };

void
ref_v4_attend(const uint16_t *q, const double *rows, uint32_t n,
	      double softmax_scale, const float *sink, double *probs,
	      ref_attend_result *r)
{
	double query[REF_V4_DIM], max = -INFINITY, sum = 0, denominator;
	uint32_t i, d;

	memset(r, 0, sizeof *r);
	r->lse = INFINITY;
	for (d = 0; d < REF_V4_DIM; d++)
		query[d] = ref_bf16_value(q[d]);
	for (i = 0; i < n; i++) {
		const double *k = rows + (uint64_t)i * REF_V4_DIM;
		double dot = 0;

		for (d = 0; d < REF_V4_DIM; d++)
			dot += query[d] * k[d];
		probs[i] = dot * softmax_scale;
		max = fmax(max, probs[i]);
	}
	if (n == 0)
		return;
	for (i = 0; i < n; i++) {
		probs[i] = exp(probs[i] - max);
		sum += probs[i];
	}
	r->lse = max + log(sum);
	denominator = sum + (sink ? exp((double)*sink - max) : 0);
	for (i = 0; i < n; i++) {
		const double *v = rows + (uint64_t)i * REF_V4_DIM;
		const double p = probs[i] / denominator;

		for (d = 0; d < REF_V4_DIM; d++) {
			r->out[d] += p * v[d];
			r->magnitude[d] += p * fabs(v[d]);
		}
	}
}

void
ref_v4_output(const uint16_t *o, const float *cos_sin, double *values)
{
	uint32_t i, g;

	for (i = 0; i < REF_V4_DIM; i++)
		values[i] = ref_bf16_value(o[i]);
	for (i = REF_V4_NOPE; i < REF_V4_DIM; i += 2) {
		const uint32_t pair = (i - REF_V4_NOPE) / 2;
		const double c = (double)cos_sin[pair];
		const double s = (double)cos_sin[32 + pair];
		const double a = values[i], b = values[i + 1];

		values[i] = ref_round_f32(ref_round_f32(a * c) +
					  ref_round_f32(b * s));
		values[i + 1] = ref_round_f32(ref_round_f32(b * c) -
					      ref_round_f32(a * s));
	}
	for (g = 0; g < REF_V4_DIM; g += OUTPUT_GROUP) {
		const double amax = fmax(ref_amax(values + g, OUTPUT_GROUP),
					 (double)1e-10f);
		const double s = ref_pow2up(amax / 448);

		for (i = g; i < g + OUTPUT_GROUP; i++)
			values[i] = ref_e4m3_value(ref_e4m3(values[i] / s)) * s;
	}
}
