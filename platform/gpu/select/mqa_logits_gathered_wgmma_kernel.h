/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered by warpgroup products of e4m3, for up to 64 heads.
 * Consecutive rows mostly see the same keys. So the queries of eight rows, a
 * group, lie in shared memory. A unit of 64 keys is copied there once and
 * multiplied with all eight: with two rows per block, the L2 cannot deliver
 * keys as fast as e4m3 products take them. Two warpgroups multiply, each with
 * the queries of four rows. The four warps of another one load: one copies
 * units into a ring, two swizzle them there, one loads queries, a group ahead.
 *
 * The hard idea is to swizzle in place. Keys must lie swizzled to be
 * multiplied, and threads that write shared memory need g_fence_async before
 * the products. If a thread copies keys itself, by cp.async, its fence waits
 * for all of its copies under way, so each unit costs a latency of the L2. A
 * bulk copy needs no fence and belongs to no thread, but leaves keys as they
 * lie in memory. So one warp asks for bulk copies as far ahead as the ring has
 * room, and the fence of the two that swizzle what has arrived waits only for
 * their own stores.
 *
 * The line of work has the units of all groups. A group's units lie between
 * the first and the last key that one of its rows sees. Blocks get equal shares
 * of the line. Keys that no row of a group sees are not loaded; a warpgroup
 * leaves out a unit that none of its rows sees.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_WGMMA_KERNEL_H

#include "spmla/platform/gpu/select/mqa_logits_gathered_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_wgmma_device.h"

#define SPMLA_K_mqa_logits_gathered_wgmma(P, S) \
	SPMLA_K_mqa_logits_gathered(P, S)
SPMLA_KERNEL_SCALARS(mqa_logits_gathered_wgmma)

enum {
	GATHERED_WGMMA_SUMMERS = 2, /* warpgroups that multiply */
	GATHERED_WGMMA_EACH = 4,    /* rows of one of them */
	GATHERED_WGMMA_ROWS = GATHERED_WGMMA_SUMMERS * GATHERED_WGMMA_EACH,
	GATHERED_WGMMA_ITEMS = 128 * (GATHERED_WGMMA_SUMMERS + 1),
	GATHERED_WGMMA_TOKENS = 8192, /* the most that a launch takes */
	GATHERED_WGMMA_LINE = GATHERED_WGMMA_TOKENS / GATHERED_WGMMA_ROWS,
	GATHERED_WGMMA_STAGES = 10,
	GATHERED_WGMMA_SWIZZLERS = 2, /* warps, 32 keys of a unit each */
	GATHERED_WGMMA_COPIER = 2,    /* the copier's place in first and end */
	GATHERED_WGMMA_KEYS = 64,
	GATHERED_WGMMA_HEADS = 64,
	GATHERED_WGMMA_TILE = 64 * SPMLA_INDEX_DIM /* bytes */
};

/* Shared memory of a block. */
typedef struct gathered_wgmma_memory {
	uint8_t q[2][GATHERED_WGMMA_ROWS][GATHERED_WGMMA_TILE];
	uint8_t k[GATHERED_WGMMA_STAGES][GATHERED_WGMMA_TILE];
	float w[2][GATHERED_WGMMA_ROWS][GATHERED_WGMMA_HEADS];
	uint32_t first[3][GATHERED_WGMMA_ROWS];
	uint32_t end[3][GATHERED_WGMMA_ROWS];
	g_mbarrier raw[GATHERED_WGMMA_STAGES];  /* copied */
	g_mbarrier full[GATHERED_WGMMA_STAGES]; /* swizzled, too */
	g_mbarrier free[GATHERED_WGMMA_STAGES];
	g_mbarrier group_full[2];
	g_mbarrier group_free[2];
	uint64_t line[GATHERED_WGMMA_LINE];
	uint64_t sums[G_SCAN_SUBGROUPS];
} gathered_wgmma_memory;

enum { GATHERED_WGMMA_BYTES = sizeof(gathered_wgmma_memory) };

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

