/* SPDX-License-Identifier: Apache-2.0
 *
 * The products of sparse_decode_few with FEW_WGMMA_HEADS heads a unit, by
 * warpgroups. mma.sync would read all queries from shared memory for every 16
 * keys, and all of P for every 64 columns; here four warps share each read.
 *
 * A is in registers and has the same rows as in sparse_decode_few_kernel.h. But
 * a product's 64 columns of O must share a scale group, so a warp has 32
 * columns of each of two groups. B is panels of 64 heads: queries for scores, P
 * for O. The dims of a query, and the keys of P, lie in the order in which
 * lanes find them in A.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_FEW_WGMMA_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_FEW_WGMMA_DEVICE_H

#include "spmla/platform/gpu/attend/decode_exchange_device.h"
#include "spmla/platform/gpu/attend/decode_few_scales_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum { FEW_WGMMA_STEPS = 8 /* products of 16 dims of a group of 128 */ };

FN void
few_zero(const PRIVATE few_block *b, PRIVATE few_scores x)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < b->kind.heads / 2; i++)
		x[i / 4][i % 4] = 0.0f;
}

/* Waits until at most `groups` groups of products run; sum is none of theirs.
 */
FN void
few_wgmma_wait(uint32_t groups, PRIVATE float *sum, uint32_t count)
{
	g_wgmma_wait_but(groups);
	g_wgmma_hold_all(sum, count);
}

/* The operands of a group of 128 dims: A of each 16 dims. */
FN void
few_wgmma_take_codes(const PRIVATE few_block *b, uint32_t group,
		     uint32_t a[][4])
{
	const uint32_t g = b->lane / 4, t = b->lane % 4;
	const uint32_t key = FEW_KEYS * b->warp + g;
	uint32_t j, s;

	UNROLL
	for (j = 0; j < 2; j++) {
		LOCAL const uint8_t *codes =
			b->rows + key * FEW_CODES +
			few_piece(g, 8 * group + 4 * j + t);
		uint32_t low[4], high[4];

		g_local_load128(codes, low);
		g_local_load128(codes + 8 * FEW_CODES, high);
		UNROLL
		for (s = 0; s < 4; s++) {
			uint32_t x[2], y[2];

			decode_code_quad(b->kind.format, low[s], x);
			decode_code_quad(b->kind.format, high[s], y);
			a[4 * j + s][0] = x[0];
			a[4 * j + s][1] = y[0];
			a[4 * j + s][2] = x[1];
			a[4 * j + s][3] = y[1];
		}
	}
}

/* The operands of the bf16 tail, four of them. */
FN void
few_wgmma_take_tail(const PRIVATE few_block *b, uint32_t a[][4])
{
	const uint32_t g = b->lane / 4, t = b->lane % 4;
	const uint32_t key = FEW_KEYS * b->warp + g;
	uint32_t j, s;

	UNROLL
	for (j = 0; j < 2; j++) {
		LOCAL const uint8_t *tail =
			few_tails(b) + key * FEW_TAIL + few_piece(g, 4 * j + t);
		uint32_t low[4], high[4];

		g_local_load128(tail, low);
		g_local_load128(tail + 8 * FEW_TAIL, high);
		UNROLL
		for (s = 0; s < 2; s++) {
			a[2 * j + s][0] = low[2 * s];
			a[2 * j + s][1] = high[2 * s];
			a[2 * j + s][2] = low[2 * s + 1];
			a[2 * j + s][3] = high[2 * s + 1];
		}
	}
}

/* Starts the products of a group of codes. */
FN void
few_wgmma_multiply_codes(g_panel q, uint32_t group, uint32_t a[][4],
			 PRIVATE float *sum)
{
	uint32_t s;

	g_wgmma_begin();
	UNROLL
	for (s = 0; s < FEW_WGMMA_STEPS; s++) {
		const g_panel step = g_panel_step(
			g_panel_on(q, (2 * group + s / 4) * G_PANEL_BYTES),
			s % 4);

		if (s == 0)
			g_wgmma_f16_n64_registers_first(sum, a[s], step);
		else
			g_wgmma_f16_n64_registers(sum, a[s], step);
	}
	g_wgmma_commit();
}

