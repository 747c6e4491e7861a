/* SPDX-License-Identifier: Apache-2.0
 *
 * The work of a block of sparse_decode_wgmma, as a line of runs. A run is
 * consecutive entries of one list of one token, in tiles of up to 64. One lane
 * makes a run when the loads come to it; the warps that multiply and write only
 * read it. So lengths and metadata are read in one place. The end of a token
 * does not stop the loads: rows of the next token are on their way before this
 * token's results are written.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_RUN_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_RUN_DEVICE_H

#include "spmla/platform/gpu/attend/decode_work_device.h"
#include "spmla/platform/gpu/dialect/mma.h"

enum {
	/* Runs in shared memory, a power of two. At most six tiles are in use:
	 * two are multiplied, one is converted, and three are ahead. */
	DECODE_RUNS = 8,
	/* Barriers that tell that a run is made, used in turn. From the first
	 * tile on, a warp is never more than two tiles behind another. */
	DECODE_MADE = 4,
	/* Fields of a run's `bits`. */
	DECODE_ENDS = 1,     /* the last one of its token, or of its split */
	DECODE_NONE = 2,     /* there is no work left */
	DECODE_SECOND = 4,   /* entries are of the second list */
	DECODE_MORE = 8,     /* the second list follows */
	DECODE_PIECE = 16,   /* results go to split rows */
	DECODE_GROUP_AT = 5, /* group of heads, 8 bits */
	DECODE_GROUPS = 256,
	DECODE_SPLIT_AT = 13, /* which split of the token, 19 bits */
	DECODE_SPLITS = 1 << 19
};

typedef struct decode_run {
	uint32_t bits;
	uint32_t token;
	uint32_t count; /* of entries; 0: a tile without any */
	uint32_t first; /* in its list; if ragged, in all lists */
} decode_run;

/* A tile. Tile i of the run at place r of the ring has number i * DECODE_RUNS +
 * r. */
typedef uint32_t decode_tile;

/* The state of the lane that makes runs, beside the last run made. */
typedef struct decode_walk {
	uint32_t extra; /* entries of the second list's run, if it follows */
	uint32_t extra_first;
	uint32_t work; /* the next piece and group of heads */
	/* The piece's last token, and where its blocks end. */
	int32_t last, last_end;
} decode_walk;

#ifdef SPMLA_GPU_KERNELS

FN LOCAL const decode_run *
decode_run_of(LOCAL const decode_run *runs, decode_tile tile)
{
	return &runs[tile % DECODE_RUNS];
}

FN uint32_t
decode_run_group(uint32_t bits)
{
	return bits >> DECODE_GROUP_AT & (DECODE_GROUPS - 1u);
}

/* The slot of entry `row` of a tile. Ragged lists have a stride of 0. */
FN int32_t
decode_tile_slot(const PRIVATE decode_args *a, uint32_t second,
		 LOCAL const decode_run *run, decode_tile tile, uint32_t row)
{
	const int64_t stride =
		second ? a->s.extra_slots_stride : a->s.slots_stride;
	GLOBAL const int32_t *slots = second ? a->extra_slots : a->slots;

	return slots[(int64_t)run->token * stride + run->first +
		     tile / DECODE_RUNS * DECODE_BLOCK + row];
}

/* Whether a tile is the last one of its run. */
FN uint32_t
decode_tile_is_last(uint32_t count, decode_tile tile)
{
	return (tile / DECODE_RUNS + 1) * DECODE_BLOCK >= count;
}

/* The tile after `tile`, whose run has `count` entries. The next tile's run may
 * not be made yet. */
FN decode_tile
decode_next_tile(uint32_t count, decode_tile tile)
{
	return decode_tile_is_last(count, tile) ? (tile + 1) % DECODE_RUNS
						: tile + DECODE_RUNS;
}

/* Whether a tile is the last one of its token, or of its split. Its run has
 * `bits` and `count`. */
FN uint32_t
decode_tile_ends(uint32_t bits, uint32_t count, decode_tile tile)
{
	return bits & DECODE_ENDS && decode_tile_is_last(count, tile);
}

