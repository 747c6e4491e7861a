/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of kv_gather with rows of V4 stand on: a call over the pool
 * and the table of gather_rig.h, and its check, every byte of the output, gaps
 * included, against a model in double.
 */
#ifndef TESTS_OPS_CACHE_KV_GATHER_RIG_H
#define TESTS_OPS_CACHE_KV_GATHER_RIG_H

#include "spmla/ops/kv_gather.h"
#include "tests/ops/cache/gather_rig.h"

enum { KV_GATHER_KEYS = 600, KV_GATHER_DIM = 512, KV_GATHER_GAP = 8 };

typedef struct kv_gather_rig {
	gather_rig g;
	spmla_kv_gather_args a;
	uint16_t *dst; /* [KV_GATHER_KEYS] rows, the gap behind each */
} kv_gather_rig;

/* gather_open, and a call without requests and slots. */
void kv_gather_open(kv_gather_rig *r, uint32_t layout, uint32_t entries,
		    uint32_t rows, uint32_t columns, uint64_t pad);
void kv_gather_close(kv_gather_rig *r);

/* Runs over poison: the rows that model[] says, and so many faults. */
void kv_gather_check(kv_gather_rig *r, const gather_key *model,
		     uint32_t faults);

/* Gathers requests that begin at starts[], or slots[]; `keys` keys in all. */
void kv_gather_requests(kv_gather_rig *r, const int32_t *starts,
			uint32_t requests, uint32_t keys);
void kv_gather_slots(kv_gather_rig *r, const int32_t *slots, uint32_t keys);

#endif
