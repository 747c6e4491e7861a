/* SPDX-License-Identifier: Apache-2.0
 *
 * See registry.h.
 */
#include "tests/harness/registry.h"

const op_entry *const op_entries[SPMLA_OP_COUNT] = {
#define SPMLA_OP(stem) &op_##stem,
#include "spmla/ops/ops.inc"
#undef SPMLA_OP
};
