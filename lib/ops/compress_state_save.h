/* SPDX-License-Identifier: Apache-2.0
 *
 * compress_state_save: keeps the compressor states of new tokens, which later
 * groups need.
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
	uint32_t ratio; /* 4 or 128 */
	uint32_t form;  /* spmla_state_form */
	const void *kv; /* f32 or bf16 [tokens][W]; W of the state's layout */
	const void *score;           /* f32 or bf16 [tokens][W] */
	int64_t kv_stride_elems;     /* >= W */
	int64_t score_stride_elems;  /* >= W */
	const float *ape;            /* [ratio][W] */
	const void *positions;       /* int32 or int64 [tokens] */
	const int64_t *slot_mapping; /* PAGED: [tokens]; < 0: skip the token */
	/* RING only, from here to `state`. */
	const int32_t *context_lens; /* [tokens]; <= 0: skip the token */
	const int32_t *token_row;    /* [tokens] */
	const int32_t *block_table;  /* [rows][table_stride_elems] */
	const int32_t *table_cols;   /* [rows] written columns; NULL: all */
	uint32_t rows;
	uint32_t columns;
	uint32_t table_stride_elems; /* >= columns */
	uint32_t positions_dtype;    /* spmla_int_dtype */
	/* STATE_1024 or STATE_256 (ratio 4), STATE_512 or STATE_128 (128) */
	spmla_cache state;
	uint32_t kv_dtype; /* spmla_real_dtype, of kv and score */
	uint32_t reserved;
} spmla_compress_state_save_args;

/* A token's kv and score are needed again when its group is complete, which may
 * be several steps later. This call keeps them in the state cache.
 *
 * Writes kv[t], then score[t] + ape[pos % ratio] (an f32 sum), to the token's
 * entry of the state.
 *
 * PAGED: the entry is slot_mapping[t]. kv_compress comes after this call.
 *
 * RING: kv_compress comes before this call. The state has capacity = columns *
 * entries_per_page entries per row. It must hold a group (8 tokens at ratio 4,
 * 128 at ratio 128) and the tokens that may be taken back.
 *   column = pos / entries_per_page % columns
 *   entry  = page * entries_per_page + pos % entries_per_page
 * If the call also holds token t + capacity, with the same row, position pos +
 * capacity and a context, token t is left out: both have the same entry. So the
 * last tokens stay, and no entry is written twice.
 *
 * Bad data skips the token. PAGED: a slot past the state (FAULT_SLOT), else a
 * position below 0 (FAULT_POSITION). RING: a position below 0 (FAULT_POSITION),
 * then a row outside the table (FAULT_ROW), a column not written or a page
 * outside the state (FAULT_PAGE). Reports name the token; with RING they name
 * the table's row if it exists, else the token. A token that is left out is not
 * looked up.
 * If a slot occurs twice in one call, each value comes from one of the two
 * tokens; which one is unspecified, and on a GPU it may differ within the
 * entry. A NaN stays one.
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
