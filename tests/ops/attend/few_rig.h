/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts and workspaces for sparse_decode of few tokens. On a Hopper device
 * of 132 SMs, as the emulator is planned for here, calls that have a workspace
 * are one launch, whose blocks share a token's keys; elsewhere they run as
 * others do.
 */
#ifndef TESTS_OPS_ATTEND_FEW_RIG_H
#define TESTS_OPS_ATTEND_FEW_RIG_H

#include "tests/harness/fixture.h"

#include "spmla/ops/sparse_decode.h"

/* A context for calls of up to 128 heads. */
void few_open(fixture *f);
void few_close(fixture *f);

/* Lends a call a workspace of exactly the bytes that it takes on such a device;
 * one at a time. */
void few_lend(spmla_sparse_decode_args *a);

/* Takes it back. Fails the test if it is not as clean as it was. */
void few_take_back(void);

#endif
