/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: a block a key, an item a column, so 512 or 128 of them. The hard
 * idea is that of what to wait for and what to work out: an item each looks the
 * rows of a group up, and where they begin, once for all; they are then read 8
 * at a time, all 16 loads of an item on their way before the first is used, and
 * one rescaling a step, not one a row, follows them. A block has neighbouring
 * tokens, for one in `ratio` of them ends a group and the others cost only
 * their slot.
 */
#ifndef SPMLA_PLATFORM_GPU_KV_COMPRESS_H
#define SPMLA_PLATFORM_GPU_KV_COMPRESS_H

#include "spmla/platform/gpu/compress_gpu.h"
#include "spmla/platform/gpu/mxfp4_gpu.h"

#define SPMLA_K_KV_COMPRESS(P, S)      \
	SPMLA_K_FAULT(P)               \
	P(const int32_t, positions)    \
	P(const int64_t, slot_mapping) \
	P(const int32_t, token_row)    \
	P(const int32_t, block_table)  \
	P(const int32_t, table_cols)   \
	P(const float, norm_weight)    \
	P(const float, cos_sin)        \
	P(const float, kv)             \
	P(const float, score)          \
	P(const float, ape)            \
	P(const int32_t, context_lens) \
	P(const uint8_t, state)        \
	P(uint8_t, cache)              \
	S(int64_t, kv_stride)          \
	S(int64_t, score_stride)       \
	S(uint64_t, page_stride_bytes) \
	SPMLA_S_STATE(S)               \
	S(uint32_t, tokens)            \
	S(uint32_t, has_lens)          \
	S(uint32_t, group_rows)        \
	S(uint32_t, cos_sin_rows)      \
	S(uint32_t, layout)            \
	S(uint32_t, page_entries)      \
	S(uint32_t, pages)             \
	S(float, norm_eps)             \
	S(float, e4m3_scale)
#define SPMLA_K_kv_compress(P, S)       SPMLA_K_KV_COMPRESS(P, S)
#define SPMLA_K_kv_compress_index(P, S) SPMLA_K_KV_COMPRESS(P, S)
SPMLA_KERNEL_SCALARS(kv_compress)
/* The same struct: both are one function. */
typedef spmla_k_kv_compress_scalars spmla_k_kv_compress_index_scalars;

#ifdef SPMLA_GPU_KERNELS

enum { COMPRESS_STEP = 8, COMPRESS_LANES = 16 };

/* Where a row of a group is. */
enum { COMPRESS_NONE, COMPRESS_STATE, COMPRESS_CALL };

/* What a block shares: of each row of the group where it is, and the floats
 * from there, and from ape, to the columns that the key's first is made of.
 * What all items would work out is looked up. */
typedef struct compress_local {
	uint64_t kv_at[SPMLA_COMPRESS_MOST];
	uint64_t score_at[SPMLA_COMPRESS_MOST];
	uint32_t ape_at[SPMLA_COMPRESS_MOST];
	uint32_t from[SPMLA_COMPRESS_MOST];
	float squares[SPMLA_V4_DIM];
	float largest[SPMLA_V4_DIM / COMPRESS_LANES];
	uint32_t lost; /* a row that should be there is not */
} compress_local;

