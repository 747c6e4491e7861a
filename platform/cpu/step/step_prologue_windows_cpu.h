/* SPDX-License-Identifier: Apache-2.0
 *
 * The last part of V4's prologue.
 */
#ifndef SPMLA_PLATFORM_CPU_STEP_STEP_PROLOGUE_WINDOWS_CPU_H
#define SPMLA_PLATFORM_CPU_STEP_STEP_PROLOGUE_WINDOWS_CPU_H

#include "spmla/platform/cpu/core/cpu.h"

/* Makes, from positions, contexts and logits rows of the step's tokens, the
 * metadata of the three kinds of layers: compressed slots, windows, C128A rows.
 */
void spmla_i_cpu_step_prologue_windows(spmla_ctx *ctx, uint32_t tokens);

#endif
