/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode by warpgroups' matrix instructions, of fp8 rows: a block has 64
 * heads and takes tile after tile of 64 keys, of whatever token comes next. A
 * warpgroup loads (decode_loader_device.h), two multiply: of O the left one has
 * columns 0 .. 255 and the right one the rest. Of two tiles that are in shared
 * memory the left one makes the weights P of the even one and the right one of
 * the odd one, so that one's softmax runs beside the other's products: FlashMLA
 * calls it the seesaw. With 128 heads two blocks are a cluster and share what
 * they load.
 *
 *   left                         right
 *   S = Q K^T of the even tile   S of the odd tile, issued
 *   P, even; O += P V            wait for P, even; O += P V
 *   wait for P, odd              P, odd
 *   O += P V of the odd tile     O += P V
 *
 * The hard ideas:
 * - A head's weights are relative to a reference that stays until a tile's
 *   largest score is 2^8 times above it: O is hardly ever rescaled.
 * - Keys are f16 times 64 and queries f16 times a power of two a head, so that
 *   a head's largest query lies in [1/64, 1/32): scores are off by no more than
 *   f16's rounding of the keys.
 * - Tiles alternate between the two buffers, whatever token they are of. A
 *   token that begins or ends in the middle of a pair has a single tile there.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_WGMMA_KERNEL_H

#include "spmla/platform/gpu/attend/decode_combine_device.h"
#include "spmla/platform/gpu/attend/decode_loader_device.h"
#include "spmla/platform/gpu/attend/decode_wide_device.h"

#define SPMLA_K_sparse_decode_wgmma(P, S)      SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_wgmma_pair(P, S) SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_wgmma_v4(P, S)   SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_decode_v4_pair(P, S)    SPMLA_K_DECODE(P, S)
typedef decode_scalars spmla_k_sparse_decode_wgmma_scalars;
typedef decode_scalars spmla_k_sparse_decode_wgmma_pair_scalars;
typedef decode_scalars spmla_k_sparse_decode_wgmma_v4_scalars;
typedef decode_scalars spmla_k_sparse_decode_v4_pair_scalars;

enum {
	DECODE_WGMMA_BYTES = 227 * 1024,
	DECODE_WGMMA_ITEMS = 384,
	/* Named barriers: weights of the even and of the odd tile, sums,
	 * queries. */
	DECODE_EVEN_P = 1,
	DECODE_ODD_P,
	DECODE_SUMS,
	DECODE_QUERIES,
	DECODE_OWN, /* of the left warpgroup; the right one has the next */
	/* Registers of a lane that multiplies, and of one that loads: of two
	 * and one together no more than 3 x 168, which the launch gives. */
	DECODE_V32_REGISTERS = 208,
	DECODE_V32_LOADER_REGISTERS = 88,
	DECODE_V4_REGISTERS = 200,
	DECODE_V4_LOADER_REGISTERS = 104
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* How far above 2^0 a weight may be, and what all are multiplied by so that
 * f16 holds small ones, in powers of two. */
#define DECODE_REACH  8.0f
#define DECODE_P_BIAS 7.0f

/* An item that multiplies. */
typedef struct decode_worker {
	const PRIVATE decode_args *a;
	LOCAL decode_memory *mem;
	decode_format format;
	uint32_t cluster;
	uint32_t right; /* which warpgroup */
} decode_worker;

/* Tile m and, unless it is the last one of its token or m is odd, tile m + 1:
 * the even tile is `first`, the odd one `last`. */
typedef struct decode_pair {
	uint32_t m;
	uint32_t count;
	decode_tile first, last; /* the same if count is 1 */
	uint32_t ends;           /* the token, or the split */
} decode_pair;

/* What it has of its two heads: O in units of keys and weights, its part of L,
 * and the score that weights are relative to. */
typedef struct decode_heads {
	float o[128];
	float sum[2];
	float reach[2];
	uint32_t factors;    /* that queries are multiplied by, bf16 each */
	uint32_t rope[2][8]; /* of queries, times their factors */
} decode_heads;

/* The lane. What is computed of it stays where it is used: there are no
 * registers to keep it. */
FN uint32_t
decode_item_lane(void)
{
	return g_item_again() % 32;
}

FN uint32_t
decode_warp(void)
{
	return g_item_again() % 128 / 32;
}

/* The item's first head of the block's 64; the other is 8 on. */
FN uint32_t
decode_head(void)
{
	const uint32_t item = g_item_again() % 128;

	return item / 32 * 16 + item % 32 / 4;
}

/* ---- Queries ----------------------------------------------------------- */

/* The first head of the block, of a run. */
FN uint32_t
decode_first_head(const PRIVATE decode_worker *w, uint32_t bits)
{
	const uint32_t rank = w->cluster == 2 ? g_cluster_rank() : 0;

	return (decode_run_group(bits) * w->cluster + rank) * DECODE_HEADS;
}

/* Queries of a head, for a run. */
FN GLOBAL const uint16_t *
decode_query(const PRIVATE decode_worker *w, LOCAL const decode_run *run,
	     uint32_t head)
{
	return w->a->q +
	       decode_token_at(run->token, w->a->s.next_n,
			       w->a->s.q_request_stride,
			       w->a->s.q_token_stride) +
	       (int64_t)(decode_first_head(w, run->bits) + head) *
		       w->a->s.q_head_stride;
}

/* Where 16 bytes of a head's queries lie: of 64 in its row. */
FN LOCAL uint8_t *
decode_q_at(const PRIVATE decode_worker *w, uint32_t head, uint32_t piece)
{
	const uint32_t panel = piece / 8;

	return w->mem->queries + panel * (64 * 128) + head * 128 +
	       (((piece % 8) ^ (panel & 1u) ^ (head & 7u)) << 4);
}

/* Asks for the queries of a run, by the left warpgroup: a warp has 16 heads, a
 * lane pieces lane and 32 + lane of each. */
FN void
decode_ask_queries(const PRIVATE decode_worker *w, LOCAL const decode_run *run)
{
	const uint32_t head = decode_warp() * 16, lane = decode_item_lane();
	const uint32_t before = decode_first_head(w, run->bits) + head;
	const uint32_t heads =
		w->a->s.heads > before ? w->a->s.heads - before : 0;
	const uint32_t left = decode_panel_dim(w->format, lane / 8);
	const uint32_t right = decode_panel_dim(w->format, 4 + lane / 8);
	GLOBAL const uint16_t *from =
		decode_query(w, run, heads ? head : 0) + lane % 8 * 8;
	uint32_t i;

	UNROLL_BY(2)
	for (i = 0; i < 16; i++) {
		g_local_copy128(decode_q_at(w, head + i, lane), from + left,
				i < heads);
		g_local_copy128(decode_q_at(w, head + i, 32 + lane),
				from + right, i < heads);
		from += i + 1 < heads ? w->a->s.q_head_stride : 0;
	}
	g_mbarrier_arrive_copies(&w->mem->queries_full);
}

/* The largest magnitude of n words of bf16 pairs, and `most`: pairs, too. */
FN uint32_t
decode_magnitude(const PRIVATE uint32_t *x, uint32_t n, uint32_t most)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < n; i++)
		most = g_larger_halves(most, x[i] & 0x7fff7fffu);
	return most;
}

