/* SPDX-License-Identifier: Apache-2.0
 *
 * topk: a block a row. A monotone map from f32 to uint32 makes the k-th largest
 * score an integer that histograms of 11 bits find exactly; then everything
 * above it and the first few equal to it go where a running count of
 * (above, equal) says, so the output is ascending with no sort.
 *
 * The hard idea is to read a long row once. A sample, one score of 16, gives a
 * key above which somewhat more than k scores of the row should lie. One pass
 * lists these in order of their index, and the rest is done with the list
 * alone. With ties, or an odd order of scores, the list may have fewer than k
 * scores or no room for all. Then the row itself is gone through. The set is
 * the same either way.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_TOPK_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_TOPK_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/fault_device.h"

/* The parameters of every kernel that does topk. */
#define SPMLA_K_TOPK(P, S)             \
	SPMLA_K_FAULT(P)               \
	P(const float, logits)         \
	P(const int64_t, row_starts)   \
	P(const int32_t, context_lens) \
	P(int32_t, indices)            \
	P(int32_t, lens)               \
	S(uint64_t, logits_elems)      \
	S(int64_t, indices_stride)     \
	S(int64_t, row_stride)         \
	S(uint32_t, rows)              \
	S(uint32_t, k)                 \
	S(uint32_t, has_lens)          \
	S(uint32_t, has_starts)        \
	S(uint32_t, last_ties)
#define SPMLA_K_topk(P, S) SPMLA_K_TOPK(P, S)
SPMLA_KERNEL_SCALARS(topk)
#define SPMLA_K_topk_bf16(P, S) SPMLA_K_TOPK(P, S)
typedef spmla_k_topk_scalars spmla_k_topk_bf16_scalars;

#ifdef SPMLA_GPU_KERNELS

typedef struct topk_args {
	SPMLA_KERNEL_FIELDS(topk)
} topk_args;

enum {
	TOPK_BINS = 2048,
	TOPK_ITEMS = SPMLA_ITEMS_topk,
	TOPK_EACH = 8, /* keys that an item holds of what is selected from */
	TOPK_HELD = TOPK_EACH * TOPK_ITEMS,
	/* An item's share of the list is an odd number, so that the items'
	 * shares start in different banks. */
	TOPK_LISTED = (TOPK_EACH - 1) * TOPK_ITEMS,
	TOPK_SPACING = 16, /* of the scores that are looked at first */
	TOPK_ROUNDS = 4,   /* loads of 4 scores that an item has in flight */
	TOPK_CHUNK = 4 * TOPK_ROUNDS * TOPK_ITEMS,
	TOPK_FOUND = 4
};

/* No score: the bits and the key of -inf, the smallest. A pass that could
 * select it tells it from a real -inf by its place. */
#define TOPK_NONE  0xff800000u
#define TOPK_LEAST 0x007fffffu

/* What a block shares. */
typedef struct topk_scratch {
	LOCAL uint32_t *bins; /* TOPK_BINS, all 0 between two histograms */
	LOCAL uint32_t *sums; /* 2 * G_SCAN_SUBGROUPS */
	LOCAL uint32_t *found;
	LOCAL uint32_t *list; /* TOPK_LISTED indices */
} topk_scratch;

/* A row; `pad` scores before its start begin 16 aligned bytes. */
typedef struct topk_row {
	GLOBAL const float *at;
	uint32_t len;
	uint32_t pad;
	uint32_t bf16; /* a constant: the scores are, and pad is 0 */
} topk_row;

/* Where row r is; its length is 0 if it is not in logits. If `tells` is not 0,
 * what the row gives besides its indices is written. */
