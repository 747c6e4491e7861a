/* SPDX-License-Identifier: Apache-2.0
 *
 * What the adapters of V4's index operations share (golden_v4_rows.c): changes
 * of the golden files where a kernel is defined otherwise than the library.
 */
#ifndef TESTS_GOLDEN_GOLDEN_V4_H
#define TESTS_GOLDEN_GOLDEN_V4_H

#include "tests/golden/golden.h"

/* The `width` first elements of row t < rows become -1 where slots[t] < 0: the
 * kernels leave or fill the row of a token without a slot, and nothing reads
 * it. */
void golden_empty_rows(golden_tensor *out, const int64_t *slots, uint32_t rows,
		       uint32_t width);

/* Moves the elements in [least, below) of a row of `width` int32 of the golden
 * file to its front, -1 behind them; returns how many there are. */
uint32_t golden_compact_row(golden_tensor *out, uint32_t row, uint32_t width,
			    int32_t least, int64_t below);

/* The same of all rows of a packed file. Row t keeps what is in [least[t],
 * below[t]) and has len[t] entries (NULL: what it keeps), no more than it had;
 * those that the file does not have, and what is behind the last row, are
 * sentinels, which are not compared. */
void golden_compact_ragged(golden_tensor *out, golden_tensor *indptr,
			   uint32_t rows, const int32_t *least,
			   const int64_t *below, const int32_t *len);

/* Sets element i of an int32 golden file of rank 1. */
void golden_want(golden_tensor *out, uint32_t i, int32_t value);

/* As golden_called, where the case itself has data that the library reports:
 * `count` times, and no other fault. */
golden_verdict golden_reported(golden_case *c, spmla_status status,
			       spmla_fault fault, uint32_t count);

/* The inputs of a case of global top-k (golden_index.c); of an invalid token
 * slot_mapping is -1. */
int golden_take_global(golden_case *c, spmla_index_map_args *a);

/* Indices of token t whose page the table says is none. The kernels compute
 * with it; the library drops and reports them. */
uint32_t golden_pages_missing(const spmla_index_map_args *a, uint32_t t);

/* ragged_index of dense rows into the tensors; the files begin with sentinels
 * where nothing is written (golden_ragged.c). */
golden_verdict golden_ragged(golden_case *c, const int32_t *indices,
			     int64_t stride, const int32_t *lens,
			     uint32_t tokens, uint32_t width,
			     uint32_t num_slots, golden_tensor *out,
			     golden_tensor *indptr);

/* golden_ragged.c */
golden_verdict golden_run_combine(golden_case *c);
golden_verdict golden_run_combine_ragged(golden_case *c);
golden_verdict golden_run_ragged(golden_case *c);
golden_verdict golden_run_global_ragged(golden_case *c);

#endif
