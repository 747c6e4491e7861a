/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode for few tokens, in one launch: blocks with 80 to 144 keys of a
 * unit (a token and 8 to 64 of its heads), which combine their results as
 * decode_exchange_device.h says. What does not depend on a row is done while
 * rows are on their way. 16 heads of V3.2 leave an SM room for two blocks.
 *
 * The hard ideas:
 * - Keys are the rows of A and heads the columns of B, so that one product
 *   takes a warp's 16 keys and 8 heads, or a warpgroup's 64 keys and 64 heads
 *   (decode_few_wgmma_device.h). Codes go from the row in shared memory
 *   to f16 in registers, which is exact. Scales are not multiplied with codes
 *   at all. For scores they multiply a group's sum in f32. For O they multiply
 *   the weights; each group has its own copy of the weights.
 * - O is transposed: columns are rows of A, whose words join two keys' bytes.
 * - Weights times scales are f16, in a unit for each group: the block's largest
 *   scale, rounded up to a power of two. Where a scale is above 1,
 *   decode_few_wide_device.h makes P.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_FEW_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_FEW_KERNEL_H

#include "spmla/platform/gpu/attend/decode_few_wide_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* ---- Scores ------------------------------------------------------------ */

/* Converts 16 codes to f16. */
FN void
few_to_f16(decode_format f, const PRIVATE uint32_t *codes, PRIVATE uint32_t *x)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++)
		decode_code_quad(f, codes[i], x + 2 * i);
}

/* Sums over 64 dims, the j-th of eight groups of dims: A are keys, B heads. */
FN void
few_multiply_codes(const PRIVATE few_block *b, uint32_t j,
		   PRIVATE few_scores sum)
{
	const uint32_t g = b->lane / 4, t = b->lane % 4;
	const uint32_t key = FEW_KEYS * b->warp + g;
	LOCAL const uint8_t *codes =
		b->rows + key * FEW_CODES + few_piece(g, 4 * j + t);
	LOCAL const uint8_t *q =
		few_queries(b) + g * FEW_PADDED_QUERY + 128 * j + 32 * t;
	uint32_t x[4], low[8], high[8], n, i;

	g_local_load128(codes, x);
	few_to_f16(b->kind.format, x, low);
	g_local_load128(codes + 8 * FEW_CODES, x);
	few_to_f16(b->kind.format, x, high);
	UNROLL
	for (n = 0; n < b->kind.heads / 8; n++) {
		uint32_t y[8];

		g_local_load128(q + 8 * n * FEW_PADDED_QUERY, y);
		g_local_load128(q + 8 * n * FEW_PADDED_QUERY + 16, y + 4);
		UNROLL
		for (i = 0; i < 4; i++) {
			const uint32_t a[4] = {low[2 * i], high[2 * i],
					       low[2 * i + 1], high[2 * i + 1]};

			g_mma_f16(sum[n], a, y + 2 * i);
		}
	}
}

/* The same over bf16 dims of the tail: half j, 32 dims. */
FN void
few_multiply_tail(const PRIVATE few_block *b, uint32_t j,
		  PRIVATE few_scores sum)
{
	const uint32_t g = b->lane / 4, t = b->lane % 4;
	const uint32_t key = FEW_KEYS * b->warp + g;
	LOCAL const uint8_t *tail =
		few_tails(b) + key * FEW_TAIL + few_piece(g, 4 * j + t);
	LOCAL const uint8_t *q =
		few_query_tails(b) + g * FEW_PADDED_TAIL + 64 * j + 16 * t;
	uint32_t low[4], high[4], n, i;

	g_local_load128(tail, low);
	g_local_load128(tail + 8 * FEW_TAIL, high);
	UNROLL
	for (n = 0; n < b->kind.heads / 8; n++) {
		uint32_t y[4];

		g_local_load128(q + 8 * n * FEW_PADDED_TAIL, y);
		UNROLL
		for (i = 0; i < 2; i++) {
			const uint32_t a[4] = {low[2 * i], high[2 * i],
					       low[2 * i + 1], high[2 * i + 1]};

			g_mma_bf16(sum[n], a, y + 2 * i);
		}
	}
}

