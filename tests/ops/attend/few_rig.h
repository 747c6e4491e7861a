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

#include "spmla/ops/sparse_decode.h"

/* SMs: room for 8 times 16 blocks, for 4 and for 2. */
enum { FEW_H100 = 132, FEW_HALF = 66, FEW_QUARTER = 33 };

/* A context for calls of up to 128 heads, on the emulator with so many SMs. */
void few_open(fixture *f, uint32_t sms);
void few_close(fixture *f);

/* Lends a call a workspace of exactly the bytes that it takes on such a device;
 * one at a time. */
void few_lend(spmla_sparse_decode_args *a);

/* Takes it back. Fails the test if it is not as clean as it was. */
void few_take_back(void);

#endif
