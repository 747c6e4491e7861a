/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver's library, opened when it is first needed, and a table of the
 * functions that are used of it. Errors are reported alike on every platform.
 */
#ifndef SPMLA_PLATFORM_GPU_DRIVER_LIBRARY_GPU_H
#define SPMLA_PLATFORM_GPU_DRIVER_LIBRARY_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "spmla/spmla.h"

typedef int spmla_gpu_result; /* 0 is success */

/* Where a function of the library belongs in the platform's table. */
typedef struct spmla_i_gpu_symbol {
	const char *name;
	size_t offset;
	uint32_t optional; /* 1: a library may lack it */
} spmla_i_gpu_symbol;

typedef struct spmla_i_gpu_library {
	const char *const *names; /* to look for, in order; NULL ends */
	const spmla_i_gpu_symbol *symbols;
	size_t symbol_count;
} spmla_i_gpu_library;

/* Fills the table from the library, which then stays loaded. A function that
 * the library lacks is NULL. Errors: E_NO_DRIVER. */
spmla_status spmla_i_gpu_load(void *table, const spmla_i_gpu_library *library,
			      spmla_diag *diag);

/* E_NO_DRIVER with the first function that is missing. */
spmla_status spmla_i_gpu_complete(const void *table,
				  const spmla_i_gpu_library *library,
				  spmla_diag *diag);

/* E_DEVICE: `function` gave `code`. */
spmla_status spmla_i_gpu_refused(spmla_diag *diag, const char *function,
				 spmla_gpu_result code);

/* E_UNSUPPORTED unless a plan for `want` fits the device: grids and scratch are
 * made for the plan's. Its architecture is the device's or, where a device runs
 * an older one's kernels, an older one: SPMLA_WANT_.. is the rule. */
spmla_status spmla_i_gpu_fits(const spmla_device *want, const spmla_device *got,
			      uint32_t arch_rule, spmla_diag *diag);

#endif
