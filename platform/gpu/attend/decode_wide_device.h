/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles with a row that f16 does not hold: scores and values are computed in
 * f32, from the cache. Such a tile takes some fifty times as long as others. No
 * insert of a layer's outputs makes such rows, so the code is short, not quick.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_WIDE_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_WIDE_DEVICE_H

#include "spmla/platform/gpu/attend/decode_loader_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum {
	DECODE_WIDE_HEADS = 16, /* of a warp */
	DECODE_WIDE_DIMS = 576  /* of a row, at most */
};

/* What a warp keeps in the place of a tile's keys, since nobody multiplies a
 * wide tile. In a cluster it takes the half that the peer's copies filled:
 * copies from this block's own half to the peer may still be on their way. When
 * values are added, the right warpgroup's row lies behind the left one's. */
typedef struct decode_wide {
	float row[DECODE_WIDE_DIMS];
	float score[DECODE_WIDE_HEADS][DECODE_BLOCK];
} decode_wide;

FN LOCAL decode_wide *
decode_wide_place(LOCAL decode_memory *mem, uint32_t cluster, uint32_t tile)
{
	const uint32_t octet =
		g_item_again() / 32 % 4 +
		(cluster == 2 && g_cluster_rank() == 0 ? DECODE_OCTETS / 2 : 0);

	return (LOCAL decode_wide *)(mem->keys[tile] +
				     octet * DECODE_OCTET_BYTES);
}

/* Value d of the row that is entry `entry` of the page at `page`. */
FN float
decode_wide_value(decode_format f, GLOBAL const uint8_t *page, uint32_t by,
		  uint32_t entry, uint32_t d)
{
	GLOBAL const uint8_t *row = page + (uint64_t)entry * f.row_bytes;
	GLOBAL const uint8_t *from;
	uint32_t code;
	float scale;

	if (d >= 512 && f.code == DECODE_E2M1)
		return g_e4m3_to_f32(row[f.rope_byte + d - 512]);
	if (f.bf16_tail ? d >= 448 : d >= 512)
		return g_bf16_to_f32(
			f.bf16_tail
				? ((GLOBAL const uint16_t *)(row +
							     448))[d - 448]
				: ((GLOBAL const uint16_t
					    *)(row + f.rope_byte))[d - 512]);
	if (f.scales_byte)
		from = row + f.scales_byte;
	else
		from = page + (uint64_t)by * f.row_bytes +
		       (uint64_t)entry * decode_scale_bytes(f);
	if (f.scale == DECODE_SCALE_F32)
		scale = ((GLOBAL const float *)from)[d / f.group];
	else if (f.scale == DECODE_SCALE_UE8M0)
		scale = g_ue8m0(from[d / f.group]);
	else
		scale = g_e4m3_to_f32(from[decode_scale_byte(f, d / f.group)]);
	if (f.code == DECODE_E4M3)
		return g_e4m3_to_f32(row[d]) * scale;
	if (f.code == DECODE_FNUZ)
		return g_fnuz_to_f32(row[d]) * scale;
	code = row[d / 2] >> 4 * (d % 2);
	/* Its bits, taken as f32, are a value 2^126 too small. */
	return g_float((code & 7u) << 22 | (code & 8u) << 28) * 0x1p126f *
	       scale;
}

/* Brings row i of a tile, a key, to the warp's place. */
FN void
decode_wide_row(const PRIVATE decode_args *a, decode_format f,
		decode_format extra, LOCAL const decode_run *runs,
		decode_tile which, uint32_t i, LOCAL float *to)
{
	LOCAL const decode_run *run = decode_run_of(runs, which);
	const uint32_t second = f.lists == 2 && run->bits & DECODE_SECOND;
	const spmla_g_divisor page = second ? a->s.extra_page : a->s.page;
	const uint32_t slot =
		(uint32_t)decode_tile_slot(a, second, run, which, i);
	const uint32_t number = g_divide(slot, page);
	const uint32_t entry = slot - number * page.by;
	GLOBAL const uint8_t *at =
		(second ? a->extra_cache : a->cache) +
		number * (second ? a->s.extra_page_stride_bytes
				 : a->s.page_stride_bytes);
	const uint32_t dims = f.rope_byte ? 576 : 512;
	uint32_t d;

	g_subgroup_barrier(); /* all lanes have read the last row */
	NO_UNROLL
	for (d = g_lane(); d < dims; d += 32)
		to[d] = decode_wide_value(second ? extra : f, at, page.by,
					  entry, d);
	g_subgroup_barrier();
}

/* Scores of a tile for the warp's 16 heads, from head `first_head` on, laid out
 * as in an accumulator and multiplied by the factors of the queries. `factors`
 * has the factors of the item's two heads. */