/* Sums of the warp's keys, up to 32 heads: score gets the codes', sum the
 * tail's. */
FN void
few_sum(const PRIVATE few_block *b, const PRIVATE few_keys *keys,
	PRIVATE few_scores score, PRIVATE few_scores sum)
{
	const decode_format f = b->kind.format;
	const uint32_t groups = decode_groups(f), pieces = f.group / 64;
	uint32_t n, i, e;

	UNROLL
	for (i = 0; i < groups; i++) {
		uint32_t j;

		few_zero(b, sum);
		UNROLL
		for (j = 0; j < pieces; j++)
			few_multiply_codes(b, i * pieces + j, sum);
		UNROLL
		for (n = 0; n < b->kind.heads / 8; n++) {
			UNROLL
			for (e = 0; e < 4; e++)
				score[n][e] = g_fma(keys->scale[e / 2][i],
						    sum[n][e], score[n][e]);
		}
	}
	few_zero(b, sum);
	if (few_tail_byte(f)) {
		few_multiply_tail(b, 0, sum);
		few_multiply_tail(b, 1, sum);
	}
}

/* Scores of the warp's keys. A row that is no key gets -inf. */
FN void
few_score(const PRIVATE few_block *b, uint32_t is_key,
	  const PRIVATE few_keys *keys, PRIVATE few_scores score)
{
	const uint32_t g = b->lane / 4, t = b->lane % 4;
	few_scores sum;
	uint32_t n, e;

	few_zero(b, score);
	if (few_by_wgmma(b))
		few_wgmma_score(b, keys, score, sum);
	else
		few_sum(b, keys, score, sum);
	UNROLL
	for (n = 0; n < b->kind.heads / 8; n++) {
		UNROLL
		for (e = 0; e < 4; e++) {
			const float x = keys->unit[e / 2];
			const float y = few_units(b)[8 * n + 2 * t + e % 2];
			const uint32_t is = is_key >> (g + e / 2 * 8) & 1u;

			/* The smaller unit comes first: multiplied by the
			 * larger one alone, the score could overflow. */
			score[n][e] = score[n][e] * (x < y ? x : y) *
					      (x < y ? y : x) +
				      sum[n][e];
			score[n][e] = is ? score[n][e] : G_MINUS_INF;
		}
	}
}

/* ---- Softmax ----------------------------------------------------------- */

/* Writes the warp's largest scores, head by head. */
FN void
few_note_scores(const PRIVATE few_block *b, PRIVATE few_scores score)
{
	const uint32_t heads = b->kind.heads, t = b->lane % 4;
	uint32_t n, e, i;

	UNROLL
	for (n = 0; n < heads / 8; n++) {
		UNROLL
		for (e = 0; e < 2; e++) {
			float most = g_larger(G_MINUS_INF, score[n][e]);

			most = g_larger(most, score[n][2 + e]);
			UNROLL
			for (i = 4; i < 32; i *= 2)
				most = g_larger(most, g_shuffle_xor_f(most, i));
			if (b->lane < 4)
				few_most(b)[b->warp * heads + 8 * n + 2 * t +
					    e] = most;
		}
	}
}

/* The block's largest scores of heads h and h + 1. */
FN void
few_largest_scores(const PRIVATE few_block *b, uint32_t h, PRIVATE float *most)
{
	LOCAL const float *from = few_most(b) + h;
	uint32_t k;

	most[0] = most[1] = G_MINUS_INF;
	UNROLL
	for (k = 0; k < b->kind.warps; k++) {
		const float x[2] = {from[k * b->kind.heads],
				    from[k * b->kind.heads + 1]};

		most[0] = g_larger(most[0], x[0]);
		most[1] = g_larger(most[1], x[1]);
	}
}

/* Turns scores into weights, relative to the block's largest score, and writes
 * the warp's sums. */
