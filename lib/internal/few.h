/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the decodes that a Hopper GPU does in one launch with keys shared by
 * many blocks, and no combine (sparse_decode_few). They have so few tokens that
 * all blocks run at the same time, or have few heads. The choice follows from
 * the call's sizes and the device, so a captured graph always does the same. It
 * stands in lib because the plan reserves the workspace, and layers choose by
 * it.
 */
#ifndef SPMLA_INTERNAL_FEW_H
#define SPMLA_INTERNAL_FEW_H

#include "spmla/internal/check.h"
#include "spmla/internal/config.h"
#include "spmla/ops/sparse_decode.h"
#include "spmla/spmla.h"

/* A way to do it. `ranks` blocks share a token's keys, for `heads` heads. */
typedef struct spmla_i_few {
	uint32_t layout;
	uint32_t keys; /* the most of a token, whether they count or not */
	uint32_t heads;
	uint32_t ranks;
} spmla_i_few;

enum {
	SPMLA_I_FEW_V32_16,
	SPMLA_I_FEW_V32_32,
	SPMLA_I_FEW_V32_64,
	SPMLA_I_FEW_V4_8,
	SPMLA_I_FEW_V4_16,
	SPMLA_I_FEW_V4_32,
	SPMLA_I_FEW_V4_64,
	SPMLA_I_FEW_LONG_16,
	SPMLA_I_FEW_LONG_32,
	SPMLA_I_FEW_COUNT
};

/* The most blocks per SM of the way of spmla_i_few_always with which it is
 * faster than parts. An SM has room for two. */
enum { SPMLA_I_FEW_BLOCKS = 6 };

static inline spmla_i_few
spmla_i_few_of(uint32_t way)
{
	/* For each layout and number of keys, the ones with fewer heads come
	 * first. */
	static const spmla_i_few ways[SPMLA_I_FEW_COUNT] = {
		{SPMLA_LAYOUT_FP8_DS_MLA, 2048, 16, 16},
		{SPMLA_LAYOUT_FP8_DS_MLA, 2048, 32, 16},
		{SPMLA_LAYOUT_FP8_DS_MLA, 2048, 64, 16},
		{SPMLA_LAYOUT_V4_FP8, 640, 8, 8},
		{SPMLA_LAYOUT_V4_FP8, 640, 16, 8},
		{SPMLA_LAYOUT_V4_FP8, 640, 32, 8},
		{SPMLA_LAYOUT_V4_FP8, 640, 64, 8},
		{SPMLA_LAYOUT_V4_FP8, 1152, 16, 8},
		{SPMLA_LAYOUT_V4_FP8, 1152, 32, 8},
	};

	return ways[way];
}

/* Whether only the portable kernel reads a cache: one with its e4m3 codes in
 * another encoding, or whose pages do not begin at multiples of 16 bytes. */
static inline int
spmla_i_decode_odd(const spmla_cache *cache)
{
	return cache->encoding ||
	       cache->page_stride_bytes % SPMLA_PAGE_STRIDE_ALIGN;
}

/* The layout of a call's caches; 0 if one of them is odd. */
static inline uint32_t
spmla_i_decode_layout(const spmla_sparse_decode_args *a)
{
	if (spmla_i_decode_odd(&a->cache) ||
	    (a->extra_topk && spmla_i_decode_odd(&a->extra_cache)))
		return 0;
	return a->cache.layout;
}

/* The most entries of a token's lists. If unknown, more than any way takes. */
static inline uint64_t
spmla_i_few_entries(const spmla_sparse_decode_args *a)
{
	const uint32_t first = a->indptr ? a->longest : a->topk;
	const uint32_t extra =
		a->extra_indptr ? a->extra_longest : a->extra_topk;

	if (first == 0 || (a->extra_topk && extra == 0))
		return UINT64_MAX;
	return (uint64_t)first + (a->extra_topk ? extra : 0);
}

/* The blocks that a way needs for a call. */
static inline uint64_t
spmla_i_few_blocks(uint32_t way, uint32_t tokens, uint32_t heads)
{
	const spmla_i_few f = spmla_i_few_of(way);

	return (uint64_t)tokens * ((heads + f.heads - 1) / f.heads) * f.ranks;
}

