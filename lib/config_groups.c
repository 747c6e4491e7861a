/* SPDX-License-Identifier: Apache-2.0
 *
 * The table groups of a config: defaults, limits and derived numbers. The hard
 * idea is the ring: a ring table must hold all that a step reads and writes,
 * and all that it may read again after tokens were taken back.
 */
#include "spmla/internal/backend.h"
#include "spmla/internal/checked_math.h"
#include "spmla/internal/config.h"

#include <string.h>

enum { MAX_PAGE_TOKENS = 4096 };

/* The kind of a group. */
typedef struct group_kind {
	uint32_t ratio;       /* positions per entry */
	uint32_t page_tokens; /* default; 0: see state_page */
	uint32_t state_rows;  /* rows of a compressor's group; 0: not a state */
} group_kind;

static const group_kind v4_kinds[SPMLA_V4_GROUPS] = {
	{1, 64, 0},                         /* SWA */
	{SPMLA_COMPRESS_OVERLAP, 256, 0},   /* C4A */
	{SPMLA_COMPRESS_MOST, 256, 0},      /* C128A */
	{SPMLA_COMPRESS_OVERLAP, 256, 0},   /* INDEX */
	{1, 4, 2 * SPMLA_COMPRESS_OVERLAP}, /* STATE_C4A */
	{1, 0, SPMLA_COMPRESS_MOST},        /* STATE_C128A */
	{1, 4, 2 * SPMLA_COMPRESS_OVERLAP}, /* STATE_INDEX */
};

static const group_kind v32_kind = {1, 64, 0};

static const group_kind *
kind_of(const spmla_config *c, uint32_t group)
{
	return spmla_i_is_v4(c) ? &v4_kinds[group] : &v32_kind;
}

uint32_t
spmla_i_group_count(const spmla_config *c)
{
	return spmla_i_is_v4(c) ? SPMLA_V4_GROUPS : 1;
}

uint32_t
spmla_i_group_table(const spmla_config *c, uint32_t group)
{
	const uint32_t source = c->groups[group].source;

	return source >= SPMLA_TABLE_OF_MAIN ? source - SPMLA_TABLE_OF_MAIN
					     : group;
}

uint32_t
spmla_i_group_ratio(const spmla_config *c, uint32_t group)
{
	return kind_of(c, group)->ratio;
}

/* Most query tokens of a request in a decode step, its draft included. */
static uint32_t
most_next_n(const spmla_config *c)
{
	uint32_t most = 1, i;

	for (i = 0; i < c->bucket_count; i++)
		if (c->buckets[i].next_n > most)
			most = c->buckets[i].next_n;
	return most + c->draft_tokens;
}

/* The least columns of a ring table. */
static uint32_t
least_columns(const spmla_config *c, uint32_t group)
{
	const uint32_t page = c->groups[group].page_tokens;
	const uint32_t state_rows = kind_of(c, group)->state_rows;
	const uint32_t next_n = most_next_n(c);
	const uint32_t most =
		c->max_prefill_tokens > next_n ? c->max_prefill_tokens : next_n;
	uint32_t before, least;

	if (state_rows)
		return (uint32_t)spmla_i_cdiv((uint64_t)state_rows + next_n - 1,
					      page);
	before = c->window_tokens - 1;
	least = (uint32_t)spmla_i_cdiv((uint64_t)before + most, page);
	/* A window that starts inside a page reaches into one more. */
	if (least <= spmla_i_cdiv(before, page))
		least = (uint32_t)spmla_i_cdiv(before, page) + 1;
	return least;
}

/* The operations treat every state as a ring, which holds at least one group. A
 * table that a state shares must also hold one. */
uint32_t
spmla_i_group_columns(const spmla_config *c, uint32_t group)
{
	const uint32_t table = spmla_i_group_table(c, group);
	const spmla_table_config *g = &c->groups[table];
	uint64_t most = spmla_i_cdiv(c->max_context_tokens, g->page_tokens);
	uint32_t i;

	if (g->ring_columns)
		return g->ring_columns;
	for (i = 0; i < spmla_i_group_count(c); i++) {
		const uint64_t rows =
			spmla_i_cdiv(kind_of(c, i)->state_rows, g->page_tokens);

		if (spmla_i_group_table(c, i) == table && rows > most)
			most = rows;
	}
	return (uint32_t)most;
}

uint32_t
spmla_i_group_is_whole(const spmla_config *c, uint32_t group)
{
	uint32_t i;

	for (i = 0; i < spmla_i_group_count(c); i++)
		if (spmla_i_group_table(c, i) == group &&
		    !kind_of(c, i)->state_rows &&
		    (!spmla_i_is_v4(c) || i != SPMLA_GROUP_SWA))
			return 1;
	return 0;
}

/* The smallest multiple of the longest group that holds one group and the
 * tokens that may be taken back. */
static uint32_t
state_page(const spmla_config *c)
{
	const uint32_t most = SPMLA_COMPRESS_MOST;
	const uint64_t page =
		most * spmla_i_cdiv((uint64_t)most + most_next_n(c) - 1, most);

	return page < MAX_PAGE_TOKENS ? (uint32_t)page : MAX_PAGE_TOKENS;
}

