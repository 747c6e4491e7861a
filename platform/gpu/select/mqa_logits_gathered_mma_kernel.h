/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered with matrix instructions, for up to 64 heads. It uses the
 * tiles of mqa_logits_mma_kernel.h, so it gives the same bits. The hard idea:
 * consecutive rows mostly see the same keys. So the queries of four rows, a
 * group, lie in shared memory, and a subgroup converts 32 keys once and
 * multiplies them with all four. Keys that a row does not see cost it no
 * products; keys that no row sees are not loaded.
 *
 * The line of work has the units of all groups of 2048 rows; then come the next
 * 2048. A group has units of 128 keys, from the first to the last key that one
 * of its rows sees. Blocks get equal shares of the line.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_MMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_MMA_KERNEL_H

#include "spmla/platform/gpu/select/mqa_logits_gathered_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_mma_kernel.h"

#define SPMLA_K_mqa_logits_gathered_mma(P, S) SPMLA_K_mqa_logits_gathered(P, S)
SPMLA_KERNEL_SCALARS(mqa_logits_gathered_mma)

enum {
	GATHERED_MMA_ITEMS = 128,
	GATHERED_MMA_ROWS = 4,   /* that share keys: a group */
	GATHERED_MMA_LINE = 512, /* groups of a line */
	/* f16 of a row's queries: heads are MQA_MMA_Q apart. */
	GATHERED_MMA_Q = 64 * (128 + 8)
};

/* Shared memory of a block. */
typedef struct gathered_mma_memory {
	uint16_t q[GATHERED_MMA_ROWS * GATHERED_MMA_Q]; /* f16 */
	float w[GATHERED_MMA_ROWS * 64];
	uint64_t line[GATHERED_MMA_LINE];
	uint64_t sums[G_SCAN_SUBGROUPS];
	uint32_t seen[2 * GATHERED_MMA_ROWS]; /* the rows' keys: from, end */
} gathered_mma_memory;

enum { GATHERED_MMA_BYTES = sizeof(gathered_mma_memory) };

#ifdef SPMLA_GPU_KERNELS

enum {
	/* Keys that a block has at a time. */
	GATHERED_MMA_UNIT = GATHERED_MMA_ITEMS / 32 * MQA_MMA_TILE
};

/* Extends `range` to hold keys first .. end - 1 too. */
FN void
gathered_mma_join(PRIVATE gathered_row *range, uint32_t first, uint32_t end)
{
	if (first >= end)
		return;
	if (range->end == 0 || first < range->first)
		range->first = first;
	range->end = end > range->end ? end : range->end;
}

/* How many units a group has. The first block reports faults. */
FN uint32_t
gathered_mma_units(GLOBAL spmla_g_state *fault_state,
		   GLOBAL spmla_g_status *fault_status,
		   const PRIVATE spmla_k_mqa_logits_gathered_mma_scalars *s,
		   GLOBAL const int32_t *starts, GLOBAL const int32_t *ends,
		   uint32_t group)
{
	gathered_row range;
	uint32_t r;

	range.first = range.end = range.fault = 0;
	for (r = 0; r < GATHERED_MMA_ROWS; r++) {
		const uint32_t t = group * GATHERED_MMA_ROWS + r;
		gathered_row row;

		if (t >= s->tokens)
			break;
		row = gathered_row_of(starts, ends, s->keys, s->columns,
				      s->compressed, t);
		if (row.fault && g_block() == 0)
			g_fault(fault_state, fault_status, t, row.fault);
		gathered_mma_join(&range, row.first, row.end);
	}
	return (range.end - range.first + GATHERED_MMA_UNIT - 1) /
	       GATHERED_MMA_UNIT;
}

/* Puts a group into shared memory: the queries of its rows, as f16, their
 * weights, and which keys they see. Missing rows and heads are zeros. */
