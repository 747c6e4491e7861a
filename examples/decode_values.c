/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers that stand for a model's results: a function of (seed, layer,
 * kind, request, position, draft), so a check can compute the values of any
 * token again, however long ago they were written. A rejected draft has other
 * values than the token that takes its place, so a key that was not overwritten
 * would show.
 */
#include <math.h>
#include <string.h>

#include "examples/decode_loop.h"

static uint64_t
mix(uint64_t z)
{
	z += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Nearest even. */
static uint16_t
bf16_of(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

uint64_t
values_stream(uint64_t seed, uint32_t layer, uint32_t kind, token of)
{
	return mix(mix(mix(seed) + ((uint64_t)layer << 8 | kind)) +
		   ((uint64_t)of.request << 33 | (uint64_t)of.position << 1 |
		    of.draft));
}

/* Four at `i`. Groups of 128 differ in size, so that their scales do. */
static void
four(uint64_t stream, uint32_t i, float x[4])
{
	const uint64_t h = mix(stream + i);
	const uint32_t size = (uint32_t)(stream >> (i / 128 % 32)) & 3u;
	uint32_t k;

	for (k = 0; k < 4; k++) {
		const int16_t v = (int16_t)(h >> (16 * k) & 0xffff);

		x[k] = (float)v * 0x1p-15f * (0.5f + 0.5f * (float)size);
	}
}

void
values_bf16(uint64_t stream, uint32_t width, uint16_t *out)
{
	uint32_t i, k;
	float x[4];

	for (i = 0; i < width; i += 4) {
		four(stream, i, x);
		for (k = 0; k < 4 && i + k < width; k++)
			out[i + k] = bf16_of(x[k]);
	}
}

void
values_f32(uint64_t stream, uint32_t width, float *out)
{
	uint32_t i, k;
	float x[4];

	for (i = 0; i < width; i += 4) {
		four(stream, i, x);
		for (k = 0; k < 4 && i + k < width; k++)
			out[i + k] = x[k];
	}
}

void
values_cos_sin(const double turn[32], uint32_t position, float *row)
{
	uint32_t i;

	for (i = 0; i < 32; i++) {
		row[i] = (float)cos(position * turn[i]);
		row[i + 32] = (float)sin(position * turn[i]);
	}
}
