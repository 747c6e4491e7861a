/* SPDX-License-Identifier: Apache-2.0
 *
 * See index_rig.h.
 */
#include "tests/ops/select/index_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

void
index_report(index_faults *f, uint64_t row, uint32_t fault)
{
	if (f->count == 0 || row < f->row ||
	    (row == f->row && fault < f->fault)) {
		f->row = row;
		f->fault = fault;
	}
	f->count++;
}

void
index_check_faults(const fixture *f, const index_faults *want)
{
	const spmla_device_status got = fixture_status(f);

	ck_assert_uint_eq(got.count, want->count);
	ck_assert_str_eq(spmla_fault_name(got.fault),
			 spmla_fault_name(want->fault));
	ck_assert_uint_eq(got.row, (uint32_t)want->row);
	ck_assert_int_eq(spmla_status_clear(f->ctx), SPMLA_OK);
}

void
index_random(uint64_t *rng, int32_t *x, uint32_t n, uint32_t bound)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		x[i] = (int32_t)rng_below(rng, bound);
}

index_window
index_window_of(int64_t p, int64_t window, const int32_t *span,
		int64_t max_image, int64_t from)
{
	index_window w = {p - (window - 1), p};

	if (span && span[0] <= p && p <= span[1]) {
		int64_t left = p - span[0], right = span[1] - p;

		left = left < max_image - 1 ? left : max_image - 1;
		right = right < max_image ? right : max_image;
		if (left > window - 1)
			w.first -= left - (window - 1);
		w.last += right;
	}
	w.first = w.first < 0 ? 0 : w.first;
	w.first = w.first < from ? from : w.first;
	if (span && w.last - w.first + 1 > window + max_image)
		w.last = w.first + window + max_image - 1;
	return w;
}