/* What a group's source may be, one bit each. */
static uint64_t
sources_of(uint32_t group)
{
	const uint64_t of = ((UINT64_C(1) << group) - 1) << SPMLA_TABLE_OF_MAIN;

	return of | 1u | 1u << SPMLA_TABLE_RING | 1u << SPMLA_TABLE_DEVICE;
}

static spmla_status
check_group(const spmla_config *c, uint32_t group, spmla_diag *diag)
{
	const spmla_table_config *g = &c->groups[group];
	const group_kind *kind = kind_of(c, group);
	const uint32_t may_ring =
		spmla_i_is_v4(c) &&
		(group == SPMLA_GROUP_SWA || kind->state_rows);
	const spmla_i_check checks[] = {
		{"config.groups.source", g->source, SPMLA_WANT_ONE_OF,
		 sources_of(group)},
		{"config.groups.page_tokens", g->page_tokens,
		 SPMLA_WANT_AT_LEAST, 1},
		{"config.groups.page_tokens", g->page_tokens,
		 SPMLA_WANT_AT_MOST, MAX_PAGE_TOKENS},
		{"config.groups.page_tokens", g->page_tokens,
		 SPMLA_WANT_MULTIPLE_OF,
		 c->index_layout == SPMLA_LAYOUT_INDEX_FP8_TILED
			 ? SPMLA_INDEX_TILE
			 : kind->ratio},
		{"config.groups.pool_pages", g->pool_pages, SPMLA_WANT_AT_LEAST,
		 1},
		{"config.groups.pool_pages", g->pool_pages, SPMLA_WANT_AT_MOST,
		 g->page_tokens ? INT32_MAX / g->page_tokens : 1},
		{"config.groups.ring_columns", g->ring_columns,
		 may_ring ? SPMLA_WANT_NOTHING : SPMLA_WANT_EQUAL, 0},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

/* Checks a ring: enough columns, and positions that fit int32. */
static spmla_status
check_ring(const spmla_config *c, uint32_t group, spmla_diag *diag)
{
	const spmla_table_config *g = &c->groups[group];
	const spmla_i_check checks[] = {
		{"config.groups.ring_columns", g->ring_columns,
		 SPMLA_WANT_AT_LEAST, least_columns(c, group)},
		{"config.groups.ring_columns", g->ring_columns,
		 SPMLA_WANT_AT_MOST, INT32_MAX / g->page_tokens},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

/* Resolves a group with a table of its own. */
static spmla_status
resolve_own(spmla_config *c, uint32_t group, spmla_diag *diag)
{
	spmla_table_config *g = &c->groups[group];
	spmla_status s;

	if (g->page_tokens == 0)
		g->page_tokens = kind_of(c, group)->page_tokens
					 ? kind_of(c, group)->page_tokens
					 : state_page(c);
	s = check_group(c, group, diag);
	if (s != SPMLA_OK)
		return s;
	if (g->source == 0)
		g->source = SPMLA_TABLE_RING;
	if (g->ring_columns == 0)
		return SPMLA_OK;
	if (g->ring_columns == SPMLA_RING_LEAST)
		g->ring_columns = least_columns(c, group);
	return check_ring(c, group, diag);
}

/* Resolves a group that uses the table of an earlier one. */
static spmla_status
resolve_shared(spmla_config *c, uint32_t group, spmla_diag *diag)
{
	spmla_table_config *g = &c->groups[group];
	const uint32_t source = g->source;
	const uint32_t of = source - SPMLA_TABLE_OF_MAIN;
	const uint32_t own =
		of < group && c->groups[of].source <= SPMLA_TABLE_DEVICE;
	spmla_status s;

	/* That group has no table itself: name the one that it uses. */
	if (of < group && !own)
		return spmla_i_fail(diag, SPMLA_E_RANGE, "config.groups.source",
				    source, SPMLA_WANT_EQUAL,
				    c->groups[of].source);
	if (!own)
		return spmla_i_fail(diag, SPMLA_E_RANGE, "config.groups.source",
				    source, SPMLA_WANT_ONE_OF,
				    sources_of(group));
	*g = c->groups[of];
	s = check_group(c, group, diag);
	g->source = source;
	if (s == SPMLA_OK && g->ring_columns)
		s = check_ring(c, group, diag);
	return s;
}

spmla_status
spmla_i_groups_resolve(spmla_config *c, spmla_diag *diag)
{
	const uint32_t count = spmla_i_group_count(c);
	spmla_status s;
	uint32_t i;

	for (i = 0; i < count; i++) {
		s = c->groups[i].source >= SPMLA_TABLE_OF_MAIN
			    ? resolve_shared(c, i, diag)
			    : resolve_own(c, i, diag);
		if (s != SPMLA_OK) {
			if (diag)
				diag->index = i;
			return s;
		}
	}
	/* The plan must not depend on unused groups. */
	memset(&c->groups[count], 0,
	       (SPMLA_MAX_TABLE_GROUPS - count) * sizeof c->groups[0]);
	return SPMLA_OK;
}
