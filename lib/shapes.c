/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of a config: its buckets, its largest prefill, and the pieces that
 * long steps run in.
 */
#include "spmla/internal/config.h"

/* The tokens of a piece, unless a decode step is longer. Enough to fill a GPU.
 */
enum { PIECE_TOKENS = 1024 };

uint32_t
spmla_i_piece_tokens(const spmla_config *c)
{
	uint32_t decode = 0, most, i;

	for (i = 0; i < c->bucket_count; i++)
		if (c->buckets[i].tokens > decode)
			decode = c->buckets[i].tokens;
	most = decode > PIECE_TOKENS ? decode : PIECE_TOKENS;
	if (c->max_prefill_tokens > decode)
		decode = c->max_prefill_tokens; /* of the longest step */
	return most < decode ? most : decode;
}

uint32_t
spmla_i_shape_count(const spmla_config *c)
{
	return c->bucket_count + (c->max_prefill_tokens > 0);
}

spmla_shape
spmla_i_shape_at(const spmla_config *c, uint32_t i)
{
	spmla_shape prefill = {c->max_prefill_tokens, 0, c->max_prefill_tokens,
			       c->prefill_workspace_tokens};
	uint32_t b;

	if (i < c->bucket_count)
		return c->buckets[i];
	for (b = 0; b < c->bucket_count; b++)
		if (c->buckets[b].requests > prefill.requests)
			prefill.requests = c->buckets[b].requests;
	return prefill;
}
