/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered by warpgroup products of e4m3, for up to 64 heads.
 * Consecutive rows mostly see the same keys. So the queries of eight rows, a
 * group, lie in shared memory. A unit of 64 keys is copied there once and
 * multiplied with all eight. One warpgroup loads: units into a ring, queries
 * one group ahead. Two others multiply, each with the queries of four rows. The
 * hard idea is to share keys among so many rows: with two rows per block, the
 * L2 cannot deliver keys as fast as e4m3 products take them.
 *
 * The line of work has the units of all groups. A group's units lie between
 * the first and the last key that one of its rows sees. Blocks get equal shares
 * of the line. Keys that no row of a group sees are not loaded; a warpgroup
 * leaves out a unit that none of its rows sees.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_WGMMA_KERNEL_H

#include "spmla/platform/gpu/select/mqa_logits_gathered_kernel.h"
#include "spmla/platform/gpu/select/mqa_logits_wgmma_kernel.h"

#define SPMLA_K_mqa_logits_gathered_wgmma(P, S) \
	SPMLA_K_mqa_logits_gathered(P, S)
SPMLA_KERNEL_SCALARS(mqa_logits_gathered_wgmma)

enum {
	GATHERED_WGMMA_SUMMERS = 2, /* warpgroups that multiply */
	GATHERED_WGMMA_EACH = 4,    /* rows of one of them */
	GATHERED_WGMMA_ROWS = GATHERED_WGMMA_SUMMERS * GATHERED_WGMMA_EACH,
	GATHERED_WGMMA_LOADERS = 128, /* threads */
	GATHERED_WGMMA_LOADED = 1,    /* their named barrier */
	GATHERED_WGMMA_ITEMS =
		128 * GATHERED_WGMMA_SUMMERS + GATHERED_WGMMA_LOADERS,
	GATHERED_WGMMA_TOKENS = 8192, /* the most that a launch takes */
	GATHERED_WGMMA_LINE = GATHERED_WGMMA_TOKENS / GATHERED_WGMMA_ROWS,
	GATHERED_WGMMA_STAGES = 8,
	GATHERED_WGMMA_AHEAD = 4, /* units whose copies are under way */
	GATHERED_WGMMA_KEYS = 64,
	GATHERED_WGMMA_HEADS = 64,
	GATHERED_WGMMA_TILE = 64 * SPMLA_INDEX_DIM /* bytes */
};

