/* SPDX-License-Identifier: Apache-2.0
 *
 * The splits of plain lists of lengths, for fuzz_prefill.c: each with any list,
 * and what it gives is checked for what its header promises, by other means
 * than it was made. Lists are exactly as long as they are said to be.
 */
#ifndef TESTS_FUZZ_PREFILL_LISTS_H
#define TESTS_FUZZ_PREFILL_LISTS_H

#include "spmla/prefill_plan.h"
#include "tests/fuzz/world.h"

enum { MOST_LENS = 24, UNTOUCHED = 0x5a };

/* Memory of exactly that many bytes that nothing has written. */
static inline void *
fresh(uint64_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	REQUIRE(p);
	memset(p, UNTOUCHED, bytes);
	return p;
}

/* Whether the bytes from `first` to `end` are as fresh made them. */
static inline uint32_t
is_fresh(const void *p, uint64_t first, uint64_t end)
{
	const uint8_t *bytes = p;

	while (first < end && bytes[first] == UNTOUCHED)
		first++;
	return first >= end;
}

static inline void
check_refusal(spmla_status s, const spmla_diag *diag)
{
	char text[48];

	REQUIRE(diag->status == (uint32_t)s && diag->field && *diag->field);
	REQUIRE(spmla_diag_text(diag, text, sizeof text) > 0);
	REQUIRE(strlen(text) < sizeof text);
}

/* `n` lengths: mostly small, or one edge after another. */
static inline uint32_t *
read_lens(input *in, uint32_t n)
{
	uint32_t *lens = fresh(n * sizeof *lens);
	const uint32_t bound = 1 + in_u8(in);
	uint32_t i;

	for (i = 0; i < n; i++)
		lens[i] = bound == 0x100 ? in_edge(in) : in_below(in, bound);
	return lens;
}

static inline uint64_t
sum_of(const uint32_t *lens, uint32_t first, uint32_t end)
{
	uint64_t sum = 0;

	for (; first < end; first++)
		sum += lens[first];
	return sum;
}

/* ---- Decodes and prefills ---------------------------------------------- */

static inline void
check_batch(const spmla_batch_split *b, const uint32_t *lens, uint32_t n,
	    uint32_t tokens, uint32_t threshold, uint32_t uniform)
{
	const uint32_t d = b->num_decodes;
	uint32_t i;

	REQUIRE(d <= n && b->num_prefills == n - d);
	REQUIRE(b->num_decode_tokens <= tokens);
	REQUIRE(b->num_prefill_tokens == tokens - b->num_decode_tokens);
	REQUIRE(b->num_decode_tokens == (d == n ? tokens : sum_of(lens, 0, d)));
	/* A decode is short: or of the length that all share. */
	for (i = 0; i < d; i++)
		REQUIRE(lens[i] <= threshold ||
			(uniform && lens[0] <= threshold));
	/* The first prefill is long, or stands out. */
	if (d < n)
		REQUIRE(lens[d] > threshold || (uniform && lens[d] != lens[0]));
}

static inline void
fuzz_batch(input *in)
{
	const uint32_t n = in_below(in, MOST_LENS);
	uint32_t *lens = read_lens(in, n);
	const uint64_t sum = sum_of(lens, 0, n);
	const uint32_t kind = in_u8(in);
	const uint32_t tokens =
		kind & 8 ? in_edge(in) : (uint32_t)sum + (kind & 4);
	const uint32_t uniform = kind & 0x10 ? in_edge(in) : kind & 1;
	const uint32_t threshold = kind & 2 ? in_edge(in) : in_below(in, 9);
	spmla_batch_split split = SPMLA_BATCH_SPLIT_INIT;
	const spmla_batch_split before = split;
	spmla_diag diag = SPMLA_DIAG_INIT;
	const spmla_status s = spmla_split_decodes_and_prefills(
		lens, n, tokens, threshold, uniform, &split, &diag);

	if (sum > UINT32_MAX || tokens < sum || uniform > 1)
		REQUIRE(s != SPMLA_OK);
	if (s != SPMLA_OK) {
		check_refusal(s, &diag);
		REQUIRE(memcmp(&split, &before, sizeof split) == 0);
	} else {
		check_batch(&split, lens, n, tokens, threshold, uniform);
	}
	free(lens);
}

