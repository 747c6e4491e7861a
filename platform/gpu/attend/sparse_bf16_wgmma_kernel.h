/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode and sparse_prefill of bf16 rows by warpgroups' matrix
 * instructions: a block has 64 heads of a token and walks its keys, 64 at a
 * time. Keys are copied into panels and serve there as K and, transposed, as V.
 * For Q K^T each of two warpgroups sums over half of the dims, and then has 32
 * keys; for P V it has half of the columns. Two sets of panels let one be
 * filled while P V of the other runs. As products are issued no faster than
 * they run, the search for the next rows stands between them.
 *
 * The hard idea: weights are rounded to bf16 against the largest score of their
 * own 64 keys, as the contract says, and yet O needs no second accumulator. O
 * and L are kept relative to the last block's largest score, not to the largest
 * so far; where that could overflow, as the block is 2^60 below the largest,
 * its weights are relative to the largest too, and add nothing that could be
 * seen.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_BF16_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_BF16_WGMMA_KERNEL_H

#include "spmla/platform/gpu/attend/decode_work_device.h"
#include "spmla/platform/gpu/dialect/wgmma.h"

#define SPMLA_K_sparse_bf16_wgmma(P, S)     SPMLA_K_DECODE(P, S)
#define SPMLA_K_sparse_bf16_wgmma_512(P, S) SPMLA_K_DECODE(P, S)
typedef decode_scalars spmla_k_sparse_bf16_wgmma_scalars;
typedef decode_scalars spmla_k_sparse_bf16_wgmma_512_scalars;