/* The key of the group as the item's column has it: the sum over its rows. */
FN float
compress_rows(const LOCAL compress_local *shared, GLOBAL const float *kv,
	      GLOBAL const float *score, GLOBAL const float *ape,
	      GLOBAL const float *state, uint32_t group_rows)
{
	const float none = g_float(0xff800000u), log2_e = 1.44269504088896341f;
	float most = none, sum = 0.0f, acc = 0.0f;
	uint32_t first, k;

	for (first = 0; first < group_rows; first += COMPRESS_STEP) {
		float x[COMPRESS_STEP], v[COMPRESS_STEP], z[COMPRESS_STEP];
		float base, rescale, largest = most, s8 = 0.0f, a8 = 0.0f;

		UNROLL
		for (k = 0; k < COMPRESS_STEP; k++) {
			const uint32_t row = first + k;
			const uint32_t from = shared->from[row];
			const uint32_t call = from == COMPRESS_CALL;
			GLOBAL const float *p =
				(call ? kv : state) + shared->kv_at[row];
			GLOBAL const float *q =
				(call ? score : state) + shared->score_at[row];

			v[k] = p[g_item()];
			x[k] = q[g_item()];
			/* Where there is none, it was the first entry's. */
			v[k] = from == COMPRESS_NONE ? 0.0f : v[k];
			x[k] = from == COMPRESS_NONE ? none : x[k];
		}
		UNROLL
		for (k = 0; k < COMPRESS_STEP; k++)
			z[k] = shared->from[first + k] == COMPRESS_CALL
				       ? ape[shared->ape_at[first + k] +
					     g_item()]
				       : 0.0f;
		/* Of a saved row z is 0, which changes no more than the sign of
		 * a zero, and no weight. */
		UNROLL
		for (k = 0; k < COMPRESS_STEP; k++) {
			x[k] += z[k];
			largest = x[k] > largest ? x[k] : largest;
		}
		base = largest == none ? 0.0f : largest;
		rescale = g_exp2((most - base) * log2_e);
		most = largest;
		UNROLL
		for (k = 0; k < COMPRESS_STEP; k++) {
			const float weight = g_exp2((x[k] - base) * log2_e);

			s8 += weight;
			a8 += v[k] * weight;
		}
		sum = sum * rescale + s8;
		acc = acc * rescale + a8;
	}
	return g_div_rn(acc, sum);
}

/* The item's value of the key: normed, rotated, rounded. A barrier inside. */
FN float
compress_finish(LOCAL compress_local *shared, float c, float weight, float eps,
		GLOBAL const float *cos_sin, uint32_t dim)
{
	const uint32_t i = g_item();
	const uint32_t rope = dim - SPMLA_V4_ROPE;
	float sum = 0.0f, other;
	uint32_t k;

	shared->squares[i] = c * c;
	BARRIER();
	for (k = i % COMPRESS_LANES; k < dim; k += COMPRESS_LANES)
		sum += shared->squares[k];
	sum = g_sum16(sum) * (1.0f / (float)dim);
	c = c * g_div_rn(1.0f, g_sqrt_rn(sum + eps)) * weight;
	other = g_shuffle_xor_f(c, 1);
	if (i >= rope) {
		const float cos = cos_sin[(i - rope) / 2];
		const float sin = cos_sin[SPMLA_V4_ROPE / 2 + (i - rope) / 2];

		if (i % 2)
			c = c * cos + other * sin;
		else
			c = c * cos - other * sin;
	}
	return g_round_bf16(c);
}

/* The largest |y| of the item's `group` columns; NaN counts as 0. A barrier
 * inside. */
FN float
compress_amax(LOCAL compress_local *shared, float y, uint32_t group)
{
	const uint32_t lanes = group / COMPRESS_LANES;
	const uint32_t first = g_item() / group * lanes;
	float a = y < 0.0f ? -y : y;
	uint32_t k;

	a = g_max16(a > 0.0f ? a : 0.0f);
	if (g_item() % COMPRESS_LANES == 0)
		shared->largest[g_item() / COMPRESS_LANES] = a;
	BARRIER();
	for (k = 0; k < lanes; k++)
		a = shared->largest[first + k] > a ? shared->largest[first + k]
						   : a;
	return a;
}

/* The code of y, and *scale: the power of two for amax. 1 / scale is exact, and
 * 0 for an infinity. */
FN uint8_t
compress_e4m3(float y, float amax, PRIVATE uint32_t *scale)
{
	const float raw = g_div_rn(amax > 1e-4f ? amax : 1e-4f, 448.0f);
	const uint32_t bits = g_bits(g_pow2_up(raw));
	const uint32_t up = bits >> 23;

	*scale = bits;
	return (uint8_t)g_f32_to_e4m3(
		y * g_float(up >= 254 ? 0 : (254 - up) << 23));
}

