/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert on the CPU: one row at a time, each group of 128 values quantised
 * on its own. Offsets are 64-bit: a cache may be larger than 4 GiB.
 */
#include "spmla/platform/cpu/parallel_cpu.h"
#include "spmla/platform/cpu/quant_cpu.h"

#include <string.h>

enum { GROUP = SPMLA_MLA_SCALE_GROUP };

static float
scale_of(float amax, uint32_t scale_mode)
{
	const float floor = scale_mode == SPMLA_SCALE_RAW ? 0x1p-126f : 1e-4f;
	float scale = amax / 448.0f;

	if (scale < floor)
		scale = floor;
	return scale_mode == SPMLA_SCALE_RAW ? scale : spmla_i_pow2_up(scale);
}

static void
write_fp8(const spmla_kv_insert_args *a, const uint16_t *latent,
	  const uint16_t *rope, uint8_t *entry)
{
	float x[GROUP];
	uint32_t g;

	for (g = 0; g < SPMLA_MLA_SCALES; g++) {
		float scale;

		spmla_i_cpu_load16(x, latent + g * GROUP, GROUP, a->dtype);
		scale = scale_of(spmla_i_cpu_amax(x, GROUP, 0.0f),
				 a->scale_mode);
		spmla_i_cpu_quantise(entry + g * GROUP, x, GROUP, scale);
		memcpy(entry + SPMLA_FP8_DS_MLA_SCALE_BYTE + g * sizeof scale,
		       &scale, sizeof scale);
	}
	memcpy(entry + SPMLA_FP8_DS_MLA_ROPE_BYTE, rope,
	       SPMLA_MLA_ROPE * sizeof *rope);
}

static void
write_16bit(const uint16_t *latent, const uint16_t *rope, uint8_t *entry)
{
	const uint32_t latent_bytes = SPMLA_MLA_LATENT * sizeof *latent;

	memcpy(entry, latent, latent_bytes);
	memcpy(entry + latent_bytes, rope, SPMLA_MLA_ROPE * sizeof *rope);
}

/* The tokens whose slots are the item's. */
static void
insert_rows(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	const spmla_kv_insert_args *a = args;
	const spmla_cache *cache = &a->cache;
	const uint64_t page_entries = cache->entries_per_page;
	const uint64_t entries = page_entries * cache->pages;
	const uint16_t *latent = a->kv_c;
	const uint16_t *rope = a->k_pe;
	const uint32_t items = spmla_i_cpu_slot_items(ctx, a->tokens);
	uint32_t t;

	(void)worker;
	for (t = 0; t < a->tokens; t++) {
		const uint64_t slot = (uint64_t)a->slot_mapping[t];
		uint8_t *page;

		if (a->slot_mapping[t] < 0 || slot % items != item)
			continue;
		if (slot >= entries) {
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_SLOT);
			continue;
		}
		page = spmla_i_cpu_page_at(cache, slot / page_entries);
		if (cache->layout == SPMLA_LAYOUT_FP8_DS_MLA)
			write_fp8(a, latent + t * a->kv_c_stride_elems,
				  rope + t * a->k_pe_stride_elems,
				  page + slot % page_entries *
						  SPMLA_FP8_DS_MLA_BYTES);
		else
			write_16bit(latent + t * a->kv_c_stride_elems,
				    rope + t * a->k_pe_stride_elems,
				    page + slot % page_entries *
						    SPMLA_MLA_BF16_BYTES);
	}
}

void
spmla_i_cpu_kv_insert(spmla_ctx *ctx, const void *args)
{
	const spmla_kv_insert_args *a = args;

	spmla_i_cpu_for(ctx, a, spmla_i_cpu_slot_items(ctx, a->tokens),
			insert_rows);
}
