/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of V4: how they are made, and what may be stored of them.
 */
#include "tests/reference/reference_v4.h"
#include "tests/reference/mxfp4_ref.h"

#include <math.h>
#include <string.h>

/* The compressor's bound, relative to (sum of |kv| w) / (sum of w). */
#define COMPRESS_OFF 1e-5

static double
f32_sum(double a, double b)
{
	return ref_round_f32(a + b);
}

void
ref_v4_window_key(ref_v4_key *key, const uint16_t *kv, const float *cos_sin)
{
	uint32_t i;

	key->dim = REF_V4_DIM;
	for (i = 0; i < REF_V4_DIM; i++)
		key->low[i] = ref_bf16_value(kv[i]);
	ref_rope(key->low + REF_V4_NOPE, cos_sin, REF_ROPE_INTERLEAVED);
	memcpy(key->high, key->low, sizeof key->high);
}

/* The mean of column d, and of |kv| with the same weights. */
static double
column_mean(const ref_v4_group *g, uint32_t d, double *magnitude)
{
	double weight[REF_V4_MOST_ROWS];
	double most = -INFINITY, sum = 0, mean = 0;
	uint32_t i;

	for (i = 0; i < g->rows; i++) {
		weight[i] = -INFINITY;
		if (g->kv[i])
			weight[i] = f32_sum((double)g->score[i][d],
					    (double)g->ape[i][d]);
		most = fmax(most, weight[i]);
	}
	*magnitude = 0;
	for (i = 0; i < g->rows; i++) {
		if (!g->kv[i])
			continue;
		weight[i] = exp(weight[i] - most);
		sum += weight[i];
		mean += weight[i] * (double)g->kv[i][d];
		*magnitude += weight[i] * fabs((double)g->kv[i][d]);
	}
	*magnitude /= sum;
	return mean / sum;
}

/* The last 64 values and how far they are off; two products and a sum in f32
 * on top. */
static void
turn(double *y, double *off, const float *cos_sin)
{
	uint32_t i;

	for (i = 0; i < REF_ROPE; i += 2) {
		const double c = (double)cos_sin[i / 2];
		const double s = (double)cos_sin[32 + i / 2];
		const double a = y[i], b = y[i + 1];
		const double a_off = off[i], b_off = off[i + 1];
		const double f32 = 0x1p-22 * (fabs(a) + fabs(b));

		y[i] = a * c - b * s;
		y[i + 1] = b * c + a * s;
		off[i] = a_off * fabs(c) + b_off * fabs(s) + f32;
		off[i + 1] = b_off * fabs(c) + a_off * fabs(s) + f32;
	}
}

static void
set_ends(ref_v4_key *key, const double *y, const double *off)
{
	uint32_t d;

	for (d = 0; d < key->dim; d++) {
		key->low[d] = ref_round_bf16(y[d] - off[d]);
		key->high[d] = ref_round_bf16(y[d] + off[d]);
	}
}

/* The root of the mean square is off by what the squares are, halved: of each c
 * that is c * its own; 2^-20 is for the f32 sum, root and products. */
void
ref_v4_compress(ref_v4_key *key, const ref_v4_group *g)
{
	double y[REF_V4_DIM], off[REF_V4_DIM];
	double squares = 0, wrong = 0, rstd;
	uint32_t d;

	key->dim = g->dim;
	for (d = 0; d < g->dim; d++) {
		double magnitude;

		y[d] = column_mean(g, d, &magnitude);
		off[d] = COMPRESS_OFF * magnitude;
		squares += y[d] * y[d];
		wrong += fabs(y[d]) * off[d];
	}
	squares += g->norm_eps * g->dim;
	rstd = 1 / sqrt(squares / g->dim);
	for (d = 0; d < g->dim; d++) {
		const double w = (double)g->norm_weight[d];

		off[d] += fabs(y[d]) * (wrong / squares + 0x1p-20);
		off[d] *= rstd * fabs(w);
		y[d] *= rstd * w;
	}
	turn(y + g->dim - REF_ROPE, off + g->dim - REF_ROPE, g->cos_sin);
	set_ends(key, y, off);
}

/* ---- What is stored ---------------------------------------------------- */

