/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits by a warpgroup's matrix instructions, for up to 64 heads: 64 keys
 * at a time, 16 of each subgroup, which copies them into a ring of its own some
 * tiles ahead, so that nothing in the loop waits for another subgroup; the
 * queries of one or two tokens of a row, as f16, are panels in shared memory.
 * The hard idea is the order of the 128 dims: it is free as long as both sides
 * keep it, and so 16 bytes of a key are a lane's values of four k steps. e4m3
 * is exact in f16 and so are the products; only the sums round.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_WGMMA_KERNEL_H

#include "spmla/platform/gpu/dialect/wgmma.h"
#include "spmla/platform/gpu/select/mqa_logits_kernel.h"

#define SPMLA_K_mqa_logits_wgmma(P, S) SPMLA_K_mqa_logits(P, S)
SPMLA_KERNEL_SCALARS(mqa_logits_wgmma)

enum {
	MQA_WGMMA_ITEMS = 128,
	MQA_WGMMA_HEADS = 64,
	MQA_WGMMA_TOKENS = 2048, /* the most that a launch takes */
	MQA_WGMMA_PAIR = 2,      /* tokens that share keys */
	/* 16-bit values of a token's queries: two panels. */
	MQA_WGMMA_Q = MQA_WGMMA_HEADS * SPMLA_INDEX_DIM,
	/* Values of a panel: two tokens' queries, 64 dims. */
	MQA_WGMMA_PANEL = MQA_WGMMA_PAIR * MQA_WGMMA_Q / 2,
	/* Weights of a token. Weights of lanes that differ in t are 20 apart,
	 * for the banks. */
	MQA_WGMMA_LANE_W = 20,
	MQA_WGMMA_W = 4 * MQA_WGMMA_LANE_W,
	MQA_WGMMA_STAGES = 2, /* of a subgroup's ring */
	MQA_WGMMA_KEYS = 16   /* of a stage */
};

/* A stage: its keys' codes and scales, and a bit for each key with a page. */
typedef struct mqa_wgmma_stage {
	uint8_t codes[MQA_WGMMA_KEYS * SPMLA_INDEX_DIM];
	float scales[MQA_WGMMA_KEYS];
	uint32_t has_page, unused[3]; /* copies are of 16 bytes */
} mqa_wgmma_stage;

/* Shared memory of a block. */
typedef struct mqa_wgmma_memory {
	uint16_t panels[MQA_WGMMA_PAIR * MQA_WGMMA_Q]; /* queries */
	float w[MQA_WGMMA_PAIR * MQA_WGMMA_W];
	mqa_wgmma_stage rings[4][MQA_WGMMA_STAGES]; /* one a subgroup */
	uint64_t ends[MQA_WGMMA_TOKENS];            /* of units */
	uint64_t sums[G_SCAN_SUBGROUPS];
} mqa_wgmma_memory;

enum { MQA_WGMMA_BYTES = sizeof(mqa_wgmma_memory) };

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum { MQA_WGMMA_UNIT = 64 }; /* keys */

/* ---- queries and scores ---- */

/* What an item loads of a token's queries, 16 bytes of each of four heads, and
 * the weight of head `item`. */
typedef struct mqa_wgmma_query {
	uint32_t raw[4][4];
	float weight;
} mqa_wgmma_query;

/* Asks for a token's queries; heads that are not there are zeros. */
FN void
mqa_wgmma_ask_q(PRIVATE mqa_wgmma_query *to, GLOBAL const uint8_t *q,
		GLOBAL const float *weights, uint32_t heads)
{
	const uint32_t aligned = ((uint64_t)q & 15u) == 0;
	uint32_t i, j;

	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t at = i * MQA_WGMMA_ITEMS + g_item();
		const uint32_t is = at / 8 < heads;

		g_load128_if(is && aligned, q + 16 * at, to->raw[i]);
		if (is && !aligned) {
			UNROLL
			for (j = 0; j < 4; j++)
				to->raw[i][j] =
					mqa_word(q + 16 * at + 4 * j, 0);
		}
	}
	to->weight = 0.0f;
	if (g_item() < heads)
		to->weight = weights[g_item()];
}

/* Puts them into two panels, in the order of dims that a lane's bytes of a key
 * have, and the weights in the order of its accumulators. */
