/* SPDX-License-Identifier: Apache-2.0
 *
 * A token's keys in blocks of 64: sparse_decode takes them so, and the
 * prologue shares them among the parts.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_DECODE_BLOCKS_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_DECODE_BLOCKS_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/divide.h"

enum { DECODE_BLOCK = 64 }; /* keys */

/* How long a token's list of keys is, and where it lies. */
enum {
	DECODE_ROWS = 0, /* all of a row of its own; rows have one stride */
	/* the first lens[t / shared] entries of such a row */
	DECODE_LENS = 1,
	/* lens is an indptr: entries lens[t] .. lens[t + 1] - 1 of all */
	DECODE_RAGGED = 2
};

#ifdef SPMLA_GPU_KERNELS

/* The length of a token's list. */
FN uint32_t
decode_len(GLOBAL const int32_t *lens, uint32_t has_lens, uint32_t most,
	   uint32_t t)
{
	int32_t len;

	if (!has_lens)
		return most;
	len = lens[t];
	return len <= 0 ? 0 : (uint32_t)len < most ? (uint32_t)len : most;
}

typedef struct decode_list {
	int64_t first;   /* entry of all lists */
	uint32_t len;    /* entries */
	uint32_t faults; /* 1: an indptr that falls or leads outside */
} decode_list;

/* Token t's list. `shared` tokens have one length. `most` is how many entries a
 * row has, or all ragged lists together. If only `first` is used, the rest is
 * not loaded. */
FN decode_list
decode_list_of(GLOBAL const int32_t *lens, uint32_t form,
	       spmla_g_divisor shared, int64_t stride, uint32_t most,
	       uint32_t t)
{
	decode_list list;
	int32_t from, next;

	list.faults = 0;
	if (form != DECODE_RAGGED) {
		list.first = (int64_t)t * stride;
		list.len = decode_len(lens, form == DECODE_LENS, most,
				      g_divide(t, shared));
		return list;
	}
	from = lens[t];
	next = lens[t + 1];
	list.first = from;
	list.faults = from < 0 || next < from || (uint32_t)next > most;
	list.len = list.faults ? 0 : (uint32_t)(next - from);
	return list;
}

/* Blocks of a list; `least` of them even if it is empty. */
FN uint32_t
decode_blocks(uint32_t len, uint32_t least)
{
	const uint32_t blocks = len / DECODE_BLOCK + (len % DECODE_BLOCK != 0);

	return blocks > least ? blocks : least;
}

#endif
#endif
