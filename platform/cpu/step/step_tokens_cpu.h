/* SPDX-License-Identifier: Apache-2.0
 *
 * The second half of the step prologue: what follows from its requests.
 */
#ifndef SPMLA_PLATFORM_CPU_STEP_STEP_TOKENS_CPU_H
#define SPMLA_PLATFORM_CPU_STEP_STEP_TOKENS_CPU_H

#include "spmla/platform/cpu/core/cpu.h"

/* Derives every STEP buffer of the tokens from QUERY_START_LOC, SEQ_LENS and
 * REQ_ROW. */
void spmla_i_cpu_step_tokens(spmla_ctx *ctx, const spmla_step_prologue_args *a);

#endif