/* y to its place in an entry. A barrier inside, but for rows of one scale. */
FN void
compress_store(LOCAL compress_local *shared, float y, GLOBAL uint8_t *page,
	       uint32_t entry, uint32_t entries, uint32_t layout,
	       float e4m3_scale, uint32_t dim)
{
	const uint32_t i = g_item();
	GLOBAL uint8_t *row = page + (uint64_t)entry * dim, *scales;
	uint32_t scale, code;

	if (dim == SPMLA_V4_DIM && layout == SPMLA_LAYOUT_V4_BF16) {
		((GLOBAL uint16_t *)page)[(uint64_t)entry * dim + i] =
			(uint16_t)g_bf16_bits(y);
	} else if (dim == SPMLA_V4_DIM && layout == SPMLA_LAYOUT_V4_E4M3) {
		row[i] = (uint8_t)g_f32_to_e4m3(g_div_rn(y, e4m3_scale));
	} else if (dim == SPMLA_V4_DIM) {
		const float amax =
			compress_amax(shared, y, SPMLA_V4_SCALE_GROUP);

		row = page + (uint64_t)entry * SPMLA_V4_VALUE_BYTES;
		scales = page + (uint64_t)entries * SPMLA_V4_VALUE_BYTES +
			 (uint64_t)entry * SPMLA_V4_SCALE_BYTES;
		code = compress_e4m3(y, amax, &scale);
		if (i < SPMLA_V4_NOPE)
			row[i] = (uint8_t)code;
		else
			((GLOBAL uint16_t
				  *)(row + SPMLA_V4_NOPE))[i - SPMLA_V4_NOPE] =
				(uint16_t)g_bf16_bits(y);
		if (i % SPMLA_V4_SCALE_GROUP == 0)
			scales[i / SPMLA_V4_SCALE_GROUP] =
				(uint8_t)(i < SPMLA_V4_NOPE ? scale >> 23 : 0u);
	} else if (layout == SPMLA_LAYOUT_INDEX_FP8) {
		const float amax = compress_amax(shared, y, SPMLA_INDEX_DIM);

		row[i] = compress_e4m3(y, amax, &scale);
		if (i == 0)
			((GLOBAL uint32_t *)(page +
					     (uint64_t)entries * dim))[entry] =
				scale;
	} else {
		scale = g_mxfp4_scale(
			compress_amax(shared, y, SPMLA_MXFP4_GROUP));
		code = g_f32_to_e2m1(y * g_mxfp4_inverse(scale));
		code |= g_shuffle_xor(code, 1) << 4; /* of an even item */
		row = page + (uint64_t)entry * SPMLA_INDEX_MXFP4_VALUE_BYTES;
		scales = page +
			 (uint64_t)entries * SPMLA_INDEX_MXFP4_VALUE_BYTES +
			 (uint64_t)entry * SPMLA_INDEX_MXFP4_SCALES;
		if (i % 2 == 0)
			row[i / 2] = (uint8_t)code;
		if (i % SPMLA_MXFP4_GROUP == 0)
			scales[i / SPMLA_MXFP4_GROUP] = (uint8_t)scale;
	}
}

/* Looks up row i of t's group. The table is asked for whether or not the call
 * has the row. */
FN void
compress_find(LOCAL compress_local *shared, GLOBAL const int32_t *positions,
	      GLOBAL const int32_t *token_row,
	      GLOBAL const int32_t *context_lens,
	      GLOBAL const int32_t *block_table,
	      GLOBAL const int32_t *table_cols,
	      const spmla_k_kv_compress_scalars s, uint32_t t, uint32_t i,
	      int32_t position, int32_t row, uint32_t dim)
{
	const int32_t back = (int32_t)s.group_rows - 1 - (int32_t)i;
	const int32_t p = position - back;
	const int64_t j = (int64_t)t - back;
	const uint32_t near = s.ring && p >= 0 && j >= 0;
	const int32_t near_row = near ? token_row[j] : -1;
	const int32_t near_position = near ? positions[j] : -1;
	const int32_t near_len = near && s.has_lens ? context_lens[j] : 1;
	const uint32_t col = i < s.ratio ? 0 : dim;
	uint64_t at = G_STATE_NONE;
	uint32_t from = COMPRESS_NONE;

	if (p >= 0)
		at = g_state_at(block_table, table_cols, s.has_cols, s.columns,
				s.table_stride, s.ring, s.state_pages,
				s.state_page_bytes, s.state_entries, s.width,
				(uint32_t)row, (uint32_t)p);
	shared->kv_at[i] = shared->score_at[i] = 0;
	if (near_row == row && near_position == p && near_len > 0) {
		from = COMPRESS_CALL;
		shared->kv_at[i] = (uint64_t)(j * s.kv_stride) + col;
		shared->score_at[i] = (uint64_t)(j * s.score_stride) + col;
	} else if (at != G_STATE_NONE) {
		from = COMPRESS_STATE;
		shared->kv_at[i] = at / 4 + col;
		shared->score_at[i] = at / 4 + s.width + col;
	} else if (p >= 0) {
		shared->lost = 1;
	}
	shared->from[i] = from;
	shared->ape_at[i] = i % s.ratio * s.width + col;
}