FN void
few_weigh(const PRIVATE few_block *b, PRIVATE few_scores score)
{
	const uint32_t heads = b->kind.heads, t = b->lane % 4;
	const float c = b->a->s.scale * G_LOG2_E;
	float pair[2]; /* of heads 2 lane and 2 lane + 1, or the last ones */
	uint32_t n, e, i;

	few_largest_scores(b, b->lane < heads / 2 ? 2 * b->lane : heads - 2,
			   pair);
	UNROLL
	for (n = 0; n < heads / 8; n++) {
		const uint32_t h = 8 * n + 2 * t;

		UNROLL
		for (e = 0; e < 2; e++) {
			const float most =
				g_float(g_shuffle(g_bits(pair[e]), h / 2));
			const float from = most == G_MINUS_INF ? 0.0f : most;
			float sum;

			score[n][e] = g_exp2_flush((score[n][e] - from) * c);
			score[n][2 + e] =
				g_exp2_flush((score[n][2 + e] - from) * c);
			sum = score[n][e] + score[n][2 + e];
			UNROLL
			for (i = 4; i < 32; i *= 2)
				sum += g_shuffle_xor_f(sum, i);
			if (b->lane < 4)
				few_sums(b)[b->warp * heads + h + e] = sum;
		}
	}
}

/* ---- P ----------------------------------------------------------------- */

/* Writes the warp's P. `byte` has its units. No scale is NaN here: its unit
 * would be above 1. */
FN void
few_store_p(const PRIVATE few_block *b, const PRIVATE uint32_t *byte,
	    PRIVATE few_scores p)
{
	const decode_format f = b->kind.format;
	const uint32_t groups = decode_groups(f);
	const uint32_t g = b->lane / 4, t = b->lane % 4, up = g / 4;
	const uint32_t x = g % 4 + 8 * up;
	float first[FEW_GROUPS], second[FEW_GROUPS];
	uint32_t raw[2][4], i, n, e;

	few_read_scales(b, FEW_KEYS * b->warp + x, raw[0]);
	few_read_scales(b, FEW_KEYS * b->warp + x + 4, raw[1]);
	UNROLL
	for (i = 0; i < groups; i++) {
		first[i] = few_scale_in(f, few_scale_bits(f, raw[0], i),
					byte[i], 0);
		second[i] = few_scale_in(f, few_scale_bits(f, raw[1], i),
					 byte[i], 0);
	}
	UNROLL
	for (n = 0; n < b->kind.heads / 8; n++) {
		UNROLL
		for (e = 0; e < 2; e++) {
			const uint32_t h = 8 * n + 2 * t + e;
			const float other =
				g_shuffle_xor_f(up ? p[n][e] : p[n][2 + e], 16);
			const float y = up ? other : p[n][e];
			const float z = up ? p[n][2 + e] : other;

			UNROLL
			for (i = 0; i < groups; i++)
				*few_p_at(b, i, b->warp, h, x) = g_f32_to_f16x2(
					y * first[i], z * second[i]);
			if (f.bf16_tail)
				*few_p_at(b, FEW_GROUPS - 1, b->warp, h, x) =
					g_f32_to_bf16x2(y, z);
		}
	}
}

/* ---- O ----------------------------------------------------------------- */

/* O += P V for the warp's 64 columns over 16 keys. A is made of four keys'
 * codes. */
FN void
few_add_codes(const PRIVATE few_block *b, uint32_t k, LOCAL const uint8_t *p,
	      PRIVATE few_o o)
{
	const uint32_t g = b->lane / 4, t = b->lane % 4;
	LOCAL const uint8_t *from = b->rows + (FEW_KEYS * k + t) * FEW_CODES +
				    few_piece(t, 4 * b->warp + g / 2) +
				    g % 2 * 8;
	uint32_t v[4][2], low[8], high[8], pairs[4], n, i;

	UNROLL
	for (i = 0; i < 4; i++) {
		LOCAL const uint32_t *word =
			(LOCAL const uint32_t *)(from + 4 * i * FEW_CODES);

		v[i][0] = word[0];
		v[i][1] = word[1];
	}
	UNROLL
	for (i = 0; i < 2; i++) {
		pairs[2 * i] = g_bytes(v[0][i], v[1][i], 0x5140);
		pairs[2 * i + 1] = g_bytes(v[0][i], v[1][i], 0x7362);
	}
	few_to_f16(b->kind.format, pairs, low);
	UNROLL
	for (i = 0; i < 2; i++) {
		pairs[2 * i] = g_bytes(v[2][i], v[3][i], 0x5140);
		pairs[2 * i + 1] = g_bytes(v[2][i], v[3][i], 0x7362);
	}
	few_to_f16(b->kind.format, pairs, high);
	UNROLL
	for (n = 0; n < b->kind.heads / 8; n++) {
		LOCAL const uint32_t *word =
			(LOCAL const uint32_t *)(p + 8 * n * 32);
		const uint32_t y[2] = {word[0], word[1]};

		UNROLL
		for (i = 0; i < 4; i++) {
			const uint32_t a[4] = {low[2 * i], low[2 * i + 1],
					       high[2 * i], high[2 * i + 1]};

			g_mma_f16(o[i][n], a, y);
		}
	}
}

