/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of sparse_decode_wgmma: out and lse of a token, or of a split of
 * it. The blocks that have the token's splits may add them up.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_RESULTS_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_RESULTS_DEVICE_H

#include "spmla/platform/gpu/attend/decode_combine_device.h"
#include "spmla/platform/gpu/attend/decode_queries_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* In powers of two: how far above 2^0 a weight may be, and the factor of all
 * weights that lets f16 hold small ones. */
#define DECODE_REACH  8.0f
#define DECODE_P_BIAS 7.0f
#define DECODE_P_UNIT 0x1p-7f /* 2^-DECODE_P_BIAS */

/* The exponent of that factor; bf16 needs none. */
FN float
decode_p_bias(decode_format f)
{
	return f.code == DECODE_BF16 ? 0.0f : DECODE_P_BIAS;
}

/* 1 / that factor. */
FN float
decode_p_unit(decode_format f)
{
	return f.code == DECODE_BF16 ? 1.0f : DECODE_P_UNIT;
}

/* Adds the sums of both warpgroups, for both, and finds the larger of their
 * largest scores. With fp8 rows scores pass through the place of P of `tile`, the
 * token's last one. */
FN void
decode_join(const PRIVATE decode_worker *w, uint32_t tile,
	    PRIVATE decode_heads *h)
{
	const uint32_t is_bf16 = w->format.code == DECODE_BF16;
	LOCAL decode_memory *mem = w->mem;
	LOCAL float *p =
		(LOCAL float *)(mem->keys[tile] + 8 * DECODE_PANEL_BYTES);
	uint32_t r;

	g_named_sync(DECODE_SUMS, 256); /* references and P are read */
	UNROLL
	for (r = 0; r < 2; r++) {
		const uint32_t head = decode_head() + 8 * r;

		h->sum[r] += g_shuffle_xor_f(h->sum[r], 1);
		h->sum[r] += g_shuffle_xor_f(h->sum[r], 2);
		if (decode_item_lane() % 4)
			continue;
		mem->reach[w->right][head] = h->sum[r];
		if (is_bf16)
			mem->largest[w->right][head] = h->largest[r];
		else
			p[w->right * DECODE_HEADS + head] = h->largest[r];
	}
	g_named_sync(DECODE_SUMS, 256);
	UNROLL
	for (r = 0; r < 2; r++) {
		const uint32_t head = decode_head() + 8 * r;

		h->sum[r] = mem->reach[0][head] + mem->reach[1][head];
		if (is_bf16)
			h->largest[r] = g_larger(mem->largest[0][head],
						 mem->largest[1][head]);
		else
			h->largest[r] =
				g_larger(p[head], p[DECODE_HEADS + head]);
	}
}

/* The first column of 16-byte piece i of a warpgroup's part of a row of
 * results, which is from its panel i / 8. */
FN uint32_t
decode_column(const PRIVATE decode_worker *w, uint32_t i)
{
	const uint32_t panel = 4 * w->right + i / 8;

	return decode_panel_dim(w->format, panel) +
	       ((i % 8) ^ (w->format.code == DECODE_BF16 ? 0 : panel & 1u)) * 8;
}

/* The results of the warp's heads as bf16: in shared memory they take the place
 * of a tile's values, which nobody needs any more, and keep their layout. `by`
 * has the factors of the item's two heads. */
FN void
decode_stage_bf16(const PRIVATE decode_worker *w, uint32_t tile,
		  const PRIVATE float *by, const PRIVATE float *o)
{
	const uint32_t lane = decode_item_lane(), row = lane % 16;
	LOCAL uint8_t *to = w->mem->keys[tile] +
			    (2 * decode_warp() + row / 8) * DECODE_OCTET_BYTES +
			    4 * w->right * DECODE_PANEL_BYTES + row % 8 * 128;
	uint32_t m, i;

	UNROLL
	for (m = 0; m < 16; m++) {
		const uint32_t piece = 2 * (m % 4) + lane / 16;
		uint32_t x[4];

		UNROLL
		for (i = 0; i < 4; i++)
			x[i] = g_f32_to_bf16x2(o[8 * m + 2 * i] * by[i % 2],
					       o[8 * m + 2 * i + 1] *
						       by[i % 2]);
		g_store_matrices((LOCAL uint16_t *)(to +
						    m / 4 * DECODE_PANEL_BYTES +
						    ((piece ^ row % 8) << 4)),
				 x);
	}
	g_subgroup_barrier();
}

/* Writes these results to `to`, where the warp's first head lies, by half rows.
 * The first `heads` of the warp's 16 heads exist. Bit 4 (h % 8) + h / 8 of
 * `empty` says that head h has no key. Its O is 0, or NaN if a key is NaN, and
 * becomes 0. The usual case is straight code. It runs once a token, so its
 * instructions are not cached, and fewer of them are faster than a loop. */
