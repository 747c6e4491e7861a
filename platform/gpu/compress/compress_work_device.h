/* SPDX-License-Identifier: Apache-2.0
 *
 * The work of kv_compress: its arguments, the groups that end in a block's
 * tokens, and where the rows of a group are. The hard idea is that bad data
 * costs no time: a block lists the faults with its work, and reports them last.
 */
#ifndef SPMLA_PLATFORM_GPU_COMPRESS_COMPRESS_WORK_DEVICE_H
#define SPMLA_PLATFORM_GPU_COMPRESS_COMPRESS_WORK_DEVICE_H

#include "spmla/platform/gpu/compress/compress_device.h"
#include "spmla/platform/gpu/compress/compress_key_device.h"
#include "spmla/platform/gpu/step/input_device.h"

#define SPMLA_K_kv_compress(P, S)      \
	SPMLA_K_FAULT(P)               \
	P(const int64_t, slot_mapping) \
	P(const int32_t, positions)    \
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
	P(uint32_t, split_keys)        \
	P(uint32_t, split_counts)      \
	P(const float, scale_at)       \
	S(int64_t, kv_stride)          \
	S(int64_t, score_stride)       \
	S(uint64_t, page_stride_bytes) \
	S(uint64_t, slots)             \
	SPMLA_S_STATE(S)               \
	S(uint32_t, tokens)            \
	S(uint32_t, share)             \
	S(uint32_t, split)             \
	S(uint32_t, has_lens)          \
	S(uint32_t, wide)              \
	S(uint32_t, cos_sin_rows)      \
	S(uint32_t, layout)            \
	S(uint32_t, fnuz)              \
	S(uint32_t, page_entries)      \
	S(float, norm_eps)             \
	S(uint32_t, has_scale_at)      \
	S(float, e4m3_scale)           \
	S(uint32_t, positions_wide)    \
	S(uint32_t, rope_bf16)         \
	S(uint32_t, norm_bf16)         \
	S(uint32_t, kv_bf16)
SPMLA_KERNEL_SCALARS(kv_compress)

/* All kernels have the same parameters. */
#define SPMLA_K_kv_compress_any(P, S)   SPMLA_K_kv_compress(P, S)
#define SPMLA_K_kv_compress_c128(P, S)  SPMLA_K_kv_compress(P, S)
#define SPMLA_K_kv_compress_few(P, S)   SPMLA_K_kv_compress(P, S)
#define SPMLA_K_kv_compress_index(P, S) SPMLA_K_kv_compress(P, S)
typedef spmla_k_kv_compress_scalars spmla_k_kv_compress_any_scalars;
typedef spmla_k_kv_compress_scalars spmla_k_kv_compress_c128_scalars;
typedef spmla_k_kv_compress_scalars spmla_k_kv_compress_few_scalars;
typedef spmla_k_kv_compress_scalars spmla_k_kv_compress_index_scalars;

enum {
	COMPRESS_ITEMS = 128,
	COMPRESS_STEP = 8, /* rows of a thread */
	COMPRESS_PARTS = SPMLA_COMPRESS_MOST / COMPRESS_STEP,
	COMPRESS_SLAB = 32, /* columns of a block at ratio 128 */
	/* The most polls for the columns of other blocks: some 0.5 s. */
	COMPRESS_PATIENCE = 1 << 20,
	COMPRESS_SLABS = SPMLA_V4_DIM / COMPRESS_SLAB
};

#ifdef SPMLA_GPU_KERNELS

/* The parameters of each kernel. */
typedef struct compress_job {
	SPMLA_KERNEL_FIELDS(kv_compress)
	/* A compile-time constant. 0: inputs have the types of the parameters,
	 * so the fast kernels do not test for other types. */
	uint32_t any;
} compress_job;

FN int32_t
compress_position(const PRIVATE compress_job *job, uint64_t t)
{
	return g_position(job->positions, job->any & job->s.positions_wide, t);
}

/* The scale of a V4_E4M3 cache. */
FN float
compress_scale(const PRIVATE compress_job *job)
{
	return job->s.has_scale_at ? *job->scale_at : job->s.e4m3_scale;
}