/* The same for columns that are bf16. */
FN void
few_add_tail(const PRIVATE few_block *b, uint32_t k, LOCAL const uint8_t *p,
	     PRIVATE few_o o)
{
	const uint32_t g = b->lane / 4, t = b->lane % 4;
	LOCAL const uint8_t *from =
		few_tails(b) + (FEW_KEYS * k + t) * FEW_TAIL + few_piece(t, g);
	uint32_t v[4][4], n, i;

	UNROLL
	for (i = 0; i < 4; i++)
		g_local_load128(from + 4 * i * FEW_TAIL, v[i]);
	UNROLL
	for (n = 0; n < b->kind.heads / 8; n++) {
		LOCAL const uint32_t *word =
			(LOCAL const uint32_t *)(p + 8 * n * 32);
		const uint32_t y[2] = {word[0], word[1]};

		UNROLL
		for (i = 0; i < 4; i++) {
			const uint32_t a[4] = {
				g_bytes(v[0][i], v[1][i], 0x5410),
				g_bytes(v[0][i], v[1][i], 0x7632),
				g_bytes(v[2][i], v[3][i], 0x5410),
				g_bytes(v[2][i], v[3][i], 0x7632)};

			g_mma_bf16(o[i][n], a, y);
		}
	}
}

/* Whether the warp's columns are the bf16 tail. */
FN uint32_t
few_has_tail(const PRIVATE few_block *b)
{
	return b->kind.format.bf16_tail && b->warp == FEW_WARPS - 1;
}

FN void
few_multiply_values(const PRIVATE few_block *b, PRIVATE few_o o)
{
	const uint32_t heads = b->kind.heads, warps = b->kind.warps;
	const uint32_t copy = b->warp * 64 / b->kind.format.group;
	LOCAL const uint8_t *p = few_weights_at(b) +
				 (copy * warps * heads + b->lane / 4) * 32 +
				 b->lane % 4 * 8;
	uint32_t k;

	UNROLL
	for (k = 0; k < 4; k++)
		few_zero(b, o[k]);
	if (few_has_tail(b)) {
		UNROLL_BY(2)
		for (k = 0; k < warps; k++)
			few_add_tail(b, k, p + k * heads * 32, o);
	} else if (warps > FEW_WARPS) {
		UNROLL_BY(3) /* these kernels have fewer registers */
		for (k = 0; k < warps; k++)
			few_add_codes(b, k, p + k * heads * 32, o);
	} else {
		UNROLL
		for (k = 0; k < warps; k++)
			few_add_codes(b, k, p + k * heads * 32, o);
	}
}

/* ---- Results ----------------------------------------------------------- */

/* Hands O on: 8 columns of a head at a time. */
FN void
few_give_o(const PRIVATE few_block *b, PRIVATE few_o o)
{
	const uint32_t g = b->lane / 4, t = b->lane % 4;
	const uint32_t tail = few_has_tail(b);
	uint32_t n, e, i;

	UNROLL
	for (n = 0; n < b->kind.heads / 8; n++) {
		UNROLL
		for (e = 0; e < 2; e++) {
			const uint32_t h = 8 * n + 2 * t + e;
			uint32_t x[4];

			UNROLL
			for (i = 0; i < 4; i++) {
				const float low = o[i][n][e];
				const float high = o[i][n][2 + e];
				const uint32_t y = g_f32_to_f16x2(low, high);

				x[i] = ~y;
				if (b->kind.format.bf16_tail)
					x[i] = ~(tail ? g_f32_to_bf16x2(low,
									high)
						      : y);
			}
			g_store4_device(exchange_o(b, h, b->rank) +
						32 * b->warp + 4 * g,
					x);
		}
	}
}