typedef struct gathered_wgmma_job {
	SPMLA_KERNEL_FIELDS(mqa_logits_gathered_wgmma)
	LOCAL gathered_wgmma_memory *mem;
} gathered_wgmma_job;

/* The keys [first, end) that row r of a group sees. */
FN gathered_row
gathered_wgmma_row(const PRIVATE gathered_wgmma_job *job, uint32_t group,
		   uint32_t r)
{
	const uint32_t t = group * GATHERED_WGMMA_ROWS + r;
	gathered_row row;

	row.first = row.end = row.fault = 0;
	if (t < job->s.tokens)
		row = gathered_row_of(job->starts, job->ends, job->s.keys,
				      job->s.columns, job->s.compressed, t);
	return row;
}

/* How many units a group has. The first block reports faults. */
FN uint32_t
gathered_wgmma_units(const PRIVATE gathered_wgmma_job *job, uint32_t group)
{
	uint32_t first = ~0u, end = 0, r;

	for (r = 0; r < GATHERED_WGMMA_ROWS; r++) {
		const gathered_row row = gathered_wgmma_row(job, group, r);

		if (row.fault && g_block() == 0)
			g_fault(job->fault_state, job->fault_status,
				job->s.first_token +
					group * GATHERED_WGMMA_ROWS + r,
				row.fault);
		if (row.first == row.end)
			continue;
		first = row.first < first ? row.first : first;
		end = row.end > end ? row.end : end;
	}
	return end ? (end - first + GATHERED_WGMMA_KEYS - 1) /
			       GATHERED_WGMMA_KEYS
		   : 0;
}

/* Makes the line of units of all groups: line[i] is how many units groups 0 ..
 * i have. Returns the total. */
FN uint64_t
gathered_wgmma_line(const PRIVATE gathered_wgmma_job *job, uint32_t groups)
{
	uint64_t total = 0;
	uint32_t first;

	for (first = 0; first < groups; first += GATHERED_WGMMA_ITEMS) {
		const uint32_t group = first + g_item();
		uint64_t before, all;
		uint32_t units = 0;

		if (group < groups)
			units = gathered_wgmma_units(job, group);
		before = g_scan_sum(units, GATHERED_WGMMA_ITEMS, job->mem->sums,
				    &all);
		if (group < groups)
			job->mem->line[group] = total + before + units;
		total += all;
	}
	return total;
}

/* ---- a block's way ---- */

/* Where a block is on its part of the line. */
typedef struct gathered_wgmma_way {
	uint64_t unit;
	uint64_t last;
	uint32_t groups;
	uint32_t group;
	uint32_t turn;  /* groups so far */
	uint32_t first; /* of this group's units that are the block's */
	uint32_t units; /* how many */
	uint32_t stage;
	uint32_t parity;
} gathered_wgmma_way;

/* Goes on to the next group; returns 0 if there is none. */
FN uint32_t
gathered_wgmma_next(const PRIVATE gathered_wgmma_job *job,
		    PRIVATE gathered_wgmma_way *way)
{
	LOCAL const uint64_t *line = job->mem->line;
	uint64_t end;

	if (way->unit >= way->last)
		return 0;
	way->group = g_first_above64(line, way->group, way->groups, way->unit);
	end = line[way->group] < way->last ? line[way->group] : way->last;
	way->first =
		(uint32_t)(way->unit - (way->group ? line[way->group - 1] : 0));
	way->units = (uint32_t)(end - way->unit);
	way->unit = end;
	return 1;
}

FN void
gathered_wgmma_turn(PRIVATE gathered_wgmma_way *way)
{
	if (++way->stage == GATHERED_WGMMA_STAGES) {
		way->stage = 0;
		way->parity ^= 1u;
	}
}

/* ---- the warp that copies keys ---- */

