/* SPDX-License-Identifier: Apache-2.0
 *
 * The least that a GPU backend can be asked to do, for suites of its host code:
 * one operation, a top-k of a row, and a run that has it eagerly and in a
 * graph.
 */
#ifndef TESTS_CORE_ONE_OP_RIG_H
#define TESTS_CORE_ONE_OP_RIG_H

#include "spmla/ops/topk.h"

/* The operation's arguments; the row has 200 scores. */
spmla_topk_args one_op_args(void);

/* Enqueues the operation; its result is worthless until it has run. */
spmla_status one_op_enqueue(spmla_ctx *ctx, spmla_stream stream);

/* Whether the result is what it has to be; makes it worthless. */
uint32_t one_op_came_out(void);

/* An op on a stream, a graph of it, a replay on another stream, the status.
 * Returns the first status that is not OK. */
spmla_status one_op_work(spmla_ctx *ctx, spmla_stream stream,
			 spmla_stream replay);

#endif
