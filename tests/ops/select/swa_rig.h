/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of swa_index stand on: a context, a small call with all that
 * it points to, and its check against the rule written out once more in 64
 * bits. */
#ifndef TESTS_OPS_SELECT_SWA_RIG_H
#define TESTS_OPS_SELECT_SWA_RIG_H

#include "spmla/ops/swa_index.h"
#include "tests/ops/select/index_rig.h"

enum {
	SWA_TOKENS = 40,
	SWA_ROWS = 12,
	SWA_COLUMNS = 9,
	SWA_REQUESTS = 10,
	SWA_ROOM = 8192
};

/* What the op writes, all of it. */
typedef struct swa_out {
	int32_t indices[SWA_ROOM];
	int32_t lens[SWA_TOKENS + 1];
	int32_t gather[SWA_REQUESTS + 1];
} swa_out;

typedef struct swa_rig {
	fixture f;
	spmla_swa_index_args a;
	swa_out io;
	swa_out want;
	int32_t pos[SWA_TOKENS];
	int32_t row[SWA_TOKENS];
	int64_t slot[SWA_TOKENS];
	int32_t spans[2 * SWA_TOKENS];
	int32_t table[SWA_ROWS * (SWA_COLUMNS + 2)];
	int32_t cols[SWA_ROWS];
	int32_t replay[SWA_ROWS];
	int32_t query[SWA_REQUESTS + 1];
	int32_t seq[SWA_REQUESTS];
	int32_t req_row[SWA_REQUESTS];
} swa_rig;

/* One token at 0 of row 0, a window of 3 in rows of 5 that are 7 apart, rows 0
 * and 1 of pages 5, 3 and 2, 7 of four keys. No requests, no images. */
void swa_open(swa_rig *r);
void swa_close(swa_rig *r);

/* Runs it, once. */
void swa_run(swa_rig *r);

/* Runs it over poison: every byte and the reports as the rule has them. */
void swa_check(swa_rig *r);

/* Token 0's first n entries, of n, and its length; then swa_check. */
void swa_expect(swa_rig *r, const int32_t *indices, uint32_t n, int32_t len);

#endif