/* Which of the 32 keys from `first` on some row sees. */
FN uint32_t
gathered_wgmma_seen(LOCAL const uint32_t *firsts, LOCAL const uint32_t *ends,
		    uint32_t first)
{
	const uint32_t key = first + g_lane();
	uint32_t is = 0, r;

	UNROLL
	for (r = 0; r < GATHERED_WGMMA_ROWS; r++)
		is |= key >= firsts[r] && key < ends[r];
	return (uint32_t)g_ballot(is);
}

/* Copies a key that lies at any address. */
FN void
gathered_wgmma_copy_words(LOCAL uint8_t *to, GLOBAL const uint8_t *from)
{
	uint32_t i;

	for (i = 0; i < SPMLA_INDEX_DIM; i += 4)
		*(LOCAL uint32_t *)(to + i) = mqa_word(from + i, 0);
}

/* Starts to copy the 64 keys from `first` on, but no key that no row sees.
 * In the place of such a key is what the stage had. It is multiplied, too, but
 * a key's products are scores of that key alone, which nobody writes. */
FN void
gathered_wgmma_copy(const PRIVATE gathered_wgmma_job *job, uint32_t stage,
		    uint32_t first)
{
	LOCAL gathered_wgmma_memory *mem = job->mem;
	LOCAL g_mbarrier *raw = &mem->raw[stage];
	LOCAL uint8_t *to = mem->k[stage];
	GLOBAL const uint8_t *from = job->k + (uint64_t)first * SPMLA_INDEX_DIM;
	const uint32_t aligned = ((uint64_t)job->k & 15u) == 0;
	uint32_t seen[2], i;

	for (i = 0; i < 2; i++)
		seen[i] = gathered_wgmma_seen(mem->first[GATHERED_WGMMA_COPIER],
					      mem->end[GATHERED_WGMMA_COPIER],
					      first + 32 * i);
	if (aligned && (seen[0] & seen[1]) == ~0u) {
		if (g_lane() == 0) {
			g_mbarrier_arrive_expect(raw, GATHERED_WGMMA_TILE);
			g_bulk_copy(to, from, GATHERED_WGMMA_TILE, raw);
		}
		return;
	}
	if (aligned && g_lane() == 0)
		g_mbarrier_arrive_expect(raw, SPMLA_INDEX_DIM *
						      (g_popcount(seen[0]) +
						       g_popcount(seen[1])));
	for (i = 0; i < 2; i++) {
		const uint32_t at = (32 * i + g_lane()) * SPMLA_INDEX_DIM;

		if (!(seen[i] >> g_lane() & 1u))
			continue;
		if (aligned)
			g_bulk_copy(to + at, from + at, SPMLA_INDEX_DIM, raw);
		else
			gathered_wgmma_copy_words(to + at, from + at);
	}
	g_subgroup_barrier();
	if (!aligned && g_lane() == 0)
		g_mbarrier_arrive(raw);
}

/* The first key of the block's units of a group; units begin with the first key
 * that a row of the group sees. */
FN uint32_t
gathered_wgmma_key(LOCAL const gathered_wgmma_memory *mem, uint32_t buffer,
		   const PRIVATE gathered_wgmma_way *way)
{
	uint32_t key = ~0u, r;

	for (r = 0; r < GATHERED_WGMMA_ROWS; r++)
		if (mem->end[buffer][r] && mem->first[buffer][r] < key)
			key = mem->first[buffer][r];
	return key + way->first * GATHERED_WGMMA_KEYS;
}

/* Stores which keys the rows of a group see; a thread has a row. */
FN void
gathered_wgmma_load_rows(const PRIVATE gathered_wgmma_job *job, uint32_t group,
			 uint32_t buffer, uint32_t item)
{
	if (item < GATHERED_WGMMA_ROWS) {
		const gathered_row row = gathered_wgmma_row(job, group, item);

		job->mem->first[buffer][item] = row.first;
		job->mem->end[buffer][item] = row.end;
	}
}

