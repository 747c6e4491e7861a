/* SPDX-License-Identifier: Apache-2.0
 *
 * What a prologue adds to a step whose lists are ragged.
 */
#ifndef SPMLA_INTERNAL_STEP_LISTS_H
#define SPMLA_INTERNAL_STEP_LISTS_H

#include "spmla/internal/backend.h"

/* Enqueues the step's ragged lists and INDEXER_SCHEDULE, behind the prologue of
 * a step of `tokens` tokens. Does nothing without SPMLA_CONFIG_RAGGED. */
spmla_status spmla_i_step_lists(spmla_ctx *ctx, uint32_t tokens,
				spmla_stream stream);

/* Packs the rows of tokens [first, first + tokens) of SWA_INDICES, a piece
 * whose lengths are in C4A_SWA_LENS. */
spmla_status spmla_i_pack_c4a_window(spmla_ctx *ctx, uint32_t first,
				     uint32_t tokens, spmla_stream stream);

/* The same of C128A_INDICES, which has the rows of the piece alone. */
spmla_status spmla_i_pack_c128a(spmla_ctx *ctx, uint32_t first, uint32_t tokens,
				spmla_stream stream);

#endif
