/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode over a kind of row that the library does not have: V3.2's
 * without the rope part, by the kernels of attend/sparse_decode_no_rope.c.
 */
#ifndef TESTS_EMULATOR_NO_ROPE_H
#define TESTS_EMULATOR_NO_ROPE_H

#include "spmla/ops/sparse_decode.h"
#include "spmla/spmla.h"

enum { NO_ROPE_ROW_BYTES = 528 };

/* Whether the context's machine has the kernels: those for Hopper, emulated. */
uint32_t no_rope_runs(const spmla_ctx *ctx);

/* Runs a call whose rows are called V3.2's but have no rope part. Queries have
 * 512 values. The library's launch code chooses the kernel and fills its
 * parameters; the kernel for these rows runs in its place. `instead_of` becomes
 * the stem of the library's kernel. */
spmla_status no_rope_decode(spmla_ctx *ctx, const spmla_sparse_decode_args *a,
			    const char **instead_of);

#endif
