/* SPDX-License-Identifier: Apache-2.0
 *
 * A token's keys in blocks of 64: sparse_decode takes them so, and the
 * prologue shares them among the parts.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_DECODE_BLOCKS_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_DECODE_BLOCKS_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"

enum { DECODE_BLOCK = 64 }; /* keys */

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

/* Blocks of a list; `least` of them even if it is empty. */
FN uint32_t
decode_blocks(uint32_t len, uint32_t least)
{
	const uint32_t blocks = len / DECODE_BLOCK + (len % DECODE_BLOCK != 0);

	return blocks > least ? blocks : least;
}

#endif
#endif
