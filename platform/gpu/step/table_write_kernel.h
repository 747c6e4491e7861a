/* SPDX-License-Identifier: Apache-2.0
 *
 * table_write: one block copies the staged pages of one row. They lie in
 * pinned memory, so an item loads several before it uses one.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_TABLE_WRITE_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_TABLE_WRITE_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"

#define SPMLA_K_table_write(P, S)  \
	P(const uint32_t, staging) \
	P(int32_t, table)          \
	P(int32_t, cols)           \
	S(uint64_t, line)          \
	S(uint32_t, row)           \
	S(uint32_t, rows)          \
	S(uint32_t, columns)       \
	S(uint32_t, whole)         \
	S(uint32_t, first_col)     \
	S(uint32_t, count)
SPMLA_KERNEL_SCALARS(table_write)

enum { TABLE_WRITE_LOADS = 8 };

#ifdef SPMLA_GPU_KERNELS

SPMLA_KERNEL(table_write)
void
spmla_k_table_write(SPMLA_KERNEL_ARGS(table_write))
{
	const uint32_t items = SPMLA_ITEMS_table_write;
	const uint32_t end = s.first_col + s.count;
	uint32_t known = (uint32_t)cols[s.row];
	uint32_t last = (uint32_t)cols[s.rows + s.row], c;

	/* The engine may see this memory: it is not trusted. */
	last = last <= s.columns ? last : 0;
	known = known <= last ? known : 0;
	BARRIER();
	/* Columns that are jumped over were never written. */
	for (c = last + g_item(); c < s.first_col; c += items)
		table[s.line + c] = -1;
	for (c = s.first_col + g_item(); c < end;
	     c += TABLE_WRITE_LOADS * items) {
		uint32_t page[TABLE_WRITE_LOADS], i;

		UNROLL
		for (i = 0; i < TABLE_WRITE_LOADS; i++)
			page[i] = c + i * items < end
					  ? g_load_system(staging + s.line + c +
							  i * items)
					  : 0;
		UNROLL
		for (i = 0; i < TABLE_WRITE_LOADS; i++)
			if (c + i * items < end)
				table[s.line + c + i * items] =
					(int32_t)page[i];
	}
	if (g_item() == 0) {
		cols[s.row] =
			(int32_t)(s.whole && known < s.first_col ? known : end);
		cols[s.rows + s.row] = (int32_t)end;
	}
}

#endif
#endif
