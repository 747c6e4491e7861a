/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention by warpgroups' matrix instructions. A block has 64 heads, or up to
 * 32 and more rows in flight. It takes tile after tile of 64 keys, of whatever
 * token comes next. One warpgroup loads (decode_loader_device.h; bf16 rows:
 * decode_copies_device.h) and two multiply: the left one has columns 0 .. 255
 * of O, the right one the rest. Two tiles are in shared memory. The left
 * warpgroup makes the weights P of the even tile, the right one P of the odd
 * tile. So the softmax of one runs beside the products of the other: FlashMLA
 * calls it the seesaw. With 128 heads of fp8 rows, two blocks form a cluster
 * and share what they load.
 *
 *   left                         right
 *   S = Q K^T of the even tile   S of the odd tile, its largest scores
 *   P, even; O += P V            wait for P, even; O += P V
 *   wait for P, odd              P, odd
 *   O += P V of the odd tile     O += P V
 *
 * The hard ideas:
 * - The weights of a head are relative to a reference. It changes only when a
 *   tile's largest score is more than 8 above it, in log2 units, so O is hardly
 *   ever rescaled.
 * - P of fp8 rows is f16. What rounding added to a head's largest weight is
 *   added to the sum that divides. So a key that has nearly all of the weight
 *   gives its value. lse is of weights before rounding. This is not exact if a
 *   wide tile raises the reference later.
 * - Keys of fp8 rows are f16 times 64. Queries are f16 times a power of two for
 *   each head, which brings the head's largest value into [1/64, 1/32). So
 *   scores are off by no more than f16's rounding of the keys. With bf16 rows
 *   all is bf16.
 * - Tiles alternate between the two buffers, whatever token they belong to.
 *   Where a token begins or ends in the middle of a pair, it has a single tile
 *   there.
 *
 * The file has more than 800 lines because the two warpgroups are one pipeline.
 * Where one gives P and its reference, the other waits for them, and the order
 * of a pair's steps can be checked only beside both.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_SEESAW_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_SEESAW_DEVICE_H

#include "spmla/platform/gpu/attend/decode_copies_device.h"
#include "spmla/platform/gpu/attend/decode_queries_device.h"
#include "spmla/platform/gpu/attend/decode_results_device.h"
#include "spmla/platform/gpu/attend/decode_wide_device.h"

enum { DECODE_WGMMA_BYTES = 227 * 1024 };

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* A pair of tiles from tile m on. It has tile m + 1 only if m is even and is
 * not the last tile of its token. */
typedef struct decode_pair {
	uint32_t m;
	uint32_t count;
	decode_tile first, last; /* equal if count is 1 */
	uint32_t ends;           /* 1: the token or split ends here */
} decode_pair;

/* ---- Products ---------------------------------------------------------- */

/* The panels of a tile, from the left half on. */
FN g_panel
decode_key_panels(const PRIVATE decode_worker *w, uint32_t tile)
{
	return g_panel_of((LOCAL const uint16_t *)w->mem->keys[tile],
			  DECODE_OCTET_BYTES, DECODE_PANEL_BYTES);
}

/* S += Q K^T over 16 columns, or S = Q K^T if `first`. */
FN void
decode_score(const PRIVATE decode_worker *w, PRIVATE float *score, g_panel a,
	     g_panel b, uint32_t first)
{
	if (w->format.code == DECODE_BF16 && first)
		g_wgmma_bf16_n64_first(score, a, b);
	else if (w->format.code == DECODE_BF16)
		g_wgmma_bf16_n64(score, a, b);
	else if (first)
		g_wgmma_f16_n64_first(score, a, b);
	else
		g_wgmma_f16_n64(score, a, b);
}

/* Issues S += Q K^T over half of the values of a tile, whose rows must be
 * there. */
FN void
decode_issue_scores(const PRIVATE decode_worker *w, uint32_t tile,
		    uint32_t right, PRIVATE float *score)
{
	const uint32_t q_panel = decode_q_panel(w->format);
	const g_panel q = g_panel_of((LOCAL const uint16_t *)w->mem->queries,
				     8 * 128, q_panel);
	const g_panel k = decode_key_panels(w, tile);
	uint32_t i;

	UNROLL
	for (i = 0; i < 16; i++) {
		const uint32_t panel = 4 * right + i / 4;
		const g_panel a =
			g_panel_step(g_panel_on(q, panel * q_panel), i % 4);
		const g_panel b = g_panel_step(
			g_panel_on(k, panel * DECODE_PANEL_BYTES), i % 4);

		decode_score(w, score, a, b, !right && i == 0);
	}
}

