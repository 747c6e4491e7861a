/* SPDX-License-Identifier: Apache-2.0
 *
 * See golden_v4.h. Every change may be made twice: a case runs twice.
 */
#include "tests/golden/golden_v4.h"

#include <string.h>

/* Element `at` of the golden file, counted from its first. */
static int32_t *
want_of(const golden_tensor *t, int64_t at)
{
	return (int32_t *)(void *)t->want + t->offset + at;
}

void
golden_empty_rows(golden_tensor *out, const int64_t *slots, uint32_t rows,
		  uint32_t width)
{
	uint32_t t;

	for (t = 0; t < rows; t++)
		if (slots[t] < 0)
			memset(want_of(out, t * out->strides[0]), 0xFF,
			       width * sizeof(int32_t));
}

uint32_t
golden_compact_row(golden_tensor *out, uint32_t row, uint32_t width,
		   int32_t least, int64_t below)
{
	int32_t *x = want_of(out, row * out->strides[0]);
	uint32_t kept = 0, k;

	for (k = 0; k < width; k++)
		if (x[k] >= least && x[k] < below)
			x[kept++] = x[k];
	for (k = kept; k < width; k++)
		x[k] = -1;
	return kept;
}

void
golden_compact_ragged(golden_tensor *out, golden_tensor *indptr, uint32_t rows,
		      const int32_t *least, const int64_t *below,
		      const int32_t *len)
{
	int32_t *x = want_of(out, 0), *ends = want_of(indptr, 0);
	int32_t start = ends[0], to = ends[0];
	uint32_t t;

	for (t = 0; t < rows; t++) {
		const int32_t first = to, end = ends[t + 1];
		int32_t k;

		for (k = start; k < end; k++)
			if (x[k] >= least[t] && x[k] < below[t])
				x[to++] = x[k];
		while (len && to < first + len[t])
			memset(&x[to++], GOLDEN_SENTINEL, sizeof *x);
		start = end;
		ends[t + 1] = to;
	}
	memset(x + to, GOLDEN_SENTINEL,
	       (uint64_t)(out->shape[0] - to) * sizeof *x);
}

void
golden_want(golden_tensor *out, uint32_t i, int32_t value)
{
	*want_of(out, i * out->strides[0]) = value;
}

golden_verdict
golden_reported(golden_case *c, spmla_status status, spmla_fault fault,
		uint32_t count)
{
	spmla_device_status device = SPMLA_DEVICE_STATUS_INIT;

	if (status != SPMLA_OK || count == 0)
		return golden_called(c, status);
	if (spmla_status_read(c->ctx, &device) != SPMLA_OK ||
	    device.fault != (uint32_t)fault || device.count != count)
		return golden_fail(c, "the device reported %s %u times",
				   spmla_fault_name(device.fault),
				   device.count);
	return golden_called(c, spmla_status_clear(c->ctx));
}
