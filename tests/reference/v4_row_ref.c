/* SPDX-License-Identifier: Apache-2.0
 *
 * See v4_row_ref.h.
 */
#include "tests/reference/v4_row_ref.h"
#include "tests/reference/narrow_ref.h"
#include "tests/reference/reference.h"

#include <math.h>
#include <string.h>

enum { DIM = 512, NOPE = 448, ROPE = 64, FP8_ENTRY = 576 };

static double
add(double a, double b)
{
	return ref_round_f32(a + b);
}

static double
mul(double a, double b)
{
	return ref_round_f32(a * b);
}

uint16_t
v4_ref_bits(double x)
{
	return isnan(x) ? 0x7fc0 : ref_bf16_bits(x);
}

uint64_t
v4_ref_page_bytes(uint32_t layout, uint32_t entries)
{
	const uint64_t bytes = layout == SPMLA_LAYOUT_V4_FP8    ? 584
			       : layout == SPMLA_LAYOUT_V4_BF16 ? 1024
								: 512;

	return bytes * entries;
}

static void
write_fp8(uint8_t *page, uint64_t entries, uint64_t entry, const uint16_t *row,
	  uint32_t encoding)
{
	const double most = encoding == SPMLA_E4M3_FNUZ ? 224 : 448;
	uint8_t *data = page + entry * FP8_ENTRY;
	uint8_t *scales = page + entries * FP8_ENTRY + entry * 8;
	uint32_t g, i;

	for (g = 0; g < 7; g++) {
		double x[64], s;

		for (i = 0; i < 64; i++)
			x[i] = ref_bf16_value(row[g * 64 + i]);
		s = ref_pow2up(ref_round_f32(
			fmax(ref_amax(x, 64), (double)1e-4f) / most));
		for (i = 0; i < 64; i++)
			data[g * 64 + i] = encoded_quotient(x[i], s, encoding);
		scales[g] = isinf(s) ? 255 : (uint8_t)(ilogb(s) + 127);
	}
	scales[7] = 0;
	memcpy(data + NOPE, row + NOPE, 2 * ROPE);
}

void
v4_ref_write(const spmla_cache *c, uint8_t *pool, int64_t slot,
	     const uint16_t *row, float scale)
{
	const uint64_t n = (uint64_t)slot;
	const uint64_t entries = c->entries_per_page;
	const double inverse = ref_round_f32(1 / (double)scale);
	uint8_t *page;
	uint32_t i;

	if (slot < 0 || n / entries >= c->pages)
		return;
	page = pool + n / entries * c->page_stride_bytes;
	if (c->layout == SPMLA_LAYOUT_V4_FP8)
		write_fp8(page, entries, n % entries, row, c->encoding);
	else if (c->layout == SPMLA_LAYOUT_V4_BF16)
		memcpy(page + n % entries * 1024, row, 1024);
	else
		for (i = 0; i < DIM; i++)
			page[n % entries * DIM + i] = encoded_quotient(
				mul(ref_bf16_value(row[i]), inverse), 1,
				c->encoding);
}

void
v4_ref_read(const spmla_cache *c, const uint8_t *page, uint64_t entry,
	    float scale, uint16_t *row)
{
	const uint8_t *data = page + entry * FP8_ENTRY;
	const uint8_t *scales =
		page + c->entries_per_page * (uint64_t)FP8_ENTRY + entry * 8;
	uint32_t i;

	if (c->layout == SPMLA_LAYOUT_V4_BF16) {
		memcpy(row, page + entry * 1024, 1024);
		return;
	}
	if (c->layout == SPMLA_LAYOUT_V4_E4M3) {
		for (i = 0; i < DIM; i++)
			row[i] = v4_ref_bits(mul(
				code_value(page[entry * DIM + i], c->encoding),
				(double)scale));
		return;
	}
	for (i = 0; i < NOPE; i++) {
		const uint8_t byte = scales[i / 64];
		const double s = byte == 0     ? 0
				 : byte == 255 ? (double)INFINITY
					       : ldexp(1, byte - 127);

		row[i] = v4_ref_bits(mul(code_value(data[i], c->encoding), s));
	}
	memcpy(row + NOPE, data + NOPE, 2 * ROPE);
}

/* x[64] as bf16. */
static void
rotate(double *x, const float *cos_sin, uint16_t *out)
{
	uint32_t i;

	ref_rope(x, cos_sin, REF_ROPE_INTERLEAVED);
	for (i = 0; i < ROPE; i++)
		out[i] = v4_ref_bits(x[i]);
}

void
v4_ref_rotate(uint16_t *row, const float *cos_sin)
{
	double x[ROPE];
	uint32_t i;

	for (i = 0; i < ROPE; i++)
		x[i] = ref_bf16_value(row[NOPE + i]);
	rotate(x, cos_sin, row + NOPE);
}

/* x[n] onto x[0], halves onto halves; n is a power of two. */
static double
tree(double *x, uint32_t n)
{
	uint32_t i;

	if (n == 1)
		return x[0];
	for (i = 0; i < n / 2; i++)
		x[i] = add(x[i], x[i + n / 2]);
	return tree(x, n / 2);
}

double
v4_ref_rstd(const uint16_t *x, uint32_t n, float eps, uint32_t wide)
{
	const uint32_t lanes = wide ? 128 : 16;
	double lane[128] = {0}, part[8], mean;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const double v = ref_bf16_value(x[i]);

		lane[i / 8 % lanes] = add(lane[i / 8 % lanes], mul(v, v));
	}
	for (i = 0; i < lanes / 16; i++)
		part[i] = tree(lane + 16 * i, 16);
	mean = ref_round_f32(tree(part, lanes / 16) / n);
	return ref_round_f32(1 / ref_round_f32(sqrt(add(mean, (double)eps))));
}

void
v4_ref_query(const uint16_t *q, float eps, const float *cos_sin, uint16_t *out)
{
	const double r = v4_ref_rstd(q, DIM, eps, 0);
	double x[ROPE];
	uint32_t i;

	for (i = 0; i < NOPE; i++)
		out[i] = v4_ref_bits(mul(ref_bf16_value(q[i]), r));
	for (i = 0; i < ROPE; i++)
		x[i] = mul(ref_bf16_value(q[NOPE + i]), r);
	rotate(x, cos_sin, out + NOPE);
}
