/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of compress_rig.h in double. The one idea of the check: each value
 * lies between two doubles, and rounding keeps their order, so a stored code
 * lies between theirs, whatever the scale that was stored, which itself lies
 * between two.
 */
#include "tests/support/compress_rig.h"
#include "tests/support/narrow_ref.h"

#include <check.h>
#include <math.h>
#include <string.h>

/* Of the contract, in the sum of |kv| w over that of w. */
#define OFF 1e-5

/* ---- The key in double ------------------------------------------------- */

typedef struct key {
	double y[512];
	double off[512]; /* how far it may be */
} key;

/* c of column d, and the sum of |kv| w over that of w. */
static double
mean_at(const compress_rig *r, uint32_t row, uint32_t pos, uint32_t d,
	double *magnitude)
{
	double most = -INFINITY, sum = 0, acc = 0, abs_acc = 0;
	uint32_t i, round;

	for (round = 0; round < 2; round++)
		for (i = 0; i < r->group; i++) {
			const int64_t p = (int64_t)pos - r->group + 1 + i;
			/* The later half of 8 has its own columns. */
			const uint32_t col = i >= r->a.ratio ? d + r->dim : d;
			double s, v;

			if (p < 0)
				continue;
			s = compress_rig_score(r, row, (uint32_t)p, col);
			if (round == 0) {
				most = s > most ? s : most;
				continue;
			}
			v = (double)r->kv[((uint64_t)row * r->history +
					   (uint64_t)p) *
						  r->width +
					  col];
			sum += exp(s - most);
			acc += v * exp(s - most);
			abs_acc += fabs(v) * exp(s - most);
		}
	*magnitude = abs_acc / sum;
	return acc / sum;
}

static void
rotate(const compress_rig *r, key *k, uint32_t pos)
{
	const float *row = r->cos_sin + pos / r->a.ratio * r->a.ratio * 64;
	uint32_t i;

	for (i = 0; i < 32; i++) {
		double *y = k->y + r->dim - 64 + 2 * i;
		double *off = k->off + r->dim - 64 + 2 * i;
		const double c = (double)row[i], s = (double)row[32 + i];
		const double e = y[0], o = y[1], de = off[0], d = off[1];
		const double f32 = (fabs(e) + fabs(o)) * 0x1p-22;

		y[0] = e * c - o * s;
		y[1] = o * c + e * s;
		off[0] = de * fabs(c) + d * fabs(s) + f32;
		off[1] = d * fabs(c) + de * fabs(s) + f32;
	}
}

/* r = 1 / sqrt(mean of c^2 + eps) is off by half of what the mean is, of
 * itself; 2^-20 is for the f32 roundings of sum, root and products. */
static void
make_key(const compress_rig *r, key *k, uint32_t row, uint32_t pos)
{
	double squares = 0, wrong = 0, root, c_off;
	uint32_t d;

	for (d = 0; d < r->dim; d++) {
		double magnitude;

		k->y[d] = mean_at(r, row, pos, d, &magnitude);
		k->off[d] = OFF * magnitude;
		squares += k->y[d] * k->y[d];
		wrong += fabs(k->y[d]) * k->off[d];
	}
	squares += (double)r->a.norm_eps * r->dim;
	root = 1 / sqrt(squares / r->dim);
	for (d = 0; d < r->dim; d++) {
		const double w = (double)r->norm[d];

		c_off = k->off[d] + fabs(k->y[d]) * (wrong / squares + 0x1p-20);
		k->off[d] = c_off * root * fabs(w);
		k->y[d] *= root * w;
	}
	rotate(r, k, pos);
}

/* ---- What was stored --------------------------------------------------- */

static uint8_t *
take(compress_rig *r, uint64_t at, uint32_t bytes)
{
	memset(r->seen + at, 1, bytes);
	return r->cache + at;
}

/* Codes of sign and magnitude in the order of their values. */
static int
in_order(uint32_t code, uint32_t sign)
{
	const int x = (int)(code & (sign - 1));

	return code & sign ? -x : x;
}

static void
between(const char *what, uint32_t d, int got, int low, int high)
{
	if (got < low || got > high)
		ck_abort_msg("%s, column %u: got %d, want %d .. %d", what, d,
			     got, low, high);
}

/* The nearest of all eight, of two the even one. */
static uint32_t
e2m1(double x)
{
	static const double values[8] = {0, .5, 1, 1.5, 2, 3, 4, 6};
	uint32_t best = 0, i;

	for (i = 1; i < 8; i++) {
		const double d = fabs(fabs(x) - values[i]);
		const double b = fabs(fabs(x) - values[best]);

		if (d < b || (d == b && i % 2 == 0))
			best = i;
	}
	return best | (signbit(x) ? 8u : 0u);
}

/* The ends of value d, as bf16. */
static void
ends(const key *k, uint32_t d, double *low, double *high)
{
	*low = ref_round_bf16(k->y[d] - k->off[d]);
	*high = ref_round_bf16(k->y[d] + k->off[d]);
}

