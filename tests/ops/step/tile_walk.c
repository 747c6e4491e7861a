/* SPDX-License-Identifier: Apache-2.0
 *
 * See tile_walk.h.
 */
#include "tests/ops/step/tile_walk.h"

#include <check.h>
#include <string.h>

/* Keys of a request, lengths held inside [0, most]. */
static int64_t
keys_of(const spmla_tile_sched_args *a, uint32_t i, uint32_t *faults)
{
	int64_t t = a->topk_lens ? a->topk_lens[i] : (int64_t)a->topk;
	int64_t extra = a->extra_topk_lens ? a->extra_topk_lens[i]
					   : (int64_t)a->extra_topk;
	uint32_t bad = 0;

	bad |= t < 0 || t > (int64_t)a->topk;
	t = t < 0 ? 0 : t;
	t = t > (int64_t)a->topk ? (int64_t)a->topk : t;
	if (t == 0)
		t = 1;
	if (a->extra_topk) {
		bad |= extra < 0 || extra > (int64_t)a->extra_topk;
		extra = extra < 0 ? 0 : extra;
		extra = extra > (int64_t)a->extra_topk ? (int64_t)a->extra_topk
						       : extra;
		t = (t + 63) / 64 * 64 + extra;
	}
	*faults += bad;
	return t;
}

typedef struct walk {
	int64_t req, blk, split, cum;
} walk;

/* Step 2 of the planner: what one part takes. */
static void
walk_part(const int64_t *n, int64_t batch, int64_t overhead, int64_t payload,
	  walk *w, int32_t *splits)
{
	int64_t remain = payload;

	while (w->req < batch) {
		const int64_t left = n[w->req] - w->blk;

		if (remain < left + overhead) {
			if (remain > overhead) {
				w->blk += remain - overhead;
				w->split++;
			}
			break;
		}
		w->cum += w->split + 1;
		splits[w->req + 1] = (int32_t)w->cum;
		remain -= left + overhead;
		w->req++;
		w->blk = 0;
		w->split = 0;
	}
}

uint32_t
tile_walk(const spmla_tile_sched_args *a, int32_t *want, int32_t *splits)
{
	static int64_t s[TILE_MAX_BATCH + 1], n[TILE_MAX_BATCH + 1];
	const int64_t batch = a->batch, overhead = a->overhead_blocks;
	const uint32_t old = a->row_format == SPMLA_TILE_ROW_OLD;
	int64_t total = 0, payload;
	uint32_t faults = 0, i, p;
	walk w = {0, 0, 0, 0};

	for (i = 0; i < a->batch; i++) {
		s[i] = keys_of(a, i, &faults);
		n[i] = (s[i] - 1) / 64 + 1;
		total += n[i] + overhead;
	}
	payload = (total + a->parts - 1) / a->parts + overhead;
	splits[0] = 0;
	for (p = 0; p < a->parts; p++) {
		int32_t *row = want + p * 8;
		const walk begin = w;
		int64_t end_req, end_block, end_n;
		int first, last;

		walk_part(n, batch, overhead, payload, &w, splits);
		end_req = w.blk > 0 ? w.req : w.req - 1;
		end_n = end_req < 0 ? 0 : n[end_req];
		end_block = w.blk > 0 ? w.blk : end_n;
		first = begin.blk != 0;
		last = end_block != end_n;
		if (begin.req == end_req)
			first = last = first || last;
		memset(row, 0, 8 * sizeof *row);
		row[0] = (int32_t)begin.req;
		row[old ? 2 : 1] = (int32_t)end_req;
		row[old ? 1 : 2] = (int32_t)begin.blk;
		row[3] = (int32_t)end_block;
		row[4] = (int32_t)begin.split;
		row[5] = old ? 0 : first;
		row[6] = old ? 0 : last;
	}
	ck_assert(w.req == batch && w.blk == 0 && w.split == 0);
	return faults;
}