/* Keeps the compiler from using the rope part of queries earlier than here. */
FN void
decode_defer_rope(PRIVATE decode_heads *h)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 16; i++)
		g_wgmma_defer(&h->rope[i / 8][i % 8]);
}

/* Issues S += Q K^T over the rope part. */
FN void
decode_issue_rope(const PRIVATE decode_worker *w, uint32_t tile,
		  PRIVATE uint32_t rope[2][8], PRIVATE float *score)
{
	const g_panel k =
		g_panel_on(decode_key_panels(w, tile), 8 * DECODE_PANEL_BYTES);
	const g_panel q = g_panel_of((LOCAL const uint16_t *)w->mem->query_rope,
				     8 * 128, 64 * 128);
	uint32_t i, j;

	UNROLL
	for (i = 0; i < 4; i++) {
		uint32_t a[4];

		if (w->format.code == DECODE_BF16) {
			decode_score(w, score, g_panel_step(q, i),
				     g_panel_step(k, i), 0);
			continue;
		}
		UNROLL
		for (j = 0; j < 4; j++)
			a[j] = rope[j % 2][2 * i + j / 2];
		g_wgmma_bf16_n64_registers(score, a, g_panel_step(k, i));
	}
}

/* Issues O += P V over a tile, for the warpgroup's columns. P is in the
 * fragments `p`, or in its panel if p is 0. */
FN void
decode_issue_values(const PRIVATE decode_worker *w, uint32_t tile,
		    const PRIVATE uint32_t *p, PRIVATE decode_heads *h)
{
	PRIVATE float *o = h->o;
	const g_panel k = decode_key_panels(w, tile);
	const g_panel a = g_panel_on(k, 8 * DECODE_PANEL_BYTES);
	const g_panel v = g_panel_on(k, 4 * w->right * DECODE_PANEL_BYTES);
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		const g_panel rows = g_panel_on(v, 2 * i * DECODE_OCTET_BYTES);

		if (w->format.code == DECODE_BF16 && p)
			g_wgmma_bf16_n256_registers(o, p + 4 * i, rows);
		else if (w->format.code == DECODE_BF16)
			g_wgmma_bf16_n256(o, g_panel_step(a, i), rows);
		else if (p)
			g_wgmma_f16_n256_registers(o, p + 4 * i, rows);
		else
			g_wgmma_f16_n256(o, g_panel_step(a, i), rows);
	}
	h->begun = 1;
}

/* ---- Softmax ----------------------------------------------------------- */

/* Sets the scores of rows that are no keys to -inf. */
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

/* With few heads two of four warps have none. They multiply whatever lies
 * behind the queries, so their scores may be anything. Sets these to -inf:
 * otherwise their maximum could rise, and a rescale costs time. No other warp
 * sees them. */
FN void
decode_mask_heads(const PRIVATE decode_worker *w, PRIVATE float *score)
{
	uint32_t i;

	if (w->format.heads == DECODE_HEADS ||
	    !g_ballot(decode_warp() >= w->format.heads / 16))
		return;
	UNROLL
	for (i = 0; i < 32; i++)
		score[i] = G_MINUS_INF;
}

/* Brings O and L to the reference `reach`. Before a token's first product both
 * are 0 at any reference. Two references may be so far apart that f32 does not
 * hold their difference, but half of it. */
FN void
decode_rescale(PRIVATE decode_heads *h, const PRIVATE float *reach,
	       const PRIVATE float *unit)
{
	const uint32_t differs =
		reach[0] != h->reach[0] || reach[1] != h->reach[1];
	float by[2];
	uint32_t i;

	if (g_ballot(h->begun && differs)) {
		UNROLL
		for (i = 0; i < 2; i++) {
			by[i] = reach[i] == h->reach[i]
					? 1.0f
					: g_exp2_flush((0.5f * h->reach[i] -
							0.5f * reach[i]) *
						       (2.0f * unit[i]));
			h->sum[i] *= by[i];
		}
		UNROLL
		for (i = 0; i < 128; i++)
			h->o[i] *= by[i / 2 % 2];
	}
	h->reach[0] = reach[0];
	h->reach[1] = reach[1];
}