/* The two scales that n values from d on may have. */
static void
scales(const key *k, uint32_t d, uint32_t n, double least, double most_code,
       double *low, double *high)
{
	double small = least, large = least;
	uint32_t i;

	for (i = d; i < d + n; i++) {
		double a, b, c;

		ends(k, i, &a, &b);
		c = a <= 0 && b >= 0 ? 0 : fmin(fabs(a), fabs(b));
		small = fmax(small, c);
		large = fmax(large, fmax(fabs(a), fabs(b)));
	}
	*low = ref_pow2up(small / most_code);
	*high = ref_pow2up(large / most_code);
}

static void
check_scale(double got, double low, double high, uint32_t d)
{
	if (!(got >= low && got <= high))
		ck_abort_msg("scale of column %u: got %a, want %a .. %a", d,
			     got, low, high);
}

static void
check_e4m3(const key *k, const uint8_t *codes, uint32_t d, uint32_t n,
	   double scale)
{
	uint32_t i;

	for (i = d; i < d + n; i++) {
		double a, b;

		ends(k, i, &a, &b);
		between("e4m3", i, in_order(codes[i - d], 128),
			in_order(quotient_code(a, scale), 128),
			in_order(quotient_code(b, scale), 128));
	}
}

static void
check_bf16(const key *k, const uint8_t *at, uint32_t d, uint32_t n)
{
	uint32_t i;

	for (i = d; i < d + n; i++) {
		uint16_t h;
		double a, b;

		memcpy(&h, at + 2 * (i - d), sizeof h);
		ends(k, i, &a, &b);
		between("bf16", i, in_order(h, 0x8000),
			in_order(ref_bf16_bits(a), 0x8000),
			in_order(ref_bf16_bits(b), 0x8000));
	}
}

static void
check_v4_fp8(compress_rig *r, const key *k, uint64_t page, uint32_t entry)
{
	const uint64_t value = page + entry * 576;
	const uint8_t *scale = take(
		r, page + r->a.cache.entries_per_page * 576 + entry * 8, 8);
	uint32_t g;

	for (g = 0; g < 7; g++) {
		const double s = ldexp(1, scale[g] - 127);
		double low, high;

		scales(k, g * 64, 64, (double)1e-4f, 448, &low, &high);
		check_scale(s, low, high, g * 64);
		check_e4m3(k, take(r, value + g * 64, 64), g * 64, 64, s);
	}
	ck_assert_uint_eq(scale[7], 0);
	check_bf16(k, take(r, value + 448, 128), 448, 64);
}

static void
check_index_fp8(compress_rig *r, const key *k, uint64_t page, uint32_t entry)
{
	double low, high;
	float s;

	memcpy(&s,
	       take(r, page + r->a.cache.entries_per_page * 128 + entry * 4, 4),
	       sizeof s);
	scales(k, 0, 128, (double)1e-4f, 448, &low, &high);
	check_scale((double)s, low, high, 0);
	check_e4m3(k, take(r, page + entry * 128, 128), 0, 128, (double)s);
}

static void
check_mxfp4(compress_rig *r, const key *k, uint64_t page, uint32_t entry)
{
	const uint8_t *codes = take(r, page + entry * 64, 64);
	const uint8_t *scale =
		take(r, page + r->a.cache.entries_per_page * 64 + entry * 4, 4);
	uint32_t g, i;

	for (g = 0; g < 4; g++) {
		const double s = ldexp(1, scale[g] - 127);
		double low, high;

		scales(k, g * 32, 32, 6 * 0x1p-126, 6, &low, &high);
		check_scale(s, low, high, g * 32);
		for (i = g * 32; i < g * 32 + 32; i++) {
			const uint32_t code = codes[i / 2] >> i % 2 * 4 & 15;
			double a, b;

			ends(k, i, &a, &b);
			between("e2m1", i, in_order(code, 8),
				in_order(e2m1(a / s), 8),
				in_order(e2m1(b / s), 8));
		}
	}
}

void
compress_ref_check(compress_rig *r, uint32_t t)
{
	const spmla_cache *c = &r->a.cache;
	const int64_t slot = r->slots[t];
	const uint32_t entry = (uint32_t)(slot % c->entries_per_page);
	const uint64_t page =
		(uint64_t)(slot / c->entries_per_page) * c->page_stride_bytes;
	static key k;

	make_key(r, &k, (uint32_t)r->row[t], (uint32_t)r->positions[t]);
	switch (c->layout) {
	case SPMLA_LAYOUT_V4_FP8:
		check_v4_fp8(r, &k, page, entry);
		break;
	case SPMLA_LAYOUT_V4_BF16:
		check_bf16(&k, take(r, page + entry * 1024, 1024), 0, 512);
		break;
	case SPMLA_LAYOUT_V4_E4M3:
		check_e4m3(&k, take(r, page + entry * 512, 512), 0, 512,
			   (double)r->a.e4m3_scale);
		break;
	case SPMLA_LAYOUT_INDEX_FP8:
		check_index_fp8(r, &k, page, entry);
		break;
	default:
		check_mxfp4(r, &k, page, entry);
	}
}
