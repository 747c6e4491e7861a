/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits batches that contain prompts: which requests are decoded, how many
 * prompts share a workspace, how many index queries share a buffer of logits.
 * All functions run on the host and are pure: no context, no device, no memory
 * but the caller's.
 *
 * Lengths are uint32_t, one per request, in batch order: decodes first, then
 * extensions, then prompts. Results go to arrays of `capacity` elements. If a
 * result needs more, the call fails with E_SPACE and the diag's `want` is the
 * number needed. A call that fails writes only the diag, which may be NULL.
 */
#ifndef SPMLA_PREFILL_PLAN_H
#define SPMLA_PREFILL_PLAN_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements [first, end). */
typedef struct spmla_range {
	uint32_t first;
	uint32_t end;
} spmla_range;

/* ---- Decodes and prefills ---------------------------------------------- */

/* Whether all decodes of a batch must look alike. */
typedef enum spmla_uniform {
	SPMLA_UNIFORM_NO = 0,
	SPMLA_UNIFORM_REQUIRED = 1, /* all decodes have the same query length */
	SPMLA_UNIFORM_FORCE_32 = 0x7fffffff
} spmla_uniform;

/* A batch whose decodes come before its prefills. */
typedef struct spmla_batch_split {
	uint32_t struct_bytes;
	uint32_t num_decodes; /* requests [0, num_decodes) */
	uint32_t num_prefills;
	uint32_t num_decode_tokens; /* tokens [0, num_decode_tokens) */
	uint32_t num_prefill_tokens;
	uint32_t reserved;
} spmla_batch_split;

#define SPMLA_BATCH_SPLIT_INIT                                     \
	{                                                          \
		(uint32_t)sizeof(spmla_batch_split), 0, 0, 0, 0, 0 \
	}

/* Finds where the prefills of a batch begin. A query of at most `threshold`
 * tokens is a decode. `tokens` may count padding; it is at least the sum of
 * query_lens.
 * 1. If no query is longer than threshold, and uniform lengths are not required
 *    or threshold <= 1, all are decodes.
 * 2. Otherwise, if the first query is longer than threshold, all are prefills.
 * 3. Otherwise, if uniform lengths are required:
 *    - if every length is 0 or the first's, all are decodes; tokens must then
 *      be requests * that length (E_RANGE);
 *    - else prefills begin at the first request of another length.
 *    If they are not required, prefills begin at the first query longer than
 *    threshold.
 * 4. All requests behind the first prefill are prefills too, also short ones.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE, E_OVERFLOW if the sum of query_lens
 * does not fit 32 bits.
 * Source: vLLM split_decodes_and_prefills. */
spmla_status
spmla_split_decodes_and_prefills(const uint32_t *query_lens, uint32_t requests,
				 uint32_t tokens, uint32_t threshold,
				 uint32_t uniform, spmla_batch_split *split,
				 spmla_diag *diag);

/* The GPUs that a table of thresholds is for. */
typedef enum spmla_reorder_arch {
	SPMLA_REORDER_SM90 = 0, /* and all others */
	SPMLA_REORDER_SM100 = 1,
	SPMLA_REORDER_FORCE_32 = 0x7fffffff
} spmla_reorder_arch;

/* The longest query that is worth running as a decode, for `heads` query heads
 * on this rank. Heads are padded to the next number in the table. Errors:
 * E_NULL, E_RANGE for 0 or more than 128 heads.
 * Source: vLLM FlashMLASparseMetadataBuilder. */
spmla_status spmla_reorder_threshold(uint32_t heads, uint32_t arch,
				     uint32_t *threshold, spmla_diag *diag);

/* ---- Chunks of prompts ------------------------------------------------- */

/* Chunks of requests whose whole contexts fit the workspace together. A chunk
 * takes requests while the sum of their seq_lens is at most workspace_tokens.
 * Ranges are of requests, plus `offset`. Every request lies in one chunk, in
 * order.
 * Errors: E_NULL; E_RANGE "seq_lens"[i] if one request alone is longer;
 * E_SPACE.
 * Source: vLLM split_prefill_chunks. */
spmla_status spmla_split_prefill_chunks(const uint32_t *seq_lens,
					uint32_t requests,
					uint32_t workspace_tokens,
					uint32_t offset, spmla_range *chunks,
					uint32_t capacity, uint32_t *count,
					spmla_diag *diag);

/* starts[i] is the workspace row at which request i begins, counted from 0 in
 * each chunk. Chunks hold the requests 0 .. requests - 1 in order, without
 * offset; E_RANGE "chunks"[i] otherwise. E_OVERFLOW if a chunk has 2^32 rows or
 * more.
 * Source: vLLM FlashMLASparseMetadataBuilder. */
spmla_status spmla_prefill_workspace_starts(const uint32_t *seq_lens,
					    uint32_t requests,
					    const spmla_range *chunks,
					    uint32_t count, uint32_t *starts,
					    spmla_diag *diag);

/* Requests of V4 whose gathered keys share a workspace. Each request has
 * request_rows rows: first its compressed keys, then, from window_row on, the
 * keys of its window and its new keys. spmla_combine_index reads this
 * arrangement. */
typedef struct spmla_gathered_chunk {
	spmla_range requests;
	uint32_t window_row;   /* most compressed keys of a request */
	uint32_t request_rows; /* window_row + the largest gather_len */
} spmla_gathered_chunk;

/* Chunks of V4 requests that share a workspace. A request has seq_lens / ratio
 * compressed keys (none for ratio 1) and gather_lens others, as spmla_swa_index
 * counts them. A chunk takes requests while their number times the rows of the
 * largest is at most workspace_rows.
 * Errors: E_NULL; E_RANGE for ratio 0, and "seq_lens"[i] (got: its rows) if one
 * request alone is larger; E_SPACE.
 * Source: vLLM get_prefill_chunk_plan; its workspace holds 4 requests of
 * the longest kind. */