FN void
mqa_wgmma_put_q(const PRIVATE mqa_wgmma_query *from, LOCAL uint16_t *panels,
		LOCAL float *w)
{
	const uint32_t h = g_item();
	uint32_t i, j;

	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t at = i * MQA_WGMMA_ITEMS + h;
		/* Lane t has these 16 of 64 dims, word j for k step j. */
		const uint32_t head = at / 8, piece = at % 8, t = piece % 4;
		LOCAL uint16_t *panel = panels + piece / 4 * MQA_WGMMA_PANEL;

		UNROLL
		for (j = 0; j < 4; j++) {
			const uint32_t column = 16 * j + 2 * t;
			const uint32_t codes = from->raw[i][j];

			*(LOCAL uint32_t *)(panel + g_panel_at(head, column)) =
				g_e4m3x2_to_f16x2(codes);
			*(LOCAL uint32_t *)(panel +
					    g_panel_at(head, column + 8)) =
				g_e4m3x2_to_f16x2(codes >> 16);
		}
	}
	if (h < MQA_WGMMA_HEADS)
		w[h % 8 / 2 * MQA_WGMMA_LANE_W + h / 8 * 2 + h % 2] =
			from->weight;
}

/* A lane's fragments of A for each k step, of keys g and g + 8 of its subgroup:
 * bytes 16 t .. 16 t + 15 and 64 more of each are raw[0..7] and raw[8..15]. */
FN void
mqa_wgmma_convert(const PRIVATE uint32_t *raw, uint32_t a[8][4])
{
	uint32_t k;

	UNROLL
	for (k = 0; k < 8; k++) {
		const uint32_t low = raw[k], high = raw[8 + k];

		a[k][0] = g_e4m3x2_to_f16x2(low);
		a[k][1] = g_e4m3x2_to_f16x2(high);
		a[k][2] = g_e4m3x2_to_f16x2(low >> 16);
		a[k][3] = g_e4m3x2_to_f16x2(high >> 16);
	}
}

/* The sums over heads of a token, as they grow: a lane's even and odd heads of
 * keys g and g + 8 of its subgroup. */
typedef struct mqa_wgmma_sums {
	float sum[2][2];
	uint32_t w[4]; /* weights of these and of the next 8 heads */
} mqa_wgmma_sums;

/* Adds heads 8 j .. 8 j + 7, j from 0 to 7; `w` are the token's weights. */
FN void
mqa_wgmma_add(PRIVATE mqa_wgmma_sums *to, const PRIVATE float *c,
	      LOCAL const float *w, uint32_t j)
{
	uint32_t i;

	if (j % 2 == 0)
		g_local_load128(w + g_lane() % 4 * MQA_WGMMA_LANE_W + 2 * j,
				to->w);
	/* relu: the larger of x and 0, of a NaN 0. */
	UNROLL
	for (i = 0; i < 4; i++)
		to->sum[i / 2][i % 2] = g_fma(g_larger(c[4 * j + i], 0.0f),
					      g_float(to->w[j % 2 * 2 + i % 2]),
					      j ? to->sum[i / 2][i % 2] : 0.0f);
}

/* The score, before the key's scale, of key g + 8 (t % 2) of the subgroup. */
FN float
mqa_wgmma_end(const PRIVATE mqa_wgmma_sums *sums)
{
	const uint32_t odd = g_lane() & 1u;
	const float low = sums->sum[0][0] + sums->sum[0][1];
	const float high = sums->sum[1][0] + sums->sum[1][1];
	float own = odd ? high : low;

	own += g_shuffle_xor_f(odd ? low : high, 1);
	return own + g_shuffle_xor_f(own, 2);
}

FN float
mqa_wgmma_sum(const PRIVATE float *c, LOCAL const float *w)
{
	mqa_wgmma_sums sums;
	uint32_t j;

	UNROLL
	for (j = 0; j < 8; j++)
		mqa_wgmma_add(&sums, c, w, j);
	return mqa_wgmma_end(&sums);
}

/* Asks for a k step of the products of the keys and the queries of a token, or
 * of two. */
FN void
mqa_wgmma_product(PRIVATE float *c, uint32_t a[8][4], g_panel q, uint32_t both,
		  uint32_t k)
{
	const g_panel b =
		g_panel_step(g_panel_on(q, k / 4 * 2 * MQA_WGMMA_PANEL), k % 4);

	if (both && k == 0)
		g_wgmma_f16_n128_registers_first(c, a[k], b);
	else if (both)
		g_wgmma_f16_n128_registers(c, a[k], b);
	else if (k == 0)
		g_wgmma_f16_n64_registers_first(c, a[k], b);
	else
		g_wgmma_f16_n64_registers(c, a[k], b);
}

