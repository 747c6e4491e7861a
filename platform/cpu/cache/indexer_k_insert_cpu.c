/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_insert on the CPU: norms, rotates and quantises one row at a time.
 * The hard idea: the bits of a row are fixed. Every sum keeps the order of
 * cpu.h, and after each step the row is rounded to bf16, as if it had been
 * stored and read again.
 */
#include "spmla/internal/mxfp4.h"
#include "spmla/platform/cpu/cache/rope_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"
#include "spmla/platform/cpu/core/quant_cpu.h"

#include <string.h>

#include <math.h>

enum { DIM = SPMLA_INDEX_DIM };

static float
row_sum(const float *x)
{
	float lane[SPMLA_I_LANES] = {0};
	uint32_t d, l;

	for (d = 0; d < DIM; d += SPMLA_I_LANES)
		for (l = 0; l < SPMLA_I_LANES; l++)
			lane[l] += x[d + l];
	return spmla_i_cpu_tree(lane);
}

static void
layer_norm(float *x, const spmla_indexer_k_insert_args *a)
{
	const float mean = row_sum(x) / (float)DIM;
	float var, rstd;
	uint32_t d;

	for (d = 0; d < DIM; d++)
		x[d] -= mean;
	var = spmla_i_cpu_dot(x, x, DIM) / (float)DIM;
	rstd = 1.0f / sqrtf(var + a->norm_eps);
	for (d = 0; d < DIM; d++)
		x[d] = spmla_i_round_bf16(
			x[d] * rstd *
				spmla_i_cpu_real(a->norm_weight, a->norm_dtype,
						 d) +
			spmla_i_cpu_real(a->norm_bias, a->norm_dtype, d));
}

static float
scale_of(const float *x, uint32_t scale_mode, uint32_t fnuz)
{
	const float scale =
		spmla_i_cpu_amax(x, DIM, 1e-4f) / (fnuz ? 224.0f : 448.0f);

	return scale_mode == SPMLA_SCALE_RAW ? scale : spmla_i_pow2_up(scale);
}

static void
write_fp8(const spmla_indexer_k_insert_args *a, uint8_t *page, uint64_t entry,
	  const float *x)
{
	const uint32_t fnuz = a->cache.encoding == SPMLA_E4M3_FNUZ;
	const uint64_t entries = a->cache.entries_per_page;
	const float scale = scale_of(x, a->scale_mode, fnuz);
	const uint32_t run = spmla_i_cpu_index_run(&a->cache);
	uint8_t *to = page + spmla_i_cpu_index_at(&a->cache, entry);
	uint32_t d;

	for (d = 0; d < DIM; d += SPMLA_INDEX_TILE, to += run)
		(fnuz ? spmla_i_cpu_quantise_fnuz : spmla_i_cpu_quantise)(
			to, x + d, SPMLA_INDEX_TILE, scale);
	memcpy(page + entries * DIM + entry * sizeof scale, &scale,
	       sizeof scale);
}

/* The same of MXFP4. */
static void
write_mxfp4(uint8_t *page, uint64_t entries, uint64_t entry, const float *x)
{
	uint8_t *codes = page + entry * SPMLA_INDEX_MXFP4_VALUE_BYTES;
	uint8_t *scales = page + entries * SPMLA_INDEX_MXFP4_VALUE_BYTES +
			  entry * SPMLA_INDEX_MXFP4_SCALES;
	uint32_t g;

	for (g = 0; g < SPMLA_INDEX_MXFP4_SCALES; g++)
		scales[g] = spmla_i_mxfp4_encode(
			codes + g * (SPMLA_I_MXFP4_VALUES / 2),
			x + g * SPMLA_I_MXFP4_VALUES);
}

/* Writes row t to an entry of a page. `cos_sin` is the position's row; NULL: no
 * rope. */
static void
write_row(const spmla_indexer_k_insert_args *a, uint32_t t,
	  const float *cos_sin, uint64_t slot)
{
	const uint16_t *k = a->k;
	const uint64_t page_entries = a->cache.entries_per_page;
	const uint64_t entry = slot % page_entries;
	uint8_t *page = spmla_i_cpu_page_at(&a->cache, slot / page_entries);
	float x[DIM];

	spmla_i_cpu_load16(x, k + t * a->k_stride_elems, DIM, a->dtype);
	if (a->norm_weight)
		layer_norm(x, a);
	if (cos_sin)
		spmla_i_cpu_rope(x, cos_sin, a->rope_style);
	if (a->cache.layout == SPMLA_LAYOUT_INDEX_MXFP4)
		write_mxfp4(page, page_entries, entry, x);
	else
		write_fp8(a, page, entry, x);
}

/* Writes the tokens whose slots belong to the item. */
static void
insert_rows(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	const spmla_indexer_k_insert_args *a = args;
	const uint64_t entries =
		(uint64_t)a->cache.entries_per_page * a->cache.pages;
	const uint32_t items = spmla_i_cpu_slot_items(ctx, a->tokens);
	float own[SPMLA_INDEX_ROPE];
	uint32_t t;

	(void)worker;
	for (t = 0; t < a->tokens; t++) {
		const uint64_t slot = (uint64_t)a->slot_mapping[t];
		const float *cos_sin = NULL;

		if (a->slot_mapping[t] < 0 || slot % items != item)
			continue;
		if (slot >= entries) {
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_SLOT);
			continue;
		}
		if (a->rope_style != SPMLA_ROPE_NONE) {
			cos_sin = spmla_i_cpu_rope_row(
				a->cos_sin, a->cos_sin_dtype, a->cos_sin_rows,
				spmla_i_cpu_position(a->positions,
						     a->positions_dtype, t),
				own);
			if (!cos_sin) {
				spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_POSITION);
				continue;
			}
		}
		write_row(a, t, cos_sin, slot);
	}
}

void
spmla_i_cpu_indexer_k_insert(spmla_ctx *ctx, const void *args)
{
	const spmla_indexer_k_insert_args *a = args;

	spmla_i_cpu_for(ctx, a, spmla_i_cpu_slot_items(ctx, a->tokens),
			insert_rows);
}
