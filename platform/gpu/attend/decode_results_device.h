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

/* The exponent of that factor; bf16 needs none. */
FN float
decode_p_bias(decode_format f)
{
	return f.bf16_rows ? 0.0f : DECODE_P_BIAS;
}

/* Adds the sums of both warpgroups, for both. */
FN void
decode_join_sums(const PRIVATE decode_worker *w, PRIVATE float *sum)
{
	uint32_t r;

	g_named_sync(DECODE_SUMS, 256); /* references are read */
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

/* The largest scores over both warpgroups, for both. */
FN void
decode_join_largest(const PRIVATE decode_worker *w, PRIVATE float *largest)
{
	uint32_t r;

	g_named_sync(DECODE_SUMS, 256); /* sums are read */
	UNROLL
	for (r = 0; r < 2; r++)
		if (decode_item_lane() % 4 == 0)
			w->mem->reach[w->right][decode_head() + 8 * r] =
				largest[r];
	g_named_sync(DECODE_SUMS, 256);
	UNROLL
	for (r = 0; r < 2; r++)
		largest[r] = g_larger(w->mem->reach[0][decode_head() + 8 * r],
				      w->mem->reach[1][decode_head() + 8 * r]);
}

/* The first column of 16-byte piece i of a warpgroup's part of a row of
 * results, which is from its panel i / 8. */
FN uint32_t
decode_column(const PRIVATE decode_worker *w, uint32_t i)
{
	const uint32_t panel = 4 * w->right + i / 8;

	return decode_panel_dim(w->format, panel) +
	       ((i % 8) ^ (w->format.bf16_rows ? 0 : panel & 1u)) * 8;
}

/* Writes a head's results as bf16. Each lane of a quad has 2 of 8 columns;
 * lanes exchange them, so that each writes 16 bytes. */
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

/* Writes a head's results of a split, as f32. */
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
	const float bias = w->format.bf16_rows
				   ? 1.0f
				   : 1.0f / (float)(1u << DECODE_KEY_BIAS);
	const uint32_t has_most = w->format.bf16_rows && s->has_max_logits;
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
	if (has_most)
		decode_join_largest(w, h->largest);
	UNROLL
	for (r = 0; r < 2; r++) {
		const uint32_t head =
			decode_first_head(w, bits) + decode_head() + 8 * r;
		const uint32_t is = head < s->heads;
		const uint64_t row = split_row * s->heads + head;
		const float reach = h->reach[r] * decode_unit_of(w, h, r) -
				    decode_p_bias(w->format);
		const float lse2 = reach + g_log2(h->sum[r]);
		const float natural = h->reach[r] * decode_scale_of(w, h, r);
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
		if (has_most)
			a->max_logits[decode_token_at(t, s->next_n,
						      s->lse_request_stride,
						      s->lse_token_stride) +
				      (int64_t)head * s->lse_head_stride] =
				empty[r] ? G_MINUS_INF
					 : h->largest[r] * s->scale *
						   (s->base2 ? G_LOG2_E : 1.0f);
		if (!whole)
			a->split_lse[row] = empty[r] ? G_MINUS_INF : lse2;
		else if (s->has_lse)
			a->lse[decode_token_at(t, s->next_n,
					       s->lse_request_stride,
					       s->lse_token_stride) +
			       (int64_t)head * s->lse_head_stride] =
				decode_result_lse(
					empty[r], lse2, natural, s->empty_lse,
					s->base2, s->lse_sink,
					s->lse_sink ? a->attn_sink[head]
						    : 0.0f);
	}
	/* An empty head's O is 0, or NaN if a key is NaN: it becomes 0. */
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

/* Adds up the splits of a token. This block has written one of them. `waits`:
 * the block has no other work. */
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

#endif
#endif
