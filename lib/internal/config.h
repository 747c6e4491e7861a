/* SPDX-License-Identifier: Apache-2.0
 *
 * The config as the rest of the library sees it: checked, with every default
 * filled in.
 */
#ifndef SPMLA_INTERNAL_CONFIG_H
#define SPMLA_INTERNAL_CONFIG_H

#include "spmla/ops/indexer_q_prep.h"
#include "spmla/ops/inv_rope_quant.h"
#include "spmla/spmla.h"

/* Checks every field of `in` and writes the resolved config; on an error *out
 * is unspecified. */
spmla_status spmla_i_config_resolve(spmla_config *out, const spmla_config *in,
				    spmla_diag *diag);

/* Checks that a device has the operations that a resolved config needs. */
spmla_status spmla_i_device_check(const spmla_device *device,
				  const spmla_config *config, spmla_diag *diag);

static inline uint32_t
spmla_i_is_v4(const spmla_config *c)
{
	return c->model != SPMLA_MODEL_V32;
}

/* The table groups of a resolved config: their number; and for one group, the
 * group whose table it uses, the positions of an entry of its caches, and the
 * columns of a row. */
uint32_t spmla_i_group_count(const spmla_config *c);
uint32_t spmla_i_group_table(const spmla_config *c, uint32_t group);
uint32_t spmla_i_group_ratio(const spmla_config *c, uint32_t group);
uint32_t spmla_i_group_columns(const spmla_config *c, uint32_t group);

/* Whether a row of the group's own table counts as written only up to its first
 * gap, because tokens see all keys of their context through it. A window and a
 * state see only their last positions, so earlier pages may be missing. */
uint32_t spmla_i_group_is_whole(const spmla_config *c, uint32_t group);

/* Checks the groups and fills in their defaults. The other fields of the config
 * are resolved. */
spmla_status spmla_i_groups_resolve(spmla_config *c, spmla_diag *diag);

/* Positions of an index key. */
static inline uint32_t
spmla_i_index_ratio(const spmla_config *c)
{
	return spmla_i_is_v4(c) ? SPMLA_COMPRESS_OVERLAP : 1;
}

/* Bytes of the values of an index query's head, or of an index key. */
static inline uint32_t
spmla_i_index_bytes(const spmla_config *c)
{
	return c->index_layout == SPMLA_LAYOUT_INDEX_MXFP4
		       ? SPMLA_INDEX_MXFP4_VALUE_BYTES
		       : SPMLA_INDEX_DIM;
}

/* The index queries for the config's index keys, as spmla_index_q_format. */
static inline uint32_t
spmla_i_index_q_format(const spmla_config *c)
{
	return c->index_layout == SPMLA_LAYOUT_INDEX_MXFP4 ? SPMLA_INDEX_Q_MXFP4
							   : SPMLA_INDEX_Q_FP8;
}

/* Columns of C128A_INDICES: the compressed entries of the longest context,
 * rounded up to a multiple of 128. */
static inline uint32_t
spmla_i_c128a_width(const spmla_config *c)
{
	const uint32_t r = SPMLA_COMPRESS_MOST;

	return ((c->max_context_tokens + r - 1) / r + r - 1) / r * r;
}

/* The most tokens that attention or output works on at once: all of a decode
 * step, some of a longer one. */
uint32_t spmla_i_piece_tokens(const spmla_config *c);

/* Bytes of a token's output of V4 in a form, before it is projected. */
static inline uint64_t
spmla_i_output_bytes(const spmla_config *c, uint32_t quant)
{
	return (uint64_t)c->heads * SPMLA_V4_DIM *
	       (quant == SPMLA_O_BF16 ? 2 : 1);
}

/* The shapes of steps: the buckets, then prefill if it is planned; i <
 * spmla_i_shape_count. */
uint32_t spmla_i_shape_count(const spmla_config *config);
spmla_shape spmla_i_shape_at(const spmla_config *config, uint32_t i);

/* Elements from row to row of a prefill's index logits, for live_context tokens
 * of context in all. No token sees more keys than these have, or than the
 * longest sequence has. */
static inline uint64_t
spmla_i_piece_stride(const spmla_config *c, uint32_t live_context)
{
	const uint64_t align = SPMLA_LOGITS_ROW_ALIGN;
	const uint64_t most = live_context < c->max_context_tokens
				      ? live_context
				      : c->max_context_tokens;
	const uint64_t keys = most / spmla_i_index_ratio(c);

	return keys ? (keys + align - 1) / align * align : align;
}

static inline int
spmla_i_is_hopper(const spmla_device *device)
{
	return device->kind == SPMLA_BACKEND_CUDA && device->arch == 90;
}

/* The most elements of logits in a decode step of this shape: each of at most
 * next_n tokens of a request needs its index keys, rounded up. */
uint64_t spmla_i_shape_logits(const spmla_shape *b, const spmla_config *c,
			      uint32_t *overflow);

/* V4's prologue in one launch: tokens of the longest such step, cuts of a decode
 * in parts, and words of the line that each of these has. */
enum {
	SPMLA_I_FUSED_TOKENS = 512,
	SPMLA_I_UNIT_CUTS = 2,
	SPMLA_I_UNIT_WORDS = 16
};

/* Words of STEP_UNITS for steps of up to so many tokens. */
static inline uint64_t
spmla_i_unit_words(uint64_t tokens)
{
	const uint64_t n =
		tokens < SPMLA_I_FUSED_TOKENS ? tokens : SPMLA_I_FUSED_TOKENS;

	return (n + SPMLA_I_UNIT_CUTS) * SPMLA_I_UNIT_WORDS;
}

#endif