/* Hands on the record of head `item`, likely to be there before its O. */
FN void
few_give_record(const PRIVATE few_block *b, const PRIVATE uint32_t *byte,
		uint32_t wide)
{
	const uint32_t h = g_item(), heads = b->kind.heads;
	/* A tail has no scales; its byte 127 means 1. */
	uint32_t exponents[2] = {0, 127u << 24}, record[4], i;
	float sum = 0.0f, most[2];

	if (h >= heads)
		return;
	UNROLL
	for (i = 0; i < b->kind.warps; i++)
		sum += few_sums(b)[i * heads + h];
	UNROLL
	for (i = 0; i < decode_groups(b->kind.format); i++)
		exponents[i / 4] |= (wide ? few_wide_of(b)->own[h][i] : byte[i])
				    << 8 * (i % 4);
	few_largest_scores(b, h & ~1u, most);
	exchange_make_record(h & 1u ? most[1] : most[0], sum, exponents,
			     record);
	g_store4_device(exchange_record(b, b->rank, h), record);
}

/* ---- A unit ------------------------------------------------------------ */

FN void
few_run_unit(const PRIVATE few_block *b)
{
	const uint32_t has_keys = b->warp < b->kind.warps;
	const uint32_t by_wgmma = few_by_wgmma(b);
	/* A count comes back as late as the rows. Where an SM has two blocks,
	 * it must not take a register beside scores. */
	const uint32_t idles = b->kind.warps < few_warps(b->kind);
	const uint32_t early =
		!idles &&
		FEW_P_ON_TAILS(b->kind.format.bf16_tail, b->kind.heads);
	uint32_t byte[FEW_GROUPS], record[4] = {0, 0, 0, 0};
	uint32_t tail[2][4], wide, before = 0, i;
	const few_slot slot = few_ask_slot(b);
	few_found found;
	few_scores score;
	few_o o;

	few_ask_queries(b, tail);
	found = few_find(b, &slot);
	if (!by_wgmma)
		few_report(b, &found);
	if (has_keys)
		few_ask_rows(b, &found);
	g_local_copies_commit();
	if (!idles)
		before = exchange_count(b);
	exchange_prefetch(b);
	few_store_queries(b, tail);
	if (by_wgmma)
		g_fence_async(); /* products read them */
	BARRIER();               /* queries are there */
	few_zero(b, score);
	if (has_keys) {
		const uint32_t key = FEW_KEYS * b->warp + b->lane / 4;
		uint32_t raw[2][4];
		few_keys keys;

		g_local_copies_wait();
		if (early)
			exchange_note(b, before);
		g_subgroup_barrier();
		UNROLL
		for (i = 0; i < 2; i++) {
			few_read_scales(b, key + 8 * i, raw[i]);
			few_relate(b->kind.format, raw[i], keys.scale[i],
				   keys.unit + i);
		}
		few_score(b, found.keys, &keys, score);
		few_note_scores(b, score);
		few_note_scales(b, raw);
	} else {
		before = exchange_count(b);
	}
	if (!early)
		exchange_note(b, before);
	BARRIER(); /* all rows and their notes are there */
	if (G_DEBUG)
		few_spoil(b, few_queries(b),
			  (uint32_t)(few_notes(b) - few_queries(b)));
	wide = few_units_of_p(b, byte);
	if (has_keys)
		few_weigh(b, score);
	if (UNLIKELY(wide))
		few_store_wide(b, byte, score);
	else if (has_keys)
		few_store_p(b, byte, score);
	if (by_wgmma)
		g_fence_async(); /* P too */
	BARRIER();               /* P is there */
	few_give_record(b, byte, wide);
	if (by_wgmma) {
		few_wgmma_multiply_values(b, o);
		exchange_ask(b, record);
		few_wgmma_give_o(b, o);
	} else if (b->warp < FEW_WARPS) {
		few_multiply_values(b, o);
		exchange_ask(b, record);
		few_give_o(b, o);
	}
	if (G_DEBUG)
		few_spoil(b, b->rows, (uint32_t)(few_notes(b) - b->rows));
	exchange_finish(b, record);
	if (by_wgmma) /* here its code is in nobody's way */
		few_report(b, &found);
}

