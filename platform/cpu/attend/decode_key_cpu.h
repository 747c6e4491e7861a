/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of a KV cache as sparse_decode reads it: code * scale, in f32.
 */
#ifndef SPMLA_PLATFORM_CPU_ATTEND_DECODE_KEY_CPU_H
#define SPMLA_PLATFORM_CPU_ATTEND_DECODE_KEY_CPU_H

#include "spmla/platform/cpu/attend/attend_cpu.h"

/* 2^(byte - 127); 255 is NaN. */
static inline float
spmla_i_cpu_ue8m0(uint8_t byte)
{
	if (byte == 255)
		return spmla_i_f32_from_bits(0x7fc00000u);
	return spmla_i_f32_from_bits(byte ? (uint32_t)byte << 23 : 0x400000u);
}

static inline void
spmla_i_cpu_dequantise_fnuz(const uint8_t *codes, uint32_t n, float scale,
			    float *values)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		values[i] = spmla_i_fnuz_to_f32(codes[i]) * scale;
}

static inline void
spmla_i_cpu_load_fp8_ds_mla(const spmla_i_cpu_kernels *k, const uint8_t *entry,
			    uint32_t fnuz, float *key)
{
	float scale;
	uint32_t g;

	for (g = 0; g < SPMLA_MLA_SCALES; g++) {
		memcpy(&scale,
		       entry + SPMLA_FP8_DS_MLA_SCALE_BYTE + g * sizeof scale,
		       sizeof scale);
		(fnuz ? spmla_i_cpu_dequantise_fnuz
		      : k->dequantise)(entry + g * SPMLA_MLA_SCALE_GROUP,
				       SPMLA_MLA_SCALE_GROUP, scale,
				       key + g * SPMLA_MLA_SCALE_GROUP);
	}
	k->load_bf16(entry + SPMLA_FP8_DS_MLA_ROPE_BYTE, SPMLA_MLA_ROPE,
		     key + SPMLA_MLA_LATENT);
}

static inline void
spmla_i_cpu_load_v4_fp8(const spmla_i_cpu_kernels *k, const uint8_t *entry,
			const uint8_t *scales, uint32_t fnuz, float *key)
{
	uint32_t g;

	for (g = 0; g < SPMLA_V4_SCALES; g++)
		(fnuz ? spmla_i_cpu_dequantise_fnuz : k->dequantise)(
			entry + g * SPMLA_V4_SCALE_GROUP, SPMLA_V4_SCALE_GROUP,
			spmla_i_cpu_ue8m0(scales[g]),
			key + g * SPMLA_V4_SCALE_GROUP);
	k->load_bf16(entry + SPMLA_V4_NOPE, SPMLA_V4_ROPE, key + SPMLA_V4_NOPE);
}

/* The row of a slot inside the cache. */
static inline void
spmla_i_cpu_load_key(const spmla_i_cpu_kernels *k, const spmla_cache *cache,
		     uint32_t slot, float *key)
{
	const uint64_t entries = cache->entries_per_page;
	const uint64_t i = slot % entries;
	const uint8_t *page = spmla_i_cpu_page_at(cache, slot / entries);
	const uint32_t fnuz = cache->encoding == SPMLA_E4M3_FNUZ;

	if (cache->layout == SPMLA_LAYOUT_V4_FP8)
		spmla_i_cpu_load_v4_fp8(k, page + i * SPMLA_V4_VALUE_BYTES,
					page + entries * SPMLA_V4_VALUE_BYTES +
						i * SPMLA_V4_SCALE_BYTES,
					fnuz, key);
	else if (cache->layout == SPMLA_LAYOUT_FP8_DS_MLA)
		spmla_i_cpu_load_fp8_ds_mla(
			k, page + i * SPMLA_FP8_DS_MLA_BYTES, fnuz, key);
	else
		k->load_bf16(page + i * SPMLA_MLA_BF16_BYTES, SPMLA_MLA_DIM,
			     key);
}

/* Prefetches the row of a slot inside the cache. */
static inline void
spmla_i_cpu_ask_key(const spmla_cache *cache, uint32_t slot)
{
	const uint64_t entries = cache->entries_per_page;
	const uint64_t i = slot % entries;
	const uint8_t *page = spmla_i_cpu_page_at(cache, slot / entries);

	if (cache->layout == SPMLA_LAYOUT_FP8_DS_MLA) {
		spmla_i_cpu_ask(page + i * SPMLA_FP8_DS_MLA_BYTES,
				SPMLA_FP8_DS_MLA_BYTES);
	} else if (cache->layout == SPMLA_LAYOUT_V4_FP8) {
		spmla_i_cpu_ask(page + i * SPMLA_V4_VALUE_BYTES,
				SPMLA_V4_VALUE_BYTES);
		spmla_i_cpu_ask(page + entries * SPMLA_V4_VALUE_BYTES +
					i * SPMLA_V4_SCALE_BYTES,
				SPMLA_V4_SCALE_BYTES);
	} else {
		spmla_i_cpu_ask(page + i * SPMLA_MLA_BF16_BYTES,
				SPMLA_MLA_BF16_BYTES);
	}
}

#endif
