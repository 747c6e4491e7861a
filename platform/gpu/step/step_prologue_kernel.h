/* SPDX-License-Identifier: Apache-2.0
 *
 * The step prologue: one block. The record lies in pinned memory, where a read
 * takes a microsecond however wide it is. So independent loads fetch requests
 * and some stores before anything is looked at, and the rest of a long record
 * comes in a second trip. Nothing that is read is trusted: a record that is
 * missing, too large or wrong becomes an empty step or empty rows.
 *
 * The ticket comes with the rest, by loads without an order. An acquire first
 * would cost a second trip over the bus. It is not needed: a record is written
 * before the launch call, which orders all of it before the kernel. A slot has
 * its ticket and its payload, or an older ticket and is MISSING. A record that
 * is written while its kernel runs may be seen in part: a step of old and new
 * bytes, inside all bounds, and wrong.
 *
 * The hard idea is to wait little, as every step starts with this kernel. With
 * no more requests than threads, everything read stays in registers
 * (step_prologue_narrow_device.h). Longer lists, and prefills, have a kernel
 * of their own (step_prologue_wide_device.h): each instruction is fetched
 * once, as it runs, so code that does not run must not lie between.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_STEP_PROLOGUE_KERNEL_H

#include "spmla/platform/gpu/step/step_prologue_narrow_device.h"
#include "spmla/platform/gpu/step/step_prologue_wide_device.h"

/* The same parameters. */
#define SPMLA_K_step_prologue_v4(P, S)   SPMLA_K_STEP_PROLOGUE(P, S)
#define SPMLA_K_step_prologue_wide(P, S) SPMLA_K_STEP_PROLOGUE(P, S)
typedef spmla_k_step_prologue_scalars spmla_k_step_prologue_v4_scalars;
typedef spmla_k_step_prologue_scalars spmla_k_step_prologue_wide_scalars;

#ifdef SPMLA_GPU_KERNELS

/* For plans with one table: V4's further groups cost no instruction. */
SPMLA_KERNEL_BLOCKS(step_prologue, 1)
void
spmla_k_step_prologue(SPMLA_KERNEL_ARGS(step_prologue))
{
	LOCAL_ARRAY(prologue_shared, shared, 1);
	prologue_job job = {SPMLA_KERNEL_VALUES(step_prologue), shared, 0};

	job.s.groups = 1;
	job.s.ring_table.by = job.s.ring_table.factor = 0;
	job.s.index_shift = 0;
	prologue_narrow(&job);
}

SPMLA_KERNEL_BLOCKS(step_prologue_v4, 1)
void
spmla_k_step_prologue_v4(SPMLA_KERNEL_ARGS(step_prologue_v4))
{
	LOCAL_ARRAY(prologue_shared, shared, 1);
	const prologue_job job = {SPMLA_KERNEL_VALUES(step_prologue), shared,
				  0};

	prologue_narrow(&job);
}

SPMLA_KERNEL_BLOCKS(step_prologue_wide, 1)
void
spmla_k_step_prologue_wide(SPMLA_KERNEL_ARGS(step_prologue_wide))
{
	LOCAL_ARRAY(prologue_shared, shared, 1);
	const prologue_job job = {SPMLA_KERNEL_VALUES(step_prologue), shared,
				  0};

	prologue_wide(&job);
}

#endif
#endif