FN void
gathered_wgmma_run_copier(const PRIVATE gathered_wgmma_job *job,
			  PRIVATE gathered_wgmma_way *way)
{
	LOCAL gathered_wgmma_memory *mem = job->mem;
	uint32_t again = 0, key, i;

	while (gathered_wgmma_next(job, way)) {
		g_subgroup_barrier();
		gathered_wgmma_load_rows(job, way->group, GATHERED_WGMMA_COPIER,
					 g_lane());
		g_subgroup_barrier();
		key = gathered_wgmma_key(mem, GATHERED_WGMMA_COPIER, way);
		for (i = 0; i < way->units; i++) {
			if (again)
				g_mbarrier_wait(&mem->free[way->stage],
						way->parity ^ 1u);
			gathered_wgmma_copy(job, way->stage, key);
			gathered_wgmma_turn(way);
			again |= way->stage == 0;
			key += GATHERED_WGMMA_KEYS;
		}
	}
}

/* ---- the warps that swizzle keys ---- */

/* Swizzles the 32 rows of a panel from `row` on, in place: 16-byte piece i of a
 * row goes to where piece i ^ (row % 8) was. A warp's rows are its own, so all
 * loads come before all stores. */
FN void
gathered_wgmma_swizzle(LOCAL uint8_t *panel, uint32_t row)
{
	const uint32_t piece = g_lane() % 8;
	uint32_t x[8][4], i;

	row += g_lane() / 8;
	UNROLL
	for (i = 0; i < 8; i++)
		g_local_load128(panel + (row + 4 * i) * SPMLA_INDEX_DIM +
					16 * piece,
				x[i]);
	g_subgroup_barrier();
	UNROLL
	for (i = 0; i < 8; i++)
		g_local_store128(panel + (row + 4 * i) * SPMLA_INDEX_DIM +
					 16 * (piece ^ ((row + 4 * i) & 7u)),
				 x[i]);
}

FN void
gathered_wgmma_run_swizzler(const PRIVATE gathered_wgmma_job *job,
			    PRIVATE gathered_wgmma_way *way, uint32_t warp)
{
	LOCAL gathered_wgmma_memory *mem = job->mem;
	uint64_t units;

	for (units = way->last - way->unit; units; units--) {
		g_mbarrier_wait(&mem->raw[way->stage], way->parity);
		gathered_wgmma_swizzle(mem->k[way->stage], 32 * warp);
		g_fence_async(); /* waits for these stores only */
		g_subgroup_barrier();
		if (g_lane() == 0)
			g_mbarrier_arrive(&mem->full[way->stage]);
		gathered_wgmma_turn(way);
	}
}

/* ---- the warp that loads queries ---- */

/* Starts the copies of a token's queries and weights, if there is one; else
 * stores zeros. */
FN void
gathered_wgmma_load_row(const PRIVATE gathered_wgmma_job *job, uint32_t token,
			LOCAL uint8_t *panel, LOCAL float *w)
{
	const uint32_t is_token = token < job->s.tokens;
	const uint32_t heads = is_token ? job->s.heads : 0;
	const uint32_t aligned = ((uint64_t)job->q & 15u) == 0;
	const uint64_t at = is_token ? token : 0;
	GLOBAL const uint8_t *q = job->q + at * job->s.heads * SPMLA_INDEX_DIM;
	GLOBAL const float *weights =
		job->weights + (int64_t)at * job->s.weights_stride;
	uint32_t i, j, x[4];

	for (i = g_lane(); i < 8 * GATHERED_WGMMA_HEADS; i += 32) {
		const uint32_t h = i / 8, is = h < heads;
		GLOBAL const uint8_t *from = is ? q + 16 * i : job->q;
		LOCAL uint8_t *to =
			panel + h * SPMLA_INDEX_DIM + 16 * ((i ^ h) & 7u);

		if (aligned) {
			g_local_copy128(to, from, is);
			continue;
		}
		UNROLL
		for (j = 0; j < 4; j++)
			x[j] = is ? mqa_word(from + 4 * j, 0) : 0;
		g_local_store128(to, x);
	}
	for (i = g_lane(); i < GATHERED_WGMMA_HEADS; i += 32)
		g_local_copy32(w + i, i < heads ? weights + i : job->weights,
			       i < heads);
}

