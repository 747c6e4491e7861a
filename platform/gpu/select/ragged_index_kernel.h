/* SPDX-License-Identifier: Apache-2.0
 *
 * ragged_index: one launch in which blocks exchange nothing. Each block has a
 * run of tokens and adds up the lengths before it by itself, 4 bytes a token
 * from the cache. A subgroup takes a row, or a part of one if the block has few
 * rows. It loads the row as soon as it knows the length: the destination is
 * needed only when the row has arrived.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_RAGGED_INDEX_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_RAGGED_INDEX_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/fault_device.h"

#define SPMLA_K_ragged_index(P, S) \
	SPMLA_K_FAULT(P)           \
	P(const int32_t, indices)  \
	P(const int32_t, lens)     \
	P(int32_t, ragged_indptr)  \
	P(int32_t, ragged_indices) \
	S(int64_t, indices_stride) \
	S(uint32_t, tokens)        \
	S(uint32_t, width)         \
	S(uint32_t, num_slots)     \
	S(uint32_t, capacity)      \
	S(uint32_t, share)         \
	S(uint32_t, wide)          \
	S(uint32_t, has_lens)
SPMLA_KERNEL_SCALARS(ragged_index)

enum {
	RAGGED_ITEMS = SPMLA_ITEMS_ragged_index,
	RAGGED_SUBGROUPS = RAGGED_ITEMS / 16, /* at most */
	RAGGED_SHARE = 4, /* a block has a multiple of so many tokens, or one */
	RAGGED_LENS = 4,  /* loads of lengths that a thread has on their way */
	RAGGED_LOADS = 10 /* and of entries */
};

#ifdef SPMLA_GPU_KERNELS

FN uint32_t
ragged_clamp(int32_t len, uint32_t width)
{
	const uint32_t n = len > 0 ? (uint32_t)len : 0;

	return n < width ? n : width;
}

/* The thread's part of the sum of n lengths; `wide`: lens is aligned to 16
 * bytes and n is a multiple of 4. */
FN uint64_t
ragged_before(GLOBAL const int32_t *lens, uint32_t wide, uint32_t width,
	      uint32_t n)
{
	const uint32_t each = wide ? 4 : 1;
	uint64_t sum = 0;
	uint32_t t, i;

	for (t = each * g_item(); t < n;
	     t += each * RAGGED_LENS * RAGGED_ITEMS) {
		uint32_t x[4 * RAGGED_LENS];

		UNROLL
		for (i = 0; i < 4 * RAGGED_LENS; i++)
			x[i] = 0;
		UNROLL
		for (i = 0; i < RAGGED_LENS; i++) {
			const uint32_t at = t + i * each * RAGGED_ITEMS;

			if (at < n && wide)
				g_load4((GLOBAL const float *)(lens + at),
					x + 4 * i);
			else if (at < n)
				x[4 * i] = (uint32_t)lens[at];
		}
		UNROLL
		for (i = 0; i < 4 * RAGGED_LENS; i++)
			sum += ragged_clamp((int32_t)x[i], width);
	}
	return sum;
}

/* The sum over a power of two of lanes, by all of the subgroup together. */
FN uint64_t
ragged_sum(uint64_t x, uint32_t lanes)
{
	uint32_t mask;

	for (mask = 1; mask < lanes; mask <<= 1)
		x += g_shuffle_xor64(x, mask);
	return x;
}

/* A subgroup's entries of a row: as many as it loads at a time, then the same
 * `step` further on. */
typedef struct ragged_part {
	uint32_t rows; /* of the block at a time */
	uint32_t row;  /* of those; none if it is not below */
	uint32_t e;    /* the lane's first entry */
	uint32_t step;
	uint32_t len; /* of the row */
} ragged_part;

/* The part for rows [first, end), or for as many of them as there are
 * subgroups. */
FN ragged_part
ragged_part_of(GLOBAL const int32_t *lens, uint32_t has_lens, uint32_t width,
	       uint32_t first, uint32_t end)
{
	const uint32_t subgroups = RAGGED_ITEMS / g_width();
	const uint32_t own = g_item() / g_width();
	uint32_t shift = 0; /* 2^shift of them have a row */
	ragged_part p;

	p.rows = end - first < subgroups ? end - first : subgroups;
	while (2u << shift <= subgroups && p.rows << shift << 1 <= subgroups)
		shift++;
	p.row = own >> shift;
	p.e = (own & ((1u << shift) - 1)) * RAGGED_LOADS * g_width() + g_lane();
	p.step = RAGGED_LOADS * g_width() << shift;
	p.len = 0;
	if (p.row < p.rows)
		p.len = has_lens ? ragged_clamp(lens[first + p.row], width)
				 : width;
	return p;
}