static int
missed(ref_miss *miss, const char *what, uint32_t at, double got, double want)
{
	miss->what = what;
	miss->at = at;
	miss->got = got;
	miss->want = want;
	return 0;
}

/* Whether the scale is one of the two that n values from d on may have, of
 * which the largest is at most `most` times it. */
static int
check_scale(const ref_v4_key *k, uint32_t d, uint32_t n, double floor,
	    double most, double scale, ref_miss *miss)
{
	double small = floor, large = floor, want;
	uint32_t i;

	for (i = d; i < d + n; i++) {
		const double a = fabs(k->low[i]), b = fabs(k->high[i]);

		if ((k->low[i] < 0) == (k->high[i] < 0))
			small = fmax(small, fmin(a, b));
		large = fmax(large, fmax(a, b));
	}
	want = ref_pow2up(small / most);
	if (scale == want || scale == ref_pow2up(large / most))
		return 1;
	return missed(miss, "a key's scale", d, scale, want);
}

static int
check_e4m3(const ref_v4_key *k, uint32_t d, uint32_t n, const uint8_t *codes,
	   double scale, ref_miss *miss)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const double got = ref_e4m3_value(codes[i]);
		const double low =
			ref_e4m3_value(ref_e4m3(k->low[d + i] / scale));
		const double high =
			ref_e4m3_value(ref_e4m3(k->high[d + i] / scale));

		if (!(got >= low && got <= high))
			return missed(miss, "a key's code", d + i, got, low);
	}
	return 1;
}

int
ref_v4_check_row(const ref_v4_key *k, const uint8_t *values,
		 const uint8_t *scales, ref_miss *miss)
{
	uint32_t d;

	for (d = 0; d < REF_V4_NOPE; d += REF_V4_GROUP) {
		const double s = ldexp(1, scales[d / REF_V4_GROUP] - 127);

		if (!check_scale(k, d, REF_V4_GROUP, (double)1e-4f, 448, s,
				 miss) ||
		    !check_e4m3(k, d, REF_V4_GROUP, values + d, s, miss))
			return 0;
	}
	if (scales[7] != 0)
		return missed(miss, "the byte behind a key's scales", 0,
			      scales[7], 0);
	for (; d < REF_V4_DIM; d++) {
		const uint8_t *at =
			values + REF_V4_NOPE + 2 * (d - REF_V4_NOPE);
		const double got =
			ref_bf16_value((uint16_t)(at[0] | at[1] << 8));

		if (!(got >= k->low[d] && got <= k->high[d]))
			return missed(miss, "a key's rotated value", d, got,
				      k->low[d]);
	}
	return 1;
}

int
ref_v4_check_index(const ref_v4_key *k, const uint8_t *codes, double scale,
		   ref_miss *miss)
{
	return check_scale(k, 0, REF_INDEX_DIM, (double)1e-4f, 448, scale,
			   miss) &&
	       check_e4m3(k, 0, REF_INDEX_DIM, codes, scale, miss);
}

/* The nearest value of x. */
static double
e2m1_round(double x)
{
	return ref_e2m1_value(ref_e2m1(x));
}

int
ref_v4_check_mxfp4(const ref_v4_key *k, const uint8_t *codes,
		   const uint8_t *scales, ref_miss *miss)
{
	uint32_t d;

	for (d = 0; d < REF_INDEX_DIM; d++) {
		const double s = ref_mxfp4_scale_value(scales[d / 32]);
		const double got =
			ref_e2m1_value(codes[d / 2] >> d % 2 * 4 & 15);

		if (d % 32 == 0 &&
		    !check_scale(k, d, 32, 6 * 0x1p-126, 6, s, miss))
			return 0;
		if (!(got >= e2m1_round(k->low[d] / s) &&
		      got <= e2m1_round(k->high[d] / s)))
			return missed(miss, "a key's code", d, got,
				      e2m1_round(k->low[d] / s));
	}
	return 1;
}

