/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports of bad data. The sticky status lies in pinned memory, where no
 * device atomics can be relied on. So 32-bit atomics in device memory find the
 * smallest (row, fault) of the first bad step and the count. Whoever changed
 * one copies it out until its copy is still the newest: the last copy is the
 * right one, in whatever order blocks run.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_FAULT_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_FAULT_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"

/* Twins of spmla_i_step_state and spmla_i_device_status; the host asserts it.
 */
enum { G_FAULT_ROWS = 11 }; /* more than any spmla_fault */

typedef struct spmla_g_state {
	uint64_t done;
	uint64_t step;
	uint64_t serial;
	uint32_t requests;
	uint32_t fault_step; /* 1 + the low bits of the bad step's serial */
	uint32_t fault_count;
	/* By fault the smallest row, as ~row, so that 0 is none and larger
	 * wins; row 2^32 - 1 is taken for 2^32 - 2. */
	uint32_t fault_rows[G_FAULT_ROWS];
} spmla_g_state;

typedef struct spmla_g_status {
	uint64_t key;
	uint64_t step;
	uint64_t serial;
	uint32_t count;
	uint32_t reserved;
} spmla_g_status;

/* As spmla_fault. */
enum {
	G_FAULT_TICKET_MISSING = 1,
	G_FAULT_TOO_LARGE = 2,
	G_FAULT_ROW = 3,
	G_FAULT_LENGTH = 4,
	G_FAULT_PAGE = 5,
	G_FAULT_SLOT = 6,
	G_FAULT_LOGITS = 7,
	G_FAULT_INDEX = 8,
	G_FAULT_POSITION = 9,
	G_FAULT_TIMEOUT = 10
};

#define G_NO_ROW 0xffffffffu

/* The two parameters that every kernel which may report has. */
#define SPMLA_K_FAULT(P)              \
	P(spmla_g_state, fault_state) \
	P(spmla_g_status, fault_status)

#ifdef SPMLA_GPU_KERNELS

/* The faults that a kernel looks for are below this: only the debug build has
 * G_FAULT_TIMEOUT (debug.h). */
enum { G_FAULTS = G_FAULT_POSITION + 1 + G_HAS_DEBUG };

/* Where a kernel reports to: which step, and the two buffers. */
typedef struct g_reporter {
	GLOBAL spmla_g_state *state;
	GLOBAL spmla_g_status *status;
	uint64_t serial;
	uint64_t step;
} g_reporter;

FN uint32_t
g_newest(GLOBAL uint32_t *p)
{
	return g_add(p, 0);
}

/* The smallest (row, fault) of all; as the status has it. */
FN uint64_t
g_smallest_fault(GLOBAL spmla_g_state *state)
{
	uint32_t best = 0, fault = 0, i;

	for (i = 1; i < G_FAULTS; i++) {
		const uint32_t seen = g_newest(&state->fault_rows[i]);

		fault = seen > best ? i : fault;
		best = seen > best ? seen : best;
	}
	return (uint64_t)(best == 1 ? G_NO_ROW : ~best) << 32 | fault;
}

FN void
g_report(const PRIVATE g_reporter *to, uint32_t row, uint32_t fault)
{
	const uint32_t low = (uint32_t)to->serial + 1u;
	const uint32_t tag = low ? low : 1u;
	const uint32_t first = g_cas(&to->state->fault_step, 0, tag);
	uint64_t key;
	uint32_t seen;

	if (first == 0 || first == tag) {
		g_max(&to->state->fault_rows[fault],
		      row == G_NO_ROW ? 1u : ~row);
		do {
			key = g_smallest_fault(to->state);
			g_store64_system(&to->status->step, to->step);
			g_store64_system(&to->status->serial, to->serial);
			g_store64_system(&to->status->key, key);
			g_fence_system();
		} while (g_smallest_fault(to->state) != key);
	}
	/* Stays at its most instead of starting again. */
	for (;;) {
		seen = g_newest(&to->state->fault_count);
		if (seen == 0xffffffffu ||
		    g_cas(&to->state->fault_count, seen, seen + 1) == seen)
			break;
	}
	do {
		seen = g_newest(&to->state->fault_count);
		g_store_system(&to->status->count, seen);
		g_fence_system();
	} while (g_newest(&to->state->fault_count) != seen);
}

/* For the current step, in a kernel behind its prologue. */
FN g_reporter
g_reporter_of(GLOBAL spmla_g_state *state, GLOBAL spmla_g_status *status)
{
	g_reporter to;

	to.state = state;
	to.status = status;
	to.serial = state->serial;
	to.step = state->step;
	return to;
}

/* Reports for the current step. */
FN void
g_fault(GLOBAL spmla_g_state *state, GLOBAL spmla_g_status *status,
	uint32_t row, uint32_t fault)
{
	const g_reporter to = g_reporter_of(state, status);

	g_report(&to, row, fault);
}

#if defined(__CUDACC__) && defined(SPMLA_KERNEL_DEBUG)

/* Reports for a block, without a branch; see debug.h. Replaces what was reported
 * before, but for the status's serial. */
FN void
g_report_timeout(volatile g_debug_block *b, uint32_t is)
{
	asm volatile("{.reg .pred p; .reg .b32 n; .reg .b64 at, step; "
		     "setp.ne.u32 p, %1, 0; "
		     "@p ld.volatile.global.u64 at, [%0 + %2]; "
		     "@p ld.volatile.global.u64 step, [at + %3]; "
		     "@p ld.volatile.global.u32 n, [%0 + %4]; "
		     "@p st.volatile.global.u32 [at + %5], n; "
		     "mov.u32 n, %%ctaid.x; not.b32 n, n; "
		     "@p red.global.max.u32 [at + %6], n; "
		     "@p red.global.add.u32 [at + %7], 1; "
		     "@p ld.volatile.global.u64 at, [%0 + %8]; "
		     "@p st.volatile.global.u64 [at + %9], step; "
		     "mov.u32 n, %%ctaid.x; "
		     "@p st.volatile.global.v2.u32 [at + %10], {%12, n}; "
		     "@p st.volatile.global.u32 [at + %11], 1;}"
		     :
		     : "l"(b), "r"(is),
		       "n"(__builtin_offsetof(g_debug_block, state)),
		       "n"(__builtin_offsetof(spmla_g_state, step)),
		       "n"(__builtin_offsetof(g_debug_block, tag)),
		       "n"(__builtin_offsetof(spmla_g_state, fault_step)),
		       "n"(__builtin_offsetof(spmla_g_state, fault_rows) +
			   4 * G_FAULT_TIMEOUT),
		       "n"(__builtin_offsetof(spmla_g_state, fault_count)),
		       "n"(__builtin_offsetof(g_debug_block, status)),
		       "n"(__builtin_offsetof(spmla_g_status, step)),
		       "n"(__builtin_offsetof(spmla_g_status, key)),
		       "n"(__builtin_offsetof(spmla_g_status, count)),
		       "n"((int)G_FAULT_TIMEOUT)
		     : "memory");
}

#endif
#endif
#endif