/* The larger exponent of a pair. */
FN uint32_t
decode_exponent(uint32_t pair)
{
	const uint32_t low = pair >> 7 & 0xffu, high = pair >> 23;

	return low > high ? low : high;
}

/* The first of the 8 heads of the block whose queries a warp converts. */
FN uint32_t
decode_own_queries(const PRIVATE decode_worker *w)
{
	return w->right * 32 + decode_warp() * 8;
}

/* The largest exponent of the rope part of a head, of the warp's 8 the lane /
 * 4-th. */
FN uint32_t
decode_rope_exponent(const PRIVATE decode_worker *w,
		     LOCAL const decode_run *run)
{
	const uint32_t head = decode_own_queries(w) + decode_item_lane() / 4;
	const uint32_t is =
		decode_first_head(w, run->bits) + head < w->a->s.heads;
	GLOBAL const uint16_t *from = decode_query(w, run, is ? head : 0) +
				      512 + decode_item_lane() % 4 * 16;
	uint32_t x[8], most, e;

	g_load128_if(is, from, x);
	g_load128_if(is, from + 8, x + 4);
	most = decode_exponent(decode_magnitude(x, 8, 0));
	for (e = 1; e < 4; e *= 2) {
		const uint32_t other = g_shuffle_xor(most, e);

		most = other > most ? other : most;
	}
	return most;
}

/* Waits for the queries of a run and brings them to f16, each head's times a
 * power of two: both warpgroups, 32 heads each. Gives the item its heads'
 * factors. `parity` is that of the tokens so far. */
FN void
decode_take_queries(const PRIVATE decode_worker *w, LOCAL const decode_run *run,
		    uint32_t parity, PRIVATE decode_heads *h)
{
	LOCAL uint32_t *factors = (LOCAL uint32_t *)w->mem->reach[1];
	const uint32_t lane = decode_item_lane();
	uint32_t rope = 0, i, j, e;

	if (w->format.rope_byte)
		rope = decode_rope_exponent(w, run);
	g_named_sync(DECODE_QUERIES, 256); /* nobody reads sums */
	g_mbarrier_wait(&w->mem->queries_full, parity);
	UNROLL_BY(2)
	for (i = 0; i < 8; i++) {
		const uint32_t head = decode_own_queries(w) + i;
		const uint32_t of_rope = g_broadcast(rope, 4 * i);
		uint32_t x[2][4], most = 0, exponent;
		float by;

		UNROLL
		for (j = 0; j < 2; j++) {
			g_local_load128(decode_q_at(w, head, 32 * j + lane),
					x[j]);
			most = decode_magnitude(x[j], 4, most);
		}
		most = decode_exponent(most);
		most = g_subgroup_largest(most > of_rope ? most : of_rope);
		/* Times this, the largest is in [1/64, 1/32). */
		exponent = most < 1 ? 247 : most > 247 ? 1 : 248 - most;
		by = g_float(exponent << 23);
		UNROLL
		for (j = 0; j < 2; j++) {
			UNROLL
			for (e = 0; e < 4; e++)
				x[j][e] = g_f32_to_f16x2(
					g_float(x[j][e] << 16) * by,
					g_float(x[j][e] & 0xffff0000u) * by);
			g_local_store128(decode_q_at(w, head, 32 * j + lane),
					 x[j]);
		}
		/* As scores are: keys are times 2^DECODE_KEY_BIAS, too. */
		if (lane == 0)
			factors[head] = (exponent + DECODE_KEY_BIAS) << 7;
	}
	g_fence_async();
	g_named_sync(DECODE_QUERIES, 256);
	h->factors = factors[decode_head()] | factors[decode_head() + 8] << 16;
	g_named_sync(DECODE_QUERIES, 256);
}