FN topk_row
topk_find(const PRIVATE topk_args *a, uint32_t r, uint32_t tells,
	  const uint32_t bf16)
{
	const int64_t start = a->s.has_starts ? a->row_starts[r]
					      : (int64_t)r * a->s.row_stride;
	uint32_t len =
		a->context_lens[r] > 0 ? (uint32_t)a->context_lens[r] : 0;
	uint32_t is_bad = 0;
	topk_row row;

	if (!a->s.has_starts && (int64_t)len > a->s.row_stride) {
		is_bad = 1;
		len = (uint32_t)a->s.row_stride;
	}
	if (len > 0 && (start < 0 || (uint64_t)start > a->s.logits_elems ||
			len > a->s.logits_elems - (uint64_t)start)) {
		is_bad = 1;
		len = 0;
	}
	if (tells && is_bad)
		g_fault(a->fault_state, a->fault_status, r, G_FAULT_LOGITS);
	if (tells && a->s.has_lens)
		a->lens[r] = (int32_t)(len < a->s.k ? len : a->s.k);
	row.at = a->logits + (len && !bf16 ? start : 0);
	if (len && bf16)
		row.at = (GLOBAL const float *)((GLOBAL const uint16_t *)
							a->logits +
						start);
	row.len = len;
	row.pad = bf16 ? 0 : (uint32_t)((uint64_t)row.at / 4 % 4);
	row.bf16 = bf16;
	return row;
}

/* The indices of a row of no more than k scores, by `items` threads. */
FN void
topk_identity(uint32_t len, uint32_t k, uint32_t items, GLOBAL int32_t *out)
{
	uint32_t i;

	NO_UNROLL
	for (i = g_item(); i < k; i += items)
		out[i] = i < len ? (int32_t)i : -1;
}

/* Order of scores as unsigned integers: -inf up to +inf, then NaN; -0 and +0
 * are one value, as a sum with 0 makes -0 to 0. */
FN uint32_t
topk_key(uint32_t score)
{
	const float x = g_float(score) + 0.0f;
	const uint32_t u = g_bits(x);

	return x == x ? u ^ ((0u - (u >> 31)) | 0x80000000u) : ~0u;
}

/* The bits of a score, as f32. */
FN uint32_t
topk_score(topk_row row, uint32_t i)
{
	if (row.bf16)
		return (uint32_t)((GLOBAL const uint16_t *)row.at)[i] << 16;
	return g_bits(row.at[i]);
}

/* Bits of scores 4 * v - pad and on; TOPK_NONE outside the row. */
FN void
topk_fetch4(topk_row row, uint32_t v, PRIVATE uint32_t *x)
{
	const uint32_t at = 4 * v - row.pad; /* wraps before the start */
	uint32_t i;

	if (at < row.len && row.len - at >= 4 && !row.bf16) {
		g_load4(row.at + at, x);
		return;
	}
	UNROLL
	for (i = 0; i < 4; i++)
		x[i] = at + i < row.len ? topk_score(row, at + i) : TOPK_NONE;
}

/* The first of the 4 scores that an item has in round r of a chunk, counted
 * from the aligned start: a subgroup's scores of a chunk lie together. */
FN uint32_t
topk_place(uint32_t chunk, uint32_t r)
{
	const uint32_t own = g_item() / g_width();

	return chunk + 4 * ((own * TOPK_ROUNDS + r) * g_width() + g_lane());
}

FN void
topk_fetch(topk_row row, uint32_t chunk, PRIVATE uint32_t *x)
{
	uint32_t r;

	UNROLL
	for (r = 0; r < TOPK_ROUNDS; r++)
		topk_fetch4(row, topk_place(chunk, r) / 4, x + 4 * r);
}

/* The sum of the subgroups' `sums` before one's own, and of all. */
FN uint32_t
topk_before(LOCAL const uint32_t *sums, PRIVATE uint32_t *all)
{
	const uint32_t width = g_width(), own = g_item() / width;
	uint32_t before = 0, total = 0, i;

	for (i = g_lane(); i < TOPK_ITEMS / width; i += width) {
		before += i < own ? sums[i] : 0;
		total += sums[i];
	}
	for (i = 1; i < width; i <<= 1) {
		before += g_shuffle_xor(before, i);
		total += g_shuffle_xor(total, i);
	}
	*all = total;
	return before;
}

/* The sum of x over the items before this one; *all is the sum over all. Has
 * one barrier; the caller has another between two uses of sums. */
FN uint32_t
topk_scan(uint32_t x, LOCAL uint32_t *sums, PRIVATE uint32_t *all)
{
	uint32_t group = x, before = 0, step;

	for (step = 1; step < g_width(); step <<= 1) {
		const uint32_t other = g_shuffle_xor(group, step);

		before += g_lane() & step ? other : 0;
		group += other;
	}
	if (g_lane() == 0)
		sums[g_item() / g_width()] = group;
	BARRIER();
	return before + topk_before(sums, all);
}

