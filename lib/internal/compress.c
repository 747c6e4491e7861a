/* SPDX-License-Identifier: Apache-2.0
 *
 * See compress.h.
 */
#include "spmla/internal/compress.h"

static spmla_status
check_table(spmla_diag *diag, const spmla_i_state_fields *fields,
	    const spmla_i_state_check *c)
{
	const spmla_i_check checks[] = {
		{fields->rows, c->rows, SPMLA_WANT_AT_LEAST, 1},
		{fields->columns, c->columns, SPMLA_WANT_AT_LEAST, 1},
		{fields->table_stride_elems, c->table_stride_elems,
		 SPMLA_WANT_AT_LEAST, c->columns},
		{fields->token_row, SPMLA_I_PTR(c->token_row),
		 SPMLA_WANT_NOT_NULL, 0},
		{fields->block_table, SPMLA_I_PTR(c->block_table),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

/* A ring must hold a group. */
static spmla_status
check_ring(spmla_diag *diag, const spmla_i_state_fields *fields,
	   const spmla_i_state_check *c)
{
	const uint32_t page = c->state->entries_per_page;
	const spmla_i_check ring = {
		fields->columns, c->columns, SPMLA_WANT_AT_LEAST,
		(spmla_i_group_rows(c->ratio) - 1) / page + 1};

	return spmla_i_check_all(diag, &ring, 1);
}

spmla_status
spmla_i_check_state(spmla_diag *diag, const spmla_i_state_fields *fields,
		    const spmla_i_state_check *c)
{
	const spmla_i_check form = {
		fields->form, c->form,
		SPMLA_I_FROM_TO(SPMLA_STATE_PAGED, SPMLA_STATE_RING)};
	spmla_status s;

	if (!spmla_i_state_layouts(c->ratio))
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED, fields->ratio,
				    c->ratio,
				    SPMLA_I_EITHER(SPMLA_COMPRESS_OVERLAP,
						   SPMLA_COMPRESS_MOST, 0));
	s = spmla_i_check_all(diag, &form, 1);
	if (s == SPMLA_OK)
		s = spmla_i_check_cache(diag, &fields->state, c->state,
					spmla_i_state_layouts(c->ratio));
	if (s == SPMLA_OK && (c->has_table || c->form == SPMLA_STATE_RING))
		s = check_table(diag, fields, c);
	if (s == SPMLA_OK && c->form == SPMLA_STATE_RING)
		s = check_ring(diag, fields, c);
	return s;
}
