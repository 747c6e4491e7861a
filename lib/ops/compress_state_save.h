/* SPDX-License-Identifier: Apache-2.0
 *
 * compress_state_save: keeps what new tokens give to the groups that a
 * compressor has yet to make, or to the ones that overlap.
 */
#ifndef SPMLA_OPS_COMPRESS_STATE_SAVE_H
#define SPMLA_OPS_COMPRESS_STATE_SAVE_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_compress_state_save_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t ratio;              /* 4 or 128 */
	uint32_t form;               /* spmla_state_form */
	const float *kv;             /* [tokens][W]; W of the state's layout */
	const float *score;          /* [tokens][W] */
	int64_t kv_stride_elems;     /* >= W */
	int64_t score_stride_elems;  /* >= W */
	const float *ape;            /* [ratio][W] */
	const int32_t *positions;    /* [tokens] */
	const int64_t *slot_mapping; /* PAGED: [tokens]; < 0: skip the token */
	/* The rest but the state: RING only. */
	const int32_t *context_lens; /* [tokens]; <= 0: skip the token */
	const int32_t *token_row;    /* [tokens] */
	const int32_t *block_table;  /* [rows][table_stride_elems] */
	const int32_t *table_cols;   /* [rows] written columns; NULL: all */
	uint32_t rows;
	uint32_t columns;
	uint32_t table_stride_elems; /* >= columns */
	uint32_t reserved;
	spmla_cache state; /* STATE_1024 or STATE_256 (ratio 4), STATE_512 */
} spmla_compress_state_save_args;

/* Entry slot of the state = kv[t], then score[t] + ape[pos % ratio], an f32
 * sum.
 * PAGED: slot = slot_mapping[t]. kv_compress comes after it.
 * RING: capacity = columns * entries_per_page tokens, at least those of a group
 * (8 at ratio 4, 128 at ratio 128), and more by the tokens that may be taken
 * back; column = pos / entries_per_page % columns, slot = page *
 * entries_per_page + pos % entries_per_page. A token is left out if token t +
 * capacity is its request's too (the same row, pos + capacity, a context): it
 * goes to the same place. So the last tokens stay, and no place is written
 * twice. kv_compress comes before it.
 * A slot past the state skips the token: FAULT_SLOT; else a position below 0:
 * FAULT_POSITION. RING: such a position, then a row outside the table
 * (FAULT_ROW), a column not written or a page outside the state (FAULT_PAGE)
 * skip it; a token that is left out is not looked at. Reports name the token.
 * Of a slot that occurs twice in one call, each value is that of one of the two
 * tokens, which one is unspecified, and not the same for all on a GPU. A NaN
 * stays one.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: bit for bit.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE, E_UNSUPPORTED (another ratio).
 * Source: vLLM save_partial_states, build_c128_ring_metadata. */
spmla_status
spmla_compress_state_save(spmla_ctx *ctx,
			  const spmla_compress_state_save_args *args,
			  spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