/* The bin at which, counting from the largest bin down, `rest` elements are
 * reached, to found[0]; how many are taken from it, to found[1], and how many
 * are left, to found[2]. Empties the bins. A barrier at both ends. */
FN void
topk_pick(topk_scratch shared, uint32_t rest)
{
	enum { EACH = TOPK_BINS / TOPK_ITEMS };
	const uint32_t first = g_item() * EACH;
	uint32_t own[EACH], here = 0, above, all, i;

	BARRIER();
	UNROLL
	for (i = 0; i < EACH; i++) {
		own[i] = shared.bins[first + i];
		shared.bins[first + i] = 0;
		here += own[i];
	}
	above = topk_scan(here, shared.sums, &all);
	above = all - above - here;
	UNROLL
	for (i = EACH; i-- > 0;) {
		if (above < rest && above + own[i] >= rest) {
			shared.found[0] = first + i;
			shared.found[1] = rest - above;
			shared.found[2] = above + own[i] - rest;
		}
		above += own[i];
	}
	BARRIER();
}

/* The rank-th largest key of the block's items; all keys are in [base, base +
 * 2^bits). *ties is how many keys equal to it are within the rank. May stop
 * sooner, at the lower end of its bin, if at most `slack` keys of the bin are
 * beyond the rank; *ties then counts the bin's keys within the rank. */
FN uint32_t
topk_select(topk_scratch shared, const PRIVATE uint32_t *keys, uint32_t base,
	    uint32_t bits, uint32_t rank, uint32_t slack,
	    PRIVATE uint32_t *ties)
{
	uint32_t prefix = 0, mask = 0, shift = bits > 11 ? bits - 11 : 0, i;

	for (;;) {
		UNROLL
		for (i = 0; i < TOPK_EACH; i++) {
			const uint32_t x = keys[i] - base;

			if ((x & mask) == prefix)
				g_local_add(&shared.bins[(x >> shift) &
							 (TOPK_BINS - 1)],
					    1);
		}
		topk_pick(shared, rank);
		prefix |= shared.found[0] << shift;
		mask = ~0u << shift;
		rank = shared.found[1];
		if (shift == 0 || shared.found[2] <= slack)
			break;
		shift = shift > 11 ? shift - 11 : 0;
	}
	*ties = rank;
	return base + prefix;
}

/* How many of the first e keys that equal the k-th are taken. All that are
 * taken are `ties` of them, from the one numbered `first` on. */
FN uint32_t
topk_taken(uint32_t e, uint32_t first, uint32_t ties)
{
	const uint32_t n = e > first ? e - first : 0;

	return n < ties ? n : ties;
}

/* How many of `equal` keys are not taken; none, if a key below the k-th stands
 * for all of its bin. */
FN uint32_t
topk_left(uint32_t equal, uint32_t ties)
{
	return equal > ties ? equal - ties : 0;
}

/* Writes the indices of the items' keys, in order over the items: keys above
 * kth, and the first `ties` equal to it, or the last ones. An index of ~0 is
 * none. */
FN void
topk_put(topk_scratch shared, const PRIVATE uint32_t *keys,
	 const PRIVATE uint32_t *index, uint32_t kth, uint32_t ties,
	 uint32_t last_ties, GLOBAL int32_t *out)
{
	uint32_t count = 0, above, equal, first, all, i;

	UNROLL
	for (i = 0; i < TOPK_EACH; i++)
		if (index[i] != ~0u)
			count += keys[i] > kth ? 1u << 16 : keys[i] == kth;
	count = topk_scan(count, shared.sums, &all);
	above = count >> 16;
	equal = count & 0xffffu;
	first = last_ties ? topk_left(all & 0xffffu, ties) : 0;
	UNROLL
	for (i = 0; i < TOPK_EACH; i++) {
		if (index[i] == ~0u || keys[i] < kth)
			continue;
		if (keys[i] > kth)
			out[above++ + topk_taken(equal, first, ties)] =
				(int32_t)index[i];
		else if (equal++ - first < ties)
			out[above + equal - 1 - first] = (int32_t)index[i];
	}
}

