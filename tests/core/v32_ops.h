/* SPDX-License-Identifier: Apache-2.0
 *
 * A V3.2 layer as an engine would put it together out of single operations,
 * from the buffers that spmla_view names. What spmla_v32_* give has to be the
 * same to the bit.
 */
#ifndef TESTS_CORE_V32_OPS_H
#define TESTS_CORE_V32_OPS_H

#include "tests/harness/v32_rig.h"

/* The layer's indexer and insert, its selection, its attention; with a layer
 * without index_k or index_q that part is left out. */
void v32_by_ops(const v32_rig *r, spmla_ctx *ctx, const spmla_shape *shape);

#endif