/* Shared memory of a block. */
typedef struct gathered_wgmma_memory {
	uint8_t q[2][GATHERED_WGMMA_ROWS][GATHERED_WGMMA_TILE];
	uint8_t k[GATHERED_WGMMA_STAGES][GATHERED_WGMMA_TILE];
	float scales[GATHERED_WGMMA_STAGES][GATHERED_WGMMA_KEYS];
	float w[2][GATHERED_WGMMA_ROWS][GATHERED_WGMMA_HEADS];
	uint32_t first[2][GATHERED_WGMMA_ROWS];
	uint32_t end[2][GATHERED_WGMMA_ROWS];
	g_mbarrier full[GATHERED_WGMMA_STAGES];
	g_mbarrier free[GATHERED_WGMMA_STAGES];
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

/* ---- the warpgroup that loads ---- */

/* Copies 16 codes to piece `piece` of a panel's row; zeros if `is` is 0. */
FN void
gathered_wgmma_copy(LOCAL uint8_t *panel, uint32_t row, uint32_t piece,
		    GLOBAL const uint8_t *from, uint32_t is, uint32_t aligned)
{
	LOCAL uint8_t *to =
		panel + row * SPMLA_INDEX_DIM + 16 * (piece ^ (row & 7u));
	uint32_t x[4], i;

	if (aligned) {
		g_local_copy128(to, from, is);
		return;
	}
	UNROLL
	for (i = 0; i < 4; i++)
		x[i] = is ? mqa_word(from + 4 * i, 0) : 0;
	g_local_store128(to, x);
}

/* Starts the copies of a group's queries and weights, and stores which keys its
 * rows see. */
FN void
gathered_wgmma_load_group(const PRIVATE gathered_wgmma_job *job, uint32_t group,
			  uint32_t buffer, uint32_t item)
{
	LOCAL gathered_wgmma_memory *mem = job->mem;
	const uint32_t aligned = ((uint64_t)job->q & 15u) == 0;
	const uint32_t heads = job->s.heads;
	uint32_t r, i;

	for (r = 0; r < GATHERED_WGMMA_ROWS; r++) {
		const uint32_t t = group * GATHERED_WGMMA_ROWS + r;
		const uint32_t is = t < job->s.tokens;
		GLOBAL const uint8_t *q =
			job->q +
			(is ? (uint64_t)t * heads * SPMLA_INDEX_DIM : 0);
		GLOBAL const float *w =
			job->weights +
			(is ? (int64_t)t * job->s.weights_stride : 0);

		UNROLL
		for (i = 0; i < 4; i++) {
			const uint32_t h = i * 16 + item / 8;
			const uint32_t does = is && h < heads;

			gathered_wgmma_copy(mem->q[buffer][r], h, item % 8,
					    does ? q + h * SPMLA_INDEX_DIM +
							    16 * (item % 8)
						 : job->q,
					    does, aligned);
		}
		if (item < GATHERED_WGMMA_HEADS)
			g_local_copy32(&mem->w[buffer][r][item],
				       is && item < heads ? w + item
							  : job->weights,
				       is && item < heads);
	}
	if (item < GATHERED_WGMMA_ROWS) {
		const gathered_row row = gathered_wgmma_row(job, group, item);

		mem->first[buffer][item] = row.first;
		mem->end[buffer][item] = row.end;
	}
}

/* Signals that the warp's copies into a stage have arrived. */
FN void
gathered_wgmma_full(LOCAL gathered_wgmma_memory *mem, uint32_t stage)
{
	g_fence_async();
	g_subgroup_barrier();
	if (g_lane() == 0)
		g_mbarrier_arrive(&mem->full[stage]);
}

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

/* Starts the copies of the 64 keys from `first` on. */
FN void
gathered_wgmma_load(const PRIVATE gathered_wgmma_job *job, uint32_t stage,
		    uint32_t buffer, uint32_t first, uint32_t item)
{
	LOCAL gathered_wgmma_memory *mem = job->mem;
	const uint32_t aligned = ((uint64_t)job->k & 15u) == 0;
	uint32_t seen[2], i;

	UNROLL
	for (i = 0; i < 2; i++)
		seen[i] = gathered_wgmma_seen(mem->first[buffer],
					      mem->end[buffer], first + 32 * i);
	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t key = i * 16 + item / 8;
		const uint32_t is = seen[i / 2] >> (key & 31u) & 1u;

		gathered_wgmma_copy(mem->k[stage], key, item % 8,
				    is ? job->k +
						    (uint64_t)(first + key) *
							    SPMLA_INDEX_DIM +
						    16 * (item % 8)
				       : job->k,
				    is, aligned);
	}
	if (item < GATHERED_WGMMA_KEYS) {
		const uint32_t is =
			(item < 32 ? seen[0] : seen[1]) >> (item & 31u) & 1u;

		g_local_copy32(
			&mem->scales[stage][item],
			is ? job->k_scales + first + item : job->k_scales, is);
	}
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

FN void
gathered_wgmma_run_loader(const PRIVATE gathered_wgmma_job *job,
			  PRIVATE gathered_wgmma_way *way)
{
	LOCAL gathered_wgmma_memory *mem = job->mem;
	const uint32_t item = g_item() % 128;
	uint32_t asked = 0, said = 0, i;

	while (gathered_wgmma_next(job, way)) {
		const uint32_t buffer = way->turn & 1u;
		uint32_t key;

		/* The warpgroups that free the buffer may still wait for units.
		 */
		g_local_copies_wait();
		for (; said < asked; said++)
			gathered_wgmma_full(mem, said % GATHERED_WGMMA_STAGES);
		if (way->turn >= 2)
			g_mbarrier_wait(&mem->group_free[buffer],
					(way->turn / 2 - 1) & 1u);
		gathered_wgmma_load_group(job, way->group, buffer, item);
		g_named_sync(GATHERED_WGMMA_LOADED, GATHERED_WGMMA_LOADERS);
		key = gathered_wgmma_key(mem, buffer, way);
		for (i = 0; i < way->units; i++) {
			if (asked >= GATHERED_WGMMA_STAGES)
				g_mbarrier_wait(&mem->free[way->stage],
						way->parity ^ 1u);
			gathered_wgmma_load(job, way->stage, buffer, key, item);
			g_local_copies_commit();
			gathered_wgmma_turn(way);
			key += GATHERED_WGMMA_KEYS;
			if (++asked - said > GATHERED_WGMMA_AHEAD) {
				g_local_copies_wait_but(GATHERED_WGMMA_AHEAD);
				gathered_wgmma_full(
					mem, said++ % GATHERED_WGMMA_STAGES);
			}
		}
		way->turn++;
	}
	g_local_copies_wait();
	for (; said < asked; said++)
		gathered_wgmma_full(mem, said % GATHERED_WGMMA_STAGES);
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

/* Starts the products of a unit and the queries. */
FN void
gathered_wgmma_multiply(PRIVATE float *c, g_panel k, g_panel q)
{
	uint32_t i;

	g_wgmma_begin();
	UNROLL
	for (i = 0; i < 4; i++) {
		if (i == 0)
			g_wgmma_e4m3_n256_first(c, k, q);
		else
			g_wgmma_e4m3_n256(c, g_panel_step(k, i),
					  g_panel_step(q, i));
	}
	g_wgmma_commit();
}

FN void
gathered_wgmma_run_summer(const PRIVATE gathered_wgmma_job *job,
			  PRIVATE gathered_wgmma_way *way, uint32_t own)
{
	LOCAL gathered_wgmma_memory *mem = job->mem;
	const g_panel k_ring = g_panel_of(mem->k, G_GROUP_BYTES, G_PANEL_BYTES);
	const g_panel q_first = g_panel_of(mem->q[0][own * GATHERED_WGMMA_EACH],
					   G_GROUP_BYTES, G_PANEL_BYTES);
	const uint32_t lane_key =
		g_item() % 128 / 32 * 16 + g_lane() / 4 + g_lane() % 2 * 8;

	while (gathered_wgmma_next(job, way)) {
		const uint32_t buffer = way->turn & 1u;
		const g_panel q =
			g_panel_on(q_first, buffer * GATHERED_WGMMA_ROWS *
						    GATHERED_WGMMA_TILE);
		float w[16 * GATHERED_WGMMA_EACH];
		gathered_wgmma_rows rows;
		uint32_t key, i, r;

		/* When the first unit has arrived, the group's queries have
		 * too. */
		g_mbarrier_wait(&mem->full[way->stage], way->parity);
		key = gathered_wgmma_key(mem, buffer, way);
		mqa_wgmma_weights(mem->w[buffer][own * GATHERED_WGMMA_EACH],
				  GATHERED_WGMMA_EACH, w);
		rows = gathered_wgmma_rows_of(job, way, buffer, own);
		for (i = 0; i < way->units; i++) {
			const uint32_t at = key + lane_key;
			float c[32 * GATHERED_WGMMA_EACH];
			float scale, score[GATHERED_WGMMA_OWN];

			g_mbarrier_wait(&mem->full[way->stage], way->parity);
			if (rows.any_first < key + GATHERED_WGMMA_KEYS &&
			    key < rows.any_end) {
				gathered_wgmma_multiply(
					c,
					g_panel_on(k_ring,
						   way->stage *
							   GATHERED_WGMMA_TILE),
					q);
				scale = mem->scales[way->stage][lane_key];
				mqa_wgmma_done(c, 32 * GATHERED_WGMMA_EACH);
				mqa_wgmma_free(&mem->free[way->stage]);
				mqa_wgmma_score(c, w, GATHERED_WGMMA_EACH,
						score);
				UNROLL
				for (r = 0; r < GATHERED_WGMMA_OWN; r++)
					if (at >= rows.first[r] &&
					    at < rows.end[r])
						rows.to[r][at] = gathered_score(
							scale, score[r]);
			} else {
				mqa_wgmma_free(&mem->free[way->stage]);
			}
			gathered_wgmma_turn(way);
			key += GATHERED_WGMMA_KEYS;
		}
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
			g_mbarrier_init(&mem->full[i],
					GATHERED_WGMMA_LOADERS / 32);
			g_mbarrier_init(&mem->free[i],
					4 * GATHERED_WGMMA_SUMMERS);
		}
		for (i = 0; i < 2; i++)
			g_mbarrier_init(&mem->group_free[i],
					4 * GATHERED_WGMMA_SUMMERS);
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
		G_REGISTERS_DOWN(56);
		gathered_wgmma_run_loader(&job, &way);
	} else {
		G_REGISTERS_UP(224);
		gathered_wgmma_run_summer(&job, &way, own);
	}
}

#endif
#endif