/* Where a subgroup's marked elements of a chunk go; bit 8 * round + i of
 * `marks` marks one of the lane's. Byte `round` of the result is how many the
 * lanes before this one have. *even counts all lanes' elements of rounds 0 and
 * 2, *odd of rounds 1 and 3, in 16 bits each. */
FN uint32_t
topk_rounds(uint32_t marks, PRIVATE uint32_t *even, PRIVATE uint32_t *odd)
{
	const uint32_t bytes = 0x00ff00ffu, wide = g_width() / 2;
	uint32_t group = marks - ((marks >> 1) & 0x55555555u);
	uint32_t before = 0, other, step;

	group = (group & 0x33333333u) + ((group >> 2) & 0x33333333u);
	for (step = 1; step < wide; step <<= 1) {
		other = g_shuffle_xor(group, step);
		before += g_lane() & step ? other : 0;
		group += other;
	}
	/* All 64 lanes' could be 256, which no byte holds. */
	other = g_shuffle_xor(group, wide);
	before += g_lane() & wide ? other : 0;
	*even = (group & bytes) + (other & bytes);
	*odd = ((group >> 8) & bytes) + ((other >> 8) & bytes);
	return before;
}

/* How many of a subgroup's elements come before a lane's in round r. */
FN uint32_t
topk_offset(uint32_t before, uint32_t even, uint32_t odd, uint32_t r)
{
	uint32_t at = (before >> (8 * r)) & 0xffu;

	at += r > 0 ? even & 0xffffu : 0;
	at += r > 1 ? odd & 0xffffu : 0;
	at += r > 2 ? even >> 16 : 0;
	return at;
}

/* Lists the indices of keys >= low > TOPK_LEAST, in order; returns how many
 * there are, or some number that the list does not hold. x is the first chunk.
 * A barrier at the end. */
FN uint32_t
topk_collect(topk_scratch shared, topk_row row, PRIVATE uint32_t *x,
	     uint32_t low)
{
	const uint32_t own = g_item() / g_width();
	/* Which scores are listed, by their bits: positive ones and NaN from
	 * `first` on; right behind them the `negative` smallest negative ones,
	 * with -0; and, behind -inf, the NaN with a sign. */
	const uint32_t zero = 0x80000000u, nan = 0x7f800001u;
	const uint32_t above = low > zero ? low - zero : 0;
	const uint32_t first = above < nan ? above : nan;
	const uint32_t negative = low < zero ? zero - low : low == zero;
	const uint32_t span = zero - first + negative;
	uint32_t done = 0, turn = 0, chunk, r, i;

	for (chunk = 0; chunk < row.len + row.pad && done <= TOPK_LISTED;
	     chunk += TOPK_CHUNK) {
		LOCAL uint32_t *sums = shared.sums + turn * G_SCAN_SUBGROUPS;
		uint32_t marks = 0, before, even, odd, base, all;

		UNROLL
		for (i = 0; i < 4 * TOPK_ROUNDS; i++)
			if (x[i] - first < span || x[i] > TOPK_NONE)
				marks |= 1u << (i / 4 * 8 + i % 4);
		if (chunk + TOPK_CHUNK < row.len + row.pad)
			topk_fetch(row, chunk + TOPK_CHUNK, x);
		before = topk_rounds(marks, &even, &odd);
		if (g_lane() == 0)
			sums[own] = (even & 0xffffu) + (even >> 16) +
				    (odd & 0xffffu) + (odd >> 16);
		BARRIER();
		base = done + topk_before(sums, &all);
		UNROLL
		for (r = 0; r < TOPK_ROUNDS; r++) {
			const uint32_t at = topk_place(chunk, r) - row.pad;
			uint32_t to = base + topk_offset(before, even, odd, r);

			if (((marks >> (8 * r)) & 15u) == 0)
				continue;
			UNROLL
			for (i = 0; i < 4; i++) {
				if (!((marks >> (8 * r + i)) & 1u))
					continue;
				if (to < TOPK_LISTED)
					shared.list[to] = at + i;
				to++;
			}
		}
		done += all;
		turn ^= 1; /* so that one barrier a chunk is enough */
	}
	BARRIER();
	return done;
}

