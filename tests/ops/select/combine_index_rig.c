/* SPDX-License-Identifier: Apache-2.0
 *
 * See combine_index_rig.h.
 */
#include "tests/ops/select/combine_index_rig.h"

#include <check.h>
#include <string.h>

void
sight_open(sight_rig *r)
{
	spmla_config config;

	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	memset(&r->io, 0x5A, sizeof r->io);
	r->a = (spmla_combine_index_args){.struct_bytes = sizeof r->a,
					  .tokens = 1,
					  .requests = 2,
					  .window = 3,
					  .ratio = 4,
					  .topk = 4,
					  .width = 9,
					  .request_rows = 20,
					  .window_row = 5,
					  .req_id_per_token = r->req,
					  .context_lens = r->context,
					  .seq_lens = r->seq,
					  .gather_lens = r->gather,
					  .topk_indices = r->topk,
					  .topk_stride_elems = 4,
					  .indices = r->io.indices,
					  .indices_stride_elems = 10,
					  .lens = r->io.lens};
	r->seq[0] = 11;
	r->gather[0] = 4;
	r->seq[1] = 19;
	r->gather[1] = 12;
}

void
sight_close(sight_rig *r)
{
	fixture_close(&r->f);
}

/* Runs it, once. */
static void
sight_run(sight_rig *r)
{
	ck_assert_int_eq(spmla_combine_index(r->f.ctx, &r->a, NULL), SPMLA_OK);
}

/* ---- The rule once more -------------------------------------------------- */

static void
oracle_token(sight_rig *r, uint32_t t, index_faults *faults)
{
	const spmla_combine_index_args *a = &r->a;
	int32_t *out = r->want.indices + t * a->indices_stride_elems;
	const int64_t n = a->context_lens[t], b = a->req_id_per_token[t];
	int64_t k, p, len = 0, from, whole;
	index_window w;

	r->want.lens[t] = 0;
	for (k = 0; k < (int64_t)a->width; k++)
		out[k] = -1;
	if (n <= 0)
		return;
	if (b < 0 || b >= (int64_t)a->requests) {
		index_report(faults, t, SPMLA_FAULT_ROW);
		return;
	}
	from = (int64_t)a->seq_lens[b] - a->gather_lens[b];
	if (n > a->seq_lens[b] || a->gather_lens[b] < 0 || from < 0 ||
	    from >= n ||
	    a->gather_lens[b] > (int64_t)a->request_rows - a->window_row) {
		index_report(faults, t, SPMLA_FAULT_LENGTH);
		return;
	}
	whole = n / a->ratio;
	for (k = 0; k < whole && k < (int64_t)a->topk; k++) {
		const int64_t i = a->topk_indices[t * a->topk_stride_elems + k];

		if (i < 0)
			continue;
		if (i >= whole || i >= (int64_t)a->window_row)
			index_report(faults, t, SPMLA_FAULT_INDEX);
		else
			out[len++] = (int32_t)(b * a->request_rows + i);
	}
	w = index_window_of(n - 1, a->window,
			    a->image_spans ? a->image_spans + 2 * t : NULL,
			    a->max_image, from);
	for (p = w.first; p <= w.last && p < a->seq_lens[b]; p++)
		out[len++] = (int32_t)(b * a->request_rows + a->window_row + p -
				       from);
	r->want.lens[t] = (int32_t)len;
}

void
sight_check(sight_rig *r)
{
	index_faults faults = {0};
	uint32_t t;

	memset(&r->io, 0x5A, sizeof r->io);
	memset(&r->want, 0x5A, sizeof r->want);
	for (t = 0; t < r->a.tokens; t++)
		oracle_token(r, t, &faults);
	sight_run(r);
	ck_assert_mem_eq(&r->io, &r->want, sizeof r->io);
	index_check_faults(&r->f, &faults);
}

void
sight_expect(sight_rig *r, const int32_t *indices, int32_t len, uint32_t fault,
	     uint32_t count)
{
	sight_run(r);
	ck_assert_mem_eq(r->io.indices, indices, 9 * sizeof *indices);
	ck_assert_int_eq(r->io.indices[9], 0x5A5A5A5A);
	ck_assert_int_eq(r->io.lens[0], len);
	ck_assert_uint_eq(fixture_status(&r->f).fault, fault);
	ck_assert_uint_eq(fixture_status(&r->f).count, count);
	ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
	sight_check(r);
}