/* What brings scores of the item's head 0 or 1 to log2 units. */
FN float
decode_unit_of(const PRIVATE decode_worker *w, const PRIVATE decode_heads *h,
	       uint32_t i)
{
	const uint32_t factor = i ? h->factors & 0xffff0000u : h->factors << 16;

	return w->a->s.scale * G_LOG2_E * g_float((254u << 23) - factor);
}

/* Asks for the rope part of the item's heads, as fragments of A: of row head
 * and head + 8 dims 16 t .. 16 t + 15 each. */
FN void
decode_ask_rope(const PRIVATE decode_worker *w, LOCAL const decode_run *run,
		PRIVATE decode_heads *h)
{
	const uint32_t first = decode_first_head(w, run->bits);
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t head = decode_head() + i / 2 * 8;
		const uint32_t is = first + head < w->a->s.heads;
		GLOBAL const uint16_t *from =
			decode_query(w, run, is ? head : 0) + 512 +
			16 * (decode_item_lane() % 4) + i % 2 * 8;

		g_load128_if(is, from, h->rope[i / 2] + i % 2 * 4);
	}
}

/* Multiplies it by the heads' factors. */
FN void
decode_scale_rope(PRIVATE decode_heads *h)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 16; i++) {
		const uint32_t by =
			i / 8 ? h->factors >> 16 : h->factors & 0xffffu;

		h->rope[i / 8][i % 8] =
			g_mul_bf16x2(h->rope[i / 8][i % 8], by * 0x10001u);
	}
}

/* ---- Products ---------------------------------------------------------- */

/* Panel of the left half of a tile. */
FN g_panel
decode_key_panels(const PRIVATE decode_worker *w, uint32_t tile)
{
	return g_panel_of((LOCAL const uint16_t *)w->mem->keys[tile],
			  DECODE_OCTET_BYTES, DECODE_PANEL_BYTES);
}

/* S += Q K^T over half of the values of a tile, which are there: issued. */
FN void
decode_issue_scores(const PRIVATE decode_worker *w, uint32_t tile,
		    uint32_t right, PRIVATE float *score)
{
	const g_panel q = g_panel_of((LOCAL const uint16_t *)w->mem->queries,
				     8 * 128, 64 * 128);
	const g_panel k = decode_key_panels(w, tile);
	uint32_t i;

	UNROLL
	for (i = 0; i < 16; i++) {
		const uint32_t panel = 4 * right + i / 4;
		const g_panel a =
			g_panel_step(g_panel_on(q, panel * (64 * 128)), i % 4);
		const g_panel b = g_panel_step(
			g_panel_on(k, panel * DECODE_PANEL_BYTES), i % 4);

		if (!right && i == 0)
			g_wgmma_f16_n64_first(score, a, b);
		else
			g_wgmma_f16_n64(score, a, b);
	}
}

/* The rope part of queries stays in registers. */
FN void
decode_defer_rope(PRIVATE decode_heads *h)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 16; i++)
		g_wgmma_defer(&h->rope[i / 8][i % 8]);
}

/* S += the rope part: issued. */
FN void
decode_issue_rope(const PRIVATE decode_worker *w, uint32_t tile,
		  PRIVATE uint32_t rope[2][8], PRIVATE float *score)
{
	const g_panel k =
		g_panel_on(decode_key_panels(w, tile), 8 * DECODE_PANEL_BYTES);
	uint32_t i, j;

	UNROLL
	for (i = 0; i < 4; i++) {
		uint32_t a[4];

		UNROLL
		for (j = 0; j < 4; j++)
			a[j] = rope[j % 2][2 * i + j / 2];
		g_wgmma_bf16_n64_registers(score, a, g_panel_step(k, i));
	}
}

/* The fragments of P as A's, from its panel's swizzled rows: by a matrix
 * instruction; and by registers. */
FN void
decode_issue_values(const PRIVATE decode_worker *w, uint32_t tile,
		    const PRIVATE uint32_t *p, PRIVATE float *o)
{
	const g_panel k = decode_key_panels(w, tile);
	const g_panel a = g_panel_on(k, 8 * DECODE_PANEL_BYTES);
	const g_panel v = g_panel_on(k, 4 * w->right * DECODE_PANEL_BYTES);
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		const g_panel rows = g_panel_on(v, 2 * i * DECODE_OCTET_BYTES);

		if (p)
			g_wgmma_f16_n256_registers(o, p + 4 * i, rows);
		else
			g_wgmma_f16_n256(o, g_panel_step(a, i), rows);
	}
}

FN void
decode_hold(PRIVATE float *x, uint32_t n)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < n; i++)
		g_wgmma_hold(x + i);
}

/* ---- Softmax ----------------------------------------------------------- */

/* Scores of rows that are no keys. */
FN void
decode_mask(LOCAL const decode_note *notes, PRIVATE float *score)
{
	const uint32_t t = decode_item_lane() % 4;
	uint32_t i;

	UNROLL
	for (i = 0; i < 32; i++)
		if (!(notes[i / 4].keys >> (2 * t + i % 2) & 1u))
			score[i] = G_MINUS_INF;
}

/* Brings O and L to another reference. */
FN void
decode_rescale(PRIVATE decode_heads *h, const PRIVATE float *reach,
	       const PRIVATE float *unit)
{
	float by[2];
	uint32_t i;

	if (!g_ballot(reach[0] != h->reach[0] || reach[1] != h->reach[1]))
		return;
	UNROLL
	for (i = 0; i < 2; i++) {
		by[i] = reach[i] == h->reach[i]
				? 1.0f
				: g_exp2_flush((h->reach[i] - reach[i]) *
					       unit[i]);
		h->sum[i] *= by[i];
		h->reach[i] = reach[i];
	}
	UNROLL
	for (i = 0; i < 128; i++)
		h->o[i] *= by[i / 2 % 2];
}