/* Waits for products; then the accumulators may be read. */
FN void
mqa_wgmma_done(PRIVATE float *c, uint32_t count)
{
	uint32_t i;

	g_wgmma_wait();
	UNROLL
	for (i = 0; i < count; i++)
		g_wgmma_hold(c + i);
}

/* Scores for one token, or for two. */
FN void
mqa_wgmma_scores(uint32_t a[8][4], g_panel q, LOCAL const float *w,
		 uint32_t both, PRIVATE float *score)
{
	uint32_t k;

	score[1] = 0.0f;
	if (both) {
		float c[64];

		g_wgmma_begin();
		UNROLL
		for (k = 0; k < 8; k++)
			mqa_wgmma_product(c, a, q, 1, k);
		g_wgmma_commit();
		mqa_wgmma_done(c, 64);
		score[0] = mqa_wgmma_sum(c, w);
		score[1] = mqa_wgmma_sum(c + 32, w + MQA_WGMMA_W);
	} else {
		float c[32];

		g_wgmma_begin();
		UNROLL
		for (k = 0; k < 8; k++)
			mqa_wgmma_product(c, a, q, 0, k);
		g_wgmma_commit();
		mqa_wgmma_done(c, 32);
		score[0] = mqa_wgmma_sum(c, w);
	}
}

/* ---- paged keys ---- */

/* Keys of a token of that row, length and first logit; 0 and *fault where its
 * row or its logits are outside. */
FN uint32_t
mqa_wgmma_len(const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s, int32_t len,
	      uint32_t row, int64_t start, PRIVATE uint32_t *fault)
{
	const mqa_row r = mqa_row_of(row, s->rows, len, start, s->row_stride,
				     s->logits_elems);

	*fault = r.fault;
	return r.len;
}

/* The line of units of all tokens: ends[t] is how many units the tokens up to
 * and with t have; returns how many there are. If tokens 2 i and 2 i + 1 are of
 * one row, the first has the units of both. */
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
		const uint32_t t = first + g_item(), is = t < s->tokens;
		const uint32_t at = is ? t : 0;
		/* All are asked for at once. */
		const uint32_t row = (uint32_t)token_row[at];
		const int64_t start =
			mqa_row_start(row_starts, s->row_stride, at);
		const int32_t all_len = context_lens[at];
		uint32_t fault, len, other, units;
		uint64_t here, all;

		len = mqa_wgmma_len(s, is ? all_len : 0, row, start, &fault);
		if (fault && g_block() == 0)
			g_fault(fault_state, fault_status,
				fault == G_FAULT_ROW ? s->first_token + t : row,
				fault);
		/* The twin's length; its lane is the next or the one before. */
		other = g_shuffle_xor(len, 1);
		if (g_shuffle_xor(row, 1) != row)
			other = 0;
		if (other && len && (t & 1u))
			len = 0;
		else if (len && other > len)
			len = other;
		units = len / MQA_WGMMA_UNIT + (len % MQA_WGMMA_UNIT != 0);
		here = g_scan_sum(units, MQA_WGMMA_ITEMS, sums, &all) + units;
		if (is)
			ends[t] = total + here;
		total += all;
	}
	BARRIER();
	return total;
}

/* A subgroup's way over the keys of a row: a lane, and the one 16 behind it,
 * has one of the next 16, where that stands and its page. */
typedef struct mqa_wgmma_walk {
	GLOBAL const int32_t *pages; /* of the row */
	uint32_t columns;            /* of them that are written */
	uint32_t stop;               /* no key from here on */
	uint32_t key, column, entry;
	uint32_t step_columns, step_entries; /* what 64 keys are */
	int32_t page;                        /* -1: none */
} mqa_wgmma_walk;

/* Asks for the key's page, before it is known whether that is written. */
FN void
mqa_wgmma_turn(PRIVATE mqa_wgmma_walk *walk, uint32_t columns)
{
	walk->page = -1;
	if (walk->key < walk->stop && walk->column < columns)
		walk->page = walk->pages[walk->column];
}

/* Begins at the subgroup's keys of the unit of keys `first` and on. */
FN void
mqa_wgmma_start(PRIVATE mqa_wgmma_walk *walk,
		const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s,
		GLOBAL const int32_t *block_table,
		GLOBAL const int32_t *table_cols, uint32_t row, uint32_t first,
		uint32_t stop)
{
	walk->pages = block_table + (uint64_t)row * s->stride;
	walk->stop = stop;
	walk->key = first + g_item() / 32 * MQA_WGMMA_KEYS +
		    g_lane() % MQA_WGMMA_KEYS;
	walk->column = walk->key / s->page_tokens;
	walk->entry = walk->key - walk->column * s->page_tokens;
	walk->step_columns = MQA_WGMMA_UNIT / s->page_tokens;
	walk->step_entries =
		MQA_WGMMA_UNIT - walk->step_columns * s->page_tokens;
	mqa_wgmma_turn(walk, s->columns);
	walk->columns = s->columns;
	if (s->has_cols) {
		const int32_t cols = table_cols[row];

		walk->columns = cols <= 0                     ? 0
				: (uint32_t)cols < s->columns ? (uint32_t)cols
							      : s->columns;
	}
}