/* Loads the lane's entries of the next n, which begin at `in`. */
FN void
ragged_load(GLOBAL const int32_t *in, uint32_t n, PRIVATE uint32_t *x)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < RAGGED_LOADS; i++) {
		x[i] = 0;
		if (i * g_width() < n)
			x[i] = (uint32_t)in[i * g_width()];
	}
}

/* Stores the lane's entries of the next n; those not below `slots` become -1.
 */
FN void
ragged_store(GLOBAL int32_t *out, uint32_t n, uint32_t slots,
	     const PRIVATE uint32_t *x)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < RAGGED_LOADS; i++)
		if (i * g_width() < n)
			out[i * g_width()] = x[i] < slots ? (int32_t)x[i] : -1;
}

/* Shared memory. */
typedef struct ragged_shared {
	uint64_t sums[RAGGED_SUBGROUPS]; /* of the lengths before the block */
	uint32_t lengths[2][RAGGED_SUBGROUPS]; /* of its rows, in turn */
} ragged_shared;

/* Four blocks per SM with 64 registers each, to hold all loads in flight. */
SPMLA_KERNEL_BLOCKS(ragged_index, 4)
void
spmla_k_ragged_index(SPMLA_KERNEL_ARGS(ragged_index))
{
	LOCAL_ARRAY(ragged_shared, shared, 1);
	const uint32_t subgroups = RAGGED_ITEMS / g_width();
	const uint32_t other = g_lane() % subgroups;
	const uint32_t begin = g_block() * s.share;
	const uint32_t end =
		s.tokens - begin < s.share ? s.tokens : begin + s.share;
	ragged_part p = ragged_part_of(lens, s.has_lens, s.width, begin, end);
	uint64_t from = 0;
	uint32_t first, turn = 0;

	if (g_block() == 0 && g_item() == 0)
		ragged_indptr[0] = 0;
	if (s.has_lens)
		from = ragged_before(lens, s.wide, s.width, begin);
	else if (g_item() == 0)
		from = (uint64_t)begin * s.width;
	from = ragged_sum(from, g_width());
	if (g_lane() == 0)
		shared->sums[g_item() / g_width()] = from;
	for (first = begin; first < end; first += subgroups) {
		const uint32_t t = first + p.row;
		GLOBAL const int32_t *in =
			indices + (int64_t)t * s.indices_stride;
		/* One that cannot fit is not read. */
		const uint32_t reads = p.len <= s.capacity ? p.len : 0;
		uint32_t x[RAGGED_LOADS], start, room, slots, length, e = p.e;
		uint64_t row_end;

		ragged_load(in + e, reads > e ? reads - e : 0, x);
		if (e == 0)
			shared->lengths[turn][p.row] = p.len;
		BARRIER();
		if (first == begin)
			from = ragged_sum(shared->sums[other], subgroups);
		length = other < p.rows ? shared->lengths[turn][other] : 0;
		row_end = from + p.len +
			  ragged_sum(other < p.row ? length : 0, subgroups);
		from += ragged_sum(length, subgroups);
		turn ^= 1;
		start = row_end - p.len < s.capacity
				? (uint32_t)(row_end - p.len)
				: s.capacity;
		room = (row_end < s.capacity ? (uint32_t)row_end : s.capacity) -
		       start;
		if (e == 0 && p.row < p.rows) {
			ragged_indptr[t + 1] = (int32_t)(start + room);
			if (row_end > s.capacity && p.len > 0)
				g_fault(fault_state, fault_status, t,
					G_FAULT_LENGTH);
		}
		slots = s.num_slots ? s.num_slots : 0xffffffffu;
		slots = row_end > s.capacity ? 0 : slots;
		while (e < room) {
			ragged_store(ragged_indices + start + e, room - e,
				     slots, x);
			e += p.step;
			ragged_load(in + e, reads > e ? reads - e : 0, x);
		}
		if (first + subgroups < end)
			p = ragged_part_of(lens, s.has_lens, s.width,
					   first + subgroups, end);
	}
}

#endif
#endif
