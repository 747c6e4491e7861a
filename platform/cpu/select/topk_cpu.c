/* SPDX-License-Identifier: Apache-2.0
 *
 * topk on the CPU. The hard idea: a monotone map from f32 to uint32 makes the
 * k-th largest score an integer, which three histograms (11, 11 and 10 bits)
 * find exactly. One pass in index order then emits every score above it and the
 * first few equal to it, so the output ascends without a sort.
 */
#include "spmla/platform/cpu/core/input_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"

enum { BINS = SPMLA_I_CPU_TOPK_BINS };

/* Order of scores as unsigned integers: -inf up to +inf, then NaN; -0 and +0
 * are one value. */
static uint32_t
key_of(float score)
{
	const uint32_t u = spmla_i_f32_bits(score);

	if ((u & 0x7fffffffu) > 0x7f800000u)
		return UINT32_MAX;
	if (u == 0x80000000u)
		return 0x80000000u;
	return u & 0x80000000u ? ~u : u | 0x80000000u;
}

/* The bin of the digit at which *rest elements are reached, counting from the
 * largest bin down. *rest becomes the number that is taken from that bin. */
static uint32_t
pick_bin(const uint32_t *bins, uint32_t *rest)
{
	uint32_t bin = BINS;

	for (;;) {
		bin--;
		if (bins[bin] >= *rest)
			return bin;
		*rest -= bins[bin];
	}
}

/* The k-th largest key of a row. *ties of the keys equal to it are in the set,
 * and *others are not. */
static inline uint32_t
kth_key(const void *row, uint32_t dtype, uint32_t len, uint32_t k,
	uint32_t *bins, uint32_t *ties, uint32_t *others)
{
	static const uint32_t shift[3] = {21, 10, 0};
	uint32_t prefix = 0, mask = 0, pass, bin, i;

	*ties = k;
	for (pass = 0; pass < 3; pass++) {
		const uint32_t digit = pass == 2 ? 0x3ffu : 0x7ffu;

		memset(bins, 0, BINS * sizeof *bins);
		for (i = 0; i < len; i++) {
			const uint32_t key =
				key_of(spmla_i_cpu_real(row, dtype, i));

			if ((key & mask) == prefix)
				bins[key >> shift[pass] & digit]++;
		}
		bin = pick_bin(bins, ties);
		*others = bins[bin] - *ties;
		prefix |= bin << shift[pass];
		mask |= digit << shift[pass];
	}
	return prefix;
}

/* Inlined for each dtype, so that no loop tests it. */
static inline void
select_row(const void *row, uint32_t dtype, uint32_t len, uint32_t k,
	   uint32_t which, uint32_t *bins, int32_t *out)
{
	uint32_t ties, skip, i, n = 0;
	const uint32_t kth = kth_key(row, dtype, len, k, bins, &ties, &skip);

	if (which == SPMLA_TIES_LOWER)
		skip = 0;
	for (i = 0; n < k; i++) {
		const uint32_t key = key_of(spmla_i_cpu_real(row, dtype, i));

		if (key < kth || (key == kth && ties == 0))
			continue;
		if (key == kth && skip > 0) {
			skip--;
			continue;
		}
		if (key == kth)
			ties--;
		out[n++] = (int32_t)i;
	}
}

static void
topk_row(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t r)
{
	const spmla_topk_args *a = args;
	int32_t *out = a->indices + (int64_t)r * a->indices_stride_elems;
	const int64_t start =
		a->row_starts ? a->row_starts[r] : r * a->row_stride_elems;
	uint32_t len =
		a->context_lens[r] > 0 ? (uint32_t)a->context_lens[r] : 0;
	uint32_t n, i;

	if (!a->row_starts && len > a->row_stride_elems) {
		spmla_i_cpu_fault(ctx, r, SPMLA_FAULT_LOGITS);
		len = (uint32_t)a->row_stride_elems;
	}
	if (len > 0 && (start < 0 || (uint64_t)start > a->logits_elems ||
			len > a->logits_elems - (uint64_t)start)) {
		spmla_i_cpu_fault(ctx, r, SPMLA_FAULT_LOGITS);
		len = 0;
	}
	n = len < a->k ? len : a->k;
	if (len > a->k && a->logits_dtype == SPMLA_REAL_BF16)
		select_row((const uint16_t *)a->logits + start, SPMLA_REAL_BF16,
			   len, a->k, a->ties,
			   spmla_i_cpu_index_scratch(ctx, worker), out);
	else if (len > a->k)
		select_row((const float *)a->logits + start, SPMLA_REAL_F32,
			   len, a->k, a->ties,
			   spmla_i_cpu_index_scratch(ctx, worker), out);
	else
		for (i = 0; i < len; i++)
			out[i] = (int32_t)i;
	for (i = n; i < a->k; i++)
		out[i] = -1;
	if (a->lens)
		a->lens[r] = (int32_t)n;
}

void
spmla_i_cpu_topk(spmla_ctx *ctx, const void *args)
{
	const spmla_topk_args *a = args;

	spmla_i_cpu_for(ctx, a, a->rows, topk_row);
	if (a->map.struct_bytes)
		spmla_i_cpu_index_map(ctx, &a->map);
}
