/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb: a block takes 32 columns of a head for 64 tokens, 8 at a time, or
 * the rope parts of a head for 64 tokens. Each block looks for itself whether a
 * token's position is in the rope table, and writes zeros if not.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_Q_ABSORB_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_Q_ABSORB_KERNEL_H

#include "spmla/platform/gpu/project/project_device.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/input_device.h"

#define SPMLA_K_q_absorb(P, S)          \
	SPMLA_K_FAULT(P)                \
	P(const uint16_t, q_nope)       \
	P(const uint16_t, w_uk_t)       \
	P(const uint16_t, q_pe)         \
	P(const int32_t, positions)     \
	P(const float, cos_sin)         \
	P(uint16_t, q)                  \
	S(int64_t, q_nope_token_stride) \
	S(int64_t, q_nope_head_stride)  \
	S(int64_t, w_head_stride)       \
	S(int64_t, w_row_stride)        \
	S(int64_t, q_pe_token_stride)   \
	S(int64_t, q_pe_head_stride)    \
	S(int64_t, q_token_stride)      \
	S(int64_t, q_head_stride)       \
	S(uint32_t, tokens)             \
	S(uint32_t, heads)              \
	S(uint32_t, cos_sin_rows)       \
	S(uint32_t, has_pe)             \
	S(uint32_t, has_rope)           \
	S(uint32_t, neox)               \
	S(uint32_t, w_aligned)          \
	S(uint32_t, positions_wide)     \
	S(uint32_t, rope_form)          \
	S(uint32_t, units)              \
	S(uint32_t, range)
SPMLA_KERNEL_SCALARS(q_absorb)

enum {
	Q_ABSORB_NOPE = 128, /* rows of a matrix */
	Q_ABSORB_TILES = SPMLA_MLA_LATENT / PROJECT_COLUMNS
};

#ifdef SPMLA_GPU_KERNELS

/* Writes the rope parts of tokens [first, end) for head h, a pair a thread. */
FN void
q_absorb_rope(const PRIVATE spmla_k_q_absorb_scalars *s,
	      GLOBAL spmla_g_state *fault_state,
	      GLOBAL spmla_g_status *fault_status, GLOBAL const uint16_t *q_pe,
	      GLOBAL const int32_t *positions, GLOBAL const float *cos_sin,
	      GLOBAL uint16_t *q, uint32_t h, uint32_t first, uint32_t end)
{
	enum { PAIRS = SPMLA_MLA_ROPE / 2 };
	const uint32_t pair = g_item() % PAIRS;
	const uint32_t a = s->neox ? pair : 2 * pair;
	const uint32_t b = s->neox ? pair + PAIRS : 2 * pair + 1;
	const uint32_t bf16 = s->rope_form == G_REALS_BF16;
	uint32_t t;

	for (t = first + g_item() / PAIRS; t < end;
	     t += PROJECT_ITEMS / PAIRS) {
		const uint32_t position =
			s->has_rope ? (uint32_t)g_position(positions,
							   s->positions_wide, t)
				    : 0;
		GLOBAL const uint16_t *from =
			q_pe + (int64_t)t * s->q_pe_token_stride +
			(int64_t)h * s->q_pe_head_stride;
		GLOBAL uint16_t *to = q + (int64_t)t * s->q_token_stride +
				      (int64_t)h * s->q_head_stride +
				      SPMLA_MLA_LATENT;
		uint16_t low = from[a], high = from[b];

		if (s->has_rope && position >= s->cos_sin_rows) {
			if (h == 0 && pair == 0)
				g_fault(fault_state, fault_status, t,
					G_FAULT_POSITION);
			low = high = 0;
		} else if (s->has_rope) {
			const uint64_t at =
				(uint64_t)position * SPMLA_MLA_ROPE + pair;
			const float c = g_real(cos_sin, bf16, at);
			const float sine = g_real(cos_sin, bf16, at + PAIRS);
			const float x = g_bf16_to_f32(low);
			const float y = g_bf16_to_f32(high);

			low = (uint16_t)g_f32_to_bf16(x * c - y * sine);
			high = (uint16_t)g_f32_to_bf16(y * c + x * sine);
		}
		to[a] = low;
		to[b] = high;
	}
}

SPMLA_KERNEL(q_absorb)
void
spmla_k_q_absorb(SPMLA_KERNEL_ARGS(q_absorb))
{
	LOCAL_ARRAY(uint64_t, rows, Q_ABSORB_NOPE * 2);
	LOCAL_ARRAY(float, all, PROJECT_SUMS);
	const uint32_t tiles = Q_ABSORB_TILES + s.has_pe;
	const uint32_t groups = (s.tokens - 1) / PROJECT_GROUP + 1;
	const uint64_t pieces = (uint64_t)s.heads * tiles * groups;
	uint64_t piece;

	for (piece = g_block(); piece < pieces; piece += g_blocks()) {
		const uint32_t tile = (uint32_t)(piece % tiles);
		const uint32_t h = (uint32_t)(piece / tiles % s.heads);
		const uint32_t group = (uint32_t)(piece / tiles / s.heads);
		const uint32_t end =
			s.tokens - group * PROJECT_GROUP > PROJECT_GROUP
				? (group + 1) * PROJECT_GROUP
				: s.tokens;
		uint32_t pairs[PROJECT_EACH];
		uint32_t first, i;

		if (tile == Q_ABSORB_TILES) {
			q_absorb_rope(&s, fault_state, fault_status, q_pe,
				      positions, cos_sin, q, h,
				      group * PROJECT_GROUP, end);
			continue;
		}
		project_matrix(w_uk_t + (int64_t)h * s.w_head_stride +
				       tile * PROJECT_COLUMNS,
			       s.w_row_stride, s.w_aligned, pairs);
		for (first = group * PROJECT_GROUP; first < end;
		     first += PROJECT_TOKENS) {
			const uint32_t t = first + g_item() / PROJECT_COLUMNS;
			float sums[2 * PROJECT_TOKENS];
			uint16_t value;

			project_rows(q_nope +
					     (int64_t)first *
						     s.q_nope_token_stride +
					     (int64_t)h * s.q_nope_head_stride,
				     s.q_nope_token_stride, end - first,
				     Q_ABSORB_NOPE, rows);
			UNROLL
			for (i = 0; i < 2 * PROJECT_TOKENS; i++)
				sums[i] = 0.0f;
			BARRIER();
			project_add(rows, Q_ABSORB_NOPE, pairs, sums);
			value = project_total(sums, all);
			if (t >= end)
				continue; /* no thread misses a barrier */
			if (s.has_rope &&
			    (uint32_t)g_position(positions, s.positions_wide,
						 t) >= s.cos_sin_rows)
				value = 0;
			q[(int64_t)t * s.q_token_stride +
			  (int64_t)h * s.q_head_stride +
			  tile * PROJECT_COLUMNS + g_item() % PROJECT_COLUMNS] =
				value;
		}
	}
}

#endif
#endif
