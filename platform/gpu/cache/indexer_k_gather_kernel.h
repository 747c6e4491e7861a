/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_gather: a block takes 64 rows of the output at a time. 64 threads
 * look up one page each, as a look-up is a chain of dependent loads, and copy
 * the scales. Then all threads copy the codes, each with 8 words in flight.
 */
#ifndef SPMLA_PLATFORM_GPU_CACHE_INDEXER_K_GATHER_KERNEL_H
#define SPMLA_PLATFORM_GPU_CACHE_INDEXER_K_GATHER_KERNEL_H

#include "spmla/platform/gpu/cache/gather_device.h"

#define SPMLA_K_indexer_k_gather(P, S) \
	SPMLA_K_FAULT(P)               \
	P(const int32_t, cu_seq_lens)  \
	P(const int32_t, req_row)      \
	P(const int32_t, block_table)  \
	P(const int32_t, table_cols)   \
	P(const uint8_t, cache)        \
	P(uint8_t, dst_k)              \
	P(float, dst_scale)            \
	S(uint64_t, page_stride_bytes) \
	SPMLA_S_TABLE(S)               \
	S(uint32_t, requests)          \
	S(uint32_t, keys)              \
	S(uint32_t, has_req_row)       \
	S(uint32_t, words)             \
	S(uint32_t, whole_words)       \
	S(uint32_t, tiled)
SPMLA_KERNEL_SCALARS(indexer_k_gather)

enum { INDEXER_K_GATHER_ROWS = 64 }; /* at a time */

#ifdef SPMLA_GPU_KERNELS

/* Copies the codes of INDEXER_K_GATHER_ROWS rows. Row i begins at from[i] in
 * the cache; the first output row is at `to`. A row has `words` words: with
 * MXFP4 half of the threads have none. */
FN void
indexer_k_gather_codes(GLOBAL const uint8_t *cache, LOCAL const uint64_t *from,
		       GLOBAL uint8_t *to, uint32_t words, uint32_t whole_words,
		       uint32_t tiled)
{
	enum {
		WORDS = SPMLA_INDEX_DIM / 4,
		STEP = GATHER_ITEMS / WORDS,
		EACH = INDEXER_K_GATHER_ROWS / STEP
	};
	const uint32_t word = g_item() % WORDS, row = g_item() / WORDS;
	/* A tile has 16 bytes of each of 16 rows in turn, so a row's next four
	 * words are 256 bytes further on. */
	const uint32_t place = tiled ? word / 4 * 64 + word % 4 : word;
	uint32_t x[EACH], i, j;

	UNROLL
	for (i = 0; i < EACH; i++) {
		const uint64_t at = from[row + i * STEP];

		x[i] = 0;
		if (at < GATHER_LEAVE && word < words)
			x[i] = ((GLOBAL const uint32_t *)(cache + at))[place];
	}
	UNROLL
	for (i = 0; i < EACH; i++) {
		GLOBAL uint8_t *out =
			to + (uint64_t)(row + i * STEP) * words * 4 + 4 * word;

		if (from[row + i * STEP] == GATHER_LEAVE || word >= words)
			continue;
		if (whole_words) {
			*(GLOBAL uint32_t *)out = x[i];
			continue;
		}
		for (j = 0; j < 4; j++)
			out[j] = (uint8_t)(x[i] >> 8 * j);
	}
}

/* Shared memory. */
typedef struct indexer_k_gather_shared {
	gather_line line;
	uint64_t from[INDEXER_K_GATHER_ROWS]; /* where codes are in the cache */
} indexer_k_gather_shared;

typedef struct indexer_k_gather_job {
	SPMLA_KERNEL_FIELDS(indexer_k_gather)
	LOCAL indexer_k_gather_shared *shared;
} indexer_k_gather_job;

/* Makes the spans of the requests from `tile` on; none begins before row
 * `done`. Returns where the last one ends. */
FN uint32_t
indexer_k_gather_spans(const PRIVATE indexer_k_gather_job *job,
		       const PRIVATE g_reporter *to, uint32_t tile,
		       uint32_t done)
{
	const PRIVATE spmla_k_indexer_k_gather_scalars *s = &job->s;
	const uint32_t b = tile + g_item(), there = b < s->requests;
	int64_t begin = 0, end = 0;
	int32_t row = -1;

	if (there) {
		begin = job->cu_seq_lens[b];
		end = job->cu_seq_lens[b + 1];
		row = s->has_req_row ? job->req_row[b] : (int32_t)b;
	}
	return gather_spans(to, s->requests <= g_width(), there, b, begin, end,
			    0, row, s->rows, s->keys, done, &job->shared->line);
}

/* Writes to shared memory where the codes of INDEXER_K_GATHER_ROWS rows, from
 * `first` on and below `last`, begin in the cache. Copies their scales, too.
 * Barriers at both ends. */
FN void
indexer_k_gather_places(const PRIVATE indexer_k_gather_job *job,
			const PRIVATE g_reporter *to, uint32_t first,
			uint32_t last)
{
	const PRIVATE spmla_k_indexer_k_gather_scalars *s = &job->s;
	const g_table table = G_TABLE(job->block_table, job->table_cols, *s);
	const uint64_t codes_bytes = (uint64_t)s->page_tokens * s->words * 4;
	const uint32_t i = g_item(), n = first + i;

	BARRIER(); /* all have read the previous places */
	if (i < INDEXER_K_GATHER_ROWS) {
		uint64_t page = GATHER_LEAVE;
		uint32_t entry = 0;
		float scale = G_MINUS_INF; /* the key is missing */

		if (n < last)
			page = gather_page(to, job->shared->line.spans, &table,
					   0, s->page_stride_bytes, n, &entry);
		if (page < GATHER_LEAVE) {
			GLOBAL const float *scales =
				(GLOBAL const float *)(job->cache + page +
						       codes_bytes);

			scale = scales[entry];
			page += s->tiled ? (uint64_t)(entry / 16) * 2048 +
						   entry % 16 * 16
					 : (uint64_t)entry * s->words * 4;
		}
		if (page != GATHER_LEAVE)
			job->dst_scale[n] = scale;
		job->shared->from[i] = page;
	}
	BARRIER();
}

SPMLA_KERNEL_BLOCKS(indexer_k_gather, 2)
void
spmla_k_indexer_k_gather(SPMLA_KERNEL_ARGS(indexer_k_gather))
{
	LOCAL_ARRAY(indexer_k_gather_shared, shared, 1);
	const indexer_k_gather_job job = {SPMLA_KERNEL_VALUES(indexer_k_gather),
					  shared};
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	const uint32_t step = g_blocks() * INDEXER_K_GATHER_ROWS;
	uint32_t done = 0, tile, first;

	for (tile = 0; tile < s.requests; tile += GATHER_ITEMS) {
		const uint32_t last =
			indexer_k_gather_spans(&job, &to, tile, done);

		first = shared->line.spans[0].first +
			g_block() * INDEXER_K_GATHER_ROWS;
		for (; first < last; first += step) {
			indexer_k_gather_places(&job, &to, first, last);
			indexer_k_gather_codes(cache, shared->from,
					       dst_k + (uint64_t)first *
							       s.words * 4,
					       s.words, s.whole_words, s.tiled);
		}
		done = last;
	}
}

#endif
#endif