spmla_status spmla_split_gathered_chunks(const uint32_t *seq_lens,
					 const uint32_t *gather_lens,
					 uint32_t requests, uint32_t ratio,
					 uint32_t workspace_rows,
					 spmla_gathered_chunk *chunks,
					 uint32_t capacity, uint32_t *count,
					 spmla_diag *diag);

/* A piece of the index logits: these queries against all keys of these
 * requests. */
typedef struct spmla_indexer_chunk {
	spmla_range requests;
	spmla_range queries; /* counted from the requests' first query token */
} spmla_indexer_chunk;

/* Chunks of requests whose keys fit the workspace (sum of seq_lens <=
 * workspace_keys) and whose logits fit the budget (sum of query_lens * sum of
 * seq_lens <= max_logits_bytes / 4). seq_lens count index keys, i.e. compressed
 * ones.
 * A request that alone exceeds the budget is cut into pieces of max(1, budget /
 * seq_len) queries. Only these chunks have part of a request's queries, and
 * only chunks of one query may exceed the budget. A chunk without queries or
 * without keys is left out.
 * Errors: E_NULL; E_RANGE "seq_lens"[i] if one request alone exceeds the
 * workspace; E_OVERFLOW if the sum of query_lens does not fit 32 bits; E_SPACE.
 * Source: vLLM split_indexer_prefill_chunks. */
spmla_status spmla_split_indexer_prefill_chunks(
	const uint32_t *seq_lens, const uint32_t *query_lens, uint32_t requests,
	uint32_t workspace_keys, uint64_t max_logits_bytes, uint32_t offset,
	spmla_indexer_chunk *chunks, uint32_t capacity, uint32_t *count,
	spmla_diag *diag);

/* ---- Steps of prompts -------------------------------------------------- */

/* A part of a long step that runs as a step of its own. */
typedef struct spmla_prefill_chunk {
	/* query tokens of the long step, i.e. rows of its tensors */
	spmla_range queries;
	/* requests of the long step that have tokens in this chunk */
	spmla_range requests;
	uint32_t request_count; /* how many of them have query tokens */
	uint32_t live_context;  /* sum of their lengths at its end */
} spmla_prefill_chunk;

/* Cuts a step of prompts into chunks that the plan has room for: at most
 * max_prefill_tokens query tokens, the most requests of a step, and
 * prefill_workspace_tokens of context. A request counts with its whole context,
 * its length at the end of the chunk.
 * `step` is as for spmla_step_encode, but of any size and without flags. Each
 * request has its row, its whole length, and as query tokens those that are not
 * in the cache yet. Table stores are ignored.
 * The cut is greedy and in order. A chunk takes the next tokens until it is
 * full, which may cut a request. It ends early only where the next request
 * would be one too many or its context too large. So every query token lies in
 * exactly one chunk, and the context of a chunk is complete when it runs.
 * A chunk may fit a bucket; spmla_step_info tells. On the CPU no bit of the
 * outputs depends on that, except with SPMLA_SCALE_RAW: decode takes e4m3 times
 * the scale as f32, prefill rounds the product to bf16. Scales that are powers
 * of two and bf16 rows are the same in both.
 * Errors: E_NULL; E_STRUCT_SIZE; E_UNSUPPORTED if no prefill is planned;
 * E_RECORD with field and request where spmla_step_encode would refuse, and for
 * a length above prefill_workspace_tokens; E_OVERFLOW if the query tokens do
 * not fit 32 bits; E_SPACE. */
spmla_status spmla_prefill_plan(const spmla_plan *plan, const spmla_step *step,
				spmla_prefill_chunk *chunks, uint32_t capacity,
				uint32_t *count, spmla_diag *diag);

/* The same for a step that also holds decodes, best in front of the prompts. If
 * a chunk begins with a whole request that fits a bucket, it takes as many
 * following requests as fit one bucket, the one that takes the most. It then
 * runs as a decode step in that bucket's graph, whatever the prompts' lengths.
 * All other chunks are cut as by spmla_prefill_plan.
 * Errors: as spmla_prefill_plan; only requests that fit no bucket need the
 * workspace. */
spmla_status spmla_split_step(const spmla_plan *plan, const spmla_step *step,
			      spmla_prefill_chunk *chunks, uint32_t capacity,
			      uint32_t *count, spmla_diag *diag);

/* The requests of a chunk, chunk->request_count of them, for its spmla_step.
 * query_tokens counts tokens of the chunk, seq_len_tokens is the length at its
 * end.
 * JOIN stays with a request's first chunk. Table stores are the caller's: store
 * a page no later than in the first chunk that reaches it.
 * Errors: E_NULL; E_STRUCT_SIZE; E_RANGE if it is no chunk of this step;
 * E_SPACE. */
spmla_status spmla_prefill_chunk_requests(const spmla_step *step,
					  const spmla_prefill_chunk *chunk,
					  spmla_request *requests,
					  uint32_t capacity, spmla_diag *diag);

/* ---- Context parallel decode ------------------------------------------- */

/* The number of keys of each sequence that lie on rank `rank` of `ranks`, when
 * runs of `interleave` tokens go to the ranks in turn. local_lens may be
 * seq_lens.
 * Errors: E_NULL, E_RANGE.
 * Source: vLLM get_dcp_local_seq_lens. */
spmla_status spmla_dcp_local_seq_lens(const uint32_t *seq_lens,
				      uint32_t requests, uint32_t ranks,
				      uint32_t rank, uint32_t interleave,
				      uint32_t *local_lens, spmla_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