/* Copies the subgroup's next keys into a stage: those without a page as zeros.
 * Codes of odd keys have their halves exchanged, for the banks. */
FN void
mqa_wgmma_fetch(PRIVATE mqa_wgmma_walk *walk,
		const PRIVATE spmla_k_mqa_logits_wgmma_scalars *s,
		GLOBAL const uint8_t *cache, LOCAL mqa_wgmma_stage *stage)
{
	const uint32_t lane = g_lane();
	const uint32_t is = (uint32_t)walk->page < s->pool_pages &&
			    walk->column < walk->columns;
	const uint32_t all = (uint32_t)g_ballot(is);
	const uint64_t page =
		is ? (uint64_t)(uint32_t)walk->page * s->page_stride_bytes : 0;
	const uint64_t at = page + (uint64_t)walk->entry * SPMLA_INDEX_DIM;
	uint32_t i;

	if (lane < MQA_WGMMA_KEYS)
		g_local_copy32(stage->scales + lane,
			       cache + page +
				       (uint64_t)s->page_tokens *
					       SPMLA_INDEX_DIM +
				       (uint64_t)walk->entry * 4,
			       is);
	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t key = 4 * i + lane / 8;
		const uint64_t from =
			(uint64_t)g_broadcast((uint32_t)(at >> 32), key) << 32 |
			g_broadcast((uint32_t)at, key);

		g_local_copy128(stage->codes + key * SPMLA_INDEX_DIM +
					16 * (lane % 8 ^ (key & 1u) * 4),
				cache + from + 16 * (lane % 8),
				all >> key & 1u);
	}
	g_local_copies_commit();
	if (lane == 0)
		stage->has_page = all;
	walk->key += MQA_WGMMA_UNIT;
	walk->column += walk->step_columns;
	walk->entry += walk->step_entries;
	if (walk->entry >= s->page_tokens) {
		walk->entry -= s->page_tokens;
		walk->column++;
	}
	mqa_wgmma_turn(walk, s->columns);
}

/* The lane's part of a stage, and of key g + 8 (t % 2) the scale and whether it
 * has a page. */
FN uint32_t
mqa_wgmma_take(LOCAL const mqa_wgmma_stage *stage, PRIVATE uint32_t *raw,
	       PRIVATE float *scale)
{
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	const uint32_t key = g + 8 * (t & 1u);
	const uint32_t piece = 16 * (t ^ (g & 1u) * 4);
	LOCAL const uint8_t *codes = stage->codes + g * SPMLA_INDEX_DIM;

	g_local_load128(codes + piece, raw);
	g_local_load128(codes + (piece ^ 64u), raw + 4);
	codes += 8 * SPMLA_INDEX_DIM;
	g_local_load128(codes + piece, raw + 8);
	g_local_load128(codes + (piece ^ 64u), raw + 12);
	*scale = stage->scales[key];
	return stage->has_page >> key & 1u;
}

/* Writes a key's score, or -inf and a fault if it has no page. */
FN void
mqa_wgmma_write(GLOBAL spmla_g_state *fault_state,
		GLOBAL spmla_g_status *fault_status, GLOBAL float *logits,
		uint32_t row, uint32_t page_tokens, uint32_t key,
		uint32_t has_page, float score)
{
	if (!has_page) {
		score = G_MINUS_INF;
		if (key % page_tokens == 0)
			g_fault(fault_state, fault_status, row, G_FAULT_PAGE);
	}
	logits[key] = score;
}

