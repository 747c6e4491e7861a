/* SPDX-License-Identifier: Apache-2.0
 *
 * qnorm_rope_kv_insert on the CPU: a token's heads one by one, and the keys by
 * slot, so that the later of two keys for one slot stays.
 */
#include "spmla/platform/cpu/cache/rope_cpu.h"
#include "spmla/platform/cpu/cache/v4_row_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"

#include <math.h>
#include <string.h>

enum { DIM = SPMLA_V4_DIM, OCTET = 8, PIECE = SPMLA_V4_ROPE };

typedef spmla_qnorm_rope_kv_insert_args insert_args;

/* Octets go to lanes in turn: on a GPU an octet is one load of 16 bytes. */
static float
sum_of_squares(const uint16_t *row)
{
	float lane[SPMLA_I_LANES] = {0};
	uint32_t v;

	for (v = 0; v < DIM; v++) {
		const float x = spmla_i_bf16_to_f32(row[v]);

		lane[v / OCTET % SPMLA_I_LANES] += x * x;
	}
	return spmla_i_cpu_tree(lane);
}

/* Writes x[64] as bf16, rotated if cos_sin is not NULL. */
static void
round_piece(float *x, const float *cos_sin, uint16_t *out)
{
	uint32_t i;

	if (cos_sin)
		spmla_i_cpu_rope(x, cos_sin, SPMLA_ROPE_INTERLEAVED);
	for (i = 0; i < PIECE; i++)
		out[i] = spmla_i_cpu_bf16_bits(x[i]);
}

/* `out` may be q. */
static void
prepare_head(const uint16_t *q, float eps, const float *cos_sin, uint16_t *out)
{
	const float mean = sum_of_squares(q) * (1.0f / (float)DIM);
	const float r = 1.0f / sqrtf(mean + eps);
	uint32_t v, i;

	for (v = 0; v < DIM; v += PIECE) {
		float x[PIECE];

		spmla_i_cpu_load16(x, q + v, PIECE, SPMLA_DTYPE_BF16);
		for (i = 0; i < PIECE; i++)
			x[i] *= r;
		round_piece(x, v < SPMLA_V4_NOPE ? NULL : cos_sin, out + v);
	}
}

/* `cos_sin` is the position's row; NULL: zeros. */
static void
prepare_query(const insert_args *a, uint32_t t, const float *cos_sin)
{
	const uint16_t *q = a->q + t * a->q_token_stride_elems;
	uint16_t *out = a->q_out + t * a->q_out_token_stride_elems;
	uint32_t h;

	for (h = 0; h < a->padded_heads; h++) {
		if (cos_sin && h < a->heads)
			prepare_head(q, a->norm_eps, cos_sin, out);
		else
			memset(out, 0, DIM * sizeof *out);
		q += a->q_head_stride_elems;
		out += a->q_out_head_stride_elems;
	}
}

/* Writes the key of a token to a slot inside the cache. Not inlined: with the
 * caller's rows it would need more than 1 KiB of stack. */
static void __attribute__((noinline))
insert_key(const insert_args *a, const spmla_i_cpu_kernels *kernels, uint32_t t,
	   uint64_t slot, const float *cos_sin)
{
	const uint16_t *row = a->kv + t * a->kv_stride_elems;
	uint16_t rope[PIECE];
	float x[PIECE];

	spmla_i_cpu_load16(x, row + SPMLA_V4_NOPE, PIECE, SPMLA_DTYPE_BF16);
	round_piece(x, cos_sin, rope);
	spmla_i_cpu_v4_write(kernels, &a->cache, slot, row, rope,
			     a->kv_scale_at ? *a->kv_scale_at : a->kv_scale);
}

/* Does the item's tokens, and the keys whose slots belong to the item. */
static void
insert_rows(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	const insert_args *a = args;
	const uint64_t entries =
		(uint64_t)a->cache.entries_per_page * a->cache.pages;
	const uint32_t items = spmla_i_cpu_slot_items(ctx, a->tokens);
	const spmla_i_cpu_kernels *kernels = spmla_i_cpu_kernels_of(ctx);
	float own[SPMLA_INDEX_ROPE];
	uint32_t t;

	(void)worker;
	for (t = item; t < a->tokens; t += items) {
		const float *cos_sin = spmla_i_cpu_rope_row(
			a->cos_sin, a->cos_sin_dtype, a->cos_sin_rows,
			spmla_i_cpu_position(a->positions, a->positions_dtype,
					     t),
			own);

		if (!cos_sin)
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_POSITION);
		prepare_query(a, t, cos_sin);
	}
	for (t = 0; t < a->kv_tokens; t++) {
		const uint64_t slot = (uint64_t)a->slot_mapping[t];
		const float *cos_sin;

		if (a->slot_mapping[t] < 0 || slot % items != item)
			continue;
		cos_sin = spmla_i_cpu_rope_row(
			a->cos_sin, a->cos_sin_dtype, a->cos_sin_rows,
			spmla_i_cpu_position(a->positions, a->positions_dtype,
					     t),
			own);
		if (slot >= entries)
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_SLOT);
		else if (cos_sin)
			insert_key(a, kernels, t, slot, cos_sin);
	}
}

void
spmla_i_cpu_qnorm_rope_kv_insert(spmla_ctx *ctx, const void *args)
{
	const insert_args *a = args;

	spmla_i_cpu_for(ctx, a, spmla_i_cpu_slot_items(ctx, a->tokens),
			insert_rows);
}
