/* SPDX-License-Identifier: Apache-2.0
 *
 * split_combine: a block has one head of a token, a thread four columns. The
 * hard idea: subgroups share nothing, so there is no barrier, and yet no bit
 * depends on their width. Each 16 lanes read all lse of the row and add them up
 * in the same order, while the values of the first splits are on their way.
 * Then they have the weights of 16 splits at a time, and broadcast them one by
 * one. A split with lse -inf is skipped, whatever its values are: exp2(-inf -
 * g) would be NaN if g is infinite too.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPLIT_COMBINE_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPLIT_COMBINE_KERNEL_H

#include "spmla/platform/gpu/attend/decode_work_device.h"

#define SPMLA_K_split_combine(P, S)    \
	SPMLA_K_FAULT(P)               \
	P(const int32_t, num_splits)   \
	P(const float, split_out)      \
	P(const float, split_lse)      \
	P(const float, attn_sink)      \
	P(uint16_t, out)               \
	P(float, lse)                  \
	S(int64_t, out_request_stride) \
	S(int64_t, out_token_stride)   \
	S(int64_t, out_head_stride)    \
	S(int64_t, lse_request_stride) \
	S(int64_t, lse_token_stride)   \
	S(int64_t, lse_head_stride)    \
	S(uint32_t, tokens)            \
	S(uint32_t, whole_tokens)      \
	S(uint32_t, heads)             \
	S(uint32_t, split_rows)        \
	S(uint32_t, has_sink)          \
	S(uint32_t, has_lse)           \
	S(spmla_g_divisor, next_n)     \
	S(uint32_t, base2)             \
	S(uint32_t, lse_sink)          \
	S(float, empty_lse)
SPMLA_KERNEL_SCALARS(split_combine)

enum {
	COMBINE_LANES = 16, /* that add up the lse of a row */
	COMBINE_AHEAD = 4,  /* lse that a lane has in flight */
	COMBINE_COLUMNS = SPMLA_MLA_LATENT / SPMLA_ITEMS_split_combine,
	COMBINE_SPLITS = 8 /* whose values a lane has in flight */
};

#ifdef SPMLA_GPU_KERNELS

/* The lse of splits first + 16 i + lane; -inf behind the last split. `lse` is
 * the head's in the first split; the next split's is `heads` further on. */
FN void
split_combine_fetch(GLOBAL const float *lse, uint32_t heads, uint32_t first,
		    uint32_t n, PRIVATE float *x)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < COMBINE_AHEAD; i++) {
		const uint32_t r =
			first + i * COMBINE_LANES + g_lane() % COMBINE_LANES;

		x[i] = r < n ? lse[(uint64_t)r * heads] : G_MINUS_INF;
	}
}

/* g of n splits: log2 of the sum of exp2(lse); +inf if all are -inf. */
FN float
split_combine_log_sum(GLOBAL const float *lse, uint32_t heads, uint32_t n)
{
	const uint32_t step = COMBINE_AHEAD * COMBINE_LANES;
	const float none = G_MINUS_INF;
	float x[COMBINE_AHEAD], most = none, sum = 0.0f;
	uint32_t first, i;

	for (first = 0; first < n; first += step) {
		split_combine_fetch(lse, heads, first, n, x);
		UNROLL
		for (i = 0; i < COMBINE_AHEAD; i++)
			most = x[i] > most ? x[i] : most; /* never NaN */
	}
	most = g_max16(most);
	if (most == none)
		most = 0.0f;
	for (first = 0; first < n; first += step) {
		split_combine_fetch(lse, heads, first, n, x);
		UNROLL
		for (i = 0; i < COMBINE_AHEAD; i++)
			sum += g_exp2(x[i] - most);
	}
	sum = g_sum16(sum);
	return sum == 0.0f ? G_INF : g_log2(sum) + most;
}

/* Loads the lane's columns of splits first .. first + COMBINE_SPLITS - 1, as
 * far as they are below n. `values` is the lane's first value of split 0; the
 * next split is `stride` further on. */
FN void
split_combine_load(GLOBAL const float *values, uint64_t stride, uint32_t first,
		   uint32_t n, float v[COMBINE_SPLITS][COMBINE_COLUMNS])
{
	const uint32_t width = g_width();
	uint32_t i, c;

	UNROLL
	for (i = 0; i < COMBINE_SPLITS; i++) {
		GLOBAL const float *from = values + (first + i) * stride;

		UNROLL
		for (c = 0; c < COMBINE_COLUMNS; c++)
			v[i][c] = first + i < n ? from[c * width] : 0.0f;
	}
}