/* How many pieces in a row a block or cluster, one of `units`, takes before it
 * goes on behind the pieces of all others. With more parts than units it is as
 * many as it has to take, so that it does a token's splits in turn, if all
 * heads are one group. Parts with work come first, and each has a split. Other
 * metadata only make it uneven: every piece is visited once.
 * Example: 64 tokens of 4 splits are 256 parts. Each of 64 clusters, of 66,
 * takes 4 of them: a token. */
FN uint32_t
decode_walk_chunk(const PRIVATE decode_args *a, uint32_t groups, uint32_t units)
{
	const uint32_t requests = a->s.tokens - a->s.whole_tokens;
	uint32_t parts = a->s.parts;

	if (parts * groups <= units)
		return 1;
	if ((uint32_t)a->num_splits[requests] < parts)
		parts = (uint32_t)a->num_splits[requests];
	return parts ? (parts * groups + units - 1) / units : 1;
}

/* Whether run `next` begins the split that comes after the split of `run`, in
 * the same token and group of heads. */
FN uint32_t
decode_goes_on(LOCAL const decode_run *run, LOCAL const decode_run *next)
{
	const uint32_t bits = run->bits + (1u << DECODE_SPLIT_AT);
	const uint32_t group = (DECODE_GROUPS - 1u) << DECODE_GROUP_AT;

	return run->token == next->token && !(next->bits & DECODE_NONE) &&
	       !((bits ^ next->bits) & (group | ~0u << DECODE_SPLIT_AT));
}

/* Begins before the first run, which takes place 0. `first` is the block's or
 * cluster's first piece. */
FN void
decode_walk_start(LOCAL decode_walk *walk, LOCAL decode_run *runs,
		  uint32_t first)
{
	runs[DECODE_RUNS - 1].bits = 0;
	runs[DECODE_RUNS - 1].token = 0;
	runs[DECODE_RUNS - 1].count = 0;
	walk->work = first;
	walk->last = -1;
}

/* Faults of a piece or a token, and how many. */
typedef struct decode_faults {
	uint32_t count;
	uint32_t row;
} decode_faults;

/* Takes the next piece. Returns 0 if there is none. */
FN uint32_t
decode_walk_piece(const PRIVATE decode_args *a, uint32_t groups, uint32_t units,
		  uint32_t chunk, PRIVATE decode_piece *piece,
		  PRIVATE decode_walk *w, PRIVATE decode_run *run,
		  PRIVATE decode_faults *faults)
{
	const uint32_t pieces = a->s.whole_tokens + a->s.parts;
	const uint32_t number = w->work / groups;
	const uint32_t group = w->work % groups;

	if (number >= pieces)
		return 0;
	if (++w->work % chunk == 0)
		w->work += (units - 1) * chunk;
	*piece = decode_piece_of(a->tile_scheduler_metadata, a->s.whole_tokens,
				 number, a->s.tokens);
	faults->count = piece->fault != 0 && group == 0;
	faults->row = number - a->s.whole_tokens;
	run->bits = group << DECODE_GROUP_AT;
	run->token = (uint32_t)(piece->first - 1);
	w->last = piece->last;
	w->last_end = piece->end_block;
	return 1;
}

/* How many entries blocks [begin, end) of a list of `len` have. */
FN uint32_t
decode_walk_entries(uint32_t len, int32_t begin, int32_t end)
{
	const uint32_t first = (uint32_t)begin * DECODE_BLOCK;
	uint32_t stop = (uint32_t)end * DECODE_BLOCK;

	stop = stop < len ? stop : len;
	return stop > first ? stop - first : 0;
}

/* Whether splits are added up by their blocks. */
FN uint32_t
decode_combines(const PRIVATE decode_args *a)
{
	return a->s.parts && a->workspace;
}

/* Goes to the next token of the piece. Only at the piece's first token `piece`
 * says at which block to begin. Returns 0 if the token writes nothing. */
