/* SPDX-License-Identifier: Apache-2.0
 *
 * See mxfp4_ref.h.
 */
#include "tests/reference/mxfp4_ref.h"

#include <math.h>

#include "tests/reference/reference.h"

static const double magnitudes[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

uint8_t
ref_e2m1(double x)
{
	const double a = fmin(fabs(x), 6);
	uint8_t best = 0, i;

	if (isnan(x))
		return 7;
	for (i = 1; i < 8; i++) {
		const double gain =
			fabs(a - magnitudes[best]) - fabs(a - magnitudes[i]);

		if (gain > 0 || (gain == 0 && i % 2 == 0))
			best = i;
	}
	return signbit(x) ? best | 8 : best;
}

double
ref_e2m1_value(uint8_t code)
{
	return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

uint8_t
ref_mxfp4_scale(double amax)
{
	const double raw = ref_round_f32(fmax(amax, 6 * 0x1p-126) / 6);
	int e = -126;

	while (e < 127 && ldexp(1, e) < raw)
		e++;
	return (uint8_t)(e + 127);
}

double
ref_mxfp4_scale_value(uint8_t byte)
{
	return ldexp(1, byte - 127);
}

void
ref_mxfp4_encode(const double *x, uint32_t n, uint8_t *codes, uint8_t *scales)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint32_t group = i / 32;
		uint8_t code;

		if (i % 32 == 0)
			scales[group] = ref_mxfp4_scale(ref_amax(x + i, 32));
		/* in doubles nothing is lost before the code */
		code = ref_e2m1(x[i] / ref_mxfp4_scale_value(scales[group]));
		if (i % 2)
			code = (uint8_t)(codes[i / 2] | code << 4);
		codes[i / 2] = code;
	}
}

double
ref_mxfp4_value(const uint8_t *codes, const uint8_t *scales, uint32_t i)
{
	return ref_e2m1_value(codes[i / 2] >> 4 * (i % 2) & 15) *
	       ref_mxfp4_scale_value(scales[i / 32]);
}
