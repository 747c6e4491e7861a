/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference's numbers. The one idea: a double holds every f32, bf16 and
 * e4m3 number and the exact product of two f32, so each rounding of a kernel
 * is one call here, and none is done by looking at bits.
 */
#include "tests/reference/reference.h"

#include <math.h>
#include <string.h>

enum { POWERS = 1022 };

/* ldexp(x, n) for |n| < POWERS, where neither 2^n nor the result is subnormal.
 * The same bits as ldexp gives in a tenth of the time, which counts: the
 * reference does little else. */
static double
scaled(double x, int n)
{
	static double powers[2 * POWERS];
	double *power = &powers[n + POWERS];

	if (*power == 0)
		*power = ldexp(1, n);
	return x * *power;
}

static double
e4m3_value(uint8_t code)
{
	const int exponent = code >> 3 & 15;
	const int mantissa = code & 7;
	double a;

	if ((code & 127) == REF_E4M3_NAN)
		a = NAN;
	else if (exponent == 0)
		a = scaled(mantissa, -9);
	else
		a = scaled(8 + mantissa, exponent - 10);
	return code & 128 ? -a : a;
}

double
ref_e4m3_value(uint8_t code)
{
	static double values[256];

	/* Only the codes whose value is 0 are worked out again and again. */
	if (values[code] == 0)
		values[code] = e4m3_value(code);
	return values[code];
}

double
ref_fnuz_value(uint8_t code)
{
	const int exponent = code >> 3 & 15;
	const int mantissa = code & 7;
	const double a = exponent ? scaled(8 + mantissa, exponent - 11)
				  : scaled(mantissa, -10);

	if (code == 0x80)
		return NAN;
	return code & 128 ? -a : a;
}

uint8_t
ref_fnuz(double x)
{
	const double a = fabs(x);
	uint8_t best = 0, code;

	if (isnan(x))
		return 0x80;
	if (a >= ref_fnuz_value(0x7f))
		return x < 0 ? 0xff : 0x7f;
	for (code = 1; code < 0x80; code++) {
		const double off = fabs(a - ref_fnuz_value(code));
		const double least = fabs(a - ref_fnuz_value(best));

		if (off < least || (off == least && code % 2 == 0))
			best = code;
	}
	return x < 0 && best ? best | 0x80 : best;
}

uint8_t
ref_e4m3(double x)
{
	const uint8_t sign = signbit(x) ? 128 : 0;
	const double a = fabs(x);
	uint8_t lo = 0, hi = REF_E4M3_MAX;
	double below, above;

	if (isnan(x))
		return sign | REF_E4M3_NAN;
	if (a >= ref_e4m3_value(hi))
		return sign | hi;
	/* value(lo) <= a < value(hi) */
	while (hi - lo > 1) {
		const uint8_t mid = (uint8_t)((lo + hi) / 2);

		if (ref_e4m3_value(mid) <= a)
			lo = mid;
		else
			hi = mid;
	}
	below = a - ref_e4m3_value(lo);
	above = ref_e4m3_value(hi) - a;
	if (below < above || (below == above && lo % 2 == 0))
		return sign | lo;
	return sign | hi;
}

static double
bf16_value(uint16_t bits)
{
	const int exponent = bits >> 7 & 255;
	const int mantissa = bits & 127;
	double a;

	if (exponent == 255)
		a = mantissa ? NAN : INFINITY;
	else if (exponent == 0)
		a = scaled(mantissa, -133);
	else
		a = scaled(128 + mantissa, exponent - 134);
	return bits & 0x8000 ? -a : a;
}

double
ref_bf16_value(uint16_t bits)
{
	static double values[1 << 16];

	if (values[bits] == 0)
		values[bits] = bf16_value(bits);
	return values[bits];
}

double
ref_round_bf16(double x)
{
	int exponent;
	double a;

	if (x == 0 || !isfinite(x))
		return x;
	/* |x| in [2^(e-1), 2^e) has 8 significant bits: steps of 2^(e-8), but
	 * never below the subnormals' 2^-133. */
	(void)frexp(x, &exponent);
	exponent = exponent - 8 < -133 ? -133 : exponent - 8;
	a = scaled(rint(scaled(fabs(x), -exponent)), exponent);
	return copysign(a >= 0x1p128 ? INFINITY : a, x);
}

uint16_t
ref_bf16_bits(double x)
{
	const double a = fabs(ref_round_bf16(x));
	const uint16_t sign = signbit(x) ? 0x8000 : 0;
	int exponent;
	double m;

	if (isnan(a))
		return sign | 0x7fc0;
	if (isinf(a))
		return sign | 0x7f80;
	if (a < 0x1p-126)
		return (uint16_t)(sign | (int)ldexp(a, 133));
	m = frexp(a, &exponent);
	return (uint16_t)(sign | (exponent + 126) << 7 |
			  ((int)(m * 256) - 128));
}

double
ref_round_f32(double x)
{
	/* Products, quotients and sums of two f32 that were first rounded to
	 * double round to the same f32: 53 >= 2 * 24 + 2. */
	volatile float f = (float)x;

	return f;
}

double
ref_pow2up(double s)
{
	int exponent;
	const double m = frexp(s, &exponent);

	if (!isfinite(s) || m == 0.5)
		return s;
	return ldexp(1, exponent);
}

double
ref_amax(const double *x, uint32_t n)
{
	double amax = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (fabs(x[i]) > amax)
			amax = fabs(x[i]);
	return amax;
}