/* Scores of a tile to weights, as fragments of A; `reach` becomes what they are
 * relative to, `sums` their sums over the item's keys. */
FN void
decode_weights(PRIVATE float *score, const PRIVATE decode_heads *h,
	       const PRIVATE float *unit, uint32_t wide, PRIVATE float *reach,
	       PRIVATE float *sums, PRIVATE uint32_t *p)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 2; i++) {
		float most = score[2 * i];
		uint32_t j;

		UNROLL
		for (j = 0; j < 8; j++) {
			most = g_larger(most, score[4 * j + 2 * i]);
			most = g_larger(most, score[4 * j + 2 * i + 1]);
		}
		most = g_larger(most, g_shuffle_xor_f(most, 1));
		most = g_larger(most, g_shuffle_xor_f(most, 2));
		/* Large values times small weights: f32 holds O up to 2^115,
		 * and f16 weights that matter. */
		if (wide)
			most += 14.0f / g_float(g_here(g_bits(unit[i])));
		reach[i] = (most - h->reach[i]) * unit[i] > DECODE_REACH ||
					   (wide && most > h->reach[i])
				   ? most
				   : h->reach[i];
		sums[i] = 0.0f;
	}
	UNROLL
	for (i = 0; i < 16; i++) {
		const uint32_t r = i % 2;
		const uint32_t at = i / 2 * 4 + 2 * r;
		const float low = g_exp2_flush(
			g_fma(score[at] - reach[r], unit[r], DECODE_P_BIAS));
		const float high = g_exp2_flush(g_fma(score[at + 1] - reach[r],
						      unit[r], DECODE_P_BIAS));

		sums[r] += low + high;
		p[i / 4 * 4 + i / 2 % 2 * 2 + r] = g_f32_to_f16x2(low, high);
	}
}

/* Gives P of tile m and its reference to the other warpgroup. */
FN void
decode_give_weights(const PRIVATE decode_worker *w, uint32_t m,
		    const PRIVATE float *reach, const PRIVATE uint32_t *p)
{
	const uint32_t tile = w->right;
	const uint32_t lane = decode_item_lane();
	const uint32_t row = decode_warp() * 16 + lane % 16;
	LOCAL uint8_t *panel = w->mem->keys[tile] +
			       row / 8 * DECODE_OCTET_BYTES +
			       8 * DECODE_PANEL_BYTES + row % 8 * 128;
	uint32_t i;

	if (w->cluster == 2 && w->format.rope_byte)
		g_mbarrier_wait(decode_received(w->mem, tile), m / 2 & 1u);
	UNROLL
	for (i = 0; i < 4; i++)
		g_store_matrices(
			(LOCAL uint16_t *)(panel +
					   (((2 * i + lane / 16) ^ (row & 7u))
					    << 4)),
			p + 4 * i);
	if (lane % 4 == 0) {
		w->mem->reach[tile][decode_head()] = reach[0];
		w->mem->reach[tile][decode_head() + 8] = reach[1];
	}
	g_fence_async();
	g_named_arrive(tile ? DECODE_ODD_P : DECODE_EVEN_P, 256);
}

/* Waits for the other's P of a tile, and brings O to its reference. */
FN void
decode_await_weights(const PRIVATE decode_worker *w, uint32_t tile,
		     const PRIVATE float *unit, PRIVATE decode_heads *h)
{
	float reach[2];

	g_named_sync(tile ? DECODE_ODD_P : DECODE_EVEN_P, 256);
	if (w->cluster == 1)
		g_fence_async(); /* the other has waited for the keys */
	reach[0] = w->mem->reach[tile][decode_head()];
	reach[1] = w->mem->reach[tile][decode_head() + 8];
	decode_rescale(h, reach, unit);
}

/* Says that this warpgroup has multiplied its half of a tile's values. */
FN void
decode_free(const PRIVATE decode_worker *w, uint32_t tile)
{
	LOCAL g_mbarrier *free = &w->mem->free[tile][w->right];

	if (g_item_again() % 128)
		return;
	g_mbarrier_arrive(free);
	if (w->cluster == 2)
		g_mbarrier_arrive_peer(free);
}

/* ---- Results ----------------------------------------------------------- */

/* The sums of both warpgroups, in both. */
FN void
decode_join_sums(const PRIVATE decode_worker *w, PRIVATE float *sum)
{
	uint32_t r;

	g_named_sync(DECODE_SUMS, 256); /* nobody reads references */
	UNROLL
	for (r = 0; r < 2; r++) {
		sum[r] += g_shuffle_xor_f(sum[r], 1);
		sum[r] += g_shuffle_xor_f(sum[r], 2);
		if (decode_item_lane() % 4 == 0)
			w->mem->reach[w->right][decode_head() + 8 * r] = sum[r];
	}
	g_named_sync(DECODE_SUMS, 256);
	UNROLL
	for (r = 0; r < 2; r++)
		sum[r] = w->mem->reach[0][decode_head() + 8 * r] +
			 w->mem->reach[1][decode_head() + 8 * r];
}

/* The first of 8 columns of a row of results: 16 bytes of panel i / 8. */
FN uint32_t
decode_column(const PRIVATE decode_worker *w, uint32_t i)
{
	const uint32_t panel = 4 * w->right + i / 8;

	return decode_panel_dim(w->format, panel) +
	       ((i % 8) ^ (panel & 1u)) * 8;
}