FN GLOBAL const float *
compress_state(const PRIVATE compress_job *job)
{
	return (GLOBAL const float *)job->state;
}

/* Where a row of a group is: in the state, among the call's tokens, before
 * position 0 (it does not exist), or on a missing page. */
enum { COMPRESS_STATE, COMPRESS_CALL, COMPRESS_NONE, COMPRESS_LOST };

/* A row of a group. The offsets, in floats, are of the column that makes the
 * key's column 0. `at` is 0 if the row is not in the state. */
typedef struct compress_row {
	uint64_t at; /* in the state */
	uint64_t kv_at;
	uint64_t score_at;
	uint32_t from;
} compress_row;

/* What a block works on: a token that ends a group, and which of its slabs. */
typedef struct compress_unit {
	int64_t slot;
	uint32_t token;
	uint32_t slab;
	int32_t position;
	int32_t row;
	uint32_t fault;
} compress_unit;

typedef struct compress_local {
	compress_unit unit[COMPRESS_ITEMS];
	compress_row row[SPMLA_COMPRESS_MOST];
	float squares[COMPRESS_SQUARES];
	float largest[COMPRESS_ITEMS / COMPRESS_LANES];
	uint32_t units;
	uint32_t first; /* the block's units before it are done */
} compress_local;

/* The results of the 16 parts of 8 rows for a slab, and the columns of a
 * key. */
typedef struct compress_parts {
	float most[COMPRESS_PARTS][COMPRESS_SLAB + 1];
	float sum[COMPRESS_PARTS][COMPRESS_SLAB + 1];
	float acc[COMPRESS_PARTS][COMPRESS_SLAB + 1];
	float column[SPMLA_V4_DIM];
	uint32_t lost[COMPRESS_PARTS];
	uint32_t is_last;
} compress_parts;

/* ---- What there is to do ----------------------------------------------- */

/* Whether a token is to be listed: it ends a group, or its position is below 0.
 * *fault is what is wrong with it, or 0. Bit operations, as && and || would
 * wait for one load before they issue the next. */
FN uint32_t
compress_ends(const PRIVATE compress_job *job, int64_t slot, int32_t position,
	      int32_t row, const uint32_t ratio, PRIVATE uint32_t *fault)
{
	const uint32_t group = (uint32_t)position & ~(ratio - 1);
	const uint32_t below = position < 0;
	const uint32_t last = ((uint32_t)position + 1) % ratio == 0;
	const uint32_t outside = below | (group >= job->s.cos_sin_rows);

	*fault = (uint32_t)row >= job->s.rows ? G_FAULT_ROW : 0;
	*fault = outside ? G_FAULT_POSITION : *fault;
	*fault = (uint64_t)slot >= job->s.slots ? G_FAULT_SLOT : *fault;
	return (slot >= 0) & (below | last);
}

/* Each thread adds its unit, a slab of token t, to the list if the token ends a
 * group. A bad token is listed only with its first slab. The list was emptied
 * before. Barriers inside. */
FN void
compress_list(const PRIVATE compress_job *job, LOCAL compress_local *shared,
	      uint32_t t, uint32_t slab, const uint32_t ratio)
{
	const uint32_t there = t < job->s.tokens;
	const int64_t slot = there ? job->slot_mapping[t] : -1;
	const int32_t position = there ? compress_position(job, t) : 0;
	const int32_t row = there ? job->token_row[t] : 0;
	uint32_t fault;

	BARRIER();
	if (compress_ends(job, slot, position, row, ratio, &fault) &&
	    (!fault || slab == 0)) {
		LOCAL compress_unit *u =
			&shared->unit[g_local_add(&shared->units, 1)];

		u->slot = slot;
		u->token = t;
		u->slab = slab;
		u->position = position;
		u->row = row;
		u->fault = fault;
	}
	BARRIER();
}

/* What a report about a token names: the token's row of the table, or the token
 * if the table has no such row. */
FN uint32_t
compress_who(const PRIVATE compress_job *job, uint32_t t, int32_t row)
{
	return (uint32_t)row < job->s.rows ? (uint32_t)row : t;
}