FN void
decode_write_bf16(const PRIVATE decode_worker *w, uint32_t tile, uint32_t heads,
		  uint32_t empty, GLOBAL uint16_t *to, int64_t stride)
{
	const uint32_t lane = decode_item_lane();
	LOCAL const uint8_t *from =
		w->mem->keys[tile] + 2 * decode_warp() * DECODE_OCTET_BYTES +
		(4 * w->right + lane / 8) * DECODE_PANEL_BYTES;
	uint32_t h, n, i;

	to += decode_column(w, lane);
	if (UNLIKELY(heads < 16 || empty)) {
		NO_UNROLL
		for (h = 0; h < 16 && h < heads; h++) {
			uint32_t x[4];

			g_local_load128(from + h / 8 * DECODE_OCTET_BYTES +
						h % 8 * 128 +
						((lane % 8 ^ h % 8) << 4),
					x);
			UNROLL
			for (i = 0; i < 4; i++)
				x[i] = empty >> (h % 8 * 4 + h / 8) & 1u ? 0
									 : x[i];
			g_store4(to, x);
			to += stride;
		}
		return;
	}
	UNROLL
	for (h = 0; h < 16; h += 8) {
		uint32_t x[8][4];

		UNROLL
		for (n = 0; n < 8; n++)
			g_local_load128(from + h / 8 * DECODE_OCTET_BYTES +
						n * 128 + ((lane % 8 ^ n) << 4),
					x[n]);
		UNROLL
		for (n = 0; n < 8; n++) {
			g_store4(to, x[n]);
			to += stride;
		}
	}
}

/* Writes a head's results of a split as f32. `o` begins at the head's first
 * value; `by` is its factor. */
FN void
decode_write_f32(const PRIVATE decode_worker *w, const PRIVATE float *o,
		 float by, uint32_t empty, GLOBAL float *to)
{
	uint32_t i;

	to += 2 * (decode_item_lane() % 4);
	UNROLL
	for (i = 0; i < 32; i++)
		g_store2f(to + decode_column(w, i),
			  empty ? 0.0f : o[4 * i] * by,
			  empty ? 0.0f : o[4 * i + 1] * by);
}

/* ln of sum * exp(reach * scale), for a sum of 2^-126 to 2^126 or NaN. Nothing
 * is rounded at the size of the result but the last addition. */
FN float
decode_ln(float sum, float reach, float scale)
{
	const uint32_t bits = g_bits(sum);
	const float power = (float)((int32_t)(bits >> 23) - 127);
	const float rest = sum * g_float((254u - (bits >> 23)) << 23);
	const float x = reach * scale, y = power * G_LN_2, all = x + y;
	const float of_y = all - x;
	const float off = g_fma(reach, scale, -x) + g_fma(power, G_LN_2, -y) +
			  ((x - (all - of_y)) + (y - of_y));

	return g_abs(all) == G_INF ? all * sum
				   : all + (g_log2(rest) * G_LN_2 + off);
}

/* Writes lse and max_logits of a head. `lse2` and `natural` are logarithms of its
 * sum. With bf16 rows `natural` is only what weights are relative to, and not
 * used unless lse2 is infinite. */
FN void
decode_write_lse(const PRIVATE decode_worker *w, LOCAL const decode_run *run,
		 uint32_t head, uint64_t split_row, float lse2, float natural,
		 float largest, uint32_t empty)
{
	const PRIVATE decode_args *a = w->a;
	const decode_scalars *s = &a->s;
	const int64_t at =
		decode_token_at(run->token, s->next_n, s->lse_request_stride,
				s->lse_token_stride) +
		(int64_t)head * s->lse_head_stride;

	if (w->format.code == DECODE_BF16 && s->has_max_logits)
		a->max_logits[at] =
			empty ? G_MINUS_INF
			      : largest * s->scale *
					(s->base2 ? G_LOG2_E : 1.0f);
	if (!w->format.whole && run->bits & DECODE_PIECE)
		a->split_lse[split_row * s->heads + head] =
			!empty ? lse2 : G_MINUS_INF;
	else if (s->has_lse && w->format.code != DECODE_BF16 && !empty &&
		 !s->base2 && !s->lse_sink)
		a->lse[at] = natural;
	else if (s->has_lse)
		a->lse[at] = decode_result_lse(
			empty, lse2, natural, s->empty_lse, s->base2,
			s->lse_sink, s->lse_sink ? a->attn_sink[head] : 0.0f);
}