FN void
gathered_wgmma_run_asker(const PRIVATE gathered_wgmma_job *job,
			 PRIVATE gathered_wgmma_way *way)
{
	LOCAL gathered_wgmma_memory *mem = job->mem;
	uint32_t r;

	while (gathered_wgmma_next(job, way)) {
		const uint32_t buffer = way->turn & 1u;

		if (way->turn >= 2)
			g_mbarrier_wait(&mem->group_free[buffer],
					(way->turn / 2 - 1) & 1u);
		for (r = 0; r < GATHERED_WGMMA_ROWS; r++)
			gathered_wgmma_load_row(
				job, way->group * GATHERED_WGMMA_ROWS + r,
				mem->q[buffer][r], mem->w[buffer][r]);
		gathered_wgmma_load_rows(job, way->group, buffer, g_lane());
		g_local_copies_wait();
		g_fence_async();
		g_mbarrier_arrive(&mem->group_full[buffer]);
		way->turn++;
	}
}

/* ---- the warpgroups that multiply ---- */

/* The rows whose scores a lane writes. */
enum { GATHERED_WGMMA_OWN = GATHERED_WGMMA_EACH / 2 };

typedef struct gathered_wgmma_rows {
	GLOBAL float *to[GATHERED_WGMMA_OWN];
	uint32_t first[GATHERED_WGMMA_OWN];
	uint32_t end[GATHERED_WGMMA_OWN];
	uint32_t
		any_first; /* of the keys that some row of the warpgroup sees */
	uint32_t any_end;
} gathered_wgmma_rows;

/* The rows of a lane of warpgroup `own`, in a group. */
FN gathered_wgmma_rows
gathered_wgmma_rows_of(const PRIVATE gathered_wgmma_job *job,
		       const PRIVATE gathered_wgmma_way *way, uint32_t buffer,
		       uint32_t own)
{
	const uint32_t first_row = own * GATHERED_WGMMA_EACH;
	const uint32_t rank = g_lane() % 4 / 2 * GATHERED_WGMMA_OWN;
	LOCAL const uint32_t *firsts = job->mem->first[buffer] + first_row;
	LOCAL const uint32_t *ends = job->mem->end[buffer] + first_row;
	uint32_t first = ~0u, end = 0, r;
	gathered_wgmma_rows rows;

	UNROLL
	for (r = 0; r < GATHERED_WGMMA_EACH; r++) {
		if (ends[r] && firsts[r] < first)
			first = firsts[r];
		end = ends[r] > end ? ends[r] : end;
	}
	UNROLL
	for (r = 0; r < GATHERED_WGMMA_OWN; r++) {
		rows.first[r] = firsts[rank + r];
		rows.end[r] = ends[rank + r];
		rows.to[r] = job->logits +
			     ((int64_t)way->group * GATHERED_WGMMA_ROWS +
			      first_row + rank + r) *
				     job->s.logits_stride -
			     (job->s.compressed ? rows.first[r] : 0);
	}
	rows.any_first = g_broadcast(first, 0);
	rows.any_end = g_broadcast(end, 0);
	return rows;
}

/* How many whole units lie between `key` and `to`; at most `units`. */
FN uint32_t
gathered_wgmma_units_to(uint32_t key, uint32_t to, uint32_t units)
{
	const uint32_t whole = to > key ? (to - key) / GATHERED_WGMMA_KEYS : 0;

	return whole < units ? whole : units;
}

/* Passes units that no row of the warpgroup sees. */
FN void
gathered_wgmma_pass(LOCAL gathered_wgmma_memory *mem,
		    PRIVATE gathered_wgmma_way *way, uint32_t units)
{
	for (; units; units--) {
		g_mbarrier_wait(&mem->full[way->stage], way->parity);
		mqa_wgmma_free(&mem->free[way->stage]);
		gathered_wgmma_turn(way);
	}
}

