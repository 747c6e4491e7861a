/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a row of 512 values into a V4 cache: 448 that may be quantised, then
 * 64 that were rotated. The row is bf16 by then, so all its writers give the
 * same bytes.
 */
#ifndef SPMLA_PLATFORM_CPU_CACHE_V4_ROW_CPU_H
#define SPMLA_PLATFORM_CPU_CACHE_V4_ROW_CPU_H

#include "spmla/platform/cpu/core/kernels_cpu.h"
#include "spmla/platform/cpu/core/quant_cpu.h"

#include <string.h>

/* FNUZ codes of x / scale. */
static inline void
spmla_i_cpu_v4_fnuz(uint8_t *codes, const float *x, float scale)
{
	uint32_t i;

	for (i = 0; i < SPMLA_V4_SCALE_GROUP; i++)
		codes[i] = spmla_i_f32_to_fnuz(x[i] / scale);
}

static inline void
spmla_i_cpu_v4_write_fp8(const spmla_i_cpu_kernels *kernels, uint8_t *values,
			 uint8_t *scales, const uint16_t *nope, uint32_t fnuz)
{
	float x[SPMLA_V4_SCALE_GROUP];
	uint32_t g;

	for (g = 0; g < SPMLA_V4_SCALES; g++) {
		float scale;

		kernels->load_bf16(
			(const uint8_t *)(nope + g * SPMLA_V4_SCALE_GROUP),
			SPMLA_V4_SCALE_GROUP, x);
		scale = spmla_i_pow2_up(
			kernels->amax(x, SPMLA_V4_SCALE_GROUP, 1e-4f) / 448.0f);
		if (fnuz) {
			scale *= 2.0f;
			spmla_i_cpu_v4_fnuz(values + g * SPMLA_V4_SCALE_GROUP,
					    x, scale);
		} else {
			kernels->quantise(values + g * SPMLA_V4_SCALE_GROUP, x,
					  SPMLA_V4_SCALE_GROUP, scale);
		}
		scales[g] = (uint8_t)(spmla_i_f32_bits(scale) >> 23);
	}
	scales[SPMLA_V4_SCALES] = 0;
}

static inline void
spmla_i_cpu_v4_write_e4m3(uint8_t *codes, const uint16_t *x, uint32_t n,
			  float inverse, uint32_t fnuz)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const float y = spmla_i_bf16_to_f32(x[i]) * inverse;

		codes[i] = fnuz     ? spmla_i_f32_to_fnuz(y)
			   : y != y ? 0x7f
				    : spmla_i_f32_to_e4m3(y);
	}
}

/* Writes the row of bf16 nope[448] and rope[64] to `slot`, which is inside the
 * cache. `scale` is the scale of a V4_E4M3 cache. */
static inline void
spmla_i_cpu_v4_write(const spmla_i_cpu_kernels *kernels,
		     const spmla_cache *cache, uint64_t slot,
		     const uint16_t *nope, const uint16_t *rope, float scale)
{
	const uint64_t entries = cache->entries_per_page;
	const uint64_t i = slot % entries;
	uint8_t *page = spmla_i_cpu_page_at(cache, slot / entries);
	uint8_t *row = page + i * SPMLA_V4_VALUE_BYTES;
	const uint32_t fnuz = cache->encoding == SPMLA_E4M3_FNUZ;

	if (cache->layout == SPMLA_LAYOUT_V4_E4M3) {
		row = page + i * SPMLA_V4_E4M3_BYTES;
		spmla_i_cpu_v4_write_e4m3(row, nope, SPMLA_V4_NOPE,
					  1.0f / scale, fnuz);
		spmla_i_cpu_v4_write_e4m3(row + SPMLA_V4_NOPE, rope,
					  SPMLA_V4_ROPE, 1.0f / scale, fnuz);
		return;
	}
	if (cache->layout == SPMLA_LAYOUT_V4_BF16) {
		row = page + i * SPMLA_V4_BF16_BYTES;
		memcpy(row, nope, SPMLA_V4_NOPE * sizeof *nope);
		row += SPMLA_V4_NOPE * sizeof *nope;
	} else {
		spmla_i_cpu_v4_write_fp8(kernels, row,
					 page + entries * SPMLA_V4_VALUE_BYTES +
						 i * SPMLA_V4_SCALE_BYTES,
					 nope, fnuz);
		row += SPMLA_V4_NOPE;
	}
	memcpy(row, rope, SPMLA_V4_ROPE * sizeof *rope);
}

#endif
