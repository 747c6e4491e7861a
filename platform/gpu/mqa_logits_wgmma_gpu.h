/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits by a warpgroup's matrix instructions, for up to 64 heads: 64 keys
 * at a time, which go from the cache to fragments without local memory; the
 * queries of one or two tokens of a row, as f16, are panels there. The hard idea
 * is the order of the 128 dims: it is free as long as both sides keep it, and so
 * a lane's 16 bytes of a key are its values of four k steps. e4m3 is exact in
 * f16 and so are the products; only the sums round.
 */
#ifndef SPMLA_PLATFORM_GPU_MQA_LOGITS_WGMMA_H
#define SPMLA_PLATFORM_GPU_MQA_LOGITS_WGMMA_H

#include "spmla/platform/gpu/mqa_logits_gpu.h"
#include "spmla/platform/gpu/wgmma_gpu.h"

#define SPMLA_K_mqa_logits_wgmma(P, S) SPMLA_K_mqa_logits(P, S)
SPMLA_KERNEL_SCALARS(mqa_logits_wgmma)

enum {
	MQA_WGMMA_ITEMS = 128,
	MQA_WGMMA_HEADS = 64,
	MQA_WGMMA_TOKENS = 2048, /* the most that a launch takes */
	MQA_WGMMA_PAIR = 2,      /* tokens that share keys */
	/* 16-bit values of a token's queries: two panels. */
	MQA_WGMMA_Q = MQA_WGMMA_HEADS * SPMLA_INDEX_DIM,
	/* Local memory in bytes: queries, weights, ends of units, sums. */
	MQA_WGMMA_W_AT = MQA_WGMMA_PAIR * 2 * MQA_WGMMA_Q,
	MQA_WGMMA_ENDS_AT =
		MQA_WGMMA_W_AT + MQA_WGMMA_PAIR * 4 * MQA_WGMMA_HEADS,
	MQA_WGMMA_SUMS_AT = MQA_WGMMA_ENDS_AT + 8 * MQA_WGMMA_TOKENS,
	MQA_WGMMA_BYTES = MQA_WGMMA_SUMS_AT + 8 * 64
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum { MQA_WGMMA_UNIT = 64 }; /* keys */

/* Keys of a token; 0 and *fault where its row or its logits are outside. */
FN uint32_t
mqa_wgmma_len(GLOBAL const int32_t *token_row,
	      GLOBAL const int32_t *context_lens,
	      GLOBAL const int64_t *row_starts,
	      const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s, uint32_t t,
	      PRIVATE uint32_t *fault)
{
	const int32_t len = context_lens[t];
	const uint32_t row = (uint32_t)token_row[t];
	const int64_t start = row_starts[t];

	*fault = 0;
	if (len <= 0)
		return 0;
	if (row >= s->rows)
		*fault = G_FAULT_ROW;
	else if (start < 0 || (uint64_t)start > s->logits_elems ||
		 (uint64_t)len > s->logits_elems - (uint64_t)start)
		*fault = G_FAULT_LOGITS;
	return *fault ? 0 : (uint32_t)len;
}

/* The line of units of all tokens: those up to and with token t to ends[t];
 * returns how many there are. Of two tokens 2 i and 2 i + 1 of one row the
 * first has the units of both. */
FN uint64_t
mqa_wgmma_line(GLOBAL spmla_g_state *fault_state,
	       GLOBAL spmla_g_status *fault_status,
	       GLOBAL const int32_t *token_row,
	       GLOBAL const int32_t *context_lens,
	       GLOBAL const int64_t *row_starts,
	       const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s,
	       LOCAL uint64_t *ends, LOCAL uint64_t *sums)
{
	uint64_t total = 0;
	uint32_t first;

	for (first = 0; first < s->tokens; first += MQA_WGMMA_ITEMS) {
		const uint32_t t = first + g_item();
		uint32_t units = 0;
		uint64_t here, all;

		if (t < s->tokens) {
			const uint32_t twin = t ^ 1u;
			uint32_t fault, ignored, other = 0;
			uint32_t len = mqa_wgmma_len(token_row, context_lens,
						     row_starts, s, t, &fault);

			if (fault && g_block() == 0)
				g_fault(fault_state, fault_status,
					fault == G_FAULT_ROW
						? s->first_token + t
						: (uint32_t)token_row[t],
					fault);
			if (twin < s->tokens && token_row[twin] == token_row[t])
				other = mqa_wgmma_len(token_row, context_lens,
						      row_starts, s, twin,
						      &ignored);
			if (other && len && (t & 1u))
				len = 0;
			else if (len && other > len)
				len = other;
			units = len / MQA_WGMMA_UNIT +
				(len % MQA_WGMMA_UNIT != 0);
		}
		here = g_scan_sum(units, MQA_WGMMA_ITEMS, sums, &all) + units;
		if (t < s->tokens)
			ends[t] = total + here;
		total += all;
	}
	BARRIER();
	return total;
}

/* What a lane has of 64 keys: of keys 16 w + g and 8 more, of subgroup w, bytes
 * 16 t .. 16 t + 15 and 64 more; if t < 2, the scale of key 16 w + g + 8 t, which
 * it writes; and the pages of the two keys of these and of the next 64. */
typedef struct mqa_wgmma_keys {
	uint32_t raw[16];
	float scale;
	int32_t page[2], next[2];
} mqa_wgmma_keys;

/* A request's pages: where they stand and how many there are. */
typedef struct mqa_wgmma_table {
	GLOBAL const int32_t *pages;
	uint32_t columns;
} mqa_wgmma_table;

/* The pages of the two keys of the 64 from `first` on. */
FN void
mqa_wgmma_pages(const PRIVATE mqa_wgmma_table *table,
		const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s,
		uint32_t first, uint32_t stop, PRIVATE int32_t *page)
{
	const uint32_t key = first + g_item() / 32 * 16 + g_lane() / 4;
	uint32_t i;

	UNROLL
	for (i = 0; i < 2; i++) {
		const uint32_t column = (key + 8 * i) / s->page_tokens;

		page[i] = -1;
		if (key + 8 * i < stop && column < table->columns)
			page[i] = table->pages[column];
	}
}

/* Asks for the 64 keys from `first` on, of pages `next`, and for the pages of
 * those behind. */
FN void
mqa_wgmma_fetch(PRIVATE mqa_wgmma_keys *keys,
		const PRIVATE mqa_wgmma_table *table,
		const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s,
		GLOBAL const uint8_t *cache, uint32_t first, uint32_t stop)
{
	const uint32_t t = g_lane() % 4;
	const uint32_t key = first + g_item() / 32 * 16 + g_lane() / 4;
	uint32_t i, j;

	keys->scale = 0.0f;
	UNROLL
	for (i = 0; i < 2; i++) {
		const uint32_t entry = (key + 8 * i) % s->page_tokens;
		const int32_t page = keys->next[i];

		keys->page[i] = page;
		if (page >= 0 && (uint32_t)page < s->pool_pages) {
			GLOBAL const uint8_t *at =
				cache + (uint64_t)page * s->page_stride_bytes;
			GLOBAL const uint8_t *codes =
				at + entry * SPMLA_INDEX_DIM + 16 * t;

			g_load128(codes, keys->raw + 8 * i);
			g_load128(codes + 64, keys->raw + 8 * i + 4);
			if (i == t)
				keys->scale =
					((GLOBAL const float
						  *)(at +
						     s->page_tokens *
							     SPMLA_INDEX_DIM))
						[entry];
		} else {
			keys->page[i] = -1;
			UNROLL
			for (j = 0; j < 8; j++)
				keys->raw[8 * i + j] = 0;
		}
	}
	mqa_wgmma_pages(table, s, first + MQA_WGMMA_UNIT, stop, keys->next);
}

/* The keys' fragments of A, for each k step. */
FN void
mqa_wgmma_convert(const PRIVATE mqa_wgmma_keys *keys, uint32_t a[8][4])
{
	uint32_t k;

	UNROLL
	for (k = 0; k < 8; k++) {
		const uint32_t low = keys->raw[k], high = keys->raw[8 + k];

		a[k][0] = g_e4m3x2_to_f16x2(low);
		a[k][1] = g_e4m3x2_to_f16x2(high);
		a[k][2] = g_e4m3x2_to_f16x2(low >> 16);
		a[k][3] = g_e4m3x2_to_f16x2(high >> 16);
	}
}

/* Scores of the 64 keys before their scales; a lane's, if t < 2, is that of key
 * 16 w + g + 8 t. */
FN float
mqa_wgmma_score(uint32_t a[8][4], LOCAL const uint16_t *q, LOCAL const float *w)
{
	const uint32_t t = g_lane() % 4;
	const g_panel panel = g_panel_of(q);
	float c[32], sum[2];
	uint32_t k, j, i;

	UNROLL
	for (j = 0; j < 32; j++) {
		c[j] = 0.0f;
		g_wgmma_hold(c + j);
	}
	g_wgmma_begin();
	UNROLL
	for (k = 0; k < 8; k++)
		g_wgmma_f16_n64(
			c, a[k],
			g_panel_step(g_panel_on(panel, k / 4 * MQA_WGMMA_HEADS *
							       G_PANEL),
				     k % 4));
	g_wgmma_commit();
	g_wgmma_wait();
	UNROLL
	for (j = 0; j < 32; j++)
		g_wgmma_hold(c + j);
	sum[0] = sum[1] = 0.0f;
	/* relu(x) is x where x > 0, of a NaN 0. */
	UNROLL
	for (j = 0; j < 8; j++) {
		UNROLL
		for (i = 0; i < 4; i++) {
			const float x = c[4 * j + i];

			sum[i / 2] += (x > 0.0f ? x : 0.0f) *
				      w[8 * j + 2 * t + i % 2];
		}
	}
	UNROLL
	for (i = 0; i < 2; i++) {
		sum[i] += g_shuffle_xor_f(sum[i], 1);
		sum[i] += g_shuffle_xor_f(sum[i], 2);
	}
	return t == 0 ? sum[0] : sum[1];
}

/* The queries of a token into two panels, in the order of dims that a lane's
 * bytes of a key have, and weights; heads that are not there are zeros. */
FN void
mqa_wgmma_load_q(GLOBAL const uint8_t *q, GLOBAL const float *weights,
		 uint32_t heads, LOCAL uint16_t *panels, LOCAL float *w)
{
	const uint32_t aligned = ((uint64_t)q & 3u) == 0;
	uint32_t i, j;

	UNROLL
	for (i = 0; i < MQA_WGMMA_HEADS * SPMLA_INDEX_DIM / 4 / MQA_WGMMA_ITEMS;
	     i++) {
		const uint32_t at = i * MQA_WGMMA_ITEMS + g_item();
		const uint32_t head = at / (SPMLA_INDEX_DIM / 4);
		const uint32_t d = at % (SPMLA_INDEX_DIM / 4) * 4;
		/* Of 64 dims, lane d / 16 has this word, for k step d / 4. */
		const uint32_t column = d / 4 % 4 * 16 + d % 64 / 16 * 2;
		LOCAL uint16_t *panel =
			panels + d / 64 * MQA_WGMMA_HEADS * G_PANEL;
		GLOBAL const uint8_t *from = q + head * SPMLA_INDEX_DIM + d;
		uint32_t codes = 0;

		if (head < heads && aligned)
			codes = *(GLOBAL const uint32_t *)from;
		else if (head < heads)
			for (j = 0; j < 4; j++)
				codes |= (uint32_t)from[j] << 8 * j;
		*(LOCAL uint32_t *)(panel + g_panel_at(head, column)) =
			g_e4m3x2_to_f16x2(codes);
		*(LOCAL uint32_t *)(panel + g_panel_at(head, column + 8)) =
			g_e4m3x2_to_f16x2(codes >> 16);
	}
	for (i = g_item(); i < MQA_WGMMA_HEADS; i += MQA_WGMMA_ITEMS)
		w[i] = i < heads ? weights[i] : 0.0f;
}

SPMLA_KERNEL(mqa_logits_wgmma)
{
	LOCAL_DYNAMIC(local, MQA_WGMMA_BYTES);
	LOCAL uint16_t *panels = (LOCAL uint16_t *)local;
	LOCAL float *w = (LOCAL float *)(local + MQA_WGMMA_W_AT);
	LOCAL uint64_t *ends = (LOCAL uint64_t *)(local + MQA_WGMMA_ENDS_AT);
	LOCAL uint64_t *sums = (LOCAL uint64_t *)(local + MQA_WGMMA_SUMS_AT);
	const uint64_t total =
		mqa_wgmma_line(fault_state, fault_status, token_row,
			       context_lens, row_starts, &s, ends, sums);
	uint64_t unit = total * g_block() / g_blocks();
	const uint64_t last = total * (g_block() + 1) / g_blocks();
	uint32_t token = 0;

	while (unit < last) {
		uint32_t len[MQA_WGMMA_PAIR], stop, row, tile, i;
		uint64_t begin, end;
		mqa_wgmma_table table;
		mqa_wgmma_keys keys;

		token = mqa_find(ends, token, s.tokens, unit);
		begin = token ? ends[token - 1] : 0;
		end = ends[token] < last ? ends[token] : last;
		row = (uint32_t)token_row[token];
		len[0] = (uint32_t)context_lens[token];
		len[1] = 0;
		if (token + 1 < s.tokens && token % 2 == 0 &&
		    (uint32_t)token_row[token + 1] == row)
			len[1] = mqa_wgmma_len(token_row, context_lens,
					       row_starts, &s, token + 1, &i);
		table.pages = block_table + (uint64_t)row * s.stride;
		table.columns = s.columns;
		if (s.has_cols) {
			const int32_t cols = table_cols[row];

			table.columns = cols <= 0 ? 0
					: (uint32_t)cols < s.columns
						? (uint32_t)cols
						: s.columns;
		}
		tile = (uint32_t)(unit - begin) * MQA_WGMMA_UNIT;
		stop = (uint32_t)(end - begin) * MQA_WGMMA_UNIT;
		i = len[0] > len[1] ? len[0] : len[1];
		stop = stop < i ? stop : i;
		mqa_wgmma_pages(&table, &s, tile, stop, keys.next);
		BARRIER(); /* nobody reads the last token's queries */
		UNROLL
		for (i = 0; i < MQA_WGMMA_PAIR; i++)
			if (len[i])
				mqa_wgmma_load_q(
					q + (uint64_t)(token + i) * s.heads *
							SPMLA_INDEX_DIM,
					weights +
						(uint64_t)(token + i) * s.heads,
					s.heads, panels + i * MQA_WGMMA_Q,
					w + i * MQA_WGMMA_HEADS);
		g_wgmma_publish();
		mqa_wgmma_fetch(&keys, &table, &s, cache, tile, stop);
		BARRIER();
		for (; tile < stop; tile += MQA_WGMMA_UNIT) {
			const uint32_t t = g_lane() % 4;
			const uint32_t key = tile + g_item() / 32 * 16 +
					     g_lane() / 4 + 8 * t;
			const int32_t page =
				t == 0 ? keys.page[0] : keys.page[1];
			const float scale = keys.scale;
			uint32_t a[8][4];

			mqa_wgmma_convert(&keys, a);
			mqa_wgmma_fetch(&keys, &table, &s, cache,
					tile + MQA_WGMMA_UNIT, stop);
			UNROLL
			for (i = 0; i < MQA_WGMMA_PAIR; i++) {
				float score;

				if (!len[i])
					continue;
				score = scale *
					mqa_wgmma_score(
						a, panels + i * MQA_WGMMA_Q,
						w + i * MQA_WGMMA_HEADS);
				if (t >= 2 || key >= len[i])
					continue;
				if (page < 0) {
					score = g_float(0xff800000u);
					if (key % s.page_tokens == 0)
						g_fault(fault_state,
							fault_status, row,
							G_FAULT_PAGE);
				}
				logits[row_starts[token + i] + key] = score;
			}
		}
		unit = end;
	}
}

#endif
#endif
