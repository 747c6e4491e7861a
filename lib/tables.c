/* SPDX-License-Identifier: Apache-2.0
 *
 * The block tables: bulk changes, the engine's own tables, and the view of a
 * group that the operations of a step get.
 */
#include "spmla/internal/backend.h"
#include "spmla/internal/config.h"

static spmla_status
check_table_call(spmla_ctx *ctx, uint32_t group, uint32_t source)
{
	const spmla_table_config *g = ctx->plan.config.groups;
	const uint32_t last = spmla_i_group_count(&ctx->plan.config) - 1;

	if (group > last)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE, "group", group,
				    SPMLA_WANT_AT_MOST, last);
	if (g[group].source != source)
		return spmla_i_fail(&ctx->diag, SPMLA_E_UNSUPPORTED,
				    "config.groups.source", g[group].source,
				    SPMLA_WANT_EQUAL, source);
	return SPMLA_OK;
}

spmla_status
spmla_table_write(spmla_ctx *ctx, uint32_t group, uint32_t row,
		  uint32_t first_col, uint32_t count, spmla_stream stream)
{
	const spmla_table_write_args args = {group, row, first_col, count};
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	s = check_table_call(ctx, group, SPMLA_TABLE_RING);
	if (s == SPMLA_OK) {
		const spmla_i_check checks[] = {
			{"row", row, SPMLA_WANT_AT_MOST,
			 ctx->plan.config.max_rows - 1},
			{"first_col + count", (uint64_t)first_col + count,
			 SPMLA_WANT_AT_MOST, ctx->plan.group_columns[group]},
		};

		s = spmla_i_check_all(&ctx->diag, checks,
				      SPMLA_I_COUNT(checks));
	}
	if (s == SPMLA_OK && ctx->backend->capturing(ctx, stream))
		s = spmla_i_fail(&ctx->diag, SPMLA_E_STATE, "capture", 1,
				 SPMLA_WANT_EQUAL, 0);
	return spmla_i_op_end(ctx, s, SPMLA_OP_table_write, &args, sizeof args,
			      stream);
}

spmla_status
spmla_table_bind(spmla_ctx *ctx, uint32_t group, const int32_t *table,
		 uint32_t stride_elems)
{
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	s = check_table_call(ctx, group, SPMLA_TABLE_DEVICE);
	if (s != SPMLA_OK)
		return s;
	if (!table)
		return spmla_i_fail(&ctx->diag, SPMLA_E_NULL, "table", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	if (stride_elems < ctx->plan.group_columns[group])
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE, "stride_elems",
				    stride_elems, SPMLA_WANT_AT_LEAST,
				    ctx->plan.group_columns[group]);
	if (ctx->tables[group].device)
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE,
				    "table (bound already)", 1,
				    SPMLA_WANT_EQUAL, 0);
	ctx->tables[group].device = table;
	ctx->tables[group].stride_elems = stride_elems;
	return SPMLA_OK;
}

spmla_i_table_view
spmla_i_table_of(const spmla_ctx *ctx, uint32_t group)
{
	const uint32_t of = ctx->plan.group_table[group];
	const spmla_i_table *bound = &ctx->tables[of];
	const spmla_table_config *g = &ctx->plan.config.groups[group];
	spmla_i_table_view v = {ctx->buf[spmla_i_block_table(of)],
				ctx->buf[spmla_i_table_cols(of)],
				ctx->plan.group_columns[of],
				ctx->plan.group_columns[of],
				g->page_tokens,
				g->pool_pages,
				g->ring_columns != 0,
				0};

	if (bound->device) {
		v.table = bound->device;
		v.cols = NULL;
		v.stride_elems = bound->stride_elems;
	}
	return v;
}

spmla_status
spmla_i_tables_bound(spmla_ctx *ctx)
{
	const spmla_config *c = &ctx->plan.config;
	uint32_t i;

	for (i = 0; i < spmla_i_group_count(c); i++)
		if (c->groups[i].source == SPMLA_TABLE_DEVICE &&
		    !ctx->tables[i].device)
			return spmla_i_fail_at(&ctx->diag, SPMLA_E_STATE,
					       "table_bind", i, 0,
					       SPMLA_WANT_AT_LEAST, 1);
	return SPMLA_OK;
}
