/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the two operations of a compressor: the width of a state, the rows
 * of a group, and the checks of their fields.
 */
#ifndef SPMLA_INTERNAL_COMPRESS_H
#define SPMLA_INTERNAL_COMPRESS_H

#include "spmla/internal/check.h"

/* Values of kv in an entry of a state layout; it has as many of score. */
static inline uint32_t
spmla_i_state_width(uint32_t layout)
{
	return spmla_layout_entry_bytes(layout) / (2 * (uint32_t)sizeof(float));
}

/* Values of a key that is made of states of this layout. */
static inline uint32_t
spmla_i_key_dim(uint32_t layout)
{
	return layout == SPMLA_LAYOUT_STATE_128 ||
			       layout == SPMLA_LAYOUT_STATE_256
		       ? SPMLA_INDEX_DIM
		       : SPMLA_V4_DIM;
}

/* Rows that make a key: at ratio 4 also the rows of the group before. */
static inline uint32_t
spmla_i_group_rows(uint32_t ratio)
{
	return ratio == SPMLA_COMPRESS_OVERLAP ? 2 * ratio : ratio;
}

/* The state layouts that go with a ratio, one bit each; 0: unknown ratio. */
static inline uint32_t
spmla_i_state_layouts(uint32_t ratio)
{
	if (ratio == SPMLA_COMPRESS_OVERLAP)
		return 1u << SPMLA_LAYOUT_STATE_256 |
		       1u << SPMLA_LAYOUT_STATE_1024;
	return ratio == SPMLA_COMPRESS_MOST
		       ? 1u << SPMLA_LAYOUT_STATE_128 |
				 1u << SPMLA_LAYOUT_STATE_512
		       : 0;
}

/* The fields of the state and the table that both operations have. */
typedef struct spmla_i_state_check {
	uint32_t ratio;
	uint32_t form;
	uint32_t rows;
	uint32_t columns;
	uint32_t table_stride_elems;
	uint32_t has_table; /* both forms read it */
	const int32_t *token_row;
	const int32_t *block_table;
	const spmla_cache *state;
} spmla_i_state_check;

/* The names of the fields. */
typedef struct spmla_i_state_fields {
	const char *ratio;
	const char *form;
	const char *rows;
	const char *columns;
	const char *table_stride_elems;
	const char *token_row;
	const char *block_table;
	spmla_i_cache_fields state;
} spmla_i_state_fields;

#define SPMLA_I_STATE_FIELDS(op)                                             \
	{                                                                    \
		op ".ratio", op ".form", op ".rows", op ".columns",          \
			op ".table_stride_elems", op ".token_row",           \
			op ".block_table", SPMLA_I_CACHE_FIELDS(op ".state") \
	}

spmla_status spmla_i_check_state(spmla_diag *diag,
				 const spmla_i_state_fields *fields,
				 const spmla_i_state_check *c);

#endif