/* Reports the faults of the list; a barrier inside. */
FN void
compress_report(const PRIVATE compress_job *job,
		const LOCAL compress_local *shared)
{
	const LOCAL compress_unit *u = &shared->unit[g_item()];

	BARRIER();
	if (g_item() < shared->units && u->fault)
		g_fault(job->fault_state, job->fault_status,
			compress_who(job, u->token, u->row), u->fault);
}

/* Token j of the call. Row and position are -1 if there is none, or if keys are
 * made from the state alone. */
typedef struct compress_near {
	int32_t row;
	int32_t position;
	int32_t len;
} compress_near;

FN compress_near
compress_near_of(const PRIVATE compress_job *job, int64_t j)
{
	const uint32_t there = job->s.ring & (j >= 0);
	compress_near near;

	near.row = there ? job->token_row[j] : -1;
	near.position = there ? compress_position(job, (uint64_t)j) : -1;
	near.len = there & job->s.has_lens ? job->context_lens[j] : 1;
	return near;
}

/* Where row i of a group, position p, is. `near` is the token that has it if
 * the call does; `row` is the table row for the state. In the state, *to is the
 * offset of the column that makes the key's column 0; otherwise 0. The table is
 * loaded whether or not the call has the row. */
FN uint32_t
compress_place(const PRIVATE compress_job *job, const compress_near near,
	       int32_t row, int32_t p, uint32_t i, const uint32_t dim,
	       const uint32_t ratio, PRIVATE uint64_t *to)
{
	const PRIVATE spmla_k_kv_compress_scalars *s = &job->s;
	const uint32_t width = ratio == SPMLA_COMPRESS_OVERLAP ? 2 * dim : dim;
	uint64_t at;
	const uint32_t there = g_state_at(
		job->block_table, job->table_cols, s->has_cols, s->columns,
		s->table_stride, s->ring, s->state_pages, s->state_page_bytes,
		s->state_entries, width, (uint32_t)row, p, &at);
	const uint32_t call = (p >= 0) & (near.row == row) &
			      (near.position == p) & (near.len > 0);

	*to = at / 4 + (i < ratio ? 0 : dim);
	if (call || !there)
		*to = 0;
	return call    ? COMPRESS_CALL
	       : there ? COMPRESS_STATE
	       : p < 0 ? COMPRESS_NONE
		       : COMPRESS_LOST;
}

/* Prefetches up to 32 columns of a row of the state, kv and score. */
FN void
compress_ask_row(GLOBAL const float *row, const uint32_t width)
{
	g_prefetch((GLOBAL const int32_t *)row);
	g_prefetch((GLOBAL const int32_t *)(row + width));
}

/* Looks up row i of a unit's group, and writes it if the thread is the `first`
 * of those that look it up. If `ask`, prefetches 32 of the row's columns, from
 * `column` on, if it is in the state. */
FN void
compress_find(const PRIVATE compress_job *job, LOCAL compress_row *to,
	      uint32_t first, uint32_t ask, const LOCAL compress_unit *u,
	      uint32_t i, uint32_t column, const uint32_t dim,
	      const uint32_t ratio)
{
	const uint32_t overlap = ratio == SPMLA_COMPRESS_OVERLAP;
	const uint32_t rows = overlap ? 2 * ratio : ratio;
	const uint32_t col = i < ratio ? 0 : dim;
	const int32_t back = (int32_t)(rows - 1 - i);
	const int64_t j = (int64_t)u->token - back;
	uint64_t at;
	const uint32_t from =
		compress_place(job, compress_near_of(job, j), u->row,
			       u->position - back, i, dim, ratio, &at);

	if (first) {
		to->at = at;
		to->kv_at = (uint64_t)j * (uint64_t)job->s.kv_stride + col;
		to->score_at =
			(uint64_t)j * (uint64_t)job->s.score_stride + col;
		to->from = from;
	}
	if (ask && from == COMPRESS_STATE)
		compress_ask_row(compress_state(job) + at + column,
				 overlap ? 2 * dim : dim);
}

#endif
#endif