static inline void
fuzz_threshold(input *in)
{
	const uint32_t heads = in_edge(in), arch = in_below(in, 4);
	uint32_t threshold = 7;
	spmla_diag diag = SPMLA_DIAG_INIT;
	const spmla_status s =
		spmla_reorder_threshold(heads, arch, &threshold, &diag);

	REQUIRE((s == SPMLA_OK) == (heads >= 1 && heads <= 128 && arch <= 1));
	REQUIRE((s == SPMLA_OK) == (threshold >= 128));
	if (s != SPMLA_OK)
		check_refusal(s, &diag);
}

/* ---- Ranks ------------------------------------------------------------- */

/* Every token has one owner; a rank's part may take the list's place. */
static inline void
fuzz_ranks(input *in)
{
	const uint32_t n = in_below(in, MOST_LENS);
	uint32_t *lens = read_lens(in, n);
	const uint32_t ranks = in_below(in, 9), interleave = in_edge(in);
	uint32_t *local = fresh(n * sizeof *local);
	uint64_t *left = fresh(n * sizeof *left);
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_status s;
	uint32_t i, r;

	for (i = 0; i < n; i++)
		left[i] = lens[i];
	for (r = 0; r < ranks && interleave > 0; r++) {
		REQUIRE(spmla_dcp_local_seq_lens(lens, n, ranks, r, interleave,
						 local, NULL) == SPMLA_OK);
		for (i = 0; i < n; i++) {
			REQUIRE(local[i] <= left[i]);
			left[i] -= local[i];
		}
	}
	for (i = 0; i < n && ranks > 0 && interleave > 0; i++)
		REQUIRE(left[i] == 0);
	memcpy(local, lens, n * sizeof *local);
	s = spmla_dcp_local_seq_lens(local, n, ranks, in_below(in, 10),
				     interleave, local, &diag);
	if (s != SPMLA_OK) {
		check_refusal(s, &diag);
		REQUIRE(n == 0 || memcmp(local, lens, n * sizeof *lens) == 0);
	}
	free(left);
	free(local);
	free(lens);
}

/* ---- Prompts that share a workspace ------------------------------------ */

static inline void
check_shared(const spmla_range *chunks, uint32_t count, const uint32_t *lens,
	     uint32_t n, uint32_t workspace, uint32_t offset)
{
	uint32_t next = 0, c;

	for (c = 0; c < count; c++) {
		const uint32_t end = chunks[c].end - offset;

		REQUIRE(chunks[c].first - offset == next);
		REQUIRE(end > next && end <= n);
		REQUIRE(sum_of(lens, next, end) <= workspace);
		if (end < n) /* it is full */
			REQUIRE(sum_of(lens, next, end + 1) > workspace);
		next = end;
	}
	REQUIRE(next == n);
}

/* Where each request starts; then with any chunks, one of them changed. */
static inline void
fuzz_starts(input *in, const uint32_t *lens, uint32_t n, spmla_range *chunks,
	    uint32_t count)
{
	uint32_t *starts = fresh(n * sizeof *starts);
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_status s;
	uint32_t c, i;

	REQUIRE(spmla_prefill_workspace_starts(lens, n, chunks, count, starts,
					       NULL) == SPMLA_OK);
	for (c = 0; c < count; c++)
		for (i = chunks[c].first; i < chunks[c].end; i++)
			REQUIRE(starts[i] == sum_of(lens, chunks[c].first, i));
	memset(starts, UNTOUCHED, n * sizeof *starts);
	c = in_below(in, MOST_LENS);
	if (c < count)
		chunks[c].end = in_edge(in);
	s = spmla_prefill_workspace_starts(
		lens, n, chunks, count - (count > 0 && in_below(in, 4) == 0),
		starts, &diag);
	if (s != SPMLA_OK) {
		check_refusal(s, &diag);
		REQUIRE(is_fresh(starts, 0, n * sizeof *starts));
	}
	free(starts);
}

