/* SPDX-License-Identifier: Apache-2.0
 *
 * See groups_rig.h.
 */
#include "tests/protocol/groups_rig.h"

#include <check.h>
#include <string.h>

enum { BUCKET = 2 };

void
groups_open(groups_rig *r, v4_kind kind)
{
	static const uint32_t small[] = {0, 1, 2, 4, 5}, small_not[] = {3, 6};
	static const uint32_t tables[] = {0, 2, 3, 5, 6}, tables_not[] = {1, 4};
	spmla_config config;

	memset(r, 0, sizeof *r);
	r->own = kind == V4_SMALL ? small : tables;
	r->not_own = kind == V4_SMALL ? small_not : tables_not;
	v4_step_config(&config, kind);
	fixture_open(&r->f, &config, 0);
	v4_model_open(&r->m, &r->f);
}

void
groups_close(groups_rig *r)
{
	v4_model_close(&r->m);
	fixture_close(&r->f);
}

void
groups_pages(const groups_rig *r, int32_t *pages, uint32_t group, uint32_t row,
	     uint32_t count)
{
	const uint32_t pool = r->f.plan.config.groups[group].pool_pages;
	uint32_t i;

	for (i = 0; i < count; i++)
		pages[i] = (int32_t)((7 * group + 5 * row + i) % pool);
}

void
groups_store(groups_rig *r, uint32_t group, uint32_t row, uint32_t first,
	     uint32_t count)
{
	int32_t pages[V4_PAGES];
	v4_draft d;

	groups_pages(r, pages, group, row, count);
	v4_draft_clear(&d);
	v4_draft_store(&d, group, row, first, count, pages);
	v4_step_ring(&r->m, &r->f, &d, BUCKET);
}

void
groups_fill(groups_rig *r)
{
	uint32_t i, row;

	for (i = 0; i < GROUPS_OWN; i++)
		for (row = 0; row < V4_ROWS; row++)
			groups_store(r, r->own[i], row, 0,
				     r->f.plan.group_columns[r->own[i]]);
}

void
groups_look(groups_rig *r)
{
	v4_draft d;

	v4_draft_clear(&d);
	v4_step_ring(&r->m, &r->f, &d, BUCKET);
}