/* The largest scores of a tile, of the item's two heads. */
FN void
decode_largest(const PRIVATE float *score, PRIVATE decode_heads *h,
	       PRIVATE float *largest)
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
		h->largest[i] = g_larger(h->largest[i], most);
		largest[i] = most;
	}
}

/* Turns scores of a tile into weights, as fragments of A. `reach` is the tile's
 * largest scores and becomes the reference of the weights, `sums` their sums
 * over the item's keys. */
FN void
decode_weights(decode_format f, const PRIVATE float *score,
	       const PRIVATE decode_heads *h, const PRIVATE float *unit,
	       uint32_t wide, PRIVATE float *reach, PRIVATE float *sums,
	       PRIVATE uint32_t *p)
{
	const float bias = decode_p_bias(f);
	uint32_t i;

	UNROLL
	for (i = 0; i < 2; i++) {
		const float end = -G_LOWEST;
		float most = reach[i];

		/* A wide tile has large values, so its weights are made small:
		 * f32 then holds O of 2^14 values up to 2^115, and f16 holds
		 * the weights that matter. With values beyond 2^117 f32 may
		 * have no such score. The largest score there is must do. */
		if (wide) {
			const float up =
				most + 14.0f / g_float(g_here(g_bits(unit[i])));

			most = most <= end && up > end ? end : up;
		}
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
			g_fma(score[at] - reach[r], unit[r], bias));
		const float high = g_exp2_flush(
			g_fma(score[at + 1] - reach[r], unit[r], bias));

		sums[r] += low + high;
		p[i / 4 * 4 + i / 2 % 2 * 2 + r] =
			f.code == DECODE_BF16 ? g_f32_to_bf16x2(low, high)
					      : g_f32_to_f16x2(low, high);
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

/* Waits for the other warpgroup's P of a tile, and brings O to its reference.
 */
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

/* Fills what decode_free gives back; the debug build alone calls it. Copies of
 * it to the peer must have come. */
FN void
decode_spoil(const PRIVATE decode_worker *w, uint32_t tile, uint32_t m,
	     uint32_t with_p)
{
	LOCAL uint8_t *keys = w->mem->keys[tile];
	uint32_t i;

	if (w->cluster == 2)
		g_mbarrier_wait(decode_received(w->mem, tile), m / 2 & 1u);
	g_named_sync(DECODE_ONE + w->right, 128); /* all are done with it */
	NO_UNROLL
	for (i = 0; i < DECODE_OCTETS; i++) {
		g_spoil(keys + i * DECODE_OCTET_BYTES +
				4 * w->right * DECODE_PANEL_BYTES,
			4 * DECODE_PANEL_BYTES, g_item_again() % 128, 128);
		if (with_p)
			g_spoil(keys + i * DECODE_OCTET_BYTES +
					8 * DECODE_PANEL_BYTES,
				DECODE_PANEL_BYTES, g_item_again() % 128, 128);
	}
	g_fence_async(); /* the next keys may be the peer's copies */
	g_named_sync(DECODE_ONE + w->right, 128);
}

/* Says that this warpgroup needs its half of a tile's values no more. The rest
 * is for the debug build: m is the tile's number, or that of the other tile of
 * its pair; with_p says that nobody needs its P. */
FN void
decode_free(const PRIVATE decode_worker *w, uint32_t tile, uint32_t m,
	    uint32_t with_p)
{
	LOCAL g_mbarrier *free = &w->mem->free[tile][w->right];

	if (G_DEBUG)
		decode_spoil(w, tile, m, with_p);
	if (g_item_again() % 128)
		return;
	g_mbarrier_arrive(free);
	if (w->cluster == 2)
		g_mbarrier_arrive_peer(free);
}

/* ---- Pairs of tiles ---------------------------------------------------- */

/* Frees a tile behind its products, except the last one of a token or split:
 * results pass through its place, and decode_multiply_all frees it. */
FN void
decode_free_multiplied(const PRIVATE decode_worker *w,
		       const PRIVATE decode_pair *pair, uint32_t tile,
		       uint32_t with_p)
{
	if (!pair->ends || tile != (pair->m + pair->count - 1) % 2)
		decode_free(w, tile, pair->m, with_p);
}

/* The factors from scores to log2 units, for the item's two heads. */
FN void
decode_units_of(const PRIVATE decode_worker *w, const PRIVATE decode_heads *h,
		PRIVATE float *unit)
{
	unit[0] = decode_unit_of(w, h, 0);
	unit[1] = decode_unit_of(w, h, 1);
}

/* Bits 0 and 1: whether tiles 0 and 1 have rows that f16 does not hold; bits 2
 * and 3: whether they have rows that are no keys. */
FN uint32_t
decode_odd_tiles(const PRIVATE decode_worker *w)
{
	const uint32_t lane = decode_item_lane();
	LOCAL const decode_note *note = &w->mem->notes[lane / 8 % 2][lane % 8];
	const uint32_t wide = (uint32_t)g_ballot(note->wide);
	const uint32_t partial = (uint32_t)g_ballot(note->keys != 0xffu);

	if (w->format.code == DECODE_BF16)
		return ((partial & 0xffu) != 0) << 2 |
		       ((partial & 0xff00u) != 0) << 3;
	return ((wide & 0xffu) != 0) | ((wide & 0xff00u) != 0) << 1 |
	       ((partial & 0xffu) != 0) << 2 | ((partial & 0xff00u) != 0) << 3;
}

/* Waits for a half of a tile. Rows that this block converted are fenced here,
 * not by the loader: there the fence would also wait for the lane's copies. */
FN void
decode_await_half(const PRIVATE decode_worker *w, uint32_t tile, uint32_t half,
		  uint32_t parity)
{
	g_mbarrier_wait(&w->mem->full[tile][half], parity);
	if (w->cluster == 1)
		g_fence_async();
}

/* Issues the scores of tile m, the worker's own. */
FN void
decode_issue_tile(const PRIVATE decode_worker *w, PRIVATE decode_heads *h,
		  uint32_t m, PRIVATE float *score)
{
	const uint32_t tile = w->right, parity = m / 2 & 1u;

	decode_await_half(w, tile, 0, parity);
	if (decode_rope_in_registers(w->format))
		decode_defer_rope(h);
	g_wgmma_hold_all(score, 32);
	g_wgmma_begin();
	decode_issue_scores(w, tile, 0, score);
	decode_await_half(w, tile, 1, parity);
	if (w->cluster == 2 && g_item_again() % 128 == 0)
		g_mbarrier_arrive_peer(decode_received(w->mem, tile));
	decode_issue_scores(w, tile, 1, score);
	if (w->format.rope_byte)
		decode_issue_rope(w, tile, h->rope, score);
	g_wgmma_commit();
}

/* Turns the scores of the worker's own tile into weights, and gives them on. */
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
			w->a, mem, w->format, w->extra, w->cluster, mem->runs,
			(tile ? pair->last : pair->first), tile,
			decode_first_head(w, decode_run_of(mem->runs,
							   (tile ? pair->last
								 : pair->first))
						     ->bits) +
				decode_warp() * 16,
			h->factors, score);
	if (partial)
		decode_mask(mem->notes[tile], score);
	decode_mask_heads(w, score);
	decode_largest(score, h, reach);
	decode_weights(w->format, score, h, unit, wide, reach, sums, p);
	decode_give_weights(w, pair->m, reach, p);
	decode_rescale(h, reach, unit);
	h->sum[0] += sums[0];
	h->sum[1] += sums[1];
}