/* The k-th key of a row, from histograms of the row itself; *ties as in
 * topk_select. */
FN uint32_t
topk_kth(topk_scratch shared, topk_row row, uint32_t k, PRIVATE uint32_t *ties)
{
	uint32_t prefix = 0, mask = 0, shift = 21, chunk, i;

	for (;;) {
		for (chunk = 0; chunk < row.len + row.pad;
		     chunk += TOPK_CHUNK) {
			uint32_t x[4 * TOPK_ROUNDS];

			topk_fetch(row, chunk, x);
			/* What is outside the row counts as the smallest key:
			 * it changes no bin that is reached from above. */
			UNROLL
			for (i = 0; i < 4 * TOPK_ROUNDS; i++) {
				const uint32_t key = topk_key(x[i]);

				if ((key & mask) == prefix)
					g_local_add(
						&shared.bins[(key >> shift) &
							     (TOPK_BINS - 1)],
						1);
			}
		}
		topk_pick(shared, k);
		prefix |= shared.found[0] << shift;
		mask = ~0u << shift;
		k = shared.found[1];
		if (shift == 0 || shared.found[2] == 0)
			break;
		shift = shift > 11 ? shift - 11 : 0;
	}
	*ties = k;
	return prefix;
}

/* How many keys of the row equal the k-th. A barrier. */
FN uint32_t
topk_equal(topk_scratch shared, topk_row row, uint32_t kth)
{
	uint32_t n = 0, chunk, all, i;

	for (chunk = 0; chunk < row.len + row.pad; chunk += TOPK_CHUNK) {
		uint32_t x[4 * TOPK_ROUNDS];

		topk_fetch(row, chunk, x);
		UNROLL
		for (i = 0; i < 4 * TOPK_ROUNDS; i++)
			n += topk_place(chunk, i / 4) - row.pad + i % 4 <
				     row.len &&
			     topk_key(x[i]) == kth;
	}
	(void)topk_scan(n, shared.sums, &all);
	BARRIER(); /* the sums are read */
	return all;
}

FN void
topk_emit(topk_scratch shared, topk_row row, uint32_t kth, uint32_t ties,
	  uint32_t last_ties, GLOBAL int32_t *out)
{
	const uint32_t first =
		last_ties ? topk_left(topk_equal(shared, row, kth), ties) : 0;
	const uint32_t own = g_item() / g_width();
	uint32_t n_above = 0, n_equal = 0, turn = 0, chunk, r, i;

	for (chunk = 0; chunk < row.len + row.pad; chunk += TOPK_CHUNK) {
		LOCAL uint32_t *sums = shared.sums + turn * G_SCAN_SUBGROUPS;
		uint32_t x[4 * TOPK_ROUNDS], above = 0, equal = 0, all, base;
		uint32_t a_before, a_even, a_odd, e_before, e_even, e_odd;

		topk_fetch(row, chunk, x);
		UNROLL
		for (i = 0; i < 4 * TOPK_ROUNDS; i++) {
			const uint32_t bit = 1u << (i / 4 * 8 + i % 4);
			const uint32_t at =
				topk_place(chunk, i / 4) - row.pad + i % 4;
			const uint32_t key = topk_key(x[i]);

			above |= at < row.len && key > kth ? bit : 0;
			equal |= at < row.len && key == kth ? bit : 0;
		}
		a_before = topk_rounds(above, &a_even, &a_odd);
		e_before = topk_rounds(equal, &e_even, &e_odd);
		if (g_lane() == 0) {
			/* (above, equal), 16 bits each; of a chunk less */
			all = (a_even & 0xffffu) + (a_even >> 16) +
			      (a_odd & 0xffffu) + (a_odd >> 16);
			sums[own] = all << 16 |
				    ((e_even & 0xffffu) + (e_even >> 16) +
				     (e_odd & 0xffffu) + (e_odd >> 16));
		}
		BARRIER();
		base = topk_before(sums, &all);
		/* Not unrolled: that takes more registers than there are. */
		for (r = 0; r < TOPK_ROUNDS; r++) {
			const uint32_t at = topk_place(chunk, r) - row.pad;
			uint32_t a = n_above + (base >> 16) +
				     topk_offset(a_before, a_even, a_odd, r);
			uint32_t e = n_equal + (base & 0xffffu) +
				     topk_offset(e_before, e_even, e_odd, r);

			if ((((above | equal) >> (8 * r)) & 15u) == 0)
				continue;
			UNROLL
			for (i = 0; i < 4; i++) {
				const uint32_t bit = 8 * r + i;

				if ((above >> bit) & 1u) {
					out[a + topk_taken(e, first, ties)] =
						(int32_t)(at + i);
					a++;
				} else if ((equal >> bit) & 1u) {
					if (e - first < ties)
						out[a + e - first] =
							(int32_t)(at + i);
					e++;
				}
			}
		}
		n_above += all >> 16;
		n_equal += all & 0xffffu;
		turn ^= 1;
	}
}