SPMLA_KERNEL_BLOCKS(mqa_logits_wgmma, 3)
void
spmla_k_mqa_logits_wgmma(SPMLA_KERNEL_ARGS(mqa_logits_wgmma))
{
	LOCAL_DYNAMIC(local, MQA_WGMMA_BYTES);
	LOCAL mqa_wgmma_memory *mem = (LOCAL mqa_wgmma_memory *)local;
	LOCAL mqa_wgmma_stage *ring = mem->rings[g_item() / 32];
	LOCAL uint64_t *ends = mem->ends;
	const uint64_t total =
		mqa_wgmma_line(fault_state, fault_status, token_row,
			       context_lens, row_starts, &s, ends, mem->sums);
	const g_panel q_panels =
		g_panel_of(mem->panels, G_GROUP_BYTES, G_PANEL_BYTES);
	const uint32_t own = g_item() / 32 * MQA_WGMMA_KEYS;
	const uint32_t lane_key =
		own + g_lane() / 4 + g_lane() % 2 * (MQA_WGMMA_KEYS / 2);
	uint64_t unit = total * g_block() / g_blocks();
	const uint64_t last = total * (g_block() + 1) / g_blocks();
	uint32_t token = 0;

	while (unit < last) {
		uint32_t len[MQA_WGMMA_PAIR], row, tile, stop, i, stage;
		uint64_t begin, end;
		GLOBAL float *to[MQA_WGMMA_PAIR];
		mqa_wgmma_walk walk;
		mqa_wgmma_query query;

		token = g_first_above64(ends, token, s.tokens, unit);
		begin = token ? ends[token - 1] : 0;
		end = ends[token] < last ? ends[token] : last;
		row = (uint32_t)token_row[token];
		len[0] = mqa_row_len(context_lens[token], s.row_stride);
		len[1] = 0;
		if (token + 1 < s.tokens && token % 2 == 0 &&
		    (uint32_t)token_row[token + 1] == row)
			len[1] = mqa_wgmma_len(&s, context_lens[token + 1], row,
					       mqa_row_start(row_starts,
							     s.row_stride,
							     token + 1),
					       &i);
		len[1] = g_broadcast(len[1], 0);
		tile = (uint32_t)(unit - begin) * MQA_WGMMA_UNIT;
		stop = (uint32_t)(end - begin) * MQA_WGMMA_UNIT;
		i = len[0] > len[1] ? len[0] : len[1];
		stop = stop < i ? stop : i;
		mqa_wgmma_start(&walk, &s, block_table, table_cols, row, tile,
				stop);
		UNROLL
		for (i = 0; i < MQA_WGMMA_PAIR; i++)
			to[i] = logits +
				(len[i] ? mqa_row_start(row_starts,
							s.row_stride, token + i)
					: 0);
		mqa_wgmma_ask_q(&query,
				q + (uint64_t)token * s.heads * SPMLA_INDEX_DIM,
				weights + (uint64_t)token * s.heads, s.heads);
		/* Everyone is done with the last token, and no copy of its is
		 * on its way to where the next ones go. */
		g_local_copies_wait();
		BARRIER();
		for (stage = 0; stage < MQA_WGMMA_STAGES; stage++)
			mqa_wgmma_fetch(&walk, &s, cache, ring + stage);
		mqa_wgmma_put_q(&query, mem->panels, mem->w);
		if (len[1]) {
			mqa_wgmma_ask_q(&query,
					q + (uint64_t)(token + 1) * s.heads *
							SPMLA_INDEX_DIM,
					weights +
						(uint64_t)(token + 1) * s.heads,
					s.heads);
			mqa_wgmma_put_q(&query,
					mem->panels + MQA_WGMMA_PANEL / 2,
					mem->w + MQA_WGMMA_W);
		}
		g_fence_async();
		BARRIER();
		stage = 0;
		for (; tile < stop; tile += MQA_WGMMA_UNIT) {
			LOCAL mqa_wgmma_stage *now = ring + stage;
			const uint32_t key = tile + lane_key;
			uint32_t raw[16], a[8][4], has_page;
			float scale, score[MQA_WGMMA_PAIR];

			g_local_copies_wait_but(MQA_WGMMA_STAGES - 1);
			g_subgroup_barrier();
			has_page = mqa_wgmma_take(now, raw, &scale);
			mqa_wgmma_convert(raw, a);
			g_subgroup_barrier();
			mqa_wgmma_fetch(&walk, &s, cache, now);
			stage = (stage + 1) % MQA_WGMMA_STAGES;
			mqa_wgmma_scores(a, q_panels, mem->w, len[1], score);
			if (g_lane() % 4 >= MQA_WGMMA_PAIR)
				continue;
			UNROLL
			for (i = 0; i < MQA_WGMMA_PAIR; i++)
				if (key < len[i])
					mqa_wgmma_write(
						fault_state, fault_status,
						to[i], row, s.page_tokens, key,
						has_page, scale * score[i]);
		}
		unit = end;
	}
}

#endif
#endif
