/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes to the block tables. Arguments are inside the table, and the group has
 * a table of SpMLA's own.
 */
#ifndef SPMLA_PLATFORM_CPU_STEP_TABLE_CPU_H
#define SPMLA_PLATFORM_CPU_STEP_TABLE_CPU_H

#include "spmla/platform/cpu/core/cpu.h"

/* Forgets a row's columns in every table of SpMLA's own. */
void spmla_i_cpu_table_join(spmla_ctx *ctx, uint32_t row);

/* Sets columns [first_col, first_col + count) of row to pages. */
void spmla_i_cpu_table_store(spmla_ctx *ctx, uint32_t group, uint32_t row,
			     uint32_t first_col, uint32_t count,
			     const int32_t *pages);

#endif