static inline void
fuzz_shared(input *in)
{
	const uint32_t n = in_below(in, MOST_LENS);
	uint32_t *lens = read_lens(in, n);
	const uint32_t workspace = in_edge(in);
	const uint32_t offset = in_below(in, 4) ? 0 : in_edge(in);
	const uint32_t room = in_below(in, 4) ? n : in_below(in, MOST_LENS);
	spmla_range *chunks = fresh(room * sizeof *chunks);
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint32_t count = 77;
	const spmla_status s = spmla_split_prefill_chunks(
		lens, n, workspace, offset, chunks, room, &count, &diag);

	if (s != SPMLA_OK) {
		check_refusal(s, &diag);
		REQUIRE(count == 77);
		REQUIRE(is_fresh(chunks, 0, room * sizeof *chunks));
	} else {
		REQUIRE(count <= room);
		check_shared(chunks, count, lens, n, workspace, offset);
		REQUIRE(is_fresh(chunks, count * sizeof *chunks,
				 room * sizeof *chunks));
		if (offset == 0)
			fuzz_starts(in, lens, n, chunks, count);
	}
	free(chunks);
	free(lens);
}

/* ---- Pieces of the index logits ---------------------------------------- */

/* In order, within the workspace and the budget, and a request that is cut is
 * whole again at the end. */
static inline void
check_pieces(const spmla_indexer_chunk *chunks, uint32_t count,
	     const uint32_t *seq, const uint32_t *query, uint32_t n,
	     uint32_t workspace, uint64_t budget, uint32_t offset)
{
	uint32_t next = 0, done = 0, c;

	for (c = 0; c < count; c++) {
		const spmla_range q = chunks[c].queries;
		const uint32_t first = chunks[c].requests.first - offset;
		const uint32_t end = chunks[c].requests.end - offset;
		const uint64_t keys = sum_of(seq, first, end);
		const uint64_t queries = sum_of(query, first, end);

		REQUIRE(first < end && end <= n && keys <= workspace);
		REQUIRE(done ? first == next : first >= next);
		REQUIRE(q.first == done && q.first < q.end && q.end <= queries);
		REQUIRE(q.end - q.first == 1 ||
			(uint64_t)(q.end - q.first) * keys <= budget);
		REQUIRE(end - first == 1 || q.end - q.first == queries);
		done = q.end < queries ? q.end : 0;
		next = done ? first : end;
	}
	REQUIRE(done == 0);
}

/* Every request that has queries and keys lies in a chunk. */
static inline void
check_none_lost(const spmla_indexer_chunk *chunks, uint32_t count,
		const uint32_t *seq, const uint32_t *query, uint32_t n,
		uint32_t offset)
{
	uint32_t i, c;

	for (i = 0; i < n; i++) {
		if (seq[i] == 0 || query[i] == 0)
			continue;
		for (c = 0; c < count; c++)
			if (chunks[c].requests.first <= i + offset &&
			    i + offset < chunks[c].requests.end)
				break;
		REQUIRE(c < count);
	}
}

static inline void
fuzz_pieces(input *in)
{
	enum { MOST_PIECES = 1 << 12 };
	const uint32_t n = in_below(in, MOST_LENS);
	uint32_t *seq = read_lens(in, n), *query = read_lens(in, n);
	const uint32_t workspace = in_edge(in);
	const uint64_t bytes = (uint64_t)in_edge(in) << in_below(in, 8);
	const uint32_t offset = in_below(in, 4) ? 0 : in_edge(in);
	const uint32_t room = in_edge(in) % (MOST_PIECES + 1);
	spmla_indexer_chunk *chunks = fresh(room * sizeof *chunks);
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint32_t count = 77;
	const spmla_status s = spmla_split_indexer_prefill_chunks(
		seq, query, n, workspace, bytes, offset, chunks, room, &count,
		&diag);

	if (s != SPMLA_OK) {
		check_refusal(s, &diag);
		REQUIRE(s != SPMLA_E_SPACE || diag.want > room);
		REQUIRE(count == 77);
		REQUIRE(is_fresh(chunks, 0, room * sizeof *chunks));
	} else {
		REQUIRE(count <= room);
		check_pieces(chunks, count, seq, query, n, workspace, bytes / 4,
			     offset);
		check_none_lost(chunks, count, seq, query, n, offset);
		REQUIRE(is_fresh(chunks, count * sizeof *chunks,
				 room * sizeof *chunks));
	}
	free(chunks);
	free(query);
	free(seq);
}

#endif