enum {
	BF16_WGMMA_ITEMS = 256,
	BF16_WGMMA_PANELS = 9, /* of a query or a key, or 8 */
	/* 16-bit values of 64 rows. */
	BF16_WGMMA_SET = BF16_WGMMA_PANELS * 64 * 64,
	/* Shared memory in bytes. The queries of 64 heads lie at 0. */
	/* keys: two sets of 64 */
	BF16_WGMMA_K_AT = 2 * BF16_WGMMA_SET,
	/* weights: 16 bits for each of 64 heads and 64 keys */
	BF16_WGMMA_P_AT = BF16_WGMMA_K_AT + 2 * 2 * BF16_WGMMA_SET,
	/* which keys count: two sets of 8 words, one a warp, a bit a key */
	BF16_WGMMA_COUNTS_AT = BF16_WGMMA_P_AT + 2 * 64 * 64,
	/* the largest scores: two warpgroups, 64 heads, f32 */
	BF16_WGMMA_MAX_AT = BF16_WGMMA_COUNTS_AT + 2 * 4 * 8,
	/* the notes of the piece: DECODE_NOTES words */
	BF16_WGMMA_NOTES_AT = BF16_WGMMA_MAX_AT + 2 * 4 * DECODE_HEADS,
	BF16_WGMMA_BYTES = BF16_WGMMA_NOTES_AT + 4 * DECODE_NOTES
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* A token's keys. */
typedef struct bf16_wgmma_list {
	GLOBAL const int32_t *slots;
	GLOBAL const uint8_t *cache;
	uint64_t page_stride;
	spmla_g_divisor page;
	uint32_t pages, len;
} bf16_wgmma_list;

/* What a lane knows of the next 8 rows of its warp: where row lane % 8 is. */
typedef struct bf16_wgmma_rows {
	uint32_t counts; /* bit r: row r is a key */
	uint32_t bad;    /* row lane % 8 is no key, but should be one */
	GLOBAL const uint8_t *row;
	int32_t slot; /* of row lane % 8 of the 64 rows behind these */
	uint32_t end; /* blocks that there are slots of */
} bf16_wgmma_rows;

/* The accumulators of an item: of heads 16 w + g and 8 more the columns of its
 * warpgroup's half. */
typedef struct bf16_wgmma_state {
	float o[128];
	float sum[2];     /* of p over the item's own keys */
	float reach[2];   /* the score that O is relative to */
	float largest[2]; /* score so far, unscaled */
} bf16_wgmma_state;

/* A token's list, of which it has that many entries. */
FN bf16_wgmma_list
bf16_wgmma_list_of(GLOBAL const int32_t *slots, GLOBAL const int32_t *topk_lens,
		   GLOBAL const uint8_t *cache, const PRIVATE decode_scalars *s,
		   uint32_t t, uint32_t len)
{
	bf16_wgmma_list list;

	list.slots =
		slots + decode_list_of(topk_lens, s->list_form, s->lens_tokens,
				       s->slots_stride, s->topk, t)
				.first;
	list.cache = cache;
	list.page_stride = s->page_stride_bytes;
	list.page = s->page;
	list.pages = s->pages;
	list.len = len;
	return list;
}

/* Asks for the slots of a block. */
FN void
bf16_wgmma_slots(PRIVATE bf16_wgmma_rows *to,
		 const PRIVATE bf16_wgmma_list *list, uint32_t block)
{
	const uint32_t row = g_item() / 32 * 8 + g_lane() % 8;

	to->slot = -1;
	if (block < to->end && block * DECODE_BLOCK + row < list->len)
		to->slot = list->slots[block * DECODE_BLOCK + row];
}

/* Finds the rows of a block, of so many panels, whose slots are there, and asks
 * for the slots of the one behind it; past the end there are no rows. */
FN void
bf16_wgmma_next(PRIVATE bf16_wgmma_rows *to,
		const PRIVATE bf16_wgmma_list *list, uint32_t panels,
		uint32_t block)
{
	const int32_t slot = to->slot;
	const uint32_t page = g_divide((uint32_t)slot, list->page);
	const uint32_t in_page = (uint32_t)slot - page * list->page.by;
	const uint32_t counts = slot >= 0 && page < list->pages;

	to->bad = slot != -1 && !counts;
	to->counts = (uint32_t)g_ballot(counts) & 0xffu;
	to->row = list->cache + (counts ? page * list->page_stride : 0) +
		  in_page * panels * 2 * G_PANEL;
	bf16_wgmma_slots(to, list, block + 1);
}

/* The address of the subgroup's row r. */
FN GLOBAL const uint8_t *
bf16_wgmma_row(const PRIVATE bf16_wgmma_rows *from, uint32_t r)
{
	const uint64_t at = (uint64_t)from->row;

	return (GLOBAL const uint8_t *)((uint64_t)g_broadcast(
						(uint32_t)(at >> 32), r)
						<< 32 |
					g_broadcast((uint32_t)at, r));
}

/* Copies bf16 rows of so many panels into them, which g_local_copies_wait waits
 * for; rows that are no keys become zeros. */
FN void
bf16_wgmma_copy(const PRIVATE bf16_wgmma_rows *from, uint32_t panels,
		LOCAL uint16_t *keys, LOCAL uint32_t *counts)
{
	const uint32_t lane = g_lane(), first = g_item() / 32 * 8;
	uint32_t r, i;

	if (lane == 0)
		counts[g_item() / 32] = from->counts;
	UNROLL
	for (r = 0; r < 8; r++) {
		GLOBAL const uint8_t *row = bf16_wgmma_row(from, r);
		const uint32_t is = from->counts >> r & 1u;

		UNROLL
		for (i = 0; i < 3; i++) {
			const uint32_t piece = 32 * i + lane;

			if (piece < panels * 8)
				g_local_copy128(
					keys + piece / 8 * 64 * G_PANEL +
						g_panel_at(first + r,
							   piece % 8 * 8),
					row + 16 * piece, is);
		}
	}
}

/* The queries of 64 heads into panels; heads that are not there are zeros. */
FN void
bf16_wgmma_load_q(GLOBAL const uint16_t *q, int64_t head_stride, uint32_t heads,
		  uint32_t panels, LOCAL uint16_t *to)
{
	const uint32_t aligned =
		((uint64_t)q & 15u) == 0 && (head_stride & 7) == 0;
	uint32_t x[5][4], piece, i, e;

	/* Five pieces of 8 values in flight an item. */
	UNROLL
	for (piece = g_item(); piece < DECODE_HEADS * panels * 8;
	     piece += 5 * BF16_WGMMA_ITEMS) {
		UNROLL
		for (i = 0; i < 5; i++) {
			const uint32_t at = piece + i * BF16_WGMMA_ITEMS;
			const uint32_t h = at / (panels * 8);
			GLOBAL const uint16_t *from = q +
						      (int64_t)h * head_stride +
						      at % (panels * 8) * 8;
			const uint32_t is =
				at < DECODE_HEADS * panels * 8 && h < heads;

			g_load128_if(is && aligned, from, x[i]);
			if (is && !aligned) {
				UNROLL
				for (e = 0; e < 4; e++)
					x[i][e] = from[2 * e] |
						  (uint32_t)from[2 * e + 1]
							  << 16;
			}
		}
		UNROLL
		for (i = 0; i < 5; i++) {
			const uint32_t at = piece + i * BF16_WGMMA_ITEMS;
			const uint32_t h = at / (panels * 8);
			const uint32_t d = at % (panels * 8) * 8;

			if (at < DECODE_HEADS * panels * 8)
				g_local_store128(to + d / 64 * 64 * G_PANEL +
							 g_panel_at(h, d % 64),
						 x[i]);
		}
	}
}

/* Sums over half of the dims of 64 keys to scores of the warpgroup's 32 keys;
 * the other's sums come through `sums`. */
FN void
bf16_wgmma_scores(const PRIVATE float *sum, LOCAL uint32_t *sums,
		  PRIVATE float *score)
{
	const uint32_t half_of = g_item() / 128;
	uint32_t x[4], i, j;

	sums += g_item() % 128 * 4;
	UNROLL
	for (i = 0; i < 4; i++) {
		UNROLL
		for (j = 0; j < 4; j++) {
			const float low = sum[4 * i + j];
			const float high = sum[16 + 4 * i + j];

			score[4 * i + j] = half_of ? high : low;
			x[j] = g_bits(half_of ? low : high);
		}
		g_local_store128(sums + (4 * (half_of ^ 1u) + i) * 512, x);
	}
	BARRIER();
	UNROLL
	for (i = 0; i < 4; i++) {
		g_local_load128(sums + (4 * half_of + i) * 512, x);
		UNROLL
		for (j = 0; j < 4; j++)
			score[4 * i + j] += g_float(x[j]);
	}
}

/* Makes weights of the scores of the warpgroup's 32 keys: finds the largest of
 * each head, makes O and L relative to it, and gives the fragments of P of all
 * 64 keys; the other warpgroup's come through `p`. `c` brings scores to log2.
 */
FN void
bf16_wgmma_weights(PRIVATE float *score, LOCAL const uint32_t *counts,
		   LOCAL float *most, LOCAL uint32_t *p, float c,
		   PRIVATE bf16_wgmma_state *st, uint32_t a[4][4])
{
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	const uint32_t half_of = g_item() / 128;
	const uint32_t head = g_item() / 32 % 4 * 16 + g;
	const float none = G_MINUS_INF;
	float high[2], factor[2];
	uint32_t i, r, own[8], other[8], keys[4];

	g_local_load128(counts + 4 * half_of, keys);
	if ((keys[0] & keys[1] & keys[2] & keys[3]) != 0xffu) {
		UNROLL
		for (i = 0; i < 16; i++)
			if (!(keys[i / 4] >> (2 * t + i % 2) & 1u))
				score[i] = none;
	}
	high[0] = high[1] = none;
	UNROLL
	for (i = 0; i < 16; i++)
		high[i / 2 % 2] = g_larger(high[i / 2 % 2], score[i]);
	UNROLL
	for (r = 0; r < 2; r++) {
		high[r] = g_larger(high[r], g_shuffle_xor_f(high[r], 1));
		high[r] = g_larger(high[r], g_shuffle_xor_f(high[r], 2));
		if (t == 0)
			most[half_of * DECODE_HEADS + head + 8 * r] = high[r];
	}
	BARRIER();
	UNROLL
	for (r = 0; r < 2; r++) {
		float mine, base;

		mine = g_larger(most[head + 8 * r],
				most[DECODE_HEADS + head + 8 * r]);
		st->largest[r] = g_larger(st->largest[r], mine);
		base = mine;
		if ((st->largest[r] - mine) * c > DECODE_O_REACH)
			base = st->largest[r];
		/* Only -inf: every weight is exp2(-inf), nothing moves. */
		if (mine == none)
			base = st->reach[r];
		factor[r] = st->reach[r] == base
				    ? 1.0f
				    : g_exp2((st->reach[r] - base) * c);
		if (base == none)
			factor[r] = 1.0f;
		high[r] = base == none ? 0.0f : base;
		st->reach[r] = base;
		st->sum[r] *= factor[r];
	}
	UNROLL
	for (i = 0; i < 16; i += 2) {
		const float base = high[i / 2 % 2];
		const float low = g_exp2_flush((score[i] - base) * c);
		const float up = g_exp2_flush((score[i + 1] - base) * c);

		st->sum[i / 2 % 2] += low + up;
		own[i / 2] = g_f32_to_bf16x2(low, up);
	}
	p += g_item() % 128 * 4;
	g_local_store128(p + half_of * 1024, own);
	g_local_store128(p + half_of * 1024 + 512, own + 4);
	UNROLL
	for (i = 0; i < 128; i++)
		st->o[i] *= factor[i / 2 % 2];
	BARRIER();
	g_local_load128(p + (half_of ^ 1u) * 1024, other);
	g_local_load128(p + (half_of ^ 1u) * 1024 + 512, other + 4);
	UNROLL
	for (i = 0; i < 8; i++) {
		a[i / 4][i % 4] = half_of ? other[i] : own[i];
		a[2 + i / 4][i % 4] = half_of ? own[i] : other[i];
	}
}

/* The results of a token or a split. */
FN void
bf16_wgmma_write(const PRIVATE bf16_wgmma_state *st,
		 const PRIVATE decode_scalars *s, GLOBAL const float *attn_sink,
		 GLOBAL uint16_t *out, GLOBAL float *lse,
		 GLOBAL float *max_logits, GLOBAL float *split_out,
		 GLOBAL float *split_lse, LOCAL float *sums, uint32_t row,
		 uint32_t t, uint32_t first_head)
{
	const uint32_t g = g_lane() / 4, lane_t = g_lane() % 4;
	const uint32_t whole = row == DECODE_WHOLE;
	const int64_t out_at = decode_token_at(
		t, s->next_n, s->out_request_stride, s->out_token_stride);
	const int64_t lse_at = decode_token_at(
		t, s->next_n, s->lse_request_stride, s->lse_token_stride);
	const uint32_t half_of = g_item() / 128;
	const uint32_t local_head = g_item() / 32 % 4 * 16 + g;
	const uint32_t pairs = ((uint64_t)out & 3u) == 0 &&
			       ((s->out_request_stride | s->out_token_stride |
				 s->out_head_stride) &
				1) == 0;
	const float none = G_MINUS_INF;
	const float c = s->scale * 1.44269504088896341f;
	const float unit = s->base2 ? 1.0f : 0.693147180559945309f;
	uint32_t r, i;

	UNROLL
	for (r = 0; r < 2; r++) {
		float sum = st->sum[r];

		sum += g_shuffle_xor_f(sum, 1);
		sum += g_shuffle_xor_f(sum, 2);
		if (lane_t == 0)
			sums[half_of * DECODE_HEADS + local_head + 8 * r] = sum;
	}
	BARRIER();
	UNROLL
	for (r = 0; r < 2; r++) {
		const uint32_t head = first_head + local_head + 8 * r;
		const float sum = sums[local_head + 8 * r] +
				  sums[DECODE_HEADS + local_head + 8 * r];
		const uint32_t is_empty = sum == 0.0f;
		const float lse2 =
			is_empty ? none : st->reach[r] * c + g_log2(sum);
		float total = sum, factor;

		if (head >= s->heads)
			continue;
		if (whole && s->has_sink && !is_empty)
			total += g_sink_weight(attn_sink[head],
					       st->reach[r] * c);
		factor = is_empty ? 0.0f : g_div_rn(1.0f, total);
		UNROLL
		for (i = 0; i < 32; i++) {
			const uint32_t column =
				256 * half_of + 8 * i + 2 * lane_t;
			const float a = st->o[4 * i + 2 * r];
			const float b = st->o[4 * i + 2 * r + 1];
			const float x = is_empty ? 0.0f : a * factor;
			const float y = is_empty ? 0.0f : b * factor;

			if (whole) {
				GLOBAL uint16_t *to =
					out + out_at +
					(int64_t)head * s->out_head_stride +
					column;
				const uint32_t both = g_f32_to_bf16x2(x, y);

				if (pairs) {
					*(GLOBAL uint32_t *)to = both;
				} else {
					to[0] = (uint16_t)both;
					to[1] = (uint16_t)(both >> 16);
				}
			} else {
				GLOBAL float *to = split_out +
						   ((uint64_t)row * s->heads +
						    head) * SPMLA_MLA_LATENT +
						   column;

				to[0] = x;
				to[1] = y;
			}
		}
		if (half_of || lane_t)
			continue;
		if (!whole)
			split_lse[(uint64_t)row * s->heads + head] = lse2;
		else if (s->has_lse)
			lse[lse_at + (int64_t)head * s->lse_head_stride] =
				decode_result_lse(is_empty, lse2, s->empty_lse,
						  unit, s->lse_sink,
						  s->lse_sink ? attn_sink[head]
							      : 0.0f);
		if (s->has_max_logits)
			max_logits[lse_at +
				   (int64_t)head * s->lse_head_stride] =
				is_empty ? none : st->largest[r] * c * unit;
	}
	BARRIER(); /* nobody reads the sums */
}

/* Both kernels; `panels`, of a row, are a constant of each. `s` is a->s: read
 * there, it costs spills. */
FN void
bf16_wgmma_run(const PRIVATE decode_args *a, const PRIVATE decode_scalars *s,
	       LOCAL uint8_t *local, uint32_t panels)
{
	LOCAL uint16_t *q_local = (LOCAL uint16_t *)local;
	LOCAL uint16_t *keys = (LOCAL uint16_t *)(local + BF16_WGMMA_K_AT);
	LOCAL uint32_t *p = (LOCAL uint32_t *)(local + BF16_WGMMA_P_AT);
	LOCAL uint32_t *counts =
		(LOCAL uint32_t *)(local + BF16_WGMMA_COUNTS_AT);
	LOCAL float *most = (LOCAL float *)(local + BF16_WGMMA_MAX_AT);
	const uint32_t half_of = g_broadcast(g_item() / 128, 0);
	const g_panel q_panels =
		g_panel_of(q_local, G_GROUP_BYTES, G_PANEL_BYTES);
	const g_panel k_panels = g_panel_of(keys, G_GROUP_BYTES, G_PANEL_BYTES);
	const g_panel q_own = g_panel_on(q_panels, half_of * 4 * G_PANEL_BYTES);
	const g_panel q_last = g_panel_step(
		g_panel_on(q_panels, 8 * G_PANEL_BYTES), 2 * half_of);
	const uint32_t groups = (s->heads + DECODE_HEADS - 1) / DECODE_HEADS;
	const float c = s->scale * 1.44269504088896341f;
	const float none = G_MINUS_INF;
	LOCAL int32_t *notes = (LOCAL int32_t *)(local + BF16_WGMMA_NOTES_AT);
	const uint64_t works =
		(uint64_t)(s->parts ? s->parts : s->tokens) * groups;
	uint64_t work;

	for (work = g_block(); work < works; work += g_blocks()) {
		const uint32_t first_head =
			(uint32_t)(work % groups) * DECODE_HEADS;
		const uint32_t heads = s->heads - first_head;
		const uint32_t reports = first_head == 0;
		uint32_t t;

		decode_take(a->fault_state, a->fault_status, reports,
			    a->tile_scheduler_metadata, s->parts,
			    (uint32_t)(work / groups), s->tokens, notes);
		for (t = (uint32_t)notes[DECODE_FIRST];
		     (int32_t)t <= notes[DECODE_LAST]; t++) {
			const decode_list own = decode_list_of(
				a->topk_lens, s->list_form, s->lens_tokens,
				s->slots_stride, s->topk, t);
			bf16_wgmma_list list =
				bf16_wgmma_list_of(a->slots, a->topk_lens,
						   a->cache, s, t, own.len);
			bf16_wgmma_state st;
			bf16_wgmma_rows next;
			decode_range range;
			int32_t block;
			uint32_t i, k;

			range = decode_blocks_of(
				a->fault_state, a->fault_status, reports, notes,
				a->num_splits, s->parts, s->split_rows, t,
				(int32_t)decode_blocks(own.len, 1), own.faults);
			/* The same in all lanes, and now the compiler knows. */
			range.begin =
				(int32_t)g_broadcast((uint32_t)range.begin, 0);
			range.end =
				(int32_t)g_broadcast((uint32_t)range.end, 0);
			if (range.end < 0)
				continue;
			UNROLL
			for (i = 0; i < 2; i++) {
				st.sum[i] = 0.0f;
				st.reach[i] = none;
				st.largest[i] = none;
			}
			/* For the loop, which has no registers for them. */
			if (g_item() == 0)
				notes[DECODE_LEN] = (int32_t)own.len;
			next.end = (uint32_t)range.end;
			bf16_wgmma_slots(&next, &list, (uint32_t)range.begin);
			bf16_wgmma_next(&next, &list, panels,
					(uint32_t)range.begin);
			bf16_wgmma_copy(&next, panels, keys, counts);
			bf16_wgmma_load_q(
				a->q +
					decode_token_at(t, s->next_n,
							s->q_request_stride,
							s->q_token_stride) +
					(int64_t)first_head * s->q_head_stride,
				s->q_head_stride, heads, panels, q_local);
			g_local_copies_wait();
			UNROLL
			for (i = 0; i < 128; i++)
				st.o[i] = 0.0f;
			g_fence_async();
			BARRIER();
			for (block = range.begin; block < range.end; block++) {
				const uint32_t set =
					(uint32_t)(block - range.begin) & 1u;
				const uint32_t more = block + 1 < range.end;
				const g_panel now = g_panel_on(
					k_panels, set * 2 * BF16_WGMMA_SET);
				const g_panel k_own = g_panel_on(
					now, half_of * 4 * G_PANEL_BYTES);
				const g_panel k_last = g_panel_step(
					g_panel_on(now, 8 * G_PANEL_BYTES),
					2 * half_of);
				LOCAL uint16_t *other =
					keys + (set ^ 1u) * BF16_WGMMA_SET;
				float sum[32], score[16];
				uint32_t weights[4][4];

				/* The rows that are in panels now. */
				if (next.bad && g_lane() < 8 && reports &&
				    !s->quiet)
					g_fault(a->fault_state, a->fault_status,
						t, G_FAULT_INDEX);
				UNROLL
				for (k = 0; k < 32; k++) {
					sum[k] = 0.0f;
					g_wgmma_hold(sum + k);
				}
				g_wgmma_begin();
				UNROLL
				for (k = 0; k < 2 * panels; k++) {
					/* 16 dims: of four panels each, and
					 * of a ninth half each. */
					const uint32_t at =
						k < 16 ? k / 4 * G_PANEL_BYTES
						       : 0;

					g_wgmma_bf16_n64(
						sum,
						g_panel_step(
							g_panel_on(
								k < 16 ? q_own
								       : q_last,
								at),
							k % 4),
						g_panel_step(
							g_panel_on(
								k < 16 ? k_own
								       : k_last,
								at),
							k % 4));
					if (k == 2) {
						list = bf16_wgmma_list_of(
							a->slots, a->topk_lens,
							a->cache, s, t,
							g_broadcast(
								(uint32_t)notes
									[DECODE_LEN],
								0));
						bf16_wgmma_next(
							&next, &list, panels,
							(uint32_t)block + 1);
					}
				}
				g_wgmma_commit();
				g_wgmma_wait();
				UNROLL
				for (k = 0; k < 32; k++)
					g_wgmma_hold(sum + k);
				bf16_wgmma_scores(sum, (LOCAL uint32_t *)other,
						  score);
				BARRIER(); /* the sums are read */
				if (more)
					bf16_wgmma_copy(&next, panels, other,
							counts +
								(set ^ 1u) * 8);
				bf16_wgmma_weights(score, counts + set * 8,
						   most, p, c, &st, weights);
				UNROLL
				for (k = 0; k < 128; k++)
					g_wgmma_hold(st.o + k);
				UNROLL
				for (k = 0; k < 16; k++)
					g_wgmma_defer(weights[k / 4] + k % 4);
				g_wgmma_begin();
				UNROLL
				for (k = 0; k < 4; k++) {
					g_wgmma_bf16_n256_registers(
						st.o, weights[k],
						g_panel_on(
							k_own,
							2 * k * G_GROUP_BYTES));
				}
				g_wgmma_commit();
				if (more)
					g_local_copies_wait();
				if (more)
					g_fence_async();
				g_wgmma_wait();
				UNROLL
				for (k = 0; k < 128; k++)
					g_wgmma_hold(st.o + k);
				BARRIER();
			}
			{
				const uint32_t row =
					decode_noted_range(notes, a->num_splits,
							   s->parts,
							   s->split_rows, t, 0)
						.row;

				bf16_wgmma_write(&st, s, a->attn_sink, a->out,
						 a->lse, a->max_logits,
						 a->split_out, a->split_lse,
						 most, row, t, first_head);
			}
		}
	}
}

#define BF16_WGMMA_RUN(panels)                                             \
	do {                                                               \
		LOCAL_DYNAMIC(local, BF16_WGMMA_BYTES);                    \
		const decode_args a = {                                    \
			SPMLA_K_DECODE(SPMLA_I_K_NAME, SPMLA_I_K_NONE) s}; \
                                                                           \
		bf16_wgmma_run(&a, &s, local, panels);                     \
	} while (0)

SPMLA_KERNEL(sparse_bf16_wgmma)
void
spmla_k_sparse_bf16_wgmma(SPMLA_KERNEL_ARGS(sparse_bf16_wgmma))
{
	BF16_WGMMA_RUN(9);
}

SPMLA_KERNEL(sparse_bf16_wgmma_512)
void
spmla_k_sparse_bf16_wgmma_512(SPMLA_KERNEL_ARGS(sparse_bf16_wgmma_512))
{
	BF16_WGMMA_RUN(8);
}

#undef BF16_WGMMA_RUN
#endif
#endif