/* A key above which, by a sample, `want` of the row's keys lie. */
FN uint32_t
topk_sample(topk_scratch shared, topk_row row, uint32_t want)
{
	const uint32_t most = (row.len + TOPK_HELD - 1) / TOPK_HELD;
	const uint32_t apart = most > TOPK_SPACING ? most : TOPK_SPACING;
	const uint32_t n = row.len / apart;
	const uint32_t rank = 1 + want * n / row.len;
	uint32_t keys[TOPK_EACH], ties, i;

	UNROLL
	for (i = 0; i < TOPK_EACH; i++) {
		const uint32_t j = i * TOPK_ITEMS + g_item();
		/* Somewhere in each `apart` scores, since scores may have a
		 * period. */
		const uint32_t off = ((j * 0x9e3779b1u) >> 22) * apart >> 10;

		keys[i] = j < n ? g_bits(row.at[j * apart + off]) : TOPK_NONE;
	}
	UNROLL
	for (i = 0; i < TOPK_EACH; i++)
		keys[i] = topk_key(keys[i]);
	return topk_select(shared, keys, 0, 32, rank, rank / 8, &ties);
}

/* Selects the k best of a row that the items can hold in registers. */
FN void
topk_short(topk_scratch shared, topk_row row, uint32_t k, uint32_t last_ties,
	   GLOBAL int32_t *out)
{
	uint32_t keys[TOPK_EACH], index[TOPK_EACH], kth, ties, i;

	UNROLL
	for (i = 0; i < TOPK_EACH; i += 4)
		topk_fetch4(row, (g_item() * TOPK_EACH + i) / 4, keys + i);
	UNROLL
	for (i = 0; i < TOPK_EACH; i++) {
		const uint32_t at = g_item() * TOPK_EACH + i - row.pad;

		keys[i] = topk_key(keys[i]);
		index[i] = at < row.len ? at : ~0u;
	}
	kth = topk_select(shared, keys, 0, 32, k, 0, &ties);
	topk_put(shared, keys, index, kth, ties, last_ties, out);
}

/* The k best of the `n` elements in the list, whose keys are at least low. */
FN void
topk_listed(topk_scratch shared, topk_row row, uint32_t n, uint32_t low,
	    uint32_t k, uint32_t last_ties, GLOBAL int32_t *out)
{
	const uint32_t each = ((n + TOPK_ITEMS - 1) / TOPK_ITEMS) | 1u;
	uint32_t keys[TOPK_EACH], index[TOPK_EACH], most = low, kth, ties, i;

	UNROLL
	for (i = 0; i < TOPK_EACH; i++) {
		const uint32_t at = g_item() * each + i;

		index[i] = i < each && at < n ? shared.list[at] : ~0u;
	}
	UNROLL
	for (i = 0; i < TOPK_EACH; i++)
		keys[i] =
			index[i] != ~0u ? g_bits(row.at[index[i]]) : TOPK_NONE;
	UNROLL
	for (i = 0; i < TOPK_EACH; i++) {
		keys[i] = index[i] != ~0u ? topk_key(keys[i]) : low;
		most = keys[i] > most ? keys[i] : most;
	}
	for (i = 1; i < g_width(); i <<= 1) {
		const uint32_t other = g_shuffle_xor(most, i);

		most = other > most ? other : most;
	}
	if (g_lane() == 0)
		g_local_max(&shared.found[3], most);
	BARRIER();
	kth = topk_select(shared, keys, low, 32 - g_clz(shared.found[3] - low),
			  k, 0, &ties);
	topk_put(shared, keys, index, kth, ties, last_ties, out);
}

