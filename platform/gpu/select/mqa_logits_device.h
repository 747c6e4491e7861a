/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of mqa_logits and its line of work. The line has the units of 256
 * tokens, one token after the other; a unit is 64 keys. Blocks get equal shares
 * of the line, cut at any unit. Then come the next 256 tokens.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_DEVICE_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_DEVICE_H

#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/input_device.h"
#include "spmla/platform/gpu/step/table_device.h"

/* All kernels of INDEX_FP8 have these. Token 0 is the call's `first_token`. */
#define SPMLA_K_mqa_logits(P, S)       \
	SPMLA_K_FAULT(P)               \
	P(const uint8_t, q)            \
	P(const float, weights)        \
	P(const int32_t, token_row)    \
	P(const int32_t, context_lens) \
	P(const int64_t, row_starts)   \
	P(const int32_t, block_table)  \
	P(const int32_t, table_cols)   \
	P(const uint8_t, cache)        \
	P(float, logits)               \
	S(uint64_t, logits_elems)      \
	S(int64_t, row_stride)         \
	S(uint64_t, page_stride_bytes) \
	SPMLA_S_TABLE(S)               \
	S(uint32_t, first_token)       \
	S(uint32_t, tokens)            \
	S(uint32_t, heads)             \
	S(uint32_t, logits_bf16)       \
	S(uint32_t, fnuz)              \
	S(uint32_t, tiled)             \
	S(uint32_t, q_fnuz)
SPMLA_KERNEL_SCALARS(mqa_logits)

/* Kernels of INDEX_MXFP4 have the scales of the queries too. */
#define SPMLA_K_mqa_logits_mxfp4(P, S) \
	P(const uint32_t, q_scales)    \
	SPMLA_K_mqa_logits(P, S)
typedef spmla_k_mqa_logits_scalars spmla_k_mqa_logits_mxfp4_scalars;

enum { MQA_ITEMS = 256 };

#ifdef SPMLA_GPU_KERNELS

/* A row of logits. */
typedef struct mqa_row {
	int64_t start; /* its first element */
	uint32_t len;  /* keys; 0 if the row does not fit */
	uint32_t fault;
} mqa_row;

/* Where token t's row of logits begins; with row_stride 0, row_starts gives it.
 */
FN int64_t
mqa_row_start(GLOBAL const int64_t *row_starts, int64_t row_stride, uint32_t t)
{
	return row_stride ? (int64_t)t * row_stride : row_starts[t];
}

/* How many keys a token of length `len` has: at most row_stride, if that is not
 * 0. */
FN uint32_t
mqa_row_len(int32_t len, int64_t row_stride)
{
	if (len <= 0)
		return 0;
	return (uint32_t)(row_stride && len > row_stride ? row_stride : len);
}

/* The row of logits that begins at `start`, of a token with table row `row` and
 * length `len`, and its fault, if any. */
FN mqa_row
mqa_row_of(uint32_t row, uint32_t rows, int32_t len, int64_t start,
	   int64_t row_stride, uint64_t logits_elems)
{
	mqa_row r;

	r.start = start;
	r.fault = 0;
	r.len = mqa_row_len(len, row_stride);
	if (r.len == 0)
		return r;
	if (row >= rows) {
		r.fault = G_FAULT_ROW;
		r.len = 0;
		return r;
	}
	if (r.len < (uint32_t)len)
		r.fault = G_FAULT_LOGITS;
	if (start < 0 || (uint64_t)start > logits_elems ||
	    (uint64_t)r.len > logits_elems - (uint64_t)start) {
		r.fault = G_FAULT_LOGITS;
		r.len = 0;
	}
	return r;
}

enum {
	MQA_DIM = 128,
	MQA_LANES = 16, /* that share a key */
	MQA_LANE_DIMS = MQA_DIM / MQA_LANES,
	MQA_KEYS = 4, /* that they have at a time */
	MQA_UNIT = MQA_ITEMS / MQA_LANES * MQA_KEYS,
	MQA_HEADS = 64, /* whose queries shared memory holds */
	MQA_TILE = 4    /* heads at a time */
};

/* A block's share of the line, of which `left` units up to `last` are not done.
 * The next one begins with key `first` of `token`, which has `rest` units left.
 */
typedef struct mqa_line {
	uint64_t last;
	uint32_t left;
	uint32_t count; /* tokens */
	uint32_t token;
	uint32_t first;
	uint32_t rest; /* 0: mqa_seek finds these three */
} mqa_line;

/* Four codes at p. */
FN uint32_t
mqa_word(GLOBAL const uint8_t *p, uint32_t aligned)
{
	if (aligned)
		return *(GLOBAL const uint32_t *)p;
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

/* The arguments of the kernels for paged keys. */
typedef struct mqa_logits_job {
	SPMLA_KERNEL_FIELDS(mqa_logits)
	GLOBAL const uint32_t *q_scales; /* MXFP4 */
	LOCAL struct mqa_shared *shared;
} mqa_logits_job;

/* How many units token t has. The first block reports its fault, if any. */
FN uint32_t
mqa_logits_units(const PRIVATE mqa_logits_job *job, uint32_t t)
{
	const PRIVATE spmla_k_mqa_logits_scalars *s = &job->s;
	const uint32_t row = (uint32_t)job->token_row[t];
	const mqa_row r =
		mqa_row_of(row, s->rows, job->context_lens[t],
			   mqa_row_start(job->row_starts, s->row_stride, t),
			   s->row_stride, s->logits_elems);

	if (r.fault && g_block() == 0)
		g_fault(job->fault_state, job->fault_status,
			r.fault == G_FAULT_ROW ? s->first_token + t : row,
			r.fault);
	return r.len / MQA_UNIT + (r.len % MQA_UNIT != 0);
}

/* Lays the line of up to MQA_ITEMS tokens, by all threads: a thread's token has
 * `units`, and ends[i] becomes where token i's units end. `sums` is the scan's.
 */
FN mqa_line
mqa_share(uint32_t tokens, uint32_t units, LOCAL uint64_t *ends,
	  LOCAL uint64_t *sums)
{
	mqa_line line;
	uint64_t before, total;

	line.count = tokens < MQA_ITEMS ? tokens : MQA_ITEMS;
	line.token = line.first = line.rest = 0;
	before = g_scan_sum(units, MQA_ITEMS, sums, &total);
	ends[g_item()] = before + units;
	BARRIER();
	line.last = total * (g_block() + 1) / g_blocks();
	line.left = (uint32_t)(line.last - total * g_block() / g_blocks());
	return line;
}

/* If the next unit begins a token, or is the block's first one, finds it and
 * returns 1. */
FN uint32_t
mqa_seek(PRIVATE mqa_line *line, LOCAL const uint64_t *ends)
{
	const uint64_t unit = line->last - line->left;
	uint64_t before;

	if (line->rest)
		return 0;
	line->token = g_first_above64(ends, line->token, line->count, unit);
	before = line->token ? ends[line->token - 1] : 0;
	line->first = (uint32_t)(unit - before) * MQA_UNIT;
	line->rest = (uint32_t)(ends[line->token] - unit);
	return 1;
}

/* The next unit is done. */
FN void
mqa_step(PRIVATE mqa_line *line)
{
	line->left--;
	line->rest--;
	line->first += MQA_UNIT;
}

#endif
#endif
