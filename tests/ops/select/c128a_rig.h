/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of c128a_index stand on: a context, a small call with all that
 * it points to, and its check against the rule written out once more in 64
 * bits. */
#ifndef TESTS_OPS_SELECT_C128A_RIG_H
#define TESTS_OPS_SELECT_C128A_RIG_H

#include "spmla/ops/c128a_index.h"
#include "tests/ops/select/index_rig.h"

enum {
	C128A_TOKENS = 24,
	C128A_ROWS = 8,
	C128A_COLUMNS = 37,
	C128A_ROOM = 16384
};

/* What the op writes, all of it. */
typedef struct c128a_out {
	int32_t slots[C128A_ROOM];
	int32_t local[C128A_ROOM];
	int32_t lens[C128A_TOKENS + 1];
	int32_t local_lens[C128A_TOKENS + 1];
} c128a_out;

typedef struct c128a_rig {
	fixture f;
	spmla_c128a_index_args a;
	c128a_out io;
	c128a_out want;
	int32_t pos[C128A_TOKENS];
	int32_t row[C128A_TOKENS];
	int64_t slot[C128A_TOKENS];
	int32_t table[C128A_ROWS * (C128A_COLUMNS + 3)];
	int32_t cols[C128A_ROWS];
} c128a_rig;

/* A token of decode and one of prefill at 0, a ratio of 128, rows of 5 that are
 * 7 and 6 apart; rows 0 and 1 have pages 5, 3 and 2, 7 of two entries. */
void c128a_open(c128a_rig *r);
void c128a_close(c128a_rig *r);

/* The same call again. */
void c128a_good(c128a_rig *r);

/* Runs it, once. */
void c128a_run(c128a_rig *r);

/* Runs it over poison: every byte and the reports as the rule has them. */
void c128a_check(c128a_rig *r);

/* Both tokens at one position: their rows of 5 and their length; then
 * c128a_check. */
void c128a_expect(c128a_rig *r, int32_t position, const int32_t *slots,
		  const int32_t *local, int32_t n);

#endif