/* A head's results as bf16. A quad's lanes have 2 of 8 columns each; they
 * exchange them, so that each writes 16 bytes. */
FN void
decode_write_bf16(const PRIVATE decode_worker *w, const PRIVATE float *o,
		  GLOBAL uint16_t *to)
{
	const uint32_t t = decode_item_lane() % 4;
	uint32_t m, b;

	UNROLL
	for (m = 0; m < 8; m++) {
		uint32_t x[4];

		UNROLL
		for (b = 0; b < 4; b++)
			x[b] = g_f32_to_bf16x2(o[(4 * m + b) * 4],
					       o[(4 * m + b) * 4 + 1]);
		UNROLL
		for (b = 0; b < 4; b += 2) {
			const uint32_t y =
				g_shuffle_xor(t & 1u ? x[b] : x[b + 1], 1);

			x[b] = t & 1u ? y : x[b];
			x[b + 1] = t & 1u ? x[b + 1] : y;
		}
		UNROLL
		for (b = 0; b < 2; b++) {
			const uint32_t y =
				g_shuffle_xor(t & 2u ? x[b] : x[b + 2], 2);

			x[b] = t & 2u ? y : x[b];
			x[b + 2] = t & 2u ? x[b + 2] : y;
		}
		if (to)
			g_store4(to + decode_column(w, 4 * m + t), x);
	}
}

/* A head's results of a split. */
FN void
decode_write_f32(const PRIVATE decode_worker *w, const PRIVATE float *o,
		 GLOBAL float *to)
{
	uint32_t i;

	to += 2 * (decode_item_lane() % 4);
	UNROLL
	for (i = 0; i < 32; i++)
		g_store2f(to + decode_column(w, i), o[4 * i], o[4 * i + 1]);
}

/* The results of a token or a split. */
FN void
decode_write(const PRIVATE decode_worker *w, LOCAL const decode_run *run,
	     PRIVATE decode_heads *h)
{
	const PRIVATE decode_args *a = w->a;
	const decode_scalars *s = &a->s;
	const uint32_t t = run->token, bits = run->bits;
	const uint32_t whole = !(bits & DECODE_PIECE);
	const uint32_t combines = decode_combines(a);
	const uint32_t writes_lse = !w->right && decode_item_lane() % 4 == 0;
	const float bias = 1.0f / (float)(1u << DECODE_KEY_BIAS);
	const int64_t out_at = decode_token_at(
		t, s->next_n, s->out_request_stride, s->out_token_stride);
	GLOBAL uint16_t *to[2];
	GLOBAL float *split[2];
	uint32_t r, i, empty[2];
	uint64_t split_row = 0;
	float factor[2];

	if (!whole)
		split_row =
			(uint32_t)a->num_splits[t] + (bits >> DECODE_SPLIT_AT);
	decode_join_sums(w, h->sum);
	UNROLL
	for (r = 0; r < 2; r++) {
		const uint32_t head =
			decode_first_head(w, bits) + decode_head() + 8 * r;
		const uint32_t is = head < s->heads;
		const uint64_t row = split_row * s->heads + head;
		const float reach =
			h->reach[r] * decode_unit_of(w, h, r) - DECODE_P_BIAS;
		const float lse2 = reach + g_log2(h->sum[r]);
		float total = h->sum[r];

		empty[r] = total == 0.0f;
		if (whole && s->has_sink && is)
			total += g_sink_weight(a->attn_sink[head], reach);
		factor[r] = g_div_rn(bias, total);
		to[r] = !is     ? 0
			: whole ? a->out + out_at +
					  (int64_t)head * s->out_head_stride
				: decode_split_values(a, split_row, s->heads,
						      head);
		split[r] = is ? a->split_out + row * SPMLA_MLA_LATENT : 0;
		if (!is || !writes_lse)
			continue;
		if (!whole)
			a->split_lse[row] = empty[r] ? G_MINUS_INF : lse2;
		else if (s->has_lse)
			a->lse[decode_token_at(t, s->next_n,
					       s->lse_request_stride,
					       s->lse_token_stride) +
			       (int64_t)head * s->lse_head_stride] =
				decode_result_lse(
					empty[r], lse2, s->empty_lse,
					s->base2 ? 1.0f : G_LN_2, s->lse_sink,
					s->lse_sink ? a->attn_sink[head]
						    : 0.0f);
	}
	/* Without weights O is 0, or NaN if a key is. */
	UNROLL
	for (i = 0; i < 128; i++)
		h->o[i] = empty[i / 2 % 2] ? 0.0f : h->o[i] * factor[i / 2 % 2];
	UNROLL
	for (r = 0; r < 2; r++) {
		if (whole || combines)
			decode_write_bf16(w, h->o + 2 * r, to[r]);
		else if (split[r])
			decode_write_f32(w, h->o + 2 * r, split[r]);
	}
}

/* Adds up the splits of a token that this block has one of, which is written.
 * `waits`: the block has no other work. */
