/* SPDX-License-Identifier: Apache-2.0
 *
 * compress_state_save: a thread has four columns of a token, a quarter of the
 * width apart. So a token has 32 to 256 threads, and a block 8 to 1 tokens.
 * There is no barrier, and a thread has all its loads in flight at once, so
 * that memory traffic is the only cost.
 */
#ifndef SPMLA_PLATFORM_GPU_COMPRESS_COMPRESS_STATE_SAVE_KERNEL_H
#define SPMLA_PLATFORM_GPU_COMPRESS_COMPRESS_STATE_SAVE_KERNEL_H

#include "spmla/platform/gpu/compress/compress_device.h"
#include "spmla/platform/gpu/step/input_device.h"

#define SPMLA_K_compress_state_save(P, S) \
	SPMLA_K_FAULT(P)                  \
	P(const float, kv)                \
	P(const float, score)             \
	P(const float, ape)               \
	P(const int32_t, positions)       \
	P(const int64_t, slot_mapping)    \
	P(const int32_t, context_lens)    \
	P(const int32_t, token_row)       \
	P(const int32_t, block_table)     \
	P(const int32_t, table_cols)      \
	P(uint8_t, state)                 \
	S(int64_t, kv_stride)             \
	S(int64_t, score_stride)          \
	S(uint64_t, capacity)             \
	SPMLA_S_STATE(S)                  \
	S(uint32_t, tokens)               \
	S(uint32_t, positions_wide)       \
	S(uint32_t, kv_bf16)
SPMLA_KERNEL_SCALARS(compress_state_save)

#ifdef SPMLA_GPU_KERNELS

typedef struct state_save_job {
	SPMLA_KERNEL_FIELDS(compress_state_save)
} state_save_job;

enum { STATE_SAVE_NOTHING = 0xff }; /* no fault has this number */

/* *at is the byte offset to which the state of token t goes, by the caller's
 * slots. Returns 0, or why it goes nowhere: STATE_SAVE_NOTHING or a fault. */
FN uint32_t
state_save_slot(const PRIVATE state_save_job *job, uint64_t t, int32_t position,
		PRIVATE uint64_t *at)
{
	const PRIVATE spmla_k_compress_state_save_scalars *s = &job->s;
	const int64_t slot = job->slot_mapping[t];
	const uint64_t page = (uint64_t)slot / s->state_entries.by;

	if (slot < 0)
		return STATE_SAVE_NOTHING;
	if (page >= s->state_pages)
		return G_FAULT_SLOT;
	if (position < 0)
		return G_FAULT_POSITION;
	*at = g_state_entry(page, s->state_page_bytes,
			    (uint32_t)((uint64_t)slot % s->state_entries.by),
			    s->width);
	return 0;
}

/* The same by a table whose columns wrap around. */
FN uint32_t
state_save_ring(const PRIVATE state_save_job *job, uint64_t t, int32_t position,
		PRIVATE uint64_t *at)
{
	const PRIVATE spmla_k_compress_state_save_scalars *s = &job->s;
	const uint32_t row = (uint32_t)job->token_row[t];
	const uint64_t later = t + s->capacity;

	if (job->context_lens[t] <= 0)
		return STATE_SAVE_NOTHING;
	if (position >= 0 && later < s->tokens &&
	    job->context_lens[later] > 0 &&
	    (uint32_t)job->token_row[later] == row &&
	    g_position(job->positions, s->positions_wide, later) ==
		    (int64_t)position + (int64_t)s->capacity)
		return STATE_SAVE_NOTHING; /* a later token takes its entry */
	if (position < 0)
		return G_FAULT_POSITION;
	if (row >= s->rows)
		return G_FAULT_ROW;
	return g_state_at(job->block_table, job->table_cols, s->has_cols,
			  s->columns, s->table_stride, 1, s->state_pages,
			  s->state_page_bytes, s->state_entries, s->width, row,
			  position, at)
		       ? 0
		       : G_FAULT_PAGE;
}

SPMLA_KERNEL(compress_state_save)
void
spmla_k_compress_state_save(SPMLA_KERNEL_ARGS(compress_state_save))
{
	const state_save_job job = {SPMLA_KERNEL_VALUES(compress_state_save)};
	const uint32_t lanes = s.width / 4;
	const uint32_t share = SPMLA_ITEMS_compress_state_save / lanes;
	const uint32_t lane = g_item() % lanes;
	uint64_t t;

	for (t = (uint64_t)g_block() * share + g_item() / lanes; t < s.tokens;
	     t += (uint64_t)g_blocks() * share) {
		const int32_t position =
			g_position(positions, s.positions_wide, t);
		const uint64_t x = t * (uint64_t)s.kv_stride + lane;
		const uint64_t y = t * (uint64_t)s.score_stride + lane;
		uint64_t at = 0;
		const uint32_t fault =
			s.ring ? state_save_ring(&job, t, position, &at)
			       : state_save_slot(&job, t, position, &at);
		GLOBAL const float *z;
		GLOBAL float *out;
		float a[4], b[4], c[4];
		uint32_t k;

		if (fault == STATE_SAVE_NOTHING)
			continue;
		if (fault) {
			const uint32_t row =
				s.ring ? (uint32_t)token_row[t] : s.rows;

			if (lane == 0)
				g_fault(fault_state, fault_status,
					row < s.rows ? row : (uint32_t)t,
					fault);
			continue;
		}
		z = ape + (uint64_t)((uint32_t)position % s.ratio) * s.width;
		out = (GLOBAL float *)(state + at);
		UNROLL
		for (k = 0; k < 4; k++) {
			a[k] = g_real(kv, s.kv_bf16, x + k * lanes);
			b[k] = g_real(score, s.kv_bf16, y + k * lanes);
			c[k] = z[lane + k * lanes];
		}
		UNROLL
		for (k = 0; k < 4; k++) {
			out[lane + k * lanes] = a[k];
			out[s.width + lane + k * lanes] = b[k] + c[k];
		}
	}
}

#endif
#endif