/* O += P V of a tile. P of the worker's own tile is in registers. */
FN void
decode_add_values(const PRIVATE decode_worker *w, PRIVATE decode_heads *h,
		  const PRIVATE decode_pair *pair, uint32_t tile, uint32_t wide,
		  const PRIVATE uint32_t *p)
{
	if (UNLIKELY(wide)) {
		decode_wide_values(w->a, w->mem, w->format, w->extra,
				   w->mem->runs,
				   (tile ? pair->last : pair->first), tile,
				   w->cluster, w->right, decode_head(), h->o);
		h->begun = 1;
		return;
	}
	g_wgmma_hold_all(h->o, 128);
	g_wgmma_begin();
	decode_issue_values(w, tile, p, h);
	g_wgmma_commit();
	g_wgmma_wait_but(0);
	g_wgmma_hold_all(h->o, 128);
}

/* If the token ends with this pair, asks for the next token's queries. Nobody
 * needs this token's any more, unless the next run is another split of it. */
FN void
decode_ask_next(const PRIVATE decode_worker *w, const PRIVATE decode_pair *pair)
{
	LOCAL const decode_run *runs = w->mem->runs;

	if (pair->ends) {
		const uint32_t count = decode_run_of(runs, pair->last)->count;
		LOCAL const decode_run *next = decode_run_of(
			runs, decode_next_tile(count, pair->last));

		if (!(next->bits & DECODE_NONE) &&
		    !decode_keeps_queries(w, decode_run_of(runs, pair->last),
					  next))
			decode_ask_queries(w, next);
	}
}

