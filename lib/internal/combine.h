/* SPDX-License-Identifier: Apache-2.0
 *
 * How a decode in parts combines its splits: which calls do it inside their
 * kernel, and the split_combine of all others. It stands in lib because the
 * plan reserves the workspace of the former.
 */
#ifndef SPMLA_INTERNAL_COMBINE_H
#define SPMLA_INTERNAL_COMBINE_H

#include <string.h>

#include "spmla/internal/few.h"
#include "spmla/internal/splits.h"
#include "spmla/ops/sparse_decode.h"
#include "spmla/ops/split_combine.h"
#include "spmla/spmla.h"

/* The workspace words of a kernel that combines splits: two counts for each 64
 * heads of a token that parts share. */
static inline uint64_t
spmla_i_combine_words(uint32_t tokens, uint32_t heads)
{
	const uint32_t groups =
		(heads + SPMLA_I_SPLIT_HEADS - 1) / SPMLA_I_SPLIT_HEADS;

	return (uint64_t)tokens * groups * 2;
}

/* Whether the decode's kernel combines the splits; otherwise split_combine
 * does. */
static inline int
spmla_i_combines(const spmla_device *device, const spmla_sparse_decode_args *a)
{
	return a->parts && a->combine && a->workspace &&
	       spmla_i_can_combine(device) && spmla_i_decode_layout(a) != 0 &&
	       a->cache.layout != SPMLA_LAYOUT_MLA_BF16 &&
	       a->workspace_bytes / 4 >=
		       spmla_i_combine_words(a->tokens - a->whole_tokens,
					     a->heads);
}

/* The split_combine of a decode. */
static inline void
spmla_i_combine_of(const spmla_sparse_decode_args *d,
		   spmla_split_combine_args *a)
{
	memset(a, 0, sizeof *a);
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = d->tokens;
	a->heads = d->heads;
	a->split_rows = d->split_rows;
	a->empty_lse = d->empty_lse;
	a->num_splits = d->num_splits;
	a->split_out = d->split_out;
	a->split_lse = d->split_lse;
	a->attn_sink = d->attn_sink;
	a->out = d->out;
	a->out_token_stride_elems = d->out_token_stride_elems;
	a->out_head_stride_elems = d->out_head_stride_elems;
	a->lse = d->lse;
	a->lse_token_stride_elems = d->lse_token_stride_elems;
	a->lse_head_stride_elems = d->lse_head_stride_elems;
	a->next_n = d->next_n;
	a->out_request_stride_elems = d->out_request_stride_elems;
	a->lse_request_stride_elems = d->lse_request_stride_elems;
	a->lse_base = d->lse_base;
	a->lse_sink = d->lse_sink;
	a->whole_tokens = d->whole_tokens;
}

#endif
