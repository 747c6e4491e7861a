/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the gathers stand on: a context, a pool of random bytes, a
 * block table whose rows are longer than their columns, and the contract's view
 * of both, in 64 bits throughout.
 */
#ifndef TESTS_OPS_CACHE_GATHER_RIG_H
#define TESTS_OPS_CACHE_GATHER_RIG_H

#include "tests/harness/fixture.h"

#include "spmla/ops/kv_gather.h"

enum { GATHER_TABLE_GAP = 3 };

typedef struct gather_rig {
	fixture f;
	spmla_cache cache;
	uint8_t *pool;
	int32_t *table; /* [rows][stride]; between rows: pages that exist */
	uint32_t rows;
	uint32_t columns;
	uint32_t stride;
	uint32_t ring;          /* 1: columns wrap around */
	const int32_t *req_row; /* NULL: b */
	const int32_t *cols;    /* NULL: all columns are written */
	uint64_t rng;
} gather_rig;

/* Every column of the table has a page of its own, in random order; pages are
 * `pad` bytes longer than they need. */
void gather_open(gather_rig *g, uint32_t layout, uint32_t entries,
		 uint32_t rows, uint32_t columns, uint64_t pad);
void gather_close(gather_rig *g);

/* A call of kv_gather over rows of V3.2: keys 0..19 of dst are the first
 * request's, 20..49 the second one's, and starts says so. */
spmla_kv_gather_args gather_two_requests(const gather_rig *g,
					 const int32_t *starts, uint16_t *dst);

/* What a row of the output is. */
typedef struct gather_key {
	uint32_t owned;      /* 0: by no request; it stays as it was */
	const uint8_t *page; /* NULL: it has none */
	uint64_t entry;
} gather_key;

/* keys[n], n < count, for requests with bounds[0..requests] and the positions
 * of their first keys (NULL: 0). Returns how many faults there should be. */
uint32_t gather_model(const gather_rig *g, const int64_t *bounds,
		      uint32_t requests, const int32_t *starts,
		      gather_key *keys, uint32_t count);

/* The sticky status has this count, fault and row (0: is empty); clears it. */
void gather_status(gather_rig *g, uint32_t count, spmla_fault fault,
		   uint32_t row);

#endif