/* The way that any number of tokens can take; SPMLA_I_FEW_COUNT: none. Only
 * V3.2 with up to 16 heads has one. Its blocks need not run at the same time:
 * where they wait for each other, the waits end (decode_exchange_device.h). With
 * the batch-invariant flag every decode takes it, up to 1.2 times as long as the
 * default. With 128 heads such a way would take 2.1 times as long for 48 tokens
 * (bench/NOTES.md). */
static inline uint32_t
spmla_i_few_always(const spmla_device *device, uint32_t layout, uint32_t heads,
		   uint64_t keys)
{
	const spmla_i_few f = spmla_i_few_of(SPMLA_I_FEW_V32_16);
	const uint32_t is = spmla_i_is_hopper(device) && layout == f.layout &&
			    heads <= f.heads && keys <= f.keys;

	return is ? SPMLA_I_FEW_V32_16 : SPMLA_I_FEW_COUNT;
}

/* The first way that needs at most one block per SM; or else the one for any
 * number of tokens, while it is faster than parts; SPMLA_I_FEW_COUNT: none. On
 * the 132 SMs of an H100, V3.2 with 128 heads and 2048 keys takes 16 heads a
 * block for 1 token (128 blocks), 32 for 2 (128), 64 for 3 and 4 (96, 128), and
 * none for 5 (160). With 16 heads 8 tokens take 128 blocks, 49 take 784, and 50
 * none. */
static inline uint32_t
spmla_i_few_choose(const spmla_device *device, uint32_t layout, uint32_t tokens,
		   uint32_t heads, uint64_t keys)
{
	uint32_t i;

	if (!spmla_i_is_hopper(device))
		return SPMLA_I_FEW_COUNT;
	for (i = 0; i < SPMLA_I_FEW_COUNT; i++) {
		const spmla_i_few f = spmla_i_few_of(i);

		if (f.layout == layout && keys <= f.keys &&
		    spmla_i_few_blocks(i, tokens, heads) <= device->sm_count)
			return i;
	}
	i = spmla_i_few_always(device, layout, heads, keys);
	if (i < SPMLA_I_FEW_COUNT &&
	    spmla_i_few_blocks(i, tokens, heads) <=
		    (uint64_t)SPMLA_I_FEW_BLOCKS * device->sm_count)
		return i;
	return SPMLA_I_FEW_COUNT;
}

/* The workspace words of a call. For each token and each group of heads that
 * shares blocks: a count of blocks in a line of 32 words, then for each head
 * and rank a record of 4 words and 512 f16. */
static inline uint64_t
spmla_i_few_words(uint32_t way, uint32_t tokens, uint32_t heads)
{
	const spmla_i_few f = spmla_i_few_of(way);
	const uint64_t units = spmla_i_few_blocks(way, tokens, heads) / f.ranks;

	return units * (32 + f.ranks * f.heads * (4 + 256));
}

/* Whether queries can be read, and results written, 16 bytes at a time. */
static inline int
spmla_i_few_aligned(const spmla_sparse_decode_args *a)
{
	const uint64_t ptrs = SPMLA_I_PTR(a->workspace) | SPMLA_I_PTR(a->q) |
			      SPMLA_I_PTR(a->out);
	const int64_t strides =
		a->q_token_stride_elems | a->q_head_stride_elems |
		a->out_token_stride_elems | a->out_head_stride_elems;
	const int64_t requests = a->next_n ? a->q_request_stride_elems |
						     a->out_request_stride_elems
					   : 0;

	return ptrs % 16 == 0 && ((strides | requests) & 7) == 0;
}

/* The way that a call takes; SPMLA_I_FEW_COUNT: none. */
static inline uint32_t
spmla_i_few_takes(const spmla_plan *plan, const spmla_sparse_decode_args *a)
{
	const uint32_t layout = spmla_i_decode_layout(a);
	const uint64_t keys = spmla_i_few_entries(a);
	const uint32_t way =
		plan->config.flags & SPMLA_CONFIG_BATCH_INVARIANT
			? spmla_i_few_always(&plan->device, layout, a->heads,
					     keys)
			: spmla_i_few_choose(&plan->device, layout, a->tokens,
					     a->heads, keys);

	if (way == SPMLA_I_FEW_COUNT || !a->workspace || a->parts ||
	    spmla_i_few_blocks(way, a->tokens, a->heads) > INT32_MAX ||
	    a->workspace_bytes / 4 <
		    spmla_i_few_words(way, a->tokens, a->heads) ||
	    !spmla_i_few_aligned(a))
		return SPMLA_I_FEW_COUNT;
	return way;
}

#endif
