/* SPDX-License-Identifier: Apache-2.0
 *
 * See topk_rig.h.
 */
#include "tests/ops/select/topk_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranked {
	float score;
	int32_t position; /* -1 - that, if ties take the higher ones */
} ranked;

static int
better_first(const void *pa, const void *pb)
{
	const ranked *a = pa, *b = pb;
	const int a_nan = a->score != a->score;
	const int b_nan = b->score != b->score;

	if (a_nan != b_nan)
		return b_nan - a_nan;
	if (!a_nan && a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return a->position < b->position ? -1 : 1;
}

static int
lower_first(const void *pa, const void *pb)
{
	const int32_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* want[k]; returns how many are set. */
static uint32_t
oracle(const float *scores, uint32_t len, uint32_t k, uint32_t ties,
       int32_t *want)
{
	ranked *all = malloc((len + 1) * sizeof *all);
	const uint32_t n = len < k ? len : k;
	uint32_t i;

	for (i = 0; i < len; i++) /* short rows may not be read */
		all[i] = (ranked){len > k ? scores[i] : 0,
				  len > k && ties ? -1 - (int32_t)i
						  : (int32_t)i};
	qsort(all, len, sizeof *all, better_first);
	for (i = 0; i < k; i++)
		want[i] = i >= n                ? -1
			  : all[i].position < 0 ? -1 - all[i].position
						: all[i].position;
	qsort(want, n, sizeof *want, lower_first);
	free(all);
	return n;
}

void
topk_check_rows(const fixture *f, const spmla_topk_args *given)
{
	const uint64_t stride = (uint64_t)given->indices_stride_elems;
	const uint64_t bytes = given->rows * stride * sizeof(int32_t);
	int32_t *want = malloc(TOPK_MAX_K * sizeof *want);
	int32_t *lens = malloc(given->rows * sizeof *lens);
	int32_t *out = malloc(bytes);
	spmla_topk_args a = *given;
	uint32_t r, n;
	uint64_t i;

	a.indices = out;
	a.lens = lens;
	memset(out, 0x5A, bytes);
	memset(lens, 0x5A, a.rows * sizeof *lens);
	ck_assert_int_eq(spmla_topk(f->ctx, &a, NULL), SPMLA_OK);
	for (r = 0; r < a.rows; r++) {
		const int32_t *row = out + r * stride;
		const int32_t len = a.context_lens[r];

		n = oracle((const float *)a.logits + a.row_starts[r],
			   len > 0 ? (uint32_t)len : 0, a.k, a.ties, want);
		ck_assert_msg(!memcmp(row, want, a.k * sizeof *want), "row %u",
			      r);
		ck_assert_int_eq(lens[r], (int32_t)n);
		for (i = a.k * 4; i < stride * 4; i++)
			ck_assert_uint_eq(((const uint8_t *)row)[i], 0x5A);
	}
	ck_assert_uint_eq(fixture_status(f).count, 0);
	free(out);
	free(lens);
	free(want);
}

void
topk_check(const fixture *f, const float *scores, uint32_t len, uint32_t k)
{
	const int64_t start = 0;
	const int32_t count = (int32_t)len;
	spmla_topk_args a = {.struct_bytes = sizeof a, .rows = 1};

	a.k = k;
	a.logits = scores;
	a.logits_elems = len;
	a.row_starts = &start;
	a.context_lens = &count;
	a.indices_stride_elems = k;
	topk_check_rows(f, &a);
}

void
topk_expect(const fixture *f, const float *scores, uint32_t len,
	    const int32_t *want, uint32_t k)
{
	const int64_t start = 0;
	const int32_t count = (int32_t)len;
	int32_t got[16];
	spmla_topk_args a = {.struct_bytes = sizeof a, .rows = 1};

	a.k = k;
	a.logits = scores;
	a.logits_elems = len;
	a.row_starts = &start;
	a.context_lens = &count;
	a.indices = got;
	a.indices_stride_elems = k;
	ck_assert_int_eq(spmla_topk(f->ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(got, want, k * sizeof *want);
	topk_check(f, scores, len, k);
}
