/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts and workspaces for sparse_decode of few tokens. On a Hopper device
 * calls that have a workspace are one launch, whose blocks share a token's keys;
 * elsewhere they run as others do. The more SMs it has, the fewer heads a block:
 * the emulator is planned for few SMs, so that small calls take every way.
 */
#ifndef TESTS_OPS_ATTEND_FEW_RIG_H
#define TESTS_OPS_ATTEND_FEW_RIG_H

#include "tests/harness/fixture.h"
#include "tests/ops/attend/decode_world.h"

#include "spmla/ops/sparse_decode.h"

/* SMs: room for 8 times 16 blocks, for 4 and for 2. */
enum { FEW_H100 = 132, FEW_HALF = 66, FEW_QUARTER = 33 };

/* A context for calls of up to 128 heads, on the emulator with so many SMs. */
void few_open(fixture *f, uint32_t sms);
void few_close(fixture *f);

/* Lends a call a workspace of exactly the bytes that it takes on such a device;
 * one at a time. */
void few_lend(spmla_sparse_decode_args *a);

/* Fails the test if a device of the SMs that were asked for takes the call another
 * way (few.h). */
void few_expect(const fixture *f, const spmla_sparse_decode_args *a,
		uint32_t way);

/* Takes it back. Fails the test if it is not as clean as it was. */
void few_take_back(void);

/* A call over rows of V3.2 that has a workspace. */
void few_open_v32(decode_world *w, uint32_t tokens, uint32_t heads,
		  uint32_t topk);

/* The same, or, if `many`, with 64 heads a block instead of 16 or 32. */
void few_open_kind(const fixture *f, decode_world *w, int many, uint32_t tokens,
		   uint32_t heads, uint32_t topk);

/* Random slots; and scales that are powers of two from 2^low to 2^high, since
 * then no platform rounds a value. */
void few_choose_v32(decode_world *w, int low, int high);

/* Fails the test if anything else was reported. */
void few_close_v32(fixture *f, decode_world *w);

#endif
