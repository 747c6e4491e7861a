/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched: host checks and dispatch, and the parts of a launch. The limits
 * keep every number of the outputs within int32.
 */
#include "spmla/internal/backend.h"
#include "spmla/internal/checked_math.h"

enum {
	MAX_ROWS = 1 << 30,
	MAX_OVERHEAD = 1 << 20,
	MAX_SPLIT = 1 << 26,
	HEAD_TILE = 64
};

static spmla_status
check_rule(spmla_diag *diag, uint32_t rule, uint32_t sm_count, uint32_t s_q,
	   uint32_t h_q, uint32_t h_k)
{
	const uint32_t old = rule <= SPMLA_TILE_OLD_SM100;
	const spmla_i_check checks[] = {
		{"tile_sched_parts.rule", rule,
		 SPMLA_I_FROM_TO(SPMLA_TILE_OLD_SM90,
				 SPMLA_TILE_SM100_HEAD128)},
		{"tile_sched_parts.sm_count", sm_count, SPMLA_WANT_AT_LEAST, 1},
		{"tile_sched_parts.sm_count", sm_count, SPMLA_WANT_AT_MOST,
		 MAX_ROWS},
		{"tile_sched_parts.s_q", s_q, SPMLA_WANT_AT_LEAST, 1},
		{"tile_sched_parts.h_k", h_k, SPMLA_WANT_AT_LEAST, 1},
		{"tile_sched_parts.h_q", h_q, SPMLA_WANT_AT_LEAST,
		 rule == SPMLA_TILE_SM90 ? HEAD_TILE : 1},
		{"tile_sched_parts.h_q", h_q,
		 old ? SPMLA_WANT_MULTIPLE_OF : SPMLA_WANT_NOTHING,
		 h_k ? h_k : 1},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_tile_sched_parts(uint32_t rule, uint32_t sm_count, uint32_t s_q,
		       uint32_t h_q, uint32_t h_k, uint32_t *parts,
		       uint32_t *overhead_blocks, spmla_diag *diag)
{
	const spmla_i_check pointers[] = {
		{"tile_sched_parts.parts", SPMLA_I_PTR(parts),
		 SPMLA_WANT_NOT_NULL, 0},
		{"tile_sched_parts.overhead_blocks",
		 SPMLA_I_PTR(overhead_blocks), SPMLA_WANT_NOT_NULL, 0},
	};
	uint64_t n;
	spmla_status s =
		spmla_i_check_all(diag, pointers, SPMLA_I_COUNT(pointers));

	if (s == SPMLA_OK)
		s = check_rule(diag, rule, sm_count, s_q, h_q, h_k);
	if (s != SPMLA_OK)
		return s;
	switch (rule) {
	case SPMLA_TILE_OLD_SM90:
		n = sm_count / 2 / h_k / (spmla_i_cdiv(h_q / h_k, 128) * s_q);
		break;
	case SPMLA_TILE_OLD_SM100:
		n = sm_count / h_k / (spmla_i_cdiv(h_q / h_k, 64) * s_q);
		break;
	case SPMLA_TILE_SM90:
		n = sm_count / s_q / (h_q / HEAD_TILE);
		break;
	case SPMLA_TILE_SM100_HEAD64:
		n = sm_count / s_q;
		break;
	default:
		n = sm_count / s_q / 2;
		break;
	}
	*parts = n > 0 ? (uint32_t)n : 1;
	*overhead_blocks = rule == SPMLA_TILE_SM100_HEAD128 ? 3 : 5;
	return SPMLA_OK;
}

spmla_status
spmla_tile_sched(spmla_ctx *ctx, const spmla_tile_sched_args *a,
		 spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "tile_sched");

	if (s != SPMLA_OK)
		return s;
	const spmla_i_check checks[] = {
		{"tile_sched.batch", a->batch, SPMLA_WANT_AT_MOST, MAX_ROWS},
		{"tile_sched.parts", a->parts, SPMLA_WANT_AT_LEAST, 1},
		{"tile_sched.parts", a->parts, SPMLA_WANT_AT_MOST, MAX_ROWS},
		{"tile_sched.parts", a->parts,
		 a->split_blocks ? SPMLA_WANT_MULTIPLE_OF : SPMLA_WANT_NOTHING,
		 a->batch ? a->batch : 1},
		{"tile_sched.split_blocks", a->split_blocks, SPMLA_WANT_AT_MOST,
		 MAX_SPLIT},
		{"tile_sched.overhead_blocks", a->overhead_blocks,
		 SPMLA_WANT_AT_MOST, MAX_OVERHEAD},
		{"tile_sched.row_format", a->row_format,
		 SPMLA_I_FROM_TO(SPMLA_TILE_ROW_NEW, SPMLA_TILE_ROW_OLD)},
		{"tile_sched.topk", a->topk, SPMLA_WANT_AT_LEAST, 1},
		{"tile_sched.topk", a->topk, SPMLA_WANT_AT_MOST, INT32_MAX},
		{"tile_sched.extra_topk", a->extra_topk, SPMLA_WANT_AT_MOST,
		 INT32_MAX},
		{"tile_sched.tile_scheduler_metadata",
		 SPMLA_I_PTR(a->tile_scheduler_metadata), SPMLA_WANT_NOT_NULL,
		 0},
		{"tile_sched.num_splits", SPMLA_I_PTR(a->num_splits),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	return spmla_i_op_end(ctx, s, SPMLA_OP_tile_sched, a, sizeof *a,
			      stream);
}
