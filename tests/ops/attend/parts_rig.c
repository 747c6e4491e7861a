/* SPDX-License-Identifier: Apache-2.0
 *
 * See parts_rig.h.
 */
#include "tests/ops/attend/parts_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/combine.h"
#include "tests/harness/fixture.h"

void
parts_lend(parts_rig *p, spmla_sparse_decode_args *a)
{
	const uint64_t words = spmla_i_combine_words(a->tokens, a->heads);

	ck_assert_uint_le(a->tokens, PARTS_TOKENS);
	memset(p, 0, sizeof *p);
	a->combine = 1;
	p->workspace = test_alloc(words * 4, 0);
	a->workspace = p->workspace;
	a->workspace_bytes = words * 4;
	a->split_rows = a->tokens + PARTS_MOST;
	p->split_out =
		test_alloc((uint64_t)a->split_rows * a->heads * 2048, 0xFF);
	p->split_lse = test_alloc((uint64_t)a->split_rows * a->heads * 4, 0xFF);
	a->split_out = p->split_out;
	a->split_lse = p->split_lse;
	a->tile_scheduler_metadata = p->rows;
	a->num_splits = p->num_splits;
}

void
parts_take_back(parts_rig *p, const spmla_sparse_decode_args *a)
{
	const uint64_t words = spmla_i_combine_words(a->tokens, a->heads);
	uint64_t i;

	for (i = 0; i < words; i++)
		ck_assert_uint_eq(p->workspace[i], 0);
	free(p->workspace);
	free(p->split_out);
	free(p->split_lse);
}

void
parts_cut(parts_rig *p, spmla_sparse_decode_args *a, uint32_t blocks,
	  uint32_t splits)
{
	uint32_t t, i;

	a->parts = 0;
	for (t = 0; t < a->tokens - a->whole_tokens; t++) {
		for (i = 0; i < splits; i++) {
			const int32_t row[8] = {
				(int32_t)t, (int32_t)t,
				(int32_t)(blocks * i / splits),
				(int32_t)(blocks * (i + 1) / splits),
				(int32_t)i};

			ck_assert_uint_lt(a->parts, PARTS_MOST);
			memcpy(p->rows + 8 * a->parts++, row, sizeof row);
		}
		p->num_splits[t + 1] = p->num_splits[t] + (int32_t)splits;
	}
}
