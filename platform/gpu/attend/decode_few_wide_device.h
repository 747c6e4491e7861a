/* SPDX-License-Identifier: Apache-2.0
 *
 * P of sparse_decode_few: where it lies, and how it is made of rows whose scales
 * are above 1. Such scales may differ so much that small ones with large weights
 * would vanish in a unit that fits the largest one. So the unit follows from the
 * largest product, head by head. That is slow, and rare.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_FEW_WIDE_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_FEW_WIDE_DEVICE_H

#include "spmla/platform/gpu/attend/decode_few_wgmma_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* Where P has the word of keys x and x + 4 of warp k's 16, for x < 4 or 8 <= x
 * < 12. A lane that multiplies by values finds keys t, t + 4, t + 8 and t + 12
 * together. */
FN LOCAL uint32_t *
few_p_at(const PRIVATE few_block *b, uint32_t copy, uint32_t k, uint32_t h,
	 uint32_t x)
{
	const uint32_t row = (copy * b->kind.warps + k) * b->kind.heads + h;

	if (few_by_wgmma(b))
		return few_wgmma_p_at(b, copy, k, h, x);
	return (LOCAL uint32_t *)(few_weights_at(b) + row * 32 + x % 4 * 8 +
				  x / 8 * 4);
}

/* In the place of the queries: the units of P by group; the units of P by head
 * and group, as they are found; and the weights, [keys][heads]. */
typedef struct few_wide {
	uint32_t byte[FEW_GROUPS];
	uint8_t own[FEW_WGMMA_HEADS][FEW_GROUPS];
	float p[1];
} few_wide;

FN LOCAL few_wide *
few_wide_of(const PRIVATE few_block *b)
{
	return (LOCAL few_wide *)few_queries(b);
}

/* Weight times scale of a key, in units of P. */
FN float
few_product(const PRIVATE few_block *b, uint32_t key, uint32_t h, uint32_t i)
{
	const decode_format f = b->kind.format;
	LOCAL const few_wide *w = few_wide_of(b);
	LOCAL const uint8_t *scales = few_scales(b) + key * FEW_SCALES;
	const uint32_t bits = f.scale == DECODE_SCALE_F32
				      ? ((LOCAL const uint32_t *)scales)[i]
				      : scales[i];

	return w->p[key * b->kind.heads + h] *
	       few_scale_in(f, bits, w->byte[i], 1);
}

/* Writes P of a head and a group, in a unit of its own: the largest product,
 * rounded up, but at most the group's unit. */
FN void
few_store_wide_p(const PRIVATE few_block *b, uint32_t h, uint32_t i)
{
	const uint32_t keys = FEW_KEYS * b->kind.warps;
	LOCAL few_wide *w = few_wide_of(b);
	uint32_t most = 0, key;
	float by;

	NO_UNROLL
	for (key = 0; key < keys; key++) {
		const uint32_t x =
			g_bits(few_product(b, key, h, i)) & 0x7fffffffu;

		most = x > most ? x : most;
	}
	most = (most + 0x7fffffu) >> 23;
	most = most < 127 ? few_byte((int32_t)(w->byte[i] + most) - 127)
			  : w->byte[i];
	w->own[h][i] = (uint8_t)most;
	by = g_float((127 + w->byte[i] - most) << 23);
	NO_UNROLL
	for (key = 0; key < keys; key++)
		if (!(key & 4u))
			*few_p_at(b, i, key / FEW_KEYS, h, key % FEW_KEYS) =
				g_f32_to_f16x2(few_product(b, key, h, i) * by,
					       few_product(b, key + 4, h, i) *
						       by);
}

/* Writes all of P. The whole block calls it: barriers. */
FN void
few_store_wide(const PRIVATE few_block *b, const PRIVATE uint32_t *byte,
	       PRIVATE few_scores p)
{
	const decode_format f = b->kind.format;
	const uint32_t heads = b->kind.heads, groups = decode_groups(f);
	const uint32_t keys = FEW_KEYS * b->kind.warps;
	const uint32_t g = b->lane / 4, t = b->lane % 4;
	LOCAL few_wide *w = few_wide_of(b);
	uint32_t i, n, e;

	UNROLL
	for (i = 0; i < groups; i++)
		if (g_item() == i)
			w->byte[i] = byte[i];
	UNROLL
	for (n = 0; n < heads / 8; n++) {
		UNROLL
		for (e = 0; e < 4; e++) {
			const uint32_t key = FEW_KEYS * b->warp + g + e / 2 * 8;

			if (b->warp < b->kind.warps)
				w->p[key * heads + 8 * n + 2 * t + e % 2] =
					p[n][e];
		}
	}
	BARRIER();
	NO_UNROLL
	for (i = g_item(); i < heads * groups; i += few_items(b->kind))
		few_store_wide_p(b, i % heads, i / heads);
	NO_UNROLL
	for (i = g_item(); f.bf16_tail && i < heads * keys;
	     i += few_items(b->kind)) {
		const uint32_t key = i / heads, h = i % heads;

		if (!(key & 4u))
			*few_p_at(b, FEW_GROUPS - 1, key / FEW_KEYS, h,
				  key % FEW_KEYS) =
				g_f32_to_bf16x2(w->p[i], w->p[i + 4 * heads]);
	}
}

#endif
#endif