/* The worker's own tile: makes weights for both warpgroups, and multiplies its
 * half of the values. */
FN void
decode_own_tile(const PRIVATE decode_worker *w, const PRIVATE decode_pair *pair,
		PRIVATE decode_heads *h)
{
	const uint32_t tile = w->right;
	uint32_t p[16], odd, wide;
	float score[32];

	decode_issue_tile(w, h, pair->m, score);
	odd = decode_odd_tiles(w) >> tile;
	/* The compiler does not see behind the shift that bf16 rows never are. */
	wide = w->format.code != DECODE_BF16 && odd & 1u;
	g_wgmma_wait_but(0);
	g_wgmma_hold_all(score, 32);
	decode_own_weights(w, h, pair, wide, odd & 4u, score, p);
	decode_add_values(w, h, pair, tile, wide, p);
	decode_free_multiplied(w, pair, tile, 0);
}

/* The other warpgroup's tile, if the pair has it: multiplies this one's half of
 * the values. The left warpgroup also asks for the next queries, since nobody
 * needs these any more. */
FN void
decode_other_tile(const PRIVATE decode_worker *w,
		  const PRIVATE decode_pair *pair, uint32_t is,
		  PRIVATE decode_heads *h)
{
	const uint32_t tile = w->right ^ 1u;
	uint32_t wide = 0;
	float unit[2];

	if (is) {
		decode_units_of(w, h, unit);
		decode_await_weights(w, tile, unit, h);
		wide = w->format.code != DECODE_BF16 &&
		       decode_odd_tiles(w) >> tile & 1u;
	}
	if (!w->right)
		decode_ask_next(w, pair);
	if (is) {
		decode_add_values(w, h, pair, tile, wide, 0);
		/* Of a wide tile both warpgroups read P. */
		decode_free_multiplied(w, pair, tile, !wide);
	}
}

/* One tile after the other. The left warpgroup always does it so. */
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

/* The right warpgroup's pair: the softmax of the odd tile runs beside the
 * product of the even one. The odd tile's largest scores need no reference, so
 * they are found before the even tile's weights arrive. Returns 0, with nothing
 * done, if a tile is missing or f16 does not hold a row. */
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
	if (w->format.code != DECODE_BF16) {
		g_mbarrier_wait(&mem->full[0][0], parity);
		g_mbarrier_wait(&mem->full[1][0], parity);
		if (decode_odd_tiles(w) & 3u)
			return 0;
	}
	decode_issue_tile(w, h, m, score);
	odd = decode_odd_tiles(w);
	/* The scores are done before the other's weights arrive. */
	g_wgmma_wait_but(0);
	g_wgmma_hold_all(score, 32);
	decode_units_of(w, h, unit);
	if (odd & 8u)
		decode_mask(mem->notes[1], score);
	decode_mask_heads(w, score);
	decode_largest(score, h, reach);
	decode_await_weights(w, 0, unit, h);
	g_wgmma_hold_all(h->o, 128);
	g_wgmma_begin();
	decode_issue_values(w, 0, 0, h);
	g_wgmma_commit();
	decode_weights(w->format, score, h, unit, 0, reach, sums, p);
	decode_give_weights(w, m, reach, p);
	g_wgmma_wait_but(0);
	g_wgmma_hold_all(h->o, 128);
	decode_free(w, 0, m, 1);
	decode_rescale(h, reach, unit);
	h->sum[0] += sums[0];
	h->sum[1] += sums[1];
	decode_add_values(w, h, pair, 1, 0, p);
	decode_free_multiplied(w, pair, 1, 0);
	return 1;
}

