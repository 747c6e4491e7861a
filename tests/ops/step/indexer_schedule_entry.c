/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of indexer_schedule: a batch of requests, or one of
 * tokens that say which request they are of.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_indexer_schedule_args *a = args;
	const uint32_t varlen = draw_variant(d, 2);

	a->rule = varlen ? SPMLA_INDEXER_SCHEDULE_SM100_VARLEN
			 : SPMLA_INDEXER_SCHEDULE_SM90 + draw_choice(d, 2);
	a->batch = draw_many(d, 9, 40);
	a->next_n = varlen ? 1 : draw_size(d, 4);
	a->num_sms = draw_size(d, 24);
	a->context_lens_stride_elems = draw_stride(d, a->next_n);
	a->context_lens = draw_i32(
		d,
		draw_strided(a->batch, a->context_lens_stride_elems, a->next_n),
		0, 3000);
	a->indices = varlen ? draw_i32(d, a->batch, 0, 3) : NULL;
	a->schedule = draw_out(d, 2 * (a->num_sms + UINT64_C(1)), 4);
}

static const arg_error errors[] = {
	BAD_ENUM(indexer_schedule, rule, 0, "1, 2 or 3"),
	BAD_ENUM(indexer_schedule, rule, 4, "1, 2 or 3"),
	BAD_LEAST(indexer_schedule, num_sms, 0, 1),
	BAD_MOST(indexer_schedule, num_sms, 65537, 65536),
	BAD_LEAST(indexer_schedule, next_n, 0, 1),
	BAD_MOST(indexer_schedule, batch, 536870912, 536870911),
	BAD_NULL(indexer_schedule, context_lens),
	BAD_STRIDE(indexer_schedule, context_lens_stride_elems, 3, 4),
	BAD_NULL(indexer_schedule, schedule),
};

static const arg_error varlen_errors[] = {
	BAD_EQUAL(indexer_schedule, next_n, 2, 1),
	BAD_MOST(indexer_schedule, batch, 2147483648, 2147483647),
	BAD_NULL(indexer_schedule, indices),
};

OP_ENTRY(indexer_schedule, .errors = {ERRORS(errors), ERRORS(varlen_errors)});