/* What rounding to f16 adds to a weight of 2^x. */
FN float
decode_rounding(float x)
{
	const float weight = g_exp2_flush(x);
	float rounded, zero;

	g_f16x2_to_f32(g_f32_to_f16x2(weight, 0.0f), &rounded, &zero);
	return rounded - weight;
}

/* The results of a token or a split. An item has two heads. An even lane looks
 * after the first, an odd one after the second, so that the code stands once.
 * They pass through the place of the token's last tile. */
FN void
decode_write(const PRIVATE decode_worker *w, LOCAL const decode_run *run,
	     uint32_t tile, PRIVATE decode_heads *h)
{
	const PRIVATE decode_args *a = w->a;
	const decode_scalars *s = &a->s;
	const uint32_t bits = run->bits, r = decode_item_lane() & 1u;
	const uint32_t whole = w->format.whole || !(bits & DECODE_PIECE);
	const uint32_t first = decode_first_head(w, bits) + decode_warp() * 16;
	const uint32_t head =
		decode_first_head(w, bits) + decode_head() + 8 * r;
	const uint32_t is = head < s->heads;
	const float bias = w->format.code == DECODE_BF16
				   ? 1.0f
				   : 1.0f / (float)(1u << DECODE_KEY_BIAS);
	uint64_t split_row = 0;
	float sum, reach, log2_reach, total, by[2], factor, other;
	uint32_t empty, i;

	if (!whole)
		split_row =
			(uint32_t)a->num_splits[run->token - s->whole_tokens] +
			(bits >> DECODE_SPLIT_AT);
	decode_join(w, tile, h);
	sum = r ? h->sum[1] : h->sum[0];
	reach = r ? h->reach[1] : h->reach[0];
	log2_reach = reach * decode_unit_of(w, h, r);
	empty = sum == 0.0f;
	if (is && !w->right && decode_item_lane() % 4 < 2)
		decode_write_lse(w, run, head, split_row,
				 log2_reach +
					 g_log2(sum * decode_p_unit(w->format)),
				 w->format.code == DECODE_BF16
					 ? reach * decode_scale_of(w, h, r)
					 : decode_ln(sum * DECODE_P_UNIT, reach,
						     decode_scale_of(w, h, r)),
				 r ? h->largest[1] : h->largest[0], empty);
	total = sum;
	if (w->format.code != DECODE_BF16)
		total += decode_rounding(
			g_fma((r ? h->largest[1] : h->largest[0]) - reach,
			      decode_unit_of(w, h, r), DECODE_P_BIAS));
	if (whole && s->has_sink && is)
		total += g_sink_weight(a->attn_sink[head],
				       log2_reach - decode_p_bias(w->format));
	factor = g_div_rn(bias, total);
	other = g_shuffle_xor_f(factor, 1);
	by[0] = r ? other : factor;
	by[1] = r ? factor : other;
	empty = (uint32_t)g_ballot(empty);
	if (whole || decode_combines(a)) {
		decode_stage_bf16(w, tile, by, h->o);
		decode_write_bf16(
			w, tile, s->heads > first ? s->heads - first : 0, empty,
			whole ? a->out +
					decode_token_at(run->token, s->next_n,
							s->out_request_stride,
							s->out_token_stride) +
					(int64_t)first * s->out_head_stride
			      : decode_split_values(a, split_row, s->heads,
						    first),
			whole ? s->out_head_stride : SPMLA_MLA_LATENT);
		return;
	}
	UNROLL
	for (i = 0; i < 2; i++) {
		const uint32_t row = decode_head() + 8 * i;

		if (decode_first_head(w, bits) + row < s->heads)
			decode_write_f32(w, h->o + 2 * i, by[i],
					 empty >> (row % 8 * 4 + i) & 1u,
					 a->split_out +
						 (split_row * s->heads +
						  decode_first_head(w, bits) +
						  row) * SPMLA_MLA_LATENT);
	}
}

/* Adds up the splits of a token. This block has written one of them. `waits`:
 * the block has no other work. */
FN void
decode_combine(const PRIVATE decode_worker *w, LOCAL const decode_run *run,
	       uint32_t waits)
{
	const PRIVATE decode_args *a = w->a;
	GLOBAL const int32_t *splits;
	decode_splits t;

	t.heads = g_here(a->s.heads);
	t.lane = decode_item_lane();
	t.token = run->token;
	t.first_head = decode_first_head(w, run->bits);
	if (!(run->bits & DECODE_PIECE) || t.first_head >= t.heads)
		return;
	splits = a->num_splits + (t.token - a->s.whole_tokens);
	t.row = (uint32_t)splits[0];
	t.count = (uint32_t)splits[1] - t.row;
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

#endif
#endif
