/* SPDX-License-Identifier: Apache-2.0
 *
 * A V4 context for tests of the tables of its groups: which of them have one,
 * and rows that are filled so that a page tells group and row.
 */
#ifndef TESTS_PROTOCOL_GROUPS_RIG_H
#define TESTS_PROTOCOL_GROUPS_RIG_H

#include "tests/protocol/v4_step_rig.h"

enum { GROUPS_OWN = 5, GROUPS_NOT_OWN = 2 };

typedef struct groups_rig {
	fixture f;
	v4_model m;
	const uint32_t *own;     /* with a table that records change */
	const uint32_t *not_own; /* another's table, or the engine's */
} groups_rig;

/* V4_SMALL or V4_TABLES. */
void groups_open(groups_rig *r, v4_kind kind);
void groups_close(groups_rig *r);

void groups_pages(const groups_rig *r, int32_t *pages, uint32_t group,
		  uint32_t row, uint32_t count);

/* Stores such pages to columns [first, first + count), in a step of its own,
 * after which all tables are compared with the model's. */
void groups_store(groups_rig *r, uint32_t group, uint32_t row, uint32_t first,
		  uint32_t count);
/* The same, to every row of every table, whole. */
void groups_fill(groups_rig *r);
/* A step that does nothing, and the comparison. */
void groups_look(groups_rig *r);

#endif