/* Takes the pair of tiles from tile m on. A warp that has tile m - 1 sees the
 * runs of tiles up to m + 2: the loads came to them before tile m - 1 was given
 * on. Both tiles are most often of one run, which is then read only once. */
FN void
decode_take_pair(LOCAL const decode_run *runs, decode_tile first,
		 PRIVATE decode_pair *pair)
{
	LOCAL const decode_run *run = decode_run_of(runs, first);
	uint32_t bits = run->bits, count = run->count;

	pair->count = 1;
	pair->first = pair->last = first;
	pair->ends = decode_tile_ends(bits, count, first);
	if (pair->m % 2 || pair->ends)
		return;
	pair->count = 2;
	pair->last = decode_next_tile(count, first);
	if (decode_tile_is_last(count, first)) {
		run = decode_run_of(runs, pair->last);
		bits = run->bits;
		count = run->count;
	}
	pair->ends = decode_tile_ends(bits, count, pair->last);
}

/* Begins a token or a split. */
FN void
decode_zero(PRIVATE decode_heads *h)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 128; i++)
		h->o[i] = 0.0f;
	h->begun = 0;
	h->sum[0] = h->sum[1] = 0.0f;
	h->reach[0] = h->reach[1] = G_LOWEST;
	h->largest[0] = h->largest[1] = G_MINUS_INF;
}

/* A warpgroup that multiplies, until there is no work left. */
FN void
decode_multiply_all(const PRIVATE decode_worker *w)
{
	LOCAL decode_memory *mem = w->mem;
	LOCAL const decode_run *runs = mem->runs;
	uint32_t tokens = 0, fresh = 1, factors = 0;
	decode_tile next = 0;
	decode_pair pair;

	pair.m = 0;
	g_named_sync(DECODE_BEGAN, DECODE_BEGAN_THREADS);
	if (!w->right && !(runs->bits & DECODE_NONE))
		decode_ask_queries(w, runs);
	while (!(decode_run_of(runs, next)->bits & DECODE_NONE)) {
		decode_heads h;

		decode_zero(&h);
		h.factors = factors;
		if (decode_rope_in_registers(w->format))
			decode_ask_rope(w, decode_run_of(runs, next), &h);
		tokens += fresh;
		decode_take_queries(w, decode_run_of(runs, next), fresh,
				    (tokens - 1) & 1u, &h);
		factors = h.factors;
		if (decode_rope_in_registers(w->format))
			decode_scale_rope(&h);
		/* Loaders write the runs after the first one before they arrive
		 * here. With bf16 rows that is where they note the rows. */
		if (pair.m == 0)
			g_mbarrier_wait(
				&mem->full[0][w->format.code == DECODE_BF16],
				0);
		do {
			decode_take_pair(runs, next, &pair);
			if (!w->right || !decode_right_pair(w, &pair, &h))
				decode_both_tiles(w, &pair, &h);
			pair.m += pair.count;
			next = decode_next_tile(
				decode_run_of(runs, pair.last)->count,
				pair.last);
		} while (!pair.ends);
		/* Results overwrite what this block copies to its peer. With a
		 * rope part, P's maker has waited for these copies. */
		if (w->cluster == 2 && !w->format.rope_byte)
			g_mbarrier_wait(decode_received(mem, (pair.m - 1) % 2),
					(pair.m - 1) / 2 & 1u);
		decode_write(w, decode_run_of(runs, pair.last),
			     (pair.m - 1) % 2, &h);
		if (w->cluster == 2)
			g_fence_async(); /* the peer's copies come next */
		g_named_sync(DECODE_ONE + w->right, 128);
		decode_free(w, (pair.m - 1) % 2, pair.m - 1, 0);
		fresh = !decode_keeps_queries(w, decode_run_of(runs, pair.last),
					      decode_run_of(runs, next));
		if (!w->format.whole && decode_combines(w->a))
			decode_combine(w, decode_run_of(runs, pair.last),
				       decode_run_of(runs, next)->bits &
					       DECODE_NONE);
	}
}