FN void
decode_combine(const PRIVATE decode_worker *w, LOCAL const decode_run *run,
	       uint32_t waits)
{
	const PRIVATE decode_args *a = w->a;
	decode_splits t;

	t.heads = g_here(a->s.heads);
	t.lane = decode_item_lane();
	t.token = run->token;
	t.first_head = decode_first_head(w, run->bits);
	if (!(run->bits & DECODE_PIECE) || t.first_head >= t.heads)
		return;
	t.row = (uint32_t)a->num_splits[t.token];
	t.count = (uint32_t)a->num_splits[t.token + 1] - t.row;
	t.own = run->bits >> DECODE_SPLIT_AT;
	g_fence_device();
	g_named_sync(DECODE_SUMS, 256);
	if (g_item_again() == 0) {
		w->mem->adds = decode_arrive(a, &t, waits);
		g_fence_device();
	}
	g_named_sync(DECODE_SUMS, 256);
	decode_add_heads(a, &t, w->mem->adds, w->right * 4 + decode_warp());
}

/* ---- Pairs of tiles ---------------------------------------------------- */

/* The two units of an item's heads. */
FN void
decode_units_of(const PRIVATE decode_worker *w, const PRIVATE decode_heads *h,
		PRIVATE float *unit)
{
	unit[0] = decode_unit_of(w, h, 0);
	unit[1] = decode_unit_of(w, h, 1);
}

/* Of tiles 0 and 1 bits 0 and 1: whether they have rows that f16 does not hold;
 * bits 2 and 3: whether they have rows that are no keys. */
FN uint32_t
decode_odd_tiles(const PRIVATE decode_worker *w)
{
	const uint32_t lane = decode_item_lane();
	LOCAL const decode_note *note = &w->mem->notes[lane / 8 % 2][lane % 8];
	const uint32_t wide = (uint32_t)g_ballot(note->wide);
	const uint32_t partial = (uint32_t)g_ballot(note->keys != 0xffu);

	return ((wide & 0xffu) != 0) | ((wide & 0xff00u) != 0) << 1 |
	       ((partial & 0xffu) != 0) << 2 | ((partial & 0xff00u) != 0) << 3;
}

/* Waits for a half of a tile. Rows that this block converted are fenced here:
 * the fence of a lane that loads would wait for its copies, too. */
FN void
decode_await_half(const PRIVATE decode_worker *w, uint32_t tile, uint32_t half,
		  uint32_t parity)
{
	g_mbarrier_wait(&w->mem->full[tile][half], parity);
	if (w->cluster == 1)
		g_fence_async();
}

/* The scores of the worker's own tile, m: issued. */
FN void
decode_issue_tile(const PRIVATE decode_worker *w, PRIVATE decode_heads *h,
		  uint32_t m, PRIVATE float *score)
{
	const uint32_t tile = w->right, parity = m / 2 & 1u;

	decode_await_half(w, tile, 0, parity);
	if (w->format.rope_byte)
		decode_defer_rope(h);
	decode_hold(score, 32);
	g_wgmma_begin();
	decode_issue_scores(w, tile, 0, score);
	decode_await_half(w, tile, 1, parity);
	if (w->cluster == 2 && w->format.rope_byte && g_item_again() % 128 == 0)
		g_mbarrier_arrive_peer(decode_received(w->mem, tile));
	decode_issue_scores(w, tile, 1, score);
	if (w->format.rope_byte)
		decode_issue_rope(w, tile, h->rope, score);
	g_wgmma_commit();
}

/* From the scores of the worker's own tile to weights, given on. */
FN void
decode_own_weights(const PRIVATE decode_worker *w, PRIVATE decode_heads *h,
		   const PRIVATE decode_pair *pair, uint32_t wide,
		   uint32_t partial, PRIVATE float *score, PRIVATE uint32_t *p)
{
	LOCAL decode_memory *mem = w->mem;
	const uint32_t tile = w->right;
	float unit[2], reach[2], sums[2];

	decode_units_of(w, h, unit);
	if (UNLIKELY(wide))
		decode_wide_scores(
			w->a, mem, w->format, w->cluster, mem->runs,
			(tile ? pair->last : pair->first), tile,
			decode_first_head(w, decode_run_of(mem->runs,
							   (tile ? pair->last
								 : pair->first))
						     ->bits) +
				decode_warp() * 16,
			h->factors, score);
	if (partial)
		decode_mask(mem->notes[tile], score);
	decode_weights(score, h, unit, wide, reach, sums, p);
	decode_give_weights(w, pair->m, reach, p);
	decode_rescale(h, reach, unit);
	h->sum[0] += sums[0];
	h->sum[1] += sums[1];
}

/* O += P V of a tile: its own, by registers, or the other's. */
FN void
decode_add_values(const PRIVATE decode_worker *w, PRIVATE decode_heads *h,
		  const PRIVATE decode_pair *pair, uint32_t tile, uint32_t wide,
		  const PRIVATE uint32_t *p)
{
	if (UNLIKELY(wide)) {
		decode_wide_values(w->a, w->mem, w->format, w->mem->runs,
				   (tile ? pair->last : pair->first), tile,
				   w->cluster, w->right, decode_head(), h->o);
		return;
	}
	decode_hold(h->o, 128);
	g_wgmma_begin();
	decode_issue_values(w, tile, p, h->o);
	g_wgmma_commit();
	g_wgmma_wait_but(0);
	decode_hold(h->o, 128);
}

/* If the token ends with a pair, asks for the next one's queries: nobody needs
 * this one's. */
FN void
decode_ask_next(const PRIVATE decode_worker *w, const PRIVATE decode_pair *pair)
{
	LOCAL const decode_run *runs = w->mem->runs;

	if (pair->ends) {
		LOCAL const decode_run *next =
			decode_run_of(runs, decode_next_tile(runs, pair->last));

		if (!(next->bits & DECODE_NONE))
			decode_ask_queries(w, next);
	}
}