void
ref_rope(double *x, const float *cos_sin, ref_rope_style style)
{
	const uint32_t half = REF_ROPE / 2;
	uint32_t i;

	if (style == REF_ROPE_NONE)
		return;
	for (i = 0; i < half; i++) {
		double *p = style == REF_ROPE_NEOX ? &x[i] : &x[2 * i];
		double *q = style == REF_ROPE_NEOX ? &x[i + half] : p + 1;
		const double c = cos_sin[i], s = cos_sin[i + half];
		const double pc = ref_round_f32(*p * c);
		const double ps = ref_round_f32(*p * s);
		const double qc = ref_round_f32(*q * c);
		const double qs = ref_round_f32(*q * s);

		*p = ref_round_bf16(ref_round_f32(pc - qs));
		*q = ref_round_bf16(ref_round_f32(qc + ps));
	}
}

/* Bounds, in units of u = 2^-24, of an f32 evaluation with sums of at most 12
 * roundings a term: the mean is off by 13 u of mean |x|; 1 / sqrt(var + eps)
 * by 10 u, because an error of the mean is of second order in the variance;
 * and three more roundings follow. */
uint32_t
ref_layer_norm(double *x, const float *weight, const float *bias, double eps,
	       uint32_t n)
{
	const double u = 0x1p-24;
	double mean = 0, size = 0, var = 0, rstd;
	uint32_t i, uncertain = 0;

	for (i = 0; i < n; i++) {
		mean += x[i] / n;
		size += fabs(x[i]) / n;
	}
	for (i = 0; i < n; i++)
		var += (x[i] - mean) * (x[i] - mean) / n;
	rstd = 1 / sqrt(var + eps);
	for (i = 0; i < n; i++) {
		const double scaled = (x[i] - mean) * rstd * weight[i];
		const double y = scaled + bias[i];
		const double off =
			13 * u *
				(fabs(scaled) + size * rstd * fabs(weight[i])) +
			u * fabs(y);

		if (ref_round_bf16(y - off) != ref_round_bf16(y + off))
			uncertain++;
		x[i] = ref_round_bf16(y);
	}
	return uncertain;
}

static void
quantise_group(double *x, uint32_t n, double scale, uint8_t *code)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		code[i] = ref_e4m3(ref_round_f32(x[i] / scale));
		x[i] = ref_e4m3_value(code[i]);
	}
}

void
ref_quantise_kv(ref_kv_row *row, const uint16_t *kv_c, const uint16_t *k_pe,
		ref_scale_mode mode)
{
	const uint32_t width = REF_LATENT / REF_SCALES;
	uint32_t g, i;

	memset(row, 0, sizeof *row);
	for (i = 0; i < REF_LATENT; i++)
		row->k[i] = ref_bf16_value(kv_c[i]);
	for (i = 0; i < REF_ROPE; i++)
		row->k[REF_LATENT + i] = ref_bf16_value(k_pe[i]);
	for (g = 0; g < REF_SCALES && mode != REF_SCALE_NONE; g++) {
		double *x = row->k + g * width;
		double s = ref_round_f32(ref_amax(x, width) / 448);

		if (mode == REF_SCALE_POW2)
			s = ref_pow2up(fmax(s, (double)1e-4f));
		else
			s = fmax(s, 0x1p-126);
		row->scale[g] = s;
		quantise_group(x, width, s, row->code + g * width);
		for (i = 0; i < width; i++)
			x[i] *= s;
	}
}

void
ref_quantise_index_k(ref_index_key *key, const uint16_t *k,
		     const ref_index_k_rule *rule)
{
	double amax;
	uint32_t i;

	key->uncertain = 0;
	for (i = 0; i < REF_INDEX_DIM; i++)
		key->value[i] = ref_bf16_value(k[i]);
	if (rule->norm_weight)
		key->uncertain = ref_layer_norm(key->value, rule->norm_weight,
						rule->norm_bias, rule->norm_eps,
						REF_INDEX_DIM);
	ref_rope(key->value, rule->cos_sin, rule->rope);
	amax = fmax(ref_amax(key->value, REF_INDEX_DIM), (double)1e-4f);
	key->scale = ref_round_f32(amax / 448);
	if (rule->mode == REF_SCALE_POW2)
		key->scale = ref_pow2up(key->scale);
	quantise_group(key->value, REF_INDEX_DIM, key->scale, key->code);
}

void
ref_index_q(const uint16_t *q, uint64_t stride_elems, const float *weights,
	    const ref_index_q_rule *rule, double *values, double *out_weights)
{
	const double floor = (double)1e-10f;
	uint8_t code[REF_INDEX_DIM];
	uint32_t h, i;

	for (h = 0; h < rule->heads; h++) {
		double *x = values + (uint64_t)h * REF_INDEX_DIM;
		double s, w;

		for (i = 0; i < REF_INDEX_DIM; i++)
			x[i] = ref_bf16_value(q[h * stride_elems + i]);
		ref_rope(x, rule->cos_sin, rule->rope);
		s = fmax(ref_amax(x, REF_INDEX_DIM), floor);
		s = ref_round_f32(s / 448);
		if (rule->floor == REF_Q_FLOOR_GROUP)
			s = fmax(s, floor);
		s = ref_pow2up(s);
		quantise_group(x, REF_INDEX_DIM, s, code);
		w = ref_round_f32(weights[h] * s);
		w = ref_round_f32(w * rule->softmax_scale);
		out_weights[h] = ref_round_f32(w * rule->head_scale);
	}
}