/* Sets up the barriers and the start of the walk. With bf16 rows each lane of a
 * loader arrives for its copies, and each warp for its notes. */
FN void
decode_begin(const PRIVATE decode_args *a, LOCAL decode_memory *mem,
	     decode_format format, uint32_t cluster)
{
	const uint32_t heads = DECODE_HEADS * cluster;
	const uint32_t units = g_blocks() / cluster;
	const uint32_t rank = cluster == 2 ? g_cluster_rank() : 0;
	const uint32_t lanes =
		format.code == DECODE_BF16 ? DECODE_WARPS * 32 : 0;
	uint32_t i;

	if (g_item() == 0) {
		UNROLL
		for (i = 0; i < 4; i++) {
			g_mbarrier_init(&mem->full[i / 2][i % 2],
					lanes + (lanes && i % 2 == 0
							 ? 0
							 : DECODE_WARPS));
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
		i = 1;
		if (decode_in_turn(format)) {
			i = decode_walk_chunk(
				a, (a->s.heads + heads - 1) / heads, units);
			*decode_chunk_of(mem, rank) = i;
		}
		decode_walk_start(&mem->walk, mem->runs,
				  g_block() / cluster * i);
	}
	if (cluster == 2)
		g_cluster_sync();
	else
		BARRIER();
}

FN void
decode_run_loader(const PRIVATE decode_args *a, LOCAL decode_memory *mem,
		  decode_format format, decode_format extra, uint32_t cluster)
{
	const uint32_t warp = g_broadcast(g_item() / 32 % 4, 0);
	decode_loader l;

	l.a = a;
	l.mem = mem;
	l.format = format;
	l.extra = extra;
	l.cluster = cluster;
	l.rank = cluster == 2 ? g_cluster_rank() : 0;
	l.warp = warp;
	l.lane = g_lane();
	if (format.code == DECODE_BF16) {
		decode_copy_all(&l);
		return;
	}
	l.ring =
		decode_ring(mem, format, warp) + decode_lane_bytes(&l) * l.lane;
	l.store = decode_store_at(l.lane);
	l.scales = decode_scale_at(&l, format, l.lane / 8);
	l.extra_scales = decode_scale_at(&l, extra, l.lane / 8);
	decode_load_all(&l);
}

FN void
decode_run_worker(const PRIVATE decode_args *a, LOCAL decode_memory *mem,
		  decode_format format, decode_format extra, uint32_t cluster,
		  uint32_t right)
{
	decode_worker w;

	w.a = a;
	w.mem = mem;
	w.format = format;
	w.extra = extra;
	w.cluster = cluster;
	w.right = right;
	decode_multiply_all(&w);
}

/* The body of a kernel: the formats of its first and second list, the blocks of
 * a cluster, and the registers of a lane that multiplies and of one that loads.
 */
#define DECODE_WGMMA_RUN_LISTS(rows, extra, blocks, up, down)                \
	do {                                                                 \
		LOCAL_DYNAMIC(local, DECODE_WGMMA_BYTES);                    \
		const decode_args a = {                                      \
			SPMLA_K_DECODE(SPMLA_I_K_NAME, SPMLA_I_K_NONE) s};   \
		LOCAL decode_memory *mem = (LOCAL decode_memory *)local;     \
		const uint32_t group = g_broadcast(g_item() / 128, 0);       \
                                                                             \
		G_DEBUG_BEGIN(fault_state, fault_status);                    \
		decode_begin(&a, mem, rows, blocks);                         \
		if (group == 2) {                                            \
			G_REGISTERS_DOWN(down);                              \
			decode_run_loader(&a, mem, rows, extra, blocks);     \
		}                                                            \
		/* Not "else": then the loader's code would lie last. */     \
		if (g_here(group) != 2) {                                    \
			G_REGISTERS_UP(up);                                  \
			decode_run_worker(&a, mem, rows, extra, blocks,      \
					  group);                            \
		}                                                            \
		/* The peer may still copy to this block, or arrive here. */ \
		if (blocks == 2)                                             \
			g_cluster_sync();                                    \
	} while (0)

/* The same with one format. */
#define DECODE_WGMMA_RUN(rows, blocks, up, down) \
	DECODE_WGMMA_RUN_LISTS(rows, rows, blocks, up, down)

#endif
#endif