/* Starts the products of a unit and the queries. */
FN void
gathered_wgmma_multiply(PRIVATE float *c, g_panel k, g_panel q)
{
	uint32_t i;

	g_wgmma_begin();
	g_wgmma_e4m3_n256_first(c, k, q);
	UNROLL
	for (i = 1; i < 4; i++)
		g_wgmma_e4m3_n256(c, g_panel_step(k, i), g_panel_step(q, i));
	g_wgmma_commit();
}

/* Writes the scores of key `at`, unless a row does not see it. */
FN void
gathered_wgmma_write(const PRIVATE gathered_wgmma_rows *rows, uint32_t at,
		     float scale, const PRIVATE float *sums)
{
	float score[GATHERED_WGMMA_OWN];
	uint32_t r;

	mqa_wgmma_score(sums, GATHERED_WGMMA_EACH, score);
	UNROLL
	for (r = 0; r < GATHERED_WGMMA_OWN; r++)
		if (at >= rows->first[r] && at < rows->end[r])
			rows->to[r][at] = gathered_score(scale, score[r]);
}

/* Scores `units` units, the first of which begins with key `key`. What follows
 * the sums of a unit is a chain: shuffles, the scale, stores. It runs beside
 * the next unit's products, and so does the wait for the keys of the unit
 * behind. */
FN void
gathered_wgmma_score_units(const PRIVATE gathered_wgmma_job *job,
			   PRIVATE gathered_wgmma_way *way,
			   const PRIVATE gathered_wgmma_rows *rows,
			   const PRIVATE float *w, g_panel q, uint32_t key,
			   uint32_t units)
{
	LOCAL gathered_wgmma_memory *mem = job->mem;
	const g_panel ring = g_panel_of(mem->k, G_GROUP_BYTES, G_PANEL_BYTES);
	float sums[2 * GATHERED_WGMMA_EACH], scale = 0;
	uint32_t at = key + g_item() % 128 / 32 * 16 + g_lane() / 4 +
		      g_lane() % 2 * 8;
	uint32_t before = ~0u; /* no key: none is summed */
	uint32_t r;

	UNROLL
	for (r = 0; r < 2 * GATHERED_WGMMA_EACH; r++)
		sums[r] = 0;
	if (units)
		g_mbarrier_wait(&mem->full[way->stage], way->parity);
	for (; units; units--) {
		const uint32_t stage = way->stage;
		float c[32 * GATHERED_WGMMA_EACH];
		uint32_t any = 0;

		gathered_wgmma_multiply(
			c, g_panel_on(ring, stage * GATHERED_WGMMA_TILE), q);
		gathered_wgmma_write(rows, before, scale, sums);
		UNROLL
		for (r = 0; r < GATHERED_WGMMA_OWN; r++)
			any |= at >= rows->first[r] && at < rows->end[r];
		if (any)
			scale = job->k_scales[at];
		gathered_wgmma_turn(way);
		if (units > 1)
			g_mbarrier_wait(&mem->full[way->stage], way->parity);
		mqa_wgmma_done(c, 32 * GATHERED_WGMMA_EACH);
		mqa_wgmma_free(&mem->free[stage]);
		mqa_wgmma_sum_heads(c, w, GATHERED_WGMMA_EACH,
				    MQA_RELU_SATURATED, sums);
		before = at;
		at += GATHERED_WGMMA_KEYS;
	}
	gathered_wgmma_write(rows, before, scale, sums);
}

