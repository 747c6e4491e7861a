/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_schedule: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

enum { MAX_SMS = 65536 };

static spmla_status
check_numbers(spmla_diag *diag, const spmla_indexer_schedule_args *a)
{
	const spmla_i_check checks[] = {
		{"indexer_schedule.rule", a->rule,
		 SPMLA_I_FROM_TO(SPMLA_INDEXER_SCHEDULE_SM90,
				 SPMLA_INDEXER_SCHEDULE_SM100_VARLEN)},
		{"indexer_schedule.num_sms", a->num_sms, SPMLA_WANT_AT_LEAST,
		 1},
		{"indexer_schedule.num_sms", a->num_sms, SPMLA_WANT_AT_MOST,
		 MAX_SMS},
		{"indexer_schedule.next_n", a->next_n, SPMLA_WANT_AT_LEAST, 1},
		{"indexer_schedule.next_n", a->next_n,
		 a->rule == SPMLA_INDEXER_SCHEDULE_SM100_VARLEN
			 ? SPMLA_WANT_EQUAL
			 : SPMLA_WANT_NOTHING,
		 1},
		{"indexer_schedule.batch", a->batch, SPMLA_WANT_AT_MOST,
		 INT32_MAX / (a->next_n ? a->next_n : 1)},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_indexer_schedule(spmla_ctx *ctx, const spmla_indexer_schedule_args *a,
		       spmla_stream stream)
{
	spmla_status s =
		spmla_i_op_begin(ctx, a, sizeof *a, "indexer_schedule");

	if (s != SPMLA_OK)
		return s;
	const spmla_want lens =
		a->batch ? SPMLA_WANT_NOT_NULL : SPMLA_WANT_NOTHING;
	const spmla_i_check checks[] = {
		{"indexer_schedule.context_lens", SPMLA_I_PTR(a->context_lens),
		 lens, 0},
		{"indexer_schedule.context_lens_stride_elems",
		 spmla_i_stride(a->context_lens_stride_elems),
		 SPMLA_WANT_AT_LEAST, a->next_n},
		{"indexer_schedule.indices", SPMLA_I_PTR(a->indices),
		 a->rule == SPMLA_INDEXER_SCHEDULE_SM100_VARLEN
			 ? lens
			 : SPMLA_WANT_NOTHING,
		 0},
		{"indexer_schedule.schedule", SPMLA_I_PTR(a->schedule),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	s = check_numbers(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = spmla_i_check_all(&ctx->diag, checks,
				      SPMLA_I_COUNT(checks));
	return spmla_i_op_end(ctx, s, SPMLA_OP_indexer_schedule, a, sizeof *a,
			      stream);
}
