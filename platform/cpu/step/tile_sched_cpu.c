/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched on the CPU, in the form that runs in parallel. The hard idea: the
 * planner's serial walk is a line that is cut in places. Request i costs c[i] =
 * n[i] + overhead. With C the prefix sum of c, block b of request r lies at x =
 * C[r] + b. A part that starts at x pays its payload P. Where C[k] <= x + P <
 * C[k+1], requests up to k - 1 are done, and the next part starts at max(C[k],
 * x + P - overhead), because the overhead of k is paid only with a block of it.
 * Rows and num_splits follow from the starts alone: one split more for each
 * start that is not the first block of a request. Here a walk finds k; a search
 * in C does the same.
 */
#include "spmla/platform/cpu/step/list_cpu.h"

enum { BLOCK = SPMLA_TILE_BLOCK_KEYS };

/* Block `block` of request `req`; the end of all is block 0 of req = batch. */
typedef struct place {
	uint32_t req;
	uint32_t block;
	uint64_t start; /* C[req] */
} place;

static uint32_t
blocks_in(uint32_t keys)
{
	return keys / BLOCK + (keys % BLOCK != 0);
}

/* The lists of request i. Only their lengths are known. */
static spmla_i_cpu_list
list_of(const spmla_tile_sched_args *a, uint32_t i)
{
	return spmla_i_cpu_list_of(NULL, 0, a->topk_lens, a->lens_tokens,
				   a->indptr, a->topk, i);
}

static spmla_i_cpu_list
extra_of(const spmla_tile_sched_args *a, uint32_t i)
{
	static const spmla_i_cpu_list none = {NULL, 0, 0};

	if (!a->extra_topk)
		return none;
	return spmla_i_cpu_list_of(NULL, 0, a->extra_topk_lens, a->lens_tokens,
				   a->extra_indptr, a->extra_topk, i);
}

/* n[i], at most 2^26 */
static uint32_t
blocks_of(const spmla_tile_sched_args *a, uint32_t i)
{
	const uint32_t keys = list_of(a, i).len;

	return blocks_in(keys ? keys : 1) + blocks_in(extra_of(a, i).len);
}

static uint32_t
outside(const spmla_tile_sched_args *a, const int32_t *lens,
	const int32_t *indptr, uint32_t i, uint32_t most)
{
	const uint32_t at = a->lens_tokens ? i / a->lens_tokens : i;

	return !indptr && lens && (lens[at] < 0 || (uint32_t)lens[at] > most);
}

/* Returns C[batch], and reports lengths out of bounds. */
static uint64_t
total_cost(spmla_ctx *ctx, const spmla_tile_sched_args *a)
{
	uint64_t total = 0;
	uint32_t i;

	for (i = 0; i < a->batch; i++) {
		if (list_of(a, i).is_bad || extra_of(a, i).is_bad ||
		    outside(a, a->topk_lens, a->indptr, i, a->topk) ||
		    (a->extra_topk &&
		     outside(a, a->extra_topk_lens, a->extra_indptr, i,
			     a->extra_topk)))
			spmla_i_cpu_fault(ctx, a->first_request + i,
					  SPMLA_FAULT_LENGTH);
		total += (uint64_t)blocks_of(a, i) + a->overhead_blocks;
	}
	return total;
}

/* The start of the part after the one that starts at `from`. */
static place
next_start(const spmla_tile_sched_args *a, place from, uint64_t payload)
{
	const uint64_t paid = from.start + from.block + payload;
	const uint64_t reach = paid - a->overhead_blocks;
	place to = from;

	while (to.req < a->batch) {
		const uint64_t end =
			to.start + blocks_of(a, to.req) + a->overhead_blocks;

		if (paid < end)
			break;
		to.start = end;
		to.req++;
	}
	to.block = 0;
	if (to.req < a->batch && reach > to.start)
		to.block = (uint32_t)(reach - to.start);
	return to;
}

static void
write_row(const spmla_tile_sched_args *a, place from, place to, int32_t split,
	  int32_t *row)
{
	const int32_t end_req = (int32_t)to.req - (to.block == 0);
	const uint32_t blocks =
		end_req >= 0 ? blocks_of(a, (uint32_t)end_req) : 0;
	const uint32_t end_block = to.block ? to.block : blocks;
	uint32_t first = from.block != 0, last = end_block != blocks;

	if ((int32_t)from.req == end_req)
		first = last = first | last;
	memset(row, 0, SPMLA_TILE_ROW_ELEMS * sizeof *row);
	row[0] = (int32_t)from.req;
	row[3] = (int32_t)end_block;
	row[4] = split;
	if (a->row_format == SPMLA_TILE_ROW_OLD) {
		row[1] = (int32_t)from.block;
		row[2] = end_req;
		return;
	}
	row[1] = end_req;
	row[2] = (int32_t)from.block;
	row[5] = (int32_t)first;
	row[6] = (int32_t)last;
}

/* Each split is a part. */
static void
write_fixed(const spmla_tile_sched_args *a)
{
	const uint32_t most = a->batch ? a->parts / a->batch : 0;
	int32_t *row = a->tile_scheduler_metadata;
	uint32_t p = 0, r, i;

	for (r = 0; r < a->batch; r++) {
		const uint32_t blocks = blocks_of(a, r);
		uint32_t n = blocks / a->split_blocks +
			     (blocks % a->split_blocks != 0);

		n = n < most ? n : most;
		a->num_splits[r] = (int32_t)p;
		for (i = 0; i < n; i++, p++, row += SPMLA_TILE_ROW_ELEMS) {
			const place from = {r, i * a->split_blocks, 0};
			const place to = {
				r + (i + 1 == n),
				i + 1 == n ? 0 : (i + 1) * a->split_blocks, 0};

			write_row(a, from, to, (int32_t)i, row);
		}
	}
	a->num_splits[a->batch] = (int32_t)p;
	for (; p < a->parts; p++, row += SPMLA_TILE_ROW_ELEMS) {
		const place end = {a->batch, 0, 0};

		write_row(a, end, end, 0, row);
	}
}

void
spmla_i_cpu_tile_sched(spmla_ctx *ctx, const void *args)
{
	const spmla_tile_sched_args *a = args;
	const uint64_t total = total_cost(ctx, a);
	const uint64_t payload =
		total / a->parts + (total % a->parts != 0) + a->overhead_blocks;
	place from = {0, 0, 0};
	uint32_t inner = 0; /* starts so far that split a request */
	uint32_t p, r;

	if (a->split_blocks) {
		write_fixed(a);
		return;
	}
	a->num_splits[0] = 0;
	for (p = 0; p < a->parts; p++) {
		const place to = next_start(a, from, payload);
		uint32_t before; /* starts in requests before from.req */

		before = (uint32_t)a->num_splits[from.req] - from.req;
		inner += from.block != 0;
		write_row(a, from, to, (int32_t)(inner - before),
			  a->tile_scheduler_metadata +
				  (uint64_t)p * SPMLA_TILE_ROW_ELEMS);
		for (r = from.req; r < to.req; r++)
			a->num_splits[r + 1] = (int32_t)(r + 1 + inner);
		from = to;
	}
}