/* sum += weight * values of n splits, in their order, for the lane's columns.
 * `v` has the values of the first splits. */
FN void
split_combine_values(GLOBAL const float *values, uint64_t stride,
		     GLOBAL const float *lse, uint32_t heads, uint32_t n,
		     float g, float v[COMBINE_SPLITS][COMBINE_COLUMNS],
		     PRIVATE float *sum)
{
	const float none = G_MINUS_INF;
	uint32_t first, at, i, c;

	for (first = 0; first < n; first += COMBINE_LANES) {
		const uint32_t own = first + g_lane() % COMBINE_LANES;
		const float x = own < n ? lse[(uint64_t)own * heads] : none;
		const float weight = x == none ? 0.0f : g_exp2(x - g);
		const uint32_t some = (uint32_t)g_ballot(x != none);

		for (at = 0; at < COMBINE_LANES; at += COMBINE_SPLITS) {
			if (!(some >> at & ((1u << COMBINE_SPLITS) - 1u)))
				continue;
			if (first + at)
				split_combine_load(values, stride, first + at,
						   n, v);
			/* 0 * 0 changes no sum: it is never -0. */
			UNROLL
			for (i = 0; i < COMBINE_SPLITS; i++) {
				const uint32_t is = some >> (at + i) & 1u;
				const float w = g_float(
					g_broadcast(g_bits(weight), at + i));

				UNROLL
				for (c = 0; c < COMBINE_COLUMNS; c++)
					sum[c] += w * (is ? v[i][c] : 0.0f);
			}
		}
	}
}

SPMLA_KERNEL(split_combine)
void
spmla_k_split_combine(SPMLA_KERNEL_ARGS(split_combine))
{
	const uint32_t width = g_width(), own = g_item() / width;
	const uint32_t column = own * COMBINE_COLUMNS * width + g_lane();
	const uint64_t rows = (uint64_t)(s.tokens - s.whole_tokens) * s.heads;
	uint64_t row;

	for (row = g_block(); row < rows; row += g_blocks()) {
		const uint32_t request = (uint32_t)(row / s.heads);
		const uint32_t t = s.whole_tokens + request;
		const uint32_t h = (uint32_t)(row % s.heads);
		int64_t first = num_splits[request];
		int64_t end = num_splits[request + 1];
		GLOBAL uint16_t *to =
			out +
			decode_token_at(t, s.next_n, s.out_request_stride,
					s.out_token_stride) +
			(int64_t)h * s.out_head_stride + column;
		const uint64_t stride = (uint64_t)s.heads * SPMLA_MLA_LATENT;
		float v[COMBINE_SPLITS][COMBINE_COLUMNS];
		float sum[COMBINE_COLUMNS], g;
		GLOBAL const float *values, *row_lse;
		uint32_t n, c;

		if (end - first == 1)
			continue; /* it is done */
		if (first < 0 || end < first || end > (int64_t)s.split_rows) {
			if (h == 0 && g_item() == 0)
				g_fault(fault_state, fault_status, t,
					G_FAULT_INDEX);
			first = end = 0;
		}
		n = (uint32_t)(end - first);
		row_lse = split_lse + (uint64_t)first * s.heads + h;
		values = split_out + (uint64_t)first * stride +
			 (uint64_t)h * SPMLA_MLA_LATENT + column;
		split_combine_load(values, stride, 0, n, v);
		g = split_combine_log_sum(row_lse, s.heads, n);
		if (s.has_lse && g_item() == 0)
			lse[decode_token_at(t, s.next_n, s.lse_request_stride,
					    s.lse_token_stride) +
			    (int64_t)h * s.lse_head_stride] =
				decode_result_lse(g == G_INF, g, g, s.empty_lse,
						  s.base2, s.lse_sink,
						  s.lse_sink ? attn_sink[h]
							     : 0.0f);
		if (s.has_sink)
			g = decode_g_with_sink(g, attn_sink[h]);
		UNROLL
		for (c = 0; c < COMBINE_COLUMNS; c++)
			sum[c] = 0.0f;
		split_combine_values(values, stride, row_lse, s.heads, n, g, v,
				     sum);
		UNROLL
		for (c = 0; c < COMBINE_COLUMNS; c++)
			to[c * width] = (uint16_t)g_f32_to_bf16(sum[c]);
	}
}

#endif
#endif
