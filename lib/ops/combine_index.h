/* SPDX-License-Identifier: Apache-2.0
 *
 * combine_index: the rows of a prefill's gathered keys that each token sees:
 * its top-k of the compressed entries, then its window.
 */
#ifndef SPMLA_OPS_COMBINE_INDEX_H
#define SPMLA_OPS_COMBINE_INDEX_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_combine_index_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t requests; /* of the chunk */
	uint32_t window;   /* keys of the window, a token's own included */
	uint32_t ratio;    /* tokens of a compressed entry */
	uint32_t topk;     /* columns of topk_indices; 0: the window alone */
	uint32_t width;    /* entries of a row, >= topk + window + max_image,
			    * < 2^31 */
	uint32_t request_rows; /* gathered rows of a request (M); requests *
				* request_rows < 2^31 */
	/* a request's first row of window and new keys (N), <= request_rows;
	 * the rows before are compressed entries */
	uint32_t window_row;
	uint32_t max_image; /* keys of an image, >= 1; only with images */
	const int32_t *req_id_per_token; /* [tokens], of the chunk */
	const int32_t
		*context_lens;   /* [tokens]: position + 1; <= 0: no token */
	const int32_t *seq_lens; /* [requests], query tokens included */
	/* [requests]: how many keys, the last of seq_lens, were gathered */
	const int32_t *gather_lens;
	const int32_t *topk_indices;  /* [tokens][topk_stride_elems] */
	int64_t topk_stride_elems;    /* >= topk */
	int32_t *indices;             /* [tokens][indices_stride_elems] */
	int64_t indices_stride_elems; /* >= width */
	int32_t *lens;                /* [tokens] */
	/* [tokens][2]: first and last position of the token's image. A token
	 * outside its span has no image. NULL: no token has one. */
	const int32_t *image_spans;
} spmla_combine_index_args;

/* The gathered keys of a chunk are one matrix: request_rows rows for each
 * request, first its compressed entries, then its window and new keys. Each
 * token gets a list of those rows: what topk selected, then its window.
 *
 * A token of request b with n = context_lens > 0 sees n / ratio compressed
 * entries and the keys from start = max(n - window, seq_lens - gather_lens, 0)
 * to n - 1. Its row is
 * - b * request_rows + i for each i of its first min(n / ratio, topk) top-k
 *   indices, in their order, without those that are < 0;
 * - b * request_rows + window_row + p - (seq_lens - gather_lens) for the
 *   positions p = start .. n - 1;
 * - -1 to width.
 * lens counts the entries of the first two kinds. A token of an image sees
 * window keys as in swa_index, from seq_lens - gather_lens to seq_lens - 1, and
 * the same n / ratio entries.
 *
 * An index >= n / ratio or >= window_row is left out: FAULT_INDEX. A token has
 * an empty row (length 0, all -1) if its request is not in the chunk
 * (FAULT_ROW); if n is above seq_lens, gather_lens is outside 0 .. seq_lens or
 * above request_rows - window_row, or the token's own key was not gathered
 * (FAULT_LENGTH). Reports name the token.
 *
 * req_id_per_token and context_lens are what token_map makes of a chunk's start
 * locations, counted from its first token. ragged_index makes ragged rows of
 * indices and lens.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM combine_topk_swa_indices; there an index of -1 is not checked
 * and becomes the row before the request's. */
spmla_status spmla_combine_index(spmla_ctx *ctx,
				 const spmla_combine_index_args *args,
				 spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
