/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert on the CPU: one row at a time, each group of 128 values quantised
 * on its own. Offsets are 64-bit: a cache may be larger than 4 GiB.
 */
#include "spmla/platform/cpu/cache/v4_row_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"
#include "spmla/platform/cpu/core/quant_cpu.h"

#include <string.h>

enum { GROUP = SPMLA_MLA_SCALE_GROUP };

static float
scale_of(float amax, uint32_t scale_mode, uint32_t fnuz)
{
	const float floor = scale_mode == SPMLA_SCALE_RAW ? 0x1p-126f : 1e-4f;
	float scale = amax / (fnuz ? 224.0f : 448.0f);

	if (scale < floor)
		scale = floor;
	return scale_mode == SPMLA_SCALE_RAW ? scale : spmla_i_pow2_up(scale);
}

/* x = a group of a BF16 or FP16 row, exact. */
static void
load_values(const spmla_kv_insert_args *a, const spmla_i_cpu_kernels *kernels,
	    const uint16_t *group, float *x)
{
	if (a->dtype == SPMLA_DTYPE_BF16)
		kernels->load_bf16((const uint8_t *)group, GROUP, x);
	else
		spmla_i_cpu_load16(x, group, GROUP, a->dtype);
}

static void
write_fp8(const spmla_kv_insert_args *a, const spmla_i_cpu_kernels *kernels,
	  const uint16_t *latent, const uint16_t *rope, uint8_t *entry)
{
	const uint32_t fnuz = a->cache.encoding == SPMLA_E4M3_FNUZ;
	float x[GROUP];
	uint32_t g;

	for (g = 0; g < SPMLA_MLA_SCALES; g++) {
		float scale;

		load_values(a, kernels, latent + g * GROUP, x);
		scale = scale_of(kernels->amax(x, GROUP, 0.0f), a->scale_mode,
				 fnuz);
		(fnuz ? spmla_i_cpu_quantise_fnuz
		      : kernels->quantise)(entry + g * GROUP, x, GROUP, scale);
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

/* Writes row t to a slot inside the cache. */
static void
write_row(const spmla_kv_insert_args *a, const spmla_i_cpu_kernels *kernels,
	  uint32_t t, uint64_t slot)
{
	const spmla_cache *cache = &a->cache;
	const uint64_t entry = slot % cache->entries_per_page;
	const uint16_t *latent =
		(const uint16_t *)a->kv_c + t * a->kv_c_stride_elems;
	const uint16_t *rope = a->k_pe;
	uint8_t *page =
		spmla_i_cpu_page_at(cache, slot / cache->entries_per_page);

	if (cache->layout == SPMLA_LAYOUT_FP8_DS_MLA)
		write_fp8(a, kernels, latent, rope + t * a->k_pe_stride_elems,
			  page + entry * SPMLA_FP8_DS_MLA_BYTES);
	else if (cache->layout == SPMLA_LAYOUT_MLA_BF16)
		write_16bit(latent, rope + t * a->k_pe_stride_elems,
			    page + entry * SPMLA_MLA_BF16_BYTES);
	else
		spmla_i_cpu_v4_write(
			kernels, cache, slot, latent, latent + SPMLA_V4_NOPE,
			a->kv_scale_at ? *a->kv_scale_at : a->kv_scale);
}

/* Writes the tokens whose slots belong to the item. */
static void
insert_rows(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	const spmla_kv_insert_args *a = args;
	const uint64_t entries =
		(uint64_t)a->cache.entries_per_page * a->cache.pages;
	const uint32_t items = spmla_i_cpu_slot_items(ctx, a->tokens);
	const spmla_i_cpu_kernels *kernels = spmla_i_cpu_kernels_of(ctx);
	uint32_t t;

	(void)worker;
	for (t = 0; t < a->tokens; t++) {
		const uint64_t slot = (uint64_t)a->slot_mapping[t];

		if (a->slot_mapping[t] < 0 || slot % items != item)
			continue;
		if (slot >= entries) {
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_SLOT);
			continue;
		}
		write_row(a, kernels, t, slot);
	}
}

void
spmla_i_cpu_kv_insert(spmla_ctx *ctx, const void *args)
{
	const spmla_kv_insert_args *a = args;

	spmla_i_cpu_for(ctx, a, spmla_i_cpu_slot_items(ctx, a->tokens),
			insert_rows);
	if (a->index.struct_bytes)
		spmla_i_cpu_indexer_k_insert(ctx, &a->index);
}