FN void
gathered_mma_stage(const PRIVATE spmla_k_mqa_logits_gathered_mma_scalars *s,
		   GLOBAL const uint8_t *q, GLOBAL const float *weights,
		   GLOBAL const int32_t *starts, GLOBAL const int32_t *ends,
		   uint32_t group, LOCAL uint16_t *q16, LOCAL float *w,
		   LOCAL uint32_t *seen)
{
	const uint32_t words = MQA_MMA_DIM / 4;
	const uint32_t aligned = ((uint64_t)q & 3u) == 0;
	const uint32_t first = group * GATHERED_MMA_ROWS;
	uint32_t i;

	for (i = g_item(); i < GATHERED_MMA_ROWS * MQA_MMA_HEADS * words;
	     i += GATHERED_MMA_ITEMS) {
		const uint32_t d = i % words * 4, at = i / words;
		const uint32_t head = at % MQA_MMA_HEADS;
		const uint32_t t = first + at / MQA_MMA_HEADS;
		LOCAL uint32_t *to =
			(LOCAL uint32_t *)(q16 + at * MQA_MMA_Q + d);
		uint32_t codes = 0;

		if (head < s->heads && t < s->tokens)
			codes = mqa_word(q +
						 ((uint64_t)t * s->heads +
						  head) * MQA_MMA_DIM +
						 d,
					 aligned);
		to[0] = g_e4m3x2_to_f16x2(codes);
		to[1] = g_e4m3x2_to_f16x2(codes >> 16);
	}
	for (i = g_item(); i < GATHERED_MMA_ROWS * MQA_MMA_HEADS;
	     i += GATHERED_MMA_ITEMS) {
		const uint32_t head = i % MQA_MMA_HEADS;
		const uint32_t t = first + i / MQA_MMA_HEADS;

		w[i] = head < s->heads && t < s->tokens
			       ? weights[(int64_t)t * s->weights_stride + head]
			       : 0.0f;
	}
	if (g_item() < GATHERED_MMA_ROWS) {
		const uint32_t t = first + g_item();
		gathered_row row;

		row.first = row.end = 0;
		if (t < s->tokens)
			row = gathered_row_of(starts, ends, s->keys, s->columns,
					      s->compressed, t);
		seen[2 * g_item()] = row.first;
		seen[2 * g_item() + 1] = row.end;
	}
}

/* Loads 32 keys from `first` on, but no key from `stop` on, and none that no
 * row sees. */
FN void
gathered_mma_fetch(PRIVATE mqa_mma_tile *tile, GLOBAL const uint8_t *k,
		   GLOBAL const float *k_scales, LOCAL const uint32_t *seen,
		   uint32_t first, uint32_t stop)
{
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	const uint32_t aligned = ((uint64_t)k & 15u) == 0;
	const uint32_t own = first + g_lane();
	uint32_t is_key = 0, i, j;

	for (i = 0; i < GATHERED_MMA_ROWS; i++)
		is_key |= own >= seen[2 * i] && own < seen[2 * i + 1];
	is_key &= own < stop;
	is_key = (uint32_t)g_ballot(is_key);
	tile->scale = 0.0f;
	tile->page = 0;
	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t key = first + 8 * i + g;
		const uint32_t loads = is_key >> (8 * i + g) & 1u;
		GLOBAL const uint8_t *codes = k;

		if (loads)
			codes += (uint64_t)key * MQA_MMA_DIM + 16 * t;
		if (loads && aligned) {
			g_load128(codes, tile->raw + 8 * i);
			g_load128(codes + 64, tile->raw + 8 * i + 4);
		} else {
			UNROLL
			for (j = 0; j < 8; j++)
				tile->raw[8 * i + j] =
					loads ? mqa_word(codes + j / 4 * 64 +
								 j % 4 * 4,
							 0)
					      : 0;
		}
		if (loads && i == t)
			tile->scale = k_scales[key];
	}
}

/* The range from the first to the last key that one of the rows sees. */
FN gathered_row
gathered_mma_union(LOCAL const uint32_t *seen)
{
	gathered_row range;
	uint32_t r;

	range.first = range.end = range.fault = 0;
	for (r = 0; r < GATHERED_MMA_ROWS; r++)
		gathered_mma_join(&range, seen[2 * r], seen[2 * r + 1]);
	return range;
}

/* Scores the 32 keys from `first` on for all rows of a group. Meanwhile it
 * loads the keys one unit further on, and leaves them in `keys`. */