FN void
decode_wide_scores(const PRIVATE decode_args *a, LOCAL decode_memory *mem,
		   decode_format f, decode_format extra, uint32_t cluster,
		   LOCAL const decode_run *runs, decode_tile which,
		   uint32_t tile, uint32_t first_head, uint32_t factors,
		   PRIVATE float *score)
{
	LOCAL decode_wide *wide = decode_wide_place(mem, cluster, tile);
	const uint32_t dims = f.rope_byte ? 576 : 512;
	const float most = g_float(0x7f7fffffu);
	const uint32_t lane = g_item_again() % 32;
	uint32_t i, h, d;

	g_named_sync(DECODE_ONE + tile, 128); /* all have read the keys */
	NO_UNROLL
	for (i = 0; i < DECODE_BLOCK; i++) {
		if (!(mem->notes[tile][i / 8].keys >> i % 8 & 1u))
			continue;
		decode_wide_row(a, f, extra, runs, which, i, wide->row);
		NO_UNROLL
		for (h = 0; h < DECODE_WIDE_HEADS; h++) {
			const uint32_t pair = g_shuffle(factors, h % 8 * 4);
			const float by = g_float(h / 8 ? pair & 0xffff0000u
						       : pair << 16);
			const uint32_t head = first_head + h;
			GLOBAL const uint16_t *q =
				a->q +
				decode_token_at(
					decode_run_of(runs, which)->token,
					a->s.next_n, a->s.q_request_stride,
					a->s.q_token_stride) +
				(int64_t)head * a->s.q_head_stride;
			float sum = 0.0f, x;

			NO_UNROLL
			for (d = lane; d < dims && head < a->s.heads; d += 32)
				sum = g_fma(g_bf16_to_f32(q[d]), wide->row[d],
					    sum);
			UNROLL
			for (d = 16; d; d /= 2)
				sum += g_shuffle_xor_f(sum, d);
			/* A sum that is finite gives a finite score. */
			x = sum * by;
			if (g_abs(sum) <= most && g_abs(x) > most)
				x = sum > 0.0f ? most : -most;
			if (lane == 0)
				wide->score[h][i] = x;
		}
	}
	g_subgroup_barrier();
	UNROLL
	for (i = 0; i < 32; i++)
		score[i] = wide->score[lane / 4 + i / 2 % 2 * 8]
				      [i / 4 * 8 + 2 * (lane % 4) + i % 2];
}

/* O += P V over a tile whose P is in its panel: for the item's heads `head` and
 * head + 8, and the columns of its warpgroup. O is in units of keys. */
FN void
decode_wide_values(const PRIVATE decode_args *a, LOCAL decode_memory *mem,
		   decode_format f, decode_format extra,
		   LOCAL const decode_run *runs, decode_tile which,
		   uint32_t tile, uint32_t cluster, uint32_t right,
		   uint32_t head, PRIVATE float *o)
{
	/* The left warpgroup's row is decode_wide.row. */
	LOCAL float *row =
		(LOCAL float *)decode_wide_place(mem, cluster, tile) +
		right * (4 * DECODE_PANEL_BYTES / sizeof(float));
	LOCAL const uint8_t *p_row = mem->keys[tile] +
				     head / 8 * DECODE_OCTET_BYTES +
				     8 * DECODE_PANEL_BYTES + head % 8 * 128;
	const float bias = (float)(1u << DECODE_KEY_BIAS);
	LOCAL const float *own = row + 2 * (g_item_again() % 4);
	uint32_t i, e;

	NO_UNROLL
	for (i = 0; i < DECODE_BLOCK; i++) {
		float p[2], high;

		if (!(mem->notes[tile][i / 8].keys >> i % 8 & 1u))
			continue;
		decode_wide_row(a, f, extra, runs, which, i, row);
		UNROLL
		for (e = 0; e < 2; e++) {
			LOCAL const uint8_t *at =
				p_row + e * DECODE_OCTET_BYTES +
				((i / 8 ^ head % 8) << 4) + i % 8 * 2;

			g_f16x2_to_f32(*(LOCAL const uint16_t *)at, &p[e],
				       &high);
			p[e] *= bias;
		}
		UNROLL
		for (e = 0; e < 64; e++) {
			const uint32_t panel = 4 * right + e / 16;
			const float v =
				own[decode_panel_dim(f, panel) +
				    ((e / 2 % 8) ^ (panel & 1u)) * 8 + e % 2];

			PRIVATE float *to = o + e / 2 * 4 + e % 2;

			to[0] = g_fma(p[0], v, to[0]);
			to[2] = g_fma(p[1], v, to[2]);
		}
	}
	/* The next tile's keys may be the peer's copies. */
	g_fence_async();
	g_named_sync(DECODE_ONE + right, 128); /* all are done with it */
}

#endif
#endif
