/* SPDX-License-Identifier: Apache-2.0
 *
 * A V3.2 layer: its calls in order, on the planned metadata of the step. No
 * host branch here depends on a length, so the calls always record the same
 * nodes.
 */
#include "spmla/v32.h"

spmla_status
spmla_v32_attn(spmla_ctx *ctx, const spmla_v32_layer *layer,
	       const spmla_shape *shape, spmla_stream stream)
{
	spmla_status s = spmla_v32_insert(ctx, layer, shape, stream);

	if (s == SPMLA_OK && layer->index_q)
		s = spmla_v32_index(ctx, layer, shape, stream);
	if (s == SPMLA_OK)
		s = spmla_v32_attend(ctx, layer, shape, stream);
	return s;
}