/* The worker's own tile: weights for both, and its half of the values. */
FN void
decode_own_tile(const PRIVATE decode_worker *w, const PRIVATE decode_pair *pair,
		PRIVATE decode_heads *h)
{
	const uint32_t tile = w->right;
	uint32_t p[16], odd;
	float score[32];

	decode_issue_tile(w, h, pair->m, score);
	odd = decode_odd_tiles(w) >> tile;
	g_wgmma_wait_but(0);
	decode_hold(score, 32);
	decode_own_weights(w, h, pair, odd & 1u, odd & 4u, score, p);
	decode_add_values(w, h, pair, tile, odd & 1u, p);
	decode_free(w, tile);
}

/* The other's tile, if the pair has it: its half of the values. The left
 * warpgroup asks for the next queries when nobody needs these. */
FN void
decode_other_tile(const PRIVATE decode_worker *w,
		  const PRIVATE decode_pair *pair, uint32_t is,
		  PRIVATE decode_heads *h)
{
	const uint32_t tile = w->right ^ 1u;
	uint32_t odd = 0;
	float unit[2];

	if (is) {
		decode_units_of(w, h, unit);
		decode_await_weights(w, tile, unit, h);
		odd = decode_odd_tiles(w) >> tile;
	}
	if (!w->right)
		decode_ask_next(w, pair);
	if (is) {
		decode_add_values(w, h, pair, tile, odd & 1u, 0);
		decode_free(w, tile);
	}
}

/* Tile after tile: so does the left warpgroup. */
FN void
decode_both_tiles(const PRIVATE decode_worker *w,
		  const PRIVATE decode_pair *pair, PRIVATE decode_heads *h)
{
	uint32_t tile;

	NO_UNROLL
	for (tile = 0; tile < 2; tile++) {
		const uint32_t is = pair->m % 2 == tile || pair->count == 2;

		if (tile != w->right)
			decode_other_tile(w, pair, is, h);
		else if (is)
			decode_own_tile(w, pair, h);
	}
}

/* Right: the softmax of the odd tile runs beside the product of the even one,
 * if both are there and f16 holds them. Returns whether it is so. */
FN uint32_t
decode_right_pair(const PRIVATE decode_worker *w,
		  const PRIVATE decode_pair *pair, PRIVATE decode_heads *h)
{
	LOCAL decode_memory *mem = w->mem;
	const uint32_t m = pair->m, parity = m / 2 & 1u;
	float score[32], unit[2], reach[2], sums[2];
	uint32_t p[16], odd;

	if (pair->count != 2)
		return 0;
	g_mbarrier_wait(&mem->full[0][0], parity);
	g_mbarrier_wait(&mem->full[1][0], parity);
	odd = decode_odd_tiles(w);
	if (odd & 3u)
		return 0;
	decode_issue_tile(w, h, m, score);
	/* They are there before the other's weights are. */
	g_wgmma_wait_but(0);
	decode_hold(score, 32);
	decode_units_of(w, h, unit);
	decode_await_weights(w, 0, unit, h);
	decode_hold(h->o, 128);
	g_wgmma_begin();
	decode_issue_values(w, 0, 0, h->o);
	g_wgmma_commit();
	if (odd & 8u)
		decode_mask(mem->notes[1], score);
	decode_weights(score, h, unit, 0, reach, sums, p);
	decode_give_weights(w, m, reach, p);
	g_wgmma_wait_but(0);
	decode_hold(h->o, 128);
	decode_free(w, 0);
	decode_rescale(h, reach, unit);
	h->sum[0] += sums[0];
	h->sum[1] += sums[1];
	decode_add_values(w, h, pair, 1, 0, p);
	decode_free(w, 1);
	return 1;
}

/* The pair of tiles from tile m on: whoever has tile m - 1 sees the runs of
 * tiles up to m + 2, as the loads come to them before that tile is given on. */
FN void
decode_take_pair(LOCAL const decode_run *runs, decode_tile first,
		 PRIVATE decode_pair *pair)
{
	pair->count = 1;
	pair->first = pair->last = first;
	pair->ends = decode_tile_ends(runs, first);
	if (pair->m % 2 == 0 && !pair->ends) {
		pair->count = 2;
		pair->last = decode_next_tile(runs, first);
		pair->ends = decode_tile_ends(runs, pair->last);
	}
}

/* A warpgroup that multiplies, until there is no work left. */
FN void
decode_multiply_all(const PRIVATE decode_worker *w)
{
	LOCAL decode_memory *mem = w->mem;
	LOCAL const decode_run *runs = mem->runs;
	uint32_t tokens = 0;
	decode_tile next = 0;
	decode_pair pair;

	pair.m = 0;
	g_named_sync(DECODE_BEGAN, DECODE_BEGAN_THREADS);
	if (!w->right && !(runs->bits & DECODE_NONE))
		decode_ask_queries(w, runs);
	while (!(decode_run_of(runs, next)->bits & DECODE_NONE)) {
		decode_heads h;
		uint32_t i;

		UNROLL
		for (i = 0; i < 128; i++)
			h.o[i] = 0.0f;
		h.sum[0] = h.sum[1] = 0.0f;
		h.reach[0] = h.reach[1] = g_float(0xff7fffffu); /* -FLT_MAX */
		if (w->format.rope_byte)
			decode_ask_rope(w, decode_run_of(runs, next), &h);
		decode_take_queries(w, decode_run_of(runs, next), tokens++ & 1u,
				    &h);
		if (w->format.rope_byte)
			decode_scale_rope(&h);
		if (pair.m == 0) /* the runs behind the first one */
			g_mbarrier_wait(&mem->full[0][0], 0);
		do {
			decode_take_pair(runs, next, &pair);
			if (!w->right || !decode_right_pair(w, &pair, &h))
				decode_both_tiles(w, &pair, &h);
			pair.m += pair.count;
			next = decode_next_tile(runs, pair.last);
		} while (!pair.ends);
		decode_write(w, decode_run_of(runs, pair.last), &h);
		if (decode_combines(w->a))
			decode_combine(w, decode_run_of(runs, pair.last),
				       decode_run_of(runs, next)->bits &
					       DECODE_NONE);
	}
}

