/* SPDX-License-Identifier: Apache-2.0
 *
 * A V4 layer: its calls in order, on the planned metadata of the step, and the
 * two branches that may run beside the insert. No host branch here depends on a
 * length, so the calls always record the same nodes.
 */
#include "spmla/internal/v4.h"

/* Orders later work of `to` behind earlier work of `from`. */
static spmla_status
order(spmla_ctx *ctx, spmla_stream from, spmla_stream to, spmla_event event)
{
	const spmla_status s =
		ctx->backend->order ? ctx->backend->order(ctx, from, to, event)
				    : SPMLA_OK;

	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

static spmla_status
check_branches(spmla_ctx *ctx, const spmla_v4_branches *b)
{
	const spmla_i_check checks[] = {
		{"branches.streams[0]", SPMLA_I_PTR(b->streams[0]),
		 SPMLA_WANT_NOT_NULL, 0},
		{"branches.streams[1]", SPMLA_I_PTR(b->streams[1]),
		 SPMLA_WANT_NOT_NULL, 0},
		{"branches.events[0]", SPMLA_I_PTR(b->events[0]),
		 SPMLA_WANT_NOT_NULL, 0},
		{"branches.events[1]", SPMLA_I_PTR(b->events[1]),
		 SPMLA_WANT_NOT_NULL, 0},
		{"branches.events[2]", SPMLA_I_PTR(b->events[2]),
		 SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_status s = spmla_i_check_size(&ctx->diag, "branches.struct_bytes",
					    b->struct_bytes, sizeof *b);

	if (s == SPMLA_OK)
		s = spmla_i_check_all(&ctx->diag, checks,
				      SPMLA_I_COUNT(checks));
	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

/* Joins a branch, also one whose work failed: the part that was enqueued must
 * not run beside later work of the caller. Keeps the first failure. */
static spmla_status
join(spmla_ctx *ctx, spmla_status s, spmla_stream from, spmla_stream to,
     spmla_event event)
{
	const spmla_diag first = ctx->diag;
	const spmla_status joined = order(ctx, from, to, event);

	if (s == SPMLA_OK)
		return joined;
	ctx->diag = first;
	return s;
}

/* The work before the first reader of the step's keys: insert, compress and the
 * index queries, which share nothing. */
static spmla_status
write_keys(spmla_ctx *ctx, const spmla_v4_layer *l, const spmla_shape *shape,
	   const spmla_v4_branches *b, spmla_stream stream)
{
	const uint32_t index = l->ratio == SPMLA_COMPRESS_OVERLAP && l->index_q;
	const uint32_t compress = b && l->ratio != 1;
	const spmla_stream second = compress ? b->streams[0] : stream;
	const spmla_stream third = b && index ? b->streams[1] : stream;
	uint32_t forked[2] = {0, 0};
	spmla_status s = SPMLA_OK;

	if (compress) {
		s = order(ctx, stream, second, b->events[0]);
		forked[0] = s == SPMLA_OK;
	}
	if (s == SPMLA_OK && third != stream) {
		s = order(ctx, stream, third, b->events[0]);
		forked[1] = s == SPMLA_OK;
	}
	if (s == SPMLA_OK)
		s = spmla_v4_compress(ctx, l, shape, second);
	if (s == SPMLA_OK && index)
		s = spmla_i_v4_prep_q(ctx, l, shape, third);
	if (s == SPMLA_OK)
		s = spmla_v4_insert(ctx, l, shape, stream);
	if (forked[0])
		s = join(ctx, s, second, stream, b->events[1]);
	if (forked[1])
		s = join(ctx, s, third, stream, b->events[2]);
	if (s == SPMLA_OK && index)
		s = spmla_i_v4_select(ctx, l, shape, stream);
	return s;
}

spmla_status
spmla_v4_attn(spmla_ctx *ctx, const spmla_v4_layer *layer,
	      const spmla_shape *shape, const spmla_v4_branches *branches,
	      spmla_stream stream)
{
	spmla_status s = spmla_i_v4_begin(ctx, layer, shape, stream);

	if (s == SPMLA_OK && branches && ctx->backend->order)
		s = check_branches(ctx, branches);
	if (s == SPMLA_OK)
		s = write_keys(ctx, layer, shape,
			       ctx->backend->order ? branches : NULL, stream);
	if (s == SPMLA_OK)
		s = spmla_v4_attend(ctx, layer, shape, stream);
	if (s == SPMLA_OK && layer->wo)
		s = spmla_v4_output(ctx, layer, shape, stream);
	return s;
}
