/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of kv_insert stand on: a context, random rows with NaN between
 * and behind them, a pool, and the pool that there should be, written from
 * doubles. A test changes args and data, then calls kv_rig_check.
 */
#ifndef TESTS_OPS_CACHE_KV_INSERT_RIG_H
#define TESTS_OPS_CACHE_KV_INSERT_RIG_H

#include "spmla/ops/kv_insert.h"
#include "tests/harness/fixture.h"

typedef struct kv_rig {
	fixture f;
	spmla_kv_insert_args a;
	uint8_t *pool; /* pages * stride, and a red zone behind */
	uint8_t *want;
	uint64_t pool_bytes; /* red zone included */
	uint16_t *kv;        /* [tokens] 520 apart; room for 576 */
	uint16_t *pe;        /* [tokens] 72 apart */
	int64_t *slots;      /* distinct, one in 8 of them -1 */
} kv_rig;

/* POW2, BF16; pages are `pad` bytes (multiple of 16) longer than they need. */
void kv_rig_open(kv_rig *r, uint32_t layout, uint32_t tokens, uint32_t entries,
		 uint32_t pages, uint64_t pad);

/* The same of V4, without what is not of V4; V4_E4M3 still needs a scale. */
void kv_rig_open_v4(kv_rig *r, uint32_t layout, uint32_t tokens,
		    uint32_t entries, uint32_t pages, uint64_t pad);
void kv_rig_close(kv_rig *r);

/* Fills the pool with 0xAB and runs the op, which must give OK. */
void kv_rig_run(kv_rig *r);

/* Runs; the pool equals the model in every byte. */
void kv_rig_check(kv_rig *r);

#endif