FN void
gathered_mma_score(const PRIVATE spmla_k_mqa_logits_gathered_mma_scalars *s,
		   PRIVATE mqa_mma_tile *keys, GLOBAL const uint8_t *k,
		   GLOBAL const float *k_scales, GLOBAL float *logits,
		   LOCAL const uint16_t *q16, LOCAL const float *w,
		   LOCAL const uint32_t *seen, uint32_t group, uint32_t first,
		   uint32_t stop)
{
	const uint32_t key = first + g_lane() % 4 * 8 + g_lane() / 4;
	const float scale = keys->scale;
	uint32_t a[2][8][4];
	uint32_t r;

	mqa_mma_convert(keys, a);
	gathered_mma_fetch(keys, k, k_scales, seen, first + GATHERED_MMA_UNIT,
			   stop);
	for (r = 0; r < GATHERED_MMA_ROWS; r++) {
		const uint32_t from = seen[2 * r], end = seen[2 * r + 1];
		const uint64_t t = (uint64_t)group * GATHERED_MMA_ROWS + r;
		float score;

		if (first >= end || first + MQA_MMA_TILE <= from)
			continue;
		score = gathered_score(
			scale, mqa_mma_score(a, q16 + r * GATHERED_MMA_Q,
					     w + r * MQA_MMA_HEADS, 0));
		if (key >= from && key < end)
			logits[(int64_t)t * s->logits_stride +
			       (s->compressed ? key - from : key)] = score;
	}
}

SPMLA_KERNEL_BLOCKS(mqa_logits_gathered_mma, 2)
void
spmla_k_mqa_logits_gathered_mma(SPMLA_KERNEL_ARGS(mqa_logits_gathered_mma))
{
	LOCAL_DYNAMIC(local, GATHERED_MMA_BYTES);
	LOCAL gathered_mma_memory *mem = (LOCAL gathered_mma_memory *)local;
	LOCAL uint64_t *line = mem->line;
	LOCAL uint32_t *seen = mem->seen;
	const uint32_t groups = s.tokens / GATHERED_MMA_ROWS +
				(s.tokens % GATHERED_MMA_ROWS > 0);
	uint32_t base;

	for (base = 0; base < groups; base += GATHERED_MMA_LINE) {
		const uint32_t count = groups - base < GATHERED_MMA_LINE
					       ? groups - base
					       : GATHERED_MMA_LINE;
		uint64_t total = 0, last;
		uint32_t group = 0, left, i;

		for (i = 0; i < count; i += GATHERED_MMA_ITEMS) {
			uint64_t before, all;
			uint32_t units = 0;

			if (i + g_item() < count)
				units = gathered_mma_units(
					fault_state, fault_status, &s, starts,
					ends, base + i + g_item());
			before = g_scan_sum(units, GATHERED_MMA_ITEMS,
					    mem->sums, &all);
			line[i + g_item()] = total + before + units;
			total += all;
		}
		BARRIER();
		last = total * (g_block() + 1) / g_blocks();
		left = (uint32_t)(last - total * g_block() / g_blocks());
		while (left) {
			const uint64_t unit = last - left;
			uint32_t tile, stop, n;
			gathered_row range;
			mqa_mma_tile keys;

			group = g_first_above64(line, group, count, unit);
			n = line[group] - unit < left
				    ? (uint32_t)(line[group] - unit)
				    : left;
			BARRIER(); /* nobody reads the last queries */
			gathered_mma_stage(&s, q, weights, starts, ends,
					   base + group, mem->q, mem->w, seen);
			BARRIER();
			range = gathered_mma_union(seen);
			tile = range.first +
			       (uint32_t)(unit -
					  (group ? line[group - 1] : 0)) *
				       GATHERED_MMA_UNIT;
			stop = tile + n * GATHERED_MMA_UNIT;
			stop = stop < range.end ? stop : range.end;
			tile += g_item() / g_width() * MQA_MMA_TILE;
			gathered_mma_fetch(&keys, k, k_scales, seen, tile,
					   stop);
			for (; tile < stop; tile += GATHERED_MMA_UNIT)
				gathered_mma_score(&s, &keys, k, k_scales,
						   logits, mem->q, mem->w, seen,
						   base + group, tile, stop);
			left -= n;
		}
	}
	if (s.clean)
		gathered_clean(starts, ends, logits, s.logits_stride, s.tokens,
			       s.keys, s.columns, 0, GATHERED_MMA_ITEMS);
}

#endif
#endif