/* A block has one unit. */
FN void
few_run(const PRIVATE few_args *a, few_kind kind, LOCAL uint8_t *local)
{
	const uint32_t groups = (a->s.heads + kind.heads - 1) / kind.heads;
	few_block b;

	b.a = a;
	b.kind = kind;
	b.rows = local;
	b.warp = g_item() / 32;
	b.lane = g_lane();
	b.unit = g_block() / kind.ranks;
	b.rank = g_block() % kind.ranks;
	b.token = b.unit / groups;
	b.first_head = b.unit % groups * kind.heads;
	G_DEBUG_BEGIN(a->fault_state, a->fault_status);
	few_run_unit(&b);
}

FN few_kind
few_kind_of(decode_format format, uint32_t heads, uint32_t ranks,
	    uint32_t warps)
{
	few_kind kind;

	kind.format = format;
	kind.heads = heads;
	kind.ranks = ranks;
	kind.warps = warps;
	return kind;
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_v32_16, 2)
void
spmla_k_sparse_decode_few_v32_16(SPMLA_KERNEL_ARGS(sparse_decode_few_v32_16))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(0, 8, 16));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_v32_16)};

	few_run(&a, few_kind_of(decode_fp8_ds_mla(), 16, 16, 8), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_v32_32, 1)
void
spmla_k_sparse_decode_few_v32_32(SPMLA_KERNEL_ARGS(sparse_decode_few_v32_32))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(0, 8, 32));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_v32_32)};

	few_run(&a, few_kind_of(decode_fp8_ds_mla(), 32, 16, 8), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_v32_64, 1)
void
spmla_k_sparse_decode_few_v32_64(SPMLA_KERNEL_ARGS(sparse_decode_few_v32_64))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(0, 8, 64));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_v32_64)};

	few_run(&a, few_kind_of(decode_fp8_ds_mla(), 64, 16, 8), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_v4_8, 1)
void
spmla_k_sparse_decode_few_v4_8(SPMLA_KERNEL_ARGS(sparse_decode_few_v4_8))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(1, 5, 8));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_v4_8)};

	few_run(&a, few_kind_of(decode_v4_fp8(), 8, 8, 5), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_v4_16, 1)
void
spmla_k_sparse_decode_few_v4_16(SPMLA_KERNEL_ARGS(sparse_decode_few_v4_16))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(1, 5, 16));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_v4_16)};

	few_run(&a, few_kind_of(decode_v4_fp8(), 16, 8, 5), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_v4_32, 1)
void
spmla_k_sparse_decode_few_v4_32(SPMLA_KERNEL_ARGS(sparse_decode_few_v4_32))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(1, 5, 32));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_v4_32)};

	few_run(&a, few_kind_of(decode_v4_fp8(), 32, 8, 5), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_v4_64, 1)
void
spmla_k_sparse_decode_few_v4_64(SPMLA_KERNEL_ARGS(sparse_decode_few_v4_64))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(1, 5, 64));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_v4_64)};

	few_run(&a, few_kind_of(decode_v4_fp8(), 64, 8, 5), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_long_16, 1)
void
spmla_k_sparse_decode_few_long_16(SPMLA_KERNEL_ARGS(sparse_decode_few_long_16))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(1, 9, 16));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_long_16)};

	few_run(&a, few_kind_of(decode_v4_fp8(), 16, 8, 9), local);
}

SPMLA_KERNEL_BLOCKS(sparse_decode_few_long_32, 1)
void
spmla_k_sparse_decode_few_long_32(SPMLA_KERNEL_ARGS(sparse_decode_few_long_32))
{
	LOCAL_DYNAMIC(local, FEW_BYTES(1, 9, 32));
	const few_args a = {SPMLA_KERNEL_VALUES(sparse_decode_few_long_32)};

	few_run(&a, few_kind_of(decode_v4_fp8(), 32, 8, 9), local);
}

#endif
#endif
