/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_schedule on the CPU. The hard idea: under both rules the units form
 * one line, request after request, cut at num_sms places. The rules differ in
 * which SMs get one unit more and in how a place in a request is named. The
 * places ascend, so one walk over the requests names them all.
 */
#include "spmla/platform/cpu/core/cpu.h"

/* A request of the batch, and its units. */
typedef struct request {
	uint32_t first;  /* row of context_lens */
	uint32_t next;   /* the next request's first */
	uint64_t segs;   /* splits of its last token */
	uint64_t height; /* units of a split: atoms or tokens */
} request;

static uint64_t
segs_of(const spmla_indexer_schedule_args *a, uint32_t row)
{
	const int32_t len =
		a->context_lens[(int64_t)row * a->context_lens_stride_elems +
				a->next_n - 1];

	return len > 0 ? ((uint64_t)len + SPMLA_INDEXER_SCHEDULE_SPLIT - 1) /
				 SPMLA_INDEXER_SCHEDULE_SPLIT
		       : 0;
}

/* Atoms (SM90) or tokens (SM100) of a row of context_lens. */
static uint32_t
height_of(const spmla_indexer_schedule_args *a)
{
	if (a->rule == SPMLA_INDEXER_SCHEDULE_SM90)
		return a->next_n / 2 + a->next_n % 2;
	return a->next_n;
}

/* The request that starts at row `first`; one of no units at the end. */
static request
request_at(const spmla_indexer_schedule_args *a, uint32_t first)
{
	request r = {first, first, 0, 1};

	if (first >= a->batch)
		return r;
	r.next = first + 1;
	if (a->rule == SPMLA_INDEXER_SCHEDULE_SM100_VARLEN)
		while (r.next < a->batch &&
		       a->indices[r.next] == a->indices[first])
			r.next++;
	r.segs = segs_of(a, r.next - 1);
	r.height = (uint64_t)(r.next - first) * height_of(a);
	return r;
}

static uint64_t
count_units(spmla_ctx *ctx, const spmla_indexer_schedule_args *a)
{
	uint64_t units = 0;
	uint32_t i;
	request r;

	for (i = 0; i < a->batch; i++)
		if (a->context_lens[(int64_t)i * a->context_lens_stride_elems +
				    a->next_n - 1] < 0)
			spmla_i_cpu_fault(ctx, i, SPMLA_FAULT_LENGTH);
	for (i = 0; i < a->batch; i = r.next) {
		r = request_at(a, i);
		units += r.segs * r.height;
	}
	return units;
}

/* The unit that an SM starts with. */
static uint64_t
first_unit(const spmla_indexer_schedule_args *a, uint64_t units, uint32_t sm)
{
	const uint64_t each = units / a->num_sms;
	const uint64_t rest = units % a->num_sms;
	const uint64_t pivot = a->num_sms - rest;

	if (a->rule == SPMLA_INDEXER_SCHEDULE_SM90)
		return sm * each + (sm > pivot ? sm - pivot : 0);
	return sm * each + (sm < rest ? sm : rest);
}

/* Unit `at` of a request. */
static void
write_row(const spmla_indexer_schedule_args *a, const request *r, uint64_t at,
	  int32_t *row)
{
	uint64_t q = (uint64_t)r->first * height_of(a);
	uint64_t split = at / r->height;

	if (a->rule == SPMLA_INDEXER_SCHEDULE_SM90 && r->segs > 0) {
		q += at / r->segs;
		split = at % r->segs;
	}
	row[0] = (int32_t)q;
	row[1] = (int32_t)split;
}

void
spmla_i_cpu_indexer_schedule(spmla_ctx *ctx, const void *args)
{
	const spmla_indexer_schedule_args *a = args;
	const uint64_t units = count_units(ctx, a);
	request r = request_at(a, 0);
	uint64_t before = 0; /* units of the requests before r */
	uint32_t sm;

	for (sm = 0; sm <= a->num_sms; sm++) {
		const uint64_t unit = first_unit(a, units, sm);

		while (r.first < a->batch &&
		       before + r.segs * r.height <= unit) {
			before += r.segs * r.height;
			r = request_at(a, r.next);
		}
		write_row(a, &r, unit - before, a->schedule + 2 * (uint64_t)sm);
	}
}
