/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered by a warpgroup's matrix instructions, for up to 64 heads:
 * the fragments and sums of mqa_logits_wgmma_kernel.h, and so its bits. The
 * hard idea: rows that follow each other mostly see the same keys, so the
 * queries of four of them lie in shared memory, and 64 keys, once converted,
 * meet all four, two at a time; while the products of two run, the products of
 * the two before are summed over their heads. Keys that none of the four sees
 * cost neither a load nor products.
 *
 * Work is the line of all fours' units of 64 keys between the first and the
 * last key that one of them sees, cut evenly over the blocks; 2048 rows at a
 * time.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_WGMMA_KERNEL_H

#include "spmla/platform/gpu/select/mqa_logits_gathered_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_wgmma_kernel.h"

#define SPMLA_K_mqa_logits_gathered_wgmma(P, S) \
	SPMLA_K_mqa_logits_gathered(P, S)
SPMLA_KERNEL_SCALARS(mqa_logits_gathered_wgmma)

enum {
	GATHERED_WGMMA_ITEMS = 128,
	GATHERED_WGMMA_ROWS = 4,   /* that share keys: a group */
	GATHERED_WGMMA_LINE = 512, /* groups of a line */
	/* Shared memory in bytes: queries, weights, the line. */
	GATHERED_WGMMA_W_AT = GATHERED_WGMMA_ROWS * 2 * MQA_WGMMA_Q,
	GATHERED_WGMMA_LINE_AT =
		GATHERED_WGMMA_W_AT + GATHERED_WGMMA_ROWS * 4 * MQA_WGMMA_W,
	GATHERED_WGMMA_BYTES = GATHERED_WGMMA_LINE_AT + 8 * GATHERED_WGMMA_LINE
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* The keys [first, end) that row r of a group sees. */
FN gathered_row
gathered_wgmma_row(const PRIVATE spmla_k_mqa_logits_gathered_wgmma_scalars *s,
		   GLOBAL const int32_t *starts, GLOBAL const int32_t *ends,
		   uint32_t group, uint32_t r)
{
	const uint32_t t = group * GATHERED_WGMMA_ROWS + r;
	gathered_row row;

	row.first = row.end = row.fault = 0;
	if (t < s->tokens)
		row = gathered_row_of(starts, ends, s->keys, s->columns,
				      s->compressed, t);
	return row;
}

/* Makes `range` hold what a row sees, too. */
FN void
gathered_wgmma_join(PRIVATE gathered_row *range, uint32_t first, uint32_t end)
{
	if (first >= end)
		return;
	if (range->end == 0 || first < range->first)
		range->first = first;
	range->end = end > range->end ? end : range->end;
}

/* Units of a group; the first block reports what is bad. */
FN uint32_t
gathered_wgmma_units(GLOBAL spmla_g_state *fault_state,
		     GLOBAL spmla_g_status *fault_status,
		     const PRIVATE spmla_k_mqa_logits_gathered_wgmma_scalars *s,
		     GLOBAL const int32_t *starts, GLOBAL const int32_t *ends,
		     uint32_t group)
{
	gathered_row range;
	uint32_t r;

	range.first = range.end = range.fault = 0;
	for (r = 0; r < GATHERED_WGMMA_ROWS; r++) {
		const gathered_row row =
			gathered_wgmma_row(s, starts, ends, group, r);

		if (row.fault && g_block() == 0)
			g_fault(fault_state, fault_status,
				group * GATHERED_WGMMA_ROWS + r, row.fault);
		gathered_wgmma_join(&range, row.first, row.end);
	}
	return (range.end - range.first + MQA_WGMMA_UNIT - 1) / MQA_WGMMA_UNIT;
}

/* The queries of a group's rows, their weights and which keys they see; what is
 * not there is zeros. */
FN void
gathered_wgmma_stage(const PRIVATE spmla_k_mqa_logits_gathered_wgmma_scalars *s,
		     GLOBAL const uint8_t *q, GLOBAL const float *weights,
		     GLOBAL const int32_t *starts, GLOBAL const int32_t *ends,
		     uint32_t group, LOCAL uint16_t *panels, LOCAL float *w,
		     LOCAL uint32_t *seen)
{
	uint32_t r;

	if (g_item() < GATHERED_WGMMA_ROWS) {
		const gathered_row row =
			gathered_wgmma_row(s, starts, ends, group, g_item());

		seen[2 * g_item()] = row.first;
		seen[2 * g_item() + 1] = row.end;
	}
	for (r = 0; r < GATHERED_WGMMA_ROWS; r++) {
		const uint32_t row = group * GATHERED_WGMMA_ROWS + r;
		const uint32_t is = row < s->tokens;
		const uint64_t t = is ? row : 0;
		mqa_wgmma_query query;

		mqa_wgmma_ask_q(&query, q + t * s->heads * SPMLA_INDEX_DIM,
				weights + (int64_t)t * s->weights_stride,
				is ? s->heads : 0);
		mqa_wgmma_put_q(&query,
				panels + r / 2 * 2 * MQA_WGMMA_Q +
					r % 2 * MQA_WGMMA_PANEL / 2,
				w + r * MQA_WGMMA_W);
	}
}

/* What a lane has of 64 keys: raw as mqa_wgmma_convert has it, and of key g + 8
 * (t % 2) of its subgroup the scale. */
typedef struct gathered_wgmma_keys {
	uint32_t raw[16];
	float scale;
} gathered_wgmma_keys;

/* Asks for those of the 64 keys from `first` on, up to stop, that some row
 * sees. */
FN void
gathered_wgmma_fetch(PRIVATE gathered_wgmma_keys *keys, GLOBAL const uint8_t *k,
		     GLOBAL const float *k_scales, LOCAL const uint32_t *seen,
		     uint32_t first, uint32_t stop)
{
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	const uint32_t aligned = ((uint64_t)k & 15u) == 0;
	const uint32_t own = first + g_item() / 32 * MQA_WGMMA_KEYS;
	const uint32_t key = own + g_lane() % MQA_WGMMA_KEYS;
	uint32_t is = 0, i, j;

	UNROLL
	for (i = 0; i < GATHERED_WGMMA_ROWS; i++)
		is |= key >= seen[2 * i] && key < seen[2 * i + 1];
	is = (uint32_t)g_ballot(is && key < stop);
	UNROLL
	for (i = 0; i < 2; i++) {
		const uint32_t loads = is >> (8 * i + g) & 1u;
		GLOBAL const uint8_t *codes = k;

		if (loads)
			codes += (uint64_t)(own + 8 * i + g) * SPMLA_INDEX_DIM +
				 16 * t;
		g_load128_if(loads && aligned, codes, keys->raw + 8 * i);
		g_load128_if(loads && aligned, codes + 64,
			     keys->raw + 8 * i + 4);
		if (loads && !aligned) {
			UNROLL
			for (j = 0; j < 8; j++)
				keys->raw[8 * i + j] = mqa_word(
					codes + j / 4 * 64 + j % 4 * 4, 0);
		}
	}
	keys->scale = 0.0f;
	i = g + 8 * (t & 1u);
	if (is >> i & 1u)
		keys->scale = k_scales[own + i];
}

/* Whether one of the rows sees one of the 64 keys from `first` on. */
FN uint32_t
gathered_wgmma_any(LOCAL const uint32_t *seen, uint32_t first)
{
	uint32_t any = 0, r;

	UNROLL
	for (r = 0; r < GATHERED_WGMMA_ROWS; r++)
		any |= seen[2 * r] < first + MQA_WGMMA_UNIT &&
		       first < seen[2 * r + 1];
	return g_broadcast(any, 0);
}

/* Writes a key's scores for rows r and r + 1 of a group if they see it. */
FN void
gathered_wgmma_write(const PRIVATE spmla_k_mqa_logits_gathered_wgmma_scalars *s,
		     GLOBAL float *logits, LOCAL const uint32_t *seen,
		     uint32_t group, uint32_t r, uint32_t key, float scale,
		     const PRIVATE float *score)
{
	uint32_t i;

	if (g_lane() % 4 >= 2)
		return;
	UNROLL
	for (i = 0; i < 2; i++) {
		const uint32_t from = seen[2 * (r + i)];
		const uint32_t end = seen[2 * (r + i) + 1];
		GLOBAL float *to =
			logits + ((int64_t)group * GATHERED_WGMMA_ROWS + r +
				  i) * s->logits_stride;

		if (key >= from && key < end)
			to[s->compressed ? key - from : key] = scale * score[i];
	}
}

/* The products of two rows' queries, in c. Meanwhile the products of two other
 * rows, d, are summed over their heads. */
FN void
gathered_wgmma_step(PRIVATE float *c, uint32_t a[8][4], g_panel q,
		    const PRIVATE float *d, LOCAL const float *w,
		    PRIVATE float *score)
{
	mqa_wgmma_sums sums[2];
	uint32_t k;

	g_wgmma_begin();
	UNROLL
	for (k = 0; k < 8; k++) {
		mqa_wgmma_product(c, a, q, 1, k);
		if (k == 7)
			g_wgmma_commit();
		mqa_wgmma_add(sums, d, w, k);
		mqa_wgmma_add(sums + 1, d + 32, w + MQA_WGMMA_W, k);
	}
	mqa_wgmma_done(c, 64);
	score[0] = mqa_wgmma_end(sums);
	score[1] = mqa_wgmma_end(sums + 1);
}

SPMLA_KERNEL_BLOCKS(mqa_logits_gathered_wgmma, 2)
void
spmla_k_mqa_logits_gathered_wgmma(SPMLA_KERNEL_ARGS(mqa_logits_gathered_wgmma))
{
	LOCAL_DYNAMIC(local, GATHERED_WGMMA_BYTES);
	LOCAL_ARRAY(uint32_t, seen, 2 * GATHERED_WGMMA_ROWS);
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	LOCAL uint16_t *panels = (LOCAL uint16_t *)local;
	LOCAL float *w = (LOCAL float *)(local + GATHERED_WGMMA_W_AT);
	LOCAL uint64_t *line =
		(LOCAL uint64_t *)(local + GATHERED_WGMMA_LINE_AT);
	const g_panel q_panels =
		g_panel_of(panels, G_GROUP_BYTES, G_PANEL_BYTES);
	const uint32_t groups = s.tokens / GATHERED_WGMMA_ROWS +
				(s.tokens % GATHERED_WGMMA_ROWS > 0);
	const uint32_t lane_key = g_item() / 32 * MQA_WGMMA_KEYS +
				  g_lane() / 4 +
				  g_lane() % 2 * (MQA_WGMMA_KEYS / 2);
	uint32_t base;

	for (base = 0; base < groups; base += GATHERED_WGMMA_LINE) {
		const uint32_t count = groups - base < GATHERED_WGMMA_LINE
					       ? groups - base
					       : GATHERED_WGMMA_LINE;
		uint64_t total = 0, last;
		uint32_t group = 0, left, i;

		for (i = 0; i < count; i += GATHERED_WGMMA_ITEMS) {
			uint64_t before, all;
			uint32_t units = 0;

			if (i + g_item() < count)
				units = gathered_wgmma_units(
					fault_state, fault_status, &s, starts,
					ends, base + i + g_item());
			before = g_scan_sum(units, GATHERED_WGMMA_ITEMS, sums,
					    &all);
			line[i + g_item()] = total + before + units;
			total += all;
		}
		BARRIER();
		last = total * (g_block() + 1) / g_blocks();
		left = (uint32_t)(last - total * g_block() / g_blocks());
		while (left) {
			const uint64_t unit = last - left;
			/* Products of rows 0 and 1, of rows 2 and 3, and of
			 * which key the latter are. */
			float c[64], d[64], score[2], d_scale = 0.0f;
			uint32_t d_key = ~0u;
			uint32_t tile, stop, n, r;
			gathered_row range;
			gathered_wgmma_keys keys;

			group = g_first_above64(line, group, count, unit);
			n = line[group] - unit < left
				    ? (uint32_t)(line[group] - unit)
				    : left;
			BARRIER(); /* nobody reads the last queries */
			gathered_wgmma_stage(&s, q, weights, starts, ends,
					     base + group, panels, w, seen);
			g_fence_async();
			BARRIER();
			range.first = range.end = 0;
			for (r = 0; r < GATHERED_WGMMA_ROWS; r++)
				gathered_wgmma_join(&range, seen[2 * r],
						    seen[2 * r + 1]);
			tile = range.first +
			       (uint32_t)(unit -
					  (group ? line[group - 1] : 0)) *
				       MQA_WGMMA_UNIT;
			stop = tile + n * MQA_WGMMA_UNIT;
			stop = stop < range.end ? stop : range.end;
			gathered_wgmma_fetch(&keys, k, k_scales, seen, tile,
					     stop);
			UNROLL
			for (i = 0; i < 64; i++)
				d[i] = 0.0f;
			for (; tile < stop; tile += MQA_WGMMA_UNIT) {
				uint32_t a[8][4];
				float scale = keys.scale;

				mqa_wgmma_convert(keys.raw, a);
				gathered_wgmma_fetch(&keys, k, k_scales, seen,
						     tile + MQA_WGMMA_UNIT,
						     stop);
				if (!gathered_wgmma_any(seen, tile))
					continue;
				gathered_wgmma_step(c, a, q_panels, d,
						    w + 2 * MQA_WGMMA_W, score);
				gathered_wgmma_write(&s, logits, seen,
						     base + group, 2, d_key,
						     d_scale, score);
				gathered_wgmma_step(
					d, a,
					g_panel_on(q_panels, 4 * MQA_WGMMA_Q),
					c, w, score);
				d_key = tile + lane_key;
				d_scale = scale;
				gathered_wgmma_write(&s, logits, seen,
						     base + group, 0, d_key,
						     d_scale, score);
			}
			score[0] = mqa_wgmma_sum(d, w + 2 * MQA_WGMMA_W);
			score[1] = mqa_wgmma_sum(d + 32, w + 3 * MQA_WGMMA_W);
			gathered_wgmma_write(&s, logits, seen, base + group, 2,
					     d_key, d_scale, score);
			left -= n;
		}
	}
	if (s.clean)
		gathered_clean(starts, ends, logits, s.logits_stride, s.tokens,
			       s.keys, s.columns, 0, GATHERED_WGMMA_ITEMS);
}

#endif
#endif
