/* SPDX-License-Identifier: Apache-2.0
 *
 * See tile_rig.h.
 */
#include "tests/ops/step/tile_rig.h"

#include <check.h>
#include <string.h>

void
tile_open(tile_rig *r)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
}

void
tile_close(tile_rig *r)
{
	fixture_close(&r->f);
}

spmla_tile_sched_args
tile_args(tile_rig *r, uint32_t batch, uint32_t parts, uint32_t overhead,
	  uint32_t topk)
{
	const spmla_tile_sched_args a = {sizeof a,
					 batch,
					 parts,
					 overhead,
					 SPMLA_TILE_ROW_NEW,
					 topk,
					 0,
					 0,
					 NULL,
					 NULL,
					 r->rows,
					 r->num_splits,
					 NULL,
					 NULL,
					 0,
					 0};

	return a;
}

void
tile_check(tile_rig *r, const spmla_tile_sched_args *a)
{
	static int32_t want[(TILE_MAX_PARTS + TILE_RED_ZONE) * 8];
	static int32_t want_splits[TILE_MAX_BATCH + TILE_RED_ZONE];
	const size_t row_bytes = (a->parts + 1) * 8 * sizeof *want;
	const size_t split_bytes = (a->batch + 3) * sizeof *want;
	uint32_t faults;

	ck_assert(a->batch <= TILE_MAX_BATCH && a->parts <= TILE_MAX_PARTS);
	memset(want, 0x5A, row_bytes);
	memset(want_splits, 0x5A, split_bytes);
	memcpy(r->rows, want, row_bytes);
	memcpy(r->num_splits, want_splits, split_bytes);
	faults = tile_walk(a, want, want_splits);
	ck_assert_int_eq(spmla_tile_sched(r->f.ctx, a, NULL), SPMLA_OK);
	ck_assert_mem_eq(r->num_splits, want_splits, split_bytes);
	ck_assert_mem_eq(r->rows, want, row_bytes);
	ck_assert_uint_eq(fixture_status(&r->f).count, faults);
	ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
}
