/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of cosines and sines, plain and YaRN. The hard idea is where to round.
 * Frequencies are computed in double and rounded once. Angles are products in
 * f32: far from 0 this rounding matters, and models were trained with it.
 */
#include "spmla/rope.h"
#include "spmla/internal/check.h"

#include <math.h>

enum {
	HALF = 32,             /* frequencies */
	MAX_POSITION = 1 << 24 /* past it f32 does not hold them all */
};

spmla_status
spmla_rope_preset(spmla_rope *rope, spmla_model model, uint32_t ratio)
{
	const uint32_t v32 = model == SPMLA_MODEL_V32;
	const uint32_t stretched = !v32 && (ratio == SPMLA_COMPRESS_OVERLAP ||
					    ratio == SPMLA_COMPRESS_MOST);
	const spmla_rope plain = {
		(uint32_t)sizeof plain, 0, 1, 32, 1, 10000, 1};

	if (!rope)
		return SPMLA_E_NULL;
	if (model < SPMLA_MODEL_V32 || model > SPMLA_MODEL_V4_PRO ||
	    (ratio != 1 && !stretched))
		return SPMLA_E_RANGE;
	*rope = plain;
	if (v32) {
		rope->original_tokens = 4096;
		rope->factor = 40;
	} else if (stretched) {
		rope->original_tokens = 65536;
		rope->factor = 16;
		rope->theta = 160000;
	}
	return SPMLA_OK;
}

static spmla_status
check_rope(const spmla_rope *r, spmla_diag *diag)
{
	const double most = 0x1p100; /* no product below overflows */
	/* Written so that a NaN is refused. */
	const struct {
		const char *field;
		int keeps;
	} checks[] = {
		{"rope.theta: want above 1, to 2^100",
		 r->theta > 1 && r->theta <= most},
		{"rope.mscale: want above 0, to 2^100",
		 r->mscale > 0 && r->mscale <= most},
		{"rope.factor: want 1 to 2^100",
		 r->factor >= 1 && r->factor <= most},
		{"rope.beta_slow: want at least 2^-100",
		 r->beta_slow >= 1 / most},
		{"rope.beta_fast: want above beta_slow, to 2^100",
		 r->beta_fast > r->beta_slow && r->beta_fast <= most},
	};
	const uint32_t count = r->original_tokens ? SPMLA_I_COUNT(checks) : 2;
	uint32_t i;

	for (i = 0; i < count; i++)
		if (!checks[i].keeps)
			return spmla_i_fail(diag, SPMLA_E_RANGE,
					    checks[i].field, 0,
					    SPMLA_WANT_NOTHING, 0);
	return SPMLA_OK;
}

/* The index of the frequency that turns `turns` times within the original
 * tokens, as a fraction between two indices, clamped to 0 .. 63. */
static double
place_of(const spmla_rope *r, double turns)
{
	const double pi = 3.14159265358979323846;
	const double x = (double)HALF *
			 log(r->original_tokens / (2 * pi * turns)) /
			 log(r->theta);

	return x < 0 ? 0 : x > 63 ? 63 : x;
}

static void
make_frequencies(const spmla_rope *r, float frequency[HALF])
{
	double low = 0, high = 1, part;
	uint32_t i;

	if (r->original_tokens) {
		const double place = place_of(r, r->beta_slow);

		low = (uint32_t)place_of(r, r->beta_fast);
		high = (uint32_t)place;
		high += high < place;
		high = high > low ? high : low + 0.001; /* a step */
	}
	for (i = 0; i < HALF; i++) {
		double f = pow(r->theta, -(double)i / (double)HALF);

		if (r->original_tokens) {
			part = (i - low) / (high - low);
			part = part < 0 ? 0 : part > 1 ? 1 : part;
			f = f / r->factor * part + f * (1 - part);
		}
		frequency[i] = (float)f;
	}
}

spmla_status
spmla_rope_fill(float *cos_sin, uint32_t first_position, uint32_t rows,
		const spmla_rope *rope, spmla_diag *diag)
{
	const spmla_i_check pointers[] = {
		{"cos_sin", SPMLA_I_PTR(cos_sin), SPMLA_WANT_NOT_NULL, 0},
		{"rope", SPMLA_I_PTR(rope), SPMLA_WANT_NOT_NULL, 0},
	};
	const uint64_t end = (uint64_t)first_position + rows;
	float frequency[HALF];
	spmla_status s;
	uint64_t p;
	uint32_t i;

	s = spmla_i_check_all(diag, pointers, SPMLA_I_COUNT(pointers));
	if (s == SPMLA_OK)
		s = spmla_i_check_size(diag, "rope.struct_bytes",
				       rope->struct_bytes, sizeof *rope);
	if (s == SPMLA_OK)
		s = check_rope(rope, diag);
	if (s != SPMLA_OK)
		return s;
	if (end > MAX_POSITION)
		return spmla_i_fail(diag, SPMLA_E_RANGE,
				    "first_position + rows", end,
				    SPMLA_WANT_AT_MOST, MAX_POSITION);
	make_frequencies(rope, frequency);
	for (p = first_position; p < end; p++, cos_sin += 2 * HALF)
		for (i = 0; i < HALF; i++) {
			const float angle = (float)p * frequency[i];

			cos_sin[i] = (float)(cos((double)angle) * rope->mscale);
			cos_sin[HALF + i] =
				(float)(sin((double)angle) * rope->mscale);
		}
	return SPMLA_OK;
}
