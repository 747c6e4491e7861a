/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode over kinds of rows that the library does not have, by the
 * kernels of attend/sparse_decode_other_rows.c.
 */
#ifndef TESTS_EMULATOR_OTHER_ROWS_H
#define TESTS_EMULATOR_OTHER_ROWS_H

#include "spmla/ops/sparse_decode.h"
#include "spmla/spmla.h"

/* Planar pages have all rows' values, then all rows' scales. */
typedef enum other_row {
	ROW_NO_ROPE,    /* GLM-5.3: V3.2's without the rope part */
	ROW_FNUZ,       /* V3.2's in FNUZ */
	ROW_V41,        /* V4.1: a ue8m0 scale for each 32 values */
	ROW_V41_PLANAR, /* the same */
	ROW_FP4,        /* V4.1 in e2m1: an e4m3 scale for each 16 values */
	ROW_FP4_PLANAR, /* the same */
	ROW_NVFP4,      /* e2m1 and rope in e4m3; swizzled scales */
	OTHER_ROWS
} other_row;

/* Whether the context's machine has the kernels: those for Hopper, emulated. */
uint32_t other_rows_run(const spmla_ctx *ctx);

/* Runs a call whose rows are called V3.2's, or V4's if it has two lists, but are
 * of kind `row`; those of the second list are of kind `extra`, OTHER_ROWS if
 * there is none. Queries have 576 values if rows have a rope part, else 512. The
 * library's launch code chooses the kernel and fills its parameters; the kernel
 * for these rows runs in its place. `instead_of` becomes the stem of the
 * library's kernel. */
spmla_status other_rows_decode(spmla_ctx *ctx, other_row row, other_row extra,
			       const spmla_sparse_decode_args *a,
			       const char **instead_of);

/* The kinds of rows of the call that runs, for its kernel. */
extern other_row emulator_rows[2];

#endif