/* Starts the products of the tail. */
FN void
few_wgmma_multiply_tail(g_panel q, uint32_t a[][4], PRIVATE float *sum)
{
	uint32_t s;

	g_wgmma_begin();
	UNROLL
	for (s = 0; s < 4; s++)
		if (s == 0)
			g_wgmma_bf16_n64_registers_first(sum, a[s],
							 g_panel_step(q, s));
		else
			g_wgmma_bf16_n64_registers(sum, a[s],
						   g_panel_step(q, s));
	g_wgmma_commit();
}

/* Adds a group's sums, times its scales, to scores. */
FN void
few_wgmma_add(const PRIVATE few_keys *keys, uint32_t group,
	      PRIVATE few_scores sum, PRIVATE few_scores score)
{
	uint32_t n, e;

	UNROLL
	for (n = 0; n < FEW_TILES; n++) {
		UNROLL
		for (e = 0; e < 4; e++)
			score[n][e] = g_fma(keys->scale[e / 2][group],
					    sum[n][e], score[n][e]);
	}
}

/* Sums of the warp's keys: score gets the codes', tail the tail's. The sums of
 * two groups are kept at the same time, so that the scales of one are applied
 * while the other one's products run. */
FN void
few_wgmma_score(const PRIVATE few_block *b, const PRIVATE few_keys *keys,
		PRIVATE few_scores score, PRIVATE few_scores tail)
{
	const uint32_t groups = decode_groups(b->kind.format);
	const g_panel q =
		g_panel_of(few_queries(b), G_GROUP_BYTES, G_PANEL_BYTES);
	const g_panel q_tail =
		g_panel_of(few_query_tails(b), G_GROUP_BYTES, G_PANEL_BYTES);
	uint32_t a[2][FEW_WGMMA_STEPS][4], i;
	few_scores sum[2];

	UNROLL
	for (i = 0; i < groups; i++) {
		few_wgmma_take_codes(b, i, a[i % 2]);
		few_wgmma_multiply_codes(q, i, a[i % 2], &sum[i % 2][0][0]);
		if (i == 0)
			continue;
		few_wgmma_wait(1, &sum[(i - 1) % 2][0][0], 4 * FEW_TILES);
		few_wgmma_add(keys, i - 1, sum[(i - 1) % 2], score);
	}
	if (few_tail_byte(b->kind.format)) {
		few_wgmma_take_tail(b, a[groups % 2]);
		few_wgmma_multiply_tail(q_tail, a[groups % 2], &tail[0][0]);
		few_wgmma_wait(1, &sum[(groups - 1) % 2][0][0], 4 * FEW_TILES);
	} else {
		few_zero(b, tail);
		few_wgmma_wait(0, &sum[(groups - 1) % 2][0][0], 4 * FEW_TILES);
	}
	few_wgmma_add(keys, groups - 1, sum[(groups - 1) % 2], score);
	few_wgmma_wait(0, &tail[0][0], 4 * FEW_TILES);
}

/* Where P has the word of keys x and x + 4 of warp k's 16 (few_p_at). */
FN LOCAL uint32_t *
few_wgmma_p_at(const PRIVATE few_block *b, uint32_t copy, uint32_t k,
	       uint32_t h, uint32_t x)
{
	const uint32_t panel = copy * b->kind.warps / 4 + k / 4;

	return (LOCAL uint32_t *)(few_weights_at(b) + panel * G_PANEL_BYTES +
				  h * 128 +
				  16 * ((2 * (k % 4) + x / 8) ^ (h & 7u)) +
				  4 * (x % 4));
}

/* The first of the 32 columns that a warp has in the i-th of its warpgroup's
 * two groups. */
FN uint32_t
few_wgmma_column(const PRIVATE few_block *b, uint32_t i)
{
	return 128 * (2 * (b->warp / 4) + i) + 32 * (b->warp % 4);
}