/* Barriers, and where the walk begins. */
FN void
decode_begin(LOCAL decode_memory *mem, uint32_t cluster)
{
	uint32_t i;

	if (g_item() == 0) {
		UNROLL
		for (i = 0; i < 4; i++) {
			g_mbarrier_init(&mem->full[i / 2][i % 2], DECODE_WARPS);
			g_mbarrier_init(&mem->free[i / 2][i % 2], cluster);
		}
		if (cluster == 2) {
			g_mbarrier_init(decode_received(mem, 0), 1);
			g_mbarrier_init(decode_received(mem, 1), 1);
		}
		g_mbarrier_init(&mem->queries_full, 128);
		UNROLL
		for (i = 0; i < DECODE_MADE; i++)
			g_mbarrier_init(&mem->made[i], 1);
		g_mbarriers_publish();
		decode_walk_start(&mem->walk, mem->runs, g_block() / cluster);
	}
	if (cluster == 2)
		g_cluster_sync();
	else
		BARRIER();
}

FN void
decode_run_loader(const PRIVATE decode_args *a, LOCAL decode_memory *mem,
		  decode_format format, uint32_t cluster)
{
	const uint32_t warp = g_broadcast(g_item() / 32 % 4, 0);
	decode_loader l;

	l.a = a;
	l.mem = mem;
	l.format = format;
	l.cluster = cluster;
	l.rank = cluster == 2 ? g_cluster_rank() : 0;
	l.warp = warp;
	l.lane = g_lane();
	l.ring = mem->rings[warp].units[0] + 16 * l.lane;
	l.store = decode_store_at(l.lane);
	l.scales = mem->rings[warp].scales[0][l.lane / 8] +
		   (format.scales_byte ? 0 : l.lane / 4 % 2);
	decode_load_all(&l);
}

FN void
decode_run_worker(const PRIVATE decode_args *a, LOCAL decode_memory *mem,
		  decode_format format, uint32_t cluster, uint32_t right)
{
	decode_worker w;

	w.a = a;
	w.mem = mem;
	w.format = format;
	w.cluster = cluster;
	w.right = right;
	decode_multiply_all(&w);
}

/* Of a kernel: the rows, the blocks of a cluster, and the registers of a lane
 * that multiplies and of one that loads. */
#define DECODE_WGMMA_RUN(rows, blocks, up, down)                             \
	do {                                                                 \
		LOCAL_DYNAMIC(local, DECODE_WGMMA_BYTES);                    \
		const decode_args a = {                                      \
			SPMLA_K_DECODE(SPMLA_I_K_NAME, SPMLA_I_K_NONE) s};   \
		LOCAL decode_memory *mem = (LOCAL decode_memory *)local;     \
		const uint32_t group = g_broadcast(g_item() / 128, 0);       \
                                                                             \
		decode_begin(mem, blocks);                                   \
		if (group == 2) {                                            \
			G_REGISTERS_DOWN(down);                              \
			decode_run_loader(&a, mem, rows, blocks);            \
		} else {                                                     \
			G_REGISTERS_UP(up);                                  \
			decode_run_worker(&a, mem, rows, blocks, group);     \
		}                                                            \
		/* The peer may still copy to this block, or arrive here. */ \
		if (blocks == 2)                                             \
			g_cluster_sync();                                    \
	} while (0)

SPMLA_KERNEL(sparse_decode_wgmma)
void
spmla_k_sparse_decode_wgmma(SPMLA_KERNEL_ARGS(sparse_decode_wgmma))
{
	DECODE_WGMMA_RUN(decode_fp8_ds_mla(), 1, DECODE_V32_REGISTERS,
			 DECODE_V32_LOADER_REGISTERS);
}

SPMLA_KERNEL_CLUSTER(sparse_decode_wgmma_pair, 2)
void
spmla_k_sparse_decode_wgmma_pair(SPMLA_KERNEL_ARGS(sparse_decode_wgmma_pair))
{
	DECODE_WGMMA_RUN(decode_fp8_ds_mla(), 2, DECODE_V32_REGISTERS,
			 DECODE_V32_LOADER_REGISTERS);
}

SPMLA_KERNEL(sparse_decode_wgmma_v4)
void
spmla_k_sparse_decode_wgmma_v4(SPMLA_KERNEL_ARGS(sparse_decode_wgmma_v4))
{
	DECODE_WGMMA_RUN(decode_v4_fp8(), 1, DECODE_V4_REGISTERS,
			 DECODE_V4_LOADER_REGISTERS);
}

SPMLA_KERNEL_CLUSTER(sparse_decode_v4_pair, 2)
void
spmla_k_sparse_decode_v4_pair(SPMLA_KERNEL_ARGS(sparse_decode_v4_pair))
{
	DECODE_WGMMA_RUN(decode_v4_fp8(), 2, DECODE_V4_REGISTERS,
			 DECODE_V4_LOADER_REGISTERS);
}

#undef DECODE_WGMMA_RUN
#endif
#endif