FN void
gathered_wgmma_run_summer(const PRIVATE gathered_wgmma_job *job,
			  PRIVATE gathered_wgmma_way *way, uint32_t own)
{
	LOCAL gathered_wgmma_memory *mem = job->mem;
	const g_panel q_first = g_panel_of(mem->q[0][own * GATHERED_WGMMA_EACH],
					   G_GROUP_BYTES, G_PANEL_BYTES);

	while (gathered_wgmma_next(job, way)) {
		const uint32_t buffer = way->turn & 1u;
		const g_panel q =
			g_panel_on(q_first, buffer * GATHERED_WGMMA_ROWS *
						    GATHERED_WGMMA_TILE);
		float w[16 * GATHERED_WGMMA_EACH];
		gathered_wgmma_rows rows;
		uint32_t key, before, units;

		g_mbarrier_wait(&mem->group_full[buffer], way->turn / 2 & 1u);
		key = gathered_wgmma_key(mem, buffer, way);
		mqa_wgmma_weights(mem->w[buffer][own * GATHERED_WGMMA_EACH],
				  GATHERED_WGMMA_EACH, MQA_RELU_SATURATED, w);
		rows = gathered_wgmma_rows_of(job, way, buffer, own);
		before = gathered_wgmma_units_to(key, rows.any_first,
						 way->units);
		units = g_broadcast(
			gathered_wgmma_units_to(
				key, rows.any_end + GATHERED_WGMMA_KEYS - 1,
				way->units),
			0);
		before = g_broadcast(before < units ? before : units, 0);
		gathered_wgmma_pass(mem, way, before);
		gathered_wgmma_score_units(job, way, &rows, w, q,
					   key + before * GATHERED_WGMMA_KEYS,
					   units - before);
		gathered_wgmma_pass(mem, way, way->units - units);
		mqa_wgmma_free(&mem->group_free[buffer]);
		way->turn++;
	}
}

/* ---- the kernel ---- */

FN void
gathered_wgmma_begin(LOCAL gathered_wgmma_memory *mem)
{
	uint32_t i;

	if (g_item() == 0) {
		for (i = 0; i < GATHERED_WGMMA_STAGES; i++) {
			g_mbarrier_init(&mem->raw[i], 1);
			g_mbarrier_init(&mem->full[i],
					GATHERED_WGMMA_SWIZZLERS);
			g_mbarrier_init(&mem->free[i],
					4 * GATHERED_WGMMA_SUMMERS);
		}
		for (i = 0; i < 2; i++) {
			g_mbarrier_init(&mem->group_full[i], 32);
			g_mbarrier_init(&mem->group_free[i],
					4 * GATHERED_WGMMA_SUMMERS);
		}
		g_mbarriers_publish();
	}
}

SPMLA_KERNEL_BLOCKS(mqa_logits_gathered_wgmma, 1)
void
spmla_k_mqa_logits_gathered_wgmma(SPMLA_KERNEL_ARGS(mqa_logits_gathered_wgmma))
{
	LOCAL_DYNAMIC(local, GATHERED_WGMMA_BYTES);
	const gathered_wgmma_job job = {
		SPMLA_KERNEL_VALUES(mqa_logits_gathered_wgmma),
		(LOCAL gathered_wgmma_memory *)local};
	const uint32_t own = g_broadcast(g_item() / 128, 0);
	const uint32_t groups = s.tokens / GATHERED_WGMMA_ROWS +
				(s.tokens % GATHERED_WGMMA_ROWS > 0);
	gathered_wgmma_way way;
	uint64_t total;

	gathered_wgmma_begin(job.mem);
	total = gathered_wgmma_line(&job, groups);
	if (s.clean)
		gathered_clean(starts, ends, logits, s.logits_stride, s.tokens,
			       s.keys, s.columns, 0, GATHERED_WGMMA_ITEMS);
	BARRIER();
	way.unit = total * g_block() / g_blocks();
	way.last = total * (g_block() + 1) / g_blocks();
	way.groups = groups;
	way.group = way.turn = way.stage = way.parity = 0;
	if (own == GATHERED_WGMMA_SUMMERS) {
		const uint32_t warp = g_broadcast(g_item() % 128 / 32, 0);

		G_REGISTERS_DOWN(56);
		if (warp < GATHERED_WGMMA_SWIZZLERS)
			gathered_wgmma_run_swizzler(&job, &way, warp);
		else if (warp == GATHERED_WGMMA_SWIZZLERS)
			gathered_wgmma_run_asker(&job, &way);
		else
			gathered_wgmma_run_copier(&job, &way);
	} else {
		G_REGISTERS_UP(224);
		gathered_wgmma_run_summer(&job, &way, own);
	}
}

#endif
#endif