FN uint32_t
decode_walk_token(const PRIVATE decode_args *a, uint32_t lists,
		  PRIVATE decode_piece *piece, PRIVATE decode_walk *w,
		  PRIVATE decode_run *run, PRIVATE decode_faults *to)
{
	const uint32_t t = ++run->token;
	const uint32_t group = decode_run_group(run->bits);
	const decode_list list =
		decode_list_of(a->topk_lens, a->s.list_form, a->s.lens_tokens,
			       0, a->s.topk, t);
	const int32_t blocks = (int32_t)decode_blocks(list.len, 1);
	decode_list extra;
	decode_range range;
	uint32_t faults = list.faults;

	extra.first = 0;
	extra.len = 0;
	if (lists == 2 && a->s.extra_topk) {
		extra = decode_list_of(a->extra_topk_lens, a->s.extra_list_form,
				       a->s.lens_tokens, 0, a->s.extra_topk, t);
		faults += extra.faults;
	}
	piece->last = w->last;
	piece->end_block = w->last_end;
	range = decode_range_of(piece, a->num_splits, a->s.whole_tokens,
				a->s.split_rows, t,
				blocks + (int32_t)decode_blocks(extra.len, 0));
	if (range.lost && decode_combines(a)) {
		/* Splits without rows cannot be added. The token gets the
		 * results of one without keys, and each of its parts reports
		 * a fault. */
		range.row = DECODE_WHOLE;
		range.begin = range.end = 0;
		range.faults = 1;
	}
	to->count = group == 0 ? faults + range.faults : 0;
	to->row = t;
	run->bits = group << DECODE_GROUP_AT | DECODE_ENDS;
	if (range.row != DECODE_WHOLE)
		run->bits |= DECODE_PIECE | (uint32_t)range.split
						    << DECODE_SPLIT_AT;
	if (range.end < range.begin)
		return 0;
	if (range.begin < blocks || range.begin == range.end) {
		/* An empty range gets the results of a token without keys. */
		run->first = (uint32_t)list.first +
			     (uint32_t)range.begin * DECODE_BLOCK;
		run->count =
			decode_walk_entries(list.len, range.begin, range.end);
		if (range.end > blocks && range.begin != range.end) {
			run->bits ^= DECODE_MORE | DECODE_ENDS;
			w->extra = decode_walk_entries(extra.len, 0,
						       range.end - blocks);
			w->extra_first = (uint32_t)extra.first;
		}
	} else {
		run->bits |= DECODE_SECOND;
		run->first = (uint32_t)extra.first +
			     (uint32_t)(range.begin - blocks) * DECODE_BLOCK;
		run->count = decode_walk_entries(
			extra.len, range.begin - blocks, range.end - blocks);
	}
	return 1;
}

/* Makes the run for a place of the ring, by one lane. Of a cluster, one block
 * `reports` faults. */
FN void
decode_walk_next(const PRIVATE decode_args *a, uint32_t lists, uint32_t groups,
		 uint32_t units, uint32_t chunk, uint32_t reports,
		 LOCAL decode_walk *walk, LOCAL decode_run *runs,
		 uint32_t place)
{
	decode_run run = runs[(place + DECODE_RUNS - 1) % DECODE_RUNS];
	decode_walk w = *walk;
	decode_faults faults;
	decode_piece piece;
	uint32_t found;

	if (run.bits & DECODE_MORE) {
		run.bits ^= DECODE_MORE | DECODE_SECOND | DECODE_ENDS;
		run.count = w.extra;
		run.first = w.extra_first;
		runs[place] = run;
		return;
	}
	piece.first = -1; /* the walk is past the first token */
	piece.first_block = piece.split = 0;
	NO_UNROLL
	do {
		faults.count = faults.row = 0;
		found = 0;
		if ((int32_t)run.token < w.last) {
			found = decode_walk_token(a, lists, &piece, &w, &run,
						  &faults);
		} else if (!decode_walk_piece(a, groups, units, chunk, &piece,
					      &w, &run, &faults)) {
			run.bits = DECODE_NONE;
			run.count = 0;
			found = 1;
		}
		NO_UNROLL
		for (; faults.count && reports; faults.count--)
			g_fault(a->fault_state, a->fault_status, faults.row,
				G_FAULT_INDEX);
	} while (!found);
	*walk = w;
	runs[place] = run;
}

#endif
#endif