void
ref_v4_read_row(double *row, const uint8_t *values, const uint8_t *scales)
{
	double decoded[256];
	uint32_t i;

	for (i = 0; i < 256; i++)
		decoded[i] = ref_e4m3_value((uint8_t)i);
	for (i = 0; i < REF_V4_NOPE; i++)
		row[i] = decoded[values[i]] *
			 ldexp(1, scales[i / REF_V4_GROUP] - 127);
	for (; i < REF_V4_DIM; i++) {
		const uint8_t *at =
			values + REF_V4_NOPE + 2 * (i - REF_V4_NOPE);

		row[i] = ref_bf16_value((uint16_t)(at[0] | at[1] << 8));
	}
}

void
ref_v4_read_index(ref_index_key *key, const uint8_t *codes, double scale)
{
	uint32_t i;

	memset(key, 0, sizeof *key);
	key->scale = scale;
	for (i = 0; i < REF_INDEX_DIM; i++) {
		key->code[i] = codes[i];
		key->value[i] = ref_e4m3_value(codes[i]);
	}
}

void
ref_v4_read_mxfp4(ref_index_key *key, const uint8_t *codes,
		  const uint8_t *scales)
{
	uint32_t i;

	memset(key, 0, sizeof *key);
	key->scale = 1;
	for (i = 0; i < REF_INDEX_DIM; i++)
		key->value[i] = ref_mxfp4_value(codes, scales, i);
}

/* ---- Queries ----------------------------------------------------------- */

int
ref_v4_check_query(const uint16_t *q, double norm_eps, const float *cos_sin,
		   const uint16_t *got, ref_miss *miss)
{
	double y[REF_V4_DIM], off[REF_V4_DIM], squares = 0, rstd;
	ref_v4_key key;
	uint32_t d;

	key.dim = REF_V4_DIM;
	for (d = 0; d < REF_V4_DIM; d++) {
		y[d] = ref_bf16_value(q[d]);
		squares += y[d] * y[d];
	}
	rstd = 1 / sqrt(squares / REF_V4_DIM + norm_eps);
	for (d = 0; d < REF_V4_DIM; d++) {
		y[d] *= rstd;
		off[d] = 0x1p-20 * fabs(y[d]);
	}
	turn(y + REF_V4_NOPE, off + REF_V4_NOPE, cos_sin);
	set_ends(&key, y, off);
	for (d = 0; d < REF_V4_DIM; d++) {
		const double x = ref_bf16_value(got[d]);

		if (!(x >= key.low[d] && x <= key.high[d]))
			return missed(miss, "q", d, x, key.low[d]);
	}
	return 1;
}

/* One head's x[128] to codes and back; the scale that is left to the weight. */
static double
quantise_index_q(double *x, int mxfp4)
{
	double s = 1;
	uint32_t d;

	if (!mxfp4)
		s = ref_pow2up(ref_round_f32(
			fmax(ref_amax(x, REF_INDEX_DIM), (double)1e-4f) / 448));
	for (d = 0; d < REF_INDEX_DIM && !mxfp4; d++)
		x[d] = ref_e4m3_value(ref_e4m3(x[d] / s));
	for (d = 0; d < REF_INDEX_DIM && mxfp4; d += 32) {
		const double group = ref_mxfp4_scale_value(
			ref_mxfp4_scale(ref_amax(x + d, 32)));
		uint32_t i;

		for (i = d; i < d + 32; i++)
			x[i] = e2m1_round(x[i] / group) * group;
	}
	return s;
}

void
ref_v4_index_q(const uint16_t *q, uint64_t stride_elems, const float *weights,
	       const ref_index_q_rule *rule, int mxfp4, double *values,
	       double *out_weights)
{
	uint32_t h, d;

	for (h = 0; h < rule->heads; h++) {
		double *x = values + (uint64_t)h * REF_INDEX_DIM, w;

		for (d = 0; d < REF_INDEX_DIM; d++)
			x[d] = ref_bf16_value(q[h * stride_elems + d]);
		ref_rope(x + REF_INDEX_DIM - REF_ROPE, rule->cos_sin,
			 REF_ROPE_INTERLEAVED);
		w = ref_round_f32((double)weights[h] *
				  quantise_index_q(x, mxfp4));
		w = ref_round_f32(w * (double)rule->softmax_scale);
		out_weights[h] = ref_round_f32(w * (double)rule->head_scale);
	}
}