FN void
compress_run(SPMLA_K_KV_COMPRESS(SPMLA_I_K_PARAM, SPMLA_I_K_NONE)
		     const spmla_k_kv_compress_scalars s,
	     LOCAL compress_local *shared, const uint32_t dim)
{
	const uint32_t share = (s.tokens - 1) / g_blocks() + 1;
	const uint64_t begin = (uint64_t)g_block() * share;
	const uint32_t i = g_item();
	uint32_t n;

	for (n = 0; n < share && n + begin < s.tokens; n++) {
		const uint32_t t = (uint32_t)begin + n;
		const int64_t slot = slot_mapping[t];
		const int32_t position = positions[t];
		const int32_t row = token_row[t];
		const uint32_t group =
			(uint32_t)position - (uint32_t)position % s.ratio;
		const uint64_t page = (uint64_t)slot / s.page_entries;
		const uint32_t entry =
			(uint32_t)((uint64_t)slot % s.page_entries);
		float y = 0.0f;
		uint32_t fault = 0;

		if (slot < 0 ||
		    (position >= 0 && ((uint32_t)position + 1) % s.ratio))
			continue;
		if (page >= s.pages)
			fault = G_FAULT_SLOT;
		else if (position < 0 || group >= s.cos_sin_rows)
			fault = G_FAULT_POSITION;
		else if ((uint32_t)row >= s.rows)
			fault = G_FAULT_ROW;
		if (fault) {
			if (i == 0)
				g_fault(fault_state, fault_status, t, fault);
			continue;
		}
		BARRIER(); /* the key before is done */
		if (i == 0)
			shared->lost = 0;
		BARRIER();
		if (i < s.group_rows)
			compress_find(shared, positions, token_row,
				      context_lens, block_table, table_cols, s,
				      t, i, position, row, dim);
		BARRIER();
		if (!shared->lost) {
			y = compress_rows(shared, kv, score, ape,
					  (GLOBAL const float *)state,
					  s.group_rows);
			y = compress_finish(
				shared, y, norm_weight[i], s.norm_eps,
				cos_sin + (uint64_t)group * SPMLA_V4_ROPE, dim);
		} else if (i == 0) {
			g_fault(fault_state, fault_status, t, G_FAULT_PAGE);
		}
		compress_store(
			shared, y, cache + (uint32_t)page * s.page_stride_bytes,
			entry, s.page_entries, s.layout, s.e4m3_scale, dim);
	}
}

#define ARGS_NAME(type, name) name,

SPMLA_KERNEL(kv_compress)
{
	LOCAL_ARRAY(compress_local, shared, 1);

	compress_run(SPMLA_K_KV_COMPRESS(ARGS_NAME, SPMLA_I_K_NONE) s, shared,
		     SPMLA_V4_DIM);
}

SPMLA_KERNEL(kv_compress_index)
{
	LOCAL_ARRAY(compress_local, shared, 1);

	compress_run(SPMLA_K_KV_COMPRESS(ARGS_NAME, SPMLA_I_K_NONE) s, shared,
		     SPMLA_INDEX_DIM);
}

#undef ARGS_NAME
#endif
#endif