/* The operands of 16 keys: A of two times 64 columns in each of two groups. */
FN void
few_wgmma_take_values(const PRIVATE few_block *b, uint32_t k, uint32_t a[4][4])
{
	const uint32_t g = b->lane / 4, t = b->lane % 4;
	uint32_t q, i;

	UNROLL
	for (q = 0; q < 2; q++) {
		LOCAL const uint8_t *from =
			b->rows + (FEW_KEYS * k + t) * FEW_CODES +
			few_piece(t, few_wgmma_column(b, q) / 16 + g / 4) +
			g % 4 * 4;
		uint32_t v[4], low[4], high[4];

		UNROLL
		for (i = 0; i < 4; i++)
			v[i] = *(LOCAL const uint32_t *)(from +
							 4 * i * FEW_CODES);
		decode_code_quad(b->kind.format, g_bytes(v[0], v[1], 0x5140),
				 low);
		decode_code_quad(b->kind.format, g_bytes(v[0], v[1], 0x7362),
				 low + 2);
		decode_code_quad(b->kind.format, g_bytes(v[2], v[3], 0x5140),
				 high);
		decode_code_quad(b->kind.format, g_bytes(v[2], v[3], 0x7362),
				 high + 2);
		UNROLL
		for (i = 0; i < 2; i++) {
			a[2 * q + i][0] = low[2 * i];
			a[2 * q + i][1] = low[2 * i + 1];
			a[2 * q + i][2] = high[2 * i];
			a[2 * q + i][3] = high[2 * i + 1];
		}
	}
}

/* O of columns few_wgmma_column(q) + 4 g + 2 i + j and heads 8 n + 2 t + e:
 * [2 q + i][n][2 * j + e]. */
FN void
few_wgmma_multiply_values(const PRIVATE few_block *b, PRIVATE few_o o)
{
	const uint32_t warps = b->kind.warps;
	const g_panel p = g_panel_of(
		few_weights_at(b) + g_broadcast(b->warp / 4, 0) * 2 *
					    (warps / 4) * G_PANEL_BYTES,
		G_GROUP_BYTES, G_PANEL_BYTES);
	uint32_t a[2][4][4], k, i;

	UNROLL
	for (k = 0; k < warps; k++) {
		few_wgmma_take_values(b, k, a[k % 2]);
		g_wgmma_begin();
		UNROLL
		for (i = 0; i < 4; i++) {
			const g_panel step = g_panel_step(
				g_panel_on(p, (i / 2 * (warps / 4) + k / 4) *
						      G_PANEL_BYTES),
				k % 4);

			if (k == 0)
				g_wgmma_f16_n64_registers_first(
					&o[i][0][0], a[k % 2][i], step);
			else
				g_wgmma_f16_n64_registers(&o[i][0][0],
							  a[k % 2][i], step);
		}
		g_wgmma_commit();
		g_wgmma_wait_but(1); /* its operands are written again */
	}
	UNROLL
	for (i = 0; i < 4; i++)
		few_wgmma_wait(0, &o[i][0][0], 4 * FEW_TILES);
}

/* Hands O on: 4 columns of a head at a time. */
FN void
few_wgmma_give_o(const PRIVATE few_block *b, PRIVATE few_o o)
{
	const uint32_t g = b->lane / 4, t = b->lane % 4;
	const uint32_t a_head = b->kind.ranks * EXCHANGE_O;
	GLOBAL uint32_t *to = exchange_o(b, 2 * t, b->rank) +
			      few_wgmma_column(b, 0) / 2 + 2 * g;
	uint32_t n, e, q, i;

	UNROLL
	for (n = 0; n < FEW_TILES; n++) {
		UNROLL
		for (e = 0; e < 2; e++) {
			UNROLL
			for (q = 0; q < 2; q++) {
				uint32_t x[2];

				UNROLL
				for (i = 0; i < 2; i++)
					x[i] = ~g_f32_to_f16x2(
						o[2 * q + i][n][e],
						o[2 * q + i][n][2 + e]);
				g_store2_device(
					to + (8 * n + e) * a_head + q * 64, x);
			}
		}
	}
}

#endif
#endif
