/* SPDX-License-Identifier: Apache-2.0
 *
 * See slot_map_rig.h.
 */
#include "tests/ops/step/slot_map_rig.h"

#include <check.h>
#include <string.h>

void
slot_map_open(slot_map_rig *r)
{
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	memset(&r->io, 0, sizeof r->io);
	for (i = 0; i < SLOT_ROWS * SLOT_STRIDE; i++)
		r->io.table[i] = i % SLOT_STRIDE < SLOT_COLUMNS
					 ? (int32_t)(10 * i + 3)
					 : 1;
	for (i = 0; i < SLOT_ROWS; i++)
		r->io.cols[i] = SLOT_COLUMNS;
}

void
slot_map_close(slot_map_rig *r)
{
	fixture_close(&r->f);
}

spmla_slot_map_args
slot_map_args(slot_map_rig *r, uint32_t tokens)
{
	const spmla_slot_map_args a = {sizeof a,    tokens,
				       SLOT_ROWS,   SLOT_COLUMNS,
				       64,          SLOT_POOL,
				       SLOT_STRIDE, 0,
				       r->io.row,   r->io.position,
				       r->io.table, r->io.cols,
				       r->io.lens,  r->io.slot,
				       0,           0,
				       0,           0,
				       0,           0};

	return a;
}

void
slot_map_run(slot_map_rig *r, const spmla_slot_map_args *a)
{
	ck_assert_int_eq(spmla_slot_map(r->f.ctx, a, NULL), SPMLA_OK);
	fixture_drain(&r->f);
}
