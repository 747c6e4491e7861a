/* SPDX-License-Identifier: Apache-2.0
 *
 * What the writers of e4m3 rows share: a block of 128 items, one a value of a
 * group or of an index row.
 */
#ifndef SPMLA_PLATFORM_GPU_ROW_H
#define SPMLA_PLATFORM_GPU_ROW_H

#include "spmla/platform/gpu/dialect_gpu.h"

enum { G_ROW = 128, G_ROW_SUBGROUPS = 8, G_ROW_ROPE = 64 };

#ifdef SPMLA_GPU_KERNELS

/* The largest of `least` and the block's |x|, of which NaN is none; `largest`
 * holds an entry a subgroup. A barrier at both ends. */
FN float
g_row_amax(float x, float least, LOCAL float *largest)
{
	float a = x < 0.0f ? -x : x;
	uint32_t mask, i;

	a = a > least ? a : least; /* of a NaN: least */
	for (mask = g_width() / 2; mask; mask >>= 1) {
		const float b = g_shuffle_xor_f(a, mask);

		a = b > a ? b : a;
	}
	BARRIER();
	if (g_lane() == 0)
		largest[g_item() / g_width()] = a;
	BARRIER();
	for (i = 0; i < G_ROW / g_width(); i++)
		a = largest[i] > a ? largest[i] : a;
	return a;
}

/* The sum of the block's x: lane l of 16 adds l, l + 16, .. to 0, then the tree
 * 8, 4, 2, 1. `row` holds an entry an item. A barrier at both ends. */
FN float
g_row_sum(float x, LOCAL float *row)
{
	float sum = 0.0f;
	uint32_t i;

	BARRIER();
	row[g_item()] = x;
	BARRIER();
	for (i = g_item() % 16; i < G_ROW; i += 16)
		sum += row[i];
	return g_sum16(sum);
}

/* The item's value after the rotation of the 64 from `first` on, 0 or 64: four
 * products, one difference, one sum, each rounded; then bf16. cos_sin is the
 * position's. */
FN float
g_row_rope_at(float x, uint32_t first, GLOBAL const float *cos_sin,
	      uint32_t neox, LOCAL float *row)
{
	const uint32_t i = g_item() - first, pairs = G_ROW_ROPE / 2;
	const uint32_t pair = neox ? i % pairs : i / 2;
	const uint32_t second = neox ? i / pairs : i % 2;
	const uint32_t other = neox ? i ^ pairs : i ^ 1u;
	float y;

	BARRIER();
	row[g_item()] = x;
	BARRIER();
	if (i >= G_ROW_ROPE) /* those before `first` too, which wrap */
		return x;
	y = row[first + other];
	if (second)
		x = x * cos_sin[pair] + y * cos_sin[pairs + pair];
	else
		x = x * cos_sin[pair] - y * cos_sin[pairs + pair];
	return g_round_bf16(x);
}

/* The rotation of the first 64. */
FN float
g_row_rope(float x, GLOBAL const float *cos_sin, uint32_t neox,
	   LOCAL float *row)
{
	return g_row_rope_at(x, 0, cos_sin, neox, row);
}

#endif
#endif