/* The k < len best, by the row itself. */
FN void
topk_whole(topk_scratch shared, topk_row row, uint32_t k, uint32_t last_ties,
	   GLOBAL int32_t *out)
{
	uint32_t ties;
	const uint32_t kth = topk_kth(shared, row, k, &ties);

	topk_emit(shared, row, kth, ties, last_ties, out);
}

/* The k < len best of a row. */
FN void
topk_best(topk_scratch shared, topk_row row, uint32_t k, uint32_t last_ties,
	  GLOBAL int32_t *out)
{
	if (row.len + row.pad <= TOPK_HELD) {
		topk_short(shared, row, k, last_ties, out);
		return;
	}
	if (k <= TOPK_LISTED / 4 * 3) {
		uint32_t x[4 * TOPK_ROUNDS], low, n = 0;

		if (g_item() == 0)
			shared.found[3] = 0;
		topk_fetch(row, 0, x); /* needed next, so on its way already */
		low = topk_sample(shared, row, k + (TOPK_LISTED - k) / 3);
		if (low > TOPK_LEAST)
			n = topk_collect(shared, row, x, low);
		if (n >= k && n <= TOPK_LISTED) {
			topk_listed(shared, row, n, low, k, last_ties, out);
			return;
		}
	}
	topk_whole(shared, row, k, last_ties, out);
}

/* Scores of bf16 have no list: every row is gone through itself. Slower, but
 * half of the code. */
FN void
topk_rows(const PRIVATE topk_args *a, topk_scratch shared, const uint32_t bf16)
{
	uint32_t r, i;

	for (i = g_item(); i < TOPK_BINS; i += TOPK_ITEMS)
		shared.bins[i] = 0;
	BARRIER();
	for (r = g_block(); r < a->s.rows; r += g_blocks()) {
		GLOBAL int32_t *out =
			a->indices + (int64_t)r * a->s.indices_stride;
		topk_row row = topk_find(a, r, g_item() == 0, bf16);

		/* The item that wrote the row's other outputs has diverged; the
		 * broadcast joins the subgroup again, as barriers and shuffles
		 * need. */
		row.len = g_broadcast(row.len, 0);
		if (row.len <= a->s.k)
			topk_identity(row.len, a->s.k, TOPK_ITEMS, out);
		else if (bf16)
			topk_whole(shared, row, a->s.k, a->s.last_ties, out);
		else
			topk_best(shared, row, a->s.k, a->s.last_ties, out);
		BARRIER(); /* what is shared is used anew */
	}
}

SPMLA_KERNEL(topk)
void
spmla_k_topk(SPMLA_KERNEL_ARGS(topk))
{
	LOCAL_ARRAY(uint32_t, bins, TOPK_BINS);
	LOCAL_ARRAY(uint32_t, sums, 2 * G_SCAN_SUBGROUPS);
	LOCAL_ARRAY(uint32_t, found, TOPK_FOUND);
	LOCAL_ARRAY(uint32_t, list, TOPK_LISTED);
	const topk_args a = {SPMLA_KERNEL_VALUES(topk)};
	const topk_scratch shared = {bins, sums, found, list};

	topk_rows(&a, shared, 0);
}

SPMLA_KERNEL(topk_bf16)
void
spmla_k_topk_bf16(SPMLA_KERNEL_ARGS(topk_bf16))
{
	LOCAL_ARRAY(uint32_t, bins, TOPK_BINS);
	LOCAL_ARRAY(uint32_t, sums, 2 * G_SCAN_SUBGROUPS);
	LOCAL_ARRAY(uint32_t, found, TOPK_FOUND);
	const topk_args a = {SPMLA_KERNEL_VALUES(topk_bf16)};
	const topk_scratch shared = {bins, sums, found, bins /* no list */};

	topk_rows(&a, shared, 1);
}

#endif
#endif
